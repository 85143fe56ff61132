//! `perfrun diff`: sides, verdicts, gates, pages, and what cannot be compared.

mod branches;
mod first;
mod gates;
mod rates;
mod refused;
mod shown;

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Done, Project, without_settings};

/// Two models, two variants, ten runs of each cell; int8 takes half the time.
const SPEC: &str = "backend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one, two]\nvariants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\n\
runs: 10\nmeasure: { stop: { mode: samples, count: 100 } }\n";

/// A repository with a committed specification and its committed report.
struct Repository(Project);

impl Repository {
    fn new(spec: &str) -> Self {
        let repository = Repository(Project::new());
        repository.0.write("experiments/x.yaml", spec);
        repository.git(&["init", "-q", "-b", "main"]);
        repository.measure();
        repository.commit("first");
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let mut git = Command::new("git");
        let git = without_settings(&mut git).args(author).args(arguments).current_dir(self.0.root());
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn measure(&self) {
        // On a busy machine a later report may have a worse grade than the one that is there.
        self.0.run(&["experiments/x.yaml", "--replace"]).expect_code(0);
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Another specification, measured and committed.
    fn change(&self, from: &str, to: &str) {
        let text = self.0.read("experiments/x.yaml");
        assert!(text.contains(from));
        self.0.write("experiments/x.yaml", &text.replace(from, to));
        self.measure();
    }

    /// Changes the committed results as if another machine or another day had made them.
    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut results: Value = serde_json::from_str(&self.0.read("reports/x/results.json")).unwrap();
        edit(&mut results);
        self.0.write("reports/x/results.json", &results.to_string());
    }

    fn diff(&self, arguments: &[&str]) -> Done {
        self.0.run(&[&["diff"], arguments].concat())
    }

    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let done = self.diff(&[arguments, &["--json"]].concat());
        let diffs: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
        diffs["experiments"][0]["rows"].as_array().unwrap().clone()
    }
}

/// A specification that was renamed keeps its course, whether its old report was moved, removed or left behind.
#[test]
fn a_history_goes_on_under_a_new_name() {
    for old_report in ["mv", "rm", "left"] {
        let repository = Repository::new(SPEC);
        repository.git(&["mv", "experiments/x.yaml", "experiments/y.yaml"]);
        match old_report {
            "mv" => drop(repository.git(&["mv", "reports/x", "reports/y"])),
            "rm" => drop(repository.git(&["rm", "-rq", "reports/x"])),
            _ => {}
        }
        repository.0.run(&["experiments/y.yaml", "--replace"]).expect_code(0);
        repository.commit("another name");
        repository.0.run(&["experiments/y.yaml", "--replace"]).expect_code(0);
        repository.commit("once more");
        let found = repository.0.run(&["history", "y", "--committed", "--json"]).expect_code(0);
        let history: Value = serde_json::from_str(&found.stdout).unwrap();
        let points = history["series"][0]["values"].as_array().unwrap_or_else(|| panic!("{history}"));
        assert_eq!(points.len(), 3, "{old_report}: {history}");
    }
}

#[test]
fn variables_of_the_shell_are_named_where_they_differ() {
    let repository = Repository::new(SPEC);
    let measured = |settings: &[(&str, &str)]| {
        let mut command = repository.0.command(&["experiments/x.yaml"]);
        let done = command.envs(settings.iter().copied()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_str::<Value>(&repository.0.read("reports/x/results.json")).unwrap()
    };
    let with = [("OMP_NUM_THREADS", "3"), ("ORT_EXTRA", "/home/alice/x"), ("SECRET_TOKEN", "hunter2")];
    let variables = measured(&with)["provenance"]["context"]["variables"].clone();
    assert_eq!((&variables["OMP_NUM_THREADS"], &variables["ORT_EXTRA"]), (&json!("3"), &json!("~/x")));
    assert!(variables.get("SECRET_TOKEN").is_none() && variables.get("CUDA_DEVICE_ORDER").is_none(), "{variables}");
    assert!(repository.0.page("reports/x").contains("OMP_NUM_THREADS=3"));
    let said = repository.diff(&[]).expect_code(0);
    let text = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("OMP_NUM_THREADS unset -> 3"), "{text}");
    // Reports of earlier versions do not say: no difference.
    repository.edit(|results| drop(results["provenance"]["context"].as_object_mut().unwrap().remove("variables")));
    let said = repository.diff(&[]).expect_code(0);
    assert!(!said.stdout.contains("OMP_NUM_THREADS"), "{}", said.stdout);
}

