//! What the samples of a cell's rehearsal say, kept while they themselves are on disk.

use base::quantity::Nanos;
use experiment::Cache;
use record::Sampled;
use statistics::autocorrelation::autocorrelation_time;
use statistics::quantile::{NORMAL_CONSISTENCY, median, median_absolute_deviation};

/// What the samples of a rehearsal say about the runs of its cell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RehearsalSamples {
    /// Typical duration of an iteration: the median of its last five samples (method 1.3).
    pub(super) iteration_ns: Option<u64>,
    pub(super) longest_ns: u64,
    /// From the first to the last.
    pub(super) span: Nanos,
    /// The device's own clock measured them too.
    pub(super) are_of_device: bool,
    /// Typical time from the start of a sample to the start of the next: emptying caches takes its time too.
    gap_ns: Option<u64>,
    /// Robust coefficient of variation, widened for their correlation.
    pub(super) noise: f64,
}

impl RehearsalSamples {
    pub(super) fn of(rehearsal: &Sampled<'_>) -> Self {
        let (starts, all_ns) = (&rehearsal.warmup.start_ns, &rehearsal.warmup.duration_ns);
        let durations: Vec<f64> = all_ns.iter().map(|duration| *duration as f64).collect();
        let last: Vec<f64> = durations.iter().rev().take(5).copied().collect();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
        RehearsalSamples {
            iteration_ns: median(&last).map(|nanos| nanos as u64),
            longest_ns: all_ns.iter().copied().max().unwrap_or(0),
            span: Nanos(rehearsal.warmup.span_ns()),
            are_of_device: !rehearsal.warmup.device_ns.is_empty(),
            gap_ns: median(&gaps).map(|gap| gap as u64),
            noise: noise(&durations).unwrap_or(0.0),
        }
    }

    pub(super) fn sample_ns(&self, cache: Cache, iterations: u32) -> u64 {
        let together = self.iteration_ns.unwrap_or(0).saturating_mul(u64::from(iterations.max(1)));
        match cache {
            Cache::Cold => self.gap_ns.unwrap_or(together),
            Cache::Warm => together,
        }
    }
}

fn noise(durations: &[f64]) -> Option<f64> {
    let middle = median(durations).filter(|middle| *middle > 0.0)?;
    let variation = NORMAL_CONSISTENCY * median_absolute_deviation(durations)? / middle;
    Some(variation * autocorrelation_time(durations).sqrt())
}
