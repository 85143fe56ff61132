//! When to print that work goes on, because nothing else was printed for a while.
//!
//! Input: what was begun and what was said. Output: whether a line is due: after a while, then after twice the time, so that
//! hours of work have a dozen lines. Deliberately absent: printing.

use std::time::{Duration, Instant};

use crate::run::event::Event;

/// Nothing is missed for so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// What is going on, and since when nothing was said of it.
#[derive(Debug)]
pub(super) struct Quiet {
    /// What stands before the line.
    pub(super) label: &'static str,
    since: Instant,
    /// How long it may be quiet.
    patience: Duration,
}

impl Quiet {
    /// From now on.
    pub(super) fn new() -> Self {
        Quiet { label: "", since: Instant::now(), patience: PATIENCE }
    }

    /// Takes an event into account.
    pub(super) fn hear(&mut self, event: &Event<'_>) {
        self.label = match event {
            Event::PassBegan { pass } => label(pass),
            Event::Planned { .. } => "running",
            Event::Profiling { done: 0, .. } | Event::TryingTogether { done: 0, .. } => self.label,
            // These have a bar, which stands on a terminal alone.
            Event::Tick
            | Event::Converting { .. }
            | Event::BatchTried { .. }
            | Event::Rehearsed { .. }
            | Event::Scoring { .. }
            | Event::TryingTogether { .. }
            | Event::RunEnded { .. }
            | Event::Profiling { .. } => return,
            _ => self.label,
        };
        (self.since, self.patience) = (Instant::now(), PATIENCE);
    }

    /// How long nothing was said, where a line should say so now.
    pub(super) fn overdue(&mut self) -> Option<Duration> {
        let quiet = self.since.elapsed();
        self.is_overdue(quiet).then_some(quiet)
    }

    fn is_overdue(&mut self, quiet: Duration) -> bool {
        let is_overdue = quiet >= self.patience;
        if is_overdue {
            self.patience *= 2;
        }
        is_overdue
    }
}

/// What stands before a line about a pass.
fn label(pass: &'static str) -> &'static str {
    match pass {
        "convert" => "converting",
        "search" => "searching",
        "rates" => "rate",
        "peak" => "roofline",
        "requirements" => "require",
        "side_by_side" => "parallel",
        "profile" => "profiling",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rarer_until_something_is_said() {
        let mut quiet = Quiet::new();
        quiet.hear(&Event::PassBegan { pass: "peak" });
        assert_eq!(quiet.label, "roofline");
        let due: Vec<u64> = (1..=130).filter(|second| quiet.is_overdue(Duration::from_secs(*second))).collect();
        assert_eq!(due, [15, 30, 60, 120]);
        quiet.hear(&Event::Tick);
        assert!(!quiet.is_overdue(Duration::from_secs(130)));
        quiet.hear(&Event::SettingUp { text: "make" });
        assert!(quiet.is_overdue(Duration::from_secs(15)));
    }
}
