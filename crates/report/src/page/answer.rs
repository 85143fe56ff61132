//! The answer: what is best among cells that could stand in for each other, what decided, what it costs, and what was left
//! out. A difference is claimed only where a verdict claims it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::load::keeps;
use super::ranking::{MOST_NAMED, NamedRanking, left_out};
use super::said::{self, Part};
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Table, bounds, explained, outputs};
use crate::cause;
use crate::format::{self, percent};
use crate::mark::claimed;
use base::metric::{Direction, LARGEST_RATE, MetricReference, PEAK_RSS, Unit};
use base::wording::{capitalized, count, distinct, list};
use experiment::Axis;
use judge::results::{Cell, Choice, Claim, Kind, Ranking, Standing, Topic, Unfit, background_load};
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
    fn with_sentence(mut self) -> Self {
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
            "Nothing is claimed: the two sides of the A/A comparison of {} differed by {}, beyond the margin, so other differences may have the same cause. Check for background load and the warnings, and measure again.",
            reader.path(failed.cell),
            percent(failed.difference)
        );
        return Answer { note: Some(note), ..Answer::default() };
    }
    let found = alike(reader);
    let is_one = found.len() == 1;
    // What holds for every part of the answer is a notice.
    let is_everywhere =
        !is_one && cause::condition(reader.results).is_some() && found.iter().all(AlikeRankings::has_load);
    let row = |alike: AlikeRankings<'_>| alike.row(reader, choice, is_one, !is_everywhere).with_sentence();
    Answer::of(found.into_iter().map(row).collect(), &superlative(reader, choice))
}

/// The rankings of the question, those together that end alike; none where nothing may be claimed.
pub(super) fn alike<'a>(reader: &'a Reader<'a>) -> Vec<AlikeRankings<'a>> {
    let mut found: Vec<AlikeRankings<'_>> = Vec::new();
    let Some(choice) = reader.results.choice.as_ref().filter(|choice| choice.failed_control.is_none()) else {
        return found;
    };
    for (number, ranking) in choice.rankings.iter().enumerate() {
        let next = AlikeRankings::of(reader, choice, ranking, Topic::Answer(number));
        match found.iter_mut().find_map(|known| Some((known.joined(&next)?, known))) {
            Some((parts, known)) => known.join(next, parts),
            None => found.push(next),
        }
    }
    found
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

/// How a ranking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// One cell is best, or the rest are equivalent to it.
    Decided,
    /// Several are not told apart.
    Open,
    /// None can be chosen.
    None,
}

fn end(reader: &Reader<'_>, ranking: &Ranking, topic: Topic) -> End {
    let is_open = |claim: &Claim| claim.cells == ranking.best && matches!(claim.kind, Kind::NotToldApart { .. });
    match ranking.best.len() {
        0 => End::None,
        1 if is_alone(reader, ranking) => End::Open,
        1 => End::Decided,
        _ if reader.results.claims_on(topic).any(is_open) => End::Open,
        _ => End::Decided,
    }
}

/// Whether the only cell that was judged is named, while other cells may be better.
fn is_alone(reader: &Reader<'_>, ranking: &Ranking) -> bool {
    let is_judged = |standing| !matches!(standing, Standing::Unfit { .. } | Standing::OutOfBounds { .. });
    let judged = ranking.candidates.iter().filter(|candidate| is_judged(candidate.standing)).count();
    judged == 1 && NamedRanking { ranking, cells: Vec::new(), reader }.has_unjudged()
}

impl<'a> Reader<'a> {
    /// The ids of what the answer names.
    pub(crate) fn best(&self) -> HashSet<CellId> {
        let rankings = self.results.choice.iter().flat_map(|choice| choice.rankings.iter().enumerate());
        // Where the cells are not told apart, nothing is marked.
        let is_named = |number: usize, ranking: &Ranking| end(self, ranking, Topic::Answer(number)) == End::Decided;
        let named = rankings.filter(|(number, ranking)| is_named(*number, ranking));
        named.flat_map(|(_, ranking)| ranking.best.iter().copied()).collect()
    }
}

