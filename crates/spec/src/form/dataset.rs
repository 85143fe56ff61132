//! The form of a dataset.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shorthand::Ordered;

/// Real data: what accuracy is measured with, what calibrates int8, and what outputs of variants are compared on. Timed
/// only where an input has `values: dataset`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "dataset", extend("required" = ["file"]))]
pub(crate) struct DatasetForm {
    /// A `.npz`, `.npy` or `.parquet` file, relative to this one. Every array has one item along its first dimension; a
    /// Parquet file has one in each row.
    pub(crate) file: String,
    /// The labels: an array of the file, a column, or a `.npy` file of its own. Whole numbers are classes, others are
    /// values to be predicted. Default: none, and then the data only calibrate and compare.
    pub(crate) labels: Option<String>,
    /// Which array each input of the model takes: `{ input: array }`. Default: the array of the input's name; with one
    /// input and one array besides the labels, that one.
    pub(crate) inputs: Ordered<String>,
    /// The output that is compared with the labels. Default: the first.
    pub(crate) output: Option<String>,
    /// What is computed: `top1`, `top5`, `mae`, `rmse`, `r2`, and the names of `metrics` that the `score` command prints.
    /// Default: `top1` for classes; `mae`, `rmse` and `r2` for other labels.
    #[schemars(length(min = 1))]
    pub(crate) metrics: Vec<String>,
    /// Use only this many items, from the start. Default: all.
    #[schemars(range(min = 1))]
    pub(crate) items: Option<u64>,
    /// A command of your own that reads saved outputs and prints numbers as JSON, such as `{"map50": 0.41}`, or a list with
    /// one for each item. Its names stand in `metrics`, here and at the top. It is started in this file's folder and gets the
    /// folder of the outputs as its last argument.
    #[schemars(length(min = 1))]
    pub(crate) score: Vec<String>,
}
