//! What the runner says while it works. The terminal listens; the record is written by the runner itself.

use std::time::Duration;

use experiment::{Grade, Precision};
use plan::Plan;
use record::{BudgetUsed, CellRate, Manifest, StoredRun, Trial, Tried};

/// Something happened. Borrowed data belongs to the runner.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The record exists; nothing has run yet.
    Started {
        /// What is going to run.
        manifest: &'a Manifest,
        /// Runs that an earlier invocation finished.
        already_done: usize,
    },
    /// What is done before the first block or after the last begins: a pass.
    PassBegan {
        /// Its name.
        pass: &'static str,
    },
    /// A model is being converted.
    Converting {
        /// Its name.
        model: &'a str,
        precision: Precision,
    },
    /// A model is there in another precision.
    Converted {
        /// Its name.
        model: &'a str,
        precision: Precision,
        /// It was in the cache.
        was_cached: bool,
        /// What was in the cache was damaged.
        was_damaged: bool,
        /// How long it took.
        took: Duration,
    },
    /// What comes once before commands begins.
    SettingUp {
        /// The shell command.
        text: &'a str,
    },
    /// A batch of a cell was tried, in the search for the best one.
    BatchTried {
        /// Path of the cell.
        cell: &'a str,
        /// What became of it.
        tried: &'a Tried,
    },
    /// Every batch that is searched for was found.
    Searched {
        /// What was found.
        manifest: &'a Manifest,
    },
    /// The rate near which the runs of a cell are was found.
    RateFound {
        /// Path of the cell.
        cell: &'a str,
        /// What was found.
        rate: &'a CellRate,
    },
    /// The rehearsal has run one cell.
    Rehearsed {
        /// How many of how many.
        done: usize,
        /// Cells to rehearse.
        total: usize,
        run: &'a StoredRun,
    },
    /// A variant is going to be run over the data of its model, or a stored model for its outputs; the last one marks
    /// the end.
    Scoring {
        /// For `accuracy` or `outputs`.
        what: &'static str,
        /// How many were, of how many.
        done: usize,
        /// Variants with data, or cells that are compared.
        total: usize,
    },
    /// Every variant was run over the data of its model.
    Scored {
        /// What was found.
        manifest: &'a Manifest,
        /// How long it took.
        took: Duration,
    },
    /// The rehearsal is over.
    RehearsalEnded {
        plan: &'a Plan,
        rehearsals: &'a [StoredRun],
        /// How long it took.
        took: Duration,
    },
    /// A short control begins, by which the specification's requirement is checked.
    CheckingGrade {
        required: Grade,
        /// Runs of the control.
        runs: u32,
    },
    /// A block of a trial of several devices together begins.
    TryingTogether {
        /// How many blocks have ended, and the most that there may be.
        done: u32,
        most: u32,
        /// Cells that are tried.
        cells: usize,
    },
    /// Devices were tried together.
    TriedTogether {
        /// Of which record.
        manifest: &'a Manifest,
        trial: &'a Trial,
    },
    /// What is going to be measured is known.
    Planned {
        /// What is going to run.
        manifest: &'a Manifest,
        /// Cells that can be run.
        cells: usize,
        /// How long the blocks will take, from what the rehearsal showed.
        estimate: Option<Duration>,
        /// How long where runs go by need and no group is decided early.
        longest: Option<Duration>,
        /// What the budget leaves of them.
        budget: Option<BudgetUsed>,
        /// Runs of the blocks, or about how many where they go by need.
        total: usize,
    },
    /// A run of a block has its outcome.
    RunEnded {
        /// Runs with an outcome so far.
        done: usize,
        /// Runs in all, or about how many.
        total: usize,
    },
    /// A cell is going to be profiled once more.
    Profiling {
        /// How many times cells were, of how many.
        done: usize,
        /// Cells times processes.
        total: usize,
    },
    /// Every run of a block has its outcome.
    BlockEnded {
        /// What was planned.
        manifest: &'a Manifest,
        /// Every run so far.
        runs: &'a [StoredRun],
        /// Blocks that have ended.
        done: u32,
        /// Blocks in all, or about how many where they go by need.
        blocks: u32,
        /// Groups in which something is run and that need more, by their indices.
        going_on: &'a [usize],
        /// Groups in which anything is run.
        groups: usize,
    },
    /// About a second passed.
    Tick,
    /// The first interrupt came; the run in flight is finished.
    Interrupted,
}
