//! What each warning code means and what to do about it (MEASUREMENT 14).
//!
//! The codes are set where a run is stored (`run/finish.rs`); a test keeps this table complete.

/// How much a warning weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// The number beside it deserves doubt.
    Warn,
    /// No verdict should rest on it.
    Block,
    /// The value is not to be used.
    Invalid,
}

impl Severity {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warn => "warning",
            Severity::Block => "grave",
            Severity::Invalid => "invalid",
        }
    }
}

/// A warning code in plain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarningText {
    /// The stored code.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What was seen, a sentence.
    pub meaning: &'static str,
    /// What to do, a sentence.
    pub remedy: &'static str,
}

use Severity::{Block, Info, Invalid, Warn};

const fn text(code: &'static str, severity: Severity, meaning: &'static str, remedy: &'static str) -> WarningText {
    WarningText { code, severity, meaning, remedy }
}

/// Every code that a stored run can carry, the gravest first.
pub const WARNINGS: &[WarningText] = &[
    text(
        "W_OUTPUT_NONFINITE",
        Invalid,
        "An output holds NaN or infinity: the work that was timed may not be the work that was wanted.",
        "Do not use these times; look at the model and its inputs.",
    ),
    text(
        "W_NO_STEADY_STATE",
        Block,
        "The duration still changed in the second half of the samples: there is no steady state to report.",
        "Raise `measure.warmup.max_time` or `measure.stop.max_time`, and look for other load on the machine.",
    ),
    text(
        "W_WARMUP_TREND",
        Warn,
        "The duration still changed when the time for warming up was over.",
        "Raise `measure.warmup.max_time`.",
    ),
    text(
        "W_LATE_WARMUP",
        Warn,
        "The first counted samples were slower than the rest; they are stored, but left out of the statistics.",
        "Nothing if it is rare; otherwise raise `measure.warmup.min_time`.",
    ),
    text(
        "W_DRIFT",
        Warn,
        "The second half of the samples differs from the first by more than 1 %: the machine or the model changed meanwhile.",
        "Look at clock speed, temperature and other load; `perfrun doctor` shows them.",
    ),
    text(
        "W_PRECISION_NOT_REACHED",
        Warn,
        "The time limit came before the precision that was asked for.",
        "Nothing if the interval over runs is narrow enough; otherwise raise `measure.stop.max_time`.",
    ),
    text(
        "W_CLOCK_SLOW",
        Warn,
        "Reading the clock takes more than 200 ns, so short samples are doubtful.",
        "Use a machine whose kernel reads the time from the processor (clock source `tsc`).",
    ),
    text(
        "W_NONDETERMINISTIC_OUTPUT",
        Info,
        "The same input gave other outputs after the last sample than after the first.",
        "Expected for models that draw random numbers; otherwise look at the order of reductions.",
    ),
];

/// The text of a code; an unknown one (from a later version) stands for itself.
pub fn warning_text(code: &str) -> Option<&'static WarningText> {
    WARNINGS.iter().find(|warning| warning.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_that_a_run_can_carry_has_a_text() {
        let source = include_str!("../run/finish.rs");
        let quoted = source.split('"').skip(1).step_by(2);
        for code in quoted.filter(|text| text.starts_with("W_") || text.starts_with("E_")) {
            assert!(warning_text(code).is_some(), "{code} has no text in WARNINGS");
        }
    }

    #[test]
    fn texts_are_sentences_and_the_gravest_come_first() {
        for warning in WARNINGS {
            assert!(warning.meaning.ends_with('.') && warning.remedy.ends_with('.'), "{}", warning.code);
        }
        assert!(WARNINGS.windows(2).all(|pair| pair[0].severity >= pair[1].severity));
    }
}
