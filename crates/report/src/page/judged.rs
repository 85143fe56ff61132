//! Every comparison with its verdict.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table, name_among};
use crate::cause::conditional;
use crate::format::{self, percent};
use crate::mark::claimed;
use base::metric::{ITEMS, MetricReference};
use base::wording::{count, grouped, list};
use judge::results::{Cell, Comparison, Reason, background_load};
use statistics::planning::MOST_RUNS;

/// What takes a speed-up its worth.
pub(super) const OUTPUTS_DIFFER: &str = "outputs differ";

/// Comparisons, as far as there are any.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let results = reader.results;
    let mut sections = Vec::new();
    if !results.comparisons.is_empty() {
        let against = results.rules.baseline.as_ref().map(|baseline| format!(" with {baseline}")).unwrap_or_default();
        let title = format!("Every comparison{against} ({})", results.comparisons.len());
        sections.push(Section::new("comparisons", "every-comparison", &title, comparisons(reader)));
    }
    sections
}

/// What each comparison says in its common blocks, but for those by further metrics that are equivalent.
fn comparisons(reader: &Reader<'_>) -> Table {
    let results = reader.results;
    let (shown, equivalent): (Vec<&Comparison>, Vec<&Comparison>) =
        results.comparisons.iter().partition(|row| !is_left_out(row));
    let mut table = Columns::of(&shown);
    table.add(TableColumn::text("cell").meaning("the candidate"), |row| reader.path(row.cell));
    let meaning = "the baseline's cell, where more than its name differs";
    table.add_known(TableColumn::text("against").meaning(meaning), |row| {
        let cells: Vec<&Cell> = [row.cell, row.baseline].into_iter().filter_map(|id| reader.cell(id)).collect();
        let name = name_among(&cells, reader.cell(row.baseline)?);
        (Some(&name) != results.rules.baseline.as_ref()).then(|| TableCell::text(name))
    });
    table.add(TableColumn::text("metric"), |row| row.metric.title());
    let meaning = "of times baseline over cell, of rates cell over baseline, with its interval; above 1 is better";
    table.add(TableColumn::number("ratio").meaning(meaning), |row| {
        TableCell::number(format::judged_ratio(row.ratio, row.interval(), row.margin), row.ratio)
    });
    table.add(TableColumn::text("verdict").meaning("from the interval and the margin alone"), |row| {
        let differs = reader.cell(row.cell).is_some_and(Cell::outputs_differ);
        let tone = if row.is_judged() && !differs { format::tone(row.verdict) } else { "open" };
        let word = verdict(reader, row);
        let word = if differs { format!("{word}, but {OUTPUTS_DIFFER}") } else { word };
        TableCell::text(word).marked(Some(tone))
    });
    table.table(notes(reader, &equivalent))
}

/// Of tails and memory, what is equivalent is a number in a sentence.
fn is_left_out(row: &Comparison) -> bool {
    row.is_judged() && row.verdict.is_equivalent() && !MetricReference::UNASKED.contains(&row.metric)
}

fn notes(reader: &Reader<'_>, equivalent: &[&Comparison]) -> Vec<String> {
    let rules = &reader.results.rules;
    let mut notes = vec![format!(
        "Margins: {}, of tails {}. Not adjusted for the number of comparisons.",
        percent(rules.margin),
        percent(rules.margin_of_tails)
    )];
    let metrics = grouped(equivalent.iter().map(|row| (row.metric.title(), ()))).into_iter();
    let metrics: Vec<String> = metrics.map(|(title, rows)| format!("{} of {title}", rows.len())).collect();
    if !metrics.is_empty() {
        notes.push(claimed(format!("Equivalent and not listed: {}.", list(&metrics))));
    }
    let by_items = reader.results.compared_by(MetricReference::of(&ITEMS)).count() as u64;
    if by_items > 0 {
        let rows = count(by_items, "row");
        notes.push(format!("{rows} with another batch than the baseline: compared by items per second, not by time."));
    }
    notes
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
                true => Some(OUTPUTS_DIFFER.to_owned()),
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
