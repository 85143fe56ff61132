//! How it was measured, as paragraphs to paste: every number is a setting of this record or a constant of the code.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Reader, facts, trust};
use crate::format::{amount, confidence, percent};
use crate::together;
use base::metric::{DEVICE_ENERGY, LATENCY, Metric, PACKAGE_ENERGY, Unit};
use base::wording::{capitalized, count, distinct, list};
use experiment::{
    AdaptiveWarmup, Arrivals, Boundary, Cache, Completion, Design, Load, PrecisionStop, Stop, StopStatistic, Warmup,
};
use judge::results::{Cell, Method, Results};
use plan::CellId;
use reading::shell;
use statistics::interim::InterimAnalyses;

/// The paragraphs: design, run, statistics. Results of format 2 hold too little for the first two.
pub(super) fn methods(reader: &Reader<'_>) -> Vec<String> {
    let parts = [design(reader), run(reader), Some(statistics(reader))];
    parts.into_iter().flatten().collect()
}

/// `one stream, cold caches`.
pub(super) fn stream(method: &Method) -> String {
    let stream = match method.design {
        Design::Duet => "two workers side by side, as on a shared machine (duet)",
        Design::Blocks | Design::Slices | Design::Sequential => "one stream",
    };
    let caches = if method.cache == Cache::Cold { ", cold caches" } else { "" };
    format!("{stream}{caches}")
}

const CLOSED: &str = "one stream, closed loop";

/// What latencies are under a load; a quick look tries no rate, and predicts the largest by service times.
pub(super) fn under_load(results: &Results) -> Option<&'static str> {
    let loads = || results.cells.iter().filter_map(|cell| cell.load.as_ref());
    loads().next()?;
    Some(match results.measured.quick && loads().all(|load| load.queries.is_largest()) {
        true => "service times of a closed loop, which predict the largest rate",
        false => "latency under a load, from when a query was due to its answer",
    })
}

/// How queries came.
fn queries(results: &Results) -> &'static str {
    under_load(results).unwrap_or(CLOSED)
}

/// The same in three sentences, without anything that moves from run to run.
pub(super) fn in_short(results: &Results) -> Vec<String> {
    let method = &results.method;
    let arranged = match method.design {
        Design::Blocks if method.is_parallel() => "in randomised blocks, devices at the same time",
        Design::Blocks => "in randomised blocks",
        Design::Slices => "in blocks, alternating in short slices with what it is compared with",
        Design::Duet => "in blocks, at the same time as what it is compared with",
        Design::Sequential => "one after the other",
    };
    let caches = if method.cache == Cache::Cold { ", cold caches" } else { "" };
    let (process, es) = if method.runs_commands() { ("run", "s") } else { ("fresh process", "es") };
    let runs = match (method.is_by_need(), results.rules.runs) {
        (false, 1) => format!("1 {process}"),
        // The budget may have left room for fewer than were asked for.
        (false, runs) => format!("{runs} {process}{es}"),
        (true, _) => {
            let asked = format!("{} to {} {process}{es}", results.rules.runs_min.unwrap_or(1), method.runs);
            let completed = results.cells.iter().map(|cell| cell.completed).max().unwrap_or(0);
            let is_cut = completed > 0 && Some(completed) < results.rules.runs_min;
            if is_cut { format!("{completed} of {asked}") } else { asked }
        }
    };
    let measured = match method.runs_commands() {
        true => format!(
            "Time: of one execution, from the start of its process to its end; {runs} per command, {arranged}; trimmed mean (25 %) of their medians, rounded."
        ),
        false => format!(
            "Latency: {runs} per cell, {arranged}; trimmed mean (25 %) of their medians, rounded; {}{caches}.",
            queries(results)
        ),
    };
    let imposed = (!method.session.is_empty()).then(|| {
        format!(
            "Setting: {} in every variant that does not set it, because workers stay alive side by side; with several threads it slows some models and not others.",
            entries(method)
        )
    });
    let judged = results.unasked().next().map(|row| {
        format!("Verdict: by the interval of the speed-up, paired by block, and a margin of {}.", percent(row.margin))
    });
    let can_be_checked = results.measured.complete && !results.provenance.machine.contains(" and ");
    let again = repeated(results).map(|(path, flags)| {
        let can_be_checked = can_be_checked && flags.is_empty() && !path.starts_with("ab ");
        let check =
            if can_be_checked { " Check on another machine: `perfrun reproduce` with results.json." } else { "" };
        // What `perfrun ab` measures is in no file: its words are its name, options included.
        let words = if path.starts_with("ab ") { path.to_owned() } else { shell::word(path) + &flags };
        format!("Repeat: `perfrun {words}`.{check}")
    });
    [Some(measured), imposed, judged, again].into_iter().flatten().collect()
}

