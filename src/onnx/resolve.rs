//! Which shape each input of a model gets: the one place that decides it.
//!
//! Input: a model's [`Signature`] and an input point of the spec. Output: a [`Resolved`], or the [`ShapeProblem`] that
//! makes the cell impossible. Deliberately absent: values, and shapes of outputs (the rehearsal finds those).
//!
//! Rules, the first that applies to a dimension:
//! 1. `shapes` gives its input a whole shape, which must agree with the file in rank and fixed sizes.
//! 2. The file fixes it.
//! 3. `dimensions` has its name.
//! 4. It is the one that `batch` means: the dimension named batch, batch_size, batch_dim, B or N in any case (in this
//!    order), else the leading dimension of every input. Inputs without dimensions and inputs in `shapes` have no say
//!    there. A fixed leading dimension of the size that is asked for is fine.
//! 5. A dimension of the same name got its size from `shapes`, the same everywhere.
//!
//! What is left has no size, and that is a problem which names all of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::batch::{BATCH, BatchChoice, Question};
use super::shape_problem::{FreeDimension, ShapeProblem, example_size};
use super::signature::{Dimension, ElementType, Signature, TensorType};
use crate::experiment::InputPoint;

/// Larger than any machine's memory of today: a typing error rather than a wish.
const LARGEST_TENSOR_BYTES: u64 = 1 << 40;

/// The shapes of one input point for one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Every input, in the order of the file.
    pub tensors: Vec<ResolvedTensor>,
    /// Which dimension counts items.
    pub batch: Option<BatchChoice>,
    /// Items per iteration; `None`: unknown, so that no throughput can be told.
    pub batch_size: Option<u64>,
}

/// One input with its shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedTensor {
    /// The name in the graph.
    pub name: String,
    /// What one element is.
    pub element: ElementType,
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
}

impl ResolvedTensor {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        element_count(&self.shape).unwrap_or(u64::MAX)
    }
}

/// Sizes of the dimensions that inputs name, where they are fed these shapes; none of a name that stands for several.
pub(crate) fn dimension_sizes<'a>(
    inputs: &[TensorType],
    fed: impl Iterator<Item = (&'a str, &'a [u64])>,
) -> BTreeMap<String, u64> {
    let mut sizes: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for (tensor, shape) in fed {
        let declared = inputs.iter().find(|input| input.name == tensor).and_then(|input| input.shape.as_ref());
        for (dimension, size) in declared.into_iter().flatten().zip(shape) {
            let Some(name) = dimension.name() else { continue };
            let known = sizes.entry(name.to_owned()).or_insert(Some(*size));
            *known = known.filter(|known| known == size);
        }
    }
    sizes.into_iter().filter_map(|(name, size)| Some((name, size?))).collect()
}

/// Decides the shape of every input.
///
/// # Errors
///
/// The first [`ShapeProblem`], in the order: types, `shapes`, `batch`, other names, missing sizes, sizes beyond 1 TiB.
pub(crate) fn resolve_inputs(signature: &Signature, input: &InputPoint) -> Result<Resolved, ShapeProblem> {
    check_types(signature)?;
    check_shapes(signature, input)?;
    let question = Question { inputs: &signature.inputs, input };
    question.check_ranks()?;
    let batch = match input.dimensions.get(BATCH) {
        Some(0) => return Err(ShapeProblem::EmptyBatch),
        Some(&asked) => Some((question.batch(asked)?, asked)),
        None => None,
    };
    question.check_names()?;
    let tensors = question.fill(batch.as_ref())?;
    tensors.iter().try_for_each(check_size)?;
    question.check_effects(&tensors, batch.as_ref())?;
    let (batch, batch_size) = batch.or_else(|| question.implied_batch(&tensors, &signature.outputs)).unzip();
    Ok(Resolved { tensors, batch, batch_size })
}

fn check_types(signature: &Signature) -> Result<(), ShapeProblem> {
    match signature.inputs.iter().find(|tensor| matches!(tensor.element, ElementType::Other(_))) {
        Some(TensorType { name, element, .. }) => {
            Err(ShapeProblem::UnsupportedType { tensor: name.clone(), element: element.clone() })
        }
        None => Ok(()),
    }
}

