//! What runs say together, as values: of a record, of its cells, of each metric.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CONFIDENCE, CellFindings, Disturbed, Fallback, LEAST_RUNS, Latency};
use crate::diagnosis::Diagnosis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::metric::{ITEMS, LARGEST_RATE, LATE_SHARE, LATENCY, Metric, MetricReference, Statistic};
use experiment::Load;
use plan::CellId;
use quality::accuracy::Score;
use quality::fidelity::Fidelity;
use statistics::interval::{Estimate, Interval, mean_of_bad_runs};
use statistics::largest_rate::{LateCounts, RateBound, largest_rate, rate_bound};
use statistics::pooled_tail::PooledTail;
use statistics::trimmed_mean::trimmed_mean;
use worker::backend::Failure;

/// What all cells of a record say, in plan order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// One entry a cell.
    pub cells: Vec<CellSummary>,
    /// In the order of [`plan::Plan::controls`].
    pub aa_copies: Vec<AaCopy>,
    /// What disturbed the runs of the record.
    pub disturbances: Vec<Disturbed>,
    /// How often runs were taken again because heat slowed them down.
    pub retaken: u32,
}

/// A cell measured a second time, as if it were another one.
#[derive(Clone, Debug, PartialEq)]
pub struct AaCopy {
    /// Index of the cell.
    pub cell: usize,
    /// What its runs say.
    pub summary: CellSummary,
    /// In a duet, where two copies run at the same time: what the second one's runs say.
    pub second: Option<CellSummary>,
}

/// What the runs of one cell say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    pub id: CellId,
    /// Runs by outcome.
    pub runs: RunCounts,
    /// Metrics by stored name, over the completed runs that have them.
    pub metrics: BTreeMap<String, MetricSummary>,
    /// The distribution of latency, if any run completed.
    pub latency: Option<Latency>,
    /// What all samples together say about the percentiles that the experiment bounds.
    pub pooled: Vec<(Statistic, PooledTail)>,
    /// Why runs failed: each distinct failure with its number of runs and the end of one log.
    pub failures: Vec<FailureSeen>,
    /// Codes of runs with the number of runs that carry them; [`CellSummary::codes`] are those that weaken the cell.
    pub warnings: BTreeMap<String, u32>,
    /// Hash of the outputs for the first input set, if all completed runs agree on it.
    pub output_hash: Option<String>,
    /// Iterations of each sample.
    pub iterations: u32,
    /// In designs with slices, the median latency of each slice by block.
    pub slices: Vec<(u32, Vec<f64>)>,
    /// The runtime allocated outputs inside the timed region.
    pub dynamic_outputs: bool,
    /// Items that one inference handles; `None` where nobody knows.
    pub batch: Option<u64>,
    /// How its queries come, if not from one caller who waits.
    pub load: Option<Load>,
    /// Queries that would be late at other rates, by process, where the largest is looked for.
    pub late: Vec<LateCounts>,
    /// The end that is known of a largest rate which lies beyond those that were looked at.
    pub rate_bound: Option<RateBound>,
    /// Nodes by execution provider.
    pub nodes: BTreeMap<String, u64>,
    /// What of it ran on the CPU instead of its device; nothing in a cell of the CPU.
    pub fallback: Fallback,
    /// How like the reference's its outputs are; `None` for the reference itself, and where they were not compared.
    pub fidelity: Option<Fidelity>,
    /// The outputs of other cells are compared with its.
    pub is_reference: bool,
    /// How right its variant is on its model's data; empty where nobody asked.
    pub accuracy: Vec<Score>,
    /// How those scores were measured; `None` without a dataset.
    pub scored: Option<Arc<Scored>>,
    /// What is odd about the cell as a whole.
    pub findings: CellFindings,
    /// How it stands to what the machine can do.
    pub diagnosis: Diagnosis,
}

/// How the scores of a variant on a device are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Index of the cell that was run over the data.
    pub cell: u32,
    /// SHA-256 of the data.
    pub data: Option<String>,
    /// Index of the cell that it was tested against; `None` where that is no cell, and for the reference itself.
    pub reference: Option<u32>,
    /// Which items are right, by the stored name of the metric.
    pub right: BTreeMap<String, Vec<bool>>,
}

/// Runs by outcome; their sum is the number of planned runs once a record is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Ran to the end.
    pub completed: u32,
    pub failed: u32,
    /// Never started, because earlier runs failed alike.
    pub not_run: u32,
    /// Of a skipped cell.
    pub skipped: u32,
}

