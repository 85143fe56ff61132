//! The numbers of a cell as they are stored: which metrics, to how many digits, for each run and over all of them.

use std::collections::BTreeMap;

use crate::stored::{Estimated, as_fact, rounded, to_digits};
use crate::summary::{CellSummary, MetricSummary, Spread};
use base::metric::{self, Kind, LATENCY, MetricReference, Statistic};
use experiment::Experiment;
use quality::accuracy::Change;

/// What a metric is for; one of a later version is shown like those of the model.
fn kind(name: &str) -> Kind {
    metric::by_name(name).map_or(Kind::Model, |metric| metric.kind)
}

/// What other tools compare. Inferences per second follow from items per second, where both are known.
fn compared(summary: &CellSummary) -> impl Iterator<Item = (&String, &MetricSummary)> {
    let has_items = summary.metrics.contains_key(metric::ITEMS.name);
    let of_model = summary.metrics.iter().filter(|(name, _)| kind(name) == Kind::Model);
    of_model.filter(move |(name, _)| !has_items || *name != metric::THROUGHPUT.name)
}

/// The statistic of latency that a column holds.
fn statistic(name: &str) -> Option<Statistic> {
    let reference = MetricReference::of_column(name).filter(|reference| reference.metric.name == LATENCY.name);
    reference.map(|reference| reference.statistic)
}

pub(super) fn metrics(summary: &CellSummary) -> BTreeMap<String, Estimated> {
    // The number of samples is no estimate of anything; it stands among the columns.
    let all = compared(summary).filter(|(name, _)| *name != metric::SAMPLES.name);
    all.map(|(name, metric)| (name.clone(), estimated(summary, name, metric))).collect()
}

fn estimated(summary: &CellSummary, name: &str, metric: &MetricSummary) -> Estimated {
    let estimate = metric.estimate;
    let statistic = statistic(name);
    let supported = statistic.and_then(|statistic| summary.supports_percentile(statistic));
    let is_fact = metric::by_name(name).is_some_and(metric::Metric::is_constant);
    let says_nothing =
        matches!(statistic, Some(Statistic::Min | Statistic::StandardDeviation)) || supported == Some(false);
    // A fact is one number; only of scores of items something is uncertain.
    let interval = estimate.interval.filter(|interval| !says_nothing && (!is_fact || interval.low < interval.high));
    let exact = is_fact && interval.is_none();
    Estimated {
        value: if exact { as_fact(estimate.value) } else { rounded(estimate.value) },
        low: interval.map(|interval| rounded(interval.low)),
        high: interval.map(|interval| rounded(interval.high)),
        n: if exact { 1 } else { estimate.n as u64 },
        supported: supported.filter(|supported| !supported),
    }
}

/// The columns that the specification names, which have values of each run whatever they are.
pub(super) fn named(experiment: &Experiment) -> Vec<String> {
    let choose = experiment
        .choose
        .iter()
        .flat_map(|question| std::iter::once(question.best).chain(question.within.iter().map(|bound| bound.metric)));
    let goals = experiment.goals.iter().map(|goal| goal.bound.metric);
    let tables = experiment.tables.iter().flat_map(|table| table.show.iter().copied());
    let gates = experiment.gate.iter().map(|gate| gate.metric);
    let all = choose.chain(goals).chain(gates).chain(tables).chain(experiment.pareto.iter().copied());
    all.flat_map(|reference| match reference.statistic {
        // Made of two other metrics.
        Statistic::CoefficientOfVariation => vec![
            MetricReference { statistic: Statistic::Mean, ..reference }.column(),
            MetricReference { statistic: Statistic::StandardDeviation, ..reference }.column(),
        ],
        _ => vec![reference.column()],
    })
    .collect()
}