/// The specification, and the options of `run` that change what is measured, each after a space; `None` where another
/// command changed it, or a quick look at models, which have no specification.
fn repeated(results: &Results) -> Option<(&str, String)> {
    let restrictions = &results.measured.restrictions;
    let overrides = facts::fact(results, "specification").and_then(|spec| spec["overrides"].as_array());
    let has = |all: &str| restrictions.iter().any(|flag| flag.starts_with(all));
    let is_all = (overrides.is_none_or(Vec::is_empty) || has("--set")) && !trust::is_look_at_models(results);
    let flag = |text: &String| {
        let text = text.starts_with("--").then_some(text)?;
        Some(match text.split_once(' ') {
            Some((name, value)) => format!(" {name} {}", shell::word(value)),
            None => format!(" {text}"),
        })
    };
    let flags = restrictions.iter().map(flag).collect::<Option<String>>()?;
    facts::of_specification(results, "path").filter(|_| is_all).zip(Some(flags))
}

/// The session entries that the design imposes.
fn entries(method: &Method) -> String {
    let entries = method.session.iter().map(|(key, value)| format!("{key} = {value}"));
    entries.collect::<Vec<_>>().join(", ")
}

/// How often what was run, and in which order.
fn design(reader: &Reader<'_>) -> Option<String> {
    let results = reader.results;
    results.method.stop?;
    let (method, measured) = (&results.method, &results.measured);
    let runs = match method.is_by_need() {
        false => count(u64::from(results.rules.runs), "run"),
        true => by_need(results),
    };
    let was = if measured.complete { "" } else { " planned" };
    let mut text = format!(
        "{}, {runs} each{was}, every run in a fresh process. {}",
        capitalized(&count(reader.shown().len() as u64, "cell")),
        arrangement(results)
    );
    if results.rules.controls > 0 {
        let controls = capitalized(&count(u64::from(results.rules.controls), "cell"));
        text += &format!(" {controls} twice, as the control.");
    }
    if !method.session.is_empty() {
        text += &format!(" Sessions had {}, unless the variant sets it.", entries(method));
    }
    if measured.sessions.len() > 1 {
        text += &format!(" The blocks were measured in {} sessions.", measured.sessions.len());
    }
    if results.cells.iter().any(|cell| cell.search.is_some()) {
        text += &format!(
            " A searched batch is the smallest of 1, 2, 4 ... whose throughput was within {} of the best.",
            percent(results.rules.margin)
        );
    }
    Some(text)
}

/// In which order the runs came.
fn arrangement(results: &Results) -> String {
    let order = format!("in balanced order (seed {})", results.rules.seed);
    let cells = if results.method.is_by_need() { "every cell that is not done" } else { "every cell" };
    let slice = results.method.slice_time;
    let path = |id: CellId| results.cells.iter().find(|cell| cell.id == id).map(Cell::path).unwrap_or_default();
    let tried = results.method.together.iter();
    let tried: String = tried.map(|trial| format!(" Tried together: {}.", together::found(trial, &path))).collect();
    match results.method.design {
        Design::Blocks => format!("Each block holds one run of {cells}, {order}.{tried}"),
        Design::Slices => {
            format!(
                "In a block the cells of a group take turns, alive at the same time, in slices of {slice}, {order}."
            )
        }
        Design::Duet => format!(
            "In a block both cells of a pair run at the same time on equal, disjoint sets of cores, which they swap, in slices of {slice}; latencies are those of a shared machine, and a speed-up is the median over paired slices."
        ),
        Design::Sequential => "All runs of a cell came one after the other: nothing here is comparable.".to_owned(),
    }
}

/// What a run did, and what lay within the clock.
fn run(reader: &Reader<'_>) -> Option<String> {
    let results = reader.results;
    let method = &results.method;
    let (warmed_up, stopped) = (method.warmup.as_ref()?, method.stop.as_ref()?);
    let scripted = (!method.runs_commands() && !method.reads_models())
        .then(|| "Durations came from a script (mock backend), on a clock of its own.".to_owned());
    let mut sentences: Vec<String> = scripted.into_iter().collect();
    sentences.push(format!("A run warmed up {} and sampled {}.", warmup(warmed_up), stop(stopped)));
    if method.reads_models() {
        sentences.push(format!(
            "Inputs: {}, up to {} in turn, the same for all variants.",
            values(results),
            count(u64::from(method.inputs), "set")
        ));
    }
    if method.cache == Cache::Cold {
        sentences.push("Caches were emptied before every sample.".to_owned());
    }
    sentences.extend(loads(results));
    sentences.extend(boundary(method));
    sentences.push(clock(results));
    sentences.extend(energy(results));
    Some(sentences.join(" "))
}

