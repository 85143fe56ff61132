//! `perfrun list` and `perfrun clean`: the records that lie here, and room for new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;
use walkdir::WalkDir;

use super::{print, print_json};
use crate::ui::cli::{CleanArgs, ListArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, table};
use experiment::Grade;
use judge::compare::judge;
use judge::results;
use judge::summary::summarize_briefly;
use record::hold::Hold;
use record::{Manifest, ProjectRoot, Record};
use report::format::{bytes, count};
use report::page::{Table, TableCell, TableColumn};

/// A row of the list.
#[derive(Debug, Serialize)]
struct Listed {
    experiment: String,
    record: String,
    /// When its first invocation began: UTC, RFC 3339.
    measured: Option<String>,
    commit: Option<String>,
    /// Cells that are run.
    cells: usize,
    /// What its control says of the machine: `A` to `D`.
    grade: Option<&'static str>,
    /// `complete`, `unfinished`, `being measured`, `quick look`, or why it cannot be read.
    state: String,
    bytes: u64,
}

pub(super) fn list(arguments: &ListArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let listed: Vec<Listed> = project.all_records().iter().rev().map(|folder| Listed::of(folder)).collect();
    if arguments.json {
        return print_json(ui, &listed);
    }
    if listed.is_empty() {
        return print(ui, "no records yet; `perfrun experiments/x.yaml` makes one\n");
    }
    print(ui, &format!("{}\n", table::render(&overview(&listed), ui.width())))
}

impl Listed {
    fn of(folder: &Path) -> Self {
        let (experiment, record) = (folder.parent().map(name_of).unwrap_or_default(), name_of(folder));
        let bytes = size(folder);
        let summarized = Record::open(folder).and_then(|opened| {
            let summary = summarize_briefly(&opened.manifest, &opened.runs)?;
            Ok((opened.manifest, summary))
        });
        let (manifest, summary) = match summarized {
            Ok(summarized) => summarized,
            Err(error) => {
                let (measured, commit, grade) = (None, None, None);
                return Listed {
                    experiment,
                    record,
                    measured,
                    commit,
                    cells: 0,
                    grade,
                    state: error.to_string(),
                    bytes,
                };
            }
        };
        let state = match (manifest.findings.complete, manifest.quick) {
            (false, _) if Hold::check_free(folder).is_err() => "being measured",
            (false, _) => "unfinished",
            (true, true) => "quick look",
            (true, false) => "complete",
        };
        let judged = judge(&manifest, &summary);
        Listed {
            experiment,
            record,
            measured: manifest.findings.invocations.first().map(|invocation| invocation.started.clone()),
            commit: manifest.revision.as_ref().map(|revision| revision.commit.clone()),
            cells: manifest.plan.runnable().count(),
            grade: judged.detectable_effect.grade.map(Grade::letter),
            state: state.to_owned(),
            bytes,
        }
    }
}

/// The last part of a path.
fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn size(folder: &Path) -> u64 {
    let files = WalkDir::new(folder).into_iter().filter_map(Result::ok);
    files.filter_map(|entry| entry.metadata().ok()).filter(|file| file.is_file()).map(|file| file.len()).sum()
}

fn overview(listed: &[Listed]) -> Table {
    let columns = vec![
        TableColumn::text("experiment"),
        TableColumn::text("record"),
        TableColumn::text("measured").optional(),
        TableColumn::text("commit").optional(),
        TableColumn::number("cells").optional(),
        TableColumn::text("grade").optional(),
        TableColumn::number("size"),
        TableColumn::text("state"),
    ];
    let row = |listed: &Listed| {
        // `2026-11-20T10:11:12Z` to the minute.
        let measured = listed.measured.as_deref().map(|time| time.get(..16).unwrap_or(time).replace('T', " "));
        let commit = listed.commit.as_deref().map(|commit| commit.get(..7).unwrap_or(commit).to_owned());
        let texts = [
            listed.experiment.clone(),
            listed.record.clone(),
            measured.unwrap_or_default(),
            commit.unwrap_or_default(),
            listed.cells.to_string(),
            listed.grade.unwrap_or("-").to_owned(),
            bytes(listed.bytes),
            listed.state.clone(),
        ];
        texts.map(TableCell::from).to_vec()
    };
    Table::of(columns, listed.iter().map(row))
}

