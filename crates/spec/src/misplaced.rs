//! Sizes that stand in an entry of `inputs` itself, one level too high.
//!
//! A key of an entry that nobody knows may be a dimension or a slip of the pen, so it is refused; its value says what it
//! was meant for. Input: the entry. Output: the entry as it should be, for a hint.

use serde_json::{Map, Value};

use reading::yaml::scalar;

/// Keys as other tools call them, by the map in which they are written, and what is meant here.
const ELSEWHERE: [(&str, &str, &str); 12] = [
    (
        "",
        "iterations",
        "by default samples are taken until the median is known to 1 %; for a fixed number: `measure: { stop: { mode: samples, count: 100 } }`",
    ),
    (
        "",
        "warmup",
        "the warm-up adapts by default; for a fixed one: `measure: { warmup: { mode: samples, count: 10 } }`",
    ),
    ("", "repetitions", "use `runs` for fresh processes"),
    ("", "batch", "sizes go into `inputs`: `inputs: { batch: [1, 8] }`"),
    ("", "batch_size", "sizes go into `inputs`: `inputs: { batch: [1, 8] }`"),
    ("", "precision", "precisions are variants: `variants: [fp32, int8]`"),
    ("", "threads", "threads are variants: `variants: [{ threads: [1, 2] }]`"),
    ("inputs", "file", "an entry has a file: `inputs: [{ name: real, file: inputs.npz }]`"),
    ("inputs", "values", VALUES_OF_ENTRY),
    ("inputs", "range", VALUES_OF_ENTRY),
    (
        "variants",
        "file",
        "a file of your own is named by its model: `models: [{ path: a.onnx, files: { int8: b.onnx } }]`",
    ),
    (
        "variants",
        "path",
        "a file of your own is named by its model: `models: [{ path: a.onnx, files: { int8: b.onnx } }]`",
    ),
];

const VALUES_OF_ENTRY: &str = "an entry has values: `inputs: [{ name: real, values: { ids: { range: [0, 30522] } } }]`";

/// What is meant by a key of other tools; `top` is the top-level key around it, if any.
pub(super) fn elsewhere(top: &str, key: &str) -> Option<String> {
    let found = ELSEWHERE.iter().find(|(within, name, _)| *within == top && *name == key);
    found.map(|(_, _, meant)| (*meant).to_owned())
}

/// Where sizes by dimension stand.
const DIMENSIONS: &str = "dimensions";

/// What to write in place of `key`, which the entry does not know; `None` unless its value is a size or some.
pub(super) fn hint(entry: &Value, key: &str, known: &[&str]) -> Option<String> {
    let entry = entry.as_object()?;
    match entry.get(key)? {
        size if size.is_u64() => {
            let own = entry.get(DIMENSIONS).and_then(Value::as_object).into_iter().flatten();
            let misplaced = entry.iter().filter(|(key, value)| value.is_u64() && !known.contains(&key.as_str()));
            let sizes: Vec<String> =
                own.chain(misplaced).map(|(dimension, size)| format!("{}: {size}", scalar(dimension))).collect();
            let name = name(entry).unwrap_or_else(|| format!("{}{size}", if key == "batch" { "b" } else { key }));
            let sizes = sizes.join(", ");
            Some(format!(
                "sizes go below `{DIMENSIONS}`: `- {{ name: {}, {DIMENSIONS}: {{ {sizes} }} }}`",
                scalar(&name)
            ))
        }
        Value::Array(sizes) if !sizes.is_empty() && sizes.iter().all(Value::is_u64) => {
            let list = Value::from(sizes.clone()).to_string().replace(',', ", ");
            Some(if key == "batch" {
                format!("an entry has one size of each dimension; to multiply, write `inputs: {{ batch: {list} }}`")
            } else {
                format!("a tensor's shape goes below `shapes`: `shapes: {{ {}: {list} }}`", scalar(key))
            })
        }
        _ => None,
    }
}

fn name(entry: &Map<String, Value>) -> Option<String> {
    entry.get("name")?.as_str().map(str::to_owned)
}
