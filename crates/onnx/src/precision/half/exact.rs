//! What stays in float32 for the sake of what reads it: numbers that are within the range of half precision, and lose there
//! what counts.
//!
//! Input: a graph and the element types of its values. Output: nodes by graph and index, with the reason.
//!
//! - What leads to `Sin` and `Cos` from positions: below 4,096 the steps of fp16 are 2 and those of bf16 16, so
//!   that rotary and sinusoidal embeddings of adjacent positions become one. An angle is one of positions where only
//!   arithmetic lies between it and whole numbers, constants and the graph's own inputs. That of an activation, as in
//!   `x + sin(a x)^2 / a`, is data, and is converted like other data.
//! - What leads from whole numbers to whole numbers again, or to a comparison: indices and sizes that are computed in
//!   float32 would be other ones from 2,048 on in fp16, and from 256 on in bf16.
//! - Products that are compared with a number near zero, where rounding makes zero of both.
//! - Products that are taken from sums of squares, as in distances, `|a|^2 + |b|^2 - 2 a b`: the difference is small. So is
//!   that of `mean(x^2) - mean(x)^2`.
//! - What leads to a logarithm from probabilities and quotients: zero and infinity have none.
//! - What makes the coordinates at which a picture is sampled, and boxes that are compared: half a pixel counts there.
//! - Sums of many numbers, and squares under another name, in addition to those of `kernels`.

use std::collections::{HashMap, HashSet};

use super::decide::Reason;
use super::value::constant;
use super::weights::{self, Range};
use super::{Half, kernels};
use crate::ElementType;
use crate::infer::Inferred;
use crate::proto::{GraphProto, NodeProto, TensorProto};

/// Operators that compute positions from positions, in addition to those that only move them.
const OF_POSITIONS: &[&str] = &[
    "Add",
    "Cast",
    "Ceil",
    "Clip",
    "Constant",
    "ConstantOfShape",
    "CumSum",
    "Div",
    "Einsum",
    "Exp",
    "Floor",
    "Gemm",
    "Log",
    "MatMul",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Pow",
    "Range",
    "Reciprocal",
    "Round",
    "Sqrt",
    "Sub",
    "Where",
];

const PRODUCTS: &[&str] = &["Conv", "Einsum", "Gemm", "MatMul"];

/// What lies between a product and a sum or comparison.
const ARITHMETIC: &[&str] = &["Add", "Div", "Mul", "Neg", "Sub"];

