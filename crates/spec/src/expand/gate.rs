//! `gate`: what may not become worse from one commit to the next.

use super::{metric, selection};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::GateForm;
use base::metric::{Difference, MetricReference, Statistic};
use base::quantity::QuantityError;
use experiment::{Gate, Space};

/// Reads the gates.
pub(super) fn expand(forms: &[GateForm], axes: &Space, check: &mut Check<'_>) -> Vec<Gate> {
    let vocabulary = axes.vocabulary();
    let mut gates: Vec<Gate> = Vec::with_capacity(forms.len());
    for (index, form) in forms.iter().enumerate() {
        let place = top().index(index);
        let of = form.of.as_ref().map(|form| selection::expand(form, &place.key("where"), &vocabulary, check));
        let Some(reference) = metric::reference(&form.metric, &place.key("metric"), check) else { continue };
        metric::check_direction(reference, &place.key("metric"), check);
        if reference.statistic == Statistic::CoefficientOfVariation {
            let hint = format!("gate `{}.stddev`", reference.metric.stem());
            check.error(&place.key("metric"), "a coefficient of variation is made of two numbers of a run", hint);
        }
        if reference.is_speedup() {
            let hint = "gate the metric itself: `latency`".to_owned();
            check.error(&place.key("metric"), "a speed-up is no metric of a cell, and gates are on cells", hint);
        }
        let worse_by = match Difference::read(&form.worse_by.0, reference) {
            Ok(difference) => difference,
            Err(error) => {
                let message = format!("`worse_by` is `{}`, which is no difference in `{reference}`", form.worse_by.0);
                check.error(&place.key("worse_by"), message, hint(&error, reference));
                continue;
            }
        };
        let of = of.unwrap_or_default();
        if gates.iter().any(|other| other.metric == reference && other.of == of) {
            check.error(&place, format!("there are two gates on `{reference}` for the same cells"), None);
        }
        gates.push(Gate { metric: reference, worse_by, of, fails_undecided: form.fail_undecided });
    }
    gates
}

fn hint(error: &QuantityError, reference: MetricReference) -> String {
    match error {
        QuantityError::Malformed { example, what: "difference", .. } => format!("write {example}"),
        _ => format!("write for example `5%`, or a value such as `{}`", metric::example(reference)),
    }
}

/// Every metric that is gated, with its place.
pub(super) fn references(gates: &[Gate]) -> impl Iterator<Item = (DocumentPath, MetricReference)> {
    gates.iter().enumerate().map(|(index, gate)| (top().index(index).key("metric"), gate.metric))
}

fn top() -> DocumentPath {
    DocumentPath::top("gate")
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, problems};
    use base::metric::Difference;
    use experiment::Stop;

    #[test]
    fn differences_are_relative_or_absolute_and_a_tail_asks_for_samples() {
        let experiment = mock("gate: [{ metric: latency.p95, worse_by: 5% }, { metric: peak_rss, worse_by: 1MiB }]");
        let found: Vec<Difference> = experiment.gate.iter().map(|gate| gate.worse_by).collect();
        assert_eq!(found, [Difference::Relative(0.05), Difference::Absolute(1_048_576.0)]);
        assert!(matches!(experiment.measure.stop, Stop::Precision(experiment::PrecisionStop { min_samples: 72, .. })));
    }

    #[test]
    fn what_cannot_be_gated_is_refused() {
        let messages = |gate: &str| problems(&format!("gate: [{gate}]"));
        assert!(messages("{ metric: latency, worse_by: 5pp }")[0].contains("no difference in `latency`"));
        assert!(messages("{ metric: latency, worse_by: 5 }")[0].contains("no difference in `latency`"));
        assert!(messages("{ metric: speedup, worse_by: 5% }")[0].contains("no metric of a cell"));
        assert!(messages("{ metric: input_pool, worse_by: 5% }")[0].contains("no better direction"));
        assert!(messages("{ metric: latency, worse_by: 5%, where: { variant: nope } }")[0].contains("nope"));
        let twice = "{ metric: latency, worse_by: 5% }, { metric: latency, worse_by: 6% }";
        assert_eq!(messages(twice), ["there are two gates on `latency` for the same cells"]);
    }
}
