//! Decoders of two sizes, built as Llama is: RMS norm, rotary positions, SwiGLU, heads that share keys and values.
//!
//! Input: `input_ids`, int64 `[batch_size, sequence_length]`, up to 2048 tokens with those before, and the cache of keys and
//! values, float32. Output: `logits` `[batch_size, sequence_length, vocabulary]` and the cache with the new tokens. How the
//! cache goes in and out is a [`CacheForm`]: its names, shapes and operators are those of the tool that writes the form. All
//! forms of one network have the same weights and give the same tokens. The head has a table of its own, so that a token does
//! not predict itself. Deliberately absent: trained networks of these sizes; a tokenizer.

mod attention;
mod rotary;

use super::builder::{Builder, Value};
use super::gpt2::{PARTS, positions_and_mask, size};
use super::layers::{add, mul, sigmoid};
use super::transformer::{BRANCH_GAIN, embedding, matmul, named, projection, table};
use super::weights::Recipe;
use super::{Architecture, CacheForm};
use crate::proto::AttributeProto;
use crate::signature::{Dimension, ElementType};
use attention::{Heads, Place, self_attention};

/// Four layers: fast enough for tests.
pub(super) const GPT_TINY: Architecture = Architecture {
    name: "gpt-tiny",
    title: "GPT tiny (4 layers, width 256), with key/value cache",
    parameters: 5_114_112,
    macs: 4_327_424,
    input: "batch_size x sequence_length (1), with a cache of 128 tokens",
    classes: None,
    image: None,
    caches: &CacheForm::ALL,
    source: "sizes of perfrun's own; structure of transformers' LlamaForCausalLM (Touvron et al.: LLaMA: Open and Efficient \
             Foundation Language Models, 2023), with the joint projection of its Phi3ForCausalLM",
    network: |builder, sizes| network(builder, &TINY, sizes.cache),
};

/// Twelve layers: as many parameters as GPT-2 small.
pub(super) const GPT_SMALL: Architecture = Architecture {
    name: "gpt-small",
    title: "GPT small (12 layers, width 768), with key/value cache",
    parameters: 124_668_672,
    macs: 102_451_200,
    network: |builder, sizes| network(builder, &SMALL, sizes.cache),
    ..GPT_TINY
};

/// What differs between the members of the family.
struct Size {
    layers: u64,
    heads: Heads,
    /// Width of the multilayer perceptron.
    hidden: u64,
    /// The vocabulary.
    words: u64,
}

const TINY: Size = Size { layers: 4, heads: Heads { queries: 8, shared: 2, size: 32 }, hidden: 768, words: 4096 };
const SMALL: Size = Size { layers: 12, heads: Heads { queries: 12, shared: 4, size: 64 }, hidden: 2048, words: 32_000 };

/// Tokens before the one of the usual step.
const USUAL_PAST: u64 = 128;

/// Of the normalisations.
const EPSILON: f32 = 1e-6;

/// Of the embeddings, beside branches of [`BRANCH_GAIN`]: small enough that the context decides the next token too, so that
/// greedy tokens do not go in a circle, and large enough that rounding changes few of them. Of 4,064 greedy tokens of GPT tiny
/// 3 are the one before; with half of it int4 changes the outputs three times as much (KL divergence 0.32 against 0.10).
const EMBEDDING_DEVIATION: f64 = 0.6;

/// Of the logits, as those of trained networks.
const LOGIT_DEVIATION: f64 = 3.0;

