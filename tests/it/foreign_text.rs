//! Names from elsewhere on their way to a terminal and to reports: nothing that a terminal obeys, turns or hides gets there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::need;
use crate::support::{Done, Project};

/// What must not be shown, in addition to control characters.
const HIDDEN: [char; 6] = ['\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}', '\u{ad}', '\u{2028}'];

/// Other names for the input `image`, of as many bytes, so that the model stays whole.
const NAMES: [&str; 4] = ["\u{1b}[8mx", "im\ngs", "a\u{202e}b", "a\u{9b}1m"];

#[track_caller]
fn check(what: &str, text: &str) {
    let found = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || HIDDEN.contains(c));
    assert!(found.is_none(), "{what} shows {found:?}:\n{}", text.escape_debug());
}

#[track_caller]
fn check_done(what: &str, done: &Done) {
    check(what, &done.stdout);
    check(what, &done.stderr);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A project with a model whose input has that name, in a file with a name like it.
fn place_with(name: &str) -> (Project, String) {
    let project = Project::new();
    let model = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx")).unwrap();
    let mut renamed = model.clone();
    for at in 0..model.len() - 5 {
        if &model[at..at + 5] == b"image" {
            renamed[at..at + 5].copy_from_slice(name.as_bytes());
        }
    }
    let file = format!("models/m{name}.onnx");
    project.write("models/none", "");
    fs::write(project.path(&file), renamed).unwrap();
    (project, file)
}

#[test]
fn names_of_models_and_tensors_reach_no_terminal_and_no_report_as_they_are() {
    for name in NAMES {
        assert_eq!(name.len(), 5, "the length of `image`");
        let (project, file) = place_with(name);
        check_done("inspect", &project.run(&["inspect", &file]));
        check_done("inspect --json", &project.run(&["inspect", &file, "--json"]).expect_code(0));
        check_done("a file that is not there", &project.run(&["inspect", &format!("{file}x")]).expect_code(2));
        check_done("convert", &project.run(&["convert", &file, "--precision", "int8", "--output", "out.onnx"]));
        check_done("init", &project.run(&["init", &file, "-o", "x.yaml"]).expect_code(0));
        let comments = project.read("x.yaml");
        check("the specification of init", &comments);
        check_done("validate", &project.run(&["validate", "x.yaml"]).expect_code(0));
        check_done("plan", &project.run(&["plan", "x.yaml"]));
        check_done("plan --json", &project.run(&["plan", "x.yaml", "--json"]));
        check_done("an unknown argument", &project.run(&["run", "x.yaml", &format!("--{name}")]).expect_code(2));
        check_done("an unknown selector", &project.run(&["plan", "x.yaml", "--only", &format!("model={name}")]));
        if need::onnxruntime().is_some() {
            let few = "measure={ warmup: { mode: samples, count: 2 }, stop: { mode: samples, count: 5 } }";
            let few = ["--set", "runs=2", "--set", few];
            let short = if name == NAMES[0] { &["--quick"][..] } else { &few };
            let cell = ["x.yaml", "--set", "variants=[fp32]", "--set", "inputs={batch: 1}"];
            check_done("run", &project.run(&[&cell, short].concat()));
        }
        for file in files(&project.path(".perfrun/records")).into_iter().chain(files(&project.path("reports"))) {
            let kind = file.extension().unwrap_or_default().to_string_lossy().into_owned();
            // The rest of a record is perfrun's own.
            if ["md", "html", "svg"].contains(&kind.as_str()) || file.ends_with("results.json") {
                check(&file.display().to_string(), &fs::read_to_string(&file).unwrap());
            }
        }
    }
}

#[test]
fn a_name_with_a_line_break_writes_no_key_into_a_specification() {
    let (project, file) = place_with("a\nb: ");
    project.run(&["init", &file, "-o", "x.yaml"]).expect_code(0);
    let text = project.read("x.yaml");
    assert!(!text.lines().any(|line| line.starts_with("b:")), "{text}");
    project.run(&["validate", "x.yaml"]).expect_code(0);
}

#[test]
fn what_a_specification_quotes_of_itself_is_shown_safely() {
    let texts = [
        "backend: mock\nmodels: [m]\nvariants: [\"a\\e[31m\"]\n",
        "backend: mock\nmodels: [m]\n\"ru\\u202ens\": 3\n",
        "backend: mock\nmodels: [m] # \u{1b}[31m\nvariants: [a b]\nrun: 3\n",
        "backend: mock\nmodels: [m]\ndescription: \"\\e]0;title\\a\"\nvariants: [a, b]\nruns: 5\n",
    ];
    for text in texts {
        let project = Project::with_spec(text);
        check_done("validate", &project.run(&["validate", "x.yaml"]));
        check_done("run", &project.run(&["x.yaml"]));
        for file in files(&project.path("reports")) {
            if file.extension().is_some_and(|kind| kind != "parquet") {
                check(&file.display().to_string(), &fs::read_to_string(&file).unwrap());
            }
        }
    }
}

#[test]
fn a_folder_whose_name_is_not_utf_8_is_named_and_nothing_is_left_in_the_store() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new();
    let folder = project.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x.yaml"), "backend: mock\nmodels: [m]\n").unwrap();
    let done = Done::from(project.command(&["x.yaml"]).current_dir(&folder).output().unwrap()).expect_code(2);
    assert!(done.stderr.contains("is not UTF-8, so no record can hold it"), "{}", done.stderr);
    assert!(done.stderr.contains("rename the file or folder") && !project.path(".perfrun/records").exists());
}
