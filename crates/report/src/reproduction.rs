//! Whether what results claim holds in other results of the same specification: every verdict against a baseline, every
//! score, every goal and every choice.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::format::{judged_ratio, list, score, verdict_word};
use base::metric::{ACCURACY_TOP1, ACCURACY_TOP5, MAE, MetricReference, PEAK_RSS, R2, RMSE};
use experiment::{Axis, AxisMap, telling_axes};
use judge::compare::GoalOutcome;
use judge::diff::{Changes, DiffOptions, FORMAT, Reason, Row, Side, SideSeen, Standing, changes, diff, standing};
use judge::results::{self, Comparison, Kind, Ranking, Results, Status, Topic, schema_of};
use plan::CellId;
use record::provenance::frame_names;
use statistics::{Claim, Verdict};

/// What was claimed there, and what was found here.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reproduction {
    /// Version of this form.
    pub format: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// The results that claim.
    pub there: SideSeen,
    /// The results that were made to check them.
    pub here: SideSeen,
    /// In what the two differ.
    pub changes: Changes,
    /// Every claim, in the order of the report.
    pub claims: Vec<Checked>,
}

/// A claim, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Checked {
    /// What it is about: the path of a cell, the name of a goal, what is chosen among.
    pub of: String,
    /// What is claimed about it: a metric, `goal`, `choice`.
    pub what: String,
    /// What was found there, in words.
    pub there: String,
    /// What was found here.
    pub here: String,
    /// Whether it holds.
    pub standing: Standing,
}

/// The JSON Schema of what `reproduce --json` prints, as committed in `schemas/reproduction.schema.json`.
pub fn schema_text() -> String {
    schema_of::<Reproduction>()
}

/// Checks the claims of `there` by `here`.
pub fn reproduction(there: &Side, here: &Side) -> Reproduction {
    let names = Names::of(&there.results);
    let mut checked = comparisons(&there.results, &here.results, &names);
    checked.extend(scores(there, here, &names));
    checked.extend(goals(&there.results, &here.results));
    checked.extend(choices(&there.results, &here.results, &names));
    checked.extend(sets(&there.results, &here.results, &names));
    Reproduction {
        format: FORMAT,
        experiment: there.results.experiment.clone(),
        there: there.seen(),
        here: here.seen(),
        changes: changes(&there.results.provenance, &here.results.provenance),
        claims: checked,
    }
}

impl Reproduction {
    /// How many claims stand so.
    pub fn count(&self, standing: Standing) -> usize {
        self.claims.iter().filter(|claim| claim.standing == standing).count()
    }

    /// Some claim does not hold, or nothing could be decided.
    pub fn fails(&self) -> bool {
        self.count(Standing::Fails) > 0 || (!self.claims.is_empty() && self.count(Standing::Holds) == 0)
    }
}

/// What cells are called: by the axes on which they differ.
struct Names<'a> {
    cells: HashMap<CellId, &'a AxisMap<String>>,
    axes: Vec<Axis>,
}

impl<'a> Names<'a> {
    fn of(results: &'a Results) -> Self {
        let cells = results.cells.iter().filter(|cell| cell.status != Status::Skipped);
        Names {
            axes: telling_axes(cells.map(|cell| &cell.names)),
            cells: results.cells.iter().map(|cell| (cell.id, &cell.names)).collect(),
        }
    }

    fn cell(&self, id: CellId) -> String {
        self.cells.get(&id).map_or_else(|| id.to_string(), |names| names.on(&self.axes))
    }

    /// `mlp/b1/int8 against fp32`.
    fn pair(&self, cell: CellId, baseline: CellId) -> String {
        let other = match (self.cells.get(&cell), self.cells.get(&baseline)) {
            (Some(cell_names), Some(baseline_names)) => {
                let differ: Vec<Axis> =
                    Axis::ALL.into_iter().filter(|axis| cell_names[*axis] != baseline_names[*axis]).collect();
                baseline_names.on(&differ)
            }
            _ => baseline.to_string(),
        };
        format!("{} against {other}", self.cell(cell))
    }
}

