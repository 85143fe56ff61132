//! Which shape each input of a model gets; no other code decides it.
//!
//! Input: a model's [`Signature`] and an input point of the spec. Output: a [`Resolved`], or the [`ShapeError`] that
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
//! 6. Its name is arithmetic on dimensions that have a size (`past_sequence_length + 1`).
//!
//! What is left has no size, and that is a problem which names all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::batch::{Asked, BATCH, BatchChoice, Question};
use super::expression::{Expression, NoSize};
use super::shape_error::{FreeDimension, ShapeError, USUAL_SIZE};
use super::signature::{Dimension, ElementType, Signature, TensorType};

/// Larger than any machine's memory of today: a typing error rather than a wish.
const LARGEST_TENSOR_BYTES: u64 = 1 << 40;

/// The shapes of one input point for one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Every input, in the order of the file.
    pub tensors: Vec<ResolvedTensor>,
    /// Which dimension counts items.
    pub batch: Option<BatchChoice>,
    /// Items per iteration; `None`: unknown, so that there is no throughput.
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
    /// What random integers are drawn from, where the graph says what the model can take; `None`: 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integers: Option<Range<i64>>,
    /// Whether the integers come in their order, for every index but the last anew, and are not drawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_counted: bool,
}

impl ResolvedTensor {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        element_count(&self.shape).unwrap_or(u64::MAX)
    }

    /// What every element is, where only one integer is possible.
    pub(crate) fn only_integer(&self) -> Option<i64> {
        let integers = self.integers.as_ref().filter(|_| !self.is_counted)?;
        (integers.start.checked_add(1) == Some(integers.end)).then_some(integers.start)
    }
}

/// A dimension that nothing gives a size, or one that the size of such a dimension is computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open<'a> {
    pub(super) name: Option<&'a str>,
    /// An input that has it, and its axis in that input.
    pub(super) input_axis: (&'a str, usize),
    /// The key under `inputs` that sets it.
    pub(super) key: Option<&'a str>,
}

