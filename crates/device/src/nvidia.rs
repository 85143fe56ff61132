//! GPUs of NVIDIA through NVML, the driver's own library, which is loaded if it is there.
//!
//! Each method is one call of NVML, or a few. What it reads was compared with `nvidia-smi` on an H100 (docs/reference/gpus.md); locking
//! clocks has run on no GPU.

use std::ffi::OsStr;
use std::sync::Mutex;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::{GpuLockedClocksSetting, UsedGpuMemory};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{cuda_driver_version_major, cuda_driver_version_minor};

use super::monitor::{Facts, Monitor, Point, Process};

/// The name that the driver installs; the one without a number comes with the toolkit alone.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// NVML, and its own numbers of the GPUs in PCI order.
#[derive(Debug)]
pub(super) struct Nvidia {
    nvml: Nvml,
    by_pci: Vec<u32>,
    /// The latest moment, by GPU, up to which the utilisation of its processes has been read.
    read_until: Mutex<Vec<u64>>,
}

impl Nvidia {
    /// Loads the library and looks for GPUs.
    ///
    /// # Errors
    ///
    /// Why there is nothing to look at, a fragment.
    pub(super) fn open() -> Result<Self, String> {
        let nvml = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().map_err(|error| match error {
            NvmlError::LibloadingError(_) => format!("{LIBRARY} not found; it comes with the NVIDIA driver"),
            other => format!("NVML: {other}"),
        })?;
        let count = nvml.device_count().map_err(|error| format!("NVML: {error}"))?;
        let pci_info = |number: u32| nvml.device_by_index(number).and_then(|device| device.pci_info()).ok();
        let mut found: Vec<(Option<String>, u32)> =
            (0..count).map(|number| (pci_info(number).map(|pci| pci.bus_id), number)).collect();
        found.sort();
        let by_pci: Vec<u32> = found.into_iter().map(|(_, number)| number).collect();
        let read_until = Mutex::new(vec![0; by_pci.len()]);
        Ok(Nvidia { nvml, by_pci, read_until })
    }

    fn device(&self, gpu: u32) -> Result<nvml_wrapper::Device<'_>, String> {
        let number = self.by_pci.get(gpu as usize).ok_or_else(|| match self.by_pci.len() {
            1 => format!("there is only one GPU, so no GPU {gpu}"),
            count => format!("there are {count} GPUs, numbered from 0, so no GPU {gpu}"),
        })?;
        self.nvml.device_by_index(*number).map_err(|error| format!("NVML: {error}"))
    }
}

fn hz(mhz: u32) -> f64 {
    f64::from(mhz) * 1e6
}

fn percent(share: u32) -> f64 {
    f64::from(share) / 100.0
}

impl Monitor for Nvidia {
    fn count(&self) -> u32 {
        self.by_pci.len() as u32
    }

    fn facts(&self, gpu: u32) -> Result<Facts, String> {
        let device = self.device(gpu)?;
        let cuda = self.nvml.sys_cuda_driver_version().ok();
        let clocks = device.supported_memory_clocks().ok();
        let fastest = clocks.and_then(|clocks| clocks.into_iter().max());
        let clocks = fastest.and_then(|memory| device.supported_graphics_clocks(memory).ok()).unwrap_or_default();
        Ok(Facts {
            number: gpu,
            name: device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned()),
            uuid: device.uuid().ok(),
            pci: device.pci_info().ok().map(|pci| pci.bus_id),
            driver: self.nvml.sys_driver_version().ok(),
            cuda: cuda.map(|cuda| format!("{}.{}", cuda_driver_version_major(cuda), cuda_driver_version_minor(cuda))),
            memory_bytes: device.memory_info().ok().map(|memory| memory.total),
            power_limit_watts: device.enforced_power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            most_mhz: device.max_clock_info(Clock::SM).ok(),
            least_mhz: clocks.into_iter().min(),
            persistence: device.is_in_persistent_mode().ok(),
            mig: device.mig_mode().ok().map(|mode| mode.current != 0),
            ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        })
    }

    fn read(&self, gpu: u32) -> Point {
        let Ok(device) = self.device(gpu) else { return Point::default() };
        let used = device.utilization_rates().ok();
        Point {
            utilisation_ratio: used.as_ref().map(|used| percent(used.gpu)),
            memory_utilisation_ratio: used.map(|used| percent(used.memory)),
            memory_bytes: device.memory_info().ok().map(|memory| memory.used),
            clock_cycles_per_s: device.clock_info(Clock::SM).ok().map(hz),
            memory_clock_cycles_per_s: device.clock_info(Clock::Memory).ok().map(hz),
            power_watts: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            clock_reasons: device.current_throttle_reasons().ok().map(|reasons| reasons.bits()),
            ..Point::default()
        }
    }

    fn processes(&self, gpu: u32) -> Option<Vec<Process>> {
        let device = self.device(gpu).ok()?;
        let listed = device.running_compute_processes().ok()?;
        let mut read_until = self.read_until.lock().ok()?;
        let since = read_until.get_mut(gpu as usize)?;
        // Without processes that were busy lately NVML says that it found none.
        let busy = device.process_utilization_stats(*since).unwrap_or_default();
        *since = busy.iter().map(|sample| sample.timestamp).max().unwrap_or(*since);
        let utilisation = |pid: u32| {
            let samples = busy.iter().filter(|sample| sample.pid == pid);
            samples.max_by_key(|sample| sample.timestamp).map(|sample| percent(sample.sm_util))
        };
        let process = |listed: nvml_wrapper::struct_wrappers::device::ProcessInfo| Process {
            pid: listed.pid,
            memory_bytes: match listed.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
            utilisation: utilisation(listed.pid),
        };
        Some(listed.into_iter().map(process).collect())
    }

    fn energy_joules(&self, gpu: u32) -> Option<f64> {
        self.device(gpu).ok()?.total_energy_consumption().ok().map(|millijoules| millijoules as f64 / 1e3)
    }

    fn lock_clock(&self, gpu: u32, mhz: u32) -> Result<(), String> {
        let mut device = self.device(gpu)?;
        let said = |error: NvmlError| error.to_string();
        device.set_persistent(true).map_err(said)?;
        let setting = GpuLockedClocksSetting::Numeric { min_clock_mhz: mhz, max_clock_mhz: mhz };
        device.set_gpu_locked_clocks(setting).map_err(said)
    }

    fn default_mhz(&self, gpu: u32) -> Option<u32> {
        self.device(gpu).ok()?.default_applications_clock(Clock::Graphics).ok()
    }
}
