//! The first screen of a diff: what became slower and by how much, what the gate says, and whether to believe it.
//!
//! Input: a diff with the rows that are shown. Output: words and a figure. Deliberately absent: any claim that neither a
//! verdict nor the gate makes.

use serde::Serialize;

use super::figure::{self, FASTER, Figure};
use super::{reason, summary, tables};
use crate::format::{self, better_word, count, difference, list, verdict_word};
use crate::mark::claimed;
use crate::page::Fact;
use base::metric::{MetricReference, Unit};
use base::wording::{capitalized, distinct, grouped, some};
use judge::diff::{Diff, GateOutcome, Gated, Held, Reason, Row, SideSeen};
use judge::results::ControlOutcome;

/// The name of the fact on the gate.
const GATE: &str = "gate";

/// Names in one line; more are counted.
const MOST_NAMED: usize = 3;

/// What a reader sees first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// `2 of 48 cells slower, up to 16 %`
    pub verdict: String,
    /// How it is meant: `slower`, `faster`, or empty.
    pub tone: &'static str,
    /// The first fact is that the gate failed.
    pub has_failed: bool,
    /// Gate, what changed, profile, what became faster, the rest, accuracy.
    pub facts: Vec<Fact>,
    /// The rows on one axis; `None` where none has both a ratio and a verdict.
    pub figure: Option<Figure>,
    /// Whether to believe it, in a few words: `Measured apart`; empty where nothing was compared.
    pub trust: String,
    /// Why.
    pub because: String,
    /// When and where both sides were measured: fragments.
    pub made: Vec<String>,
}

impl Answer {
    /// Of a diff, with all rows that are shown.
    pub(super) fn of(diff: &Diff, shown: &[&Row], changed: &[String], profile: &[String]) -> Self {
        let (verdict, tone) = verdict(diff, shown);
        let (trust, because) = trusted(diff);
        let facts = facts(diff, shown, (&verdict, tone), changed, profile);
        let has_failed = diff.gate.as_ref().is_some_and(|gate| gate.outcome == GateOutcome::Failed);
        Answer {
            has_failed: has_failed && facts.first().is_some_and(|fact| fact.name == GATE),
            verdict: claimed(capitalized(&verdict)),
            tone,
            facts,
            figure: figure::draw(diff, shown),
            trust,
            because,
            made: made(diff),
        }
    }

    /// Every text that may come from elsewhere.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let facts = self.facts.iter_mut().map(|fact| &mut fact.value);
        let figure = self.figure.iter_mut().flat_map(|figure| {
            let rows =
                figure.rows.iter_mut().flat_map(|row| [&mut row.shown.name, &mut row.shown.word, &mut row.values]);
            [&mut figure.title, &mut figure.axis.baseline, &mut figure.not_drawn].into_iter().chain(rows)
        });
        let single = [&mut self.verdict, &mut self.because];
        single.into_iter().chain(facts).chain(figure).chain(&mut self.made)
    }
}

/// The rows that stand for the cells: those of latency, or of what was asked for instead.
fn main_rows(diff: &Diff) -> Vec<&Row> {
    let of = |asked: MetricReference| diff.rows.iter().filter(move |row| row.asked == asked).collect::<Vec<_>>();
    let latency = of(MetricReference::LATENCY);
    match diff.shown.first() {
        Some(first) if latency.is_empty() => of(*first),
        _ => latency,
    }
}

