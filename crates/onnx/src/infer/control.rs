//! Nodes with graphs inside: `If`, `Loop`, `Scan`, and whatever else holds some.
//!
//! Input: a node with its scope. Output: what is true of its outputs whichever branch is taken and however often a body
//! runs, and what is known inside. Deliberately absent: `Scan` of opset 8, whose inputs have a batch dimension.

use super::engine::{Engine, Found, Scope, Values};
use super::shape::{Shape, Size, axis_at};
use super::site::Site;
use super::{Inferred, Value};
use crate::ElementType;
use crate::proto::{GraphProto, NodeProto};

/// Bodies within bodies from this depth on are walked once: each walk of an outer one would walk them again.
const DEEPEST_REPEATED: usize = 3;

/// What a node with graphs gives; `None` where it has none.
pub(super) fn infer(engine: &Engine<'_>, site: &Site<'_>, scope: &Scope<'_>) -> Option<Found> {
    let graphs: Vec<&GraphProto> = site.node.graphs().collect();
    let body = *graphs.first()?;
    let Some(deeper) = engine.deeper() else { return Some(Found::default()) };
    let found = match (site.node.is_standard(), site.node.op_type()) {
        (true, "If") => branches(&deeper, site, &graphs, scope),
        (true, "Loop") => repeated(&deeper, site, body, scope),
        (true, "Scan") if site.opset >= 9 => scan(&deeper, site, body, scope),
        _ => {
            let inner = graphs.iter().map(|graph| deeper.graph(graph, Values::new(), Some(scope)));
            Found { outputs: Vec::new(), inner: inner.enumerate().collect() }
        }
    };
    Some(found)
}

/// `If`: what both branches agree on, or the one that is taken where the condition is a constant.
fn branches(engine: &Engine<'_>, site: &Site<'_>, graphs: &[&GraphProto], scope: &Scope<'_>) -> Found {
    let inner: Vec<_> = graphs.iter().map(|graph| engine.graph(graph, Values::new(), Some(scope))).collect();
    let results = |index: usize| -> Vec<Value> {
        let value = |name: &str| inner[index].value(name).or_else(|| scope.value(name)).cloned().unwrap_or_default();
        graphs[index].output.iter().map(|output| value(output.name())).collect()
    };
    let outputs = match taken(site.node, site.value(0)).filter(|index| *index < graphs.len()) {
        Some(index) => results(index),
        None => {
            let common =
                |left: Vec<Value>, right: Vec<Value>| left.iter().zip(&right).map(|(a, b)| a.common(b)).collect();
            (0..graphs.len()).map(results).reduce(common).unwrap_or_default()
        }
    };
    Found { outputs, inner: inner.into_iter().enumerate().collect() }
}

/// Which of its graphs an `If` runs, among `NodeProto::graphs`; `None` where its condition is not known, and for other nodes.
pub(crate) fn taken(node: &NodeProto, condition: Option<&Value>) -> Option<usize> {
    let holds = condition?.integers.as_ref()?.first().copied().flatten()? != 0;
    let name = if holds { "then_branch" } else { "else_branch" };
    let mut graphs = node.attribute.iter().filter(|attribute| attribute.g.is_some());
    graphs.position(|graph| graph.name() == name).filter(|_| node.operator() == "If")
}

/// `Loop`: inputs are the number of repetitions, a condition, and values that each repetition changes.
fn repeated(engine: &Engine<'_>, site: &Site<'_>, body: &GraphProto, scope: &Scope<'_>) -> Found {
    let starts_true = !site.has(1) || site.scalar(1) == Some(1);
    let condition = Value::of_scalar(ElementType::Bool, starts_true.then_some(1));
    let fixed = vec![Value::of_scalar(ElementType::Int64, None), condition];
    let carried: Vec<Value> = (2..site.input_count()).map(|index| carried(site, index)).collect();
    let count = carried.len();
    let (inner, mut results) = fixed_point(engine, body, scope, fixed, carried, vec![], 1);
    let inputs: Vec<Option<&Value>> = (0..site.input_count()).map(|index| site.value(index)).collect();
    let runs = runs(site.node, body, &inputs, &inner);
    let mut outputs: Vec<Value> = results.drain(1.min(results.len())..).collect();
    for scanned in outputs.iter_mut().skip(count) {
        *scanned = stacked(scanned, 0, runs);
    }
    Found { outputs, inner: vec![(0, inner)] }
}

