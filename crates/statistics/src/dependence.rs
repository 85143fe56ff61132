//! Whether observations follow each other, so that an interval which takes them to be independent is too narrow
//! (method 6.2).
//!
//! Input: observations in the order in which they were made, such as the log ratios of pairs. Output: how many
//! independent ones they are worth, and whether that is established to be less than half.
//! By ranks, as an estimate by the trimmed mean heeds little more. Geyer's time (method 3.2) takes fifty values; up to
//! there it misses most of what neighbours show.
//! Deliberately absent: an interval that allows for it, which twenty dependent observations cannot give.

use super::autocorrelation::autocorrelation_time;
use super::mid_ranks::MidRanks;
use super::von_neumann::NeighbourTest;

/// Fewer observations do not show whether they follow each other.
const FEWEST: usize = 10;

/// From here on Geyer's time calls fewer than one in twenty independent series dependent.
const GEYER_FROM: usize = 50;

/// Observations that are worth less than one in so many are no independent ones.
const MOST_TIME: f64 = 2.0;

/// How observations follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    n: usize,
    /// Autocorrelation time that the neighbours show, and the p value of none.
    neighbours: Option<(f64, f64)>,
    /// Autocorrelation time that longer stretches show; `None` for short series.
    stretches: Option<f64>,
}

impl Dependence {
    /// Of observations in their order.
    pub fn of(series: &[f64]) -> Self {
        let n = series.len();
        let mut dependence = Dependence { n, neighbours: None, stretches: None };
        if n < FEWEST {
            return dependence;
        }
        let ranks = MidRanks::of(series).ranks;
        dependence.neighbours = NeighbourTest::of(&ranks).map(|test| (first_order_time(test.correlation, n), test.p));
        dependence.stretches = (n >= GEYER_FROM).then(|| autocorrelation_time(&ranks));
        dependence
    }

    /// The number of independent observations that these are worth.
    pub fn effective_n(&self) -> f64 {
        let times = [self.neighbours.map(|(time, _)| time), self.stretches];
        self.n as f64 / times.into_iter().flatten().fold(1.0, f64::max)
    }

    /// Whether they are worth less than half their number, and short series at this level of significance.
    pub fn is_established(&self, level: f64) -> bool {
        let by_neighbours = self.neighbours.is_some_and(|(time, p)| time > MOST_TIME && p < level);
        by_neighbours || self.stretches.is_some_and(|time| time > MOST_TIME)
    }
}

/// The autocorrelation time of a first-order process whose neighbours have this correlation in a series of n.
fn first_order_time(correlation: f64, n: usize) -> f64 {
    // In short series the correlation comes out low, by (1 + 3 r) / n (Marriott and Pope 1954).
    let unbiased = correlation + (1.0 + 3.0 * correlation) / n as f64;
    let time = (1.0 + unbiased) / (1.0 - unbiased);
    if unbiased < 1.0 { time.clamp(1.0, n as f64) } else { n as f64 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use proptest::prelude::*;

    /// A level of one in twenty, as of a single series.
    const LEVEL: f64 = 0.05;

    /// A stationary first-order process of unit variance, of which a share of the values is disturbed.
    fn series(n: usize, memory: f64, disturbed: f64, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let mut state = generator.normal();
        let mut next = || {
            let value = state;
            state = memory * state + (1.0 - memory * memory).sqrt() * generator.normal();
            let size = 10.0 + 10.0 * generator.unit();
            if generator.unit() < disturbed { value + size } else { value }
        };
        (0..n).map(|_| next()).collect()
    }

    fn share_established(n: usize, memory: f64, disturbed: f64) -> f64 {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(62);
        let trials = 1000;
        let found = (0..trials).filter(|_| {
            let series = series(n, memory, disturbed, &mut generator);
            Dependence::of(&series).is_established(LEVEL)
        });
        found.count() as f64 / f64::from(trials)
    }

    #[test]
    fn independent_observations_pass_whatever_their_tails() {
        for n in [10, 16, 24, 40, 60, 200] {
            for disturbed in [0.0, 0.1] {
                let share = share_established(n, 0.0, disturbed);
                assert!(share < 0.065, "{n} {disturbed}: {share}");
            }
        }
    }

    #[test]
    fn dependent_observations_are_found_sooner_the_more_there_are() {
        for (n, least) in [(10, 0.5), (15, 0.75), (20, 0.9), (30, 0.98), (60, 0.99)] {
            let share = share_established(n, 0.9, 0.0);
            assert!(share > least, "{n}: {share}");
        }
        // Of the values themselves Geyer's time finds a quarter.
        assert!(share_established(30, 0.9, 0.1) > 0.7);
    }

    #[test]
    fn slow_waves_below_noise_are_found_in_long_series() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(7);
        let wave = |k: usize| 0.7 * (k as f64 / 25.0).sin() + generator.normal();
        let series: Vec<f64> = (0..400).map(wave).collect();
        let dependence = Dependence::of(&series);
        assert!(dependence.is_established(LEVEL) && dependence.effective_n() < 150.0, "{dependence:?}");
    }

    #[test]
    fn the_number_is_less_than_half_where_it_is_established() {
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        let dependence = Dependence::of(&rising);
        assert!(dependence.is_established(LEVEL) && (1.0..2.0).contains(&dependence.effective_n()));
        for values in [&[][..], &[1.0, 2.0], &[2.0; 60], &rising[..9]] {
            let none = Dependence::of(values);
            assert!(!none.is_established(LEVEL) && none.effective_n() == values.len() as f64);
        }
    }

    proptest! {
        #[test]
        fn the_number_lies_between_one_and_all(values in prop::collection::vec(any::<f64>(), 1..80)) {
            let dependence = Dependence::of(&values);
            prop_assert!((1.0..=values.len() as f64).contains(&dependence.effective_n()));
            prop_assert!(!dependence.is_established(LEVEL) || dependence.effective_n() < values.len() as f64 / 2.0);
        }

        #[test]
        fn only_the_order_counts(values in prop::collection::vec(0.1_f64..10.0, 10..80), power in 0.2_f64..3.0) {
            let bent: Vec<f64> = values.iter().rev().map(|value| value.powf(power)).collect();
            let (original, transformed) = (Dependence::of(&values), Dependence::of(&bent));
            prop_assert!((original.effective_n() - transformed.effective_n()).abs() < 1e-6);
        }
    }
}
