//! The load that a cell is measured under: how queries come, in place of one caller who waits for each answer (method 7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::metric::{
    EARLY_STOPPING, ITEMS, LARGEST_RATE, LATE_SHARE, LATENCY, Metric, MetricReference, SERVICE, SESSION_MEMORY,
    Statistic, THROUGHPUT,
};
use base::quantity::Nanos;

/// How queries come. A query is one inference, but for [`Load::MultiStream`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "cell-load")]
pub enum Load {
    /// So many callers, each of whom asks again as soon as it has its answer.
    Clients(u32),
    /// MLPerf's: one caller; the 90th percentile by early stopping.
    SingleStream,
    /// MLPerf's: one caller who asks for eight inferences at once; the 99th percentile by early stopping.
    MultiStream,
    /// MLPerf's: all at once.
    Offline,
    /// So many a second, answered or not.
    Rate {
        per_s: f64,
        /// When they come.
        arrivals: Arrivals,
        /// What counts as late.
        bound: Option<LatencyBound>,
    },
    /// The largest rate that keeps the bound, which is found for every cell.
    Largest { arrivals: Arrivals, bound: LatencyBound },
}

/// When the queries of an open loop come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "arrivals")]
pub enum Arrivals {
    /// Independently of each other: gaps are exponential.
    #[default]
    Poisson,
    /// At equal distances.
    Constant,
    /// As in the trace of the experiment.
    Trace,
}

/// A percentile of latency, and what it must not pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBound {
    /// Of the percentile: .9, .95, .99 or .999.
    pub probability: f64,
    /// In nanoseconds.
    pub limit: Nanos,
    /// What it is about is when the first token of a greedy loop came, not its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_first_token: bool,
    /// The 99th percentile of a loop's own gaps between tokens must not pass this either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Nanos>,
}

/// What a query took once it had begun, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServedQuery {
    /// To its end.
    pub service_ns: f64,
    /// To the first token of a greedy loop, and the 99th percentile of the gaps between its tokens.
    pub tokens_ns: Option<[f64; 2]>,
}

impl LatencyBound {
    /// On the latency of whole queries.
    pub fn of(probability: f64, limit: Nanos) -> Self {
        LatencyBound { probability, limit, is_to_first_token: false, gap: None }
    }

    /// The share of queries that may be late.
    pub fn allowed(&self) -> f64 {
        1.0 - self.probability
    }

    /// The share of queries that are late, by their times to what the bound is about; 0 of none.
    pub fn late_share(&self, answers_ns: &[f64]) -> f64 {
        let late = answers_ns.iter().filter(|answer| **answer > self.limit.0 as f64).count();
        late as f64 / answers_ns.len().max(1) as f64
    }

    /// From the beginning of a query to what the bound is about, in nanoseconds; infinite where its gaps are too long, since
    /// no wait makes them shorter.
    pub fn answer_ns(&self, query: ServedQuery) -> f64 {
        let ServedQuery { service_ns, tokens_ns } = query;
        match tokens_ns {
            Some([_, gap]) if self.gap.is_some_and(|most| gap > most.0 as f64) => f64::INFINITY,
            Some([first, _]) if self.is_to_first_token => first,
            _ => service_ns,
        }
    }

    /// Whether it bounds tokens of a greedy loop.
    pub fn is_of_tokens(&self) -> bool {
        self.is_to_first_token || self.gap.is_some()
    }

    /// `p99`
    pub fn statistic(&self) -> Statistic {
        let all = Statistic::NAMES.iter().map(|(_, statistic)| *statistic);
        all.into_iter().find(|it| it.probability() == Some(self.probability)).unwrap_or_default()
    }
}

/// `p99 <= 20 ms`
impl std::fmt::Display for LatencyBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = if self.is_to_first_token { "ttft_" } else { "" };
        write!(f, "{of}{} <= {}", self.statistic().name(), spaced(&self.limit.to_string()))?;
        self.gap.map_or(Ok(()), |gap| write!(f, " and itl_p99 <= {}", spaced(&gap.to_string())))
    }
}

/// A time as reports have it: `20 ms`.
pub fn spaced(time: &str) -> String {
    let unit = time.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(time.len());
    format!("{} {}", &time[..unit], &time[unit..])
}

impl Load {
    /// The word in specifications, and in names of inputs for the rate that is found.
    pub const LARGEST: &str = "largest";

    /// Inferences of a query of MLPerf's MultiStream.
    pub(crate) const MULTI_STREAM: u32 = 8;

    /// What it adds to the name of an input: `c4`, `50rps`, `largest`.
    pub fn label(&self) -> String {
        match self {
            Load::Clients(clients) => format!("c{clients}"),
            Load::SingleStream => "single-stream".to_owned(),
            Load::MultiStream => "multi-stream".to_owned(),
            Load::Offline => "offline".to_owned(),
            // Four digits are enough to distinguish the rates that people write.
            Load::Rate { per_s, .. } => {
                let digits = 10_f64.powf(3.0 - per_s.abs().log10().floor()).max(1.0);
                format!("{}rps", (per_s * digits).round() / digits)
            }
            Load::Largest { .. } => Load::LARGEST.to_owned(),
        }
    }

