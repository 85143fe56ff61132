//! Records on their way: shards and machines merged, archives, and results measured again by somebody else.

use std::path::{Path, PathBuf};

use record::Record;
use record::archive::{self, Content};
use serde_json::Value;

use crate::need::need;
use crate::support::{Done, Project};

/// Two models at two batch sizes; int8 takes half the time, and a goal asks for that.
const SPEC: &str = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one, two]\ninputs: { batch: [1, 8] }\n\
variants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\nruns: 10\nmeasure: { stop: { mode: samples, count: 100 } }\n\
goals: [{ name: fast, metric: speedup, where: { variant: int8, device: cpu }, min: 1.5 }]\n";

fn results(project: &Project, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap()
}

/// The newest record of the experiment.
fn newest(project: &Project) -> PathBuf {
    let folder = project.path(".perfrun/records/x");
    let mut records: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    records.sort();
    records.pop().unwrap()
}

fn name(record: &Path) -> String {
    record.file_name().unwrap().to_string_lossy().into_owned()
}

/// Measures with these flags, and names the record.
fn measured(project: &Project, flags: &[&str]) -> String {
    // Names begin with the second, and the newest is looked for.
    let before: Vec<PathBuf> = std::fs::read_dir(project.path(".perfrun/records/x"))
        .into_iter()
        .flatten()
        .map(|it| it.unwrap().path())
        .collect();
    project.run(&[&["x.yaml", "--output", "out"], flags].concat()).expect_code(0);
    let after = std::fs::read_dir(project.path(".perfrun/records/x")).unwrap().map(|entry| entry.unwrap().path());
    name(&after.into_iter().find(|folder| !before.contains(folder)).unwrap())
}

#[test]
fn shards_come_to_the_same_as_the_whole() {
    let project = Project::with_spec(SPEC);
    let shards = ["1/3", "2/3", "3/3"].map(|shard| measured(&project, &["--shard", shard]));
    measured(&project, &[]);
    let whole = results(&project, "out/results.json");
    let done = project.run(&["merge", &shards[2], &shards[0], &shards[1]]).expect_code(0);
    assert!(
        done.stdout.contains("met fast") && done.stdout.contains("wrote      reports/x/report.md"),
        "{}",
        done.stdout
    );
    let named_twice =
        project.run(&["merge", &shards[2], &shards[0], &shards[1], &shards[0], "--output", "out2"]).expect_code(0);
    assert!(named_twice.stdout.contains("met fast"), "{}", named_twice.stdout);
    project.run(&["merge", &shards[0], &shards[0]]).expect_code(2);
    let two_names = [format!("one={}", shards[0]), format!("two={}", shards[0])];
    let refused = project.run(&["merge", &two_names[0], &two_names[1]]).expect_code(2);
    assert!(refused.stderr.contains("one and two are names of one record"), "{}", refused.stderr);
    let merged = results(&project, "reports/x/results.json");
    assert_eq!(merged["cells"].as_array().unwrap().len(), 8);
    for (one, other) in merged["cells"].as_array().unwrap().iter().zip(whole["cells"].as_array().unwrap()) {
        for field in ["id", "model", "input", "variant", "status"] {
            assert_eq!(one[field], other[field]);
        }
        // Only which runs are close to each other in time differs.
        assert_eq!(one["metrics"]["latency_ns"]["value"], other["metrics"]["latency_ns"]["value"]);
    }
    assert_eq!(merged["comparisons"], whole["comparisons"]);
    assert!(merged["measured"].get("restrictions").is_none(), "{}", merged["measured"]);
    assert_eq!(merged["measured"]["sessions"].as_array().unwrap().len(), 3);
    assert!(merged["controls"].as_array().unwrap().len() >= 3, "each shard has its own");
    // Two of three say what is missing, and the committed report stays.
    let before = project.read("reports/x/results.json");
    let done = project.run(&["merge", &shards[0], &shards[1]]).expect_code(0);
    assert!(done.stdout.contains("--shard 1/3"), "{}", done.stdout);
    assert_eq!(project.read("reports/x/results.json"), before);
}

