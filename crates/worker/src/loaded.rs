//! The cell that a worker has loaded: its backend, its clock, and what the steps so far amount to.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::path::Path;

use super::activation_ranges::activation_ranges;
use super::affinity::bind_to;
use super::batches::Data;
use super::evaluate::evaluate;
use super::outputs::{Checked, Survey, first_outputs, hash_outputs, non_finite, survey, write_outputs};
use super::protocol::{Afterwards, Answer};
use crate::backend::trace::{Arena, DeviceTime, NodeTime, Resident};
use crate::backend::{self, Backend, Caller, CellRequest, Failure, Phase, TensorRequest};
use crate::measure::Samples;
use crate::measure::cold::Eviction;
use crate::measure::load::{Queries, Served, serve};
use crate::measure::sampler::Sampler;
use crate::measure::slice::take_slice;
use crate::measure::stop::{MOST_RESERVED, Measured, Sampling};
use crate::measure::warm::{self, Warmed};
use base::machine::clock::{AnyClock, Clock, ClockQuality};
use base::machine::environment::Environment;
use base::machine::kernel::Kernel;
use base::machine::probe::{OwnState, OwnTotals, Usage};
use base::metric;
use base::quantity::Nanos;
use experiment::{Calibration, Stop, Warmup};
use onnx::precision::activation_ranges::Range;
use statistics::quantile::median;
use statistics::trimmed_mean::trimmed;

/// A loaded cell.
pub(super) struct Loaded {
    backend: Box<dyn Backend>,
    /// The other callers that serve queries.
    callers: Vec<Caller>,
    /// What it is fed.
    tensors: Vec<TensorRequest>,
    clock: AnyClock,
    /// What the clock cost before the model was loaded.
    quality: ClockQuality,
    /// Clock reading at the start of the first inference.
    origin: u64,
    /// Duration of the last sample of the warm-up.
    sample_ns: u64,
    /// Input set of the next counted sample.
    next_input: u32,
    cold: Option<Cold>,
    totals: Totals,
    environment: Environment,
    is_profiled: bool,
    /// The largest resident memory before and after loading.
    resident_around_load: Option<[u64; 2]>,
    /// What happened around the counted samples so far.
    own_totals: OwnTotals,
}

/// What it takes to begin samples with cold caches.
struct Cold {
    evict: Box<dyn FnMut()>,
    /// Peak memory before the buffer was made: the model's own.
    peak_resident_bytes: Option<u64>,
}

/// This process before a stretch of samples.
struct Before {
    thread_state: Option<OwnState>,
    used: Usage,
}

/// What the samples between two looks took so far, over all slices.
#[derive(Default)]
struct Totals {
    inferences: f64,
    busy_ns: f64,
    cpu_time_ns: Option<f64>,
    /// In user mode and in the kernel.
    parts_ns: Option<[f64; 2]>,
}

/// A cell that has just been loaded, and what is to be said about it.
pub(super) struct JustLoaded {
    pub(super) cell: Loaded,
    /// Metrics by stored name.
    pub(super) values: BTreeMap<String, f64>,
    /// Ends the step.
    pub(super) ready: Answer,
}

/// What a profile says of a process.
#[derive(Default)]
pub(super) struct NodeTimes {
    pub(super) nodes: Vec<NodeTime>,
    pub(super) arena: Option<Arena>,
    /// Where kernels were to be recorded.
    pub(super) device: Option<DeviceTime>,
}

