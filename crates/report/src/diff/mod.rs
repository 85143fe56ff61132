//! A diff -> what people read: one page in words, for the terminal, Markdown and HTML alike.
//!
//! Input: a [`Diff`]. Output: a [`Page`]. Deliberately absent: markup, and anything that the diff does not say.

mod answer;
mod facts;
mod figure;
mod junit;
mod limit;
mod order;
mod reason;
mod reproduction;
mod summary;
mod tables;

use serde::Serialize;

use crate::format::count;
use crate::page::Table;
use crate::{ReportError, fill_template};
use base::printable::printable_line;
use judge::diff::{Changes, Diff, Gated, Row};

pub use answer::Answer;
pub use figure::{Figure, FigureRow};
pub use junit::{Experiments, junit};
pub use reproduction::ReproductionPage;

/// What a comment shows before it folds.
const MOST_ROWS: usize = 10;

/// A diff as people read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    /// Name of the experiment.
    pub experiment: String,
    /// Both sides: `8c41f02`, `9c02d7e`.
    pub sides: [String; 2],
    /// What is seen first on a page.
    pub answer: Answer,
    /// The heading: `gate failed. 1 slower, 1 faster, 3 equivalent`.
    pub headline: String,
    /// What decides, worst first: a lead and what follows it.
    pub sentences: Vec<Sentence>,
    /// What differs in what is compared.
    pub changed: Vec<String>,
    /// Which operators a difference of latencies is in, a line for each cell.
    pub profile: Vec<String>,
    /// What has to be known before the numbers: other frames, stale files, rows that were not judged.
    pub notices: Vec<String>,
    /// What failed, on which side.
    pub failures: Vec<Failed>,
    /// What sessions alone are assumed to do, where the sides were measured apart.
    pub sessions: Option<String>,
    /// Rows that somebody has to see.
    pub first: Table,
    /// The other rows, and what they are: `3 equivalent`.
    pub rest: Option<Folded>,
    /// Cells with the same bytes and settings on both sides: `6 unchanged`.
    pub unchanged: Option<Folded>,
    /// Speed-ups against each side's own baseline, where rows could not be compared.
    pub claims: Option<Table>,
    /// How it was judged.
    pub method: String,
    /// The command that repeats it.
    pub command: String,
}

/// Runs that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// `tool of e3c202b: 8 of 40 runs failed: the command ended with exit code 1`
    pub text: String,
    /// The last lines of what it said.
    pub log: String,
}

/// A lead and what follows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// What is printed in bold.
    pub lead: String,
    /// The rest.
    pub text: String,
}

/// What could not be compared, and is on no page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Uncompared {
    /// Why nothing was compared.
    pub nothing: Option<Sentence>,
    /// The last lines of a command that failed.
    pub log: String,
    /// Of experiments that one side alone has: a sentence each.
    pub alone: Vec<String>,
}

/// Rows that are folded away.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Folded {
    pub title: String,
    /// The rows, at most as many as there is room for.
    pub table: Table,
    /// How many there was no room for.
    pub left_out: usize,
}

impl Page {
    /// The page of a diff that this command made.
    pub fn new(diff: &Diff, command: &str) -> Self {
        let shown = order::Shown::of(diff, MOST_ROWS);
        let folded = |rows: &[&Row]| {
            let table = || tables::rows(diff, rows);
            (!rows.is_empty()).then(|| Folded { title: summary::counted(rows), table: table(), left_out: 0 })
        };
        let (all, changed, profile) = (shown.all(), facts::subject(&diff.changes), summary::operators(diff));
        let mut page = Page {
            answer: Answer::of(diff, &all, &changed, &profile),
            experiment: diff.experiment.clone(),
            sides: [diff.baseline.name.clone(), diff.candidate.name.clone()],
            headline: summary::headline(diff, &all),
            sentences: summary::sentences(diff),
            changed,
            profile,
            notices: summary::notices(diff),
            failures: summary::failures(diff),
            sessions: summary::sessions(diff),
            first: tables::rows(diff, &shown.first),
            rest: folded(&shown.rest),
            unchanged: folded(&shown.unchanged),
            claims: diff.has_incomparable_rows().then(|| tables::claims(diff)).flatten(),
            method: summary::method(diff),
            command: command.to_owned(),
        };
        page.texts().for_each(|text| *text = in_one_line(text));
        page
    }

    /// Every text that may come from elsewhere.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let sentences = self.sentences.iter_mut().flat_map(|sentence| [&mut sentence.lead, &mut sentence.text]);
        let folded = [&mut self.rest, &mut self.unchanged].into_iter().flatten();
        let (titles, tables): (Vec<&mut String>, Vec<&mut Table>) =
            folded.map(|folded| (&mut folded.title, &mut folded.table)).unzip();
        let tables = tables.into_iter().chain([&mut self.first]).chain(&mut self.claims);
        let cells = tables.flat_map(|table| {
            let titles = table.columns.iter_mut().map(|column| &mut column.title);
            let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells).map(|cell| &mut cell.text);
            titles.chain(cells).collect::<Vec<_>>()
        });
        let lines = [&mut self.changed, &mut self.profile, &mut self.notices].into_iter().flatten();
        let single = [&mut self.experiment, &mut self.headline, &mut self.method, &mut self.command];
        let single = single.into_iter().chain(&mut self.sides);
        single.chain(sentences).chain(titles).chain(cells).chain(lines).chain(self.answer.texts())
    }

    /// The page as HTML.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn html(pages: &[Page], uncompared: &Uncompared) -> Result<String, ReportError> {
        fill_template("diff.html.j2", &Pages::new(pages, uncompared, ""))
    }
}

/// What differs between two results, in words: what is compared, then what must be equal.
pub(crate) fn changed_words(changes: &Changes) -> Vec<String> {
    let words = facts::subject(changes).into_iter().chain(facts::named(&changes.frame));
    words.map(|line| in_one_line(&line)).collect()
}

/// A text in one line, without what moves a cursor.
fn in_one_line(text: &str) -> String {
    printable_line(text).into_owned()
}

/// What the templates get.
#[derive(Debug, Serialize)]
struct Pages<'a> {
    /// The first line of Markdown.
    marker: &'a str,
    pages: &'a [Page],
    #[serde(flatten)]
    uncompared: &'a Uncompared,
    perfrun: &'static str,
}

impl<'a> Pages<'a> {
    fn new(pages: &'a [Page], uncompared: &'a Uncompared, marker: &'a str) -> Self {
        Pages { marker, pages, uncompared, perfrun: env!("CARGO_PKG_VERSION") }
    }
}

/// What a gate says, in words: `judged 3 of 12 rows`.
fn judged(gate: &Gated) -> String {
    format!("judged {} of {}", gate.judged, count(gate.asked as u64, "row"))
}

/// A row stands for its cell where several metrics of one are reported.
fn is_headline(diff: &Diff, row: &Row) -> bool {
    row.gate.is_some() || diff.shown.contains(&row.asked)
}
