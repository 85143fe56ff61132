//! `measure` and `backend`: texts to quantities, and bounds that agree.

use crate::experiment::{Backend, Measure, Mock, MockDevice, Stop, Warmup};
use crate::spec::check::Check;
use crate::spec::document::Place;
use crate::spec::form::{
    BackendForm, DurationText, MeasureForm, MockDeviceForm, MockForm, PrecisionStop, RatioText, StopForm, WarmupForm,
};
use crate::vocabulary::quantity::{Nanos, Ratio};

/// Reads `measure`.
pub(super) fn expand(form: &MeasureForm, check: &mut Check<'_>) -> Measure {
    let place = Place::top("measure");
    let measure = Measure {
        warmup: warmup(&form.warmup, &place.key("warmup"), check),
        stop: stop(&form.stop, &place.key("stop"), check),
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
    };
    let longest = longest(&measure);
    if measure.timeout.0 > 0 && measure.timeout < longest && !check.is_damaged(&place) {
        let message = format!("a run may take {longest} to warm up and sample, but `timeout` is {}", measure.timeout);
        let hint = "a run that misses the timeout fails; give it more, or bound `warmup` and `stop`";
        check.warn(&place.key("timeout"), message, hint);
    }
    measure
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

fn warmup(form: &WarmupForm, place: &Place, check: &mut Check<'_>) -> Warmup {
    match form {
        WarmupForm::Adaptive(form) => Warmup::Adaptive {
            min_time: check.quantity(&place.key("min_time"), &form.min_time.0),
            max_time: bounded_time(&form.min_time, &form.max_time, place, check),
            min_samples: form.min_samples,
            tolerance: open_ratio(&form.tolerance, &place.key("tolerance"), check),
        },
        WarmupForm::Samples(form) => Warmup::Samples { count: form.count },
        WarmupForm::Time(form) => Warmup::Time { time: positive(&form.time, &place.key("time"), check) },
    }
}

fn stop(form: &StopForm, place: &Place, check: &mut Check<'_>) -> Stop {
    match form {
        StopForm::Precision(form) => precision_stop(form, place, check),
        StopForm::Samples(form) => {
            Stop::Samples { count: form.count, max_time: positive(&form.max_time, &place.key("max_time"), check) }
        }
        StopForm::Time(form) => {
            Stop::Time { time: positive(&form.time, &place.key("time"), check), max_samples: form.max_samples }
        }
    }
}

fn precision_stop(form: &PrecisionStop, place: &Place, check: &mut Check<'_>) -> Stop {
    if form.min_samples > form.max_samples {
        let message = format!("`min_samples` is {}, more than `max_samples`, {}", form.min_samples, form.max_samples);
        let written = if check.has(&place.key("min_samples")) { "min_samples" } else { "max_samples" };
        check.error(&place.key(written), message, None);
    }
    Stop::Precision {
        statistic: form.statistic,
        relative: open_ratio(&form.relative, &place.key("relative"), check),
        confidence: open_ratio(&form.confidence, &place.key("confidence"), check),
        min_samples: form.min_samples,
        max_samples: form.max_samples,
        min_time: check.quantity(&place.key("min_time"), &form.min_time.0),
        max_time: bounded_time(&form.min_time, &form.max_time, place, check),
    }
}

/// `max_time`, which is more than zero and not below `min_time`.
fn bounded_time(min_time: &DurationText, max_time: &DurationText, place: &Place, check: &mut Check<'_>) -> Nanos {
    let max = positive(max_time, &place.key("max_time"), check);
    if let Ok(min) = min_time.0.parse::<Nanos>()
        && min > max
        && max.0 > 0
    {
        let message = format!("`min_time` is {min}, longer than `max_time`, {max}");
        let written = if check.has(&place.key("min_time")) { "min_time" } else { "max_time" };
        check.error(&place.key(written), message, None);
    }
    max
}

/// A duration that is more than zero.
pub(super) fn positive(text: &DurationText, place: &Place, check: &mut Check<'_>) -> Nanos {
    let before = check.problems.len();
    let duration: Nanos = check.quantity(place, &text.0);
    if duration.0 == 0 && check.problems.len() == before {
        check.error(place, format!("{} must be longer than zero", place.name()), None);
    }
    duration
}

/// A ratio between 0 and 1, neither included.
pub(super) fn open_ratio(text: &RatioText, place: &Place, check: &mut Check<'_>) -> Ratio {
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
        BackendForm::Mock(form) => Backend::Mock(mock(form, &Place::top("backend").key("mock"), check)),
    }
}

fn mock(form: &MockForm, place: &Place, check: &mut Check<'_>) -> Mock {
    let ar1: Ratio = check.quantity(&place.key("ar1"), &form.ar1.0);
    if ar1.0 >= 1.0 {
        check.error(&place.key("ar1"), format!("`ar1` is `{}`; it must be less than 1", form.ar1.0), None);
    }
    Mock {
        median: positive(&form.median, &place.key("median"), check),
        item: check.quantity(&place.key("item"), &form.item.0),
        fits: form.fits,
        run_sd: check.quantity(&place.key("run_sd"), &form.run_sd.0),
        disturbed: check.quantity(&place.key("disturbed"), &form.disturbed.0),
        disturbance: check.quantity(&place.key("disturbance"), &form.disturbance.0),
        noise: check.quantity(&place.key("noise"), &form.noise.0),
        ar1,
        warmup_excess: check.quantity(&place.key("warmup_excess"), &form.warmup_excess.0),
        warmup_time: check.quantity(&place.key("warmup_time"), &form.warmup_time.0),
        load: check.quantity(&place.key("load"), &form.load.0),
        device: form.device.as_ref().map(|form| mock_device(form, &place.key("device"), check)),
    }
}

fn mock_device(form: &MockDeviceForm, place: &Place, check: &mut Check<'_>) -> MockDevice {
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