/// What is said of the latency of a cell.
fn latency<'a>(rows: &'a [Value], model: &str, variant: &str) -> &'a Value {
    let is_wanted = |row: &&Value| row["model"] == model && row["variant"] == variant && row["metric"] == "latency";
    rows.iter().find(is_wanted).unwrap()
}

#[test]
fn the_last_commit_and_the_working_tree_are_compared_unasked() {
    let repository = Repository::new(SPEC);
    let done = repository.diff(&[]).expect_code(0);
    assert!(done.stdout.contains("working tree"), "{}", done.stdout);
    assert!(done.stdout.contains("same report on both sides"), "{}", done.stdout);
    repository.measure();
    assert!(repository.diff(&[]).expect_code(0).stdout.contains("4 unchanged"));
    repository.change("scale: 0.5", "scale: 0.65");
    let rows = repository.rows(&[]);
    for model in ["one", "two"] {
        assert_eq!(latency(&rows, model, "int8")["verdict"], "worse");
        assert_eq!(latency(&rows, model, "fp32")["reason"]["kind"], "unchanged");
    }
    let change = latency(&rows, "one", "int8")["change"]["value"].as_f64().unwrap();
    assert!((change - 0.3).abs() < 0.03, "{change}");
    let text = repository.diff(&[]).expect_code(0).stdout;
    assert!(text.contains("variants.int8.mock.scale 0.5 -> 0.65"), "{text}");
}

/// Whether what was printed is as its schema says.
fn check_schema(text: &str, schema: &str) {
    let schema = serde_json::from_str(schema).unwrap();
    let printed = serde_json::from_str(text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&printed).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn what_is_printed_for_programs_is_as_its_schema_says() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    repository.commit("slower");
    let schema = judge::diff::schema_text();
    check_schema(&repository.diff(&["HEAD~1", "--gate", "--json"]).expect_code(4).stdout, &schema);
    let history = repository.0.run(&["history", "x", "--json"]).expect_code(0).stdout;
    check_schema(&history, &judge::history::schema_text());
    let reproduction = repository.0.run(&["reproduce", "reports/x", "--json"]).expect_code(0).stdout;
    check_schema(&reproduction, &report::reproduction::schema_text());
}