/// One metric over the runs of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSummary {
    /// The trimmed mean (25 %) of the run-level values with its interval.
    pub estimate: Estimate,
    /// The run-level values with the number of their block.
    pub per_run: Vec<(u32, f64)>,
}

/// Runs that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSeen {
    /// Its kind, and the message of what failed.
    #[serde(flatten)]
    pub failure: Failure,
    /// How many runs.
    pub runs: u32,
    /// It failed in the rehearsal, so that the cell was not run.
    #[serde(default, skip_serializing_if = "crate::stored::is_false")]
    pub rehearsal: bool,
    /// The end of the first failed run's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,
}

impl RunCounts {
    /// Runs that were to be carried out.
    pub fn planned(self) -> u32 {
        self.completed + self.failed + self.not_run
    }
}

impl Summary {
    /// What people are shown: without the values of cells that are not to be used; runs, codes and failures stay.
    pub fn shown(&self) -> Summary {
        let mut shown = self.clone();
        for cell in shown.cells.iter_mut().filter(|cell| cell.why_invalid().is_some()) {
            cell.metrics.clear();
            cell.latency = None;
            cell.findings.shape = None;
            cell.diagnosis = Diagnosis::default();
        }
        shown
    }
}

fn at_most_all(share: Estimate) -> Estimate {
    let interval = share.interval.map(|interval| Interval { high: interval.high.min(1.0), ..interval });
    Estimate { interval, ..share }
}

/// The estimate of a metric over runs: the trimmed mean, and of late shares the mean (method 5.1, 5.9).
pub(crate) fn over_runs(name: &str, values: &[f64], confidence: f64) -> Option<Estimate> {
    let found = match name == LATE_SHARE.name {
        true => mean_of_bad_runs(values, confidence).map(at_most_all),
        false => trimmed_mean(values, confidence),
    }?;
    let is_amount = MetricReference::of_column(name).is_some_and(|reference| reference.metric.unit.is_amount());
    let is_never_negative = is_amount && values.iter().all(|value| *value >= 0.0);
    Some(if is_never_negative { found.not_below_zero() } else { found })
}

/// One value a run with the number of its block, of columns that hold these; a coefficient of variation is made of two.
pub(crate) fn run_values(reference: MetricReference, column: impl Fn(&str) -> Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let values_of = |statistic| column(&MetricReference { statistic, ..reference }.column());
    if reference.statistic != Statistic::CoefficientOfVariation {
        return values_of(reference.statistic);
    }
    let means = values_of(Statistic::Mean);
    let mean = |block: u32| means.iter().find(|(other, _)| *other == block).map(|(_, mean)| *mean);
    let deviations = values_of(Statistic::StandardDeviation).into_iter();
    deviations.filter_map(|(block, deviation)| Some((block, deviation / mean(block)?))).collect()
}

impl CellSummary {
    /// Whether its outputs were compared and do not keep the limits: then it is not to be used, however fast it is.
    pub fn outputs_differ(&self) -> bool {
        self.fidelity.as_ref().is_some_and(|fidelity| !fidelity.passes())
    }

    /// Whether this is a score over items, so that other items would give another number.
    pub(crate) fn is_uncertain(&self, metric: &Metric) -> bool {
        self.accuracy.iter().any(|score| *score.metric.metric() == *metric && score.estimate.interval.is_some())
    }

    /// A cell of which no run is known.
    pub fn unmeasured(id: CellId) -> Self {
        CellSummary { id, iterations: 1, ..CellSummary::default() }
    }

    /// The same with completed runs that have these values of a metric, one a block.
    #[cfg(test)]
    pub(crate) fn with_values(mut self, metric: &base::metric::Metric, values: &[f64]) -> Self {
        let estimate = trimmed_mean(values, CONFIDENCE).expect("values");
        let per_run: Vec<(u32, f64)> = values.iter().enumerate().map(|(block, value)| (block as u32, *value)).collect();
        self.runs.completed = values.len() as u32;
        self.metrics.insert(metric.name.to_owned(), MetricSummary { estimate, per_run });
        self
    }

    /// The estimate of a metric, by its stored name.
    pub fn estimate(&self, metric: &base::metric::Metric) -> Option<&Estimate> {
        self.metrics.get(metric.name).map(|summary| &summary.estimate)
    }

    /// One value a run with the number of its block, in the order of blocks; empty where the runs do not have it.
    pub fn run_values(&self, reference: MetricReference) -> Vec<(u32, f64)> {
        run_values(reference, |column| self.metrics.get(column).map_or_else(Vec::new, |metric| metric.per_run.clone()))
    }

