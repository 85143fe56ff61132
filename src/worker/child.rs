//! The built-in worker: reads commands, measures, answers.
//!
//! Its protocol leaves through a descriptor of its own; descriptor 1 points at 2 before any library is loaded, so that
//! libraries that print cannot break the dialogue. It ends as soon as its parent does, whatever it is doing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc;

use super::loaded::Loaded;
use super::protocol::{Answer, Command, PROTOCOL};
use crate::backend::mock::GARBAGE;
use crate::backend::{CellRequest, Failure, FailureKind};

/// Speaks the protocol on standard input and output until `finish` or the end of the parent.
///
/// # Errors
///
/// When a descriptor cannot be had or the parent's pipe is closed.
pub fn serve() -> io::Result<()> {
    let protocol_out = separate_protocol_from_standard_output()?;
    end_with_parent();
    let commands = read_commands();
    let mut worker = Worker { out: BufWriter::new(protocol_out), cell: None };
    // The channel closes when the parent does; then the reading thread has ended this process already.
    while let Ok(line) = commands.recv() {
        let command = match serde_json::from_str::<Command>(&line) {
            Ok(command) => command,
            Err(error) => {
                return worker.answer(&Answer::Failed {
                    failure: Failure::new(FailureKind::Protocol, format!("the worker does not understand: {error}")),
                });
            }
        };
        let last = command == Command::Finish;
        match worker.obey(command) {
            Ok(answer) => worker.answer(&answer)?,
            Err(Refusal::Failed(failure)) if failure.message == GARBAGE => {
                worker.out.write_all(format!("{GARBAGE}\n").as_bytes())?;
                return worker.out.flush();
            }
            Err(Refusal::Failed(failure)) => return worker.answer(&Answer::Failed { failure }),
            Err(Refusal::Pipe(error)) => return Err(error),
        }
        if last {
            break;
        }
    }
    Ok(())
}

/// Keeps descriptor 1's pipe for the protocol and points descriptor 1 at standard error.
fn separate_protocol_from_standard_output() -> io::Result<File> {
    let pipe = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::io::fcntl_setfd(&pipe, rustix::io::FdFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(pipe))
}

/// Asks the kernel to end this process with its parent. It covers a worker that is stopped; the reading thread covers
/// a parent behind a wrapper.
fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        // Where the kernel refuses, the end of standard input still ends this process.
        let _refused = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

/// A thread that blocks on standard input: it costs nothing while the main thread measures, and it notices the end of
/// the parent at any time.
fn read_commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(io::stdin()).lines() {
            let Ok(line) = line else { break };
            let finish = matches!(serde_json::from_str(&line), Ok(Command::Finish));
            if sender.send(line).is_err() || finish {
                return;
            }
        }
        // The main thread may be deep inside a library, where an orderly exit could hang or crash.
        let _gone = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    });
    receiver
}

/// Why a command has no answer of its own.
enum Refusal {
    Failed(Failure),
    Pipe(io::Error),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Failed(failure)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Pipe(error)
    }
}

struct Worker {
    out: BufWriter<File>,
    cell: Option<Loaded>,
}

impl Worker {
    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, answer)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn obey(&mut self, command: Command) -> Result<Answer, Refusal> {
        match command {
            Command::Hello { protocol } => hello(protocol),
            Command::Prepare { cell } => self.prepare(&cell),
            Command::Warm { rule, at_least, iterations } => {
                let warmed = self.cell()?.warm(rule, at_least, iterations.max(1))?;
                self.answer(&Answer::Samples { phase: "warmup".to_owned(), columns: warmed.samples })?;
                Ok(Answer::Done { warmup: Some(warmed.status), stop: None, output_hash: None, non_finite: Vec::new() })
            }
            Command::Measure { rule, iterations } => {
                let cell = self.cell()?;
                let (rewarmed, measured) = cell.measure(rule, iterations.max(1))?;
                let (values, checked) = (cell.used(), cell.check()?);
                self.answer(&Answer::Metrics { values })?;
                if !rewarmed.is_empty() {
                    self.answer(&Answer::Samples { phase: "warmup".to_owned(), columns: rewarmed })?;
                }
                self.answer(&Answer::Samples { phase: "measure".to_owned(), columns: measured.samples })?;
                Ok(checked.into_answer(Some(measured.reason)))
            }
            Command::Slice { time, samples, iterations } => {
                let columns = self.cell()?.slice(time, samples, iterations.max(1))?;
                self.answer(&Answer::Samples { phase: "measure".to_owned(), columns })?;
                Ok(Answer::done())
            }
            Command::Check => {
                let cell = self.cell()?;
                let (values, checked) = (cell.used(), cell.check()?);
                self.answer(&Answer::Metrics { values })?;
                Ok(checked.into_answer(None))
            }
            Command::Outputs { path } => {
                self.cell()?.write_outputs(Path::new(&path))?;
                Ok(Answer::done())
            }
            Command::ActivationRanges { calibration, data } => {
                let values = self.cell()?.activation_ranges(calibration, data.as_ref())?;
                self.answer(&Answer::Ranges { values })?;
                Ok(Answer::done())
            }
            Command::Evaluate { data, items_in_file, path } => {
                self.cell()?.evaluate(&data, items_in_file, Path::new(&path))?;
                Ok(Answer::done())
            }
            Command::Finish => Ok(Answer::done()),
        }
    }

    fn cell(&mut self) -> Result<&mut Loaded, Failure> {
        self.cell.as_mut().ok_or_else(|| Failure::new(FailureKind::Protocol, "no cell is prepared"))
    }

    fn prepare(&mut self, request: &CellRequest) -> Result<Answer, Refusal> {
        self.answer(&Answer::Phase { name: "load".to_owned() })?;
        let loaded = Loaded::load(request)?;
        self.answer(&Answer::Metrics { values: loaded.values })?;
        self.cell = Some(loaded.cell);
        Ok(loaded.ready)
    }
}

fn hello(protocol: u32) -> Result<Answer, Refusal> {
    if protocol != PROTOCOL {
        let text = format!("the parent speaks protocol {protocol}, this worker speaks {PROTOCOL}");
        return Err(Failure::new(FailureKind::Protocol, text).into());
    }
    let capabilities = ["prepare", "warm", "measure", "slice", "check", "outputs", "activation_ranges", "evaluate"]
        .map(str::to_owned)
        .to_vec();
    let worker = format!("perfrun {}", env!("CARGO_PKG_VERSION"));
    Ok(Answer::Hello { protocol, worker, capabilities })
}
