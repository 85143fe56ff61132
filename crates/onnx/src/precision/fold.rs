//! Batch normalisation and other factors of channels, taken into convolutions.
//!
//! Input: the graph of a trained model. Output: the same function with fewer nodes: a `BatchNormalization`, and a `Mul` or
//! `Add` with one constant for each channel, go into the weights of the `Conv` in front of them. A `BatchNormalization`
//! without one (a DenseNet has it behind `Concat`) becomes a convolution of single channels. Deliberately absent: folding
//! over anything else, and models that are trained on.
//!
//! ONNX Runtime folds the first kind itself, but not once the weight is behind a `DequantizeLinear`. The second kind is
//! for 8 bits alone: as a `QLinearConv` it took 60 % to 75 % of the time of a float32 normalisation between
//! `DequantizeLinear` and `QuantizeLinear` (ONNX Runtime 1.31.1, two threads), and loses nothing, because a channel of one
//! weight has its own scale.

use std::collections::HashMap;

use super::edit::Editor;
use crate::TensorError;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// `factor * x + offset` for every channel.
struct Affine {
    factor: Vec<f32>,
    offset: Vec<f32>,
}

/// Folds what can be folded in the main graph, and makes convolutions of the normalisations that are left.
///
/// # Errors
///
/// A damaged tensor.
pub(super) fn fold_channels(graph: GraphProto) -> Result<GraphProto, TensorError> {
    fold(graph, Folding::as_convolution)
}

/// Folds what can be folded in the main graph: the same function in a smaller file.
///
/// # Errors
///
/// A damaged tensor.
pub(super) fn fold_into_convolutions(graph: GraphProto) -> Result<GraphProto, TensorError> {
    fold(graph, |_, node| Ok(node))
}

/// What becomes of a node that nothing takes in.
type Otherwise = fn(&mut Folding, NodeProto) -> Result<NodeProto, TensorError>;

fn fold(graph: GraphProto, otherwise: Otherwise) -> Result<GraphProto, TensorError> {
    let (editor, nodes) = Editor::new(graph);
    let mut folding =
        Folding { editor, nodes: Vec::with_capacity(nodes.len()), makers: HashMap::new(), ranks: HashMap::new() };
    for node in nodes {
        folding.take(node, otherwise)?;
    }
    let mut editor = folding.editor;
    folding.nodes.into_iter().for_each(|node| editor.put_back(node));
    Ok(editor.finish().0)
}

struct Folding {
    editor: Editor,
    nodes: Vec<NodeProto>,
    /// Which node makes a value.
    makers: HashMap<String, usize>,
    /// Dimensions of a value, where a convolution in front shows them.
    ranks: HashMap<String, usize>,
}

impl Folding {
    fn take(&mut self, node: NodeProto, otherwise: Otherwise) -> Result<(), TensorError> {
        let node = match self.folded(node)? {
            None => return Ok(()),
            Some(node) => otherwise(self, node)?,
        };
        if let Some(rank) = self.rank(&node) {
            node.output.iter().take(1).for_each(|output| {
                self.ranks.insert(output.clone(), rank);
            });
        }
        node.output.iter().for_each(|output| {
            self.makers.insert(output.clone(), self.nodes.len());
        });
        self.nodes.push(node);
        Ok(())
    }

    fn rank(&self, node: &NodeProto) -> Option<usize> {
        match node.op_type() {
            "Conv" => Some(self.editor.tensor(node.input.get(1)?)?.dims.len()),
            "Relu" | "Clip" | "LeakyRelu" | "Sigmoid" | "Concat" | "MaxPool" | "AveragePool" | "BatchNormalization"
            | "Dropout" | "Identity" => self.ranks.get(node.input.first()?).copied(),
            _ => None,
        }
    }

