//! `perfrun convert`: the conversion that a variant does, by hand.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::{json_text, print, shapes};
use crate::run::dataset::{self, DatasetError, ModelData};
use crate::run::event::Event;
use crate::run::{self, Observation, Runner};
use crate::ui::Ui;
use crate::ui::cli::{ConvertArgs, Size, TargetDevice};
use crate::ui::error::{Error, ExitCode};
use base::machine::host;
use experiment::{BATCH, ConversionSettings, Dataset, Measure, Package, Precision, Quantization, Values};
use files::digest;
use files::scratch::Scratch;
use onnx::precision::{ConversionReport, ModelNames, ProviderClass};
use onnx::{Interface, ModelHeader, ResolvedTensor};
use plan::RandomStream;
use prepare::models::apart::{Reply, Request};
use prepare::models::{Made, Ranges, Recipe, random_items};
use prepare::runtime;
use quality::fidelity::ACCURACY_NOT_MEASURED;
use reading::nearest::list;
use reading::plain_file;
use report::format::bytes;
use worker::backend::{Failure, FailureKind, TensorRequest};

pub(super) fn run(arguments: &ConvertArgs, ui: &Ui) -> Result<ExitCode, Error> {
    if arguments.output.exists() {
        let message = format!("{} already exists", arguments.output.display());
        return Err(Error::refused(message, "name another file, or remove it first"));
    }
    if let Some(network) = arguments.model.to_str().and_then(|word| word.strip_prefix("zoo:")) {
        let message = format!("{} is a built-in network, and no file", arguments.model.display());
        return Err(Error::refused(message, format!("`perfrun zoo export {network}` writes its file")));
    }
    let header = onnx::read_header(&arguments.model)?;
    header.check_files(&arguments.model)?;
    check_options(arguments)?;
    check_keep(arguments)?;
    let provider = ProviderClass::of(arguments.device.provider());
    let settings = arguments.settings();
    let data = arguments.data.as_deref().map(|file| fitted(file, &header, arguments)).transpose()?;
    let data_name = data_name(arguments, data.as_ref())?;
    let recipe = Recipe::of(arguments.precision.into(), &settings, &header, provider, &data_name)
        .ok_or_else(|| Error::Internal("a target precision without a recipe".to_owned()))?;
    if !matches!(recipe, Recipe::Int8Static { .. }) && settings.calibration != ConversionSettings::default().calibration
    {
        let message = "--calibration has no effect: without convolutions `auto` computes scales at run time";
        return Err(Error::refused(message, "leave it out, or add `--quantization static`"));
    }
    let files: Vec<_> = std::iter::once(arguments.model.clone())
        .chain(header.external_files.iter().map(|file| file.path.clone()))
        .collect();
    let source = digest::of_files(&files).map_err(|(path, error)| Error::read(&path, error))?;
    let interrupts = super::interrupts()?;
    let observation = match recipe {
        Recipe::Int8Static { .. } => {
            check_finite(data.as_ref(), arguments)?;
            Some(observation(&header, arguments, data.as_ref(), ui)?)
        }
        _ => None,
    };
    let mut nobody = |_: &Event<'_>| {};
    let mut runner = Runner::new(&interrupts, &mut nobody);
    let mut observe = |path: &Path, runner: &mut Runner<'_>| match &observation {
        Some((observation, _)) => observation.ranges(path, arguments.calibration.into(), runner),
        None => Ok(Ranges::new()),
    };
    let (path, cache) = (arguments.model.clone(), runtime::cache_folder());
    let request = Request { path, source, recipe: recipe.clone(), cache, ranges: None };
    let made = match run::apart::convert(&super::admission::executable()?, request, &mut observe, &mut runner) {
        Ok(made) => made,
        Err(_) if interrupts.count() > 0 => return Ok(ExitCode::Interrupted),
        Err(failure) => return Err(refused(arguments, &failure)),
    };
    copy(&made, arguments)?;
    let text = if arguments.json { json(&made)? } else { describe(&made, &recipe, &header, arguments) };
    print(ui, &text)
}

