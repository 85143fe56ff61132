//! What stays: a committed report of a better grade, whole records, and the verdict on goals that a quick look cannot give.

use crate::support::Project;

/// A specification whose runs differ by this much.
fn spec(deviation: &str) -> String {
    format!(
        "backend: {{ mock: {{ run_sd: {deviation}, noise: 0.1% }} }}\nmodels: [m]\n\
         variants: [fp32, {{ name: int8, precision: int8, mock: {{ scale: 0.5 }} }}]\nruns: 12\n\
         measure: {{ stop: {{ mode: samples, count: 100 }} }}\n"
    )
}

#[test]
fn a_report_of_a_worse_grade_replaces_none_unasked() {
    let project = Project::with_spec(&spec("8%"));
    project.run(&["x.yaml"]).expect_code(0);
    let noisy = project.read("reports/x/results.json");
    let first = noisy.replace("\"grade\":\"D\"", "\"grade\":\"A\"");
    assert_ne!(first, noisy);
    project.write("reports/x/results.json", &first);
    let kept = project.run(&["x.yaml"]).expect_code(0);
    assert!(kept.stdout.contains("reports/x is kept: its grade is A, this run's D"), "{}", kept.stdout);
    assert!(kept.stdout.contains("wrote      .perfrun/records/x/"), "{}", kept.stdout);
    assert_eq!(project.read("reports/x/results.json"), first);
    project.run(&["x.yaml", "--replace"]).expect_code(0);
    assert_ne!(project.read("reports/x/results.json"), first);
    // The same grade again replaces it, and so does what another text of the specification gives.
    let noisy = project.read("reports/x/results.json");
    project.run(&["x.yaml"]).expect_code(0);
    assert_ne!(project.read("reports/x/results.json"), noisy);
    project.write("reports/x/results.json", &first);
    project.write("x.yaml", &(spec("8%") + "description: another\n"));
    project.run(&["x.yaml"]).expect_code(0);
    assert!(project.read("reports/x/results.json").contains("another"));
}

#[test]
fn a_more_complete_report_replaces_one_of_a_better_grade_and_a_less_complete_one_none() {
    let project = Project::with_spec(&spec("8%"));
    project.run(&["x.yaml"]).expect_code(0);
    let whole = project.read("reports/x/results.json");
    // As it was when int8 could not be run, on a quieter day.
    let with = |status: &str, grade: &str| {
        let mut results: serde_json::Value = serde_json::from_str(&whole).unwrap();
        results["cells"][1]["status"] = status.into();
        results["detectable_effect"]["grade"] = grade.into();
        project.write("reports/x/results.json", &results.to_string());
    };
    for before in ["skipped", "failed", "partial", "not_run"] {
        with(before, "A");
        let done = project.run(&["x.yaml"]).expect_code(0);
        assert!(done.stdout.contains("wrote      reports/x/"), "{before}: {}", done.stdout);
    }
    // The other way round: what it measured is skipped now.
    let project = Project::with_spec(
        "backend: { mock: { item: 1ms, fits: 2 } }\nmodels: [m]\nvariants: [v]\ninputs: { batch: [1, 4, 8, 16] }\nruns: 2\n",
    );
    project.run(&["x.yaml"]).expect_code(3);
    let mut results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let cells = results["cells"].as_array_mut().unwrap();
    for cell in cells.iter_mut().filter(|cell| cell["status"] == "skipped") {
        cell["status"] = "measured".into();
    }
    project.write("reports/x/results.json", &results.to_string());
    let kept = project.run(&["x.yaml"]).expect_code(3);
    assert!(kept.stdout.contains("reports/x is kept: it measured 2 cells that this run skipped"), "{}", kept.stdout);
    // One cell more, and two fewer.
    results["cells"][0]["status"] = "failed".into();
    project.write("reports/x/results.json", &results.to_string());
    let kept = project.run(&["x.yaml"]).expect_code(3);
    assert!(kept.stdout.contains("reports/x is kept: it measured 2 cells"), "{}", kept.stdout);
    project.run(&["x.yaml", "--replace"]).expect_code(3);
    assert!(project.read("reports/x/results.json").contains("skipped"));
}

