//! Devices that are not there: seen in the kernel's files before anything is opened, and by trying them.
//!
//! A provider that is compiled into a runtime is offered on every machine; only a session tells whether its driver, its
//! libraries and its hardware are there. So a session of one node is made and run, in a process of its own.

use std::collections::BTreeMap;
use std::path::Path;

use super::prepare::Prepared;
use super::session::Session;
use crate::data::scratch::Scratch;
use crate::experiment::{Device, Experiment, Plugin, Provider, Supply, Values};
use crate::machine::kernel::Kernel;
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::onnx::{self, Dimension, ElementType};
use crate::plan::{Skip, SkipKind};
use crate::prepare::runtime::Libraries;
use crate::vocabulary::quantity::Nanos;
use crate::worker::backend::{BackendRequest, CellRequest, Failure, FailureKind, TensorRequest};
use crate::worker::{Conversation, Interrupts, StoppedAtOnce};

/// The first session on a device may compile its kernels.
const TIMEOUT: Nanos = Nanos::from_secs(120);

/// Elements of the node's input.
const ELEMENTS: u64 = 4;

/// Why a device cannot be there, by what the kernel shows; `None` says nothing.
pub(crate) fn why_not(device: &Device, kernel: &Kernel) -> Option<Skip> {
    const DRIVER: [&str; 2] = ["nvidiactl", "dxg"];
    let provider = Provider::of(device)?;
    let wants_nvidia = provider.supply == Supply::Package(crate::experiment::Package::OnnxruntimeGpu);
    let has_driver = || kernel.names("dev").iter().any(|name| DRIVER.contains(&name.as_str()));
    (wants_nvidia && !has_driver()).then(|| skip(device, "no NVIDIA driver here", None))
}

fn skip(device: &Device, reason: &str, remedy: Option<String>) -> Skip {
    Skip { kind: SkipKind::Device, reason: format!("{}: {reason}", device.label()), remedy }
}

/// Tries every device but the CPU that a cell still needs, with each of its runtimes, and skips the cells of those that
/// cannot be used.
///
/// # Errors
///
/// If the user stopped it.
pub(crate) fn try_all(
    prepared: &mut Prepared,
    experiment: &Experiment,
    libraries: &Libraries,
    executable: &Path,
    interrupts: &Interrupts,
) -> Result<(), StoppedAtOnce> {
    let needed: Vec<(usize, usize)> = {
        let places = prepared.plan.runnable().map(|(_, cell)| (cell.runtime().place(), cell.device().place()));
        let mut places: Vec<(usize, usize)> =
            places.filter(|(_, device)| !experiment.devices[*device].is_cpu()).collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    for (runtime, index) in needed {
        let device = &experiment.devices[index];
        let Some(Some(library)) = libraries.runtimes.get(runtime) else { continue };
        let plugin = libraries.plugins.get(&device.provider).map(|plugin| plugin.path.as_path());
        let trial = Trial { device, library: &library.path, plugin, executable };
        let Some(absence) = trial.carry_out(interrupts)? else { continue };
        for cell in 0..prepared.plan.cells.len() {
            let at = &prepared.plan.cells[cell];
            if at.skip.is_none() && (at.runtime().place(), at.device().place()) == (runtime, index) {
                prepared.plan.mark_skipped(cell, absence.clone());
            }
        }
        prepared.devices[index].get_or_insert(absence);
    }
    Ok(())
}

/// A session of one node on a device.
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
            Err(error) => return Ok(failed(format!("no temporary folder: {error}"))),
        };
        let path = folder.path().join("trial.onnx");
        if let Err(error) = onnx::save(addition(), &path) {
            return Ok(failed(error.to_string()));
        }
        let launch = Session::launch_for_file(self.executable, &folder.path().join("log"), TIMEOUT);
        let mut conversation = Conversation::start(launch, interrupts, 1);
        let tick = &mut || {};
        let outcome = conversation.prepare(self.request(&path), tick);
        let run = conversation.end(outcome, tick)?;
        Ok(run.failure.as_ref().map(|failure| self.absence(failure)))
    }

    fn request(&self, model: &Path) -> CellRequest {
        let shape = vec![ELEMENTS];
        CellRequest {
            cell: format!("a trial of {}", self.device.label()),
            backend: BackendRequest::on_device(self.library, self.plugin, self.device, model),
            tensors: vec![TensorRequest {
                name: "x".to_owned(),
                element: ElementType::Float32,
                shape: shape.clone(),
                values: Values::Random,
                seeds: vec![1],
            }],
            input_sets: 1,
            outputs: Some(BTreeMap::from([("y".to_owned(), shape)])),
            slowdown: 0.0,
            evict_bytes: None,
            cpus: None,
        }
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

/// `y = x + w`: one node, which every provider has.
fn addition() -> ModelProto {
    let shape = [Dimension::Fixed(ELEMENTS)];
    let value = |name: &str| ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&shape));
    let graph = GraphProto {
        name: Some("trial".to_owned()),
        node: vec![NodeProto::of("Add", "sum", &["x", "w"], &["y"], Vec::new())],
        input: vec![value("x")],
        output: vec![value("y")],
        initializer: vec![TensorProto::of_floats("w", &[ELEMENTS], &[1.0; ELEMENTS as usize])],
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
    fn the_trial_is_a_whole_model() {
        assert!(onnx::check_graph(&addition()).is_ok());
    }
}
