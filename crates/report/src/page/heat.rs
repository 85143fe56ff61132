//! The first screen of many subjects: an answer for each group of them, and every speed-up as a number on a tint.
//!
//! Deliberately absent: any claim but that of the rankings, in whose words the groups are made.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{AlikeRankings, End};
use super::cells::{CellsTable, input_name};
use super::ranking::NamedRanking;
use super::subject::Subject;
use super::{Fact, Reader};
use crate::format;
use crate::mark::claimed;
use base::wording::{count, distinct, some};
use experiment::Axis;
use judge::results::{Cell, Comparison};
use plan::CellId;
use statistics::quantile::median;

/// So many groups of answers are named; the table has the rest.
const MOST_GROUPS: usize = 3;

/// So many members of a group are named where there are at least two more.
const MOST_NAMED: usize = 6;

/// Ratios from which on a tint is deeper.
const DEEPER: [f64; 3] = [1.25, 1.6, 2.1];

/// Every speed-up of a page with many subjects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Heat {
    /// What the rows are: `model`.
    pub corner: String,
    /// Columns by what they share.
    pub groups: Vec<HeatColumns>,
    /// A row for each model.
    pub rows: Vec<HeatRow>,
}

/// Columns of one input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeatColumns {
    /// `batch 32`
    pub name: String,
    /// What is compared with the baseline.
    pub names: Vec<String>,
}

/// The speed-ups of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeatRow {
    /// `resnet50`
    pub name: String,
    /// For each group of columns a cell for each of its columns.
    pub groups: Vec<Vec<HeatCell>>,
}

/// One speed-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeatCell {
    /// `1.96`, `?` where it is undecided, `–` where there is none.
    pub text: String,
    /// All that is known: `1.96x [1.91, 2.01] faster`.
    pub title: String,
    /// `f1` to `f4` faster, `s1` to `s4` slower, `eq`, `un`, `no`.
    pub tint: String,
    /// The answer names it.
    pub is_best: bool,
    /// The row of the results that has its numbers.
    pub row: Option<usize>,
}

