//! Metrics of cells under a load.

use super::{Direction, Metric, Unit, metric, procedure};

/// The largest rate of queries that keeps the bound.
pub const LARGEST_RATE: Metric = metric(
    "largest_rate_per_s",
    "largest rate",
    Unit::PerSecond,
    Direction::HigherIsBetter,
    "largest rate of queries at which the share of late ones is the one that the bound allows; over processes the rate at which their mean share is, with an interval by inverted t tests; of one process the rate at which its own share is",
);
/// Queries that were later than the bound.
pub const LATE_SHARE: Metric = metric(
    "late_ratio",
    "late queries",
    Unit::Share,
    Direction::LowerIsBetter,
    "share of queries whose answer came later after they were due than the bound allows",
);
/// What an inference takes once it has begun.
pub const SERVICE: Metric = metric(
    "service_ns",
    "service",
    Unit::Nanoseconds,
    Direction::LowerIsBetter,
    "median time of a query under the load from its beginning to its answer, without its wait",
);
/// MLPerf's percentile.
pub const EARLY_STOPPING: Metric = metric(
    "early_stopping_ns",
    "early stopping",
    Unit::Nanoseconds,
    Direction::LowerIsBetter,
    "estimate of the percentile by MLPerf's early stopping: p90 of single stream, p99 of multi stream",
);
/// What a further session adds.
pub const SESSION_MEMORY: Metric = metric(
    "session_memory_bytes",
    "memory per session",
    Unit::Bytes,
    Direction::LowerIsBetter,
    "growth of the worker's largest resident set by each session after the first, inputs included",
);
/// How late queries are begun.
pub const LATENESS: Metric = procedure(metric(
    "lateness_ns",
    "lateness",
    Unit::Nanoseconds,
    Direction::Neutral,
    "99th percentile of the time from when a query was due, and somebody was free to serve it, to its beginning",
));
/// Little's law.
pub const LITTLE: Metric = procedure(metric(
    "little_ratio",
    "Little's law",
    Unit::Ratio,
    Direction::Neutral,
    "throughput times mean latency over the number of callers; 1 where no time is lost between queries",
));
