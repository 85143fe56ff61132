//! Each metric of each cell: what may be compared, and what the comparison says.

use std::collections::HashMap;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::found::{Change, Found, Items, Reason, Values};
use super::frame::{Frames, is_unchanged};
use super::gate::{GateRow, Gating};
use super::unusable::{Forbidden, unmeasured};
use super::{DiffOptions, Side, options};
use crate::compare::Withheld;
use crate::results::{Cell, Estimated, OperatorDifference, Results, Status, operator_changes};
use base::metric::{Difference, ITEMS, LOAD, MetricReference};
use base::wording::distinct;
use experiment::AxisMap;
use plan::{CellId, SkipKind};
use statistics::Verdict;
use statistics::unpaired::SessionSpread;

/// A metric of a cell on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Id of the cell.
    pub cell: CellId,
    /// Its names by axis.
    #[serde(flatten)]
    #[schemars(schema_with = "crate::results::names_schema")]
    pub names: AxisMap<String>,
    /// What is compared, as users name it: items per second instead of latency where the batches of the sides differ.
    #[schemars(with = "String")]
    pub metric: MetricReference,
    /// What was asked for.
    #[serde(skip)]
    #[schemars(skip)]
    pub asked: MetricReference,
    /// The older value.
    pub baseline: Option<Estimated>,
    /// The newer value.
    pub candidate: Option<Estimated>,
    /// By how much they differ; absent where that means nothing.
    pub change: Option<Change>,
    /// Differences of no interest.
    pub margin: Difference,
    /// `better`, `worse`, `equivalent`, `undecided`, or `incomparable` where the numbers may not be compared.
    #[serde(serialize_with = "verdict_word")]
    #[schemars(with = "String")]
    pub verdict: Option<Verdict>,
    /// Why.
    pub reason: Reason,
    /// p value of a difference beyond the margin.
    pub p: Option<f64>,
    /// What each operator adds to the latency, the three largest; nothing where a side was not profiled, or nothing differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub operators: Vec<OperatorDifference>,
    /// What the gate says; absent where none asks for this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateRow>,
}

fn verdict_word<S: serde::Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.map_or("incomparable", Verdict::name))
}

impl Row {
    /// The names on the axes that the cell has, joined by `/`.
    pub fn path(&self) -> String {
        self.names.path()
    }

    /// Whether it is about this metric, by that name or as what stands for it.
    pub(super) fn is_about(&self, metric: MetricReference) -> bool {
        self.asked == metric || self.metric == metric
    }

    /// It claims a difference.
    pub fn is_difference(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_difference)
    }

    /// It claims a difference of latencies, which a profile may explain.
    fn explains_latency(&self) -> bool {
        self.is_difference() && self.metric == MetricReference::LATENCY
    }

    /// It claims that the candidate is worse.
    pub fn is_regression(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_regression)
    }
}

