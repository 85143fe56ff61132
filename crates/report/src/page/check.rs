//! How to get a number of the report again from the raw samples, without perfrun.

use schemars::JsonSchema;
use serde::Serialize;

use super::Reader;
use crate::format::Column;
use base::metric;
use experiment::Axis;
use statistics::trimmed_mean::trimmed;

/// A query that anybody can repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// The number that it gives: `18.42 ms ± 0.11`.
    pub number: String,
    /// What it gives, and where.
    pub intro: String,
    /// SQL.
    pub query: String,
}

/// The query for the first cell with a number; `None` where there is none, or the samples are not in Parquet yet.
pub(super) fn check(reader: &Reader<'_>) -> Option<Check> {
    let results = reader.results;
    let measured = results.cells.iter().find_map(|cell| Some((cell, cell.estimate(&metric::LATENCY)?)));
    let (cell, estimate) = measured.filter(|_| results.measured.complete)?;
    let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let named = cell.names.iter().filter(|(_, name)| *name != Axis::ABSENT);
    let named: Vec<String> = named.map(|(axis, name)| format!("c.{} = {}", axis.singular(), quoted(name))).collect();
    let ends = trimmed(estimate.n);
    let query = format!(
        "SELECT list_avg(m[{} : {}]) AS latency_ns  -- the 25 % trimmed mean\nFROM (SELECT list_sort(list(median)) AS m FROM (\n  SELECT median(s.dur_ns / r.iterations) AS median\n  FROM 'samples.parquet' s JOIN 'runs.parquet' r ON s.run = r.index JOIN 'cells.parquet' c ON r.cell = c.index\n  WHERE s.phase = {COUNTED} AND r.arm = 'main' AND r.outcome = 'completed'\n    AND {}\n  GROUP BY r.index))",
        ends + 1,
        estimate.n - ends,
        named.join(" AND ")
    );
    let number = Column::fit(metric::LATENCY.unit, [&estimate]).value_with_unit(&estimate);
    let intro =
        format!("DuckDB, in .perfrun/records/{}/{}, for {}:", results.experiment, results.record, reader.path(cell.id));
    Some(Check { number, intro, query })
}

/// The phase of counted samples in `samples.parquet`; late warm-up has a smaller number.
const COUNTED: u32 = 3;
