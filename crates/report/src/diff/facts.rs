//! Changed facts in words: `models/detector: opset 17 -> 20, +2 Resize, size 1.2 MiB -> 1.24 MiB`.

use serde_json::{Map, Value};

use crate::format::{bytes, count, magnitude, some};
use judge::diff::{Changed, Changes};

/// What is compared.
pub(super) fn subject(changes: &Changes) -> Vec<String> {
    changes.subject.iter().filter_map(words).collect()
}

/// What differs and is worth a word: of the context nothing that differs by itself.
pub(super) fn named(changes: &[Changed]) -> Vec<String> {
    changes.iter().filter(|change| !change.is_passing).filter_map(words).collect()
}

/// `None` for what another line says.
fn words(change: &Changed) -> Option<String> {
    let fact = change.fact.replace('_', " ");
    let name =
        change.of.as_ref().map_or_else(|| fact.clone(), |name| format!("{} {name}", singular(&fact)).trim().to_owned());
    Some(match (change.fact.as_str(), &change.before, &change.after) {
        ("specification", before, after) => return specification(before, after),
        // Conversions follow their model, unless the converter changed.
        ("files", ..) => return converter(&change.before, &change.after),
        ("variables", Value::Object(before), Value::Object(after)) => variables(before, after),
        (_, Value::Null, _) => format!("{name} added"),
        (_, _, Value::Null) => format!("{name} removed"),
        (_, Value::Object(_), Value::Object(_)) => format!("{name}: {}", fields(&change.before, &change.after)?),
        (_, before, after) => format!("{name}: {} -> {}", plain(before), plain(after)),
    })
}

/// `environment variables: LD_PRELOAD /usr/lib/x.so -> unset, OMP_NUM_THREADS unset -> 4`.
fn variables(before: &Map<String, Value>, after: &Map<String, Value>) -> String {
    let word = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "unset".to_owned(),
        Some(value) => plain(value),
    };
    let each = before.iter().map(|(name, value)| format!("{name} {} -> {}", word(Some(value)), word(after.get(name))));
    let mut each: Vec<String> = each.collect();
    each.sort();
    format!("environment variables: {}", each.join(", "))
}

fn singular(fact: &str) -> &str {
    fact.strip_suffix('s').unwrap_or(fact)
}

/// More keys than these are counted.
const MOST_KEYS: usize = 4;

/// `specification: runs 10 -> 20`: the keys that differ and change what is measured.
fn specification(before: &Value, after: &Value) -> Option<String> {
    let measured = |side: &Value| spec::measured(side.get("text")?.as_str()?);
    let (from, to) = (measured(before)?, measured(after)?);
    let mut found = Vec::new();
    differing("", &from, &to, &mut found);
    let left = found.len().saturating_sub(MOST_KEYS);
    found.truncate(MOST_KEYS);
    if left > 0 {
        found.push(count(left as u64, "more key"));
    }
    (!found.is_empty()).then(|| format!("specification: {}", found.join(", ")))
}

/// The keys in which two values differ, down to what is neither a map nor a list.
fn differing(key: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match (before, after) {
        _ if before == after => {}
        (Value::Object(from), Value::Object(to)) => {
            let added = to.keys().filter(|name| !from.contains_key(*name));
            for name in from.keys().chain(added) {
                let [before, after] = [from, to].map(|fields| fields.get(name).unwrap_or(&Value::Null));
                differing(&below(name), before, after, found);
            }
        }
        (Value::Array(from), Value::Array(to)) if from.len() == to.len() => {
            for (index, (before, after)) in from.iter().zip(to).enumerate() {
                let name = before.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
                differing(&below(&name), before, after, found);
            }
        }
        _ => found.push(format!("{key} {} -> {}", written(before), written(after))),
    }
}

/// A value of the specification, a map as it may be written there: `{precision: int8, threads: 1}`.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}: {}", written(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        value => plain(value),
    }
}

/// `converter perfrun-int8 3 -> 4`, where all conversions agree on it.
fn converter(before: &Value, after: &Value) -> Option<String> {
    let versions = |value: &Value| -> Vec<String> {
        let rows = value.as_array().into_iter().flatten();
        let mut found: Vec<String> =
            rows.filter_map(|row| row.pointer("/origin/converter")?.as_str().map(str::to_owned)).collect();
        found.sort();
        found.dedup();
        found
    };
    let (from, to) = (versions(before), versions(after));
    (from != to && !from.is_empty() && !to.is_empty())
        .then(|| format!("converter: {} -> {}", from.join(", "), to.join(", ")))
}