impl Loaded {
    /// Loads a cell and runs it once.
    pub(super) fn load(request: &CellRequest) -> Result<JustLoaded, Failure> {
        if let Some(cpus) = &request.cpus {
            bind_to(cpus)?;
        }
        // A provider that could not be set up may crash when it is released (seen with WebGPU of ONNX Runtime 1.27.0 without
        // an adapter), and its reason would be lost: after a failure the process ends anyway.
        let mut backend = ManuallyDrop::new(backend::open(request)?);
        let clock = backend.clock();
        let quality = clock.calibrate();
        let builds_engine = backend.builds_engine();
        let resident_before = backend.usage().peak_resident_bytes;
        let before_load = clock.now();
        backend.load()?;
        let loaded = clock.now();
        let resident_around_load = resident_before.zip(backend.usage().peak_resident_bytes).map(<[u64; 2]>::from);
        backend.bind()?;
        backend.select(0);
        let origin = clock.now();
        backend.iterate(1)?;
        let first = clock.now();
        let outputs = backend.outputs()?;
        let placement = backend.placement();
        let mut values = BTreeMap::from([
            (metric::FIRST_INFERENCE.name.to_owned(), (first - origin) as f64),
            (metric::CLOCK_OVERHEAD.name.to_owned(), quality.overhead_ns as f64),
            (metric::CLOCK_RESOLUTION.name.to_owned(), quality.resolution_ns as f64),
        ]);
        // A command loads nothing.
        if backend.input_sets() > 0 {
            values.insert(metric::LOAD.name.to_owned(), (loaded - before_load) as f64);
            values.insert(metric::INPUT_POOL.name.to_owned(), placement.input_pool_bytes as f64);
        }
        if builds_engine {
            values.insert(metric::BUILD.name.to_owned(), (loaded - before_load + first - origin) as f64);
        }
        // Only the rehearsal needs to see every input set; afterwards the shapes are known.
        let survey = match &request.outputs {
            Some(_) => Survey::default(),
            None => {
                let survey = survey(backend.as_mut())?;
                backend.outputs_are(survey.shapes.as_ref())?;
                survey
            }
        };
        let ready = Answer::Ready {
            placement,
            output_shapes: survey.shapes,
            output_hash: Some(hash_outputs(&outputs)),
            non_finite: non_finite(&outputs).into_iter().chain(survey.non_finite).collect(),
        };
        // Now that the shapes of outputs are known.
        let before_callers = backend.usage().peak_resident_bytes;
        let more_callers = (1..request.callers).map(|_| backend.another(request.shares_session));
        let callers = more_callers.collect::<Result<Vec<Caller>, Failure>>()?;
        let resident = before_callers.zip(backend.usage().peak_resident_bytes);
        if let (Some((before, after)), false, count @ 1..) = (resident, request.shares_session, callers.len()) {
            let each = after.saturating_sub(before) as f64 / count as f64;
            values.insert(metric::SESSION_MEMORY.name.to_owned(), each);
        }
        let cold = request.evict_bytes.map(|bytes| Cold::new(bytes, &clock, backend.usage())).transpose()?;
        let sample_ns = first - origin;
        let cell = Loaded {
            backend: ManuallyDrop::into_inner(backend),
            callers,
            tensors: request.tensors.clone(),
            clock,
            quality,
            origin,
            sample_ns,
            next_input: 0,
            cold,
            totals: Totals::default(),
            environment: request.backend.environment(),
            is_profiled: request.profiled,
            resident_around_load,
            own_totals: OwnTotals::default(),
        };
        Ok(JustLoaded { cell, values, ready })
    }

