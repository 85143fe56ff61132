//! Designs in which several workers stay alive, and cold caches: from a specification to verdicts, with the failures,
//! interrupts and resumptions that go with it.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::Stdio;

use base::metric::{LATENCY, THROUGHPUT, TIME_TO_STEADY};
use judge::compare::judge;
use judge::summary::summarize;
use perfrun::internals::run::{Provenance, create, prepare};
use record::{Invocation, LocalPaths, Outcome, ProjectRoot, Record, RunKind, StoredRun};
use rustix::process::Signal;
use statistics::{Verdict, paired_slice_ratio};

use crate::pipeline::{REMEMBER_PID, assert_all_gone, assert_one_outcome_each, read_until, signal};
use crate::support::{Project, SET, whole_record};

/// A record that is created and not begun.
fn begin(text: &str) -> (Project, PathBuf) {
    let project = Project::with_spec(text);
    let folder = begin_in(&project);
    (project, folder)
}

/// As [`begin`], of the specification that is there.
pub fn begin_in(project: &Project) -> PathBuf {
    let path = project.path("x.yaml");
    let spec = spec::load(&path, &[]).unwrap();
    let mut host = base::machine::host::describe();
    // A command of a test has none of these, and goes on with no record that began with them.
    let is_kept = |name: &String| !SET.contains(&name.as_str());
    host.variables.iter_mut().for_each(|variables| variables.retain(|name, _| is_kept(name)));
    let provenance = Provenance {
        spec: &spec,
        spec_path: &path,
        overrides: &[],
        restrictions: Vec::new(),
        host,
        background_cpus: 0.0,
        libraries: &Default::default(),
        invocation: Invocation {
            started: "2026-11-20T10:11:12Z".to_owned(),
            boot: None,
            command: "perfrun x.yaml".to_owned(),
            perfrun: "0.1.0".to_owned(),
            not_alone: None,
            first_block: 0,
        },
        quick: false,
        executable: PathBuf::new(),
    };
    let job = create(prepare(&spec.experiment).unwrap(), &ProjectRoot::of(&path).unwrap(), provenance).unwrap();
    job.into_record().folder
}

/// A record of this specification, whole.
fn measure(text: &str, code: i32) -> Record {
    let project = Project::with_spec(text);
    project.run(&["x.yaml"]).expect_code(code);
    project.record("x")
}

const SLICES: &str = "design: slices, slice_time: 10ms";
const DUET: &str = "design: duet, slice_time: 10ms";
const TIMED: &str = "stop: { mode: time, time: 60ms }";

/// A base and one variant whose script takes `scale` times as long, a millisecond or so.
fn two(scale: f64, design: &str, stop: &str) -> String {
    format!(
        "backend: {{ mock: {{ median: 1ms, run_sd: 0.5%, noise: 1% }} }}\nmodels: [m]\n\
         variants: [base, {{ name: other, mock: {{ scale: {scale} }} }}]\nruns: 10\n\
         measure: {{ {design}, warmup: {{ mode: samples, count: 5 }}, {stop} }}\n"
    )
}

fn verdict(record: &Record) -> Verdict {
    let summary = summarize(&record.manifest, &record.runs).unwrap();
    judge(&record.manifest, &summary).comparisons[0].verdict
}

/// Every run that was to be measured.
fn counted(record: &Record) -> impl Iterator<Item = &StoredRun> {
    record.runs.iter().filter(|run| run.kind != RunKind::Rehearsal)
}

