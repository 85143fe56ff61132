//! How a run warms up, samples and stops, and in which order the runs come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Trace;
use base::quantity::{Nanos, Ratio};
use statistics::stopping::Location;

/// How one run warms up, samples and stops, and in which order the runs come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "measure")]
pub struct Measure {
    /// What happens before samples count.
    pub warmup: Warmup,
    /// When there are enough samples.
    pub stop: Stop,
    /// Distinct sets of input tensors that are used in turn, at most 64 MiB together.
    #[schemars(range(min = 1, max = 1024))]
    pub inputs: u32,
    /// Deadline of one run; a run that misses it fails. Under a load it is twice what the queries take, where that is longer.
    pub timeout: Nanos,
    /// In which order, and how many at a time, the cells that are compared run.
    pub design: Design,
    /// How long a cell runs before the next has its turn; only with `design: slices` and `design: duet`.
    pub slice_time: Nanos,
    /// What the processor's caches hold when a sample begins.
    pub cache: Cache,
    /// Where the tensors of an inference are when its clock starts and ends. On the CPU both are the same.
    pub boundary: Boundary,
    /// Whether nodes that a provider does not support may run on the CPU; with `false` such a cell fails.
    pub allow_fallback: bool,
    /// Also measures throughput with this many inferences in flight; on CUDA and TensorRT only.
    #[schemars(range(min = 2, max = 64))]
    pub pipelined: Option<u32>,
    /// How often a provider that builds an engine from a model, as TensorRT does, builds it.
    pub rebuild: Rebuild,
    /// Longest wait between blocks for a processor or a GPU that is throttled by heat; `0s` never waits.
    pub cooldown: Nanos,
    /// Takes a run again in which heat slowed the processor or the device down, up to three times, each after the wait of
    /// `cooldown`; with `design: blocks` and `sequential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retake: Option<Retake>,
    /// Whether cells of different devices run at the same time. A trial first measures some of them alone and while
    /// the others run; unless both are equivalent, cells run one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// The times of `load.arrivals`, where these are those of a file; no key of a specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub trace: Option<Trace>,
}

/// In which order, and how many at a time, the cells of a group run (method 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "design", description = "In which order, and how many at a time, the cells of a group run.")]
pub enum Design {
    /// One run of each cell in a block, one after the other, in a balanced random order.
    #[default]
    Blocks,
    /// The workers of a group stay alive and take turns in slices.
    Slices,
    /// Two cells at the same time on equal, disjoint sets of cores, which they swap in every block; on the CPU only.
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

impl Default for Measure {
    fn default() -> Self {
        Measure {
            warmup: Warmup::Adaptive(AdaptiveWarmup::default()),
            stop: Stop::Precision(PrecisionStop::default()),
            inputs: 8,
            timeout: Nanos::from_secs(600),
            design: Design::Blocks,
            slice_time: Nanos::from_millis(500),
            cache: Cache::Warm,
            boundary: Boundary::Device,
            allow_fallback: true,
            pipelined: None,
            rebuild: Rebuild::Once,
            cooldown: Nanos::from_secs(30),
            retake: None,
            parallel: None,
            trace: None,
        }
    }
}

/// What happens before samples count.
// `max_time` beats every minimum, but never fewer than 3 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schemars(rename = "warmup")]
pub enum Warmup {
    Adaptive(AdaptiveWarmup),
    Samples(SamplesWarmup),
    Time(TimeWarmup),
}

/// Warms up until the last half of the samples is as fast as the second quarter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct AdaptiveWarmup {
    /// Never shorter.
    pub min_time: Nanos,
    /// Never longer, even if a minimum is not reached (at least three samples are taken).
    pub max_time: Nanos,
    /// Never fewer samples.
    #[schemars(range(min = 1))]
    pub min_samples: u32,
    /// Largest difference between the second quarter and the last half that counts as steady.
    pub tolerance: Ratio,
}

impl Default for AdaptiveWarmup {
    fn default() -> Self {
        AdaptiveWarmup {
            min_time: Nanos::from_millis(300),
            max_time: Nanos::from_secs(5),
            min_samples: 12,
            tolerance: Ratio(0.02),
        }
    }
}

