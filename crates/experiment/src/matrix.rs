//! The matrix: which axes walk together, how many cells their product has, which cell a selector names, and the one
//! limit.
//!
//! Input: what stands on the axes, and `matrix`. Output: the factors of the product, or what is wrong with it. In
//! a specification that is reported at its position (`spec::expand::matrix`); `plan` makes cells of the same factors. Deliberately
//! absent: the cells.

mod combine;
mod error;

use std::ops::Range;

use super::compiled::CompiledSelector;
use super::entries::Entries;
use super::selector::Vocabulary;
use super::{Axis, AxisMap, BATCH, Experiment, InputPoint, Model, Point, Selector};

pub use combine::Combine;
pub use error::{MatrixError, beyond_limit};
use reading::grouped;

/// The largest matrix that is planned. A million cells of ten runs at two seconds take eight months.
pub(crate) const MAX_CELLS: u64 = 1_000_000;

/// One factor of the product: an axis, or axes that walk together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The axes, in plan order.
    pub axes: Vec<Axis>,
    /// Entries of each; of inputs, those that models without their own have.
    pub length: usize,
}

/// What the matrix is the product of.
#[derive(Clone, Debug)]
pub struct Space {
    /// What stands on the axes.
    pub entries: Entries,
    /// Input points of each model.
    inputs_of: Vec<Range<u32>>,
    /// Input points that are no model's own.
    shared: usize,
    /// The first model that has inputs of its own.
    own: Option<String>,
    /// False for an axis of which an entry could not be read.
    is_complete: AxisMap<bool>,
}

impl Vocabulary {
    /// The names of an experiment.
    pub fn of(experiment: &Experiment) -> Self {
        Space::of(experiment).vocabulary()
    }
}

impl Space {
    pub fn of(experiment: &Experiment) -> Self {
        let found = AxisMap::of(|axis| (experiment.names(axis), true));
        Space::new(found, &experiment.models, &experiment.inputs)
    }

    /// That of axes as far as they could be read: names, and whether these are all.
    pub fn new(mut found: AxisMap<(Vec<String>, bool)>, models: &[Model], shared: &[InputPoint]) -> Self {
        let is_complete = AxisMap::of(|axis| found[axis].1);
        let names = AxisMap::of(|axis| std::mem::take(&mut found[axis].0));
        let mut inputs = shared.to_vec();
        let inputs_of = models.iter().map(|model| match &model.inputs {
            None => 0..shared.len() as u32,
            Some(own) => {
                let first = inputs.len() as u32;
                inputs.extend(own.iter().cloned());
                first..inputs.len() as u32
            }
        });
        let inputs_of = inputs_of.collect();
        let own = models.iter().find(|model| model.inputs.is_some()).map(|model| model.name.clone());
        Space { entries: Entries::new(names, inputs), inputs_of, shared: shared.len(), own, is_complete }
    }

    /// How many entries the axis has; for inputs those that models without their own have.
    pub fn length(&self, axis: Axis) -> usize {
        match axis {
            Axis::Inputs => self.shared,
            _ => self.entries.names(axis).len(),
        }
    }

    /// The most entries of the axis that one choice on all the others leaves.
    pub fn most_entries(&self, axis: Axis) -> usize {
        match axis {
            Axis::Inputs => self.inputs_of.iter().map(ExactSizeIterator::len).max().unwrap_or_default(),
            _ => self.length(axis),
        }
    }

    /// The input points that a model is fed, as indices.
    pub(crate) fn inputs_of(&self, model: u32) -> Range<u32> {
        self.inputs_of.get(model as usize).cloned().unwrap_or_default()
    }

    /// True where every entry of the axis could be read.
    pub fn is_complete(&self, axis: Axis) -> bool {
        self.is_complete[axis]
    }

    /// True where every entry of every axis could be read, so that counts can be judged.
    pub fn are_complete(&self) -> bool {
        Axis::ALL.into_iter().all(|axis| self.is_complete(axis))
    }

    /// The axis whose entries are compared where nothing says it.
    pub fn compared_unasked(&self) -> Option<Axis> {
        Axis::compared_unasked().into_iter().find(|axis| self.most_entries(*axis) > 1)
    }

    /// The axes that the cells of a group differ on; none where nothing is compared.
    pub fn compared(&self, baseline: Option<&Selector>) -> Vec<Axis> {
        match baseline {
            Some(baseline) => baseline.axes().into_iter().filter(|axis| self.most_entries(*axis) > 1).collect(),
            None => self.compared_unasked().into_iter().collect(),
        }
    }

