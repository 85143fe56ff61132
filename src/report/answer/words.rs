//! The evidence of a subject in words.

use statistics::paired::Hint;
use statistics::{Claim, Verdict};

use super::evidence::{Entry, Places, Subject};
use crate::judge::compare::{Comparison, Withheld};
use crate::judge::summary::LEAST_RUNS;
use crate::quality::accuracy::Score;
use crate::quality::fidelity::{Equal, Fidelity};
use crate::report::absence::Absence;
use crate::report::format::{self, percent, verdict_word};
use crate::report::{capitalized, short_name};
use crate::vocabulary::metric::Unit;

/// More candidates than this are counted, and only the fastest are named.
const MOST_NAMED: usize = 4;

/// Ratios of more places than this become a range.
const MOST_PLACES: usize = 3;

/// One clause for each candidate, what is picked first, then what cannot be used, what broke `ties`, the others, and why
/// some have none; the first verdict names the baseline. Beside the clauses, how many of the first must not be left out.
pub(super) fn clauses(
    subject: &Subject<'_>,
    baseline: &str,
    picks: &[String],
    ties: Vec<String>,
) -> (Vec<String>, usize) {
    let least;
    let mut clauses: Vec<String> = Vec::new();
    let judged: Vec<&Entry<'_>> = subject.entries.iter().filter(|entry| !entry.judged.is_empty()).collect();
    let places = subject.places;
    if judged.len() > MOST_NAMED {
        clauses.extend(counted(subject, baseline));
        clauses.extend(differing(&differences(subject)));
        least = clauses.len();
        clauses.extend(ties);
    } else {
        let (picked, others): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) =
            judged.into_iter().partition(|entry| picks.contains(&entry.name));
        let (noisy, others): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) = others.into_iter().partition(|entry| is_noisy(entry));
        // What broke a tie is told with its values.
        let tells_memory = ties.is_empty();
        let clause = |entry: &Entry<'_>, is_first: bool| {
            // The lead has just named the only pick, which what follows could be taken to be compared with.
            let is_only_pick = picks == [entry.name.as_str()];
            let than = Some(baseline).filter(|_| is_first || picks.len() == 1);
            let clause = about(entry, !is_only_pick || !is_first, than, places)?;
            let is_told = tells_memory && picks.contains(&entry.name) && entry.saved.len() == entry.judged.len();
            let memory = memory_words(&entry.saved).filter(|_| is_told);
            Some(clause + &memory.map(|memory| format!(", {memory}")).unwrap_or_default())
        };
        for entry in &picked {
            clauses.extend(clause(entry, clauses.is_empty()));
        }
        clauses.extend(differing(&differences(subject)));
        least = clauses.len();
        clauses.extend(ties);
        for (index, entry) in others.iter().enumerate() {
            clauses.extend(clause(entry, picked.is_empty() && index == 0));
        }
        clauses.extend(too_noisy(&noisy, baseline));
    }
    clauses.extend(subject.entries.iter().filter_map(|entry| unjudged(entry, places)));
    clauses.extend(subject.entries.iter().filter_map(|entry| absent(entry, places)));
    clauses.extend(without_baseline(subject, baseline));
    (clauses, least)
}

/// `int8 is 2.5x faster than fp32 at b16, inconclusive at b1, top-1 98.9 % as before`.
fn about(entry: &Entry<'_>, is_named: bool, baseline: Option<&str>, places: Option<Places>) -> Option<String> {
    let judgement = judgement(&borrowed(&entry.judged), baseline, places)?;
    let agrees = match output_words(entry.accuracy, entry.agrees) {
        words if words.is_empty() => words,
        words => format!(", {words}"),
    };
    Some(match is_named {
        true => format!("{} is {judgement}{agrees}", entry.name),
        false => format!("{}{agrees}", capitalized(&judgement)),
    })
}

/// Whether nothing but noise keeps a candidate from a verdict, everywhere, and there is no more to say of it.
fn is_noisy(entry: &Entry<'_>) -> bool {
    let has_changed = entry.accuracy.is_some_and(Score::is_told_apart);
    !has_changed && entry.judged.iter().all(|(_, comparison)| hidden_effect(comparison).is_some())
}

/// The relative difference that an inconclusive comparison would have found.
fn hidden_effect(comparison: &Comparison) -> Option<f64> {
    match comparison.hint? {
        Hint::NotEnoughData { detectable_effect, .. } if comparison.withheld.is_none() => Some(detectable_effect),
        _ => None,
    }
}

/// `fp16, int8 and fp32 cannot be ranked: only differences above 15 % are detectable here`.
fn too_noisy(entries: &[&Entry<'_>], baseline: &str) -> Option<String> {
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).chain([baseline]).collect();
    let judged = entries.iter().flat_map(|entry| &entry.judged);
    let seen = judged.filter_map(|(_, comparison)| hidden_effect(comparison)).max_by(f64::total_cmp)?;
    let seen = format::noise_floor(seen);
    Some(format!("{} cannot be ranked: only differences above {seen} are detectable here", format::list(&names)))
}

