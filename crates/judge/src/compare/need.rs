//! Whether the cells of a group need more blocks (method 4.6).
//!
//! Input: plan and summary at an interim analysis. Output: for each group, whether more blocks can change its answer. A
//! comparison is settled once it has a verdict, or when no further block can give it one; where nothing is compared, a
//! cell is settled once its interval lies within the margin. Goals, `choose`, and gates of both sides of a diff must be
//! settled too. Deliberately absent: when an analysis is made, and stopping.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choose::{BoundCheck, BoundOutcome, Doubt, asked, check_bound, sort_by_estimate};
use super::comparable::{comparable, unfit};
use super::gated_pairs::GatedPairs;
use super::pair::{compare_cells, compare_unasked};
use super::{Comparison, ComparisonRules};
use crate::summary::{CellSummary, Summary};
use base::metric::MetricReference;
use experiment::Bound;
use plan::{CellId, Group, Plan};
use record::Manifest;

/// What a group of cells took, where runs go by need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// Ids of its cells.
    pub cells: Vec<CellId>,
    /// Blocks.
    pub blocks: u64,
    /// Why it had no more.
    pub stopped: Stopped,
}

/// Why a group got no more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// All its comparisons have their verdict, and the goals, the question and the gates theirs; where nothing is compared,
    /// its cells are known to within the margin.
    Decided,
    /// What it lacks no further block would give: a cell was given up, or its outputs are not to be used.
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
    if manifest.experiment.interim_analyses().is_one() || plan.rounds > 1 {
        return Vec::new();
    }
    let open = match manifest.findings.budget {
        _ if !manifest.findings.complete => Stopped::Unfinished,
        Some(budget) if budget.runs < budget.wanted => Stopped::Budget,
        _ => Stopped::MostRuns,
    };
    let allowed = manifest.findings.budget.map_or(plan.runs, |budget| budget.runs.min(plan.runs));
    let effort = |(group, need): (usize, Progress)| {
        let runs = |cell: &u32| summary.cells[*cell as usize].runs.planned();
        // The cell of a control that stays for other groups has more than its group.
        let cells = plan.groups[group].cells.iter();
        let in_group_alone = cells.clone().filter(|cell| !plan.controls.contains(cell)).map(runs).max();
        let blocks = in_group_alone.or_else(|| cells.map(runs).max()).unwrap_or(0);
        let stopped = match need {
            // It left after an analysis. A control's cell runs on for the other groups, and may lie across a bound by now.
            // Of merged records each had a limit of its own.
            Progress::Open if open != Stopped::Unfinished && blocks < allowed && manifest.machines.is_empty() => {
                Stopped::Decided
            }
            Progress::Open => open,
            Progress::Hopeless => Stopped::GivenUp,
            Progress::Decided => Stopped::Decided,
        };
        let ids = plan.groups[group].cells.iter().map(|cell| plan.cells[*cell as usize].id);
        (blocks > 0).then(|| Effort { cells: ids.collect(), blocks: u64::from(blocks), stopped })
    };
    needs(manifest, summary).into_iter().enumerate().filter_map(effort).collect()
}

/// Whether each group of the plan needs no more.
pub fn settled(manifest: &Manifest, summary: &Summary) -> Vec<bool> {
    needs(manifest, summary).into_iter().map(|need| need != Progress::Open).collect()
}

/// What a group, a comparison or a cell still needs; of several, the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// More blocks.
    Open,
    /// What no further block would decide.
    Hopeless,
    /// Nothing.
    Decided,
}

fn needs(manifest: &Manifest, summary: &Summary) -> Vec<Progress> {
    let terms = ComparisonRules::of(manifest);
    let plan = &manifest.plan;
    let open = open_cells(manifest, summary, &terms);
    let gates = GatedPairs::of(manifest);
    let is_open = |group: &Group| group.cells.iter().any(|cell| open.contains(&(*cell as usize)));
    let need = |group: &Group| match is_open(group) {
        true => Progress::Open,
        false => match of_group(plan, group, summary, &terms) {
            Progress::Decided if gates.is_open(group, summary, &terms) => Progress::Open,
            found => found,
        },
    };
    plan.groups.iter().map(need).collect()
}

/// The cells on which a goal or the question is still open, and which more blocks may decide.
fn open_cells(manifest: &Manifest, summary: &Summary, terms: &ComparisonRules) -> BTreeSet<usize> {
    let (plan, experiment) = (&manifest.plan, &manifest.experiment);
    if experiment.goals.is_empty() && experiment.choose.is_none() {
        return BTreeSet::new();
    }
    let looked_at = experiment.looked_at();
    let verdict = |(baseline, cell)| compare_unasked(summary, baseline, cell, terms);
    let comparisons: Vec<Comparison> = plan.pairs().filter_map(verdict).collect();
    let check = |bound: &Bound| {
        let is_seen =
            bound.metric.is_speedup() || bound.metric.metric.is_constant() || looked_at.contains(&bound.metric);
        is_seen.then(|| check_bound(plan, summary, &comparisons, terms.confidence(), bound))
    };
    let is_missed = |check: &BoundCheck| check.cells.iter().any(|cell| cell.outcome == BoundOutcome::Missed);
    let goals = experiment.goals.iter().filter_map(|goal| check(&goal.bound));
    // A goal that one cell misses is missed.
    let mut checks: Vec<BoundCheck> = goals.filter(|check| !is_missed(check)).collect();
    let mut open = BTreeSet::new();
    if let Some(question) = &experiment.choose {
        let within: Vec<BoundCheck> = question.within.iter().filter_map(check).collect();
        if looked_at.contains(&asked(question.best)) {
            open.extend(rivals(plan, summary, terms, question.best, &within));
        }
        checks.extend(within);
    }
    open.extend(checks.iter().flat_map(|check| across(plan, summary, check)));
    open.retain(|cell| !is_given_up(&summary.cells[*cell]));
    open
}

