//! `perfrun calibrate` from YAML to its files, with scripted latencies.

use judge::compare::Calibration;

use crate::support::Project;

const SPEC: &str = "\
backend: { mock: { median: 1ms, run_sd: 1%, noise: 2% } }
models: [m, n]
variants: [fp32, { name: other, mock: { scale: 2 } }]
runs: 10
measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 60 } }
";

fn calibration(arguments: &[&str]) -> Calibration {
    let project = Project::with_spec(SPEC);
    let mut words = vec!["calibrate", "x.yaml", "--json"];
    words.extend(arguments);
    let output = project.run(&words).expect_code(0);
    serde_json::from_str(&output.stdout).expect("calibration.json")
}

#[test]
fn identical_code_is_not_called_different_and_slower_code_is_found() {
    let found = calibration(&["--comparisons", "6", "--effect", "5%", "--effect", "10%"]);
    let effects: Vec<f64> = found.effects.iter().map(|effect| effect.effect.0).collect();
    assert_eq!(effects, [0.0, 0.05, 0.1]);
    // Two groups make the six comparisons in three rounds of the experiment's ten runs.
    assert!(found.effects.iter().all(|effect| effect.comparisons == 6));
    assert_eq!((found.runs, found.noise.len()), (10, 2));
    assert_eq!(found.effects[0].perfrun.different, 0);
    assert_eq!(found.effects[2].perfrun.different, 6);
    assert!(found.grade.is_some());
}

#[test]
fn one_side_after_the_other_is_judged_alike() {
    let found = calibration(&["--comparisons", "4", "--design", "sequential"]);
    assert!(found.effects.iter().all(|effect| effect.comparisons == 4));
    assert_eq!(found.effects[0].perfrun.different, 0);
}

#[test]
fn an_effect_that_is_none_is_refused() {
    let project = Project::with_spec(SPEC);
    let output = project.run(&["calibrate", "x.yaml", "--effect", "0%"]).expect_code(2);
    assert!(output.stderr.contains("is not a slowdown"), "{}", output.stderr);
}

#[test]
fn a_required_grade_is_checked_before_anything_is_measured() {
    let noisy = SPEC.replace("run_sd: 1%", "run_sd: 30%");
    let project = Project::with_spec(&format!("{noisy}require: {{ grade: B }}\n"));
    let refused = project.run(&["run", "x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("gives grade D"), "{}", refused.stderr);
    assert!(!project.path("reports/x/results.json").exists());
    let project = Project::with_spec(&format!("{SPEC}require: {{ grade: C }}\n"));
    project.run(&["run", "x.yaml"]).expect_code(0);
}

#[test]
fn a_control_that_fails_meets_no_requirement() {
    // The rehearsal takes no counted samples, so the failure shows in the control first.
    let spec =
        SPEC.replace("variants: [fp32,", "variants: [{ name: fp32, mock: { fail: { kind: error, at: measure } } },");
    let project = Project::with_spec(&format!("{spec}require: {{ grade: C }}\n"));
    let refused = project.run(&["run", "x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("the grade is unknown"), "{}", refused.stderr);
}

#[test]
fn a_selected_variant_is_the_one_that_is_calibrated() {
    let project = Project::with_spec(SPEC);
    for (only, variant, groups) in [
        ("variant=fp32", "fp32", 2),
        ("variant=other", "other", 2),
        ("variant=fp32|other,model=n", "fp32", 1),
        ("model=n", "fp32", 1),
    ] {
        let words = ["calibrate", "x.yaml", "--json", "--comparisons", "2", "--only", only];
        let done = project.run(&words).expect_code(0);
        let found: Calibration = serde_json::from_str(&done.stdout).expect("calibration.json");
        assert_eq!(found.noise.len(), groups, "{only}");
        let records = record::Record::open(&newest(&project)).expect("a record");
        assert_eq!(records.manifest.plan.baseline.map(|it| it.name), Some(variant.to_owned()), "{only}");
    }
    let refused = |only: &str| project.run(&["calibrate", "x.yaml", "--only", only]).expect_code(2).stderr;
    assert!(refused("variant=nope").contains("no variant is named `nope`"));
    assert!(refused("variant=z*").contains("matches no variant"));
}

fn newest(project: &Project) -> std::path::PathBuf {
    let folder = std::fs::read_dir(project.path(".perfrun/records/x-calibration")).expect("records");
    folder.map(|entry| entry.expect("an entry").path()).max().expect("a record")
}
