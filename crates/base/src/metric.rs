//! What perfrun measures: every metric's name, unit, direction and meaning, each defined once.
//!
//! Adding a metric is one row of [`METRICS`] or [`ENVIRONMENT`] and the place that produces its value; tables and
//! exports follow the unit.

mod operator;
mod own;
mod reference;
mod table;
mod written;

pub use own::OwnMetric;
pub use reference::{MetricReference, ReferenceError, Statistic};
pub use table::*;
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

impl Unit {
    /// Whether it measures how much there is of something, which is never negative.
    pub fn is_amount(self) -> bool {
        use Unit::{Bytes, Count, Joules, Nanoseconds, PerSecond, Share, Watts};
        matches!(self, Nanoseconds | Bytes | PerSecond | Joules | Watts | Share | Count)
    }
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
    /// How it was measured: it shows how good a number is.
    Procedure,
    /// The machine around it: what explains odd numbers, and is not judged.
    Environment,
}

/// Who reports a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedBy {
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
    pub reported_by: ReportedBy,
    /// What exactly is measured.
    pub meaning: &'static str,
}

impl Metric {
    /// Whether every run has the same value, so that two cells are compared exactly (method 6.1).
    pub fn is_constant(&self) -> bool {
        self.reported_by == ReportedBy::Cell
    }

    /// Whether one run of a cell reports it for all, so that there is no interval.
    pub fn is_known_once(&self) -> bool {
        self.reported_by == ReportedBy::OneRun
    }

    /// How many tokens a greedy loop emits that has it; `None` of other metrics.
    pub fn least_tokens(&self) -> Option<u64> {
        let is_one_of = |metrics: &[Metric]| metrics.iter().any(|metric| metric.name == self.name);
        let of_gaps = [ITL, ITL_P99, ITL_LARGEST, ITL_SLOWEST, ITL_SLOWEST_TOKEN, TPOT];
        if is_one_of(&of_gaps) { Some(2) } else { is_one_of(&[TTFT, OUTPUT_TOKENS]).then_some(1) }
    }

    /// Whether it says how like the reference's outputs are.
    pub fn is_of_outputs(&self) -> bool {
        let all = [FIDELITY_COSINE, FIDELITY_EQUAL, FIDELITY_TOP1, FIDELITY_KL, PERPLEXITY];
        all.iter().any(|metric| metric.name == self.name)
    }

    /// The name without its unit, as users refer to it (`latency` for `latency_ns`).
    pub fn stem(&self) -> &'static str {
        let units = ["_ns", "_bytes", "_per_s", "_ratio", "_joules"];
        let without_unit = || units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name);
        self.own_stem().unwrap_or_else(without_unit)
    }
}

/// A metric of a model that each run reports.
const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    direction: Direction,
    meaning: &'static str,
) -> Metric {
    Metric { name, title, unit, direction, kind: Kind::Model, reported_by: ReportedBy::EachRun, meaning }
}

/// How many times as good as its baseline a cell is; of a comparison, not of a run, and so not in [`METRICS`].
pub const SPEEDUP: Metric = metric(
    "speedup",
    "speedup",
    Unit::Ratio,
    Direction::HigherIsBetter,
    "latency of the baseline over latency of the cell, paired within blocks; above 1 is faster",
);

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
