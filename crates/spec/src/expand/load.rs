//! `measure.load`: the levels, and the inputs multiplied by them.

use std::collections::HashSet;
use std::path::Path;

use super::measure;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::files::Depth;
use crate::form::{LatencyBoundForm, LoadForm, LoadLevels, OneOrMany, RateText};
use base::metric::{LATE_SHARE, LATENCY, MetricReference, Statistic};
use base::quantity::{Nanos, per_second};
use experiment::{
    AT, Arrivals, Cache, Design, InputFile, InputPoint, LatencyBound, Load, Measure, Model, PrecisionStop, SamplesStop,
    Stop, TimeStop, Trace, Variant,
};
use files::digest;
use reading::plain_file;

/// Without another rule: a run goes on so long, and for so many queries. Rates take more where the queue needs it.
const STOP: Stop = Stop::Time(TimeStop { time: Nanos::from_secs(10), min_samples: 64, max_samples: 200_000 });

/// A run takes the time of its queries.
const TIMEOUT: Nanos = Nanos::from_secs(600);

/// A message to a worker holds no more, nor does memory hold many such runs.
const MOST_QUERIES: u32 = 1_000_000;

/// Rates between which a run can be carried out: a thousand queries in a day, and one in a microsecond.
const RATES: std::ops::RangeInclusive<f64> = 0.01..=1e6;

/// What a point is named that sets nothing.
const UNSET: &str = "default";

fn top() -> DocumentPath {
    DocumentPath::top("measure").key("load")
}

/// Reads `measure.load`, and the file of its arrivals.
pub(super) fn expand(
    form: Option<&LoadForm>,
    runs_commands: bool,
    folder: &Path,
    check: &mut Check<'_>,
) -> (Vec<Load>, Option<Trace>) {
    // Commands have none; `commands` reports that.
    let Some(form) = form.filter(|_| !runs_commands && !check.is_damaged(&top())) else { return (Vec::new(), None) };
    match form {
        LoadForm::Scenario(scenario) => (vec![*scenario], None),
        LoadForm::Levels(levels) => {
            let trace = levels.arrivals.as_ref().and_then(|text| trace(&text.0, folder, check));
            (expand_levels(levels, trace.as_ref(), check), trace)
        }
    }
}

/// What a file says about arrivals; `None` where they come by a rule.
fn trace(text: &str, folder: &Path, check: &mut Check<'_>) -> Option<Trace> {
    if matches!(text, "poisson" | "constant") || check.depth == Depth::Names {
        return None;
    }
    let place = top().key("arrivals");
    let existing = check.depth.existing(folder, text);
    let path = existing.map_err(|problem| check.error(&place, problem.message, problem.hint)).ok()?;
    let read = match plain_file::text(&path) {
        Ok(read) => Trace::read(InputFile { path, sha256: digest::of_text(&read) }, &read),
        Err(error) => Err((error.to_string(), "name a file with a time in seconds on each line".to_owned())),
    };
    read.map_err(|(problem, hint)| check.error(&place, format!("`{text}`: {problem}"), hint)).ok()
}

fn expand_levels(form: &LoadLevels, trace: Option<&Trace>, check: &mut Check<'_>) -> Vec<Load> {
    let needs_rate = [("bound", form.bound.is_some()), ("arrivals", form.arrivals.is_some())];
    let arrivals = match form.arrivals.as_ref().map(|text| text.0.as_str()) {
        None | Some("poisson") => Arrivals::Poisson,
        Some("constant") => Arrivals::Constant,
        Some(_) => Arrivals::Trace,
    };
    match (&form.clients, &form.rate) {
        (Some(clients), None) => {
            for (key, _) in needs_rate.iter().filter(|(_, is_written)| *is_written) {
                let problem = check.at_key(&top().key(key), format!("`{key}` is for a `rate`"));
                check
                    .problems
                    .push(problem.with_hint("leave it out: a caller who waits for each answer is never late"));
            }
            let levels = clients.places(&top().key("clients")).into_iter();
            unique(levels.map(|(place, count)| (place, Load::Clients(count.0))).collect(), check)
        }
        (None, Some(rates)) => {
            let bound = form.bound.as_ref().and_then(|form| bound(form, check));
            let levels = read_rates(rates, arrivals, bound, form.bound.is_some(), check);
            unique(levels, check)
        }
        (Some(_), Some(_)) => {
            let message = "`clients` and `rate` are two kinds of load, and a specification measures one";
            check.error(&top(), message, "measure them in two specifications".to_owned());
            Vec::new()
        }
        // What is wrong with the file is said.
        (None, None) if arrivals == Arrivals::Trace => {
            let bound = form.bound.as_ref().and_then(|form| bound(form, check));
            trace.map(|Trace { per_s, .. }| Load::Rate { per_s: *per_s, arrivals, bound }).into_iter().collect()
        }
        (None, None) => {
            let hint = match needs_rate.iter().any(|(_, is_written)| *is_written) {
                true => "add `rate: 50/s`, or `rate: largest`",
                false => "write `load: { clients: [1, 2, 4] }`",
            };
            check.error(&top(), "a load has `clients` or a `rate`", hint.to_owned());
            Vec::new()
        }
    }
}

