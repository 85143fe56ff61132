//! The table of the cells: what was asked for, the verdict, and what else decides. The terminal, `report.md` and
//! `report.html` show the same columns; `report.md` rounds so that a rerun hardly changes a line.

use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Table, TableCell, TableColumn, Tone};
use super::{Reader, judged, load, outputs};
use crate::cause::conditional;
use crate::format::{self, Column, rounded_verdict};
use base::metric::{
    CPU_TIME, DEVICE_MEMORY, ITEMS, LATENCY, MODEL_SIZE, Metric, MetricReference, PEAK_RSS, SYSTEM_TIME, THROUGHPUT,
    USER_TIME,
};
use experiment::Axis;
use judge::results::{Cell, Results, Status};
use quality::fidelity::OUTPUTS_DIFFER;
use statistics::interval::Estimate;
use statistics::planning::MINIMUM_RUNS;

/// Every cell that is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CellsTable {
    /// What the numbers are: n, interval, kind of latency.
    pub caption: String,
    /// Headings of the columns that name a row, then of those with facts.
    pub columns: Vec<TableColumn>,
    /// Of the columns that name a row, how many name the group that it is compared in.
    pub shared: usize,
    /// What names of a group are names of: `model`, `input`.
    pub groups: Vec<String>,
    /// The rows, those that are compared next to each other.
    pub rows: Vec<CellsRow>,
}

/// A cell of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CellsRow {
    /// Path of the cell, the anchor of its row of every metric.
    pub path: String,
    /// What it is compared in: `digits-cnn`, `batch 32`; none where that is the same for all.
    pub group: Vec<String>,
    /// What names it.
    pub names: Vec<String>,
    /// Its facts with their intervals; empty where there is nothing to say.
    pub exact: Vec<String>,
    /// The same, rounded so that a rerun hardly changes them.
    pub rounded: Vec<String>,
    /// How many of the first facts are marked, as the best or as what must not be used.
    pub marked: usize,
    /// It must not be used for what it was made for: its outputs differ.
    pub differs: bool,
    /// What it looks like: the word of its verdict, or `unjudged`, `differs`, `absent`.
    pub tone: &'static str,
}

/// A fact about each cell.
struct Known {
    title: String,
    /// With its unit, of a metric.
    heading: String,
    is_numeric: bool,
    is_verdict: bool,
    /// It stands however little room there is.
    is_essential: bool,
    /// It stands on the first page too.
    is_first: bool,
    exact: Vec<String>,
    rounded: Vec<String>,
    /// For a table whose heading has the unit.
    bare: Vec<String>,
}

impl Known {
    fn is_empty(&self) -> bool {
        self.exact.iter().all(String::is_empty)
    }
}

/// The cells, and what is known of them.
struct Shown<'r, 'a> {
    reader: &'r Reader<'a>,
    cells: Vec<&'a Cell>,
}

/// The table of results.
pub(super) fn table(reader: &Reader<'_>) -> CellsTable {
    let shown = Shown { reader, cells: reader.shown() };
    let axes = reader.naming_axes();
    let facts: Vec<Known> = shown.facts().into_iter().filter(|fact| !fact.is_empty()).collect();
    let marked = facts.iter().take_while(|fact| fact.is_essential).count();
    let named = axes.iter().map(|axis| TableColumn::text(reader.results.method.word(*axis)));
    let headed = |fact: &Known| TableColumn {
        is_numeric: fact.is_numeric,
        is_verdict: fact.is_verdict,
        ..TableColumn::text(&fact.title)
    };
    let first = || facts.iter().filter(|fact| fact.is_first);
    let best = reader.best();
    let shared = axes.iter().filter(|axis| !reader.results.compares(**axis)).count().min(axes.len() - 1);
    let of_group = || axes[..shared].iter().filter(|axis| !axis.has_dimensions() || reader.has_several(**axis));
    let row = |(index, cell): (usize, &&Cell)| {
        let differs = cell.outputs_differ();
        let group = of_group().map(|axis| match axis.has_dimensions() {
            true => input_name(&cell.names[*axis]),
            false => cell.names[*axis].clone(),
        });
        CellsRow {
            path: cell.path(),
            group: group.collect(),
            names: axes.iter().map(|axis| cell.names[*axis].clone()).collect(),
            exact: first().map(|fact| fact.exact[index].clone()).collect(),
            rounded: first().map(|fact| fact.rounded[index].clone()).collect(),
            marked: if best.contains(&cell.id) || differs { marked } else { 0 },
            differs,
            tone: tone(reader, cell),
        }
    };
    CellsTable {
        caption: caption(reader, &shown.cells),
        columns: named.chain(first().map(headed)).collect(),
        shared,
        groups: of_group().map(|axis| reader.results.method.word(*axis).to_owned()).collect(),
        rows: shown.cells.iter().enumerate().map(row).collect(),
    }
}

