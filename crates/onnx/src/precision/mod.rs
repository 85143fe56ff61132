//! Models in another precision, made without running them.
//!
//! Input: a [`ModelProto`](super::proto::ModelProto) with its weights, and for [`Prepared::quantize`] the ranges that its
//! activations take. Output: a [`Conversion`]: the model in the new precision and a report of what was converted, what was
//! not, and why. Deliberately absent: executing models, and judging the result: both are what perfrun measures.

pub mod activation_ranges;
mod constants;
mod edit;
mod embedding;
mod fold;
mod half;
mod inline;
mod keep;
mod names;
mod product;
pub mod quantize_blocks;
pub mod quantize_dynamic;
mod quantize_static;
mod report;
mod scales;
mod sparse;
mod upgrade;

pub use constants::{check_initialisers, drop_empty_names};
pub use half::{Half, HalfSettings, Io, ProviderClass, to_half};
pub(crate) use inline::inline_functions;
pub use keep::{Keep, ModelNames};
pub use quantize_blocks::{BlockQuantization, quantize_blocks};
pub use quantize_dynamic::{DynamicQuantization, quantize_dynamic};
pub use quantize_static::{Prepared, StaticQuantization, prepare_static};
pub use report::{Conversion, ConversionError, ConversionReport, Kept};

/// The version of the conversions: raised whenever the bytes that one of them makes change, since it is part of the
/// cache's keys.
pub const VERSION: u32 = 10;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};

    const OPERATORS: [&str; 32] = [
        "Conv",
        "MatMul",
        "Gemm",
        "Gather",
        "LSTM",
        "BatchNormalization",
        "Relu",
        "Clip",
        "Add",
        "Mul",
        "Concat",
        "MaxPool",
        "Transpose",
        "Reshape",
        "Unsqueeze",
        "Squeeze",
        "Identity",
        "Softmax",
        "Dropout",
        "Slice",
        "ConstantOfShape",
        "Upsample",
        "Cast",
        "Expand",
        "Tile",
        "Split",
        "Pad",
        "Where",
        "Pow",
        "ReduceMean",
        "QuantizeLinear",
        "DequantizeLinear",
    ];

    fn node() -> impl Strategy<Value = NodeProto> {
        let name = prop::sample::select(vec!["", "x", "a", "b", "c", "w1", "w2", "w3", "w4", "i", "y"]);
        let outputs = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "y", ""]), 0..3);
        let attribute = prop::sample::select(vec!["axis", "transA", "transB", "axes", "group", "layout", "perm", "to"]);
        let attributes = prop::collection::vec((attribute, -2_i64..3), 0..2);
        (prop::sample::select(OPERATORS.to_vec()), prop::collection::vec(name, 0..5), outputs, attributes).prop_map(
            |(operator, inputs, outputs, attributes)| {
                let attributes = attributes.into_iter().map(|(name, value)| match name {
                    "axes" | "perm" => AttributeProto::of_ints(name, &[value, 0]),
                    _ => AttributeProto::of_int(name, value),
                });
                NodeProto::of(operator, "", &inputs, &outputs, attributes.collect())
            },
        )
    }

    fn model() -> impl Strategy<Value = ModelProto> {
        (prop::collection::vec(node(), 0..8), 7_i64..18, 0_u64..4).prop_map(|(nodes, opset, size)| {
            let value = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() };
            let weight = |name: &str, shape: &[u64]| {
                let elements = shape.iter().product::<u64>() as usize;
                TensorProto::of_floats(name, shape, &vec![0.5; elements])
            };
            let graph = GraphProto {
                node: nodes,
                initializer: vec![
                    weight("w1", &[size]),
                    weight("w2", &[size, 2]),
                    weight("w3", &[2, 1, size]),
                    weight("w4", &[128, 130]),
                    TensorProto::of_integers("i", &[2], &[2, -1]),
                ],
                input: vec![value("x")],
                output: vec![value("y")],
                ..Default::default()
            };
            let mut model = ModelProto { graph: Some(graph), ..Default::default() };
            model.import("", opset);
            model
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Whatever the graph, a conversion converts it or says why not.
        #[test]
        fn no_graph_is_too_odd(model in model()) {
            let outcomes = [
                quantize_dynamic(model.clone(), &DynamicQuantization { convolutions: true, ..Default::default() }),
                quantize_blocks(model.clone(), &BlockQuantization::default()),
                prepare_static(model).and_then(|prepared| {
                    let names = prepared.to_calibrate()?;
                    let ranges = names.into_iter().map(|name| (name, activation_ranges::Range::new(-1.0, 1.0)));
                    prepared.quantize(&ranges.collect::<BTreeMap<_, _>>(), &StaticQuantization::default())
                }),
            ];
            for conversion in outcomes.into_iter().flatten() {
                prop_assert!(conversion.report.nodes_converted() > 0);
                let outputs = conversion.model.graph.iter().map(|graph| graph.output.len());
                prop_assert_eq!(outputs.collect::<Vec<_>>(), [1]);
            }
        }
    }
}
