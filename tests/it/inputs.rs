//! What timed inferences are fed: ranges, given values, files and the items of a dataset, from YAML to what a model gives
//! back.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use experiment::Values;
use files::array::{Array, write_npy};
use half::f16;
use onnx::ElementType;
use record::RunKind;
use worker::backend::TensorRequest;
use worker::read_outputs;

use crate::need::need;
use crate::onnxruntime::run_model;
use crate::support::Project;

fn fed_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/fed.onnx")
}

fn array<const SIZE: usize>(
    name: &str,
    element: ElementType,
    shape: &[u64],
    values: impl Iterator<Item = [u8; SIZE]>,
) -> Array {
    Array { name: name.to_owned(), element, shape: shape.to_vec(), bytes: values.flatten().collect(), keys: Vec::new() }
}

/// Six items for every input of the model, each of them other than the rest.
fn items() -> Vec<Array> {
    let texts = ["héllo", "big world", "", "héllo", "other", "big world"];
    vec![
        array("x", ElementType::Float32, &[6, 2], (0..12_u8).map(|v| f32::from(v).to_le_bytes())),
        array("half", ElementType::Float16, &[6], (0..6_u8).map(|v| f16::from_f32(f32::from(v) + 0.5).to_le_bytes())),
        array("flag", ElementType::Bool, &[6], [1, 0, 0, 1, 1, 1_u8].into_iter().map(|v| [v])),
        array("ids", ElementType::Int64, &[6, 3], (0..18_i64).map(|v| (v * 1_000_000_007).to_le_bytes())),
        Array::of_texts("text", &[6], texts.into_iter()),
    ]
}

const TEXT_NUMBERS: [f64; 6] = [1.0, 2.0, 3.0, 1.0, -1.0, 2.0];

