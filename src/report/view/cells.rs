//! Every cell with its numbers as they are stored: what a template of a user's own needs and the tables do not give.
//!
//! Each number has its unit, its n, its interval and, through the cell, its status (method 12.1). Numbers that must
//! not be used are not here.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::json;
use statistics::Verdict;
use statistics::interval::Estimate;

use crate::experiment::{Axis, AxisMap, fields_schema};
use crate::judge::compare::Comparison;
use crate::judge::summary::{CellSummary, LEAST_RUNS};
use crate::plan::Cell;
use crate::report::Input;
use crate::report::format::{self, Column, shown_interval};
use crate::vocabulary::code::{self, Severity, spelt};
use crate::vocabulary::metric::{self, Direction, Metric, MetricReference, Unit};

/// A cell with its numbers.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub(crate) struct CellView {
    /// `resnet50/b1/int8/cpu`, with the runtime at the end if there are `runtimes`: what others point to.
    pub path: String,
    /// Its names by axis: `model`, `input`, `variant` ...
    #[schemars(flatten, schema_with = "names_schema")]
    pub names: AxisMap<Option<String>>,
    /// Whether others are compared with it.
    pub is_baseline: bool,
    /// What its numbers are worth.
    pub status: Status,
    /// Every code of the cell and its runs, the gravest first.
    pub codes: Vec<String>,
    /// Completed processes.
    pub runs: u32,
    /// Latency of one inference; none where no run completed or the value must not be used.
    pub latency: Option<NumberView>,
    /// Every metric by its stored name (`latency_ns`, `peak_rss_bytes`), latency among them.
    pub metrics: BTreeMap<String, NumberView>,
    /// The cell against its baseline; none for a baseline, and where nothing is compared.
    pub comparison: Option<ComparisonView>,
}

/// As a struct: what serde flattens is a map, whose fields templates would get in the order of their names.
impl Serialize for CellView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CellView { path, names, is_baseline, status, codes, runs, latency, metrics, comparison } = self;
        let mut fields = serializer.serialize_struct("CellView", Axis::ALL.len() + 8)?;
        fields.serialize_field("path", path)?;
        for (axis, name) in names.iter() {
            fields.serialize_field(axis.singular(), name)?;
        }
        fields.serialize_field("is_baseline", is_baseline)?;
        fields.serialize_field("status", status)?;
        fields.serialize_field("codes", codes)?;
        fields.serialize_field("runs", runs)?;
        fields.serialize_field("latency", latency)?;
        fields.serialize_field("metrics", metrics)?;
        fields.serialize_field("comparison", comparison)?;
        fields.end()
    }
}

fn names_schema(_: &mut SchemaGenerator) -> Schema {
    fields_schema(|axis| {
        let absent = match axis.may_be_absent() {
            true => format!("; none where the specification names no `{}`", axis.plural()),
            false => String::new(),
        };
        json_schema!({
            "description": format!("{} of the {}{absent}.", axis.called(), axis.singular()),
            "type": if axis.may_be_absent() { json!(["string", "null"]) } else { json!("string") },
        })
    })
}

/// What the numbers of a cell are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// Nothing to doubt.
    Ok,
    /// Codes cast doubt on them; see `codes`.
    Warn,
    /// They must not be used and are withheld.
    Invalid,
    /// Every run failed.
    Failed,
    /// The plan skips the cell.
    Skipped,
    /// No run has ended yet.
    NotRun,
}

/// A number with what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct NumberView {
    /// The mean of one value a run, in `unit`.
    pub value: f64,
    /// Lower end of its 95 % interval over runs; none below five runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs that it is the mean of.
    pub n: usize,
    /// `ns`, `bytes`, `1/s`, `J`, `W`, `°C`, or empty for ratios and counts.
    pub unit: String,
    /// `18.42 ms ± 0.11`: rounded to what the interval supports.
    pub text: String,
}

/// A cell against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ComparisonView {
    /// Path of the baseline's cell.
    pub baseline: String,
    /// What is compared: `latency`.
    pub metric: String,
    /// Above 1 is better: time of the baseline over that of the cell.
    pub speedup: f64,
    /// Lower end of its interval; none below five common blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The metric of the cell over that of the baseline, less 1; for times, negative is faster.
    pub change: f64,
    /// The margin of the verdict as a ratio: 0.02.
    pub margin: f64,
    /// Blocks that both completed.
    pub blocks: usize,
    /// The verdict in the words of the metric; none below five common blocks.
    #[schemars(description = verdict_words())]
    pub verdict: Option<String>,
    /// Why the verdict is withheld whatever the interval says.
    pub withheld: Option<String>,
    /// Two-sided p value of a difference beyond the margin.
    pub p: Option<f64>,
    /// The same by Holm, over all comparisons of the record.
    pub p_holm: Option<f64>,
    /// The same by Benjamini and Hochberg.
    pub q: Option<f64>,
    /// `2.32x [2.29, 2.35] faster`.
    pub text: String,
}

