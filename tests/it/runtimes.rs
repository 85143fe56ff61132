//! The runtimes axis: with scripted latencies, with two real versions of ONNX Runtime, and in records that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use experiment::Axis;
use record::{Outcome, Record, RunKind};

use crate::need::need;
use crate::support::Project;

const SCRIPTED: &str = "backend: mock\nmodels: [m]\ninputs: { batch: [1, 8] }\nruntimes: [old, new]\nruns: 5\n\
                        measure: { warmup: { mode: samples, count: 5 }, stop: { mode: samples, count: 60 } }\n";

fn paths(record: &Record) -> Vec<String> {
    let plan = &record.manifest.plan;
    plan.runnable().map(|(_, cell)| plan.path(cell)).collect()
}

#[test]
fn runtimes_are_compared_where_variants_are_not() {
    let project = Project::with_spec(SCRIPTED);
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("b1: new or old. Equivalent to each other."), "{}", done.stdout);
    let record = project.record("x");
    let all = ["m/b1/fp32/cpu/old", "m/b1/fp32/cpu/new", "m/b8/fp32/cpu/old", "m/b8/fp32/cpu/new"];
    assert_eq!(paths(&record), all);
    let baseline = record.manifest.plan.baseline.clone().unwrap();
    assert_eq!((baseline.axes, baseline.name.as_str()), (vec![Axis::Runtimes], "old"));
    // Each against the first runtime: the outputs of the reference variant have no other reference.
    let references: Vec<(u32, u32)> =
        record.manifest.fidelity().iter().map(|found| (found.cell, found.reference.unwrap())).collect();
    assert_eq!(references, [(1, 0), (3, 2)]);
    let report = project.page("reports/x");
    assert!(report.contains("| runtime | mean items/s | latency | against old |"), "{report}");
    let results = judge::results::read(&project.path("reports/x/results.json")).unwrap();
    let runtimes: Vec<&str> = results.cells.iter().map(|cell| cell.names[Axis::Runtimes].as_str()).collect();
    assert_eq!(runtimes, ["old", "new", "old", "new"]);
}

#[test]
fn runtimes_are_selected_excluded_and_tabled_like_every_axis() {
    let project = Project::with_spec(&format!(
        "{SCRIPTED}variants: [a, b]\nmatrix: {{ exclude: [{{ runtime: new, variant: b }}] }}\n\
         compare: {{ baseline: {{ variant: a, runtime: old }} }}\n\
         tables: [{{ name: t, rows: [runtime], columns: [variant, input] }}]\n"
    ));
    let plan = project.run(&["plan", "x.yaml", "--only", "runtime=ol*,batch=1"]).expect_code(0).stdout;
    assert!(plan.contains("1 model x 2 inputs x 2 variants x 1 device x 2 runtimes = 8 cells; 2 excluded"), "{plan}");
    assert!(plan.contains("variant and runtime `a/old`"), "{plan}");
    project.run(&["x.yaml", "--only", "runtime=ol*,batch=1"]).expect_code(0);
    assert_eq!(paths(&project.record("x")), ["m/b1/a/cpu/old", "m/b1/b/cpu/old"]);
    let refused = project.run(&["x.yaml", "--only", "runtime=older"]).expect_code(2);
    assert!(refused.stderr.contains("known runtimes: `old` and `new`"), "{}", refused.stderr);
}

/// A fidelity reference has the cell's own runtime where the variants differ.
#[test]
fn variants_are_compared_with_the_reference_of_their_runtime() {
    let project = Project::with_spec(&format!("{SCRIPTED}variants: [a, b]\n"));
    project.run(&["x.yaml", "--only", "batch=1"]).expect_code(0);
    let record = project.record("x");
    let path = |cell: u32| record.manifest.plan.path(&record.manifest.plan.cells[cell as usize]);
    let compared: Vec<(String, String)> =
        record.manifest.fidelity().iter().map(|found| (path(found.cell), path(found.reference.unwrap()))).collect();
    let expected = [
        ("m/b1/a/cpu/new", "m/b1/a/cpu/old"),
        ("m/b1/b/cpu/old", "m/b1/a/cpu/old"),
        ("m/b1/b/cpu/new", "m/b1/a/cpu/new"),
    ];
    assert_eq!(compared, expected.map(|(cell, reference)| (cell.to_owned(), reference.to_owned())));
}

