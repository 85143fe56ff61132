//! Devices that are not there: seen in the kernel's files before anything is opened, and by trying them.
//!
//! A provider that is compiled into a runtime is offered on every machine; only a session shows whether its driver, its
//! libraries and its hardware are there. So a session of two nodes is made and run, in a process of its own: a sum, and a
//! convolution, since ONNX Runtime loads cuDNN only when it first needs it (since 1.28, onnxruntime#29252).

use std::collections::BTreeMap;
use std::path::Path;

use tracing::info;

use super::runner::Runner;
use base::machine::kernel::Kernel;
use base::quantity::Nanos;
use experiment::{Boundary, Completion, Device, Experiment, Load, Plugin, Provider, Supply};
use files::scratch::Scratch;
use onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use onnx::{Dimension, ElementType};
use plan::{Cell, Skip, SkipKind};
use prepare::runtime::Library;
use worker::backend::{BackendRequest, CellRequest, Failure, FailureKind, TensorRequest};
use worker::{Interrupts, StoppedAtOnce, WorkerSession};

/// The first session on a device may compile its kernels.
const TIMEOUT: Nanos = Nanos::from_secs(120);

/// Shape of the model's input and output.
const SHAPE: [u64; 4] = [1, 1, 4, 4];

/// Why a device cannot be there, by what the kernel shows; `None` says nothing.
pub(crate) fn why_not(device: &Device, kernel: &Kernel) -> Option<Skip> {
    const DRIVER: [&str; 2] = ["nvidiactl", "dxg"];
    let provider = Provider::of(device)?;
    let wants_nvidia = provider.supply == Supply::Package(experiment::Package::OnnxruntimeGpu);
    let has_driver = || kernel.names("dev").iter().any(|name| DRIVER.contains(&name.as_str()));
    (wants_nvidia && !has_driver()).then(|| skip(device, "no NVIDIA driver here", None))
}

fn skip(device: &Device, reason: &str, remedy: Option<String>) -> Skip {
    Skip { kind: SkipKind::Device, reason: format!("{}: {reason}", device.label()), remedy }
}

/// Why several inferences cannot be in flight: before this version ONNX Runtime waits at the end of every replay of a CUDA
/// graph, although it is asked not to (microsoft/onnxruntime#28686).
pub(super) fn waits_for_graphs(experiment: &Experiment, cell: &Cell, library: &Library) -> Option<Skip> {
    const REPLAYS_WITHOUT_WAITING: &str = "1.28.0";
    let replays = Provider::replays(&experiment.variants[cell.variant()], &experiment.devices[cell.device()]);
    let waits = experiment.measure.pipelined.is_some() && replays && library.is_older_than(REPLAYS_WITHOUT_WAITING);
    let version = library.version.as_deref().unwrap_or_default();
    waits.then(|| Skip {
        kind: SkipKind::Device,
        reason: format!("`pipelined`: ONNX Runtime {version} waits after every replay of a CUDA graph"),
        remedy: Some(format!("take ONNX Runtime {REPLAYS_WITHOUT_WAITING} or newer, or leave `pipelined` out")),
    })
}

/// Why several queries cannot be served at once. A session has one stream, and ONNX Runtime keeps the graphs of CUDA for
/// each thread, so that a session records them again, while others run, when it serves on a thread of its own.
pub(super) fn serves_one_at_a_time(experiment: &Experiment, cell: &Cell, load: Option<Load>) -> Option<Skip> {
    let (variant, device) = (&experiment.variants[cell.variant()], &experiment.devices[cell.device()]);
    let has_streams =
        Provider::of(device).is_some_and(|provider| provider.is_verified && provider.completion == Completion::Stream);
    let (reason, remedy) = if load.is_none_or(|load| load.callers(variant.sessions) < 2) || device.is_cpu() {
        return None;
    } else if !has_streams {
        ("several sessions at once are measured on the CPU and on CUDA", "write `sessions: 1`")
    } else if experiment.measure.boundary == Boundary::Host {
        ("with `boundary: host` queries are served one at a time", "leave `boundary` out, or write `sessions: 1`")
    } else if variant.shared_session {
        ("calls of one session run one after the other", "leave `shared_session` out")
    } else if Provider::replays(variant, device) {
        ("CUDA graphs are recorded by one session at a time", "leave the graph out, or write `sessions: 1`")
    } else {
        return None;
    };
    Some(skip(device, reason, Some(remedy.to_owned())))
}

