//! The best batch, and batches that do not fit: from a specification to the report (method 7.4).

use std::collections::BTreeMap;
use std::path::Path;

use record::{Outcome, Record, RunKind};

use crate::designs::begin_in;
use crate::support::{Project, check_snapshot};

/// 1 ms and 0.1 ms for each item: throughput is within 2 % of the best tried from 256 on.
const SCRIPT: &str = "median: 1ms, item: 100us, run_sd: 0%, noise: 0%";

fn spec(script: &str, rest: &str) -> String {
    format!(
        "backend: {{ mock: {{ {SCRIPT}{script} }} }}\nmodels: [m]\nruns: 5\n\
         measure: {{ warmup: {{ mode: samples, count: 3 }}, stop: {{ mode: samples, count: 20, max_time: 10s }} }}\n{rest}"
    )
}

/// The batch of each search by the path of its cell, with what was tried in order.
fn found(record: &Record) -> BTreeMap<String, (u64, Vec<u64>)> {
    let plan = &record.manifest.plan;
    let searches = record.manifest.findings.search.iter().flat_map(|found| &found.searches);
    let path = |cell: u32| plan.path(&plan.cells[cell as usize]);
    searches.map(|it| (path(it.cell), (it.batch, it.tried.iter().map(|tried| tried.batch).collect()))).collect()
}

/// Paths of skipped cells with the reason, and how many runs of blocks completed.
fn skipped(record: &Record) -> (Vec<(String, String)>, usize) {
    let plan = &record.manifest.plan;
    let skips = plan.cells.iter().filter_map(|cell| Some((plan.path(cell), plan.skip(cell)?.reason.clone())));
    let completed = |run: &&record::StoredRun| run.kind == RunKind::Main && run.outcome == Outcome::Completed;
    (skips.collect(), record.runs.iter().filter(completed).count())
}

#[test]
fn a_search_finds_what_fits_and_what_is_best() {
    let project = Project::with_spec(&spec(", fits: 300", "inputs: { batch: best }"));
    let done = project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    let (batch, tried) = found(&record)["m/b-best/fp32/cpu"].clone();
    // 128 does 9275 items a second, 256 9624, 300 9677.
    assert_eq!(batch, 256);
    assert_eq!(tried, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 384, 320, 288, 304, 296, 300, 302, 301]);
    assert!(done.stderr.contains("batch 256, 9620 items/s; 1 to 300 fit, 301 ran out of memory"), "{}", done.stderr);
    let latency = record.runs.iter().find(|run| run.kind == RunKind::Main).map(|run| run.data.metrics["latency_ns"]);
    assert_eq!(latency, Some(26_600_000.0));
    let markdown = project.page("reports/x");
    for text in ["| batch 256 |", "Batches that were tried", "512 out of memory", "256 (9620)"] {
        assert!(markdown.contains(text), "{text} is missing in\n{markdown}");
    }
    assert!(project.read("reports/x/report.html").contains("512 out of memory"));
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    assert_eq!(results["cells"][0]["batch"], 256);
}

#[test]
fn cells_with_different_batches_are_compared_by_items_alone() {
    let rest = "inputs: { batch: { search: best, to: 64 } }\nvariants: [a, { name: b, mock: { fits: 8 } }]\nchoose: { best: items }";
    let project = Project::with_spec(&spec("", rest));
    project.run(&["x.yaml"]).expect_code(0);
    let batches: Vec<u64> = found(&project.record("x")).values().map(|(batch, _)| *batch).collect();
    assert_eq!(batches, [64, 8]);
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let compared = &results["comparisons"][0];
    assert!(compared["metric"] == "items" && compared["verdict"] == "worse", "{compared}");
    assert!(project.page("reports/x").contains("m/b-best/a/cpu"));
}

/// A batch of 64 takes 6.7 times as long as one item, and serves 9.5 times as many a second.
#[test]
fn a_larger_batch_is_no_slower_for_taking_longer() {
    for (question, inputs) in [("", "[1, { search: best, to: 64 }]"), ("choose: { best: items }", "[1, 64]")] {
        let rest = format!("inputs: {{ batch: {inputs} }}\ncompare: {{ baseline: {{ input: b1 }} }}\n{question}");
        let project = Project::with_spec(&spec("", &rest));
        let done = project.run(&["x.yaml"]).expect_code(0).stdout;
        let name = if question.is_empty() { "b-best" } else { "b64" };
        let line = done.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.contains("9.5") && line.ends_with("faster"), "{done}");
        assert_eq!(line.contains("b-best, batch 64"), question.is_empty(), "{done}");
        let head = done.lines().find(|line| line.contains("against b1, per item")).unwrap();
        assert!(head.find("items/s") < head.find("median"), "{done}");
        assert!(done.contains(&format!("answer     Fastest: {name}. ")), "{done}");
        assert!(!done.contains("slower"), "{done}");
        let report = project.read("reports/x/report.md");
        let first = report.lines().find(|line| line.starts_with("| model |")).unwrap();
        assert!(first.find("items/s") < first.find("latency") && first.contains("against b1, per item"), "{report}");
        assert!(!report.contains("slower"), "{report}");
        let page = project.page("reports/x");
        let first = page.lines().find(|line| line.starts_with("| input |")).unwrap();
        assert!(first.find("items/s") < first.find("latency"), "{page}");
    }
}

