//! What differs between two sides other than their numbers, entry by entry: of models the opset, operators, parameters,
//! size.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use record::provenance::{Class, FIELDS, Facts, Field, Provenance};

/// A fact, or one entry of it, that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// Its name, as in `provenance` of results.json.
    pub fact: String,
    /// The entry of an axis that it is about: the name of a model, of an input ...; absent where it is about everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The older value; null where that side has no such entry.
    pub before: Value,
    /// The newer value.
    pub after: Value,
    /// It differs from record to record by itself.
    pub is_passing: bool,
}

/// Everything that differs, by what a difference means (docs/method, 8.4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Changes {
    /// What is compared.
    pub subject: Vec<Changed>,
    /// What must be equal for numbers to be compared.
    pub frame: Vec<Changed>,
    /// What may matter.
    pub context: Vec<Changed>,
}

/// What differs, in the order of the facts.
pub fn changes(baseline: &Provenance, candidate: &Provenance) -> Changes {
    let changes_of = |class: Class, from: &Facts, to: &Facts| -> Vec<Changed> {
        FIELDS.iter().filter(|field| field.class == class).flat_map(|field| changed(field, from, to)).collect()
    };
    Changes {
        subject: changes_of(Class::Subject, &baseline.subject, &candidate.subject),
        frame: changes_of(Class::Frame, &baseline.frame, &candidate.frame),
        context: changes_of(Class::Context, &baseline.context, &candidate.context),
    }
}

fn changed(field: &Field, from: &Facts, to: &Facts) -> Vec<Changed> {
    // What one side does not know is no difference.
    let Some((before, after)) = from.get(field.name).zip(to.get(field.name)) else { return Vec::new() };
    let changed_entry = |of: Option<String>, before: &Value, after: &Value| {
        let (before, after) = only_differing(before, after);
        Changed { fact: field.name.to_owned(), of, before, after, is_passing: field.is_passing }
    };
    match (field.rows_by, before.as_array(), after.as_array()) {
        _ if before == after => Vec::new(),
        (Some(key), Some(before), Some(after)) => {
            let (before, after) = (by_name(before, key), by_name(after, key));
            let mut names: Vec<&String> = before.keys().collect();
            names.extend(after.keys().filter(|name| !before.contains_key(*name)));
            let pair = |name: &String| {
                let [from, to] = [&before, &after].map(|rows| rows.get(name).copied().unwrap_or(&Value::Null));
                (from != to).then(|| changed_entry(Some(name.clone()), from, to))
            };
            names.into_iter().filter_map(pair).collect()
        }
        _ => vec![changed_entry(None, before, after)],
    }
}

fn by_name<'a>(rows: &'a [Value], key: &str) -> BTreeMap<String, &'a Value> {
    let named = |row: &'a Value| (row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned(), row);
    rows.iter().map(named).collect()
}

/// Of two objects the fields that differ, all the way down; of other values the values.
fn only_differing(before: &Value, after: &Value) -> (Value, Value) {
    let (Value::Object(from), Value::Object(to)) = (before, after) else { return (before.clone(), after.clone()) };
    let (mut left, mut right) = (Map::new(), Map::new());
    let mut names: Vec<&String> = from.keys().collect();
    names.extend(to.keys().filter(|name| !from.contains_key(*name)));
    for name in names {
        let [before, after] = [from, to].map(|fields| fields.get(name).unwrap_or(&Value::Null));
        if before != after {
            let (before, after) = only_differing(before, after);
            left.insert(name.clone(), before);
            right.insert(name.clone(), after);
        }
    }
    (Value::Object(left), Value::Object(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_is_told_apart_by_what_differs_in_it() {
        let model = |opset: u64, resize: Option<u64>| {
            let mut operators = json!({ "Conv": 53 });
            if let Some(resize) = resize {
                operators["Resize"] = json!(resize);
            }
            json!({ "name": "detector", "path": "m/d.onnx", "opset": { "ai.onnx": opset }, "operators": operators })
        };
        let other = json!({ "name": "other", "bytes": 1 });
        let side =
            |models: Value| Provenance { subject: [("models".to_owned(), models)].into(), ..Provenance::default() };
        let (from, to) = (side(json!([other, model(17, None)])), side(json!([model(20, Some(2)), other])));
        let found = changes(&from, &to);
        let expected = Changed {
            fact: "models".to_owned(),
            of: Some("detector".to_owned()),
            before: json!({ "opset": { "ai.onnx": 17 }, "operators": { "Resize": null } }),
            after: json!({ "opset": { "ai.onnx": 20 }, "operators": { "Resize": 2 } }),
            is_passing: false,
        };
        assert_eq!(found, Changes { subject: vec![expected], ..Changes::default() });
        assert_eq!(changes(&from, &from), Changes::default());
    }

    #[test]
    fn what_one_side_does_not_know_is_no_difference() {
        let side = |facts: Facts| Provenance { context: facts, ..Provenance::default() };
        let known = side([("kernel".to_owned(), json!("6.8"))].into());
        assert_eq!(changes(&known, &side(Facts::new())), Changes::default());
        assert_eq!(changes(&known, &side([("kernel".to_owned(), json!("6.9"))].into())).context.len(), 1);
    }
}
