//! The shapes that a command gives a model's inputs, without a specification.

use std::collections::BTreeMap;

use crate::ui::cli::Size;
use experiment::{BATCH, InputPoint, Values};
use onnx::{Interface, Resolved, ShapeError, Signature};

/// The shapes of the inputs, which these values will fill: as asked for, with a batch of one where none is asked for and something is open.
///
/// # Errors
///
/// What is still open, or does not fit.
pub(super) fn resolve(interface: &Interface, sizes: &[Size], values: Values) -> Result<Resolved, ShapeError> {
    let asked = InputPoint { values, ..point(interface.signature(), sizes) };
    match asked.resolve(interface) {
        Err(problem @ ShapeError::FreeDimensions { .. }) if !asked.dimensions.contains_key(BATCH) => {
            let mut with_batch = asked;
            with_batch.dimensions.insert(BATCH.to_owned(), 1);
            match with_batch.resolve(interface) {
                Err(ShapeError::NoBatch | ShapeError::FixedBatch { .. }) => Err(problem),
                resolved => resolved,
            }
        }
        resolved => resolved,
    }
}

/// Dimensions by their names, and whole shapes of inputs: a single size is one where no dimension has that name.
fn point(signature: &Signature, sizes: &[Size]) -> InputPoint {
    let is_dimension = |name: &str| {
        let mut dimensions = signature.inputs.iter().filter_map(|input| input.shape.as_ref()).flatten();
        name == BATCH || dimensions.any(|dimension| dimension.name() == Some(name))
    };
    let is_input = |name: &str| signature.inputs.iter().any(|input| input.name == name);
    let (mut dimensions, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for Size { name, sizes } in sizes {
        match sizes[..] {
            [size] if is_dimension(name) || !is_input(name) => drop(dimensions.insert(name.clone(), size)),
            _ => drop(shapes.insert(name.clone(), sizes.clone())),
        }
    }
    InputPoint { dimensions, shapes, ..InputPoint::default() }
}

/// What to type where sizes are missing; else what a specification would have to say.
pub(super) fn remedy(problem: &ShapeError) -> String {
    match problem {
        ShapeError::FreeDimensions { dimensions, example } => {
            let words: Vec<String> = match ShapeError::proposed(dimensions) {
                Some(keys) => keys.into_iter().map(|(name, size)| format!("{name}={size}")).collect(),
                None => example
                    .iter()
                    .map(|(name, shape)| Size { name: name.clone(), sizes: shape.clone() }.to_string())
                    .collect(),
            };
            typed("set them, for example", &words)
        }
        ShapeError::Misfit(misfit) => {
            let named = misfit.open.as_ref().and_then(|open| Some((open.name.clone()?, open.wants)));
            let Some((name, size)) = named else { return problem.remedy() };
            typed("set", &[Size { name, sizes: vec![size] }.to_string()])
        }
        ShapeError::UnknownRank { tensors } => {
            let words: Vec<String> = tensors.iter().map(|tensor| format!("{tensor}=1x128")).collect();
            format!("give whole shapes, for example `--inputs '{}'`", words.join(","))
        }
        problem => problem.remedy(),
    }
}

/// Words for `--inputs`. What breaks out of the quotes, or of the list, cannot be typed like that.
fn typed(what: &str, words: &[String]) -> String {
    match words.iter().any(|word| word.contains(['\'', ','])) {
        true => "set them with `--inputs NAME=SIZE,...`".to_owned(),
        false => format!("{what} `--inputs '{}'`", words.join(",")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onnx::{Dimension, ElementType, TensorType};

    /// Of a model with one input, `x`: `?,s,3`.
    fn input(dimensions: &str) -> Interface {
        let dimension = |text: &str| match text.parse() {
            Ok(size) => Dimension::Fixed(size),
            Err(_) if text == "?" => Dimension::Unknown,
            Err(_) => Dimension::Named(text.to_owned()),
        };
        let shape = Some(dimensions.split(',').map(dimension).collect());
        let inputs = vec![TensorType { name: "x".to_owned(), element: ElementType::Float32, shape }];
        Interface::from(Signature { inputs, outputs: Vec::new() })
    }

    fn shapes(dimensions: &str, sizes: &[&str]) -> Result<Vec<Vec<u64>>, String> {
        let sizes: Vec<Size> = sizes.iter().map(|size| size.parse().unwrap()).collect();
        let resolved = resolve(&input(dimensions), &sizes, Values::Random);
        let shapes = resolved.map(|resolved| resolved.tensors.into_iter().map(|tensor| tensor.shape).collect());
        shapes.map_err(|problem| format!("{problem}: {}", remedy(&problem)))
    }

    #[test]
    fn what_has_no_name_is_sized_by_whole_shapes() {
        assert_eq!(shapes("?,3", &[]), Ok(vec![vec![1, 3]]));
        let problem = "dimension 1 of `x` has no size: set them, for example `--inputs 'x=1x128x3'`";
        assert_eq!(shapes("?,?,3", &[]), Err(problem.to_owned()));
        assert_eq!(shapes("?,?,3", &["x=1x128x3"]), Ok(vec![vec![1, 128, 3]]));
        assert_eq!(shapes("?", &["x=7"]), Ok(vec![vec![7]]));
        // A batch of one is meant wherever none is asked for.
        assert_eq!(shapes("?,s", &["s=64"]), Ok(vec![vec![1, 64]]));
        assert_eq!(
            shapes("?,s", &[]),
            Err("`s` (dimension 1 of `x`) has no size: set them, for example `--inputs 's=128'`".to_owned())
        );
        for wrong in ["x", "x=", "=1", "x=1x", "x=-1"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
