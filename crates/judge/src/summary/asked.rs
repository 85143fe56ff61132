//! A summary of nothing but the metrics that are asked for: what an analysis of a growing record takes (method 4.6), quick enough
//! to be had after every block.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::latency::{self, Latency};
use super::of_runs::RunValues;
use super::values::{AaCopy, CellSummary, MetricSummary, Summary, over_runs};
use super::{CONFIDENCE, completed, constants, count, late, slices};
use base::metric::{ITEMS, LARGEST_RATE, LATE_SHARE, MetricReference, Statistic, THROUGHPUT};
use experiment::Design;
use plan::{Cell, CellId};
use record::{Manifest, RunKind, SampleSummary, StoreError, StoredRun};

/// As [`super::summarize`], of latency and what else the specification's goals and question are about
/// ([`experiment::Experiment::looked_at`]): their values of each run, what became of the runs, and their codes. The
/// verdicts that follow from it are the same.
///
/// # Errors
///
/// Samples that cannot be read.
pub fn summarize_asked<'a>(
    manifest: &Manifest,
    runs: impl Iterator<Item = &'a StoredRun>,
) -> Result<Summary, StoreError> {
    let mut by_kind: BTreeMap<(CellId, RunKind), Vec<&StoredRun>> = BTreeMap::new();
    for run in runs.filter(|run| run.kind != RunKind::Rehearsal) {
        by_kind.entry((run.cell, run.kind)).or_default().push(run);
    }
    let plan = &manifest.plan;
    let is_duet = manifest.experiment.measure.design == Design::Duet;
    let mut looked_at = manifest.experiment.looked_at();
    // By which cells with different batches, or under a load, are compared.
    for reference in
        [ITEMS, THROUGHPUT, LARGEST_RATE].iter().filter_map(|metric| MetricReference::of_column(metric.name))
    {
        looked_at.extend((!looked_at.contains(&reference)).then_some(reference));
    }
    let summary = |index: usize, kind: RunKind| {
        let cell = &plan.cells[index];
        summarize_cell(manifest, &looked_at, cell, by_kind.get(&(cell.id, kind)).map_or(&[], Vec::as_slice))
    };
    let aa_copy = |cell: &u32| {
        let cell = *cell as usize;
        let second = is_duet.then(|| summary(cell, RunKind::SecondAaCopy)).transpose()?;
        Ok(AaCopy { cell, summary: summary(cell, RunKind::AaCopy)?, second })
    };
    let cells = (0..plan.cells.len()).map(|cell| summary(cell, RunKind::Main));
    let mut cells = cells.collect::<Result<Vec<_>, StoreError>>()?;
    constants::add_all(manifest, &mut cells);
    let aa_copies = plan.controls.iter().map(aa_copy).collect::<Result<_, StoreError>>()?;
    Ok(Summary { cells, aa_copies, ..Summary::default() })
}

fn summarize_cell(
    manifest: &Manifest,
    looked_at: &[MetricReference],
    cell: &Cell,
    runs: &[&StoredRun],
) -> Result<CellSummary, StoreError> {
    let completed = completed(runs);
    let mut summary = CellSummary {
        runs: count(runs),
        slices: slices(&completed),
        load: manifest.plan.input_of(cell).load,
        late: late(&completed),
        ..CellSummary::unmeasured(cell.id)
    };
    let stored = |reference: &MetricReference| -> Vec<(u32, f64)> {
        let column = reference.column();
        let value = |run: &&StoredRun| Some((run.block, *run.data.metrics.get(&column)?));
        completed.iter().filter_map(value).collect()
    };
    let (tails, stored_columns): (Vec<&MetricReference>, Vec<&MetricReference>) =
        looked_at.iter().partition(|reference| reference.statistic.is_tail());
    let mut values: RunValues =
        stored_columns.into_iter().map(|reference| (reference.column(), stored(reference))).collect();
    // A late share of 0 is as open as its queries are few.
    if !tails.is_empty() || values.contains_key(LATE_SHARE.name) {
        let of_latency = latency_of(&completed, &tails, &mut values);
        summary.latency = Some(of_latency);
        summary.pooled = latency::pooled(manifest, &completed)?;
    }
    for (column, per_run) in values {
        let values: Vec<f64> = per_run.iter().map(|(_, value)| *value).collect();
        if let Some(estimate) = over_runs(&column, &values, CONFIDENCE) {
            summary.metrics.insert(column, MetricSummary { estimate, per_run });
        }
    }
    for code in completed.iter().flat_map(|run| &run.warnings) {
        *summary.warnings.entry(code.clone()).or_default() += 1;
    }
    Ok(summary.with_load())
}

/// Nothing of the distribution but these percentiles, whose values of each run join those stored; means of several
/// iterations have none.
fn latency_of(completed: &[&StoredRun], tails: &[&MetricReference], values: &mut RunValues) -> Latency {
    let runs: Vec<Cow<'_, SampleSummary>> = completed.iter().map(|run| run.summary()).collect();
    let is_single = completed.iter().all(|run| run.iterations <= 1);
    for tail in tails.iter().filter(|_| is_single) {
        let value = |(run, samples): (&&StoredRun, &Cow<'_, SampleSummary>)| {
            Some((run.block, samples.statistic(tail.statistic)?))
        };
        values.insert(tail.column(), completed.iter().zip(&runs).filter_map(value).collect());
    }
    let statistics: Vec<Statistic> = tails.iter().map(|tail| tail.statistic).collect();
    Latency {
        samples: runs.iter().map(|run| run.count).sum(),
        late_warmup: 0,
        percentiles: latency::percentiles(&statistics, values, &runs),
    }
}
