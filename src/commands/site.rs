//! `perfrun site`: static pages over all experiments and their commits.

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;

use super::history::{head, no_metric, own_metrics, points_until, readable};
use super::points::{experiments, path_in_git};
use crate::ui::Ui;
use crate::ui::cli::{MetricArgument, SiteArgs};
use crate::ui::error::{Error, ExitCode};
use base::metric::MetricReference;
use base::name::is_name;
use judge::history::Point;
use judge::results::{self, Wanted};
use reading::plain_file;
use record::git::Repository;
use record::{ProjectRoot, write_whole};
use report::site::{Known, Site, columns};

pub(super) fn run(arguments: &SiteArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let output = arguments.output.as_ref().unwrap_or(&arguments.folder);
    check_folder(output)?;
    let repository = readable(&project, ui);
    let known = known(&project, repository.as_ref(), arguments, ui)?;
    if known.is_empty() {
        let help = "run `perfrun experiments/x.yaml` and commit reports/x";
        return Err(Error::refused("there is no report to show", help));
    }
    let found = || repository.as_ref().and_then(Repository::commit_url);
    let url = arguments.commit_url.clone().or_else(found);
    let is_one = |metric: &&MetricArgument| known.iter().any(|known| metric.read(&own_metrics(&known.points)).is_ok());
    if let Some(wrong) = arguments.metric.iter().find(|metric| !is_one(metric)) {
        return Err(no_metric(format!("there is no metric `{wrong}`")));
    }
    let of_experiment = |points: &[Point]| -> Vec<MetricReference> {
        let own_metrics = own_metrics(points);
        arguments.metric.iter().flat_map(|metric| metric.read(&own_metrics)).collect()
    };
    let site = Site::new(&known, &of_experiment, url.as_deref());
    let write = |(path, text): (String, String)| {
        let path = output.join(path);
        let folder = path.parent().unwrap_or(output);
        std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
        Ok::<(), Error>(write_whole(&path, text.as_bytes())?)
    };
    let pages = site.pages()?;
    let count = pages.len();
    pages.into_iter().try_for_each(write)?;
    let points = site.points();
    let each = points.par_iter().map(|point| site.point(*point).map_err(Error::from).and_then(write));
    let written: Vec<Result<(), Error>> = each.collect();
    written.into_iter().collect::<Result<(), Error>>()?;
    let index = output.join("index.html");
    super::print(
        ui,
        &ui.labelled_text("wrote", &format!("{} and {} more pages", index.display(), count + points.len() - 1)),
    )
}

/// A folder of something else is not written into.
fn check_folder(folder: &Path) -> Result<(), Error> {
    let is_empty = std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    let index = plain_file::text(&folder.join("index.html")).unwrap_or_default();
    if is_empty || index.contains("content=\"perfrun ") {
        return Ok(());
    }
    let message = format!("{} is not empty and is not a perfrun site", folder.display());
    Err(Error::refused(message, "name another folder"))
}

/// Every experiment with its reports: those of commits, and that of the working tree where nobody committed it yet.
fn known(
    project: &ProjectRoot,
    repository: Option<&Repository>,
    arguments: &SiteArgs,
    ui: &Ui,
) -> Result<Vec<Known>, Error> {
    // A repository without a commit, or none at all, has the reports that lie there.
    let head = repository.map(|repository| head(repository, &arguments.revision)).transpose()?.flatten();
    let committed = repository.zip(head.as_ref());
    let mut names: BTreeSet<String> = experiments(project).into_iter().collect();
    if let Some((repository, head)) = committed {
        let reports = path_in_git(project, repository, "reports/");
        let files = repository.files(head, &reports);
        let folders =
            files.iter().filter_map(|path| path.strip_prefix(&reports)?.strip_suffix(&format!("/{}", results::FILE)));
        names.extend(folders.map(str::to_owned));
    }
    let metrics: Vec<MetricReference> = arguments.metric.iter().flat_map(|metric| metric.read(&[])).collect();
    let columns = columns(&metrics);
    let wanted = Wanted { metrics: &columns, claims: true };
    let mut known = Vec::new();
    for name in names.into_iter().filter(|name| is_folder(name)) {
        let mut found: Vec<Point> = Vec::new();
        if let Some((repository, head)) = committed {
            found = points_until(head, (project, repository), &name, wanted, ui).0;
        }
        let file = project.report(&name).join(results::FILE);
        if arguments.revision == "HEAD" && file.is_file() {
            match results::read(&file) {
                Ok(results) if found.iter().all(|point| point.results.record != results.record) => {
                    found.push(Point { name: "working tree".to_owned(), commit: None, results });
                }
                Ok(_) => {}
                Err(error) => ui.note(&format!("left out: {error}")),
            }
        }
        if !found.is_empty() {
            known.push(Known { name, points: found });
        }
    }
    Ok(known)
}

/// Names of folders become paths and links: that of an experiment, or of its report on another machine (`x@laptop`).
fn is_folder(name: &str) -> bool {
    name.split('@').all(is_name)
}
