//! A logarithmic axis of ratios in percent of its length, for figures whose text keeps its size at every width.

use super::axis::{Axis, Spread, plain_label};

/// By this length labels are kept apart: that of the column on a page of the usual width.
const LENGTH: f64 = 480.0;

/// An axis of ratios.
pub(crate) struct RatioScale(Axis);

impl RatioScale {
    /// Between two ratios, with some room to both sides.
    pub(crate) fn new(low: f64, high: f64) -> Self {
        RatioScale(Axis::new(Spread::Logarithmic, low, high, 0.0, LENGTH))
    }

    /// Where a ratio is, in percent; one beyond the axis is at its end.
    pub(crate) fn position(&self, ratio: f64) -> f64 {
        let percent = 100.0 * self.0.position(ratio) / LENGTH;
        (percent * 100.0).round().clamp(0.0, 1e4) / 100.0
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
        let is_free = |at: f64| (at - self.position(1.0)).abs() > 6.0;
        let placed = ticks.into_iter().map(|(ratio, label)| (self.position(ratio), label));
        placed.filter(|(at, _)| is_free(*at)).collect()
    }
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
