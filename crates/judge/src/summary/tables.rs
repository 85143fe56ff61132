//! The runs of a record as tables, and what polars makes of their groups: values by cell.
//!
//! Input: the completed runs of each arm. Output: one value a run for every metric and every statistic of latency, and
//! what the runs of an arm have together. Deliberately absent: intervals and verdicts, which are perfrun's own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Spread, is_of_environment};
use base::code;
use base::metric::{LATENCY, MetricReference, SAMPLES, Statistic};
use record::{SampleSummary, StoredRun};
use table::{Aggregate, Table, TableError, Values};

/// The statistics of a run's samples, as users name them; the median is a metric of the run already.
const STATISTICS: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::Min,
    Statistic::P90,
    Statistic::P95,
    Statistic::P99,
    Statistic::P999,
    Statistic::StandardDeviation,
];

/// One value a run with the number of its block, by the name of the metric or of the statistic.
pub(super) type RunValues = BTreeMap<String, Vec<(u32, f64)>>;

/// What the runs of one arm say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ArmTables<'a> {
    /// What is compared.
    pub(super) values: RunValues,
    /// What the runs met on the machine, by metric.
    pub(super) environment: BTreeMap<String, Spread>,
    /// Runs that carry a code.
    pub(super) codes: BTreeMap<String, u32>,
    /// `None` where no run has a sample.
    pub(super) samples: Option<SampleTotals>,
    /// The samples of each run.
    pub(super) runs: Vec<Cow<'a, SampleSummary>>,
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

/// What the completed runs of each arm say, which are given in the order of their blocks.
pub(super) fn tables<'a>(arms: &[Vec<&'a StoredRun>]) -> Result<Vec<ArmTables<'a>>, TableError> {
    let numbered: Vec<(u32, &[&'a StoredRun])> = (0..).zip(arms.iter().map(Vec::as_slice)).collect();
    let each = numbered.iter().flat_map(|(arm, runs)| {
        let is_batched = runs.iter().any(|run| run.iterations > 1);
        runs.iter().map(move |run| (*arm, is_batched, *run))
    });
    let each: Vec<(u32, bool, &StoredRun)> = each.collect();
    let summary = |(_, is_batched, run): &(u32, bool, &'a StoredRun)| match run.summary() {
        // Its percentiles are those of means.
        summary if *is_batched => Cow::Owned(summary.into_owned().means()),
        summary => summary,
    };
    let of_each: Vec<Cow<'a, SampleSummary>> = each.par_iter().map(summary).collect();
    let sampled: Vec<(u32, u32, &SampleSummary)> = each
        .iter()
        .zip(&of_each)
        .filter(|(_, samples)| samples.count > 0)
        .map(|((arm, _, run), samples)| (*arm, run.block, samples.as_ref()))
        .collect();
    let runs = if sampled.is_empty() { None } else { Some(table_of(&sampled)?) };
    let mut found = vec![ArmTables::default(); arms.len()];
    let values = run_values(&numbered, runs.as_ref())?;
    take_values(&values, &mut found)?;
    take_codes(&numbered, &mut found)?;
    if let Some(runs) = runs {
        take_totals(&runs, &mut found)?;
    }
    for ((arm, ..), run) in each.iter().zip(of_each) {
        found[*arm as usize].runs.push(run);
    }
    Ok(found)
}

/// One row a run that has samples.
fn table_of(runs: &[(u32, u32, &SampleSummary)]) -> Result<Table, TableError> {
    let numbers = |of: &dyn Fn(&SampleSummary) -> Option<f64>| -> Values {
        runs.iter().map(|(.., run)| of(run)).collect::<Vec<Option<f64>>>().into()
    };
    let others: [(&str, Values); 5] = [
        ("arm", runs.iter().map(|(arm, ..)| *arm).collect::<Vec<u32>>().into()),
        ("block", runs.iter().map(|(_, block, _)| *block).collect::<Vec<u32>>().into()),
        (SAMPLES.name, numbers(&|run| Some(run.count as f64))),
        ("max", numbers(&|run| run.max)),
        ("skewness", numbers(&|run| run.skewness)),
    ];
    let names = STATISTICS.map(column);
    let statistics =
        names.iter().zip(STATISTICS).map(|(name, statistic)| (name.as_str(), numbers(&|run| run.statistic(statistic))));
    Table::of(others.into_iter().chain(statistics))
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
        for name in STATISTICS.map(column).into_iter().chain([SAMPLES.name.to_owned()]) {
            let values = runs.select(&[("arm", "arm"), ("block", "block"), (&name, "value")])?;
            parts.push(values.with([("metric", vec![name; values.height()].into())])?.without_gaps()?);
        }
    }
    Table::stacked(parts)?.ok_or_else(|| TableError("there is no run".to_owned()))
}

