//! Real models through ONNX Runtime on the CPU.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::quantity::Nanos;
use experiment::{SamplesStop, SamplesWarmup, Stop, Values, Warmup};
use onnx::ElementType;
use record::{Outcome, RunKind};
use worker::backend::{BackendRequest, CellRequest, FailureKind, OnnxruntimeRequest, TensorRequest};
use worker::{Afterwards, Interrupts, Launch, RunPlan, WorkerRun, read_outputs, run};

use crate::need::need;
use crate::support::Project;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn tensor(name: &str, element: ElementType, shape: &[u64], values: Values) -> TensorRequest {
    TensorRequest { name: name.to_owned(), element, shape: shape.to_vec(), values, file: None, seeds: (0..8).collect() }
}

/// One run of a model with outputs written.
pub(crate) fn run_model(library: &Path, file: &Path, tensors: Vec<TensorRequest>) -> (WorkerRun, tempfile::TempDir) {
    run_model_with(library, file, tensors, Default::default())
}

/// The same with options of the provider.
fn run_model_with(
    library: &Path,
    file: &Path,
    tensors: Vec<TensorRequest>,
    provider_options: BTreeMap<String, String>,
) -> (WorkerRun, tempfile::TempDir) {
    let request = CellRequest {
        cell: "test".to_owned(),
        backend: BackendRequest::Onnxruntime(OnnxruntimeRequest {
            provider_options,
            ..OnnxruntimeRequest::on_cpu(library, file, 1)
        }),
        tensors,
        input_sets: 8,
        outputs: None,
        slowdown: 0.0,
        evict_bytes: None,
        cpus: None,
        profiled: false,
        callers: 1,
        shares_session: false,
        decode: None,
        metrics: Vec::new(),
    };
    run_request(request)
}

/// One run of a request with outputs written.
pub(crate) fn run_request(request: CellRequest) -> (WorkerRun, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let plan = RunPlan {
        request,
        warmup: Warmup::Samples(SamplesWarmup { count: 3 }),
        at_least: Nanos(0),
        iterations: 1,
        stop: Some(Stop::Samples(SamplesStop { count: 20, max_time: Nanos::from_secs(10) })),
        load: None,
        afterwards: Afterwards::default(),
        outputs: Some(folder.path().to_owned()),
    };
    let launch = Launch {
        program: Launch::own_worker(env!("CARGO_BIN_EXE_perfrun").as_ref()),
        offers_socket: false,
        shares_stderr: false,
        wrap: Vec::new(),
        env: Default::default(),
        padding: 0,
        log: folder.path().join("log"),
        timeout: Nanos::from_secs(120),
        shortened_by: None,
    };
    let done = run(&launch, &plan, None, &Interrupts::never().unwrap(), &mut || {}).unwrap();
    (done, folder)
}

/// The floats of an output for the first input set.
pub(crate) fn floats(folder: &Path, index: usize) -> Vec<f32> {
    let sets = read_outputs(folder).unwrap();
    sets[0][index].numbers().unwrap().into_iter().map(|value| value as f32).collect()
}

/// Logits that ONNX Runtime's Python API (1.31.1) gives for an image of ones.
const PYTHON: [(&str, [f32; 10]); 2] = [
    (
        "experiments/models/digits-mlp.onnx",
        [
            -0.725_331,
            -1.683_757,
            0.332_486_63,
            -0.652_177_93,
            2.833_179,
            -0.883_737_86,
            -0.511_019,
            1.431_212_4,
            -0.472_724_47,
            -0.833_661_1,
        ],
    ),
    (
        "experiments/models/digits-cnn.onnx",
        [
            -1.067_297_2,
            2.195_948_1,
            0.017_673_718,
            -0.563_083_6,
            -0.893_612_5,
            -0.194_078_76,
            -0.353_146_02,
            0.056_317_046,
            1.185_268_5,
            -0.221_761_23,
        ],
    ),
];

