//! Devices other than the CPU: with scripted latencies, and for real through WebGPU, on any Vulkan driver that Dawn takes
//! (`tests/install_vulkan_driver.sh` installs one that needs no GPU), and through OpenVINO on processors of Intel.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use judge::results::{Cell, Results, read};

use crate::need::{self, need};
use crate::support::{Done, Project};

/// What a run on WebGPU takes beyond the CPU's: its package, and few samples, since a driver without a GPU is slow.
const WEBGPU: &str = "devices: [cpu, webgpu]\nruntimes: [{ name: webgpu, version: 1.27.0, package: onnxruntime-webgpu }]\n\
                      measure: { warmup: { mode: samples, count: 2 }, stop: { mode: samples, count: 5 } }\n\
                      compare: { aa: off }\n";

/// Why a comparison with much time on the CPU has no verdict.
const WITHHELD: &str = "too much of the time was spent on the CPU";

fn file(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

fn with_driver(mut command: Command, driver: &Path) -> Done {
    Done::from(command.env("VK_DRIVER_FILES", driver).output().unwrap())
}

fn results(project: &Project) -> Results {
    read(&project.path("reports/x/results.json")).unwrap()
}

fn cell<'a>(results: &'a Results, device: &str) -> &'a Cell {
    use experiment::Axis;
    results.cells.iter().find(|cell| cell.names[Axis::Devices] == device).unwrap()
}

#[test]
fn a_model_runs_on_webgpu_with_the_outputs_of_the_cpu() {
    let driver = &need!(webgpu).driver;
    let model = file("experiments/models/digits-cnn.onnx");
    let profiled = WEBGPU.replace("measure: {", "measure: { profile: { processes: 1 },");
    let project = Project::with_spec(&format!("models: {model}\ninputs: {{ batch: 2 }}\nruns: 1\n{profiled}"));
    with_driver(project.command(&["x.yaml"]), driver).expect_code(0);
    let results = results(&project);
    let webgpu = cell(&results, "webgpu");
    assert!(webgpu.nodes.keys().any(|provider| provider == "WebGpuExecutionProvider"), "{:?}", webgpu.nodes);
    assert!(webgpu.on_cpu.is_empty() && !webgpu.codes.contains_key("W_CPU_FALLBACK"), "{webgpu:?}");
    assert_eq!(webgpu.metrics["fallback_ratio"].value, 0.0);
    // Every program on the device has its time, which is none of the CPU's.
    let profile = webgpu.profile.as_ref().expect("one was asked for");
    assert_eq!((profile.handed_over, profile.operators[0].operator.as_deref()), (0, Some("Conv")), "{profile:?}");
    assert!(webgpu.fidelity.as_ref().is_some_and(|found| found.passes()), "{:?}", webgpu.fidelity);
    assert!(!cell(&results, "cpu").metrics.contains_key("fallback_ratio"));
    assert_eq!(results.provenance.frame["boundary"], "device");
    let report = project.page("reports/x");
    assert!(report.contains("On webgpu inputs were on the device, and the copy of outputs"), "{report}");
}

/// Six remainders of division, which WebGPU does not take, between two nodes that it does.
#[test]
fn what_webgpu_does_not_take_is_named_and_not_judged() {
    let driver = &need!(webgpu).driver;
    let model = file("tests/fixtures/models/on_cpu.onnx");
    let project = Project::with_spec(&format!("models: {model}\ninputs: {{ batch: 8 }}\nruns: 5\n{WEBGPU}"));
    let done = with_driver(project.command(&["x.yaml"]), driver).expect_code(0);
    assert!(done.stdout.contains("% on cpu"), "{}", done.stdout);
    let results = results(&project);
    let webgpu = cell(&results, "webgpu");
    assert_eq!(webgpu.on_cpu, [("Mod".to_owned(), 6)].into());
    assert!(webgpu.metrics["fallback_ratio"].value > 0.05, "{:?}", webgpu.metrics["fallback_ratio"]);
    assert!(webgpu.codes.contains_key("W_CPU_FALLBACK"));
    assert_eq!(results.comparisons[0].reason.name(), "on_cpu");
    let report = project.page("reports/x");
    assert!(report.contains("Mod on the CPU, "), "{report}");

    let refused = project.command(&["x.yaml", "--set", "measure.allow_fallback=false", "--output", "refused"]);
    with_driver(refused, driver).expect_code(3);
    let refused = read(&project.path("refused/results.json")).unwrap();
    let failure = &cell(&refused, "webgpu").failures[0];
    assert_eq!(failure.failure.message, "webgpu does not take 6 Mod, and `allow_fallback` is false");
}

