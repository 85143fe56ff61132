//! Forms of what the numbers are asked: comparisons, conditions, questions, tables.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::experiment::{Aa, Axis, Grade};

use super::SelectorForm;
use super::scalar::{BoundText, DifferenceText, MetricText, Name, RatioText};
use super::shorthand::{OneOrMany, two_shapes};

/// What is compared with what, and how strictly.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "compare", extend("minProperties" = 1, "examples" = [{ "baseline": { "variant": "fp32" } }]))]
pub(in crate::spec) struct CompareForm {
    /// The cells that the others are compared with, such as `{ variant: fp32 }`. A cell is compared with the one that
    /// differs from it on these axes alone. Default: the first entry of the first of variants, runtimes, models,
    /// devices that has more than one.
    pub(in crate::spec) baseline: Option<SelectorForm>,
    /// Differences within it are of no interest: a ratio, or a map with one for tails.
    pub(in crate::spec) margin: MarginForm,
    /// Which groups get a control: their baseline measured twice, as if it were two things.
    pub(in crate::spec) aa: Aa,
}

impl Default for CompareForm {
    fn default() -> Self {
        CompareForm { baseline: None, margin: MarginForm::Ratio("2%".into()), aa: Aa::Auto }
    }
}

/// The margins, as one ratio or a map.
#[derive(Clone, Debug)]
pub(in crate::spec) enum MarginForm {
    /// Of everything; tails have at least 5 %.
    Ratio(RatioText),
    /// Each for itself.
    Form(MarginsForm),
}

/// Margins of two kinds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "margins", extend("minProperties" = 1))]
pub(in crate::spec) struct MarginsForm {
    /// Of medians, means, throughput and everything else. Default: `2%`.
    pub(in crate::spec) default: Option<RatioText>,
    /// Of percentiles from the 90th on. Default: `5%`, or the other margin where that is larger.
    pub(in crate::spec) tail: Option<RatioText>,
}

two_shapes!(MarginForm, "margin", Ratio(String => MarginForm::Ratio), Form, |generator| {
    let (ratio, form) = (generator.subschema_for::<RatioText>(), generator.subschema_for::<MarginsForm>());
    json_schema!({
        "description": "Differences within it are of no interest: a ratio, or a map with one for tails.",
        "anyOf": [ratio, form],
    })
});

/// Conditions that this machine must meet before anything is measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "require", extend("minProperties" = 1, "examples" = [{ "grade": "B" }]))]
pub(in crate::spec) struct RequireForm {
    /// The least grade of the machine, found by a short control before the first block.
    pub(in crate::spec) grade: Option<LeastGrade>,
    /// No other load on the machine.
    pub(in crate::spec) quiet: bool,
    /// State of the clocks of every GPU that is measured on.
    pub(in crate::spec) gpu_clocks: Option<GpuClocks>,
    /// Other processes that may use a GPU that is measured on.
    pub(in crate::spec) foreign_processes: Option<ForeignProcesses>,
}

/// How clocks can be required to be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "gpu-clocks")]
pub(in crate::spec) enum GpuClocks {
    /// They do not change with the load.
    Locked,
}

/// Other processes on a GPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "foreign-processes")]
pub(in crate::spec) enum ForeignProcesses {
    /// No other process.
    None,
}

/// A grade that can be required; every machine has at least a D.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "least-grade")]
pub(in crate::spec) enum LeastGrade {
    /// Differences of 3 % can be found.
    A,
    /// Differences of 5 %.
    B,
    /// Differences of 12 %.
    C,
}

impl From<LeastGrade> for Grade {
    fn from(least: LeastGrade) -> Self {
        match least {
            LeastGrade::A => Grade::A,
            LeastGrade::B => Grade::B,
            LeastGrade::C => Grade::C,
        }
    }
}

