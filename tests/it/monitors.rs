//! From YAML to report: what a device did while it was measured, on a GPU that a script plays.

use judge::summary::summarize;
use record::{Record, RunKind};

use crate::need::need;
use crate::support::Project;

/// One model on a scripted GPU, six runs of 60 samples of 1 ms.
fn spec(device: &str, more: &str) -> String {
    format!(
        "backend: {{ mock: {{ median: 1ms, run_sd: 0%, noise: 1%, device: {{ {device} }} }} }}\nmodels: [m]\n\
         devices: [cuda]\nruns: 6\nmeasure: {{ stop: {{ mode: samples, count: 60 }} }}\n{more}"
    )
}

fn measured(device: &str) -> (Project, Record) {
    let project = Project::with_spec(&spec(device, ""));
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    (project, record)
}

/// The codes of the first counted run.
fn codes(record: &Record) -> Vec<String> {
    record.runs.iter().find(|run| run.kind == RunKind::Main).unwrap().warnings.clone()
}

fn report(project: &Project) -> String {
    project.page("reports/x")
}

#[test]
fn a_gpu_that_does_what_it_should_raises_nothing() {
    let (project, record) = measured("");
    assert_eq!(codes(&record), [""; 0]);
    assert!(!report(&project).contains("W_GPU"), "{}", report(&project));
}

#[test]
fn heat_and_power_slow_a_gpu_down_and_the_report_says_which() {
    for (slowed, cause) in [("heat", "GPU was throttled by heat"), ("power", "GPU was throttled by its power limit")] {
        let (project, record) = measured(&format!("slowed: {slowed}"));
        assert_eq!(codes(&record), ["W_GPU_THROTTLED"], "{slowed}");
        let report = report(&project);
        assert!(report.contains(cause) && report.contains("in 12 of 12 runs"), "{report}");
    }
}

/// The script's GPU stays hot, so that each run is kept at the fourth try.
#[test]
fn a_run_that_heat_slowed_down_is_taken_again_and_the_report_says_so() {
    let spec = |more: &str| spec(&format!("slowed: {more}"), "").replace("measure: {", "measure: { retake: throttled,");
    let project = Project::with_spec(&spec("heat"));
    project.run(&["x.yaml"]).expect_code(0);
    let runs = project.record("x").runs;
    assert!(runs.iter().filter(|run| run.kind != RunKind::Rehearsal).all(|run| run.retaken == 3), "{runs:?}");
    assert!(
        report(&project).contains("Runs were taken again 36 times, because heat slowed them down"),
        "{}",
        report(&project)
    );

    let project = Project::with_spec(&spec("power"));
    project.run(&["x.yaml"]).expect_code(0);
    assert!(project.record("x").runs.iter().all(|run| run.retaken == 0), "a power limit does not cool down");
}

#[test]
fn a_clock_that_moves_is_told_and_a_lock_is_the_remedy() {
    let (project, record) = measured("clocks: [1500, 1400]");
    assert_eq!(codes(&record), ["W_GPU_CLOCKS"]);
    assert!(report(&project).contains("GPU's clock changed by 6.7 %"), "{}", report(&project));
    let (_, record) = measured("clocks: [1500, 1426]");
    assert_eq!(codes(&record), [""; 0], "4.9 % is within the limit");
}

#[test]
fn others_on_a_gpu_are_told_by_their_memory_and_by_their_time() {
    for (mock, cause) in [
        ("others_memory: 20%", "processes held 20 % of the GPU's memory"),
        ("others: 30%", "processes used 30 % of the GPU"),
    ] {
        let (project, record) = measured(mock);
        assert_eq!(codes(&record), ["W_GPU_SHARED"], "{mock}");
        assert!(report(&project).contains(cause), "{}", report(&project));
    }
}

#[test]
fn memory_that_is_nearly_full_and_persistence_that_is_off_are_told() {
    let (project, record) = measured("memory: 96%");
    assert_eq!(codes(&record), ["W_GPU_MEMORY"]);
    assert!(report(&project).contains("W_GPU_MEMORY"), "{}", report(&project));
    let (project, record) = measured("persistence: false");
    assert_eq!(codes(&record), [""; 0], "it is the record's");
    assert!(project.read("reports/x/results.json").contains("W_GPU_PERSISTENCE"));
}

