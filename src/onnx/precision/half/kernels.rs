//! Which operators have arithmetic in half precision, and which should not use it.
//!
//! Sources: the kernels that ONNX Runtime registers (`docs/OperatorKernels.md` of its repository), the operators that
//! PyTorch's automatic mixed precision leaves in float32 (`torch.amp`, "Ops that autocast to float32") as far as ONNX
//! Runtime's kernels do not accumulate in float32 by themselves (softmax and normalisations do).

use super::{Half, ProviderClass};
use crate::onnx::proto::NodeProto;

/// Operators that only move elements and take the type of what they move, and whether ONNX Runtime's CPU provider has
/// them in fp16 and in bf16 (release 1.31). CUDA has all of them in both.
const MOVES: &[(&str, bool, bool)] = &[
    ("Compress", true, false),
    ("Concat", true, true),
    ("DepthToSpace", false, false),
    ("Expand", true, false),
    ("Flatten", true, true),
    ("Gather", true, true),
    ("GatherElements", true, true),
    ("GatherND", true, true),
    ("Identity", true, true),
    ("Reshape", true, true),
    ("ReverseSequence", true, false),
    ("ScatterElements", true, true),
    ("ScatterND", true, true),
    ("Slice", true, true),
    ("SpaceToDepth", false, false),
    ("Split", true, true),
    ("Squeeze", true, true),
    ("Tile", false, false),
    ("Transpose", true, true),
    ("Trilu", false, false),
    ("Unsqueeze", true, true),
];

/// Operators that ONNX Runtime's CUDA provider has in float32 and not in fp16.
const CUDA_WITHOUT_FP16: &[&str] =
    &["CumSum", "EyeLike", "GridSample", "MeanVarianceNormalization", "Range", "RoiAlign"];

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
const CONTINUES: &[&str] =
    &["Add", "Div", "Log", "Mul", "Neg", "ReduceMean", "ReduceSum", "Reciprocal", "Sqrt", "Sub", "Sum"];

/// What brings such a computation back into range.
const RETURNS: &[&str] = &["Div", "Log", "Reciprocal", "Sqrt"];

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

/// Inputs that stay in float32 though the standard allows more: small numbers that steer the operator.
const STEERING: &[(&str, usize)] = &[("Dropout", 1), ("Resize", 1), ("Resize", 2), ("Upsample", 1), ("RoiAlign", 1)];

/// Whether a node only moves elements. What scatters and reduces does more: on the CPU such a model loads in half
/// precision, and fails when it is run.
pub(super) fn moves(node: &NodeProto) -> bool {
    let reduces = node.text("reduction").is_some_and(|reduction| reduction != "none");
    !reduces && MOVES.iter().any(|(name, _, _)| *name == node.op_type())
}

/// Whether a node masks with a number that stands for infinity, or hands it on.
pub(super) fn masks(node: &NodeProto) -> bool {
    MASKS.contains(&node.op_type()) || moves(node)
}

/// Whether an operator is unsafe in half precision.
pub(super) fn is_unsafe(operator: &str) -> bool {
    UNSAFE.contains(&operator)
}

/// Whether an operator that reads what an unsafe one made is unsafe too.
pub(super) fn continues(operator: &str) -> bool {
    CONTINUES.contains(&operator)
}

/// Whether its result can be read in half precision again.
pub(super) fn returns(operator: &str) -> bool {
    RETURNS.contains(&operator)
}

/// Whether an input stays in float32.
pub(super) fn steers(operator: &str, input: usize) -> bool {
    STEERING.contains(&(operator, input))
}

/// Whether a provider has a kernel for an operator in half precision that is worth its casts: what computes on the CPU
/// is float32 all around, so that a lone kernel in half precision (`LayerNormalization`, `Clip`) would cost more than it
/// saves.
pub(super) fn has_kernel(provider: ProviderClass, target: Half, node: &NodeProto) -> bool {
    let operator = node.op_type();
    match (provider, target) {
        (ProviderClass::Cpu, _) if !moves(node) => false,
        (ProviderClass::Cpu, Half::Fp16) => MOVES.iter().any(|(name, fp16, _)| *name == operator && *fp16),
        (ProviderClass::Cpu, Half::Bf16) => MOVES.iter().any(|(name, _, bf16)| *name == operator && *bf16),
        (ProviderClass::Cuda, Half::Fp16) => !CUDA_WITHOUT_FP16.contains(&operator),
        (ProviderClass::Cuda, Half::Bf16) => moves(node) || CUDA_WITH_BF16.contains(&operator),
    }
}
