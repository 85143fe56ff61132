//! Which points of a Pareto plot are dominated for certain, and which only may be (method 9.2).
//!
//! Input: the point frontier, and the verdict on each pair of points and metric. Output: a class for each point.
//! A point is dominated for certain by one that is better or equivalent on every metric and better on at least one.
//! Deliberately absent: chains. With margins domination is not transitive (a little worse thrice is worse), so only
//! direct domination counts; for the same reason all points of a circle may be dominated.

use super::pareto::Frontier;
use super::verdict::Verdict;

/// Whether a point is on the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
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
/// `Better` if j is better for certain; `Undecided` stands for anything unknown. It is asked for pairs of points
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
        let rivals = judged.iter().copied().filter(|&other| other != point);
        let by: Vec<usize> = rivals
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
        is_better |= verdict.is_improvement();
    }
    is_better
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pareto::{Objective, frontier};
    use proptest::prelude::*;

    const OBJECTIVES: [Objective; 2] = [Objective::Min, Objective::Max];

    /// Classes of points whose first metric has this margin, and whose second is exact.
    fn classes(points: &[[f64; 2]], margin: f64) -> Vec<ParetoClass> {
        let present: Vec<_> = points.iter().map(|point| point.map(Some)).collect();
        classify(&frontier(&present, &OBJECTIVES), 2, |left, right, metric| {
            let more = points[left][metric] - points[right][metric];
            if metric == 0 { Verdict::exact(more, margin) } else { Verdict::exact(-more, 0.0) }
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
        assert_eq!(classes(&points, 1.0), expected);
    }

    #[test]
    fn lead_within_the_margin_does_not_save_a_point() {
        // Half a millisecond faster is nothing; five points of accuracy are something.
        let classes = classes(&[[5.0, 90.0], [5.5, 95.0]], 1.0);
        assert_eq!(classes, [ParetoClass::Dominated { by: vec![1] }, ParetoClass::Frontier]);
    }

    #[test]
    fn unknown_verdicts_dominate_nothing() {
        let points = [[Some(1.0), Some(2.0)], [Some(2.0), Some(1.0)], [None, Some(9.0)]];
        let classes = classify(&frontier(&points, &OBJECTIVES), 2, |_, _, _| Verdict::Undecided);
        assert_eq!(classes, [ParetoClass::Frontier, ParetoClass::WithinNoise, ParetoClass::Excluded]);
        assert_eq!(classify(&Frontier::default(), 2, |_, _, _| Verdict::Better), []);
    }

    #[test]
    fn verdicts_combine() {
        use Verdict::{Better, Equivalent, Undecided, Worse};
        assert!(dominates_for_certain([Better, Equivalent]));
        assert!(!dominates_for_certain([Equivalent, Equivalent]));
        assert!(!dominates_for_certain([Better, Worse]));
        assert!(!dominates_for_certain([Better, Undecided]));
        assert!(!dominates_for_certain([]));
    }

    proptest! {
        #[test]
        fn without_noise_and_margin_the_classes_are_the_frontier(points in prop::collection::vec(prop::array::uniform2(0_u8..5), 0..20)) {
            let points: Vec<[f64; 2]> = points.into_iter().map(|point| point.map(f64::from)).collect();
            let present: Vec<_> = points.iter().map(|point| point.map(Some)).collect();
            let frontier = frontier(&present, &OBJECTIVES);
            for (point, class) in classes(&points, 0.0).iter().enumerate() {
                let is_dominated = matches!(class, ParetoClass::Dominated { .. });
                prop_assert_eq!(is_dominated, !frontier.members.contains(&point));
                prop_assert!(is_dominated || *class == ParetoClass::Frontier);
            }
        }
    }
}
