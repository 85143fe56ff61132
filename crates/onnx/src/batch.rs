//! Which dimension counts items: what `batch` means for a model, and how many items an iteration has without it.
//!
//! Input: a model's inputs and an input point. Output: a [`BatchChoice`] or a [`ShapeError`]. Deliberately absent: the
//! sizes of all other dimensions (`resolve`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::expression::Expression;
use super::resolve::ResolvedTensor;
use super::shape_error::ShapeError;
use super::signature::{Dimension, TensorType};

/// The key that stands for whatever dimension counts items.
pub const BATCH: &str = "batch";

/// Names that exporters give that dimension, in lower case. Words come before letters: where both stand in one model,
/// the letter is something else (`N` points of each of `batch_size` clouds).
const BATCH_NAMES: [&str; 5] = [BATCH, "batch_size", "batch_dim", "b", "n"];

/// The dimension that counts items among sizes by name: the one that is called `batch`, else the first of the names that
/// exporters give it.
pub fn batch_among<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    BATCH_NAMES.iter().find_map(|usual| names.clone().find(|name| name.eq_ignore_ascii_case(usual)))
}

/// The dimension that counts items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchChoice {
    /// The one of this name in the file.
    Named(String),
    /// The leading one of every input, which the file leaves open.
    Leading,
    /// The leading one of every input, which the file fixes.
    Fixed,
}

impl fmt::Display for BatchChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchChoice::Named(name) => write!(f, "the dimension `{name}`"),
            BatchChoice::Leading => f.write_str("the leading dimension"),
            BatchChoice::Fixed => f.write_str("the leading dimension, fixed in the file"),
        }
    }
}

/// The sizes that are asked of the inputs of a model.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Sizes of dimensions, by name; [`BATCH`] stands for the dimension that counts items.
    pub dimensions: &'a BTreeMap<String, u64>,
    /// Whole shapes, by the names of inputs.
    pub shapes: &'a BTreeMap<String, Vec<u64>>,
}

/// What is asked of which inputs.
pub(super) struct Question<'a> {
    pub(super) inputs: &'a [TensorType],
    pub(super) asked: Asked<'a>,
    /// Dimensions whose name is arithmetic on other dimensions, by that name.
    pub(super) expressions: BTreeMap<&'a str, Expression<'a>>,
}

impl<'a> Question<'a> {
    pub(super) fn new(inputs: &'a [TensorType], asked: Asked<'a>) -> Self {
        let names: BTreeSet<&str> =
            inputs.iter().flat_map(TensorType::dimensions).filter_map(Dimension::name).collect();
        Question { inputs, asked, expressions: Expression::all(&names) }
    }

    /// Whether the size of another dimension is computed from the one of that name.
    pub(super) fn is_part(&self, name: &str) -> bool {
        let is_computed = |whole: &str| !self.asked.dimensions.contains_key(whole);
        self.expressions.iter().any(|(whole, expression)| is_computed(whole) && expression.parts().contains(name))
    }