#[test]
fn a_shard_is_whole_groups_and_one_that_is_empty_is_refused() {
    let project = Project::with_spec(SPEC);
    let plan = project.run(&["plan", "x.yaml", "--shard", "2/3"]).expect_code(0).stdout;
    assert!(plan.contains("not in shard 2/3"), "{plan}");
    let refused = project.run(&["x.yaml", "--shard", "5/5"]).expect_code(2);
    assert!(
        refused.stderr.contains("--shard 5/5 selects no cell") && refused.stderr.contains("4 sets"),
        "{}",
        refused.stderr
    );
    let refused = project.run(&["x.yaml", "--only", "model=one", "--shard", "3/4"]).expect_code(2);
    assert!(refused.stderr.contains("2 sets"), "{}", refused.stderr);
    let refused = project.run(&["x.yaml", "--shard", "4/3"]).expect_code(2);
    assert!(refused.stderr.contains("I/N, such as 2/5"), "{}", refused.stderr);
}

/// The report of two machines, and one more that measures the same.
#[test]
fn reproduce_adds_a_machine_to_a_fleet() {
    let project = Project::with_spec(SPEC);
    let records = [(); 3].map(|()| measured(&project, &[]));
    let (one, two) = (format!("epyc={}", records[0]), format!("xeon={}", records[1]));
    project.run(&["merge", &one, &two, "--output", "fleet"]).expect_code(0);
    let done = project.run(&["reproduce", "fleet", "--machine", "arm"]).expect_code(0);
    assert!(done.stdout.contains("one/b1/int8/cpu: faster on all 3 machines"), "{}", done.stdout);
    let across = &results(&project, "fleet/results.json")["across"][0];
    assert_eq!(across["held"][0]["machines"], serde_json::json!(["epyc", "xeon", "arm"]));
    assert!(across["mean"]["next_low"].is_null(), "three machines predict nothing");
    // By records it is the same, and a machine is in a fleet once.
    let fleet = name(&newest(&project));
    let four = project.run(&["merge", &fleet, &format!("laptop={}", records[2]), "--output", "four"]).expect_code(0);
    assert!(four.stdout.contains("expect "), "{}", four.stdout);
    let twice = project.run(&["reproduce", "fleet", "--machine", "arm"]).expect_code(2);
    assert!(twice.stderr.contains("has the machine arm already"), "{}", twice.stderr);
    std::fs::remove_dir_all(project.path(".perfrun/records/x").join(&records[0])).unwrap();
    let gone = project.run(&["merge", &fleet, &format!("b={}", records[1])]).expect_code(2);
    assert!(gone.stderr.contains("which is not here"), "{}", gone.stderr);
}

#[test]
fn all_shards_of_a_selection_are_that_selection() {
    let project = Project::with_spec(SPEC);
    let shards = ["1/2", "2/2"].map(|shard| measured(&project, &["--only", "model=one", "--shard", shard]));
    project.run(&["merge", &shards[0], &shards[1], "--output", "merged"]).expect_code(0);
    let merged = results(&project, "merged/results.json");
    assert_eq!(merged["measured"]["restrictions"], serde_json::json!(["--only model=one"]));
}

