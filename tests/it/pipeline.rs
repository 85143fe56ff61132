//! From YAML to verdict on scripted latencies, and what becomes of workers that fail, parents that die, and Ctrl-C.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use judge::compare::{Comparison, judge};
use judge::summary::summarize;
use record::{LocalPaths, Outcome, Record, RunKind};
use rustix::process::{Pid, Signal, kill_process};
use statistics::paired::Verdict;
use worker::backend::FailureKind;

use crate::support::{Project, whole_record};

/// A base and one variant whose scripts differ as given.
fn two(noise: &str, scale: f64) -> String {
    format!(
        "backend: {{ mock: {{ median: 1ms, run_sd: {noise}, noise: 1% }} }}\nmodels: [m]\n\
         variants: [base, {{ name: other, mock: {{ scale: {scale} }} }}]\nruns: 10\n\
         measure: {{ stop: {{ mode: samples, count: 60 }} }}\n"
    )
}

fn comparison(spec: &str) -> Comparison {
    let project = Project::with_spec(spec);
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    let summary = summarize(&record.manifest, &record.runs).unwrap();
    judge(&record.manifest, &summary).comparisons.into_iter().next().unwrap()
}

#[test]
fn ten_percent_more_is_worse() {
    let found = comparison(&two("0.5%", 1.10));
    assert_eq!(found.verdict, Verdict::Worse);
    assert!(found.interval().unwrap().contains(1.0 / 1.10), "{found:?}");
}

#[test]
fn ten_percent_less_is_better() {
    assert_eq!(comparison(&two("0.5%", 0.90)).verdict, Verdict::Better);
}

#[test]
fn the_same_script_is_equivalent() {
    assert_eq!(comparison(&two("0.3%", 1.0)).verdict, Verdict::Equivalent);
}

#[test]
fn noise_that_hides_the_difference_is_undecided() {
    assert_eq!(comparison(&two("15%", 1.03)).verdict, Verdict::Undecided);
}

/// Runs a cell that fails and one that does not.
fn failing(failure: &str, more: &str) -> (Project, Record) {
    let project = Project::with_spec(&format!(
        "backend: mock\nmodels: [m]\nruns: 6\nvariants: [good, {{ name: bad, {more} mock: {{ fail: {failure} }} }}]\n\
         measure: {{ timeout: 2s, warmup: {{ mode: samples, count: 5 }}, stop: {{ mode: samples, count: 60 }} }}\n"
    ));
    project.run(&["x.yaml"]).expect_code(3);
    let record = project.record("x");
    (project, record)
}

fn outcomes(record: &Record, variant: usize) -> Vec<Outcome> {
    let cell = record.manifest.plan.cells[variant].id;
    let mut runs: Vec<_> = record.runs.iter().filter(|run| run.kind == RunKind::Main && run.cell == cell).collect();
    runs.sort_by_key(|run| run.run);
    runs.iter().map(|run| run.outcome).collect()
}

fn kind(record: &Record) -> (String, String) {
    let failure = record.runs.iter().find_map(|run| run.failure.clone()).unwrap();
    (failure.kind.name().to_owned(), failure.message)
}

#[test]
fn a_crash_is_one_failed_run_and_two_are_enough() {
    let (_place, record) = failing("{ kind: crash, at: measure, runs: [1, 3, 5] }", "");
    use Outcome::{Completed, Failed, NotRun};
    assert_eq!(outcomes(&record, 0), [Completed; 6]);
    assert_eq!(outcomes(&record, 1), [Completed, Failed, Completed, Failed, NotRun, NotRun]);
    assert_eq!(kind(&record), ("killed".into(), "the worker was killed by signal 6 (SIGABRT)".into()));
}

#[test]
fn what_fails_in_the_rehearsal_is_not_run_again() {
    let (_place, record) = failing("{ kind: error, at: load }", "");
    assert_eq!(outcomes(&record, 0), [Outcome::Completed; 6]);
    assert_eq!(outcomes(&record, 1), [Outcome::NotRun; 6]);
    assert_eq!(kind(&record), ("operator".into(), "scripted failure while it should load".into()));
}

