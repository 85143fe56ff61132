//! Committed documents that come from code are current, and every example works.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a committed file with what the code generates; with PERFRUN_WRITE=1 it is written in place.
#[track_caller]
fn check_generated(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("PERFRUN_WRITE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, expected).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == expected, "{path} is stale; run: PERFRUN_WRITE=1 cargo test --test it docs");
}

#[test]
fn schemas_are_current() {
    check_generated("schemas/experiment.schema.json", &perfrun::spec::schema_text());
    check_generated("schemas/worker.schema.json", &perfrun::worker::protocol::schema_text());
}

#[test]
fn the_reference_is_current() {
    check_generated("docs/reference/spec.md", &perfrun::spec::reference_markdown());
    check_generated("docs/reference/template.md", &perfrun::report::template_reference());
    check_generated("docs/reference/spec-full.yaml", &perfrun::spec::full_example());
    check_generated("docs/reference/codes.md", &perfrun::code::reference_markdown());
}

#[test]
fn every_metric_is_in_the_reference() {
    let record = std::fs::read_to_string(root().join("docs/reference/record.md")).unwrap();
    for metric in perfrun::metric::METRICS.iter().chain(perfrun::metric::ENVIRONMENT) {
        assert!(record.contains(&format!("`{}`", metric.name)), "record.md does not have {}", metric.name);
    }
}

#[test]
fn every_experiment_is_valid() {
    let specs: Vec<PathBuf> = WalkDir::new(root().join("experiments"))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    assert!(specs.len() >= 2);
    for spec in specs {
        let loaded = perfrun::spec::load(&spec, &[]);
        assert!(loaded.is_ok_and(|loaded| loaded.warnings.is_empty()), "{} is not valid", spec.display());
    }
}

#[test]
fn every_specification_in_the_documents_is_valid() {
    let mut checked = 0;
    let documents = WalkDir::new(root().join("docs")).into_iter().map(|entry| entry.unwrap().into_path());
    for path in documents.chain([root().join("README.md")]) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for text in fenced(&std::fs::read_to_string(&path).unwrap(), "yaml") {
            if text.starts_with("# spec") {
                let folder = root().join("experiments");
                let loaded = perfrun::spec::parse(&path.display().to_string(), &text, &folder, &[]);
                assert!(loaded.is_ok(), "{}: {:?}\n{text}", path.display(), loaded.err());
                checked += 1;
            }
        }
    }
    assert!(checked > 0, "no document shows a specification");
}

/// The contents of fenced blocks whose info string is exactly `language`.
fn fenced(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match (&mut block, line.trim_end()) {
            (None, fence) if fence == format!("```{language}") => block = Some(String::new()),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some(text), line) => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}
