//! Where the numbers come from: machine, runtime, files, commit, commands. Every stored fact is shown once; nothing here
//! names a user or a host.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::table::{Columns, TableCell, TableColumn, TableRow};
use super::{Reader, Section, Table, Trust};
use crate::format::{self, percent};
use base::wording::{count, distinct, list};
use experiment::{Axis, Cache, Design};
use judge::results::Results;
use record::provenance::{self, Class};

/// Digits of a hash that a reader compares; the whole one is in `results.json`.
const SHORT_HASH: usize = 12;

/// Facts of the first screen, of other tables, and what only programs read, which `results.json` has.
const TOLD_ELSEWHERE: [&str; 19] = [
    "cpu",
    "kernel",
    "perfrun",
    "timing",
    "load",
    "others_cpus",
    "commit",
    "specification",
    "models",
    "commands",
    "files",
    "datasets",
    "inputs",
    "design",
    "cache",
    "input_sets",
    "peaks",
    "bandwidths",
    "launching",
];

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// What.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A stored fact.
pub(super) fn fact<'a>(results: &'a Results, name: &str) -> Option<&'a Value> {
    let provenance = &results.provenance;
    [&provenance.subject, &provenance.frame, &provenance.context].into_iter().find_map(|facts| facts.get(name))
}

/// A stored fact that is a text.
pub(super) fn text(results: &Results, name: &str) -> Option<String> {
    fact(results, name).and_then(Value::as_str).map(str::to_owned)
}

/// The rows of a stored fact that is a list.
pub(super) fn rows<'a>(results: &'a Results, name: &str) -> impl Iterator<Item = &'a Value> {
    fact(results, name).and_then(Value::as_array).into_iter().flatten()
}

/// Of what is stored about the specification.
pub(super) fn of_specification<'a>(results: &'a Results, name: &str) -> Option<&'a str> {
    fact(results, "specification")?[name].as_str()
}

/// Measured, on, with, judged: the four things to know about any number.
pub(super) fn facts(reader: &Reader<'_>, trust: &Trust) -> Vec<Fact> {
    let results = reader.results;
    let day = results.measured.sessions.first().and_then(|began| began.get(..10)).unwrap_or("unknown day");
    let cells = reader.shown();
    let completed = cells.iter().map(|cell| cell.completed).max().unwrap_or(0);
    let fewest = cells.iter().map(|cell| cell.completed).filter(|completed| *completed > 0).min().unwrap_or(0);
    let most = results.rules.runs;
    let processes = match results.method.is_by_need() {
        false if most == 1 => "1 process".to_owned(),
        false if completed < most => format!("{completed} of {most} processes"),
        true if fewest < completed => format!("{fewest} to {completed} processes"),
        _ => format!("{completed} processes"),
    };
    let cells = format!("{} x {processes}", count(cells.len() as u64, "cell"));
    let measured = [day.to_owned(), commit(results), cells, format!("record {}", results.record)].join(", ");
    let facts =
        [("measured", measured), ("on", machine(results)), ("with", with(reader)), ("judged", judged(results, trust))];
    facts.map(|(name, value)| Fact { name: name.to_owned(), value }).into()
}

/// `AMD EPYC, 2 cores, NVIDIA H100, Linux 6.1`: of several machines where they differ; with the GPUs that were measured on.
pub(super) fn machine(results: &Results) -> String {
    let each = |name: &str| -> Vec<String> {
        match fact(results, name) {
            Some(Value::Array(several)) => several.iter().map(plain).collect(),
            Some(single) => vec![plain(single)],
            None => Vec::new(),
        }
    };
    let cores = each("allowed_cores")
        .into_iter()
        .map(|cores| cores.parse::<u64>().map_or(cores.clone(), |cores| count(cores, "core")));
    let mut gpus: Vec<String> =
        rows(results, "gpus").filter_map(|gpu| Some(gpu["name"].as_str()?.to_owned())).collect();
    gpus.sort();
    gpus.dedup();
    let parts = [each("cpu"), cores.collect(), gpus, vec![system(results)]];
    let parts = parts.iter().filter(|part| part.iter().any(|text| !text.is_empty())).map(|part| list(part));
    parts.collect::<Vec<_>>().join(", ")
}

/// `Linux 6.1.0`.
pub(super) fn system(results: &Results) -> String {
    let system = text(results, "system").unwrap_or_default();
    let first = base::wording::capitalized(system.split_whitespace().next().unwrap_or_default());
    format!("{first} {}", text(results, "kernel").unwrap_or_default()).trim().to_owned()
}

