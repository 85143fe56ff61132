//! Runs the experiments whose reports once contained a false sentence, and checks every claim that is made about them now,
//! whatever the machine does meanwhile.

use std::os::unix::fs::PermissionsExt;

use judge::results::{Kind, Results, Topic};

use super::claims::Checker;
use crate::support::Project;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/claims");
const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");

/// The answer, and the results.
fn measured(name: &str, settings: &[&str]) -> (String, Results) {
    let project = Project::new();
    let copy = |from: String, to: &str| {
        std::fs::create_dir_all(project.path(to).parent().unwrap()).unwrap();
        std::fs::copy(from, project.path(to)).unwrap();
    };
    for file in [&format!("{name}.yaml"), "fake.py"] {
        copy(format!("{FIXTURES}/{file}"), file);
    }
    std::fs::set_permissions(project.path("fake.py"), PermissionsExt::from_mode(0o755)).unwrap();
    for model in ["digits-mlp", "digits-cnn"] {
        for folder in ["models/", ""] {
            copy(format!("{EXPERIMENTS}/models/{model}.onnx"), &format!("{folder}{model}.onnx"));
        }
    }
    copy(format!("{EXPERIMENTS}/data/digits-test.npz"), "data/digits-test.npz");
    let spec = format!("{name}.yaml");
    let mut arguments = vec![spec.as_str()];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let done = project.run(&arguments);
    assert!([0, 4].contains(&done.code), "{}", done.stderr);
    // What is narrowed is no report to commit.
    let report =
        if settings.is_empty() { project.path(&format!("reports/{name}")) } else { project.record_folder(name) };
    let results = judge::results::read(&report.join("results.json")).unwrap();
    let checked = Checker::new(&results).check_all().unwrap_or_else(|why| panic!("{name}: {why}"));
    // On a busy machine programs that are timed may have no verdict.
    let is_scripted = results.method.backend == "mock";
    assert!(checked > 0 || !is_scripted, "{name}: nothing is claimed");
    (std::fs::read_to_string(report.join("report.md")).unwrap(), results)
}

fn has(results: &Results, topic: Topic, kind: impl Fn(&Kind) -> bool) -> bool {
    results.claims_on(topic).any(|claim| kind(&claim.kind))
}

#[test]
fn a_faster_cell_and_a_slower_one_are_no_set() {
    let (report, results) = measured("contra4", &[]);
    assert!(has(&results, Topic::Answer(0), |kind| matches!(kind, Kind::Better { .. })), "{:?}", results.claims);
    assert!(!has(&results, Topic::Answer(0), |kind| *kind == Kind::Equivalent));
    assert!(!report.contains("equivalent to each other"), "{report}");
}

#[test]
fn a_sentence_of_two_batches_holds_for_both() {
    let (report, _) = measured("joined", &[]);
    let of_eight = report.lines().find(|line| line.starts_with("- **b8: fast.**")).expect("one of its own");
    assert!(report.contains("- **b1: fast.**") && !of_eight.contains("third"), "{report}");
}

#[test]
fn a_bound_that_a_few_bad_runs_miss_is_not_kept() {
    let (report, results) = measured("late", &[]);
    let is_kept = |kind: &Kind| *kind == Kind::Kept;
    assert!(!has(&results, Topic::Load(0), is_kept) && !has(&results, Topic::Goal(0), is_kept), "{report}");
}

#[test]
fn accuracies_are_compared_by_their_items() {
    let (report, results) = measured("acc3", &[]);
    // int8 answers as many items or a few fewer: file and memory are smaller, and "as fast" is not what was asked.
    assert!(has(&results, Topic::Accuracy, |_| true), "{report}");
    assert!(!report.lines().any(|line| line.starts_with("**Smallest") && line.contains("as fast")), "{report}");
    measured("acc", &[]);
}

#[test]
fn numbers_of_a_tie_hold_for_each_batch() {
    measured("tie2", &["runs=8"]);
}

#[test]
fn a_promise_under_load_is_about_bad_runs_too() {
    measured("stall", &["runs=5", "measure.stop.time=500ms"]);
}
