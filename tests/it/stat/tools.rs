//! Files of benchmark tools, as hyperfine 1.15, Google Benchmark 1.7, pytest-benchmark 5 and Go 1.19 wrote them here.

use std::path::PathBuf;

use judge::stat::{Findings, StatOptions};
use perfrun::ui;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::json;
use crate::support::{Project, check_snapshot};

/// A workplace with all of them.
fn a_project() -> Project {
    let project = Project::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stat");
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        project.write(&entry.file_name().to_string_lossy(), &text);
    }
    project
}

#[test]
fn every_tool_is_described_and_compared() {
    let project = a_project();
    let text = |arguments: &[&str]| project.run(&[&["stat"], arguments].concat()).expect_code(0).stdout;
    check_snapshot("stat_hyperfine", &text(&["hyperfine.json"]));
    check_snapshot("stat_hyperfine_against", &text(&["hyperfine.json", "--against", "true"]));
    check_snapshot("stat_google", &text(&["google-old.json", "google-new.json"]));
    check_snapshot("stat_pytest", &text(&["pytest-old.json", "pytest-new.json"]));
    check_snapshot("stat_go", &text(&["go-old.txt", "go-new.txt", "--benchmark", "BenchmarkJoin-2"]));
}

#[test]
fn criterion_s_samples_are_times_of_an_iteration() {
    let project = Project::new();
    for (folder, factor) in [("base", 1.0), ("new", 1.5)] {
        let iterations: Vec<f64> = (1..=20).map(|sample| 100.0 * f64::from(sample)).collect();
        let noise = |sample: usize| 1.0 + 1e-3 * (sample * sample * 37 % 11) as f64;
        let times: Vec<f64> =
            iterations.iter().enumerate().map(|(sample, count)| 40.0 * factor * noise(sample) * count).collect();
        let sample = serde_json::json!({ "sampling_mode": "Linear", "iters": iterations, "times": times });
        project.write(&format!("fib/{folder}/sample.json"), &sample.to_string());
    }
    let files = ["stat", "fib/base/sample.json", "fib/new/sample.json"];
    let text = project.run(&files).expect_code(0).stdout;
    assert!(text.starts_with("new is worse than base: its values are 1.50x"), "{text}");
    assert!(text.contains("median     40.14"), "{text}");
}

/// Ten lines of `go test` for each name and time.
fn go(benchmarks: &[(&str, f64)]) -> String {
    let line = |name: &str, time: f64, run: u32| {
        format!("{name} 100 {} ns/op\n", time * (1.0 + 1e-3 * f64::from(run * run * 37 % 11)))
    };
    benchmarks.iter().flat_map(|(name, time)| (0..10).map(move |run| line(name, *time, run))).collect()
}

#[test]
fn fail_on_ends_with_four() {
    let project = Project::new();
    project.write("old.txt", &go(&[("BenchmarkA", 100.0), ("BenchmarkB", 100.0), ("BenchmarkGone", 1.0)]));
    project.write("same.txt", &go(&[("BenchmarkA", 100.2), ("BenchmarkB", 100.0), ("BenchmarkGone", 1.0)]));
    project.write("slow.txt", &go(&[("BenchmarkA", 150.0), ("BenchmarkB", 100.0), ("BenchmarkNew", 1.0)]));
    let ends = |arguments: &[&str], code: i32| project.run(&[&["stat"], arguments].concat()).expect_code(code).stdout;
    ends(&["old.txt", "slow.txt"], 0);
    let failed = ends(&["old.txt", "slow.txt", "--fail-on", "worse"], 4);
    assert!(
        failed.contains("only in FILE: BenchmarkGone") && failed.contains("only in CANDIDATE: BenchmarkNew"),
        "{failed}"
    );
    assert!(failed.contains("Gate failed by 1 comparison."), "{failed}");
    let passed = ends(&["old.txt", "same.txt", "--fail-on", "worse"], 0);
    assert!(passed.contains("Gate passed."), "{passed}");
    // Sessions differ, so nothing is equivalent; in turns it is.
    ends(&["old.txt", "same.txt", "--fail-on", "undecided"], 4);
    ends(&["old.txt", "same.txt", "--fail-on", "worse,undecided", "--interleaved"], 0);
    let gone = ["old.txt", "slow.txt", "--fail-on", "undecided", "--interleaved", "--margin", "60%"];
    assert!(ends(&gone, 4).contains("a benchmark of FILE is missing in CANDIDATE"));
}