/// `variant`, `model and device`: the words for what is compared.
pub(super) fn compared(results: &Results) -> String {
    let word = |name: &String| match Axis::of_singular(name) {
        Some(axis) => results.method.word(axis).to_owned(),
        None => name.clone(),
    };
    list(&results.rules.compared.iter().map(word).collect::<Vec<_>>())
}

/// Against what, by which margin, how much can be seen, and what the A/A comparisons found.
fn judged(results: &Results, trust: &Trust) -> String {
    let rules = &results.rules;
    let against = match &rules.baseline {
        Some(baseline) => {
            let margin = results.unasked().next().map_or(rules.margin, |row| row.margin);
            format!("against {baseline} ({}), margin {}", compared(results), percent(margin))
        }
        None if results.method.runs_commands() => "not compared: one command".to_owned(),
        None => "not compared: one variant, one model, one device".to_owned(),
    };
    let quick = results.measured.quick.then(|| "quick look".to_owned());
    let parts = [Some(against), quick, trust.grade.clone(), Some(trust.control.clone())];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// `commit 79e77fe533fb, 2026-11-26`.
pub(super) fn origin_of(results: &Results) -> String {
    let day = results.measured.sessions.first().and_then(|began| began.get(..10)).unwrap_or("unknown day");
    format!("{}, {day}", commit(results))
}

fn commit(results: &Results) -> String {
    let Some(commit) = text(results, "commit") else { return "no commit".to_owned() };
    let short = commit.get(..SHORT_HASH).unwrap_or(&commit);
    let changed = fact(results, "dirty").and_then(Value::as_array).is_some_and(|files| !files.is_empty());
    if changed { format!("commit {short} with changes") } else { format!("commit {short}") }
}

/// `ONNX Runtime 1.31.1`, `ONNX Runtime 1.30.0 and nightly (1.32.0)`: what executed the models; `None` where no library did.
pub(super) fn runtimes(results: &Results) -> Option<String> {
    let words = |row: &Value| {
        let [name, version, package] = ["name", "version", "package"].map(|key| row[key].as_str());
        let version = version.filter(|version| name != Some(*version));
        let package = package.filter(|package| *package != "onnxruntime");
        let known: Vec<&str> = package.into_iter().chain(version.filter(|_| name.is_some())).collect();
        let shown = name.or(version).unwrap_or("of unknown version");
        let variants: Vec<&str> = row["variants"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let runs = if variants.is_empty() { String::new() } else { format!(" for {}", list(&variants)) };
        match known.is_empty() || name.is_none() {
            true => format!("{shown}{runs}"),
            false => format!("{shown} ({}){runs}", known.join(" ")),
        }
    };
    let (programs, libraries): (Vec<&Value>, Vec<&Value>) =
        rows(results, "runtimes").partition(|row| row["program"].as_bool().unwrap_or(false));
    let libraries: Vec<String> = libraries.into_iter().map(words).collect();
    let mut all: Vec<String> = programs.into_iter().map(words).collect();
    if !libraries.is_empty() || all.is_empty() {
        all.insert(0, format!("ONNX Runtime {}", list(&libraries)).trim().to_owned());
    }
    results.method.reads_models().then(|| all.join(", "))
}

/// `ONNX Runtime 1.31.1, 2 threads`, before anything ran; `None` where no library does.
pub fn executed_by(results: &Results) -> Option<String> {
    Some(format!("{}, {}", runtimes(results)?, threads(&Reader::new(results))))
}

/// `1 thread`, `1 to 4 threads`: inside an operator, of the cells that are run.
pub(super) fn threads(reader: &Reader<'_>) -> String {
    let used = reader.shown().into_iter().map(|cell| cell.threads).collect::<Vec<_>>();
    match (used.iter().min(), used.iter().max()) {
        (Some(fewest), Some(most)) if fewest == most => count(u64::from(*most), "thread"),
        (Some(fewest), Some(most)) => format!("{fewest} to {most} threads"),
        _ => "no threads".to_owned(),
    }
}

pub(super) fn with(reader: &Reader<'_>) -> String {
    let results = reader.results;
    if results.method.runs_commands() {
        return commands(results);
    }
    let runtime = runtimes(results).unwrap_or_else(|| "scripted latencies (mock backend), no model was run".to_owned());
    let devices = distinct(reader.shown().into_iter().map(|cell| cell.names.device()));
    let devices = Some(list(&devices)).filter(|devices| !devices.is_empty());
    let design = match results.method.design {
        Design::Blocks => None,
        Design::Slices => Some("slices of resident workers"),
        Design::Duet => Some("duet: two workers side by side"),
        Design::Sequential => Some("one cell after the other"),
    };
    let caches = (results.method.cache == Cache::Cold).then_some("cold caches");
    let labels = [design, caches].map(|label| label.map(str::to_owned));
    let parts = [Some(runtime), devices, Some(threads(reader))].into_iter().chain(labels);
    parts.flatten().collect::<Vec<_>>().join(", ")
}

/// What was run instead of models: `grep -c foo big.txt; rg -c foo big.txt`.
fn commands(results: &Results) -> String {
    rows(results, "commands").filter_map(|row| row["line"].as_str()).collect::<Vec<_>>().join("; ")
}

/// Every stored fact, the disturbances, sessions and models.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let results = reader.results;
    let mut pairs: Vec<(String, String)> = Vec::new();
    for class in [Class::Frame, Class::Subject, Class::Context] {
        let shown = provenance::FIELDS.iter().filter(|field| field.class == class);
        let stored = shown
            .filter(|field| !TOLD_ELSEWHERE.contains(&field.name))
            .filter_map(|field| Some((field.name.replace('_', " "), plain(fact(results, field.name)?))));
        pairs.extend(stored.filter(|(_, value)| !value.is_empty()));
    }
    pairs.extend(origin(results));
    pairs.extend(placement(results));
    let mut sections = vec![Section::new("environment", "machine", "Machine, runtime and files", pairs_table(pairs))];
    if !results.disturbances.is_empty() {
        sections.push(Section::new("environment", "disturbances", "During the runs", disturbances(reader)));
    }
    sections.extend(models(results).map(|table| Section::new("environment", "models", "Models", table)));
    sections
}

fn pairs_table(pairs: Vec<(String, String)>) -> Table {
    let mut table = Columns::of(&pairs);
    table.add(TableColumn::text("fact"), |(name, _)| TableCell::text(name));
    table.add(TableColumn::text("value"), |(_, value)| TableCell::text(value));
    table.table(Vec::new())
}

/// A stored value in one line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "unknown".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => {
            // Names of environment variables stay as they are.
            let is_variable = |name: &str| !name.contains(char::is_lowercase) && name.contains('_');
            let fields = fields.iter().map(|(name, value)| match is_variable(name) {
                true => format!("{name}={}", plain(value)),
                false => format!("{} {}", name.replace('_', " "), plain(value)),
            });
            fields.collect::<Vec<_>>().join(", ")
        }
    }
}

