//! A number with its interval, as it is stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digits::rounded;
use statistics::interval::{Estimate, Interval};

/// A number with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimated {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval; absent below two values, for what is the same in every run, and where it says nothing:
    /// of the smallest sample, of a deviation, and of a percentile that is not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// What the interval is over: runs, or the items of a dataset; 1 for a fact.
    pub n: u64,
    /// False for a percentile that the samples of a run cannot support: the true value may lie anywhere above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported: Option<bool>,
}

impl Estimated {
    /// An estimate, in as many digits as are stored.
    pub(super) fn of(estimate: Estimate) -> Self {
        let Estimate { value, interval, n, .. } = estimate;
        let end = |end: fn(Interval) -> f64| interval.map(|interval| rounded(end(interval)));
        let (low, high) = (end(|interval| interval.low), end(|interval| interval.high));
        Estimated { value: rounded(value), low, high, n: n as u64, supported: None }
    }

    /// With its interval, as statistics have it.
    pub fn estimate(&self, confidence: f64) -> Estimate {
        Estimate { value: self.value, interval: interval(self.low, self.high), n: self.n as usize, confidence }
    }
}

/// Two stored ends as an interval.
pub fn interval(low: Option<f64>, high: Option<f64>) -> Option<Interval> {
    low.zip(high).map(|(low, high)| Interval { low, high })
}