    /// The node, unless the convolution in front of it took it in.
    fn folded(&mut self, node: NodeProto) -> Result<Option<NodeProto>, TensorError> {
        let Some(output) = node.output.first().cloned() else { return Ok(Some(node)) };
        for input in node.input.iter().take(2) {
            let Some(maker) = self.makers.get(input).copied() else { continue };
            let Some(channels) = self.channels_of(maker, input)? else { continue };
            let Some(affine) = self.affine(&node, input, channels)? else { continue };
            self.take_in(maker, &affine)?;
            self.editor.release(&node);
            let convolution = &mut self.nodes[maker];
            convolution.output[0].clone_from(&output);
            let rank = self.ranks.get(input).copied();
            self.makers.insert(output.clone(), maker);
            rank.map(|rank| self.ranks.insert(output, rank));
            return Ok(None);
        }
        Ok(Some(node))
    }

    /// Channels of a convolution with constant weights whose output has one reader.
    fn channels_of(&self, maker: usize, output: &str) -> Result<Option<usize>, TensorError> {
        let node = &self.nodes[maker];
        let is_plain = node.is_standard() && node.op_type() == "Conv" && self.editor.readers(output) == 1;
        let weight = node.input.get(1).and_then(|weight| self.editor.tensor(weight));
        let Some(weight) = weight.filter(|weight| is_plain && is_float32(weight)) else { return Ok(None) };
        let bias = node.input.get(2).filter(|bias| !bias.is_empty());
        if bias.is_some_and(|bias| !self.editor.tensor(bias).is_some_and(is_float32)) {
            return Ok(None);
        }
        Ok(weight.shape()?.first().map(|channels| *channels as usize))
    }

    fn take_in(&mut self, maker: usize, affine: &Affine) -> Result<(), TensorError> {
        let old = self.nodes[maker].clone();
        let Some(weight) = self.editor.tensor(&old.input[1]) else { return Ok(()) };
        let (shape, mut values) = (weight.shape()?, weight.floats()?);
        let each = values.len() / affine.factor.len().max(1);
        for (filter, factor) in values.chunks_exact_mut(each.max(1)).zip(&affine.factor) {
            filter.iter_mut().for_each(|value| *value *= factor);
        }
        let bias = match old.input.get(2).filter(|bias| !bias.is_empty()).and_then(|bias| self.editor.floats(bias)) {
            Some(bias) => bias?,
            None => vec![0.0; affine.factor.len()],
        };
        let bias = bias.iter().zip(&affine.factor).zip(&affine.offset);
        let bias: Vec<f32> = bias.map(|((bias, factor), offset)| bias * factor + offset).collect();
        let weight = TensorProto::of_floats(&format!("{}_folded", old.input[1]), &shape, &values);
        let name = format!("{}_folded", old.input.get(2).filter(|bias| !bias.is_empty()).unwrap_or(&old.output[0]));
        let bias = TensorProto::of_floats(&name, &[bias.len() as u64], &bias);
        let inputs = vec![old.input[0].clone(), self.editor.add_weight(weight), self.editor.add_weight(bias)];
        self.nodes[maker].input = inputs;
        self.editor.count(&self.nodes[maker]);
        self.editor.release(&old);
        Ok(())
    }

    /// What the node does to `input`, if that is one factor and one offset for each channel.
    fn affine(&self, node: &NodeProto, input: &str, channels: usize) -> Result<Option<Affine>, TensorError> {
        if !node.is_standard() {
            return Ok(None);
        }
        match node.op_type() {
            "BatchNormalization" if node.input.first().is_some_and(|data| data == input) => {
                Ok(self.normalization(node)?.filter(|affine| affine.factor.len() == channels))
            }
            "Mul" => {
                Ok(self.operand(node, input, channels)?.map(|factor| Affine { offset: vec![0.0; channels], factor }))
            }
            "Add" => {
                Ok(self.operand(node, input, channels)?.map(|offset| Affine { factor: vec![1.0; channels], offset }))
            }
            _ => Ok(None),
        }
    }

