//! `results.junit.xml`: a test case for each cell and each goal, for dashboards that read nothing else.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::quality::fidelity::OUTPUTS_DIFFER;
use crate::report::format::amount;
use crate::report::template::html as escaped;
use crate::results::{Cell, GoalFound, Results, Status};
use crate::vocabulary::code::Severity;
use crate::vocabulary::metric::{LATENCY, MetricReference};
use crate::vocabulary::printable::printable_line;

/// How a test case ends.
pub(crate) enum Outcome {
    /// With what a reader may want to know.
    Passed(Option<String>),
    Failed(String),
    Skipped(String),
}

/// A test case.
pub(crate) struct Case {
    /// What dashboards group by, with dots between its parts.
    pub class: String,
    pub name: String,
    /// What was timed, if anything was.
    pub seconds: Option<f64>,
    pub outcome: Outcome,
}

pub(super) fn text(results: &Results) -> String {
    let paths: HashMap<&str, String> = results.cells.iter().map(|cell| (cell.id.as_str(), cell.names.path())).collect();
    let cells = results.cells.iter().map(|cell| of_cell(&results.experiment, cell));
    let goals = results.goals.iter().map(|goal| of_goal(&results.experiment, goal, &paths));
    document(&results.experiment, &cells.chain(goals).collect::<Vec<_>>())
}

fn of_cell(experiment: &str, cell: &Cell) -> Case {
    let differs = cell.fidelity.as_ref().is_some_and(|found| !found.passes());
    let misses = || cell.fidelity.iter().flat_map(|found| &found.misses).cloned().collect::<Vec<String>>().join("; ");
    let failure =
        || cell.failures.first().map(|failure| format!("{}: {}", failure.failure.kind.name(), failure.failure.message));
    let outcome = match cell.status {
        Status::Measured if cell.is_invalid() => Outcome::Failed(format!("its numbers are invalid: {}", invalid(cell))),
        Status::Measured if differs => Outcome::Failed(format!("{OUTPUTS_DIFFER}: {}", misses())),
        Status::Measured => Outcome::Passed(None),
        Status::Partial | Status::Failed => Outcome::Failed(failure().unwrap_or_else(|| "runs failed".to_owned())),
        Status::Skipped => Outcome::Skipped(cell.skipped.as_ref().map_or_else(String::new, |skip| skip.reason.clone())),
        Status::NotRun => Outcome::Skipped("not run".to_owned()),
    };
    let seconds = cell.usable(LATENCY.name).map(|found| found.value / 1e9);
    Case { class: format!("{experiment}.cells"), name: cell.names.path(), seconds, outcome }
}

/// The codes that make a cell's numbers invalid.
fn invalid(cell: &Cell) -> String {
    let grave = cell.codes.iter().filter(|(_, seen)| seen.severity == Severity::Invalid);
    grave.map(|(code, _)| code.as_str()).collect::<Vec<&str>>().join(", ")
}

fn of_goal(experiment: &str, goal: &GoalFound, paths: &HashMap<&str, String>) -> Case {
    let unit = goal.metric.parse::<MetricReference>().ok().map(|reference| reference.unit());
    let value = |value: f64| unit.map_or_else(|| value.to_string(), |unit| amount(unit, value));
    let bounds = [goal.min.map(|min| format!(">= {}", value(min))), goal.max.map(|max| format!("<= {}", value(max)))];
    let wanted = format!("{} {}", goal.metric, bounds.into_iter().flatten().collect::<Vec<_>>().join(" and "));
    let open = goal.cells.iter().filter(|cell| cell.outcome != "kept").map(|cell| {
        let name = paths.get(cell.cell.as_str()).map_or(cell.cell.as_str(), String::as_str);
        let found =
            cell.value.map_or_else(|| cell.outcome.clone(), |found| format!("{} ({})", value(found), cell.outcome));
        format!("{name}: {found}")
    });
    let why = || open.collect::<Vec<_>>().join("; ");
    let outcome = match goal.outcome.name() {
        "met" => Outcome::Passed(None),
        "missed" => Outcome::Failed(why()),
        _ => match why() {
            nothing if nothing.is_empty() => Outcome::Skipped("a quick look decides no goal".to_owned()),
            why => Outcome::Skipped(why),
        },
    };
    let name = goal.name.as_ref().map_or_else(|| wanted.clone(), |name| format!("{name}: {wanted}"));
    Case { class: format!("{experiment}.goals"), name, seconds: None, outcome }
}

/// Test cases as one document (the XML that Jenkins' and GitLab's readers take).
pub(crate) fn document(name: &str, cases: &[Case]) -> String {
    let count = |is_it: fn(&Outcome) -> bool| cases.iter().filter(|case| is_it(&case.outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let safe = |text: &str| escaped(&printable_line(text));
    let counts = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\"", cases.len());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing into a String cannot fail.
    let _ = writeln!(text, "<testsuites {counts}>\n<testsuite name=\"{}\" {counts}>", safe(name));
    for case in cases {
        let time = case.seconds.map_or(String::new(), |seconds| format!(" time=\"{seconds:.9}\""));
        let _ = write!(text, "<testcase classname=\"{}\" name=\"{}\"{time}", safe(&case.class), safe(&case.name));
        let _ = match &case.outcome {
            Outcome::Passed(None) => writeln!(text, "/>"),
            Outcome::Passed(Some(words)) => writeln!(text, "><system-out>{}</system-out></testcase>", safe(words)),
            Outcome::Failed(why) => writeln!(text, "><failure message=\"{}\"/></testcase>", safe(why)),
            Outcome::Skipped(why) => writeln!(text, "><skipped message=\"{}\"/></testcase>", safe(why)),
        };
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}
