//! A graph that grows node by node, with its names, shapes and counts.
//!
//! Input: operators with their attributes, and recipes for weights. Output: a [`ModelProto`]. Shapes are those of one item
//! at the chosen or usual input, because multiply-accumulates are counted with them; in the model, what is dynamic has its name.
//! Deliberately absent: shape inference (each layer says its shape) and what the operators mean.

use std::collections::HashSet;

use super::Counts;
use super::moments::Moments;
use super::weights::{Recipe, channel_scales, draw};
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::signature::{Dimension, ElementType};
use statistics::random::key_seed;

/// The version of the file format that came with the operator set.
const IR_VERSION: i64 = 8;

/// The first operator set with LayerNormalization, which every runtime of the last years reads.
const OPSET: i64 = 17;

/// Prefix of operators of ONNX Runtime's own operator set.
const MICROSOFT: &str = "com.microsoft.";

/// A tensor in the graph, by its name.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// Its name, that of the node that makes it.
    pub(super) name: String,
    /// Its shape for one item at the chosen or usual input.
    pub(super) shape: Vec<u64>,
    /// What its channels are like, where that matters: behind a layer of a convolutional network.
    pub(super) channels: Vec<Moments>,
}

impl Value {
    fn of(name: &str, shape: &[u64]) -> Self {
        Value { name: name.to_owned(), shape: shape.to_vec(), channels: vec![] }
    }

    /// An optional input that is left out.
    pub(super) fn absent() -> Self {
        Value::of("", &[])
    }

    /// The same with channels that are known.
    pub(super) fn with_channels(self, channels: Vec<Moments>) -> Self {
        Value { channels, ..self }
    }
}

/// The graph so far.
pub(super) struct Builder {
    graph: GraphProto,
    seed: u64,
    most_rows: usize,
    constants: HashSet<String>,
    counts: Counts,
    has_empty: bool,
    opset: i64,
    uses_microsoft: bool,
}

impl Builder {
    /// An empty graph. Each weight has a stream of random numbers of its own, keyed by the graph's name and its own, so
    /// that a change of one layer leaves all other layers as they are. Only the first `most_rows` rows of each weight
    /// are drawn: a whole network is `usize::MAX`, and its dimensions alone are zero.
    pub(super) fn new(name: &str, seed: u64, most_rows: usize) -> Self {
        let graph = GraphProto { name: Some(name.to_owned()), ..Default::default() };
        let (constants, counts) = (HashSet::new(), Counts::default());
        Builder { graph, seed, most_rows, constants, counts, has_empty: false, opset: OPSET, uses_microsoft: false }
    }

    /// Uses a later version of the standard's operator set.
    pub(super) fn use_opset(&mut self, version: i64) {
        self.opset = version;
    }

    /// A graph input, with the sizes that its named dimensions usually have.
    pub(super) fn input(&mut self, name: &str, element: &ElementType, shape: &[(Dimension, u64)]) -> Value {
        let dimensions: Vec<Dimension> = shape.iter().map(|(dimension, _)| dimension.clone()).collect();
        self.graph.input.push(ValueInfoProto::of_tensor(name, element, Some(&dimensions)));
        Value::of(name, &shape.iter().map(|(_, size)| *size).collect::<Vec<_>>())
    }

