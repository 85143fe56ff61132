//! Why a spec cannot be used: it cannot be read, or it has problems.
//!
//! Input: a path and what the system says, or problems. Output: [`SpecError`]. All of it is the user's to mend (exit
//! code 2). Deliberately absent: how a single problem is worded.

use std::fmt;
use std::path::PathBuf;

use miette::Diagnostic;

use super::problem::{MOST_PROBLEMS, Problem};

/// More problems than this are counted, not shown: they have one cause, or the file is no spec.
const MOST_SHOWN: usize = 50;

/// Every problem of one spec, in the order of the text.
#[derive(Clone, Debug)]
pub struct InvalidSpecError {
    file: String,
    problems: Vec<Problem>,
    omitted: usize,
}

impl InvalidSpecError {
    /// Sorts by place, the file before the command line, and keeps the first [`MOST_SHOWN`].
    pub(super) fn new(file: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(Problem::order);
        problems.dedup_by(|a, b| a.message == b.message && a.order() == b.order());
        let omitted = problems.len().saturating_sub(MOST_SHOWN);
        problems.truncate(MOST_SHOWN);
        InvalidSpecError { file: file.to_owned(), problems, omitted }
    }

    /// The problems, at most fifty.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many were found, with those that are not kept. After two hundred no more are looked for.
    pub fn count(&self) -> usize {
        self.problems.len() + self.omitted
    }
}

impl fmt::Display for InvalidSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            1 => write!(f, "{} has 1 problem", self.file),
            count if count >= MOST_PROBLEMS => {
                write!(f, "{} has {MOST_PROBLEMS} problems or more; the first {MOST_SHOWN} are shown", self.file)
            }
            count if self.omitted > 0 => {
                write!(f, "{} has {count} problems; the first {MOST_SHOWN} are shown", self.file)
            }
            count => write!(f, "{} has {count} problems", self.file),
        }
    }
}

impl std::error::Error for InvalidSpecError {}

impl Diagnostic for InvalidSpecError {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// Why a spec cannot be used. Every variant is the user's to mend (exit code 2).
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SpecError {
    #[error("there is no file `{}`", path.display())]
    Missing {
        path: PathBuf,
        #[help]
        hint: Option<String>,
    },
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// Larger than any spec; it was not read.
    #[error("`{}` is larger than {limit_mib} MiB, the limit for a spec", path.display())]
    #[diagnostic(help("a spec names models and data; it does not hold them"))]
    TooLarge { path: PathBuf, limit_mib: u64 },
    #[error("`{}` is not UTF-8: byte {byte:#04x} at line {line}, column {column}", path.display())]
    #[diagnostic(help("save the file as UTF-8"))]
    NotUtf8 {
        path: PathBuf,
        byte: u8,
        /// Its line, from 1.
        line: usize,
        /// Its column, from 1, in characters.
        column: usize,
    },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Invalid(#[from] InvalidSpecError),
}

impl SpecError {
    /// The problems inside the file; empty where it could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            SpecError::Invalid(invalid) => invalid.problems(),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Sources, Span};

    #[test]
    fn many_problems_are_counted() {
        let sources = Sources::new("x.yaml", &"x\n".repeat(60));
        let problems =
            (0..60).map(|line| sources.problem(Span { source: 0, start: 2 * line, end: 2 * line + 1 }, "no"));
        let invalid = InvalidSpecError::new("x.yaml", problems.collect());
        assert_eq!(invalid.to_string(), "x.yaml has 60 problems; the first 50 are shown");
        assert_eq!(invalid.problems().len(), 50);
    }
}
