//! Whole interactions: status, standard output, standard error; bad input above all.

use base::quantity::Nanos;
use experiment::{SamplesWarmup, Stop, TimeStop, Warmup};
use record::FORMAT;

use crate::need::need;
use crate::support::{Project, check_snapshot};

const SMALL: &str = "backend: mock\nmodels: [m]\nruns: 2\nmeasure: { stop: { mode: samples, count: 20 } }\n";

/// One command in a folder with `x.yaml`: its code, and a text that standard error must hold.
#[track_caller]
fn check(spec: &str, arguments: &[&str], code: i32, says: &str) {
    let done = Project::with_spec(spec).run(arguments).expect_code(code);
    assert!(done.stderr.contains(says), "`{says}` is not in:\n{}", done.stderr);
}

#[test]
fn verbose_tells_what_was_found_and_started_and_changes_no_data() {
    let project = Project::with_spec("backend: { mock: { median: 1ms } }\nmodels: [m]\nvariants: [a, b]\nruns: 5\n");
    let outputs = |verbosity: &[&str]| {
        let done = project.run(&[&["x.yaml", "--no-wait"], verbosity].concat()).expect_code(0);
        (done.stdout, done.stderr)
    };
    let (data, quiet) = outputs(&[]);
    let (same, verbose) = outputs(&["-v"]);
    assert_eq!(same, data);
    assert!(!quiet.contains("worker "), "{quiet}");
    for said in [
        "specification: x.yaml",
        "backend: mock",
        "pass `rehearsal` begins",
        "started: m/default/a/cpu, ",
        "samples",
        "wrote ",
    ] {
        assert!(verbose.contains(said), "{said} in\n{verbose}");
    }
    // Two cells and a control in each of five blocks, and two cells to rehearse.
    assert_eq!(verbose.matches(" started: ").count(), 17, "{verbose}");
    assert!(!verbose.contains(" did `measure` in "), "{verbose}");
    let (same, all) = outputs(&["-vv"]);
    assert_eq!(same, data);
    for said in [" did `measure` in ", "rev-parse --show-toplevel"] {
        assert!(all.contains(said), "{said} in\n{all}");
    }
}

#[test]
fn quiet_shows_results_alone_and_no_progress_no_blocks() {
    let project = Project::with_spec(SMALL);
    let all = project.run(&["x.yaml"]).expect_code(0);
    assert!(all.stderr.contains("running    block 1 of 2"), "{}", all.stderr);
    let quiet = project.run(&["-q", "x.yaml"]).expect_code(0);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (all.stdout, ""));
    let plain = project.run(&["x.yaml", "--no-progress"]).expect_code(0).stderr;
    assert!(plain.contains("machine ") && !plain.contains("running    block"), "{plain}");
    // What is wrong is reported, and every command takes the options.
    assert!(!project.run(&["plan", "none.yaml", "--quiet"]).expect_code(2).stderr.is_empty());
    for arguments in [&["list", "-q"][..], &["explain", "int4", "--no-progress"], &["--color", "never", "doctor"]] {
        project.run(arguments).expect_code(0);
    }
    project.run(&["list", "--color", "often"]).expect_code(2);
}