/// A replayed graph writes where it wrote when it was recorded, and leaves the call without outputs.
#[test]
fn outputs_without_a_value_are_a_failure_with_its_reason() {
    let driver = &need!(webgpu).driver;
    let model = file("experiments/models/digits-mlp.onnx");
    let graph = "variants: [{ name: graph, provider: { webgpu: { enableGraphCapture: 1 } } }]\n";
    let project = Project::with_spec(&format!("models: {model}\ninputs: {{ batch: 1 }}\nruns: 1\n{WEBGPU}{graph}"));
    with_driver(project.command(&["x.yaml"]), driver).expect_code(3);
    let results = results(&project);
    let failure = &cell(&results, "webgpu").failures[0];
    assert_eq!(failure.failure.kind.name(), "output", "{failure:?}");
    let says = "webgpu returned no value for output `logits`, with enableGraphCapture: 1";
    assert_eq!(failure.failure.message, says);
}

#[test]
fn with_the_host_as_boundary_outputs_and_placement_are_the_same() {
    let driver = &need!(webgpu).driver;
    let model = file("tests/fixtures/models/on_cpu.onnx");
    let webgpu = WEBGPU.replace("measure: {", "measure: { boundary: host,");
    let project = Project::with_spec(&format!("models: {model}\ninputs: {{ batch: 2 }}\nruns: 2\n{webgpu}"));
    with_driver(project.command(&["x.yaml"]), driver).expect_code(0);
    let results = results(&project);
    let webgpu = cell(&results, "webgpu");
    assert_eq!(webgpu.on_cpu, [("Mod".to_owned(), 6)].into());
    assert!(webgpu.fidelity.as_ref().is_some_and(|found| found.passes()), "{:?}", webgpu.fidelity);
    assert_eq!(results.provenance.frame["boundary"], "host");
}

/// As on a machine without a GPU: the reason in words, and the CPU's cells go on.
#[test]
fn without_a_driver_webgpu_is_skipped_and_the_cpu_measured() {
    need!(webgpu);
    let model = file("experiments/models/digits-mlp.onnx");
    let project = Project::with_spec(&format!("models: {model}\ninputs: {{ batch: 1 }}\nruns: 2\n{WEBGPU}"));
    let done = with_driver(project.command(&["x.yaml"]), Path::new("/there/is/none.json")).expect_code(0);
    let said = done.stdout + &done.stderr;
    assert!(said.contains("webgpu: WebGPU finds no GPU with a Vulkan driver"), "{said}");
    let results = results(&project);
    assert_eq!(cell(&results, "cpu").metrics["latency_ns"].n, 2);
    let skipped = cell(&results, "webgpu").skipped.as_ref().unwrap();
    assert_eq!(skipped.code, plan::SkipKind::Device);
    let required = with_driver(project.command(&["x.yaml", "--require-devices"]), Path::new("/there/is/none.json"));
    assert!(required.expect_code(2).stderr.contains("--require-devices"));
}

