//! Scores on data of two sides: on the same items where both answered them, else by their intervals (method 6.2).

use super::DiffOptions;
use super::found::{Change, Found, Reason, Values};
use crate::compare::score::{ScoreDifference, p_beyond};
use base::metric::{Difference, Direction, Unit};
use statistics::Claim;
use statistics::distribution::normal_quantile;
use statistics::interval::Interval;
use statistics::multiplicity::confidence_among;
use statistics::unpaired::SessionSpread;

/// Judges a score by the interval of its difference.
pub(super) fn judge(values: &Values<'_>, margin: Difference) -> Option<Found> {
    judge_apart(values, margin, SessionSpread::NONE)
}

/// The same of sides whose sessions differ by so much of the larger value: added to the half width in squares.
pub(super) fn judge_apart(values: &Values<'_>, margin: Difference, spread: SessionSpread) -> Option<Found> {
    let quantile_of = |confidence: f64| normal_quantile(f64::midpoint(1.0, confidence));
    let quantile = quantile_of(confidence_among(DiffOptions::CONFIDENCE, values.among));
    // Intervals of scores come at the usual confidence.
    let wider = quantile / quantile_of(DiffOptions::CONFIDENCE);
    let more = quantile * spread.sigma * values.from.value.abs().max(values.to.value.abs());
    let known = match values.items {
        Some(items) => ScoreDifference::on_the_same_items(items.baseline, items.candidate)?,
        None => {
            let [from, to] = [values.from, values.to].map(|side| side.estimate(DiffOptions::CONFIDENCE));
            ScoreDifference::unpaired((from.value, from.interval), (to.value, to.interval))
        }
    };
    let difference = known.difference;
    let interval = known.interval.map(|interval| Interval {
        low: difference - (wider * (difference - interval.low)).hypot(more),
        high: difference + (wider * (interval.high - difference)).hypot(more),
    });
    let margin = margin.absolute_of(values.from.value);
    let direction = values.reference.metric.direction;
    let known = ScoreDifference { interval, ..known };
    // A score without an interval gets no verdict.
    let verdict = known.verdict(direction, margin)?;
    let reason = match verdict.claim() {
        Claim::Difference => Reason::BeyondMargin,
        Claim::Sameness => Reason::WithinMargin,
        Claim::Nothing => Reason::NotEnoughData { detectable: None },
    };
    let is_in_points = values.reference.unit() == Unit::Share;
    let scale = if is_in_points { 1.0 } else { values.from.value.abs() };
    let scaled = |value: f64| value / scale;
    let worst = |interval: Interval| match direction {
        Direction::HigherIsBetter => -interval.low,
        Direction::LowerIsBetter | Direction::Neutral => interval.high,
    };
    let is_no_worse = verdict.is_no_worse() || interval.is_some_and(|interval| worst(interval) <= margin);
    let interval = interval.map(|interval| interval.map(scaled));
    let change = (scale > 0.0).then(|| Change::new(scaled(difference), interval, is_in_points));
    let p = known.worse(direction).and_then(|worse| p_beyond(worse, margin));
    Some(Found { verdict, reason, change, p, is_no_worse, detectable: None })
}
