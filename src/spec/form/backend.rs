//! Forms of `backend` and of what the mock backend does.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::experiment::{Backend, MockFailureKind, MockOutputs, MockSlowed, MockStep};

use super::scalar::{DurationText, RatioText};
use super::shorthand::Ordered;

/// What executes the models.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::spec) enum BackendForm {
    /// A script in place of models.
    Mock(Box<MockForm>),
    /// A backend without settings, by its name.
    #[serde(untagged)]
    Plain(Backend),
}

/// Every backend by its name.
const NAMES: [&str; 2] = ["onnxruntime", "mock"];

impl BackendForm {
    /// Whether `models` are files.
    pub(in crate::spec) fn reads_models(&self) -> bool {
        match self {
            BackendForm::Mock(_) => false,
            BackendForm::Plain(backend) => backend.reads_models(),
        }
    }
}

impl<'de> Deserialize<'de> for BackendForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Long {
            mock: MockForm,
        }

        match Value::deserialize(deserializer)? {
            Value::String(name) if name == "mock" => Ok(BackendForm::Mock(Box::default())),
            Value::String(name) => match Backend::deserialize(Value::String(name.clone())) {
                Ok(backend) if backend.name() != Backend::COMMANDS => Ok(BackendForm::Plain(backend)),
                _ => Err(D::Error::unknown_variant(&name, &NAMES)),
            },
            long => {
                let long: Long = serde_json::from_value(long).map_err(D::Error::custom)?;
                Ok(BackendForm::Mock(Box::new(long.mock)))
            }
        }
    }
}