/// An answer for each group of rankings that choose the same, the largest group first.
pub(super) fn groups(reader: &Reader<'_>, found: &[AlikeRankings<'_>]) -> Vec<Subject> {
    let mut groups: BTreeMap<(bool, String), Vec<Member>> = BTreeMap::new();
    let has_each = found.iter().flat_map(|alike| &alike.rankings).any(|names| !is_across_inputs(names));
    let mut all = 0;
    for alike in found {
        // What ranks batches against each other is in the table of every answer.
        let rankings = alike.rankings.iter().zip(&alike.subjects);
        for (names, input) in rankings.filter(|(names, _)| !(has_each && is_across_inputs(names))) {
            let is_choice = alike.end == End::Decided;
            let ratio = match (is_choice, names.ranking.best.as_slice()) {
                // Only where that comparison is what decided: batches are ranked by items a second.
                (true, [only]) => reader.cell(*only).and_then(|cell| reader.against(cell)).filter(|row| {
                    let same = |other: &Comparison| {
                        (other.cell, other.baseline, other.metric) == (row.cell, row.baseline, row.metric)
                    };
                    is_faster(row) && names.ranking.evidence.iter().any(same)
                }),
                _ => None,
            };
            let name = [alike.model.clone(), input_name(input)].into_iter().filter(|part| !part.is_empty());
            let member = Member { name: name.collect::<Vec<_>>().join(" at "), ratio: ratio.map(|row| row.ratio) };
            all += 1;
            groups.entry((!is_choice, alike.choice.clone())).or_default().push(member);
        }
    }
    let mut groups: Vec<((bool, String), Vec<Member>)> = groups.into_iter().collect();
    groups.sort_by_key(|((is_open, _), members)| (*is_open, std::cmp::Reverse(members.len())));
    let subject = |((is_open, choice), members): ((bool, String), Vec<Member>)| {
        let ratios: Vec<f64> = members.iter().filter_map(|member| member.ratio).collect();
        let is_whole = ratios.len() == members.len();
        let verdict = median(&ratios).filter(|_| is_whole).map(|typical| {
            let in_median = if ratios.len() > 1 { " in the median" } else { "" };
            claimed(format!("{} faster{in_median}", format::ratio(typical, None)))
        });
        let (least, most) =
            (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
        let speed = (is_whole && ratios.len() > 1)
            .then(|| format!("{} to {}", format::ratio(least, None), format::ratio(most, None)));
        let names = some(members.iter().map(|member| member.name.clone()), MOST_NAMED).join(", ");
        let facts = [("speed", speed), ("for", Some(names))];
        let facts = facts.into_iter().filter_map(|(name, value)| Some(Fact { name: name.to_owned(), value: value? }));
        Subject {
            name: format!("{} of {}", members.len(), count(all, "case")),
            is_choice: !is_open,
            choice,
            tone: if verdict.is_some() { "faster" } else { "" },
            verdict: verdict.unwrap_or_default(),
            facts: facts.collect(),
            groups: Vec::new(),
        }
    };
    groups.into_iter().take(MOST_GROUPS).map(subject).collect()
}

struct Member {
    name: String,
    ratio: Option<f64>,
}

fn is_faster(row: &Comparison) -> bool {
    row.is_judged() && row.verdict.is_improvement() && format::is_speed(row.metric)
}

/// Every cell that is compared, by model and input; `None` where nothing is.
pub(super) fn heat(reader: &Reader<'_>, table: &CellsTable) -> Option<Heat> {
    let results = reader.results;
    results.rules.baseline.as_ref()?;
    let axes = reader.naming_axes().into_iter().filter(|axis| !results.compares(*axis) && !axis.has_dimensions());
    let axes: Vec<Axis> = axes.collect();
    let row_name = |cell: &Cell| axes.iter().map(|axis| cell.names[*axis].as_str()).collect::<Vec<_>>().join(", ");
    // By row, input and what is compared.
    let cells = reader.shown().into_iter().filter(|cell| !results.is_baseline(cell));
    let cells: Vec<([String; 3], &Cell)> =
        cells.map(|cell| ([row_name(cell), input_of(cell).to_owned(), results.entry(&cell.names)], cell)).collect();
    let by_place: HashMap<[&str; 3], &Cell> =
        cells.iter().map(|(place, cell)| (place.each_ref().map(String::as_str), *cell)).collect();
    let groups: Vec<(&str, Vec<&str>)> = distinct(cells.iter().map(|([_, input, _], _)| input.as_str()))
        .into_iter()
        .map(|input| {
            let of_input = cells.iter().filter(|([_, other, _], _)| other == input);
            (input, distinct(of_input.map(|([_, _, entry], _)| entry.as_str())))
        })
        .collect();
    let best = reader.best();
    let rows: HashMap<&str, usize> = table.rows.iter().enumerate().map(|(at, row)| (row.path.as_str(), at)).collect();
    let mark = |cell: &&Cell| HeatCell { row: rows.get(cell.path().as_str()).copied(), ..tinted(reader, cell, &best) };
    let row = |name: &str| {
        let of_group = |(input, names): &(&str, Vec<&str>)| {
            let cells = names.iter().map(|entry| by_place.get(&[name, *input, *entry]));
            cells.map(|cell| cell.map(mark).unwrap_or_default()).collect()
        };
        HeatRow { name: name.to_owned(), groups: groups.iter().map(of_group).collect() }
    };
    Some(Heat {
        corner: axes.iter().map(|axis| results.method.word(*axis)).collect::<Vec<_>>().join(", "),
        rows: distinct(cells.iter().map(|([name, ..], _)| name.as_str())).into_iter().map(row).collect(),
        groups: groups
            .iter()
            .map(|(input, names)| HeatColumns {
                name: input_name(input),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
            })
            .collect(),
    })
}

/// Whether batches or other inputs are ranked against each other.
pub(super) fn is_across_inputs(names: &NamedRanking<'_>) -> bool {
    distinct(names.cells.iter().map(|cell| input_of(cell))).len() > 1
}

/// The name of a cell's input.
fn input_of(cell: &Cell) -> &str {
    let input = Axis::ALL.into_iter().find(|axis| axis.has_dimensions());
    input.map_or("", |axis| cell.names[axis].as_str())
}

fn tinted(reader: &Reader<'_>, cell: &Cell, best: &HashSet<CellId>) -> HeatCell {
    let none = |text: &str, title: String, tint: &str| HeatCell {
        text: text.to_owned(),
        title,
        tint: tint.to_owned(),
        ..HeatCell::default()
    };
    let Some(row) = reader.against(cell).filter(|row| !row.withheld().is_some_and(|why| why.hides_the_value())) else {
        return none("–", super::absence(cell), "no");
    };
    let title = format::speedup(row);
    if cell.outputs_differ() {
        return none("–", format!("{title}, but outputs differ"), "no");
    }
    if !row.is_judged() || row.verdict.is_open() {
        return none("?", title, "un");
    }
    let is_equivalent = !row.verdict.is_difference();
    let (side, away) = if row.ratio >= 1.0 { ("f", row.ratio) } else { ("s", row.ratio.recip()) };
    let depth = 1 + DEEPER.iter().filter(|from| away >= **from).count();
    HeatCell {
        text: format::ratio(row.ratio, None).trim_end_matches('x').to_owned(),
        title,
        tint: if is_equivalent { "eq".to_owned() } else { format!("{side}{depth}") },
        is_best: best.contains(&cell.id),
        row: None,
    }
}
