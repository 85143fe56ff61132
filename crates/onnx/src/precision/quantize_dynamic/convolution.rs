//! Convolutions, on request: the module above says why they stay in float32 otherwise.
//!
//! Input: the node. Output: `ConvInteger` on unsigned weights around 128, scaled back, with the bias behind it.
//! Deliberately absent: signed weights, for which ONNX Runtime has no fast kernel.

use super::{Outcome, Work, rescale};
use crate::precision::scales::{UNUSUAL_WEIGHT, quantize_channels};
use crate::proto::{NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// The level of zero in unsigned weights.
const MIDDLE: u8 = 128;

impl Work {
    pub(super) fn conv(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        let ([input, kernel, ..], Some(output)) = (&node.input[..], node.output.first()) else {
            return Outcome::kept("it does not have two inputs");
        };
        if !self.options.convolutions {
            return Outcome::kept(
                "ONNX Runtime's convolutions with activations quantised at run time are slower than float32",
            );
        }
        let Some(weight) = self.editor.weight(kernel) else {
            return Outcome::kept(self.editor.why_no_weight(kernel, "its weight is computed, not constant"));
        };
        let form = self.editor.form(&weight)?;
        if !form.is_float32 || weight.is_transposed || form.shape.len() < 3 {
            return Outcome::kept("its weight is not a float32 kernel");
        }
        let bias = match node.input.get(2).filter(|bias| !bias.is_empty()) {
            None => None,
            Some(bias) => match self.editor.floats(bias).transpose()? {
                Some(values) => Some((bias.clone(), values)),
                None => return Outcome::kept("its bias is computed, not constant"),
            },
        };
        let Some(values) = self.editor.floats(&weight.name).transpose()? else {
            return Outcome::kept("its weight is not a float32 kernel");
        };
        let Some(channels) = quantize_channels(&values, &form.shape, 0, self.options.largest()) else {
            return Outcome::kept(UNUSUAL_WEIGHT);
        };
        self.report.weights.converted += values.len() as u64;
        let levels = channels.values.iter().map(|level| (i16::from(*level) + i16::from(MIDDLE)) as u8).collect();
        let levels = TensorProto::of_bytes(&format!("{kernel}_quantized"), &ElementType::Uint8, &form.shape, levels);
        let levels = self.editor.add_weight(levels);
        let middle = TensorProto::of_bytes(&format!("{kernel}_zero_point"), &ElementType::Uint8, &[], vec![MIDDLE]);
        let middle = self.editor.add_weight(middle);
        // One for each channel of [batch, channels, height, width].
        let mut shape = vec![1; form.shape.len()];
        shape[1] = form.shape[0];
        let scales = TensorProto::of_floats(&format!("{kernel}_scale"), &shape, &channels.scales);
        let scales = self.editor.add_weight(scales);

        let activation = self.activation(input);
        let label = node.label();
        let integers = self.editor.fresh(&format!("{output}_integers"));
        let inputs = [activation.values.as_str(), &levels, &activation.zero_point, &middle];
        let convolution = NodeProto::of("ConvInteger", &label, &inputs, &[&integers], node.attribute.clone());
        self.editor.push(convolution);
        self.report.casts += 1;
        let Some((name, values)) = bias else {
            rescale(&mut self.editor, &label, &integers, [&activation.scale, &scales], output);
            return Ok(Outcome::Converted);
        };
        let before = self.editor.fresh(&format!("{output}_before_bias"));
        rescale(&mut self.editor, &label, &integers, [&activation.scale, &scales], &before);
        let bias = self.editor.add_weight(TensorProto::of_floats(&format!("{name}_of_channels"), &shape, &values));
        self.editor.push(NodeProto::of("Add", &format!("{label}_bias"), &[&before, &bias], &[output], vec![]));
        Ok(Outcome::Converted)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{converted, model, tensor};
    use super::super::{DynamicQuantization, quantize_dynamic};
    use super::*;
    use crate::precision::ConversionError;
    use crate::proto::AttributeProto;

    fn conv() -> crate::proto::ModelProto {
        let pads = vec![AttributeProto::of_ints("pads", &[1, 1, 1, 1])];
        let node = NodeProto::of("Conv", "c", &["x", "w", "b"], &["y"], pads);
        let weights = vec![
            TensorProto::of_floats("w", &[2, 1, 1, 2], &[1.0, -2.0, 0.0, 4.0]),
            TensorProto::of_floats("b", &[2], &[1.0, 2.0]),
        ];
        model(vec![node], weights)
    }

    #[test]
    fn convolutions_are_unsigned_and_only_on_request() {
        let Err(ConversionError::NothingToConvert { kept }) = quantize_dynamic(conv(), &Default::default()) else {
            panic!()
        };
        assert!(kept[0].reason.contains("slower"));
        let options = DynamicQuantization { convolutions: true, ..Default::default() };
        let (graph, _, operators) = converted(conv(), &options);
        assert_eq!(operators, "DynamicQuantizeLinear ConvInteger Cast Mul Mul Add");
        assert_eq!(tensor(&graph, "w_quantized").integers().unwrap(), [192, 1, 128, 255]);
        assert_eq!(tensor(&graph, "w_scale").dims, [1, 2, 1, 1]);
        assert_eq!(tensor(&graph, "b_of_channels").dims, [1, 2, 1, 1]);
        assert_eq!(graph.node[1].ints("pads"), Some(&[1, 1, 1, 1][..]));
    }
}
