//! The values of the reference vectors that no other test of this package checks, and the list of those that are checked
//! elsewhere, so that a new one cannot go unnoticed (method 10).
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;

use super::autocorrelation::effective_sample_size;
use super::autocorrelation::{mean_interval_ess, quantile_interval_ess};
use super::distribution::student_t_quantile;
use super::interval::mean_interval;
use super::moments::{mean, standard_deviation, variance};
use super::quantile::{quantile_sorted, sorted};
use super::stopping::next_check;
use super::vectors::{assert_close, count, load, number, numbers, one_sample};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_key_is_known() {
    let file = load();
    let groups = "schema part generator tolerances one_sample stopping two_sample paired k_sample nested \
                  change_points warmup poisson_schedule prng pareto planning \
                  tinytorch_module19";
    assert_eq!(keys(&file), groups.split_whitespace().collect::<Vec<_>>());
    let of_samples = "n sum mean variance std sem cv median mad_raw mad_normal min max quantile_type7 \
                      quantile_type8_statrs_NOT_USED ci_mean_t ci_quantile_binomial skewness_G1 excess_kurtosis_G2 \
                      bimodality_coefficient kde_modes tukey modified_z autocorrelation ci_mean_ess_95 ci_median_ess_95 \
                      mser5";
    for (name, _, expected) in one_sample() {
        assert_eq!(keys(&expected), of_samples.split_whitespace().collect::<Vec<_>>(), "{name}");
    }
    let of_runs = "T1_sq T2_sq df ci naive_pooled_half_width optimal_iterations_real optimal_iterations \
                   cost_iteration cost_run";
    for key in ["a", "b", "a_unbalanced"] {
        assert_eq!(keys(&file["nested"]["expected"][key]), of_runs.split_whitespace().collect::<Vec<_>>());
    }
    assert_eq!(keys(&file["planning"]), ["detectable"]);
    assert_eq!(keys(&file["tinytorch_module19"]), ["Q3", "Q4", "Q5"]);
}

#[test]
fn tolerances_are_those_that_the_tests_use() {
    let tolerances = &load()["tolerances"];
    assert_eq!(number(&tolerances["moments_quantiles_rel"]), 1e-12);
    assert_eq!(number(&tolerances["t_normal_quantiles_rel"]), 1e-10);
    assert_eq!(number(&tolerances["p_values_rel"]), 1e-8);
    assert_eq!(number(&tolerances["p_values_abs"]), 1e-15);
    assert_eq!(tolerances["integers"], "exact");
}

#[test]
fn size_extremes_and_standard_error_hold() {
    for (_, data, expected) in one_sample() {
        assert_eq!(data.len(), count(&expected["n"]));
        let ordered = sorted(&data);
        assert_eq!(quantile_sorted(&ordered, 0.0), expected["min"].as_f64());
        assert_eq!(quantile_sorted(&ordered, 1.0), expected["max"].as_f64());
        // The half width of the t interval is so many standard errors.
        let half_width = mean_interval(&data, 0.95).unwrap().interval.unwrap().half_width();
        let errors = student_t_quantile(0.975, (data.len() - 1) as f64);
        assert_close(half_width / errors, number(&expected["sem"]), 1e-12);
    }
}

#[test]
fn degrees_of_freedom_hold() {
    for (_, data, expected) in one_sample() {
        for interval in expected["ci_mean_t"].as_array().unwrap() {
            assert_eq!(data.len() - 1, count(&interval["df"]));
        }
        assert_close(effective_sample_size(&data) - 1.0, number(&expected["ci_mean_ess_95"]["df"]), 1e-10);
    }
    for key in ["a", "b", "a_unbalanced"] {
        let (runs, expected) = nested(key);
        assert_eq!(runs.len() - 1, count(&expected["df"]));
    }
}

#[test]
fn intervals_hold_at_the_confidence_that_they_name() {
    for (_, data, expected) in one_sample() {
        let case = &expected["ci_mean_ess_95"];
        let interval = mean_interval_ess(&data, number(&case["conf"])).unwrap().interval.unwrap();
        assert_close(interval.high, number(&case["hi"]), 1e-10);
        let case = &expected["ci_median_ess_95"];
        let median = quantile_interval_ess(&data, number(&case["p"]), number(&case["conf"])).unwrap();
        assert_close(median.value, number(&expected["median"]), 1e-12);
    }
}

