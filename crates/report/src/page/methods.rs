//! How it was measured, as paragraphs to paste: every number is a setting of this record or a constant of the code.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Reader, facts, trust};
use crate::format::{amount, confidence, percent};
use crate::together;
use base::code::spelt;
use base::metric::{CLOCK_OVERHEAD, DEVICE_ENERGY, LATENCY, Metric, PACKAGE_ENERGY, Unit};
use base::wording::{capitalized, count, distinct, list};
use experiment::{
    AdaptiveWarmup, Arrivals, Axis, Boundary, Cache, Completion, Design, Load, PrecisionStop, Stop, StopStatistic,
    Warmup,
};
use judge::results::{Cell, Method, Results};
use plan::CellId;
use reading::shell;
use statistics::interim::InterimAnalyses;
use statistics::planning::MINIMUM_RUNS;

/// The paragraphs: design, run, statistics, versions. Results of format 2 hold too little for the first two.
pub(super) fn methods(reader: &Reader<'_>) -> Vec<String> {
    let parts = [design(reader), run(reader), Some(statistics(reader)), Some(versions(reader.results))];
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

fn design(reader: &Reader<'_>) -> Option<String> {
    let results = reader.results;
    results.method.stop?;
    let (method, measured) = (&results.method, &results.measured);
    let cells = match reader.shown().len() {
        1 => "The cell".to_owned(),
        several => format!("Each of {several} cells"),
    };
    let processes = match method.is_by_need() {
        false => count(u64::from(results.rules.runs), "time"),
        true => by_need(results),
    };
    let was = if measured.complete { "was" } else { "was to be" };
    let exceptions = match results.cells.iter().any(|cell| cell.failed.max(cell.not_run) > 0) {
        true => " (except runs that failed or were not started, listed in the notices)",
        false => "",
    };
    let mut text = format!(
        "{cells} (model x input x variant x device) {was} run {processes}, each time in a fresh process{exceptions}; the process is the unit of replication, and n counts processes. {}",
        arrangement(results)
    );
    if results.rules.controls > 0 {
        let controls = capitalized(&count(u64::from(results.rules.controls), "cell"));
        let was = if results.rules.controls == 1 { "was" } else { "were" };
        text += &match method.design {
            Design::Duet => format!(
                " {controls} {was} measured as two copies side by side in the same blocks as well: the control, an A/A comparison."
            ),
            _ => format!(" {controls} {was} measured twice in the same blocks: the control, an A/A comparison."),
        };
    }
    if !method.session.is_empty() {
        text += &format!(
            " Because workers stayed resident, every session had {} unless its variant sets it; with several threads that slows some models and not others.",
            entries(method)
        );
    }
    if measured.sessions.len() > 1 {
        text += &format!(" The blocks were measured in {} sessions.", measured.sessions.len());
    }
    if results.cells.iter().any(|cell| cell.search.is_some()) {
        text += &format!(
            " Where the specification leaves the batch to a search, batches of 1, 2, 4 ... were tried, each in a fresh process, until memory ran out, a run had no time for five samples, or the limit was reached; the cell was measured at the smallest batch whose throughput was within {} of the best.",
            percent(results.rules.margin)
        );
    }
    text +=
        " Before the first block every cell was loaded and run briefly once; those runs are not part of any statistic.";
    Some(text)
}

/// In which order the runs came.
fn arrangement(results: &Results) -> String {
    let seed = results.rules.seed;
    let order = format!(
        "their order, drawn with seed {seed}, is balanced, so that a linear drift of the machine falls on all cells of a comparison alike"
    );
    let slice = results.method.slice_time;
    let path = |id: CellId| results.cells.iter().find(|cell| cell.id == id).map(Cell::path).unwrap_or_default();
    let tried: Vec<String> = results
        .method
        .together
        .iter()
        .map(|trial| format!(" Tried together: {}.", together::found(trial, &path)))
        .collect();
    match results.method.design {
        Design::Blocks => format!(
            "Runs were arranged in randomised complete blocks: block k holds run k of every cell, cells that are compared with each other are adjacent, and {order}.{}",
            tried.concat()
        ),
        Design::Slices => format!(
            "In block k, run k of every cell of a group was alive at the same time, one of them active, in alternating slices of {slice}; {order}."
        ),
        Design::Duet => format!(
            "In block k, run k of both cells of a group measured at the same time, in slices of {slice}, on equal, disjoint sets of cores that they swapped in every block; they disturb each other, so the latencies are those of a shared machine and cannot be compared with others. Speed-ups are medians over the paired slices."
        ),
        Design::Sequential => {
            "All runs of a cell came one after the other, so nothing here may be compared with anything else."
                .to_owned()
        }
    }
}

fn run(reader: &Reader<'_>) -> Option<String> {
    let results = reader.results;
    let method = &results.method;
    let (warmed_up, stopped) = (method.warmup.as_ref()?, method.stop.as_ref()?);
    let mut sentences = vec![first_steps(method) + &warmup(warmed_up), stop(stopped)];
    if method.reads_models() {
        let is_there = |axis: &Axis| results.cells.iter().any(|cell| cell.names[*axis] != Axis::ABSENT);
        let axes = Axis::ALL.into_iter().filter(|axis| !axis.is_workload() && is_there(axis));
        sentences.push(format!(
            "Up to {} of {}, equal for all {}, were used in turn, bound before the clock was read.",
            count(u64::from(method.inputs), "input set"),
            values(results),
            list(&axes.map(Axis::plural).collect::<Vec<_>>())
        ));
    }
    if method.cache == Cache::Cold {
        sentences.push(
            "Before every sample, outside the clock, a buffer of twice the last-level cache was written and read, so that nothing of the model was left in the caches; throughput is meaningless then.".to_owned(),
        );
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
    let open = loads.iter().find(|load| load.arrivals().is_some()).map(|load| {
        let arrivals = match load.arrivals() {
            Some(Arrivals::Constant) => "at equal distances",
            Some(Arrivals::Trace) => "as in a recorded trace",
            Some(Arrivals::Poisson) | None => "as a Poisson process",
        };
        format!("Queries came {arrivals}, whether earlier ones were answered or not; run k of every cell met the same arrivals.")
    });
    let largest = loads.iter().find(|load| load.is_largest()).and_then(Load::bound).map(|bound| {
        format!("The largest rate is that at which the mean share of late queries over processes, by their service times replayed through their own arrivals and other Poisson arrivals, is what {bound} allows; its interval is by inverted t tests.")
    });
    let offline = loads.contains(&Load::Offline).then(|| "All queries were there at once.".to_owned());
    [closed, open, largest, offline].into_iter().flatten().collect()
}

/// What a run did before it warmed up.
fn first_steps(method: &Method) -> String {
    match method.reads_models() {
        _ if method.runs_commands() => "A run executed the command once (the first execution, reported by itself) and warmed up",
        true => "A run loaded the model, executed it once (the first inference, reported by itself) and warmed up",
        false => "No model was executed: durations came from a script, on a clock of its own. A run had a first inference, reported by itself, and warmed up",
    }
    .to_owned()
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
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, tolerance }) => format!(
            " until the median of the second quarter and that of the last half of all warm-up samples agreed within {} without a significant trend (at least {min_time} and {min_samples} samples, at most {max_time}, and never shorter than what any cell of the comparison needed in the first block).",
            percent(tolerance.0)
        ),
        Warmup::Samples(rule) => format!(" for {}.", count(u64::from(rule.count), "sample")),
        Warmup::Time(rule) => format!(" for {}.", rule.time),
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
                "Sampling went on until the half width of the {} interval of the run's {statistic}, corrected for autocorrelation, was within {} (at least {min_samples} samples and {min_time}, at most {max_samples} samples or {max_time}).",
                crate::format::confidence(rule.confidence.0),
                percent(rule.relative.0)
            )
        }
        Stop::Samples(rule) => {
            format!("Sampling went on for {}, at most {}.", count(u64::from(rule.count), "sample"), rule.max_time)
        }
        Stop::Time(rule) => format!("Sampling went on for {}, at most {} samples.", rule.time, rule.max_samples),
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
    let placed = "The placement of each node was read from every session; the share of time in CPU nodes and in copies between nodes was profiled over ten inferences after the samples of the first run.";
    (!sentences.is_empty()).then(|| format!("{} {placed}", sentences.join(" ")))
}

