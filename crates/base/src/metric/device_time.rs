//! Where the time of an inference on another device goes: by the device's own clock, by the runtime's profiler, and by
//! what is measured after the samples.

use super::{Direction, Metric, Unit, metric, once, procedure};

use Direction::{HigherIsBetter, LowerIsBetter, Neutral};
use Unit::{Nanoseconds, PerSecond, Share};

/// The device's own clock.
pub const DEVICE_TIME: Metric = metric(
    "device_time_ns",
    "device time",
    Nanoseconds,
    LowerIsBetter,
    "median over a run's counted samples of the time that one inference takes on the device's own clock, between two events on its stream; gaps in which the device waits for the host count",
);
/// What an inference takes besides.
pub const LAUNCH: Metric = metric(
    "launch_overhead_ns",
    "launch overhead",
    Nanoseconds,
    LowerIsBetter,
    "median over a run's counted samples of latency minus device time: launching the work and waking up after it",
);
/// Inputs to the device.
pub const TO_DEVICE: Metric = once(metric(
    "h2d_ns",
    "inputs to device",
    Nanoseconds,
    LowerIsBetter,
    "copying the inputs of one inference from pinned host memory to the device, median of ten copies after the samples of the first run that completed; in no latency",
));
/// Outputs to the host.
pub const TO_HOST: Metric = once(metric(
    "d2h_ns",
    "outputs to host",
    Nanoseconds,
    LowerIsBetter,
    "copying the outputs of one inference from the device to pinned host memory, median of ten copies after the samples of the first run that completed; in no latency",
));
/// Events of the device's clock.
pub const EVENTS: Metric = once(procedure(metric(
    "event_overhead_ns",
    "event overhead",
    Nanoseconds,
    Neutral,
    "device time between two consecutive events on its stream, median of ten; part of device time, never subtracted",
)));
/// What was left to do.
pub const UNFINISHED: Metric = once(procedure(metric(
    "unfinished_ns",
    "unfinished work",
    Nanoseconds,
    Neutral,
    "time to synchronise the whole device right after an inference has been waited for, median of ten; near zero if the clock covers all of the work",
)));
/// Several inferences at once.
pub const PIPELINED: Metric = metric(
    "pipelined_per_s",
    "pipelined batches/s",
    PerSecond,
    HigherIsBetter,
    "inferences per second where `measure.pipelined` of them are in flight on the device, median of ten rounds after the samples; not usable as a latency",
);
/// Building what a device runs.
pub const BUILD: Metric = metric(
    "build_ns",
    "engine build",
    Nanoseconds,
    LowerIsBetter,
    "session creation and first inference, in one of which the provider builds an engine: in the rehearsal, whose engine all runs load, or in every run with `measure.rebuild: per_run`",
);
/// Time in nodes on the CPU.
pub const FALLBACK: Metric = once(metric(
    "fallback_ratio",
    "time on the CPU",
    Share,
    LowerIsBetter,
    "share of an inference on another device that was spent in nodes on the CPU, from the runtime's profile of ten inferences after the samples of the first completed run",
));
/// Time in copies that the runtime put between nodes.
pub const COPIES: Metric = once(metric(
    "copy_ratio",
    "time in copies",
    Share,
    LowerIsBetter,
    "share of an inference on another device that was spent in copies that the runtime inserted between nodes, including waits for the device, from the same profile",
));
