//! How users name a number: `stem[.statistic]`. One parser for bounds, tables, margins and exports.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ITEMS, LARGEST_RATE, LATE_SHARE, LATENCY, METRICS, Metric, ReportedBy, SPEEDUP, THROUGHPUT, Unit};

/// What of a metric's samples is meant.
///
/// Only latency has samples within a run; every other metric has one value a run, and then only the default is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Statistic {
    /// The run's median; the value itself where a run has one value.
    #[default]
    Median,
    /// Arithmetic mean.
    Mean,
    /// Smallest sample.
    Min,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    StandardDeviation,
    /// Standard deviation over mean.
    CoefficientOfVariation,
}

use Statistic::{CoefficientOfVariation, Mean, Median, Min, P90, P95, P99, P999, StandardDeviation};

impl Statistic {
    /// Every statistic with the word that users write.
    pub const NAMES: [(&'static str, Statistic); 10] = [
        ("median", Median),
        ("p50", Median),
        ("mean", Mean),
        ("min", Min),
        ("p90", P90),
        ("p95", P95),
        ("p99", P99),
        ("p99.9", P999),
        ("stddev", StandardDeviation),
        ("cv", CoefficientOfVariation),
    ];

    /// The word that users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, statistic)| *statistic == self).map_or("median", |(name, _)| name)
    }

    /// The percentile, between 0 and 1.
    pub fn probability(self) -> Option<f64> {
        match self {
            Median => Some(0.5),
            P90 => Some(0.9),
            P95 => Some(0.95),
            P99 => Some(0.99),
            P999 => Some(0.999),
            _ => None,
        }
    }

    /// Whether it speaks of the tail, where the wider margin holds (method 6.1).
    pub fn is_tail(self) -> bool {
        matches!(self, P90 | P95 | P99 | P999)
    }

    /// Whether it says how much the samples differ, and not where they lie.
    pub fn is_scatter(self) -> bool {
        matches!(self, StandardDeviation | CoefficientOfVariation)
    }
}

/// A metric and the statistic of it that is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricReference {
    pub metric: &'static Metric,
    /// What of its samples.
    pub statistic: Statistic,
}

impl MetricReference {
    /// The median latency, which every verdict is about unless something else is asked.
    pub const LATENCY: MetricReference = MetricReference::of(&LATENCY);

    /// The tails of latency that are compared in addition to it.
    pub const TAILS: [MetricReference; 2] =
        [MetricReference { metric: &LATENCY, statistic: P95 }, MetricReference { metric: &LATENCY, statistic: P99 }];

    /// By one of these two cells are compared where nothing is asked: latency, items per second where one inference of the one
    /// handles more items, and what a load is about.
    pub const UNASKED: [MetricReference; 4] = [
        MetricReference::LATENCY,
        MetricReference::of(&ITEMS),
        MetricReference::of(&THROUGHPUT),
        MetricReference::of(&LARGEST_RATE),
    ];

    /// The default statistic of a metric.
    pub const fn of(metric: &'static Metric) -> Self {
        MetricReference { metric, statistic: Median }
    }

    /// What users call it: one of `own`, which a specification declares, or perfrun's.
    ///
    /// # Errors
    ///
    /// [`ReferenceError`]
    pub fn named(
        text: &str,
        own: impl IntoIterator<Item = &'static Metric>,
    ) -> Result<MetricReference, ReferenceError> {
        let text = text.trim();
        let declared = own.into_iter().find(|metric| metric.stem() == text);
        declared.map_or_else(|| text.parse(), |metric| Ok(MetricReference::of(metric)))
    }

    /// The unit of its values: the metric's, and none for a coefficient of variation, which is a share of the mean.
    pub fn unit(&self) -> Unit {
        match self.statistic {
            CoefficientOfVariation => Unit::Share,
            Median | Mean | Min | P90 | P95 | P99 | P999 | StandardDeviation => self.metric.unit,
        }
    }

    /// Whether it is the ratio to the baseline, which only a comparison has.
    pub fn is_speedup(&self) -> bool {
        self.metric.name == SPEEDUP.name
    }

    /// Whether a promise about it is one about the bad runs: a tail, the share of late queries, a peak of memory. A few runs
    /// decide it, which no estimate may trim (method 5.9).
    pub fn is_about_bad_runs(&self) -> bool {
        let is_peak = self.metric.unit == Unit::Bytes && self.metric.reported_by == ReportedBy::EachRun;
        self.statistic.is_tail() || is_peak || self.metric.name == LATE_SHARE.name
    }

    /// The name under which its values are stored, one a run: `latency_p95_ns`.
    pub fn column(&self) -> String {
        let (name, stem) = (self.metric.name, self.metric.stem());
        match self.statistic {
            Median => name.to_owned(),
            CoefficientOfVariation => format!("{stem}_cv_ratio"),
            other => format!("{stem}_{}{}", other.name().replace('.', "_"), &name[stem.len()..]),
        }
    }

    /// The text in files, which reads back as itself: the stored name of a metric that a specification declares, and else what
    /// users write.
    pub fn key(&self) -> String {
        if self.metric.is_own() { self.column() } else { self.to_string() }
    }