/// What the clock holds.
fn within(boundary: Boundary, completion: Completion) -> &'static str {
    match (boundary, completion) {
        (Boundary::Host, _) => {
            "inputs and outputs were in host memory when the clock started and ended, so the copies are within it (`boundary: host`)"
        }
        (Boundary::Device, Completion::Stream) => {
            "inputs and outputs stayed on the device, and the clock ended when an event at the end of its stream had been waited for (`boundary: device`)"
        }
        (Boundary::Device, Completion::ReadBack) => {
            "inputs were on the device before the clock started; outputs were copied to host memory within it, since the runtime offers no way to wait for the device (`boundary: device`)"
        }
        (Boundary::Device, Completion::Returns) => {
            "inputs were where the model runs before the clock started, and a call returned when its outputs were complete (`boundary: device`)"
        }
    }
}

/// What lay between two readings of the clock.
fn clock(results: &Results) -> String {
    let measured = || results.cells.iter().filter(|cell| cell.estimate(&LATENCY).is_some());
    let iterations = || measured().map(|cell| cell.iterations);
    let enclosed = match (iterations().min().unwrap_or(1), iterations().max().unwrap_or(1)) {
        (1, 1) if results.method.runs_commands() => "the start of a process and the wait for its end".to_owned(),
        (1, 1) => "one inference call".to_owned(),
        (least, most) if least == most => {
            format!("{most} consecutive inference calls (too short to be timed one by one), divided by their number")
        }
        (least, most) => format!(
            "{least} to {most} consecutive inference calls (more than one where one is too short to be timed), divided by their number"
        ),
    };
    let middle = |cell: &Cell| {
        cell.environment.get(CLOCK_OVERHEAD.name).and_then(|values| values.get(values.len() / 2)).copied()
    };
    let worst = measured().filter_map(middle).max_by(f64::total_cmp);
    let cost = worst.map(|worst| format!(" ({worst:.0} ns at most here)")).unwrap_or_default();
    format!(
        "The clock (monotonic) enclosed {enclosed}; its own cost{cost} is reported and not subtracted. {}",
        match queries(results) {
            CLOSED => "This is the service time of a closed loop with one stream, not the response time under a load.",
            _ => "Latency is the time from when a query was due to its answer, including its wait for earlier queries.",
        }
    )
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
    let before =
        if idle.is_empty() { String::new() } else { format!(" Before the first block, idle, {}.", list(&idle)) };
    Some(format!(
        "Energy per inference is the increase of {} while counted samples were taken, divided by their inferences; idle power is included.{before}",
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
        "The latency of a cell is the 25 % trimmed mean of its processes' medians (interval at {} by the Winsorised deviation and Student's t; Yuen 1974); other metrics likewise from one value a process. Percentiles are type 7 quantiles of each process, and marked as lower bounds where a process has too few samples for a finite upper confidence limit. No sample was removed, except late warm-up found by MSER-5, which is counted.",
        confidence(rules.confidence)
    );
    let late: u64 = results.cells.iter().map(|cell| cell.late_warmup).fold(0, u64::saturating_add);
    if late > 0 {
        text += &format!(" Here that was {}.", count(late, "sample"));
    }
    let analyses = InterimAnalyses::new(rules.runs_min.unwrap_or(rules.runs), rules.runs);
    if let Some((baseline, row)) = rules.baseline.as_ref().zip(results.unasked().next()) {
        text += &format!(
            " Cells were compared with {baseline} by the logarithm of the ratio of latencies in each common block: the trimmed mean again, with an interval at {}, and no verdict below {MINIMUM_RUNS} blocks. A cell is called faster or slower if the whole interval lies beyond a margin of {} and the signed ranks of the blocks agree, equivalent if it lies within, and undecided otherwise; of a difference the interval shown is at 99.8 %, from the margin on where the estimate is near it; no verdict is given where more than a fifth of a cell's processes failed, most of them never became steady, outputs held NaN or infinity, or samples were too short for cold caches; and in a quick look none within its margin. Intervals are not adjusted for the number of comparisons ({}); p is of a difference beyond the margin.",
            levels(&analyses),
            percent(row.margin),
            results.unasked().count()
        );
        if !results.goals.is_empty() || results.choice.as_ref().is_some_and(|choice| !choice.bounds.is_empty()) {
            text += &format!(" Goals and bounds were judged by intervals at {}.", confidence(analyses.confidence()));
        }
    }
    text + &controls(results)
}

/// How often cells are run where that goes by need.
fn by_need(results: &Results) -> String {
    let interim_analyses: Vec<String> = results.method.interim_analyses.iter().map(u32::to_string).collect();
    let settled = match results.rules.baseline {
        Some(_) => "all its comparisons had a verdict",
        None => "its interval was within the margin",
    };
    let is_asked = !results.goals.is_empty() || results.choice.as_ref().is_some_and(|choice| !choice.unasked);
    let asked = if is_asked { ", and every goal and question was decided" } else { "" };
    format!(
        "{} to {} times by need (interim analyses after {}; a group was done when {settled}{asked})",
        results.rules.runs_min.unwrap_or(1),
        results.method.runs,
        list(&interim_analyses)
    )
}

/// What follows from the controls, where there are any.
fn controls(results: &Results) -> String {
    let claim = match results.rules.controls {
        0 => return String::new(),
        1 => " Had the control been judged faster or slower than itself, nothing would be claimed",
        _ => " Where a control is judged faster or slower than itself, nothing is claimed of its group",
    };
    let blocks = spelt(experiment::Grade::BLOCKS as usize);
    format!("{claim}; the grade is by the relative difference that {blocks} blocks like these detect with 80 % power.")
}

fn versions(results: &Results) -> String {
    let hash = |value: &Value| value.as_str().map(|hash| format!(" (SHA-256 {})", hash.get(..16).unwrap_or(hash)));
    let hashes = facts::rows(results, "runtimes").filter_map(|row| hash(&row["sha256"])).collect::<String>();
    let runtime = facts::runtimes(results).map(|runtimes| format!(", {runtimes}{hashes}")).unwrap_or_default();
    let commit = facts::text(results, "commit").map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let spec = facts::fact(results, "specification");
    let path = facts::of_specification(results, "path").unwrap_or("unknown");
    format!(
        "Measured with perfrun {}{runtime}{commit}; specification {path}{}, seed {}; on {}.",
        facts::text(results, "perfrun").unwrap_or_default(),
        spec.and_then(|spec| hash(&spec["sha256"])).unwrap_or_default(),
        results.rules.seed,
        facts::machine(results)
    )
}