/// A conversion for another process, which waits.
pub(super) fn apart(folder: &Path) -> Result<ExitCode, Error> {
    // Ends with the measurement, even if that is killed. Where the system cannot do that, the conversion runs to its end.
    let _unsupported = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let (asked, answered) = (folder.join(Request::FILE), folder.join(Reply::FILE));
    let text = plain_file::text(&asked).map_err(|source| Error::read(&asked, source))?;
    let request: Request = serde_json::from_str(&text).map_err(|error| Error::Internal(error.to_string()))?;
    let reply = serde_json::to_vec(&request.carry_out(folder)).map_err(|error| Error::Internal(error.to_string()))?;
    std::fs::write(&answered, reply).map_err(|source| Error::write(&answered, source))?;
    Ok(ExitCode::Done)
}

/// No option is given that this precision has no use for.
fn check_options(arguments: &ConvertArgs) -> Result<(), Error> {
    let precision: Precision = arguments.precision.into();
    let (settings, usual) = (arguments.settings(), ConversionSettings::default());
    let is_dynamic = settings.quantization == Quantization::Dynamic;
    let options: [(&str, bool, &[Precision]); 8] = [
        ("--io", settings.io != usual.io, &[Precision::Fp16, Precision::Bf16]),
        ("--quantization", settings.quantization != usual.quantization, &[Precision::Int8]),
        ("--calibration", settings.calibration != usual.calibration, &[Precision::Int8]),
        ("--data", arguments.data.is_some(), &[Precision::Int8]),
        ("--items", arguments.names_items(), &[Precision::Int8]),
        ("--inputs", !arguments.inputs.is_empty(), &[Precision::Int8]),
        ("--reduce-range", settings.reduce_range, &[Precision::Int8]),
        ("--block", settings.block != usual.block, &[Precision::Int4]),
    ];
    for (option, _, precisions) in options.into_iter().filter(|(_, is_given, _)| *is_given) {
        if !precisions.contains(&precision) {
            let names: Vec<&str> = precisions.iter().map(|precision| precision.name()).collect();
            let message = format!("{option} has no effect with --precision {}", precision.name());
            return Err(Error::refused(message, format!("it applies to {}; leave it out", list(&names, "and"))));
        }
        if is_dynamic && matches!(option, "--calibration" | "--data" | "--items" | "--inputs") {
            let message = format!("{option} has no effect with --quantization dynamic");
            return Err(Error::refused(message, "dynamic scales are computed at run time; leave it out"));
        }
    }
    Ok(())
}

/// Every word of `--keep` names something.
fn check_keep(arguments: &ConvertArgs) -> Result<(), Error> {
    if arguments.keep.is_empty() {
        return Ok(());
    }
    let names = ModelNames::of(onnx::load_graph(&arguments.model)?);
    match names.unknown(&arguments.keep) {
        Some((problem, help)) => {
            Err(Error::refused(format!("--keep: {problem} in {}", arguments.model.display()), help))
        }
        None => Ok(()),
    }
}

/// What is observed, as the cache names it.
fn data_name(arguments: &ConvertArgs, data: Option<&ModelData>) -> Result<String, Error> {
    let sizes = arguments.inputs.iter().map(Size::to_string).collect::<Vec<_>>().join(",");
    match data {
        None => Ok(random_items(arguments.items().into(), SEED, &sizes)),
        Some(ModelData { dataset, fitted }) => {
            let file = &dataset.file;
            let sha256 = digest::of_file(file).map_err(|source| Error::read(file, source))?;
            Ok(format!("the first {} items of a file (SHA-256 {sha256}), {sizes}", fitted.items))
        }
    }
}

