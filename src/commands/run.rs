//! `perfrun run`: validate, plan, measure, report.

use std::path::{Path, PathBuf};

use super::admission::{Admission, Wishes};
use super::earlier::report_of_this_machine;
use super::forecast::forecasts;
use super::once::{self, Earlier};
use super::records::was_measured;
use super::report::Destination;
use super::specs;
use super::validate::check_runs;
use crate::run::{self, Ended, Job, Prepared, Refusal};
use crate::ui::cli::RunArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, plan as listing};
use base::machine::host;
use experiment::Grade;
use files::scratch::Scratch;
use judge::summary::LEAST_RUNS;
use prepare::runtime;
use reading::plain_file;
use record::git::Repository;
use record::hold::Hold;
use record::provenance::{self, Facts};
use record::{LocalPaths, Outcome, ProjectRoot, Record};
use report::format::percent;
use spec::Loaded;
use worker::Interrupts;

pub(super) fn run(arguments: &RunArgs, ui: &Ui) -> Result<ExitCode, Error> {
    // Who was killed leaves what was unfinished.
    Scratch::remove_left(&runtime::cache_folder());
    let mut paths = arguments.specs.clone();
    match &arguments.resume {
        // A specification, of which the newest record is meant, or a record by its name.
        Some(Some(file)) if file.is_file() => paths.push(file.clone()),
        Some(Some(folder)) if paths.is_empty() => {
            let named = || ProjectRoot::here().ok()?.record(folder.to_str()?);
            let folder = if folder.is_dir() { folder.clone() } else { named().unwrap_or_else(|| folder.clone()) };
            return resume(&folder, arguments, &super::interrupts()?, ui);
        }
        Some(Some(folder)) => {
            let message = format!("--resume {} cannot be combined with a specification", folder.display());
            return Err(Error::refused(message, "give the record, or the specification to resume its newest record"));
        }
        Some(None) if paths.is_empty() => {
            let newest = unfinished(&ProjectRoot::here()?, None)?;
            return resume(&newest, arguments, &super::interrupts()?, ui);
        }
        Some(None) | None => {}
    }
    let specs = specs::find(&paths)?;
    if let (Some(folder), [_, _, ..]) = (&arguments.output, specs.as_slice()) {
        let message = format!("{} reports cannot go to one folder, {}", specs.len(), folder.display());
        return Err(Error::refused(message, "leave out `--output`, or run one specification at a time"));
    }
    // Every file is checked before the first is measured: a mistake in the last one shows at once.
    let loaded = specs
        .iter()
        .map(|path| Ok((path.as_path(), specs::load(path, &arguments.overrides)?)))
        .collect::<Result<Vec<(&Path, Loaded)>, Error>>()?;
    check_names(&loaded)?;
    // Not before: whoever waits for a pipe can be interrupted as any other program.
    let interrupts = super::interrupts()?;
    let mut code = ExitCode::Done;
    for (path, mut loaded) in loaded {
        specs::obtain(&mut loaded, !arguments.dry_run, &interrupts, ui)?;
        ui.warnings(&loaded.warnings);
        let restrictions = specs::restrictions(&arguments.overrides);
        code = code.worst(measure_one(
            (path, &ProjectRoot::of(path)?),
            &loaded,
            arguments,
            restrictions,
            &interrupts,
            ui,
        )?);
        if code == ExitCode::Interrupted {
            break;
        }
    }
    Ok(code)
}