#[test]
fn slices_give_every_cell_of_a_block_the_same_rounds_and_find_the_difference() {
    let record = measure(&two(1.1, SLICES, TIMED), 0);
    assert_eq!(verdict(&record), Verdict::Worse);
    assert_one_outcome_each(&record);
    let runs: Vec<&StoredRun> = counted(&record).collect();
    assert_eq!(runs.len(), 30, "two cells and an A/A copy");
    for run in &runs {
        assert_eq!(run.data.slices.len(), 6);
        assert_eq!(run.data.slices.iter().sum::<u32>() as usize, run.data.measured.len());
        // No sample is 1.2 ms, so more idle time than that would be somebody else's slice.
        let latency = run.data.metrics[LATENCY.name];
        assert!((run.data.metrics[THROUGHPUT.name] * latency / 1e9 - 1.0).abs() < 0.05);
        assert!(!run.data.metrics.contains_key(TIME_TO_STEADY.name), "a fixed warm-up converges to nothing");
    }
    assert_eq!(verdict(&measure(&two(1.0, SLICES, TIMED), 0)), Verdict::Equivalent);
}

#[test]
fn every_block_warms_up_as_long_as_the_groups_rehearsal_took() {
    for design in ["design: blocks", SLICES] {
        let text = format!(
            "backend: {{ mock: {{ median: 1ms, noise: 8%, warmup_excess: 60%, warmup_time: 80ms }} }}\nmodels: [m]\n\
             variants: [base, {{ name: other, mock: {{ scale: 1.3 }} }}]\nruns: 5\nmeasure: {{ {design}, {TIMED} }}\n"
        );
        let record = measure(&text, 0);
        let rehearsals = record.runs.iter().filter(|run| run.kind == RunKind::Rehearsal);
        let rehearsed: Vec<u64> = rehearsals.map(|run| run.data.warmup.span_ns()).collect();
        let least = *rehearsed.iter().max().unwrap();
        // By the experiment's own rule, whose shortest time is 300 ms.
        assert!(least > 300_000_000 && rehearsed.iter().any(|span| *span < least), "{rehearsed:?}");
        let first = counted(&record).filter(|run| run.block == 0).count();
        assert_eq!((first, counted(&record).count()), (3, 15));
        for run in counted(&record) {
            assert!(run.data.warmup.span_ns() >= least, "{design}, block {}", run.block);
        }
    }
}

#[test]
fn a_number_of_samples_is_met_exactly_in_slices() {
    let record = measure(&two(1.5, SLICES, "stop: { mode: samples, count: 61 }"), 0);
    for run in counted(&record) {
        let even = run.data.slices.len() % 2 == 0;
        assert_eq!(
            (run.data.measured.len(), even, run.data.stop_reason.map(|reason| reason.name())),
            (61, true, Some("samples"))
        );
    }
}

#[test]
fn a_cell_that_fails_drops_out_and_the_others_go_on() {
    let text = "backend: mock\nmodels: [m]\nruns: 4\nvariants:\n  - good\n  - better\n\
                \x20 - { name: bad, mock: { fail: { kind: crash, at: measure, runs: [1, 2] } } }\n\
                measure: { design: slices, slice_time: 10ms, warmup: { mode: samples, count: 5 }, stop: { mode: time, time: 60ms } }\n";
    let record = measure(text, 3);
    use Outcome::{Completed, Failed, NotRun};
    for (variant, expected) in [(0, [Completed; 4]), (1, [Completed; 4]), (2, [Completed, Failed, Failed, NotRun])] {
        let cell = record.manifest.plan.cells[variant].id;
        let runs = counted(&record).filter(|run| run.cell == cell && run.kind == RunKind::Main);
        let outcomes: Vec<Outcome> = runs.map(|run| run.outcome).collect();
        assert_eq!(outcomes, expected);
    }
    let failed = record.runs.iter().find(|run| run.outcome == Failed).unwrap();
    assert_eq!(failed.failure.as_ref().unwrap().kind.name(), "killed");
    assert_eq!((failed.data.warmup.len(), failed.data.stop_reason), (5, None));
}