fn read_rates(
    rates: &OneOrMany<RateText>,
    arrivals: Arrivals,
    bound: Option<LatencyBound>,
    has_bound: bool,
    check: &mut Check<'_>,
) -> Vec<(DocumentPath, Load)> {
    let mut levels = Vec::new();
    for (place, text) in rates.places(&top().key("rate")) {
        if text.0 == Load::LARGEST {
            if arrivals != Arrivals::Poisson {
                let message = "`largest` is for Poisson arrivals";
                let hint = "leave `arrivals` out, or try rates of your own: `rate: [50/s, 100/s]`";
                check.error(&top().key("arrivals"), message, hint.to_owned());
            }
            match bound {
                Some(bound) => levels.push((place, Load::Largest { arrivals, bound })),
                None if has_bound => {}
                None => {
                    let message = "`largest` is the largest rate that keeps a bound, and there is none";
                    check.error(&place, message, "add `bound: { p99: 20ms }`".to_owned());
                }
            }
            continue;
        }
        match per_second(&text.0) {
            Some(per_s) if RATES.contains(&per_s) => levels.push((place, Load::Rate { per_s, arrivals, bound })),
            Some(per_s) if per_s < *RATES.start() => {
                let message = format!("`{}` is less than one query in 100 s, so that a run would take days", text.0);
                check.error(&place, message, "use a higher rate, or one client: `load: { clients: 1 }`".to_owned());
            }
            _ => {
                let message = format!("`{}` is more than a million queries a second", text.0);
                check.error(&place, message, None);
            }
        }
    }
    levels
}

fn bound(form: &LatencyBoundForm, check: &mut Check<'_>) -> Option<LatencyBound> {
    let written = [
        (Statistic::P90, form.p90),
        (Statistic::P95, form.p95),
        (Statistic::P99, form.p99),
        (Statistic::P999, form.p99_9),
    ];
    let place = top().key("bound");
    let of_queries = written.into_iter().filter_map(|(statistic, limit)| Some((statistic, limit?, false)));
    let limits: Vec<_> = of_queries.chain(form.ttft_p99.map(|limit| (Statistic::P99, limit, true))).collect();
    let [(statistic, limit, is_to_first_token)] = limits[..] else {
        let message = match limits.is_empty() {
            true => "`itl_p99` alone bounds no rate: gaps begin after the wait",
            false => "a bound is one percentile",
        };
        let hint = "write `bound: { p99: 20ms }`, or `bound: { ttft_p99: 200ms, itl_p99: 30ms }` of greedy loops";
        check.error(&place, message, hint.to_owned());
        return None;
    };
    let key = if is_to_first_token { "ttft_p99" } else { statistic.name() };
    measure::positive(limit, &place.key(key), check);
    form.itl_p99.into_iter().for_each(|gap| measure::positive(gap, &place.key("itl_p99"), check));
    let bound = LatencyBound { probability: statistic.probability()?, limit, is_to_first_token, gap: form.itl_p99 };
    Some(bound).filter(|bound| bound.limit.0 > 0)
}

fn unique(levels: Vec<(DocumentPath, Load)>, check: &mut Check<'_>) -> Vec<Load> {
    let mut seen = HashSet::new();
    for (place, level) in &levels {
        if !seen.insert(level.label()) {
            check.error(place, format!("`{}` is listed twice", level.label()), None);
        }
    }
    levels.into_iter().map(|(_, level)| level).collect()
}

