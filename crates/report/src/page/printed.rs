//! What commands print: whether it is the same, and what reading it cost.

use std::collections::BTreeSet;

use super::Reader;
use crate::format::{bytes, measured};
use base::metric::{LATENCY, STDOUT, STDOUT_LEAST, STDOUT_READ, Unit};
use base::wording::{list, some};
use judge::results::Cell;

/// Reading that takes less of the time than this is not reported.
const NOTABLE: f64 = 0.1;

/// So many commands are named.
const MOST_NAMED: usize = 4;

/// What executions of a command wrote to standard output: the least and the most, in bytes; `None` where nobody saw it.
fn printed(cell: &Cell) -> Option<(u64, u64)> {
    let least = cell.environment.get(STDOUT_LEAST.name)?.first()?;
    let most = cell.environment.get(STDOUT.name)?.last()?;
    Some((*least as u64, *most as u64))
}

/// Sentences; none where there is nothing to say.
pub(super) fn sentences(reader: &Reader<'_>) -> Vec<String> {
    let cells = reader.shown().into_iter();
    let known: Vec<(&Cell, (u64, u64))> = cells.filter_map(|cell| Some((cell, printed(cell)?))).collect();
    let mut sentences: Vec<String> = known.iter().filter_map(|(cell, printed)| changing(cell, *printed)).collect();
    sentences.extend(different(&known));
    sentences.extend(known.iter().filter_map(|(cell, (_, most))| reading(cell, *most)));
    sentences
}

fn changing(cell: &Cell, (least, most): (u64, u64)) -> Option<String> {
    let sizes = in_words(&[least, most]).join(" to ");
    (least < most).then(|| format!("The output of {} differs between executions: {sizes}.", cell.names.model()))
}

/// Commands that print differently much, whatever their executions.
fn different(known: &[(&Cell, (u64, u64))]) -> Option<String> {
    let least = known.iter().map(|(_, (least, _))| *least).max()?;
    let most = known.iter().map(|(_, (_, most))| *most).min()?;
    let sizes: Vec<u64> = known.iter().map(|(_, (_, most))| *most).collect();
    let names = known.iter().map(|(cell, _)| cell.names.model());
    let sizes: Vec<String> = names.zip(in_words(&sizes)).map(|(name, size)| format!("{name} prints {size}")).collect();
    (least > most).then(|| format!("{}: do they do the same work?", list(&some(sizes.into_iter(), MOST_NAMED))))
}

fn reading(cell: &Cell, most: u64) -> Option<String> {
    let spread = cell.environment.get(STDOUT_READ.name)?;
    let (read, took) = (*spread.get(spread.len() / 2)?, cell.estimate(&LATENCY)?.value);
    let [read_text, took_text] = [read, took].map(|nanos| measured(Unit::Nanoseconds, nanos, None));
    (read >= NOTABLE * took).then(|| {
        let name = cell.names.model();
        format!("Reading {} of output took {read_text} of the {took_text} of {name} (`stdout: pipe`).", bytes(most))
    })
}

/// Sizes in fitting units; in bytes where different ones would look the same.
fn in_words(sizes: &[u64]) -> Vec<String> {
    let short: Vec<String> = sizes.iter().map(|size| bytes(*size)).collect();
    let distinct = |texts: &[String]| texts.iter().collect::<BTreeSet<_>>().len();
    match distinct(&short) == sizes.iter().collect::<BTreeSet<_>>().len() {
        true => short,
        false => sizes.iter().map(|size| format!("{size} B")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::results::Results;

    /// Commands with the least and the most that they print, what reading takes and what they take, in ns.
    fn said(commands: &[(&str, f64, f64, f64, f64)]) -> Vec<String> {
        let mut results = Results::empty();
        for (index, (name, least, most, read, took)) in commands.iter().enumerate() {
            let spread = |value: f64| vec![value];
            let mut cell: Cell = serde_json::from_value(serde_json::json!({
                "id": format!("{index:016x}"), "definition": "", "model": name, "input": "-", "variant": "-", "device": "cpu",
                "runtime": "-", "status": "measured", "threads": 1, "iterations": 1, "completed": 8,
                "metrics": { "latency_ns": { "value": took, "n": 8 } },
            }))
            .expect("a cell");
            cell.environment = [(STDOUT_LEAST, *least), (STDOUT, *most), (STDOUT_READ, *read)]
                .map(|(metric, value)| (metric.name.to_owned(), spread(value)))
                .into();
            results.cells.push(cell);
        }
        sentences(&Reader::new(&results))
    }

    #[test]
    fn output_is_told_where_it_differs_and_reading_where_it_costs() {
        assert!(said(&[("a", 5.0, 5.0, 1e3, 1e6), ("b", 5.0, 5.0, 0.0, 1e6)]).is_empty());
        assert_eq!(
            said(&[("grep", 10_240.0, 12_288.0, 0.0, 1e6), ("awk", 11_000.0, 11_000.0, 0.0, 1e6)]),
            ["The output of grep differs between executions: 10.0 KiB to 12.0 KiB."]
        );
        assert_eq!(
            said(&[("grep", 0.0, 0.0, 0.0, 1e6), ("awk", 3072.0, 3072.0, 0.0, 1e6)]),
            ["grep prints 0 B and awk prints 3.00 KiB: do they do the same work?"]
        );
        assert_eq!(
            said(&[("a", 100_001.0, 100_001.0, 0.0, 1e6), ("b", 100_000.0, 100_000.0, 0.0, 1e6)]),
            ["a prints 100001 B and b prints 100000 B: do they do the same work?"]
        );
        assert_eq!(
            said(&[("cat", 851_443_712.0, 851_443_712.0, 3.04e8, 1.23e9)]),
            ["Reading 812 MiB of output took 304 ms of the 1.23 s of cat (`stdout: pipe`)."]
        );
    }
}
