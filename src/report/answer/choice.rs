//! What may be chosen, in sentences: made from the [`Choice`], the plan giving the names and the summary what comes out.

mod bounds;
mod options;
#[cfg(test)]
mod tests;

pub(in crate::report) use bounds::{goals, within};

use statistics::paired::Verdict;

use super::evidence::{saved_memory, speaks_of_baseline};
use super::{Sentence, nothing_is_claimed, ties, under_its_condition, words};
use crate::judge::compare::choose::{BoundOutcome, Choice, Doubt, Entrant, Standing, sort_by_estimate};
use crate::judge::compare::{Comparison, Judged, Unfit};
use crate::judge::summary::{CellSummary, LEAST_RUNS, Summary};
use crate::plan::Plan;
use crate::quality::fidelity::{Fidelity, OUTPUTS_DIFFER};
use crate::report::{capitalized, format};
use crate::vocabulary::metric::{Direction, MetricReference, PEAK_RSS, Unit};
use options::{Cluster, Question, WhyNone, questions};

/// One sentence for each model, or for all together where models compete.
pub(super) fn sentences(plan: &Plan, summary: &Summary, judged: &Judged, choice: &Choice) -> Vec<Sentence> {
    if let Some(failed) = choice.failed_control {
        return vec![nothing_is_claimed(plan, failed.cell, failed.difference)];
    }
    questions(plan, choice).iter().map(|question| sentence(plan, summary, judged, question, choice)).collect()
}

/// More kinds of answers than these are told in the text alone.
const MOST_CLUSTERS: usize = 3;

/// More names than these are counted.
const MOST_NAMED: usize = 4;

/// Where there are many rivals, so many are named and the others counted.
const MOST_RIVALS: usize = 2;

fn sentence(plan: &Plan, summary: &Summary, judged: &Judged, question: &Question<'_>, choice: &Choice) -> Sentence {
    let clusters = question.clusters();
    let by: Vec<String> = clusters.iter().map(|cluster| broken_by(question, cluster)).collect();
    let lead_of = |(cluster, by): (&Cluster<'_>, &String)| lead(cluster, by, choice, clusters.len() > 1);
    let parts: Vec<String> = clusters.iter().zip(&by).map(lead_of).collect();
    let pick = if parts.len() > MOST_CLUSTERS {
        format!("it depends on the {}", question.places().map_or("row", |places| places.one))
    } else {
        parts.join("; ")
    };
    let pick = under_its_condition(pick, summary, question.entrants().map(|entrant| entrant.cell));
    let is_none = clusters.iter().all(|cluster| cluster.is_empty());
    let subject = match question.label.as_str() {
        "" if is_none || parts.len() > MOST_CLUSTERS => "",
        "" if by.iter().all(String::is_empty) => superlative(choice.best),
        "" => "Best",
        label => label,
    };
    let mut clauses: Vec<String> = Vec::new();
    // The lead has just named what is the only answer.
    let is_named = !matches!(clusters.as_slice(), [only] if only.best.len() == 1 && only.doubt.is_none());
    for cluster in &clusters {
        clauses.extend(evidence(question, cluster, choice, clusters.len() > 1, is_named));
    }
    // What cannot be used comes early, and the values by which one chooses where ratios do not tell them: the short form
    // has them. So does what the lead makes a condition, if there is room.
    let mut early = differing(question, summary);
    early.extend(values(question, summary, choice).filter(|_| choice.best.metric.is_constant()));
    let after = clauses.len().min(1);
    let least = after + early.len();
    early.extend(values(question, summary, choice).filter(|_| !choice.best.metric.is_constant()));
    early.extend(doubts(question, choice));
    clauses.splice(after..after, early);
    let ties = ties::clauses(&question.all_ties(), summary, question.places());
    // What broke a tie is told with its values.
    let tells_memory = ties.is_empty() && choice.best.metric.name != PEAK_RSS.name;
    clauses.extend(ties);
    if speaks_of_baseline(plan) {
        clauses.extend(outputs(question, summary, is_named));
    }
    if let Some(baseline) = plan.baseline.as_ref().filter(|_| tells_memory) {
        clauses.extend(memory(question, summary, judged, &baseline.name, is_named));
    }
    clauses.extend(out_of_bounds(question, choice));
    clauses.extend(unfit(question));
    // Every cluster has evidence, or says why there is none.
    if let Some(first) = clauses.first_mut() {
        *first = match choice.best == MetricReference::LATENCY || clusters[0].is_empty() {
            true if is_named && !clusters[0].is_empty() => std::mem::take(first),
            true => capitalized(first),
            false => format!("By {}, {first}", choice.best.title()),
        };
    }
    Sentence::about(subject, &pick, &clauses, least)
}

fn superlative(best: MetricReference) -> &'static str {
    match (best.unit(), best.metric.direction) {
        _ if best.statistic.is_scatter() => "Best",
        (Unit::Nanoseconds | Unit::PerSecond, _) => "Fastest",
        (Unit::Bytes, Direction::LowerIsBetter) => "Smallest",
        _ => "Best",
    }
}