#[test]
fn outputs_equal_those_of_the_python_api() {
    for (file, expected) in PYTHON {
        let image = tensor("image", ElementType::Float32, &[1, 1, 8, 8], Values::Ones);
        let (done, folder) = run_model(need!(onnxruntime), &model(file), vec![image]);
        assert_eq!(done.failure, None);
        for (found, expected) in floats(folder.path(), 0).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{file}: {found} is not {expected}");
        }
        assert_eq!(done.data.measured.len(), 20);
        assert_eq!(done.data.output_hash, done.data.output_hash_after);
        let placement = done.data.placement.unwrap();
        assert_eq!(placement.nodes.keys().collect::<Vec<_>>(), ["CPUExecutionProvider"]);
        assert!(placement.runtime_version.unwrap().starts_with("1."));
        assert!(done.data.metrics["peak_rss_bytes"] > 1e6 && done.data.metrics["load_ns"] > 0.0);
        assert_eq!(done.data.output_shapes.unwrap()["logits"], [1, 10]);
    }
}

#[test]
fn every_type_of_input_is_fed() {
    let n = 1000;
    let tensors = vec![
        tensor("x", ElementType::Float32, &[n], Values::Random),
        tensor("half", ElementType::Float16, &[n], Values::Random),
        tensor("number", ElementType::Int64, &[n], Values::Random),
        tensor("flag", ElementType::Bool, &[n], Values::Random),
    ];
    let (done, folder) = run_model(need!(onnxruntime), &model("tests/fixtures/models/input_types.onnx"), tensors);
    assert_eq!(done.failure, None);
    let values = floats(folder.path(), 0);
    assert!(values.iter().all(|value| value.is_finite()));
    let distinct: std::collections::BTreeSet<u32> = values.iter().map(|value| value.to_bits()).collect();
    assert!(distinct.len() > 900, "inputs are random, found {} values", distinct.len());
}

#[test]
fn outputs_whose_shape_varies_are_allocated_by_the_runtime_and_said_to_be() {
    let x = tensor("x", ElementType::Float32, &[64], Values::Random);
    let (done, _folder) = run_model(need!(onnxruntime), &model("tests/fixtures/models/dynamic_output.onnx"), vec![x]);
    assert_eq!(done.failure, None);
    assert_eq!(done.data.output_shapes, None);
    assert!(done.data.placement.unwrap().dynamic_outputs);
    assert_eq!(done.data.output_hash, done.data.output_hash_after);
}

#[test]
fn a_stale_shape_of_an_output_is_the_runtimes_to_warn_of() {
    let x = tensor("x", ElementType::Float32, &[2, 3], Values::Random);
    let (done, folder) = run_model(need!(onnxruntime), &model("tests/fixtures/models/stale_output.onnx"), vec![x]);
    assert_eq!(done.failure, None);
    assert!(done.data.measured.len() >= 20);
    assert_eq!(done.data.output_hash, done.data.output_hash_after);
    let outputs = worker::read_outputs(folder.path()).unwrap();
    assert_eq!(outputs[0][0].shape, [2, 3]);
}

#[test]
fn texts_sequences_and_maps_are_measured_and_read() {
    let x = tensor("x", ElementType::Float32, &[4, 2], Values::Random);
    let file = model("tests/fixtures/models/outputs_of_every_kind.onnx");
    let (done, folder) = run_model(need!(onnxruntime), &file, vec![x]);
    assert_eq!(done.failure, None);
    assert!(done.data.measured.len() >= 20);
    let outputs = worker::read_outputs(folder.path()).unwrap();
    let names: Vec<&str> = outputs[0].iter().map(|output| output.name.as_str()).collect();
    assert_eq!(names, ["label", "probabilities", "scores"]);
    let [label, probabilities, scores] = &outputs[0][..] else { panic!("{names:?}") };
    assert_eq!((&probabilities.bytes, &probabilities.shape), (&scores.bytes, &scores.shape));
    assert_eq!(probabilities.keys, ["cat", "dog"]);
    let scores = scores.numbers().unwrap();
    let expected: Vec<&str> = scores.chunks(2).map(|row| if row[0] >= row[1] { "cat" } else { "dog" }).collect();
    assert_eq!(label.texts().collect::<Vec<_>>(), expected);
}

