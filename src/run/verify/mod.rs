//! Whether perfrun measures rightly on a device, found out on the device itself (method 1.5).
//!
//! Input: a device with what it takes. Output: one line a check, with the numbers that decided. Every run is a process of
//! its own, as in a measurement.

mod checks;
mod models;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::runner::Runner;
use base::metric;
use base::quantity::{Nanos, Ratio};
use device::{Gpu, OtherWorkers, Watch};
use experiment::{
    AdaptiveWarmup, Boundary, Completion, Device, Devices, FidelityLimits, Provider, Stop, TimeStop, Warmup,
};
use files::array::Array;
use files::scratch::Scratch;
use onnx::ElementType;
use quality::fidelity::{self, Fidelity};
use statistics::quantile::median;
use worker::backend::{BackendRequest, CellRequest, Failure, FailureKind, OnnxruntimeRequest, TensorRequest};
use worker::{Afterwards, Interrupts, RunPlan, StoppedAtOnce, WorkerRun, read_outputs};

pub(crate) use checks::{Check, State};

use checks::Checks;
use models::{Size, Subject};

/// A provider may compile its kernels.
const TIMEOUT: Nanos = Nanos::from_secs(120);

/// Sizes of the products, from the one that outputs are compared on to one that takes the fastest GPUs a millisecond.
const SIZES: [Size; 6] = [
    Size { rows: 32, width: 512 },
    Size { rows: 128, width: 512 },
    Size { rows: 256, width: 512 },
    Size { rows: 2048, width: 512 },
    Size { rows: 8192, width: 1024 },
    Size { rows: 16384, width: 2048 },
];

/// Weights of 16 MiB, which the caches of A100, L4, H100 and later hold (40 MiB and more), and which decide the time of so
/// few rows. On a GPU with a smaller cache the check shows nothing.
const CACHED: Size = Size { rows: 16, width: 2048 };

/// How many times as long the largest products take, at the least, where the clock waits for them.
const GROWTH: f64 = 4.0;

/// Distinct inputs.
const SETS: u32 = 2;

/// How many inferences are under way at once.
const IN_FLIGHT: u32 = 8;

/// Copies and the profiler, as after the samples of a measured run.
const PROFILED: Afterwards = Afterwards { profile: Some(5), in_flight: None };

/// A device that is verified.
pub(crate) struct Verification<'a> {
    pub(crate) device: &'a Device,
    pub(crate) library: &'a Path,
    pub(crate) plugin: Option<&'a Path>,
    pub(crate) executable: &'a Path,
    /// The GPU behind it and its monitor, where there is one.
    pub(crate) gpu: Option<Result<Gpu, String>>,
}

/// What is different from a plain run of a subject on the device.
#[derive(Clone, Default)]
struct Way {
    device: Option<Device>,
    boundary: Boundary,
    options: BTreeMap<String, String>,
    refuses_fallback: bool,
    is_cold: bool,
    keeps_device_cache: bool,
    afterwards: Afterwards,
    wants_outputs: bool,
    /// Its samples are a profile.
    is_profiled: bool,
}

/// What a run showed.
#[derive(Clone, Debug, Default)]
struct Seen {
    latency_ns: f64,
    /// Median on the device's own clock.
    device_ns: Option<f64>,
    /// The largest part of a latency that it shows.
    most_on_device: Option<f64>,
    run: WorkerRun,
    outputs: Vec<Vec<Array>>,
}

impl Seen {
    fn metric(&self, metric: &metric::Metric) -> Option<f64> {
        self.run.data.metrics.get(metric.name).copied()
    }
}

type Tried = Result<Seen, Failure>;

