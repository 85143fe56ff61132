//! `perfrun submit`: a matrix in shards, each a job of a scheduler that places it, starts it again and keeps its log.

mod gather;
mod job;
mod printed;
mod slurm;
mod stage;
mod status;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reading::shell;

use super::admission::executable;
use super::shards::Division;
use super::specs;
use crate::data::digest;
use crate::record::ProjectRoot;
use crate::report::format::count;
use crate::run::{Prepared, prepare};
use crate::spec::Loaded;
use crate::ui::Ui;
use crate::ui::cli::{Engine, Overrides, SubmitArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::plan::PlannedShard;
use crate::ui::submit::{WaitBar, describe, summary};
use crate::worker::Interrupts;

use self::job::{Job, Planned, Submitted, Work, folder_of_jobs, jobs};
use self::status::Status;

pub(super) use self::gather::{Gathered, gather};
pub(super) use self::status::why_missing;

/// Between two looks at the queue.
const PAUSE: Duration = Duration::from_secs(2);

/// A shard takes about so long where nobody says how many there are.
const USUAL_NANOS: u64 = 30 * 60 * 1_000_000_000;

/// And there are no more than this.
const MOST_UNASKED: u32 = 16;

/// Where times are scripted.
const SCRIPTED: u32 = 4;

pub(super) fn run(arguments: &SubmitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let (Some(spec), Some(engine)) = (&arguments.spec, arguments.to) else {
        return show(arguments, ui);
    };
    let interrupts = super::interrupts()?;
    let place = ProjectRoot::of(spec)?;
    let (loaded, prepared) = load(spec, arguments, &interrupts, ui)?;
    // What runs programs of its own is measured where they lie.
    let foreign = loaded.experiment.foreign();
    let runs_here = !foreign.is_empty() || engine != Engine::Slurm;
    let (division, planned) = divided(&loaded, &prepared, arguments, runs_here, &place)?;
    if engine != Engine::Slurm {
        return print_for(engine, (spec, &place), (&loaded, &planned), arguments, ui);
    }
    if runs_here {
        ui.note(&format!(
            "the specification runs programs ({}), which are not copied: {} must be on a file system that the nodes share, and stay as it is until the jobs have ended",
            foreign.join("; "),
            place.root.display()
        ));
    }
    let files = if runs_here { Default::default() } else { stage::files(&loaded, spec, &place, ui)? };
    let root = runs_here.then(|| place.root.clone());
    let work = work(spec, &place, &loaded, files, root, arguments);
    let stage = folder_of_jobs(&place, arguments.stage.as_deref());
    let stage = std::path::absolute(&stage).map_err(|source| Error::write(&stage, source))?;
    let program = program(arguments)?;
    let mut jobs = jobs(&stage).into_iter().filter(|(_, job)| job.work == work && job.planned.len() == planned.len());
    let earlier = if arguments.again || arguments.print { None } else { jobs.next() };
    let (folder, mut job, shards) = match earlier {
        Some((folder, job)) => match left(&folder, &job, ui)? {
            Some(shards) => (folder, Job { program, ..job }, shards),
            None => return Ok(ExitCode::Done),
        },
        None => {
            let folder = new_folder(&stage, &loaded.experiment.name);
            let shards = (0..planned.len() as u32).collect();
            (folder, new_job(&loaded, work, &planned, program), shards)
        }
    };
    let merge_in = if folder.starts_with(&place.root) { &place.root } else { &folder };
    let scripts = slurm::scripts(&job, &folder, merge_in, arguments);
    if arguments.print {
        return super::print(ui, &format!("{}\n{}", scripts.task, scripts.merge));
    }
    if job.submitted.is_empty() {
        if !runs_here {
            place.create_store()?;
            stage::fill(&folder, &stage.join("files"), &job.work.files, &division, &place)?;
        }
        stage::make_folder(&folder.join("logs"))?;
        job.write(&folder)?;
    }
    let script = |name: &str, text: &str| -> Result<PathBuf, Error> {
        let path = folder.join(name);
        crate::record::write_whole(&path, text.as_bytes())?;
        Ok(path)
    };
    let (task, merge) = (script("task.sh", &scripts.task)?, script("merge.sh", &scripts.merge)?);
    let _none = std::fs::remove_file(folder.join("logs/merge.code"));
    let id = slurm::submit(&task, &shards, arguments.array_limit)?;
    job.submitted.push(Submitted { id: id.clone(), merge: None, shards: shards.clone() });
    job.write(&folder)?;
    let merge = slurm::submit_merge(&merge, &id)?;
    if let Some(submitted) = job.submitted.last_mut() {
        submitted.merge = Some(merge.clone());
    }
    job.write(&folder)?;
    ui.labelled("submitted", &format!("{} as job {id}, merged by job {merge}", count(shards.len() as u64, "shard")));
    if arguments.wait {
        return wait(&folder, &job, &interrupts, ui);
    }
    super::print(ui, &ui.labelled_text("job", &shown(&folder)))?;
    ui.note(&format!("perfrun submit --status {} shows how far it is", shell::word(&shown(&folder))));
    Ok(ExitCode::Done)
}

/// The specification with its matrix; each shard is as it would be measured.
fn load(spec: &Path, arguments: &SubmitArgs, interrupts: &Interrupts, ui: &Ui) -> Result<(Loaded, Prepared), Error> {
    if arguments.overrides.shard.is_some() {
        return Err(Error::refused("--shard is what each job measures", "say how many with --shards"));
    }
    let mut loaded = specs::load(spec, &arguments.overrides)?;
    specs::obtain(&mut loaded, false, interrupts, ui)?;
    ui.warnings(&loaded.warnings);
    let mut prepared = prepare(&loaded.experiment)?;
    specs::select(&mut prepared, &loaded, &arguments.overrides)?;
    specs::tell_doubts(&loaded, &prepared, ui);
    Ok((loaded, prepared))
}

/// As many shards as are asked for, or as take half an hour each.
fn divided(
    loaded: &Loaded,
    prepared: &Prepared,
    arguments: &SubmitArgs,
    is_of_any_machine: bool,
    place: &ProjectRoot,
) -> Result<(Division, Vec<PlannedShard>), Error> {
    let into = |of: u32| match is_of_any_machine {
        true => Division::of_any_machine(prepared, loaded, of, &format!("{of} shards are too many")),
        false => Division::by_this_machine(prepared, loaded, of, place),
    };
    let planned = |division: &Division| division.planned(prepared, &loaded.experiment, place);
    let division = match arguments.shards {
        Some(of) => into(of)?,
        None => {
            let whole = into(1)?;
            let time = planned(&whole).first().and_then(|all| all.time);
            let wanted = time.map_or(SCRIPTED, |time| time.typical().0.div_ceil(USUAL_NANOS) as u32);
            let most = Division::most(prepared, loaded);
            into(wanted.clamp(1, MOST_UNASKED.min(most.max(1))))?
        }
    };
    let planned = planned(&division);
    Ok((division, planned))
}

/// The words of `run` behind the specification, as a shell reads them.
fn run_arguments(overrides: &Overrides, is_in_place: bool) -> Vec<String> {
    let Overrides { set, only, runs, budget, shard: _, quick, profile } = overrides;
    let mut words: Vec<String> = set.iter().flat_map(|set| ["--set".to_owned(), shell::word(set)]).collect();
    words.extend(only.iter().flat_map(|only| ["--only".to_owned(), shell::word(only)]));
    words.extend(runs.iter().flat_map(|runs| ["--runs".to_owned(), runs.to_string()]));
    words.extend(budget.iter().flat_map(|budget| ["--budget".to_owned(), budget.to_string()]));
    words.extend(quick.then(|| "--quick".to_owned()));
    words.extend(profile.then(|| "--profile".to_owned()));
    // Where other records of the same selection may lie, a task that starts again measures again.
    words.extend((!is_in_place).then(|| "--once".to_owned()));
    words
}

fn work(
    spec: &Path,
    place: &ProjectRoot,
    loaded: &Loaded,
    files: std::collections::BTreeMap<String, String>,
    root: Option<PathBuf>,
    arguments: &SubmitArgs,
) -> Work {
    let spec_sha256 = digest::of_text(&loaded.canonical.to_string());
    let arguments = run_arguments(&arguments.overrides, root.is_some());
    Work { spec: place.relative(spec), spec_sha256, files, root, arguments }
}

fn new_job(loaded: &Loaded, work: Work, planned: &[PlannedShard], program: String) -> Job {
    let planned = planned.iter();
    let planned = planned.map(|it| Planned { cells: it.cells, expected_ns: it.time.map(|time| time.typical()) });
    Job {
        format: Job::FORMAT,
        experiment: loaded.experiment.name.clone(),
        work,
        program,
        planned: planned.collect(),
        submitted: Vec::new(),
    }
}

/// perfrun on the nodes, as a shell reads it.
fn program(arguments: &SubmitArgs) -> Result<String, Error> {
    match &arguments.program {
        Some(program) => Ok(shell::word(program)),
        None => Ok(shell::word(&executable()?.to_string_lossy())),
    }
}

fn new_folder(stage: &Path, experiment: &str) -> PathBuf {
    // Names of records begin so too.
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ");
    stage.join(format!("{experiment}-{time}"))
}

/// What of an earlier submission of the same is not measured and not under way; `None` where that is nothing.
fn left(folder: &Path, job: &Job, ui: &Ui) -> Result<Option<Vec<u32>>, Error> {
    let status = Status::of(folder, job);
    if let Some(problem) = status.problem {
        return Err(Error::refused(problem, "submit from a login node of the cluster"));
    }
    let missing = status.missing();
    if !missing.is_empty() {
        ui.labelled("again", &format!("{}: {}", shown(folder), summary(&status.rows)));
        return Ok(Some(missing));
    }
    let next = match status.is_measured() {
        true => format!("`perfrun merge {}` writes its report; --again measures it again", shell::word(&shown(folder))),
        false => format!("`perfrun submit --status {}` shows how far it is", shell::word(&shown(folder))),
    };
    ui.labelled("submitted", &format!("already, {}: {}; {next}", shown(folder), summary(&status.rows)));
    Ok(None)
}

/// A folder as the user would type it.
fn shown(folder: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(&current).unwrap_or(folder).display().to_string()
}

/// The manifest or workflow for an engine that perfrun does not talk to.
fn print_for(
    engine: Engine,
    (spec, place): (&Path, &ProjectRoot),
    (loaded, planned): (&Loaded, &[PlannedShard]),
    arguments: &SubmitArgs,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    if !arguments.print {
        let (name, file) = match engine {
            Engine::Github => ("GitHub", "> .github/workflows/perfrun.yml"),
            Engine::Kubernetes | Engine::Slurm => ("a cluster of Kubernetes", "| kubectl apply -f -"),
        };
        let help = format!("add `--print {file}`");
        return Err(Error::refused(format!("perfrun does not talk to {name}"), help));
    }
    let work = work(spec, place, loaded, Default::default(), Some(place.root.clone()), arguments);
    let job = new_job(loaded, work, planned, String::new());
    let text = match engine {
        Engine::Github => printed::github(&job, arguments),
        Engine::Kubernetes | Engine::Slurm => printed::kubernetes(&job, arguments)?,
    };
    super::print(ui, &text)
}

/// `--status`, and `--wait` with it.
fn show(arguments: &SubmitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let place = ProjectRoot::here()?;
    let folder = match arguments.status.clone().flatten() {
        Some(folder) => folder,
        None => {
            let stage = folder_of_jobs(&place, arguments.stage.as_deref());
            let newest = jobs(&stage).into_iter().next();
            let help = "submit one with `perfrun submit SPEC --to slurm`, or name its folder: --status JOB";
            newest.ok_or_else(|| Error::refused(format!("no job in {}", stage.display()), help))?.0
        }
    };
    let folder = std::path::absolute(&folder).map_err(|source| Error::read(&folder, source))?;
    let job = Job::read(&folder)?;
    if arguments.wait {
        return wait(&folder, &job, &super::interrupts()?, ui);
    }
    tell(&folder, &Status::of(&folder, &job), ui)
}

/// The table, and what to do next.
fn tell(folder: &Path, status: &Status, ui: &Ui) -> Result<ExitCode, Error> {
    super::print(ui, &(describe(&status.rows, ui.width()) + &format!("{}\n", summary(&status.rows))))?;
    if let Some(problem) = &status.problem {
        ui.note(&format!("warning: {problem}; what runs or waits is not known"));
    }
    let job = shell::word(&shown(folder));
    if !status.missing().is_empty() {
        ui.note(&format!(
            "the same `perfrun submit` again submits the missing shards; `perfrun merge {job}` merges the others"
        ));
        return Ok(if status.is_over() { ExitCode::RunsFailed } else { ExitCode::Done });
    }
    if status.is_measured() {
        ui.note(&format!("`perfrun merge {job}` merges them, if its own job has not"));
    }
    Ok(ExitCode::Done)
}

/// Until nothing of a job waits or runs, and it is merged; Ctrl-C leaves it alone.
fn wait(folder: &Path, job: &Job, interrupts: &Interrupts, ui: &Ui) -> Result<ExitCode, Error> {
    let mut bar = WaitBar::new(*ui, job.planned.len());
    let code = folder.join("logs/merge.code");
    let status = loop {
        let status = Status::of(folder, job);
        bar.show(&status.rows);
        if let Some(problem) = &status.problem {
            return Err(Error::refused(problem.clone(), "the jobs go on; wait from a login node of the cluster"));
        }
        let merges =
            || job.submitted.last().and_then(|last| last.merge.as_ref()).is_some_and(|id| slurm::is_queued(id));
        if status.is_over() && (code.is_file() || !merges()) {
            break status;
        }
        let until = Instant::now() + PAUSE;
        while Instant::now() < until {
            if interrupts.count() > 0 {
                drop(bar);
                ui.note(&format!(
                    "the jobs go on; come back with: perfrun submit --wait --status {}",
                    shell::word(&shown(folder))
                ));
                return Ok(ExitCode::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    drop(bar);
    let said = reading::plain_file::text(&folder.join("logs/merge.log")).unwrap_or_default();
    super::print(ui, &said)?;
    if !status.is_measured() {
        return tell(folder, &status, ui);
    }
    let merged = reading::plain_file::text(&code).ok().and_then(|text| text.trim().parse::<u8>().ok());
    let known = ExitCode::ALL.into_iter().find(|code| Some(code.number()) == merged);
    Ok(known.unwrap_or(ExitCode::RunsFailed))
}