/// One specification, one record; `restrictions` are what makes it less than the specification.
pub(super) fn measure_one(
    (path, project): (&Path, &ProjectRoot),
    loaded: &Loaded,
    arguments: &RunArgs,
    restrictions: Vec<String>,
    interrupts: &Interrupts,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    if arguments.resume.is_some() {
        let folder = unfinished(project, Some(&loaded.experiment.name))?;
        return resume(&folder, arguments, interrupts, ui);
    }
    let mut prepared = run::prepare(&loaded.experiment)?;
    specs::select(&mut prepared, loaded, &arguments.overrides)?;
    if arguments.require_devices {
        require_devices(&prepared)?;
    }
    if arguments.dry_run {
        let expected = forecasts(&loaded.experiment, &prepared, project);
        return super::print(ui, &listing::describe(&loaded.experiment, &loaded.notes, &prepared, &expected));
    }
    specs::print_doubts(loaded, &prepared, ui);
    // The next specification may have cells that run.
    if let Err(nothing) = check_runs(&prepared, |_| false) {
        let code = nothing.exit_code();
        ui.error(nothing.into());
        return Ok(code);
    }
    let target = super::report::target(project, loaded, arguments)?;
    let experiment = &loaded.experiment;
    let admission = Admission::take_turn(experiment, &prepared.plan, wishes(arguments), project, interrupts, ui)?;
    let Some(mut admission) = admission else { return Ok(ExitCode::Interrupted) };
    // Not before it is this process's turn, since another may be measuring the same; reporting needs no quiet machine.
    let earlier = match arguments.once {
        true => once::earlier(project, loaded, &restrictions, &admission.libraries)?,
        false => None,
    };
    if let Some(Earlier::Complete(folder)) = &earlier {
        return report_complete(folder, project, &target, arguments, ui);
    }
    admission.wait_for_quiet(experiment, wishes(arguments), interrupts, ui)?;
    if let Some(Earlier::Unfinished(folder)) = &earlier {
        let Admission { libraries, invocation, executable, .. } = &admission;
        let mut job = run::resume(take_up(folder)?, libraries, invocation.clone(), executable.clone())?;
        job.spread = known_spread(project, &experiment.name);
        return execute(job, project, target, arguments, interrupts, (&admission, ui));
    }
    if !admission.try_devices(&mut prepared, &loaded.experiment, interrupts) {
        return Ok(ExitCode::Interrupted);
    }
    if arguments.require_devices {
        require_devices(&prepared)?;
    }
    let (overrides, quick) = (&arguments.overrides, arguments.overrides.quick);
    let provenance = admission.provenance((loaded, path), &overrides.set, restrictions, quick);
    let mut job = run::create(prepared, project, provenance)?;
    job.spread = known_spread(project, &loaded.experiment.name);
    execute(job, project, target, arguments, interrupts, (&admission, ui))
}

/// The newest record that `run` did not complete, or else the newest of all, if something failed in it.
fn unfinished(project: &ProjectRoot, experiment: Option<&str>) -> Result<PathBuf, Error> {
    let newest = || {
        let is_of = |folder: &PathBuf| experiment.is_none_or(|name| folder.starts_with(project.records(name)));
        let newest = project.all_records().into_iter().rfind(is_of)?;
        Record::open(&newest).is_ok_and(|record| can_go_on(&record)).then_some(newest)
    };
    project.newest_unfinished(experiment, &host::describe()).or_else(newest).ok_or_else(|| {
        let of_experiment = experiment.map(|name| format!(" of `{name}`")).unwrap_or_default();
        let message =
            format!("`perfrun run` left no unfinished record{of_experiment}, and nothing failed in the newest");
        Error::refused(message, "run it without --resume to begin a new one; `perfrun list` shows all records")
    })
}

/// Takes up a record, which nobody else may go on with meanwhile, as it is now.
fn take_up(folder: &Path) -> Result<(Record, Hold), Error> {
    let hold = Hold::take(folder)?;
    let record = Record::open(folder)?;
    check_unfinished(&record)?;
    Ok((record, hold))
}

/// Reports what an earlier start of the same job has measured.
fn report_complete(
    record: &Path,
    project: &ProjectRoot,
    target: &super::report::Target,
    arguments: &RunArgs,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    ui.labelled("complete", &format!("{} has measured this already", project.relative(record)));
    let record = Record::open(record)?;
    let folder = target.folder.as_ref().unwrap_or(&record.folder);
    let written = super::report::write(&record, Destination::replacing(folder), &arguments.format, &[], ui)?;
    let goals = written.goals;
    Ok(outcome(&record).worst(goals))
}

fn wishes(arguments: &RunArgs) -> Wishes<'_> {
    Wishes {
        runtime: arguments.runtime.as_deref(),
        wait: arguments.wait,
        no_wait: arguments.no_wait,
        always_in_turn: arguments.once,
    }
}

