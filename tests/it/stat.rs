//! `perfrun stat`: what it says of known data, in text and as JSON, and what it refuses.

mod reference;
mod tools;
mod vectors;

use std::fmt::Write;
use std::path::Path;

use judge::stat::{Findings, Pairs, Series, StatOptions};
use perfrun::ui;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::support::{Done, Project, check_snapshot};

fn vectors() -> Value {
    fixture("stats.json")
}

fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/statistics/tests/fixtures").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The numbers of a JSON array, one a line.
fn lines(values: &Value) -> String {
    values.as_array().unwrap().iter().fold(String::new(), |mut text, value| {
        writeln!(text, "{value}").unwrap();
        text
    })
}

/// A workplace with the two-sample and paired vectors as `<name>-a.txt` and `<name>-b.txt`, the one-sample ones as
/// `<name>.txt`, the nested ones as JSON.
fn project_with_vectors() -> Project {
    let project = Project::new();
    let file = vectors();
    for (name, set) in file["one_sample"].as_object().unwrap() {
        project.write(&format!("{name}.txt"), &lines(&set["data"]));
    }
    for group in ["two_sample", "paired"] {
        for (name, set) in file[group].as_object().unwrap() {
            for side in ["a", "b"] {
                project.write(&format!("{name}-{side}.txt"), &lines(&set[side]));
            }
        }
    }
    for name in ["a", "b", "a_unbalanced"] {
        project.write(&format!("{name}.json"), &file["nested"][name].to_string());
    }
    project
}

fn json(project: &Project, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = ["stat", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&project.run(&arguments).expect_code(0).stdout).unwrap()
}

#[test]
fn texts_are_as_committed() {
    let project = project_with_vectors();
    let text = |arguments: &[&str]| {
        let arguments: Vec<&str> = std::iter::once("stat").chain(arguments.iter().copied()).collect();
        project.run(&arguments).expect_code(0).stdout
    };
    check_snapshot("stat_values", &text(&["autocorrelated.txt", "--unit", "ms"]));
    check_snapshot("stat_bimodal", &text(&["bimodal.txt"]));
    check_snapshot("stat_runs", &text(&["a.json"]));
    check_snapshot("stat_two", &text(&["small_no_ties-a.txt", "small_no_ties-b.txt", "--unit", "ms"]));
    check_snapshot("stat_in_turns", &text(&["a_a-a.txt", "a_a-b.txt", "--interleaved"]));
    check_snapshot("stat_paired", &text(&["b10_aa-a.txt", "b10_aa-b.txt", "--paired"]));
    check_snapshot("stat_two_runs", &text(&["a.json", "b.json"]));
    check_snapshot("stat_help", &text(&["--help"]));
}

#[test]
fn a_unit_is_a_heading_anywhere() {
    let project = project_with_vectors();
    for unit in ["ms", "items/s", " °C ", "%", "kg·m"] {
        let shown = project.run(&["stat", "a.json", "--unit", unit]).expect_code(0).stdout;
        assert!(shown.contains(unit.trim()), "{shown}");
    }
    for unit in ["", " ", "a\nb", "\u{1b}[31m", "<b>", "a|b", "`x`", "[x](y)", &"x".repeat(5000)] {
        let said = project.run(&["stat", "a.json", "--unit", unit]).expect_code(2).stderr;
        assert!(said.contains("a unit has 1 to 24 letters"), "{said}");
    }
}

#[test]
fn json_is_as_committed() {
    let project = project_with_vectors();
    let output = json(&project, &["small_no_ties-a.txt", "small_no_ties-b.txt", "--unit", "ms"]);
    let mut rounded = rounded(&output);
    rounded["perfrun"] = "[VERSION]".into();
    check_snapshot("stat_json", &serde_json::to_string_pretty(&rounded).unwrap());
}

/// Numbers with nine significant digits, which every machine agrees on.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            format!("{:.8e}", number.as_f64().unwrap()).parse::<f64>().unwrap().into()
        }
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

#[track_caller]
fn check_refusal(content: &str, arguments: &[&str], says: &str) {
    let project = Project::new();
    project.write("x.txt", content);
    project.write("y.txt", "1\n2\n3\n");
    let arguments: Vec<&str> = std::iter::once("stat").chain(arguments.iter().copied()).collect();
    let Done { stderr, stdout, .. } = project.run(&arguments).expect_code(2);
    assert!(stderr.contains(says) && stdout.is_empty(), "`{says}` is not in:\n{stderr}");
}