#[test]
fn energy_per_inference_is_power_times_time_over_inferences_and_the_idle_level_is_kept() {
    let (project, record) = measured("watts: 250, idle_watts: 40, package_watts: 90, memory: 10%");
    let summary = summarize(&record.manifest, &record.runs).unwrap();
    let value = |metric: &str| summary.cells[0].metrics[metric].estimate.value;
    // 250 W and 90 W for about a millisecond each.
    let latency = value("latency_ns") / 1e9;
    assert!((value("device_energy_joules") / (250.0 * latency) - 1.0).abs() < 0.02);
    assert!((value("package_energy_joules") / (90.0 * latency) - 1.0).abs() < 0.02);
    assert_eq!(value("device_memory_bytes") as u64, (16_u64 << 30) / 10);
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(project.record_folder("x").join("passes/devices.json")).unwrap())
            .unwrap();
    assert_eq!(kept["devices"][0]["look"]["idle_watts"], 40.0);
    let report = report(&project);
    assert!(report.contains("| idle watts | gpus device cuda:0, watts 40 |"), "{report}");
    assert!(
        report.contains("name a GPU of a script, memory gib 16") && report.contains("device energy, mJ"),
        "{report}"
    );
}

#[test]
fn what_was_read_is_kept_with_its_run_and_found_again() {
    let (project, record) = measured("clocks: [1500, 1400], watts: 250");
    let run = record.runs.iter().find(|run| run.kind == RunKind::Main).unwrap();
    assert_eq!(run.series.len(), 3, "one before the samples, and one for each clock");
    let clocks: Vec<Option<f64>> = run.series.iter().map(|point| point.clock_cycles_per_s).collect();
    assert_eq!(clocks, [Some(210e6), Some(1500e6), Some(1400e6)]);
    assert_eq!(run.series.iter().map(|point| point.sampling).collect::<Vec<_>>(), [false, true, true]);
    assert!(record.runs.iter().filter(|run| run.kind == RunKind::Rehearsal).all(|run| run.series.is_empty()));
    assert!(project.record_folder("x").join("series.parquet").is_file());
    // Where nobody looks there is nothing to keep.
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 1\n");
    project.run(&["x.yaml"]).expect_code(0);
    assert!(!project.record_folder("x").join("series.parquet").exists());
}

#[test]
fn a_gpu_that_is_not_as_required_ends_the_run_before_the_first_block() {
    for (device, require, says) in [
        ("locked: false", "gpu_clocks: locked", "its clock is not locked"),
        ("others_memory: 20%", "foreign_processes: none", "computes on it"),
    ] {
        let project = Project::with_spec(&spec(device, &format!("require: {{ {require} }}\n")));
        let done = project.run(&["x.yaml"]).expect_code(2);
        assert!(done.stderr.contains(says) && done.stderr.contains("help"), "{}", done.stderr);
        assert!(project.record("x").runs.is_empty(), "nothing was run");
    }
}

#[test]
fn a_gpu_that_is_as_required_is_measured() {
    let more = "require: { gpu_clocks: locked, foreign_processes: none }\n";
    let project = Project::with_spec(&spec("locked: true", more));
    project.run(&["x.yaml"]).expect_code(0);
    let plan = project.run(&["plan", "x.yaml"]).expect_code(0).stdout;
    assert!(plan.contains("locked GPU clocks and no other process on the GPU"), "{plan}");
}

#[test]
fn what_is_required_of_gpus_needs_one() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nrequire: { gpu_clocks: locked }\n");
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("`devices` has none"), "{}", done.stderr);
}

#[test]
fn energy_can_be_chosen_by_and_bounded() {
    let more = "choose: { best: device_energy, within: [{ metric: device_energy, max: 400mJ }] }\n\
                goals: [{ name: frugal, metric: device_energy, max: 400mJ }]\n";
    let project = Project::with_spec(&spec("", more));
    project.run(&["x.yaml"]).expect_code(0);
    assert!(report(&project).contains("frugal"), "{}", report(&project));
}

#[test]
fn slices_know_what_each_cell_drew_and_not_whose_memory_it_is() {
    let spec = spec("watts: 100", "variants: [a, b]\n").replace("measure: {", "measure: { design: slices,");
    let project = Project::with_spec(&spec);
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    let run = record.runs.iter().find(|run| run.kind == RunKind::Main).unwrap();
    assert!(run.data.metrics.contains_key("device_energy_joules"));
    assert!(!run.data.metrics.contains_key("device_memory_bytes"), "others of perfrun hold some too");
}

#[test]
fn without_a_driver_there_is_nothing_to_lock() {
    need!(no_nvidia_driver);
    let done = Project::new().run(&["doctor", "--fix"]).expect_code(2);
    assert!(done.stderr.contains("no GPU to lock"), "{}", done.stderr);
}
