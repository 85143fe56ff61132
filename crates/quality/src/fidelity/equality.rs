//! Outputs that are classes or indices: how many of their elements are the reference's.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use experiment::{FidelityLimits, Precision};
use files::array::Array;
use statistics::binomial::Binomial;

/// How many elements of an output are the reference's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Equal {
    /// The output.
    pub output: String,
    /// Elements that were compared.
    pub elements: u64,
    /// Elements that are equal, the tied ones among them.
    pub equal: u64,
    /// Elements that changed between scores that tie in the reference.
    #[serde(default)]
    pub tied: u64,
}

impl Equal {
    /// Share of the elements that are equal.
    pub fn share(&self) -> f64 {
        if self.elements == 0 { 1.0 } else { self.equal as f64 / self.elements as f64 }
    }

    /// Whether every element is the reference's.
    pub fn is_whole(&self) -> bool {
        self.equal - self.tied == self.elements
    }

    pub(super) fn add(&mut self, more: &Equal) {
        self.elements += more.elements;
        self.equal += more.equal;
        self.tied += more.tied;
    }
}

/// The probability of so small a share, were the limit kept, below which it is not.
const SIGNIFICANCE: f64 = 0.01;

/// Whether so many of so many show that the true share is below `least`, by the exact binomial test (method 6.10): a
/// handful of elements shows it for large differences alone.
pub(super) fn falls_short(count: u64, all: u64, least: f64) -> bool {
    if all == 0 || count as f64 >= least * all as f64 {
        return false;
    }
    // Certainty is refuted by one element.
    Binomial::new(all as usize, least).is_none_or(|table| table.at_most(count as usize) <= SIGNIFICANCE)
}

/// Indices of the elements that are not the reference's, of two arrays of the same shape.
pub(super) fn changed(reference: &Array, candidate: &Array) -> Vec<usize> {
    let differ: Vec<bool> = match (reference.element == candidate.element, reference.numbers(), candidate.numbers()) {
        (false, Some(expected), Some(found)) => {
            expected.iter().zip(&found).map(|(left, right)| left != right).collect()
        }
        _ => reference.elements().into_iter().zip(candidate.elements()).map(|(left, right)| left != right).collect(),
    };
    differ.iter().enumerate().filter(|(_, differs)| **differs).map(|(index, _)| index).collect()
}

/// All outputs of both for one input set, and the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputPairs<'a> {
    pub(super) expected: &'a [Array],
    pub(super) found: &'a [Array],
    pub(super) limits: &'a FidelityLimits,
}

impl OutputPairs<'_> {
    /// How many of the changed elements changed between scores that tie in the reference: the model gives the scores as an
    /// output of its own, and those of both choices are closer than the limits allow scores to be.
    pub(super) fn tied(&self, reference: &Array, changed: &[usize]) -> u64 {
        if changed.is_empty() {
            return 0;
        }
        let pairs = self.expected.iter().filter(|scores| scores.element.is_float()).filter_map(|scores| {
            let found = self.found.iter().find(|found| found.name == scores.name && found.shape == scores.shape)?;
            Some((scores, scores.numbers()?, found.numbers()?))
        });
        let mut tied = vec![false; changed.len()];
        for (scores, expected, found) in pairs {
            if scores.shape == reference.shape {
                // The scores of what was chosen, as those of TopK.
                for (tied, at) in tied.iter_mut().zip(changed) {
                    let pair = expected.get(*at).zip(found.get(*at));
                    *tied |= pair.is_some_and(|(left, right)| (left - right).abs() <= self.tolerance(*left));
                }
            } else if let Some(table) = Table::of(&reference.shape, &scores.shape, &expected)
                && let Some(sign) = self.sign(&table, reference)
            {
                let found = Table { scores: &found, ..table };
                for (tied, at) in tied.iter_mut().zip(changed) {
                    let (first, second) = (table.best(*at, sign), found.best(*at, sign));
                    let apart = (table.score(*at, first) - table.score(*at, second)).abs();
                    *tied |= first != second && apart <= self.tolerance(table.score(*at, first));
                }
            }
        }
        tied.iter().filter(|tied| **tied).count() as u64
    }

    /// How far apart two scores may be and still tie: as far as the limits allow one element to be off, or, where they say
    /// nothing of elements, as those of bfloat16, which has eight bits too.
    fn tolerance(&self, score: f64) -> f64 {
        let usual = FidelityLimits::of(Precision::Bf16);
        let limits = if self.limits.abs.or(self.limits.rel).is_some() { self.limits } else { &usual };
        limits.abs.unwrap_or(0.0) + limits.rel.unwrap_or(0.0) * score.abs()
    }

    /// Whether a class is that of the largest score, 1, or of the smallest, as of distances, -1: in each every class must
    /// have a score of its own. Elements that tie do not count.
    fn sign(&self, table: &Table<'_>, classes: &Array) -> Option<f64> {
        [1.0, -1.0].into_iter().find(|sign| {
            let (mut columns, mut owners) = (HashMap::new(), HashMap::new());
            classes.elements().into_iter().enumerate().all(|(at, class)| {
                let best = table.best(at, *sign);
                let top = table.score(at, best);
                let tolerance = self.tolerance(top);
                let ties = |column: usize| column != best && (table.score(at, column) - top).abs() <= tolerance;
                (0..table.columns).any(ties)
                    || (*columns.entry(class).or_insert(best) == best && *owners.entry(best).or_insert(class) == class)
            })
        })
    }
}

