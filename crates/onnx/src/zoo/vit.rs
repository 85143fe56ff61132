//! ViT-B/16.
//!
//! Input: `input` `[batch, 3, side, side]`. Output: `logits` `[batch, classes]`. Names are those of torchvision's modules.
//! Deliberately absent: other widths and patches. Position embeddings are as many as the images have patches, and one.

use super::builder::{Builder, Value};
use super::layers::{LOGIT_DEVIATION, add, classifier, concat, convolution, images, scaled};
use super::transformer::{
    BRANCH_GAIN, Mask, attention, gelu, joint_projection, layer_norm, linear, reshape, to_heads, token, transpose,
};
use super::weights::Recipe;
use super::{Architecture, Image, Sizes};
use crate::proto::AttributeProto;

/// ViT-B/16.
pub(super) const VIT_B_16: Architecture = Architecture {
    name: "vit_b_16",
    title: "ViT-B/16",
    parameters: 86_567_656,
    macs: 17_563_828_224,
    input: "batch x 3 x 224 x 224",
    classes: Some(1000),
    image: Some(Image { side: 224, patch: PATCH as u32 }),
    caches: &[],
    source: "Dosovitskiy et al.: An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale (ICLR 2021); \
             structure and counts of torchvision/models/vision_transformer.py",
    network,
};

const LAYERS: u64 = 12;
const WIDTH: u64 = 768;
const HEADS: u64 = 12;
const PATCH: u64 = 16;

/// Of the normalisations.
const EPSILON: f32 = 1e-6;

fn network(builder: &mut Builder, Sizes { classes, side, .. }: Sizes) {
    let x = images(builder, side);
    let mut x = tokens(builder, &x);
    for number in 0..LAYERS {
        x = layer(builder, &x, &format!("encoder.layers.encoder_layer_{number}"));
    }
    let x = layer_norm(builder, &x, "encoder.ln", EPSILON);
    let x = token(builder, &x, "class_token.gather", 0);
    classifier(builder, &x, "heads.head", classes, LOGIT_DEVIATION);
}

/// `[n, 3, side, side]` to `[n, 1 + patches, 768]`: the class token, then the patches, with position embeddings.
fn tokens(builder: &mut Builder, x: &Value) -> Value {
    let patches = patches(builder, x);
    let class = builder.parameter("class_token", &[1, 1, WIDTH], &Recipe::Uniform { low: -0.2, high: 0.2 });
    let range = vec![AttributeProto::of_int("start", 0), AttributeProto::of_int("end", 1)];
    let batch = builder.node("Shape", "class_token.batch", &[x], range, &[1]);
    let rest = builder.integers(&[1, WIDTH as i64]);
    let shape = concat(builder, &[&batch, &rest], 0, "class_token.shape");
    let class = builder.node("Expand", "class_token.expand", &[&class, &shape], vec![], &[x.shape[0], 1, WIDTH]);
    let tokens = concat(builder, &[&class, &patches], 1, "class_token.concat");
    let recipe = Recipe::Uniform { low: -0.2, high: 0.2 };
    let positions = builder.parameter("encoder.pos_embedding", &[1, tokens.shape[1], WIDTH], &recipe);
    add(builder, &tokens, &positions, "encoder.pos_embedding.add")
}

/// `[n, 3, side, side]` to `[n, patches, 768]`: 196 of them for a side of 224.
fn patches(builder: &mut Builder, x: &Value) -> Value {
    let filters = [WIDTH, x.shape[1], PATCH, PATCH];
    let summed = filters[1..].iter().product();
    let deviations = scaled(builder, "conv_proj.weight", WIDTH, 1.0 / (summed as f64).sqrt());
    let weight = builder.parameter("conv_proj.weight", &filters, &Recipe::Filters { deviations: &deviations });
    let bias = builder.parameter("conv_proj.bias", &[WIDTH], &Recipe::Uniform { low: -0.1, high: 0.1 });
    let shape = [x.shape[0], WIDTH, x.shape[2] / PATCH, x.shape[3] / PATCH];
    builder.count_macs(&shape, summed);
    let x = builder.node("Conv", "conv_proj", &[x, &weight, &bias], convolution(PATCH, PATCH, 0, 1), &shape);
    let x = reshape(builder, &x, "conv_proj.reshape", &[0, WIDTH as i64, -1]);
    transpose(builder, &x, "conv_proj.transpose", &[0, 2, 1])
}

/// Normalised attention and normalised multilayer perceptron, each added to its input.
fn layer(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let attended = layer_norm(builder, x, &format!("{name}.ln_1"), EPSILON);
    let attended = self_attention(builder, &attended, &format!("{name}.self_attention"));
    let x = add(builder, &attended, x, &format!("{name}.add_1"));
    let hidden = layer_norm(builder, &x, &format!("{name}.ln_2"), EPSILON);
    let hidden = linear(builder, &hidden, &format!("{name}.mlp.0"), 4 * WIDTH, 1.0);
    let hidden = gelu(builder, &hidden, &format!("{name}.mlp.1"));
    let hidden = linear(builder, &hidden, &format!("{name}.mlp.3"), WIDTH, BRANCH_GAIN);
    add(builder, &x, &hidden, &format!("{name}.add_2"))
}

/// Attention with one matrix for queries, keys and values.
fn self_attention(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let parts = joint_projection(builder, x, &format!("{name}.in_proj"));
    let [queries, keys, values] = parts.map(|part| to_heads(builder, &part, &part.name, HEADS));
    let context = attention(builder, [&queries, &keys, &values], &Mask::None, name);
    linear(builder, &context, &format!("{name}.out_proj"), WIDTH, BRANCH_GAIN)
}
