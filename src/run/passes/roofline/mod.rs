//! What this machine can do at most (method 5.6): arithmetic for each kind of number that cells multiply, bandwidth for
//! as many bytes as they move, and what starting their nodes takes. All of it is measured as every cell is, by the
//! runtime on the device with the threads of the cells. What cells achieve is reported as a share of it.
//!
//! A roof by data sheet would be another number: clocks move, and no library reaches it.

mod models;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use self::models::Subject;
use self::trial::{Seen, Trial};
use super::Pass;
use crate::run::Job;
use crate::run::runner::{RunError, Runner};
use experiment::{Completion, ModelIndex, Provider, Source, VariantIndex};
use onnx::cost::{Arithmetic, arithmetic};
use plan::Cell;
use record::{Bandwidth, FileArithmetic, Launching, Outcome, Peak, Roofline, Stream};

/// Rows and columns of a first product: milliseconds of a core, which little disturbs.
const FIRST_SIZE: u64 = 512;
/// Larger ones take more memory than they say.
const LARGEST_SIZE: u64 = 8192;
/// A shorter product is mostly what surrounds it, and a larger one is tried.
const LEAST_NS: f64 = 1e6;
/// Nodes of a chain that shows what each takes to start.
const LONG_CHAIN: u64 = 257;
/// How often an inference goes through the bytes of a stream, so that what surrounds it counts little; and where the
/// device computes in tens of microseconds what takes a processor milliseconds.
const TIMES: u64 = 4;
const TIMES_AHEAD: u64 = 32;
/// What takes less than so many times the starting of its nodes says little about the rest: 5 % at most.
const LEAST_LAUNCHES: f64 = 20.0;

/// Measures the roofs of every device and number of threads that cells with known costs have. What cannot be measured
/// is not known.
pub(super) struct MeasureRoofline;

impl Pass for MeasureRoofline {
    type Found = Roofline;

    const SCRATCH: &'static [&'static str] = &[trial::MODEL];

    fn is_wanted(job: &Job) -> bool {
        let is_real = job.experiment().backend.reads_models();
        is_real && !job.manifest().quick && !wanted(job, &files(job)).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Roofline, RunError> {
        let files = files(job);
        let wanted = wanted(job, &files);
        let mut found = Roofline { files, ..Roofline::default() };
        for ((device, threads), wanted) in wanted {
            let starts_ahead = Provider::of(job.device(&wanted.cell))
                .is_some_and(|provider| provider.completion == Completion::Stream);
            let mut measured = DeviceThreads {
                device,
                threads,
                trial: Trial { job, cell: wanted.cell },
                launching: None,
                starts_ahead,
            };
            measured.launching = measured.start_nodes(runner)?;
            found.launches.extend(measured.launching.clone());
            for (arithmetic, cell) in wanted.arithmetic {
                measured.trial.cell = cell;
                found.peaks.extend(measured.multiply(arithmetic, runner)?);
            }
            measured.trial.cell = wanted.cell;
            for (stream, bytes) in wanted.streams {
                found.bandwidths.extend(measured.stream(stream, bytes, runner)?);
            }
        }
        Ok(found)
    }
}

/// What is to be measured on one device with so many threads.
struct Wanted {
    /// The cell whose settings are used.
    cell: Cell,
    /// With a cell that multiplies so, whose settings are used for it.
    arithmetic: BTreeMap<Arithmetic, Cell>,
    streams: BTreeSet<(Stream, u64)>,
}

/// By label of the device and number of threads; cells whose costs are not known need no roof.
fn wanted(job: &Job, files: &[FileArithmetic]) -> BTreeMap<(String, u32), Wanted> {
    let manifest = job.manifest();
    let mut all = BTreeMap::new();
    for cell in cells(job) {
        let device = manifest.experiment.devices[cell.device()].label();
        let wanted = all.entry((device, manifest.threads_of(&cell))).or_insert_with(|| Wanted {
            cell,
            arithmetic: BTreeMap::new(),
            streams: BTreeSet::new(),
        });
        // A graph would start all nodes at once.
        let replays = |cell: &Cell| {
            manifest.settings_of(cell).is_some_and(|(variant, device)| Provider::replays(variant, device))
        };
        if replays(&wanted.cell) && !replays(&cell) {
            wanted.cell = cell;
        }
        // Parts of every model stay in it.
        wanted.arithmetic.entry(manifest.float32_of(&cell)).or_insert(cell);
        let is_its = |file: &&FileArithmetic| (file.model, file.variant) == (cell.model(), cell.variant());
        let Some(written) = files.iter().find(is_its).map(|file| file.arithmetic) else { continue };
        if written != Arithmetic::Float32 {
            wanted.arithmetic.entry(written).or_insert(cell);
        }
        let is_half = matches!(written, Arithmetic::Float16 | Arithmetic::Bfloat16);
        // Whether half precision is more than float32 behind casts is known afterwards.
        let numbers = [Some(written), is_half.then_some(Arithmetic::Float32)];
        let traffic = numbers.into_iter().flatten().filter_map(|numbers| manifest.traffic_in(&cell, numbers));
        wanted.streams.extend(
            traffic.flat_map(|traffic| traffic.parts().map(|(stream, _, within)| (stream, within)).collect::<Vec<_>>()),
        );
    }
    all
}

