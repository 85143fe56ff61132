//! The figures of a report as SVG: speed-ups and controls with their intervals, distributions of the cells that are
//! compared, samples over time of those that deserve a look.
//!
//! Input: results, and samples for distributions and courses. Output: SVG texts of bounded size with a background of their own, so that
//! they are readable on dark pages. Deliberately absent: files and any number that the tables do not have.

mod axis;
mod canvas;
mod course;
mod curves;
mod distribution;
mod forest;
mod labels;
mod live;
mod pareto;
mod run_box;
mod scale;
mod simplify;
mod speedup;
mod svg;

mod timeline;
mod varied;

pub(crate) use course::{Course, CourseBreak, CourseChange};
pub(crate) use scale::{LengthScale, RatioScale};

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::Serialize;

use self::distribution::Distributed;
use crate::page::Reader;
use base::metric::LATENCY;
use experiment::Axis as PlanAxis;
use judge::results::{Cell, Results};
use record::{Sampled, StoredRun};

/// What distinguishes a plot of a report from any other SVG file.
pub(crate) const MARK: &str = "data-made-by=\"perfrun\"";

/// More groups than these are not drawn: a page of fifty figures is read by nobody.
const MOST_GROUPS: usize = 8;

/// The figures, and a sentence on those that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plots {
    /// Every comparison; `None` where nothing is compared.
    pub speedup: Option<Figure>,
    /// Every comparison over the machines that made it; `None` where there is one machine.
    pub machines: Option<Figure>,
    /// The A/A comparisons; `None` without one.
    pub control: Option<Figure>,
    /// Two metrics against each other, with the index of the set of cells in what is judged.
    pub tradeoffs: Vec<(usize, Figure)>,
    /// The memory of each group's cells over their nodes.
    pub profile: Vec<Figure>,
    /// Throughput over batch size and clients, latency over the rate.
    pub varied: Vec<Figure>,
    /// The distributions of each group.
    pub distributions: Vec<Figure>,
    /// Samples over time, for the HTML report alone.
    pub timelines: Vec<Figure>,
    /// Which were left out.
    pub left_out: Option<String>,
}

impl Plots {
    /// The figures of `report.md`.
    pub(crate) fn of_first_page(&self) -> impl Iterator<Item = &Figure> {
        self.speedup.iter()
    }

