//! Tables in documents that hold numbers of the code: limits, defaults, what raises a code. Each stands between
//! `<!-- generated: NAME -->` and `<!-- end -->`, and is written in place with `PERFRUN_WRITE=1`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::code::{Carrier, Code, RUNS_APART, percent, spelt};
use base::quantity::Nanos;
use experiment::{AdaptiveWarmup, Experiment, Grade, Margin, PrecisionStop, QUICK_MARGIN, Runs, Stop, Warmup};
use judge::diagnosis::{HIGH_LAUNCHING, HIGH_PART, HIGH_SHARE, SERIAL};
use statistics::density::MULTIMODAL_MINIMUM;
use statistics::outlier::{FIRST_SAMPLE_SLOW, slow_deviations};
use statistics::planning::MINIMUM_RUNS;
use statistics::quantile::quantile_is_supported;
use statistics::run_groups::LEAST_DISTANCE;
use statistics::shape::{MANY_OUTLIERS, NOISY, SKEWED};
use statistics::steady::{self, DRIFT_ERRORS, DRIFT_FLOOR, LEAST_DIFFERENCE};
use walkdir::WalkDir;
use worker::measure::{settle, warm};

use crate::docs::check_generated;

const END: &str = "<!-- end -->";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Documents by their path below the root.
fn documents() -> Vec<PathBuf> {
    let below =
        WalkDir::new(root().join("docs")).sort_by_file_name().into_iter().map(|entry| entry.unwrap().into_path());
    let documents = below.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

fn defaults() -> Experiment {
    let text = "backend: mock\nmodels: m";
    spec::parse("x.yaml", text, Path::new("."), &[]).unwrap().experiment
}

/// `300 ms`, as prose has it.
fn spaced(time: Nanos) -> String {
    let shown = time.to_string();
    let unit = shown.find(|c: char| c.is_ascii_alphabetic()).unwrap();
    format!("{} {}", &shown[..unit], &shown[unit..])
}

/// Samples that a percentile takes, if they are independent.
fn needed_for(probability: f64) -> usize {
    (1..).find(|n| quantile_is_supported(*n as f64, probability)).unwrap()
}

fn table<const N: usize>(titles: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(N));
    line(&titles.map(str::to_owned)) + &rule + &rows.into_iter().map(|row| line(&row)).collect::<String>()
}

/// Two columns: what, and how much.
fn pairs(titles: [&str; 2], rows: &[(&str, String)]) -> String {
    table(titles, rows.iter().map(|(what, much)| [(*what).to_owned(), much.clone()]))
}

fn margins() -> String {
    let margin = Margin::default();
    assert_eq!(defaults().compare.margin, margin, "the form and the model have one default");
    let rows = [
        ("a metric, by default", percent(margin.default.0)),
        ("a percentile from the 90th on", percent(margin.tail.0)),
        ("in a quick look", percent(QUICK_MARGIN)),
    ];
    pairs(["compared", "margin"], &rows)
}

fn verdicts() -> String {
    let rows = [
        (format!("beyond the margin of {}", percent(Margin::default().default.0)), "`faster` or `slower`"),
        ("within the margin".to_owned(), "`equivalent`"),
        ("anything else".to_owned(), "`undecided`"),
    ];
    table(
        ["the whole interval of the ratio", "verdict"],
        rows.map(|(interval, verdict)| [interval, verdict.to_owned()]),
    )
}

fn runs() -> String {
    assert_eq!(defaults().runs, Runs::AUTO);
    let row = |name: String, runs: Runs| {
        let analyses = runs.interim_analyses();
        let after: Vec<String> = analyses.blocks().map(|blocks| blocks.to_string()).collect();
        let level = |blocks: u32| analyses.analysis_of(blocks as usize).confidence(blocks as usize);
        let [first, last] = [analyses.blocks().next(), analyses.blocks().last()].map(|blocks| level(blocks.unwrap()));
        let levels = format!("{:.1} to {:.1} %", 100.0 * first, 100.0 * last);
        [name, after.join(", "), if first == last { percent(last) } else { levels }]
    };
    let fixed = Runs::AUTO.interim_analyses().typical();
    let rows = [row("`auto`".to_owned(), Runs::AUTO), row(format!("`{fixed}`"), Runs::fixed(fixed))];
    table(["`runs`", "interim analyses after (blocks)", "interval of a ratio"], rows)
}

