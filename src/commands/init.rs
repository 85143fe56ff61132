//! `perfrun init`: a commented specification for these models, ready to run.

mod sizes;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use self::sizes::Sizes;
use super::inspect::model_files;
use super::{print, zoo};
use crate::ui::Ui;
use crate::ui::cli::InitArgs;
use crate::ui::error::{Error, ExitCode};
use base::machine::host;
use base::name::{FileName, fitting_or, names_of_files};
use base::printable::printable_line;
use experiment::{Network, ZOO};
use files::scratch::Scratch;
use onnx::decoder::name_by_folder;
use onnx::zoo::{Settings, architecture_of, signature};
use onnx::{Interface, Stored};
use prepare::models::ObtainError;
use reading::yaml::scalar;
use reading::{plain_file, shell};
use record::{ProjectRoot, write_whole};
use spec::{self, absolute};

/// Where a repository keeps the schema of specifications that its own version of perfrun reads.
const OWN_SCHEMA: &str = "schemas/experiment.schema.json";

/// What a specification asks of models.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Which precision to take, at one item and at several.
    Precision,
    /// As stored against int8, or the models against each other: a first look.
    Look,
}

/// A model that is asked for.
pub(super) struct Model {
    source: Source,
    interface: Interface,
    /// What it holds, where that is not float32.
    stored: Option<Stored>,
}

/// Where it comes from.
enum Source {
    File(PathBuf),
    Zoo(Network),
}

impl Model {
    /// Of a word: a file, the files of a folder, or a network.
    fn all(word: &Path) -> Result<Vec<Model>, Error> {
        if let Some(name) = word.to_str().and_then(|text| text.strip_prefix(ZOO)) {
            let network = zoo::network(name)?;
            let signature = signature(architecture_of(network), &Settings::default())
                .map_err(|problem| ObtainError::Zoo { model: name.to_owned(), problem })?;
            return Ok(vec![Model { source: Source::Zoo(network), interface: signature.into(), stored: None }]);
        }
        let files = model_files(&[word.to_owned()])?;
        let model = |file: PathBuf| {
            let header = onnx::read_header(&file)?;
            let interface = Interface::read(&file, &header.signature, None);
            Ok(Model { source: Source::File(file), interface, stored: header.stored })
        };
        files.into_iter().map(model).collect()
    }

    /// The stem of the file, or the name of the network; it need not be a valid name.
    fn stem(&self) -> Cow<'_, str> {
        match &self.source {
            Source::File(path) => path.file_stem().unwrap_or_default().to_string_lossy(),
            Source::Zoo(network) => network.name().into(),
        }
    }

    /// What it may be named by.
    fn file_name(&self) -> FileName {
        let better = if let Source::File(path) = &self.source { name_by_folder(path) } else { None };
        FileName { stem: self.stem().into_owned(), folder: self.folder().map(Cow::into_owned), better }
    }

    /// Whether a specification in a folder can name it: YAML is UTF-8, and names of files may be anything.
    fn is_nameable(&self, folder: Option<&Path>) -> bool {
        match &self.source {
            Source::File(path) => model_path(folder, path).to_str().is_some(),
            Source::Zoo(_) => true,
        }
    }

    /// The folder that it comes from.
    fn folder(&self) -> Option<Cow<'_, str>> {
        match &self.source {
            Source::File(path) => path.parent()?.file_name().map(OsStr::to_string_lossy),
            Source::Zoo(_) => Some("zoo".into()),
        }
    }
}

/// The models that words stand for: files, those of folders, networks.
pub(super) fn models(words: &[PathBuf]) -> Result<Vec<Model>, Error> {
    let models: Vec<Vec<Model>> = words.iter().map(|word| Model::all(word)).collect::<Result<_, _>>()?;
    Ok(models.into_iter().flatten().collect())
}

/// Gives each model that no specification can name a link that one can, which lasts as long as the folder.
///
/// # Errors
///
/// What the system says.
pub(super) fn link_unnameable(models: &mut [Model]) -> Result<Option<Scratch>, Error> {
    if models.iter().all(|model| model.is_nameable(None)) {
        return Ok(None);
    }
    let temporary = std::env::temp_dir();
    let scratch = Scratch::new().map_err(|source| Error::write(&temporary, source))?;
    for (index, model) in models.iter_mut().enumerate().filter(|(_, model)| !model.is_nameable(None)) {
        let folder = scratch.path().join(index.to_string());
        let link = folder.join(fitting_or(&model.stem(), "models") + ".onnx");
        if let Source::File(path) = &mut model.source {
            let file = absolute(Path::new(""), path);
            let linked = std::fs::create_dir(&folder).and_then(|()| std::os::unix::fs::symlink(&file, &link));
            linked.map_err(|source| Error::write(&link, source))?;
            *path = link;
        }
    }
    Ok(Some(scratch))
}

