//! The answer: what is best among cells that could stand in for each other, what decided, what it costs, and what was left
//! out. A difference is claimed only where a verdict claims it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::contest::{MOST_NAMED, Names, left_out};
use super::load::keeps;
use super::said::{self, Part};
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Table, bounds, outputs, profile};
use crate::cause;
use crate::format::{self, percent};
use crate::mark::claimed;
use base::metric::{Direction, LARGEST_RATE, MetricReference, PEAK_RSS, Unit};
use base::wording::{capitalized, count, list};
use experiment::Axis;
use judge::results::{Cell, Choice, Claim, Contest, Kind, Place, Standing, Unfit, beside};
use plan::{CellId, SkipKind};
use statistics::planning::MINIMUM_RUNS;

/// More rows than these are shown as a table.
const MOST_SENTENCES: usize = 4;

/// What is best.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// Why there is no answer, sentences.
    pub note: Option<String>,
    /// One row for each set of cells with an answer of its own.
    pub rows: Vec<AnswerRow>,
    /// The same as a table, without empty columns.
    pub table: Table,
    /// There are too many rows for a sentence each.
    pub is_long: bool,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerRow {
    /// What it is about: `resnet50, b1`, or `Fastest` where there is one set only.
    pub subject: String,
    /// What to choose: `int8`, `fp16 or fp32`, `not told apart: fp16 or fp32`, `none`.
    pub choice: String,
    /// What decided: `2.3x faster than fp32`; why nothing did.
    pub decided: String,
    /// What it costs against the baseline: accuracy, outputs, memory.
    pub costs: String,
    /// What cannot be chosen, and why.
    pub left_out: String,
    /// All of that as a sentence.
    pub because: String,
}

impl AnswerRow {
    /// With all that is said of the choice as one sentence.
    fn told(mut self) -> Self {
        let left_out = if self.left_out.is_empty() { String::new() } else { format!("left out: {}", self.left_out) };
        let parts = [&self.decided, &self.costs, &left_out].into_iter().filter(|part| !part.is_empty());
        let because = parts.map(String::as_str).collect::<Vec<_>>().join("; ");
        // Costs begin with the name of a variant where there are several.
        let because = if self.decided.is_empty() { because } else { capitalized(&because) };
        self.because = if because.is_empty() { because } else { because + "." };
        self
    }
}

impl Answer {
    fn of(rows: Vec<AnswerRow>, superlative: &str) -> Self {
        let mut table = Columns::of(&rows);
        let text = |text: &String| Some(TableCell::text(text)).filter(|_| !text.is_empty());
        table.add_known(TableColumn::text("for"), |row| text(&row.subject).filter(|_| row.subject != superlative));
        table.add(TableColumn::text(superlative.to_lowercase()), |row| TableCell::text(&row.choice));
        table.add_known(TableColumn::text("decided by"), |row| text(&row.decided));
        table.add_known(TableColumn::text("costs"), |row| text(&row.costs));
        table.add_known(TableColumn::text("left out"), |row| text(&row.left_out));
        let table = table.table(Vec::new());
        Answer { note: None, is_long: rows.len() > MOST_SENTENCES, table, rows }
    }
}

/// The answer of these results.
pub(super) fn answer(reader: &Reader<'_>) -> Answer {
    let Some(choice) = &reader.results.choice else {
        return Answer { note: Some(not_compared(reader)), ..Answer::default() };
    };
    if let Some(failed) = &choice.failed_control {
        let note = format!(
            "Nothing is claimed: two identical arms of {} differed by {}, beyond the margin, so other differences may have the same cause. Check for other load and the warnings, and measure again.",
            reader.path(failed.cell),
            percent(failed.difference)
        );
        return Answer { note: Some(note), ..Answer::default() };
    }
    let mut held: Vec<Held<'_>> = Vec::new();
    for (number, contest) in choice.contests.iter().enumerate() {
        let found = Held::of(reader, choice, contest, Place::Answer(number));
        match held.iter_mut().find_map(|known| Some((known.joined(&found)?, known))) {
            Some((parts, known)) => known.join(found, parts),
            None => held.push(found),
        }
    }
    let is_one = held.len() == 1;
    // What holds for every part of the answer is a notice.
    let is_everywhere = !is_one && cause::condition(reader.results).is_some() && held.iter().all(Held::has_load);
    let row = |held: Held<'_>| held.row(reader, choice, is_one, !is_everywhere).told();
    Answer::of(held.into_iter().map(row).collect(), &superlative(reader, choice))
}

