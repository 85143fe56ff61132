//! What may be said about cells: claims, each of a closed list of kinds, with what it rests on (method 6.12).
//!
//! Input: verdicts and bounds. Output: [`Claim`]s, which sentences put into words. Pure, and the same for results that were
//! just made and for files that store none. Deliberately absent: words, and any claim that a pair without a verdict takes
//! part in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BoundCheck, BoundOutcome, BoundedCell, Choice, Comparison, Contest, Results};
use base::metric::MetricReference;
use plan::CellId;

/// A statement that can be checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What it belongs to.
    pub place: Place,
    /// What is said.
    #[serde(flatten)]
    pub kind: Kind,
    /// By which metric, as users name it.
    pub metric: MetricReference,
    /// Ids of the cells that it is about: the better one first, or a set in the order of the answer.
    pub cells: Vec<CellId>,
    /// The comparisons or estimates that it rests on: of each pair of a set, or of each cell.
    pub rests_on: Vec<Evidence>,
}

/// What a claim belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A set of cells that could stand in for each other, by its number in `choice.contests`.
    Answer(usize),
    /// A bound of the question, by its number in `choice.bounds`.
    Bound(usize),
    /// A goal, by its number.
    Goal(usize),
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Kind {
    /// The first cell is better than the second: faster, of a higher rate, smaller.
    Better {
        /// By so much: above 1.
        ratio: f64,
        /// At least, unless that is the margin by so much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// At most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// No two of them differ by more than the margin.
    Equivalent,
    /// Some two of them may differ by more than the margin, and none was found to be better than another.
    NotToldApart {
        /// Of the pair with the widest interval, the ratio of the first to the second of `rests_on`'s first row; absent where a
        /// pair has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// Its upper end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// The cells keep the bound with their whole intervals.
    Kept,
    /// They miss it with their whole intervals, or a late share because queries came faster than they were served.
    Missed,
    /// Neither can be said of them.
    Undecided,
}

/// What a claim rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the cell.
    pub cell: CellId,
    /// Id of the cell that it is compared with; absent for an estimate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<CellId>,
    /// The ratio, above 1 where the first is better, or the value; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Common blocks, or runs.
    pub n: u64,
}

impl Evidence {
    fn of_pair(row: &Comparison) -> Self {
        let Comparison { cell, baseline, ratio, low, high, blocks, .. } = *row;
        Evidence { cell, against: Some(baseline), value: Some(ratio), low, high, n: blocks }
    }

    fn of_bounded(of: &BoundedCell) -> Self {
        let BoundedCell { cell, value, low, high, n, .. } = *of;
        Evidence { cell, against: None, value, low, high, n }
    }

    /// How far from each other its interval allows two cells to be; infinite without one.
    fn width(&self) -> f64 {
        self.low.zip(self.high).map_or(f64::INFINITY, |(low, high)| high.max(low.recip()))
    }
}

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

/// The pairs of a contest, each looked at from both sides.
struct Pairs<'a> {
    contest: &'a Contest,
}

impl Pairs<'_> {
    fn of(&self, cell: CellId, other: CellId) -> Option<Comparison> {
        let find = |cell: CellId, other: CellId| {
            self.contest.evidence.iter().find(|row| row.cell == cell && row.baseline == other)
        };
        find(cell, other).cloned().or_else(|| find(other, cell).map(Comparison::swapped))
    }

    /// Every pair of a set; `None` where one was not compared.
    fn all(&self, cells: &[CellId]) -> Option<Vec<Comparison>> {
        let others = |place: usize| cells[place + 1..].iter().map(move |other| (cells[place], *other));
        (0..cells.len()).flat_map(others).map(|(cell, other)| self.of(cell, other)).collect()
    }
}

/// Everything that may be said about these results.
pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(choice) = results.choice.as_ref().filter(|choice| choice.failed_control.is_none()) {
        for (number, contest) in choice.contests.iter().enumerate() {
            of_contest(choice, contest, Place::Answer(number), &mut claims);
        }
        for (number, bound) in choice.bounds.iter().enumerate() {
            of_bound(bound, Place::Bound(number), &mut claims);
        }
    }
    for (number, goal) in results.goals.iter().enumerate().filter(|(_, goal)| !goal.withheld) {
        of_bound(&goal.check, Place::Goal(number), &mut claims);
    }
    claims
}

fn of_contest(choice: &Choice, contest: &Contest, place: Place, claims: &mut Vec<Claim>) {
    let pairs = Pairs { contest };
    let by = contest.evidence.first().map_or(choice.asked(), |row| row.metric);
    claims.extend(of_set(&pairs, by, &contest.best, place));
    let better = |row: &Comparison| {
        let Comparison { ratio, low, high, .. } = *row;
        let kind = Kind::Better { ratio, low, high };
        let (cells, rests_on) = (vec![row.cell, row.baseline], vec![Evidence::of_pair(row)]);
        Claim { place, kind, metric: row.metric, cells, rests_on }
    };
    claims.extend(contest.evidence.iter().filter(|row| row.verdict.is_improvement()).map(better));
    // What is tied with the best is equivalent to it.
    for row in contest.evidence.iter().filter(|row| !contest.best.contains(&row.baseline)) {
        if row.verdict.is_equivalent() {
            claims.extend(of_set(&pairs, row.metric, &[row.cell, row.baseline], place));
        }
    }
    claims.extend(contest.ties.iter().filter(|row| row.verdict.is_improvement()).map(better));
}

/// Whether the cells of a set are equivalent; a single cell is no set, and of a set with a difference in it nothing is said.
fn of_set(pairs: &Pairs<'_>, metric: MetricReference, cells: &[CellId], place: Place) -> Option<Claim> {
    if cells.len() < 2 {
        return None;
    }
    let rows = pairs.all(cells).unwrap_or_default();
    if rows.iter().any(|row| row.verdict.is_difference()) {
        return None;
    }
    let mut rests_on: Vec<Evidence> = rows.iter().map(Evidence::of_pair).collect();
    rests_on.sort_by(|one, other| other.width().total_cmp(&one.width()));
    let kind = match !rows.is_empty() && rows.iter().all(|row| row.verdict.is_equivalent()) {
        true => Kind::Equivalent,
        false => {
            let widest = rests_on.first().filter(|row| row.low.is_some());
            Kind::NotToldApart { low: widest.and_then(|row| row.low), high: widest.and_then(|row| row.high) }
        }
    };
    Some(Claim { place, kind, metric, cells: cells.to_vec(), rests_on })
}

/// One claim for the cells that keep a bound, one for those that miss it, one for the others.
fn of_bound(check: &BoundCheck, place: Place, claims: &mut Vec<Claim>) {
    let kinds = [
        (BoundOutcome::Kept, Kind::Kept),
        (BoundOutcome::Missed, Kind::Missed),
        (BoundOutcome::Undecided, Kind::Undecided),
    ];
    for (outcome, kind) in kinds {
        let cells: Vec<&BoundedCell> = check.cells.iter().filter(|cell| cell.outcome == outcome).collect();
        if !cells.is_empty() {
            claims.push(Claim {
                place,
                kind,
                metric: check.metric,
                cells: cells.iter().map(|cell| cell.cell).collect(),
                rests_on: cells.into_iter().map(Evidence::of_bounded).collect(),
            });
        }
    }
}

impl Results {
    /// What is claimed in one place.
    pub fn claims_in(&self, place: Place) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| claim.place == place)
    }
}
