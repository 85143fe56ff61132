//! A repository like the one that the documents speak of, played by the mock backend.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::root;
use crate::need;
use crate::submit::write_slurm;
use crate::support::{Done, Project, without_settings};

/// Specifications that the documents name, as scripts of latencies.
const EXPERIMENTS: [&str; 3] = ["quickstart", "x", "gpu"];
/// As short as verdicts allow.
const SPEC: &str = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one]\n\
variants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\nruns: 6\n\
measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 100 } }\n";

/// Two reports, between which int8 became slower, among commits that changed nothing, and a branch.
const COMMITS: &str = "git init -q -b main && git config user.name A && git config user.email a@example.org
measured='perfrun experiments/quickstart.yaml experiments/detector.yaml experiments/x.yaml --replace'
$measured && git add . && git commit -q -m measured && git tag v1.2
git commit -q --allow-empty -m 'a note'
sed -i 's/scale: 0.5/scale: 0.6/' experiments/quickstart.yaml experiments/detector.yaml experiments/x.yaml
$measured && git commit -q -a -m slower && git tag v1.3
for note in 2 3 4; do git commit -q --allow-empty -m \"note $note\"; done
git update-ref refs/remotes/origin/main HEAD && git checkout -q -b topic
perfrun experiments/x.yaml && perfrun experiments/x.yaml && git checkout -q -- reports
mkdir -p ../other/reports && cp -r reports/x ../other/reports/ && git -C ../other init -q";

/// Pages that begin in an empty folder: all that their commands read is made by the page.
const FROM_EMPTY: [&str; 7] = [
    "docs/experiment.md",
    "docs/choose.md",
    "docs/load.md",
    "docs/changes.md",
    "docs/frameworks.md",
    "docs/clusters.md",
    "docs/language-models.md",
];

/// A page of these whose models are real ones.
const REAL: &str = "docs/experiment.md";

/// A specification of a page on the mock backend, with a script in place of each network.
fn scripted(text: &str) -> String {
    let is_whole = text.lines().any(|line| line.starts_with("models:")) && !text.contains("backend:");
    let line = |line: &str| match line.strip_prefix("models: { ").and_then(|map| map.split_once(" }")) {
        Some((map, _)) => format!("models: [{}]\n", name_of(map)),
        None => format!("{}\n", line.replace("zoo:", "")),
    };
    if is_whole { text.lines().map(line).collect::<String>() + "backend: mock\n" } else { text.to_owned() }
}

/// `name: detector, zoo: mobilenet_v2, image: 96`: the name, else the network.
fn name_of(map: &str) -> &str {
    let field = |key: &str| map.split(", ").find_map(|field| field.strip_prefix(key));
    field("name: ").or_else(|| field("zoo: ")).unwrap_or(map)
}

/// What a page takes for granted.
const BEFORE: &[(&str, &str)] = &[
    ("docs/profiles.md", "cp regressed.yaml x.yaml"),
    ("help bisect", "cp regressed.yaml experiments/x.yaml"),
    ("help import", "perfrun export x x.tar.zst && mv .perfrun/records/x elsewhere"),
    ("help stat", NUMBERS),
    ("docs/reference/stat.md", NUMBERS),
    ("docs/commands.md", "make -s"),
    ("help convert", "rm model.onnx && perfrun zoo export bert_tiny --output model.onnx"),
    ("docs/reference/results.md", "cp reports/quickstart/results.json ."),
];

/// Files of other tools; in this order benchmarks became slower.
const NUMBERS: &str = "cp stat/pytest-new.json old.json && cp stat/pytest-old.json new.json
sed 's/\"true\"/\".\\/old\"/; s/\"sleep 0.01\"/\".\\/new\"/' stat/hyperfine.json > t.json && seq 20 > times.txt && make -s";

/// One version is slower by an operator, and the last one by more.
fn regressed() -> String {
    let slower =
        |version: &str| format!("{version}: {{ scale: 1.125, operators: {{ LayerNormalization: 55%, MatMul: 40% }} }}");
    let versions = ["1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.0"].map(slower);
    let variant =
        |name: &str| format!("{{ name: {name}, mock: {{ operators: {{ LayerNormalization: 50%, MatMul: 45% }} }} }}");
    format!(
        "backend: {{ mock: {{ median: 500us, noise: 0.5%, run_sd: 0.2%, runtimes: {{ {}, \
         1.31.1: {{ scale: 1.5, operators: {{ LayerNormalization: 65%, MatMul: 30% }} }} }} }} }}\n\
         models: [bert_tiny]\ninputs: {{ batch: 1, sequence: 128 }}\nvariants: [{}]\nruns: 8\n",
        versions.join(", "),
        ["fp32", "fp16", "int8"].map(variant).join(", "),
    )
}

/// A project whose folder `project` is what the pages speak of, next to `bin` and another repository, `other`.
pub(super) struct PageProject(Project);

