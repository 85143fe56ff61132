//! The JSON Schema of a spec, and the way through it.
//!
//! Input: the forms. Output: the schema as committed, and for any place of a document the schemas that can apply there.
//! Deliberately absent: validation, which is `validate`'s.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{Schema, transform};
use serde_json::{Map, Value, json};

use super::document::{DocumentPath, Step};
use super::form::{DURATION_PATTERN, ExperimentForm, NAME_PATTERN, RATIO_PATTERN};
use super::modes;
use base::quantity::{Nanos, Ratio};
use base::wording::distinct;

/// Names the schema for ever; a change that old specs do not survive gets a new number.
const SCHEMA_ID: &str = "urn:perfrun:schema:experiment:1";

static SCHEMA: LazyLock<Value> = LazyLock::new(generate);

/// The JSON Schema (draft 2020-12) of a spec, with every description and default.
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// The schema as it is committed in `schemas/experiment.schema.json`, for readers that type YAML's scalars by their
/// spelling: indented, with a final newline.
pub fn schema_text() -> String {
    let mut published = schema();
    admit_scalars(&mut published);
    // perfrun itself says it in better words.
    // Strict validators want what is required to be known at the same place.
    let asks = |key: &str| json!({ "properties": { key: true }, "required": [key] });
    published["anyOf"] = ["models", "commands"].map(asks).into();
    // Anchors for the rest of the file; perfrun takes them out before it validates.
    published["patternProperties"] = json!({ "^x-": true });
    format!("{published:#}\n")
}

/// Lets numbers and truth values stand where perfrun takes the text of any scalar (`coerce`).
fn admit_scalars(schema: &mut Value) {
    if takes_any_scalar(schema) {
        schema["type"] = Value::from(vec!["string", "number", "boolean"]);
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(admit_scalars),
        Value::Array(values) => values.iter_mut().for_each(admit_scalars),
        _ => {}
    }
}

/// Texts are taken but those of some values, and those of a form that no number and no truth value has.
fn takes_any_scalar(schema: &Value) -> bool {
    let has_values = ["enum", "const"].iter().any(|keyword| schema.get(keyword).is_some());
    let has_form = schema.get("pattern").is_some_and(|pattern| pattern != NAME_PATTERN);
    admits(schema, "string") && !has_values && !has_form
}

/// The schema itself.
pub(super) fn root() -> &'static Value {
    &SCHEMA
}

fn generate() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.transforms.push(Box::new(transform::RecursiveTransform(tidy)));
    let generated = settings.into_generator().into_root_schema_for::<ExperimentForm>().to_value();
    let mut root = Map::new();
    for (key, value) in [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("$id", SCHEMA_ID),
        ("title", "perfrun experiment"),
    ] {
        root.insert(key.to_owned(), Value::from(value));
    }
    if let Value::Object(generated) = generated {
        for (key, value) in generated {
            root.entry(key).or_insert(value);
        }
    }
    let mut root = Value::Object(root);
    let definitions = root["$defs"].as_object_mut().expect("the forms refer to each other");
    // Stored as numbers, written as texts.
    definitions.retain(|name, _| !["Nanos", "Ratio"].contains(&name.as_str()));
    definitions.insert(
        "duration".to_owned(),
        json!({
            "description": "A number and `ns`, `us`, `ms`, `s`, `m` or `h`: `200ms`, `3s`, `10m`.",
            "type": "string",
            "pattern": DURATION_PATTERN,
            "examples": ["200ms", "3s", "10m"],
        }),
    );
    definitions.insert(
        "ratio".to_owned(),
        json!({
            "description": "Percent or a plain number: `1%` and `0.01` are the same.",
            "type": ["string", "number"],
            "pattern": RATIO_PATTERN,
            "minimum": 0,
            "examples": ["1%", 0.01],
        }),
    );
    modes::describe(&mut root["$defs"]);
    let definitions = root["$defs"].clone();
    write_defaults(&mut root, &definitions);
    root
}

/// Every default as a person writes it.
fn write_defaults(schema: &mut Value, definitions: &Value) {
    if let Some(mut default) = schema.get_mut("default").map(Value::take) {
        write_default(&mut default, schema, definitions);
        schema["default"] = default;
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(|value| write_defaults(value, definitions)),
        Value::Array(values) => values.iter_mut().for_each(|value| write_defaults(value, definitions)),
        _ => {}
    }
}