    /// The trimmed mean (25 %) of the run-level values with its interval.
    pub fn estimate_of(&self, reference: MetricReference) -> Option<Estimate> {
        if let Some(known) = self.metrics.get(&reference.column()) {
            return Some(known.estimate);
        }
        self.estimate_at(reference, CONFIDENCE)
    }

    /// As [`CellSummary::estimate_of`], with an interval of this confidence; what is the same in every run keeps its own, which is not
    /// over runs.
    pub(crate) fn estimate_at(&self, reference: MetricReference, confidence: f64) -> Option<Estimate> {
        if let Some(allowed) = self.allowed_late(reference) {
            return largest_rate(&self.late, allowed, confidence);
        }
        if reference.metric.is_constant() {
            return self.metrics.get(&reference.column()).map(|known| known.estimate);
        }
        let found = over_runs(reference.metric.name, &self.values(reference), confidence)?;
        Some(if reference.metric.name == LATE_SHARE.name { self.with_unseen(found, confidence) } else { found })
    }

    /// A late share of which no query was seen: N of them leave as much open as has a chance of (1 - confidence) / 2.
    fn with_unseen(&self, late: Estimate, confidence: f64) -> Estimate {
        let queries = self.latency.as_ref().map(|latency| latency.samples).filter(|_| late.value == 0.0);
        let most = queries
            .filter(|queries| *queries > 0)
            .map(|queries| 1.0 - ((1.0 - confidence) / 2.0).powf(1.0 / queries as f64));
        let interval = late.interval.map(|interval| Interval { high: most.unwrap_or(interval.high), ..interval });
        Estimate { interval, ..late }
    }

    fn values(&self, reference: MetricReference) -> Vec<f64> {
        self.run_values(reference).into_iter().map(|(_, value)| value).collect()
    }

    /// Whether it says how like others outputs are, which the reference's own are not, nor outputs of another kind.
    pub(crate) fn is_beside(&self, metric: &Metric) -> bool {
        metric.is_of_outputs()
            && !self.metrics.contains_key(metric.name)
            && (self.is_reference || self.fidelity.is_some())
    }

    /// As [`CellSummary::estimate_at`], by which a promise is judged: of what a few bad runs decide, the mean of all.
    pub(crate) fn estimate_under_bound(&self, reference: MetricReference, confidence: f64) -> Option<Estimate> {
        if let Some(bound) = self.bound_of(reference) {
            return Some(self.one_sided(bound, confidence));
        }
        match reference.is_about_bad_runs() {
            true if reference.metric.name == LATE_SHARE.name => self.estimate_at(reference, confidence),
            true => mean_of_bad_runs(&self.values(reference), confidence),
            false => self.estimate_at(reference, confidence),
        }
    }

    /// The share of late queries that the largest rate allows, where that is meant.
    fn allowed_late(&self, reference: MetricReference) -> Option<f64> {
        let bound = self.load.filter(Load::is_largest).and_then(|load| load.bound())?;
        (reference.metric.name == LARGEST_RATE.name).then(|| bound.allowed())
    }

    /// The same with the estimates of a load: the largest rate, which is no mean over runs (method 7.3), and a late share of
    /// which no query was seen.
    pub(crate) fn with_load(mut self) -> Self {
        if let Some(late) = self.metrics.get(LATE_SHARE.name).map(|late| self.with_unseen(late.estimate, CONFIDENCE)) {
            self.metrics.entry(LATE_SHARE.name.to_owned()).and_modify(|metric| metric.estimate = late);
        }
        let reference = MetricReference::of(&LARGEST_RATE);
        if let Some(allowed) = self.allowed_late(reference) {
            match self.estimate_at(reference, CONFIDENCE) {
                Some(estimate) => {
                    self.metrics.entry(reference.column()).and_modify(|metric| metric.estimate = estimate);
                }
                None => {
                    self.metrics.remove(&reference.column());
                    self.rate_bound = rate_bound(&self.late, allowed, CONFIDENCE);
                }
            }
        }
        self
    }

    /// The end that is known of this metric, where its value is not.
    pub(crate) fn bound_of(&self, reference: MetricReference) -> Option<RateBound> {
        self.rate_bound.filter(|_| reference.metric.name == LARGEST_RATE.name)
    }

    fn one_sided(&self, bound: RateBound, confidence: f64) -> Estimate {
        let (value, interval) = match bound {
            RateBound::AtLeast(rate) => (rate, Interval { low: rate, high: f64::INFINITY }),
            RateBound::AtMost(rate) => (rate, Interval { low: f64::NEG_INFINITY, high: rate }),
        };
        Estimate { value, interval: Some(interval), n: self.runs.completed as usize, confidence }
    }

