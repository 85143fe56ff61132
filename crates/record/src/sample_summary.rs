//! What the samples of one run say by themselves: all that estimates and verdicts take from them, but for percentiles over
//! the samples of several runs.

use super::sampled::Sampled;
use base::metric::Statistic;
use statistics::autocorrelation::supports_quantile;
use statistics::quantile::median;
use statistics::upper::Upper;
use table::Numbers;

/// The percentiles that are reported.
pub const PERCENTILES: [Statistic; 4] = [Statistic::P90, Statistic::P95, Statistic::P99, Statistic::P999];

/// Latency of the samples that statistics use, in nanoseconds an iteration. With several iterations in a sample only means
/// say something about one of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleSummary {
    pub count: u64,
    pub mean: Option<f64>,
    pub standard_deviation: Option<f64>,
    pub min: Option<f64>,
    /// The median of each slice, 0 of one without samples; empty where they were not cut.
    pub slices: Vec<f64>,
    percentiles: [Option<Quantile>; PERCENTILES.len()],
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantile {
    value: f64,
    /// The run has enough effective samples for this percentile.
    is_supported: bool,
}

impl SampleSummary {
    pub(crate) fn of(samples: &Sampled<'_>) -> Self {
        let numbers = Numbers::from(samples.durations().collect::<Vec<f64>>());
        let values = numbers.as_slice();
        let slices = if samples.slices.is_empty() { Vec::new() } else { samples.slice_durations() };
        let means = SampleSummary {
            count: values.len() as u64,
            mean: numbers.mean(),
            slices: slices.iter().map(|slice| median(slice).unwrap_or(0.0)).collect(),
            ..SampleSummary::default()
        };
        if samples.iterations > 1 {
            return means;
        }
        let least = PERCENTILES.iter().filter_map(|statistic| statistic.probability()).fold(1.0, f64::min);
        let upper = Upper::of(values, least);
        let percentile = |statistic: Statistic| {
            let probability = statistic.probability()?;
            let value = upper.as_ref()?.quantile(probability)?;
            Some(Quantile { value, is_supported: supports_quantile(values, probability, value) })
        };
        SampleSummary {
            standard_deviation: numbers.standard_deviation(),
            min: values.iter().copied().reduce(f64::min),
            percentiles: PERCENTILES.map(percentile),
            ..means
        }
    }

    /// What is left where other runs of the cell have several iterations in a sample.
    #[must_use]
    pub fn means(self) -> Self {
        SampleSummary { count: self.count, mean: self.mean, slices: self.slices, ..SampleSummary::default() }
    }

    pub fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Min => self.min,
            Statistic::StandardDeviation => self.standard_deviation,
            _ => self.percentile(statistic).map(|quantile| quantile.value),
        }
    }

    pub fn supports(&self, statistic: Statistic) -> bool {
        self.percentile(statistic).is_some_and(|quantile| quantile.is_supported)
    }

    fn percentile(&self, statistic: Statistic) -> Option<Quantile> {
        let index = PERCENTILES.iter().position(|known| *known == statistic)?;
        self.percentiles[index]
    }
}
