//! What the parent asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backend::CellRequest;
use crate::batches::Data;
use crate::measure::load::Queries;
use base::quantity::Nanos;
use experiment::{Calibration, Stop, Warmup};

/// What the parent asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Who speaks.
    Hello {
        /// The newest version of the protocol that perfrun speaks.
        protocol: u32,
        /// The oldest one.
        oldest: u32,
    },
    /// Load a cell and run it once.
    Prepare {
        /// The cell.
        cell: Box<CellRequest>,
    },
    /// Run until steady.
    Warm {
        /// The rule.
        rule: Warmup,
        /// At least this long, in nanoseconds.
        at_least: Nanos,
        /// Iterations of each sample.
        iterations: u32,
    },
    /// Take the counted samples.
    Measure {
        /// The rule.
        rule: Stop,
        /// Iterations of each sample.
        iterations: u32,
    },
    /// Serve queries as a load brings them. A sample begins when its query is due and ends when it is answered; they may
    /// overlap, and `service_ns` and `late_ns` belong to them. Ends as `measure` does.
    Load {
        /// How they come.
        queries: Queries,
        /// Inferences of each query, one after the other.
        inferences: u32,
    },
    /// Take counted samples for a while; asked again and again while others take turns. Ends with `done`.
    Slice {
        /// Until this much time has passed, in nanoseconds, but at least one sample.
        time: Nanos,
        /// Never more samples.
        samples: u32,
        /// Iterations of each sample.
        iterations: u32,
        /// These warm up, and are in no metric of a greedy loop.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warms: bool,
    },
    /// Report what all slices together used, and hash the outputs for the first input set again.
    Check,
    /// Measure, after the samples, what is in no statistic of theirs, and report it.
    Afterwards(Afterwards),
    /// Take counted samples of one inference each, for a profile. A cell that is loaded with the profiler ends it then and
    /// reports each node's time.
    Profile {
        /// When there are enough.
        rule: Stop,
        /// The file for the profiler's own trace, compressed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// Write the outputs for each input set as `<set>-<output>.npy`, as many sets as 64 MiB hold, and `<set>.json` with
    /// their names, types, shapes and keys.
    Outputs {
        /// The folder, which exists.
        path: String,
    },
    /// Run every input set, or real data, and report the range of each float output.
    ActivationRanges {
        /// How observed values become a range.
        calibration: Calibration,
        /// What to run instead of the input sets.
        #[serde(default)]
        data: Option<Data>,
    },
    /// Run every item of a dataset and write the outputs as `outputs` does.
    Evaluate {
        /// The items.
        data: Data,
        /// Outputs with one entry for each item are stacked until a file has so many; 1: a file for each call.
        items_in_file: u64,
        /// The folder, which exists.
        path: String,
    },
    /// End.
    Finish,
}

/// What is measured after the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Afterwards {
    /// So many inferences with the runtime's profiler, and as many copies, to measure where the time of one goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<u32>,
    /// How many inferences are handed over before the last one is waited for, to measure the throughput of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
}

impl Afterwards {
    /// The command; `None` where there is nothing to do.
    pub fn command(self) -> Option<Command> {
        (self != Afterwards::default()).then_some(Command::Afterwards(self))
    }
}

/// A command by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandName {
    /// `hello`
    Hello,
    /// `prepare`
    Prepare,
    /// `warm`
    Warm,
    /// `measure`
    Measure,
    /// `load`
    Load,
    /// `slice`
    Slice,
    /// `check`
    Check,
    /// `afterwards`
    Afterwards,
    /// `profile`
    Profile,
    /// `outputs`
    Outputs,
    /// `activation_ranges`
    ActivationRanges,
    /// `evaluate`
    Evaluate,
    /// `finish`
    Finish,
}

impl CommandName {
    /// What a worker may leave out, and therefore announces.
    pub(crate) const CAPABILITIES: [CommandName; 11] = [
        CommandName::Prepare,
        CommandName::Warm,
        CommandName::Measure,
        CommandName::Load,
        CommandName::Slice,
        CommandName::Check,
        CommandName::Afterwards,
        CommandName::Profile,
        CommandName::Outputs,
        CommandName::ActivationRanges,
        CommandName::Evaluate,
    ];

    /// Whether counted samples are taken meanwhile.
    pub(crate) fn takes_counted_samples(self) -> bool {
        matches!(self, CommandName::Measure | CommandName::Load | CommandName::Slice | CommandName::Profile)
    }

    /// Its word in the protocol.
    pub fn word(self) -> &'static str {
        match self {
            CommandName::Hello => "hello",
            CommandName::Prepare => "prepare",
            CommandName::Warm => "warm",
            CommandName::Measure => "measure",
            CommandName::Load => "load",
            CommandName::Slice => "slice",
            CommandName::Check => "check",
            CommandName::Afterwards => "afterwards",
            CommandName::Profile => "profile",
            CommandName::Outputs => "outputs",
            CommandName::ActivationRanges => "activation_ranges",
            CommandName::Evaluate => "evaluate",
            CommandName::Finish => "finish",
        }
    }
}

impl Command {
    pub fn name(&self) -> CommandName {
        match self {
            Command::Hello { .. } => CommandName::Hello,
            Command::Prepare { .. } => CommandName::Prepare,
            Command::Warm { .. } => CommandName::Warm,
            Command::Measure { .. } => CommandName::Measure,
            Command::Load { .. } => CommandName::Load,
            Command::Slice { .. } => CommandName::Slice,
            Command::Check => CommandName::Check,
            Command::Afterwards(_) => CommandName::Afterwards,
            Command::Profile { .. } => CommandName::Profile,
            Command::Outputs { .. } => CommandName::Outputs,
            Command::ActivationRanges { .. } => CommandName::ActivationRanges,
            Command::Evaluate { .. } => CommandName::Evaluate,
            Command::Finish => CommandName::Finish,
        }
    }
}
