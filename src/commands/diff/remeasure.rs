//! `perfrun diff --remeasure`: both sides in one record, in turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::revision_files::RevisionFiles;
use super::sides::{Source, Sources};
use super::tree::in_folder;
use super::{Compared, terms};
use crate::commands::admission::Wishes;
use crate::commands::records::results_of;
use crate::commands::{measure, specs};
use crate::run::{self, Prepared};
use crate::ui::Ui;
use crate::ui::cli::{DiffArgs, Overrides};
use crate::ui::error::{Error, ExitCode};
use experiment::{self, AxisMap, Gate, Model};
use judge::diff::{
    Accepted, Diff, PairedCell, PairedMeasurement, Reason, Side, Stale, UnmeasuredCell, diff, sides as sides_of,
};
use judge::results::{self, Results};
use plan::{BothSides, Cell, CellId, Plan, PlannedSide, both_sides};
use record::sources::{CommandSources, Objects};
use spec::Loaded;
use worker::Interrupts;

/// A specification of a side.
struct Specified {
    /// Its path from the root of the reports.
    path: String,
    file: PathBuf,
    loaded: Loaded,
}

/// What a side asks to be measured.
struct Asked {
    file: PathBuf,
    /// The root of the reports of that side.
    root: PathBuf,
    loaded: Loaded,
    prepared: Prepared,
}

/// Measures what changed in every specification that both sides have; nothing where the user stopped it.
pub(super) fn run(
    arguments: &DiffArgs,
    sources: &Sources,
    sides: &[Source; 2],
    accepted: &[Accepted],
    ui: &Ui,
) -> Result<Option<Compared>, Error> {
    let interrupts = crate::commands::interrupts()?;
    let names = [name(&sides[0])?, name(&sides[1])?];
    let files = [files(sources, &sides[0])?, files(sources, &sides[1])?];
    for (files, name) in files.iter().zip(&names) {
        let folders = files.iter().flat_map(RevisionFiles::folders);
        folders.for_each(|folder| ui.names_below(&folder, &format!("{name}:")));
    }
    // A report of one side may name a specification that the other has too.
    let mut paths = BTreeSet::new();
    for (side, files) in sides.iter().zip(&files) {
        paths.extend(match files {
            Some(files) => files.specifications(&sources.path_in_git("")),
            None => in_folder(&sources.project().root),
        });
        paths.extend(sources.measured_specifications(side));
    }
    let find = |side: usize, path: &str| find(sources, files[side].as_ref(), path, arguments);
    let mut pairs = Pairs::default();
    for path in &paths {
        for (files, name) in files.iter().zip(&names) {
            if files.as_ref().is_some_and(|files| files.leads_nowhere(&sources.path_in_git(path))) {
                ui.note(&format!("left out   {name}:{path}: a link to what the revision does not have"));
            }
        }
        // What is no specification on one side is gone or new there.
        match (find(0, path)?, find(1, path)?) {
            (Some(from), Some(to)) => pairs.both.push((from, to)),
            (from, to) => {
                pairs.gone.extend(from);
                pairs.new.extend(to);
            }
        }
    }
    for (files, name) in files.iter().zip(&names) {
        for path in files.iter().flat_map(RevisionFiles::submodules) {
            ui.note(&format!(
                "left out   {name}: submodule {path}; `setup` can run `git submodule update --init {path}`"
            ));
        }
    }
    pairs.join_moved(&renames(sources, sides));
    pairs.check_names(arguments)?;
    let measurement = Measurement { arguments, sources, names: &names, accepted, interrupts: &interrupts, ui };
    let tracked = [0, 1].map(|side| measurement.tracked(files[side].as_ref(), &pairs));
    let named =
        |several: &[Specified]| several.iter().map(|specified| specified.loaded.experiment.name.clone()).collect();
    let (gone, new) = (named(&pairs.gone), named(&pairs.new));
    let mut compared =
        Compared { diffs: Vec::new(), gone, new, unread: BTreeMap::new(), stopped: Vec::new(), code: ExitCode::Done };
    for (from, to) in pairs.both {
        if !compared.stopped.is_empty() {
            compared.stopped.push(to.loaded.experiment.name);
            continue;
        }
        let (from, to) = (measurement.ask(from)?, measurement.ask(to)?);
        let found = measurement.measure_experiment(&from, &to, &tracked)?;
        if found.as_ref().is_none_or(|(_, code)| *code == ExitCode::Interrupted) {
            compared.stopped.push(to.loaded.experiment.name.clone());
        }
        if let Some((diff, code)) = found {
            compared.diffs.push(diff);
            compared.code = compared.code.worst(code);
        }
    }
    Ok(Some(compared))
}

