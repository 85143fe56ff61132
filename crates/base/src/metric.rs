//! What perfrun measures: every metric's name, unit, direction and meaning, each defined once.
//!
//! Adding a metric is one entry in [`METRICS`] or [`ENVIRONMENT`] and the place that produces its value; tables and
//! exports follow the unit.

mod device;
mod device_time;
mod environment;
mod load;
mod operator;
mod own;
mod reference;
mod written;

pub use device::*;
pub use device_time::*;
pub use environment::*;
pub use load::*;
pub use own::OwnMetric;
pub use reference::{MetricReference, ReferenceError, Statistic};
pub use written::{Difference, ValueKind, read_value};

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// How a value is scaled and printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Bytes,
    /// Events per second.
    PerSecond,
    Joules,
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// A plain ratio, 1.0-based.
    Ratio,
    /// A share of a whole, 1.0-based, shown in percent.
    Share,
    /// A number of things.
    Count,
    /// A plain number.
    Number,
    /// A number in a unit that only the specification knows, such as `dB`.
    Named(&'static str),
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// A smaller value is better.
    LowerIsBetter,
    /// A larger value is better.
    HigherIsBetter,
    /// Neither; shown for information.
    Neutral,
}

/// What a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The model: what users compare, and may refer to.
    Model,
    /// How it was measured: what a number's quality is told by.
    Procedure,
    /// The machine around it: what explains odd numbers, and is not judged.
    Environment,
}

/// What tells a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldBy {
    /// Each run, so that there is an interval over runs.
    EachRun,
    /// One run of a cell for all.
    OneRun,
    /// What the cell is: its model file, or what comes out of it. The same in every run.
    Cell,
}

/// One metric of a run. All have one value a run; `latency_ns` is the run's median over its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Stored name with its unit, the key in `metrics.parquet` and `results.json`.
    pub name: &'static str,
    /// Heading in reports.
    pub title: &'static str,
    /// Unit of the stored value.
    pub unit: Unit,
    /// Which way is good.
    pub direction: Direction,
    /// What it is about.
    pub kind: Kind,
    pub told_by: ToldBy,
    /// What exactly is measured.
    pub meaning: &'static str,
}

impl Metric {
    /// Whether every run has the same value, so that two cells are compared exactly (method 6.1).
    pub fn is_constant(&self) -> bool {
        self.told_by == ToldBy::Cell
    }

    /// Whether one run of a cell tells it for all, so that there is no interval.
    pub fn is_known_once(&self) -> bool {
        self.told_by == ToldBy::OneRun
    }

    /// The name without its unit, as users refer to it (`latency` for `latency_ns`).
    pub fn stem(&self) -> &'static str {
        let units = ["_ns", "_bytes", "_per_s", "_ratio", "_joules"];
        let without_unit = || units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name);
        self.own_stem().unwrap_or_else(without_unit)
    }
}

/// A metric of how a run was measured.
const fn procedure(metric: Metric) -> Metric {
    Metric { kind: Kind::Procedure, ..metric }
}

/// A metric that one run tells for all.
const fn once(metric: Metric) -> Metric {
    Metric { told_by: ToldBy::OneRun, ..metric }
}

/// A metric that is the same in every run.
const fn constant(metric: Metric) -> Metric {
    Metric { told_by: ToldBy::Cell, ..metric }
}

use Direction::{HigherIsBetter, LowerIsBetter, Neutral};
use Unit::{Bytes, Count, Nanoseconds, Number, PerSecond, Ratio, Share};

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    direction: Direction,
    meaning: &'static str,
) -> Metric {
    Metric { name, title, unit, direction, kind: Kind::Model, told_by: ToldBy::EachRun, meaning }
}

/// Median duration of one inference.
pub const LATENCY: Metric = metric(
    "latency_ns",
    "latency",
    Nanoseconds,
    LowerIsBetter,
    "median over a run's counted samples of the time that one inference takes, inputs and outputs bound beforehand; service time of a closed loop, one stream; under a load the time from when a query was due to its answer",
);
/// Inferences per second of one stream.
pub const THROUGHPUT: Metric = metric(
    "throughput_per_s",
    "batches/s",
    PerSecond,
    HigherIsBetter,
    "inferences completed per second between the first and the last counted sample, one stream or, under a load, all callers; gaps count, but not those of a program that takes its samples in slices",
);
/// Items per second of one stream.
pub const ITEMS: Metric =
    metric("items_per_s", "items/s", PerSecond, HigherIsBetter, "throughput times the batch size");
