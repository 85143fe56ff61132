//! `perfrun report`, and where the report of a run goes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tracing::info;

use super::{records, step_summary};
use crate::ui::cli::{ReportArgs, RunArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, conclusion};
use base::machine::host;
use base::printable::printable;
use experiment::Grade;
use judge::compare::{GoalCheck, GoalOutcome, judge};
use judge::results::{self, Cell, Results, Status};
use judge::summary::summarize;
use plan::CellId;
use reading::{plain_file, shell};
use record::provenance::{self, Facts};
use record::{Manifest, ProjectRoot, Record, StoreError, write_whole};
use report::format::{count, some};
use report::{self, Composed, Format, Rendered, UserTemplate};
use spec::Loaded;

pub(super) fn run(arguments: &ReportArgs, ui: &Ui) -> Result<ExitCode, Error> {
    if let Some(file) = results_alone(&arguments.record).filter(|_| arguments.trace.is_none()) {
        return of_results(&file, arguments, ui);
    }
    // A path is taken at its word; anything else is a name.
    let found = match arguments.record.exists() {
        true => one_report(&arguments.record)?,
        false => records::find(&ProjectRoot::here()?, &arguments.record.to_string_lossy())?,
    };
    if let Some(cell) = &arguments.trace {
        return super::trace::print(&found, cell, ui);
    }
    let record = Record::open(&found)?;
    if let Some(note) = why_empty(&record) {
        ui.note(&note);
    }
    let folder = arguments.output.clone().unwrap_or_else(|| match arguments.check {
        true => committed(&record),
        false => record.folder.clone(),
    });
    let templates = templates(&arguments.template, &folder)?;
    if arguments.check {
        let summary = summarize(&record.manifest, &record.runs)?;
        let results = results::results(&record.manifest, &summary, &judge(&record.manifest, &summary));
        let composed = report::compose(&results, Some(&record.runs));
        return check(&composed, composed.render(&arguments.format)?, &templates, &folder, ui);
    }
    let written = write(&record, Destination::replacing(&folder), &arguments.format, &templates, ui)?;
    if arguments.open {
        open(&written.files, ui);
    }
    Ok(ExitCode::Done)
}

/// The folder of the report that is checked: the committed one, where there is one.
fn committed(record: &Record) -> PathBuf {
    let project = std::path::absolute(&record.folder).ok().and_then(|folder| ProjectRoot::of(&folder).ok());
    let folder = project.map(|project| project.report(&record.manifest.experiment.name));
    folder.filter(|folder| folder.is_dir()).unwrap_or_else(|| record.folder.clone())
}

/// What ended a record before its first run, and the newest record that has any.
fn why_empty(record: &Record) -> Option<String> {
    let manifest = &record.manifest;
    if !record.runs.is_empty() || manifest.findings.complete {
        return None;
    }
    let setups = manifest.experiment.models.iter().filter_map(|model| model.command.as_ref()?.setup.as_deref());
    let why = match setups.into_iter().next().filter(|_| manifest.findings.setup.is_none()) {
        Some(setup) => format!("`setup: {setup}` failed or was stopped"),
        None => "it ended before the first run".to_owned(),
    };
    let project = ProjectRoot::of(&std::path::absolute(&record.folder).ok()?).ok()?;
    let has_runs = |folder: &&PathBuf| Record::open(folder).is_ok_and(|record| !record.runs.is_empty());
    let newest = project.all_records().iter().rev().find(has_runs).map(|folder| project.relative(folder));
    let newest = newest.map_or("no other record has any".to_owned(), |newest| {
        format!("the newest with any: `perfrun report {newest}`")
    });
    Some(format!("{} has no runs: {why}; {newest}", manifest.record))
}

/// The `results.json` that is meant: the file itself, or that of a folder which is no record.
fn results_alone(path: &Path) -> Option<PathBuf> {
    let inside = path.join(results::FILE);
    match path.is_file() {
        true => Some(path.to_owned()),
        false => (!path.join(Manifest::FILE).is_file() && inside.is_file()).then_some(inside),
    }
}

