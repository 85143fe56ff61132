//! Metrics of the cells that could stand in for each other: the figure, and a table that names what dominates what.

use super::ranking::unfit_words;
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table, name_among};
use crate::format::Column;
use crate::mark::claimed;
use crate::plots::Plots;
use base::wording::{list, some};
use judge::results::{Cell, FrontierPlace, Point, Tradeoff};
use plan::CellId;
use statistics::interval::Estimate;

/// So many are named where there are at least two more.
const MOST_NAMED: usize = 3;

/// More sets than these are left to `results.json`.
const MOST_TABLES: usize = 12;

/// One section for each set in which something is dominated or has to be weighed, and for every one that the specification
/// asks for; those with a figure first.
pub(super) fn sections(reader: &Reader<'_>, plots: &Plots) -> Vec<Section> {
    let plot_of = |index: usize| plots.tradeoffs.iter().find(|(tradeoff, _)| *tradeoff == index).map(|(_, plot)| plot);
    let view = |(index, tradeoff): (usize, &Tradeoff)| {
        let cells: Vec<&Cell> = tradeoff.points.iter().filter_map(|point| reader.cell(point.cell)).collect();
        let shared = reader.shared_names(cells.iter().copied());
        let title = if shared.is_empty() { "All cells".to_owned() } else { shared };
        let section = Section::new("tradeoffs", &format!("trade-off-{index}"), &title, table(reader, tradeoff, &cells));
        Section { figure: plot_of(index).cloned(), ..section }
    };
    let all = reader.results.tradeoffs.iter().enumerate().filter(|(_, tradeoff)| is_shown(tradeoff));
    let mut sections: Vec<Section> = all.map(view).collect();
    sections.sort_by_key(|section| section.figure.is_none());
    sections.truncate(MOST_TABLES);
    sections
}

/// Two cells are weighed only where the specification asks for it.
fn is_shown(tradeoff: &Tradeoff) -> bool {
    tradeoff.is_open
        || tradeoff.points.len() == 2
        || tradeoff.points.iter().any(|point| matches!(point.place, FrontierPlace::Dominated { .. }))
}

/// Which sets have no figure, where some have.
pub(super) fn left_out(reader: &Reader<'_>, plots: &Plots) -> Option<String> {
    let (mut open, mut shown) = (0, 0);
    for tradeoff in &reader.results.tradeoffs {
        open += usize::from(tradeoff.is_open);
        shown += usize::from(is_shown(tradeoff));
    }
    let left = open.saturating_sub(plots.tradeoffs.len()).max(shown.saturating_sub(MOST_TABLES));
    (left > 0).then(|| {
        let more = if left == 1 { "1 more is".to_owned() } else { format!("{left} more are") };
        format!("{more} not drawn; results.json has all.")
    })
}

fn table(reader: &Reader<'_>, tradeoff: &Tradeoff, cells: &[&Cell]) -> Table {
    let name = |id: CellId| reader.cell(id).map_or_else(|| id.to_string(), |cell| name_among(cells, cell));
    let mut table = Columns::of(&tradeoff.points);
    table.add(TableColumn::text("cell").meaning("candidate"), |point| TableCell::text(name(point.cell)));
    for metric in tradeoff.metrics.iter().copied() {
        let estimate = |point: &Point| reader.cell(point.cell)?.estimate_of(metric);
        let shown: Vec<Estimate> = tradeoff.points.iter().filter_map(estimate).collect();
        let fitted = Column::fit(metric.unit(), &shown);
        table.add(TableColumn::number(fitted.heading(&metric.title())).meaning(metric.metric.meaning), |point| {
            estimate(point).map(|estimate| TableCell::number(fitted.value(&estimate), estimate.value))
        });
    }
    let meaning = "on the frontier, or what is better or equivalent in all and better in one";
    table.add(TableColumn::text("Pareto status").meaning(meaning), |point| {
        TableCell::text(place_words(tradeoff, point, name))
    });
    let all = if tradeoff.metrics.len() == 2 { "both metrics" } else { "all metrics" };
    table.table(vec![format!(
        "Dominated: another is better or equivalent in {all} and better in one, by the usual verdicts."
    )])
}

/// `frontier`, `within noise`, `dominated by fp32 and int8`: those on the frontier first.
fn place_words(tradeoff: &Tradeoff, point: &Point, name: impl Fn(CellId) -> String) -> String {
    match &point.place {
        FrontierPlace::Dominated { by } => {
            let is_on_frontier = |cell: &CellId| {
                tradeoff.points.iter().any(|other| other.cell == *cell && other.place == FrontierPlace::Frontier)
            };
            let mut by = by.clone();
            by.sort_by_key(|cell| !is_on_frontier(cell));
            claimed(format!("dominated by {}", list(&some(by.iter().map(|cell| name(*cell)), MOST_NAMED))))
        }
        FrontierPlace::LeftOut { why } => unfit_words(*why),
        FrontierPlace::Frontier => "frontier".to_owned(),
        FrontierPlace::WithinNoise => "within noise".to_owned(),
    }
}
