//! Layers of transformers.
//!
//! Input: a value `[batch, tokens, width]` and the name of the layer. Output: the nodes in the builder, and their value.
//! The operators are those that PyTorch's exporter writes, where ONNX Runtime looks for them to fuse. Deliberately absent:
//! embeddings and masks, which differ from model to model.

use super::builder::{Builder, Value};
use super::layers::{add, mul, scaled};
use super::weights::Recipe;
use crate::proto::AttributeProto;
use crate::signature::Dimension;

/// Scale of the weights that make queries and keys: attention then prefers some tokens, as trained heads do. With a
/// smaller one every token would see the mean of all, and all tokens and all inputs would come out alike.
pub(super) const ATTENTION_GAIN: f64 = 1.4;

/// Scale of the weights that end a residual branch: `1 / sqrt(n)` for the 24 branches of twelve layers, near enough, as
/// GPT-2 is initialised (Radford et al. 2019, section 2.3). With larger branches the sum forgets its tokens, and what
/// rounding does to each branch counts for more.
pub(super) const BRANCH_GAIN: f64 = 0.2;

/// A dimension whose size is not known.
pub(super) fn named(name: &str) -> Dimension {
    Dimension::Named(name.to_owned())
}

/// `[..., inputs]` to `[..., outputs]`: MatMul and the bias.
pub(super) fn linear(builder: &mut Builder, x: &Value, name: &str, outputs: u64, gain: f64) -> Value {
    let product = projection(builder, x, name, outputs, gain);
    let bias = builder.parameter(&format!("{name}.bias"), &[outputs], &Recipe::Uniform { low: -0.1, high: 0.1 });
    add(builder, &product, &bias, name)
}

/// `[..., inputs]` to `[..., outputs]`: MatMul alone.
pub(super) fn projection(builder: &mut Builder, x: &Value, name: &str, outputs: u64, gain: f64) -> Value {
    let inputs = x.shape.last().copied().unwrap_or_default();
    let weight = format!("{name}.weight");
    let deviations = scaled(builder, &weight, outputs, gain / (inputs as f64).sqrt());
    let weight = builder.parameter(&weight, &[inputs, outputs], &Recipe::Columns { deviations: &deviations });
    matmul(builder, x, &weight, &format!("{name}.matmul"))
}

/// `[n, tokens, width]` to queries, keys and values of the same shape, by one matrix for all three.
pub(super) fn joint_projection(builder: &mut Builder, x: &Value, name: &str) -> [Value; 3] {
    let width = x.shape[2];
    let joint = linear(builder, x, name, 3 * width, ATTENTION_GAIN);
    let parts = ["query", "key", "value"].map(|part| (format!("{name}.{part}"), x.shape.clone()));
    let axis = vec![AttributeProto::of_int("axis", -1)];
    builder.node_of("Split", &format!("{name}.split"), &[&joint], axis, parts)
}

/// The product over the last axis of the one and the last but one of the other.
pub(super) fn matmul(builder: &mut Builder, x: &Value, other: &Value, name: &str) -> Value {
    let (mut shape, columns) = (x.shape.clone(), other.shape.last().copied().unwrap_or_default());
    let summed = shape.pop().unwrap_or_default();
    shape.push(columns);
    builder.count_macs(&shape, summed);
    builder.node("MatMul", name, &[x, other], vec![], &shape)
}

/// Normalisation over the last axis.
pub(super) fn layer_norm(builder: &mut Builder, x: &Value, name: &str, epsilon: f32) -> Value {
    let width = [x.shape.last().copied().unwrap_or_default()];
    let weight = builder.parameter(&format!("{name}.weight"), &width, &Recipe::Uniform { low: 0.8, high: 1.2 });
    let bias = builder.parameter(&format!("{name}.bias"), &width, &Recipe::Uniform { low: -0.1, high: 0.1 });
    let attributes = vec![AttributeProto::of_int("axis", -1), AttributeProto::of_float("epsilon", epsilon)];
    builder.node("LayerNormalization", name, &[x, &weight, &bias], attributes, &x.shape)
}

