//! How right every variant is on its model's data, with what changed against the reference.

use super::tables::Filled;
use super::{Table, TableCell, TableColumn, TableRow};
use crate::experiment::{AccuracyMetric, Axis};
use crate::plan::{Cell, Plan};
use crate::quality::accuracy::{Change, Score};
use crate::record::VariantAccuracy;
use crate::report::format::{self, count, p_value};
use crate::report::{Input, name_without_input, short_name};
use crate::vocabulary::metric::Unit;
use crate::vocabulary::privacy::without_home;

/// One row for each variant of a model that was run over data; `None` where none was.
pub(super) fn accuracy(input: &Input<'_>) -> Option<Table> {
    let known = &input.manifest.accuracy();
    let says =
        |known: &VariantAccuracy| !known.scores.is_empty() || !known.own_scores.is_empty() || known.problem.is_some();
    known.iter().find(|known| says(known))?;
    let plan = &input.manifest.plan;
    let mut metrics: Vec<AccuracyMetric> =
        known.iter().flat_map(|known| known.scores.iter().map(|score| score.metric)).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let mut columns: Vec<Filled> = metrics.iter().flat_map(|metric| of_metric(known, *metric)).collect();
    columns.extend(own_scores(known));
    columns.push(column("items", "items that were run", true, known, |known| {
        TableCell::number(known.items.to_string(), known.items as f64)
    }));
    let mut titles = vec![TableColumn { title: "variant".to_owned(), meaning: None, is_numeric: false }];
    let mut rows: Vec<TableRow> =
        known.iter().map(|known| TableRow { anchor: None, cells: vec![TableCell::text(name(plan, known))] }).collect();
    for filled in columns {
        titles.push(filled.column);
        rows.iter_mut().zip(filled.cells).for_each(|(row, cell)| row.cells.push(cell));
    }
    Some(Table { columns: titles, rows, notes: notes(input, &metrics) })
}

/// `digits-mlp/fp16`
fn name(plan: &Plan, known: &VariantAccuracy) -> String {
    let cell = &plan.cells[known.cell as usize];
    format!("{}/{}", plan.coordinates(cell).model(), name_without_input(plan, cell))
}

fn column(
    title: &str,
    meaning: &str,
    is_numeric: bool,
    known: &[VariantAccuracy],
    cell: impl Fn(&VariantAccuracy) -> TableCell,
) -> Filled {
    let column = TableColumn { title: title.to_owned(), meaning: Some(meaning.to_owned()), is_numeric };
    Filled { column, cells: known.iter().map(cell).collect() }
}

/// Value, interval and change of one metric.
fn of_metric(known: &[VariantAccuracy], metric: AccuracyMetric) -> Vec<Filled> {
    let of = |known: &VariantAccuracy| known.scores.iter().find(|score| score.metric == metric).cloned();
    let described = metric.metric();
    let value = column(described.title, described.meaning, true, known, |known| {
        let Some(Score { estimate, .. }) = of(known) else { return TableCell::nothing() };
        let shown = |value: f64| format::score(described, value, estimate.n);
        let bound = |value: f64| shown(value).trim_end_matches(" %").to_owned();
        let interval =
            estimate.interval.map(|interval| format!(" [{}, {}]", bound(interval.low), bound(interval.high)));
        TableCell::number(format!("{}{}", shown(estimate.value), interval.unwrap_or_default()), estimate.value)
    });
    let meaning = "difference on the same items, with its 95 % interval";
    let change =
        column("against the reference", meaning, true, known, |known| match of(known).and_then(|s| s.change) {
            Some(change) => TableCell::number(change_words(&change, metric), change.difference),
            None => TableCell::nothing(),
        });
    let p = column("p", "of no difference", true, known, |known| match of(known).and_then(|score| score.change) {
        Some(change) => TableCell::number(p_value(change.p), change.p),
        None => TableCell::nothing(),
    });
    let mut columns = vec![value, change];
    if metric.among().is_some() {
        columns.push(column("lost", "items that only the reference gets right", true, known, |k| {
            items(of(k), |c| c.lost)
        }));
        columns.push(column("gained", "items that only this variant gets right", true, known, |k| {
            items(of(k), |c| c.gained)
        }));
    }
    columns.push(p);
    columns
}

fn items(score: Option<Score>, count: impl Fn(&Change) -> Option<u64>) -> TableCell {
    match score.and_then(|score| score.change).and_then(|change| count(&change)) {
        Some(items) => TableCell::number(items.to_string(), items as f64),
        None => TableCell::nothing(),
    }
}

/// `-0.4 pp [-1.1, +0.4]`: percentage points of shares, the label's unit otherwise.
pub(in crate::report) fn change_words(change: &Change, metric: AccuracyMetric) -> String {
    let is_share = metric.metric().unit == Unit::Share;
    let (factor, unit) = if is_share { (100.0, " pp") } else { (1.0, "") };
    let widest = change.interval.map_or(change.difference.abs(), |interval| interval.half_width()) * factor;
    let decimals = format::significant_decimals(widest, 2).clamp(0, 6) as usize;
    let signed = |value: f64| {
        let text = format!("{:+.decimals$}", value * factor);
        if text.trim_start_matches(['+', '-']).chars().all(|letter| matches!(letter, '0' | '.')) {
            text[1..].to_owned()
        } else {
            text
        }
    };
    let interval = change
        .interval
        .map(|interval| format!(" [{}, {}]", signed(interval.low), signed(interval.high)))
        .unwrap_or_default();
    format!("{}{unit}{interval}", signed(change.difference))
}

