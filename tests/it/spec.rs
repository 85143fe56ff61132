//! Specs from outside: the messages of invalid ones, the limits of reading, and what is generated.

use std::fs::File;
use std::path::{Path, PathBuf};

use miette::{GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;
use spec::{self, SpecError};

use crate::support::check_snapshot;

/// The specs that are wrong, relative to the package, so that messages name no folder of this machine.
const INVALID: &str = "tests/fixtures/specs/invalid";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn render(error: &SpecError) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    let mut text = String::new();
    handler.render_report(&mut text, error).expect("a String takes every text");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn check(snapshot: &str, name: &str, text: &str, overrides: &[&str]) {
    let overrides: Vec<String> = overrides.iter().map(|argument| (*argument).to_owned()).collect();
    let rendered = match spec::parse(name, text, Path::new(INVALID), &overrides) {
        Ok(_) => panic!("{snapshot} is valid"),
        Err(error) => render(&error),
    };
    check_snapshot(snapshot, &rendered);
}

#[test]
fn invalid_specs_are_told_all_that_is_wrong() {
    let entries = std::fs::read_dir(INVALID).expect("the fixtures are in the package");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    paths.sort();
    assert!(paths.len() >= 30, "fixtures are missing");
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("fixtures are text");
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        check(&format!("spec_{}", name.trim_end_matches(".yaml")), &name, &text, &[]);
    }
}

#[test]
fn overrides_are_told_what_is_wrong() {
    let text = "backend: mock\nmodels: [mlp]\nvariants:\n  - fp32\n  - { name: tuned, threads: 2 }\n";
    let overrides = [
        "rnus=3",
        "runs=-1",
        "seed",
        "variants.tunde.threads=1",
        "variants.tuned.thread=1",
        "variants.fp32.threads=none",
        "measure.timeout=10",
        "measure.warmup={ mode: adaptive, count: 3 }",
        "devices=[cpu, gpu]",
        "inputs=[1",
        "matrix.exclude.model=mlp",
        "compare.margin.tails=3%",
        "compare.baseline.varaint=fp32",
        "measure.design=slice",
        "choose.within.max=20ms",
        "tables.t.rows=[model]",
        "name=",
    ];
    check("spec_override", "x.yaml", text, &overrides);
}

#[test]
fn precisions_of_other_tools_are_met_with_ours() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let head = format!("models: {model}\ninputs: {{ batch: 1 }}\n");
    for (word, ours) in [("float32", "fp32"), ("float16", "fp16"), ("bfloat16", "bf16"), ("Half", "fp16")] {
        for variants in [format!("[{word}]"), format!("[{{ name: a, precision: {word} }}]")] {
            let error = spec::parse("x.yaml", &format!("{head}variants: {variants}\n"), Path::new("/"), &[]);
            let said = render(&error.expect_err("no precision of perfrun"));
            assert!(said.contains(&format!("did you mean `{ours}`?")), "{variants}: {said}");
        }
    }
}

#[test]
fn a_huge_file_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("huge.yaml");
    // The file is a hole: reading its 2 GiB would still take seconds and as much memory.
    File::create(&path).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
    assert!(matches!(spec::load(&path, &[]), Err(SpecError::TooLarge { limit_mib: 16, .. })));
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("latin.yaml");
    std::fs::write(&path, b"name: x\ndescription: na\xefve\n").expect("a writable folder");
    let error = spec::load(&path, &[]).expect_err("Latin-1 is not UTF-8");
    assert!(matches!(error, SpecError::NotUtf8 { byte: 0xef, line: 2, column: 16, .. }), "{error}");

    let error = spec::load(&folder.path().join("latni.yaml"), &[]).expect_err("no such file");
    let SpecError::Missing { hint, .. } = &error else { panic!("{error}") };
    assert!(hint.as_deref().is_some_and(|hint| hint.ends_with("latin.yaml`?")));

    let error = spec::load(folder.path(), &[]).expect_err("a folder");
    assert!(matches!(error, SpecError::Unreadable { .. }), "{error}");
}

#[test]
fn ten_million_cells_are_refused_at_once() {
    let text = std::fs::read_to_string(Path::new(INVALID).join("too_many_cells.yaml")).expect("a fixture");
    let error = spec::parse("x.yaml", &text, Path::new(""), &[]).expect_err("too many cells");
    assert!(error.problems()[0].message.contains("= 10,000,000 cells"));
    // Products that could not even be stored are counted, not made.
    let sizes = (1..=2000).map(|size| size.to_string()).collect::<Vec<_>>().join(", ");
    let inputs = (0..8).map(|index| format!("  d{index}: [{sizes}]\n")).collect::<String>();
    let text = format!("backend: mock\nmodels: [any]\ninputs:\n{inputs}");
    assert!(spec::parse("x.yaml", &text, Path::new(""), &[]).is_err());
}

