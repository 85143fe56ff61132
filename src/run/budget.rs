//! The time that a whole record may take: how many blocks fit, said before they are measured (`budget`).

use std::time::Duration;

use base::metric::MetricReference;
use base::quantity::Nanos;
use judge::compare::ComparisonRules;
use record::{BudgetUsed, Manifest};
use statistics::interim::InterimAnalyses;
use statistics::planning::{MINIMUM_RUNS, detectable_effect};

/// Runs may take so much longer than the rehearsal foretells. Where blocks are measured one after the other the clock
/// decides before each of them; only runs that are all decided beforehand need the caution.
const CAUTION: f64 = 1.25;

/// The limit of a record, and what is known about its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: Duration,
    /// Runs of each cell that were asked for, at most.
    wanted: u32,
    /// How many cells there is room for, unless that is all.
    cells: Option<u32>,
    /// How large a difference blocks find, where this machine is known.
    finds: Option<Finds>,
}

/// By what a detectable effect is foretold.
#[derive(Clone, Copy, Debug)]
struct Finds {
    block_deviation: f64,
    margin: f64,
    analyses: InterimAnalyses,
}

impl Budget {
    /// A limit for `wanted` blocks of a record, on a machine where a block adds this deviation to the error of a log ratio.
    pub(crate) fn new(limit: Nanos, wanted: u32, manifest: &Manifest, spread: Option<f64>) -> Self {
        let terms = ComparisonRules::of(manifest);
        let finds = |block_deviation| Finds {
            block_deviation,
            margin: terms.margin_of(MetricReference::LATENCY),
            analyses: terms.analyses,
        };
        Budget { limit: limit.to_duration(), wanted, cells: None, finds: spread.map(finds) }
    }

    /// The same for so many cells.
    pub(crate) fn of_cells(self, cells: Option<u32>) -> Self {
        Budget { cells, ..self }
    }

    /// How many of the first cells get the runs that a verdict needs after `spent`, if a run of each takes so long; two at least, since
    /// one is compared with nothing. `None` where there is room for all.
    pub(crate) fn cells_with_room(&self, runs: &[Duration], spent: Duration) -> Option<usize> {
        let left = self.limit.saturating_sub(spent).div_f64(CAUTION * MINIMUM_RUNS as f64);
        let mut sum = Duration::ZERO;
        let fits = |run: &&Duration| {
            sum = sum.saturating_add(**run);
            sum <= left
        };
        let fitting = runs.iter().take_while(fits).count().max(2);
        (fitting < runs.len()).then_some(fitting)
    }

    /// How many of `asked` blocks fit after `spent`, if the rehearsal foretells `estimate` for all of them; at least one.
    /// `is_final` where nothing can be cut later.
    pub(crate) fn fit(&self, asked: u32, spent: Duration, estimate: Option<Duration>, is_final: bool) -> u32 {
        let caution = if is_final { CAUTION } else { 1.0 };
        let block = estimate.map(|estimate| estimate.mul_f64(caution / f64::from(asked.max(1))));
        self.room(asked, spent, block).max(1)
    }

    /// How many blocks of this length fit after `spent`, at most `asked`; all of them where the length is unknown.
    pub(crate) fn room(&self, asked: u32, spent: Duration, block: Option<Duration>) -> u32 {
        let block = block.map_or(0.0, |block| block.as_secs_f64());
        let left = self.limit.saturating_sub(spent).as_secs_f64();
        if block > 0.0 { asked.min((left / block) as u32) } else { asked }
    }

    /// The outcome for so many blocks.
    pub(crate) fn used(&self, runs: u32) -> BudgetUsed {
        let blocks = runs as usize;
        let finds = |Finds { block_deviation, margin, analyses }| {
            detectable_effect(block_deviation, blocks, margin, analyses.analysis_of(blocks))
        };
        let limit = Nanos::from_duration(self.limit);
        let (wanted, cells) = (self.wanted, self.cells);
        BudgetUsed { limit, wanted, runs, cells, detectable_effect: self.finds.and_then(finds) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn budget(finds: Option<Finds>) -> Budget {
        Budget { limit: 10 * MINUTE, wanted: 10, cells: None, finds }
    }

    #[test]
    fn what_fits_is_asked_and_what_does_not_is_cut() {
        let finds = Finds { block_deviation: 0.02, margin: 0.02, analyses: InterimAnalyses::new(12, 12) };
        let budget = budget(Some(finds));
        assert_eq!(budget.fit(10, MINUTE, Some(9 * MINUTE), false), 10);
        // 9 minutes are left for blocks of 2 minutes.
        assert_eq!(budget.fit(10, MINUTE, Some(20 * MINUTE), false), 4);
        assert_eq!(budget.fit(10, MINUTE, Some(20 * MINUTE), true), 3, "blocks of 2.5 minutes");
        assert!(budget.used(5).detectable_effect > budget.used(10).detectable_effect);
        assert_eq!(budget.fit(10, 11 * MINUTE, Some(20 * MINUTE), false), 1);
        assert_eq!(budget.fit(10, MINUTE, None, false), 10);
    }

    #[test]
    fn cells_without_room_for_a_verdict_are_left_out_from_the_last() {
        let budget = budget(None);
        let cells = |run_s: u64, cells: usize, spent: u32| {
            budget.cells_with_room(&vec![Duration::from_secs(run_s); cells], spent * MINUTE)
        };
        // Ten minutes are 96 seconds for each of five blocks, with a quarter more for what takes longer than foretold.
        assert_eq!((cells(12, 8, 0), cells(12, 9, 0), cells(20, 8, 0)), (None, Some(8), Some(4)));
        assert_eq!((cells(12, 8, 5), cells(600, 8, 0), cells(600, 1, 0)), (Some(4), Some(2), None));
        assert_eq!(budget.of_cells(Some(4)).used(5).cells, Some(4));
    }

    #[test]
    fn a_block_starts_only_if_it_would_end_in_time() {
        let budget = budget(None);
        let room =
            |spent: u32, block: Option<u32>| budget.room(3, spent * MINUTE, block.map(|minutes| minutes * MINUTE));
        assert_eq!((room(11, None), room(8, Some(2)), room(9, Some(2)), room(1, Some(2))), (3, 1, 0, 3));
    }
}
