//! The worker's loop: clock, iterations per sample, cold caches, warm-up, stopping.
//!
//! Input: a loaded backend, a clock and the rules. Output: raw samples and why the loop ended.
//! Deliberately absent: statistics of the result, printing, files, the network.

pub mod batching;
pub mod cold;
pub mod columns;
pub mod load;
pub mod sampler;
pub mod settle;
pub mod slice;
pub mod stop;
pub mod warm;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Version of what is timed: numbers of two versions cannot be compared.
pub const TIMING_VERSION: u32 = 1;

/// Raw samples in the order in which they were taken; columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Samples {
    /// Start of each sample since the start of the first inference, in nanoseconds.
    pub start_ns: Vec<u64>,
    /// Duration of all iterations of the sample together, in nanoseconds.
    pub duration_ns: Vec<u64>,
    /// Index of the input set.
    pub input: Vec<u32>,
    /// The same as `duration_ns` on the device's own clock; empty where the device has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_ns: Vec<u64>,
    /// Under a load, where start is when the query was due and duration includes its wait: the part in which it was served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_ns: Vec<u64>,
    /// Under a load: from when it was due, and whoever served it was free, to the beginning of the service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_ns: Vec<u64>,
    /// Under a load, of greedy loops: from the beginning of the service to the first token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_token_ns: Vec<u64>,
    /// Of the same the 99th percentile of a loop's gaps between tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_ns: Vec<u64>,
}

impl Samples {
    /// Room for `capacity` samples, so that the loop does not allocate.
    pub fn with_capacity(capacity: usize) -> Self {
        Samples {
            start_ns: Vec::with_capacity(capacity),
            duration_ns: Vec::with_capacity(capacity),
            input: Vec::with_capacity(capacity),
            // Memory that nothing is written to costs nothing.
            device_ns: Vec::with_capacity(capacity),
            ..Samples::default()
        }
    }

    /// Adds samples that were taken later.
    pub fn append(&mut self, later: Samples) {
        self.optional_mut().into_iter().zip(later.optional()).for_each(|(column, later)| column.extend(later));
        self.start_ns.extend(later.start_ns);
        self.duration_ns.extend(later.duration_ns);
        self.input.extend(later.input);
    }

    /// Drops those after the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.start_ns.truncate(count);
        self.duration_ns.truncate(count);
        self.input.truncate(count);
        self.optional_mut().into_iter().for_each(|column| column.truncate(count));
    }

    /// The columns that not all samples have.
    pub(crate) fn optional_mut(&mut self) -> [&mut Vec<u64>; 5] {
        [&mut self.device_ns, &mut self.service_ns, &mut self.late_ns, &mut self.first_token_ns, &mut self.gap_ns]
    }

    pub fn optional(&self) -> [&Vec<u64>; 5] {
        [&self.device_ns, &self.service_ns, &self.late_ns, &self.first_token_ns, &self.gap_ns]
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.duration_ns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.duration_ns.is_empty()
    }

    /// From the start of the first to the end of the last sample, in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.part_span_ns(0..self.len())
    }

    /// From the start of the first to the end of the last of some samples in a row; 0 where there is none.
    pub fn part_span_ns(&self, part: Range<usize>) -> u64 {
        let (Some(starts), Some(durations)) = (self.start_ns.get(part.clone()), self.duration_ns.get(part)) else {
            return 0;
        };
        match (starts.first(), starts.last(), durations.last()) {
            (Some(first), Some(last), Some(duration)) => last.saturating_add(*duration).saturating_sub(*first),
            _ => 0,
        }
    }
}