/// What is said of each cell against its baseline.
fn comparisons(there: &Results, here: &Results, names: &Names<'_>) -> Vec<Checked> {
    let key = |row: &'_ Comparison| (row.cell, row.baseline, row.metric.key());
    let known: HashMap<_, &Comparison> = here.comparisons.iter().map(|row| (key(row), row)).collect();
    let checked = |row: &Comparison| {
        let claimed = row.verdict;
        let other = known.get(&key(row)).map(|other| (*other, other.verdict));
        let standing = match other {
            Some((_, found)) => standing(claimed, found)?,
            None if claimed.claim() == Claim::Nothing => return None,
            None => Standing::Absent,
        };
        Some(Checked {
            of: names.pair(row.cell, row.baseline),
            what: row.metric.to_string(),
            there: ratio(row, claimed),
            here: other.map_or_else(|| "-".to_owned(), |(row, found)| ratio(row, found)),
            standing,
        })
    };
    // Peak memory is reported with the speed, and is no claim of its own.
    let is_claim = |row: &&Comparison| row.metric != MetricReference::of(&PEAK_RSS);
    there.comparisons.iter().filter(is_claim).filter_map(checked).collect()
}

fn ratio(row: &Comparison, verdict: Verdict) -> String {
    let ratio = judged_ratio(row.ratio, row.interval(), row.margin);
    format!("{ratio} {}", verdict_word(&row.metric, verdict))
}

/// Scores on data, once for cells that differ in their input alone.
fn scores(there: &Side, here: &Side, names: &Names<'_>) -> Vec<Checked> {
    let metrics = [&ACCURACY_TOP1, &ACCURACY_TOP5, &MAE, &RMSE, &R2].map(MetricReference::of);
    // Scores depend on files and data, and on nothing of the frame.
    let allowed = frame_names().into_iter().map(str::to_owned).collect();
    let terms = DiffOptions { metrics: metrics.to_vec(), allowed, judges_unchanged: true, ..DiffOptions::default() };
    let mut seen = BTreeSet::new();
    let checked = |row: Row| {
        let before = row.baseline?;
        let variant = row.names.clone().without_input();
        let naming_axes: Vec<Axis> = names.axes.iter().copied().filter(|axis| variant[*axis] != Axis::ABSENT).collect();
        if !seen.insert((variant.clone(), row.metric.to_string())) {
            return None;
        }
        let standing = match (row.verdict.map(Verdict::claim), &row.reason) {
            (Some(Claim::Sameness), _) | (_, Reason::Unchanged) => Standing::Holds,
            (Some(Claim::Difference), _) => Standing::Fails,
            (Some(Claim::Nothing), _) => Standing::Open,
            (None, _) => Standing::Absent,
        };
        let value =
            |estimated: judge::results::Estimated| score(row.metric.metric, estimated.value, estimated.n as usize);
        Some(Checked {
            of: variant.on(&naming_axes),
            what: row.metric.to_string(),
            there: value(before),
            here: row.candidate.map_or_else(|| "-".to_owned(), value),
            standing,
        })
    };
    diff(there, here, &terms).rows.into_iter().filter_map(checked).collect()
}

fn goals(there: &Results, here: &Results) -> Vec<Checked> {
    let checked = |(index, goal): (usize, &judge::results::GoalCheck)| {
        // The specification is the same, and so is their order.
        let found =
            here.goals.get(index).filter(|other| other.check.metric == goal.check.metric).map(|other| other.outcome);
        let standing = match (goal.outcome, found) {
            (GoalOutcome::Undecided, _) => return None,
            (_, None) => Standing::Absent,
            (_, Some(GoalOutcome::Undecided)) => Standing::Open,
            (claimed, Some(found)) if claimed == found => Standing::Holds,
            _ => Standing::Fails,
        };
        Some(Checked {
            of: goal.name.clone().unwrap_or_else(|| goal.check.metric.to_string()),
            what: "goal".to_owned(),
            there: goal.outcome.name().to_owned(),
            here: found.map_or("-", GoalOutcome::name).to_owned(),
            standing,
        })
    };
    there.goals.iter().enumerate().filter_map(checked).collect()
}