    /// Every figure that can have a file of its own, in the order of the report.
    pub fn all(&self) -> impl Iterator<Item = &Figure> {
        let tradeoffs = self.tradeoffs.iter().map(|(_, plot)| plot);
        self.speedup
            .iter()
            .chain(&self.machines)
            .chain(&self.profile)
            .chain(&self.varied)
            .chain(tradeoffs)
            .chain(&self.distributions)
            .chain(&self.control)
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Figure {
    /// File name next to the Markdown report.
    pub file: String,
    /// Heading.
    pub title: String,
    /// What is drawn, sentences; empty where the figure before says it.
    pub caption: String,
    /// The figure itself.
    pub svg: String,
    /// The same for the width of a phone; none where the figure is scrolled there.
    pub narrow: Option<String>,
}

/// Whether this is the text of a plot that a report drew.
pub fn is_ours(svg: &str) -> bool {
    svg.lines().next().is_some_and(|line| line.contains(MARK))
}

/// What figures are drawn from: the results, and the samples where there are any.
pub(super) struct Drawn<'r, 'a> {
    pub(super) reader: &'r Reader<'a>,
    pub(super) runs: &'r [StoredRun],
    /// Why samples could not be read.
    unreadable: RefCell<Option<String>>,
}

impl<'r> Drawn<'r, '_> {
    /// The samples of a run; the figures say it where they cannot be read.
    fn samples(&self, run: &'r StoredRun) -> Option<Sampled<'r>> {
        let samples = run.samples();
        samples.inspect_err(|error| *self.unreadable.borrow_mut() = Some(error.to_string())).ok()
    }
}

/// Draws what results have to show; distributions and courses take samples, which only a record has.
pub(crate) fn draw(results: &Results, samples: Option<&[StoredRun]>) -> Plots {
    let reader = &Reader::new(results);
    let mut plots = Plots {
        speedup: speedup::draw(reader),
        machines: speedup::draw_machines(reader),
        profile: live::draw(reader),
        varied: varied::draw(reader),
        tradeoffs: pareto::draw(reader),
        control: speedup::draw_controls(reader),
        ..Plots::default()
    };
    if let Some(runs) = samples {
        let drawn = Drawn { reader, runs, unreadable: RefCell::default() };
        plots.timelines = timeline::draw(&drawn);
        draw_distributions(&drawn, &mut plots);
        if let Some(error) = drawn.unreadable.take() {
            let before = plots.left_out.take().map_or(String::new(), |before| format!("{before} "));
            plots.left_out = Some(format!("{before}Figures of samples lack runs: {error}."));
        }
    }
    explain_once(&mut plots.profile);
    explain_once(&mut plots.varied);
    explain_once(&mut plots.distributions);
    explain_once(&mut plots.timelines);
    plots
}

/// The cells that are compared with each other, in the order of the table.
fn groups<'a>(reader: &Reader<'a>) -> Vec<Vec<&'a Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in reader.shown() {
        match groups.last_mut().filter(|group| group[0].group == cell.group) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

fn draw_distributions(drawn: &Drawn<'_, '_>, plots: &mut Plots) {
    let mut groups = groups(drawn.reader);
    groups.retain(|group| group.iter().any(|cell| cell.estimate(&LATENCY).is_some()));
    for group in groups.iter().take(MOST_GROUPS) {
        let name = row_name(drawn.reader, group[0]);
        let mut draw = |distributed: Distributed, cells: &[&Cell]| {
            let file = unused(&plots.distributions, &format!("{}-{}", distributed.word(), slug(&name)));
            plots.distributions.push(distribution::draw(drawn, distributed, cells, &name, file));
        };
        draw(Distributed::Latency, group);
        let is_open = |cell: &&&Cell| cell.load.as_ref().is_some_and(|load| load.queries.arrivals().is_some());
        let open: Vec<&Cell> = group.iter().filter(is_open).copied().collect();
        if !open.is_empty() {
            draw(Distributed::Lateness, &open);
        }
    }
    if groups.len() > MOST_GROUPS {
        let left = groups.len() - MOST_GROUPS;
        plots.left_out = Some(format!(
            "The distributions of {left} more rows of the table are not drawn; the record has their samples."
        ));
    }
}

/// One explanation is enough for figures that read alike.
fn explain_once(plots: &mut [Figure]) {
    for index in (1..plots.len()).rev() {
        if plots[..index].iter().any(|earlier| earlier.caption == plots[index].caption) {
            plots[index].caption.clear();
        }
    }
}

/// The names that distinguish a row from the rest, without those on the compared axis: `mlp, b1`.
fn row_name(reader: &Reader<'_>, cell: &Cell) -> String {
    let shared = || PlanAxis::ALL.into_iter().filter(|axis| !reader.results.compares(*axis));
    // Something of the workload is named in any case.
    let workload = shared().find(|axis| axis.is_workload());
    let axes = shared().filter(|axis| Some(*axis) == workload || reader.has_several(*axis));
    axes.map(|axis| cell.names[axis].as_str()).collect::<Vec<_>>().join(", ")
}

/// A name as part of a file name on any system.
pub fn slug(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let text: String = name.replace(", ", "-").chars().map(safe).collect();
    text.trim_matches(['-', '.']).to_owned()
}

/// `stem.svg`, with a number if another plot has that name, on file systems without upper case too.
fn unused(drawn: &[Figure], stem: &str) -> String {
    let taken = |file: &str| drawn.iter().any(|plot| plot.file.eq_ignore_ascii_case(file));
    let plain = format!("{stem}.svg");
    let numbered = (2..).map(|number| format!("{stem}-{number}.svg"));
    std::iter::once(plain).chain(numbered).find(|file| !taken(file)).expect("the numbers do not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_safe_and_unique() {
        assert_eq!(slug("mlp, b1"), "mlp-b1");
        assert_eq!(slug("a/b, cuda:0"), "a-b-cuda-0");
        assert_eq!(slug("../x"), "x");
        let plot = |file: &str| Figure {
            file: file.to_owned(),
            title: String::new(),
            caption: String::new(),
            svg: String::new(),
            narrow: None,
        };
        assert_eq!(unused(&[plot("latency-A.svg")], "latency-a"), "latency-a-2.svg");
    }

    #[test]
    fn only_marked_plots_are_ours() {
        assert!(is_ours(&format!("<svg {MARK}>\n</svg>")));
        assert!(!is_ours(&format!("<svg>\n<!-- {MARK} --></svg>")));
        assert!(!is_ours(""));
    }
}
