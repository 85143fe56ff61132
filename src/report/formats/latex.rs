//! `results.tex`, for papers: a table with booktabs, and a macro for each number, so that the text cannot contradict the
//! table. Macros carry their units, which may change from one measurement to the next.

use std::collections::HashMap;
use std::fmt::Write as _;

use statistics::interval::Estimate;

use crate::experiment::{Axis, telling_axes};
use crate::report::format::{Column, judged_ratio, verdict_word};
use crate::report::template::latex as escaped;
use crate::results::{Cell, Compared, Results, interval};
use crate::vocabulary::metric::{
    ACCURACY_TOP1, FIDELITY_EQUAL, FIDELITY_TOP1, Kind, LATENCY, MODEL_SIZE, MetricReference, PEAK_RSS,
};
use crate::vocabulary::printable::printable_line;

/// A number that nobody has is an error, not an empty place in a sentence.
const PREAMBLE: &str = r"\makeatletter
\providecommand{\perfrun}[1]{\@ifundefined{perfrun@#1}%
  {\PackageError{perfrun}{There is no number `#1'}{It was not measured, or has another name.}}{\@nameuse{perfrun@#1}}}
";

pub(super) fn text(results: &Results) -> String {
    let latency = MetricReference::LATENCY;
    let is_shown = |cell: &&Cell| cell.usable(&latency.column()).is_some();
    let (shown, left_out): (Vec<&Cell>, Vec<&Cell>) = results.cells.iter().partition(is_shown);
    let against = results.comparisons.iter().filter(|row| row.metric == latency.to_string());
    let page = Page {
        results,
        axes: telling_axes(shown.iter().map(|cell| &cell.names)),
        against: against.map(|row| (row.cell.as_str(), row)).collect(),
    };
    let mut text = page.head(&shown, left_out.len());
    text.push_str(PREAMBLE);
    shown.iter().for_each(|cell| page.define(cell, &mut text));
    text.push_str("\\makeatother\n\n");
    page.table(&shown, &mut text);
    text
}

struct Page<'a> {
    results: &'a Results,
    axes: Vec<Axis>,
    /// Comparisons of latency by the id of the cell.
    against: HashMap<&'a str, &'a Compared>,
}

impl Page<'_> {
    fn head(&self, shown: &[&Cell], left_out: usize) -> String {
        let Results { experiment, record, measured, provenance, .. } = self.results;
        // A line break would end the comment.
        let plain = printable_line;
        let [experiment, record, machine] = [experiment, record, &provenance.machine].map(|text| plain(text));
        let mut text = format!("% {experiment}: perfrun, record {record}, machine {machine}.\n");
        if measured.quick || !measured.complete {
            text.push_str("% A quick look or an unfinished record: do not publish.\n");
        }
        if left_out > 0 {
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "% Left out, since they have no latency: {left_out} of {} cells.",
                self.results.cells.len()
            );
        }
        let example = shown.first().map_or_else(String::new, |cell| self.key(cell, "latency"));
        let _ = writeln!(text, "% Needs \\usepackage{{booktabs}}. In a sentence: \\perfrun{{{example}}}");
        text
    }

    /// `quickstart/digits-cnn/b1/int8/latency`. Any letter may stand in a name but those that TeX acts upon.
    fn key(&self, cell: &Cell, what: &str) -> String {
        let key = format!("{}/{}/{what}", self.results.experiment, cell.names.on(&self.axes));
        // Letter by letter, so that names which differ stay apart.
        let safe = |letter: char| match letter {
            letter if "\\{}%#^~$& ".contains(letter) || letter.is_control() => format!("-u{:x}-", u32::from(letter)),
            letter => letter.to_string(),
        };
        key.chars().map(safe).collect()
    }

    /// The macros of a cell.
    fn define(&self, cell: &Cell, text: &mut String) {
        let mut define = |what: &str, value: String| {
            let _ = writeln!(text, "\\@namedef{{perfrun@{}}}{{{value}}}", self.key(cell, what));
        };
        for column in cell.metrics.keys() {
            let known = MetricReference::of_column(column).zip(cell.usable(column));
            let Some((reference, found)) = known.filter(|(reference, _)| reference.metric.kind == Kind::Model) else {
                continue;
            };
            let estimate = found.estimate(self.results.rules.confidence);
            let column = Column::fit(reference.unit(), [&estimate]);
            let (value, half_width) = column.parts(&estimate);
            let with_unit = |number: &str| escaped(number) + &unit(column.scale.unit);
            define(&reference.to_string(), with_unit(&value));
            if let Some(half_width) = half_width {
                define(&format!("{reference}/plus-minus"), with_unit(&half_width));
            }
        }
        if let Some(row) = self.against.get(cell.id.as_str()) {
            let (ratio, ends) = ratio(row);
            define("speedup", ratio);
            define("speedup/interval", ends);
            define("verdict", escaped(&verdict(row)));
        }
    }

    fn table(&self, cells: &[&Cell], text: &mut String) {
        let known = |metric| {
            let reference = MetricReference::of(metric);
            Some((reference, self.column(cells, reference)?))
        };
        // How often outputs agree says little where it is known how often they are right.
        let rightness = [&ACCURACY_TOP1, &FIDELITY_TOP1, &FIDELITY_EQUAL].into_iter().find_map(known);
        let columns: Vec<(MetricReference, Column)> =
            [known(&LATENCY), known(&PEAK_RSS), known(&MODEL_SIZE), rightness].into_iter().flatten().collect();
        let (latency, others) = columns.split_at(columns.len().min(1));
        let heading = |(reference, column): &(MetricReference, Column)| {
            escaped(&column.heading(&reference.title()).replace(", us", ", µs")).replace('µ', "$\\mu$")
        };
        let heads = self.axes.iter().map(|axis| axis.singular().to_owned());
        let heads = heads.chain(latency.iter().map(heading));
        let against = ["speedup".to_owned(), "interval".to_owned(), "verdict".to_owned()];
        let heads: Vec<String> = heads.chain(against).chain(others.iter().map(heading)).collect();
        let (names, numbers) = ("l".repeat(self.axes.len()), "r".repeat(others.len()));
        let _ = writeln!(text, "\\begin{{tabular}}{{{names}rrll{numbers}}}\n  \\toprule");
        let _ = writeln!(text, "  {} \\\\\n  \\midrule", heads.join(" & "));
        for cell in cells {
            let value = |(reference, column): &(MetricReference, Column)| {
                let found = cell.usable(&reference.column());
                let shown = found.map(|found| column.value(&found.estimate(self.results.rules.confidence)));
                shown.map_or_else(|| "--".to_owned(), |text| escaped(&text))
            };
            let names = self.axes.iter().map(|axis| escaped(&cell.names[*axis]));
            let against = match self.against.get(cell.id.as_str()) {
                Some(row) => {
                    let (ratio, ends) = ratio(row);
                    [ratio, ends, escaped(&verdict(row))]
                }
                None => ["--", "", ""].map(str::to_owned),
            };
            let line = names.chain(latency.iter().map(value)).chain(against).chain(others.iter().map(value));
            let _ = writeln!(text, "  {} \\\\", line.collect::<Vec<_>>().join(" & "));
        }
        text.push_str("  \\bottomrule\n\\end{tabular}\n");
    }

    /// One unit for a metric of all cells; `None` where no cell has it.
    fn column(&self, cells: &[&Cell], reference: MetricReference) -> Option<Column> {
        let found = cells.iter().filter_map(|cell| cell.usable(&reference.column()));
        let found: Vec<Estimate> = found.map(|found| found.estimate(self.results.rules.confidence)).collect();
        (!found.is_empty()).then(|| Column::fit(reference.unit(), &found))
    }
}

/// `27` and `us` are `27\,$\mu$s`.
fn unit(unit: &str) -> String {
    match unit {
        "" => String::new(),
        "us" => "\\,$\\mu$s".to_owned(),
        "uJ" => "\\,$\\mu$J".to_owned(),
        unit => format!("\\,{}", escaped(unit)),
    }
}

/// `1.93` and `[1.90, 1.96]`, which is empty where there is none.
fn ratio(row: &Compared) -> (String, String) {
    let text = judged_ratio(row.ratio, interval(row.low, row.high), row.margin);
    let (ratio, ends) = text.split_once("x").unwrap_or((&text, ""));
    (escaped(ratio), escaped(ends.trim_start()))
}

fn verdict(row: &Compared) -> String {
    verdict_word(&MetricReference::LATENCY, row.verdict).to_owned()
}
