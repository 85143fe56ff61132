//! What stands in which file of a record.

use std::path::Path;

use record::{PassFindings, Record, RunKind};

use crate::accuracy::scored;
use crate::designs::begin_in;
use crate::support::{Done, Project};

#[test]
fn the_manifest_is_written_once_and_the_rest_stands_beside_it() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\nbudget: 1h\n");
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    let record = Record::open(&folder).unwrap();
    assert!(record.manifest.write(&folder).is_err(), "what is there stays");
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    for later in ["\"sessions\"", "\"budget\":{\"limit\"", "\"complete\"", "\"iterations\"", "\"fidelity\":["] {
        assert!(!text.split_whitespace().collect::<String>().contains(later), "{later} was not known then");
    }
    for name in ["sessions.json", "budget.json", "complete.json", "passes/rehearsal.json", "passes/outputs.json"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let content: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["format"], record::FORMAT, "{name}");
        std::fs::write(folder.join(name), text.replacen("\"format\": ", "\"format\": 9", 1)).unwrap();
        assert!(Record::open(&folder).unwrap_err().to_string().contains("has format 9"), "{name}");
        std::fs::write(folder.join(name), text).unwrap();
    }
    assert_eq!(Record::open(&folder).unwrap(), record);
    // Without them it is the same record, of which nothing is known but its plan.
    for name in ["budget.json", "passes/rehearsal.json", "passes/outputs.json"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let text = std::fs::read_to_string(folder.join("complete.json")).unwrap();
    let mut content: serde_json::Value = serde_json::from_str(&text).unwrap();
    content.as_object_mut().unwrap().remove("sha256");
    std::fs::write(folder.join("complete.json"), content.to_string()).unwrap();
    let invocations = record.manifest.findings.invocations.clone();
    let left = PassFindings { invocations, complete: true, ..PassFindings::default() };
    assert_eq!(Record::open(&folder).unwrap().manifest.findings, left);
}

/// A record that has begun, with what the passes of another one found; `change` is done to the text of each file.
fn resumed(project: &Project, change: impl Fn(&str, String) -> Option<String>) -> (Record, String) {
    project.run(&["x.yaml"]).expect_code(0);
    let whole = project.record_folder("x");
    let found: Vec<(String, String)> = std::fs::read_dir(whole.join("passes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    std::fs::remove_dir_all(whole).unwrap();
    let folder = begin_in(project);
    std::fs::create_dir(folder.join("passes")).unwrap();
    for (name, text) in found {
        if let Some(text) = change(&name, text) {
            std::fs::write(folder.join("passes").join(format!("{name}.json")), text).unwrap();
        }
    }
    let said = project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0).stderr;
    (Record::open(&folder).unwrap(), said)
}

#[test]
fn a_record_goes_on_with_the_variables_that_it_began_with() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 2\n");
    let folder = begin_in(&project);
    let resume = ["run", "--resume", folder.to_str().unwrap()];
    let mut command = project.command(&resume);
    let refused = Done::from(command.env("MKL_NUM_THREADS", "3").output().unwrap()).expect_code(2);
    assert!(refused.stderr.contains("MKL_NUM_THREADS (unset -> 3) has changed"), "{}", refused.stderr);
    // Which device a scheduler gives is not of that kind.
    let mut command = project.command(&resume);
    Done::from(command.env("CUDA_VISIBLE_DEVICES", "1").output().unwrap()).expect_code(0);
}

#[test]
fn a_rehearsal_that_is_over_is_not_repeated() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    let change = |_: &str, text: String| Some(text.replace("1\n  ]", "3\n  ]"));
    let (record, _) = resumed(&project, change);
    assert_eq!(record.manifest.iterations(), [3]);
    assert!(record.runs.iter().all(|run| run.kind != RunKind::Rehearsal && run.iterations == 3));
}

#[test]
fn outputs_that_were_compared_are_not_compared_again() {
    let spec = "backend: mock\nmodels: [m]\nvariants: [a, { name: b, mock: { differ: 0.1% } }]\nruns: 2\n";
    let project = Project::with_spec(spec);
    let (record, _) = resumed(&project, |name, text| {
        (name == "outputs").then(|| text.replace("\"input_sets\": ", "\"input_sets\": 70"))
    });
    assert!(record.manifest.fidelity().iter().all(|known| known.fidelity.input_sets >= 700), "{record:?}");
    assert!(record.runs.iter().any(|run| run.kind == RunKind::Rehearsal) && !record.folder.join("outputs").exists());
}

#[test]
fn data_that_were_run_over_are_not_run_over_again() {
    let (record, said) = resumed(&scored("runs: 2\n"), |name, text| {
        (name == "accuracy").then(|| text.replace("\"items\": 200", "\"items\": 199"))
    });
    assert!(!said.contains("\naccuracy "), "{said}");
    assert_eq!(record.manifest.accuracy().iter().map(|known| known.items).collect::<Vec<_>>(), [199; 3]);
}