/// What became worse, and how it is meant; without that, what the gate, open rows and the rest come to.
fn verdict(diff: &Diff, shown: &[&Row]) -> (String, &'static str) {
    let main = main_rows(diff);
    let is_regression = |row: &&Row| row.is_regression();
    let worse: Vec<&Row> = main.iter().copied().filter(is_regression).collect();
    if !worse.is_empty() {
        return (changed(&worse, main.len()), "slower");
    }
    if let Some(first) = shown.iter().copied().find(is_regression) {
        let same = |row: &&Row| row.metric == first.metric;
        let all: Vec<&Row> = diff.rows.iter().filter(same).collect();
        let worse: Vec<&Row> = all.iter().copied().filter(is_regression).collect();
        return (format!("{}: {}", capitalized(&first.metric.title()), changed(&worse, all.len())), "slower");
    }
    if let Some(gate) = diff.gate.as_ref().filter(|gate| gate.outcome == GateOutcome::Failed) {
        return (format!("Gate {}", gate_words(diff, gate)), "slower");
    }
    if main.is_empty() {
        let why = if diff.is_same_report { ": same report on both sides" } else { "" };
        return (format!("Nothing to compare{why}"), "");
    }
    unharmed(diff, &main)
}

/// `2 of 48 cells slower, up to 16 %`: rows of one metric that became worse.
fn changed(rows: &[&Row], of: usize) -> String {
    let [first, ..] = rows else { return String::new() };
    let word = verdict_word(&first.metric, first.verdict.unwrap_or_default());
    let size = |row: &&&Row| row.change.map_or(0.0, |change| change.value.abs());
    let most = rows.iter().max_by(|a, b| size(a).total_cmp(&size(b))).and_then(|row| row.change);
    let by = most.map_or(String::new(), |change| {
        let text = tables::change(change);
        let amount = text.split_once(" [").map_or(text.as_str(), |(amount, _)| amount);
        format!(", {} {}", if rows.len() == 1 { "by" } else { "up to" }, amount.trim_start_matches(['-', '+']))
    });
    format!("{} {word}{by}", of_cells(rows.len(), of))
}

/// `2 of 48 cells`; `the cell is`, of a single one.
fn of_cells(some: usize, all: usize) -> String {
    if all == 1 { "the cell is".to_owned() } else { format!("{some} of {all} cells") }
}

/// What there is to say where nothing became worse and no gate failed.
fn unharmed(diff: &Diff, main: &[&Row]) -> (String, &'static str) {
    let rows_of = |wanted: &dyn Fn(&Row) -> bool| main.iter().copied().filter(|row| wanted(row)).collect::<Vec<_>>();
    let better = rows_of(&is_improvement);
    let open = rows_of(&|row| row.verdict.is_some_and(|verdict| verdict.is_open())).len();
    let unchanged = rows_of(&|row| row.reason == Reason::Unchanged).len();
    let same = rows_of(&|row| row.verdict.is_some_and(|verdict| verdict.is_equivalent())).len();
    let is_speed = main.iter().all(|row| better_word(&row.metric) == FASTER);
    let slower = if is_speed { "slower" } else { "worse" };
    let all = main.len();
    let are_all =
        |word: &str| if all == 1 { format!("The cell is {word}") } else { format!("All {all} cells are {word}") };
    let open_words = if all == 1 { "it is undecided".to_owned() } else { format!("{open} of {all} cells undecided") };
    let cells = of_cells(better.len(), all);
    match (faster(&better), open) {
        (Some([word, most]), 0) => (format!("{cells} {word}{most}"), FASTER),
        (Some([word, most]), open) => (format!("{cells} {word}{most}; {open} undecided"), FASTER),
        (None, _) if unchanged == all => (are_all("unchanged"), ""),
        (None, _) if same == all && unchanged == 0 => (are_all("equivalent"), ""),
        (None, 0) if same == 0 => (format!("Nothing could be judged{}", reasons(diff, main)), ""),
        (None, 0) => (format!("No cell is shown to be {slower}"), ""),
        (None, _) => (format!("Nothing is shown to be {slower}: {open_words}"), ""),
    }
}

fn is_improvement(row: &Row) -> bool {
    row.verdict.is_some_and(|verdict| verdict.is_improvement())
}

/// `faster` and `, up to 1.09x`; nothing where none is.
fn faster(rows: &[&Row]) -> Option<[String; 2]> {
    let [first, ..] = rows else { return None };
    let word = verdict_word(&first.metric, first.verdict.unwrap_or_default());
    let most = rows.iter().filter_map(|row| figure::ratio(row)).reduce(f64::max);
    let most = most.filter(|_| better_word(&first.metric) == FASTER).map_or(String::new(), |most| {
        format!(", {}{}", if rows.len() == 1 { "" } else { "up to " }, format::ratio(most, None))
    });
    Some([word, most])
}