/// The specifications of both sides.
#[derive(Default)]
struct Pairs {
    both: Vec<(Specified, Specified)>,
    gone: Vec<Specified>,
    new: Vec<Specified>,
}

impl Pairs {
    /// Pairs what only one side has at its path: by the name of the experiment, by what git takes for a renamed file, by what
    /// is asked to be measured.
    fn join_moved(&mut self, renames: &[(String, String)]) {
        let is_renamed =
            |from: &Specified, to: &Specified| renames.iter().any(|(old, new)| *old == from.path && *new == to.path);
        let is_named_so = |from: &Specified, to: &Specified| from.loaded.experiment.name == to.loaded.experiment.name;
        let is_alike = |from: &Specified, to: &Specified| {
            spec::measured(&from.loaded.text).is_some_and(|it| Some(it) == spec::measured(&to.loaded.text))
        };
        self.join(&is_named_so);
        self.join(&is_renamed);
        self.join(&is_alike);
    }

    /// Pairs the first of each that are the same by a rule.
    fn join(&mut self, is_same: &dyn Fn(&Specified, &Specified) -> bool) {
        for from in std::mem::take(&mut self.gone) {
            match self.new.iter().position(|to| is_same(&from, to)) {
                Some(index) => self.both.push((from, self.new.remove(index))),
                None => self.gone.push(from),
            }
        }
    }

    /// What was asked for must be there.
    fn check_names(&self, arguments: &DiffArgs) -> Result<(), Error> {
        let both = self.both.iter().flat_map(|(from, to)| [from, to]);
        let found: Vec<&str> =
            both.chain(&self.gone).chain(&self.new).map(|one| one.loaded.experiment.name.as_str()).collect();
        let Some(unknown) = arguments.experiment.iter().find(|wanted| !found.contains(&wanted.as_str())) else {
            return Ok(());
        };
        let help = "specifications are found below `experiments/` and where a report names one";
        Err(Error::refused(format!("neither side has a specification of `{unknown}`"), help))
    }
}

/// Files that git takes for renamed between two sides, from the root of the reports.
fn renames(sources: &Sources, sides: &[Source; 2]) -> Vec<(String, String)> {
    let hash = |side: &Source| match side {
        Source::Commit { hash, .. } => Some(hash.clone()),
        Source::WorkingTree | Source::Path(_) => None,
    };
    let (Some(repository), Some(from)) = (sources.repository(), hash(&sides[0])) else { return Vec::new() };
    let prefix = sources.path_in_git("");
    let below = |path: String| path.strip_prefix(&prefix).map(str::to_owned);
    let found = repository.renames(&from, hash(&sides[1]).as_deref());
    found.into_iter().filter_map(|(old, new)| Some((below(old)?, below(new)?))).collect()
}

fn name(side: &Source) -> Result<String, Error> {
    match side {
        Source::Commit { name, .. } => Ok(name.clone()),
        Source::WorkingTree => Ok("working tree".to_owned()),
        Source::Path(path) => Err(Error::refused(
            format!("{} cannot be measured again", path.display()),
            "--remeasure needs git revisions, with their specifications and models",
        )),
    }
}

fn files<'a>(sources: &'a Sources, side: &'a Source) -> Result<Option<RevisionFiles<'a>>, Error> {
    let Source::Commit { hash, name } = side else { return Ok(None) };
    let repository = sources.required(name)?;
    Ok(Some(RevisionFiles::new(repository, (hash, name))?))
}

