//! The limits of outputs: whose they are, and what they say.

use super::Axis;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{FidelityForm, Ordered, RatioText};
use experiment::{FidelityLimits, FidelitySettings, Precision, Variant};
use reading::nearest::suggestion;

/// Reads the limits; every key is a precision or a variant.
pub(super) fn expand(
    form: &Ordered<FidelityForm>,
    variants: &Axis<Variant>,
    check: &mut Check<'_>,
) -> FidelitySettings {
    let mut settings = FidelitySettings::default();
    let top = DocumentPath::top("fidelity");
    for (key, form) in &form.0 {
        let place = top.key(key);
        let names = variants.values.iter().map(|variant| variant.name.as_str());
        if Precision::of_name(key).is_none() && variants.is_complete && !names.clone().any(|name| name == key) {
            let problem =
                check.at_key(&place, format!("`{key}` is neither a precision nor a variant of this experiment"));
            let known = names.chain(Precision::ALL.map(Precision::name));
            check.problems.push(match suggestion(key, known, "name") {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
            continue;
        }
        settings.limits.insert(key.clone(), limits(form, &place, check));
    }
    settings
}

fn limits(form: &FidelityForm, place: &DocumentPath, check: &mut Check<'_>) -> FidelityLimits {
    let mut share = |key: &str, text: &Option<RatioText>| {
        let place = place.key(key);
        let ratio: base::quantity::Ratio = check.quantity(&place, &text.as_ref()?.0);
        if key != "rel" && !(0.0..=1.0).contains(&ratio.0) {
            check.error(&place, format!("`{key}` is a share; it must be at most 100 %"), None);
        }
        Some(ratio.0)
    };
    FidelityLimits {
        cosine: form.cosine,
        abs: form.abs,
        rel: share("rel", &form.rel),
        close: share("close", &form.close),
        top1: share("top1", &form.top1),
        equal: share("equal", &form.equal),
    }
}
