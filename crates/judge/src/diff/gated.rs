//! Whether a gate holds (method 6.8).
//!
//! A row that cannot be judged fails the gate, unless `--allow-unjudged` is given.

use super::found::{Found, Reason};
use super::gate::{Accepted, Asked, GateOutcome, GateRow, Gated, Gating, Held};
use super::rows::{Row, Sides, by_id};
use super::{DiffOptions, Side};
use base::metric::{Difference, Direction, MetricReference};
use experiment::{Axis, telling_axes};
use statistics::unpaired::SessionSpread;

/// Judges every row that the gate asks for, and notes in it what was found.
///
/// The rows are one question: each has an interval of its share of the level, which is the one that is shown (method 6.8).
pub(super) fn judge(
    rows: &mut [Row],
    baseline: &Side,
    candidate: &Side,
    gating: &Gating,
    terms: &DiffOptions,
    spread: SessionSpread,
) -> Gated {
    let sides = Sides::new(baseline, candidate, terms, spread);
    let (before, after) = (by_id(&baseline.results), by_id(&candidate.results));
    let is_quick = baseline.results.measured.quick || candidate.results.measured.quick;
    let pair = |row: &Row| Some((*before.get(&row.cell)?, *after.get(&row.cell)?));
    let is_uncertain =
        |row: &&Row| row.p.is_some() && gating.of_row(row).is_some_and(|asked| is_weighed(row, asked, is_quick));
    let together = rows.iter().filter(is_uncertain).count();
    for row in rows.iter_mut() {
        let Some(asked) = gating.of_row(row).filter(|_| !matches!(row.reason, Reason::Neither { .. })) else {
            continue;
        };
        let worse_by = asked.worse_by.unwrap_or(row.margin);
        let judged = |margin: Difference| sides.judge(pair(row)?, row.metric, margin, together);
        let (outcome, found) = match is_weighed(row, asked, is_quick) {
            true => (Held::Unjudged, judged(worse_by)),
            false => (outcome_unseen(row, is_quick), None),
        };
        // One row is judged as it is without a gate.
        let shown = found.as_ref().filter(|_| together > 1).and_then(|_| judged(row.margin));
        let fails_undecided = gating.fails_undecided || asked.fails_undecided;
        let mut gate = GateRow { worse_by, outcome, verdict: None, detectable: None, is_near: false, accepted: None };
        if let Some(found) = found {
            gate.outcome = held(&found, fails_undecided);
            gate.is_near = is_near(&found, worse_by, row.metric.metric.direction);
            (gate.verdict, gate.detectable) = (Some(found.verdict), found.detectable);
            // The interval that decided.
            row.change = found.change;
        } else if row.reason == Reason::Unchanged {
            gate.verdict = row.verdict;
        }
        if let Some(shown) = shown {
            (row.verdict, row.reason) = (Some(shown.verdict), shown.reason);
        }
        row.gate = Some(gate);
    }
    accept(rows, gating);
    count(rows, gating, together)
}

/// Whether numbers decide about the row. A number of milliseconds says nothing of a rate.
fn is_weighed(row: &Row, asked: &Asked, is_quick: bool) -> bool {
    !is_quick && row.reason.is_judged() && row.reason != Reason::Unchanged && !asked.is_foreign_to(row)
}

/// What a row comes to of which no numbers decide.
fn outcome_unseen(row: &Row, is_quick: bool) -> Held {
    match row.reason {
        Reason::New | Reason::Gained { .. } => Held::New,
        Reason::Unchanged if !is_quick => Held::Holds,
        _ => Held::Unjudged,
    }
}

fn held(found: &Found, fails_undecided: bool) -> Held {
    match (found.verdict.is_regression(), found.is_no_worse) {
        (true, _) => Held::Falls,
        (false, true) => Held::Holds,
        (false, false) if fails_undecided => Held::Falls,
        (false, false) => Held::Undecided,
    }
}

/// Whether the end of the interval that decided is nearer to what is allowed than half the interval's width.
fn is_near(found: &Found, allowed: Difference, direction: Direction) -> bool {
    let (Difference::Relative(allowed), Some(change)) = (allowed, &found.change) else { return false };
    let Some(interval) = change.interval().filter(|_| !change.is_in_points) else { return false };
    // The margin is one of ratios, to whichever side is worse.
    let (nearest, bound) = match (direction == Direction::HigherIsBetter, found.verdict.is_regression()) {
        (false, true) => (interval.low, allowed),
        (false, false) => (interval.high, allowed),
        (true, true) => (interval.high, (1.0 + allowed).recip() - 1.0),
        (true, false) => (interval.low, (1.0 + allowed).recip() - 1.0),
    };
    (nearest - bound).abs() < interval.half_width() && (found.verdict.is_regression() || found.is_no_worse)
}

