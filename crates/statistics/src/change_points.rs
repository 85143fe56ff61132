//! Where a history changed: E-divisive splits with Student's t instead of permutations (method 6.9; Matteson and
//! James 2014, in the variant of Hunter, DataStax 2023, whose results the vectors pin).
//!
//! Input: one positive value for each commit, oldest first. Output: the change points that are both clear and worth
//! knowing, and the stable segment that the newest value belongs to. Nothing is drawn at random, so the same history
//! always has the same change points. Two values or fewer after the last change cannot form a segment: a comparison of
//! two sessions judges those.
//! Deliberately absent: which values make one series, and what to call a change.

use super::distribution::student_t_sf;
use super::e_divisive::best_split;
use super::moments::{mean, variance};

/// Every segment has at least so many values; with fewer the test meets the extremes that the split selected.
pub(crate) const MINIMUM_SEGMENT: usize = 3;

/// Splits are looked for in windows of so many values, so that an old change does not hide a new one.
const WINDOW: usize = 50;

/// The window moves on by at least so many values.
const STEP: usize = 25;

/// A window keeps splits of up to this many times the final p value: weak ones carve out strong ones (Hunter).
const CANDIDATE_FACTOR: f64 = 10.0;

/// What a change point has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePointRule {
    /// The two-sided p value of its neighbouring segments is below this.
    pub p_value: f64,
    /// The relative change is beyond this, such as 0.02, up or down, on the log scale.
    pub magnitude: f64,
}

impl Default for ChangePointRule {
    /// p below 0.001 and a change of more than 2%.
    fn default() -> Self {
        ChangePointRule { p_value: 0.001, magnitude: 0.02 }
    }
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value after the change.
    pub index: usize,
    /// Mean log after the change less that before, each over its segment.
    pub delta: f64,
    /// The ratio of the geometric means, after over before.
    pub ratio: f64,
    /// Two-sided p value of Student's pooled t test of the two segments. It does not allow for the choice of the split.
    pub p_value: f64,
}

/// The change points of a series, oldest first. `None` for values that are not positive and finite.
pub fn change_points(values: &[f64], rule: ChangePointRule) -> Option<Vec<ChangePoint>> {
    let logs = logs(values)?;
    let mut indices = candidates(&logs, CANDIDATE_FACTOR * rule.p_value);
    drop_short_segments(&mut indices);
    Some(merge_segments(&logs, indices, rule))
}

fn logs(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|&value| (value > 0.0 && value.is_finite()).then(|| value.ln())).collect()
}

