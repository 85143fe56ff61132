//! The reference vectors, from files through the command to its JSON output.

use serde_json::Value;

use super::{fixture, json, place_with_vectors, vectors};

/// Compares named values with those of the vectors.
struct Check<'a> {
    set: &'a str,
    actual: &'a Value,
    expected: &'a Value,
}

impl Check<'_> {
    /// Each pair: a path in the output, the path in the vectors; null on one side is null on the other.
    #[track_caller]
    fn close(&self, relative: f64, pairs: &[(&str, &str)]) {
        for (ours, theirs) in pairs {
            let found = at(self.actual, ours);
            let wanted = at(self.expected, theirs);
            let is_right = match (found.as_f64(), wanted.as_f64()) {
                (Some(found), Some(wanted)) => (found - wanted).abs() <= (relative * wanted.abs()).max(1e-15),
                _ => found == wanted,
            };
            assert!(is_right, "{}: {ours} is {found}, not {theirs} = {wanted}", self.set);
        }
    }
}

/// The value at `a.b.0.c`; a path to nothing fails.
#[track_caller]
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| {
        let next = key.parse::<usize>().ok().map_or_else(|| value.get(key), |index| value.get(index));
        next.unwrap_or_else(|| panic!("no `{key}` of `{path}`"))
    })
}

#[test]
fn one_sample_vectors_hold_end_to_end() {
    let place = place_with_vectors();
    for (name, set) in vectors()["one_sample"].as_object().unwrap() {
        let output = json(&place, &[&format!("{name}.txt")]);
        let check = Check { set: name, actual: &output["series"][0], expected: &set["expected"] };
        check.close(
            1e-12,
            &[
                ("n", "n"),
                ("moments.sum", "sum"),
                ("moments.mean", "mean"),
                ("moments.variance", "variance"),
                ("moments.standard_deviation", "std"),
                ("moments.standard_error", "sem"),
                ("moments.coefficient_of_variation", "cv"),
                ("moments.geometric_mean", "geometric_mean"),
                ("moments.harmonic_mean", "harmonic_mean"),
                ("robust.median", "median"),
                ("robust.median_absolute_deviation", "mad_raw"),
                ("robust.standard_deviation", "mad_normal"),
                ("robust.min", "min"),
                ("robust.max", "max"),
            ],
        );
        check.close(
            1e-9,
            &[
                ("moments.skewness", "skewness_G1"),
                ("moments.excess_kurtosis", "excess_kurtosis_G2"),
                ("moments.bimodality_coefficient", "bimodality_coefficient"),
                ("robust.largest_score", "modified_z.max_abs_raw_score"),
            ],
        );
        assert_eq!(check.actual["robust"]["beyond_ten_deviations"], check.expected["modified_z"]["n_above_14.826"]);
        check.close(
            1e-10,
            &[
                ("precision.independent.interval.low", "ci_mean_t.1.lo"),
                ("precision.independent.interval.high", "ci_mean_t.1.hi"),
                ("precision.effective.interval.low", "ci_mean_ess_95.lo"),
                ("precision.effective.interval.high", "ci_mean_ess_95.hi"),
                ("precision.values_for_one_percent_normal", "n_for_1pct_ci.z_formula_real"),
                ("precision.values_for_one_percent", "n_for_1pct_ci.t_exact"),
                ("order.autocorrelation_time", "autocorrelation.tau_geyer"),
                ("order.effective_n", "autocorrelation.ess"),
                ("order.lag_one_correlation", "autocorrelation.rho1"),
                ("quantiles.4.effective.autocorrelation_time", "ci_median_ess_95.tau_indicator"),
                ("quantiles.4.effective.low", "ci_median_ess_95.lo"),
                ("quantiles.4.effective.high", "ci_median_ess_95.hi"),
            ],
        );
        check_quantiles(&check);
        check_shape(&check);
    }
}