/// Both sides, with what was looked up once for all their cells.
pub(super) struct Sides<'a> {
    baseline: &'a Side,
    candidate: &'a Side,
    terms: &'a DiffOptions,
    spread: SessionSpread,
    frames: Frames<'a>,
    forbidden: [Forbidden<'a>; 2],
    items: [HashMap<(CellId, &'a str), Vec<bool>>; 2],
}

impl<'a> Sides<'a> {
    pub(super) fn new(baseline: &'a Side, candidate: &'a Side, terms: &'a DiffOptions, spread: SessionSpread) -> Self {
        Sides {
            frames: Frames::new(&baseline.results, &candidate.results, &terms.allowed),
            forbidden: [Forbidden::new(baseline), Forbidden::new(candidate)],
            items: [baseline, candidate].map(|side| side.results.items_right()),
            baseline,
            candidate,
            terms,
            spread,
        }
    }

    /// Why nothing may be said about a cell that both sides measured, whatever the metric.
    fn why_not(&mut self, from: &Cell, to: &Cell, is_unchanged: bool) -> Option<Reason> {
        let facts = self.frames.differences(&to.names);
        if !facts.is_empty() {
            return Some(Reason::OtherFrame { facts });
        }
        let [before, after] = &self.forbidden;
        let stale = before.stale(from).or_else(|| after.stale(to));
        // What forbids a verdict on numbers forbids none where they say nothing.
        let withheld = || before.withheld(from).or_else(|| after.withheld(to)).filter(|_| !is_unchanged);
        stale.or_else(|| withheld().map(|why| Reason::Withheld { why }))
    }

    /// Whether the files of a cell are not those that were measured, on each side.
    fn is_stale(&self, from: Option<&Cell>, to: Option<&Cell>) -> [bool; 2] {
        let [before, after] = &self.forbidden;
        [from.is_some_and(|cell| before.stale(cell).is_some()), to.is_some_and(|cell| after.stale(cell).is_some())]
    }

    /// Judges a metric that both sides have, at this margin, `among` so many rows of a gate.
    pub(super) fn judge(
        &self,
        (from, to): (&Cell, &Cell),
        reference: MetricReference,
        margin: Difference,
        among: usize,
    ) -> Option<Found> {
        let column = reference.column();
        let (before, after) = (from.metrics.get(&column)?, to.metrics.get(&column)?);
        let [known, other] = &self.items;
        let key = (from.id, column.as_str());
        let items = known.get(&key).zip(other.get(&key));
        let is_same =
            |(before, after): &(&Vec<bool>, &Vec<bool>)| before.len() == after.len() && self.has_same_data(&to.names);
        let items = items.filter(is_same).map(|(baseline, candidate)| Items { baseline, candidate });
        let spread = self.spread_of(to.id, reference, &column);
        let paired = self.terms.paired.as_ref().map(|paired| paired.analyses);
        let values = Values { baseline: from, candidate: to, reference, from: before, to: after, items, paired, among };
        let found = values.judge(margin, spread)?;
        let has_modes = reference.metric.name == LOAD.name && values.have_two_modes();
        Some(if has_modes { found.open(Reason::TwoModes) } else { found })
    }

    /// How much the cell differs from session to session: as its history shows, else as is assumed of its machine.
    fn spread_of(&self, cell: CellId, reference: MetricReference, column: &str) -> SessionSpread {
        match self.terms.spreads.get(&(cell, column.to_owned())) {
            _ if !options::has_sessions(reference) => SessionSpread::NONE,
            Some(known) if self.terms.paired.is_none() => *known,
            _ => self.spread,
        }
    }

    /// Whether both sides scored their model on the same items.
    fn has_same_data(&self, names: &AxisMap<String>) -> bool {
        let data = |side: &Side| {
            let field = record::provenance::field("datasets")?;
            let row = field.about(side.results.provenance.subject.get("datasets")?, |axis| &names[axis])?;
            row.get("sha256").cloned()
        };
        let (baseline, candidate) = (data(self.baseline), data(self.candidate));
        baseline.is_some() && baseline == candidate
    }
}

/// Operators that are named.
const MOST_OPERATORS: usize = 3;

/// Fewer cells than these are not worth a thread.
const FEWEST_PAIRS: usize = 500;

/// The cells of a side by id: cells of equal id are the same.
pub(super) fn by_id(side: &Results) -> HashMap<CellId, &Cell> {
    side.cells.iter().map(|cell| (cell.id, cell)).collect()
}

/// The cells of the candidate in plan order, then those that it does not have, on the older side and on the newer one.
fn pairs<'a>(baseline: &'a Results, candidate: &'a Results) -> Vec<(Option<&'a Cell>, Option<&'a Cell>)> {
    let (before, after) = (by_id(baseline), by_id(candidate));
    let both = candidate.cells.iter().map(|cell| (before.get(&cell.id).copied(), Some(cell)));
    let gone = baseline.cells.iter().filter(|cell| !after.contains_key(&cell.id));
    both.chain(gone.map(|cell| (Some(cell), None))).collect()
}

/// A row for each compared metric of each cell.
pub(super) fn rows(baseline: &Side, candidate: &Side, terms: &DiffOptions, spread: SessionSpread) -> Vec<Row> {
    let compared = terms.compared();
    let sides = || Sides::new(baseline, candidate, terms, spread);
    let of_pair = |sides: &mut Sides<'_>, (from, to): (Option<&Cell>, Option<&Cell>)| {
        to.or(from).map(|cell| of_cell(sides, (cell.id, &cell.names), from, to, &compared)).unwrap_or_default()
    };
    // Ten thousand cells take a second of arithmetic, and every cell is by itself.
    let pairs = pairs(&baseline.results, &candidate.results);
    let each = pairs.into_par_iter().with_min_len(FEWEST_PAIRS).map_init(sides, of_pair);
    let mut rows: Vec<Row> = each.flatten_iter().collect();
    let unmeasured = terms.paired.iter().flat_map(|paired| &paired.unmeasured);
    let gated = terms.gating.iter().flat_map(Gating::metrics);
    let metrics: Vec<MetricReference> = distinct(std::iter::once(MetricReference::LATENCY).chain(gated));
    let each = unmeasured.flat_map(|cell| metrics.iter().map(move |metric| (cell, *metric)));
    rows.extend(each.map(|(cell, metric)| {
        let margin = terms.margin(metric, &candidate.results.rules, false);
        let verdict = (cell.reason == Reason::Unchanged).then_some(Verdict::Equivalent);
        Row { verdict, reason: cell.reason.clone(), ..blank((cell.id, &cell.names), None, None, metric, margin) }
    }));
    rows
}