fn take_values(values: &Table, arms: &mut [ArmTables<'_>]) -> Result<(), TableError> {
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

fn take_codes(runs: &[(u32, &[&StoredRun])], arms: &mut [ArmTables<'_>]) -> Result<(), TableError> {
    let each = || {
        let runs = runs.iter().flat_map(|(arm, runs)| runs.iter().map(move |run| (*arm, *run)));
        let codes =
            |run: &'_ StoredRun| run.warnings.iter().filter(|code| code::is_of_runs(code)).cloned().collect::<Vec<_>>();
        runs.flat_map(move |(arm, run)| codes(run).into_iter().map(move |code| (arm, code)))
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
fn take_totals(runs: &Table, arms: &mut [ArmTables<'_>]) -> Result<(), TableError> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::metric::STEAL;
    use record::{Arm, Outcome};
    use statistics::moments::{mean, standard_deviation};
    use statistics::quantile::{quantile_sorted, sorted};

    fn run(block: u32, durations: &[u64], iterations: u32) -> StoredRun {
        let id = "0123456789abcdef".parse().unwrap();
        let mut run = StoredRun::not_started(id, Arm::Main, block, 0, Outcome::Completed);
        run.iterations = iterations;
        run.data.measured.duration_ns = durations.to_vec();
        run.data.metrics.insert(LATENCY.name.to_owned(), f64::from(block));
        run
    }

    fn of(arms: &[Vec<StoredRun>]) -> Vec<ArmTables<'_>> {
        tables(&arms.iter().map(|runs| runs.iter().collect()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_run_has_its_own_statistics() {
        let durations = [vec![30, 10, 20, 90], vec![5], vec![], vec![7, 7, 8]];
        let runs: Vec<StoredRun> = (0..).zip(&durations).map(|(block, values)| run(block * 2, values, 1)).collect();
        let arms = [runs, vec![run(1, &[100, 300], 1)]];
        let found = of(&arms);
        let values = |of: &dyn Fn(&[f64]) -> Option<f64>| -> Vec<(u32, f64)> {
            let numbers = |values: &Vec<u64>| values.iter().map(|value| *value as f64).collect::<Vec<f64>>();
            let runs = durations.iter().enumerate();
            runs.filter_map(|(index, values)| Some((2 * index as u32, of(&numbers(values))?))).collect()
        };
        assert_eq!(found[0].values["latency_mean_ns"], values(&mean));
        assert_eq!(found[0].values["latency_stddev_ns"], values(&standard_deviation));
        assert_eq!(found[0].values["latency_p95_ns"], values(&|values| quantile_sorted(&sorted(values), 0.95)));
        assert_eq!(found[0].values["samples"], [(0, 4.0), (2, 1.0), (6, 3.0)]);
        assert_eq!(found[0].values[LATENCY.name].len(), 4, "metrics of a run without samples stay");
        let totals = found[0].samples.unwrap();
        assert_eq!((totals.all, totals.fewest, totals.min, totals.max), (8, 1, Some(5.0), Some(90.0)));
        assert_eq!(found[1].values["latency_min_ns"], [(1, 100.0)]);
    }

    /// As a copied file of the journal would make them.
    #[test]
    fn two_runs_of_one_block_stay_two() {
        let arms = [vec![run(3, &[10, 20], 1), run(3, &[30], 1)]];
        let found = of(&arms);
        assert_eq!(found[0].values["latency_mean_ns"], [(3, 15.0), (3, 30.0)]);
    }

    #[test]
    fn samples_of_several_iterations_have_means_alone() {
        let arms = [vec![run(0, &[40, 80], 4)], vec![run(0, &[40, 80], 1)]];
        let found = of(&arms);
        assert_eq!(found[0].values["latency_mean_ns"], [(0, 15.0)]);
        assert!(!found[0].values.contains_key("latency_p95_ns") && found[0].samples.unwrap().max.is_none());
        assert_eq!(found[1].values["latency_min_ns"], [(0, 40.0)]);
    }

    #[test]
    fn what_only_some_runs_have_keeps_its_blocks() {
        let mut runs = vec![run(0, &[1], 1), run(1, &[1], 1), run(2, &[1], 1)];
        for (block, steal) in [(0, 0.1), (2, 0.3)] {
            runs[block].data.metrics.insert(STEAL.name.to_owned(), steal);
            runs[block].data.metrics.insert("load_ns".to_owned(), 7.0 + block as f64);
            runs[block].warnings.extend(["W_STEAL", "W_OUTLIERS", "W_WARMUP_TREND"].map(str::to_owned));
        }
        let arms = [Vec::new(), runs];
        let found = of(&arms);
        assert_eq!(found[0], ArmTables::default());
        assert_eq!(found[1].values["load_ns"], [(0, 7.0), (2, 9.0)]);
        assert_eq!(found[1].environment[STEAL.name], Spread { low: 0.1, median: 0.2, high: 0.3 });
        assert_eq!(found[1].codes, BTreeMap::from([("W_STEAL".to_owned(), 2)]), "the others are columns now");
    }
}
