//! What came back from a run.

use std::collections::BTreeMap;

use super::protocol::Answer;
use crate::backend::{Failure, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::onnx::precision::calibration::Range;

/// What came back from one run, complete or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerRun {
    /// Metrics by stored name.
    pub metrics: BTreeMap<String, f64>,
    /// What the backend says about itself.
    pub placement: Option<Placement>,
    /// Output shapes, if constant.
    pub output_shapes: Option<BTreeMap<String, Vec<u64>>>,
    /// Hash of the first outputs.
    pub output_hash: Option<String>,
    /// Hash of the outputs after the last sample, for the same input.
    pub output_hash_after: Option<String>,
    /// Outputs with NaN or infinity.
    pub non_finite: Vec<String>,
    /// Warm-up samples.
    pub warmup: Samples,
    /// How the warm-up ended.
    pub warmup_status: Option<WarmupStatus>,
    /// Counted samples.
    pub measured: Samples,
    /// How many of the counted samples each slice took; empty where sampling was not cut into slices.
    pub slices: Vec<u32>,
    /// Why sampling ended.
    pub stop_reason: Option<StopReason>,
    /// Ranges of outputs, if they were asked for.
    pub ranges: Option<BTreeMap<String, Range>>,
    /// Why the run failed, if it did.
    pub failure: Option<Failure>,
    /// The end of the worker's log, if it failed.
    pub log_tail: Option<String>,
}

impl WorkerRun {
    /// Adds names of outputs that hold NaN or infinity, each once.
    fn tell_non_finite(&mut self, names: Vec<String>) {
        for name in names {
            if !self.non_finite.contains(&name) {
                self.non_finite.push(name);
            }
        }
    }

    /// Takes what an answer says; true if it ends the command. Failures are not for here.
    pub(super) fn hear(&mut self, answer: Answer) -> bool {
        match answer {
            Answer::Hello { .. } => true,
            Answer::Phase { .. } | Answer::Failed { .. } => false,
            Answer::Ready { placement, output_shapes, output_hash, non_finite } => {
                self.placement = Some(placement);
                self.output_shapes = output_shapes;
                self.output_hash = Some(output_hash);
                self.tell_non_finite(non_finite);
                true
            }
            Answer::Samples { phase, columns } => {
                match phase.as_str() {
                    "warmup" => self.warmup.append(columns),
                    _ => self.measured.append(columns),
                }
                false
            }
            Answer::Metrics { values } => {
                self.metrics.extend(values);
                false
            }
            Answer::Ranges { values } => {
                self.ranges = Some(values);
                false
            }
            Answer::Done { warmup, stop, output_hash, non_finite } => {
                self.warmup_status = warmup.or(self.warmup_status);
                self.stop_reason = stop.or(self.stop_reason);
                self.output_hash_after = output_hash.or(self.output_hash_after.take());
                self.tell_non_finite(non_finite);
                true
            }
        }
    }
}
