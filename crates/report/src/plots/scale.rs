//! A logarithmic axis of ratios in percent of its length, for figures whose text keeps its size at every width.

use super::axis::{Axis, Spread, plain_label};
use statistics::interval::Interval;

/// By this length labels are kept apart: that of the column on a phone.
const LENGTH: f64 = 230.0;

/// An axis of ratios.
pub(crate) struct RatioScale(Axis);

impl RatioScale {
    /// Between two ratios, with some room to both sides.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        RatioScale(Axis::new(Spread::Logarithmic, low, high, 0.0, LENGTH))
    }

    /// Around 1 and these ratios with their intervals, with room for the words of a row next to its mark in the width of a
    /// column, to the left of what is slower.
    pub(crate) fn around(rows: impl Iterator<Item = (f64, Option<Interval>)>) -> Self {
        const LEAST: f64 = 1.25;
        const WORDS: f64 = 0.26;
        let (mut low, mut high, mut slower) = (1.0 / LEAST, LEAST, 1.0_f64);
        for (ratio, interval) in rows {
            let [from, to] = interval.map_or([ratio; 2], |it| [it.low.min(ratio), it.high.max(ratio)]);
            if !(from.is_finite() && to.is_finite() && from > 0.0) {
                continue;
            }
            (low, high) = (low.min(from), high.max(to));
            slower = if to < 1.0 { slower.min(from) } else { slower };
        }
        if slower < 1.0 {
            low = low.min((high.ln() - (high / slower).ln() / (1.0 - WORDS)).exp());
        }
        RatioScale::new(low, high)
    }

    /// Whether a ratio is on the axis.
    pub(crate) fn holds(&self, ratio: f64) -> bool {
        self.0.holds(ratio)
    }

    /// Where a ratio is, in percent; one beyond the axis is at its end.
    pub(crate) fn position(&self, ratio: f64) -> f64 {
        percent(&self.0, ratio)
    }

    /// Where a stretch begins and how long it is, in percent.
    pub(crate) fn span(&self, low: f64, high: f64) -> (f64, f64) {
        let (from, to) = (self.position(low), self.position(high));
        (from, ((to - from) * 100.0).round() / 100.0)
    }

    /// Round ratios but 1, with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let ticks = self.0.ticks(|ratio| format!("{}x", plain_label(ratio)));
        // 1 has a label of its own.
        let is_free = |at: f64| (at - self.position(1.0)).abs() > 13.0;
        let placed = ticks.into_iter().map(|(ratio, label)| (self.position(ratio), label));
        placed.filter(|(at, _)| is_free(*at)).collect()
    }
}

/// An axis of lengths, from zero unless it begins further right.
pub(crate) struct LengthScale(Axis);

impl LengthScale {
    /// Between two lengths, with some room at the end.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        LengthScale(match low == 0.0 {
            true => Axis::from_zero(high * 1.04, 0.0, LENGTH),
            false => Axis::new(Spread::Linear, low, high, 0.0, LENGTH),
        })
    }

    /// Where a length ends, in percent; one beyond the axis ends with it.
    pub(crate) fn position(&self, length: f64) -> f64 {
        percent(&self.0, length)
    }

    /// Where a stretch begins and how long it is, in percent, whichever end comes first.
    pub(crate) fn span(&self, from: f64, to: f64) -> (f64, f64) {
        let (from, to) = (self.position(from.min(to)), self.position(from.max(to)));
        (from, ((to - from) * 100.0).round() / 100.0)
    }

    /// Round lengths with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        self.0.ticks(plain_label).into_iter().map(|(length, label)| (self.position(length), label)).collect()
    }
}

/// Where a value is on an axis of the usual length, in percent; one beyond it is at its end.
fn percent(axis: &Axis, value: f64) -> f64 {
    let percent = 100.0 * axis.position(value) / LENGTH;
    (percent * 100.0).round().clamp(0.0, 1e4) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_drawn_in_percent_and_one_has_no_tick() {
        let scale = RatioScale::new(0.5, 2.0);
        assert!((scale.position(1.0) - 50.0).abs() < 0.01);
        let (from, length) = scale.span(0.98, 1.02);
        assert!(from < 50.0 && from + length > 50.0);
        assert_eq!((scale.position(0.0), scale.position(f64::INFINITY)), (0.0, 100.0));
        let labels: Vec<String> = scale.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.5x", "0.7x", "1.5x", "2x"]);
    }
}
