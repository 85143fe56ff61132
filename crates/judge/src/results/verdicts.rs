//! Verdicts -> rows that name cells by their ids.

use serde::Serialize;
use serde_json::Value;

use super::digits::rounded;
use super::judged::{
    BoundFound, Bounded, Choice, Compared, Contest, Control, ControlOutcome, DetectableEffect, Effort, Entrant,
    FailedControl, Family, GoalFound, Kept, Point, Standing, Tradeoff, TradeoffPlace,
};
use super::metrics::columns;
use crate::compare::{self, Comparison, Judged, choose, control, need};
use crate::summary::{CellSummary, Summary};
use base::code::Code;
use base::metric::MetricReference;
use plan::Plan;
use statistics::interval::Interval;
use statistics::{Claim, Hint};

fn id(plan: &Plan, cell: usize) -> String {
    plan.cells.get(cell).map(|cell| cell.id.to_string()).unwrap_or_default()
}

fn ids(plan: &Plan, cells: &[usize]) -> Vec<String> {
    cells.iter().map(|cell| id(plan, *cell)).collect()
}

/// The stored word of an enum.
fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        // `{"failed": "operator"}` and the like: what it is, not its details.
        Ok(Value::Object(fields)) => match fields.get("kind") {
            Some(Value::String(word)) => word.clone(),
            _ => fields.into_iter().next().map(|(word, _)| word).unwrap_or_default(),
        },
        _ => String::new(),
    }
}

fn ends(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    (interval.map(|interval| rounded(interval.low)), interval.map(|interval| rounded(interval.high)))
}

pub(super) fn comparisons(plan: &Plan, summary: &Summary, judged: &Judged) -> Vec<Compared> {
    let row = |row: &Comparison| Compared {
        beside: summary.beside([row.cell, row.baseline]).map(rounded),
        ..compared(plan, row)
    };
    judged.comparisons.iter().chain(&judged.tails).chain(&judged.memory).map(row).collect()
}

fn compared(plan: &Plan, row: &Comparison) -> Compared {
    let (low, high) = ends(row.interval);
    let more_blocks = match row.hint {
        Some(Hint::NotEnoughData { more_blocks, .. } | Hint::SizeNotEstablished { more_blocks }) => {
            more_blocks.map(|blocks| blocks as u64)
        }
        _ => None,
    };
    Compared {
        cell: id(plan, row.cell),
        baseline: id(plan, row.baseline),
        metric: row.metric.key(),
        ratio: rounded(row.speedup),
        low,
        high,
        confidence: row.confidence,
        blocks: row.blocks as u64,
        margin: row.margin,
        verdict: row.verdict,
        reason: reason(row),
        beside: None,
        more_blocks,
        deviation: row.deviation.map(rounded),
        detectable: row.detectable.map(rounded),
        p: row.p.map(rounded),
    }
}

/// Why the verdict is what it is.
fn reason(row: &Comparison) -> String {
    match (row.withheld, row.verdict.claim(), &row.hint) {
        (Some(withheld), ..) => word(&withheld),
        (None, Claim::Difference, _) => "beyond_margin".to_owned(),
        (None, Claim::Sameness, _) => "within_margin".to_owned(),
        (None, Claim::Nothing, Some(hint)) => word(hint),
        (None, Claim::Nothing, None) => "not_enough_data".to_owned(),
    }
}

pub(super) fn controls(plan: &Plan, summary: &Summary, judged: &Judged) -> Vec<Control> {
    let is_merged = plan.groups.iter().any(|group| group.part > 0);
    let spoken_for = |control: usize| {
        let cells = (0..plan.cells.len()).filter(|cell| plan.speaks_for(control, *cell));
        cells.map(|cell| id(plan, cell)).collect::<Vec<String>>()
    };
    let row = |control: &control::Control| {
        let (low, high) = ends(control.interval);
        let double = summary.doubles.iter().find(|double| double.cell == control.cell);
        let runs = |arm: Option<&CellSummary>| arm.map(|arm| columns(arm, &[])).unwrap_or_default();
        let outcome = match control.code() {
            Some(Code::AaFailed) => ControlOutcome::Failed,
            Some(_) => ControlOutcome::Biased,
            None => ControlOutcome::Passed,
        };
        Control {
            cell: id(plan, control.cell),
            ratio: rounded(control.ratio),
            low,
            high,
            confidence: control.paired.confidence,
            blocks: control.paired.blocks as u64,
            margin: control.paired.margin,
            verdict: control.paired.verdict,
            deviation: control.paired.winsorised_deviation.map(rounded),
            detectable: control.paired.detectable_effect.map(rounded),
            outcome,
            cells: if is_merged { spoken_for(control.cell) } else { Vec::new() },
            runs: runs(double.map(|double| &double.summary)),
            twin_runs: runs(double.and_then(|double| double.twin.as_ref())),
        }
    };
    judged.controls.iter().map(row).collect()
}

pub(super) fn detectable_effect(of: &control::DetectableEffect) -> DetectableEffect {
    DetectableEffect {
        grade: of.grade.map(|grade| grade.letter().to_owned()),
        block_deviation: of.block_deviation.map(rounded),
        in_twelve_blocks: of.in_twelve_blocks.map(rounded),
        here: of.here.map(rounded),
        noisy_runs: of.noisy_runs,
    }
}

pub(super) fn efforts(plan: &Plan, judged: &Judged) -> Vec<Effort> {
    let row = |effort: &need::Effort| {
        let cells = &plan.groups[effort.group].cells;
        Effort {
            cells: cells.iter().map(|cell| id(plan, *cell as usize)).collect(),
            blocks: u64::from(effort.blocks),
            stopped: word(&effort.stopped),
        }
    };
    judged.efforts.iter().map(row).collect()
}