/// A question: which cell is best, among those that keep within bounds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "choose", extend("examples" = [{ "best": "latency" }]))]
pub(in crate::spec) struct ChooseForm {
    /// The metric by which the best is chosen. Of a list the first one decides, and each further one breaks the ties that
    /// are left; nothing else does. A percentile raises `min_samples` to what it needs.
    pub(in crate::spec) best: OneOrMany<MetricText>,
    /// Bounds that it must keep.
    #[serde(default)]
    pub(in crate::spec) within: Vec<BoundForm>,
}

/// A bound that the chosen cell keeps; at least one of `min` and `max`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "bound", extend("examples" = [{ "metric": "latency.p95", "max": "20ms" }]))]
pub(in crate::spec) struct BoundForm {
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(in crate::spec) metric: MetricText,
    /// The least value.
    pub(in crate::spec) min: Option<BoundText>,
    /// The largest value.
    pub(in crate::spec) max: Option<BoundText>,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(in crate::spec) of: Option<SelectorForm>,
}

/// A goal: at least one of `min` and `max`, met by every completed cell that it applies to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "goal", extend("examples" = [{ "metric": "speedup", "min": 1.5, "where": { "variant": "int8" } }]))]
pub(in crate::spec) struct GoalForm {
    /// What reports call it.
    pub(in crate::spec) name: Option<Name>,
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(in crate::spec) metric: MetricText,
    /// The least value.
    pub(in crate::spec) min: Option<BoundText>,
    /// The largest value.
    pub(in crate::spec) max: Option<BoundText>,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(in crate::spec) of: Option<SelectorForm>,
}

impl GoalForm {
    /// What is promised, without its name.
    pub(in crate::spec) fn bound(&self) -> BoundForm {
        let GoalForm { metric, min, max, of, .. } = self.clone();
        BoundForm { metric, min, max, of }
    }
}

/// A metric that may not become worse by more than this.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "gate", extend("examples" = [{ "metric": "latency", "worse_by": "5%" }]))]
pub(in crate::spec) struct GateForm {
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(in crate::spec) metric: MetricText,
    /// By how much it may be worse.
    pub(in crate::spec) worse_by: DifferenceText,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(in crate::spec) of: Option<SelectorForm>,
}

/// A table of the report. Rows and columns together name every axis that has more than one entry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "table", extend("examples" = [{ "name": "overview", "rows": ["model"], "columns": ["variant"] }]))]
pub(in crate::spec) struct TableForm {
    /// Its heading, and the anchor that leads to it.
    pub(in crate::spec) name: Name,
    /// Axes whose entries make the rows.
    pub(in crate::spec) rows: OneOrMany<CoordinateWord>,
    /// Axes whose entries make the columns. Default: none, so that there is one column for each of `show`.
    #[serde(default = "no_columns")]
    pub(in crate::spec) columns: OneOrMany<CoordinateWord>,
    /// What each entry of the table shows.
    #[serde(default = "latency")]
    pub(in crate::spec) show: OneOrMany<MetricText>,
}

fn no_columns() -> OneOrMany<CoordinateWord> {
    OneOrMany::Many(Vec::new())
}

fn latency() -> OneOrMany<MetricText> {
    OneOrMany::Many(vec!["latency".into()])
}

/// The singular name of an axis, as in selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) struct CoordinateWord(pub(in crate::spec) Axis);

impl Serialize for CoordinateWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.singular())
    }
}

impl<'de> Deserialize<'de> for CoordinateWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let unknown = || D::Error::unknown_variant(&word, &Axis::SINGULARS);
        Axis::of_singular(&word).map(CoordinateWord).ok_or_else(unknown)
    }
}

impl JsonSchema for CoordinateWord {
    fn schema_name() -> Cow<'static, str> {
        "coordinate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let word = |axis: Axis| {
            json_schema!({
                "type": "string",
                "const": axis.singular(),
                "description": format!("The {}.", axis.plural()),
            })
        };
        json_schema!({
            "oneOf": Axis::ALL.map(|axis| word(axis).to_value()),
            "description": "An axis in the word for one of its entries, as selectors have it.",
        })
    }
}