/// ` by peak memory`, where nothing but that tells what is best from others, in each contest.
fn broken_by(question: &Question<'_>, cluster: &Cluster<'_>) -> String {
    let leads = question.ties(&cluster.contests);
    let has_tie = |place: &String| leads.iter().any(|lead| lead.place == *place);
    let is_told = !leads.is_empty() && cluster.contests.iter().all(|(place, _)| has_tie(place));
    if is_told { format!(" by {}", format::list(&ties::titles(&leads))) } else { String::new() }
}

/// `int8`, `int8 or fp32 at b1`, `int8 by peak memory`, `int8 if it keeps p95 <= 20 ms, else fp32`.
fn lead(cluster: &Cluster<'_>, by: &str, choice: &Choice, is_one_of_several: bool) -> String {
    let open = if is_undecided(cluster) { ", undecided" } else { "" };
    let kept = |names: &[String]| match names.len() {
        more if more > MOST_NAMED => format!("one of {more}{open}"),
        2.. => format!("{}{open}", names.join(" or ")),
        _ => names.join(" or "),
    };
    let what = match &cluster.doubt {
        None if cluster.best.is_empty() => cluster.why_none().lead().to_owned(),
        None => kept(&cluster.best),
        Some(doubt) => {
            let bound = bounds::bound_words(&choice.bounds[doubt.bound].bound);
            let doubtful = format!("{} if it keeps {bound}", kept(&doubt.names));
            match (cluster.best.is_empty(), doubt.is_ahead) {
                (true, _) => doubtful,
                (false, true) => format!("{doubtful}, else {}", kept(&cluster.best)),
                (false, false) => format!("{}, or {doubtful}", kept(&cluster.best)),
            }
        }
    };
    let what = format!("{what}{by}");
    if is_one_of_several { format!("{what} {}", cluster.place()) } else { what }
}

/// Whether those that are best are not told apart, rather than found equivalent.
fn is_undecided(cluster: &Cluster<'_>) -> bool {
    cluster.contests.iter().any(|(_, contest)| {
        let is_best = |one: &&Comparison| contest.best.contains(&one.baseline);
        contest.evidence.iter().filter(is_best).any(|one| one.verdict.is_open())
    })
}

/// The leader against the others that could be chosen; why there is none.
fn evidence(
    question: &Question<'_>,
    cluster: &Cluster<'_>,
    choice: &Choice,
    is_one_of_several: bool,
    is_named: bool,
) -> Vec<String> {
    if cluster.is_empty() {
        let place = if is_one_of_several { format!(" {}", cluster.place()) } else { String::new() };
        return vec![format!("{}{place}", none(cluster, choice))];
    }
    let mut leaders: Vec<String> = Vec::new();
    for (_, contest) in &cluster.contests {
        let leader = question.name(contest.best[0]);
        if !leaders.contains(&leader) {
            leaders.push(leader);
        }
    }
    let about = |leader: &String| {
        let led = cluster.contests.iter().filter(|(_, contest)| question.name(contest.best[0]) == *leader);
        let judged: Vec<(&str, &Comparison)> =
            led.flat_map(|(place, contest)| contest.evidence.iter().map(move |one| (place.as_str(), one))).collect();
        if judged.is_empty() {
            let place = if is_one_of_several { format!(" {}", cluster.place()) } else { String::new() };
            let only = format!("the only one that can be chosen{place}");
            return if is_named { format!("{leader} is {only}") } else { only };
        }
        let relations = against(question, &judged);
        if is_named { format!("{leader} is {relations}") } else { relations }
    };
    leaders.iter().map(about).collect()
}

