//! Form of `runs`: a number, `auto`, or bounds.

use schemars::json_schema;
use serde::{Deserialize, Serialize};

use super::shorthand::described;
use experiment::Runs;

/// How many fresh processes a cell gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunsForm {
    /// As many as the comparisons need.
    Auto,
    /// As many as the comparisons need, between these bounds.
    #[serde(untagged)]
    ByNeed(RunBounds),
    /// A number.
    #[serde(untagged)]
    Fixed(u32),
}

/// Bounds of the number of runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunBounds {
    /// Never fewer.
    pub(crate) min: u32,
    /// Never more.
    pub(crate) max: u32,
}

impl Default for RunBounds {
    fn default() -> Self {
        RunBounds { min: Runs::AUTO.min, max: Runs::AUTO.max }
    }
}

described!(RunsForm, "runs", |_| {
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
