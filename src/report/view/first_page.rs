//! The table of `report.md`: a row for each cell that is run, one fact in each column.
//!
//! Numbers are rounded so that a rerun hardly changes them: what moves from run to run, intervals first, stands in
//! `report.html` and `results.json`.

use schemars::JsonSchema;
use serde::Serialize;
use statistics::interval::Estimate;

use super::asked::{against, asked};
use super::headline::{best, names, naming_axes};
use super::{TableColumn, accuracy};
use crate::judge::compare::Comparison;
use crate::judge::summary::CellSummary;
use crate::plan::Cell;
use crate::quality::fidelity::OUTPUTS_DIFFER;
use crate::report::absence::Absence;
use crate::report::cause::conditional;
use crate::report::format::{self, Column};
use crate::report::{Input, inflated, on_cpu, short_name};
use crate::vocabulary::metric::{LATENCY, MODEL_SIZE, Metric, MetricReference, PEAK_RSS, Unit};

/// The table that answers the question on the first page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FirstPage {
    /// Headings of the columns that name a row, then of those with facts.
    pub columns: Vec<TableColumn>,
    /// The rows.
    pub rows: Vec<FirstPageRow>,
    /// What the numbers are, how verdicts come about, and how to measure again: a sentence each.
    pub method: Vec<String>,
}

/// A cell of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FirstPageRow {
    /// What names it.
    pub names: Vec<String>,
    /// Its facts, what was asked for first; empty where there is nothing to say.
    pub facts: Vec<String>,
    /// How many of the first facts are marked, as the best or as what must not be used.
    pub marked: usize,
    /// It must not be used for what it was made for: its outputs differ.
    pub differs: bool,
}

/// A fact about a cell: its heading, and its text in each row; `None` for a column that would be empty.
type Fact = Option<(TableColumn, Vec<String>)>;

/// The table of this record.
pub(super) fn first_page(input: &Input<'_>) -> FirstPage {
    let plan = &input.manifest.plan;
    // What is compared stands together, and is named last.
    let order = plan.groups.iter().flat_map(|group| group.cells.iter().map(|cell| *cell as usize));
    let shown: Vec<usize> = order.filter(|index| plan.cells[*index].skip.is_none()).collect();
    let cells = Shown { input, cells: &shown };
    let mut axes = naming_axes(plan, false);
    axes.sort_by_key(|axis| plan.compares(*axis));
    let asked = asked(input.manifest, &input.judged.comparisons);
    let leading = asked.iter().position(|metric| *metric == MetricReference::LATENCY).map_or(0, |place| place + 1);
    let (first, more) = asked.split_at(leading);
    let first: Vec<Fact> = first.iter().map(|metric| cells.fact(*metric)).chain([cells.against()]).collect();
    let marked = first.iter().flatten().count();
    let accuracy = if asked.iter().any(|metric| cells.is_accuracy(*metric)) { None } else { cells.accuracy() };
    let usual = [MetricReference::of(&PEAK_RSS), MetricReference::of(&MODEL_SIZE)].into_iter();
    let usual = usual.filter(|metric| !asked.contains(metric)).map(|metric| cells.fact(metric));
    let facts = first.into_iter().chain(more.iter().map(|metric| cells.fact(*metric)));
    let facts = facts.chain([accuracy, cells.outputs()]).chain(usual).chain([cells.notes()]);
    let (headings, texts): (Vec<TableColumn>, Vec<Vec<String>>) = facts.flatten().unzip();
    let named = axes.iter().map(|axis| column(axis.singular(), false));
    // What is asked for decides what is best.
    let best = best(input);
    let row = |(place, index): (usize, &usize)| FirstPageRow {
        names: names(plan, &plan.cells[*index], &axes),
        facts: texts.iter().map(|texts| texts[place].clone()).collect(),
        marked: if best.contains(index) || input.summary.cells[*index].outputs_differ() { marked } else { 0 },
        differs: input.summary.cells[*index].outputs_differ(),
    };
    FirstPage {
        columns: named.chain(headings).collect(),
        rows: shown.iter().enumerate().map(row).collect(),
        method: super::methods::in_short(input),
    }
}

/// The cells of the table, in its order.
struct Shown<'a> {
    input: &'a Input<'a>,
    cells: &'a [usize],
}

impl<'a> Shown<'a> {
    fn each(&self) -> impl Iterator<Item = (&'a Cell, &'a CellSummary)> {
        let (plan, summary) = (&self.input.manifest.plan, self.input.summary);
        self.cells.iter().map(move |index| (&plan.cells[*index], &summary.cells[*index]))
    }

    /// A column, unless every text of it is empty.
    fn column(
        &self,
        title: &str,
        is_numeric: bool,
        text: impl Fn(&'a Cell, &'a CellSummary) -> Option<String>,
    ) -> Fact {
        let texts: Vec<String> = self.each().map(|(cell, summary)| text(cell, summary).unwrap_or_default()).collect();
        texts.iter().any(|text| !text.is_empty()).then(|| (column(title, is_numeric), texts))
    }

    /// The latency, or why there is none.
    fn latency(&self) -> Fact {
        let rounded = self.rounded(&LATENCY);
        self.column("latency", true, |cell, summary| {
            Some(rounded(summary).unwrap_or_else(|| Absence::of(cell, summary).in_table()))
        })
    }

