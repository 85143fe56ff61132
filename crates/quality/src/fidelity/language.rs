//! What outputs of language models say: distributions over the next token, and the tokens of greedy loops.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{Fidelity, compare, largest};
use experiment::{FidelityLimits, Precision};
use files::array::Array;
use onnx::ElementType;
use statistics::{Estimate, Interval, mean, mean_interval};

/// Name of the tokens of a greedy loop among its outputs.
const TOKENS: &str = "tokens";

/// How like the reference a language model predicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Language {
    /// Sequences that were compared.
    pub sequences: u64,
    /// Kullback-Leibler divergence of the next token's distribution from the reference's, in nats a token: the mean over
    /// positions, with its 95 % interval over sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Estimate>,
    /// Where the prompts are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<Perplexity>,
    /// Of greedy loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greedy: Option<Greedy>,
}

/// How well given tokens were predicted: the exponential of their mean negative log-likelihood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Perplexity {
    /// The variant's, with its 95 % interval over sequences.
    pub own: Estimate,
    /// The reference's.
    pub reference: Estimate,
    /// The first over the second, with its 95 % interval over sequences.
    pub ratio: Estimate,
}

/// Tokens of greedy loops, each fed its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Greedy {
    /// Tokens of all sequences.
    pub tokens: u64,
    /// Those before the first difference of their sequence.
    pub before_difference: u64,
}

/// Scores of one sequence: positions of `vocabulary` scores each.
struct Sequence<'a> {
    array: &'a Array,
    vocabulary: usize,
    bytes: &'a [u8],
}

impl<'a> Sequence<'a> {
    /// The sequences of scores `[batch, positions, vocabulary]`, or `[batch, vocabulary]` of one position each.
    fn all(array: &'a Array) -> Vec<Self> {
        let (Some(batch), Some(vocabulary)) = (array.shape.first(), array.shape.last()) else { return Vec::new() };
        let is_scores = matches!(array.shape.len(), 2 | 3) && array.element.is_float() && *vocabulary > 1;
        let each = array.bytes.len().checked_div(*batch as usize).filter(|each| is_scores && *each > 0);
        let parts = each.map(|each| array.bytes.chunks_exact(each));
        parts.into_iter().flatten().map(|bytes| Sequence { array, vocabulary: *vocabulary as usize, bytes }).collect()
    }

    /// The scores of each position.
    fn positions(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        let size = self.array.element.size_bytes().unwrap_or(4) as usize;
        self.bytes.chunks_exact(self.vocabulary * size).map(|bytes| {
            let shape = vec![self.vocabulary as u64];
            let (element, keys) = (self.array.element.clone(), Vec::new());
            let row = Array { name: String::new(), element, shape, bytes: bytes.to_vec(), keys };
            row.numbers().unwrap_or_default()
        })
    }
}

/// Logarithms of the probabilities of which these are scores.
fn log_probabilities(scores: &[f64]) -> Vec<f64> {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
    let scale = highest + sum.ln();
    scores.iter().map(|score| score - scale).collect()
}

/// Divergence of the second distribution from the first, in nats; NaN where a score is. What the first never has adds nothing.
fn divergence(reference: &[f64], candidate: &[f64]) -> f64 {
    let pairs = reference.iter().zip(candidate).filter(|(reference, _)| reference.exp() != 0.0);
    let sum: f64 = pairs.map(|(reference, candidate)| reference.exp() * (reference - candidate)).sum();
    // Rounding alone makes it negative.
    if sum < 0.0 { 0.0 } else { sum }
}

