//! A summary of nothing but the metrics that are asked for: what a look at a growing record takes (method 4.6), quick enough
//! to be had after every block.

use std::collections::BTreeMap;

use super::values::{CellSummary, Double, MetricSummary, Summary};
use super::{CONFIDENCE, completed, constants, count, slices};
use crate::experiment::Design;
use crate::plan::CellId;
use crate::record::{Arm, Manifest, StoredRun};
use crate::statistics::middle_half::middle_half;
use crate::vocabulary::metric::MetricReference;

/// As [`super::summarize`], of latency and what else the specification's goals and question are about
/// ([`crate::experiment::Experiment::looked_at`]): their values of each run, what became of the runs, and their codes. The
/// verdicts that follow from it are the same.
pub fn summarize_asked<'a>(manifest: &Manifest, runs: impl Iterator<Item = &'a StoredRun>) -> Summary {
    let mut by_arm: BTreeMap<(CellId, &str), Vec<&StoredRun>> = BTreeMap::new();
    for run in runs.filter(|run| run.arm != Arm::Pilot) {
        by_arm.entry((run.cell, run.arm.name())).or_default().push(run);
    }
    let plan = &manifest.plan;
    let is_duet = manifest.experiment.measure.design == Design::Duet;
    let columns: Vec<String> = manifest.experiment.looked_at().iter().map(MetricReference::column).collect();
    let arm = |index: usize, arm: Arm| {
        let id = plan.cells[index].id;
        one(&columns, id, by_arm.get(&(id, arm.name())).map_or(&[], Vec::as_slice))
    };
    let double = |cell: &u32| {
        let cell = *cell as usize;
        Double { cell, summary: arm(cell, Arm::Aa), twin: is_duet.then(|| arm(cell, Arm::AaTwin)) }
    };
    let mut cells: Vec<CellSummary> = (0..plan.cells.len()).map(|cell| arm(cell, Arm::Main)).collect();
    constants::add_all(manifest, &mut cells);
    Summary { cells, doubles: plan.controls.iter().map(double).collect(), tails: Vec::new(), ..Summary::default() }
}

fn one(columns: &[String], id: CellId, runs: &[&StoredRun]) -> CellSummary {
    let completed = completed(runs);
    let mut summary = CellSummary { runs: count(runs), slices: slices(&completed), ..CellSummary::unmeasured(id) };
    for column in columns {
        let value = |run: &&StoredRun| Some((run.block, *run.data.metrics.get(column)?));
        let per_run: Vec<(u32, f64)> = completed.iter().filter_map(value).collect();
        let values: Vec<f64> = per_run.iter().map(|(_, value)| *value).collect();
        if let Some(estimate) = middle_half(&values, CONFIDENCE) {
            summary.metrics.insert(column.clone(), MetricSummary { estimate, per_run });
        }
    }
    for code in completed.iter().flat_map(|run| &run.warnings) {
        *summary.warnings.entry(code.clone()).or_default() += 1;
    }
    summary
}
