//! Rules about the code itself, and about what texts refer to.

mod circles;
mod code;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use walkdir::WalkDir;

/// Every source file by its path below the root: `src/main.rs`, `crates/judge/src/lib.rs`.
fn sources() -> Vec<(PathBuf, String)> {
    let below = |folder: &str| {
        let folder = folder.to_owned();
        code_below(&folder).into_iter().map(move |(path, text)| (Path::new(&folder).join(path), text))
    };
    below("src").chain(below("crates")).collect()
}

/// The packages, `.` for the one at the top, with the folder of each one's sources.
fn packages() -> Vec<(String, PathBuf)> {
    let below = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates")).unwrap();
    let mut names: Vec<String> = below.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let below = names.into_iter().map(|name| (name.clone(), Path::new("crates").join(name).join("src")));
    below.chain([(".".to_owned(), PathBuf::from("src"))]).collect()
}

/// The source files below a folder of the repository, by their paths below it.
fn code_below(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = WalkDir::new(&root).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| (path.strip_prefix(&root).unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The sources without their tests, which may use anything: neither items nor whole files under `#[cfg(test)]`.
fn sources_without_tests() -> &'static [(PathBuf, String)] {
    static READ: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(read_without_tests);
    &READ
}

fn read_without_tests() -> Vec<(PathBuf, String)> {
    let mut sources = sources();
    let mut tests: Vec<PathBuf> = Vec::new();
    for (path, text) in &sources {
        let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        tests.extend(code::test_modules(text).into_iter().map(|name| folder.join(name)));
    }
    sources.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test) || path.with_extension("") == *test));
    sources.into_iter().map(|(path, text)| (path, code::without_tests(&text))).collect()
}

/// The names behind every `prefix` of a text.
fn names_behind<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    text.split(prefix).skip(1).map(move |rest| rest.chars().take_while(is_name).collect())
}

fn package_folder(package: &str) -> PathBuf {
    packages().into_iter().find(|(name, _)| name == package).unwrap().1
}

/// Within packages, what stands on what: each module uses only itself and those before it in its row. Between packages the
/// compiler keeps the order.
const FLOORS: [(&str, &[&str]); 7] = [
    ("base", &["quantity", "printable", "privacy", "metric", "code", "machine"]),
    ("files", &["scratch", "stamp", "digest", "array"]),
    ("quality", &["fidelity", "accuracy"]),
    ("prepare", &["seal", "programs", "runtime", "models"]),
    ("worker", &["printed", "backend", "measure"]),
    ("judge", &["diagnosis", "profile", "summary", "compare", "results", "diff", "history", "stat"]),
    (".", &["run", "ui", "commands"]),
];

#[test]
fn within_a_package_a_module_uses_only_those_before_it() {
    let sources = sources_without_tests();
    for (package, floors) in FLOORS {
        for (index, floor) in floors.iter().enumerate() {
            let below = package_folder(package).join(floor);
            let of_package =
                sources.iter().filter(|(path, _)| path.starts_with(&below) || *path == below.with_extension("rs"));
            let mut found = 0;
            for (path, text) in of_package {
                found += 1;
                let above = |name: &String| floors[index + 1..].contains(&name.as_str());
                let used = names_behind(text, "crate::").find(above);
                assert_eq!(used, None, "{} uses what stands on it", path.display());
            }
            assert!(found > 0, "{package} has no {floor}");
        }
    }
}

