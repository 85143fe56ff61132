//! What a run drew and held on its device: memory and energy are of the model, the rest is of the environment.
//!
//! The parent reads the device ten times a second; means and shares are of the readings while counted samples were taken.

use super::environment::environment;
use super::{Direction, Metric, Unit, metric};

pub const DEVICE_MEMORY: Metric = metric(
    "device_memory_bytes",
    "device memory",
    Unit::Bytes,
    Direction::LowerIsBetter,
    "peak device memory in use during the run, minus what was in use before its worker started; read ten times a second, context and library included",
);
/// Memory of PyTorch's allocator.
pub(crate) const PEAK_ALLOCATED: Metric = metric(
    "peak_allocated_bytes",
    "allocated",
    Unit::Bytes,
    Direction::LowerIsBetter,
    "peak of the device memory in tensors during the samples, as the framework's allocator counts it; reset before them",
);
pub(crate) const PEAK_RESERVED: Metric = metric(
    "peak_reserved_bytes",
    "reserved",
    Unit::Bytes,
    Direction::LowerIsBetter,
    "peak of the device memory that the framework's allocator held during the samples, free blocks included",
);
/// Energy of the device per inference.
pub const DEVICE_ENERGY: Metric = metric(
    "device_energy_joules",
    "device energy",
    Unit::Joules,
    Direction::LowerIsBetter,
    "increase of the device's energy counter while counted samples were taken, per inference; includes idle power",
);
/// Energy of the processor packages per inference.
pub const PACKAGE_ENERGY: Metric = metric(
    "package_energy_joules",
    "package energy",
    Unit::Joules,
    Direction::LowerIsBetter,
    "increase of the energy counters of all processor packages (RAPL) while counted samples were taken, per inference; includes idle power and other processes",
);

/// How busy the device was.
pub const GPU_UTILISATION: Metric = environment(
    "gpu_utilisation_ratio",
    "GPU utilisation",
    Unit::Ratio,
    "share of the sampling time in which a kernel of any process ran on the device",
);
/// The clock of the device.
pub const GPU_CLOCK: Metric = environment(
    "gpu_clock_cycles_per_s",
    "GPU clock",
    Unit::PerSecond,
    "mean clock of the device's multiprocessors while sampling",
);
pub const GPU_CLOCK_CHANGE: Metric = environment(
    "gpu_clock_change_ratio",
    "change of GPU clock",
    Unit::Ratio,
    "largest minus smallest clock of the device's multiprocessors while sampling, over the largest",
);
/// The clock of the device's memory.
pub const GPU_MEMORY_CLOCK: Metric = environment(
    "gpu_memory_clock_cycles_per_s",
    "GPU memory clock",
    Unit::PerSecond,
    "mean clock of the device's memory while sampling",
);
/// Power of the device.
pub const GPU_POWER: Metric =
    environment("gpu_power_watts", "GPU power", Unit::Watts, "mean power of the whole device while sampling");
/// Slowed down by the power limit.
pub const GPU_POWER_CAPPED: Metric = environment(
    "gpu_power_capped_ratio",
    "GPU throttled by power",
    Unit::Ratio,
    "share of the readings while sampling in which the device was throttled by its power limit or its supply",
);
/// Temperature of the device.
pub const GPU_TEMPERATURE: Metric = environment(
    "gpu_temperature_celsius",
    "GPU temperature",
    Unit::Celsius,
    "highest temperature of the device's chip during the run",
);
/// Slowed down by heat.
pub const GPU_HEAT: Metric = environment(
    "gpu_heat_ratio",
    "GPU throttled by heat",
    Unit::Ratio,
    "share of the readings while sampling in which the device was throttled by its temperature",
);
/// How full the device's memory was.
pub const GPU_MEMORY_USED: Metric = environment(
    "gpu_memory_used_ratio",
    "GPU memory in use",
    Unit::Ratio,
    "largest share of the device's memory in use during the run, by any process",
);
/// What other processes used of the device's time.
pub const GPU_OTHERS: Metric = environment(
    "gpu_others_ratio",
    "other processes on the GPU",
    Unit::Ratio,
    "largest share of the device's time that processes other than the worker used during the run",
);
/// What other processes held of the device's memory.
pub const GPU_OTHERS_MEMORY: Metric = environment(
    "gpu_others_memory_ratio",
    "GPU memory of others",
    Unit::Ratio,
    "largest share of the device's memory that processes other than the worker held during the run",
);
