//! The files that a report consists of: each format in a file of its own, and one list of them.
//!
//! A format says what it is called and what it is made from; nothing is made that nobody asked for. The command line, its
//! help and the defaults take their words from the list.

mod bencher;
mod csv;
mod github_benchmark;
mod html;
mod json;
pub(crate) mod junit;
mod latex;
mod markdown;
mod parquet;

use std::fmt;

use super::ReportError;
use crate::results::Results;

/// Every format, the ones to read first first.
static FORMATS: &[&dyn ReportFormat] = &[
    &markdown::Markdown,
    &html::Html,
    &json::Json,
    &csv::Csv,
    &parquet::Parquet,
    &latex::Latex,
    &junit::Junit,
    &bencher::Bencher,
    &github_benchmark::GithubBenchmark,
];

/// A kind of file that a report can consist of.
trait ReportFormat: Sync {
    /// What is typed after `--format`.
    fn name(&self) -> &'static str;

    /// Name of the file in the folder of a report.
    fn file(&self) -> &'static str;

    /// What the file is, for the help: a fragment.
    fn meaning(&self) -> &'static str;

    /// What it is made from, and how.
    fn source(&self) -> Source;

    /// Whether it is made where nobody names a format.
    fn is_default(&self) -> bool {
        false
    }

    /// Whether it is made whatever is asked for.
    fn is_always_made(&self) -> bool {
        false
    }

    /// Whether it points to figures in files beside it, which are then written too.
    fn shows_figures(&self) -> bool {
        false
    }
}

/// What a format is made from, and how.
pub(super) enum Source {
    /// The results.
    Results(fn(&Results) -> Result<Vec<u8>, ReportError>),
    /// What people read, filled into a template: its name, which decides how values are escaped, and its text.
    Template(&'static str, &'static str),
}

/// A file format of a report.
#[derive(Clone, Copy)]
pub struct Format(&'static dyn ReportFormat);

impl Format {
    /// Every format, the ones to read first first.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().copied().map(Format)
    }

    /// Those that are made where nobody names any.
    pub fn defaults() -> impl Iterator<Item = Format> {
        Format::all().filter(|format| format.0.is_default())
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::all().find(|format| format.name() == name)
    }

    /// What is typed after `--format`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Name of its file in the folder of a report.
    pub fn file(self) -> &'static str {
        self.0.file()
    }

    /// What the file is, a fragment.
    pub fn meaning(self) -> &'static str {
        self.0.meaning()
    }

    /// Whether it shows distributions and samples over time, which results alone do not have.
    pub(crate) fn has_figures_of_samples(self) -> bool {
        self.file() == "report.html"
    }

    pub(super) fn is_always_made(self) -> bool {
        self.0.is_always_made()
    }

    pub(super) fn shows_figures(self) -> bool {
        self.0.shows_figures()
    }

    pub(super) fn source(self) -> Source {
        self.0.source()
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_files_are_unique() {
        let unique = |of: fn(Format) -> &'static str| Format::all().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!((unique(Format::name), unique(Format::file)), (FORMATS.len(), FORMATS.len()));
        assert!(Format::all().all(|format| Format::named(format.name()) == Some(format)));
    }

    #[test]
    fn the_help_says_what_the_file_is_called() {
        assert!(Format::all().all(|format| format.meaning().starts_with(format.file())));
    }
}