/// The calibration data as the model takes them. They have every size but the batch.
fn fitted(file: &Path, header: &ModelHeader, arguments: &ConvertArgs) -> Result<ModelData, Error> {
    if let Some(size) = arguments.inputs.iter().find(|size| size.name != BATCH) {
        let message = format!("`--inputs {size}` conflicts with `--data`, which sets the sizes");
        return Err(Error::refused(message, "leave out all but `batch`"));
    }
    let dataset = Dataset::of_items(file.to_owned(), arguments.items());
    dataset::fit(&dataset, Some(&header.signature)).map_err(|problem| misfit(file, problem, arguments))
}

/// Activations of what is not finite have no range.
fn check_finite(data: Option<&ModelData>, arguments: &ConvertArgs) -> Result<(), Error> {
    let Some(data) = data else { return Ok(()) };
    match data.not_finite(arguments.items().into()) {
        Some(found) => {
            let message = format!("data {}: {found}", data.dataset.file.display());
            Err(Error::refused(message, "replace or remove that item; a calibration needs finite values"))
        }
        None => Ok(()),
    }
}

fn misfit(file: &Path, problem: DatasetError, arguments: &ConvertArgs) -> Error {
    match problem {
        DatasetError::Write { path, source } => Error::write(&path, source),
        problem => {
            let message = format!("model {}, data {}: {problem}", arguments.model.display(), file.display());
            Error::refused(message, "every array needs the name of an input, and items along its first dimension")
        }
    }
}

/// Seed of random inputs, that of a specification that says none.
const SEED: u64 = 42;

/// What a static conversion observes, real items or random inputs of the sizes that are asked for, and the folder of its
/// files.
fn observation(
    header: &ModelHeader,
    arguments: &ConvertArgs,
    data: Option<&ModelData>,
    ui: &Ui,
) -> Result<(Observation, Scratch), Error> {
    let scratch = Scratch::new().map_err(|source| Error::write(&std::env::temp_dir(), source))?;
    let (tensors, sets, data) = match data {
        Some(data) => {
            let asked = arguments.inputs.first().and_then(|batch| batch.sizes.first());
            let tensors = data.tensors(data.batch(asked.copied().unwrap_or(1)));
            let written = data.write(scratch.path()).map_err(|it| misfit(&data.dataset.file, it, arguments))?;
            (tensors, 1, Some(written))
        }
        None => {
            let (tensors, sets) = random_inputs(header, arguments)?;
            (tensors, sets, None)
        }
    };
    let library = runtime::find_or_install(None, Package::default(), &runtime::cache_folder(), &mut |progress| {
        ui.labelled("runtime", &progress.to_string());
    })?;
    let observation = Observation {
        executable: super::admission::executable()?,
        library: library.path,
        threads: host::describe().default_threads(),
        tensors,
        sets,
        data,
        log: scratch.path().join("log"),
        timeout: Measure::default().timeout,
    };
    Ok((observation, scratch))
}

/// Seeded inputs of the sizes that are asked for, and how many sets of them are observed.
fn random_inputs(header: &ModelHeader, arguments: &ConvertArgs) -> Result<(Vec<TensorRequest>, u32), Error> {
    let interface = Interface::read(&arguments.model, &header.signature, None);
    let resolved = shapes::resolve(&interface, &arguments.inputs, Values::Random).map_err(|problem| {
        let message = format!("model {}: {problem}", arguments.model.display());
        Error::refused(message, shapes::remedy(&problem))
    })?;
    let items = arguments.items();
    let tensor = |tensor: &ResolvedTensor| {
        let seeds = (0..items).map(|set| RandomStream::ObservedInput(&tensor.name, set).seed(SEED)).collect();
        let values = Values::Random.filling(tensor);
        TensorRequest { values, ..TensorRequest::random(&tensor.name, tensor.element.clone(), &tensor.shape, seeds) }
    };
    let batch = resolved.batch_size.unwrap_or(1).max(1);
    Ok((resolved.tensors.iter().map(tensor).collect(), u64::from(items).div_ceil(batch) as u32))
}

