//! Whether cells of different devices ran at the same time, in words; the terminal and the page say the same.

use std::cmp::Ordering;

use crate::format::{list, percent, ratio};
use judge::results::{ConcurrentCell, Together, interval};
use plan::CellId;

/// `cpu and webgpu: cells run at the same time; their values are within 0.8 % of those measured alone (8 blocks)`.
pub fn found(trial: &Together, path: &dyn Fn(CellId) -> String) -> String {
    let devices = list(&trial.devices);
    if let Some(problem) = &trial.problem {
        return format!("{devices}: not at the same time; {problem}");
    }
    let blocks = trial.tried.iter().map(|tried| tried.ratio.n).max().unwrap_or(0);
    if trial.holds {
        let most = |change: fn(f64) -> f64| {
            let ends = trial
                .tried
                .iter()
                .filter_map(|tried| tried.ratio.low.into_iter().chain(tried.ratio.high).map(change).reduce(f64::max));
            ends.reduce(f64::max).unwrap_or(0.0)
        };
        let apart = percent(most(|ratio| (ratio - 1.0).abs()));
        return format!(
            "{devices}: cells run at the same time; their values are within {apart} of those measured alone ({blocks} blocks)"
        );
    }
    let open = trial.tried.iter().filter(|tried| !tried.verdict.is_equivalent());
    // What was decided says more than what is open, however large.
    let rank = |tried: &&ConcurrentCell| (tried.verdict.is_difference(), tried.ratio.value.ln().abs());
    let worst = open.max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal));
    let worst = worst.map_or(String::new(), |tried| {
        let took = ratio(tried.ratio.value, interval(tried.ratio.low, tried.ratio.high));
        format!("; run together, {} of {} is {took} of that alone ({blocks} blocks)", tried.metric, path(tried.cell))
    });
    format!("{devices}: not at the same time{worst}")
}