/// One column for each metric that verdicts are usually made of, and for those that are `named`, with a gap where a run
/// does not have it.
pub(super) fn columns(summary: &CellSummary, named: &[String]) -> BTreeMap<String, Vec<Option<f64>>> {
    let Some(latency) = summary.metrics.get(LATENCY.name) else { return BTreeMap::new() };
    let blocks: Vec<u32> = latency.per_run.iter().map(|(block, _)| *block).collect();
    let is_column = |name: &String| {
        let is_fact = metric::by_name(name).is_some_and(metric::Metric::is_constant);
        let statistic = statistic(name);
        let supported = statistic.and_then(|statistic| summary.supports_percentile(statistic));
        let is_usual = !matches!(statistic, Some(Statistic::Min | Statistic::P90 | Statistic::StandardDeviation))
            && supported != Some(false)
            && ![metric::CPU_UTILISATION.name, metric::TIME_TO_STEADY.name].contains(&name.as_str());
        !is_fact && (is_usual || named.contains(name))
    };
    let column = |(name, metric): (&String, &MetricSummary)| {
        let value = |block: &u32| {
            let index = metric.per_run.binary_search_by_key(block, |(other, _)| *other).ok()?;
            Some(rounded(metric.per_run[index].1))
        };
        (name.clone(), blocks.iter().map(value).collect())
    };
    let mut columns: BTreeMap<String, Vec<Option<f64>>> =
        compared(summary).filter(|(name, _)| is_column(name)).map(column).collect();
    columns.insert("block".to_owned(), blocks.iter().map(|block| Some(f64::from(*block))).collect());
    columns
}

/// How the cell was measured, and what its runs met.
pub(super) fn environment(summary: &CellSummary) -> BTreeMap<String, Vec<f64>> {
    // Of texts one byte more or less means that they differ.
    let is_exact = |name: &str| [metric::STDOUT.name, metric::STDOUT_LEAST.name].contains(&name);
    let short = |name: &str, spread: &Spread| {
        let mut all = vec![spread.low, spread.median, spread.high];
        if !is_exact(name) {
            all.iter_mut().for_each(|number| *number = to_digits(*number, 3));
        }
        all.truncate(if all[0] == all[2] { 1 } else { 3 });
        all
    };
    // A damaged table may hold anything, and JSON has numbers alone.
    let is_number = |(_, values): &(String, Vec<f64>)| values.iter().all(|value| value.is_finite());
    let mut all: BTreeMap<String, Vec<f64>> =
        summary.findings.environment.iter().map(|(name, spread)| (name.clone(), short(name, spread))).collect();
    let is_reported = |name: &str| kind(name) == Kind::Procedure && name != metric::CLOCK_RESOLUTION.name;
    for (name, metric) in summary.metrics.iter().filter(|(name, _)| is_reported(name)) {
        let values: Vec<f64> = metric.per_run.iter().map(|(_, value)| *value).collect();
        all.extend(Spread::of(&values).map(|spread| (name.clone(), short(name, &spread))));
    }
    all.into_iter().filter(is_number).collect()
}

/// The slices of each run; those that are late warm-up as a whole have nothing.
pub(super) fn slices(summary: &CellSummary) -> Vec<Vec<Option<f64>>> {
    if summary.slices.is_empty() {
        return Vec::new();
    }
    let blocks = summary.metrics.get(LATENCY.name).into_iter().flat_map(|latency| &latency.per_run);
    let of_run = |(block, _): &(u32, f64)| {
        let found = summary.slices.iter().find(|(other, _)| other == block);
        let medians = found.map(|(_, medians)| medians.as_slice()).unwrap_or_default();
        medians.iter().map(|ns| Some(rounded(*ns)).filter(|ns| *ns > 0.0)).collect()
    };
    blocks.map(of_run).collect()
}

pub(super) fn score_changes(summary: &CellSummary) -> BTreeMap<String, Change> {
    let changes = summary.accuracy.iter().filter_map(|score| Some((score.metric.metric().name, score.change?)));
    let change = |(name, change): (&str, Change)| {
        (
            name.to_owned(),
            Change { interval: change.interval.map(|it| it.map(rounded)), p: rounded(change.p), ..change },
        )
    };
    changes.map(change).collect()
}
