//! Whether the cells of a group need more blocks (method 4.6).
//!
//! Input: plan and summary after a look. Output: for each group whether all that it can tell is told. A comparison is
//! settled by its verdict, or by what no further block changes; where nothing is compared, a cell is settled once its
//! interval lies within the margin. Deliberately absent: when there is a look, and who stops.

use serde::{Deserialize, Serialize};

use super::pair::{Terms, Withheld, verdict_between};
use crate::judge::summary::{CellSummary, Summary};
use crate::plan::{Group, Plan};
use crate::record::Manifest;
use crate::vocabulary::metric::{LATENCY, MetricReference};

/// How many blocks a group had, and why it had no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Index of the group.
    pub group: usize,
    /// Blocks.
    pub blocks: u32,
    /// Why there were no more.
    pub stopped: Stopped,
}

/// Why a group got no more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// All its comparisons have their verdict; where nothing is compared, its cells are known to within the margin.
    Decided,
    /// What it lacks no further block would tell: a cell was given up, or its outputs are not to be used.
    GivenUp,
    /// It had as many as the specification allows.
    MostRuns,
    /// The budget was spent.
    Budget,
    /// The record is not complete.
    Unfinished,
}

/// What each group took, where runs go by need.
pub(super) fn efforts(manifest: &Manifest, summary: &Summary) -> Vec<Effort> {
    let plan = &manifest.plan;
    if manifest.experiment.looks().is_one() || plan.rounds > 1 {
        return Vec::new();
    }
    let open = match manifest.findings.budget {
        _ if !manifest.findings.complete => Stopped::Unfinished,
        Some(budget) if budget.runs < budget.wanted => Stopped::Budget,
        _ => Stopped::MostRuns,
    };
    let effort = |(group, need): (usize, Need)| {
        let runs = |cell: &u32| summary.cells[*cell as usize].runs.planned();
        // The cell of a control that stays for other groups has more than its group.
        let cells = plan.groups[group].cells.iter();
        let others = cells.clone().filter(|cell| !plan.controls.contains(cell)).map(runs).max();
        let blocks = others.or_else(|| cells.map(runs).max()).unwrap_or(0);
        let stopped = match need {
            Need::Open => open,
            Need::Hopeless => Stopped::GivenUp,
            Need::Decided => Stopped::Decided,
        };
        (blocks > 0).then_some(Effort { group, blocks, stopped })
    };
    needs(manifest, summary).into_iter().enumerate().filter_map(effort).collect()
}

/// Whether each group of the plan needs no more.
pub fn settled(manifest: &Manifest, summary: &Summary) -> Vec<bool> {
    needs(manifest, summary).into_iter().map(|need| need != Need::Open).collect()
}

/// What a group, a comparison or a cell still needs; of several, the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// More blocks.
    Open,
    /// What no further block would tell.
    Hopeless,
    /// Nothing.
    Decided,
}

fn needs(manifest: &Manifest, summary: &Summary) -> Vec<Need> {
    let terms = Terms::of(manifest);
    manifest.plan.groups.iter().map(|group| of_group(&manifest.plan, group, summary, &terms)).collect()
}

fn of_group(plan: &Plan, group: &Group, summary: &Summary, terms: &Terms) -> Need {
    let runs = |cell: &u32| plan.cells[*cell as usize].skip.is_none();
    let cells: Vec<usize> = group.cells.iter().filter(|cell| runs(cell)).map(|cell| *cell as usize).collect();
    let needed = match group.baseline.filter(runs) {
        Some(baseline) if cells.len() > 1 => {
            let baseline = baseline as usize;
            let others = cells.into_iter().filter(|cell| *cell != baseline);
            others.map(|cell| of_pair(summary, baseline, cell, terms)).min()
        }
        _ => cells.into_iter().map(|cell| of_cell(&summary.cells[cell], terms)).min(),
    };
    needed.unwrap_or(Need::Decided)
}

fn of_pair(summary: &Summary, baseline: usize, cell: usize, terms: &Terms) -> Need {
    let is_over = |cell: usize| is_given_up(&summary.cells[cell]);
    if is_over(baseline) || is_over(cell) {
        return Need::Hopeless;
    }
    let Some(compared) = verdict_between(summary, baseline, cell, MetricReference::LATENCY, terms) else {
        return Need::Open;
    };
    match compared.withheld {
        // Of more runs a smaller share may have failed, or never become steady.
        Some(Withheld::ManyFailures | Withheld::NotSteady) => Need::Open,
        Some(_) => Need::Hopeless,
        None if compared.verdict.is_open() => Need::Open,
        None => Need::Decided,
    }
}

/// Runs of it failed alike, or its rehearsal did, so that no more are started. A run that was not started because the arm
/// beside it failed is no such failure.
fn is_given_up(cell: &CellSummary) -> bool {
    cell.runs.not_run > 0 && (cell.runs.failed > 1 || cell.runs.completed == 0)
}

/// A cell that is compared with nothing is decided once its interval lies within the margin of its estimate.
fn of_cell(cell: &CellSummary, terms: &Terms) -> Need {
    let width =
        cell.estimate(&LATENCY).filter(|_| cell.has_enough_runs()).and_then(|found| found.relative_half_width());
    match width {
        _ if is_given_up(cell) => Need::Hopeless,
        Some(width) if width <= terms.margin_of(MetricReference::LATENCY) => Need::Decided,
        _ => Need::Open,
    }
}