/// Cells of an answer that are equivalent to each other there: so is every pair of them here.
fn sets(there: &Results, here: &Results, names: &Names<'_>) -> Vec<Checked> {
    let evidence = |results: &'_ Results| -> Vec<Comparison> {
        let rankings = results.choice.iter().flat_map(|choice| &choice.rankings);
        rankings.flat_map(|ranking| ranking.evidence.iter().cloned()).collect()
    };
    let here = evidence(here);
    let of_set = |claim: &results::Claim| {
        let is_pair = |row: &&Comparison| {
            row.metric == claim.metric && claim.cells.contains(&row.cell) && claim.cells.contains(&row.baseline)
        };
        let found: Vec<&Comparison> = here.iter().filter(is_pair).collect();
        let has = |claim: Claim| found.iter().any(|row| row.verdict.claim() == claim);
        let (standing, word) = match found.len() {
            _ if has(Claim::Difference) => (Standing::Fails, "not equivalent"),
            pairs if pairs < claim.rests_on.len() => (Standing::Absent, "-"),
            _ if has(Claim::Nothing) => (Standing::Open, "not told apart"),
            _ => (Standing::Holds, "equivalent"),
        };
        Checked {
            of: list(&claim.cells.iter().map(|id| names.cell(*id)).collect::<Vec<_>>()),
            what: claim.metric.to_string(),
            there: "equivalent".to_owned(),
            here: word.to_owned(),
            standing,
        }
    };
    let is_compared = |claim: &results::Claim| {
        let mut rows = there.compared_by(claim.metric);
        rows.any(|row| claim.cells == [row.cell, row.baseline] || claim.cells == [row.baseline, row.cell])
    };
    let is_set = |claim: &&results::Claim| claim.kind == Kind::Equivalent && matches!(claim.topic, Topic::Answer(_));
    there.claims.iter().filter(is_set).filter(|claim| !is_compared(claim)).map(of_set).collect()
}

/// What is best among cells that could stand in for each other, where that was one cell.
fn choices(there: &Results, here: &Results, names: &Names<'_>) -> Vec<Checked> {
    let rankings = |results: &'_ Results| -> Vec<Ranking> {
        results.choice.iter().filter(|choice| !choice.unasked).flat_map(|choice| choice.rankings.clone()).collect()
    };
    let here = rankings(here);
    let checked = |ranking: Ranking| {
        let [best] = &ranking.best[..] else { return None };
        let candidates =
            |ranking: &Ranking| ranking.candidates.iter().map(|candidate| candidate.cell).collect::<Vec<_>>();
        let found = here.iter().find(|other| candidates(other) == candidates(&ranking));
        let standing = match found.map(|found| found.best.as_slice()) {
            None | Some([]) => Standing::Absent,
            Some([found]) if found == best => Standing::Holds,
            Some([_]) => Standing::Fails,
            Some(several) if several.contains(best) => Standing::Open,
            Some(_) => Standing::Fails,
        };
        let paths = |ids: &[CellId]| list(&ids.iter().map(|id| names.cell(*id)).collect::<Vec<_>>());
        Some(Checked {
            of: format!("the best of {} cells", ranking.candidates.len()),
            what: "choice".to_owned(),
            there: names.cell(*best),
            here: found
                .filter(|found| !found.best.is_empty())
                .map_or_else(|| "-".to_owned(), |found| paths(&found.best)),
            standing,
        })
    };
    rankings(there).into_iter().filter_map(checked).collect()
}