/// What the scores that are called `output` say, by set. `targets`: the tokens that were fed in each set, `[batch, positions]`.
///
/// `None` where there are no such scores of the same shape in both.
pub fn of_scores(
    reference: &[Vec<Array>],
    candidate: &[Vec<Array>],
    output: &str,
    targets: Option<&[Vec<i64>]>,
) -> Option<Language> {
    let scores = |set: &'_ [Array]| set.iter().position(|array| array.name == output);
    let (mut divergences, mut own, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (set, (left, right)) in reference.iter().zip(candidate).enumerate() {
        let (left, right) = (&left[scores(left)?], &right[scores(right)?]);
        if left.shape != right.shape {
            return None;
        }
        let sequences = Sequence::all(left);
        let fed = targets.and_then(|targets| targets.get(set)).map(Vec::as_slice).unwrap_or_default();
        let each = fed.len() / sequences.len().max(1);
        for (row, (left, right)) in sequences.iter().zip(Sequence::all(right)).enumerate() {
            let found = Compared::of(left, &right, fed.get(row * each..(row + 1) * each).unwrap_or_default());
            divergences.extend(found.divergence);
            if let Some([of_reference, of_candidate]) = found.loss {
                expected.push(of_reference);
                own.push(of_candidate);
            }
        }
    }
    let divergence = mean_interval(&divergences, CONFIDENCE)?.not_below_zero();
    let (sequences, divergence) = (divergences.len() as u64, Some(divergence));
    Some(Language { sequences, divergence, perplexity: perplexity(&own, &expected), greedy: None })
}

/// What two sequences of scores say, in nats a token.
#[derive(Default)]
struct Compared {
    divergence: Option<f64>,
    /// Mean negative log-likelihood of the tokens that were fed, by the reference and by the candidate.
    loss: Option<[f64; 2]>,
}

impl Compared {
    /// `fed`: the tokens; each position predicts the one after it, where there are scores for every position.
    fn of(reference: &Sequence<'_>, candidate: &Sequence<'_>, fed: &[i64]) -> Self {
        let (mut divergences, mut losses) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (at, (left, right)) in reference.positions().zip(candidate.positions()).enumerate() {
            let (left, right) = (log_probabilities(&left), log_probabilities(&right));
            divergences.push(divergence(&left, &right));
            let next = fed.get(at + 1).and_then(|id| usize::try_from(*id).ok());
            if let Some((left, right)) = next.and_then(|next| left.get(next).zip(right.get(next))) {
                losses[0].push(-left);
                losses[1].push(-right);
            }
        }
        let is_whole = divergences.len() == fed.len();
        let [left, right] = losses.map(|losses| mean(&losses).filter(|_| is_whole));
        Compared { divergence: mean(&divergences), loss: left.zip(right).map(|(left, right)| [left, right]) }
    }
}

/// From the mean negative log-likelihood of each sequence, as long as the others.
fn perplexity(own: &[f64], reference: &[f64]) -> Option<Perplexity> {
    let differences: Vec<f64> = own.iter().zip(reference).map(|(own, reference)| own - reference).collect();
    let of = |losses: &[f64]| {
        let mean = mean_interval(losses, CONFIDENCE)?;
        let interval = mean.interval.map(|interval| interval.map(f64::exp));
        Some(Estimate { value: mean.value.exp(), interval, ..mean }).filter(is_finite)
    };
    Some(Perplexity { own: of(own)?, reference: of(reference)?, ratio: of(&differences)? })
}

fn is_finite(estimate: &Estimate) -> bool {
    estimate.value.is_finite() && estimate.interval.is_none_or(|it| it.low.is_finite() && it.high.is_finite())
}

/// Of each set the sequences whose prompts no earlier one had: a prompt that is fed twice says what it said before.
/// `prompts`: ids of `batch` sequences by set.
pub fn first_of_each(prompts: &[Vec<i64>], batch: usize) -> Vec<Vec<usize>> {
    let mut known = HashSet::new();
    let of_set = |ids: &'_ Vec<i64>| {
        let sequences = ids.chunks_exact((ids.len() / batch.max(1)).max(1)).take(batch).map(<[i64]>::to_vec);
        sequences.enumerate().filter(|(_, sequence)| known.insert(sequence.clone())).map(|(row, _)| row).collect()
    };
    prompts.iter().map(of_set).collect()
}

/// These sequences of each set, of all arrays whose first dimension is the batch; sets of which none is left fall away.
pub fn only(sets: &[Vec<Array>], rows: &[Vec<usize>], batch: usize) -> Vec<Vec<Array>> {
    let picked = |array: &Array, rows: &[usize]| {
        if array.shape.first() != Some(&(batch as u64)) || rows.len() == batch || array.element == ElementType::String {
            return array.clone();
        }
        let each = array.bytes.len() / batch.max(1);
        let bytes = rows.iter().filter_map(|row| array.bytes.get(row * each..(row + 1) * each)).flatten().copied();
        let shape = std::iter::once(rows.len() as u64).chain(array.shape[1..].iter().copied());
        Array { shape: shape.collect(), bytes: bytes.collect(), ..array.clone() }
    };
    let pairs = sets.iter().zip(rows).filter(|(_, rows)| !rows.is_empty());
    pairs.map(|(set, rows)| set.iter().map(|array| picked(array, rows)).collect()).collect()
}

