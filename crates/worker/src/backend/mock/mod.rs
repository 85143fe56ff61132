//! A scripted backend on a scripted clock: latencies from a formula, failures played for real.
//!
//! It lets a whole experiment, from YAML to HTML, run in a second without models, and it is what every test of the
//! pipeline stands on. The durations follow y = (median + item · batch + position · context) · scale · run effect ·
//! (1 + warm-up excess) · noise, where the run effect and the AR(1) noise are lognormal.

mod kind;
mod request;

pub(crate) use request::MockRequest;

use std::path::Path;

use super::trace::{DeviceTrace, Node, Trace, TracedKernel, TracedNode, TracedOnDevice};
use super::{Backend, Caller, Failure, FailureKind, Phase, Placement, StreamCosts, TimeShares};
use base::machine::clock::{AnyClock, Clock, ScriptedClock};
use base::machine::probe::Usage;
use experiment::{MockFailureKind, MockOutputs, MockStep};
use files::array::Array;
use onnx::ElementType;
use quality::fidelity::largest;
use statistics::random::{Xoshiro256PlusPlus, stream_seed};

/// The scripted backend.
#[derive(Debug)]
pub(crate) struct MockBackend {
    request: MockRequest,
    clock: ScriptedClock,
    random: Xoshiro256PlusPlus,
    /// Log of this run's own level.
    run_effect: f64,
    /// How much slower other processes make this run.
    disturbance: f64,
    /// Current value of the AR(1) noise, in standard deviations.
    noise: f64,
    /// When the first iteration started.
    started: Option<u64>,
    step: MockStep,
    /// Duration of the last iterations.
    last: u64,
    /// What it was fed, if anything.
    fed: Option<Array>,
    /// The duration of every inference without the profiler's cost, where that is on.
    inferences: Option<Vec<u64>>,
}

impl MockBackend {
    /// The script of one run.
    pub(crate) fn new(request: MockRequest, clock: ScriptedClock) -> Self {
        let mut of_run = Xoshiro256PlusPlus::seed_from_u64(stream_seed(request.seed, 0));
        let mut run_effect = of_run.normal() * request.script.run_sd.0;
        let is_disturbed = of_run.unit() < request.script.disturbed.0;
        let disturbance = if is_disturbed { request.script.disturbance.0 * of_run.unit() } else { 0.0 };
        run_effect += disturbance.ln_1p();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(stream_seed(request.seed, 1));
        let noise = random.normal();
        MockBackend {
            request,
            clock,
            random,
            run_effect,
            disturbance,
            noise,
            started: None,
            step: MockStep::Load,
            last: 0,
            fed: None,
            inferences: None,
        }
    }

    /// The same with its profiler on.
    pub(crate) fn profiled(mut self) -> Self {
        self.inferences = Some(Vec::new());
        self
    }

    /// The operators of the script, each with its share of the time.
    fn operators(&self) -> Vec<(String, f64)> {
        let scripted = &self.request.operators;
        if scripted.is_empty() { vec![("Conv".to_owned(), 0.8)] } else { scripted.clone() }
    }

    fn duration(&mut self) -> u64 {
        let script = &self.request.script;
        let correlation = script.ar1.0.clamp(0.0, 0.999);
        self.noise = correlation * self.noise + (1.0 - correlation * correlation).sqrt() * self.random.normal();
        let started = *self.started.get_or_insert(self.clock.now());
        let elapsed = (self.clock.now() - started) as f64;
        let time_constant = (script.warmup_time.0 as f64).max(1.0);
        let excess = 1.0 + script.warmup_excess.0 * (-elapsed / time_constant).exp();
        let (item, position) = (script.item.0 as f64, script.position.0 as f64);
        let level = item * self.request.batch as f64 + position * self.request.context as f64 + script.median.0 as f64;
        let level = level * self.request.scale * excess;
        let shape = match script.exponential {
            true => self.random.exponential(1.0),
            false => (script.noise.0 * self.noise).exp(),
        };
        let nanos = level * self.run_effect.exp() * shape;
        nanos.round().clamp(1.0, 1e18) as u64
    }