impl Verification<'_> {
    /// Carries out every check that the device allows, announcing which one begins.
    ///
    /// # Errors
    ///
    /// If the user stopped it.
    pub(crate) fn carry_out(
        &self,
        interrupts: &Interrupts,
        begins: &mut dyn FnMut(&str),
    ) -> Result<Vec<Check>, StoppedAtOnce> {
        let mut trier = Trier { verification: self, interrupts, begins, number: 0, folder: Scratch::new().ok() };
        let provider = Provider::of(self.device);
        let has_stream = provider.is_some_and(|provider| provider.completion == Completion::Stream);
        let mut checks = Checks::default();
        let small = trier.products(
            "a session",
            SIZES[0],
            Way { afterwards: PROFILED, wants_outputs: true, ..Way::default() },
        )?;
        checks.session(self.device, &small);
        let Ok(small) = small else { return Ok(checks.0) };
        if !self.device.is_cpu() {
            let on_cpu = Way { device: Some(Device::cpu()), wants_outputs: true, ..Way::default() };
            let reference = trier.products("outputs", SIZES[0], on_cpu)?;
            checks.outputs("outputs are those of the CPU", &like(&reference, &small));
            self.in_float32(&mut trier, &mut checks, &reference, models::products(SIZES[0]))?;
            self.convolutions(&mut trier, has_stream, &mut checks)?;
        }
        let (size, large) = self.growth(&mut trier, &small, &mut checks)?;
        let profiled = Way { is_profiled: true, ..Way::default() };
        checks.slow_node(&trier.run("a profile", models::slow_among_small(), profiled)?);
        if has_stream {
            checks.unfinished(&large);
            checks.device_clock(&large);
            self.on_a_stream(&mut trier, &small, &mut checks)?;
        }
        if !self.device.is_cpu() {
            let host = trier.products("copies", size, Way { boundary: Boundary::Host, ..Way::default() })?;
            checks.boundary(&large, &host, has_stream);
            self.elsewhere(&mut trier, &mut checks)?;
        }
        if provider.is_some_and(|provider| provider.devices == Devices::Numbered) {
            let absent = Device { index: Some(99), ..self.device.clone() };
            let refused = trier.products("numbers", SIZES[0], Way { device: Some(absent), ..Way::default() })?;
            checks.refused("a device number that does not exist is refused", FailureKind::Provider, &refused);
        }
        if let Some(gpu) = &self.gpu {
            checks.monitor(gpu.as_ref().err(), &large);
            let bytes = gpu.as_ref().ok().and_then(|gpu| gpu.monitor.facts(gpu.number).ok()?.memory_bytes);
            // Elsewhere a tensor of that size may be refused for its shape, and go to the host's memory.
            if let (Some(bytes), true) = (bytes, provider.is_some_and(|provider| provider.engine_cache.is_none())) {
                let way = Way { refuses_fallback: true, ..Way::default() };
                let too_large = trier.run("memory", models::as_large_as(2 * bytes), way)?;
                checks.refused("running out of memory is reported as such", FailureKind::OutOfMemory, &too_large);
            }
        }
        Ok(checks.0)
    }

    /// What ONNX Runtime loads cuDNN for, since 1.28 not before it is needed.
    fn convolutions(&self, trier: &mut Trier<'_>, has_stream: bool, checks: &mut Checks) -> Result<(), StoppedAtOnce> {
        let wanted = [
            ("a convolution agrees with the CPU", ElementType::Float32),
            ("a convolution in fp16 agrees with the CPU", ElementType::Float16),
        ];
        // Not every device of other makers computes in fp16.
        for (what, element) in wanted.into_iter().take(if has_stream { 2 } else { 1 }) {
            let way = Way { wants_outputs: true, ..Way::default() };
            let on_cpu = Way { device: Some(Device::cpu()), ..way.clone() };
            let reference = trier.run("a convolution", models::convolution(&element), on_cpu)?;
            let found = trier.run("a convolution", models::convolution(&element), way)?;
            checks.convolution(what, found.map(|found| (like(&reference, &found), found)));
            if element == ElementType::Float32 {
                self.in_float32(trier, checks, &reference, models::convolution(&element))?;
            }
        }
        Ok(())
    }

    /// Where the last check failed and the provider computes float32 in less, the same subject with the option that keeps it.
    fn in_float32(
        &self,
        trier: &mut Trier<'_>,
        checks: &mut Checks,
        reference: &Tried,
        subject: Subject,
    ) -> Result<(), StoppedAtOnce> {
        let lower = Provider::lower_precision(self.device).filter(|_| checks.has_failed_last());
        let Some(lower) = lower else { return Ok(()) };
        let (option, value) = lower.option;
        let options = BTreeMap::from([(option.to_owned(), value.to_owned())]);
        let kept = trier.run("outputs in float32", subject, Way { options, wants_outputs: true, ..Way::default() })?;
        checks.in_float32(lower, self.device, &kept.and_then(|kept| like(reference, &kept)));
        Ok(())
    }

    /// Larger and larger products, until they take much longer: a clock that does not wait for the device shows no more than
    /// handing the work over takes.
    fn growth(&self, trier: &mut Trier<'_>, small: &Seen, checks: &mut Checks) -> Result<(Size, Seen), StoppedAtOnce> {
        let mut last = (SIZES[0], small.clone());
        for size in &SIZES[1..] {
            let way = Way { afterwards: PROFILED, ..Way::default() };
            match trier.products("waiting", *size, way)? {
                Ok(seen) => last = (*size, seen),
                Err(failure) => {
                    checks.failed("the clock waits for the device", &failure);
                    return Ok(last);
                }
            }
            if last.1.latency_ns >= GROWTH * small.latency_ns {
                break;
            }
        }
        checks.waiting((SIZES[0], small.latency_ns), (last.0, last.1.latency_ns));
        Ok(last)
    }

    /// What only a stream of perfrun's own makes possible.
    fn on_a_stream(&self, trier: &mut Trier<'_>, small: &Seen, checks: &mut Checks) -> Result<(), StoppedAtOnce> {
        let afterwards = Afterwards { profile: None, in_flight: Some(IN_FLIGHT) };
        let pipelined = trier.products("several in flight", SIZES[0], Way { afterwards, ..Way::default() })?;
        checks.pipelined(&pipelined);
        // Both wait for the processor's caches, so that the device is as idle before either.
        let cold = Way { is_cold: true, ..Way::default() };
        let warm = trier.products("warm caches", CACHED, Way { keeps_device_cache: true, ..cold.clone() })?;
        let cold = trier.products("cold caches", CACHED, cold)?;
        checks.cold(&warm, &cold);
        let Some(option) = Provider::of(self.device).and_then(|provider| provider.graph_option) else { return Ok(()) };
        let options = BTreeMap::from([(option.to_owned(), "1".to_owned())]);
        let replayed = trier.products("graphs", SIZES[0], Way { options, wants_outputs: true, ..Way::default() })?;
        let replayed = replayed.map(|replayed| (like(&Ok(small.clone()), &replayed), replayed));
        checks.graph(small, &replayed);
        Ok(())
    }

    /// Nodes that the provider does not take.
    fn elsewhere(&self, trier: &mut Trier<'_>, checks: &mut Checks) -> Result<(), StoppedAtOnce> {
        let way = Way { afterwards: PROFILED, ..Way::default() };
        let found = trier.run("nodes on the CPU", models::determinants(), way)?;
        if !checks.fallback(&found) {
            return Ok(());
        }
        let refused =
            trier.run("nodes on the CPU", models::determinants(), Way { refuses_fallback: true, ..Way::default() })?;
        checks.refused("`allow_fallback: false` refuses them", FailureKind::Operator, &refused);
        Ok(())
    }
}

