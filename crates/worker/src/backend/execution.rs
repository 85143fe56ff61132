//! What a backend does inside a worker.

use std::collections::BTreeMap;
use std::path::Path;

use crate::backend::trace::Trace;
use crate::backend::{Failure, FailureKind};
use base::machine::clock::{AnyClock, HostClock};
use base::machine::probe::Usage;
use files::array::Array;

/// One model, loaded once and run many times.
pub trait Backend {
    /// Loads the model; its duration is `load_ns`.
    ///
    /// # Errors
    ///
    /// The runtime's own message, classified.
    fn load(&mut self) -> Result<(), Failure>;

    /// Whether loading will build an engine from the model; asked before.
    fn builds_engine(&self) -> bool {
        false
    }

    /// Binds inputs and outputs after loading, outside every timed region.
    ///
    /// # Errors
    ///
    /// Names, types or shapes that do not fit the model.
    fn bind(&mut self) -> Result<(), Failure>;

    /// Says what shapes the outputs have in every input set, after a run that looked for them; `None`: they vary. What follows is
    /// bound as in runs that know them beforehand.
    ///
    /// # Errors
    ///
    /// Shapes that a setting of the session does not allow.
    fn outputs_are(&mut self, _shapes: Option<&BTreeMap<String, Vec<u64>>>) -> Result<(), Failure> {
        Ok(())
    }

    /// The clock that its samples are timed with.
    fn clock(&self) -> AnyClock {
        AnyClock::Host(HostClock::start())
    }

    /// How many input sets there are.
    fn input_sets(&self) -> usize;

    /// Makes the input set with this index the one that [`Backend::iterate`] uses.
    fn select(&mut self, input_set: usize);

    /// Says which phase of the run begins; outside the timed region.
    ///
    /// # Errors
    ///
    /// Of what a backend does before it, the runtime's own message.
    fn begin(&mut self, _phase: Phase) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs the selected input `times` times: the timed region. No allocation, log or lock of ours.
    ///
    /// # Errors
    ///
    /// The runtime's own message, classified.
    fn iterate(&mut self, times: u32) -> Result<(), Failure>;

    /// When the tokens of the last [`Backend::iterate`] came; `None` of all but greedy loops. Outside the timed region.
    fn token_times(&self) -> Option<TokenTimes> {
        None
    }

    /// How long the last [`Backend::iterate`] took on the device's own clock, in nanoseconds; `None` without one. Outside the
    /// timed region.
    ///
    /// # Errors
    ///
    /// What the device reports.
    fn device_ns(&mut self) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    /// What was reported with the counted samples so far, by the names and in the units of the specification's metrics, and
    /// metrics of the backend's own by stored name.
    ///
    /// # Errors
    ///
    /// A number that no run can have.
    fn reported(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        Ok(BTreeMap::new())
    }

    /// Overwrites the caches of the device, outside the timed region. Those of the processor are not the backend's.
    ///
    /// # Errors
    ///
    /// What the device reports.
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Puts these values, one array for each input with its type and shape, instead of the first input set.
    ///
    /// # Errors
    ///
    /// Arrays that are not what the inputs are.
    fn feed(&mut self, inputs: &[Array]) -> Result<(), Failure>;

    /// The outputs for the selected input, copied out.
    ///
    /// # Errors
    ///
    /// Outputs that are no tensors, and what the runtime reports.
    fn outputs(&mut self) -> Result<Vec<Array>, Failure>;

    /// What executes the model and where each node went.
    fn placement(&self) -> Placement;

    /// Runs the selected input so many times with the runtime's own profiler, which slows it, and says where the time went;
    /// `None` where there is no profiler.
    ///
    /// # Errors
    ///
    /// The runtime's own message, or a profile that cannot be read.
    fn profile(&mut self, _iterations: u32) -> Result<Option<TimeShares>, Failure> {
        Ok(None)
    }

