//! Which nodes compute in 8 bits, and which values are stored in 8 bits for them.
//!
//! Input: the nodes of a prepared graph. Output: a [`Plan`]. Deliberately absent: ranges, weights and new nodes.
//!
//! Convolutions and products with constant weights start regions of 8 bits. Elementwise nodes, pools and nodes that only
//! move values join where all that they read comes out of a region and something in a region reads them, so that a region
//! has no gaps and ends where float32 begins. The module above says why that is the best choice.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::TensorError;
use crate::precision::edit::Editor;
use crate::precision::keep::{ASKED, Keep};
use crate::precision::product::Product;
use crate::proto::NodeProto;

/// Why a convolution or product stays whose data have no range.
pub(super) const NO_RANGE: &str =
    "the range of what it reads or makes is not known: it is not finite or was not observed";

/// What a node does in 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A convolution: weights, and an output in 8 bits.
    Convolution,
    /// A matrix product: weights, and an output in 8 bits only where that is wanted.
    Product,
    /// Its output has a range of its own.
    Element,
    /// Its output has the range of its first input, value for value.
    Pass,
    /// `Relu` or `Clip`: the range of its output does its work.
    Activation,
}

/// Where the range of a value in 8 bits comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RangeOf {
    /// It has its own.
    Own,
    /// It has that of another value in 8 bits.
    Value(String),
}

/// What computes and what is stored in 8 bits.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// By index of the node; none computes in float32.
    pub(super) roles: Vec<Option<Role>>,
    /// Why convolutions and products stay, by index.
    pub(super) kept: BTreeMap<usize, String>,
    /// Values in 8 bits.
    pub(super) values: BTreeMap<String, RangeOf>,
    /// Those of them that come out of nodes in 8 bits: everyone reads what 8 bits made of them. Of all other values, a
    /// node that computes in float32 reads the exact one.
    pub(super) made: HashSet<String>,
}

impl Plan {
    /// The value whose range a value has; `None` if it is not in 8 bits.
    pub(super) fn source<'a>(&'a self, value: &'a str) -> Option<&'a str> {
        let mut value = value;
        // A chain is no longer than the map; the bound is for graphs that are no graphs.
        for _ in 0..=self.values.len() {
            match self.values.get(value)? {
                RangeOf::Own => return Some(value),
                RangeOf::Value(other) => value = other,
            }
        }
        None
    }

    /// The values whose own ranges the plan needs, in alphabetical order.
    pub(super) fn sources(&self) -> BTreeSet<&str> {
        self.values.keys().filter_map(|value| self.source(value)).collect()
    }

    /// Decides. Values that are `unknown` have no range.
    ///
    /// # Errors
    ///
    /// A damaged tensor.
    pub(super) fn of(
        editor: &Editor,
        nodes: &[NodeProto],
        keep: &Keep,
        unknown: &HashSet<String>,
    ) -> Result<Self, TensorError> {
        let mut plan = Plan::default();
        for (index, node) in nodes.iter().enumerate() {
            let candidate = if keep.keeps(node) { Candidate::Stays(ASKED) } else { candidate(editor, node)? };
            let is_unknown = |role| data_inputs(node, role).chain([first_output(node)]).any(|it| unknown.contains(it));
            let role = match candidate {
                Candidate::Is(role) if is_unknown(role) => {
                    if matches!(role, Role::Convolution | Role::Product) {
                        plan.kept.insert(index, NO_RANGE.to_owned());
                    }
                    None
                }
                Candidate::Is(role) => Some(role),
                Candidate::Stays(reason) => {
                    plan.kept.insert(index, reason.to_owned());
                    None
                }
                Candidate::Other => None,
            };
            plan.roles.push(role);
        }
        let links = Links::of(editor, nodes);
        while plan.drop_gaps(&links, nodes) {}
        plan.choose_values(&links, nodes);
        Ok(plan)
    }

