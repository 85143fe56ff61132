//! Weights and biases of convolutions and products.
//!
//! Input: a node with constant weights, and the scale of its activation. Output: the node on weights in 8 bits and a bias
//! in 32 bits, each behind a `DequantizeLinear`. Deliberately absent: activations.
//!
//! A bias is added to sums of products, so its scale is the product of theirs and cannot be chosen. Where it would not fit
//! in 32 bits (a channel with hardly any weight and a bias), the scale of that channel is raised until it does.

use super::plan::Role;
use super::rewrite::{StoredWeight, Work};
use crate::precision::edit::{Editor, Weight};
use crate::precision::product::{Product, RightOperand, transposed, turn};
use crate::precision::scales::{UNUSUAL_WEIGHT, quantize_bias, quantize_channels_above};
use crate::proto::{AttributeProto, NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// The largest bias: half of what 32 bits hold, so that the sum of products that it is added to also fits.
const LARGEST_BIAS: f32 = (1_u32 << 30) as f32;

impl Product {
    /// Why a product that has a constant right operand stays in float32 all the same.
    pub(super) fn stays_float(&self, editor: &Editor) -> Result<Option<&'static str>, TensorError> {
        if self.turns_left {
            return Ok(Some("its left operand is transposed"));
        }
        if self.alpha <= 0.0 {
            return Ok(Some("its alpha is not above zero"));
        }
        let Some(bias) = &self.bias else { return Ok(None) };
        let Some(tensor) = editor.tensor(bias).filter(|tensor| tensor.element() == ElementType::Float32) else {
            return Ok(Some("its bias is not a float32 constant"));
        };
        let columns = match self.right_operand(editor)? {
            Ok(operand) => operand.shape[1],
            Err(_) => 0,
        };
        let is_row = matches!(tensor.shape()?[..], [size] | [1, size] if size == columns);
        Ok((!is_row).then_some("its bias is not one number for each column"))
    }
}