/// The fields that differ; a hash alone says that the bytes have changed. `None` where one side alone knows them, as of
/// results that an earlier version wrote.
fn fields(before: &Value, after: &Value) -> Option<String> {
    let (from, to) = (before.as_object()?, after.as_object()?);
    let telling = from.keys().filter(|name| !matches!(name.as_str(), "sha256" | "costs" | "name" | "producer"));
    let mut parts: Vec<String> =
        telling.map(|name| field(name, &from[name], to.get(name).unwrap_or(&Value::Null))).collect();
    parts.retain(|text| !text.is_empty());
    let is_other = from.contains_key("sha256");
    if parts.is_empty() { is_other.then(|| "content changed".to_owned()) } else { Some(parts.join(", ")) }
}

fn field(name: &str, before: &Value, after: &Value) -> String {
    if before.is_null() || after.is_null() {
        return String::new();
    }
    match (name, before.as_u64(), after.as_u64()) {
        ("operators", ..) => operators(before, after),
        ("opset", ..) => opset(before, after),
        ("bytes", Some(from), Some(to)) => format!("size {} -> {}", bytes(from), bytes(to)),
        (_, Some(from), Some(to)) => format!("{} {} -> {}", name.replace('_', " "), magnitude(from), magnitude(to)),
        _ if before.is_object() || before.is_array() => {
            if before == after {
                String::new()
            } else {
                format!("{} changed", name.replace('_', " "))
            }
        }
        _ => format!("{} {} -> {}", name.replace('_', " "), plain(before), plain(after)),
    }
}

fn opset(before: &Value, after: &Value) -> String {
    let (Some(from), Some(to)) = (before.as_object(), after.as_object()) else { return String::new() };
    let words = |(domain, version): (&String, &Value)| {
        let domain_words = if domain == "ai.onnx" { String::new() } else { format!(" of {domain}") };
        format!("opset{domain_words} {} -> {}", plain(version), plain(to.get(domain).unwrap_or(&Value::Null)))
    };
    from.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// So many are named where there are at least two more.
const MOST_OPERATORS: usize = 4;

/// `+2 Resize, -1 Conv`, the largest changes first.
fn operators(before: &Value, after: &Value) -> String {
    let (Some(from), Some(to)) = (before.as_object(), after.as_object()) else { return String::new() };
    let count = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or(0);
    let mut changes: Vec<(String, i64)> =
        from.keys().map(|name| (name.clone(), count(to.get(name)).saturating_sub(count(from.get(name))))).collect();
    changes.sort_by_key(|(name, change)| (std::cmp::Reverse(change.unsigned_abs()), name.clone()));
    some(changes.iter().map(|(name, change)| format!("{change:+} {name}")), MOST_OPERATORS).join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields.get("name").map_or_else(|| "a map".to_owned(), plain),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::diff::changes;
    use record::provenance::Provenance;
    use serde_json::json;

    #[test]
    fn values_of_the_specification_are_shown_as_it_may_write_them() {
        let shown = |before: Value, after: Value| {
            let mut found = Vec::new();
            differing("", &before, &after, &mut found);
            found
        };
        let (word, map) = (
            json!({ "variants": ["fp32", "int8"] }),
            json!({ "variants": ["fp32", { "precision": "int8", "threads": 1 }] }),
        );
        assert_eq!(shown(word, map), ["variants.1 int8 -> {precision: int8, threads: 1}"]);
        assert_eq!(shown(json!({}), json!({ "runs": 20 })), ["runs unset -> 20"]);
        assert_eq!(shown(json!({ "gate": [1] }), json!({ "gate": [1, "a"] })), ["gate [1] -> [1, a]"]);
    }

    #[test]
    fn variables_that_differ_are_named() {
        let side = |variables: Value| Provenance {
            context: [("variables".to_owned(), variables)].into(),
            ..Provenance::default()
        };
        let found = changes(
            &side(json!({ "OMP_NUM_THREADS": "4", "ORT_X": "1" })),
            &side(json!({ "LD_PRELOAD": "/x.so", "ORT_X": "1" })),
        );
        let words = "environment variables: LD_PRELOAD unset -> /x.so, OMP_NUM_THREADS 4 -> unset";
        assert_eq!(named(&found.context), [words]);
        assert_eq!(named(&changes(&side(json!({})), &Provenance::default()).context), [""; 0], "one side is not known");
    }
}
