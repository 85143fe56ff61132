//! A worker that looks at activations: the model gives them as outputs, and their ranges go back to the parent.

use std::collections::BTreeMap;

use super::batches::{Batches, Data};
use crate::backend::{Backend, Failure, TensorRequest};
use experiment::Calibration;
use files::array::Array;
use onnx::precision::activation_ranges::{FirstPass, Method, Observed, Range};

/// The percentile of values that a range covers, where it is not to cover all: that of ONNX Runtime's tools and of
/// H. Wu et al. (arXiv:2004.09602, section 3.2).
const PERCENTILE: f64 = 99.99;

/// Runs every input set, or the items of a dataset, and returns the range of each float32 output; twice where a method
/// needs a histogram.
pub(super) fn activation_ranges(
    backend: &mut dyn Backend,
    tensors: &[TensorRequest],
    calibration: Calibration,
    data: Option<&Data>,
) -> Result<BTreeMap<String, Range>, Failure> {
    let method = match calibration {
        Calibration::MinMax => Method::MinMax,
        Calibration::Percentile => Method::Percentile(PERCENTILE),
        Calibration::Entropy => Method::Entropy,
    };
    let mut first = FirstPass::new(method);
    each_output(backend, tensors, data, &mut |output, values| first.observe(&output.name, values))?;
    match first.finish() {
        Observed::Ranges(ranges) => Ok(ranges),
        Observed::Again(mut second) => {
            each_output(backend, tensors, data, &mut |output, values| second.observe(&output.name, values))?;
            Ok(second.ranges())
        }
    }
}

/// Takes an output with its values.
type Observe<'a> = &'a mut dyn FnMut(&Array, &[f32]);

fn each_output(
    backend: &mut dyn Backend,
    tensors: &[TensorRequest],
    data: Option<&Data>,
    observe: Observe<'_>,
) -> Result<(), Failure> {
    let mut look = |outputs: Vec<Array>| -> Result<(), Failure> {
        for output in outputs {
            if let Some(values) = output.floats() {
                observe(&output, &values);
            }
        }
        Ok(())
    };
    if let Some(data) = data {
        return Batches::open(data, tensors)?.run(backend, &mut |outputs, _| look(outputs));
    }
    for set in 0..backend.input_sets() {
        backend.select(set);
        look(backend.outputs()?)?;
    }
    Ok(())
}
