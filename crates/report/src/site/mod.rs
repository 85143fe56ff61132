//! Reports of many commits -> pages of a static site: all experiments, each one's history, and what each commit measured.
//!
//! Input: results with what is known of their commits. Output: files by their paths in the site. Pure. Every page stands
//! by itself, loads nothing, and leads to the other pages by relative links, so that a folder on a disk will do.

mod course;
mod index;
mod point;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{ReportError, fill_template};
use base::metric::{
    ACCURACY_TOP1, DEVICE_MEMORY, FIDELITY_EQUAL, FIDELITY_TOP1, ITEMS, LATENCY, MODEL_SIZE, Metric, MetricReference,
    PEAK_RSS,
};
use experiment::{Axis, AxisMap, telling_axes};
use judge::history::{History, Point, history};
use judge::results::Results;

/// What the page of a commit shows of each cell, in addition to what the history is of.
const SHOWN: [&Metric; 8] =
    [&LATENCY, &ITEMS, &PEAK_RSS, &DEVICE_MEMORY, &MODEL_SIZE, &ACCURACY_TOP1, &FIDELITY_TOP1, &FIDELITY_EQUAL];

/// What has to be read of results for a site about these metrics.
pub fn columns(metrics: &[MetricReference]) -> Vec<String> {
    let [p95, _] = MetricReference::TAILS;
    let shown = SHOWN.map(MetricReference::of).into_iter().chain([p95]);
    let mut columns: Vec<String> = shown.chain(metrics.iter().copied()).map(|metric| metric.column()).collect();
    columns.sort();
    columns.dedup();
    columns
}

/// An experiment over time.
#[derive(Debug)]
pub struct Known {
    /// The folder of its report.
    pub name: String,
    /// What was measured, oldest first.
    pub points: Vec<Point>,
}

/// A site in the making.
pub struct Site<'a> {
    experiments: Vec<Histories<'a>>,
    /// Where a host shows a commit: `{commit}` stands for its hash.
    commit_url: Option<&'a str>,
}

/// An experiment with its histories.
struct Histories<'a> {
    known: &'a Known,
    histories: Vec<History>,
    /// The file of each point's page, next to the experiment's.
    files: Vec<String>,
}

impl<'a> Site<'a> {
    /// A site about the metrics that are asked of each experiment.
    pub fn new(
        known: &'a [Known],
        metrics: &dyn Fn(&[Point]) -> Vec<MetricReference>,
        commit_url: Option<&'a str>,
    ) -> Self {
        let histories_of = |known: &'a Known| {
            let history_of = |metric: MetricReference| history(&known.name, &known.points, metric, &|_| true);
            let histories = metrics(&known.points).into_iter().map(history_of).collect();
            Histories { known, histories, files: files(&known.points) }
        };
        Site { experiments: known.iter().map(histories_of).collect(), commit_url }
    }

    /// Every page but those of commits, by its path.
    ///
    /// # Errors
    ///
    /// A fault of a template.
    pub fn pages(&self) -> Result<Vec<(String, String)>, ReportError> {
        let mut pages = vec![("index.html".to_owned(), fill_template("site.html.j2", &index::page(self))?)];
        for experiment in &self.experiments {
            let page = course::page(experiment, self);
            pages.push((
                format!("{}/index.html", experiment.known.name),
                fill_template("site_experiment.html.j2", &page)?,
            ));
        }
        Ok(pages)
    }

    /// How many pages of commits there are.
    pub fn points(&self) -> Vec<(usize, usize)> {
        let each = self.experiments.iter().enumerate();
        each.flat_map(|(experiment, histories)| (0..histories.known.points.len()).map(move |point| (experiment, point)))
            .collect()
    }

    /// The page of a commit, by its path.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn point(&self, (experiment, point): (usize, usize)) -> Result<(String, String), ReportError> {
        let histories = &self.experiments[experiment];
        let page = point::page(histories, point, self);
        Ok((
            format!("{}/{}", histories.known.name, histories.files[point]),
            fill_template("site_point.html.j2", &page)?,
        ))
    }

    /// Where a host shows a commit.
    fn commit(&self, hash: &str) -> Option<String> {
        self.commit_url.map(|url| url.replace("{commit}", hash))
    }
}

/// A name of its own for each point, that of its commit; of what nobody committed, that of its record.
fn files(points: &[Point]) -> Vec<String> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let file = |point: &Point| {
        let name = if point.commit.is_some() { point.name.clone() } else { point.results.record.clone() };
        let safe: String = name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        let times = known.entry(safe.clone()).or_default();
        *times += 1;
        if *times == 1 && !safe.is_empty() { format!("{safe}.html") } else { format!("{safe}-{times}.html") }
    };
    points.iter().map(file).collect()
}

/// A name with what it says.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Fact {
    name: &'static str,
    value: String,
    link: Option<String>,
}

fn fact(name: &'static str, value: impl Into<String>) -> Fact {
    Fact { name, value: value.into(), link: None }
}

/// When, where and how well a point was measured.
fn facts(point: &Point, site: &Site<'_>) -> Vec<Fact> {
    let Results { measured, provenance, detectable_effect, .. } = &point.results;
    let commit = match &point.commit {
        Some(hash) => Fact { link: site.commit(hash), ..fact("commit", point.name.clone()) },
        None => fact("commit", "not committed"),
    };
    let grade = detectable_effect.grade.map(|grade| fact("grade", grade.letter()));
    let runtimes = provenance.subject.get("runtimes").and_then(serde_json::Value::as_array);
    let versions: Vec<&str> = runtimes
        .into_iter()
        .flatten()
        .filter_map(|runtime| runtime.get("version").and_then(serde_json::Value::as_str))
        .collect();
    let runtime = (!versions.is_empty()).then(|| fact("ONNX Runtime", versions.join(", ")));
    let state = (!measured.complete || measured.quick).then(|| fact("state", "a quick look, or unfinished"));
    [
        Some(fact("measured", day(&point.results))),
        Some(commit),
        Some(fact("machine", provenance.machine.clone())),
        grade,
        runtime,
        state,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// When the last session of a record began.
fn day(results: &Results) -> String {
    results.measured.sessions.last().and_then(|time| time.get(..10)).unwrap_or("unknown").to_owned()
}

/// What cells are called: by the axes on which those that were measured differ.
fn names<'b>(cells: impl Iterator<Item = &'b AxisMap<String>> + Clone) -> impl Fn(&AxisMap<String>) -> String {
    let axes: Vec<Axis> = telling_axes(cells);
    move |names| names.on(&axes)
}