/// Of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The tokens of a set.
fn tokens(set: &[Array]) -> Option<&Array> {
    set.iter().find(|array| array.name == TOKENS && array.shape.len() == 2)
}

/// How far greedy loops went together, each fed its own tokens; `None` for outputs of other shapes.
pub fn of_loops(reference: &[Vec<Array>], candidate: &[Vec<Array>]) -> Option<Language> {
    let (mut sequences, mut greedy) = (0, Greedy { tokens: 0, before_difference: 0 });
    for (left, right) in reference.iter().zip(candidate) {
        let (left, right) = (tokens(left)?, tokens(right)?);
        if left.shape != right.shape {
            return None;
        }
        let each = left.shape[1].max(1) as usize;
        let (left, right) = (left.numbers()?, right.numbers()?);
        for (left, right) in left.chunks_exact(each).zip(right.chunks_exact(each)) {
            sequences += 1;
            greedy.tokens += each as u64;
            greedy.before_difference += left.iter().zip(right).take_while(|(left, right)| left == right).count() as u64;
        }
    }
    (sequences > 0).then(|| Language { sequences, greedy: Some(greedy), ..Language::default() })
}

/// Compares what loops choose that both are fed the reference's tokens. `scores`: name of the scores of the first positions
/// among the outputs. A token that changes where the two largest scores of the reference are as close as float32 may differ
/// is a tie.
pub fn compare_fed(
    reference: &[Vec<Array>],
    candidate: &[Vec<Array>],
    scores: &str,
    limits: &FidelityLimits,
) -> Fidelity {
    let chosen = |sets: &[Vec<Array>]| -> Vec<Vec<Array>> {
        sets.iter().map(|set| tokens(set).into_iter().cloned().collect()).collect()
    };
    let (expected, mut found) = (chosen(reference), chosen(candidate));
    let mut tied = 0;
    for ((set, expected), found) in reference.iter().zip(&expected).zip(&mut found) {
        let of_scores = set.iter().find(|array| array.name == scores);
        if let (Some(scores), [expected], [found]) = (of_scores, expected.as_slice(), found.as_mut_slice()) {
            tied += settle_ties(expected, found, scores);
        }
    }
    let mut fidelity = compare(&expected, &found, limits);
    fidelity.equal.iter_mut().for_each(|equal| equal.tied = tied);
    fidelity
}

/// Puts the reference's token where its two largest scores tie; how many.
fn settle_ties(expected: &Array, found: &mut Array, scores: &Array) -> u64 {
    if expected.shape != found.shape || expected.bytes.len() != found.bytes.len() {
        return 0;
    }
    let limits = FidelityLimits::of(Precision::Fp32);
    let size = expected.element.size_bytes().unwrap_or(8) as usize;
    let each = expected.shape[1] as usize;
    let mut tied = 0;
    for (row, sequence) in Sequence::all(scores).iter().enumerate() {
        for (at, scores) in sequence.positions().take(each).enumerate() {
            let bytes = (row * each + at) * size..(row * each + at + 1) * size;
            if expected.bytes.get(bytes.clone()) == found.bytes.get(bytes.clone()) {
                continue;
            }
            let [first, second] = largest(&scores, 2)[..] else { continue };
            let (first, second) = (scores[first], scores[second]);
            if first - second <= limits.abs.unwrap_or(0.0) + limits.rel.unwrap_or(0.0) * first.abs() {
                found.bytes[bytes.clone()].copy_from_slice(&expected.bytes[bytes]);
                tied += 1;
            }
        }
    }
    tied
}

impl Language {
    /// Of loops with what their choices say where both are fed the same tokens.
    #[must_use]
    pub fn with(self, fed: Option<Language>) -> Self {
        let fed = fed.unwrap_or_default();
        Language { divergence: fed.divergence, perplexity: fed.perplexity, ..self }
    }

    /// With numbers as they are stored.
    #[must_use]
    pub fn with_numbers(self, stored: fn(f64) -> f64) -> Self {
        let of = |it: Estimate| Estimate {
            value: stored(it.value),
            interval: it.interval.map(|interval| interval.map(stored)),
            ..it
        };
        let perplexity =
            self.perplexity.map(|it| Perplexity { own: of(it.own), reference: of(it.reference), ratio: of(it.ratio) });
        Language { divergence: self.divergence.map(of), perplexity, ..self }
    }

