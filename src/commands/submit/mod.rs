//! `perfrun submit`: a matrix in shards, each a job of a scheduler that places it, starts it again and keeps its log.

mod gather;
mod job;
mod printed;
mod queue;
mod slurm;
mod stage;
mod status;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::job::{Job, Planned, Submitted, Work, folder_of_jobs, jobs, shown};
use self::status::Status;
use super::admission::executable;
use super::shards::Division;
use super::specs;
use crate::run::{Prepared, prepare};
use crate::ui::Ui;
use crate::ui::cli::{Engine, Overrides, SubmitArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::plan::PlannedShard;
use crate::ui::submit::summary;
use files::digest;
use reading::shell;
use record::ProjectRoot;
use report::format::count;
use spec::Loaded;
use worker::Interrupts;

pub(super) use self::gather::{Gathered, gather};
pub(super) use self::status::why_missing;

/// Planned time of a shard if `--shards` is not given.
const USUAL_NANOS: u64 = 30 * 60 * 1_000_000_000;

/// Most shards if `--shards` is not given.
const MOST_UNASKED: u32 = 16;

/// Shards of the mock backend if `--shards` is not given: its times are not waited for.
const SCRIPTED: u32 = 4;

pub(super) fn run(arguments: &SubmitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let (Some(spec), Some(engine)) = (&arguments.spec, arguments.to) else {
        return watch::show(arguments, ui);
    };
    check(arguments, engine)?;
    let interrupts = super::interrupts()?;
    let (loaded, prepared) = load(spec, arguments, &interrupts, ui)?;
    let spec = &stage::plain(&std::path::absolute(spec).map_err(|source| Error::read(spec, source))?);
    let project = ProjectRoot::of(spec)?;
    if engine != Engine::Slurm {
        let (_, planned) = divided(&loaded, &prepared, arguments, true, &project)?;
        return print_for(engine, (spec, &project), (&loaded, &planned), arguments, ui);
    }
    let in_place = why_in_place(&loaded, spec, &project, arguments)?;
    let (division, planned) = divided(&loaded, &prepared, arguments, in_place.is_some(), &project)?;
    if let Some(why) = &in_place {
        ui.note(&format!(
            "{why}, so nothing is copied: {} must be on a file system that the nodes share, and stay as it is until the jobs have ended",
            project.root.display()
        ));
    }
    let files = if in_place.is_some() { BTreeMap::new() } else { stage::files(&loaded, spec, &project)? };
    let root = in_place.is_some().then(|| project.root.clone());
    let stage = folder_of_jobs(&project, arguments.stage.as_deref());
    let stage = std::path::absolute(&stage).map_err(|source| Error::write(&stage, source))?;
    // Of two submissions at once the second sees what the first has submitted.
    let lock = if arguments.print { None } else { Some(lock(&stage, &project)?) };
    let kinds: Vec<Option<&String>> = match &arguments.each_node_type {
        Some(types) => types.values.iter().map(Some).collect(),
        None => vec![None],
    };
    let work = Work { files, root, ..work(spec, &project, &loaded, arguments) };
    let of_kind = |kind: Option<&String>| {
        let job = new_job(&loaded, Work { node_type: kind.cloned(), ..work.clone() }, &planned, program(arguments)?);
        Submission::of(job, &stage, arguments, ui)
    };
    let mut all = kinds.into_iter().map(of_kind).collect::<Result<Vec<Submission>, Error>>()?;
    let merge_in = if stage.starts_with(&project.root) { project.root.clone() } else { all[0].folder.clone() };
    let jobs: Vec<(&Path, &Job)> = all.iter().map(|it| (it.folder.as_path(), &it.job)).collect();
    let merging = slurm::merge_script(&jobs, &merge_in, arguments);
    if arguments.print {
        let tasks = all.iter().map(|it| slurm::task_script(&it.job, &it.folder, arguments) + "\n");
        return super::print(ui, &(tasks.collect::<String>() + &merging));
    }
    if all.iter().any(|it| !it.shards.is_empty()) {
        for new in all.iter().filter(|it| it.job.submitted.is_empty() && in_place.is_none()) {
            stage::fill(&new.folder, &stage.join("files"), &new.job.work.files, &division, &project)?;
        }
        all.iter_mut().try_for_each(|it| it.start(arguments, ui))?;
        start_merge(&mut all, &merging, ui)?;
        super::print(ui, &ui.labelled_lines("job", all.iter().map(|it| shown(&it.folder))))?;
    }
    drop(lock);
    if arguments.wait {
        return watch::wait(&all[0].folder, &all[0].job, &interrupts, ui);
    }
    ui.labelled("next", &format!("perfrun submit --status {}", shell::word(&shown(&all[0].folder))));
    Ok(ExitCode::Done)
}

/// Options that this engine does not have, and texts that would end a line of a script.
fn check(arguments: &SubmitArgs, engine: Engine) -> Result<(), Error> {
    let SubmitArgs { partition, option, stage, program, image, memory, volume, overrides, each_node_type, .. } =
        arguments;
    let of_slurm = [
        ("--partition", partition.is_some()),
        ("--option", !option.is_empty()),
        ("--stage", stage.is_some()),
        ("--each-node-type", each_node_type.is_some()),
        ("--wait", arguments.wait),
    ];
    if let Some((name, _)) = of_slurm.into_iter().find(|(_, is_given)| *is_given && engine != Engine::Slurm) {
        return Err(Error::refused(format!("{name} is for Slurm"), "leave it out, and edit what is printed"));
    }
    let words =
        partition.iter().chain(option).chain(program).chain(image).chain([memory, volume]).chain(&overrides.set);
    let paths = arguments.spec.iter().chain(stage).map(|path| path.to_string_lossy().into_owned());
    if let Some((name, _)) = [("--image", image.as_ref()), ("--memory", Some(memory)), ("--volume", Some(volume))]
        .into_iter()
        .find(|(_, value)| value.is_some_and(|value| value.trim().is_empty()))
    {
        return Err(Error::refused(format!("{name} is empty"), "name one, or leave the option out"));
    }
    if arguments.wheel.is_some() && engine != Engine::Github {
        return Err(Error::refused("--wheel is for GitHub", "leave it out"));
    }
    if engine == Engine::Kubernetes {
        printed::check(arguments)?;
    }
    let has_control = |word: &String| word.chars().any(char::is_control);
    if let Some(word) = words.chain(&overrides.only).cloned().chain(paths).find(has_control) {
        let message = format!("{word:?} has a character that no script can hold on a line");
        return Err(Error::refused(message, "leave out line breaks and control characters"));
    }
    Ok(())
}

/// Why a specification is measured where it lies: it runs programs, or reads what is outside of the project.
///
/// # Errors
///
/// Several kinds of nodes, whose records would lie in one place.
fn why_in_place(
    loaded: &Loaded,
    spec: &Path,
    project: &ProjectRoot,
    arguments: &SubmitArgs,
) -> Result<Option<String>, Error> {
    let (foreign, outside) = (loaded.experiment.foreign(), stage::outside(loaded, spec, project)?);
    let why = match (foreign.as_slice(), outside.as_slice()) {
        ([], []) => return Ok(None),
        ([], [first, ..]) => format!("{first} lies outside of {}", project.root.display()),
        (programs, _) => format!("the specification runs programs ({})", programs.join("; ")),
    };
    if arguments.each_node_type.is_some() {
        let help =
            "measure on each kind from a copy of the project, and merge the records: perfrun merge NAME=RECORD ...";
        return Err(Error::refused(format!("{why}, so records of all kinds of nodes would lie in one place"), help));
    }
    Ok(Some(why))
}

/// A lock on the folder of jobs, which is made.
fn lock(stage: &Path, project: &ProjectRoot) -> Result<std::fs::File, Error> {
    project.create_store()?;
    stage::make_folder(stage)?;
    let path = stage.join("submit.lock");
    let file = std::fs::File::create(&path).map_err(|source| Error::write(&path, source))?;
    file.lock().map_err(|source| Error::write(&path, source))?;
    Ok(file)
}

/// The jobs of one kind of node.
struct Submission {
    folder: PathBuf,
    job: Job,
    /// What is still to be submitted.
    shards: Vec<u32>,
}

impl Submission {
    /// An earlier one of the same, with what it lacks, or a new one.
    fn of(job: Job, stage: &Path, arguments: &SubmitArgs, ui: &Ui) -> Result<Self, Error> {
        // Without a number, what was known when it was submitted decided how many shards there are.
        let is_as_many = |other: &Job| arguments.shards.is_none() || other.planned.len() == job.planned.len();
        let is_same = |other: &Job| other.work == job.work && is_as_many(other);
        let earlier = jobs(stage).into_iter().find(|(_, other)| is_same(other));
        match earlier.filter(|_| !arguments.again && !arguments.print) {
            Some((folder, earlier)) => {
                let shards = left(&folder, &earlier, ui)?;
                Ok(Submission { folder, job: Job { program: job.program, ..earlier }, shards })
            }
            None => {
                let folder = new_folder(stage, &job);
                let shards = (0..job.planned.len() as u32).collect();
                Ok(Submission { folder, job, shards })
            }
        }
    }

    /// Gives its shards to Slurm.
    fn start(&mut self, arguments: &SubmitArgs, ui: &Ui) -> Result<(), Error> {
        stage::make_folder(&self.folder.join("logs"))?;
        self.job.write(&self.folder)?;
        if self.shards.is_empty() {
            return Ok(());
        }
        let script = self.folder.join("task.sh");
        record::write_whole(&script, slurm::task_script(&self.job, &self.folder, arguments).as_bytes())?;
        let submitted = slurm::submit(&script, &self.shards, arguments.array_limit);
        if submitted.is_err() && self.job.submitted.is_empty() {
            // Slurm has no job for this folder. If it cannot be removed, it does no harm.
            drop(std::fs::remove_dir_all(&self.folder));
        }
        let (id, cluster) = submitted?;
        let kind = self.job.work.node_type.as_ref().map(|kind| format!(" on {kind}")).unwrap_or_default();
        ui.labelled("submitted", &format!("{} as job {id}{kind}", count(self.shards.len() as u64, "shard")));
        self.job.submitted.push(Submitted { id, cluster, merge: None, shards: self.shards.clone() });
        self.job.write(&self.folder)
    }
}

/// Gives Slurm the job that merges all of these, for when none of their tasks is left.
fn start_merge(all: &mut [Submission], script: &str, ui: &Ui) -> Result<(), Error> {
    let submitted = all.iter().flat_map(|it| &it.job.submitted);
    let is_queued = |it: &&Submitted| queue::is_queued(&it.id, it.cluster.as_deref());
    let mut arrays: Vec<String> = submitted.filter(is_queued).map(|it| it.id.clone()).collect();
    if arrays.is_empty() {
        // All of them may have failed at once; Slurm knows their numbers for some minutes.
        arrays.extend(all.iter().filter_map(|it| it.job.submitted.last()).map(|last| last.id.clone()));
    }
    let path = all[0].folder.join("merge.sh");
    record::write_whole(&path, script.as_bytes())?;
    let (id, _) = slurm::submit_merge(&path, &arrays).map_err(|error| {
        let job = shell::word(&shown(&all[0].folder));
        let message = format!("the shards are submitted, the job that merges them was refused: {error}");
        Error::refused(message, format!("when they have ended: perfrun merge {job}"))
    })?;
    ui.labelled("", &format!("merged by job {id}"));
    for Submission { folder, job, .. } in all {
        if let Some(last) = job.submitted.last_mut() {
            last.merge = Some(id.clone());
        }
        job.write(folder)?;
    }
    Ok(())
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
    specs::print_doubts(&loaded, &prepared, ui);
    Ok((loaded, prepared))
}

/// As many shards as are asked for, or as take half an hour each.
fn divided(
    loaded: &Loaded,
    prepared: &Prepared,
    arguments: &SubmitArgs,
    is_of_any_machine: bool,
    project: &ProjectRoot,
) -> Result<(Division, Vec<PlannedShard>), Error> {
    let into = |total: u32| match is_of_any_machine {
        true => Division::of_any_machine(prepared, loaded, total, &format!("{total} shards are too many")),
        false => Division::by_this_machine(prepared, loaded, total, project),
    };
    let planned = |division: &Division| division.planned(prepared, &loaded.experiment, project);
    let division = match arguments.shards {
        Some(total) => into(total)?,
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
fn run_arguments(overrides: &Overrides) -> Vec<String> {
    let Overrides { set, only, runs, budget, shard: _, quick, profile } = overrides;
    let mut words: Vec<String> = set.iter().flat_map(|set| ["--set".to_owned(), shell::word(set)]).collect();
    words.extend(only.iter().flat_map(|only| ["--only".to_owned(), shell::word(only)]));
    words.extend(runs.iter().flat_map(|runs| ["--runs".to_owned(), runs.to_string()]));
    words.extend(budget.iter().flat_map(|budget| ["--budget".to_owned(), budget.to_string()]));
    words.extend(quick.then(|| "--quick".to_owned()));
    words.extend(profile.then(|| "--profile".to_owned()));
    words
}

fn work(spec: &Path, project: &ProjectRoot, loaded: &Loaded, arguments: &SubmitArgs) -> Work {
    // What begins with a dash would be an option.
    let path = project.relative(spec);
    Work {
        spec: if path.starts_with('-') { format!("./{path}") } else { path },
        spec_sha256: digest::of_text(&loaded.canonical.to_string()),
        files: BTreeMap::new(),
        root: None,
        node_type: None,
        arguments: run_arguments(&arguments.overrides),
        restrictions: specs::restrictions(&arguments.overrides),
        is_profiled: loaded.experiment.profile.is_some(),
    }
}

fn new_job(loaded: &Loaded, work: Work, planned: &[PlannedShard], program: String) -> Job {
    let planned = planned.iter();
    let planned = planned.map(|it| Planned { cells: it.cells, expected_ns: it.time.map(|time| time.typical()) });
    Job {
        format: Job::FORMAT,
        experiment: loaded.experiment.name.clone(),
        // As names of records begin, to the millisecond, so that two have different folders.
        made: record::now().strftime("%Y%m%dT%H%M%S%3fZ").to_string(),
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

fn new_folder(stage: &Path, job: &Job) -> PathBuf {
    let kind = job.work.node_type.as_ref().map(|kind| format!("-{kind}")).unwrap_or_default();
    stage.join(format!("{}{kind}-{}", job.experiment, job.made))
}

/// What of an earlier submission of the same is not measured and not under way.
fn left(folder: &Path, job: &Job, ui: &Ui) -> Result<Vec<u32>, Error> {
    let status = Status::of(folder, job);
    if let Some(problem) = status.problem {
        return Err(Error::refused(problem.why, "submit from a login node of the cluster"));
    }
    let missing = status.missing();
    if !missing.is_empty() {
        ui.labelled("again", &format!("{}: {}", shown(folder), summary(&status.rows)));
        return Ok(missing);
    }
    let next = match status.is_measured() {
        true => format!("`perfrun merge {}` writes its report; --again measures it again", shell::word(&shown(folder))),
        false => format!("`perfrun submit --status {}` shows how far it is", shell::word(&shown(folder))),
    };
    ui.labelled("submitted", &format!("already, {}: {}; {next}", shown(folder), summary(&status.rows)));
    Ok(Vec::new())
}

/// The manifest or workflow for an engine that perfrun does not talk to.
fn print_for(
    engine: Engine,
    (spec, project): (&Path, &ProjectRoot),
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
    let work = work(spec, project, loaded, arguments);
    let job = new_job(loaded, work, planned, String::new());
    let text = match engine {
        Engine::Github => printed::github(&job, arguments)?,
        Engine::Kubernetes | Engine::Slurm => printed::kubernetes(&job, arguments)?,
    };
    super::print(ui, &text)
}
