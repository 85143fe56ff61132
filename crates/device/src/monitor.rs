//! Where facts and readings of a machine's GPUs come from.

use std::fmt;

use serde::{Deserialize, Serialize};

use base::machine::environment::Environment;

/// What a GPU is and how it is set up; `None` where it does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its number in PCI order.
    pub number: u32,
    /// What it calls itself.
    pub name: String,
    /// Its unique identifier; it stays in the record and enters no report.
    pub uuid: Option<String>,
    /// Where it is on the bus.
    pub pci: Option<String>,
    /// Version of the driver.
    pub driver: Option<String>,
    /// The latest CUDA that the driver supports.
    pub cuda: Option<String>,
    pub memory_bytes: Option<u64>,
    /// The power that it keeps below.
    pub power_limit_watts: Option<f64>,
    /// The highest clock of its multiprocessors, in MHz.
    pub most_mhz: Option<u32>,
    /// The lowest, to which an idle GPU falls.
    pub least_mhz: Option<u32>,
    /// The driver stays loaded while nothing uses it.
    pub persistence: Option<bool>,
    /// It is divided into instances.
    pub mig: Option<bool>,
    /// Its memory corrects errors.
    pub ecc: Option<bool>,
}

/// One moment of a run; `None` where the device did not report it. Names and units are those of `series.parquet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Since right before the worker was started.
    pub time_ns: u64,
    /// Counted samples were being taken.
    pub sampling: bool,
    /// Share of the last moments in which some kernel ran.
    pub utilisation_ratio: Option<f64>,
    /// Share of them in which the device's memory was read or written.
    pub memory_utilisation_ratio: Option<f64>,
    /// Memory of the device in use, by anybody.
    pub memory_bytes: Option<u64>,
    /// Memory that the worker itself held, where the driver reports memory by process.
    pub worker_memory_bytes: Option<u64>,
    /// Memory that other processes held.
    pub others_memory_bytes: Option<u64>,
    /// Share of the device's time that other processes used.
    pub others_ratio: Option<f64>,
    /// Clock of the multiprocessors.
    pub clock_cycles_per_s: Option<f64>,
    pub memory_clock_cycles_per_s: Option<f64>,
    /// Power of the whole device.
    pub power_watts: Option<f64>,
    /// Temperature of the chip.
    pub temperature_celsius: Option<f64>,
    /// Why the clock was not higher: the driver's bits (`nvmlClocksEventReason*`).
    pub clock_reasons: Option<u64>,
}

/// Bits of [`Point::clock_reasons`] that say that the GPU is slowed down (nvml.h, `nvmlClocksEventReason*`). Being idle
/// (0x1) and clocks that somebody set (0x2) are none.
pub(crate) mod slowed {
    /// `SwPowerCap`, `HwPowerBrakeSlowdown`.
    pub(crate) const FOR_POWER: u64 = 0x4 | 0x80;
    /// `SwThermalSlowdown`, `HwThermalSlowdown`.
    pub(crate) const FOR_HEAT: u64 = 0x20 | 0x40;
    /// `HwSlowdown`: heat, or a power brake that has a bit of its own as well.
    pub(crate) const BY_HARDWARE: u64 = 0x8;
}

/// Whether bits say that a GPU is slowed down by its power limit or its supply.
pub(crate) fn is_slowed_for_power(reasons: u64) -> bool {
    reasons & slowed::FOR_POWER != 0
}

/// Whether bits say that a GPU is slowed down by its temperature.
pub fn is_slowed_for_heat(reasons: u64) -> bool {
    let by_hardware = reasons & slowed::BY_HARDWARE != 0 && !is_slowed_for_power(reasons);
    reasons & slowed::FOR_HEAT != 0 || by_hardware
}

/// A process that computes on a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its number, in the driver's eyes: in a container it may be another one than inside.
    pub pid: u32,
    /// Memory of the GPU that it holds.
    pub memory_bytes: Option<u64>,
    /// Share of the GPU's time that it used lately.
    pub(crate) utilisation: Option<f64>,
}

/// A source of facts and readings of GPUs, each by its number in PCI order. Reading changes nothing.
pub trait Monitor: fmt::Debug + Send + Sync {
    /// How many GPUs there are.
    fn count(&self) -> u32;

    /// What a GPU is.
    ///
    /// # Errors
    ///
    /// Why it is unknown, a fragment.
    fn facts(&self, gpu: u32) -> Result<Facts, String>;

    /// The GPU that has this UUID, which may be shortened.
    fn by_uuid(&self, uuid: &str) -> Option<u32> {
        let has =
            |gpu: &u32| self.facts(*gpu).ok().and_then(|facts| facts.uuid).is_some_and(|known| known.starts_with(uuid));
        (0..self.count()).find(has)
    }

    /// What it does now: without its time, and without what processes hold and use.
    fn read(&self, gpu: u32) -> Point;

    /// The processes that compute on it; `None` where they are unknown.
    fn processes(&self, gpu: u32) -> Option<Vec<Process>>;

    /// What it has drawn since its driver was loaded, in joules.
    fn energy_joules(&self, gpu: u32) -> Option<f64>;

    /// Keeps the clock of its multiprocessors at this value, and the driver loaded, or the clock would be forgotten.
    ///
    /// # Errors
    ///
    /// Why not, a fragment.
    fn lock_clock(&self, gpu: u32, mhz: u32) -> Result<(), String>;

    /// The clock that the maker chose for work that must not depend on the weather, in MHz.
    fn default_mhz(&self, gpu: u32) -> Option<u32>;

    /// Whose GPUs they are: those of a script do nothing while somebody waits.
    fn environment(&self) -> Environment {
        Environment::machine()
    }

    /// What a script says of a whole run that sampled for so long: what it read, who computed, what it drew.
    fn script_of_run(&self, _gpu: u32, _sampled_ns: u64) -> Option<ScriptedRun> {
        None
    }
}

/// A run in a script.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedRun {
    /// Readings while sampling.
    pub readings: Vec<Point>,
    /// Energy while sampling.
    pub joules: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slows_a_gpu_down_is_told_from_what_does_not() {
        for (bits, heat, power) in [
            (0x0, false, false),
            (0x1, false, false),
            (0x2, false, false),
            (0x4, false, true),
            (0x8, true, false),
            (0x88, false, true),
            (0x20, true, false),
            (0x40, true, false),
            (0x44, true, true),
        ] {
            assert_eq!((is_slowed_for_heat(bits), is_slowed_for_power(bits)), (heat, power), "{bits:#x}");
        }
    }
}