fn write_npz(project: &Project, file: &str, arrays: &[Array]) {
    let mut archive = zip::ZipWriter::new(File::create(project.path(file)).unwrap());
    for array in arrays {
        archive.start_file(format!("{}.npy", array.name), zip::write::SimpleFileOptions::default()).unwrap();
        let mut bytes = Vec::new();
        write_npy(array, &mut bytes).unwrap();
        archive.write_all(&bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// What the model is to give back for these items: those of `x`, `half`, `flag`, `ids`, and the numbers of the texts.
fn expected(items: &[usize]) -> Vec<Vec<f64>> {
    let arrays = self::items();
    let numbers_of = |array: &Array| -> Vec<f64> {
        let numbers = array.numbers().unwrap();
        let width = numbers.len() / 6;
        items.iter().flat_map(|item| numbers[item * width..(item + 1) * width].to_vec()).collect()
    };
    let texts = items.iter().map(|item| TEXT_NUMBERS[*item]).collect();
    arrays[..4].iter().map(numbers_of).chain([texts]).collect()
}

/// What a worker's model gives back where each of its inputs is fed from a file of two batches of three items.
#[test]
fn a_model_gets_what_its_files_hold_in_every_type() {
    let project = Project::new();
    let tensor = |mut array: Array| {
        let path = project.path(&format!("{}.npy", array.name));
        let shape: Vec<u64> = std::iter::once(3).chain(array.shape[1..].iter().copied()).collect();
        array.shape = std::iter::once(2).chain(shape.iter().copied()).collect();
        write_npy(&array, File::create(&path).unwrap()).unwrap();
        let (name, element) = (array.name, array.element);
        TensorRequest { name, element, shape, values: Values::Random, file: Some(path), seeds: Vec::new() }
    };
    let tensors = items().into_iter().map(tensor).collect();
    let (done, folder) = run_model(need!(onnxruntime), &fed_model(), tensors);
    assert_eq!(done.failure, None);
    let sets = read_outputs(folder.path()).unwrap();
    assert_eq!(sets.len(), 8, "both sets take turns");
    for (set, outputs) in sets.iter().enumerate() {
        let found: Vec<Vec<f64>> = outputs.iter().map(|output| output.numbers().unwrap()).collect();
        assert_eq!(found, expected(if set % 2 == 0 { &[0, 1, 2] } else { &[3, 4, 5] }), "set {set}");
    }
}

/// The hash of the outputs for the first input set, as a worker says it that is given these values one by one.
fn hash_of(library: &Path, items: &[usize]) -> String {
    let given = |array: &Array| -> Vec<String> {
        let all: Vec<String> = match array.element {
            ElementType::String => array.texts().map(str::to_owned).collect(),
            _ => array.numbers().unwrap().iter().map(f64::to_string).collect(),
        };
        let width = all.len() / 6;
        items.iter().flat_map(|item| all[item * width..(item + 1) * width].to_vec()).collect()
    };
    let tensor = |array: Array| TensorRequest {
        shape: std::iter::once(items.len() as u64).chain(array.shape[1..].iter().copied()).collect(),
        values: Values::List(given(&array)),
        name: array.name,
        element: array.element,
        file: None,
        seeds: Vec::new(),
    };
    let (done, _folder) = run_model(library, &fed_model(), self::items().into_iter().map(tensor).collect());
    assert_eq!(done.failure, None);
    done.data.output_hash.unwrap()
}

const SHORT: &str = "runs: 1\nvariants: [{ name: one, threads: 1 }]\n\
                     measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 20 } }\n";

/// The hash of the outputs for the first input set in a record, and which input sets its samples used.
fn measured(project: &Project) -> (Option<String>, BTreeSet<u32>) {
    let record = project.record("x");
    assert!(!record.folder.join("inputs").exists(), "what was fed can be made again");
    let run = record.runs.iter().find(|run| run.kind == RunKind::Main).unwrap();
    (run.data.output_hash.clone(), run.data.measured.input.iter().copied().collect())
}

fn spec(inputs: &str) -> String {
    format!("models: '{}'\ninputs:\n  - {inputs}\n{SHORT}", fed_model().display())
}

#[test]
fn items_of_a_file_are_timed_in_batches_set_after_set() {
    let library = need!(onnxruntime);
    for (inputs, first, sets) in [
        ("{ name: pairs, dimensions: { batch: 2 }, file: d.npz }", &[0, 1][..], 3),
        ("{ name: fours, dimensions: { batch: 4 }, file: d.npz }", &[0, 1, 2, 3], 2),
        ("{ name: more, dimensions: { batch: 8 }, file: d.npz }", &[0, 1, 2, 3, 4, 5, 0, 1], 1),
        ("{ name: all, file: d.npz }", &[0, 1, 2, 3, 4, 5], 1),
    ] {
        let expected = hash_of(library, first);
        let project = Project::with_spec(&spec(inputs));
        write_npz(&project, "d.npz", &items());
        project.run(&["x.yaml"]).expect_code(0);
        assert_eq!(measured(&project), (Some(expected), (0..sets).collect()), "{inputs}");
    }
}

#[test]
fn items_of_the_dataset_are_timed_and_single_inputs_filled_otherwise() {
    let library = need!(onnxruntime);
    let expected = hash_of(library, &[0, 1, 2, 3]);
    let project = Project::with_spec(&format!(
        "{}dataset: {{ file: d.npz }}\n",
        spec("{ name: fours, dimensions: { batch: 4 }, values: dataset }")
    ));
    write_npz(&project, "d.npz", &items());
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(measured(&project), (Some(expected), BTreeSet::from([0, 1])));

    // Sets below each other, and what is not in the file.
    let expected = hash_of(library, &[0]);
    let values = "{ half: 0.5, flag: true, ids: [0, 1000000007, 2000000014], text: [héllo] }";
    let project = Project::with_spec(&spec(&format!(
        "{{ name: sets, dimensions: {{ sequence: 3 }}, file: d.npz, values: {values} }}"
    )));
    let mut x = items().swap_remove(0);
    x.shape = vec![6, 1, 2];
    write_npz(&project, "d.npz", &[x]);
    project.run(&["x.yaml"]).expect_code(0);
    let (hash, sets) = measured(&project);
    assert_eq!((hash, sets.len()), (Some(expected), 8));
}

#[test]
fn one_array_is_for_one_input_whatever_its_name() {
    need!(onnxruntime);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-mlp.onnx");
    let text = format!("models: '{}'\ninputs: [{{ name: real, file: images.npy }}]\n{SHORT}", model.display());
    let project = Project::with_spec(&text);
    let images = array("any", ElementType::Float64, &[3, 2, 1, 8, 8], (0..384_u16).map(|v| f64::from(v).to_le_bytes()));
    write_npy(&images, File::create(project.path("images.npy")).unwrap()).unwrap();
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(measured(&project).1, BTreeSet::from([0, 1, 2]));
    let methods = project.page("reports/x");
    assert!(methods.contains("arrays of a file"), "{methods}");
}

#[test]
fn a_model_with_text_is_fed_words_where_nothing_is_said() {
    need!(onnxruntime);
    let project = Project::with_spec(&spec("{ name: words, dimensions: { batch: 2, sequence: 3 } }"));
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(measured(&project).1.len(), 8);
}

/// What is said of inputs that cannot be used, with exit code 2.
fn refusal(inputs: &str, write: impl Fn(&Project)) -> String {
    let project = Project::with_spec(&spec(inputs));
    write(&project);
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    done.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn arrays_that_do_not_fit_are_refused_with_their_names() {
    let says = |inputs: &str, arrays: &[Array], text: &str| {
        let said = refusal(inputs, |project| write_npz(project, "d.npz", arrays));
        for part in ["model `fed`, input `bad`, file ", "d.npz: ", text] {
            assert!(said.contains(part), "`{part}` is not in: {said}");
        }
    };
    let (plain, batch) = ("{ name: bad, file: d.npz }", "{ name: bad, dimensions: { batch: 2 }, file: d.npz }");
    let with = |array: Array| {
        let mut all = items();
        let at = all.iter().position(|known| known.name == array.name).unwrap();
        all[at] = array;
        all
    };
    let x = |shape: &[u64]| {
        let count = shape.iter().product::<u64>();
        array("x", ElementType::Float32, shape, (0..count).map(|v| (v as f32).to_le_bytes()))
    };
    says(
        plain,
        &items()[1..],
        "no array is named like the input `x: float32 [batch, 2]`; the file has `half`, `flag`, `ids`, `text`",
    );
    says(
        plain,
        &with(x(&[6, 3])),
        "array `x` has the shape [6, 3], which is neither that of the input `x: float32 [?, 2]`",
    );
    says(batch, &with(x(&[6, 3])), "`x: float32 [2, 2]` nor several of them below each other");
    says(batch, &with(x(&[12])), "array `x` has the shape [12]");
    says(batch, &with(x(&[1, 1, 6, 2])), "array `x` has the shape [1, 1, 6, 2]");
    says(batch, &with(x(&[4, 2])), "array `x` holds 2 input sets, but `half` holds 3");
    says(batch, &with(x(&[0, 2])), "array `x` is empty");
    says(plain, &with(x(&[0, 2])), "array `x` is empty");
    let bytes = array("x", ElementType::Uint8, &[6, 2], (0..12_u8).map(|v| [v]));
    says(batch, &with(bytes), "array `x` holds uint8, but the input is `x: float32 [batch, 2]`");
    let text = Array::of_texts("ids", &[6, 3], std::iter::repeat_n("1", 18));
    says(batch, &with(text), "array `ids` holds string, but the input is `ids: int64");
    let sequence = "{ name: bad, dimensions: { batch: 2, sequence: 5 }, file: d.npz }";
    says(
        sequence,
        &items(),
        "array `ids` has the shape [6, 3], which is neither that of the input `ids: int64 [2, 5]`",
    );
}

#[test]
fn files_that_are_damaged_are_refused_with_their_place() {
    let plain = "{ name: bad, file: d.npz }";
    let says = |text: &str, write: &dyn Fn(&Project)| {
        let said = refusal(plain, write);
        assert!(said.contains(text), "`{text}` is not in: {said}");
    };
    says("there is no file `d.npz`", &|_| {});
    says("not a .npz file", &|project| project.write("d.npz", "PK"));
    says("d.npz", &|project| project.write("d.npz", ""));
    let entry = |project: &Project, content: &[u8]| {
        let mut archive = zip::ZipWriter::new(File::create(project.path("d.npz")).unwrap());
        archive.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
        archive.finish().unwrap();
    };
    says("array `x` is not in NumPy's format", &|project| entry(project, b"not an array"));
    let header = |shape: &str| {
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let length = (dictionary.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", length.as_slice(), dictionary.as_bytes()].concat()
    };
    says("array `x` has a shape too large for memory", &|project| entry(project, &header("1000000000000, 1000000, 2")));
    // Of the remaining items nothing is in the file: it is looked for first.
    let alone = "{ name: bad, file: d.npz, values: { half: ones, flag: ones, ids: [1, 2], text: [a] }, dimensions: { sequence: 2 } }";
    let said = refusal(alone, |project| entry(project, &header("20000000000, 2")));
    assert!(said.contains("array `x` would be fed in the shape [20000000000, 2]: more than 4 GiB"), "{said}");
    let said = refusal(alone, |project| entry(project, &header("3, 2")));
    assert!(said.contains("array `x` is truncated"), "{said}");
}

#[test]
fn values_that_a_type_cannot_have_are_refused_with_their_input() {
    let says = |values: &str, text: &str| {
        let said =
            refusal(&format!("{{ name: bad, dimensions: {{ batch: 2, sequence: 3 }}, values: {values} }}"), |_| {});
        assert!(said.contains(&format!("model `fed`, input `bad`: {text}")), "`{text}` is not in: {said}");
    };
    says("{ flag: { range: [0, 3] } }", "`values` of `flag`: 2 is out of the range of bool (0 to 1)");
    says("{ ids: { range: [0, 0.5] } }", "`values` of `ids`: 0.5 is not a whole number");
    says("{ half: { range: [0, 100000] } }", "`values` of `half`: 100000 is out of the range of float16");
    says("{ text: { range: [0, 3] } }", "`values` of `text`: a range has numbers");
    says("{ ids: [1, two] }", "`values` of `ids`: `two` is not a valid int64");
    says("{ idz: ones }", "the model has no input `idz`; it has `x`, `half`, `flag`, `ids`, `text`");
}

#[test]
fn what_is_unusual_about_a_file_is_told_and_goes_on() {
    need!(onnxruntime);
    let project = Project::with_spec(
        &spec("{ name: one, dimensions: { batch: 1 }, file: d.npz }").replace("measure: {", "measure: { inputs: 4,"),
    );
    let mut all = items();
    all[0].bytes[20..24].copy_from_slice(&f32::NAN.to_le_bytes());
    write_npz(&project, "d.npz", &all);
    let done = project.run(&["validate", "x.yaml"]).expect_code(0);
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "warning: model `fed`, input `one`: array `x` for the input `x` has NaN or infinity in input set 2",
        "the first 4 of 6 input sets are used; `measure: { inputs: 6 }` uses all",
    ] {
        assert!(said.contains(part), "`{part}` is not in: {said}");
    }
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(measured(&project).1, BTreeSet::from([0, 1, 2, 3]));
}

/// With the mock backend, which reads no model, a file is known by its content all the same.
#[test]
fn other_data_are_another_input_for_a_diff() {
    let text = "backend: mock\nmodels: [m]\ninputs: [{ name: real, file: d.npz }]\nruns: 5\n";
    let project = Project::with_spec(text);
    write_npz(&project, "d.npz", &items());
    project.run(&["x.yaml", "--output", "a"]).expect_code(0);
    std::fs::rename(project.path("d.npz"), project.path("moved.npz")).unwrap();
    project.write("x.yaml", &text.replace("d.npz", "moved.npz"));
    project.run(&["x.yaml", "--output", "b"]).expect_code(0);
    let mut other = items();
    other[0].bytes[0] = 1;
    write_npz(&project, "moved.npz", &other);
    project.run(&["x.yaml", "--output", "c"]).expect_code(0);
    let results = project.read("a/results.json");
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    let file = &results["provenance"]["subject"]["input_files"][0];
    assert_eq!(file["path"], "d.npz");
    assert_eq!(results["provenance"]["frame"]["inputs"][0]["file"], file["sha256"]);
    let same = project.run(&["diff", "a", "b"]).expect_code(0);
    assert!(!same.stdout.contains("incomparable"), "{}", same.stdout);
    let changed = project.run(&["diff", "a", "c"]).expect_code(0);
    let said = changed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("inputs"), "{said}");
}

#[test]
fn a_record_goes_on_with_the_file_that_it_began_with() {
    let text = "backend: mock\nmodels: [m]\ninputs: [{ name: real, file: d.npz }]\nruns: 1\n";
    let project = Project::with_spec(text);
    write_npz(&project, "d.npz", &items());
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record_folder("x");
    let name = record.to_string_lossy().into_owned();
    let exported = project.run(&["export", &name, "--models", "r.tar.zst"]).expect_code(0);
    assert!(!exported.stderr.contains("left out"), "{}", exported.stderr);
    write_npz(&project, "d.npz", &items()[1..]);
    let changed = project.run(&["export", &name, "--models", "s.tar.zst"]).expect_code(2);
    assert!(changed.stderr.contains("d.npz has changed since it was measured"), "{}", changed.stderr);
}