#[test]
fn bad_input_is_named_with_its_place() {
    check_refusal("1\n2x\n", &["x.txt"], "x.txt:2:1: `2x` is not a number");
    check_refusal("1\nNaN\n", &["x.txt"], "x.txt:2:1: `NaN` is not a finite number");
    check_refusal("a,b\n1,2\n", &["x.txt"], "cut -d, -f2");
    check_refusal("1,5;2\n", &["x.txt"], "cut -d, -f2");
    check_refusal("a;b\n1;2\n", &["x.txt"], "cut -d';' -f2");
    check_refusal("[1, null]", &["x.txt"], "x.txt:1:5: `null` is not a number");
    check_refusal("{\"results\": []}", &["x.txt"], "x.txt contains no values");
    check_refusal("{\"cells\": []}", &["x.txt"], "the JSON of hyperfine");
    check_refusal("", &["x.txt"], "x.txt contains no values");
    check_refusal("1\n", &["nothing.txt"], "nothing.txt");
    check_refusal("1\n", &["."], ".");
    check_refusal("1\n", &["x.txt", "y.txt", "--paired"], "x.txt has 1 values and y.txt 3");
    check_refusal("[[1],[2]]", &["x.txt", "y.txt"], "x.txt contains runs");
    check_refusal("1\n", &["-", "-"], "both files are standard input");
    check_refusal("1\n", &["x.txt", "--confidence", "95"], "between 0 and 1");
    check_refusal("1\n", &["x.txt", "--paired"], "CANDIDATE");
    check_refusal("1\n", &["x.txt", "y.txt", "--interleaved", "--session-spread", "1%"], "cannot be used with");
}

#[test]
fn pairs_are_in_turns_said_or_not() {
    let project = project_with_vectors();
    let files = ["b10_aa-a.txt", "b10_aa-b.txt", "--paired"];
    let said = [&files[..], &["--interleaved"]].concat();
    assert_eq!(json(&project, &files), json(&project, &said));
    assert_eq!(json(&project, &files)["terms"]["session_spread"], 0.0);
}

#[test]
fn observations_that_follow_each_other_have_no_verdict_and_say_why() {
    let project = Project::new();
    let noise = |k: i32| 1e-3 * f64::from(k * k * 37 % 101);
    let drifting: Vec<f64> = (0..24).map(|k| 10.0 + 0.05 * f64::from(k) + noise(k)).collect();
    let steady: Vec<f64> = (0..24).map(|k| 9.0 + noise(k + 7)).collect();
    let runs = |values: &[f64]| Value::from_iter(values.iter().map(|value| vec![*value; 2])).to_string();
    for (name, content) in [
        ("a.txt", lines(&steady.iter().copied().collect())),
        ("b.txt", lines(&drifting.iter().copied().collect())),
        ("a.json", runs(&steady)),
        ("b.json", runs(&drifting)),
    ] {
        project.write(name, &content);
    }
    let cases: [(&[&str], &str); 3] = [
        (&["a.txt", "b.txt", "--paired"], "the pairs are autocorrelated, worth only 1 independent ones"),
        (&["a.txt", "b.txt"], "give them as runs"),
        (&["a.json", "b.json"], "interleave the measurements"),
    ];
    for (arguments, says) in cases {
        let comparison = &json(&project, arguments)["benchmarks"][0]["comparison"];
        assert_eq!((&comparison["verdict"], &comparison["reason"]), (&"undecided".into(), &"dependent".into()));
        let text = project.run(&[&["stat"], arguments].concat()).expect_code(0).stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn standard_input_is_a_file() {
    use std::io::Write as _;
    use std::process::Stdio;
    let project = Project::new();
    let mut command = project.command(&["stat", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"time\n1\n2\n3\n").unwrap();
    let done = Done::from(child.wait_with_output().unwrap()).expect_code(0);
    let words: Vec<&str> = done.stdout.split_whitespace().take(8).collect();
    assert_eq!(words.join(" "), "standard input estimate 95 % interval values 3");
}

#[test]
fn a_single_value_and_equal_values_are_described() {
    let project = Project::new();
    project.write("one.txt", "3.5\n");
    let output = json(&project, &["one.txt"]);
    let estimates = &output["benchmarks"][0]["series"][0]["estimates"];
    assert_eq!(estimates["mean"], serde_json::json!({ "value": 3.5, "n": 1 }));
    assert!(estimates["stddev"].is_null());
    project.run(&["stat", "one.txt"]).expect_code(0);
    project.write("equal.json", "[2, 2, 2, 2, 2, 2]");
    let done = project.run(&["stat", "equal.json", "equal.json", "--interleaved"]).expect_code(0);
    assert!(done.stdout.contains("is equivalent to"), "{}", done.stdout);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let runs: Vec<Vec<f64>> =
        (1..9).map(|run| (1..60).map(|k| f64::from(run) + 1e-3 * f64::from(k * k % 61)).collect()).collect();
    let long_name = "a/rather/long/path/to/a/file/with_a_name_that_nobody_would_like_to_read_twice.json";
    let sides = [Series::of_runs(long_name, &runs), Series::of_values("short.txt", runs.concat())];
    let huge = Series::of_values("x", runs.concat().iter().map(|value| value * 1e250).collect());
    let terms = StatOptions { unit: Some("furlongs per fortnight".to_owned()), ..StatOptions::default() };
    for width in [40, 60, 80, 120] {
        for (baseline, candidate) in [
            (&sides[0], Some(&sides[0])),
            (&sides[1], Some(&huge)),
            (&sides[0], None),
            (&sides[1], None),
            (&huge, None),
        ] {
            let pairs = Pairs { pairs: vec![(baseline.clone(), candidate.cloned())], ..Pairs::default() };
            let findings = Findings::of(&pairs, &terms, Some(false)).unwrap();
            let text = ui::stat::render(&findings, width);
            let widest = text.lines().max_by_key(|line| line.width()).unwrap();
            assert!(widest.width() <= width, "wider than {width}: `{widest}` of\n{text}");
        }
    }
}