#[test]
fn a_duet_pairs_its_slices_and_has_a_control_of_its_own() {
    let record = measure(&two(1.1, DUET, TIMED), 0);
    assert_one_outcome_each(&record);
    assert_eq!(verdict(&record), Verdict::Worse);
    let plan = &record.manifest.plan;
    let run_of = |kind: RunKind, cell: usize, run: u32| {
        let id = plan.cells[cell].id;
        counted(&record).find(|stored| (stored.kind, stored.cell, stored.run) == (kind, id, run)).unwrap()
    };
    let mut controls = Vec::new();
    for run in 0..10 {
        let (base, other) = (run_of(RunKind::Main, 0, run), run_of(RunKind::Main, 1, run));
        assert_eq!((base.data.slices.len(), other.data.slices.len()), (6, 6));
        let ratio = paired_slice_ratio(&base.held().slice_durations(), &other.held().slice_durations()).unwrap();
        assert!((ratio - 1.1_f64.ln()).abs() < 0.03, "{ratio}");
        let control = plan.controls[0] as usize;
        let (first, second) = (run_of(RunKind::AaCopy, control, run), run_of(RunKind::SecondAaCopy, control, run));
        assert_ne!(first.data.measured, second.data.measured);
        controls.push(paired_slice_ratio(&first.held().slice_durations(), &second.held().slice_durations()).unwrap());
    }
    assert!(controls.iter().all(|ratio| ratio.abs() < 0.03), "{controls:?}");
}

#[test]
fn a_duet_does_not_go_on_alone() {
    let text = two(1.0, DUET, TIMED).replace("scale: 1", "fail: { kind: error, at: measure, runs: [1] }");
    let record = measure(&text.replace("runs: 10", "runs: 3"), 3);
    use Outcome::{Completed, Failed, NotRun};
    for (variant, expected) in [(0, [Completed, NotRun, Completed]), (1, [Completed, Failed, Completed])] {
        let cell = record.manifest.plan.cells[variant].id;
        let runs = counted(&record).filter(|run| run.cell == cell && run.kind == RunKind::Main);
        assert_eq!(runs.map(|run| run.outcome).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn what_a_duet_cannot_measure_is_for_the_user_to_mend() {
    let three = two(1.0, DUET, TIMED).replace("[base,", "[base, third,");
    let excluded = format!("{}matrix: {{ exclude: [{{ variant: other }}] }}\n", two(1.0, DUET, TIMED));
    for text in [three, excluded] {
        let done = Project::with_spec(&text).run(&["x.yaml"]).expect_code(2);
        assert!(
            done.stderr.contains("`design: duet`") || done.stderr.contains("`measure.design: duet`"),
            "{}",
            done.stderr
        );
    }
    let project = Project::with_spec(&two(1.0, DUET, TIMED));
    let done = project.run(&["x.yaml", "--only", "variant=other"]).expect_code(2);
    assert!(done.stderr.contains("--only selects m/default/other/cpu without"), "{}", done.stderr);
}

/// Four blocks of three cells, of which one hangs in block 2.
fn hanging() -> String {
    format!(
        "backend: mock\nmodels: [m]\nruns: 4\ncompare: {{ aa: off }}\n\
         measure: {{ {SLICES}, timeout: 1h, warmup: {{ mode: samples, count: 5 }}, stop: {{ mode: time, time: 60ms }} }}\n\
         variants:\n  - {{ name: a, wrap: {REMEMBER_PID} }}\n  - {{ name: b, wrap: {REMEMBER_PID} }}\n\
         \x20 - {{ name: c, wrap: {REMEMBER_PID}, mock: {{ fail: {{ kind: hang, at: measure, runs: [2] }} }} }}\n"
    )
}

/// Interrupts or kills perfrun in the third block, then checks that nothing is left running and nothing half stored.
fn stop_in_third_block(stop: Signal) -> (Project, PathBuf) {
    let project = Project::with_spec(&hanging());
    let mut child = project.command(&["x.yaml"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    read_until(&mut stderr, "block 2 of 4");
    // Three rehearsed and ran in each of two blocks: the tenth belongs to the third, and there is a run to wait for.
    let pids = project.path("pids");
    while std::fs::read_to_string(&pids).unwrap().lines().count() < 10 {
        assert!(child.try_wait().unwrap().is_none(), "perfrun ended before its third block");
        std::thread::yield_now();
    }
    signal(&child, stop);
    if stop == Signal::INT {
        read_until(&mut stderr, "again to stop now");
        signal(&child, stop);
    }
    std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), (stop == Signal::INT).then_some(130));
    assert_all_gone(&project.path("pids"));
    let record = project.record("x");
    assert_one_outcome_each(&record);
    assert_eq!(counted(&record).count(), 6, "two whole blocks of three");
    let folder = project.record_folder("x");
    (project, folder)
}

#[test]
fn the_second_interrupt_ends_every_resident_worker() {
    stop_in_third_block(Signal::INT);
}

#[test]
fn killing_the_parent_leaves_no_resident_worker_and_resuming_repeats_the_whole_group() {
    let (project, folder) = stop_in_third_block(Signal::KILL);
    let manifest = folder.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"hang\"", "\"error\"")).unwrap();
    project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(3);
    let record = project.record("x");
    assert_one_outcome_each(&record);
    let third: Vec<Outcome> = counted(&record).filter(|run| run.block == 2).map(|run| run.outcome).collect();
    assert_eq!(third.iter().filter(|outcome| **outcome == Outcome::Completed).count(), 2);
    assert_eq!(third.iter().filter(|outcome| **outcome == Outcome::Failed).count(), 1);
}

#[test]
fn a_budget_that_is_over_leaves_the_blocks_that_there_are() {
    let (project, folder) = stop_in_third_block(Signal::KILL);
    let manifest = folder.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"budget\": null"));
    std::fs::write(&manifest, text.replace("\"budget\": null", "\"budget\": 1")).unwrap();
    project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0);
    let record = project.record("x");
    assert_eq!(record.manifest.plan.runs, 2);
    assert_eq!(counted(&record).count(), 6, "two whole blocks of three");
}

