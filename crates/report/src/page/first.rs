//! The first screen of a page: for each subject what to choose and by how much, what that costs, and how every variant
//! compares; then one line on whether to believe it, and one on what was measured where.
//!
//! Input: the rankings of the answer, and comparisons. Output: words and positions in percent of an axis that all subjects
//! share. Deliberately absent: markup, and any claim that `said` or a verdict does not make.

use schemars::JsonSchema;
use serde::Serialize;

use super::across;
use super::answer::{self, AlikeRankings, End};
use super::cells::{CellsTable, input_name};
use super::heat::{self, Heat};
use super::judged::OUTPUTS_DIFFER;
use super::load::{self, LargestRate};
use super::ranking::NamedRanking;
use super::said::Part;
use super::subject::{SpeedupAxis, SpeedupGroup, SpeedupRow, Subject, groups_of, short_title};
use super::{Fact, Figure, Notices, Reader, Trust, alone, explained, facts, outputs};
use crate::cause::{condition, conditional, under_background_load};
use crate::format::{self, noise_floor, percent};
use crate::mark::claimed;
use crate::plots::RatioScale;
use base::metric::{DEVICE_MEMORY, LATENCY, MODEL_SIZE, MetricReference, PEAK_RSS};
use base::wording::{capitalized, count, distinct, grouped, list};
use judge::results::{AcrossMachines, Cell, Comparison, ControlOutcome};
use plan::CellId;
use statistics::Verdict;

/// More subjects than these are a table of marks and not a figure each.
const MOST_SUBJECTS: usize = 4;

/// What a reader sees first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct First {
    /// A large line for each set of cells with an answer of its own.
    pub subjects: Vec<Subject>,
    /// The axis of their figures; `None` where nothing is compared.
    pub axis: Option<SpeedupAxis>,
    /// Every speed-up as a number, where there are too many subjects for a large line each.
    pub heat: Option<Heat>,
    /// Latency over loads says more than speed-ups at each: `figures.varied` stands beside the answers.
    pub is_of_load: bool,
    /// At which rates each set of cells keeps the bound, and its knee; with such a figure alone.
    pub load: Vec<Fact>,
    /// Whether to believe it, in a few words: `The verdicts hold`.
    pub trust: String,
    /// Why, in a sentence or two.
    pub because: String,
    /// Machine, software, what was not measured, and from what: fragments.
    pub made: Vec<String>,
}

/// The first screen of these results.
pub(super) fn first(
    reader: &Reader<'_>,
    trust: &Trust,
    notices: &Notices,
    varied: &[Figure],
    cells: &CellsTable,
) -> First {
    let found = &answer::alike(reader)[..];
    let axis = Drawn::of(reader);
    let subject = |alike: &AlikeRankings<'_>| subject(reader, found, alike, axis.as_ref());
    let (trust, because) = trusted(reader, trust, notices);
    let mut subjects: Vec<Subject> = found.iter().map(subject).collect();
    subjects.sort_by_key(|subject| subject.groups.is_empty());
    if reader.results.choice.is_none() {
        subjects = alone::subjects(reader, MOST_SUBJECTS);
    }
    // What has no figure is one line where others have one.
    let figures = subjects.iter().filter(|subject| !subject.groups.is_empty()).count();
    let large = if figures > 0 { figures } else { subjects.len() };
    let is_long = large > MOST_SUBJECTS;
    let is_of_load = !is_long && !varied.is_empty() && reader.results.cells.iter().any(|cell| cell.load.is_some());
    First {
        heat: axis.as_ref().filter(|_| is_long).and_then(|_| heat::heat(reader, cells)),
        axis: axis.map(|axis| axis.shown.with_room_for(&subjects)),
        subjects: if is_long { heat::groups(reader, found) } else { subjects },
        is_of_load,
        load: if is_of_load { load::facts(reader) } else { Vec::new() },
        trust,
        because,
        made: made(reader, notices),
    }
}

