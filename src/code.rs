//! Every code that a run, a cell or a record can carry: what was seen, what it does to the number, what to do about it
//! (MEASUREMENT 14).
//!
//! Input: a code. Output: its text. The codes are set where runs are stored (`run::finish`) and summed up (`summary`);
//! reports, `perfrun explain` and the reference take their words from here. Deliberately absent: thresholds, which stand
//! where the codes are set.

mod table;

use std::fmt::Write as _;

use serde::Serialize;

pub use table::CODES;

/// How much a code weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know; shown in details.
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

    /// What a code of this weight means for a reader, a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Severity::Info => "Good to know; shown in details.",
            Severity::Warn => "The number beside it deserves doubt.",
            Severity::Block => "The verdicts that rest on it become inconclusive.",
            Severity::Invalid => "The value is not to be used.",
        }
    }

    /// All of them, the gravest first.
    pub const ALL: [Severity; 4] = [Severity::Invalid, Severity::Block, Severity::Warn, Severity::Info];
}

/// A code in plain words; each text is one or two sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// The stored code.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What was seen.
    pub meaning: &'static str,
    /// What that does to the number or to the verdict.
    pub effect: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

/// The text of a code; `None` for one of a later version.
pub fn by_name(code: &str) -> Option<&'static Code> {
    CODES.iter().find(|known| known.code == code)
}

/// Where a code stands among all, the gravest first; codes of a later version come last.
pub fn rank(code: &str) -> usize {
    CODES.iter().position(|known| known.code == code).unwrap_or(CODES.len())
}

/// The reference of all codes: `docs/reference/codes.md`.
pub fn reference_markdown() -> String {
    let mut text = String::from(concat!(
        "# Codes\n\n",
        "<!-- Generated from the table by `perfrun::code::reference_markdown`; a test keeps it current. -->\n\n",
        "A code says that something was seen which a reader of a number should know.\n",
        "Nothing is ever dropped because of a code: it is stored with its run, counted and shown.\n",
        "`perfrun explain CODE` prints an entry of this page.\n",
    ));
    for severity in Severity::ALL {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n## {}\n\n{}\n", capital(severity.name()), severity.meaning());
        for code in CODES.iter().filter(|code| code.severity == severity) {
            let Code { code, meaning, effect, remedy, .. } = code;
            let _ = write!(text, "\n### {code}\n\n{meaning}\n\n- Effect: {effect}\n- What to do: {remedy}\n");
        }
    }
    text
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// MEASUREMENT 14, by severity.
    const SPECIFIED: [(Severity, &str); 4] = [
        (
            Severity::Info,
            "W_MULTIMODAL W_SKEWED W_OUTLIERS W_NONDETERMINISTIC_OUTPUT W_GOVERNOR W_GPU_PERSISTENCE W_ASLR_OFF",
        ),
        (
            Severity::Warn,
            "W_CLOCK_SLOW W_CPU_FALLBACK W_WARMUP_TREND W_LATE_WARMUP W_DRIFT W_PRECISION_NOT_REACHED \
             W_FIRST_SAMPLE_SLOW W_NOISY W_BIMODAL_RUNS W_FREQ_DRIFT W_SMT_SHARED W_CPU_THROTTLED W_LOAD W_PRESSURE \
             W_STEAL W_PREEMPTED W_QUOTA W_CGROUP_THROTTLED W_SWAP W_NUMA_SPAN W_GPU_THROTTLED W_GPU_CLOCKS \
             W_GPU_SHARED W_AUTOCORRELATED_TAIL W_NON_MONOTONE_LOAD W_LITTLE W_AA_BIAS",
        ),
        (Severity::Block, "W_FEW_RUNS W_NO_STEADY_STATE W_CLOCK_EXPLAINS E_AA_FAILED"),
        (Severity::Invalid, "W_COLD_UNRESOLVED W_OUTPUT_NONFINITE E_ISSUE_LAG"),
    ];

    #[test]
    fn every_code_of_the_specification_is_there_with_its_severity_and_no_other() {
        let mut specified = BTreeSet::new();
        for (severity, codes) in SPECIFIED {
            for code in codes.split_whitespace() {
                assert_eq!(by_name(code).map(|code| code.severity), Some(severity), "{code}");
                specified.insert(code);
            }
        }
        assert_eq!(CODES.iter().map(|code| code.code).collect::<BTreeSet<_>>(), specified);
        assert_eq!(CODES.len(), specified.len(), "a code stands there twice");
    }

    #[test]
    fn every_code_that_the_program_names_has_a_text() {
        let sources = walkdir::WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let mut named = 0;
        for file in sources.into_iter().map(|entry| entry.unwrap().into_path()).filter(|path| path.is_file()) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let quoted = code.split('"').filter(|part| part.starts_with("W_") || part.starts_with("E_"));
            let is_code = |part: &&str| part.len() > 3 && part.bytes().all(|b| b == b'_' || b.is_ascii_uppercase());
            for code in quoted.filter(is_code) {
                assert!(by_name(code).is_some(), "{} names {code}, which has no text", file.display());
                named += 1;
            }
        }
        assert!(named > CODES.len());
    }

    #[test]
    fn texts_are_sentences_and_the_gravest_come_first() {
        for code in CODES {
            for text in [code.meaning, code.effect, code.remedy] {
                assert!(text.ends_with('.') && text.starts_with(|c: char| c.is_uppercase() || c == '`'), "{text}");
            }
        }
        assert!(CODES.windows(2).all(|pair| pair[0].severity >= pair[1].severity));
        assert!(rank("E_AA_FAILED") < rank("W_DRIFT") && rank("W_DRIFT") < rank("of a later version"));
    }
}