/// The folder, unless it is one of reports or records. Records sort by the time that they began.
fn one_report(folder: &Path) -> Result<PathBuf, Error> {
    const MOST_NAMED: usize = 8;
    let inside = |file: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut found: Vec<PathBuf> = entries.filter(|entry| entry.join(file).is_file()).collect();
        found.sort();
        found
    };
    if folder.join(Manifest::FILE).is_file() {
        return Ok(folder.to_owned());
    }
    let records: Vec<PathBuf> = inside(Manifest::FILE).into_iter().rev().collect();
    let (found, what, order) = if records.is_empty() {
        (inside(results::FILE), "report", "it has")
    } else {
        (records, "record", "the newest first:")
    };
    let Some(first) = found.first() else { return Ok(folder.to_owned()) };
    let names = found.iter().filter_map(|inside| inside.file_name()).map(|name| name.to_string_lossy().into_owned());
    let names = some(names.collect::<Vec<_>>().into_iter(), MOST_NAMED).join(", ");
    Err(Error::refused(
        format!("{} is not a {what}, but a folder of {}", folder.display(), count(found.len() as u64, what)),
        format!("{order} {names}; for example `perfrun report {}`", shell::word(&first.to_string_lossy())),
    ))
}

/// Writes a report of results alone, next to them or where `--output` says. Distributions and courses take samples.
fn of_results(file: &Path, arguments: &ReportArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let results = results::read(file)?;
    let folder = arguments.output.clone().unwrap_or_else(|| file.parent().unwrap_or(Path::new(".")).to_owned());
    let (mut formats, mut without_samples) = (arguments.format.clone(), Vec::new());
    let is_input = |format: &Format| format.file == results::FILE && arguments.output.is_none();
    // A page that was made with the record's samples has more than one that is made without.
    let has_more =
        |format: &Format| format.is_whole_page() && arguments.output.is_none() && folder.join(format.file).is_file();
    if formats.iter().any(|format| is_input(format) || has_more(format)) {
        let kept: Vec<PathBuf> =
            formats.iter().filter(|format| has_more(format)).map(|it| folder.join(it.file)).collect();
        // What another format leaves out would be lost.
        if formats.iter().all(|format| is_input(format) || has_more(format)) {
            let message = match kept.first() {
                Some(page) => {
                    format!("{} may have distributions, which results.json alone cannot draw", page.display())
                }
                None => format!("{} is the input and would be overwritten", file.display()),
            };
            return Err(Error::refused(message, "name another folder with --output"));
        }
        for page in kept.iter().filter(|_| !arguments.check) {
            ui.note(&format!(
                "{} is kept: it may have distributions, which results.json alone cannot draw (--output DIR writes a page without)",
                typed(page)
            ));
        }
        without_samples = formats.iter().copied().filter(|format| has_more(format)).collect();
        formats.retain(|format| !is_input(format) && !has_more(format));
    }
    let templates = templates(&arguments.template, &folder)?;
    let composed = report::compose(&results, None);
    if arguments.check {
        return check(&composed, composed.render_only(&formats, &without_samples)?, &templates, &folder, ui);
    }
    let written = write_all(&composed, composed.render_only(&formats, &without_samples)?, &templates, &folder)?;
    if arguments.open {
        open(&written, ui);
    }
    if formats.iter().any(|format| format.is_whole_page()) {
        ui.note("results.json has no samples, so distributions and samples over time are not drawn");
    }
    say(&composed, &ui.labelled_text("wrote", &shown(&folder, &written)), ui)?;
    Ok(ExitCode::Done)
}

/// The table and the answer, then the paths.
fn say(composed: &report::Composed, paths: &str, ui: &Ui) -> Result<(), Error> {
    let text = conclusion::render(&composed.conclusion(), ui) + &printable(paths);
    ui.styled_data(&text).map_err(|source| Error::attempt("cannot write to standard output", source))
}

