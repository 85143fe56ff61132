//! Results as people read them: tables, sentences and facts, in words and formatted numbers. Templates fill pages with
//! them, and the terminal prints some of them.
//!
//! Input: [`Results`], and figures. Output: plain serialisable values. Deliberately absent: markup, escaping, and
//! arithmetic beyond choosing what to show.

mod across;
mod alone;
mod answer;
mod bars;
mod bounds;
mod calls;
mod cells;
mod check;
mod explained;
mod facts;
mod first;
mod heat;
mod judged;
pub mod load;
mod methods;
mod metrics;
mod notices;
mod outputs;
mod pivots;
mod printed;
mod profile;
mod ranking;
mod reader;
mod said;
mod subject;
mod summaries;
mod table;
mod test_cases;
mod tradeoffs;
mod trust;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use super::plots::Figure;
use super::plots::Plots;
use judge::results::Results;

pub use answer::{Answer, AnswerRow};
pub(crate) use bars::Bars;
pub(crate) use cells::CellsTable;
pub(super) use cells::absence;
pub use cells::overview;
pub(crate) use facts::Fact;
pub use facts::executed_by;
pub(crate) use first::First;
pub(crate) use judged::Against;
pub use notices::{FailureView, Notices, WarningView};
pub use outputs::lines as accuracy_lines;
pub(crate) use reader::{Reader, name_among};
pub(crate) use subject::{SpeedupAxis, SpeedupRow};
pub(crate) use summaries::Summaries;
pub use table::{Table, TableCell, TableColumn, TableRow, Tone};
pub(crate) use test_cases::{TestCase, TestOutcome};
pub use trust::Trust;

/// What a quick look is worth.
const QUICK_LOOK: &str =
    "A few short runs of each cell without a control: a first impression, not a basis for decisions, gates or history.";

/// The same, and how to get more.
fn quick_look(results: &Results) -> String {
    let aim = if trust::is_look_at_models(results) { "to decide" } else { "to measure the specification as written" };
    format!("{QUICK_LOOK} {} {aim}.", trust::in_full(results))
}

/// A table of more rows is left to files that hold the same numbers.
const MOST_ROWS: usize = 1000;

/// A page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Page<'a> {
    /// The numbers as they are stored, as in `results.json` (docs/reference/results.md).
    #[schemars(with = "serde_json::Value")]
    pub results: &'a Results,
    /// Version of perfrun that began the record.
    pub perfrun: String,
    /// What a quick look is worth, a sentence; `None` for a whole record.
    pub quick_look: Option<String>,
    /// The first screen of `report.html`.
    pub first: First,
    /// A sentence for each folded part of `report.html`.
    pub summaries: Summaries,
    /// What is best, a row for each set of cells that could stand in for each other; `None` where nothing is compared.
    pub answer: Answer,
    /// Whether each goal of the specification is met: `met: p95 <= 20 ms: met by all 4 cells.`
    pub goals: Vec<String>,
    /// How the bounds of the specification's question are kept.
    pub within: Vec<String>,
    /// At which rates the bound is kept, and the number of clients with the most throughput for its latency: a line for each.
    pub load: Vec<String>,
    /// What calls of a language model say together.
    pub calls: Vec<String>,
    /// On how many machines of a merged record each difference holds, a line for each comparison.
    pub across: Vec<String>,
    /// Where the time goes, a line for each comparison and each cell that was profiled.
    pub profile: Vec<String>,
    /// What was measured, on what, with what, and how it was judged: one line each.
    pub facts: Vec<Fact>,
    /// The controls and the grade: whether the measurement itself can be believed.
    pub trust: Trust,
    /// What a reader has to know before the numbers.
    pub notices: Notices,
    /// Every cell that is to be run, with the numbers that decide.
    pub cells: CellsTable,
    /// How it was measured, in two or three sentences.
    pub in_short: Vec<String>,
    /// The tables that the specification asks for.
    pub tables: Vec<Section>,
    /// Metrics of the cells that could stand in for each other.
    pub tradeoffs: Vec<Section>,
    /// Which trade-offs are not drawn, or that `pareto` has nothing to weigh.
    pub tradeoffs_left_out: Option<String>,
    /// All other tables, by the part of the page that they stand in.
    pub sections: Vec<Section>,
    /// Figures by their section: `speedup`, `profile`, `varied`, `distributions`, `control`, `timelines`.
    pub figures: Figures,
    /// The latency of each cell against its baseline's, by the `id` of the cell.
    pub against: BTreeMap<String, Against>,
    /// A test case for each cell and each goal.
    pub test_cases: Vec<TestCase>,
    /// How it was measured, as paragraphs: design, run, statistics.
    pub methods: Vec<String>,
    /// How to get a number again from the samples; `None` where there is none yet.
    pub check: Option<check::Check>,
    /// Whether `report.html` is written next to this page.
    pub has_html: bool,
    /// Whether `results.json` and the figures are written next to this page.
    pub has_files: bool,
}

