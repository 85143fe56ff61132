//! What a run met on the machine: metrics of the environment, not of the model.
//!
//! They are stored with each run like any other, have no good direction, and are no metric references: nothing is
//! judged by them. They explain codes. Most are differences between two looks; those "of the run" are taken by the parent
//! right before the worker starts and right after it ends, those "while sampling" by the worker around its samples.

use super::{
    GPU_CLOCK, GPU_CLOCK_CHANGE, GPU_HEAT, GPU_MEMORY_CLOCK, GPU_MEMORY_USED, GPU_OTHERS, GPU_OTHERS_MEMORY, GPU_POWER,
    GPU_POWER_CAPPED, GPU_TEMPERATURE, GPU_UTILISATION, Kind, Metric, ToldBy, Unit,
};
use Unit::{Count, PerSecond, Ratio};

pub(super) const fn environment(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    Metric {
        name,
        title,
        unit,
        direction: super::Direction::Neutral,
        kind: Kind::Environment,
        told_by: ToldBy::EachRun,
        meaning,
    }
}

/// What other processes used.
pub const OTHER_CPU: Metric = environment(
    "other_cpu_ratio",
    "other processes",
    Ratio,
    "share of the allowed processors' time that processes other than perfrun and its worker used during the run; unknown where several workers are alive at once",
);
/// Samples that do not add up.
pub const UNTIMED: Metric = environment(
    "untimed_ratio",
    "outside the clock",
    Ratio,
    "of a program that is not perfrun's own: share of the time in which samples were taken, by perfrun's clock, that the program's samples do not account for",
);
/// Loading that does not add up.
pub const UNTIMED_LOAD: Metric = environment(
    "untimed_load_ratio",
    "loading outside the clock",
    Ratio,
    "of a program that is not perfrun's own: share of the time that it took to load, by perfrun's clock, that its load, build and first inference do not account for",
);
/// Time that a hypervisor took.
pub const STEAL: Metric = environment(
    "steal_ratio",
    "steal",
    Ratio,
    "share of the allowed processors' time that the hypervisor gave to other guests during the run",
);
/// Waiting for a processor.
pub const PRESSURE_CPU: Metric = environment(
    "pressure_cpu_ratio",
    "CPU pressure",
    Ratio,
    "share of the run in which some task of the machine waited for a processor (PSI, some)",
);
/// Waiting for memory.
pub const PRESSURE_MEMORY: Metric = environment(
    "pressure_memory_ratio",
    "memory pressure",
    Ratio,
    "share of the run in which some task of the machine waited for memory (PSI, some)",
);
/// Waiting for the disk.
pub const PRESSURE_IO: Metric = environment(
    "pressure_io_ratio",
    "I/O pressure",
    Ratio,
    "share of the run in which some task of the machine waited for input or output (PSI, some)",
);
/// Processors that slowed down.
pub const THROTTLE_EVENTS: Metric = environment(
    "throttle_events",
    "throttling",
    Count,
    "number of times that an allowed processor or its package was throttled by heat or power during the run",
);
/// Periods in which the quota ran out.
pub const QUOTA_STOPS: Metric = environment(
    "quota_stops",
    "quota throttling",
    Count,
    "periods of the run in which a cgroup used up its CPU quota and its processes were throttled",
);
/// Time stopped by the quota.
pub(crate) const QUOTA_STOPPED: Metric = environment(
    "quota_stopped_ratio",
    "throttled by quota",
    Ratio,
    "processor time for which tasks were throttled by the CPU quota of a cgroup, over the time of the run",
);
/// Pages moved to or from the disk.
pub const SWAPPED_PAGES: Metric =
    environment("swapped_pages", "swapped pages", Count, "pages moved between memory and swap during the run");
/// Times that a memory limit was met.
pub const MEMORY_LIMIT_EVENTS: Metric = environment(
    "memory_limit_events",
    "memory limit events",
    Count,
    "number of times that the cgroup reached a memory limit during the run (`high`, `max`, `oom`, `oom_kill`)",
);
/// Pages read from the disk.
pub const MAJOR_FAULTS: Metric = environment(
    "major_faults",
    "major faults",
    Count,
    "pages that the worker had to wait for from the disk while sampling",
);
/// Processor taken away.
pub const PREEMPTIONS: Metric = environment(
    "preemptions_per_s",
    "preemptions",
    PerSecond,
    "involuntary context switches per second and busy thread of the worker while sampling",
);
/// The processor's clock.
pub const CLOCK: Metric = environment(
    "clock_cycles_per_s",
    "clock",
    PerSecond,
    "mean clock of the processors on which the worker's busy threads were, right after the last sample",
);
/// Change of the processor's clock.
pub const CLOCK_CHANGE: Metric = environment(
    "clock_change_ratio",
    "change of clock",
    Ratio,
    "absolute change of that clock from right before the first to right after the last sample",
);
/// Threads that share a core.
pub(crate) const SHARED_CORES: Metric = environment(
    "threads_sharing_core",
    "threads sharing a core",
    Count,
    "busy threads of the worker that were on a physical core with another one, right after the last sample",
);
pub(crate) const MEMORY_NODES: Metric =
    environment("memory_nodes", "NUMA nodes", Count, "NUMA nodes of the processors that the worker may use");

/// Every metric of the environment, in the order of reports.
pub const ENVIRONMENT: &[Metric] = &[
    OTHER_CPU,
    STEAL,
    THROTTLE_EVENTS,
    CLOCK,
    CLOCK_CHANGE,
    PRESSURE_CPU,
    PRESSURE_MEMORY,
    PRESSURE_IO,
    PREEMPTIONS,
    SHARED_CORES,
    MEMORY_NODES,
    QUOTA_STOPS,
    QUOTA_STOPPED,
    SWAPPED_PAGES,
    MEMORY_LIMIT_EVENTS,
    MAJOR_FAULTS,
    UNTIMED,
    UNTIMED_LOAD,
    GPU_UTILISATION,
    GPU_CLOCK,
    GPU_CLOCK_CHANGE,
    GPU_MEMORY_CLOCK,
    GPU_POWER,
    GPU_POWER_CAPPED,
    GPU_TEMPERATURE,
    GPU_HEAT,
    GPU_MEMORY_USED,
    GPU_OTHERS,
    GPU_OTHERS_MEMORY,
];
