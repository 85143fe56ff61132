//! The reference of the spec, generated from its schema, and the example that uses every key.
//!
//! Input: the schema. Output: Markdown. What an author must know stands in the doc comments of the forms, once.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema;
use base::metric::{Direction, METRICS, Metric, SPEEDUP, Statistic, Unit};

/// A spec with every key and its default, commented: `docs/reference/spec-full.yaml`.
///
/// It is valid where its model files are.
pub fn full_example() -> String {
    include_str!("full.yaml").to_owned()
}

/// The reference of every key: `docs/reference/spec.md`.
pub fn reference_markdown() -> String {
    let mut text = String::from(concat!(
        "# Spec reference\n\n",
        "<!-- Generated from the schema by `spec::reference_markdown`; a test keeps it current. -->\n\n",
        "A spec is one YAML file that describes one experiment.\n",
        "[spec-full.yaml](spec-full.yaml) shows every key in place.\n",
        "`perfrun validate` checks a spec and shows all its problems at once.\n",
        "An editor that knows the [schema](../../schemas/experiment.schema.json) completes and explains the keys.\n",
    ));
    section(&mut text, "experiment", schema::root());
    for (name, definition) in definitions() {
        if has_section(definition) {
            section(&mut text, name, definition);
        }
    }
    text
}

fn definitions() -> impl Iterator<Item = (&'static str, &'static Value)> {
    let definitions = schema::root().get("$defs").and_then(Value::as_object);
    definitions.into_iter().flatten().map(|(name, definition)| (name.as_str(), definition))
}

/// True for what is worth a heading: keys, choices, and texts with a rule or examples. The rest is described where it
/// is used.
fn has_section(definition: &Value) -> bool {
    ["properties", "oneOf", "pattern", "examples"].iter().any(|keyword| definition.get(keyword).is_some())
}

fn section(text: &mut String, name: &str, definition: &'static Value) {
    push(text, format_args!("\n## {name}\n\n{}\n", description(definition)));
    if let Some(pattern) = definition.get("pattern").and_then(Value::as_str) {
        push(text, format_args!("\nPattern: `{pattern}`\n"));
    }
    if name == "metric" {
        metrics(text);
    }
    keys(text, definition);
    if let Some(alternatives) = definition.get("oneOf").and_then(Value::as_array) {
        if alternatives.iter().all(|alternative| alternative.get("const").is_some()) {
            text.push_str("\n| value | meaning |\n|---|---|\n");
            for alternative in alternatives {
                push(text, format_args!("| {} | {} |\n", code(&alternative["const"]), description(alternative)));
            }
        }
        for alternative in alternatives.iter().filter(|alternative| alternative.get("properties").is_some()) {
            let mode = alternative.get("title").and_then(Value::as_str).unwrap_or_default();
            push(text, format_args!("\n### {name} with `mode: {mode}`\n\n{}\n", description(alternative)));
            keys(text, alternative);
        }
    }
}

/// What references can name.
fn metrics(text: &mut String) {
    text.push_str("\n| metric | unit of its values | better | meaning |\n|---|---|---|---|\n");
    for metric in METRICS.iter().chain([&SPEEDUP]) {
        let (stem, meaning) = (metric.stem(), metric.meaning);
        push(text, format_args!("| `{stem}` | {} | {} | {meaning} |\n", unit(metric), better(metric)));
    }
    let names: Vec<String> = Statistic::NAMES.iter().map(|(name, _)| format!("`latency.{name}`")).collect();
    push(text, format_args!("\nStatistics: {}.\n", names.join(", ")));
    text.push_str(
        "`stddev` is the standard deviation, `cv` the standard deviation over the mean, a share such as `5%`.\n",
    );
    text.push_str("All others have one value per run, so no statistics.\n");
}

fn unit(metric: &Metric) -> &'static str {
    match metric.unit {
        Unit::Nanoseconds => "duration",
        Unit::Bytes => "size",
        Unit::PerSecond => "number a second",
        Unit::Ratio => "ratio",
        Unit::Share => "share",
        Unit::Joules => "number of joules",
        Unit::Watts => "number of watts",
        Unit::Celsius => "number of degrees",
        Unit::Count | Unit::Number | Unit::Named(_) => "number",
    }
}

fn better(metric: &Metric) -> &'static str {
    match metric.direction {
        Direction::LowerIsBetter => "lower",
        Direction::HigherIsBetter => "higher",
        Direction::Neutral => "neither",
    }
}

/// The table of the keys of a map.
fn keys(text: &mut String, definition: &'static Value) {
    let Some(properties) = definition.get("properties").and_then(Value::as_object) else { return };
    let required: Vec<&str> =
        definition.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    text.push_str("\n| key | type | default | meaning |\n|---|---|---|---|\n");
    for (key, property) in properties {
        let default = match property.get("default") {
            Some(Value::Object(_)) => "see there".to_owned(),
            Some(default) => code(default),
            None if required.contains(&key.as_str()) => "needed".to_owned(),
            None => String::new(),
        };
        push(text, format_args!("| `{key}` | {} | {default} | {} |\n", kind(property), description(property)));
    }
    if let Some(rest) = definition.get("additionalProperties").filter(|rest| rest.is_object()) {
        push(text, format_args!("| a dimension | {} | | Sizes, as text. |\n", kind(rest)));
    }
}

