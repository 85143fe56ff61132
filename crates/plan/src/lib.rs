//! Experiment -> Plan: the matrix, its groups and its order, as plain values.
//!
//! [`expand()`] is pure: no file, no clock, the seed is in the experiment, so the same specification gives the same plan
//! on every host. What a host or a model file rules out is added afterwards by [`annotate`], which only marks cells as
//! skipped: their position in the order stays.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod cell;
mod compared;
mod control;
mod error;
mod estimate;
mod expand;
mod facts;
mod id;
mod load;
mod order;
mod pairs;
mod questions;
mod run_time;
mod shards;
mod sides;
mod stream;

pub use cell::Cell;
pub use control::place_controls;
pub use error::PlanError;
pub use estimate::estimate_before_measuring;
pub use expand::expand;
pub use facts::{Facts, Shapes, annotate};
pub use id::{CellId, definition};
pub use load::{MOST_OF_SEARCH, RunAtRate, closed_loop};
pub use order::{PlannedRun, block_order, block_orders, group_order};
pub use run_time::{CellForecast, Source, TimeRange, most_time_of_run, time_of_seen_run};
pub use shards::{TooManyShards, most_shards, shards_of_groups, typical_runs};
pub use sides::{BothSides, PlannedSide, both_sides};
pub use stream::RandomStream;

use serde::{Deserialize, Serialize};

use base::metric::MetricReference;
use experiment::{
    Axis, Combine, CompiledSelector, Coordinates, Entries, Experiment, InputPoint, OnAxis, Selector, Space,
};

/// The matrix of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What stands on the axes.
    #[serde(flatten)]
    pub axes: Entries,
    /// Every cell, in plan order: the last axis fastest.
    pub cells: Vec<Cell>,
    /// The cells that are compared with each other, in order of their first cell.
    pub groups: Vec<Group>,
    /// What the cells of a group are compared with.
    pub baseline: Option<Baseline>,
    /// Why cells are skipped; [`Cell::skip`] points here.
    pub skips: Vec<Skip>,
    /// The product as it is printed: factors and what was excluded or included.
    pub product: Product,
    /// Fresh processes for each cell.
    pub runs: u32,
    /// In how many equal parts the runs are judged; more than one in a calibration only.
    #[serde(default = "one_round")]
    pub rounds: u32,
    /// Master seed.
    pub seed: u64,
    /// Cells that are measured twice, as if they were two things: the controls (method 8.2).
    #[serde(default)]
    pub controls: Vec<u32>,
}

fn one_round() -> u32 {
    1
}

/// Whether a selector matches no cell of a plan, which is said and no error.
pub fn is_idle(selector: &Selector, plan: &Plan) -> bool {
    let compiled = CompiledSelector::new(selector, &plan.axes);
    !plan.cells.iter().any(|cell| compiled.matches(&cell.at))
}

/// Cells compared with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Indices of the cells, in plan order.
    pub cells: Vec<u32>,
    /// Index of the cell that the group's cells are compared with; `None` where the group has none.
    pub baseline: Option<u32>,
    /// Of a record that was merged from several: which of them measured it.
    #[serde(default, skip_serializing_if = "is_first")]
    pub part: u32,
}

fn is_first(part: &u32) -> bool {
    *part == 0
}

/// The axes whose entries are compared, and the entry that is their baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The compared axes, in plan order; cells of one group differ on these alone.
    pub axes: Vec<Axis>,
    /// The baseline's names on them, joined by `/`: `fp32`, `fp32/cpu`.
    pub name: String,
    /// The specification does not name it.
    pub is_default: bool,
}

impl Baseline {
    /// The compared axes in words: `variant`, `variant and device`, `input, variant and device`.
    pub fn axes_words(&self) -> String {
        let words: Vec<&str> = self.axes.iter().map(|axis| axis.singular()).collect();
        match words.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => words.concat(),
        }
    }
}

/// What kind of reason there is not to run a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipKind {
    /// The device cannot be used here.
    Device,
    /// The model does not take the input.
    Shape,
    /// The user left it out of this record.
    Selection,
    /// A smaller batch ran out of memory.
    Memory,
    /// No rate keeps the bound.
    Rate,
    /// The budget leaves no room for enough runs of it.
    Budget,
    /// The model has nothing that the variant converts.
    Conversion,
    /// Its group is not complete, or a record of an earlier version does not say.
    #[default]
    Other,
}

