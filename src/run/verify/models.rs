//! The models that a device is verified with.

use std::fmt;

use onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use onnx::{Dimension, ElementType};
use statistics::random::Xoshiro256PlusPlus;

/// A model with one input `x` and one output `y`, of float32.
pub(super) struct Subject {
    pub(super) model: ModelProto,
    pub(super) input: Vec<u64>,
    pub(super) output: Vec<u64>,
}

/// The size of two products of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: u64,
    pub(super) width: u64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.width)
    }
}

/// Two products of matrices and what lies between them; its work grows with its size, and its nodes do not.
pub(super) fn products(Size { rows, width }: Size) -> Subject {
    let nodes = vec![
        NodeProto::of("MatMul", "first", &["x", "w"], &["a"], Vec::new()),
        NodeProto::of("Relu", "between", &["a"], &["b"], Vec::new()),
        NodeProto::of("MatMul", "second", &["b", "w"], &["y"], Vec::new()),
    ];
    subject(nodes, vec![rows, width], vec![rows, width], vec![weights(&[width, width])])
}

/// The name of the node that takes longest.
pub(super) const SLOW: &str = "slow";

/// A product that has at least 32 times as many operations as each of those around it.
pub(super) fn slow_among_small() -> Subject {
    const NARROW: u64 = 32;
    const WIDE: u64 = 1024;
    let nodes = vec![
        NodeProto::of("MatMul", "small", &["x", "square"], &["a"], Vec::new()),
        NodeProto::of("MatMul", "widening", &["a", "to_wide"], &["b"], Vec::new()),
        NodeProto::of("MatMul", SLOW, &["b", "w"], &["c"], Vec::new()),
        NodeProto::of("MatMul", "narrowing", &["c", "to_narrow"], &["y"], Vec::new()),
    ];
    let named = |name: &str, shape: [u64; 2]| TensorProto { name: Some(name.to_owned()), ..weights(&shape) };
    let initializer = vec![
        named("square", [NARROW, NARROW]),
        named("to_wide", [NARROW, WIDE]),
        weights(&[WIDE, WIDE]),
        named("to_narrow", [WIDE, NARROW]),
    ];
    subject(nodes, vec![WIDE, NARROW], vec![WIDE, NARROW], initializer)
}

/// A convolution in this element type, which NVIDIA's providers leave to cuDNN.
pub(super) fn convolution(element: &ElementType) -> Subject {
    const CHANNELS: u64 = 32;
    let cast = |to: &ElementType| vec![AttributeProto::of_int("to", i64::from(to.code().unwrap_or_default()))];
    let nodes = vec![
        NodeProto::of("Cast", "input", &["x"], &["a"], cast(element)),
        NodeProto::of("Cast", "weights", &["w"], &["v"], cast(element)),
        NodeProto::of("Conv", "convolution", &["a", "v"], &["b"], vec![AttributeProto::of_ints("pads", &[1; 4])]),
        NodeProto::of("Cast", "output", &["b"], &["y"], cast(&ElementType::Float32)),
    ];
    let shape = vec![2, CHANNELS, 28, 28];
    subject(nodes, shape.clone(), shape, vec![weights(&[CHANNELS, CHANNELS, 3, 3])])
}

/// A product, and determinants, which no known provider but the one for processors computes.
pub(super) fn determinants() -> Subject {
    const WIDTH: u64 = 32;
    let nodes = vec![
        NodeProto::of("MatMul", "product", &["x", "w"], &["a"], Vec::new()),
        NodeProto::of("Det", "determinants", &["a"], &["y"], Vec::new()),
    ];
    subject(nodes, vec![16, WIDTH, WIDTH], vec![16], vec![weights(&[WIDTH, WIDTH])])
}

/// A number that is repeated so often that this takes so many bytes.
pub(super) fn as_large_as(bytes: u64) -> Subject {
    const COLUMNS: u64 = 1 << 16;
    let rows = bytes.div_ceil(4 * COLUMNS);
    let shape = TensorProto::of_integers("shape", &[2], &[rows as i64, COLUMNS as i64]);
    let nodes = vec![
        NodeProto::of("Expand", "repeated", &["x", "shape"], &["a"], Vec::new()),
        NodeProto::of("ReduceMax", "largest", &["a"], &["y"], Vec::new()),
    ];
    subject(nodes, vec![1, 1], vec![1, 1], vec![shape])
}

/// Weights `w`, of which the first dimension counts outputs (or inputs as well, where it is square).
fn weights(shape: &[u64]) -> TensorProto {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let summed: u64 = shape.iter().skip(1).product();
    let scale = (summed as f64).sqrt().recip();
    let values: Vec<f32> = (0..shape.iter().product()).map(|_: u64| (random.normal() * scale) as f32).collect();
    TensorProto::of_floats("w", shape, &values)
}

fn subject(nodes: Vec<NodeProto>, input: Vec<u64>, output: Vec<u64>, initializer: Vec<TensorProto>) -> Subject {
    let value = |name: &str, shape: &[u64]| {
        let sizes: Vec<Dimension> = shape.iter().map(|size| Dimension::Fixed(*size)).collect();
        ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&sizes))
    };
    let graph = GraphProto {
        name: Some("verify".to_owned()),
        node: nodes,
        input: vec![value("x", &input)],
        output: vec![value("y", &output)],
        initializer,
        ..Default::default()
    };
    Subject { model: ModelProto::of_graph(graph), input, output }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_whole() {
        let convolutions = [convolution(&ElementType::Float32), convolution(&ElementType::Float16)];
        let rest = [products(Size { rows: 4, width: 8 }), slow_among_small(), determinants(), as_large_as(1 << 40)];
        for subject in rest.into_iter().chain(convolutions) {
            assert!(onnx::check_graph(&subject.model).is_ok());
        }
    }
}
