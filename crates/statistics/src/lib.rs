//! Numbers in, estimates out: plain functions over slices.
//!
//! Input: samples or run-level values as `f64`, and for anything random an explicit seed.
//! Output: small result structs that serialise, with the number of values and the interval beside every estimate.
//! What is not known is `None`, never zero; a value that is not a number never panics.
//! Deliberately absent: input and output, clocks, threads, units and rounding for display.
//!
//! The definitions are those of docs/method; each module names its section, as in `method 4.3`.
//! Runs, not samples, are the independent unit: what speaks about a cell takes one value for each run.

pub mod autocorrelation;
pub mod batch_means;
pub mod binomial;
pub mod bootstrap;
pub mod certain_domination;
pub mod change_points;
mod combinations;
pub mod course;
pub mod density;
mod dependence;
pub mod distribution;
pub mod duet;
pub mod effect_size;
pub(crate) mod energy_split;
pub mod equivalence;
pub mod fieller;
mod fourier;
mod indicator;
pub mod interval;
pub mod lag_correlation;
pub mod looks;
pub mod mann_whitney;
mod mean_resampling;
mod mid_ranks;
pub mod middle_half;
pub(crate) mod minimum_effect;
pub mod moments;
pub mod multiplicity;
pub mod omnibus;
pub mod outlier;
mod outlook;
pub mod paired;
pub mod paired_proportions;
pub mod paired_tests;
pub mod pareto;
pub mod permutation;
pub mod pilot;
pub mod planning;
pub mod pooled_tail;
pub mod quantile;
pub mod random;
mod resampling;
pub mod run_groups;
pub mod runs;
mod satterthwaite;
pub(crate) mod session_spread;
pub mod shape;
pub(crate) mod signed_rank;
pub mod steady;
pub mod stopping;
pub mod unpaired;
mod unpaired_hint;
pub mod upper;
pub mod usual_rules;
pub(crate) mod value_bootstrap;
#[cfg(test)]
mod vector_tests;
#[cfg(test)]
mod vectors;
pub mod verdict;
mod von_neumann;
pub mod warmup;
pub mod welch;
pub mod wilson;

pub use bootstrap::{BootstrapEstimate, Pairing};
pub use course::Course;
pub use density::{Modality, Mode, modality};
pub use dependence::Dependence;
pub use duet::paired_slice_ratio;
pub use effect_size::{CliffsDelta, HedgesG, Magnitude, cliffs_delta, hedges_g, hodges_lehmann_shift};
pub use equivalence::Equivalence;
pub use fieller::{MeanRatio, RatioBounds, mean_ratio};
pub use interval::Estimate;
pub use interval::{Interval, mean_interval};
pub use lag_correlation::lag_correlation;
pub use mann_whitney::{MannWhitney, NullDistribution, mann_whitney};
pub use middle_half::middle_half;
pub use moments::mean;
pub use moments::{coefficient_of_variation, standard_deviation, variance};
pub use outlier::{TukeyClasses, tukey_classes};
pub use paired::compare_paired;
pub use paired::{Hint, PairedComparison};
pub use paired_tests::{PairedT, SignedRankTest, paired_t, signed_rank_test};
pub use permutation::{PermutationTest, permutation_test, sign_flip_test};
pub use quantile::median;
pub use quantile::{
    QuantileInterval, median_absolute_deviation, quantile_interval_sorted, quantile_is_supported, quantile_sorted,
};
pub use random::key_seed;
pub use random::{Xoshiro256PlusPlus, counterbalanced_order, stream_seed};
pub use run_groups::{RunGroups, run_groups};
pub use runs::TwoLevel;
pub use runs::two_level;
pub use shape::Distribution;
pub use steady::{Drift, LateWarmup, drift, late_warmup};
pub use unpaired::{SessionSpread, UnpairedComparison, UnpairedHint};
pub use usual_rules::{UsualRules, usual_rules};
pub use value_bootstrap::ValueBootstrap;
pub use verdict::Claim;
pub use verdict::Verdict;
pub use welch::{Welch, welch};

