//! What devices are, and what they do while runs are measured: the parent's look at them.
//!
//! A `Monitor` reads GPUs: NVML on a real machine, a script with the mock backend. [`packages`] reads the energy
//! counters of processors. A [`Watch`] follows one run: it reads the GPU ten times a second in a thread of its own that
//! sleeps in between, and the counters at the ends of each window of counted samples. What cannot be read is `None`.
//! Deliberately absent: executing anything on a device, and, but for [`clocks`], changing a setting.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod check;
pub mod clocks;
pub mod look;
mod monitor;
mod nvidia;
mod other_processes;
pub mod packages;
mod sampler;
mod scripted;
mod visible;
mod watch;

pub use monitor::{Point, is_slowed_for_heat};
pub use watch::{OtherWorkers, Watch, Watched};

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::info;

use base::machine::kernel::Kernel;
use experiment::{Device, MockDevice};
use monitor::Monitor;
use packages::Packages;

/// One GPU and the monitor that reads it.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub monitor: Arc<dyn Monitor>,
    /// Its number in PCI order.
    pub number: u32,
}

/// What of this machine can be looked at while it measures.
#[derive(Debug, Default)]
pub struct Monitors {
    /// Or why there is none, a fragment; `None` where nobody asks.
    gpus: Option<Result<Arc<dyn Monitor>, String>>,
    packages: Option<Packages>,
}

impl Monitors {
    /// This machine: NVML where a device needs it, and the counters of its processors where they can be read.
    pub fn here(devices: &[Device]) -> Self {
        let gpus = devices.iter().any(Device::is_nvidia).then(nvidia);
        if let Some(Err(problem)) = &gpus {
            info!("GPUs are not watched: {problem}");
        }
        Monitors { gpus, packages: Packages::here(&Kernel::here()).ok() }
    }

    /// What a script says.
    pub fn scripted(script: &MockDevice) -> Self {
        let packages = script.package_watts.map(|watts| Packages::Scripted { watts });
        Monitors { gpus: Some(Ok(Arc::new(scripted::Scripted::new(script.clone())))), packages }
    }

    /// The GPU of a device for a process with these environment variables; `None` if there is none that can be read.
    ///
    /// # Errors
    ///
    /// Why it cannot be looked at, a fragment.
    pub fn gpu_of(&self, device: &Device, env: &BTreeMap<String, String>) -> Option<Result<Gpu, String>> {
        let gpus = self.gpus.as_ref().filter(|_| device.is_nvidia())?;
        let monitor = match gpus {
            Ok(monitor) => monitor,
            Err(problem) => return Some(Err(problem.clone())),
        };
        let here = || monitor.environment().on_machine(|| std::env::var(visible::VARIABLE).ok()).flatten();
        let visible = env.get(visible::VARIABLE).cloned().or_else(here);
        let number = visible::number(device.index.unwrap_or(0), visible.as_deref(), &|uuid| monitor.by_uuid(uuid));
        Some(number.map(|number| Gpu { monitor: Arc::clone(monitor), number }))
    }

    /// The processors' counters, where they can be read.
    pub fn packages(&self) -> Option<&Packages> {
        self.packages.as_ref()
    }
}

/// NVML of this machine.
///
/// # Errors
///
/// Why it cannot be used, a fragment.
pub fn nvidia() -> Result<Arc<dyn Monitor>, String> {
    nvidia::Nvidia::open().map(|monitor| Arc::new(monitor) as Arc<dyn Monitor>)
}
