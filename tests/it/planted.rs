//! What lies in the current folder and must not be run: modules with the names of Python's own, and settings of uv.

use std::process::Command;

use crate::need::need;
use crate::support::Project;

/// Modules that starting Python, pip, or one of perfrun's own calls imports.
const MODULES: [&str; 16] = [
    "argparse",
    "encodings",
    "importlib",
    "io",
    "json",
    "onnxruntime",
    "os",
    "pip",
    "site",
    "sitecustomize",
    "socket",
    "ssl",
    "types",
    "urllib",
    "usercustomize",
    "warnings",
];

/// A folder of models by somebody who wants to run code: each file says that it ran.
fn planted() -> Project {
    let project = Project::new();
    let ran = project.path("RAN");
    for module in MODULES {
        project.write(&format!("{module}.py"), &format!("open({ran:?}, 'a').write('{module} ')\n"));
    }
    project.write("python", &format!("#!/bin/sh\necho python >> '{}'\nexit 1\n", ran.display()));
    let status = Command::new("chmod").arg("+x").arg(project.path("python")).status().unwrap();
    assert!(status.success());
    project.write(".python-version", "./python\n");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    std::fs::copy(model, project.path("model.onnx")).unwrap();
    let url = "models: [{ name: m, url: 'http://127.0.0.1:9/m.onnx', sha256: '";
    project.write("x.yaml", &format!("{url}{}' }}]\n", "0".repeat(64)));
    project
}

/// With an empty cache, so that each has to look for a library, and fails for want of an index.
#[test]
fn nothing_in_the_current_folder_runs_as_python() {
    let project = planted();
    let said = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        // The user's own settings of pip are obeyed.
        let done = command.env("PERFRUN_CACHE", project.path("cache")).env("PIP_NO_INDEX", "1").output().unwrap();
        let ran = std::fs::read_to_string(project.path("RAN"));
        assert!(ran.is_err(), "perfrun {}: {ran:?}", arguments.join(" "));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    said(&["doctor"]);
    said(&["runtime", "list"]);
    let asked = said(&["runtime", "install", "1.31.1"]);
    assert!(asked.contains("python3 -I -m pip") || asked.contains("no pip"), "{asked}");
    said(&["model.onnx"]);
    let fetched = said(&["x.yaml"]);
    assert!(fetched.contains("127.0.0.1:9"), "{fetched}");
}

/// The folder of an adapter is on Python's path, on purpose: after the standard library.
#[test]
fn beside_an_adapter_no_module_takes_the_place_of_the_standard_library() {
    let python = need!(numpy);
    let project = planted();
    project.write("mine.py", "def predict(x):\n    return x + 1\n");
    project.write(
        "x.yaml",
        &format!(
            "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\nruns: 1\n\
             measure: {{ warmup: {{ mode: samples, count: 2 }}, stop: {{ mode: samples, count: 5 }} }}\n\
             runtimes: [{{ adapter: callable, python: {python} }}]\n"
        ),
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    let ran = std::fs::read_to_string(project.path("RAN"));
    assert!(ran.is_err(), "{ran:?}\n{}", done.stderr);
}
