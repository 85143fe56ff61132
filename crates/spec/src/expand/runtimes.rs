//! The runtimes axis: released versions, local builds, and with the mock backend names.

use std::path::{Path, PathBuf};

use super::{Axis, BackendKind};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::files::absolute;
use crate::form::{ExperimentForm, RuntimeEntry, RuntimeForm, VariantEntry};
use crate::wording::{bad_name, quote};
use base::name::{fitting_name, is_name};
use experiment::{Adapter, OLDEST_RUNTIME, Package, Program, Runtime, SHIPPED, is_new_enough, version_numbers};
use reading::nearest::{list, suggestion};
use reading::yaml::scalar;

/// Every runtime in the order of the file; none where the spec leaves the one to perfrun.
pub(super) fn expand(
    form: &ExperimentForm,
    folder: &Path,
    backend: BackendKind,
    check: &mut Check<'_>,
) -> Axis<Runtime> {
    let top = DocumentPath::top("runtimes");
    let mut axis = Axis { values: Vec::new(), is_complete: !check.is_damaged(&top) };
    let mut names = Vec::new();
    for (place, entry) in form.runtimes.iter().flat_map(|entries| entries.places(&top)) {
        if check.is_damaged(&place) {
            axis.is_complete = false;
            continue;
        }
        let runtime = match entry {
            RuntimeEntry::Version(text) => from_word(text, &place, backend, check),
            RuntimeEntry::Form(form) => from_form(form, &place, folder, backend, check),
        };
        axis.is_complete &= runtime.is_some();
        names.extend(runtime.iter().map(|runtime| (place.clone(), runtime.name.clone())));
        axis.values.extend(runtime);
    }
    check.duplicates("runtimes", &names, "give each its own `name`");
    add_versions_of_variants(form, backend, &mut axis, check);
    axis
}

/// A released version that a variant asks for need not stand in `runtimes` too. Where nothing does, the other variants run on the
/// library that they would have without any.
fn add_versions_of_variants(
    form: &ExperimentForm,
    backend: BackendKind,
    axis: &mut Axis<Runtime>,
    check: &mut Check<'_>,
) {
    let top = DocumentPath::top("variants");
    let entries: Vec<_> =
        form.variants.places(&top).into_iter().filter(|(place, _)| !check.is_damaged(place)).collect();
    let runtime = |entry: &VariantEntry| match entry {
        VariantEntry::Form(form) => form.runtime.as_ref().map(|name| name.0.clone()),
        VariantEntry::Precision(_) => None,
    };
    let is_plain = |entry: &VariantEntry| match entry {
        VariantEntry::Form(form) => form.runtime.is_none() && form.base.is_none(),
        VariantEntry::Precision(_) => true,
    };
    let is_open = form.runtimes.is_none() && entries.iter().any(|(_, entry)| is_plain(entry));
    for (place, entry) in entries {
        let Some(name) = runtime(entry) else { continue };
        let is_version = version_numbers(&name).is_some()
            || backend == BackendKind::ReadsModels && name.starts_with(|first: char| first.is_ascii_digit());
        if axis.values.iter().any(|known| known.name == name) || !is_version {
            continue;
        }
        if axis.values.is_empty() && is_open {
            axis.values.push(Runtime { name: "default".to_owned(), ..Runtime::default() });
        }
        let version = from_word(&name, &place.key("runtime"), backend, check);
        axis.is_complete &= version.is_some();
        axis.values.extend(version);
    }
}

/// A bare word is a version; the mock backend has none, so that there it is a name.
fn from_word(text: &str, place: &DocumentPath, backend: BackendKind, check: &mut Check<'_>) -> Option<Runtime> {
    let looks_like_number = text.parse::<f64>().is_ok();
    if backend != BackendKind::ReadsModels && !looks_like_number {
        if !is_name(text) {
            check.problems.push(bad_name(check.at(place, ""), &place.name(), text));
            return None;
        }
        return Some(Runtime { name: text.to_owned(), ..Runtime::default() });
    }
    let version = read_version(text, Package::Onnxruntime, place, check)?;
    Some(Runtime { name: version.clone(), version: Some(version), ..Runtime::default() })
}