#[test]
fn machines_stand_on_the_devices_axis() {
    let project = Project::with_spec(SPEC);
    let (all, some) = (measured(&project, &[]), measured(&project, &["--only", "batch=1"]));
    let (laptop, server) = (format!("laptop={all}"), format!("server={some}"));
    project.run(&["merge", &laptop, &server, "--output", "both"]).expect_code(0);
    let merged = results(&project, "both/results.json");
    let devices: Vec<&str> =
        merged["cells"].as_array().unwrap().iter().map(|cell| cell["device"].as_str().unwrap()).collect();
    assert_eq!(devices.iter().filter(|device| **device == "cpu@laptop").count(), 8);
    assert_eq!(devices.iter().filter(|device| **device == "cpu@server").count(), 4);
    assert_eq!(merged["provenance"]["machine"], "laptop and server");
    // Goals and baselines speak of the devices of every machine.
    assert_eq!(merged["goals"][0]["cells"].as_array().unwrap().len(), 6);
    assert_eq!(merged["comparisons"].as_array().unwrap().iter().filter(|row| row["metric"] == "latency").count(), 6);
    // What was measured on one machine stands in for nothing on another.
    let machine = |id: &Value| {
        let cell = merged["cells"].as_array().unwrap().iter().find(|cell| cell["id"] == *id).unwrap();
        cell["device"].as_str().unwrap().to_owned()
    };
    for tradeoff in merged["tradeoffs"].as_array().into_iter().flatten() {
        let points = tradeoff["points"].as_array().unwrap();
        assert!(points.iter().all(|point| machine(&point["cell"]) == machine(&points[0]["cell"])));
    }
    let record = Record::open(&newest(&project)).unwrap();
    assert_eq!(record.manifest.machines.len(), 2);
    // And again, from what was merged.
    project.run(&["report", newest(&project).to_str().unwrap(), "--output", "again"]).expect_code(0);
    assert_eq!(project.read("again/results.json"), project.read("both/results.json"));
    // The names of its machines are names.
    project.run(&["diff", "path:both", "path:both"]).expect_code(0);
}

#[test]
fn what_does_not_go_together_is_not_merged() {
    let project = Project::with_spec(SPEC);
    let first = measured(&project, &[]);
    let says = |arguments: &[&str], words: &str| {
        let refused = project.run(&[&["merge"], arguments].concat()).expect_code(2);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    };
    let quick = measured(&project, &["--quick"]);
    says(&[&first, &quick], "differ in");
    let again = measured(&project, &[]);
    says(&[&first, &again], "both measured one/b1/fp32/cpu");
    project.write("x.yaml", &SPEC.replace("runs: 10", "runs: 11"));
    let other = measured(&project, &[]);
    says(&[&first, &other], "differ in the specification");
    says(&[&first, "nothing"], "there is no record `nothing`");
    says(&[&first], "there is nothing to merge with");
    project.write(
        "x.yaml",
        "backend: mock\nmodels: [m]\ndevices: [cpu, cuda:0]\ncompare: { baseline: { device: cpu } }\nruns: 5\n",
    );
    let devices = measured(&project, &[]);
    let (one, two) = (format!("a={devices}"), format!("b={}", measured(&project, &[])));
    says(&[&one, &two], "compares devices");
}

#[test]
fn a_record_travels_in_one_file() {
    let project = Project::with_spec(SPEC);
    let record = measured(&project, &[]);
    project.run(&["export", "latest", "a.tar.zst"]).expect_code(0);
    project.run(&["export", &record, "b.tar.zst"]).expect_code(0);
    assert_eq!(std::fs::read(project.path("a.tar.zst")).unwrap(), std::fs::read(project.path("b.tar.zst")).unwrap());
    let other = Project::new();
    let archive = project.path("a.tar.zst");
    let done = other.run(&["import", archive.to_str().unwrap(), "--files"]).expect_code(0);
    assert!(done.stdout.contains(&record) && done.stdout.contains("x.yaml"), "{}", done.stdout);
    assert_eq!(other.read("x.yaml"), SPEC);
    assert!(!other.path(&format!(".perfrun/records/x/{record}/local.json")).exists(), "folders of the other user");
    let is_left = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".import");
    assert!(!std::fs::read_dir(other.path(".perfrun/records")).unwrap().any(|entry| is_left(&entry.unwrap())));
    other.run(&["report", other.path(&format!(".perfrun/records/x/{record}")).to_str().unwrap(), "--output", "out"]);
    assert_eq!(other.read("out/results.json"), project.read("out/results.json"));
    // Nothing is replaced.
    let refused = other.run(&["import", archive.to_str().unwrap()]).expect_code(2);
    assert!(refused.stderr.contains("already exists"), "{}", refused.stderr);
    let third = Project::with_spec("another\n");
    let refused = third.run(&["import", archive.to_str().unwrap(), "--files"]).expect_code(2);
    assert!(refused.stderr.contains("x.yaml already exists with different content"), "{}", refused.stderr);
    assert!(!third.path(".perfrun/records/x").exists());
    third.run(&["import", archive.to_str().unwrap()]).expect_code(0);
    third.write("bad", "no archive");
    let refused = third.run(&["import", "bad"]).expect_code(2);
    assert!(refused.stderr.contains("not an archive made by `perfrun export`"), "{}", refused.stderr);
}

