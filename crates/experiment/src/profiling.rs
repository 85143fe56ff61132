//! Whether, and how, a record says where the time of an inference goes.

use serde::{Deserialize, Serialize};

/// How cells are profiled after they were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiling {
    /// Processes with the profiler, each beside one without.
    pub processes: u32,
    /// Never fewer inferences in each.
    pub inferences: u32,
}

impl Profiling {
    /// What `profile: true` means: as few processes as an interval needs.
    pub const DEFAULT: Profiling = Profiling { processes: 5, inferences: 20 };
    pub const MOST_PROCESSES: u32 = 100;
    pub const MOST_INFERENCES: u32 = 10_000;
}
