//! Which batch is tried next, and which is best (method 7.4).
//!
//! Input: what was tried. Output: the next batch, or why there is none. Nothing is run here.

use record::{SearchEnd, Tried};
use worker::backend::FailureKind;

/// The bounds of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ladder {
    /// Nothing larger is tried.
    pub(super) to: u64,
    /// An inference that takes longer leaves a run no time for its samples, in seconds.
    pub(super) slowest_s: f64,
}

impl Ladder {
    /// The next batch: twice the largest that fits, and once memory ran out the middle between what fits and what does
    /// not.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn next(&self, tried: &[Tried]) -> Result<u64, SearchEnd> {
        let is_other = |tried: &Tried| tried.failure.as_ref().is_some_and(|it| it.kind != FailureKind::OutOfMemory);
        if tried.iter().any(is_other) {
            return Err(SearchEnd::Failed);
        }
        let fits = tried.iter().filter(|tried| tried.failure.is_none()).max_by_key(|tried| tried.batch);
        let ran_out = tried.iter().filter(|tried| tried.failure.is_some()).map(|tried| tried.batch).min();
        match (fits, ran_out) {
            (None, None) => Ok(1),
            (fits, Some(ran_out)) => {
                let fits = fits.map_or(0, |fits| fits.batch);
                let middle = fits + ran_out.saturating_sub(fits) / 2;
                if middle > fits { Ok(middle) } else { Err(SearchEnd::OutOfMemory) }
            }
            (Some(fits), None) if fits.batch >= self.to => Err(SearchEnd::Limit),
            (Some(fits), None) => {
                let next = fits.batch.saturating_mul(2).min(self.to);
                let expected_s = fits.items_per_s.map_or(0.0, |rate| next as f64 / rate);
                if expected_s > self.slowest_s { Err(SearchEnd::Slow) } else { Ok(next) }
            }
        }
    }
}

/// The smallest batch whose throughput is within the margin of the best; 1 where none completed, so that its cell says
/// what is wrong.
pub(super) fn best(tried: &[Tried], margin: f64) -> u64 {
    let rates = || tried.iter().filter_map(|tried| Some((tried.batch, tried.items_per_s?)));
    let most = rates().map(|(_, rate)| rate).fold(0.0, f64::max);
    rates().filter(|(_, rate)| *rate >= most * (1.0 - margin)).map(|(batch, _)| batch).min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use worker::backend::Failure;

    /// Climbs where so many items fit and an inference takes `fixed + item * batch` seconds.
    fn climb(ladder: Ladder, fits: u64, fixed: f64, item: f64) -> (Vec<Tried>, SearchEnd) {
        let mut tried = Vec::new();
        loop {
            let batch = match ladder.next(&tried) {
                Ok(batch) => batch,
                Err(end) => return (tried, end),
            };
            let failure = (batch > fits).then(|| Failure::new(FailureKind::OutOfMemory, "no room"));
            let rate = batch as f64 / (fixed + item * batch as f64);
            tried.push(Tried { batch, items_per_s: failure.is_none().then_some(rate), failure });
        }
    }

    fn batches(tried: &[Tried]) -> Vec<u64> {
        tried.iter().map(|tried| tried.batch).collect()
    }

    const FREE: Ladder = Ladder { to: 4096, slowest_s: 1e9 };

    #[test]
    fn doubles_until_memory_runs_out_and_then_halves_the_rest() {
        let (tried, end) = climb(FREE, 48, 1.0, 0.01);
        assert_eq!(batches(&tried), [1, 2, 4, 8, 16, 32, 64, 48, 56, 52, 50, 49]);
        assert_eq!(end, SearchEnd::OutOfMemory);
    }

    #[test]
    fn ends_at_the_limit_and_where_runs_get_too_long() {
        let (tried, end) = climb(Ladder { to: 20, ..FREE }, 1000, 1.0, 0.01);
        assert_eq!((batches(&tried), end), (vec![1, 2, 4, 8, 16, 20], SearchEnd::Limit));
        let (tried, end) = climb(Ladder { slowest_s: 0.5, ..FREE }, 1000, 0.0, 0.1);
        assert_eq!((batches(&tried), end), (vec![1, 2, 4], SearchEnd::Slow));
    }

    #[test]
    fn a_failure_of_another_kind_is_no_bound() {
        let failed = |kind| vec![Tried { batch: 1, items_per_s: None, failure: Some(Failure::new(kind, "x")) }];
        assert_eq!(FREE.next(&failed(FailureKind::Operator)), Err(SearchEnd::Failed));
        assert_eq!(FREE.next(&failed(FailureKind::OutOfMemory)), Err(SearchEnd::OutOfMemory));
        assert_eq!(best(&failed(FailureKind::OutOfMemory), 0.02), 1);
    }

    #[test]
    fn the_best_is_the_smallest_within_the_margin() {
        // 1 / (0.001 + 0.01 / b): from b = 512 on within 2 % of what 4096 does.
        let (tried, _) = climb(FREE, u64::MAX, 0.01, 0.001);
        assert_eq!(best(&tried, 0.02), 512);
        assert_eq!(best(&tried, 0.0), 4096);
    }

    proptest! {
        #[test]
        fn the_largest_that_fits_is_found_exactly(fits in 1_u64..100_000) {
            let (tried, end) = climb(Ladder { to: 1 << 20, ..FREE }, fits, 1.0, 0.0);
            prop_assert_eq!(end, SearchEnd::OutOfMemory);
            let largest = tried.iter().filter(|tried| tried.failure.is_none()).map(|tried| tried.batch).max();
            prop_assert_eq!(largest, Some(fits));
            prop_assert!(tried.len() <= 2 * 18);
        }
    }
}
