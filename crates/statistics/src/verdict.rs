//! The word for an interval against a margin: which words there are, when each is given, and what it claims.
//!
//! Input: an interval of log ratios, positive when the candidate is worse, and the margin on the same scale. Output: one
//! of four words. Whoever acts on a verdict asks what it claims, so that another word is a row here. Deliberately
//! absent: p values; and a fifth word for "no significant difference", which is not sameness.

use serde::{Deserialize, Serialize};

use super::interval::Interval;

/// What the interval says against the margin. The four outcomes are disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies below the margin.
    Better,
    /// The whole interval lies above the margin.
    Worse,
    /// The whole interval lies within the margin.
    Equivalent,
    /// The interval crosses a margin, or there is none.
    #[default]
    #[serde(alias = "inconclusive")]
    Undecided,
}

/// What a verdict claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A difference beyond the margin, to one side.
    Difference,
    /// That no difference exceeds the margin.
    Sameness,
    /// Nothing; a hint says what would help.
    Nothing,
}

/// All that is known of a verdict by itself.
struct Row {
    /// The stored word, and the one in tables where no metric has a better one.
    name: &'static str,
    /// What stands between it and the other side: `better than`, `equivalent to`.
    preposition: &'static str,
    claim: Claim,
    /// The verdict with baseline and candidate swapped.
    swapped: Verdict,
}

impl Verdict {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Verdict; 4] = [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Undecided];

    /// The verdict on an interval of log ratios, with a margin on the same scale.
    pub fn from_interval(interval: impl Into<Option<Interval>>, log_margin: f64) -> Self {
        let Some(interval) = interval.into() else { return Verdict::Undecided };
        if interval.low > log_margin {
            Verdict::Worse
        } else if interval.high < -log_margin {
            Verdict::Better
        } else if -log_margin < interval.low && interval.high < log_margin {
            Verdict::Equivalent
        } else {
            Verdict::Undecided
        }
    }

    /// The verdict on a difference without noise, such as of files' sizes, positive when the candidate is worse.
    pub fn exact(worse_by: f64, margin: f64) -> Self {
        if worse_by > margin {
            Verdict::Worse
        } else if -worse_by > margin {
            Verdict::Better
        } else if worse_by.abs() <= margin {
            Verdict::Equivalent
        } else {
            Verdict::Undecided
        }
    }

    const fn row(self) -> Row {
        use Claim::{Difference, Nothing, Sameness};
        let (name, preposition, claim, swapped) = match self {
            Verdict::Better => ("better", "than", Difference, Verdict::Worse),
            Verdict::Worse => ("worse", "than", Difference, Verdict::Better),
            Verdict::Equivalent => ("equivalent", "to", Sameness, Verdict::Equivalent),
            Verdict::Undecided => ("undecided", "against", Nothing, Verdict::Undecided),
        };
        Row { name, preposition, claim, swapped }
    }

    /// The stored words, as a list in a sentence of the reference.
    pub fn listed() -> String {
        Self::ALL.map(|verdict| format!("`{}`", verdict.name())).join(", ")
    }

    /// The stored word.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What stands between the word and the other side.
    pub fn preposition(self) -> &'static str {
        self.row().preposition
    }

    /// The verdict with baseline and candidate swapped.
    pub fn swapped(self) -> Self {
        self.row().swapped
    }

    /// What it claims.
    pub fn claim(self) -> Claim {
        self.row().claim
    }

    /// It claims that the candidate is better.
    pub fn is_improvement(self) -> bool {
        self == Verdict::Better
    }

    /// It claims that the candidate is worse.
    pub fn is_regression(self) -> bool {
        self == Verdict::Worse
    }

    /// It claims that no difference exceeds the margin.
    pub fn is_equivalent(self) -> bool {
        self.claim() == Claim::Sameness
    }

    /// It claims a difference, to whichever side.
    pub fn is_difference(self) -> bool {
        self.claim() == Claim::Difference
    }

    /// It claims nothing.
    pub fn is_open(self) -> bool {
        self.claim() == Claim::Nothing
    }

    /// It claims that the candidate is worse by no more than the margin.
    pub fn is_no_worse(self) -> bool {
        self.is_improvement() || self.is_equivalent()
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
        assert_eq!(verdict(-0.019, 0.021), Verdict::Undecided);
        // On the margin is neither beyond nor within it.
        assert_eq!(verdict(0.02, 0.5), Verdict::Undecided);
        assert_eq!(verdict(-0.02, 0.0), Verdict::Undecided);
        assert_eq!(verdict(f64::NAN, f64::NAN), Verdict::Undecided);
        assert_eq!(Verdict::from_interval(Interval { low: 0.0, high: 0.0 }, 0.0), Verdict::Undecided);
    }

    #[test]
    fn exact_differences_need_no_interval() {
        let verdicts = [1.0, 0.5, -0.5, -1.0].map(|worse_by| Verdict::exact(worse_by, 0.5));
        assert_eq!(verdicts, [Verdict::Worse, Verdict::Equivalent, Verdict::Equivalent, Verdict::Better]);
        assert_eq!(Verdict::exact(0.0, 0.0), Verdict::Equivalent);
        assert_eq!(Verdict::exact(f64::NAN, 0.5), Verdict::Undecided);
    }

    #[test]
    fn rows_agree_with_each_other() {
        for verdict in Verdict::ALL {
            assert_eq!(
                serde_json::to_value(verdict).ok().as_ref().and_then(|word| word.as_str()),
                Some(verdict.name())
            );
            assert_eq!((verdict.swapped().swapped(), verdict.swapped().claim()), (verdict, verdict.claim()));
        }
        assert_eq!(Verdict::ALL.map(Verdict::is_no_worse), [true, false, true, false]);
    }

    proptest! {
        #[test]
        fn mirrored_intervals_have_swapped_verdicts(center in -0.1_f64..0.1, half_width in 0.0_f64..0.1) {
            let verdict = Verdict::from_interval(Interval::around(center, half_width), 0.02);
            prop_assert_eq!(Verdict::from_interval(Interval::around(-center, half_width), 0.02), verdict.swapped());
            prop_assert_eq!(Verdict::exact(-center, half_width), Verdict::exact(center, half_width).swapped());
        }
    }
}