/// The cells that run and whose costs are known. A program that gets its model from Python would be fed the inputs of ours.
fn cells(job: &Job) -> impl Iterator<Item = Cell> {
    let manifest = job.manifest();
    let reads_files = |cell: &&Cell| {
        let is_from_python = matches!(manifest.experiment.models[cell.model()].source, Some(Source::Python(_)));
        !(is_from_python && job.runtime(cell).is_some_and(|runtime| runtime.program.is_some()))
    };
    let has_roof = |cell: &&Cell| {
        let has_cost = manifest.cost(cell).is_some_and(|cost| cost.macs.is_some_and(|macs| macs > 0));
        has_cost && job.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed)
    };
    manifest.plan.runnable().map(|(_, cell)| cell).filter(has_roof).filter(reads_files).copied()
}

/// In which numbers the files of cells multiply, by model and variant.
fn files(job: &Job) -> Vec<FileArithmetic> {
    let mut files: BTreeMap<(ModelIndex, VariantIndex), Option<Arithmetic>> = BTreeMap::new();
    for cell in cells(job) {
        files.entry((cell.model(), cell.variant())).or_insert_with(|| {
            let model = job.model_file(&cell).and_then(|file| onnx::load_graph(&file.path).ok());
            model.map(|model| arithmetic(&model))
        });
    }
    let known = files.into_iter();
    known.filter_map(|((model, variant), known)| Some(FileArithmetic { model, variant, arithmetic: known? })).collect()
}

/// One device with so many threads.
struct DeviceThreads<'a> {
    device: String,
    threads: u32,
    trial: Trial<'a>,
    launching: Option<Launching>,
    /// The device computes a node while the next ones are started, so that only the first is waited for.
    starts_ahead: bool,
}

impl DeviceThreads<'_> {
    /// A chain of nodes that compute next to nothing, less one of a single node.
    fn start_nodes(&self, runner: &mut Runner<'_>) -> Result<Option<Launching>, RunError> {
        let single = self.trial.run(models::chain_of(1), runner)?;
        let many = self.trial.run(models::chain_of(LONG_CHAIN), runner)?;
        let (Some(single), Some(many)) = (single, many) else { return Ok(None) };
        let is_whole = single.nodes == 1 && many.nodes == LONG_CHAIN;
        let node_ns = (many.best_ns - single.best_ns) / (LONG_CHAIN - 1) as f64;
        let call_ns = (single.best_ns - node_ns).max(0.0);
        let (device, threads) = (self.device.clone(), self.threads);
        // Of nodes that were made one, or that took no time, nothing is known.
        Ok((is_whole && node_ns > 0.0).then_some(Launching { device, threads, call_ns, node_ns }))
    }

    /// Products, larger ones where the first are too short; the fastest counts.
    fn multiply(&self, arithmetic: Arithmetic, runner: &mut Runner<'_>) -> Result<Option<Peak>, RunError> {
        let mut best: Option<Peak> = None;
        let mut size = FIRST_SIZE;
        while let Some(seen) = self.first_that_runs(models::products(arithmetic, size), runner)? {
            let operations_per_s = seen.work_per_s();
            let is_faster = best.as_ref().is_none_or(|best| best.operations_per_s < operations_per_s);
            if is_faster && self.is_long(seen.best_ns, seen.nodes) {
                let (device, threads) = (self.device.clone(), self.threads);
                best = Some(Peak { device, threads, arithmetic, size, operations_per_s });
            }
            let Some(larger) = larger(size, seen.best_ns) else { break };
            size = larger;
        }
        Ok(best)
    }

    fn first_that_runs(
        &self,
        subjects: impl Iterator<Item = Subject>,
        runner: &mut Runner<'_>,
    ) -> Result<Option<Seen>, RunError> {
        for subject in subjects {
            if let Some(seen) = self.trial.run(subject, runner)? {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// Going through so many bytes.
    fn stream(&self, stream: Stream, bytes: u64, runner: &mut Runner<'_>) -> Result<Option<Bandwidth>, RunError> {
        let times = if self.starts_ahead { TIMES_AHEAD } else { TIMES };
        let Some(subject) = models::stream(stream, bytes, times) else { return Ok(None) };
        let seen = self.trial.run(subject, runner)?;
        let long = seen.filter(|seen| self.is_long(seen.best_ns, seen.nodes));
        let (device, threads) = (self.device.clone(), self.threads);
        Ok(long.map(|seen| Bandwidth { device, threads, stream, bytes, bytes_per_s: seen.work_per_s() }))
    }

    /// Whether an inference of so many nodes takes much longer than starting them; of what is not known nothing is said.
    fn is_long(&self, best_ns: f64, nodes: u64) -> bool {
        let Some(Launching { call_ns, node_ns, .. }) = self.launching.as_ref() else { return best_ns >= LEAST_NS };
        let waited = if self.starts_ahead { 1 } else { nodes };
        best_ns >= LEAST_LAUNCHES * (call_ns + node_ns * waited as f64) && best_ns >= 2.0 * node_ns * nodes as f64
    }
}

/// The size of a product that takes long enough, where one of this size took so long.
fn larger(size: u64, took_ns: f64) -> Option<u64> {
    let mut next = size;
    let mut expected = took_ns;
    while expected < LEAST_NS && next < LARGEST_SIZE {
        next *= 2;
        expected *= 8.0;
    }
    (next > size).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_product_is_followed_by_one_that_takes_long_enough() {
        assert_eq!(larger(512, 2.7e6), None);
        assert_eq!(larger(512, 0.5e6), Some(1024));
        assert_eq!(larger(512, 10e3), Some(4096));
        assert_eq!(larger(512, 1.0), Some(LARGEST_SIZE));
        assert_eq!(larger(LARGEST_SIZE, 1.0), None);
    }
}
