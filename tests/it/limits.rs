//! What documents repeat of the code: limits, defaults, exit codes, verdicts. Each stands in the code once, and a
//! document that says another number fails here.

use std::path::Path;

use perfrun::internals::experiment::{Experiment, Grade, Margin, QUICK_MARGIN, Runs, Stop, Warmup};
use perfrun::internals::judge::diagnosis::{BEYOND_ROOF, HIGH_LAUNCHING, HIGH_PART, HIGH_SHARE, SERIAL};
use perfrun::internals::judge::summary::CONFIDENCE;
use perfrun::internals::ui::error::ExitCode;
use perfrun::internals::vocabulary::code::{Carrier, Code, NOISY_STEAL, RUNS_APART, percent, spelt};
use perfrun::internals::vocabulary::quantity::Nanos;
use perfrun::internals::worker::backend::inputs::POOL_LIMIT_BYTES;
use perfrun::internals::worker::measure::{settle, stop, warm};
use statistics::Verdict;
use statistics::density::MULTIMODAL_MINIMUM;
use statistics::outlier::{FIRST_SAMPLE_SLOW, OUTER_FENCE, slow_deviations};
use statistics::planning::MINIMUM_RUNS;
use statistics::quantile::quantile_is_supported;
use statistics::run_groups::LEAST_DISTANCE;
use statistics::shape::{MANY_OUTLIERS, NOISY, SKEWED};
use statistics::steady::{self, DRIFT_ERRORS, DRIFT_FLOOR, LEAST_DIFFERENCE};
use statistics::stopping::FIRST_CHECK;

const MEASURING: &str = "docs/concepts/measuring.md";
const METHOD: &str = "docs/measurement.md";
const COMPARE: &str = "docs/guides/compare.md";
const WRITE: &str = "docs/guides/write-an-experiment.md";
const STAT: &str = "docs/reference/stat.md";
const SPEC: &str = "docs/reference/spec.md";
const GLOSSARY: &str = "docs/glossary.md";
const README: &str = "README.md";

