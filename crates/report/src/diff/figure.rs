//! What became slower, faster or remains open, as a table of marks on one axis.

use serde::Serialize;

use super::{summary, tables};
use crate::format::{self, better_word, difference, percent, verdict_word};
use crate::mark::claimed;
use crate::page::{SpeedupAxis, SpeedupRow};
use crate::plots::RatioScale;
use base::metric::{Difference, Direction, MetricReference};
use base::wording::distinct;
use judge::diff::{Diff, Held, Reason, Row};
use statistics::interval::Interval;

/// What a better value of a speed is called.
pub(super) const FASTER: &str = "faster";

/// More rows than these are left to the tables.
const MOST_ROWS: usize = 10;

/// The figure of a diff.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `Speed-up of 9c02d7e against 8c41f02`
    pub title: String,
    /// The axis of all rows.
    pub axis: SpeedupAxis,
    /// What its sides are called: `slower`, `faster`.
    pub sides: [&'static str; 2],
    /// What became worse first.
    pub rows: Vec<FigureRow>,
    /// `11 equivalent cells, all within 2 %`; empty where every row is drawn.
    pub not_drawn: String,
}

/// A row of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureRow {
    /// Its name, its mark and its words.
    #[serde(flatten)]
    pub shown: SpeedupRow,
    /// `8.96 -> 10.4 ms`, after the name of any other metric than latency.
    pub values: String,
    /// Where the gate is, in percent of the axis; `None` without one, or beyond the axis.
    pub bound: Option<f64>,
}

/// The figure; nothing where no row has both a ratio and a verdict.
pub(super) fn draw(diff: &Diff, shown: &[&Row]) -> Option<Figure> {
    let (drawn, left_out) = chosen(shown);
    let scale = RatioScale::around(drawn.iter().filter_map(|row| Some((ratio(row)?, interval(row)))));
    let has_speed = drawn.iter().any(|row| is_speed(row));
    let margins = drawn.iter().filter(|row| !has_speed || is_speed(row)).map(|row| relative(row, row.margin));
    let margin = margins.fold(0.0, f64::max);
    let rows: Vec<FigureRow> = drawn.iter().filter_map(|row| figure_row(diff, row, &scale)).collect();
    let [from, to] = [&diff.baseline.name, &diff.candidate.name];
    let is_of_speed = drawn.iter().all(|row| better_word(&row.metric) == FASTER);
    let gates = rows
        .iter()
        .zip(&drawn)
        .filter(|(row, _)| row.bound.is_some())
        .filter_map(|(_, row)| row.gate.as_ref().map(|gate| difference(gate.worse_by, row.metric)));
    let gate = match distinct(gates).as_slice() {
        [] => String::new(),
        [only] => format!("; dashed: gate, {only} worse"),
        _ => "; dashed: gate".to_owned(),
    };
    let axis = SpeedupAxis {
        baseline: from.clone(),
        reading: format!("bar: interval that decides; shaded: {} margin{gate}", percent(margin)),
        ..SpeedupAxis::on(&scale, margin)
    };
    (!rows.is_empty()).then(|| Figure {
        title: format!("{}{to} against {from}", if is_of_speed { "Speed-up of " } else { "" }),
        axis,
        sides: if is_of_speed { ["slower", FASTER] } else { ["worse", "better"] },
        rows,
        not_drawn: summed(&left_out),
    })
}

/// The rows that are drawn, worst first, and those that are not. What is the same is drawn where all have room.
fn chosen<'a>(shown: &[&'a Row]) -> (Vec<&'a Row>, Vec<&'a Row>) {
    let is_wanted = |row: &&Row| is_speed(row) || is_worse(row);
    let is_drawn = |row: &&Row| is_wanted(row) && row.verdict.is_some() && ratio(row).is_some();
    let is_measured = |row: &&&Row| row.reason != Reason::Unchanged;
    let (mut drawn, mut rest): (Vec<&Row>, Vec<&Row>) = shown.iter().filter(is_measured).partition(|row| is_drawn(row));
    drawn.sort_by(|a, b| {
        let size = |row: &Row| ratio(row).map_or(0.0, |ratio| ratio.ln().abs());
        place(a).cmp(&place(b)).then(size(b).total_cmp(&size(a)))
    });
    let notable = drawn.iter().filter(|row| place(row) < Place::Same).count();
    let kept = match (drawn.len() <= MOST_ROWS, notable) {
        (true, _) => drawn.len(),
        (false, 0) => MOST_ROWS,
        (false, notable) => notable.min(MOST_ROWS),
    };
    rest.splice(0..0, drawn.split_off(kept));
    (drawn, rest)
}

