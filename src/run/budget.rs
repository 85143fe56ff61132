//! The time that a whole record may take: how many blocks fit, said before they are measured (`budget`).

use std::time::Duration;

use crate::record::BudgetUsed;
use crate::statistics::planning::minimum_detectable_effect;
use crate::vocabulary::quantity::Nanos;

/// Runs may take so much longer than the rehearsal foretells. Where blocks are measured one after the other the clock
/// decides before each of them; only runs that are all decided beforehand need the caution.
const CAUTION: f64 = 1.25;

/// The limit of a record, and what is known about its blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit: Duration,
    /// Runs of each cell that were asked for.
    wanted: u32,
    /// Standard deviation of a block's log ratio, where this machine is known.
    spread: Option<f64>,
}

impl Budget {
    /// A limit for `wanted` blocks.
    pub(crate) fn new(limit: Nanos, wanted: u32, spread: Option<f64>) -> Self {
        Budget { limit: limit.to_duration(), wanted, spread }
    }

    /// How many blocks fit after `spent`, if the rehearsal foretells `estimate` for all of them; at least one.
    /// `is_final` where nothing can be cut later.
    pub(crate) fn fit(&self, spent: Duration, estimate: Option<Duration>, is_final: bool) -> BudgetUsed {
        let left = self.limit.saturating_sub(spent).as_secs_f64();
        let caution = if is_final { CAUTION } else { 1.0 };
        let fits = estimate.map(|estimate| estimate.as_secs_f64() * caution / f64::from(self.wanted.max(1)));
        let fits = fits.filter(|block| *block > 0.0).map_or(self.wanted, |block| (left / block) as u32);
        self.used(fits.clamp(1, self.wanted.max(1)))
    }

    /// Whether another block fits after `spent`, if it takes as long as the `longest` so far; the first always does.
    pub(crate) fn has_room(&self, spent: Duration, longest: Option<Duration>) -> bool {
        longest.is_none_or(|longest| spent + longest <= self.limit)
    }

    /// The outcome for so many blocks.
    pub(crate) fn used(&self, runs: u32) -> BudgetUsed {
        let sees = self.spread.and_then(|spread| minimum_detectable_effect(spread, runs as usize));
        BudgetUsed { limit: Nanos::from_duration(self.limit), wanted: self.wanted, runs, sees }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_fits_is_asked_and_what_does_not_is_cut() {
        let budget = Budget::new(Nanos::from_secs(600), 10, Some(0.02));
        assert_eq!(budget.fit(MINUTE, Some(9 * MINUTE), false).runs, 10);
        // 9 minutes are left for blocks of 2 minutes.
        let cut = budget.fit(MINUTE, Some(20 * MINUTE), false);
        assert_eq!((cut.runs, cut.wanted), (4, 10));
        assert_eq!(budget.fit(MINUTE, Some(20 * MINUTE), true).runs, 3, "blocks of 2.5 minutes");
        assert!(cut.sees > budget.used(10).sees);
        assert_eq!(budget.fit(11 * MINUTE, Some(20 * MINUTE), false).runs, 1);
        assert_eq!(budget.fit(MINUTE, None, false).runs, 10);
    }

    #[test]
    fn a_block_starts_only_if_it_would_end_in_time() {
        let budget = Budget::new(Nanos::from_secs(600), 10, None);
        assert!(budget.has_room(11 * MINUTE, None));
        assert!(budget.has_room(8 * MINUTE, Some(2 * MINUTE)));
        assert!(!budget.has_room(9 * MINUTE, Some(2 * MINUTE)));
    }
}
