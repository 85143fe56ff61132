//! Maps with a `mode` that says which other keys apply: their schema, and the mode that is meant where none is written.
//!
//! The first mode is the default, so that `warmup: { max_time: 2s }` needs none. `--set measure.stop.time=2s` says
//! `mode: time`: what the file says for another mode goes, what the command line says stays, and is refused where it
//! contradicts itself.

use serde_json::{Map, Value, json};

use super::document::{Entry, Node};
use super::problem::Span;

const MODE: &str = "mode";

/// What an author needs to know of the modes of every definition that has some: one shape for each mode, only the first of
/// which works without `mode`.
pub(super) fn describe(definitions: &mut Value) {
    for definition in definitions.as_object_mut().into_iter().flatten().map(|(_, definition)| definition) {
        let shapes = definition.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
        for (index, shape) in shapes.filter(|shape| shape["properties"][MODE].is_object()).enumerate() {
            let mode = shape["properties"][MODE]["const"].take();
            let mut tag = json!({ "description": "The mode; it decides which other keys apply.", "const": mode });
            let is_needed = |key: &Value| key != MODE || index > 0;
            if index == 0 {
                tag["default"] = mode.clone();
            }
            let mut properties = Map::from_iter([(MODE.to_owned(), tag)]);
            for (key, property) in shape["properties"].as_object_mut().into_iter().flatten() {
                properties.entry(key).or_insert(property.take());
            }
            let required: Vec<Value> = shape["required"].as_array().into_iter().flatten().cloned().collect();
            let required: Vec<Value> = required.into_iter().filter(is_needed).collect();
            let shape = shape.as_object_mut().expect("it has properties");
            shape.insert("properties".to_owned(), Value::Object(properties));
            shape.insert("title".to_owned(), mode);
            shape.shift_remove("required");
            if !required.is_empty() {
                shape.insert("required".to_owned(), required.into());
            }
        }
    }
}

/// Whether a map is of that shape, as far as its mode says.
pub(super) fn fits(shape: &Value, map: &Value) -> bool {
    map.get(MODE).is_none_or(|mode| shape["properties"][MODE].get("const").is_none_or(|own| own == mode))
}

/// Gives a map that can have modes and names none the mode that is the default.
pub(super) fn fill(value: &mut Value, shapes: &[&'static Value]) {
    let default = shapes.iter().find_map(|shape| shape.get("properties")?.get(MODE)?.get("default"));
    if let (Some(map), Some(default)) = (value.as_object_mut(), default) {
        map.entry(MODE).or_insert_with(|| default.clone());
    }
}

/// Gives the map the mode of which alone this key is, and takes out what the file says for other modes.
pub(super) fn imply(entries: &mut Vec<Entry>, shapes: &[&'static Value], key: &str, span: Span) {
    let Some((mode, shape)) = wanted(entries, shapes, key) else { return };
    if key != MODE {
        entries.retain(|entry| entry.key != MODE);
        entries.push(Entry { key: MODE.to_owned(), key_span: span, value: Node::text(span, mode) });
    }
    // A key of no mode is a mistake; the check against the schema reports it.
    let is_of_another = |key: &str| !has(shape, key) && shapes.iter().any(|other| has(other, key));
    entries.retain(|entry| is_typed(entry) || !is_of_another(&entry.key));
}

/// The mode that the map is to have from now on, with its shape; `None` where it has that.
fn wanted(entries: &[Entry], shapes: &[&'static Value], key: &str) -> Option<(&'static str, &'static Value)> {
    let written = entries.iter().find(|entry| entry.key == MODE);
    let mut modes = shapes.iter().copied().filter_map(|shape| Some((mode_of(shape)?, shape)));
    if key == MODE {
        let text = written?.value.as_text()?;
        return modes.find(|(mode, _)| *mode == text);
    }
    let mut knowing = modes.filter(|(_, shape)| has(shape, key));
    let only = knowing.next().filter(|_| knowing.next().is_none())?;
    let is_there = match written {
        Some(entry) => is_typed(entry) || entry.value.as_text() == Some(only.0),
        None => only.1["properties"][MODE].get("default").is_some(),
    };
    (!is_there).then_some(only)
}

fn mode_of(shape: &'static Value) -> Option<&'static str> {
    shape.get("properties")?.get(MODE)?.get("const")?.as_str()
}

fn has(shape: &Value, key: &str) -> bool {
    shape.get("properties").is_some_and(|properties| properties.get(key).is_some())
}

/// Whether the entry stands on the command line.
fn is_typed(entry: &Entry) -> bool {
    entry.key_span.source != 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::problem::Sources;
    use crate::{coerce, overrides, yaml};

    /// `measure` of a specification after these arguments.
    fn measure(spec: &str, arguments: &[&str]) -> Value {
        let mut sources = Sources::new("x.yaml", spec);
        let (mut root, _) = yaml::parse(&sources, 0, 0).unwrap();
        for argument in arguments {
            let problems = overrides::apply(&mut root, &mut sources, Path::new(""), argument);
            assert!(problems.is_empty(), "{}", problems[0]);
        }
        coerce::to_json(&root)["measure"].clone()
    }

    #[test]
    fn a_key_of_one_mode_says_the_mode() {
        let plain = "models: m\n";
        let timed = json!({ "stop": { "time": "2s", "mode": "time" } });
        assert_eq!(measure(plain, &["measure.stop.time=2s"]), timed);
        assert_eq!(measure(plain, &["measure.stop={ time: 2s }"]), timed);
        let counted = json!({ "warmup": { "count": 3, "mode": "samples" } });
        assert_eq!(measure(plain, &["measure.warmup.count=3"]), counted);
        let other =
            "models: m\nmeasure: { stop: { mode: samples, count: 20, max_time: 3s }, warmup: { tolerance: 1% } }\n";
        let warmup = json!({ "tolerance": "1%" });
        let timed = json!({ "stop": { "time": "2s", "mode": "time" }, "warmup": warmup });
        assert_eq!(measure(other, &["measure.stop.time=2s"]), timed);
        let narrow = json!({ "stop": { "max_time": "3s", "relative": "5%", "mode": "precision" }, "warmup": warmup });
        assert_eq!(measure(other, &["measure.stop.relative=5%"]), narrow);
        let both = json!({ "stop": { "mode": "time", "time": "2s" }, "warmup": warmup });
        assert_eq!(measure(other, &["measure.stop.mode=time", "measure.stop.time=2s"]), both);
    }

    #[test]
    fn a_key_of_several_modes_or_of_the_default_says_none() {
        assert_eq!(measure("models: m\n", &["measure.stop.relative=2%"]), json!({ "stop": { "relative": "2%" } }));
        assert_eq!(measure("models: m\n", &["measure.stop.max_time=2s"]), json!({ "stop": { "max_time": "2s" } }));
    }

    #[test]
    fn what_the_command_line_says_stays() {
        let said = measure("models: m\n", &["measure.stop.mode=samples", "measure.stop.time=2s"]);
        assert_eq!(said, json!({ "stop": { "mode": "samples", "time": "2s" } }));
        let slip = measure("models: m\nmeasure: { stop: { cuont: 3 } }\n", &["measure.stop.time=2s"]);
        assert_eq!(slip["stop"]["cuont"], 3);
    }
}
