//! The spec as people write it: one type for each form, and the JSON Schema that follows from them.
//!
//! Input: JSON that the schema accepts. Output: forms that still hold shorthands, for `expand`. Each default is said
//! once, in a `Default`, from where it reaches the schema and the reference; each description is a doc comment here.
//! Deliberately absent: checks that need more than one key, or a file.

mod axes;
mod command;
mod dataset;
mod decode;
mod judge;
mod load;
mod measure;
mod metric;
mod range;
mod scalar;
mod shorthand;
mod values;

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use base::quantity::Nanos;
use experiment::{Axis, Backend, Combine, Device, FidelityLimits, Runs};
use shorthand::described;

pub(super) use axes::{
    ConvertForm, InputEntry, Inputs, ModelEntry, ModelForm, PYTHON_PATTERN, ProviderForm, RuntimeEntry, RuntimeForm,
    SizeEntry, TakesEntry, ThreadsEntry, VariantEntry, VariantForm,
};
pub(super) use command::{CommandEntry, CommandForm};
pub(super) use dataset::DatasetForm;
pub(super) use decode::{CountEntry, DecodeForm};
pub(super) use judge::{
    BoundForm, ChooseForm, CompareForm, CoordinateWord, GateForm, GoalForm, MarginForm, RequireForm, TableForm,
};
pub(super) use load::{LatencyBoundForm, LoadForm, LoadLevels};
pub(super) use measure::MeasureForm;
pub(super) use metric::{Better, MetricForm};
pub(super) use range::{RangeError, RangeForm};
pub(super) use scalar::{
    ARRIVALS_PATTERN, BoundText, DURATION_PATTERN, DimensionText, MetricText, NAME_PATTERN, Name, Pattern,
    RATE_PATTERN, RATIO_PATTERN, RateText, SHA256_PATTERN, Setting, StdoutText, VARIABLE_PATTERN,
};
pub(super) use shorthand::{OneOrMany, Ordered};
pub(super) use values::{FillForm, FillWord, RANGE, ValuesForm};

/// What to measure, and how: models, inputs, variants, devices and runtimes are multiplied to cells, or each of `commands`
/// is one, and every cell runs several times in fresh processes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "experiment")]
pub(super) struct ExperimentForm {
    /// Names the record and the report's folder. Default: the file's name without its ending.
    pub(super) name: Option<Name>,
    /// What the experiment asks, for the reader of the report.
    pub(super) description: Option<String>,
    /// What is measured: a path, a folder (every `.onnx` file below it), a glob, or a list of these and of entries.
    /// Paths are relative to this file; a name defaults to the file's
    /// name without its ending, in letters that names have, and with the folder or a number where another model has it.
    pub(super) models: OneOrMany<ModelEntry>,
    /// In place of models: whole programs, each as one would type it, or with settings. The first is the baseline.
    pub(super) commands: OneOrMany<CommandEntry>,
    /// The folder of every command that has none of its own, relative to this file. Default: the folder of this file.
    pub(super) cwd: Option<String>,
    /// A shell command once before anything is measured, for every command that has none of its own.
    pub(super) setup: Option<String>,
    /// A shell command before every execution, outside the clock, for every command that has none of its own.
    pub(super) prepare: Option<String>,
    /// With `commands`: files, folders and patterns that they are built from and read, relative to this file. Where one of them
    /// changes, a report is out of date; where none does, `diff --remeasure` measures nothing. Default: every tracked file of
    /// the project that is not below `docs`, `reports` or `experiments`, nor Markdown.
    pub(super) paths: OneOrMany<String>,
    /// Where standard output goes, for every command that does not say it: `pipe` (default) is read and counted, so that
    /// programs work as they do before another one; `null` is `/dev/null`, where some, such as grep, do less; `inherit` is
    /// where perfrun's own messages go; else the name of a file below `stdout/` in the record's folder.
    pub(super) stdout: Option<StdoutText>,
    /// The inputs of the models: sizes of dimensions by name, where lists multiply, or a list of entries. Default: one
    /// point named `default` that sets nothing.
    pub(super) inputs: Option<Inputs>,
    /// In place of `inputs`, for language models with a cache of keys and values: prompts, steps of one token, and several
    /// tokens at once, each a cell of its own.
    pub(super) decode: Option<DecodeForm>,
    /// How the models are run: a precision, or an entry with settings.
    pub(super) variants: OneOrMany<VariantEntry>,
    /// Where, and through which provider: `cpu`, `cuda` (short for `cuda:0`), `tensorrt:1` ... ONNX Runtime's own names
    /// are understood. `openvino` is `openvino:CPU`; it has `GPU` and `NPU` too. Cells of a device that is not there are
    /// skipped, with the reason.
    #[schemars(example = "cuda:0")]
    pub(super) devices: OneOrMany<String>,
    /// Execution providers in libraries of their own, instead of or in addition to those that perfrun fetches: a name,
    /// which `devices` can use, and the file, relative to this one. `custom_ops` names a library of custom operators, which
    /// models may use on every device.
    pub(super) plugins: Ordered<String>,
    /// Versions of ONNX Runtime, each fetched once, and local builds of it. Default: the one version that perfrun is made
    /// for, or what `--runtime` and `ORT_DYLIB_PATH` name.
    pub(super) runtimes: Option<OneOrMany<RuntimeEntry>>,
    /// Fresh processes for each cell: a number, or `auto`: as many as the verdicts need, from 8 to 32; `{ min, max }` sets
    /// the bounds. Fewer than 5 give no interval and no verdict.
    #[schemars(with = "measure::RunsSchema", extend("default" = "auto"))]
    pub(super) runs: Runs,
    /// Seed of the order, of the inputs and of the statistics.
    pub(super) seed: u64,
    /// Changes to the product of models, inputs, variants, devices and runtimes.
    pub(super) matrix: MatrixForm,
    /// How one run warms up, samples and stops, and in which order the runs come.
    pub(super) measure: MeasureForm,
    /// What is compared with what, and how strictly.
    pub(super) compare: CompareForm,
    /// Time limit for the whole record. What does not fit is reported before anything is measured.
    pub(super) budget: Option<Nanos>,
    /// Conditions that this machine must meet; otherwise perfrun refuses to measure.
    pub(super) require: RequireForm,
    /// Numbers of your own, by name: what a program, a command or a `score` command reports. Goals, choices, gates, tables
    /// and histories take them like any other metric.
    pub(super) metrics: Ordered<MetricForm>,
    /// A question that the report answers: which cell is best among those that keep within bounds.
    pub(super) choose: Option<ChooseForm>,
    /// Goals, judged by interval and shown at the top of the report. perfrun exits with 4 if one is missed.
    #[schemars(length(min = 1))]
    pub(super) goals: Vec<GoalForm>,
    /// Whether a goal that is undecided counts as missed.
    pub(super) goals_strict: bool,
    /// What must not become worse from one commit to the next; otherwise `perfrun diff --gate` exits with 4.
    #[schemars(length(min = 1))]
    pub(super) gate: Vec<GateForm>,
    /// Metrics that the report weighs against each other, two or more: which cells nothing else dominates. Default: the
    /// first two of what `choose` names, `latency`, the accuracy where it is known, and `peak_rss`.
    #[schemars(length(min = 2))]
    pub(super) pareto: Vec<MetricText>,
    /// How far outputs may be from the reference's, by precision or by variant. Cells beyond the limits are marked, and
    /// never called best.
    pub(super) fidelity: Ordered<FidelityLimits>,
    /// Real data for every model that has none of its own: with labels, accuracy is reported next to speed.
    pub(super) dataset: Option<DatasetForm>,
    /// Tables that the report shows in addition to its own.
    #[schemars(length(min = 1))]
    pub(super) tables: Vec<TableForm>,
    /// What executes the models.
    #[schemars(with = "measure::BackendSchema")]
    pub(super) backend: Backend,
}

