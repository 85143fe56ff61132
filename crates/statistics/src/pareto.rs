//! The Pareto frontier of points in any number of metrics (method 9.1).
//!
//! Input: one value for each metric of each point, and which way each metric is good. Output: the points that no other
//! dominates, what dominates the others, and which points could not be judged. A point dominates another if it is at
//! least as good on every metric and better on one; equal points dominate neither, so that duplicates stay. "No other
//! is better on all metrics" is a weaker rule, which would keep (5 ms, 87%) as well as (5 ms, 88%).
//! Deliberately absent: noise, which `certain_domination` has.

use serde::{Deserialize, Serialize};

/// Which way a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Smaller is better.
    Min,
    /// Larger is better.
    Max,
}

impl Objective {
    /// The value such that smaller is better.
    fn orient(self, value: f64) -> f64 {
        match self {
            Objective::Min => value,
            Objective::Max => -value,
        }
    }
}

/// The frontier; points and metrics are named by their index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frontier {
    /// Points that no other dominates, in rising order.
    pub members: Vec<usize>,
    /// The points that are dominated, in rising order.
    pub dominated: Vec<DominatedPoint>,
    /// The points that were left out, in rising order.
    pub excluded: Vec<ExcludedPoint>,
}

/// A point off the frontier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DominatedPoint {
    /// The point.
    pub point: usize,
    /// The points of the frontier that dominate it, in rising order; never empty.
    pub by: Vec<usize>,
}

/// A point that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedPoint {
    /// The point.
    pub point: usize,
    /// The first metric that it lacks.
    pub metric: usize,
    /// How it lacks it.
    pub reason: ExclusionReason,
}

/// Why a point was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// There is no value.
    Missing,
    /// The value is not a number.
    NotANumber,
}

/// The frontier of `points`, each with one value for each of `objectives`; what a point has beyond them is ignored.
///
/// Infinite values compare like others. With one metric all minimisers are on the frontier; with none, all points.
/// Quadratic in the number of points.
pub fn frontier<Point: AsRef<[Option<f64>]>>(points: &[Point], objectives: &[Objective]) -> Frontier {
    let mut excluded = Vec::new();
    let mut judged: Vec<(usize, Vec<f64>)> = Vec::new();
    for (point, values) in points.iter().enumerate() {
        match oriented(values.as_ref(), objectives) {
            Ok(values) => judged.push((point, values)),
            Err((metric, reason)) => excluded.push(ExcludedPoint { point, metric, reason }),
        }
    }
    let is_member = |values: &[f64]| !judged.iter().any(|(_, other)| dominates(other, values));
    let (inside, outside): (Vec<_>, Vec<_>) = judged.iter().partition(|(_, values)| is_member(values));
    let dominated = outside.into_iter().map(|(point, values)| {
        let by = inside.iter().filter(|(_, member)| dominates(member, values)).map(|(member, _)| *member);
        DominatedPoint { point: *point, by: by.collect() }
    });
    let dominated = dominated.collect();
    Frontier { members: inside.iter().map(|(point, _)| *point).collect(), dominated, excluded }
}

/// Whether `left` is at least as good as `right` everywhere and better somewhere; smaller is better.
fn dominates(left: &[f64], right: &[f64]) -> bool {
    let mut is_better = false;
    for (left, right) in left.iter().zip(right) {
        if left > right {
            return false;
        }
        is_better |= left < right;
    }
    is_better
}

