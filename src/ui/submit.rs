//! The shards of a submitted job on the terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish};

use super::{LABEL_WIDTH, Ui, duration, table};
use crate::ui::cli::Shard;
use base::printable::printable;
use base::quantity::Nanos;
use report::format::count;
use report::page::{Table, TableCell, TableColumn, TableRow};

/// A shard of a job.
#[derive(Clone, Debug)]
pub struct ShardRow {
    pub shard: Shard,
    /// Cells that are run.
    pub cells: usize,
    /// How long that should take.
    pub expected: Option<Nanos>,
    pub state: State,
}

/// How far a shard is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its record is complete.
    Measured {
        machine: Option<String>,
    },
    Running {
        node: String,
        done: u64,
        total: u64,
        said: Option<String>,
    },
    Waiting {
        why: String,
    },
    /// Its task is over, and there is no complete record.
    Ended {
        why: String,
    },
    /// Nobody knows its task.
    Unknown {
        why: String,
    },
}

impl State {
    fn name(&self) -> &'static str {
        match self {
            State::Measured { .. } => "measured",
            State::Running { .. } => "running",
            State::Waiting { .. } => "waiting",
            State::Ended { .. } | State::Unknown { .. } => "missing",
        }
    }

    fn words(&self) -> String {
        match self {
            State::Measured { machine } => machine.clone().unwrap_or_default(),
            State::Waiting { why } | State::Ended { why } | State::Unknown { why } => why.clone(),
            State::Running { node, total: 0, said: None, .. } => format!("on {node}"),
            State::Running { node, said: Some(said), .. } => format!("on {node}: {said}"),
            State::Running { node, done, total, .. } => format!("on {node}, {done} of at most {total} runs"),
        }
    }
}

pub fn describe(rows: &[ShardRow], width: usize) -> String {
    let mut columns = vec![TableColumn::text("shard"), TableColumn::number("cells")];
    let is_timed = rows.iter().any(|row| row.expected.is_some());
    columns.extend(is_timed.then(|| TableColumn::text("planned").optional()));
    columns.extend(["state", ""].map(TableColumn::text));
    let row = |row: &ShardRow| {
        let mut texts = vec![row.shard.to_string(), row.cells.to_string()];
        texts.extend(is_timed.then(|| row.expected.map_or_else(String::new, |time| duration(time.to_duration()))));
        texts.extend([row.state.name().to_owned(), row.state.words()]);
        texts.into_iter().map(TableCell::from).collect::<TableRow>()
    };
    let overview = Table::of(columns, rows.iter().map(row));
    format!("{}\n", table::render(&overview, width))
}

/// `5 of 8 shards measured, 2 running, 1 waiting, 1 missing`.
pub fn summary(rows: &[ShardRow]) -> String {
    let count_of = |name: &str| rows.iter().filter(|row| row.state.name() == name).count();
    let mut text = format!("{} of {} measured", count_of("measured"), count(rows.len() as u64, "shard"));
    for name in ["running", "waiting", "missing"] {
        if count_of(name) > 0 {
            text.push_str(&format!(", {} {name}", count_of(name)));
        }
    }
    text
}

/// A bar over all shards; without a terminal, a line whenever the summary changes.
#[derive(Debug)]
pub struct WaitBar {
    ui: Ui,
    bar: Option<ProgressBar>,
    shown: String,
}

/// Steps of a shard on the bar.
const STEPS: u64 = 1000;

impl WaitBar {
    /// For so many shards.
    pub fn new(ui: Ui, shards: usize) -> Self {
        let bar = ui.is_terminal().then(|| {
            let template = format!("{:<LABEL_WIDTH$}{{msg}}   {{elapsed}} {{bar:10}}", "waiting");
            let target = ProgressDrawTarget::stderr_with_hz(1);
            super::bar(Some(STEPS * shards as u64), target, &template).with_finish(ProgressFinish::AndClear)
        });
        WaitBar { ui, bar, shown: String::new() }
    }

    /// Shows how far the job is.
    pub fn show(&mut self, rows: &[ShardRow]) {
        let summary = summary(rows);
        let step = |row: &ShardRow| match row.state {
            State::Measured { .. } => STEPS,
            State::Running { done, total, .. } => STEPS * done.min(total) / total.max(1),
            State::Waiting { .. } | State::Ended { .. } | State::Unknown { .. } => 0,
        };
        match &self.bar {
            Some(bar) => {
                bar.set_position(rows.iter().map(step).sum());
                bar.set_message(printable(&summary).into_owned());
            }
            None if self.shown != summary => {
                self.ui.labelled("waiting", &summary);
                self.shown = summary;
            }
            None => {}
        }
    }
}
