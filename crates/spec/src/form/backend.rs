//! Forms of `backend` and of what the mock backend does.

use schemars::{JsonSchema, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::scalar::{DurationText, RatioText};
use super::shorthand::{Ordered, described};
use experiment::{Backend, MockFailureKind, MockOutputs, MockSlowed, MockStep};

/// What executes the models.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackendForm {
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
    pub(crate) fn reads_models(&self) -> bool {
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

described!(BackendForm, "backend", |generator| {
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
});

/// The script of the mock backend.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "mock")]
pub(crate) struct MockForm {
    /// Typical duration of an iteration.
    pub(crate) median: DurationText,
    /// What each item of a batch adds to it.
    pub(crate) item: DurationText,
    /// The largest batch that fits: memory runs out at any larger one. Default: every batch fits.
    #[schemars(range(min = 1))]
    pub(crate) fits: Option<u64>,
    /// What comes out.
    pub(crate) outputs: MockOutputs,
    /// How much runs differ from each other: standard deviation of the logarithm of a run's level.
    pub(crate) run_sd: RatioText,
    /// Share of the runs that other load disturbs from beginning to end.
    pub(crate) disturbed: RatioText,
    /// How much slower such a run is at most; each by a random part of it.
    pub(crate) disturbance: RatioText,
    /// How much slower a run is while cells of other devices run (`measure.parallel`).
    pub(crate) beside: RatioText,
    /// How much iterations differ within a run: standard deviation of their logarithm.
    pub(crate) noise: RatioText,
    /// Correlation of an iteration with the one before, from 0 to below 1.
    pub(crate) ar1: RatioText,
    /// Whether iterations are exponential, with `median` as their mean, as the services of M/M/1.
    pub(crate) exponential: bool,
    /// How much slower the first iterations are.
    pub(crate) warmup_excess: RatioText,
    /// Time constant with which that excess fades.
    pub(crate) warmup_time: DurationText,
    /// Duration of loading.
    pub(crate) load: DurationText,
    /// What the GPU of a device does meanwhile. Default: nothing is known of it.
    pub(crate) device: Option<MockDeviceForm>,
    /// What it does differently with a runtime, by its name.
    pub(crate) runtimes: Ordered<MockVariantForm>,
}

/// What the GPU of a device does while the mock backend runs on it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "mock-device")]
pub(crate) struct MockDeviceForm {
    /// Clocks that are read in turn while sampling, in MHz.
    #[schemars(length(min = 1), inner(range(min = 1)))]
    pub(crate) clocks: Vec<u32>,
    /// Whether the clock holds while the GPU is idle.
    pub(crate) locked: bool,
    /// Power while sampling.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) watts: f64,
    /// Power while nothing runs.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) idle_watts: f64,
    /// Temperature of the chip.
    #[schemars(range(min = -273.0, max = 1e3))]
    pub(crate) celsius: f64,
    /// What slows the GPU down while sampling. Default: nothing.
    pub(crate) slowed: Option<MockSlowed>,
    /// Share of its memory that a run takes.
    pub(crate) memory: RatioText,
    /// Share of its memory that another process holds.
    pub(crate) others_memory: RatioText,
    /// Share of its time that another process uses.
    pub(crate) others: RatioText,
    /// Persistence mode.
    pub(crate) persistence: bool,
    /// What the processors draw while sampling. Default: their counters cannot be read.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) package_watts: Option<f64>,
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
pub(crate) struct MockVariantForm {
    /// Factor on the duration of an iteration. Default: 1.
    pub(crate) scale: Option<RatioText>,
    /// How much the outputs differ from those of other variants: relative standard deviation. Default: they are equal.
    pub(crate) differ: Option<RatioText>,
    /// Share of the time that a node on the CPU takes, on another device. Default: there is none.
    pub(crate) on_cpu: Option<RatioText>,
    /// Share of the time that the clock of another device shows. Default: it has none.
    pub(crate) on_device: Option<RatioText>,
    /// The largest batch that fits. Default: that of the backend.
    #[schemars(range(min = 1))]
    pub(crate) fits: Option<u64>,
    /// Share of the time that each operator takes, for a profile. Default: `Conv: 80%`.
    pub(crate) operators: Option<Ordered<RatioText>>,
    /// A failure to simulate.
    pub(crate) fail: Option<MockFailureForm>,
}

/// A failure that the mock backend simulates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mock-failure")]
pub(crate) struct MockFailureForm {
    /// What happens.
    pub(crate) kind: MockFailureKind,
    /// In which step.
    #[serde(default = "measuring")]
    pub(crate) at: MockStep,
    /// In which runs, from 0. Default: in every one.
    #[schemars(length(min = 1))]
    pub(crate) runs: Option<Vec<u32>>,
}

fn measuring() -> MockStep {
    MockStep::Measure
}
