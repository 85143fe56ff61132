//! What was read of a device in the course of a run.

use serde::{Deserialize, Serialize};

use super::monitor::Reading;
use super::others::Others;

/// One moment of a run; `None` where the device did not tell. Names and units are those of `series.parquet`.
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
    /// Memory that the worker itself held, where the driver tells processes apart.
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

impl Point {
    pub(super) fn new(time_ns: u64, sampling: bool, reading: &Reading, others: &Others) -> Self {
        Point {
            time_ns,
            sampling,
            utilisation_ratio: reading.utilisation,
            memory_utilisation_ratio: reading.memory_utilisation,
            memory_bytes: reading.memory_bytes,
            worker_memory_bytes: others.own_memory_bytes,
            others_memory_bytes: others.memory_bytes,
            others_ratio: others.utilisation,
            clock_cycles_per_s: reading.clock_hz,
            memory_clock_cycles_per_s: reading.memory_clock_hz,
            power_watts: reading.power_watts,
            temperature_celsius: reading.temperature_celsius,
            clock_reasons: reading.clock_reasons,
        }
    }
}