/// A version that perfrun can open; whether there is one is known once it is fetched.
fn read_version(text: &str, package: Package, place: &DocumentPath, check: &mut Check<'_>) -> Option<String> {
    let known = package.versions();
    let numbers = version_numbers(text);
    if numbers.is_some_and(is_new_enough) {
        return Some(text.to_owned());
    }
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('.').collect();
    let (message, hint) = if !parts.iter().all(|part| is_number(part)) || parts.len() > 3 {
        let is_path = text.contains('/') || text.contains(".so");
        let local = format!("a local build is a map: `{{ path: {} }}`", scalar(text));
        let hint = if is_path { local } else { format!("write for example \"{}\"", known[0]) };
        (format!("{} is not a version", quote(text)), hint)
    } else if parts.len() < 3 {
        // `1.3` may be meant for 1.30, which YAML reads as the same number: nothing is guessed.
        let newest = known.iter().find(|version| version.starts_with(&format!("{text}.")));
        let whole = newest.map_or_else(|| known[0].to_owned(), |version| (*version).to_owned());
        (format!("{} is incomplete; a version has three parts", quote(text)), format!("write \"{whole}\""))
    } else {
        let [major, minor] = OLDEST_RUNTIME;
        let message = format!("ONNX Runtime {text} is too old: perfrun needs {major}.{minor} or newer");
        (message, format!("name a newer one, such as {}", quote(known[0])))
    };
    check.error(place, message, hint);
    None
}

fn from_form(
    form: &RuntimeForm,
    place: &DocumentPath,
    folder: &Path,
    backend: BackendKind,
    check: &mut Check<'_>,
) -> Option<Runtime> {
    if form.adapter.is_some() || form.command.is_some() {
        return from_program(form, place, folder, check);
    }
    if form.python.is_some() {
        let problem = check.at_key(&place.key("python"), "`python` goes with `adapter`");
        check.problems.push(problem.with_hint("leave it out, or add for example `adapter: pytorch`"));
        return None;
    }
    let contradiction = match form {
        RuntimeForm { path: Some(_), version: Some(_), .. } => {
            Some(("version", "`version` and `path` give two libraries for one runtime"))
        }
        RuntimeForm { path: Some(_), package: Some(_), .. } => {
            Some(("package", "`package` has no effect with `path`, which names the library itself"))
        }
        _ => None,
    };
    if let Some((key, message)) = contradiction {
        let problem = check.at_key(&place.key(key), message);
        check.problems.push(problem.with_hint("leave one out"));
        return None;
    }
    let (own, package) = (form.name.as_ref().map(|name| name.0.clone()), form.package);
    if let Some(text) = &form.path {
        let place = place.key("path");
        let path = match check.depth.existing(folder, text) {
            Ok(path) => path,
            Err(problem) => {
                check.error(&place, problem.message, problem.hint);
                return None;
            }
        };
        return Some(Runtime { name: own.unwrap_or_else(|| name_of(&path)), path: Some(path), ..Runtime::default() });
    }
    if let Some(text) = &form.version {
        let version = read_version(text, package.unwrap_or(Package::Onnxruntime), &place.key("version"), check)?;
        return Some(Runtime {
            name: own.unwrap_or_else(|| version.clone()),
            version: Some(version),
            package,
            ..Runtime::default()
        });
    }
    match own {
        Some(name) if backend != BackendKind::ReadsModels && package.is_none() => {
            Some(Runtime { name, ..Runtime::default() })
        }
        _ => {
            let name = form.name.as_ref().map_or("this runtime".to_owned(), |name| format!("the runtime `{}`", name.0));
            let message = format!("{name} has no `version`, `path`, `adapter` or `command`");
            check.error(place, message, "only the mock backend needs none".to_owned());
            None
        }
    }
}