/// rustc reports unused items within a package only; this test reports `pub` items that no other package names. Types are
/// left out: public fields and signatures need them.
#[test]
fn what_is_pub_is_named_by_another_package() {
    const KINDS: [&str; 4] = ["fn", "const", "static", "mod"];
    let mut texts: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for (path, text) in sources() {
        let package = match path.strip_prefix("crates") {
            Ok(below) => below.iter().next().unwrap().to_string_lossy().into_owned(),
            Err(_) if path == Path::new("src/main.rs") => "the program".to_owned(),
            Err(_) => ".".to_owned(),
        };
        texts.entry(package).or_default().push((path, text));
    }
    for folder in ["tests/it", "benches", "fuzz"] {
        texts.insert(folder.to_owned(), code_below(folder));
    }
    let words: BTreeMap<&str, BTreeSet<&str>> = texts
        .iter()
        .map(|(package, files)| (package.as_str(), files.iter().flat_map(|(_, text)| code::words(text)).collect()))
        .collect();
    let mut shown = 0;
    for (path, text) in sources_without_tests().iter().filter(|(path, _)| !path.ends_with("generated.rs")) {
        let package_of_file =
            texts.iter().find(|(_, files)| files.iter().any(|(other, _)| other == path)).unwrap().0.as_str();
        for (kind, name) in text.lines().filter_map(shown_item).filter(|(kind, _)| KINDS.contains(kind)) {
            let is_named = words.iter().any(|(package, words)| *package != package_of_file && words.contains(name));
            assert!(
                is_named,
                "{}: no other package names the `pub {kind} {name}`: `pub(crate)` will do",
                path.display()
            );
            shown += 1;
        }
    }
    assert!(shown > 500, "{shown}");
}

/// The kind and the name of the item that a line shows to other packages.
fn shown_item(line: &str) -> Option<(&str, &str)> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let kind = words.by_ref().find(|word| !["async", "unsafe", ""].contains(word))?;
    match (kind, words.next()?) {
        ("const", "fn") => Some(("fn", words.next()?)),
        (kind, name) => Some((kind, name)),
    }
}

/// Circles that are one idea which does not fit into one file: bodies of `If` and `Loop` are graphs, and so on.
const CIRCLES: [(&str, &[&str]); 2] = [("onnx", &["batch", "resolve"]), ("onnx", &["infer::control", "infer::engine"])];