/// Warms up for a fixed number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SamplesWarmup {
    /// How many samples.
    #[schemars(range(min = 1))]
    pub count: u32,
}

/// Warms up for a fixed time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TimeWarmup {
    /// How long.
    pub time: Nanos,
}

/// When there are enough samples.
// `max_time` beats every minimum, but never fewer than 5 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[schemars(rename = "stop")]
pub enum Stop {
    Precision(PrecisionStop),
    Samples(SamplesStop),
    Time(TimeStop),
}

/// Samples until the interval of a statistic is narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct PrecisionStop {
    /// The statistic whose interval is looked at.
    pub statistic: StopStatistic,
    /// Half the width of the interval, relative to the statistic.
    pub relative: Ratio,
    /// Confidence of the interval.
    pub confidence: Ratio,
    /// Never fewer samples.
    #[schemars(range(min = 1))]
    pub min_samples: u32,
    /// Never more samples.
    #[schemars(range(min = 1))]
    pub max_samples: u32,
    /// Never shorter.
    pub min_time: Nanos,
    /// Never longer, even if a minimum is not reached (at least five samples are taken).
    pub max_time: Nanos,
}

impl Default for PrecisionStop {
    fn default() -> Self {
        PrecisionStop {
            statistic: StopStatistic::Median,
            relative: Ratio(0.01),
            confidence: Ratio(0.95),
            min_samples: 50,
            max_samples: MOST_SAMPLES,
            min_time: Nanos::from_millis(500),
            max_time: Nanos::from_secs(5),
        }
    }
}

const MOST_SAMPLES: u32 = 100_000;

/// Takes a fixed number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SamplesStop {
    /// How many samples.
    #[schemars(range(min = 1))]
    pub count: u32,
    /// Never longer (at least five samples are taken).
    #[serde(default = "one_minute")]
    pub max_time: Nanos,
}

/// A count was asked for, so the bound is there for mistakes, not for slow models.
fn one_minute() -> Nanos {
    Nanos::from_secs(60)
}

/// Samples for a fixed time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TimeStop {
    /// How long.
    pub time: Nanos,
    /// Never fewer samples.
    #[serde(default = "Stop::least_by_time", skip_serializing_if = "Stop::is_least_by_time")]
    #[schemars(range(min = 1), extend("default" = Stop::least_by_time()))]
    pub min_samples: u32,
    /// Never more samples.
    #[serde(default = "most_samples")]
    #[schemars(range(min = 1))]
    pub max_samples: u32,
}

fn most_samples() -> u32 {
    MOST_SAMPLES
}

impl Stop {
    /// `max_time` beats every minimum, but this many samples are always taken (method 3.1), if `mode: time` asks for no
    /// fewer.
    pub const LEAST_SAMPLES: usize = 5;

    /// A run never takes more.
    pub fn most_samples(self) -> usize {
        match self {
            Stop::Precision(PrecisionStop { max_samples, .. }) | Stop::Time(TimeStop { max_samples, .. }) => {
                max_samples as usize
            }
            Stop::Samples(stop) => stop.count as usize,
        }
    }

    /// The statistic is not computed before.
    pub fn least_samples(self) -> usize {
        match self {
            Stop::Precision(stop) => (stop.min_samples as usize).max(Stop::LEAST_SAMPLES),
            Stop::Time(stop) => stop.min_samples as usize,
            Stop::Samples(_) => Stop::LEAST_SAMPLES,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, description = "How much is profiled.")]
pub struct Profiling {
    /// Processes with the profiler for each cell, each paired with one without it.
    #[schemars(range(min = 1, max = 100))]
    pub processes: u32,
    /// Never fewer profiled inferences in each process; more, for up to half a second, where they are short.
    #[schemars(range(min = 1, max = 10_000))]
    pub inferences: u32,
}

/// What `profile: true` means: as few processes as an interval needs.
impl Default for Profiling {
    fn default() -> Self {
        Profiling { processes: 5, inferences: 20 }
    }
}