/// The models that a specification in a folder can name; says which ones it cannot.
fn nameable(models: Vec<Model>, folder: Option<&Path>, ui: &Ui) -> Result<Vec<Model>, Error> {
    let (models, unnameable): (Vec<Model>, Vec<Model>) =
        models.into_iter().partition(|model| model.is_nameable(folder));
    let help = "rename it; `perfrun inspect`, `perfrun convert` and a quick look take it as it is";
    for model in &unnameable {
        let Source::File(path) = &model.source else { continue };
        let message = format!("the name of {} is not UTF-8, so no specification can hold it", path.display());
        if models.is_empty() {
            return Err(Error::refused(message, help));
        }
        ui.note(&format!("left out: {message}; {help}"));
    }
    Ok(models)
}

pub(super) fn run(arguments: &InitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let models = models(&arguments.models)?;
    let to_stdout = arguments.output.as_deref() == Some(Path::new("-"));
    let file = arguments.output.as_deref().filter(|_| !to_stdout).and_then(Path::file_stem);
    let name = file.map_or_else(|| experiment_name(&models), |stem| fitting_or(&stem.to_string_lossy(), "models"));
    if to_stdout {
        let models = nameable(models, None, ui)?;
        return print(ui, &text_for(&name, &models, None, arguments)?);
    }
    let target = arguments.output.clone().unwrap_or_else(|| Path::new("experiments").join(format!("{name}.yaml")));
    let file = absolute(Path::new(""), &target);
    let folder = file.parent().unwrap_or(Path::new("/"));
    let models = nameable(models, Some(folder), ui)?;
    let project = ProjectRoot::of(&file)?;
    let own_schema = Some(project.root.join(OWN_SCHEMA)).filter(|path| is_schema(path));
    let schema = own_schema.clone().unwrap_or_else(|| project.schema());
    let line = format!("# yaml-language-server: $schema={}\n", path_from(folder, &schema).to_string_lossy());
    write_new(&target, &(line + &text_for(&name, &models, Some(folder), arguments)?))?;
    let mut written = target.display().to_string();
    if own_schema.is_none() {
        project.create_store()?;
        write_whole(&schema, spec::schema_text().as_bytes())?;
        written = format!(
            "{written}, and {} for editors",
            path_from(&absolute(Path::new(""), Path::new(".")), &schema).display()
        );
    }
    ui.note(&format!("wrote {written}"));
    ui.note(&format!("next: perfrun {}", shell::word(&target.to_string_lossy())));
    Ok(ExitCode::Done)
}

/// The text of a specification for these arguments.
///
/// # Errors
///
/// A load that cannot be read.
fn text_for(name: &str, models: &[Model], folder: Option<&Path>, arguments: &InitArgs) -> Result<String, Error> {
    let text = specification(name, models, folder, Question::Precision);
    let Some(rate) = &arguments.rate else { return Ok(text + SHORT) };
    let bound = arguments.p99.as_ref().map(|limit| format!(", bound: {{ p99: {} }}", scalar(limit)));
    let load = format!("{{ rate: {}{} }}", scalar(rate), bound.unwrap_or_default());
    let about = "# Runs are as long as queues need; `perfrun plan` says how long that takes.";
    let text = format!("{text}\n{about}\nmeasure:\n  load: {load}\n");
    spec::outline(name, &text, folder.unwrap_or(Path::new("/")))?;
    Ok(text)
}

/// Whether the file is a schema of specifications, and not somebody else's of that name.
fn is_schema(path: &Path) -> bool {
    let text = plain_file::text(path).unwrap_or_default();
    serde_json::from_str::<Value>(&text).is_ok_and(|found| found["$id"] == spec::schema()["$id"])
}

pub(super) fn write_new(target: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write as _;
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    }
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::refused(format!("{} already exists", target.display()), "nothing is overwritten; name another file")
        }
        _ => Error::write(target, source),
    };
    // It appears whole, or not at all on a full disk.
    let mut file = plain_file::temporary_sibling(target).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist_noclobber(target).map(drop).map_err(|error| failed(error.error))
}

/// The stem of the only model, or the name of the folder that holds them; always a valid name.
pub(super) fn experiment_name(models: &[Model]) -> String {
    let raw = match models {
        [only] => Some(only.file_name().better.map_or_else(|| only.stem(), Cow::Owned)),
        [first, ..] => first.folder().or_else(|| Some(first.stem())),
        [] => None,
    };
    fitting_or(&raw.unwrap_or_default(), "models")
}

fn model_names(models: &[Model]) -> Vec<String> {
    names_of_files(&models.iter().map(Model::file_name).collect::<Vec<_>>(), &BTreeSet::new())
}