/// In which order rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Slower,
    Worse,
    Open,
    Faster,
    Same,
}

fn place(row: &Row) -> Place {
    match row.verdict {
        _ if is_worse(row) => {
            if is_speed(row) {
                Place::Slower
            } else {
                Place::Worse
            }
        }
        Some(verdict) if verdict.is_open() => Place::Open,
        Some(verdict) if verdict.is_difference() => Place::Faster,
        _ => Place::Same,
    }
}

/// It is worse, or the gate falls by it.
fn is_worse(row: &Row) -> bool {
    row.is_regression() || row.gate.as_ref().is_some_and(|gate| gate.outcome == Held::Falls)
}

/// Whether a better value is called faster, or the row stands for latency.
fn is_speed(row: &Row) -> bool {
    row.asked == MetricReference::LATENCY || better_word(&row.metric) == FASTER
}

/// How many times as good the newer side is, of a change of this metric.
fn goodness(metric: MetricReference, change: f64) -> f64 {
    if metric.metric.direction == Direction::HigherIsBetter { 1.0 + change } else { 1.0 / (1.0 + change) }
}

/// How many times as good the newer side is; nothing where that is no ratio.
pub(super) fn ratio(row: &Row) -> Option<f64> {
    let change = row.change.filter(|change| !change.is_in_points)?;
    Some(goodness(row.metric, change.value)).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

fn interval(row: &Row) -> Option<Interval> {
    let ends = row.change.and_then(|change| change.interval())?.map(|end| goodness(row.metric, end));
    Some(Interval { low: ends.low.min(ends.high), high: ends.low.max(ends.high) })
}

/// A difference as a share of the older value.
fn relative(row: &Row, difference: Difference) -> f64 {
    row.baseline.map_or(0.0, |value| difference.relative_to(value.value))
}

fn figure_row(diff: &Diff, row: &Row, scale: &RatioScale) -> Option<FigureRow> {
    let (ratio, verdict) = (ratio(row)?, row.verdict?);
    let metric =
        if row.metric == MetricReference::LATENCY { String::new() } else { format!("{} ", row.metric.title()) };
    // How many times as much of what should be small reads like the opposite of its place.
    let has_ratio = is_speed(row) || row.metric.metric.direction == Direction::HigherIsBetter;
    let text = match has_ratio {
        true => format::judged_ratio(ratio, interval(row), relative(row, row.margin)),
        false => row.change.map(tables::change)?,
    };
    let (text, interval_text) =
        text.split_once(" [").map_or((text.as_str(), String::new()), |(text, rest)| (text, format!("[{rest}")));
    let word = match row.gate.as_ref() {
        Some(gate) if gate.outcome == Held::Falls && !row.is_regression() => {
            claimed(format!("{}, gate failed", verdict_word(&row.metric, verdict)))
        }
        _ => verdict_word(&row.metric, verdict),
    };
    let shown = SpeedupRow {
        name: tables::Names::of(diff).of_row(row),
        is_chosen: row.is_difference(),
        tone: format::tone(verdict),
        ratio: text.to_owned(),
        interval: interval_text,
        word,
        ..SpeedupRow::default()
    };
    let worse = |by: f64| if row.metric.metric.direction == Direction::HigherIsBetter { -by } else { by };
    let bound = row.gate.as_ref().map(|gate| goodness(row.metric, worse(relative(row, gate.worse_by))));
    Some(FigureRow {
        shown: shown.placed(scale, ratio, interval(row)),
        values: values(row).map_or(String::new(), |values| metric + &values),
        bound: bound.filter(|bound| scale.holds(*bound)).map(|bound| scale.position(bound)),
    })
}

/// `8.96 -> 10.4 ms`
fn values(row: &Row) -> Option<String> {
    let [before, after] = tables::values(row);
    let (before, after) = (before?, after?);
    let unit = after.split_once(' ').map_or("", |(_, unit)| unit);
    Some(format!("{} -> {after}", before.strip_suffix(unit).unwrap_or(&before).trim_end()))
}

/// `11 equivalent cells, all within 2 %`; where rows of several kinds are left out, how many of each.
fn summed(left_out: &[&Row]) -> String {
    let is_latency = |row: &&Row| row.metric == MetricReference::LATENCY && row.reason == Reason::WithinMargin;
    let margins = distinct(left_out.iter().map(|row| difference(row.margin, row.metric)));
    match margins.as_slice() {
        [margin] if left_out.iter().all(is_latency) => {
            let cells = format::count(left_out.len() as u64, "equivalent cell");
            claimed(format!("{cells}, {}within {margin}", if left_out.len() == 1 { "" } else { "all " }))
        }
        _ => claimed(summary::counted(left_out)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use base::metric::PEAK_RSS;
    use experiment::AxisMap;
    use judge::diff::{Change, GateRow};
    use judge::results::Estimated;
    use statistics::Verdict;

    /// Latency of a cell that is slower by this, judged by the margin of 2 %, with a gate of 5 %.
    pub(in crate::diff) fn slower_by(name: &str, change: f64, verdict: Verdict) -> Row {
        let estimated = |value: f64| Estimated { value, low: None, high: None, n: 10, supported: None };
        let outcome = if change > 0.05 { Held::Falls } else { Held::Holds };
        Row {
            cell: name.parse().unwrap_or_default(),
            names: AxisMap::of(|_| name.to_owned()),
            metric: MetricReference::LATENCY,
            asked: MetricReference::LATENCY,
            baseline: Some(estimated(1e6)),
            candidate: Some(estimated(1e6 * (1.0 + change))),
            change: Some(Change {
                value: change,
                low: Some(change - 0.01),
                high: Some(change + 0.01),
                is_in_points: false,
            }),
            margin: Difference::Relative(0.02),
            verdict: Some(verdict),
            reason: if verdict.is_equivalent() { Reason::WithinMargin } else { Reason::BeyondMargin },
            p: None,
            operators: Vec::new(),
            gate: Some(GateRow {
                worse_by: Difference::Relative(0.05),
                outcome,
                verdict: Some(verdict),
                detectable: None,
                is_near: false,
                accepted: None,
            }),
        }
    }

    #[test]
    fn the_worst_comes_first_and_what_is_the_same_is_left_out_where_there_is_no_room() {
        let mut rows = vec![
            slower_by("a", -0.2, Verdict::Better),
            slower_by("b", 0.1, Verdict::Worse),
            slower_by("c", 0.01, Verdict::Undecided),
            slower_by("d", 0.3, Verdict::Worse),
            Row { metric: MetricReference::of(&PEAK_RSS), ..slower_by("e", 0.5, Verdict::Worse) },
        ];
        rows.iter_mut().filter(|row| row.metric != MetricReference::LATENCY).for_each(|row| row.asked = row.metric);
        rows.extend((0..8).map(|_| slower_by("f", 0.0, Verdict::Equivalent)));
        let all: Vec<&Row> = rows.iter().collect();
        let names = |rows: &[&Row]| rows.iter().map(|row| row.names.model().to_owned()).collect::<String>();
        let (drawn, left_out) = chosen(&all);
        assert_eq!((names(&drawn).as_str(), left_out.len()), ("dbeca", 8));
        assert_eq!(summed(&left_out), "8 equivalent cells, all within 2 %");
        let few: Vec<&Row> =
            all.iter().copied().filter(|row| row.names.model() != "f").chain(all.last().copied()).collect();
        assert_eq!(names(&chosen(&few).0), "dbecaf");
    }

    #[test]
    fn a_change_is_drawn_as_how_many_times_as_good_the_newer_side_is() {
        let row = slower_by("a", 0.25, Verdict::Worse);
        assert_eq!(ratio(&row), Some(0.8));
        let ends = interval(&row).map(|it| (it.low < 0.8, it.high > 0.8));
        assert_eq!((ends, values(&row).as_deref()), (Some((true, true)), Some("1.00 -> 1.25 ms")));
        let in_points = Row { change: row.change.map(|it| Change { is_in_points: true, ..it }), ..row };
        assert_eq!(ratio(&in_points), None);
    }
}
