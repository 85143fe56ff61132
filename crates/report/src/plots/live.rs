//! Memory over the nodes of an inference, a curve for each cell.

use super::axis::{Axis, plain_label};
use super::canvas::{Anchor, Canvas, GREY, INK, PALETTE, shortened, text_width};
use super::{Figure, MOST_GROUPS, groups, row_name, slug, unused};
use crate::format::scale;
use crate::page::Reader;
use base::metric::Unit;
use judge::results::{Arena, Cell};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 256.0;
const MOST_LETTERS: usize = 24;

/// A figure for each group of cells that are compared, where something is known of their memory.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<Figure> {
    let mut plots: Vec<Figure> = Vec::new();
    for group in groups(reader) {
        if plots.len() < MOST_GROUPS
            && let Some(plot) = figure(reader, &group, &plots)
        {
            plots.push(plot);
        }
    }
    plots
}

fn figure(reader: &Reader<'_>, group: &[&Cell], drawn: &[Figure]) -> Option<Figure> {
    let known = group.iter().filter_map(|cell| Some((*cell, cell.profile.as_ref()?.memory.as_ref()?.arena.as_ref()?)));
    let rows: Vec<(&Cell, &Arena)> = known.filter(|(_, arena)| arena.live.len() > 1).take(PALETTE.len()).collect();
    let name = row_name(reader, group.first()?);
    let most = rows.iter().flat_map(|(_, arena)| &arena.live).copied().max()? as f64;
    let unit = scale(Unit::Bytes, [most]);
    let height = Axis::from_zero(1.04 * most / unit.factor, 0.0, BOTTOM - TOP);
    let up = |value: f64| BOTTOM - height.position(value);
    let title = format!("Memory of activations: {name}");
    let described = rows.iter().map(|(cell, arena)| {
        format!(
            "{}: at most {:.1} {} at {}",
            reader.results.entry(&cell.names),
            arena.activations as f64 / unit.factor,
            unit.unit,
            arena.node
        )
    });
    let mut canvas = Canvas::new(&title, &described.collect::<Vec<_>>().join("; "), WIDTH, HEIGHT);
    canvas.heading(&shortened(&title, 80), (14.0, 20.0));
    let mut legend = 14.0;
    for ((cell, _), color) in rows.iter().zip(PALETTE) {
        let entry = shortened(&reader.results.entry(&cell.names), MOST_LETTERS);
        canvas.line((legend, 44.0), (legend + 16.0, 44.0), color, 2.5);
        canvas.text(&entry, (legend + 22.0, 44.0), Anchor::Start, INK);
        legend += 22.0 + text_width(&entry) + 20.0;
    }
    for (value, label) in height.ticks_up(plain_label) {
        let y = up(value);
        canvas.line((LEFT, y), (WIDTH - 20.0, y), super::canvas::PALE, 1.0);
        canvas.text(&label, (LEFT - 8.0, y), Anchor::End, GREY);
    }
    canvas.text(unit.unit, (LEFT - 8.0, TOP - 14.0), Anchor::End, GREY);
    canvas.text(
        "nodes in the order in which they run",
        (f64::midpoint(LEFT, WIDTH), BOTTOM + 24.0),
        Anchor::Middle,
        GREY,
    );
    for ((_, arena), color) in rows.iter().zip(PALETTE) {
        let last = (arena.live.len() - 1) as f64;
        let point = |(index, bytes): (usize, &u64)| {
            let x = LEFT + (WIDTH - 20.0 - LEFT) * index as f64 / last;
            (x, up(*bytes as f64 / unit.factor))
        };
        canvas.curve(&arena.live.iter().enumerate().map(point).collect::<Vec<_>>(), color, 1.6);
    }
    let caption = "What the runtime has handed out for activations at the end of each node, in the first inference; weights are left out.".to_owned();
    Some(Figure {
        svg: canvas.finish(),
        file: unused(drawn, &format!("memory-{}", slug(&name))),
        title,
        caption,
        narrow: None,
    })
}
