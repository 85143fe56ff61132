//! The models that roofs are measured with.
//!
//! Each has one input `a` and one output `c`, and its weights in the file, so that a runtime may pack them as it packs
//! those of any model.

use onnx::cost::Arithmetic;
use onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use onnx::{Dimension, ElementType};
use record::Stream;
use statistics::random::Xoshiro256PlusPlus;

/// A model, and what it does.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) model: ModelProto,
    pub(super) input: (ElementType, Vec<u64>),
    pub(super) output: Vec<u64>,
    /// Operations or bytes of one inference.
    pub(super) work: f64,
}

/// A product of two square matrices of this size, in every form in which providers have it and for which there is memory,
/// one after the other, the usual one first.
pub(super) fn products(arithmetic: Arithmetic, size: u64) -> impl Iterator<Item = Subject> {
    use ElementType::{Bfloat16, Float16, Float32, Int8, Int32, Uint8};
    // Of the input, the weights and the output.
    let forms: &[(&str, [ElementType; 3])] = match arithmetic {
        Arithmetic::Float32 | Arithmetic::Tf32 => &[("MatMul", [Float32, Float32, Float32])],
        Arithmetic::Float16 => &[("MatMul", [Float16, Float16, Float16])],
        Arithmetic::Bfloat16 => &[("MatMul", [Bfloat16, Bfloat16, Bfloat16])],
        Arithmetic::Int8 => &[("MatMulInteger", [Uint8, Int8, Int32]), ("MatMulInteger", [Int8, Int8, Int32])],
    };
    let product = move |(operator, [a, w, c]): &(&str, [ElementType; 3])| {
        let square = vec![size, size];
        let weights = weights(w, &square)?;
        let node = NodeProto::of(operator, "product", &["a", "w"], &["c"], Vec::new());
        Some(Subject {
            name: "a product of matrices",
            model: model(vec![node], (a, &square), (c, &square), vec![weights]),
            input: (a.clone(), square.clone()),
            output: square,
            work: 2.0 * (size as f64).powi(3),
        })
    };
    forms.iter().filter_map(product)
}

/// Going through at most so many bytes, so many times in each inference; `None` without memory for them.
pub(super) fn stream(stream: Stream, bytes: u64, times: u64) -> Option<Subject> {
    const NUMBER: ElementType = ElementType::Float32;
    const NUMBER_BYTES: u64 = 4;
    let (operator, shape, weights_shape, passed) = match stream {
        Stream::Weights => {
            let size = (bytes / NUMBER_BYTES).isqrt();
            ("MatMul", vec![1, size], vec![size, size], size * size + 2 * size)
        }
        Stream::Activations => {
            // The two that are added, and one in which the sum lies.
            let length = bytes / NUMBER_BYTES / 3;
            ("Add", vec![length], vec![length], 3 * length)
        }
    };
    let nodes = chain(operator, &["w"], times);
    let weights = weights(&NUMBER, &weights_shape)?;
    Some(Subject {
        name: "a stream of bytes",
        model: model(nodes, (&NUMBER, &shape), (&NUMBER, &shape), vec![weights]),
        input: (NUMBER, shape.clone()),
        output: shape,
        work: (passed * NUMBER_BYTES * times) as f64,
    })
}

/// Nodes that compute next to nothing, one after the other.
pub(super) fn chain_of(nodes: u64) -> Subject {
    let (number, shape) = (ElementType::Float32, vec![1]);
    Subject {
        name: "nodes that do nothing",
        model: model(chain("Abs", &[], nodes), (&number, &shape), (&number, &shape), Vec::new()),
        input: (number, shape.clone()),
        output: shape,
        work: 0.0,
    }
}

/// `c` of `a`, through so many nodes of one operator, each of which has these inputs in addition.
fn chain(operator: &str, extra: &[&str], nodes: u64) -> Vec<NodeProto> {
    let name = |index: u64| match index {
        0 => "a".to_owned(),
        last if last == nodes => "c".to_owned(),
        inner => format!("t{inner}"),
    };
    let node = |index: u64| {
        let (from, to) = (name(index), name(index + 1));
        let inputs: Vec<&str> = std::iter::once(from.as_str()).chain(extra.iter().copied()).collect();
        NodeProto::of(operator, &to, &inputs, &[&to], Vec::new())
    };
    (0..nodes).map(node).collect()
}