/// Another program than ONNX Runtime.
fn from_program(form: &RuntimeForm, place: &DocumentPath, folder: &Path, check: &mut Check<'_>) -> Option<Runtime> {
    let others = [
        ("version", form.version.is_some()),
        ("package", form.package.is_some()),
        ("path", form.path.is_some()),
        ("command", form.command.is_some() && form.adapter.is_some()),
        ("python", form.python.is_some() && form.adapter.is_none()),
    ];
    if let Some((key, _)) = others.into_iter().find(|(_, is_written)| *is_written) {
        let kind = if form.adapter.is_some() { "adapter" } else { "command" };
        let problem = check.at_key(&place.key(key), format!("`{key}` has no effect with `{kind}`"));
        check.problems.push(problem.with_hint("leave one out"));
        return None;
    }
    let (program, own_name) = match (&form.adapter, &form.command) {
        (Some(adapter), _) => {
            let python = command(form.python.as_deref().unwrap_or("python3"), folder);
            let (adapter, name) = adapter_of(adapter, &place.key("adapter"), folder, check)?;
            (Program::Adapter { adapter, python }, name)
        }
        (None, Some(words)) => {
            let [first, arguments @ ..] = words.as_slice() else { return None };
            let command = command(first, folder);
            let name = command.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            (Program::Command { command, arguments: arguments.to_vec() }, fitting_name(&name))
        }
        (None, None) => return None,
    };
    let name = form.name.as_ref().map_or(own_name, |name| name.0.clone());
    Some(Runtime { name, program: Some(program), ..Runtime::default() })
}

/// A command as it is, or a path, which need not be there: a runtime that is missing on a machine is skipped there.
fn command(text: &str, folder: &Path) -> PathBuf {
    if text.contains('/') { absolute(folder, Path::new(text)) } else { PathBuf::from(text) }
}

fn adapter_of(text: &str, place: &DocumentPath, folder: &Path, check: &mut Check<'_>) -> Option<(Adapter, String)> {
    if SHIPPED.contains_key(text) {
        return Some((Adapter::Shipped(text.to_owned()), text.to_owned()));
    }
    if !text.ends_with(".py") {
        let known = SHIPPED.keys().copied();
        let hint = suggestion(text, known, "adapter").unwrap_or_else(|| {
            format!(
                "perfrun has {}; one of yours is a path that ends in .py",
                list(&SHIPPED.keys().copied().collect::<Vec<_>>(), "and")
            )
        });
        check.error(place, format!("there is no adapter {}", quote(text)), hint);
        return None;
    }
    let file = match check.depth.existing(folder, text) {
        Ok(file) => file,
        Err(problem) => {
            check.error(place, problem.message, problem.hint);
            return None;
        }
    };
    let name = file.file_stem().map(|stem| fitting_name(&stem.to_string_lossy())).unwrap_or_default();
    Some((Adapter::File(file), name))
}

