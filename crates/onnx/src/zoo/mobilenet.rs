//! MobileNetV2 at width 1.
//!
//! Input: `input` `[batch, 3, side, side]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules.
//! Deliberately absent: other widths.

use super::builder::{Builder, Value};
use super::layers::{Conv, LOGIT_DEVIATION, add, batch_norm, conv, images, pooled_classifier, relu6};
use super::moments::Moments;
use super::{Architecture, Image, Sizes};

/// MobileNetV2.
pub(super) const MOBILENET_V2: Architecture = Architecture {
    name: "mobilenet_v2",
    title: "MobileNetV2",
    parameters: 3_504_872,
    macs: 300_774_272,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    image: Some(Image::USUAL),
    caches: &[],
    source: "Sandler, Howard, Zhu, Zhmoginov and Chen: MobileNetV2: Inverted Residuals and Linear Bottlenecks (CVPR 2018); \
             structure and counts of torchvision/models/mobilenetv2.py",
    network,
};

/// Table 2 of the paper: expansion, output channels, blocks, stride of the first.
const STAGES: [(u64, u64, u64, u64); 7] =
    [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)];

fn network(builder: &mut Builder, Sizes { classes, side, .. }: Sizes) {
    let x = images(builder, side);
    let mut x = activated(builder, &x, "features.0", Conv { kernel: 3, stride: 2, ..point(32) }, Moments::OPEN);
    let mut number = 1;
    for (expansion, channels, blocks, stride) in STAGES {
        for index in 0..blocks {
            let stride = if index == 0 { stride } else { 1 };
            x = block(builder, &x, &format!("features.{number}"), expansion, channels, stride);
            number += 1;
        }
    }
    let x = activated(builder, &x, &format!("features.{number}"), point(1280), Moments::SPARSE);
    pooled_classifier(builder, &x, "classifier.1", classes, LOGIT_DEVIATION);
}

/// A convolution of one by one.
fn point(channels: u64) -> Conv {
    Conv { channels, kernel: 1, stride: 1, groups: 1 }
}

/// Expand, filter each channel by itself, project; added to the input where the shapes allow.
fn block(builder: &mut Builder, x: &Value, name: &str, expansion: u64, channels: u64, stride: u64) -> Value {
    let wide = x.shape[1] * expansion;
    let (mut branch, mut layer) = (x.clone(), 0);
    if expansion > 1 {
        branch = activated(builder, &branch, &format!("{name}.conv.0"), point(wide), Moments::OPEN);
        layer = 1;
    }
    let depthwise = Conv { kernel: 3, stride, groups: wide, ..point(wide) };
    branch = activated(builder, &branch, &format!("{name}.conv.{layer}"), depthwise, Moments::OPEN);
    branch = conv(builder, &branch, &format!("{name}.conv.{}", layer + 1), point(channels));
    let is_residual = stride == 1 && channels == x.shape[1];
    let wanted = if is_residual { Moments::BRANCH } else { Moments::NORMAL };
    branch = batch_norm(builder, &branch, &format!("{name}.conv.{}", layer + 2), wanted);
    if is_residual { add(builder, x, &branch, &format!("{name}.add")) } else { branch }
}

/// Convolution, normalisation, ReLU6.
fn activated(builder: &mut Builder, x: &Value, name: &str, layer: Conv, wanted: Moments) -> Value {
    let x = conv(builder, x, &format!("{name}.0"), layer);
    let x = batch_norm(builder, &x, &format!("{name}.1"), wanted);
    relu6(builder, &x, &format!("{name}.2"))
}