/// Random numbers, of which a large tensor repeats a part: what they are does not matter, and making them takes time.
fn weights(element: &ElementType, shape: &[u64]) -> Option<TensorProto> {
    const DISTINCT: u64 = 1 << 16;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let elements = shape.iter().product::<u64>() as usize;
    // Sums over a row stay what they are.
    let scale = (shape.last().copied().unwrap_or(1) as f64).sqrt().recip();
    let distinct: Vec<f32> = (0..DISTINCT).map(|_| (random.normal() * scale) as f32).collect();
    let encoded = |number: &f32| match element {
        ElementType::Float16 => half::f16::from_f32(*number).to_le_bytes().to_vec(),
        ElementType::Bfloat16 => half::bf16::from_f32(*number).to_le_bytes().to_vec(),
        // Within seven bits, so that no product saturates on any processor.
        ElementType::Int8 => ((f64::from(*number) / scale * 16.0).clamp(-63.0, 63.0) as i8).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    };
    let pattern: Vec<u8> = distinct.iter().flat_map(encoded).collect();
    let wanted = elements * (pattern.len() / distinct.len());
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(wanted).ok()?;
    while bytes.len() < wanted {
        let part = pattern.len().min(wanted - bytes.len());
        bytes.extend_from_slice(&pattern[..part]);
    }
    Some(TensorProto::of_bytes("w", element, shape, bytes))
}

fn model(
    nodes: Vec<NodeProto>,
    input: (&ElementType, &[u64]),
    output: (&ElementType, &[u64]),
    weights: Vec<TensorProto>,
) -> ModelProto {
    let value = |name: &str, (element, shape): (&ElementType, &[u64])| {
        let sizes: Vec<Dimension> = shape.iter().map(|size| Dimension::Fixed(*size)).collect();
        ValueInfoProto::of_tensor(name, element, Some(&sizes))
    };
    let graph = GraphProto {
        name: Some("peak".to_owned()),
        node: nodes,
        input: vec![value("a", input)],
        output: vec![value("c", output)],
        initializer: weights,
        ..Default::default()
    };
    ModelProto::of_graph(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(subject: &Subject) -> onnx::cost::Cost {
        assert!(onnx::check_graph(&subject.model).is_ok());
        let (element, shape) = subject.input.clone();
        let tensors =
            [onnx::ResolvedTensor { name: "a".to_owned(), element, shape, integers: None, is_counted: false }];
        onnx::cost::cost(&subject.model, &onnx::infer::infer(&subject.model, &tensors))
    }

    #[test]
    fn products_are_whole_models_of_the_work_that_is_counted() {
        for arithmetic in [Arithmetic::Float32, Arithmetic::Float16, Arithmetic::Bfloat16, Arithmetic::Int8] {
            for subject in products(arithmetic, 64) {
                assert_eq!(cost(&subject).macs.map(|macs| 2.0 * macs as f64), Some(subject.work));
                assert_eq!(onnx::cost::arithmetic(&subject.model), arithmetic);
            }
        }
    }

    #[test]
    fn streams_move_the_bytes_that_are_counted() {
        for kind in [Stream::Weights, Stream::Activations] {
            let subject = stream(kind, 4 << 20, 4).expect("memory");
            assert_eq!(cost(&subject).bytes_moved.map(|bytes| bytes as f64), Some(subject.work), "{kind:?}");
            let [once, four_times] = [1.0, 4.0].map(|times| times * f64::from(4 << 20));
            assert!(subject.work > 0.95 * four_times && subject.work < 1.05 * four_times && once < subject.work);
        }
    }

    #[test]
    fn a_chain_has_its_nodes_and_no_products() {
        let subject = chain_of(3);
        let cost = cost(&subject);
        assert_eq!((cost.macs, cost.operators[0].nodes), (Some(0), 3));
    }
}
