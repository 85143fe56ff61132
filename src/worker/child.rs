//! The built-in worker: reads commands, measures, answers.
//!
//! Its protocol leaves through a descriptor of its own; descriptor 1 points at 2 before any library is loaded, so that
//! libraries that print cannot break the dialogue. It ends as soon as its parent does, whatever it is doing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc;

use super::protocol::{Answer, Command, PROTOCOL};
use crate::backend::mock::{GARBAGE, ScriptedClock};
use crate::backend::{self, Backend, BackendRequest, CellRequest, Failure, FailureKind, OutputTensor};
use crate::clock::{Clock, HostClock};
use crate::measure::sampler::Sampler;
use crate::measure::{stop, warm};
use crate::metric;
use crate::onnx::ElementType;
use crate::spec::model::MockStep;
use crate::stats::random::fnv1a64;

/// Speaks the protocol on standard input and output until `finish` or the end of the parent.
///
/// # Errors
///
/// When a descriptor cannot be had or the parent's pipe is closed.
pub fn serve() -> io::Result<()> {
    let protocol_out = separate_protocol_from_standard_output()?;
    end_with_parent();
    let commands = read_commands();
    let mut worker = Worker { out: BufWriter::new(protocol_out), prepared: None };
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

/// A loaded cell.
struct Prepared {
    backend: Box<dyn Backend>,
    clock: AnyClock,
    /// Clock reading at the start of the first inference.
    origin: u64,
}

/// The clock that belongs to a backend. One match a reading costs less than the clock's own step.
enum AnyClock {
    Host(HostClock),
    Scripted(ScriptedClock),
}

impl Clock for AnyClock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            AnyClock::Host(clock) => clock.now(),
            AnyClock::Scripted(clock) => clock.now(),
        }
    }

    fn calibrate(&self) -> crate::clock::ClockQuality {
        match self {
            AnyClock::Host(clock) => clock.calibrate(),
            AnyClock::Scripted(clock) => clock.calibrate(),
        }
    }
}

