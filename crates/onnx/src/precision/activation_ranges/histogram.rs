//! How often an activation takes which values.
//!
//! Input: its range, then its values. Output: counts in bins of equal width, and the range of its middle values.
//! Deliberately absent: growing bins; the range is known before the first value is counted.

use super::Range;

/// Bins between the extremes. TensorRT and NVIDIA's tools use 2048 for absolute values; here both signs share them.
pub(super) const BINS: usize = 4096;

/// Counts of values.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    range: Range,
    counts: Vec<u64>,
    /// How many of the values are exactly zero.
    zeros: u64,
}

impl Histogram {
    pub(super) fn new(range: Range) -> Self {
        Histogram { range, counts: vec![0; BINS], zeros: 0 }
    }

    pub(super) fn range(&self) -> Range {
        self.range
    }

    /// Counts of the values that are not exactly zero.
    pub(super) fn without_zeros(&self) -> Vec<u64> {
        let mut counts = self.counts.clone();
        counts[self.bin(0.0)] -= self.zeros;
        counts
    }

    /// Width of a bin; zero for a range of nothing but zero.
    fn width(&self) -> f64 {
        (f64::from(self.range.most) - f64::from(self.range.least)) / BINS as f64
    }

    pub(super) fn add(&mut self, values: &[f32]) {
        for value in values {
            let bin = self.bin(*value);
            self.counts[bin] += 1;
            self.zeros += u64::from(*value == 0.0);
        }
    }

    /// The bin of a value; values beyond the range fall into the outermost bins.
    pub(super) fn bin(&self, value: f32) -> usize {
        let bin = (f64::from(value) - f64::from(self.range.least)) / self.width();
        // A conversion from float saturates, and NaN (0 / 0) becomes 0.
        (bin as usize).min(BINS - 1)
    }

    /// Where a bin begins.
    pub(super) fn edge(&self, bin: usize) -> f32 {
        (f64::from(self.range.least) + self.width() * bin as f64) as f32
    }

    /// The range of this share of all values, with as many left out at either end.
    pub(super) fn middle(&self, share: f64) -> Range {
        let total: u64 = self.counts.iter().sum();
        let outside = (total as f64 * (1.0 - share) / 2.0) as u64;
        let first = within(self.counts.iter(), outside);
        let last = BINS - within(self.counts.iter().rev(), outside);
        let (least, most) = (self.edge(first.min(last)), self.edge(last));
        Range::new(least.max(self.range.least), most.min(self.range.most))
    }
}

/// How many bins may be left out, so that no more than `outside` values are in them.
fn within<'a>(counts: impl Iterator<Item = &'a u64>, outside: u64) -> usize {
    let mut sum = 0;
    counts
        .take_while(|count| {
            sum += **count;
            sum <= outside
        })
        .count()
        .min(BINS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_bins() {
        let mut histogram = Histogram::new(Range::new(-1.0, 3.0));
        histogram.add(&[-1.0, -2.0, 3.0, 4.0, 0.0]);
        assert_eq!((histogram.counts[0], histogram.counts[BINS - 1], histogram.counts[BINS / 4]), (2, 2, 1));
        let counts = histogram.without_zeros();
        assert_eq!((counts[0], counts[BINS - 1], counts[BINS / 4]), (2, 2, 0));
        assert_eq!((histogram.edge(0), histogram.edge(BINS / 4), histogram.edge(BINS)), (-1.0, 0.0, 3.0));
    }

    #[test]
    fn the_middle_leaves_out_the_same_share_at_either_end() {
        let mut histogram = Histogram::new(Range::new(-4.0, 4.0));
        let values: Vec<f32> = (0..8192).map(|index| index as f32 / 1024.0 - 4.0).collect();
        histogram.add(&values);
        let range = histogram.middle(0.5);
        assert!((range.least + 2.0).abs() < 0.01 && (range.most - 2.0).abs() < 0.01, "{range:?}");
        assert_eq!(histogram.middle(1.0), Range::new(-4.0, 4.0));
    }

    #[test]
    fn one_side_may_hold_everything() {
        let mut histogram = Histogram::new(Range::new(0.0, 1.0));
        histogram.add(&[1.0; 10]);
        assert_eq!(histogram.middle(0.5), Range::new(0.0, 1.0));
        let empty = Histogram::new(Range::default());
        assert_eq!(empty.middle(0.9), Range::default());
    }
}