#[cfg(test)]
mod tests {
    use super::autocorrelation::{mean_interval_ess, quantile_interval_ess};
    use super::bootstrap::{CellBootstrap, RatioBootstrap, RunStatistic};
    use super::change_points::{ChangePointRule, change_points};
    use super::density::density;
    use super::equivalence::{tost_paired, tost_unpaired};
    use super::moments::geometric_mean;
    use super::multiplicity::holm;
    use super::omnibus::welch_anova;
    use super::pareto::{Objective, frontier};
    use super::stopping::{Location, precision_reached};
    use super::unpaired::compare_unpaired;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever the numbers: infinite, subnormal, not a number.
        #[test]
        fn nothing_panics(values in prop::collection::vec(any::<f64>(), 0..120), fraction: f64, confidence in 0.5_f64..1.0) {
            let ordered = quantile::sorted(&values);
            for probability in [fraction, 0.0, 0.5, 0.99, 1.0] {
                quantile_sorted(&ordered, probability);
                quantile::nearest_rank_sorted(&ordered, probability);
                quantile::loadgen_sorted(&ordered, probability);
                quantile_interval_sorted(&ordered, probability, confidence);
                quantile::quantile_upper_bound_sorted(&ordered, probability, confidence);
                quantile_interval_ess(&values, probability, confidence);
                quantile_is_supported(fraction, probability);
            }
            variance(&values);
            moments::bimodality_coefficient(&values);
            geometric_mean(&values);
            mean_interval(&values, confidence);
            mean_interval_ess(&values, fraction);
            density(&values, 64);
            modality(&values);
            tukey_classes(&values);
            outlier::first_sample_score(&values);
            Distribution::of(&values, 1);
            run_groups(&values);
            late_warmup(&values);
            drift(&values);
            compare_paired(&values, 0.02, confidence);
            compare_paired(&values, fraction, fraction);
            precision_reached(&values, Location::Median, fraction, confidence);
            two_level(&[&values, &values], confidence);
            signed_rank::hodges_lehmann(&values);
            middle_half::middle_half(&values, confidence);
            planning::detectable_effect(fraction, 12, 0.02, confidence);
            planning::runs_for_middle_half(fraction, fraction, 0.02);
            let pilot = planning::PairedPilot { winsorised_deviation: fraction, blocks: 12, margin: 0.02 };
            planning::blocks_for_effect(pilot, 0.05, |_| confidence);
            for statistic in [RunStatistic::Mean, RunStatistic::Quantile(fraction)] {
                let runs = [&values[..]; 5];
                CellBootstrap::new(&runs, statistic, 1).and_then(|bootstrap| bootstrap.estimate(5, confidence));
                RatioBootstrap::new(&runs, &runs, statistic, Pairing::Blocked, 1).and_then(|bootstrap| bootstrap.estimate(5, confidence));
            }
            change_points(&values, ChangePointRule { p_value: fraction, magnitude: fraction });
            energy_split::best_split(&values, 3);
            frontier(&[&values.iter().copied().map(Some).collect::<Vec<_>>()], &[Objective::Min; 3]);
            lag_correlation(&values, 1);
        }

        #[test]
        fn no_comparison_panics(values in prop::collection::vec(any::<f64>(), 0..120), fraction: f64, confidence in 0.5_f64..1.0) {
            let (first, second) = values.split_at(values.len() / 2);
            welch(first, second, confidence);
            mann_whitney(first, second);
            permutation_test(&first[..first.len().min(6)], &second[..second.len().min(6)], 1);
            permutation::permutation_test_random(first, second, 1, 20);
            sign_flip_test(&values[..values.len().min(8)], 1);
            mean_ratio(first, second, confidence);
            cliffs_delta(first, second);
            hodges_lehmann_shift(first, second);
            hedges_g(first, second);
            welch_anova(&[first, second, &values]);
            holm(&values);
            compare_unpaired(first, second, 0.02, confidence, SessionSpread::NONE);
            let magnitudes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
            let (first, second) = magnitudes.split_at(magnitudes.len() / 2);
            compare_unpaired(first, second, 0.02, confidence, SessionSpread::assumed(fraction.abs()));
            tost_unpaired(first, second, fraction, SessionSpread::assumed(confidence));
            tost_paired(&values, fraction);
            paired_t(&values, confidence);
            signed_rank_test(&values, confidence);
            usual_rules(&[first, second], &[second], 1);
        }
    }
}