#[test]
fn revisions_tags_ranges_records_and_paths_are_sides() {
    let repository = Repository::new(SPEC);
    repository.git(&["tag", "v1"]);
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.change("scale: 0.5", "scale: 0.65");
    repository.commit("topic");
    repository.git(&["checkout", "-q", "main"]);
    repository.change("runs: 10", "runs: 11");
    repository.commit("meanwhile");
    let is_slower = |arguments: &[&str]| latency(&repository.rows(arguments), "one", "int8")["verdict"] == "worse";
    assert!(is_slower(&["v1", "topic"]));
    assert!(is_slower(&["git:v1", "git:topic"]));
    assert!(is_slower(&["main...topic"]), "from where they parted");
    let name = repository.git(&["rev-parse", "--short", "v1"]);
    assert!(repository.diff(&["main...topic"]).stdout.contains(&name));
    assert!(!is_slower(&["v1", "main"]));
    repository.git(&["checkout", "-q", "topic", "--", "reports", "experiments"]);
    assert!(is_slower(&["v1", "reports/x"]));
    assert!(is_slower(&["v1", "path:reports/x/results.json"]));
    let mut records: Vec<String> = std::fs::read_dir(repository.0.path(".perfrun/records/x"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let record_of = |name: &str| -> String {
        let shown = repository.git(&["show", &format!("{name}:reports/x/results.json")]);
        serde_json::from_str::<Value>(&shown).unwrap()["record"].as_str().unwrap().to_owned()
    };
    records.sort();
    assert!(records.contains(&record_of("topic")));
    assert!(is_slower(&[&record_of("v1"), &format!("record:{}", record_of("topic"))]));
}

#[test]
fn what_is_no_side_says_what_would_be_one() {
    let repository = Repository::new(SPEC);
    let refused = |arguments: &[&str]| repository.diff(arguments).expect_code(2).stderr;
    assert!(refused(&["nope"]).contains("`nope` is not a revision"));
    assert!(refused(&["--", "-n"]).contains("is not a revision"));
    assert!(refused(&["record:nope"]).contains("no record of that name"));
    assert!(refused(&["path:nope"]).contains("there is no such path"));
    assert!(refused(&["HEAD~5", "HEAD"]).contains("`HEAD~5` is not a revision"));
    assert!(refused(&["--experiment", "y"]).contains("x"));
    assert!(refused(&["--allow", "cpus"]).contains("logical_cpus"));
    assert!(refused(&["--margin", "3"]).contains("write `3%`"), "3 of what?");
    assert!(refused(&["--metric", "latncy"]).contains("latncy"));
    assert!(refused(&["--format", "md,json"]).contains("--output"));
    repository.0.write("reports/x/results.json", "{ \"format\": 3 }");
    assert!(refused(&[]).contains("results.json"));
    let elsewhere = Project::new();
    assert!(elsewhere.run(&["diff"]).expect_code(2).stderr.contains("not a git repository"));
    elsewhere.write("reports/.keep", "");
    assert!(elsewhere.run(&["diff", "reports", "reports"]).expect_code(2).stderr.contains("neither side has a report"));
}

#[test]
fn a_gate_falls_on_what_is_worse_and_holds_on_what_is_not() {
    let gate = "gate: [{ metric: latency, worse_by: 10% }, { metric: peak_rss, worse_by: 10% }]\n";
    let repository = Repository::new(&format!("{SPEC}{gate}"));
    repository.diff(&["--gate"]).expect_code(0);
    repository.change("scale: 0.5", "scale: 0.65");
    repository.diff(&[]).expect_code(0);
    let fell = repository.diff(&["--gate"]).expect_code(4).stdout;
    assert!(fell.contains("gate failed"), "{fell}");
    assert!(fell.contains("slower, gate 10 %"), "{fell}");
    // Beyond the margin of the row, within what the gate allows.
    let wide = repository
        .0
        .read("experiments/x.yaml")
        .replace("worse_by: 10% }, { metric: peak", "worse_by: 90% }, { metric: peak");
    repository.0.write("experiments/x.yaml", &wide);
    repository.measure();
    let holds = repository.diff(&["--gate"]).expect_code(0).stdout;
    assert!(holds.contains("gate passed"), "{holds}");
    assert!(holds.contains("slower, gate 90 % passed"), "{holds}");
}

#[test]
fn a_gate_fails_closed() {
    let repository = Repository::new(SPEC);
    let gated = |why: &str| {
        let done = repository.diff(&["--gate"]).expect_code(4);
        assert!(done.stdout.contains(why), "{why}: {}", done.stdout);
        repository.diff(&["--gate", "--allow-unjudged"]).expect_code(0);
        repository.git(&["checkout", "-q", "--", "."]);
    };
    repository.edit(|results| results["provenance"]["frame"]["cpu"] = json!("another"));
    gated("judged 0 of 4 rows");
    repository.edit(|results| drop(results["cells"].as_array_mut().unwrap().remove(0)));
    gated("judged 3 of 4 rows; gone");
    repository.edit(|results| results["cells"][1]["status"] = json!("failed"));
    gated("judged 3 of 4 rows; failed here");
    repository.edit(|results| {
        results["cells"][1]["status"] = json!("skipped");
        results["cells"][1]["skipped"] = json!({ "code": "device", "reason": "no such device" });
    });
    gated("skipped here: no such device");
    repository.edit(|results| results["measured"]["quick"] = json!(true));
    gated("judged 0 of 4 rows");
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.9"));
    gated("experiments/x.yaml changed since");
    repository
        .0
        .write("experiments/x.yaml", &format!("# a comment changes nothing\n{text}description: nor do words\n"));
    repository.diff(&["--gate"]).expect_code(0);
    std::fs::remove_dir_all(repository.0.path("reports/x")).unwrap();
    repository.0.write("reports/y/.keep", "");
    let done = repository.diff(&["--gate"]).expect_code(4);
    assert!(done.stdout.contains("x: only on the older side, so its gate fails"), "{}", done.stdout);
}

#[test]
fn a_commit_accepts_a_row_and_the_comment_says_so() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    repository.commit("slower\n\nPerfrun-Accept: one/default/int8/cpu latency the new head is worth it");
    let done = repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("accepted: the new head is worth it"), "{}", done.stdout);
    repository.git(&[
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "also\n\nPerfrun-Accept: two/default/int8/cpu latency likewise",
    ]);
    let done = repository.diff(&["HEAD~2", "HEAD", "--gate", "--format", "md"]).expect_code(0);
    assert!(done.stdout.contains("gate passed") && done.stdout.contains("2 accepted by a commit"), "{}", done.stdout);
}

#[test]
fn on_another_machine_speedups_are_compared_instead() {
    let repository = Repository::new(SPEC);
    repository.edit(|results| results["provenance"]["frame"]["cpu"] = json!("another"));
    let done = repository.diff(&["--format", "md"]).expect_code(0).stdout;
    assert!(done.contains("incomparable: different cpu"), "{done}");
    assert!(done.contains("| one/int8 against one/fp32 | 2.0"), "{done}");
    assert!(done.contains("| holds |"), "{done}");
    let allowed = repository.rows(&["--allow", "cpu"]);
    assert_eq!(latency(&allowed, "one", "int8")["reason"]["kind"], "unchanged");
    // Another input concerns the cells of that input alone.
    repository.edit(|results| {
        results["provenance"]["frame"].as_object_mut().unwrap().remove("cpu");
        results["provenance"]["frame"]["inputs"].as_array_mut().unwrap().push(json!({ "name": "b8" }));
    });
    assert_eq!(latency(&repository.rows(&[]), "one", "int8")["reason"]["kind"], "unchanged");
}