/// Says which files of a folder are not what would be written there.
fn check(
    composed: &Composed<'_>,
    rendered: Rendered,
    templates: &[UserTemplate],
    folder: &Path,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    let (rendered, filled) = with_templates(composed, rendered, templates)?;
    let reports = rendered.files.iter().map(|(format, content)| (format.file, content.as_slice()));
    let plots = rendered.plots.iter().flatten().map(|(file, svg)| (file.as_str(), svg.as_bytes()));
    let from_templates = filled.iter().map(|(file, text)| (*file, text.as_bytes()));
    let mut lines = String::new();
    let mut code = ExitCode::Done;
    for (file, content) in reports.chain(from_templates).chain(plots) {
        let path = folder.join(file);
        let there = plain_file::bytes(&path);
        let word = match &there {
            Ok(there) if there == content => continue,
            Ok(_) => "changes",
            Err(_) => "missing",
        };
        code = ExitCode::CheckFailed;
        lines.push_str(&ui.labelled_text(word, &typed(&path)));
    }
    if code == ExitCode::Done {
        lines = ui.labelled_text("unchanged", &typed(folder));
    }
    super::print(ui, &lines)?;
    Ok(code)
}

/// File name and content of each template that was filled.
type Filled<'a> = Vec<(&'a str, String)>;

/// A rendered report with the figures that templates may show, and the templates filled with the same page.
fn with_templates<'a>(
    composed: &Composed<'_>,
    mut rendered: Rendered,
    templates: &'a [UserTemplate],
) -> Result<(Rendered, Filled<'a>), Error> {
    if !templates.is_empty() {
        rendered.plots = Some(composed.figures());
    }
    let filled = templates.iter().map(|template| Ok((template.output(), composed.fill(template)?)));
    Ok((rendered, filled.collect::<Result<_, Error>>()?))
}

/// Writes a rendered report and the user's templates filled with the same page; nothing unless everything can be made.
fn write_all(
    composed: &Composed<'_>,
    rendered: Rendered,
    templates: &[UserTemplate],
    folder: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let (rendered, filled) = with_templates(composed, rendered, templates)?;
    std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    let mut written = report::write(&rendered, folder)?;
    for (name, text) in filled {
        write_whole(&folder.join(name), text.as_bytes())?;
        written.push(folder.join(name));
    }
    Ok(written)
}

/// Reads the user's templates, none of which may make what another file is.
fn templates(files: &[PathBuf], folder: &Path) -> Result<Vec<UserTemplate>, Error> {
    let mut templates: Vec<UserTemplate> = Vec::new();
    for file in files {
        let template = UserTemplate::read(file)?;
        if template.would_replace_itself(folder) {
            return Err(template.in_the_way("the template").into());
        }
        if templates.iter().any(|other| other.output() == template.output()) {
            return Err(template.in_the_way("the result of another template").into());
        }
        templates.push(template);
    }
    Ok(templates)
}

/// Where a report goes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The folder; `None`: the record's own.
    pub(super) folder: Option<PathBuf>,
    /// What to say about it before measuring.
    pub(super) note: Option<String>,
}

/// Where the report of a specification goes: `reports/<experiment>/` only for a complete run of the specification as it
/// stands in its file, and never over one of another machine.
///
/// # Errors
///
/// A folder that cannot be written, which is better known before measuring than after.
pub(super) fn target(project: &ProjectRoot, loaded: &Loaded, arguments: &RunArgs) -> Result<Target, Error> {
    let whole = super::specs::restrictions(&arguments.overrides).is_empty() && !arguments.has_no_file;
    let target = choose(project, &loaded.experiment.name, whole, &Wanted::of(arguments));
    if let Some(folder) = &target.folder {
        check_writable(folder)?;
    }
    Ok(target)
}

/// As [`target`], for a record that is taken up again.
pub(super) fn target_of_record(project: &ProjectRoot, record: &Record, arguments: &RunArgs) -> Target {
    let manifest = &record.manifest;
    let now = plain_file::text(&project.root.join(&manifest.spec.path));
    if arguments.output.is_none() && !now.is_ok_and(|text| text == manifest.spec.text) {
        let note = format!(
            "{} has changed since this record began; the report goes into the record's folder",
            manifest.spec.path
        );
        return Target { folder: None, note: Some(note) };
    }
    choose(project, &manifest.experiment.name, manifest.restrictions.is_empty(), &Wanted::of(arguments))
}

