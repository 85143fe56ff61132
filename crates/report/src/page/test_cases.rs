//! Results as test cases, for dashboards that read nothing else: one for each cell and each goal.

use schemars::JsonSchema;
use serde::Serialize;

use super::Reader;
use crate::format::amount;
use crate::mark::claimed;
use base::code::Severity;
use base::metric::LATENCY;
use judge::results::{BoundOutcome, Cell, GoalCheck, GoalOutcome, Status};
use quality::fidelity::OUTPUTS_DIFFER;

/// A test case.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TestCase {
    /// What dashboards group by, with dots between its parts.
    pub class: String,
    /// The cell, or the goal.
    pub name: String,
    /// What was timed, in seconds; `None` where nothing was.
    pub seconds: Option<String>,
    /// How it ended.
    pub outcome: TestOutcome,
    /// Why; what a reader may want to know.
    pub message: Option<String>,
}

/// How a test case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// As wanted.
    Passed,
    /// Not as wanted.
    Failed,
    /// Undecided, or not run.
    Skipped,
}

pub(super) fn cases(reader: &Reader<'_>) -> Vec<TestCase> {
    let results = reader.results;
    let cells = results.cells.iter().map(|cell| of_cell(&results.experiment, cell));
    cells.chain(results.goals.iter().map(|goal| of_goal(reader, goal))).collect()
}

fn of_cell(experiment: &str, cell: &Cell) -> TestCase {
    let differs = cell.fidelity.as_ref().filter(|found| !found.passes());
    let failure = || {
        let first =
            cell.failures.first().map(|first| format!("{}: {}", first.failure.kind.name(), first.failure.message));
        first.unwrap_or_else(|| "runs failed".to_owned())
    };
    let (outcome, message) = match (cell.status, differs) {
        (Status::Measured, _) if cell.is_invalid() => {
            (TestOutcome::Failed, Some(format!("its numbers are invalid: {}", invalid(cell))))
        }
        (Status::Measured, Some(differs)) => {
            (TestOutcome::Failed, Some(format!("{OUTPUTS_DIFFER}: {}", differs.misses.join("; "))))
        }
        (Status::Measured, None) => (TestOutcome::Passed, None),
        (Status::Partial | Status::Failed, _) => (TestOutcome::Failed, Some(failure())),
        (Status::Skipped, _) => {
            (TestOutcome::Skipped, Some(cell.skipped.as_ref().map_or_else(String::new, |skip| skip.reason.clone())))
        }
        (Status::NotRun, _) => (TestOutcome::Skipped, Some("not run".to_owned())),
    };
    let seconds = cell.usable(LATENCY.name).map(|found| format!("{:.9}", found.value / 1e9));
    TestCase { class: format!("{experiment}.cells"), name: cell.path(), seconds, outcome, message }
}

/// The codes that make a cell's numbers invalid.
fn invalid(cell: &Cell) -> String {
    let grave = cell.codes.iter().filter(|(_, seen)| seen.severity == Severity::Invalid);
    grave.map(|(code, _)| code.as_str()).collect::<Vec<&str>>().join(", ")
}

fn of_goal(reader: &Reader<'_>, goal: &GoalCheck) -> TestCase {
    let check = &goal.check;
    let value = |value: f64| amount(check.metric.unit(), value);
    let bounds = [check.min.map(|min| format!(">= {}", value(min))), check.max.map(|max| format!("<= {}", value(max)))];
    let wanted = format!("{} {}", check.metric, bounds.into_iter().flatten().collect::<Vec<_>>().join(" and "));
    let open = check.cells.iter().filter(|cell| cell.outcome != BoundOutcome::Kept).map(|cell| {
        let found = cell.value.map_or_else(
            || cell.outcome.name().to_owned(),
            |found| format!("{} ({})", value(found), cell.outcome.name()),
        );
        claimed(format!("{}: {found}", reader.path(cell.cell)))
    });
    let why = open.collect::<Vec<_>>().join("; ");
    let (outcome, message) = match goal.outcome {
        GoalOutcome::Met => (TestOutcome::Passed, None),
        GoalOutcome::Missed => (TestOutcome::Failed, Some(why)),
        GoalOutcome::Undecided if why.is_empty() => {
            (TestOutcome::Skipped, Some("a quick look decides no goal".to_owned()))
        }
        GoalOutcome::Undecided => (TestOutcome::Skipped, Some(why)),
    };
    let name = goal.name.as_ref().map_or_else(|| wanted.clone(), |name| format!("{name}: {wanted}"));
    TestCase { class: format!("{}.goals", reader.results.experiment), name, seconds: None, outcome, message }
}
