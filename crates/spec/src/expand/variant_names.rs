//! Whether variants are what their names say, and whether they differ.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Axis, BackendKind};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::VariantForm;
use crate::note::Note;
use experiment::{Model, Precision, Variant};

/// Refuses a variant that is named after a precision and has another one without a word about it: what is measured would
/// stand in every table as something else.
///
/// `precision` says which one is meant, and so does a file of the user's own for this variant, which every model must
/// have. The mock backend converts nothing, so that there a name is a name.
pub(super) fn check_precision(
    form: &VariantForm,
    made: &[Variant],
    models: &Axis<Model>,
    place: &DocumentPath,
    backend: BackendKind,
    check: &mut Check<'_>,
) {
    let Some(named) = form.name.as_ref().and_then(|name| Precision::of_name(&name.0)) else { return };
    if form.precision.is_some() || backend != BackendKind::ReadsModels || !models.is_complete {
        return;
    }
    let has_file = |variant: &Variant| models.values.iter().all(|model| model.files.contains_key(&variant.name));
    let Some(other) = made.iter().find(|variant| variant.precision != named && !has_file(variant)) else { return };
    let (word, has) = (named.name(), other.precision.name());
    let message = match &form.base {
        Some(base) => format!("the variant `{word}` would measure {has}, the precision of its base `{base}`"),
        None => format!("the variant `{word}` would measure {has}: a name does not set the precision"),
    };
    let hint = format!(
        "write `{{ name: {word}, precision: {word} }}`; where the stored model or the provider has that precision already, `precision: fp32` is the model as stored"
    );
    check.error(&place.key("name"), message, hint);
}

/// Notes variants that nothing tells apart but their names.
pub(super) fn note_equals(models: &Axis<Model>, variants: &Axis<Variant>, check: &mut Check<'_>) {
    if !models.is_complete || !variants.is_complete {
        return;
    }
    // By their text, since there may be as many variants as cells.
    let settings = |variant: &Variant| {
        let files: Vec<Option<&PathBuf>> = models.values.iter().map(|model| model.file_for(variant)).collect();
        format!("{:?} {files:?}", Variant { name: String::new(), ..variant.clone() })
    };
    let mut kinds: Vec<Vec<String>> = Vec::new();
    let mut kind_of: HashMap<String, usize> = HashMap::new();
    for variant in &variants.values {
        let kind = *kind_of.entry(settings(variant)).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push(Vec::new());
        }
        kinds[kind].push(variant.name.clone());
    }
    let equal = kinds.into_iter().filter(|names| names.len() > 1);
    check.notes.extend(equal.map(|variants| Note::EqualVariants { variants }));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use crate::expand::tests::notes;
    use crate::parse;

    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/specs/invalid");

    fn problems(models: &str, variants: &str) -> Vec<String> {
        let text = format!("models: {models}\nvariants: {variants}\n");
        match parse("x.yaml", &text, Path::new(FOLDER), &[]) {
            Ok(_) => Vec::new(),
            Err(error) => error.problems().iter().map(|problem| problem.message.clone()).collect(),
        }
    }

    #[test]
    fn a_variant_named_after_a_precision_has_it() {
        let model = "models/mlp.onnx";
        assert_eq!(
            problems(model, "[{ name: fp32 }, { name: int8 }]"),
            ["the variant `int8` would measure fp32: a name does not set the precision"]
        );
        assert_eq!(problems(model, "[fp32, { name: int8, threads: [1, 2] }]").len(), 1);
        assert_eq!(
            problems(model, "[int8, { name: fp32, base: int8, threads: 2 }]"),
            ["the variant `fp32` would measure int8, the precision of its base `int8`"]
        );
        for honest in [
            "[fp32, { name: int8, precision: int8 }]",
            "[{ name: fp32, threads: 2 }, int8]",
            // Said in so many words: the stored model may have that precision.
            "[{ name: fp32, threads: 1 }, { name: int8, precision: fp32 }]",
            "[{ name: mine, precision: int8 }, { name: int8, base: mine, threads: 1 }]",
            "[fp32, { name: int8-ours, threads: 2 }]",
        ] {
            assert!(problems(model, honest).is_empty(), "{honest}: {:?}", problems(model, honest));
        }
    }

    #[test]
    fn a_file_of_the_users_own_makes_a_name_true_for_its_model_alone() {
        let own = "{ path: models/mlp.onnx, files: { int8: models/cnn.onnx } }";
        assert!(problems(&format!("[{own}]"), "[fp32, { name: int8 }]").is_empty());
        assert_eq!(problems(&format!("[{own}, models/cnn.onnx]"), "[fp32, { name: int8 }]").len(), 1);
    }

    #[test]
    fn with_the_mock_backend_a_name_is_a_name() {
        assert!(notes("variants: [{ name: fp32 }, { name: int8, mock: { scale: 0.5 } }]").is_empty());
    }

    #[test]
    fn variants_that_nothing_tells_apart_are_noted() {
        let equal = |names: &[&str]| Note::EqualVariants { variants: names.iter().map(ToString::to_string).collect() };
        assert_eq!(notes("variants: [a, { name: b }, { name: c, threads: 2 }]"), [equal(&["a", "b"])]);
        assert_eq!(
            notes("variants: [a, { name: c, threads: 2 }, b, { name: d, base: c }]"),
            [equal(&["a", "b"]), equal(&["c", "d"])]
        );
        assert!(notes("variants: [a, { name: b, mock: { scale: 1.1 } }]").is_empty());
        assert!(notes("variants: [fp32, fp16]").is_empty());
        let text =
            "models: [{ path: models/mlp.onnx, files: { ours: models/cnn.onnx } }]\nvariants: [fp32, { name: ours }]";
        assert!(parse("x.yaml", text, Path::new(FOLDER), &[]).unwrap().notes.is_empty());
    }
}