    /// By what cells are put in order: the value of a metric, or the end that is known of it.
    pub(crate) fn sort_value(&self, reference: MetricReference) -> Option<f64> {
        let end = self.bound_of(reference).map(|bound| match bound {
            RateBound::AtLeast(rate) | RateBound::AtMost(rate) => rate,
        });
        end.or_else(|| Some(self.estimate_of(reference)?.value))
    }

    /// What it is compared with another by where nothing is asked: what its load says, items per second where one inference of
    /// the one handles more items than one of the other, and else latency (method 6.1).
    pub fn compared_by(&self, other: &CellSummary) -> MetricReference {
        let has_items = self.metrics.contains_key(ITEMS.name);
        match self.load.or(other.load) {
            // The rate of queries is the same for every batch.
            Some(load) if load.is_largest() || load.arrivals().is_some() => load.compared_by(has_items),
            _ if self.has_another_batch(other) => MetricReference::of(&ITEMS),
            Some(load) => load.compared_by(has_items),
            None => MetricReference::LATENCY,
        }
    }

    /// Whether enough runs say one number, so that nothing of it is uncertain.
    pub(crate) fn is_same_in_all_runs(&self, reference: MetricReference) -> bool {
        let values = self.run_values(reference);
        values.len() >= LEAST_RUNS && values.iter().all(|(_, value)| *value == values[0].1)
    }

    /// Whether every run has enough samples for this percentile; true for all that is no tail percentile.
    pub fn supports(&self, reference: MetricReference) -> bool {
        !reference.statistic.is_tail() || self.supports_percentile(reference.statistic) == Some(true)
    }

    /// Whether every run has enough samples for this percentile of iterations; `None` where it is not known.
    pub(crate) fn supports_percentile(&self, statistic: Statistic) -> Option<bool> {
        let known = self.latency.as_ref()?.percentiles.iter().find(|(known, _)| *known == statistic)?;
        Some(known.1)
    }

    /// What all samples together say about a percentile that the experiment bounds.
    pub fn pooled(&self, reference: MetricReference) -> Option<PooledTail> {
        let is_of_latency = reference.metric.name == LATENCY.name;
        let known = self.pooled.iter().find(|(statistic, _)| is_of_latency && *statistic == reference.statistic)?;
        Some(known.1)
    }

    /// Whether one inference of each is known to handle another number of items.
    pub(crate) fn has_another_batch(&self, other: &CellSummary) -> bool {
        self.batch.zip(other.batch).is_some_and(|(batch, other_batch)| batch != other_batch)
    }

    /// Whether the cell has enough runs for intervals and verdicts.
    pub fn has_enough_runs(&self) -> bool {
        self.runs.completed as usize >= LEAST_RUNS
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_interval_of_a_time_begins_below_zero() {
        let values = [1.0, 1.0, 2.0, 90.0, 120.0];
        let low = |name: &str| over_runs(name, &values, CONFIDENCE).unwrap().interval.unwrap().low;
        assert_eq!((low("latency_ns"), low("peak_rss_bytes")), (0.0, 0.0));
        // A number of the user's own may be negative.
        assert!(low("gain") < 0.0 && trimmed_mean(&values, CONFIDENCE).unwrap().interval.unwrap().low < 0.0);
    }

    #[test]
    fn few_queries_of_which_none_was_late_promise_little() {
        let high = |samples: u64| {
            let latency = Latency { samples, late_warmup: 0, percentiles: Vec::new() };
            let per_run = (0..5).map(|block| (block, 0.0)).collect();
            let estimate = over_runs(LATE_SHARE.name, &[0.0; 5], CONFIDENCE).unwrap();
            let mut cell = CellSummary::unmeasured("0123456789abcdef".parse().unwrap());
            cell.latency = Some(latency);
            cell.metrics.insert(LATE_SHARE.name.to_owned(), MetricSummary { estimate, per_run });
            let cell = cell.with_load();
            let reference = MetricReference::of(&LATE_SHARE);
            [cell.estimate_of(reference), cell.estimate_under_bound(reference, CONFIDENCE)]
                .map(|found| found.unwrap().interval.unwrap().high)
        };
        // Clopper and Pearson 1934: 1 - .025^(1/100) = .0362.
        let few = high(100);
        assert!(few.iter().all(|high| (high - 0.036_2).abs() < 1e-4), "{few:?}");
        assert!(high(10_000).iter().all(|high| *high < 0.000_4));
    }
}
