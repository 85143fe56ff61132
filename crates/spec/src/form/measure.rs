//! Forms of `measure`: how a run warms up, samples and stops, and in which order the runs come.

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::load::LoadForm;
use super::profile::ProfileForm;
use super::scalar::{DurationText, RatioText};
use super::shorthand::described;
use experiment::{Boundary, Cache, Design, Parallel, Rebuild, Retake, Stop, StopStatistic};

/// How one run warms up, samples and stops, and in which order the runs come.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "measure")]
pub(crate) struct MeasureForm {
    /// What happens before samples count.
    pub(crate) warmup: WarmupForm,
    /// When there are enough samples.
    pub(crate) stop: StopForm,
    /// Distinct sets of input tensors that are used in turn, at most 64 MiB together.
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) inputs: u32,
    /// Deadline of one run; a run that misses it fails. Under a load it is twice what the queries take, where that is longer.
    pub(crate) timeout: DurationText,
    /// In which order, and how many at a time, the cells that are compared run.
    pub(crate) design: Design,
    /// How long a cell runs before the next has its turn; only with `design: slices` and `design: duet`.
    pub(crate) slice_time: DurationText,
    /// What the processor's caches hold when a sample begins.
    pub(crate) cache: Cache,
    /// Where the tensors of an inference are when its clock starts and ends. On the CPU both are the same.
    pub(crate) boundary: Boundary,
    /// Whether nodes that a provider does not support may run on the CPU; with `false` such a cell fails.
    pub(crate) allow_fallback: bool,
    /// Also measures throughput with this many inferences in flight; on CUDA and TensorRT only.
    #[schemars(range(min = 2, max = 64))]
    pub(crate) pipelined: Option<u32>,
    /// How often a provider that builds an engine from a model, as TensorRT does, builds it.
    pub(crate) rebuild: Rebuild,
    /// Longest wait between blocks for a processor or a GPU that is throttled by heat; `0s` never waits.
    pub(crate) cooldown: DurationText,
    /// Takes a run again in which heat slowed the processor or the device down, up to three times, each after the wait of
    /// `cooldown`; with `design: blocks` and `sequential`.
    pub(crate) retake: Option<Retake>,
    /// Whether cells of different devices run at the same time. A trial first measures some of them alone and beside the
    /// others; unless both are equivalent, cells run one after the other.
    pub(crate) parallel: Option<Parallel>,
    /// How queries come, in place of one caller who waits for each answer.
    pub(crate) load: Option<LoadForm>,
    /// Whether the time of each operator is measured too, in processes of their own after the measurement.
    pub(crate) profile: ProfileForm,
}

impl Default for MeasureForm {
    fn default() -> Self {
        MeasureForm {
            warmup: WarmupForm::Adaptive(AdaptiveWarmup::default()),
            stop: StopForm::Precision(PrecisionStop::default()),
            inputs: 8,
            timeout: "10m".into(),
            design: Design::Blocks,
            slice_time: "500ms".into(),
            cache: Cache::Warm,
            boundary: Boundary::Device,
            allow_fallback: true,
            pipelined: None,
            rebuild: Rebuild::Once,
            cooldown: "30s".into(),
            retake: None,
            parallel: None,
            load: None,
            profile: ProfileForm::Plain(false),
        }
    }
}

/// The modes of warming up.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(crate) enum WarmupForm {
    /// Until it no longer gets faster.
    Adaptive(AdaptiveWarmup),
    /// A number of samples.
    Samples(SamplesWarmup),
    /// A time.
    Time(TimeWarmup),
}

/// Warms up until the last half of the samples is as fast as the second quarter.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "adaptive-warmup")]
pub(crate) struct AdaptiveWarmup {
    /// Never shorter.
    pub(crate) min_time: DurationText,
    /// Never longer, even if a minimum is not reached (at least three samples are taken).
    pub(crate) max_time: DurationText,
    /// Never fewer samples.
    #[schemars(range(min = 1))]
    pub(crate) min_samples: u32,
    /// Largest difference between the second quarter and the last half that counts as steady.
    pub(crate) tolerance: RatioText,
}

impl Default for AdaptiveWarmup {
    fn default() -> Self {
        AdaptiveWarmup { min_time: "300ms".into(), max_time: "5s".into(), min_samples: 12, tolerance: "2%".into() }
    }
}

/// Warms up for a fixed number of samples.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "fixed-warmup")]
pub(crate) struct SamplesWarmup {
    /// How many samples.
    #[schemars(range(min = 1))]
    pub(crate) count: u32,
}

/// Warms up for a fixed time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "timed-warmup")]
pub(crate) struct TimeWarmup {
    /// How long.
    pub(crate) time: DurationText,
}

/// The modes of stopping.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(crate) enum StopForm {
    /// When the interval is narrow enough.
    Precision(PrecisionStop),
    /// A number of samples.
    Samples(SamplesStop),
    /// A time.
    Time(TimeStop),
}

