//! Which operators have arithmetic in half precision, and which should not use it.
//!
//! Sources: the kernels that ONNX Runtime registers (`docs/OperatorKernels.md` of its repository), the operators that
//! PyTorch's automatic mixed precision leaves in float32 (`torch.amp`, "Ops that autocast to float32") as far as ONNX
//! Runtime's kernels do not accumulate in float32 by themselves (softmax and normalisations do).

use super::{Half, ProviderClass};
use crate::proto::NodeProto;

/// Operators that only move elements and take the type of what they move, and whether ONNX Runtime's CPU provider has
/// them in fp16 and in bf16, and its CUDA provider in bf16 (release 1.31). CUDA has all of them in fp16.
const MOVES: &[(&str, bool, bool, bool)] = &[
    ("Compress", true, false, true),
    ("Concat", true, true, true),
    ("DepthToSpace", false, false, false),
    ("Expand", true, false, true),
    ("Flatten", true, true, true),
    ("Gather", true, true, true),
    ("GatherElements", true, true, true),
    ("GatherND", true, true, true),
    ("Identity", true, true, true),
    ("Reshape", true, true, true),
    ("ReverseSequence", true, false, true),
    ("ScatterElements", true, true, true),
    ("ScatterND", true, true, true),
    ("Slice", true, true, true),
    ("SpaceToDepth", false, false, false),
    ("Split", true, true, true),
    ("Squeeze", true, true, true),
    ("Tile", false, false, true),
    ("Transpose", true, true, true),
    ("Trilu", false, false, true),
    ("Unsqueeze", true, true, true),
];

/// Operators that ONNX Runtime's CUDA provider has in float32 and not in fp16, and the last operator set of which that is
/// true.
const CUDA_WITHOUT_FP16: &[(&str, i64)] = &[
    ("Clip", 11),
    ("CumSum", 13),
    ("EyeLike", i64::MAX),
    ("GridSample", i64::MAX),
    ("MeanVarianceNormalization", i64::MAX),
    ("Range", i64::MAX),
    ("RoiAlign", i64::MAX),
];

/// Operators with arithmetic that it has in bf16.
const CUDA_WITH_BF16: &[&str] = &[
    "Abs",
    "Add",
    "Attention",
    "AveragePool",
    "Conv",
    "Div",
    "Dropout",
    "Erf",
    "Exp",
    "Gelu",
    "Gemm",
    "HardSigmoid",
    "HardSwish",
    "LayerNormalization",
    "MatMul",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "RMSNormalization",
    "ReduceSum",
    "Relu",
    "RotaryEmbedding",
    "Sigmoid",
    "Sign",
    "Softmax",
    "Sqrt",
    "Sub",
    "Sum",
    "Tanh",
    "Where",
];

/// Operators whose results leave the range of fp16, or lose what counts, for inputs that are well within it.
const UNSAFE: &[&str] = &[
    "Bernoulli",
    "BlackmanWindow",
    "CumProd",
    "CumSum",
    "DFT",
    "DequantizeLinear",
    "Det",
    "DynamicQuantizeLinear",
    "Exp",
    "EyeLike",
    "HammingWindow",
    "HannWindow",
    "LpNormalization",
    "MelWeightMatrix",
    "Multinomial",
    "NegativeLogLikelihoodLoss",
    "NonMaxSuppression",
    "Pow",
    "QLinearMatMul",
    "QuantizeLinear",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Range",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceProd",
    "ReduceSumSquare",
    "STFT",
    "SoftmaxCrossEntropyLoss",
];

/// What continues a computation that grew: the mean of squares of a layer norm, say, is as large as the squares.
const CONTINUES: &[&str] = &[
    "Abs",
    "Add",
    "Clip",
    "Div",
    "LeakyRelu",
    "Log",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Reciprocal",
    "Relu",
    "Sqrt",
    "Sub",
    "Sum",
    "Where",
];

/// What brings such a computation back into range.
const RETURNS: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "Div",
    "Erf",
    "HardSigmoid",
    "InstanceNormalization",
    "LayerNormalization",
    "Log",
    "RMSNormalization",
    "Reciprocal",
    "Sigmoid",
    "Sign",
    "Softmax",
    "Softsign",
    "Sqrt",
    "Tanh",
];

/// What masks: `x + m`, `m * (1 - x)`, and what compares or bounds.
const MASKS: &[&str] = &[
    "Add",
    "Clip",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Sub",
    "Sum",
    "Where",
];

/// What keeps numbers away from zero by a small one.
const GUARDS: &[&str] = &["Add", "Clip", "Max", "Sum", "Where"];

/// Inputs that stay in float32 though the standard allows more: small numbers that steer the operator.
const STEERING: &[(&str, usize)] = &[("Dropout", 1), ("Resize", 1), ("Resize", 2), ("Upsample", 1), ("RoiAlign", 1)];

/// Whether a node only moves elements. What scatters and reduces does more: on the CPU such a model loads in half
/// precision, and fails when it is run.
pub(super) fn moves(node: &NodeProto) -> bool {
    !reduces(node) && move_of(node.op_type()).is_some()
}

/// Whether a node scatters numbers into a tensor of numbers.
fn reduces(node: &NodeProto) -> bool {
    node.text("reduction").is_some_and(|reduction| reduction != "none")
}

/// Whether a node scatters and adds or multiplies, one number after the other in the type that it reads.
pub(super) fn accumulates(node: &NodeProto) -> bool {
    let accumulates = node.text("reduction").is_some_and(|reduction| matches!(reduction, "add" | "mul"));
    accumulates && matches!(node.op_type(), "ScatterElements" | "ScatterND")
}

