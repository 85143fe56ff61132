//! ResNet-18 and ResNet-50, the variant that torchvision trains (a stride stands in the three by three convolution).
//!
//! Input: `input` `[batch, 3, side, side]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules.
//! Deliberately absent: wide and grouped variants.

use super::builder::{Builder, Value};
use super::layers::{Conv, LOGIT_DEVIATION, add, batch_norm, conv, images, pooled_classifier, relu, relu_and_max_pool};
use super::moments::Moments;
use super::{Architecture, Image, Sizes};

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
    image: Some(Image::USUAL),
    caches: &[],
    source: SOURCE,
    network: |builder, sizes| network(builder, Block::Basic, [2, 2, 2, 2], sizes),
};

/// ResNet-50.
pub(super) const RESNET50: Architecture = Architecture {
    name: "resnet50",
    title: "ResNet-50",
    parameters: 25_557_032,
    macs: 4_089_184_256,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    image: Some(Image::USUAL),
    caches: &[],
    source: SOURCE,
    network: |builder, sizes| network(builder, Block::Bottleneck, [3, 4, 6, 3], sizes),
};

/// What is repeated.
#[derive(Clone, Copy)]
enum Block {
    /// Two convolutions of three by three.
    Basic,
    /// One by one, three by three, one by one to four times the width.
    Bottleneck,
}

/// What the last block adds: what it makes of the sum, a mean about one deviation below zero, is nearly as sparse as
/// [`Moments::SPARSE`] is in the other networks.
const LAST_BRANCH: Moments = Moments { mean: -2.0, ..Moments::BRANCH };

fn network(builder: &mut Builder, block: Block, blocks: [u64; 4], Sizes { classes, side, .. }: Sizes) {
    let x = images(builder, side);
    let x = normalised(builder, &x, "conv1", "bn1", Conv { kernel: 7, ..conv3x3(64, 2) }, Moments::POOLED);
    let mut x = relu_and_max_pool(builder, &x, ["relu", "maxpool"]);
    for (stage, count) in (1..).zip(blocks) {
        let width = 32 << stage;
        for index in 0..count {
            let stride = if stage > 1 && index == 0 { 2 } else { 1 };
            let added = if stage == blocks.len() && index + 1 == count { LAST_BRANCH } else { Moments::BRANCH };
            let name = format!("layer{stage}.{index}");
            x = residual(builder, &x, &name, &convolutions(block, width, stride), added);
        }
    }
    pooled_classifier(builder, &x, "fc", classes, LOGIT_DEVIATION);
}

/// A convolution of three by three.
fn conv3x3(channels: u64, stride: u64) -> Conv {
    Conv { channels, kernel: 3, stride, groups: 1 }
}

/// A convolution of one by one.
fn point(channels: u64) -> Conv {
    Conv { kernel: 1, ..conv3x3(channels, 1) }
}

/// Those of a block.
fn convolutions(block: Block, width: u64, stride: u64) -> Vec<Conv> {
    match block {
        Block::Basic => vec![conv3x3(width, stride), conv3x3(width, 1)],
        Block::Bottleneck => vec![point(width), conv3x3(width, stride), point(4 * width)],
    }
}

/// One block with its shortcut, to which the convolutions add what they should.
fn residual(builder: &mut Builder, x: &Value, name: &str, convs: &[Conv], added: Moments) -> Value {
    let last = convs.len();
    let mut branch = x.clone();
    for (number, layer) in (1..).zip(convs) {
        let wanted = if number == last { added } else { Moments::OPEN };
        let (conv, norm) = (format!("{name}.conv{number}"), format!("{name}.bn{number}"));
        branch = normalised(builder, &branch, &conv, &norm, *layer, wanted);
        if number < last {
            branch = relu(builder, &branch, &format!("{name}.relu{number}"));
        }
    }
    let shortcut = if branch.shape == x.shape {
        x.clone()
    } else {
        let layer = Conv { stride: convs.iter().map(|conv| conv.stride).product(), ..point(branch.shape[1]) };
        normalised(builder, x, &format!("{name}.downsample.0"), &format!("{name}.downsample.1"), layer, Moments::OPEN)
    };
    let sum = add(builder, &branch, &shortcut, &format!("{name}.add"));
    relu(builder, &sum, &format!("{name}.relu"))
}

/// A convolution and its normalisation.
fn normalised(builder: &mut Builder, x: &Value, name: &str, norm: &str, layer: Conv, wanted: Moments) -> Value {
    let x = conv(builder, x, name, layer);
    batch_norm(builder, &x, norm, wanted)
}
