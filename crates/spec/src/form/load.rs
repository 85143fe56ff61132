//! Form of `measure.load`: how queries come.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::scalar::{ArrivalsText, RateText};
use super::shorthand::{OneOrMany, described};
use base::quantity::Nanos;
use experiment::Load;

/// How queries come.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum LoadForm {
    /// Levels, each of which is measured with every input.
    Levels(LoadLevels),
    /// One of MLPerf's scenarios.
    Scenario(Load),
}

/// Either `clients`, each of whom asks again as soon as it has its answer, or a `rate` at which queries come, answered
/// or not.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "load-levels", extend("minProperties" = 1))]
pub(crate) struct LoadLevels {
    /// Callers at the same time; a list gives throughput and latency against their number.
    pub(crate) clients: Option<OneOrMany<Clients>>,
    /// Queries a second, and `largest` for the largest rate that keeps `bound`.
    pub(crate) rate: Option<OneOrMany<RateText>>,
    /// The latency that is promised, counted from the moment at which a query was due. `largest` needs it; at a given rate
    /// the share of late queries is reported.
    pub(crate) bound: Option<LatencyBoundForm>,
    /// When queries come at a rate. A file of times is played at its own rate, or at the one that is written; every run begins
    /// at a point of its own.
    pub(crate) arrivals: Option<ArrivalsText>,
}

/// A number of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Clients(pub(crate) u32);

/// More callers than this are a slip.
const MOST_CLIENTS: u32 = 4096;

described!(Clients, "clients", |_| {
    json_schema!({ "description": "Callers at the same time.", "type": "integer", "minimum": 1, "maximum": MOST_CLIENTS })
});

/// One percentile of latency, and the most that it may be: `{ p99: 20ms }`; of greedy loops `{ ttft_p99: 200ms, itl_p99: 30ms }`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "latency-bound", extend("minProperties" = 1, "maxProperties" = 2))]
pub(crate) struct LatencyBoundForm {
    /// One query in ten may be late.
    pub(crate) p90: Option<Nanos>,
    /// One query in twenty may be late.
    pub(crate) p95: Option<Nanos>,
    /// One query in a hundred may be late.
    pub(crate) p99: Option<Nanos>,
    /// One query in a thousand may be late.
    #[serde(rename = "p99.9")]
    pub(crate) p99_9: Option<Nanos>,
    /// One greedy loop in a hundred may have its first token later after it was due.
    pub(crate) ttft_p99: Option<Nanos>,
    /// One loop in a hundred may have gaps between its tokens of which more than one in a hundred is longer.
    pub(crate) itl_p99: Option<Nanos>,
}

described!(LoadForm, "load", |generator| {
    let levels = generator.subschema_for::<LoadLevels>();
    json_schema!({
        "description": "How queries come: `{ clients: [1, 2, 4] }`, `{ rate: 50/s }`, `{ rate: largest, bound: { p99: 20ms } }`, or one of MLPerf's scenarios: `offline` (all queries at once: items a second), `single_stream` (one caller: p90 by early stopping), `multi_stream` (one caller who asks for eight inferences at once: p99).",
        "anyOf": [{ "type": "string", "enum": ["offline", "single_stream", "multi_stream"] }, levels],
        "examples": [{ "clients": [1, 2, 4] }, { "rate": "largest", "bound": { "p99": "20ms" } }],
    })
});
