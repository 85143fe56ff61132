//! The view model: what templates get, already in words and formatted numbers.
//!
//! Input: what a report is made from, and its plots. Output: plain serialisable values in the order of the report.
//! Deliberately absent: markup, escaping, and arithmetic beyond choosing what to show.

mod accuracy;
mod asked;
mod boundary;
mod cells;
mod check;
mod comparisons;
mod conclusion;
mod devices;
mod energy;
mod environment;
mod first_page;
mod headline;
mod methods;
mod notices;
mod outputs;
mod overview;
mod pivots;
mod provenance;
mod samples;
mod searches;
pub(in crate::report) mod table;
mod tables;
mod tails;
mod tradeoffs;

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use accuracy::lines as accuracy_lines;
pub(crate) use cells::CellView;
pub(crate) use conclusion::Conclusion;
pub(crate) use first_page::FirstPage;
pub use overview::Overview;
pub(crate) use overview::OverviewColumn;
pub(crate) use table::{Table, TableCell, TableColumn, TableRow};

use super::answer::{Sentence, table as table_of};
use super::plots::Plots;
use super::{Input, Trust};
use crate::vocabulary::privacy::without_home;

/// What a quick look is worth.
const QUICK_LOOK: &str = "A few short runs of each cell without a control: a first impression, not a basis for decisions, gates or history. Run without `--quick` to measure the specification as written.";

/// A whole report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the experiment.
    pub experiment: String,
    /// What the experiment asks.
    pub description: Option<String>,
    /// The answer, made from verdicts alone.
    pub answer: Vec<Sentence>,
    /// The same as a table, of more than four sentences.
    pub answer_table: Option<Table>,
    /// Whether each goal of the specification is met.
    pub goals: Vec<Sentence>,
    /// How the bounds of the specification's question are kept.
    pub within: Vec<Sentence>,
    /// What was measured, on what, with what, and how it was judged: one line each.
    pub provenance: Vec<Fact>,
    /// What a quick look is worth, a sentence; `None` for a whole record.
    pub quick_look: Option<String>,
    /// The controls and the grade: whether the measurement itself can be believed.
    pub trust: Trust,
    /// What a reader has to know before the numbers.
    pub notices: Notices,
    /// Whether `report.html` is written beside this page.
    pub has_html: bool,
    /// Whether `results.json` and the figures are written beside this page.
    pub has_files: bool,
    /// What `report.md` shows of the cells: one fact in each column, and how they were measured.
    pub first_page: FirstPage,
    /// The table that answers the question.
    pub headline: Headline,
    /// Every comparison with the evidence of its verdict; `None` where nothing is compared.
    pub comparisons: Option<Table>,
    /// Every comparison without its blocks: effect sizes and tests that decide nothing.
    pub effects: Option<Table>,
    /// The batches that were searched; `None` where none was.
    pub searches: Option<Table>,
    /// The tails of the same pairs, p95 and p99; `None` where no pair has samples enough.
    pub tails: Option<Table>,
    /// How right each variant is on its model's data; `None` where no model has any.
    pub accuracy: Option<Table>,
    /// How like the reference's the outputs of each cell are; `None` where none were compared.
    pub outputs: Option<Table>,
    /// Tests over whole groups of at least three cells.
    pub families: Option<Table>,
    /// How far the outputs are from the reference's in units of the last place of float32; `None` where none were compared.
    pub last_places: Option<Table>,
    /// How often each cell is on the frontier of resampled blocks; `None` where no metrics are weighed.
    pub memberships: Option<Table>,
    /// Identical arms against each other; `None` without a control.
    pub controls: Option<Table>,
    /// The tables that the specification asks for.
    pub tables: Vec<PivotView>,
    /// Metrics of the cells that could stand in for each other.
    pub tradeoffs: Vec<TradeoffView>,
    /// Which trade-offs are not drawn, or that `pareto` has nothing to weigh.
    pub tradeoffs_left_out: Option<String>,
    /// Every metric of every cell.
    pub details: Table,
    /// What happens before the steady state.
    pub startup: Table,
    /// What the samples look like: outliers, groups, tail, scatter, course, warm-up and precision; `None` without samples.
    pub samples: Option<Table>,
    /// Every cell in plan order with its numbers as they are stored, for tables of your own.
    pub cells: Vec<CellView>,
    /// The figure of all comparisons: one, or none where nothing is compared.
    pub speedup: Vec<PlotView>,
    /// The figures of items per second over the batch size; none where the batch is not varied.
    pub throughput: Vec<PlotView>,
    /// The figures of the distributions.
    pub distributions: Vec<PlotView>,
    /// The figure of the controls: one, or none without a control.
    pub control: Vec<PlotView>,
    /// Samples over time of the cells that deserve a look; these figures have no file of their own.
    pub timelines: Vec<PlotView>,
    /// Which figures there would be too many of.
    pub plots_left_out: Option<String>,
    /// Machine, runtime and origin.
    pub environment: Vec<FactGroup>,
    /// The model files; `None` with the mock backend.
    pub models: Option<Table>,
    /// What was made of them for variants; `None` where every variant is run with the model as stored.
    pub variant_files: Option<Table>,
    /// Paragraphs to paste into a paper.
    pub methods: Vec<String>,
    /// How to get a number again from the samples; `None` where there is none yet.
    pub check: Option<CheckView>,
    /// The specification as written.
    pub spec: SpecView,
    /// Version of perfrun that began the record.
    pub perfrun: String,
    /// Name of the record.
    pub record: String,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Fact {
    /// What.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Fact {
    fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Fact { name: name.into(), value: value.into() }
    }
}

