//! What stays in float32 for the sake of what reads it: numbers that are within the range of half precision, and lose there
//! what counts.
//!
//! Input: a graph and the element types of its values. Output: nodes by their places, with the reason.
//!
//! - What leads to `Sin` and `Cos` from positions: below 4,096 the steps of fp16 are 2 and those of bf16 16, so
//!   that rotary and sinusoidal embeddings of neighbouring positions become one. An angle is one of positions where arithmetic alone lies
//!   between it and whole numbers, constants and the graph's own inputs. That of an activation, as in `x + sin(a x)^2 / a`, is
//!   data, and is converted like other data.
//! - Products that are compared with a number near zero, where rounding makes zero of both.
//! - Products that are taken from sums of squares, as in distances, `|a|^2 + |b|^2 - 2 a b`: the difference is small.

use std::collections::{HashMap, HashSet};

use super::decide::Reason;
use super::value::constant;
use super::weights::{self, Range};
use super::{Half, kernels};
use crate::ElementType;
use crate::infer::Inferred;
use crate::proto::{GraphProto, NodeProto, TensorProto};

/// What makes positions of positions, beside what only moves them.
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

/// A threshold has no more elements.
const MOST_THRESHOLDS: usize = 4096;

/// What lies further away than so many nodes is not looked for, so that long chains of sums take no longer each.
const MOST_NODES: usize = 256;

/// The nodes that stay, by their places.
pub(super) fn exact(graph: &GraphProto, types: &Inferred, target: Half) -> HashMap<usize, Reason> {
    let walk = Walk::new(graph, types, target);
    let mut found = HashMap::new();
    for (place, node) in graph.node.iter().enumerate().filter(|(_, node)| node.is_standard()) {
        match node.op_type() {
            "Sin" | "Cos" | "Tan" => {
                let before = walk.positions(place).into_iter().flatten();
                let mut before = before.peekable();
                if before.peek().is_some() {
                    found.insert(place, Reason::Angle);
                }
                found.extend(before.map(|place| (place, Reason::Angle)));
            }
            "Add" | "Sub" | "Sum" => {
                found.extend(walk.products_in_distance(node).into_iter().map(|place| (place, Reason::Difference)));
            }
            "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual"
                if node.input.iter().any(|name| walk.is_tiny(name)) =>
            {
                let products = node.input.iter().filter_map(|name| walk.chain(name, PRODUCTS, false)).flatten();
                found.extend(products.map(|place| (place, Reason::Threshold)));
            }
            _ => {}
        }
    }
    found
}

struct Walk<'a> {
    graph: &'a GraphProto,
    types: &'a Inferred,
    target: Half,
    /// The node that makes each value.
    makers: HashMap<&'a str, usize>,
    weights: HashMap<&'a str, &'a TensorProto>,
    inputs: HashSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a GraphProto, types: &'a Inferred, target: Half) -> Self {
        let nodes = graph.node.iter().enumerate();
        let makers = nodes.flat_map(|(place, node)| node.output.iter().map(move |name| (name.as_str(), place)));
        let weights = graph.initializer.iter().map(|weight| (weight.name(), weight));
        let inputs = graph.input.iter().map(|input| input.name());
        Walk { graph, types, target, makers: makers.collect(), weights: weights.collect(), inputs: inputs.collect() }
    }

    /// The nodes that lead to what a node reads, if all of it comes from positions.
    fn positions(&self, place: usize) -> Option<HashSet<usize>> {
        let (mut seen, mut left) = (HashSet::new(), vec![place]);
        while let Some(place) = left.pop() {
            for name in self.graph.node[place].input.iter().filter(|name| !name.is_empty()) {
                match self.makers.get(name.as_str()) {
                    // Whole numbers are exact.
                    _ if self.is_whole(name) => {}
                    Some(maker) if self.keeps_positions(*maker) => {
                        if seen.insert(*maker) {
                            left.push(*maker);
                        }
                    }
                    None if self.inputs.contains(name.as_str()) || self.weights.contains_key(name.as_str()) => {}
                    _ => return None,
                }
            }
            if seen.len() > MOST_NODES {
                return None;
            }
        }
        Some(seen)
    }

    fn is_whole(&self, name: &str) -> bool {
        use ElementType::{Bfloat16, Float16, Float32, Float64};
        let element = self.types.value(name).and_then(|value| value.element.clone());
        element.is_some_and(|element| !matches!(element, Float32 | Float16 | Bfloat16 | Float64))
    }

    fn keeps_positions(&self, place: usize) -> bool {
        let node = &self.graph.node[place];
        node.is_standard() && (kernels::moves(node) || OF_POSITIONS.contains(&node.op_type()))
    }

    /// The products among the operands of a sum that has a sum of squares among the others.
    fn products_in_distance(&self, node: &NodeProto) -> HashSet<usize> {
        let has_squares =
            |name: &String| self.chain(name, &["ReduceSum", "ReduceMean", "ReduceSumSquare"], true).is_some();
        if !node.input.iter().any(has_squares) {
            return HashSet::new();
        }
        let product = |name: &String| self.chain(name, PRODUCTS, false);
        node.input.iter().filter_map(product).flatten().collect()
    }

    /// Whether a value is a constant of numbers that are too small for the half precision.
    fn is_tiny(&self, name: &str) -> bool {
        let made = self.makers.get(name).and_then(|place| constant(&self.graph.node[*place]));
        let Some(tensor) = made.as_ref().or_else(|| self.weights.get(name).copied()) else { return false };
        tensor.element() == ElementType::Float32
            && tensor.elements().is_ok_and(|elements| elements <= MOST_THRESHOLDS)
            && weights::range(tensor, self.target).is_ok_and(|(range, _)| range == Range::Tiny)
    }

    /// The nodes from a value back to the first of these operators, through what moves, scales or adds; of squares where that
    /// is asked for.
    fn chain(&self, name: &str, ends: &[&str], is_of_squares: bool) -> Option<Vec<usize>> {
        let (mut seen, mut left) = (HashSet::new(), vec![name]);
        let mut found = false;
        while let Some(name) = left.pop() {
            let Some(place) = self.makers.get(name) else { continue };
            let node = &self.graph.node[*place];
            let is_end = ends.contains(&node.op_type());
            if is_end {
                let is_square =
                    |name: &String| self.makers.get(name.as_str()).is_some_and(|it| is_square(&self.graph.node[*it]));
                let squares = || node.op_type() == "ReduceSumSquare" || node.input.iter().take(1).any(is_square);
                found |= !is_of_squares || squares();
            }
            let goes_on = matches!(node.op_type(), "Add" | "Sub" | "Mul" | "Neg" | "Div") || kernels::moves(node);
            let is_new = (is_end || goes_on) && seen.insert(*place);
            if is_new && goes_on {
                left.extend(node.input.iter().map(String::as_str));
            }
            if seen.len() > MOST_NODES {
                return None;
            }
        }
        found.then(|| seen.into_iter().collect())
    }
}

fn is_square(node: &NodeProto) -> bool {
    node.op_type() == "Pow" || kernels::is_square(node)
}