/// Why a cell is not run, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// The kind of reason.
    #[serde(default)]
    pub kind: SkipKind,
    /// The reason, a fragment without final period.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// How the number of cells came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Length and name of each factor, `models+inputs` for axes that walk together.
    pub factors: Vec<(u64, String)>,
    /// Models have inputs of their own, so the factors do not multiply to the number of cells.
    pub uneven_inputs: bool,
    /// Of the product, what differs from the baseline in one factor alone.
    #[serde(default, skip_serializing_if = "Combine::is_product")]
    pub design: Combine,
    /// Cells of the product, or of what the design leaves of it.
    pub total: u64,
    /// Cells taken out by `matrix.exclude`.
    pub excluded: u64,
    /// Cells added by `matrix.include`.
    pub included: u64,
    /// Selectors that matched nothing, as written.
    pub idle_selectors: Vec<String>,
    /// The cells are given one by one, in pairs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_pairs: bool,
}

impl Plan {
    /// The names on an axis; none where the specification leaves it out.
    pub fn names(&self, axis: Axis) -> &[String] {
        self.axes.names(axis)
    }

    /// The names of such entries.
    pub fn names_of<T: OnAxis>(&self) -> &[String] {
        self.names(T::AXIS)
    }

    /// The name of an entry.
    pub fn name<I: OnAxis + Into<usize>>(&self, index: I) -> Option<&str> {
        self.names_of::<I>().get(index.into()).map(String::as_str)
    }

    /// Every input point that some model is fed; the experiment's own first, then each model's.
    pub fn inputs(&self) -> &[InputPoint] {
        self.axes.inputs()
    }

    /// What a cell's model is fed.
    pub fn input_of(&self, cell: &Cell) -> &InputPoint {
        &self.axes.inputs()[cell.input()]
    }

    /// Whether a cell may have this number: one of its load, if it has one, and one of greedy loops if it is one.
    pub fn reports(&self, cell: usize, metric: MetricReference) -> bool {
        let input = self.input_of(&self.cells[cell]);
        let emitted = input.call().map_or(0, |call| call.generated);
        input.load.is_none_or(|load| load.reports(metric.metric))
            && metric.metric.least_tokens().is_none_or(|least| emitted >= least)
    }

