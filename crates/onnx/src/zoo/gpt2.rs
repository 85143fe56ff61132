//! GPT-2 small as a decoder with a cache of keys and values.
//!
//! Input: `input_ids`, int64 `[batch, sequence]`, and for each layer N `past_key_values.N.key` and `.value`, float32
//! `[batch, 12, past_sequence, 64]`; together up to 1024 tokens. Output: `logits` `[batch, sequence, 50257]`, and
//! `present.N.key` and `.value`, the past with the new tokens behind it. A step of generation has a sequence of one.
//! Names are those of Hugging Face's `GPT2LMHeadModel` and of its exports. Deliberately absent: a mask of padding and
//! position ids as inputs; both follow from the shapes here, so that no third size has to agree with the other two.

use super::builder::{Builder, Value};
use super::layers::{add, concat};
use super::transformer::{
    BRANCH_GAIN, Mask, attention, embedding, gelu_by_tanh, joint_projection, layer_norm, linear, named, reshape, table,
    to_heads,
};
use super::{Architecture, CacheForm};
use crate::proto::AttributeProto;
use crate::signature::{Dimension, ElementType};

/// GPT-2 small.
pub(super) const GPT2_SMALL: Architecture = Architecture {
    name: "gpt2_small",
    title: "GPT-2 small, with key/value cache",
    parameters: 124_439_808,
    macs: 125_909_760,
    input: "batch x sequence (1), with a past of 24 x batch x 12 x past_sequence (128) x 64",
    classes: None,
    image: None,
    caches: &[CacheForm::Grown],
    source: "Radford, Wu, Child, Luan, Amodei and Sutskever: Language Models are Unsupervised Multitask Learners (2019); \
             structure and parameters of transformers' GPT2LMHeadModel, whose head shares the word embeddings",
    network: |builder, _| network(builder),
};

const LAYERS: u64 = 12;
const WIDTH: u64 = 768;
const HEADS: u64 = 12;
const VOCABULARY: u64 = 50_257;
const POSITIONS: u64 = 1024;

/// Tokens before the one of the usual step.
const USUAL_PAST: u64 = 128;

/// Of the normalisations.
const EPSILON: f32 = 1e-5;

/// Of the embeddings. It is also what spreads the logits, because the head shares the table.
const EMBEDDING_DEVIATION: f64 = 0.06;

fn network(builder: &mut Builder) {
    let (batch, sequence) = ((named("batch"), 1), (named("sequence"), 1));
    let tokens = builder.input("input_ids", &ElementType::Int64, &[batch, sequence]);
    let pasts: Vec<[Value; 2]> = (0..LAYERS).map(|number| past(builder, number)).collect();
    let words = table(builder, "transformer.wte.weight", VOCABULARY, WIDTH, EMBEDDING_DEVIATION);
    let position_embeddings = table(builder, "transformer.wpe.weight", POSITIONS, WIDTH, EMBEDDING_DEVIATION);
    let (positions, mask) = positions_and_mask(builder, &tokens, Some(&pasts[0][0]));
    let word = embedding(builder, &words, &tokens, "transformer.wte");
    let position = embedding(builder, &position_embeddings, &positions, "transformer.wpe");
    let mut x = add(builder, &word, &position, "transformer.embeddings");
    builder.declare(&x, &[named("batch"), named("sequence"), Dimension::Fixed(WIDTH)]);
    let mut presents = Vec::new();
    for (number, past) in pasts.iter().enumerate() {
        let (sum, present) = layer(builder, &x, past, &mask, &format!("transformer.h.{number}"));
        x = sum;
        presents.push(present);
    }
    let x = layer_norm(builder, &x, "transformer.ln_f", EPSILON);
    let logits = head(builder, &x, &words, &tokens);
    builder.output(&logits, "logits", &[named("batch"), named("sequence"), Dimension::Fixed(VOCABULARY)]);
    for (number, present) in presents.iter().enumerate() {
        for (part, value) in PARTS.iter().zip(present) {
            builder.output(value, &format!("present.{number}.{part}"), &cache("past_sequence + sequence"));
        }
    }
}

/// What a layer remembers of each token.
pub(super) const PARTS: [&str; 2] = ["key", "value"];

/// The shape of one part of the cache.
fn cache(length: &str) -> [Dimension; 4] {
    [named("batch"), Dimension::Fixed(HEADS), named(length), Dimension::Fixed(WIDTH / HEADS)]
}

/// The inputs of a layer for keys and values of earlier tokens.
fn past(builder: &mut Builder, number: u64) -> [Value; 2] {
    PARTS.map(|part| {
        let name = format!("past_key_values.{number}.{part}");
        let sizes = [1, HEADS, USUAL_PAST, WIDTH / HEADS];
        let shape: Vec<(Dimension, u64)> = cache("past_sequence").into_iter().zip(sizes).collect();
        builder.input(&name, &ElementType::Float32, &shape)
    })
}

