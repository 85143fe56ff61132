//! Committed documents that come from code are current, and every example works.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a committed file with what the code generates; with PERFRUN_WRITE=1 it is written in place.
#[track_caller]
pub(crate) fn check_generated(path: &str, expected: &str) {
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
    check_generated("schemas/experiment.schema.json", &spec::schema_text());
    check_generated("schemas/results.schema.json", &judge::results::schema_text());
    check_generated("schemas/diff.schema.json", &judge::diff::schema_text());
    check_generated("schemas/history.schema.json", &judge::history::schema_text());
    check_generated("schemas/reproduction.schema.json", &report::reproduction::schema_text());
    check_generated("schemas/worker.schema.json", &worker::protocol::schema_text());
}

#[test]
fn the_reference_is_current() {
    check_generated("docs/reference/spec.md", &spec::reference_markdown());
    check_generated("docs/reference/template.md", &report::template_reference());
    check_generated("docs/reference/spec-full.yaml", &spec::full_example());
    check_generated("docs/reference/results.md", &judge::results::reference_markdown());
    check_generated("docs/reference/codes.md", &base::code::reference_markdown());
    check_generated("docs/reference/worker-protocol.md", &worker::protocol::reference_markdown());
    check_generated("docs/reference/exit-codes.md", &perfrun::ui::error::exit_codes_markdown());
}

#[test]
fn every_metric_is_in_the_reference() {
    let record = std::fs::read_to_string(root().join("docs/reference/record.md")).unwrap();
    for metric in base::metric::METRICS.iter().chain(base::metric::ENVIRONMENT) {
        assert!(record.contains(&format!("`{}`", metric.name)), "record.md does not have {}", metric.name);
    }
}

/// What the code decides by stands in the documents too, in the same numbers and words.
#[test]
fn documents_say_when_outputs_agree() {
    let share = 100.0 * experiment::FidelityLimits::LEAST_TOP1;
    let precision = std::fs::read_to_string(root().join("docs/precisions.md")).unwrap();
    let accuracy = std::fs::read_to_string(root().join("docs/data.md")).unwrap();
    assert!(precision.contains(&format!("at least {share} % of the items keep their top class")));
    assert!(accuracy.contains(&format!("fewer than {share} % keep their top class")));
    let reference = std::fs::read_to_string(root().join("docs/reference/spec.md")).unwrap();
    assert!(reference.contains(&format!("Default: `{share}%` for items of a dataset")));
    for text in [precision, accuracy] {
        assert!(text.contains(&format!("close on random data, {}", quality::fidelity::ACCURACY_NOT_MEASURED)));
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
        let loaded = spec::load(&spec, &[]);
        assert!(loaded.is_ok_and(|loaded| loaded.warnings.is_empty()), "{} is not valid", spec.display());
    }
}

/// What another reader of YAML 1.2 makes of a text: scalars have the types that they are spelt as.
fn as_spelt(text: &str) -> serde_json::Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What the published schema says of a text that perfrun has not read.
fn violations(text: &str) -> Vec<String> {
    let schema = serde_json::from_str(&spec::schema_text()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value = as_spelt(text);
    validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn other_validators_accept_every_specification() {
    let experiments = WalkDir::new(root().join("experiments")).into_iter().map(|entry| entry.unwrap().into_path());
    for path in experiments.chain([root().join("docs/reference/spec-full.yaml")]) {
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let found = violations(&std::fs::read_to_string(&path).unwrap());
            assert_eq!(found, Vec::<String>::new(), "{}", path.display());
        }
    }
}

#[test]
fn scalars_stand_for_texts_in_other_validators_as_in_perfrun() {
    let text = "name: 1.30\ndescription: 2026\nbackend: mock\nmodels: [1, { name: true }]\nruntimes: [{ name: 7, version: 1.31.1 }, any]\n\
                variants: [3, { name: 4, base: 3, session: { x: 1, y: true }, env: { A: 0.5 }, wrap: [nice, -n, 5] }]\n\
                compare: { baseline: { variant: 3 } }\ngoals: [{ name: 6, metric: latency, max: 20ms, where: { model: true } }]\n\
                tables: [{ name: 5, rows: [model, variant, runtime] }]\n";
    assert!(as_spelt(text)["name"].is_number() && as_spelt(text)["models"][1]["name"].is_boolean());
    let loaded = spec::parse("x.yaml", text, root(), &[]);
    assert!(loaded.is_ok(), "{:?}", loaded.err());
    assert_eq!(violations(text), Vec::<String>::new());
    let paths = "models: [{ path: 1, url: 2, files: { int8: 3 }, dataset: { file: 4, labels: 5, output: 6, score: [7] } }]\n\
                 variants: [{ precision: int8, convert: { keep: [8] }, provider: { cpu: { x: true } } }]\n\
                 dataset: { file: 9, inputs: { x: 10 } }\nruntimes: [{ name: 11, path: 12 }, { version: 1.30 }]\n";
    assert_eq!(violations(paths), Vec::<String>::new());
    for wrong in
        ["measure: { timeout: 10 }", "runs: ten", "compare: { aa: 1 }", "name: [a]", "variants: [{ precision: 8 }]"]
    {
        assert_ne!(violations(&format!("models: a\n{wrong}\n")), Vec::<String>::new(), "{wrong}");
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
                let loaded = spec::parse(&path.display().to_string(), &text, &folder, &[]);
                assert!(loaded.is_ok(), "{}: {:?}\n{text}", path.display(), loaded.err());
                checked += 1;
            }
        }
    }
    assert!(checked > 0, "no document shows a specification");
}