/// `: different cpu`: why rows were not judged.
fn reasons(diff: &Diff, rows: &[&Row]) -> String {
    let of_row = |row: &&Row| match &row.reason {
        Reason::OtherFrame { facts } => format!("different {}", list(&reason::plain(facts))),
        reason => reason::words(reason, row).trim_start_matches("not judged: ").to_owned(),
    };
    let found = distinct(rows.iter().map(of_row));
    let claims = if diff.has_incomparable_rows() && !diff.claims.is_empty() { "; speed-ups are below" } else { "" };
    format!(": {}{claims}", list(&some(found.into_iter(), MOST_NAMED)))
}

fn facts(
    diff: &Diff,
    shown: &[&Row],
    (verdict, tone): (&str, &str),
    changed: &[String],
    profile: &[String],
) -> Vec<Fact> {
    let main = main_rows(diff);
    let better: Vec<&Row> = main.iter().copied().filter(|row| is_improvement(row)).collect();
    let is_said = |row: &Row| main.iter().any(|known| std::ptr::eq(*known, row)) && row.is_difference();
    let rest: Vec<&Row> = shown.iter().copied().filter(|row| !is_said(row) && !is_score(row)).collect();
    let fact = |name: &str, value: String| (!value.is_empty()).then(|| Fact { name: name.to_owned(), value });
    let gate = diff.gate.as_ref().map(|gate| gate_words(diff, gate)).filter(|words| !verdict.ends_with(words));
    let [word, most] = faster(&better).filter(|_| tone != FASTER).unwrap_or_default();
    let cells = if word.is_empty() { String::new() } else { count(better.len() as u64, "cell") };
    [
        fact(GATE, claimed(gate.unwrap_or_default())),
        fact("changed", changed.join("; ")),
        fact("profile", claimed(profile.join("; "))),
        fact(&word, claimed(cells + &most)),
        fact("rest", claimed(summary::counted(&rest))),
        fact("accuracy", claimed(scores(diff))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether the row is a score of outputs, such as accuracy.
fn is_score(row: &Row) -> bool {
    row.metric.metric.is_constant() && row.metric.unit() != Unit::Bytes
}

/// `equivalent in 14 cells, lower in 2`, for each score.
fn scores(diff: &Diff) -> String {
    let of_metric = |(title, rows): (String, Vec<&Row>)| {
        let word = |row: &&Row| match (&row.reason, row.verdict) {
            (Reason::Unchanged, _) => "unchanged".to_owned(),
            (_, Some(verdict)) => verdict_word(&row.metric, verdict),
            (_, None) => "not judged".to_owned(),
        };
        let counts = grouped(rows.iter().map(|row| (word(row), ())));
        let counts = counts.into_iter().map(|(word, rows)| format!("{word} in {}", count(rows.len() as u64, "cell")));
        format!("{title} {}", counts.collect::<Vec<_>>().join(", "))
    };
    let rows = diff.rows.iter().filter(|row| is_score(row));
    let metrics = grouped(rows.map(|row| (row.metric.title(), row)));
    some(metrics.into_iter().map(of_metric).collect::<Vec<_>>().into_iter(), MOST_NAMED).join("; ")
}

/// `failed: latency worse by more than 5 % in 2 rows`
fn gate_words(diff: &Diff, gate: &Gated) -> String {
    let of = |outcome: Held| {
        let rows = diff.rows.iter().filter_map(|row| Some((row, row.gate.as_ref()?)));
        rows.filter(move |(_, gate)| gate.outcome == outcome)
    };
    let allowed = |rows: &mut dyn Iterator<Item = (&Row, &judge::diff::GateRow)>| {
        let all = distinct(rows.map(|(row, gate)| difference(gate.worse_by, row.metric)));
        <[String; 1]>::try_from(all).map_or_else(|_| "is allowed".to_owned(), |[only]| only)
    };
    let rows = |number: usize| count(number as u64, "row");
    let is_shown = |verdict: Option<statistics::Verdict>| verdict.is_some_and(|verdict| verdict.is_regression());
    let fell = grouped(of(Held::Falls).filter(|(_, gate)| is_shown(gate.verdict)).map(|(row, gate)| {
        (format!("{} worse by more than {}", row.metric.title(), difference(gate.worse_by, row.metric)), ())
    }));
    let mut parts: Vec<String> =
        fell.into_iter().map(|(what, found)| format!("{what} in {}", rows(found.len()))).collect();
    let open = of(Held::Falls).filter(|(_, gate)| !is_shown(gate.verdict)).count();
    parts.extend((open > 0).then(|| format!("{} undecided, which fails", rows(open))));
    let unjudged = gate.asked - gate.judged;
    parts.extend((unjudged > 0).then(|| format!("{unjudged} of {} not judged", rows(gate.asked))));
    let undecided = allowed(&mut of(Held::Undecided));
    parts.extend(
        (gate.undecided > 0).then(|| format!("{} may be worse by more than {undecided}", rows(gate.undecided))),
    );
    parts.extend((gate.accepted > 0).then(|| format!("{} accepted by a commit", gate.accepted)));
    let holds = of(Held::Holds).count();
    let held = allowed(&mut of(Held::Holds));
    let is_all = holds > 0 && parts.is_empty();
    parts.extend(is_all.then(|| format!("{}, none worse by more than {held}", rows(holds))));
    parts.extend((!gate.without_rows.is_empty()).then(|| format!("no row has {}", list(&gate.without_rows))));
    let outcome = gate.outcome.name();
    if parts.is_empty() { outcome.to_owned() } else { format!("{outcome}: {}", parts.join("; ")) }
}

/// Whether to believe it, in a few words, and why.
fn trusted(diff: &Diff) -> (String, String) {
    if diff.is_same_report || diff.rows.is_empty() {
        return (String::new(), String::new());
    }
    let Some(blocks) = diff.blocks else {
        let sessions = summary::sessions(diff).map_or(String::new(), |words| format!("{}.", capitalized(&words)));
        return ("Measured apart".to_owned(), claimed(sessions));
    };
    let has = |outcome: ControlOutcome| diff.controls.contains(&outcome);
    let is_decided =
        |row: &Row| row.verdict.is_some_and(|verdict| !verdict.is_open()) && row.reason != Reason::Unchanged;
    let has_load = diff.candidate.background_load.is_some();
    let lead = match diff.controls.as_slice() {
        [] => "Not checked",
        _ if has(ControlOutcome::Failed) => "The control failed",
        _ if has(ControlOutcome::Biased) => "With caution",
        all if all.iter().any(|outcome| *outcome != ControlOutcome::Passed) => "Not confirmed",
        _ if !diff.rows.iter().any(is_decided) => "The measurement was checked",
        _ if has_load => "The verdicts hold under background load",
        _ => "The verdicts hold",
    };
    let controls = match distinct(diff.controls.iter().map(|outcome| outcome.name())).as_slice() {
        [] => "without a control".to_owned(),
        [only] if diff.controls.len() == 1 => format!("the control {}", control_words(only)),
        several => format!("controls: {}", several.join(", ")),
    };
    let because =
        format!("Both sides were measured together, in at most {}; {controls}.", count(blocks as u64, "block"));
    (claimed(lead), claimed(because))
}

/// `passed`, `is undecided`
fn control_words(name: &str) -> String {
    if matches!(name, "passed" | "failed") { name.to_owned() } else { format!("is {}", name.replace('_', " ")) }
}

/// When and where: each side, or both where that is the same.
fn made(diff: &Diff) -> Vec<String> {
    let sides = [&diff.baseline, &diff.candidate];
    let [from, to] = sides.map(side);
    match from == to {
        true => vec![format!("{} and {}: {from}", diff.baseline.name, diff.candidate.name)],
        false => sides.map(|seen| format!("{}: {}", seen.name, side(seen))).into(),
    }
}

fn side(side: &SideSeen) -> String {
    let when = side.measured.as_deref().and_then(|time| time.get(..10)).unwrap_or("date unknown");
    let grade = side.grade.map_or("no grade".to_owned(), |grade| format!("grade {}", grade.letter()));
    format!("{when}, {}, {grade}", side.machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::figure::tests::slower_by;
    use judge::diff::Changes;
    use statistics::Verdict;

    fn diff(rows: Vec<Row>) -> Diff {
        let side = |name: &str| SideSeen {
            name: name.to_owned(),
            record: name.to_owned(),
            measured: None,
            machine: "here".to_owned(),
            grade: None,
            is_quick: false,
            background_load: None,
            stale: Vec::new(),
            unmeasured: Vec::new(),
        };
        Diff {
            experiment: "x".to_owned(),
            baseline: side("old"),
            candidate: side("new"),
            changes: Changes::default(),
            session_spread: None,
            from_history: 0,
            blocks: Some(10),
            controls: vec![ControlOutcome::Passed],
            failures: Vec::new(),
            rows,
            claims: Vec::new(),
            gate: None,
            is_same_report: false,
            shown: vec![MetricReference::LATENCY],
        }
    }

    fn answer(rows: Vec<Row>) -> (String, &'static str, String) {
        let diff = diff(rows);
        let shown: Vec<&Row> = diff.rows.iter().collect();
        let answer = Answer::of(&diff, &shown, &[], &[]);
        (answer.verdict, answer.tone, answer.trust)
    }

    #[test]
    fn the_large_line_says_what_became_worse_before_all_else() {
        let worse = || slower_by("a", 0.16, Verdict::Worse);
        let better = || slower_by("b", -0.2, Verdict::Better);
        let open = || slower_by("c", 0.0, Verdict::Undecided);
        let same = || slower_by("d", 0.0, Verdict::Equivalent);
        let unchanged = || Row { reason: Reason::Unchanged, ..same() };
        for (rows, text, tone) in [
            (vec![worse(), better(), open(), worse()], "2 of 4 cells slower, up to 16.0 %", "slower"),
            (vec![worse()], "The cell is slower, by 16.0 %", "slower"),
            (vec![better(), open(), same()], "1 of 3 cells faster, 1.25x; 1 undecided", "faster"),
            (vec![open(), same()], "Nothing is shown to be slower: 1 of 2 cells undecided", ""),
            (vec![same(), same()], "All 2 cells are equivalent", ""),
            (vec![same(), unchanged()], "No cell is shown to be slower", ""),
            (vec![unchanged(), unchanged()], "All 2 cells are unchanged", ""),
            (vec![], "Nothing to compare", ""),
        ] {
            let (verdict, found, _) = answer(rows);
            assert_eq!((verdict.as_str(), found), (text, tone));
        }
        let lost = Row { verdict: None, change: None, reason: Reason::Gone, ..same() };
        assert_eq!(answer(vec![lost]).0, "Nothing could be judged: gone");
    }

    #[test]
    fn verdicts_hold_only_where_something_was_decided_and_every_control_passed() {
        let trust = |rows: Vec<Row>| answer(rows).2;
        assert_eq!(trust(vec![slower_by("a", 0.16, Verdict::Worse)]), "The verdicts hold");
        assert_eq!(trust(vec![slower_by("a", 0.0, Verdict::Undecided)]), "The measurement was checked");
        let mut failed = diff(vec![slower_by("a", 0.16, Verdict::Worse)]);
        failed.controls.push(ControlOutcome::Failed);
        assert_eq!(trusted(&failed).0, "The control failed");
        failed.blocks = None;
        assert_eq!(trusted(&failed).0, "Measured apart");
    }
}
