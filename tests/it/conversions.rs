//! What conversions are asked for and cannot do: names that nothing has, models without anything to convert, bad data;
//! and single nodes of a model.

use std::fs::File;
use std::path::Path;

use files::array::{Array, write_npy};
use onnx::ElementType;
use onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto};

use crate::need::{self, need};
use crate::support::Project;

/// Short runs of real models.
const SHORT: &str = "\
runs: 1
compare: { aa: off }
measure: { inputs: 2, warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 5 } }
";

/// A model of one node that makes `y` of `x`, four numbers, and of a weight `w` of four by four.
fn write_model(path: &Path, operator: &str, inputs: &[&str]) {
    let node = NodeProto::of(operator, "only", inputs, &["y"], vec![]);
    write_nodes(path, &ElementType::Float32, vec![node], vec![TensorProto::of_floats("w", &[4, 4], &[0.5; 16])]);
}

/// A model that makes floats `y` of four numbers `x` of a type.
fn write_nodes(path: &Path, element: &ElementType, node: Vec<NodeProto>, initializer: Vec<TensorProto>) {
    let shape = [1, 4].map(onnx::Dimension::Fixed);
    let value = |name: &str, element: &ElementType| ValueInfoProto::of_tensor(name, element, Some(&shape));
    let graph = GraphProto {
        name: Some("one".to_owned()),
        node,
        initializer,
        input: vec![value("x", element)],
        output: vec![value("y", &ElementType::Float32)],
        ..Default::default()
    };
    let opset = OperatorSetIdProto { version: Some(17), ..Default::default() };
    let model = ModelProto { ir_version: Some(8), graph: Some(graph), opset_import: vec![opset], ..Default::default() };
    onnx::save(model, path).unwrap();
}

fn write_data(path: &Path, shape: &[u64], values: &[f32]) {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let array =
        Array { name: "x".to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() };
    write_npy(&array, File::create(path).unwrap()).unwrap();
}