#[test]
fn a_failure_while_sampling_leaves_the_whole_warm_up_and_the_rehearsal_alone() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [m]\nruns: 3\nvariants: [{ name: bad, mock: { fail: { kind: error, at: measure } } }]\n\
         measure: { warmup: { mode: samples, count: 40 }, stop: { mode: samples, count: 60 } }\n",
    );
    project.run(&["x.yaml"]).expect_code(3);
    let record = project.record("x");
    // Two failures of the cell end its A/A copy too; those of the copy say nothing of the cell.
    assert_eq!(outcomes(&record, 0), [Outcome::Failed, Outcome::Failed, Outcome::NotRun]);
    let failed: Vec<_> = record.runs.iter().filter(|run| run.outcome == Outcome::Failed).collect();
    assert!((3..=4).contains(&failed.len()), "by the order of the second block: {}", failed.len());
    for run in failed {
        assert_eq!((run.kind == RunKind::Rehearsal, run.data.warmup.len(), run.data.measured.len()), (false, 40, 0));
    }
}

#[test]
fn garbage_is_a_protocol_failure() {
    let (_place, record) = failing("{ kind: garbage, at: warmup, runs: [0, 1] }", "");
    let (kind, message) = kind(&record);
    assert_eq!(kind, "protocol");
    assert!(message.starts_with("the worker wrote `this is not the protocol`"), "{message}");
}

/// In the first run, so that the rehearsal has none.
#[test]
fn a_panic_is_told_with_its_message_wherever_it_happens() {
    for (at, does) in [("load", "load"), ("warmup", "warm up"), ("measure", "sample")] {
        let (_place, record) = failing(&format!("{{ kind: panic, at: {at}, runs: [0, 1] }}"), "");
        let (kind, message) = kind(&record);
        assert_eq!(kind, "internal", "{message}");
        assert!(message.starts_with("the worker panicked at worker/src/backend/mock/mod.rs:"), "{message}");
        assert!(message.ends_with(&format!(": scripted panic while it should {does}")), "{message}");
        let failed = record.runs.iter().find(|run| run.outcome == Outcome::Failed).unwrap();
        assert!(failed.log_tail.as_ref().is_some_and(|log| log.contains("panicked")), "{:?}", failed.log_tail);
    }
}

#[test]
fn a_hang_meets_its_deadline_and_the_worker_is_gone() {
    let project = Project::with_spec(&format!(
        "backend: mock\nmodels: [m]\nruns: 1\nvariants:\n  - {{ name: bad, wrap: {}, mock: {{ fail: {{ kind: hang, at: measure, runs: [0] }} }} }}\n\
         measure: {{ timeout: 1s, stop: {{ mode: samples, count: 60 }} }}\n",
        REMEMBER_PID
    ));
    project.run(&["x.yaml"]).expect_code(3);
    assert_eq!(kind(&project.record("x")), ("timeout".into(), "the run did not end within 1s".into()));
    assert_all_gone(&project.path("pids"));
}

#[test]
fn a_wrapper_that_is_not_there_is_named() {
    let missing = ("[no-such-wrapper]", "missing", "cannot start `no-such-wrapper`");
    for (wrap, expected, says) in [missing, ("['false']", "protocol", "ended with status 1")] {
        let (_place, record) = failing("{ kind: error, at: measure, runs: [77] }", &format!("wrap: {wrap},"));
        let (kind, message) = kind(&record);
        assert_eq!(kind, expected);
        assert!(message.contains("behind `wrap: ") && message.contains(says), "{message}");
    }
}

#[test]
fn a_worker_that_prints_without_end_fills_neither_disk_nor_memory() {
    let loud = r"[sh, -c, 'yes x | head -c 20000000 >&2; printf \033[31mRED >&2; exit 3', sh]";
    let (project, record) = failing("{ kind: error, at: measure, runs: [77] }", &format!("wrap: {loud},"));
    let logs = std::fs::read_dir(project.record_folder("x").join("logs")).unwrap();
    let sizes: Vec<u64> = logs.map(|log| log.unwrap().metadata().unwrap().len()).collect();
    assert!(sizes.iter().all(|size| *size < 600_000), "{sizes:?}");
    let tail = record.runs.iter().find_map(|run| run.log_tail.clone()).unwrap();
    assert!(tail.ends_with("[31mRED") && !tail.contains('\u{1b}'), "{tail:?}");
}

