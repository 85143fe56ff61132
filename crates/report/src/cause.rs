//! What disturbed the runs from outside, in one line: by its cause, instead of a warning for each of its symptoms.

use super::format::percent;
use base::code;
use base::metric::{self, Metric};
use base::wording::count;
use judge::results::{Disturbed, Results, background_load};

/// One run in so many is worth a line; so is whatever weakens a cell.
const RARE: u32 = 20;

/// Causes that are named; more would be a list again.
const MOST_NAMED: usize = 2;

/// What takes a processor away.
const TAKERS: [Metric; 3] = [metric::OTHER_CPU, metric::STEAL, metric::QUOTA_STOPS];

/// Signs that a processor was taken, reported where it is not known by what.
const SYMPTOMS: [Metric; 2] = [metric::PREEMPTIONS, metric::PRESSURE_CPU];

/// `other processes used 0.60 of a core in 21 of 104 runs`; `None` where nothing disturbed the runs that matters.
pub fn cause(results: &Results) -> Option<String> {
    let mattering = results.disturbances.iter().filter(|found| matters(results, found));
    let is_one_of = |metrics: &[Metric], found: &Disturbed| metrics.iter().any(|metric| metric.name == found.metric);
    let (symptoms, mut causes): (Vec<&Disturbed>, Vec<&Disturbed>) =
        mattering.partition(|found| is_one_of(&SYMPTOMS, found));
    // Those first that a cell is called disturbed for.
    causes.sort_by_key(|found| std::cmp::Reverse((weakens(results, found), found.runs)));
    if !causes.iter().any(|found| is_one_of(&TAKERS, found)) {
        causes.truncate(MOST_NAMED - 1);
        causes.extend(symptoms.into_iter().max_by_key(|found| found.runs));
    }
    causes.truncate(MOST_NAMED);
    let words = |found: &&Disturbed| {
        let what = what(found, results.measured.processors)?;
        Some(format!("{what} in {} of {}", found.runs, count(found.of.into(), "run")))
    };
    let parts: Vec<String> = causes.iter().map(words).collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Whether it disturbed a run in twenty, or weakens a cell.
fn matters(results: &Results, found: &Disturbed) -> bool {
    code::is_disturbance(&found.code) && (found.runs >= (found.of / RARE).max(1) || weakens(results, found))
}

/// Whether a cell's number may be another for it.
fn weakens(results: &Results, found: &Disturbed) -> bool {
    results.cells.iter().any(|cell| cell.codes.contains_key(&found.code))
}

/// What was done to the runs, and how much of it to a typical one of these.
fn what(found: &Disturbed, processors: Option<u64>) -> Option<String> {
    let amount = found.typical;
    Some(match *metric::by_name(&found.metric)? {
        metric::OTHER_CPU => match processors {
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

/// `under background load (0.98 of a core)`: for what a number or an answer holds.
pub(crate) fn under_background_load(used: f64) -> String {
    format!("under background load ({})", cores(used))
}

/// A verdict with the condition for which it holds: `1.18x [1.17, 1.19] faster (background load)`.
pub(crate) fn conditional(verdict: String, has_load: bool) -> String {
    if has_load { format!("{verdict} (background load)") } else { verdict }
}

/// For what the record holds, a sentence; nothing where most of its runs had the machine for themselves.
pub(crate) fn condition(results: &Results) -> Option<String> {
    let used = cores(background_load(&results.cells)?);
    Some(format!(
        "Most runs met background load ({used}), so times, verdicts and answers hold under that load, and may differ on a quiet machine."
    ))
}
