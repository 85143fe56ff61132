//! Two experiments, the sides of a diff, as one: the cells that both have and that changed, in pairs, so that they can be
//! measured in the same blocks.
//!
//! Entries that differ stand on their axis twice, under their name with `@a` and `@b`. Deliberately absent: which files
//! are the same, which the caller knows.

use std::collections::HashMap;

use super::{Cell, CellId, Plan};
use experiment::{
    Aa, Axis, AxisMap, CellPair, Compare, Design, Entry, Experiment, Gate, InputPoint, Matrix, Measure, Model,
    Selector, Variant,
};

/// One side: what it asks for, and its own plan.
#[derive(Clone, Copy, Debug)]
pub struct PlannedSide<'a> {
    /// What it asks for.
    pub experiment: &'a Experiment,
    /// Its cells.
    pub plan: &'a Plan,
}

#[derive(Clone, Debug)]
pub struct BothSides {
    /// What is to be measured; nothing where nothing changed.
    pub experiment: Option<Experiment>,
    /// The cells of its pairs: the id that both sides know a cell by, and its names here on each side.
    pub pairs: Vec<(CellId, CellPair)>,
    /// Cells with the same bytes and settings on both sides, by their ids.
    pub unchanged: Vec<CellId>,
    /// Cells that are not fed the same on both sides, by their ids.
    pub fed_otherwise: Vec<CellId>,
}

/// Joins two sides. `is_same_file` says whether a model has the same bytes on both.
pub fn both_sides(
    baseline: PlannedSide<'_>,
    candidate: PlannedSide<'_>,
    is_same_file: &dyn Fn(&Model, &Model) -> bool,
) -> BothSides {
    let join = Join::new(baseline, candidate, is_same_file);
    let known: HashMap<CellId, &Cell> = baseline.plan.cells.iter().map(|cell| (cell.id, cell)).collect();
    let (mut pairs, mut unchanged, mut fed_otherwise) = (Vec::new(), Vec::new(), Vec::new());
    for to in &candidate.plan.cells {
        let Some(from) = known.get(&to.id) else { continue };
        if baseline.plan.input_of(from).without_paths() != candidate.plan.input_of(to).without_paths() {
            fed_otherwise.push(to.id);
            continue;
        }
        match join.pair(from, to) {
            Some(pair) => pairs.push((to.id, pair)),
            None => unchanged.push((to.id, join.alone(to))),
        }
    }
    // One unchanged cell is measured all the same: the control.
    let control = unchanged.first().filter(|_| !pairs.is_empty());
    let mut experiment_pairs: Vec<CellPair> = pairs.iter().map(|(_, pair)| pair.clone()).collect();
    experiment_pairs.extend(control.map(|(_, cell)| cell.clone()));
    BothSides {
        experiment: (!pairs.is_empty()).then(|| join.experiment(experiment_pairs)),
        pairs,
        unchanged: unchanged.iter().map(|(id, _)| *id).collect(),
        fed_otherwise,
    }
}

/// What a selector of the newer side selects here.
fn newer_side(selector: &Selector) -> Selector {
    let names = |patterns: &Vec<String>| patterns.iter().flat_map(|name| [name.clone(), format!("{name}@b")]).collect();
    Selector(selector.0.iter().map(|(key, patterns)| (key.clone(), names(patterns))).collect())
}

/// Which entries of both sides are the same.
struct Join<'a> {
    baseline: PlannedSide<'a>,
    candidate: PlannedSide<'a>,
    /// Names that mean different things on both sides, by axis.
    differ: AxisMap<Vec<String>>,
}

impl<'a> Join<'a> {
    fn new(
        baseline: PlannedSide<'a>,
        candidate: PlannedSide<'a>,
        is_same_file: &dyn Fn(&Model, &Model) -> bool,
    ) -> Self {
        let (from, to) = (baseline.experiment, candidate.experiment);
        let mut join = Join { baseline, candidate, differ: AxisMap::default() };
        join.find_differing(&from.models, &to.models, is_same_file);
        join.find_differing(&from.variants, &to.variants, &|a, b| a == b);
        join.find_differing(&from.runtimes, &to.runtimes, &|a, b| a == b);
        join
    }

