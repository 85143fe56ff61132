//! Metrics of the cells that could stand in for each other: the figure, and a table that names what dominates what.

use statistics::frontier_membership::MEMBERSHIP_RESAMPLES;

use super::{PlotView, Table, TableCell, TableColumn, TableRow, TradeoffView};
use crate::judge::compare::pareto::{Place, Point, Tradeoff};
use crate::plan::Plan;
use crate::report::answer::unfit_words;
use crate::report::format::{self, Column};
use crate::report::plots::Plots;
use crate::report::{Input, name_among, place_of};
use crate::vocabulary::metric::MetricReference;

/// More cells than these are counted where something dominates.
const MOST_NAMED: usize = 3;

/// More sets than these are left to `results.json`.
const MOST_TABLES: usize = 12;

/// One view for each set in which something is dominated or has to be weighed, and for every one that the specification
/// asks for; those with a figure first.
pub(super) fn tradeoffs(input: &Input<'_>, plots: &Plots) -> Vec<TradeoffView> {
    let plan = &input.manifest.plan;
    let plot_of = |index: usize| plots.tradeoffs.iter().find(|(of, _)| *of == index).map(|(_, plot)| plot);
    let view = |(index, tradeoff): (usize, &Tradeoff)| TradeoffView {
        title: place_of(plan, tradeoff.points.iter().map(|point| point.cell)),
        plot: plot_of(index).map(PlotView::of),
        table: table(plan, tradeoff),
    };
    let all = input.judged.tradeoffs.iter().enumerate().filter(|(_, tradeoff)| is_told(input, tradeoff));
    let mut views: Vec<TradeoffView> = all.map(view).collect();
    views.sort_by_key(|view| view.plot.is_none());
    views.truncate(MOST_TABLES);
    views
}

fn is_told(input: &Input<'_>, tradeoff: &Tradeoff) -> bool {
    let has_dominated = || tradeoff.points.iter().any(|point| matches!(point.place, Place::Dominated { .. }));
    !input.manifest.experiment.pareto.is_empty() || tradeoff.is_open || has_dominated()
}

/// Which sets have no figure, where some have; and that there is no set, where the specification asks for some.
pub(super) fn left_out(input: &Input<'_>, plots: &Plots) -> Option<String> {
    let asked = &input.manifest.experiment.pareto;
    if !asked.is_empty() && input.judged.tradeoffs.is_empty() {
        let names: Vec<String> = asked.iter().map(MetricReference::title).collect();
        let what = format::list(&names);
        return Some(format!("`pareto` has nothing to compare: no two interchangeable cells have {what}."));
    }
    let (mut open, mut told) = (0, 0);
    for tradeoff in &input.judged.tradeoffs {
        open += usize::from(tradeoff.is_open);
        told += usize::from(is_told(input, tradeoff));
    }
    let left = open.saturating_sub(plots.tradeoffs.len()).max(told.saturating_sub(MOST_TABLES));
    (left > 0).then(|| {
        let more = if left == 1 { "1 more is".to_owned() } else { format!("{left} more are") };
        format!("{more} not drawn; results.json has all.")
    })
}

fn table(plan: &Plan, tradeoff: &Tradeoff) -> Table {
    let cells: Vec<usize> = tradeoff.points.iter().map(|point| point.cell).collect();
    let name = |cell: usize| name_among(plan, &cells, cell);
    let mut columns = vec![column("cell", "candidate", false)];
    let mut rows: Vec<TableRow> = tradeoff
        .points
        .iter()
        .map(|point| TableRow { anchor: None, cells: vec![TableCell::text(name(point.cell))] })
        .collect();
    for (index, metric) in tradeoff.metrics.iter().enumerate() {
        let estimates = || tradeoff.points.iter().map(|point| point.estimates.get(index).copied().flatten());
        let shown: Vec<_> = estimates().flatten().collect();
        let fitted = Column::fit(metric.unit(), &shown);
        columns.push(column(&fitted.heading(&metric.title()), metric.metric.meaning, true));
        for (row, estimate) in rows.iter_mut().zip(estimates()) {
            row.cells.push(match estimate {
                Some(estimate) => TableCell::number(fitted.value(&estimate), estimate.value),
                None => TableCell::nothing(),
            });
        }
    }
    columns.push(column("place", "on the frontier, or what is better or equivalent in all and better in one", false));
    for (row, point) in rows.iter_mut().zip(&tradeoff.points) {
        row.cells.push(TableCell::text(place(tradeoff, point, name)));
    }
    let all = if tradeoff.metrics.len() == 2 { "both metrics" } else { "all metrics" };
    let note = format!("Dominated: another is better or equivalent in {all} and better in one, by the usual verdicts.");
    Table { columns, rows, notes: vec![note] }
}

/// How often each cell is on the frontier of resampled blocks: one row a cell and set.
pub(super) fn memberships(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let row = |tradeoff: &Tradeoff, point: &Point| {
        let metrics: Vec<String> = tradeoff.metrics.iter().map(MetricReference::title).collect();
        let share = point.membership?;
        let cells = vec![
            TableCell::text(plan.path(&plan.cells[point.cell])),
            TableCell::text(format::list(&metrics)),
            TableCell::number(share_words(share), share),
        ];
        Some(TableRow { anchor: None, cells })
    };
    let sets = input.judged.tradeoffs.iter().filter(|tradeoff| is_told(input, tradeoff)).take(MOST_TABLES);
    let rows: Vec<TableRow> =
        sets.flat_map(|tradeoff| tradeoff.points.iter().filter_map(|point| row(tradeoff, point))).collect();
    let columns = vec![
        column("cell", "candidate", false),
        column("metrics", "what is weighed", false),
        column("on the frontier in", "share of the resamples of blocks, without margins", true),
    ];
    let note = format!(
        "The share of {MEMBERSHIP_RESAMPLES} resamples of the blocks in which the cell is on the frontier of the estimates, without margins."
    );
    (!rows.is_empty()).then(|| Table { columns, rows, notes: vec![note] })
}

fn column(title: &str, meaning: &str, is_numeric: bool) -> TableColumn {
    TableColumn { title: title.to_owned(), meaning: Some(meaning.to_owned()), is_numeric }
}

/// `frontier`, `within noise`, `dominated by fp32 and int8`: those on the frontier first.
fn place(tradeoff: &Tradeoff, point: &Point, name: impl Fn(usize) -> String) -> String {
    match &point.place {
        Place::Frontier => "frontier".to_owned(),
        Place::WithinNoise => "within noise".to_owned(),
        Place::Dominated { by } => {
            let is_beside = |cell: &usize| {
                !tradeoff.points.iter().any(|other| other.cell == *cell && other.place == Place::Frontier)
            };
            let mut by = by.clone();
            by.sort_by_key(is_beside);
            let mut names: Vec<String> = by.iter().take(MOST_NAMED).map(|cell| name(*cell)).collect();
            if by.len() > MOST_NAMED {
                names.push(format::count((by.len() - MOST_NAMED) as u64, "other"));
            }
            format!("dominated by {}", format::list(&names))
        }
        Place::LeftOut { why } => unfit_words(*why, false, ""),
    }
}

/// A share is never shown as certain unless it is.
fn share_words(share: f64) -> String {
    match share {
        share if share > 0.0 && share < 0.01 => "< 1 %".to_owned(),
        share if share < 1.0 && share > 0.99 => "> 99 %".to_owned(),
        share => format!("{:.0} %", share * 100.0),
    }
}
