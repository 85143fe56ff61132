//! Who a cell is, whatever changes in it (its id), and what it is made of (its definition).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use experiment::{Axis, Coordinates, Experiment, InputPoint, Measure, Model, Runtime, Stdout, Variant};
use files::digest;

/// The first 8 bytes of SHA-256 over a cell's names; printed as 16 hex digits.
///
/// Names only, so the same cell is found again in another record whatever changed in it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(u64);

impl CellId {
    pub fn of(coordinates: &Coordinates<'_>) -> Self {
        let mut hash = Sha256::new_with_prefix(b"v1");
        let is_in_id = |(axis, name): &(Axis, &&str)| axis.is_always_written() || **name != Axis::ABSENT;
        for (axis, name) in coordinates.iter().filter(is_in_id) {
            for text in [axis.singular(), name] {
                hash.update(b"\0");
                hash.update(text.as_bytes());
            }
        }
        let digest = hash.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        CellId(u64::from_be_bytes(first))
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CellId({self})")
    }
}

/// The text is not 16 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a cell id (16 hex digits)")]
pub struct CellIdError(pub String);

impl FromStr for CellId {
    type Err = CellIdError;

    fn from_str(text: &str) -> Result<Self, CellIdError> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        value.map(CellId).ok_or_else(|| CellIdError(text.to_owned()))
    }
}

impl Serialize for CellId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CellId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for CellId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CellId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// SHA-256, as hex, over the settings of a cell that differ from the defaults: canonical JSON with sorted keys.
///
/// Defaults are left out so that a new key with a default changes no definition. The experiment's paths are to be
/// relative, or a definition would be that of one machine.
pub fn definition(
    experiment: &Experiment,
    model: &Model,
    variant: &Variant,
    input: &InputPoint,
    runtime: Option<&Runtime>,
) -> String {
    // A trace is its hash: gaps by the thousand would be hashed for every cell.
    let measure = Measure { trace: None, ..experiment.measure };
    let unnamed = Variant { name: variant.name.clone(), ..Variant::default() };
    let mut settings = json!({
        "variant": differing(&to_value(variant), &to_value(&unnamed)),
        "input": { "dimensions": input.dimensions, "shapes": input.shapes, "values": input.values },
        "measure": differing(&to_value(&measure), &to_value(&Measure::default())),
    });
    if let Some(trace) = &experiment.measure.trace {
        settings["measure"]["trace"] = to_value(&trace.file.sha256);
    }
    if !input.tensors.is_empty() {
        settings["input"]["tensors"] = to_value(&input.tensors);
    }
    if let Some(file) = &input.file {
        settings["input"]["file"] = to_value(&file.path);
    }
    if input.decode {
        settings["input"]["decode"] = true.into();
    }
    if let Some(search) = &input.search {
        settings["input"]["search"] = to_value(search);
    }
    if let Some(load) = &input.load {
        settings["input"]["load"] = to_value(load);
    }
    // Of a command how it is measured; what it is stands in a fact of its own.
    if let Some(command) = model.command.as_ref().filter(|command| command.stdout != Stdout::default()) {
        settings["stdout"] = to_value(&command.stdout);
    }
    if let Some(runtime) = runtime {
        let unnamed = Runtime { name: runtime.name.clone(), ..Runtime::default() };
        settings["runtime"] = differing(&to_value(runtime), &to_value(&unnamed));
    }
    let text = sorted(&settings).to_string();
    digest::of_text(&text)
}

fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("the model types have string keys only")
}

/// What of `value` is not as in `default`, object by object.
fn differing(value: &Value, default: &Value) -> Value {
    match (value, default) {
        (Value::Object(fields), Value::Object(defaults)) => {
            let different = fields.iter().filter(|(key, field)| defaults.get(*key) != Some(field));
            let pairs = different.map(|(key, field)| {
                let nothing = Value::Null;
                (key.clone(), differing(field, defaults.get(key).unwrap_or(&nothing)))
            });
            Value::Object(pairs.collect())
        }
        _ => value.clone(),
    }
}

