//! What outputs are compared with: the stored model in float32 on the CPU provider, a cell of the matrix or not.

use judge::results::{Cell, Results, read};

use crate::accuracy::{scores_and_labels, write_npz};
use crate::designs::begin_in;
use crate::support::{Done, Project};

const STORED: &str = "the stored model on the CPU";

/// Two variants of which the baseline computes in less, as TF32 does.
const INEXACT: &str = "backend: mock\nmodels: [m]\ninputs: { batch: 8 }\ncompare: { aa: off }\n\
                       variants: [{ name: tf32, mock: { differ: 50%, scale: 0.5 } }, exact]\n";

fn ran(spec: &str) -> (Project, Done) {
    let project = Project::with_spec(spec);
    let done = project.run(&["-v", "x.yaml"]).expect_code(0);
    (project, done)
}

fn results(project: &Project) -> Results {
    read(&project.path("reports/x/results.json")).unwrap()
}

fn path(cell: &Cell) -> String {
    cell.names.iter().map(|(_, name)| name.as_str()).filter(|name| *name != "-").collect::<Vec<_>>().join("/")
}

/// For each cell that was compared whether it passes, and what it was compared with if that is said.
fn compared(results: &Results) -> Vec<(String, bool, Option<&str>)> {
    let cells = results.cells.iter();
    cells
        .filter_map(|cell| Some((path(cell), cell.fidelity.as_ref()?.passes(), cell.outputs_reference.as_deref())))
        .collect()
}

/// How many stored models were run for their outputs.
fn runs_apart(done: &Done) -> usize {
    let started = done.stderr.lines().filter(|line| line.contains("worker ") && line.contains(" started: "));
    started.filter(|line| line.ends_with("-reference")).count()
}

#[test]
fn without_an_exact_cell_the_stored_model_is_run_for_its_outputs() {
    let (project, done) = ran(&format!("{INEXACT}devices: [cuda]\n"));
    let results = results(&project);
    let expected = [("m/b8/tf32/cuda:0", false), ("m/b8/exact/cuda:0", true)];
    let expected = expected.map(|(path, passes)| (path.to_owned(), passes, Some(STORED)));
    assert_eq!(compared(&results), expected);
    assert_eq!((results.cells.len(), runs_apart(&done)), (2, 1), "no cell, and one process for both");
    let cosine = results.cells[1].fidelity.as_ref().unwrap().cosine.unwrap();
    assert!(cosine > 1.0 - 1e-9, "{cosine}");
    let sentence = format!("Outputs are compared with those of {STORED}.");
    let (markdown, page) = (project.read("reports/x/report.md"), project.page("reports/x"));
    for text in [&done.stdout, &markdown, &page] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&sentence), "{text}");
    }
    let answer = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.contains(&format!("tf32 (differs from {STORED}: ")), "{answer}");
    let outputs = project.record_folder("x").join("outputs");
    assert!(!outputs.exists(), "they can be made again");
}

#[test]
fn an_exact_cell_of_the_matrix_is_the_reference_of_all() {
    let spec = format!("{INEXACT}devices: [cuda, cpu]\n");
    let (project, done) = ran(&spec);
    let results = results(&project);
    let reference = Some("m/b8/exact/cpu");
    let expected = [("m/b8/tf32/cuda:0", false), ("m/b8/tf32/cpu", false), ("m/b8/exact/cuda:0", true)];
    let mut expected = expected.map(|(path, passes)| (path.to_owned(), passes, reference));
    expected.sort();
    let mut found = compared(&results);
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(runs_apart(&done), 0);
    assert!(done.stdout.contains("Outputs are compared with those of exact on cpu."), "{}", done.stdout);
}

/// As it was: the baseline's variant on the same device, of which nothing is said.
#[test]
fn a_baseline_in_float32_on_the_cpu_is_the_reference_and_nothing_more_is_run() {
    let variants = "variants: [base, { name: near, mock: { differ: 0.001% } }, { name: far, mock: { differ: 50% } }]\n";
    let spec = format!("backend: mock\nmodels: [m, n]\ninputs: {{ batch: [1, 8] }}\n{variants}");
    let (project, done) = ran(&spec);
    let found = results(&project);
    assert!(found.cells.iter().all(|cell| cell.outputs_reference.is_none()) && found.differing.is_empty());
    let record = project.record("x");
    let references = record.manifest.fidelity();
    assert!(references.iter().all(|known| known.reference.is_some() && known.no_reference.is_none()));
    assert_eq!((references.len(), runs_apart(&done)), (8, 0));
    assert!(!done.stdout.contains("compared with"), "{}", done.stdout);
    let text = std::fs::read_to_string(project.record_folder("x").join("passes/outputs.json")).unwrap();
    assert!(!text.contains("no_reference"), "{text}");
}

