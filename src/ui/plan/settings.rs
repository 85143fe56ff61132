//! How an experiment compares, measures and asks, in a line each; what needs no word is left out.

use std::fmt::{Result, Write};

use super::time::about;
use base::metric::{Direction, MetricReference, Unit};
use base::quantity::Nanos;
use experiment::{
    Axis, Bound, Cache, Choose, Dataset, Design, Experiment, Parallel, PrecisionStop, SPINNING_STOP, Stop,
};
use judge::summary::LEAST_RUNS;
use plan::{CellForecast, Plan, estimate_before_measuring, is_idle};
use report::format::{self, difference};
use spec::Note;

/// Baseline, margins, controls, design, samples, budget, conditions and questions.
pub(super) fn describe(
    text: &mut String,
    experiment: &Experiment,
    notes: &[Note],
    plan: &Plan,
    expected: &[Option<CellForecast>],
) -> Result {
    let mut line = |label: &str, words: &str| writeln!(text, "{label:<11}{words}");
    line("baseline", &baseline(experiment, plan))?;
    line("control", &control(notes, plan, experiment.backend.runs_commands()))?;
    if let Some(design) = design(experiment) {
        line("design", &design)?;
    }
    if let Some(search) = search(plan) {
        line("search", &search)?;
    }
    for note in notes {
        match note {
            Note::MoreSamples { reference, from, to } => line("samples", &samples(experiment, *reference, *from, *to))?,
            Note::EqualVariants { variants } => line("variants", &equal_variants(variants))?,
            Note::NamedModel { file, name } => line("name", &named_model(file, name))?,
            Note::NoControl => {}
        }
    }
    if let Some(budget) = experiment.budget {
        line("budget", &self::budget(experiment, plan, budget, expected))?;
    }
    let grade = experiment.require.grade.map(|grade| format!("grade {} or better", grade.letter()));
    let quiet = experiment.require.quiet.then(|| "no background load on the machine".to_owned());
    let locked = experiment.require.gpu_clocks_locked.then(|| "locked GPU clocks".to_owned());
    let alone = experiment.require.no_foreign_processes.then(|| "no other process on the GPU".to_owned());
    let required: Vec<String> = grade.into_iter().chain(quiet).chain(locked).chain(alone).collect();
    if !required.is_empty() {
        line("require", &format::list(&required))?;
    }
    if let Some(choose) = &experiment.choose {
        line("choose", &question(choose))?;
        for limits in &choose.within {
            line("", &bound(limits))?;
            if is_idle(&limits.of, plan) {
                line("warning", &format!("choose where {} matches no cell", limits.of))?;
            }
        }
    }
    for goal in &experiment.goals {
        let name = goal.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        line("goal", &format!("{name}{}", bound(&goal.bound)))?;
    }
    for gate in &experiment.gate {
        let cells = if gate.of.0.is_empty() { String::new() } else { format!(" where {}", gate.of) };
        line("gate", &format!("{} worse by {}{cells}", gate.metric, difference(gate.worse_by, gate.metric)))?;
        if is_idle(&gate.of, plan) {
            line("warning", &format!("gate where {} matches no cell", gate.of))?;
        }
    }
    for input in plan.inputs().iter().filter(|input| input.file.is_some()) {
        let file = input.file.iter().filter_map(|file| file.path.file_name()).map(|name| name.to_string_lossy());
        line("inputs", &format!("{}: arrays of {}", input.name, file.collect::<String>()))?;
    }
    if let Some(trace) = &experiment.measure.trace {
        let file = trace.file.path.file_name().unwrap_or_default().to_string_lossy();
        line("arrivals", &format!("of {file}: {}", trace.described()))?;
    }
    for (model, dataset) in datasets(experiment) {
        line("dataset", &format!("{model}{}", dataset_words(dataset)))?;
    }
    if !experiment.tables.is_empty() {
        let names: Vec<&str> = experiment.tables.iter().map(|table| table.name.as_str()).collect();
        line("tables", &format::list(&names))?;
    }
    Ok(())
}

/// What is searched before anything is measured: `the batch of 2 cells: 1, 2, 4 .. at most 256, each in a fresh process`.
fn search(plan: &Plan) -> Option<String> {
    let searches: Vec<u64> = plan.runnable().filter_map(|(_, cell)| Some(plan.input_of(cell).search?.to)).collect();
    let most = searches.iter().max()?;
    let cells = format::count(searches.len() as u64, "cell");
    Some(format!(
        "the best batch of {cells}: 1, 2, 4 .. up to {most}, each in a fresh process; not included in the time below"
    ))
}

/// The experiment's data, and those of models with the model's name.
fn datasets(experiment: &Experiment) -> impl Iterator<Item = (String, &Dataset)> {
    let of_all = experiment.dataset.iter().map(|dataset| (String::new(), dataset));
    let of_models =
        experiment.models.iter().filter_map(|model| Some((format!("{}: ", model.name), model.dataset.as_ref()?)));
    of_all.chain(of_models)
}

