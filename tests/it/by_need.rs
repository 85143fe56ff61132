//! Runs by need, from a specification to the record: who leaves when, what stays as planned, and what an interruption or
//! a budget changes (method 4.6).

use std::collections::{BTreeMap, BTreeSet};

use plan::block_order;
use record::{Outcome, Record, RunKind, StoredRun};

use crate::designs::begin_in;
use crate::support::Project;

/// Six groups, of which some are decided early and some late.
const SPEC: &str = "backend: { mock: { median: 5ms, run_sd: 1% } }
models: [m, n, o, p, q, r]
variants: [a, { name: b, mock: { scale: 1 } }]
measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 20 } }
";

/// Runs of the blocks by cell, kind and number.
fn runs(record: &Record) -> BTreeMap<(String, &'static str, u32), &StoredRun> {
    let of_blocks = record.runs.iter().filter(|run| run.kind != RunKind::Rehearsal);
    of_blocks.map(|run| ((run.cell.to_string(), run.kind.name(), run.run), run)).collect()
}

/// Blocks of the cell at an index.
fn blocks(record: &Record, cell: usize) -> u32 {
    let id = record.manifest.plan.cells[cell].id;
    record.runs.iter().filter(|run| run.cell == id && run.kind == RunKind::Main).count() as u32
}

fn whole() -> (Project, Record) {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    (project, record)
}

#[test]
fn groups_leave_when_they_are_decided_and_the_control_stays() {
    let (_place, record) = whole();
    let plan = &record.manifest.plan;
    let control = plan.controls[0] as usize;
    let candidates: Vec<usize> = (0..plan.cells.len()).filter(|cell| !plan.is_baseline(&plan.cells[*cell])).collect();
    let of_groups: BTreeSet<u32> = candidates.iter().map(|cell| blocks(&record, *cell)).collect();
    assert!(of_groups.len() > 1 && of_groups.iter().all(|it| [8, 12, 16, 24, 32].contains(it)), "{of_groups:?}");
    let most = of_groups.last().copied().unwrap();
    let runs_of_copy = record.runs.iter().filter(|run| run.kind == RunKind::AaCopy).count() as u32;
    assert_eq!((blocks(&record, control), runs_of_copy), (most, most));
    assert!(record.runs.iter().all(|run| run.outcome == Outcome::Completed));
    // A group that goes on has the position in the block that the plan gave it.
    for run in record.runs.iter().filter(|run| run.kind != RunKind::Rehearsal) {
        let planned = block_order(plan, run.run)[run.position as usize];
        assert_eq!((plan.cells[planned.cell].id, planned.is_aa_copy), (run.cell, run.kind == RunKind::AaCopy));
    }
}

/// Blocks of the second cell of three, and why its group got no more, as `results.json` has it.
fn blocks_with(asked: &str, slower: &str) -> (u32, String) {
    let project = Project::with_spec(&format!(
        "backend: {{ mock: {{ median: 5ms, run_sd: 1% }} }}\nmodels: [m]\nruns: {{ min: 8, max: 16 }}\n\
         variants: [a, {{ name: b, mock: {{ scale: 0.5 }} }}, {{ name: c, mock: {{ scale: {slower} }} }}]\n\
         measure: {{ warmup: {{ mode: samples, count: 3 }}, stop: {{ mode: samples, count: 20 }} }}\n{asked}\n"
    ));
    project.run(&["x.yaml"]);
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    (blocks(&project.record("x"), 1), results["efforts"][0]["stopped"].as_str().unwrap().to_owned())
}

#[test]
fn a_late_share_of_few_queries_holds_a_group() {
    let project = Project::with_spec(
        "backend: { mock: { median: 5ms, run_sd: 1% } }\nmodels: [m]\nruns: { min: 8, max: 16 }\n\
         variants: [a, { name: b, mock: { scale: 0.5 } }]\ngoals: [{ metric: late, max: 1% }]\n\
         measure: { load: { rate: 50/s, bound: { p99: 300ms } }, stop: { mode: samples, count: 20 } }\n",
    );
    // None of 160 queries is late: as many as 2.3 % might be.
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(blocks(&project.record("x"), 1), 16);
}

#[test]
fn goals_hold_a_group_until_they_are_answered() {
    let decided = (8, "decided".to_owned());
    assert_eq!(blocks_with("", "0.5"), decided);
    let at_the_bound = |goal: &str| blocks_with(&format!("goals: [{{ {goal}, where: {{ variant: b }} }}]"), "0.5");
    assert_eq!(at_the_bound("metric: latency, max: 10ms"), decided);
    assert_eq!(at_the_bound("metric: latency, max: 2.5ms"), (16, "most_runs".to_owned()));
    assert_eq!(at_the_bound("metric: speedup, min: 2"), (16, "most_runs".to_owned()));
    // A look does not see the samples.
    assert_eq!(at_the_bound("metric: latency.mean, max: 2.5ms"), decided);
    // It sees the percentiles that are asked for, by the samples of all runs together where those of one are too few.
    assert_eq!(at_the_bound("metric: latency.p90, max: 10ms"), decided);
    assert_eq!(at_the_bound("metric: latency.p99, max: 2ms"), decided);
    assert_eq!(at_the_bound("metric: latency.p99.9, max: 10ms"), (16, "most_runs".to_owned()));
    // What another cell misses is missed.
    assert_eq!(blocks_with("goals: [{ metric: latency, max: 2.5ms }]", "0.5"), decided);
}

