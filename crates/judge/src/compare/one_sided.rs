//! Two largest rates of which one at least is known on one side only (method 7.3).
//!
//! Input: what is known of both. Output: the ratios that this allows, open on one side, and a verdict where all of them lie
//! beyond the margin. Deliberately absent: pairs of runs, since a run whose rate lies beyond those that were looked at has none.

use super::ComparisonRules;
use crate::summary::CellSummary;
use base::metric::MetricReference;
use statistics::Verdict;
use statistics::interval::Interval;
use statistics::largest_rate::RateBound;

/// One rate over another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OneSided {
    /// Of the values and ends that are known.
    pub(super) ratio: f64,
    /// From 0, or to infinity; `None` where there are too few runs for one.
    pub(super) interval: Option<Interval>,
    pub(super) verdict: Verdict,
}

/// The rate of `to` over that of `from`; `None` where nothing is known of either.
pub(super) fn ratio(
    from: &CellSummary,
    to: &CellSummary,
    reference: MetricReference,
    terms: &ComparisonRules,
) -> Option<OneSided> {
    let ratio = to.sort_value(reference)? / from.sort_value(reference)?;
    let [base, candidate] = [from, to].map(|cell| ends(cell, reference, terms.confidence()));
    let allowed = Interval { low: candidate.low / base.high, high: candidate.high / base.low };
    let interval = Some(allowed).filter(|_| from.has_enough_runs() && to.has_enough_runs());
    // Log ratios are positive where the candidate is worse.
    let theta = interval.map(|allowed| Interval { low: -allowed.high.ln(), high: -allowed.low.ln() });
    let verdict = Verdict::from_interval(theta, terms.margin_of(reference).ln_1p());
    Some(OneSided { ratio, interval, verdict })
}

/// Between what a rate may lie.
fn ends(cell: &CellSummary, reference: MetricReference, confidence: f64) -> Interval {
    let anything = Interval { low: 0.0, high: f64::INFINITY };
    match cell.bound_of(reference) {
        Some(RateBound::AtLeast(rate)) => Interval { low: rate, ..anything },
        Some(RateBound::AtMost(rate)) => Interval { high: rate, ..anything },
        None => cell.estimate_at(reference, confidence).and_then(|found| found.interval).unwrap_or(anything),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::metric::LARGEST_RATE;
    use base::quantity::Nanos;
    use experiment::{Arrivals, LatencyBound, Load};
    use statistics::largest_rate::LateCounts;

    /// A cell whose runs were at this rate; `late` is the share of late queries by the number of the rate among 106.
    fn cell(rate: f64, late: impl Fn(u32) -> u32) -> CellSummary {
        let bound = LatencyBound::of(0.99, Nanos(20_000_000));
        let counts = LateCounts { rate, queries: 10_000, late: (0..106).map(late).collect() };
        CellSummary {
            load: Some(Load::Largest { arrivals: Arrivals::Poisson, bound }),
            late: vec![counts; 6],
            ..CellSummary::unmeasured("0123456789abcdef".parse().unwrap()).with_values(&LARGEST_RATE, &[rate; 6])
        }
        .with_load()
    }

    #[test]
    fn an_end_that_is_known_wins_loses_or_leaves_it_open() {
        // One in a hundred is late in the middle, at the rate itself.
        let found = |rate: f64| cell(rate, |step| 2 * step);
        let seldom = |rate: f64| cell(rate, |_| 0);
        let often = |rate: f64| cell(rate, |_| 10_000);
        let judged = |from: CellSummary, to: CellSummary| {
            let found = ratio(&from, &to, MetricReference::of(&LARGEST_RATE), &ComparisonRules::default()).unwrap();
            (found.verdict, found.interval.unwrap())
        };
        assert!(found(100.0).bound_of(MetricReference::of(&LARGEST_RATE)).is_none());
        let (verdict, allowed) = judged(found(100.0), seldom(400.0));
        assert!(verdict.is_improvement() && (4.0..4.3).contains(&allowed.low) && allowed.high.is_infinite());
        let (verdict, allowed) = judged(seldom(400.0), found(100.0));
        assert!(verdict.is_regression() && allowed.low == 0.0 && (0.2..0.3).contains(&allowed.high), "{allowed:?}");
        assert!(judged(found(100.0), often(20.0)).0.is_regression());
        for (from, to) in [(found(100.0), seldom(50.0)), (seldom(100.0), seldom(900.0)), (found(100.0), often(900.0))] {
            assert!(judged(from, to).0.is_open());
        }
    }
}
