//! Aggregates of many numbers, as polars computes them.

use polars::prelude::*;

/// Numbers, and what polars says of them.
#[derive(Debug)]
pub struct Numbers(Float64Chunked);

impl From<Vec<f64>> for Numbers {
    fn from(numbers: Vec<f64>) -> Self {
        Numbers(Float64Chunked::from_vec(PlSmallStr::EMPTY, numbers))
    }
}

impl Numbers {
    /// The numbers themselves.
    pub fn as_slice(&self) -> &[f64] {
        self.0.cont_slice().expect("one vector without gaps")
    }

    /// Their arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        self.0.mean()
    }

    /// Their standard deviation (n - 1); none below two values.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.0.std(1)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statistics::moments::{mean, standard_deviation};

    proptest! {
        /// polars and perfrun's own functions mean the same by the same words.
        #[test]
        fn aggregates_are_those_of_the_statistics(values in proptest::collection::vec(1.0_f64..1e9, 0..40)) {
            let numbers = Numbers::from(values.clone());
            let near = |found: Option<f64>, expected: Option<f64>| match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                (found, expected) => found == expected,
            };
            prop_assert!(near(numbers.standard_deviation(), standard_deviation(&values)));
            prop_assert!(near(numbers.mean(), mean(&values)));
        }
    }
}