fn grades() -> String {
    let found = format!("differences that {} blocks find", Grade::BLOCKS);
    let rows = Grade::MOST.map(|(grade, effect)| [grade.letter().to_owned(), percent(effect)]);
    table(["grade", &found], rows.into_iter().chain([["D".to_owned(), "larger ones only".to_owned()]]))
}

fn warm_up() -> String {
    let Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, tolerance }) = defaults().measure.warmup
    else {
        panic!()
    };
    let rows = [
        ("shortest time", spaced(min_time)),
        ("fewest samples", min_samples.to_string()),
        ("the parts agree within", percent(tolerance.0)),
        ("longest time", spaced(max_time)),
        ("fewest samples of a slow model", warm::LEAST_SAMPLES.to_string()),
        (
            "right before the counted samples",
            format!("{} samples, at most {}", settle::MOST_SAMPLES, spaced(Nanos(settle::LONGEST_NS))),
        ),
    ];
    pairs(["bound", "default"], &rows)
}

fn unsteady() -> String {
    let rows = [
        (
            Code::LateWarmup,
            format!(
                "the first samples differ from the rest by more than {}, more clearly than chance allows, and not by spikes alone",
                percent(LEAST_DIFFERENCE)
            ),
        ),
        (Code::NoSteadyState, "late warm-up would take half of the samples, so that none is marked".to_owned()),
    ];
    codes(rows.into())
}

fn stopping() -> String {
    let Stop::Precision(PrecisionStop { relative, confidence, min_samples, max_samples, min_time, max_time, .. }) =
        defaults().measure.stop
    else {
        panic!()
    };
    let rows = [
        ("precision", format!("{} interval with a half width of {}", percent(confidence.0), percent(relative.0))),
        ("fewest samples", min_samples.to_string()),
        ("most samples", format!("{},{:03}", max_samples / 1000, max_samples % 1000)),
        ("shortest time", spaced(min_time)),
        ("longest time", spaced(max_time)),
        ("fewest samples of a slow model", experiment::Stop::LEAST_SAMPLES.to_string()),
    ];
    pairs(["bound", "default"], &rows)
}