fn reproduced(project: &Project, edit: impl FnOnce(&mut Value)) -> Done {
    let mut claimed = results(project, "out/results.json");
    edit(&mut claimed);
    project.write("paper/results.json", &claimed.to_string());
    project.run(&["reproduce", "paper/results.json"])
}

#[test]
fn claims_are_checked_one_by_one() {
    let project = Project::with_spec(SPEC);
    measured(&project, &[]);
    let done = reproduced(&project, |_| {}).expect_code(0);
    assert!(done.stdout.starts_with("x: 5 of 5 claims hold\n"), "{}", done.stdout);
    assert!(done.stdout.contains("one/b1/int8 against fp32"), "{}", done.stdout);
    // Somebody else's machine, and a claim that is not so here.
    let done = reproduced(&project, |claimed| {
        claimed["provenance"]["frame"]["cpu"] = "Z80".into();
        let rows = claimed["comparisons"].as_array_mut().unwrap();
        rows[0]["verdict"] = "worse".into();
        rows[0]["ratio"] = 0.7.into();
        (rows[0]["low"], rows[0]["high"]) = (0.6.into(), 0.8.into());
    })
    .expect_code(4);
    assert!(done.stdout.starts_with("x: 4 of 5 claims hold, 1 does not\n"), "{}", done.stdout);
    assert!(done.stdout.contains("cpu: Z80 ->"), "{}", done.stdout);
    assert!(done.stdout.contains("does not hold"), "{}", done.stdout);
    let done = project.run(&["reproduce", "out", "--json"]).expect_code(0);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(found["claims"].as_array().unwrap().iter().all(|claim| claim["standing"] == "holds"), "{found}");
    let done = project.run(&["reproduce", "out", "--markdown"]).expect_code(0);
    assert!(done.stdout.starts_with("# x: does it hold here?\n\n**5 of 5 claims hold.**\n"), "{}", done.stdout);
}

/// Two variants that are as fast as each other, neither of them the baseline: no row of the report compares them.
#[test]
fn a_set_of_equals_is_checked_by_its_pairs() {
    let spec = |scale: f64| {
        format!(
            "models: [m]\nvariants: [base, {{ name: a, mock: {{ scale: 0.5 }} }}, {{ name: b, mock: {{ scale: {scale} }} }}]\n\
             runs: 12\nbackend: {{ mock: {{ median: 5ms, run_sd: 0.1%, noise: 1% }} }}\n"
        )
    };
    let project = Project::with_spec(&spec(0.5));
    measured(&project, &[]);
    let standing = |done: Done| {
        let line = done.stdout.lines().find(|line| line.starts_with("m/a and m/b")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{}{}", done.stdout, done.stderr))
    };
    let same = standing(reproduced(&project, |_| {}).expect_code(0));
    assert!(same.contains("equivalent") && same.contains("holds"), "{same}");
    // What is measured is what the results contain of their specification.
    let slower = standing(reproduced(&project, |claimed| {
        claimed["provenance"]["subject"]["specification"]["text"] = spec(0.7).into();
    }));
    assert!(slower.contains("not equivalent") && slower.contains("does not hold"), "{slower}");
}

#[test]
fn what_cannot_be_measured_again_is_said_before() {
    let project = Project::with_spec(SPEC);
    measured(&project, &["--quick"]);
    let refused = project.run(&["reproduce", "out"]).expect_code(2);
    assert!(refused.stderr.contains("covers only part of its specification"), "{}", refused.stderr);
    let refused = project.run(&["reproduce", "nothing"]).expect_code(2);
    assert!(refused.stderr.contains("nothing"), "{}", refused.stderr);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("reports/quickstart/results.json")).unwrap();
    project.write("reports/q/results.json", &text);
    let refused = project.run(&["reproduce", "reports/q"]).expect_code(2);
    // Nobody has these models here.
    assert!(refused.stderr.contains("models/*.onnx"), "{}", refused.stderr);
    for model in ["digits-cnn", "digits-mlp"] {
        project.write(&format!("experiments/models/{model}.onnx"), "another");
    }
    std::fs::create_dir_all(project.path("experiments/data")).unwrap();
    std::fs::copy(root.join("experiments/data/digits-test.npz"), project.path("experiments/data/digits-test.npz"))
        .unwrap();
    let refused = project.run(&["reproduce", "reports/q"]).expect_code(2);
    assert!(refused.stderr.contains("differs from the file that was measured"), "{}", refused.stderr);
    assert!(refused.stderr.contains("expected SHA-256"), "{}", refused.stderr);
}

