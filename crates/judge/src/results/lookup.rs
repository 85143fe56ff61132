//! What is asked of a cell and of a record, answered from the stored numbers.

use std::collections::BTreeMap;

use super::{Cell, Comparison, Results, Status};
use crate::summary::{invalid_for, mean_background_load, over_runs, run_values};
use base::code::{CPU_SHARE_REPORTED, Severity};
use base::metric::{self, Metric, MetricReference};
use experiment::{AccuracyMetric, Axis, AxisMap, Device};
use quality::accuracy::Score;
use quality::fidelity::Fidelity;
use statistics::interval::Estimate;
use statistics::planning::MINIMUM_RUNS;

/// Confidence of the intervals of cells (method 11).
pub const CONFIDENCE: f64 = 0.95;

impl Cell {
    /// `mlp/b1/fp32/cpu`.
    pub fn path(&self) -> String {
        self.names.path()
    }

    /// True for cells on the CPU; in a merged record, on that of any machine.
    pub fn is_on_cpu(&self) -> bool {
        self.names.device().split('@').next() == Some(Device::CPU)
    }

    pub fn is_run(&self) -> bool {
        self.status != Status::Skipped
    }

    /// Runs that were to be carried out.
    pub fn planned(&self) -> u32 {
        self.completed.saturating_add(self.failed).saturating_add(self.not_run)
    }

    /// Whether its outputs were compared and do not keep the limits: then it is not to be used, however fast it is.
    pub fn outputs_differ(&self) -> bool {
        self.fidelity.as_ref().is_some_and(|fidelity| !fidelity.passes())
    }

    /// How like the reference's its outputs are, where something was compared.
    pub fn compared_outputs(&self) -> Option<&Fidelity> {
        self.fidelity.as_ref().filter(|fidelity| fidelity.elements != Some(0))
    }

    /// The estimate of a metric that may be shown.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        let found = self.metrics.get(metric.name).filter(|_| !self.is_invalid())?;
        Some(found.estimate(CONFIDENCE))
    }

    /// The same of a statistic; of a percentile that is not supported too, see [`Cell::supports`].
    pub fn estimate_of(&self, reference: MetricReference) -> Option<Estimate> {
        if self.is_invalid() {
            return None;
        }
        if let Some(found) = self.metrics.get(&reference.column()) {
            return Some(found.estimate(CONFIDENCE));
        }
        let values: Vec<f64> = self.run_values(reference).into_iter().map(|(_, value)| value).collect();
        over_runs(&reference.column(), &values, CONFIDENCE)
    }

    /// Whether every run has enough samples for this percentile; true for all that is no tail percentile.
    pub fn supports(&self, reference: MetricReference) -> bool {
        let found = self.metrics.get(&reference.column());
        !reference.statistic.is_tail() || found.is_some_and(|found| found.supported != Some(false))
    }

    /// One value a run with the number of its block; empty where the runs do not have it.
    pub fn run_values(&self, reference: MetricReference) -> Vec<(u32, f64)> {
        run_values(reference, |column| {
            let blocks = self.runs.get("block").into_iter().flatten();
            let values = self.runs.get(column).into_iter().flatten();
            blocks.zip(values).filter_map(|(block, value)| Some(((*block)? as u32, (*value)?))).collect()
        })
    }

    /// The metrics of the specification that it has.
    pub fn own_metrics(&self) -> impl Iterator<Item = &'static Metric> {
        self.metrics.keys().filter_map(|name| Metric::of_own(name))
    }

    /// Whether it has enough runs for intervals and verdicts.
    pub fn has_enough_runs(&self) -> bool {
        self.completed as usize >= MINIMUM_RUNS
    }

    /// How right its variant is on its model's data, what comes first as the first; empty where nobody asked.
    pub fn scores(&self) -> Vec<Score> {
        let score = |metric: AccuracyMetric| {
            let name = metric.metric().name;
            let estimate = self.metrics.get(name)?.estimate(CONFIDENCE);
            Some(Score { metric, estimate, change: self.score_changes.get(name).copied() })
        };
        let own_metrics = self.own_metrics().filter(|metric| metric.is_constant());
        AccuracyMetric::OF_LABELS.into_iter().chain(own_metrics.map(AccuracyMetric::Own)).filter_map(score).collect()
    }

    /// Why its values are not to be used, if a code says so (method 14).
    pub fn why_invalid(&self) -> Option<&str> {
        let (code, _) = self.codes.iter().find(|(_, seen)| seen.severity == Severity::Invalid)?;
        Some(invalid_for(code))
    }

    /// The part of the time on the CPU in a cell of another device, where that is worth telling.
    pub fn told_cpu_share(&self) -> Option<f64> {
        let share = self.metrics.get(metric::FALLBACK.name)?.value;
        Some(share).filter(|share| *share >= CPU_SHARE_REPORTED)
    }
}

impl Results {
    /// The metrics of the specification that some cell has.
    pub fn own_metrics(&self) -> Vec<&'static Metric> {
        let found: BTreeMap<&str, &'static Metric> =
            self.cells.iter().flat_map(Cell::own_metrics).map(|metric| (metric.name, metric)).collect();
        found.into_values().collect()
    }

    /// Whether cells of a group differ on this axis.
    pub fn compares(&self, axis: Axis) -> bool {
        self.rules.compared.iter().any(|name| name == axis.singular())
    }

    /// What is compared, as the baseline is named; the variant where nothing is.
    pub fn entry(&self, names: &AxisMap<String>) -> String {
        let axes: Vec<Axis> = Axis::ALL.into_iter().filter(|axis| self.compares(*axis)).collect();
        if axes.is_empty() { names.variant().to_owned() } else { names.on(&axes) }
    }

    /// Whether other cells are compared with this one.
    pub fn is_baseline(&self, cell: &Cell) -> bool {
        self.rules.baseline.as_ref().is_some_and(|baseline| *baseline == self.entry(&cell.names))
    }

    /// What cells are compared by where nothing is asked.
    pub fn unasked(&self) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(|row| MetricReference::UNASKED.contains(&row.metric))
    }

    /// The rows of this metric.
    pub fn compared_by(&self, metric: MetricReference) -> impl Iterator<Item = &Comparison> {
        self.comparisons.iter().filter(move |row| row.metric == metric)
    }
}

/// Processors that background load used during the runs of these cells; `None` unless most of their runs met some (method
/// 8.1).
pub fn background_load<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Option<f64> {
    mean_background_load(cells.into_iter().map(|cell| (cell.completed, cell.background_load)))
}