/// An axis with the scale by which ratios are drawn on it.
struct Drawn {
    scale: RatioScale,
    /// All that is judged met background load, which the caption says.
    has_load: bool,
    shown: SpeedupAxis,
}

impl Drawn {
    /// `None` where nothing is compared that has an interval.
    fn of(reader: &Reader<'_>) -> Option<Self> {
        let results = reader.results;
        let baseline = results.rules.baseline.clone()?;
        let rows: Vec<&Comparison> = results.unasked().filter(|row| shows_ratio(row)).collect();
        let first = *rows.iter().find(|row| row.interval().is_some())?;
        let scale = RatioScale::around(rows.iter().map(|row| (row.ratio, row.interval())));
        let margin = rows.iter().map(|row| row.margin).fold(0.0, f64::max);
        let metric = match distinct(rows.iter().map(|row| row.metric.to_string())).as_slice() {
            [_] if first.metric == MetricReference::LATENCY && results.method.runs_commands() => "time".to_owned(),
            [_] => first.metric.title(),
            _ => "latency or items a second".to_owned(),
        };
        let mut judged = rows.iter().filter(|row| row.is_judged()).peekable();
        let has_load = judged.peek().is_some() && judged.all(|row| super::judged::has_load(reader, row));
        let under = if has_load { "; under background load" } else { "" };
        let shown = SpeedupAxis {
            baseline,
            metric,
            rows: facts::compared(results),
            groups: groups_of(reader),
            reading: format!("bar: {} interval; shaded: {} margin{under}", confidence(&rows), percent(margin)),
            ..SpeedupAxis::on(&scale, margin)
        };
        Some(Drawn { scale, has_load, shown })
    }
}

/// `99 %`; `at least 98 %` where intervals differ, as those of runs by need do.
fn confidence(rows: &[&Comparison]) -> String {
    let all = distinct(rows.iter().filter(|row| row.interval().is_some()).map(|row| row.confidence));
    let least = format::confidence(all.iter().copied().fold(1.0, f64::min));
    if all.len() > 1 { format!("at least {least}") } else { least }
}

fn shows_ratio(row: &Comparison) -> bool {
    !row.withheld().is_some_and(|why| why.hides_the_value())
}

