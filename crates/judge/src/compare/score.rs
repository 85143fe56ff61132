//! Scores on data: on the same items where both sides answered them, else by their intervals (method 6.2).

use crate::CONFIDENCE;
use crate::summary::{CellSummary, Scored};
use base::metric::{Difference, Direction, Metric};
use quality::accuracy::Score;
use statistics::Verdict;
use statistics::distribution::{normal_cdf, normal_quantile};
use statistics::interval::Interval;
use statistics::paired_proportions::paired_items;

/// The margin of shares such as an accuracy, unless somebody says otherwise: half a percentage point.
pub(crate) const MARGIN_OF_SHARES: Difference = Difference::Absolute(0.005);

/// One score less another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreDifference {
    /// In the unit of the score.
    pub(crate) difference: f64,
    /// Its interval over items.
    pub(crate) interval: Option<Interval>,
    /// Every item has the same answer on both sides, which leaves nothing open.
    pub(crate) is_same: bool,
}

impl ScoreDifference {
    /// Of shares on the same items, by which of them each side has right.
    pub(crate) fn on_the_same_items(from: &[bool], to: &[bool]) -> Option<Self> {
        let found = paired_items(from.iter().copied().zip(to.iter().copied()), CONFIDENCE)?;
        let is_same = found.only_first + found.only_second == 0;
        Some(ScoreDifference { difference: found.difference, interval: Some(found.interval), is_same })
    }

    /// From two values with their intervals: the squared distances to their ends added (Newcombe 1998, method 10, for
    /// proportions; Zou and Donner 2008 for other scores).
    pub(crate) fn unpaired(from: (f64, Option<Interval>), to: (f64, Option<Interval>)) -> Self {
        let difference = to.0 - from.0;
        let interval = from.1.zip(to.1).map(|(before, after)| Interval {
            low: difference - (to.0 - after.low).hypot(before.high - from.0),
            high: difference + (after.high - to.0).hypot(from.0 - before.low),
        });
        ScoreDifference { difference, interval, is_same: false }
    }

    fn reversed(self) -> Self {
        let interval = self.interval.map(|it| it.map(|end| -end));
        ScoreDifference { difference: -self.difference, interval, ..self }
    }

    /// The interval of how much worse the second is.
    pub(crate) fn worse(self, direction: Direction) -> Option<Interval> {
        match direction {
            Direction::HigherIsBetter => self.reversed().interval,
            Direction::LowerIsBetter | Direction::Neutral => self.interval,
        }
    }

    /// The verdict with a margin in the unit of the score; `None` where the score has no interval.
    pub(crate) fn verdict(self, direction: Direction, margin: f64) -> Option<Verdict> {
        match self.worse(direction) {
            _ if self.is_same => Some(Verdict::exact(0.0, margin)),
            Some(worse) => Some(Verdict::from_interval(worse, margin)),
            None => None,
        }
    }
}

/// The p value of a difference beyond the margin, from the interval: two-sided, normal, with the error that its
/// width shows.
pub(crate) fn p_beyond(worse: Interval, margin: f64) -> Option<f64> {
    let error = worse.half_width() / normal_quantile(f64::midpoint(1.0, CONFIDENCE));
    let beyond = f64::midpoint(worse.low, worse.high).abs() - margin;
    (error > 0.0).then(|| (2.0 * normal_cdf(-beyond / error)).min(1.0))
}

