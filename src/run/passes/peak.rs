//! What this machine can do at most: a product of two large float32 matrices, run as every cell is, by the runtime with
//! the threads of the cells. What cells achieve is told as a share of it.
//!
//! A peak by data sheet would be another number: clocks move, and no library reaches it.

use std::collections::BTreeMap;
use std::path::Path;

use super::Pass;
use crate::experiment::{Values, Warmup};
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::onnx::{self, Dimension, ElementType};
use crate::plan::Cell;
use crate::record::{self, Arm, Outcome, Peaks};
use crate::run::Job;
use crate::run::session::{self, Halt, Session};
use crate::statistics::random::{Xoshiro256PlusPlus, key_seed};
use crate::vocabulary::quantity::{Nanos, Ratio};
use crate::worker::RunPlan;
use crate::worker::backend::{CellRequest, TensorRequest};

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

/// The model, while it is needed.
const MODEL: &str = "peak.onnx";

/// Measures the peak for every number of threads that cells with known costs have. A peak that cannot be measured is not
/// known.
pub(super) struct Peak;

impl Pass for Peak {
    type Found = Peaks;

    const SCRATCH: &'static [&'static str] = &[MODEL];

    fn is_wanted(job: &Job) -> bool {
        let is_real = job.record.manifest.experiment.backend.reads_models();
        is_real && !job.record.manifest.quick && !cells_by_threads(job).is_empty()
    }

    fn carry_out(job: &mut Job, session: &mut Session<'_>) -> Result<Peaks, Halt> {
        let path = job.record.folder.join(MODEL);
        let mut peaks = Vec::new();
        for (threads, cell) in cells_by_threads(job) {
            session.go_on()?;
            if !path.is_file() && onnx::save(product(), &path).is_err() {
                break;
            }
            if let Some(operations_per_s) = run(job, &cell, &path, session)? {
                peaks.push(record::Peak { threads, operations_per_s });
            }
        }
        Ok(Peaks { peaks })
    }
}

/// One cell on the CPU for each number of threads, whose settings are used; those whose costs are not known need no peak.
fn cells_by_threads(job: &Job) -> BTreeMap<u32, Cell> {
    let manifest = &job.record.manifest;
    let mut cells = BTreeMap::new();
    for (_, cell) in manifest.plan.runnable() {
        let has_cost = manifest.cost(cell).is_some_and(|cost| cost.macs.is_some_and(|macs| macs > 0));
        let runs = job.pilot(cell).is_some_and(|pilot| pilot.outcome == Outcome::Completed);
        let is_cpu = manifest.experiment.devices[cell.device()].provider == "cpu";
        if has_cost && runs && is_cpu {
            cells.entry(manifest.threads_of(cell)).or_insert(*cell);
        }
    }
    cells
}

/// Operations per second of the best sample; `None` where there is none.
fn run(job: &Job, cell: &Cell, path: &Path, session: &mut Session<'_>) -> Result<Option<f64>, Halt> {
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
    let plan = RunPlan {
        request,
        warmup: LENGTH,
        at_least: Nanos(0),
        iterations: 1,
        stop: None,
        profile: None,
        outputs: None,
    };
    let mut launch = session.launch(job, cell, Arm::Pilot, 0);
    launch.log = session::log(job, "peak");
    let run = session.run(&launch, &plan, None)?;
    let best = run.data.warmup.duration_ns.iter().copied().min().filter(|_| run.failure.is_none());
    Ok(best.filter(|best| *best > 0).map(|best| OPERATIONS * 1e9 / best as f64))
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
