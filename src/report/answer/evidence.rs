//! The evidence of a sentence before it has words: who is compared with whom, and what was found.

use std::collections::BTreeSet;

use statistics::paired::Verdict;

use crate::experiment::Axis;
use crate::judge::compare::{Comparison, Judged, Tie, Withheld};
use crate::judge::summary::{CellSummary, Summary};
use crate::plan::{Cell, Plan};
use crate::quality::accuracy::Score;
use crate::quality::fidelity::Fidelity;
use crate::report::absence::Absence;
use crate::report::format;
use crate::report::has_several;
use crate::vocabulary::metric::PEAK_RSS;

/// What one sentence is about: the groups of one model on one device.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    /// `resnet50`, `resnet50 on cuda:0`; empty where neither tells groups apart.
    pub label: String,
    /// What its groups differ in; `None` where there is only one.
    pub places: Option<Places>,
    /// Number of its groups.
    pub groups: usize,
    /// The candidates, in plan order.
    pub entries: Vec<Entry<'a>>,
    /// Where the baseline has no completed run, with the reason.
    pub baseline_missing: Vec<(String, Absence<'a>)>,
    /// What breaks ties of the whole record.
    ties: &'a [Tie],
}

/// How the groups of a subject are told apart in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// `at`, before `b1`; `with`, before `int8`.
    pub preposition: &'static str,
    /// `input`
    pub one: &'static str,
    /// `inputs`
    pub many: &'static str,
}

impl Places {
    /// Groups that differ in their input.
    pub(super) const INPUTS: Places = Places { preposition: "at", one: "input", many: "inputs" };
    /// Groups that differ in their input and in something else.
    pub(super) const ROWS: Places = Places { preposition: "at", one: "row of the table", many: "rows of the table" };
    const VARIANTS: Places = Places { preposition: "with", one: "variant", many: "variants" };

    /// Those of a plan's groups of one model on one device.
    fn of(plan: &Plan) -> Self {
        match (differs(plan, Axis::Inputs), differs(plan, Axis::Variants)) {
            (_, false) => Places::INPUTS,
            (false, true) => Places::VARIANTS,
            (true, true) => Places::ROWS,
        }
    }
}

/// Whether groups differ on this axis.
fn differs(plan: &Plan, axis: Axis) -> bool {
    has_several(plan, axis) && !plan.compares(axis)
}

/// Whether outputs that agree are those of an entry and its baseline: of several variants that are not compared, each has
/// its reference beside it, which says nothing about the entry.
pub(super) fn speaks_of_baseline(plan: &Plan) -> bool {
    plan.compares(Axis::Variants) || !has_several(plan, Axis::Variants)
}

/// `b1`, `int8`, `b1 with int8`: the place of a group within its subject.
fn place(plan: &Plan, cell: &Cell) -> String {
    let coordinates = plan.coordinates(cell);
    match (differs(plan, Axis::Inputs), differs(plan, Axis::Variants)) {
        (_, false) => coordinates.input().to_owned(),
        (false, true) => coordinates.variant().to_owned(),
        (true, true) => format!("{} with {}", coordinates.input(), coordinates.variant()),
    }
}