/// A wrapper that writes down which process becomes the worker.
pub const REMEMBER_PID: &str = r#"[sh, -c, 'echo $$ >> pids; exec "$@"', sh]"#;

/// Waits for processes to vanish; they do, or the test hangs and is ended from outside.
pub fn assert_all_gone(pids: &Path) {
    let text = std::fs::read_to_string(pids).unwrap();
    assert!(!text.is_empty());
    for pid in text.lines() {
        let status = format!("/proc/{pid}/status");
        // A zombie is not running; whoever inherited it will take it away.
        while std::fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ")) {
            std::thread::yield_now();
        }
    }
}

/// Twelve runs of which the one in block 2 never ends.
fn hanging() -> Project {
    Project::with_spec(&format!(
        "backend: mock\nmodels: [m]\nruns: 4\nmeasure: {{ timeout: 1h, stop: {{ mode: samples, count: 60 }} }}\nvariants:\n\
         \x20 - {{ name: a, wrap: {REMEMBER_PID} }}\n\
         \x20 - {{ name: b, wrap: {REMEMBER_PID} }}\n\
         \x20 - {{ name: c, wrap: {REMEMBER_PID}, mock: {{ fail: {{ kind: hang, at: measure, runs: [2] }} }} }}\n"
    ))
}

/// Starts perfrun and returns when it says that block 2 is done, so that the third is under way or about to be.
fn start_until_third_block(project: &Project) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = project.command(&["x.yaml"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut stderr, "block 2 of 4");
    (child, stderr)
}

pub fn read_until(stderr: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while stderr.read_line(&mut line).unwrap() > 0 {
        if line.contains(text) {
            return;
        }
        line.clear();
    }
    panic!("perfrun ended before it said {text}");
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// No run has two outcomes, and those of complete records have one each.
pub fn assert_one_outcome_each(record: &Record) {
    let keys: BTreeSet<_> = record.runs.iter().map(|run| (run.cell, run.kind, run.run)).collect();
    assert_eq!(keys.len(), record.runs.len());
    if record.manifest.findings.complete {
        let main = record.runs.iter().filter(|run| run.kind == RunKind::Main).count();
        assert_eq!(main, record.manifest.plan.cells.len() * record.manifest.plan.runs as usize);
    }
}

#[test]
fn killing_the_parent_leaves_a_readable_record_and_no_orphan_and_resuming_finishes_it() {
    let project = hanging();
    let (mut child, _stderr) = start_until_third_block(&project);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert_all_gone(&project.path("pids"));
    let record = project.record("x");
    assert!(!record.manifest.findings.complete);
    assert!(record.runs.iter().filter(|run| run.kind == RunKind::Main).count() >= 6);
    assert_one_outcome_each(&record);

    // The hang would come again, so the script is taken out of the manifest, as a user's own fix would be.
    let manifest = project.record_folder("x").join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"hang\"", "\"error\"")).unwrap();
    project.run(&["run", "--resume", project.record_folder("x").to_str().unwrap()]).expect_code(3);
    let record = project.record("x");
    assert!(record.manifest.findings.complete);
    assert_eq!(record.manifest.findings.invocations.len(), 2);
    assert_one_outcome_each(&record);
}

#[test]
fn the_second_interrupt_stops_at_once_and_keeps_everything_finished() {
    let project = hanging();
    let (mut child, mut stderr) = start_until_third_block(&project);
    signal(&child, Signal::INT);
    // Either the hanging run is in flight and the first interrupt is acknowledged, or it never starts.
    let mut line = String::new();
    while stderr.read_line(&mut line).unwrap() > 0 && !line.contains("again to stop now") && !line.contains("is kept") {
        line.clear();
    }
    if child.try_wait().unwrap().is_none() {
        signal(&child, Signal::INT);
    }
    std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_all_gone(&project.path("pids"));
    let folder = project.record_folder("x");
    assert!(folder.join("report.md").is_file(), "a partial report is in the record's folder");
    assert!(!project.path("reports/x").join("report.md").exists(), "a partial report is not committed");
    assert_one_outcome_each(&project.record("x"));
}

