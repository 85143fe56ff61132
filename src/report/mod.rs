//! Record, summary and comparisons -> a report: one view model, two templates, plots, and the formats of `results`.
//!
//! Pure up to [`write`]: the same record gives the same bytes, whatever the time, the locale or the number of threads.
//! [`format`] and [`answer`] are shared with the terminal. Deliberately absent: statistics, which are in `summary` and
//! `compare`, and where a report lies, which the command decides.

pub mod answer;
pub mod calibration;
pub mod format;
pub mod plots;

mod template;
pub mod trust;
pub mod view;
mod write;

pub use answer::{Sentence, answer, goals, within};
pub use template::{TemplateError, UserTemplate, reference_markdown as template_reference};
pub use trust::Trust;
pub use view::WarningView;
pub use write::write;

use std::path::PathBuf;

use crate::compare::{Comparison, Judged};
use crate::plan::{Cell, Plan};
use crate::results::{self, Results};
use crate::spec::model::{AccuracyMetric, Axis};
use crate::store::{Manifest, StoreError, StoredRun};
use crate::summary::Summary;
use crate::table::TableError;

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
    /// Its files, with their content; the ones to read first come first.
    pub files: Vec<(Format, Vec<u8>)>,
    /// File name and SVG of each plot that `report.md` shows.
    pub plots: Vec<(String, String)>,
}

/// A file format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `report.md` with its plots.
    Markdown,
    /// `report.html`: one file, no network.
    Html,
    /// `results.json`; always written.
    Json,
    /// One row for each cell and metric.
    Csv,
    /// The same with types.
    Parquet,
}

impl Format {
    /// Every format, the ones to read first first.
    pub const ALL: [Format; 5] = [Format::Markdown, Format::Html, Format::Json, Format::Csv, Format::Parquet];

    /// Name of its file in the folder of a report.
    pub fn file(self) -> &'static str {
        match self {
            Format::Markdown => "report.md",
            Format::Html => "report.html",
            Format::Json => results::FILE,
            Format::Csv => "results.csv",
            Format::Parquet => "results.parquet",
        }
    }

    /// Whether it is made from the results alone; the others take a whole record.
    pub fn is_of_results(self) -> bool {
        matches!(self, Format::Json | Format::Csv | Format::Parquet)
    }
}

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
    /// The table of results cannot be made.
    #[error("cannot write a table of the results")]
    Table(#[from] TableError),
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
    pages: Option<Pages>,
    notices: view::Notices,
    results: Results,
}

/// What people read.
#[derive(Clone, Debug)]
struct Pages {
    report: view::Report,
    plots: plots::Plots,
}

/// Draws the figures and puts into words what a record says; with `pages`, for people as well as for programs.
///
/// # Errors
///
/// When the summary is not of the manifest's plan.
pub fn compose(input: &Input<'_>, pages: bool) -> Result<Composed, ReportError> {
    let (expected, found) = (input.manifest.plan.cells.len(), input.summary.cells.len());
    if expected != found {
        return Err(ReportError::Mismatch { expected, found });
    }
    // Values that are not to be used are in `results.json` with their codes, and shown nowhere.
    let shown = Input { summary: &input.summary.shown(), ..*input };
    let notices = view::notices(&shown);
    let results = results::results(input.manifest, input.summary, input.judged);
    if !pages {
        return Ok(Composed { pages: None, notices, results });
    }
    let plots = plots::draw(&shown);
    let report = view::Report::new(&shown, notices.clone(), &plots);
    Ok(Composed { pages: Some(Pages { report, plots }), notices, results })
}

impl Composed {
    /// Why this is not the whole experiment: sentences.
    pub fn partial(&self) -> &[String] {
        &self.notices.partial
    }

    /// What casts doubt on the record, the gravest first.
    pub fn warnings(&self) -> &[WarningView] {
        &self.notices.warnings
    }

    /// The files of these formats, and `results.json`.
    ///
    /// # Errors
    ///
    /// Errors of perfrun's own templates, which are its faults.
    pub fn render(&self, formats: &[Format]) -> Result<Rendered, ReportError> {
        let is_wanted = |format: &Format| *format == Format::Json || formats.contains(format);
        let mut rendered = Rendered { files: Vec::new(), plots: Vec::new() };
        for format in Format::ALL.into_iter().filter(is_wanted) {
            let content = match (format, &self.pages) {
                (Format::Markdown, Some(pages)) => {
                    rendered.plots = pages.plots.all().map(|plot| (plot.file.clone(), plot.svg.clone())).collect();
                    template::markdown(&pages.report)?.into_bytes()
                }
                (Format::Html, Some(pages)) => template::html(&pages.report)?.into_bytes(),
                (Format::Markdown | Format::Html, None) => continue,
                _ => of_results(&self.results, format)?,
            };
            rendered.files.push((format, content));
        }
        Ok(rendered)
    }

    /// A template of the user's own, filled with the same values; nothing where there are no pages.
    ///
    /// # Errors
    ///
    /// What is wrong with the template, with its line.
    pub fn fill(&self, template: &UserTemplate) -> Result<String, TemplateError> {
        self.pages.as_ref().map_or(Ok(String::new()), |pages| template.fill(&pages.report))
    }
}

/// The content of a file that is made from results alone.
///
/// # Errors
///
/// When the table cannot be made.
pub fn of_results(results: &Results, format: Format) -> Result<Vec<u8>, ReportError> {
    match format {
        Format::Csv => Ok(results::tidy(results)?.to_csv()?.into_bytes()),
        Format::Parquet => {
            let mut bytes = Vec::new();
            results::tidy(results)?.to_parquet(&mut bytes)?;
            Ok(bytes)
        }
        _ => Ok(results.to_json().into_bytes()),
    }
}