/// The values such that smaller is better; the first metric without one, and why, as the error.
fn oriented(values: &[Option<f64>], objectives: &[Objective]) -> Result<Vec<f64>, (usize, ExclusionReason)> {
    let orient = |(metric, objective): (usize, &Objective)| match values.get(metric).copied().flatten() {
        None => Err((metric, ExclusionReason::Missing)),
        Some(value) if value.is_nan() => Err((metric, ExclusionReason::NotANumber)),
        Some(value) => Ok(objective.orient(value)),
    };
    objectives.iter().enumerate().map(orient).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{load, numbers};
    use proptest::prelude::*;
    use serde_json::Value;

    fn present(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    fn check(case: &Value) {
        let points: Vec<Vec<Option<f64>>> =
            case["points"].as_array().unwrap().iter().map(|point| present(&numbers(point))).collect();
        let objectives: Vec<Objective> = serde_json::from_value(case["directions"].clone()).unwrap();
        let actual = frontier(&points, &objectives);
        assert_eq!(serde_json::json!(actual.members), case["frontier"]);
        assert_eq!(actual.members.len() + actual.dominated.len(), points.len());
    }

    #[test]
    fn reference_frontiers_hold() {
        load()["pareto"].as_array().unwrap().iter().for_each(check);
    }

    #[test]
    fn example_of_tinytorch_keeps_all_three() {
        check(&load()["tinytorch_module19"]["Q4"]);
    }

    #[test]
    fn dominated_points_name_what_dominates_them() {
        let points = [[5.0, 87.0], [5.0, 88.0], [4.0, 88.0], [9.0, 99.0], [10.0, 80.0]].map(|point| present(&point));
        let actual = frontier(&points, &[Objective::Min, Objective::Max]);
        assert_eq!(actual.members, [2, 3]);
        let expected = [(0, vec![2]), (1, vec![2]), (4, vec![2, 3])].map(|(point, by)| DominatedPoint { point, by });
        assert_eq!(actual.dominated, expected);
    }

    #[test]
    fn points_without_a_value_are_left_out_with_the_reason() {
        let points = [vec![Some(1.0), None], vec![Some(f64::NAN), None], vec![Some(2.0), Some(2.0)], vec![Some(0.0)]];
        let actual = frontier(&points, &[Objective::Min, Objective::Min]);
        assert_eq!(actual.members, [2]);
        let reasons: Vec<_> = actual.excluded.iter().map(|left| (left.point, left.metric, left.reason)).collect();
        use ExclusionReason::{Missing, NotANumber};
        assert_eq!(reasons, [(0, 1, Missing), (1, 0, NotANumber), (3, 1, Missing)]);
    }

    #[test]
    fn one_metric_has_all_its_minimisers() {
        let points = [3.0, 1.0, 2.0, 1.0].map(|value| [Some(value)]);
        assert_eq!(frontier(&points, &[Objective::Min]).members, [1, 3]);
        assert_eq!(frontier(&points, &[Objective::Max]).members, [0]);
        assert_eq!(frontier(&points, &[]).members, [0, 1, 2, 3]);
        assert_eq!(frontier::<[Option<f64>; 1]>(&[], &[Objective::Min]), Frontier::default());
    }

    #[test]
    fn infinite_values_compare() {
        let points = [[Some(f64::INFINITY)], [Some(1e300)], [Some(f64::NEG_INFINITY)]];
        assert_eq!(frontier(&points, &[Objective::Min]).members, [2]);
        assert_eq!(frontier(&points, &[Objective::Max]).members, [0]);
    }

    /// Few different values, so that ties and duplicates are frequent.
    fn any_points() -> impl Strategy<Value = Vec<[Option<f64>; 3]>> {
        let value = prop_oneof![9 => (0_u8..4).prop_map(|value| Some(f64::from(value))), 1 => Just(None)];
        prop::collection::vec(prop::array::uniform3(value), 0..24)
    }

    const OBJECTIVES: [Objective; 3] = [Objective::Min, Objective::Max, Objective::Min];

    proptest! {
        #[test]
        fn members_are_undominated_and_dominate_the_rest(points in any_points()) {
            let actual = frontier(&points, &OBJECTIVES);
            let values = |point: usize| oriented(&points[point], &OBJECTIVES).unwrap();
            for &member in &actual.members {
                let is_dominated = points.iter().any(|other| oriented(other, &OBJECTIVES).is_ok_and(|other| dominates(&other, &values(member))));
                prop_assert!(!is_dominated);
            }
            for point in &actual.dominated {
                prop_assert!(!point.by.is_empty());
                prop_assert!(point.by.iter().all(|&by| actual.members.contains(&by) && dominates(&values(by), &values(point.point))));
            }
            prop_assert_eq!(actual.members.len() + actual.dominated.len() + actual.excluded.len(), points.len());
        }

        #[test]
        fn order_of_points_does_not_matter(points in any_points(), seed: u64) {
            let mut order: Vec<usize> = (0..points.len()).collect();
            crate::Xoshiro256PlusPlus::seed_from_u64(seed).shuffle(&mut order);
            let shuffled: Vec<_> = order.iter().map(|&point| points[point]).collect();
            let mut members: Vec<usize> = frontier(&shuffled, &OBJECTIVES).members.iter().map(|&index| order[index]).collect();
            members.sort_unstable();
            prop_assert_eq!(members, frontier(&points, &OBJECTIVES).members);
        }

        #[test]
        fn duplicates_share_their_fate(points in any_points()) {
            let once = frontier(&points, &OBJECTIVES);
            let twice = frontier(&[points.clone(), points.clone()].concat(), &OBJECTIVES);
            let expected: Vec<usize> = once.members.iter().copied().chain(once.members.iter().map(|member| member + points.len())).collect();
            prop_assert_eq!(twice.members, expected);
        }

        #[test]
        fn one_more_metric_keeps_those_that_were_there_alone(points in any_points()) {
            // A point of the frontier stays there with more metrics unless an equal point gains on it.
            let two = frontier(&points, &OBJECTIVES[..2]);
            let three = frontier(&points, &OBJECTIVES);
            for &member in &two.members {
                let is_alone = points.iter().filter(|other| other[..2] == points[member][..2]).count() == 1;
                if is_alone && points[member][2].is_some() {
                    prop_assert!(three.members.contains(&member));
                }
            }
        }
    }
}