    /// `KL 0.012 nats [0.010, 0.014]`, `perplexity 21.4, 1.02x [1.01, 1.03]`, `31 of 48 tokens before the first difference`.
    pub fn words(&self) -> Vec<String> {
        let greedy = self.greedy.filter(|greedy| greedy.before_difference < greedy.tokens).map(|greedy| {
            format!("{} of {} tokens before the first difference", greedy.before_difference, greedy.tokens)
        });
        let divergence = self.divergence_words(true).map(|words| format!("KL {words} nats a token"));
        let perplexity = self.perplexity_words().map(|words| format!("perplexity {words}"));
        [divergence, perplexity, greedy].into_iter().flatten().collect()
    }

    /// `0.012 [0.010, 0.014]`; without the interval for a table of other things.
    pub fn divergence_words(&self, with_interval: bool) -> Option<String> {
        let estimate = self.divergence.as_ref()?;
        let decimals = decimals_of(estimate.value);
        let interval = if with_interval { interval(estimate, decimals) } else { String::new() };
        Some(format!("{:.decimals$}{interval}", estimate.value))
    }

    /// `21.4, 1.02x [1.01, 1.03]`
    pub fn perplexity_words(&self) -> Option<String> {
        let Perplexity { own, ratio, .. } = self.perplexity.as_ref()?;
        let decimals = decimals_of(ratio.value - 1.0).min(4);
        Some(format!("{:.1}, {:.decimals$}x{}", own.value, ratio.value, interval(ratio, decimals)))
    }
}

impl Greedy {
    /// Of the tokens, those before the first difference.
    pub fn share(&self) -> f64 {
        self.before_difference as f64 / self.tokens.max(1) as f64
    }
}

/// ` [0.010, 0.014]`, nothing where there is none.
fn interval(estimate: &Estimate, decimals: usize) -> String {
    let shown = |it: Interval| format!(" [{:.decimals$}, {:.decimals$}]", it.low, it.high);
    estimate.interval.map(shown).unwrap_or_default()
}