/// A session of two nodes on a device.
pub(crate) struct Trial<'a> {
    pub(crate) device: &'a Device,
    pub(crate) library: &'a Path,
    pub(crate) plugin: Option<&'a Path>,
    pub(crate) executable: &'a Path,
}

impl Trial<'_> {
    /// Why the device cannot be used; `None`: it can.
    ///
    /// # Errors
    ///
    /// If the user stopped it.
    pub(crate) fn carry_out(&self, interrupts: &Interrupts) -> Result<Option<Skip>, StoppedAtOnce> {
        let failed = |text: String| Some(self.absence(&Failure::new(FailureKind::Internal, text)));
        let folder = match Scratch::new() {
            Ok(folder) => folder,
            Err(error) => {
                return Ok(failed(format!("no temporary folder: {error}; set TMPDIR to one that can be written")));
            }
        };
        let path = folder.path().join("trial.onnx");
        if let Err(error) = onnx::save(trial_model(), &path) {
            return Ok(failed(error.to_string()));
        }
        let launch = Runner::launch_for_file(self.executable, &folder.path().join("trial.log"), TIMEOUT);
        let mut worker = WorkerSession::start(launch, interrupts, 1);
        let tick = &mut || {};
        let outcome = worker.prepare(self.request(&path), tick);
        let run = worker.end(outcome, tick)?;
        let absence = run.failure.as_ref().map(|failure| self.absence(failure));
        match &absence {
            Some(absence) => info!("device {}", absence.reason),
            None => info!("device {}: found", self.device.label()),
        }
        Ok(absence)
    }

    fn request(&self, model: &Path) -> CellRequest {
        let backend = BackendRequest::on_device(self.library, self.plugin, self.device, model);
        let tensors = vec![TensorRequest::random("x", ElementType::Float32, &SHAPE, vec![1])];
        let outputs = Some(BTreeMap::from([("y".to_owned(), SHAPE.to_vec())]));
        CellRequest { outputs, ..CellRequest::new(format!("a trial of {}", self.device.label()), backend, tensors) }
    }

    fn absence(&self, failure: &Failure) -> Skip {
        let provider = Provider::of(self.device);
        let of_plugin = provider.and_then(Provider::plugin).filter(|_| self.plugin.is_some()).map(Plugin::needs);
        let needs = of_plugin.or(provider.and_then(|provider| provider.needs));
        let remedy = match failure.own_remedy() {
            Some(remedy) => Some(remedy.to_owned()),
            None => needs.map(|needs| format!("it needs {needs}")),
        };
        skip(self.device, &failure.in_short(), remedy)
    }
}

