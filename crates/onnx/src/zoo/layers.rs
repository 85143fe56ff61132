//! Layers of convolutional networks.
//!
//! Input: a value `[batch, channels, side, side]` and the name of the layer. Output: the nodes in the builder, and their
//! value. The operators are those that PyTorch's exporter writes for the torchvision modules, but for BatchNormalization,
//! which stays a node of its own. Deliberately absent: which layers make a network.

use super::builder::{Builder, Value};
use super::moments::{Moments, joint_deviation};
use super::weights::Recipe;
use crate::proto::AttributeProto;
use crate::signature::{Dimension, ElementType};

/// A convolution without bias.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conv {
    /// Number of output channels.
    pub(super) channels: u64,
    /// Height and width of the filters, odd.
    pub(super) kernel: u64,
    /// Step in both directions.
    pub(super) stride: u64,
    /// Groups of channels that do not meet: one, or as many as there are channels.
    pub(super) groups: u64,
}

/// The images: `input`, float32 `[batch, 3, side, side]`.
pub(super) fn images(builder: &mut Builder, side: u64) -> Value {
    let fixed = |size| (Dimension::Fixed(size), size);
    let batch = (Dimension::Named("batch".to_owned()), 1);
    let images = builder.input("input", &ElementType::Float32, &[batch, fixed(3), fixed(side), fixed(side)]);
    images.with_channels(vec![Moments::centred(1.0); 3])
}

/// `[n, c, s, s]` to `[n, channels, s / stride, s / stride]`, padded by half the kernel.
pub(super) fn conv(builder: &mut Builder, x: &Value, name: &str, conv: Conv) -> Value {
    let Conv { channels, kernel, stride, groups } = conv;
    let weight = filters(builder, x, name, conv, 1.0);
    let shape = spatial(x, channels, stride);
    builder.count_macs(&shape, weight.shape[1..].iter().product());
    let attributes = convolution(kernel, stride, kernel / 2, groups);
    builder.node("Conv", name, &[x, &weight], attributes, &shape).with_channels(weight.channels)
}

/// A convolution of one by one with a bias, as squeeze-and-excitation has them; its outputs have this standard deviation,
/// near enough.
pub(super) fn conv_with_bias(builder: &mut Builder, x: &Value, name: &str, channels: u64, deviation: f64) -> Value {
    let weight = filters(builder, x, name, Conv { channels, kernel: 1, stride: 1, groups: 1 }, deviation);
    let bias = builder.parameter(&format!("{name}.bias"), &[channels], &Recipe::Uniform { low: -0.2, high: 0.2 });
    let shape = spatial(x, channels, 1);
    builder.count_macs(&shape, x.shape[1]);
    let inputs = [x, &weight, &bias];
    builder.node("Conv", name, &inputs, convolution(1, 1, 0, 1), &shape).with_channels(weight.channels)
}

/// The weight of a convolution, with the moments of its outputs: each filter is scaled by what it meets, and then by a
/// scale of its own.
fn filters(builder: &mut Builder, x: &Value, name: &str, conv: Conv, deviation: f64) -> Value {
    let name = format!("{name}.weight");
    let shape = [conv.channels, x.shape[1] / conv.groups, conv.kernel, conv.kernel];
    let root = (shape[1..].iter().product::<u64>() as f64).sqrt();
    let alike = if conv.groups > 1 { ALIKE_NEIGHBOURS } else { 1.0 };
    let groups = x.channels.chunks(shape[1] as usize).map(|group| alike * joint_deviation(group));
    let filters_per_group = (conv.channels / conv.groups) as usize;
    let met = groups.flat_map(|deviation| std::iter::repeat_n(deviation, filters_per_group));
    let scales = scaled(builder, &name, conv.channels, deviation);
    let deviations: Vec<f64> = scales.iter().zip(met).map(|(scale, met)| scale / (met * root)).collect();
    let weight = builder.parameter(&name, &shape, &Recipe::Filters { deviations: &deviations });
    weight.with_channels(scales.into_iter().map(Moments::centred).collect())
}

/// Within its window a filter over one channel meets a smaller deviation from the mean than the channel's, because adjacent
/// pixels are alike.
const ALIKE_NEIGHBOURS: f64 = 0.945;

/// The attributes of a square convolution.
pub(super) fn convolution(kernel: u64, stride: u64, padding: u64, groups: u64) -> Vec<AttributeProto> {
    let pair = |value: u64| [value as i64; 2];
    vec![
        AttributeProto::of_ints("dilations", &[1, 1]),
        AttributeProto::of_int("group", groups as i64),
        AttributeProto::of_ints("kernel_shape", &pair(kernel)),
        AttributeProto::of_ints("pads", &[padding as i64; 4]),
        AttributeProto::of_ints("strides", &pair(stride)),
    ]
}