    /// Takes out nodes that do not belong to a region; whether there were any.
    fn drop_gaps(&mut self, links: &Links, nodes: &[NodeProto]) -> bool {
        let mut dropped = false;
        for (index, node) in nodes.iter().enumerate() {
            let Some(role) = self.roles[index] else { continue };
            if matches!(role, Role::Convolution | Role::Product) {
                continue;
            }
            let is_fed = data_inputs(node, role).all(|input| links.maker(input).is_some_and(|maker| self.is_in(maker)));
            let is_read = links.readers(first_output(node)).iter().any(|reader| self.is_in(*reader));
            // What bounds a convolution or product is its range, and costs nothing; another node would compute in 8 bits for it
            // alone.
            let bounds = |input| {
                let maker = links.maker(input).and_then(|maker| self.roles[maker]);
                matches!(maker, Some(Role::Convolution | Role::Product | Role::Activation))
            };
            let ends = role == Role::Activation && data_inputs(node, role).all(bounds);
            if !is_fed || !(is_read || ends) {
                self.roles[index] = None;
                dropped = true;
            }
        }
        dropped
    }

    fn is_in(&self, node: usize) -> bool {
        self.roles[node].is_some()
    }

    fn choose_values(&mut self, links: &Links, nodes: &[NodeProto]) {
        for (index, node) in nodes.iter().enumerate() {
            let Some(role) = self.roles[index] else { continue };
            if role != Role::Activation || self.absorbing(links, index, node).is_none() {
                for input in data_inputs(node, role) {
                    self.values.entry(input.to_owned()).or_insert(RangeOf::Own);
                }
            }
        }
        for (index, node) in nodes.iter().enumerate() {
            let Some(role) = self.roles[index] else { continue };
            let output = first_output(node);
            if self.absorbed_by(links, index, node) {
                continue;
            }
            // A product may end in float32, and so may what only bounds a value.
            let begins = self.absorbing(links, index, node).unwrap_or(index);
            let may_end = matches!(self.roles[begins], Some(Role::Product | Role::Activation));
            if may_end && !self.values.contains_key(output) {
                continue;
            }
            let input = node.input.first().filter(|_| role == Role::Pass);
            let range = input.map_or(RangeOf::Own, |input| RangeOf::Value(input.clone()));
            self.values.insert(output.to_owned(), range);
            self.made.insert(output.to_owned());
        }
    }

    /// The node that takes a `Relu` or `Clip` in, because nothing else reads what is between them.
    fn absorbing(&self, links: &Links, index: usize, node: &NodeProto) -> Option<usize> {
        let input = node.input.first().filter(|_| self.roles[index] == Some(Role::Activation))?;
        let maker = links.maker(input).filter(|maker| self.is_in(*maker))?;
        let is_alone = links.readers(input).len() == 1 && !links.outputs.contains(input);
        let gives_range = matches!(self.roles[maker]?, Role::Convolution | Role::Product | Role::Element);
        (is_alone && gives_range).then_some(maker)
    }

    /// Whether the only reader of the node's output is a `Relu` or `Clip` that it takes in.
    fn absorbed_by(&self, links: &Links, index: usize, node: &NodeProto) -> bool {
        let [reader] = links.readers(first_output(node)) else { return false };
        self.absorbing(links, *reader, links.nodes[*reader]) == Some(index)
    }
}

/// Who makes and who reads a value.
struct Links<'a> {
    nodes: Vec<&'a NodeProto>,
    makers: HashMap<&'a str, usize>,
    readers: HashMap<&'a str, Vec<usize>>,
    outputs: HashSet<String>,
}

impl<'a> Links<'a> {
    fn of(editor: &Editor, nodes: &'a [NodeProto]) -> Self {
        let mut links = Links {
            nodes: nodes.iter().collect(),
            makers: HashMap::new(),
            readers: HashMap::new(),
            outputs: editor.outputs(),
        };
        for (index, node) in nodes.iter().enumerate() {
            node.output.iter().for_each(|output| {
                links.makers.insert(output, index);
            });
            for input in node.reads() {
                links.readers.entry(input).or_default().push(index);
            }
        }
        links
    }