fn real(runtimes: &str) -> Project {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-mlp.onnx");
    let project = Project::new();
    std::fs::copy(model, project.path("m.onnx")).unwrap();
    project.write(
        "x.yaml",
        &format!(
            "models: m.onnx\ninputs: {{ batch: 1 }}\nruns: 2\nruntimes: {runtimes}\nvariants: [{{ name: one, threads: 1 }}]\n\
             measure: {{ warmup: {{ mode: samples, count: 3 }}, stop: {{ mode: samples, count: 10 }} }}\n"
        ),
    );
    project
}

/// What each runtime's runs said of the library that they had opened.
fn versions_by_runtime(record: &Record) -> BTreeMap<String, BTreeSet<String>> {
    let plan = &record.manifest.plan;
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for run in record.runs.iter().filter(|run| run.outcome == Outcome::Completed) {
        let cell = plan.cells.iter().find(|cell| cell.id == run.cell).unwrap();
        let version = run.data.placement.clone().unwrap().runtime_version.unwrap();
        versions.entry(plan.coordinates(cell)[Axis::Runtimes].to_owned()).or_default().insert(version);
    }
    versions
}

#[test]
fn every_run_loads_the_library_of_its_runtime() {
    let [old, _] = need!(two_onnxruntimes);
    let project = real("[1.30.0, 1.31.1, { name: mine, path: build }]");
    std::fs::create_dir(project.path("build")).unwrap();
    std::os::unix::fs::symlink(old, project.path("build/libonnxruntime.so")).unwrap();
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("ONNX Runtime 1.30.0, 1.31.1 and mine (1.30.0), "), "{}", done.stderr);
    let record = project.record("x");
    assert_eq!(record.runs.iter().filter(|run| run.kind == RunKind::Main).count(), 6);
    let only = |version: &str| BTreeSet::from([version.to_owned()]);
    let expected = [("1.30.0", only("1.30.0")), ("1.31.1", only("1.31.1")), ("mine", only("1.30.0"))];
    assert_eq!(versions_by_runtime(&record), expected.map(|(name, found)| (name.to_owned(), found)).into());
    let used: Vec<_> = record.manifest.libraries().map(|(_, used)| used).collect();
    assert!(record.manifest.runtime.is_none() && used.iter().all(|used| used.build.is_some()));
    assert_eq!((&used[0].sha256, used[2].origin.as_str()), (&used[2].sha256, "the specification"));
    assert_ne!(used[0].sha256, used[1].sha256);
    assert_eq!(record.manifest.experiment.runtimes[2].path.as_deref(), Some(Path::new("build")));
    let report = project.page("reports/x");
    assert!(report.contains("ONNX Runtime 1.30.0, 1.31.1 and mine (1.30.0), cpu"), "{report}");
    let hash = used[1].sha256.as_str();
    assert!(report.contains(hash), "{hash} in {report}");
}

#[test]
fn a_record_goes_on_with_the_libraries_that_it_began_with() {
    let [old, new] = need!(two_onnxruntimes);
    let project = real("[1.31.1, { name: mine, path: build }]");
    std::fs::create_dir(project.path("build")).unwrap();
    std::os::unix::fs::symlink(old, project.path("build/libonnxruntime.so")).unwrap();
    project.run(&["x.yaml"]).expect_code(0);
    // As if it had been interrupted: the last run is not there yet.
    let folder = project.record_folder("x");
    std::fs::remove_file(folder.join("complete.json")).unwrap();
    std::fs::remove_file(project.path("build/libonnxruntime.so")).unwrap();
    std::os::unix::fs::symlink(new, project.path("build/libonnxruntime.so")).unwrap();
    let refused = project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(2);
    assert!(refused.stderr.contains("the ONNX Runtime library"), "{}", refused.stderr);
}