    /// Makes a float32 value an output of the graph under another name, which its consumers then use too.
    pub(super) fn output(&mut self, value: &Value, name: &str, shape: &[Dimension]) {
        let names = self.graph.node.iter_mut().flat_map(|node| node.input.iter_mut().chain(&mut node.output));
        names.filter(|used| **used == value.name).for_each(|used| name.clone_into(used));
        self.graph.output.push(ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(shape)));
    }

    /// Says the shape of a float32 value where inference of shapes would lose it; some fusions need it.
    pub(super) fn declare(&mut self, value: &Value, shape: &[Dimension]) {
        self.graph.value_info.push(ValueInfoProto::of_tensor(&value.name, &ElementType::Float32, Some(shape)));
    }

    /// A node with one output, which has the node's name and this shape. An operator of ONNX Runtime's own set has its domain
    /// before its name: `com.microsoft.GroupQueryAttention`.
    pub(super) fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&Value],
        attributes: Vec<AttributeProto>,
        shape: &[u64],
    ) -> Value {
        let [output] = self.node_of(operator, name, inputs, attributes, [(name.to_owned(), shape.to_vec())]);
        output
    }

    /// A node with several outputs, each with a name and a shape of its own.
    pub(super) fn node_of<const OUTPUTS: usize>(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&Value],
        attributes: Vec<AttributeProto>,
        outputs: [(String, Vec<u64>); OUTPUTS],
    ) -> [Value; OUTPUTS] {
        let names: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
        self.push(operator, name, inputs, &names, attributes);
        self.has_empty |= outputs.iter().any(|(_, shape)| shape.contains(&0));
        outputs.map(|(name, shape)| Value::of(&name, &shape))
    }

    /// An `If` whose two graphs give the same outputs, which become the model's. A weight that both use is stored once, outside
    /// of them. It costs what the costlier graph does.
    pub(super) fn either(&mut self, name: &str, condition: &Value, build: impl Fn(&mut Self, bool)) {
        let (outer, constants, before) =
            (std::mem::take(&mut self.graph.node), self.constants.clone(), self.counts.macs);
        let mut macs = before;
        let branches = [("then_branch", true), ("else_branch", false)].map(|(branch, is_taken)| {
            build(self, is_taken);
            self.constants.clone_from(&constants);
            macs = macs.max(std::mem::replace(&mut self.counts.macs, before));
            let (node, output) = (std::mem::take(&mut self.graph.node), std::mem::take(&mut self.graph.output));
            let value_info = std::mem::take(&mut self.graph.value_info);
            (branch, GraphProto { name: Some(branch.to_owned()), node, output, value_info, ..Default::default() })
        });
        self.counts.macs = macs;
        self.graph.node = outer;
        self.graph.output.clone_from(&branches[0].1.output);
        let outputs: Vec<String> = self.graph.output.iter().map(|output| output.name().to_owned()).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let attributes = branches.map(|(branch, graph)| AttributeProto::of_graph(branch, graph));
        self.push("If", name, &[condition], &outputs, attributes.into());
    }

    fn push(&mut self, op: &str, name: &str, inputs: &[&Value], outputs: &[&str], attributes: Vec<AttributeProto>) {
        let inputs: Vec<&str> = inputs.iter().map(|value| value.name.as_str()).collect();
        let node = NodeProto::of(op.strip_prefix(MICROSOFT).unwrap_or(op), name, &inputs, outputs, attributes);
        let is_foreign = op.starts_with(MICROSOFT);
        self.uses_microsoft |= is_foreign;
        self.graph.node.push(if is_foreign { node.in_domain("com.microsoft") } else { node });
    }

    /// A float32 weight that training would change. Under the name of one that is there it is that one.
    pub(super) fn parameter(&mut self, name: &str, shape: &[u64], recipe: &Recipe) -> Value {
        if self.graph.initializer.iter().any(|tensor| tensor.name() == name) {
            return Value::of(name, shape);
        }
        self.counts.parameters += shape.iter().product::<u64>();
        self.buffer(name, shape, recipe)
    }

    /// A float32 weight that is a statistic of the training data, and so is not counted as a parameter.
    pub(super) fn buffer(&mut self, name: &str, shape: &[u64], recipe: &Recipe) -> Value {
        let bytes = draw(recipe, shape, self.stream(name), self.most_rows);
        self.graph.initializer.push(TensorProto::of_bytes(name, &ElementType::Float32, shape, bytes));
        Value::of(name, shape)
    }

    /// A scale for each channel of a weight.
    pub(super) fn scales(&self, weight: &str, channels: u64) -> Vec<f64> {
        channel_scales(channels, self.stream(&format!("{weight}/scales")))
    }

    fn stream(&self, purpose: &str) -> u64 {
        key_seed(self.seed, &format!("zoo/{}/{purpose}", self.graph.name()))
    }

    /// A table of int64 numbers.
    pub(super) fn integer_table(&mut self, name: &str, shape: &[u64], values: &[i64]) -> Value {
        self.graph.initializer.push(TensorProto::of_integers(name, shape, values));
        Value::of(name, shape)
    }

    /// A table of float32 numbers that training would not change.
    pub(super) fn float_table(&mut self, name: &str, shape: &[u64], values: &[f32]) -> Value {
        self.graph.initializer.push(TensorProto::of_floats(name, shape, values));
        Value::of(name, shape)
    }

    /// A float32 scalar. It is a node, not an initialiser, so that all float initialisers are weights.
    pub(super) fn float(&mut self, value: f32) -> Value {
        self.constant(format!("float32.{value}"), TensorProto::of_floats("", &[], &[value]))
    }

    /// An int64 scalar.
    pub(super) fn integer(&mut self, value: i64) -> Value {
        self.constant(format!("int64.{value}"), TensorProto::of_integers("", &[], &[value]))
    }

    /// A list of int64 numbers.
    pub(super) fn integers(&mut self, values: &[i64]) -> Value {
        self.constant(format!("int64.{values:?}"), TensorProto::of_integers("", &[values.len() as u64], values))
    }

    /// A constant, which all its users share.
    fn constant(&mut self, name: String, tensor: TensorProto) -> Value {
        let shape: Vec<u64> = tensor.dims.iter().map(|size| *size as u64).collect();
        if self.constants.insert(name.clone()) {
            self.push("Constant", &name, &[], &[&name], vec![AttributeProto::of_tensor("value", tensor)]);
        }
        Value::of(&name, &shape)
    }

    /// Counts the multiply-accumulates of a node: one for each output element and each number that is summed into it.
    pub(super) fn count_macs(&mut self, output: &[u64], summed: u64) {
        self.counts.macs += output.iter().product::<u64>() * summed;
    }

    /// Whether a node makes a value without elements, as pooling does of too small an image.
    pub(super) fn has_empty(&self) -> bool {
        self.has_empty
    }

    /// What was counted so far.
    #[cfg(test)]
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The whole model.
    pub(super) fn finish(self, description: &str, version: u32) -> ModelProto {
        let mut model = ModelProto {
            ir_version: Some(IR_VERSION),
            producer_name: Some("perfrun".to_owned()),
            producer_version: Some(format!("zoo {version}")),
            doc_string: Some(description.to_owned()),
            graph: Some(self.graph),
            ..Default::default()
        };
        model.import("", self.opset);
        if self.uses_microsoft {
            model.import("com.microsoft", 1);
        }
        model
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_shared_and_no_weights() {
        let mut builder = Builder::new("test", 1, usize::MAX);
        let (first, same, whole) = (builder.float(1.0), builder.float(1.0), builder.integer(1));
        let list = builder.integers(&[1, 2]);
        assert_eq!((first.name == same.name, first.name == whole.name, list.shape), (true, false, vec![2]));
        let model = builder.finish("", 1);
        let graph = model.graph.as_ref().unwrap();
        assert_eq!((graph.node.len(), graph.initializer.len(), model.opset("")), (3, 0, Some(OPSET)));
    }

    #[test]
    fn an_output_keeps_its_consumers() {
        let mut builder = Builder::new("test", 1, usize::MAX);
        let x = builder.input("x", &ElementType::Float32, &[(Dimension::Fixed(1), 1)]);
        let y = builder.node("Relu", "y", &[&x], vec![], &[1]);
        let z = builder.node("Relu", "z", &[&y], vec![], &[1]);
        builder.output(&y, "first", &[Dimension::Fixed(1)]);
        builder.output(&z, "second", &[Dimension::Fixed(1)]);
        let graph = builder.finish("", 1).graph.unwrap();
        assert_eq!((graph.node[0].output[0].as_str(), graph.node[1].input[0].as_str()), ("first", "first"));
        assert_eq!((graph.node[0].name(), graph.node[1].output[0].as_str()), ("y", "second"));
    }

    #[test]
    fn buffers_are_no_parameters_and_each_weight_has_its_own_numbers() {
        let mut builder = Builder::new("test", 1, usize::MAX);
        let recipe = Recipe::Uniform { low: 0.0, high: 1.0 };
        builder.parameter("a", &[2, 3], &recipe);
        builder.parameter("b", &[2, 3], &recipe);
        builder.buffer("c", &[5], &recipe);
        assert_eq!(builder.counts().parameters, 12);
        let graph = builder.finish("", 1).graph.unwrap();
        assert_ne!(graph.initializer[0].floats().unwrap(), graph.initializer[1].floats().unwrap());
    }
}
