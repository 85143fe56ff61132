//! The runs of a record as tables, and what polars makes of their groups: samples by run, then values by cell.
//!
//! Input: the completed runs of each arm. Output: one value a run for every metric and every statistic of latency, and
//! what the runs of an arm have together. Deliberately absent: intervals and verdicts, which are perfrun's own.

use std::collections::BTreeMap;

use super::{Spread, in_parallel, is_of_environment};
use crate::metric::{LATENCY, MetricReference, SAMPLES, Statistic};
use crate::stats::moments::skewness;
use crate::store::StoredRun;
use crate::table::{Aggregate, Table, TableError};

/// The statistics of a run's samples, as users name them; the median is a metric of the run already.
const STATISTICS: [(Statistic, Aggregate); 7] = [
    (Statistic::Mean, Aggregate::Mean),
    (Statistic::Min, Aggregate::Min),
    (Statistic::P90, Aggregate::Quantile(0.90)),
    (Statistic::P95, Aggregate::Quantile(0.95)),
    (Statistic::P99, Aggregate::Quantile(0.99)),
    (Statistic::P999, Aggregate::Quantile(0.999)),
    (Statistic::StandardDeviation, Aggregate::StandardDeviation),
];

/// One value a run with the number of its block, by the name of the metric or of the statistic.
pub(super) type RunValues = BTreeMap<String, Vec<(u32, f64)>>;

/// What the runs of one arm say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ArmTables {
    /// What is compared.
    pub(super) values: RunValues,
    /// What the runs met on the machine, by metric.
    pub(super) environment: BTreeMap<String, Spread>,
    /// Runs that carry a code.
    pub(super) codes: BTreeMap<String, u32>,
    /// `None` where no run has a sample.
    pub(super) samples: Option<SampleTotals>,
}

/// The samples of an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleTotals {
    pub(super) all: u64,
    pub(super) fewest: u64,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) skewness: Option<f64>,
}

/// Groups the completed runs of each arm, which are given in the order of their blocks.
pub(super) fn tables(threads: usize, arms: &[Vec<&StoredRun>]) -> Result<Vec<ArmTables>, TableError> {
    let numbered: Vec<(u32, &[&StoredRun])> = (0..).zip(arms.iter().map(Vec::as_slice)).collect();
    let runs = in_parallel(threads, &numbered, |(arm, runs)| by_run(*arm, runs));
    let runs = Table::stacked(runs.into_iter().flatten().collect::<Result<_, _>>()?)?;
    let mut found = vec![ArmTables::default(); arms.len()];
    let values = run_values(&numbered, runs.as_ref())?;
    take_values(&values, &mut found)?;
    take_codes(&numbered, &mut found)?;
    if let Some(runs) = runs {
        take_totals(&runs, &mut found)?;
    }
    Ok(found)
}

/// The samples of an arm grouped by run, in nanoseconds an iteration: one row a run. `None` where there is no sample.
fn by_run(arm: u32, runs: &[&StoredRun]) -> Option<Result<Table, TableError>> {
    let durations: Vec<(u32, Vec<f64>)> = runs
        .iter()
        .map(|run| (run.block, run.durations().collect::<Vec<f64>>()))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    durations.first()?;
    // With several iterations in a sample only means say something about one of them.
    let is_batched = runs.iter().any(|run| run.iterations > 1);
    let skews = durations.iter().map(|(_, values)| skewness(values)).collect();
    let blocks = durations.iter().flat_map(|(block, values)| std::iter::repeat_n(*block, values.len())).collect();
    let ns = durations.iter().flat_map(|(_, values)| values).copied().collect();
    Some(statistics(arm, blocks, ns, skews, is_batched))
}

fn statistics(
    arm: u32,
    blocks: Vec<u32>,
    ns: Vec<f64>,
    skews: Vec<Option<f64>>,
    is_batched: bool,
) -> Result<Table, TableError> {
    let names = STATISTICS.map(|(statistic, _)| column(statistic));
    let mut wanted = vec![("ns", Aggregate::Count, SAMPLES.name), ("ns", Aggregate::Max, "max")];
    wanted.extend(STATISTICS.iter().zip(&names).map(|((_, aggregate), name)| ("ns", *aggregate, name.as_str())));
    let samples = Table::of([("block", blocks.into()), ("ns", ns.into())])?;
    let samples = samples.sorted_by("block")?;
    let runs = samples.group_by(&["block"])?.aggregate(&wanted)?;
    let runs = runs.with([("arm", vec![arm; runs.height()].into()), ("skewness", skews.into())])?;
    if !is_batched {
        return Ok(runs);
    }
    let mean = column(Statistic::Mean);
    let of_single_samples = names.iter().map(String::as_str).filter(|name| *name != mean);
    runs.emptied(of_single_samples.chain(["max", "skewness"]))
}

/// The column of a statistic of latency.
fn column(statistic: Statistic) -> String {
    MetricReference { metric: &LATENCY, statistic }.column()
}

