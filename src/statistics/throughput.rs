//! What a run completed per second (method 5).
//!
//! Input: how many batches were completed, how many items each holds, and the time from the start of the first to the
//! end of the last. Output: batches and items per second. Gaps between samples count, because they are time that
//! passed. Deliberately absent: batch size over mean latency, which leaves the gaps out.

use serde::{Deserialize, Serialize};

/// The throughput of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Batches per second.
    pub batches_per_s: f64,
    /// Items per second: batches times the batch size.
    pub items_per_s: f64,
}

/// The throughput of `batches` (samples times iterations per sample) of `batch_size` items in `elapsed_ns`
/// nanoseconds. `None` when no time passed.
pub fn throughput(batches: u64, batch_size: u64, elapsed_ns: u64) -> Option<Throughput> {
    let batches_per_s = (elapsed_ns > 0).then(|| batches as f64 * 1e9 / elapsed_ns as f64)?;
    Some(Throughput { batches_per_s, items_per_s: batches_per_s * batch_size as f64 })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::vectors::{assert_close, load, number};

    #[test]
    fn reference_holds() {
        let case = &load()["throughput"];
        let elapsed_ns = (number(&case["total_s"]) * 1e9) as u64;
        let actual =
            throughput(case["batches"].as_u64().unwrap(), case["batch_size"].as_u64().unwrap(), elapsed_ns).unwrap();
        assert_close(actual.batches_per_s, number(&case["batches_per_s"]), 1e-12);
        assert_close(actual.items_per_s, number(&case["samples_per_s"]), 1e-12);
    }

    #[test]
    fn no_time_has_no_throughput() {
        assert_eq!(throughput(5, 1, 0), None);
        assert_eq!(throughput(0, 1, 10).unwrap().items_per_s, 0.0);
        assert!(throughput(u64::MAX, u64::MAX, 1).unwrap().items_per_s.is_finite());
    }
}
