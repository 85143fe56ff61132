//! What disturbed the runs of a record: how many of them met more of something on the machine than a measurement stands.
//!
//! Input: the runs by cell. Output: one entry for each metric of the environment that was above its limit in some run,
//! in the order of the limits. Deliberately absent: words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ByCell;
use crate::stored::rounded;
use base::code::{Code, LIMITS};
use base::metric::Metric;
use plan::{CellId, Plan};
use record::{Outcome, RunKind};
use statistics::quantile::median;

/// Something on the machine that was above its limit in some runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbed {
    /// The metric of the environment: `other_cpu_ratio`, `steal_ratio` ...
    pub metric: String,
    /// A run above this value counts as disturbed.
    pub limit: f64,
    /// Runs above it, those of A/A copies included.
    pub runs: u32,
    /// Runs that know.
    pub of: u32,
    /// Median over the runs above the limit.
    pub typical: f64,
    /// Median over all runs that know.
    #[serde(default)]
    pub median: f64,
    /// The largest value of a run.
    pub worst: f64,
    /// Id of the cell whose run met it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_cell: Option<CellId>,
    /// The code that these runs carry.
    pub code: String,
}

/// Of completed runs; the rehearsal says nothing about the machine.
pub(super) fn disturbances(plan: &Plan, by_cell: &ByCell<'_>) -> Vec<Disturbed> {
    LIMITS.iter().filter_map(|(metric, limit, code)| of_metric(plan, by_cell, (*metric, *limit, *code))).collect()
}

fn of_metric(plan: &Plan, by_cell: &ByCell<'_>, (metric, limit, code): (Metric, f64, Code)) -> Option<Disturbed> {
    let counted = plan.cells.iter().flat_map(|cell| {
        let runs = by_cell.get(&cell.id).into_iter().flatten();
        let runs = runs.filter(|run| run.kind != RunKind::Rehearsal && run.outcome == Outcome::Completed);
        runs.filter_map(move |run| Some((cell.id, *run.data.metrics.get(metric.name)?)))
    });
    let known: Vec<(CellId, f64)> = counted.collect();
    let above: Vec<f64> = known.iter().map(|(_, value)| *value).filter(|value| *value > limit).collect();
    let (worst_cell, worst) = known.iter().copied().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let all: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    Some(Disturbed {
        metric: metric.name.to_owned(),
        limit,
        runs: above.len() as u32,
        of: known.len() as u32,
        typical: rounded(median(&above)?),
        median: rounded(median(&all)?),
        worst: rounded(worst),
        worst_cell: Some(worst_cell),
        code: code.into(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::metric::{PREEMPTIONS, STEAL};
    use record::StoredRun;

    #[test]
    fn runs_above_a_limit_are_counted_over_all_cells() {
        let spec = spec::parse("x.yaml", "backend: mock\nmodels: [a, b]", std::path::Path::new("."), &[]);
        let plan = plan::expand(&spec.unwrap().experiment).unwrap();
        let run = |cell: usize, kind, steal: f64| {
            let mut run = StoredRun::not_started(plan.cells[cell].id, kind, 0, 0, Outcome::Completed);
            run.data.metrics.insert(STEAL.name.to_owned(), steal);
            run.data.metrics.insert(PREEMPTIONS.name.to_owned(), 1.0);
            run
        };
        let runs = [
            run(0, RunKind::Main, 0.0),
            run(0, RunKind::AaCopy, 0.01),
            run(1, RunKind::Main, 0.03),
            run(1, RunKind::Main, 0.0),
            run(1, RunKind::Rehearsal, 0.5),
        ];
        let found = disturbances(&plan, &super::super::by_cell(&runs));
        let [steal] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((steal.metric.as_str(), steal.code.as_str()), (STEAL.name, Code::Steal.name()));
        assert_eq!((steal.runs, steal.of), (2, 4));
        assert!((steal.typical - 0.02).abs() < 1e-12);
        assert_eq!(steal.median, 0.005);
        assert_eq!((steal.worst, steal.worst_cell), (0.03, Some(plan.cells[1].id)));
    }
}
