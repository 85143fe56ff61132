//! What may be said about results: the rules by which verdicts and bounds become claims (method 6.12).
//!
//! Input: verdicts, bounds and loads. Output: [`Claim`]s, which sentences put into words. Pure, and the same for results that
//! were just made and for files that store none. Deliberately absent: words, and any claim that a pair without a verdict takes
//! part in.

use super::claim::{Claim, Evidence, Kind, Topic};
use super::{BoundCheck, BoundOutcome, BoundedCell, Cell, Choice, Comparison, Ranking, Results, load};
use base::metric::MetricReference;
use plan::CellId;
use quality::accuracy::Score;
use statistics::interval::Estimate;

impl Comparison {
    /// The same pair with cell and baseline swapped.
    fn swapped(&self) -> Self {
        let inverse = |end: Option<f64>| end.map(f64::recip);
        Comparison {
            cell: self.baseline,
            baseline: self.cell,
            ratio: self.ratio.recip(),
            low: inverse(self.high),
            high: inverse(self.low),
            verdict: self.verdict.swapped(),
            ..self.clone()
        }
    }
}

/// The pairs of a ranking, each looked at from both sides.
struct Pairs<'a> {
    ranking: &'a Ranking,
}

impl Pairs<'_> {
    fn pair(&self, cell: CellId, other: CellId) -> Option<Comparison> {
        let find = |cell: CellId, other: CellId| {
            self.ranking.evidence.iter().find(|row| row.cell == cell && row.baseline == other)
        };
        find(cell, other).cloned().or_else(|| find(other, cell).map(Comparison::swapped))
    }

    /// Every pair of a set; `None` where one was not compared.
    fn all(&self, cells: &[CellId]) -> Option<Vec<Comparison>> {
        let pairs_from = |index: usize| cells[index + 1..].iter().map(move |other| (cells[index], *other));
        (0..cells.len()).flat_map(pairs_from).map(|(cell, other)| self.pair(cell, other)).collect()
    }
}

/// Everything that may be said about these results.
pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(choice) = results.choice.as_ref().filter(|choice| choice.failed_control.is_none()) {
        for (number, ranking) in choice.rankings.iter().enumerate() {
            of_ranking(choice, ranking, Topic::Answer(number), &mut claims);
        }
        for (number, bound) in choice.bounds.iter().enumerate() {
            of_bound(bound, Topic::Bound(number), &mut claims);
        }
    }
    for (number, goal) in results.goals.iter().enumerate().filter(|(_, goal)| !goal.withheld) {
        of_bound(&goal.check, Topic::Goal(number), &mut claims);
    }
    claims.extend(results.cells.iter().flat_map(of_scores));
    claims.extend(load::claims(results));
    claims
}

fn of_ranking(choice: &Choice, ranking: &Ranking, topic: Topic, claims: &mut Vec<Claim>) {
    let pairs = Pairs { ranking };
    let by = ranking.evidence.first().map_or(choice.asked(), |row| row.metric);
    claims.extend(of_set(&pairs, by, &ranking.best, topic));
    let better = |row: &Comparison| {
        let Comparison { ratio, low, high, .. } = *row;
        let kind = Kind::Better { ratio, low, high };
        let (cells, rests_on) = (vec![row.cell, row.baseline], vec![Evidence::of_pair(row)]);
        Claim { topic, kind, metric: row.metric, cells, rests_on }
    };
    claims.extend(ranking.evidence.iter().filter(|row| row.verdict.is_improvement()).map(better));
    // What is tied with the best is equivalent to it.
    for row in ranking.evidence.iter().filter(|row| !ranking.best.contains(&row.baseline)) {
        if row.verdict.is_equivalent() {
            claims.extend(of_set(&pairs, row.metric, &[row.cell, row.baseline], topic));
        }
    }
    claims.extend(ranking.ties.iter().filter(|row| row.verdict.is_improvement()).map(better));
}

/// How each score stands to the reference's on the same items.
fn of_scores(cell: &Cell) -> impl Iterator<Item = Claim> {
    let claim_of = |score: Score| {
        let change = score.change?;
        let is_equal = match (change.lost.zip(change.gained), change.interval) {
            (Some(items), _) => items == (0, 0),
            (None, Some(it)) => it.low == 0.0 && it.high == 0.0,
            (None, None) => change.difference == 0.0,
        };
        let kind = match (is_equal, score.is_significant(), score.is_worse()) {
            (true, ..) => Kind::AsAccurate,
            (_, false, _) => Kind::NotToldApart { low: None, high: None },
            (_, true, true) => Kind::LessAccurate,
            (_, true, false) => Kind::MoreAccurate,
        };
        let difference = Estimate { value: change.difference, interval: change.interval, ..score.estimate };
        let rests_on = vec![Evidence::of_estimate(cell.id, &difference)];
        let metric = MetricReference::of(score.metric.metric());
        Some(Claim { topic: Topic::Accuracy, kind, metric, cells: vec![cell.id], rests_on })
    };
    cell.scores().into_iter().filter_map(claim_of)
}

/// Whether the cells of a set are equivalent; a single cell is no set, and of a set with a difference in it nothing is said.
fn of_set(pairs: &Pairs<'_>, metric: MetricReference, cells: &[CellId], topic: Topic) -> Option<Claim> {
    if cells.len() < 2 {
        return None;
    }
    let rows = pairs.all(cells).unwrap_or_default();
    if rows.iter().any(|row| row.verdict.is_difference()) {
        return None;
    }
    let mut rests_on: Vec<Evidence> = rows.iter().map(Evidence::of_pair).collect();
    rests_on.sort_by(|a, b| b.width().total_cmp(&a.width()));
    let kind = match !rows.is_empty() && rows.iter().all(|row| row.verdict.is_equivalent()) {
        true => Kind::Equivalent,
        false => {
            let widest = rests_on.first().filter(|row| row.low.is_some());
            Kind::NotToldApart { low: widest.and_then(|row| row.low), high: widest.and_then(|row| row.high) }
        }
    };
    Some(Claim { topic, kind, metric, cells: cells.to_vec(), rests_on })
}

/// One claim for the cells that keep a bound, one for those that miss it, one for the undecided.
fn of_bound(check: &BoundCheck, topic: Topic, claims: &mut Vec<Claim>) {
    let kinds = [
        (BoundOutcome::Kept, Kind::Kept),
        (BoundOutcome::Missed, Kind::Missed),
        (BoundOutcome::Undecided, Kind::Undecided),
    ];
    for (outcome, kind) in kinds {
        let cells: Vec<&BoundedCell> = check.cells.iter().filter(|cell| cell.outcome == outcome).collect();
        if !cells.is_empty() {
            claims.push(Claim {
                topic,
                kind,
                metric: check.metric,
                cells: cells.iter().map(|cell| cell.cell).collect(),
                rests_on: cells.into_iter().map(Evidence::of_bounded).collect(),
            });
        }
    }
}