fn percentiles() -> String {
    let rows = [("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
    let rows = rows.map(|(name, probability)| (name, needed_for(probability).to_string()));
    pairs(["percentile", "samples that it takes, if they are independent"], &rows)
}

fn codes(rows: Vec<(Code, String)>) -> String {
    table(["code", "seen when"], rows.into_iter().map(|(code, seen)| [format!("`{}`", code.name()), seen]))
}

fn codes_of_runs() -> String {
    codes(vec![
        (
            Code::BimodalRuns,
            format!(
                "the medians of the runs fall into two groups, {} of their own standard deviations apart, each of more than a quarter of the runs",
                spelt(LEAST_DISTANCE as usize)
            ),
        ),
        (Code::FewRuns, format!("fewer than {} runs completed", spelt(MINIMUM_RUNS))),
    ])
}

fn codes_of_numbers() -> String {
    let rows = vec![
        (
            Code::NoSteadyState,
            format!(
                "the best cut of the marginal standard error rule is half-way, among at least {} values, and the first half differs from the rest as late warm-up does",
                steady::MINIMUM_SAMPLES
            ),
        ),
        (
            Code::LateWarmup,
            format!(
                "the median of the first values differs from that of the rest by more than {}, beyond chance, and not by spikes alone",
                percent(LEAST_DIFFERENCE)
            ),
        ),
        (
            Code::Drift,
            format!(
                "the median of the second half differs from that of the first by more than {}, and by more than {} standard errors",
                percent(DRIFT_FLOOR),
                spelt(DRIFT_ERRORS as usize)
            ),
        ),
        (
            Code::FirstSampleSlow,
            format!(
                "the first value lies more than {FIRST_SAMPLE_SLOW} median absolute deviations ({} robust standard deviations) above the median",
                spelt(slow_deviations())
            ),
        ),
        (Code::Noisy, format!("the robust coefficient of variation is above {}", percent(NOISY))),
        (Code::Multimodal, format!("at least {MULTIMODAL_MINIMUM} values have more than one mode")),
        (Code::Skewed, format!("the skewness is beyond {SKEWED} to either side")),
        (Code::Outliers, format!("more than {} of the values are severe outliers", percent(MANY_OUTLIERS))),
        (Code::FewRuns, format!("there are fewer than {} runs", spelt(MINIMUM_RUNS))),
        (
            Code::BimodalRuns,
            format!(
                "the run medians fall into two [groups](../method/05-statistics.md), or the largest is more than {} above the smallest",
                percent(RUNS_APART - 1.0)
            ),
        ),
    ];
    let listed: BTreeSet<&str> = rows.iter().map(|(code, _)| code.name()).collect();
    let known: BTreeSet<&str> = Carrier::Stat.codes().map(Code::name).collect();
    assert_eq!(listed, known, "every code that numbers can carry");
    codes(rows)
}

fn bound_by() -> String {
    let (part, share) = (percent(HIGH_PART), percent(HIGH_SHARE));
    let tensorflow = "[TensorFlow profiler]";
    let rows = [
        (
            "throttled",
            "more runs carry `W_CPU_THROTTLED`, or `W_GPU_THROTTLED`, than the trimmed mean leaves out on one side (14)".to_owned(),
            "the runs",
        ),
        (
            "fallback-bound",
            format!("{part} of the time or more is the CPU's, in a cell of another device {tensorflow}"),
            "the share",
        ),
        ("copy-bound", format!("{part} or more are copies between memories {tensorflow}"), "the share"),
        (
            "launch-bound",
            format!(
                "{} or more pass outside the device's own time or, where its kernels were recorded, while it waits for the host; or starting the nodes that multiply takes as much and no CUDA graph is replayed {tensorflow}",
                percent(HIGH_LAUNCHING)
            ),
            "the share",
        ),
        (
            "memory-bound",
            format!("the share of a bandwidth is {share} or more [Nsight Compute]"),
            "the share, the bandwidth",
        ),
        (
            "compute-bound",
            format!("the share of the arithmetic is {share} or more [Nsight Compute]"),
            "the share, the arithmetic",
        ),
        (
            "thread-bound",
            format!(
                "of the same cell with fewer threads, by the ends of both intervals that favour more threads, a serial part of {} or more is left [Karp and Flatt 1990]",
                percent(SERIAL)
            ),
            "how many times as fast",
        ),
    ];
    table(["word", "holds if", "number"], rows.map(|(word, holds, number)| [word.to_owned(), holds, number.to_owned()]))
}

/// The tables by the names that documents give them.
fn tables() -> Vec<(&'static str, String)> {
    vec![
        ("margins", margins()),
        ("verdicts", verdicts()),
        ("runs", runs()),
        ("grades", grades()),
        ("warm-up", warm_up()),
        ("unsteady", unsteady()),
        ("stopping", stopping()),
        ("percentiles", percentiles()),
        ("codes of runs", codes_of_runs()),
        ("codes of numbers", codes_of_numbers()),
        ("bound by", bound_by()),
    ]
}

#[test]
fn tables_in_documents_are_those_of_the_code() {
    let tables = tables();
    let mut used = BTreeSet::new();
    for path in documents() {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let mut parts = text.split("<!-- generated: ");
        let mut expected = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" -->").unwrap();
            let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{} lacks {END}", path.display()));
            let known = tables.iter().find(|(known, _)| *known == name);
            let (name, table) = known.unwrap_or_else(|| panic!("{}: there is no table `{name}`", path.display()));
            used.insert(*name);
            expected += &format!("<!-- generated: {name} -->\n\n{table}\n{END}{after}");
        }
        check_generated(path.to_str().unwrap(), &expected);
    }
    assert_eq!(used, tables.iter().map(|(name, _)| *name).collect::<BTreeSet<&str>>(), "every table stands somewhere");
}

/// A name of a code in a document is one that perfrun raises.
#[test]
fn documents_name_no_code_that_there_is_not() {
    for path in documents() {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_code = word.starts_with("W_") || word.starts_with("E_");
            let is_known = base::code::by_name(word).is_some();
            assert!(!is_code || is_known, "{} names {word}", path.display());
        }
    }
}
