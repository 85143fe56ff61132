//! What `MatMul` and `Gemm` have in common, so that conversions see one operator.
//!
//! Input: a node. Output: a [`Product`], and the small nodes around the one that replaces it: a transposed left operand, a
//! factor, a bias. Deliberately absent: the product itself, which every precision has its own operator for.

use rayon::prelude::*;

use super::edit::{Editor, Weight};
use crate::TensorError;
use crate::proto::{AttributeProto, NodeProto, TensorProto};

/// `alpha * A' * B' + beta * C`, of which `MatMul` is a special case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Product {
    left: String,
    pub(crate) right: String,
    pub(crate) turns_left: bool,
    pub(crate) turns_right: bool,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) bias: Option<String>,
    pub(crate) output: String,
    /// The label of the node.
    pub(crate) label: String,
}

/// A constant right operand as [K, N].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RightOperand {
    /// Where it lies; transposed if the file has it as [N, K].
    pub(crate) weight: Weight,
    /// K and N.
    pub(crate) shape: [u64; 2],
}

impl Product {
    /// Reads a `MatMul` or `Gemm`; `None` if an input or the output is missing.
    pub(crate) fn of(node: &NodeProto) -> Option<Self> {
        let ([left, right, ..], Some(output)) = (&node.input[..], node.output.first()) else { return None };
        let is_set = |name: &str| node.int(name).unwrap_or(0) != 0;
        let beta = node.float("beta").unwrap_or(1.0);
        Some(Product {
            left: left.clone(),
            right: right.clone(),
            turns_left: is_set("transA"),
            turns_right: is_set("transB"),
            alpha: node.float("alpha").unwrap_or(1.0),
            beta,
            bias: node.input.get(2).filter(|bias| !bias.is_empty() && beta != 0.0).cloned(),
            output: output.clone(),
            label: node.label(),
        })
    }

    /// The right operand, or why it cannot be converted.
    pub(crate) fn right_operand(&self, editor: &Editor) -> Result<Result<RightOperand, &'static str>, TensorError> {
        let Some(mut weight) = editor.weight(&self.right) else {
            return Ok(Err(editor.why_no_weight(&self.right, "its right operand is computed, not constant")));
        };
        let form = editor.form(&weight)?;
        if !form.is_float32 {
            return Ok(Err("its weight is not float32"));
        }
        let [rows, columns] = form.shape[..] else { return Ok(Err("its weight does not have two dimensions")) };
        // ONNX Runtime's product of 8-bit numbers leaves its output as it was where there is nothing to add up.
        if rows == 0 || columns == 0 {
            return Ok(Err("its weight is empty"));
        }
        weight.is_transposed ^= self.turns_right;
        let shape = if self.turns_right { [columns, rows] } else { [rows, columns] };
        Ok(Ok(RightOperand { weight, shape }))
    }

    /// The left operand as the product reads it.
    pub(crate) fn left_operand(&self, editor: &mut Editor) -> String {
        if self.turns_left { turn(editor, &self.left) } else { self.left.clone() }
    }

    /// Adds the bias, if there is one, behind the nodes that `multiply` adds for the product under the name that it is given.
    pub(crate) fn with_bias(&self, editor: &mut Editor, multiply: impl FnOnce(&mut Editor, &str)) {
        let Some(bias) = &self.bias else { return multiply(editor, &self.output) };
        let bias = times(editor, bias, self.beta);
        let before = editor.fresh(&format!("{}_before_bias", self.output));
        multiply(editor, &before);
        let label = editor.fresh(&format!("{}_bias", self.label));
        editor.push(NodeProto::of("Add", &label, &[&before, &bias], &[&self.output], vec![]));
    }
}

/// A constant multiplied while the model runs, which ONNX Runtime does once, when it loads the model; itself for 1.
pub(crate) fn times(editor: &mut Editor, value: &str, factor: f32) -> String {
    if factor == 1.0 {
        return value.to_owned();
    }
    let factor = editor.add_weight(TensorProto::of_floats(&format!("{value}_factor"), &[], &[factor]));
    let product = editor.fresh(&format!("{value}_scaled"));
    editor.push(NodeProto::of("Mul", &product, &[value, &factor], &[&product], vec![]));
    product
}

/// A `Transpose` of two dimensions; that of a weight is made in the graph that holds it.
pub(crate) fn turn(editor: &mut Editor, value: &str) -> String {
    let turned = editor.fresh(&format!("{value}_transposed"));
    let exchange = vec![AttributeProto::of_ints("perm", &[1, 0])];
    editor.push_beside(value, NodeProto::of("Transpose", &turned, &[value], &[&turned], exchange));
    turned
}

/// Rows become columns, in squares that fit the first cache.
pub(crate) fn transposed<T: Copy + Default + Send + Sync>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    const SIDE: usize = 64;
    let mut turned = vec![T::default(); rows * columns];
    turned.par_chunks_mut((SIDE * rows).max(1)).enumerate().for_each(|(part, turned)| {
        let left = part * SIDE;
        for top in (0..rows).step_by(SIDE) {
            for row in top..rows.min(top + SIDE) {
                for column in left..columns.min(left + SIDE) {
                    turned[(column - left) * rows + row] = values[row * columns + column];
                }
            }
        }
    });
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::GraphProto;

    #[test]
    fn a_product_is_read_from_either_operator() {
        let plain = Product::of(&NodeProto::of("MatMul", "m", &["a", "b"], &["y"], vec![]));
        assert_eq!(plain.map(|plain| (plain.alpha, plain.bias, plain.turns_right)), Some((1.0, None, false)));
        let attributes = vec![AttributeProto::of_float("beta", 0.0), AttributeProto::of_int("transB", 1)];
        let gemm = Product::of(&NodeProto::of("Gemm", "g", &["a", "b", "c"], &["y"], attributes));
        assert_eq!(gemm.map(|gemm| (gemm.bias, gemm.turns_right)), Some((None, true)));
        assert_eq!(Product::of(&NodeProto::of("MatMul", "m", &["a"], &["y"], vec![])), None);
    }

    #[test]
    fn two_transpositions_are_none() {
        let nodes = vec![NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![])];
        let initializer = vec![TensorProto::of_floats("w", &[2, 3], &[0.0; 6])];
        let (editor, _) = Editor::new(GraphProto { node: nodes, initializer, ..Default::default() });
        let gemm = NodeProto::of("Gemm", "g", &["a", "wt"], &["y"], vec![AttributeProto::of_int("transB", 1)]);
        let operand = Product::of(&gemm).and_then(|product| product.right_operand(&editor).ok()?.ok());
        let weight = Weight { name: "w".to_owned(), is_transposed: false };
        assert_eq!(operand, Some(RightOperand { weight, shape: [2, 3] }));
    }

    #[test]
    fn transposing_covers_sizes_that_no_square_divides() {
        let values: Vec<u32> = (0..70 * 130).collect();
        let turned = transposed(&values, 70, 130);
        assert!((0..70).all(|row| (0..130).all(|column| turned[column * 70 + row] == values[row * 130 + column])));
        assert!(transposed::<u8>(&[], 0, 5).is_empty());
    }
}