/// What lies between probabilities and their logarithm.
const OF_PROBABILITIES: &[&str] = &["Add", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Sub", "Where"];

/// What makes coordinates of what a network gives.
const OF_COORDINATES: &[&str] =
    &["Add", "Clip", "Div", "Exp", "Max", "Min", "Mul", "Neg", "Pow", "Sigmoid", "Sub", "Tanh"];

/// What keeps every number, and their order but for the shape.
const SAME_NUMBERS: &[&str] = &["Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"];

/// A threshold has no more elements.
const MOST_THRESHOLDS: usize = 4096;

/// What lies further away than so many nodes is not looked for, so that long chains of sums take no longer each.
const MOST_NODES: usize = 256;

/// The sum of so many numbers of 20, as large as most are between layers, is within the range of fp16.
const MOST_SUMMED: u64 = 3000;

/// A node: the number of its graph, in the order in which graphs are met, and its index there.
pub(super) type NodePosition = (usize, usize);

/// The nodes that stay, of a graph and of all that are inside its nodes.
pub(super) fn exact(graph: &GraphProto, types: &Inferred, target: Half) -> HashMap<NodePosition, Reason> {
    let mut search = Search { target, graphs: 0, found: HashMap::new() };
    search.graph(graph, types, None);
    search.found
}

struct Search {
    target: Half,
    /// How many graphs were met.
    graphs: usize,
    found: HashMap<NodePosition, Reason>,
}

impl Search {
    fn graph(&mut self, graph: &GraphProto, types: &Inferred, outer: Option<&Walk<'_>>) {
        let walk = Walk::new(graph, types, self.target, self.graphs, outer);
        self.graphs += 1;
        for (index, node) in graph.node.iter().enumerate() {
            if node.is_standard() {
                self.node(&walk, index);
            }
            for (inner, body) in node.graphs().enumerate() {
                let nothing = Inferred::default();
                self.graph(body, types.inner(index, inner).unwrap_or(&nothing), Some(&walk));
            }
        }
    }

    fn node(&mut self, walk: &Walk<'_>, index: usize) {
        let node = &walk.graph.node[index];
        let this = (walk.number, index);
        match node.op_type() {
            "Sin" | "Cos" | "Tan" => {
                let before = walk.positions(index).map(|(before, _)| before).unwrap_or_default();
                let angle = (!before.is_empty()).then_some(this);
                self.keep(before.into_iter().chain(angle), Reason::Angle);
            }
            "Cast" if node.output.iter().any(|name| walk.is_whole(name)) => {
                let before = walk.positions(index).filter(|(_, is_counted)| *is_counted);
                self.keep(before.into_iter().flat_map(|(before, _)| before), Reason::Whole);
            }
            "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => self.comparison(walk, index),
            "Add" | "Sub" | "Sum" => self.keep(walk.parts_of_difference(node), Reason::Difference),
            "Log" => {
                let read = node.input.first();
                let before =
                    read.and_then(|it| walk.chain(it, &["Div", "Sigmoid", "Softmax"], OF_PROBABILITIES, false));
                let logarithm = before.is_some().then_some(this);
                self.keep(before.into_iter().flatten().chain(logarithm), Reason::Logarithm);
            }
            "GridSample" | "RoiAlign" | "NonMaxSuppression" => {
                let input = usize::from(node.op_type() != "NonMaxSuppression");
                let before = node.input.get(input).and_then(|it| walk.chain(it, &[], OF_COORDINATES, false));
                self.keep(before.into_iter().flatten(), Reason::Coordinates);
            }
            "ReduceSum" | "ReduceL1"
                if self.target == Half::Fp16 && walk.summed(node).is_none_or(|summed| summed > MOST_SUMMED) =>
            {
                self.keep([this], Reason::Unsafe);
            }
            "Einsum" | "MatMul" | "Mul" if walk.is_hidden_square(node) => self.keep([this], Reason::Unsafe),
            _ => {}
        }
    }

    fn comparison(&mut self, walk: &Walk<'_>, index: usize) {
        let node = &walk.graph.node[index];
        let is_order = node.op_type() != "Equal";
        if is_order && node.input.iter().any(|name| walk.is_tiny(name)) {
            let products = node.input.iter().filter_map(|name| walk.chain(name, PRODUCTS, ARITHMETIC, false));
            self.keep(products.flatten(), Reason::Threshold);
        }
        if let Some((before, true)) = walk.positions(index) {
            let this = (!before.is_empty()).then_some((walk.number, index));
            self.keep(before.into_iter().chain(this), Reason::Whole);
        }
    }

    /// `Unsafe` replaces another reason, since only it concerns the nodes that read the result.
    fn keep(&mut self, positions: impl IntoIterator<Item = NodePosition>, reason: Reason) {
        for position in positions {
            let known = self.found.entry(position).or_insert(reason);
            if reason == Reason::Unsafe {
                *known = reason;
            }
        }
    }
}

/// One graph, and those around it.
struct Walk<'a> {
    graph: &'a GraphProto,
    types: &'a Inferred,
    target: Half,
    number: usize,
    outer: Option<&'a Walk<'a>>,
    /// The node that makes each value.
    makers: HashMap<&'a str, usize>,
    weights: HashMap<&'a str, &'a TensorProto>,
    inputs: HashSet<&'a str>,
    /// Of values that have the same numbers but for their signs and a factor, the first.
    same: HashMap<&'a str, &'a str>,
}

impl<'a> Walk<'a> {
    fn new(
        graph: &'a GraphProto,
        types: &'a Inferred,
        target: Half,
        number: usize,
        outer: Option<&'a Walk<'a>>,
    ) -> Self {
        let nodes = graph.node.iter().enumerate();
        let makers = nodes.flat_map(|(index, node)| node.output.iter().map(move |name| (name.as_str(), index)));
        let weights = graph.initializer.iter().map(|weight| (weight.name(), weight));
        let inputs = graph.input.iter().map(|input| input.name());
        Walk {
            graph,
            types,
            target,
            number,
            outer,
            makers: makers.collect(),
            weights: weights.collect(),
            inputs: inputs.collect(),
            same: same(graph),
        }
    }

