//! What the runs met on the machine: only what was worth a code, so that a quiet record has nothing here.

use super::{Fact, FactGroup};
use crate::judge::summary::Spread;
use crate::report::Input;
use crate::report::format;
use crate::vocabulary::code::{Code, LIMITS};
use crate::vocabulary::metric::{Metric, Unit};

/// The metrics of the environment that are behind a code of this record; `None` where there is none.
pub(super) fn environment(input: &Input<'_>) -> Option<FactGroup> {
    let fired = |code: Code| input.summary.cells.iter().any(|cell| cell.warnings.contains_key(code.name()));
    let facts: Vec<Fact> = LIMITS
        .iter()
        .filter(|(_, _, code)| fired(*code))
        .filter_map(|(metric, limit, _)| fact(input, metric, *limit))
        .collect();
    (!facts.is_empty()).then(|| FactGroup { title: "During the runs".to_owned(), facts })
}

/// `steal`: `median 0.2 %, up to 3.1 % in mlp/b1/all/cpu`; `None` where no run was above the limit.
fn fact(input: &Input<'_>, metric: &Metric, limit: f64) -> Option<Fact> {
    let plan = &input.manifest.plan;
    let cells = plan.cells.iter().zip(&input.summary.cells);
    let spreads: Vec<(String, &Spread)> = cells
        .filter_map(|(cell, summary)| Some((plan.path(cell), summary.findings.environment.get(metric.name)?)))
        .collect();
    let (path, worst) = spreads.iter().max_by(|(_, one), (_, other)| one.high.total_cmp(&other.high))?;
    let medians: Vec<f64> = spreads.iter().map(|(_, spread)| spread.median).collect();
    let middle = crate::statistics::median(&medians)?;
    let text = format!("median {}, up to {} in {path}", amount(metric, middle), amount(metric, worst.high));
    (worst.high > limit).then(|| Fact::new(metric.title, text))
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
