//! The reference vectors, from files through the command to its JSON output.

use serde_json::Value;

use super::{fixture, json, project_with_vectors, vectors};

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

/// The value at `a.b.0.c`, or `a/0.95` where a key has a point; a path to nothing fails.
#[track_caller]
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let separator = if path.contains('/') { '/' } else { '.' };
    path.split(separator).fold(value, |value, key| {
        let next = if value.is_array() { value.get(key.parse::<usize>().unwrap()) } else { value.get(key) };
        next.unwrap_or_else(|| panic!("no `{key}` of `{path}`"))
    })
}

#[test]
fn one_sample_vectors_hold_end_to_end() {
    let project = project_with_vectors();
    for (name, set) in vectors()["one_sample"].as_object().unwrap() {
        let output = json(&project, &[&format!("{name}.txt")]);
        let check = Check { set: name, actual: &output["benchmarks"][0]["series"][0], expected: &set["expected"] };
        check.close(
            1e-10,
            &[
                ("values", "n"),
                ("effective_n", "autocorrelation.ess"),
                ("estimates.mean.value", "mean"),
                ("estimates.mean.low", "ci_mean_ess_95.lo"),
                ("estimates.mean.high", "ci_mean_ess_95.hi"),
                ("estimates.stddev.value", "std"),
                ("estimates.min.value", "min"),
                ("estimates.median.value", "median"),
                ("estimates.p95.value", "quantile_type7/0.95"),
                ("estimates.p99.value", "quantile_type7/0.99"),
            ],
        );
        check_median(&check);
    }
}

/// The exact interval, unless the values are correlated around the median.
fn check_median(check: &Check<'_>) {
    let effective = &check.expected["ci_median_ess_95"];
    let exact = check.expected["ci_quantile_binomial"].as_array().unwrap().iter();
    let exact = exact.clone().find(|case| case["p"] == 0.5 && case["conf"] == 0.95).unwrap();
    let is_correlated = effective["tau_indicator"].as_f64().unwrap() > 1.05;
    let expected = if is_correlated { effective } else { exact };
    let median = Check { set: check.set, actual: &check.actual["estimates"]["median"], expected };
    median.close(1e-10, &[("low", "lo"), ("high", "hi")]);
}

#[test]
fn other_confidences_hold_end_to_end() {
    let project = project_with_vectors();
    let expected = &vectors()["one_sample"]["normal"]["expected"];
    // These values are not correlated, so that their effective number is their number.
    for (index, confidence) in [(0, "90%"), (2, "0.99")] {
        let output = json(&project, &["normal.txt", "--confidence", confidence]);
        assert_eq!(
            output["benchmarks"][0]["series"][0]["effective_n"].as_f64(),
            output["benchmarks"][0]["series"][0]["values"].as_f64()
        );
        assert_eq!(output["terms"]["confidence"], expected["ci_mean_t"][index]["conf"]);
        let check = Check {
            set: confidence,
            actual: &output["benchmarks"][0]["series"][0],
            expected: &expected["ci_mean_t"][index],
        };
        check.close(1e-10, &[("estimates.mean.low", "lo"), ("estimates.mean.high", "hi")]);
    }
}

#[test]
fn unpaired_verdicts_hold_end_to_end() {
    let project = project_with_vectors();
    let file = fixture("yuen.json");
    for (name, expected) in file["sets"].as_object().unwrap() {
        let files = [format!("{name}-a.txt"), format!("{name}-b.txt")];
        let designs: [&[&str]; 3] = [&["--interleaved"], &[], &["--session-spread", "3%"]];
        for (design, case) in designs.iter().zip(expected["verdicts"].as_array().unwrap()) {
            let output = json(&project, &[&[files[0].as_str(), &files[1]], *design].concat());
            let comparison = &output["benchmarks"][0]["comparison"];
            assert_eq!(words(&comparison["verdict"]), case["verdict"], "{name} {design:?}");
            assert_eq!(output["terms"]["session_spread"], case["sigma_session"]);
            let is_closed = |ours: &str, theirs: &str| {
                let (found, wanted) = (comparison[ours].as_f64().unwrap(), case[theirs].as_f64().unwrap().exp());
                (found - wanted).abs() <= 1e-10 * wanted
            };
            assert!(is_closed("low", "ci_lo") && is_closed("high", "ci_hi"), "{name}: {comparison}");
        }
        let comparison = &json(&project, &[&files[0], &files[1], "--interleaved"])["benchmarks"][0]["comparison"];
        let log = comparison["ratio"].as_f64().unwrap().ln();
        let wanted = expected["theta"].as_f64().unwrap();
        assert!((log - wanted).abs() <= 1e-10, "{name}: {log}, not {wanted}");
        let check = Check { set: name, actual: comparison, expected };
        check.close(1e-8, &[("p", "p_min_effect_two_sided")]);
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
    let project = project_with_vectors();
    for (name, set) in vectors()["paired"].as_object().unwrap() {
        let output = json(&project, &[&format!("{name}-a.txt"), &format!("{name}-b.txt"), "--paired"]);
        let check = Check { set: name, actual: &output["benchmarks"][0]["comparison"], expected: &set["expected"] };
        assert_eq!(words(&check.actual["verdict"]), check.expected["verdict"]);
        check.close(
            1e-8,
            &[
                ("ratio", "ratio"),
                ("low", "ratio_ci.0"),
                ("high", "ratio_ci.1"),
                ("detectable", "detectable"),
                ("p", "min_effect.p_min_effect_two_sided"),
            ],
        );
    }
}