#[test]
fn unchanged_cells_are_judged_where_that_is_asked() {
    let repository = Repository::new(SPEC);
    repository.edit(|results| {
        results["provenance"]["context"]["kernel"] = json!("9.9");
        for value in results["cells"][0]["runs"]["latency_ns"].as_array_mut().unwrap() {
            *value = json!(value.as_f64().unwrap() * 1.3);
        }
    });
    assert_eq!(latency(&repository.rows(&[]), "one", "fp32")["verdict"], "equivalent");
    let rows = repository.rows(&["--unchanged"]);
    assert_eq!(latency(&rows, "one", "fp32")["verdict"], "worse");
    let text = repository.diff(&["--unchanged"]).expect_code(0).stdout;
    assert!(text.contains("kernel") && text.contains("-> 9.9"), "{text}");
}

#[test]
fn a_comment_begins_with_its_mark_and_has_room_in_one() {
    let repository = Repository::new(SPEC);
    let mut many = Value::Null;
    repository.edit(|results| {
        let cell = results["cells"][1].clone();
        let cells = results["cells"].as_array_mut().unwrap();
        for index in 0..3000 {
            let mut copy = cell.clone();
            copy["id"] = json!(format!("{index:016x}"));
            copy["variant"] = json!(format!("variant-{index}"));
            cells.push(copy);
        }
        many = results.clone();
    });
    repository.commit("many");
    repository.edit(|results| {
        for cell in results["cells"].as_array_mut().unwrap() {
            cell["definition"] = json!("another");
        }
    });
    let done = repository.diff(&["--format", "md"]).expect_code(0).stdout;
    assert!(done.starts_with("<!-- perfrun diff -->\n### perfrun: "), "{}", &done[..200]);
    assert!(done.len() <= 60_000, "{}", done.len());
    assert!(done.contains("do not fit here"));
    assert!(done.trim_end().ends_with("</details>"));
}

#[test]
fn files_are_written_where_they_are_wanted_and_a_step_summary_where_github_has_one() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    repository.diff(&["--output", "out"]).expect_code(0);
    assert!(repository.0.read("out/diff.md").starts_with("<!-- perfrun diff -->"));
    assert!(repository.0.read("out/diff.html").contains("<!DOCTYPE html>"));
    // What is to be typed is code, not backticks.
    assert!(repository.0.read("out/diff.md").contains("; `--remeasure` measures both sides together"));
    assert!(repository.0.read("out/diff.html").contains("; <code>--remeasure</code> measures both sides together"));
    let json: Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
    assert_eq!(json["format"], 1);
    let mut command = repository.0.command(&["diff"]);
    command.env("GITHUB_STEP_SUMMARY", repository.0.path("summary.md"));
    Done::from(command.output().unwrap()).expect_code(0);
    assert!(repository.0.read("summary.md").contains("2 slower, 2 unchanged"));
}

#[test]
fn test_cases_fail_where_the_gate_does() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    let text = repository.diff(&["--gate", "--format", "junit"]).expect_code(4).stdout;
    assert!(
        text.contains(r#"<testsuite name="perfrun diff" tests="16" failures="2" errors="0" skipped="4">"#),
        "every metric of every cell: {text}"
    );
    let failed = r#"<testcase classname="x.latency" name="one/int8"><failure message=""#;
    assert!(text.contains(failed) && text.contains("slower, gate 2 %"), "{text}");
    let passed = r#"<testcase classname="x.latency" name="one/fp32"><system-out>"#;
    assert!(text.contains(passed) && text.contains(": unchanged</system-out>"), "{text}");
    // Without a gate what is slower fails its case, and not the command.
    let text = repository.diff(&["--format", "junit"]).expect_code(0).stdout;
    assert!(text.contains(failed) && text.contains(": slower\""), "{text}");
}

#[test]
fn a_gate_that_was_written_later_holds_all_the_same() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    let text = repository.0.read("experiments/x.yaml");
    // By the margin of 2 % it falls; by what the specification says now, it holds. Nobody measured again.
    repository.diff(&["--gate"]).expect_code(4);
    repository.0.write("experiments/x.yaml", &format!("{text}gate: [{{ metric: latency, worse_by: 90% }}]\n"));
    repository.diff(&["--gate"]).expect_code(0);
}