fn plain(text: &str) -> String {
    text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_kept_must_be_in_a_model() {
    let project = Project::new();
    write_model(&project.path("a.onnx"), "MatMul", &["x", "w"]);
    write_model(&project.path("b.onnx"), "Gemm", &["x", "w"]);
    let spec = |keep: &str| {
        let variants = format!("variants: [fp32, {{ precision: int8, convert: {{ keep: {keep} }} }}]");
        project.write("x.yaml", &format!("models: [a.onnx, b.onnx]\n{variants}\n{SHORT}"));
    };
    spec("[matmul, NoSuch]");
    for command in [&["validate", "x.yaml"][..], &["plan", "x.yaml"], &["x.yaml"]] {
        let said = plain(&project.run(command).expect_code(2).stderr);
        let expected = "variant `int8`: `keep`: `matmul` and `NoSuch` match no operator and no node of its models";
        assert!(said.contains(expected) && said.contains("for `matmul`, did you mean `MatMul`?"), "{said}");
    }
    // What one of the models has is enough.
    for keep in ["[MatMul]", "[Gemm]", "[only]"] {
        spec(keep);
        project.run(&["plan", "x.yaml"]).expect_code(0);
    }
    let convert = ["convert", "a.onnx", "--precision", "int8", "--keep", "matmul", "-o", "out.onnx"];
    let said = plain(&project.run(&convert).expect_code(2).stderr);
    assert!(said.contains("--keep: `matmul` matches no operator and no node in a.onnx"), "{said}");
    assert!(said.contains("did you mean `MatMul`?") && !project.path("out.onnx").exists(), "{said}");
}

#[test]
fn what_a_newer_format_added_is_missing_and_named() {
    let project = Project::new();
    write_model(&project.path("a.onnx"), "MatMul", &["x", "w"]);
    // No version of the format has a field 31; field 26 is the configuration of several devices, which nothing here looks into.
    let (strange, devices) = ([0xfa, 0x01, 3, 1, 2, 3], [0xd2, 0x01, 3, 4, 5, 6]);
    let model = std::fs::read(project.path("a.onnx")).unwrap();
    std::fs::write(project.path("b.onnx"), [&model[..], &strange, &devices].concat()).unwrap();
    let convert = |from| ["convert", from, "--precision", "int8", "-o", "out.onnx"];
    let note = "lacks what a newer version of the format added: field 31 of ModelProto";
    let said = plain(&project.run(&convert("b.onnx")).expect_code(0).stdout);
    assert!(said.contains(note), "{said}");
    assert!(std::fs::read(project.path("out.onnx")).unwrap().ends_with(&devices));
    std::fs::remove_file(project.path("out.onnx")).unwrap();
    let said = plain(&project.run(&convert("a.onnx")).expect_code(0).stdout);
    assert!(!said.contains("lacks"), "{said}");
}

#[test]
fn a_file_that_is_not_float32_is_not_called_so() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    std::fs::copy(model, project.path("net.onnx")).unwrap();
    project.run(&["convert", "net.onnx", "--precision", "int8", "-o", "small.onnx"]).expect_code(0);
    let inspected = project.run(&["inspect", "small.onnx"]).expect_code(0).stdout;
    assert!(inspected.contains("weights    stored (int8: MatMulInteger)"), "{inspected}");
    let written = |model: &str| project.run(&["init", model, "-o", "-"]).expect_code(0).stdout;
    assert!(written("net.onnx").contains("variants: [fp32, fp16, int8]"));
    let small = written("small.onnx");
    let is_stored = small.contains("variants: [{ name: stored }") && small.contains("# stored (int8: MatMulInteger)");
    assert!(is_stored, "{small}");
    // Reports are compared by names, so a specification keeps its own.
    project.write("x.yaml", "models: [net.onnx, small.onnx]\ninputs: { batch: 1 }\n");
    for command in ["validate", "plan"] {
        let stderr = plain(&project.run(&[command, "x.yaml"]).expect_code(0).stderr);
        let says = "warning: variant `fp32` runs small.onnx as stored: it holds int8 (MatMulInteger)";
        assert!(stderr.contains(says) && !stderr.contains("net.onnx"), "{stderr}");
    }
}

#[test]
fn an_option_that_the_precision_has_no_use_for_is_refused() {
    let project = Project::new();
    write_model(&project.path("a.onnx"), "MatMul", &["x", "w"]);
    for (precision, more, said) in [
        ("fp16", &["--block", "64"][..], "--block has no effect with --precision fp16"),
        ("int8", &["--io", "convert"], "--io has no effect with --precision int8"),
        ("int4", &["--reduce-range"], "--reduce-range has no effect with --precision int4"),
        ("bf16", &["--data", "d.npy"], "--data has no effect with --precision bf16"),
        ("int8", &["--calibration", "entropy"], "--calibration has no effect: without convolutions"),
        ("fp16", &["--items", "3"], "--items has no effect with --precision fp16"),
        ("int4", &["--inputs", "batch=1"], "--inputs has no effect with --precision int4"),
        (
            "int8",
            &["--quantization", "dynamic", "--calibration", "entropy"],
            "--calibration has no effect with --quantization dynamic",
        ),
    ] {
        let convert = [&["convert", "a.onnx", "--precision", precision, "-o", "out.onnx"], more].concat();
        let stderr = plain(&project.run(&convert).expect_code(2).stderr);
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn a_variant_of_a_model_with_nothing_to_convert_is_skipped() {
    let project = Project::new();
    write_model(&project.path("net.onnx"), "Relu", &["x"]);
    write_model(&project.path("other.onnx"), "MatMul", &["x", "w"]);
    project.write("x.yaml", &format!("models: [net.onnx, other.onnx]\nvariants: [fp32, int8, int4, bf16]\n{SHORT}"));
    let reason = "net as int8: nothing in the model can be converted";
    let validated = project.run(&["validate", "x.yaml"]).expect_code(0).stdout;
    assert!(validated.contains(&format!("skipped 1: {reason}\n")), "{validated}");
    let planned = project.run(&["plan", "x.yaml"]).expect_code(0).stdout;
    assert!(planned.contains(&format!("skipped: {reason}\n")), "{planned}");
    for (model, variant) in [("net", "int4"), ("net", "bf16"), ("other", "int4"), ("other", "bf16")] {
        assert!(planned.contains(&format!("skipped: {model} as {variant}: nothing in the model")), "{planned}");
    }
    assert!(!planned.contains("other as int8"), "{planned}");
    need!(onnxruntime);
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains(&format!("skipped    1: {reason}")), "{}", done.stderr);
    assert!(project.read("reports/x/report.md").contains(reason));
}

#[test]
fn the_item_that_is_not_finite_is_named_where_data_calibrate() {
    let project = Project::new();
    write_model(&project.path("net.onnx"), "MatMul", &["x", "w"]);
    let convert =
        ["convert", "net.onnx", "--precision", "int8", "--quantization", "static", "--data", "d.npy", "-o", "out.onnx"];
    for (value, word) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "an infinity")] {
        let mut values = [0.5_f32; 20];
        values[13] = value;
        write_data(&project.path("d.npy"), &[5, 4], &values);
        let said = plain(&project.run(&convert).expect_code(2).stderr);
        assert!(said.contains("item 3 of array") && said.contains(&format!("holds {word}")), "{said}");
        // Of what is not calibrated on nothing is asked.
        if value.is_nan() && need::onnxruntime().is_some() {
            project.run(&[&convert[..], &["--items", "3"]].concat()).expect_code(0);
            std::fs::remove_file(project.path("out.onnx")).unwrap();
        }
    }
}