    fn sampler(&mut self) -> Sampler<'_, dyn Backend, AnyClock> {
        let evict = self.cold.as_mut().map(|cold| -> &mut dyn FnMut() { cold.evict.as_mut() });
        Sampler::new(self.backend.as_mut(), &self.clock, self.origin).beginning_with(self.next_input).evicting(evict)
    }

    /// Runs until steady.
    pub(super) fn warm(&mut self, rule: Warmup, at_least: Nanos, iterations: u32) -> Result<Warmed, Failure> {
        self.backend.begin(Phase::Warm)?;
        let warmed = warm::warm(&mut self.sampler(), rule, at_least, iterations)?;
        self.sample_ns = warmed.samples.duration_ns.last().copied().unwrap_or(self.sample_ns);
        Ok(warmed)
    }

    /// Takes the counted samples of a run that is not cut into slices, right after those that settle it. Whatever else
    /// there is to do comes before these, or the first counted sample would pay for it.
    pub(super) fn measure(&mut self, rule: Stop, iterations: u32) -> Result<Measured, Failure> {
        self.backend.begin(Phase::Measure)?;
        let sampling = Sampling::prepare(rule);
        // A script has no caches, and with cold ones every sample pauses.
        let settle_ns = self.environment.on_machine(|| self.sample_ns).filter(|_| self.cold.is_none());
        let before = self.look();
        let measured = sampling.measure(&mut self.sampler(), settle_ns, iterations)?;
        let taken = measured.settled.len() + measured.samples.len();
        let durations = measured.settled.duration_ns.iter().chain(&measured.samples.duration_ns);
        let busy_ns = if self.backend.pauses() { durations.sum() } else { measured.span_ns() };
        self.look_back(before, taken, busy_ns, iterations);
        Ok(measured)
    }

    /// Serves queries with the backend and all callers.
    pub(super) fn serve(&mut self, queries: &Queries, inferences: u32) -> Result<Served, Failure> {
        self.backend.begin(Phase::Measure)?;
        let before = self.look();
        let (backend, callers) = (self.backend.as_mut(), &mut self.callers);
        let served = serve(backend, callers, &self.clock, self.origin, queries, inferences)?;
        let ends = served.samples.start_ns.iter().zip(&served.samples.duration_ns).map(|(start, took)| start + took);
        let span = ends.max().unwrap_or(0) - served.samples.start_ns.first().copied().unwrap_or(0);
        self.look_back(before, served.samples.len(), span, inferences);
        Ok(served)
    }

    /// Takes counted samples for a while.
    pub(super) fn slice(&mut self, time: Nanos, most: u32, iterations: u32) -> Result<Samples, Failure> {
        self.backend.begin(Phase::Measure)?;
        let room = Samples::with_capacity((most as usize).min(MOST_RESERVED));
        let before = self.look();
        let mut sampler = self.sampler();
        let samples = take_slice(&mut sampler, time, most, iterations, room)?;
        self.next_input = sampler.next_input();
        let busy_ns = if self.backend.pauses() { samples.duration_ns.iter().sum() } else { samples.span_ns() };
        // The iterations that are not timed use the processor too.
        let touched = usize::from(self.cold.is_none());
        let busy_ns = busy_ns.saturating_mul((samples.len() + touched) as u64) / samples.len().max(1) as u64;
        self.look_back(before, samples.len() + touched, busy_ns, iterations);
        Ok(samples)
    }

    /// This process before samples are taken.
    fn look(&self) -> Before {
        let thread_state = self.environment.on_machine(|| OwnState::before(&Kernel::here()));
        Before { thread_state, used: self.backend.usage() }
    }

    /// Adds what happened since, while `taken` samples were taken, in `busy_ns`.
    fn look_back(&mut self, before: Before, taken: usize, busy_ns: u64, iterations: u32) {
        let totals = &mut self.totals;
        totals.inferences += taken as f64 * f64::from(iterations);
        totals.busy_ns += busy_ns as f64;
        let (earlier, after) = (before.used, self.backend.usage());
        if let (Some(start), Some(end)) = (earlier.cpu_time_ns, after.cpu_time_ns) {
            *totals.cpu_time_ns.get_or_insert(0.0) += end.saturating_sub(start) as f64;
        }
        if let (Some(start), Some(end)) = (earlier.parts_ns, after.parts_ns) {
            let parts = totals.parts_ns.get_or_insert_default();
            (0..parts.len()).for_each(|part| parts[part] += end[part].saturating_sub(start[part]) as f64);
        }
        if let Some(before) = before.thread_state {
            self.own_totals.add(&before, &Kernel::here());
        }
    }

    /// What the process used for the counted samples so far, by stored name, and what was reported with them. Where caches are
    /// emptied between samples, the processor worked for that too, so its time says nothing about the model.
    pub(super) fn used(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        let mut values = self.own_totals.metrics();
        values.extend(self.backend.reported()?);
        values.extend(self.backend.background_load().map(|share| (metric::OTHER_CPU.name.to_owned(), share)));
        let peak = match &self.cold {
            Some(cold) => cold.peak_resident_bytes,
            None => self.backend.usage().peak_resident_bytes,
        };
        values.extend(peak.map(|bytes| (metric::PEAK_RSS.name.to_owned(), bytes as f64)));
        if let (Some(spent), None) = (self.totals.cpu_time_ns, &self.cold) {
            values.insert(metric::CPU_TIME.name.to_owned(), spent / self.totals.inferences.max(1.0));
            values.insert(metric::CPU_UTILISATION.name.to_owned(), spent / self.totals.busy_ns.max(1.0));
        }
        if let Some(parts) = self.totals.parts_ns {
            let of_each = [metric::USER_TIME, metric::SYSTEM_TIME].into_iter().zip(parts);
            values.extend(
                of_each.map(|(metric, spent)| (metric.name.to_owned(), spent / self.totals.inferences.max(1.0))),
            );
        }
        // The clock may have become slower meanwhile: another source, or a hypervisor that moved the machine.
        let overhead = self.quality.overhead_ns.max(self.clock.calibrate().overhead_ns);
        values.insert(metric::CLOCK_OVERHEAD.name.to_owned(), overhead as f64);
        Ok(values)
    }

    /// Looks at the outputs of the last sample, and at those of the first input set, computed now.
    pub(super) fn check(&mut self) -> Result<Checked, Failure> {
        let last = non_finite(&self.backend.outputs()?);
        let outputs = first_outputs(self.backend.as_mut())?;
        let non_finite = last.into_iter().chain(non_finite(&outputs)).collect();
        Ok(Checked { output_hash: hash_outputs(&outputs), non_finite })
    }

    /// What is in no statistic of the samples, by stored name: where the time of an inference goes, and the throughput with
    /// several under way. The samples are taken, so that nothing is lost where one of these cannot be had: the log says why.
    pub(super) fn afterwards(&mut self, wanted: Afterwards) -> BTreeMap<String, f64> {
        // Standard error is the worker's log, and a closed one loses nothing that matters.
        let log = |failure: Failure| drop(writeln!(std::io::stderr(), "after the samples: {}", failure.message));
        let backend = self.backend.as_mut();
        let mut values = Vec::new();
        if let Some(in_flight) = wanted.in_flight {
            let found = pipelined_ns(backend, &self.clock, in_flight).map_err(log).ok().flatten();
            values.extend(found.map(|nanos| (metric::PIPELINED, 1e9 / nanos)));
        }
        if let Some(iterations) = wanted.profile {
            let costs = backend.stream_costs(iterations).map_err(log).ok().flatten();
            values.extend(costs.iter().flat_map(|costs| {
                let copies = [(metric::TO_DEVICE, Some(costs.to_device_ns)), (metric::TO_HOST, costs.to_host_ns)];
                let known = copies.into_iter().filter_map(|(metric, nanos)| Some((metric, nanos? as f64)));
                known
                    .chain([(metric::EVENTS, costs.events_ns as f64), (metric::UNFINISHED, costs.unfinished_ns as f64)])
            }));
            let shares = backend.profile(iterations).map_err(log).ok().flatten();
            values.extend(
                shares.iter().flat_map(|shares| [(metric::FALLBACK, shares.cpu), (metric::COPIES, shares.copies)]),
            );
        }
        values.into_iter().map(|(metric, value)| (metric.name.to_owned(), value)).collect()
    }

    /// What each node took in these samples of one inference each, if the cell is loaded with the profiler, which ends: the
    /// mean over the middle half, so that a disturbed inference decides nothing and the parts add up to the whole.
    pub(super) fn node_times(&mut self, samples: &Samples, trace: Option<&Path>) -> Result<NodeTimes, Failure> {
        if !self.is_profiled {
            return Ok(NodeTimes::default());
        }
        let mut by_time: Vec<usize> = (0..samples.len()).collect();
        by_time.sort_by_key(|sample| samples.duration_ns[*sample]);
        let ends = trimmed(by_time.len());
        let kept = &by_time[ends..by_time.len() - ends];
        let traced = self.backend.trace(samples.len(), trace)?;
        let (arena, device) = (traced.arena, traced.device_time(kept));
        Ok(NodeTimes { nodes: traced.times(kept), arena, device })
    }

    /// The largest resident memory so far, now and around loading.
    pub(super) fn resident(&self) -> Option<Resident> {
        let [before_load_bytes, loaded_bytes] = self.resident_around_load?;
        Some(Resident { before_load_bytes, loaded_bytes, peak_bytes: self.backend.usage().peak_resident_bytes? })
    }

    /// The range of each float output over all input sets, or over real data.
    pub(super) fn activation_ranges(
        &mut self,
        calibration: Calibration,
        data: Option<&Data>,
    ) -> Result<BTreeMap<String, Range>, Failure> {
        activation_ranges(self.backend.as_mut(), &self.tensors, calibration, data)
    }

    /// Writes the outputs for the items of a dataset into a folder.
    pub(super) fn evaluate(&mut self, data: &Data, items_in_file: u64, folder: &Path) -> Result<(), Failure> {
        evaluate(self.backend.as_mut(), &self.tensors, data, items_in_file, folder)
    }

    /// Writes the outputs for the input sets into a folder.
    pub(super) fn write_outputs(&mut self, folder: &Path) -> Result<(), Failure> {
        write_outputs(folder, self.backend.as_mut())
    }
}