/// From starting the worker process to its first answer.
pub const SPAWN: Metric = procedure(metric(
    "spawn_ns",
    "spawn",
    Nanoseconds,
    LowerIsBetter,
    "from starting the worker process to its first answer",
));
/// Session creation.
pub const LOAD: Metric = metric(
    "load_ns",
    "load",
    Nanoseconds,
    LowerIsBetter,
    "session creation, graph optimisation included; the file was read once before, so it is in the page cache",
);
pub const FIRST_INFERENCE: Metric = metric(
    "first_inference_ns",
    "first inference",
    Nanoseconds,
    LowerIsBetter,
    "the first inference of the process; not part of any other statistic",
);
/// Until the run was steady.
pub const TIME_TO_STEADY: Metric = metric(
    "time_to_steady_ns",
    "time to steady state",
    Nanoseconds,
    LowerIsBetter,
    "from the start of the first inference to the first counted sample, where the warm-up converged",
);
/// Peak resident memory.
pub const PEAK_RSS: Metric = metric(
    "peak_rss_bytes",
    "peak memory",
    Bytes,
    LowerIsBetter,
    "largest resident set of the worker process (VmHWM), runtime library and input pool included; of commands that of the command",
);
/// Processor time per inference.
pub const CPU_TIME: Metric = metric(
    "cpu_time_ns",
    "CPU time",
    Nanoseconds,
    LowerIsBetter,
    "processor time of all threads of the worker per inference while sampling",
);
/// Processor time of a command in user mode.
pub const USER_TIME: Metric = metric(
    "user_time_ns",
    "user time",
    Nanoseconds,
    LowerIsBetter,
    "processor time in user mode of a command and what it waits for, per execution",
);
/// Processor time of a command in the kernel.
pub const SYSTEM_TIME: Metric = metric(
    "system_time_ns",
    "system time",
    Nanoseconds,
    LowerIsBetter,
    "processor time in the kernel of a command and what it waits for, per execution",
);
/// Processor time over wall time.
pub const CPU_UTILISATION: Metric = metric(
    "cpu_utilisation_ratio",
    "CPU utilisation",
    Ratio,
    Neutral,
    "processor time over wall time while sampling; 2.0 is two processors fully used",
);
/// Reading the clock.
pub const CLOCK_OVERHEAD: Metric = procedure(metric(
    "clock_overhead_ns",
    "clock overhead",
    Nanoseconds,
    Neutral,
    "median time between two clock readings; reported, never subtracted",
));
/// Smallest step of the clock.
pub const CLOCK_RESOLUTION: Metric =
    procedure(metric("clock_resolution_ns", "clock resolution", Nanoseconds, Neutral, "smallest step of the clock"));
pub const SAMPLES: Metric = metric("samples", "samples", Count, Neutral, "counted samples, without late warm-up");
/// Samples before the counted ones.
pub const WARMUP_SAMPLES: Metric =
    procedure(metric("warmup_samples", "warm-up samples", Count, Neutral, "samples taken before the counted ones"));
/// How precise a run was when it stopped.
pub const PRECISION: Metric = procedure(metric(
    "precision_ratio",
    "precision within a run",
    Ratio,
    Neutral,
    "relative half-width of the interval of the run's median or mean, from the rule that stops sampling",
));
/// Bytes held by the inputs.
pub const INPUT_POOL: Metric = procedure(metric(
    "input_pool_bytes",
    "input pool",
    Bytes,
    Neutral,
    "bytes of all input sets together, part of the peak memory",
));

/// Size of the model file that the cell is run with.
pub const MODEL_SIZE: Metric = constant(metric(
    "model_size_bytes",
    "model size",
    Bytes,
    LowerIsBetter,
    "size of the model file that the cell is run with, external data included; the same in every run",
));
/// How like the reference's the outputs are, by their angle.
pub const FIDELITY_COSINE: Metric = constant(metric(
    "fidelity_cosine_ratio",
    "cosine of outputs",
    Ratio,
    HigherIsBetter,
    "smallest cosine of an output of numbers with the reference's, for all input sets of the rehearsal together; the same in every run",
));
/// How many elements are the reference's, of outputs that are classes.
pub const FIDELITY_EQUAL: Metric = constant(metric(
    "fidelity_equal_ratio",
    "equal elements",
    Share,
    HigherIsBetter,
    "smallest share of equal elements of an output of whole numbers, booleans or texts, for all input sets of the rehearsal together; the same in every run",
));
/// How often the largest score is the reference's.
pub const FIDELITY_TOP1: Metric = constant(metric(
    "fidelity_top1_ratio",
    "top-1 agreement",
    Share,
    HigherIsBetter,
    "share of the rehearsal's items whose largest output is the reference's, for outputs that are scores of classes; the same in every run",
));

