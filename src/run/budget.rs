//! The time that a whole record may take: how many blocks fit, said before they are measured (DESIGN 5, `budget`).

use std::time::Duration;

use crate::quantity::Nanos;
use crate::stats::planning::minimum_detectable_effect;
use crate::store::BudgetUsed;

/// The rehearsal is shorter than a run, and noise that it did not see makes runs longer than it foretells.
const CAUTION: f64 = 1.25;

/// The limit of a record, and what is known about its blocks.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    limit: Duration,
    /// Runs of each cell that were asked for.
    wanted: u32,
    /// Standard deviation of a block's log ratio, where this machine is known.
    spread: Option<f64>,
}

impl Budget {
    /// A limit for `wanted` blocks.
    pub fn new(limit: Nanos, wanted: u32, spread: Option<f64>) -> Self {
        Budget { limit: limit.to_duration(), wanted, spread }
    }

    /// How many blocks fit after `spent`, if the rehearsal foretells `estimate` for all of them; at least one.
    pub fn fit(&self, spent: Duration, estimate: Option<Duration>) -> BudgetUsed {
        let left = self.limit.saturating_sub(spent).as_secs_f64();
        let fits = estimate.map(|estimate| estimate.as_secs_f64() * CAUTION / f64::from(self.wanted.max(1)));
        let fits = fits.filter(|block| *block > 0.0).map_or(self.wanted, |block| (left / block) as u32);
        self.used(fits.clamp(1, self.wanted.max(1)))
    }

    /// Whether another block fits after `spent`, of which `blocks` blocks took `measuring`; the first always does.
    pub fn has_room(&self, spent: Duration, measuring: Duration, blocks: u32) -> bool {
        blocks == 0 || spent + measuring / blocks <= self.limit
    }

    /// The outcome for so many blocks.
    pub fn used(&self, runs: u32) -> BudgetUsed {
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
        assert_eq!(budget.fit(MINUTE, Some(5 * MINUTE)).runs, 10);
        // 9 minutes are left for blocks of 1.25 * 2 minutes.
        let cut = budget.fit(MINUTE, Some(20 * MINUTE));
        assert_eq!((cut.runs, cut.wanted), (3, 10));
        assert!(cut.sees > budget.used(10).sees);
        assert_eq!(budget.fit(11 * MINUTE, Some(20 * MINUTE)).runs, 1);
        assert_eq!(budget.fit(MINUTE, None).runs, 10);
    }

    #[test]
    fn a_block_starts_only_if_it_would_end_in_time() {
        let budget = Budget::new(Nanos::from_secs(600), 10, None);
        assert!(budget.has_room(9 * MINUTE, Duration::ZERO, 0));
        assert!(budget.has_room(8 * MINUTE, 8 * MINUTE, 4));
        assert!(!budget.has_room(9 * MINUTE, 8 * MINUTE, 4));
    }
}