#[test]
fn classes_indices_masks_parts_and_optional_outputs_are_read() {
    let x = tensor("x", ElementType::Float32, &[4, 16], Values::Random);
    let file = model("tests/fixtures/models/classes_and_indices.onnx");
    let (done, folder) = run_model(need!(onnxruntime), &file, vec![x]);
    assert_eq!(done.failure, None);
    let outputs = worker::read_outputs(folder.path()).unwrap();
    assert_eq!(outputs.len(), 8);
    let shapes: Vec<(&str, &[u64])> =
        outputs[0].iter().map(|output| (output.name.as_str(), output.shape.as_slice())).collect();
    let found = outputs[0][4].shape[1];
    let places = [2, found];
    assert!(found > 0 && found < 24, "{found}");
    let expected: [(&str, &[u64]); 9] = [
        ("class", &[4]),
        ("values", &[4, 3]),
        ("indices", &[4, 3]),
        ("mask", &[4, 6]),
        ("places", &places),
        ("bytes", &[4, 6]),
        ("parts[0]", &[4, 2]),
        ("parts[1]", &[4, 4]),
        ("present", &[4, 6]),
    ];
    assert_eq!(shapes, expected);
    let first: Vec<f64> = outputs[0][2].numbers().unwrap().chunks(3).map(|ranks| ranks[0]).collect();
    assert_eq!(outputs[0][0].numbers().unwrap(), first);
}

#[test]
fn failures_carry_the_runtimes_own_message() {
    let float = |values| tensor("x", ElementType::Float32, &[1], values);
    let cases = [
        ("unknown_operator", float(Values::Ones), FailureKind::Operator, "Frobnicate"),
        ("fails_when_run", tensor("index", ElementType::Int64, &[4], Values::Ones), FailureKind::Shape, "indices"),
        ("one_node", tensor("x", ElementType::Float32, &[7], Values::Ones), FailureKind::Shape, "Got: 7 Expected: 1"),
        ("one_node", tensor("y", ElementType::Float32, &[1], Values::Ones), FailureKind::Shape, "`x`"),
    ];
    for (name, input, kind, says) in cases {
        let file = model(&format!("tests/fixtures/models/{name}.onnx"));
        let (done, _folder) = run_model(need!(onnxruntime), &file, vec![input]);
        let failure = done.failure.unwrap();
        assert!(failure.message.contains(says), "{name}: `{says}` is not in: {}", failure.message);
        assert_eq!(failure.kind, kind, "{name}: {}", failure.message);
    }
}

#[test]
fn options_of_the_provider_are_used_or_refused() {
    let file = model("experiments/models/digits-mlp.onnx");
    let image = || vec![tensor("image", ElementType::Float32, &[1, 1, 8, 8], Values::Ones)];
    let option = |name: &str| BTreeMap::from([(name.to_owned(), "1".to_owned())]);
    let (done, _folder) = run_model_with(need!(onnxruntime), &file, image(), option("use_arena"));
    assert_eq!(done.failure, None);
    let (done, _folder) = run_model_with(need!(onnxruntime), &file, image(), option("use_aerna"));
    let failure = done.failure.unwrap();
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Provider, "the provider `cpu` has no option `use_aerna`")
    );
}

#[test]
fn outputs_that_are_no_numbers_are_named() {
    let x = tensor("x", ElementType::Float32, &[4], Values::Random);
    let (done, _folder) = run_model(need!(onnxruntime), &model("tests/fixtures/models/not_a_number.onnx"), vec![x]);
    assert_eq!(done.data.non_finite, ["y"]);
}

