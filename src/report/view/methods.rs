//! How it was measured, as paragraphs to paste: every number is a setting of this record or a constant of the code.

use statistics::looks::Looks;

use super::boundary::boundary;
use crate::experiment::{Axis, Cache, Design, Grade, Stop, StopStatistic, Values, Warmup};
use crate::judge::compare::Terms;
use crate::judge::summary::{CONFIDENCE, CellSummary, LEAST_RUNS};
use crate::machine::host::Host;
use crate::record::{Manifest, RuntimeUsed};
use crate::report::format::{self, count, percent};
use crate::report::{Input, capitalized};
use crate::vocabulary::code::spelt;
use crate::vocabulary::metric::{self, MetricReference};
use crate::worker::backend;

/// The paragraphs: design, run, statistics, versions.
pub(super) fn methods(input: &Input<'_>) -> Vec<String> {
    vec![design(input), run(input), statistics(input), versions(input.manifest)]
}

/// The same in three sentences, without anything that moves from run to run.
pub(super) fn in_short(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let measure = &manifest.experiment.measure;
    let arranged = match measure.design {
        Design::Blocks => "in randomised blocks",
        Design::Slices => "in blocks, alternating in short slices with what it is compared with",
        Design::Duet => "in blocks, at the same time as what it is compared with",
        Design::Sequential => "one after the other",
    };
    let caches = if measure.cache == Cache::Cold { ", cold caches" } else { "" };
    let runs = match manifest.experiment.looks().is_one() {
        // The budget may have left room for fewer than were asked for.
        true => match manifest.plan.runs {
            1 => "1 fresh process".to_owned(),
            runs => format!("{runs} fresh processes"),
        },
        false => format!("{} fresh processes", manifest.experiment.runs),
    };
    let measured = format!(
        "Latency: {runs} per cell, {arranged}; mean of the middle half of their medians, rounded; one stream, closed loop{caches}."
    );
    let terms = Terms::of(manifest);
    let judged = manifest.plan.baseline.as_ref().map(|_| {
        format!(
            "Verdict: by the {} interval of the speed-up, paired by block, and a margin of {}.",
            percent(terms.confidence),
            percent(terms.margin_of(MetricReference::LATENCY))
        )
    });
    // Less than the specification says is not repeated by it.
    let is_whole = !manifest.quick && manifest.restrictions.is_empty() && manifest.spec.overrides.is_empty();
    let can_be_checked = manifest.findings.complete && manifest.machines.len() < 2;
    let again = is_whole.then(|| {
        let check =
            if can_be_checked { " Check on another machine: `perfrun reproduce` with results.json." } else { "" };
        format!("Repeat: `perfrun {}`.{check}", manifest.spec.path)
    });
    [Some(measured), judged, again].into_iter().flatten().collect()
}

