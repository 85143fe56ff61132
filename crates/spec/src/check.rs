//! Problems and warnings as they are found, at places of the document.
//!
//! Input: places and messages. Output: a list. A part of the document that the schema refused is damaged: what hangs on
//! it is not judged, so that one mistake is one problem.

use super::document::{DocumentPath, Node, key_span, value, value_span};
use super::files::Depth;
use super::note::Note;
use super::problem::{MOST_PROBLEMS, Problem, Sources};
use base::metric::OwnMetric;

/// Collects what is wrong with the meaning of a document.
pub(super) struct Check<'a> {
    sources: &'a Sources,
    root: &'a Node,
    damaged: Vec<DocumentPath>,
    /// What makes the spec invalid.
    pub(super) problems: Vec<Problem>,
    /// What does not.
    pub(super) warnings: Vec<Problem>,
    /// What one key means for another.
    pub(super) notes: Vec<Note>,
    /// How closely files are looked at.
    pub(super) depth: Depth,
    /// The metrics that the document declares.
    pub(super) metrics: Vec<OwnMetric>,
}

impl<'a> Check<'a> {
    /// A check of the document `root`, of which the places `damaged` are not to be relied on.
    pub(super) fn new(sources: &'a Sources, root: &'a Node, damaged: Vec<DocumentPath>) -> Self {
        let (problems, warnings, notes) = (Vec::new(), Vec::new(), Vec::new());
        Check { sources, root, damaged, problems, warnings, notes, depth: Depth::Contents, metrics: Vec::new() }
    }

    /// True where something at or below `place` was refused.
    pub(super) fn is_damaged(&self, place: &DocumentPath) -> bool {
        self.damaged.iter().any(|damaged| damaged.is_within(place) || place.is_within(damaged))
    }

    /// True where the document says something at `place`.
    pub(super) fn has(&self, place: &DocumentPath) -> bool {
        value(self.root, place).is_some()
    }

    /// True where the command line says what is at `place`.
    pub(super) fn is_of_command_line(&self, place: &DocumentPath) -> bool {
        self.has(place) && key_span(self.root, place).source > 0
    }

    /// The scalar at `place` as it is written; empty where there is none.
    pub(super) fn text(&self, place: &DocumentPath) -> &str {
        value(self.root, place).and_then(Node::as_text).unwrap_or_default()
    }

    /// A problem that underlines the value at `place`.
    pub(super) fn at(&self, place: &DocumentPath, message: impl Into<String>) -> Problem {
        self.sources.problem(value_span(self.root, place), message)
    }

    /// A problem that underlines the key at `place`.
    pub(super) fn at_key(&self, place: &DocumentPath, message: impl Into<String>) -> Problem {
        self.sources.problem(key_span(self.root, place), message)
    }

    /// True where so much is wrong that more need not be looked for.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    /// Adds a problem at the value of `place`.
    pub(super) fn error(&mut self, place: &DocumentPath, message: impl Into<String>, hint: impl Into<Option<String>>) {
        if self.is_full() {
            return;
        }
        let problem = self.at(place, message);
        self.problems.push(match hint.into() {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        });
    }

    /// Adds a warning at the value of `place`.
    pub(super) fn warn(&mut self, place: &DocumentPath, message: impl Into<String>, hint: impl Into<String>) {
        let warning = self.at(place, message).with_hint(hint).into_warning();
        self.warnings.push(warning);
    }

    /// Names that stand twice; `what` is "models" or the like, and `hint` says how to tell them apart.
    pub(super) fn duplicates(&mut self, what: &str, names: &[(DocumentPath, String)], hint: &str) {
        let mut seen = std::collections::HashSet::new();
        for (place, name) in names {
            if !seen.insert(name.as_str()) {
                let named = [place.key("name"), place.clone()];
                let place = named.iter().find(|place| self.has(place)).unwrap_or(place);
                self.error(place, format!("two {what} are named `{name}`"), hint.to_owned());
            }
        }
    }
}
