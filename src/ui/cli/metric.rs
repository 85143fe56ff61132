//! Metrics and margins as options name them. A specification may declare a metric, so that what is none is known only once
//! specifications and reports were read.

use std::fmt;
use std::str::FromStr;

use base::metric::{Difference, Metric, MetricReference};
use base::quantity::{QuantityError, Ratio};
use judge::diff::MarginOverride;

/// What should be a metric.
#[derive(Clone, Debug)]
pub struct MetricArgument(String);

impl MetricArgument {
    /// The metric: perfrun's, or one of these, which specifications declare.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub(crate) fn read(&self, own_metrics: &[&'static Metric]) -> Result<MetricReference, String> {
        MetricReference::named(&self.0, own_metrics.iter().copied()).map_err(|error| error.to_string())
    }
}

impl FromStr for MetricArgument {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(MetricArgument(text.trim().to_owned()))
    }
}

impl fmt::Display for MetricArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What should be a margin of all metrics, `3%`, or of one, `peak_rss=1MiB`.
#[derive(Clone, Debug)]
pub enum MarginArgument {
    /// Metrics have different units, so that what holds for all of them is relative.
    OfAll(Ratio),
    OfOne(MetricArgument, String),
}

impl MarginArgument {
    /// The margin.
    ///
    /// # Errors
    ///
    /// No such metric, or no difference between its values.
    pub(crate) fn read(&self, own_metrics: &[&'static Metric]) -> Result<MarginOverride, String> {
        Ok(match self {
            MarginArgument::OfAll(ratio) => MarginOverride { metric: None, difference: Difference::Relative(ratio.0) },
            MarginArgument::OfOne(metric, text) => {
                let metric = metric.read(own_metrics)?;
                let difference = Difference::read(text, metric).map_err(|error| error.to_string())?;
                MarginOverride { metric: Some(metric), difference }
            }
        })
    }
}

impl FromStr for MarginArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((name, difference)) = text.split_once('=') {
            return Ok(MarginArgument::OfOne(MetricArgument(name.trim().to_owned()), difference.to_owned()));
        }
        if !text.trim_end().ends_with('%') {
            return Err("write `3%`, or for one metric `peak_rss=1MiB`".to_owned());
        }
        below_one(text).map(MarginArgument::OfAll)
    }
}

/// A bare `2` is 200 %, which hides every difference.
pub(super) fn below_one(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: QuantityError| error.to_string())?;
    if ratio.0 < 1.0 {
        return Ok(ratio);
    }
    Err(format!("{text} is 100 % or more; write `2%` or `0.02`"))
}
