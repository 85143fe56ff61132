//! The protocol against programs that are no workers, or bad ones.

use std::io::Write;
use std::process::Stdio;

use base::quantity::Nanos;
use experiment::{Calibration, Mock, SamplesStop, SamplesWarmup, Stop, Warmup};
use worker::backend::{BackendRequest, CellRequest, Failure, FailureKind, OnnxruntimeRequest, ProgramRequest};
use worker::protocol::Command;
use worker::{Afterwards, Interrupts, Launch, RunPlan, WorkerRun, WorkerSession, run};

use crate::support::Project;

const HELLO: &str = r#"{"type":"hello","protocol":4,"worker":"bad 1","capabilities":["prepare","warm","measure","slice","check","outputs","activation_ranges"]}"#;
const READY: &str = r#"{"type":"ready","placement":{"runtime_version":null,"build":null,"nodes":{},"input_pool_bytes":0,"dynamic_outputs":false},"output_shapes":null,"output_hash":"0","non_finite":[]}"#;
const WARM_END: &str = r#"{"type":"done","warmup":"fixed"}"#;
const WARM: &str = r#"{"type":"samples","phase":"warmup","columns":{"start_ns":[0,0],"duration_ns":[0,0],"input":[0,0]}}
{"type":"done","warmup":"fixed"}"#;
const MEASURED: &str = r#"{"type":"done","stop":"samples","output_hash":"0"}"#;
const DONE: &str = r#"{"type":"done"}"#;

