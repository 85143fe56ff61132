//! What is known of results before anything is shown of them: cells by id, what differs, what is asked, names.

use std::collections::HashMap;

use serde_json::Value;

use base::metric::{CPU_TIME, ITEMS, MetricReference};
use base::wording::distinct;
use experiment::Axis;
use judge::results::{Cell, Comparison, Results};
use plan::CellId;

/// Results with an index.
pub(crate) struct Reader<'a> {
    pub results: &'a Results,
    by_id: HashMap<CellId, usize>,
    against: HashMap<CellId, &'a Comparison>,
    /// The axes on which cells that are to be run differ.
    differing: Vec<Axis>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(results: &'a Results) -> Self {
        let cells = results.cells.iter().enumerate().map(|(index, cell)| (cell.id, index));
        let run = || results.cells.iter().filter(|cell| cell.is_run());
        let differs = |axis: &Axis| {
            let mut names = run().map(|cell| &cell.names[*axis]);
            names.next().is_some_and(|first| names.any(|other| other != first))
        };
        Reader {
            results,
            by_id: cells.collect(),
            against: results.unasked().map(|row| (row.cell, row)).collect(),
            differing: Axis::ALL.into_iter().filter(differs).collect(),
        }
    }

    pub(crate) fn cell(&self, id: CellId) -> Option<&'a Cell> {
        self.by_id.get(&id).map(|index| &self.results.cells[*index])
    }

    /// Its readable path, of a command its name; the id of a cell that is not there.
    pub(crate) fn path(&self, id: CellId) -> String {
        let name = |cell: &Cell| match self.results.method.runs_commands() {
            true => cell.names.on(&self.naming_axes()),
            false => cell.path(),
        };
        self.cell(id).map_or_else(|| id.to_string(), name)
    }

    /// A cell against its baseline, by what cells are compared by.
    pub(crate) fn against(&self, cell: &Cell) -> Option<&'a Comparison> {
        self.against.get(&cell.id).copied()
    }

    /// The cells that are to be run, those that are compared next to each other.
    pub(crate) fn shown(&self) -> Vec<&'a Cell> {
        let mut cells: Vec<&Cell> = self.results.cells.iter().filter(|cell| cell.is_run()).collect();
        // Groups stand in order of their first cell.
        let mut first: HashMap<u32, usize> = HashMap::new();
        for (index, cell) in self.results.cells.iter().enumerate() {
            first.entry(cell.group).or_insert(index);
        }
        cells.sort_by_key(|cell| first[&cell.group]);
        cells
    }

    /// Whether the cells that are to be run differ on an axis; else its names say nothing.
    pub(crate) fn has_several(&self, axis: Axis) -> bool {
        self.differing.contains(&axis)
    }

    /// What items are called by the second: tokens where every cell is a call of a decoder.
    pub(crate) fn items(&self) -> &'static str {
        let mut rows = self.inputs().peekable();
        if rows.peek().is_some() && rows.all(|row| row["decode"] == true) { "tokens/s" } else { ITEMS.title }
    }

    /// What is stored about the input of a cell.
    pub(crate) fn input(&self, cell: &Cell) -> Option<&'a Value> {
        self.inputs().find(|row| row["name"] == *cell.names.input())
    }

    fn inputs(&self) -> impl Iterator<Item = &'a Value> {
        self.results.provenance.frame.get("inputs").and_then(Value::as_array).into_iter().flatten()
    }

    /// Whether names show an axis.
    pub(crate) fn is_shown(&self, axis: Axis) -> bool {
        axis.is_always_told() || self.has_several(axis)
    }

    /// The axes whose names distinguish rows, what is compared last: model and input always, the rest where
    /// cells that run differ.
    pub(super) fn naming_axes(&self) -> Vec<Axis> {
        let of_commands = self.results.method.runs_commands();
        let is_always_shown = |axis: &Axis| if of_commands { axis.is_always_told() } else { axis.is_workload() };
        let says_something = |axis: &Axis| is_always_shown(axis) || self.has_several(*axis);
        let mut axes: Vec<Axis> = Axis::ALL.into_iter().filter(says_something).collect();
        axes.sort_by_key(|axis| self.results.compares(*axis));
        axes
    }

    /// The names that distinguish a cell from the rest that are run: `resnet50/b1/fp16`.
    pub(super) fn short_path(&self, id: CellId) -> String {
        let Some(cell) = self.cell(id) else { return id.to_string() };
        if self.differing.is_empty() { cell.path() } else { cell.names.on(&self.differing) }
    }

    /// A command against its baseline by CPU time.
    pub(super) fn by_cpu_time(&self, cell: CellId) -> Option<&'a Comparison> {
        self.results.compared_by(MetricReference::of(&CPU_TIME)).find(|row| row.cell == cell)
    }

    /// The same, where it decides what the time leaves open.
    pub(super) fn decided_by_cpu_time(&self, row: &Comparison) -> Option<&'a Comparison> {
        let is_open = row.metric == MetricReference::LATENCY && row.verdict.is_open();
        let found = is_open.then(|| self.by_cpu_time(row.cell)).flatten();
        found.filter(|by| by.is_decided())
    }

    /// What is compared stands in items per second, of cells with different batches.
    pub(super) fn is_by_items(&self) -> bool {
        self.against.values().any(|row| row.metric == MetricReference::of(&ITEMS))
    }

    /// Whether batches of cells differ whose items per second no load sets.
    fn has_batches(&self) -> bool {
        let is_served = |cell: &&Cell| cell.load.is_none() && cell.estimate(&ITEMS).is_some();
        let mut batches = self.results.cells.iter().filter(is_served).map(|cell| cell.batch);
        batches.next().is_some_and(|first| batches.any(|other| other != first))
    }

    /// `against b1`; `against b1, per item` where batches differ: of equal batches that is the ratio of their latencies.
    pub(super) fn against_title(&self) -> Option<String> {
        let per_item = if self.is_by_items() { ", per item" } else { "" };
        self.results.rules.baseline.as_ref().map(|baseline| format!("against {baseline}{per_item}"))
    }

    /// What tables show first: what the question names and latency, then what goals bound; without a question latency comes
    /// first, or items per second where batches differ. A speed-up is no column of its own.
    pub(super) fn asked(&self) -> Vec<MetricReference> {
        let results = self.results;
        let question = results.choice.iter().filter(|choice| !choice.unasked).flat_map(|choice| {
            let bounds = choice.bounds.iter().map(|bound| bound.metric);
            std::iter::once(choice.best).chain(choice.then.iter().copied()).chain(bounds)
        });
        let by_items = (self.is_by_items() || self.has_batches()).then_some(MetricReference::of(&ITEMS));
        let about = |cell: &Cell| cell.load.as_ref()?.queries.about(cell.estimate(&ITEMS).is_some());
        let of_load = results.cells.iter().filter_map(about);
        let goals = results.goals.iter().map(|goal| goal.check.metric);
        let metrics = question.chain(by_items).chain(of_load).chain([MetricReference::LATENCY]).chain(goals);
        distinct(metrics.filter(|metric| !metric.is_speedup()))
    }

    /// What cells that could stand in for each other have in common: `resnet50, b1`; what all cells share is left out.
    pub(crate) fn shared_names<'c>(&self, cells: impl Iterator<Item = &'c Cell> + Clone) -> String {
        let shared = |axis: &Axis| {
            let mut names = cells.clone().map(|cell| &cell.names[*axis]);
            let first = names.next()?;
            (self.is_shown(*axis) && names.all(|name| name == first)).then_some(first.as_str())
        };
        Axis::ALL.iter().filter_map(shared).collect::<Vec<_>>().join(", ")
    }
}

