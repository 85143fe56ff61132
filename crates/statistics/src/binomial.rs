//! The binomial distribution as a table of its cumulative probabilities.
//!
//! Input: the number of trials and the probability of one. Output: cumulative probabilities from both ends.
//! Probabilities are built outwards from the mode by their exact ratio, so a table costs O(sqrt n), needs no gamma
//! function, and answers every search for an order statistic. Deliberately absent: normal approximations.

/// Terms below this fraction of the largest are left out: some 16 standard deviations from the mode.
const NEGLIGIBLE: f64 = 1e-60;

/// Cumulative probabilities of X ~ Bin(n, p), where they are not negligible.
#[derive(Clone, Debug, PartialEq)]
pub struct Binomial {
    first: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Binomial {
    /// The table; `None` without trials or unless 0 < `probability` < 1.
    pub fn new(trials: usize, probability: f64) -> Option<Self> {
        if trials == 0 || !(probability > 0.0 && probability < 1.0) {
            return None;
        }
        let odds = probability / (1.0 - probability);
        // The ratio of the probabilities of `successes` + 1 and `successes`.
        let step = |successes: usize| odds * (trials - successes) as f64 / (successes + 1) as f64;
        let mode = (((trials as f64 + 1.0) * probability).floor() as usize).min(trials);

        let mut below = Vec::new();
        let mut term = 1.0;
        for successes in (0..mode).rev() {
            term /= step(successes);
            if term < NEGLIGIBLE {
                break;
            }
            below.push(term);
        }
        let first = mode - below.len();
        let mut terms: Vec<f64> = below.into_iter().rev().chain([1.0]).collect();
        let mut term = 1.0;
        for successes in mode..trials {
            term *= step(successes);
            if term < NEGLIGIBLE {
                break;
            }
            terms.push(term);
        }

        let lower = running_sums(terms.iter().copied());
        let mut upper = running_sums(terms.iter().rev().copied());
        upper.reverse();
        let total = lower.last().copied().unwrap_or(1.0);
        let normalise = |sums: Vec<f64>| sums.into_iter().map(|sum| (sum / total).min(1.0)).collect();
        Some(Binomial { first, lower: normalise(lower), upper: normalise(upper) })
    }

    /// P(X <= `successes`).
    pub fn at_most(&self, successes: usize) -> f64 {
        match successes.checked_sub(self.first) {
            None => 0.0,
            Some(index) => self.lower.get(index).copied().unwrap_or(1.0),
        }
    }

    /// P(X >= `successes`).
    pub(crate) fn at_least(&self, successes: usize) -> f64 {
        match successes.checked_sub(self.first) {
            None => 1.0,
            Some(index) => self.upper.get(index).copied().unwrap_or(0.0),
        }
    }

    /// How many values from 0 on have P(X <= value) <= `bound`: the first value that exceeds it.
    pub(crate) fn first_above(&self, bound: f64) -> usize {
        self.first + self.lower.partition_point(|&sum| sum <= bound)
    }

    /// The smallest value with P(X >= value) <= `bound`.
    pub(crate) fn first_rare_from_above(&self, bound: f64) -> usize {
        self.first + self.upper.partition_point(|&sum| sum > bound)
    }
}

fn running_sums(terms: impl Iterator<Item = f64>) -> Vec<f64> {
    terms
        .scan(0.0, |sum, term| {
            *sum += term;
            Some(*sum)
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;
    use proptest::prelude::*;

    #[test]
    fn small_table_is_exact() {
        let table = Binomial::new(7, 0.5).unwrap();
        assert_close(table.at_most(0), 1.0 / 128.0, 1e-14);
        assert_close(table.at_most(1), 8.0 / 128.0, 1e-14);
        assert_close(table.at_least(7), 1.0 / 128.0, 1e-14);
        assert_eq!(table.at_most(7), 1.0);
        assert_eq!(table.at_least(0), 1.0);
        assert_eq!(table.at_least(8), 0.0);
    }

    #[test]
    fn large_table_is_accurate_in_the_tail() {
        // 0.999^n in closed form: all of n = 3688 trials succeed.
        let table = Binomial::new(3688, 0.999).unwrap();
        assert_close(table.at_least(3688), 0.999_f64.powi(3688), 1e-12);
        // By symmetry, with the middle term from Stirling's series.
        let table = Binomial::new(100_000, 0.5).unwrap();
        let middle = 0.002523126252014;
        assert_close(table.at_most(50_000), 0.5 + middle / 2.0, 1e-9);
        assert_close(table.at_most(49_000), table.at_least(51_000), 1e-12);
    }

    #[test]
    fn degenerate_arguments_have_no_table() {
        assert_eq!(Binomial::new(0, 0.5), None);
        for probability in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(Binomial::new(5, probability), None);
        }
    }

    proptest! {
        #[test]
        fn both_ends_add_up(trials in 1_usize..5000, probability in 0.0001_f64..0.9999, fraction in 0.0_f64..1.0) {
            let table = Binomial::new(trials, probability).unwrap();
            let successes = (fraction * trials as f64) as usize;
            prop_assert!((table.at_most(successes) + table.at_least(successes + 1) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn agrees_with_the_incomplete_beta_function(trials in 1_usize..400, probability in 0.01_f64..0.99, fraction in 0.0_f64..1.0) {
            let successes = (fraction * (trials - 1) as f64) as usize;
            let (failures, above) = ((trials - successes) as f64, successes as f64 + 1.0);
            let expected = statrs::function::beta::beta_reg(failures, above, 1.0 - probability);
            let actual = Binomial::new(trials, probability).unwrap().at_most(successes);
            prop_assert!((actual - expected).abs() <= 1e-9 * expected.max(1e-6));
        }
    }
}