/// `digits-test.npz, scored by top1`
fn dataset_words(dataset: &Dataset) -> String {
    let file = dataset.file.file_name().unwrap_or_default().to_string_lossy();
    let items = dataset.items.map_or(String::new(), |items| format!(", the first {items} items"));
    let metrics =
        dataset.metrics.as_ref().map(|metrics| metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>());
    let scored = match (metrics, dataset.score.first(), dataset.has_labels()) {
        (Some(metrics), ..) => format!(", scored by {}", metrics.join(", ")),
        (None, Some(program), _) => format!(", scored by {program}"),
        (None, None, true) => ", scored by its labels".to_owned(),
        (None, None, false) => ", for calibration and fidelity".to_owned(),
    };
    format!("{file}{items}{scored}")
}

fn baseline(experiment: &Experiment, plan: &Plan) -> String {
    let runs_commands = experiment.backend.runs_commands();
    let Some(baseline) = &plan.baseline else {
        if runs_commands {
            return "none: there is one command".to_owned();
        }
        let mut axes = Axis::compared_unasked();
        axes.retain(|axis| !plan.names(*axis).is_empty());
        let axes: Vec<&str> = axes.into_iter().map(Axis::plural).collect();
        return format!("none: {} have only one entry each", format::list(&axes));
    };
    let first = if baseline.is_default { ", the first of its axis" } else { "" };
    let margin = experiment.compare.margin;
    let margins = format!("margin {}, tails {}", format::percent(margin.default.0), format::percent(margin.tail.0));
    let (word, first) = if runs_commands { ("command".to_owned(), "") } else { (baseline.axes_words(), first) };
    format!("{word} `{}`{first}; {margins}", baseline.name)
}

fn control(notes: &[Note], plan: &Plan, is_of_commands: bool) -> String {
    match plan.controls.as_slice() {
        [] if notes.contains(&Note::NoControl) => "none: `design: sequential` compares nothing".to_owned(),
        [] => "none: the measurement itself is not checked".to_owned(),
        [one] => format!("{} is measured twice", plan.shown(&plan.cells[*one as usize], is_of_commands)),
        several => format!("{} cells are measured twice, one in each group that runs", several.len()),
    }
}

/// `models/my net.onnx is named my-net`.
pub(crate) fn named_model(file: &str, name: &str) -> String {
    format!("{file} is named {name}")
}

/// `a and b have the same settings: differences between them are noise`.
pub(crate) fn equal_variants(variants: &[String]) -> String {
    format!("{} have the same settings: differences between them are noise", format::list(variants))
}