#[test]
fn both_sides_are_measured_again_in_turns() {
    let repository = Repository::new(SPEC);
    repository.git(&["tag", "v1"]);
    let text = repository.0.read("experiments/x.yaml");
    // 4 % is below what measurements apart detect on a machine of no grade, and pairs find it.
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.52"));
    repository.commit("slower");
    let done = repository.diff(&["v1", "HEAD", "--remeasure", "--gate"]).expect_code(4);
    assert!(done.stderr.contains("2 of 4 cells changed; 2 the same on both sides"), "{}", done.stderr);
    assert!(done.stdout.contains("gate failed. 2 slower, 2 unchanged"), "{}", done.stdout);
    let rows = repository.rows(&["v1", "HEAD", "--remeasure"]);
    let change = &latency(&rows, "one", "int8")["change"];
    let [value, low, high] = ["value", "low", "high"].map(|key| change[key].as_f64().unwrap());
    assert!((value - 0.04).abs() < 0.01 && low > 0.02 && high < 0.06, "{change}");
    let unchanged = latency(&rows, "two", "fp32");
    assert_eq!((&unchanged["reason"]["kind"], &unchanged["baseline"]), (&json!("unchanged"), &Value::Null));
    assert_eq!(repository.git(&["status", "--porcelain"]), "", "a committed report is not replaced");
    // The other way round it is faster, and no gate falls.
    repository.diff(&["HEAD", "v1", "--remeasure", "--gate"]).expect_code(0);
}

#[test]
fn what_is_wrong_with_a_revision_is_named_by_the_revision() {
    let repository = Repository::new(SPEC);
    let text = repository.0.read("experiments/x.yaml");
    repository.git(&["tag", "v1"]);
    for (from, to, named) in [
        ("runs: ", "rums: ", "╭─[v1~1:experiments/x.yaml:"),
        ("backend: { mock", "backend: { muck", "v1~1:experiments/x.yaml"),
        (
            "models: [one, two]",
            "models: [missing.onnx]",
            "help: paths are relative to the spec's folder, `v1~1:experiments`",
        ),
    ] {
        let broken = if from == "models: [one, two]" {
            "models: [missing.onnx]\nruns: 5\n".to_owned()
        } else {
            text.replace(from, to)
        };
        assert_ne!(broken, text, "{from}");
        repository.0.write("experiments/x.yaml", &broken);
        repository.commit("broken");
        repository.0.write("experiments/x.yaml", &text);
        repository.commit("mended");
        repository.git(&["tag", "-f", "v1"]);
        let said = repository.diff(&["v1~1", "v1", "--remeasure"]).expect_code(2).stderr;
        assert!(said.contains(named) && !said.contains("perfrun-scratch"), "{said}");
    }
}

#[test]
fn a_specification_that_is_a_link_out_of_the_tree_is_named() {
    let repository = Repository::new(SPEC);
    std::os::unix::fs::symlink("/nowhere/y.yaml", repository.0.path("experiments/y.yaml")).unwrap();
    repository.commit("a link");
    repository.git(&["tag", "v1"]);
    let said = repository.diff(&["v1", "v1", "--remeasure"]).expect_code(0).stderr;
    assert!(said.contains("v1:experiments/y.yaml: a link to what the revision does not have"), "{said}");
}

#[test]
fn what_did_not_change_is_not_measured_again() {
    let repository = Repository::new(SPEC);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &format!("# a comment\n{text}"));
    let records = || std::fs::read_dir(repository.0.path(".perfrun/records/x")).unwrap().count();
    let before = records();
    let done = repository.diff(&["--remeasure", "--gate"]).expect_code(0);
    assert!(done.stdout.contains("gate passed. 4 unchanged"), "{}", done.stdout);
    assert_eq!(records(), before);
    repository.0.write("experiments/x.yaml", &text.replace("[one, two]", "[one, three]"));
    let done = repository.diff(&["--remeasure", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("2 gone") && done.stdout.contains("2 new"), "{}", done.stdout);
}

#[test]
fn only_revisions_can_be_measured_again() {
    let repository = Repository::new(SPEC);
    let refused = |arguments: &[&str]| repository.diff(arguments).expect_code(2).stderr;
    assert!(refused(&["reports/x", "HEAD", "--remeasure"]).contains("git revisions"));
    assert!(refused(&["HEAD", "--budget", "1m"]).contains("--remeasure"));
    assert!(refused(&["--remeasure", "--experiment", "y"]).contains("neither side has a specification of `y`"));
}

