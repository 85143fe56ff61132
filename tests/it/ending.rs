//! What ends perfrun from outside: signals, limits, variables that size its threads, and clocks.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use record::{Outcome, RunKind};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Done, Project};

const SPEC: &str = "backend: mock\nmodels: [m]\nvariants: [a, { name: b, mock: { scale: 0.8 } }]\nruns: 2\n";

/// A program that ends after minutes in every run but the rehearsal's, and writes its process id to a file.
const SLEEPER: &str = "#!/bin/sh\nif [ -f rehearsed ]; then echo $$ > pid.new; mv pid.new pid; exec sleep 600; fi\n\
                       touch rehearsed\n";

fn sleeper() -> Project {
    let text = "commands: [{ name: sleeper, run: [sh, sleeper.sh] }]\nruns: 3\nmeasure: { warmup: { mode: samples, count: 1 }, stop: { mode: samples, count: 1 } }\n";
    let project = Project::with_spec(text);
    project.write("sleeper.sh", SLEEPER);
    project
}

fn started(project: &Project) -> (Child, Pid) {
    let mut child = project.command(&["x.yaml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is there when the first run is in flight.
    while !project.path("pid").exists() {
        assert!(child.try_wait().unwrap().is_none(), "{}", Done::from(child.wait_with_output().unwrap()).stderr);
        std::thread::yield_now();
    }
    let pid = project.read("pid").trim().parse().unwrap();
    (child, Pid::from_raw(pid).unwrap())
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

#[test]
fn sigterm_ends_a_run_that_is_in_flight_and_nothing_failed() {
    let project = sleeper();
    let (child, program) = started(&project);
    kill_process(pid(&child), Signal::TERM).unwrap();
    Done::from(child.wait_with_output().unwrap()).expect_code(130);
    assert!(rustix::process::test_kill_process(program).is_err(), "its program is ended with it");
    let record = project.record("x");
    assert!(record.runs.iter().all(|run| run.outcome != Outcome::Failed));
}

#[test]
fn a_program_that_is_ended_before_perfrun_itself_did_not_fail() {
    let project = sleeper();
    let (child, program) = started(&project);
    // As schedulers do, one process after the other.
    kill_process(program, Signal::TERM).unwrap();
    kill_process(pid(&child), Signal::TERM).unwrap();
    Done::from(child.wait_with_output().unwrap()).expect_code(130);
    let record = project.record("x");
    assert_eq!(record.runs.iter().filter(|run| run.kind != RunKind::Rehearsal).count(), 0, "no run has an outcome");
}

#[test]
fn sigterm_ends_perfrun_where_it_waits_for_nothing_that_it_looks_at() {
    let project = Project::with_spec(SPEC);
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut child = project.command(&["x.yaml"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    // The table goes to a pipe that is full, after the report was written.
    let said = BufReader::new(child.stderr.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap().starts_with("running    block 2 of 2")));
    while !project.path("reports/x/results.json").exists() {
        std::thread::yield_now();
    }
    kill_process(pid(&child), Signal::TERM).unwrap();
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(reader);
}

/// A shell's command before it, the exit code, and what is said.
const LIMITS: &[(&str, i32, &str)] = &[
    ("export RAYON_NUM_THREADS=5000", 0, ""),
    ("export POLARS_MAX_THREADS=100000", 0, ""),
    ("export RUST_MIN_STACK=99999999999999", 2, "unset RUST_MIN_STACK"),
    ("export RUST_MIN_STACK=1", 2, "RUST_MIN_STACK=1 is too small"),
    ("ulimit -d 12000", 2, "the data segment is limited to 11.7 MiB (`ulimit -d`)"),
    ("ulimit -s 300", 2, "the stack is limited to 300 KiB (`ulimit -s`)"),
    ("ulimit -f 8", 2, "File too large"),
    ("ulimit -n 8", 2, "raise the limit of open files (`ulimit -n 1024`)"),
];

#[test]
fn limits_and_variables_have_a_name_and_a_remedy_and_no_panic() {
    for (before, code, said) in LIMITS {
        let project = Project::with_spec(SPEC);
        let perfrun = project.command(&["x.yaml"]);
        let mut shell = std::process::Command::new("sh");
        let program = perfrun.get_program().to_str().unwrap();
        shell.args(["-c", &format!("{before}; exec '{program}' x.yaml")]).current_dir(project.root());
        shell.envs(perfrun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = Done::from(shell.output().unwrap());
        let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(done.code == *code && text.contains(said), "{before}: {} {}", done.code, done.stderr);
        assert!(!text.contains("panicked"), "{before}: {text}");
    }
}

#[test]
fn a_program_that_is_measured_has_the_variable_as_the_user_set_it() {
    let project =
        Project::with_spec("commands: [{ name: p, run: [sh, -c, 'echo $POLARS_MAX_THREADS > seen'] }]\nruns: 1\n");
    let mut command = project.command(&["x.yaml"]);
    command.env("POLARS_MAX_THREADS", "3");
    Done::from(command.output().unwrap()).expect_code(0);
    assert_eq!(project.read("seen"), "3\n");
}