fn not_compared(reader: &Reader<'_>) -> String {
    let results = reader.results;
    let runnable = reader.shown();
    if !results.comparisons.is_empty() {
        // Before format 3 an answer was stored where one was asked for.
        return "These results of an earlier perfrun hold verdicts and no answer: see the table.".to_owned();
    }
    let takes = |cell: &&Cell| Some(format!("{} takes {}", reader.short_path(cell.id), keeps(reader, cell)?));
    let none = results.cells.iter().filter_map(|cell| Some((cell, cell.skipped.as_ref()?)));
    let none = none.filter(|(_, skipped)| skipped.code == SkipKind::Rate);
    let none = none.map(|(cell, skipped)| format!("{}: {}", reader.short_path(cell.id), skipped.reason));
    let rates: Vec<String> = runnable.iter().filter_map(takes).chain(none).collect();
    if !rates.is_empty() {
        return format!("{}.", rates.join("; "));
    }
    if results.cells.iter().all(|cell| cell.completed == 0) {
        return "Nothing was measured.".to_owned();
    }
    match &results.rules.baseline {
        None if results.method.runs_commands() => "Measured, not compared: there is one command.".to_owned(),
        None => "Measured, not compared: there is one variant, one model and one device.".to_owned(),
        Some(baseline) if runnable.iter().all(|cell| !results.is_baseline(cell)) => {
            format!("Measured, not compared: the baseline {baseline} is not run.")
        }
        Some(baseline) => format!("Measured, not compared: nothing but {baseline} is run."),
    }
}

/// How a contest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// One cell is best, or the others are equivalent to it.
    Decided,
    /// Several are not told apart.
    Open,
    /// None can be chosen.
    None,
}

fn end(reader: &Reader<'_>, contest: &Contest, place: Place) -> End {
    let is_open = |claim: &Claim| claim.cells == contest.best && matches!(claim.kind, Kind::NotToldApart { .. });
    match contest.best.len() {
        0 => End::None,
        1 if is_alone(reader, contest) => End::Open,
        1 => End::Decided,
        _ if reader.results.claims_in(place).any(is_open) => End::Open,
        _ => End::Decided,
    }
}

/// Whether the only cell that was judged is named, while others may be better.
fn is_alone(reader: &Reader<'_>, contest: &Contest) -> bool {
    let is_judged = |standing| !matches!(standing, Standing::Unfit { .. } | Standing::OutOfBounds { .. });
    let judged = contest.entrants.iter().filter(|entrant| is_judged(entrant.standing)).count();
    judged == 1 && Names { contest, cells: Vec::new(), reader }.has_unjudged()
}

impl<'a> Reader<'a> {
    /// The ids of what the answer names.
    pub(super) fn best(&self) -> HashSet<CellId> {
        let contests = self.results.choice.iter().flat_map(|choice| choice.contests.iter().enumerate());
        // Where nothing is told apart, nothing is marked.
        let is_named = |number: usize, contest: &Contest| end(self, contest, Place::Answer(number)) == End::Decided;
        let named = contests.filter(|(number, contest)| is_named(*number, contest));
        named.flat_map(|(_, contest)| contest.best.iter().copied()).collect()
    }
}

/// Contests that end alike, for the same reason.
struct Held<'a> {
    /// `resnet50`
    model: String,
    /// `b1`, `b16`
    places: Vec<String>,
    end: End,
    choice: String,
    left_out: String,
    /// What is claimed.
    parts: Vec<Part>,
    contests: Vec<Names<'a>>,
}

impl<'a> Held<'a> {
    fn of(reader: &'a Reader<'a>, choice: &'a Choice, contest: &'a Contest, place: Place) -> Self {
        let all: Vec<&Cell> = contest.entrants.iter().filter_map(|entrant| reader.cell(entrant.cell)).collect();
        let cells: Vec<&Cell> = all.iter().copied().filter(|cell| cell.is_run()).collect();
        let names = Names { contest, cells, reader };
        let shared = |axis: Axis| {
            let first = &all.first()?.names[axis];
            all.iter().all(|cell| cell.names[axis] == *first).then(|| first.clone())
        };
        let (always, others): (Vec<Axis>, Vec<Axis>) = Axis::ALL.into_iter().partition(|axis| axis.is_always_told());
        let several = others.into_iter().filter(|axis| reader.has_several(*axis));
        Held {
            model: always.into_iter().filter_map(shared).collect::<Vec<_>>().join(", "),
            places: vec![several.filter_map(shared).collect::<Vec<_>>().join(", ")],
            end: end(reader, contest, place),
            choice: chosen(choice, &names, end(reader, contest, place)),
            left_out: left_out(choice, &names),
            parts: said::parts(choice, &names, place),
            contests: vec![names],
        }
    }