impl JsonSchema for BackendForm {
    fn schema_name() -> Cow<'static, str> {
        "backend".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut mock = generator.subschema_for::<MockForm>();
        mock.insert("description".to_owned(), "What the script does.".into());
        json_schema!({
            "description": "`onnxruntime`, or `mock`: a script in place of models, to try a spec or a report.",
            "anyOf": [
                { "type": "string", "enum": NAMES },
                {
                    "description": "The mock backend with a script of its own.",
                    "type": "object",
                    "properties": { "mock": mock },
                    "required": ["mock"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// The script of the mock backend.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "mock")]
pub(in crate::spec) struct MockForm {
    /// Typical duration of an iteration.
    pub(in crate::spec) median: DurationText,
    /// What each item of a batch adds to it.
    pub(in crate::spec) item: DurationText,
    /// The largest batch that fits: memory runs out at any larger one. Default: every batch fits.
    #[schemars(range(min = 1))]
    pub(in crate::spec) fits: Option<u64>,
    /// What comes out.
    pub(in crate::spec) outputs: MockOutputs,
    /// How much runs differ from each other: standard deviation of the logarithm of a run's level.
    pub(in crate::spec) run_sd: RatioText,
    /// Share of the runs that other load disturbs from beginning to end.
    pub(in crate::spec) disturbed: RatioText,
    /// How much slower such a run is at most; each by a random part of it.
    pub(in crate::spec) disturbance: RatioText,
    /// How much slower a run is while cells of other devices run (`measure.parallel`).
    pub(in crate::spec) beside: RatioText,
    /// How much iterations differ within a run: standard deviation of their logarithm.
    pub(in crate::spec) noise: RatioText,
    /// Correlation of an iteration with the one before, from 0 to below 1.
    pub(in crate::spec) ar1: RatioText,
    /// Whether iterations are exponential, with `median` as their mean, as the services of M/M/1.
    pub(in crate::spec) exponential: bool,
    /// How much slower the first iterations are.
    pub(in crate::spec) warmup_excess: RatioText,
    /// Time constant with which that excess fades.
    pub(in crate::spec) warmup_time: DurationText,
    /// Duration of loading.
    pub(in crate::spec) load: DurationText,
    /// What the GPU of a device does meanwhile. Default: nothing is known of it.
    pub(in crate::spec) device: Option<MockDeviceForm>,
    /// What it does differently with a runtime, by its name.
    pub(in crate::spec) runtimes: Ordered<MockVariantForm>,
}

/// What the GPU of a device does while the mock backend runs on it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "mock-device")]
pub(in crate::spec) struct MockDeviceForm {
    /// Clocks that are read in turn while sampling, in MHz.
    #[schemars(length(min = 1), inner(range(min = 1)))]
    pub(in crate::spec) clocks: Vec<u32>,
    /// Whether the clock holds while the GPU is idle.
    pub(in crate::spec) locked: bool,
    /// Power while sampling.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(in crate::spec) watts: f64,
    /// Power while nothing runs.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(in crate::spec) idle_watts: f64,
    /// Temperature of the chip.
    #[schemars(range(min = -273.0, max = 1e3))]
    pub(in crate::spec) celsius: f64,
    /// What slows the GPU down while sampling. Default: nothing.
    pub(in crate::spec) slowed: Option<MockSlowed>,
    /// Share of its memory that a run takes.
    pub(in crate::spec) memory: RatioText,
    /// Share of its memory that another process holds.
    pub(in crate::spec) others_memory: RatioText,
    /// Share of its time that another process uses.
    pub(in crate::spec) others: RatioText,
    /// Persistence mode.
    pub(in crate::spec) persistence: bool,
    /// What the processors draw while sampling. Default: their counters cannot be read.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(in crate::spec) package_watts: Option<f64>,
}

impl Default for MockDeviceForm {
    fn default() -> Self {
        MockDeviceForm {
            clocks: vec![1500],
            locked: false,
            watts: 250.0,
            idle_watts: 50.0,
            celsius: 60.0,
            slowed: None,
            memory: "10%".into(),
            others_memory: "0%".into(),
            others: "0%".into(),
            persistence: true,
            package_watts: None,
        }
    }
}

impl Default for MockForm {
    fn default() -> Self {
        MockForm {
            median: "5ms".into(),
            item: "0ms".into(),
            fits: None,
            outputs: MockOutputs::Scores,
            run_sd: "1%".into(),
            disturbed: "0%".into(),
            disturbance: "50%".into(),
            beside: "0%".into(),
            noise: "2%".into(),
            ar1: "0".into(),
            exponential: false,
            warmup_excess: "0%".into(),
            warmup_time: "100ms".into(),
            load: "20ms".into(),
            device: None,
            runtimes: Ordered::default(),
        }
    }
}

/// What the mock backend does differently for one variant, or with one runtime.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "mock-variant", extend("minProperties" = 1))]
pub(in crate::spec) struct MockVariantForm {
    /// Factor on the duration of an iteration. Default: 1.
    pub(in crate::spec) scale: Option<RatioText>,
    /// How much the outputs differ from those of other variants: relative standard deviation. Default: they are equal.
    pub(in crate::spec) differ: Option<RatioText>,
    /// Share of the time that a node on the CPU takes, on another device. Default: there is none.
    pub(in crate::spec) on_cpu: Option<RatioText>,
    /// Share of the time that the clock of another device shows. Default: it has none.
    pub(in crate::spec) on_device: Option<RatioText>,
    /// The largest batch that fits. Default: that of the backend.
    #[schemars(range(min = 1))]
    pub(in crate::spec) fits: Option<u64>,
    /// Share of the time that each operator takes, for a profile. Default: `Conv: 80%`.
    pub(in crate::spec) operators: Option<Ordered<RatioText>>,
    /// A failure to simulate.
    pub(in crate::spec) fail: Option<MockFailureForm>,
}

/// A failure that the mock backend simulates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mock-failure")]
pub(in crate::spec) struct MockFailureForm {
    /// What happens.
    pub(in crate::spec) kind: MockFailureKind,
    /// In which step.
    #[serde(default = "measuring")]
    pub(in crate::spec) at: MockStep,
    /// In which runs, from 0. Default: in every one.
    #[schemars(length(min = 1))]
    pub(in crate::spec) runs: Option<Vec<u32>>,
}

fn measuring() -> MockStep {
    MockStep::Measure
}