fn check_quantiles(check: &Check<'_>) {
    for (index, probability) in [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999].iter().enumerate() {
        let quantile = &check.actual["quantiles"][index];
        assert_eq!(quantile["probability"].as_f64(), Some(*probability));
        let key = probability.to_string();
        for (ours, theirs) in
            [("value", "quantile_type7"), ("nearest_rank", "quantile_nearest_rank"), ("loadgen", "quantile_loadgen")]
        {
            let (found, wanted) = (quantile[ours].as_f64().unwrap(), check.expected[theirs][&key].as_f64().unwrap());
            assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{}: {ours} {key}", check.set);
        }
        let is_default = |case: &&Value| case["p"].as_f64() == Some(*probability) && case["conf"] == 0.95;
        let find = |key: &str| check.expected[key].as_array().unwrap().iter().find(is_default).cloned();
        if let Some(case) = find("ci_quantile_binomial") {
            let case = Check { set: check.set, actual: &quantile["independent"], expected: &case };
            case.close(
                1e-8,
                &[
                    ("rank_low", "rank_lo"),
                    ("rank_high", "rank_hi"),
                    ("low", "lo"),
                    ("high", "hi"),
                    ("coverage", "coverage"),
                ],
            );
        }
        if let Some(case) = find("upper_bound_quantile") {
            assert_eq!(quantile["upper_bound"]["rank"], case["rank"]);
            assert_eq!(quantile["upper_bound"]["value"], case["value"]);
        }
    }
}

fn check_shape(check: &Check<'_>) {
    let (actual, expected) = (check.actual, check.expected);
    for (ours, theirs) in [("low_severe", "low_severe"), ("low_mild", "low_mild"), ("normal", "normal")] {
        assert_eq!(actual["outliers"][ours], expected["tukey"]["counts"][theirs], "{}", check.set);
    }
    assert_eq!(actual["outliers"]["high_mild"], expected["tukey"]["counts"]["high_mild"]);
    assert_eq!(actual["outliers"]["high_severe"], expected["tukey"]["counts"]["high_severe"]);
    assert_eq!(actual["modality"]["modes"].as_array().unwrap().len() as u64, expected["kde_modes"]["modes"]);
    check.close(1e-10, &[("modality.bandwidth", "kde_modes.bandwidth")]);
    if expected["mser5"]["truncate"].is_null() {
        assert!(actual["order"]["mser"].is_null());
    } else {
        check.close(
            1e-10,
            &[
                ("order.mser.truncate", "mser5.truncate"),
                ("order.mser.statistic", "mser5.statistic"),
                ("order.mser.at_bound", "mser5.hit_bound"),
            ],
        );
    }
    if expected["batch_means_20"].is_null() {
        assert!(actual["precision"]["batch_means"].is_null());
    } else {
        check.close(
            1e-10,
            &[
                ("precision.batch_means.batch_size", "batch_means_20.batch_size"),
                ("precision.batch_means.estimate.value", "batch_means_20.mean"),
                ("precision.batch_means.lag_one_correlation", "batch_means_20.lag1"),
            ],
        );
    }
}

#[test]
fn other_confidences_hold_end_to_end() {
    let place = place_with_vectors();
    let expected = &vectors()["one_sample"]["normal"]["expected"];
    for (index, confidence) in [(0, "90%"), (2, "0.99")] {
        let output = json(&place, &["normal.txt", "--confidence", confidence]);
        let check = Check { set: confidence, actual: &output["series"][0], expected: &expected["ci_mean_t"][index] };
        check.close(
            1e-10,
            &[("precision.independent.interval.low", "lo"), ("precision.independent.confidence", "conf")],
        );
    }
}

