//! Real data for models: what calibrates, what fidelity looks at, and what accuracy is measured with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary::metric::{ACCURACY_TOP1, ACCURACY_TOP5, MAE, Metric, R2, RMSE};

/// A file with items, one along the first dimension of every array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dataset {
    /// `.npz`, `.npy` or `.parquet`, absolute in memory.
    pub file: PathBuf,
    /// The array or column that holds what is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// A `.npy` file that holds it, absolute in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_file: Option<PathBuf>,
    /// Arrays by the model's input that they are for; empty: arrays are for inputs of their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The output that is compared with the labels; `None`: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What is computed from outputs and labels; `None`: what the labels' type suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<AccuracyMetric>>,
    /// At most so many items, the first ones; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// A command that reads saved outputs and prints numbers; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub score: Vec<String>,
}

impl Dataset {
    /// The first items of a file, without labels.
    pub fn of_items(file: PathBuf, items: u32) -> Self {
        Dataset { items: Some(u64::from(items)), ..Dataset::of_file(file) }
    }

    /// All of a file, without labels.
    pub fn of_file(file: PathBuf) -> Self {
        Dataset {
            file,
            labels: None,
            labels_file: None,
            inputs: BTreeMap::new(),
            output: None,
            metrics: None,
            items: None,
            score: Vec::new(),
        }
    }

    /// Whether it says what is right.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some() || self.labels_file.is_some()
    }
}

/// What is computed from outputs and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "accuracy-metric")]
pub enum AccuracyMetric {
    /// The largest output is the label's.
    Top1,
    /// The label is among the five largest outputs.
    Top5,
    /// Mean absolute error.
    Mae,
    /// Root of the mean squared error.
    Rmse,
    /// 1 minus the mean squared error over the variance of the labels.
    R2,
}

impl AccuracyMetric {
    /// Every metric.
    pub const ALL: [AccuracyMetric; 5] =
        [AccuracyMetric::Top1, AccuracyMetric::Top5, AccuracyMetric::Mae, AccuracyMetric::Rmse, AccuracyMetric::R2];

    /// What is computed where labels are classes.
    pub const OF_CLASSES: [AccuracyMetric; 1] = [AccuracyMetric::Top1];

    /// What is computed where labels are numbers.
    pub const OF_NUMBERS: [AccuracyMetric; 3] = [AccuracyMetric::Mae, AccuracyMetric::Rmse, AccuracyMetric::R2];

    /// The metric of the record.
    pub fn metric(self) -> &'static Metric {
        match self {
            AccuracyMetric::Top1 => &ACCURACY_TOP1,
            AccuracyMetric::Top5 => &ACCURACY_TOP5,
            AccuracyMetric::Mae => &MAE,
            AccuracyMetric::Rmse => &RMSE,
            AccuracyMetric::R2 => &R2,
        }
    }

    /// The word of specifications.
    pub fn name(self) -> &'static str {
        match self {
            AccuracyMetric::Top1 => "top1",
            AccuracyMetric::Top5 => "top5",
            AccuracyMetric::Mae => "mae",
            AccuracyMetric::Rmse => "rmse",
            AccuracyMetric::R2 => "r2",
        }
    }

    /// Of the classes with the largest outputs, among how many the label has to be; `None` for errors.
    pub fn among(self) -> Option<usize> {
        match self {
            AccuracyMetric::Top1 => Some(1),
            AccuracyMetric::Top5 => Some(5),
            AccuracyMetric::Mae | AccuracyMetric::Rmse | AccuracyMetric::R2 => None,
        }
    }
}