/// What a load asks of the rest of `measure`.
pub(super) fn check_measure(load: &[Load], measure: &mut Measure, check: &mut Check<'_>) {
    if load.is_empty() {
        return;
    }
    let most = match measure.stop {
        Stop::Samples(SamplesStop { count, .. }) => count,
        Stop::Time(TimeStop { max_samples, .. }) | Stop::Precision(PrecisionStop { max_samples, .. }) => max_samples,
    };
    if most > MOST_QUERIES {
        let message = format!("a run under a load has at most a million queries, and `stop` asks for {most}");
        check.error(&DocumentPath::top("measure").key("stop"), message, None);
    }
    let place = |key: &str| DocumentPath::top("measure").key(key);
    let asked = [
        ("design", !matches!(measure.design, Design::Blocks | Design::Sequential), "slices are too short for a queue"),
        ("cache", measure.cache == Cache::Cold, "caches cannot be emptied while queries wait"),
        ("pipelined", measure.pipelined.is_some(), "a load says how many inferences are under way"),
    ];
    for (key, _, why) in asked.into_iter().filter(|(_, is_asked, _)| *is_asked) {
        let problem = check.at_key(&place(key), format!("under a `load` there is no `{key}`: {why}"));
        check.problems.push(problem.with_hint("leave one of them out"));
    }
    if check.is_damaged(&place("stop")) {
        return;
    }
    if !check.has(&place("stop")) {
        measure.stop = STOP;
        if !check.has(&place("timeout")) {
            measure.timeout = measure.timeout.max(TIMEOUT);
        }
    } else if let Stop::Precision(PrecisionStop { max_time, .. }) = measure.stop {
        let message = "`precision` takes latencies for independent, and those of a queue are not";
        // What the file says is right for the runs that it asks for; the load came from the command line.
        if check.is_of_command_line(&top()) && !check.is_of_command_line(&place("stop")) {
            measure.stop = timed(max_time);
            if !check.has(&place("timeout")) {
                measure.timeout = measure.timeout.max(TIMEOUT);
            }
            let instead = format!(
                "with this load a run goes on for its queries (1000 at a rate, 4000 where the largest is looked for), and for \
                 {max_time} at least"
            );
            check.warn(&place("stop"), message, instead);
        } else {
            check.error(&place("stop"), message, "write `stop: { mode: time, time: 10s }`, or leave it out".to_owned());
        }
    }
}

/// The rule without another one, for so long.
fn timed(time: Nanos) -> Stop {
    match STOP {
        Stop::Time(TimeStop { min_samples, max_samples, .. }) => {
            Stop::Time(TimeStop { time, min_samples, max_samples })
        }
        other => other,
    }
}

/// Refuses metrics that no cell has: those of a load that is not there, and latencies where every rate is looked for.
pub(super) fn check_metrics(
    asked: &[(DocumentPath, MetricReference)],
    load: &[Load],
    runs_commands: bool,
    is_written: bool,
    check: &mut Check<'_>,
) {
    // Levels that could not be read may measure it.
    if runs_commands || (load.is_empty() && is_written) {
        return;
    }
    for (place, reference) in asked.iter().filter(|(_, asked)| !load.iter().any(|load| load.reports(asked.metric))) {
        let is_near = ([LATENCY.name, LATE_SHARE.name].contains(&reference.metric.name)
            || reference.metric.least_tokens().is_some())
            && load.iter().any(Load::is_largest);
        let (message, hint) = match Load::that_measures(reference.metric) {
            _ if is_near => (
                format!("`{reference}` is that of runs near the largest rate, not at it"),
                "ask for `largest_rate`, which keeps the bound, or for a rate too: `rate: [100/s, largest]`".to_owned(),
            ),
            Some(load) => (format!("no cell has `{reference}`"), format!("it takes `measure: {{ load: {load} }}`")),
            None => continue,
        };
        check.error(place, message, hint);
    }
}

/// Without a load nothing is served at once.
pub(super) fn check_sessions(is_written: bool, variants: &[Variant], check: &mut Check<'_>) {
    let asks = |variant: &&Variant| variant.sessions.is_some() || variant.shared_session;
    if let Some(variant) = variants.iter().find(asks).filter(|_| !is_written) {
        let message = format!("`{}` asks for sessions, and one inference runs after the other", variant.name);
        check.error(&DocumentPath::top("variants"), message, "add `measure: { load: { clients: [1, 4] } }`".to_owned());
    }
}

/// Refuses bounds on tokens where no greedy loop emits any.
pub(super) fn check_tokens(load: &[Load], inputs: &[InputPoint], models: &[Model], check: &mut Check<'_>) {
    let of_models = models.iter().filter_map(|model| model.inputs.as_ref()).flatten();
    if load.iter().filter_map(Load::bound).any(|bound| bound.is_of_tokens())
        && !inputs.iter().chain(of_models).any(emits_tokens)
    {
        let message = "`ttft_p99` and `itl_p99` bound greedy loops, and there is none";
        check.error(&top().key("bound"), message, "write `decode: { prompt: 128, generate: 64 }`".to_owned());
    }
}