/// One row for each value of each run: its metrics, then the statistics of its samples.
fn run_values(arms: &[(u32, &[&StoredRun])], runs: Option<&Table>) -> Result<Table, TableError> {
    let each = || {
        let runs = arms.iter().flat_map(|(arm, runs)| runs.iter().map(move |run| (*arm, *run)));
        runs.flat_map(|(arm, run)| run.data.metrics.iter().map(move |(name, value)| (arm, run.block, name, *value)))
    };
    let mut parts = vec![Table::of([
        ("arm", each().map(|(arm, ..)| arm).collect::<Vec<u32>>().into()),
        ("block", each().map(|(_, block, ..)| block).collect::<Vec<u32>>().into()),
        ("value", each().map(|(.., value)| value).collect::<Vec<f64>>().into()),
        ("metric", each().map(|(_, _, name, _)| name.clone()).collect::<Vec<String>>().into()),
    ])?];
    if let Some(runs) = runs {
        let statistics = STATISTICS.iter().map(|(statistic, _)| column(*statistic));
        for name in statistics.chain([SAMPLES.name.to_owned()]) {
            let values = runs.select(&[("arm", "arm"), ("block", "block"), (&name, "value")])?;
            parts.push(values.with([("metric", vec![name; values.height()].into())])?.without_gaps()?);
        }
    }
    Table::stacked(parts)?.ok_or_else(|| TableError("there is no run".to_owned()))
}

fn take_values(values: &Table, arms: &mut [ArmTables]) -> Result<(), TableError> {
    let groups = values.group_by(&["arm", "metric"])?;
    let spreads = groups.aggregate(&[
        ("value", Aggregate::Min, "low"),
        ("value", Aggregate::Quantile(0.5), "median"),
        ("value", Aggregate::Max, "high"),
    ])?;
    let (lows, medians, highs) = (spreads.numbers("low")?, spreads.numbers("median")?, spreads.numbers("high")?);
    let (blocks, values) = (groups.lists("block")?, groups.lists("value")?);
    for (row, (arm, metric)) in keys(&spreads, "metric")?.enumerate() {
        if is_of_environment(metric) {
            let spread = Spread { low: lows[row], median: medians[row], high: highs[row] };
            arms[arm].environment.insert(metric.to_owned(), spread);
        } else {
            let per_run = blocks[row].iter().map(|block| *block as u32).zip(values[row].iter().copied());
            arms[arm].values.insert(metric.to_owned(), per_run.collect());
        }
    }
    Ok(())
}

fn take_codes(runs: &[(u32, &[&StoredRun])], arms: &mut [ArmTables]) -> Result<(), TableError> {
    let each = || {
        let runs = runs.iter().flat_map(|(arm, runs)| runs.iter().map(move |run| (*arm, *run)));
        runs.flat_map(|(arm, run)| run.warnings.iter().map(move |code| (arm, code.clone())))
    };
    let (arm, code): (Vec<u32>, Vec<String>) = each().unzip();
    let table = Table::of([("arm", arm.into()), ("code", code.into())])?;
    let counted = table.group_by(&["arm", "code"])?.aggregate(&[("code", Aggregate::Count, "runs")])?;
    for ((arm, code), runs) in keys(&counted, "code")?.zip(counted.numbers("runs")?) {
        arms[arm].codes.insert(code.to_owned(), runs as u32);
    }
    Ok(())
}

/// The per-run table grouped by arm.
fn take_totals(runs: &Table, arms: &mut [ArmTables]) -> Result<(), TableError> {
    let min = column(Statistic::Min);
    let totals = runs.group_by(&["arm"])?.aggregate(&[
        (SAMPLES.name, Aggregate::Sum, "all"),
        (SAMPLES.name, Aggregate::Min, "fewest"),
        (&min, Aggregate::Min, "min"),
        ("max", Aggregate::Max, "max"),
        ("skewness", Aggregate::Mean, "skewness"),
    ])?;
    let (all, fewest) = (totals.numbers("all")?, totals.numbers("fewest")?);
    let (min, max, skewness) = (totals.f64s("min")?, totals.f64s("max")?, totals.f64s("skewness")?);
    for (row, arm) in totals.u32s("arm")?.into_iter().enumerate() {
        let Some(arm) = arm else { continue };
        arms[arm as usize].samples = Some(SampleTotals {
            all: all[row] as u64,
            fewest: fewest[row] as u64,
            min: min[row],
            max: max[row],
            skewness: skewness[row],
        });
    }
    Ok(())
}

/// The arm of each row, and the text beside it.
fn keys<'a>(table: &'a Table, name: &str) -> Result<impl Iterator<Item = (usize, &'a str)>, TableError> {
    let rows = table.u32s("arm")?.into_iter().zip(table.texts(name)?);
    Ok(rows.map(|(arm, text)| (arm.unwrap_or_default() as usize, text.unwrap_or_default())))
}