/// The specification of a side at a path below the root; nothing where it is none, or of an experiment that is not wanted.
fn find(
    sources: &Sources,
    files: Option<&RevisionFiles<'_>>,
    path: &str,
    arguments: &DiffArgs,
) -> Result<Option<Specified>, Error> {
    let file = match files {
        Some(files) => files.specification(&sources.path_in_git(path))?,
        None => Some(sources.project().root.join(path)),
    };
    let Some(file) = file.filter(|file| specs::is_spec(file)) else { return Ok(None) };
    // A specification that nobody asked for may be broken.
    if !arguments.experiment.is_empty()
        && spec::name_of(&file).is_some_and(|name| !arguments.experiment.contains(&name))
    {
        return Ok(None);
    }
    let overrides = Overrides {
        budget: arguments.budget,
        runs: arguments.runs,
        profile: arguments.profile,
        ..Overrides::default()
    };
    let loaded = specs::load(&file, &overrides)?;
    let is_wanted = arguments.experiment.is_empty() || arguments.experiment.contains(&loaded.experiment.name);
    let has_code = loaded.experiment.runtimes.iter().any(|runtime| runtime.program.is_some())
        || loaded.experiment.models.iter().any(|model| matches!(model.source, Some(experiment::Source::Python(_))));
    if is_wanted && has_code {
        let message = format!(
            "{}: `--remeasure` does not carry programs and Python code of other revisions yet",
            loaded.experiment.name
        );
        return Err(Error::refused(message, "measure each revision in its own checkout, and compare the reports"));
    }
    Ok(is_wanted.then_some(Specified { path: path.to_owned(), file, loaded }))
}

/// What every specification is measured with.
struct Measurement<'a> {
    arguments: &'a DiffArgs,
    sources: &'a Sources,
    names: &'a [String; 2],
    accepted: &'a [Accepted],
    interrupts: &'a Interrupts,
    ui: &'a Ui,
}

