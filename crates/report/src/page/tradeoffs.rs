//! Metrics of the cells that could stand in for each other: the figure, and a sentence that names what dominates what.

use super::ranking::unfit_words;
use super::{Reader, Section, Table, name_among};
use crate::mark::claimed;
use crate::plots::Plots;
use base::wording::{grouped, list, some};
use judge::results::{Cell, FrontierPlace, Point, Tradeoff};
use plan::CellId;

/// So many are named where there are at least two more.
const MOST_NAMED: usize = 3;

/// What nothing else dominates.
const FRONTIER: &str = "frontier";

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
        Section {
            caption: sentence(reader, tradeoff, &cells),
            figure: plot_of(index).cloned(),
            ..Section::new("tradeoffs", &format!("trade-off-{index}"), &title, Table::default())
        }
    };
    let all = reader.results.tradeoffs.iter().enumerate().filter(|(_, tradeoff)| is_shown(tradeoff));
    let mut sections: Vec<Section> = Vec::new();
    for section in all.map(view) {
        let is_alike = |known: &&mut Section| {
            known.figure.is_none() && section.figure.is_none() && known.caption == section.caption
        };
        match sections.iter_mut().find(is_alike) {
            Some(known) => known.title += &format!("; {}", section.title),
            None => sections.push(section),
        }
    }
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

/// `frontier: int8; dominated by int8: fp32, fp16`
fn sentence(reader: &Reader<'_>, tradeoff: &Tradeoff, cells: &[&Cell]) -> String {
    let name = |id: CellId| reader.cell(id).map_or_else(|| id.to_string(), |cell| name_among(cells, cell));
    let places = tradeoff.points.iter().map(|point| (place_words(tradeoff, point, name), name(point.cell)));
    let mut places = grouped(places);
    places.sort_by_key(|(place, _)| place != FRONTIER);
    places.iter().map(|(place, names)| format!("{place}: {}", names.join(", "))).collect::<Vec<_>>().join("; ")
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
        FrontierPlace::Frontier => FRONTIER.to_owned(),
        FrontierPlace::WithinNoise => "within noise".to_owned(),
    }
}