/// Commits the report with other numbers, as if measured anew: `factors` by which int8 is slower, one a commit.
fn commit_all(repository: &Repository, factors: impl IntoIterator<Item = f64>) {
    let first: Value = serde_json::from_str(&repository.0.read("reports/x/results.json")).unwrap();
    for (index, factor) in factors.into_iter().enumerate() {
        let mut results = first.clone();
        results["measured"]["sessions"] = json!([format!("2030-01-01T00:{index:02}:00Z")]);
        results["provenance"]["context"]["commit"] = json!(format!("{index:040x}"));
        results["record"] = json!(format!("record-{index}"));
        for cell in results["cells"].as_array_mut().unwrap() {
            let factor = if cell["variant"] == "int8" { factor } else { 1.0 };
            for key in ["value", "low", "high"] {
                let latency = &mut cell["metrics"]["latency_ns"][key];
                *latency = json!(latency.as_f64().unwrap() * factor);
            }
        }
        repository.0.write("reports/x/results.json", &results.to_string());
        repository.commit(&format!("report {index}"));
    }
}

#[test]
fn a_history_finds_the_step_and_names_the_commits_around_it() {
    let repository = Repository::new(SPEC);
    let noise = [1.0, 1.003, 0.998, 1.001];
    commit_all(&repository, (0..16).map(|index| noise[index % 4] * if index < 8 { 1.0 } else { 1.1 }));
    let done = repository.0.run(&["history", "x", "--committed"]).expect_code(0);
    assert!(done.stdout.starts_with("x: latency over 17 commits"), "{}", done.stdout);
    let found: Value =
        serde_json::from_str(&repository.0.run(&["history", "x", "--json"]).expect_code(0).stdout).unwrap();
    let series_of = |variant: &str| {
        found["series"].as_array().unwrap().iter().find(|row| row["variant"] == variant).unwrap().clone()
    };
    assert_eq!(series_of("fp32")["changes"], json!([]));
    let change = series_of("int8")["changes"][0].clone();
    assert!((change["ratio"].as_f64().unwrap() - 1.1).abs() < 0.01 && change["is_worse"] == true, "{change}");
    let points = found["points"].as_array().unwrap();
    let name = |index: &Value| points[index.as_u64().unwrap() as usize]["name"].as_str().unwrap();
    let said = format!("in {}..{}", name(&change["after"]), name(&change["at"]));
    assert!(done.stdout.contains(&said), "{said}: {}", done.stdout);
    repository.0.run(&["history", "x", "--only", "variant=int8", "--output", "plots"]).expect_code(0);
    let plots = std::fs::read_dir(repository.0.path("plots")).unwrap().count();
    assert_eq!(plots, 3, "two cells and history.json");
    assert!(repository.0.read("plots/one-default-int8-cpu-latency.svg").contains("+10.0 %"));
    let refused = |arguments: &[&str]| repository.0.run(arguments).expect_code(2).stderr;
    assert!(refused(&["history", "y"]).contains("x"));
    assert!(refused(&["history", "x", "--metric", "build"]).contains("no cell has `build`"));
    assert!(refused(&["history", "x", "--revision", "nope"]).contains("`nope` is not a revision"));
}

#[test]
fn what_sessions_do_is_taken_from_the_history_where_there_is_one() {
    let repository = Repository::new(SPEC);
    let spread = |arguments: &[&str]| {
        let done = repository.diff(&[arguments, &["--json"]].concat()).expect_code(0);
        serde_json::from_str::<Value>(&done.stdout).unwrap()["experiments"][0]["from_history"].clone()
    };
    assert_eq!(spread(&["HEAD"]), 0);
    commit_all(&repository, [1.0, 1.002, 0.999, 1.001, 1.0, 1.001]);
    assert_eq!(spread(&["HEAD~1", "HEAD"]), 4);
    // With a history of a tenth of a percent 5 % is found, which no grade would.
    repository.edit(|results| {
        for cell in results["cells"].as_array_mut().unwrap() {
            cell["definition"] = json!("another");
            for value in cell["runs"]["latency_ns"].as_array_mut().unwrap() {
                *value = json!(value.as_f64().unwrap() * 1.05);
            }
        }
    });
    assert_eq!(latency(&repository.rows(&["HEAD"]), "one", "fp32")["verdict"], "worse");
}

#[test]
fn git_bisect_is_told_what_a_commit_is() {
    let repository = Repository::new(SPEC);
    repository.git(&["tag", "good"]);
    let text = repository.0.read("experiments/x.yaml");
    let bisect_ends_with = |code: i32| repository.diff(&["good", "--remeasure", "--bisect"]).expect_code(code);
    bisect_ends_with(0);
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.6"));
    bisect_ends_with(1);
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.4"));
    bisect_ends_with(0);
    repository.0.write("experiments/x.yaml", &text.replace("runs: 10", "runs: 3").replace("scale: 0.5", "scale: 0.6"));
    bisect_ends_with(125);
    repository.0.write("experiments/x.yaml", "models: [");
    bisect_ends_with(129);
    repository.diff(&["nope", "--bisect"]).expect_code(129);
}