/// How often the body of a `Loop` or a `Scan` runs, where that is a constant.
pub(crate) fn runs(node: &NodeProto, body: &GraphProto, inputs: &[Option<&Value>], inner: &Inferred) -> Option<u64> {
    let scalar = |value: Option<&Value>| value?.integers.as_ref()?.first().copied().flatten();
    let input = |index: usize| inputs.get(index).copied().flatten();
    if node.op_type() == "Scan" {
        let sequences = usize::try_from(node.int("num_scan_inputs")?).ok()?;
        let shape = input(inputs.len().checked_sub(sequences)?)?.shape.as_deref()?;
        let axis = node.ints("scan_input_axes").and_then(|axes| axes.first().copied()).unwrap_or(0);
        return shape[axis_at(axis, shape.len())?];
    }
    // The condition is the body's first result. Where it was true and stays true, the body runs as often as it may.
    let has_condition = node.input.get(1).is_some_and(|name| !name.is_empty());
    let starts_true = !has_condition || scalar(input(1)) == Some(1);
    let stays_true = body.output.first().and_then(|output| scalar(inner.value(output.name()))) == Some(1);
    let limit = scalar(input(0)).filter(|_| starts_true && stays_true)?;
    u64::try_from(limit.max(0)).ok()
}

/// `Scan`: states first, then sequences that are taken apart along an axis.
fn scan(engine: &Engine<'_>, site: &Site<'_>, body: &GraphProto, scope: &Scope<'_>) -> Found {
    let sequences = usize::try_from(site.int_or("num_scan_inputs", 0)).unwrap_or(0).min(site.input_count());
    let states = site.input_count() - sequences;
    let axes = |name: &str, index: usize| site.node.ints(name).and_then(|axes| axes.get(index).copied()).unwrap_or(0);
    let inputs: Vec<Option<&Value>> = (0..site.input_count()).map(|index| site.value(index)).collect();
    let mut elements = Vec::new();
    for index in 0..sequences {
        let sequence = site.value(states + index).cloned().unwrap_or_default();
        let axis = sequence.shape.as_ref().and_then(|shape| axis_at(axes("scan_input_axes", index), shape.len()));
        let mut shape = sequence.shape.filter(|_| axis.is_some());
        if let (Some(shape), Some(axis)) = (shape.as_mut(), axis) {
            shape.remove(axis);
        }
        elements.push(Value::of(sequence.element, shape));
    }
    let carried = (0..states).map(|index| carried(site, index)).collect();
    let (inner, mut outputs) = fixed_point(engine, body, scope, vec![], carried, elements, 0);
    let runs = runs(site.node, body, &inputs, &inner);
    for (index, scanned) in outputs.iter_mut().skip(states).enumerate() {
        *scanned = stacked(scanned, axes("scan_output_axes", index), runs);
    }
    Found { outputs, inner: vec![(0, inner)] }
}

/// An input as the first repetition finds it. Its elements change, so they are not known.
fn carried(site: &Site<'_>, index: usize) -> Value {
    site.value(index).map(Value::without_content).unwrap_or_default()
}

/// Walks a body until what is known of the values that it changes is true of every repetition. `before` and `after` are
/// the body's inputs around these, and the same results stand behind the first `skipped`.
fn fixed_point(
    engine: &Engine<'_>,
    body: &GraphProto,
    scope: &Scope<'_>,
    before: Vec<Value>,
    mut carried: Vec<Value>,
    after: Vec<Value>,
    skipped: usize,
) -> (Inferred, Vec<Value>) {
    // A size that one walk changes is unknown in the second; a rank that the second changes is unknown in the third.
    let walks = if engine.depth() < DEEPEST_REPEATED { 3 } else { 1 };
    let mut walk = 1;
    loop {
        if walk == walks {
            carried = carried.iter().map(|value| Value::of(value.element.clone(), None)).collect();
        }
        let names = body.input.iter().map(|input| input.name().to_owned());
        let given = names.zip(before.iter().chain(&carried).chain(&after).cloned()).collect();
        let inferred = engine.graph(body, given, Some(scope));
        let value = |name: &str| inferred.value(name).or_else(|| scope.value(name)).cloned().unwrap_or_default();
        let mut results: Vec<Value> = body.output.iter().map(|output| value(output.name())).collect();
        let carried_results = results.iter().skip(skipped).take(carried.len());
        let shared: Vec<Value> = carried_results.zip(&carried).map(|(after, before)| after.common(before)).collect();
        if walk == walks || shared.iter().zip(&carried).all(|(shared, before)| shared.shape == before.shape) {
            for (result, shared) in results.iter_mut().skip(skipped).zip(&carried) {
                *result = Value::of(result.element.clone().or_else(|| shared.element.clone()), shared.shape.clone());
            }
            return (inferred, results);
        }
        let missing = carried.iter().skip(shared.len()).map(|value| Value::of(value.element.clone(), None));
        carried = shared.iter().cloned().chain(missing).collect();
        walk += 1;
    }
}

/// A value that every repetition adds to an output along a new dimension.
fn stacked(value: &Value, axis: i64, runs: Size) -> Value {
    let shape = value.shape.as_ref().and_then(|shape| {
        let axis = axis_at(axis, shape.len() + 1)?;
        let mut stacked: Shape = shape.clone();
        stacked.insert(axis, runs);
        Some(stacked)
    });
    Value::of(value.element.clone(), shape)
}