fn spatial(x: &Value, channels: u64, stride: u64) -> [u64; 4] {
    [x.shape[0], channels, x.shape[2].div_ceil(stride), x.shape[3].div_ceil(stride)]
}

/// Normalisation with running statistics near those of its input; what comes out has the given moments, near enough.
///
/// Near enough, and no nearer, because no two trained channels are alike; but what distinguishes channels does not
/// distinguish images, so it must stay small, or every image would have the same class.
pub(super) fn batch_norm(builder: &mut Builder, x: &Value, name: &str, wanted: Moments) -> Value {
    let shape = [x.shape[1]];
    let Moments { mean, deviation } = wanted;
    let weight = Recipe::Uniform { low: (1.0 - UNLIKE) * deviation, high: (1.0 + UNLIKE) * deviation };
    let weight = builder.parameter(&format!("{name}.weight"), &shape, &weight);
    let bias = Recipe::Uniform { low: mean - UNLIKE * deviation, high: mean + UNLIKE * deviation };
    let bias = builder.parameter(&format!("{name}.bias"), &shape, &bias);
    let (means, deviations): (Vec<f64>, Vec<f64>) = x.channels.iter().map(|x| (x.mean, x.deviation)).unzip();
    let near: Vec<f64> = deviations.iter().map(|deviation| UNLIKE * deviation).collect();
    let means =
        builder.buffer(&format!("{name}.running_mean"), &shape, &Recipe::About { centres: &means, distances: &near });
    let variances: Vec<f64> = deviations.iter().map(|deviation| deviation * deviation).collect();
    let near: Vec<f64> = variances.iter().map(|variance| UNLIKE * variance).collect();
    let variances = Recipe::About { centres: &variances, distances: &near };
    let variances = builder.buffer(&format!("{name}.running_var"), &shape, &variances);
    let attributes = vec![AttributeProto::of_float("epsilon", 1e-5), AttributeProto::of_float("momentum", 0.9)];
    let inputs = [x, &weight, &bias, &means, &variances];
    let channels = vec![wanted; x.channels.len()];
    builder.node("BatchNormalization", name, &inputs, attributes, &x.shape).with_channels(channels)
}

/// How far the channels of a normalisation are from what was asked for.
const UNLIKE: f64 = 0.02;

/// `max(x, 0)`.
pub(super) fn relu(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let channels = x.channels.iter().map(|channel| channel.rectified()).collect();
    builder.node("Relu", name, &[x], vec![], &x.shape).with_channels(channels)
}

/// `min(max(x, 0), 6)`.
pub(super) fn relu6(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let (low, high) = (builder.float(0.0), builder.float(6.0));
    let channels = x.channels.iter().map(|channel| channel.rectified()).collect();
    builder.node("Clip", name, &[x, &low, &high], vec![], &x.shape).with_channels(channels)
}

/// `1 / (1 + exp(-x))`.
pub(super) fn sigmoid(builder: &mut Builder, x: &Value, name: &str) -> Value {
    builder.node("Sigmoid", name, &[x], vec![], &x.shape)
}

/// `x sigmoid(x)`.
pub(super) fn silu(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let gate = sigmoid(builder, x, &format!("{name}.sigmoid"));
    let channels = x.channels.iter().map(|channel| channel.gated()).collect();
    mul(builder, x, &gate, name).with_channels(channels)
}

/// The sum of two values; the shape is that of the first.
pub(super) fn add(builder: &mut Builder, x: &Value, other: &Value, name: &str) -> Value {
    let channels = x.channels.iter().zip(&other.channels).map(|(x, other)| x.plus(*other)).collect();
    builder.node("Add", name, &[x, other], vec![], &x.shape).with_channels(channels)
}

/// The product of two values; the shape is that of the first.
pub(super) fn mul(builder: &mut Builder, x: &Value, other: &Value, name: &str) -> Value {
    builder.node("Mul", name, &[x, other], vec![], &x.shape)
}

/// Values side by side along an axis.
pub(super) fn concat(builder: &mut Builder, parts: &[&Value], axis: usize, name: &str) -> Value {
    let mut shape = parts.first().map(|part| part.shape.clone()).unwrap_or_default();
    shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
    let channels = parts.iter().flat_map(|part| part.channels.clone()).collect();
    let axis = vec![AttributeProto::of_int("axis", axis as i64)];
    builder.node("Concat", name, parts, axis, &shape).with_channels(channels)
}