struct Worker {
    out: BufWriter<File>,
    prepared: Option<Prepared>,
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
                let mut prepared = self.take_prepared()?;
                prepared.backend.begin(MockStep::Warmup);
                let mut sampler = Sampler::new(prepared.backend.as_mut(), &prepared.clock, prepared.origin);
                let warmed = warm::warm(&mut sampler, rule, at_least, iterations.max(1))?;
                self.prepared = Some(prepared);
                self.answer(&Answer::Samples { phase: "warmup".to_owned(), columns: warmed.samples })?;
                Ok(Answer::Done { warmup: Some(warmed.status), stop: None, output_hash: None })
            }
            Command::Measure { rule, iterations } => self.measure(rule, iterations.max(1)),
            Command::Outputs { path } => {
                let mut prepared = self.take_prepared()?;
                prepared.backend.select(0);
                write_outputs(Path::new(&path), &first_outputs(prepared.backend.as_mut())?)?;
                self.prepared = Some(prepared);
                Ok(Answer::done())
            }
            Command::Finish => Ok(Answer::done()),
        }
    }

    fn take_prepared(&mut self) -> Result<Prepared, Refusal> {
        let missing = || Failure::new(FailureKind::Protocol, "no cell is prepared");
        Ok(self.prepared.take().ok_or_else(missing)?)
    }

    fn prepare(&mut self, request: &CellRequest) -> Result<Answer, Refusal> {
        self.answer(&Answer::Phase { name: "load".to_owned() })?;
        let scripted = ScriptedClock::default();
        let clock = match &request.backend {
            BackendRequest::Onnxruntime(settings) => {
                warm_page_cache(&settings.model)?;
                AnyClock::Host(HostClock::start())
            }
            BackendRequest::Mock(_) => AnyClock::Scripted(scripted.clone()),
        };
        let quality = clock.calibrate();
        let mut backend = backend::open(request, &scripted)?;
        let before_load = clock.now();
        backend.load()?;
        let loaded = clock.now();
        backend.bind()?;
        backend.select(0);
        let origin = clock.now();
        backend.iterate(1)?;
        let first = clock.now();
        let outputs = backend.outputs()?;
        let mut values = BTreeMap::from([
            (metric::LOAD.name.to_owned(), (loaded - before_load) as f64),
            (metric::FIRST_INFERENCE.name.to_owned(), (first - origin) as f64),
            (metric::CLOCK_OVERHEAD.name.to_owned(), quality.overhead_ns as f64),
            (metric::CLOCK_RESOLUTION.name.to_owned(), quality.resolution_ns as f64),
        ]);
        let placement = backend.placement();
        values.insert(metric::INPUT_POOL.name.to_owned(), placement.input_pool_bytes as f64);
        self.answer(&Answer::Metrics { values })?;
        // Only the rehearsal needs to see every input set; afterwards the shapes are known.
        let output_shapes = if request.outputs.is_some() { None } else { constant_shapes(backend.as_mut())? };
        let answer = Answer::Ready {
            placement,
            output_shapes,
            output_hash: hash_outputs(&outputs),
            non_finite: outputs.iter().filter(|output| has_non_finite(output)).map(|o| o.name.clone()).collect(),
        };
        self.prepared = Some(Prepared { backend, clock, origin });
        Ok(answer)
    }

    fn measure(&mut self, rule: crate::spec::model::Stop, iterations: u32) -> Result<Answer, Refusal> {
        let mut prepared = self.take_prepared()?;
        prepared.backend.begin(MockStep::Measure);
        let before = prepared.backend.usage();
        let mut sampler = Sampler::new(prepared.backend.as_mut(), &prepared.clock, prepared.origin);
        let measured = stop::measure(&mut sampler, rule, iterations)?;
        let after = prepared.backend.usage();
        let output_hash = hash_outputs(&first_outputs(prepared.backend.as_mut())?);
        self.prepared = Some(prepared);
        let samples = measured.samples;
        let inferences = samples.len() as f64 * f64::from(iterations);
        let span = samples.span_ns() as f64;
        let mut values = BTreeMap::new();
        if let Some(peak) = after.peak_resident_bytes {
            values.insert(metric::PEAK_RSS.name.to_owned(), peak as f64);
        }
        if let (Some(start), Some(end)) = (before.cpu_time_ns, after.cpu_time_ns) {
            let spent = end.saturating_sub(start) as f64;
            values.insert(metric::CPU_TIME.name.to_owned(), spent / inferences.max(1.0));
            values.insert(metric::CPU_UTILISATION.name.to_owned(), spent / span.max(1.0));
        }
        self.answer(&Answer::Metrics { values })?;
        self.answer(&Answer::Samples { phase: "measure".to_owned(), columns: samples })?;
        Ok(Answer::Done { warmup: None, stop: Some(measured.reason), output_hash: Some(output_hash) })
    }
}

fn hello(protocol: u32) -> Result<Answer, Refusal> {
    if protocol != PROTOCOL {
        let text = format!("the parent speaks protocol {protocol}, this worker speaks {PROTOCOL}");
        return Err(Failure::new(FailureKind::Protocol, text).into());
    }
    let capabilities = ["prepare", "warm", "measure", "outputs"].map(str::to_owned).to_vec();
    let worker = format!("perfrun {}", env!("CARGO_PKG_VERSION"));
    Ok(Answer::Hello { protocol, worker, capabilities })
}

/// Reads the model file once, so that `load_ns` never includes the disk.
fn warm_page_cache(model: &Path) -> Result<(), Failure> {
    let copied = File::open(model).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    copied.map(|_| ()).map_err(|error| Failure::new(FailureKind::Model, format!("{}: {error}", model.display())))
}

/// The outputs for the first input set: computed again, because the last sample may have used another one.
fn first_outputs(backend: &mut dyn Backend) -> Result<Vec<OutputTensor>, Failure> {
    backend.select(0);
    backend.iterate(1)?;
    backend.outputs()
}

/// Shapes of the outputs, if they are the same for every input set.
fn constant_shapes(backend: &mut dyn Backend) -> Result<Option<BTreeMap<String, Vec<u64>>>, Failure> {
    let mut shapes: Option<BTreeMap<String, Vec<u64>>> = None;
    for set in 0..backend.input_sets() {
        backend.select(set);
        backend.iterate(1)?;
        let these = backend.outputs()?.into_iter().map(|output| (output.name, output.shape)).collect();
        if shapes.as_ref().is_some_and(|known| *known != these) {
            return Ok(None);
        }
        shapes = Some(these);
    }
    Ok(shapes)
}