#[test]
fn two_sample_vectors_hold_end_to_end() {
    let place = place_with_vectors();
    for (name, set) in vectors()["two_sample"].as_object().unwrap() {
        let files = [format!("{name}-a.txt"), format!("{name}-b.txt")];
        let output = json(&place, &[&files[0], &files[1], "--interleaved"]);
        let check = Check { set: name, actual: &output["comparison"], expected: &set["expected"] };
        check.close(
            1e-10,
            &[
                ("tests.welch.difference", "welch.diff"),
                ("tests.welch.t", "welch.t"),
                ("tests.welch.degrees_of_freedom", "welch.df"),
                ("tests.welch.interval.low", "welch.ci_lo"),
                ("tests.welch.interval.high", "welch.ci_hi"),
                ("tests.welch_log.difference", "welch_log.diff"),
                ("tests.welch_log.standard_error", "welch_log.se"),
                ("tests.welch_log.degrees_of_freedom", "welch_log.df"),
                ("tests.welch_log.t", "welch_log.t"),
                ("tests.mann_whitney.u_baseline", "mann_whitney.U_a"),
                ("tests.mann_whitney.u_candidate", "mann_whitney.U_b"),
                ("tests.mann_whitney.sigma", "mann_whitney.sigma"),
                ("tests.mann_whitney.z", "mann_whitney.z_cc"),
                ("effect_sizes.cliffs_delta.delta", "cliffs_delta"),
                ("effect_sizes.cliffs_delta.a12", "vargha_delaney_A_b"),
                ("effect_sizes.hedges_g.cohens_d", "hedges.cohen_d"),
                ("effect_sizes.hedges_g.correction", "hedges.J_exact"),
                ("effect_sizes.hedges_g.g", "hedges.hedges_g"),
                ("effect_sizes.hodges_lehmann_shift", "hodges_lehmann_shift"),
                ("ratios.means.ratio", "fieller.ratio"),
                ("ratios.means.g", "fieller.g"),
                ("ratios.means.fieller.low", "fieller.lo"),
                ("ratios.means.fieller.high", "fieller.hi"),
                ("ratios.means.kalibera_jones.low", "fieller.kalibera_jones_lo"),
                ("ratios.means.kalibera_jones.high", "fieller.kalibera_jones_hi"),
            ],
        );
        check.close(
            1e-8,
            &[
                ("tests.welch.p", "welch.p_two_sided"),
                ("tests.welch_log.p", "welch_log.p_two_sided"),
                ("tests.mann_whitney.p", "mann_whitney.p"),
                ("tests.mann_whitney.p_exact", "mann_whitney.p_exact"),
                ("tests.mann_whitney.p_normal", "mann_whitney.p_asymptotic_cc"),
            ],
        );
        let exact = &check.expected["permutation_exact_diff_means"];
        if !exact.is_null() {
            check.close(
                1e-8,
                &[
                    ("tests.permutation.count", "permutation_exact_diff_means.count"),
                    ("tests.permutation.total", "permutation_exact_diff_means.total"),
                    ("tests.permutation.p", "permutation_exact_diff_means.p"),
                ],
            );
        }
    }
}

#[test]
fn unpaired_verdicts_hold_end_to_end() {
    let place = place_with_vectors();
    let file = fixture("yuen.json");
    for (name, expected) in file["sets"].as_object().unwrap() {
        let files = [format!("{name}-a.txt"), format!("{name}-b.txt")];
        let designs: [&[&str]; 3] = [&["--interleaved"], &[], &["--session-spread", "3%"]];
        for (design, case) in designs.iter().zip(expected["verdicts"].as_array().unwrap()) {
            let output = json(&place, &[&[files[0].as_str(), &files[1]], *design].concat());
            let check = Check { set: name, actual: &output["comparison"], expected: case };
            assert_eq!(words(&check.actual["verdict"]), case["verdict"], "{name} {design:?}");
            assert_eq!(output["terms"]["session_spread"], case["sigma_session"]);
            check.close(
                1e-10,
                &[
                    ("unpaired.error.standard_error", "se"),
                    ("unpaired.error.degrees_of_freedom", "df"),
                    ("unpaired.interval.low", "ci_lo"),
                    ("unpaired.interval.high", "ci_hi"),
                ],
            );
        }
        let output = json(&place, &[&files[0], &files[1], "--interleaved"]);
        let check = Check { set: name, actual: &output["comparison"], expected };
        check.close(
            1e-8,
            &[
                ("unpaired.theta", "theta"),
                ("tests.equivalence.p", "p_tost"),
                ("unpaired.minimum_effect.p_worse", "p_slower"),
                ("unpaired.minimum_effect.p_better", "p_faster"),
                ("unpaired.minimum_effect.p_min_effect", "p_min_effect_two_sided"),
            ],
        );
    }
}

