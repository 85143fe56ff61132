//! The limits of outputs: whose they are, and what they say.

use super::Axis;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::Ordered;
use experiment::{FidelityLimits, FidelitySettings, Precision, Variant};
use reading::nearest::suggestion;

/// Reads the limits; every key is a precision or a variant.
pub(super) fn expand(
    form: &Ordered<FidelityLimits>,
    variants: &Axis<Variant>,
    check: &mut Check<'_>,
) -> FidelitySettings {
    let mut settings = FidelitySettings::default();
    let top = DocumentPath::top("fidelity");
    for (key, limits) in &form.0 {
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
        for (key, share) in [("close", limits.close), ("top1", limits.top1), ("equal", limits.equal)] {
            if share.is_some_and(|share| share > 1.0) {
                check.error(&place.key(key), format!("`{key}` is a share; it must be at most 100 %"), None);
            }
        }
        settings.limits.insert(key.clone(), *limits);
    }
    settings
}