/// `batch 32` for `b32`: what readers call the usual names of inputs.
pub(super) fn input_name(name: &str) -> String {
    let batch =
        name.strip_prefix('b').filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    batch.map_or_else(|| name.to_owned(), |batch| format!("batch {batch}"))
}

/// What a verdict looks like; without one a cell looks like any other.
fn tone(reader: &Reader<'_>, cell: &Cell) -> &'static str {
    match reader.against(cell).filter(|row| row.is_judged()) {
        _ if cell.outputs_differ() => "differs",
        _ if cell.estimate(&LATENCY).is_none() => "absent",
        Some(row) => format::tone(row.verdict),
        None => "unjudged",
    }
}

impl Shown<'_, '_> {
    /// What is asked for up to latency and the verdict, then the rest.
    fn facts(&self) -> Vec<Known> {
        let asked = self.reader.asked();
        let latency = asked.iter().position(|metric| *metric == MetricReference::LATENCY).unwrap_or(0);
        let (first, more) = asked.split_at((latency + 1).min(asked.len()));
        let score = self.cells.iter().find_map(|cell| Some(cell.scores().first()?.metric.metric()));
        let is_score = |metric: &MetricReference| score.is_some_and(|score| score.name == metric.metric.name);
        let mut facts: Vec<Known> = first.iter().map(|metric| self.metric(*metric, true)).collect();
        facts.extend(self.against());
        facts.push(self.text("by CPU time", |cell| self.reader.by_cpu_time(cell.id).map(rounded_verdict)));
        facts.extend(more.iter().map(|metric| self.metric(*metric, false)));
        if !asked.iter().any(is_score) {
            facts.extend(score.map(|score| self.metric(MetricReference::of(score), false)));
        }
        facts.extend(self.own_metrics(&asked, score));
        if score.is_none() {
            facts.push(self.text("outputs", outputs::in_a_word));
        }
        let [p95, _] = MetricReference::TAILS;
        let is_supported = |tail: &MetricReference| {
            self.cells.iter().any(|cell| cell.estimate_of(*tail).is_some() && cell.supports(*tail))
        };
        // Under a load that of the bound, as a lower bound too.
        let bound = self.cells.iter().find_map(|cell| load::bounded_percentile(cell));
        let has_tail = |tail: &MetricReference| self.cells.iter().any(|cell| cell.estimate_of(*tail).is_some());
        let tail = bound.filter(has_tail).or(Some(p95).filter(is_supported));
        // With cold caches there are latencies and no rates.
        let has = |metric: &Metric| self.cells.iter().any(|cell| cell.estimate(metric).is_some());
        let rate = [ITEMS, THROUGHPUT].into_iter().find(|rate| has(rate));
        let rate = rate.map(|rate| if rate.name == ITEMS.name { &ITEMS } else { &THROUGHPUT }).map(MetricReference::of);
        // Of a GPU its own memory is what runs out.
        let lacks = |cell: &&Cell| cell.estimate(&LATENCY).is_some() && cell.estimate(&DEVICE_MEMORY).is_none();
        let is_first = |name: &str| match name {
            name if name == PEAK_RSS.name => self.cells.iter().any(lacks),
            name => [DEVICE_MEMORY.name, MODEL_SIZE.name].contains(&name),
        };
        let of_command = [&CPU_TIME, &USER_TIME, &SYSTEM_TIME].into_iter();
        let of_command = of_command.filter(|metric| self.runs_commands() && has(metric)).map(MetricReference::of);
        let usual = [
            tail,
            rate,
            has(&DEVICE_MEMORY).then_some(MetricReference::of(&DEVICE_MEMORY)),
            Some(MetricReference::of(&PEAK_RSS)),
            Some(MetricReference::of(&MODEL_SIZE)),
        ];
        let usual = of_command.chain(usual.into_iter().flatten()).filter(|metric| !asked.contains(metric));
        let is_first = |metric: MetricReference| Some(metric) == bound || is_first(metric.metric.name);
        facts.extend(usual.map(|metric| Known { is_first: is_first(metric), ..self.metric(metric, false) }));
        let bound = self.text("bound by", |cell| cell.bound_by.as_ref().map(format::bound_in_short));
        facts.push(Known { is_first: false, ..bound });
        facts.push(self.text("notes", |cell| Some(notes(cell)).filter(|notes| !notes.is_empty())));
        facts
    }

    fn runs_commands(&self) -> bool {
        self.reader.results.method.runs_commands()
    }

    fn text(&self, title: &str, text: impl Fn(&Cell) -> Option<String>) -> Known {
        let texts: Vec<String> = self.cells.iter().map(|cell| text(cell).unwrap_or_default()).collect();
        Known {
            title: title.to_owned(),
            heading: title.to_owned(),
            is_numeric: false,
            is_verdict: false,
            is_essential: false,
            is_first: true,
            exact: texts.clone(),
            rounded: texts.clone(),
            bare: texts,
        }
    }

    /// The column of a metric, in the same unit in all rows. Where there is no latency, it says why.
    fn metric(&self, metric: MetricReference, is_essential: bool) -> Known {
        let estimates: Vec<Estimate> = self.cells.iter().filter_map(|cell| cell.estimate_of(metric)).collect();
        let is_latency = metric.metric.name == LATENCY.name;
        let column = match is_latency {
            true => {
                let medians: Vec<Estimate> = self.cells.iter().filter_map(|cell| cell.estimate(&LATENCY)).collect();
                Column::fit_to(Column::fit(metric.unit(), &medians).scale, &estimates)
            }
            false => Column::fit(metric.unit(), &estimates),
        };
        let score =
            self.cells.iter().flat_map(|cell| cell.scores()).find(|it| it.metric.metric().name == metric.metric.name);
        let title = match &score {
            Some(score) => outputs::short_name(score.metric).to_owned(),
            None if metric == MetricReference::LATENCY && self.runs_commands() => "time".to_owned(),
            None if metric == MetricReference::LATENCY => "latency".to_owned(),
            None if is_latency => metric.statistic.name().to_owned(),
            None if metric.metric.name == MODEL_SIZE.name => "file".to_owned(),
            None if metric.metric.name == ITEMS.name => format!("mean {}", self.reader.items()),
            None if metric.metric.name == THROUGHPUT.name => format!("mean {}", metric.title()),
            None => load::title(self.reader, metric),
        };
        let heading = match &score {
            Some(_) => title.clone(),
            None if metric == MetricReference::LATENCY => column.heading(metric.statistic.name()),
            None => column.heading(&title),
        };
        let texts = |cell: &&Cell| -> [String; 3] {
            let Some(estimate) = cell.estimate_of(metric) else {
                let why = match () {
                    () if metric == MetricReference::LATENCY => absence(cell),
                    () if is_latency && cell.iterations > 1 => format::batched(cell.iterations),
                    () => match load::end_of(cell, metric) {
                        Some((sign, rate)) => {
                            let whole = load::known_end(cell, metric).unwrap_or_default();
                            return [whole.clone(), whole, format!("{sign} {}", column.plain(rate))];
                        }
                        None => String::new(),
                    },
                };
                return [why.clone(), why.clone(), why];
            };
            if let Some(score) = cell.scores().iter().find(|it| it.metric.metric().name == metric.metric.name) {
                let text = outputs::value_of(score);
                return [text.clone(), text.clone(), text];
            }
            let rounded = column.rounded(&estimate);
            if metric.metric.name == MODEL_SIZE.name {
                let text = format::bytes(estimate.value as u64);
                return [text.clone(), text, column.plain(estimate.value)];
            }
            match cell.supports(metric) {
                true if is_essential => [column.value_with_unit(&estimate), rounded, column.value(&estimate)],
                true => [column.value_with_unit(&estimate), rounded, column.plain(estimate.value)],
                false => {
                    [format!(">= {rounded}"), format!(">= {rounded}"), format!(">= {}", column.plain(estimate.value))]
                }
            }
        };
        let [exact, rounded, bare] = transposed(self.cells.iter().map(texts));
        let is_essential = is_essential || score.is_some();
        Known {
            title,
            heading,
            is_numeric: true,
            is_verdict: false,
            is_essential,
            is_first: true,
            exact,
            rounded,
            bare,
        }
    }

    /// The verdict on a cell against its baseline.
    fn against(&self) -> Option<Known> {
        let title = self.reader.against_title()?;
        let results = self.reader.results;
        let texts = |cell: &&Cell| -> [String; 3] {
            match self.reader.against(cell).filter(|_| cell.estimate(&LATENCY).is_some()) {
                Some(row) => {
                    let by = self.reader.decided_by_cpu_time(row).map(rounded_verdict);
                    let by = by.map(|by| format!("; by CPU time {by}")).unwrap_or_default();
                    let in_full = |text: String| conditional(text, judged::has_load(self.reader, row)) + &by;
                    let exact = in_full(format::speedup(row));
                    [exact.clone(), in_full(rounded_verdict(row)), exact]
                }
                None if results.is_baseline(cell) => ["baseline".to_owned(), "baseline".to_owned(), "-".to_owned()],
                None => Default::default(),
            }
        };
        let [exact, rounded, bare] = transposed(self.cells.iter().map(texts));
        let heading = title.clone();
        Some(Known {
            heading,
            title,
            is_numeric: false,
            is_verdict: true,
            is_essential: true,
            is_first: true,
            exact,
            rounded,
            bare,
        })
    }

    /// The metrics of the specification that some cell has and that have no column yet.
    fn own_metrics(&self, asked: &[MetricReference], score: Option<&Metric>) -> Vec<Known> {
        let is_new = |metric: &Metric| {
            let is_asked = asked.iter().any(|asked| asked.metric.name == metric.name);
            !is_asked && score.is_none_or(|score| score.name != metric.name)
        };
        let new_metrics = self.reader.results.own_metrics().into_iter().filter(|metric| is_new(metric));
        new_metrics
            .filter(|metric| self.cells.iter().any(|cell| cell.estimate(metric).is_some()))
            .map(|metric| self.metric(MetricReference::of(metric), false))
            .collect()
    }
}

fn transposed(rows: impl Iterator<Item = [String; 3]>) -> [Vec<String>; 3] {
    let mut columns: [Vec<String>; 3] = Default::default();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, text)| column.push(text));
    }
    columns
}