fn check_shapes(signature: &Signature, input: &InputPoint) -> Result<(), ShapeProblem> {
    for (name, given) in &input.shapes {
        let Some(tensor) = signature.inputs.iter().find(|tensor| tensor.name == *name) else {
            let known: Vec<String> = signature.inputs.iter().map(|tensor| tensor.name.clone()).collect();
            return Err(ShapeProblem::UnknownTensor { tensor: name.clone(), nearest: nearest(name, &known), known });
        };
        let Some(dimensions) = &tensor.shape else { continue };
        if dimensions.len() != given.len() {
            let (tensor, expected) = (name.clone(), tensor.shape_text());
            return Err(ShapeProblem::WrongRank { tensor, given: given.clone(), expected });
        }
        for (index, (dimension, &asked)) in dimensions.iter().zip(given).enumerate() {
            if let Dimension::Fixed(fixed) = *dimension
                && fixed != asked
            {
                return Err(ShapeProblem::FixedDimension { tensor: name.clone(), index, fixed, asked });
            }
        }
    }
    Ok(())
}

fn check_size(tensor: &ResolvedTensor) -> Result<(), ShapeProblem> {
    // A string takes a byte at least.
    let size = tensor.element.size_bytes().unwrap_or(1);
    let bytes = element_count(&tensor.shape).and_then(|elements| elements.checked_mul(size));
    match bytes {
        Some(bytes) if bytes <= LARGEST_TENSOR_BYTES => Ok(()),
        _ => Err(ShapeProblem::TooLarge { tensor: tensor.name.clone(), shape: tensor.shape.clone() }),
    }
}

/// `None` when it, or a single size, exceeds what ONNX can say (a signed 64-bit integer).
fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.iter().any(|&size| i64::try_from(size).is_err()) {
        return None;
    }
    // A zero anywhere means none, however large the product of the others.
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size)) }
}

impl<'a> Question<'a> {
    fn check_ranks(&self) -> Result<(), ShapeProblem> {
        let tensors: Vec<String> =
            self.unsettled().filter(|tensor| tensor.shape.is_none()).map(|tensor| tensor.name.clone()).collect();
        if tensors.is_empty() { Ok(()) } else { Err(ShapeProblem::UnknownRank { tensors }) }
    }

    /// Every key must be the name of a dimension; one that was settled by `shapes` is still a name.
    fn check_names(&self) -> Result<(), ShapeProblem> {
        let names = self.dimension_names();
        let is_unknown = |dimension: &&String| *dimension != BATCH && !names.contains(dimension.as_str());
        let Some(dimension) = self.input.dimensions.keys().find(is_unknown) else { return Ok(()) };
        let mut known: Vec<String> = names.into_iter().map(str::to_owned).collect();
        if self.batch_key().is_some() && !known.iter().any(|name| name == BATCH) {
            known.insert(0, BATCH.to_owned());
        }
        let nearest = nearest(dimension, &known);
        Err(ShapeProblem::UnknownDimension { dimension: dimension.clone(), nearest, known })
    }

    fn fill(&self, batch: Option<&(BatchChoice, u64)>) -> Result<Vec<ResolvedTensor>, ShapeProblem> {
        let sizes = self.sizes(batch);
        let batch_key = self.batch_key();
        let (mut tensors, mut free, mut example) = (Vec::new(), Vec::new(), BTreeMap::new());
        for tensor in self.inputs {
            let free_before = free.len();
            let mut shape = Vec::new();
            for (index, dimension) in tensor.dimensions().iter().enumerate() {
                let size = size_of(dimension, index, &sizes, batch);
                let key = key_of(dimension, index, batch_key.as_ref());
                shape.push(size.unwrap_or_else(|| example_size(key.as_deref())));
                if size.is_none() {
                    let name = dimension.name().map(str::to_owned);
                    free.push(FreeDimension { tensor: tensor.name.clone(), index, name, key });
                }
            }
            if let Some(given) = self.input.shapes.get(&tensor.name) {
                free.truncate(free_before);
                shape = given.clone();
            } else if free.len() > free_before {
                example.insert(tensor.name.clone(), shape.clone());
            }
            tensors.push(ResolvedTensor { name: tensor.name.clone(), element: tensor.element.clone(), shape });
        }
        if free.is_empty() { Ok(tensors) } else { Err(ShapeProblem::FreeDimensions { dimensions: free, example }) }
    }

