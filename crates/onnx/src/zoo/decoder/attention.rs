//! Attention over a cache of keys and values, in the operators of each form.
//!
//! Input: what goes into a layer, `[batch, sequence, width]`, and its cache. Output: what attention adds, of the same shape, and
//! the cache with the new tokens. Deliberately absent: names and shapes of the model's inputs and outputs.

use super::super::builder::{Builder, Value};
use super::super::gpt2::PARTS;
use super::super::layers::concat;
use super::super::transformer::{
    ATTENTION_GAIN, BRANCH_GAIN, Mask, attention, from_heads, projection, reshape, to_heads,
};
use super::rotary::turned;
use crate::proto::AttributeProto;

/// The heads of every layer.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) queries: u64,
    /// Heads of keys and values, each for several of queries.
    pub(super) shared: u64,
    /// Width of each.
    pub(super) size: u64,
}

/// What each layer is given besides tokens and cache.
pub(super) enum Place {
    /// Which tokens each one sees, `[batch, 1, sequence, total]`, and cosines and sines of the positions of the new ones,
    /// `[batch, 1, sequence, head]`. Without a past the cache begins with the new tokens; the past that is given is not read.
    Plain { mask: Value, turns: [Value; 2], has_past: bool },
    /// The index of the last token of each row, the length of the longest row, and cosines and sines of all positions.
    Shared { last: Value, total: Value, tables: [Value; 2] },
    /// Positions of the new tokens, where each row is written, its length afterwards, and cosines and sines of all positions.
    Static { positions: Value, start: Value, filled: Value, tables: [Value; 2] },
}

/// `[batch, sequence, width]` to the same, and the layer's keys and values with the new ones.
pub(super) fn self_attention(
    builder: &mut Builder,
    x: &Value,
    past: &[Value; 2],
    place: &Place,
    heads: &Heads,
    name: &str,
) -> (Value, [Value; 2]) {
    let joint = (heads.queries + 2 * heads.shared) * heads.size;
    let joint = projection(builder, x, &format!("{name}.qkv_proj"), joint, ATTENTION_GAIN);
    let (context, present) = match place {
        Place::Plain { mask, turns, has_past } => {
            let qkv = apart(builder, &joint, heads, name);
            plain_attention(builder, qkv, has_past.then_some(past), mask, turns, name)
        }
        Place::Shared { last, total, tables } => {
            grouped_attention(builder, &joint, past, [last, total, &tables[0], &tables[1]], heads, name)
        }
        Place::Static { positions, start, filled, tables } => {
            let qkv = apart(builder, &joint, heads, name);
            static_attention(builder, qkv, past, [positions, start, filled, &tables[0], &tables[1]], name)
        }
    };
    (projection(builder, &context, &format!("{name}.o_proj"), x.shape[2], BRANCH_GAIN), present)
}

/// Queries, keys and values, `[batch, heads, sequence, head]` each, of their joint projection.
fn apart(builder: &mut Builder, joint: &Value, heads: &Heads, name: &str) -> [Value; 3] {
    let parts = [("query", heads.queries), ("key", heads.shared), ("value", heads.shared)];
    let sizes = builder.integers(&parts.map(|(_, count)| (count * heads.size) as i64));
    let outputs =
        parts.map(|(part, count)| (format!("{name}.{part}"), vec![joint.shape[0], joint.shape[1], count * heads.size]));
    let axis = vec![AttributeProto::of_int("axis", -1)];
    let split = builder.node_of("Split", &format!("{name}.split"), &[joint, &sizes], axis, outputs);
    split.map(|part| {
        let heads = part.shape[2] / heads.size;
        to_heads(builder, &part, &part.name, heads)
    })
}

