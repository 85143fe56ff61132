//! The reference of the names that a template can use, generated from the page's own types and their documentation.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::page::Page;

/// What a template's author has to know before the names.
const BEGINNING: &str = r#"# Templates of your own

<!-- Generated from the page's types by `report::template_reference`; a test keeps it current. -->

`perfrun report RECORD --template FILE` fills a template with everything that the reports are made of.
RECORD is a record or a committed report.
`--template` may be given several times.
The result is written next to the report, under the template's name without `.j2`: `table.tex.j2` makes `table.tex`.

```sh
perfrun report reports/quickstart --template docs/examples/latency.tex.j2 --output paper
```

[latency.tex.j2](../examples/latency.tex.j2) is a table for a paper, and [cells.csv.j2](../examples/cells.csv.j2) a file for a spreadsheet.
Both are filled by a test.

The language is [Jinja](https://jinja.palletsprojects.com/en/stable/templates/), as [minijinja](https://docs.rs/minijinja) understands it.

- A name that is not there is an error with its line, never an empty text. What may be absent from the page is `none` (`{% if goal is not none %}`); what may be absent from `results` is not there, so give a default: `{{ number.low|default("") }}`.
- Values are escaped by the result's name: `.html`, `.htm`, `.xml` and `.svg` as HTML, `.md` as Markdown, `.tex` as LaTeX; in any other file they are not escaped. `|safe` leaves a value unescaped.
- The line break after a `{% tag %}` and the spaces before it are not part of the result.
- In LaTeX `{#` begins a comment of the template and `{%` a tag: write `{ #1}` and `{ %`.

In addition to [minijinja's filters](https://docs.rs/minijinja/latest/minijinja/filters/index.html) there are these; a cell is one of `results`:

| filter | gives |
|---|---|
FILTERS

perfrun's own `latex`, `junit`, `bmf` and `github-action-benchmark` are such templates: `crates/report/src/templates/results.*.j2`.

`results` is [results.json](results.md) as it is stored, in nanoseconds and bytes; every other number is a text, rounded to what its interval supports.
Names may be added; removals and changes of meaning are listed in the changelog.
"#;

/// Filters of perfrun's own as they are written, and what they give.
pub(super) const FILTERS: [(&str, &str); 15] = [
    ("text|block", "Markdown that begins a line, where headings and lists begin"),
    ("text|code", "Markdown code in a line"),
    ("text|fenced(\"yaml\")", "a fenced block of Markdown"),
    ("text|prose", "sentences with code in backticks, as Markdown"),
    ("text|prose_html", "the same as HTML"),
    ("text|html", "text inside HTML within Markdown"),
    ("text|path_html", "the path of a cell that may break after each part, as HTML"),
    ("text|line", "text without line breaks"),
    ("text|tex_name", "text as part of the name of a LaTeX macro"),
    ("cell|path", "its path, `resnet50/b1/fp16/cpu`"),
    (
        "cell|estimates",
        "its numbers by their names in `results.json`, without those that are invalid or that too few samples support, and without intervals over fewer than five runs",
    ),
    ("cell|numbers", "the same rounded, a list: `name`, `value`, `plus_minus` (a text or `none`), `unit`"),
    ("cells|with(\"latency_ns\")", "those that have this number"),
    (
        "cells|column(\"latency\")",
        "a metric of all of them in one unit: its `heading`, and `numbers`, for each cell a text or `none`; `none` where no cell has it",
    ),
    ("cells|axes", "the model, and on what else they differ: `[\"model\", \"variant\"]`"),
];

/// The name of a filter as it is written: `with` of `cells|with("latency_ns")`.
pub(super) fn filter_name(written: &str) -> &str {
    let (_, call) = written.split_once('|').unwrap_or_default();
    call.split('(').next().unwrap_or_default()
}

/// The names at the top of a page.
pub(super) fn page_names() -> Vec<String> {
    let schema = schemars::schema_for!(Page<'static>).to_value();
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|all| all.keys().cloned()).collect()
}

/// The reference: `docs/reference/template.md`.
pub fn reference_markdown() -> String {
    let schema = schemars::schema_for!(Page<'static>).to_value();
    let row = |(written, gives): &(&str, &str)| format!("| `{}` | {gives} |\n", written.replace('|', "\\|"));
    let mut text = BEGINNING.replace("FILTERS\n", &FILTERS.iter().map(row).collect::<String>());
    section(&mut text, "The names at the top", &schema);
    let definitions = schema.get("$defs").and_then(Value::as_object);
    for (name, definition) in definitions.into_iter().flatten() {
        section(&mut text, name, definition);
    }
    text
}

/// One type: its names with their types, or its words.
fn section(text: &mut String, title: &str, schema: &Value) {
    // Writing into a String cannot fail.
    let _ = write!(text, "\n## {title}\n\n{}\n", description(schema));
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        text.push_str("\n| name | type | meaning |\n|---|---|---|\n");
        for (name, property) in properties {
            let _ = writeln!(text, "| `{name}` | {} | {} |", kind(property), description(property));
        }
    }
    let words = schema.get("oneOf").and_then(Value::as_array);
    if let Some(words) = words {
        text.push_str("\n| text | meaning |\n|---|---|\n");
        for word in words {
            let name = word.get("const").and_then(Value::as_str).unwrap_or_default();
            let _ = writeln!(text, "| `{name}` | {} |", description(word));
        }
    }
}

/// A doc comment as one line of a table; templates write `none` where Rust writes `None`.
fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.replace('\n', " ").replace('|', "\\|").replace("`None`", "`none`")
}

/// The type in words: `list of [Fact](#fact)`, `number or none`.
fn kind(schema: &Value) -> String {
    let Some(schema) = schema.as_object() else { return "anything".to_owned() };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).map(|name| simple(name, schema));
            names.collect::<Vec<_>>().join(" or ")
        }
        Some(Value::String(name)) => simple(name, schema),
        _ => "anything".to_owned(),
    }
}

fn simple(name: &str, schema: &Map<String, Value>) -> String {
    match name {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "null" => "none".to_owned(),
        "array" => match schema.get("items").map(kind).unwrap_or_default() {
            choice if choice.contains(" or ") => format!("list of ({choice})"),
            item => format!("list of {item}"),
        },
        "object" => format!("map from text to {}", schema.get("additionalProperties").map(kind).unwrap_or_default()),
        other => other.to_owned(),
    }
}