/// `y = conv(x + b, w)`: operators that every provider has.
fn trial_model() -> ModelProto {
    let shape = SHAPE.map(Dimension::Fixed);
    let value = |name: &str| ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&shape));
    let graph = GraphProto {
        name: Some("trial".to_owned()),
        node: vec![
            NodeProto::of("Add", "sum", &["x", "b"], &["a"], Vec::new()),
            NodeProto::of("Conv", "convolution", &["a", "w"], &["y"], vec![AttributeProto::of_ints("pads", &[1; 4])]),
        ],
        input: vec![value("x")],
        output: vec![value("y")],
        initializer: vec![
            TensorProto::of_floats("b", &[1], &[1.0]),
            TensorProto::of_floats("w", &[1, 1, 3, 3], &[0.1; 9]),
        ],
        ..Default::default()
    };
    ModelProto::of_graph(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(provider: &str) -> Device {
        Device::of(provider)
    }

    #[test]
    fn without_its_driver_nothing_of_nvidia_is_there() {
        let root = tempfile::tempdir().expect("a folder");
        let kernel = Kernel::below(root.path());
        let reason = |provider: &str| why_not(&device(provider), &kernel).map(|skip| skip.reason);
        assert_eq!(reason("cuda").as_deref(), Some("cuda: no NVIDIA driver here"));
        assert!(reason("tensorrt").is_some());
        assert!(["cpu", "webgpu", "mine"].iter().all(|provider| reason(provider).is_none()));
        std::fs::create_dir_all(root.path().join("dev/nvidiactl")).expect("a folder");
        assert_eq!(reason("cuda"), None);
    }

    #[test]
    fn graphs_of_a_runtime_that_waits_for_them_are_skipped() {
        let text = "backend: mock\nmodels: [m]\nvariants: [plain, graph]\n";
        let spec = spec::parse("test.yaml", text, Path::new("."), &[]).expect("a valid spec");
        let mut experiment = spec.experiment;
        experiment.devices[0] = device("cuda");
        let graph = BTreeMap::from([("enable_cuda_graph".to_owned(), "1".to_owned())]);
        experiment.variants[1].provider.insert("cuda".to_owned(), graph);
        let plan = plan::expand(&experiment).expect("a plan");
        let skipped = |experiment: &Experiment, version: Option<&str>| -> Vec<String> {
            let (path, version) = ("libonnxruntime.so".into(), version.map(str::to_owned));
            let library =
                Library { path, version, package: None, package_sha256: None, origin: prepare::runtime::Origin::Cache };
            let skips = plan.cells.iter().filter_map(|cell| waits_for_graphs(experiment, cell, &library));
            skips.map(|skip| skip.reason).collect()
        };
        assert!(skipped(&experiment, Some("1.27.0")).is_empty(), "nothing is in flight");
        experiment.measure.pipelined = Some(8);
        let reason = "`pipelined`: ONNX Runtime 1.27.0 waits after every replay of a CUDA graph";
        assert_eq!(skipped(&experiment, Some("1.27.0")), [reason]);
        assert!(skipped(&experiment, Some("1.28.0")).is_empty());
        assert!(skipped(&experiment, None).is_empty(), "a build whose name does not say its version");
    }

    #[test]
    fn sessions_at_once_need_the_cpu_or_a_stream_each() {
        let text = "backend: mock\nmodels: [m]\nvariants: [{ name: two, sessions: 2 }]\nmeasure: { load: offline }\n";
        let spec = spec::parse("test.yaml", text, Path::new("."), &[]).expect("a valid spec");
        let mut experiment = spec.experiment;
        let cell = plan::expand(&experiment).expect("a plan").cells[0];
        let reason =
            |experiment: &Experiment, load| serves_one_at_a_time(experiment, &cell, load).map(|skip| skip.reason);
        assert_eq!(reason(&experiment, Some(Load::Offline)), None, "the CPU");
        for provider in ["webgpu", "tensorrt", "mine"] {
            experiment.devices[0] = device(provider);
            assert!(
                reason(&experiment, Some(Load::Offline))
                    .is_some_and(|reason| reason.contains("on the CPU and on CUDA"))
            );
        }
        experiment.devices[0] = device("cuda");
        assert_eq!(reason(&experiment, Some(Load::Offline)), None);
        let graph = BTreeMap::from([("enable_cuda_graph".to_owned(), "1".to_owned())]);
        experiment.variants[0].provider.insert("cuda".to_owned(), graph);
        assert_eq!(reason(&experiment, Some(Load::SingleStream)), None, "one at a time");
        assert!(reason(&experiment, Some(Load::Offline)).is_some_and(|reason| reason.contains("graphs are recorded")));
        experiment.variants[0].shared_session = true;
        assert!(reason(&experiment, Some(Load::Offline)).is_some_and(|reason| reason.contains("calls of one session")));
        experiment.variants[0].shared_session = false;
        experiment.measure.boundary = Boundary::Host;
        assert!(reason(&experiment, Some(Load::Offline)).is_some());
    }

    #[test]
    fn the_trial_is_a_whole_model() {
        assert!(onnx::check_graph(&trial_model()).is_ok());
    }
}
