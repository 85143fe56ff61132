//! By what two sides are compared: metrics, margins, confidence, and how much sessions are taken to differ.

use std::collections::HashMap;

use super::gate::Gating;
use super::paired::PairedMeasurement;
use crate::compare::score::MARGIN_OF_SHARES;
use crate::compare::unpaired::assumed_spread;
use crate::results::{Results, Rules};
use crate::summary::CONFIDENCE;
use base::metric::{
    ACCURACY_TOP1, ACCURACY_TOP5, CPU_TIME, DEVICE_MEMORY, Difference, Direction, LOAD, MAE, MODEL_SIZE, Metric,
    MetricReference, PEAK_RSS, R2, RMSE, Unit,
};
use experiment::{Grade, QUICK_MARGIN};
use plan::CellId;
use statistics::unpaired::SessionSpread;

/// What is compared unasked, in addition to latency and its tail: what people choose models by.
const COMPARED: [MetricReference; 9] = [
    MetricReference::of(&ACCURACY_TOP1),
    MetricReference::of(&ACCURACY_TOP5),
    MetricReference::of(&MAE),
    MetricReference::of(&RMSE),
    MetricReference::of(&R2),
    MetricReference::of(&PEAK_RSS),
    MetricReference::of(&DEVICE_MEMORY),
    MetricReference::of(&MODEL_SIZE),
    MetricReference::of(&LOAD),
];

/// The margin of the sizes of files, of which nothing is uncertain: a new name in a model is no news.
const MARGIN_OF_SIZES: Difference = Difference::Relative(0.01);

/// A margin that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarginOverride {
    /// Of which metric; `None`: of all that are compared by ratios.
    pub metric: Option<MetricReference>,
    pub difference: Difference,
}

/// How much cells differ from session to session, as their histories show: by id of the cell and stored name of the metric.
pub type Spreads = HashMap<(CellId, String), SessionSpread>;

/// By what two sides are compared.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The metrics of the specification that the sides have.
    pub own: Vec<&'static Metric>,
    /// What is compared instead of what usually is; empty: as usual.
    pub metrics: Vec<MetricReference>,
    /// Margins instead of the specification's; the last that fits counts.
    pub margins: Vec<MarginOverride>,
    /// Facts of the frame in which the sides may differ.
    pub allowed: Vec<String>,
    /// Cells with the same bytes and settings are compared too, such as before and after an update of a driver.
    pub judges_unchanged: bool,
    /// Both sides were measured in one record; `None`: each in one of its own.
    pub paired: Option<PairedMeasurement>,
    /// What histories say about sessions; for other cells, their machine's grade is used.
    pub spreads: Spreads,
    /// What has to hold; `None`: nothing was asked.
    pub gating: Option<Gating>,
    /// Commands were measured, whose processor time is compared as well as latency: other programs change it less.
    pub of_commands: bool,
}

impl DiffOptions {
    /// Confidence of every interval.
    pub const CONFIDENCE: f64 = CONFIDENCE;

    /// What is compared: latency first.
    pub fn compared(&self) -> Vec<MetricReference> {
        let usual = || {
            let [p95, _] = MetricReference::TAILS;
            let own_metrics = self.own.iter().filter(|metric| metric.direction != Direction::Neutral);
            let cpu_time = self.of_commands.then_some(MetricReference::of(&CPU_TIME));
            [MetricReference::LATENCY, p95]
                .into_iter()
                .chain(cpu_time)
                .chain(COMPARED)
                .chain(own_metrics.map(|metric| MetricReference::of(metric)))
        };
        let mut metrics: Vec<MetricReference> =
            if self.metrics.is_empty() { usual().collect() } else { self.metrics.clone() };
        for gate in self.gating.iter().flat_map(Gating::metrics) {
            if !metrics.contains(&gate) {
                metrics.push(gate);
            }
        }
        metrics
    }

    /// Differences of this metric that are of no interest.
    pub(super) fn margin(&self, reference: MetricReference, rules: &Rules, is_quick: bool) -> Difference {
        let fits = |asked: &&MarginOverride| match asked.metric {
            Some(metric) => metric == reference,
            None => !reference.metric.is_constant(),
        };
        let asked = self.margins.iter().rev().find(fits).map(|asked| asked.difference);
        let is_tail = reference.statistic.is_tail();
        match asked {
            _ if is_quick && !reference.metric.is_constant() => Difference::Relative(QUICK_MARGIN),
            Some(asked) => asked,
            None if reference.unit() == Unit::Share => MARGIN_OF_SHARES,
            None if is_exact(reference) => MARGIN_OF_SIZES,
            None => Difference::Relative(if is_tail { rules.margin_of_tails } else { rules.margin }),
        }
    }

    /// How much the same cell is taken to differ between the sessions of both sides: as on the noisier machine.
    pub(super) fn spread(&self, baseline: &Results, candidate: &Results) -> SessionSpread {
        if self.paired.is_some() {
            return SessionSpread::NONE;
        }
        let worse =
            [baseline, candidate].map(|side| side.detectable_effect.grade.unwrap_or(Grade::D)).into_iter().max();
        assumed_spread(worse)
    }
}

/// Whether a metric differs from session to session: sessions share clock speeds and neighbours, which change times and
/// rates and leave sizes alone (method 6.2).
pub(super) fn has_sessions(reference: MetricReference) -> bool {
    reference.unit() != Unit::Bytes
}

/// Whether the metric is a fact about a file, of which nothing is uncertain.
pub(super) fn is_exact(reference: MetricReference) -> bool {
    reference.metric.name == MODEL_SIZE.name
}
