//! results.json for other programs: its schema, its size, earlier formats, and the commands of its reference.

use std::path::{Path, PathBuf};

use base::metric::MetricReference;
use experiment::{Axis, Grade};
use judge::results::{self, Cell, Status};
use plan::SkipKind;
use serde_json::{Value, json};
use spec::explain::explain;

use crate::check_it_yourself::{ask, python};
use crate::need::need;
use crate::site::git;
use crate::support::Project;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn committed() -> Vec<PathBuf> {
    let reports = std::fs::read_dir(root().join("reports")).unwrap();
    let files: Vec<PathBuf> =
        reports.map(|report| report.unwrap().path().join(results::FILE)).filter(|file| file.is_file()).collect();
    assert!(!files.is_empty());
    files
}

/// Two variants over ten runs, one device that is not there.
fn measured() -> Project {
    let project = Project::with_spec(
        "backend: { mock: { run_sd: 1%, noise: 4% } }\nmodels: [one, two]\nvariants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\n\
         runs: 10\nmeasure: { stop: { mode: samples, count: 5000 } }\ngoals: [{ name: fast, metric: latency, max: 1s }]\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    project
}

#[test]
fn every_committed_report_is_valid_by_the_schema() {
    let schema: Value = serde_json::from_str(&results::schema_text()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for file in committed() {
        let value: Value = serde_json::from_str(&results::read(&file).unwrap().to_json()).unwrap();
        let problems: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(problems, [""; 0], "{}", file.display());
        assert_eq!(value["format"], results::FORMAT, "{}", file.display());
    }
}

#[test]
fn a_measured_cell_takes_3500_bytes_and_a_hundred_a_run_at_most() {
    for file in committed() {
        let text = std::fs::read_to_string(&file).unwrap();
        let read = results::parse(&file, &text).unwrap();
        let (_, rows) = text.split_once("\n \"cells\": [\n").unwrap();
        let rows: Vec<&str> = rows.split("\n ],").next().unwrap().split("\n {").collect();
        assert_eq!(rows.len(), read.cells.len(), "{}", file.display());
        // A profile has a row for each operator and node.
        let is_plain = |cell: &Cell| cell.status == Status::Measured && cell.profile.is_none();
        for (cell, text) in read.cells.iter().zip(rows).filter(|(cell, _)| is_plain(cell)) {
            let runs = cell.runs["block"].len();
            assert!(runs >= 8);
            assert!(
                text.len() <= 3500 + 100 * runs,
                "{} {} {}: {} bytes",
                file.display(),
                cell.names[Axis::Models],
                cell.names[Axis::Variants],
                text.len()
            );
        }
    }
}

/// A report of the last format says the same numbers in today's.
#[test]
fn reports_of_format_2_are_read() {
    let mut read = 0;
    for path in committed() {
        let old: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if old["format"] != 2 {
            continue;
        }
        let found = results::read(&path).unwrap();
        assert_eq!((found.format, found.cells.len()), (results::FORMAT, old["cells"].as_array().unwrap().len()));
        for (cell, old) in found.cells.iter().zip(old["cells"].as_array().unwrap()) {
            assert_eq!(cell.id.to_string(), old["id"].as_str().unwrap());
            for (name, metric) in &cell.metrics {
                assert_eq!(Some(metric.value), old["metrics"][name]["value"].as_f64());
            }
            assert_eq!(cell.completed as usize, old["runs"]["block"].as_array().map_or(0, Vec::len));
        }
        for (row, old) in found.comparisons.iter().zip(old["comparisons"].as_array().unwrap()) {
            assert_eq!(
                (row.verdict.name(), Some(row.ratio)),
                (old["verdict"].as_str().unwrap().replace("inconclusive", "undecided").as_str(), old["ratio"].as_f64())
            );
            assert_eq!(row.detectable, old["details"]["detectable"].as_f64());
        }
        assert_eq!(found.detectable_effect.grade.map(Grade::letter), old["sight"]["grade"].as_str());
        // What is read once is of today's format from then on.
        assert_eq!(results::parse(&path, &found.to_json()).unwrap(), found);
        read += 1;
    }
    assert!(read > 0);
}

#[test]
fn what_is_no_results_file_is_told() {
    let message = |text: &str| results::parse(Path::new("r.json"), text).unwrap_err().to_string();
    assert_eq!(message(r#"{ "format": 4 }"#), "r.json has format 4; this perfrun reads up to 3");
    assert!(message(r#"{ "format": 3 }"#).starts_with("r.json is damaged: missing field"));
    assert!(message(r#"{ "format": 2 }"#).starts_with("r.json is damaged: "));
    assert_eq!(message(r#"{ "format": 1 }"#), "r.json is of a format that is no longer read: format 1");
    for text in ["[]", "[1]", "[2]", "[3]", "2"] {
        assert!(message(text).starts_with("r.json is damaged: "), "{text}");
    }
}

/// Whichever command reads a committed file of an old format says that it is old, not that it is damaged.
#[test]
fn every_command_says_that_a_format_is_no_longer_read() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 2\n");
    project.write("reports/x/results.json", r#"{ "format": 1, "experiment": "x" }"#);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "one"]);
    let commands: [&[&str]; 7] = [
        &["diff"],
        &["diff", "path:reports/x", "path:reports/x"],
        &["history", "x"],
        &["report", "reports/x"],
        &["site", "out"],
        &["reproduce", "reports/x/results.json"],
        &["clean", "--yes"],
    ];
    for arguments in commands {
        let done = project.run(arguments);
        let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("is of a format that is no longer read: format 1"), "{arguments:?}: {said}");
        assert!(!said.contains("damaged"), "{arguments:?}: {said}");
        // What is left out of several is named, and what ends a command says what to do.
        assert!(arguments[0] == "site" || said.contains("measure it again"), "{arguments:?}: {said}");
    }
}

#[test]
fn controls_goals_and_skips_are_data() {
    let project = Project::with_spec(
        "backend: { mock: { run_sd: 1% } }\nmodels: [one]\nvariants: [a, { name: b, mock: { fail: { kind: crash, at: measure, runs: [1] } } }]\n\
         runs: 8\ngoals: [{ name: quick, metric: latency, max: 1ns }]\n",
    );
    project.run(&["x.yaml", "--output", "r"]).expect_code(4);
    let found = results::read(&project.path("r/results.json")).unwrap();
    let control = &found.controls[0];
    assert_eq!((found.controls.len(), control.runs["latency_ns"].len(), control.runs["block"].len()), (1, 8, 8));
    assert!(found.detectable_effect.grade.is_some());
    let goal = &found.goals[0];
    assert_eq!((goal.name.as_deref(), goal.outcome.name(), goal.check.cells.len()), (Some("quick"), "missed", 2));
    let failed = &found.cells[1];
    assert_eq!((failed.status, failed.failures[0].runs), (Status::Partial, 1));
    assert_eq!(failed.runs["block"], [0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(Some));
    project.run(&["x.yaml", "--only", "variant=a", "--output", "part"]).expect_code(4);
    let part = results::read(&project.path("part/results.json")).unwrap();
    let skipped = part.cells[1].skipped.as_ref().unwrap();
    assert_eq!((part.cells[1].status, skipped.code), (Status::Skipped, SkipKind::Selection));
    assert_eq!(part.measured.restrictions, ["--only variant=a"]);
}

/// The blocks of the reference: a line of a shell, three of Python, a query.
#[test]
fn the_commands_of_the_reference_do_what_they_say() {
    let packages = need!(duckdb);
    let project = measured();
    let folder = project.path("reports/x");
    let read = results::read(&folder.join(results::FILE)).unwrap();
    let int8 = read.cells.iter().filter(|cell| cell.names[Axis::Variants] == "int8");
    let expected: Vec<f64> = int8.map(|cell| cell.metrics["latency_ns"].value).collect();
    let reference = std::fs::read_to_string(root().join("docs/reference/results.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = reference.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let shell = block("sh");
    let filter = shell.strip_prefix("jq '").and_then(|rest| rest.strip_suffix("' results.json")).unwrap();
    let jq = "import jq, json, sys; print(json.dumps(jq.compile(sys.argv[1]).input_text(open('results.json').read()).all()))";
    let found = python(&["-c", jq, filter], &folder, Some(packages)).unwrap();
    assert_eq!(serde_json::from_str::<Vec<f64>>(&found).unwrap(), expected);
    let found = python(&["-c", &block("python")], &folder, None).unwrap();
    let latency = |cell: &results::Cell| {
        format!(
            "('{}', '{}', {})",
            cell.names[Axis::Models],
            cell.names[Axis::Variants],
            spelt(cell.metrics["latency_ns"].value)
        )
    };
    assert_eq!(found.trim(), format!("[{}]", read.cells.iter().map(latency).collect::<Vec<_>>().join(", ")));
    let rows = ask(packages, &folder, &block("sql"));
    assert_eq!(rows.len(), read.cells.len());
    let last = rows.last().unwrap();
    assert_eq!((last[0].as_str(), last[2].as_str()), (Some("two"), Some("int8")));
    assert!((last[3].as_f64().unwrap() * 1e6 / expected[1] - 1.0).abs() < 1e-9);
}

/// As Python prints a number of the file.
fn spelt(value: f64) -> String {
    value.to_string()
}

/// A report cannot be made again from what it leaves out.
#[test]
fn results_are_not_replaced_by_what_is_read_from_them() {
    let project = Project::new();
    let old = std::fs::read_to_string(root().join("tests/fixtures/results/format2.json")).unwrap();
    project.write("r/results.json", &old);
    let refused = project.run(&["report", "r", "--format", "json"]).expect_code(2);
    assert!(refused.stderr.contains("would be overwritten"), "{}", refused.stderr);
    project.run(&["report", "r", "--format", "json", "--output", "new"]).expect_code(0);
    assert_eq!(project.read("r/results.json"), old);
    assert!(project.read("new/results.json").starts_with("{\n \"format\": 3,"));
}

/// What is of a later version, or damaged, may be worth more than what is measured now.
#[test]
fn a_report_that_cannot_be_read_is_not_replaced() {
    let project = Project::with_spec("backend: { mock: {} }\nmodels: [m]\nruns: 2\n");
    project.write("reports/x/results.json", "{ \"format\": 9 }");
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("cannot be read (") && done.stderr.contains(" and is kept; "), "{}", done.stderr);
    assert_eq!(project.read("reports/x/results.json"), "{ \"format\": 9 }");
    project.run(&["x.yaml", "--replace"]).expect_code(0);
    assert!(project.read("reports/x/results.json").contains("\"format\": 3,"));
}

#[test]
fn the_tidy_table_has_a_row_for_each_cell_and_metric() {
    let project = measured();
    let done = project.run(&["report", "reports/x", "--format", "csv,parquet", "--output", "out"]).expect_code(0);
    assert!(done.stdout.contains("out/results.csv  results.parquet"), "{}", done.stdout);
    let csv = project.read("out/results.csv");
    assert!(
        csv.starts_with(
            "experiment,cell,model,input,variant,device,runtime,metric,value,low,high,supported,n,usable,codes,\
             other_load,verdict,withheld\n"
        ),
        "{csv}"
    );
    let documented = judge::results::reference_markdown();
    for column in csv.lines().next().unwrap().split(',') {
        assert!(documented.contains(&format!("`{column}`")), "{column} in docs/reference/results.md");
        explain(column).unwrap();
    }
    let results = results::read(&project.path("reports/x/results.json")).unwrap();
    let rows: usize = results.cells.iter().map(|cell| cell.metrics.len()).sum();
    assert_eq!(csv.lines().count(), rows + 1);
    let row =
        csv.lines().find(|line| line.contains(",two,") && line.contains(",int8,") && line.contains(",latency_ns,"));
    let latency = &results.cells[3].metrics["latency_ns"];
    let judged = results
        .comparisons
        .iter()
        .find(|row| row.cell == results.cells[3].id && row.metric == MetricReference::LATENCY)
        .unwrap();
    let numbers = format!(
        "{},{},{},true,10,true,,,{},",
        latency.value,
        latency.low.unwrap(),
        latency.high.unwrap(),
        judged.verdict.name()
    );
    assert!(row.unwrap().ends_with(&numbers), "{row:?} and {numbers}");
    let table = table::Table::read_parquet(&project.path("out/results.parquet")).unwrap();
    assert_eq!(table.height(), rows);
    // The same from the record.
    let record = project.record_folder("x");
    project.run(&["report", record.to_str().unwrap(), "--format", "csv", "--output", "again"]).expect_code(0);
    assert_eq!(project.read("again/results.csv"), csv);
    // The same from the results alone, but for distributions.
    let done = project.run(&["report", "reports/x", "--format", "html,csv", "--output", "pages"]).expect_code(0);
    assert!(done.stderr.contains("has no samples"), "{}", done.stderr);
    assert_eq!(project.read("pages/results.csv"), csv);
    // A page with distributions is not replaced by one without.
    let page = project.page("reports/x");
    let done = project.run(&["report", "reports/x", "--format", "html,csv"]).expect_code(0);
    assert!(done.stderr.contains("reports/x/report.html is kept"), "{}", done.stderr);
    let done = project.run(&["report", "reports/x", "--format", "html"]).expect_code(2);
    assert!(done.stderr.contains("may have distributions"), "{}", done.stderr);
    assert_eq!(project.page("reports/x"), page);
}

#[test]
fn the_tidy_table_says_what_weakens_a_number_and_its_verdict() {
    let project = measured();
    let mut file: Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let cell = &mut file["cells"][3];
    let completed = cell["completed"].clone();
    cell["other_load"] = json!({ "runs": completed, "cores": 0.5 });
    cell["codes"] = json!({ "W_STEAL": { "severity": "warn" }, "E_NON_FINITE": { "severity": "invalid" } });
    let id = cell["id"].clone();
    for row in file["comparisons"].as_array_mut().unwrap().iter_mut().filter(|row| row["cell"] == id) {
        row["reason"] = json!("control_failed");
    }
    project.write("r/results.json", &file.to_string());
    project.run(&["report", "r", "--format", "csv"]).expect_code(0);
    let csv = project.read("r/results.csv");
    let row = csv.lines().find(|line| line.contains(id.as_str().unwrap()) && line.contains(",latency_ns,")).unwrap();
    assert!(row.contains(",true,10,false,E_NON_FINITE W_STEAL,0.5,") && row.ends_with(",control_failed"), "{row}");
}

#[test]
fn numbers_that_nothing_measures_are_damage_with_their_place() {
    let project = measured();
    let file: Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    for (pointer, value, problem) in [
        (
            "/cells/0/metrics/latency_ns/value",
            json!(-5.0),
            "cells[0].metrics.latency_ns.value is -5.0; it cannot be negative",
        ),
        (
            "/cells/1/metrics/peak_rss_bytes/value",
            json!(1e300),
            "cells[1].metrics.peak_rss_bytes.value is 1e+300; nothing is that large",
        ),
        (
            "/cells/0/metrics/latency_ns/low",
            json!(1e12),
            "cells[0].metrics.latency_ns has the interval 1000000000000.0 to ",
        ),
        ("/cells/3/runs/latency_p95_ns/2", json!(-1), "cells[3].runs.latency_p95_ns[2] is -1.0; "),
        ("/comparisons/1/ratio", json!(0), "comparisons[1].ratio is 0.0, which nothing measures"),
        ("/comparisons/0/high", json!(0.001), "comparisons[0] has the interval "),
        ("/controls/0/ratio", json!(-1), "controls[0].ratio is -1.0, which nothing measures"),
    ] {
        let mut file = file.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        project.write("r/results.json", &file.to_string());
        let done = project.run(&["report", "r", "--output", "out"]).expect_code(2);
        let said = done.stderr.replace("\n  │ ", " ");
        assert!(said.contains(&format!("results.json is damaged: {problem}")), "{said}");
        assert!(!project.path("out").exists());
    }
}

#[test]
fn what_is_said_about_cells_that_were_taken_out_is_left_out_with_a_notice() {
    let project = measured();
    let mut file: Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let gone = file["cells"].as_array_mut().unwrap().remove(1)["id"].clone();
    project.write("r/results.json", &file.to_string());
    let results = results::read(&project.path("r/results.json")).unwrap();
    assert_eq!(results.comparisons.len() * 2, file["comparisons"].as_array().unwrap().len());
    project.run(&["report", "r", "--format", "md,html,latex,junit"]).expect_code(0);
    for page in ["report.md", "report.html", "results.tex", "results.junit.xml"] {
        assert!(!project.read(&format!("r/{page}")).contains(gone.as_str().unwrap()), "{page}");
    }
    let notice = "Left out: what results.json says about a cell that is not in it.";
    assert!(project.read("r/report.md").contains(notice) && project.page("r").contains(notice));
}
