//! Every code that a run, a cell, a record, a control or numbers given to `perfrun stat` can carry: when it is raised,
//! how much it weighs, what it does to the number, what to do about it.
//!
//! Input: a code. Output: its text. Each level decides its codes in one place: runs in `run::codes`, cells in
//! `judge::summary::findings`, records in `machine::probe::check`, controls in `judge::compare::control`, numbers in
//! `judge::stat::symptoms`; a test next to each proves that it raises the codes that the table gives it, and no other.
//! Deliberately absent: what a record of another version calls by a name that this table lacks; it is read and shown by
//! that name.

mod words;

/// The enum of codes and their texts, from one row for each.
macro_rules! codes {
    ($($code:ident, $name:literal, $severity:ident, [$($carrier:ident),+] {
        seen: $seen:expr,
        effect: $effect:expr,
        remedy: $remedy:expr,
        $(stat: $stat:expr,)?
    })+) => {
        /// Something that a reader of a number should know; stored by its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = concat!("`", $name, "`")] $code,)+
        }

        impl Code {
            /// All of them, the gravest first.
            pub const ALL: &'static [Code] = &[$(Code::$code),+];

            /// The stored name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)+
                }
            }

            /// How much it weighs.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$code => $severity,)+
                }
            }

            /// What can carry it.
            pub const fn carriers(self) -> &'static [Carrier] {
                match self {
                    $(Code::$code => &[$($carrier),+],)+
                }
            }

            /// The code in plain words.
            pub fn text(self) -> &'static CodeText {
                static TEXTS: LazyLock<Vec<CodeText>> = LazyLock::new(|| vec![$(CodeText {
                    code: Code::$code,
                    severity: Code::$code.severity(),
                    meaning: String::from($seen),
                    effect: String::from($effect),
                    remedy: String::from($remedy),
                    stat: None$(.or(Some(String::from($stat))))?,
                }),+]);
                &TEXTS[self as usize]
            }
        }
    };
}

mod table;

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize, Serializer};

use words::capital;

pub use table::{
    BIASED, BUSY_MACHINE, CPU_SHARE_JUDGED, CPU_SHARE_REPORTED, Code, LIMITS, NOISY_STEAL, RUNS_APART, SLOW_CLOCK_NS,
};
pub use words::{part, percent, spelt};

/// How much a code weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Information; shown in the details.
    Info,
    /// The number may be unreliable.
    Warn,
    /// No verdict should rest on it.
    Block,
    /// The value must not be used.
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

    /// What a code of this weight means for a reader, a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Severity::Info => "Information; shown in the details.",
            Severity::Warn => "The number may be unreliable.",
            Severity::Block => "Verdicts that depend on it become undecided.",
            Severity::Invalid => "The value must not be used.",
        }
    }

    /// All of them, the gravest first.
    pub const ALL: [Severity; 4] = [Severity::Invalid, Severity::Block, Severity::Warn, Severity::Info];
}

/// What carries a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A run of a cell.
    Run,
    /// A cell as a whole.
    Cell,
    /// The whole record: the machine when it began.
    Record,
    /// An A/A comparison.
    Control,
    /// Numbers that were given to `perfrun stat`.
    Stat,
}

impl Carrier {
    /// The word in the reference.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Run => "runs",
            Carrier::Cell => "cells",
            Carrier::Record => "records",
            Carrier::Control => "controls",
            Carrier::Stat => "numbers in `perfrun stat`",
        }
    }

    /// The codes that it can carry, the gravest first.
    pub fn codes(self) -> impl Iterator<Item = Code> {
        Code::ALL.iter().copied().filter(move |code| code.carriers().contains(&self))
    }
}

/// A code in plain words; each text is one or two sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeText {
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// What was seen.
    pub meaning: String,
    /// What that does to the number or to the verdict.
    pub effect: String,
    /// What to do about it.
    pub remedy: String,
    /// What was seen in numbers that were given to `perfrun stat`, a fragment; `None` where they cannot carry it.
    #[serde(skip)]
    pub stat: Option<String>,
}

impl Code {
    /// Whether it says that something outside disturbed a run; one line names the cause of all of these.
    pub fn is_disturbance(self) -> bool {
        table::DISTURBANCES.contains(&self)
    }

