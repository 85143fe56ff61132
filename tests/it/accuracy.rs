//! Datasets from YAML to the report: labels, intervals, what does not fit, and the user's own scores.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use files::array::{Array, write_npy};
use onnx::ElementType;
use record::VariantAccuracy;

use crate::need::need;
use crate::support::Project;

fn floats(name: &str, shape: &[u64], values: impl Iterator<Item = f32>) -> Array {
    let bytes = values.flat_map(f32::to_le_bytes).collect();
    Array { name: name.to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() }
}

fn classes(values: &[i64]) -> Array {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Array {
        name: "labels".to_owned(),
        element: ElementType::Int64,
        shape: vec![values.len() as u64],
        bytes,
        keys: Vec::new(),
    }
}

fn write_array(project: &Project, file: &str, array: &Array) {
    write_npy(array, File::create(project.path(file)).unwrap()).unwrap();
}

pub fn write_npz(project: &Project, file: &str, arrays: &[Array]) {
    let mut archive = zip::ZipWriter::new(File::create(project.path(file)).unwrap());
    for array in arrays {
        archive.start_file(format!("{}.npy", array.name), zip::write::SimpleFileOptions::default()).unwrap();
        let mut bytes = Vec::new();
        write_npy(array, &mut bytes).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// Scores of three classes for 200 items, of which the mock model gives back what it is fed: the class of item i is i
/// modulo 3, and every tenth label is another one.
pub fn scores_and_labels() -> (Array, Array) {
    let score = |index: u64| if index % 3 == (index / 3) % 3 { 1.0 } else { 0.2 };
    let labels: Vec<i64> = (0..200).map(|item| if item % 10 == 9 { (item + 1) % 3 } else { item % 3 }).collect();
    (floats("x", &[200, 3], (0..600).map(score)), classes(&labels))
}

const SCORED: &str = "\
backend: mock
models: [net]
inputs: { batch: [3, 8] }
variants:
  - base
  - { name: same, mock: { scale: 0.9, differ: 0.01% } }
  - { name: wrong, mock: { scale: 0.7, differ: 200% } }
dataset: { file: d.npz, labels: labels, metrics: [top1] }
fidelity: { wrong: { cosine: -1, close: 0%, top1: 0% } }
";

pub fn scored(more: &str) -> Project {
    let project = Project::with_spec(&format!("{SCORED}{more}"));
    let (scores, labels) = scores_and_labels();
    write_npz(&project, "d.npz", &[scores, labels]);
    project
}

fn known(project: &Project) -> Vec<VariantAccuracy> {
    project.record("x").manifest.accuracy().to_vec()
}

#[test]
fn labels_give_accuracy_beside_speed() {
    let project = scored("");
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("net: base 90.0 %, same 90.0 %, wrong"), "{}", done.stderr);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("top-1 33.0 % against 90.0 % (lower, p < 0.0001)"), "{answer}");
    assert!(answer.contains("Fastest: b8/wrong (less accurate)."), "{answer}");
    let known = known(&project);
    assert_eq!(known.len(), 3, "once for each variant, whatever its inputs");
    let base = &known[0].scores[0];
    assert_eq!((base.estimate.value, base.estimate.n, base.change), (0.9, 200, None));
    let change = known[2].scores[0].change.unwrap();
    assert!(change.lost > Some(20) && change.p < 1e-4, "{change:?}");
    let report = project.page("reports/x");
    for text in ["\nAccuracy\n", "Data: d.npz (200 items", "90.0 % [85.1, 93.4]"] {
        assert!(report.contains(text), "{text} is missing:\n{report}");
    }
    let record = project.record_folder("x");
    assert!(!record.join("dataset").exists() && !record.join("dataset-outputs").exists(), "they can be made again");
}

/// As [`SCORED`], with nothing but its data to say whether outputs agree.
const COMPARED: &str = "\
backend: mock
models: [net]
inputs: { batch: 8 }
variants:
  - base
  - { name: near, mock: { scale: 0.9, differ: 5% } }
  - { name: far, mock: { scale: 0.7, differ: 200% } }
dataset: { file: d.npz }
fidelity: { near: { cosine: 0.9, close: 0% }, far: { cosine: -1, close: 0% } }
";

