//! How a variant's model is converted: settings laid over those of the base, and refused where they would do nothing.

use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{ConvertForm, VariantForm};
use experiment::{ConversionSettings, Precision, Quantization, Variant};

/// Lays what is written over what the base says.
pub(super) fn overlay(settings: &mut ConversionSettings, form: &ConvertForm) {
    let ConvertForm { io, keep, quantization, calibration, items, reduce_range, block } = form;
    settings.io = io.unwrap_or(settings.io);
    if let Some(keep) = keep {
        settings.keep.clone_from(keep);
    }
    settings.quantization = quantization.unwrap_or(settings.quantization);
    settings.calibration = calibration.unwrap_or(settings.calibration);
    settings.items = items.unwrap_or(settings.items);
    settings.reduce_range = reduce_range.unwrap_or(settings.reduce_range);
    settings.block = block.unwrap_or(settings.block);
}

/// Refuses keys that no variant of the entry has a use for.
pub(super) fn check(form: &VariantForm, made: &[Variant], place: &DocumentPath, check: &mut Check<'_>) {
    let Some(convert) = &form.convert else { return };
    let place = place.key("convert");
    if made.is_empty() {
        return;
    }
    if made.iter().all(|variant| variant.precision == Precision::Fp32) {
        let problem =
            check.at_key(&place, "`convert` has no effect with the precision `fp32`, which is the model as stored");
        check.problems.push(problem.with_hint("add a `precision`, or leave it out"));
        return;
    }
    let keys: [(&str, bool, &[Precision]); 6] = [
        ("io", convert.io.is_some(), &[Precision::Fp16, Precision::Bf16]),
        ("quantization", convert.quantization.is_some(), &[Precision::Int8]),
        ("calibration", convert.calibration.is_some(), &[Precision::Int8]),
        ("items", convert.items.is_some(), &[Precision::Int8]),
        ("reduce_range", convert.reduce_range.is_some(), &[Precision::Int8]),
        ("block", convert.block.is_some(), &[Precision::Int4]),
    ];
    for (key, _, precisions) in keys.iter().filter(|(_, is_written, _)| *is_written) {
        if !made.iter().any(|variant| precisions.contains(&variant.precision)) {
            let names: Vec<String> = precisions.iter().map(|precision| format!("`{}`", precision.name())).collect();
            let problem =
                check.at_key(&place.key(key), format!("`{key}` only applies to the precision {}", names.join(" or ")));
            check.problems.push(problem);
        }
    }
    let is_dynamic = |variant: &Variant| variant.convert.quantization == Quantization::Dynamic;
    if (convert.calibration.is_some() || convert.items.is_some()) && made.iter().all(is_dynamic) {
        let key = if convert.calibration.is_some() { "calibration" } else { "items" };
        let problem = check.at_key(&place.key(key), format!("`{key}` has no effect with `quantization: dynamic`"));
        check.problems.push(problem.with_hint("dynamic scales are computed at run time"));
    }
    if convert.block.is_some_and(|block| !block.is_power_of_two()) {
        check.error(&place.key("block"), "`block` must be a power of two", "write 16, 32, 64, 128 or 256".to_owned());
    }
}
