//! Record, summary and comparisons -> a report: one view model, two templates, plots, and `results.json`.
//!
//! Pure up to [`write`]: the same record gives the same bytes, whatever the time, the locale or the number of threads.
//! [`format`] and [`answer`] are shared with the terminal. Deliberately absent: statistics, which are in `summary` and
//! `compare`, and where a report lies, which the command decides.

pub mod answer;
pub mod calibration;
mod committed;
pub mod format;
pub mod plots;
pub mod privacy;
pub mod results;
mod template;
pub mod trust;
pub mod view;
mod write;

pub use answer::{Sentence, answer, goals, within};
pub use committed::measured_on;
pub use results::Results;
pub use template::{TemplateError, UserTemplate, reference_markdown as template_reference};
pub use trust::Trust;
pub use view::WarningView;
pub use write::write;

use std::path::PathBuf;

use crate::compare::{Comparison, Judged};
use crate::plan::{Cell, Plan};
use crate::spec::model::{AccuracyMetric, Axis};
use crate::store::{Manifest, StoreError, StoredRun};
use crate::summary::Summary;

/// What a report is made from: stored data and what was derived from it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What was planned, where and with what.
    pub manifest: &'a Manifest,
    /// Every run that has an outcome; samples are needed for the plots alone.
    pub runs: &'a [StoredRun],
    /// What each cell's runs say together, in plan order.
    pub summary: &'a Summary,
    /// What may be claimed.
    pub judged: &'a Judged,
}

/// A report as texts; nothing is on disk yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// `report.md`.
    pub markdown: String,
    /// `report.html`: one file, no network.
    pub html: String,
    /// `results.json`.
    pub json: String,
    /// File name and SVG of each plot that `report.md` shows.
    pub plots: Vec<(String, String)>,
}

/// A file format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `report.md` with its plots.
    Markdown,
    /// `report.html`.
    Html,
    /// `results.json`; always written.
    Json,
}

/// The files of a report.
pub const MARKDOWN_FILE: &str = "report.md";
/// The files of a report.
pub const HTML_FILE: &str = "report.html";
/// What `diff` reads at any revision.
pub const JSON_FILE: &str = "results.json";

/// Why a report cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template does not fit the view, which is a fault of perfrun unless the template is the user's.
    #[error("cannot render {template}")]
    Template {
        /// The template.
        template: String,
        /// Where and why.
        source: minijinja::Error,
    },
    /// The drawing library refused.
    #[error("cannot draw {plot}: {reason}")]
    Plot {
        /// File name of the plot.
        plot: String,
        /// Why.
        reason: String,
    },
    /// The summary is not of this plan.
    #[error("the summary has {found} cells, the plan {expected}")]
    Mismatch {
        /// Cells of the plan.
        expected: usize,
        /// Cells of the summary.
        found: usize,
    },
    /// The folder of the report cannot be listed or created.
    #[error("cannot write {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The comparison of a cell with its baseline; comparisons stand in plan order.
fn comparison_of(comparisons: &[Comparison], cell: usize) -> Option<&Comparison> {
    let index = comparisons.binary_search_by_key(&cell, |comparison| comparison.cell).ok()?;
    comparisons.get(index)
}

impl ReportError {
    /// Whether this is a fault of perfrun and nothing that its user can mend.
    pub fn is_internal(&self) -> bool {
        !matches!(self, ReportError::Folder { .. } | ReportError::Store(_))
    }
}

/// Whether the cells that are to be run differ on an axis; the name of an axis on which they do not says nothing.
fn has_several(plan: &Plan, axis: Axis) -> bool {
    let index = |cell: &Cell| match axis {
        Axis::Models => cell.model,
        Axis::Inputs => cell.input,
        Axis::Variants => cell.variant,
        Axis::Devices => cell.device,
        Axis::Runtimes => cell.runtime,
    };
    let mut indices = plan.runnable().map(|(_, cell)| index(cell));
    indices.next().is_some_and(|first| indices.any(|other| other != first))
}

