//! Whether cells ran beside other load, which changes what they say however narrow their intervals are (method 8.1).
//!
//! Input: the completed runs of a cell. Output: how many of them met other processes or other guests, how much these used,
//! and whether the cell's times hold waiting for them. Deliberately absent: words, and other disturbances.

use super::{CellSummary, OtherLoad, Summary};
use base::code::BUSY_MACHINE;
use base::metric::{CPU_TIME, CPU_UTILISATION, LATENCY, Metric, OTHER_CPU, STEAL};
use plan::Cell;
use record::{Manifest, StoredRun};
use statistics::quantile::median;

/// A worker that had less of the processors than this part of what its threads could use waited for them.
const WAITED: f64 = 0.9;

impl OtherLoad {
    /// Of the completed runs of a cell; `None` where no run met any, or nothing tells.
    pub(super) fn of(manifest: &Manifest, cell: &Cell, completed: &[&StoredRun]) -> Option<Self> {
        let host = manifest.machine_of(cell).map_or(&manifest.host, |machine| &machine.host);
        let processors = host.processors()?;
        let value = |run: &StoredRun, metric: Metric| run.data.metrics.get(metric.name).copied();
        let others = |run: &&StoredRun| value(run, OTHER_CPU).unwrap_or(0.0) + value(run, STEAL).unwrap_or(0.0);
        let met: Vec<f64> = completed.iter().map(others).filter(|share| *share > BUSY_MACHINE).collect();
        let cores = median(&met)? * processors as f64;
        let is_on_cpu = manifest.experiment.devices.get(cell.device().place()).is_some_and(|device| device.is_cpu());
        // The number of threads of a command is unknown.
        let threads = if manifest.experiment.backend.runs_commands() { 1 } else { manifest.threads_of(cell) };
        let threads = threads.clamp(1, processors as u32);
        // Where an inference is short, most are done before anybody takes the processor: what the runs lose then is in no
        // median.
        let waits = |run: &StoredRun| {
            let (used, own) = (value(run, CPU_UTILISATION)?, value(run, CPU_TIME)?);
            let could_use = WAITED * f64::from(threads);
            let latency = value(run, LATENCY)?;
            // A command may wait for what is no processor.
            let computes = !manifest.experiment.backend.runs_commands() || own >= 0.5 * latency;
            Some(computes && used < could_use && own < could_use * latency)
        };
        let waiting = completed.iter().filter(|run| waits(run) == Some(true)).count() as u32;
        let (runs, all) = (met.len() as u32, completed.len() as u32);
        // Queries wait for each other.
        let has_load = manifest.plan.input_of(cell).load.is_some();
        let is_inflated = is_on_cpu && !has_load && is_most(runs, all) && is_most(waiting, all);
        Some(OtherLoad { runs, cores, waiting_threads: is_inflated.then_some(threads) })
    }
}

/// Whether so many runs say how it was for all of them.
fn is_most(runs: u32, of: u32) -> bool {
    2 * runs > of
}

/// Processors that others used beside cells together, by the completed runs of each and what they met; `None` unless most of
/// their runs met that.
pub(crate) fn used_beside(cells: impl Iterator<Item = (u32, Option<OtherLoad>)>) -> Option<f64> {
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

/// Processors that others used beside these cells together; `None` unless most of their runs met that.
pub fn beside<'a>(cells: impl IntoIterator<Item = &'a CellSummary>) -> Option<f64> {
    used_beside(cells.into_iter().map(|cell| (cell.runs.completed, cell.findings.other_load)))
}

impl Summary {
    /// As [`beside`], of cells by their index.
    pub fn beside(&self, cells: impl IntoIterator<Item = usize>) -> Option<f64> {
        beside(cells.into_iter().filter_map(|cell| self.cells.get(cell)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::summary::CellFindings;
    use base::metric::LATENCY;

    fn cell(runs: usize, met: u32, cores: f64) -> CellSummary {
        let other_load = (met > 0).then_some(OtherLoad { runs: met, cores, waiting_threads: None });
        CellSummary {
            findings: CellFindings { other_load, ..CellFindings::default() },
            ..CellSummary::unmeasured("0123456789abcdef".parse().unwrap()).with_values(&LATENCY, &vec![1.0; runs])
        }
    }

    #[test]
    fn most_runs_of_all_cells_together_say_for_what_they_hold() {
        let of = |cells: &[CellSummary]| beside(cells);
        assert_eq!(of(&[cell(5, 5, 1.0), cell(5, 0, 0.0)]), None, "half are not most");
        assert_eq!(of(&[cell(5, 5, 1.0), cell(5, 1, 0.25)]), Some(0.875));
        assert_eq!((of(&[cell(5, 5, 0.5)]), of(&[])), (Some(0.5), None));
    }
}