/// What one could choose between, and what outputs are held against, is measured in one record.
#[test]
fn devices_of_a_model_stay_in_one_shard() {
    let spec = "backend: mock\nmodels: [one, two]\ndevices: [cpu, cuda:0]\nvariants: [fp32, int8]\nruns: 5\nchoose: { best: latency }\n";
    let project = Project::with_spec(spec);
    let plan: Value =
        serde_json::from_str(&project.run(&["plan", "x.yaml", "--shard", "1/2", "--json"]).expect_code(0).stdout)
            .unwrap();
    let cells = plan["cells"].as_array().unwrap().iter().filter(|cell| cell["skip"].is_null());
    let measured: Vec<(u64, u64)> =
        cells.map(|cell| (cell["model"].as_u64().unwrap(), cell["device"].as_u64().unwrap())).collect();
    assert_eq!(measured, [(0, 0), (0, 1), (0, 0), (0, 1)]);
}

#[test]
fn a_group_that_two_records_share_is_no_group() {
    let project = Project::with_spec(SPEC);
    let halves = ["variant=fp32", "variant=int8"].map(|only| measured(&project, &["--only", only]));
    let refused = project.run(&["merge", &halves[0], &halves[1]]).expect_code(2);
    assert!(refused.stderr.contains("each measured some of the cells that are compared with"), "{}", refused.stderr);
}

/// The A/A copy is half as fast as its cell in one of two shards.
#[test]
fn a_failed_control_speaks_for_all_of_its_shard() {
    let project = Project::with_spec(SPEC);
    let shards = ["1/2", "2/2"].map(|shard| measured(&project, &["--shard", shard]));
    project.run(&["merge", &shards[0], &shards[1], "--output", "good"]).expect_code(0);
    let good = results(&project, "good/results.json");
    let controls = good["controls"].as_array().unwrap();
    assert_eq!(controls.len(), 2);
    assert!(controls.iter().all(|control| control["cells"].as_array().unwrap().len() == 4), "both groups of a shard");
    // What diff makes of one that failed.
    let mut bad = good.clone();
    bad["controls"][0]["outcome"] = "failed".into();
    for cell in bad["cells"].as_array_mut().unwrap() {
        cell["definition"] = "another".into();
    }
    project.write("bad/results.json", &bad.to_string());
    let diff: Value = serde_json::from_str(&project.run(&["diff", "good", "bad", "--json"]).stdout).unwrap();
    let withheld = diff["experiments"][0]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["metric"] == "latency" && row["reason"]["kind"] == "withheld");
    assert_eq!(withheld.count(), 4, "{diff}");
}

/// The archive of the newest record as somebody packs it who changed what is in its folder.
fn repacked(project: &Project, change: impl FnOnce(&Path)) -> String {
    project.run(&["export", "latest", "a.tar.zst", "--models"]).expect_code(0);
    let unpacked = project.path("unpacked");
    drop(std::fs::remove_dir_all(&unpacked));
    archive::unpack(&project.path("a.tar.zst"), &unpacked).unwrap();
    let top = std::fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    change(&top);
    let files =
        walkdir::WalkDir::new(&top).into_iter().map(|entry| entry.unwrap().into_path()).filter(|it| it.is_file());
    let named =
        |path: PathBuf| (path.strip_prefix(&unpacked).unwrap().display().to_string(), Content::File(path.clone()));
    let content: Vec<(String, Content)> = files.map(named).collect();
    archive::write(&project.path("b.tar.zst"), &content).unwrap();
    project.path("b.tar.zst").display().to_string()
}

