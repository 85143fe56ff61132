//! How to get a number of the report again from the raw samples, without perfrun.

use statistics::middle_half::trimmed;

use super::CheckView;
use crate::experiment::Axis;
use crate::report::Input;
use crate::report::format::Column;
use crate::vocabulary::metric;

/// The query for the first cell with a number; `None` where there is none, or the samples are not in Parquet yet.
pub(super) fn check(input: &Input<'_>) -> Option<CheckView> {
    let manifest = input.manifest;
    let plan = &manifest.plan;
    let (cell, estimate) = plan
        .cells
        .iter()
        .zip(&input.summary.cells)
        .find_map(|(cell, summary)| Some((cell, summary.estimate(&metric::LATENCY)?)))
        .filter(|_| manifest.findings.complete)?;
    let coordinates = plan.coordinates(cell);
    let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let condition = |(axis, name): (Axis, &str)| format!("c.{} = {}", axis.singular(), quoted(name));
    let named: Vec<String> = coordinates.present().map(condition).collect();
    let ends = trimmed(estimate.n);
    let query = format!(
        "SELECT list_avg(m[{} : {}]) AS latency_ns  -- the middle half\nFROM (SELECT list_sort(list(median)) AS m FROM (\n  SELECT median(s.dur_ns / r.iterations) AS median\n  FROM 'samples.parquet' s JOIN 'runs.parquet' r ON s.run = r.index JOIN 'cells.parquet' c ON r.cell = c.index\n  WHERE s.phase = {COUNTED} AND r.arm = 'main' AND r.outcome = 'completed'\n    AND {}\n  GROUP BY r.index))",
        ends + 1,
        estimate.n - ends,
        named.join(" AND ")
    );
    let shown = Column::fit(metric::LATENCY.unit, [estimate]).value_with_unit(estimate);
    let intro = format!(
        "In the record's folder (.perfrun/records/{}/{}), DuckDB gives the latency of {} in nanoseconds, {shown} above:",
        manifest.experiment.name,
        manifest.record,
        plan.path(cell)
    );
    Some(CheckView { number: shown, intro, query })
}

/// The phase of counted samples in `samples.parquet`; late warm-up has a smaller number.
const COUNTED: u32 = 3;
