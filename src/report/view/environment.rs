//! What the runs met on the machine: only what was above its limit, so that a quiet record has nothing here.

use super::{Fact, FactGroup};
use crate::judge::summary::Disturbance;
use crate::report::Input;
use crate::report::format::{self, count};
use crate::vocabulary::metric::{Metric, Unit};

/// What was above its limit in some run; `None` where nothing was.
pub(super) fn environment(input: &Input<'_>) -> Option<FactGroup> {
    let facts: Vec<Fact> = input.summary.disturbances.iter().map(|found| fact(input, found)).collect();
    (!facts.is_empty()).then(|| FactGroup { title: "During the runs".to_owned(), facts })
}

/// `steal (W_STEAL)`: `above 0.5 % in 3 of 120 runs; median 0.2 %, up to 3.1 % in mlp/b1/all/cpu`.
fn fact(input: &Input<'_>, found: &Disturbance) -> Fact {
    let plan = &input.manifest.plan;
    let Disturbance { metric, limit, code, runs, of, median, worst, worst_cell, .. } = found;
    let above = if *limit > 0.0 { format!("above {} ", amount(metric, *limit)) } else { String::new() };
    let path = plan.path(&plan.cells[*worst_cell]);
    let text = format!(
        "{above}in {runs} of {}; median {}, up to {} in {path}",
        count(u64::from(*of), "run"),
        amount(metric, *median),
        amount(metric, *worst)
    );
    Fact::new(format!("{} ({code})", metric.title), text)
}

fn amount(metric: &Metric, value: f64) -> String {
    match metric.unit {
        Unit::Ratio | Unit::Share => format::percent(value),
        Unit::PerSecond if value < 1e3 => format!("{value:.1}/s"),
        Unit::PerSecond => format!("{value:.2e}/s"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::metric;

    #[test]
    fn amounts_have_the_unit_of_their_metric() {
        assert_eq!(amount(&metric::STEAL, 0.0312), "3.1 %");
        assert_eq!(amount(&metric::PREEMPTIONS, 12.34), "12.3/s");
        assert_eq!(amount(&metric::MAJOR_FAULTS, 3.0), "3");
    }
}
