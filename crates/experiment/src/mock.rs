//! The script of the mock backend.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::quantity::{Nanos, Ratio};

/// The script of the mock backend: y = (median + item · batch) · scale · run effect · (1 + warm-up excess) · noise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mock {
    /// Typical duration of an iteration.
    pub median: Nanos,
    /// What each item of a batch adds to it.
    #[serde(default)]
    pub item: Nanos,
    /// The largest batch that fits into memory; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<u64>,
    /// What comes out.
    #[serde(default, skip_serializing_if = "MockOutputs::is_scores")]
    pub outputs: MockOutputs,
    /// Standard deviation of the log of a run's own level.
    pub run_sd: Ratio,
    /// Share of the runs that something disturbs from beginning to end.
    #[serde(default)]
    pub disturbed: Ratio,
    /// How much slower such a run is at most; each by a random part of it.
    #[serde(default)]
    pub disturbance: Ratio,
    /// How much slower a run is while cells of other devices run.
    #[serde(default, skip_serializing_if = "Ratio::is_zero")]
    pub beside: Ratio,
    /// Standard deviation of the log of an iteration.
    pub noise: Ratio,
    /// Lag-1 correlation of that noise, 0 to below 1.
    pub ar1: Ratio,
    /// Iterations are exponential with that mean, as the services of M/M/1, and not lognormal around it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exponential: bool,
    /// How much slower the first iterations are.
    pub warmup_excess: Ratio,
    /// Time constant with which that excess fades.
    pub warmup_time: Nanos,
    /// Duration of loading.
    pub load: Nanos,
    /// What the GPU of a device does meanwhile; `None`: nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<MockDevice>,
    /// Changes to the script by runtime name; a worker gets those of its own runtime only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(skip)]
    pub runtimes: BTreeMap<String, MockVariant>,
}

/// The script of a GPU, as the parent reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MockDevice {
    /// Clocks that are read in turn while sampling, in MHz; one at least.
    pub clocks: Vec<u32>,
    /// Its clock holds while it is idle.
    pub locked: bool,
    /// Power while sampling.
    pub watts: f64,
    /// Power while nothing runs.
    pub idle_watts: f64,
    /// Temperature of the chip.
    pub celsius: f64,
    /// What slows it down while sampling.
    pub slowed: Option<MockSlowed>,
    /// Share of its memory that a run takes.
    pub memory: Ratio,
    /// Share of its memory that another process holds.
    pub others_memory: Ratio,
    /// Share of its time that another process uses.
    pub others: Ratio,
    /// Persistence mode.
    pub persistence: bool,
    /// What the processors draw while sampling; `None`: their counters cannot be read.
    pub package_watts: Option<f64>,
}

/// What slows a GPU down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-slowed")]
pub enum MockSlowed {
    /// Its temperature.
    Heat,
    /// Its power limit.
    Power,
}

/// What comes out of the mock backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-outputs")]
pub enum MockOutputs {
    /// Scores of classes.
    #[default]
    Scores,
    /// The name of the class with the largest score, and the scores.
    Labels,
    /// The index of the class with the largest score alone.
    Classes,
    /// Scores that are drawn anew in each inference.
    Random,
}

impl MockOutputs {
    fn is_scores(&self) -> bool {
        *self == MockOutputs::Scores
    }
}

impl Mock {
    /// Every iteration of every run takes as long.
    pub fn steady(median: Nanos) -> Self {
        Mock { median, warmup_time: Nanos(1), ..Mock::default() }
    }
}

/// What differs in the script for one variant, or with one runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MockVariant {
    /// Factor on the median; `None`: 1.
    pub scale: Option<Ratio>,
    /// Relative standard deviation by which outputs differ from other variants'; `None`: they are equal.
    #[serde(default)]
    pub differ: Option<Ratio>,
    /// Share of the time that nodes on the CPU take, on another device; `None`: there are none.
    #[serde(default)]
    pub on_cpu: Option<Ratio>,
    /// Share of the time that the clock of another device shows; `None`: it has none.
    #[serde(default)]
    pub on_device: Option<Ratio>,
    /// The largest batch that fits into memory; `None`: as in the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<u64>,
    /// Share of the time that each operator takes, in order; none: one operator takes most of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<(String, Ratio)>,
    /// A failure to play.
    pub fail: Option<MockFailure>,
}

/// A failure that the mock worker plays out for real.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MockFailure {
    /// What happens.
    pub kind: MockFailureKind,
    /// In which step.
    pub at: MockStep,
    /// In which runs (0 is the first); empty: in every one, the rehearsal too.
    pub runs: Vec<u32>,
}

/// How the mock worker fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-failure-kind")]
pub enum MockFailureKind {
    /// The backend reports an error.
    Error,
    /// The process aborts.
    Crash,
    /// The process never answers.
    Hang,
    /// The process writes what is not the protocol.
    Garbage,
    /// The process panics, as a fault of perfrun or of its libraries.
    Panic,
}

/// When the mock worker fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-step")]
pub enum MockStep {
    /// While loading.
    Load,
    /// While warming up.
    Warmup,
    /// While sampling.
    Measure,
}
