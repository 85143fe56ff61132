//! What else two cells' run-level values say: shown in details, deciding nothing (method 6.3 to 6.6).

use serde::{Deserialize, Serialize};
use statistics::effect_size::{CliffsDelta, cliffs_delta, hedges_g, hodges_lehmann_shift};
use statistics::equivalence::Equivalence;
use statistics::fieller::{MeanRatio, mean_ratio};
use statistics::mann_whitney::mann_whitney;
use statistics::paired::PairedComparison;
use statistics::paired_tests::{SignedRankTest, signed_rank_test};
use statistics::permutation::{permutation_test, sign_flip_test};
use statistics::random::key_seed;
use statistics::welch::{Welch, welch};

use super::Terms;
use super::pair::block_log_ratios;
use crate::judge::summary::{CONFIDENCE, CellSummary};
use crate::vocabulary::metric::{Direction, MetricReference};

/// Statistics of one comparison beside its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// The log ratios of the blocks: estimate, spread, tests.
    pub paired: PairedComparison,
    /// Holm's adjustment over all comparisons of the record.
    pub p_holm: Option<f64>,
    /// Benjamini-Hochberg's adjustment over all comparisons of the record.
    pub q: Option<f64>,
    /// p value of equivalence within the margin (two one-sided tests).
    pub p_tost: Option<f64>,
    /// Wilcoxon's test of the log ratios of the blocks, with Hodges and Lehmann's estimate.
    #[serde(default)]
    pub signed_rank: Option<SignedRankTest>,
    /// Cliff's delta of the run-level values.
    pub cliffs_delta: Option<CliffsDelta>,
    /// Probability that a run of the candidate is larger than one of the baseline (A12).
    pub superiority: Option<f64>,
    /// Hedges' g of the run-level values.
    pub hedges_g: Option<f64>,
    /// Welch's t test on the run-level values, which ignores the blocks.
    pub welch: Option<Welch>,
    /// Mann-Whitney's p value on the run-level values, which ignores the blocks.
    pub p_mann_whitney: Option<f64>,
    /// p value of the permutation test on the difference of means, which ignores the blocks.
    #[serde(default)]
    pub p_permutation: Option<f64>,
    /// p value of the sign-flip test on the log ratios of the blocks: that their mean is zero.
    #[serde(default)]
    pub p_sign_flip: Option<f64>,
    /// Hodges and Lehmann's shift from baseline to candidate, in the unit of the metric.
    #[serde(default)]
    pub shift: Option<f64>,
    /// Ratio of the arithmetic means with Fieller's interval, candidate over baseline.
    pub mean_ratio: Option<MeanRatio>,
}

impl Details {
    /// Of two cells whose paired comparison is known.
    pub(super) fn new(
        from: &CellSummary,
        to: &CellSummary,
        reference: MetricReference,
        paired: &PairedComparison,
        terms: &Terms,
    ) -> Option<Self> {
        let seed = key_seed(terms.seed, &format!("perm/{}/{reference}", to.id));
        let log_ratios = block_log_ratios(from, to, reference, terms);
        let flipped = sign_flip_test(&log_ratios, seed);
        let values = |cell: &CellSummary| -> Vec<f64> {
            cell.run_values(reference).into_iter().map(|(_, value)| value).collect()
        };
        let (from, to) = (values(from), values(to));
        let ranks = mann_whitney(&from, &to);
        let has_direction = reference.metric.direction != Direction::Neutral;
        has_direction.then(|| Details {
            paired: *paired,
            p_holm: None,
            q: None,
            p_tost: Equivalence::of_paired(paired).map(|test| test.p),
            signed_rank: signed_rank_test(&log_ratios, CONFIDENCE),
            cliffs_delta: cliffs_delta(&from, &to),
            superiority: ranks.as_ref().map(|test| test.u_candidate / (from.len() * to.len()) as f64),
            hedges_g: hedges_g(&from, &to).map(|effect| effect.g),
            welch: welch(&from, &to, CONFIDENCE),
            p_mann_whitney: ranks.map(|test| test.p),
            p_permutation: permutation_test(&from, &to, seed).map(|test| test.p),
            p_sign_flip: flipped.map(|test| test.p),
            shift: hodges_lehmann_shift(&from, &to),
            mean_ratio: mean_ratio(&from, &to, CONFIDENCE),
        })
    }
}