#[test]
fn colour_is_an_option_of_every_command() {
    let project = Project::new();
    let shown = |color: &str, arguments: &[&str]| {
        let output =
            project.command(&[arguments, &["--color", color]].concat()).env_remove("NO_COLOR").output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for arguments in [&["plan", "none.yaml"][..], &["--help"], &["run", "--nonsense"]] {
        assert!(shown("always", arguments).contains('\u{1b}'), "{arguments:?}");
        assert!(!shown("never", arguments).contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn a_plan_takes_the_library_of_a_run() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let spec = format!("models: {model}\ninputs: {{ batch: 1 }}\n");
    check(&spec, &["plan", "x.yaml", "--runtime", "nothing.so"], 2, "nothing.so");
    let with_runtimes = format!("{spec}runtimes: [\"1.30.0\"]\n");
    check(&with_runtimes, &["plan", "x.yaml", "--runtime", "nothing.so"], 2, "conflicts with `runtimes`");
    Project::with_spec(SMALL).run(&["plan", "x.yaml", "--runtime", "nothing.so"]).expect_code(0);
}

#[test]
fn help_and_version_are_data() {
    let project = Project::new();
    let version = project.run(&["--version"]).expect_code(0);
    let first = format!("perfrun {}\n", env!("CARGO_PKG_VERSION"));
    let profile = version.stdout.strip_prefix(&first).and_then(|rest| rest.strip_prefix("build profile: "));
    assert!(["dev\n", "release\n", "dist\n"].map(Some).contains(&profile), "{}", version.stdout);
    assert_eq!(project.run(&["-V"]).expect_code(0).stdout, first);
    let help = project.run(&["--help"]).expect_code(0);
    check_snapshot("cli_help", &help.stdout);
    let help = project.run(&["run", "--help"]).expect_code(0);
    check_snapshot("cli_help_run", &help.stdout);
}

#[test]
fn no_words_are_a_mistake() {
    let done = Project::new().run(&[]).expect_code(2);
    assert!(done.stderr.contains("Usage:"), "{}", done.stderr);
}

#[test]
fn a_missing_file_is_named() {
    check(SMALL, &["nothing.yaml"], 2, "nothing.yaml");
}

#[test]
fn a_folder_without_specifications_is_refused() {
    let project = Project::new();
    std::fs::create_dir(project.path("empty")).unwrap();
    let done = project.run(&["empty"]).expect_code(2);
    assert!(done.stderr.contains("no specification found in empty"), "{}", done.stderr);
}

#[test]
fn a_folder_stands_for_every_specification_below_it() {
    let project = Project::new();
    project.write("all/one.yaml", SMALL);
    project.write("all/deep/two.yaml", SMALL);
    project.write("all/other.yaml", "key: value\n");
    let done = project.run(&["validate", "all"]).expect_code(0);
    assert_eq!(done.stdout.lines().count(), 2, "{}", done.stdout);
    project.run(&["all"]).expect_code(0);
    assert!(project.path("reports/one/report.md").is_file() && project.path("reports/two/report.md").is_file());
}

/// The root of a disk holds other file systems, or more than anybody means.
#[test]
fn the_root_of_the_disk_is_no_folder_of_models_or_specifications() {
    let refused = |spec: &str, arguments: &[&str]| {
        let done = Project::with_spec(spec).run(arguments).expect_code(2);
        assert!(done.stderr.contains("name a smaller folder"), "{}", done.stderr);
    };
    refused("models: /\n", &["plan", "x.yaml"]);
    refused("models: [m]\n", &["validate", "/"]);
    refused("models: [m]\n", &["inspect", "/"]);
}

#[test]
fn a_spec_that_is_not_utf8_is_refused() {
    let project = Project::new();
    std::fs::write(project.path("x.yaml"), b"models: [\xff]\n").unwrap();
    project.run(&["x.yaml"]).expect_code(2);
}

#[test]
fn a_huge_spec_is_refused_without_reading_it() {
    let project = Project::new();
    std::fs::File::create(project.path("x.yaml")).unwrap().set_len(2 << 30).unwrap();
    let done = project.run(&["x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("16 MiB"), "{}", done.stderr);
}

#[test]
fn ten_million_cells_are_refused() {
    let names: Vec<String> = (0..3163).map(|n| format!("m{n}")).collect();
    let variants: Vec<String> = (0..3163).map(|n| format!("v{n}")).collect();
    let spec = format!("backend: mock\nmodels: [{}]\nvariants: [{}]\n", names.join(", "), variants.join(", "));
    check(&spec, &["plan", "x.yaml"], 2, "10,004,569");
}

#[test]
fn a_key_of_one_mode_sets_that_mode() {
    let project = Project::with_spec(SMALL);
    project.run(&["x.yaml", "--set", "measure.warmup.count=3", "--set", "measure.stop.time=20ms"]).expect_code(0);
    let measure = project.record("x").manifest.experiment.measure;
    assert!(
        matches!(measure.stop, Stop::Time(TimeStop { time, .. }) if time == Nanos::from_millis(20)),
        "{:?}",
        measure.stop
    );
    assert_eq!(measure.warmup, Warmup::Samples(SamplesWarmup { count: 3 }));
    let twice = ["plan", "x.yaml", "--set", "measure.stop.time=2s", "--set", "measure.stop.count=3"];
    check(SMALL, &twice, 2, "is only valid with `mode: samples`");
}

#[test]
fn an_unknown_key_of_set_is_refused() {
    check(SMALL, &["x.yaml", "--set", "measure.warmups.min_time=1s"], 2, "did you mean `warmup`");
    check(SMALL, &["x.yaml", "--set", "variants.none.threads=1"], 2, "--set");
}

#[test]
fn a_selector_of_nothing_is_refused() {
    check(SMALL, &["x.yaml", "--only", "model=n"], 2, "no model is named `n`");
    check(SMALL, &["x.yaml", "--only", "model=n*"], 2, "matches no cell");
    check(SMALL, &["x.yaml", "--only", "colour=red"], 2, "unknown key `colour`");
}

#[test]
fn an_output_folder_that_cannot_be_written_is_refused_before_anything_runs() {
    let project = Project::with_spec(SMALL);
    project.write("file", "");
    let done = project.run(&["x.yaml", "--output", "file/below"]).expect_code(2);
    assert!(done.stderr.contains("cannot write file/below"), "{}", done.stderr);
    assert!(!project.path(".perfrun/records").exists());
}

#[test]
fn a_store_that_cannot_be_written_is_refused() {
    let project = Project::with_spec(SMALL);
    std::fs::remove_dir(project.path(".perfrun")).unwrap();
    project.write(".git/HEAD", "");
    project.write(".perfrun", "");
    let done = project.run(&["x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("cannot write"), "{}", done.stderr);
}

#[test]
fn a_newer_record_is_refused_and_a_damaged_one_named() {
    let project = Project::with_spec(SMALL);
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    let path = folder.join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen(&format!("\"format\": {FORMAT}"), "\"format\": 99", 1)).unwrap();
    let done = project.run(&["report", folder.to_str().unwrap()]).expect_code(2);
    assert!(done.stderr.contains("has format 99"), "{}", done.stderr);
    std::fs::write(&path, "{ \"format\": 1 }").unwrap();
    let done = project.run(&["report", folder.to_str().unwrap()]).expect_code(2);
    let said = done.stderr.replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is of a format that is no longer read: format 1"), "{said}");
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.join("samples.parquet"), "not parquet").unwrap();
    let done = project.run(&["report", folder.to_str().unwrap()]).expect_code(2);
    assert!(done.stderr.contains("samples.parquet is damaged"), "{}", done.stderr);
}

#[test]
fn a_folder_that_is_no_record_is_named() {
    check(SMALL, &["report", "."], 2, "is not a record");
    check(SMALL, &["run", "--resume", "."], 2, "is not a record");
    check(SMALL, &["x.yaml", "--resume"], 2, "no unfinished record of `x`");
}

#[test]
fn absent_devices_are_skipped_or_required() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let spec = format!("models: {model}\ninputs: {{ batch: 1 }}\ndevices: [cpu, cuda]\n");
    let project = Project::with_spec(&spec);
    let plan = project.run(&["plan", "x.yaml"]).expect_code(0);
    assert!(plan.stdout.contains("1 skipped"), "{}", plan.stdout);
    assert!(plan.stdout.contains("cuda:0"), "{}", plan.stdout);
    let done = project.run(&["x.yaml", "--require-devices"]).expect_code(2);
    assert!(done.stderr.contains("--require-devices"), "{}", done.stderr);
}

/// What a failure for an operator of one's own advises.
#[test]
fn a_quick_look_takes_a_library_of_custom_operators() {
    let _runtime = need!(onnxruntime);
    let project = Project::new();
    project.write("ops.so", "no library");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/one_node.onnx");
    let set = format!("plugins.custom_ops={}", project.path("ops.so").display());
    let refused = project.run(&[model, "--set", &set]).expect_code(2).stderr;
    let said = refused.replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is not a shared library"), "{said}");
}

#[test]
fn devices_are_named_on_the_command_line() {
    let project = Project::with_spec(SMALL);
    project.run(&["x.yaml", "--device", "cpu"]).expect_code(0);
    assert_eq!(project.record("x").manifest.restrictions, ["--set devices=[cpu]"]);
    let plan = project.run(&["plan", "x.yaml", "--device", "cpu", "--rate", "50", "--p99", "20ms"]).expect_code(0);
    let same = ["--set", "devices=[cpu]", "--set", "measure.load.rate=50", "--set", "measure.load.bound.p99=20ms"];
    assert_eq!(plan.stdout, project.run(&[&["plan", "x.yaml"], &same[..]].concat()).stdout);
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    for measured in ["x.yaml", model] {
        let refused = project.run(&[measured, "--device", "cpu", "--device", "cuda"]).expect_code(2);
        assert!(refused.stderr.contains("cuda:0: no NVIDIA driver here"), "{}", refused.stderr);
    }
    let unknown = project.run(&[model, "--device", "gpu"]).expect_code(2);
    assert!(unknown.stderr.contains("unknown device `gpu`"), "{}", unknown.stderr);
    let plan = project.run(&[model, "--device", "cpu", "--dry-run"]).expect_code(0);
    assert!(plan.stdout.contains("x 1 device "), "{}", plan.stdout);
}

#[test]
fn a_skipped_device_sends_nobody_to_another_machine() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let spec = format!("models: {model}\ninputs: {{ batch: 1 }}\ndevices: [cpu, cuda, tensorrt:1]\n");
    let plan = Project::with_spec(&spec).run(&["plan", "x.yaml"]).expect_code(0);
    for device in ["cuda:0", "tensorrt:1"] {
        let words = format!("1  {device}: no NVIDIA driver here\n");
        assert!(plan.stdout.contains(&words), "{}", plan.stdout);
    }
    assert!(!plan.stdout.contains("another machine"), "{}", plan.stdout);
}

#[test]
fn free_dimensions_are_named() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    check(&format!("models: {model}\n"), &["x.yaml"], 2, "batch");
}

#[test]
fn init_writes_a_specification_that_is_valid_and_never_overwrites() {
    let project = Project::new();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models");
    project.run(&["init", models]).expect_code(0);
    project.run(&["validate", "experiments/models.yaml"]).expect_code(0);
    let text = project.read("experiments/models.yaml");
    project.run(&["init", models]).expect_code(2);
    assert_eq!(text, project.read("experiments/models.yaml"));
    let printed = project.run(&["init", models, "-o", "-"]).expect_code(0);
    assert!(printed.stdout.contains("path: /"), "{}", printed.stdout);
}

/// What stands in comments is valid without the sign before it.
#[test]
fn init_leads_to_more_of_a_specification() {
    let project = Project::new();
    let text = project.run(&["init", "zoo:bert_tiny", "-o", "-"]).expect_code(0).stdout;
    let variants = text.lines().find(|line| line.starts_with("variants: ")).unwrap();
    let stop = "  stop: { max_time: 500ms }\n";
    let with = |key: &str, without: &str| {
        let commented = format!("# {key}: ");
        assert!(text.contains(&commented), "{key} in\n{text}");
        project.write("x.yaml", &text.replace(&commented, &format!("{key}: ")).replacen(without, "", 1));
        project.run(&["validate", "x.yaml"])
    };
    with("variants", &format!("{variants}\n")).expect_code(0);
    with("profile", "").expect_code(0);
    with("load", stop).expect_code(0);
    with("choose", "").expect_code(0);
    let dataset = with("dataset", "").expect_code(2).stderr;
    assert!(dataset.contains("has 1 problem") && dataset.contains("there is no file `data.npz`"), "{dataset}");
    assert!(text.contains("int4, { name: fp32-t1, threads: 1 }"), "{text}");
}

#[test]
fn init_writes_the_load_of_a_quick_look() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    project.run(&["init", model, "--rate", "largest", "--p99", "20ms", "-o", "x.yaml"]).expect_code(0);
    project.run(&["validate", "x.yaml"]).expect_code(0);
    let text = project.read("x.yaml");
    assert!(text.contains("  load: { rate: largest, bound: { p99: \"20ms\" } }\n"), "{text}");
    let refused = project.run(&["init", model, "--rate", "largest", "-o", "y.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("`largest` is the largest rate that keeps a bound"), "{}", refused.stderr);
    assert!(!project.path("y.yaml").exists());
}

#[test]
fn init_points_editors_to_a_schema_that_is_there() {
    let project = Project::new();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models");
    let schema_of = |file: &str| {
        let text = project.read(file);
        let line = text.lines().next().unwrap_or_default();
        let path = line.strip_prefix("# yaml-language-server: $schema=").unwrap_or_else(|| panic!("{text}"));
        let found = std::fs::read_to_string(project.path(file).parent().unwrap().join(path)).unwrap();
        assert_eq!(found, spec::schema_text());
        path.to_owned()
    };
    let done = project.run(&["init", models]).expect_code(0);
    assert!(done.stderr.contains("and .perfrun/experiment.schema.json for editors"), "{}", done.stderr);
    assert_eq!(schema_of("experiments/models.yaml"), "../.perfrun/experiment.schema.json");
    assert_eq!(project.read(".perfrun/.gitignore"), "*\n");
    project.run(&["init", models, "-o", "experiments/../x.yaml"]).expect_code(0);
    assert_eq!(schema_of("x.yaml"), ".perfrun/experiment.schema.json");
    // The schema of the repository wins, but not a file that only has its name.
    project.write("schemas/experiment.schema.json", "{}");
    project.run(&["init", models, "-o", "y.yaml"]).expect_code(0);
    assert_eq!(schema_of("y.yaml"), ".perfrun/experiment.schema.json");
    project.write("schemas/experiment.schema.json", &spec::schema_text());
    project.run(&["init", models, "-o", "a/b/z.yaml"]).expect_code(0);
    assert_eq!(schema_of("a/b/z.yaml"), "../../schemas/experiment.schema.json");
}

#[test]
fn init_takes_networks_beside_files() {
    let project = Project::new();
    let mlp = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    project.run(&["init", "zoo:bert_tiny", mlp, "-o", "x.yaml"]).expect_code(0);
    project.run(&["validate", "x.yaml"]).expect_code(0);
    let text = project.read("x.yaml");
    let entry = "  - name: bert_tiny\n    zoo: bert_tiny\n    inputs: { batch: 1, sequence: 128 }\n";
    assert!(text.contains(entry) && text.contains("digits-mlp.onnx"), "{text}");
    project.run(&["init", "zoo:resnet18"]).expect_code(0);
    assert!(project.read("experiments/resnet18.yaml").contains("  # input: float32 [batch, 3, 224, 224]\n"));
    assert!(
        project.read("experiments/resnet18.yaml").contains("inputs: { batch: [1, 8] }"),
        "one model has time for two"
    );
    project.run(&["init", "zoo:resnet18", "zoo:vit_b_16"]).expect_code(0);
    project.run(&["validate", "experiments/zoo.yaml"]).expect_code(0);
    let refused = project.run(&["init", "zoo:resnet81"]).expect_code(2);
    assert!(refused.stderr.contains("did you mean `resnet18`?"), "{}", refused.stderr);
}

#[test]
fn inspect_says_what_a_model_wants_and_what_is_wrong_with_a_file() {
    let project = Project::new();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models");
    let done = project.run(&["inspect", models]).expect_code(0);
    assert!(done.stdout.contains("image: float32 [batch, 1, 8, 8]"), "{}", done.stdout);
    assert!(done.stdout.contains("1.56 MMACs, 3.12 MFLOPs"), "{}", done.stdout);
    assert!(done.stdout.contains("12 Conv (1.56 MMACs), 1 MatMul (320 MACs)"), "{}", done.stdout);
    let twice = project.run(&["inspect", models, "--inputs", "batch=2"]).expect_code(0);
    assert!(twice.stdout.contains("3.12 MMACs"), "{}", twice.stdout);
    let refused = project.run(&["inspect", models, "--inputs", "width=2"]).expect_code(0);
    assert!(refused.stdout.contains("inference  unknown"), "{}", refused.stdout);
    project.write("broken.onnx", "this is no model");
    let done = project.run(&["inspect", "broken.onnx"]).expect_code(2);
    assert!(done.stderr.contains("broken.onnx"), "{}", done.stderr);
    let done = project.run(&["inspect", "brokn.onnx"]).expect_code(2);
    assert!(done.stderr.contains("did you mean `broken.onnx`?"), "{}", done.stderr);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let project = Project::new();
    let mut child = project.command(&["schema"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_dry_run_measures_nothing() {
    let project = Project::with_spec(SMALL);
    let done = project.run(&["x.yaml", "--dry-run"]).expect_code(0);
    assert!(done.stdout.contains("= 1 cell\n"), "{}", done.stdout);
    assert!(!project.path(".perfrun/records").exists());
}

#[test]
fn two_specifications_of_one_name_are_refused_and_one_given_twice_is_one() {
    let project = Project::with_spec(&format!("name: same\n{SMALL}"));
    project.write("y.yaml", &format!("name: same\n{SMALL}"));
    let done = project.run(&["x.yaml", "y.yaml"]).expect_code(2);
    assert!(done.stderr.contains("are both named `same`"), "{}", done.stderr);
    project.run(&["x.yaml", "x.yaml"]).expect_code(0);
    project.record("same");
}

#[test]
fn a_machine_name_is_no_path() {
    check(SMALL, &["x.yaml", "--machine", "../elsewhere"], 2, "--machine");
}

#[test]
fn globs_work_for_a_specification_in_the_current_folder() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/one_node.onnx");
    std::fs::copy(model, project.path("one.onnx")).unwrap();
    project.write("x.yaml", "models: \"*.onnx\"\n");
    let done = project.run(&["plan", "x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("one/default/fp32/cpu"), "{}", done.stdout);
}

#[test]
fn doctor_answers_even_where_the_library_is_not_usable() {
    let project = Project::new();
    let output = project.command(&["doctor"]).env("ORT_DYLIB_PATH", "/nowhere/lib.so").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("NOT USABLE"));
}

#[test]
fn doctor_has_its_lists_as_data_too() {
    let project = Project::new();
    let text = project.run(&["doctor"]).expect_code(0).stdout;
    assert!(text.contains("\nok\n") && text.ends_with("No setting was changed.\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&project.run(&["doctor", "--json"]).expect_code(0).stdout).unwrap();
    let checks = json["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| ["ok", "off", "unknown"].contains(&check["state"].as_str().unwrap())));
    assert!(json["host"]["system"].is_string() && json["devices"].is_array());
}

#[test]
fn words_are_explained_and_unknown_ones_are_met_with_the_nearest() {
    let project = Project::new();
    let explain = |word: &str| project.run(&["explain", word]).expect_code(0).stdout;
    assert!(explain("W_STEAL").contains("hypervisor"));
    assert!(explain("measure.warmup.min_time").contains("300ms"));
    assert!(explain("peak_rss").contains("peak_rss_bytes"));
    let list = project.run(&["explain"]).expect_code(0).stdout;
    assert!(list.contains("E_AA_FAILED") && list.contains("perfrun explain W_STEAL"), "{list}");
    let all = project.run(&["explain", "--all"]).expect_code(0).stdout;
    assert!(all.contains("E_AA_FAILED") && all.contains("variants.threads") && all.contains("int4"), "{all}");
    // Words of several parts need no quotes, and those of several meanings have all of them.
    assert!(project.run(&["explain", "bound", "by"]).expect_code(0).stdout.contains("memory-bound"));
    for (word, says) in [
        ("int4", "int4 (value of variants.precision)"),
        ("fp16", "half precision"),
        ("labels", "dataset.labels (key"),
        ("batch", "how many items"),
        ("load", "measure.load (key"),
        ("load", "load (metric"),
    ] {
        assert!(explain(word).contains(says), "{word}: {}", explain(word));
    }
    let json: serde_json::Value =
        serde_json::from_str(&project.run(&["explain", "w_load", "--json"]).expect_code(0).stdout).unwrap();
    assert_eq!((json["kind"].as_str(), json["severity"].as_str()), (Some("code"), Some("warn")));
    let unknown = project.run(&["explain", "W_STAEL"]).expect_code(2);
    assert!(unknown.stderr.contains("did you mean `W_STEAL`?"), "{}", unknown.stderr);
}

#[test]
fn models_are_no_specifications_and_a_folder_of_them_hints_at_it() {
    let project = Project::new();
    project.write("models/a.onnx", "x");
    let refused = project.run(&["plan", "models/a.onnx"]).expect_code(2);
    assert!(refused.stderr.contains("`perfrun init models/a.onnx` writes a specification"), "{}", refused.stderr);
    let refused = project.run(&["models"]).expect_code(2);
    let text = refused.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(text.contains("`perfrun models/a.onnx` takes a quick look"), "{text}");
    let refused = project.run(&["models/a.onnx", "--resume"]).expect_code(2);
    assert!(refused.stderr.contains("a quick look cannot be resumed"), "{}", refused.stderr);
    let refused = project.run(&["models/a.onnx"]).expect_code(2);
    assert!(refused.stderr.contains("this is not an ONNX file"), "{}", refused.stderr);
}

#[test]
fn records_are_listed_and_all_but_the_newest_are_removed() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    assert!(project.run(&["list"]).expect_code(0).stdout.contains("no records yet"));
    // The first one is that of the committed report, the rest are of less.
    project.run(&["x.yaml"]).expect_code(0);
    for _ in 0..2 {
        project.run(&["x.yaml", "--runs", "1"]).expect_code(0);
    }
    let listed: serde_json::Value =
        serde_json::from_str(&project.run(&["list", "--json"]).expect_code(0).stdout).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!((listed.len(), &listed[0]["experiment"], &listed[0]["state"]), (3, &"x".into(), &"complete".into()));
    assert!(listed.iter().all(|record| record["cells"] == 2 && record["bytes"].as_u64() > Some(1000)), "{listed:?}");
    let shown = project.run(&["list"]).expect_code(0).stdout;
    assert!(shown.lines().count() == 4 && shown.contains("complete"), "{shown}");
    for name in ["latest", "x", listed[1]["record"].as_str().unwrap()] {
        project.run(&["report", name, "--output", "out"]).expect_code(0);
    }
    let refused = project.run(&["report", "y"]).expect_code(2);
    assert!(refused.stderr.contains("there is no record `y`"), "{}", refused.stderr);
    let refused = project.run(&["report", ".perfrun/records/x"]).expect_code(2);
    for words in ["records/x is not a record, but a folder of 3 records", "`perfrun report .perfrun/records/x/"] {
        assert!(refused.stderr.replace("\n        ", "").contains(words), "{}", refused.stderr);
    }
    let refused = project.run(&["clean"]).expect_code(2);
    assert!(refused.stderr.contains("add --yes to remove them"), "{}", refused.stderr);
    project.run(&["clean", "y", "--yes"]).expect_code(2);
    // One that was interrupted does not replace a complete one, and is not removed while it is the newest.
    let folder = project.path(".perfrun/records/x");
    let (newest, interrupted) = (folder.join(listed[0]["record"].as_str().unwrap()), folder.join("29990101T000000Z-0"));
    std::fs::create_dir(&interrupted).unwrap();
    std::fs::copy(newest.join("manifest.json"), interrupted.join("manifest.json")).unwrap();
    project.run(&["clean", "--yes"]).expect_code(0);
    assert!(newest.is_dir() && interrupted.is_dir());
    std::fs::remove_dir_all(&interrupted).unwrap();
    project.run(&["clean", "--keep", "0", "--yes"]).expect_code(0);
    let left: serde_json::Value =
        serde_json::from_str(&project.run(&["list", "--json"]).expect_code(0).stdout).unwrap();
    let reported: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["record"]), (1, &reported["record"]));
    assert!(project.run(&["clean", "--yes"]).expect_code(0).stdout.contains("nothing to remove"));
}

#[test]
fn validate_lists_what_a_specification_runs_beside_models() {
    let valid = |more: &str| {
        let project = Project::with_spec(&format!("backend: mock\nmodels: [m]\n{more}"));
        project.run(&["validate", "x.yaml"]).expect_code(0).stdout
    };
    let said =
        valid("variants: [a, { name: b, wrap: [nice, -n, 5], env: { A: 1 } }, { name: c, wrap: [nice, -n, 5] }]\n");
    let listed = "x.yaml: valid, 1 model x 1 input x 3 variants x 1 device = 3 cells\n  \
                  runs commands or libraries chosen by its author: env of b; nice -n 5\n";
    assert!(said.ends_with(listed), "{said}");
    assert!(!valid("").contains("of its author"));
}

#[test]
fn a_pipe_or_a_device_is_no_file_and_nobody_waits_for_it() {
    let project = Project::new();
    for name in ["pipe.onnx", "pipe.npz"] {
        assert!(std::process::Command::new("mkfifo").arg(project.path(name)).status().unwrap().success());
    }
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let specs = [
        "models: [pipe.onnx]\n".to_owned(),
        "models: [/dev/zero]\n".to_owned(),
        format!("models: ['{model}']\ninputs: {{ batch: 1 }}\ndataset: {{ file: pipe.npz }}\n"),
    ];
    for spec in specs {
        project.write("x.yaml", &spec);
        for verb in ["validate", "plan", "run"] {
            let said = project.run(&[verb, "x.yaml"]).expect_code(2).stderr;
            assert!(said.contains("regular file"), "{verb} {spec}: {said}");
        }
    }
    for arguments in [&["report", "pipe.onnx"][..], &["reproduce", "/dev/zero"], &["inspect", "pipe.onnx"]] {
        project.run(arguments).expect_code(2);
    }
}

#[test]
fn a_batch_beyond_32_bits_is_no_batch_of_zero() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/unnamed.onnx");
    let words = ["convert", model, "--precision", "int8", "--quantization", "static", "--inputs", "x=4294967296x1x4"];
    let done = project.run(&[&words[..], &["-o", "out.onnx"]].concat());
    assert!([2, 3].contains(&done.code), "{}: {}", done.code, done.stderr);
}

#[test]
fn sizes_of_unnamed_dimensions_are_asked_for_and_what_init_writes_is_valid() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/unnamed.onnx");
    let said = project.run(&["inspect", model]).expect_code(0).stdout;
    assert!(said.contains("dimension 1 of `x` has no size (set them, for example `--inputs 'x=1x128x4'`)"), "{said}");
    let said = project.run(&["inspect", model, "--inputs", "x=2x7x4"]).expect_code(0).stdout;
    assert!(said.contains("[2, 7, 4]"), "{said}");
    project.run(&["init", model, "-o", "x.yaml"]).expect_code(0);
    assert!(
        project.read("x.yaml").contains("inputs: [{ name: b1, shapes: { x: [1, 128, 4] } }]"),
        "{}",
        project.read("x.yaml")
    );
    project.run(&["validate", "x.yaml"]).expect_code(0);
}

#[test]
fn sizes_that_names_and_weights_say_are_proposed_and_names_of_inputs_stay_short() {
    let project = Project::new();
    let step = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/decoder_step.onnx");
    let keys = "decoder_sequence_length=128,past_decoder_sequence_length_of_layers=128'";
    let said = project.run(&["inspect", step]).expect_code(0).stdout;
    assert!(said.contains(keys), "{said}");
    let sizes = "decoder_sequence_length=1,past_decoder_sequence_length_of_layers=7";
    let said = project.run(&["inspect", step, "--inputs", sizes]).expect_code(0).stdout;
    assert!(said.contains("ids [1, 1], mask [1, 8], past [1, 7, 4], beam_idx [1]"), "{said}");
    project.run(&["init", step, "-o", "x.yaml"]).expect_code(0);
    project.run(&["validate", "x.yaml"]).expect_code(0);
    assert!(project.run(&["plan", "x.yaml"]).expect_code(0).stdout.contains("b8-d128-p128"));

    let weights = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/sizes_of_weights.onnx");
    project.run(&["init", weights, "-o", "y.yaml"]).expect_code(0);
    let text = project.read("y.yaml");
    assert!(text.contains("height: 128, hidden: 12, num_channels: 4, sequence_length: 128"), "{text}");
    project.run(&["validate", "y.yaml"]).expect_code(0);
    project.write("z.yaml", &text.replace("num_channels: 4", "num_channels: 128"));
    let misfit = "`num_channels` (dimension 1 of `sample`) is 128, and `kernel` of Conv `/conv_in` asks for 4";
    for verb in ["validate", "plan"] {
        let said = project.run(&[verb, "z.yaml"]).expect_code(2).stderr;
        let said: String = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        // Lines break behind a slash, too.
        let said = said.replace("`/ conv_in`", "`/conv_in`");
        assert!(said.contains(misfit) && said.contains("set `num_channels: 4`"), "{said}");
    }
    // Where other cells can run, it is a warning.
    project.write("w.yaml", &text.replace("num_channels: 4", "num_channels: [4, 128]"));
    let said = project.run(&["validate", "w.yaml"]).expect_code(0).stderr;
    assert!(said.contains("warning: cells are skipped:") && said.contains(misfit), "{said}");
    let sizes = "num_channels=128,height=8,width=8,sequence_length=2,hidden=12";
    let said = project.run(&["inspect", weights, "--inputs", sizes]).expect_code(0).stdout;
    assert!(said.contains(misfit) && said.contains("--inputs 'num_channels=4'"), "{said}");
}

#[test]
fn a_graph_whose_nodes_are_not_sorted_is_sorted_as_the_runtime_does() {
    let project = Project::new();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/models/unsorted.onnx");
    assert!(project.run(&["inspect", model]).expect_code(0).stdout.contains("1 MatMul ("));
    project.run(&["convert", model, "--precision", "fp16", "-o", "half.onnx"]).expect_code(0);
}

#[test]
fn what_is_no_file_is_not_replaced_by_one() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 2\n");
    project.run(&["x.yaml"]).expect_code(0);
    assert!(std::process::Command::new("mkfifo").arg(project.path("pipe")).status().unwrap().success());
    let said = project.run(&["export", "latest", "pipe"]).expect_code(2).stderr;
    assert!(said.contains("it is not a regular file") && !project.path("pipe").is_file(), "{said}");
}

#[test]
fn what_would_measure_or_lose_more_than_is_asked_for_is_refused() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 2\n");
    let refused = project.run(&["run", "--resume"]).expect_code(2);
    assert!(refused.stderr.contains("left no unfinished record"), "{}", refused.stderr);
    project.run(&["x.yaml", "--resume", "--dry-run"]).expect_code(2);
    project.write("y.yaml", "backend: mock\nmodels: [m]\nruns: 2\n");
    let refused = project.run(&["x.yaml", "y.yaml", "--output", "out"]).expect_code(2);
    assert!(refused.stderr.contains("2 reports cannot go to one folder, out"), "{}", refused.stderr);
    assert!(!project.path("out").exists());
    project.run(&["x.yaml"]).expect_code(0);
    let refused = project.run(&["run", "--resume"]).expect_code(2);
    assert!(refused.stderr.contains("left no unfinished record"), "{}", refused.stderr);
}