/// Chooses a size to propose for a dimension that is open.
pub(super) type Guess<'g> = &'g dyn Fn(Open<'_>) -> u64;

/// A batch of 1, and 128 of anything else.
pub(super) fn usual_size(open: Open<'_>) -> u64 {
    if open.key == Some(BATCH) { 1 } else { USUAL_SIZE }
}

/// Sizes of the dimensions that inputs name, where they are fed these shapes; none of a name that stands for several.
pub fn dimension_sizes<'a>(
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
/// The first [`ShapeError`], in the order: types, `shapes`, `batch`, other names, missing sizes, sizes beyond 1 TiB.
#[cfg(test)]
pub(crate) fn resolve_inputs(signature: &Signature, point: &super::sample::Point) -> Result<Resolved, ShapeError> {
    resolve_guessing(signature, point.asked(), &usual_size)
}

/// The same; a dimension without a size is reported with the one to propose for it.
pub(super) fn resolve_guessing(
    signature: &Signature,
    asked: Asked<'_>,
    guess: Guess<'_>,
) -> Result<Resolved, ShapeError> {
    let question = Question::new(&signature.inputs, asked);
    let batch = question.check(signature)?;
    let (tensors, dimensions) = question.fill(batch.as_ref(), guess)?;
    if !dimensions.is_empty() {
        let has_open = |tensor: &&ResolvedTensor| dimensions.iter().any(|free| free.tensor == tensor.name);
        let example =
            tensors.iter().filter(has_open).map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect();
        return Err(ShapeError::FreeDimensions { dimensions, example });
    }
    tensors.iter().try_for_each(check_size)?;
    question.check_effects(&tensors, batch.as_ref())?;
    let (batch, batch_size) = batch.or_else(|| question.implied_batch(&tensors, &signature.outputs)).unzip();
    Ok(Resolved { tensors, batch, batch_size })
}

/// Every input, with guesses where nothing gives a size.
///
/// # Errors
///
/// As [`resolve_inputs`], but for missing sizes.
pub(super) fn propose(
    signature: &Signature,
    asked: Asked<'_>,
    guess: Guess<'_>,
) -> Result<Vec<ResolvedTensor>, ShapeError> {
    let question = Question::new(&signature.inputs, asked);
    let batch = question.check(signature)?;
    Ok(question.fill(batch.as_ref(), guess)?.0)
}

fn check_types(signature: &Signature) -> Result<(), ShapeError> {
    match signature.inputs.iter().find(|tensor| matches!(tensor.element, ElementType::Other(_))) {
        Some(TensorType { name, element, .. }) => {
            Err(ShapeError::UnsupportedType { tensor: name.clone(), element: element.clone() })
        }
        None => Ok(()),
    }
}

fn check_shapes(signature: &Signature, asked: Asked<'_>) -> Result<(), ShapeError> {
    for (name, given) in asked.shapes {
        let Some(tensor) = signature.inputs.iter().find(|tensor| tensor.name == *name) else {
            let known: Vec<String> = signature.inputs.iter().map(|tensor| tensor.name.clone()).collect();
            return Err(ShapeError::UnknownTensor { tensor: name.clone(), nearest: nearest(name, &known), known });
        };
        let Some(dimensions) = &tensor.shape else { continue };
        if dimensions.len() != given.len() {
            let (tensor, expected) = (name.clone(), tensor.shape_text());
            return Err(ShapeError::WrongRank { tensor, given: given.clone(), expected });
        }
        for (index, (dimension, &size)) in dimensions.iter().zip(given).enumerate() {
            if let Dimension::Fixed(fixed) = *dimension
                && fixed != size
            {
                return Err(ShapeError::FixedDimension { tensor: name.clone(), index, fixed, asked: size });
            }
        }
    }
    Ok(())
}

pub(super) fn check_size(tensor: &ResolvedTensor) -> Result<(), ShapeError> {
    // A string takes a byte at least.
    let size = tensor.element.size_bytes().unwrap_or(1);
    let bytes = element_count(&tensor.shape).and_then(|elements| elements.checked_mul(size));
    match bytes {
        Some(bytes) if bytes <= LARGEST_TENSOR_BYTES => Ok(()),
        _ => Err(ShapeError::TooLarge { tensor: tensor.name.clone(), shape: tensor.shape.clone() }),
    }
}

/// `None` when it, or a single size, exceeds what ONNX can say (a signed 64-bit integer).
fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.iter().any(|&size| i64::try_from(size).is_err()) {
        return None;
    }
    // A zero anywhere means none, however large the product of all other sizes.
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size)) }
}

impl<'a> Question<'a> {
    /// What can be said before anything is filled: the batch.
    fn check(&self, signature: &Signature) -> Result<Option<(BatchChoice, u64)>, ShapeError> {
        check_types(signature)?;
        check_shapes(signature, self.asked)?;
        self.check_ranks()?;
        let batch = match self.asked.dimensions.get(BATCH) {
            Some(0) => return Err(ShapeError::EmptyBatch),
            Some(&asked) => Some((self.batch(asked)?, asked)),
            None => None,
        };
        self.check_names()?;
        Ok(batch)
    }

    fn check_ranks(&self) -> Result<(), ShapeError> {
        let tensors: Vec<String> =
            self.unsettled().filter(|tensor| tensor.shape.is_none()).map(|tensor| tensor.name.clone()).collect();
        if tensors.is_empty() { Ok(()) } else { Err(ShapeError::UnknownRank { tensors }) }
    }

    /// Every key must be the name of a dimension; one that was settled by `shapes` is still a name.
    fn check_names(&self) -> Result<(), ShapeError> {
        let names = self.dimension_names();
        let is_unknown = |dimension: &&String| *dimension != BATCH && !names.contains(dimension.as_str());
        let Some(dimension) = self.asked.dimensions.keys().find(is_unknown) else { return Ok(()) };
        let mut known: Vec<String> = names.into_iter().map(str::to_owned).collect();
        if self.batch_key().is_some() && !known.iter().any(|name| name == BATCH) {
            known.insert(0, BATCH.to_owned());
        }
        let nearest = nearest(dimension, &known);
        Err(ShapeError::UnknownDimension { dimension: dimension.clone(), nearest, known })
    }

