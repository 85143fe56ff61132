//! Every command that README and the guides show, as it stands there, in a repository like the one they speak of.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Workplace, without_settings};

/// Commands that other checks run, or that no test can, with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("perfrun ab 'grep foo big.txt' 'awk /foo/ big.txt'", "ab.rs, with programs that are everywhere"),
    ("perfrun ab --setup 'make' --prepare 'sync' --name old './old' --name new './new'", "as the line before it"),
    ("perfrun ab --prove", "ab.rs"),
    ("cargo test", "this is it"),
    ("cargo install --locked --path .", "builds perfrun again"),
    ("bash packaging/wheel.sh", "builds perfrun again"),
    ("pip install dist/perfrun-*.whl", "packaging/try-wheel.sh"),
    ("pip install mlflow", "the next lines"),
    ("perfrun export latest --to mlflow", "adapters/python/tests/test_track.py"),
    ("perfrun export latest --to mlflow --folder tracked", "as the line before it"),
    ("perfrun export latest --to wandb", "as the line before it"),
    ("git bisect start HEAD v1.2 && git bisect run perfrun diff v1.2 --remeasure --bisect", "diff.rs"),
    ("perfrun runtime install 1.30.0", "fetches another version"),
    ("PERFRUN_CACHE=$PWD/perfrun-cache perfrun runtime install", "fetches a second time"),
    ("tar cf perfrun-cache.tar perfrun-cache", "of what the line before it fetches"),
    ("tar xf perfrun-cache.tar", "of what the line before it packs"),
    ("perfrun runtime path 1.30.0", "of what a line before it fetches"),
    ("perfrun experiments/spinning.yaml --resume", "records.rs interrupts a run"),
    ("perfrun run --resume .perfrun/records/spinning/20261120T101500Z-1a2b3c4d", "records.rs interrupts a run"),
];

/// What stands for something else in documents.
const PLACEHOLDERS: &[(&str, &str)] = &[
    ("perfrun merge RECORD RECORD RECORD", "perfrun merge $(ls -d .perfrun/records/detector/* | tail -3)"),
    (
        "laptop=RECORD server=RECORD",
        "laptop=$(ls -d .perfrun/records/x/* | tail -2 | head -1) server=$(ls -d .perfrun/records/x/* | tail -1)",
    ),
    ("/opt/onnxruntime/lib/libonnxruntime.so.1.31.1", "$(perfrun runtime path)"),
    ("--runtime /opt/onnxruntime/lib", "--runtime $(dirname $(perfrun runtime path))"),
    ("cargo run -- ", "perfrun "),
    ("perfrun import", "mkdir -p colleague && cd colleague && git init -q . && perfrun import"),
    (" detector.tar.zst", " /$HERE/detector.tar.zst"),
    ("perfrun clean", "perfrun clean --yes"),
    // What these measure takes minutes on ONNX Runtime; .ci/run measures the like.
    ("perfrun model.onnx", "perfrun model.onnx --dry-run"),
    ("perfrun experiments/models.yaml", "perfrun experiments/models.yaml --dry-run"),
    ("--output /tmp/again", "--output again"),
    ("../other/reports/x", "other/reports/x"),
];

/// Exit codes other than 0 that a command is to end with here.
const ENDS_WITH: &[(&str, i32)] = &[("perfrun experiments/mock.yaml", 3)];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines of shell of a document, without comments.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_shell = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_shell = language == "sh",
            None if is_shell => found.push(line.split("  #").next().unwrap_or(line).trim().to_owned()),
            None => {}
        }
    }
    found.retain(|line| !line.is_empty());
    found
}

/// A repository with the specifications and reports that the documents name, played by the mock backend, and two tags.
fn repository() -> Workplace {
    let place = Workplace::new();
    for experiment in ["quickstart", "spinning", "detector", "x"] {
        let spec = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one, two, three]\n\
                    variants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\nruns: 6\n\
                    measure: { stop: { mode: samples, count: 100 } }\n";
        place.write(&format!("experiments/{experiment}.yaml"), spec);
    }
    let model = root().join("experiments/models/digits-mlp.onnx");
    fs::create_dir_all(place.path("models")).unwrap();
    fs::copy(&model, place.path("model.onnx")).unwrap();
    for name in ["digits-mlp.onnx", "digits-cnn.onnx"] {
        fs::copy(root().join("experiments/models").join(name), place.path("models").join(name)).unwrap();
    }
    fs::copy(root().join("experiments/mock.yaml"), place.path("experiments/mock.yaml")).unwrap();
    shell(&place, "git init -q -b main && git config user.name A && git config user.email a@example.org", 0);
    let measured = "perfrun experiments/quickstart.yaml experiments/detector.yaml experiments/x.yaml";
    let commit = "git add experiments reports model.onnx models && git commit -q -m measured";
    shell(&place, &format!("{measured} && {commit} && git tag v1.2"), 0);
    shell(&place, "sed -i 's/scale: 0.5/scale: 0.6/' experiments/*.yaml", 0);
    shell(&place, &format!("{measured} && {commit} && git tag v1.3"), 0);
    // Two records of one specification, to be merged.
    shell(&place, "perfrun experiments/x.yaml && git checkout -q -- reports", 0);
    shell(&place, "git update-ref refs/remotes/origin/main HEAD && git checkout -q -b topic", 0);
    shell(&place, "mkdir -p other/reports && cp -r reports/x other/reports/", 0);
    place
}

/// Another one with the same files and commits: measuring them takes longer than copying.
fn copy(made: &Workplace) -> Workplace {
    let place = Workplace::new();
    let done = Command::new("cp").arg("-a").arg(made.path(".")).arg(place.root()).status().unwrap();
    assert!(done.success());
    place
}

/// Runs a line where `perfrun` is on the path.
fn shell(place: &Workplace, line: &str, code: i32) {
    let executable = Path::new(env!("CARGO_BIN_EXE_perfrun"));
    let path = format!("{}:{}", executable.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    let output = without_settings(&mut command)
        .args(["-c", line])
        .current_dir(place.root())
        .env("PATH", path)
        .env("HERE", place.root())
        .env("PERFRUN_LOCK", place.lock())
        .env("PERFRUN_WAIT", "0s")
        .output()
        .unwrap();
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).join("\n");
    assert_eq!(output.status.code(), Some(code), "{line}\n{said}");
}

#[test]
fn every_command_of_the_documents_runs() {
    let guides = ["ci", "compare", "diff", "offline", "reports", "sharing", "write-an-experiment"];
    let documents = guides.map(|name| format!("docs/guides/{name}.md"));
    let mut known: Vec<&str> = Vec::new();
    let made = repository();
    for document in std::iter::once("README.md".to_owned()).chain(documents) {
        let place = copy(&made);
        for command in commands(&fs::read_to_string(root().join(&document)).unwrap()) {
            if let Some((elsewhere, _)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == command) {
                known.push(elsewhere);
                continue;
            }
            let code = ENDS_WITH.iter().find(|(ends, _)| command.ends_with(&ends["perfrun ".len()..]));
            let line = PLACEHOLDERS.iter().fold(command.clone(), |line, (what, by)| line.replace(what, by));
            println!("{document}: {line}");
            shell(&place, &line, code.map_or(0, |(_, code)| *code));
        }
    }
    for (elsewhere, _) in ELSEWHERE {
        assert!(known.contains(elsewhere), "no document shows `{elsewhere}` any more");
    }
}