/// A table with its heading.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Section {
    /// The part of the page that it stands in: `comparisons`, `accuracy`, `profile`, `metrics`, `environment`.
    pub part: &'static str,
    /// What links point to.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What the numbers are, sentences; may be empty.
    pub caption: String,
    /// A figure that belongs to it.
    pub figure: Option<Figure>,
    /// The table.
    pub table: Table,
    /// It has too many rows for a page.
    pub is_long: bool,
    /// What is drawn beside each row of it.
    pub bars: Option<Bars>,
}

impl Section {
    fn new(part: &'static str, id: &str, title: &str, table: Table) -> Self {
        let (id, title) = (id.to_owned(), title.to_owned());
        let is_long = table.rows.len() > MOST_ROWS;
        Section { part, id, title, caption: String::new(), figure: None, table, is_long, bars: None }
    }
}

/// The figures of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// All comparisons: one, or none where nothing is compared.
    pub speedup: Vec<Figure>,
    /// The memory of each group's cells over their nodes; none where nothing is known of it.
    pub profile: Vec<Figure>,
    /// Items per second over the batch size; none where the batch is not varied.
    pub varied: Vec<Figure>,
    /// The distributions.
    pub distributions: Vec<Figure>,
    /// The controls: one, or none without a control.
    pub control: Vec<Figure>,
    /// Samples over time of the cells that deserve a look; these figures have no file of their own.
    pub timelines: Vec<Figure>,
    /// Which figures are not drawn, a sentence.
    pub left_out: Option<String>,
}

impl<'a> Page<'a> {
    /// All that is reported of these results.
    pub fn new(results: &'a Results, plots: &Plots) -> Self {
        let reader = &Reader::new(results);
        let mut sections = Vec::from_iter(across::section(reader, plots));
        sections.extend(judged::sections(reader));
        sections.extend(outputs::sections(reader));
        sections.extend(explained::sections(reader));
        sections.extend(metrics::sections(reader));
        sections.extend(facts::sections(reader));
        let Conclusion { answer, goals, within, load, calls, across, profile, trust, notices, .. } =
            Conclusion::of(reader);
        let cells = cells::table(reader);
        Page {
            results,
            perfrun: facts::text(results, "perfrun").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            against: judged::against(reader),
            test_cases: test_cases::cases(reader),
            quick_look: results.measured.quick.then(|| quick_look(results)),
            summaries: summaries::summaries(reader, &trust, &notices, &profile),
            first: first::first(reader, &trust, &notices, &plots.varied, &cells),
            answer,
            goals,
            within,
            load,
            calls,
            across,
            profile,
            facts: facts::facts(reader, &trust),
            trust,
            notices,
            cells,
            in_short: methods::in_short(results),
            tables: pivots::pivots(reader),
            tradeoffs: tradeoffs::sections(reader, plots),
            tradeoffs_left_out: tradeoffs::left_out(reader, plots),
            sections,
            figures: Figures {
                speedup: plots.speedup.iter().cloned().collect(),
                profile: plots.profile.clone(),
                varied: plots.varied.clone(),
                distributions: plots.distributions.clone(),
                control: plots.control.iter().cloned().collect(),
                timelines: plots.timelines.clone(),
                left_out: plots.left_out.clone(),
            },
            methods: methods::methods(reader),
            check: check::check(reader),
            has_html: true,
            has_files: true,
        }
    }
}

/// What results come down to: what the terminal shows, and what every page begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Every cell in one line.
    pub overview: Table,
    /// Whether each goal of the specification is met.
    pub goals: Vec<String>,
    /// What is best.
    pub answer: Answer,
    /// How the bounds of the specification's question are kept.
    pub within: Vec<String>,
    /// What loads of several levels say.
    pub load: Vec<String>,
    /// What calls of a language model say together.
    pub calls: Vec<String>,
    /// On how many machines each difference holds.
    pub across: Vec<String>,
    /// Where the time goes, a line for each comparison and each cell.
    pub profile: Vec<String>,
    /// Whether the measurement itself can be believed.
    pub trust: Trust,
    /// What a reader has to know before the numbers.
    pub notices: Notices,
}

impl Conclusion {
    pub fn new(results: &Results) -> Self {
        Conclusion::of(&Reader::new(results))
    }

    fn of(reader: &Reader<'_>) -> Self {
        Conclusion {
            overview: cells::overview_of(reader, &|_| false),
            goals: bounds::goals(reader),
            answer: answer::answer(reader),
            within: bounds::within(reader),
            load: load::lines(reader),
            calls: calls::lines(reader),
            across: across::lines(reader.results),
            profile: explained::lines(reader),
            trust: Trust::of(reader),
            notices: notices::notices(reader),
        }
    }
}
