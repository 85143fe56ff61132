//! Which rule an operator has.
//!
//! Input: a node. Output: its outputs by its rule. Deliberately absent: nodes with graphs (`control`), and rules for
//! sequences, optional values, texts and training, whose outputs nothing is known of.

use super::site::{Mover, Outputs, Rule, Site};
use super::value::Moved;
use super::{
    Value, constant, convolution, create, elementwise, layout, matrix, microsoft, normalize, recurrent, reduce, resize,
    select, slice, spectral,
};

/// What the node's rule gives; `None` where it has none, or knows nothing.
pub(super) fn outputs(site: &Site<'_>) -> Outputs {
    let operator = site.node.op_type();
    let of_domain = match site.node.domain() {
        "" | "ai.onnx" => None,
        "com.microsoft" => microsoft::rule(operator),
        _ => return None,
    };
    if of_domain.is_none() && mover(operator).is_some() {
        let nothing = Value::default();
        let from = site.value(0).unwrap_or(&nothing);
        return Some(moved(site)?.into_iter().map(|output| from.moved(output)).collect());
    }
    of_domain.or_else(|| standard(operator))?(site)
}

/// What a node of the standard that computes nothing makes of its first input; `None` for every other node, and where
/// nothing is known.
pub(super) fn moved(site: &Site<'_>) -> Option<Vec<Moved>> {
    mover(site.node.op_type())?(site)
}

/// The rule of an operator whose outputs are elements of its first input.
fn mover(operator: &str) -> Option<Mover> {
    let mover: Mover = match operator {
        "Identity" => layout::identity,
        "Reshape" => layout::reshape,
        "Flatten" => layout::flatten,
        "Transpose" => layout::transpose,
        "Squeeze" => layout::squeeze,
        "Unsqueeze" => layout::unsqueeze,
        "Expand" => layout::expand,
        "Tile" => layout::tile,
        "Split" => slice::split,
        "Slice" => slice::slice,
        "Gather" => select::gather,
        _ => return None,
    };
    Some(mover)
}

/// The rule of one of the standard's operators.
fn standard(operator: &str) -> Option<Rule> {
    let rule: Rule = match operator {
        "Conv" | "ConvInteger" | "DeformConv" | "QLinearConv" => convolution::convolve,
        "ConvTranspose" => convolution::transpose,
        "MaxPool" | "AveragePool" | "LpPool" => convolution::pool,
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => convolution::global_pool,
        "MaxUnpool" => convolution::unpool,
        "MaxRoiPool" | "RoiAlign" => convolution::pool_regions,
        "Col2Im" => convolution::column_to_image,
        "GridSample" => convolution::sample_grid,
        "AffineGrid" => convolution::affine_grid,
        "Gemm" => matrix::gemm,
        "MatMul" | "MatMulInteger" => matrix::multiply_first_two,
        "QLinearMatMul" => matrix::multiply_quantized,
        "Einsum" => matrix::einsum,
        "Attention" => matrix::attention,
        "Det" => matrix::determinant,
        "DFT" => spectral::transform,
        "STFT" => spectral::transform_frames,
        "LSTM" | "GRU" | "RNN" => recurrent::recurrent,
        "ArgMax" | "ArgMin" => reduce::arg,
        "TopK" => reduce::top,
        "Resize" => resize::resize,
        "Upsample" => resize::upsample,
        "DepthToSpace" => layout::depth_to_space,
        "SpaceToDepth" => layout::space_to_depth,
        "Concat" => select::concat,
        "Pad" => slice::pad,
        "CenterCropPad" => slice::center_crop_pad,
        "GatherElements" => select::gather_elements,
        "GatherND" => select::gather_nd,
        "Compress" => select::compress,
        "OneHot" => select::one_hot,
        "NonZero" => select::non_zero,
        "NonMaxSuppression" => select::non_max_suppression,
        "Unique" => select::unique,
        "Constant" => constant::constant,
        "ConstantOfShape" => constant::constant_of_shape,
        "Shape" => create::shape,
        "Size" => create::size,
        "SequenceLength" | "OptionalHasElement" => create::scalar,
        "TfIdfVectorizer" => create::counted_words,
        "Range" => create::range,
        "RandomNormal" | "RandomUniform" => create::random,
        "Multinomial" => create::multinomial,
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => create::window,
        "BatchNormalization" => normalize::batch,
        "LayerNormalization" | "RMSNormalization" | "SimplifiedLayerNormalization" => normalize::layer,
        "DynamicQuantizeLinear" => normalize::quantize_dynamically,
        "Dropout" => elementwise::dropout,
        "SoftmaxCrossEntropyLoss" | "NegativeLogLikelihoodLoss" => reduce::loss,
        _ if operator.starts_with("Reduce") => reduce::reduce,
        _ if stretches(operator) => elementwise::stretch,
        _ if KEEPING.binary_search(&operator).is_ok() => elementwise::keep,
        _ => return None,
    };
    Some(rule)
}

/// Whether an operator stretches its inputs to one shape.
pub(super) fn stretches(operator: &str) -> bool {
    STRETCHING.binary_search(&operator).is_ok()
}

/// Operators that stretch their inputs to one shape, sorted.
#[rustfmt::skip]
const STRETCHING: [&str; 25] = [
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "StringConcat", "Sub", "Sum",
    "Where", "Xor",
];

/// Operators whose output has the shape of their first input, sorted.
#[rustfmt::skip]
const KEEPING: [&str; 70] = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitCast", "BitwiseNot", "Cast",
    "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumProd", "CumSum", "DequantizeLinear", "Elu", "Erf", "Exp",
    "EyeLike", "Floor", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax",
    "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization",
    "MeanVarianceNormalization", "Mish", "Neg", "Not", "QuantizeLinear", "RandomNormalLike", "RandomUniformLike",
    "Reciprocal", "RegexFullMatch", "Relu", "ReverseSequence", "RotaryEmbedding", "Round", "Scatter",
    "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "TensorScatter", "ThresholdedRelu", "Trilu",
];
