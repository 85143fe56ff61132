//! References to metrics, and values in their units.

use std::str::FromStr;

use crate::experiment::Compare;
use crate::spec::check::Check;
use crate::spec::document::Place;
use crate::spec::form::{BoundText, MetricText};
use crate::vocabulary::metric::{
    Direction, METRICS, Metric, MetricReference, ReferenceError, SPEEDUP, Statistic, Unit,
};
use crate::vocabulary::nearest::{list, nearest, suggestion};
use crate::vocabulary::quantity::{Bytes, Nanos, QuantityError, Ratio};

use crate::experiment::Space;

/// Every metric that a reference can name.
fn known() -> impl Iterator<Item = &'static Metric> + Clone {
    METRICS.iter().chain([&SPEEDUP])
}

/// Reads a reference; one that names nothing is a problem with the nearest that does.
pub(super) fn reference(text: &MetricText, place: &Place, check: &mut Check<'_>) -> Option<MetricReference> {
    match text.0.trim().parse::<MetricReference>() {
        Ok(reference) => Some(reference),
        Err(error) => {
            check.error(place, error.to_string(), hint(&error, &text.0));
            None
        }
    }
}

/// More metrics than these are no guess.
const MOST_MEANT: usize = 3;

fn hint(error: &ReferenceError, text: &str) -> Option<String> {
    match error {
        ReferenceError::UnknownMetric(stem) => {
            let is_statistic = Statistic::NAMES.iter().any(|(name, _)| *name == text);
            if is_statistic {
                return Some(format!("write `latency.{text}`"));
            }
            let stems = known().map(Metric::stem);
            // What reports call it may be known where the name is not: `memory`.
            let word = stem.to_lowercase().replace('_', " ");
            let titled = known().filter(|metric| word.len() > 2 && metric.title.to_lowercase().contains(&word));
            let titled: Vec<&str> = titled.map(Metric::stem).collect();
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
pub(super) fn check_direction(reference: MetricReference, place: &Place, check: &mut Check<'_>) {
    if reference.metric.direction != Direction::Neutral {
        return;
    }
    let judged = known().filter(|metric| metric.direction != Direction::Neutral).map(Metric::stem);
    let message = format!("`{reference}` has no better and no worse, so nothing is best by it");
    check.error(place, message, format!("choose by {}", list(&judged.collect::<Vec<_>>(), "or")));
}

/// Refuses the speedup where nothing is compared.
pub(super) fn check_speedup(
    reference: MetricReference,
    axes: &Space,
    compare: &Compare,
    place: &Place,
    check: &mut Check<'_>,
) {
    let is_known = axes.are_complete() && !check.is_damaged(&Place::top("compare").key("baseline"));
    if reference.is_speedup() && is_known && axes.compared(compare.baseline.as_ref()).is_empty() {
        let message = "there is no `speedup` where nothing is compared";
        let hint = "give `variants` a second entry, or name an axis of several in `compare.baseline`";
        check.error(place, message, hint.to_owned());
    }
}

/// What a value of a reference is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Duration,
    Size,
    Rate,
    Ratio,
    Energy,
    Count,
}

fn kind(reference: MetricReference) -> Kind {
    match reference.unit() {
        Unit::Ratio | Unit::Share => Kind::Ratio,
        Unit::Nanoseconds => Kind::Duration,
        Unit::Bytes => Kind::Size,
        Unit::PerSecond => Kind::Rate,
        Unit::Joules => Kind::Energy,
        Unit::Watts | Unit::Celsius | Unit::Count | Unit::Number => Kind::Count,
    }
}

/// A value that would do, for hints.
pub(super) fn example(reference: MetricReference) -> &'static str {
    match kind(reference) {
        Kind::Duration => "20ms",
        Kind::Size => "64MiB",
        Kind::Rate | Kind::Count => "100",
        Kind::Energy => "0.5J",
        Kind::Ratio if reference.statistic.is_scatter() => "5%",
        Kind::Ratio if reference.unit() == Unit::Share => "95%",
        Kind::Ratio => "1.5",
    }
}

/// Reads a value in the unit that the metric is stored in: nanoseconds, bytes, a second, ratios, counts.
pub(super) fn value(text: &BoundText, reference: MetricReference, place: &Place, check: &mut Check<'_>) -> Option<f64> {
    let text = text.0.trim();
    let read = match kind(reference) {
        Kind::Duration => number::<Nanos>(text, |duration| duration.0 as f64),
        Kind::Size => number::<Bytes>(text, |size| size.0 as f64),
        Kind::Ratio => number::<Ratio>(text, |ratio| ratio.0),
        Kind::Rate => plain(text.strip_suffix("/s").unwrap_or(text).trim_end(), "rate"),
        Kind::Energy => joules(text),
        Kind::Count => plain(text, "count"),
    };
    match read {
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
            let what = match kind(reference) {
                Kind::Duration => "a duration",
                Kind::Size => "a size",
                Kind::Rate => "a number a second",
                Kind::Ratio => "a ratio",
                Kind::Energy => "an energy",
                Kind::Count => "a number",
            };
            let message = format!("{} is `{text}`, but `{reference}` is {what}", place.name());
            check.error(place, message, unit_hint(kind(reference), text));
            None
        }
    }
}

fn number<T: FromStr<Err = QuantityError>>(text: &str, base: fn(T) -> f64) -> Result<f64, QuantityError> {
    text.parse().map(base)
}

/// `0.5J`, `20 mJ`, `300uJ`, or a plain number of joules.
fn joules(text: &str) -> Result<f64, QuantityError> {
    let units = [("mJ", 1e-3), ("uJ", 1e-6), ("J", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    Ok(plain(number.trim_end(), "energy")? * factor)
}

/// A number without a unit.
fn plain(text: &str, what: &'static str) -> Result<f64, QuantityError> {
    match text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number < 0.0 => {
            Err(QuantityError::Negative { text: text.to_owned(), what })
        }
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(QuantityError::Malformed { text: text.to_owned(), what, example: "`100`" }),
    }
}

fn unit_hint(kind: Kind, text: &str) -> String {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    match kind {
        Kind::Duration if is_number => format!("add a unit: `{text}ms`, `{text}us` or `{text}s`"),
        Kind::Size if is_number => format!("add a unit: `{text}MiB` or `{text}GiB`"),
        Kind::Duration => "write for example `20ms`, `150us` or `1.5s`".to_owned(),
        Kind::Size => "write for example `64MiB`, `2GiB` or `500MB`".to_owned(),
        Kind::Rate => "write a plain number, such as `100` for a hundred a second".to_owned(),
        Kind::Ratio => "write for example `1.5` or `90%`".to_owned(),
        Kind::Energy => "write for example `0.5J`, `20mJ` or `300uJ`".to_owned(),
        Kind::Count => "write a plain number, such as `100`".to_owned(),
    }
}