/// `top-1 accuracy: fp32 98.1 %, int8 97.0 %`: the metric that was asked for, the best first; of latency ratios are enough.
fn values(question: &Question<'_>, summary: &Summary, choice: &Choice) -> Option<String> {
    let by = choice.best;
    let contest = question.telling(by).filter(|_| by != MetricReference::LATENCY && !by.is_speedup())?;
    let is_fit =
        |entrant: &&Entrant| !matches!(entrant.standing, Standing::Unfit { .. } | Standing::OutOfBounds { .. });
    let mut cells: Vec<usize> = contest.entrants.iter().filter(is_fit).map(|entrant| entrant.cell).collect();
    sort_by_estimate(summary, by, &mut cells);
    let told = |cell: &usize| {
        let estimate = summary.cells[*cell].estimate_of(by)?;
        let value = match by.unit() {
            Unit::Share => format::score(by.metric, estimate.value, estimate.n),
            unit => format::measured(unit, estimate.value, None),
        };
        Some(format!("{} {}", question.name(*cell), value.trim_end_matches(" /s")))
    };
    let told: Vec<String> = cells.iter().filter_map(told).collect();
    let more = told.len().saturating_sub(MOST_NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = told[..told.len() - more].join(", ");
    (!told.is_empty()).then(|| format!("{}: {shown}{rest}", by.title()))
}

/// Another cell's name, and the leader against it at each place.
type Rival<'a> = (String, Vec<(&'a str, &'a Comparison)>);

/// `2.3x faster than fp32 and ahead of 2 others`: the leader against the others.
fn against(question: &Question<'_>, judged: &[(&str, &Comparison)]) -> String {
    let mut rivals: Vec<Rival<'_>> = Vec::new();
    for (place, comparison) in judged {
        let name = question.name(comparison.baseline);
        match rivals.iter_mut().find(|(rival, _)| *rival == name) {
            Some((_, known)) => known.push((place, comparison)),
            None => rivals.push((name, vec![(place, comparison)])),
        }
    }
    let is_beaten = |(_, judged): &Rival<'_>| judged.iter().all(|(_, one)| one.verdict == Verdict::Better);
    let (mut beaten, mut level): (Vec<Rival<'_>>, Vec<Rival<'_>>) = rivals.into_iter().partition(is_beaten);
    let (all_level, all_beaten) = (level.len(), beaten.len());
    level.truncate(MOST_RIVALS);
    // What the record compares with, else what comes closest, stands for all that is beaten.
    let closest = |(_, judged): &Rival<'_>| judged.iter().map(|(_, one)| one.speedup).fold(f64::INFINITY, f64::min);
    let is_baseline =
        |(_, judged): &Rival<'_>| judged.iter().any(|(_, one)| question.is_baseline_of(one.baseline, one.cell));
    beaten.sort_by(|left, right| closest(left).total_cmp(&closest(right)));
    if let Some(place) = beaten.iter().position(is_baseline) {
        beaten.swap(0, place);
    }
    beaten.truncate(1);
    let words = |(rival, judged): &Rival<'_>| words::judgement(judged, Some(rival), question.places());
    let mut parts: Vec<String> = level.iter().filter_map(words).collect();
    if all_level > level.len() {
        parts.push(format!("indistinguishable from {}", format::count((all_level - level.len()) as u64, "other")));
    }
    parts.extend(beaten.iter().filter_map(words));
    if all_beaten > beaten.len() {
        parts.push(format!("ahead of {}", format::count((all_beaten - beaten.len()) as u64, "other")));
    }
    format::list(&parts)
}

/// Why nothing can be chosen.
fn none(cluster: &Cluster<'_>, choice: &Choice) -> String {
    match cluster.why_none() {
        WhyNone::TooEarly => format!("a verdict needs {LEAST_RUNS} completed runs of each cell"),
        WhyNone::OutOfBounds { may_others } => {
            let bounds: Vec<String> = choice.bounds.iter().map(|check| bounds::bound_words(&check.bound)).collect();
            let which = if may_others { " that can be judged" } else { "" };
            format!("no cell{which} keeps {}", format::list(&bounds))
        }
        WhyNone::Circle => "every candidate is beaten by another".to_owned(),
        WhyNone::Unfit => "nothing can be judged".to_owned(),
    }
}

/// `whether int8 keeps p95 <= 20 ms is undecided (19.9 ms ± 0.3 at b1)`; of several cells the reason alone.
fn doubts(question: &Question<'_>, choice: &Choice) -> Vec<String> {
    let reason = |entrant: &Entrant| match entrant.standing {
        Standing::InDoubt { bound } => match choice.bounds[bound].of(entrant.cell)?.outcome {
            BoundOutcome::Undecided(doubt) => Some((bound, doubt)),
            BoundOutcome::Kept | BoundOutcome::Missed => None,
        },
        _ => None,
    };
    let words = |((bound, doubt), names, place): ((usize, Doubt), Vec<String>, Option<String>)| {
        let check = &choice.bounds[bound];
        let (whose, place) = (named(&names), place.unwrap_or_default());
        let verb = if names.len() == 1 { "keeps" } else { "keep" };
        let kept = bounds::bound_words(&check.bound);
        let meant =
            |entrant: &&Entrant| reason(entrant) == Some((bound, doubt)) && question.name(entrant.cell) == whose;
        let cells: Vec<&Entrant> = question.entrants().filter(meant).collect();
        match (cells.as_slice(), cells.first().and_then(|only| check.of(only.cell))) {
            ([_], Some(bounded)) => {
                let value = bounds::value_words(&check.bound, bounded, &place);
                format!("whether {whose} {verb} {kept} is undecided ({value})")
            }
            _ => {
                let across = || "the intervals include the bound".to_owned();
                let why = bounds::doubt_words(doubt, check.bound.metric).unwrap_or_else(across);
                format!("whether {whose} {verb} {kept} is undecided{place} ({why})")
            }
        }
    };
    question.told(reason).into_iter().map(words).collect()
}

/// `fp16 misses p95 <= 20 ms at b1`.
fn out_of_bounds(question: &Question<'_>, choice: &Choice) -> Vec<String> {
    let found = question.told(|entrant| match entrant.standing {
        Standing::OutOfBounds { bound } => Some(bound),
        _ => None,
    });
    let words = |(bound, names, place): (usize, Vec<String>, Option<String>)| {
        let verb = if names.len() == 1 { "misses" } else { "miss" };
        let bound = bounds::bound_words(&choice.bounds[bound].bound);
        format!("{} {verb} {bound}{}", named(&names), place.unwrap_or_default())
    };
    found.into_iter().map(words).collect()
}

/// What comes out of what is best, where that is not what comes out of its reference: `int8: top-1 97.8 % against 98.1 %
/// (lower, p 0.012)`.
fn outputs(question: &Question<'_>, summary: &Summary, is_named: bool) -> Vec<String> {
    let unbeaten = question.entrants().filter(|entrant| entrant.standing == Standing::Unbeaten);
    let mut farthest: Vec<(String, &CellSummary)> = Vec::new();
    for entrant in unbeaten {
        let (name, cell) = (question.name(entrant.cell), &summary.cells[entrant.cell]);
        let likeness = |cell: &CellSummary| cell.fidelity.as_ref().map_or(1.0, Fidelity::likeness);
        match farthest.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) if likeness(cell) < likeness(known) => *known = cell,
            Some(_) => {}
            None => farthest.push((name, cell)),
        }
    }
    let told = |(name, cell): (String, &CellSummary)| {
        let words = words::output_words(cell.accuracy.first(), cell.fidelity.as_ref());
        (!words.is_empty()).then(|| if is_named { format!("{name}: {words}") } else { words })
    };
    farthest.into_iter().filter_map(told).collect()
}

