//! What this machine can do at most: a product of two large float32 matrices, run as every cell is, by the runtime with
//! the threads of the cells. What cells achieve is told as a share of it.
//!
//! A peak by data sheet would be another number: clocks move, and no library reaches it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Job;
use crate::backend::{CellRequest, TensorRequest};
use crate::event::Event;
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::onnx::{self, Dimension, ElementType};
use crate::plan::Cell;
use crate::quantity::{Nanos, Ratio};
use crate::spec::model::{Values, Warmup};
use crate::stats::random::{Xoshiro256PlusPlus, key_seed};
use crate::store::{Arm, Outcome, Peak, Peaks, StoreError};
use crate::worker::{Interrupts, RunPlan};

/// Rows and columns of both matrices: large enough that the product is bound by arithmetic, and some tens of
/// milliseconds long on a few cores.
const SIZE: u64 = 1024;

/// Operations of one product, two for each multiply-accumulate.
const OPERATIONS: f64 = 2.0 * (SIZE * SIZE * SIZE) as f64;

/// Enough products to see one that nothing disturbed.
const LENGTH: Warmup = Warmup::Adaptive {
    min_time: Nanos::from_millis(200),
    max_time: Nanos::from_millis(400),
    min_samples: 5,
    tolerance: Ratio(0.05),
};

/// Measures the peak for every number of threads that cells with known costs have, unless an earlier session has.
///
/// # Errors
///
/// When the record cannot be written. A peak that cannot be measured is not known.
pub(super) fn measure(
    job: &mut Job,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<(), StoreError> {
    let is_real = job.record.manifest.experiment.backend.reads_models();
    if !is_real || job.record.manifest.quick || job.record.manifest.findings.peak.is_some() {
        return Ok(());
    }
    let path = job.record.folder.join("peak.onnx");
    let mut peaks = Vec::new();
    for (threads, cell) in cells_by_threads(job) {
        if interrupts.count() > 0 || (!path.is_file() && onnx::save(product(), &path).is_err()) {
            break;
        }
        if let Some(operations_per_s) = run(job, &cell, &path, interrupts, events) {
            peaks.push(Peak { threads, operations_per_s });
        }
    }
    // It can be made again.
    let _gone = std::fs::remove_file(&path);
    job.record.keep(Peaks { peaks })
}

/// One cell on the CPU for each number of threads, whose settings are used; those whose costs are not known need no peak.
fn cells_by_threads(job: &Job) -> BTreeMap<u32, Cell> {
    let manifest = &job.record.manifest;
    let mut cells = BTreeMap::new();
    for (_, cell) in manifest.plan.runnable() {
        let has_cost = manifest.cost(cell).is_some_and(|cost| cost.macs.is_some_and(|macs| macs > 0));
        let runs = job.pilot(cell).is_some_and(|pilot| pilot.outcome == Outcome::Completed);
        let is_cpu = manifest.experiment.devices[cell.device as usize].provider == "cpu";
        if has_cost && runs && is_cpu {
            cells.entry(manifest.threads_of(cell)).or_insert(*cell);
        }
    }
    cells
}

/// Operations per second of the best sample.
fn run(
    job: &Job,
    cell: &Cell,
    path: &Path,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Option<f64> {
    let tensor = TensorRequest {
        name: "a".to_owned(),
        element: ElementType::Float32,
        shape: vec![SIZE, SIZE],
        values: Values::Random,
        seeds: vec![key_seed(job.record.manifest.plan.seed, "peak/a")],
    };
    let request = CellRequest {
        cell: "peak".to_owned(),
        backend: job.backend_request(cell, Arm::Pilot, 0, Some(path)),
        tensors: vec![tensor],
        input_sets: 1,
        outputs: Some(BTreeMap::from([("c".to_owned(), vec![SIZE, SIZE])])),
        slowdown: 0.0,
        evict_bytes: None,
        cpus: None,
    };
    let plan = RunPlan { request, warmup: LENGTH, at_least: Nanos(0), iterations: 1, stop: None, outputs: None };
    let mut launch = job.launch(cell, Arm::Pilot, 0);
    launch.log = log(job);
    let run = crate::worker::run(&launch, &plan, interrupts, &mut || events(&Event::Tick)).ok()?;
    let best = run.data.warmup.duration_ns.iter().copied().min().filter(|_| run.failure.is_none())?;
    (best > 0).then(|| OPERATIONS * 1e9 / best as f64)
}

fn log(job: &Job) -> PathBuf {
    job.record.folder.join("logs").join("peak.log")
}

/// `c = a w`, with the weights in the file, so that the runtime may pack them as it packs those of any model.
fn product() -> ModelProto {
    let square = [Dimension::Fixed(SIZE), Dimension::Fixed(SIZE)];
    let value = |name: &str| ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&square));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let weights: Vec<f32> = (0..SIZE * SIZE).map(|_| random.normal() as f32).collect();
    let graph = GraphProto {
        name: Some("peak".to_owned()),
        node: vec![NodeProto::of("MatMul", "product", &["a", "w"], &["c"], Vec::new())],
        input: vec![value("a")],
        output: vec![value("c")],
        initializer: vec![TensorProto::of_floats("w", &[SIZE, SIZE], &weights)],
        ..Default::default()
    };
    let mut model = ModelProto { ir_version: Some(8), graph: Some(graph).into(), ..Default::default() };
    model.import("", 17);
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_a_whole_model_of_the_cost_that_is_counted() {
        let model = product();
        assert!(onnx::check_graph(&model).is_ok());
        let tensors =
            [onnx::ResolvedTensor { name: "a".to_owned(), element: ElementType::Float32, shape: vec![SIZE, SIZE] }];
        let cost = onnx::cost::cost(&model, &onnx::infer::infer(&model, &tensors));
        assert_eq!(cost.macs.map(|macs| 2.0 * macs as f64), Some(OPERATIONS));
    }
}