impl Default for ExperimentForm {
    fn default() -> Self {
        ExperimentForm {
            name: None,
            description: None,
            models: OneOrMany::Many(Vec::new()),
            commands: OneOrMany::Many(Vec::new()),
            cwd: None,
            setup: None,
            prepare: None,
            paths: OneOrMany::Many(Vec::new()),
            stdout: None,
            inputs: None,
            decode: None,
            variants: OneOrMany::Many(vec![VariantEntry::Precision("fp32".to_owned())]),
            devices: OneOrMany::Many(vec![Device::CPU.to_owned()]),
            plugins: Ordered::default(),
            runtimes: None,
            runs: Runs::AUTO,
            seed: 42,
            matrix: MatrixForm::default(),
            measure: MeasureForm::default(),
            compare: CompareForm::default(),
            budget: None,
            require: RequireForm::default(),
            metrics: Ordered::default(),
            choose: None,
            goals: Vec::new(),
            goals_strict: false,
            gate: Vec::new(),
            pareto: Vec::new(),
            fidelity: Ordered::default(),
            dataset: None,
            tables: Vec::new(),
            backend: Backend::Onnxruntime,
        }
    }
}

/// Changes to the product of models, inputs, variants, devices and runtimes: first `zip`, then `exclude`, then `include`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "matrix")]
pub(super) struct MatrixForm {
    /// Every combination, or the baseline and what differs from it in one thing alone.
    pub(super) design: Combine,
    /// Groups of axes that advance together and count as one. They need the same number of entries; an axis can be in one
    /// group only.
    #[schemars(inner(length(min = 2)))]
    pub(super) zip: Vec<Vec<Axis>>,
    /// Cells to leave out.
    pub(super) exclude: Vec<SelectorForm>,
    /// Cells to add. An axis that has one entry may be left out.
    pub(super) include: Vec<SelectorForm>,
}

/// A map from an axis or a dimension to patterns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SelectorForm(pub(super) Ordered<OneOrMany<Pattern>>);

described!(SelectorForm, "selector", |generator| {
    let patterns = <OneOrMany<Pattern>>::json_schema(generator);
    let described = |text: &str| {
        let mut schema = patterns.clone();
        schema.insert("description".to_owned(), text.into());
        schema
    };
    let by_axis: serde_json::Map<_, _> =
        Axis::ALL.into_iter().map(|axis| (axis.singular().to_owned(), json!(described(axis.selects())))).collect();
    json_schema!({
        "description": "Selects cells by axis, or by a dimension such as `batch`. All keys must match; of a list, one.",
        "type": "object",
        "minProperties": 1,
        "examples": [{ "variant": "fp32" }],
        "properties": by_axis,
        "additionalProperties": patterns,
    })
});
