//! The models axis: paths, folders and globs to files, each with a name of its own.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::{Axis, BackendKind, dataset, decode, inputs};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::files::Depth;
use crate::form::{DimensionText, ExperimentForm, ModelEntry, ModelForm, TakesEntry};
use crate::note::Note;
use base::name::{FileName, fitting_name, fitting_or, is_name, names_of_files};
use experiment::is_glob;
use experiment::{Combine, Model, Network, Precision, PythonModel, Source, Variant, ZOO};
use files::digest;
use onnx::decoder::name_by_folder;
use onnx::zoo::{self, Settings};
use onnx::{Dimension, ElementType, TensorType};
use reading::nearest::suggestion;

/// A model with the place that it comes from and the path as the user would write it.
struct Found {
    place: DocumentPath,
    written: String,
    /// Whether its name is made from the file's.
    is_named_by_file: bool,
    model: Model,
}

/// Every model in the order of the file; those of a folder or glob in the order of their paths.
pub(super) fn expand(form: &ExperimentForm, folder: &Path, backend: BackendKind, check: &mut Check<'_>) -> Axis<Model> {
    let (top, combine) = (DocumentPath::top("models"), form.matrix.design);
    let mut is_complete = !check.is_damaged(&top);
    let mut found = Vec::new();
    for (place, entry) in form.models.places(&top) {
        if check.is_damaged(&place) {
            is_complete = false;
            continue;
        }
        let before = check.problems.len();
        match entry {
            ModelEntry::Path(text) if backend != BackendKind::ReadsModels && is_mock_name(folder, text) => {
                let model = Model::new(text.clone(), None);
                found.push(Found { place, written: text.clone(), is_named_by_file: false, model });
            }
            ModelEntry::Path(text) if text.starts_with(ZOO) => found.extend(from_word(text, &place, check)),
            ModelEntry::Path(text) => found.extend(from_path(text, &place, &place, folder, check)),
            ModelEntry::Form(form) => found.extend(from_form(form, combine, &place, folder, backend, check)),
        }
        is_complete &= check.problems.len() == before;
    }
    check_names(&found, check);
    name_files(&mut found, check);
    Axis { values: found.into_iter().map(|found| found.model).collect(), is_complete }
}

/// `zoo:resnet50`.
fn from_word(text: &str, place: &DocumentPath, check: &mut Check<'_>) -> Option<Found> {
    let name = text.strip_prefix(ZOO).unwrap_or(text).trim();
    let Some(network) = Network::of_name(name) else {
        let known = Network::ALL.map(Network::name);
        check.error(place, format!("there is no built-in network `{name}`"), suggestion(name, known, "network"));
        return None;
    };
    Some(of_source(Source::Zoo { network, classes: None, image: None, cache: None }, network.name(), text, place))
}

/// A model that is no file of the user's.
fn of_source(source: Source, name: &str, written: &str, place: &DocumentPath) -> Found {
    let (name, source) = (name.to_owned(), Some(source));
    let model = Model { source, ..Model::new(name, None) };
    Found { place: place.clone(), written: written.to_owned(), is_named_by_file: false, model }
}