    /// The graph that has a value: this one, or one around it.
    fn home(&self, name: &str) -> Option<&Walk<'a>> {
        let is_here = self.makers.contains_key(name) || self.inputs.contains(name) || self.weights.contains_key(name);
        if is_here { Some(self) } else { self.outer.and_then(|outer| outer.home(name)) }
    }

    /// The nodes that lead to what a node reads, if all of it comes from positions; and whether any of it is counted in
    /// whole numbers.
    fn positions(&self, index: usize) -> Option<(HashSet<NodePosition>, bool)> {
        let (mut seen, mut left) = (HashSet::new(), vec![(self, index)]);
        let mut is_counted = false;
        while let Some((walk, index)) = left.pop() {
            let node = &walk.graph.node[index];
            for (input, name) in node.input.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                let home = walk.home(name)?;
                match home.makers.get(name.as_str()) {
                    // Whole numbers are exact.
                    _ if home.is_whole(name) => is_counted |= home.is_count(name) && is_data(node, input),
                    Some(maker) if home.keeps_positions(*maker) => {
                        is_counted |= matches!(home.graph.node[*maker].op_type(), "CumSum" | "Range");
                        if seen.insert((home.number, *maker)) {
                            left.push((home, *maker));
                        }
                    }
                    None => {}
                    Some(_) => return None,
                }
            }
            if seen.len() > MOST_NODES {
                return None;
            }
        }
        Some((seen, is_counted))
    }

    /// Whether a whole number is one that the model is given or makes, and no constant.
    fn is_count(&self, name: &str) -> bool {
        let is_boolean = || self.types.value(name).is_some_and(|value| value.element == Some(ElementType::Bool));
        let is_constant = || self.makers.get(name).is_some_and(|maker| self.graph.node[*maker].op_type() == "Constant");
        !self.weights.contains_key(name) && !is_constant() && !is_boolean()
    }

    fn is_whole(&self, name: &str) -> bool {
        use ElementType::{Bfloat16, Float16, Float32, Float64};
        let element = self.types.value(name).and_then(|value| value.element.clone());
        element.is_some_and(|element| !matches!(element, Float32 | Float16 | Bfloat16 | Float64))
    }

    fn keeps_positions(&self, index: usize) -> bool {
        let node = &self.graph.node[index];
        node.is_standard() && (kernels::moves(node) || OF_POSITIONS.contains(&node.op_type()))
    }

    /// What decides a difference, among the operands of a sum that also has a sum of squares: products, and
    /// means that are squared.
    fn parts_of_difference(&self, node: &NodeProto) -> HashSet<NodePosition> {
        let sums = ["ReduceSum", "ReduceMean", "ReduceSumSquare"];
        let has_squares = |name: &String| self.chain(name, &sums, ARITHMETIC, true).is_some();
        if !node.input.iter().any(has_squares) {
            return HashSet::new();
        }
        let product = |name: &String| self.chain(name, PRODUCTS, ARITHMETIC, false);
        let mean = |name: &String| Some((self.number, self.squared_mean(name)?));
        let means = node.input.iter().filter_map(mean);
        node.input.iter().filter_map(product).flatten().chain(means).collect()
    }

    /// The mean or sum of which a value is the square.
    fn squared_mean(&self, name: &str) -> Option<usize> {
        let square = &self.graph.node[*self.makers.get(name)?];
        let squared = square.input.first().filter(|_| is_square(square))?;
        let mean = *self.makers.get(squared.as_str())?;
        matches!(self.graph.node[mean].op_type(), "ReduceMean" | "ReduceSum").then_some(mean)
    }

    /// How many numbers a reduction adds up at most, where that is known.
    fn summed(&self, node: &NodeProto) -> Option<u64> {
        let shape = self.types.value(node.input.first()?)?.shape.as_ref()?;
        let rank = shape.len() as i64;
        let of_input = || -> Option<Vec<i64>> {
            self.types.value(node.input.get(1)?)?.integers.as_ref()?.iter().copied().collect()
        };
        let axes = node.ints("axes").map(<[i64]>::to_vec).or_else(of_input).filter(|axes| !axes.is_empty());
        let axes = axes.unwrap_or_else(|| (0..rank).collect());
        axes.into_iter().try_fold(1_u64, |all, axis| {
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
            all.checked_mul((*shape.get(axis)?)?)
        })
    }

    /// Whether a node multiplies a value by itself under another name, or adds such products up: `|x| x`, `(x - m) (x - m)`
    /// with two nodes for the difference, `x` times `x` transposed.
    fn is_hidden_square(&self, node: &NodeProto) -> bool {
        let [left, right] = &node.input[..] else { return false };
        match node.op_type() {
            "Mul" => self.numbers(left) == self.numbers(right),
            _ => self.target == Half::Fp16 && self.unmoved(left) == self.unmoved(right),
        }
    }

    /// The first value that has the same numbers but for their signs and a factor.
    fn numbers<'n>(&'n self, name: &'n str) -> &'n str {
        self.same.get(name).copied().unwrap_or(name)
    }

    /// The same, through nodes that only change the shape.
    fn unmoved<'n>(&'n self, name: &'n str) -> &'n str {
        let mut name = self.numbers(name);
        for _ in 0..MOST_NODES {
            let maker = self.makers.get(name).map(|index| &self.graph.node[*index]);
            match maker.filter(|maker| SAME_NUMBERS.contains(&maker.op_type())).and_then(|maker| maker.input.first()) {
                Some(moved) => name = self.numbers(moved),
                None => break,
            }
        }
        name
    }

    /// Whether a value is a constant of numbers that are too small for the half precision.
    fn is_tiny(&self, name: &str) -> bool {
        let made = self.makers.get(name).and_then(|index| constant(&self.graph.node[*index]));
        let Some(tensor) = made.as_ref().or_else(|| self.weights.get(name).copied()) else { return false };
        tensor.element() == ElementType::Float32
            && tensor.elements().is_ok_and(|elements| elements <= MOST_THRESHOLDS)
            && weights::range(tensor, self.target).is_ok_and(|(range, _)| range == Range::Tiny)
    }

    /// The nodes from a value back to the first of the operators `ends`, through the operators `through` and those that
    /// only move; of squares where that is asked for. Without `ends` all the way.
    fn chain(&self, name: &str, ends: &[&str], through: &[&str], is_of_squares: bool) -> Option<Vec<NodePosition>> {
        let (mut seen, mut left) = (HashSet::new(), vec![name]);
        let mut found = ends.is_empty();
        while let Some(name) = left.pop() {
            let Some(index) = self.makers.get(name) else { continue };
            let node = &self.graph.node[*index];
            let is_end = ends.contains(&node.op_type());
            if is_end {
                let is_square =
                    |name: &String| self.makers.get(name.as_str()).is_some_and(|it| is_square(&self.graph.node[*it]));
                let squares = || node.op_type() == "ReduceSumSquare" || node.input.iter().take(1).any(is_square);
                found |= !is_of_squares || squares();
            }
            let goes_on = through.contains(&node.op_type()) || kernels::moves(node);
            let is_new = (is_end || goes_on) && seen.insert(*index);
            if is_new && goes_on {
                left.extend(node.input.iter().map(String::as_str));
            }
            if seen.len() > MOST_NODES {
                return None;
            }
        }
        found.then(|| seen.into_iter().map(|index| (self.number, index)).collect())
    }
}

