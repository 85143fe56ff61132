//! By what cells are judged: margins and confidence (method 4.6, 6.1).

use crate::summary::CONFIDENCE;
use base::metric::MetricReference;
use experiment::{Design, Margin};
use record::Manifest;

/// By what cells are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparisonRules {
    /// Differences of no interest.
    pub margin: Margin,
    /// Confidence of every interval by which a verdict is given (method 4.6).
    pub confidence: f64,
    /// A quick look calls nothing equivalent.
    pub is_quick: bool,
    /// The arms of a pair ran at the same time, and are compared slice by slice.
    pub is_duet: bool,
    /// Master seed of what is drawn at random.
    pub seed: u64,
}

impl Default for ComparisonRules {
    fn default() -> Self {
        let margin = Margin::default();
        ComparisonRules { margin, confidence: CONFIDENCE, is_quick: false, is_duet: false, seed: 0 }
    }
}

impl ComparisonRules {
    /// Those of a record.
    pub fn of(manifest: &Manifest) -> Self {
        let margin = manifest.experiment.compare.margin;
        ComparisonRules {
            margin: if manifest.quick { margin.of_quick_look() } else { margin },
            confidence: manifest.experiment.interim_analyses().confidence(),
            is_quick: manifest.quick,
            is_duet: manifest.experiment.measure.design == Design::Duet,
            seed: manifest.plan.seed,
        }
    }

    /// The margin for this metric as a relative difference.
    pub fn margin_of(&self, reference: MetricReference) -> f64 {
        if reference.statistic.is_tail() { self.margin.tail.0 } else { self.margin.default.0 }
    }
}