/// The cells of a record.
pub(super) fn cells(input: &Input<'_>) -> Vec<CellView> {
    let plan = &input.manifest.plan;
    let view = |(index, (cell, summary)): (usize, (&Cell, &CellSummary))| {
        let coordinates = plan.coordinates(cell);
        let status = status(cell, summary);
        let metrics = if status == Status::Invalid { BTreeMap::new() } else { numbers(summary) };
        let comparison = input.judged.of(index).filter(|_| status != Status::Invalid);
        CellView {
            path: plan.path(cell),
            names: coordinates
                .present()
                .fold(AxisMap::default(), |all, (axis, name)| all.with(axis, Some(name.into()))),
            is_baseline: plan.baseline.is_some() && plan.is_baseline(cell),
            status,
            codes: codes(summary),
            runs: summary.runs.completed,
            latency: metrics.get(metric::LATENCY.name).cloned(),
            metrics,
            comparison: comparison.map(|comparison| compared(input, comparison)),
        }
    };
    plan.cells.iter().zip(&input.summary.cells).enumerate().map(view).collect()
}

fn status(cell: &Cell, summary: &CellSummary) -> Status {
    let gravest = summary.codes().keys().map(|code| summary.severity(code)).max();
    match gravest {
        _ if cell.skip.is_some() => Status::Skipped,
        _ if summary.runs.completed == 0 && !summary.failures.is_empty() => Status::Failed,
        _ if summary.runs.completed == 0 => Status::NotRun,
        Some(Severity::Invalid) => Status::Invalid,
        Some(Severity::Block | Severity::Warn) => Status::Warn,
        Some(Severity::Info) | None => Status::Ok,
    }
}

fn codes(summary: &CellSummary) -> Vec<String> {
    let mut codes: Vec<&str> = summary.codes().into_keys().collect();
    codes.sort_by_key(|code| code::rank(code));
    codes.into_iter().map(str::to_owned).collect()
}

fn numbers(summary: &CellSummary) -> BTreeMap<String, NumberView> {
    let of = |metric: &Metric| Some((metric.name.to_owned(), number(metric, summary.estimate(metric)?)));
    metric::METRICS.iter().filter_map(of).collect()
}

fn number(metric: &Metric, estimate: &Estimate) -> NumberView {
    let unit = match metric.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::PerSecond => "1/s",
        Unit::Joules => "J",
        Unit::Watts => "W",
        Unit::Celsius => "°C",
        Unit::Ratio | Unit::Share | Unit::Count | Unit::Number => "",
    };
    let interval = shown_interval(estimate);
    NumberView {
        value: estimate.value,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        n: estimate.n,
        unit: unit.to_owned(),
        text: Column::fit(metric.unit, [estimate]).value_with_unit(estimate),
    }
}

fn compared(input: &Input<'_>, comparison: &Comparison) -> ComparisonView {
    let plan = &input.manifest.plan;
    let is_rate = comparison.metric.metric.direction == Direction::HigherIsBetter;
    let details = comparison.details.as_ref();
    let is_judged = comparison.interval.is_some();
    ComparisonView {
        baseline: plan.path(&plan.cells[comparison.baseline]),
        metric: comparison.metric.to_string(),
        speedup: comparison.speedup,
        low: comparison.interval.map(|interval| interval.low),
        high: comparison.interval.map(|interval| interval.high),
        change: if is_rate { comparison.speedup } else { 1.0 / comparison.speedup } - 1.0,
        margin: comparison.margin,
        blocks: comparison.blocks,
        verdict: is_judged.then(|| format::verdict_word(&comparison.metric, comparison.verdict).to_owned()),
        withheld: comparison.withheld.map(|withheld| withheld.words().to_owned()),
        p: details.and_then(|details| Some(details.paired.minimum_effect?.p_min_effect)),
        p_holm: details.and_then(|details| details.p_holm),
        q: details.and_then(|details| details.q),
        text: format::speedup(comparison),
    }
}

/// The verdicts on a time, as the reference lists them.
fn verdict_words() -> String {
    let word = |verdict| format!("`{}`", format::verdict_word(&MetricReference::LATENCY, verdict));
    format!("{}; none below {} common blocks.", Verdict::ALL.map(word).join(", "), spelt(LEAST_RUNS))
}