/// `40 MiB less memory than fp32`, of what is best.
fn memory(question: &Question<'_>, summary: &Summary, judged: &Judged, baseline: &str, is_named: bool) -> Vec<String> {
    let mut saved: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for entrant in question.entrants().filter(|entrant| entrant.standing == Standing::Unbeaten) {
        let (name, own) = (question.name(entrant.cell), saved_memory(judged, summary, entrant.cell));
        match saved.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.push(own),
            None => saved.push((name, vec![own])),
        }
    }
    let told = |(name, saved): &(String, Vec<Option<f64>>)| {
        let words = words::memory_words(&saved.iter().copied().collect::<Option<Vec<f64>>>()?)?;
        Some(if is_named { format!("{name}: {words} than {baseline}") } else { format!("{words} than {baseline}") })
    };
    saved.iter().filter_map(told).collect()
}

/// Each candidate whose outputs differ, by its name.
fn differing(question: &Question<'_>, summary: &Summary) -> Vec<String> {
    let differs = |entrant: &Entrant| (entrant.standing == Standing::Unfit { why: Unfit::OutputsDiffer }).then_some(());
    let mut found: Vec<(String, &Fidelity)> = Vec::new();
    for ((), names, place) in question.told(differs) {
        for name in names {
            let mut cells = question.entrants().filter(|entrant| differs(entrant).is_some());
            let cell = cells.find(|entrant| question.name(entrant.cell) == name).map(|entrant| entrant.cell);
            let fidelity = cell.and_then(|cell| summary.cells[cell].fidelity.as_ref());
            found.extend(fidelity.map(|fidelity| (name + place.as_deref().unwrap_or_default(), fidelity)));
        }
    }
    words::differing(&found)
}