    /// The scores of classes for the items.
    fn scores(&self) -> Array {
        let seed = match self.request.script.outputs {
            MockOutputs::Random => self.request.seed ^ self.clock.now(),
            _ => 1,
        };
        let (mut scores, mut error) = (Xoshiro256PlusPlus::seed_from_u64(seed), Xoshiro256PlusPlus::seed_from_u64(2));
        if let Some((fed, values)) = self.fed.as_ref().and_then(|fed| Some((fed, fed.floats()?))) {
            // The scores are what it was fed.
            let differ = self.request.differ;
            let bytes =
                values.iter().flat_map(|v| (v * (1.0 + differ * error.normal()) as f32).to_le_bytes()).collect();
            return Array { name: "output".to_owned(), bytes, ..fed.clone() };
        }
        // Scores of ten classes for eight items, the same in every run; what differs does so in every run alike.
        let mut score = || (scores.normal() * (1.0 + self.request.differ * error.normal())) as f32;
        let bytes = (0..80).flat_map(|_| score().to_le_bytes()).collect();
        Array { name: "output".to_owned(), element: ElementType::Float32, shape: vec![8, 10], bytes, keys: Vec::new() }
    }

    /// Plays the failure that the script has for this step, if any.
    fn play(&self, step: MockStep) -> Result<(), Failure> {
        let Some(fail) = self.request.fail.as_ref().filter(|fail| fail.at == step) else { return Ok(()) };
        match fail.kind {
            MockFailureKind::Error => {
                Err(Failure::new(FailureKind::Operator, format!("scripted failure while it should {}", verb(step))))
            }
            MockFailureKind::Crash => std::process::abort(),
            MockFailureKind::Panic => panic!("scripted panic while it should {}", verb(step)),
            MockFailureKind::Hang => loop {
                std::thread::park();
            },
            MockFailureKind::Garbage => Err(Failure::new(FailureKind::Protocol, GARBAGE)),
        }
    }
}

/// What the profiler costs inside each node, and between it and the next.
const PROFILER_NS: u64 = 2_000;

/// What a worker writes instead of the protocol when the script asks for garbage.
pub(crate) const GARBAGE: &str = "this is not the protocol";

fn verb(step: MockStep) -> &'static str {
    match step {
        MockStep::Load => "load",
        MockStep::Warmup => "warm up",
        MockStep::Measure => "sample",
    }
}

/// A node that runs one kernel, after which the device waits for `wait` of that.
fn on_device_of(inferences: &[u64], share: f64, wait: f64) -> TracedOnDevice {
    let us = |factor: f64| inferences.iter().map(|nanos| *nanos as f64 * share * factor / 1e3).collect::<Vec<f64>>();
    let kernel = TracedKernel { name: "scripted".to_owned(), executions: inferences.len() as u64, us: us(1.0) };
    TracedOnDevice { launch_us: 1.0, waits_us: us(wait), kernels: vec![kernel] }
}

/// Nodes that take this part of the device's time, one after the other.
fn device_of(inferences: &[u64], share: f64, in_nodes: f64) -> DeviceTrace {
    let us = |factor: f64| inferences.iter().map(|nanos| *nanos as f64 * share * factor / 1e3).collect::<Vec<f64>>();
    DeviceTrace { busy_us: us(in_nodes), span_us: us(1.0), clock_error_ns: 100 }
}

impl Backend for MockBackend {
    fn clock(&self) -> AnyClock {
        AnyClock::Scripted(self.clock.clone())
    }

    fn load(&mut self) -> Result<(), Failure> {
        self.play(MockStep::Load)?;
        if let (Some(fits), batch) = (self.request.fits, self.request.batch)
            && batch > fits
        {
            return Err(Failure::new(FailureKind::OutOfMemory, format!("scripted: no memory for a batch of {batch}")));
        }
        self.clock.advance(self.request.script.load.0);
        Ok(())
    }

    fn builds_engine(&self) -> bool {
        self.request.builds_engine
    }

