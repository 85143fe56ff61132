//! What came back from a run.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::protocol::{Answer, SamplePhase};
use crate::backend::trace::{Arena, DeviceTime, NodeTime, Resident};
use crate::backend::{Failure, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use device::Watched;
use onnx::precision::activation_ranges::Range;

/// What a worker found out in one run: what it sends, the journal stores and Parquet holds.
///
/// A new value of a run is a field here and, but for metrics, a line in the table of `record::columns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunData {
    /// Metrics by stored name.
    pub metrics: BTreeMap<String, f64>,
    /// What the backend says about itself.
    pub placement: Option<Placement>,
    /// Output shapes by name, where all input sets gave the same.
    pub output_shapes: Option<BTreeMap<String, Vec<u64>>>,
    /// Hash of the outputs for the first input set.
    pub output_hash: Option<String>,
    /// The same after the last sample.
    pub output_hash_after: Option<String>,
    /// Outputs with NaN or infinity, each once.
    pub non_finite: Vec<String>,
    /// How the warm-up ended.
    pub warmup_status: Option<WarmupStatus>,
    /// Why sampling ended.
    pub stop_reason: Option<StopReason>,
    /// How many of the counted samples each slice took; empty in designs without slices. Slice j of a cell ran next to,
    /// or at the same time as, slice j of the other members of its group.
    #[serde(default)]
    pub slices: Vec<u32>,
    /// Samples before the counted ones.
    #[serde(default)]
    pub warmup: Samples,
    /// Counted samples, late warm-up included.
    #[serde(default)]
    pub measured: Samples,
}

/// What came back from one run, complete or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerRun {
    /// What it found out.
    pub data: RunData,
    /// Ranges of outputs, if they were asked for.
    pub ranges: Option<BTreeMap<String, Range>>,
    /// What nodes took, if it was loaded with the profiler.
    pub nodes: Vec<NodeTime>,
    /// Its memory, if it took part in a profile.
    pub resident: Option<Resident>,
    pub arena: Option<Arena>,
    /// What its device did, if kernels were to be recorded.
    pub device: Option<DeviceTime>,
    /// Why the run failed, if it did.
    pub failure: Option<Failure>,
    /// The end of the worker's log, if it failed.
    pub log_tail: Option<String>,
    /// What the parent saw of its device and of the processors meanwhile.
    pub watched: Option<Watched>,
}

impl WorkerRun {
    /// A run that ended before it began.
    pub fn failed(failure: Failure) -> Self {
        WorkerRun { failure: Some(failure), ..WorkerRun::default() }
    }

    /// Keeps what an answer says that belongs to its command.
    pub(super) fn keep(&mut self, answer: Answer) {
        let data = &mut self.data;
        match answer {
            Answer::Hello { .. } | Answer::Phase { .. } | Answer::Failed { .. } => {}
            Answer::Ready { placement, output_shapes, output_hash, non_finite } => {
                data.placement = Some(placement);
                data.output_shapes = output_shapes;
                data.output_hash = output_hash;
                data.add_non_finite(non_finite);
            }
            Answer::Samples { phase, columns } => data.samples_mut(phase).append(columns),
            Answer::Metrics { values } => data.metrics.extend(values),
            Answer::Ranges { values } => self.ranges = Some(values),
            Answer::Nodes { nodes } => self.nodes.extend(nodes),
            Answer::Memory { resident, arena } => (self.resident, self.arena) = (resident, arena),
            Answer::Device { time } => self.device = Some(time),
            Answer::Done { warmup, stop, output_hash, non_finite } => {
                data.warmup_status = warmup.or(data.warmup_status);
                data.stop_reason = stop.or(data.stop_reason);
                data.output_hash_after = output_hash.or(data.output_hash_after.take());
                data.add_non_finite(non_finite);
            }
        }
    }
}

impl RunData {
    pub(super) fn samples_mut(&mut self, phase: SamplePhase) -> &mut Samples {
        match phase {
            SamplePhase::Warmup => &mut self.warmup,
            SamplePhase::Measure => &mut self.measured,
        }
    }

    /// What the counted samples took together, their gaps left out.
    pub(super) fn measured_ns(&self) -> u64 {
        self.measured.duration_ns.iter().copied().fold(0, u64::saturating_add)
    }

    fn add_non_finite(&mut self, names: Vec<String>) {
        let mut known: HashSet<String> = self.non_finite.iter().cloned().collect();
        self.non_finite.extend(names.into_iter().filter(|name| known.insert(name.clone())));
    }
}