    /// The column of a metric.
    fn fact(&self, metric: MetricReference) -> Fact {
        match metric {
            MetricReference::LATENCY => self.latency(),
            metric if metric == MetricReference::of(&PEAK_RSS) => self.memory(),
            metric if metric == MetricReference::of(&MODEL_SIZE) => self.file(),
            metric if self.is_accuracy(metric) => self.accuracy(),
            metric => self.estimates(metric),
        }
    }

    /// A metric that has no column of its own.
    fn estimates(&self, metric: MetricReference) -> Fact {
        let estimate = |summary: &CellSummary| summary.estimate_of(metric);
        let estimates: Vec<Estimate> = self.each().filter_map(|(_, summary)| estimate(summary)).collect();
        let column = Column::fit(metric.unit(), &estimates);
        self.column(&metric.title(), true, |_, summary| match estimate(summary) {
            Some(estimate) if summary.supports(metric) => Some(column.rounded(&estimate)),
            Some(estimate) => Some(format!(">= {}", column.rounded(&estimate))),
            None if summary.iterations > 1 && metric.metric.name == LATENCY.name => {
                Some(format::batched(summary.iterations))
            }
            None => None,
        })
    }

    fn memory(&self) -> Fact {
        let rounded = self.rounded(&PEAK_RSS);
        self.column("peak memory", true, |_, summary| rounded(summary))
    }

    /// The size of the model's file, which nothing moves.
    fn file(&self) -> Fact {
        self.column("file", true, |_, summary| {
            summary.estimate(&MODEL_SIZE).map(|estimate| format::bytes(estimate.value as u64))
        })
    }

    /// A value with its unit, in the same unit in all rows.
    fn rounded(&self, metric: &'static Metric) -> impl Fn(&CellSummary) -> Option<String> + use<> {
        let column = Column::fit(metric.unit, self.each().filter_map(|(_, summary)| summary.estimate(metric)));
        move |summary| summary.estimate(metric).map(|estimate| column.rounded(estimate))
    }

    /// The verdict on a cell against its baseline, with the ratio where it claims a difference.
    fn against(&self) -> Fact {
        let plan = &self.input.manifest.plan;
        let title = against(plan, &self.input.judged.comparisons)?;
        let texts = self.cells.iter().map(|index| match self.input.judged.of(*index) {
            Some(comparison) => conditional(verdict(comparison), self.input.summary, comparison),
            None if plan.is_baseline(&plan.cells[*index]) => "baseline".to_owned(),
            None => String::new(),
        });
        Some((column(&title, false), texts.collect()))
    }

    /// Whether it is the metric of the accuracies.
    fn is_accuracy(&self, metric: MetricReference) -> bool {
        let first = self.each().find_map(|(_, summary)| Some(summary.accuracy.first()?.metric.metric()));
        first.is_some_and(|first| first.name == metric.metric.name)
    }

    /// How right the outputs are by the first metric that says so, perfrun's own or that of the specification's command.
    fn accuracy(&self) -> Fact {
        let Some(metric) = self.each().find_map(|(_, summary)| Some(summary.accuracy.first()?.metric)) else {
            return self.own_score();
        };
        self.column(short_name(metric), true, |_, summary| {
            summary.accuracy.iter().find(|score| score.metric == metric).map(accuracy::value_of)
        })
    }

    fn own_score(&self) -> Fact {
        let manifest = self.input.manifest;
        let first = |(cell, _)| manifest.accuracy_of(cell)?.own_scores.keys().next();
        let name = self.each().find_map(first)?;
        self.column(name, true, |cell, _| {
            Some(format::amount(Unit::Count, *manifest.accuracy_of(cell)?.own_scores.get(name)?))
        })
    }

    /// How like the reference's the outputs are, where nothing says how right they are.
    fn outputs(&self) -> Fact {
        let has_scores = self.accuracy().is_some();
        let told = self.column("outputs", false, |cell, summary| {
            let word = summary.fidelity.as_ref().filter(|fidelity| fidelity.elements > 0)?.in_a_word();
            let model = self.input.manifest.models.get(cell.model().place()).and_then(Option::as_ref);
            Some(match model.map_or(0, |model| model.not_compared.len()) {
                0 => word.to_owned(),
                left_out => format!("{word}; {left_out} not compared"),
            })
        });
        told.filter(|_| !has_scores)
    }

    /// What deserves doubt or explains the row.
    fn notes(&self) -> Fact {
        let manifest = self.input.manifest;
        self.column("", false, |cell, summary| {
            let batch = manifest.search_of(cell).map(|search| format!("batch {}", search.batch));
            let differ = summary.outputs_differ().then(|| OUTPUTS_DIFFER.to_owned());
            let notes: Vec<String> =
                batch.into_iter().chain(differ).chain(on_cpu(summary)).chain(inflated(summary)).collect();
            Some(notes.join(", "))
        })
    }
}

fn column(title: &str, is_numeric: bool) -> TableColumn {
    TableColumn { title: title.to_owned(), meaning: None, is_numeric }
}

/// `2.3x faster`, `equivalent`, `inconclusive: quick look`.
fn verdict(comparison: &Comparison) -> String {
    let word = format::verdict_word(&comparison.metric, comparison.verdict);
    match comparison.withheld {
        Some(withheld) if withheld.hides_the_value() => format!("withheld: {}", withheld.words()),
        Some(withheld) => format!("{word}: {}", withheld.words()),
        None if comparison.interval.is_none() => "not judged".to_owned(),
        None if comparison.verdict.is_difference() => {
            format!("{} {word}", format::rounded_ratio(comparison.speedup, comparison.interval))
        }
        None => word.to_owned(),
    }
}
