//! Every comparison with the evidence of its verdict, the tests over whole groups, and the controls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table};
use crate::cause::conditional;
use crate::format::{self, percent};
use crate::mark::claimed;
use base::code::spelt;
use base::metric::{Direction, ITEMS, MetricReference};
use base::wording::count;
use experiment::Grade;
use judge::results::{Cell, Comparison, Control, Family, Reason, background_load};
use statistics::planning::MOST_RUNS;

/// Comparisons, groups and controls, as far as there are any.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let results = reader.results;
    let mut sections = Vec::new();
    if !results.comparisons.is_empty() {
        let title = format!("Every comparison ({})", results.comparisons.len());
        sections.push(Section::new("comparisons", "every-comparison", &title, comparisons(reader)));
    }
    if !results.families.is_empty() {
        sections.push(Section::new("comparisons", "groups", "Groups of three and more cells", families(reader)));
    }
    if !results.controls.is_empty() {
        let title = "Controls: A/A comparisons";
        sections.push(Section::new("comparisons", "controls", title, controls(reader)));
    }
    sections
}

/// What each comparison says in its common blocks.
fn comparisons(reader: &Reader<'_>) -> Table {
    let results = reader.results;
    let mut table = Columns::of(&results.comparisons);
    table.add(TableColumn::text("cell").meaning("the candidate"), |row| reader.path(row.cell));
    table.add(TableColumn::text("against").meaning("the baseline's cell"), |row| reader.path(row.baseline));
    table.add(TableColumn::text("metric"), |row| row.metric.title());
    let meaning = "of times baseline over cell, of rates cell over baseline, with its interval; above 1 is better";
    table.add(TableColumn::number("ratio").meaning(meaning), |row| {
        TableCell::number(format::judged_ratio(row.ratio, row.interval(), row.margin), row.ratio)
    });
    table
        .add(TableColumn::number("change").meaning("cell over baseline, less 1; of times, negative is faster"), change);
    table.add(TableColumn::text("verdict").meaning("from the interval and the margin alone"), |row| {
        verdict(reader, row)
    });
    table.add(TableColumn::number("p").meaning("two-sided p value of a difference beyond the margin"), |row| {
        row.p.map(|p| TableCell::number(format::p_value(p), p))
    });
    let meaning = "smallest relative effect that these blocks detect with 80 % power";
    table.add(TableColumn::number("detectable").meaning(meaning), |row| {
        row.detectable.map(|effect| TableCell::number(percent(effect), effect))
    });
    table.add(TableColumn::number("blocks").meaning("blocks that both cells completed"), |row| {
        TableCell::count(row.blocks)
    });
    table.table(notes(reader))
}

fn notes(reader: &Reader<'_>) -> Vec<String> {
    let rules = &reader.results.rules;
    let mut notes = vec![format!(
        "Margins: {}, of tails {}. Verdicts are not adjusted for the number of comparisons; no gate rests on tails or memory.",
        percent(rules.margin),
        percent(rules.margin_of_tails)
    )];
    let by_items = reader.results.compared_by(MetricReference::of(&ITEMS)).count() as u64;
    if by_items > 0 {
        let rows = count(by_items, "row");
        notes.push(format!("{rows} with another batch than the baseline: compared by items per second, not by time."));
    }
    notes
}

/// The change in percent, labelled by its heading.
fn change(row: &Comparison) -> TableCell {
    let is_rate = row.metric.metric.direction == Direction::HigherIsBetter;
    let change = |ratio: f64| if is_rate { ratio - 1.0 } else { 1.0 / ratio - 1.0 };
    let value = change(row.ratio);
    TableCell::number(format::change(value, row.interval().map(|interval| interval.map(change))), value)
}

/// A cell against its baseline, as it is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Against {
    /// `1.93`, times as fast.
    pub ratio: String,
    /// `[1.90, 1.96]`; `None` below five common runs.
    pub interval: Option<String>,
    /// `faster`, `undecided (background load)`.
    pub verdict: String,
    /// Why there is no verdict; `None` where there is one.
    pub withheld: Option<String>,
}

/// What is said of the latency of each cell against its baseline's, by the id of the cell.
pub(super) fn against(reader: &Reader<'_>) -> BTreeMap<String, Against> {
    let verdict_of = |row: &Comparison| {
        let text = format::judged_ratio(row.ratio, row.interval(), row.margin);
        let (ratio, ends) = text.split_once('x').unwrap_or((&text, ""));
        let ends = ends.trim();
        Against {
            ratio: ratio.to_owned(),
            interval: (!ends.is_empty()).then(|| ends.to_owned()),
            verdict: conditional(format::verdict_of(row), has_load(reader, row)),
            withheld: match reader.cell(row.cell).is_some_and(Cell::outputs_differ) {
                true => Some("outputs differ".to_owned()),
                false => row.withheld().map(|why| why.words().to_owned()),
            },
        }
    };
    reader.results.compared_by(MetricReference::LATENCY).map(|row| (row.cell.to_string(), verdict_of(row))).collect()
}

/// Whether most runs of a judged comparison met background load.
pub(super) fn has_load(reader: &Reader<'_>, row: &Comparison) -> bool {
    let cells = [reader.cell(row.cell), reader.cell(row.baseline)].into_iter().flatten();
    row.is_judged() && background_load(cells).is_some()
}