impl PageProject {
    pub fn new() -> Self {
        let made = PageProject(Project::new());
        let project = &made.0;
        for experiment in EXPERIMENTS {
            project.write(&format!("project/experiments/{experiment}.yaml"), SPEC);
        }
        // As many models as there are shards, or comparisons.
        let eight = SPEC.replace("[one]", "[a, b, c, d, e, f, g, h]");
        project.write("project/experiments/detector.yaml", &SPEC.replace("[one]", "[one, two, three]"));
        project.write("project/experiments/matrix.yaml", &eight.replace("runs: 6", "runs: 2"));
        project.write("project/experiments/calibration.yaml", &eight.replace("runs: 6", "runs: 5"));
        project.write("project/regressed.yaml", &regressed());
        project.write("project/big.txt", &(1..1000).map(|line| format!("foo {line}\n")).collect::<String>());
        project.write("project/Makefile", "all:\n\tchmod +x old new\n");
        for program in ["old", "new"] {
            project.write(&format!("project/{program}"), "#!/bin/sh\nseq 5\n");
        }
        for file in ["experiments/mock.yaml", "docs/examples/latency.tex.j2"] {
            copy(&root().join(file), &project.path("project").join(file));
        }
        let models = root().join("tests/fixtures/models");
        copy(&models.join("one_node.onnx"), &project.path("project/model.onnx"));
        for name in ["one_node.onnx", "iris_classifier.onnx"] {
            copy(&models.join(name), &project.path("project/models").join(name));
        }
        for name in ["pytest-old.json", "pytest-new.json", "hyperfine.json"] {
            copy(&root().join("tests/fixtures/stat").join(name), &project.path("project/stat").join(name));
        }
        write_slurm(project);
        made.expect(COMMITS);
        made
    }

    /// Another one for a page, with the same files and commits: measuring them takes longer than copying.
    pub fn copy_for(&self, page: &str) -> Self {
        let project = PageProject(Project::new());
        if FROM_EMPTY.contains(&page) {
            write_slurm(&project.0);
            // Where records go.
            fs::create_dir_all(project.0.path("project/.perfrun")).unwrap();
            return project;
        }
        let done = Command::new("cp").arg("-a").arg(self.0.path(".")).arg(project.0.root()).status().unwrap();
        assert!(done.success());
        if page == "docs/share.md" || page == "help runtime" {
            project.keep_runtime();
        }
        if page.starts_with("docs/reference/") {
            project.bring_jq();
        }
        for (_, before) in BEFORE.iter().filter(|(of, _)| *of == page) {
            project.expect(before);
        }
        project
    }

    /// Writes a file that the page shows.
    pub fn write(&self, page: &str, path: &str, text: &str) {
        let text = if page == REAL { text.to_owned() } else { scripted(text) };
        self.0.write(&format!("project/{path}"), &text);
    }

    /// Runs a script in the project, with perfrun on the path.
    pub fn shell(&self, script: &str) -> Done {
        let project = &self.0;
        let perfrun = Path::new(env!("CARGO_BIN_EXE_perfrun")).parent().unwrap();
        let path =
            [project.path("bin").display().to_string(), perfrun.display().to_string(), std::env::var("PATH").unwrap()];
        let mut command = Command::new("bash");
        let output = without_settings(&mut command)
            .args(["-c", &format!("set -o pipefail\n{script}")])
            .current_dir(project.path("project"))
            .env("PATH", path.join(":"))
            .env("NO_COLOR", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "A")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@example.org")))
            .env("FAKE", project.root())
            .env("PERFRUN_LOCK", project.lock())
            .env("PERFRUN_WAIT", "0s")
            .envs((1..).map(|number| format!("record{number}")).zip(self.records()))
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        Done::from(output)
    }

    /// Runs a script of which every line does what it should.
    #[track_caller]
    fn expect(&self, script: &str) {
        self.shell(&format!("set -e\n{script}")).expect_code(0);
    }

    /// The records of `x`, the newest first: three of them are of the same specification.
    fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path("project/.perfrun/records/x")).into_iter().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.sort_by(|a, b| b.cmp(a));
        found
    }

    /// The cache that a page makes has the library already, so that nothing is fetched again.
    fn keep_runtime(&self) {
        if let Some([_, library]) = need::two_onnxruntimes() {
            let folder = library.parent().unwrap();
            let kept = self.0.path("project/perfrun-cache/runtimes").join(folder.file_name().unwrap());
            for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                copy(&file, &kept.join(file.file_name().unwrap()));
            }
        }
    }

    /// The program jq, by its package of Python.
    fn bring_jq(&self) {
        const PROGRAM: &str = "#!/usr/bin/env python3
import json, sys
sys.path.insert(0, PACKAGES)
import jq
options = [word for word in sys.argv[1:] if word.startswith('-')]
words = [word for word in sys.argv[1:] if not word.startswith('-')]
text = open(words[1]).read() if len(words) > 1 else sys.stdin.read()
for found in jq.compile(words[0]).input_text(text, slurp='-s' in options):
    print(found if '-r' in options and isinstance(found, str) else json.dumps(found))
";
        if let Some(packages) = need::duckdb() {
            self.0.write("bin/jq", &PROGRAM.replace("PACKAGES", &format!("{:?}", packages.display().to_string())));
            self.expect("chmod +x ../bin/jq");
        }
    }
}

/// Copies a file, and makes the folder for it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}