fn design(input: &Input<'_>) -> String {
    let manifest = input.manifest;
    let plan = &manifest.plan;
    let cells = match plan.runnable().count() {
        1 => "The cell".to_owned(),
        several => format!("Each of {several} cells"),
    };
    let processes = match manifest.experiment.looks() {
        looks if looks.is_one() => count(u64::from(plan.runs), "time"),
        looks => by_need(manifest, looks),
    };
    let was = if manifest.findings.complete { "was" } else { "was to be" };
    let fails = |cell: &CellSummary| cell.runs.failed + cell.runs.not_run > 0;
    let exceptions = match input.summary.cells.iter().any(fails) {
        true => " (except runs that failed or were not started, listed in the notices)",
        false => "",
    };
    let mut text = format!(
        "{cells} (model x input x variant x device) {was} run {processes}, each time in a fresh process{exceptions}; the process is the unit of replication, and n counts processes. {}",
        arrangement(manifest)
    );
    let controls = count(plan.controls.len() as u64, "cell");
    if !plan.controls.is_empty() {
        let (was, it) = if plan.controls.len() == 1 { ("was", "it") } else { ("were", "each of them") };
        text += &match manifest.experiment.measure.design {
            Design::Duet => format!(
                " {} {was} measured as two identical arms side by side in the same blocks as well: the control.",
                capitalized(&controls)
            ),
            _ => format!(
                " {} {was} measured twice in the same blocks, with {it} counted as two identical arms: the control.",
                capitalized(&controls)
            ),
        };
    }
    if !manifest.imposed_session.is_empty() {
        let entries: Vec<String> =
            manifest.imposed_session.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        text += &format!(
            " Because workers stayed resident, every session had {} unless its variant sets it.",
            entries.join(", ")
        );
    }
    if manifest.findings.sessions.len() > 1 {
        text += &format!(" The blocks were measured in {} sessions.", manifest.findings.sessions.len());
    }
    if manifest.findings.search.as_ref().is_some_and(|found| !found.searches.is_empty()) {
        text += &format!(
            " Where the specification leaves the batch to a search, batches of 1, 2, 4 ... were tried, each in a fresh process, until memory ran out, a run had no time for five samples, or the limit was reached; the cell was measured at the smallest batch whose throughput was within {} of the best.",
            format::percent(manifest.experiment.compare.margin.default.0)
        );
    }
    text +=
        " Before the first block every cell was loaded and run briefly once; those runs are not part of any statistic.";
    text
}

/// In which order the runs came.
fn arrangement(manifest: &Manifest) -> String {
    let seed = manifest.plan.seed;
    let order = format!(
        "their order was shuffled with seed {seed} in every first and reversed in every second block, so that a linear drift of the machine cancels over each pair of blocks"
    );
    let measure = &manifest.experiment.measure;
    match measure.design {
        Design::Blocks => format!(
            "Runs were arranged in randomised complete blocks: block k holds run k of every cell, cells that are compared with each other are adjacent, and {order}."
        ),
        Design::Slices => format!(
            "In block k, run k of every cell of a group was alive at the same time, one of them active, in alternating slices of {}; {order}.",
            measure.slice_time
        ),
        Design::Duet => format!(
            "In block k, run k of both cells of a group measured at the same time, in slices of {}, on equal, disjoint sets of cores that they swapped in every block; they disturb each other, so the latencies are those of a shared machine and cannot be compared with others. Speed-ups are medians over the paired slices.",
            measure.slice_time
        ),
        Design::Sequential => {
            "All runs of a cell came one after the other, so nothing here may be compared with anything else."
                .to_owned()
        }
    }
}

fn run(input: &Input<'_>) -> String {
    let measure = &input.manifest.experiment.measure;
    let mut sentences = vec![
        backend::of(&input.manifest.experiment.backend).first_steps().to_owned() + &warmup(&measure.warmup),
        stop(&measure.stop),
    ];
    if input.manifest.experiment.backend.reads_models() {
        let feeds = |axis: &Axis| matches!(axis, Axis::Models | Axis::Inputs);
        let others = Axis::ALL.into_iter().filter(|axis| !feeds(axis) && !input.manifest.plan.names(*axis).is_empty());
        let everywhere = format::list(&others.map(Axis::plural).collect::<Vec<_>>());
        sentences.push(format!(
            "Up to {} of {}, equal for all {everywhere}, were used in turn, bound before the clock was read.",
            count(u64::from(measure.inputs), "input set"),
            values(input.manifest)
        ));
    }
    if measure.cache == Cache::Cold {
        sentences.push(
            "Before every sample, outside the clock, a buffer of twice the last-level cache was written and read, so that nothing of the model was left in the caches; throughput is meaningless then.".to_owned(),
        );
    }
    sentences.extend(boundary(input.manifest));
    sentences.push(clock(input));
    sentences.extend(super::energy::energy(input));
    sentences.join(" ")
}