/// The verdict with why it is not more.
fn verdict(reader: &Reader<'_>, row: &Comparison) -> String {
    let word = format::verdict_of(row);
    let words = match why_open(row) {
        Some(why) => format!("{word}: {why}"),
        None => word,
    };
    let words = match reader.decided_by_cpu_time(row) {
        Some(by) => format!("{words}; CPU time: {}", format::verdict_of(by)),
        None => words,
    };
    conditional(words, has_load(reader, row))
}

/// The spread of fewer runs says too little of how many more would decide.
const FEWEST_FOR_A_FORECAST: u64 = 10;

/// Why there is no verdict, or none that claims anything, and what would give one.
pub(super) fn why_open(row: &Comparison) -> Option<String> {
    reason_of(row).map(claimed)
}

fn reason_of(row: &Comparison) -> Option<String> {
    if let Some(withheld) = row.withheld() {
        return Some(withheld.words().to_owned());
    }
    match row.reason {
        Reason::TooFewBlocks => Some(format!("{} with a ratio; a verdict needs 5", count(row.blocks, "run"))),
        Reason::SizeNotEstablished => {
            if format::is_beyond(row.interval(), row.margin) {
                return Some(format!("{} are too few to claim it", count(row.blocks, "run")));
            }
            let more = row.more_blocks.and_then(|_| forecast(&[row]));
            let more = more.map_or(String::new(), |more| format!("; {more}"));
            let margin = percent(row.margin);
            Some(format!("the interval excludes 1x, but not differences below the {margin} margin{more}"))
        }
        Reason::NotEnoughData => {
            let detectable = row.detectable.filter(|effect| row.more_blocks.is_none() && *effect < 1.0);
            let these = detectable.map(|effect| format!(": these detect differences of {} or more", percent(effect)));
            forecast(&[row]).map(|words| words + &these.unwrap_or_default())
        }
        _ => None,
    }
}

/// `about 12 more runs would decide`: all of these comparisons.
pub(super) fn would_decide(rows: &[&Comparison]) -> Option<String> {
    forecast(rows).map(claimed)
}

fn forecast(rows: &[&Comparison]) -> Option<String> {
    let fewest = rows.iter().map(|row| row.blocks).min()?;
    if rows.iter().any(|row| row.metric.metric.is_constant()) {
        // Runs say no more of a score.
        return Some("too few items".to_owned());
    }
    let more: Option<Vec<u64>> = rows.iter().map(|row| row.more_blocks).collect();
    Some(match more.and_then(|more| more.into_iter().max()) {
        _ if fewest < FEWEST_FOR_A_FORECAST => "more runs may decide".to_owned(),
        Some(more) if fewest + more <= MOST_RUNS as u64 => format!("about {} would decide", count(more, "more run")),
        _ => "many more runs would be needed".to_owned(),
    })
}

/// The tests over whole groups.
fn families(reader: &Reader<'_>) -> Table {
    let mut table = Columns::of(&reader.results.families);
    table.add(TableColumn::text("group").meaning("what its cells have in common"), |family: &Family| {
        let cells: Vec<_> = family.cells.iter().filter_map(|id| reader.cell(*id)).collect();
        Some(TableCell::text(reader.shared_names(cells.iter().copied())))
    });
    table.add(TableColumn::number("cells"), |family| TableCell::count(family.cells.len() as u64));
    table.add(TableColumn::number("blocks").meaning("blocks that all of them completed"), |family| {
        TableCell::count(family.blocks)
    });
    table.add(TableColumn::number("p, Welch's ANOVA").meaning("that all cells have the same mean"), |family| {
        family.p.map(|p| TableCell::number(format::p_value(p), p))
    });
    table.table(vec!["Whether the cells of a group differ at all; it affects no verdict.".to_owned()])
}

fn controls(reader: &Reader<'_>) -> Table {
    let percentage = |value: f64| TableCell::number(percent(value), value);
    let mut table = Columns::of(&reader.results.controls);
    let meaning = "measured twice in every block, as if it were two cells";
    table.add(TableColumn::text("cell").meaning(meaning), |control: &Control| reader.path(control.cell));
    let meaning = "time of one side over that of the other, with its interval: 1 but for noise";
    table.add(TableColumn::number("ratio").meaning(meaning), |control| {
        TableCell::number(format::judged_ratio(control.ratio, control.interval(), control.margin), control.ratio)
    });
    let meaning = "as of two different things; faster or slower is a false alarm";
    table.add(TableColumn::text("verdict").meaning(meaning), |control| {
        let word = format::verdict_word(&MetricReference::LATENCY, control.verdict);
        let code = control.code().map_or_else(String::new, |code| format!(" ({code})"));
        Some(TableCell::text(format!("{word}{code}")))
    });
    let meaning = "Winsorised deviation of the log ratios over blocks";
    table.add(TableColumn::number("spread").meaning(meaning), |control| control.deviation.map(percentage));
    let meaning = "smallest relative effect that these blocks detect with 80 % power";
    table.add(TableColumn::number("detectable").meaning(meaning), |control| control.detectable.map(percentage));
    table.add(TableColumn::number("blocks").meaning("blocks that both sides completed"), |control| {
        TableCell::count(control.blocks)
    });
    let [a, b, c] = Grade::MOST.map(|(_, effect)| percent(effect));
    table.table(vec![format!(
        "Grades: A if {} blocks detect {a}, B if they detect {b}, C if they detect {c}, D otherwise.",
        spelt(Grade::BLOCKS as usize)
    )])
}
