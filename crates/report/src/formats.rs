//! The files that a report consists of, in one list: the command line, its help and the defaults take their words from it.

use std::fmt;

use super::ReportError;
use judge::results::{self, Results, tidy};
use table::TableError;

/// A file format of a report.
#[derive(Clone, Copy)]
pub struct Format {
    /// What is typed after `--format`.
    pub name: &'static str,
    /// Name of the file in the folder of a report.
    pub file: &'static str,
    /// What the file is, for the help: a fragment that begins with the file's name.
    pub meaning: &'static str,
    pub(super) source: Source,
    when: When,
}

/// What a format is made from, and how.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Results(fn(&Results) -> Result<Vec<u8>, ReportError>),
    /// What people read, filled into a template: its name, which decides how values are escaped, and its text.
    Template(&'static str, &'static str),
}

/// When a format is made.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// If `--format` names it.
    Asked,
    /// Also without `--format`.
    Default,
    /// Always, whatever `--format` names.
    Always,
}

/// Every format, the ones to read first first.
static FORMATS: [Format; 9] = [
    Format {
        name: "md",
        file: "report.md",
        meaning: "report.md, one page",
        source: Source::Template("report.md.j2", include_str!("templates/report.md.j2")),
        when: When::Default,
    },
    Format {
        name: "html",
        file: "report.html",
        meaning: "report.html, self-contained",
        source: Source::Template("report.html.j2", include_str!("templates/report.html.j2")),
        when: When::Default,
    },
    Format {
        name: "json",
        file: results::FILE,
        meaning: results::FILE,
        source: Source::Results(|results| Ok(results.to_json().into_bytes())),
        when: When::Always,
    },
    Format {
        name: "csv",
        file: "results.csv",
        meaning: "results.csv, one row for each cell and metric",
        source: Source::Results(|results| Ok(tidy(results)?.to_csv()?.into_bytes())),
        when: When::Asked,
    },
    Format {
        name: "parquet",
        file: "results.parquet",
        meaning: "results.parquet, as results.csv but typed",
        source: Source::Results(|results| {
            let mut bytes = Vec::new();
            tidy(results)?.to_parquet(&mut bytes).map_err(|error| TableError(error.to_string()))?;
            Ok(bytes)
        }),
        when: When::Asked,
    },
    Format {
        name: "latex",
        file: "results.tex",
        meaning: "results.tex, a table for booktabs and a macro for each number",
        source: Source::Template("results.tex.j2", include_str!("templates/results.tex.j2")),
        when: When::Asked,
    },
    Format {
        name: "junit",
        file: "results.junit.xml",
        meaning: "results.junit.xml, a test case for each cell and goal",
        source: Source::Template("results.junit.xml.j2", include_str!("templates/results.junit.xml.j2")),
        when: When::Asked,
    },
    Format {
        name: "bmf",
        file: "results.bmf.json",
        meaning: "results.bmf.json, Bencher Metric Format",
        source: Source::Template("results.bmf.json.j2", include_str!("templates/results.bmf.json.j2")),
        when: When::Asked,
    },
    Format {
        name: "github-action-benchmark",
        file: "results.gab.json",
        meaning: "results.gab.json, latencies for github-action-benchmark (customSmallerIsBetter)",
        source: Source::Template("results.gab.json.j2", include_str!("templates/results.gab.json.j2")),
        when: When::Asked,
    },
];

impl Format {
    /// Every format, the ones to read first first.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().copied()
    }

    /// The formats that are made without `--format`.
    pub fn defaults() -> impl Iterator<Item = Format> {
        Format::all().filter(|format| format.when != When::Asked)
    }

    pub fn named(name: &str) -> Option<Format> {
        Format::all().find(|format| format.name == name)
    }

    /// The page that holds what the first page leaves out. It shows distributions and samples over time, which results
    /// alone do not have.
    pub fn is_whole_page(self) -> bool {
        self.name == "html"
    }

    /// The page that points to figures in files next to it.
    pub(super) fn is_first_page(self) -> bool {
        self.name == "md"
    }

    pub(super) fn is_always_made(self) -> bool {
        self.when == When::Always
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_files_are_unique() {
        let unique = |name: fn(Format) -> &'static str| Format::all().map(name).collect::<BTreeSet<_>>().len();
        assert_eq!((unique(|format| format.name), unique(|format| format.file)), (FORMATS.len(), FORMATS.len()));
        assert!(Format::all().all(|format| Format::named(format.name) == Some(format)));
    }

    #[test]
    fn the_help_says_what_the_file_is_called() {
        assert!(Format::all().all(|format| format.meaning.starts_with(format.file)));
    }
}
