//! One generated model, run for a moment with the settings of a cell.

use std::collections::BTreeMap;

use super::models::Subject;
use crate::run::Job;
use crate::run::runner::{self, RunError, Runner};
use base::quantity::{Nanos, Ratio};
use experiment::{AdaptiveWarmup, Warmup};
use plan::{Cell, RandomStream};
use record::RunKind;
use worker::RunPlan;
use worker::backend::{CellRequest, Placement, TensorRequest};

/// Enough inferences to see one that nothing disturbed.
const LENGTH: Warmup = Warmup::Adaptive(AdaptiveWarmup {
    min_time: Nanos::from_millis(100),
    max_time: Nanos::from_millis(250),
    min_samples: 5,
    tolerance: Ratio(0.05),
});

/// The model, while it is needed.
pub(super) const MODEL: &str = "peak.onnx";

/// Runs models as a cell is run.
pub(super) struct Trial<'a> {
    pub(super) job: &'a Job,
    pub(super) cell: Cell,
}

/// What was seen of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// The fastest inference, in nanoseconds; more than none.
    pub(super) best_ns: f64,
    /// Nodes that the runtime made of it.
    pub(super) nodes: u64,
    /// Operations or bytes of one inference.
    work: f64,
}

impl Seen {
    /// Operations or bytes per second of the fastest inference.
    pub(super) fn work_per_s(&self) -> f64 {
        self.work * 1e9 / self.best_ns
    }
}

impl Trial<'_> {
    /// Runs a model; `None` where the device does not take the whole of it.
    ///
    /// # Errors
    ///
    /// If the user stopped it.
    pub(super) fn run(&self, subject: Subject, runner: &mut Runner<'_>) -> Result<Option<Seen>, RunError> {
        runner.go_on()?;
        let job = self.job;
        let path = job.folder().join(MODEL);
        if onnx::save(subject.model, &path).is_err() {
            return Ok(None);
        }
        let seeds = vec![RandomStream::Roofline.seed(job.plan().seed)];
        let tensors = vec![TensorRequest::random("a", subject.input.0, &subject.input.1, seeds)];
        let request = CellRequest {
            cell: subject.name.to_owned(),
            outputs: Some(BTreeMap::from([("c".to_owned(), subject.output)])),
            ..job.file_request(&self.cell, &path, tensors)
        };
        let mut launch = runner.launch(job, &self.cell, RunKind::Rehearsal, 0);
        launch.log = runner::log(job, "peak");
        let run = runner.run(&launch, &RunPlan::warming(request, LENGTH), None)?;
        if run.failure.is_some() {
            return Ok(None);
        }
        let best = run.data.warmup.duration_ns.iter().copied().min().filter(|best| *best > 0);
        let placement = run.data.placement.filter(|placement| placement.fallback.is_empty());
        let seen = |(best, placement): (u64, Placement)| Seen {
            best_ns: best as f64,
            nodes: placement.nodes.values().copied().fold(0, u64::saturating_add),
            work: subject.work,
        };
        Ok(best.zip(placement).map(seen))
    }
}
