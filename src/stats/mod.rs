//! Numbers in, estimates out: plain functions over slices.
//!
//! Input: samples or run-level values as `f64`, and for anything random an explicit seed.
//! Output: small result structs that serialise, with the number of values and the interval beside every estimate.
//! What is not known is `None`, never zero; a value that is not a number never panics.
//! Deliberately absent: input and output, clocks, threads, units and rounding for display.
//!
//! The definitions are those of MEASUREMENT.md; each function names its section.
//! Runs, not samples, are the independent unit: what speaks about a cell takes one value for each run.

pub mod arrivals;
pub mod autocorrelation;
pub mod batch_means;
pub mod binomial;
pub mod bootstrap;
pub mod certain_domination;
pub mod change_points;
pub mod clock_share;
mod combinations;
pub mod density;
pub mod distribution;
pub mod early_stopping;
pub mod effect_size;
pub mod energy_split;
pub mod equivalence;
pub mod fieller;
mod fourier;
pub mod frontier_membership;
mod indicator;
pub mod interval;
pub mod lag_correlation;
pub mod load;
pub mod mann_whitney;
mod mean_resampling;
pub mod minimum_effect;
pub mod moments;
pub mod multiplicity;
pub mod omnibus;
pub mod outlier;
pub mod paired;
pub mod pareto;
pub mod permutation;
pub mod planning;
pub mod quantile;
pub mod random;
pub mod rank_omnibus;
mod resampling;
pub mod robust_score;
pub mod runs;
mod satterthwaite;
pub mod session_spread;
pub mod signed_rank;
pub mod steady;
pub mod stopping;
pub mod throughput;
pub mod unpaired;
pub mod unpaired_hint;
pub mod usual_rules;
#[cfg(test)]
mod vector_tests;
#[cfg(test)]
mod vectors;
pub mod verdict;
pub mod warmup;
pub mod welch;

pub use autocorrelation::{autocorrelation_time, effective_sample_size, mean_interval_ess, quantile_interval_ess};
pub use bootstrap::{BootstrapEstimate, CellBootstrap, Pairing, RatioBootstrap, RunStatistic};
pub use certain_domination::{ParetoClass, classify};
pub use change_points::{ChangePoint, ChangePointRule, StableSegment, change_points, stable_segment};
pub use density::{Modality, Mode, density, modality};
pub use frontier_membership::{Membership, frontier_membership};
pub use interval::{Estimate, Interval, mean_interval};
pub use lag_correlation::lag_correlation;
pub use load::{LittlesLaw, LoadPoint, littles_law};
pub use minimum_effect::MinimumEffect;
pub use moments::{coefficient_of_variation, geometric_mean, harmonic_mean, mean, standard_deviation, sum, variance};
pub use outlier::{TukeyClasses, tukey_classes};
pub use paired::{Estimator, Hint, PairedComparison, compare_paired};
pub use pareto::{Frontier, Objective, frontier};
pub use planning::{minimum_detectable_effect, optimal_samples, runs_for_precision};
pub use quantile::{
    QuantileInterval, median, median_absolute_deviation, quantile_interval_sorted, quantile_is_supported,
    quantile_sorted,
};
pub use random::{Xoshiro256PlusPlus, counterbalanced_order, key_seed, stream_seed};
pub use runs::{TwoLevel, two_level};
pub use steady::{Drift, LateWarmup, drift, late_warmup};
pub use stopping::{Location, PrecisionCheck, next_check, precision_reached};
pub use throughput::{Throughput, throughput};
pub use verdict::Verdict;
pub use warmup::{AdaptiveWarmup, WarmupEvaluation, WarmupRule, WarmupStatus};

#[cfg(test)]
mod tests {
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
            late_warmup(&values);
            drift(&values);
            compare_paired(&values, 0.02, confidence);
            compare_paired(&values, fraction, fraction);
            precision_reached(&values, Location::Median, fraction, confidence);
            two_level(&[&values, &values], confidence);
            signed_rank::hodges_lehmann(&values);
            minimum_effect::minimum_effect_signed_rank(&values, fraction);
            planning::blocks_for_effect(fraction, 0.02);
            for statistic in [RunStatistic::Mean, RunStatistic::Quantile(fraction)] {
                let runs = [&values[..]; 5];
                CellBootstrap::new(&runs, statistic, 1).and_then(|bootstrap| bootstrap.estimate(5, confidence));
                RatioBootstrap::new(&runs, &runs, statistic, Pairing::Blocked, 1).and_then(|bootstrap| bootstrap.estimate(5, confidence));
            }
            change_points(&values, ChangePointRule { p_value: fraction, magnitude: fraction });
            energy_split::best_split(&values, 3);
            early_stopping::estimate_percentile(&values, fraction, confidence);
            early_stopping::check_bound(&values, fraction, 0.99, confidence);
            arrivals::poisson_arrivals_ns(fraction, 1).map(|arrivals| arrivals.take(3).count());
            frontier(&[&values.iter().copied().map(Some).collect::<Vec<_>>()], &[Objective::Min; 3]);
            certain_domination::exact_verdict(fraction, confidence, Objective::Max, fraction);
            littles_law(LoadPoint { concurrency: 1, throughput_per_s: fraction, mean_latency_s: fraction });
            clock_share::iterations_for_share(fraction, confidence, fraction);
            lag_correlation(&values, 1);
            robust_score::robust_scores(&values);
        }
    }
}
