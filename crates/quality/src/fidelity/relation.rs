//! Whether an output has anything to do with the reference's: the floor of outputs that no limit of a cosine judges.
//!
//! Spearman's rank correlation is compared with what independent values would give, the share of equal classes with what
//! their frequencies alone would give, as in Cohen's kappa (J. Cohen, Educational and Psychological Measurement 20, 1960).

use std::collections::HashMap;

use files::array::Array;
use statistics::distribution::normal_quantile;
use statistics::random::fnv1a64;
use statistics::rank_correlation::{by_chance, rank_correlation};

/// Elements of each output and input set that are looked at, evenly spread.
const MOST_ELEMENTS: usize = 8192;

/// With fewer elements a relation cannot be distinguished from chance.
const LEAST_ELEMENTS: usize = 32;

/// A rank correlation below this is of no use, however many elements show that it is not zero.
const LEAST_CORRELATION: f64 = 0.1;

/// Values of one sign have a high cosine without any relation; above this they are close all the same.
const CLOSE_COSINE: f64 = 0.9;

/// Outputs with this share of equal elements are related, however frequent their classes are.
const MOSTLY_EQUAL: f64 = 0.9;

/// Elements of one output with the reference's, over all input sets.
#[derive(Debug, Default)]
pub(super) struct Relation {
    pub(super) output: String,
    /// Reference and candidate, where they are numbers.
    numbers: Vec<(f64, f64)>,
    /// Reference and candidate, where they are classes: numbers as they are, texts as hashes.
    classes: Vec<(u64, u64)>,
}

impl Relation {
    pub(super) fn new(output: &str) -> Self {
        Relation { output: output.to_owned(), ..Relation::default() }
    }

    /// Adds numbers of an input set; those that are not finite are left out.
    pub(super) fn add_numbers(&mut self, expected: &[f64], found: &[f64]) {
        let step = expected.len().div_ceil(MOST_ELEMENTS).max(1);
        let pairs = expected.iter().copied().zip(found.iter().copied()).step_by(step);
        self.numbers.extend(pairs.filter(|(left, right)| left.is_finite() && right.is_finite()));
    }

    /// Adds classes or indices of an input set.
    pub(super) fn add_classes(&mut self, reference: &Array, candidate: &Array) {
        let step = reference.len().div_ceil(MOST_ELEMENTS).max(1);
        if let (Some(expected), Some(found)) = (reference.numbers(), candidate.numbers()) {
            self.add_numbers(&expected, &found);
            let pairs = expected.iter().zip(&found).step_by(step);
            self.classes.extend(pairs.map(|(left, right)| (left.to_bits(), right.to_bits())));
        } else {
            let pairs = reference.elements().into_iter().zip(candidate.elements()).step_by(step);
            self.classes.extend(pairs.map(|(left, right)| (fnv1a64(left), fnv1a64(right))));
        }
    }

    /// What is said of numbers that have nothing to do with the reference's; `cosine` is theirs.
    pub(super) fn unrelated_numbers(&self, cosine: f64) -> Option<String> {
        if cosine <= 0.0 {
            return Some(format!("outputs unrelated to the reference's: cosine {cosine:.3}"));
        }
        let correlation = self.rank_correlation()?;
        let is_chance = correlation <= self.chance() && cosine < CLOSE_COSINE;
        is_chance.then(|| {
            format!("outputs unrelated to the reference's: rank correlation {correlation:.3}, cosine {cosine:.3}")
        })
    }

    /// The same of classes: they are equal no more often than their frequencies alone make them, and where they are
    /// numbers, such as positions in a list, their order is by chance too.
    pub(super) fn unrelated_classes(&self) -> Option<String> {
        let elements = self.classes.len();
        if elements < LEAST_ELEMENTS {
            return None;
        }
        let all = elements as f64;
        let equal = self.classes.iter().filter(|(left, right)| left == right).count() as f64 / all;
        let mut frequencies: HashMap<u64, (f64, f64)> = HashMap::new();
        for (left, right) in &self.classes {
            frequencies.entry(*left).or_default().0 += 1.0 / all;
            frequencies.entry(*right).or_default().1 += 1.0 / all;
        }
        let expected: f64 = frequencies.values().map(|(left, right)| left * right).sum();
        let most = expected + normal_quantile(0.95) * (expected * (1.0 - expected) / all).max(0.0).sqrt();
        let is_in_order = || self.rank_correlation().is_some_and(|correlation| correlation > self.chance());
        let is_unrelated = equal < MOSTLY_EQUAL && equal <= most && !is_in_order();
        is_unrelated.then(|| {
            format!(
                "outputs unrelated to the reference's: {:.1} % equal, {:.1} % by chance",
                100.0 * equal,
                100.0 * expected
            )
        })
    }