/// `fp16 failed (operator) at b16`; what the plan skips is a notice.
fn unfit(question: &Question<'_>) -> Vec<String> {
    let found = question.told(|entrant| match entrant.standing {
        Standing::Unfit { why: Unfit::Skipped | Unfit::OutputsDiffer } => None,
        Standing::Unfit { why } => Some(why),
        _ => None,
    });
    let words = |(why, names, place): (Unfit, Vec<String>, Option<String>)| {
        format!("{} {}", named(&names), unfit_words(why, names.len() > 1, &place.unwrap_or_default()))
    };
    found.into_iter().map(words).collect()
}

/// Names up to a number, then how many more: `a, b, c, d and 6 more`.
fn named(names: &[String]) -> String {
    let mut shown = names[..names.len().min(MOST_NAMED)].to_vec();
    if names.len() > MOST_NAMED {
        shown.push(format!("{} more", names.len() - MOST_NAMED));
    }
    format::list(&shown)
}

/// `failed (operator) at b16`, as the end of a clause.
pub(in crate::report) fn unfit_words(why: Unfit, are_several: bool, place: &str) -> String {
    let is = if are_several { "are" } else { "is" };
    let has = if are_several { "have" } else { "has" };
    match why {
        Unfit::Skipped => format!("{is} skipped{place}"),
        Unfit::Failed(kind) => format!("failed ({}){place}", kind.name().replace('_', " ")),
        Unfit::NotRun => format!("{has} no completed run{place}"),
        Unfit::TooFewRuns(runs) => {
            format!("{has} {}{place}; a verdict needs {LEAST_RUNS}", format::count(u64::from(runs), "completed run"))
        }
        Unfit::Withheld(reason) => format!("{is} not judged{place}: {}", reason.words()),
        Unfit::OutputsDiffer => format!("{is} not ranked{place}: the {OUTPUTS_DIFFER}"),
        Unfit::NoValue => format!("{has} no value{place}"),
        Unfit::TooFewSamples { needed } => {
            format!("{is} not judged{place}: this percentile takes {needed} samples per run (`min_samples`)")
        }
        Unfit::Batched(iterations) => {
            format!("{is} not judged{place}: a sample is the mean of {iterations} iterations")
        }
        Unfit::NoDirection => format!("{is} not judged{place}: the metric has no better direction"),
    }
}
