//! What stands beside a verdict: tests, effect sizes, other ratios, usual rules (method 4.4 and 6.3 to 6.6).
//!
//! None of it decides anything.

use serde::Serialize;
use statistics::bootstrap::RunStatistic;
use statistics::{
    BootstrapEstimate, CliffsDelta, Equivalence, HedgesG, MannWhitney, MeanRatio, PairedT, Pairing, PermutationTest,
    SignedRankTest, UsualRules, Welch, cliffs_delta, hedges_g, hodges_lehmann_shift, key_seed, mann_whitney,
    mean_ratio, paired_t, permutation_test, sign_flip_test, signed_rank_test, usual_rules, welch,
};

use super::contrast::{Level, Sides, logarithms};
use super::judged::Judged;
use super::resample::{ratio_of_values, ratio_over_runs};
use super::{Series, Terms};

/// Permutation tests of more observations than this would take longer than anybody waits, and say what Welch's test says.
const MOST_PERMUTED: usize = 10_000;

/// Tests, which decide nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tests {
    /// Welch's t test of the means.
    pub welch: Option<Welch>,
    /// The same of the logarithms.
    pub welch_log: Option<Welch>,
    /// Mann and Whitney's test.
    pub mann_whitney: Option<MannWhitney>,
    /// Permutation test of the means; `None` with `--paired`, or with more than 10 000 observations.
    pub permutation: Option<PermutationTest>,
    /// Student's t test of the log ratios of pairs; `None` without `--paired`.
    pub paired_t: Option<PairedT>,
    /// Wilcoxon's test of the log ratios of pairs; `None` without `--paired`.
    pub signed_rank: Option<SignedRankTest>,
    /// Sign-flip test of the log ratios of pairs; `None` without `--paired`, or with more than 10 000 pairs.
    pub sign_flip: Option<PermutationTest>,
    /// Two one-sided tests of equivalence within the margin.
    pub equivalence: Option<Equivalence>,
}

/// Sizes of the difference; positive when the candidate's values are larger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EffectSizes {
    /// Cliff's delta and A12.
    pub cliffs_delta: Option<CliffsDelta>,
    /// Hedges' g and Cohen's d.
    pub hedges_g: Option<HedgesG>,
    /// Median of the differences of all pairs of one candidate and one baseline, in the unit of the values.
    pub hodges_lehmann_shift: Option<f64>,
}

/// Ratios candidate / baseline that the verdict does not rest on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratios {
    /// Of arithmetic means, with Fieller's interval.
    pub means: Option<MeanRatio>,
    /// Of means, by bootstrap.
    pub bootstrap_means: Option<BootstrapEstimate>,
    /// Of medians, by bootstrap; with runs of the means over runs of medians.
    pub bootstrap_medians: Option<BootstrapEstimate>,
    /// Of 99th percentiles, by bootstrap; `None` without runs.
    pub bootstrap_p99: Option<BootstrapEstimate>,
}

impl Tests {
    pub(super) fn of(sides: &Sides, log_ratios: Option<&[f64]>, judged: &Judged, terms: &Terms) -> Self {
        let (baseline, candidate) = (&sides.baseline, &sides.candidate);
        let logs = logarithms(baseline).zip(logarithms(candidate));
        let is_small = baseline.len() + candidate.len() <= MOST_PERMUTED;
        let seed = key_seed(terms.seed, "perm/stat");
        let few = log_ratios.filter(|pairs| pairs.len() <= MOST_PERMUTED);
        Tests {
            welch: welch(baseline, candidate, terms.confidence),
            welch_log: logs.and_then(|(baseline, candidate)| welch(&baseline, &candidate, terms.confidence)),
            mann_whitney: mann_whitney(baseline, candidate),
            permutation: (is_small && !terms.paired).then(|| permutation_test(baseline, candidate, seed)).flatten(),
            paired_t: log_ratios.and_then(|pairs| paired_t(pairs, terms.confidence)),
            signed_rank: log_ratios.and_then(|pairs| signed_rank_test(pairs, terms.confidence)),
            sign_flip: few.and_then(|pairs| sign_flip_test(pairs, seed)),
            equivalence: judged.equivalence(),
        }
    }
}

impl EffectSizes {
    pub(super) fn of(sides: &Sides) -> Self {
        EffectSizes {
            cliffs_delta: cliffs_delta(&sides.baseline, &sides.candidate),
            hedges_g: hedges_g(&sides.baseline, &sides.candidate),
            hodges_lehmann_shift: hodges_lehmann_shift(&sides.baseline, &sides.candidate),
        }
    }
}

impl Ratios {
    pub(super) fn of(sides: &Sides, baseline: &Series, candidate: &Series, terms: &Terms) -> Self {
        let means = mean_ratio(&sides.baseline, &sides.candidate, terms.confidence);
        let bootstrap = |statistic| match (baseline.runs(), candidate.runs(), terms.pairing()) {
            (Some(from), Some(to), pairing) => ratio_over_runs(&from, &to, statistic, pairing, terms),
            (_, _, Pairing::Unpaired) => ratio_of_values(&sides.baseline, &sides.candidate, statistic, terms),
            // A pair of values is a block of one value a side, of which all statistics are the same.
            (_, _, Pairing::Blocked) if statistic == RunStatistic::Mean => {
                ratio_over_runs(&single(&sides.baseline), &single(&sides.candidate), statistic, terms.pairing(), terms)
            }
            (_, _, Pairing::Blocked) => None,
        };
        Ratios {
            means,
            bootstrap_means: bootstrap(RunStatistic::Mean),
            bootstrap_medians: bootstrap(RunStatistic::Median),
            bootstrap_p99: Some(RunStatistic::Quantile(0.99))
                .filter(|_| sides.level == Level::Runs)
                .and_then(bootstrap),
        }
    }
}

/// Each value as a run of its own.
fn single(values: &[f64]) -> Vec<&[f64]> {
    values.chunks(1).collect()
}

/// What usual rules would report of the same numbers.
pub(super) fn usual(baseline: &Series, candidate: &Series, terms: &Terms) -> Option<UsualRules> {
    let seed = key_seed(terms.seed, "usual/stat");
    match (baseline.runs(), candidate.runs()) {
        (Some(from), Some(to)) => usual_rules(&from, &to, seed),
        _ => usual_rules(&single(baseline.values()), &single(candidate.values()), seed),
    }
}
