//! The sum over the nodes of a model.
//!
//! Input: graphs and what is known of their values. Output: [`Cost`]. Deliberately absent: what a single node multiplies
//! (`macs`).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::macs::{Known, macs};
use super::moved::Moved;
use super::{Branch, Cost, OperatorCost};
use crate::ElementType;
use crate::functions::{DEEPEST, Key};
use crate::infer::{Inferred, Value, runs, taken};
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};

/// Labels of nodes with an unknown cost that are kept.
const MOST_LABELS: usize = 8;

/// Operators that read a shape at most, or give the same bytes another one.
const STILL: [&str; 8] = ["Constant", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze"];

/// Operators that read no more of their first input than they give: of an embedding's table the rows that are looked up.
const PICKING: [&str; 4] = ["Gather", "GatherElements", "GatherND", "Slice"];

/// Operators that give other values each time.
const RANDOM: [&str; 7] =
    ["Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

pub(super) fn of_model(model: &ModelProto, inferred: &Inferred) -> Cost {
    let functions = model.functions.iter().map(|function| (function.key(), function)).collect();
    let mut totals = Totals::default();
    if let Some(graph) = model.graph.as_ref() {
        totals.graph(graph, &Scope::of(inferred, None), &functions);
    }
    totals.into_cost()
}

type Functions<'m> = HashMap<Key<'m>, &'m FunctionProto>;

/// What is known of names in a graph and around it.
struct Scope<'a> {
    inferred: &'a Inferred,
    /// Names whose values are the same in every inference.
    constants: HashSet<&'a str>,
    outer: Option<&'a Scope<'a>>,
    depth: usize,
}

impl<'a> Scope<'a> {
    fn of(inferred: &'a Inferred, outer: Option<&'a Scope<'a>>) -> Self {
        let depth = outer.map_or(0, |outer| outer.depth + 1);
        Scope { inferred, constants: HashSet::new(), outer, depth }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.inferred.value(name).or_else(|| self.outer?.value(name))
    }

    fn is_constant(&self, name: &str) -> bool {
        self.constants.contains(name) || self.outer.is_some_and(|outer| outer.is_constant(name))
    }

    fn known(&self, node: &'a NodeProto) -> Known<'a> {
        let values = |names: &'a [String]| names.iter().map(|name| self.value(name)).collect();
        Known { node, inputs: values(&node.input), outputs: values(&node.output) }
    }
}

#[derive(Default)]
struct Totals {
    operators: BTreeMap<String, OperatorCost>,
    unknown: Vec<String>,
    unknown_nodes: u64,
    branches: Vec<Branch>,
    products: Products,
}

/// What the nodes that multiply read and write.
#[derive(Default)]
struct Products {
    moved: Moved,
    /// A node's is not known.
    is_unknown: bool,
    /// Weights that are counted.
    weights: HashSet<String>,
}

impl Products {
    fn add(&mut self, known: &Known<'_>, scope: &Scope<'_>) {
        let is_weight = |name: &str| scope.is_constant(name);
        match Moved::of(known, is_weight, &mut self.weights) {
            Some(moved) => self.moved = self.moved.and(moved),
            None => self.is_unknown = true,
        }
    }

    /// Those of a body that runs so often: its weights are read once at least.
    fn merge(&mut self, inside: Products, times: u64) {
        self.is_unknown |= inside.is_unknown;
        self.moved = self.moved.and(inside.moved.repeated(times));
    }
}

impl Totals {
    fn graph<'a>(&mut self, graph: &'a GraphProto, scope: &Scope<'a>, functions: &Functions<'a>) {
        let stored = graph.initializer.iter().map(|tensor| tensor.name());
        let sparse = graph.sparse_initializer.iter().map(|sparse| sparse.name());
        self.nodes(&graph.node, stored.chain(sparse).collect(), scope, functions);
    }

    fn nodes<'a>(
        &mut self,
        nodes: &'a [NodeProto],
        constants: HashSet<&'a str>,
        scope: &Scope<'a>,
        functions: &Functions<'a>,
    ) {
        let mut scope = Scope { constants, ..*scope };
        for (index, node) in nodes.iter().enumerate() {
            let function = functions.get(&node.called()).copied();
            if function.is_some() || node.graphs().next().is_some() {
                self.container(index, node, function, &scope, functions);
                continue;
            }
            let given = || node.input.iter().filter(|name| !name.is_empty());
            let is_constant = given().all(|name| scope.is_constant(name))
                && (given().next().is_some() || node.op_type() == "Constant")
                && !RANDOM.contains(&node.op_type());
            let known = scope.known(node);
            let macs = if is_constant { Some(0) } else { macs(&known) };
            self.add(node, macs, bytes(&known));
            if macs != Some(0) {
                self.products.add(&known, &scope);
            }
            if is_constant {
                scope.constants.extend(node.output.iter().map(String::as_str));
            }
        }
    }

    fn add(&mut self, node: &NodeProto, macs: Option<u64>, bytes: Option<u64>) {
        if macs.is_none() || bytes.is_none() {
            self.note_unknown(node);
        }
        let operator = node.operator();
        let none = OperatorCost { operator: operator.clone(), nodes: 0, macs: Some(0), bytes: Some(0) };
        let sum = self.operators.entry(operator).or_insert(none);
        sum.nodes = sum.nodes.saturating_add(1);
        sum.macs = add(sum.macs, macs);
        sum.bytes = add(sum.bytes, bytes);
    }

    fn note_unknown(&mut self, node: &NodeProto) {
        self.unknown_nodes = self.unknown_nodes.saturating_add(1);
        if self.unknown.len() < MOST_LABELS {
            self.unknown.push(node.label());
        }
    }

    /// A node that stands for the nodes inside of it.
    fn container<'a>(
        &mut self,
        index: usize,
        node: &'a NodeProto,
        function: Option<&'a FunctionProto>,
        scope: &Scope<'a>,
        functions: &Functions<'a>,
    ) {
        let known = |graph: usize| scope.inferred.inner(index, graph).filter(|_| scope.depth < DEEPEST);
        let taken = taken(node, node.input.first().and_then(|name| scope.value(name)));
        let inside: Option<Vec<(Totals, &Inferred)>> = match function {
            Some(function) => known(0).map(|inferred| {
                // A function sees nothing of the graph around its call.
                let body = Scope { depth: scope.depth + 1, ..Scope::of(inferred, None) };
                let mut totals = Totals::default();
                totals.nodes(&function.node, HashSet::new(), &body, functions);
                vec![(totals, inferred)]
            }),
            None => {
                let graphs = node.graphs().enumerate().map(|(graph_index, graph)| {
                    let inferred = known(graph_index)?;
                    let mut totals = Totals::default();
                    totals.graph(graph, &Scope::of(inferred, Some(scope)), functions);
                    Some((totals, inferred))
                });
                graphs.collect()
            }
        };
        let Some(inside) = inside else {
            self.products.is_unknown = true;
            return self.add(node, None, Some(0));
        };
        self.add(node, Some(0), Some(0));
        let times = match (node.graphs().next(), inside.first()) {
            (Some(body), Some((_, inferred))) if matches!(node.operator().as_str(), "Loop" | "Scan") => {
                runs(node, body, &scope.known(node).inputs, inferred)
            }
            _ => Some(1),
        };
        if times.is_none() {
            self.note_unknown(node);
        }
        // Of several graphs one runs.
        let mut all: Vec<Totals> = inside.into_iter().map(|(totals, _)| totals).collect();
        let heavier = |best: usize, index: usize| if all[index].outweighs(&all[best]) { index } else { best };
        let Some(index) = taken.filter(|index| *index < all.len()).or_else(|| (0..all.len()).reduce(heavier)) else {
            return;
        };
        let macs = |totals: &Totals| totals.total(|operator| operator.macs);
        let is_choice = all.iter().any(|other| macs(other) != macs(&all[index]));
        if is_choice && self.branches.len() < MOST_LABELS {
            let graph = node.attribute.iter().filter(|attribute| attribute.g.is_some()).nth(index);
            let branch = graph.map(|graph| graph.name().to_owned()).unwrap_or_default();
            self.branches.push(Branch { node: node.label(), branch, is_taken: taken.is_some() });
        }
        self.merge(all.swap_remove(index), times.unwrap_or(1));
    }

    fn total(&self, part: impl Fn(&OperatorCost) -> Option<u64>) -> Option<u64> {
        self.operators.values().try_fold(0_u64, |sum, operator| sum.checked_add(part(operator)?))
    }

    /// Whether it costs more than the other; unknown is more than anything.
    fn outweighs(&self, other: &Totals) -> bool {
        let weight = |totals: &Totals| {
            let (macs, bytes) = (totals.total(|operator| operator.macs), totals.total(|operator| operator.bytes));
            (macs.is_none(), macs, bytes.is_none(), bytes)
        };
        weight(self) > weight(other)
    }

    fn merge(&mut self, inside: Totals, times: u64) {
        for (name, cost) in inside.operators {
            let none = OperatorCost { operator: name.clone(), nodes: 0, macs: Some(0), bytes: Some(0) };
            let sum = self.operators.entry(name).or_insert(none);
            sum.nodes = sum.nodes.saturating_add(cost.nodes);
            sum.macs = add(sum.macs, cost.macs.and_then(|macs| macs.checked_mul(times)));
            sum.bytes = add(sum.bytes, cost.bytes.and_then(|bytes| bytes.checked_mul(times)));
        }
        self.products.merge(inside.products, times);
        self.unknown_nodes = self.unknown_nodes.saturating_add(inside.unknown_nodes);
        let room = |used: usize| MOST_LABELS.saturating_sub(used);
        self.unknown.extend(inside.unknown.into_iter().take(room(self.unknown.len())));
        self.branches.extend(inside.branches.into_iter().take(room(self.branches.len())));
    }

    fn into_cost(self) -> Cost {
        let (macs, bytes_moved) = (self.total(|operator| operator.macs), self.total(|operator| operator.bytes));
        let mut operators: Vec<OperatorCost> = self.operators.into_values().collect();
        // The map gave them by name, and sorting keeps the order of equals. Unknown first: it may be the most.
        operators.sort_by_key(|cost| std::cmp::Reverse((cost.macs.is_none(), cost.macs, cost.nodes)));
        let products = (!self.products.is_unknown).then_some(self.products.moved);
        let Totals { unknown, unknown_nodes, branches, .. } = self;
        Cost { macs, bytes_moved, products, unknown, unknown_nodes, branches, operators }
    }
}