#[test]
fn a_quick_look_decides_no_goal() {
    let goals = "goals: [{ metric: speedup, min: 3, where: { variant: int8 } }]\ngoals_strict: true\n";
    let project = Project::with_spec(&(spec("0.2%") + goals));
    let quick = project.run(&["x.yaml", "--quick"]).expect_code(0);
    assert!(quick.stdout.contains("a quick look decides no goal"), "{}", quick.stdout);
    assert!(quick.stdout.contains("Run without `--quick` to decide"), "{}", quick.stdout);
    project.run(&["x.yaml"]).expect_code(4);
}

#[test]
fn where_nothing_was_measured_no_goal_was_missed() {
    let goals = "goals: [{ metric: latency, max: 1ms }]\ngoals_strict: true\n";
    let fails =
        "backend: mock\nmodels: [m]\nvariants: [{ name: v, mock: { fail: { kind: error, at: measure } } }]\nruns: 2\n";
    let project = Project::with_spec(&(fails.to_owned() + goals));
    project.run(&["x.yaml"]).expect_code(3);
}

#[test]
fn a_quick_look_takes_no_number_of_runs() {
    let project = Project::with_spec(&spec("0.2%"));
    let refused = project.run(&["x.yaml", "--quick", "--set", "runs=8"]).expect_code(2);
    assert!(refused.stderr.contains("a quick look has a fixed number of runs"), "{}", refused.stderr);
}

/// Shards stay until they are merged, even if a newer record is complete.
#[test]
fn cleaning_keeps_shards_that_are_not_merged() {
    let project = Project::with_spec("backend: { mock: {} }\nmodels: [a, b]\nvariants: [fp32, int8]\nruns: 2\n");
    for shard in ["1/2", "2/2"] {
        project.run(&["x.yaml", "--shard", shard]).expect_code(0);
    }
    project.run(&["x.yaml", "--quick"]).expect_code(0);
    assert!(project.run(&["clean", "--yes"]).expect_code(0).stdout.contains("nothing to remove"));
    project.run(&["clean", "--keep", "5", "--yes"]).expect_code(0);
    let list = project.run(&["list"]).expect_code(0).stdout;
    assert_eq!(list.lines().filter(|line| line.contains("complete")).count(), 2, "{list}");
    project.run(&["merge", ".perfrun/records/x"]).expect_code(0);
    assert!(!project.run(&["clean", "--yes"]).expect_code(0).stdout.contains("nothing to remove"));
}

#[test]
fn cleaning_keeps_the_newest_whole_record() {
    let project = Project::with_spec(&spec("0.2%"));
    let output = |folder: &str| project.path(folder).display().to_string();
    project.run(&["x.yaml", "--output", &output("one")]).expect_code(0);
    project.run(&["x.yaml", "--output", &output("two")]).expect_code(0);
    let whole = project.run(&["list"]).stdout;
    project.run(&["x.yaml", "--quick"]).expect_code(0);
    let gone = project.run(&["clean", "--yes"]).expect_code(0);
    assert_eq!(gone.stdout.lines().count(), 1, "{}", gone.stdout);
    let left = project.run(&["list"]).expect_code(0).stdout;
    // The newer of the two whole ones, and the quick look that is newer than that.
    assert_eq!(left.lines().count(), whole.lines().count(), "{left}");
}

#[test]
fn where_batches_differ_throughput_is_drawn_over_them() {
    let project = Project::with_spec(&(spec("0.2%") + "inputs: { batch: [1, 4, 16] }\n"));
    project.run(&["x.yaml"]).expect_code(0);
    assert!(project.read("reports/x/report.html").contains("Throughput over batch size: m"));
    let without = Project::with_spec(&spec("0.2%"));
    without.run(&["x.yaml"]).expect_code(0);
    assert!(!without.read("reports/x/report.html").contains("Throughput over batch size"));
}
