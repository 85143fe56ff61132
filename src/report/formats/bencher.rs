//! `results.bmf.json`: Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format/>): benchmark ->
//! measure -> value with its bounds.

use serde_json::{Map, Value, json};

use crate::results::{Cell, Results};

pub(super) fn text(results: &Results) -> String {
    let benchmarks = results.cells.iter().map(|cell| (cell.names.path(), measures(cell)));
    let measured = benchmarks.filter(|(_, measures)| !measures.is_empty());
    Value::Object(measured.map(|(name, measures)| (name, Value::Object(measures))).collect()).to_string()
}

fn measures(cell: &Cell) -> Map<String, Value> {
    let measure = |name: &String| {
        let found = cell.usable(name)?;
        let mut value = Map::from_iter([("value".to_owned(), json!(found.value))]);
        value.extend(found.low.map(|low| ("lower_value".to_owned(), json!(low))));
        value.extend(found.high.map(|high| ("upper_value".to_owned(), json!(high))));
        Some((name.clone(), Value::Object(value)))
    };
    cell.metrics.keys().filter_map(measure).collect()
}