/// What the cells of a set are called among each other: their names on the axes on which they differ, `int8/cpu`; their
/// variant where they do not.
pub(crate) fn name_among(cells: &[&Cell], cell: &Cell) -> String {
    let differ = |axis: &Axis| cells.iter().any(|other| other.names[*axis] != cells[0].names[*axis]);
    let axes: Vec<Axis> = Axis::ALL.into_iter().filter(differ).collect();
    if axes.is_empty() { cell.names.variant().to_owned() } else { cell.names.on(&axes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A comparison by a metric with this verdict.
    fn row(metric: &str, verdict: &str) -> Comparison {
        let reason = if verdict == "undecided" { "not_enough_data" } else { "beyond_margin" };
        serde_json::from_value(json!({
            "cell": "0000000000000001", "baseline": "0000000000000000", "metric": metric, "ratio": 1.1, "low": 0.9, "high": 1.3,
            "confidence": 0.99, "blocks": 8, "margin": 0.02, "verdict": verdict, "reason": reason,
        }))
        .expect("a comparison")
    }

    #[test]
    fn cpu_time_speaks_where_it_decides_what_time_leaves_open() {
        let by = |time: &str, cpu_time: &str| {
            let mut results = Results::empty();
            results.comparisons = vec![row("latency", time), row("cpu_time", cpu_time)];
            let reader = Reader::new(&results);
            reader.decided_by_cpu_time(&results.comparisons[0]).map(|row| row.verdict.name())
        };
        assert_eq!(by("undecided", "better"), Some("better"));
        assert_eq!(by("undecided", "equivalent"), Some("equivalent"));
        assert_eq!(by("undecided", "undecided"), None);
        assert_eq!(by("worse", "better"), None, "the time is decided");
    }
}
