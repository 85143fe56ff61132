//! BERT-base and a tiny BERT of two layers, with the pooler.
//!
//! Input: `input_ids`, `attention_mask` and `token_type_ids`, int64 `[batch, sequence]`, up to 512 tokens. Output:
//! `last_hidden_state` `[batch, sequence, width]` and `pooler_output` `[batch, width]`. Names are those of Hugging Face's
//! `BertModel`. Deliberately absent: heads for tasks.

use super::Architecture;
use super::builder::{Builder, Value};
use super::layers::{add, gemm, mul};
use super::transformer::{
    ATTENTION_GAIN, BRANCH_GAIN, MASKED, Mask, attention, embedding, gelu, layer_norm, linear, named, table, to_heads,
    token,
};
use crate::proto::AttributeProto;
use crate::signature::{Dimension, ElementType};

const SOURCE: &str = "Devlin, Chang, Lee and Toutanova: BERT: Pre-training of Deep Bidirectional Transformers for \
                      Language Understanding (NAACL 2019); structure and parameters of transformers' BertModel with \
                      pooler; operations in Sun et al.: MobileBERT (ACL 2020), table 4, 22.5 GFLOPs";

/// BERT-base, uncased.
pub(super) const BERT_BASE: Architecture = Architecture {
    name: "bert_base",
    title: "BERT-base",
    parameters: 109_482_240,
    macs: 11_174_215_680,
    input: "batch x sequence (128), three times",
    classes: None,
    image: None,
    caches: &[],
    source: SOURCE,
    network: |builder, _| network(builder, Size { layers: 12, width: 768, heads: 12 }),
};

/// The smallest of the BERT miniatures.
pub(super) const BERT_TINY: Architecture = Architecture {
    name: "bert_tiny",
    title: "BERT tiny (2 layers, width 128)",
    parameters: 4_385_920,
    macs: 58_736_640,
    input: "batch x sequence (128), three times",
    classes: None,
    image: None,
    caches: &[],
    source: "Turc, Chang, Lee and Toutanova: Well-Read Students Learn Better: On the Importance of Pre-training Compact \
             Models (2019); structure and parameters of google/bert_uncased_L-2_H-128_A-2 as transformers' BertModel",
    network: |builder, _| network(builder, Size { layers: 2, width: 128, heads: 2 }),
};

/// What differs between the members of the family.
struct Size {
    layers: u64,
    width: u64,
    heads: u64,
}

const VOCABULARY: u64 = 30_522;
const POSITIONS: u64 = 512;
const TYPES: u64 = 2;

/// Tokens of the usual input.
const USUAL_SEQUENCE: u64 = 128;

/// Of the normalisations.
const EPSILON: f32 = 1e-12;

fn network(builder: &mut Builder, size: Size) {
    let shape = [(named("batch"), 1), (named("sequence"), USUAL_SEQUENCE)];
    let inputs = ["input_ids", "attention_mask", "token_type_ids"];
    let [tokens, seen, types] = inputs.map(|name| builder.input(name, &ElementType::Int64, &shape));
    let mask = mask(builder, &seen);
    let mut x = embeddings(builder, &tokens, &types, size.width);
    for number in 0..size.layers {
        x = layer(builder, &x, &mask, &format!("encoder.layer.{number}"), size.heads);
    }
    let first = token(builder, &x, "pooler.first_token", 0);
    let pooled = gemm(builder, &first, "pooler.dense", size.width, [1.0, 0.1]);
    let pooled = builder.node("Tanh", "pooler.activation", &[&pooled], vec![], &pooled.shape);
    let width = Dimension::Fixed(size.width);
    builder.output(&x, "last_hidden_state", &[named("batch"), named("sequence"), width.clone()]);
    builder.output(&pooled, "pooler_output", &[named("batch"), width]);
}

