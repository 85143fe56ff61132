//! The script of the mock backend.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use base::quantity::{Nanos, Ratio};

/// The script of the mock backend.
// y = (median + item · batch + position · context) · scale · run effect · (1 + warm-up excess) · noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "mock")]
pub struct Mock {
    /// Typical duration of an iteration.
    pub median: Nanos,
    /// What each item of a batch adds to it.
    pub item: Nanos,
    /// What each position adds to a call of a language model that the cache holds before.
    #[serde(skip_serializing_if = "is_nothing")]
    #[schemars(extend("default" = Nanos(0)))]
    pub position: Nanos,
    /// The largest batch that fits: memory runs out at any larger one. Default: every batch fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fits: Option<u64>,
    /// What comes out.
    #[serde(skip_serializing_if = "MockOutputs::is_scores")]
    #[schemars(extend("default" = MockOutputs::Scores))]
    pub outputs: MockOutputs,
    /// How much runs differ from each other: standard deviation of the logarithm of a run's level.
    pub run_sd: Ratio,
    /// Share of the runs that background load disturbs from beginning to end.
    pub disturbed: Ratio,
    /// How much slower such a run is at most; each by a random part of it.
    pub disturbance: Ratio,
    /// How much slower a run is while cells of other devices run (`measure.parallel`).
    #[serde(skip_serializing_if = "Ratio::is_zero")]
    #[schemars(extend("default" = Ratio::default()))]
    pub beside: Ratio,
    /// How much iterations differ within a run: standard deviation of their logarithm.
    pub noise: Ratio,
    /// Correlation of an iteration with the one before, from 0 to below 1.
    pub ar1: Ratio,
    /// Whether iterations are exponential, with `median` as their mean, as the services of M/M/1.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub exponential: bool,
    /// How much slower the first iterations are.
    pub warmup_excess: Ratio,
    /// Time constant with which that excess fades.
    pub warmup_time: Nanos,
    /// Duration of loading.
    pub load: Nanos,
    /// What the GPU of a device does meanwhile. Default: nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<MockDevice>,
    /// What it does differently with a runtime, by its name; a worker gets a script without it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub runtimes: BTreeMap<String, MockVariant>,
}

