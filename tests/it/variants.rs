//! Variants from YAML to the verdict: files of their own, outputs against the reference's, models that are made or fetched.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use files::digest;
use record::{Outcome, VariantOrigin};

use crate::need::need;
use crate::support::Project;

const WRONG: &str = "\
backend: mock
models: [net]
variants:
  - base
  - { name: same, mock: { scale: 0.9, differ: 0.01% } }
  - { name: wrong, mock: { scale: 0.7, differ: 50% } }
";

/// How like the reference's the outputs of eight-bit variants are at least. Without VNNI ONNX Runtime multiplies by
/// instructions that saturate, which costs another part.
fn least_cosine() -> f64 {
    let saturates = std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| cfg!(target_arch = "x86_64") && !text.contains("vnni"));
    if saturates { 0.9 } else { 0.95 }
}

#[test]
fn what_computes_something_else_is_marked_and_never_best() {
    let project = Project::with_spec(&format!("{WRONG}choose: {{ best: latency }}\npareto: [latency, throughput]\n"));
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("faster; outputs DIFFER"), "{}", done.stdout);
    assert!(done.stdout.contains("Fastest: same."), "{}", done.stdout);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("left out: wrong (differs from base: cosine 0.8983, required 0.999"), "{answer}");
    let report = project.page("reports/x");
    assert!(report.contains("| ~~3.5"), "{report}");
    assert!(report.contains("Outputs against the reference's"), "{report}");
    assert!(report.contains("differs: cosine"), "{report}");
    let results = project.read("reports/x/results.json");
    assert!(results.contains("outputs_differ"), "left out of the frontier with the reason");
    assert!(!project.record_folder("x").join("outputs").exists(), "outputs are forgotten once they were compared");
}

/// A model that draws random numbers differs from itself: no variant of it is blamed, struck out, or called close.
#[test]
fn outputs_that_are_drawn_anew_are_not_judged() {
    let variants = "[{ name: one }, { name: two, mock: { scale: 0.5 } }, { name: int4, precision: int4 }]";
    let spec = format!("backend: {{ mock: {{ outputs: random }} }}\nmodels: [net]\nvariants: {variants}\n");
    let project = Project::with_spec(&spec);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: two."), "{answer}");
    assert!(!answer.contains("DIFFER") && !answer.contains("unrelated"), "{answer}");
    let said = "net gave other outputs for the same inputs in a second inference";
    assert!(answer.contains(said), "{answer}");
    assert!(project.page("reports/x").contains(said));
    assert!(project.record("x").manifest.fidelity().iter().all(|known| known.fidelity.reference_varies));
}

/// Without a limit there is a floor.
#[test]
fn what_has_nothing_to_do_with_the_reference_is_never_best() {
    let spec = "\
backend: mock
models: [net]
variants: [{ name: base }, { name: int4, precision: int4, mock: { scale: 0.1, differ: 5000% } }]
";
    let project = Project::with_spec(spec);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: base."), "{answer}");
    assert!(answer.contains("left out: int4 (differs from base: outputs unrelated to the reference's"), "{answer}");
}

#[test]
fn without_a_question_the_answer_says_what_is_not_ranked() {
    let project = Project::with_spec(WRONG);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: same."), "{answer}");
    assert!(
        answer.contains("left out: wrong (differs from base: cosine") && answer.contains("required 99.9 %)."),
        "{answer}"
    );
}

/// Of random inputs nobody knows the class, so nobody knows whether one that changed was right.
#[test]
fn on_random_inputs_outputs_are_close_and_never_agree() {
    for question in ["", "choose: { best: latency }\n"] {
        let project = Project::with_spec(&format!(
            "backend: mock\nmodels: [net]\nvariants:\n  - base\n  - {{ name: near, mock: {{ scale: 0.8, differ: 5% }} }}\n\
             fidelity: {{ near: {{ cosine: 0.9, close: 0% }} }}\n{question}"
        ));
        let done = project.run(&["x.yaml"]).expect_code(0);
        let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(answer.contains("Fastest: near."), "{answer}");
        assert!(answer.contains("outputs close on random data, accuracy not measured (cosine 0.99"), "{answer}");
        let report = project.page("reports/x");
        assert!(report.contains("| close on random data, accuracy not measured |"), "{report}");
        for text in [answer, report] {
            assert!(!text.contains("outputs agree") && !text.contains("| agree |"), "{text}");
        }
    }
}