/// The text with a first letter that begins a sentence.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What cells that could stand in for each other have in common: `resnet50, b1`; what all cells share is left out.
fn place_of(plan: &Plan, cells: impl Iterator<Item = usize>) -> String {
    let cells: Vec<&Cell> = cells.map(|cell| &plan.cells[cell]).collect();
    let shared = |axis: &Axis| {
        let mut names = cells.iter().map(|cell| plan.coordinates(cell).on(*axis));
        let first = names.next()?;
        (names.all(|name| name == first) && (*axis == Axis::Models || has_several(plan, *axis))).then_some(first)
    };
    Axis::ALL.iter().filter_map(shared).collect::<Vec<_>>().join(", ")
}

/// What a cell is called beside those of its model, whatever their inputs: `fp16`, with device and runtime where cells
/// that run differ in them.
pub fn name_without_input(plan: &Plan, cell: &Cell) -> String {
    let coordinates = plan.coordinates(cell);
    let is_named = |axis: &&Axis| match axis {
        Axis::Models | Axis::Inputs => false,
        Axis::Variants => true,
        Axis::Devices | Axis::Runtimes => has_several(plan, **axis),
    };
    Axis::ALL.iter().filter(is_named).map(|axis| coordinates.on(*axis)).collect::<Vec<_>>().join("/")
}

/// What stands beside a number.
pub fn short_name(metric: AccuracyMetric) -> &'static str {
    match metric {
        AccuracyMetric::Top1 => "top-1",
        AccuracyMetric::Top5 => "top-5",
        AccuracyMetric::Mae => "MAE",
        AccuracyMetric::Rmse => "RMSE",
        AccuracyMetric::R2 => "R2",
    }
}

/// The name of a cell among others: its names on the axes on which they differ, `int8/cpu`; its variant where they do not.
fn name_among(plan: &Plan, cells: &[usize], cell: usize) -> String {
    let name = |cell: usize, axis: Axis| plan.coordinates(&plan.cells[cell]).on(axis);
    let differ = |axis: &Axis| cells.iter().any(|other| name(*other, *axis) != name(cells[0], *axis));
    let names: Vec<&str> = Axis::ALL.into_iter().filter(differ).map(|axis| name(cell, axis)).collect();
    if names.is_empty() { name(cell, Axis::Variants).to_owned() } else { names.join("/") }
}

/// A report before it has a format: what all of them are made from.
#[derive(Clone, Debug)]
pub struct Composed {
    report: view::Report,
    plots: plots::Plots,
    json: String,
}

/// Draws the figures and puts into words what a record says.
///
/// # Errors
///
/// When the summary is not of the manifest's plan. Errors of figures are faults of perfrun.
pub fn compose(input: &Input<'_>) -> Result<Composed, ReportError> {
    let (expected, found) = (input.manifest.plan.cells.len(), input.summary.cells.len());
    if expected != found {
        return Err(ReportError::Mismatch { expected, found });
    }
    // Values that are not to be used are in `results.json` with their codes, and shown nowhere.
    let shown = Input { summary: &input.summary.shown(), ..*input };
    let plots = plots::draw(&shown)?;
    let report = view::Report::new(&shown, &plots);
    Ok(Composed { report, plots, json: Results::new(input).to_json() })
}

impl Composed {
    /// Why this is not the whole experiment: sentences.
    pub fn partial(&self) -> &[String] {
        &self.report.notices.partial
    }

    /// What casts doubt on the record, the gravest first.
    pub fn warnings(&self) -> &[WarningView] {
        &self.report.notices.warnings
    }

    /// Every file of the report.
    ///
    /// # Errors
    ///
    /// Errors of perfrun's own templates, which are its faults.
    pub fn render(&self) -> Result<Rendered, ReportError> {
        Ok(Rendered {
            markdown: template::markdown(&self.report)?,
            html: template::html(&self.report)?,
            json: self.json.clone(),
            plots: self.plots.all().map(|plot| (plot.file.clone(), plot.svg.clone())).collect(),
        })
    }

    /// A template of the user's own, filled with the same values.
    ///
    /// # Errors
    ///
    /// What is wrong with the template, with its line.
    pub fn fill(&self, template: &UserTemplate) -> Result<String, TemplateError> {
        template.fill(&self.report)
    }
}

/// Makes every file of the report.
///
/// # Errors
///
/// As [`compose`] and [`Composed::render`].
pub fn render(input: &Input<'_>) -> Result<Rendered, ReportError> {
    compose(input)?.render()
}