#[test]
fn outputs_for_data_agree_where_nearly_all_keep_their_top_class() {
    let project = Project::with_spec(COMPARED);
    write_npz(&project, "d.npz", &[scores_and_labels().0]);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: near."), "{answer}");
    assert!(answer.contains("outputs agree (cosine 0.99") && answer.contains("top-1 100.0 %)"), "{answer}");
    assert!(
        answer.contains("left out: far (differs from base: ") && answer.contains(" top classes changed)."),
        "{answer}"
    );
    let report = project.page("reports/x");
    assert!(report.contains("| ~~3.4") && report.contains("| agree |") && report.contains("| differs: "), "{report}");
}

/// Labels that have nothing to do with the inputs: whatever class is put first, it is as often right.
#[test]
fn classes_that_change_do_no_harm_where_labels_say_so() {
    let project =
        Project::with_spec(&COMPARED.replace("file: d.npz }", "file: d.npz, labels: labels, metrics: [top1] }"));
    write_npz(&project, "d.npz", &[scores_and_labels().0, classes(&[0; 200])]);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: far."), "{answer}");
    assert!(!answer.contains("differs") && answer.contains("top-1 "), "{answer}");
    let report = project.page("reports/x");
    assert!(report.contains(" top classes changed |"), "{report}");
}

/// 200 items in batches of 3 and of 8 leave a remainder of 2 and none.
#[test]
fn the_last_batch_counts_its_own_items_alone() {
    let project = scored("matrix: { exclude: [{ batch: 8 }] }\n");
    project.run(&["x.yaml"]).expect_code(0);
    let of_three = known(&project);
    assert_eq!((of_three[0].batch, of_three[0].items, of_three[0].scores[0].estimate.n), (3, 200, 200));
    let project = scored("matrix: { exclude: [{ batch: 3 }] }\n");
    project.run(&["x.yaml"]).expect_code(0);
    let of_eight = known(&project);
    assert_eq!(of_eight[0].batch, 8);
    assert_eq!(of_eight[0].scores, of_three[0].scores);
}

#[test]
fn a_quick_look_scores_the_first_items() {
    let project = Project::with_spec(&SCORED.replace("batch: [3, 8]", "batch: 8"));
    let labels: Vec<i64> = (0..1000).map(|item| item % 3).collect();
    let x = floats("x", &[1000, 3], (0..3000).map(|index: u64| f32::from(u8::from(index % 3 == (index / 3) % 3))));
    write_npz(&project, "d.npz", &[x, classes(&labels)]);
    project.run(&["x.yaml", "--quick"]).expect_code(0);
    assert_eq!(known(&project)[0].items, 256);
}

#[test]
fn goals_and_trade_offs_take_accuracy() {
    let goals = "goals:
  - { name: right, metric: accuracy_top1, min: 80%, where: { variant: [base, same] } }
  - { name: perfect, metric: accuracy_top1, min: 99%, where: { variant: base } }\n";
    let project = scored(goals);
    let done = project.run(&["x.yaml"]).expect_code(4);
    assert!(done.stdout.contains("met right") && done.stdout.contains("MISSED perfect"), "{}", done.stdout);
    let report = project.page("reports/x");
    assert!(report.contains("latency") && report.contains("top-1 accuracy"), "{report}");
    // Half of an interval on the wrong side of the bound is neither.
    let project = scored("goals: [{ metric: accuracy_top1, min: 89%, where: { variant: base } }]\n");
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("undecided"), "{}", done.stdout);
}

#[test]
fn what_is_chosen_says_what_it_costs_in_accuracy() {
    let project = scored("choose: { best: latency }\n");
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("top-1 33.0 % against 90.0 % (lower, p < 0.0001)"), "{answer}");
    let project = scored("choose: { best: latency, within: [{ metric: accuracy_top1, min: 80% }] }\n");
    let done = project.run(&["x.yaml"]).expect_code(0);
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains("Fastest: same.") && answer.contains("top-1 90.0 % as before"), "{answer}");
}

#[test]
fn values_have_errors() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [net]\ninputs: { batch: 4 }\nvariants: [base, { name: off, mock: { differ: 10% } }]\n\
         dataset: { file: x.npy, labels: y.npy }\nfidelity: { off: { close: 0%, cosine: 0 } }\n",
    );
    write_array(&project, "x.npy", &floats("x", &[50, 1], (0..50_u8).map(f32::from)));
    write_array(&project, "y.npy", &floats("y", &[50, 1], (0..50_u8).map(|value| f32::from(value) + 2.0)));
    project.run(&["x.yaml"]).expect_code(0);
    let known = known(&project);
    let values: Vec<f64> = known[0].scores.iter().map(|score| score.estimate.value).collect();
    assert_eq!((known[0].scores.len(), values[0], values[1]), (3, 2.0, 2.0));
    assert!((values[2] - (1.0 - 4.0 / 208.25)).abs() < 1e-12, "{values:?}");
    assert!(known[1].scores[0].change.unwrap().p > 0.0);
    assert!(project.page("reports/x").contains("mean absolute error"));
}

