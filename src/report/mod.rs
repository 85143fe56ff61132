//! Record, summary and comparisons -> a report: one view in words and numbers, figures, and the formats of files.
//!
//! Pure up to [`write`]: the same record gives the same bytes, whatever the time, the locale or the number of threads.
//! The terminal shows parts of the same [`view`]. Deliberately absent: estimates and verdicts, which are `judge`'s, and
//! where a report lies, which the command decides.

mod absence;
mod answer;
pub(crate) mod batch_search;
pub(crate) mod calibration;
pub(crate) mod cause;
mod compose;
mod effort;
pub(crate) mod format;
mod formats;
pub mod plots;
pub mod results;

mod template;
mod trust;
pub(crate) mod view;
mod write;

pub use compose::compose;
pub(crate) use compose::of_results;
pub use formats::Format;
pub(crate) use formats::junit;
pub use template::reference_markdown as template_reference;
pub(crate) use template::{TemplateError, UserTemplate, render as fill_template};
pub(crate) use trust::Trust;
pub use write::write;

use std::path::PathBuf;

use crate::data::table::TableError;
use crate::experiment::{AccuracyMetric, Axis};
use crate::judge::compare::Judged;
use crate::judge::summary::{CellSummary, Summary};
use crate::plan::{Cell, Plan};
use crate::record::{Manifest, StoreError, StoredRun};
use crate::vocabulary::code::CPU_SHARE_TOLD;
use crate::vocabulary::metric::CPU_TIME;

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
    /// File name and SVG of each plot that one of the files shows; `None` where none of them shows any.
    pub plots: Option<Vec<(String, String)>>,
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

impl ReportError {
    /// Whether this is a fault of perfrun and nothing that its user can mend.
    pub fn is_internal(&self) -> bool {
        !matches!(self, ReportError::Folder { .. } | ReportError::Store(_))
    }
}

/// Whether the cells that are to be run differ on an axis; the name of an axis on which they do not says nothing.
fn has_several(plan: &Plan, axis: Axis) -> bool {
    let mut indices = plan.runnable().map(|(_, cell)| cell.at[axis]);
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
fn name_without_input(plan: &Plan, cell: &Cell) -> String {
    let coordinates = plan.coordinates(cell);
    let is_named = |axis: &&Axis| match axis {
        Axis::Models | Axis::Inputs => false,
        Axis::Variants => true,
        _ => has_several(plan, **axis),
    };
    Axis::ALL.iter().filter(is_named).map(|axis| coordinates.on(*axis)).collect::<Vec<_>>().join("/")
}

/// `38 % on cpu`, of a cell of another device that did not run there alone.
fn on_cpu(summary: &CellSummary) -> Option<String> {
    let share = summary.fallback.share.filter(|share| *share >= CPU_SHARE_TOLD)?;
    Some(format!("{} on cpu", format::percent(share)))
}

/// `CPU time 12.6 ms on 2 threads`, of a cell whose latency other load inflates.
fn own_time(summary: &CellSummary) -> Option<String> {
    let threads = summary.findings.other_load?.waiting_threads?;
    let own = format::measured(CPU_TIME.unit, summary.estimate(&CPU_TIME)?.value, None);
    Some(if threads > 1 { format!("CPU time {own} on {threads} threads") } else { format!("CPU time {own}") })
}

/// `inflated by other load, CPU time 6.30 ms`: what stands beside such a number.
fn inflated(summary: &CellSummary) -> Option<String> {
    Some(format!("inflated by other load, {}", own_time(summary)?))
}

/// What stands beside a number.
fn short_name(metric: AccuracyMetric) -> &'static str {
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