    /// Names of a cell's coordinates.
    pub fn coordinates(&self, cell: &Cell) -> Coordinates<'_> {
        self.axes.coordinates(&cell.at)
    }

    /// The readable path of a cell: `mlp/b1/fp32/cpu`, and `mlp/b1/fp32/cpu/1.31.1` where there are runtimes.
    pub fn path(&self, cell: &Cell) -> String {
        self.coordinates(cell).path()
    }

    /// What people read: the path, and of a command its name, with that of an axis on which there are several.
    pub fn shown(&self, cell: &Cell, is_command: bool) -> String {
        let is_shown = |axis: &Axis| axis.is_always_told() || self.names(*axis).len() > 1;
        match is_command {
            true => self.coordinates(cell).on(&Axis::ALL.into_iter().filter(is_shown).collect::<Vec<_>>()),
            false => self.path(cell),
        }
    }

    /// The reason for which a cell is skipped.
    pub fn skip(&self, cell: &Cell) -> Option<&Skip> {
        cell.skip.map(|index| &self.skips[index as usize])
    }

    /// The cells that are to be run, with their indices.
    pub fn runnable(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| cell.skip.is_none())
    }

    /// Index of the cell that this one is compared with; its own if it is the baseline.
    pub fn baseline_of(&self, cell: &Cell) -> Option<usize> {
        self.groups.get(cell.group as usize)?.baseline.map(|index| index as usize)
    }

    /// Whether this cell is its group's baseline.
    pub fn is_baseline(&self, cell: &Cell) -> bool {
        self.baseline_of(cell).is_some_and(|index| self.cells[index].id == cell.id)
    }

    /// Whether a control holds for a cell: for those of its group, and where it is the only one of its record, for the
    /// whole record.
    pub fn speaks_for(&self, control: usize, cell: usize) -> bool {
        let group = |cell: usize| self.groups.get(self.cells.get(cell)?.group as usize).map(|it| (it, it.part));
        let (Some((control_group, control_part)), Some((cell_group, cell_part))) = (group(control), group(cell)) else {
            return false;
        };
        let of_part = |cell: &&u32| group(**cell as usize).is_some_and(|(_, part)| part == control_part);
        std::ptr::eq(control_group, cell_group)
            || (control_part == cell_part && self.controls.iter().filter(of_part).count() == 1)
    }

    /// Each cell that is compared, with its baseline before it: indices, in plan order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let compared = self.cells.iter().enumerate().filter(|(_, cell)| !self.is_baseline(cell));
        compared.filter_map(|(index, cell)| Some((self.baseline_of(cell)?, index)))
    }

    /// Whether the cells of a group differ in such entries.
    pub fn compares<T: OnAxis>(&self) -> bool {
        self.baseline.as_ref().is_some_and(|baseline| baseline.axes.contains(&T::AXIS))
    }

    /// The cell's names on the compared axes, as in [`Baseline::name`]; its variant where nothing is compared.
    pub fn entry(&self, cell: &Cell) -> String {
        let coordinates = self.coordinates(cell);
        match &self.baseline {
            Some(baseline) => coordinates.on(&baseline.axes),
            None => coordinates.variant().to_owned(),
        }
    }

    /// Every entry on the compared axes that a cell has, the baseline first, then in plan order.
    pub fn entries(&self) -> Vec<String> {
        let mut entries: Vec<String> = self.baseline.iter().map(|baseline| baseline.name.clone()).collect();
        let mut known: std::collections::HashSet<String> = entries.iter().cloned().collect();
        for cell in &self.cells {
            let entry = self.entry(cell);
            if known.insert(entry.clone()) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Whether every index leads somewhere, and the axes are those of the experiment: a stored plan may come from
    /// anywhere.
    pub fn fits(&self, experiment: &Experiment) -> bool {
        let within = |index: u32, length: usize| (index as usize) < length;
        let cells_fit = self.cells.iter().all(|cell| {
            self.axes.have(&cell.at)
                && within(cell.group, self.groups.len())
                && cell.skip.is_none_or(|skip| within(skip, self.skips.len()))
        });
        let of_cells =
            |group: &Group| group.cells.iter().chain(&group.baseline).all(|cell| within(*cell, self.cells.len()));
        let controls_fit = self.controls.iter().all(|cell| within(*cell, self.cells.len()));
        let groups_fit = self.groups.iter().all(|group| !group.cells.is_empty() && of_cells(group));
        let space = Space::of(experiment);
        let is_same = |axis: Axis| self.names(axis).len() == space.entries.names(axis).len();
        cells_fit && groups_fit && controls_fit && Axis::ALL.into_iter().all(is_same)
    }

    /// Marks a cell as skipped; equal reasons are stored once.
    pub fn mark_skipped(&mut self, cell: usize, skip: Skip) {
        let index = self.skips.iter().position(|known| *known == skip).unwrap_or_else(|| {
            self.skips.push(skip);
            self.skips.len() - 1
        });
        self.cells[cell].skip = Some(index as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_plan_reads_back_and_writes_the_same_text() {
        let stored = [
            include_str!("../../../tests/fixtures/plans/runtimes.json"),
            include_str!("../../../tests/fixtures/plans/zip.json"),
        ];
        for text in stored {
            let plan: Plan = serde_json::from_str(text).expect("a plan");
            assert_eq!(serde_json::to_string_pretty(&plan).expect("plain JSON") + "\n", text);
        }
    }

    #[test]
    fn records_without_runtimes_know_none() {
        let text = include_str!("../../../tests/fixtures/plans/zip.json").replace("\"runtime\": 0,", "");
        let plan: Plan = serde_json::from_str(&text).expect("a plan");
        assert!(plan.names(Axis::Runtimes).is_empty());
        assert_eq!(plan.path(&plan.cells[0]), "m/b1/a/cpu");
        assert!(serde_json::from_str::<Plan>(&text.replace("\"variants\"", "\"others\"")).is_err());
    }

    #[test]
    fn an_index_that_leads_nowhere_is_seen() {
        let spec = "backend: mock\nmodels: [m, n]";
        let loaded = spec::parse("x.yaml", spec, std::path::Path::new("."), &[]).expect("a valid spec");
        let plan = expand(&loaded.experiment).expect("a plan");
        assert!(plan.fits(&loaded.experiment));
        for axis in Axis::ALL {
            let mut other = plan.clone();
            other.cells[0].at[axis] = 9;
            assert!(!other.fits(&loaded.experiment), "{axis:?}");
        }
        let beyond = plan.cells.len() as u32;
        let mut other = plan.clone();
        other.groups[0].baseline = Some(beyond);
        assert!(!other.fits(&loaded.experiment));
        let controls = vec![beyond];
        assert!(!Plan { controls, ..plan }.fits(&loaded.experiment));
    }
}