fn refused(arguments: &ConvertArgs, failure: &Failure) -> Error {
    let message = format!("model {}: {}", arguments.model.display(), failure.message);
    let help = match failure.kind {
        FailureKind::Model => Some("`perfrun inspect` shows what the model holds".to_owned()),
        FailureKind::OutOfMemory => {
            Some("allow more memory; a conversion needs about three times the model's size".to_owned())
        }
        _ => None,
    };
    Error::Refused { message, help }
}

/// Copies the model out of the cache, with its weights where they lie in a file of their own.
fn copy(made: &Made, arguments: &ConvertArgs) -> Result<(), Error> {
    let model = onnx::load(&made.path)?;
    let failed = |source: io::Error| Error::write(&arguments.output, source);
    let folder = arguments.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = Scratch::within(folder).map_err(failed)?;
    let name = arguments.output.file_name().unwrap_or_default();
    let written = onnx::save(model, &scratch.path().join(name)).map_err(failed)?;
    // The model last: where it is, its weights are.
    for file in written.iter().rev() {
        std::fs::rename(file, folder.join(file.file_name().unwrap_or_default())).map_err(failed)?;
    }
    Ok(())
}

fn describe(made: &Made, recipe: &Recipe, header: &ModelHeader, arguments: &ConvertArgs) -> String {
    let mut text = String::new();
    let before = header.total_bytes().map_or_else(String::new, |before| format!("{} before", bytes(before)));
    let took = match (made.was_cached, made.was_damaged) {
        (true, _) => "from the cache".to_owned(),
        (false, false) => format!("{} ms", made.entry.took_ms),
        (false, true) => format!("{} ms, because the cached one was damaged", made.entry.took_ms),
    };
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{}: {} ({before}), {took}", arguments.output.display(), bytes(made.entry.bytes));
    for line in summary(&made.entry.report) {
        let _ = writeln!(text, "  {line}");
    }
    let calibrated = recipe.calibrated();
    if let Some(calibrated) = &calibrated {
        let _ = writeln!(text, "  note       {calibrated}");
    }
    if calibrated.is_none_or(|words| !words.ends_with(ACCURACY_NOT_MEASURED)) {
        let _ = writeln!(text, "  note       {ACCURACY_NOT_MEASURED}");
    }
    if arguments.device == TargetDevice::Cpu && recipe.is_int8_of_full_range() && host::describe().saturates_int8() {
        let _ =
            writeln!(text, "  note       sums of 8-bit products can saturate on this processor, which has no VNNI;");
        let _ = writeln!(text, "             --reduce-range avoids that");
    }
    text
}

/// What was converted, what was left and why, a line each.
pub(super) fn summary(report: &ConversionReport) -> Vec<String> {
    let counted = |(operator, nodes): (&String, &u64)| format!("{nodes} {operator}");
    let mut lines = Vec::new();
    if !report.converted.is_empty() {
        let converted: Vec<String> = report.converted.iter().map(counted).collect();
        lines.push(format!("converted  {}", converted.join(", ")));
    }
    for kept in &report.kept {
        lines.push(format!("kept       {} {}: {}", kept.nodes, kept.operator, kept.reason));
    }
    let added = [("casts", report.casts), ("quantization nodes", report.quantize_nodes)];
    let added: Vec<String> =
        added.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}")).collect();
    if !added.is_empty() {
        lines.push(format!("added      {}", added.join(", ")));
    }
    let weights = &report.weights;
    let small = match (weights.subnormal, weights.raised) {
        (0, _) => String::new(),
        (small, 0) => format!("; {small} below the normal numbers of fp16"),
        (small, raised) => format!("; {small} below the normal numbers of fp16, {raised} of them at its smallest"),
    };
    lines.push(format!("weights    {} converted, {} kept{small}", weights.converted, weights.kept));
    lines.extend(report.notes.iter().map(|note| format!("note       {note}")));
    lines
}

fn json(made: &Made) -> Result<String, Error> {
    json_text(&made.entry).map(|text| text + "\n")
}