fn add(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    left?.checked_add(right?)
}

/// Bytes of every distinct input and every output.
fn bytes(known: &Known<'_>) -> Option<u64> {
    let node = known.node;
    if node.is_standard() && STILL.contains(&node.op_type()) {
        return Some(0);
    }
    let mut seen = HashSet::new();
    let picks = node.is_standard() && PICKING.contains(&node.op_type());
    let given = known.outputs.first().copied().flatten().and_then(Value::elements).filter(|_| picks);
    let most = |name: &String| given.filter(|_| node.input.first() == Some(name)).unwrap_or(u64::MAX);
    let values = node.input.iter().zip(&known.inputs).chain(node.output.iter().zip(&known.outputs));
    values.filter(|(name, _)| !name.is_empty() && seen.insert(name.as_str())).try_fold(0_u64, |sum, (name, value)| {
        let value = (*value)?;
        let bits = value.elements()?.min(most(name)).checked_mul(bits(value.element.as_ref()?)?)?;
        sum.checked_add(bits.div_ceil(8))
    })
}

/// Bits of one element; `None` for texts and what is not a tensor.
fn bits(element: &ElementType) -> Option<u64> {
    let name = element.name();
    let narrow = match name {
        "int4" | "uint4" | "float4e2m1" => Some(4),
        "int2" | "uint2" => Some(2),
        "float6e2m3" | "float6e3m2" => Some(6),
        "complex64" => Some(64),
        "complex128" => Some(128),
        _ => name.starts_with("float8").then_some(8),
    };
    narrow.or_else(|| element.size_bytes()?.checked_mul(8))
}
