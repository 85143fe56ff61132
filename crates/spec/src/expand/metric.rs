//! The metrics that a specification declares, references to metrics, and values in their units.

use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{Better, BoundText, DatasetForm, ExperimentForm, MetricText, ModelEntry};
use base::metric::{
    Direction, METRICS, Metric, MetricReference, OwnMetric, ReferenceError, ReportedBy, SPEEDUP, Statistic, Unit,
    ValueKind, read_value,
};
use base::quantity::QuantityError;
use experiment::{Compare, Space};
use reading::nearest::{list, nearest, suggestion};

/// Declares the metrics of a specification. Those that a dataset lists are what its `score` command prints.
pub(super) fn declare(form: &ExperimentForm, check: &mut Check<'_>) {
    let of_model = |entry: &ModelEntry| match entry {
        ModelEntry::Form(form) => form.dataset.clone(),
        ModelEntry::Path(_) => None,
    };
    let datasets: Vec<DatasetForm> =
        form.models.as_slice().iter().filter_map(of_model).chain(form.dataset.clone()).collect();
    for (name, form) in &form.metrics.0 {
        let place = DocumentPath::top("metrics").key(name);
        let direction = match form.better {
            Some(Better::Higher) => Direction::HigherIsBetter,
            Some(Better::Lower) => Direction::LowerIsBetter,
            None => Direction::Neutral,
        };
        let is_score = datasets.iter().any(|dataset| dataset.metrics.contains(name));
        let reported_by = if is_score { ReportedBy::Cell } else { ReportedBy::EachRun };
        match OwnMetric::declare(name, form.unit.as_deref(), direction, reported_by) {
            Ok(metric) => check.metrics.push(metric),
            Err((problem, hint)) => {
                let problem = check.at_key(&place, problem);
                check.problems.push(problem.with_hint(hint));
            }
        }
    }
}