fn move_of(operator: &str) -> Option<&'static (&'static str, bool, bool, bool)> {
    MOVES.iter().find(|(name, ..)| *name == operator)
}

/// Whether a node masks with a number that stands for infinity, or hands it on.
pub(super) fn masks(node: &NodeProto) -> bool {
    MASKS.contains(&node.op_type()) || moves(node)
}

/// Whether a node is unsafe in half precision.
pub(super) fn is_unsafe(node: &NodeProto) -> bool {
    let has_large_factor = || ["alpha", "beta"].iter().any(|name| node.float(name).is_some_and(|it| it.abs() > 3000.0));
    UNSAFE.contains(&node.op_type()) || is_square(node) || (node.op_type() == "Gemm" && has_large_factor())
}

/// Whether it is a square that is written as a product.
pub(super) fn is_square(node: &NodeProto) -> bool {
    node.op_type() == "Mul" && node.input.len() == 2 && node.input[0] == node.input[1]
}

/// Whether an operator that reads what an unsafe one made is unsafe too.
pub(super) fn continues(operator: &str) -> bool {
    CONTINUES.contains(&operator)
}

/// Whether an operator may keep numbers away from zero.
pub(super) fn guards(operator: &str) -> bool {
    GUARDS.contains(&operator)
}

/// Whether its result can be read in half precision again.
pub(super) fn returns(operator: &str) -> bool {
    RETURNS.contains(&operator)
}

/// Whether an input stays in float32.
pub(super) fn steers(operator: &str, input: usize) -> bool {
    STEERING.contains(&(operator, input))
}

/// Whether a provider has a kernel for an operator of that operator set in half precision that is worth its casts: what
/// computes on the CPU is float32 all around, so that a lone kernel in half precision (`LayerNormalization`, `Clip`) would
/// cost more than it saves.
pub(super) fn has_kernel(provider: ProviderClass, target: Half, node: &NodeProto, opset: i64) -> bool {
    let operator = node.op_type();
    match (provider, target) {
        (ProviderClass::Cpu, _) if !moves(node) => false,
        (ProviderClass::Cpu, Half::Fp16) => move_of(operator).is_some_and(|(_, fp16, _, _)| *fp16),
        (ProviderClass::Cpu, Half::Bf16) => move_of(operator).is_some_and(|(_, _, bf16, _)| *bf16),
        (ProviderClass::Cuda, Half::Fp16) => {
            !CUDA_WITHOUT_FP16.iter().any(|(name, last)| *name == operator && opset <= *last)
        }
        (ProviderClass::Cuda, Half::Bf16) if moves(node) => move_of(operator).is_some_and(|(.., bf16)| *bf16),
        (ProviderClass::Cuda, Half::Bf16) => CUDA_WITH_BF16.contains(&operator),
    }
}

/// The operator, if any, that has a kernel in fp16 on CUDA in the operator set `raised` and not in the older `opset`.
pub(super) fn gains_kernel(operator: &str, opset: i64, raised: i64) -> Option<&'static str> {
    let gains = |(name, last): &&(&str, i64)| *name == operator && (opset..raised).contains(last);
    CUDA_WITHOUT_FP16.iter().find(gains).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of ONNX Runtime's docs/OperatorKernels.md, CUDA: an operator, an operator set, and whether it has fp16 and bf16.
    const PUBLISHED: &[(&str, i64, bool, bool)] = &[
        ("Clip", 6, false, false),
        ("Clip", 11, false, false),
        ("Clip", 12, true, false),
        ("Clip", 13, true, false),
        ("CumSum", 13, false, false),
        ("CumSum", 14, true, false),
        ("EyeLike", 22, false, false),
        ("GridSample", 22, false, false),
        ("Range", 11, false, false),
        ("RoiAlign", 22, false, false),
        ("DepthToSpace", 13, true, false),
        ("SpaceToDepth", 13, true, false),
        ("Tile", 13, true, true),
        ("Trilu", 14, true, true),
        ("Expand", 13, true, true),
        ("GatherND", 13, true, true),
        ("Compress", 11, true, true),
        ("Transpose", 13, true, true),
        ("BatchNormalization", 15, true, false),
        ("ConvTranspose", 11, true, false),
        ("GlobalAveragePool", 1, true, false),
        ("InstanceNormalization", 6, true, false),
        ("LeakyRelu", 16, true, false),
        ("LSTM", 14, true, false),
        ("MaxPool", 12, true, false),
        ("Pad", 13, true, false),
        ("Resize", 13, true, false),
        ("TopK", 11, true, false),
        ("Conv", 22, true, true),
        ("Gemm", 13, true, true),
        ("Relu", 14, true, true),
        ("Softmax", 13, true, true),
        ("Where", 16, true, true),
    ];

    #[test]
    fn cuda_has_the_kernels_that_are_published() {
        for (operator, opset, fp16, bf16) in PUBLISHED {
            let node = NodeProto::of(operator, "", &["x"], &["y"], vec![]);
            let has = [Half::Fp16, Half::Bf16].map(|half| has_kernel(ProviderClass::Cuda, half, &node, *opset));
            assert_eq!(has, [*fp16, *bf16], "{operator} {opset}");
        }
        assert_eq!((gains_kernel("Clip", 11, 13), gains_kernel("Clip", 12, 13)), (Some("Clip"), None));
        assert_eq!((gains_kernel("Range", 11, 13), gains_kernel("CumSum", 11, 13)), (None, None));
    }
}