#[test]
fn the_question_holds_a_group_until_it_is_answered() {
    let decided = (8, "decided".to_owned());
    assert!(blocks_with("choose: { best: latency }", "0.5").0 > 8);
    assert_eq!(blocks_with("choose: { best: latency }", "0.4"), decided);
    assert_eq!(blocks_with("choose: { best: latency.p95 }", "0.5"), decided);
    // What may not be chosen is no rival.
    let within = "choose: { best: latency, within: [{ metric: latency, max: 1ms, where: { variant: b } }] }";
    assert_eq!(blocks_with(within, "0.5"), decided);
}

#[test]
fn a_resumed_record_comes_to_the_same() {
    let (project, whole) = whole();
    for kept in [3, 8, 13] {
        let folder = begin_in(&project);
        for run in whole.runs.iter().filter(|run| run.kind != RunKind::Rehearsal && run.run < kept) {
            run.write(&folder).unwrap();
        }
        project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0);
        let resumed = Record::open(&folder).unwrap();
        let (before, after) = (runs(&whole), runs(&resumed));
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "after {kept} blocks");
        for (key, run) in &after {
            let latency = |run: &StoredRun| run.data.metrics["latency_ns"];
            assert_eq!((latency(run), run.position), (latency(before[key]), before[key].position), "{key:?}");
        }
    }
}

#[test]
fn the_report_says_what_each_group_took_and_why() {
    let (project, record) = whole();
    let report = project.page("reports/x");
    assert!(report.contains(", interval at 99.7 to 98.3 %"), "{report}");
    assert!(report.contains("interim analyses after 8, 12, 16, 24 and 32"), "{report}");
    assert!(report.contains(" of 6 groups decided after "), "{report}");
    let least = (0..record.manifest.plan.cells.len()).map(|cell| blocks(&record, cell)).min().unwrap();
    assert!(report.contains(&format!("Trimmed mean (25 %) of {least} to ")), "{report}");
    // A number of runs is one look, and says nothing of need.
    let fixed = project.run(&["x.yaml", "--set", "runs=8", "--output", "fixed"]);
    fixed.expect_code(0);
    let report = project.page("fixed");
    assert!(report.contains("common blocks, interval at 95 %") && !report.contains("by need"), "{report}");
}

#[test]
fn what_is_compared_with_nothing_is_measured_until_it_is_precise() {
    let run = |spread: &str| {
        let text = format!("backend: {{ mock: {{ median: 5ms, run_sd: {spread} }} }}\nmodels: [m]\n");
        let project = Project::with_spec(&text);
        project.run(&["x.yaml"]).expect_code(0);
        blocks(&project.record("x"), 0)
    };
    assert_eq!(run("0.5%"), 8);
    assert_eq!(run("30%"), 32);
}

#[test]
fn bounds_can_be_set_and_a_sequential_design_takes_a_number() {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml", "--set", "runs.min=5", "--set", "runs.max=6", "--only", "model=m"]).expect_code(0);
    assert!([5, 6].contains(&blocks(&project.record("x"), 0)));
    let sequential = Project::with_spec("backend: mock\nmodels: [m]\nmeasure: { design: sequential }\n");
    sequential.run(&["x.yaml"]).expect_code(0);
    assert_eq!(blocks(&sequential.record("x"), 0), 12);
}

#[test]
fn a_budget_without_time_for_all_cells_measures_the_first_questions() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [m, n]\nvariants: [a, b, c]\ncompare: { baseline: { variant: b } }\nbudget: 1ms\n\
         measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 20 } }\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("rehearsal  2 of 2 cells load and run"), "{}", done.stderr);
    assert!(done.stderr.contains("the budget of 1ms leaves no"), "{}", done.stderr);
    let record = project.record("x");
    let measured: BTreeSet<String> =
        record.runs.iter().filter(|run| run.outcome == Outcome::Completed).map(|run| run.cell.to_string()).collect();
    let path = |cell: &plan::Cell| measured.contains(&cell.id.to_string()).then(|| record.manifest.plan.path(cell));
    let paths: Vec<String> = record.manifest.plan.cells.iter().filter_map(path).collect();
    assert_eq!(paths, ["m/default/a/cpu", "m/default/b/cpu"], "the baseline, and what is compared with it first");
}
