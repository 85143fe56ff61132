//! What stands in which file of a record, and records of earlier formats.

use std::path::Path;

use perfrun::internals::record::{Arm, Findings, Record};

use crate::accuracy::scored;
use crate::designs::begin_in;
use crate::support::Workplace;

/// Begun by a perfrun that wrote everything into the manifest, and killed in its third block.
fn of_format_1(place: &Workplace) -> String {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records/format1");
    for entry in ["", "journal"].iter().flat_map(|folder| std::fs::read_dir(fixture.join(folder)).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = Path::new("old").join(path.strip_prefix(&fixture).unwrap());
            place.write(name.to_str().unwrap(), &std::fs::read_to_string(&path).unwrap());
        }
    }
    place.path("old").to_str().unwrap().to_owned()
}

#[test]
fn a_record_of_format_1_is_read_from_its_manifest() {
    let place = Workplace::new();
    let folder = of_format_1(&place);
    let record = Record::open(Path::new(&folder)).unwrap();
    let (manifest, findings) = (&record.manifest, &record.manifest.findings);
    assert_eq!((manifest.format, findings.sessions.len(), findings.complete), (1, 1, false));
    assert_eq!((manifest.iterations(), manifest.fidelity().len()), (&[1][..], 2));
    assert_eq!(findings.budget.map(|budget| (budget.wanted, budget.runs)), Some((4, 4)));
    assert_eq!(record.runs.len(), 9);
    place.run(&["report", &folder, "--output", "out"]).expect_code(0);
    let report = place.read("out/report.md");
    assert!(report.contains("6 of 12 runs are done"), "{report}");
}

#[test]
fn a_record_of_format_1_is_not_gone_on_with() {
    let place = Workplace::new();
    let folder = of_format_1(&place);
    let refused = place.run(&["run", "--resume", &folder]).expect_code(2);
    assert!(refused.stderr.contains("from an older perfrun, in format 1"), "{}", refused.stderr);
    assert!(refused.stderr.contains("perfrun report"), "{}", refused.stderr);
}

#[test]
fn the_manifest_is_written_once_and_the_rest_stands_beside_it() {
    let place = Workplace::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\nbudget: 1h\n");
    place.run(&["x.yaml"]).expect_code(0);
    let folder = place.record_folder("x");
    let record = Record::open(&folder).unwrap();
    assert!(record.manifest.write(&folder).is_err(), "what is there stays");
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    for later in ["\"sessions\"", "\"budget\":{\"limit\"", "\"complete\"", "\"iterations\"", "\"fidelity\":["] {
        assert!(!text.split_whitespace().collect::<String>().contains(later), "{later} was not known then");
    }
    for name in ["sessions.json", "budget.json", "complete.json", "passes/rehearsal.json", "passes/outputs.json"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let content: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["format"], perfrun::internals::record::FORMAT, "{name}");
        std::fs::write(folder.join(name), text.replacen("\"format\": ", "\"format\": 9", 1)).unwrap();
        assert!(Record::open(&folder).unwrap_err().to_string().contains("has format 9"), "{name}");
        std::fs::write(folder.join(name), text).unwrap();
    }
    assert_eq!(Record::open(&folder).unwrap(), record);
    // Without them it is the same record, of which nothing is known but its plan.
    for name in ["budget.json", "passes/rehearsal.json", "passes/outputs.json"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let sessions = record.manifest.findings.sessions.clone();
    let left = Findings { sessions, complete: true, ..Findings::default() };
    assert_eq!(Record::open(&folder).unwrap().manifest.findings, left);
}

/// A record that has begun, with what the passes of another one found; `change` is done to the text of each file.
fn resumed(place: &Workplace, change: impl Fn(&str, String) -> Option<String>) -> (Record, String) {
    place.run(&["x.yaml"]).expect_code(0);
    let whole = place.record_folder("x");
    let found: Vec<(String, String)> = std::fs::read_dir(whole.join("passes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    std::fs::remove_dir_all(whole).unwrap();
    let folder = begin_in(place);
    std::fs::create_dir(folder.join("passes")).unwrap();
    for (name, text) in found {
        if let Some(text) = change(&name, text) {
            std::fs::write(folder.join("passes").join(format!("{name}.json")), text).unwrap();
        }
    }
    let said = place.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0).stderr;
    (Record::open(&folder).unwrap(), said)
}

#[test]
fn a_rehearsal_that_is_over_is_not_repeated() {
    let place = Workplace::with_spec("backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 2\n");
    let change = |_: &str, text: String| Some(text.replace("1\n  ]", "3\n  ]"));
    let (record, _) = resumed(&place, change);
    assert_eq!(record.manifest.iterations(), [3]);
    assert!(record.runs.iter().all(|run| run.arm != Arm::Pilot && run.iterations == 3));
}

#[test]
fn outputs_that_were_compared_are_not_compared_again() {
    let spec = "backend: mock\nmodels: [m]\nvariants: [a, { name: b, mock: { differ: 0.1% } }]\nruns: 2\n";
    let place = Workplace::with_spec(spec);
    let (record, _) = resumed(&place, |name, text| {
        (name == "outputs").then(|| text.replace("\"input_sets\": ", "\"input_sets\": 70"))
    });
    assert!(record.manifest.fidelity().iter().all(|known| known.fidelity.input_sets >= 700), "{record:?}");
    assert!(record.runs.iter().any(|run| run.arm == Arm::Pilot) && !record.folder.join("outputs").exists());
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
    let place = Workplace::with_spec(spec);
    let (record, said) = resumed(&place, |name, text| (name == "requirements").then_some(text));
    assert!(!said.contains("\nrequire "), "{said}");
    assert!(record.manifest.findings.requirements.is_some());
    std::fs::remove_dir_all(&record.folder).unwrap();
    let said = place.run(&["x.yaml"]).expect_code(0).stderr;
    assert!(said.contains("\nrequire "), "asked where it was not yet: {said}");
}
