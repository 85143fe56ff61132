//! `perfrun init`: a commented specification for these models, ready to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::inspect::{model_files, tensor};
use super::print;
use crate::cli::InitArgs;
use crate::error::{Error, ExitCode};
use crate::onnx::{self, ModelHeader, ShapeProblem};
use crate::spec::fitting_name;
use crate::spec::model::{InputPoint, Values};
use crate::ui::Ui;

pub(super) fn run(arguments: &InitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let files = model_files(&arguments.models)?;
    let models = files
        .iter()
        .map(|file| Ok((file.clone(), onnx::read_header(file)?)))
        .collect::<Result<Vec<(PathBuf, ModelHeader)>, Error>>()?;
    let name = experiment_name(&files);
    let standard_output = arguments.output.as_deref() == Some(Path::new("-"));
    let target = arguments.output.clone().unwrap_or_else(|| Path::new("experiments").join(format!("{name}.yaml")));
    let folder = match standard_output {
        true => None,
        false => Some(target.parent().map(Path::to_path_buf).unwrap_or_default()),
    };
    let text = specification(&name, &models, folder.as_deref())?;
    if standard_output {
        return print(ui, &text);
    }
    write_new(&target, &text)?;
    ui.note(&format!("wrote {}; next: perfrun {}", target.display(), target.display()));
    Ok(ExitCode::Done)
}

fn write_new(target: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write as _;
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    let mut file = std::fs::File::create_new(target).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::refused(
            format!("{} is there already", target.display()),
            "init never overwrites; name another file with -o",
        ),
        _ => Error::io(target, source),
    })?;
    file.write_all(text.as_bytes()).map_err(|source| Error::io(target, source))
}

/// The stem of the only model, or the name of the folder that holds them; always a valid name.
fn experiment_name(files: &[PathBuf]) -> String {
    let raw = match files {
        [only] => only.file_stem(),
        [first, ..] => first.parent().and_then(Path::file_name).or(first.file_stem()),
        [] => None,
    };
    valid_name(&raw.unwrap_or_default().to_string_lossy())
}

/// A name that looks like the text.
fn valid_name(text: &str) -> String {
    let name = fitting_name(text);
    if name.is_empty() { "models".to_owned() } else { name }
}

/// The name, or with the first number behind it that makes it another.
fn first_free(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    // Room for the number; names are ASCII.
    let short = &name[..name.len().min(56)];
    let numbered = (2..=taken.len() + 2).map(|number| format!("{short}-{number}"));
    let mut free = numbered.filter(|name| !taken.contains(name));
    free.next().expect("more numbers than names are tried")
}

/// The text. `folder` is where the file will lie; `None` gives absolute paths.
fn specification(name: &str, models: &[(PathBuf, ModelHeader)], folder: Option<&Path>) -> Result<String, Error> {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = writeln!(text, "# What this file may say: `perfrun schema`, or docs/reference/spec.md.");
    let _ = writeln!(text, "name: {}", quoted(name));
    let _ = writeln!(text, "\nmodels:");
    let mut names = BTreeSet::new();
    let mut common: Option<BTreeMap<String, u64>> = None;
    let wanted: Vec<BTreeMap<String, u64>> = models.iter().map(|(_, header)| free_dimensions(header)).collect();
    if wanted.windows(2).all(|pair| pair[0] == pair[1]) {
        common = wanted.first().cloned();
    }
    for ((path, header), dimensions) in models.iter().zip(&wanted) {
        for input in &header.signature.inputs {
            let _ = writeln!(text, "  # {}", tensor(input));
        }
        let stem = valid_name(&path.file_stem().unwrap_or_default().to_string_lossy());
        let entry_name = first_free(&stem, &names);
        names.insert(entry_name.clone());
        let _ = writeln!(text, "  - name: {}", quoted(&entry_name));
        let _ = writeln!(text, "    path: {}", quoted(&path_from(folder, path)?));
        if common.is_none() && !dimensions.is_empty() {
            let _ = writeln!(text, "    inputs: {}", dimension_map(dimensions));
        }
    }
    if let Some(dimensions) = common.filter(|dimensions| !dimensions.is_empty()) {
        let _ = writeln!(text, "\n# Sizes of the free dimensions; a list multiplies, as in `batch: [1, 16]`.");
        let _ = writeln!(text, "inputs: {}", dimension_map(&dimensions));
    }
    text.push_str(REST);
    Ok(text)
}

/// What is compared, and how long it takes: short enough for a first look.
const REST: &str = "
# What is compared. A list inside an entry multiplies, as in `threads: [1, 2]`.
variants:
  - { name: optimized, graph_optimization: all }
  - { name: as-stored, graph_optimization: disabled }

devices: [cpu]
runs: 10                # fresh processes for each cell; fewer than 5 give no verdict

measure:
  stop: { mode: precision, relative: 1%, min_time: 300ms, max_time: 3s }
";

/// Sizes that make a model's free dimensions definite: batch 1, anything else 128.
fn free_dimensions(header: &ModelHeader) -> BTreeMap<String, u64> {
    let mut input = InputPoint {
        name: String::new(),
        dimensions: BTreeMap::new(),
        shapes: BTreeMap::new(),
        values: Values::Random,
    };
    if let Err(ShapeProblem::FreeDimensions { dimensions, .. }) = onnx::resolve_inputs(&header.signature, &input) {
        for free in dimensions {
            if let Some(key) = free.key {
                let size = if key == "batch" { 1 } else { 128 };
                input.dimensions.insert(key, size);
            }
        }
    }
    input.dimensions
}

fn dimension_map(dimensions: &BTreeMap<String, u64>) -> String {
    let entries: Vec<String> = dimensions.iter().map(|(name, size)| format!("{}: {size}", quoted(name))).collect();
    format!("{{ {} }}", entries.join(", "))
}

/// A YAML scalar: plain where that is safe, else in double quotes as JSON has them, which YAML reads alike.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'))
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if plain { text.to_owned() } else { serde_json::Value::String(text.to_owned()).to_string() }
}

/// The path of a model as seen from the specification's folder; absolute where nothing is shared.
fn path_from(folder: Option<&Path>, model: &Path) -> Result<String, Error> {
    let absolute = std::path::absolute(model).map_err(|source| Error::io(model, source))?;
    let Some(folder) = folder else { return Ok(absolute.to_string_lossy().into_owned()) };
    let folder = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        .map_err(|source| Error::io(folder, source))?;
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (folder.components().collect(), absolute.components().collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut path = PathBuf::new();
    path.extend(std::iter::repeat_n("..", from.len() - shared));
    path.extend(&to[shared..]);
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_valid() {
        assert_eq!(valid_name("my net (1)"), "my-net-1");
        assert_eq!(valid_name("äöü"), "models");
    }

    #[test]
    fn equal_names_are_numbered() {
        let taken = BTreeSet::from(["net".to_owned(), "net-2".to_owned()]);
        assert_eq!(first_free("net", &taken), "net-3");
        assert_eq!(first_free("other", &taken), "other");
    }

    #[test]
    fn paths_are_relative_to_the_specification() {
        let path = path_from(Some(Path::new("experiments")), Path::new("models/m.onnx")).expect("a path");
        assert_eq!(path, "../models/m.onnx");
    }

    #[test]
    fn doubtful_scalars_are_quoted() {
        assert_eq!(quoted("mlp-1.onnx"), "mlp-1.onnx");
        assert_eq!(quoted("1e3"), "\"1e3\"");
        assert_eq!(quoted("no"), "\"no\"");
        assert_eq!(quoted("a: b"), "\"a: b\"");
    }
}