fn origin(results: &Results) -> Vec<(String, String)> {
    let hash = of_specification(results, "sha256");
    let mut facts = Vec::from_iter(hash.map(|hash| ("SHA-256 of the specification".to_owned(), hash.to_owned())));
    for (name, origin) in &results.measured.libraries {
        let of_name = if name.is_empty() { String::new() } else { format!(" of {name}") };
        facts.push((format!("library{of_name} found in"), origin.replace('`', "")));
    }
    let measured = &results.measured;
    for (index, (began, command)) in measured.sessions.iter().zip(&measured.commands).enumerate() {
        let name = if measured.sessions.len() == 1 { "session".to_owned() } else { format!("session {}", index + 1) };
        let boot = measured.boots.get(index).filter(|boot| !boot.is_empty());
        let boot = boot.map(|boot| format!(", boot {boot}")).unwrap_or_default();
        facts.push((name, format!("{began}{boot}: {command}")));
    }
    facts
}

/// Which providers executed nodes, and where outputs were allocated inside the clock.
fn placement(results: &Results) -> Vec<(String, String)> {
    let mut ranges: std::collections::BTreeMap<&str, (u64, u64)> = std::collections::BTreeMap::new();
    for (provider, number) in results.cells.iter().flat_map(|cell| &cell.nodes) {
        let range = ranges.entry(provider).or_insert((*number, *number));
        *range = (range.0.min(*number), range.1.max(*number));
    }
    let text = |(provider, (least, most)): (&str, (u64, u64))| match least == most {
        true => format!("{provider}: {most} per model"),
        false => format!("{provider}: {least} to {most} per model"),
    };
    let nodes: Vec<String> = ranges.into_iter().map(text).collect();
    let dynamic = results.cells.iter().filter(|cell| cell.dynamic_outputs).count() as u64;
    let mut facts = Vec::new();
    facts.extend((!nodes.is_empty()).then(|| ("nodes by provider".to_owned(), nodes.join("; "))));
    facts.extend((dynamic > 0).then(|| {
        let cells = count(dynamic, "cell");
        let allocated = format!("allocated by the runtime inside the timed region in {cells}, since their shapes vary");
        ("outputs".to_owned(), allocated)
    }));
    facts
}

