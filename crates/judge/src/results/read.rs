//! A file of this or the last format -> results.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde_json::{Value, json};

use super::claims;
use super::{Cell, Control, FILE, FORMAT, FrontierPlace, Results, format2};
use base::conflict::has_conflict;
use base::metric::{self, Metric, MetricReference, Unit};
use base::name::is_entry_name;
use base::printable::printable;
use base::quantity::Ratio;
use plan::CellId;
use reading::plain_file;
use record::provenance::Provenance;
use record::{Manifest, StoreError};

/// The oldest format that is read.
const OLDEST: u64 = 2;

/// Reads the file.
///
/// # Errors
///
/// When it cannot be read, is damaged, or is of a later format or of one that is no longer read.
pub fn read(path: &Path) -> Result<Results, StoreError> {
    let text = plain_file::text(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// As [`read`], from a text that was read from `path`.
///
/// # Errors
///
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Results, StoreError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        format: u64,
    }
    let damaged = |error: serde_json::Error| match has_conflict(text) {
        true => StoreError::Conflict { path: path.to_owned() },
        false => StoreError::DamagedReport { path: path.to_owned(), reason: error.to_string() },
    };
    // The common case first: a file may hold ten thousand cells.
    let found = serde_json::from_str::<Results>(text);
    if let Ok(results) = &found
        && results.format == FORMAT
    {
        return checked(path, found.map_err(damaged)?);
    }
    // A list of one number reads as such a struct too.
    let is_object = text.trim_start().starts_with('{');
    match serde_json::from_str::<Versioned>(text).map_err(damaged)?.format {
        OLDEST => {
            let file = serde_json::from_str(text).map(format2::upgraded);
            checked(path, file.and_then(serde_json::from_value).map_err(damaged)?)
        }
        later if later > u64::from(FORMAT) => {
            Err(StoreError::Newer { path: path.to_owned(), found: later, known: FORMAT })
        }
        earlier if earlier < OLDEST && is_object => {
            Err(StoreError::NoLongerRead { path: path.to_owned(), found: earlier })
        }
        _ => Err(StoreError::DamagedReport {
            path: path.to_owned(),
            reason: found.err().map_or("it has no known format".to_owned(), |error| error.to_string()),
        }),
    }
}

/// What a history needs of a file, so that a hundred files of a thousand cells fit into memory.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// These metrics of the cells alone, by their stored names, and those that the specification declares.
    pub metrics: &'a [String],
    /// What is claimed about cells: comparisons, goals, and how much can be seen.
    pub claims: bool,
}

/// As [`parse`], of what is wanted alone: the provenance, and of each cell its names, state, codes and a few metrics.
///
/// # Errors
///
/// As [`parse`].
pub fn outline(path: &Path, text: &str, wanted: Wanted<'_>) -> Result<Results, StoreError> {
    let whole = match serde_json::from_str::<Results>(text) {
        Ok(results) if results.format == FORMAT => results,
        // Of another format, or damaged.
        _ => return parse(path, text),
    };
    let is_wanted = |name: &String| wanted.metrics.contains(name) || Metric::of_own(name).is_some();
    let cell = |mut cell: Cell| {
        cell.metrics.retain(|name, _| is_wanted(name));
        let Cell { id, names, status, batch, codes, metrics, .. } = cell;
        Cell { id, names, status, batch, codes, metrics, ..Cell::default() }
    };
    let cells = whole.cells.into_iter().map(cell).collect();
    let Results { experiment, record, measured, mut provenance, .. } = whole;
    add_stdout(&mut provenance);
    let outline = Results { experiment, record, measured, provenance, cells, ..Results::empty() };
    if !wanted.claims {
        return Ok(outline);
    }
    let Results { description, detectable_effect, goals, comparisons, .. } = whole;
    Ok(Results { description, detectable_effect, goals, comparisons, ..outline })
}

