//! The tails against the baseline: p95 and p99 with verdicts of their own.

use statistics::interval::Interval;

use super::comparisons::{number, path, text};
use super::{Table, TableCell, TableRow};
use crate::judge::summary::MOST_COMPARISONS;
use crate::report::Input;
use crate::report::format::{self, percent};
use crate::vocabulary::metric::MetricReference;

/// One row for each comparison of which something is known; `None` where no pair has samples enough for any percentile.
pub(super) fn tails(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let shown: Vec<MetricReference> = MetricReference::TAILS
        .into_iter()
        .filter(|metric| input.judged.tails.iter().any(|t| t.metric == *metric))
        .collect();
    let first = input.judged.tails.first()?;
    let (margin, confidence) = (first.margin, percent(first.confidence));
    let mut columns = vec![text("cell", "the candidate"), text("against", "the baseline's cell")];
    for metric in &shown {
        let name = metric.statistic.name().to_owned();
        columns.push(number(&name, &format!("{name} of the baseline over that of the cell, paired by block, with its {confidence} interval and verdict; above 1 is faster")));
        columns.push(number(&format!("{name}, bootstrap"), &format!("mean {name} of the baseline's runs over that of the cell's, with the interval of a two-level bootstrap, which draws runs and their samples again")));
    }
    let row = |cell: usize, baseline: usize| {
        let mut cells = vec![TableCell::text(path(plan, cell)), TableCell::text(path(plan, baseline))];
        for metric in &shown {
            cells.push(verdict(input, cell, *metric));
            cells.push(bootstrap(input, cell, *metric));
        }
        TableRow { anchor: None, cells }
    };
    let is_known = |cell: usize| input.judged.tails.iter().any(|tail| tail.cell == cell);
    let pairs = input.judged.comparisons.iter().filter(|pair| is_known(pair.cell));
    let rows = pairs.map(|pair| row(pair.cell, pair.baseline)).collect();
    Some(Table { columns, rows, notes: notes(input, margin) })
}

fn verdict(input: &Input<'_>, cell: usize, metric: MetricReference) -> TableCell {
    let Some(tail) = input.judged.tails.iter().find(|tail| tail.cell == cell && tail.metric == metric) else {
        return TableCell { text: "too few samples".to_owned(), sort: Some(String::new()), link: None };
    };
    TableCell::number(format::speedup(tail), tail.speedup)
}

fn bootstrap(input: &Input<'_>, cell: usize, metric: MetricReference) -> TableCell {
    match input.summary.tails.iter().find(|tail| tail.cell == cell && tail.metric == metric) {
        Some(tail) => {
            let interval = Interval { low: 1.0 / tail.interval.high, high: 1.0 / tail.interval.low };
            TableCell::number(format::ratio(1.0 / tail.ratio, Some(interval)), 1.0 / tail.ratio)
        }
        None => TableCell::nothing(),
    }
}

fn notes(input: &Input<'_>, margin: f64) -> Vec<String> {
    let mut notes = vec![format!(
        "Verdicts at the margin of tails, {}; they are not adjusted for their number, and no gate rests on them. A percentile is compared where every run of both cells has samples enough for it (72 for p95, 368 for p99, if independent).",
        percent(margin)
    )];
    if input.judged.comparisons.len() > MOST_COMPARISONS {
        notes.push(format!("No bootstrap: it is drawn for up to {MOST_COMPARISONS} comparisons."));
    }
    notes
}
