//! `measure` and `backend`: texts to quantities, and bounds that agree.

use std::fmt::Display;

use super::commands;
use super::variants::overlay_mock;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{
    BackendForm, DurationText, MeasureForm, MockDeviceForm, MockForm, MockVariantForm, PrecisionStop, ProfileForm,
    RatioText, StopForm, WarmupForm,
};
use base::quantity::{Nanos, Ratio};
use experiment::{Backend, Measure, Mock, MockDevice, MockVariant, Profiling, Stop, Warmup};

/// Reads `measure`. Commands have a warm-up and a stopping rule of their own, where nothing is written.
pub(super) fn expand(form: &MeasureForm, of_commands: bool, check: &mut Check<'_>) -> Measure {
    let place = DocumentPath::top("measure");
    let is_left = |key: &str, check: &Check<'_>| of_commands && !check.has(&place.key(key));
    let mut measure = Measure {
        warmup: match is_left("warmup", check) {
            true => commands::WARMUP,
            false => warmup(&form.warmup, &place.key("warmup"), check),
        },
        stop: match is_left("stop", check) {
            true => commands::STOP,
            false => stop(&form.stop, &place.key("stop"), check),
        },
        inputs: form.inputs,
        timeout: positive(&form.timeout, &place.key("timeout"), check),
        design: form.design,
        slice_time: positive(&form.slice_time, &place.key("slice_time"), check),
        cache: form.cache,
        boundary: form.boundary,
        allow_fallback: form.allow_fallback,
        pipelined: form.pipelined,
        rebuild: form.rebuild,
        cooldown: check.quantity(&place.key("cooldown"), &form.cooldown.0),
        retake: form.retake,
        parallel: form.parallel,
        trace: None,
    };
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

/// Reads `measure.profile`.
pub(super) fn profile(form: &MeasureForm) -> Option<Profiling> {
    match &form.profile {
        ProfileForm::Plain(wanted) => wanted.then_some(Profiling::DEFAULT),
        ProfileForm::Sized(size) => Some(Profiling { processes: size.processes, inferences: size.inferences }),
    }
}

/// The time that warm-up and sampling may take by their own bounds.
fn longest(measure: &Measure) -> Nanos {
    let warmup = match measure.warmup {
        Warmup::Adaptive { max_time, .. } => max_time,
        Warmup::Samples { .. } => Nanos(0),
        Warmup::Time { time } => time,
    };
    let stop = match measure.stop {
        Stop::Precision { max_time, .. } | Stop::Samples { max_time, .. } => max_time,
        Stop::Time { time, .. } => time,
    };
    Nanos(warmup.0.saturating_add(stop.0))
}

fn warmup(form: &WarmupForm, place: &DocumentPath, check: &mut Check<'_>) -> Warmup {
    match form {
        WarmupForm::Adaptive(form) => {
            let (min_time, max_time) = times(&form.min_time, &form.max_time, place, check);
            let tolerance = open_ratio(&form.tolerance, &place.key("tolerance"), check);
            Warmup::Adaptive { min_time, max_time, min_samples: form.min_samples, tolerance }
        }
        WarmupForm::Samples(form) => Warmup::Samples { count: form.count },
        WarmupForm::Time(form) => Warmup::Time { time: positive(&form.time, &place.key("time"), check) },
    }
}

fn stop(form: &StopForm, place: &DocumentPath, check: &mut Check<'_>) -> Stop {
    match form {
        StopForm::Precision(form) => precision_stop(form, place, check),
        StopForm::Samples(form) => {
            Stop::Samples { count: form.count, max_time: positive(&form.max_time, &place.key("max_time"), check) }
        }
        StopForm::Time(form) => {
            let samples = [("min_samples", form.min_samples), ("max_samples", form.max_samples)];
            let (min_samples, max_samples) = bounds(samples, place, check);
            Stop::Time { time: positive(&form.time, &place.key("time"), check), min_samples, max_samples }
        }
    }
}

fn precision_stop(form: &PrecisionStop, place: &DocumentPath, check: &mut Check<'_>) -> Stop {
    let samples = [("min_samples", form.min_samples), ("max_samples", form.max_samples)];
    let (min_samples, max_samples) = bounds(samples, place, check);
    let (min_time, max_time) = times(&form.min_time, &form.max_time, place, check);
    Stop::Precision {
        statistic: form.statistic,
        relative: open_ratio(&form.relative, &place.key("relative"), check),
        confidence: open_ratio(&form.confidence, &place.key("confidence"), check),
        min_samples,
        max_samples,
        min_time,
        max_time,
    }
}

/// `min_time` and `max_time`, which is more than zero.
fn times(min: &DurationText, max: &DurationText, place: &DocumentPath, check: &mut Check<'_>) -> (Nanos, Nanos) {
    let min = check.quantity(&place.key("min_time"), &min.0);
    match positive(max, &place.key("max_time"), check) {
        // A problem of its own, which was told.
        Nanos(0) => (min, Nanos(0)),
        max => bounds([("min_time", min), ("max_time", max)], place, check),
    }
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

/// A duration that is more than zero.
pub(super) fn positive(text: &DurationText, place: &DocumentPath, check: &mut Check<'_>) -> Nanos {
    let before = check.problems.len();
    let duration: Nanos = check.quantity(place, &text.0);
    if duration.0 == 0 && check.problems.len() == before {
        check.error(place, format!("{} must be longer than zero", place.name()), None);
    }
    duration
}

/// A ratio between 0 and 1, neither included.
pub(super) fn open_ratio(text: &RatioText, place: &DocumentPath, check: &mut Check<'_>) -> Ratio {
    let before = check.problems.len();
    let ratio: Ratio = check.quantity(place, &text.0);
    if !ratio.is_proper() && check.problems.len() == before {
        let message = format!("{} is `{}`; it must be more than 0% and less than 100%", place.name(), text.0);
        check.error(
            place,
            message,
            (ratio.0 >= 1.0 && !text.0.ends_with('%')).then(|| format!("write `{}%`?", text.0)),
        );
    }
    ratio
}

/// Reads `backend`.
pub(super) fn backend(form: &BackendForm, check: &mut Check<'_>) -> Backend {
    match form {
        BackendForm::Plain(backend) => backend.clone(),
        BackendForm::Mock(form) => {
            Backend::Mock(Box::new(mock(form, &DocumentPath::top("backend").key("mock"), check)))
        }
    }
}

fn mock(form: &MockForm, place: &DocumentPath, check: &mut Check<'_>) -> Mock {
    let ar1: Ratio = check.quantity(&place.key("ar1"), &form.ar1.0);
    if ar1.0 >= 1.0 {
        check.error(&place.key("ar1"), format!("`ar1` is `{}`; it must be less than 1", form.ar1.0), None);
    }
    Mock {
        median: positive(&form.median, &place.key("median"), check),
        item: check.quantity(&place.key("item"), &form.item.0),
        fits: form.fits,
        outputs: form.outputs,
        run_sd: check.quantity(&place.key("run_sd"), &form.run_sd.0),
        disturbed: check.quantity(&place.key("disturbed"), &form.disturbed.0),
        disturbance: check.quantity(&place.key("disturbance"), &form.disturbance.0),
        beside: check.quantity(&place.key("beside"), &form.beside.0),
        noise: check.quantity(&place.key("noise"), &form.noise.0),
        ar1,
        exponential: form.exponential,
        warmup_excess: check.quantity(&place.key("warmup_excess"), &form.warmup_excess.0),
        warmup_time: check.quantity(&place.key("warmup_time"), &form.warmup_time.0),
        load: check.quantity(&place.key("load"), &form.load.0),
        device: form.device.as_ref().map(|form| mock_device(form, &place.key("device"), check)),
        runtimes: form
            .runtimes
            .0
            .iter()
            .map(|(name, form)| (name.clone(), of_runtime(name, form, place, check)))
            .collect(),
    }
}

fn of_runtime(name: &str, form: &MockVariantForm, place: &DocumentPath, check: &mut Check<'_>) -> MockVariant {
    let mut own = MockVariant::default();
    overlay_mock(&mut own, form, &place.key("runtimes").key(name), check);
    own
}

fn mock_device(form: &MockDeviceForm, place: &DocumentPath, check: &mut Check<'_>) -> MockDevice {
    let mut share = |key: &str, text: &RatioText| -> Ratio { check.quantity(&place.key(key), &text.0) };
    MockDevice {
        clocks: form.clocks.clone(),
        locked: form.locked,
        watts: form.watts,
        idle_watts: form.idle_watts,
        celsius: form.celsius,
        slowed: form.slowed,
        memory: share("memory", &form.memory),
        others_memory: share("others_memory", &form.others_memory),
        others: share("others", &form.others),
        persistence: form.persistence,
        package_watts: form.package_watts,
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
            (Warmup::Adaptive { min_time: a, max_time: b, .. }, Stop::Precision { min_time: c, max_time: d, .. }) => {
                [a, b, c, d].map(|time| time.0 / 1_000_000)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(millis("measure: { warmup: { max_time: 200ms } }"), [200, 200, 500, 5_000]);
        assert_eq!(millis("measure: { stop: { max_time: 200ms } }"), [300, 5_000, 200, 200]);
        assert_eq!(
            millis("measure: { warmup: { min_time: 8s }, stop: { min_time: 9s } }"),
            [8_000, 8_000, 9_000, 9_000]
        );
        let samples = |text: &str| match mock(text).measure.stop {
            Stop::Precision { min_samples, max_samples, .. } => (min_samples, max_samples),
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
        let Stop::Precision { min_samples, max_time, .. } = experiment.measure.stop else { panic!("by precision") };
        assert_eq!((min_samples, max_time), (5, Nanos::from_millis(500)));
        assert_eq!(
            experiment.compare.margin.default,
            Ratio(experiment::QUICK_MARGIN),
            "as plan and results.json show it"
        );
    }
}
