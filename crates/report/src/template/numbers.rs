//! Filters over cells of `results`: which numbers may be shown, and how they are rounded.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::{Deserialize, Serialize};

use crate::format::{Column, shown_interval};
use base::metric::{Kind, MetricReference};
use experiment::telling_axes;
use judge::results::{CONFIDENCE, Cell, Estimated};
use statistics::interval::Estimate;

/// A metric of a cell, rounded to what its interval supports.
#[derive(Serialize)]
struct Number {
    name: String,
    value: String,
    plus_minus: Option<String>,
    unit: &'static str,
}

/// A metric of several cells in one unit.
#[derive(Serialize)]
struct NumberColumn {
    heading: String,
    /// `None` where a cell has no such number.
    numbers: Vec<Option<String>>,
}

pub(super) fn add_filters(environment: &mut Environment<'_>) {
    environment.add_filter("path", |cell: Serde<Cell>| cell.path());
    environment.add_filter("estimates", |cell: Serde<Cell>| Value::from(Serde(estimates(&cell))));
    environment.add_filter("numbers", |cell: Serde<Cell>| Value::from(Serde(numbers(&cell))));
    environment.add_filter("with", |cells: Vec<Value>, column: &str| {
        if MetricReference::of_column(column).is_none() {
            let text = format!("`{column}` is no number of results.json");
            return Err(Error::new(ErrorKind::InvalidOperation, text));
        }
        let mut found = Vec::new();
        for value in cells {
            if Cell::deserialize(&value)?.usable(column).is_some() {
                found.push(value);
            }
        }
        Ok(found)
    });
    environment.add_filter("column", |cells: Serde<Vec<Cell>>, metric: &str| {
        let unknown = |error| Error::new(ErrorKind::InvalidOperation, format!("{error}"));
        let reference = MetricReference::named(metric, cells.iter().flat_map(Cell::own_metrics)).map_err(unknown)?;
        Ok::<Value, Error>(Value::from(Serde(number_column(&cells, reference))))
    });
    environment.add_filter("axes", |cells: Serde<Vec<Cell>>| {
        telling_axes(cells.iter().map(|cell| &cell.names)).into_iter().map(|axis| axis.singular()).collect::<Vec<_>>()
    });
}

/// As every page shows them: without an interval over fewer runs than that takes.
fn estimates(cell: &Cell) -> BTreeMap<&str, Estimated> {
    let shown = |column: &String| {
        let mut found = *cell.usable(column)?;
        if shown_interval(&found.estimate(CONFIDENCE)).is_none() {
            (found.low, found.high) = (None, None);
        }
        Some(found)
    };
    cell.metrics.keys().filter_map(|column| Some((column.as_str(), shown(column)?))).collect()
}

fn numbers(cell: &Cell) -> Vec<Number> {
    let number = |(column, found): (&str, Estimated)| {
        let reference = MetricReference::of_column(column).filter(|reference| reference.metric.kind == Kind::Model)?;
        let estimate = found.estimate(CONFIDENCE);
        let column = Column::fit(reference.unit(), [&estimate]);
        let (value, plus_minus) = column.parts(&estimate);
        Some(Number { name: reference.to_string(), value, plus_minus, unit: column.scale.unit })
    };
    estimates(cell).into_iter().filter_map(number).collect()
}

fn number_column(cells: &[Cell], reference: MetricReference) -> Option<NumberColumn> {
    let of_cell = |cell: &Cell| Some(cell.usable(&reference.column())?.estimate(CONFIDENCE));
    let found: Vec<Option<Estimate>> = cells.iter().map(of_cell).collect();
    let column = Column::fit(reference.unit(), found.iter().flatten());
    found.iter().any(Option::is_some).then(|| NumberColumn {
        heading: column.heading(&reference.title()),
        numbers: found.iter().map(|found| found.as_ref().map(|found| column.value(found))).collect(),
    })
}