#[test]
fn a_stored_model_that_does_not_run_on_the_cpu_leaves_the_baseline() {
    let spec = "backend: { mock: { fits: 1 } }\nmodels: [m]\ninputs: { batch: 8 }\ndevices: [cuda]\n\
                variants: [{ name: base, mock: { fits: 8 } }, { name: other, mock: { fits: 8, differ: 50% } }]\n";
    let (project, _) = ran(spec);
    let results = results(&project);
    assert_eq!(compared(&results), [("m/b8/other/cuda:0".to_owned(), false, None)]);
    let sentence = "m has no outputs of the stored model on the CPU (scripted: no memory for a batch of 8): \
                    its outputs are compared with the baseline's on the same device.";
    assert_eq!(results.differing, [sentence]);
}

#[test]
fn a_stored_model_is_run_over_data_too() {
    let project = Project::with_spec(&format!(
        "{INEXACT}devices: [cuda]\ndataset: {{ file: d.npz, labels: labels, metrics: [top1] }}\n"
    ));
    let (scores, labels) = scores_and_labels();
    write_npz(&project, "d.npz", &[scores, labels]);
    let done = project.run(&["x.yaml"]).expect_code(0);
    let manifest = project.record("x").manifest;
    assert_eq!(manifest.accuracy().len(), 2, "no variant of its own");
    let changes: Vec<f64> =
        manifest.accuracy().iter().map(|known| known.scores[0].change.unwrap().difference).collect();
    assert!(changes[0] < 0.0 && changes[1] == 0.0, "{changes:?}");
    let fidelity = manifest.fidelity();
    assert!(fidelity.iter().all(|known| known.reference.is_none() && known.fidelity.items_of_data == Some(200)));
    assert_eq!(fidelity.iter().map(|known| known.fidelity.passes()).collect::<Vec<_>>(), [false, true]);
    assert!(done.stderr.contains("tf32") && !done.stderr.contains("reference "), "{}", done.stderr);
}

/// What another session found is kept, and what an interrupted one did not find is.
#[test]
fn a_record_that_goes_on_has_the_same_reference() {
    let spec = format!("{INEXACT}devices: [cuda]\n");
    let project = Project::with_spec(&spec);
    let begun = begin_in(&project);
    let resume = ["-v", "run", "--resume", begun.to_str().unwrap()];
    assert_eq!(runs_apart(&project.run(&resume).expect_code(0)), 1);
    let found = std::fs::read_to_string(begun.join("passes/outputs.json")).unwrap();

    let other = Project::with_spec(&spec);
    let begun = begin_in(&other);
    std::fs::create_dir_all(begun.join("passes")).unwrap();
    std::fs::write(begun.join("passes/outputs.json"), &found).unwrap();
    let resume = ["-v", "run", "--resume", begun.to_str().unwrap()];
    assert_eq!(runs_apart(&other.run(&resume).expect_code(0)), 0);
    assert_eq!(std::fs::read_to_string(begun.join("passes/outputs.json")).unwrap(), found);
}

/// A stored model that fails is not run with larger batches, and a cell that has no other reference says so.
#[test]
fn a_stored_model_that_failed_is_not_tried_with_more() {
    let spec = "backend: { mock: { fits: 1 } }\nmodels: [m]\ninputs: { batch: [16, 8, 1] }\ndevices: [cuda]\n\
                variants: [{ name: base, mock: { fits: 16 } }]\n";
    let (project, done) = ran(spec);
    assert_eq!(runs_apart(&done), 2, "of batches 1 and 8");
    let manifest = project.record("x").manifest;
    assert_eq!(manifest.fidelity().len(), 1);
    let problems: Vec<&str> = {
        let found = manifest.findings.outputs.iter().flat_map(|found| &found.not_compared);
        found.map(|known| known.problem.as_str()).collect()
    };
    assert_eq!(problems, ["scripted: no memory for a batch of 8"; 2]);
    let sentences = [
        format!("Outputs of m are compared with those of {STORED}."),
        format!("m has no outputs of {STORED} ({}): its outputs are compared with nothing.", problems[0]),
    ];
    assert_eq!(results(&project).differing, sentences);
}