    /// The size of every named dimension that has one: rules 3 to 5, the first that applies.
    pub(super) fn sizes(&self, batch: Option<&(BatchChoice, u64)>) -> BTreeMap<&'a str, u64> {
        let mut sizes: BTreeMap<&str, u64> =
            self.input.dimensions.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        match batch {
            Some((BatchChoice::Named(batch_name), size)) => {
                sizes.extend(self.dimension_names().get(batch_name.as_str()).map(|name| (*name, *size)));
            }
            Some((BatchChoice::Leading, size)) => {
                sizes.extend(self.leading().iter().filter_map(|(_, dimension)| Some((dimension.name()?, *size))));
            }
            _ => {}
        }
        for (name, size) in self.sizes_in_shapes() {
            sizes.entry(name).or_insert(size);
        }
        sizes
    }

    /// Named dimensions that `shapes` gives one size wherever they occur.
    fn sizes_in_shapes(&self) -> BTreeMap<&'a str, u64> {
        let mut found: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for tensor in self.inputs {
            let Some(given) = self.input.shapes.get(&tensor.name) else { continue };
            for (dimension, size) in tensor.dimensions().iter().zip(given) {
                if let Some(name) = dimension.name() {
                    found.entry(name).or_default().insert(*size);
                }
            }
        }
        found
            .into_iter()
            .filter(|(_, sizes)| sizes.len() == 1)
            .filter_map(|(name, sizes)| Some((name, sizes.into_iter().next()?)))
            .collect()
    }

    /// A key that `shapes` leaves nothing to decide for is a mistake, unless both say the same.
    fn check_effects(
        &self,
        tensors: &[ResolvedTensor],
        batch: Option<&(BatchChoice, u64)>,
    ) -> Result<(), ShapeProblem> {
        for (key, &asked) in &self.input.dimensions {
            let is_meant = |index: usize, dimension: Option<&Dimension>| match batch {
                Some((BatchChoice::Named(name), _)) if key == BATCH => {
                    dimension.and_then(Dimension::name) == Some(name)
                }
                Some(_) if key == BATCH => index == 0,
                _ => dimension.and_then(Dimension::name) == Some(key),
            };
            let has_effect = tensors.iter().zip(self.inputs).any(|(tensor, declared)| {
                let mut sizes = tensor.shape.iter().enumerate();
                sizes.any(|(index, size)| *size == asked && is_meant(index, declared.dimensions().get(index)))
            });
            if !has_effect {
                return Err(ShapeProblem::Overridden { dimension: key.clone(), asked });
            }
        }
        Ok(())
    }
}

/// The size of a dimension, as far as the file and the input point say.
fn size_of(
    dimension: &Dimension,
    index: usize,
    sizes: &BTreeMap<&str, u64>,
    batch: Option<&(BatchChoice, u64)>,
) -> Option<u64> {
    match (dimension, batch) {
        (Dimension::Fixed(size), _) => Some(*size),
        (Dimension::Named(name), _) if sizes.contains_key(name.as_str()) => Some(sizes[name.as_str()]),
        (_, Some((BatchChoice::Leading, size))) if index == 0 => Some(*size),
        _ => None,
    }
}

/// What is known of the shape of an input before an array is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownShape {
    /// Size of each dimension, `None` where it is open; nothing where not even their number is known.
    pub(crate) sizes: Option<Vec<Option<u64>>>,
    /// Whether the leading dimension counts items, so that an array with more of them holds several batches.
    pub(crate) counts_items: bool,
}

/// What is known of the shape of every input, in the order of the file.
///
/// # Errors
///
/// A `batch` that means no dimension of the model.
pub(crate) fn known_shapes(signature: &Signature, input: &InputPoint) -> Result<Vec<KnownShape>, ShapeProblem> {
    let question = Question { inputs: &signature.inputs, input };
    let asked = input.dimensions.get(BATCH);
    let batch = asked.map(|asked| Ok((question.batch(*asked)?, *asked))).transpose()?;
    let sizes = question.sizes(batch.as_ref());
    let one = |tensor: &TensorType| {
        let of_file = tensor.shape.as_ref().map(|dimensions| {
            let known = |(index, dimension)| size_of(dimension, index, &sizes, batch.as_ref());
            dimensions.iter().enumerate().map(known).collect()
        });
        let given = input.shapes.get(&tensor.name).map(|shape| shape.iter().copied().map(Some).collect());
        let counts_items = question.counts_items(tensor, batch.as_ref().map(|(choice, _)| choice));
        KnownShape { sizes: given.or(of_file), counts_items }
    };
    Ok(signature.inputs.iter().map(one).collect())
}