/// Facts that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FactGroup {
    /// Heading.
    pub title: String,
    /// The facts.
    pub facts: Vec<Fact>,
}

/// What a reader has to know before the numbers; every part may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notices {
    /// Why this is not the whole experiment: sentences.
    pub partial: Vec<String>,
    /// Counts in one line: `12 of 24 cells skipped. 1 failed.`
    pub counts: String,
    /// What disturbed the runs from outside, by its cause, a fragment: `other processes used 0.60 of a core in 21 of 104
    /// runs`; none where nothing did that matters.
    pub cause: Option<String>,
    /// For what the record holds where most of its runs met other load, a sentence.
    pub condition: Option<String>,
    /// Skipped cells by reason.
    pub skipped: Vec<SkipView>,
    /// Failures by kind and message.
    pub failures: Vec<FailureView>,
    /// Runs that were never started, a sentence.
    pub not_run: Option<String>,
    /// Warnings by code, the gravest first, without those that `cause` tells.
    pub warnings: Vec<WarningView>,
    /// Codes that are good to know and cast no doubt.
    pub notes: Vec<WarningView>,
    /// A warning says that a value must not be used.
    pub is_grave: bool,
    /// Why outputs differ, and what keeps them from that, where the provider is known for it: sentences.
    pub differing: Vec<String>,
    /// What else to know: sentences.
    pub remarks: Vec<String>,
    /// What would tell more, for the terminal; pages have it among the remarks.
    pub hint: Option<String>,
}

/// Cells skipped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkipView {
    /// `12 of 24 cells`.
    pub cells: String,
    /// Why, a fragment.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// Cells that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureView {
    /// The cells, a few of them by path.
    pub cells: String,
    /// `operator`.
    pub kind: String,
    /// `10 runs`, `in the rehearsal`.
    pub runs: String,
    /// The runtime's own message.
    pub message: String,
    /// Its beginning, for a page that is read in a minute.
    pub in_short: String,
    /// What to look at first.
    pub remedy: String,
    /// The end of the first failed run's log.
    pub log_tail: Option<String>,
}

/// One warning code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarningView {
    /// The stored code.
    pub code: String,
    /// How much it weighs.
    pub severity: String,
    /// It casts no doubt.
    pub is_info: bool,
    /// What was seen.
    pub meaning: String,
    /// What that does to the number.
    pub effect: String,
    /// What to do.
    pub remedy: String,
    /// How many cells and runs, and which; or what was found on the machine.
    pub place: String,
}

/// The table that answers the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Headline {
    /// Its heading, with what is measured.
    pub title: String,
    /// What the numbers are: n, interval, kind of latency.
    pub caption: String,
    /// Headings of the columns that name a row.
    pub names: Vec<String>,
    /// Headings of the columns with numbers.
    pub columns: Vec<HeadlineColumn>,
    /// The rows.
    pub rows: Vec<HeadlineRow>,
}

/// A column of the headline table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HeadlineColumn {
    /// Heading.
    pub title: String,
    /// Whether the others are compared with it.
    pub is_baseline: bool,
}

/// A row of the headline table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HeadlineRow {
    /// What names it.
    pub names: Vec<String>,
    /// Its cells, one a column; `None` where the matrix has no such cell.
    pub cells: Vec<Option<HeadlineCell>>,
}

