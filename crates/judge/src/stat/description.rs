//! One series: its estimates, and what deserves doubt about them (method 3.2 and 5).
//!
//! Input: a series and the terms. Output: each statistic by the rule of a report: over runs the trimmed mean (25 %),
//! one value a run; without runs over the values, by as many independent ones as they are worth.
//! Deliberately absent: intervals from the values of all runs together, which claim more than was measured.

use std::collections::BTreeMap;

use serde::Serialize;

use super::symptoms::{codes_of_runs, codes_of_values};
use super::tool::nanoseconds;
use super::{Series, StatOptions, Tool};
use crate::results::Estimated;
use base::code::Code;
use base::metric::Statistic;
use statistics::autocorrelation::{
    autocorrelation_time, mean_interval_at, quantile_interval_ess_of, supports_quantile,
};
use statistics::quantile::sorted;
use statistics::{
    Estimate, Interval, mean, quantile_interval_sorted, quantile_is_supported, quantile_sorted, standard_deviation,
    trimmed_mean,
};

/// What is estimated, in the order of tables.
pub const SHOWN: [Statistic; 6] =
    [Statistic::Median, Statistic::Mean, Statistic::P95, Statistic::P99, Statistic::StandardDeviation, Statistic::Min];

/// Below this autocorrelation time the exact interval of a quantile stands, which takes values to be independent.
const WORTHWHILE_TIME: f64 = 1.05;

/// What is said of one series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Where it comes from.
    pub source: String,
    /// The name of its column, if the file has one.
    pub header: Option<String>,
    /// The benchmark's name, if the file gives names.
    pub benchmark: Option<String>,
    /// The tool that wrote the file; `None` for bare numbers.
    pub tool: Option<Tool>,
    /// Where it was measured, in the tool's words.
    pub machine: Option<String>,
    /// Unit of the values, where it is known.
    pub unit: Option<String>,
    /// Number of values, those of all runs together.
    pub values: usize,
    /// Number of runs; `None` for values without runs.
    pub runs: Option<usize>,
    /// How many independent values the values are worth; `None` with runs.
    pub effective_n: Option<f64>,
    /// Each of [`SHOWN`] by its name, as far as it is defined.
    pub estimates: BTreeMap<&'static str, Estimated>,
    /// Codes of what deserves doubt, with the number of runs in which it was seen; 1 without runs.
    pub warnings: BTreeMap<Code, usize>,
}

impl Description {
    pub(super) fn of(series: &Series, terms: &StatOptions) -> Self {
        let found = match series.runs() {
            Some(runs) => over_runs(&runs, terms),
            None => over_values(series.values(), terms),
        };
        Description {
            source: series.source.clone(),
            header: series.header.clone(),
            benchmark: series.benchmark.clone(),
            tool: series.tool,
            machine: series.machine.clone(),
            unit: series.unit.clone(),
            ..found
        }
        .of_amounts(series)
    }

    /// A time is never below zero, and so is no interval of one.
    fn of_amounts(mut self, series: &Series) -> Self {
        if self.unit.as_deref().and_then(nanoseconds).is_some() && series.values().iter().all(|value| *value >= 0.0) {
            for low in self.estimates.values_mut().filter_map(|found| found.low.as_mut()) {
                *low = low.max(0.0);
            }
        }
        self
    }

    /// One of [`SHOWN`].
    pub fn estimate(&self, statistic: Statistic) -> Option<&Estimated> {
        self.estimates.get(statistic.name())
    }
}

/// Values of one process in their order.
fn over_values(values: &[f64], terms: &StatOptions) -> Description {
    let ordered = sorted(values);
    let effective_n = values.len() as f64 / autocorrelation_time(values);
    let estimate = |statistic: Statistic| {
        let plain = plain(values, &ordered, statistic).map(|value| without_interval(value, values.len()));
        match statistic.probability() {
            Some(probability) => quantile(values, &ordered, probability, terms),
            None if statistic == Statistic::Mean => {
                mean_interval_at(values, terms.confidence, effective_n).map(|mean| estimated(mean, None))
            }
            None => plain,
        }
    };
    Description {
        source: String::new(),
        header: None,
        benchmark: None,
        tool: None,
        machine: None,
        unit: None,
        values: values.len(),
        runs: None,
        effective_n: Some(effective_n),
        estimates: named(estimate),
        warnings: codes_of_values(values).into_iter().map(|code| (code, 1)).collect(),
    }
}