fn samples(phase: &str, columns: &str) -> String {
    format!(r#"{{"type":"samples","phase":"{phase}","columns":{{{columns}}}}}"#)
}

/// Counted samples that begin at these times.
fn counted(starts: &[u64]) -> String {
    let (durations, input) = (vec![1; starts.len()], vec![0; starts.len()]);
    samples("measure", &format!(r#""start_ns":{starts:?},"duration_ns":{durations:?},"input":{input:?}"#))
}

/// A worker that is a shell script.
fn script(project: &Project, text: &str) -> Launch {
    Launch {
        program: vec!["worker".into()],
        offers_socket: false,
        shares_stderr: false,
        wrap: vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()],
        env: Default::default(),
        padding: 0,
        log: project.path("log"),
        timeout: Nanos::from_secs(60),
        shortened_by: None,
    }
}

/// A worker that gives these lines as answers, one item for each command, whatever the commands are.
fn parrot(project: &Project, answers: &[String]) -> Launch {
    let mut text = String::new();
    for (index, answer) in answers.iter().enumerate() {
        project.write(&format!("answer-{index}"), &format!("{answer}\n"));
        text.push_str(&format!("read -r line; cat '{}'\n", project.path(&format!("answer-{index}")).display()));
    }
    script(project, &text)
}

fn request() -> CellRequest {
    CellRequest::of_script("c", Mock::steady(Nanos(1)))
}

/// One run, warm-up and three counted samples, with this worker.
fn whole_run(launch: &Launch, request: CellRequest) -> WorkerRun {
    let plan = RunPlan {
        request,
        warmup: Warmup::Samples(SamplesWarmup { count: 2 }),
        at_least: Nanos(0),
        iterations: 1,
        stop: Some(Stop::Samples(SamplesStop { count: 3, max_time: Nanos::from_secs(1) })),
        load: None,
        afterwards: Afterwards::default(),
        outputs: None,
    };
    run(launch, &plan, None, &Interrupts::never().unwrap(), &mut || {}).unwrap()
}

#[track_caller]
fn broken(failure: Option<Failure>, says: &str) {
    let failure = failure.expect("a failure");
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure:?}");
    assert!(failure.message.contains(says), "`{}` does not say `{says}`", failure.message);
}

/// The failure of a worker that answers hello, prepare, warm, measure and finish with these.
fn answered(answers: &[&str]) -> WorkerRun {
    let project = Project::new();
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    whole_run(&parrot(&project, &answers), request())
}

#[test]
fn a_program_that_keeps_to_the_protocol_is_a_worker() {
    let (warmup, first, second) =
        (samples("warmup", r#""start_ns":[1,2],"duration_ns":[1,1],"input":[0,0]"#), counted(&[3, 4]), counted(&[5]));
    let (warm, measured) = (format!("{warmup}\n{WARM_END}"), format!("{first}\n{second}\n{MEASURED}"));
    let run = answered(&[HELLO, READY, &warm, &measured, DONE]);
    assert_eq!(run.failure, None);
    assert_eq!((run.data.warmup.start_ns, run.data.measured.start_ns), (vec![1, 2], vec![3, 4, 5]));
}

/// As it panics while it releases what a library holds.
#[test]
fn what_a_worker_says_after_its_last_answer_is_its_reason() {
    let said = r#"{"type":"failed","failure":{"kind":"internal","message":"the worker panicked: released twice"}}"#;
    let failure =
        answered(&[HELLO, READY, WARM, &format!("{}\n{MEASURED}", counted(&[1, 2, 3])), &format!("{DONE}\n{said}")]);
    let failure = failure.failure.expect("a failure");
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (FailureKind::Internal, "the worker panicked: released twice")
    );
}

#[test]
fn an_end_belongs_to_its_command() {
    for (answers, says) in [
        (vec![READY], "`hello` was answered with `ready`"),
        (vec![HELLO, DONE], "`prepare` was answered with `done`"),
        (vec![HELLO, HELLO], "`prepare` was answered with `hello`"),
        (vec![HELLO, READY, READY], "`warm` was answered with `ready`"),
        (vec![HELLO, READY, DONE], "`warm` ended without how the warm-up ended"),
        (vec![HELLO, READY, WARM, DONE], "`measure` ended without why sampling ended"),
        (vec![HELLO, READY, WARM_END], "`warm` ended after 0 samples, not 2"),
        (vec![HELLO, READY, WARM, WARM_END], "`measure` ended with how the warm-up ended"),
        (vec![HELLO, READY, WARM, MEASURED], "`measure` ended without a counted sample"),
    ] {
        broken(answered(&answers).failure, says);
    }
}

#[test]
fn what_was_not_asked_for_is_not_taken() {
    let late = counted(&[1]);
    let ranges = r#"{"type":"ranges","values":{}}"#;
    let twice = format!("{READY}\n{READY}");
    for (answers, says) in [
        (vec![HELLO, &late], "`prepare` was answered with `samples of measure`"),
        (vec![HELLO, READY, &late], "`warm` was answered with `samples of measure`"),
        (vec![HELLO, READY, ranges], "`warm` was answered with `ranges`"),
        (vec![HELLO, &twice, WARM], "`warm` was answered with `ready`"),
        (vec![HELLO, READY, r#"{"type":"phase","name":"load"}"#], "`warm` was answered with `phase load`"),
        (vec![r#"{"type":"phase","name":"tea"}"#], "which is not the protocol"),
        (vec!["hello"], "the worker wrote `hello`, which is not the protocol"),
    ] {
        let run = answered(&answers);
        assert!(run.data.measured.is_empty());
        broken(run.failure, says);
    }
}

#[test]
fn columns_are_checked_when_they_arrive() {
    let absurd = u64::MAX;
    for (columns, says) in [
        (r#""start_ns":[1],"duration_ns":[1,1],"input":[0,0]"#.to_owned(), "1 starts, 2 durations, 2 inputs"),
        (r#""start_ns":[2,1],"duration_ns":[1,1],"input":[0,0]"#.to_owned(), "sample 1 starts at 1 ns"),
        (r#""start_ns":[1],"duration_ns":[-1],"input":[0]"#.to_owned(), "which is not the protocol"),
        (format!(r#""start_ns":[1],"duration_ns":[{absurd}],"input":[0]"#), "absurd time"),
        (format!(r#""start_ns":[{absurd}],"duration_ns":[1],"input":[0]"#), "absurd time"),
        (r#""start_ns":[1],"duration_ns":[1],"input":[0],"device_ns":[1,1]"#.to_owned(), "2 times of the device"),
        (r#""start_ns":[1,2],"duration_ns":[2,1],"input":[0,0]"#.to_owned(), "sample 1 starts at 2 ns"),
        (r#""start_ns":[1],"duration_ns":[1],"input":[1]"#.to_owned(), "a sample of input set 1 of 1"),
        (r#""start_ns":[1,2,3,4],"duration_ns":[1,1,1,1],"input":[0,0,0,0]"#.to_owned(), "more than 3 samples"),
    ] {
        let measured = format!("{}\n{MEASURED}", samples("measure", &columns));
        let run = answered(&[HELLO, READY, WARM, &measured, DONE]);
        assert!(run.data.measured.is_empty(), "{columns}");
        broken(run.failure, says);
    }
}

#[test]
fn what_was_measured_is_what_was_asked_for() {
    let none = samples("measure", r#""start_ns":[1,2,3],"duration_ns":[0,0,0],"input":[0,0,0]"#);
    let early = MEASURED.replace(r#""samples""#, r#""time_limit""#);
    for (measured, says) in [
        (format!("{}\n{MEASURED}", counted(&[1, 2])), "for the reason `samples` after 2 samples, not 3"),
        (format!("{}\n{early}", counted(&[1, 2, 3])), "for the reason `time_limit` after 3 samples, not 5"),
        (format!("{none}\n{MEASURED}"), "no counted sample took any time"),
    ] {
        broken(answered(&[HELLO, READY, WARM, &measured, DONE]).failure, says);
    }
}

#[test]
fn no_more_time_is_measured_than_passes() {
    let project = Project::new();
    let hour = samples("measure", r#""start_ns":[0],"duration_ns":[3600000000000],"input":[0]"#);
    let launch = parrot(&project, &[HELLO.to_owned(), READY.to_owned(), hour]);
    let nothing = std::path::Path::new("nothing");
    let real = BackendRequest::Onnxruntime(OnnxruntimeRequest::on_cpu(nothing, nothing, 1));
    let interrupts = Interrupts::never().unwrap();
    let mut session = WorkerSession::start(launch, &interrupts, 1);
    let slice = Command::Slice { time: Nanos(1), samples: 1, iterations: 1, warms: false };
    let request = CellRequest { backend: real, ..request() };
    let outcome = session.prepare(request, &mut || {}).and_then(|()| session.ask(&slice, &mut || {}));
    broken(session.end(outcome, &mut || {}).unwrap().failure, "a sample that ends after 1h");
}

#[test]
fn a_command_that_was_not_announced_is_never_sent() {
    let none = HELLO.replace(r#""warm","#, "").replace(r#""slice","#, "");
    let run = answered(&[&none, READY, "it was sent"]);
    broken(run.failure, "bad 1 does not understand `warm`");
    let project = Project::new();
    let interrupts = Interrupts::never().unwrap();
    let launch = parrot(&project, &[HELLO, READY, "it was sent"].map(str::to_owned));
    let mut session = WorkerSession::start(launch, &interrupts, 1);
    let evaluate =
        Command::Evaluate { data: worker::Data { feeds: Vec::new(), items: 1 }, items_in_file: 1, path: String::new() };
    let outcome = session.prepare(request(), &mut || {}).and_then(|()| session.ask(&evaluate, &mut || {}));
    broken(session.end(outcome, &mut || {}).unwrap().failure, "bad 1 does not understand `evaluate`");
}

#[test]
fn a_range_that_is_none_is_not_taken() {
    let project = Project::new();
    let interrupts = Interrupts::never().unwrap();
    let ranges = format!("{}\n{DONE}", r#"{"type":"ranges","values":{"y":{"least":1.0,"most":1e39}}}"#);
    let mut session =
        WorkerSession::start(parrot(&project, &[HELLO.to_owned(), READY.to_owned(), ranges]), &interrupts, 1);
    let ask = Command::ActivationRanges { calibration: Calibration::MinMax, data: None };
    let outcome = session.prepare(request(), &mut || {}).and_then(|()| session.ask(&ask, &mut || {}));
    let run = session.end(outcome, &mut || {}).unwrap();
    assert_eq!(run.ranges, None);
    broken(run.failure, "for `y`");
}

#[test]
fn a_line_without_end_is_given_up() {
    let project = Project::new();
    broken(
        whole_run(&script(&project, "yes | tr -d '\\n'"), request()).failure,
        "the worker wrote a line of more than 16 MiB",
    );
}

#[test]
fn a_worker_gives_up_a_command_without_end() {
    let project = Project::new();
    let mut child = project.command(&["worker"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The worker may be gone before the last byte is written.
    let _written = input.write_all(&vec![b'x'; (16 << 20) + 2]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(r#""kind":"protocol""#) && said.contains("the parent wrote a line of more"), "{said}");
}

#[test]
fn a_worker_that_reads_nothing_more_is_given_up_in_time() {
    let project = Project::new();
    project.write("hello", &format!("{HELLO}\n"));
    let text = format!("read -r line; cat '{}'; exec tail -f /dev/null", project.path("hello").display());
    let launch = Launch { timeout: Nanos::from_secs(1), ..script(&project, &text) };
    // More than a pipe holds.
    let request = CellRequest { cell: "c".repeat(1 << 20), ..request() };
    let plan = RunPlan {
        request,
        warmup: Warmup::Samples(SamplesWarmup { count: 1 }),
        at_least: Nanos(0),
        iterations: 1,
        stop: None,
        load: None,
        afterwards: Afterwards::default(),
        outputs: None,
    };
    let run = run(&launch, &plan, None, &Interrupts::never().unwrap(), &mut || {}).unwrap();
    assert_eq!(run.failure.map(|failure| failure.kind), Some(FailureKind::Timeout));
}

/// The lines of a program that takes slices alone: warm-up of two samples, three counted ones, a look at the outputs, the end.
const SLICES: [&str; 6] = [
    r#"{"type":"hello","protocol":4,"worker":"server 1.2","capabilities":["prepare","slice","check"],"about":{"os":"x"}}"#,
    "{\"type\":\"metrics\",\"values\":{\"load_ns\":1000}}\n{\"type\":\"ready\"}",
    "{\"type\":\"samples\",\"phase\":\"measure\",\"columns\":{\"start_ns\":[1,2],\"duration_ns\":[1,1],\"input\":[0,0]}}\n{\"type\":\"done\"}",
    "{\"type\":\"samples\",\"phase\":\"measure\",\"columns\":{\"start_ns\":[3,4,5],\"duration_ns\":[1,1,1],\"input\":[0,0,0]}}\n{\"type\":\"done\"}",
    r#"{"type":"done","output_hash":"0"}"#,
    DONE,
];

/// The run of such a program, one of whose lines is another, on standard input and output or where it was offered a socket.
fn sliced(offers_socket: bool, change: impl Fn(&str) -> String) -> WorkerRun {
    let project = Project::new();
    let launch = Launch { offers_socket, ..parrot(&project, &SLICES.map(change)) };
    let backend = BackendRequest::Program(ProgramRequest { device: "cpu".to_owned(), ..ProgramRequest::default() });
    whole_run(&launch, CellRequest::new("c", backend, Vec::new()))
}

#[test]
fn a_program_that_takes_slices_alone_is_warmed_up_and_stopped_by_perfrun() {
    for offers_socket in [false, true] {
        let run = sliced(offers_socket, str::to_owned);
        assert_eq!(run.failure, None, "{:?}", run.log_tail);
        assert_eq!((run.data.warmup.start_ns, run.data.measured.start_ns), (vec![1, 2], vec![3, 4, 5]));
        assert!(run.data.slices.is_empty(), "they are none of the design's");
        let placement = run.data.placement.unwrap();
        let said = (placement.runtime_version.as_deref(), placement.build.as_deref());
        assert_eq!(said, (Some("server 1.2"), Some("os x")));
        assert!(run.data.metrics.contains_key("untimed_ratio"));
    }
}

#[test]
fn a_program_that_was_offered_a_socket_may_print_before_it_answers() {
    let chatty = |line: &str| line.replace(r#"{"type":"hello""#, "Server 1.2, (c) us\n{\"type\":\"hello\"");
    let run = sliced(true, chatty);
    assert_eq!(run.failure, None, "{:?}", run.log_tail);
    assert_eq!(run.data.measured.len(), 3);
    // Without the offer, standard output is for messages alone.
    broken(sliced(false, chatty).failure, "the worker wrote `Server 1.2, (c) us`");
}

#[test]
fn a_first_answer_may_be_long_and_what_is_wrong_with_it_is_told_at_once() {
    let padded =
        |line: &str| line.replace(r#"{"type":"hello""#, &format!("{{\"type\":\"hello\"{}", " ".repeat(3 << 20)));
    let nested = |line: &str| line.replace(r#""os":"x""#, &format!(r#""os":{}{}"#, "[".repeat(240), "]".repeat(240)));
    for offers_socket in [false, true] {
        let run = sliced(offers_socket, padded);
        assert_eq!((run.failure, run.data.measured.len()), (None, 3), "{offers_socket}");
        broken(sliced(offers_socket, nested).failure, "which is not the protocol: recursion limit exceeded");
    }
}

#[test]
fn times_that_cannot_be_are_a_failed_run() {
    let load = sliced(false, |line| line.replace("\"load_ns\":1000", "\"load_ns\":90000000000"));
    broken(load.failure, "the worker reports 90.000s for loading, but was done after");
    let late = sliced(false, |line| line.replace("[3,4,5]", "[3,4,9000000000000]"));
    broken(late.failure, "a sample that ends after");
    let negative = sliced(false, |line| line.replace("\"duration_ns\":[1,1,1]", "\"duration_ns\":[1,-1,1]"));
    broken(negative.failure, "is not the protocol");
    let more = sliced(false, |line| line.replace("\"start_ns\":[1,2]", "\"start_ns\":[1,2,3]"));
    broken(more.failure, "samples that are none");
}