    /// The reference whose values are stored under this name.
    pub fn of_column(name: &str) -> Option<Self> {
        static OF_LATENCY: LazyLock<BTreeMap<String, MetricReference>> = LazyLock::new(|| {
            let all = Statistic::NAMES
                .iter()
                .map(|(_, statistic)| MetricReference { metric: &LATENCY, statistic: *statistic });
            all.map(|reference| (reference.column(), reference)).collect()
        });
        let of_latency = OF_LATENCY.get(name).copied();
        let made = || Metric::of_operator(name).or_else(|| Metric::of_own(name));
        let known = || METRICS.iter().find(|metric| metric.name == name).or_else(made);
        of_latency.or_else(|| known().map(MetricReference::of))
    }

    /// The heading of a column: `latency p95`.
    pub fn title(&self) -> String {
        match self.statistic {
            Median => self.metric.title.to_owned(),
            other => format!("{} {}", self.metric.title, other.name()),
        }
    }
}

impl fmt::Display for MetricReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statistic {
            Median => f.write_str(self.metric.stem()),
            other => write!(f, "{}.{}", self.metric.stem(), other.name()),
        }
    }
}

/// Why a text is no reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("there is no metric `{0}`")]
    UnknownMetric(String),
    #[error("there is no statistic `{0}`")]
    UnknownStatistic(String),
    #[error("`{metric}` has one value a run, so it has no `{statistic}`")]
    NoSamples { metric: String, statistic: String },
}

impl FromStr for MetricReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if let Some(metric) = Metric::of_operator(text).or_else(|| Metric::of_own(text)) {
            return Ok(MetricReference::of(metric));
        }
        let (stem, statistic) = text.split_once('.').map_or((text, None), |(stem, rest)| (stem, Some(rest)));
        let mut known = METRICS.iter().chain([&SPEEDUP]);
        let metric = known.find(|metric| metric.stem() == stem || metric.name == stem);
        let metric = metric.ok_or_else(|| ReferenceError::UnknownMetric(stem.to_owned()))?;
        let Some(word) = statistic else { return Ok(MetricReference::of(metric)) };
        let found = Statistic::NAMES.iter().find(|(name, _)| *name == word);
        let (_, statistic) = found.ok_or_else(|| ReferenceError::UnknownStatistic(word.to_owned()))?;
        if metric.name != LATENCY.name && *statistic != Median {
            return Err(ReferenceError::NoSamples { metric: stem.to_owned(), statistic: word.to_owned() });
        }
        Ok(MetricReference { metric, statistic: *statistic })
    }
}

impl Serialize for MetricReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.key())
    }
}

impl JsonSchema for MetricReference {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MetricReference".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl<'de> Deserialize<'de> for MetricReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{PEAK_RSS, THROUGHPUT};

    fn parse(text: &str) -> Result<MetricReference, ReferenceError> {
        text.parse()
    }

    #[test]
    fn references_are_stems_with_a_statistic() {
        assert_eq!(parse("latency"), Ok(MetricReference::LATENCY));
        assert_eq!(parse("latency.p50"), Ok(MetricReference::LATENCY));
        assert_eq!(parse("latency_ns"), Ok(MetricReference::LATENCY));
        assert_eq!(parse("throughput"), Ok(MetricReference::of(&THROUGHPUT)));
        assert_eq!(parse("peak_rss"), Ok(MetricReference::of(&PEAK_RSS)));
        assert_eq!(parse("latency.p99.9").map(|reference| reference.statistic), Ok(P999));
        assert!(parse("speedup").is_ok_and(|reference| reference.is_speedup()));
    }

    #[test]
    fn a_coefficient_of_variation_is_no_time() {
        for (name, statistic) in Statistic::NAMES {
            let unit = MetricReference { metric: &LATENCY, statistic }.unit();
            assert_eq!(unit, if name == "cv" { Unit::Share } else { Unit::Nanoseconds }, "{name}");
        }
        assert_eq!(MetricReference::of(&PEAK_RSS).unit(), Unit::Bytes);
    }

    #[test]
    fn what_is_none_says_why() {
        assert_eq!(parse("speed"), Err(ReferenceError::UnknownMetric("speed".to_owned())));
        assert_eq!(parse("latency.p42"), Err(ReferenceError::UnknownStatistic("p42".to_owned())));
        let message = parse("peak_rss.p99").map_err(|error| error.to_string());
        assert_eq!(message, Err("`peak_rss` has one value a run, so it has no `p99`".to_owned()));
    }

    #[test]
    fn columns_are_identifiers_with_a_unit() {
        let column = |text: &str| parse(text).map(|reference| reference.column());
        for (text, expected) in [
            ("latency", "latency_ns"),
            ("latency.p99.9", "latency_p99_9_ns"),
            ("latency.cv", "latency_cv_ratio"),
            ("peak_rss", "peak_rss_bytes"),
        ] {
            assert_eq!(column(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn every_reference_reads_back_as_itself() {
        for metric in METRICS {
            let reference = MetricReference::of(metric);
            assert_eq!(reference.to_string().parse(), Ok(reference));
        }
        for (_, statistic) in Statistic::NAMES {
            let reference = MetricReference { metric: &LATENCY, statistic };
            assert_eq!(reference.to_string().parse(), Ok(reference));
        }
    }
}
