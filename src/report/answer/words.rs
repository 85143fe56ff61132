//! The evidence of a subject in words.

use super::evidence::{Entry, Places, Subject};
use crate::judge::compare::Comparison;
use crate::judge::summary::LEAST_RUNS;
use crate::quality::accuracy::Score;
use crate::quality::fidelity::Fidelity;
use crate::report::absence::Absence;
use crate::report::format::{self, judged_ratio, percent, ratio, verdict_word};
use crate::statistics::paired::Hint;
use crate::statistics::{Claim, Verdict};

/// More candidates than this are counted, and only the fastest are named.
const MOST_NAMED: usize = 4;

/// Ratios of more places than this become a range.
const MOST_PLACES: usize = 3;

/// One clause for each candidate, the first one naming the baseline; then what broke `ties`, and why others have none.
pub(super) fn clauses(subject: &Subject<'_>, baseline: &str, ties: Vec<String>) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let judged = subject.entries.iter().filter(|entry| !entry.judged.is_empty()).count();
    let places = subject.places;
    if judged > MOST_NAMED {
        clauses.extend(counted(subject, baseline));
    } else {
        for entry in &subject.entries {
            let than = if clauses.is_empty() { Some(baseline) } else { None };
            clauses.extend(about(entry, than, places));
        }
    }
    clauses.extend(ties);
    clauses.extend(subject.entries.iter().filter_map(|entry| unjudged(entry, places)));
    clauses.extend(subject.entries.iter().filter_map(|entry| absent(entry, places)));
    clauses.extend(subject.entries.iter().filter_map(|entry| differing(entry, places)));
    clauses.extend(without_baseline(subject, baseline));
    clauses
}

/// `int8 is faster than fp32 (2.49x [2.45, 2.53] at b16) and inconclusive (1.02x [0.99, 1.06] at b1: ...)`.
fn about(entry: &Entry<'_>, baseline: Option<&str>, places: Option<Places>) -> Option<String> {
    let judgement = judgement(&borrowed(&entry.judged), baseline, places)?;
    let agrees = match output_words(entry.accuracy, entry.agrees.filter(|_| entry.differs.is_empty())) {
        words if words.is_empty() => words,
        words => format!(", {words}"),
    };
    Some(format!("{} is {judgement}{agrees}", entry.name))
}

/// How right the outputs are, where that is known, else how like the reference's; empty where there is nothing to say.
pub(super) fn output_words(accuracy: Option<&Score>, fidelity: Option<&Fidelity>) -> String {
    match accuracy {
        Some(score) => accuracy_words(score),
        None => fidelity.map(agreement_words).unwrap_or_default(),
    }
}

/// `top-1 accuracy 97.8 % against 98.1 % (lower, p 0.012)`; of a change that chance explains, the p value alone.
fn accuracy_words(score: &Score) -> String {
    let Some(change) = score.change else { return String::new() };
    let metric = score.metric.metric();
    let shown = |value: f64| format::score(metric, value, score.estimate.n);
    let (own, before) = (shown(score.estimate.value), shown(score.estimate.value - change.difference));
    let p = format!("p {}", format::p_value(change.p));
    let told = match (score.is_told_apart(), change.difference < 0.0) {
        (false, _) => p,
        (true, true) => format!("lower, {p}"),
        (true, false) => format!("higher, {p}"),
    };
    match change.difference == 0.0 {
        true => format!("{} {own} as before", metric.title),
        false => format!("{} {own} against {before} ({told})", metric.title),
    }
}

/// `outputs agree (cosine 0.9994, top-1 99.2 %)`, `outputs close on random data, accuracy not measured (cosine 0.9996)`;
/// nothing where they are equal to the last place that is shown.
fn agreement_words(fidelity: &Fidelity) -> String {
    let is_equal = fidelity.cosine >= 0.999_95 && fidelity.agreement.is_none_or(|agreement| agreement.top1() == 1.0);
    if is_equal {
        return String::new();
    }
    format!("outputs {} ({})", fidelity.words(), fidelity.evidence())
}

