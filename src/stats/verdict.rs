//! The word for an interval against a margin (MEASUREMENT 6.1).
//!
//! Input: an interval of log ratios, positive when the candidate is worse, and the margin on the same scale. Output: one
//! of four words. Deliberately absent: p values; and a fifth word for "no significant difference", which is not sameness.

use serde::{Deserialize, Serialize};

use super::interval::Interval;

/// What the interval says against the margin. The four outcomes are disjoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies below the margin.
    Better,
    /// The whole interval lies above the margin.
    Worse,
    /// The whole interval lies within the margin.
    Equivalent,
    /// The interval crosses a margin, or there is none.
    Inconclusive,
}

impl Verdict {
    /// The verdict on an interval of log ratios, with a margin on the same scale.
    pub fn from_interval(interval: Interval, log_margin: f64) -> Self {
        if interval.low > log_margin {
            Verdict::Worse
        } else if interval.high < -log_margin {
            Verdict::Better
        } else if -log_margin < interval.low && interval.high < log_margin {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }

    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// The verdict with baseline and candidate swapped.
    pub fn swapped(self) -> Self {
        match self {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same @ (Verdict::Equivalent | Verdict::Inconclusive) => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_decide() {
        let verdict = |low, high| Verdict::from_interval(Interval { low, high }, 0.02);
        assert_eq!(verdict(0.021, 0.5), Verdict::Worse);
        assert_eq!(verdict(-0.5, -0.021), Verdict::Better);
        assert_eq!(verdict(-0.019, 0.019), Verdict::Equivalent);
        assert_eq!(verdict(-0.019, 0.021), Verdict::Inconclusive);
        // On the margin is neither beyond nor within it.
        assert_eq!(verdict(0.02, 0.5), Verdict::Inconclusive);
        assert_eq!(verdict(-0.02, 0.0), Verdict::Inconclusive);
        assert_eq!(verdict(f64::NAN, f64::NAN), Verdict::Inconclusive);
        assert_eq!(Verdict::from_interval(Interval { low: 0.0, high: 0.0 }, 0.0), Verdict::Inconclusive);
    }

    proptest! {
        #[test]
        fn mirrored_intervals_have_swapped_verdicts(center in -0.1_f64..0.1, half_width in 0.0_f64..0.1) {
            let verdict = Verdict::from_interval(Interval::around(center, half_width), 0.02);
            prop_assert_eq!(Verdict::from_interval(Interval::around(-center, half_width), 0.02), verdict.swapped());
        }
    }
}
