//! Forms of what the numbers are asked: comparisons, conditions, questions, tables.

use schemars::{JsonSchema, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::SelectorForm;
use super::scalar::{BoundText, DifferenceText, MetricText, Name};
use super::shorthand::{OneOrMany, described};
use base::quantity::Ratio;
use experiment::{Aa, Axis, Grade, Margin};

/// What is compared with what, and how strictly.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "compare", extend("minProperties" = 1, "examples" = [{ "baseline": { "variant": "fp32" } }]))]
pub(crate) struct CompareForm {
    /// The cells that the others are compared with, such as `{ variant: fp32 }`. A cell is compared with the one that
    /// differs from it on these axes alone. Default: the first entry of the first of variants, runtimes, models,
    /// devices that has more than one.
    pub(crate) baseline: Option<SelectorForm>,
    /// Differences within it are of no interest: a ratio, or a map with one for tails.
    pub(crate) margin: MarginForm,
    /// Which groups get a control: their baseline measured twice, as if it were two things.
    pub(crate) aa: Aa,
}

impl Default for CompareForm {
    fn default() -> Self {
        CompareForm { baseline: None, margin: MarginForm::Ratio(Margin::default().default), aa: Aa::Auto }
    }
}

/// The margins, as one ratio or a map.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum MarginForm {
    /// Of everything; tails have at least 5 %.
    Ratio(Ratio),
    /// Each for itself.
    Form(MarginsForm),
}

/// Margins of two kinds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "margins", extend("minProperties" = 1))]
pub(crate) struct MarginsForm {
    /// Of medians, means, throughput and everything else. Default: `2%`.
    pub(crate) default: Option<Ratio>,
    /// Of percentiles from the 90th on. Default: `5%`, or the other margin where that is larger.
    pub(crate) tail: Option<Ratio>,
}

described!(MarginForm, "margin", |generator| {
    let (ratio, form) = (generator.subschema_for::<Ratio>(), generator.subschema_for::<MarginsForm>());
    json_schema!({
        "description": "Differences within it are of no interest: a ratio, or a map with one for tails.",
        "anyOf": [ratio, form],
    })
});

/// Conditions that this machine must meet before anything is measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "require", extend("minProperties" = 1, "examples" = [{ "grade": "B" }]))]
pub(crate) struct RequireForm {
    /// The least grade of the machine, found by a short control before the first block.
    pub(crate) grade: Option<LeastGrade>,
    /// No background load on the machine.
    pub(crate) quiet: bool,
    /// State of the clocks of every GPU that is measured on.
    pub(crate) gpu_clocks: Option<GpuClocks>,
    /// Other processes that may use a GPU that is measured on.
    pub(crate) foreign_processes: Option<ForeignProcesses>,
}

/// How clocks can be required to be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "gpu-clocks")]
pub(crate) enum GpuClocks {
    /// They do not change with the load.
    Locked,
}

/// Other processes on a GPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "foreign-processes")]
pub(crate) enum ForeignProcesses {
    /// No other process.
    None,
}

/// A grade that can be required; every machine has at least a D.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "least-grade")]
pub(crate) enum LeastGrade {
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
pub(crate) struct ChooseForm {
    /// The metric by which the best is chosen. Of a list the first one decides, and each further one breaks the ties that
    /// are left; nothing else does. A percentile raises `min_samples` to what it needs.
    pub(crate) best: OneOrMany<MetricText>,
    /// Bounds that it must keep.
    #[serde(default)]
    pub(crate) within: Vec<BoundForm>,
}

/// A bound that the chosen cell keeps; at least one of `min` and `max`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "bound", extend("examples" = [{ "metric": "latency.p95", "max": "20ms" }]))]
pub(crate) struct BoundForm {
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(crate) metric: MetricText,
    /// The least value.
    pub(crate) min: Option<BoundText>,
    /// The largest value.
    pub(crate) max: Option<BoundText>,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(crate) of: Option<SelectorForm>,
}

/// A goal: at least one of `min` and `max`, met by every completed cell that it applies to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "goal", extend("examples" = [{ "metric": "speedup", "min": 1.5, "where": { "variant": "int8" } }]))]
pub(crate) struct GoalForm {
    /// What reports call it.
    pub(crate) name: Option<Name>,
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(crate) metric: MetricText,
    /// The least value.
    pub(crate) min: Option<BoundText>,
    /// The largest value.
    pub(crate) max: Option<BoundText>,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(crate) of: Option<SelectorForm>,
}

impl GoalForm {
    /// What is promised, without its name.
    pub(crate) fn bound(&self) -> BoundForm {
        let GoalForm { metric, min, max, of, .. } = self.clone();
        BoundForm { metric, min, max, of }
    }
}

/// A metric that may not become worse by more than this.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "gate", extend("examples" = [{ "metric": "latency", "worse_by": "5%" }]))]
pub(crate) struct GateForm {
    /// The metric. A percentile raises `min_samples` to what it needs.
    pub(crate) metric: MetricText,
    /// By how much it may be worse.
    pub(crate) worse_by: DifferenceText,
    /// The cells that it applies to. Default: all.
    #[serde(default, rename = "where")]
    pub(crate) of: Option<SelectorForm>,
    /// Whether the gate fails where noise hides such a difference, which is otherwise called undecided.
    #[serde(default)]
    pub(crate) fail_undecided: bool,
}

/// A table of the report. Rows and columns together name every axis that has more than one entry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "table", extend("examples" = [{ "name": "overview", "rows": ["model"], "columns": ["variant"] }]))]
pub(crate) struct TableForm {
    /// Its heading, and the anchor that leads to it.
    pub(crate) name: Name,
    /// Axes whose entries make the rows.
    pub(crate) rows: OneOrMany<CoordinateWord>,
    /// Axes whose entries make the columns. Default: none, so that there is one column for each of `show`.
    #[serde(default = "no_columns")]
    pub(crate) columns: OneOrMany<CoordinateWord>,
    /// What each entry of the table shows.
    #[serde(default = "latency")]
    pub(crate) show: OneOrMany<MetricText>,
}

fn no_columns() -> OneOrMany<CoordinateWord> {
    OneOrMany::Many(Vec::new())
}

fn latency() -> OneOrMany<MetricText> {
    OneOrMany::Many(vec!["latency".into()])
}

/// The singular name of an axis, as in selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoordinateWord(pub(crate) Axis);

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

described!(CoordinateWord, "coordinate", |_| {
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
});