    /// Ends the profiler that the model was loaded with, and says where the time of the last `inferences` went, node by node;
    /// the profiler's own file is kept as this one, compressed.
    ///
    /// # Errors
    ///
    /// A backend without a profiler, and a trace that cannot be read.
    fn trace(&mut self, _inferences: usize, _keep: Option<&Path>) -> Result<Trace, Failure> {
        Err(Failure::new(FailureKind::Internal, "this backend has no profiler"))
    }

    /// Hands the selected input over so many times and waits for the last; `false` where every call waits by itself, and
    /// nothing was run.
    ///
    /// # Errors
    ///
    /// The runtime's own message, classified.
    fn pipeline(&mut self, _times: u32) -> Result<bool, Failure> {
        Ok(false)
    }

    /// What events on the device's stream cost, and copies of the inputs and outputs of one inference, medians of so many;
    /// `None` where perfrun has no stream of the device.
    ///
    /// # Errors
    ///
    /// What the device reports.
    fn stream_costs(&mut self, _iterations: u32) -> Result<Option<StreamCosts>, Failure> {
        Ok(None)
    }

    /// Something that runs the model at the same time as this does, bound to inputs of its own: with a session of its own too, or
    /// with this one's.
    ///
    /// # Errors
    ///
    /// A backend that runs one call at a time, and what loading reports.
    fn another(&self, _shares_session: bool) -> Result<Caller, Failure> {
        Err(Failure::new(
            FailureKind::Provider,
            "this runs one inference at a time; leave `sessions` and `clients` at 1",
        ))
    }

    /// Whether samples do not follow each other at once, since something of its own comes before each.
    fn pauses(&self) -> bool {
        false
    }

    /// Share of the processors that other processes used, where a script says it; `None` where the parent measures it.
    fn background_load(&self) -> Option<f64> {
        None
    }

    /// Memory and processor time of this process so far.
    fn usage(&self) -> Usage {
        base::machine::probe::usage()
    }
}

/// Serves queries; the methods are those of [`Backend`].
pub trait Serve {
    fn select(&mut self, _input_set: usize) {}

    fn iterate(&mut self, times: u32) -> Result<(), Failure>;

    fn token_times(&self) -> Option<TokenTimes> {
        None
    }
}

impl<F: FnMut(u32) -> Result<(), Failure>> Serve for F {
    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        self(times)
    }
}

/// One that a thread of its own may have.
pub(crate) type Caller = Box<dyn Serve + Send>;

/// When the tokens of a greedy loop came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTimes {
    /// The first, since the beginning.
    pub first_ns: u64,
    /// The 99th percentile of the gaps; 0 of one token.
    pub gap_ns: u64,
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The model is loaded and run once.
    Load,
    /// It is run until it is steady.
    Warm,
    /// Counted samples are taken.
    Measure,
}

/// Where the time of an inference went, as parts of its duration, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeShares {
    /// In nodes on the CPU.
    pub cpu: f64,
    /// In copies between host and device that the runtime put between nodes; waiting for the device is in them.
    pub copies: f64,
}

/// What is done on a stream besides inferences, medians in nanoseconds on the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCosts {
    /// Between two events with nothing between them.
    pub events_ns: u64,
    /// By the host's clock: waiting for the whole device, right after an inference was waited for.
    pub unfinished_ns: u64,
    /// All inputs, from pinned host memory.
    pub to_device_ns: u64,
    /// All outputs, to pinned host memory; `None` where nobody knows beforehand how many bytes they have.
    pub to_host_ns: Option<u64>,
}

/// What the backend says about itself after loading.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Placement {
    /// Version of the runtime, as it reports it.
    pub runtime_version: Option<String>,
    /// Build description of the runtime.
    pub build: Option<String>,
    /// Nodes by execution provider after graph optimisation, as read back from the runtime.
    pub nodes: BTreeMap<String, u64>,
    /// Nodes by operator that run on the CPU in a cell of another device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fallback: BTreeMap<String, u64>,
    /// Bytes of all input sets together.
    pub input_pool_bytes: u64,
    /// The runtime allocates outputs inside the timed region, because their shapes were not known beforehand.
    pub dynamic_outputs: bool,
}
