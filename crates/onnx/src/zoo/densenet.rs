//! DenseNet-121.
//!
//! Input: `input` `[batch, 3, side, side]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules;
//! as there, each layer joins all earlier features of its block anew. Deliberately absent: the deeper variants.

use super::builder::{Builder, Value};
use super::layers::{Conv, average_pool, batch_norm, concat, conv, images, pooled_classifier, relu, relu_and_max_pool};
use super::moments::Moments;
use super::{Architecture, Image, Sizes};

/// DenseNet-121.
pub(super) const DENSENET121: Architecture = Architecture {
    name: "densenet121",
    title: "DenseNet-121",
    parameters: 7_978_856,
    macs: 2_834_161_664,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    image: Some(Image::USUAL),
    caches: &[],
    source: "Huang, Liu, van der Maaten and Weinberger: Densely Connected Convolutional Networks (CVPR 2017); structure \
             and counts of torchvision/models/densenet.py",
    network,
};

/// Layers in each block.
const BLOCKS: [u64; 4] = [6, 12, 24, 16];

/// Channels that each layer adds.
const GROWTH: u64 = 32;

/// Channels between the two convolutions of a layer.
const BOTTLENECK: u64 = 4 * GROWTH;

/// Less than that of the other networks: twice 58 layers hand on what rounding did to all before them, and the pooling
/// between blocks leaves of that, which is alike everywhere, more than of the image.
const LOGIT_DEVIATION: f64 = 0.2;

fn network(builder: &mut Builder, Sizes { classes, side, .. }: Sizes) {
    let x = images(builder, side);
    let x = conv(builder, &x, "features.conv0", Conv { kernel: 7, stride: 2, ..point(64) });
    let x = batch_norm(builder, &x, "features.norm0", Moments::POOLED);
    let mut x = relu_and_max_pool(builder, &x, ["features.relu0", "features.pool0"]);
    for (number, layers) in (1..).zip(BLOCKS) {
        x = block(builder, x, &format!("features.denseblock{number}"), layers);
        if number < BLOCKS.len() {
            x = transition(builder, &x, &format!("features.transition{number}"));
        }
    }
    let x = batch_norm(builder, &x, "features.norm5", Moments::SPARSE);
    let x = relu(builder, &x, "relu");
    pooled_classifier(builder, &x, "classifier", classes, LOGIT_DEVIATION);
}

/// A convolution of one by one.
fn point(channels: u64) -> Conv {
    Conv { channels, kernel: 1, stride: 1, groups: 1 }
}

/// `[n, c, s, s]` to `[n, c + layers x 32, s, s]`.
fn block(builder: &mut Builder, x: Value, name: &str, layers: u64) -> Value {
    let mut features = vec![x];
    for number in 1..=layers {
        let layer = format!("{name}.denselayer{number}");
        let joined = joined(builder, &features, &format!("{layer}.concat"));
        let x = activated(builder, &joined, &layer, 1);
        let x = conv(builder, &x, &format!("{layer}.conv1"), point(BOTTLENECK));
        let x = activated(builder, &x, &layer, 2);
        let growth = Conv { kernel: 3, ..point(GROWTH) };
        features.push(conv(builder, &x, &format!("{layer}.conv2"), growth));
    }
    joined(builder, &features, &format!("{name}.concat"))
}

/// All features of a block so far; there is nothing to join where there is one.
fn joined(builder: &mut Builder, features: &[Value], name: &str) -> Value {
    match features {
        [only] => only.clone(),
        several => concat(builder, &several.iter().collect::<Vec<_>>(), 1, name),
    }
}

/// The normalisation and rectification that stand before the convolution of that number.
fn activated(builder: &mut Builder, x: &Value, layer: &str, number: u64) -> Value {
    let x = batch_norm(builder, x, &format!("{layer}.norm{number}"), Moments::OPEN);
    relu(builder, &x, &format!("{layer}.relu{number}"))
}

/// `[n, c, s, s]` to `[n, c / 2, s / 2, s / 2]`.
fn transition(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let half = x.shape[1] / 2;
    let x = batch_norm(builder, x, &format!("{name}.norm"), Moments::POOLED);
    let x = relu(builder, &x, &format!("{name}.relu"));
    let x = conv(builder, &x, &format!("{name}.conv"), point(half));
    average_pool(builder, &x, &format!("{name}.pool"))
}