/// Where the user wants a report.
pub(super) struct Wanted<'a> {
    pub(super) output: Option<&'a Path>,
    /// Even over one of another machine.
    pub(super) replace: bool,
    /// The name of this machine.
    pub(super) machine: Option<&'a str>,
    /// What identifies this machine.
    pub(super) here: Facts,
}

impl<'a> Wanted<'a> {
    fn of(arguments: &'a RunArgs) -> Self {
        Wanted {
            output: arguments.output.as_deref(),
            replace: arguments.replace,
            machine: arguments.machine.as_deref(),
            here: provenance::machine(&host::describe()),
        }
    }
}

pub(super) fn choose(project: &ProjectRoot, experiment: &str, whole: bool, wanted: &Wanted<'_>) -> Target {
    if let Some(output) = wanted.output {
        return Target { folder: Some(output.to_owned()), note: None };
    }
    if !whole {
        return Target { folder: None, note: None };
    }
    let folder = project.report(experiment);
    let Some(why) = why_it_stays(&folder, &wanted.here).filter(|_| !wanted.replace) else {
        return Target { folder: Some(folder), note: None };
    };
    let name = wanted.machine.map_or_else(|| provenance::name_of_machine(&wanted.here), str::to_owned);
    let of_machine = project.report(&format!("{experiment}@{name}"));
    let note = format!(
        "{} {why} and is kept; this report goes to {} (--replace overwrites it)",
        project.relative(&folder),
        project.relative(&of_machine)
    );
    Target { folder: Some(of_machine), note: Some(note) }
}

/// Why the report in a folder is not to be replaced from this machine; `None` where there is none, or it is of this one.
fn why_it_stays(folder: &Path, here: &Facts) -> Option<String> {
    match results::read(&folder.join(results::FILE)) {
        Ok(there) => {
            let differences = provenance::differences(&there.provenance.frame, here);
            let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
            (!words.is_empty()).then(|| format!("was measured on another machine ({})", words.join("; ")))
        }
        Err(StoreError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("cannot be read ({error})")),
    }
}

/// Why the report in a folder is worth more than another one: it measured cells that are skipped now, or, where this one
/// measured no more than that, its grade is better; a record without a grade has no control to be judged by, and yields
/// nothing. What an older text of the specification gave is worth nothing now.
fn better(folder: &Path, manifest: &Manifest, here: &Results, grade: Option<Grade>) -> Option<String> {
    let there = results::read(&folder.join(results::FILE)).ok()?;
    let text = there.provenance.subject.get("specification").and_then(|it| it.get("text"));
    text.filter(|text| *text == manifest.spec.text.as_str())?;
    let known: HashMap<CellId, Status> = there.cells.iter().map(|cell| (cell.id, cell.status)).collect();
    let measured = |status: Option<&Status>| match status {
        Some(Status::Measured) => 2,
        Some(Status::Partial) => 1,
        Some(Status::Failed | Status::Skipped | Status::NotRun) | None => 0,
    };
    let is_gained = |cell: &&Cell| measured(Some(&cell.status)) > measured(known.get(&cell.id));
    let gained = here.cells.iter().filter(is_gained).count();
    let is_lost = |cell: &&Cell| cell.status == Status::Skipped && measured(known.get(&cell.id)) > 0;
    let lost = here.cells.iter().filter(is_lost).count();
    if lost > 0 && lost >= gained {
        return Some(format!("it measured {} that this run skipped", count(lost as u64, "cell")));
    }
    let committed = there.detectable_effect.grade.filter(|_| gained == 0)?;
    let worse = grade.filter(|grade| *grade > committed)?;
    Some(format!("its grade is {}, this run's {}", committed.letter(), worse.letter()))
}

fn check_writable(folder: &Path) -> Result<(), Error> {
    let failed = |source| Error::write(folder, source);
    std::fs::create_dir_all(folder).map_err(failed)?;
    let written = tempfile::tempfile_in(folder).map(|_| ()).map_err(failed);
    // Only empty folders can be removed this way: what the test made and nobody else's.
    let _filled = std::fs::remove_dir(folder).and_then(|()| folder.parent().map_or(Ok(()), std::fs::remove_dir));
    written
}