/// How like a reference's outputs are.
fn like(reference: &Tried, candidate: &Seen) -> Result<Fidelity, Failure> {
    let reference = reference.as_ref().map_err(Clone::clone)?;
    Ok(fidelity::compare(&reference.outputs, &candidate.outputs, &FidelityLimits::default()))
}

/// Runs subjects.
struct Trier<'a> {
    verification: &'a Verification<'a>,
    interrupts: &'a Interrupts,
    begins: &'a mut dyn FnMut(&str),
    number: u32,
    folder: Option<Scratch>,
}

impl Trier<'_> {
    fn products(&mut self, what: &str, size: Size, way: Way) -> Result<Tried, StoppedAtOnce> {
        self.run(what, models::products(size), way)
    }

    fn run(&mut self, what: &str, subject: Subject, way: Way) -> Result<Tried, StoppedAtOnce> {
        if self.interrupts.count() > 0 {
            return Err(StoppedAtOnce);
        }
        (self.begins)(what);
        self.number += 1;
        let internal = |text: String| Failure::new(FailureKind::Internal, text);
        let Some(folder) = &self.folder else { return Ok(Err(internal("no temporary folder".to_owned()))) };
        let (path, outputs) =
            (folder.path().join("model.onnx"), folder.path().join(format!("outputs-{}", self.number)));
        let made = onnx::save(subject.model, &path).map_err(|error| error.to_string());
        if let Err(text) = made.and_then(|_| fs::create_dir_all(&outputs).map_err(|error| error.to_string())) {
            return Ok(Err(internal(text)));
        }
        let plan = self.plan(&path, (&subject.input, &subject.output), &way, &outputs);
        let launch =
            Runner::launch_for_file(self.verification.executable, &folder.path().join("verification.log"), TIMEOUT);
        let gpu = self.verification.gpu.as_ref().and_then(|gpu| gpu.as_ref().ok()).cloned();
        let watch = Watch::start(gpu, None, OtherWorkers::None);
        let run = worker::run(&launch, &plan, watch, self.interrupts, &mut || {})?;
        Ok(match &run.failure {
            Some(failure) => Err(failure.clone()),
            None if !way.wants_outputs => Ok(seen(run, Vec::new())),
            None => read_outputs(&outputs)
                .map(|outputs| seen(run, outputs))
                .map_err(|problem| internal(problem.to_string())),
        })
    }

    fn plan(&self, model: &Path, (input, output): (&[u64], &[u64]), way: &Way, outputs: &Path) -> RunPlan {
        /// Enough inferences to see that nothing gets faster, and those that count.
        const LENGTH: Nanos = Nanos::from_secs(1);
        /// On a device that takes seconds for an inference.
        const LEAST_SAMPLES: u32 = 3;
        /// The processor's caches are not the device's: what is overwritten there does not matter.
        const EVICTED: u64 = 1 << 20;
        let device = way.device.as_ref().unwrap_or(self.verification.device);
        let plugin = self.verification.plugin.filter(|_| way.device.as_ref().is_none_or(|device| !device.is_cpu()));
        let backend = BackendRequest::Onnxruntime(OnnxruntimeRequest {
            boundary: way.boundary,
            allow_fallback: !way.refuses_fallback,
            provider_options: way.options.clone(),
            keeps_device_cache: way.keeps_device_cache,
            ..OnnxruntimeRequest::on_device(self.verification.library, plugin, device, model)
        });
        let tensors = vec![TensorRequest::random("x", ElementType::Float32, input, vec![1, 2])];
        let request = CellRequest {
            input_sets: SETS,
            outputs: Some(BTreeMap::from([("y".to_owned(), output.to_vec())])),
            evict_bytes: way.is_cold.then_some(EVICTED),
            profiled: way.is_profiled,
            ..CellRequest::new("verification", backend, tensors)
        };
        let warmup = Warmup::Adaptive(AdaptiveWarmup {
            min_time: Nanos::from_millis(200),
            max_time: Nanos::from_millis(500),
            min_samples: LEAST_SAMPLES,
            tolerance: Ratio(0.05),
        });
        RunPlan {
            stop: Some(Stop::Time(TimeStop { time: LENGTH, min_samples: LEAST_SAMPLES, max_samples: 100_000 })),
            afterwards: way.afterwards,
            outputs: way.wants_outputs.then(|| PathBuf::from(outputs)),
            ..RunPlan::warming(request, warmup)
        }
    }
}

fn seen(run: WorkerRun, outputs: Vec<Vec<Array>>) -> Seen {
    let measured = &run.data.measured;
    let latencies: Vec<f64> = measured.duration_ns.iter().map(|nanos| *nanos as f64).collect();
    let on_device: Vec<f64> = measured.device_ns.iter().map(|nanos| *nanos as f64).collect();
    let parts = on_device.iter().zip(&latencies).map(|(device, latency)| device / latency.max(1.0));
    Seen {
        latency_ns: median(&latencies).unwrap_or(0.0),
        device_ns: median(&on_device),
        most_on_device: parts.reduce(f64::max),
        outputs,
        run,
    }
}
