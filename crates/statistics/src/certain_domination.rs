//! Which points of a Pareto plot are dominated for certain, and which only may be (method 9.2).
//!
//! Input: the point frontier, and the verdict on each pair of points and metric. Output: a class for each point.
//! A point is dominated for certain by one that is better or equivalent on every metric and better on at least one.
//! Deliberately absent: chains. With margins domination is not transitive (a little worse thrice is worse), so only
//! direct domination counts; for the same reason all points of a circle may be dominated.

use serde::{Deserialize, Serialize};

use super::pareto::Frontier;
#[cfg(test)]
use super::pareto::Objective;
use super::verdict::Verdict;

/// What is known about the place of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ParetoClass {
    /// On the point frontier, and not dominated for certain.
    Frontier,
    /// Off the point frontier, but not dominated for certain: it may be on the frontier.
    WithinNoise,
    /// Dominated for certain.
    Dominated {
        /// The points that dominate it directly, in rising order.
        by: Vec<usize>,
    },
    /// Left out of the point frontier.
    Excluded,
}

/// Classes of the points of a frontier, by index. `verdict(j, i, metric)` is the verdict on point j against point i:
/// `Better` if j is better for certain; `Inconclusive` stands for anything unknown. It is asked for pairs of points
/// that were not excluded, until an answer forbids domination.
///
/// A point on the point frontier is dominated too where a margin makes the metric that it leads on equivalent.
pub fn classify(
    frontier: &Frontier,
    metrics: usize,
    mut verdict: impl FnMut(usize, usize, usize) -> Verdict,
) -> Vec<ParetoClass> {
    let dominated = frontier.dominated.iter().map(|dominated| dominated.point);
    let mut judged: Vec<usize> = frontier.members.iter().copied().chain(dominated).collect();
    judged.sort_unstable();
    let excluded = frontier.excluded.iter().map(|excluded| excluded.point);
    let points = judged.iter().copied().chain(excluded).max().map_or(0, |last| last + 1);
    let mut classes = vec![ParetoClass::Excluded; points];
    for &point in &judged {
        let others = judged.iter().copied().filter(|&other| other != point);
        let by: Vec<usize> = others
            .filter(|&other| dominates_for_certain((0..metrics).map(|metric| verdict(other, point, metric))))
            .collect();
        classes[point] = if !by.is_empty() {
            ParetoClass::Dominated { by }
        } else if frontier.members.binary_search(&point).is_ok() {
            ParetoClass::Frontier
        } else {
            ParetoClass::WithinNoise
        };
    }
    classes
}

/// Whether verdicts on one point against another, one for each metric, make it dominate: all `Better` or `Equivalent`,
/// at least one `Better`.
pub(crate) fn dominates_for_certain(verdicts: impl IntoIterator<Item = Verdict>) -> bool {
    let mut is_better = false;
    for verdict in verdicts {
        if !verdict.is_no_worse() {
            return false;
        }
        is_better |= verdict == Verdict::Better;
    }
    is_better
}