#[test]
fn a_command_of_ones_own_scores_saved_outputs() {
    let project = scored("");
    let spec = project.read("x.yaml").replace("metrics: [top1]", "metrics: [top1, map50], score: [sh, score.sh]");
    let spec = spec + "metrics: { map50: { better: higher } }\n";
    project.write("x.yaml", &spec);
    project.write("score.sh", "echo looking at $PERFRUN_VARIANT; test -s $1/0-output.npy && grep -q '\"items\": 200' $1/outputs.json && echo '{\"map50\": 0.41}'\n");
    project.run(&["x.yaml"]).expect_code(0);
    let score = &known(&project)[1].scores[1];
    assert_eq!((score.metric.name(), score.estimate.value, score.estimate.interval), ("map50", 0.41, None));
    assert!(project.page("reports/x").contains("map50"));
    let few = scored("");
    few.write("x.yaml", &spec);
    few.write("score.sh", "echo '{\"map50\": [1, 0]}'\n");
    let done = few.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("printed 2 values of `map50` for 200 items"), "{}", done.stderr);
    few.write("score.sh", "echo done\n");
    let done = few.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("printed no number `map50`"), "{}", done.stderr);
    few.write("score.sh", "yes | head -c 3000000; echo '{\"map50\": 0.41}'\n");
    let done = few.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("bytes more than perfrun reads"), "{}", done.stderr);
    project.write("score.sh", "echo no such class >&2; exit 3\n");
    let another = scored("");
    another.write("x.yaml", &spec);
    another.write("score.sh", "echo no such class >&2; exit 3\n");
    let done = another.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("unknown: `score: [sh, score.sh]`: exit status: 3: no such class"), "{}", done.stderr);
    let said = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("accuracy, on the data: `score: [sh, score.sh]`: exit status: 3: no such class"), "{said}");
    assert!(another.read("reports/x/report.md").contains("no such class"));
    another.write("score.sh", "echo '{\"map50\": 0.41}'\n");
    let scored = another.run(&["x.yaml", "--resume"]).expect_code(0);
    assert!(scored.stdout.contains("0.41"), "{}", scored.stdout);
}