#[test]
fn a_plug_in_says_which_devices_it_finds() {
    need!(onnxruntime);
    need!(openvino);
    let model = file("experiments/models/digits-mlp.onnx");
    let keeps = r#"'{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'"#;
    let spec = format!(
        "models: {model}\ninputs: {{ batch: 1 }}\nruns: 2\ndevices: [cpu, 'openvino:CPU']\n\
         variants: [fp32, {{ name: exact, provider: {{ openvino: {{ load_config: {keeps} }} }} }}]\n\
         measure: {{ warmup: {{ mode: samples, count: 2 }}, stop: {{ mode: samples, count: 5 }} }}\n"
    );
    let project = Project::with_spec(&spec);
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let cell_of = |device: &str, variant: &str| {
        use experiment::Axis;
        let is_wanted = |cell: &&Cell| cell.names[Axis::Devices] == device && cell.names[Axis::Variants] == variant;
        results.cells.iter().find(is_wanted).unwrap()
    };
    let (openvino, exact) = (cell_of("openvino:CPU", "fp32"), cell_of("openvino:CPU", "exact"));
    let is_intel = std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("GenuineIntel"));
    if is_intel {
        assert!(openvino.nodes.keys().any(|provider| provider == "OpenVINOExecutionProvider"), "{openvino:?}");
        assert!(exact.fidelity.as_ref().is_some_and(|found| found.passes()), "{:?}", exact.fidelity);
        let reference = exact.outputs_reference.as_deref();
        assert!(reference.is_some_and(|path| path.ends_with("/fp32/cpu")), "{reference:?}");
        // Where the processor has bf16, OpenVINO computes in it, and the report says so.
        let differs = !openvino.fidelity.as_ref().unwrap().passes();
        let report = project.read("reports/x/report.md");
        assert_eq!(report.contains("openvino:CPU computes fp32 models in bf16"), differs, "{report}");
    } else {
        let skipped = openvino.skipped.as_ref().unwrap();
        assert_eq!(skipped.reason, "openvino:CPU: the plug-in finds no device here");
    }
    assert_eq!(cell_of("cpu", "fp32").metrics["latency_ns"].n, 2);
}

#[test]
fn scripted_time_on_the_cpu_withholds_the_verdict() {
    let spec = |share: &str| {
        format!(
            "backend: mock\nmodels: [m]\ninputs: {{ batch: 1 }}\ndevices: [cpu, cuda]\nruns: 6\n\
             variants: [{{ name: v, mock: {{ on_cpu: {share} }} }}]\ncompare: {{ aa: off }}\n"
        )
    };
    let project = Project::with_spec(&spec("38%"));
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("cuda:0, 38 % on cpu"), "{}", done.stdout);
    assert!(done.stdout.contains(WITHHELD), "{}", done.stdout);
    assert_eq!(cell(&results(&project), "cuda:0").on_cpu, [("Scripted".to_owned(), 1)].into());
    assert!(cell(&results(&project), "cpu").on_cpu.is_empty());

    let little = Project::with_spec(&spec("3%"));
    let done = little.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("cuda:0, 3 % on cpu"), "{}", done.stdout);
    assert!(!done.stdout.contains(WITHHELD), "{}", done.stdout);
    assert!(cell(&results(&little), "cuda:0").codes.contains_key("W_CPU_FALLBACK"));

    let none = Project::with_spec(&spec("0.5%"));
    let done = none.run(&["x.yaml"]).expect_code(0);
    assert!(!done.stdout.contains("% on cpu"), "{}", done.stdout);
    assert!(!cell(&results(&none), "cuda:0").codes.contains_key("W_CPU_FALLBACK"));
}

/// The run that is profiled is the first one that completes.
#[test]
fn a_first_run_that_fails_does_not_hide_time_on_the_cpu() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [m]\ninputs: { batch: 1 }\ndevices: [cpu, cuda]\nruns: 8\ncompare: { aa: off }\n\
         variants: [{ name: v, mock: { on_cpu: 38%, fail: { kind: error, at: measure, runs: [0] } } }]\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(3);
    assert!(done.stdout.contains("cuda:0, 38 % on cpu"), "{}", done.stdout);
    assert!(done.stdout.contains(WITHHELD), "{}", done.stdout);
}

