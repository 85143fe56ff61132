//! Scores on data of two sides: McNemar's test where both answered the same items, else their intervals (method 6.2).

use super::DiffOptions;
use super::found::{Change, Found, Items, Reason, Values};
use crate::results::Estimated;
use base::metric::{Difference, Direction, Unit};
use statistics::distribution::{normal_cdf, normal_quantile};
use statistics::interval::Interval;
use statistics::paired_proportions::paired_proportions;
use statistics::unpaired::SessionSpread;
use statistics::{Claim, Verdict};

/// Judges a score by the interval of its difference.
pub(super) fn judge(values: &Values<'_>, margin: Difference) -> Option<Found> {
    judge_apart(values, margin, SessionSpread::NONE)
}

/// The same of sides whose sessions differ by so much of the larger value: added to the half width in squares.
pub(super) fn judge_apart(values: &Values<'_>, margin: Difference, spread: SessionSpread) -> Option<Found> {
    let quantile = normal_quantile(f64::midpoint(1.0, DiffOptions::CONFIDENCE));
    let more = quantile * spread.sigma * values.from.value.abs().max(values.to.value.abs());
    let (difference, interval) = match values.items {
        Some(items) => on_the_same_items(items)?,
        None => unpaired(values.from, values.to),
    };
    let interval = interval.map(|interval| Interval {
        low: difference - (difference - interval.low).hypot(more),
        high: difference + (interval.high - difference).hypot(more),
    });
    let margin = margin.absolute_of(values.from.value);
    let is_higher_better = values.reference.metric.direction == Direction::HigherIsBetter;
    let worse = interval.map(|it| if is_higher_better { Interval { low: -it.high, high: -it.low } } else { it });
    // The same answers to the same items leave nothing open.
    let is_same = difference == 0.0 && values.items.is_some_and(|items| items.baseline == items.candidate);
    let verdict = match worse {
        _ if is_same => Verdict::exact(0.0, margin),
        Some(worse) => Verdict::from_interval(worse, margin),
        // A score of which nobody knows how uncertain it is tells nothing.
        None => return None,
    };
    let reason = match verdict.claim() {
        Claim::Difference => Reason::BeyondMargin,
        Claim::Sameness => Reason::WithinMargin,
        Claim::Nothing => Reason::NotEnoughData { detectable: None },
    };
    let is_in_points = values.reference.unit() == Unit::Share;
    let scale = if is_in_points { 1.0 } else { values.from.value.abs() };
    let scaled = |value: f64| value / scale;
    let change = (scale > 0.0).then(|| Change {
        value: scaled(difference),
        low: interval.map(|interval| scaled(interval.low)),
        high: interval.map(|interval| scaled(interval.high)),
        is_in_points,
    });
    Some(Found { verdict, reason, change, p: worse.and_then(|worse| p_beyond(worse, margin)) })
}

/// The p value of a difference beyond the margin, from the interval: two-sided, normal, with the error that its
/// width shows.
fn p_beyond(worse: Interval, margin: f64) -> Option<f64> {
    let error = worse.half_width() / normal_quantile(f64::midpoint(1.0, DiffOptions::CONFIDENCE));
    let beyond = f64::midpoint(worse.low, worse.high).abs() - margin;
    (error > 0.0).then(|| (2.0 * normal_cdf(-beyond / error)).min(1.0))
}

fn on_the_same_items(items: Items<'_>) -> Option<(f64, Option<Interval>)> {
    let pairs = || items.baseline.iter().zip(items.candidate);
    let lost = pairs().filter(|(before, after)| **before && !**after).count() as u64;
    let gained = pairs().filter(|(before, after)| !**before && **after).count() as u64;
    let found = paired_proportions(items.candidate.len() as u64, lost, gained, DiffOptions::CONFIDENCE)?;
    Some((found.difference, Some(found.interval)))
}

/// The interval of a difference from those of two estimates: the squared distances to their ends added (Newcombe 1998,
/// method 10, for proportions; Zou and Donner 2008 for others).
fn unpaired(from: &Estimated, to: &Estimated) -> (f64, Option<Interval>) {
    let difference = to.value - from.value;
    let ends = |of: &Estimated| Some((of.value - of.low?, of.high? - of.value));
    let interval = ends(from).zip(ends(to)).map(|((from_below, from_above), (to_below, to_above))| Interval {
        low: difference - to_below.hypot(from_above),
        high: difference + to_above.hypot(from_below),
    });
    (difference, interval)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn estimated(value: f64, low: f64, high: f64) -> Estimated {
        Estimated { value, low: Some(low), high: Some(high), n: 100, supported: None }
    }

    #[test]
    fn the_interval_of_a_difference_is_newcombes() {
        // Newcombe 1998, table II, (a): 56/70 and 48/80, Wilson's intervals .6918 to .8767 and .4905 to .7004.
        let (difference, interval) = unpaired(&estimated(0.6, 0.490_5, 0.700_4), &estimated(0.8, 0.691_8, 0.876_7));
        let interval = interval.unwrap();
        assert!((difference - 0.2).abs() < 1e-9);
        assert!((interval.low - 0.0524).abs() < 5e-4 && (interval.high - 0.3339).abs() < 5e-4, "{interval:?}");
    }
}
