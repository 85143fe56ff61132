//! The mean by batches: a cross-check of the interval that goes by effective sample size (method 3.2).
//!
//! Input: the samples of one run in the order of time. Output: mean and interval over equal batches, and how much
//! neighbouring batches still resemble each other. Deliberately absent: a choice of the number of batches.

use serde::{Deserialize, Serialize};

use super::interval::{Estimate, mean_interval};
use super::moments::{mean, sum_of};

/// The mean of consecutive batches as a cross-check of `autocorrelation::mean_interval_ess`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchMeans {
    /// Values in each batch.
    pub batch_size: usize,
    /// Mean of the batch means, with Student's t interval over the batches.
    pub estimate: Estimate,
    /// Correlation of neighbouring batch means; far from zero, the batches are too short. `None` without spread.
    pub lag_one_correlation: Option<f64>,
}

/// The mean over `batches` consecutive batches of equal size; the oldest values that do not fill them are dropped.
/// `None` with fewer than two batches or fewer than two values in each, and as [`Estimate`]s of the mean are.
pub fn batch_means(values: &[f64], batches: usize, confidence: f64) -> Option<BatchMeans> {
    let batch_size = values.len().checked_div(batches)?;
    if batches < 2 || batch_size < 2 {
        return None;
    }
    let newest = &values[values.len() - batches * batch_size..];
    let means: Vec<f64> = newest.chunks_exact(batch_size).filter_map(mean).collect();
    let estimate = mean_interval(&means, confidence)?;
    let centered: Vec<f64> = means.iter().map(|batch| batch - estimate.value).collect();
    let spread = sum_of(centered.iter().map(|distance| distance * distance));
    let neighbours = sum_of(centered.windows(2).map(|pair| pair[0] * pair[1]));
    let lag_one_correlation = (spread > 0.0).then(|| neighbours / spread);
    Some(BatchMeans { batch_size, estimate, lag_one_correlation })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, number, one_sample};

    #[test]
    fn reference_batch_means_hold() {
        for (_, data, expected) in one_sample() {
            let case = &expected["batch_means_20"];
            let actual = batch_means(&data, 20, 0.95);
            assert_eq!(actual.is_some(), !case.is_null());
            let Some(actual) = actual else { continue };
            assert_eq!(actual.batch_size, count(&case["batch_size"]));
            assert_close(actual.estimate.value, number(&case["mean"]), 1e-12);
            assert_close(actual.estimate.interval.unwrap().half_width(), number(&case["half_width"]), 1e-10);
            assert_close(actual.lag_one_correlation.unwrap(), number(&case["lag1"]), 1e-10);
        }
    }

    #[test]
    fn oldest_values_are_dropped() {
        let values = [100.0, 1.0, 3.0, 5.0, 7.0];
        let actual = batch_means(&values, 2, 0.95).unwrap();
        assert_eq!((actual.batch_size, actual.estimate.value), (2, 4.0));
        assert_eq!(actual.lag_one_correlation, Some(-0.5));
    }

    #[test]
    fn too_few_values_have_no_batches() {
        for batches in [0, 1, 20] {
            assert_eq!(batch_means(&[1.0; 30], batches, 0.95), None);
        }
        assert_eq!(batch_means(&[], 2, 0.95), None);
        assert_eq!(batch_means(&[f64::NAN; 40], 20, 0.95), None);
        assert_eq!(batch_means(&[1.0; 40], 20, 0.95).unwrap().lag_one_correlation, None);
    }
}
