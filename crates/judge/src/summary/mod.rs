//! Record -> Summary: what each cell's runs say together (method 4.3 and 5).
//!
//! A run gives one observation; every estimate is the trimmed mean (25 %) of them, with its interval. Percentiles of
//! iterations are one value a run too, and marked where the number of samples cannot support them.

mod asked;
mod bounds;
mod constants;
mod disturbance;
mod environment;
mod fallback;
mod findings;
mod latency;
mod load;
mod of_runs;
mod values;
mod weight;

use std::collections::BTreeMap;

use rayon::prelude::*;

use base::metric::{self, Kind, Unit};
use base::privacy::without_home;
use experiment::{Design, QUICK_MARGIN};
use latency::of_latency;
use of_runs::{RunValues, ValuesOfRuns};
use plan::{Cell, CellId};
use record::{Manifest, Outcome, RunKind, StoreError, StoredRun};
use statistics::largest_rate::LateCounts;
use statistics::trimmed_mean::trimmed_mean;

pub use asked::summarize_asked;
pub use disturbance::Disturbed;
pub(crate) use environment::record_codes;
pub use fallback::Fallback;
pub(crate) use findings::{BackgroundLoad, CellFindings};
pub use findings::{CellShape, Spread};
pub use latency::Latency;
pub use load::background_load;
pub(crate) use load::mean_background_load;
pub use values::FailureSeen;
pub(crate) use values::{AaCopy, MetricSummary, RunCounts, Scored};
pub use values::{CellSummary, Summary};
pub(crate) use values::{over_runs, run_values};
pub(crate) use weight::invalid_for;

pub use super::CONFIDENCE;

/// Fewest runs whose interval is shown: below, it says more about luck than about the cell (method 4.1).
pub const LEAST_RUNS: usize = statistics::planning::MINIMUM_RUNS;

/// Summarises a record, complete or not, on the processors that there are; pure: their number changes nothing.
///
/// # Errors
///
/// Samples that cannot be read.
pub fn summarize(manifest: &Manifest, runs: &[StoredRun]) -> Result<Summary, StoreError> {
    let by_cell = by_cell(runs);
    let mut summary = summarize_by_cell(manifest, &by_cell)?;
    bounds::add_all(manifest, &mut summary.cells);
    let disturbances = disturbance::disturbances(&manifest.plan, &by_cell);
    Ok(Summary { disturbances, retaken: runs.iter().map(|run| run.retaken).sum(), ..summary })
}

/// As [`summarize`], without what disturbed the runs and what bounds the cells: no verdict rests on them, and they take too
/// long between two blocks.
///
/// # Errors
///
/// Samples that cannot be read.
pub fn summarize_briefly(manifest: &Manifest, runs: &[StoredRun]) -> Result<Summary, StoreError> {
    summarize_by_cell(manifest, &by_cell(runs))
}

type ByCell<'a> = BTreeMap<CellId, Vec<&'a StoredRun>>;

fn by_cell(runs: &[StoredRun]) -> ByCell<'_> {
    let mut by_cell = ByCell::new();
    for run in runs {
        by_cell.entry(run.cell).or_default().push(run);
    }
    by_cell
}

fn summarize_by_cell(manifest: &Manifest, by_cell: &ByCell<'_>) -> Result<Summary, StoreError> {
    let plan = &manifest.plan;
    let is_duet = manifest.experiment.measure.design == Design::Duet;
    let copies_of = |cell: usize| {
        let second = is_duet.then_some((cell, RunKind::SecondAaCopy));
        [Some((cell, RunKind::AaCopy)), second].into_iter().flatten()
    };
    let measured = (0..plan.cells.len()).map(|cell| (cell, RunKind::Main));
    let copied = plan.controls.iter().flat_map(|cell| copies_of(*cell as usize));
    let members: Vec<(usize, RunKind)> = measured.chain(copied).collect();
    let mut summaries = summarize_members(manifest, by_cell, &members)?.into_iter();
    let mut cells: Vec<CellSummary> = summaries.by_ref().take(plan.cells.len()).collect();
    constants::add_all(manifest, &mut cells);
    let mut aa_copy = |cell: &u32| {
        let summary = summaries.next()?;
        Some(AaCopy { cell: *cell as usize, summary, second: if is_duet { summaries.next() } else { None } })
    };
    let aa_copies = plan.controls.iter().filter_map(&mut aa_copy).collect();
    Ok(Summary { cells, aa_copies, ..Summary::default() })
}