/// `int8 at b1 differs: 1 in 4 top classes changed (not ranked)`.
fn differing(entry: &Entry<'_>, places: Option<Places>) -> Option<String> {
    let (_, first) = entry.differs.first()?;
    let names: Vec<&str> = entry.differs.iter().map(|(place, _)| place.as_str()).collect();
    Some(format!("{}{} {} (not ranked)", entry.name, at(places, &names), first.words()))
}

fn borrowed<'a>(judged: &'a [(String, &'a Comparison)]) -> Vec<(&'a str, &'a Comparison)> {
    judged.iter().map(|(place, comparison)| (place.as_str(), *comparison)).collect()
}

/// `faster than fp32 (2.49x [2.45, 2.53] at b16) and inconclusive (1.02x [0.99, 1.06] at b1: ...)`.
pub(super) fn judgement(
    judged: &[(&str, &Comparison)],
    baseline: Option<&str>,
    places: Option<Places>,
) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for verdict in Verdict::ALL {
        let alike: Vec<(&str, &Comparison)> =
            judged.iter().filter(|(_, comparison)| comparison.verdict == verdict).copied().collect();
        let Some((_, first)) = alike.first() else { continue };
        let evidence = evidence(&alike, places);
        let relation = relation(first, baseline.filter(|_| parts.is_empty()));
        parts.push(format!("{relation} ({evidence})"));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// `faster than fp32`, `equivalent to fp32 within 2 %`, `inconclusive against fp32`.
fn relation(comparison: &Comparison, baseline: Option<&str>) -> String {
    let word = verdict_word(&comparison.metric, comparison.verdict);
    let margin = percent(comparison.margin);
    let other = baseline.map(|baseline| format!(" {} {baseline}", comparison.verdict.preposition()));
    let within = (comparison.verdict.claim() == Claim::Sameness).then(|| format!(" within {margin}"));
    format!("{word}{}{}", other.unwrap_or_default(), within.unwrap_or_default())
}

fn evidence(alike: &[(&str, &Comparison)], places: Option<Places>) -> String {
    if alike.len() > MOST_PLACES {
        let speedups = || alike.iter().map(|(_, comparison)| comparison.speedup);
        let (low, high) = (speedups().fold(f64::INFINITY, f64::min), speedups().fold(0.0, f64::max));
        let many = places.map_or("rows", |places| places.many);
        format!("{} to {} over {} {many}", ratio(low, None), ratio(high, None), alike.len())
    } else {
        let each = alike.iter().map(|(place, comparison)| {
            let ratio = judged_ratio(comparison.speedup, comparison.interval, comparison.margin);
            let place = at(places, &[place]);
            let withheld = comparison.withheld.map(|withheld| withheld.words().to_owned());
            let reason = withheld.or_else(|| Some(hint_words(comparison.hint?, comparison.margin)));
            let reason = reason.map(|reason| format!(": {reason}"));
            format!("{ratio}{place}{}", reason.unwrap_or_default())
        });
        let separator = if alike.iter().any(|(_, comparison)| comparison.hint.is_some()) { "; " } else { ", " };
        each.collect::<Vec<_>>().join(separator)
    }
}

/// ` at b1 and b16`; nothing where there is one place only.
pub(super) fn at<S: AsRef<str>>(places: Option<Places>, names: &[S]) -> String {
    places.map(|places| format!(" {} {}", places.preposition, format::list(names))).unwrap_or_default()
}

/// What would turn an inconclusive comparison into a verdict.
pub(in crate::report) fn hint_words(hint: Hint, margin: f64) -> String {
    match hint {
        Hint::TooFewBlocks { needed } => format!("a verdict needs {needed} common runs"),
        Hint::SizeNotEstablished { more_blocks } => {
            let more = more_blocks.map_or(String::new(), |more| format!("; {}", would_decide(more)));
            format!("different, but perhaps by less than {}{more}", percent(margin))
        }
        Hint::NotEnoughData { detectable_effect, more_blocks } => match more_blocks {
            Some(more) => would_decide(more),
            None => format!("more runs would hardly decide, these find {} and more", percent(detectable_effect)),
        },
    }
}

fn would_decide(more: usize) -> String {
    format!("about {} would decide", format::count(more as u64, "more run"))
}

/// `3 of 11 are faster than fp32 (best: int8, 2.32x [2.29, 2.35]), 5 slower, 2 equivalent, 1 inconclusive`, by input.
fn counted(subject: &Subject<'_>, baseline: &str) -> Vec<String> {
    let entries: Vec<&Entry<'_>> = subject.entries.iter().filter(|entry| !entry.judged.is_empty()).collect();
    let all =
        |verdict: Verdict| move |entry: &&&Entry<'_>| entry.judged.iter().all(|(_, judged)| judged.verdict == verdict);
    let mut counts: Vec<String> = Vec::new();
    let mut uniform = 0;
    for verdict in Verdict::ALL {
        let number = entries.iter().filter(all(verdict)).count();
        uniform += number;
        let Some((_, sample)) = entries[0].judged.first() else { continue };
        let word = verdict_word(&sample.metric, verdict);
        if number > 0 {
            counts.push(format!("{number} {word}"));
        }
    }
    if entries.len() > uniform {
        let place = subject.places.map_or("row", |places| places.one);
        counts.push(format!("{} different from {place} to {place}", entries.len() - uniform));
    }
    let mut clauses = vec![format!("Of {} compared with {baseline}: {}", entries.len(), counts.join(", "))];
    let winners = entries.iter().filter(|entry| subject.wins_everywhere(entry));
    let lowest =
        |entry: &Entry<'_>| entry.judged.iter().map(|(_, judged)| judged.speedup).fold(f64::INFINITY, f64::min);
    if let Some(best) = winners.max_by(|a, b| lowest(a).total_cmp(&lowest(b))) {
        clauses.extend(about(best, Some(baseline), subject.places));
    }
    clauses
}

/// Where a candidate has no verdict, and why.
fn unjudged(entry: &Entry<'_>, places: Option<Places>) -> Option<String> {
    // That it is not to be used says more.
    let (_, first) = entry.unjudged.first().filter(|_| entry.differs.is_empty())?;
    let names: Vec<&str> = entry.unjudged.iter().map(|(place, _)| place.as_str()).collect();
    let at = at(places, &names);
    let why = match first.withheld {
        Some(withheld) => withheld.words().to_owned(),
        None => {
            let common = format::count(first.blocks as u64, "common run");
            let failed = entry.failure.map(|kind| format!(", since runs failed ({})", kind.replace('_', " ")));
            format!("{common} of the {LEAST_RUNS} that a verdict needs{}", failed.unwrap_or_default())
        }
    };
    Some(format!("{} is not judged{at}: {why}", entry.name))
}

/// Where a candidate has no completed run, and why; what the plan skips is a notice.
fn absent(entry: &Entry<'_>, places: Option<Places>) -> Option<String> {
    let missing: Vec<&(String, Absence<'_>)> =
        entry.missing.iter().filter(|(_, why)| *why != Absence::Skipped).collect();
    let (_, first) = missing.first()?;
    let words = first.in_sentence();
    if entry.judged.is_empty() {
        return Some(format!("{} {words}", entry.name));
    }
    let names: Vec<&str> = missing.iter().filter(|(_, why)| why == first).map(|(place, _)| place.as_str()).collect();
    Some(format!("{} {words}{}", entry.name, at(places, &names)))
}

/// Where nothing is compared, because the baseline has no completed run.
fn without_baseline(subject: &Subject<'_>, baseline: &str) -> Option<String> {
    let (_, first) = subject.baseline_missing.first().filter(|(_, missing)| *missing != Absence::Skipped)?;
    let names: Vec<&str> = subject.baseline_missing.iter().map(|(place, _)| place.as_str()).collect();
    let at = at(subject.places, &names);
    Some(format!("{baseline} {}{at}, so nothing is compared there", first.in_sentence()))
}