/// The word of the vectors, which speak of times.
fn words(verdict: &Value) -> &str {
    match verdict.as_str().unwrap() {
        "worse" => "slower",
        "better" => "faster",
        same => same,
    }
}

#[test]
fn paired_vectors_hold_end_to_end() {
    let place = place_with_vectors();
    for (name, set) in vectors()["paired"].as_object().unwrap() {
        let output = json(&place, &[&format!("{name}-a.txt"), &format!("{name}-b.txt"), "--paired"]);
        let check = Check { set: name, actual: &output["comparison"], expected: &set["expected"] };
        assert_eq!(words(&check.actual["verdict"]), check.expected["verdict"]);
        check.close(
            1e-10,
            &[
                ("ratio.value", "ratio"),
                ("ratio.interval.low", "ratio_ci.0"),
                ("ratio.interval.high", "ratio_ci.1"),
                ("paired.theta", "middle_half.estimate"),
                ("paired.winsorised_deviation", "middle_half.winsorised_sd"),
                ("paired.detectable_effect", "detectable"),
                ("tests.paired_t.mean", "t.mean"),
                ("tests.paired_t.standard_deviation", "t.sd"),
                ("tests.paired_t.t", "t.t"),
                ("tests.paired_t.interval.low", "t.ci.0"),
                ("tests.signed_rank.positive_rank_sum", "wilcoxon.W_plus"),
                ("tests.signed_rank.interval_rank", "wilcoxon.walsh_rank_k"),
                ("tests.signed_rank.hodges_lehmann", "wilcoxon.hl"),
                ("tests.sign_flip.count", "sign_flip_exact.count"),
                ("tests.sign_flip.total", "sign_flip_exact.total"),
            ],
        );
        check.close(
            1e-8,
            &[
                ("tests.paired_t.p", "t.p"),
                ("tests.signed_rank.p", "wilcoxon.p_exact"),
                ("tests.sign_flip.p", "sign_flip_exact.p"),
            ],
        );
        check.close(
            1e-8,
            &[
                ("paired.minimum_effect.p_worse", "min_effect.p_slower"),
                ("paired.minimum_effect.p_better", "min_effect.p_faster"),
                ("tests.equivalence.p", "min_effect.p_tost"),
            ],
        );
    }
}

#[test]
fn nested_vectors_hold_end_to_end() {
    let place = place_with_vectors();
    let expected = &vectors()["nested"]["expected"];
    for name in ["a", "b", "a_unbalanced"] {
        let output = json(&place, &[&format!("{name}.json"), "--run-cost", "300"]);
        let check = Check { set: name, actual: &output["series"][0]["runs"], expected: &expected[name] };
        check.close(
            1e-10,
            &[
                ("count", "R"),
                ("two_level.mean_of_run_means", "mean_of_run_means"),
                ("two_level.s1_squared", "S1_sq"),
                ("two_level.s2_squared", "S2_sq"),
                ("two_level.harmonic_n", "harmonic_mean_n"),
                ("two_level.t1_squared", "T1_sq"),
                ("two_level.t2_squared", "T2_sq"),
                ("two_level.intraclass_correlation", "icc"),
                ("two_level.interval.low", "ci.0"),
                ("two_level.interval.high", "ci.1"),
            ],
        );
    }
    let output = json(&place, &["a.json", "b.json"]);
    let bootstrap = &output["comparison"]["ratios"]["bootstrap_means"];
    let check = Check { set: "a, b", actual: bootstrap, expected: &expected["hier_bootstrap_mean"] };
    check.close(1e-10, &[("value", "estimate"), ("expanded_tail", "expanded_alpha")]);
    let output = json(&place, &["a.json", "b.json", "--paired"]);
    let bootstrap = &output["comparison"]["ratios"]["bootstrap_medians"];
    let check = Check { set: "a, b", actual: bootstrap, expected: &expected["hier_bootstrap_median_blocked"] };
    check.close(1e-10, &[("value", "estimate")]);
}