fn resume(folder: &Path, arguments: &RunArgs, interrupts: &Interrupts, ui: &Ui) -> Result<ExitCode, Error> {
    let record = Record::open(folder)?;
    check_unfinished(&record)?;
    run::check_format(&record)?;
    if !LocalPaths::is_here(folder) {
        let message = format!("{} was imported, so that it cannot be resumed here", folder.display());
        return Err(Error::refused(message, "resume it where it was measured, or run the specification anew"));
    }
    let absolute = std::path::absolute(folder).map_err(|source| Error::read(folder, source))?;
    let project = ProjectRoot::of(&absolute)?;
    let mut experiment = record.manifest.experiment.clone();
    LocalPaths::read(&record.folder)?.restore(&mut experiment);
    let admission = Admission::ask(&experiment, &record.manifest.plan, wishes(arguments), &project, interrupts, ui)?;
    let Some(admission) = admission else { return Ok(ExitCode::Interrupted) };
    let target = super::report::target_of_record(&project, &record, arguments);
    let Admission { libraries, invocation, executable, .. } = &admission;
    // Anew: another perfrun may have gone on with it while this one waited.
    let mut job = run::resume(take_up(folder)?, libraries, invocation.clone(), executable.clone())?;
    job.spread = known_spread(&project, &experiment.name);
    execute(job, &project, target, arguments, interrupts, (&admission, ui))
}

/// Whether runs are missing, or failed.
fn can_go_on(record: &Record) -> bool {
    let manifest = &record.manifest;
    let failed = || !record.failed_groups().is_empty() || lacks_accuracy(record);
    !manifest.findings.complete || manifest.is_of_run() && !manifest.quick && failed()
}

/// Whether an accuracy that was asked for could not be computed.
fn lacks_accuracy(record: &Record) -> bool {
    record.manifest.accuracy().iter().any(|known| known.problem.is_some())
}

/// There is something left to measure.
fn check_unfinished(record: &Record) -> Result<(), Error> {
    let folder = &record.folder;
    if !can_go_on(record) {
        let message = format!("{} is complete", folder.display());
        let cut = record.manifest.findings.budget.filter(|budget| budget.runs < budget.wanted);
        let help = match cut {
            Some(budget) => format!(
                "its budget of {} ended it after {} of {} runs; run again with a longer budget, or render it with `perfrun report`",
                budget.limit, budget.runs, budget.wanted
            ),
            None => format!(
                "`perfrun report {} --output reports/{}` writes its report again",
                record.manifest.record, record.manifest.experiment.name
            ),
        };
        return Err(Error::refused(message, help));
    }
    Ok(())
}

fn execute(
    mut job: Job,
    project: &ProjectRoot,
    target: super::report::Target,
    arguments: &RunArgs,
    interrupts: &Interrupts,
    (admission, ui): (&Admission, &Ui),
) -> Result<ExitCode, Error> {
    if let Some(note) = &target.note {
        ui.note(note);
    }
    let ended = admission.execute(&mut job, interrupts, ui);
    let record = job.into_record();
    let ended = ended.inspect_err(|_| ui.note(&continuation(project, &record)))?;
    let folder = match ended {
        // An empty report never overwrites a full one.
        Ended::Complete if !was_measured(&record) && arguments.output.is_none() => record.folder.clone(),
        Ended::Complete if is_too_short(&record) && target.folder.is_some() && arguments.output.is_none() => {
            ui.note(&format!("the budget allowed fewer than {LEAST_RUNS} runs of a cell, too few for a verdict, so the report goes into the record's folder"));
            record.folder.clone()
        }
        Ended::Complete => target.folder.unwrap_or_else(|| record.folder.clone()),
        Ended::Refused(refusal) => return Err(below_requirement(&record, refusal)),
        // A partial report never replaces a committed one.
        Ended::Interrupted => arguments.output.clone().unwrap_or_else(|| record.folder.clone()),
    };
    let yields = !arguments.replace && arguments.output.is_none();
    let destination = Destination { folder: &folder, yields, is_of_run: true, as_json: arguments.json };
    let written = super::report::write(&record, destination, &arguments.format, &[], ui).inspect_err(|_| {
        let (kept, folder) = (project.relative(&record.folder), project.relative(&folder));
        ui.note(&format!("the record is kept; render it with: perfrun report {kept} --output {folder}"));
    })?;
    note_if_ignored(&record, &folder, project, ui);
    if ended == Ended::Interrupted {
        ui.note(&continuation(project, &record));
        return Ok(ExitCode::Interrupted);
    }
    if can_go_on(&record) {
        ui.note(&format!("measure what failed again: perfrun run --resume {}", project.relative(&record.folder)));
    }
    if let Some(command) = arguments.kept_by.as_ref().filter(|_| was_measured(&record)) {
        ui.labelled("keep it", command);
    }
    if arguments.open {
        super::report::open(&written.files, ui);
    }
    let goals = written.goals;
    Ok(outcome(&record).worst(goals))
}