/// Summarises cells and A/A copies, each with its runs.
fn summarize_members(
    manifest: &Manifest,
    by_cell: &ByCell<'_>,
    members: &[(usize, RunKind)],
) -> Result<Vec<CellSummary>, StoreError> {
    let runs: Vec<Vec<&StoredRun>> = members
        .iter()
        .map(|(cell, kind)| {
            let runs = by_cell.get(&manifest.plan.cells[*cell].id).map_or(&[][..], Vec::as_slice);
            // A failure in the rehearsal is the cell's and not its copy's, so that it is reported once.
            let belongs =
                |run: &&StoredRun| run.kind == *kind || (run.kind == RunKind::Rehearsal && *kind == RunKind::Main);
            runs.iter().copied().filter(belongs).collect()
        })
        .collect();
    let summaries = members.par_iter().zip(&runs);
    summaries.map(|((cell, _), runs)| summarize_member(manifest, &manifest.plan.cells[*cell], runs)).collect()
}

/// The runs that ran to their end, in the order of their blocks; the rehearsal is in no statistic.
fn completed<'a>(runs: &[&'a StoredRun]) -> Vec<&'a StoredRun> {
    let is_counted = |run: &&StoredRun| run.kind != RunKind::Rehearsal && run.outcome == Outcome::Completed;
    let mut completed: Vec<&StoredRun> = runs.iter().copied().filter(is_counted).collect();
    completed.sort_by_key(|run| run.block);
    completed
}

fn summarize_member(manifest: &Manifest, cell: &Cell, runs: &[&StoredRun]) -> Result<CellSummary, StoreError> {
    let completed = &completed(runs);
    let values = ValuesOfRuns::of(completed);
    let fallback = Fallback::of(completed);
    let first = completed.first();
    let placement = first.and_then(|run| run.data.placement.as_ref());
    let summary = CellSummary {
        id: cell.id,
        runs: count(runs),
        metrics: with_build(metrics(&values.values, manifest.quick), runs),
        latency: of_latency(completed, &values),
        pooled: latency::pooled(manifest, completed)?,
        failures: failures(runs),
        warnings: values.codes.clone(),
        output_hash: agreed_hash(completed),
        iterations: first.map_or(1, |run| run.iterations),
        slices: slices(completed),
        load: manifest.plan.input_of(cell).load,
        late: late(completed),
        dynamic_outputs: placement.is_some_and(|placement| placement.dynamic_outputs),
        nodes: placement.map(|placement| placement.nodes.clone()).unwrap_or_default(),
        findings: CellFindings {
            background_load: BackgroundLoad::of(manifest, cell, completed),
            ..CellFindings::of(completed, &fallback, &values.environment, environment::of_settings(manifest, cell))
                .with_rehearsal(runs)
        },
        fallback,
        ..CellSummary::default()
    };
    Ok(summary.with_load())
}

fn late(completed: &[&StoredRun]) -> Vec<LateCounts> {
    completed.iter().filter_map(|run| run.late.clone()).collect()
}

/// The median of each slice of each run that was cut into slices; a slice of nothing but late warm-up is a gap in which
/// nothing is paired.
fn slices(completed: &[&StoredRun]) -> Vec<(u32, Vec<f64>)> {
    let cut = completed.iter().filter(|run| !run.data.slices.is_empty());
    cut.map(|run| (run.block, run.summary().slices.clone())).collect()
}