/// A column for each number that the specification's own command printed.
fn own_scores(known: &[VariantAccuracy]) -> Vec<Filled> {
    let mut names: Vec<&String> = known.iter().flat_map(|known| known.own_scores.keys()).collect();
    names.sort();
    names.dedup();
    let of = |name: &&String| {
        column(name, "as the specification's own `score` command printed it", true, known, |known| {
            match known.own_scores.get(*name) {
                Some(value) => TableCell::number(format::amount(Unit::Count, *value), *value),
                None => TableCell::nothing(),
            }
        })
    };
    names.iter().map(of).collect()
}

fn notes(input: &Input<'_>, metrics: &[AccuracyMetric]) -> Vec<String> {
    let manifest = input.manifest;
    let mut notes: Vec<String> = Vec::new();
    let mut files: Vec<String> = manifest
        .datasets
        .iter()
        .flatten()
        .map(|data| {
            let hash = data.sha256.get(..12).unwrap_or(&data.sha256);
            format!("{} ({}, SHA-256 {hash})", without_home(&data.path), count(data.items, "item"))
        })
        .collect();
    files.dedup();
    notes.push(format!(
        "Data: {}. Every item is run once, in a separate process, outside the timed regions.",
        files.join("; ")
    ));
    if metrics.iter().any(|metric| metric.among().is_some()) {
        notes.push(
            "Intervals of shares are Wilson's over items. Changes are on the same items: p is McNemar's exact test, the interval that of Bonett and Price.".to_owned(),
        );
    }
    if metrics.iter().any(|metric| metric.among().is_none()) {
        notes.push(
            "Intervals of errors are Student's over items; that of R2 takes the labels as given. p is the paired t test over items.".to_owned(),
        );
    }
    let plan = &manifest.plan;
    let problems = manifest.accuracy().iter().filter_map(|known| {
        let problem = without_home(known.problem.as_ref()?);
        Some(format!("Missing or incomplete for {}: {problem}", name(plan, known)))
    });
    notes.extend(problems);
    notes
}

/// One line for each model: `digits-mlp: fp32 98.1 %, int8 97.8 % (top-1 accuracy of 540 items)`, then what else is to be
/// said of its variants.
pub(crate) fn lines(plan: &Plan, known: &[VariantAccuracy]) -> Vec<String> {
    let of = |model: usize| -> Vec<&VariantAccuracy> {
        known.iter().filter(|known| plan.cells[known.cell as usize].model().place() == model).collect()
    };
    let models = plan.names(Axis::Models).iter().enumerate();
    models.flat_map(|(model, name)| lines_of(plan, name, &of(model))).collect()
}

fn lines_of(plan: &Plan, model: &str, known: &[&VariantAccuracy]) -> Vec<String> {
    let variant = |known: &VariantAccuracy| name_without_input(plan, &plan.cells[known.cell as usize]);
    let first = |known: &&VariantAccuracy| Some((variant(known), known.scores.first()?.clone()));
    let first: Vec<(String, Score)> = known.iter().filter_map(first).collect();
    let mut lines = Vec::new();
    if let Some((_, Score { metric, estimate, .. })) = first.first() {
        let each: Vec<String> = first.iter().map(|(name, score)| format!("{name} {}", value_of(score))).collect();
        let (title, items) = (metric.metric().title, count(estimate.n as u64, "item"));
        lines.push(format!("{model}: {} ({title} of {items})", each.join(", ")));
    }
    for known in known {
        let own: Vec<String> = known.own_scores.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !own.is_empty() {
            lines.push(format!("{}: {}", name(plan, known), own.join(", ")));
        }
        if let Some(problem) = &known.problem {
            lines.push(format!("{}: unknown: {problem}", name(plan, known)));
        }
    }
    lines
}

/// `98.1 %`
pub(super) fn value_of(score: &Score) -> String {
    format::score(score.metric.metric(), score.estimate.value, score.estimate.n)
}

/// `98.1 % top-1`: the first score of a cell's variant, in a word.
pub(super) fn in_a_word(input: &Input<'_>, cell: &Cell) -> Option<String> {
    let score = input.manifest.accuracy_of(cell)?.scores.first()?;
    Some(format!("{} {}", value_of(score), short_name(score.metric)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::interval::Interval;

    #[test]
    fn changes_of_shares_are_percentage_points() {
        let interval = Some(Interval { low: -0.0112, high: 0.0038 });
        let change = Change { difference: -0.0037, interval, p: 0.5, lost: Some(3), gained: Some(1) };
        assert_eq!(change_words(&change, AccuracyMetric::Top1), "-0.37 pp [-1.12, +0.38]");
        let none = Change { difference: 0.0, interval: None, ..change };
        assert_eq!(change_words(&none, AccuracyMetric::Top1), "0 pp");
        let error = Change { difference: 0.25, interval: None, ..change };
        assert_eq!(change_words(&error, AccuracyMetric::Rmse), "+0.25");
    }
}
