//! A few samples right before the counted ones, so that the first counted one does not pay for the pause before it.
//!
//! Between two steps a worker writes its samples, looks at the machine, and waits for the next command. Meanwhile caches
//! hold other things and the processor may rest: on the quickstart's models, the first sample after the pause was more
//! than ten robust standard deviations slow in 17 of 24 runs. What is taken here is warm-up, and is stored as such.

use super::Samples;
use super::sampler::Sampler;
use crate::backend::{Backend, Failure};
use base::machine::clock::Clock;

/// One sample of each of this many input sets touches everything that the counted ones will.
pub const MOST_SAMPLES: usize = 8;

/// A model that takes longer than this for a sample does not notice a pause.
pub const LONGEST_NS: u64 = 5_000_000;

/// Appends up to eight samples within five milliseconds; none where one took longer than that in the warm-up.
///
/// # Errors
///
/// What the backend reports.
pub(super) fn settle<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    sample_ns: u64,
    iterations: u32,
    samples: &mut Samples,
) -> Result<(), Failure> {
    let begin = sampler.elapsed();
    if sample_ns <= LONGEST_NS {
        while samples.len() < MOST_SAMPLES && sampler.elapsed() - begin < LONGEST_NS {
            sampler.take(iterations, samples)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MockRequest;
    use crate::backend::mock::MockBackend;
    use base::machine::clock::ScriptedClock;
    use base::quantity::Nanos;
    use experiment::Mock;

    fn settled(median: Nanos) -> usize {
        let clock = ScriptedClock::default();
        let script = Mock::steady(median);
        let request = MockRequest::alone(script);
        let mut backend = MockBackend::new(request, clock.clone());
        let mut samples = Samples::default();
        settle(&mut Sampler::new(&mut backend, &clock, 0), median.0, 1, &mut samples)
            .expect("a script without failures");
        samples.len()
    }

    #[test]
    fn short_models_settle_and_long_ones_need_not() {
        assert_eq!(settled(Nanos(50_000)), 8);
        assert_eq!(settled(Nanos::from_millis(4)), 2);
        assert_eq!(settled(Nanos::from_millis(300)), 0);
    }
}