/// One candidate against the baseline, over the groups.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// Its name on the compared axis.
    pub name: String,
    /// Place and comparison, in plan order.
    pub judged: Vec<(String, &'a Comparison)>,
    /// As `judged`, without verdict: too few common runs, or what withholds it.
    pub unjudged: Vec<(String, &'a Comparison)>,
    /// Why runs of it failed, where it is not judged for that.
    pub failure: Option<&'static str>,
    /// Where it has no completed run, with the reason.
    pub missing: Vec<(String, Absence<'a>)>,
    /// Where its outputs are not the reference's, with the reason; it has no verdict on speed there.
    pub differs: Vec<(String, &'a Fidelity)>,
    /// How right it is on real data, and how that differs from the baseline's.
    pub accuracy: Option<&'a Score>,
    /// The outputs that keep their limits and are farthest from the reference's, by their cosine or share of equal elements.
    pub agrees: Option<&'a Fidelity>,
    /// By how many bytes its peak memory is below the baseline's, where a verdict tells them apart.
    pub saved: Vec<f64>,
}

/// The subjects of a plan, in order of their first cell.
pub(super) fn subjects<'a>(plan: &'a Plan, summary: &'a Summary, judged: &'a Judged) -> Vec<Subject<'a>> {
    let mut subjects: Vec<Subject<'a>> = Vec::new();
    for group in &plan.groups {
        // A group of which nothing runs is a notice, not a part of the answer.
        let is_run = group.cells.iter().any(|index| plan.cells[*index as usize].skip.is_none());
        let Some(first) = group.cells.first().filter(|_| is_run) else { continue };
        let label = label(plan, &plan.cells[*first as usize]);
        let position = subjects.iter().position(|subject| subject.label == label).unwrap_or_else(|| {
            let (entries, baseline_missing) = (Vec::new(), Vec::new());
            subjects.push(Subject { label, places: None, groups: 0, entries, baseline_missing, ties: &judged.ties });
            subjects.len() - 1
        });
        let subject = &mut subjects[position];
        subject.groups += 1;
        subject.places = (subject.groups > 1).then(|| Places::of(plan));
        for index in group.cells.iter().map(|index| *index as usize) {
            subject.add(plan, index, summary, judged);
        }
    }
    subjects
}

impl<'a> Subject<'a> {
    fn add(&mut self, plan: &'a Plan, index: usize, summary: &'a Summary, judged: &'a Judged) {
        let saved = saved_memory(judged, summary, index);
        let summary = &summary.cells[index];
        let cell = &plan.cells[index];
        let place = place(plan, cell);
        let missing = missing(cell, summary);
        if plan.is_baseline(cell) {
            self.baseline_missing.extend(missing.map(|missing| (place, missing)));
            return;
        }
        let name = plan.entry(cell);
        let position = self.entries.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
            self.entries.push(Entry {
                name,
                judged: Vec::new(),
                unjudged: Vec::new(),
                failure: None,
                missing: Vec::new(),
                differs: Vec::new(),
                accuracy: None,
                agrees: None,
                saved: Vec::new(),
            });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[position];
        entry.missing.extend(missing.map(|missing| (place.clone(), missing)));
        if let Some(fidelity) = summary.fidelity.as_ref().filter(|fidelity| !fidelity.passes()) {
            entry.differs.push((place, fidelity));
            return;
        }
        entry.saved.extend(saved);
        let is_changed = |score: &&Score| score.change.is_some() && speaks_of_baseline(plan);
        entry.accuracy = entry.accuracy.or(summary.accuracy.first().filter(is_changed));
        if let Some(fidelity) = summary.fidelity.as_ref().filter(|_| speaks_of_baseline(plan)) {
            let is_farther = entry.agrees.is_none_or(|known| fidelity.likeness() < known.likeness());
            entry.agrees = if is_farther { Some(fidelity) } else { entry.agrees };
        }
        match judged.of(index) {
            Some(comparison) if comparison.interval.is_some() && comparison.withheld.is_none() => {
                entry.judged.push((place, comparison));
            }
            Some(comparison) => {
                entry.unjudged.push((place, comparison));
                let first = summary.failures.first().map(|failure| failure.failure.kind.name());
                entry.failure = entry.failure.or(first);
            }
            None => {}
        }
    }

    /// The cells that were compared, each baseline once.
    pub(super) fn cells(&self) -> BTreeSet<usize> {
        let compared = self.entries.iter().flat_map(|entry| entry.judged.iter().chain(&entry.unjudged));
        compared.flat_map(|(_, comparison)| [comparison.cell, comparison.baseline]).collect()
    }

    /// Whether the candidate is ahead of the baseline in every group.
    pub(super) fn wins_everywhere(&self, entry: &Entry<'_>) -> bool {
        entry.judged.len() == self.groups
            && entry.judged.iter().all(|(_, judged)| self.settled(judged) == Verdict::Better)
    }

    /// The verdict, or what breaks the tie where it tells nothing apart.
    pub(super) fn settled(&self, judged: &Comparison) -> Verdict {
        match judged.verdict {
            told if told.is_difference() => told,
            _ if self.tie(judged.cell, judged.baseline).is_some() => Verdict::Better,
            _ if self.tie(judged.baseline, judged.cell).is_some() => Verdict::Worse,
            open => open,
        }
    }

    /// What speaks for a cell that latency does not tell apart from another one.
    pub(super) fn tie(&self, ahead: usize, behind: usize) -> Option<&'a Tie> {
        self.ties.iter().find(|tie| (tie.ahead, tie.behind) == (ahead, behind))
    }

    /// Whether it may be better for all that is known: a candidate that fails or computes nonsense is no rival.
    pub(super) fn is_open(&self, entry: &Entry<'_>) -> bool {
        let no_rival =
            |comparison: &Comparison| matches!(comparison.withheld, Some(Withheld::NotFinite | Withheld::ManyFailures));
        if !entry.differs.is_empty() {
            return false;
        }
        entry.judged.iter().any(|(_, judged)| self.settled(judged).is_open())
            || entry.failure.is_none() && entry.unjudged.iter().any(|(_, comparison)| !no_rival(comparison))
    }

    /// Whether one candidate is ahead of another everywhere: its interval lies wholly above the other's, or something
    /// breaks the tie. Both are judged against the same baseline, and disjoint intervals are stricter than a test.
    pub(super) fn leads(&self, one: &Entry<'_>, other: &Entry<'_>) -> bool {
        let is_above = |this: &Comparison, that: &Comparison| match (this.interval, that.interval) {
            (Some(this), Some(that)) => this.low > that.high,
            _ => false,
        };
        let mut pairs = one.judged.iter().zip(&other.judged);
        one.name != other.name
            && one.judged.len() == other.judged.len()
            && pairs.all(|((_, this), (_, that))| is_above(this, that) || self.tie(this.cell, that.cell).is_some())
    }

    /// Whether another candidate takes a tie with this one somewhere.
    pub(super) fn loses_a_tie(&self, entry: &Entry<'_>) -> bool {
        let usable = self.entries.iter().filter(|other| other.differs.is_empty());
        let mut cells = usable.flat_map(|other| &other.judged).map(|(_, judged)| judged.cell);
        cells.any(|ahead| entry.judged.iter().any(|(_, judged)| self.tie(ahead, judged.cell).is_some()))
    }
}

