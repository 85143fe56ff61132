//! In which numbers a model multiplies (method 5.6).

use serde::{Deserialize, Serialize};

use crate::ElementType;
use crate::proto::{GraphProto, ModelProto, NodeProto};

/// The numbers that a model multiplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// IEEE single precision.
    #[default]
    Float32,
    /// float32 of which products keep 10 bits of the fraction; no file says so, a provider does it.
    Tf32,
    /// IEEE half precision.
    Float16,
    /// bfloat16.
    Bfloat16,
    /// 8-bit integers.
    Int8,
}

impl Arithmetic {
    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Float32 => "float32",
            Arithmetic::Tf32 => "tf32",
            Arithmetic::Float16 => "float16",
            Arithmetic::Bfloat16 => "bfloat16",
            Arithmetic::Int8 => "int8",
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> f64 {
        match self {
            Arithmetic::Float32 | Arithmetic::Tf32 => 4.0,
            Arithmetic::Float16 | Arithmetic::Bfloat16 => 2.0,
            Arithmetic::Int8 => 1.0,
        }
    }
}

/// The narrowest numbers that a model multiplies: 8-bit integers where activations are quantised, half precision where
/// matrices of weights are stored so. Parts of it may stay in float32.
pub fn arithmetic(model: &ModelProto) -> Arithmetic {
    let Some(graph) = model.graph.as_ref() else { return Arithmetic::default() };
    let mut all = vec![graph];
    let mut widest = Arithmetic::Float32;
    while let Some(graph) = all.pop() {
        if graph.node.iter().any(is_quantized) {
            return Arithmetic::Int8;
        }
        widest = widest.max(of_weights(graph));
        all.extend(graph.node.iter().flat_map(NodeProto::graphs));
    }
    widest
}

fn of_weights(graph: &GraphProto) -> Arithmetic {
    let matrices = graph.initializer.iter().filter(|tensor| tensor.dims.len() >= 2);
    let of_element = |element: ElementType| match element {
        ElementType::Float16 => Arithmetic::Float16,
        ElementType::Bfloat16 => Arithmetic::Bfloat16,
        _ => Arithmetic::Float32,
    };
    matrices.map(|tensor| of_element(tensor.element())).max().unwrap_or_default()
}

/// Whether a node multiplies 8-bit integers, or makes them of activations for the next nodes to multiply.
fn is_quantized(node: &NodeProto) -> bool {
    const INTEGERS: [&str; 10] = [
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "ConvInteger",
        "MatMulInteger",
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat",
        "DynamicQuantizeLSTM",
        "QAttention",
        "QGemm",
        "QMoE",
    ];
    const IN_INT8: i64 = 4;
    let operator = node.op_type();
    INTEGERS.contains(&operator)
        || operator.starts_with("QLinear")
        || (operator == "MatMulNBits" && node.int("accuracy_level") == Some(IN_INT8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::TensorProto;

    fn graph(operator: &str, weights: ElementType) -> ModelProto {
        let graph = GraphProto {
            node: vec![NodeProto::of(operator, "n", &["x", "w"], &["y"], Vec::new())],
            initializer: vec![TensorProto::of_bytes("w", &weights, &[0, 2], Vec::new())],
            ..Default::default()
        };
        ModelProto { graph: Some(graph), ..Default::default() }
    }

    #[test]
    fn a_model_multiplies_what_its_weights_or_its_operators_say() {
        let arithmetic_of = |operator: &str, weights: ElementType| arithmetic(&graph(operator, weights));
        assert_eq!(arithmetic_of("MatMul", ElementType::Float32), Arithmetic::Float32);
        assert_eq!(arithmetic_of("MatMul", ElementType::Float16), Arithmetic::Float16);
        assert_eq!(arithmetic_of("MatMul", ElementType::Bfloat16), Arithmetic::Bfloat16);
        assert_eq!(arithmetic_of("QLinearConv", ElementType::Int8), Arithmetic::Int8);
        assert_eq!(arithmetic_of("QuantizeLinear", ElementType::Float32), Arithmetic::Int8);
        // Weights alone are stored narrow; what is multiplied is not.
        assert_eq!(arithmetic_of("DequantizeLinear", ElementType::Int8), Arithmetic::Float32);
        assert_eq!(arithmetic_of("MatMulNBits", ElementType::Uint8), Arithmetic::Float32);
        assert_eq!(arithmetic(&ModelProto::default()), Arithmetic::Float32);
    }
}