fn network(builder: &mut Builder, size: &Size, cache: CacheForm) {
    let tokens = integers(builder, "input_ids", &["batch_size", "sequence_length"]);
    let tables = rotary::tables(builder, size.heads.size);
    let place = match cache {
        CacheForm::Grown | CacheForm::Merged => {
            let seen = integers(builder, "attention_mask", &["batch_size", "past_sequence_length + sequence_length"]);
            let positions = integers(builder, "position_ids", &["batch_size", "sequence_length"]);
            let pasts = pasts(builder, size, cache);
            let body = |builder: &mut Builder, has_past: bool| {
                let mask = mask(builder, &tokens, &seen, has_past.then_some(&pasts[0][0]));
                let turns = [0, 1].map(|index| rotary::turns(builder, &tables[index], &positions));
                decoder(builder, size, cache, &tokens, &pasts, &Place::Plain { mask, turns, has_past });
            };
            if cache == CacheForm::Grown {
                return body(builder, true);
            }
            let branch = builder.input("use_cache_branch", &ElementType::Bool, &[(Dimension::Fixed(1), 1)]);
            return builder.either("use_cache", &branch, body);
        }
        CacheForm::Shared => {
            let seen = integers(builder, "attention_mask", &["batch_size", "total_sequence_length"]);
            let (last, total) = lengths(builder, &seen);
            Place::Shared { last, total, tables }
        }
        CacheForm::Static => {
            builder.use_opset(STATIC_OPSET);
            let positions = integers(builder, "position_ids", &["batch_size", "sequence_length"]);
            let [start, filled] =
                ["write_indices", "nonpad_kv_seqlen"].map(|name| integers(builder, name, &["batch_size"]));
            Place::Static { positions, start, filled, tables }
        }
    };
    let pasts = pasts(builder, size, cache);
    decoder(builder, size, cache, &tokens, &pasts, &place);
}

/// The first with TensorScatter, and with Attention over a cache that is not filled to its end.
const STATIC_OPSET: i64 = 24;

/// An int64 input, with the sizes of the usual step.
fn integers(builder: &mut Builder, name: &str, dimensions: &[&str]) -> Value {
    let usual = |name: &str| if name.contains('+') || name.starts_with("total") { USUAL_PAST + 1 } else { 1 };
    let shape: Vec<(Dimension, u64)> = dimensions.iter().map(|name| (named(name), usual(name))).collect();
    builder.input(name, &ElementType::Int64, &shape)
}

/// The inputs of each layer for keys and values of earlier tokens.
fn pasts(builder: &mut Builder, size: &Size, cache: CacheForm) -> Vec<[Value; 2]> {
    let length = if cache == CacheForm::Static { "capacity" } else { "past_sequence_length" };
    let sizes = [1, size.heads.shared, USUAL_PAST, size.heads.size];
    let shape: Vec<(Dimension, u64)> = cache_shape(size, length).into_iter().zip(sizes).collect();
    let input = |number: u64| {
        PARTS.map(|part| {
            let name = match cache {
                CacheForm::Static => format!("{part}_cache.{number}"),
                _ => format!("past_key_values.{number}.{part}"),
            };
            builder.input(&name, &ElementType::Float32, &shape)
        })
    };
    (0..size.layers).map(input).collect()
}

/// The shape of one part of the cache.
fn cache_shape(size: &Size, length: &str) -> [Dimension; 4] {
    [named("batch_size"), Dimension::Fixed(size.heads.shared), named(length), Dimension::Fixed(size.heads.size)]
}

/// Which tokens each new one sees, `[batch, 1, sequence, total]`: those up to its own that the row has.
fn mask(builder: &mut Builder, tokens: &Value, seen: &Value, past: Option<&Value>) -> Value {
    let (_, before) = positions_and_mask(builder, tokens, past);
    let [new, total] = [before.shape[0], before.shape[1]];
    let seen = if past.is_some() {
        seen.clone()
    } else {
        // The caller may count a past that is not used.
        let (axes, end) = (builder.integers(&[1]), builder.integers(&[i64::MAX]));
        let sequence =
            builder.node("Shape", "mask.sequence", &[tokens], vec![AttributeProto::of_int("start", 1)], &[1]);
        let start = builder.node("Neg", "mask.start", &[&sequence], vec![], &[1]);
        builder.node("Slice", "mask.new", &[seen, &start, &end, &axes], vec![], &[tokens.shape[0], new])
    };
    let boolean = vec![AttributeProto::of_int("to", 9)];
    let seen = builder.node("Cast", "mask.seen", &[&seen], boolean, &seen.shape);
    let (axes, shape) = (builder.integers(&[1, 2]), [seen.shape[0], 1, 1, total]);
    let seen = builder.node("Unsqueeze", "mask.seen_by_all", &[&seen, &axes], vec![], &shape);
    builder.node("And", "mask.both", &[&seen, &before], vec![], &[seen.shape[0], 1, new, total])
}