/// Samples until the interval of a statistic is narrow enough.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "precision-stop")]
pub(crate) struct PrecisionStop {
    /// The statistic whose interval is looked at.
    pub(crate) statistic: StopStatistic,
    /// Half the width of the interval, relative to the statistic.
    pub(crate) relative: RatioText,
    /// Confidence of the interval.
    pub(crate) confidence: RatioText,
    /// Never fewer samples.
    #[schemars(range(min = 1))]
    pub(crate) min_samples: u32,
    /// Never more samples.
    #[schemars(range(min = 1))]
    pub(crate) max_samples: u32,
    /// Never shorter.
    pub(crate) min_time: DurationText,
    /// Never longer, even if a minimum is not reached (at least five samples are taken).
    pub(crate) max_time: DurationText,
}

impl Default for PrecisionStop {
    fn default() -> Self {
        PrecisionStop {
            statistic: StopStatistic::Median,
            relative: "1%".into(),
            confidence: "95%".into(),
            min_samples: 50,
            max_samples: 100_000,
            min_time: "500ms".into(),
            max_time: "5s".into(),
        }
    }
}

/// Takes a fixed number of samples.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "fixed-stop")]
pub(crate) struct SamplesStop {
    /// How many samples.
    #[schemars(range(min = 1))]
    pub(crate) count: u32,
    /// Never longer (at least five samples are taken).
    #[serde(default = "one_minute")]
    pub(crate) max_time: DurationText,
}

/// A count was asked for, so the bound is there for mistakes, not for slow models.
fn one_minute() -> DurationText {
    "1m".into()
}

/// Samples for a fixed time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "timed-stop")]
pub(crate) struct TimeStop {
    /// How long.
    pub(crate) time: DurationText,
    /// Never fewer samples.
    #[schemars(range(min = 1))]
    #[serde(default = "Stop::least_by_time")]
    pub(crate) min_samples: u32,
    /// Never more samples.
    #[schemars(range(min = 1))]
    #[serde(default = "hundred_thousand")]
    pub(crate) max_samples: u32,
}

fn hundred_thousand() -> u32 {
    PrecisionStop::default().max_samples
}

/// Reads a form by its `mode`, and describes it; the first mode is the default.
macro_rules! by_mode {
    ($form:ident, $name:literal, $meaning:literal, $($mode:literal => $variant:ident($shape:ident)),*) => {
        impl<'de> Deserialize<'de> for $form {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                const MODES: &[&str] = &[$($mode),*];
                let (mode, rest) = split_mode(deserializer, MODES[0])?;
                match mode.as_str() {
                    $($mode => read(rest).map($form::$variant),)*
                    other => Err(D::Error::unknown_variant(other, MODES)),
                }
            }
        }

        described!($form, $name, |generator| {
            modes_schema($meaning, [$(($mode, $shape::json_schema(generator))),*])
        });
    };
}

by_mode!(
    WarmupForm, "warmup", "What happens before samples count.",
    "adaptive" => Adaptive(AdaptiveWarmup), "samples" => Samples(SamplesWarmup), "time" => Time(TimeWarmup)
);
by_mode!(
    StopForm, "stop", "When there are enough samples.",
    "precision" => Precision(PrecisionStop), "samples" => Samples(SamplesStop), "time" => Time(TimeStop)
);

/// Takes `mode` out of the map; the first mode is the default, so that `warmup: { max_time: 2s }` needs none.
fn split_mode<'de, D: Deserializer<'de>>(deserializer: D, default: &str) -> Result<(String, Value), D::Error> {
    let mut map = Map::deserialize(deserializer)?;
    let mode = match map.shift_remove("mode") {
        Some(mode) => serde_json::from_value(mode).map_err(D::Error::custom)?,
        None => default.to_owned(),
    };
    Ok((mode, Value::Object(map)))
}

fn read<T: DeserializeOwned, E: serde::de::Error>(value: Value) -> Result<T, E> {
    serde_json::from_value(value).map_err(E::custom)
}

/// One shape for each mode; only the first works without `mode`.
fn modes_schema(description: &str, modes: [(&str, Schema); 3]) -> Schema {
    let mut shapes = Vec::new();
    let default = modes[0].0;
    for (mode, schema) in modes {
        let mut shape = schema.to_value();
        let fields = shape.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut tag = Map::from_iter([
            ("description".to_owned(), Value::from("The mode; it decides which other keys apply.")),
            ("const".to_owned(), Value::from(mode)),
        ]);
        let mut required: Vec<Value> = shape.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if mode == default {
            tag.insert("default".to_owned(), Value::from(mode));
        } else {
            required.insert(0, Value::from("mode"));
        }
        let mut properties = Map::from_iter([("mode".to_owned(), Value::Object(tag))]);
        properties.extend(fields);
        shape["properties"] = Value::Object(properties);
        shape["title"] = Value::from(mode);
        if !required.is_empty() {
            shape["required"] = Value::Array(required);
        }
        shapes.push(shape);
    }
    json_schema!({ "description": description, "oneOf": shapes })
}