/// The text without the line for editors. `folder` is where the file will lie; `None` gives absolute paths.
pub(super) fn specification(name: &str, models: &[Model], folder: Option<&Path>, question: Question) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "# All keys: `perfrun schema`. A single key: `perfrun explain KEY`.");
    let _ = writeln!(text, "name: {}", scalar(name));
    let _ = writeln!(text, "\nmodels:");
    // Several models at several batches do not have their verdicts within the budget.
    let has_batches = question == Question::Precision && models.len() == 1;
    let mut common: Option<Sizes> = None;
    let wanted: Vec<Sizes> = models.iter().map(|model| Sizes::of(&model.interface)).collect();
    if wanted.windows(2).all(|pair| pair[0] == pair[1]) {
        common = wanted.first().cloned();
    }
    for ((model, sizes), entry_name) in models.iter().zip(&wanted).zip(model_names(models)) {
        for input in &model.interface.signature().inputs {
            // A name with a line break in it would end the comment.
            let _ = writeln!(text, "  # {}", printable_line(&input.to_string()));
        }
        if let Some(stored) = &model.stored {
            let _ = writeln!(text, "  # {}", printable_line(&stored.to_string()));
        }
        let _ = writeln!(text, "  - name: {}", scalar(&entry_name));
        let _ = match &model.source {
            Source::File(path) => writeln!(text, "    path: {}", scalar(&model_path(folder, path).to_string_lossy())),
            Source::Zoo(network) => writeln!(text, "    zoo: {}", scalar(network.name())),
        };
        if common.is_none() && !sizes.is_empty() {
            let _ = writeln!(text, "    {}: {}", sizes.key(), sizes.written(has_batches));
        }
    }
    if let Some(sizes) = common.filter(|sizes| !sizes.is_empty()) {
        let _ = writeln!(text, "\n# {}", sizes.about());
        let _ = writeln!(text, "{}: {}", sizes.key(), sizes.written(has_batches));
    }
    let are_calls = !wanted.is_empty() && wanted.iter().all(Sizes::are_calls);
    text + &match question {
        Question::Precision => {
            let variants = precisions(models);
            PRECISIONS.replace("MORE", &more_variants(models, &variants)).replace("VARIANTS", &variants)
        }
        Question::Look => {
            format!("\nvariants: [{}]\n", looked_at(models, host::describe().default_threads() > 1, are_calls))
        }
    }
}

/// What models hold that is not float32, `net: stored (int8: QDQ)`.
pub(super) fn stored(models: &[Model]) -> Vec<String> {
    let named = model_names(models).into_iter().zip(models);
    let line = |(name, model): (String, &Model)| {
        let stored = model.stored.as_ref()?;
        let cost = if stored.is_widened() { "; each inference may widen them to float32" } else { "" };
        Some(format!("{name}: {stored}{cost}"))
    };
    named.filter_map(line).collect()
}

/// The entry of `variants` that runs the files as they are stored, and its name: `fp32` where all of them hold that.
fn as_stored(models: &[Model]) -> (&'static str, &'static str) {
    match models.iter().any(|model| model.stored.is_some()) {
        true => ("{ name: stored }", "stored"),
        false => ("fp32", "fp32"),
    }
}

/// Whether no model has float weights to convert.
fn are_quantized(models: &[Model]) -> bool {
    !models.is_empty() && models.iter().all(|model| model.stored.as_ref().is_some_and(Stored::is_quantized))
}

/// The variants of a specification: the models as stored, and the precisions that they do not have.
fn precisions(models: &[Model]) -> String {
    let (entry, name) = as_stored(models);
    if are_quantized(models) {
        return format!("{entry}, {{ name: {name}-t1, threads: 1 }}");
    }
    let have = |precision: &str| {
        models.iter().all(|model| model.stored.as_ref().is_some_and(|stored| stored.holds == precision))
    };
    let missing = ["fp16", "int8"].into_iter().filter(|precision| models.is_empty() || !have(precision));
    std::iter::once(entry).chain(missing).collect::<Vec<_>>().join(", ")
}

/// A line for more variants, in place of the one that is there; none for models that no more can be made of.
fn more_variants(models: &[Model], variants: &str) -> String {
    if are_quantized(models) {
        return String::new();
    }
    let (_, name) = as_stored(models);
    format!("\n# variants: [{variants}, int4, {{ name: {name}-t1, threads: 1 }}]    # 4-bit weights, one thread")
}