/// How two cells differ in a score: by the same items, as far as each is known item by item.
pub(super) fn difference(from: &CellSummary, to: &CellSummary, metric: &Metric) -> Option<ScoreDifference> {
    let (known, other) = (from.scored.as_ref()?, to.scored.as_ref()?);
    let items = known.right.get(metric.name).zip(other.right.get(metric.name));
    // Models may have data of their own.
    let are_same = |(before, after): &(&Vec<bool>, &Vec<bool>)| known.data == other.data && before.len() == after.len();
    if let Some((before, after)) = items.filter(are_same) {
        return ScoreDifference::on_the_same_items(before, after);
    }
    let score =
        |summary: &CellSummary| summary.accuracy.iter().find(|score| *score.metric.metric() == *metric).cloned();
    let (before, after) = (score(from)?, score(to)?);
    let estimates = [&before, &after].map(|score| (score.estimate.value, score.estimate.interval));
    // Cells that differ in their input alone are scored once.
    if known.cell == other.cell {
        let interval = estimates[1].1.map(|_| Interval { low: 0.0, high: 0.0 });
        return Some(ScoreDifference { difference: 0.0, interval, is_same: true });
    }
    // The one against the reference was tested on the same items.
    let tested = |score: &Score, scored: &Scored, reference: &Scored| {
        let change = score.change.filter(|_| scored.reference == Some(reference.cell))?;
        let none = Interval { low: 0.0, high: 0.0 };
        let is_same = match change.lost.zip(change.gained) {
            Some(items) => items == (0, 0),
            None => change.difference == 0.0 && change.interval.is_none_or(|it| it == none),
        };
        if is_same {
            return Some(ScoreDifference { difference: 0.0, interval: Some(none), is_same });
        }
        change.interval.map(|interval| ScoreDifference {
            difference: change.difference,
            interval: Some(interval),
            is_same: false,
        })
    };
    let backwards = || tested(&before, known, other).map(ScoreDifference::reversed);
    let paired = tested(&after, other, known).or_else(backwards);
    Some(paired.unwrap_or_else(|| ScoreDifference::unpaired(estimates[0], estimates[1])))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::metric::ACCURACY_TOP1;
    use experiment::AccuracyMetric;
    use quality::accuracy::ItemScores;
    use std::sync::Arc;

    #[test]
    fn the_interval_of_a_difference_is_newcombes() {
        // Newcombe 1998, table II, (a): 56/70 and 48/80, Wilson's intervals .6918 to .8767 and .4905 to .7004.
        let side = |value, low, high| (value, Some(Interval { low, high }));
        let found = ScoreDifference::unpaired(side(0.6, 0.490_5, 0.700_4), side(0.8, 0.691_8, 0.876_7));
        let interval = found.interval.unwrap();
        assert!((found.difference - 0.2).abs() < 1e-9);
        assert!((interval.low - 0.0524).abs() < 5e-4 && (interval.high - 0.3339).abs() < 5e-4, "{interval:?}");
    }

    /// A cell with so many of 100 items right, the first ones, of this data.
    fn scored(cell: u32, right: u64, data: &str) -> CellSummary {
        let items: Vec<bool> = (0..100).map(|item| item < right).collect();
        let values = items.iter().map(|right| f64::from(u8::from(*right))).collect();
        let scores = ItemScores { values, label_variance: None };
        let estimate = quality::accuracy::score(AccuracyMetric::Top1, &scores).unwrap();
        let right = [(ACCURACY_TOP1.name.to_owned(), items)].into();
        CellSummary {
            accuracy: vec![Score { metric: AccuracyMetric::Top1, estimate, change: None }],
            scored: Some(Arc::new(Scored { cell, data: Some(data.to_owned()), reference: None, right })),
            ..CellSummary::unmeasured("0123456789abcdef".parse().unwrap())
        }
    }

    #[test]
    fn items_of_other_data_are_not_the_same_items() {
        let before = scored(0, 90, "a");
        let half =
            |after: &CellSummary| difference(&before, after, &ACCURACY_TOP1).unwrap().interval.unwrap().half_width();
        let (same, other) = (half(&scored(1, 88, "a")), half(&scored(1, 88, "b")));
        assert!(other > 2.0 * same, "{same} {other}");
        assert!(difference(&before, &scored(1, 90, "a"), &ACCURACY_TOP1).unwrap().is_same);
        assert!(!difference(&before, &scored(1, 90, "b"), &ACCURACY_TOP1).unwrap().is_same);
    }

    #[test]
    fn one_item_of_540_tells_nothing_and_the_same_answers_everything() {
        let before: Vec<bool> = (0..540).map(|item| item >= 10).collect();
        let mut after = before.clone();
        let verdict = |after: &[bool]| {
            let found = ScoreDifference::on_the_same_items(&before, after).unwrap();
            found.verdict(Direction::HigherIsBetter, 0.005).unwrap()
        };
        assert_eq!(verdict(&after), Verdict::Equivalent);
        after[0] = true;
        after[20] = false;
        assert_eq!(verdict(&after), Verdict::Undecided);
        after[21..60].fill(false);
        assert_eq!(verdict(&after), Verdict::Worse);
    }
}