    /// The other operand of an elementwise node, if it is one constant for each channel.
    fn operand(&self, node: &NodeProto, input: &str, channels: usize) -> Result<Option<Vec<f32>>, TensorError> {
        let [left, right] = &node.input[..] else { return Ok(None) };
        let factor = if left == input { right } else { left };
        let Some(rank) = self.ranks.get(input) else { return Ok(None) };
        let Some(tensor) = self.editor.tensor(factor).filter(|tensor| is_float32(tensor)) else { return Ok(None) };
        let shape = tensor.shape()?;
        // Shapes are aligned at their ends, where the channel has `rank - 2` dimensions behind it.
        let is_of_channels = shape.len() <= *rank
            && shape
                .iter()
                .rev()
                .enumerate()
                .all(|(from_last, size)| *size == 1 || (from_last + 2 == *rank && *size == channels as u64));
        if !is_of_channels {
            return Ok(None);
        }
        let values = tensor.floats()?;
        Ok(match values[..] {
            [value] => Some(vec![value; channels]),
            _ => Some(values).filter(|values| values.len() == channels),
        })
    }

    /// `scale * (x - mean) / sqrt(variance + epsilon) + offset`.
    fn normalization(&self, node: &NodeProto) -> Result<Option<Affine>, TensorError> {
        let [_, scale, offset, mean, variance] = &node.input[..] else { return Ok(None) };
        let trains = node.int("training_mode").unwrap_or(0) != 0 || node.int("spatial") == Some(0);
        if trains || node.output.iter().skip(1).any(|output| self.editor.readers(output) > 0) {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(4);
        for name in [scale, offset, mean, variance] {
            match self.editor.tensor(name).filter(|tensor| is_float32(tensor)) {
                Some(tensor) => parts.push(tensor.floats()?),
                None => return Ok(None),
            }
        }
        let [scale, offset, mean, variance] = &parts[..] else { return Ok(None) };
        let channels = scale.len();
        if parts.iter().any(|part| part.len() != channels) {
            return Ok(None);
        }
        let epsilon = f64::from(node.float("epsilon").unwrap_or(1e-5));
        let factor: Vec<f64> = (0..channels)
            .map(|channel| f64::from(scale[channel]) / (f64::from(variance[channel]) + epsilon).sqrt())
            .collect();
        let offset =
            (0..channels).map(|channel| f64::from(offset[channel]) - f64::from(mean[channel]) * factor[channel]);
        let offset: Vec<f32> = offset.map(|offset| offset as f32).collect();
        let affine = Affine { factor: factor.into_iter().map(|factor| factor as f32).collect(), offset };
        Ok(Some(affine).filter(|affine| affine.factor.iter().chain(&affine.offset).all(|value| value.is_finite())))
    }

    /// A normalisation that nothing took in as a convolution of single channels.
    fn as_convolution(&mut self, node: NodeProto) -> Result<NodeProto, TensorError> {
        let rank = node.input.first().and_then(|input| self.ranks.get(input)).copied();
        let Some(rank) = rank.filter(|rank| node.is_standard() && node.op_type() == "BatchNormalization" && *rank > 2)
        else {
            return Ok(node);
        };
        let Some(affine) = self.normalization(&node)? else { return Ok(node) };
        let channels = affine.factor.len() as u64;
        let mut shape = vec![1; rank];
        shape[0] = channels;
        self.editor.release(&node);
        let (scale, offset) = (format!("{}_folded", node.input[1]), format!("{}_folded", node.input[2]));
        let weight = self.editor.add_weight(TensorProto::of_floats(&scale, &shape, &affine.factor));
        let bias = self.editor.add_weight(TensorProto::of_floats(&offset, &[channels], &affine.offset));
        let group = vec![AttributeProto::of_int("group", channels as i64)];
        let convolution =
            NodeProto::of("Conv", node.name(), &[&node.input[0], &weight, &bias], &[&node.output[0]], group);
        self.editor.count(&convolution);
        Ok(convolution)
    }
}

fn is_float32(tensor: &TensorProto) -> bool {
    tensor.element() == crate::ElementType::Float32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::ValueInfoProto;

    fn graph(nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> GraphProto {
        let output = ValueInfoProto { name: Some("y".to_owned()), ..Default::default() };
        GraphProto { node: nodes, initializer: weights, output: vec![output], ..Default::default() }
    }

    fn folded(nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> GraphProto {
        fold_channels(graph(nodes, weights)).unwrap()
    }

    fn values(graph: &GraphProto, node: usize, input: usize) -> (Vec<i64>, Vec<f32>) {
        let name = &graph.node[node].input[input];
        let tensor = graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap();
        (tensor.dims.clone(), tensor.floats().unwrap())
    }

    fn conv(output: &str) -> NodeProto {
        NodeProto::of("Conv", "c", &["x", "w", "b"], &[output], vec![])
    }

    fn normalization(input: &str, output: &str) -> NodeProto {
        let epsilon = vec![AttributeProto::of_float("epsilon", 0.0)];
        NodeProto::of("BatchNormalization", "n", &[input, "scale", "offset", "mean", "variance"], &[output], epsilon)
    }

    fn weights() -> Vec<TensorProto> {
        let vector = |name: &str, values: &[f32]| TensorProto::of_floats(name, &[values.len() as u64], values);
        vec![
            TensorProto::of_floats("w", &[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
            vector("b", &[10.0, 20.0]),
            vector("scale", &[1.0, 6.0]),
            vector("offset", &[0.5, 0.0]),
            vector("mean", &[2.0, 0.0]),
            vector("variance", &[4.0, 9.0]),
            TensorProto::of_floats("double", &[1, 2, 1, 1], &[2.0, 1.0]),
            TensorProto::of_floats("rows", &[2, 1], &[2.0, 1.0]),
        ]
    }

    #[test]
    fn a_normalisation_and_a_factor_go_into_the_convolution() {
        let nodes = vec![
            conv("a"),
            normalization("a", "n"),
            NodeProto::of("Mul", "m", &["double", "n"], &["m"], vec![]),
            NodeProto::of("Add", "s", &["m", "double"], &["y"], vec![]),
        ];
        let graph = folded(nodes, weights());
        assert_eq!((graph.node.len(), graph.node[0].output[0].as_str()), (1, "y"));
        assert_eq!(values(&graph, 0, 1), (vec![2, 1, 1, 2], vec![1.0, 2.0, 6.0, 8.0]));
        // ((10 - 2) / 2 + 0.5) * 2 + 2 and 20 * 6 / 3 + 1.
        assert_eq!(values(&graph, 0, 2), (vec![2], vec![11.0, 41.0]));
        assert_eq!(graph.initializer.len(), 2);
    }

    #[test]
    fn a_normalisation_behind_something_else_becomes_a_convolution() {
        let nodes = vec![conv("a"), NodeProto::of("Relu", "r", &["a"], &["r"], vec![]), normalization("r", "y")];
        let graph = folded(nodes, weights());
        let operators: Vec<&str> = graph.node.iter().map(NodeProto::op_type).collect();
        assert_eq!((operators, graph.node[2].int("group")), (vec!["Conv", "Relu", "Conv"], Some(2)));
        assert_eq!(values(&graph, 2, 1), (vec![2, 1, 1, 1], vec![0.5, 2.0]));
        assert_eq!(values(&graph, 2, 2), (vec![2], vec![-0.5, 0.0]));
    }

    #[test]
    fn a_normalisation_without_a_convolution_stays_unless_that_is_quantised() {
        let nodes = vec![conv("a"), normalization("a", "n"), NodeProto::of("Relu", "r", &["n"], &["r"], vec![])];
        let graph = graph(nodes.into_iter().chain([normalization("r", "y")]).collect(), weights());
        let graph = fold_into_convolutions(graph).unwrap();
        let operators: Vec<&str> = graph.node.iter().map(NodeProto::op_type).collect();
        assert_eq!(operators, ["Conv", "Relu", "BatchNormalization"]);
    }

    #[test]
    fn what_others_read_or_what_is_not_of_channels_stays() {
        let both = NodeProto::of("Add", "s", &["a", "n"], &["y"], vec![]);
        let graph = folded(vec![conv("a"), normalization("a", "n"), both], weights());
        assert_eq!(graph.node.iter().filter(|node| node.op_type() == "Conv").count(), 2);
        let rows = NodeProto::of("Mul", "m", &["a", "rows"], &["y"], vec![]);
        assert_eq!(folded(vec![conv("a"), rows], weights()).node.len(), 2);
        let unknown = folded(vec![normalization("x", "y")], weights());
        assert_eq!(unknown.node[0].op_type(), "BatchNormalization");
    }
}