fn count(runs: &[&StoredRun]) -> RunCounts {
    let mut counts = RunCounts::default();
    for run in runs.iter().filter(|run| run.kind != RunKind::Rehearsal) {
        match run.outcome {
            Outcome::Completed => counts.completed += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::NotRun => counts.not_run += 1,
            Outcome::Skipped => counts.skipped += 1,
        }
    }
    counts
}

/// Half of a quick look's margin: cells whose intervals touch then differ by what it takes for a claim. A few short runs do
/// not see how the machine changes over minutes, so that their own spread is too narrow an interval.
const LEAST_OF_QUICK_LOOK: f64 = QUICK_MARGIN / 2.0;

fn metrics(values: &RunValues, is_quick: bool) -> BTreeMap<String, MetricSummary> {
    let is_timed = |name: &str| {
        let metric = name.split('.').next().and_then(metric::by_name);
        metric.is_some_and(|metric| matches!(metric.unit, Unit::Nanoseconds | Unit::PerSecond))
    };
    let summarized = values.iter().filter_map(|(name, per_run)| {
        let numbers: Vec<f64> = per_run.iter().map(|(_, value)| *value).collect();
        let mut estimate = over_runs(name, &numbers, CONFIDENCE)?;
        if is_quick && is_timed(name) {
            estimate = estimate.no_narrower_than(LEAST_OF_QUICK_LOOK);
        }
        Some((name.clone(), MetricSummary { estimate, per_run: per_run.clone() }))
    });
    summarized.collect()
}

/// Adds what building an engine took in the rehearsal, where no run built one of its own.
fn with_build(mut metrics: BTreeMap<String, MetricSummary>, runs: &[&StoredRun]) -> BTreeMap<String, MetricSummary> {
    let name = metric::BUILD.name;
    let rehearsal = runs.iter().find(|run| run.kind == RunKind::Rehearsal);
    let built = rehearsal.and_then(|run| Some((run.block, *run.data.metrics.get(name)?)));
    if let Some((estimate, built)) = built.and_then(|built| Some((trimmed_mean(&[built.1], CONFIDENCE)?, built))) {
        metrics.entry(name.to_owned()).or_insert(MetricSummary { estimate, per_run: vec![built] });
    }
    metrics
}

/// What explains a number is summed up in the findings; it would only swell what is committed.
fn is_of_environment(name: &str) -> bool {
    metric::by_name(name).is_some_and(|metric| metric.kind == Kind::Environment)
}

/// With the home folder taken out of what other programs wrote.
fn failures(runs: &[&StoredRun]) -> Vec<FailureSeen> {
    let mut counts: Vec<FailureSeen> = Vec::new();
    for run in runs {
        let Some(failure) = &run.failure else { continue };
        let rehearsal = run.kind == RunKind::Rehearsal;
        match counts.iter_mut().find(|known| known.failure == *failure && known.rehearsal == rehearsal) {
            Some(known) => known.runs += 1,
            None => {
                let (failure, log_tail) = (failure.clone(), run.log_tail.clone());
                counts.push(FailureSeen { failure, rehearsal, runs: 1, log_tail });
            }
        }
    }
    for FailureSeen { failure, log_tail, .. } in &mut counts {
        failure.message = without_home(&failure.message);
        failure.remedy = failure.remedy.as_deref().map(without_home);
        let log = log_tail.as_deref().map(|log| without_home(log.trim_end()));
        *log_tail = log.filter(|log| !log.is_empty());
    }
    counts
}

fn agreed_hash(completed: &[&StoredRun]) -> Option<String> {
    let mut hashes = completed.iter().map(|run| run.data.output_hash.as_ref());
    let first = hashes.next()??;
    hashes.all(|hash| hash == Some(first)).then(|| first.clone())
}
