//! What disturbed the runs from outside, in one line: by its cause, in place of a warning for each of its symptoms.
//!
//! Input: what was above its limit on the machine. Output: a fragment, `other processes used 0.60 of a core in 21 of 104
//! runs`; none where nothing did that matters.

use super::Input;
use super::format::{count, percent};
use crate::judge::compare::Comparison;
use crate::judge::summary::{Disturbance, Summary, beside as beside_all};
use crate::machine::host::Host;
use crate::vocabulary::metric::{self, Metric};

/// One run in so many is worth a line; so is whatever weakens a cell.
const RARE: u32 = 20;

/// Causes that are named; more would be a list again.
const MOST_NAMED: usize = 2;

/// What takes a processor away.
const TAKERS: [Metric; 3] = [metric::OTHER_CPU, metric::STEAL, metric::QUOTA_STOPS];

/// What runs whose processor was taken have in common: told where nobody is known to have taken it.
const SYMPTOMS: [Metric; 2] = [metric::PREEMPTIONS, metric::PRESSURE_CPU];

/// The line.
pub(crate) fn cause(input: &Input<'_>) -> Option<String> {
    let host = &input.manifest.host;
    let told = input.summary.disturbances.iter().filter(|found| matters(input, found));
    let (symptoms, mut causes): (Vec<&Disturbance>, Vec<&Disturbance>) =
        told.partition(|found| SYMPTOMS.contains(&found.metric));
    // Those first that a cell is called disturbed for.
    causes.sort_by_key(|found| std::cmp::Reverse((weakens(input, found), found.runs)));
    if !causes.iter().any(|found| TAKERS.contains(&found.metric)) {
        causes.truncate(MOST_NAMED - 1);
        causes.extend(symptoms.into_iter().max_by_key(|found| found.runs));
    }
    causes.truncate(MOST_NAMED);
    let parts: Vec<String> = causes
        .iter()
        .map(|found| Some(format!("{} in {} of {}", what(found, host)?, found.runs, count(found.of.into(), "run"))))
        .collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether it disturbed a run in twenty, or weakens a cell.
fn matters(input: &Input<'_>, found: &Disturbance) -> bool {
    found.code.is_disturbance() && (found.runs >= (found.of / RARE).max(1) || weakens(input, found))
}

/// Whether a cell's number may be another for it.
fn weakens(input: &Input<'_>, found: &Disturbance) -> bool {
    input.summary.cells.iter().any(|cell| cell.codes().contains_key(found.code.name()))
}

/// What was done to the runs, and how much of it to a typical one of these.
fn what(found: &Disturbance, host: &Host) -> Option<String> {
    let amount = found.typical;
    Some(match found.metric {
        metric::OTHER_CPU => match host.processors() {
            Some(processors) => format!("other processes used {}", cores(amount * processors as f64)),
            None => format!("other processes used {} of the processors", percent(amount)),
        },
        metric::STEAL => format!("the hypervisor took {} of the processors", percent(amount)),
        metric::THROTTLE_EVENTS => "the processor throttled".to_owned(),
        metric::CLOCK_CHANGE => format!("the clock changed by {}", percent(amount)),
        metric::QUOTA_STOPS => format!("the quota ran out {}", count(amount as u64, "time")),
        metric::SWAPPED_PAGES => format!("{} moved between memory and swap", count(amount as u64, "page")),
        metric::MEMORY_LIMIT_EVENTS => format!("the memory limit was reached {}", count(amount as u64, "time")),
        metric::MAJOR_FAULTS => format!("the worker waited for {} from the disk", count(amount as u64, "page")),
        metric::PREEMPTIONS => format!("worker threads were preempted {amount:.0} times a second"),
        metric::PRESSURE_CPU => format!("tasks waited for a processor for {} of the time", percent(amount)),
        metric::GPU_HEAT => format!("the GPU was throttled by heat in {} of the readings", percent(amount)),
        metric::GPU_POWER_CAPPED => {
            format!("the GPU was throttled by its power limit in {} of the readings", percent(amount))
        }
        metric::GPU_CLOCK_CHANGE => format!("the GPU's clock changed by {}", percent(amount)),
        metric::GPU_OTHERS => format!("other processes used {} of the GPU", percent(amount)),
        metric::GPU_OTHERS_MEMORY => format!("other processes held {} of the GPU's memory", percent(amount)),
        // Of the set-up of a cell, not of what happened to it.
        _ => return None,
    })
}

/// `0.60 of a core`, `1.4 cores`.
fn cores(cores: f64) -> String {
    if cores < 0.995 { format!("{cores:.2} of a core") } else { format!("{cores:.1} cores") }
}

/// `beside other load (0.98 of a core)`: for what a number or an answer holds.
pub(crate) fn beside(used: f64) -> String {
    format!("beside other load ({})", cores(used))
}

/// A verdict of a table with the condition for which it holds: `1.18x [1.17, 1.19] faster (other load)`.
pub(crate) fn conditional(verdict: String, summary: &Summary, comparison: &Comparison) -> String {
    let is_claimed = comparison.interval.is_some() && comparison.withheld.is_none();
    match is_claimed && summary.beside([comparison.cell, comparison.baseline]).is_some() {
        true => format!("{verdict} (other load)"),
        false => verdict,
    }
}

/// For what the record holds, a sentence; nothing where most of its runs had the machine for themselves.
pub(crate) fn condition(input: &Input<'_>) -> Option<String> {
    let used = cores(beside_all(&input.summary.cells)?);
    Some(format!(
        "Most runs met other load ({used}), so times, verdicts and answers hold beside that load, and a quiet machine may give others."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::code::LIMITS;

    #[test]
    fn cores_are_parts_of_one_or_several() {
        assert_eq!((cores(0.6).as_str(), cores(1.4).as_str()), ("0.60 of a core", "1.4 cores"));
        assert_eq!((cores(0.996).as_str(), beside(0.98).as_str()), ("1.0 cores", "beside other load (0.98 of a core)"));
    }

    #[test]
    fn every_disturbance_has_words() {
        let host = crate::machine::host::describe();
        for (metric, limit, code) in LIMITS {
            let found = Disturbance {
                metric,
                limit,
                code,
                runs: 1,
                of: 1,
                typical: limit + 1.0,
                median: 0.0,
                worst: limit + 1.0,
                worst_cell: 0,
            };
            assert_eq!(what(&found, &host).is_some(), code.is_disturbance(), "{}", metric.name);
        }
    }
}