    /// The largest rank correlation that says nothing.
    fn chance(&self) -> f64 {
        LEAST_CORRELATION.max(by_chance(self.numbers.len()))
    }

    /// Spearman's; nothing of few numbers, and where either side is constant.
    fn rank_correlation(&self) -> Option<f64> {
        (self.numbers.len() >= LEAST_ELEMENTS).then(|| rank_correlation(&self.numbers))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::Xoshiro256PlusPlus;

    fn of_numbers(pair: impl Fn(&mut Xoshiro256PlusPlus) -> (f64, f64), elements: usize) -> Relation {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut relation = Relation::new("y");
        let (expected, found): (Vec<f64>, Vec<f64>) = (0..elements).map(|_| pair(&mut random)).unzip();
        relation.add_numbers(&expected, &found);
        relation
    }

    fn of_classes(pair: impl Fn(&mut Xoshiro256PlusPlus) -> (u64, u64), elements: usize) -> Relation {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let (expected, found): (Vec<u64>, Vec<u64>) = (0..elements).map(|_| pair(&mut random)).unzip();
        let array = |classes: Vec<u64>| Array {
            name: "label".to_owned(),
            element: onnx::ElementType::Uint64,
            shape: vec![classes.len() as u64],
            bytes: classes.iter().flat_map(|class| class.to_le_bytes()).collect(),
            keys: Vec::new(),
        };
        let mut relation = Relation::new("label");
        relation.add_classes(&array(expected), &array(found));
        relation
    }

    #[test]
    fn independent_numbers_are_unrelated_whatever_their_cosine() {
        for elements in [100, 10_000, 1_000_000] {
            let around_zero = of_numbers(|random| (random.normal(), random.normal()), elements);
            assert!(around_zero.unrelated_numbers(0.003).is_some(), "{elements}");
            let positive = of_numbers(|random| (random.unit(), random.unit()), elements);
            assert!(positive.unrelated_numbers(0.75).is_some(), "{elements}");
            assert!(positive.numbers.len() <= MOST_ELEMENTS);
        }
    }

    #[test]
    fn coarse_numbers_are_related() {
        for elements in [32, 100, 100_000] {
            let noisy = |random: &mut Xoshiro256PlusPlus| {
                let value = random.normal();
                (value, value + random.normal())
            };
            assert_eq!(of_numbers(noisy, elements).unrelated_numbers(0.7), None);
        }
        // A constant has no order, and of a handful nothing is said.
        assert_eq!(of_numbers(|random| (1.0, random.unit()), 1000).unrelated_numbers(0.8), None);
        assert_eq!(of_numbers(|random| (random.unit(), random.unit()), 8).unrelated_numbers(0.8), None);
        // Values that hardly vary are close without a common order.
        assert_eq!(of_numbers(|random| (random.unit(), random.unit()), 1000).unrelated_numbers(0.99), None);
    }

    #[test]
    fn what_points_the_other_way_is_unrelated_also_of_few_numbers() {
        let few = of_numbers(|random| (random.unit(), -random.unit()), 4);
        assert_eq!(few.unrelated_numbers(-0.5).as_deref(), Some("outputs unrelated to the reference's: cosine -0.500"));
    }

    #[test]
    fn classes_are_compared_with_their_frequencies() {
        let unrelated = |relation: &Relation| relation.unrelated_classes().is_some();
        assert!(unrelated(&of_classes(|random| (random.below(10), random.below(10)), 1000)));
        // Nine of ten are class 0 on both sides: 82 % are equal by chance.
        let rare = |random: &mut Xoshiro256PlusPlus| u64::from(random.below(10) == 0);
        assert!(unrelated(&of_classes(|random| (rare(random), rare(random)), 1000)));
        let half = |random: &mut Xoshiro256PlusPlus| {
            let class = random.below(10);
            (class, if random.below(2) == 0 { class } else { random.below(10) })
        };
        assert!(!unrelated(&of_classes(half, 1000)));
        // Indices that all moved by one are still related.
        let index = std::cell::Cell::new(0);
        let moved = |_: &mut Xoshiro256PlusPlus| {
            index.set(index.get() + 1);
            (index.get(), index.get() + 1)
        };
        assert!(!unrelated(&of_classes(moved, 1000)));
        assert!(!unrelated(&of_classes(|_| (3, 3), 1000)));
        assert!(!unrelated(&of_classes(|random| (random.below(10), random.below(10)), 8)));
    }
}
