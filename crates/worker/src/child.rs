//! The built-in worker: reads commands, measures, answers.
//!
//! Its protocol leaves through a descriptor of its own; descriptor 1 points at 2 before any library is loaded, so that
//! libraries that print cannot break the session. It ends as soon as its parent does, whatever it is doing. A panic in
//! any of its threads is a failure with the panic's message, written before anything unwinds.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::sync::mpsc;

use rustix::fs::{FileType, fstat};

use super::expected::ExpectedAnswers;
use super::lines::{NODES_IN_LINE, SAMPLES_IN_LINE, read_line, too_long};
use super::loaded::Loaded;
use super::protocol::{Answer, Command, CommandName, OLDEST_PROTOCOL, PROTOCOL, SamplePhase, greeting};
use crate::backend::mock::GARBAGE;
use crate::backend::trace::NodeTime;
use crate::backend::{CellRequest, Failure, FailureKind, Phase};
use crate::measure::Samples;

/// Speaks the protocol on standard input and output until `finish` or the end of the parent.
///
/// # Errors
///
/// When a descriptor cannot be had or the parent's pipe is closed.
pub fn serve() -> io::Result<()> {
    let protocol_out = separate_protocol_from_standard_output()?;
    answer_panics(protocol_out.try_clone()?);
    end_with_parent();
    be_the_first_to_go();
    let commands = read_commands();
    let mut worker = Worker { out: BufWriter::new(protocol_out), cell: None };
    // The channel closes when the parent does; then the reading thread has ended this process already.
    while let Ok(command) = commands.recv() {
        let last = matches!(command, Ok(Command::Finish));
        match command.map_err(Refusal::from).and_then(|command| worker.obey(command)) {
            Ok(()) => {}
            Err(Refusal::Failed(failure)) if failure.message == GARBAGE => {
                worker.out.write_all(format!("{GARBAGE}\n").as_bytes())?;
                return worker.out.flush();
            }
            Err(Refusal::Failed(failure)) => return worker.write(&Answer::Failed { failure }),
            Err(Refusal::Pipe(error)) => return Err(error),
        }
        if last {
            break;
        }
    }
    Ok(())
}

/// Keeps descriptor 1's pipe for the protocol and points descriptor 1 at standard error. Where descriptor 0 is a socket,
/// answers go there too, and descriptor 1 is what commands inherit.
fn separate_protocol_from_standard_output() -> io::Result<File> {
    let is_socket = FileType::from_raw_mode(fstat(rustix::stdio::stdin())?.st_mode) == FileType::Socket;
    let pipe = rustix::io::dup(if is_socket { rustix::stdio::stdin() } else { rustix::stdio::stdout() })?;
    rustix::io::fcntl_setfd(&pipe, rustix::io::FdFlags::CLOEXEC)?;
    if !is_socket {
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    }
    Ok(File::from(pipe))
}

/// Has every panic, in whatever thread, answered as a failure. It is written at once: unwinding closes the pipe, releases
/// what a library holds, and may crash there.
fn answer_panics(out: File) {
    let log = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        log(panic);
        let line = serde_json::to_vec(&Answer::Failed { failure: failure_of(panic) }).unwrap_or_default();
        // Without a parent to read it, the log has it.
        let _unread = (&out).write_all(&[line.as_slice(), b"\n"].concat());
    }));
}

/// `the worker panicked at ort-2.0.0/src/value/mod.rs:308: ...`
fn failure_of(panic: &PanicHookInfo<'_>) -> Failure {
    let at = panic.location().map(|location| format!(" at {}:{}", within_package(location.file()), location.line()));
    let says = panic.payload_as_str().unwrap_or("it gives no reason");
    Failure::new(FailureKind::Internal, format!("the worker panicked{}: {says}", at.unwrap_or_default()))
}

/// A source file from the folder of its package on: what lies above is that of the machine on which it was built.
fn within_package(file: &str) -> &str {
    let package = file.rfind("/src/").and_then(|sources| file[..sources].rfind('/'));
    package.map_or(file, |slash| &file[slash + 1..])
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

/// Where memory runs out, the kernel is to end this process and none of the user's: a search for the largest batch goes
/// where it does.
fn be_the_first_to_go() {
    // Where the kernel has no such file, it chooses by itself.
    let _refused = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// A thread that blocks on standard input: it costs nothing while the main thread measures, and it notices the end of
/// the parent at any time.
fn read_commands() -> mpsc::Receiver<Result<Command, Failure>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        while let Some(command) = next_command(&mut input) {
            let goes_on = !matches!(command, Ok(Command::Finish) | Err(_));
            if sender.send(command).is_err() || !goes_on {
                return;
            }
        }
        // The main thread may be deep inside a library, where an orderly exit could hang or crash.
        let _gone = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    });
    receiver
}

