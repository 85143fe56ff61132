//! Summary -> what may be claimed: verdicts on each cell against its baseline, the controls that they rest on, and what
//! follows for the whole record (method 6 and 8).
//!
//! Pure: no file, no clock. A verdict is unknown unless evidence says otherwise, and always has a reason.

pub mod calibration;
pub mod choose;
mod comparable;
pub mod control;
pub mod family;
mod gated_pairs;
mod goals;
pub mod need;
mod one_sided;
pub mod pair;
pub mod pareto;
pub mod proposal;
pub mod rules;
pub(crate) mod score;
mod tie;
pub(crate) mod unpaired;
mod withheld;

pub use calibration::{Calibration, calibrate};
pub use choose::{Choice, choose};
pub use comparable::Unfit;
pub use control::Control;
pub(crate) use control::DetectableEffect;
pub use family::Family;
pub use goals::{GoalCheck, GoalOutcome};
pub use pair::{Comparison, Reason};
pub use pareto::{Tradeoff, tradeoffs};
pub use rules::ComparisonRules;
pub use withheld::Withheld;

use crate::summary::Summary;
use base::metric::{CPU_TIME, MetricReference, PEAK_RSS};
use plan::Plan;
use record::Manifest;

use pair::{compare_cells, compare_unasked};

/// Everything that is judged in one record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Each cell against its baseline, in plan order.
    pub comparisons: Vec<Comparison>,
    /// The tails of the same pairs, where their runs have enough samples; no gate rests on them.
    pub tails: Vec<Comparison>,
    /// The peak memory of the same pairs, and of commands their CPU time, which other processes hardly change; no gate rests on
    /// them.
    pub resources: Vec<Comparison>,
    /// Whether the cells of a group differ at all, for groups of three and more.
    pub families: Vec<Family>,
    /// The A/A comparisons, in the order of the plan's controls.
    pub controls: Vec<Control>,
    /// How small a difference can be seen here.
    pub detectable_effect: DetectableEffect,
    /// What each group took, where runs go by need.
    pub efforts: Vec<need::Effort>,
    /// What is best, by the specification's question or by speed; absent where nothing is compared.
    pub choice: Option<Choice>,
    /// The specification's promises, in its order.
    pub goals: Vec<GoalCheck>,
    /// The cells that give and take between two metrics, one entry for each set that can stand in for each other.
    pub tradeoffs: Vec<Tradeoff>,
}

impl Judged {
    /// The control that failed, if one did.
    pub fn failed_control(&self) -> Option<&Control> {
        self.controls.iter().find(|control| control.has_failed())
    }
}

/// The comparisons of [`judge`] and nothing else that is judged: what a table shows while a record grows.
pub fn verdicts(manifest: &Manifest, summary: &Summary) -> Vec<Comparison> {
    let plan = &manifest.plan;
    let terms = ComparisonRules::of(manifest);
    let controls = control::controls(plan, summary, &terms);
    against_baseline(plan, &controls, |baseline, cell| compare_unasked(summary, baseline, cell, &terms))
}

/// Judges a record, complete or not.
pub fn judge(manifest: &Manifest, summary: &Summary) -> Judged {
    let plan = &manifest.plan;
    let terms = ComparisonRules::of(manifest);
    let controls = control::controls(plan, summary, &terms);
    let unasked = |baseline, cell| compare_unasked(summary, baseline, cell, &terms);
    let comparisons = against_baseline(plan, &controls, unasked);
    let tails = tails(plan, summary, &terms, &controls);
    let of_commands = manifest.experiment.backend.runs_commands().then_some(&CPU_TIME);
    let judged_too = [Some(&PEAK_RSS), of_commands].into_iter().flatten();
    let resources = judged_too.flat_map(|metric| {
        against_baseline(plan, &controls, |baseline, cell| {
            let is_alike = !summary.cells[baseline].has_another_batch(&summary.cells[cell]);
            is_alike.then(|| compare_cells(summary, baseline, cell, MetricReference::of(metric), &terms))?
        })
    });
    let resources = resources.collect();
    let mut judged = Judged {
        tails,
        resources,
        families: family::families(plan, summary),
        detectable_effect: control::detectable_effect(&controls, &comparisons, summary, manifest),
        comparisons,
        controls,
        efforts: need::efforts(manifest, summary),
        choice: None,
        goals: Vec::new(),
        tradeoffs: Vec::new(),
    };
    let question = manifest.experiment.choose.as_ref();
    let weighed = pareto::metrics(&manifest.experiment.pareto, question, accuracy(manifest));
    match question {
        Some(question) => judged.choice = Some(choose(plan, summary, &judged, &terms, question)),
        None => judged.choice = choose::fastest(plan, summary, &judged, &terms, tie::unasked(&weighed)),
    }
    judged.goals = goals::check(plan, summary, &judged, &terms, &manifest.experiment.goals);
    let is_listed = !manifest.experiment.pareto.is_empty();
    judged.tradeoffs = tradeoffs(plan, summary, &judged, &terms, &weighed, is_listed);
    judged
}

/// The tails of each comparison: p95 and p99 in the common blocks, where both support them, with the wider margin of tails
/// (method 6.1), in plan order. They are not adjusted for their number, since no gate rests on them.
fn tails(plan: &Plan, summary: &Summary, terms: &ComparisonRules, controls: &[Control]) -> Vec<Comparison> {
    against_baseline(plan, controls, |baseline, cell| {
        // Those of cells at rates of their own, or with other batches, are of other work.
        let is_comparable = summary.cells[cell].compared_by(&summary.cells[baseline]) == MetricReference::LATENCY;
        let is_supported = move |metric: &MetricReference| {
            is_comparable && [baseline, cell].iter().all(|index| summary.cells[*index].supports(*metric))
        };
        let supported = MetricReference::TAILS.into_iter().filter(is_supported);
        supported.filter_map(move |metric| compare_cells(summary, baseline, cell, metric, terms))
    })
}

/// What the data of the models say first.
fn accuracy(manifest: &Manifest) -> Option<MetricReference> {
    let first = manifest.accuracy().iter().flat_map(|known| &known.scores).next()?;
    Some(MetricReference::of(first.metric.metric()))
}

/// Every cell that has a baseline, against that, in plan order; without a verdict where a control failed.
pub(crate) fn against_baseline<Rows: IntoIterator<Item = Comparison>>(
    plan: &Plan,
    controls: &[Control],
    compare: impl Fn(usize, usize) -> Rows,
) -> Vec<Comparison> {
    let has_failed = controls.iter().any(Control::has_failed);
    let judged = |(baseline, cell): (usize, usize)| {
        let is_discredited = has_failed && control::is_discredited(plan, controls, cell);
        let reason = is_discredited.then_some(Withheld::ControlFailed);
        compare(baseline, cell).into_iter().map(move |row| row.withheld_for(reason))
    };
    plan.pairs().flat_map(judged).collect()
}
