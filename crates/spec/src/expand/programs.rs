//! Variants that are run by another program than ONNX Runtime: which one, and whether it takes what they ask for.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use super::Axis;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{ExperimentForm, VariantEntry, VariantForm};
use experiment::{Boundary, Declaration, Design, Measure, Runtime, Variant};
use reading::nearest::{list, suggestion};

/// The runtimes that an entry of `variants` may be run on: the one that it names, all where no entry names one, else those that
/// none names.
fn used<'a>(variant: &Variant, all: &ExperimentForm, runtimes: &'a [Runtime]) -> Vec<&'a Runtime> {
    let names = |entry: &VariantEntry| match entry {
        VariantEntry::Form(form) => form.runtime.as_ref().map(|name| name.0.clone()),
        VariantEntry::Precision(_) => None,
    };
    let named: Vec<String> = all.variants.as_slice().iter().filter_map(names).collect();
    let is_used = |runtime: &&Runtime| match &variant.runtime {
        Some(name) => runtime.name == *name,
        None => !named.contains(&runtime.name),
    };
    runtimes.iter().filter(is_used).collect()
}

/// Checks what an entry of `variants` says of its runtime, and for it.
pub(super) fn check(
    form: &VariantForm,
    variant: &Variant,
    all: &ExperimentForm,
    place: &DocumentPath,
    runtimes: &Axis<Runtime>,
    check: &mut Check<'_>,
) {
    let used = used(variant, all, &runtimes.values);
    if let (Some(name), true, true) = (&form.runtime, used.is_empty(), runtimes.is_complete) {
        let known: Vec<&str> = runtimes.values.iter().map(|runtime| runtime.name.as_str()).collect();
        let hint = suggestion(&name.0, known.iter().copied(), "runtime");
        let hint = hint.unwrap_or_else(|| "add it to `runtimes`".to_owned());
        check.error(&place.key("runtime"), format!("there is no runtime `{}`", name.0), hint);
        return;
    }
    let declared = |runtime: &&&Runtime| runtime.program.is_some();
    let program =
        used.iter().find(declared).and_then(|runtime| Some((*runtime, runtime.program.as_ref()?.declaration())));
    let Some((runtime, declaration)) = program else {
        if !variant.options.is_empty() && runtimes.is_complete {
            let problem = check.at_key(&place.key("options"), "`options` has no effect on ONNX Runtime");
            check.problems.push(problem.with_hint(
                "they are for an adapter or a program in `runtimes`; ONNX Runtime has `session` and `provider`",
            ));
        }
        return;
    };
    check_options(&variant.options.clone().into(), &declaration, &runtime.name, &place.key("options"), check);
    check_settings(form, &declaration, &runtime.name, place, check);
}

fn check_options(
    options: &Value,
    declaration: &Declaration,
    runtime: &str,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    if declaration.options.is_null() {
        return;
    }
    let Ok(validator) = jsonschema::validator_for(&declaration.options) else { return };
    let known: Vec<&str> = declaration.options["properties"]
        .as_object()
        .into_iter()
        .flat_map(|properties| properties.keys().map(String::as_str))
        .collect();
    for error in validator.iter_errors(options) {
        let at = error.instance_path().iter().fold(place.clone(), |place, segment| match segment {
            LocationSegment::Property(key) => place.key(&key),
            LocationSegment::Index(index) => place.index(index),
        });
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                for key in unexpected {
                    let problem = check.at_key(&at.key(key), format!("`{key}` is no option of `{runtime}`"));
                    let hint = suggestion(key, known.iter().copied(), "option").unwrap_or_default();
                    check.problems.push(problem.with_hint(hint));
                }
            }
            ValidationErrorKind::Enum { options } => {
                let words: Vec<String> = options
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|word| word.as_str().unwrap_or_default().to_owned())
                    .collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let message = format!("{} is no value of {} of `{runtime}`", error.instance(), at.name());
                check.error(&at, message, format!("choose one of {}", list(&words, "and")));
            }
            _ => check.error(&at, format!("{error}"), None),
        }
    }
}

/// Settings of ONNX Runtime that the program would not see.
fn check_settings(
    form: &VariantForm,
    declaration: &Declaration,
    runtime: &str,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    let written = [
        ("graph_optimization", form.graph_optimization.is_some()),
        ("execution", form.execution.is_some()),
        ("session", !form.session.0.is_empty()),
        ("provider", !form.provider.0.is_empty()),
        ("sessions", form.sessions.is_some()),
        ("shared_session", form.shared_session.is_some()),
        ("cache", form.cache.is_some()),
    ];
    for (key, _) in written
        .into_iter()
        .filter(|(key, is_written)| *is_written && !declaration.settings.iter().any(|setting| setting == key))
    {
        let problem = check.at_key(&place.key(key), format!("`{key}` has no effect on the runtime `{runtime}`"));
        check.problems.push(problem.with_hint("leave it out, or name another `runtime` in this variant"));
    }
}

/// Where a variant names its runtime, every variant gets one: those that name none the entry that is left, or the usual
/// ONNX Runtime.
pub(super) fn assign(variants: &mut Axis<Variant>, runtimes: &mut Axis<Runtime>, check: &mut Check<'_>) {
    let named: Vec<&String> = variants.values.iter().filter_map(|variant| variant.runtime.as_ref()).collect();
    if named.is_empty() || !runtimes.is_complete {
        return;
    }
    let left: Vec<String> =
        runtimes.values.iter().map(|runtime| runtime.name.clone()).filter(|name| !named.contains(&name)).collect();
    let open = variants.values.iter().any(|variant| variant.runtime.is_none());
    if let [first, second, ..] = left.as_slice() {
        let message = match open {
            true => format!("some variants name a runtime; for the others both `{first}` and `{second}` are left"),
            false => format!("no variant names the runtime `{first}`"),
        };
        let hint = "name one in each variant (`runtime: NAME`), or in none, so that runtimes multiply";
        check.error(&DocumentPath::top("runtimes"), message, hint.to_owned());
        return;
    }
    let rest = match left.first() {
        Some(name) => name.clone(),
        None if !open => return,
        None => {
            // Without a version: what `--runtime` names, or the usual one.
            let free = ["onnxruntime", "perfrun"].into_iter().find(|name| !named.iter().any(|other| other == name));
            let name = free.unwrap_or("onnxruntime").to_owned();
            runtimes.values.push(Runtime { name: name.clone(), ..Runtime::default() });
            name
        }
    };
    for variant in &mut variants.values {
        variant.runtime.get_or_insert_with(|| rest.clone());
    }
}

/// What is asked of a measurement that only perfrun's own worker does.
pub(super) fn check_measure(measure: &Measure, runtimes: &[Runtime], check: &mut Check<'_>) {
    let Some(program) = runtimes.iter().find(|runtime| runtime.program.is_some()) else { return };
    let asked = [
        ("design", measure.design == Design::Duet, "`duet`"),
        ("boundary", measure.boundary == Boundary::Host, "`boundary: host`"),
        ("load", check.has(&DocumentPath::top("measure").key("load")), "`load`"),
    ];
    for (key, _, what) in asked.into_iter().filter(|(_, is_asked, _)| *is_asked) {
        let place = DocumentPath::top("measure").key(key);
        let problem = check
            .at_key(&place, format!("{what} is for ONNX Runtime alone, and `{}` is another program", program.name));
        check.problems.push(problem.with_hint("leave it out, or measure that runtime in a specification of its own"));
    }
}