#[test]
fn a_group_of_which_a_part_was_measured_is_not_measured_in_parts() {
    for text in [SLICES, DUET].map(|design| two(1.0, design, TIMED)) {
        let whole = measure(&text, 0);
        let (project, folder) = begin(&text);
        let base = whole.manifest.plan.cells[0].id;
        let done = whole.runs.iter().find(|run| run.kind == RunKind::Main && run.cell == base && run.run == 0).unwrap();
        done.write(&folder).unwrap();
        project.run(&["run", "--resume", folder.to_str().unwrap()]).expect_code(0);
        let record = project.record("x");
        assert_one_outcome_each(&record);
        let kept = record.runs.iter().find(|run| run.cell == base && run.kind == RunKind::Main && run.run == 0);
        assert_eq!(kept, Some(done));
        let other = record.manifest.plan.cells[1].id;
        let partner =
            counted(&record).find(|run| run.cell == other && run.run == 0 && run.kind == RunKind::Main).unwrap();
        assert_eq!(partner.outcome, Outcome::NotRun);
        let completed = counted(&record).filter(|run| run.block > 0 && run.outcome == Outcome::Completed).count();
        assert_eq!(completed, counted(&record).filter(|run| run.block > 0).count());
    }
}

#[test]
fn slices_read_the_same_from_the_journal_and_from_parquet() {
    let parquet = measure(&two(1.0, SLICES, TIMED).replace("runs: 10", "runs: 2"), 0);
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("journal")).unwrap();
    let mut manifest = parquet.manifest.clone();
    let invocation = std::mem::take(&mut manifest.findings).invocations.remove(0);
    Record::create(copy.path().to_owned(), manifest, invocation, &LocalPaths::default()).unwrap();
    for run in &parquet.runs {
        run.write(copy.path()).unwrap();
    }
    assert_eq!(whole_record(copy.path()).runs, parquet.runs);
}