    /// Every input, and what nothing gives a size.
    fn fill(
        &self,
        batch: Option<&(BatchChoice, u64)>,
        guess: Guess<'_>,
    ) -> Result<(Vec<ResolvedTensor>, Vec<FreeDimension>), ShapeError> {
        let sizes = self.sizes(batch);
        let (mut tensors, mut free) = (Vec::new(), Vec::new());
        for tensor in self.inputs {
            let shape = match self.asked.shapes.get(&tensor.name) {
                Some(given) => given.clone(),
                None => {
                    let mut shape = Vec::new();
                    for (index, dimension) in tensor.dimensions().iter().enumerate() {
                        shape.push(match self.size_of(dimension, index, &sizes, batch) {
                            Some(size) => size,
                            None => self.open((tensor, index, dimension), &sizes, guess, &mut free)?,
                        });
                    }
                    shape
                }
            };
            let (name, element) = (tensor.name.clone(), tensor.element.clone());
            tensors.push(ResolvedTensor { name, element, shape, integers: None, is_counted: false });
        }
        Ok((tensors, free))
    }

    /// The size of a dimension, as far as the file and the input point say.
    fn size_of(
        &self,
        dimension: &Dimension,
        index: usize,
        sizes: &BTreeMap<&str, u64>,
        batch: Option<&(BatchChoice, u64)>,
    ) -> Option<u64> {
        match (dimension, batch) {
            (Dimension::Fixed(size), _) => Some(*size),
            (Dimension::Named(name), _) if sizes.contains_key(name.as_str()) => Some(sizes[name.as_str()]),
            (_, Some((BatchChoice::Leading, size))) if index == 0 && !self.is_computed(dimension) => Some(*size),
            _ => None,
        }
    }

    /// The size to propose for a dimension that has none, and what would give it one.
    fn open(
        &self,
        (tensor, index, dimension): (&'a TensorType, usize, &'a Dimension),
        sizes: &BTreeMap<&str, u64>,
        guess: Guess<'_>,
        free: &mut Vec<FreeDimension>,
    ) -> Result<u64, ShapeError> {
        let batch = self.batch_key();
        let name = dimension.name();
        let input_axis = (tensor.name.as_str(), index);
        let unknown = |open: Open<'_>, size: u64| FreeDimension {
            tensor: tensor.name.clone(),
            index,
            name: name.map(str::to_owned),
            key: open.key.map(str::to_owned),
            size,
        };
        let Some(expression) = name.and_then(|name| self.expressions.get(name)) else {
            let key = key_of(dimension, index, batch.as_ref());
            let open = Open { name, input_axis, key };
            let size = guess(open);
            free.push(unknown(open, size));
            return Ok(size);
        };
        match expression.size(|part| sizes.get(part).copied()) {
            Err(NoSize::Missing(parts)) => {
                let opened = parts.iter().map(|part| open_part(part, input_axis, batch.as_ref()));
                free.extend(opened.map(|open| unknown(open, guess(open))));
                let guess = |part: &str| guess(open_part(part, (&tensor.name, index), batch.as_ref()));
                let guessed = expression.size(|part| sizes.get(part).copied().or_else(|| Some(guess(part))));
                Ok(guessed.unwrap_or(USUAL_SIZE))
            }
            Err(NoSize::NotWhole(value)) => {
                let parts = expression.parts().into_iter().map(|part| (part.to_owned(), sizes[part])).collect();
                let (tensor, dimension) = (tensor.name.clone(), dimension.to_string());
                Err(ShapeError::NoWholeSize { tensor, index, dimension, value, parts })
            }
            Ok(size) => Ok(size),
        }
    }

    /// The size of every named dimension that has one: rules 3 to 6, the first that applies.
    pub(super) fn sizes(&self, batch: Option<&(BatchChoice, u64)>) -> BTreeMap<&'a str, u64> {
        let mut sizes: BTreeMap<&str, u64> =
            self.asked.dimensions.iter().map(|(name, size)| (name.as_str(), *size)).collect();
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
        let size = |expression: &Expression<'_>| expression.size(|part| sizes.get(part).copied()).ok();
        let computed: Vec<(&str, u64)> =
            self.expressions.iter().filter_map(|(name, expression)| Some((*name, size(expression)?))).collect();
        for (name, size) in computed {
            sizes.entry(name).or_insert(size);
        }
        sizes
    }

    /// Named dimensions that `shapes` gives one size wherever they occur.
    fn sizes_in_shapes(&self) -> BTreeMap<&'a str, u64> {
        let mut found: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for tensor in self.inputs {
            let Some(given) = self.asked.shapes.get(&tensor.name) else { continue };
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
    fn check_effects(&self, tensors: &[ResolvedTensor], batch: Option<&(BatchChoice, u64)>) -> Result<(), ShapeError> {
        for (key, &asked) in self.asked.dimensions {
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
            let name = match batch {
                Some((BatchChoice::Named(name), _)) if key == BATCH => name,
                _ => key,
            };
            if !has_effect && !self.is_part(name) {
                return Err(ShapeError::Overridden { dimension: key.clone(), asked });
            }
        }
        Ok(())
    }
}

