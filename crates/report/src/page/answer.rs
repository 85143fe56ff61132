//! The answer: what is best among cells that could stand in for each other, what decided, what it costs, and what was left
//! out. A difference is claimed only where a verdict claims it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::contest::{MOST_NAMED, Names, left_out};
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Table, bounds, outputs, profile};
use crate::cause;
use crate::format::{self, Column, percent};
use base::code::Code;
use base::metric::{Direction, LARGEST_RATE, MetricReference, PEAK_RSS, Unit};
use base::wording::{capitalized, count, list};
use experiment::Axis;
use judge::results::{Cell, Choice, Comparison, Contest, Reason, Standing, Unfit, beside};
use plan::{CellId, SkipKind};
use statistics::Verdict;
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
    /// What to choose: `int8`, `fp16 or fp32`, `undecided: fp16 or fp32`, `none`.
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
        table.add(TableColumn::text(superlative.to_lowercase()), |row| Some(TableCell::text(&row.choice)));
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
    for contest in &choice.contests {
        let found = Held::of(reader, choice, contest);
        match held.iter_mut().find(|known| known.answers_like(&found)) {
            Some(known) => known.join(found),
            None => held.push(found),
        }
    }
    let is_one = held.len() == 1;
    Answer::of(held.into_iter().map(|held| held.row(reader, choice, is_one).told()).collect(), superlative(choice))
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

fn end(contest: &Contest) -> End {
    let among_best = contest.evidence.iter().filter(|row| contest.best.contains(&row.baseline));
    match contest.best.len() {
        0 => End::None,
        1 => End::Decided,
        _ if among_best.clone().count() > 0 && among_best.clone().all(|row| !row.verdict.is_open()) => End::Decided,
        _ => End::Open,
    }
}

impl<'a> Reader<'a> {
    /// The ids of what the answer names.
    pub(super) fn best(&self) -> HashSet<CellId> {
        let contests = self.results.choice.iter().flat_map(|choice| &choice.contests);
        // Where nothing is told apart, nothing is marked.
        let named = contests.filter(|contest| is_named(contest));
        named.flat_map(|contest| contest.best.iter().copied()).collect()
    }
}

/// Whether the answer names what is best.
pub(super) fn is_named(contest: &Contest) -> bool {
    end(contest) == End::Decided
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
    /// What decided: the metric of a broken tie, else the verdict against whom, and why none is given.
    ground: (Option<MetricReference>, Option<Verdict>, String),
    contests: Vec<Names<'a>>,
}

impl<'a> Held<'a> {
    fn of(reader: &'a Reader<'a>, choice: &Choice, contest: &'a Contest) -> Self {
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
            end: end(contest),
            choice: chosen(choice, &names),
            left_out: left_out(choice, &names),
            ground: names.ground(),
            contests: vec![names],
        }
    }

    fn answers_like(&self, other: &Held<'_>) -> bool {
        (&self.model, self.end, &self.choice, &self.left_out, &self.ground)
            == (&other.model, other.end, &other.choice, &other.left_out, &other.ground)
    }

    fn join(&mut self, other: Held<'a>) {
        self.places.extend(other.places);
        self.contests.extend(other.contests);
    }

    fn row(self, reader: &Reader<'_>, choice: &Choice, is_one: bool) -> AnswerRow {
        let places: Vec<&str> = self.places.iter().map(String::as_str).filter(|place| !place.is_empty()).collect();
        let is_told = !is_one && !places.is_empty();
        let has_several = Axis::ALL.into_iter().any(|axis| axis.is_always_told() && reader.has_several(axis));
        let parts = [has_several.then(|| self.model.clone()), is_told.then(|| list(&places))].into_iter().flatten();
        let subject = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let cells = self.contests.iter().flat_map(|names| names.cells.iter().copied());
        let load = beside(cells).map(cause::beside);
        let decided = decided(choice, &self);
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
            subject: if subject.is_empty() { superlative(choice).to_owned() } else { subject },
            choice: self.choice.clone(),
            decided: decided.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            costs: costs(reader, &self),
            left_out: self.left_out,
            because: String::new(),
        }
    }
}

/// `143/s [139, 147] with p99 <= 20ms`: the largest rate of a cell.
fn keeps(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.completed > 0)?;
    let bound = load.queries.bound()?;
    let reference = MetricReference::of(&LARGEST_RATE);
    if cell.codes.contains_key(Code::ShortLoad.name()) {
        return Some(format!("an unknown rate with {bound}, since its runs are too short (`measure.stop`)"));
    }
    let Some(estimate) = cell.estimate_of(reference) else {
        let rate = |factor: f64| Some(format::amount(reference.unit(), factor * load.per_s?));
        return Some(format!("less than {} or more than {} with {bound}", rate(0.5)?, rate(2.0)?));
    };
    let column = Column::fit(reference.unit(), [&estimate]);
    let (value, ends) = column.with_ends(&estimate);
    let ends = ends.map_or(String::new(), |ends| format!(" {ends}"));
    // From service times alone.
    let predicted = if reader.results.measured.quick { " (predicted)" } else { "" };
    Some(format!("{}{ends} with {bound}{predicted}", column.scale.joined(&value)))
}