/// Rankings that end alike, for the same reason.
pub(super) struct AlikeRankings<'a> {
    /// `resnet50`
    pub(super) model: String,
    /// `b1`, `b16`
    pub(super) subjects: Vec<String>,
    pub(super) end: End,
    pub(super) choice: String,
    pub(super) left_out: String,
    /// What is claimed.
    pub(super) parts: Vec<Part>,
    pub(super) rankings: Vec<NamedRanking<'a>>,
}

/// `sequence64` of `b16-sequence64`.
fn without_batch(input: &str) -> &str {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let parts = input.strip_prefix('b').and_then(|rest| rest.split_once('-'));
    parts.filter(|(batch, _)| is_number(batch)).map_or(input, |(_, rest)| rest)
}

impl<'a> AlikeRankings<'a> {
    fn of(reader: &'a Reader<'a>, choice: &'a Choice, ranking: &'a Ranking, topic: Topic) -> Self {
        let all: Vec<&Cell> = ranking.candidates.iter().filter_map(|candidate| reader.cell(candidate.cell)).collect();
        let cells: Vec<&Cell> = all.iter().copied().filter(|cell| cell.is_run()).collect();
        let names = NamedRanking { ranking, cells, reader };
        // Of inputs that differ in their batch, the rest is shared.
        let name = |cell: &'a Cell, axis: Axis| match &cell.names[axis] {
            name if axis.has_dimensions() && all.windows(2).any(|pair| pair[0].batch != pair[1].batch) => {
                without_batch(name)
            }
            name => name.as_str(),
        };
        let shared = |axis: Axis| {
            let first = name(all.first()?, axis);
            all.iter().all(|cell| name(cell, axis) == first).then(|| first.to_owned())
        };
        let (always, sometimes): (Vec<Axis>, Vec<Axis>) = Axis::ALL.into_iter().partition(|axis| axis.is_always_told());
        let several = sometimes.into_iter().filter(|axis| reader.has_several(*axis));
        AlikeRankings {
            model: always.into_iter().filter_map(shared).collect::<Vec<_>>().join(", "),
            subjects: vec![several.filter_map(shared).collect::<Vec<_>>().join(", ")],
            end: end(reader, ranking, topic),
            choice: chosen(choice, &names, end(reader, ranking, topic)),
            left_out: left_out(choice, &names),
            parts: said::parts(choice, &names, topic),
            rankings: vec![names],
        }
    }

    /// What both claim, if that is the same of the same names.
    fn joined(&self, other: &AlikeRankings<'_>) -> Option<Vec<Part>> {
        let is_alike = (&self.model, self.end, &self.choice, &self.left_out, self.parts.len())
            == (&other.model, other.end, &other.choice, &other.left_out, other.parts.len());
        let parts = || self.parts.iter().zip(&other.parts).map(|(part, other_part)| part.joined(other_part)).collect();
        is_alike.then(parts).flatten()
    }

    fn join(&mut self, other: AlikeRankings<'a>, parts: Vec<Part>) {
        self.subjects.extend(other.subjects);
        self.rankings.extend(other.rankings);
        self.parts = parts;
    }

    /// `digits-cnn`, `digits-cnn, b1`; empty where there is one answer for the only model.
    pub(super) fn subject(&self, reader: &Reader<'_>, is_one: bool) -> String {
        let subjects: Vec<&str> =
            self.subjects.iter().map(String::as_str).filter(|subject| !subject.is_empty()).collect();
        let names_subjects = !is_one && !subjects.is_empty();
        let has_several = Axis::ALL.into_iter().any(|axis| axis.is_always_told() && reader.has_several(axis));
        let parts = [has_several.then(|| self.model.clone()), names_subjects.then(|| factored(&subjects))]
            .into_iter()
            .flatten();
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Why nothing can be chosen.
    pub(super) fn why_none(&self) -> String {
        self.rankings.first().map(|names| nothing(names.ranking).1).unwrap_or_default()
    }

    /// The ids of what is chosen.
    pub(super) fn best(&self) -> Vec<CellId> {
        self.rankings.iter().flat_map(|names| names.ranking.best.iter().copied()).collect()
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        self.rankings.iter().flat_map(|names| names.cells.iter().copied())
    }

    /// Each cell that is chosen, with its baseline.
    pub(super) fn against_baselines<'r>(&self, reader: &'r Reader<'_>) -> Vec<(&'r Cell, &'r Cell)> {
        let pair = |id: CellId| {
            let cell = reader.cell(id)?;
            Some((cell, reader.against(cell).and_then(|row| reader.cell(row.baseline)).unwrap_or(cell)))
        };
        self.best().into_iter().filter_map(pair).collect()
    }

    /// Whether a further metric breaks the tie.
    pub(super) fn is_tied_by(&self, metric: MetricReference) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Tied { by, .. } if *by == metric))
    }

    /// All parts of the claim but the first, in words.
    pub(super) fn more(&self, reader: &Reader<'_>) -> Option<String> {
        let parts: Vec<String> = self.parts.iter().skip(1).map(|part| part.words(reader)).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    pub(super) fn load(&self) -> Option<f64> {
        background_load(self.rankings.iter().flat_map(|names| names.cells.iter().copied()))
    }

    fn has_load(&self) -> bool {
        self.load().is_some()
    }

    fn row(self, reader: &Reader<'_>, choice: &Choice, is_one: bool, names_load: bool) -> AnswerRow {
        let subject = self.subject(reader, is_one);
        let load = self.load().filter(|_| names_load).map(cause::under_background_load);
        let parts: Vec<String> = self.parts.iter().map(|part| part.words(reader)).collect();
        let decided = match (self.end, self.rankings.first()) {
            (End::None, Some(_)) => self.why_none(),
            _ => parts.join(", "),
        };
        // Where background load is why nothing is decided, once is enough.
        let load = load.filter(|_| !decided.contains("background load"));
        // Of one set of cells: elsewhere the reason may be another.
        let reason = match self.rankings.as_slice() {
            [names] => {
                let deciding_row = names.deciding().filter(|row| row.verdict.is_improvement());
                deciding_row.and_then(|row| explained::reason(reader, row.cell, row.baseline))
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
    let candidates = choice.rankings.iter().flat_map(|ranking| &ranking.candidates);
    let mut cells = candidates.filter_map(|candidate| reader.cell(candidate.cell)).peekable();
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
fn chosen(choice: &Choice, names: &NamedRanking<'_>, end: End) -> String {
    let ranking = names.ranking;
    let in_doubt = |id: CellId| match names.standing(id)?.standing {
        Standing::InDoubt { metric } => Some(metric),
        _ => None,
    };
    let (doubtful, kept): (Vec<CellId>, Vec<CellId>) =
        ranking.best.iter().copied().partition(|id| in_doubt(*id).is_some());
    let bound = doubtful.first().and_then(|id| Some((*id, in_doubt(*id)?)));
    let bound = bound.and_then(|(id, metric)| {
        choice.bounds.iter().find(|bound| bound.metric == metric && bound.of(id).is_some()).map(bounds::words_of)
    });
    let is_better = |cell: CellId, baseline: CellId| {
        let mut rows = ranking.evidence.iter().filter(|row| row.cell == cell && row.baseline == baseline);
        rows.any(|row| row.verdict.is_improvement())
    };
    let if_kept = |doubtful: &[CellId], bound: String| {
        let keeps = if doubtful.len() == 1 { "it keeps" } else { "they keep" };
        format!("{} if {keeps} {bound}", names.named(doubtful))
    };
    let named = match (kept.as_slice(), doubtful.as_slice(), bound) {
        ([], [], _) => return nothing(ranking).0.to_owned(),
        (kept, [], _) | (kept, _, None) => names.named(kept),
        ([], doubtful, Some(bound)) => if_kept(doubtful, bound),
        (kept, doubtful, Some(bound)) if is_better(doubtful[0], kept[0]) => {
            format!("{}, else {}", if_kept(doubtful, bound), names.named(kept))
        }
        (kept, doubtful, Some(bound)) => format!("{}, or {}", names.named(kept), if_kept(doubtful, bound)),
    };
    let is_less_accurate =
        |id: CellId| outputs::accuracy_of(names.reader, id).is_some_and(|claim| claim.kind == Kind::LessAccurate);
    let named = match ranking.best.as_slice() {
        [only] if is_less_accurate(*only) => format!("{named} (less accurate)"),
        _ => named,
    };
    claimed(match (end, ranking.best.len()) {
        (End::Open, 1) => format!("undecided, {named}"),
        (End::Open, _) => format!("not told apart: {named}"),
        _ => named,
    })
}

/// What is printed instead of a choice, and why there is none.
fn nothing(ranking: &Ranking) -> (&'static str, String) {
    let mut standings = ranking.candidates.iter().map(|candidate| candidate.standing);
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
fn costs(reader: &Reader<'_>, alike: &AlikeRankings<'_>) -> String {
    if alike.end == End::None {
        return String::new();
    }
    let is_open = alike.end == End::Open;
    let mut all = alike.rankings.iter().map(|names| costs_of(reader, names, &alike.parts, is_open));
    let first = all.next().unwrap_or_default();
    // What differs from set to set is in the table of results.
    let rest: Vec<Vec<String>> = all.collect();
    let shared = first.into_iter().filter(|part| rest.iter().all(|parts| parts.contains(part)));
    shared.collect::<Vec<_>>().join(", ")
}

fn costs_of(reader: &Reader<'_>, names: &NamedRanking<'_>, parts: &[Part], is_open: bool) -> Vec<String> {
    let results = reader.results;
    let is_one = names.ranking.best.len() == 1;
    let costs_of_cell = |id: &CellId| {
        let cell = reader.cell(*id).filter(|cell| !results.is_baseline(cell))?;
        let is_less_accurate = outputs::accuracy_of(reader, *id).is_none_or(|claim| claim.kind == Kind::LessAccurate);
        let outputs = outputs::against_reference(reader, cell).filter(|_| !is_open || is_less_accurate);
        let memory = results.compared_by(MetricReference::of(&PEAK_RSS)).find(|row| row.cell == *id);
        let memory = memory.filter(|row| !is_open && row.verdict.is_difference()).and_then(|row| {
            let peak = |id: CellId| Some(reader.cell(id)?.estimate(&PEAK_RSS)?.value);
            let saved = peak(row.baseline)? - peak(row.cell)?;
            let word = if saved > 0.0 { "less" } else { "more" };
            let baseline = names.name(row.baseline);
            let is_said = parts.iter().any(|part| part.compares(row.metric, &baseline));
            (!is_said).then_some(())?;
            Some(claimed(format!("{} {word} memory than {baseline}", format::rounded_bytes(saved.abs()))))
        });
        let name = if is_one { String::new() } else { format!("{}: ", names.name(*id)) };
        Some([outputs, memory].into_iter().flatten().map(move |cost| format!("{name}{cost}")))
    };
    names.ranking.best.iter().take(MOST_NAMED).filter_map(costs_of_cell).flatten().collect()
}

/// `b1 and b8, cpu@epyc and cpu@xeon` of all four of them; else each by itself.
fn factored(subjects: &[&str]) -> String {
    let parts: Vec<Vec<&str>> = subjects.iter().map(|subject| subject.split(", ").collect()).collect();
    let width = parts.first().map_or(0, Vec::len);
    let columns: Vec<Vec<&str>> =
        (0..width).map(|at| distinct(parts.iter().filter_map(|row| row.get(at).copied()))).collect();
    let is_product = width > 1
        && parts.iter().all(|row| row.len() == width)
        && columns.iter().map(Vec::len).product::<usize>() == subjects.len();
    if !is_product {
        return list(subjects);
    }
    columns.iter().map(|column| list(column)).collect::<Vec<_>>().join(", ")
}
