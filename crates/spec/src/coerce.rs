//! A document as JSON, each scalar of the type that the schema wants where its text allows that.
//!
//! YAML guesses types from spelling; a schema knows better. Where text can stand, a scalar is its source text: `name:
//! 010` is "010" and `session: { x: 0 }` is "0". Where a whole number is wanted, `1e3` is 1000.
//! Deliberately absent: complaints, which are `validate`'s.

use serde_json::{Map, Number, Value};

use super::document::{Content, Node, Scalar, ScalarKind};
use super::schema;

/// Floats below this are exact integers, so that `1e3` can be read as one.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The document's value for validation and for the forms.
pub(super) fn to_json(root: &Node) -> Value {
    value(root, &schema::top())
}

fn value(node: &Node, shapes: &[&'static Value]) -> Value {
    match &node.content {
        Content::Scalar(written) => scalar(written, shapes),
        Content::List(nodes) => {
            let items = schema::items(shapes);
            Value::Array(nodes.iter().map(|node| value(node, &items)).collect())
        }
        Content::Map(entries) => {
            let entries = entries
                .iter()
                .map(|entry| (entry.key.clone(), value(&entry.value, &schema::property(shapes, &entry.key))));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}

fn scalar(scalar: &Scalar, shapes: &[&'static Value]) -> Value {
    let wants = |kind| shapes.iter().any(|shape| schema::admits(shape, kind));
    // Words that may stand in place of a number, such as `auto`, do not make a text of it.
    let is_free = |shape: &&Value| schema::admits_text(shape, &scalar.text);
    let stays_number = wants("integer") || wants("number");
    let wants_text = if stays_number { shapes.iter().any(is_free) } else { wants("string") };
    let text = || Value::String(scalar.text.clone());
    match scalar.kind {
        // The word, where words are wanted that have it among them.
        ScalarKind::Null if scalar.text == "null" && shapes.iter().any(|shape| schema::names(shape, "null")) => text(),
        ScalarKind::Null => Value::Null,
        ScalarKind::Text => text(),
        _ if wants_text => text(),
        ScalarKind::Bool(value) => Value::Bool(value),
        ScalarKind::Integer(value) => Number::from_i128(value).map_or_else(text, Value::Number),
        ScalarKind::Float(value) if wants("integer") && value.fract() == 0.0 && value.abs() < EXACT => {
            Value::from(value as i64)
        }
        ScalarKind::Float(value) => Number::from_f64(value).map_or_else(text, Value::Number),
    }
}

/// The same value with the keys of every map in order, so that equal specs are equal bytes.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), canonical(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(canonical).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::problem::Sources;
    use crate::yaml;

    fn json(text: &str) -> Value {
        to_json(&yaml::parse(&Sources::new("x.yaml", text), 0, 0).unwrap().0)
    }

    #[test]
    fn scalars_keep_their_text_where_text_is_wanted() {
        let value = json("name: 010\nvariants: [{ name: 1.30, session: { x: 0, y: true }, threads: 4 }]\n");
        assert_eq!(value["name"], "010");
        assert_eq!(value["variants"][0]["name"], "1.30");
        assert_eq!(value["variants"][0]["session"], serde_json::json!({ "x": "0", "y": "true" }));
        assert_eq!(value["variants"][0]["threads"], 4);
    }

    #[test]
    fn numbers_are_numbers_where_numbers_are_wanted() {
        assert_eq!(json("runs: 1e1")["runs"], 10);
        assert_eq!(json("runs: 010")["runs"], 10);
        assert_eq!(json("runs: 2.5")["runs"], 2.5);
        assert_eq!(json("runs: ten")["runs"], "ten");
        assert_eq!(json("runs: .nan")["runs"], ".nan");
        assert_eq!(json("seed: 18446744073709551615")["seed"], u64::MAX);
        assert_eq!(json("matrix: { exclude: [{ batch: [1, 16] }] }")["matrix"]["exclude"][0]["batch"][1], "16");
    }

    #[test]
    fn canonical_values_do_not_depend_on_order() {
        assert_eq!(canonical(&json("{ runs: 3, models: a }")).to_string(), r#"{"models":"a","runs":3}"#);
    }
}