/// Says of a report that no commit will have that its gate will never find it.
fn note_if_ignored(record: &Record, folder: &Path, project: &ProjectRoot, ui: &Ui) {
    let is_gated = !record.manifest.experiment.gate.is_empty() && folder != record.folder;
    let repository = is_gated.then(|| Repository::around(&project.root).ok().flatten()).flatten();
    if repository.is_some_and(|repository| repository.ignores(folder)) {
        ui.note(&format!(
            "warning: git ignores {}, so `diff --gate` never finds this report",
            project.relative(folder)
        ));
    }
}

/// The specification asks for a better machine than this one is now, or for what could not be made.
pub(super) fn below_requirement(record: &Record, refusal: Refusal) -> Error {
    let preview = match refusal {
        Refusal::Grade(preview) => preview,
        Refusal::Found { found, remedy } => return Error::refused(found, remedy),
        Refusal::SetUp { found } => return Error::SetUp { found },
    };
    let required = record.manifest.experiment.require.grade.map_or("?", Grade::letter);
    let found = match preview {
        Some(preview) => format!(
            "a short control gives grade {}: twelve blocks would detect a difference of {}",
            preview.grade.letter(),
            percent(preview.in_twelve_blocks)
        ),
        None => "a short control of identical runs failed, so the grade is unknown".to_owned(),
    };
    Error::refused(
        format!("`require: {{ grade: {required} }}`: {found}"),
        "wait until the machine is quiet (`--wait 5m`), see `perfrun doctor`, or require a lower grade",
    )
}

/// How much the two sides of an A/A comparison differ on this machine from block to block, if a calibration or the
/// committed report of this experiment says so.
fn known_spread(project: &ProjectRoot, experiment: &str) -> Option<f64> {
    let here = provenance::machine(&host::describe());
    let report = report_of_this_machine(&project.report(experiment));
    report.and_then(|report| report.detectable_effect.block_deviation).or_else(|| {
        let text = plain_file::text(&project.calibration()).ok()?;
        let calibration: serde_json::Value = serde_json::from_str(&text).ok()?;
        let there: Facts = serde_json::from_value(calibration["frame"].clone()).ok()?;
        calibration["block_deviation"].as_f64().filter(|_| provenance::differences(&there, &here).is_empty())
    })
}

/// Whether everything that was asked for has been measured.
pub(super) fn outcome(record: &Record) -> ExitCode {
    let failed = record.runs.iter().any(|run| run.outcome == Outcome::Failed);
    if failed || lacks_accuracy(record) || !was_measured(record) { ExitCode::RunsFailed } else { ExitCode::Done }
}

/// How to go on with a record that is not complete.
fn continuation(project: &ProjectRoot, record: &Record) -> String {
    let kept = if record.runs.is_empty() { "" } else { "finished runs are kept; " };
    format!("{kept}continue with: perfrun run --resume {}", project.relative(&record.folder))
}

/// Whether its budget ended it before there could be a verdict.
fn is_too_short(record: &Record) -> bool {
    let budget = record.manifest.findings.budget;
    budget.is_some_and(|budget| budget.runs < budget.wanted && (budget.runs as usize) < LEAST_RUNS)
}

/// Two specifications of one name would write into one folder.
fn check_names(loaded: &[(&Path, Loaded)]) -> Result<(), Error> {
    for (index, (path, spec)) in loaded.iter().enumerate() {
        let name = &spec.experiment.name;
        if let Some((earlier_path, _)) = loaded[..index].iter().find(|(_, earlier)| earlier.experiment.name == *name) {
            let message = format!("{} and {} are both named `{name}`", earlier_path.display(), path.display());
            return Err(Error::refused(message, "give one of them another `name`"));
        }
    }
    Ok(())
}

fn require_devices(prepared: &Prepared) -> Result<(), Error> {
    let absent: Vec<&str> = prepared.absent_devices().map(|skip| skip.reason.as_str()).collect();
    if absent.is_empty() {
        return Ok(());
    }
    Err(Error::refused(
        format!("--require-devices: {}", absent.join("; ")),
        "without --require-devices those cells are skipped",
    ))
}