#[test]
fn a_run_that_its_budget_leaves_too_short_for_a_verdict_stays_out_of_reports() {
    need!(onnxruntime);
    let project = Project::new();
    std::fs::copy(model("experiments/models/digits-mlp.onnx"), project.path("mlp.onnx")).unwrap();
    // The first block is measured whatever the budget is.
    project.write(
        "x.yaml",
        "models: mlp.onnx\ninputs: { batch: 1 }\nruns: 6\nbudget: 1ms\n\
         measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 10 } }\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("the budget allowed fewer than 5 runs of a cell"), "{}", done.stderr);
    assert!(!project.path("reports/x").exists() && done.stdout.contains(".perfrun/records/x/"), "{}", done.stdout);
}

#[test]
fn a_damaged_model_is_a_failed_cell_and_the_others_go_on() {
    need!(onnxruntime);
    let project = Project::new();
    let whole = std::fs::read(model("experiments/models/digits-mlp.onnx")).unwrap();
    std::fs::write(project.path("whole.onnx"), &whole).unwrap();
    std::fs::write(project.path("cut.onnx"), &whole[..whole.len() / 2]).unwrap();
    project.write(
        "x.yaml",
        "models: [whole.onnx, cut.onnx]\ninputs: { batch: 1 }\nruns: 2\nvariants: [{ name: one, threads: 1 }]\n\
         measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 10 } }\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(3);
    // What the cells use, whatever the machine would have given them.
    assert!(done.stderr.contains(", 1 thread"), "{}", done.stderr);
    let record = project.record("x");
    let failed = record.runs.iter().find(|run| run.outcome == Outcome::Failed).unwrap();
    assert_eq!(failed.failure.as_ref().unwrap().kind, FailureKind::Model, "{}", done.stderr);
    let completed =
        record.runs.iter().filter(|run| run.kind == RunKind::Main && run.outcome == Outcome::Completed).count();
    assert_eq!(completed, 2);
    assert!(project.page("reports/x").contains("cut"));
}

#[test]
fn a_library_that_is_none_fails_every_cell_with_a_reason() {
    let project = Project::with_spec(&format!(
        "models: {}\ninputs: {{ batch: 1 }}\nruns: 1\n",
        model("experiments/models/digits-mlp.onnx").display()
    ));
    project.write("libonnxruntime.so.1.31.1", "not a library");
    let done = project.run(&["x.yaml", "--runtime", "libonnxruntime.so.1.31.1"]).expect_code(2);
    assert!(done.stderr.contains("libonnxruntime.so.1.31.1"), "{}", done.stderr);
}

#[test]
fn a_model_that_changes_while_it_is_measured_is_a_failed_run() {
    need!(onnxruntime);
    let project = Project::new();
    let models =
        ["mlp", "cnn"].map(|name| std::fs::read(model(&format!("experiments/models/digits-{name}.onnx"))).unwrap());
    std::fs::write(project.path("m.onnx"), &models[0]).unwrap();
    std::fs::write(project.path("other.onnx"), &models[1]).unwrap();
    // The wrapper of the first block's second variant swaps the file, as a build script that runs at the same time might.
    project.write(
        "x.yaml",
        "models: m.onnx\ninputs: { batch: 1 }\nruns: 3\nvariants:\n  - { name: one, threads: 1 }\n  - name: two\n    threads: 1\n\
         \x20   wrap: [sh, -c, 'test -e rehearsed && cp other.onnx m.onnx; touch rehearsed; exec \"$@\"', sh]\n\
         measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 10 } }\n",
    );
    project.run(&["x.yaml"]).expect_code(3);
    let record = project.record("x");
    let failures: Vec<_> = record.runs.iter().filter_map(|run| run.failure.as_ref()).collect();
    assert!(
        failures.iter().any(|failure| failure.message.contains("has changed since the record began")),
        "{failures:?}"
    );
}

#[test]
fn a_quick_look_takes_models_and_writes_nothing_but_its_record() {
    need!(onnxruntime);
    let project = Project::new();
    std::fs::copy(model("experiments/models/digits-mlp.onnx"), project.path("mlp.onnx")).unwrap();
    let done = project.run(&["mlp.onnx"]).expect_code(0);
    assert!(done.stdout.contains("mlp  fp32") && done.stdout.contains("     int8"), "{}", done.stdout);
    assert!(done.stderr.contains("keep it    perfrun init mlp.onnx"), "{}", done.stderr);
    // `--quick` was not typed.
    assert!(done.stdout.contains("perfrun init MODEL") && !done.stdout.contains("--quick"), "{}", done.stdout);
    assert!(done.stderr.contains("inputs     batch 1; `--set inputs.NAME=SIZE` changes one"), "{}", done.stderr);
    let has_threads = base::machine::host::describe().default_threads() > 1;
    assert_eq!(done.stdout.contains("int8-t1"), has_threads, "{}", done.stdout);
    let mut left: Vec<_> = std::fs::read_dir(project.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".perfrun", "mlp.onnx"]);
    let several = project.run(&["zoo:bert_tiny", "mlp.onnx", "--dry-run"]).expect_code(0);
    assert!(several.stdout.contains("2 models"), "{}", several.stdout);
}