/// The model of a form that names a network or a place to fetch it from, if it does.
fn from_source(form: &ModelForm, place: &DocumentPath, check: &mut Check<'_>) -> Option<Option<Found>> {
    let written = [
        ("path", form.path.is_some()),
        ("zoo", form.zoo.is_some()),
        ("url", form.url.is_some()),
        ("python", form.python.is_some()),
    ];
    let mut written = written.into_iter().filter(|(_, is_written)| *is_written).map(|(key, _)| key);
    let (first, second) = (written.next(), written.next());
    if let (Some(first), Some(second)) = (first, second)
        && (first, second) != ("path", "python")
    {
        let problem =
            check.at_key(&place.key(second), format!("`{second}` and `{first}` give two sources for one model"));
        check.problems.push(problem.with_hint("leave one out"));
        return Some(None);
    }
    let of_networks = [
        ("classes", form.classes.is_some(), "the classes of a file are fixed"),
        ("image", form.image.is_some(), "`inputs` sets the sizes that a file leaves free"),
        ("cache", form.cache.is_some(), "the form of a file's cache is fixed"),
    ];
    for (key, is_written, hint) in of_networks {
        if is_written && form.zoo.is_none() {
            let problem = check.at_key(&place.key(key), format!("`{key}` goes with `zoo`"));
            check.problems.push(problem.with_hint(hint));
        }
    }
    let has_python = form.python.is_some();
    let of_python = [
        ("args", has_python, !form.args.is_empty()),
        ("takes", has_python && form.path.is_none(), !form.takes.0.is_empty()),
    ];
    for (key, has_effect, is_written) in of_python {
        if is_written && !has_effect {
            let alone = if has_python { " without `path`" } else { "" };
            let problem = check.at_key(&place.key(key), format!("`{key}` goes with `python`{alone}"));
            check.problems.push(problem.with_hint("an ONNX file says itself what it takes"));
        }
    }
    if let Some(call) = form.python.as_ref().filter(|_| form.path.is_none()) {
        return Some(from_python(call, form, place, check));
    }
    if let Some(network) = form.zoo {
        let (classes, image, cache) = (form.classes, form.image, form.cache);
        let settings = Settings { classes, image, cache, ..Settings::default() };
        if let Err(problem) = zoo::check(zoo::architecture_of(network), &settings) {
            check.error(&place.key(problem.setting()), problem.to_string(), None);
        }
        // Several forms of one network have names of their own.
        let name = match cache {
            Some(form) => format!("{}-{}", network.name(), form.name()),
            None => network.name().to_owned(),
        };
        let source = Source::Zoo { network, classes, image, cache };
        return Some(Some(of_source(source, &name, network.name(), place)));
    }
    let url = form.url.as_deref()?;
    if !url.starts_with("https://") && !url.starts_with("http://") {
        check.error(
            &place.key("url"),
            format!("`{url}` is not a URL"),
            "write one that begins with https://".to_owned(),
        );
        return Some(None);
    }
    if form.sha256.is_none() {
        let problem = check.at_key(&place.key("url"), "a model that is fetched needs its `sha256`");
        check.problems.push(problem.with_hint("so that everybody measures the same file: `sha256sum FILE` prints it"));
        return Some(None);
    }
    let stem = url.rsplit('/').next().unwrap_or(url).trim_end_matches(".onnx");
    Some(Some(of_source(Source::Url(url.to_owned()), &fitting_or(stem, "model"), url, place)))
}

/// A model that a function of Python returns.
fn from_python(call: &str, form: &ModelForm, place: &DocumentPath, check: &mut Check<'_>) -> Option<Found> {
    let name = call.rsplit([':', '.']).next().unwrap_or(call);
    let input = |(name, entry): &(String, TakesEntry)| {
        let (shape, element) = match entry {
            TakesEntry::Shape(shape) => (shape, "float32"),
            TakesEntry::Form(form) => (&form.shape, form.element.0.as_str()),
        };
        let dimension =
            |text: &DimensionText| text.0.parse().map_or_else(|_| Dimension::Named(text.0.clone()), Dimension::Fixed);
        TensorType {
            name: name.clone(),
            element: ElementType::of_name(element),
            shape: Some(shape.iter().map(dimension).collect()),
        }
    };
    let inputs = form.takes.0.iter().map(input).collect();
    let model = PythonModel { call: call.to_owned(), args: form.args.clone(), inputs };
    if form.sha256.is_some() {
        let problem = check.at_key(&place.key("sha256"), "`sha256` has no effect with `python` alone");
        check.problems.push(problem.with_hint("leave it out"));
        return None;
    }
    Some(of_source(Source::Python(model), &fitting_name(name), call, place))
}