#[test]
fn a_score_of_each_item_has_an_interval_and_is_compared_item_by_item() {
    let project = scored("");
    let spec = project.read("x.yaml").replace("metrics: [top1]", "metrics: [iou, gain], score: [sh, score.sh]");
    let own_metrics = "metrics: { iou: { unit: '%', better: higher }, gain: { unit: dB, better: higher } }\n\
               goals: [{ metric: iou, min: 55% }, { metric: gain, min: -3 dB }]\npareto: [latency, gain]\n";
    project.write("x.yaml", &(spec + own_metrics));
    // 50 and 60 in turns, and of one variant a tenth of an item's score less.
    let items = "case $PERFRUN_VARIANT in wrong) a=45; g=-4;; *) a=50; g=-2.5;; esac; i=0; s=; \
                 while [ $i -lt 100 ]; do s=\"$s$a,60,\"; i=$((i+1)); done; echo \"{\\\"iou\\\": [${s%,}], \\\"gain\\\": $g}\"";
    project.write("score.sh", items);
    project.run(&["x.yaml"]).expect_code(4);
    let known = known(&project);
    let [iou, gain] = known[2].scores.as_slice() else { panic!("{:?}", known[2]) };
    let interval = iou.estimate.interval.unwrap();
    assert!((iou.estimate.value - 0.525).abs() < 1e-12 && iou.estimate.n == 200);
    assert!(interval.low < 0.52 && interval.high > 0.53);
    let change = iou.change.unwrap();
    assert!((change.difference + 0.025).abs() < 1e-12 && change.p < 1e-9 && change.interval.is_some());
    assert_eq!((gain.estimate.value, gain.estimate.interval, gain.change), (-4.0, None, None));
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let outcomes: Vec<Vec<&str>> = results["goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| goal["cells"].as_array().unwrap().iter().map(|cell| cell["outcome"].as_str().unwrap()).collect())
        .collect();
    assert_eq!(
        outcomes[1].iter().filter(|outcome| **outcome == "missed").count(),
        outcomes[1].len() / 3,
        "{outcomes:?}"
    );
    // Read again, and on the page.
    project.run(&["report", "reports/x"]).expect_code(0);
    let page = project.page("reports/x");
    assert!(
        page.contains("−2.5 dB") && page.contains("55.0 %") && page.contains("as the `score` command prints it"),
        "{page}"
    );
}

/// What is said of a dataset that cannot be used, with exit code 2.
fn refusal(dataset: &str, arrays: &[Array]) -> String {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-mlp.onnx");
    let project =
        Project::with_spec(&format!("models: ['{}']\ninputs: {{ batch: 4 }}\ndataset: {dataset}\n", model.display()));
    write_npz(&project, "d.npz", arrays);
    let done = project.run(&["plan", "x.yaml"]).expect_code(2);
    done.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_measured() {
    let images = || floats("image", &[2, 1, 8, 8], (0..128_u8).map(f32::from));
    let says = |dataset: &str, arrays: &[Array], text: &str| {
        let said = refusal(dataset, arrays);
        assert!(said.contains(text), "{said}");
        assert!(said.contains("model `digits-mlp`"), "{said}");
    };
    let plain = "{ file: d.npz, labels: labels }";
    says(plain, &[images(), classes(&[1, 2, 3])], "array `image` has 2 items, but `labels` has 3");
    says(plain, &[images()], "there is no array `labels`; the file has `image`");
    let small = floats("image", &[2, 1, 4, 4], (0..32_u8).map(f32::from));
    says(plain, &[small, classes(&[1, 2])], "has the shape [2, 1, 4, 4]");
    let bytes = Array { element: ElementType::Uint8, bytes: vec![0; 128], ..images() };
    says(plain, &[bytes, classes(&[1, 2])], "holds uint8, but the input is `image: float32");
    let other = |name: &str| Array { name: name.to_owned(), ..images() };
    says(plain, &[other("a"), other("b"), classes(&[1, 2])], "no array is named like the input");
    says("{ file: d.npz, labels: labels, output: y }", &[images(), classes(&[1, 2])], "no output `y`; it has `logits`");
    says("{ file: d.npz, inputs: { x: image } }", &[images()], "no input `x`; it has `image`");
    let none = Array { shape: vec![0, 1, 8, 8], bytes: Vec::new(), ..images() };
    says("{ file: d.npz }", &[none], "the dataset has no items");
}

#[test]
fn labels_that_are_no_class_are_told_and_the_rest_goes_on() {
    let project = scored("");
    let (scores, _) = scores_and_labels();
    write_npz(&project, "d.npz", &[scores, classes(&[7; 200])]);
    let done = project.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("label 7 of item 0 is not one of the 3 classes"), "{}", done.stderr);
    assert!(project.page("reports/x").contains("label 7 of item 0"));
}

#[test]
fn real_models_are_scored_and_calibrated_with_real_items() {
    need!(onnxruntime);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let folder = folder.display();
    let project = Project::with_spec(&format!(
        "models: ['{folder}/models/digits-cnn.onnx']\ninputs: {{ batch: 32 }}\nvariants: [fp32, fp16, int8]\n\
         dataset: {{ file: '{folder}/data/digits-test.npz', labels: labels, metrics: [top1, top5] }}\nruns: 1\n\
         compare: {{ aa: off }}\n\
         measure: {{ warmup: {{ mode: samples, count: 3 }}, stop: {{ mode: samples, count: 5 }} }}\n"
    ));
    project.run(&["x.yaml"]).expect_code(0);
    let manifest = project.record("x").manifest;
    let top1: Vec<f64> = manifest.accuracy().iter().map(|known| known.scores[0].estimate.value).collect();
    // 536 of 540, as the model's own script says.
    assert!((top1[0] - 536.0 / 540.0).abs() < 1e-12, "{top1:?}");
    assert!(top1[1] > 0.98 && top1[2] > 0.97, "{top1:?}");
    assert!(manifest.fidelity().iter().all(|known| known.fidelity.items_of_data == Some(540)));
    let text = project.page("reports/x");
    assert!(text.contains("the first 128 items of"), "calibrated with real items: {text}");
}