/// How often the largest score is that of the label.
pub const ACCURACY_TOP1: Metric = constant(metric(
    "accuracy_top1_ratio",
    "top-1 accuracy",
    Share,
    HigherIsBetter,
    "share of the dataset's items whose largest output is the label's; its interval is Wilson's over items; the same in every run",
));
/// How often the label is among the five largest scores.
pub const ACCURACY_TOP5: Metric = constant(metric(
    "accuracy_top5_ratio",
    "top-5 accuracy",
    Share,
    HigherIsBetter,
    "share of the dataset's items whose label is among the five largest outputs; its interval is Wilson's over items; the same in every run",
));
/// Mean absolute error.
pub const MAE: Metric = constant(metric(
    "mae",
    "mean absolute error",
    Number,
    LowerIsBetter,
    "mean over the dataset's items of the absolute difference from the label, in the label's unit; its interval is over items; the same in every run",
));
/// Root of the mean squared error.
pub const RMSE: Metric = constant(metric(
    "rmse",
    "root mean squared error",
    Number,
    LowerIsBetter,
    "root of the mean over the dataset's items of the squared difference from the label, in the label's unit; its interval is over items; the same in every run",
));
/// Share of the labels' variance that is explained.
pub const R2: Metric = constant(metric(
    "r2",
    "R2",
    Number,
    HigherIsBetter,
    "1 minus the mean squared error over the variance of the labels; its interval is over items, for these labels; the same in every run",
));

/// How many times as good as its baseline a cell is; of a comparison, not of a run, and so not in [`METRICS`].
pub const SPEEDUP: Metric = metric(
    "speedup",
    "speedup",
    Ratio,
    HigherIsBetter,
    "latency of the baseline over latency of the cell, paired within blocks; above 1 is faster",
);

/// Every metric of a model, in the order of reports; those of its environment are [`ENVIRONMENT`].
pub const METRICS: &[Metric] = &[
    LATENCY,
    THROUGHPUT,
    ITEMS,
    LARGEST_RATE,
    LATE_SHARE,
    SERVICE,
    EARLY_STOPPING,
    SPAWN,
    LOAD,
    FIRST_INFERENCE,
    TIME_TO_STEADY,
    PEAK_RSS,
    SESSION_MEMORY,
    CPU_TIME,
    USER_TIME,
    SYSTEM_TIME,
    CPU_UTILISATION,
    DEVICE_TIME,
    LAUNCH,
    TO_DEVICE,
    TO_HOST,
    PIPELINED,
    BUILD,
    FALLBACK,
    COPIES,
    DEVICE_MEMORY,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    DEVICE_ENERGY,
    PACKAGE_ENERGY,
    CLOCK_OVERHEAD,
    CLOCK_RESOLUTION,
    EVENTS,
    UNFINISHED,
    SAMPLES,
    WARMUP_SAMPLES,
    PRECISION,
    INPUT_POOL,
    LATENESS,
    LITTLE,
    MODEL_SIZE,
    FIDELITY_COSINE,
    FIDELITY_EQUAL,
    FIDELITY_TOP1,
    ACCURACY_TOP1,
    ACCURACY_TOP5,
    MAE,
    RMSE,
    R2,
];

/// The metric of that stored name.
pub fn by_name(name: &str) -> Option<&'static Metric> {
    let known = METRICS.iter().chain(ENVIRONMENT).find(|metric| metric.name == name);
    known.or_else(|| Metric::of_own(name))
}

/// Returns the metric with this stored name, which is not one of [`METRICS`], and creates it on first use.
fn interned(name: &str, make: impl FnOnce(&'static str) -> Option<Metric>) -> Option<&'static Metric> {
    /// No specification asks for more; what names more is not read as metrics.
    const MOST: usize = 10_000;
    static KNOWN: Mutex<BTreeMap<&'static str, &'static Metric>> = Mutex::new(BTreeMap::new());
    // Whoever panicked has left it whole.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(metric) = known.get(name) {
        return Some(metric);
    }
    if known.len() >= MOST {
        return None;
    }
    let name: &'static str = String::leak(name.to_owned());
    let made: &'static Metric = Box::leak(Box::new(make(name)?));
    known.insert(name, made);
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_carry_their_unit() {
        let all: Vec<&Metric> = METRICS.iter().chain(ENVIRONMENT).collect();
        for (index, metric) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|earlier| earlier.name != metric.name), "{} twice", metric.name);
            let suffix = match metric.unit {
                Unit::Nanoseconds => "_ns",
                Unit::Bytes => "_bytes",
                Unit::PerSecond => "_per_s",
                Unit::Joules => "_joules",
                Unit::Watts => "_watts",
                Unit::Celsius => "_celsius",
                Unit::Ratio | Unit::Share => "_ratio",
                Unit::Count | Unit::Number | Unit::Named(_) => "",
            };
            assert!(metric.name.ends_with(suffix), "{} does not end in {suffix}", metric.name);
        }
        assert_eq!(LATENCY.stem(), "latency");
        assert_eq!(by_name("load_ns"), Some(&LOAD));
    }
}