/// What reads as results may still come from anywhere.
fn checked(path: &Path, mut results: Results) -> Result<Results, StoreError> {
    match problem(&results).or_else(|| impossible(&results)) {
        Some(reason) => Err(StoreError::DamagedReport { path: path.to_owned(), reason }),
        None => {
            leave_out_rows_without_cells(&mut results);
            add_stdout(&mut results.provenance);
            results.controls = results.controls.into_iter().map(Control::judged_again).collect();
            // Those of a file are what another program may have changed.
            results.claims = claims::claims(&results);
            Ok(results)
        }
    }
}

/// Before there was a choice, the standard output of commands went to `/dev/null`.
fn add_stdout(provenance: &mut Provenance) {
    let Some(commands) = provenance.subject.get("commands").and_then(Value::as_array) else { return };
    let rows = commands.iter().map(|command| json!({ "model": command["name"], "to": "null" }));
    provenance.frame.entry("stdout".to_owned()).or_insert(rows.collect());
}

/// The first thing that no perfrun writes: an invalid name, a margin or confidence outside of 0 to 1, a cell that is listed
/// twice.
fn problem(results: &Results) -> Option<String> {
    let names = results.cells.iter().flat_map(|cell| cell.names.iter().map(|(_, name)| name));
    // A merged record has several machines.
    let machines = results.provenance.machine.split(Manifest::BETWEEN_MACHINES);
    let names = names.chain([&results.experiment, &results.record]).map(String::as_str);
    let mut names = names.chain(machines);
    // Absent on an axis is a dash, and an unknown machine nothing.
    if let Some(name) = names.find(|name| !matches!(*name, "-" | "") && !is_entry_name(name)) {
        return Some(format!("{:?} is not a name", printable(name)));
    }
    let rules = &results.rules;
    let shares = [rules.margin, rules.margin_of_tails, rules.confidence].map(Ratio);
    if let Some(Ratio(value)) = shares.iter().find(|share| !share.is_proper()) {
        return Some(format!("{value:e} stands in its rules where there must be a share of 1"));
    }
    let mut known = HashSet::new();
    let twice = results.cells.iter().map(|cell| cell.id).find(|id| !known.insert(*id));
    twice.map(|cell| format!("the cell {cell} is listed twice"))
}

/// A nanosecond to half a minute.
const MOST_RATIO: f64 = 3e10;

/// The first number that nothing measures, with its path in the file.
fn impossible(results: &Results) -> Option<String> {
    let of_cell = |(index, cell): (usize, &Cell)| {
        let estimated = cell.metrics.iter().find_map(|(name, found)| {
            let field = format_args!("metrics.{name}");
            let value = not_measured(name, found.value).map(|problem| format!("{field}.value {problem}"));
            value.or_else(|| inverted(found.low, found.high).map(|problem| format!("{field} {problem}")))
        });
        let run = || {
            cell.runs.iter().find_map(|(name, values)| {
                let problem = |(run, value): (usize, &Option<f64>)| {
                    not_measured(name, (*value)?).map(|problem| format!("runs.{name}[{run}] {problem}"))
                };
                values.iter().enumerate().find_map(problem)
            })
        };
        Some(format!("cells[{index}].{}", estimated.or_else(run)?))
    };
    let of_row = |list: &str, index: usize, ratio: f64, low, high| {
        let below = (ratio <= 0.0 || ratio > MOST_RATIO)
            .then(|| format!(".ratio is {}, which nothing measures", Value::from(ratio)));
        let problem = below.or_else(|| inverted(low, high).map(|problem| format!(" {problem}")))?;
        Some(format!("{list}[{index}]{problem}"))
    };
    let mut rows = results.comparisons.iter().enumerate();
    let mut controls = results.controls.iter().enumerate();
    let cells = results.cells.iter().enumerate().find_map(of_cell);
    cells
        .or_else(|| rows.find_map(|(index, row)| of_row("comparisons", index, row.ratio, row.low, row.high)))
        .or_else(|| controls.find_map(|(index, row)| of_row("controls", index, row.ratio, row.low, row.high)))
}