#[test]
fn a_diff_of_two_found_batches_is_one_of_items() {
    let fits = |batch: u64| {
        let variants = format!("variants: [{{ name: v, mock: {{ fits: {batch} }} }}]");
        spec("", &format!("inputs: {{ batch: {{ search: best, to: 64 }} }}\n{variants}"))
    };
    let project = Project::with_spec(&fits(64));
    project.run(&["x.yaml", "--output", "one"]).expect_code(0);
    project.write("x.yaml", &fits(8));
    project.run(&["x.yaml", "--output", "two"]).expect_code(0);
    let diff = project.run(&["diff", "one", "two", "--json"]).stdout;
    let diff: serde_json::Value = serde_json::from_str(&diff).unwrap();
    let rows = diff["experiments"][0]["rows"].as_array().unwrap();
    let row = |metric: &str| rows.iter().find(|row| row["metric"] == metric);
    assert!(row("latency").is_none() && row("items").unwrap()["verdict"] == "worse", "{rows:#?}");
}

#[test]
fn a_search_that_is_there_is_kept_and_the_next_one_made() {
    let text = spec("", "inputs: { batch: { search: best, to: 16 } }\nvariants: [a, b]");
    let project = Project::with_spec(&text);
    let folder = begin_in(&project);
    let passes = folder.join("passes");
    std::fs::create_dir_all(&passes).unwrap();
    // As an earlier invocation left it that was stopped during the second search.
    let kept = r#"{"format": 2, "searches": [{"cell": 0, "batch": 4, "end": "limit", "tried": [{"batch": 4, "items_per_s": 9.0}]}]}"#;
    std::fs::write(passes.join("search.json"), kept.replace("2", &format(&folder))).unwrap();
    project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0);
    let record = Record::open(&folder).unwrap();
    let found = found(&record);
    assert_eq!(found["m/b-best/a/cpu"], (4, vec![4]));
    assert_eq!(found["m/b-best/b/cpu"], (16, vec![1, 2, 4, 8, 16]));
    let latency = |cell: usize| {
        let id = record.manifest.plan.cells[cell].id;
        record
            .runs
            .iter()
            .find(|run| run.cell == id && run.kind == RunKind::Main)
            .map(|run| run.data.metrics["latency_ns"])
    };
    assert_eq!((latency(0), latency(1)), (Some(1_400_000.0), Some(2_600_000.0)));
}

/// The version of a record, as its manifest has it.
fn format(folder: &Path) -> String {
    let manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["format"].to_string()
}

#[test]
fn a_batch_that_fits_nowhere_fails_its_cell() {
    let project = Project::with_spec(&spec(
        "",
        "inputs: { batch: best }\nvariants: [{ name: a, mock: { fail: { kind: error, at: load } } }, b]",
    ));
    project.run(&["x.yaml"]).expect_code(3);
    let record = project.record("x");
    assert_eq!(found(&record)["m/b-best/a/cpu"], (1, vec![1]));
    let completed = record.runs.iter().filter(|run| run.kind == RunKind::Main && run.outcome == Outcome::Completed);
    assert_eq!(completed.count(), 5);
}

#[test]
fn larger_batches_than_one_that_ran_out_of_memory_are_skipped() {
    let rest = "inputs: { batch: { from: 1, to: 128, times: 2 } }\nvariants: [a, { name: b, mock: { fits: 100 } }]";
    let project = Project::with_spec(&spec(", fits: 30", rest));
    let done = project.run(&["x.yaml"]).expect_code(3);
    let (skips, completed) = skipped(&project.record("x"));
    let expected = [("m/b64/a/cpu", "batch 32 ran out of memory"), ("m/b128/a/cpu", "batch 32 ran out of memory")];
    assert_eq!(skips, expected.map(|(path, reason)| (path.to_owned(), reason.to_owned())));
    assert_eq!(completed, 5 * (5 + 7));
    assert!(done.stderr.contains("2 cells with a larger batch: batch 32 ran out of memory"), "{}", done.stderr);
    let markdown = project.page("reports/x");
    assert!(markdown.contains("2 of 16 cells skipped: batch 32 ran out of memory."), "{markdown}");
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    assert!(results["cells"].to_string().contains(r#""skipped":{"code":"memory","#));
}

#[test]
fn a_failure_that_is_no_lack_of_memory_skips_nothing() {
    let rest = "inputs: { batch: [1, 2] }\nvariants: [{ name: a, mock: { fail: { kind: error, at: load } } }, b]";
    let project = Project::with_spec(&spec("", rest));
    project.run(&["x.yaml"]).expect_code(3);
    assert_eq!(skipped(&project.record("x")), (Vec::new(), 10));
}

#[test]
fn the_plan_says_what_is_searched_and_what_differs_alone() {
    let rest =
        "inputs: { batch: [1, { search: best, to: 64 }] }\nvariants: [a, b, c]\nmatrix: { design: one_at_a_time }";
    let project = Project::with_spec(&spec("", rest));
    let plan = project.run(&["plan", "x.yaml"]).expect_code(0).stdout;
    check_snapshot("search_plan", &plan);
    let quick = project.run(&["x.yaml", "--quick"]).expect_code(0);
    assert_eq!(found(&project.record("x"))["m/b-best/a/cpu"], (1, vec![1]), "{}", quick.stderr);
}