/// With the mock backend a word is a name, unless it looks like a file or is one.
fn is_mock_name(folder: &Path, text: &str) -> bool {
    is_name(text) && !text.ends_with(".onnx") && !folder.join(text).exists()
}

/// The models of a path, folder or glob; `place` is the entry's, `path_place` the text's.
fn from_path(
    text: &str,
    place: &DocumentPath,
    path_place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> Vec<Found> {
    let files = match check.depth.find(folder, text) {
        Ok(files) => files,
        Err(problem) => {
            check.error(path_place, problem.message, problem.hint);
            return Vec::new();
        }
    };
    let mut found = Vec::with_capacity(files.len());
    let is_one_of_many = files.len() > 1 || !folder.join(text).is_file();
    for path in files {
        let written = if is_one_of_many { relative(folder, &path) } else { text.to_owned() };
        if let Err(problem) = check.depth.inspect(&path, &written) {
            check.error(path_place, problem.message, problem.hint);
            continue;
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let model = Model::new(stem.unwrap_or_default(), Some(path));
        found.push(Found { place: place.clone(), written, is_named_by_file: true, model });
    }
    found
}

/// The path as it would be written in the spec.
fn relative(folder: &Path, path: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    path.strip_prefix(&folder).unwrap_or(path).display().to_string()
}

fn from_form(
    form: &ModelForm,
    combine: Combine,
    place: &DocumentPath,
    folder: &Path,
    backend: BackendKind,
    check: &mut Check<'_>,
) -> Vec<Found> {
    let mut found = match (&form.path, &form.name) {
        _ if let Some(found) = from_source(form, place, check) => found.into_iter().collect(),
        (Some(path), _) => from_path(path, place, &place.key("path"), folder, check),
        (None, Some(name)) if backend != BackendKind::ReadsModels => {
            let model = Model::new(name.0.clone(), None);
            vec![Found { place: place.clone(), written: name.0.clone(), is_named_by_file: false, model }]
        }
        (None, name) => {
            let what = name.as_ref().map_or("this model".to_owned(), |name| format!("the model `{}`", name.0));
            let key = if form.name.is_some() { place.key("name") } else { place.clone() };
            check.error(&key, format!("{what} has no `path`"), "only the mock backend needs none".to_owned());
            return Vec::new();
        }
    };
    let for_one = [
        ("name", form.name.is_some()),
        ("sha256", form.sha256.is_some()),
        ("files", !form.files.0.is_empty()),
        ("python", form.python.is_some()),
    ];
    if found.len() > 1
        && let Some((key, _)) = for_one.into_iter().find(|(_, is_written)| *is_written)
    {
        let path = form.path.as_deref().unwrap_or_default();
        let kind = if is_glob(path) { "glob" } else { "folder" };
        let message = format!("`{key}` is for one model, and the {kind} `{path}` has {}", found.len());
        check.error(&place.key(key), message, "write an entry for each file".to_owned());
        return Vec::new();
    }
    let dataset = form.dataset.as_ref().and_then(|form| dataset::expand(form, &place.key("dataset"), folder, check));
    let points = match &form.decode {
        Some(calls) => Some(decode::expand(calls, &place.key("decode"), form.inputs.is_some(), folder, check).values),
        None => {
            let own = form.inputs.as_ref();
            own.map(|own| inputs::expand(Some(own), combine, &place.key("inputs"), folder, check).values)
        }
    };
    for one in &mut found {
        if let Some(name) = &form.name {
            one.model.name = name.0.clone();
            one.is_named_by_file = false;
        }
        one.model.inputs.clone_from(&points);
        one.model.dataset.clone_from(&dataset);
        one.model.decoder.clone_from(&form.decoder);
    }
    if let [one] = found.as_mut_slice() {
        one.model.files = own_files(form, place, folder, check);
        if let (Some(call), Some(_)) = (&form.python, &form.path) {
            let python = PythonModel { call: call.clone(), args: form.args.clone(), inputs: Vec::new() };
            one.model.source = Some(Source::Python(python));
        }
    }
    if let (Some(expected), [one]) = (&form.sha256, found.as_mut_slice()) {
        one.model.sha256 = Some(expected.0.to_lowercase());
        check_sum(&expected.0.to_lowercase(), one, check);
    }
    found
}

/// The user's own files for variants of a model.
fn own_files(
    form: &ModelForm,
    place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> BTreeMap<String, PathBuf> {
    let place = place.key("files");
    let mut own = BTreeMap::new();
    for (key, text) in &form.files.0 {
        let place = place.key(key);
        match check.depth.one(folder, text) {
            Ok(file) => drop(own.insert(key.clone(), file)),
            Err(problem) => check.error(&place, problem.message, problem.hint),
        }
    }
    own
}

/// Refuses files for what is neither a variant nor the precision of one.
pub(super) fn check_files(
    form: &ExperimentForm,
    models: &Axis<Model>,
    variants: &Axis<Variant>,
    check: &mut Check<'_>,
) {
    if !variants.is_complete || models.values.is_empty() {
        return;
    }
    let mut known: Vec<&str> = variants.values.iter().map(|variant| variant.name.as_str()).collect();
    known.extend(variants.values.iter().map(|variant| variant.precision.name()));
    for (place, entry) in form.models.places(&DocumentPath::top("models")) {
        let ModelEntry::Form(form) = entry else { continue };
        for (key, _) in form.files.0.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let place = place.key("files").key(key);
            let problem =
                check.at_key(&place, format!("`{key}` is not a variant of this experiment, nor the precision of one"));
            let hint = if Precision::of_name(key).is_some() {
                format!("add `{key}` to `variants`")
            } else {
                suggestion(key, known.iter().copied(), "variant").unwrap_or_default()
            };
            check.problems.push(problem.with_hint(hint));
        }
    }
}

fn check_sum(expected: &str, found: &Found, check: &mut Check<'_>) {
    let Some(path) = &found.model.path else {
        if matches!(found.model.source, Some(Source::Url(_))) {
            return;
        }
        check.error(&found.place.key("sha256"), "`sha256` has no effect without a `path`", None);
        return;
    };
    if check.depth == Depth::Names {
        return;
    }
    match digest::of_file(path) {
        Ok(actual) if actual == expected => {}
        Ok(actual) => {
            let message = format!("`{}` does not have this SHA-256", found.written);
            let hint =
                format!("the file has {actual}; fetch the right file, or write this hash if the change is intended");
            check.error(&found.place.key("sha256"), message, hint);
        }
        Err(error) => check.error(&found.place.key("path"), format!("cannot read `{}`: {error}", found.written), None),
    }
}

/// Gives each file that has no name of its own one that no other model has, and says where it is not that of the file.
fn name_files(found: &mut [Found], check: &mut Check<'_>) {
    let own = found.iter().filter(|one| !one.is_named_by_file);
    let taken = own.map(|one| one.model.name.clone()).collect();
    let folder = |one: &Found| {
        let folder = one.model.path.as_deref().and_then(Path::parent).and_then(Path::file_name);
        folder.map(|name| name.to_string_lossy().into_owned())
    };
    let mut files: Vec<&mut Found> = found.iter_mut().filter(|one| one.is_named_by_file).collect();
    let file = |one: &&mut Found| {
        let better = one.model.path.as_deref().and_then(name_by_folder);
        FileName { stem: one.model.name.clone(), folder: folder(one), better }
    };
    let parts: Vec<FileName> = files.iter().map(file).collect();
    for ((one, parts), name) in files.iter_mut().zip(&parts).zip(names_of_files(&parts, &taken)) {
        if one.model.name == name {
            continue;
        }
        if parts.better.as_ref() != Some(&name) {
            check.notes.push(Note::NamedModel { file: one.written.clone(), name: name.clone() });
        }
        one.model.name = name;
    }
}

/// Two entries for one file without names that differ, and names that stand twice.
fn check_names(found: &[Found], check: &mut Check<'_>) {
    let mut first_of_name: HashMap<&str, Vec<&Found>> = HashMap::new();
    for one in found {
        if check.is_full() {
            return;
        }
        let name = &one.model.name;
        let before = first_of_name.entry(name).or_default();
        if one.model.path.is_some() && before.iter().any(|other| other.model.path == one.model.path) {
            let message = format!("the model `{}` is listed twice", one.written);
            check.error(&one.place, message, "leave one out, or give them different names".to_owned());
        } else if !one.is_named_by_file && before.iter().any(|other| !other.is_named_by_file) {
            check.error(&one.place, format!("two models are named `{name}`"), "give each its own `name`".to_owned());
        }
        before.push(one);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::note::Note;
    use experiment::Source;

    #[test]
    fn a_file_may_say_how_python_makes_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.onnx"), "abc").unwrap();
        let parsed = |entry: &str| {
            crate::parse("x.yaml", &format!("models: [{{ path: a.onnx, {entry} }}]\n"), folder.path(), &[])
        };
        let loaded = parsed("python: 'transformers:AutoModelForCausalLM', args: { size: 1 }").unwrap();
        let model = loaded.experiment.models.first().unwrap();
        assert!(model.path.as_ref().is_some_and(|path| path.ends_with("a.onnx")));
        let Some(Source::Python(python)) = &model.source else { panic!("{model:?}") };
        assert_eq!((python.args["size"].as_u64(), python.is_exported()), (Some(1), false));
        assert!(parsed("python: 'm:f', takes: { x: [1] }").is_err());
        assert!(parsed("args: { size: 1 }").is_err());
    }

    #[test]
    fn files_get_names_that_are_names_and_differ() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a.onnx", "mo del ünï.onnx", "v2/a.onnx"] {
            std::fs::create_dir_all(folder.path().join("m/v2")).unwrap();
            std::fs::write(folder.path().join("m").join(path), "abc").unwrap();
        }
        let named = |models: &str| {
            let loaded = crate::parse("x.yaml", &format!("models: {models}\n"), folder.path(), &[]).unwrap();
            let names: Vec<String> = loaded.experiment.models.into_iter().map(|model| model.name).collect();
            (names, loaded.notes)
        };
        let note = |file: &str, name: &str| Note::NamedModel { file: file.to_owned(), name: name.to_owned() };
        let (names, notes) = named("m/**/*.onnx");
        assert_eq!(names, ["m-a", "mo-del-uni", "v2-a"]);
        assert_eq!(notes[1], note("m/mo del ünï.onnx", "mo-del-uni"));
        assert_eq!(named("m/a.onnx"), (vec!["a".to_owned()], Vec::new()));
        assert_eq!(named("[{ name: a, path: m/v2/a.onnx }, m/a.onnx]").0, ["a", "a-2"]);
        // As optimum writes them: the folder says more than the file, unless several of it are there.
        for path in ["t5/config.json", "t5/decoder_model.onnx", "t5/decoder_model_merged.onnx", "gpt 2/config.json"] {
            std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(path), "{}").unwrap();
        }
        std::fs::create_dir_all(folder.path().join("gpt 2/onnx")).unwrap();
        std::fs::write(folder.path().join("gpt 2/onnx/model_q4.onnx"), "abc").unwrap();
        assert_eq!(named("t5/decoder_model_merged.onnx"), (vec!["t5".to_owned()], Vec::new()));
        assert_eq!(named("[t5, gpt 2]").0, ["decoder_model", "decoder_model_merged", "gpt-2"]);
        assert_eq!(named("{ name: mine, path: t5/decoder_model.onnx }").0, ["mine"]);
        let forms =
            "[zoo:gpt-tiny, { zoo: gpt-tiny, cache: static }, { zoo: gpt-tiny, cache: shared, name: one-buffer }]";
        assert_eq!(named(forms).0, ["gpt-tiny", "gpt-tiny-static", "one-buffer"]);
    }
}
