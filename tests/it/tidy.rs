//! Rules about the code itself, and about what texts refer to.

mod circles;
mod code;
mod references;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Every source file: perfrun's by its path below `src`, another package's by its path below the root.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = code_below("src");
    let packages = code_below("crates").into_iter();
    files.extend(packages.map(|(path, text)| (Path::new("crates").join(path), text)));
    files
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

/// Rooms in the order of lib.rs.
fn rooms() -> Vec<String> {
    let lib = sources().into_iter().find(|(path, _)| path == Path::new("lib.rs")).unwrap().1;
    let names = lib.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// The sources without their tests, which may use anything: neither items nor whole files under `#[cfg(test)]`.
fn sources_without_tests() -> Vec<(PathBuf, String)> {
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

#[test]
fn a_room_uses_only_those_above_it() {
    let rooms = rooms();
    let place = |name: &str| rooms.iter().position(|room| room == name);
    assert!(rooms.len() > 10);
    for (path, text) in sources_without_tests() {
        let first = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let Some(own) = place(first.trim_end_matches(".rs")) else { continue };
        for name in names_behind(&text, "crate::") {
            if let Some(other) = place(&name) {
                assert!(other <= own, "{} uses `{name}`, which lib.rs has below it", path.display());
            }
        }
    }
}

/// Within rooms, what stands on what: each uses only itself and those before it in its row.
const FLOORS: [(&str, &[&str]); 7] = [
    ("vocabulary", &["quantity", "printable", "privacy", "metric", "code"]),
    ("machine", &["environment", "clock", "kernel", "host", "probe"]),
    ("data", &["scratch", "stamp", "digest", "array", "table"]),
    ("quality", &["fidelity", "accuracy"]),
    ("prepare", &["seal", "programs", "runtime", "models"]),
    ("worker", &["printed", "backend", "measure"]),
    ("judge", &["diagnosis", "profile", "summary", "compare"]),
];

#[test]
fn within_a_room_the_order_holds_too() {
    let sources = sources_without_tests();
    for (room, floors) in FLOORS {
        for (index, floor) in floors.iter().enumerate() {
            let below = Path::new("src").join(room).join(floor);
            let own = sources.iter().filter(|(path, _)| {
                Path::new("src").join(path).starts_with(&below)
                    || Path::new("src").join(path) == below.with_extension("rs")
            });
            let mut found = 0;
            for (path, text) in own {
                found += 1;
                for name in names_behind(text, &format!("crate::{room}::")) {
                    // A type that the room gives out is its mod.rs's, which stands on top.
                    let is_above = floors[..=index].contains(&name.as_str());
                    assert!(is_above, "{} uses {room}'s `{name}`", path.display());
                }
            }
            assert!(found > 0, "{room} has no {floor}");
        }
    }
}

/// Circles that are one idea which does not fit into one file: bodies of `If` and `Loop` are graphs, and so on.
const CIRCLES: [(&str, &[&str]); 2] =
    [("crates/onnx/src", &["batch", "resolve"]), ("crates/onnx/src", &["infer::control", "infer::engine"])];

/// Files that need each other are one idea, or something that both use stands in the wrong one.
#[test]
fn no_files_use_each_other_in_a_circle() {
    let sources = sources_without_tests();
    for package in ["src", "crates/onnx/src", "crates/statistics/src", "crates/reading/src"] {
        let below = |path: &Path| match package {
            "src" => (!path.starts_with("crates")).then(|| path.to_owned()),
            _ => path.strip_prefix(package).ok().map(Path::to_owned),
        };
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
        ("tracing_subscriber::", &["ui/verbose.rs"]),
        ("ort::", &["worker/backend/onnxruntime/"]),
        ("polars::", &["data/table/"]),
        ("nvml_wrapper::", &["device/nvidia.rs"]),
        ("clap::", &["ui/cli.rs", "ui/cli/"]),
    ];
    for (path, text) in sources() {
        let shown = path.to_string_lossy().replace('\\', "/");
        for (name, places) in rules {
            let named = text.lines().any(|line| {
                let code = line.trim_start();
                !code.starts_with("//")
                    && (code.starts_with(&format!("use {name}")) || code.contains(&format!(" {name}")))
            });
            assert!(!named || places.iter().any(|place| shown.starts_with(place)), "{shown} names {name}");
        }
    }
}

/// The files that name one of these variants behind `prefix`, or all of them at once.
fn naming(prefix: &str, variants: &[&str]) -> Vec<String> {
    let names = |text: &str| {
        names_behind(text, prefix).any(|name| variants.contains(&name.as_str())) || text.contains(&format!("{prefix}*"))
    };
    let naming = sources_without_tests().into_iter().filter(|(_, text)| names(text));
    let mut found: Vec<String> = naming.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

/// Who acts on a verdict asks what it claims, so that another word is a row of its table; these make one or sort by all.
#[test]
fn few_files_name_the_variants_of_a_verdict() {
    const PLACES: [&str; 5] = [
        "crates/statistics/src/verdict.rs",
        "diff/found.rs",
        "diff/page/order.rs",
        "diff/rows.rs",
        "judge/compare/pair.rs",
    ];
    assert_eq!(naming("Verdict::", &["Better", "Worse", "Equivalent", "Inconclusive"]), PLACES);
}

/// Who treats an axis otherwise than others asks for a fact of it, or names the entry that it is about, so that another axis
/// is a row of its table; these declare them, or hold a rule that is one axis's own.
#[test]
fn few_files_name_the_variants_of_an_axis() {
    const PLACES: [&str; 9] = [
        "experiment/axis.rs",
        "experiment/axis_map.rs",
        "experiment/compiled.rs",
        "experiment/entries.rs",
        "experiment/index.rs",
        "experiment/matrix.rs",
        "experiment/mod.rs",
        "experiment/selector.rs",
        "plan/expand.rs",
    ];
    assert_eq!(naming("Axis::", &["Models", "Inputs", "Variants", "Devices", "Runtimes"]), PLACES);
}

/// A stream of the master seed is a variant of `RandomStream`; networks of the zoo have seeds of their own.
#[test]
fn texts_become_seeds_in_one_place() {
    const PLACES: [&str; 3] = ["plan/stream.rs", "crates/onnx/src/zoo/builder.rs", "crates/statistics/src/random.rs"];
    let hashing = sources_without_tests().into_iter().filter(|(_, text)| text.contains("key_seed("));
    let found: Vec<String> = hashing.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    assert_eq!(found, PLACES);
}

/// What a worker does is told by its parent, between commands.
#[test]
fn nothing_is_told_where_a_worker_measures() {
    const PARENT: [&str; 2] = ["worker/process.rs", "worker/session.rs"];
    let tells = |text: &str| ["tracing::", "info!(", "debug!("].iter().any(|word| text.contains(word));
    let of_worker = sources().into_iter().filter(|(path, text)| path.starts_with("worker") && tells(text));
    let found: Vec<String> = of_worker.map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    assert_eq!(found, PARENT);
}

/// Every way by which a text leaves perfrun for somebody's eyes, and the files that may take it. Each of them makes what it
/// shows `printable`, whoever wrote it, so that nobody else has to.
const BORDERS: [(&str, &[&str]); 9] = [
    // What a worker writes is the protocol, or goes into its log, and `worker/session.rs` makes both printable.
    ("io::stdout()", &["ui/mod.rs", "worker/child.rs"]),
    ("io::stderr()", &["ui/mod.rs", "worker/child.rs", "worker/loaded.rs"]),
    ("styled_data(", &["commands/report.rs", "ui/mod.rs"]),
    (".set_message(", &["ui/live.rs", "ui/submit.rs"]),
    (".set_prefix(", &["ui/live.rs"]),
    ("GraphicalReportHandler", &["ui/mod.rs"]),
    ("Environment::new(", &["report/template.rs"]),
    ("<text ", &["report/plots/svg.rs"]),
    ("<svg ", &["report/plots/canvas.rs"]),
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
    for border in BORDERS.iter().flat_map(|(_, borders)| *borders).filter(|path| !path.starts_with("worker/")) {
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

/// The files that open others without `reading::plain_file`, and why that cannot hang: only what perfrun itself wrote or holds, or
/// the kernel's own files.
const OPENERS: [&str; 13] = [
    // Unpacked, or hashed, by perfrun a moment before.
    "commands/archive.rs",
    "commands/diff/revision_files.rs",
    // Appended to: what GitHub names in the environment.
    "commands/step_summary.rs",
    // Hashed by perfrun a moment before.
    "commands/submit/stage.rs",
    // Folders, opened for their locks.
    "data/scratch.rs",
    // `/proc` and `/sys`.
    "machine/kernel.rs",
    "machine/probe/usage.rs",
    "run/provenance.rs",
    // What ONNX Runtime wrote into a folder of perfrun's own.
    "worker/backend/onnxruntime/profile.rs",
    // `/proc` and `/sys`.
    "worker/exit.rs",
    "worker/group.rs",
    // Without following links, and with flags of its own.
    "worker/lock.rs",
    "crates/reading/src/plain_file.rs",
];

#[test]
fn files_are_opened_where_pipes_and_devices_are_refused() {
    const WAYS: [&str; 5] = ["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions::new(", "fs::copy("];
    let takes = |text: &str| WAYS.iter().any(|way| text.contains(way));
    let found: Vec<String> = sources_without_tests()
        .into_iter()
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
            assert!(
                path.starts_with("worker/backend") || path.starts_with("worker/device"),
                "{} has unsafe code",
                path.display()
            );
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

/// `cargo test --test it no_room_is_too_large -- --nocapture` prints the lines of production code of each.
#[test]
#[allow(clippy::print_stdout)]
fn no_room_is_too_large() {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources_without_tests().into_iter().filter(|(path, _)| !path.ends_with("generated.rs")) {
        let depth = if path.starts_with("crates") { 2 } else { 1 };
        let room = path.iter().take(depth).map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        *lines.entry(room).or_default() += text.lines().count();
    }
    for (room, count) in &lines {
        println!("{count:>6}  {room}");
        assert!(*count <= 10_000 || room.starts_with("crates"), "{room} has {count} lines; is it still one room?");
    }
    println!("{:>6}  all", lines.values().sum::<usize>());
}