/// The same value with the keys of every object in order.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&fields[key]))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coordinates<'a>(names: [&'a str; 5]) -> Coordinates<'a> {
        Coordinates::of(|axis| names.get(axis as usize).copied().unwrap_or(Axis::ABSENT))
    }

    fn id(model: &str, input: &str, variant: &str, device: &str) -> String {
        CellId::of(&coordinates([model, input, variant, device, "-"])).to_string()
    }

    #[test]
    fn ids_are_pinned_for_ever() {
        // Computed once with another program; a change here breaks every comparison with older records.
        let pinned = [
            (("mlp", "b1", "fp32", "cpu"), "4825721fade299ce"),
            (("mlp", "b16", "fp32", "cpu"), "fd8159be4eb26277"),
            (("mlp", "b1", "fp32-t4", "cpu"), "5ae3c9dda568328f"),
            (("mlp", "b1", "fp32", "cuda:0"), "1432320882d53679"),
            (("resnet50", "b16-sequence128", "int8", "tensorrt:1"), "eb3ba98920281ee3"),
            (("a", "default", "x", "cpu"), "cf7a4ccab8a652ea"),
            (("A", "default", "x", "cpu"), "aea99932a511df87"),
            (("m.n_o-p", "odd", "tuned", "openvino"), "6ea85d8a4cb76439"),
            (("densenet121", "b1", "fp16", "cuda:0"), "c68189ce6514c9c3"),
            (("0", "0", "0", "cpu"), "beaec83408758233"),
        ];
        for ((model, input, variant, device), expected) in pinned {
            assert_eq!(id(model, input, variant, device), expected);
        }
    }

    #[test]
    fn a_runtime_is_part_of_an_id_and_of_a_path_where_there_is_one() {
        let unnamed = coordinates(["mlp", "b1", "fp32", "cpu", "-"]);
        let named = coordinates(["mlp", "b1", "fp32", "cpu", "1.31.1"]);
        assert_eq!((unnamed.path().as_str(), named.path().as_str()), ("mlp/b1/fp32/cpu", "mlp/b1/fp32/cpu/1.31.1"));
        assert_ne!(CellId::of(&unnamed), CellId::of(&named));
    }

    #[test]
    fn a_definition_says_what_a_runtime_is_and_not_its_name() {
        let text = "backend: mock\nmodels: [m]";
        let spec = spec::parse("x.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let experiment = &spec.experiment;
        let definition_with = |runtime: Option<Runtime>| {
            definition(
                experiment,
                &experiment.models[0],
                &experiment.variants[0],
                &experiment.inputs[0],
                runtime.as_ref(),
            )
        };
        let runtime = |name: &str, version: &str| Runtime {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            ..Runtime::default()
        };
        assert_eq!(definition_with(Some(runtime("a", "1.31.1"))), definition_with(Some(runtime("b", "1.31.1"))));
        assert_ne!(definition_with(Some(runtime("a", "1.31.1"))), definition_with(Some(runtime("a", "1.30.0"))));
        assert_ne!(definition_with(Some(runtime("a", "1.31.1"))), definition_with(None));
    }

    #[test]
    fn a_definition_says_where_output_goes_unless_nowhere() {
        let definition_with = |stdout: &str| {
            let text = format!("commands: {{ run: x, setup: x, stdout: {stdout} }}");
            let experiment =
                spec::parse("x.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec").experiment;
            definition(&experiment, &experiment.models[0], &experiment.variants[0], &experiment.inputs[0], None)
        };
        assert_ne!(definition_with("null"), definition_with("pipe"));
        assert_ne!(definition_with("pipe"), definition_with("x.txt"));
    }

    #[test]
    fn an_id_reads_back() {
        let text = id("mlp", "b1", "fp32", "cpu");
        assert_eq!(text.parse::<CellId>().map(|id| id.to_string()), Ok(text));
        assert!("xyz".parse::<CellId>().is_err());
        assert!("+123456789abcdef".parse::<CellId>().is_err());
    }

    #[test]
    fn only_settings_that_differ_from_the_default_count() {
        let value = json!({"a": 1, "b": {"c": 2, "d": 3}});
        let default = json!({"a": 1, "b": {"c": 2, "d": 4}});
        assert_eq!(differing(&value, &default), json!({"b": {"d": 3}}));
        assert_eq!(sorted(&json!({"b": 1, "a": [{"d": 1, "c": 2}]})).to_string(), r#"{"a":[{"c":2,"d":1}],"b":1}"#);
    }
}