fn superlative(choice: &Choice) -> &'static str {
    let mut evidence = choice.contests.iter().flat_map(|contest| &contest.evidence).peekable();
    if choice.unasked
        && evidence.peek().is_some()
        && evidence.all(|row| row.metric == MetricReference::of(&LARGEST_RATE))
    {
        return "Largest rate";
    }
    let best = choice.best;
    match (best.unit(), best.metric.direction) {
        _ if best.statistic.is_scatter() => "Best",
        (Unit::Nanoseconds, Direction::LowerIsBetter) | (Unit::PerSecond, Direction::HigherIsBetter) => "Fastest",
        (Unit::Bytes, Direction::LowerIsBetter) => "Smallest",
        _ => "Best",
    }
}

/// `int8`, `int8 or fp32`, `undecided: fp16 or fp32`, `int8 if it keeps p95 <= 20 ms, else fp32`.
fn chosen(choice: &Choice, names: &Names<'_>) -> String {
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
    let named = match (kept.as_slice(), doubtful.as_slice(), bound) {
        ([], [], _) => return nothing(contest).0.to_owned(),
        (kept, [], _) | (kept, _, None) => names.named(kept),
        ([], doubtful, Some(bound)) => format!("{} if it keeps {bound}", names.named(doubtful)),
        (kept, doubtful, Some(bound)) if contest.best.first() == doubtful.first() => {
            format!("{} if it keeps {bound}, else {}", names.named(doubtful), names.named(kept))
        }
        (kept, doubtful, Some(bound)) => {
            format!("{}, or {} if it keeps {bound}", names.named(kept), names.named(doubtful))
        }
    };
    let is_worse = |id: CellId| {
        let score = names.reader.cell(id).and_then(|cell| cell.scores().into_iter().next());
        score.is_some_and(|score| score.is_worse())
    };
    let named = match contest.best.as_slice() {
        [one] if is_worse(*one) => format!("{named} (less accurate)"),
        _ => named,
    };
    if end(contest) == End::Open { format!("undecided: {named}") } else { named }
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

/// What decided: the leader against the baseline, or against what comes closest; a range over places.
fn decided(choice: &Choice, held: &Held<'_>) -> String {
    let Some(first) = held.contests.first() else { return String::new() };
    match held.end {
        End::None => return nothing(first.contest).1,
        End::Open => return undecided(first),
        End::Decided => {}
    }
    if let Some(tie) = tie(first) {
        return tie;
    }
    let told: Vec<&Comparison> = held.contests.iter().filter_map(Names::told).collect();
    let Some(row) = told.first().copied() else {
        let is_out = |standing| matches!(standing, Standing::Unfit { .. } | Standing::OutOfBounds { .. });
        let entered = first.contest.entrants.iter().filter(|entrant| !is_out(entrant.standing));
        return if entered.count() == 1 { "the only one that can be chosen".to_owned() } else { String::new() };
    };
    let rival = first.name(row.baseline);
    let beaten = |row: &&Comparison| row.verdict.is_improvement() && row.baseline != told[0].baseline;
    let more = first.contest.evidence.iter().filter(beaten).count();
    let more = if more > 0 && first.contest.best.len() == 1 {
        format!(", ahead of {}", count(more as u64, "other"))
    } else {
        String::new()
    };
    match (row.verdict, first.contest.best.len()) {
        (verdict, 1) if verdict.is_improvement() => format!("{} {rival}{more}", better(choice, first, &told)),
        (verdict, 2..) if verdict.is_equivalent() => format!("equivalent to each other{more}"),
        (verdict, _) if verdict.is_improvement() => {
            format!("equivalent to each other; {} is {} {rival}", first.name(row.cell), better(choice, first, &told))
        }
        (other, _) => format!("{} {} {rival}{more}", other.name(), other.preposition()),
    }
}

/// `2.3x faster than`, `1.2x to 2.5x faster than`, `98.1 % against 97.0 % of`.
fn better(choice: &Choice, names: &Names<'_>, rows: &[&Comparison]) -> String {
    let row = rows[0];
    let metric = row.metric;
    if !matches!(metric.unit(), Unit::Nanoseconds | Unit::PerSecond) && choice.best == metric {
        let value = |id: CellId| {
            let estimate = names.reader.cell(id)?.estimate_of(metric)?;
            Some(match metric.unit() {
                Unit::Share => format::score(metric.metric, estimate.value, estimate.n),
                unit => format::measured(unit, estimate.value, None),
            })
        };
        if let (Some(own), Some(other)) = (value(row.cell), value(row.baseline)) {
            return format!("{} {own} against {other} of", metric.title());
        }
    }
    if metric.metric.name == LARGEST_RATE.name
        && let Some(keeps) = names.reader.cell(row.cell).and_then(|cell| keeps(names.reader, cell))
    {
        return format!("takes {keeps}, {} of", format::ratio(row.ratio, row.interval()));
    }
    let mut ratios: Vec<&&Comparison> = rows.iter().collect();
    ratios.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    let shown = |row: &Comparison| format::rounded_ratio(row.ratio, row.interval());
    let [least, most] = [ratios[0], ratios[ratios.len() - 1]].map(|row| shown(row));
    let range = if least == most { least } else { format!("{least} to {most}") };
    let per_item = if names.reader.is_by_items() { " per item" } else { "" };
    format!("{range} {}{per_item} than", format::verdict_of(row))
}

/// `ahead of fp32 by peak memory (75.5 MiB against 125 MiB)`: what broke a tie that the leader won.
fn tie(names: &Names<'_>) -> Option<String> {
    let (by, rivals) = names.broken_tie()?;
    let contest = names.contest;
    let leader = *contest.best.first()?;
    let value = |id: CellId| Some(format::measured(by.unit(), names.reader.cell(id)?.estimate_of(by)?.value, None));
    let values = value(leader).zip(value(*rivals.first()?)).map(|(own, other)| format!(" ({own} against {other})"));
    let beaten =
        contest.entrants.iter().filter(|entrant| matches!(entrant.standing, Standing::Beaten { .. })).count() as u64;
    let beaten = if beaten > 0 { format!(", faster than {}", count(beaten, "other")) } else { String::new() };
    Some(format!("as fast as {}, ahead by {}{}{beaten}", names.named(&rivals), by.title(), values.unwrap_or_default()))
}

/// How large a difference would have to be to be found, or how many runs would do.
fn undecided(names: &Names<'_>) -> String {
    let open: Vec<&Comparison> = names.contest.evidence.iter().filter(|row| row.verdict.is_open()).collect();
    let Some(row) = open.first() else { return String::new() };
    let seen = open.iter().filter_map(|row| row.detectable).max_by(f64::total_cmp);
    match (row.reason, seen) {
        (Reason::SizeNotEstablished, _) => super::judged::why_open(row).unwrap_or_default(),
        (_, Some(effect)) if row.withheld().is_none() => {
            format!("only differences above {} are detectable here", format::noise_floor(effect))
        }
        _ => super::judged::why_open(row).unwrap_or_default(),
    }
}

/// What comes out of what is best, and what memory it takes, against the baseline.
fn costs(reader: &Reader<'_>, held: &Held<'_>) -> String {
    if held.end == End::None {
        return String::new();
    }
    let mut all = held.contests.iter().map(|names| costs_of(reader, names));
    let first = all.next().unwrap_or_default();
    // What differs from place to place stands in the table of results.
    let others: Vec<Vec<String>> = all.collect();
    let shared = first.into_iter().filter(|part| others.iter().all(|parts| parts.contains(part)));
    shared.collect::<Vec<_>>().join(", ")
}

fn costs_of(reader: &Reader<'_>, names: &Names<'_>) -> Vec<String> {
    let results = reader.results;
    let is_one = names.contest.best.len() == 1;
    let of = |id: &CellId| {
        let cell = reader.cell(*id).filter(|cell| !results.is_baseline(cell))?;
        let outputs = outputs::against_reference(cell);
        let memory = results.compared_by(MetricReference::of(&PEAK_RSS)).find(|row| row.cell == *id);
        let memory = memory.filter(|row| row.verdict.is_difference()).and_then(|row| {
            let peak = |id: CellId| Some(reader.cell(id)?.estimate(&PEAK_RSS)?.value);
            let saved = peak(row.baseline)? - peak(row.cell)?;
            let word = if saved > 0.0 { "less" } else { "more" };
            let baseline = names.name(row.baseline);
            Some(format!("{} {word} memory than {baseline}", format::rounded_bytes(saved.abs())))
        });
        let name = if is_one { String::new() } else { format!("{}: ", names.name(*id)) };
        Some([outputs, memory].into_iter().flatten().map(move |told| format!("{name}{told}")))
    };
    names.contest.best.iter().take(MOST_NAMED).filter_map(of).flatten().collect()
}