/// Where a report is written.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) folder: &'a Path,
    /// A report that is worth more and lies there stays.
    pub(super) yields: bool,
    /// It is the report of a run, which is appended to GitHub's step summary too.
    pub(super) is_of_run: bool,
    /// results.json goes to standard output, in place of the table.
    pub(super) as_json: bool,
}

impl<'a> Destination<'a> {
    /// Into a folder, whatever lies there.
    pub(super) fn replacing(folder: &'a Path) -> Self {
        Destination { folder, yields: false, is_of_run: false, as_json: false }
    }
}

/// A report that was written.
pub(super) struct Written {
    pub(super) files: Vec<PathBuf>,
    /// What the goals of the specification come to: one is missed, or undecided where that counts as missed; of one nothing was
    /// measured.
    pub(super) goals: ExitCode,
}

/// Summarises and writes the report with the user's templates, then shows table, answer and paths. Where the folder holds
/// a report that is worth more and this one yields, it goes into its record, and that is said.
pub(super) fn write(
    record: &Record,
    to: Destination<'_>,
    formats: &[Format],
    templates: &[UserTemplate],
    ui: &Ui,
) -> Result<Written, Error> {
    let manifest = &record.manifest;
    let summary = summarize(manifest, &record.runs)?;
    let judged = judge(manifest, &summary);
    let results = results::results(manifest, &summary, &judged);
    let composed = report::compose(&results, Some(&record.runs));
    let stays = if to.yields && to.folder != record.folder {
        better(to.folder, manifest, &results, judged.detectable_effect.grade)
    } else {
        None
    };
    let folder = if stays.is_some() { &record.folder } else { to.folder };
    let written = write_all(&composed, composed.render(formats)?, templates, folder)?;
    let mut paths = ui.labelled_text("wrote", &shown(folder, &written));
    if let Some(why) = stays {
        paths
            .push_str(&ui.labelled_text("", &format!("{} is kept: {why} (--replace overwrites it)", typed(to.folder))));
    }
    written.iter().for_each(|path| info!("wrote {}", path.display()));
    if to.as_json {
        super::print(ui, &(super::json_text(&results)? + "\n"))?;
    } else {
        say(&composed, &paths, ui)?;
    }
    if to.is_of_run {
        step_summary::append(|| Ok(composed.first_page_alone()?), ui);
    }
    let is_strict = manifest.experiment.goals_strict;
    let is_measured = super::records::was_measured(record);
    let falls = |goal: &GoalCheck| match goal.outcome {
        GoalOutcome::Met => false,
        GoalOutcome::Missed => true,
        // Where nothing was measured the exit code says that.
        GoalOutcome::Undecided => is_strict && !manifest.quick && is_measured,
    };
    // A promise about cells of which none is run was not looked at.
    let is_unseen =
        |goal: &GoalCheck| goal.check.cells.is_empty() && !manifest.quick && manifest.restrictions.is_empty();
    let goals = match (judged.goals.iter().any(falls), judged.goals.iter().any(is_unseen)) {
        (true, _) => ExitCode::CheckFailed,
        (false, true) => ExitCode::RunsFailed,
        (false, false) => ExitCode::Done,
    };
    Ok(Written { files: written, goals })
}

/// A path as the user would type it.
fn typed(path: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.strip_prefix(&current).unwrap_or(&absolute).display().to_string()
}

/// The folder as the user would type it, then the files in it: `reports/x/report.md  report.html  results.json`.
fn shown(folder: &Path, written: &[PathBuf]) -> String {
    let names: Vec<_> = written.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
    // A break inside a path could not be copied, so the names are separated by spaces alone.
    format!("{}/{}", typed(folder), names.join("  "))
}

/// Opens the HTML file with what the desktop uses for it.
pub(super) fn open(written: &[PathBuf], ui: &Ui) {
    let Some(html) = written.iter().find(|path| path.extension().is_some_and(|extension| extension == "html")) else {
        ui.note("--open: no HTML report was written");
        return;
    };
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = std::process::Command::new(program).arg(html).spawn() {
        ui.note(&format!("--open: cannot start {program}: {error}"));
    }
}
