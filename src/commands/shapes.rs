//! The shapes that a command gives a model's inputs, without a specification.

use std::collections::BTreeMap;

use crate::experiment::{InputPoint, Values};
use crate::onnx::{self, Resolved, ShapeProblem, Signature};
use crate::ui::cli::Size;

/// The shapes of the inputs: as asked for, with a batch of one where nothing is asked for and something is open.
///
/// # Errors
///
/// What is still open, or does not fit.
pub(super) fn resolve(signature: &Signature, sizes: &[Size]) -> Result<Resolved, ShapeProblem> {
    let dimensions: BTreeMap<String, u64> = sizes.iter().map(|size| (size.name.clone(), size.size)).collect();
    let point = |dimensions| InputPoint {
        name: String::new(),
        dimensions,
        shapes: BTreeMap::new(),
        values: Values::Random,
        search: None,
    };
    match onnx::resolve_inputs(signature, &point(dimensions)) {
        Err(ShapeProblem::FreeDimensions { .. }) if sizes.is_empty() => {
            onnx::resolve_inputs(signature, &point(BTreeMap::from([("batch".to_owned(), 1)])))
        }
        resolved => resolved,
    }
}