/// The next command; `None` when the parent is gone.
fn next_command(input: &mut impl io::BufRead) -> Option<Result<Command, Failure>> {
    let failure = |text: String| Failure::new(FailureKind::Protocol, text);
    match read_line(input) {
        Ok(line) => {
            let command = serde_json::from_slice(&line?);
            Some(command.map_err(|error| failure(format!("the worker does not understand: {error}"))))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Some(Err(failure(too_long("the parent")))),
        Err(_) => None,
    }
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

struct Worker<W: Write> {
    out: W,
    cell: Option<Loaded>,
}

impl<W: Write> Worker<W> {
    fn write(&mut self, answer: &Answer) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, answer)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Does what a command says and answers it.
    fn obey(&mut self, command: Command) -> Result<(), Refusal> {
        let mut reply = Reply { expected: ExpectedAnswers::of(&command), worker: self };
        match command {
            Command::Hello { protocol, oldest } => reply.send(hello(protocol, oldest)?),
            Command::Prepare { cell } => reply.prepare(&cell),
            Command::Warm { rule, at_least, iterations } => {
                let warmed = reply.cell()?.warm(rule, at_least, iterations.max(1))?;
                reply.samples(SamplePhase::Warmup, warmed.samples)?;
                let warmup = Some(warmed.status);
                reply.send(Answer::Done { warmup, stop: None, output_hash: None, non_finite: Vec::new() })
            }
            Command::Measure { rule, iterations } => {
                let cell = reply.cell()?;
                let measured = cell.measure(rule, iterations.max(1))?;
                let (values, checked) = (cell.used()?, cell.check()?);
                reply.send(Answer::Metrics { values })?;
                reply.samples(SamplePhase::Warmup, measured.settled)?;
                reply.samples(SamplePhase::Measure, measured.samples)?;
                reply.send(checked.into_answer(Some(measured.reason)))
            }
            Command::Load { queries, inferences } => {
                let cell = reply.cell()?;
                let served = cell.serve(&queries, inferences.max(1))?;
                let (values, checked) = (cell.used()?, cell.check()?);
                reply.send(Answer::Metrics { values })?;
                reply.samples(SamplePhase::Measure, served.samples)?;
                reply.send(checked.into_answer(Some(served.reason)))
            }
            Command::Slice { time, samples, iterations, .. } => {
                let columns = reply.cell()?.slice(time, samples, iterations.max(1))?;
                reply.samples(SamplePhase::Measure, columns)?;
                reply.send(Answer::done())
            }
            Command::Check => {
                let cell = reply.cell()?;
                let (values, checked) = (cell.used()?, cell.check()?);
                reply.send(Answer::Metrics { values })?;
                reply.send(checked.into_answer(None))
            }
            Command::Afterwards(wanted) => {
                let values = reply.cell()?.afterwards(wanted);
                reply.send(Answer::Metrics { values })?;
                reply.send(Answer::done())
            }
            Command::Profile { rule, trace } => {
                let cell = reply.cell()?;
                let measured = cell.measure(rule, 1)?;
                let resident = cell.resident();
                let traced = cell.node_times(&measured.samples, trace.as_deref().map(Path::new))?;
                reply.send(Answer::Memory { resident, arena: traced.arena })?;
                traced.device.map_or(Ok(()), |time| reply.send(Answer::Device { time }))?;
                reply.samples(SamplePhase::Warmup, measured.settled)?;
                reply.samples(SamplePhase::Measure, measured.samples)?;
                for nodes in traced.nodes.chunks(NODES_IN_LINE).map(<[NodeTime]>::to_vec) {
                    reply.send(Answer::Nodes { nodes })?;
                }
                reply.send(Answer::stopped(measured.reason))
            }
            Command::Outputs { path } => {
                reply.cell()?.write_outputs(Path::new(&path))?;
                reply.send(Answer::done())
            }
            Command::ActivationRanges { calibration, data } => {
                let values = reply.cell()?.activation_ranges(calibration, data.as_ref())?;
                reply.send(Answer::Ranges { values })?;
                reply.send(Answer::done())
            }
            Command::Evaluate { data, items_in_file, path } => {
                reply.cell()?.evaluate(&data, items_in_file, Path::new(&path))?;
                reply.send(Answer::done())
            }
            Command::Finish => reply.send(Answer::done()),
        }
    }
}

/// The answers to one command: only what belongs to it leaves.
struct Reply<'a, W: Write> {
    expected: ExpectedAnswers,
    worker: &'a mut Worker<W>,
}

impl<W: Write> Reply<'_, W> {
    fn send(&mut self, answer: Answer) -> Result<(), Refusal> {
        self.expected.take(&answer, None).map_err(|text| Failure::new(FailureKind::Internal, text))?;
        Ok(self.worker.write(&answer)?)
    }

    /// Nothing for no samples; several lines for many.
    fn samples(&mut self, phase: SamplePhase, samples: Samples) -> Result<(), Refusal> {
        samples.parts(SAMPLES_IN_LINE).try_for_each(|columns| self.send(Answer::Samples { phase, columns }))
    }

    fn cell(&mut self) -> Result<&mut Loaded, Failure> {
        self.worker.cell.as_mut().ok_or_else(|| Failure::new(FailureKind::Protocol, "no cell is prepared"))
    }

    fn prepare(&mut self, request: &CellRequest) -> Result<(), Refusal> {
        self.send(Answer::Phase { name: Phase::Load })?;
        let loaded = Loaded::load(request)?;
        self.send(Answer::Metrics { values: loaded.values })?;
        self.worker.cell = Some(loaded.cell);
        self.send(loaded.ready)
    }
}