/// Of many comparisons of the same code one is beyond the margin by chance.
#[test]
fn one_of_many_is_no_regression() {
    let project = Project::new();
    let names: Vec<String> = (0..60).map(|number| format!("Benchmark{number}")).collect();
    let rough =
        |factor: f64| -> Vec<f64> { (0..8).map(|k| factor * (10.0 + f64::from(k * k * 5 % 7) / 4.0)).collect() };
    let write = |file: &str, odd: f64| {
        let lines = names.iter().enumerate().flat_map(|(number, name)| {
            let times = rough(if number == 7 { odd } else { 1.0 });
            times.into_iter().map(move |time| format!("{name} 1 {time} ns/op\n"))
        });
        project.write(file, &lines.collect::<String>());
    };
    write("old.txt", 1.0);
    write("new.txt", 1.16);
    let found = json(&project, &["old.txt", "new.txt", "--fail-on", "worse"]);
    let odd = &found["benchmarks"][7];
    assert_eq!((&odd["comparison"]["verdict"], &odd["fails"]), (&"undecided".into(), &false.into()), "{odd}");
    // By itself it is worse.
    let alone = json(&project, &["old.txt", "new.txt"]);
    assert_eq!(alone["benchmarks"][7]["comparison"]["verdict"], "worse");
}

#[test]
fn no_line_of_many_is_wider_than_the_terminal() {
    let names = ["Benchmark/with/a/rather/long/name/that/goes/on-8", "BenchmarkB"];
    let read = |factor: f64| {
        let text = go(&names.map(|name| (name, 100.0 * factor)));
        judge::stat::read("a/folder/results.txt", text.as_bytes()).unwrap().series
    };
    let pairs = judge::stat::pairs(read(1.0), Some(read(1.01))).unwrap();
    let findings = Findings::of(&pairs, &StatOptions::default(), Some(true)).unwrap();
    for width in [80, 100, 120] {
        let text = ui::stat::render(&findings, width);
        let widest = text.lines().max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= width, "wider than {width}: `{widest}` of\n{text}");
    }
}

#[track_caller]
fn check_refusal(arguments: &[&str], says: &[&str]) {
    let said = a_project().run(&[&["stat"], arguments].concat()).expect_code(2).stderr;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.iter().all(|says| said.contains(says)), "{said}");
}

#[test]
fn what_lacks_single_times_says_how_to_get_them() {
    check_refusal(&["google-aggregates.json"], &["no single times", "--benchmark_repetitions=10"]);
    check_refusal(&["hyperfine.csv"], &["no single times", "hyperfine --export-json FILE"]);
    check_refusal(&["pytest-saved.json"], &["no single times", "--benchmark-json=FILE"]);
    check_refusal(&["google-old.json", "pytest-old.json"], &["no benchmark in common", "`BM_Fill`"]);
    check_refusal(
        &["hyperfine.json", "--benchmark", "tru"],
        &["no benchmark has the name `tru`", "did you mean `true`?"],
    );
    check_refusal(&["hyperfine.json", "--unit", "ms"], &["leave out `--unit`"]);
    check_refusal(&["hyperfine.json", "--fail-on", "worse"], &["--against <NAME>"]);
}

#[test]
fn numbers_meet_the_times_of_a_tool_in_its_unit() {
    let project = a_project();
    project.write("ms.txt", "1\n2\n3\n2\n1\n");
    let files = ["stat", "hyperfine.json", "ms.txt", "--benchmark", "true"];
    project.run(&files).expect_code(2);
    project.write("one.json", r#"{"results": [{"command": "a", "times": [0.001, 0.002, 0.003, 0.002, 0.001]}]}"#);
    let said = project.run(&["stat", "one.json", "ms.txt"]).expect_code(2).stderr;
    assert!(said.contains("one.json has `ns` and ms.txt no unit"), "{said}");
    let found: Value = json(&project, &["one.json", "ms.txt", "--unit", "ms"]);
    assert_eq!(found["benchmarks"][0]["comparison"]["ratio"], 1.0);
    assert_eq!(found["benchmarks"][0]["series"][1]["unit"], "ns");
}
