//! Cells of different devices at the same time (`measure.parallel`), on scripted latencies.

use std::process::Stdio;

use judge::results::{Cell, Results, read};
use rustix::process::Signal;

use crate::need::need;
use crate::pipeline::{assert_one_outcome_each, read_until, signal};
use crate::support::Project;

/// Two variants on three devices; a run is slower by `beside` while cells of other devices run.
fn spec(beside: &str, measure: &str, more: &str) -> String {
    format!(
        "backend: {{ mock: {{ median: 1ms, run_sd: 0.3%, noise: 1%, beside: {beside} }} }}\nmodels: [m]\n\
         inputs: {{ batch: [1, 8] }}\nvariants: [base, {{ name: other, mock: {{ scale: 1.1 }} }}]\n\
         devices: [cpu, 'cuda:0', 'cuda:1']\ncompare: {{ baseline: {{ variant: base }} }}\nruns: 8\n\
         measure: {{ {measure} stop: {{ mode: samples, count: 60 }} }}\n{more}"
    )
}

fn results(project: &Project) -> Results {
    read(&project.path("reports/x/results.json")).unwrap()
}

/// Whether the two say the same of every cell and every comparison, but for what only lone runs can measure.
fn assert_same(first: &Results, second: &Results) {
    let shown = |cell: &Cell| {
        let latencies = cell.metrics.get("latency_ns").cloned();
        (cell.id, cell.status, cell.completed, latencies, cell.codes.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(first.cells.iter().map(shown).collect::<Vec<_>>(), second.cells.iter().map(shown).collect::<Vec<_>>());
    assert_eq!(first.comparisons, second.comparisons);
}

fn measured(measure: &str, beside: &str) -> (Project, Results) {
    let project = Project::with_spec(&spec(beside, measure, ""));
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    (project, results)
}

#[test]
fn devices_that_do_not_disturb_each_other_give_at_once_what_they_give_one_after_the_other() {
    let (project, at_once) = measured("parallel: devices,", "0%");
    let [trial] = at_once.method.together.as_slice() else { panic!("{:?}", at_once.method.together) };
    assert!(trial.holds && trial.devices == ["cpu", "cuda:0", "cuda:1"], "{trial:?}");
    assert_eq!(trial.tried.len(), 6, "the shortest and the longest cell of each device");
    assert_same(&at_once, &measured("", "0%").1);
    let record = project.record("x");
    assert_one_outcome_each(&record);
    let report = project.page("reports/x");
    let short = project.read("reports/x/report.md");
    assert!(short.contains("in randomised blocks, devices at the same time"), "{short}");
    assert!(report.contains("cpu, cuda:0 and cuda:1: cells run at the same time"), "{report}");
}

#[test]
fn devices_that_disturb_each_other_are_named_and_run_one_after_the_other() {
    let project = Project::with_spec(&spec("4%", "parallel: devices,", ""));
    let done = project.run(&["x.yaml"]).expect_code(0);
    let found = results(&project);
    let trials: Vec<(usize, bool)> =
        found.method.together.iter().map(|trial| (trial.devices.len(), trial.holds)).collect();
    assert_eq!(trials, [(3, false), (2, false)], "without the processors is tried too");
    assert!(done.stderr.contains("not at the same time; run together, latency of m/b"), "{}", done.stderr);
    assert_same(&found, &measured("", "4%").1);
    assert!(!project.read("reports/x/report.md").contains("devices at the same time"));
}

#[test]
fn a_disturbance_within_the_margin_is_none() {
    let (_, found) = measured("parallel: devices,", "0.5%");
    assert!(found.method.together.iter().all(|trial| trial.holds), "{:?}", found.method.together);
}

#[test]
fn what_several_devices_at_work_hide_keeps_them_apart() {
    let more = "goals: [{ metric: package_energy, max: 1J }]\n";
    let text = spec("0%", "parallel: devices,", more).replace("beside:", "device: { package_watts: 100 }, beside:");
    let project = Project::with_spec(&text);
    project.run(&["x.yaml"]).expect_code(0);
    let problem = results(&project).method.together[0].problem.clone().unwrap_or_default();
    assert!(problem.contains("has no `package_energy` while other devices are at work"), "{problem}");
}

#[test]
fn runs_that_fail_end_nobody_elses() {
    let fail = "{ scale: 1.1, fail: { kind: crash, at: measure, runs: [2, 5] } }";
    let failing = |measure: &str| {
        let project = Project::with_spec(&spec("0%", measure, "").replace("{ scale: 1.1 }", fail));
        project.run(&["x.yaml"]).expect_code(3);
        (project.record("x"), results(&project))
    };
    let ((record, at_once), (_, alone)) = (failing("parallel: devices,"), failing(""));
    assert!(at_once.method.together[0].holds);
    assert_one_outcome_each(&record);
    assert_same(&at_once, &alone);
}

/// Until `go` is there, runs hang before they begin.
const WAITS: &str = "[sh, -c, 'while ! test -e go; do read -r _ < stop; done; exec \"$@\"', sh]";

#[test]
fn an_interrupted_record_goes_on_in_its_lanes() {
    let text = spec("0%", "parallel: devices, timeout: 1h,", "")
        .replace("name: other,", &format!("name: other, wrap: {WAITS},"));
    let project = Project::with_spec(&text);
    assert!(std::process::Command::new("mkfifo").arg(project.path("stop")).status().unwrap().success());
    project.write("go", "");
    let mut child = project.command(&["x.yaml"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    read_until(&mut stderr, "block 1 of 8");
    std::fs::remove_file(project.path("go")).unwrap();
    signal(&child, Signal::INT);
    read_until(&mut stderr, "interrupted");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let record = project.record("x");
    assert_one_outcome_each(&record);
    let kept = record.runs.len();
    assert!(!record.manifest.findings.complete && record.manifest.findings.side_by_side.is_some());
    project.write("go", "");
    project.run(&["x.yaml", "--resume"]).expect_code(0);
    let resumed = project.record("x");
    assert_one_outcome_each(&resumed);
    assert!(kept > 12 && resumed.runs.len() > kept && resumed.manifest.findings.complete);
    assert_same(&results(&project), &measured("", "0%").1);
}

#[test]
fn what_cannot_be_parallel_is_said() {
    let project = Project::with_spec(&spec("0%", "parallel: devices, design: slices,", ""));
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("only available with `design: blocks`"), "{}", done.stderr);
    let text = spec("0%", "parallel: devices,", "").replace("devices: [cpu, 'cuda:0', 'cuda:1']", "devices: [cpu]");
    let done = Project::with_spec(&text).run(&["validate", "x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("has no effect with one device"), "{}", done.stderr);
    let project = Project::with_spec(&spec("0%", "parallel: devices,", ""));
    project.run(&["x.yaml", "--quick"]).expect_code(0);
    assert!(project.record("x").manifest.findings.side_by_side.is_none(), "a quick look tries nothing");
}

/// One cell on each of two devices, by an adapter that needs neither.
const ADAPTER: &str = r#"
class Adapter:
    def describe(self):
        return "own 1.0", {}, ["cpu", "webgpu"]
    def load(self, cell):
        self.device = cell.device
    def inputs(self, arrays):
        return arrays["x"]
    def call(self, x):
        return x + 1
    def outputs(self, result):
        return {"y": result}
    def placement(self, result):
        return {self.device: 1}
"#;

#[test]
fn a_trial_that_takes_longer_than_it_can_save_is_not_begun() {
    let python = need!(numpy);
    let project = Project::with_spec(&format!(
        "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\n\
         runtimes: [{{ name: own, adapter: own.py, python: {python} }}]\nvariants: [{{ name: v, runtime: own }}]\n\
         devices: [cpu, webgpu]\nruns: 2\ncompare: {{ aa: off }}\nmeasure: {{ parallel: devices, \
         warmup: {{ mode: samples, count: 2 }}, stop: {{ mode: samples, count: 5 }} }}\n"
    ));
    project.write("mine.py", "def predict(x):\n    return {'y': x + 1}\n");
    project.write("own.py", ADAPTER);
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let [trial] = results.method.together.as_slice() else { panic!("{:?}", results.method.together) };
    let problem = trial.problem.as_deref().unwrap_or_default();
    assert!(!trial.holds && trial.tried.is_empty() && problem.starts_with("a trial would take "), "{trial:?}");
    assert!(results.cells.iter().all(|cell| cell.completed == 2), "{:?}", results.cells);
}