/// The variants of a first look. One thread is often faster for small models, and shows what int8 gains.
fn looked_at(models: &[Model], has_threads: bool, are_calls: bool) -> String {
    let (entry, name) = as_stored(models);
    let converts = models.len() == 1 && !are_quantized(models);
    let mut variants = vec![entry.to_owned()];
    variants.extend(converts.then(|| "int8".to_owned()));
    // Of a language model every step reads all weights.
    variants.extend((converts && are_calls).then(|| "int4".to_owned()));
    if models.len() == 1 && has_threads {
        variants.push(format!("{{ name: {name}-t1, threads: 1 }}"));
        variants.extend((converts && !are_calls).then(|| "{ name: int8-t1, precision: int8, threads: 1 }".to_owned()));
    }
    variants.join(", ")
}

/// What is compared, and how often.
const PRECISIONS: &str = "
# What to compare; the first one is the baseline. perfrun converts the models itself.
variants: [VARIANTS]MORE

devices: [cpu]          # or cuda, tensorrt, webgpu, openvino:CPU
runs: auto              # fresh processes for each cell: as many as the verdicts need
";

/// How long it takes.
const SHORT: &str = "
# Short, for a first answer; remove these lines for final results.
budget: 2m
measure:
  warmup: { max_time: 500ms }
  stop: { max_time: 500ms }
  # profile: true                        # where the time goes, by operator
  # load: { clients: [1, 2, 4] }         # in place of `stop`: latency with several callers; or `{ rate: 50/s }`

# Real data, for accuracy as well as speed, and for int8: `perfrun explain dataset`.
# dataset: { file: data.npz, labels: labels, metrics: [top1] }

# The question that the report answers: the best cell within bounds.
# choose: { best: latency, within: [{ metric: peak_rss, max: 500MiB }] }
";

/// The path of a model as seen from the specification's folder, absolute without one.
fn model_path(folder: Option<&Path>, model: &Path) -> PathBuf {
    let model = absolute(Path::new(""), model);
    folder.map_or_else(|| model.clone(), |folder| path_from(folder, &model))
}

/// A path as seen from a folder, both absolute.
pub(super) fn path_from(folder: &Path, path: &Path) -> PathBuf {
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (folder.components().collect(), path.components().collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut path = PathBuf::new();
    path.extend(std::iter::repeat_n("..", from.len() - shared));
    path.extend(&to[shared..]);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(stored: Option<(&str, Option<&str>)>) -> Model {
        let stored = stored.map(|(holds, by)| Stored { holds: holds.to_owned(), by: by.map(str::to_owned) });
        let interface = Interface::of_signature(Default::default());
        Model { source: Source::File("net.onnx".into()), interface, stored }
    }

    #[test]
    fn what_is_not_float32_is_not_called_so() {
        let packed = || model(Some(("int4 weights", Some("MatMulNBits"))));
        let half = || model(Some(("fp16", None)));
        let plain = || model(None);
        assert_eq!(looked_at(&[plain()], false, false), "fp32, int8");
        assert_eq!(
            looked_at(&[plain()], true, false),
            "fp32, int8, { name: fp32-t1, threads: 1 }, { name: int8-t1, precision: int8, threads: 1 }"
        );
        assert_eq!(looked_at(&[packed()], true, false), "{ name: stored }, { name: stored-t1, threads: 1 }");
        assert_eq!(looked_at(&[packed()], false, false), "{ name: stored }");
        assert_eq!(looked_at(&[half()], false, false), "{ name: stored }, int8");
        assert_eq!(looked_at(&[plain()], true, true), "fp32, int8, int4, { name: fp32-t1, threads: 1 }");
        // Of several the word that is true of each.
        assert_eq!(looked_at(&[plain(), packed()], true, false), "{ name: stored }");
        assert_eq!(looked_at(&[plain(), plain()], true, false), "fp32");
        assert_eq!(precisions(&[plain()]), "fp32, fp16, int8");
        assert_eq!(precisions(&[half()]), "{ name: stored }, int8");
        assert_eq!(precisions(&[plain(), packed()]), "{ name: stored }, fp16, int8");
        assert_eq!(precisions(&[packed()]), "{ name: stored }, { name: stored-t1, threads: 1 }");
        let more = "\n# variants: [fp32, int8, int4, { name: fp32-t1, threads: 1 }]    # 4-bit weights, one thread";
        assert_eq!(more_variants(&[plain()], "fp32, int8"), more);
        assert_eq!(more_variants(&[packed()], "{ name: stored }"), "");
        assert_eq!(stored(&[plain(), packed()]), ["net-2: stored (int4 weights: MatMulNBits)"]);
    }

    #[test]
    fn paths_are_relative_to_the_specification() {
        assert_eq!(
            path_from(Path::new("/a/experiments"), Path::new("/a/models/m.onnx")),
            Path::new("../models/m.onnx")
        );
        assert_eq!(path_from(Path::new("/a"), Path::new("/a/m.onnx")), Path::new("m.onnx"));
    }
}