/// As many as show two digits of a number.
fn decimals_of(number: f64) -> usize {
    const MOST: usize = 8;
    let found = (2..MOST).find(|decimals| number.abs() >= 10.0_f64.powi(1 - *decimals as i32));
    found.unwrap_or(MOST).min(if number == 0.0 { 2 } else { MOST })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(shape: &[u64], values: &[f32]) -> Vec<Array> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (name, element) = ("logits".to_owned(), ElementType::Float32);
        vec![Array { name, element, shape: shape.to_vec(), bytes, keys: Vec::new() }]
    }

    fn ids(name: &str, shape: &[u64], values: &[i64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (name, element) = (name.to_owned(), ElementType::Int64);
        Array { name, element, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    /// By SciPy 1.16: `scipy.stats.entropy(p, q)` of the softmax of each row, and `-log_softmax(q)[target]`.
    #[test]
    fn divergence_and_perplexity_are_those_of_the_textbook() {
        let left = [2.0, 1.0, 0.0, 0.0, 0.0, 3.0, 1.0, 1.0, 1.0, 0.5, 0.0, 2.0];
        let right = [1.0, 1.0, 0.0, 0.0, 1.0, 3.0, 1.0, 1.0, 2.0, 0.5, 0.0, 2.5];
        let sets = |values: &[f32]| vec![scores(&[2, 2, 3], values)];
        let targets = vec![vec![0, 1, 2, 2]];
        let found = of_scores(&sets(&left), &sets(&right), "logits", Some(&targets)).expect("there are scores");
        let by_hand = |left: &[f64], right: &[f64]| divergence(&log_probabilities(left), &log_probabilities(right));
        let rows: Vec<f64> = left
            .chunks(3)
            .zip(right.chunks(3))
            .map(|(left, right)| {
                let wide = |row: &[f32]| row.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
                by_hand(&wide(left), &wide(right))
            })
            .collect();
        assert!((rows[0] - 0.119_629_8).abs() < 1e-6, "{rows:?}");
        let divergence = found.divergence.expect("it is known");
        assert!((divergence.value - rows.iter().sum::<f64>() / 4.0).abs() < 1e-12);
        assert_eq!((found.sequences, divergence.n), (2, 2));
        assert!(divergence.interval.is_some_and(|interval| interval.contains(divergence.value)));
        // Only the first position of each sequence has a token after it.
        let perplexity = found.perplexity.expect("targets are given");
        let loss = |row: [f64; 3], target: usize| -log_probabilities(&row)[target];
        let expected = [loss([2.0, 1.0, 0.0], 1), loss([1.0, 1.0, 1.0], 2)];
        assert!((perplexity.reference.value - ((expected[0] + expected[1]) / 2.0).exp()).abs() < 1e-12);
        assert!(perplexity.own.value < perplexity.reference.value && perplexity.ratio.value < 1.0);
        let same = of_scores(&sets(&left), &sets(&left), "logits", None).expect("there are scores");
        assert_eq!((same.divergence.map(|it| it.value), same.perplexity), (Some(0.0), None));
        assert_eq!(of_scores(&sets(&left), &[scores(&[4, 3], &right)], "logits", None), None);
        assert_eq!(of_scores(&sets(&left), &sets(&right), "y", None), None);
    }

    #[test]
    fn a_prompt_that_is_fed_twice_counts_once() {
        let rows = first_of_each(&[vec![1, 2, 3, 4], vec![3, 4, 5, 6], vec![1, 2, 3, 4]], 2);
        assert_eq!(rows, [vec![0, 1], vec![1], vec![]]);
        let sets: Vec<Vec<Array>> = (0..3).map(|set| vec![ids("tokens", &[2, 2], &[set, 1, set, 2])]).collect();
        let picked = only(&sets, &rows, 2);
        assert_eq!((picked.len(), picked[1][0].numbers()), (2, Some(vec![1.0, 2.0])));
        assert_eq!((picked[0][0].shape.as_slice(), picked[1][0].shape.as_slice()), (&[2, 2][..], &[1, 2][..]));
    }

    #[test]
    fn what_has_no_probability_says_nothing() {
        let infinite = [f32::NEG_INFINITY, 0.0, 0.0];
        let sets = |values: &[f32]| vec![scores(&[1, 3], values)];
        let found = of_scores(&sets(&infinite), &sets(&[1.0, 0.0, 0.0]), "logits", None);
        let divergence = found.and_then(|found| found.divergence).map_or(f64::NAN, |it| it.value);
        assert!((divergence - ((1.0_f64.exp() + 2.0) / 2.0).ln()).abs() < 1e-9, "{divergence}");
        let (numbers, broken) = ([1.0, 0.0, 0.0], [f32::NAN, 0.0, 0.0]);
        for (reference, candidate) in [(&numbers, &broken), (&broken, &numbers), (&numbers, &infinite)] {
            assert_eq!(of_scores(&sets(reference), &sets(candidate), "logits", None), None, "no divergence, and not 0");
        }
    }

    #[test]
    fn loops_go_together_until_a_token_differs() {
        let sets = |values: &[i64]| vec![vec![ids("tokens", &[2, 3], values)]];
        let found = of_loops(&sets(&[1, 2, 3, 4, 5, 6]), &sets(&[1, 2, 9, 7, 5, 6])).expect("there are tokens");
        assert_eq!(found.greedy, Some(Greedy { tokens: 6, before_difference: 2 }));
        assert_eq!((found.sequences, found.words()), (2, vec!["2 of 6 tokens before the first difference".to_owned()]));
        assert_eq!(of_loops(&sets(&[0; 6]), &[vec![ids("tokens", &[1, 6], &[0; 6])]]), None);
        let logits = |close: f32| scores(&[2, 3, 2], &[1.0, 0.0, 1.0, close, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        let all = |tokens: &[i64], close: f32| vec![[sets(tokens).concat(), logits(close)].concat()];
        let (expected, changed) = ([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 0]);
        let equal = |close: f32| {
            let limits = FidelityLimits::default();
            let found = compare_fed(&all(&expected, close), &all(&changed, 0.0), "logits", &limits);
            let equal = found.equal.first().cloned();
            equal.map(|equal| (equal.elements, equal.equal, equal.tied))
        };
        assert_eq!((equal(0.5), equal(0.9995)), (Some((6, 4, 0)), Some((6, 5, 1))));
    }

    #[test]
    fn two_digits_are_shown() {
        assert_eq!([0.0, 0.5, 0.012, 0.00034, 3.0].map(decimals_of), [2, 2, 3, 5, 2]);
    }
}
