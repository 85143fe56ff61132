//! The marginal standard error rule: which cut leaves the mean of the rest most precise (method 2.4).

use crate::moments::mean;

/// Where MSER would cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Truncation {
    /// Number of samples before the cut.
    pub truncate: usize,
    /// The marginal standard error rule's statistic there.
    pub statistic: f64,
    /// Whether the cut is the last one allowed, half-way: no steady state was seen.
    pub at_bound: bool,
}

/// The cut that minimises the squared standard error of what remains, over means of `group` samples, at most half-way
/// and leaving at least `minimum_groups` groups. An incomplete last group is ignored.
///
/// `None` if there is no cut to judge, and for values that are not finite.
pub(super) fn mser(samples: &[f64], group: usize, minimum_groups: usize) -> Option<Truncation> {
    if group == 0 {
        return None;
    }
    let groups: Vec<f64> = samples.chunks_exact(group).filter_map(mean).collect();
    let last_cut = groups.len() / 2;
    let mut best: Option<Truncation> = None;
    // From the end, so that each statistic updates the one before in constant time (Welford 1962).
    let (mut center, mut squares) = (0.0, 0.0);
    for (cut, value) in groups.iter().enumerate().rev() {
        let remaining = groups.len() - cut;
        let distance = value - center;
        center += distance / remaining as f64;
        squares += distance * (value - center);
        if cut > last_cut || remaining < minimum_groups.max(1) {
            continue;
        }
        let statistic = squares / (remaining as f64).powi(2);
        // The first minimiser wins, which in this direction is the last that is not worse.
        if statistic.is_finite() && best.is_none_or(|best| statistic <= best.statistic) {
            best = Some(Truncation { truncate: cut * group, statistic, at_bound: cut == last_cut && cut > 0 });
        }
    }
    best
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers, one_sample};
    use proptest::prelude::*;

    #[test]
    fn reference_cuts_hold() {
        for (name, data, expected) in one_sample() {
            let case = &expected["mser5"];
            let cut = mser(&data, count(&case["batch"]), 5);
            assert_eq!(cut.is_some(), !case["truncate"].is_null(), "{name}");
            let Some(cut) = cut else { continue };
            assert_eq!(cut.truncate, count(&case["truncate"]), "{name}");
            assert_close(cut.statistic, number(&case["statistic"]), 1e-12);
            assert_eq!(cut.at_bound, case["hit_bound"].as_bool().unwrap(), "{name}");
        }
    }

    #[test]
    fn example_of_tinytorch_needs_three_warm_up_runs() {
        let question = &load()["tinytorch_module19"]["Q3"];
        for key in ["no_warmup", "warmup"] {
            let case = &question[format!("mser1_{key}")];
            let cut = mser(&numbers(&question[key]), 1, 1).unwrap();
            assert_eq!(cut.truncate, count(&case["truncate"]));
            assert_close(cut.statistic, number(&case["statistic"]), 1e-12);
            assert_eq!(cut.at_bound, case["hit_bound"].as_bool().unwrap());
        }
    }

    #[test]
    fn what_has_no_cut_has_none() {
        assert_eq!(mser(&[], 5, 5), None);
        assert_eq!(mser(&[1.0], 0, 5), None);
        assert!(!mser(&[1.0], 1, 1).unwrap().at_bound);
    }

    proptest! {
        #[test]
        fn cut_matches_the_definition(samples in prop::collection::vec(1.0_f64..2.0, 50..200)) {
            let groups: Vec<f64> = samples.chunks_exact(5).map(|group| mean(group).unwrap()).collect();
            let statistic = |cut: usize| {
                let rest = &groups[cut..];
                let center = mean(rest).unwrap();
                rest.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
            };
            let cut = mser(&samples, 5, 5).unwrap();
            assert_close(cut.statistic, statistic(cut.truncate / 5), 1e-10);
            let least = (0..=groups.len() / 2).filter(|cut| groups.len() - cut >= 5).map(statistic).fold(f64::MAX, f64::min);
            assert_close(cut.statistic, least, 1e-10);
        }
    }
}