/// What GroupQueryAttention asks for: the index of the last token of each row, and the length of the longest, as int32.
fn lengths(builder: &mut Builder, seen: &Value) -> (Value, Value) {
    let (axes, one, int32) = (builder.integers(&[1]), builder.integer(1), || vec![AttributeProto::of_int("to", 6)]);
    let without = vec![AttributeProto::of_int("keepdims", 0)];
    let filled = builder.node("ReduceSum", "mask.filled", &[seen, &axes], without, &[seen.shape[0]]);
    let last = builder.node("Sub", "mask.last", &[&filled, &one], vec![], &filled.shape);
    let last = builder.node("Cast", "seqlens_k", &[&last], int32(), &filled.shape);
    let total = size(builder, seen, 1, "mask.total");
    (last, builder.node("Cast", "total_sequence_length", &[&total], int32(), &[]))
}

/// Embeddings, layers, head, and the outputs.
fn decoder(builder: &mut Builder, size: &Size, cache: CacheForm, tokens: &Value, pasts: &[[Value; 2]], place: &Place) {
    let width = size.heads.queries * size.heads.size;
    let words = table(builder, "model.embed_tokens.weight", size.words, width, EMBEDDING_DEVIATION);
    let mut x = embedding(builder, &words, tokens, "model.embed_tokens");
    let mut presents = Vec::new();
    for (number, past) in pasts.iter().enumerate() {
        let name = format!("model.layers.{number}");
        let normal = rms_norm(builder, &x, &format!("{name}.input_layernorm"), place);
        let (context, present) =
            self_attention(builder, &normal, past, place, &size.heads, &format!("{name}.self_attn"));
        presents.push(present);
        x = add(builder, &x, &context, &format!("{name}.add_1"));
        let normal = rms_norm(builder, &x, &format!("{name}.post_attention_layernorm"), place);
        let hidden = gated(builder, &normal, &format!("{name}.mlp"), size.hidden);
        x = add(builder, &x, &hidden, &format!("{name}.add_2"));
    }
    let x = rms_norm(builder, &x, "model.norm", place);
    // Words of one scale: those of a larger one would come again and again.
    let deviations = vec![LOGIT_DEVIATION / (width as f64).sqrt(); size.words as usize];
    let head = Recipe::Columns { deviations: &deviations };
    let head = builder.parameter("lm_head.weight", &[width, size.words], &head);
    let logits = matmul(builder, &x, &head, "lm_head");
    let shape = [named("batch_size"), named("sequence_length"), Dimension::Fixed(size.words)];
    builder.output(&logits, "logits", &shape);
    let length = match cache {
        CacheForm::Grown | CacheForm::Merged => "past_sequence_length + sequence_length",
        CacheForm::Shared => "total_sequence_length",
        CacheForm::Static => "capacity",
    };
    for (number, present) in presents.iter().enumerate() {
        for (part, value) in PARTS.iter().zip(present) {
            let name = match cache {
                CacheForm::Static => format!("updated_{part}_cache.{number}"),
                _ => format!("present.{number}.{part}"),
            };
            builder.output(value, &name, &cache_shape(size, length));
        }
    }
}

/// `x / sqrt(mean(x^2) + epsilon)`, scaled: the operator that the form's tool writes, or what it is made of.
fn rms_norm(builder: &mut Builder, x: &Value, name: &str, place: &Place) -> Value {
    let width = [x.shape[2]];
    let weight = builder.parameter(&format!("{name}.weight"), &width, &Recipe::Uniform { low: 0.8, high: 1.2 });
    let operator = match place {
        Place::Plain { .. } => return plain_rms_norm(builder, x, &weight, name),
        // ONNX Runtime's own, though it stands in the standard's set.
        Place::Shared { .. } => "SimplifiedLayerNormalization",
        Place::Static { .. } => "RMSNormalization",
    };
    let attributes = vec![AttributeProto::of_int("axis", -1), AttributeProto::of_float("epsilon", EPSILON)];
    builder.node(operator, name, &[x, &weight], attributes, &x.shape)
}