    /// Callers of a closed loop; `None` in an open loop.
    pub fn clients(&self) -> Option<u32> {
        match self {
            Load::Clients(clients) => Some(*clients),
            Load::SingleStream | Load::MultiStream => Some(1),
            Load::Offline | Load::Rate { .. } | Load::Largest { .. } => None,
        }
    }

    /// How many queries are served at once, where a variant asks for so many sessions.
    pub fn callers(&self, sessions: Option<u32>) -> u32 {
        /// As many as a variant may ask for.
        const MOST: u32 = 256;
        let clients = self.clients();
        sessions.unwrap_or_else(|| clients.unwrap_or(1)).min(clients.unwrap_or(MOST)).clamp(1, MOST)
    }

    /// Inferences of a query.
    pub fn inferences(&self) -> u32 {
        if *self == Load::MultiStream { Load::MULTI_STREAM } else { 1 }
    }

    /// The percentile that MLPerf reports by early stopping.
    pub fn early_stopping(&self) -> Option<f64> {
        match self {
            Load::SingleStream => Some(0.9),
            Load::MultiStream => Some(0.99),
            _ => None,
        }
    }

    /// What counts as late.
    pub fn bound(&self) -> Option<LatencyBound> {
        match self {
            Load::Rate { bound, .. } => *bound,
            Load::Largest { bound, .. } => Some(*bound),
            _ => None,
        }
    }

    /// The arrivals of an open loop; not those that come at once.
    pub fn arrivals(&self) -> Option<Arrivals> {
        match self {
            Load::Rate { arrivals, .. } | Load::Largest { arrivals, .. } => Some(*arrivals),
            _ => None,
        }
    }

    /// What cells under it are compared by where nothing is asked; `items` says that their items are known.
    pub fn compared_by(&self, items: bool) -> MetricReference {
        match self {
            Load::Largest { .. } => MetricReference::of(&LARGEST_RATE),
            // In a closed loop that is the number of callers over their mean latency.
            Load::Offline | Load::Clients(_) => rate(items),
            _ => MetricReference::LATENCY,
        }
    }

    /// Whether cells under it have this number as one of their load. Where the largest rate is looked for, latencies and late
    /// queries are those of runs near it, and not at it.
    pub fn reports(&self, metric: &Metric) -> bool {
        match metric.name {
            name if name == LARGEST_RATE.name => self.is_largest(),
            name if name == LATE_SHARE.name => !self.is_largest() && self.bound().is_some(),
            name if name == EARLY_STOPPING.name => self.early_stopping().is_some(),
            name if name == LATENCY.name => !self.is_largest(),
            _ => !self.is_largest() || metric.least_tokens().is_none(),
        }
    }

    /// A load, as specifications have it, under which a metric is measured; `None` of those that need none.
    pub fn that_measures(metric: &Metric) -> Option<&'static str> {
        match metric.name {
            name if name == LARGEST_RATE.name => Some("{ rate: largest, bound: { p99: 20ms } }"),
            name if name == LATE_SHARE.name => Some("{ rate: 50/s, bound: { p99: 20ms } }"),
            name if name == EARLY_STOPPING.name => Some("single_stream"),
            name if [SERVICE.name, SESSION_MEMORY.name].contains(&name) => Some("{ clients: [1, 4] }"),
            _ => None,
        }
    }

    /// What it is about besides latency.
    pub fn about(&self, items: bool) -> Option<MetricReference> {
        match self {
            Load::Largest { .. } => Some(MetricReference::of(&LARGEST_RATE)),
            Load::Offline | Load::Clients(_) => Some(rate(items)),
            Load::Rate { bound, .. } => bound.map(|_| MetricReference::of(&LATE_SHARE)),
            Load::SingleStream | Load::MultiStream => Some(MetricReference::of(&EARLY_STOPPING)),
        }
    }

    pub fn is_largest(&self) -> bool {
        matches!(self, Load::Largest { .. })
    }
}

fn rate(items: bool) -> MetricReference {
    MetricReference::of(if items { &ITEMS } else { &THROUGHPUT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_on_tokens_is_about_the_first_one_and_the_gaps() {
        let whole = LatencyBound::of(0.99, Nanos(50));
        let first = LatencyBound { is_to_first_token: true, ..whole };
        let both = LatencyBound { gap: Some(Nanos(7)), ..first };
        let answers = |tokens_ns: Option<[f64; 2]>| {
            let query = ServedQuery { service_ns: 100.0, tokens_ns };
            [whole, first, both].map(|bound| bound.answer_ns(query))
        };
        assert_eq!(answers(Some([30.0, 8.0])), [100.0, 30.0, f64::INFINITY]);
        assert_eq!(answers(Some([30.0, 7.0])), [100.0, 30.0, 30.0]);
        assert_eq!(answers(None), [100.0; 3]);
        assert_eq!(both.late_share(&[30.0, f64::INFINITY]), 0.5);
    }
}
