//! What `perfrun stat` says: of two files the answer in a sentence, then the estimates, then what to keep in mind.

use std::path::Path;

use unicode_width::UnicodeWidthStr;

use super::table::{self, wrap};
use base::metric::{Statistic, Unit};
use base::printable::printable;
use judge::stat::{Analysis, Comparison, Description, Level, NEEDED, Reason, SHOWN};
use report::format::{Column, confidence, count, is_beyond, judged_ratio, p_value, percent};
use report::page::{Overview, OverviewCell, OverviewColumn};
use statistics::quantile::quantile_support;
use statistics::{Claim, Estimate};

/// Names longer than this are cut from the left, where paths say least.
const LONGEST_NAME: usize = 30;

/// The text, each line ended and none wider than `width`.
pub fn render(findings: &Analysis, width: usize) -> String {
    let names = short_names(findings, LONGEST_NAME.min(width / 3));
    let answer = findings.comparison.iter().flat_map(|comparison| {
        let names = [0, 1].map(|side| names[side].as_str());
        std::iter::once(verdict(findings, comparison, names)).chain(evidence(findings, comparison))
    });
    let answer: String = answer.map(|sentence| paragraph(&sentence, width)).collect();
    let notes = findings.series.iter().zip(&names).flat_map(|(side, name)| notes(side, name, findings));
    let notes: String = notes.map(|note| indented(&note, width)).collect();
    let meaning = match &findings.comparison {
        Some(comparison) => assumptions(findings, comparison),
        None => findings.series.iter().map(|side| scope(side).to_owned()).collect(),
    };
    let meaning: String = meaning.iter().map(|sentence| paragraph(sentence, width)).collect();
    let table = table::render(&estimates(findings, &names), width) + "\n";
    [answer, table, notes, meaning].into_iter().filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Files by their names alone where these differ, as they are shown, in so many columns at most.
fn short_names(findings: &Analysis, longest: usize) -> Vec<String> {
    let file_name = |source: &str| {
        Path::new(source).file_name().map_or_else(|| source.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let sources = || findings.series.iter().map(|side| side.source.clone());
    let names: Vec<String> = sources().map(|source| file_name(&source)).collect();
    let differ = names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    let names = if differ { names } else { sources().collect() };
    let names: Vec<String> = names.iter().map(|name| shortened(&printable(name), longest)).collect();
    match names.as_slice() {
        [one, other] if one == other => vec!["baseline".to_owned(), "candidate".to_owned()],
        _ => names,
    }
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
fn estimates(findings: &Analysis, names: &[String]) -> Overview {
    let terms = &findings.terms;
    let is_single = findings.series.len() == 1;
    let heading = |name: &String| if is_single { name.clone() } else { String::new() };
    let columns = vec![
        OverviewColumn::text(""),
        OverviewColumn::text(names.first().map_or_else(String::new, heading)),
        OverviewColumn::number(printable(terms.unit.as_deref().unwrap_or("estimate"))),
        OverviewColumn::text(format!("{} interval", confidence(terms.confidence))),
        OverviewColumn::text(""),
    ];
    let known = findings.series.iter().flat_map(|side| side.estimates.values());
    let known: Vec<Estimate> = known.map(|found| found.estimate(terms.confidence)).collect();
    let column = Column::fit(Unit::Number, &known);
    let mut rows = Vec::new();
    for (side, name) in findings.series.iter().zip(names) {
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
        rows.extend(lines.map(|line| std::iter::once(name.clone()).chain(line).map(OverviewCell::from).collect()));
    }
    Overview { columns, rows }
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
fn verdict(findings: &Analysis, comparison: &Comparison, names: [&str; 2]) -> String {
    let [baseline, candidate] = names;
    let margin = percent(findings.terms.margin);
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
        let ratio = judged_ratio(ratio, comparison.interval(), findings.terms.margin);
        format!("{subject} are {ratio} those of {baseline}")
    });
    let remark = reason(findings, comparison);
    let separator = if claim == Claim::Nothing { "; " } else { ", " };
    let parts: Vec<String> = ratio.into_iter().chain(remark).collect();
    format!("{relation}: {}.", parts.join(separator))
}

/// What is compared, in the singular, and of which there must be enough on each side.
fn observed(findings: &Analysis, comparison: &Comparison) -> (&'static str, &'static str) {
    match (findings.terms.paired, comparison.observations.level) {
        (true, _) => ("pair", ""),
        (false, Level::Runs) => ("run", " on each side"),
        (false, Level::Values) => ("value", " on each side"),
    }
}

/// Why the verdict is what it is, and what would turn an open one into a claim; nothing where its word says it.
fn reason(findings: &Analysis, comparison: &Comparison) -> Option<String> {
    let (one, side) = observed(findings, comparison);
    let margin = percent(findings.terms.margin);
    let more = comparison.more.map(|more| count(more as u64, &format!("more {one}")));
    let would_decide = more.map(|more| format!("about {more}{side} would decide"));
    let is_apart = !findings.terms.paired && findings.terms.session_spread > 0.0;
    Some(match (comparison.reason, would_decide) {
        (Reason::WithinMargin, _) => return None,
        (Reason::BeyondMargin, _) => format!("beyond the margin of {margin}"),
        (Reason::TooFew, _) => format!("a verdict needs {}{side}", count(NEEDED as u64, one)),
        (Reason::SizeNotEstablished, more) => {
            let open = match is_beyond(comparison.interval(), findings.terms.margin) {
                true => format!("too few {one}s to claim it"),
                false => format!("the interval excludes 1x, but not differences below {margin}"),
            };
            more.map_or(open.clone(), |more| format!("{open}; {more}"))
        }
        (Reason::NotEnoughData, Some(more)) => more,
        (Reason::NotEnoughData, None) if is_apart => {
            let spread = percent(findings.terms.session_spread);
            format!("sessions may differ by {spread}; measure in turns and add `--interleaved` or `--paired`")
        }
        (Reason::NotEnoughData, None) => format!("many more {one}s would be needed"),
        (Reason::NotPositive, _) => "a ratio needs values above zero".to_owned(),
        (Reason::Dependent, _) => dependent(findings, comparison, one),
    })
}

fn dependent(findings: &Analysis, comparison: &Comparison, one: &str) -> String {
    let worth: Vec<String> = comparison.effective.iter().flatten().map(|worth| format!("{worth:.0}")).collect();
    let worth = match comparison.observations.level {
        // The table has that of the values themselves.
        Level::Values if !findings.terms.paired => String::new(),
        _ => format!(", worth only {} independent ones", worth.join(" and ")),
    };
    let remedy = match comparison.observations.level {
        _ if findings.terms.paired => "use new processes for each pair",
        Level::Runs => "interleave the measurements and add `--paired`",
        Level::Values => "give them as runs (an array of arrays), or one value for each process",
    };
    format!("the {one}s are autocorrelated{worth}; {remedy}")
}

/// How small a difference these observations tell, and how surely there is one.
fn evidence(findings: &Analysis, comparison: &Comparison) -> Option<String> {
    let (one, _) = observed(findings, comparison);
    let detectable = comparison.detectable.filter(|_| comparison.reason != Reason::Dependent);
    let effect = percent(detectable?);
    let margin = percent(findings.terms.margin);
    let p = comparison.p.map_or(String::new(), |p| format!("; p {} for a difference beyond {margin}", p_value(p)));
    Some(format!("These {one}s detect differences of {effect} or more (80 % power){p}."))
}

/// What a reader should know before he uses the numbers.
fn notes(side: &Description, name: &str, findings: &Analysis) -> Vec<String> {
    let name = if findings.series.len() > 1 { format!("{name}: ") } else { String::new() };
    let header =
        side.header.iter().map(|header| format!("{name}first line read as the column name: {}", printable(header)));
    let warnings = side.warnings.iter().filter_map(|(code, runs)| {
        let of_runs = side.runs.filter(|all| runs < all);
        let place = of_runs.map_or(String::new(), |all| format!(" ({runs} of {all} runs)"));
        Some(format!("{name}{}{place} [{code}]", code.text().stat.as_ref()?))
    });
    header.chain(warnings).collect()
}

/// What the intervals of a single series are over.
fn scope(side: &Description) -> &'static str {
    match side.runs {
        Some(_) => "Intervals are over runs: the values of one run count as one observation.",
        None => {
            "If all values are from one process, they are one observation: another process may differ by more than the \
             interval. Give values as runs (an array of arrays) to see by how much."
        }
    }
}

/// What the comparison takes for granted.
fn assumptions(findings: &Analysis, comparison: &Comparison) -> Vec<String> {
    let values = "Each value counts as an independent observation. Values of one process are not: give runs instead (an array \
                  of arrays), or one value for each process.";
    let spread = percent(findings.terms.session_spread);
    let sessions = match findings.terms.session_spread > 0.0 {
        true => {
            format!("Assumes separate measurements, where identical code differs by {spread}; `--interleaved` if not.")
        }
        false => "Assumes that sessions do not differ, as in interleaved measurements; `--paired` detects smaller differences.".to_owned(),
    };
    let is_of_values = comparison.observations.level == Level::Values;
    let values = is_of_values.then(|| values.to_owned());
    values.into_iter().chain((!findings.terms.paired).then_some(sessions)).collect()
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
}