/// FNV-1a over names, shapes and bytes of all outputs, as 16 hex digits.
fn hash_outputs(outputs: &[OutputTensor]) -> String {
    let mut text = Vec::new();
    for output in outputs {
        text.extend_from_slice(format!("{}\0{:?}\0", output.name, output.shape).as_bytes());
        text.extend_from_slice(&fnv1a64(&output.bytes).to_le_bytes());
    }
    format!("{:016x}", fnv1a64(&text))
}

fn has_non_finite(output: &OutputTensor) -> bool {
    use half::{bf16, f16};
    let bytes = &output.bytes;
    match output.element {
        ElementType::Float32 => bytes.as_chunks::<4>().0.iter().any(|b| !f32::from_le_bytes(*b).is_finite()),
        ElementType::Float64 => bytes.as_chunks::<8>().0.iter().any(|b| !f64::from_le_bytes(*b).is_finite()),
        ElementType::Float16 => bytes.as_chunks::<2>().0.iter().any(|b| !f16::from_le_bytes(*b).is_finite()),
        ElementType::Bfloat16 => bytes.as_chunks::<2>().0.iter().any(|b| !bf16::from_le_bytes(*b).is_finite()),
        _ => false,
    }
}

/// Writes each output as `<index>.npy` (NumPy's format 1.0) with `names.json` beside them.
fn write_outputs(folder: &Path, outputs: &[OutputTensor]) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        for (index, output) in outputs.iter().enumerate() {
            let mut file = BufWriter::new(File::create(folder.join(format!("{index}.npy")))?);
            file.write_all(&npy_header(output)?)?;
            file.write_all(&output.bytes)?;
            file.flush()?;
        }
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        std::fs::write(folder.join("names.json"), serde_json::to_vec(&names)?)
    };
    write().map_err(|error| Failure::new(FailureKind::Output, format!("{}: {error}", folder.display())))
}

/// The header of NumPy's `.npy` format, version 1.0, padded to a multiple of 64 bytes.
fn npy_header(output: &OutputTensor) -> io::Result<Vec<u8>> {
    let descriptor = match output.element {
        ElementType::Float32 => "<f4",
        ElementType::Float64 => "<f8",
        ElementType::Float16 => "<f2",
        ElementType::Int8 => "|i1",
        ElementType::Int16 => "<i2",
        ElementType::Int32 => "<i4",
        ElementType::Int64 => "<i8",
        ElementType::Uint8 => "|u1",
        ElementType::Uint16 | ElementType::Bfloat16 => "<u2",
        ElementType::Uint32 => "<u4",
        ElementType::Uint64 => "<u8",
        ElementType::Bool => "|b1",
        ElementType::String | ElementType::Other(_) => {
            return Err(io::Error::other(format!(
                "output `{}` of type {} has no .npy form",
                output.name, output.element
            )));
        }
    };
    let shape: String = output.shape.iter().map(|length| format!("{length}, ")).collect();
    let mut dictionary = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({shape}), }}");
    let unpadded = 10 + dictionary.len() + 1;
    dictionary.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    dictionary.push('\n');
    let length = u16::try_from(dictionary.len()).map_err(|_| io::Error::other("too many dimensions for .npy"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(values: &[f32]) -> OutputTensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        OutputTensor { name: "y".to_owned(), element: ElementType::Float32, shape: vec![values.len() as u64], bytes }
    }

    #[test]
    fn non_finite_outputs_are_found() {
        assert!(!has_non_finite(&output(&[0.0, -1.0])));
        assert!(has_non_finite(&output(&[0.0, f32::NAN])));
        assert!(has_non_finite(&output(&[f32::INFINITY])));
    }

    #[test]
    fn the_hash_sees_values_names_and_shapes() {
        let one = hash_outputs(&[output(&[1.0, 2.0])]);
        assert_ne!(one, hash_outputs(&[output(&[1.0, 2.5])]));
        let mut reshaped = output(&[1.0, 2.0]);
        reshaped.shape = vec![1, 2];
        assert_ne!(one, hash_outputs(&[reshaped]));
        assert_eq!(one, hash_outputs(&[output(&[1.0, 2.0])]));
    }

    #[test]
    fn npy_headers_are_aligned_and_name_shape_and_type() {
        let header = npy_header(&output(&[1.0, 2.0])).expect("a header");
        assert_eq!(header.len() % 64, 0);
        let text = String::from_utf8_lossy(&header[10..]).into_owned();
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, ), }"), "{text}");
    }
}
