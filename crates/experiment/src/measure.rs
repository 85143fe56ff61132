//! How a run warms up, samples and stops, and in which order the runs come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Trace;
use base::quantity::{Nanos, Ratio};
use statistics::stopping::Location;

/// How a run warms up, samples and stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Before the counted samples.
    pub warmup: Warmup,
    /// When the counted samples end.
    pub stop: Stop,
    /// Distinct input sets used in turn.
    pub inputs: u32,
    /// Deadline of one run.
    pub timeout: Nanos,
    /// In which order, and how many at a time, the arms of a group run.
    #[serde(default)]
    pub design: Design,
    /// Length of a slice in the designs that have slices.
    #[serde(default = "default_slice")]
    pub slice_time: Nanos,
    /// What the caches hold when a sample begins.
    #[serde(default)]
    pub cache: Cache,
    /// Where the tensors of an inference are when its clock starts and ends.
    #[serde(default)]
    pub boundary: Boundary,
    /// Whether nodes that a provider does not take may run on the CPU.
    #[serde(default = "default_fallback")]
    pub allow_fallback: bool,
    /// How many inferences are under way at once where throughput is measured that way too.
    #[serde(default)]
    pub pipelined: Option<u32>,
    /// How often engines are built.
    #[serde(default)]
    pub rebuild: Rebuild,
    /// Longest wait between blocks for a throttled processor to cool down.
    #[serde(default = "default_cooldown")]
    pub cooldown: Nanos,
    /// Which runs are taken again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retake: Option<Retake>,
    /// What may run at the same time, once it was seen not to disturb each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// When queries come whose arrivals are those of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

fn default_fallback() -> bool {
    true
}

fn default_slice() -> Nanos {
    Nanos::from_millis(500)
}

fn default_cooldown() -> Nanos {
    Nanos::from_secs(30)
}

/// In which order, and how many at a time, the arms of a group run (method 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "design", description = "In which order, and how many at a time, the cells of a group run.")]
pub enum Design {
    /// One run of each arm in a block, one after the other, in a balanced random order.
    #[default]
    Blocks,
    /// The workers of a group stay alive and take turns in slices.
    Slices,
    /// Two arms at the same time on equal, disjoint sets of cores, which they swap in every block; on the CPU only.
    Duet,
    /// All runs of a cell, then all of the next: for records that compare nothing.
    Sequential,
}

/// What may run at the same time, once it was seen not to disturb each other (method 4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(
    rename = "parallel",
    description = "What may run at the same time, once it was seen not to disturb each other."
)]
pub enum Parallel {
    /// Cells of different devices.
    Devices,
}

/// What the caches hold when a sample begins (method 1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "cache", description = "What the processor's caches hold when a sample begins.")]
pub enum Cache {
    /// What the samples before left in them.
    #[default]
    Warm,
    /// Nothing of the model: they are overwritten before every sample, outside the clock.
    Cold,
}

/// Which runs are taken again (method 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "retake", description = "Which runs are taken again.")]
pub enum Retake {
    /// Those in which heat slowed the processor or the device down, up to three times each.
    Throttled,
}

/// Where the tensors of an inference are when its clock starts and ends (method 1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "boundary", description = "Where the tensors of an inference are when its clock starts and ends.")]
pub enum Boundary {
    /// Where the model runs: inputs were copied there before. Outputs stay there, except where the runtime offers no other
    /// way to wait for them than to copy them to host memory.
    #[default]
    Device,
    /// In host memory: the copies are within the clock.
    Host,
}

impl Boundary {
    /// The word in specifications and reports.
    pub fn word(self) -> &'static str {
        match self {
            Boundary::Device => "device",
            Boundary::Host => "host",
        }
    }
}

/// How often a provider that builds an engine from a model does so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(
    rename = "rebuild",
    description = "How often a provider that builds an engine from a model, as TensorRT does, builds it."
)]
pub enum Rebuild {
    /// In the rehearsal; every run loads that engine.
    #[default]
    Once,
    /// In every run: builds may choose differently, and the intervals include that effect.
    PerRun,
}

