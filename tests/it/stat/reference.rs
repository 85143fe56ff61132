//! docs/reference/stat.md has every name of the JSON output, and no other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{json, lines, project_with_vectors};

/// The documented names of every shape, each with its own shape: `### shape`, then rows of name and shape.
fn documented_shapes() -> BTreeMap<String, BTreeMap<String, String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/stat.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut shapes = BTreeMap::new();
    for section in text.split("\n### ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        let body = body.split("\n## ").next().unwrap();
        let rows = body.lines().filter_map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            Some((name.to_owned(), cells.next()?.to_owned()))
        });
        shapes.insert(title.trim().to_owned(), rows.collect());
    }
    shapes
}

/// Holds an output against the documented shapes.
struct Reference {
    shapes: BTreeMap<String, BTreeMap<String, String>>,
    /// Names that had a value other than null, as `shape.name`.
    seen: BTreeSet<String>,
}

impl Reference {
    /// An object of this shape: its names are exactly the documented ones, but for those that depend on a kind.
    fn object(&mut self, shape: &str, value: &Value) {
        let names = self.shapes.get(shape).unwrap_or_else(|| panic!("no shape `{shape}`")).clone();
        let found = value.as_object().unwrap_or_else(|| panic!("{shape} is {value}"));
        for name in found.keys() {
            assert!(names.contains_key(name), "`{name}` of {shape} is not in docs/reference/stat.md");
        }
        for (name, inner) in &names {
            let Some(value) = found.get(name) else {
                assert!(inner.contains(", if "), "`{name}` of {shape} is documented and not there");
                continue;
            };
            self.value(inner, value, &format!("{shape}.{name}"));
        }
    }

    fn value(&mut self, shape: &str, value: &Value, path: &str) {
        let shape = shape.split(", if ").next().unwrap();
        let (shape, may_be_null) = shape.strip_suffix(" or null").map_or((shape, false), |shape| (shape, true));
        if value.is_null() {
            assert!(may_be_null, "{path} is null");
            return;
        }
        self.seen.insert(path.to_owned());
        if let Some(inner) = shape.strip_prefix("array of ") {
            for item in value.as_array().unwrap_or_else(|| panic!("{path} is {value}")) {
                self.value(inner, item, path);
            }
            return;
        }
        match shape.strip_prefix('[').and_then(|link| link.split_once(']')) {
            Some((name, target)) => {
                assert_eq!(target, format!("(#{name})"), "{path}");
                self.object(name, value);
            }
            None => assert!(is_plain(shape, value), "{path} is {value}, not {shape}"),
        }
    }
}

fn is_plain(shape: &str, value: &Value) -> bool {
    match shape {
        "number" => value.is_number(),
        "text" => value.is_string(),
        "boolean" => value.is_boolean(),
        "map to number" => value.as_object().is_some_and(|map| map.values().all(Value::is_number)),
        _ => false,
    }
}

#[test]
fn the_reference_has_every_name_and_no_other() {
    let project = project_with_vectors();
    let wide: Vec<f64> = (0..12).map(|k| 10.0 + f64::from(k % 5)).collect();
    project.write("wide.txt", &format!("time\n{}", lines(&wide.iter().copied().collect::<Value>())));
    project.write("near.txt", &lines(&wide.iter().rev().map(|value| value * 1.01).collect::<Value>()));
    let mild: Vec<f64> = (0..12).map(|k| 10.0 + 0.25 * f64::from(k % 5)).collect();
    project.write("mild.txt", &lines(&mild.iter().copied().collect::<Value>()));
    project.write("mild-too.txt", &lines(&mild.iter().rev().map(|value| value * 1.003).collect::<Value>()));
    project.write("few.txt", "1\n2\n");
    let long: Vec<Vec<f64>> =
        (0..6).map(|run| (0..120).map(|k| 10.0 + f64::from((k * 37 + run * 11) % 97) / 100.0).collect()).collect();
    project.write("long.json", &serde_json::to_string(&long).unwrap());
    project.write("long.txt", &lines(&serde_json::json!(long[0])));
    let drifting: Vec<f64> = long[0].iter().enumerate().map(|(index, value)| value + 0.1 * index as f64).collect();
    project.write("drifting.txt", &lines(&serde_json::json!(drifting)));
    let mut reference = Reference { shapes: documented_shapes(), seen: BTreeSet::new() };
    let lines = |name: &str, machine: &str| {
        let lines = (0..6).map(|run| format!("{name} 1 {} ns/op\n", 10 + run));
        format!("cpu: {machine}\nBenchmarkBoth 1 5 ns/op\n{}--- FAIL: BenchmarkBad\n", lines.collect::<String>())
    };
    project.write("old.txt", &lines("BenchmarkOld", "c"));
    project.write("new.txt", &lines("BenchmarkNew", "d"));
    let commands: [&[&str]; 10] = [
        &["old.txt", "new.txt", "--fail-on", "worse"],
        &["wide.txt", "--unit", "ms"],
        &["autocorrelated.txt"],
        &["long.json"],
        &["a.json", "b.json"],
        &["small_no_ties-a.txt", "small_no_ties-b.txt"],
        &["wide.txt", "near.txt", "--paired"],
        &["drifting.txt", "long.txt", "--paired"],
        &["mild.txt", "mild-too.txt", "--interleaved"],
        &["few.txt", "few.txt"],
    ];
    for arguments in commands {
        reference.object("findings", &json(&project, arguments));
    }
    let documented: BTreeSet<String> = reference
        .shapes
        .iter()
        .flat_map(|(shape, names)| names.keys().map(move |name| format!("{shape}.{name}")))
        .collect();
    let unseen: Vec<&String> = documented.difference(&reference.seen).collect();
    assert!(unseen.is_empty(), "documented, and null in every output: {unseen:?}");
}
