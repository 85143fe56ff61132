//! What a specification says about measuring, without expanding it: whether two texts ask for the same numbers.

use std::path::Path;

use base::name::fitting_or;
use reading::plain_file;
use serde_json::Value;

use super::problem::Sources;
use super::{coerce, yaml};

/// Keys that change nothing about what is measured: questions, promises, and how much may be spent.
const AFTERWARDS: [&str; 10] =
    ["description", "choose", "goals", "goals_strict", "gate", "pareto", "paths", "tables", "budget", "require"];

/// What a text asks to be measured, as JSON with sorted keys; `None` for what is no YAML.
pub fn measured(text: &str) -> Option<Value> {
    let sources = Sources::new("specification", text.strip_prefix('\u{feff}').unwrap_or(text));
    let (root, problems) = yaml::parse(&sources, 0, 0).ok()?;
    if !problems.is_empty() {
        return None;
    }
    let mut canonical = coerce::canonical(&coerce::to_json(&root.without_extensions()));
    if let Value::Object(keys) = &mut canonical {
        keys.retain(|key, _| !AFTERWARDS.contains(&key.as_str()));
    }
    Some(canonical)
}

/// Every text in a specification, any of which may be a path; nothing for what is no YAML.
pub fn texts(text: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&measured(text).unwrap_or_default(), &mut found);
    found
}

/// The name of the experiment of a file, however broken the rest of it is: its own, else that of the file.
pub fn name_of(file: &Path) -> Option<String> {
    let text = plain_file::text(file).ok()?;
    let own = measured(&text).and_then(|spec| spec.get("name")?.as_str().map(str::to_owned));
    own.or_else(|| file.file_stem()?.to_str().map(|stem| fitting_or(stem, stem)))
}

/// Whether a text says at the start of a line what is measured, however broken the rest of it is.
pub fn says_what_to_measure(text: &str) -> bool {
    has_commands(text) || text.lines().any(|line| line.starts_with("models:"))
}

/// Whether that are commands.
pub fn has_commands(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("commands:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_questions_change_nothing_that_is_measured() {
        let one = measured("models: m.onnx # ours\nruns: 10\n");
        assert!(one.is_some());
        assert_eq!(one, measured("gate: [{ metric: latency, worse_by: 5% }]\nruns: 10\nmodels: m.onnx\n"));
        assert_ne!(one, measured("models: m.onnx\nruns: 11\n"));
        assert_eq!(measured("models: ["), None);
    }
}
