//! Products of matrices.
//!
//! Input: a node. Output: shapes. Deliberately absent: what a product costs (`cost`).

use std::collections::HashMap;

use super::Value;
use super::shape::{Shape, Size, broadcast, divide, multiply, size_of};
use super::site::{Outputs, Site, single_output};

/// The shape of `numpy.matmul`: a list counts as a row on the left and as a column on the right.
pub(super) fn product_shape(left: &[Size], right: &[Size]) -> Option<Shape> {
    let (rows, left_batch) = match left {
        [] => return None,
        [_] => (None, &[][..]),
        [batch @ .., rows, _] => (Some(*rows), batch),
    };
    let (columns, right_batch) = match right {
        [] => return None,
        [_] => (None, &[][..]),
        [batch @ .., _, columns] => (Some(*columns), batch),
    };
    let mut shape = broadcast(left_batch, right_batch);
    shape.extend(rows);
    shape.extend(columns);
    Some(shape)
}

/// The product of two inputs.
pub(super) fn multiply_at(site: &Site<'_>, left: usize, right: usize) -> Outputs {
    single_output(product_shape(site.shape(left)?, site.shape(right)?)?)
}

/// `MatMul`, `MatMulInteger`.
pub(super) fn multiply_first_two(site: &Site<'_>) -> Outputs {
    multiply_at(site, 0, 1)
}

/// `QLinearMatMul`: each operand has a scale and a zero point.
pub(super) fn multiply_quantized(site: &Site<'_>) -> Outputs {
    multiply_at(site, 0, 3)
}

/// A shape with its last two dimensions swapped where the attribute says so.
pub(super) fn swapped(site: &Site<'_>, index: usize, attribute: &str) -> Option<Shape> {
    let mut shape = site.shape(index)?.to_vec();
    if site.is_set(attribute) && shape.len() >= 2 {
        let last = shape.len() - 1;
        shape.swap(last - 1, last);
    }
    Some(shape)
}

/// `Gemm`.
pub(super) fn gemm(site: &Site<'_>) -> Outputs {
    gemm_at(site, 1)
}

/// A `Gemm` whose second matrix is that input.
pub(super) fn gemm_at(site: &Site<'_>, right: usize) -> Outputs {
    let size =
        |index: usize, attribute: &str, axis: usize| swapped(site, index, attribute)?.get(axis).copied().flatten();
    single_output(vec![size(0, "transA", 0), size(right, "transB", 1)])
}

/// An equation of `Einsum` taken apart: the labels of each operand and of the output. `...` has labels of its own.
pub(crate) struct Equation {
    /// Size of every label, where it is known.
    pub(crate) sizes: HashMap<Label, Size>,
    output: Vec<Label>,
}

/// A letter, or a dimension that `...` stands for, counted from the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    Letter(char),
    Rest(usize),
}

impl Equation {
    /// `None` where equation and shapes do not go together.
    pub(crate) fn of(text: &str, shapes: &[&[Size]]) -> Option<Self> {
        let operands = Equation::operands(text, shapes)?;
        let (mut sizes, mut counts, mut rest) = (HashMap::new(), HashMap::new(), 0);
        for (labels, shape) in operands.iter().zip(shapes) {
            for (label, size) in labels.iter().zip(shape.iter()) {
                if let Label::Rest(position) = label {
                    rest = rest.max(position + 1);
                }
                *counts.entry(*label).or_insert(0) += 1;
                let known = sizes.entry(*label).or_insert(*size);
                // A size of 1 is stretched to the other's.
                *known = if *known == Some(1) { *size } else { known.or(*size) };
            }
        }
        let text: String = text.split_whitespace().collect();
        let output = match text.split_once("->") {
            Some((_, right)) => labels(right, rest),
            None => implied(&counts, rest),
        };
        Some(Equation { sizes, output })
    }

    /// The labels of each operand's dimensions.
    pub(super) fn operands(text: &str, shapes: &[&[Size]]) -> Option<Vec<Vec<Label>>> {
        let text: String = text.split_whitespace().collect();
        let terms: Vec<&str> = text.split("->").next()?.split(',').collect();
        let of_term = |(term, shape): (&&str, &&[Size])| {
            let hidden = shape.len().checked_sub(term.replace("...", "").chars().count())?;
            Some(labels(term, hidden)).filter(|labels| labels.len() == shape.len())
        };
        if terms.len() != shapes.len() {
            return None;
        }
        terms.iter().zip(shapes).map(of_term).collect()
    }

    fn shape(&self) -> Shape {
        self.output.iter().map(|label| self.sizes.get(label).copied().flatten()).collect()
    }
}

fn labels(term: &str, rest: usize) -> Vec<Label> {
    let letters = |text: &str| text.chars().map(Label::Letter).collect::<Vec<Label>>();
    match term.split_once("...") {
        Some((before, after)) => {
            let hidden = (0..rest).rev().map(Label::Rest);
            letters(before).into_iter().chain(hidden).chain(letters(after)).collect()
        }
        None => letters(term),
    }
}

