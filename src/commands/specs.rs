//! From what was typed to specifications: folders are searched, overrides applied, selections marked.

use std::path::{Path, PathBuf};

use tracing::info;

use super::inspect;
use super::shards::{Division, leave_out, leave_out_other_shards};
use crate::run::duet::check_selection;
use crate::run::error::PrepareError;
use crate::run::prepare::Prepared;
use crate::ui::Ui;
use crate::ui::cli::Overrides;
use crate::ui::error::Error;
use crate::ui::plan::{equal_variants, named_model};
use crate::ui::transfer::TransferBar;
use experiment::{self, CompiledSelector, Design, Selector, Vocabulary, ZOO};
use files::below::{OutOfBoundsError, files_below};
use onnx::decoder::model_of_folder;
use plan::{self, Cell, Plan, SkipKind, is_idle};
use prepare::models::{self, Progress};
use prepare::runtime;
use reading::{plain_file, shell};
use spec::{self, Loaded, Note};
use worker::Interrupts;

/// The specifications that the paths stand for: files as they are, and below folders every YAML file with a top-level
/// `models` key, sorted.
///
/// # Errors
///
/// A folder without any, or one that is too large to be searched.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            if !found.contains(path) {
                found.push(path.clone());
            }
            continue;
        }
        let below = files_below(path, None, is_spec)
            .map_err(|beyond| Error::refused(beyond.to_string(), OutOfBoundsError::HINT))?;
        if below.is_empty() {
            return Err(nothing_below(path));
        }
        found.extend(below);
    }
    Ok(found)
}

/// A folder without a specification may hold models.
fn nothing_below(folder: &Path) -> Error {
    let shown = shell::word(&folder.to_string_lossy());
    let help = match inspect::model_files(&[folder.to_owned()]).unwrap_or_default().as_slice() {
        [] => "a specification is a YAML file with a top-level `models` key".to_owned(),
        [first, ..] => format!(
            "it holds models: `perfrun init {shown}` writes a specification, `perfrun {}` takes a quick look",
            shell::word(&first.to_string_lossy())
        ),
    };
    Error::refused(format!("no specification found in {}", folder.display()), help)
}

/// Whether a word on the command line is a model: a file by its ending, or a network that perfrun makes.
pub(super) fn is_model(word: &Path) -> bool {
    let is_network = word.to_str().is_some_and(|text| text.starts_with(ZOO));
    // A folder of onnxruntime-genai is its decoder.
    is_network || model_of_folder(word).is_some() || word.extension().is_some_and(|end| end == "onnx" || end == "ort")
}

/// Looks for the key at the start of a line, so that broken specifications are found too and get their error.
pub(super) fn is_spec(path: &Path) -> bool {
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    is_yaml && plain_file::text(path).is_ok_and(|text| spec::says_what_to_measure(&text))
}

/// Loads one specification with what the command line changes.
///
/// # Errors
///
/// Every problem of the file and the overrides.
pub(super) fn load(path: &Path, overrides: &Overrides) -> Result<Loaded, Error> {
    if path.is_dir() {
        return match find(&[path.to_owned()])?.as_slice() {
            [only] => load(only, overrides),
            several => {
                let names: Vec<String> = several.iter().take(3).map(|path| path.display().to_string()).collect();
                let message = format!("{} holds several specifications", path.display());
                Err(Error::refused(message, format!("name one of them: {}", names.join(", "))))
            }
        };
    }
    if is_model(path) {
        let word = shell::word(&path.to_string_lossy());
        let help = format!("`perfrun {word}` takes a quick look, `perfrun init {word}` writes a specification");
        return Err(Error::refused(format!("{} is a model, not a specification", path.display()), help));
    }
    if let Some(format) = onnx::foreign_format(path) {
        let message = format!("{} is neither a specification nor an ONNX model", path.display());
        return Err(Error::refused(message, format!("this looks like {format}")));
    }
    info!("specification: {}", path.display());
    shortened(spec::load(path, &changes(overrides))?, overrides, "leave out --quick")
}

/// As [`load`], of a text that is in no file; its paths are relative to `folder`.
///
/// # Errors
///
/// Every problem of the text and the overrides.
pub(super) fn parse(name: &Path, text: &str, folder: &Path, overrides: &Overrides) -> Result<Loaded, Error> {
    let loaded = spec::parse(&name.display().to_string(), text, folder, &changes(overrides))?;
    // A quick look at models is quick without being asked.
    shortened(loaded, overrides, "keep the models with `perfrun init`")
}

/// What the command line sets.
fn changes(overrides: &Overrides) -> Vec<String> {
    let mut set = overrides.set.clone();
    set.extend(overrides.runs.map(|runs| format!("runs={runs}")));
    set.extend(overrides.budget.map(|budget| format!("budget={budget}")));
    set
}

/// A quick look has a number of runs of its own; `for_more` says what to do for more.
fn shortened(mut loaded: Loaded, overrides: &Overrides, for_more: &str) -> Result<Loaded, Error> {
    if overrides.profile {
        loaded.experiment.profile.get_or_insert_default();
    }
    let profiled = loaded.experiment.named_metrics().find(|named| named.metric.operator().is_some());
    if let (Some(metric), None) = (profiled, loaded.experiment.profile) {
        let message = format!("`{metric}` comes from a profile, and nothing is profiled");
        return Err(Error::refused(message, "write `measure: { profile: true }`, or run with --profile"));
    }
    if !overrides.quick {
        return Ok(loaded);
    }
    if changes(overrides).iter().any(|change| change.starts_with("runs=")) {
        let help = format!("leave out `runs`; for more runs, {for_more}");
        return Err(Error::refused("a quick look has a fixed number of runs", help));
    }
    experiment::quick(&mut loaded.experiment);
    Ok(loaded)
}