/// `steal (W_STEAL)`: `above 0.5 % in 3 of 120 runs; median 0.2 %, up to 3.1 % in mlp/b1/all/cpu`.
fn disturbances(reader: &Reader<'_>) -> Table {
    use base::metric::{self, Unit};
    let amount = |name: &str, value: f64| match metric::by_name(name).map(|metric| metric.unit) {
        Some(Unit::Ratio | Unit::Share) => percent(value),
        Some(Unit::PerSecond) if value < 1e3 => format!("{value:.1}/s"),
        Some(Unit::PerSecond) => format!("{value:.2e}/s"),
        _ => format!("{value:.0}"),
    };
    let mut table = Columns::of(&reader.results.disturbances);
    table.add(TableColumn::text("what"), |found| {
        let title = metric::by_name(&found.metric).map_or(found.metric.as_str(), |metric| metric.title);
        Some(TableCell::text(format!("{title} ({})", found.code)))
    });
    table.add(TableColumn::number("runs").meaning("runs above the limit, of those that know"), |found| {
        TableCell::number(format!("{} of {}", found.runs, found.of), f64::from(found.runs))
    });
    table.add(TableColumn::number("limit"), |found| TableCell::number(amount(&found.metric, found.limit), found.limit));
    table.add(TableColumn::number("median"), |found| {
        TableCell::number(amount(&found.metric, found.median), found.median)
    });
    table.add(TableColumn::number("largest"), |found| {
        TableCell::number(amount(&found.metric, found.worst), found.worst)
    });
    table.add(TableColumn::text("in"), |found| found.worst_cell.map(|cell| reader.path(cell)));
    table.table(Vec::new())
}

/// The model files, those of variants among them.
fn models(results: &Results) -> Option<Table> {
    let files: Vec<&Value> = rows(results, "models").chain(rows(results, "files")).collect();
    files.first()?;
    let text = |value: &Value| value.as_str().map(TableCell::text);
    let number = |value: &Value, shown: fn(u64) -> String| {
        value.as_u64().map(|number| TableCell::number(shown(number), number as f64))
    };
    let mut table = Columns::of(&files);
    table.add(TableColumn::text("model"), |row| text(&row["name"]).or_else(|| text(&row["model"])));
    table.add_known(TableColumn::text("variant"), |row| text(&row["variant"]));
    table.add(TableColumn::text("file"), |row| match (&row["path"], &row["origin"]) {
        (Value::String(path), _) => Some(TableCell::text(path)),
        (_, origin) if origin["path"].is_string() => text(&origin["path"]),
        (_, origin) => origin["converter"].as_u64().map(|_| TableCell::text("converted")),
    });
    table.add(TableColumn::number("size"), |row| number(&row["bytes"], format::bytes));
    table.add_known(TableColumn::number("parameters"), |row| number(&row["parameters"], |number| number.to_string()));
    let macs = |row: &Value| row["costs"].as_object()?.values().find_map(|cost| cost["macs"].as_u64());
    let meaning = "multiply-accumulates of one inference of the model as stored, at the first input: convolutions, matrix products, recurrent cells and attention";
    table.add_known(TableColumn::number("MACs").meaning(meaning), |row| {
        macs(row).map(|macs| TableCell::number(format::magnitude(macs), macs as f64))
    });
    table.add(TableColumn::text("SHA-256"), |row| {
        let hash = row["sha256"].as_str()?;
        Some(TableCell::text(hash.get(..SHORT_HASH).unwrap_or(hash)))
    });
    table.add_known(TableColumn::text("made by"), |row| text(&row["producer"]));
    let mut made = table.table(Vec::new());
    let problems = files.iter().filter(|row| row["problem"].is_string());
    made.notes.extend(
        problems
            .map(|row| format!("{} as {}: {}.", plain(&row["model"]), plain(&row["variant"]), plain(&row["problem"]))),
    );
    made.rows.iter_mut().for_each(|row: &mut TableRow| row.anchor = None);
    Some(made)
}