    /// What both claim, if that is the same of the same names.
    fn joined(&self, other: &Held<'_>) -> Option<Vec<Part>> {
        let is_alike = (&self.model, self.end, &self.choice, &self.left_out, self.parts.len())
            == (&other.model, other.end, &other.choice, &other.left_out, other.parts.len());
        let parts = || self.parts.iter().zip(&other.parts).map(|(one, other)| one.joined(other)).collect();
        is_alike.then(parts).flatten()
    }

    fn join(&mut self, other: Held<'a>, parts: Vec<Part>) {
        self.places.extend(other.places);
        self.contests.extend(other.contests);
        self.parts = parts;
    }

    fn load(&self) -> Option<f64> {
        beside(self.contests.iter().flat_map(|names| names.cells.iter().copied()))
    }

    fn has_load(&self) -> bool {
        self.load().is_some()
    }

    fn row(self, reader: &Reader<'_>, choice: &Choice, is_one: bool, tells_load: bool) -> AnswerRow {
        let places: Vec<&str> = self.places.iter().map(String::as_str).filter(|place| !place.is_empty()).collect();
        let is_told = !is_one && !places.is_empty();
        let has_several = Axis::ALL.into_iter().any(|axis| axis.is_always_told() && reader.has_several(axis));
        let parts = [has_several.then(|| self.model.clone()), is_told.then(|| list(&places))].into_iter().flatten();
        let subject = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let load = self.load().filter(|_| tells_load).map(cause::beside);
        let parts: Vec<String> = self.parts.iter().map(|part| part.words(reader)).collect();
        let decided = match (self.end, self.contests.first()) {
            (End::None, Some(names)) => nothing(names.contest).1,
            _ => parts.join(", "),
        };
        // Where other load is why nothing is decided, once is enough.
        let load = load.filter(|_| !decided.contains("other load"));
        // Of one place: elsewhere it may have another.
        let reason = match self.contests.as_slice() {
            [names] => {
                let told = names.told().filter(|row| row.verdict.is_improvement());
                told.and_then(|row| profile::reason(reader, row.cell, row.baseline))
            }
            _ => None,
        };
        let decided = [decided, reason.unwrap_or_default(), load.unwrap_or_default()];
        AnswerRow {
            subject: if subject.is_empty() { superlative(reader, choice) } else { subject },
            choice: self.choice.clone(),
            decided: decided.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            costs: costs(reader, &self),
            left_out: self.left_out,
            because: String::new(),
        }
    }
}

fn superlative(reader: &Reader<'_>, choice: &Choice) -> String {
    claimed(title_of_best(reader, choice))
}

fn title_of_best(reader: &Reader<'_>, choice: &Choice) -> String {
    let entrants = choice.contests.iter().flat_map(|contest| &contest.entrants);
    let mut cells = entrants.filter_map(|entrant| reader.cell(entrant.cell)).peekable();
    let finds_rate = |cell: &Cell| cell.load.as_ref().is_some_and(|load| load.queries.is_largest());
    let is_by_rate = choice.unasked && cells.peek().is_some() && cells.all(finds_rate);
    if is_by_rate || choice.best.metric.name == LARGEST_RATE.name {
        return "Largest rate".to_owned();
    }
    let best = choice.best;
    match (best.unit(), best.metric.direction) {
        _ if format::is_speed(best) => "Fastest".to_owned(),
        (Unit::Bytes, Direction::LowerIsBetter) => "Smallest".to_owned(),
        (Unit::Nanoseconds, Direction::LowerIsBetter) if !best.statistic.is_scatter() => {
            format!("Shortest {}", best.title())
        }
        _ => format!("Best {}", best.title()),
    }
}