/// The splits of overlapping windows, in rising order.
fn candidates(logs: &[f64], p_value: f64) -> Vec<usize> {
    let mut indices = Vec::new();
    let mut start = 0;
    while start < logs.len() {
        let window = &logs[start..logs.len().min(start + WINDOW)];
        let found = split_window(window, p_value);
        let last = found.iter().max().map_or(0, |last| start + last);
        indices.extend(found.into_iter().map(|index| start + index));
        start = last.max(start + STEP);
    }
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// Splits the segment that falls apart best, again and again, until the best split is not significant.
fn split_window(window: &[f64], p_value: f64) -> Vec<usize> {
    let mut bounds = vec![0, window.len()];
    loop {
        // The index in `bounds`, the split, and its statistic.
        let mut best: Option<(usize, usize, f64)> = None;
        for position in 1..bounds.len() {
            let (from, to) = (bounds[position - 1], bounds[position]);
            let Some(split) = best_split(&window[from..to], MINIMUM_SEGMENT) else { continue };
            if best.is_none_or(|(_, _, statistic)| split.statistic > statistic) {
                best = Some((position, from + split.index, split.statistic));
            }
        }
        let Some((position, index, _)) = best else { break };
        let (left, right) = (&window[bounds[position - 1]..index], &window[index..bounds[position]]);
        if pooled_t_test(left, right) > p_value {
            break;
        }
        bounds.insert(position, index);
    }
    bounds[1..bounds.len() - 1].to_vec()
}

/// Drops, from left to right, what overlapping windows placed too near to the one before.
fn drop_short_segments(indices: &mut Vec<usize>) {
    let mut before = 0;
    indices.retain(|&index| {
        let is_long = index - before >= MINIMUM_SEGMENT;
        if is_long {
            before = index;
        }
        is_long
    });
}

/// Takes away the least significant point, or else the smallest, until all that remain are clear and large.
fn merge_segments(logs: &[f64], mut indices: Vec<usize>, rule: ChangePointRule) -> Vec<ChangePoint> {
    let least = rule.magnitude.ln_1p();
    loop {
        let points = describe(logs, &indices);
        // From the end, so that the first of equals goes.
        let by_p =
            points.iter().enumerate().rev().max_by(|(_, left), (_, right)| left.p_value.total_cmp(&right.p_value));
        let by_size =
            points.iter().enumerate().min_by(|(_, left), (_, right)| left.delta.abs().total_cmp(&right.delta.abs()));
        let unclear = by_p.filter(|(_, point)| point.p_value >= rule.p_value);
        let small = by_size.filter(|(_, point)| point.delta.abs() <= least);
        let Some((position, _)) = unclear.or(small) else { return points };
        indices.remove(position);
    }
}

/// The points between neighbouring segments.
fn describe(logs: &[f64], indices: &[usize]) -> Vec<ChangePoint> {
    let describe_one = |(position, &index): (usize, &usize)| {
        let from = if position == 0 { 0 } else { indices[position - 1] };
        let to = indices.get(position + 1).copied().unwrap_or(logs.len());
        let (left, right) = (&logs[from..index], &logs[index..to]);
        let delta = mean(right)? - mean(left)?;
        Some(ChangePoint { index, delta, ratio: delta.exp(), p_value: pooled_t_test(left, right) })
    };
    indices.iter().enumerate().filter_map(describe_one).collect()
}

/// The two-sided p value of Student's t test with pooled variance: 1 where nothing differs, and where there is nothing to
/// pool; 0 where only the means differ.
fn pooled_t_test(left: &[f64], right: &[f64]) -> f64 {
    let (m, k) = (left.len() as f64, right.len() as f64);
    let Some((variance_left, variance_right)) = variance(left).zip(variance(right)) else { return 1.0 };
    let Some((mean_left, mean_right)) = mean(left).zip(mean(right)) else { return 1.0 };
    let difference = (mean_right - mean_left).abs();
    if difference == 0.0 {
        return 1.0;
    }
    let freedom = m + k - 2.0;
    let pooled = ((m - 1.0) * variance_left + (k - 1.0) * variance_right) / freedom;
    2.0 * student_t_sf(difference / (pooled * (1.0 / m + 1.0 / k)).sqrt(), freedom)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    fn found(values: &[f64]) -> Vec<ChangePoint> {
        change_points(values, ChangePointRule::default()).unwrap()
    }

    fn indices(values: &[f64]) -> Vec<usize> {
        found(values).iter().map(|point| point.index).collect()
    }

    /// A history with 1% of noise around a level for each value.
    fn history(n: usize, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|index| level(index) * (0.01 * generator.normal()).exp()).collect()
    }

    #[test]
    fn reference_change_points_hold() {
        for case in load()["change_points"].as_array().unwrap() {
            let actual = found(&numbers(&case["series"]));
            let expected = case["expected"].as_array().unwrap();
            assert_eq!(actual.len(), expected.len());
            for (actual, expected) in actual.iter().zip(expected) {
                assert_eq!(actual.index, count(&expected["index"]));
                assert_close(actual.delta, number(&expected["delta"]), 1e-10);
                assert_close(actual.ratio, number(&expected["ratio"]), 1e-10);
                // These are below the absolute tolerance of p values; the relative one holds as well.
                let relative = actual.p_value / number(&expected["p"]) - 1.0;
                assert!(relative.abs() < 1e-8, "{actual:?}");
            }
        }
    }

    #[test]
    fn step_is_found_where_it_is() {
        for (seed, change) in [(1, 3), (2, 30), (3, 57), (4, 97)] {
            let values = history(100, seed, |index| if index < change { 10.0 } else { 12.0 });
            assert_eq!(indices(&values), [change]);
            assert!((found(&values)[0].ratio - 1.2).abs() < 0.03);
        }
    }

    #[test]
    fn steps_in_a_long_history_are_all_found() {
        let level = |index| match index {
            0..60 => 10.0,
            60..75 => 11.0,
            75..200 => 9.0,
            _ => 9.9,
        };
        assert_eq!(indices(&history(300, 5, level)), [60, 75, 200]);
    }

    #[test]
    fn small_steps_and_noise_are_no_news() {
        assert!(indices(&history(100, 6, |index| if index < 50 { 100.0 } else { 101.0 })).is_empty());
        let alarms: usize = (0..100).map(|seed| indices(&history(50, seed, |_| 5.0)).len()).sum();
        assert!(alarms <= 3, "{alarms}");
    }

    #[test]
    fn noiseless_step_is_found() {
        let mut values = vec![10.0; 5];
        values.extend([11.0; 5]);
        assert_eq!(indices(&values), [5]);
        assert_eq!(found(&values)[0].p_value, 0.0);
        assert!(indices(&[7.0; 200]).is_empty());
    }

    #[test]
    fn newest_two_values_cannot_be_a_segment() {
        let values = history(40, 8, |index| if index < 38 { 10.0 } else { 20.0 });
        assert!(indices(&values).iter().all(|&index| index <= 37));
    }

    #[test]
    fn broken_histories_have_no_change_points() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(change_points(&[1.0, value], ChangePointRule::default()), None);
        }
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[1.0; 5]), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn unit_does_not_matter(n in 6_usize..120, seed: u64, power in -30_i32..30) {
            let values = history(n, seed, |index| [10.0, 10.5, 12.0][index * 3 / n]);
            let scaled: Vec<f64> = values.iter().map(|value| value * 2.0_f64.powi(power)).collect();
            let (original, scaled) = (found(&values), found(&scaled));
            prop_assert_eq!(original.len(), scaled.len());
            for (original, scaled) in original.iter().zip(&scaled) {
                prop_assert_eq!(original.index, scaled.index);
                prop_assert!((original.delta - scaled.delta).abs() < 1e-9);
            }
        }

        #[test]
        fn reciprocal_history_changes_at_the_same_places(n in 6_usize..120, seed: u64) {
            let values = history(n, seed, |index| [10.0, 9.0, 12.0][index * 3 / n]);
            let rates: Vec<f64> = values.iter().map(|value| value.recip()).collect();
            let (times, rates) = (found(&values), found(&rates));
            prop_assert_eq!(times.len(), rates.len());
            for (time, rate) in times.iter().zip(&rates) {
                prop_assert_eq!(time.index, rate.index);
                prop_assert!((time.delta + rate.delta).abs() < 1e-9);
            }
        }

        #[test]
        fn points_are_clear_large_and_apart(values in prop::collection::vec(1.0_f64..3.0, 0..160)) {
            let rule = ChangePointRule::default();
            let points = change_points(&values, rule).unwrap();
            let bounds: Vec<usize> = [0].into_iter().chain(points.iter().map(|point| point.index)).chain([values.len()]).collect();
            prop_assert!(points.is_empty() || bounds.windows(2).all(|pair| pair[1] - pair[0] >= MINIMUM_SEGMENT));
            prop_assert!(points.iter().all(|point| point.p_value < rule.p_value && point.delta.abs() > rule.magnitude.ln_1p()));
        }
    }
}