#[test]
fn a_gate_without_anything_to_compare_with_passes_and_bisect_cannot_tell() {
    let repository = Repository::new(SPEC);
    repository.git(&["rm", "-rq", "reports"]);
    repository.commit("no report");
    repository.git(&["checkout", "-q", "HEAD~1", "--", "reports"]);
    repository.commit("again");
    let done = repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(0);
    assert!(done.stdout.contains("x: only on the newer side"), "{}", done.stdout);
    assert!(done.stdout.contains("nothing to compare yet"), "{}", done.stdout);
    // The other way round something is gone.
    repository.diff(&["HEAD", "HEAD~1", "--gate"]).expect_code(4);
    repository.diff(&["HEAD", "HEAD~1", "--gate", "--allow-unjudged"]).expect_code(0);
    repository.diff(&["HEAD~1", "HEAD", "--bisect"]).expect_code(125);
}

#[test]
fn a_gate_on_some_cells_misses_those_that_are_gone_and_keeps_to_the_strictest() {
    let gates =
        "gate: [{ metric: latency, worse_by: 900% }, { metric: latency, worse_by: 5%, where: { variant: int8 } }]\n";
    let repository = Repository::new(&format!("{SPEC}{gates}"));
    repository.edit(|results| results["cells"].as_array_mut().unwrap().retain(|cell| cell["variant"] != "int8"));
    let done = repository.diff(&["--gate"]).expect_code(4);
    assert!(done.stdout.contains("judged 2 of 4 rows; gone"), "{}", done.stdout);
    repository.git(&["checkout", "-q", "--", "."]);
    repository.change("scale: 0.5", "scale: 0.65");
    let done = repository.diff(&["--gate"]).expect_code(4);
    assert!(done.stdout.contains("slower, gate 5 %"), "{}", done.stdout);
    repository.diff(&["--fail-on", "undecided"]).expect_code(4);
    // A gate that a commit takes away holds once more.
    let text = repository.0.read("experiments/x.yaml").replace(gates, "gate: [{ metric: peak_rss, worse_by: 5% }]\n");
    repository.0.write("experiments/x.yaml", &text);
    repository.diff(&["--gate"]).expect_code(4);
}

#[test]
fn a_gate_on_what_nobody_measures_falls() {
    let repository = Repository::new(&format!(
        "{SPEC}gate: [{{ metric: latency, worse_by: 5% }}, {{ metric: device_memory, worse_by: 5% }}]\n"
    ));
    let done = repository.diff(&["--gate"]).expect_code(4);
    assert!(done.stdout.contains("no row has device_memory"), "{}", done.stdout);
    repository.edit(|results| results["rules"]["gates"][1]["metric"] = json!("of_a_later_version"));
    assert!(repository.diff(&["--gate"]).expect_code(4).stdout.contains("no row has"));
}

#[test]
fn a_report_is_that_of_its_own_folder_and_of_the_specification_that_is_there() {
    let repository = Repository::new(SPEC);
    // A report deeper down is none.
    repository.0.write("reports/old/x/results.json", &repository.0.read("reports/x/results.json"));
    repository.commit("a copy");
    repository.change("scale: 0.5", "scale: 0.65");
    repository.commit("slower");
    repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(4);
    repository.git(&["mv", "experiments/x.yaml", "experiments/renamed.yaml"]);
    repository.commit("renamed");
    let done = repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(0);
    assert!(done.stdout.contains("same report on both sides"), "{}", done.stdout);
    repository.git(&["rm", "-q", "experiments/renamed.yaml"]);
    repository.commit("gone");
    let done = repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("experiments/x.yaml changed since"), "{}", done.stdout);
}

#[test]
fn cells_that_are_fed_otherwise_are_not_passed_over_when_measured_again() {
    let repository = Repository::new(&format!(
        "{SPEC}inputs: [{{ name: one, shapes: {{ x: [1, 3] }} }}]\ngate: [{{ metric: peak_rss, worse_by: 5% }}]\n"
    ));
    repository.diff(&["--remeasure", "--gate"]).expect_code(0);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("[1, 3]", "[8, 3]"));
    let done = repository.diff(&["--remeasure", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("incomparable: different inputs"), "{}", done.stdout);
    repository.0.write("experiments/x.yaml", &text.replace("models: [one, two]", "model: [one, two]"));
    repository.diff(&["--remeasure", "--gate"]).expect_code(4);
}