/// Whether its cells run greedy loops.
fn emits_tokens(point: &InputPoint) -> bool {
    point.call().is_some_and(|call| call.generated > 0)
}

/// Every input at every level; where that bounds tokens, every greedy loop.
pub(super) fn multiply(points: &mut Vec<InputPoint>, levels: &[Load], check: &mut Check<'_>) {
    if levels.is_empty() {
        return;
    }
    if points.iter().any(|point| point.search.is_some()) {
        let message = "under a `load` the batch is not searched: the best one depends on the load";
        check.error(&top(), message, "name batches, or leave `load` out".to_owned());
    }
    let at = |point: &InputPoint, level: &Load| {
        let label = level.label();
        let name = if point.name == UNSET { label } else { format!("{}-{label}", point.name) };
        InputPoint { name, load: Some(*level), ..point.clone() }
    };
    let goes_with = |point: &InputPoint, level: &Load| {
        emits_tokens(point) || level.bound().is_none_or(|bound| !bound.is_of_tokens())
    };
    let pairs = points.iter().flat_map(|point| levels.iter().map(move |level| (point, level)));
    let multiplied: Vec<_> = pairs.filter(|(point, level)| goes_with(point, level)).map(|it| at(it.0, it.1)).collect();
    let is_left_out = |point: &&InputPoint| !levels.iter().any(|level| goes_with(point, level));
    let says_at = |point: &InputPoint| point.dimensions.contains_key(AT);
    if points.iter().filter(is_left_out).any(says_at) && !multiplied.is_empty() {
        let message = "under a bound on tokens greedy loops alone are measured, and no other calls";
        check.warn(
            &DocumentPath::top("decode"),
            message,
            "leave `at` out, or measure steps without a `load`".to_owned(),
        );
    }
    // Without a loop there is nothing to measure, which is reported.
    if !multiplied.is_empty() {
        *points = multiplied;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expand::tests::{mock, problems, valid};

    fn names(load: &str) -> Vec<String> {
        mock(&format!("measure: {{ load: {load} }}")).inputs.into_iter().map(|input| input.name).collect()
    }

    #[test]
    fn every_input_is_measured_at_every_level() {
        assert_eq!(names("{ clients: [1, 4] }"), ["c1", "c4"]);
        assert_eq!(
            names("{ rate: [50/s, 90/min, 7, largest], bound: { p99: 20ms } }"),
            ["50rps", "1.5rps", "7rps", "largest"]
        );
        assert_eq!(names("offline"), ["offline"]);
        let of_tokens = "bound: { ttft_p99: 200ms, itl_p99: 30ms }";
        let load =
            format!("decode: {{ prompt: 8, at: 4, generate: 4 }}\nmeasure: {{ load: {{ rate: 5/s, {of_tokens} }} }}");
        let inputs = mock(&load).inputs;
        let bound = inputs[0].load.and_then(|load| load.bound()).expect("there is one");
        assert_eq!((inputs.len(), inputs[0].name.as_str()), (1, "generate-4-from-8-5rps"));
        assert_eq!(bound.to_string(), "ttft_p99 <= 200 ms and itl_p99 <= 30 ms");
        let without =
            |load: &str| problems(&format!("decode: {{ at: 4 }}\nmeasure: {{ load: {{ rate: 5/s, {load} }} }}"));
        assert_eq!(without(of_tokens), ["`ttft_p99` and `itl_p99` bound greedy loops, and there is none"]);
        assert_eq!(without("bound: { itl_p99: 1ms }"), ["`itl_p99` alone bounds no rate: gaps begin after the wait"]);
        assert_eq!(without("bound: { p90: 1ms, ttft_p99: 1ms }"), ["a bound is one percentile"]);
        let own = mock("models: [m, { name: n, inputs: { batch: 4 } }]\nmeasure: { load: single_stream }");
        let own = own.models[1].inputs.as_ref().expect("its own");
        assert_eq!((own[0].name.as_str(), own[0].load), ("b4-single-stream", Some(Load::SingleStream)));
    }

    #[test]
    fn a_load_has_its_own_rule_to_stop() {
        assert_eq!(mock("measure: { load: offline }").measure.stop, STOP);
        let stop = "stop: { mode: samples, count: 100 }";
        assert!(matches!(
            mock(&format!("measure: {{ load: offline, {stop} }}")).measure.stop,
            Stop::Samples(SamplesStop { count: 100, .. })
        ));
    }

    #[test]
    fn a_load_of_the_command_line_exchanges_precision_and_says_so() {
        let load = ["measure.load.rate=largest", "measure.load.bound.p99=20ms"];
        let loaded = valid("measure: { stop: { max_time: 500ms } }", &load);
        let time = Nanos::from_millis(500);
        assert!(matches!(loaded.experiment.measure.stop, Stop::Time(TimeStop { time: found, .. }) if found == time));
        assert_eq!(loaded.experiment.measure.timeout, TIMEOUT);
        let said: Vec<&str> = loaded.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(said, ["`precision` takes latencies for independent, and those of a queue are not"]);
        assert!(valid("runs: 5", &load).warnings.is_empty());
        assert_eq!(problems("measure: { load: offline, stop: { max_time: 500ms } }").len(), 1);
        let wrong = problems("measure: { load: offline, stop: { mode: time, time: 9999999999999h } }");
        assert_eq!(wrong, ["`9999999999999h` is too large for a duration"]);
    }

    #[test]
    fn what_no_cell_has_is_not_asked_for() {
        let of = |load: &str, metric: &str| problems(&format!("{load}\ngoals: [{{ metric: {metric}, max: 1 }}]\n"));
        let largest = "measure: { load: { rate: largest, bound: { p99: 20ms } } }";
        let (late, p99) = (of(largest, "late"), of(largest, "latency.p99, max: 20ms }, { metric: late"));
        assert_eq!(late, ["`late` is that of runs near the largest rate, not at it"]);
        assert_eq!(p99.len(), 2, "{p99:?}");
        let both = "measure: { load: { rate: [50, largest], bound: { p99: 20ms } } }";
        assert!(of(both, "late").is_empty());
        assert_eq!(of("", "late"), ["no cell has `late`"]);
        assert_eq!(of("measure: { load: offline }", "early_stopping, max: 1ms }, { metric: late").len(), 2);
        for asked in [
            "choose: { best: largest_rate }",
            "pareto: [largest_rate, peak_rss]",
            "gate: [{ metric: largest_rate, worse_by: 2% }]",
        ] {
            assert_eq!(problems(&format!("variants: [a, b]\n{asked}\n")), ["no cell has `largest_rate`"], "{asked}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let of = |measure: &str| problems(&format!("measure: {{ {measure} }}"));
        assert_eq!(of("load: { clients: 1, rate: 5/s }").len(), 1);
        assert_eq!(
            of("load: { rate: largest }"),
            ["`largest` is the largest rate that keeps a bound, and there is none"]
        );
        assert_eq!(of("load: { clients: 2, bound: { p99: 20ms } }"), ["`bound` is for a `rate`"]);
        assert_eq!(of("load: { bound: { p99: 20ms } }"), ["a load has `clients` or a `rate`"]);
        assert_eq!(of("load: { rate: [5, 5/s] }"), ["`5rps` is listed twice"]);
        assert!(of("load: { rate: 0.001/s }")[0].contains("less than one query in 100 s"));
        assert!(of("load: { rate: 2000000/s }")[0].contains("more than a million"));
        assert_eq!(of("load: { rate: largest, bound: { p99: 0ms } }").len(), 1);
        assert_eq!(of("load: { arrivals: constant }"), ["a load has `clients` or a `rate`"]);
        assert_eq!(of("load: { clients: 2, arrivals: t.csv }").len(), 2);
        assert_eq!(of("load: { rate: largest, bound: { p99: 20ms }, arrivals: constant }").len(), 1);
        assert!(of("load: { arrivals: fast }")[0].contains("`arrivals` is `fast`"));
        assert_eq!(of("load: offline, design: slices").len(), 1);
        assert_eq!(of("load: offline, cache: cold").len(), 1);
        assert_eq!(of("load: offline, stop: { max_time: 3s }").len(), 1);
        let of_commands = problems("commands: [ls]\nmeasure: { load: offline }");
        assert!(of_commands.contains(&"`load` has no effect on `commands`".to_owned()), "{of_commands:?}");
        assert_eq!(problems("inputs: { batch: best }\nmeasure: { load: offline }").len(), 1);
        for wrong in
            ["{ clients: 0 }", "{ clients: -1 }", "{ rate: fast }", "all", "{ rate: 5/s, bound: { p98: 3ms } }", "{}"]
        {
            assert!(!of(&format!("load: {wrong}")).is_empty(), "{wrong}");
        }
    }
}
