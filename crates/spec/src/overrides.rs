//! `--set key=value`: changes to the document before anything is checked.
//!
//! Input: the tree and one argument such as `variants.fp16.threads=2`. Output: the changed tree, in which the new value
//! points into the argument; or what is wrong with the argument. Keys are separated by dots; entries of lists go by
//! name; the value is YAML. A shorthand on the way becomes the map that it is short for. Deliberately absent: checks of
//! the value, which is validated with the rest.

use std::path::Path;

use serde_json::Value;

use super::document::{Content, Entry, Node, Scalar, ScalarKind};
use super::expand::variants;
use super::problem::{Problem, Sources, Span};
use super::wording::PLANNED_PRECISIONS;
use super::{coerce, files, modes, schema, yaml};
use base::name::fitting_name;
use experiment::Precision;
use experiment::is_glob;
use reading::nearest::suggestion;

/// How the argument is shown, so that the user recognises it.
const FLAG: &str = "--set ";

/// Applies one argument. What is wrong leaves the tree usable for further checks.
pub(super) fn apply(root: &mut Node, sources: &mut Sources, folder: &Path, argument: &str) -> Vec<Problem> {
    let source = sources.add("command line", &format!("{FLAG}{argument}"));
    let span = |start: usize, end: usize| Span { source, start: FLAG.len() + start, end: FLAG.len() + end };
    let Some(equals) = argument.find('=') else {
        let problem = sources.problem(span(0, argument.len()), "this is not `key=value`");
        return vec![problem.with_hint("write for example `--set runs=20`")];
    };
    let mut start = 0;
    let mut segments = Vec::new();
    for text in argument[..equals].split('.') {
        segments.push(Segment { text, span: span(start, start + text.len()) });
        start += text.len() + 1;
    }
    if let Some(empty) = segments.iter().find(|segment| segment.text.is_empty()) {
        let problem = sources.problem(empty.span, "a key is missing here");
        return vec![problem.with_hint("write for example `--set runs=20`")];
    }
    let (value, mut problems) = match yaml::parse(sources, source, FLAG.len() + equals + 1) {
        Ok(parsed) => parsed,
        Err(problem) => return vec![problem],
    };
    let design = root.get("matrix").and_then(|matrix| matrix.get("design"));
    let is_product = design.is_none_or(|design| design.as_text() == Some("product"));
    let setting = Setting { sources, folder, is_product, value };
    problems.extend(setting.set(root, &schema::top(), &[], &segments).err());
    problems
}

/// A part of the key between dots.
#[derive(Clone, Copy)]
struct Segment<'a> {
    text: &'a str,
    span: Span,
}

/// The segments as one key, for keys that have dots themselves.
fn joined(segments: &[Segment<'_>]) -> (String, Span) {
    let text = segments.iter().map(|segment| segment.text).collect::<Vec<_>>().join(".");
    let span = segments.iter().map(|segment| segment.span).reduce(|first, last| Span { end: last.end, ..first });
    (text, span.unwrap_or(Span { source: 0, start: 0, end: 0 }))
}

struct Setting<'a> {
    sources: &'a Sources,
    folder: &'a Path,
    /// Lists of an entry multiply.
    is_product: bool,
    value: Node,
}

