//! Recurrent layers: `LSTM` becomes ONNX Runtime's `DynamicQuantizeLSTM`.
//!
//! Input: the node. Output: the same with both weights in 8 bits, turned as that operator wants them. Deliberately absent:
//! `GRU` and `RNN`, for which ONNX Runtime has no such operator, and the layout with the batch first.
//!
//! Source: `DynamicQuantizeLSTM` of the domain `com.microsoft`, in ONNX Runtime's ContribOperators.md.

use super::{MICROSOFT, Outcome, Work};
use crate::precision::edit::Weight;
use crate::precision::embedding::Stored;
use crate::precision::product::transposed;
use crate::precision::scales::{UNUSUAL_WEIGHT, quantize_channels};
use crate::proto::{NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// Inputs that both operators have, from X to P.
const SHARED_INPUTS: usize = 8;

impl Work<'_> {
    pub(super) fn lstm(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        let [_, input_weight, recurrent_weight, ..] = &node.input[..] else {
            return Outcome::kept("it does not have three inputs");
        };
        if node.int("layout").unwrap_or(0) != 0 {
            return Outcome::kept("its batch comes first, which DynamicQuantizeLSTM does not support");
        }
        let mut weights = Vec::new();
        for name in [input_weight, recurrent_weight] {
            let Some(weight) = self.editor.weight(name) else {
                return Outcome::kept(self.editor.why_no_weight(name, "its weights are computed, not constant"));
            };
            let form = self.editor.form(&weight)?;
            if weight.is_transposed || !form.is_float32 || form.shape.len() != 3 {
                return Outcome::kept("its weights are not float32 with three dimensions");
            }
            weights.push(weight);
        }
        let mut inputs: Vec<String> = node.input.iter().take(SHARED_INPUTS).cloned().collect();
        inputs.resize(SHARED_INPUTS, String::new());
        for (index, weight) in weights.iter().enumerate() {
            let Some([values, scales, zero_points]) = self.gates(weight)? else {
                return Outcome::kept(UNUSUAL_WEIGHT);
            };
            inputs[index + 1] = values;
            inputs.extend([scales, zero_points]);
        }
        let attribute = node.attribute.iter().filter(|attribute| attribute.name() != "layout").cloned().collect();
        let outputs: Vec<&str> = node.output.iter().map(String::as_str).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let lstm = NodeProto::of("DynamicQuantizeLSTM", &node.label(), &inputs, &outputs, attribute);
        self.editor.push(lstm.in_domain(MICROSOFT));
        Ok(Outcome::Converted)
    }

    /// [directions, gates, inputs] as [directions, inputs, gates], with scales and zero points of every gate.
    fn gates(&mut self, weight: &Weight) -> Result<Option<[String; 3]>, TensorError> {
        let name = &weight.name;
        if let Some(gates) = self.made.gates.get(name) {
            return Ok(Some(gates.clone()));
        }
        let shape = self.editor.form(weight)?.shape;
        let [directions, gates, inputs] = shape[..] else { return Ok(None) };
        let Some(values) = self.editor.floats(name).transpose()? else { return Ok(None) };
        let flat = [directions * gates, inputs];
        let Some(channels) = quantize_channels(&values, &flat, 0, self.made.options.largest()) else { return Ok(None) };
        let length = (gates * inputs) as usize;
        let directed = channels.values.chunks_exact(length.max(1));
        let turned = directed.flat_map(|values| transposed(values, gates as usize, inputs as usize)).collect();
        let levels = (&[directions, inputs, gates][..], turned);
        let scales = (&[directions, gates][..], &channels.scales[..]);
        let stored = Stored::add(self.editor, self.report, name, levels, scales);
        let zeros = vec![0; (directions * gates) as usize];
        let label = format!("{name}_zero_point");
        let zeros = TensorProto::of_bytes(&label, &ElementType::Int8, &[directions, gates], zeros);
        let gates = [stored.values, stored.scales, self.editor.add_weight_beside(name, zeros)];
        self.made.gates.insert(name.clone(), gates.clone());
        Ok(Some(gates))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::quantize_dynamic;
    use super::super::tests::{converted, model, tensor};
    use super::*;
    use crate::precision::ConversionError;
    use crate::proto::AttributeProto;

    fn lstm(layout: i64) -> crate::proto::ModelProto {
        let attributes = vec![AttributeProto::of_int("hidden_size", 1), AttributeProto::of_int("layout", layout)];
        let node = NodeProto::of("LSTM", "l", &["x", "w", "r"], &["y"], attributes);
        let input = [1.0, 2.0, 3.0, 6.0, 5.0, 10.0, 7.0, 14.0];
        let weights =
            vec![TensorProto::of_floats("w", &[1, 4, 2], &input), TensorProto::of_floats("r", &[1, 4, 1], &[1.0; 4])];
        model(vec![node], weights)
    }

    #[test]
    fn weights_are_turned_and_every_gate_has_its_scale() {
        let (graph, report, operators) = converted(lstm(0), &Default::default());
        assert_eq!((operators.as_str(), report.weights.converted), ("DynamicQuantizeLSTM", 12));
        let node = &graph.node[0];
        let inputs = [
            "x",
            "w_quantized",
            "r_quantized",
            "",
            "",
            "",
            "",
            "",
            "w_scale",
            "w_zero_point",
            "r_scale",
            "r_zero_point",
        ];
        assert_eq!((node.input.clone(), node.domain()), (inputs.map(str::to_owned).to_vec(), MICROSOFT));
        assert_eq!((node.int("hidden_size"), node.int("layout")), (Some(1), None));
        let weight = tensor(&graph, "w_quantized");
        assert_eq!((weight.dims.clone(), weight.integers().unwrap()), (vec![1, 2, 4], [[64; 4], [127; 4]].concat()));
    }

    #[test]
    fn the_batch_first_is_not_known() {
        let Err(ConversionError::NothingToConvert { kept }) = quantize_dynamic(lstm(1), &Default::default()) else {
            panic!()
        };
        assert!(kept[0].reason.starts_with("its batch comes first"));
    }
}