pub(super) fn clean(arguments: &CleanArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let going = superfluous(&project, arguments)?;
    if going.is_empty() {
        return print(ui, "nothing to remove\n");
    }
    let all: u64 = going.iter().map(|folder| size(folder)).sum();
    let lines: Vec<String> = going.iter().map(|folder| project.relative(folder)).collect();
    print(ui, &format!("{}\n", lines.join("\n")))?;
    let what = format!("{}, {}", count(going.len() as u64, "record"), bytes(all));
    if !arguments.yes && !confirmed(&what, ui)? {
        ui.note("nothing was removed");
        return Ok(ExitCode::Done);
    }
    for folder in &going {
        let _hold = Hold::take(folder)?;
        std::fs::remove_dir_all(folder).map_err(|source| Error::remove(folder, source))?;
    }
    ui.note(&format!("removed {what}"));
    Ok(ExitCode::Done)
}

/// The records that are older than the newest complete one of their experiment, but for the newest whole ones and those
/// that a committed report is made from. An interrupted record or a quick look does not count as the newest
/// whole one, and a record newer than those that stay may still be measured.
fn superfluous(project: &ProjectRoot, arguments: &CleanArgs) -> Result<Vec<PathBuf>, Error> {
    let reported = reported(project)?;
    let mut by_experiment: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for folder in project.all_records() {
        let experiment = folder.parent().unwrap_or(&folder).to_owned();
        by_experiment.entry(experiment).or_default().push(folder);
    }
    if let Some(wanted) =
        arguments.experiments.iter().find(|wanted| !by_experiment.keys().any(|folder| name_of(folder) == **wanted))
    {
        return Err(Error::refused(format!("no record of `{wanted}`"), "`perfrun list` shows what is here"));
    }
    let is_asked =
        |experiment: &Path| arguments.experiments.is_empty() || arguments.experiments.contains(&name_of(experiment));
    let mut going = Vec::new();
    for (experiment, folders) in by_experiment {
        if !is_asked(&experiment) {
            continue;
        }
        let manifests: Vec<Option<Manifest>> = folders.iter().map(|folder| Manifest::read(folder).ok()).collect();
        let newest_first = || manifests.iter().enumerate().rev().filter_map(|(at, it)| Some((at, it.as_ref()?)));
        let complete = newest_first().find(|(_, manifest)| manifest.findings.complete).map(|(at, _)| at);
        // Shards are needed until they are merged: what is merged is whole, and newer.
        let whole = newest_first().find(|(_, it)| is_whole(it)).map_or(0, |(at, _)| at);
        let waits = |at: usize| at >= whole && manifests[at].as_ref().is_some_and(is_shard);
        let kept: Vec<usize> =
            newest_first().filter(|(_, it)| is_whole(it)).map(|(at, _)| at).take(arguments.keep as usize).collect();
        let old = if arguments.keep == 0 { folders.len() } else { complete.unwrap_or(0) };
        let stays = |at: usize| arguments.keep > 0 && (kept.contains(&at) || waits(at));
        let is_old =
            |(at, folder): &(usize, &PathBuf)| *at < old && !stays(*at) && !reported.contains(&name_of(folder));
        let is_free = |folder: &PathBuf| Hold::check_free(folder).is_ok();
        going.extend(folders.iter().enumerate().filter(is_old).map(|(_, folder)| folder.clone()).filter(is_free));
    }
    Ok(going)
}

/// Whether a record says what its whole specification asks: no quick look or part of it, and no record of nothing.
fn is_whole(manifest: &Manifest) -> bool {
    manifest.findings.complete && manifest.restrictions.is_empty() && manifest.plan.runnable().next().is_some()
}

/// Whether a record is a part of a matrix, to be merged with the others.
fn is_shard(manifest: &Manifest) -> bool {
    manifest.restrictions.iter().any(|restriction| restriction.starts_with("--shard"))
}

/// Names of the records that reports of the working tree are made from.
///
/// # Errors
///
/// A report that cannot be read: its record would be taken for one that nobody needs.
fn reported(project: &ProjectRoot) -> Result<BTreeSet<String>, Error> {
    let folders = std::fs::read_dir(project.root.join("reports")).into_iter().flatten().flatten();
    let files = folders.map(|entry| entry.path().join(results::FILE)).filter(|file| file.is_file());
    files.map(|file| Ok(results::read(&file)?.record)).collect()
}

/// Asks on the terminal; without one nobody can answer.
fn confirmed(what: &str, ui: &Ui) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::refused(
            format!("cannot ask for confirmation to remove {what}"),
            "add --yes to remove them without asking",
        ));
    }
    ui.ask(&format!("remove {what}? [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| Error::attempt("cannot read standard input", source))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