#[test]
fn the_clock_of_a_device_has_metrics_of_its_own() {
    let project = Project::with_spec(
        "backend: { mock: { median: 2ms, noise: 0%, run_sd: 0% } }\nmodels: [m]\ninputs: { batch: 1 }\nruns: 5\n\
         devices: [cpu, cuda]\nvariants: [{ name: v, mock: { on_device: 90% } }]\ncompare: { aa: off }\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let value = |device: &str, metric: &str| cell(&results, device).metrics.get(metric).map(|found| found.value);
    assert_eq!(value("cuda:0", "latency_ns"), Some(2e6));
    assert_eq!(value("cuda:0", "device_time_ns"), Some(1.8e6));
    assert_eq!(value("cuda:0", "launch_overhead_ns"), Some(2e5));
    assert_eq!(value("cpu", "device_time_ns"), None);
    let of_one_run = cell(&results, "cuda:0").metrics.get("h2d_ns").map(|found| (found.n, found.value));
    assert_eq!(of_one_run, Some((1, 2e4)));
    assert_eq!(value("cuda:0", "pipelined_per_s"), None);
}

/// With several under way only the device's part of each takes time.
#[test]
fn inferences_under_way_together_have_a_throughput() {
    let project = Project::with_spec(
        "backend: { mock: { median: 2ms, noise: 0%, run_sd: 0% } }\nmodels: [m]\ninputs: { batch: 1 }\nruns: 5\n\
         devices: [cpu, cuda]\nvariants: [{ name: v, mock: { on_device: 80% } }]\ncompare: { aa: off }\n\
         measure: { pipelined: 8 }\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let found =
        |device: &str| cell(&results, device).metrics.get("pipelined_per_s").map(|found| (found.n, found.value));
    assert_eq!(found("cuda:0"), Some((5, 625.0)));
    assert_eq!(found("cpu"), None);
}

/// The rehearsal builds, while it loads or in the first inference, and runs load what it built; or every run builds.
#[test]
fn building_an_engine_has_a_metric() {
    let built = |rebuild: &str| {
        let project = Project::with_spec(&format!(
            "backend: {{ mock: {{ load: 3s, median: 2ms, noise: 0%, run_sd: 0% }} }}\nmodels: [m]\ninputs: {{ batch: 1 }}\nruns: 5\n\
             devices: [cpu, tensorrt]\ncompare: {{ aa: off }}\nmeasure: {{ rebuild: {rebuild} }}\n",
        ));
        project.run(&["x.yaml"]).expect_code(0);
        let results = results(&project);
        let build = |device: &str| cell(&results, device).metrics.get("build_ns").map(|found| (found.n, found.value));
        (build("tensorrt:0"), build("cpu"))
    };
    assert_eq!(built("once"), (Some((1, 3.002e9)), None));
    assert_eq!(built("per_run"), (Some((5, 3.002e9)), None));
}

/// Every line of `doctor --verify` by what it checks: its state and what was found.
fn verified(done: &Done) -> BTreeMap<String, (String, String)> {
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let text = |check: &serde_json::Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = found["checks"].as_array().unwrap().iter();
    checks.map(|check| (text(check, "what"), (text(check, "state"), text(check, "found")))).collect()
}

#[test]
fn processors_are_verified_by_what_can_be_checked_of_them() {
    need!(onnxruntime);
    let done = Project::new().run(&["doctor", "--device", "cpu", "--verify", "--json"]).expect_code(0);
    let checks = verified(&done);
    assert_eq!(checks.len(), 3, "{checks:?}");
    assert!(checks["a profile finds the slow node"].1.starts_with("slow "), "{checks:?}");
    assert!(checks.values().all(|(state, _)| state == "passed"), "{checks:?}");
    assert!(done.stderr.contains("trying     waiting"), "{}", done.stderr);
}

#[test]
fn webgpu_is_verified_on_webgpu() {
    let need::Webgpu { driver, library } = need!(webgpu);
    let arguments = ["doctor", "--device", "webgpu", "--verify", "--json", "--runtime", library.to_str().unwrap()];
    let checks = verified(&with_driver(Project::new().command(&arguments), driver).expect_code(0));
    // The runtime lists none of the nodes that WebGPU rewrites, and a driver in software copies next to nothing.
    let open = ["a model runs, all of it on the device", "copies are within `boundary: host`"];
    for (what, (state, _)) in &checks {
        assert!(state == "passed" || (state == "not_shown" && open.contains(&what.as_str())), "{checks:?}");
    }
    assert_eq!((checks.len(), checks[open[0]].0.as_str()), (8, "not_shown"), "{checks:?}");
    assert!(checks["a profile finds the slow node"].1.starts_with("slow "), "{checks:?}");
    assert!(checks["nodes on the CPU are found and timed"].1.starts_with("Det, "), "{checks:?}");
}

#[test]
fn what_cannot_be_verified_says_why() {
    for (arguments, what) in [
        (&["--device", "gpu", "--verify"][..], "did you mean `cuda`?"),
        (&["--device", "qnn", "--verify"], "use a build that has it: --runtime PATH"),
        (&["--verify"], "--device <DEVICE>"),
        (&["--device", "cpu"], "--verify"),
    ] {
        let done = Project::new().run(&[&["doctor"], arguments].concat()).expect_code(2);
        assert!(done.stderr.contains(what), "{}", done.stderr);
    }
}