#[test]
fn an_archive_puts_nothing_into_the_root_that_the_record_does_not_name() {
    let project = Project::with_spec(SPEC);
    measured(&project, &[]);
    let archive = repacked(&project, |top| std::fs::write(top.join("files/conftest.py"), "import os").unwrap());
    let other = Project::new();
    let refused = other.run(&["import", &archive, "--files"]).expect_code(2);
    assert!(refused.stderr.contains("conftest.py does not belong to the record"), "{}", refused.stderr);
    assert!(!other.path("conftest.py").exists() && !other.path(".perfrun/records/x").exists());
    other.run(&["import", &archive]).expect_code(0);
}

#[test]
fn an_archive_has_the_files_that_its_record_was_made_from_and_errors_name_it() {
    need!(onnxruntime);
    let project = Project::new();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-cnn.onnx");
    std::fs::copy(model, project.path("m.onnx")).unwrap();
    project.write(
        "x.yaml",
        "models: [m.onnx]\ninputs: { batch: 1 }\nruns: 1\nmeasure: { stop: { mode: samples, count: 20 } }\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let refused = |change: &dyn Fn(&Path), said: &str| {
        let archive = repacked(&project, change);
        let other = Project::new();
        let done = other.run(&["import", &archive, "--files"]).expect_code(2);
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said) && !text.contains("scratch"), "{}", done.stderr);
        assert!(!other.path("x.yaml").exists() && !other.path("m.onnx").exists());
    };
    let another =
        |name: &'static str| move |top: &Path| std::fs::write(top.join(name), "commands: [{ shell: evil }]").unwrap();
    refused(&another("files/x.yaml"), "x.yaml in the archive is not the file that its record was made from");
    refused(&another("files/m.onnx"), "m.onnx in the archive is not the file that its record was made from");
    refused(&another("record/cells.parquet"), "b.tar.zst/");
    // A record may name any path: no program is written for it.
    let as_program = |top: &Path| {
        let path = top.join("record/manifest.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("\"path\":\"x.yaml\"", "\"path\":\"conftest.py\"");
        std::fs::write(path, text).unwrap();
        std::fs::rename(top.join("files/x.yaml"), top.join("files/conftest.py")).unwrap();
        std::fs::remove_file(top.join("record/complete.json")).unwrap();
    };
    let archive = repacked(&project, as_program);
    let other = Project::new();
    other.run(&["import", &archive, "--files"]).expect_code(2);
    assert!(!other.path("conftest.py").exists());
    let whole = repacked(&project, |_| {});
    other.run(&["import", &whole, "--files"]).expect_code(0);
    assert!(other.path("x.yaml").exists() && other.path("m.onnx").exists());
}

#[test]
fn commands_of_somebody_else_run_where_that_is_asked() {
    let wrapped = SPEC.replace("variants: [fp32,", "variants: [fp32, { name: wrapped, wrap: [env] },");
    let project = Project::with_spec(&wrapped);
    measured(&project, &[]);
    let refused = project.run(&["reproduce", "out"]).expect_code(2);
    assert!(refused.stderr.contains("run commands or libraries chosen by their author: env"), "{}", refused.stderr);
    project.run(&["reproduce", "out", "--trust"]).expect_code(0);
    let options = "variants: [fp32, { name: o, provider: { qnn: { backend_path: /tmp/x.so, priority: high } }, wrap: [\"a\\nx.yaml: valid\"] },";
    project.write("x.yaml", &SPEC.replace("variants: [fp32,", options));
    let listed = project.run(&["validate", "x.yaml"]).expect_code(0).stdout;
    assert!(listed.contains("author: a x.yaml: valid; backend_path: /tmp/x.so\n"), "{listed}");
}