#[test]
fn names_from_a_file_move_no_cursor() {
    let repository = Repository::new(SPEC);
    repository.edit(|results| results["cells"][1]["variant"] = json!("int8\u{1b}[2J\nx"));
    for format in [&["--all"][..], &["--format", "md"][..]] {
        let done = repository.diff(format).expect_code(2);
        let said = done.stdout + &done.stderr;
        assert!(!said.contains('\u{1b}') && said.contains("is not a name"), "{said}");
    }
}

#[test]
fn rules_that_no_specification_has_are_damage() {
    let repository = Repository::new(SPEC);
    for margin in [json!(1e308), json!(-1), json!(0)] {
        repository.edit(|results| results["rules"]["margin"] = margin.clone());
        let said = repository.diff(&["--all"]).expect_code(2).stderr;
        assert!(said.contains("stands in its rules"), "{said}");
    }
}

/// SHA-256 of `a`.
const OF_A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

#[test]
fn data_and_files_of_variants_are_those_that_were_measured() {
    let repository = Repository::new(SPEC);
    repository.0.write("experiments/d.npz", "a");
    repository.0.write("experiments/own.onnx", "a");
    repository.edit(|results| {
        let subject = &mut results["provenance"]["subject"];
        subject["datasets"] = json!([{ "model": "one", "path": "experiments/d.npz", "sha256": OF_A, "items": 1 }]);
        let origin = json!({ "path": "experiments/own.onnx" });
        subject["files"] = json!([{ "model": "two", "variant": "int8", "origin": origin, "sha256": OF_A }]);
    });
    repository.commit("measured");
    let stale = |rows: &[Value]| {
        let is_stale = |row: &&Value| row["metric"] == "latency" && row["reason"]["kind"] == "stale";
        rows.iter().filter(is_stale).map(|row| format!("{}/{}", row["model"], row["variant"])).collect::<Vec<_>>()
    };
    assert!(stale(&repository.rows(&[])).is_empty());
    repository.0.write("experiments/own.onnx", "b");
    assert_eq!(stale(&repository.rows(&[])), [r#""two"/"int8""#]);
    repository.0.write("experiments/d.npz", "b");
    repository.commit("others");
    assert_eq!(stale(&repository.rows(&["HEAD~1", "HEAD"])).len(), 3);
    // A report by its path lies next to the same files; a copy elsewhere does not.
    assert_eq!(stale(&repository.rows(&["HEAD~1", "reports/x"])).len(), 3);
    repository.0.write("copy.json", &repository.0.read("reports/x/results.json"));
    assert!(stale(&repository.rows(&["HEAD~1", "copy.json"])).is_empty());
}

#[test]
fn models_that_nobody_measured_are_named() {
    let repository = Repository::new(SPEC);
    repository.edit(|results| {
        let model = json!([{ "name": "one", "path": "one", "sha256": OF_A }]);
        results["provenance"]["subject"]["models"] = model;
    });
    let done = repository.diff(&["HEAD"]).expect_code(0);
    let text = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("working tree has models that were never measured: two"), "{text}");
}

#[test]
fn links_of_the_repository_are_followed() {
    let repository = Repository::new(SPEC);
    let link = repository.0.path("reports/linked/results.json");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../x/results.json", &link).unwrap();
    repository.commit("a link");
    repository.diff(&["HEAD~1", "HEAD"]).expect_code(0);
}

#[test]
fn results_with_a_cell_twice_are_damaged() {
    let repository = Repository::new(SPEC);
    repository.edit(|results| {
        let first = results["cells"][0].clone();
        results["cells"].as_array_mut().unwrap().push(first);
    });
    let done = repository.diff(&["HEAD"]).expect_code(2);
    assert!(done.stderr.contains("listed twice"), "{}", done.stderr);
}

#[test]
fn the_gates_of_a_commit_are_read_with_its_own_models() {
    let repository = Repository(Project::new());
    repository.0.write("models/one.onnx", "a model");
    repository.0.write("experiments/x.yaml", &SPEC.replace("[one, two]", "../models/*.onnx"));
    repository.git(&["init", "-q", "-b", "main"]);
    repository.measure();
    repository.commit("first");
    repository.change("scale: 0.5", "scale: 0.65");
    repository.commit("slower");
    repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(4);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &format!("{text}gate: [{{ metric: latency, worse_by: 90% }}]\n"));
    repository.commit("slower is meant");
    // What stands in the working tree is of no account.
    std::fs::remove_dir_all(repository.0.path("models")).unwrap();
    repository.diff(&["HEAD~2", "HEAD", "--gate"]).expect_code(0);
}