/// What filled the inputs, in the order of the specification.
fn values(manifest: &Manifest) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for input in manifest.plan.inputs() {
        let rest = input.file.as_ref().map(|file| format!("arrays of {}", file.path.display()));
        // Where every tensor has values of its own, nothing is left for those of all.
        let all = (input.tensors.is_empty() || input.values != Values::default()).then(|| kind(&input.values));
        for kind in input.tensors.values().map(kind).chain(rest.or(all)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    kinds.join(" or ")
}

fn kind(values: &Values) -> String {
    match values {
        Values::Random => "seeded pseudo-random data".to_owned(),
        Values::Zeros => "zeros".to_owned(),
        Values::Ones => "ones".to_owned(),
        Values::Dataset => "items of the dataset".to_owned(),
        Values::Range(low, high) => format!("seeded uniform data from {low} up to {high}"),
        Values::List(_) => "given values".to_owned(),
    }
}

fn warmup(rule: &Warmup) -> String {
    match rule {
        Warmup::Adaptive { min_time, max_time, min_samples, tolerance } => format!(
            " until the median of the second quarter and that of the last half of all warm-up samples agreed within {} without a significant trend (at least {min_time} and {min_samples} samples, at most {max_time}, and never shorter than what any cell of the comparison needed in the first block).",
            percent(tolerance.0)
        ),
        Warmup::Samples { count: number } => format!(" for {}.", count(u64::from(*number), "sample")),
        Warmup::Time { time } => format!(" for {time}."),
    }
}

fn stop(rule: &Stop) -> String {
    match rule {
        Stop::Precision { statistic, relative, confidence, min_samples, max_samples, min_time, max_time } => {
            let statistic = match statistic {
                StopStatistic::Median => "median",
                StopStatistic::Mean => "mean",
            };
            format!(
                "Sampling went on until the half width of the {} interval of the run's {statistic}, corrected for autocorrelation, was within {} (at least {min_samples} samples and {min_time}, at most {max_samples} samples or {max_time}).",
                percent(confidence.0),
                percent(relative.0)
            )
        }
        Stop::Samples { count: number, max_time } => {
            format!("Sampling went on for {}, at most {max_time}.", count(u64::from(*number), "sample"))
        }
        Stop::Time { time, max_samples } => format!("Sampling went on for {time}, at most {max_samples} samples."),
    }
}

/// What lay between two readings of the clock.
fn clock(input: &Input<'_>) -> String {
    let iterations = || input.summary.cells.iter().filter(|cell| cell.latency.is_some()).map(|cell| cell.iterations);
    let (least, most) = (iterations().min().unwrap_or(1), iterations().max().unwrap_or(1));
    let enclosed = match (least, most) {
        (1, 1) => "one inference call".to_owned(),
        (least, most) if least == most => {
            format!("{most} consecutive inference calls (too short to be timed one by one), divided by their number")
        }
        (least, most) => format!(
            "{least} to {most} consecutive inference calls (more than one where one is too short to be timed), divided by their number"
        ),
    };
    let overheads =
        input.summary.cells.iter().filter_map(|cell| cell.estimate(&metric::CLOCK_OVERHEAD)).map(|e| e.value);
    let worst = overheads.fold(f64::NAN, f64::max);
    let cost = if worst.is_nan() { String::new() } else { format!(" ({worst:.0} ns at most here)") };
    format!(
        "The clock (monotonic) enclosed {enclosed}; its own cost{cost} is reported and not subtracted. This is the service time of a closed loop with one stream, not the response time under a load."
    )
}

fn statistics(input: &Input<'_>) -> String {
    let confidence = percent(CONFIDENCE);
    let mut text = format!(
        "The latency of a cell is the mean of the middle half of its processes' medians (25 % trimmed mean, interval at {confidence} by the Winsorised deviation and Student's t; Yuen 1974); other metrics likewise from one value a process. Percentiles are type 7 quantiles of each process, and marked as lower bounds where a process has too few samples for a finite upper confidence limit. No sample was removed, except late warm-up found by MSER-5, which is counted."
    );
    let late: u64 =
        input.summary.cells.iter().filter_map(|cell| cell.latency.as_ref()).map(|latency| latency.late_warmup).sum();
    if late > 0 {
        text += &format!(" Here that was {}.", count(late, "sample"));
    }
    let terms = Terms::of(input.manifest);
    if let Some(baseline) = &input.manifest.plan.baseline {
        text += &format!(
            " Cells were compared with {} by the logarithm of the ratio of latencies in each common block: the mean of the middle half again, with its interval at {}, and no verdict below {LEAST_RUNS} blocks. A cell is called faster or slower if the whole interval lies beyond a margin of {}, equivalent if it lies within, and inconclusive otherwise; no verdict is given where more than a fifth of a cell's processes failed, most of them never became steady, outputs held NaN or infinity, or samples were too short for cold caches; and in a quick look none within its margin. Intervals are not adjusted for the number of comparisons ({}); p values against the margin are, by Holm and by Benjamini and Hochberg, and decide no verdict.",
            baseline.name,
            percent(terms.confidence),
            percent(terms.margin_of(MetricReference::LATENCY)),
            input.judged.comparisons.len()
        );
    }
    let experiment = &input.manifest.experiment;
    if !experiment.goals.is_empty() || experiment.choose.as_ref().is_some_and(|question| !question.within.is_empty()) {
        text += &format!(" Goals and bounds were judged by intervals at {}.", percent(terms.confidence));
    }
    text + &controls(input.manifest)
}

/// How often cells are run where that goes by need.
fn by_need(manifest: &Manifest, looks: Looks) -> String {
    let all: Vec<String> = looks.blocks().map(|look| look.to_string()).collect();
    let settled = match manifest.plan.baseline {
        Some(_) => "all its comparisons had a verdict",
        None => "its interval was within the margin",
    };
    let is_asked = !manifest.experiment.goals.is_empty() || manifest.experiment.choose.is_some();
    let asked = if is_asked { ", and every goal and question was decided" } else { "" };
    format!(
        "{} times by need (looked at after {}; a group was done when {settled}{asked})",
        manifest.experiment.runs,
        format::list(&all)
    )
}

/// What follows from the controls, where there are any.
fn controls(manifest: &Manifest) -> String {
    let claim = match manifest.plan.controls.len() {
        0 => return String::new(),
        1 => " Had the control been judged faster or slower than itself, nothing would be claimed",
        _ => " Where a control is judged faster or slower than itself, nothing is claimed of its group",
    };
    let blocks = spelt(Grade::BLOCKS as usize);
    format!("{claim}; the grade is by the relative difference that {blocks} blocks like these detect with 80 % power.")
}

fn versions(manifest: &Manifest) -> String {
    let library = |(name, used): (Option<&str>, RuntimeUsed)| {
        let library = format::library(manifest, name, &used);
        format!("{library} (SHA-256 {})", used.sha256.get(..16).unwrap_or(&used.sha256))
    };
    let libraries: Vec<String> = manifest.libraries().map(library).collect();
    let runtime = (!libraries.is_empty()).then(|| format!(", ONNX Runtime {}", format::list(&libraries)));
    let commit = manifest.revision.as_ref().map(|revision| format!(", commit {}", revision.commit));
    format!(
        "Measured with perfrun {}{}{}; specification {} (SHA-256 {}), seed {}; on {}.",
        manifest.perfrun,
        runtime.unwrap_or_default(),
        commit.unwrap_or_default(),
        manifest.spec.path,
        manifest.spec.sha256.get(..16).unwrap_or(&manifest.spec.sha256),
        manifest.plan.seed,
        format::list(&manifest.hosts().into_iter().map(host).collect::<Vec<_>>()),
    )
}

fn host(host: &Host) -> String {
    let cpu = host.cpu.as_deref().unwrap_or("an unknown processor");
    format!("{cpu}, {}, kernel {}", host.system, host.kernel.as_deref().unwrap_or("unknown"))
}