/// How queries came, a sentence for each kind of load.
fn loads(results: &Results) -> Vec<String> {
    let loads = distinct(results.cells.iter().filter_map(|cell| Some(cell.load.as_ref()?.queries)));
    let clients: Vec<String> = loads.iter().filter_map(Load::clients).map(|clients| clients.to_string()).collect();
    let closed = (!clients.is_empty())
        .then(|| format!("Callers ({}) asked again as soon as they had their answer.", list(&clients)));
    let open = loads.iter().find_map(Load::arrivals).map(|arrivals| {
        let arrivals = match arrivals {
            Arrivals::Constant => "at equal distances",
            Arrivals::Trace => "as in a recorded trace",
            Arrivals::Poisson => "as a Poisson process",
        };
        format!("Queries came {arrivals}, the same for every cell, whether earlier ones were answered or not.")
    });
    let largest = loads.iter().find(|load| load.is_largest()).and_then(Load::bound).map(|bound| {
        format!("The largest rate is that at which the share of late queries is what {bound} allows, by service times replayed through arrivals.")
    });
    let offline = loads.contains(&Load::Offline).then(|| "All queries were there at once.".to_owned());
    [closed, open, largest, offline].into_iter().flatten().collect()
}

/// What filled the inputs, in the order of the specification.
fn values(results: &Results) -> String {
    let of_input = |input: &Value| -> Vec<String> {
        let tensors = input["tensors"].as_object().into_iter().flat_map(|tensors| tensors.values());
        let has_tensors = input["tensors"].as_object().is_some_and(|tensors| !tensors.is_empty());
        let file = input["file"].is_string().then(|| "arrays of a file".to_owned());
        // Where every tensor has values of its own, nothing is left for those of all.
        let all = (!has_tensors || !input["values"].is_null()).then(|| kind(&input["values"]));
        tensors.map(kind).chain(file.or(all)).collect()
    };
    let kinds = distinct(facts::rows(results, "inputs").flat_map(of_input));
    if kinds.is_empty() { "seeded pseudo-random data".to_owned() } else { kinds.join(" or ") }
}

fn kind(values: &Value) -> String {
    match values {
        Value::Null => "seeded pseudo-random data".to_owned(),
        Value::String(word) => match word.as_str() {
            "random" => "seeded pseudo-random data".to_owned(),
            "dataset" => "items of the dataset".to_owned(),
            word => word.to_owned(),
        },
        Value::Object(fields) => match fields.get("range").and_then(Value::as_array).map(Vec::as_slice) {
            Some([low, high]) => format!("seeded uniform data from {low} up to {high}"),
            _ => "given values".to_owned(),
        },
        _ => "given values".to_owned(),
    }
}

fn warmup(rule: &Warmup) -> String {
    match rule {
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, tolerance, .. }) => {
            format!("for {min_time} to {max_time}, until its latency was steady within {}", percent(tolerance.0))
        }
        Warmup::Samples(rule) => format!("for {}", count(u64::from(rule.count), "sample")),
        Warmup::Time(rule) => format!("for {}", rule.time),
    }
}

fn stop(rule: &Stop) -> String {
    match rule {
        Stop::Precision(rule) => {
            let PrecisionStop { min_samples, max_samples, min_time, max_time, .. } = rule;
            let statistic = match rule.statistic {
                StopStatistic::Median => "median",
                StopStatistic::Mean => "mean",
            };
            format!(
                "until its {statistic} was known within {} (at least {min_samples} samples and {min_time}, at most {max_samples} samples or {max_time})",
                percent(rule.relative.0)
            )
        }
        Stop::Samples(rule) => format!("{}, for at most {}", count(u64::from(rule.count), "time"), rule.max_time),
        Stop::Time(rule) => format!("for {}, at most {}", rule.time, count(rule.max_samples.into(), "time")),
    }
}

