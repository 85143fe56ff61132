//! `choose`: a metric to be best in, bounds in the units of their metrics, and the samples that percentiles take.

use super::{metric, selection};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{BoundForm, ChooseForm};
use crate::note::Note;
use base::metric::{MetricReference, Unit};
use experiment::{Bound, Choose, Compare, Measure, PrecisionStop, SamplesStop, Space, Stop, TimeStop, Vocabulary};
use statistics::quantile::quantile_support;

/// Reads `choose`. What the schema refused of it was taken out, and is not missed here.
pub(super) fn expand(form: &ChooseForm, axes: &Space, compare: &Compare, check: &mut Check<'_>) -> Option<Choose> {
    let place = DocumentPath::top("choose");
    let mut asked = Vec::new();
    for (place, text) in form.best.places(&place.key("best")) {
        let Some(metric) = metric::reference(text, &place, check) else { continue };
        metric::check_direction(metric, &place, check);
        metric::check_speedup(metric, axes, compare, &place, check);
        if asked.contains(&metric) {
            check.error(&place, format!("`{metric}` is there twice"), "name each metric once".to_owned());
        }
        asked.push(metric);
    }
    let vocabulary = axes.vocabulary();
    let mut within = Vec::with_capacity(form.within.len());
    for (index, form) in form.within.iter().enumerate() {
        let place = place.key("within").index(index);
        let Some(bound) = bound(form, &place, &vocabulary, check) else { continue };
        metric::check_speedup(bound.metric, axes, compare, &place.key("metric"), check);
        within.push(bound);
    }
    let (best, then) = asked.split_first()?;
    Some(Choose { best: *best, then: then.to_vec(), within })
}

pub(super) fn bound(
    form: &BoundForm,
    place: &DocumentPath,
    vocabulary: &Vocabulary,
    check: &mut Check<'_>,
) -> Option<Bound> {
    let of = form.of.as_ref().map(|form| selection::expand(form, &place.key("where"), vocabulary, check));
    let metric = metric::reference(&form.metric, &place.key("metric"), check)?;
    let is_damaged = check.is_damaged(place);
    if form.min.is_none() && form.max.is_none() && !is_damaged {
        let message = format!("this bound on `{metric}` has neither `min` nor `max`");
        check.error(place, message, format!("add for example `max: {}`", metric::example(metric)));
    }
    let before = check.problems.len();
    let mut read = |key: &str, text| metric::value(text, metric, &place.key(key), check);
    let min = form.min.as_ref().and_then(|text| read("min", text));
    let max = form.max.as_ref().and_then(|text| read("max", text));
    for (key, text, value) in [("min", &form.min, min), ("max", &form.max, max)] {
        if let (Some(text), Some(value)) = (text, value)
            && metric.unit() == Unit::Share
            && value > 1.0
        {
            let hint = format!("write `{}%`", text.0.trim_end_matches('%'));
            check.error(&place.key(key), format!("`{}` is more than 100 %: `{metric}` is a share", text.0), hint);
        }
    }
    if let (Some(least), Some(most), Some(min), Some(max)) = (&form.min, &form.max, min, max)
        && min > max
        && check.problems.len() == before
    {
        let message = format!("`min` is `{}`, more than `max`, `{}`: no value lies between", least.0, most.0);
        check.error(&place.key("min"), message, None);
    }
    Some(Bound { metric, min, max, of: of.unwrap_or_default() })
}

/// Raises `min_samples` to what the percentiles that are asked for take (method 5.2).
///
/// Without it a bound on a tail would stay undecided for ever. A fixed number of samples is the author's, and is only
/// warned of.
pub(super) fn raise_samples(measure: &mut Measure, asked: &[(DocumentPath, MetricReference)], check: &mut Check<'_>) {
    let stop_place = DocumentPath::top("measure").key("stop");
    if check.is_damaged(&stop_place) {
        return;
    }
    let Some((place, reference, needed)) = most_demanding(asked) else { return };
    match &mut measure.stop {
        Stop::Precision(PrecisionStop { max_samples, .. }) if *max_samples < needed => {
            let message =
                format!("`{reference}` needs {needed} samples per run, more than `max_samples` ({max_samples})");
            let hint = format!("use a lower percentile, or write `measure.stop.max_samples: {needed}` or more");
            check.error(place, message, hint);
        }
        Stop::Precision(PrecisionStop { min_samples, .. }) if *min_samples < needed => {
            check.notes.push(Note::MoreSamples { reference, from: *min_samples, to: needed });
            *min_samples = needed;
        }
        Stop::Precision(_) => {}
        Stop::Samples(SamplesStop { count, .. }) => too_few(reference, needed, ("count", *count), &stop_place, check),
        Stop::Time(TimeStop { max_samples, .. }) => {
            too_few(reference, needed, ("max_samples", *max_samples), &stop_place, check);
        }
    }
}

