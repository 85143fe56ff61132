//! A series of zeros and ones and its autocovariance in exact integers.
//!
//! Input: whether each sample is at most a quantile. Output: products at a lag, 64 at a time, and the autocovariance.
//! Deliberately absent: the sum over lags, which is `autocorrelation`'s.

/// A series of zeros and ones, 64 to a word.
pub(super) struct Indicator {
    length: usize,
    words: Vec<u64>,
    /// How many ones come before each word, and altogether.
    ones_before: Vec<u32>,
}

impl Indicator {
    /// Packs the series.
    pub(super) fn new(values: &[f64], is_one: impl Fn(f64) -> bool) -> Self {
        let pack = |values: &[f64]| values.iter().rev().fold(0, |word, value| (word << 1) | u64::from(is_one(*value)));
        let words: Vec<u64> = values.chunks(64).map(pack).collect();
        let mut ones_before = Vec::with_capacity(words.len() + 1);
        let mut ones = 0;
        ones_before.push(0);
        for word in &words {
            ones += word.count_ones();
            ones_before.push(ones);
        }
        Indicator { length: values.len(), words, ones_before }
    }

    /// How many ones come before an index.
    fn ones_before(&self, index: usize) -> u32 {
        let within = self.words.get(index / 64).map_or(0, |word| (word & ((1 << (index % 64)) - 1)).count_ones());
        self.ones_before[index / 64] + within
    }

    /// The series as zeros and ones.
    pub(super) fn to_numbers(&self) -> Vec<f64> {
        (0..self.length).map(|index| (self.words[index / 64] >> (index % 64) & 1) as f64).collect()
    }

    /// How often both values of a pair that is `lag` apart are one.
    pub(super) fn coincidences(&self, lag: usize) -> u64 {
        let shifted = &self.words[(lag / 64).min(self.words.len())..];
        let bits = lag % 64;
        let count = |(word, other): (&u64, u64)| u64::from((word & other).count_ones());
        if bits == 0 {
            return self.words.iter().zip(shifted.iter().copied()).map(count).sum();
        }
        let Some(last) = shifted.last() else { return 0 };
        let joined = shifted.windows(2).map(|pair| (pair[0] >> bits) | (pair[1] << (64 - bits)));
        self.words.iter().zip(joined.chain([last >> bits])).map(count).sum()
    }

    /// n^3 times the autocovariance at `lag`, of which only the final rounding to `f64` is not exact.
    pub(super) fn covariance(&self, lag: usize, coincidences: u64) -> f64 {
        let ones_before = |index: usize| i128::from(self.ones_before(index));
        let (n, ones) = (self.length as i128, ones_before(self.length));
        let in_front = ones_before(self.length - lag);
        let behind = ones - ones_before(lag);
        let pairs = n - lag as i128;
        (n * n * i128::from(coincidences) - n * ones * (in_front + behind) + pairs * ones * ones) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(series: &[bool]) -> Indicator {
        Indicator::new(&series.iter().map(|is_one| f64::from(u8::from(*is_one))).collect::<Vec<f64>>(), |value| {
            value > 0.5
        })
    }

    #[test]
    fn covariance_of_a_short_series_is_exact() {
        // Mean 2/3: deviations 1/3, -2/3, 1/3; sums of products 6/9, -4/9, 1/9; times n^2 = 9.
        let series = packed(&[true, false, true]);
        let covariances = [0, 1, 2].map(|lag| series.covariance(lag, series.coincidences(lag)));
        assert_eq!(covariances, [6.0, -4.0, 1.0]);
        assert_eq!(series.to_numbers(), [1.0, 0.0, 1.0]);
        assert_eq!(packed(&[]).coincidences(0), 0);
    }

    proptest! {
        #[test]
        fn packed_products_are_counts(series in prop::collection::vec(any::<bool>(), 1..300), lag in 0_usize..300) {
            prop_assume!(lag < series.len());
            let expected = series.iter().zip(&series[lag..]).filter(|(x, y)| **x && **y).count() as u64;
            let packed = packed(&series);
            prop_assert_eq!(packed.coincidences(lag), expected);
            let ones = series[..lag].iter().filter(|is_one| **is_one).count();
            prop_assert_eq!(packed.ones_before(lag) as usize, ones);
        }
    }
}
