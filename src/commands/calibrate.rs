//! `perfrun calibrate`: identical code against itself, and against copies that are slower by a known share.

use std::path::Path;

use super::quiet::Company;
use super::run::{command_line, executable, libraries, lock};
use super::{print, specs};
use crate::cli::{CalibrateArgs, CalibrationDesign, Overrides, RunArgs};
use crate::compare::{Calibration, calibrate};
use crate::error::{Error, ExitCode};
use crate::event::Event;
use crate::host;
use crate::report::calibration as report;
use crate::run::{self, Ended, Job, Provenance};
use crate::spec::model::{Backend, Design};
use crate::spec::{self, Loaded};
use crate::store::{Place, write_whole};
use crate::summary::LEAST_RUNS;
use crate::ui::live::Live;
use crate::ui::{Ui, calibration as terminal};
use crate::worker::Interrupts;

pub(super) fn run(arguments: &CalibrateArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = Interrupts::catch().map_err(|source| Error::Io { what: "signals".to_owned(), source })?;
    check_effects(arguments)?;
    let overrides = Overrides { set: arguments.set.clone(), only: arguments.only.clone(), ..Overrides::default() };
    let mut loaded = specs::load(&arguments.spec, &overrides)?;
    specs::obtain(&mut loaded.experiment, ui)?;
    ui.warnings(&loaded.warnings);
    check_fit(&loaded, arguments, ui)?;
    let place = Place::of(&arguments.spec)?;
    let (derived, mut prepared) = derive(&loaded, arguments)?;
    specs::select(&mut prepared.plan, &derived, arguments.only.as_deref())?;
    let groups = prepared
        .plan
        .groups
        .iter()
        .filter(|group| group.cells.iter().all(|cell| prepared.plan.cells[*cell as usize].skip.is_none()));
    let groups = groups.count() as u32;
    if groups == 0 {
        return Err(Error::refused("every cell is skipped here", "`perfrun plan` says why"));
    }
    let rounds = arguments.comparisons.div_ceil(groups);
    let mut derived = derived;
    derived.experiment.runs = loaded.experiment.runs.saturating_mul(rounds);
    prepared.plan.runs = derived.experiment.runs;
    prepared.plan.rounds = rounds;
    let job = match begin(&derived, prepared, &place, arguments, &interrupts, ui)? {
        Some(begun) => begun,
        None => return Ok(ExitCode::Interrupted),
    };
    measure(job, &place, arguments, &interrupts, ui)
}

fn check_effects(arguments: &CalibrateArgs) -> Result<(), Error> {
    match arguments.effects.iter().find(|effect| effect.0 <= 0.0 || effect.0 > 1.0) {
        Some(effect) => Err(Error::refused(
            format!("--effect {effect} is no slowdown that could be injected"),
            "write a share of the time above zero and up to 100%, such as `--effect 5%`",
        )),
        None => Ok(()),
    }
}

/// What of the specification a calibration cannot do as it is written.
fn check_fit(loaded: &Loaded, arguments: &CalibrateArgs, ui: &Ui) -> Result<(), Error> {
    let experiment = &loaded.experiment;
    if (experiment.runs as usize) < LEAST_RUNS {
        return Err(Error::refused(
            format!("with `runs: {}` nothing can be judged, so there is nothing to calibrate", experiment.runs),
            format!("a verdict takes {LEAST_RUNS} runs: `--set runs=10`"),
        ));
    }
    if experiment.budget.is_some() {
        ui.note("`budget` bounds a record of the experiment; a calibration takes the time that its comparisons take");
    }
    if let Some(grade) = experiment.require.grade {
        let letter = grade.letter();
        ui.note(&format!("`require: {{ grade: {letter} }}` is not asked for: the grade is what a calibration finds"));
    }
    let margin = experiment.compare.margin.default;
    for effect in arguments.effects.iter().filter(|effect| effect.0 <= margin.0) {
        ui.note(&format!(
            "a slowdown of {effect} lies within the margin of {margin}, so it is not called slower by design"
        ));
    }
    Ok(())
}