/// What is known of the shape of an input before an array is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownShape {
    /// Size of each dimension, `None` where it is open; nothing where not even their number is known.
    pub sizes: Option<Vec<Option<u64>>>,
    /// Whether the leading dimension counts items, so that an array with more of them holds several batches.
    pub counts_items: bool,
}

/// What is known of the shape of every input, in the order of the file.
///
/// # Errors
///
/// A `batch` that means no dimension of the model.
pub fn known_shapes(signature: &Signature, asked: Asked<'_>) -> Result<Vec<KnownShape>, ShapeError> {
    let question = Question::new(&signature.inputs, asked);
    let batch = asked.dimensions.get(BATCH);
    let batch = batch.map(|size| Ok((question.batch(*size)?, *size))).transpose()?;
    let sizes = question.sizes(batch.as_ref());
    let known_shape = |tensor: &TensorType| {
        let of_file = tensor.shape.as_ref().map(|dimensions| {
            let known = |(index, dimension)| question.size_of(dimension, index, &sizes, batch.as_ref());
            dimensions.iter().enumerate().map(known).collect()
        });
        let given = asked.shapes.get(&tensor.name).map(|shape| shape.iter().copied().map(Some).collect());
        let counts_items = question.counts_items(tensor, batch.as_ref().map(|(choice, _)| choice));
        KnownShape { sizes: given.or(of_file), counts_items }
    };
    Ok(signature.inputs.iter().map(known_shape).collect())
}

/// The key under `inputs` that sets a dimension.
fn key_of<'d>(dimension: &'d Dimension, index: usize, batch: Option<&BatchChoice>) -> Option<&'d str> {
    match dimension.name() {
        _ if batch == Some(&BatchChoice::Leading) && index == 0 => Some(BATCH),
        name => name.map(|name| key_of_name(name, batch)),
    }
}

/// A dimension that the size at `input_axis` is computed from.
fn open_part<'p>(part: &'p str, input_axis: (&'p str, usize), batch: Option<&BatchChoice>) -> Open<'p> {
    Open { name: Some(part), input_axis, key: Some(key_of_name(part, batch)) }
}

/// The key that sets dimensions of a name.
fn key_of_name<'n>(name: &'n str, batch: Option<&BatchChoice>) -> &'n str {
    if matches!(batch, Some(BatchChoice::Named(batch)) if batch == name) { BATCH } else { name }
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
mod tests;