/// By how many bytes the peak memory of a cell is below its baseline's, where a verdict tells them apart.
pub(super) fn saved_memory(judged: &Judged, summary: &Summary, cell: usize) -> Option<f64> {
    let told = judged.memory.iter().find(|one| one.cell == cell && one.verdict.is_difference())?;
    let peak = |cell: usize| Some(summary.cells.get(cell)?.estimate(&PEAK_RSS)?.value);
    Some(peak(told.baseline)? - peak(cell)?)
}

/// Why a cell has no completed run.
fn missing<'a>(cell: &Cell, summary: &'a CellSummary) -> Option<Absence<'a>> {
    (summary.runs.completed == 0).then(|| Absence::of(cell, summary))
}

fn label(plan: &Plan, cell: &Cell) -> String {
    let coordinates = plan.coordinates(cell);
    let model = (!plan.compares(Axis::Models)).then_some(coordinates.model());
    let device = differs(plan, Axis::Devices).then_some(coordinates.device());
    let place = match (model, device) {
        (Some(model), Some(device)) => format!("{model} on {device}"),
        (model, device) => model.or(device).unwrap_or_default().to_owned(),
    };
    let is_said = |axis: &Axis| matches!(axis, Axis::Models | Axis::Inputs | Axis::Variants | Axis::Devices);
    let others = Axis::ALL.into_iter().filter(|axis| !is_said(axis) && differs(plan, *axis));
    let others: Vec<String> = others.map(|axis| format!("{} {}", axis.singular(), coordinates.on(axis))).collect();
    match (others.is_empty(), place.is_empty()) {
        (true, _) => place,
        (false, true) => format::list(&others),
        (false, false) => format!("{place} with {}", format::list(&others)),
    }
}