/// How right the outputs are, where that is known, else how like the reference's; empty where there is nothing to say.
pub(super) fn output_words(accuracy: Option<&Score>, fidelity: Option<&Fidelity>) -> String {
    match accuracy {
        Some(score) => accuracy_words(score),
        None => fidelity.map(agreement_words).unwrap_or_default(),
    }
}

/// `top-1 97.8 % against 98.1 % (lower, p 0.012)`; of a change that chance explains, the p value alone.
fn accuracy_words(score: &Score) -> String {
    let Some(change) = score.change else { return String::new() };
    let (metric, name) = (score.metric.metric(), short_name(score.metric));
    let shown = |value: f64| format::score(metric, value, score.estimate.n);
    let (own, before) = (shown(score.estimate.value), shown(score.estimate.value - change.difference));
    let p = format!("p {}", format::p_value(change.p));
    let told = match (score.is_told_apart(), change.difference < 0.0) {
        (false, _) => p,
        (true, true) => format!("lower, {p}"),
        (true, false) => format!("higher, {p}"),
    };
    match change.difference == 0.0 {
        true => format!("{name} {own} as before"),
        false => format!("{name} {own} against {before} ({told})"),
    }
}

/// `outputs agree (cosine 0.9994, top-1 99.2 %)`, `outputs close on random data, accuracy not measured (cosine 0.9996)`;
/// nothing where they are equal to the last place that is shown.
fn agreement_words(fidelity: &Fidelity) -> String {
    let is_equal = fidelity.cosine.is_none_or(|cosine| cosine >= 0.999_95)
        && fidelity.equal.iter().all(Equal::is_whole)
        && fidelity.agreement.is_none_or(|agreement| agreement.top1() == 1.0);
    if is_equal {
        return String::new();
    }
    format!("outputs {} ({})", fidelity.words(), fidelity.evidence())
}

/// Every candidate whose outputs differ, where, and how.
fn differences<'a>(subject: &Subject<'a>) -> Vec<(String, &'a Fidelity)> {
    let of = |entry: &Entry<'a>| {
        let (_, first) = entry.differs.first()?;
        let there: Vec<&str> = entry.differs.iter().map(|(place, _)| place.as_str()).collect();
        let place = at(subject.places.filter(|_| there.len() < subject.groups), &there);
        Some((format!("{}{place}", entry.name), *first))
    };
    subject.entries.iter().filter_map(of).collect()
}

/// `int8 at b1 differs: 1 in 4 top classes changed (not ranked)`, each by its name; of many the names alone.
pub(super) fn differing(found: &[(String, &Fidelity)]) -> Vec<String> {
    if found.len() > MOST_NAMED {
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        return vec![format!("{} are not ranked, since their outputs differ", format::list(&names))];
    }
    found.iter().map(|(name, fidelity)| format!("{name} {} (not ranked)", fidelity.words())).collect()
}