/// The cells of which more blocks will show whether they keep a bound.
fn across<'a>(plan: &'a Plan, summary: &'a Summary, check: &'a BoundCheck) -> impl Iterator<Item = usize> + 'a {
    let metric = check.metric;
    let may_decide = |reason: Option<Doubt>| match reason {
        Some(Doubt::Across | Doubt::TooFewRuns | Doubt::TooFewSamples) => true,
        Some(Doubt::Withheld(withheld)) => withheld.may_heal(),
        _ => false,
    };
    let has_baseline = move |cell: usize| {
        let baseline = plan.groups[plan.cells[cell].group as usize].baseline;
        baseline.is_some_and(|baseline| !is_given_up(&summary.cells[baseline as usize]))
    };
    let doubtful: HashSet<CellId> =
        check.cells.iter().filter(|bounded| may_decide(bounded.reason)).map(|bounded| bounded.cell).collect();
    let cells =
        plan.cells.iter().enumerate().filter(move |(_, cell)| doubtful.contains(&cell.id)).map(|(cell, _)| cell);
    let is_of_runs = !metric.metric.is_constant();
    cells.filter(move |cell| is_of_runs && (!metric.is_speedup() || has_baseline(*cell)))
}

/// Of each group, the cell with the best estimate that may be chosen, and those that are not told apart from it; the same
/// of those that keep every bound.
fn rivals(
    plan: &Plan,
    summary: &Summary,
    terms: &ComparisonRules,
    best: MetricReference,
    within: &[BoundCheck],
) -> BTreeSet<usize> {
    let metric = asked(best);
    let all = |cell: usize, accepts: &dyn Fn(BoundOutcome) -> bool| {
        within.iter().filter_map(|check| check.of(plan.cells[cell].id)).all(|bounded| accepts(bounded.outcome))
    };
    let is_open = |leader: usize, cell: usize| {
        let compared = compare_cells(summary, cell, leader, metric, terms);
        compared.is_some_and(|compared| compared.withheld().is_none() && compared.verdict.is_open())
    };
    let may_win = |cell: &usize| {
        unfit(plan, summary, &[], metric, *cell).is_none() && all(*cell, &|outcome| outcome != BoundOutcome::Missed)
    };
    let mut fields: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
    for (set, cells) in comparable(plan, summary, &[best]).into_iter().enumerate() {
        for cell in cells.into_iter().filter(may_win) {
            fields.entry((set, plan.cells[cell].group)).or_default().push(cell);
        }
    }
    let mut open = BTreeSet::new();
    for mut field in fields.into_values() {
        sort_by_estimate(summary, metric, &mut field);
        let keeper = field.iter().copied().find(|cell| all(*cell, &|outcome| outcome == BoundOutcome::Kept));
        for leader in field.first().copied().into_iter().chain(keeper) {
            let rivals = field.iter().copied().filter(|cell| *cell != leader && is_open(leader, *cell));
            open.extend(rivals.flat_map(|cell| [leader, cell]));
        }
    }
    open
}

fn of_group(plan: &Plan, group: &Group, summary: &Summary, terms: &ComparisonRules) -> Progress {
    let runs = |cell: &u32| plan.cells[*cell as usize].skip.is_none();
    let cells: Vec<usize> = group.cells.iter().filter(|cell| runs(cell)).map(|cell| *cell as usize).collect();
    let needed = match group.baseline.filter(runs) {
        Some(baseline) if cells.len() > 1 => {
            let baseline = baseline as usize;
            let compared = cells.into_iter().filter(|cell| *cell != baseline);
            compared.map(|cell| of_pair(summary, baseline, cell, terms)).min()
        }
        _ => cells.into_iter().map(|cell| of_cell(&summary.cells[cell], terms)).min(),
    };
    needed.unwrap_or(Progress::Decided)
}

fn of_pair(summary: &Summary, baseline: usize, cell: usize, terms: &ComparisonRules) -> Progress {
    let is_over = |cell: usize| is_given_up(&summary.cells[cell]);
    if is_over(baseline) || is_over(cell) {
        return Progress::Hopeless;
    }
    let Some(compared) = compare_unasked(summary, baseline, cell, terms) else { return Progress::Open };
    match compared.withheld() {
        Some(withheld) if withheld.may_heal() => Progress::Open,
        Some(_) => Progress::Hopeless,
        None if compared.verdict.is_open() => Progress::Open,
        None => Progress::Decided,
    }
}

/// Runs of it failed alike, or its rehearsal did, so that no more are started. A run of a duet that was not started
/// because the other one failed is no such failure.
fn is_given_up(cell: &CellSummary) -> bool {
    cell.runs.not_run > 0 && (cell.runs.failed > 1 || cell.runs.completed == 0)
}

/// A cell that is compared with nothing is decided once its interval lies within the margin of its estimate.
fn of_cell(cell: &CellSummary, terms: &ComparisonRules) -> Progress {
    let metric = cell.compared_by(cell);
    let estimate = cell.estimate_of(metric).filter(|_| cell.has_enough_runs());
    let width = estimate.and_then(|found| found.relative_half_width());
    match width {
        // More runs at the same rate are late as seldom.
        _ if is_given_up(cell) || cell.bound_of(metric).is_some() => Progress::Hopeless,
        Some(width) if width <= terms.margin_of(metric) => Progress::Decided,
        _ => Progress::Open,
    }
}