/// What `perfrun convert` says of a model in another precision, which it writes to `PRECISION.onnx`.
fn by_hand(project: &Project, model: &str, precision: &str) -> String {
    let output = format!("{precision}.onnx");
    let sizes: &[&str] = if precision == "int8" { &["--inputs", "batch=1"] } else { &[] };
    let arguments = [&["convert", model, "--precision", precision, "-o", &output], sizes].concat();
    let done = project.command(&arguments).env("PERFRUN_CACHE", project.path("cache")).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[test]
fn a_conversion_by_hand_says_that_accuracy_was_not_measured() {
    need!(onnxruntime);
    let project = Project::new();
    let cnn = model("digits-cnn.onnx");
    cache(&project);
    let text = by_hand(&project, &cnn, "int8");
    assert!(text.contains(" random items, seed 42, batch=1; accuracy not measured\n"), "{text}");
    let text = by_hand(&project, &cnn, "fp16");
    assert!(text.contains("  note       accuracy not measured\n"), "{text}");
}

#[test]
fn weights_behind_the_casts_of_an_fp16_file_are_quantised() {
    let project = Project::new();
    by_hand(&project, &model("digits-mlp.onnx"), "fp16");
    let text = by_hand(&project, "fp16.onnx", "int8");
    assert!(text.contains("  converted  34 MatMul\n"), "{text}");
}

#[test]
fn limits_are_settable_by_variant() {
    let loose = "fidelity: { wrong: { cosine: 0.1, close: 0% } }\n";
    let project = Project::with_spec(&format!("{WRONG}{loose}"));
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(!done.stdout.contains("DIFFER"), "{}", done.stdout);
    assert!(done.stdout.contains("Fastest: wrong."), "{}", done.stdout);
}

/// Short runs of real models.
const SHORT: &str = "\
runs: 1
compare: { aa: off }
measure: { inputs: 2, warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 5 } }
";

fn model(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models").join(name).display().to_string()
}

#[test]
fn every_precision_is_converted_run_and_compared() {
    need!(onnxruntime);
    let (cnn, mlp) = (model("digits-cnn.onnx"), model("digits-mlp.onnx"));
    let project = Project::with_spec(&format!(
        "models: ['{cnn}', '{mlp}']
inputs: {{ batch: 4 }}
variants:
  - fp32
  - fp16
  - bf16
  - int8
  - {{ name: dynamic, precision: int8, convert: {{ quantization: dynamic }} }}
  - {{ name: half, precision: fp16, convert: {{ io: convert }} }}
  - int4
{SHORT}"
    ));
    let done = project.command(&["x.yaml"]).env("PERFRUN_CACHE", cache(&project)).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    let record = project.record("x");
    let manifest = &record.manifest;
    let failed: Vec<String> =
        record.runs.iter().filter_map(|run| Some(run.failure.as_ref()?.message.clone())).collect();
    assert_eq!(failed, Vec::<String>::new(), "{text}");
    // Neither network has a matrix product that is large enough for blocks of 4 bits.
    let skipped: Vec<&str> = manifest.plan.skips.iter().map(|skip| skip.reason.as_str()).collect();
    let of_int4 = |reason: &&str| reason.contains(" as int4: nothing in the model can be converted");
    assert!(skipped.len() == 2 && skipped.iter().all(of_int4), "{skipped:?}");
    assert_eq!(manifest.variant_files().len(), 2 * 5);
    let source = |index: usize| manifest.models[index].as_ref().map(|file| file.sha256.clone());
    for file in manifest.variant_files().iter().filter(|file| file.problem.is_none()) {
        let VariantOrigin::Converted { report: Some(report), .. } = &file.origin else { panic!("{file:?}") };
        assert!(report.weights.converted > 0, "{file:?}");
        assert_ne!(file.sha256, source(file.model.index()));
    }
    let measured = record.runs.iter().filter(|run| run.outcome == Outcome::Completed).count();
    assert!(measured >= 2 * 11, "{measured} runs\n{text}");
    for compared in manifest.fidelity() {
        assert!(
            compared.fidelity.cosine.is_some_and(|cosine| cosine > least_cosine()),
            "{:?} {:?}",
            manifest.plan.path(&manifest.plan.cells[compared.cell as usize]),
            compared
        );
        assert_eq!(compared.fidelity.input_sets, 2);
    }
}

