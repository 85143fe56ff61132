//! A pilot study: from earlier runs to the numbers of runs and samples of the next measurement (method 4.3).
//!
//! The estimate is the trimmed mean of the runs' medians, so what varies within a run is the error of its median, on
//! values discounted for their correlation. Everything is taken from the trimmed mean, so that a disturbed run of ten
//! asks for no more than a quiet one. Deliberately absent: what runs cost.

use std::ops::RangeInclusive;

use super::autocorrelation::indicator_autocorrelation_time;
use super::planning::{Variances, optimal_samples, runs_for_trimmed_mean};
use super::quantile::median_with_error;
use super::trimmed_mean::TrimmedMean;

/// What the pilot study found about one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilot {
    /// The median of each run.
    pub medians: Vec<f64>,
    /// Values of a typical run.
    pub values: usize,
    /// What a value adds to the error of its run's median, and by how much runs differ in addition.
    pub variances: Variances,
    estimate: f64,
    variance_of_one: f64,
}

impl Pilot {
    /// `None` below two runs, and for a run without values.
    pub fn of(runs: impl IntoIterator<Item = Vec<f64>>) -> Option<Self> {
        let (mut medians, mut errors, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for values in runs {
            let (median, error) = median_with_error(&values)?;
            medians.push(median);
            errors.push(error * error * indicator_autocorrelation_time(&values, median));
            counts.push(values.len() as f64);
        }
        let (half, error, count) = (TrimmedMean::of(&medians)?, typical(&errors)?, typical(&counts)?);
        let variance_of_one = half.variance_of_one()?;
        let variances = Variances { within_runs: error * count, between_runs: variance_of_one - error };
        Some(Pilot { medians, values: count as usize, variances, estimate: half.estimate, variance_of_one })
    }

    /// Values of each run that buy the most precision for the time, at the costs of a value and of a run without its values;
    /// `None` where runs add no variance.
    pub fn best_values(&self, of_value: f64, of_run: f64, bounds: RangeInclusive<usize>) -> Option<usize> {
        optimal_samples(of_value, of_run, self.variances, bounds)
    }

    /// Runs of so many values whose 95 % interval is `relative` to both sides of the estimate; `None` where no reasonable
    /// number is enough.
    pub fn runs(&self, values: usize, relative: f64) -> Option<usize> {
        // Where the runs' values explain all that varies between runs, nothing is known that other lengths would change.
        let of_one = match self.variances.between_runs {
            between if between > 0.0 => between + self.variances.within_runs / values.max(1) as f64,
            _ => self.variance_of_one,
        };
        runs_for_trimmed_mean(self.estimate, of_one, relative)
    }
}

/// The trimmed mean of values of which some are disturbed.
pub fn typical(values: &[f64]) -> Option<f64> {
    Some(TrimmedMean::of(values)?.estimate)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A spread of 20 % within a run, whatever its level.
    fn run(level: f64) -> Vec<f64> {
        (0..100).map(|index| level * (1.0 + 0.2 * f64::from(index * 37 % 100) / 100.0)).collect()
    }

    #[test]
    fn one_disturbed_run_asks_for_no_more_than_none() {
        let levels = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0];
        let needed =
            |levels: &[f64]| Pilot::of(levels.iter().map(|level| run(*level))).unwrap().runs(100, 0.01).unwrap();
        let mut disturbed = levels;
        disturbed[7] = 1000.0;
        assert_eq!(needed(&levels), needed(&disturbed));
    }

    #[test]
    fn runs_of_one_level_leave_nothing_between_runs() {
        let pilot = Pilot::of((0..8).map(|_| run(100.0))).unwrap();
        assert!(pilot.variances.between_runs <= 0.0 && pilot.variances.within_runs > 0.0);
        assert_eq!((pilot.values, pilot.best_values(1.0, 10.0, 5..=1000)), (100, None));
        assert_eq!(pilot.runs(100, 0.01), Some(crate::planning::MINIMUM_RUNS));
        assert_eq!(Pilot::of([run(1.0)]), None);
        assert_eq!(Pilot::of([run(1.0), Vec::new()]), None);
    }
}