/// The key under `inputs` that sets a dimension.
fn key_of(dimension: &Dimension, index: usize, batch: Option<&BatchChoice>) -> Option<String> {
    let is_batch = match batch {
        Some(BatchChoice::Named(name)) => dimension.name() == Some(name),
        Some(BatchChoice::Leading) => index == 0,
        Some(BatchChoice::Fixed) | None => false,
    };
    if is_batch { Some(BATCH.to_owned()) } else { dimension.name().map(str::to_owned) }
}

/// The known name that was perhaps meant: equal but for case, else at most a third of the letters away.
fn nearest(asked: &str, known: &[String]) -> Option<String> {
    let distance = |name: &String| strsim::damerau_levenshtein(&asked.to_lowercase(), &name.to_lowercase());
    let closest = known.iter().min_by_key(|name| distance(name))?;
    let longer = asked.chars().count().max(closest.chars().count());
    (distance(closest) <= longer.max(3) / 3).then(|| closest.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::onnx::sample::{check, check_problem, point, resolve, signature};

    #[test]
    fn dimensions_are_set_by_name() {
        let dimensions = [("batch", 2), ("sequence", 128)];
        let expected = "[2, 128] [2, 128] | the dimension `batch` = 2";
        check("ids[batch,sequence] mask[batch,sequence]", &dimensions, &[], expected);
        check("past[batch,past]", &[("batch", 1), ("past", 0)], &[], "[1, 0] | the dimension `batch` = 1");
    }

    #[test]
    fn names_have_the_sizes_that_they_stand_for() {
        let declared = signature("a[N,s] b[N,s,3]", "");
        let sizes = |first: &[u64]| dimension_sizes(&declared.inputs, [("a", first), ("b", &[2, 7, 3])].into_iter());
        assert_eq!(sizes(&[2, 7]), BTreeMap::from([("N".to_owned(), 2), ("s".to_owned(), 7)]));
        assert_eq!(sizes(&[2, 5]), BTreeMap::from([("N".to_owned(), 2)]));
    }

    #[test]
    fn unknown_dimensions_name_the_nearest() {
        let reason = "no input of the model has a dimension `sequnce`";
        check_problem("x[N,sequence]", &[("batch", 1), ("sequnce", 8)], &[], reason, "write `sequence`");
        let reason = "no input of the model has a dimension `width`";
        check_problem("x[N,C]", &[("width", 8)], &[], reason, "dimensions that can be set by name: `batch`, `C`, `N`");
        check_problem(
            "x[1,3]",
            &[("width", 8)],
            &[],
            reason,
            "leave it out, or give whole shapes: no free dimension of the file has a name",
        );
    }

    #[test]
    fn everything_without_a_size_is_named() {
        check_problem(
            "ids[N,sequence] mask[N,sequence]",
            &[("batch", 1)],
            &[],
            "`sequence` (dimension 1 of `ids`), `sequence` (dimension 1 of `mask`) have no size",
            "set them, for example `inputs: { sequence: 128 }`",
        );
        check_problem(
            "x[?,3]",
            &[],
            &[],
            "dimension 0 of `x` has no size",
            "set them, for example `inputs: { batch: 1 }`",
        );
        check_problem(
            "x[N,3,?,?]",
            &[],
            &[],
            "`N` (dimension 0 of `x`), dimension 2 of `x`, dimension 3 of `x` have no size",
            "give whole shapes, for example `inputs: [{ name: b1, shapes: { x: [1, 3, 128, 128] } }]`",
        );
        check_problem(
            "x[...]",
            &[],
            &[],
            "the file does not say how many dimensions these inputs have: `x`",
            "give whole shapes, for example `inputs: [{ name: b1, shapes: { x: [1, 128] } }]`",
        );
    }

    #[test]
    fn shapes_win_and_must_agree_with_the_file() {
        check("x[N,3,?,?]", &[], &[("x", &[16, 3, 9, 9])], "[16, 3, 9, 9] | the dimension `N` = 16");
        check("x[...]", &[], &[("x", &[2, 2])], "[2, 2] | the leading dimension = 2");
        check("a[N,s] b[N,s]", &[("s", 7)], &[("a", &[2, 5])], "[2, 5] [2, 7] | the dimension `N` = 2");
        check_problem("data[N]", &[], &[("dat", &[1])], "the model has no input `dat`", "write `data`");
        let reason = "the shape [1, 2] of `x` has 2 dimensions, and the file says [N, 3, 8]";
        check_problem("x[N,3,8]", &[], &[("x", &[1, 2])], reason, "give one size for each dimension of the file");
        let reason = "dimension 1 of `x` is fixed at 3 in the file, but the spec asks for 4";
        check_problem("x[N,3]", &[], &[("x", &[1, 4])], reason, "export it with a dynamic dimension, or write 3 there");
    }

    #[test]
    fn a_key_that_shapes_leaves_nothing_for_is_a_problem() {
        let reason = "`batch: 4` has no effect: `shapes` gives every input that has this dimension another size";
        let remedy = "leave `batch` out, or remove the input it is meant for from `shapes`";
        check_problem("x[N,3]", &[("batch", 4)], &[("x", &[8, 3])], reason, remedy);
        check_problem("x[?,3]", &[("batch", 4)], &[("x", &[8, 3])], reason, remedy);
        check("x[N,3]", &[("batch", 8)], &[("x", &[8, 3])], "[8, 3] | the dimension `N` = 8");
    }

    #[test]
    fn what_cannot_be_filled_or_held_is_a_problem() {
        let mut texts = signature("x[N]", "");
        texts.inputs[0].element = ElementType::String;
        assert!(resolve_inputs(&texts, &point(&[("batch", 1)], &[])).is_ok());
        let sequence = ElementType::Other("sequence(float32)".to_owned());
        texts.inputs[0].element = sequence.clone();
        let problem = resolve_inputs(&texts, &point(&[("batch", 1)], &[])).unwrap_err();
        assert_eq!(problem, ShapeProblem::UnsupportedType { tensor: "x".to_owned(), element: sequence });
        for batch in [u64::MAX, 1 << 62, 1 << 40] {
            let problem = resolve("x[N,1024,1024]", &[("batch", batch)], &[]).unwrap_err();
            assert!(matches!(problem, ShapeProblem::TooLarge { .. }));
        }
        assert!(matches!(resolve("x[0,N]", &[("batch", u64::MAX)], &[]), Err(ShapeProblem::TooLarge { .. })));
        check(
            "x[0,N]",
            &[("batch", 1 << 62)],
            &[],
            "[0, 4611686018427387904] | the dimension `N` = 4611686018427387904",
        );
    }

    proptest! {
        #[test]
        fn resolved_shapes_keep_what_the_file_fixes(
            shapes in prop::collection::vec(prop::collection::vec(prop_oneof![
                (0_u64..4).prop_map(Dimension::Fixed),
                "[abN]".prop_map(Dimension::Named),
                Just(Dimension::Unknown),
            ], 0..4), 0..4),
            dimensions in
                prop::collection::btree_map(prop_oneof![Just("batch".to_owned()), "[abN]"], any::<u64>(), 0..4),
        ) {
            let element = ElementType::Int64;
            let tensor = |(index, shape)| {
                TensorType { name: format!("t{index}"), element: element.clone(), shape: Some(shape) }
            };
            let signature = Signature { inputs: shapes.into_iter().enumerate().map(tensor).collect(), outputs: vec![] };
            let input = InputPoint { dimensions: dimensions.clone(), ..point(&[], &[]) };
            match resolve_inputs(&signature, &input) {
                Ok(resolved) => {
                    prop_assert_eq!(resolved.tensors.len(), signature.inputs.len());
                    for (tensor, declared) in resolved.tensors.iter().zip(&signature.inputs) {
                        prop_assert!(tensor.elements() <= 1 << 37);
                        for (size, dimension) in tensor.shape.iter().zip(declared.dimensions()) {
                            match dimension {
                                Dimension::Fixed(fixed) => prop_assert_eq!(size, fixed),
                                Dimension::Named(name) => {
                                    prop_assert!(dimensions.get(name).is_none_or(|given| given == size));
                                }
                                Dimension::Unknown => prop_assert_eq!(Some(size), dimensions.get("batch")),
                            }
                        }
                    }
                }
                Err(problem) => prop_assert!(!problem.to_string().is_empty() && !problem.remedy().is_empty()),
            }
        }
    }
}