fn hello(newest: u32, oldest: u32) -> Result<Answer, Failure> {
    if newest < OLDEST_PROTOCOL || oldest > PROTOCOL {
        let text = format!("the parent speaks protocol {oldest} to {newest}, this worker speaks {PROTOCOL}");
        return Err(Failure::new(FailureKind::Protocol, text));
    }
    let worker = format!("perfrun {}", env!("CARGO_PKG_VERSION"));
    Ok(greeting(&worker, CommandName::CAPABILITIES.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::load::Queries;
    use crate::measure::stop::StopReason;
    use crate::validator::ResponseValidator;
    use base::quantity::Nanos;
    use experiment::{Mock, SamplesStop, SamplesWarmup, Stop, Warmup};

    fn cell() -> Box<CellRequest> {
        Box::new(CellRequest::of_script("c", Mock::steady(Nanos(1_000))))
    }

    #[test]
    fn every_command_is_answered_with_what_belongs_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (iterations, time) = (1, Nanos(10_000));
        let many = SAMPLES_IN_LINE as u32 + 7;
        let calibration = experiment::Calibration::MinMax;
        let commands = [
            Command::HELLO,
            Command::Prepare { cell: cell() },
            Command::Warm { rule: Warmup::Samples(SamplesWarmup { count: many }), at_least: Nanos(0), iterations },
            Command::Measure {
                rule: Stop::Samples(SamplesStop { count: many, max_time: Nanos::from_secs(9) }),
                iterations,
            },
            Command::Slice { time, samples: 4, iterations, warms: false },
            Command::Slice { time, samples: 4, iterations, warms: false },
            Command::Check,
            Command::Profile {
                rule: Stop::Samples(SamplesStop { count: 7, max_time: Nanos::from_secs(9) }),
                trace: None,
            },
            Command::Outputs { path: folder.path().to_string_lossy().into_owned() },
            Command::ActivationRanges { calibration, data: None },
            Command::Finish,
        ];
        let mut worker = Worker { out: Vec::new(), cell: None };
        let mut validator = ResponseValidator::default();
        for command in commands {
            validator.expect(&command).expect("announced");
            let name = command.name();
            assert!(worker.obey(command).is_ok(), "{name:?}");
            let written = std::mem::take(&mut worker.out);
            let lines: Vec<&[u8]> = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
            for (index, line) in lines.iter().enumerate() {
                let answer = serde_json::from_slice(line).expect("an answer");
                assert_eq!(validator.accept(answer), Ok(index + 1 == lines.len()), "{name:?}");
            }
        }
        let data = validator.run.data;
        assert_eq!((data.warmup.len(), data.measured.len()), (many as usize, many as usize + 15));
        assert_eq!((data.slices, data.stop_reason), (vec![4, 4], Some(StopReason::Samples)));
        assert!(validator.run.ranges.is_some_and(|ranges| ranges.contains_key("output")));
    }

    #[test]
    fn queries_are_answered_with_samples_that_overlap() {
        let mut worker = Worker { out: Vec::new(), cell: None };
        let mut validator = ResponseValidator::default();
        let queries = Queries::Open { due_ns: vec![0, 500, 600], give_up_ns: u64::MAX };
        for command in [
            Command::HELLO,
            Command::Prepare { cell: cell() },
            Command::Load { queries, inferences: 1 },
            Command::Finish,
        ] {
            validator.expect(&command).expect("announced");
            assert!(worker.obey(command).is_ok());
            for line in std::mem::take(&mut worker.out).split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                validator.accept(serde_json::from_slice(line).expect("an answer")).expect("one that belongs");
            }
        }
        let data = validator.run.data;
        assert_eq!(data.measured.duration_ns, [1_000, 1_500, 2_400]);
        assert_eq!((data.measured.service_ns, data.stop_reason), (vec![1_000; 3], Some(StopReason::Samples)));
    }

    #[test]
    fn a_source_file_is_named_from_its_package_on() {
        let registry = "/home/x/.cargo/registry/src/index.crates.io-1949/ort-2.0.0/src/value/mod.rs";
        assert_eq!(within_package(registry), "ort-2.0.0/src/value/mod.rs");
        assert_eq!(within_package("src/worker/loaded.rs"), "src/worker/loaded.rs");
    }

    #[test]
    fn what_is_no_command_has_a_reason() {
        let next = |text: &str| match next_command(&mut text.as_bytes()) {
            Some(Err(failure)) => failure.message,
            other => panic!("{other:?}"),
        };
        assert!(next("{}\n").starts_with("the worker does not understand: "));
        assert_eq!(next(&"x".repeat((16 << 20) + 1)), "the parent wrote a line of more than 16 MiB");
        assert!(next_command(&mut &b""[..]).is_none());
    }
}