/// By operators that every exporter writes; the cache grows by the new tokens.
fn plain_attention(
    builder: &mut Builder,
    [queries, keys, values]: [Value; 3],
    past: Option<&[Value; 2]>,
    mask: &Value,
    turns: &[Value; 2],
    name: &str,
) -> (Value, [Value; 2]) {
    let queries = turned(builder, &queries, turns, &format!("{name}.query.rotary"));
    let keys = turned(builder, &keys, turns, &format!("{name}.key.rotary"));
    let present = match past {
        Some(past) => {
            let keys = concat(builder, &[&past[0], &keys], 2, &format!("{name}.key.present"));
            [keys, concat(builder, &[&past[1], &values], 2, &format!("{name}.value.present"))]
        }
        None => [keys, values],
    };
    let [keys, values] = [0, 1].map(|index| {
        let name = format!("{name}.{}", PARTS[index]);
        repeated(builder, &present[index], queries.shape[1], &name)
    });
    (attention(builder, [&queries, &keys, &values], &Mask::Chosen(mask), name), present)
}

/// Heads of keys or values as often as queries need them: `[batch, heads, total, head]`.
fn repeated(builder: &mut Builder, x: &Value, heads: u64, name: &str) -> Value {
    let [batch, shared, total, head] = [x.shape[0], x.shape[1], x.shape[2], x.shape[3]];
    let group = heads / shared;
    let (axes, sizes) = (builder.integers(&[2]), builder.integers(&[1, 1, group as i64, 1, 1]));
    let apart = [batch, shared, 1, total, head];
    let apart = builder.node("Unsqueeze", &format!("{name}.apart"), &[x, &axes], vec![], &apart);
    let shape = [batch, shared, group, total, head];
    let wide = builder.node("Expand", &format!("{name}.expanded"), &[&apart, &sizes], vec![], &shape);
    reshape(builder, &wide, &format!("{name}.repeated"), &[0, heads as i64, -1, head as i64])
}

/// By ONNX Runtime's operator, which turns queries and keys too; past and present may be one buffer.
fn grouped_attention(
    builder: &mut Builder,
    joint: &Value,
    past: &[Value; 2],
    [last, total, cosines, sines]: [&Value; 4],
    heads: &Heads,
    name: &str,
) -> (Value, [Value; 2]) {
    let [batch, new, length] = [joint.shape[0], joint.shape[1], past[0].shape[2] + joint.shape[1]];
    let attributes = vec![
        AttributeProto::of_int("num_heads", heads.queries as i64),
        AttributeProto::of_int("kv_num_heads", heads.shared as i64),
        AttributeProto::of_int("do_rotary", 1),
    ];
    let present = vec![batch, heads.shared, length, heads.size];
    let outputs = [
        (format!("{name}.context"), vec![batch, new, heads.queries * heads.size]),
        (format!("{name}.key.present"), present.clone()),
        (format!("{name}.value.present"), present),
    ];
    let none = Value::absent();
    let inputs = [joint, &none, &none, &past[0], &past[1], last, total, cosines, sines];
    builder.count_macs(&[batch, heads.queries, new, heads.size], 2 * length);
    let operator = "com.microsoft.GroupQueryAttention";
    let [context, keys, values] = builder.node_of(operator, &format!("{name}.attention"), &inputs, attributes, outputs);
    (context, [keys, values])
}

/// By the standard's operators: new tokens are written into a cache of fixed length, and the end of it is not seen.
fn static_attention(
    builder: &mut Builder,
    [queries, keys, values]: [Value; 3],
    past: &[Value; 2],
    [positions, start, filled, cosines, sines]: [&Value; 5],
    name: &str,
) -> (Value, [Value; 2]) {
    let [queries, keys] = [(queries, "query"), (keys, "key")].map(|(x, part)| {
        let inputs = [&x, cosines, sines, positions];
        builder.node("RotaryEmbedding", &format!("{name}.{part}.rotary"), &inputs, vec![], &x.shape)
    });
    let present = [(&past[0], keys, "key"), (&past[1], values, "value")].map(|(cache, new, part)| {
        let name = format!("{name}.{part}.written");
        builder.node("TensorScatter", &name, &[cache, &new, start], vec![], &cache.shape)
    });
    let none = Value::absent();
    let inputs = [&queries, &present[0], &present[1], &none, &none, &none, filled];
    builder.count_macs(&queries.shape, 2 * present[0].shape[2]);
    let causal = vec![AttributeProto::of_int("is_causal", 1)];
    let context = builder.node("Attention", &format!("{name}.attention"), &inputs, causal, &queries.shape);
    (from_heads(builder, &context, name), present)
}