/// The calibration's own experiment with its plan, for one round.
fn derive(loaded: &Loaded, arguments: &CalibrateArgs) -> Result<(Loaded, run::Prepared), Error> {
    let design = match arguments.design {
        CalibrationDesign::Blocks => Design::Blocks,
        CalibrationDesign::Sequential => Design::Sequential,
    };
    let mut effects = arguments.effects.clone();
    effects.dedup();
    let mut derived = loaded.clone();
    derived.experiment = spec::calibration(&loaded.experiment, &effects, 1, design);
    let prepared = run::prepare(&derived.experiment)?;
    Ok((derived, prepared))
}

/// Creates the record and what listens to it; `None` if the user stopped waiting for the machine.
fn begin<'a>(
    derived: &Loaded,
    prepared: run::Prepared,
    place: &Place,
    arguments: &CalibrateArgs,
    interrupts: &Interrupts,
    ui: &'a Ui,
) -> Result<Option<Begun<'a>>, Error> {
    let like_run = RunArgs { wait: arguments.wait, ..RunArgs::default() };
    let real = derived.experiment.backend == Backend::Onnxruntime;
    let libraries = libraries(&derived.experiment, &prepared.plan, arguments.runtime.as_deref(), ui)?;
    let lock = if real { lock(&derived.experiment.name, &like_run, interrupts, ui)? } else { None };
    if interrupts.count() > 0 {
        return Ok(None);
    }
    let company = Company::admit(real, derived.experiment.require, like_run.wait, interrupts, ui)?;
    let provenance = Provenance {
        spec: derived,
        spec_path: &arguments.spec,
        overrides: &arguments.set,
        restrictions: vec!["calibrate".to_owned()],
        host: host::describe(),
        others_cpus: company.cpus(),
        libraries: &libraries,
        command: command_line(place),
        quick: false,
        executable: executable()?,
    };
    let job = run::create(prepared, place, provenance)?;
    Ok(Some(Begun { job, live: Live::new(ui, company.warning()), _lock: lock }))
}

struct Begun<'a> {
    job: Job,
    live: Live<'a>,
    /// Held until the last run has ended.
    _lock: Option<crate::worker::lock::MachineLock>,
}

fn measure(
    begun: Begun<'_>,
    place: &Place,
    arguments: &CalibrateArgs,
    interrupts: &Interrupts,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    let Begun { mut job, mut live, _lock } = begun;
    let ended = run::execute(&mut job, interrupts, &mut |event: &Event<'_>| live.hear(event));
    live.finish();
    if ended? != Ended::Complete {
        ui.note("a calibration is judged as a whole; this one is not");
        return Ok(ExitCode::Interrupted);
    }
    let record = &job.record;
    let result = calibrate(&record.manifest, &record.runs);
    let folder = arguments.output.clone().unwrap_or_else(|| record.folder.clone());
    write(&result, &folder, place)?;
    if arguments.json {
        return print(ui, &(json(&result)? + "\n"));
    }
    print(ui, &terminal::describe(&result, ui))?;
    ui.note(&format!("wrote      {}/calibration.md  calibration.json", place.relative(&folder)));
    let failed = record.runs.iter().any(|run| run.outcome == crate::store::Outcome::Failed);
    Ok(if failed { ExitCode::RunsFailed } else { ExitCode::Done })
}

fn json(result: &Calibration) -> Result<String, Error> {
    serde_json::to_string_pretty(result).map_err(|error| Error::Internal(error.to_string()))
}

/// Writes both files, and the one by which budgets and conditions are judged later on.
fn write(result: &Calibration, folder: &Path, place: &Place) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    let text = json(result)? + "\n";
    write_whole(&folder.join("calibration.json"), text.as_bytes())?;
    write_whole(&folder.join("calibration.md"), report::markdown(result).as_bytes())?;
    // In blocks is how everything else is measured; another order says nothing about it.
    if result.design == Design::Blocks {
        write_whole(&place.calibration(), text.as_bytes())?;
    }
    Ok(())
}