/// The positions of the new tokens `[batch, sequence]`, `[sequence]`, and which tokens each of them sees,
/// `[sequence, past + sequence]`: those up to its own. The past is keys or values, `[batch, heads, past, size]`.
pub(super) fn positions_and_mask(builder: &mut Builder, tokens: &Value, past: Option<&Value>) -> (Value, Value) {
    let (new, old) = (tokens.shape[1], past.map_or(0, |past| past.shape[2]));
    let sequence = size(builder, tokens, 1, "positions.sequence");
    let past = match past {
        Some(past) => size(builder, past, 2, "positions.past_sequence"),
        None => builder.integer(0),
    };
    let total = add(builder, &past, &sequence, "positions.total_sequence");
    let (zero, one) = (builder.integer(0), builder.integer(1));
    let positions = builder.node("Range", "positions", &[&past, &total, &one], vec![], &[new]);
    let all = builder.node("Range", "mask.positions", &[&zero, &total, &one], vec![], &[old + new]);
    let axes = builder.integers(&[-1]);
    let rows = builder.node("Unsqueeze", "mask.unsqueeze", &[&positions, &axes], vec![], &[new, 1]);
    let mask = builder.node("GreaterOrEqual", "mask", &[&rows, &all], vec![], &[new, old + new]);
    (positions, mask)
}

/// A size of a value, as a scalar.
pub(super) fn size(builder: &mut Builder, x: &Value, axis: i64, name: &str) -> Value {
    let shape = builder.node("Shape", &format!("{name}.shape"), &[x], vec![], &[x.shape.len() as u64]);
    let axis = builder.integer(axis);
    builder.node("Gather", name, &[&shape, &axis], vec![AttributeProto::of_int("axis", 0)], &[])
}

/// Normalised attention and normalised multilayer perceptron, each added to its input; and the keys and values of all
/// tokens.
fn layer(builder: &mut Builder, x: &Value, past: &[Value; 2], mask: &Value, name: &str) -> (Value, [Value; 2]) {
    let normal = layer_norm(builder, x, &format!("{name}.ln_1"), EPSILON);
    let parts = joint_projection(builder, &normal, &format!("{name}.attn.c_attn"));
    let [queries, keys, values] = parts.map(|part| to_heads(builder, &part, &part.name, HEADS));
    let keys = concat(builder, &[&past[0], &keys], 2, &format!("{name}.attn.present_key"));
    let values = concat(builder, &[&past[1], &values], 2, &format!("{name}.attn.present_value"));
    let qkv = [&queries, &keys, &values];
    let context = attention(builder, qkv, &Mask::Chosen(mask), &format!("{name}.attn"));
    let context = linear(builder, &context, &format!("{name}.attn.c_proj"), WIDTH, BRANCH_GAIN);
    let x = add(builder, &context, x, &format!("{name}.add_1"));
    let hidden = layer_norm(builder, &x, &format!("{name}.ln_2"), EPSILON);
    let hidden = linear(builder, &hidden, &format!("{name}.mlp.c_fc"), 4 * WIDTH, 1.0);
    let hidden = gelu_by_tanh(builder, &hidden, &format!("{name}.mlp.act"));
    let hidden = linear(builder, &hidden, &format!("{name}.mlp.c_proj"), WIDTH, BRANCH_GAIN);
    (add(builder, &x, &hidden, &format!("{name}.add_2")), [keys, values])
}

/// `[n, tokens, width]` to `[n, tokens, words]` by the table of words itself.
///
/// A Gemm reads the table as it lies. A MatMul would need a transposed one, which is a second copy of 154 MB, or a
/// transposition in every step where nothing folds it away.
fn head(builder: &mut Builder, x: &Value, words: &Value, tokens: &Value) -> Value {
    let rows = reshape(builder, x, "lm_head.rows", &[-1, WIDTH as i64]);
    let shape = [rows.shape[0], VOCABULARY];
    builder.count_macs(&shape, WIDTH);
    let logits = builder.node("Gemm", "lm_head", &[&rows, words], vec![AttributeProto::of_int("transB", 1)], &shape);
    let sizes = builder.node("Shape", "lm_head.tokens", &[tokens], vec![], &[2]);
    let last = builder.integers(&[VOCABULARY as i64]);
    let sizes = concat(builder, &[&sizes, &last], 0, "lm_head.shape");
    let shape = [x.shape[0], x.shape[1], VOCABULARY];
    builder.node("Reshape", "lm_head.reshape", &[&logits, &sizes], vec![], &shape)
}
