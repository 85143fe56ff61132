//! Speed-ups of both sides, each against its own baseline: what may be said where neither machine nor settings are the
//! same.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::Side;
use super::unusable::Forbidden;
use crate::results::Comparison;
use base::metric::MetricReference;
use experiment::AxisMap;
use plan::CellId;
use statistics::{Claim as Claims, Verdict};

/// Whether what one side claims is so on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The same verdict.
    Holds,
    /// Another verdict.
    Fails,
    /// The other side is undecided.
    Open,
    /// The other side has no data for it.
    Absent,
}

impl Standing {
    /// The word of tables.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Holds => "holds",
            Standing::Fails => "does not hold",
            Standing::Open => "undecided",
            Standing::Absent => "not measured",
        }
    }
}

/// A ratio with its interval and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// Above 1 is better.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The stored word of the verdict.
    #[schemars(with = "String")]
    pub verdict: Verdict,
}

/// A cell against its baseline, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Id of the cell.
    pub cell: CellId,
    /// Its names by axis.
    #[serde(flatten)]
    #[schemars(schema_with = "crate::results::names_schema")]
    pub names: AxisMap<String>,
    /// Id of its baseline.
    pub against: CellId,
    /// What is compared, as users name it.
    pub metric: MetricReference,
    /// What the older side found.
    pub baseline: Ratio,
    /// What the newer side found.
    pub candidate: Ratio,
    /// Whether it is so there.
    pub standing: Standing,
}

/// The speed-ups that the older side claims and the newer one knows, in its order; where the older one claims nothing,
/// there is nothing to hold.
///
/// What a side measured of other files than its own is no claim of that side.
pub(super) fn claims(older: &Side, newer: &Side) -> Vec<Claim> {
    let (baseline, candidate) = (&older.results, &newer.results);
    let stale: HashSet<CellId> = [older, newer].into_iter().flat_map(stale_cells).collect();
    let known: HashMap<(CellId, CellId), &Comparison> =
        candidate.unasked().map(|row| ((row.cell, row.baseline), row)).collect();
    let names: HashMap<CellId, &AxisMap<String>> = baseline.cells.iter().map(|cell| (cell.id, &cell.names)).collect();
    let claim = |row: &Comparison| {
        if stale.contains(&row.cell) || stale.contains(&row.baseline) {
            return None;
        }
        let other = known.get(&(row.cell, row.baseline))?;
        let (from, to) = (row.verdict, other.verdict);
        Some(Claim {
            cell: row.cell,
            names: (*names.get(&row.cell)?).clone(),
            against: row.baseline,
            metric: row.metric,
            standing: standing(from, to)?,
            baseline: ratio(row, from),
            candidate: ratio(other, to),
        })
    };
    baseline.unasked().filter_map(claim).collect()
}

fn stale_cells(side: &Side) -> impl Iterator<Item = CellId> {
    let forbidden = Forbidden::new(side);
    side.results.cells.iter().filter(move |cell| forbidden.stale(cell).is_some()).map(|cell| cell.id)
}

/// `None` where the first side claims nothing.
pub fn standing(from: Verdict, to: Verdict) -> Option<Standing> {
    match (from.claim(), to.claim()) {
        (Claims::Nothing, _) => None,
        (_, Claims::Nothing) => Some(Standing::Open),
        _ if from == to => Some(Standing::Holds),
        _ => Some(Standing::Fails),
    }
}

fn ratio(row: &Comparison, verdict: Verdict) -> Ratio {
    Ratio { value: row.ratio, low: row.low, high: row.high, verdict }
}