/// `max(x, 0)`, and then the largest of each three by three, every second position.
pub(super) fn relu_and_max_pool(builder: &mut Builder, x: &Value, [relu, pool]: [&str; 2]) -> Value {
    let attributes = vec![
        AttributeProto::of_ints("kernel_shape", &[3, 3]),
        AttributeProto::of_ints("pads", &[1; 4]),
        AttributeProto::of_ints("strides", &[2, 2]),
    ];
    let shape = spatial(x, x.shape[1], 2);
    // The largest of the rectified is the largest, rectified.
    let channels = x.channels.iter().map(|channel| channel.largest_of_nine().rectified()).collect();
    let x = self::relu(builder, x, relu);
    builder.node("MaxPool", pool, &[&x], attributes, &shape).with_channels(channels)
}

/// The mean of each two by two, without an odd row or column at the end.
pub(super) fn average_pool(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let attributes =
        vec![AttributeProto::of_ints("kernel_shape", &[2, 2]), AttributeProto::of_ints("strides", &[2, 2])];
    let shape = [x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] / 2];
    let channels = x.channels.iter().map(|channel| channel.mean_of_four()).collect();
    builder.node("AveragePool", name, &[x], attributes, &shape).with_channels(channels)
}

/// The mean of each channel: `[n, c, 1, 1]`.
pub(super) fn global_pool(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let shape = [x.shape[0], x.shape[1], 1, 1];
    let channels = x.channels.iter().map(|channel| channel.mean_of_all()).collect();
    builder.node("GlobalAveragePool", name, &[x], vec![], &shape).with_channels(channels)
}

/// The end of every image classifier: `[n, c, s, s]` to the output `logits`, `[batch, classes]`.
pub(super) fn pooled_classifier(builder: &mut Builder, x: &Value, name: &str, classes: u64, deviation: f64) {
    let pooled = global_pool(builder, x, "avgpool");
    let axis = vec![AttributeProto::of_int("axis", 1)];
    let flat = builder.node("Flatten", "flatten", &[&pooled], axis, &pooled.shape[..2]);
    classifier(builder, &flat.with_channels(pooled.channels), name, classes, deviation);
}

/// `[n, c]` to the output `logits`, `[batch, classes]`: up to this standard deviation, those of one image differ from
/// those of other images.
pub(super) fn classifier(builder: &mut Builder, x: &Value, name: &str, classes: u64, deviation: f64) {
    let logits = gemm(builder, x, name, classes, [deviation, LARGEST_CLASS_BIAS]);
    builder.output(&logits, "logits", &[Dimension::Named("batch".to_owned()), Dimension::Fixed(classes)]);
}

/// How far the logits of one image are from those of other images, as [`classifier`] takes it.
///
/// Little, because images of noise differ by chance alone. What distinguishes them is a small part of the pooled
/// features, of which rounding changes the whole: if it were scaled up to all the spread that trained logits have, so
/// were the errors. The price: the cosine between the logits of two images is 0.98 to 0.99, so it hardly distinguishes
/// wrong outputs from right ones. The share of elements that are close does: with the tolerances of bf16 it is a half
/// at most.
pub(super) const LOGIT_DEVIATION: f64 = 0.4;

/// The rest of the spread: logits that all images have in common. With it their standard deviation is about 1.75; those of
/// trained classifiers have 2 to 4. The numbers are uniform so that many classes are near the largest, and images with
/// small differences still have different ones.
const LARGEST_CLASS_BIAS: f64 = 3.0;

/// `[n, c]` to `[n, outputs]`, with this standard deviation, near enough, and a bias up to the second number.
pub(super) fn gemm(builder: &mut Builder, x: &Value, name: &str, outputs: u64, [deviation, most]: [f64; 2]) -> Value {
    let (inputs, weight) = (x.shape[1], format!("{name}.weight"));
    let met = joint_deviation(&x.channels) * (inputs as f64).sqrt();
    let deviations = scaled(builder, &weight, outputs, deviation / met);
    let weight = builder.parameter(&weight, &[outputs, inputs], &Recipe::Filters { deviations: &deviations });
    let bias = builder.parameter(&format!("{name}.bias"), &[outputs], &Recipe::Uniform { low: -most, high: most });
    let shape = [x.shape[0], outputs];
    builder.count_macs(&shape, inputs);
    builder.node("Gemm", name, &[x, &weight, &bias], vec![AttributeProto::of_int("transB", 1)], &shape)
}

/// A standard deviation for each channel of a weight, about one for all.
pub(super) fn scaled(builder: &Builder, weight: &str, channels: u64, deviation: f64) -> Vec<f64> {
    builder.scales(weight, channels).into_iter().map(|scale| scale * deviation).collect()
}
