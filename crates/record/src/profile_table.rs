//! `profile.parquet`: what each node took in each profiled process, one row each. There where a cell was profiled.
//!
//! Deliberately absent: reading it back. perfrun reads `passes/profile.json`, which says the same.

use super::Record;
use super::profiled::{CellProfile, ProfiledNode};
use table::{Table, TableError, Values};

pub(super) const FILE: &str = "profile.parquet";

/// A row: a node of a cell in the process of this index.
type Row<'a> = (&'a CellProfile, &'a ProfiledNode, usize);

/// All nodes of all cells; `None` where there are none.
pub(super) fn table(record: &Record) -> Result<Option<Table>, TableError> {
    let cells = record.manifest.findings.profile.iter().flat_map(|found| &found.cells);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for cell in cells {
        rows.extend(
            cell.nodes.iter().flat_map(|node| (0..cell.processes.len()).map(move |process| (cell, node, process))),
        );
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let text = |read: fn(&Row<'_>) -> String| -> Values { rows.iter().map(read).collect::<Vec<String>>().into() };
    let number = |read: fn(&Row<'_>) -> Option<f64>| -> Values { rows.iter().map(read).collect::<Vec<_>>().into() };
    let whole = |read: fn(&Row<'_>) -> Option<u64>| -> Values { rows.iter().map(read).collect::<Vec<_>>().into() };
    let index = |read: fn(&Row<'_>) -> u32| -> Values { rows.iter().map(read).collect::<Vec<u32>>().into() };
    let columns: [(&str, Values); 15] = [
        ("cell", index(|(cell, ..)| cell.cell)),
        ("process", index(|(cell, _, process)| cell.processes[*process])),
        ("node", text(|(_, node, _)| node.node.path.clone())),
        ("operator", text(|(_, node, _)| node.node.operator.clone())),
        ("provider", text(|(_, node, _)| node.node.provider.clone())),
        ("inputs", text(|(_, node, _)| node.node.inputs.join(" "))),
        ("outputs", text(|(_, node, _)| node.node.outputs.join(" "))),
        ("output_bytes", whole(|(_, node, _)| Some(node.node.output_bytes))),
        ("parameter_bytes", whole(|(_, node, _)| Some(node.node.parameter_bytes))),
        ("live_bytes", whole(|(_, node, _)| node.node.live_bytes)),
        ("executions", number(|(_, node, _)| Some(node.executions))),
        ("self_ns", number(|(_, node, process)| node.self_ns.get(*process).copied().flatten())),
        ("total_us", number(|(_, node, process)| node.total_us.get(*process).copied())),
        ("plain_ns", number(|(cell, _, process)| cell.plain_ns.get(*process).copied())),
        ("profiled_ns", number(|(cell, _, process)| cell.profiled_ns.get(*process).copied())),
    ];
    Table::of(columns).map(Some)
}
