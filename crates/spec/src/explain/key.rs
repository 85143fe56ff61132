//! The keys of a specification, from its JSON Schema.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use base::wording::distinct;

/// Keys lie at most this deep; a bound in case a schema ever refers to itself.
const DEEPEST: usize = 8;

/// A key in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Key {
    /// Where it stands; entries of lists have no number: `variants.threads`.
    pub path: String,
    /// What it says, a sentence or more.
    pub description: String,
    /// What its value can be: `duration`, `whole number, at least 1`.
    pub value: String,
    /// The value without it, as it is written in a specification.
    pub default: Option<String>,
    /// The values that there are, where they are few.
    pub choices: Vec<Choice>,
    /// Modes that know the key; empty where all do.
    pub modes: Vec<String>,
    /// Keys below it.
    pub keys: Vec<String>,
}

/// A value that a key can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub value: String,
    /// What it says; empty where it says itself.
    pub meaning: String,
}

/// Every key, sorted by its path.
pub fn keys() -> Vec<Key> {
    let root = crate::schema();
    let mut found = BTreeMap::new();
    let walk = Walk { root: &root };
    walk.below(&root, "", None, 0, &mut found);
    let paths: Vec<String> = found.keys().cloned().collect();
    for (path, key) in &mut found {
        let below = paths.iter().filter_map(|other| other.strip_prefix(path.as_str())?.strip_prefix('.'));
        key.keys = below.filter(|rest| !rest.contains('.')).map(str::to_owned).collect();
    }
    found.into_values().collect()
}

struct Walk<'a> {
    root: &'a Value,
}

impl<'a> Walk<'a> {
    fn resolve(&self, mut schema: &'a Value) -> &'a Value {
        while let Some(pointer) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')) {
            match self.root.pointer(pointer) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    /// Collects the keys of every map that a value of this schema can be, entries of lists included.
    fn below(
        &self,
        schema: &'a Value,
        path: &str,
        mode: Option<&str>,
        depth: usize,
        found: &mut BTreeMap<String, Key>,
    ) {
        let schema = self.resolve(schema);
        if depth > DEEPEST {
            return;
        }
        let alternatives = ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        for alternative in alternatives.chain(schema.get("items")) {
            let title = alternative.get("title").and_then(Value::as_str);
            self.below(alternative, path, title.or(mode), depth + 1, found);
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let key = found.entry(path.clone()).or_insert_with(|| self.key(&path, property));
            // All modes know `mode` itself.
            key.modes.extend(mode.filter(|_| name != "mode").map(str::to_owned));
            key.modes.dedup();
            if name == "mode" {
                let value = property.get("const").map(written);
                key.choices.extend(value.map(|value| Choice { value, meaning: description(schema) }));
            }
            self.below(property, &path, None, depth + 1, found);
        }
    }

    fn key(&self, path: &str, property: &'a Value) -> Key {
        let own = description(property);
        let target = self.resolve(property);
        Key {
            path: path.to_owned(),
            description: if own.is_empty() { description(target) } else { own },
            value: self.value(property),
            default: property.get("default").map(written),
            // The values of a mode stand in the alternatives around it.
            choices: if path.ends_with("mode") { Vec::new() } else { self.choices(property) },
            ..Key::default()
        }
    }

    /// What a value can be, in words.
    fn value(&self, schema: &'a Value) -> String {
        let named = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.rsplit('/').next());
        let target = self.resolve(schema);
        if let Some(name) = named.filter(|_| target.get("pattern").is_some()) {
            return format!("{name}: {}", description(target));
        }
        if let Some(alternatives) = target.get("anyOf").and_then(Value::as_array) {
            let mut words: Vec<String> = alternatives.iter().map(|alternative| self.value(alternative)).collect();
            words.retain(|word| !word.is_empty());
            words.dedup();
            return words.join(", or ");
        }
        match target.get("type").and_then(Value::as_str) {
            Some("integer") => format!("whole number{}", bounds(target)),
            Some("number") => format!("number{}", bounds(target)),
            Some("array") => match target.get("items").map(|items| self.value(items)).unwrap_or_default() {
                of if of.is_empty() => "list".to_owned(),
                of => format!("list of: {of}"),
            },
            Some("object") => "map".to_owned(),
            Some("boolean") => "true or false".to_owned(),
            Some("string") if target.get("enum").is_none() && target.get("const").is_none() => "text".to_owned(),
            _ => String::new(),
        }
    }

    fn choices(&self, schema: &'a Value) -> Vec<Choice> {
        let schema = self.resolve(schema);
        if let Some(value) = schema.get("const").filter(|_| schema.get("title").is_none()) {
            return vec![Choice { value: written(value), meaning: description(schema) }];
        }
        let options = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let plain = options.map(|value| Choice { value: written(value), meaning: String::new() });
        let alternatives = ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        let nested = alternatives.chain(schema.get("items")).flat_map(|alternative| self.choices(alternative));
        distinct(plain.chain(nested))
    }
}

fn bounds(schema: &Value) -> String {
    let number = |word: &str| schema.get(word).and_then(Value::as_f64);
    // The largest number of a type is no bound that anybody meets.
    let maximum = number("maximum").filter(|maximum| *maximum < f64::from(i32::MAX));
    match (number("minimum"), maximum) {
        (Some(minimum), Some(maximum)) => format!(", {minimum} to {maximum}"),
        (Some(minimum), None) => format!(", at least {minimum}"),
        (None, Some(maximum)) => format!(", at most {maximum}"),
        (None, None) => String::new(),
    }
}

/// A value as it is written in a specification.
fn written(value: &Value) -> String {
    let entry = |(key, value): (&String, &Value)| format!("{key}: {}", written(value));
    let map = |map: &Map<String, Value>| map.iter().map(entry).collect::<Vec<_>>().join(", ");
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => format!("{{ {} }}", map(entries)),
        scalar => scalar.to_string(),
    }
}

fn description(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(path: &str) -> Key {
        keys().into_iter().find(|key| key.path == path).unwrap_or_else(|| panic!("no key {path}"))
    }

    #[test]
    fn keys_lie_in_maps_lists_and_modes() {
        assert_eq!(of("runs").default.as_deref(), Some("auto"));
        assert!(of("variants").keys.contains(&"threads".to_owned()));
        assert!(of("measure").keys.contains(&"warmup".to_owned()));
        let tolerance = of("measure.warmup.tolerance");
        assert_eq!(
            (tolerance.modes.as_slice(), tolerance.default.as_deref()),
            (&["adaptive".to_owned()][..], Some("2%"))
        );
        assert!(tolerance.value.starts_with("ratio"), "{}", tolerance.value);
    }

    #[test]
    fn choices_are_listed_with_their_meaning() {
        let modes = of("measure.warmup.mode");
        let values: Vec<&str> = modes.choices.iter().map(|choice| choice.value.as_str()).collect();
        assert_eq!(values, ["adaptive", "samples", "time"]);
        assert!(modes.choices.iter().all(|choice| !choice.meaning.is_empty()));
        let levels = of("variants.graph_optimization");
        assert!(levels.choices.iter().any(|choice| choice.value == "disabled"));
        assert_eq!(of("measure.warmup.mode").modes, [""; 0]);
    }
}
