//! Bootstrap intervals, drawn by all processors; what comes out does not depend on their number.

use std::ops::Range;

use rayon::prelude::*;

use statistics::bootstrap::{
    BootstrapEstimate, CellBootstrap, Pairing, REPRESENTATIVES, RESAMPLES, RatioBootstrap, RunStatistic,
};
use statistics::{ValueBootstrap, key_seed};

use super::Terms;

/// More values than these in one resample would take longer than anybody waits.
const MOST_DRAWS: usize = 200_000;

/// Whether runs are few and short enough to be drawn again.
fn is_affordable(runs: &[&[f64]]) -> bool {
    runs.iter().map(|run| run.len().min(REPRESENTATIVES)).sum::<usize>() <= MOST_DRAWS
}

/// The mean over runs of a statistic. `None` below five runs, and where it would take too long.
pub(super) fn over_runs(runs: &[&[f64]], statistic: RunStatistic, terms: &Terms) -> Option<BootstrapEstimate> {
    if !is_affordable(runs) {
        return None;
    }
    let bootstrap = CellBootstrap::new(runs, statistic, key_seed(terms.seed, &stream_text(statistic)))?;
    bootstrap.summarise(&in_parallel(|numbers| bootstrap.resamples(numbers)), terms.confidence)
}

/// The ratio candidate / baseline of the means over runs of a statistic, as [`over_runs`].
pub(super) fn ratio_over_runs(
    baseline: &[&[f64]],
    candidate: &[&[f64]],
    statistic: RunStatistic,
    pairing: Pairing,
    terms: &Terms,
) -> Option<BootstrapEstimate> {
    if !is_affordable(baseline) || !is_affordable(candidate) {
        return None;
    }
    let seed = key_seed(terms.seed, &format!("{}/ratio", stream_text(statistic)));
    let bootstrap = RatioBootstrap::new(baseline, candidate, statistic, pairing, seed)?;
    bootstrap.summarise(&in_parallel(|numbers| bootstrap.resamples(numbers)), terms.confidence)
}

/// The ratio candidate / baseline of a statistic of independent values. `None` below five values on a side.
pub(super) fn ratio_of_values(
    baseline: &[f64],
    candidate: &[f64],
    statistic: RunStatistic,
    terms: &Terms,
) -> Option<BootstrapEstimate> {
    let seed = key_seed(terms.seed, &format!("{}/ratio", stream_text(statistic)));
    ValueBootstrap::new(baseline, candidate, statistic, seed)?.estimate(RESAMPLES, terms.confidence)
}

/// The text that tells the random numbers of one statistic from those of others (method 4.5).
fn stream_text(statistic: RunStatistic) -> String {
    match statistic {
        RunStatistic::Mean => "bootstrap/stat/mean".to_owned(),
        RunStatistic::Median => "bootstrap/stat/median".to_owned(),
        RunStatistic::Quantile(probability) => format!("bootstrap/stat/p{probability}"),
    }
}

/// All resamples in their order.
fn in_parallel(draw: impl Fn(Range<u64>) -> Vec<f64> + Send + Sync) -> Vec<f64> {
    const PART: u64 = 100;
    let parts: Vec<u64> = (0..RESAMPLES).step_by(PART as usize).collect();
    parts.par_iter().flat_map_iter(|first| draw(*first..RESAMPLES.min(first + PART))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let numbers = in_parallel(|numbers| numbers.map(|number| number as f64).collect());
        assert!(numbers.into_iter().eq((0..RESAMPLES).map(|number| number as f64)));
    }
}
