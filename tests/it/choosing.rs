//! From YAML to the answer: `choose` and `tables` on scripted latencies.

use crate::support::{Workplace, check_snapshot};

/// `quick` is best, `tight` is within the margin of it, `wide` misses a bound, `broken` fails.
const SPEC: &str = "\
description: Which variant answers within 7 ms?
backend: { mock: { median: 5ms, run_sd: 0.5%, noise: 2% } }
models: [detector, classifier]
inputs: { batch: [1, 8] }
variants:
  - base
  - { name: quick, mock: { scale: 0.6 } }
  - { name: tight, mock: { scale: 0.603 } }
  - { name: wide, mock: { scale: 1.5 } }
  - { name: broken, mock: { scale: 0.3, fail: { kind: error, at: load } } }
matrix: { exclude: [{ model: classifier, batch: 8, variant: wide }] }
choose: { best: latency, within: [{ metric: latency.p95, max: 7ms, where: { batch: 1 } }] }
tables:
  - { name: medians, rows: variant, columns: [model, input], show: latency }
  - { name: t2, rows: [model, input], columns: variant, show: [speedup] }
runs: 10
measure: { stop: { mode: samples, count: 200 } }
";

/// Compares with `tests/snapshots/choosing_<name>.snap`.
fn check(name: &str, text: &str) {
    check_snapshot(&format!("choosing_{name}"), text);
}

/// The lines from the first one that begins with `from` up to the next that begins with `to`.
fn between<'a>(text: &'a str, from: &'a str, to: &'a str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with(from));
    let kept: Vec<&str> = lines
        .enumerate()
        .take_while(|(index, line)| *index == 0 || !line.starts_with(to))
        .map(|(_, line)| line)
        .collect();
    kept.join("\n")
}

#[test]
fn a_question_is_answered_in_every_place() {
    let place = Workplace::with_spec(SPEC);
    let done = place.run(&["x.yaml"]).expect_code(3);
    check("terminal", &between(&done.stdout, "answer", "trust"));
    let report = place.read("reports/x/report.md");
    check("answer", &between(&report, "- **detector", "|"));
    check(
        "tables",
        &(between(&report, "## <a id=\"table-medians\"", "## <a")
            + "\n"
            + &between(&report, "## <a id=\"table-t2\"", "- **Measured")),
    );
    let html = place.read("reports/x/report.html");
    assert!(html.contains("<h2 id=\"table-t2\">Table t2</h2>"));
    assert!(html.contains("<strong>detector: quick or tight.</strong>"));
    let results: serde_json::Value = serde_json::from_str(&place.read("reports/x/results.json")).unwrap();
    let contests = results["choice"]["contests"].as_array().unwrap();
    assert_eq!(contests.len(), 4);
    assert!(contests.iter().all(|contest| contest["best"].as_array().unwrap().len() == 2), "{contests:?}");
}
