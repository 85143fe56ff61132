//! ResNet-18 and ResNet-50, the variant that torchvision trains (a stride stands in the three by three convolution).
//!
//! Input: `input` `[batch, 3, 224, 224]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules.
//! Deliberately absent: wide and grouped variants.

use super::Architecture;
use super::builder::{Builder, Value};
use super::layers::{Conv, add, batch_norm, conv, images, max_pool, pooled_classifier, relu};
use super::moments::Moments;

const SOURCE: &str = "He, Zhang, Ren and Sun: Deep Residual Learning for Image Recognition (CVPR 2016); structure and \
                      counts of torchvision/models/resnet.py";

/// ResNet-18.
pub(super) const RESNET18: Architecture = Architecture {
    name: "resnet18",
    title: "ResNet-18",
    parameters: 11_689_512,
    macs: 1_814_073_344,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    source: SOURCE,
    network: |builder, classes| network(builder, Block::Basic, [2, 2, 2, 2], classes),
};

/// ResNet-50.
pub(super) const RESNET50: Architecture = Architecture {
    name: "resnet50",
    title: "ResNet-50",
    parameters: 25_557_032,
    macs: 4_089_184_256,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    source: SOURCE,
    network: |builder, classes| network(builder, Block::Bottleneck, [3, 4, 6, 3], classes),
};

/// What is repeated.
#[derive(Clone, Copy)]
enum Block {
    /// Two convolutions of three by three.
    Basic,
    /// One by one, three by three, one by one to four times the width.
    Bottleneck,
}

/// What a block adds to its input: little, as training leaves it, so that depth does not blow up the sum.
const BRANCH: Moments = Moments { mean: 0.0, deviation: 0.4 };

fn network(builder: &mut Builder, block: Block, blocks: [u64; 4], classes: u64) {
    let x = images(builder);
    let x = normalised(builder, &x, "conv1", "bn1", Conv { kernel: 7, ..of(64, 2) }, Moments::NORMAL);
    let x = relu(builder, &x, "relu");
    let mut x = max_pool(builder, &x, "maxpool");
    for (stage, count) in (1..).zip(blocks) {
        let width = 32 << stage;
        for index in 0..count {
            let stride = if stage > 1 && index == 0 { 2 } else { 1 };
            x = residual(builder, &x, &format!("layer{stage}.{index}"), block, width, stride);
        }
    }
    pooled_classifier(builder, &x, "fc", classes);
}

/// A convolution of three by three.
fn of(channels: u64, stride: u64) -> Conv {
    Conv { channels, kernel: 3, stride, groups: 1 }
}

/// One block with its shortcut.
fn residual(builder: &mut Builder, x: &Value, name: &str, block: Block, width: u64, stride: u64) -> Value {
    let point = |channels| Conv { kernel: 1, ..of(channels, 1) };
    let convs = match block {
        Block::Basic => vec![of(width, stride), of(width, 1)],
        Block::Bottleneck => vec![point(width), of(width, stride), point(4 * width)],
    };
    let last = convs.len();
    let mut branch = x.clone();
    for (number, layer) in (1..).zip(convs) {
        let wanted = if number == last { BRANCH } else { Moments::NORMAL };
        let (conv, norm) = (format!("{name}.conv{number}"), format!("{name}.bn{number}"));
        branch = normalised(builder, &branch, &conv, &norm, layer, wanted);
        if number < last {
            branch = relu(builder, &branch, &format!("{name}.relu{number}"));
        }
    }
    let shortcut = if branch.shape == x.shape {
        x.clone()
    } else {
        let layer = Conv { stride, ..point(branch.shape[1]) };
        normalised(builder, x, &format!("{name}.downsample.0"), &format!("{name}.downsample.1"), layer, Moments::NORMAL)
    };
    let sum = add(builder, &branch, &shortcut, &format!("{name}.add"));
    relu(builder, &sum, &format!("{name}.relu"))
}

/// A convolution and its normalisation.
fn normalised(builder: &mut Builder, x: &Value, name: &str, norm: &str, layer: Conv, wanted: Moments) -> Value {
    let x = conv(builder, x, name, layer);
    batch_norm(builder, &x, norm, wanted)
}