#[test]
fn what_is_chosen_for_a_step_of_a_decoder_runs() {
    need!(onnxruntime);
    let step = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/decoder_step.onnx");
    let sizes = "batch: 3, decoder_sequence_length: 2, past_decoder_sequence_length_of_layers: 5";
    let project = Project::with_spec(&format!("models: ['{}']\ninputs: {{ {sizes} }}\n{SHORT}", step.display()));
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    assert_eq!(record.manifest.plan.inputs()[0].name, "b3-d2-p5");
    let shapes = record.runs.iter().find_map(|run| run.data.output_shapes.clone()).unwrap();
    assert_eq!(shapes["y"], [3, 7, 4]);
}

/// The usual cache for the library, with converted models in a folder that ends with the test.
fn cache(project: &Project) -> std::path::PathBuf {
    let folder = project.path("cache");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(prepare::runtime::cache_folder().join("runtimes"), folder.join("runtimes")).unwrap();
    folder
}

#[test]
fn a_file_that_was_replaced_is_not_gone_on_with_however_often() {
    need!(onnxruntime);
    let mlp = model("digits-mlp.onnx");
    let spec = format!(
        "models: [{{ path: '{mlp}', files: {{ mine: own.onnx }} }}]\ninputs: {{ batch: 1 }}\nvariants: [fp32, {{ name: mine }}]\n{SHORT}"
    );
    let project = Project::with_spec(&spec);
    std::fs::copy(&mlp, project.path("own.onnx")).unwrap();
    project.run(&["x.yaml"]).expect_code(0);
    std::fs::copy(model("digits-cnn.onnx"), project.path("own.onnx")).unwrap();
    let folder = project.record_folder("x");
    for _ in 0..2 {
        // As if it had been interrupted before its rehearsal.
        std::fs::remove_file(folder.join("complete.json")).unwrap();
        std::fs::remove_file(folder.join("passes/rehearsal.json")).unwrap();
        std::fs::create_dir(folder.join("journal")).unwrap();
        project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(3);
        let record = project.record("x");
        let failures: Vec<_> = record.runs.iter().filter_map(|run| run.failure.as_ref()).collect();
        assert!(!failures.is_empty());
        for failure in failures {
            assert!(failure.message.ends_with("is not the one that the record began with"), "{}", failure.message);
        }
    }
}

#[test]
fn a_file_of_ones_own_stands_for_a_variant_and_a_damaged_one_fails_its_cells_alone() {
    need!(onnxruntime);
    let (cnn, mlp) = (model("digits-cnn.onnx"), model("digits-mlp.onnx"));
    let spec = |file: &str| {
        format!(
            "models: [{{ path: '{mlp}', files: {{ mine: '{file}' }} }}]\ninputs: {{ batch: 1 }}\nvariants: [fp32, {{ name: mine }}]\n{SHORT}"
        )
    };
    let project = Project::with_spec(&spec(&cnn));
    project.run(&["x.yaml"]).expect_code(0);
    let manifest = project.record("x").manifest;
    assert!(matches!(&manifest.variant_files()[0].origin, VariantOrigin::Own { path } if path == "digits-cnn.onnx"));
    // Another network gives other answers.
    assert!(!manifest.fidelity()[0].fidelity.passes());

    let project = Project::new();
    std::fs::write(project.path("cut.onnx"), &std::fs::read(&mlp).unwrap()[..1000]).unwrap();
    project.write("x.yaml", &spec(&project.path("cut.onnx").display().to_string()));
    let done = project.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("model `digits-mlp` as `mine`: the file is truncated"), "{}", done.stderr);

    let fed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/fed.onnx");
    project.write("x.yaml", &spec(fed));
    let done = project.run(&["x.yaml"]).expect_code(3);
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("files of one model take the same inputs"), "{said}");
}

