//! Real data for models: what calibrates, what fidelity looks at, and what accuracy is measured with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use base::metric::{ACCURACY_TOP1, ACCURACY_TOP5, MAE, Metric, R2, RMSE};

/// A file with items, one along the first dimension of every array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What is computed; `None`: what the labels' type suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<AccuracyMetric>>,
    /// At most so many items, the first ones; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// A command that reads saved outputs and prints its own metrics; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub score: Vec<String>,
}

impl Dataset {
    /// The first items of a file, without labels.
    pub fn of_items(file: PathBuf, items: u32) -> Self {
        Dataset { file, items: Some(u64::from(items)), ..Dataset::default() }
    }

    /// All of a file, without labels.
    pub fn of_file(file: PathBuf) -> Self {
        Dataset { file, ..Dataset::default() }
    }

    /// What the `score` command prints.
    pub fn own_metrics(&self) -> impl Iterator<Item = &'static Metric> + Clone {
        self.metrics.iter().flatten().filter(|metric| metric.is_own()).map(|metric| metric.metric())
    }

    /// Whether it says what is right.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some() || self.labels_file.is_some()
    }
}

/// What is computed from outputs: with labels, or by the `score` command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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
    /// A metric of the specification's own, which the `score` command prints.
    Own(&'static Metric),
}

use AccuracyMetric::{Mae, Own, R2 as RSquared, Rmse, Top1, Top5};

impl AccuracyMetric {
    /// Those that perfrun computes.
    pub const OF_LABELS: [AccuracyMetric; 5] = [Top1, Top5, Mae, Rmse, RSquared];

    /// What is computed where labels are classes.
    pub const OF_CLASSES: [AccuracyMetric; 1] = [Top1];

    /// What is computed where labels are numbers.
    pub const OF_NUMBERS: [AccuracyMetric; 3] = [Mae, Rmse, RSquared];

    /// The metric of that word, or of the stored name of one of the specification's own.
    pub fn named(word: &str) -> Option<AccuracyMetric> {
        let of_labels = AccuracyMetric::OF_LABELS.into_iter().find(|metric| metric.name() == word);
        of_labels.or_else(|| Metric::of_own(word).filter(|metric| metric.is_constant()).map(Own))
    }

    /// The metric of the record.
    pub fn metric(self) -> &'static Metric {
        match self {
            Top1 => &ACCURACY_TOP1,
            Top5 => &ACCURACY_TOP5,
            Mae => &MAE,
            Rmse => &RMSE,
            RSquared => &R2,
            Own(metric) => metric,
        }
    }

    /// The word of specifications.
    pub fn name(self) -> &'static str {
        match self {
            Top1 => "top1",
            Top5 => "top5",
            Mae => "mae",
            Rmse => "rmse",
            RSquared => "r2",
            Own(metric) => metric.stem(),
        }
    }

    /// Of the classes with the largest outputs, among how many the label has to be; `None` for others.
    pub fn among(self) -> Option<usize> {
        match self {
            Top1 => Some(1),
            Top5 => Some(5),
            Mae | Rmse | RSquared | Own(_) => None,
        }
    }

    /// Whether the `score` command reports it.
    pub fn is_own(self) -> bool {
        matches!(self, Own(_))
    }
}

impl From<AccuracyMetric> for String {
    fn from(metric: AccuracyMetric) -> String {
        if metric.is_own() { metric.metric().name.to_owned() } else { metric.name().to_owned() }
    }
}

impl TryFrom<String> for AccuracyMetric {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        AccuracyMetric::named(&word).ok_or_else(|| format!("there is no score `{word}`"))
    }
}