/// What is there of a metric on both sides, without a word about it.
fn blank(
    (cell, names): (CellId, &AxisMap<String>),
    from: Option<&Cell>,
    to: Option<&Cell>,
    reference: MetricReference,
    margin: Difference,
) -> Row {
    let column = reference.column();
    let value = |cell: Option<&Cell>| cell.and_then(|cell| cell.metrics.get(&column)).copied();
    Row {
        cell,
        names: names.clone(),
        metric: reference,
        asked: reference,
        baseline: value(from),
        candidate: value(to),
        change: None,
        margin,
        verdict: None,
        reason: Reason::NoValue,
        p: None,
        operators: Vec::new(),
        gate: None,
    }
}

/// Why a cell stands on one side only, if it does; nothing where neither side has numbers.
fn one_sided(from: Option<&Cell>, to: Option<&Cell>) -> Option<Option<Reason>> {
    let why = |cell: &Cell| unmeasured(cell);
    match (from.map(|cell| (cell, why(cell))), to.map(|cell| (cell, why(cell)))) {
        (Some((_, None)), Some((_, None))) => None,
        (Some((_, None)), None) => Some(Some(Reason::Gone)),
        (Some((_, None)), Some((_, Some(why)))) => Some(Some(Reason::Lost { why })),
        (None, Some((_, None))) => Some(Some(Reason::New)),
        (Some((_, Some(why))), Some((_, None))) => Some(Some(Reason::Gained { why })),
        _ => Some(None),
    }
}

/// The rows of a cell; numbers of other files than those of a side are not shown as that side's.
fn of_cell(
    sides: &mut Sides<'_>,
    cell: (CellId, &AxisMap<String>),
    from: Option<&Cell>,
    to: Option<&Cell>,
    compared: &[MetricReference],
) -> Vec<Row> {
    let mut rows = judged_rows(sides, cell, from, to, compared);
    let [is_older_stale, is_newer_stale] = sides.is_stale(from, to);
    for row in &mut rows {
        row.baseline = row.baseline.filter(|_| !is_older_stale);
        row.candidate = row.candidate.filter(|_| !is_newer_stale);
    }
    rows
}

