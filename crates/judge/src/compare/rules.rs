//! By what cells are judged: margins and confidence (method 4.6, 6.1).

use base::metric::MetricReference;
use experiment::{Design, Margin};
use record::Manifest;
use statistics::interim::InterimAnalyses;

/// By what cells are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparisonRules {
    /// Differences of no interest.
    pub margin: Margin,
    /// When comparisons are analysed (method 4.6).
    pub analyses: InterimAnalyses,
    /// A quick look calls nothing equivalent.
    pub is_quick: bool,
    /// The two cells of a pair ran at the same time, and are compared slice by slice.
    pub is_duet: bool,
    /// Master seed of what is drawn at random.
    pub seed: u64,
}

impl Default for ComparisonRules {
    fn default() -> Self {
        let fixed = InterimAnalyses::TYPICAL;
        ComparisonRules {
            margin: Margin::default(),
            analyses: InterimAnalyses::new(fixed, fixed),
            is_quick: false,
            is_duet: false,
            seed: 0,
        }
    }
}

impl ComparisonRules {
    /// Those of a record.
    pub fn of(manifest: &Manifest) -> Self {
        let margin = manifest.experiment.compare.margin;
        ComparisonRules {
            margin: if manifest.quick { margin.of_quick_look() } else { margin },
            analyses: manifest.experiment.interim_analyses(),
            is_quick: manifest.quick,
            is_duet: manifest.experiment.measure.design == Design::Duet,
            seed: manifest.plan.seed,
        }
    }

    /// Confidence of the interval of a single cell by which a bound is judged.
    pub fn confidence(&self) -> f64 {
        self.analyses.confidence()
    }

    /// The margin for this metric as a relative difference.
    pub fn margin_of(&self, reference: MetricReference) -> f64 {
        if reference.statistic.is_tail() { self.margin.tail.0 } else { self.margin.default.0 }
    }
}