#[test]
fn a_network_of_the_zoo_needs_no_file() {
    let project = Project::new();
    let cache = project.path("cache");
    project.write("x.yaml", "models: [{ zoo: bert_tiny, inputs: { batch: 1, sequence: 8 } }]\n");
    let plan = |arguments: &[&str]| project.command(arguments).env("PERFRUN_CACHE", &cache).output().unwrap();
    let done = plan(&["plan", "x.yaml"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stderr).contains("making"));
    // The second time it is there.
    assert!(!String::from_utf8_lossy(&plan(&["plan", "x.yaml"]).stderr).contains("making"));
    let file = std::fs::read_dir(cache.join("zoo")).unwrap().next().unwrap().unwrap().path().join("bert_tiny.onnx");
    let whole = digest::of_file(&file).unwrap();
    flip_a_bit(&file);
    let said = said_on_one_line(&plan(&["plan", "x.yaml"]).stderr);
    assert!(said.contains("bert_tiny.onnx is damaged making"), "{said}");
    assert_eq!(digest::of_file(&file).unwrap(), whole);
    let done = plan(&["zoo", "export", "bert_tiny", "-o", "tiny.onnx"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(onnx::read_header(&project.path("tiny.onnx")).unwrap().parameters, 4_385_920);
    assert_eq!(plan(&["zoo", "export", "bert_tiny", "-o", "tiny.onnx"]).status.code(), Some(2));
    let small = ["zoo", "export", "mobilenet_v2", "--classes", "10", "--image", "32", "-o", "small.onnx"];
    assert!(plan(&small).status.success());
    assert!(file.with_file_name("mobilenet_v2-10-image32.onnx").exists());
    let input = &onnx::read_header(&project.path("small.onnx")).unwrap().signature.inputs[0];
    assert_eq!(input.to_string(), "input: float32 [batch, 3, 32, 32]");
    let refused = plan(&["zoo", "export", "densenet121", "--image", "28"]);
    assert!(said_on_one_line(&refused.stderr).contains("at least 29"));
}

/// As a disk might, in the middle of a file.
fn flip_a_bit(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn said_on_one_line(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_conversion_in_the_cache_that_is_damaged_or_another_models_is_made_again() {
    let project = Project::new();
    let convert = |name: &str| {
        let _made_before = std::fs::remove_file(project.path("out.onnx"));
        let arguments = ["convert", &model(name), "--precision", "fp16", "-o", "out.onnx"];
        let done = project.command(&arguments).env("PERFRUN_CACHE", project.path("cache")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        (String::from_utf8_lossy(&done.stdout).into_owned(), digest::of_file(&project.path("out.onnx")).unwrap())
    };
    let entries = || -> Vec<_> {
        let entries = std::fs::read_dir(project.path("cache/models")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let (_, whole) = convert("digits-mlp.onnx");
    assert!(convert("digits-mlp.onnx").0.contains("from the cache"));
    let [entry] = &entries()[..] else { panic!("one conversion was made") };
    let entry = entry.clone();
    flip_a_bit(&entry.join("model.onnx"));
    let (said, again) = convert("digits-mlp.onnx");
    assert!(said.contains("because the cached one was damaged") && again == whole, "{said}");
    convert("digits-cnn.onnx");
    let other = entries().into_iter().find(|path| *path != entry).unwrap();
    for file in ["model.onnx", "entry.json"] {
        std::fs::copy(other.join(file), entry.join(file)).unwrap();
    }
    let (said, again) = convert("digits-mlp.onnx");
    assert!(said.contains("because the cached one was damaged") && again == whole, "{said}");
}

/// A server that gives one file as often as it is asked, on this machine alone.
fn serve(content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let is_there = String::from_utf8_lossy(&request[..read]).starts_with("GET /net.onnx ");
            let (status, body) = if is_there { ("200 OK", content.as_slice()) } else { ("404 Not Found", &b"no"[..]) };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    format!("http://{address}")
}

#[test]
fn a_model_is_fetched_once_and_must_be_the_one_that_is_meant() {
    let path = model("digits-mlp.onnx");
    let sha256 = digest::of_files(&[path.clone().into()]).unwrap();
    let server = serve(std::fs::read(path).unwrap());
    let project = Project::new();
    let plan = |file: &str, sha256: &str| {
        project.write(
            "x.yaml",
            &format!("models: [{{ url: '{server}/{file}', sha256: {sha256} }}]\ninputs: {{ batch: 1 }}\n"),
        );
        let output = project.command(&["plan", "x.yaml"]).env("PERFRUN_CACHE", project.path("cache")).output().unwrap();
        (output.status.code(), said_on_one_line(&output.stderr))
    };
    let (code, text) = plan("net.onnx", &sha256);
    assert!(code == Some(0) && text.contains("fetching"), "{code:?}: {text}");
    assert!(!plan("net.onnx", &sha256).1.contains("fetching"), "it is in the cache");
    flip_a_bit(&project.path(&format!("cache/downloads/{sha256}.onnx")));
    let (code, text) = plan("net.onnx", &sha256);
    assert!(code == Some(0) && text.contains("is damaged") && text.contains("fetching"), "{code:?}: {text}");
    let (code, text) = plan("net.onnx", &"0".repeat(64));
    assert!(code == Some(2) && text.contains("has the SHA-256"), "{code:?}: {text}");
    let (code, text) = plan("absent.onnx", &"1".repeat(64));
    assert!(code == Some(2) && text.contains("cannot be fetched") && text.contains("404"), "{code:?}: {text}");
}

#[test]
fn goals_are_judged_by_interval_and_end_with_exit_code_four() {
    let goals = "\
goals:
  - { name: quick, metric: latency, max: 6ms }
  - { metric: speedup, min: 1.3, where: { variant: [same, wrong] } }
  - { name: alike, metric: fidelity_cosine, min: 0.99, where: { variant: same } }
  - { name: open, metric: latency, max: 5ms, where: { variant: base } }
";
    let project = Project::with_spec(&format!("{WRONG}{goals}"));
    let done = project.run(&["x.yaml"]).expect_code(4);
    let text = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("goals met quick: latency <= 6 ms: met by all 3 cells."), "{text}");
    let missed = "MISSED: speedup >= 1.3 for variant same or wrong: met by wrong; missed by same";
    assert!(text.contains(missed), "{text}");
    assert!(text.contains("met alike: cosine of outputs >= 0.99 for variant same: met by the only cell."), "{text}");
    assert!(
        text.contains("undecided open: latency <= 5 ms for variant base: met by none; undecided for base"),
        "{text}"
    );
    let report = project.page("reports/x");
    let (goals, answer) =
        (report.find("Goal met quick:").unwrap(), report.find("Speed-up of latency against").unwrap());
    assert!(goals < answer, "goals stand first");

    let strict = "goals_strict: true\ngoals: [{ metric: latency, max: 5ms, where: { variant: base } }]\n";
    Project::with_spec(&format!("{WRONG}{strict}")).run(&["x.yaml"]).expect_code(4);
    let lax = strict.replace("goals_strict: true\n", "");
    Project::with_spec(&format!("{WRONG}{lax}")).run(&["x.yaml"]).expect_code(0);
}

/// "Missed" is a verdict on what was measured: a cell without a finished run, on a machine short of memory or of
/// descriptors, is none.
#[test]
fn a_goal_on_the_speed_up_is_not_about_the_baseline() {
    let project = Project::with_spec(
        "backend: { mock: { run_sd: 0.5% } }\nmodels: [m]\nruns: 8\n\
         variants: [a, { name: b, mock: { scale: 0.5 } }]\ngoals: [{ metric: speedup, min: 1.5 }]\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("met: speedup >= 1.5: met by the only cell"), "{}", done.stdout);
}

#[test]
fn a_goal_is_not_missed_by_a_cell_whose_runs_failed() {
    let spec = "backend: mock\nmodels: [m]\nruns: 2\ngoals: [{ metric: latency, max: 1s }]\n\
                variants: [{ name: a, mock: { fail: { kind: error, at: load } } }]\n";
    let done = Project::with_spec(spec).run(&["x.yaml"]).expect_code(3);
    assert!(done.stdout.contains("undecided"), "{}", done.stdout);
    assert!(!done.stdout.contains("missed") && !done.stdout.contains("MISSED"), "{}", done.stdout);
}

/// A model whose one product stands in a function of its own, and is called twice.
fn model_of_calls(path: &Path) {
    use onnx::ElementType;
    use onnx::proto::{
        FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    };
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    let imports = vec![opset("", 17), opset("mine", 1)];
    let layer = FunctionProto {
        name: Some("Layer".to_owned()),
        domain: Some("mine".to_owned()),
        input: texts(&["a", "b"]),
        output: texts(&["c"]),
        node: vec![
            NodeProto::of("MatMul", "product", &["a", "b"], &["p"], vec![]),
            NodeProto::of("Tanh", "", &["p"], &["c"], vec![]),
        ],
        opset_import: imports.clone(),
        ..Default::default()
    };
    let call =
        |name: &str, from: &str, to: &str| NodeProto::of("Layer", name, &[from, "w"], &[to], vec![]).in_domain("mine");
    let weight: Vec<f32> = (0..128 * 128).map(|index| ((index * 37 % 101) as f32 - 50.0) / 500.0).collect();
    let value = |name: &str| {
        let shape = [1, 128].map(onnx::Dimension::Fixed);
        ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&shape))
    };
    let graph = GraphProto {
        name: Some("calls".to_owned()),
        node: vec![call("one", "x", "h"), call("two", "h", "y")],
        initializer: vec![TensorProto::of_floats("w", &[128, 128], &weight)],
        input: vec![value("x")],
        output: vec![value("y")],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: imports,
        functions: vec![layer],
        ..Default::default()
    };
    onnx::save(model, path).unwrap();
}

/// What classifies: labels and classes are compared by the share of equal elements, and the report says so.
#[test]
fn labels_and_classes_are_equal_or_not() {
    let spec = |outputs: &str, differ: &str| {
        Project::with_spec(&format!(
            "backend: {{ mock: {{ outputs: {outputs} }} }}\nmodels: [net]\nvariants:\n  - base\n  \
             - {{ name: int8, mock: {{ scale: 0.8, differ: {differ} }} }}\n"
        ))
    };
    let wrong = spec("classes", "200%");
    let done = wrong.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "differs: class: 4 of 8 elements equal, required 99.9 %";
    let from = words.replacen("differs", "differs from base", 1);
    assert!(answer.contains(&format!("left out: int8 ({from})")), "{answer}");
    let report = wrong.page("reports/x");
    assert!(report.contains(&format!("| {words} |")) && report.contains("| 50 % |"), "{report}");
    let results = wrong.read("reports/x/results.json");
    assert!(results.contains("fidelity_equal_ratio") && !results.contains("fidelity_cosine_ratio"), "{results}");
    wrong.run(&["report", "x", "--format", "junit", "--output", "junit"]).expect_code(0);
    let junit = wrong.read("junit/results.junit.xml");
    assert!(junit.contains("outputs differ: class: 4 of 8 elements equal, required 99.9 %"), "{junit}");

    let near = spec("labels", "5%");
    let with_limits =
        format!("{}fidelity: {{ int8: {{ cosine: 0.9, close: 0%, equal: 50% }} }}\n", near.read("x.yaml"));
    near.write("x.yaml", &with_limits);
    let near = near.run(&["x.yaml"]).expect_code(0);
    let answer = near.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        answer.contains("Fastest: int8.") && answer.contains(" of 8 elements equal, output: cosine 0.99"),
        "{answer}"
    );
}

/// A classifier as skl2onnx writes it: a text as label, probabilities as a sequence of maps.
#[test]
fn classifiers_are_compared_by_their_labels_and_scored_by_name() {
    need!(onnxruntime);
    let fixture = |name: &str| format!("{}/tests/fixtures/models/{name}", env!("CARGO_MANIFEST_DIR"));
    let measured = |inputs: &str, more: &str| {
        let project = Project::with_spec(&format!(
            "models: '{}'\ninputs: {{ batch: {inputs} }}\nvariants: [fp32, {{ name: basic, graph_optimization: disabled, \
             threads: 2 }}, int8]\n{SHORT}{more}",
            fixture("iris_classifier.onnx")
        ));
        let done = project.command(&["x.yaml"]).env("PERFRUN_CACHE", cache(&project)).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        project
    };
    let project = measured("[1, 16]", "");
    let manifest = project.record("x").manifest;
    assert_eq!(manifest.fidelity().len(), 4);
    for compared in manifest.fidelity() {
        let fidelity = &compared.fidelity;
        assert!(fidelity.passes(), "{fidelity:?}");
        assert_eq!(fidelity.cosine_of.as_deref(), Some("output_probability"));
        let [label] = &fidelity.equal[..] else { panic!("{fidelity:?}") };
        assert_eq!(label.output, "output_label");
        // Three probabilities for each label.
        assert_eq!(fidelity.elements, Some(4 * label.elements));
    }
    assert!(!project.page("reports/x").contains("Not compared"));

    for output in ["output_label", "output_probability"] {
        let project = measured(
            "8",
            &format!("dataset: {{ file: '{}', labels: label, output: {output} }}\n", fixture("iris.npz")),
        );
        let manifest = project.record("x").manifest;
        assert_eq!(manifest.accuracy().len(), 3);
        for known in manifest.accuracy() {
            assert_eq!((known.problem.as_ref(), known.items), (None, 30));
            assert!(known.scores[0].estimate.value > 0.9, "{output}: {known:?}");
        }
        assert!(manifest.fidelity().iter().all(|compared| compared.fidelity.equal[0].elements == 30));
    }
}

#[test]
fn functions_of_a_model_are_converted_inside() {
    need!(onnxruntime);
    let project = Project::new();
    model_of_calls(&project.path("net.onnx"));
    project.write("x.yaml", &format!("models: net.onnx\nvariants: [fp32, fp16, int8, int4]\n{SHORT}"));
    let done = project.command(&["x.yaml"]).env("PERFRUN_CACHE", cache(&project)).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let manifest = project.record("x").manifest;
    for file in manifest.variant_files() {
        let VariantOrigin::Converted { report: Some(report), .. } = &file.origin else { panic!("{file:?}") };
        assert_eq!((report.weights.converted, report.weights.kept), (128 * 128, 0), "{file:?}");
        assert!(report.notes.iter().any(|note| note.contains("2 calls")), "{:?}", report.notes);
    }
    // Four bits for each weight, in two layers, are what costs most.
    assert_eq!(manifest.fidelity().len(), 3);
    assert!(
        manifest
            .fidelity()
            .iter()
            .all(|compared| compared.fidelity.cosine.is_some_and(|cosine| cosine > least_cosine())),
        "{:?}",
        manifest.fidelity()
    );
}
