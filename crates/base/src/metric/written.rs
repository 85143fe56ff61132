//! Values of a metric as people write them: `20ms`, `64MiB`, `95%`; and differences: `5%`, `0.5pp`, `1MiB`.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MetricReference, Unit};
use crate::quantity::{Bytes, Nanos, QuantityError, Ratio};

/// What a value of a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A time.
    Duration,
    /// Bytes.
    Size,
    /// Events per second.
    Rate,
    /// A plain ratio or a share.
    Ratio,
    /// Joules.
    Energy,
    /// A plain number.
    Count,
}

impl MetricReference {
    /// What its values are measured in.
    pub fn kind(&self) -> ValueKind {
        match self.unit() {
            Unit::Ratio | Unit::Share => ValueKind::Ratio,
            Unit::Nanoseconds => ValueKind::Duration,
            Unit::Bytes => ValueKind::Size,
            Unit::PerSecond => ValueKind::Rate,
            Unit::Joules => ValueKind::Energy,
            Unit::Watts | Unit::Celsius | Unit::Count | Unit::Number | Unit::Named(_) => ValueKind::Count,
        }
    }
}

/// Reads a value in the unit that the metric is stored in: nanoseconds, bytes, a second, ratios, counts.
///
/// # Errors
///
/// A text that is no such value, one below zero, and one that is too large.
pub fn read_value(text: &str, reference: MetricReference) -> Result<f64, QuantityError> {
    let is_score = reference.metric.is_own() && reference.metric.is_constant();
    match text.strip_prefix('-') {
        // A score may be a logarithm, or a difference.
        Some(size) if is_score => read_value(size, reference).map(|size| -size),
        _ => read_size(text, reference),
    }
}

fn read_size(text: &str, reference: MetricReference) -> Result<f64, QuantityError> {
    match reference.kind() {
        ValueKind::Duration => number::<Nanos>(text, |duration| duration.0 as f64),
        ValueKind::Size => number::<Bytes>(text, |size| size.0 as f64),
        ValueKind::Ratio => number::<Ratio>(text, |ratio| ratio.0),
        ValueKind::Rate => plain(text.strip_suffix("/s").unwrap_or(text).trim_end(), "rate"),
        ValueKind::Energy => joules(text),
        ValueKind::Count => {
            let number = match reference.unit() {
                Unit::Named(unit) => text.strip_suffix(unit).unwrap_or(text).trim_end(),
                _ => text,
            };
            plain(number, "count")
        }
    }
}

fn number<T: FromStr<Err = QuantityError>>(text: &str, base: fn(T) -> f64) -> Result<f64, QuantityError> {
    text.parse().map(base)
}

/// `0.5J`, `20 mJ`, `300uJ`, or a plain number of joules.
fn joules(text: &str) -> Result<f64, QuantityError> {
    let units = [("mJ", 1e-3), ("uJ", 1e-6), ("J", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    Ok(plain(number.trim_end(), "energy")? * factor)
}

/// A number without a unit.
fn plain(text: &str, what: &'static str) -> Result<f64, QuantityError> {
    match text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number < 0.0 => {
            Err(QuantityError::Negative { text: text.to_owned(), what })
        }
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(QuantityError::Malformed { text: text.to_owned(), what, example: "`100`" }),
    }
}

/// A difference between two values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "difference")]
pub enum Difference {
    /// As a share of the first value: 0.05 is 5 %.
    Relative(f64),
    /// In the unit in which the metric is stored; of shares, 0.005 is half a percentage point.
    Absolute(f64),
}

impl Difference {
    /// Reads a difference: `5%` of anything, `0.5pp` of a share, or a value of the metric such as `1MiB`.
    ///
    /// # Errors
    ///
    /// As [`read_value`]; and a plain number for a ratio or a share, which could be either.
    pub fn read(text: &str, reference: MetricReference) -> Result<Self, QuantityError> {
        let text = text.trim();
        let is_ratio = reference.kind() == ValueKind::Ratio;
        if text.ends_with('%') {
            return number::<Ratio>(text, |ratio| ratio.0).map(Difference::Relative);
        }
        if let Some(points) = text.strip_suffix("pp").filter(|_| is_ratio) {
            return plain(points.trim_end(), "difference").map(|points| Difference::Absolute(points / 100.0));
        }
        if is_ratio {
            let example = "`5%` (relative) or `0.5pp` (percentage points)";
            return Err(QuantityError::Malformed { text: text.to_owned(), what: "difference", example });
        }
        read_value(text, reference).map(Difference::Absolute)
    }

    /// As a share of this value.
    pub fn relative_to(self, value: f64) -> f64 {
        match self {
            Difference::Relative(share) => share,
            Difference::Absolute(amount) => amount / value.abs(),
        }
    }

    /// In the stored unit, of this value.
    pub fn absolute_of(self, value: f64) -> f64 {
        match self {
            Difference::Relative(share) => share * value.abs(),
            Difference::Absolute(amount) => amount,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_or_in_the_unit_of_their_metric() {
        let read = |text: &str, metric: &str| Difference::read(text, metric.parse().unwrap());
        assert_eq!(read("5%", "latency"), Ok(Difference::Relative(0.05)));
        assert_eq!(read("0.5pp", "accuracy_top1"), Ok(Difference::Absolute(0.005)));
        assert_eq!(read("1MiB", "model_size"), Ok(Difference::Absolute(1_048_576.0)));
        assert_eq!(read("200us", "latency.p95"), Ok(Difference::Absolute(200_000.0)));
        assert!(read("0.5", "accuracy_top1").is_err(), "points or a share of the share?");
        assert!(read("0.5pp", "latency").is_err());
        assert!(read("-1%", "latency").is_err());
        assert_eq!(Difference::Absolute(20.0).relative_to(400.0), 0.05);
        assert_eq!(Difference::Relative(0.05).absolute_of(400.0), 20.0);
    }
}