pub(super) fn families(plan: &Plan, judged: &Judged) -> Vec<Family> {
    let row = |family: &compare::Family| Family {
        cells: ids(plan, &family.cells),
        blocks: family.blocks as u64,
        p: family.p.map(rounded),
    };
    judged.families.iter().map(row).collect()
}

fn bounded(plan: &Plan, metric: MetricReference, cell: &choose::BoundedCell) -> Bounded {
    let (outcome, reason) = match cell.outcome {
        choose::BoundOutcome::Kept => (Kept::Kept, None),
        choose::BoundOutcome::Missed => (Kept::Missed, None),
        choose::BoundOutcome::Undecided(doubt) => (Kept::Undecided, Some(doubt)),
    };
    // Of a fact nothing is uncertain.
    let is_told = |interval: &Interval| !metric.metric.is_constant() || interval.low < interval.high;
    let (low, high) = ends(cell.estimate.and_then(|estimate| estimate.interval).filter(is_told));
    Bounded {
        cell: id(plan, cell.cell),
        value: cell.estimate.map(|estimate| rounded(estimate.value)),
        low,
        high,
        n: cell.estimate.map_or(0, |estimate| estimate.n as u64),
        pooled: cell.pooled,
        outcome,
        reason,
    }
}

pub(super) fn goals(plan: &Plan, judged: &Judged) -> Vec<GoalFound> {
    let row = |goal: &compare::GoalCheck| GoalFound {
        name: goal.name.clone(),
        metric: goal.check.bound.metric.key(),
        min: goal.check.bound.min,
        max: goal.check.bound.max,
        of: goal.check.bound.of.clone(),
        outcome: goal.outcome,
        withheld: goal.is_withheld(),
        cells: goal.check.cells.iter().map(|cell| bounded(plan, goal.check.bound.metric, cell)).collect(),
    };
    judged.goals.iter().map(row).collect()
}

fn standing(of: &choose::Standing) -> Standing {
    match of {
        choose::Standing::Unbeaten => Standing::Unbeaten,
        choose::Standing::Tied { .. } => Standing::Tied,
        choose::Standing::InDoubt { .. } => Standing::InDoubt,
        choose::Standing::Beaten { .. } => Standing::Beaten,
        choose::Standing::OutOfBounds { .. } => Standing::OutOfBounds,
        choose::Standing::Unfit { .. } => Standing::Unfit,
    }
}

pub(super) fn choice(plan: &Plan, judged: &Judged) -> Option<Choice> {
    let choice = judged.choice.as_ref()?;
    let entrant = |entrant: &choose::Entrant| Entrant {
        cell: id(plan, entrant.cell),
        standing: standing(&entrant.standing),
        other: match entrant.standing {
            choose::Standing::Beaten { by: cell } | choose::Standing::Tied { with: cell, .. } => Some(id(plan, cell)),
            _ => None,
        },
        metric: match entrant.standing {
            choose::Standing::InDoubt { bound } | choose::Standing::OutOfBounds { bound } => {
                choice.bounds.get(bound).map(|check| check.bound.metric.key())
            }
            choose::Standing::Tied { by, .. } => Some(by.key()),
            _ => None,
        },
        why: match entrant.standing {
            choose::Standing::Unfit { why } => Some(why),
            _ => None,
        },
    };
    let contest = |contest: &choose::Contest| Contest {
        entrants: contest.entrants.iter().map(entrant).collect(),
        best: ids(plan, &contest.best),
        // Of scores that are zero or below there is no ratio.
        evidence: contest
            .evidence
            .iter()
            .filter(|row| row.speedup.is_finite())
            .map(|row| compared(plan, row))
            .collect(),
    };
    let bound = |check: &choose::BoundCheck| BoundFound {
        metric: check.bound.metric.key(),
        min: check.bound.min,
        max: check.bound.max,
        of: check.bound.of.clone(),
        cells: check.cells.iter().map(|cell| bounded(plan, check.bound.metric, cell)).collect(),
    };
    Some(Choice {
        unasked: !choice.is_asked,
        metric: choice.best.key(),
        then: choice.then.iter().map(ToString::to_string).collect(),
        failed_control: choice
            .failed_control
            .map(|failed| FailedControl { cell: id(plan, failed.cell), difference: rounded(failed.difference) }),
        bounds: choice.bounds.iter().map(bound).collect(),
        contests: choice.contests.iter().map(contest).collect(),
    })
}

pub(super) fn tradeoffs(plan: &Plan, judged: &Judged) -> Vec<Tradeoff> {
    let point = |point: &compare::pareto::Point| Point {
        cell: id(plan, point.cell),
        place: match &point.place {
            compare::pareto::FrontierPlace::Frontier => TradeoffPlace::Frontier,
            compare::pareto::FrontierPlace::WithinNoise => TradeoffPlace::WithinNoise,
            compare::pareto::FrontierPlace::Dominated { .. } => TradeoffPlace::Dominated,
            compare::pareto::FrontierPlace::LeftOut { .. } => TradeoffPlace::LeftOut,
        },
        by: match &point.place {
            compare::pareto::FrontierPlace::Dominated { by } => ids(plan, by),
            _ => Vec::new(),
        },
        why: match &point.place {
            compare::pareto::FrontierPlace::LeftOut { why } => Some(*why),
            _ => None,
        },
    };
    let row = |tradeoff: &compare::Tradeoff| Tradeoff {
        metrics: tradeoff.metrics.iter().map(MetricReference::key).collect(),
        open: tradeoff.is_open,
        points: tradeoff.points.iter().map(point).collect(),
    };
    judged.tradeoffs.iter().map(row).collect()
}