impl Measurement<'_> {
    /// Gets the models of a specification, and plans it.
    fn ask(&self, Specified { path, file, mut loaded }: Specified) -> Result<Asked, Error> {
        specs::obtain(&mut loaded, true, self.interrupts, self.ui)?;
        let prepared = run::prepare(&loaded.experiment)?;
        let root = file.ancestors().nth(Path::new(&path).components().count()).unwrap_or(Path::new("")).to_owned();
        Ok(Asked { file, root, loaded, prepared })
    }

    /// The tracked files of a side, where commands are measured.
    fn tracked(&self, files: Option<&RevisionFiles<'_>>, pairs: &Pairs) -> Objects {
        let has_commands = |(from, to): &(Specified, Specified)| {
            [from, to].iter().all(|side| side.loaded.experiment.backend.runs_commands())
        };
        let repository = self.sources.repository().filter(|_| pairs.both.iter().any(has_commands));
        let prefix = self.sources.path_in_git("");
        let commit = files.map(RevisionFiles::commit);
        repository.map_or_else(Objects::new, |repository| repository.objects(commit, prefix.trim_end_matches('/')))
    }

    /// One specification: a record of what changed, and what it says; nothing where the user stopped it before the first run.
    fn measure_experiment(
        &self,
        from: &Asked,
        to: &Asked,
        tracked: &[Objects; 2],
    ) -> Result<Option<(Diff, ExitCode)>, Error> {
        let side = |asked: &'_ Asked| (asked.loaded.experiment.clone(), asked.prepared.plan.clone());
        let ((older, older_plan), (newer, newer_plan)) = (side(from), side(to));
        let (baseline, candidate) = (
            PlannedSide { experiment: &older, plan: &older_plan },
            PlannedSide { experiment: &newer, plan: &newer_plan },
        );
        let sources = [(from, &tracked[0]), (to, &tracked[1])]
            .map(|(side, objects)| CommandSources::of(&side.loaded.experiment, &side.root, objects, &Objects::new()));
        if older.backend != newer.backend {
            let message =
                format!("{}: `backend` differs between the sides, and one record has one backend", newer.name);
            return Err(Error::refused(
                message,
                "measure each side by itself, and compare the reports without `--remeasure`",
            ));
        }
        let are_sources_same = sources[0].is_some() && sources[0] == sources[1];
        let is_same = |older: &Model, newer: &Model| match (&older.command, &newer.command) {
            (Some(older), Some(newer)) => are_sources_same && older.below(&from.root) == newer.below(&to.root),
            _ => run::is_same_file(older, newer),
        };
        let both = both_sides(baseline, candidate, &is_same);
        let changed = both.pairs.len();
        self.ui.labelled(
            "changed",
            &format!(
                "{changed} of {} cells changed; {} the same on both sides",
                newer_plan.cells.len(),
                both.unchanged.len()
            ),
        );
        let (measured, code) = match &both.experiment {
            Some(experiment) => {
                let mut experiment = experiment.clone();
                if super::is_gated(self.arguments) && experiment.gate.is_empty() {
                    experiment.gate.push(Gate::of_latency(experiment.compare.margin));
                }
                let loaded = Loaded { experiment, ..to.loaded.clone() };
                match self.measure(&loaded, &to.file)? {
                    Some((results, code)) => (results, code),
                    None => return Ok(None),
                }
            }
            None => (self.nothing(to), ExitCode::Done),
        };
        Ok(Some((self.judge(measured, &both, (from, &older_plan), (to, &newer_plan))?, code)))
    }

    /// Measures both sides in one record, until the user stops it; nothing where no run had begun.
    fn measure(&self, loaded: &Loaded, file: &Path) -> Result<Option<(Results, ExitCode)>, Error> {
        let what = measure::Measurement {
            loaded,
            file,
            project: self.sources.project(),
            wishes: Wishes {
                runtime: self.arguments.runtime.as_deref(),
                wait: self.arguments.wait,
                ..Wishes::default()
            },
            overrides: &Overrides::default(),
            restrictions: vec![format!("diff --remeasure {} {}", self.names[0], self.names[1])],
        };
        let measured = measure::measure_until_stopped(what, self.interrupts, self.ui)?;
        measured.map(|(job, code)| Ok((results_of(&job.into_record())?, code))).transpose()
    }

    /// What there is to say where nothing changed.
    fn nothing(&self, side: &Asked) -> Results {
        Results { experiment: side.loaded.experiment.name.clone(), ..Results::empty() }
    }

    fn judge(
        &self,
        measured: Results,
        both: &BothSides,
        (from, from_plan): (&Asked, &Plan),
        (to, to_plan): (&Asked, &Plan),
    ) -> Result<Diff, Error> {
        let names = |plan: &Plan, cell: &Cell| {
            let coordinates = plan.coordinates(cell);
            AxisMap::of(|axis| coordinates[axis].to_owned())
        };
        let known: HashMap<CellId, AxisMap<String>> =
            to_plan.cells.iter().map(|cell| (cell.id, names(to_plan, cell))).collect();
        let paired: Vec<PairedCell> = both
            .pairs
            .iter()
            .filter_map(|(id, pair)| {
                let here = [pair.baseline.clone(), pair.candidate.clone()?];
                Some(PairedCell { names: known.get(id)?.clone(), id: *id, here })
            })
            .collect();
        let mut unmeasured: Vec<UnmeasuredCell> = Vec::new();
        let alone = |plan: &Plan, other: &Plan, reason: Reason| -> Vec<UnmeasuredCell> {
            let ids: Vec<_> = other.cells.iter().map(|cell| cell.id).collect();
            let only = plan.cells.iter().filter(|cell| !ids.contains(&cell.id));
            only.map(|cell| UnmeasuredCell { id: cell.id, names: names(plan, cell), reason: reason.clone() }).collect()
        };
        unmeasured.extend(both.unchanged.iter().filter_map(|id| {
            Some(UnmeasuredCell { names: known.get(id)?.clone(), id: *id, reason: Reason::Unchanged })
        }));
        unmeasured.extend(both.fed_otherwise.iter().filter_map(|id| {
            let reason = Reason::OtherFrame { facts: vec!["inputs".to_owned()] };
            Some(UnmeasuredCell { names: known.get(id)?.clone(), id: *id, reason })
        }));
        unmeasured.extend(alone(from_plan, to_plan, Reason::Gone));
        unmeasured.extend(alone(to_plan, from_plan, Reason::New));
        let analyses = to.loaded.experiment.interim_analyses();
        let sides = sides_of(&measured, &paired);
        let mut sides = sides.into_iter().zip(self.names).zip([(from, from_plan), (to, to_plan)]);
        let mut next = || {
            sides.next().map(|((mut results, name), (asked, plan))| {
                results.rules.gates = results::gates(&asked.loaded.experiment, plan);
                results.experiment.clone_from(&asked.loaded.experiment.name);
                results
                    .provenance
                    .subject
                    .insert("specification".to_owned(), serde_json::json!({ "text": asked.loaded.text }));
                Side { name: name.clone(), results, stale: Stale::default() }
            })
        };
        let (Some(baseline), Some(candidate)) = (next(), next()) else {
            return Err(Error::Internal("a diff has two sides".to_owned()));
        };
        let mut terms = terms(self.arguments, &baseline, &candidate, self.accepted)?;
        terms.paired = Some(PairedMeasurement { analyses, unmeasured });
        Ok(diff(&baseline, &candidate, &terms))
    }
}