    fn maker(&self, value: &str) -> Option<usize> {
        self.makers.get(value).copied()
    }

    fn readers(&self, value: &str) -> &[usize] {
        self.readers.get(value).map_or(&[], Vec::as_slice)
    }
}

fn first_output(node: &NodeProto) -> &str {
    node.output.first().map_or("", String::as_str)
}

/// The inputs that are activations.
pub(super) fn data_inputs(node: &NodeProto, role: Role) -> impl Iterator<Item = &str> {
    let all = if role == Role::Element { node.input.len() } else { 1 };
    node.input.iter().take(all).map(String::as_str)
}

/// Whether a pooling skips positions: ONNX Runtime's pooling in 8 bits has no such form and fails to load.
fn is_dilated(node: &NodeProto) -> bool {
    node.ints("dilations").is_some_and(|dilations| dilations.iter().any(|dilation| *dilation != 1))
}

enum Candidate {
    Is(Role),
    Stays(&'static str),
    Other,
}

/// What a node could be, by itself.
fn candidate(editor: &Editor, node: &NodeProto) -> Result<Candidate, TensorError> {
    let is_float =
        |name: &String| editor.tensor(name).is_some_and(|tensor| tensor.element() == crate::ElementType::Float32);
    let has_constants = || node.input.iter().any(|input| editor.weight(input).is_some() || input.is_empty());
    if !node.is_standard() {
        return Ok(if node.op_type() == "Attention" {
            Candidate::Stays("it is a fused operator; quantise the model before fusion")
        } else {
            Candidate::Other
        });
    }
    Ok(match node.op_type() {
        "Conv" => match node.input.get(1) {
            Some(weight) if is_float(weight) => match node.input.get(2).filter(|bias| !bias.is_empty()) {
                Some(bias) if !is_float(bias) => Candidate::Stays("its bias is not a float32 constant"),
                _ => Candidate::Is(Role::Convolution),
            },
            _ => Candidate::Stays("its weight is not a float32 constant"),
        },
        "MatMul" | "Gemm" => match Product::of(node) {
            Some(product) => match product.right_operand(editor)? {
                Ok(_) => match product.stays_float(editor)? {
                    Some(reason) => Candidate::Stays(reason),
                    None => Candidate::Is(Role::Product),
                },
                Err(reason) => Candidate::Stays(reason),
            },
            None => Candidate::Stays("it does not have two inputs"),
        },
        "ConvTranspose" | "LSTM" | "GRU" | "RNN" | "Einsum" => {
            Candidate::Stays("ONNX Runtime has no operator for it with calibrated ranges")
        }
        "Add" | "Mul" if node.input.len() == 2 && !has_constants() => Candidate::Is(Role::Element),
        "Concat" | "Sigmoid" | "LeakyRelu" | "AveragePool" | "GlobalAveragePool"
            if !has_constants() && !is_dilated(node) =>
        {
            Candidate::Is(Role::Element)
        }
        "Relu" | "Clip" => Candidate::Is(Role::Activation),
        "MaxPool" | "Dropout" if node.output.iter().skip(1).all(|output| editor.readers(output) == 0) => {
            Candidate::Is(Role::Pass)
        }
        "Reshape" | "Flatten" | "Transpose" | "Squeeze" | "Unsqueeze" | "Identity" | "Slice" | "DepthToSpace"
        | "SpaceToDepth" => Candidate::Is(Role::Pass),
        "Resize" if node.text("mode").is_none_or(|mode| mode == "nearest") => Candidate::Is(Role::Pass),
        _ => Candidate::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{GraphProto, TensorProto, ValueInfoProto};

    fn node(text: &str) -> NodeProto {
        let (output, call) = text.split_once(" = ").unwrap_or_default();
        let mut words = call.split(' ');
        let operator = words.next().unwrap_or_default();
        let inputs: Vec<&str> = words.collect();
        NodeProto::of(operator, output, &inputs, &[output], vec![])
    }

    /// `8 bits: made values / read values`, and the operators in 8 bits.
    fn plan(lines: &[&str]) -> (String, String) {
        let nodes: Vec<NodeProto> = lines.iter().map(|line| node(line)).collect();
        let last = nodes.last().map(|node| first_output(node).to_owned());
        let graph = GraphProto {
            node: nodes,
            initializer: vec![
                TensorProto::of_floats("w", &[1, 1, 1, 1], &[1.0]),
                TensorProto::of_floats("m", &[1, 1], &[1.0]),
            ],
            output: vec![ValueInfoProto { name: last, ..Default::default() }],
            ..Default::default()
        };
        let (editor, nodes) = Editor::new(graph);
        let Ok(plan) = Plan::of(&editor, &nodes, &Keep::default(), &HashSet::new()) else { return Default::default() };
        let values = plan.values.iter().map(|(value, range)| match range {
            RangeOf::Own => value.clone(),
            RangeOf::Value(other) => format!("{value}={other}"),
        });
        let roles = nodes.iter().zip(&plan.roles).filter(|(_, role)| role.is_some()).map(|(node, _)| node.op_type());
        (values.collect::<Vec<_>>().join(" "), roles.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_relu_is_the_range_of_what_is_in_front_of_it() {
        let (values, roles) = plan(&["a = Conv x w", "b = Relu a", "c = Conv b w"]);
        assert_eq!((values.as_str(), roles.as_str()), ("b c x", "Conv Relu Conv"));
        let (values, _) = plan(&["a = Conv x w", "b = Relu a", "c = Add a b", "d = Conv c w"]);
        assert_eq!(values, "a b c d x");
    }

    #[test]
    fn values_that_are_only_moved_share_a_range() {
        let lines = ["a = Conv x w", "b = MaxPool a", "c = Transpose b", "d = Conv c w"];
        assert_eq!(plan(&lines).0, "a b=a c=b d x");
    }

    #[test]
    fn regions_end_where_float_begins() {
        // A residual block of a transformer: nothing but the products computes in 8 bits.
        let lines = ["n = LayerNormalization x s", "a = MatMul n m", "b = Add a x", "o = LayerNormalization b s"];
        assert_eq!(plan(&lines), ("n".to_owned(), "MatMul".to_owned()));
        let lines = ["a = Conv x w", "b = GlobalAveragePool a", "c = Softmax b"];
        assert_eq!(plan(&lines), ("a x".to_owned(), "Conv".to_owned()));
        let lines = ["a = Conv x w", "b = GlobalAveragePool a", "c = Flatten b", "d = Gemm c m"];
        assert_eq!(plan(&lines), ("a b c=b x".to_owned(), "Conv GlobalAveragePool Flatten Gemm".to_owned()));
    }

    #[test]
    fn nothing_is_stored_in_8_bits_for_a_bound_alone() {
        let lines = ["a = MatMul x m", "s = Sigmoid a", "b = Clip s", "c = Log b"];
        assert_eq!(plan(&lines), ("x".to_owned(), "MatMul".to_owned()));
        let lines = ["a = Conv x w", "b = Conv x w", "s = Add a b", "r = Relu s", "c = Softmax r"];
        assert_eq!(plan(&lines), ("a b x".to_owned(), "Conv Conv".to_owned()));
        let lines = ["a = Conv x w", "r = Relu a", "c = Softmax r"];
        assert_eq!(plan(&lines), ("r x".to_owned(), "Conv Relu".to_owned()));
    }

    #[test]
    fn a_swish_stays_in_its_region() {
        let lines = ["a = Conv x w", "s = Sigmoid a", "b = Mul a s", "c = Conv b w"];
        assert_eq!(plan(&lines), ("a b c s x".to_owned(), "Conv Sigmoid Mul Conv".to_owned()));
        let lines = ["a = Conv x w", "s = HardSigmoid a", "b = Mul a s", "c = Conv b w"];
        assert_eq!(plan(&lines), ("a b c x".to_owned(), "Conv Conv".to_owned()));
    }
}