    /// Finds the names that do not mean the same on both sides.
    fn find_differing<T: Entry>(&mut self, from: &[T], to: &[T], is_same: &dyn Fn(&T, &T) -> bool) {
        let other = |entry: &T| from.iter().find(|known| known.label() == entry.label());
        let differ = to.iter().filter(|entry| other(entry).is_some_and(|known| !is_same(known, entry)));
        self.differ[T::AXIS] = differ.map(Entry::label).collect();
    }

    /// The name of an entry here.
    fn name(&self, axis: Axis, name: &str, side: char) -> String {
        let differs = self.differ[axis].iter().any(|known| known == name);
        if differs { format!("{name}@{side}") } else { name.to_owned() }
    }

    fn name_of<T: Entry>(&self, entry: &T, side: char) -> String {
        self.name(T::AXIS, &entry.label(), side)
    }

    fn names(&self, plan: &Plan, cell: &Cell, side: char) -> AxisMap<String> {
        let coordinates = plan.coordinates(cell);
        AxisMap::of(|axis| self.name(axis, coordinates[axis], side))
    }

    /// A cell on both sides; `None` where it is made of the same entries. How it is measured is the newer side's for both.
    fn pair(&self, from: &Cell, to: &Cell) -> Option<CellPair> {
        let baseline = self.names(self.baseline.plan, from, 'a');
        let candidate = self.names(self.candidate.plan, to, 'b');
        (baseline != candidate).then_some(CellPair { baseline, candidate: Some(candidate) })
    }

    fn alone(&self, cell: &Cell) -> CellPair {
        CellPair { baseline: self.names(self.candidate.plan, cell, 'b'), candidate: None }
    }

    /// What is measured: the cells of the pairs, as the newer side says.
    fn experiment(&self, pairs: Vec<CellPair>) -> Experiment {
        let (from, to) = (self.baseline.experiment, self.candidate.experiment);
        let design = if to.measure.design == Design::Slices { Design::Slices } else { Design::Blocks };
        Experiment {
            models: self.merged(&self.models(from, 'a'), &self.models(to, 'b'), |model, name| model.name = name),
            variants: self.merged(&from.variants, &to.variants, |variant, name| variant.name = name),
            runtimes: self.merged(&from.runtimes, &to.runtimes, |runtime, name| runtime.name = name),
            inputs: Vec::new(),
            dataset: None,
            pairs,
            measure: Measure { design, ..to.measure.clone() },
            compare: Compare { baseline: None, margin: to.compare.margin, aa: Aa::Auto },
            choose: None,
            goals: Vec::new(),
            goals_strict: false,
            pareto: Vec::new(),
            tables: Vec::new(),
            matrix: Matrix::default(),
            gate: to.gate.iter().map(|gate| Gate { of: newer_side(&gate.of), ..gate.clone() }).collect(),
            ..to.clone()
        }
    }

    /// The models of a side with what the experiment says of all of them, and own files under the names of variants here.
    fn models(&self, experiment: &Experiment, side: char) -> Vec<Model> {
        let whole = |model: &Model| {
            let inputs: Vec<InputPoint> = model.inputs.clone().unwrap_or_else(|| experiment.inputs.clone());
            let dataset = model.dataset.clone().or_else(|| experiment.dataset.clone());
            let mut files = model.files.clone();
            let renamed_file =
                |variant: &Variant| Some((self.name_of(variant, side), files.get(&variant.name)?.clone()));
            let renamed: Vec<_> = experiment.variants.iter().filter_map(renamed_file).collect();
            files.extend(renamed);
            Model { inputs: Some(inputs), dataset, files, ..model.clone() }
        };
        experiment.models.iter().map(whole).collect()
    }

    /// The entries of both sides, those that differ twice.
    fn merged<T: Clone + Entry>(&self, from: &[T], to: &[T], rename: fn(&mut T, String)) -> Vec<T> {
        let named = |entry: &T, side: char| {
            let mut entry = entry.clone();
            let name = self.name_of(&entry, side);
            rename(&mut entry, name);
            entry
        };
        let mut all: Vec<T> = to.iter().map(|entry| named(entry, 'b')).collect();
        for entry in from.iter().map(|entry| named(entry, 'a')) {
            if !all.iter().any(|known| known.label() == entry.label()) {
                all.push(entry);
            }
        }
        all
    }
}