/// Gives every model that is made or fetched its file; one that Python makes only where the specification's own code may be run.
///
/// # Errors
///
/// A model that cannot be had.
pub(super) fn obtain(loaded: &mut Loaded, may_run: bool, interrupts: &Interrupts, ui: &Ui) -> Result<(), Error> {
    let mut bar = TransferBar::new(*ui);
    let mut report_progress = |progress: Progress<'_>| match progress {
        Progress::Damaged(path) => ui.labelled("cache", &format!("{} is damaged", path.display())),
        Progress::Making(network) => ui.labelled("making", network),
        Progress::Exporting(model) => ui.labelled("exporting", model),
        Progress::Exported(model, by) => ui.labelled("exported", &format!("{model} by {by}")),
        Progress::Fetching(url) => ui.labelled("fetching", url),
        Progress::Fetched(done, total) => bar.show(done, total),
    };
    let stops = || interrupts.count() > 0;
    Ok(models::obtain(
        &mut loaded.experiment,
        may_run,
        &loaded.folder,
        &runtime::cache_folder(),
        &stops,
        &mut report_progress,
    )?)
}

/// Marks what `--only` and `--shard` leave out as skipped, so that the order of the rest stays as it is.
///
/// # Errors
///
/// A selector that names what the experiment does not know, and what leaves nothing.
pub(super) fn select(prepared: &mut Prepared, loaded: &Loaded, overrides: &Overrides) -> Result<(), Error> {
    if overrides.only.is_none() && overrides.shard.is_none() {
        return Ok(());
    }
    if let Some(text) = overrides.only.as_deref() {
        select_only(&mut prepared.plan, loaded, text)?;
    }
    if let Some(shard) = overrides.shard {
        let division = Division::of_shard(prepared, loaded, shard)?;
        leave_out_other_shards(&mut prepared.plan, &division.groups, shard);
    }
    let plan = &mut prepared.plan;
    let is_left_out = |cell: &Cell| plan.skip(cell).is_some_and(|skip| skip.kind == SkipKind::Selection);
    if plan.cells.iter().all(is_left_out) {
        return Err(Error::refused("--only and --shard leave no cell", "`perfrun plan` lists the cells"));
    }
    if loaded.experiment.measure.design == Design::Duet {
        check_selection(plan).map_err(PrepareError::from)?;
    }
    // A control must be among the cells that are left.
    plan::place_controls(plan, loaded.experiment.compare.aa);
    Ok(())
}

/// The selector of `--only`.
///
/// # Errors
///
/// One that cannot be read, and names that nothing has.
pub(super) fn only(text: &str, known: &Vocabulary) -> Result<Selector, Error> {
    let selector = experiment::parse_selector(text);
    let checked = selector.and_then(|selector| selector.check(known).into_iter().next().map_or(Ok(selector), Err));
    checked.map_err(|error| Error::Selector(error.clone(), error.hint().map(str::to_owned)))
}

fn select_only(plan: &mut Plan, loaded: &Loaded, text: &str) -> Result<(), Error> {
    let selector = only(text, &Vocabulary::of(&loaded.experiment))?;
    let compiled = CompiledSelector::new(&selector, &plan.axes);
    let left_out: Vec<usize> =
        plan.cells.iter().enumerate().filter(|(_, cell)| !compiled.matches(&cell.at)).map(|(index, _)| index).collect();
    if left_out.len() == plan.cells.len() {
        return Err(Error::refused(format!("--only {text} matches no cell"), "`perfrun plan` lists the cells"));
    }
    leave_out(plan, left_out, format!("not selected by --only {text}"));
    Ok(())
}

/// The flags that make a record less than its specification, as they were typed.
pub(super) fn restrictions(overrides: &Overrides) -> Vec<String> {
    let mut flags: Vec<String> = overrides.set.iter().map(|set| format!("--set {set}")).collect();
    flags.extend(overrides.only.iter().map(|only| format!("--only {only}")));
    flags.extend(overrides.shard.map(|shard| format!("--shard {shard}")));
    flags.extend(overrides.budget.map(|budget| format!("--budget {budget}")));
    flags.extend(overrides.quick.then(|| "--quick".to_owned()));
    flags.extend(overrides.runs.map(|runs| format!("--runs {runs}")));
    flags
}

/// Says what is unusual about files that inputs are fed from.
pub(super) fn print_unusual(prepared: &Prepared, ui: &Ui) {
    prepared.doubts.iter().for_each(|doubt| ui.note(&format!("warning: {doubt}")));
}

/// Says which selectors match no cell of the plan, which variants are the same, and what is unusual about input files.
pub(super) fn print_doubts(loaded: &Loaded, prepared: &Prepared, ui: &Ui) {
    let plan = &prepared.plan;
    print_unusual(prepared, ui);
    for note in &loaded.notes {
        match note {
            Note::EqualVariants { variants } => ui.note(&format!("warning: {}", equal_variants(variants))),
            Note::NamedModel { file, name } => ui.note(&named_model(file, name)),
            Note::MoreSamples { .. } | Note::NoControl => {}
        }
    }
    for idle in &plan.product.idle_selectors {
        ui.note(&format!("warning: {idle} matches no cell"));
    }
    let bounds = loaded.experiment.choose.iter().flat_map(|question| &question.within);
    for bound in bounds.filter(|bound| is_idle(&bound.of, plan)) {
        ui.note(&format!("warning: a bound of `choose` (where {}) matches no cell and has no effect", bound.of));
    }
}