/// The pages of the book: those that people wrote, without method and reference.
fn book() -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("SUMMARY.md");
    let read = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), read(&path));
    files.filter(is_page).map(read).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_book_is_short_and_its_contents_have_every_page() {
    let book = book();
    let words: usize = book.iter().map(|(_, text)| text.split_whitespace().count()).sum();
    assert!(book.len() <= 22 && words <= 24_000, "{} pages, {words} words", book.len());
    let contents = read(&root().join("docs/SUMMARY.md"));
    let reference = std::fs::read_dir(root().join("docs/reference")).unwrap().map(|entry| entry.unwrap().file_name());
    let reference = reference.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".md"));
    let pages = book.into_iter().map(|(name, _)| name).chain(reference.map(|name| format!("reference/{name}")));
    for page in pages {
        assert!(contents.contains(&format!("]({page})")), "docs/SUMMARY.md lacks {page}");
    }
}

/// Whether a text has a word that does not go on: `--rate`, and not `--rates`.
fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(word)
        .any(|(at, _)| !text[at + word.len()..].starts_with(goes_on) && !text[..at].ends_with(goes_on))
}

#[test]
fn every_command_option_and_key_is_named_on_a_page() {
    let book: Vec<String> = book().into_iter().map(|(_, text)| text).chain([read(&root().join("README.md"))]).collect();
    let is_named = |word: &str| book.iter().any(|text| has_word(text, word));
    let mut missing = Vec::new();
    for command in perfrun::ui::cli::shown() {
        let call = format!("perfrun {}", command.name);
        missing.extend((!is_named(&call) && !is_named(&format!("`{}`", command.name))).then_some(call));
        let options = command.options.iter().filter(|option| !is_named(option));
        missing.extend(options.map(|option| format!("{option} of {}", command.name)));
    }
    // What scripts a test, and names of tensors, stand in the reference alone.
    let is_for_few = |key: &String| [".mock.", ".decoder."].iter().any(|part| key.contains(part));
    let keys = spec::explain::topics().keys.into_iter().filter(|key| !is_for_few(key));
    missing.extend(keys.filter(|key| !is_named(key.rsplit('.').next().unwrap_or(key))));
    assert!(missing.is_empty(), "no page of docs names {missing:?}");
}

/// Options that were renamed and commands that went away stand in no document.
#[test]
fn every_command_in_the_documents_is_understood() {
    let mut checked = 0;
    let documents = WalkDir::new(root().join("docs")).into_iter().map(|entry| entry.unwrap().into_path());
    for path in documents.chain([root().join("README.md"), root().join("CONTRIBUTING.md")]) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        for text in fenced(&std::fs::read_to_string(&path).unwrap(), "sh") {
            for line in text.replace("\\\n", " ").lines() {
                for command in commands(line) {
                    let words = command.iter().map(std::ffi::OsString::from);
                    let parsed = perfrun::ui::cli::parse(words);
                    assert!(parsed.is_ok(), "{}: {line}\n{:?}", path.display(), parsed.err());
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 70, "{checked}");
}

/// The calls of perfrun in a line of shell: up to where another command begins, without what is redirected.
fn commands(line: &str) -> Vec<Vec<String>> {
    let words: Vec<String> = shlex::Shlex::new(line.trim_start_matches("$ ")).collect();
    let parts = words.split(|word| matches!(word.as_str(), "|" | "&&" | "||" | ";" | "&"));
    let is_plain = |part: &&[String]| !part.iter().any(|word| word.starts_with("<(") || word == "...");
    let call = |part: &[String]| {
        let start = part.iter().position(|word| !word.contains('='))?;
        (part[start] == "perfrun").then(|| {
            let own_words = part[start..].iter().take_while(|word| !word.starts_with('>') && !word.starts_with("2>"));
            own_words.cloned().collect::<Vec<String>>()
        })
    };
    parts.filter(is_plain).filter_map(call).collect()
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
