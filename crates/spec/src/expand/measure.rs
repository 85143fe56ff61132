//! `measure` and `backend`: bounds that agree, and values that make sense.

use std::fmt::Display;

use super::commands;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::MeasureForm;
use base::quantity::{Nanos, Ratio};
use experiment::{
    AdaptiveWarmup, Backend, Measure, Mock, MockVariant, PrecisionStop, SamplesStop, Stop, TimeWarmup, Warmup,
};

/// Checks `measure`. Commands have a warm-up and a stopping rule of their own, where nothing is written.
pub(super) fn expand(form: &MeasureForm, of_commands: bool, check: &mut Check<'_>) -> Measure {
    let place = DocumentPath::top("measure");
    let mut measure = form.of_runs.clone();
    if of_commands && !check.has(&place.key("warmup")) {
        measure.warmup = commands::WARMUP;
    }
    if of_commands && !check.has(&place.key("stop")) {
        measure.stop = commands::STOP;
    }
    check_warmup(&mut measure.warmup, &place.key("warmup"), check);
    check_stop(&mut measure.stop, &place.key("stop"), check);
    positive(measure.timeout, &place.key("timeout"), check);
    positive(measure.slice_time, &place.key("slice_time"), check);
    let longest = longest(&measure);
    if !check.has(&place.key("timeout")) {
        measure.timeout = measure.timeout.max(Nanos(longest.0.saturating_mul(2)));
    }
    // Under a load runs have the time that their queries take.
    if measure.timeout.0 > 0 && measure.timeout < longest && form.load.is_none() && !check.is_damaged(&place) {
        let message = format!("a run may take {longest} to warm up and sample, but `timeout` is {}", measure.timeout);
        let hint = "a run that misses the timeout fails; give it more, or bound `warmup` and `stop`";
        check.warn(&place.key("timeout"), message, hint);
    }
    measure
}

/// The time that warm-up and sampling may take by their own bounds.
fn longest(measure: &Measure) -> Nanos {
    let warmup = match measure.warmup {
        Warmup::Adaptive(AdaptiveWarmup { max_time, .. }) => max_time,
        Warmup::Samples(_) => Nanos(0),
        Warmup::Time(rule) => rule.time,
    };
    let stop = match measure.stop {
        Stop::Precision(PrecisionStop { max_time, .. }) | Stop::Samples(SamplesStop { max_time, .. }) => max_time,
        Stop::Time(rule) => rule.time,
    };
    Nanos(warmup.0.saturating_add(stop.0))
}

fn check_warmup(warmup: &mut Warmup, place: &DocumentPath, check: &mut Check<'_>) {
    match warmup {
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, tolerance, .. }) => {
            (*min_time, *max_time) = times(*min_time, *max_time, place, check);
            open_ratio(*tolerance, &place.key("tolerance"), check);
        }
        Warmup::Samples(_) => {}
        Warmup::Time(TimeWarmup { time }) => positive(*time, &place.key("time"), check),
    }
}

fn check_stop(stop: &mut Stop, place: &DocumentPath, check: &mut Check<'_>) {
    match stop {
        Stop::Precision(stop) => {
            let samples = [("min_samples", stop.min_samples), ("max_samples", stop.max_samples)];
            (stop.min_samples, stop.max_samples) = bounds(samples, place, check);
            (stop.min_time, stop.max_time) = times(stop.min_time, stop.max_time, place, check);
            open_ratio(stop.relative, &place.key("relative"), check);
            open_ratio(stop.confidence, &place.key("confidence"), check);
        }
        Stop::Samples(SamplesStop { max_time, .. }) => positive(*max_time, &place.key("max_time"), check),
        Stop::Time(stop) => {
            let samples = [("min_samples", stop.min_samples), ("max_samples", stop.max_samples)];
            (stop.min_samples, stop.max_samples) = bounds(samples, place, check);
            positive(stop.time, &place.key("time"), check);
        }
    }
}

/// `min_time` and `max_time`, which is more than zero.
fn times(min: Nanos, max: Nanos, place: &DocumentPath, check: &mut Check<'_>) -> (Nanos, Nanos) {
    positive(max, &place.key("max_time"), check);
    // One problem is enough.
    if max.0 == 0 { (min, max) } else { bounds([("min_time", min), ("max_time", max)], place, check) }
}

