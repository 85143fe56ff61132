//! Forms of `measure`, `runs` and `backend` where a specification has shorthands.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::load::LoadForm;
use super::shorthand::described;
use experiment::{Measure, Mock, Profiling, Runs};

/// How one run warms up, samples and stops, and in which order the runs come.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "measure")]
pub(crate) struct MeasureForm {
    #[serde(flatten)]
    pub(crate) of_runs: Measure,
    /// How queries come, in place of one caller who waits for each answer.
    pub(crate) load: Option<LoadForm>,
    /// Whether the time of each operator is measured too, in processes of their own after the measurement.
    pub(crate) profile: ProfileForm,
}

/// Whether cells are profiled after they were measured, and how much.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ProfileForm {
    Plain(bool),
    Sized(Profiling),
}

impl Default for ProfileForm {
    fn default() -> Self {
        ProfileForm::Plain(false)
    }
}

impl ProfileForm {
    pub(crate) fn profiling(&self) -> Option<Profiling> {
        match self {
            ProfileForm::Plain(wanted) => wanted.then(Profiling::default),
            ProfileForm::Sized(profiling) => Some(*profiling),
        }
    }
}

described!(ProfileForm, "profile", |generator| {
    json_schema!({
        "description": "Whether the time of each operator is measured, in processes of their own after the measurement.",
        "anyOf": [{ "type": "boolean" }, generator.subschema_for::<Profiling>()],
    })
});

/// The schema of [`Runs`].
pub(super) struct RunsSchema;

described!(RunsSchema, "runs", |_| {
    let bound = |default: u32, description: &str| {
        json_schema!({
            "description": description, "type": "integer", "minimum": 1, "maximum": Runs::MOST, "default": default,
        })
    };
    let Runs { min, max } = Runs::AUTO;
    json_schema!({
        "description": format!(
            "A number, or `auto`: as many as the verdicts need, from {min} to {max}, or between bounds of your own."
        ),
        "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": Runs::MOST },
            { "type": "string", "enum": ["auto"] },
            {
                "description": "As many as the verdicts need, between two bounds.",
                "type": "object",
                "properties": { "min": bound(min, "Never fewer."), "max": bound(max, "Never more.") },
                "additionalProperties": false,
            },
        ],
    })
});

/// The schema of [`experiment::Backend`].
pub(super) struct BackendSchema;

described!(BackendSchema, "backend", |generator| {
    let mut mock = generator.subschema_for::<Mock>();
    mock.insert("description".to_owned(), "What the script does.".into());
    json_schema!({
        "description": "`onnxruntime`, or `mock`: a script in place of models, to try a spec or a report.",
        "anyOf": [
            { "type": "string", "enum": ["onnxruntime", "mock"] },
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
