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

impl Work<'_> {
    pub(super) fn conv(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        let ([input, kernel, ..], Some(output)) = (&node.input[..], node.output.first()) else {
            return Outcome::kept("it does not have two inputs");
        };
        if !self.made.options.convolutions {
            return Outcome::kept(self.made.slower);
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
        let Some([levels, middle, scales]) = self.kernel(&weight.name, &form.shape)? else {
            return Outcome::kept(UNUSUAL_WEIGHT);
        };
        let activation = self.activation(input);
        let label = node.label();
        let integers = self.editor.fresh(&format!("{output}_integers"));
        let inputs = [activation.values.as_str(), &levels, &activation.zero_point, &middle];
        let convolution = NodeProto::of("ConvInteger", &label, &inputs, &[&integers], node.attribute.clone());
        self.editor.push(convolution);
        self.report.casts += 1;
        let Some((name, values)) = bias else {
            rescale(self.editor, &label, &integers, [&activation.scale, &scales], output);
            return Ok(Outcome::Converted);
        };
        let before = self.editor.fresh(&format!("{output}_before_bias"));
        rescale(self.editor, &label, &integers, [&activation.scale, &scales], &before);
        let of_channels = of_channels(&form.shape);
        let bias =
            self.editor.add_weight(TensorProto::of_floats(&format!("{name}_of_channels"), &of_channels, &values));
        self.editor.push(NodeProto::of("Add", &format!("{label}_bias"), &[&before, &bias], &[output], vec![]));
        Ok(Outcome::Converted)
    }

    /// Levels, zero point and scales of a weight; `None` if a value is not finite.
    fn kernel(&mut self, name: &str, shape: &[u64]) -> Result<Option<[String; 3]>, TensorError> {
        if let Some(kernel) = self.made.kernels.get(name) {
            return Ok(Some(kernel.clone()));
        }
        let Some(values) = self.editor.floats(name).transpose()? else { return Ok(None) };
        let Some(channels) = quantize_channels(&values, shape, 0, self.made.options.largest()) else { return Ok(None) };
        self.report.weights.converted += values.len() as u64;
        let levels = channels.values.iter().map(|level| (i16::from(*level) + i16::from(MIDDLE)) as u8).collect();
        let kernel = [
            TensorProto::of_bytes(&format!("{name}_quantized"), &ElementType::Uint8, shape, levels),
            TensorProto::of_bytes(&format!("{name}_zero_point"), &ElementType::Uint8, &[], vec![MIDDLE]),
            TensorProto::of_floats(&format!("{name}_scale"), &of_channels(shape), &channels.scales),
        ];
        let kernel = kernel.map(|tensor| self.editor.add_weight_beside(name, tensor));
        self.made.kernels.insert(name.to_owned(), kernel.clone());
        Ok(Some(kernel))
    }
}

/// The shape of one number for each channel of [batch, channels, height, width].
fn of_channels(kernel: &[u64]) -> Vec<u64> {
    let mut shape = vec![1; kernel.len()];
    shape[1] = kernel[0];
    shape
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