#[test]
fn the_item_that_is_not_finite_is_named_where_accuracy_is_measured() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [net]\nvariants: [base]\ndataset: { file: d.npy, labels: l.npy, metrics: [mae] }\n",
    );
    let mut values = [0.5_f32; 20];
    values[13] = f32::NAN;
    write_data(&project.path("d.npy"), &[20, 1], &values);
    write_data(&project.path("l.npy"), &[20, 1], &[0.5; 20]);
    let done = project.run(&["x.yaml"]).expect_code(3);
    let report = project.page("reports/x");
    assert!(report.contains("item 13 of array"), "{report}\n{}", done.stderr);
}

#[test]
fn random_calibration_that_is_struck_out_gets_the_hint() {
    need!(onnxruntime);
    let project = Project::new();
    let cnn = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-cnn.onnx");
    let spec = |limit: &str| {
        let text = format!("models: ['{}']\ninputs: {{ batch: 1 }}\nvariants: [fp32, int8]\n", cnn.display());
        project.write("x.yaml", &format!("{text}fidelity: {{ int8: {{ cosine: {limit} }} }}\n{SHORT}"));
    };
    let hint = "int8 was calibrated and compared on random inputs. A `dataset` calibrates on real items";
    spec("0.9999999");
    let done = project.run(&["x.yaml", "--output", "strict"]).expect_code(0);
    assert!(plain(&done.stdout).contains(hint), "{}", done.stdout);
    let report = project.read("strict/report.md");
    assert!(report.contains(hint));
    // Another cause, on some processors.
    let saturates = base::machine::host::describe().saturates_int8();
    assert_eq!(report.contains("int8: sums of 8-bit products can saturate on x86 without VNNI"), saturates, "{report}");
    spec("0.1");
    let done = project.run(&["x.yaml", "--output", "loose"]).expect_code(0);
    assert!(!plain(&done.stdout).contains(hint), "{}", done.stdout);
}