#[test]
fn the_committed_schema_is_current() {
    let path = root().join("schemas/experiment.schema.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, spec::schema_text(), "stale: perfrun schema experiment > schemas/experiment.schema.json");
}

/// Lines of a spec of which any may be left out, with values of any kind that is valid with all the rest.
fn valid_spec() -> impl Strategy<Value = String> {
    let pick = |lines: &'static [&'static str]| prop::sample::select(lines);
    let compare = (
        pick(&["", "baseline: { variant: a }, ", "baseline: { variant: [a], device: cpu }, "]),
        pick(&["margin: 0.3%", "margin: { default: 7%, tail: 2.5% }", "margin: { tail: 0.0123 }"]),
        pick(&["", ", aa: off", ", aa: group"]),
    );
    let measure = (
        pick(&["", "design: slices, slice_time: 30ms, ", "design: blocks, ", "cache: cold, cooldown: 0s, "]),
        pick(&["stop: { mode: time, time: 1s }", "stop: { min_samples: 7, relative: 0.7% }", "inputs: 3"]),
        pick(&["", ", warmup: { mode: samples, count: 3 }", ", warmup: { tolerance: 0.1% }"]),
    );
    let best = ["latency", "latency.p99", "throughput", "peak_rss", "speedup", "latency.cv"];
    let bounds = [
        "",
        "{ metric: latency.p95, max: 0.3ms, where: { batch: 1, variant: b* } }",
        "{ metric: speedup, min: 110% }, { metric: items, min: 0.1, max: 33.3 }",
        "{ metric: peak_rss, max: 1.3GiB }, { metric: latency.cv, max: 7% }",
    ];
    let choose = (prop::sample::select(best.to_vec()), prop::sample::select(bounds.to_vec()));
    let rest = pick(&[
        "",
        "budget: 90m\n",
        "require: { grade: C, quiet: true }\n",
        "tables: [{ name: t, rows: [model, input], columns: [variant], show: [speedup, latency.p99.9] }]\n",
    ]);
    (compare, measure, prop::option::of(choose), rest, any::<u64>(), 1..20u32).prop_map(
        |((baseline, margin, aa), (design, stop, warmup), choose, rest, seed, runs)| {
            let choose = choose.map(|(best, within)| format!("choose: {{ best: {best}, within: [{within}] }}\n"));
            format!(
                "backend: {{ mock: {{ median: 3.3ms, noise: 0.7% }} }}\nmodels: [m, n]\nvariants: [a, b]\n\
                 inputs: {{ batch: [1, 8] }}\nruns: {runs}\nseed: {seed}\n\
                 compare: {{ {baseline}{margin}{aa} }}\nmeasure: {{ {design}{stop}{warmup} }}\n{}{rest}",
                choose.unwrap_or_default()
            )
        },
    )
}

/// Pieces of YAML that meet in ways nobody would write.
const PIECES: [&str; 28] = [
    "models:",
    "variants:",
    "inputs:",
    "matrix:",
    "measure:",
    "backend: mock",
    "\n",
    "\n  ",
    "\n- ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a ",
    "*a",
    "<<: ",
    "\"",
    "'",
    "|\n",
    "\t",
    "é",
    "~",
    "-1",
    "1e999",
    "name: x",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A record keeps the experiment, and `report` and `--resume` read it again.
    #[test]
    fn experiments_read_back_equal(text in valid_spec()) {
        let loaded = match spec::parse("x.yaml", &text, Path::new(""), &[]) {
            Ok(loaded) => loaded,
            Err(error) => panic!("{text}\n{}", render(&error)),
        };
        let json = serde_json::to_string(&loaded.experiment).expect("an experiment is JSON");
        let read: experiment::Experiment = serde_json::from_str(&json).expect("and reads back");
        prop_assert_eq!(read, loaded.experiment);
        // An override meets the margin in every shape.
        let again = spec::parse("x.yaml", &text, Path::new(""), &["compare.margin.default=2%".to_owned()]);
        prop_assert!(again.is_ok());
    }

    /// Whatever the text, the answer is a spec or problems; rendering these does not fail either.
    #[test]
    fn no_text_makes_reading_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, prop::sample::select(&PIECES[..])), 0..6),
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..20),
        argument in "[a-z.={}\\[\\] ]{0,12}",
    ) {
        let mut mutated = spec::full_example();
        for (index, length, piece) in edits {
            let mut start = index.index(mutated.len());
            let mut end = (start + length).min(mutated.len());
            while !mutated.is_char_boundary(start) { start -= 1; }
            while !mutated.is_char_boundary(end) { end += 1; }
            mutated.replace_range(start..end, piece);
        }
        for text in [mutated, pieces.concat()] {
            let overrides = [argument.clone(), format!("variants.{argument}")];
            if let Err(error) = spec::parse("x.yaml", &text, Path::new(INVALID), &overrides) {
                prop_assert!(!render(&error).is_empty());
            }
        }
    }
}