#[test]
fn inputs_that_differ_in_load_share_a_stored_model() {
    let load = "measure: { load: { clients: [1, 2] } }\nruns: 2\n";
    let (project, done) = ran(&format!("{INEXACT}devices: [cuda]\n{load}"));
    let results = results(&project);
    assert_eq!(compared(&results).len(), 4);
    assert!(results.cells.iter().all(|cell| cell.outputs_reference.as_deref() == Some(STORED)));
    assert_eq!(runs_apart(&done), 1);
}

#[test]
fn neither_a_quick_look_nor_a_search_runs_a_stored_model() {
    let project = Project::with_spec(&format!("{INEXACT}devices: [cuda]\n"));
    let done = project.run(&["-v", "--quick", "x.yaml"]).expect_code(0);
    assert_eq!(runs_apart(&done), 0);
    let (project, done) = ran(&format!("{}devices: [cuda]\n", INEXACT.replace("batch: 8", "batch: best")));
    assert_eq!(runs_apart(&done), 0);
    assert!(results(&project).cells.iter().all(|cell| cell.outputs_reference.is_none()));
}

/// Every exact cell is tried before the baseline, and a reference on another device is named. The order of devices does not
/// matter.
#[test]
fn the_next_exact_cell_stands_in_for_one_that_failed() {
    for devices in ["cuda, cpu", "cpu, cuda"] {
        let spec = format!(
            "backend: mock\nmodels: [m]\ninputs: {{ batch: 8 }}\ndevices: [{devices}]\ncompare: {{ aa: off }}\n\
             variants: [{{ name: tf32, mock: {{ differ: 50% }} }}, {{ name: bad, mock: {{ fits: 1 }} }}, exact]\n"
        );
        let project = Project::with_spec(&spec);
        let done = project.run(&["-v", "x.yaml"]);
        let results = results(&project);
        assert!(compared(&results).iter().all(|(_, _, of)| *of == Some("m/b8/exact/cpu")), "{results:?}");
        assert_eq!((compared(&results).len(), runs_apart(&done)), (3, 0), "{}", done.stderr);
        assert_eq!(results.differing, ["Outputs are compared with those of exact on cpu."]);
    }
}

#[test]
fn a_baseline_on_another_device_is_named() {
    let spec = "backend: mock\nmodels: [m]\ninputs: { batch: 8 }\ndevices: [cpu, cuda]\ncompare: { aa: off }\n\
                variants: [base, { name: far, mock: { differ: 50% } }]\n";
    let found = results(&ran(spec).0);
    let mut names: Vec<_> = compared(&found).into_iter().map(|(path, _, of)| (path, of)).collect();
    names.sort();
    let expected = [("m/b8/base/cuda:0", true), ("m/b8/far/cpu", false), ("m/b8/far/cuda:0", true)];
    let expected = expected.map(|(path, is_named)| (path.to_owned(), is_named.then_some("m/b8/base/cpu")));
    assert_eq!(names, expected);
}

#[test]
fn a_reference_with_another_runtime_is_named_with_it() {
    let spec = "backend: mock\nmodels: [m]\ninputs: { batch: 8 }\nruntimes: [old, new]\nvariants: [base]\n";
    let found = results(&ran(spec).0);
    assert_eq!(compared(&found), [("m/b8/base/cpu/new".to_owned(), true, Some("m/b8/base/cpu/old"))]);
    assert_eq!(found.differing, ["Outputs are compared with those of base on cpu with old."]);
}

/// What failed for the outputs is not run again over data.
#[test]
fn a_stored_model_that_failed_is_not_run_over_data() {
    let project = Project::with_spec(
        "backend: { mock: { fits: 1 } }\nmodels: [m]\ninputs: { batch: 8 }\ndevices: [cuda]\n\
         variants: [{ name: base, mock: { fits: 8 } }, { name: other, mock: { fits: 8, differ: 50% } }]\n\
         dataset: { file: d.npz, labels: labels, metrics: [top1] }\n",
    );
    let (scores, labels) = scores_and_labels();
    write_npz(&project, "d.npz", &[scores, labels]);
    let done = project.run(&["-v", "x.yaml"]).expect_code(0);
    assert_eq!(runs_apart(&done), 1);
    let manifest = project.record("x").manifest;
    let accuracy = manifest.accuracy();
    assert!(accuracy[0].scores[0].change.is_none() && accuracy[0].problem.is_none(), "{accuracy:?}");
    assert!(accuracy[1].scores[0].change.is_some(), "against the baseline");
    let fidelity = manifest.fidelity();
    assert_eq!((fidelity.len(), fidelity[0].reference), (1, Some(0)));
    assert!(fidelity[0].no_reference.is_some() && fidelity[0].fidelity.items_of_data == Some(200));
}