/// A lower and an upper bound as they apply. Where they contradict each other, a default gives way to what is written; an
/// error where both are written.
pub(super) fn bounds<T: Copy + PartialOrd + Display>(
    [(low_key, low), (high_key, high)]: [(&str, T); 2],
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> (T, T) {
    match [low_key, high_key].map(|key| check.has(&place.key(key))) {
        _ if low <= high => (low, high),
        [false, true] => (high, high),
        [true, false] => (low, low),
        _ => {
            let message = format!("`{low_key}` is {low}, more than `{high_key}`, {high}");
            check.error(&place.key(low_key), message, None);
            (low, high)
        }
    }
}

/// A duration must be more than zero.
pub(super) fn positive(duration: Nanos, place: &DocumentPath, check: &mut Check<'_>) {
    if duration.0 == 0 {
        check.error(place, format!("{} must be longer than zero", place.name()), None);
    }
}

/// A ratio must be between 0 and 1, neither included.
pub(super) fn open_ratio(ratio: Ratio, place: &DocumentPath, check: &mut Check<'_>) {
    if !ratio.is_proper() {
        let text = check.text(place);
        let message = format!("{} is `{text}`; it must be more than 0% and less than 100%", place.name());
        let hint = (ratio.0 >= 1.0 && !text.ends_with('%')).then(|| format!("write `{text}%`?"));
        check.error(place, message, hint);
    }
}

/// Checks the script of the mock backend.
pub(super) fn check_backend(backend: &Backend, check: &mut Check<'_>) {
    let Backend::Mock(script) = backend else { return };
    let Mock { median, ar1, runtimes, .. } = &**script;
    let place = DocumentPath::top("backend").key("mock");
    if ar1.0 >= 1.0 {
        let ar1 = place.key("ar1");
        check.error(&ar1, format!("`ar1` is `{}`; it must be less than 1", check.text(&ar1)), None);
    }
    positive(*median, &place.key("median"), check);
    for (name, script) in runtimes {
        check_mock_variant(script, &place.key("runtimes").key(name), check);
    }
}

/// Checks what the script does for one variant, or with one runtime.
pub(super) fn check_mock_variant(script: &MockVariant, place: &DocumentPath, check: &mut Check<'_>) {
    if script.scale.is_some_and(|scale| scale.0 <= 0.0) {
        check.error(&place.key("scale"), "`scale` must be more than zero", None);
    }
    if script.operators.iter().map(|(_, share)| share.0).sum::<f64>() > 1.0 {
        check.error(&place.key("operators"), "the shares of `operators` add up to more than 100%", None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::tests::{mock, problems, warnings};
    use experiment::Runs;

    #[test]
    fn a_default_gives_way_to_what_is_written() {
        let millis = |text: &str| match (mock(text).measure.warmup, mock(text).measure.stop) {
            (
                Warmup::Adaptive(AdaptiveWarmup { min_time: a, max_time: b, .. }),
                Stop::Precision(PrecisionStop { min_time: c, max_time: d, .. }),
            ) => [a, b, c, d].map(|time| time.0 / 1_000_000),
            other => panic!("{other:?}"),
        };
        assert_eq!(millis("measure: { warmup: { max_time: 200ms } }"), [200, 200, 500, 5_000]);
        assert_eq!(millis("measure: { stop: { max_time: 200ms } }"), [300, 5_000, 200, 200]);
        assert_eq!(
            millis("measure: { warmup: { min_time: 8s }, stop: { min_time: 9s } }"),
            [8_000, 8_000, 9_000, 9_000]
        );
        let samples = |text: &str| match mock(text).measure.stop {
            Stop::Precision(PrecisionStop { min_samples, max_samples, .. }) => (min_samples, max_samples),
            other => panic!("{other:?}"),
        };
        assert_eq!(samples("measure: { stop: { max_samples: 20 } }"), (20, 20));
        assert_eq!(samples("measure: { stop: { min_samples: 200000 } }"), (200_000, 200_000));
        assert_eq!(mock("runs: { max: 6 }").runs, Runs { min: 6, max: 6 });
        assert_eq!(mock("runs: { min: 40 }").runs, Runs { min: 40, max: 40 });
    }

    #[test]
    fn a_run_that_is_asked_to_be_long_has_the_time_for_it() {
        let text = "measure: { stop: { mode: time, time: 20m } }";
        assert_eq!(mock(text).measure.timeout, Nanos::from_secs(2 * (1_200 + 5)));
        assert!(warnings(text).is_empty());
        assert_eq!(warnings("measure: { timeout: 1m, stop: { mode: time, time: 20m } }").len(), 1);
    }

    #[test]
    fn what_is_written_twice_and_contradicts_itself_is_refused() {
        assert_eq!(problems("runs: { min: 9, max: 8 }"), ["`min` is 9, more than `max`, 8"]);
        let times = "measure: { warmup: { min_time: 2s, max_time: 1s } }";
        assert_eq!(problems(times), ["`min_time` is 2s, more than `max_time`, 1s"]);
    }

    #[test]
    fn a_quick_look_is_short_whatever_the_specification_says() {
        let text = "backend: mock\nmodels: [m]\nruns: 40\nmeasure: { stop: { mode: time, time: 1h } }\n";
        let mut experiment =
            crate::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec").experiment;
        experiment::quick(&mut experiment);
        assert_eq!((experiment.runs, experiment.compare.aa), (experiment::Runs::fixed(5), experiment::Aa::Off));
        let Stop::Precision(PrecisionStop { min_samples, max_time, .. }) = experiment.measure.stop else {
            panic!("by precision")
        };
        assert_eq!((min_samples, max_time), (5, Nanos::from_millis(500)));
        assert_eq!(
            experiment.compare.margin.default,
            Ratio(experiment::QUICK_MARGIN),
            "as plan and results.json show it"
        );
    }
}
