//! Numbers as they are stored: in how many digits, and with their interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub(crate) fn of(estimate: Estimate) -> Self {
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

/// Significant digits of what is measured: an error of at most 0.005 %, a tenth of what the quietest machine repeats.
const DIGITS: i32 = 5;

/// Digits of what is the same in every run and no whole number.
const EXACT: i32 = 9;

/// What is measured, to as many digits as mean anything.
pub(crate) fn rounded(number: f64) -> f64 {
    to_digits(number, DIGITS)
}

/// A value that is the same in every run: bytes as a whole number, shares of items in nine digits.
pub(crate) fn as_fact(number: f64) -> f64 {
    if number.fract() == 0.0 { number } else { to_digits(number, EXACT) }
}

pub(crate) fn to_digits(number: f64, digits: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    // Through the decimal form, so that what is written is short.
    format!("{number:.*e}", (digits - 1).max(0) as usize).parse().unwrap_or(number)
}

/// Whether a field is left out.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// Whether a field is left out.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// The word that is stored of a variant without fields.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).ok();
    value.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}