fn too_few(
    reference: MetricReference,
    needed: u32,
    (key, written): (&str, u32),
    stop: &DocumentPath,
    check: &mut Check<'_>,
) {
    if written < needed {
        let message = format!(
            "`{reference}`, which `choose`, `goals`, `gate` or `pareto` uses, needs {needed} samples per run, but `{key}` is {written}"
        );
        let hint = format!(
            "with fewer a run gives it no upper bound, and all runs together may not either; write `{key}: {needed}`"
        );
        check.warn(&stop.key(key), message, hint);
    }
}

/// Every metric that a question names, with its place.
pub(super) fn references(choose: &Choose) -> impl Iterator<Item = (DocumentPath, MetricReference)> {
    let top = DocumentPath::top("choose");
    let best = std::iter::once(choose.best).chain(choose.then.iter().copied());
    let best = best.map(|metric| (top.key("best"), metric)).collect::<Vec<_>>();
    let bounds = choose.within.iter().enumerate();
    let bounds = bounds.map(|(index, bound)| (top.key("within").index(index).key("metric"), bound.metric));
    best.into_iter().chain(bounds.collect::<Vec<_>>())
}

/// The tail percentile that takes the most samples, with its place and their number.
fn most_demanding(asked: &[(DocumentPath, MetricReference)]) -> Option<(&DocumentPath, MetricReference, u32)> {
    let tails = asked.iter().filter(|(_, reference)| reference.statistic.is_tail());
    let needed = tails.filter_map(|(place, reference)| {
        let needed = reference.statistic.probability().and_then(quantile_support)?;
        Some((place, *reference, needed))
    });
    // Of equals the first.
    needed.reduce(|most, next| if next.2 > most.2 { next } else { most })
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, mock_with, notes, warnings};
    use base::metric::Statistic;
    use experiment::Selector;

    use super::*;

    fn least_samples(rest: &str) -> Option<u32> {
        match mock(rest).measure.stop {
            Stop::Precision(PrecisionStop { min_samples, .. }) => Some(min_samples),
            _ => None,
        }
    }

    #[test]
    fn values_are_in_the_unit_that_is_stored() {
        let text = "variants: [a, b]\nchoose:\n  best: throughput\n  within:\n\
                    \x20   - { metric: latency.p95, max: 20ms, where: { variant: a } }\n\
                    \x20   - { metric: peak_rss, max: 64MiB }\n\
                    \x20   - { metric: throughput, min: 100, max: 1_000/s }\n\
                    \x20   - { metric: speedup, min: 1.5 }\n\
                    \x20   - { metric: latency.cv, max: 5% }\n";
        let choose = mock(text).choose;
        let within = choose.as_ref().map(|choose| choose.within.as_slice()).unwrap_or_default();
        let bounds: Vec<_> = within.iter().map(|bound| (bound.min, bound.max)).collect();
        assert_eq!(
            bounds,
            [
                (None, Some(20e6)),
                (None, Some(67_108_864.0)),
                (Some(100.0), Some(1000.0)),
                (Some(1.5), None),
                (None, Some(0.05)),
            ]
        );
        assert_eq!(within[0].of.to_string(), "variant=a");
        assert_eq!(within[1].of, Selector::default());
        assert_eq!(within[4].metric.statistic, Statistic::CoefficientOfVariation);
        let best = mock_with("choose: { best: latency }", &["choose.best=throughput"]).choose.map(|choose| choose.best);
        assert_eq!(best.map(|best| best.to_string()).as_deref(), Some("throughput"));
    }

    #[test]
    fn percentiles_raise_the_fewest_samples() {
        assert_eq!(least_samples("choose: { best: latency }"), Some(50));
        assert_eq!(least_samples("choose: { best: latency.p90 }"), Some(50));
        let two = "choose: { best: latency.p95, within: [{ metric: latency.p99, max: 1s }] }";
        assert_eq!(least_samples(two), Some(368));
        let raised = notes(two);
        let [Note::MoreSamples { reference, from: 50, to: 368 }] = raised.as_slice() else { panic!("{raised:?}") };
        assert_eq!(reference.to_string(), "latency.p99");
        assert_eq!(least_samples("choose: { best: latency.p99.9 }"), Some(3688));
        let enough = "choose: { best: latency.p95 }\nmeasure: { stop: { min_samples: 100 } }";
        assert_eq!(least_samples(enough), Some(100));
        assert!(notes(enough).is_empty());
    }

    #[test]
    fn a_fixed_number_of_samples_stays_and_is_warned_of() {
        let fixed = "choose: { best: latency.p95 }\nmeasure: { stop: { mode: samples, count: 71 } }";
        let expected = "`latency.p95`, which `choose`, `goals`, `gate` or `pareto` uses, needs 72 samples per run, but `count` is 71";
        assert_eq!(warnings(fixed), [expected]);
        assert!(warnings(&fixed.replace("71", "72")).is_empty());
        assert!(warnings("choose: { best: latency.p95 }\nmeasure: { stop: { mode: time, time: 1s } }").is_empty());
    }
}
