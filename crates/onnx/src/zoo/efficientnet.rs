//! EfficientNet-B0.
//!
//! Input: `input` `[batch, 3, side, side]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules.
//! Deliberately absent: the scaled variants B1 to B7, and stochastic depth, which does nothing at inference.

use super::builder::{Builder, Value};
use super::layers::{
    Conv, LOGIT_DEVIATION, add, batch_norm, conv, conv_with_bias, global_pool, images, mul, pooled_classifier, sigmoid,
    silu,
};
use super::moments::Moments;
use super::{Architecture, Image, Sizes};

/// EfficientNet-B0.
pub(super) const EFFICIENTNET_B0: Architecture = Architecture {
    name: "efficientnet_b0",
    title: "EfficientNet-B0",
    parameters: 5_288_548,
    macs: 385_814_752,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    image: Some(Image::USUAL),
    caches: &[],
    source: "Tan and Le: EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks (ICML 2019); structure \
             and counts of torchvision/models/efficientnet.py",
    network,
};

/// One row of the table in the paper.
struct Stage {
    expansion: u64,
    kernel: u64,
    stride: u64,
    channels: u64,
    blocks: u64,
}

/// Table 1 of the paper, without its first and last row.
const STAGES: [Stage; 7] = [
    Stage { expansion: 1, kernel: 3, stride: 1, channels: 16, blocks: 1 },
    Stage { expansion: 6, kernel: 3, stride: 2, channels: 24, blocks: 2 },
    Stage { expansion: 6, kernel: 5, stride: 2, channels: 40, blocks: 2 },
    Stage { expansion: 6, kernel: 3, stride: 2, channels: 80, blocks: 3 },
    Stage { expansion: 6, kernel: 5, stride: 1, channels: 112, blocks: 3 },
    Stage { expansion: 6, kernel: 5, stride: 2, channels: 192, blocks: 4 },
    Stage { expansion: 6, kernel: 3, stride: 1, channels: 320, blocks: 1 },
];

fn network(builder: &mut Builder, Sizes { classes, side, .. }: Sizes) {
    let x = images(builder, side);
    let mut x = activated(builder, &x, "features.0", Conv { kernel: 3, stride: 2, ..point(32) }, Moments::OPEN);
    for (number, stage) in (1..).zip(&STAGES) {
        for index in 0..stage.blocks {
            let stride = if index == 0 { stage.stride } else { 1 };
            x = block(builder, &x, &format!("features.{number}.{index}.block"), stage, stride);
        }
    }
    let x = activated(builder, &x, "features.8", point(1280), Moments::SPARSE);
    pooled_classifier(builder, &x, "classifier.1", classes, LOGIT_DEVIATION);
}

/// A convolution of one by one.
fn point(channels: u64) -> Conv {
    Conv { channels, kernel: 1, stride: 1, groups: 1 }
}

/// Expand, filter each channel by itself, squeeze and excite, project; added to the input where the shapes allow.
fn block(builder: &mut Builder, x: &Value, name: &str, stage: &Stage, stride: u64) -> Value {
    let wide = x.shape[1] * stage.expansion;
    let (mut branch, mut layer) = (x.clone(), 0);
    if stage.expansion > 1 {
        branch = activated(builder, &branch, &format!("{name}.0"), point(wide), Moments::OPEN);
        layer = 1;
    }
    let depthwise = Conv { kernel: stage.kernel, stride, groups: wide, ..point(wide) };
    branch = activated(builder, &branch, &format!("{name}.{layer}"), depthwise, Moments::OPEN);
    branch = excited(builder, &branch, &format!("{name}.{}", layer + 1), x.shape[1] / 4);
    let project = format!("{name}.{}", layer + 2);
    branch = conv(builder, &branch, &format!("{project}.0"), point(stage.channels));
    let is_residual = stride == 1 && stage.channels == x.shape[1];
    let wanted = if is_residual { Moments::BRANCH } else { Moments::NORMAL };
    branch = batch_norm(builder, &branch, &format!("{project}.1"), wanted);
    if is_residual { add(builder, &branch, x, &format!("{name}.add")) } else { branch }
}

/// Squeeze and excitation: each channel times a number from zero to one that all channels' means decide.
fn excited(builder: &mut Builder, x: &Value, name: &str, squeezed: u64) -> Value {
    let means = global_pool(builder, x, &format!("{name}.avgpool"));
    let hidden = conv_with_bias(builder, &means, &format!("{name}.fc1"), squeezed, 0.5);
    let hidden = silu(builder, &hidden, &format!("{name}.activation"));
    let gates = conv_with_bias(builder, &hidden, &format!("{name}.fc2"), x.shape[1], 0.5);
    let gates = sigmoid(builder, &gates, &format!("{name}.scale_activation"));
    // The sigmoid of a number near zero is near one half.
    let channels = x.channels.iter().map(|channel| channel.times(0.5)).collect();
    mul(builder, x, &gates, &format!("{name}.mul")).with_channels(channels)
}

/// Convolution, normalisation, SiLU.
fn activated(builder: &mut Builder, x: &Value, name: &str, layer: Conv, wanted: Moments) -> Value {
    let x = conv(builder, x, &format!("{name}.0"), layer);
    let x = batch_norm(builder, &x, &format!("{name}.1"), wanted);
    silu(builder, &x, &format!("{name}.2"))
}
