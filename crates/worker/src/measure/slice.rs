//! A stretch of counted samples, taken in turns with other workers (method 4.2): bounded by time and number, continued
//! later.

use std::time::Duration;

use super::Samples;
use super::sampler::Sampler;
use crate::backend::{Backend, Failure};
use base::machine::clock::Clock;
use base::quantity::Nanos;

/// What is wrong with a slice of `taken` samples, in words. `waited` is how long whoever asked has waited for it; `None`
/// where time is a script's.
pub(crate) fn contradiction(time: Nanos, most: u32, taken: usize, waited: Option<Duration>) -> Option<String> {
    let waited = waited.filter(|waited| taken < most as usize && *waited < time.to_duration())?;
    Some(format!("after {taken} samples and {waited:.1?}, not {most} or {time}"))
}

/// Samples until `time` has passed or `most` are taken, at least one, into `samples`, which has room for them.
///
/// One iteration comes before the first sample, untimed: since the last slice somebody else had the caches.
///
/// # Errors
///
/// What the backend reports.
pub(crate) fn take_slice<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    time: Nanos,
    most: u32,
    iterations: u32,
    mut samples: Samples,
) -> Result<Samples, Failure> {
    sampler.touch(iterations)?;
    let started = sampler.elapsed();
    loop {
        sampler.take(iterations, &mut samples)?;
        let spent = sampler.elapsed().saturating_sub(started);
        if samples.len() >= most as usize || spent >= time.0 {
            return Ok(samples);
        }
    }
}