/// What a local build is called unless the specification names it: its folder's name; a file's is the same for all of them,
/// so there it is `local`, with the version that the file's name ends in.
fn name_of(path: &Path) -> String {
    let last = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match path.is_dir() {
        true => fitting_name(&last),
        false => match last.split_once(".so.") {
            Some((_, version)) => fitting_name(&format!("local-{version}")),
            None => String::new(),
        },
    };
    if name.is_empty() { "local".to_owned() } else { name }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::expand::tests::{mock, problems};
    use crate::parse;
    use experiment::Runtime;

    use super::*;

    fn runtimes(folder: &Path, text: &str) -> Result<Vec<Runtime>, String> {
        std::fs::write(folder.join("m.onnx"), "abc").unwrap();
        let loaded = parse("x.yaml", &format!("models: m.onnx\nruntimes: {text}"), folder, &[]);
        loaded.map(|loaded| loaded.experiment.runtimes).map_err(|error| error.problems()[0].message.to_owned())
    }

    #[test]
    fn a_version_is_its_name_and_keeps_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let found =
            runtimes(folder.path(), "[1.30.0, { name: new, version: 1.31.1, package: onnxruntime-gpu }]").unwrap();
        let version = |version: &str| Some(version.to_owned());
        let expected = [
            Runtime { name: "1.30.0".to_owned(), version: version("1.30.0"), ..Runtime::default() },
            Runtime {
                name: "new".to_owned(),
                version: version("1.31.1"),
                package: Some(Package::OnnxruntimeGpu),
                ..Runtime::default()
            },
        ];
        assert_eq!(found, expected);
        assert_eq!(runtimes(folder.path(), "1.31.1").unwrap()[0].name, "1.31.1");
        assert_eq!(runtimes(folder.path(), "[1.30]").unwrap_err(), "`1.30` is incomplete; a version has three parts");
        assert_eq!(runtimes(folder.path(), "nightly").unwrap_err(), "`nightly` is not a version");
        // What was released after this perfrun is a version too.
        assert_eq!(runtimes(folder.path(), "[1.98.0, 2.0.0]").unwrap().len(), 2);
        let old = "ONNX Runtime 1.24.4 is too old: perfrun needs 1.25 or newer";
        assert_eq!(runtimes(folder.path(), "[1.24.4]").unwrap_err(), old);
    }

    #[test]
    fn a_version_that_a_variant_asks_for_need_not_stand_in_runtimes() {
        let names = |text: &str| -> Vec<String> { mock(text).runtimes.iter().map(|it| it.name.clone()).collect() };
        let old = "{ name: old, runtime: 1.30.0 }";
        assert_eq!(names(&format!("variants: [{old}, {{ name: new, runtime: 1.31.1 }}]")), ["1.30.0", "1.31.1"]);
        assert_eq!(names(&format!("variants: [fp32, {old}]")), ["default", "1.30.0"]);
        assert_eq!(
            names(&format!("runtimes: 1.31.1\nvariants: [fp32, {old}, {{ name: a, base: old }}]")),
            ["1.31.1", "1.30.0"]
        );
        assert_eq!(names(&format!("variants: [{old}, {{ name: a, base: old }}]")), ["1.30.0"]);
        assert_eq!(problems("variants: [{ name: a, runtime: old }]"), ["there is no runtime `old`"]);
        let folder = tempfile::tempdir().unwrap();
        let short = runtimes(folder.path(), "[1.31.1]\nvariants: [{ name: a, runtime: 1.30 }]").unwrap_err();
        assert_eq!(short, "`1.30` is incomplete; a version has three parts");
    }

    #[test]
    fn a_local_build_is_named_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("builds/my build")).unwrap();
        for name in ["libonnxruntime.so", "libonnxruntime.so.1.32.0"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let text = "[{ path: builds/my build }, { path: libonnxruntime.so }, { path: ./libonnxruntime.so.1.32.0 }]";
        let found = runtimes(folder.path(), text).unwrap();
        let names: Vec<&str> = found.iter().map(|runtime| runtime.name.as_str()).collect();
        assert_eq!(names, ["my-build", "local", "local-1.32.0"]);
        assert!(found.iter().all(|runtime| runtime.path.as_ref().is_some_and(|path| path.is_absolute())));
    }

    #[test]
    fn the_mock_backend_takes_names() {
        let names = |text: &str| mock(&format!("runtimes: {text}")).runtimes.into_iter().map(|runtime| runtime.name);
        assert!(names("[old, { name: new }]").eq(["old", "new"]));
        assert!(names("[1.30.0, 9.9.9]").eq(["1.30.0", "9.9.9"]));
        assert_eq!(problems("runtimes: [1.30]"), ["`1.30` is incomplete; a version has three parts"]);
        assert!(mock("").runtimes.is_empty());
    }
}
