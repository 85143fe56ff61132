//! What a worker says is taken in here, once it is seen to be what was asked for: a worker is another program.

use std::collections::BTreeMap;
use std::time::Instant;

use super::expected::ExpectedAnswers;
use super::protocol::{Answer, Command, CommandName, OLDEST_PROTOCOL, PROTOCOL, SamplePhase};
use super::result::WorkerRun;
use crate::backend::trace::{DeviceTime, NodeTime, OnDevice};
use crate::backend::{Failure, FailureKind};
use crate::measure::Samples;
use base::machine::environment::Environment;
use base::metric::{self, OwnMetric};
use base::quantity::Nanos;
use experiment::Device;
use onnx::precision::activation_ranges::Range;

/// What was heard of a run, and what may be heard next.
#[derive(Debug, Default)]
pub(super) struct ResponseValidator {
    /// What the worker found out so far.
    pub(super) run: WorkerRun,
    /// The command under way.
    asked: Option<Asked>,
    /// Who speaks, once it has said so.
    pub(super) worker: Option<Greeting>,
    /// When the last sample so far ended.
    last_end: u64,
    /// Input sets that were asked for.
    pub(super) input_sets: u32,
    /// It is not perfrun's own worker.
    is_program: bool,
    /// The metrics of the specification that it may report.
    metrics: Vec<OwnMetric>,
    /// When the worker was greeted.
    greeted: Option<Instant>,
    /// Where the cell runs, once one was asked for.
    pub(super) environment: Option<Environment>,
}

#[derive(Debug)]
struct Asked {
    name: CommandName,
    expected: ExpectedAnswers,
    /// Counted samples before it.
    counted_before: usize,
    at: Instant,
}

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Greeting {
    /// Name and version.
    pub name: String,
    pub capabilities: Vec<CommandName>,
    /// The devices that it can use; `None`: it does not know.
    pub devices: Option<Vec<String>>,
    /// JSON Schema of its options.
    pub options: Option<serde_json::Value>,
    /// Versions by name.
    pub about: BTreeMap<String, String>,
    /// Whether it takes calls of a decoder.
    pub decodes: bool,
}

fn protocol(text: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, text)
}

impl ResponseValidator {
    /// Takes note of a command that is about to be sent.
    ///
    /// # Errors
    ///
    /// A command that the worker did not announce.
    pub(super) fn expect(&mut self, command: &Command) -> Result<(), Failure> {
        let name = command.name();
        if CommandName::CAPABILITIES.contains(&name) {
            let able = self.worker.as_ref().is_some_and(|worker| worker.capabilities.contains(&name));
            if !able {
                let who = self.worker.as_ref().map_or("the worker", |worker| worker.name.as_str());
                return Err(protocol(format!("{who} does not understand `{}`, which it was to do", name.word())));
            }
        }
        let at = Instant::now();
        if let Command::Prepare { cell } = command {
            self.input_sets = cell.input_sets.max(1);
            self.environment = Some(cell.backend.environment());
            self.is_program = cell.backend.is_foreign();
            self.metrics.clone_from(&cell.metrics);
        }
        self.greeted.get_or_insert(at);
        let counted_before = self.run.data.measured.len();
        self.asked = Some(Asked { name, expected: ExpectedAnswers::of(command), counted_before, at });
        Ok(())
    }