/// A new shape of the same elements: 0 keeps a size, -1 is what remains.
pub(super) fn reshape(builder: &mut Builder, x: &Value, name: &str, sizes: &[i64]) -> Value {
    let kept = |(index, size): (usize, &i64)| match size {
        0 => x.shape.get(index).copied().unwrap_or_default(),
        size => size.unsigned_abs(),
    };
    let mut shape: Vec<u64> = sizes.iter().enumerate().map(kept).collect();
    if let Some(open) = sizes.iter().position(|size| *size == -1) {
        // It counts as one in the product, being -1.
        shape[open] = x.shape.iter().product::<u64>() / shape.iter().product::<u64>().max(1);
    }
    let sizes = builder.integers(sizes);
    builder.node("Reshape", name, &[x, &sizes], vec![], &shape)
}

/// The axes in another order.
pub(super) fn transpose(builder: &mut Builder, x: &Value, name: &str, order: &[usize]) -> Value {
    let shape: Vec<u64> = order.iter().map(|axis| x.shape[*axis]).collect();
    let order: Vec<i64> = order.iter().map(|axis| *axis as i64).collect();
    builder.node("Transpose", name, &[x], vec![AttributeProto::of_ints("perm", &order)], &shape)
}

/// One entry along axis 1, which goes away: `[n, tokens, width]` to `[n, width]`.
pub(super) fn token(builder: &mut Builder, x: &Value, name: &str, index: i64) -> Value {
    let index = builder.integer(index);
    builder.node("Gather", name, &[x, &index], vec![AttributeProto::of_int("axis", 1)], &[x.shape[0], x.shape[2]])
}

/// A table of embeddings, `[rows, width]`.
pub(super) fn table(builder: &mut Builder, name: &str, rows: u64, width: u64, deviation: f64) -> Value {
    let deviations = scaled(builder, name, rows, deviation);
    builder.parameter(name, &[rows, width], &Recipe::Rows { deviations: &deviations })
}

/// Rows of a table: `[rows, width]` and indices to `[indices..., width]`.
pub(super) fn embedding(builder: &mut Builder, table: &Value, indices: &Value, name: &str) -> Value {
    let mut shape = indices.shape.clone();
    shape.push(table.shape[1]);
    builder.node("Gather", name, &[table, indices], vec![AttributeProto::of_int("axis", 0)], &shape)
}

/// `[n, tokens, heads x size]` to `[n, heads, tokens, size]`.
pub(super) fn to_heads(builder: &mut Builder, x: &Value, name: &str, heads: u64) -> Value {
    let size = x.shape[2] / heads;
    let split = reshape(builder, x, &format!("{name}.heads"), &[0, 0, heads as i64, size as i64]);
    transpose(builder, &split, &format!("{name}.transpose"), &[0, 2, 1, 3])
}