fn judged_rows(
    sides: &mut Sides<'_>,
    cell: (CellId, &AxisMap<String>),
    from: Option<&Cell>,
    to: Option<&Cell>,
    compared: &[MetricReference],
) -> Vec<Row> {
    let is_quick = [sides.baseline, sides.candidate].iter().any(|side| side.results.measured.quick);
    let rules = &sides.candidate.results.rules;
    let items = MetricReference::of(&ITEMS);
    let is_rated = |cell: &Cell| cell.metrics.contains_key(&items.column());
    let are_rated =
        from.zip(to).is_some_and(|(from, to)| has_another_batch(from, to) && is_rated(from) && is_rated(to));
    let load = to.or(from).and_then(|cell| cell.load.as_ref());
    let of_load = load.map(|load| load.queries.compared_by(to.or(from).is_some_and(is_rated)));
    let of_load = of_load.filter(|metric| *metric != MetricReference::LATENCY);
    let blank = |asked: &MetricReference| {
        let unasked = of_load.unwrap_or(if are_rated { items } else { MetricReference::LATENCY });
        let metric = if *asked == MetricReference::LATENCY { unasked } else { *asked };
        let margin = sides.terms.margin(metric, rules, is_quick);
        Row { asked: *asked, ..blank(cell, from, to, metric, margin) }
    };
    let mut rows: Vec<Row> = compared.iter().map(blank).collect();
    rows.retain(|row| row.baseline.is_some() || row.candidate.is_some());
    rows.retain(|row| row.asked != row.metric || load.is_none_or(|load| load.queries.reports(row.metric.metric)));
    // What stands for latency may be asked for too: it is one row.
    if let Some(stands) = rows.iter().find(|row| row.asked != row.metric).map(|row| row.metric) {
        rows.retain(|row| row.asked != row.metric || row.metric != stands);
    }
    if let Some(reason) = one_sided(from, to) {
        let Some(reason) = reason else { return neither(to, blank(&MetricReference::LATENCY)) };
        rows.iter_mut().for_each(|row| row.reason = reason.clone());
        return rows;
    }
    let Some((from, to)) = from.zip(to) else { return rows };
    let unchanged =
        !sides.terms.judges_unchanged && is_unchanged((&sides.baseline.results, from), (&sides.candidate.results, to));
    let why_not = sides.why_not(from, to, unchanged);
    // What only the newer side has is no row that could be worse.
    rows.retain(|row| row.baseline.is_some());
    let differs = to.outputs_differ() && !from.outputs_differ();
    for row in &mut rows {
        match &why_not {
            Some(reason) => row.reason = reason.clone(),
            // A score says how far they are off.
            None if differs && !row.metric.metric.is_constant() => {
                row.reason = Reason::Withheld { why: Withheld::OutputsDiffer };
            }
            None => judged(sides, (from, to), row, unchanged, is_quick),
        }
    }
    rows
}

/// A cell that has numbers on neither side, where that is worth a row: what a host skips is not.
fn neither(to: Option<&Cell>, row: Row) -> Vec<Row> {
    let is_reported = |cell: &&Cell| match cell.status {
        Status::Failed => true,
        Status::Skipped => cell.skipped.as_ref().is_some_and(|skip| skip.code == SkipKind::Memory),
        _ => false,
    };
    let why = to.filter(is_reported).and_then(unmeasured);
    why.map(|why| Row { reason: Reason::Neither { why }, ..row }).into_iter().collect()
}

fn judged(sides: &Sides<'_>, (from, to): (&Cell, &Cell), row: &mut Row, is_unchanged: bool, is_quick: bool) {
    if row.candidate.is_none() {
        return;
    }
    // What scores the outputs is not among the bytes and settings.
    let is_score = row.metric.metric.is_own() && row.metric.metric.is_constant();
    let is_unchanged = is_unchanged && !is_score;
    // The same bytes and settings are equivalent without a comparison of numbers.
    if is_unchanged {
        (row.verdict, row.reason) = (Some(Verdict::Equivalent), Reason::Unchanged);
    }
    if !(is_supported(row.baseline) && is_supported(row.candidate)) {
        return;
    }
    if is_by_inference(row.metric) && has_another_batch(from, to) {
        if !is_unchanged {
            row.reason = Reason::Withheld { why: Withheld::BatchesDiffer };
        }
        return;
    }
    let Some(found) = sides.judge((from, to), row.metric, row.margin, 1) else { return };
    row.change = found.change;
    if is_unchanged {
        return;
    }
    row.p = found.p;
    (row.verdict, row.reason) = match found {
        Found { verdict, .. } if is_quick && !verdict.is_difference() => {
            (Some(Verdict::Undecided), Reason::Withheld { why: Withheld::QuickLook })
        }
        Found { verdict, reason, .. } => (Some(verdict), reason),
    };
    if let (true, Some(before), Some(after)) = (row.explains_latency(), &from.profile, &to.profile) {
        row.operators = operator_changes(before, after);
        row.operators.truncate(MOST_OPERATORS);
    }
}

fn is_supported(value: Option<Estimated>) -> bool {
    value.is_none_or(|value| value.supported != Some(false))
}

/// Whether one inference of each handles another number of items.
fn has_another_batch(from: &Cell, to: &Cell) -> bool {
    from.batch.zip(to.batch).is_some_and(|(from, to)| from != to)
}

/// Whether the metric speaks of one inference, so that it depends on how many items that handles.
fn is_by_inference(reference: MetricReference) -> bool {
    reference.metric.name != ITEMS.name && !reference.metric.is_constant()
}