/// Why a time, a size or a rate cannot be this. A launch overhead is a difference, and may be below zero.
fn not_measured(column: &str, value: f64) -> Option<String> {
    /// 31 years in nanoseconds, an exabyte.
    const MOST: f64 = 1e18;
    let problem = match value {
        value if value < 0.0 => "it cannot be negative",
        value if value > MOST => "nothing is that large",
        _ => return None,
    };
    let reference =
        MetricReference::of_column(column).filter(|reference| reference.metric.name != metric::LAUNCH.name)?;
    let is_amount = matches!(reference.unit(), Unit::Nanoseconds | Unit::Bytes | Unit::PerSecond);
    is_amount.then(|| format!("is {}; {problem}", Value::from(value)))
}

fn inverted(low: Option<f64>, high: Option<f64>) -> Option<String> {
    let (low, high) = low.zip(high).filter(|(low, high)| low > high)?;
    Some(format!("has the interval {} to {}, which ends before it begins", Value::from(low), Value::from(high)))
}

/// Whoever takes cells out of a file leaves what was said about them.
fn leave_out_rows_without_cells(results: &mut Results) {
    let known: HashSet<CellId> = results.cells.iter().map(|cell| cell.id).collect();
    let mut missing = BTreeSet::new();
    let mut is_known = |cell: &CellId| known.contains(cell) || (missing.insert(*cell), false).1;
    results.comparisons.retain(|row| is_known(&row.cell) & is_known(&row.baseline));
    results.controls.retain(|row| is_known(&row.cell));
    results.efforts.retain(|row| row.cells.iter().all(&mut is_known));
    results.families.retain(|row| row.cells.iter().all(&mut is_known));
    results.goals.retain(|goal| goal.check.cells.iter().all(|found| is_known(&found.cell)));
    for tradeoff in &mut results.tradeoffs {
        tradeoff.points.retain_mut(|point| {
            if let FrontierPlace::Dominated { by } = &mut point.place {
                by.retain(&mut is_known);
            }
            is_known(&point.cell)
        });
    }
    if let Some(choice) = &mut results.choice {
        choice.rankings.retain(|ranking| ranking.candidates.iter().all(|candidate| is_known(&candidate.cell)));
        for ranking in &mut choice.rankings {
            ranking.evidence.retain(|row| is_known(&row.cell) & is_known(&row.baseline));
        }
        choice.bounds.retain(|bound| bound.cells.iter().all(|found| is_known(&found.cell)));
        choice.failed_control.take_if(|failed| !is_known(&failed.cell));
    }
    if !missing.is_empty() {
        let cells = match missing.len() {
            1 => "a cell that is".to_owned(),
            cells => format!("{cells} cells that are"),
        };
        results.remarks.push(format!("Left out: what {FILE} says about {cells} not in it."));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_is_what_the_whole_file_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/quickstart/results.json");
        let whole = read(&path).unwrap();
        // The committed file may be of the last format.
        let text = whole.to_json();
        let short = outline(&path, &text, Wanted { metrics: &["latency_ns".to_owned()], claims: true }).unwrap();
        assert_eq!(
            (&short.provenance, &short.measured, &short.record),
            (&whole.provenance, &whole.measured, &whole.record)
        );
        assert_eq!(short.cells.len(), whole.cells.len());
        for (short, whole) in short.cells.iter().zip(&whole.cells) {
            assert_eq!(
                (&short.id, &short.names, short.status, short.batch),
                (&whole.id, &whole.names, whole.status, whole.batch)
            );
            assert_eq!(short.metrics.get("latency_ns"), whole.metrics.get("latency_ns"));
            assert!(short.metrics.len() <= 1);
        }
        assert_eq!((short.comparisons, short.goals), (whole.comparisons, whole.goals));
        assert!(outline(&path, "{ \"format\": 4 }", Wanted { metrics: &[], claims: false }).is_err());
    }
}