    /// Inputs that `shapes` does not settle.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &'a TensorType> {
        self.inputs.iter().filter(|tensor| !self.asked.shapes.contains_key(&tensor.name))
    }

    /// The names of dimensions in the file, and those that sizes are computed from.
    pub(super) fn dimension_names(&self) -> BTreeSet<&'a str> {
        let names = self.inputs.iter().flat_map(TensorType::dimensions).filter_map(Dimension::name);
        names.chain(self.expressions.values().flat_map(Expression::parts)).collect()
    }

    /// The dimension that a batch of `asked` items means.
    pub(super) fn batch(&self, asked: u64) -> Result<BatchChoice, ShapeError> {
        if let Some(name) = self.batch_name(|name| name == BATCH || !self.asked.dimensions.contains_key(name)) {
            return Ok(BatchChoice::Named(name.to_owned()));
        }
        // Where `shapes` settles everything, `check_effects` sees whether it agrees with the batch.
        let leading = self.leading();
        let open = leading.iter().find(|(_, dimension)| !matches!(dimension, Dimension::Fixed(_)));
        for (tensor, dimension) in &leading {
            match dimension {
                Dimension::Fixed(fixed) if *fixed != asked => {
                    let (tensor, open) = (tensor.name.clone(), open.map(|(tensor, _)| tensor.name.clone()));
                    return Err(ShapeError::FixedBatch { tensor, fixed: *fixed, asked, open });
                }
                Dimension::Named(name) if self.asked.dimensions.contains_key(name) => {
                    return Err(ShapeError::NoBatch);
                }
                _ => {}
            }
        }
        match (leading.is_empty(), open) {
            (true, _) if self.asked.shapes.values().all(Vec::is_empty) => Err(ShapeError::NoBatch),
            (false, None) => Ok(BatchChoice::Fixed),
            _ => Ok(BatchChoice::Leading),
        }
    }

    /// The first of the usual names that a dimension of the file has, in the order of `BATCH_NAMES`.
    fn batch_name(&self, is_wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        let names = self.dimension_names();
        let named =
            |usual: &&str| names.iter().copied().find(|name| is_wanted(name) && name.eq_ignore_ascii_case(usual));
        BATCH_NAMES.iter().find_map(named)
    }

    /// Whether the leading dimension of an input counts items: it is the one that `batch` means, has a usual name or
    /// none, or is fixed at one size for all inputs.
    pub(super) fn counts_items(&self, tensor: &TensorType, batch: Option<&BatchChoice>) -> bool {
        let Some(leading) = tensor.dimensions().first() else { return false };
        match (leading, batch) {
            (Dimension::Named(name), Some(BatchChoice::Named(batch))) => name == batch,
            (Dimension::Named(name), None) => BATCH_NAMES.iter().any(|usual| name.eq_ignore_ascii_case(usual)),
            (Dimension::Fixed(_), _) => {
                let mut all = self.inputs.iter().filter_map(|input| input.dimensions().first());
                all.all(|other| other == leading)
            }
            (Dimension::Unknown, Some(BatchChoice::Named(_))) => false,
            _ => true,
        }
    }

    /// The leading dimensions that can be meant by `batch`: none whose size is computed from other dimensions.
    pub(super) fn leading(&self) -> Vec<(&'a TensorType, &'a Dimension)> {
        let leading = self.unsettled().filter_map(|tensor| Some((tensor, tensor.dimensions().first()?)));
        leading.filter(|(_, dimension)| !self.is_computed(dimension)).collect()
    }

    /// Whether the size of a dimension is computed from other dimensions.
    pub(super) fn is_computed(&self, dimension: &Dimension) -> bool {
        dimension.name().is_some_and(|name| self.expressions.contains_key(name))
    }

    /// What an open `batch` would be: a hint for messages, when the spec says nothing about it.
    pub(super) fn batch_key(&self) -> Option<BatchChoice> {
        // A batch that no file fixes: the answer is then a dimension that is still open.
        self.batch(u64::MAX).ok().filter(|_| !self.asked.dimensions.contains_key(BATCH))
    }

    /// Items per iteration where the spec does not say `batch`: a dimension of a usual name, else the leading dimension
    /// that all inputs share, if it was not given under another name and no output's fixed shape contradicts it.
    pub(super) fn implied_batch(
        &self,
        tensors: &[ResolvedTensor],
        outputs: &[TensorType],
    ) -> Option<(BatchChoice, u64)> {
        let given = self.sizes(None);
        if let Some(name) = self.batch_name(|name| given.get(name).is_some_and(|size| *size > 0)) {
            return Some((BatchChoice::Named(name.to_owned()), given[name]));
        }
        let sized = || tensors.iter().zip(self.inputs).filter(|(tensor, _)| !tensor.shape.is_empty());
        let size = *sized().next()?.0.shape.first()?;
        let contradicts = |output: &TensorType| match &output.shape {
            Some(shape) => match shape.first() {
                Some(Dimension::Fixed(fixed)) => *fixed != size,
                Some(_) => false,
                None => true,
            },
            None => false,
        };
        let is_shared = sized().all(|(tensor, declared)| {
            let name = declared.dimensions().first().and_then(Dimension::name);
            tensor.shape[0] == size && name.is_none_or(|name| !self.asked.dimensions.contains_key(name))
        });
        if size == 0 || !is_shared || outputs.iter().any(contradicts) {
            return None;
        }
        let is_fixed = sized().all(|(_, declared)| matches!(declared.dimensions().first(), Some(Dimension::Fixed(_))));
        Some((if is_fixed { BatchChoice::Fixed } else { BatchChoice::Leading }, size))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample::{check, check_problem, point, resolve, signature};
    use crate::{known_shapes, resolve_inputs};

    #[test]
    fn batch_is_the_dimension_of_a_usual_name_wherever_it_stands() {
        check("x[N,3,224,224]", &[("batch", 16)], &[], "[16, 3, 224, 224] | the dimension `N` = 16");
        check("x[7,Batch_Size] y[Batch_Size]", &[("batch", 4)], &[], "[7, 4] [4] | the dimension `Batch_Size` = 4");
        check("x[N,batch]", &[("batch", 4), ("N", 9)], &[], "[9, 4] | the dimension `batch` = 4");
        check("x[N,Batch_Dim]", &[("batch", 4), ("N", 9)], &[], "[9, 4] | the dimension `Batch_Dim` = 4");
        check("x[T,N,8]", &[("batch", 4), ("T", 9)], &[], "[9, 4, 8] | the dimension `N` = 4");
        // `N` may mean anything. Next to a clearer name it is not taken for the batch, and must be given.
        for inputs in ["x[batch_size,N,3]", "x[B,N,3]"] {
            let problem = resolve(inputs, &[("batch", 4)], &[]).unwrap_err();
            assert!(matches!(problem, ShapeError::FreeDimensions { dimensions, .. } if dimensions[0].index == 1));
        }
        check("x[n,2] info[1,3]", &[("batch", 4)], &[], "[4, 2] [1, 3] | the dimension `n` = 4");
    }

    #[test]
    fn batch_is_else_the_leading_dimension_of_every_input() {
        check("x[?,3] y[?]", &[("batch", 2)], &[], "[2, 3] [2] | the leading dimension = 2");
        check("x[a_0,3] y[b_0,a_0]", &[("batch", 2)], &[], "[2, 3] [2, 2] | the leading dimension = 2");
        check("x[?,3] threshold[]", &[("batch", 2)], &[], "[2, 3] [] | the leading dimension = 2");
        check("x[1,3,8,8]", &[("batch", 1)], &[], "[1, 3, 8, 8] | the leading dimension, fixed in the file = 1");
        check("x[?,3] y[2,3]", &[("batch", 2)], &[], "[2, 3] [2, 3] | the leading dimension = 2");
        check("x[?,3] s[4]", &[("batch", 2)], &[("s", &[4])], "[2, 3] [4] | the leading dimension = 2");
    }

    #[test]
    fn a_fixed_leading_dimension_refuses_another_batch() {
        check_problem(
            "images[1,3,640,640]",
            &[("batch", 16)],
            &[],
            "the leading dimension of `images` is fixed at 1 in the file, but the spec asks for batch 16",
            "export it with a dynamic batch, or ask for batch 1",
        );
        check_problem(
            "x[?,3] scale[4]",
            &[("batch", 16)],
            &[],
            "the leading dimension of `scale` is fixed at 4 in the file, but the spec asks for batch 16",
            "if `batch` refers to `x` only, give `scale` its own shape: `shapes: { scale: [4, ...] }`",
        );
    }

    #[test]
    fn a_batch_needs_a_dimension() {
        let none = "the model has no dimension that `batch` could refer to";
        let leave = "leave `batch` out for this model";
        check_problem("x[]", &[("batch", 2)], &[], none, leave);
        check_problem("", &[("batch", 2)], &[], none, leave);
        check_problem("x[sequence,8]", &[("batch", 2), ("sequence", 9)], &[], none, leave);
        assert_eq!(resolve("x[N]", &[("batch", 0)], &[]), Err(ShapeError::EmptyBatch));
    }

    #[test]
    fn items_are_counted_by_the_dimension_that_is_a_batch() {
        let counted = |inputs, dimensions: &[_]| -> Vec<bool> {
            let known = known_shapes(&signature(inputs, ""), point(dimensions, &[]).asked()).unwrap();
            known.into_iter().map(|known| known.counts_items).collect()
        };
        assert_eq!(counted("x[N,3] y[N] scale[4]", &[("batch", 2)]), [true, true, false]);
        assert_eq!(counted("x[T,N,8]", &[("batch", 2)]), [false]);
        assert_eq!(counted("x[1,3] y[1]", &[]), [true, true]);
        assert_eq!(counted("x[1,3] scale[4]", &[]), [false, false]);
        assert_eq!(counted("tokens[sequence] x[batch]", &[("sequence", 8)]), [false, true]);
        assert_eq!(counted("x[?,3] threshold[]", &[]), [true, false]);
        assert!(known_shapes(&signature("x[1,3]", ""), point(&[("batch", 2)], &[]).asked()).is_err());
    }

    #[test]
    fn items_are_known_without_batch_only_where_the_file_agrees() {
        let implied = |inputs, outputs, dimensions: &[_]| {
            resolve_inputs(&signature(inputs, outputs), &point(dimensions, &[])).unwrap().batch_size
        };
        assert_eq!(implied("x[8,3,224,224]", "y[8,1000]", &[]), Some(8));
        assert_eq!(implied("x[3,224,224]", "y[1000]", &[]), None);
        assert_eq!(implied("x[3,224]", "loss[]", &[]), None);
        assert_eq!(implied("x[8,3] y[4]", "", &[]), None);
        assert_eq!(implied("x[sequence,8]", "", &[("sequence", 128)]), None);
        assert_eq!(implied("x[sequence,N]", "", &[("sequence", 128), ("N", 4)]), Some(4));
        assert_eq!(implied("x[]", "", &[]), None);
    }
}