/// A quantile with the exact interval, unless the values are correlated around it.
fn quantile(values: &[f64], ordered: &[f64], probability: f64, terms: &StatOptions) -> Option<Estimated> {
    let effective = quantile_interval_ess_of(values, ordered, probability, terms.confidence)?;
    let exact = quantile_interval_sorted(ordered, probability, terms.confidence);
    let (low, high) = match exact.filter(|_| effective.autocorrelation_time <= WORTHWHILE_TIME) {
        Some(exact) => (exact.low, exact.high),
        None => (effective.low, effective.high),
    };
    let interval = low.zip(high).map(|(low, high)| Interval { low, high });
    let found = Estimate { value: effective.value, interval, n: values.len(), confidence: terms.confidence };
    let is_supported = quantile_is_supported(effective.effective_n, probability);
    Some(estimated(found, (probability > 0.5).then_some(is_supported)))
}

/// Runs, each with at least one value.
fn over_runs(runs: &[&[f64]], terms: &StatOptions) -> Description {
    let ordered: Vec<Vec<f64>> = runs.iter().map(|run| sorted(run)).collect();
    let estimate = |statistic: Statistic| {
        let each = || runs.iter().zip(&ordered);
        let per_run: Vec<f64> = each().filter_map(|(run, ordered)| plain(run, ordered, statistic)).collect();
        if statistic == Statistic::Min {
            return per_run.into_iter().reduce(f64::min).map(|value| without_interval(value, runs.len()));
        }
        let supports = |probability: f64| {
            let supports = |(run, value): (&&[f64], &f64)| supports_quantile(run, probability, *value);
            runs.iter().zip(&per_run).all(supports)
        };
        let is_supported = statistic.probability().filter(|_| statistic.is_tail()).map(supports);
        trimmed_mean(&per_run, terms.confidence).map(|found| estimated(found, is_supported))
    };
    let medians: Vec<f64> = ordered.iter().filter_map(|run| quantile_sorted(run, 0.5)).collect();
    let mut warnings = BTreeMap::new();
    for code in runs.iter().flat_map(|run| codes_of_values(run)) {
        *warnings.entry(code).or_insert(0) += 1;
    }
    warnings.extend(codes_of_runs(&medians).into_iter().map(|code| (code, runs.len())));
    Description {
        source: String::new(),
        header: None,
        benchmark: None,
        tool: None,
        machine: None,
        unit: None,
        values: runs.iter().map(|run| run.len()).sum(),
        runs: Some(runs.len()),
        effective_n: None,
        estimates: named(estimate),
        warnings,
    }
}

fn named(estimate: impl Fn(Statistic) -> Option<Estimated>) -> BTreeMap<&'static str, Estimated> {
    SHOWN.into_iter().filter_map(|statistic| Some((statistic.name(), estimate(statistic)?))).collect()
}

/// A statistic of values, given in their order and in rising order.
fn plain(values: &[f64], ordered: &[f64], statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Mean => mean(values),
        Statistic::StandardDeviation => standard_deviation(values),
        Statistic::Min => ordered.first().copied(),
        _ => quantile_sorted(ordered, statistic.probability()?),
    }
}

fn without_interval(value: f64, n: usize) -> Estimated {
    Estimated { value, low: None, high: None, n: n as u64, supported: None }
}

/// An interval of a percentile that is not supported says nothing.
fn estimated(found: Estimate, supported: Option<bool>) -> Estimated {
    let interval = found.interval.filter(|_| supported != Some(false));
    Estimated {
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        supported,
        ..without_interval(found.value, found.n)
    }
}
