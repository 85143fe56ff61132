//! One run as a thin lens: where its middle half lies, where all but its extremes lie, and its median.
//!
//! The boxes of one cell below each other, in the order of blocks, show at a glance what a pooled density hides: runs that
//! fall into two kinds, one run apart from the rest, a machine that changes from run to run.

use super::axis::Axis;
use super::canvas::{Canvas, Color, INK};
use statistics::quantile::quantile_sorted;

/// Distance of the middles of two boxes, in points.
pub(super) const PITCH: f64 = 6.0;

/// Half the height of a box where it is thickest.
const HALF: f64 = 2.2;

/// The quantiles of a run that are drawn: 5, 25, 50, 75 and 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunBox([f64; 5]);

impl RunBox {
    /// Of a run's sorted samples; `None` without any.
    pub(super) fn of_sorted(samples: &[f64]) -> Option<Self> {
        let at = |probability: f64| quantile_sorted(samples, probability);
        Some(RunBox([at(0.05)?, at(0.25)?, at(0.5)?, at(0.75)?, at(0.95)?]))
    }

    /// The box in values that are divided by `factor`, its middle at `y`; what leaves the axis ends at its edge.
    pub(super) fn draw(&self, canvas: &mut Canvas, axis: &Axis, factor: f64, y: f64, color: Color) {
        let inside = |value: f64| axis.position(value / factor).clamp(axis.left_end(), axis.right_end());
        let [least, low, middle, high, most] = self.0.map(inside);
        let (above, below) = (y - HALF, y + HALF);
        let lens = [(least, y), (low, above), (high, above), (most, y), (high, below), (low, below), (least, y)];
        canvas.area(&lens, color, 0.45);
        canvas.line((middle, above - 0.6), (middle, below + 0.6), INK, 1.6);
    }
}

/// At most `most` of these indices, evenly spaced, the first and the last among them.
pub(super) fn evenly(count: usize, most: usize) -> Vec<usize> {
    match most {
        _ if count <= most => (0..count).collect(),
        0 | 1 => (0..most).collect(),
        _ => (0..most).map(|index| index * (count - 1) / (most - 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_many_are_spread_over_all() {
        assert_eq!(evenly(3, 5), [0, 1, 2]);
        assert_eq!(evenly(10, 4), [0, 3, 6, 9]);
        assert_eq!((evenly(10, 1), evenly(10, 0), evenly(0, 4)), (vec![0], vec![], vec![]));
    }

    #[test]
    fn a_box_is_made_of_quantiles() {
        let samples: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(RunBox::of_sorted(&samples), Some(RunBox([5.0, 25.0, 50.0, 75.0, 95.0])));
        assert_eq!(RunBox::of_sorted(&[]), None);
    }
}
