//! What each shard of a matrix measures, and for how long.

use super::time::about;
use crate::ui::cli::Shard;
use crate::ui::table;
use plan::TimeRange;
use report::format::percent;
use report::page::{Table, TableCell, TableColumn, TableRow};

/// A shard before it is measured.
#[derive(Clone, Debug)]
pub struct PlannedShard {
    pub shard: Shard,
    /// Cells that are run.
    pub cells: usize,
    /// How long that takes on a machine like this one; nothing where times are scripted.
    pub time: Option<TimeRange>,
}

/// A table, and by how much the longest is longer than the shortest.
pub(crate) fn describe_shards(shards: &[PlannedShard], width: usize) -> String {
    let mut columns = vec![TableColumn::text("shard"), TableColumn::number("cells")];
    columns.extend(shards.iter().any(|planned| planned.time.is_some()).then(|| TableColumn::text("time")));
    let row = |planned: &PlannedShard| {
        let texts = [Some(planned.shard.to_string()), Some(planned.cells.to_string()), planned.time.map(about)];
        texts.into_iter().flatten().map(TableCell::from).collect::<TableRow>()
    };
    let overview = Table::of(columns, shards.iter().map(row));
    let table = table::render(&overview, width.saturating_sub(2));
    let lines: Vec<String> = table.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
    format!("\nshards\n{}\n{}", lines.join("\n"), difference(shards).unwrap_or_default())
}

/// Only where it is worth a word.
fn difference(shards: &[PlannedShard]) -> Option<String> {
    const SMALL: f64 = 0.1;
    let times = || shards.iter().filter_map(|planned| Some(planned.time?.typical().0));
    let (least, most) = (times().min()?, times().max()?);
    let more = most as f64 / least.max(1) as f64 - 1.0;
    (more > SMALL).then(|| {
        format!(
            "  the longest takes {} longer than the shortest: cells that are compared stay together\n",
            percent(more)
        )
    })
}