impl Setting<'_> {
    /// Sets the value below `node`, to which the keys of `path` led and whose shapes the schema gives.
    fn set(
        &self,
        node: &mut Node,
        shapes: &[&'static Value],
        path: &[&str],
        segments: &[Segment<'_>],
    ) -> Result<(), Problem> {
        let Some(first) = segments.first() else {
            *node = self.value.clone();
            if let Content::Map(entries) = &mut node.content {
                let keys: Vec<(String, Span)> = entries.iter().map(|it| (it.key.clone(), it.key_span)).collect();
                keys.iter().for_each(|(key, span)| modes::imply(entries, shapes, key, *span));
            }
            return Ok(());
        };
        let entry_shapes = schema::items(shapes);
        let has_names = schema::known_keys(&entry_shapes).contains(&"name");
        let is_key_here = match &node.content {
            Content::Map(_) => schema::is_open(shapes) || schema::known_keys(shapes).contains(&first.text),
            Content::List(_) => false,
            Content::Scalar(_) => schema::is_open(shapes),
        };
        if has_names && !is_key_here {
            return self.set_entry(node, &entry_shapes, path, segments);
        }
        if !shapes.iter().any(|shape| schema::admits(shape, "object")) {
            let name = path.last().copied().unwrap_or("the file");
            let mut problem = self.sources.problem(first.span, format!("`{name}` has no keys of its own"));
            if matches!(node.content, Content::List(_)) || !entry_shapes.is_empty() {
                problem = problem
                    .with_hint(format!("its entries have no names; set the whole list: `{}=[...]`", path.join(".")));
            }
            return Err(problem);
        }
        self.set_key(node, shapes, path, segments)
    }

    fn set_key(
        &self,
        node: &mut Node,
        shapes: &[&'static Value],
        path: &[&str],
        segments: &[Segment<'_>],
    ) -> Result<(), Problem> {
        let known = schema::known_keys(shapes);
        let first = segments[0];
        let has_keys = |name: &str| schema::property(shapes, name).iter().any(|shape| schema::admits(shape, "object"));
        let (key, key_span, rest) = if known.contains(&first.text) {
            (first.text.to_owned(), first.span, &segments[1..])
        } else if schema::is_open(shapes) && has_keys(first.text) {
            // A name of the author's, which may have dots itself.
            let is_there = |parts: &usize| node.get(&joined(&segments[..*parts]).0).is_some();
            let parts = (1..=segments.len()).rev().find(is_there).unwrap_or(1);
            let (key, span) = joined(&segments[..parts]);
            (key, span, &segments[parts..])
        } else if schema::is_open(shapes) {
            let (key, span) = joined(segments);
            (key, span, &segments[segments.len()..])
        } else {
            let within = path.last().map(|parent| format!(" in `{parent}`")).unwrap_or_default();
            let problem = self.sources.problem(first.span, format!("unknown key `{}`{within}", first.text));
            return Err(match suggestion(first.text, known, "key") {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        };
        let entries = entries_of(node, path, key_span);
        let inner = schema::property(shapes, &key);
        let mut path = path.to_vec();
        path.push(&key);
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == key) {
            if rest.is_empty() {
                entry.key_span = key_span;
            }
            self.set(&mut entry.value, &inner, &path, rest)?;
        } else {
            let mut value = match schema::default_of(shapes, &key) {
                Some(default @ Value::Array(_)) => from_json(key_span, default),
                _ => Node { span: key_span, content: null() },
            };
            self.set(&mut value, &inner, &path, rest)?;
            entries.push(Entry { key: key.clone(), key_span, value });
        }
        modes::imply(entries, shapes, &key, key_span);
        Ok(())
    }

    fn set_entry(
        &self,
        node: &mut Node,
        shapes: &[&'static Value],
        path: &[&str],
        segments: &[Segment<'_>],
    ) -> Result<(), Problem> {
        let list = path.last().copied().unwrap_or_default();
        let nodes = nodes_of(node);
        let mut found = find_entry(nodes, list, segments);
        if found.is_none() && list == "models" {
            self.expand_files(nodes);
            found = find_entry(nodes, list, segments);
        }
        if found.is_none() && list == "variants" && self.is_product {
            *nodes = nodes.drain(..).flat_map(multiplied).collect();
            found = find_entry(nodes, list, segments);
        }
        let Some((index, rest)) = found else {
            let kind = list.strip_suffix('s').unwrap_or(list);
            let names: Vec<String> = nodes.iter().filter_map(|node| entry_name(node, list)).collect();
            let first = segments[0];
            let problem = self.sources.problem(first.span, format!("no {kind} is named `{}`", first.text));
            if names.is_empty() {
                return Err(problem.with_hint(format!("there is none; set the whole list: `{}=[...]`", path.join("."))));
            }
            return Err(match suggestion(first.text, names.iter().map(String::as_str).collect::<Vec<_>>(), kind) {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
        };
        let entry = &mut nodes[index];
        if !rest.is_empty() {
            lengthen(entry, list);
        }
        let name = segments[segments.len() - rest.len() - 1].text;
        let path: Vec<&str> = path.iter().copied().chain([name]).collect();
        self.set(entry, shapes, &path, rest)
    }

    /// Replaces folders and globs by their files, so that one of these can be named.
    fn expand_files(&self, nodes: &mut Vec<Node>) {
        let many = |node: &Node| node.as_text().is_some_and(|text| is_glob(text) || self.folder.join(text).is_dir());
        let mut expanded = Vec::with_capacity(nodes.len());
        for node in nodes.drain(..) {
            let files = node.as_text().filter(|_| many(&node)).and_then(|text| files::find(self.folder, text).ok());
            match files {
                Some(files) => {
                    expanded.extend(files.iter().map(|file| Node::text(node.span, file.display().to_string())));
                }
                None => expanded.push(node),
            }
        }
        *nodes = expanded;
    }
}

fn null() -> Content {
    Content::Scalar(Scalar { text: String::new(), kind: ScalarKind::Null })
}

/// The entries of a map; a shorthand in its place becomes the map that it is short for, anything else an empty one.
fn entries_of<'a>(node: &'a mut Node, path: &[&str], span: Span) -> &'a mut Vec<Entry> {
    if !matches!(node.content, Content::Map(_)) {
        let old = node.clone();
        *node = match path {
            [.., "threads"] if old.as_text().is_some() => Node::map(span, vec![("intra", old)]),
            [.., "margin"] if old.as_text().is_some() => Node::map(span, vec![("default", old)]),
            _ => Node::map(span, Vec::new()),
        };
    }
    match &mut node.content {
        Content::Map(entries) => entries,
        _ => unreachable!("the content was made a map above"),
    }
}

/// The nodes of a list; a single value in its place becomes a list of one.
fn nodes_of(node: &mut Node) -> &mut Vec<Node> {
    if !matches!(node.content, Content::List(_)) {
        let span = node.span;
        let old = std::mem::replace(node, Node { span, content: Content::List(Vec::new()) });
        if !old.is_null()
            && let Content::List(nodes) = &mut node.content
        {
            nodes.push(old);
        }
    }
    match &mut node.content {
        Content::List(nodes) => nodes,
        _ => unreachable!("the content was made a list above"),
    }
}

/// The variants that the lists of an entry multiply to, each as an entry of its own with the name that `plan` prints; any
/// other entry as it is.
fn multiplied(node: Node) -> Vec<Node> {
    /// As they multiply, the last fastest.
    const LISTS: [&str; 4] = ["precision", "threads", "graph_optimization", "execution"];
    const MOST: u128 = 1000;
    let whole =
        Node::map(node.span, vec![("variants", Node { span: node.span, content: Content::List(vec![node.clone()]) })]);
    let form = serde_json::from_value(coerce::to_json(&whole)["variants"][0].take());
    let names = form.map(|form| variants::names(&form, MOST)).unwrap_or_default();
    let mut made = vec![node.clone()];
    for key in LISTS {
        let Some(Content::List(values)) = node.get(key).map(|value| &value.content).filter(|_| names.len() > 1) else {
            continue;
        };
        made = made.iter().flat_map(|entry| values.iter().map(|value| with(entry, key, value))).collect();
    }
    if names.len() < 2 || names.len() != made.len() {
        return vec![node];
    }
    let named = |(entry, name): (Node, String)| with(&entry, "name", &Node::text(node.span, name));
    made.into_iter().zip(names).map(named).collect()
}

/// A map with this value of a key.
fn with(node: &Node, key: &str, value: &Node) -> Node {
    let mut node = node.clone();
    if let Content::Map(entries) = &mut node.content {
        match entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value.clone(),
            None => entries.push(Entry { key: key.to_owned(), key_span: value.span, value: value.clone() }),
        }
    }
    node
}

/// The entry with the longest name that the segments begin with (names have dots), and the segments after it.
fn find_entry<'a, 's>(nodes: &[Node], list: &str, segments: &'a [Segment<'s>]) -> Option<(usize, &'a [Segment<'s>])> {
    (1..=segments.len()).rev().find_map(|length| {
        let (name, _) = joined(&segments[..length]);
        let index = nodes.iter().position(|node| entry_name(node, list).as_deref() == Some(&name))?;
        Some((index, &segments[length..]))
    })
}

/// What an entry goes by: its name, else the stem of its path, else itself.
fn entry_name(node: &Node, list: &str) -> Option<String> {
    let stem = |path: &str| Some(fitting_name(&Path::new(path).file_stem()?.to_string_lossy()));
    if let Some(name) = node.get("name") {
        return name.as_text().map(str::to_owned);
    }
    match (list, node.get("path").unwrap_or(node).as_text()?) {
        ("models", path) => stem(path),
        (_, text) => Some(text.to_owned()),
    }
}

/// Makes a map of an entry that is a bare text.
fn lengthen(entry: &mut Node, list: &str) {
    let Some(text) = entry.as_text().map(str::to_owned) else { return };
    let span = entry.span;
    let value = || Node::text(span, text.clone());
    let looks_like_path = text.contains(['/', '\\']) || text.ends_with(".onnx");
    *entry = match list {
        "models" if looks_like_path => Node::map(span, vec![("path", value())]),
        "variants" if Precision::of_name(&text).is_some() || PLANNED_PRECISIONS.contains(&text.as_str()) => {
            Node::map(span, vec![("name", value()), ("precision", value())])
        }
        _ => Node::map(span, vec![("name", value())]),
    };
}

fn from_json(span: Span, value: &Value) -> Node {
    match value {
        Value::Array(values) => {
            Node { span, content: Content::List(values.iter().map(|value| from_json(span, value)).collect()) }
        }
        Value::String(text) => Node::text(span, text.as_str()),
        other => Node::text(span, other.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::coerce;

    const SPEC: &str = "models: [models/mlp.onnx, { name: v1.2, path: b.onnx }]\n\
                        variants: [fp32, { name: a, threads: 4 }, { name: a.b }]\n\
                        matrix: { exclude: [{ model: mlp }] }\n";

    fn apply_all(spec: &str, arguments: &[&str]) -> (Value, Vec<Problem>) {
        let mut sources = Sources::new("x.yaml", spec);
        let (mut root, _) = yaml::parse(&sources, 0, 0).unwrap();
        let apply = |argument: &&str| apply(&mut root, &mut sources, Path::new(""), argument);
        let problems = arguments.iter().flat_map(apply).collect();
        (coerce::to_json(&root), problems)
    }

    fn set(argument: &str) -> Value {
        let (json, problems) = apply_all(SPEC, &[argument]);
        assert!(problems.is_empty(), "{}", problems[0]);
        json
    }

    fn error(argument: &str) -> (String, Option<String>, usize) {
        let problem = apply_all(SPEC, &[argument]).1.remove(0);
        assert_eq!(&*problem.file, "command line");
        (problem.message.clone(), problem.hint.clone(), problem.column)
    }

    #[test]
    fn keys_are_set_and_made() {
        assert_eq!(set("runs=3")["runs"], 3);
        assert_eq!(set("measure.stop.relative=2%")["measure"]["stop"]["relative"], "2%");
        assert_eq!(set("devices=[cpu, cuda]")["devices"][1], "cuda");
        assert_eq!(set("inputs.batch=[1, 2]")["inputs"]["batch"][1], 2);
        assert_eq!(set("name=1.30")["name"], "1.30");
        assert_eq!(set("description=a=b")["description"], "a=b");
    }

    #[test]
    fn variants_of_lists_go_by_the_names_that_plan_prints() {
        let variants = |text: &str, argument: &str| {
            let (json, problems) = apply_all(&format!("models: m\nvariants: {text}\n"), &[argument]);
            assert!(problems.is_empty(), "{}", problems[0]);
            json["variants"].clone()
        };
        let short = variants("{ precision: [fp32, int8] }", "variants.int8.threads=2");
        let wanted = serde_json::json!([
            { "precision": "fp32", "name": "fp32" }, { "precision": "int8", "name": "int8", "threads": 2 }
        ]);
        assert_eq!(short, wanted);
        let both = variants(
            "[a, { name: b, precision: [fp32, int8], threads: [1, 2] }]",
            "variants.b-int8-t2.execution=sequential",
        );
        assert_eq!((both[0].clone(), both.as_array().unwrap().len()), ("a".into(), 5));
        let last =
            serde_json::json!({ "name": "b-int8-t2", "precision": "int8", "threads": 2, "execution": "sequential" });
        assert_eq!(both[4], last);
        let problems = apply_all("models: m\nvariants: { precision: [fp32, int8] }\n", &["variants.fp64.threads=2"]).1;
        assert_eq!(problems[0].message, "no variant is named `fp64`");
        // Entries of their own would be a product.
        let text =
            "models: m\nmatrix: { design: one_at_a_time }\nvariants: { precision: [fp32, int8], threads: [1, 2] }\n";
        let problems = apply_all(text, &["variants.fp32-t2.execution=sequential"]).1;
        assert_eq!(problems[0].message, "no variant is named `fp32-t2`");
    }

    #[test]
    fn entries_go_by_name_and_shorthands_become_maps() {
        let variants = |argument: &str| set(argument)["variants"].clone();
        assert_eq!(
            variants("variants.fp32.threads=2")[0],
            serde_json::json!({ "name": "fp32", "precision": "fp32", "threads": 2 })
        );
        assert_eq!(variants("variants.a.threads.inter=2")[1]["threads"], serde_json::json!({ "intra": 4, "inter": 2 }));
        assert_eq!(variants("variants.a.b.threads=2")[2]["threads"], 2);
        assert_eq!(variants("variants.a.session.session.x.y=0")[1]["session"]["session.x.y"], "0");
        assert_eq!(variants("variants.fp32={ name: other }")[0]["name"], "other");
        let models = |argument: &str| set(argument)["models"].clone();
        assert_eq!(models("models.mlp.sha256=ab")[0], serde_json::json!({ "path": "models/mlp.onnx", "sha256": "ab" }));
        assert_eq!(models("models.v1.2.path=c.onnx")[1]["path"], "c.onnx");
    }

    #[test]
    fn names_of_maps_have_keys_below_them() {
        let set = |argument: &str| {
            let (json, problems) =
                apply_all("models: m\nfidelity: { a.b: { rel: 1% } }\nmetrics: { tok: {} }\n", &[argument]);
            assert!(problems.is_empty(), "{}", problems[0]);
            json
        };
        assert_eq!(set("metrics.tok.better=lower")["metrics"]["tok"]["better"], "lower");
        assert_eq!(set("metrics.new.unit=ms")["metrics"]["new"]["unit"], "ms");
        assert_eq!(set("fidelity.int8.cosine=0.9")["fidelity"]["int8"]["cosine"], 0.9);
        assert_eq!(set("fidelity.a.b.rel=2%")["fidelity"]["a.b"]["rel"], "2%");
    }

    #[test]
    fn what_is_not_written_is_made_from_the_default() {
        let (json, problems) = apply_all("models: a.onnx", &["variants.fp32.threads=2", "backend.mock.median=1ms"]);
        assert!(problems.is_empty());
        assert_eq!(json["variants"][0]["threads"], 2);
        assert_eq!(json["backend"]["mock"]["median"], "1ms");
        let (json, _) = apply_all("models: dir/a.onnx", &["models.a.name=b"]);
        assert_eq!(json["models"][0], serde_json::json!({ "path": "dir/a.onnx", "name": "b" }));
    }

    #[test]
    fn files_of_a_glob_go_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mlp.onnx"), "model").unwrap();
        let mut sources = Sources::new("x.yaml", "models: '*.onnx'");
        let (mut root, _) = yaml::parse(&sources, 0, 0).unwrap();
        assert!(apply(&mut root, &mut sources, folder.path(), "models.mlp.name=big").is_empty());
        assert_eq!(coerce::to_json(&root)["models"][0]["name"], "big");
    }

    #[test]
    fn errors_point_into_the_argument() {
        let hint = |text: &str| Some(text.to_owned());
        assert_eq!(error("rnus=3"), ("unknown key `rnus`".to_owned(), hint("did you mean `runs`?"), 7));
        assert_eq!(
            error("variants.a.thread=3"),
            ("unknown key `thread` in `a`".to_owned(), hint("did you mean `threads`?"), 18)
        );
        assert_eq!(
            error("variants.fp23.threads=3"),
            ("no variant is named `fp23`".to_owned(), hint("did you mean `fp32`?"), 16)
        );
        assert_eq!(error("runs").0, "this is not `key=value`");
        assert_eq!(error("=3").0, "a key is missing here");
        assert_eq!(error("measure..x=3").0, "a key is missing here");
        assert_eq!(error("seed.x=3").0, "`seed` has no keys of its own");
        assert_eq!(
            error("matrix.exclude.model=x").1,
            hint("its entries have no names; set the whole list: `matrix.exclude=[...]`")
        );
        assert_eq!(error("devices=[cpu").0, "this `[` is never closed");
    }
}
