//! What `perfrun stat` says: of two files the answer in a sentence, then the estimates, then what to keep in mind.

use std::collections::BTreeSet;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

use super::table::{self, wrap};
use base::code::Code;
use base::metric::{Statistic, Unit};
use base::printable::{printable, printable_line};
use base::wording::capitalized;
use judge::stat::{Analysis, Comparison, Description, Findings, Level, NEEDED, Reason, SHOWN, StatOptions, Tool};
use report::format::{Column, confidence, count, is_beyond, judged_ratio, list, measured, p_value, percent, some};
use report::page::{Table, TableCell, TableColumn, TableRow};
use statistics::quantile::quantile_support;
use statistics::{Claim, Estimate, Verdict};

/// What two files are called whose names say nothing.
const BOTH: [&str; 2] = ["baseline", "candidate"];

/// More names than these are not listed.
const MOST_NAMES: usize = 8;

/// Names longer than this are cut from the left, where paths say least.
const LONGEST_NAME: usize = 30;

/// The text, each line ended and none wider than `width`.
pub fn render(findings: &Findings, width: usize) -> String {
    let terms = &findings.terms;
    let mut blocks = match findings.benchmarks.as_slice() {
        [one] => alone(one, terms, width),
        several if several.iter().all(|one| one.comparison.is_none()) => {
            several.iter().flat_map(|one| alone(one, terms, width)).collect()
        }
        several => together(several, terms, width),
    };
    let notes = left_out(findings).into_iter().map(|note| indented(&note, width)).collect();
    let meaning = findings.benchmarks.first().map_or_else(Vec::new, |first| match &first.comparison {
        Some(comparison) => assumptions(first, comparison, terms),
        None => first.series.iter().map(|side| scope(side, findings.benchmarks.len() > 1)).collect(),
    });
    blocks.extend([notes, meaning.iter().map(|sentence| paragraph(sentence, width)).collect()]);
    if let Some(fails) = findings.fails {
        blocks.push(paragraph(&gate(findings, fails), width));
    }
    blocks.into_iter().filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One benchmark, or one comparison, with all estimates.
fn alone(analysis: &Analysis, terms: &StatOptions, width: usize) -> Vec<String> {
    let names = short_names(&analysis.series, LONGEST_NAME.min(width / 3));
    let answer = analysis.comparison.iter().flat_map(|comparison| {
        let names = [0, 1].map(|side| names[side].as_str());
        std::iter::once(verdict(analysis, comparison, terms, names)).chain(evidence(comparison, terms))
    });
    let answer: String = answer.map(|sentence| paragraph(&sentence, width)).collect();
    let notes =
        analysis.series.iter().zip(&names).flat_map(|(side, name)| notes(side, name, analysis.series.len() > 1));
    let notes = notes.chain(machines(analysis)).map(|note| indented(&note, width)).collect();
    vec![answer, table::render(&estimates(&analysis.series, terms, &names), width) + "\n", notes]
}

/// Several comparisons: how many have which verdict, and each in a line.
fn together(several: &[Analysis], terms: &StatOptions, width: usize) -> Vec<String> {
    let comparisons = || several.iter().filter_map(|one| Some((one, one.comparison.as_ref()?)));
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (_, comparison) in comparisons().filter(|(_, comparison)| !comparison.verdict.is_open()) {
        if !verdicts.contains(&comparison.verdict) {
            verdicts.push(comparison.verdict);
        }
    }
    verdicts.sort_by_key(|verdict| !verdict.is_regression());
    verdicts.extend(comparisons().map(|(_, comparison)| comparison.verdict).find(|verdict| verdict.is_open()));
    let counts = verdicts.iter().map(|verdict| {
        let number = comparisons().filter(|(_, comparison)| comparison.verdict == *verdict).count();
        format!("{number} {}", verdict.name())
    });
    let answer = format!("{}: {}.", count(several.len() as u64, "comparison"), list(&counts.collect::<Vec<_>>()));
    let sides = several.first().map_or_else(Vec::new, |one| short_names(&one.series, LONGEST_NAME.min(width / 4)));
    let same_baseline = several.iter().all(|one| one.series[0].benchmark == several[0].series[0].benchmark);
    let mut columns = vec![TableColumn::text("benchmark")];
    let headings = if same_baseline { vec!["baseline".to_owned(), "median".to_owned()] } else { sides };
    columns.extend(headings.iter().map(|name| TableColumn::number(name.clone())));
    columns.extend(["ratio", "verdict", ""].map(TableColumn::text));
    let rows = comparisons().map(|(one, comparison)| {
        let name = one.series.iter().rev().find_map(|side| side.benchmark.as_deref()).unwrap_or_default();
        let medians = one.series.iter().map(|side| median(side, &one.series));
        let ratio = comparison.ratio.map(|ratio| judged_ratio(ratio, comparison.interval(), terms.margin));
        let why = reason(one, comparison, terms).filter(|_| comparison.verdict.is_open());
        let row = std::iter::once(shortened(&printable(name), LONGEST_NAME.min(width / 3))).chain(medians);
        let row = row.chain([ratio.unwrap_or_default(), comparison.verdict.name().to_owned(), why.unwrap_or_default()]);
        row.map(TableCell::from).collect::<TableRow>()
    });
    let overview = Table::of(columns, rows);
    let notes = warnings_together(several).chain(several.iter().find_map(machines));
    let notes = notes.map(|note| indented(&note, width)).collect();
    vec![paragraph(&answer, width), table::render(&overview, width) + "\n", notes]
}

/// The median in the unit that fits it and its partner.
fn median(side: &Description, both: &[Description]) -> String {
    let value = |side: &Description| side.estimate(Statistic::Median).map(|found| found.value);
    let other_value = both.iter().find(|other| !std::ptr::eq(*other, side)).and_then(value);
    let is_time = both.iter().all(|side| side.tool.is_some());
    value(side).map_or(String::new(), |value| {
        measured(if is_time { Unit::Nanoseconds } else { Unit::Number }, value, other_value)
    })
}

/// Each warning once, with the number of series that have it.
fn warnings_together(several: &[Analysis]) -> impl Iterator<Item = String> {
    let sides: Vec<&Description> = several.iter().flat_map(|one| &one.series).collect();
    let codes: BTreeSet<Code> = sides.iter().flat_map(|side| side.warnings.keys().copied()).collect();
    codes.into_iter().filter_map(move |code| {
        let seen = sides.iter().filter(|side| side.warnings.contains_key(&code)).count();
        Some(format!("{} ({seen} of {} series) [{code}]", code.text().stat.as_ref()?, sides.len()))
    })
}

/// Benchmarks of which nothing, or nothing sure, can be said.
fn left_out(findings: &Findings) -> Vec<String> {
    let failed = findings.left_out.iter().map(|one| {
        let (name, message) = (printable_line(&one.benchmark), printable_line(&one.message));
        if one.is_kept { format!("{name}: {message}") } else { format!("not measured: {name} ({message})") }
    });
    let alone = [("FILE", &findings.only_in_baseline), ("CANDIDATE", &findings.only_in_candidate)];
    let alone = alone.into_iter().filter(|(_, names)| !names.is_empty()).map(|(side, names)| {
        let shown = some(names.iter().map(|name| printable_line(name).into_owned()), MOST_NAMES);
        format!("only in {side}: {}", list(&shown))
    });
    failed.chain(alone).collect()
}

/// Different machines on both sides, which a ratio cannot distinguish from a change.
fn machines(analysis: &Analysis) -> Option<String> {
    let [from, to] = analysis.series.as_slice() else { return None };
    let (from, to) = (from.machine.as_ref()?, to.machine.as_ref()?);
    (from != to).then(|| format!("measured on different machines: {} and {}", printable_line(from), printable_line(to)))
}

/// What `--fail-on` comes to.
fn gate(findings: &Findings, fails: bool) -> String {
    let number = findings.benchmarks.iter().filter(|one| one.fails == Some(true)).count();
    match (fails, number) {
        (false, _) => "Gate passed.".to_owned(),
        (true, 0) => "Gate failed: a benchmark of FILE is missing in CANDIDATE.".to_owned(),
        (true, number) => format!("Gate failed by {}.", count(number as u64, "comparison")),
    }
}

/// What distinguishes two sides: the names of their files, the folders of files of one name, or the benchmarks of one
/// file.
fn short_names(series: &[Description], longest: usize) -> Vec<String> {
    let names = match series {
        [from, to] if from.source == to.source && from.benchmark != to.benchmark => {
            [from, to].map(|side| side.benchmark.clone().unwrap_or_default()).to_vec()
        }
        [from, to] => distinguished([&from.source, &to.source]).to_vec(),
        [one] => vec![one.benchmark.clone().unwrap_or_else(|| file_name(&one.source))],
        _ => Vec::new(),
    };
    let names: Vec<String> = names.iter().map(|name| shortened(&printable(name), longest)).collect();
    match names.as_slice() {
        [one, other] if one == other => BOTH.map(str::to_owned).to_vec(),
        _ => names,
    }
}

/// A shell's `<(...)` has no name that says anything.
fn is_nameless(source: &str) -> bool {
    source.starts_with("/dev/fd/") || source.starts_with("/proc/")
}

fn file_name(source: &str) -> String {
    if is_nameless(source) {
        return "values".to_owned();
    }
    Path::new(source).file_name().map_or_else(|| source.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The last parts of two paths that differ.
fn distinguished(sources: [&String; 2]) -> [String; 2] {
    if sources.iter().any(|source| is_nameless(source)) {
        return BOTH.map(str::to_owned);
    }
    let parts = sources.map(|source| Path::new(source).components().rev().map(|part| part.as_os_str()));
    let [from, to] = parts;
    let differing = from.zip(to).find(|(one, other)| one != other);
    differing.map_or_else(
        || sources.map(Clone::clone),
        |(one, other)| [one, other].map(|part| part.to_string_lossy().into_owned()),
    )
}

/// The end of a text that is longer than so many columns, since the end of a path says most.
fn shortened(text: &str, longest: usize) -> String {
    if text.width() <= longest {
        return text.to_owned();
    }
    let mut rest = text.chars();
    while rest.as_str().width() >= longest.max(1) {
        rest.next();
    }
    format!("…{}", rest.as_str())
}

/// Every estimate of every file, one a line.
fn estimates(series: &[Description], terms: &StatOptions, names: &[String]) -> Table {
    let is_single = series.len() == 1;
    let heading = |name: &String| if is_single { name.clone() } else { String::new() };
    let known = series.iter().flat_map(|side| side.estimates.values());
    let known: Vec<Estimate> = known.map(|found| found.estimate(terms.confidence)).collect();
    let is_time = series.iter().all(|side| side.tool.is_some());
    let column = Column::fit(if is_time { Unit::Nanoseconds } else { Unit::Number }, &known);
    let unit = if is_time { Some(column.scale.unit) } else { series.first().and_then(|side| side.unit.as_deref()) };
    let columns = vec![
        TableColumn::text(""),
        TableColumn::text(names.first().map_or_else(String::new, heading)),
        TableColumn::number(printable(unit.unwrap_or("estimate"))),
        TableColumn::text(format!("{} interval", confidence(terms.confidence))),
        TableColumn::text(""),
    ];
    let mut rows: Vec<TableRow> = Vec::new();
    for (side, name) in series.iter().zip(names) {
        let name = if is_single { String::new() } else { name.clone() };
        let lines = SHOWN.iter().filter_map(|shown| {
            let found = side.estimate(*shown)?;
            let (number, interval) = column.with_ends(&found.estimate(terms.confidence));
            let (sign, remark) = match found.supported {
                Some(false) => (">= ", needed(*shown, side)),
                _ => ("", String::new()),
            };
            Some([shown.name().to_owned(), format!("{sign}{number}"), interval.unwrap_or_default(), remark])
        });
        let lines = std::iter::once(size(side)).chain(lines);
        rows.extend(lines.map(|line| std::iter::once(name.clone()).chain(line).map(TableCell::from).collect()));
    }
    Table::of(columns, rows)
}

/// How many observations there are, and what they are worth.
fn size(side: &Description) -> [String; 4] {
    let values = count(side.values as u64, "value");
    match (side.runs, side.effective_n) {
        (Some(runs), _) => ["runs".to_owned(), runs.to_string(), String::new(), values],
        (None, worth) => {
            let worth = worth.filter(|worth| worth.round() < side.values as f64);
            let worth = worth.map(|worth| format!("worth {worth:.0} independent values"));
            ["values".to_owned(), side.values.to_string(), String::new(), worth.unwrap_or_default()]
        }
    }
}

/// What would support a tail percentile (method 5.2).
fn needed(statistic: Statistic, side: &Description) -> String {
    let needed = statistic.probability().and_then(quantile_support).unwrap_or_default();
    format!("needs {needed} independent values{}", if side.runs.is_some() { " per run" } else { "" })
}

/// The answer: what may be claimed of the candidate, with the evidence.
fn verdict(analysis: &Analysis, comparison: &Comparison, terms: &StatOptions, names: [&str; 2]) -> String {
    let [baseline, candidate] = names;
    let margin = percent(terms.margin);
    let (word, preposition) = (comparison.verdict.name(), comparison.verdict.preposition());
    let claim = comparison.verdict.claim();
    let relation = match claim {
        Claim::Difference => format!("{candidate} is {word} {preposition} {baseline}"),
        Claim::Sameness => format!("{candidate} is {word} {preposition} {baseline} within {margin}"),
        Claim::Nothing => format!("{candidate} {preposition} {baseline} is {word}"),
    };
    let subject = match comparison.observations.level {
        Level::Runs => "its run medians",
        Level::Values => "its values",
    };
    let ratio = comparison.ratio.map(|ratio| {
        let ratio = judged_ratio(ratio, comparison.interval(), terms.margin);
        format!("{subject} are {ratio} those of {baseline}")
    });
    let remark = reason(analysis, comparison, terms);
    let separator = if claim == Claim::Nothing { "; " } else { ", " };
    let parts: Vec<String> = ratio.into_iter().chain(remark).collect();
    format!("{relation}: {}.", parts.join(separator))
}

/// What is compared, in the singular, and of which there must be enough on each side.
fn observed(comparison: &Comparison, terms: &StatOptions) -> (&'static str, &'static str) {
    match (terms.paired, comparison.observations.level) {
        (true, _) => ("pair", ""),
        (false, Level::Runs) => ("run", " on each side"),
        (false, Level::Values) => ("value", " on each side"),
    }
}

/// The tool that wrote both files.
fn tool(analysis: &Analysis) -> Option<Tool> {
    let tool = analysis.series.first()?.tool;
    tool.filter(|_| analysis.series.iter().all(|side| side.tool == tool))
}

/// Why the verdict is what it is, and what would turn an open one into a claim; nothing where its word says it.
fn reason(found: &Analysis, comparison: &Comparison, terms: &StatOptions) -> Option<String> {
    let (noun, side) = observed(comparison, terms);
    let margin = percent(terms.margin);
    let more = comparison.more.map(|more| count(more as u64, &format!("more {noun}")));
    let would_decide = more.map(|more| format!("about {more}{side} would decide"));
    let is_apart = !terms.paired && terms.session_spread > 0.0;
    Some(match (comparison.reason, would_decide) {
        (Reason::WithinMargin, _) => return None,
        (Reason::BeyondMargin, _) => format!("beyond the margin of {margin}"),
        (Reason::TooFew, _) => {
            let remedy = tool(found).map_or(String::new(), |tool| format!(": `{}`", tool.more_values()));
            format!("a verdict needs {}{side}{remedy}", count(NEEDED as u64, noun))
        }
        (Reason::SizeNotEstablished, more) => {
            let open = match is_beyond(comparison.interval(), terms.margin) {
                true => format!("too few {noun}s to claim it"),
                false => format!("the interval excludes 1x, but not differences below {margin}"),
            };
            more.map_or(open.clone(), |more| format!("{open}; {more}"))
        }
        (Reason::NotEnoughData, Some(more)) => more,
        (Reason::NotEnoughData, None) if is_apart => {
            let spread = percent(terms.session_spread);
            match tool(found) {
                Some(Tool::Hyperfine) => format!("sessions may differ by {spread}; measure in turns with `perfrun ab`"),
                _ => {
                    format!("sessions may differ by {spread}; measure in turns and add `--interleaved` or `--paired`")
                }
            }
        }
        (Reason::NotEnoughData, None) => format!("many more {noun}s would be needed"),
        (Reason::NotPositive, _) => "a ratio needs values above zero".to_owned(),
        (Reason::Dependent, _) => dependent(found, comparison, terms, noun),
    })
}

fn dependent(found: &Analysis, comparison: &Comparison, terms: &StatOptions, noun: &str) -> String {
    let worth: Vec<String> = comparison.effective.iter().flatten().map(|worth| format!("{worth:.0}")).collect();
    let worth = match comparison.observations.level {
        // The table has that of the values themselves.
        Level::Values if !terms.paired => String::new(),
        _ => format!(", worth only {} independent ones", worth.join(" and ")),
    };
    let remedy = match comparison.observations.level {
        _ if terms.paired => "use new processes for each pair",
        Level::Runs => "interleave the measurements and add `--paired`",
        Level::Values if tool(found).is_some_and(|tool| !tool.starts_processes()) => {
            "run the tool in several processes, and give the median of each as one value"
        }
        Level::Values => "give them as runs (an array of arrays), or one value for each process",
    };
    format!("the {noun}s are autocorrelated{worth}; {remedy}")
}

/// How small a difference these observations can show, and how surely there is one.
fn evidence(comparison: &Comparison, terms: &StatOptions) -> Option<String> {
    let (noun, _) = observed(comparison, terms);
    let detectable = comparison.detectable.filter(|_| comparison.reason != Reason::Dependent);
    let effect = percent(detectable?);
    let margin = percent(terms.margin);
    let p = comparison.p.map_or(String::new(), |p| format!("; p {} for a difference beyond {margin}", p_value(p)));
    Some(format!("These {noun}s detect differences of {effect} or more (80 % power){p}."))
}

/// What a reader should know before he uses the numbers.
fn notes(side: &Description, name: &str, is_one_of_two: bool) -> Vec<String> {
    let name = if is_one_of_two { format!("{name}: ") } else { String::new() };
    let header =
        side.header.iter().map(|header| format!("{name}first line read as the column name: {}", printable(header)));
    let warnings = side.warnings.iter().filter_map(|(code, runs)| {
        let of_runs = side.runs.filter(|all| runs < all);
        let share = of_runs.map_or(String::new(), |all| format!(" ({runs} of {all} runs)"));
        Some(format!("{name}{}{share} [{code}]", code.text().stat.as_ref()?))
    });
    header.chain(warnings).collect()
}

/// What the intervals of a single series are over.
fn scope(side: &Description, is_one_of_several: bool) -> String {
    match (side.runs, side.tool) {
        (Some(_), _) => "Intervals are over runs: the values of one run count as one observation.".to_owned(),
        (None, Some(Tool::Hyperfine)) if is_one_of_several => {
            "`--against NAME` compares the others with one. hyperfine measures one command after the other: `perfrun ab` \
             measures them in turns."
                .to_owned()
        }
        (None, Some(tool)) if tool.starts_processes() => "Each value is the time of one process.".to_owned(),
        (None, Some(tool)) => format!(
            "{} takes all values of a benchmark in one process: another process may differ by more than the interval.",
            capitalized(tool.name())
        ),
        (None, None) => "If all values are from one process, they are one observation: another process may differ by more \
                         than the interval. Give values as runs (an array of arrays) to see by how much."
            .to_owned(),
    }
}

/// What the comparison takes for granted.
fn assumptions(analysis: &Analysis, comparison: &Comparison, terms: &StatOptions) -> Vec<String> {
    let tool = tool(analysis);
    let values = match tool {
        _ if comparison.observations.level == Level::Runs => None,
        Some(tool) if tool.starts_processes() => None,
        Some(tool) => Some(format!(
            "Each value counts as an independent observation, but {} takes all of a benchmark in one process: the next \
             process may differ by more.",
            tool.name()
        )),
        None => Some(
            "Each value counts as an independent observation. Values of one process are not: give runs instead (an array \
             of arrays), or one value for each process."
                .to_owned(),
        ),
    };
    let spread = percent(terms.session_spread);
    let sessions = match (terms.session_spread > 0.0, tool) {
        (true, Some(Tool::Hyperfine)) => format!(
            "hyperfine measures one command after the other; identical code then differs by {spread}. `perfrun ab 'COMMAND' \
             'COMMAND'` measures in turns and detects smaller differences."
        ),
        (true, _) => {
            format!("Assumes separate measurements, where identical code differs by {spread}; `--interleaved` if not.")
        }
        (false, _) => "Assumes that sessions do not differ, as in interleaved measurements; `--paired` detects smaller differences.".to_owned(),
    };
    values.into_iter().chain((!terms.paired).then_some(sessions)).collect()
}

fn paragraph(text: &str, width: usize) -> String {
    wrap(text, width).iter().map(|line| format!("{line}\n")).collect()
}

fn indented(note: &str, width: usize) -> String {
    let lines = wrap(note, width.saturating_sub(6));
    let mark = |index: usize| if index == 0 { "note  " } else { "      " };
    lines.iter().enumerate().map(|(index, line)| format!("{}{line}\n", mark(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(["abc", "abcdef", "äöüäöü"].map(|name| shortened(name, 4)), ["abc", "…def", "…äöü"]);
        assert_eq!(shortened("abc", 0), "…");
    }

    #[test]
    fn files_are_told_apart_by_what_differs() {
        let named = |one: &str, other: &str| distinguished([&one.to_owned(), &other.to_owned()]);
        assert_eq!(named("a/old.json", "b/new.json"), ["old.json", "new.json"]);
        assert_eq!(named("x/base/sample.json", "x/new/sample.json"), ["base", "new"]);
        assert_eq!(named("/dev/fd/63", "/dev/fd/62"), BOTH);
        assert_eq!(file_name("/dev/fd/62"), "values");
        assert_eq!(named("a.txt", "a.txt"), ["a.txt", "a.txt"]);
    }
}