/// `[n, tokens]` of ones and zeros to `[n, 1, 1, tokens]` of what to add to the scores: zero, or very little.
fn mask(builder: &mut Builder, seen: &Value) -> Value {
    let axes = builder.integers(&[1, 2]);
    let shape = [seen.shape[0], 1, 1, seen.shape[1]];
    let seen = builder.node("Unsqueeze", "mask.unsqueeze", &[seen, &axes], vec![], &shape);
    let float = vec![AttributeProto::of_int("to", 1)];
    let seen = builder.node("Cast", "mask.cast", &[&seen], float, &shape);
    let (one, least) = (builder.float(1.0), builder.float(MASKED));
    let unseen = builder.node("Sub", "mask.unseen", &[&one, &seen], vec![], &shape);
    mul(builder, &unseen, &least, "mask")
}

/// `[n, tokens]` to `[n, tokens, width]`: the sum of what words, types and positions stand for, normalised. Words count
/// most, or else inputs would be alike.
fn embeddings(builder: &mut Builder, tokens: &Value, types: &Value, width: u64) -> Value {
    let tables = [("word", VOCABULARY, 0.04), ("position", POSITIONS, 0.02), ("token_type", TYPES, 0.01)];
    let [words, position_embeddings, kinds] = tables.map(|(part, rows, deviation)| {
        table(builder, &format!("embeddings.{part}_embeddings.weight"), rows, width, deviation)
    });
    let words = embedding(builder, &words, tokens, "embeddings.word_embeddings");
    let kinds = embedding(builder, &kinds, types, "embeddings.token_type_embeddings");
    let positions = positions(builder, tokens);
    let position_embeddings = embedding(builder, &position_embeddings, &positions, "embeddings.position_embeddings");
    let sum = add(builder, &words, &kinds, "embeddings.add_types");
    let sum = add(builder, &sum, &position_embeddings, "embeddings.add_positions");
    builder.declare(&sum, &[named("batch"), named("sequence"), Dimension::Fixed(width)]);
    layer_norm(builder, &sum, "embeddings.LayerNorm", EPSILON)
}

/// `[1, tokens]`: 0, 1, 2 ... for as many tokens as there are.
fn positions(builder: &mut Builder, tokens: &Value) -> Value {
    let all: Vec<i64> = (0..POSITIONS as i64).collect();
    let all = builder.integer_table("embeddings.position_ids", &[1, POSITIONS], &all);
    let range = vec![AttributeProto::of_int("start", 1), AttributeProto::of_int("end", 2)];
    let count = builder.node("Shape", "embeddings.sequence", &[tokens], range, &[1]);
    let (zero, one) = (builder.integers(&[0]), builder.integers(&[1]));
    let inputs = [&all, &zero, &count, &one];
    builder.node("Slice", "embeddings.positions", &inputs, vec![], &[1, tokens.shape[1]])
}

/// Attention and multilayer perceptron, each added to its input, and the sum normalised.
fn layer(builder: &mut Builder, x: &Value, mask: &Value, name: &str, heads: u64) -> Value {
    let width = x.shape[2];
    let attention_name = format!("{name}.attention");
    let [queries, keys, values] = ["query", "key", "value"].map(|part| {
        let part = format!("{attention_name}.self.{part}");
        let projected = linear(builder, x, &part, width, ATTENTION_GAIN);
        to_heads(builder, &projected, &part, heads)
    });
    let qkv = [&queries, &keys, &values];
    let context = attention(builder, qkv, &Mask::Added(mask), &format!("{attention_name}.self"));
    let context = linear(builder, &context, &format!("{attention_name}.output.dense"), width, BRANCH_GAIN);
    let sum = add(builder, &context, x, &format!("{attention_name}.output.add"));
    let x = layer_norm(builder, &sum, &format!("{attention_name}.output.LayerNorm"), EPSILON);
    let hidden = linear(builder, &x, &format!("{name}.intermediate.dense"), 4 * width, 1.0);
    let hidden = gelu(builder, &hidden, &format!("{name}.intermediate.activation"));
    let hidden = linear(builder, &hidden, &format!("{name}.output.dense"), width, BRANCH_GAIN);
    let sum = add(builder, &hidden, &x, &format!("{name}.output.add"));
    layer_norm(builder, &sum, &format!("{name}.output.LayerNorm"), EPSILON)
}
