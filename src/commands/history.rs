//! `perfrun history`: a metric of an experiment over commits and records.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::diff::Source;
use super::points::{all_points, experiments, path_of_report, points};
use super::{json_text, print, specs};
use crate::ui::cli::HistoryArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{self, Ui};
use base::metric::{Metric, MetricReference};
use experiment::{Axis, Device, Vocabulary};
use judge::diff::{Side, Spreads, frames_differ};
use judge::history::{History, Point, history};
use judge::results::{Cell, Measured, Results, Wanted};
use record::git::{Repository, UNSHALLOW};
use record::{ProjectRoot, StoreError, write_whole};
use statistics::SessionSpread;

pub(super) fn run(arguments: &HistoryArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let experiment = &experiment(&project, arguments)?;
    let (mut points, unread) = committed(&project, experiment, arguments, ui)?;
    if !arguments.committed {
        add_records(&project, experiment, &mut points);
    }
    if points.is_empty() {
        if let Some(error) = unread {
            return Err(error.into());
        }
        let known = experiments(&project);
        let help = if known.is_empty() {
            "there are no committed reports, and no records of whole experiments; `perfrun experiments/x.yaml` makes one".to_owned()
        } else {
            format!("known experiments: {}", known.join(", "))
        };
        return Err(Error::refused(format!("no report or record of `{experiment}`"), help));
    }
    let skipped = points.len().saturating_sub(arguments.last.map_or(usize::MAX, |last| last as usize));
    points.drain(..skipped);
    let is_wanted = wanted(arguments.only.as_deref(), &points)?;
    let own_metrics = own_metrics(&points);
    let metric = arguments.metric.read(&own_metrics).map_err(no_metric)?;
    let found = history(experiment, &points, metric, &is_wanted);
    if found.series.is_empty() {
        let help = "use another --metric, or select other cells with --only";
        return Err(Error::refused(format!("no cell has `{metric}`"), help));
    }
    if let Some(folder) = &arguments.output {
        write(&found, folder)?;
    }
    match arguments.json {
        true => super::print_json(ui, &found),
        false => print(ui, &ui::history::render(&found, ui)),
    }
}

/// The metrics of specifications that these results have; of several with one name the newest first.
pub(super) fn own_metrics(points: &[Point]) -> Vec<&'static Metric> {
    points.iter().rev().flat_map(|point| point.results.own_metrics()).collect()
}

/// A name that is no metric.
pub(super) fn no_metric(problem: String) -> Error {
    Error::refused(problem, "`perfrun explain` lists the metrics; those of a specification stand in its `metrics`")
}

/// The experiment that is named, or the only one.
fn experiment(project: &ProjectRoot, arguments: &HistoryArgs) -> Result<String, Error> {
    if let Some(name) = &arguments.experiment {
        return Ok(name.clone());
    }
    match experiments(project).as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Error::refused(
            "there are no committed reports and no records",
            "`perfrun experiments/x.yaml` makes one",
        )),
        several => {
            Err(Error::refused("there are several experiments", format!("name one of them: {}", several.join(", "))))
        }
    }
}

/// A history longer than this is not read for how far measurements at different times are apart.
const MOST_BYTES: u64 = 32 << 20;

/// Nor more reports.
const MOST_POINTS: usize = 32;

/// How much each cell differs between measurements at different times, if the history up to the older side has at least
/// five of them in the stretch that the older side belongs to (method 6.2).
pub(super) fn spreads(
    project: &ProjectRoot,
    source: &Source,
    baseline: &Side,
    candidate: &Side,
    metrics: &[MetricReference],
) -> Result<Spreads, Error> {
    let repository = Repository::around(&project.root).ok().flatten();
    let (Source::Commit { hash, .. }, Some(repository)) = (source, repository) else {
        return Ok(Spreads::default());
    };
    let experiment = &baseline.results.experiment;
    let path = path_of_report(project, &repository, experiment);
    let mut commits = repository.commits_of(hash, &path);
    let size = commits.last().and_then(|(newest, _)| repository.size(newest, &path)).unwrap_or(u64::MAX);
    let most = usize::try_from(MOST_BYTES / size.max(1)).unwrap_or(MOST_POINTS).min(MOST_POINTS);
    commits.drain(..commits.len().saturating_sub(most));
    let columns: Vec<String> = metrics.iter().map(MetricReference::column).collect();
    let wanted = Wanted { metrics: &columns, claims: false };
    let points: Vec<Point> = points(&repository, &path, &commits, wanted).into_iter().filter_map(Result::ok).collect();
    let Some(newest) = points.last() else { return Ok(Spreads::default()) };
    let mut found = Spreads::default();
    for metric in metrics {
        for series in &history(experiment, &points, *metric, &|_| true).series {
            let spread = SessionSpread::of_sessions(&series.stable());
            let is_here = !frames_differ(&newest.results, &candidate.results, &series.names);
            found.extend(spread.filter(|_| is_here).map(|spread| ((series.cell, metric.column()), spread)));
        }
    }
    Ok(found)
}

