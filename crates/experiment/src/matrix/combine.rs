//! Which combinations of lists there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which combinations there are: of the axes in the matrix, or of the lists of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "combinations")]
pub enum Combine {
    /// Every combination.
    #[default]
    Product,
    /// For each model the baseline, and what differs from it in one axis, or in one list of an entry, alone. The baseline
    /// is what `compare.baseline` names, else the first entry of everything.
    OneAtATime,
}

impl Combine {
    pub fn is_product(&self) -> bool {
        *self == Combine::Product
    }

    /// Whether a combination is one of them that differs from the first in so many lists.
    pub fn has(self, differences: usize) -> bool {
        match self {
            Combine::Product => true,
            Combine::OneAtATime => differences <= 1,
        }
    }

    /// How many combinations lists of these lengths have.
    pub fn count(self, mut lengths: impl Iterator<Item = u128>) -> u128 {
        match self {
            Combine::Product => lengths.fold(1, u128::saturating_mul),
            Combine::OneAtATime => lengths
                .try_fold(1_u128, |count, length| Some(count.saturating_add(length.checked_sub(1)?)))
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_is_a_sum() {
        let count = |combine: Combine, lengths: &[u128]| combine.count(lengths.iter().copied());
        assert_eq!(count(Combine::Product, &[3, 4, 1]), 12);
        assert_eq!(count(Combine::OneAtATime, &[3, 4, 1]), 6);
        assert_eq!(count(Combine::OneAtATime, &[]), 1);
        // An empty list leaves nothing.
        assert_eq!([Combine::Product, Combine::OneAtATime].map(|combine| count(combine, &[3, 0])), [0, 0]);
    }
}
