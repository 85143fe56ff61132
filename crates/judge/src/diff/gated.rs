//! Whether a gate holds (method 6.8).
//!
//! A row that cannot be judged fails the gate, unless `--allow-unjudged` is given.

use super::found::Reason;
use super::gate::{Accepted, Asked, FailOn, GateRow, Gated, Gating, Held};
use super::rows::{Row, Sides, by_id};
use super::{DiffOptions, Side};
use crate::results::Cell;
use base::metric::{Difference, MetricReference};
use statistics::Verdict;
use statistics::multiplicity::{LEVEL, holm};
use statistics::unpaired::SessionSpread;

/// Judges every row that the gate asks for, and notes in it what was found.
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
    let mut weighed = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let Some(asked) = gating.of_row(row).filter(|_| !matches!(row.reason, Reason::Neither { .. })) else {
            continue;
        };
        let worse_by = asked.worse_by.unwrap_or(row.margin);
        let pair = before.get(&row.cell).copied().zip(after.get(&row.cell).copied());
        let (outcome, verdict, tested) = outcome(row, pair, &sides, asked, gating, is_quick);
        weighed.extend(tested.map(|tested| (index, tested)));
        row.gate = Some(GateRow { worse_by, outcome, verdict, p_holm: None, together: 0, accepted: None });
    }
    adjust(rows, &weighed, gating);
    accept(rows, gating);
    count(rows, gating)
}

/// What a row comes to before many of them are weighed together, and the p value that counts among them.
fn outcome(
    row: &Row,
    pair: Option<(&Cell, &Cell)>,
    sides: &Sides<'_>,
    asked: &Asked,
    gating: &Gating,
    is_quick: bool,
) -> (Held, Option<Verdict>, Option<Tested>) {
    if matches!(row.reason, Reason::New | Reason::Gained { .. }) {
        return (Held::New, None, None);
    }
    if is_quick || !row.reason.is_judged() {
        return (Held::Unjudged, None, None);
    }
    if row.reason == Reason::Unchanged {
        return (Held::Holds, row.verdict, None);
    }
    // A number of milliseconds says nothing of a rate.
    if asked.is_foreign_to(row) {
        return (Held::Unjudged, None, None);
    }
    let found = pair.and_then(|(from, to)| sides.judge(from, to, row.metric, asked.worse_by.unwrap_or(row.margin)));
    let Some(found) = found else { return (Held::Unjudged, None, None) };
    let is_worse = found.verdict.is_regression();
    let falls = is_worse && gating.fail_on.contains(&FailOn::Worse)
        || found.verdict.is_open() && gating.fail_on.contains(&FailOn::Inconclusive);
    let tested = found.p.map(|p| Tested { p, is_worse });
    (if falls { Held::Falls } else { Held::Holds }, Some(found.verdict), tested)
}

/// A row among those that are weighed together.
#[derive(Clone, Copy)]
struct Tested {
    p: f64,
    /// It falls for being worse, not for being open.
    is_worse: bool,
}

/// A row that is worse falls only if chance hardly makes one of so many look so (Holm 1979).
fn adjust(rows: &mut [Row], tested: &[(usize, Tested)], gating: &Gating) {
    let is_open_enough = gating.fail_on.contains(&FailOn::Inconclusive);
    let raw: Vec<f64> = tested.iter().map(|(_, tested)| tested.p).collect();
    let Some(adjusted) = holm(&raw) else { return };
    for ((index, tested), p) in tested.iter().zip(adjusted) {
        let Some(gate) = rows[*index].gate.as_mut() else { continue };
        gate.p_holm = Some(p);
        gate.together = raw.len();
        // Where what is open falls, so does what may be chance.
        if gate.outcome == Held::Falls && tested.is_worse && p > LEVEL && !is_open_enough {
            gate.outcome = Held::Holds;
        }
    }
}

fn accept(rows: &mut [Row], gating: &Gating) {
    for row in rows {
        let accepted = gating.acceptance(row).map(|accepted| accepted.reason.clone());
        if let Some((gate, reason)) = row.gate.as_mut().zip(accepted)
            && matches!(gate.outcome, Held::Falls | Held::Unjudged)
        {
            gate.outcome = Held::Accepted;
            gate.accepted = Some(reason);
        }
    }
}

fn count(rows: &[Row], gating: &Gating) -> Gated {
    let of =
        |outcome: Held| rows.iter().filter_map(|row| row.gate.as_ref()).filter(|gate| gate.outcome == outcome).count();
    let (holds, fell, unjudged) = (of(Held::Holds), of(Held::Falls), of(Held::Unjudged));
    let accepted = of(Held::Accepted);
    let judged = holds + fell + accepted;
    let without_rows = gating.without_rows(rows);
    // Where the older side has nothing, there is nothing to become worse than.
    let new = of(Held::New);
    let is_blind = (judged == 0 && new == 0) || unjudged > 0 || !without_rows.is_empty();
    Gated {
        is_fallen: fell > 0 || (is_blind && !gating.allows_unjudged),
        asked: judged + unjudged,
        judged,
        fell,
        accepted,
        new,
        without_rows,
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
            let all = self.asked.iter().filter(|asked| row.tells(asked.metric) && asked.is_older == is_older);
            all.filter(is_in).min_by(|one, other| {
                let by_unit = one.is_foreign_to(row).cmp(&other.is_foreign_to(row));
                by_unit.then(strictness(one).total_cmp(&strictness(other)))
            })
        };
        of_side(false).or_else(|| of_side(true))
    }

    /// Metrics that are gated and of which there is no row.
    fn without_rows(&self, rows: &[Row]) -> Vec<String> {
        let is_there = |metric: &MetricReference| rows.iter().any(|row| row.tells(*metric) && row.gate.is_some());
        let mut found: Vec<String> =
            self.metrics().filter(|metric| !is_there(metric)).map(|metric| metric.to_string()).collect();
        found.extend(self.unknown.iter().cloned());
        found.sort();
        found.dedup();
        found
    }

    fn acceptance(&self, row: &Row) -> Option<&Accepted> {
        let path = row.path();
        let metrics = [row.asked.to_string(), row.metric.to_string()];
        self.accepted
            .iter()
            .find(|it| (it.cell == path || it.cell == row.cell.to_string()) && metrics.contains(&it.metric))
    }
}