    /// The names that selectors can use.
    pub fn vocabulary(&self) -> Vocabulary {
        let inputs_known = self.is_complete(Axis::Inputs) && self.is_complete(Axis::Models);
        let (shared, own) = self.entries.inputs().split_at(self.shared);
        let points = || own.iter().chain(shared);
        Vocabulary {
            names: AxisMap::of(|axis| match axis {
                Axis::Inputs => inputs_known.then(|| points().map(|point| point.name.clone()).collect()),
                _ => self.is_complete(axis).then(|| self.entries.names(axis).to_vec()),
            }),
            dimensions: inputs_known.then(|| {
                let searched = points().any(|point| point.search.is_some()).then(|| BATCH.to_owned());
                points().flat_map(|point| point.dimensions.keys().cloned()).chain(searched).collect()
            }),
        }
    }

    /// What is wrong with a zip: with the group, and with the axis in it where it is about one.
    pub fn check_zip(&self, zip: &[Vec<Axis>]) -> Vec<(usize, Option<usize>, MatrixError)> {
        let mut problems = Vec::new();
        let mut used = Vec::new();
        for (group, axes) in zip.iter().enumerate() {
            for (position, axis) in axes.iter().enumerate() {
                if used.contains(axis) {
                    problems.push((group, Some(position), MatrixError::ZippedTwice { axis: *axis }));
                }
                used.push(*axis);
                if let (Axis::Inputs, Some(model)) = (axis, &self.own) {
                    problems.push((group, Some(position), MatrixError::ZipOfOwnInputs { model: model.clone() }));
                }
            }
            let complete = axes.iter().all(|axis| self.is_complete(*axis));
            if complete && axes.windows(2).any(|pair| self.length(pair[0]) != self.length(pair[1])) {
                let lengths = axes.iter().map(|axis| format!("`{}` has {}", axis.plural(), self.length(*axis)));
                let lengths = lengths.collect::<Vec<_>>().join(", ");
                problems.push((group, None, MatrixError::UnequalZip { lengths }));
            }
        }
        problems
    }

    /// The factors in plan order; a zip stands where its first axis would. An axis that nobody wrote is no factor.
    pub fn factors(&self, zip: &[Vec<Axis>]) -> Vec<Factor> {
        let mut factors: Vec<Factor> = Vec::new();
        let is_in = |factors: &[Factor], axis: Axis| factors.iter().any(|factor| factor.axes.contains(&axis));
        for axis in Axis::ALL {
            if is_in(&factors, axis) || (axis.may_be_absent() && self.length(axis) == 0) {
                continue;
            }
            let mut axes = zip.iter().find(|zip| zip.contains(&axis)).cloned().unwrap_or(vec![axis]);
            axes.retain(|axis| !is_in(&factors, *axis));
            axes.sort_unstable();
            axes.dedup();
            factors.push(Factor { axes, length: self.length(axis) });
        }
        factors
    }

    /// Whether models have inputs of their own, so that the lengths of factors do not multiply to the cells.
    pub fn is_uneven(&self, factors: &[Factor]) -> bool {
        self.own.is_some() && factors.iter().any(|factor| factor.axes == [Axis::Inputs])
    }

    /// The entries of a factor for a choice on the factors before it.
    pub fn steps(&self, factor: &Factor, point: &Point) -> Range<u32> {
        match factor.axes.as_slice() {
            [Axis::Inputs] => self.inputs_of(point[Axis::Models]),
            _ => 0..factor.length as u32,
        }
    }

    /// How many cells the matrix has before `exclude` and `include`.
    ///
    /// # Errors
    ///
    /// More than `MAX_CELLS`.
    pub fn size(&self, factors: &[Factor], combine: Combine) -> Result<u64, MatrixError> {
        match combine {
            Combine::Product => self.size_of_product(factors),
            Combine::OneAtATime => {
                let cells = self.size_one_at_a_time(factors);
                let longest = factors.iter().max_by_key(|factor| factor.length);
                let largest = longest.map_or(Axis::Models, |factor| factor.axes[0]);
                let problem = || MatrixError::TooManyCells { cells, product: "one at a time".to_owned(), largest };
                if cells <= u128::from(MAX_CELLS) { Ok(cells as u64) } else { Err(problem()) }
            }
        }
    }

