//! The change of each cell's latency with its interval.

use super::tables;
use crate::format;
use crate::plots::{Figure, Forest, ForestRow};
use base::metric::{Difference, MetricReference};
use judge::diff::{Diff, Reason, Row};

/// More cells than these are left to the table.
const MOST_ROWS: usize = 36;

/// The figure; nothing where no latency was judged.
pub(super) fn draw(diff: &Diff) -> Option<Figure> {
    let names = tables::Names::of(diff);
    let is_drawn = |row: &&Row| row.metric == MetricReference::LATENCY && row.verdict.is_some() && row.change.is_some();
    let drawn: Vec<&Row> = diff.rows.iter().filter(is_drawn).take(MOST_ROWS).collect();
    let margin = match drawn.first()?.margin {
        Difference::Relative(margin) => margin,
        Difference::Absolute(_) => 0.0,
    };
    let drawn_row = |row: &&Row| {
        let change = row.change?;
        let ratio = |change: f64| 1.0 + change;
        Some(ForestRow {
            group: String::new(),
            entry: names.of_row(row),
            words: tables::change(change),
            ratio: ratio(change.value),
            interval: change.interval().map(|it| it.map(ratio)),
            blocks: Vec::new(),
            // What did not change claims nothing.
            verdict: row.verdict.filter(|_| row.reason != Reason::Unchanged),
        })
    };
    let title = format!("Latency of {} over that of {}", diff.candidate.name, diff.baseline.name);
    let axis = "left: faster, right: slower (logarithmic)";
    let rows = drawn.iter().filter_map(drawn_row).collect();
    let svg = Forest { title: title.clone(), axis, margin, least: 1.06, rows }.svg();
    // Of the rows of a gate the confidence is higher than that of other rows.
    let caption = format!(
        "With the interval that decides; shaded: the margin of {}; filled: judged faster or slower.",
        format::percent(margin)
    );
    Some(Figure { file: "change.svg".to_owned(), title, caption, svg })
}