fn write_default(default: &mut Value, schema: &Value, definitions: &Value) {
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    for shape in [schema].into_iter().chain(alternatives) {
        let pointer = shape.get("$ref").and_then(Value::as_str);
        match (pointer.and_then(|pointer| pointer.strip_prefix("#/$defs/")), default.as_f64()) {
            (Some("duration"), Some(nanos)) => *default = Nanos(nanos as u64).to_string().into(),
            (Some("ratio"), Some(ratio)) => *default = Ratio(ratio).to_string().into(),
            (Some(name), _) => write_default(default, &definitions[name], definitions),
            (None, _) if !modes::fits(shape, default) => {}
            (None, _) => {
                for (key, value) in default.as_object_mut().into_iter().flatten() {
                    write_default(value, &shape["properties"][key.as_str()], definitions);
                }
            }
        }
    }
}

/// What an author of a spec needs, in place of what Rust has: no null, no formats, no empty defaults, plain sentences.
fn tidy(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.contains_key("properties") {
        object.entry("additionalProperties").or_insert(false.into());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(shapes)) = object.get_mut("anyOf") {
        shapes.retain(|shape| shape.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(one)] = shapes.as_slice() {
            let one = one.clone();
            object.shift_remove("anyOf");
            for (key, value) in one {
                object.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::String(pointer)) = object.get_mut("$ref") {
        *pointer = pointer.replace("/Nanos", "/duration").replace("/Ratio", "/ratio");
    }
    match object.get("format").and_then(Value::as_str) {
        Some("uint32") => drop(object.entry("maximum").or_insert(Value::from(u32::MAX))),
        Some("uint64") => drop(object.entry("maximum").or_insert(Value::from(u64::MAX))),
        _ => {}
    }
    object.shift_remove("format");
    if let Some(default) = object.shift_remove("default") {
        let default = without_empty(default);
        if !is_empty(&default) {
            object.insert("default".to_owned(), default);
        }
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map = map.into_iter().map(|(key, value)| (key, without_empty(value)));
            Value::Object(map.filter(|(_, value)| !is_empty(value)).collect())
        }
        other => other,
    }
}

/// Follows a reference, however often.
pub(super) fn resolve(schema: &'static Value) -> &'static Value {
    let mut schema = schema;
    while let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        match reference.strip_prefix('#').and_then(|pointer| root().pointer(pointer)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The shapes that a value can have here: every leaf of `anyOf` and `oneOf`, references followed.
pub(super) fn shapes(schema: &'static Value) -> Vec<&'static Value> {
    let schema = resolve(schema);
    let branches = ["anyOf", "oneOf"].iter().find_map(|keyword| schema.get(keyword).and_then(Value::as_array));
    match branches {
        Some(branches) => branches.iter().flat_map(shapes).collect(),
        None => vec![schema],
    }
}

/// The shapes of the whole document.
pub(super) fn top() -> Vec<&'static Value> {
    shapes(root())
}

/// True where a shape admits that JSON type.
pub(super) fn admits(shape: &Value, kind: &str) -> bool {
    match shape.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        // An enumeration of constants says no type.
        _ => shape.get("const").or_else(|| shape.get("enum").and_then(|options| options.get(0))).is_some_and(|value| {
            match value {
                Value::String(_) => kind == "string",
                Value::Bool(_) => kind == "boolean",
                Value::Number(_) => kind == "number" || kind == "integer",
                _ => false,
            }
        }),
    }
}

/// True where a shape admits this text.
pub(super) fn admits_text(shape: &Value, text: &str) -> bool {
    let options = shape.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let options = options.or_else(|| shape.get("const").map(std::slice::from_ref));
    admits(shape, "string") && options.is_none_or(|options| options.iter().any(|option| option == text))
}

/// True where a text is among the examples of a shape.
pub(super) fn names(shape: &Value, text: &str) -> bool {
    shape.get("examples").and_then(Value::as_array).is_some_and(|examples| examples.iter().any(|one| one == text))
}

/// The shapes of the value of `key` in a map of these shapes; empty where the key is unknown.
pub(super) fn property(map_shapes: &[&'static Value], key: &str) -> Vec<&'static Value> {
    let named: Vec<_> =
        map_shapes.iter().filter_map(|shape| shape.get("properties")?.get(key)).flat_map(shapes).collect();
    if !named.is_empty() {
        return named;
    }
    map_shapes
        .iter()
        .filter_map(|shape| shape.get("additionalProperties"))
        .filter(|schema| schema.is_object())
        .flat_map(shapes)
        .collect()
}

/// Calls `act` with every value of a document, its place and its shapes.
pub(super) fn visit(
    value: &mut Value,
    place: &DocumentPath,
    shapes: &[&'static Value],
    act: &mut impl FnMut(&mut Value, &DocumentPath, &[&'static Value]),
) {
    act(value, place, shapes);
    match value {
        Value::Object(map) => {
            map.iter_mut().for_each(|(key, value)| visit(value, &place.key(key), &property(shapes, key), act));
        }
        Value::Array(values) => {
            let items = items(shapes);
            values.iter_mut().enumerate().for_each(|(index, value)| visit(value, &place.index(index), &items, act));
        }
        _ => {}
    }
}

/// The shapes of an entry of a list of these shapes.
pub(super) fn items(list_shapes: &[&'static Value]) -> Vec<&'static Value> {
    list_shapes.iter().filter_map(|shape| shape.get("items")).flat_map(shapes).collect()
}

/// The keys that maps of these shapes know by name.
pub(super) fn known_keys(map_shapes: &[&'static Value]) -> Vec<&'static str> {
    let maps = map_shapes.iter().filter_map(|shape| shape.get("properties")?.as_object());
    distinct(maps.flat_map(|properties| properties.keys()).map(String::as_str))
}

/// True where maps of these shapes take keys of the author's own.
pub(super) fn is_open(map_shapes: &[&'static Value]) -> bool {
    map_shapes.iter().any(|shape| shape.get("additionalProperties").is_some_and(Value::is_object))
}

/// The default of `key` in the schema.
pub(super) fn default_of(map_shapes: &[&'static Value], key: &str) -> Option<&'static Value> {
    map_shapes.iter().find_map(|shape| shape.get("properties")?.get(key)?.get("default"))
}

/// A value that would do at `place`, as it is written in YAML; of a list without an example its entry's.
pub(super) fn example(place: &DocumentPath) -> Option<String> {
    let here = place.0.iter().fold(top(), |shapes, step| match step {
        Step::Key(key) => property(&shapes, key),
        Step::Index(_) => items(&shapes),
    });
    let first = |shapes: &[&'static Value]| shapes.iter().find_map(|shape| shape.get("examples")?.get(0)).map(flow);
    first(&here).or_else(|| first(&items(&here)).map(|entry| format!("[{entry}]")))
}

/// A value in YAML's flow style.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::String(text) => text.clone(),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description() {
        fn check(path: &str, schema: &Value, missing: &mut Vec<String>) {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                for (key, property) in properties {
                    if property.get("description").is_none() {
                        missing.push(format!("{path}/{key}"));
                    }
                }
            }
            match schema {
                Value::Object(map) => {
                    map.iter().for_each(|(key, value)| check(&format!("{path}/{key}"), value, missing))
                }
                Value::Array(values) => values.iter().for_each(|value| check(path, value, missing)),
                _ => {}
            }
        }
        let mut missing = Vec::new();
        check("", root(), &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn nothing_admits_null() {
        // As a type; `stdout: null` is a word.
        assert!(!schema_text().contains("\"type\": \"null\"") && !schema_text().contains("null,"));
        assert!(!schema_text().contains("\"format\""));
    }

    #[test]
    fn defaults_stand_in_the_schema() {
        let default = |pointer: &str| root().pointer(pointer).unwrap().clone();
        assert_eq!(default("/properties/runs/default"), "auto");
        assert_eq!(default("/properties/variants/default"), serde_json::json!(["fp32"]));
        assert_eq!(default("/$defs/measure/properties/timeout/default"), "10m");
        assert_eq!(default("/$defs/warmup/oneOf/0/properties/tolerance/default"), "2%");
    }

    #[test]
    fn examples_are_those_of_the_value_or_of_its_entries() {
        let place = DocumentPath::top("choose");
        assert_eq!(example(&place.key("best")).as_deref(), Some("latency"));
        assert_eq!(example(&place.key("within")).as_deref(), Some("[{ metric: latency.p95, max: 20ms }]"));
        assert_eq!(example(&place.key("within").index(0).key("where")).as_deref(), Some("{ variant: fp32 }"));
        assert_eq!(example(&DocumentPath::top("seed")), None);
    }

    #[test]
    fn shapes_follow_references() {
        let variants = property(&top(), "variants");
        assert!(variants.iter().any(|shape| admits(shape, "array")));
        let entry = items(&variants);
        assert!(known_keys(&entry).contains(&"graph_optimization"));
        let levels = property(&entry, "graph_optimization");
        assert!(levels.iter().any(|shape| admits(shape, "string")));
    }
}