/// `int8`, `int8 or fp32`, `not told apart: fp16 or fp32`, `int8 if it keeps p95 <= 20 ms, else fp32`.
fn chosen(choice: &Choice, names: &Names<'_>, end: End) -> String {
    let contest = names.contest;
    let in_doubt = |id: CellId| match names.standing(id)?.standing {
        Standing::InDoubt { metric } => Some(metric),
        _ => None,
    };
    let (doubtful, kept): (Vec<CellId>, Vec<CellId>) =
        contest.best.iter().copied().partition(|id| in_doubt(*id).is_some());
    let bound = doubtful.first().and_then(|id| Some((*id, in_doubt(*id)?)));
    let bound = bound.and_then(|(id, metric)| {
        choice.bounds.iter().find(|bound| bound.metric == metric && bound.of(id).is_some()).map(bounds::words_of)
    });
    let is_better = |one: CellId, other: CellId| {
        let mut rows = contest.evidence.iter().filter(|row| row.cell == one && row.baseline == other);
        rows.any(|row| row.verdict.is_improvement())
    };
    let if_kept = |doubtful: &[CellId], bound: String| {
        let keeps = if doubtful.len() == 1 { "it keeps" } else { "they keep" };
        format!("{} if {keeps} {bound}", names.named(doubtful))
    };
    let named = match (kept.as_slice(), doubtful.as_slice(), bound) {
        ([], [], _) => return nothing(contest).0.to_owned(),
        (kept, [], _) | (kept, _, None) => names.named(kept),
        ([], doubtful, Some(bound)) => if_kept(doubtful, bound),
        (kept, doubtful, Some(bound)) if is_better(doubtful[0], kept[0]) => {
            format!("{}, else {}", if_kept(doubtful, bound), names.named(kept))
        }
        (kept, doubtful, Some(bound)) => format!("{}, or {}", names.named(kept), if_kept(doubtful, bound)),
    };
    let is_less_accurate =
        |id: CellId| outputs::accuracy_of(names.reader, id).is_some_and(|claim| claim.kind == Kind::LessAccurate);
    let named = match contest.best.as_slice() {
        [one] if is_less_accurate(*one) => format!("{named} (less accurate)"),
        _ => named,
    };
    claimed(match (end, contest.best.len()) {
        (End::Open, 1) => format!("undecided, {named}"),
        (End::Open, _) => format!("not told apart: {named}"),
        _ => named,
    })
}

/// What stands in place of a choice, and why there is none.
fn nothing(contest: &Contest) -> (&'static str, String) {
    let mut standings = contest.entrants.iter().map(|entrant| entrant.standing);
    let runs = standings.clone().filter_map(|standing| match standing {
        Standing::Unfit { why: Unfit::TooFewRuns(runs) } => Some(runs),
        Standing::Unfit { why: Unfit::NotRun } => Some(0),
        _ => None,
    });
    if standings.clone().any(|standing| matches!(standing, Standing::Beaten { .. })) {
        ("no answer", "every candidate is beaten by another".to_owned())
    } else if let Some(most) = runs.max() {
        ("no answer yet", format!("{} per cell; a verdict needs {MINIMUM_RUNS}", count(u64::from(most), "run")))
    } else if standings.any(|standing| matches!(standing, Standing::OutOfBounds { .. })) {
        ("none", "no cell that can be judged keeps the bounds".to_owned())
    } else {
        ("no answer", "nothing can be judged".to_owned())
    }
}

/// What comes out of what is best, and what memory it takes, against the baseline; of several that are not told apart, what is
/// known to be less accurate.
fn costs(reader: &Reader<'_>, held: &Held<'_>) -> String {
    if held.end == End::None {
        return String::new();
    }
    let is_open = held.end == End::Open;
    let mut all = held.contests.iter().map(|names| costs_of(reader, names, &held.parts, is_open));
    let first = all.next().unwrap_or_default();
    // What differs from place to place stands in the table of results.
    let others: Vec<Vec<String>> = all.collect();
    let shared = first.into_iter().filter(|part| others.iter().all(|parts| parts.contains(part)));
    shared.collect::<Vec<_>>().join(", ")
}

fn costs_of(reader: &Reader<'_>, names: &Names<'_>, parts: &[Part], is_open: bool) -> Vec<String> {
    let results = reader.results;
    let is_one = names.contest.best.len() == 1;
    let of = |id: &CellId| {
        let cell = reader.cell(*id).filter(|cell| !results.is_baseline(cell))?;
        let is_less_accurate = outputs::accuracy_of(reader, *id).is_none_or(|claim| claim.kind == Kind::LessAccurate);
        let outputs = outputs::against_reference(reader, cell).filter(|_| !is_open || is_less_accurate);
        let memory = results.compared_by(MetricReference::of(&PEAK_RSS)).find(|row| row.cell == *id);
        let memory = memory.filter(|row| !is_open && row.verdict.is_difference()).and_then(|row| {
            let peak = |id: CellId| Some(reader.cell(id)?.estimate(&PEAK_RSS)?.value);
            let saved = peak(row.baseline)? - peak(row.cell)?;
            let word = if saved > 0.0 { "less" } else { "more" };
            let baseline = names.name(row.baseline);
            let is_told = parts.iter().any(|part| part.compares(row.metric, &baseline));
            (!is_told).then_some(())?;
            Some(claimed(format!("{} {word} memory than {baseline}", format::rounded_bytes(saved.abs()))))
        });
        let name = if is_one { String::new() } else { format!("{}: ", names.name(*id)) };
        Some([outputs, memory].into_iter().flatten().map(move |told| format!("{name}{told}")))
    };
    names.contest.best.iter().take(MOST_NAMED).filter_map(of).flatten().collect()
}