fn accept(rows: &mut [Row], gating: &Gating) {
    let axes = telling_axes(rows.iter().map(|row| &row.names));
    for row in rows {
        let accepted = gating.acceptance(row, &axes).map(|accepted| accepted.reason.clone());
        if let Some((gate, reason)) = row.gate.as_mut().zip(accepted)
            && matches!(gate.outcome, Held::Falls | Held::Undecided | Held::Unjudged)
        {
            gate.outcome = Held::Accepted;
            gate.accepted = Some(reason);
        }
    }
}

fn count(rows: &[Row], gating: &Gating, together: usize) -> Gated {
    let count_of =
        |outcome: Held| rows.iter().filter_map(|row| row.gate.as_ref()).filter(|gate| gate.outcome == outcome).count();
    let (holds, fell, undecided, unjudged) =
        (count_of(Held::Holds), count_of(Held::Falls), count_of(Held::Undecided), count_of(Held::Unjudged));
    let accepted = count_of(Held::Accepted);
    let judged = holds + fell + undecided + accepted;
    let without_rows = gating.without_rows(rows);
    // Where the older side has nothing, there is nothing to become worse than.
    let new = count_of(Held::New);
    let is_blind = (judged == 0 && new == 0) || unjudged > 0 || !without_rows.is_empty();
    let outcome = if fell > 0 || (is_blind && !gating.allows_unjudged) {
        GateOutcome::Failed
    } else if undecided > 0 {
        GateOutcome::Undecided
    } else {
        GateOutcome::Passed
    };
    Gated {
        outcome,
        together,
        asked: judged + unjudged,
        judged,
        fell,
        undecided,
        accepted,
        new,
        without_rows,
        accepts_nothing: gating.accepts_nothing(rows),
        allows_unjudged: gating.allows_unjudged,
    }
}

impl Asked {
    /// A number in the unit of latency says nothing of a row with another metric.
    fn is_foreign_to(&self, row: &Row) -> bool {
        self.metric != row.metric && matches!(self.worse_by, Some(Difference::Absolute(_)))
    }
}

impl Gating {
    /// What is asked of a row: the strictest that the newer side asks, else that the older one asked. A number in the unit of
    /// latency comes last where the row has another metric.
    fn of_row(&self, row: &Row) -> Option<&Asked> {
        let is_in = |asked: &&Asked| asked.cells.as_ref().is_none_or(|cells| cells.contains(&row.cell));
        let value = row.baseline.or(row.candidate).map_or(1.0, |known| known.value);
        let strictness = |asked: &Asked| asked.worse_by.unwrap_or(row.margin).absolute_of(value);
        let of_side = |is_older: bool| {
            let all = self.asked.iter().filter(|asked| row.is_about(asked.metric) && asked.is_older == is_older);
            all.filter(is_in).min_by(|a, b| {
                let by_unit = a.is_foreign_to(row).cmp(&b.is_foreign_to(row));
                by_unit.then(strictness(a).total_cmp(&strictness(b)))
            })
        };
        of_side(false).or_else(|| of_side(true))
    }

    /// Metrics that are gated and of which there is no row.
    fn without_rows(&self, rows: &[Row]) -> Vec<String> {
        let is_there = |metric: &MetricReference| rows.iter().any(|row| row.is_about(*metric) && row.gate.is_some());
        let mut found: Vec<String> =
            self.metrics().filter(|metric| !is_there(metric)).map(|metric| metric.to_string()).collect();
        found.extend(self.unknown.iter().cloned());
        found.sort();
        found.dedup();
        found
    }

    /// The line that accepts a row: by what tables call its cell, by its whole path, or by its id.
    fn acceptance(&self, row: &Row, axes: &[Axis]) -> Option<&Accepted> {
        let cells = [row.names.on(axes), row.path(), row.cell.to_string()];
        let metrics = [row.asked.to_string(), row.metric.to_string()];
        self.accepted.iter().find(|it| cells.contains(&it.cell) && metrics.contains(&it.metric))
    }

    /// Lines that name no row that is gated.
    fn accepts_nothing(&self, rows: &[Row]) -> Vec<String> {
        let axes = telling_axes(rows.iter().map(|row| &row.names));
        let gated = || rows.iter().filter(|row| row.gate.is_some());
        let is_idle = |line: &&Accepted| !gated().any(|row| self.acceptance(row, &axes) == Some(*line));
        self.accepted.iter().filter(is_idle).map(|line| format!("{} {}", line.cell, line.metric)).collect()
    }
}