/// Time of one inference where so many are handed over before the last one is waited for, median of ten rounds, the first
/// of which does not count; `None` where every call waits by itself.
fn pipelined_ns(backend: &mut dyn Backend, clock: &AnyClock, in_flight: u32) -> Result<Option<f64>, Failure> {
    const ROUNDS: usize = 10;
    let mut nanos = Vec::with_capacity(ROUNDS);
    for round in 0..=ROUNDS {
        let began = clock.now();
        if !backend.pipeline(in_flight)? {
            return Ok(None);
        }
        let taken = clock.now().saturating_sub(began);
        if round > 0 {
            nanos.push(taken as f64 / f64::from(in_flight.max(1)));
        }
    }
    Ok(median(&nanos).filter(|nanos| *nanos > 0.0))
}

impl Cold {
    fn new(bytes: u64, clock: &AnyClock, usage: Usage) -> Result<Self, Failure> {
        let evict: Box<dyn FnMut()> = match clock {
            AnyClock::Host(_) => {
                let mut eviction = Eviction::with_bytes(bytes)?;
                Box::new(move || eviction.evict())
            }
            AnyClock::Scripted(clock) => {
                /// What emptying the caches costs in a script: a tenth of a nanosecond a byte.
                const BYTES_PER_NANOSECOND: u64 = 10;
                let clock = clock.clone();
                Box::new(move || clock.advance(bytes / BYTES_PER_NANOSECOND))
            }
        };
        Ok(Cold { evict, peak_resident_bytes: usage.peak_resident_bytes })
    }
}

