//! Form of `measure.profile`: yes, no, or how much.

use schemars::json_schema;
use serde::{Deserialize, Serialize};

use super::shorthand::described;
use experiment::Profiling;

/// Whether cells are profiled after they were measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ProfileForm {
    Plain(bool),
    Sized(ProfileSize),
}

/// How much is profiled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProfileSize {
    pub(crate) processes: u32,
    pub(crate) inferences: u32,
}

impl Default for ProfileSize {
    fn default() -> Self {
        let Profiling { processes, inferences } = Profiling::DEFAULT;
        ProfileSize { processes, inferences }
    }
}

described!(ProfileForm, "profile", |_| {
    let number = |default: u32, most: u32, description: &str| {
        json_schema!({
            "description": description, "type": "integer", "minimum": 1, "maximum": most, "default": default,
        })
    };
    let Profiling { processes, inferences } = Profiling::DEFAULT;
    json_schema!({
        "description": "Whether the time of each operator is measured, in processes of their own after the measurement.",
        "anyOf": [
            { "type": "boolean" },
            {
                "description": "How much is profiled.",
                "type": "object",
                "properties": {
                    "processes": number(
                        processes,
                        Profiling::MOST_PROCESSES,
                        "Processes with the profiler for each cell, each beside one without it."
                    ),
                    "inferences": number(
                        inferences,
                        Profiling::MOST_INFERENCES,
                        "Never fewer profiled inferences in each process; more, for up to half a second, where they are short."
                    ),
                },
                "additionalProperties": false,
            },
        ],
    })
});