#[test]
fn inspect_extracts_a_node_under_the_name_that_a_profile_has() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-cnn.onnx");
    let extract = |node: &str, more: &[&str]| project.run(&[&["inspect", model, "--extract", node][..], more].concat());
    let said = extract("stage1_entry_nchwc", &["--inputs", "batch=4"]).expect_code(0).stdout;
    let nodes = "Conv `stage1_entry_norm_conv`, BatchNormalization `stage1_entry_norm`, Relu `stage1_entry`";
    assert!(said.starts_with(&format!("wrote stage1_entry_nchwc.onnx: {nodes}\n")), "{said}");
    assert!(said.contains("image: float32 [4, 1, 8, 8]") && said.contains("stage1_entry: float32 [4, "), "{said}");
    let said = project.run(&["inspect", "stage1_entry_nchwc.onnx"]).expect_code(0).stdout;
    assert!(said.contains("1 Conv (36.9 kMACs), 1 BatchNormalization, 1 Relu"), "{said}");
    let json = extract("features", &["-o", "one.onnx", "--json"]).expect_code(0).stdout;
    assert!(json.starts_with('[') && json.contains("\"path\": \"one.onnx\""), "{json}");

    let refused = |node: &str, more: &[&str], message: &str| {
        let said = extract(node, more).expect_code(2).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(message), "{said}");
    };
    refused("features", &["-o", "one.onnx"], "one.onnx already exists");
    refused("feature", &[], "there is no node `feature`");
    refused("feature", &[], "did you mean `features`?");
    refused("ReorderOutput", &[], "name a node as the model file or a profile does");
    refused("features", &["--inputs", "width=2"], "width");
    refused("features", &[model], "`--extract` takes one model");
    assert!(project.run(&["inspect", model, "-o", "two.onnx"]).expect_code(2).stderr.contains("--extract"));
}

#[test]
fn a_quick_look_at_what_does_not_run_is_not_to_be_kept() {
    need!(onnxruntime);
    let project = Project::new();
    write_model(&project.path("a.onnx"), "NoSuchOperator", &["x", "w"]);
    let done = project.run(&["a.onnx"]).expect_code(3);
    assert!(!done.stderr.contains("keep it"), "{}", done.stderr);
}

#[test]
fn a_model_that_was_exported_in_training_mode_is_said_so() {
    need!(onnxruntime);
    let project = Project::new();
    let dropout = NodeProto::of("Dropout", "only", &["x", "", "training"], &["y"], vec![]);
    let training = TensorProto {
        name: Some("training".to_owned()),
        data_type: ElementType::Bool.code(),
        int32_data: vec![1],
        ..Default::default()
    };
    write_nodes(&project.path("a.onnx"), &ElementType::Float32, vec![dropout], vec![training]);
    project.write("x.yaml", &format!("models: [a.onnx]\n{SHORT}"));
    project.run(&["x.yaml", "--output", "out"]).expect_code(0);
    for page in ["out/report.md", "out/report.html"] {
        let text = project.read(page);
        assert!(text.contains("a was exported in training mode (1 Dropout)"), "{text}");
    }
    let inspected = project.run(&["inspect", "a.onnx"]).expect_code(0).stdout;
    assert!(inspected.contains("training mode"), "{inspected}");
}

#[test]
fn outputs_of_a_file_that_is_fed_other_numbers_are_compared_with_nothing() {
    need!(onnxruntime);
    let project = Project::new();
    let relu = NodeProto::of("Relu", "only", &["x"], &["y"], vec![]);
    write_nodes(&project.path("floats.onnx"), &ElementType::Float32, vec![relu], vec![]);
    let cast = NodeProto::of("Cast", "only", &["x"], &["y"], vec![onnx::proto::AttributeProto::of_int("to", 1)]);
    write_nodes(&project.path("integers.onnx"), &ElementType::Int64, vec![cast], vec![]);
    project.write(
        "x.yaml",
        &format!("models: [{{ path: floats.onnx, files: {{ own: integers.onnx }} }}]\nvariants: [fp32, {{ name: own }}]\n{SHORT}"),
    );
    project.run(&["x.yaml", "--output", "out"]).expect_code(0);
    let report = project.read("out/report.md");
    assert!(report.contains("takes whole numbers where the model takes others"), "{report}");
}