#[test]
fn interquartile_ranges_hold() {
    for (_, data, expected) in one_sample() {
        let ordered = sorted(&data);
        let [first, third] = [0.25, 0.75].map(|quartile| quantile_sorted(&ordered, quartile).unwrap());
        assert_close(first, number(&expected["tukey"]["q1"]), 1e-12);
        assert_close(third, number(&expected["tukey"]["q3"]), 1e-12);
        assert_close(third - first, number(&expected["tukey"]["iqr"]), 1e-12);
    }
}

#[test]
fn quantile_of_statrs_is_another_definition() {
    // Type 8: at (n + 1/3) p + 1/3, one-based. It is in the vectors so that a mix-up shows.
    for (name, data, expected) in one_sample() {
        let ordered = sorted(&data);
        for (probability, value) in expected["quantile_type8_statrs_NOT_USED"].as_object().unwrap() {
            let probability: f64 = probability.parse().unwrap();
            let position = (data.len() as f64 + 1.0 / 3.0) * probability + 1.0 / 3.0;
            let within = (position - 1.0).clamp(0.0, data.len() as f64 - 1.0);
            let by_type_8 = quantile_sorted(&ordered, within / (data.len() as f64 - 1.0)).unwrap();
            assert_close(by_type_8, number(value), 1e-12);
        }
        let used = quantile_sorted(&ordered, 0.99).unwrap();
        assert!((used - number(&expected["quantile_type8_statrs_NOT_USED"]["0.99"])).abs() > 1e-9, "{name}");
    }
}

#[test]
fn stopping_cases_are_on_the_grid() {
    for case in load()["stopping"].as_array().unwrap() {
        let first = count(&case["n0"]);
        assert_eq!(next_check(first), (first as f64 * number(&case["grow"])).ceil() as usize);
        assert_eq!(case["expected"]["stopped"].as_bool().unwrap(), !case["expected"]["n"].is_null());
    }
}

fn nested(key: &str) -> (Vec<Vec<f64>>, Value) {
    let nested = &load()["nested"];
    (nested[key].as_array().unwrap().iter().map(numbers).collect(), nested["expected"][key].clone())
}

#[test]
fn pooling_the_samples_of_runs_claims_too_much() {
    for key in ["a", "b", "a_unbalanced"] {
        let (runs, expected) = nested(key);
        let means: Vec<f64> = runs.iter().filter_map(|run| mean(run)).collect();
        let interval = mean_interval(&means, 0.95).unwrap().interval.unwrap();
        assert_close(interval.low, number(&expected["ci"][0]), 1e-10);
        assert_close(interval.high, number(&expected["ci"][1]), 1e-10);
        let pooled = mean_interval(&runs.concat(), 0.95).unwrap().interval.unwrap();
        assert_close(pooled.half_width(), number(&expected["naive_pooled_half_width"]), 1e-10);
        assert!(pooled.half_width() < interval.half_width() / 2.0);
    }
}

#[test]
fn third_question_of_tinytorch_holds() {
    let question = &load()["tinytorch_module19"]["Q3"];
    let (cold, warm) = (numbers(&question["no_warmup"]), numbers(&question["warmup"]));
    let difference = mean(&cold).unwrap() - mean(&warm).unwrap();
    assert_close(difference, number(&question["mean_reduction_ms"]), 1e-12);
    assert_close(difference / mean(&cold).unwrap(), number(&question["mean_reduction_frac"]), 1e-12);
    let reduction = |statistic: fn(&[f64]) -> Option<f64>| 1.0 - statistic(&warm).unwrap() / statistic(&cold).unwrap();
    assert_close(reduction(standard_deviation), number(&question["std_reduction_frac"]), 1e-12);
    assert_close(reduction(variance), number(&question["variance_reduction_frac"]), 1e-12);
    for (data, expected) in [&cold, &warm].into_iter().zip(numbers(&question["std_population"])) {
        let n = data.len() as f64;
        assert_close(standard_deviation(data).unwrap() * ((n - 1.0) / n).sqrt(), expected, 1e-12);
    }
}
