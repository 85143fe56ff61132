//! Matrix products: `MatMul` and `Gemm` with a constant right operand.
//!
//! Input: the node. Output: `MatMulInteger` between the quantised activation and the quantised weight, scaled back, with
//! the bias of a `Gemm` behind it. Deliberately absent: products of two activations (attention scores): quantising both
//! at run time costs more than the product saves.

use super::{Outcome, Work, rescale};
use crate::TensorError;
use crate::precision::edit::Weight;
use crate::precision::embedding::Stored;
use crate::precision::product::{Product, RightOperand, times, transposed, turn};
use crate::precision::scales::{UNUSUAL_WEIGHT, quantize_channels};
use crate::proto::NodeProto;

impl Work<'_> {
    pub(super) fn product(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        let Some(product) = Product::of(node) else { return Outcome::kept("it does not have two inputs") };
        let operand = match product.right_operand(self.editor)? {
            Ok(operand) => operand,
            Err(reason) => return Outcome::kept(reason),
        };
        let Some(weight) = self.weight(&operand)? else {
            return Outcome::kept(UNUSUAL_WEIGHT);
        };
        let left = product.left_operand(self.editor);
        let activation = self.activation(&left);
        let scales = times(self.editor, &weight.scales, product.alpha);
        let inputs = [activation.values.as_str(), &weight.values, &activation.zero_point];
        product.with_bias(self.editor, |editor, output| {
            let integers = editor.fresh(&format!("{output}_integers"));
            editor.push(NodeProto::of("MatMulInteger", &product.label, &inputs, &[&integers], vec![]));
            rescale(editor, &product.label, &integers, [&activation.scale, &scales], output);
        });
        self.report.casts += 1;
        Ok(Outcome::Converted)
    }

    /// The right operand as [K, N] in 8 bits; `None` if a value is not finite.
    pub(in crate::precision) fn weight(&mut self, operand: &RightOperand) -> Result<Option<Stored>, TensorError> {
        let key = operand.weight.clone();
        if let Some(stored) = self.made.products.get(&key) {
            return Ok(Some(stored.clone()));
        }
        let stored = if key.is_transposed { self.turned(&key)? } else { self.columns(operand)? };
        if let Some(stored) = &stored {
            self.made.products.insert(key, stored.clone());
        }
        Ok(stored)
    }

    /// A weight that lies as [K, N] in the file.
    fn columns(&mut self, operand: &RightOperand) -> Result<Option<Stored>, TensorError> {
        let name = &operand.weight.name;
        let Some(values) = self.editor.floats(name).transpose()? else { return Ok(None) };
        let Some(channels) = quantize_channels(&values, &operand.shape, 1, self.made.options.largest()) else {
            return Ok(None);
        };
        let scales = (&operand.shape[1..], &channels.scales[..]);
        let levels = (&operand.shape[..], channels.values);
        Ok(Some(Stored::add(self.editor, self.report, name, levels, scales)))
    }

    /// A weight that lies as [N, K]. Where somebody else reads it too (an embedding that is the last layer as well), it is
    /// stored once, with a `Transpose` that ONNX Runtime carries out when it loads the model.
    fn turned(&mut self, weight: &Weight) -> Result<Option<Stored>, TensorError> {
        let name = &weight.name;
        if self.made.tables.holds(name) || self.editor.readers(name) > 1 {
            let Some(rows) = self.made.tables.rows(self.editor, self.report, name)? else { return Ok(None) };
            return Ok(Some(Stored { values: turn(self.editor, &rows.values), scales: rows.scales }));
        }
        let [columns, rows] = self.editor.form(weight)?.shape[..] else { return Ok(None) };
        let Some(values) = self.editor.floats(name).transpose()? else { return Ok(None) };
        let Some(channels) = quantize_channels(&values, &[rows, columns], 0, self.made.options.largest()) else {
            return Ok(None);
        };
        drop(values);
        let values = transposed(&channels.values, rows as usize, columns as usize);
        let (levels, scales) = ((&[columns, rows][..], values), (&[rows][..], &channels.scales[..]));
        Ok(Some(Stored::add(self.editor, self.report, name, levels, scales)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{converted, model, tensor};
    use super::*;
    use crate::proto::{AttributeProto, TensorProto};

    fn gemm(inputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
        NodeProto::of("Gemm", "g", inputs, &["y"], attributes)
    }

    #[test]
    fn a_gemm_keeps_its_factors_its_transpositions_and_its_bias() {
        let attributes = vec![
            AttributeProto::of_float("alpha", 0.5),
            AttributeProto::of_float("beta", 2.0),
            AttributeProto::of_int("transA", 1),
            AttributeProto::of_int("transB", 1),
        ];
        let weights = vec![
            TensorProto::of_floats("w", &[2, 3], &[1.0, 2.0, 3.0, -6.0, 5.0, 4.0]),
            TensorProto::of_floats("c", &[2], &[1.0, 2.0]),
        ];
        let (graph, _, operators) =
            converted(model(vec![gemm(&["x", "w", "c"], attributes)], weights), &Default::default());
        assert_eq!(operators, "Transpose DynamicQuantizeLinear Mul Mul MatMulInteger Cast Mul Mul Add");
        let stored = tensor(&graph, "w_quantized");
        assert_eq!((stored.dims.clone(), stored.integers().unwrap()), (vec![3, 2], vec![42, -127, 85, 106, 127, 85]));
        assert_eq!(tensor(&graph, "w_scale").floats().unwrap(), [3.0 / 127.0, 6.0 / 127.0]);
        assert_eq!(tensor(&graph, "w_scale_factor").floats().unwrap(), [0.5]);
        assert_eq!(tensor(&graph, "c_factor").floats().unwrap(), [2.0]);
    }

    #[test]
    fn a_gemm_without_bias_is_a_product() {
        let weights = vec![TensorProto::of_floats("w", &[1, 1], &[1.0]), TensorProto::of_floats("c", &[1], &[1.0])];
        let no_bias = gemm(&["x", "w", "c"], vec![AttributeProto::of_float("beta", 0.0)]);
        let (graph, _, operators) = converted(model(vec![no_bias], weights), &Default::default());
        assert_eq!(operators, "DynamicQuantizeLinear MatMulInteger Cast Mul Mul");
        assert_eq!(graph.initializer.len(), 2);
    }

    #[test]
    fn a_table_that_is_the_last_layer_too_is_stored_once() {
        let table: Vec<f32> = (0..200 * 100).map(|index| (index % 17) as f32 - 8.0).collect();
        let nodes = vec![
            NodeProto::of("Gather", "e", &["w", "x"], &["h"], vec![]),
            NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![]),
            NodeProto::of("MatMul", "m", &["h", "wt"], &["y"], vec![]),
        ];
        let model = model(nodes, vec![TensorProto::of_floats("w", &[200, 100], &table)]);
        let (graph, report, operators) = converted(model, &Default::default());
        assert_eq!(operators, "Gather Cast Gather Cast Mul Transpose DynamicQuantizeLinear MatMulInteger Cast Mul Mul");
        assert_eq!(report.weights.converted, 200 * 100);
        let bytes: usize = graph.initializer.iter().map(|tensor| tensor.bytes().unwrap().len()).sum();
        assert_eq!(bytes, 200 * 100 + 200 * 4 + 200 * 2);
    }
}
