//! `results.gab.json`: what github-action-benchmark takes as `customSmallerIsBetter`: the latency of each cell.

use serde_json::{Value, json};

use crate::results::{Cell, Results};
use crate::vocabulary::metric::LATENCY;

pub(super) fn text(results: &Results) -> String {
    let one = |cell: &Cell| {
        let found = cell.usable(LATENCY.name)?;
        let extra = format!("{} runs", found.n);
        let mut entry = json!({ "name": cell.names.path(), "unit": "ns", "value": found.value, "extra": extra });
        if let Some((low, high)) = found.low.zip(found.high) {
            // It is shown as it is, behind the value.
            entry["range"] = json!(format!("± {}", ((high - low) / 2.0).round()));
        }
        Some(entry)
    };
    Value::Array(results.cells.iter().filter_map(one).collect()).to_string()
}