/// The run that hangs would otherwise be waited for an hour.
#[test]
fn a_hang_does_not_outlast_the_budget() {
    let spec = "backend: mock\nmodels: [m]\nruns: 6\nbudget: 1s\nvariants:\n  - a\n\
                \x20 - { name: b, mock: { fail: { kind: hang, at: measure, runs: [1] } } }\n\
                measure: { timeout: 1h, warmup: { mode: samples, count: 12 }, stop: { mode: samples, count: 60, max_time: 1s } }\n";
    let project = Project::with_spec(spec);
    let done = project.run(&["x.yaml"]);
    done.expect_code(3);
    let record = project.record("x");
    let hung: Vec<_> = record.runs.iter().filter(|run| run.outcome == Outcome::Failed).collect();
    assert_eq!(hung.len(), 1);
    let failure = hung[0].failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure:?}");
    assert!(failure.message.ends_with(" (the budget leaves no more)"), "{failure:?}");
    let budget = record.manifest.findings.budget.unwrap();
    assert!(budget.runs < budget.wanted, "what came after the hang has no room: {budget:?}");
}

#[test]
fn a_record_reads_the_same_from_its_journal_and_from_parquet() {
    let project = Project::with_spec(&two("1%", 1.0).replace("runs: 10", "runs: 3"));
    project.run(&["x.yaml"]).expect_code(0);
    let parquet = project.record("x");
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("journal")).unwrap();
    let mut manifest = parquet.manifest.clone();
    let invocation = std::mem::take(&mut manifest.findings).invocations.remove(0);
    Record::create(copy.path().to_owned(), manifest, invocation, &LocalPaths::default()).unwrap();
    for run in &parquet.runs {
        run.write(copy.path()).unwrap();
    }
    let journal = whole_record(copy.path());
    assert_eq!(journal.runs, parquet.runs);
    assert!(parquet.runs.iter().any(|run| !run.data.measured.is_empty()));
}

#[test]
fn rendering_again_gives_the_same_bytes() {
    let project = Project::with_spec(&two("1%", 1.02));
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    let folder = folder.to_str().unwrap();
    project.run(&["report", folder, "--output", "again"]).expect_code(0);
    for file in ["report.md", "report.html", "results.json"] {
        assert_eq!(project.read(&format!("reports/x/{file}")), project.read(&format!("again/{file}")), "{file}");
    }
}

#[test]
fn the_same_specification_gives_the_same_plan_and_the_same_scripted_samples() {
    let spec = two("1%", 1.0);
    let (first, second) = (Project::with_spec(&spec), Project::with_spec(&spec));
    assert_eq!(first.run(&["plan", "x.yaml", "--json"]).stdout, second.run(&["plan", "x.yaml", "--json"]).stdout);
    first.run(&["x.yaml"]).expect_code(0);
    second.run(&["x.yaml"]).expect_code(0);
    let samples =
        |project: &Project| project.record("x").runs.into_iter().map(|run| run.data.measured).collect::<Vec<_>>();
    assert_eq!(samples(&first), samples(&second));
}

#[test]
fn a_report_without_any_number_replaces_none_that_has_some() {
    let project = Project::with_spec(&two("1%", 1.0));
    project.run(&["x.yaml"]).expect_code(0);
    let committed = project.read("reports/x/report.md");
    project.write(
        "x.yaml",
        &two("1%", 1.0).replace("models: [m]", "models: [m]\nmatrix: { include: [] }").replace(
            "variants: [base, { name: other, mock: { scale: 1 } }]",
            "variants: [{ name: base, mock: { fail: { kind: error, at: load } } }]",
        ),
    );
    project.run(&["x.yaml"]).expect_code(3);
    assert_eq!(committed, project.read("reports/x/report.md"));
}

#[test]
fn resuming_after_the_specification_changed_does_not_commit() {
    let project = hanging();
    let (mut child, _stderr) = start_until_third_block(&project);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let manifest = project.record_folder("x").join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"hang\"", "\"error\"")).unwrap();
    project.write("x.yaml", &project.read("x.yaml").replace("runs: 4", "runs: 5"));
    let done = project.run(&["x.yaml", "--resume"]).expect_code(3);
    assert!(done.stderr.contains("has changed since this record began"), "{}", done.stderr);
    assert!(!project.path("reports/x").exists());
}