impl Work<'_> {
    /// Puts the weights of a node in 8 bits, or says why that cannot be.
    pub(super) fn kernel(
        &mut self,
        node: &mut NodeProto,
        role: Role,
        activation: f32,
    ) -> Result<Result<(), &'static str>, TensorError> {
        let (Some(weight), product) = (self.editor.weight(&node.input[1]), Product::of(node)) else {
            return Ok(Err("its weight is not constant"));
        };
        let product = product.filter(|_| role == Role::Product);
        let (alpha, beta) = product.as_ref().map_or((1.0, 1.0), |product| (product.alpha, product.beta));
        let bias = node.input.get(2).filter(|bias| !bias.is_empty() && beta != 0.0).cloned();
        let bias = match &bias {
            Some(name) => match self.editor.floats(name).transpose()? {
                Some(values) => Some((name, values.iter().map(|value| value * beta).collect::<Vec<f32>>())),
                None => return Ok(Err("its bias is not constant")),
            },
            None => None,
        };
        // Output channels come first in a kernel and in a transposed operand, last in another.
        let axis = usize::from(product.as_ref().is_some_and(|product| !product.turns_right));
        let values = bias.as_ref().map(|(_, values)| values.as_slice()).unwrap_or_default();
        let least: Vec<f32> = values.iter().map(|value| value.abs() / (LARGEST_BIAS * activation * alpha)).collect();
        let Some(stored) = self.stored(&weight, axis, alpha, &least)? else {
            return Ok(Err(UNUSUAL_WEIGHT));
        };
        node.input.truncate(2);
        node.input[1].clone_from(&stored.value);
        if let Some((name, values)) = bias {
            node.input.push(self.bias(name, &values, activation, &stored.scales));
        }
        node.attribute.retain(|attribute| !matches!((role, attribute.name()), (Role::Product, "alpha" | "beta")));
        Ok(Ok(()))
    }

    /// The weight with one scale for each index along `axis`, none below `least`, times alpha.
    fn stored(
        &mut self,
        weight: &Weight,
        axis: usize,
        alpha: f32,
        least: &[f32],
    ) -> Result<Option<StoredWeight>, TensorError> {
        let key = (weight.clone(), axis);
        let is_raised = |stored: &StoredWeight| stored.scales.iter().zip(least).any(|(scale, least)| scale < least);
        if let Some(stored) = self.weights.get(&key).filter(|stored| alpha == 1.0 && !is_raised(stored)) {
            return Ok(Some(stored.clone()));
        }
        if let Some(shared) = self.shared(weight, axis)?.filter(|stored| alpha == 1.0 && !is_raised(stored)) {
            self.weights.insert(key, shared.clone());
            return Ok(Some(shared));
        }
        let name = &weight.name;
        let shape = self.editor.form(weight)?.shape;
        let Some(mut values) = self.editor.floats(name).transpose()? else { return Ok(None) };
        if let (true, [rows, columns]) = (weight.is_transposed, &shape[..]) {
            values = transposed(&values, *columns as usize, *rows as usize);
        }
        let Some(mut channels) = quantize_channels_above(&values, &shape, axis, self.largest, least) else {
            return Ok(None);
        };
        drop(values);
        channels.scales.iter_mut().for_each(|scale| *scale *= alpha);
        self.report.weights.converted += channels.values.len() as u64;
        let levels = channels.values.iter().map(|level| *level as u8).collect();
        let levels = TensorProto::of_bytes(&format!("{name}_quantized"), &ElementType::Int8, &shape, levels);
        let value = self.dequantized(name, levels, &channels.scales, axis);
        let stored = StoredWeight { value, scales: channels.scales };
        if alpha == 1.0 {
            self.weights.insert(key, stored.clone());
        }
        Ok(Some(stored))
    }

    /// What is read again, as a table of rows or as a product inside a branch, is stored once; a table with a `Transpose` that
    /// ONNX Runtime carries out when it loads the model. The scales of rows are those of the columns then.
    fn shared(&mut self, weight: &Weight, axis: usize) -> Result<Option<StoredWeight>, TensorError> {
        let name = &weight.name;
        let [rows, columns] = self.editor.form(weight)?.shape[..] else { return Ok(None) };
        let is_read_again = self.editor.readers(name) > 1;
        let stored = if weight.is_transposed == (axis == 1) {
            match self.dynamic.tables().filter(|tables| tables.holds(name) || is_read_again) {
                Some(tables) => tables.rows(&mut self.editor, &mut self.report, name)?,
                None => None,
            }
        } else if axis == 1 && (self.dynamic.holds(weight) || is_read_again) {
            self.inside().weight(&RightOperand { weight: weight.clone(), shape: [rows, columns] })?
        } else {
            None
        };
        let Some(stored) = stored else { return Ok(None) };
        let Some(scales) = self.editor.floats(&stored.scales).transpose()? else { return Ok(None) };
        let levels = if weight.is_transposed { turn(&mut self.editor, &stored.values) } else { stored.values };
        let zeros = vec![0; scales.len()];
        let zeros =
            TensorProto::of_bytes(&format!("{name}_zero_point"), &ElementType::Int8, &[zeros.len() as u64], zeros);
        let zeros = self.editor.add_weight(zeros);
        let value = self.dequantize(name, [&levels, &stored.scales, &zeros], axis);
        Ok(Some(StoredWeight { value, scales }))
    }

    fn bias(&mut self, name: &str, values: &[f32], activation: f32, weights: &[f32]) -> String {
        let (levels, clamped) = quantize_bias(values, activation, weights);
        self.report.weights.clamped += clamped;
        self.report.weights.converted += levels.len() as u64;
        let scales: Vec<f32> = weights.iter().map(|weight| activation * weight).collect();
        let bytes = levels.iter().flat_map(|level| level.to_le_bytes()).collect();
        let label = format!("{name}_quantized");
        let levels = TensorProto::of_bytes(&label, &ElementType::Int32, &[values.len() as u64], bytes);
        self.dequantized(name, levels, &scales, 0)
    }

    /// A constant behind a `DequantizeLinear` with zero points of zero, which older runtimes want to see.
    fn dequantized(&mut self, name: &str, levels: TensorProto, scales: &[f32], axis: usize) -> String {
        let n_scales = scales.len() as u64;
        let element = levels.element();
        let zeros = vec![0; scales.len() * element.size_bytes().unwrap_or(1) as usize];
        let zeros = TensorProto::of_bytes(&format!("{name}_zero_point"), &element, &[n_scales], zeros);
        let scales = TensorProto::of_floats(&format!("{name}_scale"), &[n_scales], scales);
        let inputs = [levels, scales, zeros].map(|tensor| self.editor.add_weight(tensor));
        self.dequantize(name, inputs.each_ref().map(String::as_str), axis)
    }

    /// The value behind a new `DequantizeLinear`.
    fn dequantize(&mut self, name: &str, inputs: [&str; 3], axis: usize) -> String {
        let value = self.editor.fresh(&format!("{name}_dequantized"));
        let axis = vec![AttributeProto::of_int("axis", axis as i64)];
        self.editor.push(NodeProto::of("DequantizeLinear", &value, &inputs, &[&value], axis));
        self.report.quantize_nodes += 1;
        value
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use crate::precision::activation_ranges::Range;
    use crate::precision::quantize_dynamic::tests::{model, tensor};
    use crate::precision::{ConversionError, StaticQuantization, prepare_static};
    use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};

    fn quantized(node: NodeProto, weights: Vec<TensorProto>) -> Result<GraphProto, ConversionError> {
        let ranges = ["x", "y"].map(|name| (name.to_owned(), Range::new(0.0, 2.55)));
        let prepared = prepare_static(model(vec![node], weights))?;
        let done = prepared.quantize(&BTreeMap::from(ranges), &StaticQuantization::default())?;
        Ok(done.model.graph.unwrap())
    }

    fn gemm(attributes: Vec<AttributeProto>) -> NodeProto {
        NodeProto::of("Gemm", "g", &["x", "w", "b"], &["y"], attributes)
    }

    #[test]
    fn a_bias_that_32_bits_cannot_hold_raises_the_scale_of_its_channel() {
        let weights = vec![
            TensorProto::of_floats("w", &[2, 1, 1, 1], &[1e-9, 1.27]),
            TensorProto::of_floats("b", &[2], &[100.0, 1.0]),
        ];
        let conv = NodeProto::of("Conv", "c", &["x", "w", "b"], &["y"], vec![]);
        let graph = quantized(conv, weights).unwrap();
        let levels = tensor(&graph, "b_quantized").integers().unwrap();
        assert!((levels[0] - (1 << 30)).abs() < 256 && (levels[1] - 10_000).abs() <= 1, "{levels:?}");
        let scales = tensor(&graph, "b_scale").floats().unwrap();
        assert!((levels[0] as f32 * scales[0] - 100.0).abs() < 1e-4);
    }

    #[test]
    fn factors_of_a_gemm_go_into_scales_and_bias() {
        let attributes = vec![
            AttributeProto::of_float("alpha", 2.0),
            AttributeProto::of_float("beta", 3.0),
            AttributeProto::of_int("transB", 1),
        ];
        let weights = vec![
            TensorProto::of_floats("w", &[2, 1], &[1.27, -2.54]),
            TensorProto::of_floats("b", &[1, 2], &[1.0, 2.0]),
        ];
        let graph = quantized(gemm(attributes), weights).unwrap();
        let node = graph.node.iter().find(|node| node.op_type() == "Gemm").unwrap();
        assert_eq!((node.float("alpha"), node.float("beta"), node.int("transB")), (None, None, Some(1)));
        assert_eq!(tensor(&graph, "w_scale").floats().unwrap(), [0.02, 0.04]);
        assert_eq!(tensor(&graph, "b_quantized").integers().unwrap(), [15_000, 15_000]);
    }

    #[test]
    fn a_table_that_is_the_last_layer_too_is_stored_once() {
        let table: Vec<f32> = (0..200 * 100).map(|index| (index % 17) as f32 - 8.0).collect();
        let nodes = vec![
            NodeProto::of("Gather", "e", &["w", "x"], &["h"], vec![]),
            NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![]),
            NodeProto::of("MatMul", "m", &["h", "wt"], &["y"], vec![]),
        ];
        let prepared = prepare_static(model(nodes, vec![TensorProto::of_floats("w", &[200, 100], &table)])).unwrap();
        let ranges = ["h", "y"].map(|name| (name.to_owned(), Range::new(-8.0, 8.0)));
        let done = prepared.quantize(&BTreeMap::from(ranges), &StaticQuantization::default()).unwrap();
        let graph = done.model.graph.unwrap();
        let integers: usize = graph.initializer.iter().filter(|tensor| tensor.dims == [200, 100]).count();
        assert_eq!((integers, done.report.weights.converted, done.report.weights.kept), (1, 200 * 100, 0));
        let maker = |name: &str| graph.node.iter().find(|node| node.output[0] == name).unwrap();
        let product = graph.node.iter().find(|node| node.op_type() == "MatMul").unwrap();
        let weight = maker(&product.input[1]);
        assert_eq!((weight.op_type(), weight.int("axis")), ("DequantizeLinear", Some(1)));
        assert_eq!(maker(&weight.input[0]).op_type(), "Transpose");
    }

    #[test]
    fn what_the_operator_does_not_have_stays() {
        let weights =
            || vec![TensorProto::of_floats("w", &[1, 2], &[1.0; 2]), TensorProto::of_floats("b", &[2, 1], &[1.0; 2])];
        let cases = [
            (vec![AttributeProto::of_int("transA", 1)], "its left operand is transposed"),
            (vec![AttributeProto::of_float("alpha", -1.0)], "its alpha is not above zero"),
            (vec![], "its bias is not one number for each column"),
        ];
        for (attributes, reason) in cases {
            let Err(ConversionError::NothingToConvert { kept }) = quantized(gemm(attributes), weights()) else {
                panic!()
            };
            assert_eq!(kept[0].reason, reason);
        }
    }
}