/// What deserves doubt or explains the row.
fn notes(cell: &Cell) -> String {
    let batch = cell.search.as_ref().zip(cell.batch).map(|(_, batch)| format!("batch {batch}"));
    let differ = cell.outputs_differ().then(|| OUTPUTS_DIFFER.to_owned());
    let lacks = cell.status == Status::Partial;
    let runs = lacks.then(|| format!("{} of {} runs completed", cell.completed, cell.planned()));
    let parts = [batch, differ, on_cpu(cell), runs, inflated(cell)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `38 % on cpu`, of a cell of another device that did not run there alone.
fn on_cpu(cell: &Cell) -> Option<String> {
    Some(format!("{} on cpu", format::percent(cell.told_cpu_share()?)))
}

/// `CPU time 12.6 ms on 2 threads`, of a cell whose latency background load inflates.
fn own_time(cell: &Cell) -> Option<String> {
    let threads = cell.background_load?.waiting_threads?;
    let cpu_time = format::measured(CPU_TIME.unit, cell.estimate(&CPU_TIME)?.value, None);
    Some(if threads > 1 { format!("CPU time {cpu_time} on {threads} threads") } else { format!("CPU time {cpu_time}") })
}

/// `inflated by background load, CPU time 6.30 ms`: what is printed with such a number.
fn inflated(cell: &Cell) -> Option<String> {
    Some(format!("inflated by background load, {}", own_time(cell)?))
}

/// Why a cell has no number: `failed (out of memory)`.
pub(crate) fn absence(cell: &Cell) -> String {
    match cell.failures.first() {
        _ if cell.status == Status::Skipped => "skipped".to_owned(),
        _ if cell.completed > 0 => format!("withheld: {}", cell.why_invalid().unwrap_or("no value")),
        Some(failure) => format!("failed ({})", failure.failure.kind.name().replace('_', " ")),
        None => "not run".to_owned(),
    }
}

/// What the numbers are.
fn caption(reader: &Reader<'_>, cells: &[&Cell]) -> String {
    let results = reader.results;
    let completed = || cells.iter().map(|cell| cell.completed).filter(|completed| *completed > 0);
    let (fewest, most) = (completed().min().unwrap_or(0), completed().max().unwrap_or(0));
    let medians = match (fewest, most) {
        (_, 0) => return "No process has completed.".to_owned(),
        (1, 1) => "Median of one process".to_owned(),
        (fewest, most) if fewest == most => format!("Trimmed mean (25 %) of {most} process medians"),
        (fewest, most) => format!("Trimmed mean (25 %) of {fewest} to {most} process medians"),
    };
    let interval = match most as usize >= MINIMUM_RUNS {
        true => format!(" ± half of its {} interval", format::confidence(results.rules.confidence)),
        false => format!(", without interval below {MINIMUM_RUNS} processes"),
    };
    let timed = match results.method.runs_commands() {
        true => "wall time of one execution, from the start of its process to its end".to_owned(),
        false => match super::methods::under_load(results) {
            Some(load) => load.to_owned(),
            None => format!("service latency (closed loop), {}", super::methods::stream(&results.method)),
        },
    };
    let mut sentences = vec![format!("{medians}{interval}; {timed}.")];
    let judged = results.unasked().find(|row| row.is_judged());
    if let (Some(baseline), Some(row)) = (&results.rules.baseline, judged) {
        let per_item = if reader.is_by_items() { " per item" } else { "" };
        let margin = format::percent(row.margin);
        sentences.push(format!("Speed-up{per_item} against {baseline}: margin {margin}. Bold: what the answer names."));
    }
    sentences.join(" ")
}

/// The table of the terminal: every cell that is to be run in one line, the compared axis innermost. `goes_on` says of a group
/// whether it is still measured, so that what is open is no verdict yet.
pub fn overview(results: &Results, goes_on: &dyn Fn(u32) -> bool) -> Table {
    overview_of(&Reader::new(results), goes_on)
}

pub(super) fn overview_of(reader: &Reader<'_>, goes_on: &dyn Fn(u32) -> bool) -> Table {
    let shown = Shown { reader, cells: reader.shown() };
    let is_shown = |fact: &Known| !fact.is_empty() && !matches!(fact.title.as_str(), "notes" | "outputs" | "file");
    let (verdicts, facts): (Vec<Known>, Vec<Known>) = shown
        .facts()
        .into_iter()
        .filter(is_shown)
        .partition(|fact| Some(&fact.title) == reader.against_title().as_ref());
    let row = |(index, cell): (usize, &&Cell)| {
        let (group, entry) = labels(reader, cell);
        let is_measured = cell.estimate(&LATENCY).is_some();
        let facts = facts.iter().map(|fact| match is_measured || fact.bare[index] == absence(cell) {
            true => TableCell::from(fact.bare[index].clone()),
            false => TableCell::default(),
        });
        let mut facts: Vec<TableCell> = facts.collect();
        if let Some(first) = facts.first_mut().filter(|_| !is_measured && cell.failed > 0) {
            first.tone = Tone::Bad;
        }
        let verdict = verdicts.first().map_or_else(String::new, |fact| fact.bare[index].clone());
        let open = reader.against(cell).filter(|row| row.verdict.is_open() && goes_on(cell.group));
        let verdict = match open {
            Some(open) => format!("{}, measuring", format::ratio(open.ratio, open.interval())),
            None if cell.outputs_differ() && verdict.is_empty() => "outputs DIFFER".to_owned(),
            None if cell.outputs_differ() => format!("{verdict}; outputs DIFFER"),
            None => verdict,
        };
        let tone = match reader.against(cell).map(|row| row.verdict) {
            _ if cell.outputs_differ() => Tone::Bad,
            Some(verdict) if verdict.is_improvement() => Tone::Good,
            Some(verdict) if verdict.is_regression() => Tone::Bad,
            _ => Tone::Plain,
        };
        let names = [group, entry].map(TableCell::from);
        names
            .into_iter()
            .chain(facts)
            .chain([TableCell { tone, ..TableCell::text(verdict) }])
            .collect::<Vec<TableCell>>()
    };
    let headed = facts.iter().map(|fact| TableColumn {
        is_numeric: fact.is_numeric,
        is_optional: !fact.is_essential,
        ..TableColumn::text(fact.heading.clone())
    });
    let against = TableColumn::text(verdicts.first().map(|fact| fact.title.clone()).unwrap_or_default());
    let columns = [TableColumn::text(""), TableColumn::text("")].into_iter().chain(headed).chain([against]);
    Table::of(columns.collect(), shown.cells.iter().enumerate().map(row))
}

/// What the rows of a group share, and what distinguishes this cell from the rest.
fn labels(reader: &Reader<'_>, cell: &Cell) -> (String, String) {
    let results = reader.results;
    let is_shared = |axis: &Axis| !results.compares(*axis) && reader.is_shown(*axis);
    let shared = cell.names.on(&Axis::ALL.into_iter().filter(is_shared).collect::<Vec<_>>());
    let entry = results.rules.baseline.as_ref().map(|_| results.entry(&cell.names));
    let batch = cell.search.as_ref().zip(cell.batch).map(|(_, batch)| format!("batch {batch}"));
    let inflated = own_time(cell).map(|time| format!("inflated ({time})"));
    let distinguishing: Vec<String> = [entry, batch, on_cpu(cell), inflated].into_iter().flatten().collect();
    (shared, distinguishing.join(", "))
}
