//! What the system refuses is said with a verb and a remedy; names that YAML cannot hold are said too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::support::{Done, Project};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-cnn.onnx");
const SPEC: &str = "backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 5\n";

/// What is said, in one line.
fn said(done: &Done) -> String {
    done.stderr.split_whitespace().filter(|word| !matches!(*word, "×" | "╰─▶" | "│")).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_cannot_be_written_has_a_verb_and_a_remedy() {
    let project = Project::with_spec(SPEC);
    project.write("file", "in the way");
    project.run(&["x.yaml"]).expect_code(0);
    let missing = "the folder nope does not exist: `mkdir -p nope`";
    let in_the_way = "a file lies where a folder is needed";
    for (arguments, what, remedy) in [
        (&["convert", MODEL, "--precision", "fp16", "-o", "nope/o.onnx"][..], "cannot write nope/o.onnx", missing),
        (&["export", "latest", "nope/x.tar.zst"], "cannot write nope/x.tar.zst", missing),
        (&["report", "latest", "--output", "file/x"], "cannot write file/x", in_the_way),
        (&["init", MODEL, "-o", "file/x.yaml"], "cannot write file", in_the_way),
        (&["history", "x", "--output", "file/x"], "cannot write file/x", in_the_way),
        (&["diff", "reports/x", "reports/x", "--output", "file/x"], "cannot write file/x", in_the_way),
        (&["x.yaml", "--output", "file/x"], "cannot write file/x", in_the_way),
        (&["site", "file/x"], "cannot write file/x", in_the_way),
    ] {
        let done = project.run(arguments).expect_code(2);
        let said = said(&done);
        assert!(said.contains(what) && said.contains(remedy), "{arguments:?}: {}", done.stderr);
        assert!(!said.contains(".perfrun-scratch") && !said.contains(".tmp"), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn a_cache_and_a_temporary_folder_that_cannot_be_written_name_their_variables() {
    let project = Project::with_spec(SPEC);
    project.write("file", "in the way");
    let with = |variable: &str, value: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env(variable, value);
        said(&Done::from(command.output().unwrap()).expect_code(2))
    };
    let convert = ["convert", MODEL, "--precision", "fp16", "-o", "o.onnx"];
    let cache = with("PERFRUN_CACHE", "file/cache", &convert);
    assert!(cache.contains("cannot use perfrun's cache at"), "{cache}");
    assert!(cache.contains("set PERFRUN_CACHE to a folder that can be written"), "{cache}");
    let words =
        ["convert", MODEL, "--precision", "int8", "--quantization", "static", "--inputs", "batch=1", "-o", "o.onnx"];
    let temporary = with("TMPDIR", "/no/such/dir", &words);
    assert!(temporary.contains("cannot write /no/such/dir") && temporary.contains("set TMPDIR"), "{temporary}");
    assert!(!temporary.contains(".perfrun-scratch"), "{temporary}");
}

#[test]
fn names_that_are_not_utf_8_are_left_out_and_said() {
    let project = Project::new();
    let odd = project.root().join("models").join(OsStr::from_bytes(b"latin\xe9.onnx"));
    project.write("models/plain.onnx", "");
    std::fs::copy(MODEL, project.path("models/plain.onnx")).unwrap();
    std::fs::copy(MODEL, &odd).unwrap();
    let done = project.run(&["init", "models", "-o", "x.yaml"]).expect_code(0);
    assert!(said(&done).contains("is not UTF-8, so no specification can hold it"), "{}", done.stderr);
    let text = project.read("x.yaml");
    assert!(text.contains("plain.onnx") && !text.contains("latin"), "{text}");
    project.run(&["validate", "x.yaml"]).expect_code(0);
    let mut alone = project.command(&["init", "-o", "y.yaml"]);
    let done = Done::from(alone.arg(&odd).output().unwrap()).expect_code(2);
    assert!(said(&done).contains("rename it"), "{}", done.stderr);
    // A first look needs no name.
    let mut look = project.command(&["plan"]);
    let done = Done::from(look.arg(&odd).output().unwrap());
    assert!(!said(&done).contains("there is no file"), "{}", done.stderr);
    let mut look = project.command(&["run", "--dry-run"]);
    let done = Done::from(look.arg(&odd).output().unwrap()).expect_code(0);
    assert!(done.stdout.contains("latin"), "{}", done.stdout);
}

#[test]
fn a_specification_may_have_any_name() {
    let project = Project::new();
    let file = project.root().join(OsStr::from_bytes(b"latin\xe9.yaml"));
    std::fs::write(&file, format!("name: x\n{SPEC}")).unwrap();
    let mut run = project.command(&["run"]);
    Done::from(run.arg(&file).output().unwrap()).expect_code(0);
    assert!(project.read("reports/x/report.md").contains("# x"));
}
