//! `pareto`: metrics that are weighed against each other.

use std::collections::HashSet;

use super::metric;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::MetricText;
use base::metric::MetricReference;

/// Reads `pareto`.
pub(super) fn expand(texts: &[MetricText], check: &mut Check<'_>) -> Vec<MetricReference> {
    let mut metrics = Vec::with_capacity(texts.len());
    let mut seen = HashSet::new();
    for (index, text) in texts.iter().enumerate() {
        let place = DocumentPath::top("pareto").index(index);
        let Some(reference) = metric::reference(text, &place, check) else { continue };
        metric::check_direction(reference, &place, check);
        if !seen.insert(reference.to_string()) {
            check.error(&place, format!("`{reference}` is listed twice"), None);
        }
        if reference.is_speedup() {
            let hint = "name the metric itself: `latency`".to_owned();
            check.error(&place, "a speed-up adds nothing to the metric that it is computed from".to_owned(), hint);
        }
        metrics.push(reference);
    }
    metrics
}

/// The metrics with their places.
pub(super) fn places(metrics: &[MetricReference]) -> impl Iterator<Item = (DocumentPath, MetricReference)> {
    metrics.iter().enumerate().map(|(index, metric)| (DocumentPath::top("pareto").index(index), *metric))
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, problems};
    use experiment::Stop;

    #[test]
    fn metrics_are_read_and_a_tail_asks_for_samples() {
        let experiment = mock("variants: [a, b]\npareto: [latency.p95, peak_rss, items]");
        let names: Vec<String> = experiment.pareto.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["latency.p95", "peak_rss", "items"]);
        assert!(matches!(experiment.measure.stop, Stop::Precision(experiment::PrecisionStop { min_samples: 72, .. })));
        assert!(mock("variants: [a, b]").pareto.is_empty());
    }

    #[test]
    fn what_cannot_be_weighed_is_refused() {
        let messages = |text: &str| problems(&format!("variants: [a, b]\npareto: {text}"));
        assert_eq!(messages("[latency, latency]"), ["`latency` is listed twice"]);
        assert_eq!(messages("[latency, speedup]"), ["a speed-up adds nothing to the metric that it is computed from"]);
        assert!(messages("[latency, input_pool]")[0].contains("no better direction"));
        assert!(messages("[latency, latncy]")[0].contains("latncy"));
        assert_eq!(messages("[latency]").len(), 1);
    }
}