/// What a value can be, in words.
fn kind(schema: &'static Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.rsplit('/').next()) {
        let target = schema::resolve(schema);
        return if has_section(target) { format!("[{name}](#{name})") } else { kind(target) };
    }
    if let Some(value) = schema.get("const") {
        return code(value);
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.iter().map(code).collect::<Vec<_>>().join(" or ");
    }
    if let Some(alternatives) = schema.get("anyOf").and_then(Value::as_array) {
        if let [one, many] = alternatives.as_slice()
            && many.get("items") == Some(one)
        {
            return format!("{}, or a list of these", kind(one));
        }
        return alternatives.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(one)) if one == "integer" => format!("whole number{}", range(schema)),
        Some(Value::String(one)) if one == "number" => format!("number{}", range(schema)),
        Some(Value::String(one)) if one == "array" => {
            schema.get("items").map_or("list".to_owned(), |items| format!("list of {}", kind(items)))
        }
        Some(Value::String(one)) if one == "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => match kind(values) {
                several if several.contains(" or ") => format!("map to ({several})"),
                one => format!("map to {one}"),
            },
            _ if schema.get("properties").and_then(|properties| properties.get("mock")).is_some() => {
                "map with the key `mock`: [mock](#mock)".to_owned()
            }
            _ => "map".to_owned(),
        },
        Some(Value::String(one)) if one == "string" => "text".to_owned(),
        Some(Value::String(one)) if one == "boolean" => "true or false".to_owned(),
        Some(Value::Array(_)) => "any scalar".to_owned(),
        _ => String::new(),
    }
}

/// The bounds that somebody could meet; those of the number's type are not worth a word.
fn range(schema: &Value) -> String {
    let maximum = schema.get("maximum").and_then(Value::as_u64).filter(|maximum| *maximum < i32::MAX as u64);
    match (schema.get("minimum").and_then(Value::as_u64), maximum) {
        (Some(minimum), Some(maximum)) => format!(", {minimum} to {maximum}"),
        (Some(minimum), None) if minimum > 0 => format!(", at least {minimum}"),
        _ => String::new(),
    }
}

/// A value as it is written in YAML, in the form of code.
fn code(value: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Array(values) => format!("`[{}]`", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        scalar => format!("`{}`", plain(scalar)),
    }
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('|', "\\|")
}

/// Writing to a string cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a String takes every text");
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The keys of every map in the schema, with where they stand.
    fn all_keys() -> Vec<String> {
        let maps = definitions().map(|(_, definition)| definition).chain([schema::root()]);
        let shapes = maps.flat_map(|definition| {
            definition.get("oneOf").and_then(Value::as_array).into_iter().flatten().chain([definition])
        });
        let properties = shapes.filter_map(|shape| shape.get("properties")?.as_object());
        properties.flat_map(|properties| properties.keys().cloned()).collect()
    }

    #[test]
    fn the_reference_has_every_key() {
        let reference = reference_markdown();
        for key in all_keys() {
            assert!(reference.contains(&format!("| `{key}` |")), "`{key}` is missing");
        }
        for key in all_keys() {
            assert!(!reference.contains(&format!("| `{key}` |  |")), "the type of `{key}` has no words");
        }
    }

    #[test]
    fn links_lead_to_headings() {
        let reference = reference_markdown();
        for link in reference.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(reference.contains(&format!("\n## {link}\n")), "no heading for #{link}");
        }
    }

    #[test]
    fn the_example_has_every_key() {
        let example = full_example();
        for key in all_keys() {
            assert!(example.contains(&format!("{key}:")), "`{key}` is missing");
        }
    }

    #[test]
    fn the_example_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("models/small")).unwrap();
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        std::fs::create_dir_all(folder.path().join("builds/mine")).unwrap();
        let files = ["models/cnn.onnx", "models/small/mlp.onnx", "models/small/mlp-int8.onnx"];
        for file in files.into_iter().chain([
            "data/small.npy",
            "data/test.npz",
            "builds/mine/libmy_npu.so",
            "builds/mine/libmy_ops.so",
        ]) {
            std::fs::write(folder.path().join(file), "abc").unwrap();
        }
        let loaded = crate::parse("full.yaml", &full_example(), folder.path(), &[]);
        let loaded = loaded.unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)));
        let names: Vec<_> = loaded.experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        let expected = [
            "fp32",
            "int8",
            "fp32-t1",
            "fp32-t4",
            "half",
            "calibrated",
            "small",
            "tuned",
            "compiled",
            "functions",
            "server",
            "broken",
        ];
        assert_eq!(names, expected);
        assert!(loaded.warnings.is_empty());
    }
}