/// Scores with one dimension more than the classes.
#[derive(Clone, Copy, Debug)]
struct Table<'a> {
    scores: &'a [f64],
    /// Length of that dimension.
    columns: usize,
    /// Elements from one entry of it to the next.
    stride: usize,
}

impl<'a> Table<'a> {
    /// `None` where no dimension of the scores is one that the classes lack, or have with a length of one.
    fn of(classes: &[u64], shape: &[u64], scores: &'a [f64]) -> Option<Self> {
        let axis = (0..shape.len()).rev().find(|axis| {
            let mut dropped = shape.to_vec();
            let columns = dropped.remove(*axis);
            let mut kept = shape.to_vec();
            kept[*axis] = 1;
            columns > 1 && (dropped == classes || kept == classes)
        })?;
        let stride = shape[axis + 1..].iter().product::<u64>() as usize;
        Some(Table { scores, columns: shape[axis] as usize, stride }).filter(|_| stride > 0 && !scores.is_empty())
    }

    fn score(&self, at: usize, column: usize) -> f64 {
        let index = (at / self.stride * self.columns + column) * self.stride + at % self.stride;
        self.scores.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The first of the largest or smallest scores.
    fn best(&self, at: usize, sign: f64) -> usize {
        let score = |column: usize| sign * self.score(at, column);
        (1..self.columns).fold(0, |best, column| if score(column) > score(best) { column } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fidelity, compare};
    use super::*;
    use onnx::ElementType;

    fn floats(name: &str, shape: &[u64], values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: name.to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    fn whole(element: ElementType, values: &[i64]) -> Array {
        let size = element.size_bytes().unwrap_or(8) as usize;
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()[..size].to_vec()).collect();
        let (name, shape) = ("label".to_owned(), vec![values.len() as u64]);
        Array { name, element, shape, bytes, keys: Vec::new() }
    }

    fn judged(expected: Vec<Array>, found: Vec<Array>, precision: Precision) -> Fidelity {
        let limits = FidelityLimits::of(precision);
        let mut fidelity = compare(&[expected], &[found], &limits);
        fidelity.judge_scores(&limits, precision);
        fidelity.judge_classes(&limits, precision);
        fidelity
    }

    /// Classes 3 and 4 are as far apart as 3 and 9.
    #[test]
    fn whole_numbers_booleans_and_texts_are_equal_or_not() {
        let reference: Vec<i64> = (0..200).map(|item| item % 2).collect();
        let changed: Vec<i64> = reference.iter().enumerate().map(|(at, v)| if at < 40 { 1 - v } else { *v }).collect();
        for element in [ElementType::Int64, ElementType::Int32, ElementType::Uint64, ElementType::Bool] {
            let (expected, found) = (whole(element.clone(), &reference), whole(element.clone(), &changed));
            let equal = judged(vec![expected.clone()], vec![expected.clone()], Precision::Fp32);
            assert_eq!((equal.passes(), equal.is_judged, equal.cosine), (true, true, None), "{element}");
            assert_eq!(equal.words(), "close on random data, accuracy not measured");
            let differ = judged(vec![expected], vec![found], Precision::Int8);
            assert_eq!(differ.misses, ["label: 80.0 % of elements equal, required 90 %"], "{element}");
        }
        let texts = |values: &[i64]| {
            let words: Vec<String> = values.iter().map(i64::to_string).collect();
            Array::of_texts("label", &[200], words.iter().map(String::as_str))
        };
        let differ = judged(vec![texts(&reference)], vec![texts(&changed)], Precision::Fp16);
        assert_eq!(differ.misses, ["label: 80.0 % of elements equal, required 99 %"]);
        // A file of the user's own may have its labels in another width.
        let narrow = judged(
            vec![whole(ElementType::Int64, &reference)],
            vec![whole(ElementType::Int32, &reference)],
            Precision::Fp32,
        );
        assert!(narrow.passes());
        let named = judged(vec![whole(ElementType::Int64, &reference)], vec![texts(&reference)], Precision::Int4);
        assert_eq!(named.misses, ["output `label` is string, the reference's int64"]);
    }

    #[test]
    fn a_handful_of_elements_shows_large_differences_alone() {
        let outcome = |equal: u64, elements: u64| {
            let values = |changed: u64| (0..elements).map(|at| i64::from(at < changed)).collect::<Vec<_>>();
            let (expected, found) = (values(0), values(elements - equal));
            let found = judged(
                vec![whole(ElementType::Int64, &expected)],
                vec![whole(ElementType::Int64, &found)],
                Precision::Int8,
            );
            (found.passes(), found.evidence())
        };
        assert_eq!(outcome(7, 8), (true, "label: 7 of 8 elements equal".to_owned()));
        assert_eq!(outcome(5, 8), (true, "label: 5 of 8 elements equal".to_owned()));
        assert_eq!(outcome(4, 8), (false, "label: 4 of 8 elements equal".to_owned()));
        assert_eq!(outcome(0, 1), (true, "label: 0 of 1 elements equal".to_owned()));
        assert_eq!(outcome(870, 1000), (false, "label: 87.0 % of elements equal".to_owned()));
        assert_eq!(outcome(9_999, 10_000), (true, "label: 99.99 % of elements equal".to_owned()));
    }

    /// Exact binomial probabilities by SciPy 1.16: `binom.cdf(k, n, p)`.
    #[test]
    fn a_share_falls_short_where_chance_does_not_explain_it() {
        // cdf(83, 100, 0.9) = 0.0206, cdf(82, 100, 0.9) = 0.0100 (0.010007), cdf(81, 100, 0.9) = 0.0046.
        assert_eq!([83, 82, 81].map(|count| falls_short(count, 100, 0.9)), [false, false, true]);
        assert!(!falls_short(0, 0, 0.9) && !falls_short(9, 10, 0.0) && !falls_short(10, 10, 1.0));
        assert!(falls_short(999, 1000, 1.0), "of all elements not one may differ");
    }

    #[test]
    fn a_label_that_changes_where_its_scores_tie_is_equal() {
        let label = |classes: &[&str]| Array::of_texts("label", &[classes.len() as u64], classes.iter().copied());
        let scores = |values: &[f32]| floats("p", &[values.len() as u64 / 3, 3], values);
        let (rows, close, far) =
            ([0.8, 0.1, 0.1, 0.1, 0.8, 0.1], [0.46, 0.44, 0.1, 0.44, 0.46, 0.1], [0.7, 0.2, 0.1, 0.2, 0.7, 0.1]);
        let with = |last: &[f32; 6], at: usize| scores(&[&rows[..], &last[at..at + 3]].concat());
        let found = |last: &[f32; 6]| {
            let (expected, found) = (label(&["a", "b", "a"]), label(&["a", "b", "b"]));
            judged(vec![expected, with(last, 0)], vec![found, with(last, 3)], Precision::Int8)
        };
        let tied = found(&close);
        assert_eq!(tied.equal, [Equal { output: "label".to_owned(), elements: 3, equal: 3, tied: 1 }]);
        assert_eq!(tied.evidence(), "label: 3 of 3 elements equal, 1 of them tied, p: cosine 0.9998");
        assert_eq!(found(&far).equal, [Equal { output: "label".to_owned(), elements: 3, equal: 2, tied: 0 }]);
    }

    /// Where a softmax saturates, one of eight items turns the cosine of all of them.
    #[test]
    fn scores_beside_labels_are_judged_by_items() {
        let misses = |changed: usize, precision: Precision| {
            let scores = |changed: usize| {
                let row = |item: usize| if item < changed { [0.0, 1.0, 0.0] } else { [1.0, 0.0, 0.0] };
                floats("p", &[8, 3], &(0..8).flat_map(row).collect::<Vec<f32>>())
            };
            let label = |changed: usize| {
                whole(ElementType::Int64, &(0..8).map(|item| i64::from(item < changed)).collect::<Vec<_>>())
            };
            let found = judged(vec![label(0), scores(0)], vec![label(changed), scores(changed)], precision);
            let alone = judged(vec![scores(0)], vec![scores(changed)], precision);
            assert_eq!(alone.passes(), changed == 0, "without labels they are numbers like any other");
            found.misses
        };
        assert_eq!(misses(1, Precision::Int8), Vec::<String>::new());
        let many = ["p: cosine 0.5000, required 0.98", "label: 4 of 8 elements equal, required 90 %"];
        assert_eq!(misses(4, Precision::Int8), many);
        assert_eq!(misses(1, Precision::Fp32).len(), 3, "cosine, closeness and label");
        assert_eq!(misses(0, Precision::Fp32), Vec::<String>::new());
    }

    /// Of clusters the smallest distance wins, of the k best each has its score, of masks there is one label a pixel.
    #[test]
    fn ties_are_found_in_distances_in_ranks_and_in_masks() {
        let tied = |expected: Vec<Array>, found: Vec<Array>| judged(expected, found, Precision::Fp16).equal[0].tied;
        let distances =
            |last: [f32; 3]| floats("d", &[3, 3], &[&[0.1, 2.0, 9.0, 3.0, 0.2, 5.0][..], &last[..]].concat());
        let (expected, found) = (whole(ElementType::Int64, &[0, 1, 0]), whole(ElementType::Int64, &[0, 1, 1]));
        let (near, nearer) = (distances([1.0, 1.001, 9.0]), distances([1.001, 1.0, 9.0]));
        assert_eq!(tied(vec![expected.clone(), near.clone()], vec![found.clone(), nearer]), 1);
        assert_eq!(tied(vec![expected.clone(), near], vec![found.clone(), distances([3.0, 1.0, 9.0])]), 1);
        assert_eq!(
            tied(vec![expected.clone(), distances([1.0, 3.0, 9.0])], vec![found, distances([3.0, 1.0, 9.0])]),
            0
        );

        let ranks = |indices: &[i64], values: &[f32]| {
            let indices = Array { shape: vec![1, 3], ..whole(ElementType::Int64, indices) };
            vec![indices, floats("v", &[1, 3], values)]
        };
        assert_eq!(tied(ranks(&[4, 7, 2], &[0.9, 0.501, 0.5]), ranks(&[4, 2, 7], &[0.9, 0.502, 0.5])), 2);
        assert_eq!(tied(ranks(&[4, 7, 2], &[0.9, 0.5, 0.1]), ranks(&[4, 2, 7], &[0.9, 0.1, 0.1])), 1);

        let mask = |classes: &[i64], scores: &[f32]| {
            let classes = Array { shape: vec![1, 1, 2], ..whole(ElementType::Int64, classes) };
            vec![classes, floats("s", &[1, 2, 1, 2], scores)]
        };
        assert_eq!(tied(mask(&[0, 1], &[0.9, 0.49, 0.1, 0.5]), mask(&[0, 0], &[0.9, 0.5, 0.1, 0.49])), 1);
        assert_eq!(tied(mask(&[0, 1], &[0.9, 0.1, 0.1, 0.8]), mask(&[0, 0], &[0.9, 0.5, 0.1, 0.49])), 0);
    }

    #[test]
    fn maps_are_compared_by_key_and_sequences_by_their_parts() {
        let map = |keys: &[&str], values: &[f32]| {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let rows = values.len() as u64 / keys.len() as u64;
            Array { keys, ..floats("p", &[rows, values.len() as u64 / rows], values) }
        };
        let misses = |expected: Vec<Array>, found: Vec<Array>| judged(expected, found, Precision::Int4).misses;
        let three = map(&["a", "b", "c"], &[0.1, 0.2, 0.7]);
        assert_eq!(misses(vec![three.clone()], vec![three.clone()]), Vec::<String>::new());
        assert_eq!(misses(vec![three.clone()], vec![map(&["a", "c"], &[0.1, 0.9])]), ["output `p` lacks the key `b`"]);
        let more = map(&["a", "b", "c", "d"], &[0.1, 0.2, 0.7, 0.0]);
        assert_eq!(misses(vec![three], vec![more]), ["output `p` has the key `d`, which the reference's lacks"]);
        let parts =
            |count: usize| (0..count).map(|at| floats(&format!("y[{at}]"), &[1 + at as u64], &vec![1.0; 1 + at]));
        assert_eq!(misses(parts(3).collect(), parts(2).collect()), ["there is no output `y[2]`"]);
        assert_eq!(misses(parts(2).collect(), parts(3).collect()), ["the reference has no output `y[2]`"]);
        // What only a file of the user's own has says nothing.
        assert_eq!(
            misses(parts(2).collect(), parts(2).chain([floats("own", &[1], &[1.0])]).collect()),
            Vec::<String>::new()
        );
    }

    /// An image of bytes is a quantity; so is what a quantised network gives.
    #[test]
    fn bytes_are_numbers_and_may_be_one_step_off() {
        let image = |values: &[i64]| whole(ElementType::Uint8, values);
        let (expected, found) = (image(&[10, 200, 0, 255]), image(&[11, 199, 1, 255]));
        let fidelity = judged(vec![expected.clone()], vec![found], Precision::Fp32);
        assert_eq!((fidelity.passes(), fidelity.close, fidelity.equal.len()), (true, Some(1.0), 0));
        let far = judged(vec![expected], vec![image(&[10, 200, 0, 250])], Precision::Fp32);
        assert_eq!(far.misses, ["75.00 % of the elements are close, required 99.9 %"]);
    }

    #[test]
    fn shapes_that_depend_on_data_are_named_once() {
        let boxes =
            |rows: u64| Array { shape: vec![rows, 3], ..whole(ElementType::Int64, &vec![1; 3 * rows as usize]) };
        let sets = |rows: [u64; 3]| rows.map(|rows| vec![boxes(rows)]).to_vec();
        let fidelity = compare(&sets([4, 7, 9]), &sets([4, 8, 8]), &FidelityLimits::of(Precision::Int4));
        assert_eq!(fidelity.misses, ["output `label` has the shape [8, 3], the reference's [7, 3]"]);
        assert_eq!(fidelity.equal[0].elements, 12);
    }

    /// A tree and a line, eight items each: which label a draw changes does not change the verdict.
    #[test]
    fn the_verdict_of_a_right_conversion_does_not_depend_on_the_draw() {
        use statistics::random::Xoshiro256PlusPlus;
        let draw = |seed: u64| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for _ in 0..8 {
                expected.push(random.below(3) as i64);
                found.push(if random.unit() < 0.02 { 3 } else { expected[expected.len() - 1] });
            }
            judged(vec![whole(ElementType::Int64, &expected)], vec![whole(ElementType::Int64, &found)], Precision::Int8)
        };
        let changed = (0..500).filter(|seed| !draw(*seed).equal[0].is_whole()).count();
        assert!(changed > 50, "{changed}");
        assert_eq!((0..500).filter(|seed| !draw(*seed).passes()).count(), 0);
    }
}