/// A number of the headline table, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HeadlineCell {
    /// `39.9 us ± 0.2`, `failed (operator)`, `skipped`.
    pub text: String,
    /// `2.67x [2.64, 2.70] faster`.
    pub versus: Option<String>,
    /// What it costs and is worth beside time: `98.1 % top-1, 0.28 MiB, 52 MiB peak`.
    pub also: Option<String>,
    /// Better than the baseline, and not clearly beaten in its row.
    pub is_best: bool,
    /// What the cell looks like: the word of its verdict, or why it has none.
    #[schemars(description = format!("One of {}, `unjudged`, `absent`.", statistics::Verdict::listed()))]
    pub tone: &'static str,
    /// Path of the cell, the anchor of its row of details.
    pub path: Option<String>,
    /// What deserves doubt: `9 of 10 runs, 1 warning`.
    pub note: Option<String>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PlotView {
    /// File name beside the Markdown report.
    pub file: String,
    /// Heading.
    pub title: String,
    /// What is drawn, sentences; empty where the figure before says it.
    pub caption: String,
    /// The figure itself.
    pub svg: String,
}

/// A table that the specification asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PivotView {
    /// Its heading and anchor.
    pub name: String,
    /// What the numbers are, a sentence.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// Metrics of the cells that could stand in for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TradeoffView {
    /// Which cells: `resnet50, b1`; empty where there is one set only.
    pub title: String,
    /// The figure of the first two metrics; `None` where one cell dominates all others, so that there is nothing to weigh.
    pub plot: Option<PlotView>,
    /// The place of each cell.
    pub table: Table,
}

/// A query that anybody can repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CheckView {
    /// The number that it gives: `18.42 ms ± 0.11`.
    pub number: String,
    /// What it gives, and where.
    pub intro: String,
    /// SQL.
    pub query: String,
}

/// The specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SpecView {
    /// Path relative to the root.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl Report {
    /// The view of a record, which begins with its conclusion.
    pub(crate) fn new(input: &Input<'_>, conclusion: Conclusion, plots: &Plots) -> Self {
        let manifest = input.manifest;
        let Conclusion { goals, answer, within, trust, notices, .. } = conclusion;
        Report {
            experiment: manifest.experiment.name.clone(),
            description: manifest.experiment.description.clone(),
            answer_table: table_of(&answer),
            answer,
            goals,
            within,
            provenance: provenance::facts(input, &trust),
            quick_look: manifest.quick.then(|| QUICK_LOOK.to_owned()),
            trust,
            notices,
            has_html: true,
            has_files: true,
            first_page: first_page::first_page(input),
            headline: headline::headline(input),
            comparisons: comparisons::comparisons(input),
            effects: comparisons::effects(input),
            searches: searches::searches(input),
            tails: tails::tails(input),
            accuracy: accuracy::accuracy(input),
            outputs: outputs::outputs(input),
            families: comparisons::families(input),
            last_places: outputs::last_places(input),
            memberships: tradeoffs::memberships(input),
            controls: comparisons::controls(input),
            tables: pivots::pivots(input),
            tradeoffs: tradeoffs::tradeoffs(input, plots),
            tradeoffs_left_out: tradeoffs::left_out(input, plots),
            details: tables::details(input),
            startup: tables::startup(input),
            samples: samples::samples(input),
            cells: cells::cells(input),
            speedup: plots.speedup.iter().map(PlotView::of).collect(),
            throughput: plots.throughput.iter().map(PlotView::of).collect(),
            distributions: plots.distributions.iter().map(PlotView::of).collect(),
            control: plots.control.iter().map(PlotView::of).collect(),
            timelines: plots.timelines.iter().map(PlotView::of).collect(),
            plots_left_out: plots.left_out.clone(),
            environment: provenance::groups(input),
            models: provenance::models(manifest),
            variant_files: outputs::variant_files(manifest),
            methods: methods::methods(input),
            check: check::check(input),
            spec: SpecView { path: manifest.spec.path.clone(), text: without_home(&manifest.spec.text) },
            perfrun: manifest.perfrun.clone(),
            record: manifest.record.clone(),
        }
    }
}

impl PlotView {
    fn of(plot: &super::plots::Plot) -> Self {
        PlotView {
            file: plot.file.clone(),
            title: plot.title.clone(),
            caption: plot.caption.clone(),
            svg: plot.svg.clone(),
        }
    }
}