/// `40 MiB less memory`, `35 MiB to 40 MiB less memory`; nothing where it is less at one place and more at another.
pub(super) fn memory_words(saved: &[f64]) -> Option<String> {
    let is_less = *saved.first()? > 0.0;
    if saved.iter().any(|bytes| (*bytes > 0.0) != is_less) {
        return None;
    }
    let mut sizes: Vec<f64> = saved.iter().map(|bytes| bytes.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let [least, most] = [sizes[0], sizes[sizes.len() - 1]].map(format::rounded_bytes);
    let range = if least == most { least } else { format!("{least} to {most}") };
    Some(format!("{range} {} memory", if is_less { "less" } else { "more" }))
}

fn borrowed<'a>(judged: &'a [(String, &'a Comparison)]) -> Vec<(&'a str, &'a Comparison)> {
    judged.iter().map(|(place, comparison)| (place.as_str(), *comparison)).collect()
}

/// `1.2x faster than fp32 at b1, 2.5x at b16, inconclusive at b4`.
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
        let other = baseline.filter(|_| parts.is_empty()).map(|name| format!(" {} {name}", verdict.preposition()));
        let relation = format!("{}{}", verdict_word(&first.metric, verdict), other.unwrap_or_default());
        parts.push(part(verdict, &relation, &alike, places));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What is judged alike: `1.2x faster at b1, 2.5x at b16`, `slower (0.57x at b1)`, `equivalent at b1 and b16`.
fn part(verdict: Verdict, relation: &str, alike: &[(&str, &Comparison)], places: Option<Places>) -> String {
    // A ratio of shares says little; their values stand beside it.
    let is_of_shares = alike.first().is_some_and(|(_, first)| first.metric.unit() == Unit::Share);
    if verdict.claim() != Claim::Difference || is_of_shares {
        return not_different(relation, alike, places);
    }
    let ratio = |comparison: &Comparison| format::rounded_ratio(comparison.speedup, comparison.interval);
    let each: Vec<String> = if alike.len() > MOST_PLACES {
        let by_speedup = |a: &&Comparison, b: &&Comparison| a.speedup.total_cmp(&b.speedup);
        let comparisons = || alike.iter().map(|(_, comparison)| *comparison);
        let (least, most) = (comparisons().min_by(by_speedup), comparisons().max_by(by_speedup));
        let many = places.map_or("rows", |places| places.many);
        let [least, most] = [least, most].map(|it| it.map(ratio).unwrap_or_default());
        let range = if least == most { least } else { format!("{least} to {most}") };
        vec![range, format!(" over {} {many}", alike.len())]
    } else {
        let told = alike.iter().flat_map(|(place, comparison)| [ratio(comparison), at(places, &[place])]);
        told.collect()
    };
    match (verdict, each.as_slice()) {
        (Verdict::Better, [first, place, others @ ..]) => {
            let others = others.chunks(2).map(|other| format!(", {}", other.concat())).collect::<String>();
            format!("{first} {relation}{place}{others}")
        }
        _ => {
            let all: Vec<String> = each.chunks(2).map(<[String]>::concat).collect();
            format!("{relation} ({})", all.join(", "))
        }
    }
}

/// `equivalent to fp32 at b1 and b16`, `inconclusive at b4 (quick look)`.
fn not_different(relation: &str, alike: &[(&str, &Comparison)], places: Option<Places>) -> String {
    let names: Vec<&str> = alike.iter().map(|(place, _)| *place).collect();
    let place = match (alike.len() > MOST_PLACES, places) {
        (true, places) => format!(" over {} {}", alike.len(), places.map_or("rows", |places| places.many)),
        (false, places) => at(places, &names),
    };
    let withheld = alike.iter().find_map(|(_, comparison)| comparison.withheld).map(Withheld::words);
    let is_small =
        |(_, comparison): &(&str, &Comparison)| matches!(comparison.hint, Some(Hint::SizeNotEstablished { .. }));
    let small = alike
        .first()
        .filter(|_| alike.iter().all(is_small))
        .map(|(_, first)| format!("they differ, but perhaps by less than the {} margin", percent(first.margin)));
    let why = withheld.map(str::to_owned).or(small).map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{relation}{place}{why}")
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
            format!("they differ, but perhaps by less than the {} margin{more}", percent(margin))
        }
        Hint::NotEnoughData { detectable_effect, more_blocks } => match more_blocks {
            Some(more) => would_decide(more),
            None => format!(
                "more runs would hardly help: only differences of {} or more are detectable",
                percent(detectable_effect)
            ),
        },
    }
}

fn would_decide(more: usize) -> String {
    format!("about {} would decide", format::count(more as u64, "more run"))
}

/// `Of 11 compared with fp32: 3 faster, 5 slower, 2 equivalent, 1 inconclusive`, and the best of them.
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
        counts.push(format!("{} that vary from {place} to {place}", entries.len() - uniform));
    }
    let mut clauses = vec![format!("Of {} compared with {baseline}: {}", entries.len(), counts.join(", "))];
    let winners = entries.iter().filter(|entry| subject.wins_everywhere(entry));
    let lowest =
        |entry: &Entry<'_>| entry.judged.iter().map(|(_, judged)| judged.speedup).fold(f64::INFINITY, f64::min);
    if let Some(best) = winners.max_by(|a, b| lowest(a).total_cmp(&lowest(b))) {
        clauses.extend(about(best, true, Some(baseline), subject.places));
    }
    clauses
}

/// Where a candidate has no verdict, and why.
fn unjudged(entry: &Entry<'_>, places: Option<Places>) -> Option<String> {
    let (_, first) = entry.unjudged.first()?;
    let names: Vec<&str> = entry.unjudged.iter().map(|(place, _)| place.as_str()).collect();
    let at = at(places, &names);
    if first.withheld == Some(Withheld::QuickLook) {
        let margin = percent(first.margin);
        return Some(format!(
            "{} is inconclusive{at} (a quick look claims only differences beyond {margin})",
            entry.name
        ));
    }
    let why = match first.withheld {
        Some(withheld) => withheld.words().to_owned(),
        None => {
            let common = format::count(first.blocks as u64, "common run");
            let failed = entry.failure.map(|kind| format!(", since runs failed ({})", kind.replace('_', " ")));
            format!("{common}{}, but a verdict needs {LEAST_RUNS}", failed.unwrap_or_default())
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