impl Default for Mock {
    fn default() -> Self {
        Mock {
            median: Nanos::from_millis(5),
            item: Nanos(0),
            position: Nanos(0),
            fits: None,
            outputs: MockOutputs::Scores,
            run_sd: Ratio(0.01),
            disturbed: Ratio(0.0),
            disturbance: Ratio(0.5),
            beside: Ratio(0.0),
            noise: Ratio(0.02),
            ar1: Ratio(0.0),
            exponential: false,
            warmup_excess: Ratio(0.0),
            warmup_time: Nanos::from_millis(100),
            load: Nanos::from_millis(20),
            device: None,
            runtimes: BTreeMap::new(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_nothing(time: &Nanos) -> bool {
    time.0 == 0
}

impl Mock {
    /// Every iteration of every run takes as long.
    pub fn steady(median: Nanos) -> Self {
        let (run_sd, noise) = (Ratio(0.0), Ratio(0.0));
        Mock { median, run_sd, noise, warmup_time: Nanos(1), load: Nanos(0), ..Mock::default() }
    }
}

/// What the GPU of a device does while the mock backend runs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "mock-device")]
pub struct MockDevice {
    /// Clocks that are read in turn while sampling, in MHz.
    #[schemars(length(min = 1), inner(range(min = 1)))]
    pub clocks: Vec<u32>,
    /// Whether the clock holds while the GPU is idle.
    pub locked: bool,
    /// Power while sampling.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub watts: f64,
    /// Power while nothing runs.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub idle_watts: f64,
    /// Temperature of the chip.
    #[schemars(range(min = -273.0, max = 1e3))]
    pub celsius: f64,
    /// What slows the GPU down while sampling. Default: nothing.
    pub slowed: Option<MockSlowed>,
    /// Share of its memory that a run takes.
    pub memory: Ratio,
    /// Share of its memory that another process holds.
    pub others_memory: Ratio,
    /// Share of its time that another process uses.
    pub others: Ratio,
    /// Persistence mode.
    pub persistence: bool,
    /// What the processors draw while sampling. Default: their counters cannot be read.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub package_watts: Option<f64>,
}

impl Default for MockDevice {
    fn default() -> Self {
        MockDevice {
            clocks: vec![1500],
            locked: false,
            watts: 250.0,
            idle_watts: 50.0,
            celsius: 60.0,
            slowed: None,
            memory: Ratio(0.1),
            others_memory: Ratio(0.0),
            others: Ratio(0.0),
            persistence: true,
            package_watts: None,
        }
    }
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

/// What the mock backend does differently for one variant, or with one runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "mock-variant", extend("minProperties" = 1))]
pub struct MockVariant {
    /// Factor on the duration of an iteration. Default: 1.
    pub scale: Option<Ratio>,
    /// Calls of a language model that take longer. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jump: Option<MockJump>,
    /// How much the outputs differ from those of other variants: relative standard deviation. Default: they are equal.
    pub differ: Option<Ratio>,
    /// Share of the time that a node on the CPU takes, on another device. Default: there is none.
    pub on_cpu: Option<Ratio>,
    /// Share of the time that the clock of another device shows. Default: it has none.
    pub on_device: Option<Ratio>,
    /// The largest batch that fits. Default: that of the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub fits: Option<u64>,
    /// Share of the time that each operator takes, for a profile. Default: `Conv: 80%`.
    #[serde(deserialize_with = "map_or_pairs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "map_of_ratios")]
    pub operators: Vec<(String, Ratio)>,
    /// A failure to simulate.
    pub fail: Option<MockFailure>,
}

impl MockVariant {
    /// These, where `other` says nothing.
    pub fn overlaid(self, other: &MockVariant) -> Self {
        MockVariant {
            scale: other.scale.or(self.scale),
            jump: other.jump.or(self.jump),
            differ: other.differ.or(self.differ),
            on_cpu: other.on_cpu.or(self.on_cpu),
            on_device: other.on_device.or(self.on_device),
            fits: other.fits.or(self.fits),
            operators: if other.operators.is_empty() { self.operators } else { other.operators.clone() },
            fail: other.fail.clone().or(self.fail),
        }
    }
}

/// Calls of a language model that take longer from so many positions on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mock-jump")]
pub struct MockJump {
    /// Positions that the cache holds before the first such call.
    pub from: u64,
    /// How much longer.
    pub by: Ratio,
}

/// A map as people write it, or the pairs that are stored, which keep their order.
fn map_or_pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Ratio)>, D::Error> {
    let pairs = match Value::deserialize(deserializer)? {
        Value::Object(map) => map.into_iter().map(|(key, value)| Ok((key, serde_json::from_value(value)?))).collect(),
        pairs => serde_json::from_value(pairs),
    };
    pairs.map_err(serde::de::Error::custom)
}

fn map_of_ratios(generator: &mut SchemaGenerator) -> Schema {
    let ratio = generator.subschema_for::<Ratio>();
    json_schema!({ "type": "object", "propertyNames": { "minLength": 1 }, "additionalProperties": ratio })
}

/// A failure that the mock backend simulates.
// It is played out for real.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "mock-failure")]
pub struct MockFailure {
    /// What happens.
    pub kind: MockFailureKind,
    /// In which step.
    #[serde(default)]
    pub at: MockStep,
    /// In which runs, from 0. Default: in every one.
    #[serde(default)]
    #[schemars(length(min = 1))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-step")]
pub enum MockStep {
    /// While loading.
    Load,
    /// While warming up.
    Warmup,
    /// While sampling.
    #[default]
    Measure,
}