/// What a specification without `measure` means (docs/reference/spec.md).
impl Default for Measure {
    fn default() -> Self {
        Measure {
            warmup: Warmup::Adaptive {
                min_time: Nanos::from_millis(300),
                max_time: Nanos::from_secs(5),
                min_samples: 12,
                tolerance: Ratio(0.02),
            },
            stop: Stop::Precision {
                statistic: StopStatistic::Median,
                relative: Ratio(0.01),
                confidence: Ratio(0.95),
                min_samples: 50,
                max_samples: 100_000,
                min_time: Nanos::from_millis(500),
                max_time: Nanos::from_secs(5),
            },
            inputs: 8,
            timeout: Nanos::from_secs(600),
            design: Design::Blocks,
            slice_time: default_slice(),
            cache: Cache::Warm,
            boundary: Boundary::Device,
            allow_fallback: default_fallback(),
            pipelined: None,
            rebuild: Rebuild::Once,
            cooldown: default_cooldown(),
            retake: None,
            parallel: None,
            trace: None,
        }
    }
}

/// How a run warms up. `max_time` beats every minimum, but never fewer than 3 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Warmup {
    /// Until the second quarter and the last half of everything seen agree.
    Adaptive {
        /// Never less.
        min_time: Nanos,
        /// Never more.
        max_time: Nanos,
        /// Never fewer samples.
        min_samples: u32,
        /// Largest relative difference between the second quarter and the last half.
        tolerance: Ratio,
    },
    /// A fixed number of samples.
    Samples {
        /// How many.
        count: u32,
    },
    /// A fixed time.
    Time {
        /// How long.
        time: Nanos,
    },
}

/// When a run stops sampling. `max_time` beats every minimum, but never fewer than 5 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Stop {
    /// When the interval of the statistic is narrow enough.
    Precision {
        /// Of which the interval is.
        statistic: StopStatistic,
        /// Half width relative to the estimate.
        relative: Ratio,
        /// Of the interval.
        confidence: Ratio,
        /// Never fewer samples.
        min_samples: u32,
        /// Never more samples.
        max_samples: u32,
        /// Never less.
        min_time: Nanos,
        /// Never more.
        max_time: Nanos,
    },
    /// A fixed number of samples.
    Samples {
        /// How many.
        count: u32,
        /// Never more.
        max_time: Nanos,
    },
    /// A fixed time.
    Time {
        /// How long.
        time: Nanos,
        /// Never fewer samples.
        #[serde(default = "Stop::least_by_time", skip_serializing_if = "Stop::is_least_by_time")]
        min_samples: u32,
        /// Never more samples.
        max_samples: u32,
    },
}

impl Stop {
    /// `max_time` beats every minimum, but this many samples are always taken (method 3.1), if `mode: time` asks for no
    /// fewer.
    pub const LEAST_SAMPLES: usize = 5;

    /// A run never takes more.
    pub fn most_samples(self) -> usize {
        match self {
            Stop::Precision { max_samples, .. } | Stop::Time { max_samples, .. } => max_samples as usize,
            Stop::Samples { count, .. } => count as usize,
        }
    }

    /// The statistic is not computed before.
    pub fn least_samples(self) -> usize {
        match self {
            Stop::Precision { min_samples, .. } => (min_samples as usize).max(Stop::LEAST_SAMPLES),
            Stop::Time { min_samples, .. } => min_samples as usize,
            Stop::Samples { .. } => Stop::LEAST_SAMPLES,
        }
    }

    /// The fewest samples of a run by time that says nothing else.
    pub fn least_by_time() -> u32 {
        5
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_least_by_time(count: &u32) -> bool {
        *count == Stop::least_by_time()
    }
}

/// The statistic whose interval decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stop-statistic")]
pub enum StopStatistic {
    /// Type-7 median, order-statistic interval.
    Median,
    /// Arithmetic mean, t interval on the effective sample size.
    Mean,
}

impl StopStatistic {
    /// What the stopping rule computes.
    pub fn location(self) -> Location {
        match self {
            StopStatistic::Median => Location::Median,
            StopStatistic::Mean => Location::Mean,
        }
    }
}

/// How cells are profiled after they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiling {
    /// Processes with the profiler, each beside one without.
    pub processes: u32,
    /// Never fewer inferences in each.
    pub inferences: u32,
}

impl Profiling {
    /// What `profile: true` means: as few processes as an interval needs.
    pub const DEFAULT: Profiling = Profiling { processes: 5, inferences: 20 };
    pub const MOST_PROCESSES: u32 = 100;
    pub const MOST_INFERENCES: u32 = 10_000;
}