/// Every metric that a reference can name.
fn known(check: &Check<'_>) -> Vec<&'static Metric> {
    METRICS.iter().chain([&SPEEDUP]).chain(check.metrics.iter().map(|own| own.metric)).collect()
}

/// Reads a reference; one that names nothing is a problem with the nearest that does.
pub(super) fn reference(text: &MetricText, place: &DocumentPath, check: &mut Check<'_>) -> Option<MetricReference> {
    let text = text.0.trim();
    let own = || check.metrics.iter().map(|own| own.metric);
    let found = MetricReference::named(text, own()).and_then(|found| match found.metric.is_own() {
        // A stored name that this specification does not declare.
        true if !own().any(|metric| metric == found.metric) => Err(ReferenceError::UnknownMetric(text.to_owned())),
        _ => Ok(found),
    });
    match found {
        Ok(reference) => Some(reference),
        Err(error) => {
            let hint = hint(&error, text, &known(check));
            check.error(place, error.to_string(), hint);
            None
        }
    }
}

/// More metrics than these are no guess.
const MOST_MEANT: usize = 3;

fn hint(error: &ReferenceError, text: &str, known: &[&'static Metric]) -> Option<String> {
    match error {
        ReferenceError::UnknownMetric(stem) => {
            let is_statistic = Statistic::NAMES.iter().any(|(name, _)| *name == text);
            if is_statistic {
                return Some(format!("write `latency.{text}`"));
            }
            let stems = known.iter().map(|metric| metric.stem());
            // What reports call it may be known where the name is not: `memory`.
            let word = stem.to_lowercase().replace('_', " ");
            let is_titled = |metric: &&&Metric| word.len() > 2 && metric.title.to_lowercase().contains(&word);
            let titled: Vec<&str> = known.iter().filter(is_titled).map(|metric| metric.stem()).collect();
            match (nearest(stem, stems.clone()), titled.len()) {
                (None, 1..=MOST_MEANT) => Some(format!("did you mean {}?", list(&titled, "or"))),
                _ => suggestion(stem, stems, "metric"),
            }
        }
        ReferenceError::UnknownStatistic(word) => {
            suggestion(word, Statistic::NAMES.iter().map(|(name, _)| *name), "statistic")
        }
        ReferenceError::NoSamples { metric, .. } => Some(format!("write `{metric}`")),
    }
}

/// Refuses metrics by which nothing can be better than something else.
pub(super) fn check_direction(reference: MetricReference, place: &DocumentPath, check: &mut Check<'_>) {
    if reference.metric.direction != Direction::Neutral {
        return;
    }
    let message = format!("`{reference}` has no better direction, so it cannot rank cells");
    if reference.metric.is_own() {
        return check.error(place, message, "say in `metrics` what is better: `better: higher`".to_owned());
    }
    let judged = known(check).into_iter().filter(|metric| metric.direction != Direction::Neutral).map(Metric::stem);
    let judged = list(&judged.collect::<Vec<_>>(), "or");
    check.error(place, message, format!("use {judged}"));
}

/// Refuses the speedup where nothing is compared.
pub(super) fn check_speedup(
    reference: MetricReference,
    axes: &Space,
    compare: &Compare,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    let is_known = axes.are_complete() && !check.is_damaged(&DocumentPath::top("compare").key("baseline"));
    if reference.is_speedup() && is_known && axes.compared(compare.baseline.as_ref()).is_empty() {
        let message = "there is no `speedup` where nothing is compared";
        let hint = "give `variants` a second entry, or name an axis of several in `compare.baseline`";
        check.error(place, message, hint.to_owned());
    }
}

/// A value that would do, for hints.
pub(super) fn example(reference: MetricReference) -> &'static str {
    match reference.kind() {
        ValueKind::Duration => "20ms",
        ValueKind::Size => "64MiB",
        ValueKind::Rate | ValueKind::Count => "100",
        ValueKind::Energy => "0.5J",
        ValueKind::Ratio if reference.statistic.is_scatter() => "5%",
        ValueKind::Ratio if reference.unit() == Unit::Share => "95%",
        ValueKind::Ratio => "1.5",
    }
}

/// Reads a value in the unit that the metric is stored in: nanoseconds, bytes, a second, ratios, counts.
pub(super) fn value(
    text: &BoundText,
    reference: MetricReference,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Option<f64> {
    let text = text.0.trim();
    match read_value(text, reference) {
        Ok(value) => Some(value),
        Err(QuantityError::TooLarge { .. }) => {
            check.error(place, format!("{} is `{text}`, which is too large", place.name()), None);
            None
        }
        Err(QuantityError::Negative { .. }) => {
            check.error(place, format!("{} is {text}; `{reference}` is never negative", place.name()), None);
            None
        }
        Err(QuantityError::Malformed { .. }) => {
            let what = match reference.kind() {
                ValueKind::Duration => "a duration",
                ValueKind::Size => "a size",
                ValueKind::Rate => "a number a second",
                ValueKind::Ratio => "a ratio",
                ValueKind::Energy => "an energy",
                ValueKind::Count => "a number",
            };
            let message = format!("{} is `{text}`, but `{reference}` is {what}", place.name());
            check.error(place, message, unit_hint(reference.kind(), text));
            None
        }
    }
}

fn unit_hint(kind: ValueKind, text: &str) -> String {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    match kind {
        ValueKind::Duration if is_number => format!("add a unit: `{text}ms`, `{text}us` or `{text}s`"),
        ValueKind::Size if is_number => format!("add a unit: `{text}MiB` or `{text}GiB`"),
        ValueKind::Duration => "write for example `20ms`, `150us` or `1.5s`".to_owned(),
        ValueKind::Size => "write for example `64MiB`, `2GiB` or `500MB`".to_owned(),
        ValueKind::Rate => "write a plain number, such as `100` for a hundred a second".to_owned(),
        ValueKind::Ratio => "write for example `1.5` or `90%`".to_owned(),
        ValueKind::Energy => "write for example `0.5J`, `20mJ` or `300uJ`".to_owned(),
        ValueKind::Count => "write a plain number, such as `100`".to_owned(),
    }
}