/// The verdict on `value` against `other` for a metric without noise, such as a file's size or the accuracy on a fixed
/// set. Values no further apart than `margin`, in the metric's unit, are equivalent; with a margin of zero, equal ones.
/// Inconclusive for values that are not numbers and for a margin that is negative or not a number.
#[cfg(test)]
pub(crate) fn exact_verdict(value: f64, other: f64, objective: Objective, margin: f64) -> Verdict {
    let gain = match objective {
        Objective::Min => other - value,
        Objective::Max => value - other,
    };
    // Infinity minus itself is not a number, yet it equals itself.
    let gain = if value == other { 0.0 } else { gain };
    if gain.is_nan() || margin.is_nan() || margin < 0.0 {
        Verdict::Inconclusive
    } else if gain > margin {
        Verdict::Better
    } else if gain < -margin {
        Verdict::Worse
    } else {
        Verdict::Equivalent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pareto::frontier;
    use proptest::prelude::*;

    const OBJECTIVES: [Objective; 2] = [Objective::Min, Objective::Max];

    /// Classes of points whose first metric has a margin of one.
    fn classes_with_margin(points: &[[f64; 2]]) -> Vec<ParetoClass> {
        let present: Vec<_> = points.iter().map(|point| point.map(Some)).collect();
        classify(&frontier(&present, &OBJECTIVES), 2, |left, right, metric| {
            let margin = if metric == 0 { 1.0 } else { 0.0 };
            exact_verdict(points[left][metric], points[right][metric], OBJECTIVES[metric], margin)
        })
    }

    #[test]
    fn certain_domination_is_told_from_noise() {
        // Latency with a margin of 1 ms, accuracy exact.
        let points = [[5.0, 90.0], [5.5, 90.0], [9.0, 90.0], [9.0, 95.0]];
        let expected = [
            ParetoClass::Frontier,
            ParetoClass::WithinNoise,
            ParetoClass::Dominated { by: vec![0, 1, 3] },
            ParetoClass::Frontier,
        ];
        assert_eq!(classes_with_margin(&points), expected);
    }

    #[test]
    fn lead_within_the_margin_does_not_save_a_point() {
        // Half a millisecond faster is nothing; five points of accuracy are something.
        let classes = classes_with_margin(&[[5.0, 90.0], [5.5, 95.0]]);
        assert_eq!(classes, [ParetoClass::Dominated { by: vec![1] }, ParetoClass::Frontier]);
    }

    #[test]
    fn unknown_verdicts_dominate_nothing() {
        let points = [[Some(1.0), Some(2.0)], [Some(2.0), Some(1.0)], [None, Some(9.0)]];
        let classes = classify(&frontier(&points, &OBJECTIVES), 2, |_, _, _| Verdict::Inconclusive);
        assert_eq!(classes, [ParetoClass::Frontier, ParetoClass::WithinNoise, ParetoClass::Excluded]);
        assert_eq!(classify(&Frontier::default(), 2, |_, _, _| Verdict::Better), []);
    }

    #[test]
    fn verdicts_combine() {
        use Verdict::{Better, Equivalent, Inconclusive, Worse};
        assert!(dominates_for_certain([Better, Equivalent]));
        assert!(!dominates_for_certain([Equivalent, Equivalent]));
        assert!(!dominates_for_certain([Better, Worse]));
        assert!(!dominates_for_certain([Better, Inconclusive]));
        assert!(!dominates_for_certain([]));
    }

    #[test]
    fn exact_metrics_need_no_interval() {
        let verdict = |value, other| exact_verdict(value, other, Objective::Max, 0.5);
        assert_eq!(verdict(91.0, 90.0), Verdict::Better);
        assert_eq!(verdict(90.5, 90.0), Verdict::Equivalent);
        assert_eq!(verdict(89.0, 90.0), Verdict::Worse);
        assert_eq!(verdict(f64::NAN, 90.0), Verdict::Inconclusive);
        assert_eq!(verdict(f64::INFINITY, f64::INFINITY), Verdict::Equivalent);
        assert_eq!(exact_verdict(1.0, 1.0, Objective::Min, 0.0), Verdict::Equivalent);
        assert_eq!(exact_verdict(1.0, 2.0, Objective::Min, 0.0), Verdict::Better);
        assert_eq!(exact_verdict(1.0, 2.0, Objective::Min, -1.0), Verdict::Inconclusive);
    }

    proptest! {
        #[test]
        fn without_noise_and_margin_the_classes_are_the_frontier(points in prop::collection::vec(prop::array::uniform2(0_u8..5), 0..20)) {
            let points: Vec<[f64; 2]> = points.into_iter().map(|point| point.map(f64::from)).collect();
            let present: Vec<_> = points.iter().map(|point| point.map(Some)).collect();
            let frontier = frontier(&present, &OBJECTIVES);
            let classes = classify(&frontier, 2, |left, right, metric| {
                exact_verdict(points[left][metric], points[right][metric], OBJECTIVES[metric], 0.0)
            });
            for (point, class) in classes.iter().enumerate() {
                let is_dominated = matches!(class, ParetoClass::Dominated { .. });
                prop_assert_eq!(is_dominated, !frontier.members.contains(&point));
                prop_assert!(is_dominated || *class == ParetoClass::Frontier);
            }
        }

        #[test]
        fn exact_verdicts_mirror(value: f64, other: f64, margin in 0.0_f64..10.0) {
            let verdict = exact_verdict(value, other, Objective::Min, margin);
            prop_assert_eq!(exact_verdict(other, value, Objective::Min, margin), verdict.swapped());
            prop_assert_eq!(exact_verdict(other, value, Objective::Max, margin), verdict);
        }
    }
}