#[test]
fn a_machine_that_was_good_enough_is_not_asked_again() {
    let spec = "backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\nrequire: { grade: C }\n";
    let project = Project::with_spec(spec);
    let (record, said) = resumed(&project, |name, text| (name == "requirements").then_some(text));
    assert!(!said.contains("\nrequire "), "{said}");
    assert!(record.manifest.findings.requirements.is_some());
    std::fs::remove_dir_all(&record.folder).unwrap();
    let said = project.run(&["x.yaml"]).expect_code(0).stderr;
    assert!(said.contains("\nrequire "), "asked where it was not yet: {said}");
}

/// `perfrun report` of a record says that a file of it is damaged, and why.
fn refused(project: &Project, folder: &Path, expected: &str) {
    let said = project.run(&["report", folder.to_str().unwrap()]).expect_code(2).stderr;
    // Lines are folded at the terminal's width.
    let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(said.contains(expected) && !said.contains("panicked"), "{expected}: {said}");
}

#[test]
fn a_flipped_bit_of_a_table_is_told_with_the_tables_name() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    for table in ["cells.parquet", "metrics.parquet", "runs.parquet", "samples.parquet"] {
        let path = folder.join(table);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x10;
        std::fs::write(&path, flipped).unwrap();
        refused(&project, &folder, &format!("{table} is damaged: its SHA-256 is not the one in complete.json"));
        std::fs::write(path, whole).unwrap();
    }
    project.run(&["report", folder.to_str().unwrap()]).expect_code(0);
}

#[test]
fn a_table_of_a_record_without_sums_does_not_panic_whatever_it_holds() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    std::fs::write(folder.join("complete.json"), "{\"format\": 2}").unwrap();
    let path = folder.join("runs.parquet");
    let whole = std::fs::read(&path).unwrap();
    // The footer describes the columns: what is wrong there made polars panic.
    let refusals = (0..512).filter(|&step| {
        let mut flipped = whole.clone();
        let at = whole.len() - 9 - step * (whole.len() - 16) / 512;
        flipped[at] ^= 1 << (step % 8);
        std::fs::write(&path, flipped).unwrap();
        Record::open(&folder).is_err_and(|error| error.to_string().contains("runs.parquet is damaged"))
    });
    assert!(refusals.count() > 50);
}

#[test]
fn runs_that_the_plan_does_not_have_do_not_count() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nruns: 2\n");
    project.run(&["x.yaml"]).expect_code(0);
    let run = project.record("x").runs.into_iter().find(|run| run.kind == RunKind::Main).unwrap();
    let folder = &begin_in(&project);
    let journal = folder.join("journal");
    std::fs::create_dir_all(&journal).unwrap();
    let name = &format!("{}-main-0.json", run.cell);
    let text = serde_json::to_string(&run).unwrap();
    std::fs::write(journal.join(name), &text).unwrap();
    let copy = journal.join("copy.json");
    std::fs::write(&copy, &text).unwrap();
    refused(&project, folder, &format!("copy.json is damaged: it holds the run of {name}"));
    std::fs::remove_file(copy).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&text).unwrap();
    run["run"] = 200.into();
    let other = name.replace("main-0", "main-200");
    std::fs::write(journal.join(&other), run.to_string()).unwrap();
    refused(&project, folder, &format!("the run {} is not in its plan", other.trim_end_matches(".json")));
}

#[test]
fn a_manifest_that_asks_too_much_or_holds_markup_is_damaged() {
    let project = Project::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    std::fs::write(folder.join("complete.json"), "{\"format\": 2}").unwrap();
    let path = folder.join("manifest.json");
    let whole = std::fs::read_to_string(&path).unwrap();
    let cases: [(&str, serde_json::Value, &str); 7] = [
        ("/plan/rounds", 2_000_000_000.into(), "2000000000 rounds are not those of 2 runs"),
        ("/experiment/runs", u32::MAX.into(), "4294967295 runs a cell are more than 100000"),
        ("/plan/runs", u32::MAX.into(), "4294967295 runs a cell are more than 100000"),
        ("/experiment/name", "<b>x</b>".into(), "\"<b>x</b>\" is not a name"),
        ("/experiment/compare/margin/default", 1e308.into(), "1e308 is not a margin"),
        // `export` makes the archive's name of it.
        ("/record", "../x".into(), "\"../x\" is not a name"),
        ("/experiment/variants/0/name", "[a](x)".into(), "\"[a](x)\" is not a name"),
    ];
    for (place_of, value, expected) in cases {
        let mut content: serde_json::Value = serde_json::from_str(&whole).unwrap();
        *content.pointer_mut(place_of).unwrap() = value;
        std::fs::write(&path, content.to_string()).unwrap();
        refused(&project, &folder, expected);
    }
}
