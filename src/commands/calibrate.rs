//! `perfrun calibrate`: identical code against itself, and against copies that are slower by a known share.

use std::path::Path;

use super::admission::{Admission, Wishes};
use super::{json_text, print, specs};
use crate::run::event::Event;
use crate::run::{self, Ended, Job};
use crate::ui::cli::{CalibrateArgs, CalibrationDesign, Overrides};
use crate::ui::error::{Error, ExitCode};
use crate::ui::live::Live;
use crate::ui::{Ui, calibration};
use experiment::{Design, Experiment, Selector, Variant, Vocabulary, calibration};
use judge::compare::{Calibration, calibrate};
use judge::summary::LEAST_RUNS;
use record::{ProjectRoot, write_whole};
use spec::Loaded;
use worker::Interrupts;

pub(super) fn run(arguments: &CalibrateArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = super::interrupts()?;
    check_effects(arguments)?;
    let mut overrides = Overrides { set: arguments.set.clone(), only: arguments.only.clone(), ..Overrides::default() };
    let mut loaded = specs::load(&arguments.spec, &overrides)?;
    overrides.only = choose_variant(&mut loaded.experiment, arguments.only.as_deref())?;
    specs::obtain(&mut loaded, true, &interrupts, ui)?;
    ui.warnings(&loaded.warnings);
    check_fit(&loaded, arguments, ui)?;
    let project = ProjectRoot::of(&arguments.spec)?;
    let (derived, mut prepared) = derive(&loaded, arguments)?;
    specs::select(&mut prepared, &derived, &overrides)?;
    let groups = prepared
        .plan
        .groups
        .iter()
        .filter(|group| group.cells.iter().all(|cell| prepared.plan.cells[*cell as usize].skip.is_none()));
    let groups = groups.count() as u32;
    if groups == 0 {
        let mut reasons: Vec<&str> = prepared.plan.skips.iter().map(|skip| skip.reason.as_str()).collect();
        reasons.dedup();
        reasons.truncate(3);
        let message = format!("every comparison has a cell that is skipped here: {}", reasons.join("; "));
        return Err(Error::refused(message, "`perfrun plan` lists the cells"));
    }
    let rounds = arguments.comparisons.div_ceil(groups);
    prepared.plan.runs = derived.experiment.interim_analyses().most().saturating_mul(rounds);
    prepared.plan.rounds = rounds;
    let wishes = Wishes { runtime: arguments.runtime.as_deref(), wait: arguments.wait, ..Wishes::default() };
    let admission = Admission::ask(&derived.experiment, &prepared.plan, wishes, &project, &interrupts, ui)?;
    let Some(admission) = admission else { return Ok(ExitCode::Interrupted) };
    if !admission.try_devices(&mut prepared, &derived.experiment, &interrupts) {
        return Ok(ExitCode::Interrupted);
    }
    let spec = (&derived, arguments.spec.as_path());
    let provenance = admission.provenance(spec, &arguments.set, vec!["calibrate".to_owned()], false);
    let job = run::create(prepared, &project, provenance)?;
    measure(job, Live::new(ui, admission.warning()), &project, arguments, &interrupts)
}

/// A calibration has one variant and its copies: `--only variant=int8` says of which one. What is left of the selector is of
/// the calibration's own cells.
fn choose_variant(experiment: &mut Experiment, only: Option<&str>) -> Result<Option<String>, Error> {
    let Some(text) = only else { return Ok(None) };
    let selector = specs::only(text, &Vocabulary::of(experiment))?;
    if !selector.is_about::<Variant>() {
        return Ok(only.map(str::to_owned));
    }
    let matcher = selector.matcher();
    let Some(variant) = experiment.variants.iter().find(|variant| matcher.allows_entry(*variant)) else {
        return Err(Error::refused(format!("--only {text} matches no variant"), "`perfrun plan` lists the cells"));
    };
    experiment.compare.baseline = Some(Selector::of(variant));
    let rest = selector.without::<Variant>();
    Ok((!rest.is_empty()).then(|| rest.to_string()))
}

fn check_effects(arguments: &CalibrateArgs) -> Result<(), Error> {
    match arguments.effects.iter().find(|effect| effect.0 <= 0.0 || effect.0 > 1.0) {
        Some(effect) => Err(Error::refused(
            format!("--effect {effect} is not a slowdown that can be injected"),
            "use a share of the time above 0% and up to 100%, such as `--effect 5%`",
        )),
        None => Ok(()),
    }
}

/// What of the specification a calibration cannot do as it is written.
fn check_fit(loaded: &Loaded, arguments: &CalibrateArgs, ui: &Ui) -> Result<(), Error> {
    let experiment = &loaded.experiment;
    if (experiment.runs.max as usize) < LEAST_RUNS {
        return Err(Error::refused(
            format!("`runs: {}` is too few for a verdict, so there is nothing to calibrate", experiment.runs),
            format!("a verdict needs {LEAST_RUNS} runs: `--set runs=auto`"),
        ));
    }
    if experiment.budget.is_some() {
        ui.note("`budget` is ignored: a calibration runs until its comparisons are done");
    }
    if let Some(grade) = experiment.require.grade {
        let letter = grade.letter();
        ui.note(&format!("`require: {{ grade: {letter} }}` is ignored: a calibration measures the grade"));
    }
    let margin = experiment.compare.margin.default;
    for effect in arguments.effects.iter().filter(|effect| effect.0 <= margin.0) {
        ui.note(&format!("a slowdown of {effect} is within the margin of {margin}, so it will not be called slower"));
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
    derived.experiment = calibration(&loaded.experiment, &effects, design);
    let prepared = run::prepare(&derived.experiment)?;
    Ok((derived, prepared))
}

fn measure(
    mut job: Job,
    mut live: Live<'_>,
    project: &ProjectRoot,
    arguments: &CalibrateArgs,
    interrupts: &Interrupts,
) -> Result<ExitCode, Error> {
    let ui = live.ui();
    let ended = run::execute(&mut job, interrupts, &mut |event: &Event<'_>| live.on_event(event));
    live.finish();
    if ended? != Ended::Complete {
        ui.note("interrupted: an incomplete calibration has no result");
        return Ok(ExitCode::Interrupted);
    }
    let record = job.into_record();
    let result = calibrate(&record.manifest, &record.runs)?;
    let folder = arguments.output.clone().unwrap_or_else(|| record.folder.clone());
    write(&result, &folder, project)?;
    if arguments.json {
        return print(ui, &(json(&result)? + "\n"));
    }
    print(ui, &calibration::describe(&result, ui))?;
    ui.note(&format!("wrote      {}/calibration.md  calibration.json", project.relative(&folder)));
    let failed = record.runs.iter().any(|run| run.outcome == record::Outcome::Failed);
    Ok(if failed { ExitCode::RunsFailed } else { ExitCode::Done })
}

fn json(result: &Calibration) -> Result<String, Error> {
    json_text(result)
}

/// Writes both files, and the one by which budgets and conditions are judged later on.
fn write(result: &Calibration, folder: &Path, project: &ProjectRoot) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    let text = json(result)? + "\n";
    write_whole(&folder.join("calibration.json"), text.as_bytes())?;
    write_whole(&folder.join("calibration.md"), calibration::markdown(result).as_bytes())?;
    // In blocks is how everything else is measured; another order says nothing about it.
    if result.design == Design::Blocks {
        write_whole(&project.calibration(), text.as_bytes())?;
    }
    Ok(())
}