/// Of values that have the same numbers but for their signs and a factor, the first: exporters write a difference twice where it
/// is squared.
fn same(graph: &GraphProto) -> HashMap<&str, &str> {
    let mut same: HashMap<&str, &str> = HashMap::new();
    // Exporters write a number once for each node that reads it.
    let mut numbers = HashMap::new();
    for weight in graph.initializer.iter().filter(|weight| weight.elements().is_ok_and(|count| count == 1)) {
        let nameless = format!("{:?}", TensorProto { name: None, ..weight.clone() });
        let first = *numbers.entry(nameless).or_insert(weight.name());
        if first != weight.name() {
            same.insert(weight.name(), first);
        }
    }
    let constants = graph.node.iter().filter(|node| node.op_type() == "Constant");
    let scalars =
        constants.filter(|node| constant(node).is_some_and(|tensor| tensor.elements().is_ok_and(|it| it == 1)));
    let single: HashSet<&str> =
        numbers.values().copied().chain(scalars.flat_map(|node| node.output.iter().map(String::as_str))).collect();
    let (mut made, mut bounded) = (HashMap::new(), HashMap::new());
    for node in graph.node.iter().filter(|node| node.is_standard()) {
        let [output] = &node.output[..] else { continue };
        let read = node.input.iter().map(String::as_str);
        let read: Vec<&str> = read.map(|name| same.get(name).copied().unwrap_or(name)).collect();
        let first = match node.op_type() {
            "Abs" | "Identity" | "Neg" => read.first().copied(),
            "Div" | "Mul" if read.get(1).is_some_and(|it| single.contains(it)) => read.first().copied(),
            "Mul" if read.first().is_some_and(|it| single.contains(it)) => read.get(1).copied(),
            // As large as its argument at most: `x sigmoid(x)`.
            "Mul" if read.len() == 2 && bounded.get(read[1]) == Some(&read[0]) => Some(read[0]),
            "Mul" if read.len() == 2 && bounded.get(read[0]) == Some(&read[1]) => Some(read[1]),
            "HardSigmoid" | "Sigmoid" | "Sign" | "Softsign" | "Tanh" => {
                bounded.extend(read.first().map(|argument| (output.as_str(), *argument)));
                None
            }
            operator @ ("Add" | "Div" | "Mul" | "ReduceMean" | "Sub") => {
                let key = (operator, read, format!("{:?}", node.attribute));
                Some(*made.entry(key).or_insert(output.as_str()))
            }
            _ => None,
        };
        if let Some(first) = first.filter(|first| first != output) {
            same.insert(output.as_str(), first);
        }
    }
    same
}

/// Whether an input is what a node computes with, and not where something is moved to.
fn is_data(node: &NodeProto, input: usize) -> bool {
    input == 0 || node.op_type() == "Concat" || !kernels::moves(node)
}

fn is_square(node: &NodeProto) -> bool {
    node.op_type() == "Pow" || kernels::is_square(node)
}