fn text(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// Every file says its sentence.
#[track_caller]
fn check(said: &[(&str, String)]) {
    let missing: Vec<_> = said.iter().filter(|(file, sentence)| !text(file).contains(sentence)).collect();
    assert!(missing.is_empty(), "the documents do not say what the code does: {missing:#?}");
}

fn defaults() -> Experiment {
    let text = "backend: mock\nmodels: m";
    perfrun::internals::spec::parse("x.yaml", text, Path::new("."), &[]).unwrap().experiment
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

#[test]
fn verdicts_and_margins() {
    let margin = Margin::default();
    assert_eq!(defaults().compare.margin, margin, "the form and the model have one default");
    let (all, tail, quick) = (percent(margin.default.0), percent(margin.tail.0), percent(QUICK_MARGIN));
    let (least, level) = (MINIMUM_RUNS, percent(CONFIDENCE));
    check(&[
        (MEASURING, format!("| beyond the margin of {all} |")),
        (MEASURING, format!("Below {least} common blocks nothing is claimed")),
        (MEASURING, format!("Its interval, at {level} over runs")),
        (MEASURING, format!("Intervals are shown from {} runs on", spelt(least))),
        (METHOD, format!("that matters to you, {all} unless you say otherwise")),
        (METHOD, format!("Below {} blocks there is no verdict", spelt(least))),
        (COMPARE, format!("The default is {all}, and {tail} for percentiles from the 90th on")),
        (GLOSSARY, format!("are of no interest: {all}, and {tail} for tails")),
        (GLOSSARY, format!("the confidence interval of an estimate, at {level}")),
        (GLOSSARY, format!("there are fewer than {} common blocks", spelt(least))),
        (STAT, format!("with a margin of {all} (`--margin`)")),
        (STAT, format!("Fewer than {} observations on a side give no verdict", spelt(least))),
        (README, format!("its whole confidence interval exceeds {all}")),
        (SPEC, format!("Of percentiles from the 90th on. Default: `{}`", margin.tail)),
        ("src/ui/cli.rs", format!("claims only differences beyond {quick}")),
    ]);
    for verdict in Verdict::ALL {
        for file in [STAT, GLOSSARY, "schemas/results.schema.json"] {
            assert!(text(file).contains(&format!("`{}`", verdict.name())), "{file} lacks {}", verdict.name());
        }
    }
}

#[test]
fn runs_by_need() {
    let interim_analyses: Vec<u32> = Runs::AUTO.interim_analyses().blocks().collect();
    let [first @ .., last] = interim_analyses.as_slice() else { panic!() };
    let first: Vec<String> = first.iter().map(u32::to_string).collect();
    let listed = format!("{} and {last}", first.join(", "));
    let (each, once) =
        (percent(Runs::AUTO.interim_analyses().confidence()), percent(Runs::fixed(12).interim_analyses().confidence()));
    let Runs { min, max } = Runs::AUTO;
    assert_eq!(defaults().runs, Runs::AUTO);
    check(&[
        (MEASURING, format!("at least {min} blocks and at most {max}")),
        (MEASURING, format!("perfrun looks after {listed} blocks")),
        (MEASURING, format!("there are {} looks, each has an interval at {each}", spelt(interim_analyses.len()))),
        (MEASURING, format!("twelve blocks, judged once, at {once}")),
        (MEASURING, format!("`auto` is {} runs there", Runs::AUTO.interim_analyses().typical())),
        (METHOD, format!("at most {max} blocks, and looks {} times", spelt(interim_analyses.len()))),
        (METHOD, format!("an interval at {each}; a fixed number of blocks is looked at once, at {once}")),
        (GLOSSARY, format!("after {listed} blocks")),
        (SPEC, format!("as many as the verdicts need, from {min} to {max}")),
    ]);
}

#[test]
fn grades() {
    let [a, b, c] = Grade::MOST.map(|(_, effect)| percent(effect));
    let blocks = spelt(Grade::BLOCKS as usize);
    check(&[
        (COMPARE, format!("| A | {a} |\n| B | {b} |\n| C | {c} |")),
        (COMPARE, format!("`grade: B` asks that a difference of {b} can be found")),
        (COMPARE, format!("| grade | differences that {blocks} blocks find |")),
        (METHOD, format!("from A ({a} in {blocks} blocks) to D")),
        (GLOSSARY, format!("A {a}, B {b}, C {c}, D larger ones only")),
        (GLOSSARY, format!("found here by {blocks} blocks")),
        (SPEC, format!("Differences of {a} can be found.")),
        (SPEC, format!("Differences of {b}.")),
        (SPEC, format!("Differences of {c}.")),
        (GLOSSARY, format!("took more than {} of the processors", percent(NOISY_STEAL))),
        ("schemas/results.schema.json", format!("others took more than {} of the processors", percent(NOISY_STEAL))),
    ]);
}

#[test]
fn warming_up_and_stopping() {
    let experiment = defaults();
    let Warmup::Adaptive { min_time, max_time, min_samples, tolerance } = experiment.measure.warmup else { panic!() };
    check(&[
        (MEASURING, format!("when the two agree within {}", percent(tolerance.0))),
        (MEASURING, format!("It looks after {} and at least {min_samples} samples", spaced(min_time))),
        (MEASURING, format!("It gives up after {}.", spaced(max_time))),
        (MEASURING, format!("still gets {} samples", spelt(warm::LEAST_SAMPLES as usize))),
        ("docs/reference/record.md", format!("of a warm-up by time about {} million", warm::MOST_KEPT / 1_000_000)),
        (
            MEASURING,
            format!(
                "up to {} more samples, or {} of them",
                spelt(settle::MOST_SAMPLES),
                spaced(Nanos(settle::LONGEST_NS))
            ),
        ),
        (MEASURING, format!("where there are at least {}.", steady::MINIMUM_SAMPLES)),
        (MEASURING, format!("differs from that of the rest by more than {}", percent(LEAST_DIFFERENCE))),
        (MEASURING, format!("differ by more than {} beyond the noise, the run drifted", percent(DRIFT_FLOOR))),
        (MEASURING, format!("A run uses {} input sets in turn", spelt(experiment.measure.inputs as usize))),
        (MEASURING, format!("more than {} MiB together", POOL_LIMIT_BYTES >> 20)),
    ]);
    let Stop::Precision { relative, confidence, min_samples, max_samples, min_time, max_time, .. } =
        experiment.measure.stop
    else {
        panic!()
    };
    assert_eq!(min_samples as usize, FIRST_CHECK);
    check(&[
        (
            MEASURING,
            format!("its {} interval has a half width of at most {}", percent(confidence.0), percent(relative.0)),
        ),
        (MEASURING, format!("perfrun looks after {FIRST_CHECK} samples")),
        (MEASURING, format!("| fewest samples | {min_samples} |")),
        (MEASURING, format!("| most samples | {},{:03} |", max_samples / 1000, max_samples % 1000)),
        (MEASURING, format!("| shortest time | {} |", spaced(min_time))),
        (MEASURING, format!("| longest time | {} |", spaced(max_time))),
        (MEASURING, format!("but {} samples are always taken", spelt(stop::LEAST_SAMPLES))),
    ]);
    let [p90, p95, p99, p999] = [0.9, 0.95, 0.99, 0.999].map(needed_for);
    check(&[
        (MEASURING, format!("| p90 | {p90} |\n| p95 | {p95} |\n| p99 | {p99} |\n| p99.9 | {p999} |")),
        (COMPARE, format!("to {p90} for p90, {p95} for p95, {p99} for p99 and {p999} for p99.9")),
        (STAT, format!("{p95} independent values for p95 and {p99} for p99")),
    ]);
}

#[test]
fn codes() {
    let far = percent(RUNS_APART - 1.0);
    let row = |code: Code, seen: String| format!("| `{code}` | {seen} |");
    let fences = format!(
        "beyond the fences, {} interquartile ranges from the quartiles where they are severe",
        spelt(OUTER_FENCE as usize)
    );
    let (slow, few) = (spelt(slow_deviations()), spelt(MINIMUM_RUNS));
    check(&[
        (MEASURING, fences),
        (MEASURING, format!("first samples more than {slow} robust standard deviations slow")),
        (
            MEASURING,
            row(
                Code::BimodalRuns,
                format!(
                    "the medians of the runs fall into two groups, {} of their own standard deviations apart, each of more than a quarter of the runs",
                    spelt(LEAST_DISTANCE as usize)
                ),
            ),
        ),
        (MEASURING, row(Code::FewRuns, format!("fewer than {few} runs completed"))),
        (
            STAT,
            row(
                Code::NoSteadyState,
                format!(
                    "the best cut of the marginal standard error rule is half-way, among at least {} values, and the first half differs from the rest as late warm-up does",
                    steady::MINIMUM_SAMPLES
                ),
            ),
        ),
        (
            STAT,
            row(
                Code::LateWarmup,
                format!(
                    "the median of the first values differs from that of the rest by more than {}, beyond chance, and not by spikes alone",
                    percent(LEAST_DIFFERENCE)
                ),
            ),
        ),
        (
            STAT,
            row(
                Code::Drift,
                format!(
                    "the median of the second half differs from that of the first by more than {}, and by more than {} standard errors",
                    percent(DRIFT_FLOOR),
                    spelt(DRIFT_ERRORS as usize)
                ),
            ),
        ),
        (
            STAT,
            row(
                Code::FirstSampleSlow,
                format!(
                    "the first value lies more than {FIRST_SAMPLE_SLOW} median absolute deviations above the median"
                ),
            ),
        ),
        (STAT, row(Code::Noisy, format!("the robust coefficient of variation is above {}", percent(NOISY)))),
        (STAT, row(Code::Multimodal, format!("at least {MULTIMODAL_MINIMUM} values have more than one mode"))),
        (STAT, row(Code::Skewed, format!("the skewness is beyond {SKEWED} to either side"))),
        (STAT, row(Code::Outliers, format!("more than {} of the values are severe outliers", percent(MANY_OUTLIERS)))),
        (STAT, row(Code::FewRuns, format!("there are fewer than {few} runs"))),
        (
            STAT,
            row(
                Code::BimodalRuns,
                format!(
                    "the run medians fall into two [groups](../method/05-statistics.md), or the largest is more than {far} above the smallest"
                ),
            ),
        ),
    ]);
    let listed = text(STAT).lines().filter(|line| line.starts_with("| `W_")).count();
    assert_eq!(listed, Carrier::Stat.codes().count(), "{STAT} lists the codes that numbers can carry");
}

/// A name of a code in a document is one that perfrun raises.
#[test]
fn documents_name_no_code_that_there_is_not() {
    let documents = walkdir::WalkDir::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"));
    let documents = documents.into_iter().map(|entry| entry.unwrap().into_path());
    for path in documents.filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let is_code = word.starts_with("W_") || word.starts_with("E_");
            assert!(
                !is_code || perfrun::internals::vocabulary::code::by_name(word).is_some(),
                "{} names {word}",
                path.display()
            );
        }
    }
}