/// What attention adds to the scores so that some tokens are not seen.
pub(super) enum Mask<'a> {
    /// Every token is seen.
    None,
    /// A number to add to each score.
    Added(&'a Value),
    /// Whether each score counts.
    Chosen(&'a Value),
}

/// A masked score. Softmax makes it zero, and unlike the least float32 it is a number in float16 too; BERT and GPT-2 were
/// trained with it.
pub(super) const MASKED: f32 = -10_000.0;

/// Queries, keys and values as `[n, heads, tokens, size]` to `[n, queries, heads x size]`.
pub(super) fn attention(builder: &mut Builder, qkv: [&Value; 3], mask: &Mask, name: &str) -> Value {
    let [queries, keys, values] = qkv;
    let size = queries.shape[3];
    let keys = transpose(builder, keys, &format!("{name}.keys_transposed"), &[0, 1, 3, 2]);
    let products = matmul(builder, queries, &keys, &format!("{name}.products"));
    let root = builder.float((size as f32).sqrt());
    let mut scores = builder.node("Div", &format!("{name}.scores"), &[&products, &root], vec![], &products.shape);
    let masked = format!("{name}.masked");
    match mask {
        Mask::None => {}
        Mask::Added(mask) => scores = add(builder, &scores, mask, &masked),
        Mask::Chosen(mask) => {
            let unseen = builder.float(MASKED);
            scores = builder.node("Where", &masked, &[mask, &scores, &unseen], vec![], &products.shape);
        }
    }
    let axis = vec![AttributeProto::of_int("axis", -1)];
    let shares = builder.node("Softmax", &format!("{name}.softmax"), &[&scores], axis, &products.shape);
    let context = matmul(builder, &shares, values, &format!("{name}.context"));
    from_heads(builder, &context, name)
}

/// `[n, heads, tokens, size]` to `[n, tokens, heads x size]`.
pub(super) fn from_heads(builder: &mut Builder, context: &Value, name: &str) -> Value {
    let width = (context.shape[1] * context.shape[3]) as i64;
    let context = transpose(builder, context, &format!("{name}.context_transposed"), &[0, 2, 1, 3]);
    reshape(builder, &context, &format!("{name}.joined"), &[0, 0, width])
}

/// The Gaussian error linear unit, `x (1 + erf(x / sqrt 2)) / 2`.
pub(super) fn gelu(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let (root, one, half) = (builder.float(std::f32::consts::SQRT_2), builder.float(1.0), builder.float(0.5));
    let scaled = builder.node("Div", &format!("{name}.scaled"), &[x, &root], vec![], &x.shape);
    let erf = builder.node("Erf", &format!("{name}.erf"), &[&scaled], vec![], &x.shape);
    let sum = add(builder, &erf, &one, &format!("{name}.one_more"));
    let product = mul(builder, x, &sum, &format!("{name}.product"));
    mul(builder, &product, &half, name)
}

/// Its approximation by a hyperbolic tangent, `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`. ONNX Runtime knows it by
/// the order of the factors, which is another than above.
pub(super) fn gelu_by_tanh(builder: &mut Builder, x: &Value, name: &str) -> Value {
    let [half, three, factor, one] = [0.5, 3.0, 0.044_715, 1.0].map(|value| builder.float(value));
    // A square root is exact to the last bit on every host.
    let root = builder.float(std::f32::consts::FRAC_2_PI.sqrt());
    let halved = mul(builder, x, &half, &format!("{name}.half"));
    let cube = builder.node("Pow", &format!("{name}.pow"), &[x, &three], vec![], &x.shape);
    let cube = mul(builder, &cube, &factor, &format!("{name}.cubic"));
    let sum = add(builder, x, &cube, &format!("{name}.sum"));
    let sum = mul(builder, &sum, &root, &format!("{name}.scaled"));
    let tanh = builder.node("Tanh", &format!("{name}.tanh"), &[&sum], vec![], &x.shape);
    let sum = add(builder, &tanh, &one, &format!("{name}.one_more"));
    mul(builder, &halved, &sum, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::ElementType;

    #[test]
    fn shapes_follow_the_operators() {
        let mut builder = Builder::new("test", 1, 0);
        let sizes = [2, 5, 12].map(|size| (Dimension::Fixed(size), size));
        let x = builder.input("x", &ElementType::Float32, &sizes);
        let heads = to_heads(&mut builder, &x, "heads", 3);
        assert_eq!(heads.shape, [2, 3, 5, 4]);
        assert_eq!(reshape(&mut builder, &x, "rows", &[-1, 12]).shape, [10, 12]);
        assert_eq!(reshape(&mut builder, &x, "rest", &[0, 6, -1]).shape, [2, 6, 10]);
        assert_eq!(token(&mut builder, &x, "first", 0).shape, [2, 12]);
        let parts = joint_projection(&mut builder, &x, "qkv");
        assert_eq!(parts.map(|part| part.shape), [[2, 5, 12]; 3].map(Vec::from));
        assert_eq!(builder.counts().macs, 2 * 5 * 12 * 36);
        let context = attention(&mut builder, [&heads, &heads, &heads], &Mask::None, "attention");
        assert_eq!((context.shape, builder.counts().macs), (vec![2, 5, 12], 2 * 5 * 12 * 36 + 2 * (2 * 3 * 5 * 5 * 4)));
    }
}