    /// Whether a single run that carries it is enough for its cell to carry it: what it says is of the outputs or of the
    /// clock, which a trimmed mean (25 %) cannot leave out.
    pub fn holds_for_one_run(self) -> bool {
        self.severity() == Severity::Invalid || self == Code::NondeterministicOutput
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// By name, as codes stand in files.
impl Ord for Code {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for Code {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A stored code is compared by its name, since it may be one of another version.
impl PartialEq<Code> for str {
    fn eq(&self, other: &Code) -> bool {
        self == other.name()
    }
}

impl PartialEq<Code> for String {
    fn eq(&self, other: &Code) -> bool {
        self == other.name()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> String {
        code.name().to_owned()
    }
}

/// The code of this name; `None` for one of another version.
pub fn by_name(name: &str) -> Option<Code> {
    Code::ALL.iter().copied().find(|code| code.name() == name)
}

/// How much the code of this name weighs; one of another version counts as a warning.
pub fn severity(name: &str) -> Severity {
    by_name(name).map_or(Severity::Warn, Code::severity)
}

/// Whether the code of this name says that something outside disturbed a run.
pub fn is_disturbance(name: &str) -> bool {
    by_name(name).is_some_and(Code::is_disturbance)
}

/// Whether a code that is stored with a run is one that runs carry; one of a later version counts. Earlier versions stored
/// codes for the shape of samples, which are columns now.
pub fn is_of_runs(name: &str) -> bool {
    match by_name(name) {
        Some(code) => code.carriers().contains(&Carrier::Run),
        None => !table::RETIRED.contains(&name),
    }
}

/// Where the code of this name stands among all, the gravest first; those of another version come last.
pub fn rank(name: &str) -> usize {
    Code::ALL.iter().position(|code| code.name() == name).unwrap_or(Code::ALL.len())
}

/// The reference of all codes: `docs/reference/codes.md`.
pub fn reference_markdown() -> String {
    let mut text = String::from(concat!(
        "# Codes\n\n",
        "<!-- Generated from the table by `base::code::reference_markdown`; a test keeps it current. -->\n\n",
        "A code marks something that a reader of a number should know.\n",
        "A code never removes data; it is stored with its run, and counted.\n",
        "A cell carries a code of its runs if more than a quarter of them do; the 25 % trimmed mean leaves out fewer than that.\n",
        "For codes about outputs and the clock, a single run is enough.\n",
        "Disturbances from outside are summarised by cause in one line above the tables.\n",
        "`perfrun explain CODE` prints an entry of this page.\n",
    ));
    for severity in Severity::ALL {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n## {}\n\n{}\n", capital(severity.name()), severity.meaning());
        for code in Code::ALL.iter().filter(|code| code.severity() == severity) {
            let CodeText { meaning, effect, remedy, .. } = code.text();
            let carriers: Vec<&str> = code.carriers().iter().map(|carrier| carrier.name()).collect();
            let carriers = carriers.join(", ");
            let _ = write!(
                text,
                "\n### {code}\n\n{meaning}\n\n- Carried by: {carriers}\n- Effect: {effect}\n- What to do: {remedy}\n"
            );
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_one_row_and_a_name_of_its_own() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!((*code as usize, code.text().code, by_name(code.name())), (index, *code, Some(*code)), "{code}");
        }
        assert_eq!(Code::ALL.iter().collect::<BTreeSet<_>>().len(), Code::ALL.len(), "a name stands there twice");
        let is_word = |c: char| c == '_' || c.is_ascii_uppercase();
        assert!(Code::ALL.iter().all(|code| code.name().chars().all(is_word)));
    }

    #[test]
    fn texts_are_sentences_and_the_gravest_come_first() {
        for code in Code::ALL {
            let CodeText { meaning, effect, remedy, stat, .. } = code.text();
            for text in [meaning, effect, remedy] {
                assert!(text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || c == '`'), "{text}");
            }
            assert_eq!(stat.is_some(), code.carriers().contains(&Carrier::Stat), "{code}");
        }
        assert!(Code::ALL.windows(2).all(|pair| pair[0].severity() >= pair[1].severity()));
        assert!(rank("E_AA_FAILED") < rank("W_DRIFT") && rank("W_DRIFT") < rank("of another version"));
    }

    /// A record may name a code that this version does not raise.
    #[test]
    fn a_code_of_another_version_is_a_warning_and_comes_last() {
        for name in ["W_SMALL", "E_OF_LATER"] {
            assert_eq!((by_name(name), severity(name), rank(name)), (None, Severity::Warn, Code::ALL.len()));
        }
        assert!(*"W_DRIFT" == Code::Drift && *"W_SMALL" != Code::Drift);
    }

    /// Records of earlier versions hold codes for the shape of samples.
    #[test]
    fn codes_that_runs_no_longer_carry_are_not_taken_for_those_of_a_later_version() {
        for name in ["W_OUTLIERS", "W_SKEWED", "W_DRIFT", "W_WARMUP_TREND", "W_PRECISION_NOT_REACHED", "W_FEW_RUNS"] {
            assert!(!is_of_runs(name), "{name}");
        }
        assert!(["W_STEAL", "W_NO_STEADY_STATE", "W_OF_LATER"].iter().all(|name| is_of_runs(name)));
        assert!(table::RETIRED.iter().all(|name| by_name(name).is_none()), "a name is used again");
    }

    #[test]
    fn what_disturbs_runs_follows_a_metric_of_the_environment() {
        for code in table::DISTURBANCES {
            assert!(LIMITS.iter().any(|(_, _, other)| *other == code), "{code}");
        }
    }

    #[test]
    fn no_code_is_written_as_a_text_outside_of_the_table() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let sources = ["src", "crates"].into_iter().flat_map(|folder| walkdir::WalkDir::new(root.join(folder)));
        for file in sources.filter_map(Result::ok).map(walkdir::DirEntry::into_path) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let code = text.split("\nmod tests {").next().unwrap_or_default();
            let may_name =
                file.ends_with("tests.rs") || file.parent().is_some_and(|folder| folder.ends_with("base/src/code"));
            let quoted =
                code.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| line.split('"'));
            for name in quoted.filter(|part| by_name(part).is_some()) {
                assert!(may_name, "{} writes \"{name}\" in place of its variant", file.display());
            }
        }
    }
}