#[test]
fn exit_codes() {
    let goal = format!("exit code {}", ExitCode::CheckFailed.number());
    check(&[
        (README, goal.clone()),
        (SPEC, format!("perfrun exits with {} if one is missed", ExitCode::CheckFailed.number())),
        ("docs/reference/spec-full.yaml", format!("E{} where one is missed", &goal[1..])),
        ("docs/concepts/accuracy.md", format!("perfrun ends with exit code {}", ExitCode::RunsFailed.number())),
        (STAT, format!("the exit code is {}", ExitCode::UserError.number())),
        (
            WRITE,
            format!("ends with exit code {} where cells are skipped for their device", ExitCode::UserError.number()),
        ),
        (WRITE, format!("and ends with exit code {}.", ExitCode::Interrupted.number())),
    ]);
}

#[test]
fn the_limits_of_what_bounds_a_cell_are_those_of_the_code() {
    const STATISTICS: &str = "docs/method/05-statistics.md";
    let said = |sentence: String| (STATISTICS, sentence);
    check(&[
        said(format!("| fallback-bound | {} of the time or more", percent(HIGH_PART))),
        said(format!("| copy-bound | {} or more are copies", percent(HIGH_PART))),
        said(format!("| launch-bound | {} or more pass", percent(HIGH_LAUNCHING))),
        said(format!("| memory-bound | the share of a bandwidth is {} or more", percent(HIGH_SHARE))),
        said(format!("| compute-bound | the share of the arithmetic is {} or more", percent(HIGH_SHARE))),
        said(format!("a serial part of {} or more", percent(SERIAL))),
        said(format!("A share above {} says", percent(BEYOND_ROOF))),
    ]);
}
