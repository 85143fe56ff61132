//! What is known of a cell that says what bounds it (method 5.6): from the record, its own runs, and cells with fewer
//! threads.

use std::collections::HashMap;

use super::CellSummary;
use crate::diagnosis::{Facts, Limit, RooflineShare, Scaling, diagnose};
use crate::profile::cell_times;
use base::code::Code;
use base::metric::{self, LATENCY, Metric};
use experiment::{Point, Provider, Variant};
use plan::Cell;
use record::{Manifest, Traffic};

/// Codes of a device that slowed down.
const THROTTLED: [Code; 2] = [Code::CpuThrottled, Code::GpuThrottled];

/// Adds to the summaries of all cells, in plan order, what bounds them.
pub(super) fn add_all(manifest: &Manifest, cells: &mut [CellSummary]) {
    let mut by_variant = ByVariant::new();
    for (cell, summary) in manifest.plan.cells.iter().zip(&*cells) {
        by_variant.entry(cell.at.without_variant()).or_default().push((cell, summary));
    }
    let waits = waits(manifest, cells);
    let all = manifest.plan.cells.iter().zip(&*cells).enumerate();
    let facts = all.map(|(index, (cell, summary))| {
        let waits_ns = waits.get(&index).copied().unwrap_or(0.0);
        facts(manifest, cell, (summary, waits_ns), &by_variant)
    });
    let diagnoses: Vec<_> = facts.map(|facts| diagnose(&facts)).collect();
    for (cell, diagnosis) in cells.iter_mut().zip(diagnoses) {
        cell.diagnosis = diagnosis;
    }
}

/// Cells that differ in their variant alone.
type ByVariant<'a> = HashMap<Point, Vec<(&'a Cell, &'a CellSummary)>>;

/// Of a cell, among all cells of its record.
fn facts(manifest: &Manifest, cell: &Cell, (summary, waits_ns): (&CellSummary, f64), all: &ByVariant<'_>) -> Facts {
    // Under a load a query waits for earlier queries.
    let latency = summary.estimate(&LATENCY).filter(|_| summary.load.is_none());
    let Some(latency) = latency.map(|latency| latency.value).filter(|value| *value > 0.0) else {
        return Facts::default();
    };
    let estimated = |metric: Metric| summary.estimate(&metric).map(|estimate| estimate.value);
    let throttled = summary.codes().into_iter().filter(|(name, _)| THROTTLED.iter().any(|code| **name == *code));
    let runs = throttled.filter_map(|(_, runs)| runs).max();
    let on_host = estimated(metric::DEVICE_TIME).map(|device| ((latency - device) / latency).max(0.0));
    Facts {
        throttled: runs.map(|runs| (runs, summary.runs.completed)),
        fallback: estimated(metric::FALLBACK),
        copying: estimated(metric::COPIES),
        // What is started while earlier nodes compute is within the device's own time, whose waits a profile knows.
        launching: on_host
            .map(|on_host| (on_host + waits_ns / latency).min(1.0))
            .into_iter()
            .chain(launching(manifest, cell, latency))
            .reduce(f64::max),
        roof: roof(manifest, cell, latency),
        scaling: scaling(manifest, cell, summary, all),
    }
}

/// Nanoseconds of an inference in which the device had nothing to do, by cell, where its kernels were recorded.
fn waits(manifest: &Manifest, cells: &[CellSummary]) -> HashMap<usize, f64> {
    let times = cell_times(manifest, |cell| cells.get(cell)?.estimate(&LATENCY).copied());
    times.into_iter().filter_map(|time| Some((time.cell, time.waits?.estimate().value))).collect()
}

/// By what starting nodes was seen to take, of those alone that a runtime cannot fuse: what it reports is counted before
/// it fuses the last of them. A graph starts them all at once.
fn launching(manifest: &Manifest, cell: &Cell, latency: f64) -> Option<f64> {
    let replays = manifest.settings_of(cell).is_some_and(|(variant, device)| Provider::replays(variant, device));
    let seen = manifest.launching_of(cell).filter(|_| !replays)?;
    let nodes = manifest.cost(cell)?.products?.nodes;
    Some((seen.call_ns + seen.node_ns * nodes as f64) / latency)
}

/// The roofline, in times: arithmetic and the moving of bytes may overlap, so that the longest is the least that the
/// work takes.
fn roof(manifest: &Manifest, cell: &Cell, latency_ns: f64) -> Option<RooflineShare> {
    let macs = manifest.cost(cell)?.macs.filter(|macs| *macs > 0)?;
    let peak = manifest.peak_of(cell)?;
    let compute = Limit::Compute { operations_per_s: peak.operations_per_s, arithmetic: peak.arithmetic };
    let computing = (2.0 * macs as f64 / peak.operations_per_s, compute);
    let traffic = manifest.traffic_of(cell);
    let moving = traffic.iter().flat_map(Traffic::parts).filter_map(|(part, bytes, within)| {
        let bytes_per_s = manifest.bandwidth_of(cell, part, within)?;
        Some((bytes / bytes_per_s, Limit::Memory { bytes_per_s }))
    });
    let (seconds, limit) = std::iter::once(computing).chain(moving).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(RooflineShare { share: seconds * 1e9 / latency_ns, limit }).filter(|roof| roof.share.is_finite())
}

/// Against the cell with the most threads of those that have fewer and differ in nothing else.
fn scaling(manifest: &Manifest, cell: &Cell, summary: &CellSummary, all: &ByVariant<'_>) -> Option<Scaling> {
    let variants = &manifest.experiment.variants;
    let variant = variants.get(cell.variant().index())?;
    let threads = manifest.threads_of(cell);
    let is_alike = |other: &Variant| other.threads != variant.threads && with_threads_of(other, variant) == *variant;
    let alike: Vec<bool> = variants.iter().map(is_alike).collect();
    // Of few experiments is there anything to look for among all cells.
    alike.contains(&true).then_some(())?;
    let is_candidate = |other: &Cell| alike.get(other.variant().index()).is_some_and(|is| *is);
    let alike_cells = all.get(&cell.at.without_variant())?.iter().filter(|(other, _)| is_candidate(other));
    let alike_cells = alike_cells.map(|(other, summary)| (manifest.threads_of(other), summary));
    // Of several the first: the last of equals is the greatest.
    let fewer = alike_cells.filter(|(fewer, _)| (1..threads).contains(fewer)).rev();
    let (fewer, other) = fewer.max_by_key(|(fewer, _)| *fewer)?;
    let (slow, fast) = (other.estimate(&LATENCY)?, summary.estimate(&LATENCY)?);
    let at_most = slow.interval?.high / fast.interval?.low;
    let speedup = slow.value / fast.value;
    (at_most.is_finite() && at_most > 0.0).then_some(Scaling { threads, fewer, speedup, at_most })
}

/// A variant under the name and with the threads of another one.
fn with_threads_of(variant: &Variant, other: &Variant) -> Variant {
    Variant { name: other.name.clone(), threads: other.threads, ..variant.clone() }
}