#[test]
fn a_flag_and_runtimes_contradict_each_other() {
    let [old, _] = need!(two_onnxruntimes);
    let project = real("[1.30.0, 1.31.1]");
    let refused = project.run(&["x.yaml", "--runtime", old.to_str().unwrap()]).expect_code(2);
    assert!(refused.stderr.contains("conflicts with"), "{}", refused.stderr);
}

/// A cache without the version and a path without pip: the same as no network, and said before anything is measured.
#[test]
fn a_version_that_cannot_be_had_ends_the_command_with_the_way_out() {
    let project = real("[1.30.0]");
    let mut command = project.command(&["x.yaml"]);
    let output =
        command.env("PERFRUN_CACHE", project.path("empty")).env("PATH", project.path("nothing")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for words in ["the runtime `1.30.0` of the specification", "needs pip", "perfrun runtime install 1.30.0"] {
        assert!(stderr.replace("\n        ", " ").contains(words), "{words} in {stderr}");
    }
    assert!(!project.path(".perfrun/records").exists());
}

#[test]
fn what_is_not_onnxruntime_is_refused_once_before_anything_is_measured() {
    let named = real("[{ name: mine, path: PATH }]");
    let unnamed = real("[1.31.1]");
    unnamed.write("x.yaml", &unnamed.read("x.yaml").replace("runtimes: [1.31.1]\n", ""));
    let spec = named.read("x.yaml");
    named.write("text.so", "hello");
    let cases = [
        (named.path("text.so"), "is not a shared library for this system: not an ELF file"),
        (std::fs::canonicalize("/bin/sh").unwrap(), "is not ONNX Runtime: it has no function `OrtGetApiBase`"),
        (named.path("."), "there is no libonnxruntime.so in the folder"),
        (named.path("missing.so"), "there is no ONNX Runtime library at"),
    ];
    for (path, problem) in &cases {
        named.write("x.yaml", &spec.replace("PATH", path.to_str().unwrap()));
        // A specification that names what is not there is not valid.
        let runs = [(&unnamed, "`ORT_DYLIB_PATH`"), (&named, "the specification")];
        for (project, origin) in runs.into_iter().filter(|(project, _)| path.exists() || project.root() != named.root())
        {
            let done = project.command(&["x.yaml"]).env("ORT_DYLIB_PATH", path).output().unwrap();
            let stderr = String::from_utf8(done.stderr).unwrap();
            assert_eq!((done.status.code(), stderr.matches('×').count()), (Some(2), 1), "{stderr}");
            let words = stderr.replace("\n  │ ", " ").replace("\n        ", " ");
            for part in [problem, origin, "help: name the"] {
                assert!(words.contains(part), "{part} in {stderr}");
            }
            assert!(!project.path(".perfrun/records").exists());
        }
        let doctor = unnamed.command(&["doctor"]).env("ORT_DYLIB_PATH", path).output().unwrap();
        let text = String::from_utf8(doctor.stdout).unwrap();
        assert!(text.contains("runtime    NOT USABLE: "), "{text}");
    }
}

#[test]
fn options_of_the_provider_and_the_execution_mode_reach_the_session() {
    need!(onnxruntime);
    let project = real("[1.31.1]");
    let spec = project.read("x.yaml").replace("runtimes: [1.31.1]\n", "").replace(
        "[{ name: one, threads: 1 }]",
        "\n  - { name: plain, threads: 1 }\n  - { name: arena, threads: 1, provider: { cpu: { use_arena: 1 } } }\n\
         \x20 - { name: side-by-side, threads: { intra: 1, inter: 2 }, execution: parallel }",
    );
    project.write("x.yaml", &spec);
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    assert!(record.runs.iter().all(|run| run.outcome == Outcome::Completed));
    assert_eq!(record.manifest.experiment.variants[1].provider["cpu"]["use_arena"], "1");
    // Settings are what a definition is made of.
    let definitions: BTreeSet<&String> = record.manifest.definitions.iter().collect();
    assert_eq!(definitions.len(), 3);
}