#[cfg(test)]
mod tests {
    use experiment::SamplesStop;

    use super::*;
    use crate::backend::Placement;
    use base::machine::clock::HostClock;
    use files::array::Array;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Writes down what is asked of it.
    struct Recorder(Rc<RefCell<Vec<&'static str>>>);

    impl Backend for Recorder {
        fn load(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn bind(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn input_sets(&self) -> usize {
            3
        }

        fn select(&mut self, _input_set: usize) {}

        fn iterate(&mut self, _times: u32) -> Result<(), Failure> {
            self.0.borrow_mut().push("iterate");
            Ok(())
        }

        fn feed(&mut self, _inputs: &[Array]) -> Result<(), Failure> {
            Ok(())
        }

        fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
            Ok(Vec::new())
        }

        fn placement(&self) -> Placement {
            Placement::default()
        }

        fn usage(&self) -> Usage {
            self.0.borrow_mut().push("usage");
            Usage::default()
        }
    }

    #[test]
    fn nothing_comes_between_settling_and_the_first_counted_sample() {
        let asked = Rc::new(RefCell::new(Vec::new()));
        let mut cell = Loaded {
            backend: Box::new(Recorder(Rc::clone(&asked))),
            callers: Vec::new(),
            tensors: Vec::new(),
            clock: AnyClock::Host(HostClock::start()),
            quality: ClockQuality { overhead_ns: 1, resolution_ns: 1 },
            origin: 0,
            sample_ns: 1,
            next_input: 0,
            cold: None,
            totals: Totals::default(),
            environment: Environment::machine(),
            is_profiled: false,
            resident_around_load: None,
            own_totals: OwnTotals::default(),
        };
        let rule = Stop::Samples(SamplesStop { count: 5, max_time: Nanos::from_secs(600) });
        let measured = cell.measure(rule, 1).expect("the recorder does not fail");
        let asked = asked.borrow();
        let (settled, counted) = (measured.settled.len(), measured.samples.len());
        assert!(settled > 0);
        assert_eq!(counted, 5);
        assert_eq!(asked[0], "usage");
        assert!(asked[1..=settled + counted].iter().all(|what| *what == "iterate"), "{asked:?}");
        assert_eq!(asked[settled + counted + 1..], ["usage"]);
        // The input sets go on in turn.
        assert_eq!(measured.samples.input[0] as usize, settled % 3);
        assert_eq!(cell.totals.inferences, (settled + counted) as f64);
    }
}
