//! Whether cells ran under background load, which changes their times however narrow the intervals are (method 8.1).
//!
//! Input: the completed runs of a cell. Output: how many of them met other processes or other guests, how much these used,
//! and whether the cell's times hold waiting for them. Deliberately absent: words, and other disturbances.

use super::{BackgroundLoad, CellSummary};
use base::code::BUSY_MACHINE;
use base::metric::{CPU_TIME, CPU_UTILISATION, LATENCY, Metric, OTHER_CPU, STEAL};
use plan::Cell;
use record::{Manifest, StoredRun};
use statistics::quantile::median;

/// A worker that had less of the processors than this part of what its threads could use waited for them.
const WAITED: f64 = 0.9;

impl BackgroundLoad {
    /// Of the completed runs of a cell; `None` where no run met any, or it is unknown.
    pub(super) fn of(manifest: &Manifest, cell: &Cell, completed: &[&StoredRun]) -> Option<Self> {
        let host = manifest.machine_of(cell).map_or(&manifest.host, |machine| &machine.host);
        let processors = host.processors()?;
        let value = |run: &StoredRun, metric: Metric| run.data.metrics.get(metric.name).copied();
        let others_share = |run: &&StoredRun| value(run, OTHER_CPU).unwrap_or(0.0) + value(run, STEAL).unwrap_or(0.0);
        let met: Vec<f64> = completed.iter().map(others_share).filter(|share| *share > BUSY_MACHINE).collect();
        let cores = median(&met)? * processors as f64;
        let is_on_cpu = manifest.experiment.devices.get(cell.device().index()).is_some_and(|device| device.is_cpu());
        // The number of threads of a command is unknown.
        let threads = if manifest.experiment.backend.runs_commands() { 1 } else { manifest.threads_of(cell) };
        let threads = threads.clamp(1, processors as u32);
        // Where an inference is short, most are done before anybody takes the processor: what the runs lose then is in no
        // median.
        let waits = |run: &StoredRun| {
            let (used, cpu_time) = (value(run, CPU_UTILISATION)?, value(run, CPU_TIME)?);
            let could_use = WAITED * f64::from(threads);
            let latency = value(run, LATENCY)?;
            // A command may wait for what is no processor.
            let computes = !manifest.experiment.backend.runs_commands() || cpu_time >= 0.5 * latency;
            Some(computes && used < could_use && cpu_time < could_use * latency)
        };
        let waiting = completed.iter().filter(|run| waits(run) == Some(true)).count() as u32;
        let (runs, all) = (met.len() as u32, completed.len() as u32);
        // Queries wait for each other.
        let has_load = manifest.plan.input_of(cell).load.is_some();
        let is_inflated = is_on_cpu && !has_load && is_most(runs, all) && is_most(waiting, all);
        Some(BackgroundLoad { runs, cores, waiting_threads: is_inflated.then_some(threads) })
    }
}

/// Whether so many runs say how it was for all of them.
fn is_most(runs: u32, all: u32) -> bool {
    2 * runs > all
}

/// Processors that background load used during the runs of several cells, by the completed runs of each and what they met;
/// `None` unless most of their runs met some.
pub(crate) fn mean_background_load(cells: impl Iterator<Item = (u32, Option<BackgroundLoad>)>) -> Option<f64> {
    let (mut all, mut met, mut sum) = (0_u64, 0_u64, 0.0);
    for (completed, load) in cells {
        all += u64::from(completed);
        if let Some(load) = load {
            met += u64::from(load.runs);
            sum += load.cores * f64::from(load.runs);
        }
    }
    (2 * met > all).then(|| sum / met as f64)
}

/// Processors that background load used during the runs of these cells; `None` unless most of their runs met some.
pub fn background_load<'a>(cells: impl IntoIterator<Item = &'a CellSummary>) -> Option<f64> {
    mean_background_load(cells.into_iter().map(|cell| (cell.runs.completed, cell.findings.background_load)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::summary::CellFindings;
    use base::metric::LATENCY;

    fn cell(runs: usize, met: u32, cores: f64) -> CellSummary {
        let background_load = (met > 0).then_some(BackgroundLoad { runs: met, cores, waiting_threads: None });
        CellSummary {
            findings: CellFindings { background_load, ..CellFindings::default() },
            ..CellSummary::unmeasured("0123456789abcdef".parse().unwrap()).with_values(&LATENCY, &vec![1.0; runs])
        }
    }

    #[test]
    fn most_runs_of_all_cells_together_say_for_what_they_hold() {
        assert_eq!(background_load(&[cell(5, 5, 1.0), cell(5, 0, 0.0)]), None, "half are not most");
        assert_eq!(background_load(&[cell(5, 5, 1.0), cell(5, 1, 0.25)]), Some(0.875));
        assert_eq!((background_load(&[cell(5, 5, 0.5)]), background_load(&[])), (Some(0.5), None));
    }
}