    /// Takes an answer in; true if it ends the command.
    ///
    /// # Errors
    ///
    /// The failure that it reports, or an answer that is not what was asked for.
    pub(super) fn accept(&mut self, mut answer: Answer) -> Result<bool, Failure> {
        if let Answer::Failed { failure } = answer {
            return Err(failure);
        }
        let Some(asked) = &mut self.asked else { return Err(protocol("the worker spoke without being asked")) };
        let waited = self.environment.and_then(|environment| environment.elapsed(asked.at));
        let ends = asked.expected.take(&answer, waited).map_err(protocol)?;
        let (name, counted_before) = (asked.name, asked.counted_before);
        if let Answer::Metrics { values } = &mut answer {
            self.keep_own(values, name);
        }
        match &answer {
            Answer::Hello { protocol: version, .. } if !(OLDEST_PROTOCOL..=PROTOCOL).contains(version) => {
                return Err(protocol(format!("the worker speaks protocol {version}, perfrun speaks {PROTOCOL}")));
            }
            Answer::Hello { worker, capabilities, devices, options, about, decodes, .. } => {
                self.worker = Some(Greeting {
                    name: worker.clone(),
                    capabilities: capabilities.clone(),
                    devices: devices.clone(),
                    options: options.clone(),
                    about: about.clone(),
                    decodes: *decodes,
                });
            }
            Answer::Samples { phase, columns } => self.check_samples(*phase, columns, name)?,
            other => check_values(other).map_err(protocol)?,
        }
        self.run.keep(answer);
        if ends {
            self.asked = None;
            let durations = &self.run.data.measured.duration_ns;
            if !durations.is_empty() && durations.iter().all(|duration| *duration == 0) {
                return Err(protocol("no counted sample took any time"));
            }
            if name == CommandName::Slice {
                let data = &mut self.run.data;
                data.slices.push((data.measured.len() - counted_before) as u32);
            }
        }
        Ok(ends)
    }

    /// Where a program does not say what executes the model, it is the program itself; where a cell of another device than the
    /// CPU ran it has to say.
    ///
    /// # Errors
    ///
    /// It does not.
    pub(super) fn check_program(&mut self, device: &str) -> Result<(), Failure> {
        let says_where = self.run.data.placement.as_ref().is_some_and(|placement| !placement.nodes.is_empty());
        if device != Device::CPU && !says_where {
            let text = format!("the program does not say where a cell of {device} ran (`placement.nodes`)");
            return Err(Failure::new(FailureKind::Provider, text));
        }
        let Some(worker) = &self.worker else { return Ok(()) };
        let about =
            || worker.about.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join("; ");
        let placement = self.run.data.placement.get_or_insert_default();
        placement.runtime_version.get_or_insert_with(|| worker.name.clone());
        placement.build.get_or_insert_with(about);
        Ok(())
    }

    /// Keeps those of a program's metrics that perfrun knows and that a program may report with this command.
    /// The specification's are reported under the name and in the unit that stand there.
    fn keep_own(&self, values: &mut BTreeMap<String, f64>, command: CommandName) {
        let value_of = |declared: &OwnMetric| {
            Some((declared.metric.name.to_owned(), values.get(declared.metric.stem())? * declared.factor))
        };
        let declared: Vec<(String, f64)> = self.metrics.iter().filter_map(value_of).collect();
        values.retain(|name, _| self.metrics.iter().all(|declared| declared.metric.stem() != name));
        let of_load = [metric::LOAD, metric::BUILD, metric::FIRST_INFERENCE].map(|metric| metric.name);
        values.retain(|name, _| {
            let is_known = metric::METRICS.iter().any(|metric| metric.name == name) && *name != metric::SPAWN.name;
            !self.is_program || is_known && (command == CommandName::Prepare || !of_load.contains(&name.as_str()))
        });
        values.extend(declared);
    }

    /// Time goes on from each sample to the next, whatever phase they are of, and not faster than here.
    fn check_samples(&mut self, phase: SamplePhase, columns: &Samples, name: CommandName) -> Result<(), Failure> {
        columns
            .check_after(self.run.data.samples_mut(phase), self.last_end, name == CommandName::Load)
            .map_err(|problem| protocol(format!("`{}` gave samples that are none: {problem}", name.word())))?;
        if let Some(input) = columns.input.iter().find(|input| **input >= self.input_sets.max(1)) {
            let sets = self.input_sets;
            return Err(protocol(format!("`{}` gave a sample of input set {input} of {sets}", name.word())));
        }
        if let (Some(start), Some(duration)) = (columns.start_ns.last(), columns.duration_ns.last()) {
            self.last_end = match name {
                CommandName::Load => self.last_end.max(*start),
                _ => start + duration,
            };
        }
        match self.environment.zip(self.greeted).and_then(|(environment, greeted)| environment.elapsed(greeted)) {
            Some(here) if self.last_end > (here.as_nanos() as f64 * CLOCKS_DIFFER) as u64 + READING_NS => {
                let end = Nanos(self.last_end);
                Err(protocol(format!("`{}` gave a sample that ends after {end}, and {here:.1?} passed", name.word())))
            }
            _ => Ok(()),
        }
    }
}