    /// For each model one cell, and one more for each other entry of each other factor.
    fn size_one_at_a_time(&self, factors: &[Factor]) -> u128 {
        let of_model = |model: u32| {
            let model = Point::default().with(Axis::Models, model);
            let others = factors.iter().filter(|factor| !factor.axes.contains(&Axis::Models));
            Combine::OneAtATime.count(others.map(|factor| self.steps(factor, &model).len() as u128))
        };
        (0..self.inputs_of.len() as u32).map(of_model).sum()
    }

    fn size_of_product(&self, factors: &[Factor]) -> Result<u64, MatrixError> {
        let is_uneven = self.is_uneven(factors);
        let is_in_sum = |factor: &Factor| is_uneven && factor.axes.iter().any(|axis| is_paired(*axis));
        let mut parts: Vec<(u128, Axis, &str)> = Vec::new();
        if is_uneven {
            let pairs = self.inputs_of.iter().map(|inputs| inputs.len() as u128).sum();
            parts.push((pairs, Axis::Models, "models with their inputs"));
        }
        let others = factors.iter().filter(|factor| !is_in_sum(factor));
        parts.extend(others.map(|factor| (factor.length as u128, factor.axes[0], factor.axes[0].plural())));
        let cells = parts.iter().fold(1u128, |product, (count, ..)| product.saturating_mul(*count));
        if cells <= u128::from(MAX_CELLS) {
            return Ok(cells as u64);
        }
        let largest = parts.iter().max_by_key(|(count, ..)| *count).map_or(Axis::Models, |(_, axis, _)| *axis);
        let product: Vec<String> = parts.iter().map(|(count, _, what)| format!("{} {what}", grouped(*count))).collect();
        Err(MatrixError::TooManyCells { cells, product: product.join(" x "), largest })
    }

    /// The one cell that an `include` names, in the product or not.
    ///
    /// # Errors
    ///
    /// It names none, or may mean several.
    pub fn included(&self, selector: &Selector) -> Result<Point, MatrixError> {
        let unsaid = self.unsaid(selector);
        if !unsaid.is_empty() {
            return Err(MatrixError::IncludeUnsaid { axes: unsaid });
        }
        let compiled = CompiledSelector::new(selector, &self.entries);
        match self.points(|axis, index| compiled.allows(axis, index))[..] {
            [point] => Ok(point),
            ref named => Err(MatrixError::IncludeNotOne { selector: selector.to_string(), found: named.len() }),
        }
    }

    /// Axes of several entries that a selector does not name, the input last: a dimension may name it as well, and
    /// models with inputs of their own may have one each.
    fn unsaid(&self, selector: &Selector) -> Vec<&'static str> {
        let named = selector.axes();
        let is_unsaid = |axis: &Axis| !named.contains(axis) && self.length(*axis) > 1 && self.is_complete(*axis);
        let mut unsaid: Vec<Axis> = Axis::ALL.into_iter().filter(is_unsaid).collect();
        unsaid.retain(|axis| *axis != Axis::Inputs || self.own.is_none());
        unsaid.sort_by_key(|axis| *axis == Axis::Inputs);
        unsaid.into_iter().map(Axis::singular).collect()
    }

    /// The point of these names; of inputs the model's own are meant.
    pub fn point(&self, names: &AxisMap<String>) -> Option<Point> {
        let is_it = |axis: Axis, index: u32| {
            self.entries.names(axis).get(index as usize).is_none_or(|name| *name == names[axis])
        };
        self.points(is_it).first().copied()
    }

    /// The points of allowed entries, zips ignored; no more than two.
    fn points(&self, allows: impl Fn(Axis, u32) -> bool) -> Vec<Point> {
        let models = (0..self.inputs_of.len() as u32).filter(|model| allows(Axis::Models, *model));
        let pairs = models.flat_map(|model| self.inputs_of(model).map(move |input| (model, input)));
        let pairs = pairs.filter(|(_, input)| allows(Axis::Inputs, *input)).take(2);
        let mut points: Vec<Point> =
            pairs.map(|(model, input)| Point::default().with(Axis::Models, model).with(Axis::Inputs, input)).collect();
        for axis in Axis::ALL.into_iter().filter(|axis| !is_paired(*axis)) {
            let length = self.length(axis).max(usize::from(axis.may_be_absent())) as u32;
            let allowed: Vec<u32> = (0..length).filter(|index| allows(axis, *index)).take(2).collect();
            let longer = points.iter().flat_map(|point| allowed.iter().map(|index| point.with(axis, *index)));
            points = longer.take(2).collect();
        }
        points
    }
}

/// Models may have inputs of their own, so that these two axes are walked as one.
fn is_paired(axis: Axis) -> bool {
    matches!(axis, Axis::Models | Axis::Inputs)
}