/// Files that need each other are one idea, or something that both use stands in the wrong one.
#[test]
fn no_files_use_each_other_in_a_circle() {
    let sources = sources_without_tests();
    for (package, folder) in packages() {
        let below = |path: &Path| path.strip_prefix(&folder).ok().map(Path::to_owned);
        let files: Vec<(PathBuf, String)> =
            sources.iter().filter_map(|(path, text)| Some((below(path)?, text.clone()))).collect();
        assert!(files.len() > 3, "{package}");
        assert_eq!(
            circles::circles(&files),
            CIRCLES
                .iter()
                .filter(|(of, _)| *of == package)
                .map(|(_, circle)| circle.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
            "{package}"
        );
    }
}

#[test]
fn crates_are_named_where_they_belong() {
    let rules: [(&str, &[&str]); 5] = [
        ("tracing_subscriber::", &["src/ui/verbose.rs"]),
        ("ort::", &["crates/worker/src/backend/onnxruntime/"]),
        ("polars::", &["crates/table/"]),
        ("nvml_wrapper::", &["crates/device/src/nvidia.rs"]),
        ("clap::", &["src/ui/cli.rs", "src/ui/cli/"]),
    ];
    for (path, text) in sources() {
        let shown = path.to_string_lossy().replace('\\', "/");
        for (name, folders) in rules {
            let named = text.lines().any(|line| {
                let code = line.trim_start();
                !code.starts_with("//")
                    && (code.starts_with(&format!("use {name}")) || code.contains(&format!(" {name}")))
            });
            assert!(!named || folders.iter().any(|folder| shown.starts_with(folder)), "{shown} names {name}");
        }
    }
}

/// The files that name one of these variants behind `prefix`, or all of them at once.
fn naming(prefix: &str, variants: &[&str]) -> Vec<String> {
    let names = |text: &str| {
        names_behind(text, prefix).any(|name| variants.contains(&name.as_str())) || text.contains(&format!("{prefix}*"))
    };
    let naming = sources_without_tests().iter().filter(|(_, text)| names(text));
    let mut found: Vec<String> = naming.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

/// Who acts on a verdict asks what it claims, so that another word is a row of its table; these make one or sort by all.
#[test]
fn few_files_name_the_variants_of_a_verdict() {
    const PLACES: [&str; 6] = [
        "crates/judge/src/compare/pair.rs",
        "crates/judge/src/diff/found.rs",
        "crates/judge/src/diff/rows.rs",
        "crates/report/src/diff/order.rs",
        "crates/statistics/src/log_ratio.rs",
        "crates/statistics/src/verdict.rs",
    ];
    assert_eq!(naming("Verdict::", &["Better", "Worse", "Equivalent", "Undecided"]), PLACES);
}

/// Code that treats one axis differently asks for a fact of it, or names the entry that it is about, so that another axis
/// is a row of its table; these declare them, or hold a rule that is one axis's own.
#[test]
fn few_files_name_the_variants_of_an_axis() {
    const PLACES: [&str; 9] = [
        "crates/experiment/src/axis.rs",
        "crates/experiment/src/axis_map.rs",
        "crates/experiment/src/compiled.rs",
        "crates/experiment/src/entries.rs",
        "crates/experiment/src/index.rs",
        "crates/experiment/src/lib.rs",
        "crates/experiment/src/matrix.rs",
        "crates/experiment/src/selector.rs",
        "crates/plan/src/expand.rs",
    ];
    assert_eq!(naming("Axis::", &["Models", "Inputs", "Variants", "Devices", "Runtimes"]), PLACES);
}

/// A stream of the master seed is a variant of `RandomStream`; networks of the zoo have seeds of their own.
#[test]
fn texts_become_seeds_in_one_place() {
    const PLACES: [&str; 3] =
        ["crates/onnx/src/zoo/builder.rs", "crates/plan/src/stream.rs", "crates/statistics/src/random.rs"];
    let hashing = sources_without_tests().iter().filter(|(_, text)| text.contains("key_seed("));
    let found: Vec<String> = hashing.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    assert_eq!(found, PLACES);
}

/// What a worker does is logged by its parent, between commands.
#[test]
fn nothing_is_told_where_a_worker_measures() {
    const PARENT: [&str; 2] = ["crates/worker/src/process.rs", "crates/worker/src/session.rs"];
    let logs = |text: &str| ["tracing::", "info!(", "debug!("].iter().any(|word| text.contains(word));
    let of_worker = sources().into_iter().filter(|(path, text)| path.starts_with("crates/worker") && logs(text));
    let found: Vec<String> = of_worker.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    assert_eq!(found, PARENT);
}

/// Every way by which a text leaves perfrun for somebody's eyes, and the files that may take it. Each of them makes what it
/// shows `printable`, whoever wrote it, so that nobody else has to.
const BORDERS: [(&str, &[&str]); 9] = [
    // What a worker writes is the protocol, or goes into its log, and `crates/worker/src/session.rs` makes both printable.
    ("io::stdout()", &["src/ui/mod.rs", "crates/worker/src/child.rs"]),
    // `process.rs` hands it to commands that inherit it, and writes nothing.
    (
        "io::stderr()",
        &["src/ui/mod.rs", "crates/worker/src/child.rs", "crates/worker/src/loaded.rs", "crates/worker/src/process.rs"],
    ),
    ("styled_data(", &["src/commands/report.rs", "src/ui/mod.rs"]),
    (".set_message(", &["src/ui/live.rs", "src/ui/submit.rs"]),
    (".set_prefix(", &["src/ui/live.rs"]),
    ("GraphicalReportHandler", &["src/ui/mod.rs"]),
    ("Environment::new(", &["crates/report/src/template.rs"]),
    ("<text ", &["crates/report/src/plots/svg.rs"]),
    ("<svg ", &["crates/report/src/plots/canvas.rs"]),
];

#[test]
fn whatever_is_shown_passes_a_border_that_makes_it_printable() {
    let sources = sources_without_tests();
    let code = |text: &str| -> String {
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    for (way, borders) in BORDERS {
        let takes_it: Vec<String> = sources
            .iter()
            .filter(|(_, text)| code(text).contains(way))
            .map(|(path, _)| path.to_string_lossy().into_owned())
            .collect();
        assert_eq!(takes_it, borders, "`{way}`: a new way out needs `printable`, and its line in BORDERS");
    }
    for border in BORDERS.iter().flat_map(|(_, borders)| *borders).filter(|path| !path.starts_with("crates/worker/")) {
        let (_, text) = sources.iter().find(|(path, _)| path == Path::new(border)).unwrap();
        // `escape` of figures does it too.
        let makes = ["printable(", "printable_line(", "escape("];
        assert!(makes.iter().any(|makes| text.contains(makes)), "{border} makes nothing printable");
    }
    let messages = sources.iter().flat_map(|(path, text)| text.lines().map(move |line| (path, line)));
    for (path, line) in messages.filter(|(_, line)| line.contains(".set_message(") || line.contains(".set_prefix(")) {
        assert!(line.contains("(printable("), "{}: {line}", path.display());
    }
}

/// The files that open files without `reading::plain_file`, and why that cannot hang: only what perfrun itself wrote or
/// holds, or the kernel's own files.
const OPENERS: [&str; 14] = [
    // Unpacked, or hashed, by perfrun a moment before.
    "src/commands/archive.rs",
    "src/commands/diff/revision_files.rs",
    // Appended to: what GitHub names in the environment.
    "src/commands/step_summary.rs",
    // Hashed by perfrun a moment before.
    "src/commands/submit/stage.rs",
    // `/proc` and `/sys`.
    "src/run/provenance.rs",
    "crates/base/src/machine/kernel.rs",
    "crates/base/src/machine/probe/usage.rs",
    // Folders, opened for their locks.
    "crates/files/src/scratch.rs",
    // It refuses them.
    "crates/reading/src/plain_file.rs",
    // For a lock, which some file systems give to writers alone.
    "crates/record/src/hold.rs",
    // Folders too, to wait for the disk.
    "crates/record/src/lib.rs",
    // What ONNX Runtime wrote into a folder of perfrun's own.
    "crates/worker/src/backend/onnxruntime/profile.rs",
    // `/proc` and `/sys`.
    "crates/worker/src/group.rs",
    // Without following links, and with flags of its own.
    "crates/worker/src/lock.rs",
];

#[test]
fn files_are_opened_where_pipes_and_devices_are_refused() {
    const WAYS: [&str; 5] = ["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions::new(", "fs::copy("];
    let takes = |text: &str| WAYS.iter().any(|way| text.contains(way));
    let found: Vec<String> = sources_without_tests()
        .iter()
        .filter(|(_, text)| takes(text))
        .map(|(path, _)| path.to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, OPENERS, "use `reading::plain_file`, or say in OPENERS why not");
}

#[test]
fn unsafe_code_stays_in_the_backend_and_says_why() {
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            if !line.contains("unsafe {") || line.trim_start().starts_with("//") {
                continue;
            }
            assert!(path.starts_with("crates/worker/src/backend"), "{} has unsafe code", path.display());
            let before = &lines[index.saturating_sub(4)..index];
            assert!(
                before.iter().any(|line| line.contains("SAFETY:")),
                "{}:{} has no SAFETY",
                path.display(),
                index + 1
            );
        }
    }
}

/// What a machine lacks is asked for by `need!`, which says so and can be required.
#[test]
fn no_test_ends_early_by_itself() {
    let files = [sources(), code_below("tests")].concat();
    let tests: Vec<_> = files
        .iter()
        .flat_map(|(path, text)| code::test_functions(text).into_iter().map(move |test| (path, test)))
        .collect();
    assert!(tests.len() > 1500, "{} tests", tests.len());
    for (path, test) in tests {
        assert!(!code::has_word(&test, "return"), "{} returns from a test, which then passes:\n{test}", path.display());
    }
}

#[test]
fn files_stay_short() {
    for (path, text) in sources() {
        // Generated from a schema of the ONNX project's making.
        if path.ends_with("generated.rs") {
            continue;
        }
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines; is it still one idea?", path.display());
    }
}