/// Nothing for blocks and warm caches.
fn design(experiment: &Experiment) -> Option<String> {
    let measure = &experiment.measure;
    let design = match measure.design {
        Design::Blocks => None,
        Design::Slices => Some(format!("slices of {}: the processes of a group take turns", measure.slice_time)),
        Design::Duet => {
            Some(format!("duet: two cells at a time on halves of the cores, slices of {}", measure.slice_time))
        }
        Design::Sequential => Some("sequential: cell after cell".to_owned()),
    };
    let cache = (measure.cache == Cache::Cold).then(|| "caches are cold before every sample".to_owned());
    let parallel = measure.parallel.map(|Parallel::Devices| {
        "devices at the same time if a trial shows that they do not disturb each other; the time below is for one after the other"
            .to_owned()
    });
    let imposes = measure.design.keeps_several_alive() && experiment.backend.reads_models();
    let spinning = imposes.then(|| format!("`{}` is {} unless a variant sets it", SPINNING_STOP.0, SPINNING_STOP.1));
    let words: Vec<String> = design.into_iter().chain(spinning).chain(cache).chain(parallel).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn samples(experiment: &Experiment, reference: MetricReference, from: u32, to: u32) -> String {
    let mut words = format!("at least {to} per run instead of {from}, needed for `{reference}`");
    if let Stop::Precision(PrecisionStop { max_time, .. }) = experiment.measure.stop {
        // The time of a sample with which the limit comes just as the last one does.
        let slowest = max_time.to_duration() / to.max(1);
        let _ = write!(words, "; models slower than {slowest:.1?} reach `max_time` ({max_time}) first");
    }
    words
}

/// `90s: 8 runs of every cell take about 10 min; about 1 of them fits, and a verdict needs 5`, by the estimate that the time
/// below the cells is made from.
fn budget(experiment: &Experiment, plan: &Plan, budget: Nanos, expected: &[Option<CellForecast>]) -> String {
    let time = |runs: u32| estimate_before_measuring(experiment, plan, runs, expected);
    let wanted = experiment.interim_analyses().blocks().next().unwrap_or(plan.runs).min(plan.runs);
    // At least one block is always measured.
    let fits = (2..=wanted).rev().find(|runs| time(*runs).typical() <= budget).unwrap_or(1);
    if fits >= wanted && time(wanted).typical() <= budget {
        return budget.to_string();
    }
    let verb = if fits == 1 { "fits" } else { "fit" };
    let verdict = match fits < LEAST_RUNS as u32 {
        true => format!(", and a verdict needs {LEAST_RUNS}"),
        false => String::new(),
    };
    let runs = format::count(u64::from(wanted), "run");
    format!("{budget}: {runs} of every cell take {}; about {fits} of them {verb}{verdict}", about(time(wanted)))
}

fn question(choose: &Choose) -> String {
    let best = match choose.best.metric.direction {
        Direction::HigherIsBetter => "highest",
        Direction::LowerIsBetter | Direction::Neutral => "lowest",
    };
    let within = if choose.within.is_empty() { "" } else { " within" };
    format!("{best} {}{within}", choose.best)
}

/// `latency.p95 <= 20 ms for batch=1`.
fn bound(bound: &Bound) -> String {
    let show = |limit: f64| value(bound.metric, limit);
    let range = match (bound.min, bound.max) {
        (Some(min), Some(max)) => format!("{} <= {} <= {}", show(min), bound.metric, show(max)),
        (Some(min), None) => format!("{} >= {}", bound.metric, show(min)),
        (None, Some(max)) => format!("{} <= {}", bound.metric, show(max)),
        (None, None) => bound.metric.to_string(),
    };
    if bound.of.0.is_empty() { range } else { format!("{range} for {}", bound.of) }
}

/// A stored value as a person would write it: `20 ms`, `512 MiB`, `50/s`, `7%`, `1.5`.
fn value(reference: MetricReference, value: f64) -> String {
    let scale = format::scale(reference.unit(), [value]);
    // Division leaves traces far behind any digit that somebody wrote: 0.07 is 7.000000000000001 %.
    let shown = (value / scale.factor * 1e9).round() / 1e9;
    match reference.unit() {
        Unit::Share => format!("{shown}%"),
        _ => scale.joined(&shown.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(spec: &str) -> Vec<String> {
        let text = format!("backend: mock\nmodels: [m]\ninputs: {{ batch: [1, 8] }}\n{spec}");
        let loaded = spec::parse("x.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        let prepared = crate::run::prepare(&loaded.experiment).expect("a plan");
        let mut text = String::new();
        describe(&mut text, &loaded.experiment, &loaded.notes, &prepared.plan, &[]).expect("a String takes every text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_as_always_takes_two_lines() {
        let expected = [
            "baseline   variant `a`, the first of its axis; margin 2 %, tails 5 %",
            "control    m/b1/a/cpu is measured twice",
        ];
        assert_eq!(lines("variants: [a, { name: b, threads: 1 }]"), expected);
        let equal = "variants   a and b have the same settings: differences between them are noise";
        assert_eq!(lines("variants: [a, b]").last().map(String::as_str), Some(equal));
    }

    #[test]
    fn whatever_is_asked_for_is_shown() {
        let spec = "variants: [a, { name: b, threads: 1 }]\ncompare: { baseline: { variant: b }, margin: 3%, aa: group }\nbudget: 30s\n\
                    require: { grade: B, quiet: true }\nmeasure: { design: duet, cache: cold }\n\
                    choose:\n  best: throughput\n  within:\n\
                    \x20   - { metric: latency.p99, max: 20ms, where: { batch: 1 } }\n\
                    \x20   - { metric: peak_rss, min: 1.5MiB, max: 512MiB }\n\
                    \x20   - { metric: latency.cv, max: 7% }\n\
                    \x20   - { metric: speedup, min: 110%, where: { batch: 7 } }\n\
                    tables: [{ name: t, rows: [variant], columns: [input] }]";
        let expected = [
            "baseline   variant `b`; margin 3 %, tails 5 %",
            "control    2 cells are measured twice, one in each group that runs",
            "design     duet: two cells at a time on halves of the cores, slices of 500ms; caches are cold before every sample",
            "samples    at least 368 per run instead of 50, needed for `latency.p99`; models slower than 13.6ms reach `max_time` (5s) first",
            "budget     30s: 8 runs of every cell take 46 s to 5m 21s; about 1 of them fits, and a verdict needs 5",
            "require    grade B or better and no background load on the machine",
            "choose     highest throughput within",
            "           latency.p99 <= 20 ms for batch=1",
            "           1.5 MiB <= peak_rss <= 512 MiB",
            "           latency.cv <= 7%",
            "           speedup >= 1.1 for batch=7",
            "warning    choose where batch=7 matches no cell",
            "tables     t",
        ];
        assert_eq!(lines(spec), expected);
    }

    #[test]
    fn what_compares_nothing_says_so() {
        let expected = [
            "baseline   none: variants, models and devices have only one entry each",
            "control    none: `design: sequential` compares nothing",
            "design     sequential: cell after cell",
        ];
        assert_eq!(lines("measure: { design: sequential }"), expected);
    }
}
