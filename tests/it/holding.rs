//! A record in use is nobody else's, what was measured survives a loss of power, and nobody is kept from measuring.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use record::hold::Hold;
use record::{Disk, Record, RunKind, StoreError, archive, journal};

use crate::designs::begin_in;
use crate::support::{Done, Project};

const SPEC: &str = "backend: mock\nmodels: [m]\nvariants: [a, { name: b, mock: { scale: 0.8 } }]\nruns: 5\n\
                    measure: { warmup: { mode: samples, count: 5 }, stop: { mode: samples, count: 20 } }\n";

#[test]
fn a_record_that_is_measured_is_neither_resumed_nor_removed_nor_packed() {
    let project = Project::with_spec(SPEC);
    let folder = begin_in(&project);
    let name = folder.to_str().unwrap();
    let hold = Hold::take(&folder).unwrap();
    let refused = |arguments: &[&str]| {
        let done = project.run(arguments).expect_code(2);
        assert!(done.stderr.contains("is being measured by process"), "{arguments:?}: {}", done.stderr);
    };
    refused(&["run", "--resume", name]);
    refused(&["x.yaml", "--resume"]);
    refused(&["x.yaml", "--once"]);
    refused(&["export", name]);
    refused(&["merge", name, name]);
    assert!(project.run(&["list"]).expect_code(0).stdout.contains("being measured"));
    let cleaned = project.run(&["clean", "--keep", "0", "--yes"]).expect_code(0);
    assert!(cleaned.stdout.contains("nothing to remove"), "{}", cleaned.stdout);
    drop(hold);
    project.run(&["x.yaml", "--once"]).expect_code(0);
    assert!(Record::open(&folder).unwrap().manifest.findings.complete);
}

#[test]
fn two_resumptions_at_once_leave_one_whole_record() {
    let project = Project::with_spec(SPEC);
    let folder = begin_in(&project);
    let start = || {
        let mut command = project.command(&["run", "--resume", folder.to_str().unwrap()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [start(), start()];
    let ended = both.map(|child| Done::from(child.wait_with_output().unwrap()));
    let whole = ended.iter().filter(|done| done.code == 0).count();
    let refused = |done: &Done| done.stderr.contains("is being measured") || done.stderr.contains("is complete");
    assert!(
        whole == 1 && ended.iter().any(|done| done.code == 2 && refused(done)),
        "{} {}",
        ended[0].stderr,
        ended[1].stderr
    );
    let record = Record::open(&folder).unwrap();
    assert_eq!(
        record.runs.iter().filter(|run| run.kind != RunKind::Rehearsal).count(),
        15,
        "two cells and an A/A copy"
    );
}

#[test]
fn a_bisection_and_an_imported_record_are_not_resumed_by_themselves() {
    let project = Project::with_spec(SPEC);
    let begun = |change: &dyn Fn(&mut serde_json::Value)| {
        let folder = begin_in(&project);
        let manifest = folder.join("manifest.json");
        let mut value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
        change(&mut value);
        fs::write(manifest, value.to_string()).unwrap();
        folder
    };
    let complete = begun(&|_| {});
    begun(&|manifest| manifest["restrictions"] = serde_json::json!(["bisect --from 1.2 --to 1.3"]));
    let imported = begun(&|_| {});
    fs::remove_file(imported.join("local.json")).unwrap();
    let done = project.run(&["run", "--resume", imported.to_str().unwrap()]).expect_code(2);
    assert!(done.stderr.contains("was imported"), "{}", done.stderr);
    begun(&|manifest| manifest["host"]["cpu"] = "another".into());
    project.run(&["x.yaml", "--resume"]).expect_code(0);
    assert!(Record::open(&complete).unwrap().manifest.findings.complete);
    let done = project.run(&["x.yaml", "--resume"]).expect_code(2);
    assert!(done.stderr.contains("has changed"), "the other machine's is named: {}", done.stderr);
}

/// A disk that keeps what was synchronised, as after a loss of power.
struct Forgetful<'a> {
    /// Where it keeps it.
    kept: &'a Path,
    runs: usize,
}

impl Forgetful<'_> {
    fn check(&self, when: &str) {
        let record = Record::open(self.kept).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(record.runs.len(), self.runs, "{when}");
    }
}

impl Disk for Forgetful<'_> {
    fn sync(&mut self, record: &Path) -> Result<(), StoreError> {
        self.check("before anything else was kept");
        for name in archive::files_of_record(record).iter().filter(|name| !name.starts_with("journal")) {
            let target = self.kept.join(name);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(record.join(name), target).unwrap();
        }
        self.check("with both");
        Ok(())
    }

    fn remove_journal(&mut self, _: &Path) -> Result<(), StoreError> {
        // The name goes at once: nothing waits for it.
        fs::remove_dir_all(self.kept.join("journal")).unwrap();
        self.check("without a journal");
        Ok(())
    }
}