/// Without `->`, the output has what `...` stands for, then the letters that occur once, sorted.
fn implied(counts: &HashMap<Label, usize>, rest: usize) -> Vec<Label> {
    let once = counts.iter().filter(|(_, count)| **count == 1).map(|(label, _)| *label);
    let mut letters: Vec<char> =
        once.filter_map(|label| if let Label::Letter(letter) = label { Some(letter) } else { None }).collect();
    letters.sort_unstable();
    (0..rest).rev().map(Label::Rest).chain(letters.into_iter().map(Label::Letter)).collect()
}

/// `Einsum`.
pub(super) fn einsum(site: &Site<'_>) -> Outputs {
    let shapes: Option<Vec<&[Size]>> = (0..site.input_count()).map(|index| site.shape(index)).collect();
    single_output(Equation::of(site.node.text("equation")?, &shapes?)?.shape())
}

/// The standard's `Attention`: `[batch, heads, length, size]`, or `[batch, length, heads x size]`.
pub(super) fn attention(site: &Site<'_>) -> Outputs {
    let query = site.shape(0).filter(|query| query.len() >= 3)?;
    let mut shape = query.to_vec();
    let last = shape.len() - 1;
    let value = site.shape(2).and_then(|shape| shape.last().copied().flatten());
    shape[last] = if query.len() == 4 {
        value
    } else {
        // The value's heads may be shared by several of the query's.
        let heads = size_of(site.int_or("kv_num_heads", 0)).filter(|heads| *heads > 0);
        let size = divide(value, heads);
        multiply(size, size_of(site.int_or("q_num_heads", 0)))
    };
    // Keys and values with those of calls before: `[batch, heads, length, size]`.
    let present = |current: usize, past: usize| {
        let heads = size_of(site.int_or("kv_num_heads", 0)).filter(|heads| *heads > 0);
        let (heads, length, size) = match site.shape(current)? {
            [_, heads, length, size] => (*heads, *length, *size),
            [_, length, width] => (heads, *length, divide(*width, heads)),
            _ => return None,
        };
        let before = if site.has(past) { site.size(past, 2) } else { Some(0) };
        let length = length.and_then(|length| length.checked_add(before?));
        Some(vec![site.size(current, 0), heads, length, size])
    };
    let (keys, values) = (Value::of(None, present(1, 4)), Value::of(None, present(2, 5)));
    // How much each query attends to each key: `[batch, heads, length, length of the keys]`.
    let heads = match query.len() {
        4 => query[1],
        _ => size_of(site.int_or("q_num_heads", 0)).filter(|heads| *heads > 0),
    };
    let length = keys.shape.as_ref().and_then(|shape| *shape.get(2)?);
    let scores = Value::of_shape(vec![query[0], heads, query[query.len() - 2], length]);
    Some(vec![Value::of_shape(shape), keys, values, scores])
}

/// Of each matrix.
pub(super) fn determinant(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    single_output(shape[..shape.len().checked_sub(2)?].to_vec())
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn products_follow_the_rules_of_numpy() {
        case("MatMul", "a[2,1,3,4] b[5,4,6]").gives("float32 [2, 5, 3, 6]");
        case("MatMul", "a[4] b[4]").gives("float32 []");
        case("MatMul", "a[4] b[7,4,6]").gives("float32 [7, 6]");
        case("MatMul", "a[N,4] b[4]").gives("float32 [?]");
        case("MatMul", "a[] b[4]").gives("float32 [...]");
        case("Gemm", "a[4,N] b[6,4]").int("transA", 1).int("transB", 1).gives("float32 [?, 6]");
        case("MatMulInteger", "a:uint8[2,3] b:int8[3,4]").gives("int32 [2, 4]");
    }

    #[test]
    fn equations_name_dimensions() {
        let einsum = |equation: &str, inputs: &str| case("Einsum", inputs).text("equation", equation);
        einsum("bhqd,bhkd->bhqk", "q[2,4,5,8] k[2,4,7,8]").gives("float32 [2, 4, 5, 7]");
        einsum("...ij,...jk", "a[2,3,4] b[4,5]").gives("float32 [2, 3, 5]");
        einsum("b a, a", "a[2,3] b[3]").gives("float32 [2]");
        einsum("ii->i", "a[3,3]").gives("float32 [3]");
        einsum("ij->ji", "a[2,3,4]").gives("float32 [...]");
        einsum("ij,jk->ik", "a[2,3]").gives("float32 [...]");
    }

    #[test]
    fn attention_keeps_the_queries() {
        let attention = |inputs: &str| case("Attention", inputs).opset(23).outputs(2);
        attention("q[1,8,5,16] k[1,2,7,16] v[1,2,7,32]").gives("float32 [1, 8, 5, 32]; float32 [1, 2, 7, 16]");
        let packed = attention("q[1,5,128] k[1,7,32] v[1,7,64]").int("q_num_heads", 8).int("kv_num_heads", 2);
        packed.gives("float32 [1, 5, 256]; float32 [1, 2, 7, 16]");
        let scores = case("Attention", "q[1,5,128] k[1,7,32] v[1,7,64]").opset(23).outputs(4);
        let scores = scores.int("q_num_heads", 8).int("kv_num_heads", 2);
        scores.gives("float32 [1, 5, 256]; float32 [1, 2, 7, 16]; float32 [1, 2, 7, 32]; float32 [1, 8, 5, 7]");
        case("Det", "x[5,3,3]").gives("float32 [5]");
    }
}
