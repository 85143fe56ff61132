//! How the tails of two cells compare: the ratio of their mean percentiles with a bootstrap interval (method 6.4).
//!
//! A percentile of one run is itself uncertain, more so than a median; a t interval over runs does not know that apart
//! from what it sees between runs. Here runs and their samples are drawn again (method 4.4), block by block.
//! Input: plan and samples, with what is known of each cell. Output: one ratio a comparison and percentile that both
//! cells support. Deliberately absent: verdicts, which come from the runs' percentiles in their common blocks.

use statistics::bootstrap::{Pairing, RESAMPLES, RatioBootstrap};
use statistics::interval::Interval;
use statistics::key_seed;

use super::{CONFIDENCE, CellSummary, in_parallel};
use crate::plan::Plan;
use crate::record::{Arm, Outcome, StoredRun};
use crate::vocabulary::metric::MetricReference;

/// More comparisons than these would make a report wait for something that few people read.
pub(crate) const MOST_COMPARISONS: usize = 64;

/// The tail of one cell over that of its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct TailRatio {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the baseline cell.
    pub baseline: usize,
    /// `latency.p95`, `latency.p99`.
    pub metric: MetricReference,
    /// Mean over runs of the cell's percentile over that of the baseline's, in common blocks.
    pub ratio: f64,
    /// Its expanded percentile interval.
    pub interval: Interval,
}

/// One ratio for each comparison and percentile that both cells support; nothing where there are too many comparisons,
/// in a calibration, which judges each of its rounds, and below five common blocks.
pub(super) fn tail_ratios<'a>(
    threads: usize,
    plan: &Plan,
    cells: &[CellSummary],
    runs_of: impl Fn(usize) -> &'a [&'a StoredRun] + Sync,
) -> Vec<TailRatio> {
    let pairs: Vec<(usize, usize)> = plan.pairs().collect();
    if pairs.len() > MOST_COMPARISONS || plan.rounds > 1 {
        return Vec::new();
    }
    let ratios = in_parallel(threads, &pairs, |(baseline, cell)| {
        let pair = Pair { plan, cell: *cell, baseline: *baseline };
        let is_comparable = !cells[*cell].has_another_batch(&cells[*baseline]);
        let supported = |metric: &&MetricReference| {
            is_comparable && [*cell, *baseline].iter().all(|index| cells[*index].supports(**metric))
        };
        let wanted: Vec<MetricReference> = MetricReference::TAILS.iter().filter(supported).copied().collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let (from, to) = common_blocks(runs_of(*baseline), runs_of(*cell));
        wanted.into_iter().filter_map(|metric| pair.ratio(&from, &to, metric)).collect()
    });
    ratios.into_iter().flatten().collect()
}

/// The samples of the blocks that both cells completed, in the same order.
fn common_blocks(baseline: &[&StoredRun], cell: &[&StoredRun]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let is_counted = |run: &&&StoredRun| run.arm == Arm::Main && run.outcome == Outcome::Completed;
    let pair = |run: &&StoredRun| {
        let other = baseline.iter().filter(is_counted).find(|other| other.block == run.block)?;
        Some((other.durations().collect(), run.durations().collect()))
    };
    cell.iter().filter(is_counted).filter_map(pair).unzip()
}

struct Pair<'a> {
    plan: &'a Plan,
    cell: usize,
    baseline: usize,
}

impl Pair<'_> {
    fn ratio(&self, from: &[Vec<f64>], to: &[Vec<f64>], metric: MetricReference) -> Option<TailRatio> {
        let id = self.plan.cells[self.cell].id;
        let seed = key_seed(self.plan.seed, &format!("bootstrap/{id}/{metric}"));
        let probability = metric.statistic.probability()?;
        let bootstrap = RatioBootstrap::of_quantile(from, to, probability, Pairing::Blocked, seed)?;
        let estimate = bootstrap.estimate(RESAMPLES, CONFIDENCE)?;
        let (cell, baseline) = (self.cell, self.baseline);
        Some(TailRatio { cell, baseline, metric, ratio: estimate.value, interval: estimate.interval })
    }
}