    fn bind(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn input_sets(&self) -> usize {
        1
    }

    fn select(&mut self, _input_set: usize) {}

    fn begin(&mut self, phase: Phase) -> Result<(), Failure> {
        self.step = match phase {
            Phase::Load => MockStep::Load,
            Phase::Warm => MockStep::Warmup,
            Phase::Measure => MockStep::Measure,
        };
        Ok(())
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        self.play(self.step)?;
        let before = self.clock.now();
        for _ in 0..times {
            let nanos = self.duration();
            self.clock.advance(nanos);
            if let Some(inferences) = &mut self.inferences {
                inferences.push(nanos);
                self.clock.advance(2 * PROFILER_NS * self.operators().len() as u64);
            }
        }
        self.last = self.clock.now() - before;
        Ok(())
    }

    fn device_ns(&mut self) -> Result<Option<u64>, Failure> {
        Ok(self.request.on_device.map(|share| (self.last as f64 * share).round() as u64))
    }

    fn feed(&mut self, inputs: &[Array]) -> Result<(), Failure> {
        self.fed = inputs.first().cloned();
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        let scores = self.scores();
        let classes = || {
            let numbers = scores.numbers().unwrap_or_default();
            let columns = scores.shape.last().map_or(1, |columns| (*columns).max(1) as usize);
            numbers.chunks_exact(columns).filter_map(|row| largest(row, 1).pop()).collect::<Vec<usize>>()
        };
        let items: Vec<u64> = scores.shape.iter().take(1).copied().collect();
        Ok(match self.request.script.outputs {
            MockOutputs::Scores | MockOutputs::Random => vec![scores],
            MockOutputs::Labels => {
                let names: Vec<String> = classes().into_iter().map(|class| format!("class {class}")).collect();
                vec![Array::of_texts("label", &items, names.iter().map(String::as_str)), scores]
            }
            MockOutputs::Classes => {
                let bytes = classes().into_iter().flat_map(|class| (class as i64).to_le_bytes()).collect();
                let (name, element) = ("class".to_owned(), ElementType::Int64);
                vec![Array { name, element, shape: items, bytes, keys: Vec::new() }]
            }
        })
    }

    fn another(&self, _shares_session: bool) -> Result<Caller, Failure> {
        // Its time is a script's, on one thread: a load counts the callers and calls the backend.
        Ok(Box::new(|_| Ok(())))
    }

    fn placement(&self) -> Placement {
        let on_cpu = self.request.on_cpu.map(|_| ("Scripted".to_owned(), 1));
        let fallback = on_cpu.into_iter().collect();
        Placement { runtime_version: Some("mock".to_owned()), fallback, ..Placement::default() }
    }

    fn profile(&mut self, _iterations: u32) -> Result<Option<TimeShares>, Failure> {
        Ok(Some(TimeShares { cpu: self.request.on_cpu.unwrap_or(0.0), copies: 0.0 }))
    }

    fn trace(&mut self, inferences: usize, _keep: Option<&Path>) -> Result<Trace, Failure> {
        let all = self.inferences.take().unwrap_or_default();
        let last = &all[all.len().saturating_sub(inferences)..];
        let on_device = self.request.on_device.filter(|share| *share > 0.0);
        let in_nodes: f64 = self.operators().iter().map(|(_, share)| share).sum();
        let (device, cost) = on_device.map_or((1.0, PROFILER_NS as f64), |share| (share, 0.0));
        let wait = if in_nodes > 0.0 { (1.0 - in_nodes).max(0.0) / in_nodes } else { 0.0 };
        let node = |(operator, share): (String, f64)| TracedNode {
            node: Node {
                path: format!("{}_0", operator.to_lowercase()),
                provider: "Scripted".to_owned(),
                operator,
                ..Node::default()
            },
            executions: last.len() as u64,
            self_us: last.iter().map(|nanos| (*nanos as f64 * share * device + cost) / 1e3).collect(),
            is_launch: false,
            on_device: on_device.map(|_| on_device_of(last, share * device, wait)),
        };
        Ok(Trace {
            nodes: self.operators().into_iter().map(node).collect(),
            arena: None,
            device: on_device.map(|share| Ok(device_of(last, share, in_nodes))),
        })
    }

    /// Of inferences under way together only the device's part takes time.
    fn pipeline(&mut self, times: u32) -> Result<bool, Failure> {
        let Some(share) = self.request.on_device else { return Ok(false) };
        for _ in 0..times {
            let nanos = self.duration() as f64 * share;
            self.clock.advance(nanos.round() as u64);
        }
        Ok(true)
    }

    fn stream_costs(&mut self, _iterations: u32) -> Result<Option<StreamCosts>, Failure> {
        const COPY_NS: u64 = 20_000;
        let costs =
            StreamCosts { events_ns: 2_000, unfinished_ns: 1_000, to_device_ns: COPY_NS, to_host_ns: Some(COPY_NS) };
        Ok(self.request.on_device.map(|_| costs))
    }

    /// What makes a run twice as slow has half of the processors.
    fn background_load(&self) -> Option<f64> {
        (self.request.script.disturbed.0 > 0.0).then(|| self.disturbance / (1.0 + self.disturbance))
    }

    fn usage(&self) -> Usage {
        const SCRIPTED_PEAK: u64 = 32 << 20;
        let cpu_time_ns = (self.clock.now() as f64 / (1.0 + self.disturbance)).round() as u64;
        Usage { peak_resident_bytes: Some(SCRIPTED_PEAK), cpu_time_ns: Some(cpu_time_ns), parts_ns: None }
    }
}
