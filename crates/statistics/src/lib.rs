//! Numbers in, estimates out: plain functions over slices.
//!
//! Input: samples or run-level values as `f64`, and for anything random an explicit seed.
//! Output: small result structs that serialise, with the number of values and the interval of every estimate.
//! What is not known is `None`, never zero; a value that is not a number never panics.
//! Deliberately absent: input and output, clocks, threads, units and rounding for display.
//!
//! The definitions are those of docs/method; each module names its section, as in `method 4.3`.
//! Runs, not samples, are the independent unit: what speaks about a cell takes one value for each run.

pub mod autocorrelation;
pub mod binomial;
pub mod certain_domination;
pub mod change_points;
mod combinations;
pub mod course;
pub mod density;
mod dependence;
mod direction;
pub mod distribution;
pub mod duet;
mod e_divisive;
pub mod early_stopping;
mod fourier;
mod indicator;
pub mod interim;
pub mod interval;
pub mod largest_rate;
mod log_ratio;
mod mann_whitney;
mod mean_resampling;
mod mid_ranks;
mod minimum_effect;
pub mod moments;
pub mod multiplicity;
pub mod naive_comparisons;
pub mod omnibus;
pub mod outlier;
mod outlook;
pub mod paired;
pub mod paired_proportions;
pub mod paired_tests;
pub mod pareto;
pub mod pilot;
pub mod planning;
pub mod pooled_tail;
pub mod quantile;
pub mod queue;
pub mod random;
pub mod random_effects;
pub mod rank_correlation;
pub mod run_groups;
mod sample_summary;
mod satterthwaite;
mod session_spread;
pub mod shape;
pub mod steady;
pub mod stopping;
pub mod trimmed_mean;
pub mod unpaired;
pub mod upper;
#[cfg(test)]
mod vector_tests;
#[cfg(test)]
mod vectors;
pub mod verdict;
mod von_neumann;
pub mod warmup;
pub mod wilson;

pub use course::Course;
pub use dependence::Dependence;
pub use duet::paired_slice_ratio;
pub use interval::{Estimate, Interval, mean_interval};
pub use log_ratio::{Hint, LogRatio};
pub use moments::{mean, standard_deviation};
pub use naive_comparisons::{NaiveComparisons, naive_comparisons};
pub use paired::compare_paired;
pub use paired_tests::{PairedT, paired_t};
pub use quantile::{
    QuantileInterval, median, median_absolute_deviation, quantile_interval_sorted, quantile_is_supported,
    quantile_sorted,
};
pub use random::{Xoshiro256PlusPlus, counterbalanced_order, key_seed, stream_seed};
pub use run_groups::{RunGroups, run_groups};
pub use shape::Distribution;
pub use steady::{Drift, LateWarmup, drift, late_warmup};
pub use trimmed_mean::trimmed_mean;
pub use unpaired::SessionSpread;
pub use verdict::{Claim, Verdict};

#[cfg(test)]
mod tests {
    use super::autocorrelation::{mean_interval_ess, quantile_interval_ess};
    use super::change_points::{ChangePointRule, change_points};
    use super::density::density;
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
                quantile_interval_sorted(&ordered, probability, confidence);
                quantile_interval_ess(&values, probability, confidence);
                quantile_is_supported(fraction, probability);
            }
            moments::variance(&values);
            moments::bimodality_coefficient(&values);
            mean_interval(&values, confidence);
            mean_interval_ess(&values, fraction);
            density(&values, 64);
            density::modality(&values);
            outlier::first_sample_score(&values);
            Distribution::of(&values, 1);
            run_groups(&values);
            late_warmup(&values);
            drift(&values);
            compare_paired(&values, 0.02, interim::Analysis::single(confidence));
            compare_paired(&values, fraction, interim::Analysis::single(fraction));
            precision_reached(&values, Location::Median, fraction, confidence);
            trimmed_mean::trimmed_mean(&values, confidence);
            planning::detectable_effect(fraction, 12, 0.02, interim::Analysis::single(confidence));
            planning::runs_for_trimmed_mean(fraction, fraction, 0.02);
            let pilot = planning::PairedPilot { winsorised_deviation: fraction, blocks: 12, margin: 0.02 };
            planning::blocks_for_effect(pilot, 0.05, |_| interim::Analysis::single(confidence));
            change_points(&values, ChangePointRule { p_value: fraction, magnitude: fraction });
            e_divisive::best_split(&values, 3);
            frontier(&[&values.iter().copied().map(Some).collect::<Vec<_>>()], &[Objective::Min; 3]);
        }

        #[test]
        fn no_comparison_panics(values in prop::collection::vec(any::<f64>(), 0..120), fraction: f64, confidence in 0.5_f64..1.0) {
            let (first, second) = values.split_at(values.len() / 2);
            mann_whitney::mann_whitney(first, second);
            welch_anova(&[first, second, &values]);
            compare_unpaired(first, second, 0.02, confidence, SessionSpread::NONE, true);
            let magnitudes: Vec<f64> = values.iter().map(|value| value.abs()).collect();
            let (first, second) = magnitudes.split_at(magnitudes.len() / 2);
            compare_unpaired(first, second, 0.02, confidence, SessionSpread::assumed(fraction.abs()), true);
            paired_t(&values, confidence);
            naive_comparisons(&[first, second], &[second], 1);
        }
    }
}
