//! Form of a range: whole numbers from one to another, by a factor or by a distance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scalar::LARGEST_DIMENSION;

/// Whole numbers in place of a list of them: `{ from: 1, to: 64, times: 2 }` is 1, 2, 4 ... 64, and
/// `{ from: 8, to: 32, plus: 8 }` is 8, 16, 24, 32. None is larger than `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "range")]
pub(crate) struct RangeForm {
    /// The first number.
    #[schemars(range(max = LARGEST_DIMENSION))]
    pub(crate) from: u64,
    /// No number is larger.
    #[schemars(range(max = LARGEST_DIMENSION))]
    pub(crate) to: u64,
    /// Each number is the one before, times this.
    #[schemars(range(min = 2, max = LARGEST_DIMENSION))]
    pub(crate) times: Option<u64>,
    /// Each number is the one before, plus this.
    #[schemars(range(min = 1, max = LARGEST_DIMENSION))]
    pub(crate) plus: Option<u64>,
}

/// What goes from a number to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Times(u64),
    Plus(u64),
}

/// Why a form is no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeError {
    /// Neither `times` nor `plus`.
    NoStep,
    /// Both.
    TwoSteps,
    /// `from` is more than `to`.
    Backwards,
    /// Nothing times anything.
    TimesZero,
}

impl RangeForm {
    /// How many numbers it has, none of which is made.
    pub(crate) fn count(&self) -> Result<u128, RangeError> {
        Ok(match self.step()? {
            Step::Plus(distance) => u128::from((self.to - self.from) / distance.max(1)) + 1,
            Step::Times(_) => self.numbers()?.count() as u128,
        })
    }

    /// The numbers, ascending.
    pub(crate) fn numbers(&self) -> Result<impl Iterator<Item = u64> + use<>, RangeError> {
        let (step, to) = (self.step()?, self.to);
        let next = move |number: &u64| match step {
            Step::Times(factor) => number.checked_mul(factor.max(2)),
            Step::Plus(distance) => number.checked_add(distance.max(1)),
        };
        Ok(std::iter::successors(Some(self.from), next).take_while(move |number| *number <= to))
    }

    fn step(&self) -> Result<Step, RangeError> {
        let step = match (self.times, self.plus) {
            (None, None) => return Err(RangeError::NoStep),
            (Some(_), Some(_)) => return Err(RangeError::TwoSteps),
            (Some(factor), None) => Step::Times(factor),
            (None, Some(distance)) => Step::Plus(distance),
        };
        match step {
            _ if self.from > self.to => Err(RangeError::Backwards),
            Step::Times(_) if self.from == 0 => Err(RangeError::TimesZero),
            step => Ok(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(from: u64, to: u64, times: Option<u64>, plus: Option<u64>) -> Result<Vec<u64>, RangeError> {
        RangeForm { from, to, times, plus }.numbers().map(Iterator::collect)
    }

    #[test]
    fn a_range_is_its_numbers() {
        assert_eq!(range(1, 64, Some(2), None), Ok(vec![1, 2, 4, 8, 16, 32, 64]));
        assert_eq!(range(1, 100, Some(10), None), Ok(vec![1, 10, 100]));
        assert_eq!(range(3, 20, Some(2), None), Ok(vec![3, 6, 12]));
        assert_eq!(range(8, 32, None, Some(8)), Ok(vec![8, 16, 24, 32]));
        assert_eq!(range(0, 5, None, Some(2)), Ok(vec![0, 2, 4]));
        assert_eq!(range(7, 7, Some(2), None), Ok(vec![7]));
    }

    #[test]
    fn what_is_no_range_says_why() {
        assert_eq!(range(1, 8, None, None), Err(RangeError::NoStep));
        assert_eq!(range(1, 8, Some(2), Some(2)), Err(RangeError::TwoSteps));
        assert_eq!(range(8, 1, Some(2), None), Err(RangeError::Backwards));
        assert_eq!(range(0, 8, Some(2), None), Err(RangeError::TimesZero));
    }

    proptest! {
        #[test]
        fn ranges_ascend_from_the_first_to_no_more_than_the_last(
            from in 0_u64..5_000, length in 0_u64..5_000, step in 1_u64..50, is_factor: bool,
        ) {
            prop_assume!(!is_factor || from > 0);
            let (times, plus) = if is_factor { (Some(step + 1), None) } else { (None, Some(step)) };
            let form = RangeForm { from, to: from + length, times, plus };
            let numbers: Vec<u64> = form.numbers().expect("a range").collect();
            prop_assert_eq!(numbers[0], from);
            prop_assert!(numbers.is_sorted_by(|one, next| one < next));
            let last = numbers[numbers.len() - 1];
            prop_assert!(last <= from + length);
            let next = if is_factor { last * (step + 1) } else { last + step };
            prop_assert!(next > from + length);
            prop_assert_eq!(form.count(), Ok(numbers.len() as u128));
        }

        #[test]
        fn no_bounds_are_too_large_to_count(from: u64, to: u64, step: u64, is_factor: bool) {
            let (times, plus) = if is_factor { (Some(step), None) } else { (None, Some(step)) };
            let count = RangeForm { from, to, times, plus }.count();
            prop_assert_eq!(count.is_ok(), from <= to && !(is_factor && from == 0));
        }
    }
}