/// Hears lines as answers to these commands, one after the other, up to the first that is none.
pub fn overhear(commands: &[Command], lines: &[u8]) {
    let (mut validator, mut commands) = (ResponseValidator::default(), commands.iter());
    let mut is_answered = true;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut next = || commands.next().map(|command| validator.expect(command));
        if is_answered && !matches!(next(), Some(Ok(()))) {
            return;
        }
        let Ok(answer) = serde_json::from_slice(line) else { return };
        let Ok(ends) = validator.accept(answer) else { return };
        is_answered = ends;
    }
}

/// How much faster a worker's clock may run than ours: far more than clocks of one machine are set right by.
const CLOCKS_DIFFER: f64 = 1.01;

/// And what reading them may take.
const READING_NS: u64 = 10_000_000;

/// No time, size or count that a run could have is larger: thirty years in nanoseconds.
const LARGEST_METRIC: f64 = 1e18;

/// Numbers must be numbers, and metrics those that perfrun knows.
fn check_values(answer: &Answer) -> Result<(), String> {
    match answer {
        Answer::Metrics { values } => {
            for (name, value) in values {
                if metric::by_name(name).is_none() {
                    return Err(format!("the worker gave a metric `{name}`, which perfrun does not know"));
                }
                if !(0.0..=LARGEST_METRIC).contains(value) {
                    let declared = metric::by_name(name).filter(|known| known.is_own());
                    let name = declared.map_or(name.as_str(), |declared| declared.stem());
                    return Err(format!(
                        "the worker gave {value:e} for `{name}`; it must be from 0 to {LARGEST_METRIC:e}"
                    ));
                }
            }
        }
        Answer::Ranges { values } => {
            for (name, Range { least, most }) in values {
                let is_range = least.is_finite() && most.is_finite() && *least <= 0.0 && *most >= 0.0;
                if !is_range {
                    return Err(format!("the worker gave {least} to {most} for `{name}`, which is no range around 0"));
                }
            }
        }
        Answer::Nodes { nodes } => {
            for NodeTime { node, executions, self_ns, total_us, on_device } in nodes {
                let mut numbers = vec![*executions, self_ns.unwrap_or(0.0), *total_us];
                if let Some(OnDevice { launch_ns, waits_ns, kernels }) = on_device {
                    numbers.extend([*launch_ns, *waits_ns]);
                    numbers.extend(kernels.iter().flat_map(|kernel| [kernel.executions, kernel.ns]));
                }
                if let Some(wrong) = numbers.iter().find(|number| !(0.0..=LARGEST_METRIC).contains(*number)) {
                    return Err(format!("the worker gave {wrong} for node `{}`", node.path));
                }
            }
        }
        Answer::Device { time: DeviceTime::Recorded { busy_ns, span_ns, .. } } => {
            if let Some(wrong) = [busy_ns, span_ns].into_iter().find(|number| !(0.0..=LARGEST_METRIC).contains(*number))
            {
                return Err(format!("the worker gave {wrong} for the time of a device"));
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::greeting;

    fn greeted(capabilities: &[CommandName]) -> ResponseValidator {
        let mut validator = ResponseValidator::default();
        validator.expect(&Command::HELLO).expect("the first command");
        assert_eq!(validator.accept(greeting("w 1", capabilities.to_vec())), Ok(true));
        validator
    }

    fn said(outcome: Result<bool, Failure>) -> String {
        let failure = outcome.expect_err("not what was asked for");
        assert_eq!(failure.kind, FailureKind::Protocol);
        failure.message
    }

    fn samples(phase: SamplePhase, start_ns: &[u64]) -> Answer {
        let (duration_ns, input) = (vec![1; start_ns.len()], vec![0; start_ns.len()]);
        Answer::Samples {
            phase,
            columns: Samples { start_ns: start_ns.to_vec(), duration_ns, input, ..Samples::default() },
        }
    }

    const SLICE: Command = Command::Slice { time: Nanos(1), samples: 9, iterations: 1, warms: false };

    #[test]
    fn a_command_that_was_not_announced_is_not_sent() {
        let mut validator = greeted(&[CommandName::Prepare, CommandName::Warm]);
        let refused = validator.expect(&SLICE).expect_err("it cannot");
        assert_eq!(refused.message, "w 1 does not understand `slice`, which it was to do");
        assert_eq!(validator.expect(&Command::Finish), Ok(()));
        assert!(ResponseValidator::default().expect(&SLICE).is_err(), "nobody has said hello");
    }

    #[test]
    fn a_worker_speaks_when_it_is_asked() {
        let mut validator = greeted(&CommandName::CAPABILITIES);
        assert_eq!(said(validator.accept(Answer::done())), "the worker spoke without being asked");
    }

    #[test]
    fn slices_are_counted_and_time_goes_on_from_one_to_the_next() {
        let mut validator = greeted(&CommandName::CAPABILITIES);
        for part in [[1, 2], [5, 6]] {
            validator.expect(&SLICE).expect("announced");
            assert_eq!(validator.accept(samples(SamplePhase::Measure, &part)), Ok(false));
            assert_eq!(validator.accept(Answer::done()), Ok(true));
        }
        assert_eq!(validator.run.data.slices, [2, 2]);
        validator.expect(&SLICE).expect("announced");
        let text = said(validator.accept(samples(SamplePhase::Measure, &[3])));
        assert_eq!(
            text,
            "`slice` gave samples that are none: sample 0 starts at 3 ns, before the end of the one before it"
        );
        assert_eq!(validator.run.data.measured.len(), 4, "what is none is not kept");
    }

    #[test]
    fn metrics_are_known_and_finite() {
        let mut validator = greeted(&CommandName::CAPABILITIES);
        validator.expect(&Command::Check).expect("announced");
        let metrics = |name: &str, value| Answer::Metrics { values: BTreeMap::from([(name.to_owned(), value)]) };
        assert_eq!(validator.accept(metrics("load_ns", 1.0)), Ok(false));
        assert!(said(validator.accept(metrics("luck", 1.0))).contains("`luck`"));
        assert!(said(validator.accept(metrics("load_ns", f64::NAN))).contains("`load_ns`"));
        assert_eq!(validator.run.data.metrics, BTreeMap::from([("load_ns".to_owned(), 1.0)]));
    }

    #[test]
    fn ranges_have_zero_in_them() {
        let mut validator = greeted(&CommandName::CAPABILITIES);
        let calibration = experiment::Calibration::MinMax;
        validator.expect(&Command::ActivationRanges { calibration, data: None }).expect("announced");
        let ranges = |least, most| Answer::Ranges { values: BTreeMap::from([("y".to_owned(), Range { least, most })]) };
        for (least, most) in [(1.0, 2.0), (-2.0, -1.0), (f32::NEG_INFINITY, 0.0), (0.0, f32::NAN)] {
            assert!(said(validator.accept(ranges(least, most))).contains("for `y`"));
        }
        assert_eq!(validator.accept(ranges(-1.0, 1.0)), Ok(false));
    }

    #[test]
    fn another_version_is_told_apart() {
        let mut validator = ResponseValidator::default();
        validator.expect(&Command::HELLO).expect("the first command");
        let newer = r#"{"type":"hello","protocol":99,"worker":"w","capabilities":[]}"#;
        let text = said(validator.accept(serde_json::from_str(newer).expect("a hello")));
        assert_eq!(text, format!("the worker speaks protocol 99, perfrun speaks {PROTOCOL}"));
    }
}