#[test]
fn cold_samples_begin_after_the_caches_were_emptied() {
    let text = two(1.1, "cache: cold", "stop: { mode: samples, count: 20 }");
    let record = measure(&text, 0);
    assert_eq!(verdict(&record), Verdict::Worse);
    for run in counted(&record) {
        let is_unresolved = run.warnings.iter().any(|code| code == "W_COLD_UNRESOLVED");
        assert_eq!((run.iterations, run.data.measured.len(), is_unresolved), (1, 20, false));
        assert!(!run.data.metrics.contains_key(THROUGHPUT.name));
        // The script takes a tenth of a nanosecond a byte, for at least two megabytes.
        let pauses = run.data.measured.start_ns.windows(2).zip(&run.data.measured.duration_ns);
        assert!(pauses.into_iter().all(|(starts, length)| starts[1] - starts[0] >= length + 200_000));
        let warm = &run.data.warmup;
        assert!(
            warm.start_ns.windows(2).zip(&warm.duration_ns).all(|(starts, length)| starts[1] - starts[0] > *length)
        );
    }
    // Warm, sixteen iterations of 2 us would make a sample; cold, there is no way.
    let record = measure(&text.replace("median: 1ms", "median: 2us"), 0);
    assert!(counted(&record).all(|run| run.iterations == 1 && run.warnings.contains(&"W_COLD_UNRESOLVED".to_owned())));
}

/// Two variants of a model that ONNX Runtime executes, in slices.
fn of_a_model(variants: &str) -> Project {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let head = format!("models: [{model}]\ninputs: {{ batch: 1 }}\nmeasure: {{ design: slices }}\n");
    Project::with_spec(&format!("{head}variants: {variants}\n"))
}

#[test]
fn slices_refuse_threads_that_they_would_slow() {
    let project = of_a_model("[{ name: a, threads: 1 }, { name: b, threads: 2 }]");
    for command in [["validate", "x.yaml"], ["plan", "x.yaml"], ["run", "x.yaml"]] {
        let done = project.run(&command).expect_code(2);
        let is_reported = done.stderr.contains("variant `b` has 2 threads") && done.stderr.contains("`threads: 1`");
        assert!(is_reported && done.stderr.contains("x.yaml:3"), "{}", done.stderr);
    }
    let chosen = "[{ name: a, threads: 1 }, { name: b, threads: 2, session: { session.force_spinning_stop: 1 } }]";
    let plan = of_a_model(chosen).run(&["plan", "x.yaml"]).expect_code(0).stdout;
    assert!(plan.contains("`session.force_spinning_stop` is 1 unless a variant sets it"), "{plan}");
}

/// A specification that leaves the number to the machine is valid on one with a single core.
#[test]
fn slices_refuse_the_default_threads_of_a_machine_with_several_cores() {
    let project = of_a_model("[fp32, { name: b, graph_optimization: basic }]");
    let refused = base::machine::host::describe().default_threads() > 1;
    let valid = project.run(&["validate", "x.yaml"]).expect_code(0).stdout;
    assert_eq!(valid.contains("x.yaml: valid, but not on this machine"), refused, "{valid}");
    let planned = project.run(&["plan", "x.yaml"]).expect_code(if refused { 2 } else { 0 });
    assert_eq!(planned.stderr.contains("threads by default here"), refused, "{}", planned.stderr);
}

#[test]
fn a_duet_for_a_larger_machine_is_valid_here() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-mlp.onnx");
    let spec = format!(
        "models: [{model}]\ninputs: {{ batch: 1 }}\n\
         variants: [{{ name: a, threads: 4096, session: {{ session.force_spinning_stop: 1 }} }}, {{ name: b, base: a, graph_optimization: basic }}]\n\
         measure: {{ design: duet }}\n"
    );
    let done = Project::with_spec(&spec).run(&["validate", "x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("x.yaml: valid, but not on this machine"), "{}", done.stdout);
}
