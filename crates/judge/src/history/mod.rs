//! The results of many commits -> a metric of each cell over time, with its change points (method 6.9).
//!
//! Input: results with what is known of their commits, oldest first. Output: one [`History`], as `perfrun history --json`
//! prints it. Pure: where results come from is the command's. Deliberately absent: verdicts on two of them, which are
//! `diff`'s.

mod points;
mod series;

use schemars::JsonSchema;
use serde::Serialize;

use crate::results::{Results, schema_of};
use base::metric::MetricReference;

pub use points::PointSeen;
pub use series::{CONFIDENCE, Change, Series, Value};

/// Version of what `--json` prints.
const FORMAT: u32 = 1;

/// What was measured once.
#[derive(Clone, Debug)]
pub struct Point {
    /// What tables call it: the commit that has it, or `record`.
    pub name: String,
    /// The commit that changed the report; absent of a record that nobody committed.
    pub commit: Option<String>,
    /// What it says.
    pub results: Results,
}

/// A metric of an experiment over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// Version of this form: 1.
    pub format: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// What is shown.
    #[schemars(with = "String")]
    pub metric: MetricReference,
    /// What was measured, oldest first.
    pub points: Vec<PointSeen>,
    /// Each cell's values, in the order of the newest plan.
    pub series: Vec<Series>,
}

/// The JSON Schema of what `history --json` prints, as committed in `schemas/history.schema.json`.
pub fn schema_text() -> String {
    schema_of::<History>()
}

/// A history of points, oldest first, of the cells that are wanted.
pub fn history(
    experiment: &str,
    points: &[Point],
    metric: MetricReference,
    is_wanted: &dyn Fn(&crate::results::Cell) -> bool,
) -> History {
    History {
        format: FORMAT,
        experiment: experiment.to_owned(),
        metric,
        points: points::seen(points),
        series: series::series(points, metric, is_wanted),
    }
}