#[test]
fn less_than_the_whole_specification_is_not_committed() {
    let project = Project::with_spec(&two("1%", 1.0));
    for flags in [&["--runs", "3"][..], &["--only", "variant=base"], &["--set", "seed=7"]] {
        let arguments: Vec<&str> = ["x.yaml"].iter().chain(flags).copied().collect();
        project.run(&arguments).expect_code(0);
    }
    assert!(!project.path("reports/x/report.md").exists());
}

/// What distinguishes machines is what they are made of: two images may share the id of an installation.
#[test]
fn a_report_of_another_machine_is_not_overwritten() {
    let project = Project::with_spec(&two("1%", 1.0).replace("runs: 10", "runs: 2"));
    project.run(&["x.yaml"]).expect_code(0);
    let path = project.path("reports/x/results.json");
    let mut results = judge::results::read(&path).unwrap();
    let machine = results.provenance.machine.clone();
    results.provenance.frame.insert("cpu".to_owned(), "Another CPU".into());
    project.write("reports/x/results.json", &results.to_json());
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("was measured on another machine (cpu: Another CPU, here "), "{}", done.stderr);
    assert!(project.path(&format!("reports/x@{machine}/report.md")).is_file());
    project.run(&["x.yaml", "--replace"]).expect_code(0);
    assert_ne!(judge::results::read(&path).unwrap(), results);
    // Another installation of the same machine.
    results = judge::results::read(&path).unwrap();
    results.provenance.context.insert("host".to_owned(), "ffffffff".into());
    project.write("reports/x/results.json", &results.to_json());
    project.run(&["x.yaml"]).expect_code(0);
    assert_ne!(judge::results::read(&path).unwrap().provenance.context["host"], "ffffffff");
}

#[test]
fn every_output_tells_whether_it_can_be_believed() {
    let spec =
        "backend: { mock: { run_sd: 0.5% } }\nmodels: [m]\nvariants: [a, { name: b, mock: { scale: 1.5 } }]\nruns: 8\n";
    let project = Project::with_spec(spec);
    let whole = project.run(&["x.yaml", "--output", "whole"]).expect_code(0);
    assert!(whole.stdout.contains("\ntrust      control passed, noise floor "), "{}", whole.stdout);
    assert!(project.read("whole/report.md").contains(", control passed\n"));
    let off = project.run(&["x.yaml", "--set", "compare.aa=off", "--output", "off"]).expect_code(0);
    assert!(off.stdout.contains("\ntrust      no control (`compare.aa: off`)"), "{}", off.stdout);
    let quick = project.run(&["x.yaml", "--quick", "--output", "quick"]).expect_code(0);
    assert!(quick.stderr.contains("quick look 5 short runs per cell, no control"), "{}", quick.stderr);
    assert!(quick.stdout.contains("\ntrust      quick look: no control, and only differences beyond 10 %"));
    assert!(project.read("quick/report.md").starts_with("# x: quick look\n"));
    assert!(project.read("quick/report.html").contains("<title>x: quick look</title>"));
    let results: serde_json::Value = serde_json::from_str(&project.read("quick/results.json")).unwrap();
    assert_eq!(results["measured"]["quick"], true);
}

/// A change of perfrun or of a template that would change a committed report shows without writing it.
#[test]
fn a_report_is_checked_without_being_written() {
    let project =
        Project::with_spec("backend: mock\nmodels: [net]\nvariants: [a, { name: b, mock: { scale: 0.5 } }]\n");
    project.run(&["x.yaml"]).expect_code(0);
    let record = format!(".perfrun/records/x/{}", project.record("x").manifest.record);
    let checks: [&[&str]; 2] = [&["report", "reports/x", "--check"], &["report", &record, "--check"]];
    for check in checks {
        let done = project.run(check).expect_code(0);
        assert!(done.stdout.contains("unchanged"), "{}", done.stdout);
    }
    let page = project.read("reports/x/report.md") + "edited\n";
    project.write("reports/x/report.md", &page);
    for check in checks {
        let done = project.run(check).expect_code(4);
        assert!(done.stdout.contains("changes") && done.stdout.contains("report.md"), "{}", done.stdout);
        assert_eq!(project.read("reports/x/report.md"), page);
    }
    std::fs::remove_file(project.path("reports/x/report.md")).unwrap();
    assert!(project.run(checks[0]).expect_code(4).stdout.contains("missing"));
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    assert_eq!(results["cells"][0]["validity"], "valid");
}