/// The repository around the reports; warns where git refuses it, and where older commits are missing from it.
pub(super) fn readable(project: &ProjectRoot, ui: &Ui) -> Option<Repository> {
    match Repository::around(&project.root) {
        Ok(repository) => {
            if repository.as_ref().is_some_and(Repository::is_shallow) {
                ui.note(&format!("warning: this clone is shallow, so older reports are missing ({UNSHALLOW})"));
            }
            repository
        }
        Err(error) => {
            let hint = error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
            ui.note(&format!("warning: committed reports cannot be read: {error}{hint}"));
            None
        }
    }
}

/// Points, oldest first, and why the newest of those that were left out cannot be read.
type Found = (Vec<Point>, Option<StoreError>);

/// The reports that commits have.
fn committed(project: &ProjectRoot, experiment: &str, arguments: &HistoryArgs, ui: &Ui) -> Result<Found, Error> {
    let Some(repository) = readable(project, ui) else { return Ok(Found::default()) };
    let Some(head) = head(&repository, &arguments.revision)? else { return Ok(Found::default()) };
    let columns: Vec<String> = arguments.metric.read(&[]).iter().map(MetricReference::column).collect();
    let wanted = Wanted { metrics: &columns, claims: false };
    Ok(points_until(&head, (project, &repository), experiment, wanted, ui))
}

/// The commit of a revision; `None` for the `HEAD` of a repository without a commit.
pub(super) fn head(repository: &Repository, revision: &str) -> Result<Option<String>, Error> {
    match repository.commit(revision) {
        Ok(commit) => Ok(Some(commit)),
        Err(_) if revision == "HEAD" => Ok(None),
        Err(error) => {
            let hint = error.hint().unwrap_or_else(|| "name a branch, a tag or a commit".to_owned());
            Err(Error::refused(error.to_string(), hint))
        }
    }
}

/// The reports of an experiment that the commits up to `head` have.
pub(super) fn points_until(
    head: &str,
    (project, repository): (&ProjectRoot, &Repository),
    experiment: &str,
    wanted: Wanted<'_>,
    ui: &Ui,
) -> Found {
    let mut found = Found::default();
    // One report that cannot be read does not hide the rest.
    for point in all_points((project, repository), experiment, head, wanted) {
        match point {
            Ok(point) => found.0.push(point),
            Err(error) => {
                ui.note(&format!("left out: {error}"));
                found.1 = Some(error);
            }
        }
    }
    found
}

/// Adds what was measured here and never committed; times of one form sort as texts.
fn add_records(project: &ProjectRoot, experiment: &str, points: &mut Vec<Point>) {
    let known: HashSet<String> = points.iter().map(|point| point.results.record.clone()).collect();
    let folders = std::fs::read_dir(project.records(experiment)).into_iter().flatten().flatten();
    let is_whole = |results: &Results| {
        // What was merged from several machines has other cells.
        let is_of_one = results.cells.iter().all(|cell| Device::machine_in(cell.names.device()).is_none());
        let Measured { complete, quick, restrictions, .. } = &results.measured;
        *complete && !quick && restrictions.is_empty() && is_of_one
    };
    let found = folders.filter_map(|folder| super::records::results_of_folder(&folder.path()).ok());
    let found = found.filter(|results| is_whole(results) && !known.contains(&results.record));
    points.extend(found.map(|results| Point { name: "record".to_owned(), commit: None, results }));
    points.sort_by(|one, other| one.results.measured.sessions.last().cmp(&other.results.measured.sessions.last()));
}

/// The names that cells of any point have.
fn vocabulary(points: &[Point]) -> Vocabulary {
    let cells = || points.iter().flat_map(|point| &point.results.cells);
    let dimensions = Some(BTreeSet::from([experiment::BATCH.to_owned()]));
    let mut vocabulary = Vocabulary { dimensions, ..Vocabulary::default() };
    for axis in Axis::ALL {
        let names: BTreeSet<String> = cells().map(|cell| cell.names[axis].clone()).collect();
        vocabulary.names[axis] = Some(names.into_iter().collect());
    }
    vocabulary
}

/// Whether a cell is among those of `--only`, by its names.
///
/// # Errors
///
/// A selector with a name that no cell of the points has.
fn wanted(only: Option<&str>, points: &[Point]) -> Result<impl Fn(&Cell) -> bool + use<>, Error> {
    let selector = only.map(|text| specs::only(text, &vocabulary(points))).transpose()?;
    let matcher = selector.map(|selector| selector.matcher());
    Ok(move |cell: &Cell| {
        let coordinate = |key: &str| match Axis::of_singular(key) {
            Some(axis) => Some(cell.names[axis].clone()),
            None => (key == experiment::BATCH).then(|| cell.batch.map(|batch| batch.to_string())).flatten(),
        };
        matcher.as_ref().is_none_or(|matcher| matcher.matches(&coordinate))
    })
}

/// A figure for each cell, and the numbers.
fn write(found: &History, folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    for (series, name) in found.series.iter().zip(report::history::names(found)) {
        let file = format!("{}-{}.svg", report::plots::slug(&series.names.path()), found.metric);
        write_whole(&folder.join(file), report::history::course(found, series, &name, None).svg().as_bytes())?;
    }
    let text = json_text(found)?;
    write_whole(&folder.join("history.json"), (text + "\n").as_bytes())?;
    Ok(())
}
