//! The form of a metric of the user's own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number that a program, a command or the `score` command of a dataset reports under this name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "metric-form")]
pub(crate) struct MetricForm {
    /// The unit in which it is reported: `ms` and other times, `MiB` and other sizes, `/s`, `J`, `%`, or any short word.
    /// Default: none.
    pub(crate) unit: Option<String>,
    /// Which way is better. Default: neither, and then it is shown and cannot rank cells.
    pub(crate) better: Option<Better>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "better")]
pub(crate) enum Better {
    /// Larger values.
    Higher,
    /// Smaller values.
    Lower,
}
