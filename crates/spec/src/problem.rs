//! What is wrong with a spec, and where: a message, a place in the text, and what to do about it.
//!
//! Input: messages and byte spans from the other files of this package. Output: [`Problem`], which renders with the line
//! underlined. Deliberately absent: printing.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};

use base::printable::{printable_in_place, printable_line};

/// More problems than this are not even looked for.
pub(super) const MOST_PROBLEMS: usize = 200;

/// Longer lines are not shown with the problem; an excerpt that fills the screen hides it.
const LONGEST_LINE: usize = 1000;

/// Labels give the position and the underlined text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    /// Index of the text among [`Sources`]: 0 is the file, the others are `--set` arguments.
    pub(super) source: usize,
    /// First byte.
    pub(super) start: usize,
    /// One past the last byte.
    pub(super) end: usize,
}

/// The texts that spans point into: the file first, then each `--set` argument.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    texts: Vec<(Arc<str>, Arc<str>)>,
}

impl Sources {
    /// The file alone, under the name that the user knows it by.
    pub(super) fn new(name: &str, text: &str) -> Self {
        Sources { texts: vec![(Arc::from(name), Arc::from(text))] }
    }

    /// Adds a text and returns its index.
    pub(super) fn add(&mut self, name: &str, text: &str) -> usize {
        self.texts.push((Arc::from(name), Arc::from(text)));
        self.texts.len() - 1
    }

    /// The text with that index.
    pub(super) fn text(&self, source: usize) -> &str {
        self.texts.get(source).map_or("", |(_, text)| text)
    }

    /// An error at `span`.
    pub(super) fn problem(&self, span: Span, message: impl Into<String>) -> Problem {
        let (name, text) = &self.texts[span.source.min(self.texts.len() - 1)];
        let start = floor_boundary(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = floor_boundary(text, span.end).clamp(start, line_end.max(start));
        let shown = line_end - line_start <= LONGEST_LINE;
        Problem {
            message: message.into(),
            hint: None,
            severity: Severity::Error,
            label: (start, end - start),
            source: span.source,
            file: Arc::clone(name),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            excerpt: shown.then(|| Box::new(NamedSource::new(printable_line(name), shown_text(text)))),
        }
    }
}

/// The text without what a terminal would obey, each character in its place.
fn shown_text(text: &Arc<str>) -> Arc<str> {
    match printable_in_place(text) {
        Cow::Borrowed(_) => Arc::clone(text),
        Cow::Owned(safe) => safe.into(),
    }
}

/// The nearest character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// One thing that is wrong, or that deserves a warning, with its place in the text.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is wrong, as a fragment without a final period.
    pub message: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
    severity: Severity,
    /// Start and length, in bytes.
    label: (usize, usize),
    source: usize,
    /// Name of the text: the spec's path as it was given, or `command line`.
    pub(super) file: Arc<str>,
    /// From 1.
    pub(super) line: usize,
    /// From 1, in characters.
    pub(super) column: usize,
    /// Boxed, as problems travel as errors.
    excerpt: Option<Box<NamedSource<Arc<str>>>>,
}

impl Problem {
    /// The same problem with advice.
    #[must_use]
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same place with another message.
    #[must_use]
    pub(super) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// The same problem, not in the way of anything.
    #[must_use]
    pub(super) fn into_warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// What problems are sorted by: the text, the file's first, and the position in it.
    pub(super) fn order(&self) -> (usize, usize, usize) {
        (self.source, self.line, self.column)
    }

    /// True where the spec cannot be used with it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `x.yaml:3:5` goes into the message only where no excerpt carries it.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.excerpt.is_none() {
            write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_deref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.excerpt.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, self.label))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let sources = Sources::new("x.yaml", "a: é\nb: ö!");
        let problem = sources.problem(Span { source: 0, start: 11, end: 12 }, "no");
        assert_eq!((problem.line, problem.column), (2, 5));
    }

    #[test]
    fn spans_outside_the_text_or_inside_a_character_are_moved() {
        let sources = Sources::new("x.yaml", "é");
        assert_eq!(sources.problem(Span { source: 0, start: 1, end: 90 }, "no").column, 1);
        assert_eq!(sources.problem(Span { source: 7, start: 90, end: 3 }, "no").column, 2);
    }

    #[test]
    fn a_very_long_line_is_named_and_not_shown() {
        let sources = Sources::new("x.yaml", &"x".repeat(5000));
        let problem = sources.problem(Span { source: 0, start: 4000, end: 4001 }, "no");
        assert_eq!(problem.to_string(), "x.yaml:1:4001: no");
        assert!(problem.labels().is_none());
    }
}