/// What lies within the clock on devices other than the CPU, a sentence for each way of waiting for them.
fn boundary(method: &Method) -> Option<String> {
    let mut ways: BTreeMap<&'static str, Vec<&String>> = BTreeMap::new();
    for (device, completion) in &method.completion {
        ways.entry(within(method.boundary, *completion)).or_default().push(device);
    }
    let sentences: Vec<String> =
        ways.iter().map(|(within, devices)| format!("On {} {within}.", list(devices))).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// What the clock holds.
fn within(boundary: Boundary, completion: Completion) -> &'static str {
    match (boundary, completion) {
        (Boundary::Host, _) => "the copies from and to host memory are within the clock (`boundary: host`)",
        (Boundary::Device, Completion::Stream) => {
            "inputs and outputs stayed on the device, and the clock ended with an event of its stream (`boundary: device`)"
        }
        (Boundary::Device, Completion::ReadBack) => {
            "inputs were on the device, and the copy of outputs to host memory is within the clock, since the runtime offers no way to wait for the device (`boundary: device`)"
        }
        (Boundary::Device, Completion::Returns) => {
            "inputs were where the model runs, and a call returned when its outputs were complete (`boundary: device`)"
        }
    }
}

/// What lay between two readings of the clock.
fn clock(results: &Results) -> String {
    let measured = || results.cells.iter().filter(|cell| cell.estimate(&LATENCY).is_some());
    let iterations = || measured().map(|cell| cell.iterations);
    match (iterations().min().unwrap_or(1), iterations().max().unwrap_or(1)) {
        (1, 1) if results.method.runs_commands() => {
            "The clock enclosed the start of a process and the wait for its end.".to_owned()
        }
        (1, 1) => "The clock enclosed one inference.".to_owned(),
        (least, most) if least == most => format!("The clock enclosed {most} consecutive inferences."),
        (least, most) => format!("The clock enclosed {least} to {most} consecutive inferences."),
    }
}

/// How energy was measured; `None` where no cell has energy.
fn energy(results: &Results) -> Option<String> {
    let has = |metric: &Metric| results.cells.iter().any(|cell| cell.estimate(metric).is_some());
    let counters =
        [(DEVICE_ENERGY, "the GPU's own counter"), (PACKAGE_ENERGY, "the counters of the processor packages (RAPL)")];
    let counters: Vec<&str> = counters.iter().filter(|(metric, _)| has(metric)).map(|(_, words)| *words).collect();
    if counters.is_empty() {
        return None;
    }
    let watts = |value: &Value| value.as_f64().map(|watts| amount(Unit::Watts, watts));
    let idle = facts::fact(results, "idle_watts");
    let gpus = idle.and_then(|idle| idle["gpus"].as_array()).into_iter().flatten();
    let gpus = gpus.filter_map(|row| Some(format!("{} drew {}", row["device"].as_str()?, watts(&row["watts"])?)));
    let packages = idle.and_then(|idle| watts(&idle["packages"])).map(|watts| format!("the processors drew {watts}"));
    let idle: Vec<String> = gpus.chain(packages).collect();
    let before = if idle.is_empty() { String::new() } else { format!("; idle, {}", list(&idle)) };
    Some(format!(
        "Energy per inference is the increase of {} over the inferences of counted samples, idle power included{before}.",
        list(&counters)
    ))
}

/// `95 %`, `99.7 to 98.3 %`: of the first and the last analysis.
fn levels(analyses: &InterimAnalyses) -> String {
    let at = |blocks: Option<u32>| {
        let blocks = blocks.unwrap_or(0) as usize;
        analyses.analysis_of(blocks).confidence(blocks)
    };
    let [first, last] = [at(analyses.blocks().next()), at(analyses.blocks().last())].map(confidence);
    if first == last { first } else { format!("{} to {last}", first.trim_end_matches(" %")) }
}

fn statistics(reader: &Reader<'_>) -> String {
    let results = reader.results;
    let rules = &results.rules;
    let mut text = format!(
        "Latency: the 25 % trimmed mean of the processes' medians, interval at {} (Yuen 1974).",
        confidence(rules.confidence)
    );
    let late: u64 = results.cells.iter().map(|cell| cell.late_warmup).fold(0, u64::saturating_add);
    if late > 0 {
        text += &format!(" {} of late warm-up (MSER-5) left out.", capitalized(&count(late, "sample")));
    }
    let analyses = InterimAnalyses::new(rules.runs_min.unwrap_or(rules.runs), rules.runs);
    if let Some(row) = results.unasked().next() {
        text += &format!(
            " Speed-up: the same of the log ratios in common blocks, interval at {}, margin {}, not adjusted for {}.",
            levels(&analyses),
            percent(row.margin),
            count(results.unasked().count() as u64, "comparison")
        );
    }
    text
}

/// How often cells are run where that goes by need.
fn by_need(results: &Results) -> String {
    let interim_analyses: Vec<String> = results.method.interim_analyses.iter().map(u32::to_string).collect();
    format!(
        "{} to {} runs by need (interim analyses after {})",
        results.rules.runs_min.unwrap_or(1),
        results.method.runs,
        list(&interim_analyses)
    )
}