fn plain_rms_norm(builder: &mut Builder, x: &Value, weight: &Value, name: &str) -> Value {
    let (two, epsilon) = (builder.float(2.0), builder.float(EPSILON));
    let square = builder.node("Pow", &format!("{name}.square"), &[x, &two], vec![], &x.shape);
    let (last, shape) = (vec![AttributeProto::of_ints("axes", &[-1])], [x.shape[0], x.shape[1], 1]);
    let mean = builder.node("ReduceMean", &format!("{name}.mean"), &[&square], last, &shape);
    let sum = add(builder, &mean, &epsilon, &format!("{name}.sum"));
    let root = builder.node("Sqrt", &format!("{name}.root"), &[&sum], vec![], &shape);
    let quotient = builder.node("Div", &format!("{name}.quotient"), &[x, &root], vec![], &x.shape);
    mul(builder, &quotient, weight, name)
}

/// SwiGLU: `down(silu(gate(x)) x up(x))`.
fn gated(builder: &mut Builder, x: &Value, name: &str, hidden: u64) -> Value {
    let gate = projection(builder, x, &format!("{name}.gate_proj"), hidden, 1.0);
    let up = projection(builder, x, &format!("{name}.up_proj"), hidden, 1.0);
    let share = sigmoid(builder, &gate, &format!("{name}.sigmoid"));
    let gate = mul(builder, &gate, &share, &format!("{name}.silu"));
    let product = mul(builder, &gate, &up, &format!("{name}.product"));
    projection(builder, &product, &format!("{name}.down_proj"), x.shape[2], BRANCH_GAIN / GATED_DEVIATION)
}

/// Of `silu(a) x b` for normal numbers: the root of the mean of `silu(a)^2`, 0.356.
const GATED_DEVIATION: f64 = 0.6;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Settings, assemble, signature};
    use super::*;
    use crate::cost::cost;
    use crate::infer::infer;
    use crate::sample::point;
    use crate::{check_graph, resolve_inputs};

    fn of_form(cache: CacheForm) -> Settings {
        Settings { cache: Some(cache), ..Settings::default() }
    }

    #[test]
    fn all_forms_have_the_same_weights() {
        for architecture in [&GPT_TINY, &GPT_SMALL] {
            let weights = |cache: CacheForm| {
                let graph = assemble(architecture, &of_form(cache), 1).unwrap().finish("", 1).graph.unwrap();
                let mut weights = graph.initializer;
                weights.sort_by(|left, right| left.name().cmp(right.name()));
                weights
            };
            let grown = weights(CacheForm::Grown);
            assert!(CacheForm::ALL.into_iter().all(|cache| weights(cache) == grown));
        }
    }

    #[test]
    fn what_a_step_costs_is_known_in_every_form() {
        let lengths = [
            (CacheForm::Grown, vec![("past_sequence_length", 128)], 129, "present"),
            (CacheForm::Shared, vec![("past_sequence_length", 128), ("total_sequence_length", 129)], 129, "present"),
            (CacheForm::Static, vec![("capacity", 128)], 128, "updated_value_cache"),
            (CacheForm::Merged, vec![("past_sequence_length", 128)], 129, "present"),
        ];
        for (cache, mut sizes, length, prefix) in lengths {
            let model = assemble(&GPT_TINY, &of_form(cache), 0).unwrap();
            let counted = model.counts();
            let model = model.finish("", 1);
            assert_eq!(check_graph(&model), Ok(()), "{cache:?}");
            sizes.extend([("batch_size", 1), ("sequence_length", 1)]);
            let resolved =
                resolve_inputs(&signature(&GPT_TINY, &of_form(cache)).unwrap(), &point(&sizes, &[])).unwrap();
            let inferred = infer(&model, &resolved.tensors);
            let cost = cost(&model, &inferred);
            assert_eq!((cost.macs, cost.unknown), (Some(counted.macs), vec![]), "{cache:?}");
            assert_eq!(counted.parameters, GPT_TINY.parameters);
            let outputs = &model.graph.as_ref().unwrap().output;
            assert_eq!((outputs.len(), outputs[0].name()), (9, "logits"));
            let last = outputs.last().unwrap().name();
            assert!(last.starts_with(prefix), "{last}");
            assert_eq!(inferred.value(last).and_then(|value| value.sizes()), Some(vec![1, 2, length, 32]), "{cache:?}");
        }
    }
}