/// Whether the answer holds for every input of its model, or for every ranking of its inputs.
fn is_only_of_model(found: &[AlikeRankings<'_>], alike: &AlikeRankings<'_>) -> bool {
    let is_across = |alike: &AlikeRankings<'_>| alike.rankings.iter().all(heat::is_across_inputs);
    found.iter().filter(|other| other.model == alike.model && is_across(other) == is_across(alike)).count() == 1
}

fn subject(
    reader: &Reader<'_>,
    found: &[AlikeRankings<'_>],
    alike: &AlikeRankings<'_>,
    axis: Option<&Drawn>,
) -> Subject {
    let is_one = found.len() == 1;
    let is_choice = alike.end == End::Decided;
    let best: Vec<CellId> = if is_choice { alike.best() } else { Vec::new() };
    // What ranks batches against each other is drawn with each of them, where that is ranked too.
    let has_each = found.iter().flat_map(|alike| &alike.rankings).any(|names| !heat::is_across_inputs(names));
    let groups = alike.rankings.iter().zip(&alike.subjects);
    let groups =
        groups.filter(|(names, _)| !(has_each && heat::is_across_inputs(names))).filter_map(|(names, subject)| {
            Some(group(reader, &names.cells, subject, &best, axis?)).filter(|group| !group.rows.is_empty())
        });
    let (verdict, tone) = headline(reader, alike);
    let name = alike.subject(reader, is_one || is_only_of_model(found, alike));
    let is_searched = alike.cells().any(|cell| cell.load.as_ref().is_some_and(|load| load.queries.is_largest()));
    Subject {
        // The name that perfrun gives to the level that is searched for.
        name: if is_searched && name == "largest" { "the largest rate".to_owned() } else { name },
        is_choice,
        choice: alike.choice.clone(),
        verdict,
        tone,
        facts: costs(reader, alike),
        groups: groups.collect(),
    }
}

/// By how much: what the first part of the answer claims, without the baseline, which the figure names.
fn headline(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> (String, &'static str) {
    let baseline = reader.results.rules.baseline.clone().unwrap_or_default();
    match (alike.end, alike.parts.first()) {
        (End::None, _) => (alike.why_none(), ""),
        (_, Some(part @ Part::Better { who: None, than, .. })) => {
            let rate = largest(reader, alike).map(|it| format!("{} with {}", it.rate, it.bound));
            let short = (*than == baseline).then(|| part.in_short(reader)).flatten();
            (rate.or(short).unwrap_or_else(|| part.words(reader)), "faster")
        }
        (_, Some(Part::Tied { with, metric, by, .. })) if *with == baseline && format::is_speed(*metric) => {
            let by = saved(reader, alike, *by).unwrap_or_else(|| format!("ahead by {}", by.title()));
            (claimed(format!("as fast, {by}")), "")
        }
        (_, Some(part)) => (part.words(reader), ""),
        (_, None) => (String::new(), ""),
    }
}

/// `file 43 % smaller`: by how much what is chosen is ahead by a further metric, where that is the same for all its inputs.
fn saved(reader: &Reader<'_>, alike: &AlikeRankings<'_>, by: MetricReference) -> Option<String> {
    let shares = alike.rankings.iter().map(|names| {
        let [only] = names.ranking.best.as_slice() else { return None };
        let tied = names.tied_baseline(*only)?;
        let value = |id: CellId| Some(reader.cell(id)?.estimate_of(by)?.value);
        let share = 1.0 - value(*only)? / value(tied)?;
        (share > 0.0).then(|| format!("{:.0} %", share * 100.0))
    });
    let shares: Vec<String> = shares.collect::<Option<_>>()?;
    let [share] = distinct(shares).try_into().ok()?;
    Some(format!("{} {share} {}", short_title(by), format::better_word(&by)))
}

fn group(reader: &Reader<'_>, cells: &[&Cell], subject: &str, best: &[CellId], axis: &Drawn) -> SpeedupGroup {
    let results = reader.results;
    let compared = cells.iter().filter(|cell| !results.is_baseline(cell));
    let baselines: Vec<&Cell> = cells.iter().copied().filter(|cell| results.is_baseline(cell)).collect();
    let takes = match baselines.as_slice() {
        [only] => {
            let latency = || Some(format::measured(LATENCY.unit, only.estimate(&LATENCY)?.value, None));
            load::largest_rate(reader, only).map(|it| it.rate).or_else(latency).unwrap_or_default()
        }
        _ => String::new(),
    };
    let rows = compared.map(|cell| SpeedupRow {
        name: super::name_among(cells, cell),
        is_chosen: best.contains(&cell.id),
        ..row(reader, cell, axis)
    });
    SpeedupGroup { name: input_of(reader, subject), takes, rows: rows.collect() }
}

fn row(reader: &Reader<'_>, cell: &Cell, axis: &Drawn) -> SpeedupRow {
    let none = |word: String| SpeedupRow { tone: "none", word, ..SpeedupRow::default() };
    let Some(found) = reader.against(cell).filter(|_| cell.estimate(&LATENCY).is_some()) else {
        return none(super::absence(cell));
    };
    if let Some(why) = found.withheld().filter(|_| !shows_ratio(found)) {
        return none(format!("withheld: {}", why.words()));
    }
    let has_load = super::judged::has_load(reader, found);
    let text = format::judged_ratio(found.ratio, found.interval(), found.margin);
    let interval = text.split_once(' ').map_or("", |(_, interval)| interval);
    let word = match found.withheld() {
        Some(why) => why.words().to_owned(),
        None if found.low.is_none() => format!("{}, not judged", count(found.blocks, "run")),
        None => format::verdict_of(found),
    };
    let word = if cell.outputs_differ() { OUTPUTS_DIFFER.to_owned() } else { word };
    let tone = if !found.is_judged() || cell.outputs_differ() { "open" } else { format::tone(found.verdict) };
    let row = SpeedupRow {
        tone,
        ratio: format::ratio_alone(found),
        interval: interval.to_owned(),
        word: conditional(word, has_load && !axis.has_load),
        ..SpeedupRow::default()
    };
    row.placed(&axis.scale, found.ratio, found.interval())
}

/// `batch 32`, `laptop` for `cpu@laptop`: what the cells of a ranking share, without the device where that is the same on
/// every machine.
fn input_of(reader: &Reader<'_>, subject: &str) -> String {
    let devices = reader.results.cells.iter().map(|cell| cell.names.device().split_once('@').map(|(device, _)| device));
    match distinct(devices).as_slice() {
        [Some(only)] => input_name(&subject.replace(&format!("{only}@"), "")),
        _ => input_name(subject),
    }
}

/// On which machines what is chosen is faster, and what to expect on another.
fn machines(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<String> {
    let best = alike.best();
    let is_of_best = |found: &&AcrossMachines| found.cells.iter().any(|id| best.contains(id));
    let rows: Vec<&AcrossMachines> = reader.results.across.iter().filter(is_of_best).collect();
    match rows.as_slice() {
        _ if alike.end != End::Decided => None,
        [only] => Some(across::words(only)),
        several => Some(several.iter().map(|row| across::line(row)).collect::<Vec<_>>().join(" ")),
    }
}

/// What is chosen costs and gives, a line for each.
fn costs(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Vec<Fact> {
    let fact = |name: &str, value: Option<String>| {
        value.filter(|value| !value.is_empty()).map(|value| Fact { name: name.to_owned(), value })
    };
    let of_best = |text: &dyn Fn(&Cell) -> Option<String>| {
        let named = |cell: &Cell| Some((text(cell)?, reader.results.entry(&cell.names)));
        let each = grouped(alike.best().into_iter().filter_map(|id| named(reader.cell(id)?)));
        let said = |(text, names): &(String, Vec<String>)| match each.len() {
            1 => text.clone(),
            _ => format!("{}: {text}", list(&distinct(names.iter().cloned()))),
        };
        Some(each.iter().map(said).collect::<Vec<_>>().join("; ")).filter(|_| alike.end == End::Decided)
    };
    let left_out = Some(alike.left_out.clone());
    let because = (alike.end == End::Open).then(|| alike.more(reader)).flatten();
    let has =
        |metric: &MetricReference| alike.cells().all(|cell| cell.completed == 0 || cell.estimate_of(*metric).is_some());
    let memory = [&DEVICE_MEMORY, &PEAK_RSS].map(MetricReference::of).into_iter().find(has);
    [
        fact("rate", rates(reader, alike)),
        fact("gain", gain(reader, alike)),
        fact(
            "speed",
            speed(reader, alike).filter(|_| reader.results.across.is_empty() && largest(reader, alike).is_none()),
        ),
        fact("machines", machines(reader, alike)),
        fact("operators", operators(reader, alike)),
        fact("accuracy", of_best(&|cell| outputs::cost(reader, cell))),
        memory.and_then(|metric| fact(&short_title(metric), amount(reader, alike, metric))),
        fact("file", amount(reader, alike, MetricReference::of(&MODEL_SIZE))),
        fact("open", because),
        fact("left out", left_out),
        fact("holds", alike.load().filter(|_| condition(reader.results).is_none()).map(under_background_load)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The largest rate of the only cell that is chosen for it.
fn largest(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<LargestRate> {
    let [only] = alike.best().try_into().ok()?;
    alike.parts.first()?.gain()?;
    load::largest_rate(reader, reader.cell(only)?)
}

/// `143/s [139, 147] in this session, one-by-two 118/s [115, 121]`
fn rates(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<String> {
    let chosen = largest(reader, alike)?;
    let (than, _) = alike.parts.first()?.gain()?;
    let names = alike.rankings.first()?;
    let rival = names.cells.iter().find(|cell| names.name(cell.id) == than);
    let rival = rival.and_then(|cell| load::largest_rate(reader, cell));
    let rival = rival.map_or_else(String::new, |it| format!(", {than} {}{}", it.rate, it.ends));
    Some(format!("{}{} {}{rival}", chosen.rate, chosen.ends, chosen.condition))
}

/// `1.21x [1.17, 1.25] of one-by-two, and higher than worse`
fn gain(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<String> {
    largest(reader, alike)?;
    let (than, gain) = alike.parts.first()?.gain()?;
    let more = alike.more(reader).map_or_else(String::new, |more| format!(", {more}"));
    Some(format!("{gain} of {than}{more}"))
}

/// `1.11x [1.09, 1.12] at batch 1, 2.13x [2.11, 2.15] at batch 32`: of what is chosen, where each ranking has one baseline.
fn speed(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<String> {
    let has_one_baseline =
        |names: &NamedRanking<'_>| names.cells.iter().filter(|cell| reader.results.is_baseline(cell)).count() == 1;
    if alike.end != End::Decided || !alike.rankings.iter().all(has_one_baseline) {
        return None;
    }
    let several = alike.rankings.len() > 1;
    let each = alike.rankings.iter().zip(&alike.subjects).flat_map(|(names, subject)| {
        let at = if several && !subject.is_empty() { format!(" at {}", input_name(subject)) } else { String::new() };
        let best = &names.ranking.best;
        let name = |id: CellId| if best.len() > 1 { format!("{} ", names.name(id)) } else { String::new() };
        let ratio = move |id: &CellId| {
            let row = reader.cell(*id).and_then(|cell| reader.against(cell)).filter(|row| row.is_judged())?;
            let text = format::judged_ratio(row.ratio, row.interval(), row.margin);
            Some(format!("{}{text}{at}", name(*id)))
        };
        best.iter().filter_map(ratio).collect::<Vec<_>>()
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// `Conv -9.0 ms, MatMul -0.9 ms; QuantizeLinear +0.8 ms`: of the only cell that is chosen; elsewhere they may be others.
fn operators(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> Option<String> {
    let [only] = alike.against_baselines(reader).try_into().ok().filter(|_| alike.end == End::Decided)?;
    explained::operators(reader, only.0.id, only.1.id)
}

/// `47 MiB, the same as fp32`, `94 KiB, fp32 285 KiB; this decides`: of what is chosen and of its baseline. That they are the
/// same is what verdicts say of every input.
fn amount(reader: &Reader<'_>, alike: &AlikeRankings<'_>, metric: MetricReference) -> Option<String> {
    if alike.end != End::Decided {
        return None;
    }
    let pairs: Vec<(&Cell, &Cell)> = alike.against_baselines(reader);
    let shown = |value: f64| match metric.metric.name == MODEL_SIZE.name {
        true => format::bytes(value as u64),
        false => format::measured(metric.unit(), value, None),
    };
    let values = |cells: &mut dyn Iterator<Item = &Cell>| -> Option<String> {
        let all: Vec<f64> = cells.filter_map(|cell| Some(cell.estimate_of(metric)?.value)).collect();
        let least = all.iter().copied().reduce(f64::min)?;
        let most = all.iter().copied().reduce(f64::max)?;
        let (from, to) = (shown(least), shown(most));
        Some(if from == to { from } else { format!("{from} to {to}") })
    };
    let chosen = values(&mut pairs.iter().map(|(cell, _)| *cell))?;
    let baseline = values(&mut pairs.iter().map(|(_, baseline)| *baseline));
    let name = reader.results.rules.baseline.clone().unwrap_or_default();
    let verdict =
        |cell: &Cell| reader.results.compared_by(metric).find(|row| row.cell == cell.id).map(|row| row.verdict);
    let are_same = pairs.iter().all(|(cell, _)| verdict(cell).is_some_and(Verdict::is_equivalent));
    let decides = if alike.is_tied_by(metric) { "; this decides" } else { "" };
    Some(match baseline {
        Some(_) if are_same => claimed(format!("{chosen}, the same as {name}")),
        Some(baseline) if pairs.iter().any(|(cell, baseline)| cell.id != baseline.id) => {
            format!("{chosen}, {name} {baseline}{decides}")
        }
        _ => chosen,
    })
}

/// Whether to believe it, in a few words, and why.
fn trusted(reader: &Reader<'_>, trust: &Trust, notices: &Notices) -> (String, String) {
    let results = reader.results;
    let latency: Vec<&Comparison> = results.unasked().collect();
    let decided = latency.iter().filter(|row| row.is_decided()).count();
    let lead = match trust.state {
        _ if results.measured.quick => "A first impression",
        Some(ControlOutcome::Passed) if decided > 0 && notices.condition.is_some() => {
            "The verdicts hold under background load"
        }
        Some(ControlOutcome::Passed) if decided > 0 => "The verdicts hold",
        Some(ControlOutcome::Passed) => "The measurement was checked",
        Some(ControlOutcome::Failed) => "Nothing is claimed",
        Some(ControlOutcome::Biased) => "With caution",
        Some(ControlOutcome::Undecided | ControlOutcome::TooFewBlocks) => "Not confirmed",
        None => "Not checked",
    };
    let counted = (!latency.is_empty()).then(|| {
        format!(
            "{decided} of {} {} decided",
            count(latency.len() as u64, "comparison"),
            if decided == 1 || latency.len() == 1 { "is" } else { "are" }
        )
    });
    // A control is of one cell, and says nothing of another one.
    let control = trust.state.map(|state| match (state, results.controls.as_slice()) {
        (ControlOutcome::Passed, [only]) => format!("{} against itself is equivalent", reader.short_path(only.cell)),
        (ControlOutcome::Passed, several) => {
            format!("All {} are equivalent", count(several.len() as u64, "A/A comparison"))
        }
        _ => capitalized(&trust.control),
    });
    let control = match (control, latency.is_empty()) {
        (None, false) => Some("No variant was measured against itself".to_owned()),
        (Some(_), true) if trust.state == Some(ControlOutcome::Passed) => None,
        (known, _) => known,
    };
    let floor = results.detectable_effect.here.map(|here| match here > 1.0 {
        true => "even differences of 100 % may be missed".to_owned(),
        false => format!("differences below {} may be missed", noise_floor(here)),
    });
    let first: Vec<String> = control.into_iter().chain(counted).collect();
    let second: Vec<String> = notices.cause.clone().into_iter().chain(floor).collect();
    let sentence = |parts: Vec<String>, by: &str| (!parts.is_empty()).then(|| format!("{}.", parts.join(by)));
    let sentences: Vec<String> =
        [sentence(first, ", "), sentence(second, "; ").map(|text| capitalized(&text))].into_iter().flatten().collect();
    (claimed(lead), claimed(sentences.join(" ")))
}

/// `AMD EPYC, 2 cores, Linux 6.18`, `ONNX Runtime 1.31.1, cpu, 1 thread`, `not measured: 12 of 24 cells, ..`, `commit ..`.
fn made(reader: &Reader<'_>, notices: &Notices) -> Vec<String> {
    let results = reader.results;
    let skipped = results.cells.iter().filter(|cell| !cell.is_run()).count();
    let not_measured = (skipped > 0).then(|| {
        let reasons = distinct(results.cells.iter().filter_map(|cell| Some(cell.skipped.as_ref()?.reason.clone())));
        let why = match reasons.as_slice() {
            [only] => format!(", {only}"),
            _ => String::new(),
        };
        format!("not measured: {skipped} of {}{why}", count(results.cells.len() as u64, "cell"))
    });
    let failed = notices.failures.len();
    let failed = (failed > 0)
        .then(|| format!("failed: {}", list(&notices.failures.iter().map(|it| it.cells.clone()).collect::<Vec<_>>())));
    let parts = [
        Some(facts::machine(results)).filter(|text| !text.is_empty()),
        Some(facts::with(reader)),
        not_measured,
        failed,
        Some(facts::origin_of(results)),
    ];
    parts.into_iter().flatten().collect()
}