#[test]
fn a_loss_of_power_while_a_record_is_completed_loses_no_run() {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml"]).expect_code(0);
    let folder = project.record_folder("x");
    let whole = Record::open(&folder).unwrap();
    // As it was before it was completed.
    fs::create_dir_all(journal::folder(&folder)).unwrap();
    whole.runs.iter().for_each(|run| run.write(&folder).unwrap());
    let derived = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let of_completion =
        |path: &PathBuf| path.ends_with("complete.json") || path.extension().is_some_and(|it| it == "parquet");
    derived.filter(of_completion).for_each(|path| fs::remove_file(path).unwrap());
    let kept = tempfile::tempdir().unwrap();
    for name in archive::files_of_record(&folder) {
        let target = kept.path().join(&name);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(folder.join(&name), target).unwrap();
    }
    let mut record = Record::open(&folder).unwrap();
    assert!(!record.manifest.findings.complete);
    record.complete_on(&mut Forgetful { kept: kept.path(), runs: whole.runs.len() }).unwrap();
}

#[test]
fn a_lock_that_cannot_be_shared_keeps_nobody_from_measuring_and_the_record_says_so() {
    let project = Project::with_spec(SPEC);
    project.write("folder/file", "");
    let with = |lock: &str| {
        let mut command = project.command(&["x.yaml", "--once", "--output", "out"]);
        command.env("PERFRUN_LOCK", lock);
        let done = Done::from(command.output().unwrap()).expect_code(0);
        assert!(done.stderr.contains("other perfruns may measure at the same time"), "{}", done.stderr);
        project.read("out/report.md")
    };
    let folder = project.path("folder");
    assert!(with(folder.to_str().unwrap()).contains("(cannot use "));
    project.write("x.yaml", &format!("{SPEC}description: another\n"));
    assert!(with("none").contains("may have measured on this machine at the same time (PERFRUN_LOCK=none)"));
}

/// Two models, one of which has a variant behind a program that needs a file.
const NEEDS_A_FILE: &str = "backend: mock\nmodels: [a, b]\nvariants: [x, { name: y, wrap: [sh, needs-a-file.sh], mock: { scale: 2.0 } }]\n\
                            matrix: { exclude: [{ model: a, variant: y }] }\ncompare: { aa: off }\nruns: 6\n\
                            measure: { warmup: { mode: samples, count: 5 }, stop: { mode: samples, count: 20 } }\n";

fn newest(project: &Project) -> Record {
    let records = fs::read_dir(project.path(".perfrun/records/x")).unwrap().map(|entry| entry.unwrap().path());
    Record::open(&records.max().unwrap()).unwrap()
}

#[test]
fn what_failed_is_measured_again_with_what_it_is_compared_with() {
    let project = Project::with_spec(NEEDS_A_FILE);
    project.write("needs-a-file.sh", "test -e there || exit 7\nexec \"$@\"\n");
    let failed = project.run(&["x.yaml"]).expect_code(3);
    assert!(failed.stderr.contains("measure what failed again: perfrun run --resume .perfrun/records/x/"));
    let before = project.record("x");
    // It fails once more: nothing is lost.
    let name = before.folder.file_name().unwrap().to_str().unwrap();
    project.run(&["run", "--resume", name]).expect_code(3);
    project.write("there", "");
    let again = project.run(&["x.yaml", "--resume"]).expect_code(0);
    assert!(
        again.stderr.contains("resuming   what failed, with what it is compared with, as another record;"),
        "{}",
        again.stderr
    );
    let after = newest(&project);
    assert_ne!(after.folder, before.folder);
    assert_eq!(Record::open(&before.folder).unwrap().runs.len(), before.runs.len(), "nothing is lost");
    let runs_of = |record: &Record, cell: usize| {
        let id = record.manifest.plan.cells[cell].id;
        let runs = record.runs.iter().filter(|run| run.cell == id && run.kind != RunKind::Rehearsal);
        runs.map(|run| (run.kind, run.run, run.invocation, run.block)).collect::<Vec<_>>()
    };
    let index = |path: &str| {
        let plan = &after.manifest.plan;
        plan.cells.iter().position(|cell| plan.path(cell) == path).unwrap()
    };
    let (kept, baseline, cell) = (index("a/default/x/cpu"), index("b/default/x/cpu"), index("b/default/y/cpu"));
    assert_eq!(runs_of(&before, kept), runs_of(&after, kept));
    assert_eq!(runs_of(&after, cell).len(), 6);
    for (_, run, session, block) in runs_of(&after, cell).into_iter().chain(runs_of(&after, baseline)) {
        assert_eq!((session, block), (2, run + 12), "a block is of one session");
    }
    let report = project.read("reports/x/report.md");
    assert!(report.contains("slower") && project.read("reports/x/report.html").contains("Measured from "), "{report}");
    let refused = project.run(&["run", "--resume", after.folder.to_str().unwrap()]).expect_code(2);
    assert!(refused.stderr.contains("is complete"), "{}", refused.stderr);
}

#[test]
fn where_every_group_failed_everything_is_measured_again() {
    let project = Project::with_spec(
        &NEEDS_A_FILE.replace("[a, b]", "[b]").replace("matrix: { exclude: [{ model: a, variant: y }] }\n", ""),
    );
    project.write("needs-a-file.sh", "test -e there || exit 7\nexec \"$@\"\n");
    project.run(&["x.yaml"]).expect_code(3);
    project.write("there", "");
    project.run(&["x.yaml", "--resume"]).expect_code(0);
    assert!(newest(&project).runs.iter().all(|run| run.outcome == record::Outcome::Completed));
}
