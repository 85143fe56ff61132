//! The first screen where nothing is compared: what each cell takes, in place of an answer.

use super::subject::{Subject, short_title};
use super::{Fact, Reader, outputs};
use crate::format::{self, Column};
use base::metric::{DEVICE_MEMORY, ITEMS, LATENCY, MODEL_SIZE, Metric, MetricReference, PEAK_RSS};
use judge::results::Cell;

/// A large line for each of a few cells; none where there are more, or where one has no latency of its own.
pub(super) fn subjects(reader: &Reader<'_>, most: usize) -> Vec<Subject> {
    let cells = reader.shown();
    let has_latency = |cell: &&Cell| cell.estimate(&LATENCY).is_some() && cell.load.is_none() && !cell.is_invalid();
    if cells.len() > most || !cells.iter().all(has_latency) {
        return Vec::new();
    }
    let several = cells.len() > 1;
    let subject = |cell: &&Cell| Subject {
        name: if several { reader.short_path(cell.id) } else { String::new() },
        choice: measured(cell, &LATENCY).unwrap_or_default(),
        facts: facts(reader, cell),
        ..Subject::default()
    };
    cells.iter().map(subject).collect()
}

fn facts(reader: &Reader<'_>, cell: &Cell) -> Vec<Fact> {
    let memory = [&DEVICE_MEMORY, &PEAK_RSS].into_iter().find(|metric| cell.estimate(metric).is_some());
    let memory_title = memory.map_or_else(String::new, |metric| short_title(MetricReference::of(metric)));
    let file = cell.estimate(&MODEL_SIZE).map(|size| format::bytes(size.value as u64));
    let facts = [
        (reader.items(), measured(cell, &ITEMS)),
        ("accuracy", outputs::cost(reader, cell)),
        (memory_title.as_str(), memory.and_then(|metric| measured(cell, metric))),
        ("file", file),
    ];
    facts.into_iter().filter_map(|(name, value)| Some(Fact { name: name.to_owned(), value: value? })).collect()
}

/// `23.0 us ± 0.6`
fn measured(cell: &Cell, metric: &'static Metric) -> Option<String> {
    let estimate = cell.estimate(metric)?;
    Some(Column::fit(metric.unit, [&estimate]).value_with_unit(&estimate))
}
