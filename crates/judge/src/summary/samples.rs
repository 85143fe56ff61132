//! What the samples of one run say by themselves, found in one go while they lie in the processor's cache.

use base::metric::Statistic;
use record::StoredRun;
use statistics::autocorrelation::supports_quantile;
use statistics::moments::skewness;
use statistics::upper::Upper;
use table::Numbers;

/// The percentiles that are reported.
pub(crate) const PERCENTILES: [Statistic; 4] = [Statistic::P90, Statistic::P95, Statistic::P99, Statistic::P999];

/// Latency of the samples that statistics use, in nanoseconds an iteration. With several iterations in a sample only means
/// say something about one of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunSamples {
    pub(super) block: u32,
    pub(super) count: u64,
    pub(super) mean: Option<f64>,
    pub(super) standard_deviation: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) skewness: Option<f64>,
    percentiles: [Option<Quantile>; PERCENTILES.len()],
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantile {
    value: f64,
    /// The run has enough effective samples for this percentile; false if support was not computed.
    is_supported: bool,
}

impl RunSamples {
    /// Whether it supports them is found of the percentiles that are `wanted`.
    pub(super) fn of(run: &StoredRun, is_batched: bool, wanted: &[Statistic]) -> Self {
        let numbers = Numbers::from(run.durations().collect::<Vec<f64>>());
        let values = numbers.as_slice();
        let means = RunSamples {
            block: run.block,
            count: values.len() as u64,
            mean: numbers.mean(),
            standard_deviation: None,
            min: None,
            max: None,
            skewness: None,
            percentiles: [None; PERCENTILES.len()],
        };
        if is_batched {
            return means;
        }
        let least = PERCENTILES.iter().filter_map(|statistic| statistic.probability()).fold(1.0, f64::min);
        let upper = Upper::of(values, least);
        let percentile = |statistic: Statistic| {
            let probability = statistic.probability()?;
            let value = upper.as_ref()?.quantile(probability)?;
            let is_supported = wanted.contains(&statistic) && supports_quantile(values, probability, value);
            Some(Quantile { value, is_supported })
        };
        RunSamples {
            standard_deviation: numbers.standard_deviation(),
            min: values.iter().copied().reduce(f64::min),
            max: values.iter().copied().reduce(f64::max),
            skewness: skewness(values),
            percentiles: PERCENTILES.map(percentile),
            ..means
        }
    }

    pub(super) fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::Min => self.min,
            Statistic::StandardDeviation => self.standard_deviation,
            _ => self.percentile(statistic).map(|quantile| quantile.value),
        }
    }

    pub(super) fn supports(&self, statistic: Statistic) -> bool {
        self.percentile(statistic).is_some_and(|quantile| quantile.is_supported)
    }

    fn percentile(&self, statistic: Statistic) -> Option<Quantile> {
        let index = PERCENTILES.iter().position(|known| *known == statistic)?;
        self.percentiles[index]
    }
}
