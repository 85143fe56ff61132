//! A model in half precision: weights and arithmetic in fp16 or bf16, with what must not be left in float32 behind casts.
//!
//! Input: a model in float32, the element types of its values, and what the target's provider can do. Output: the model,
//! whose inputs and outputs are as before unless asked otherwise, and a report of what stays and why. Deliberately absent:
//! models that are quantised: their scales stay as they are.
//!
//! Every value has one home, the element type that its producer gives it; a value that somebody reads in the other type
//! gets one cast, right behind its producer, however many read it. Weights get none: they are stored in the type that
//! their readers want. In three steps: `survey` decides about every node in order, `versions` about every value, and
//! `rewrite` carries both out.

mod decide;
mod exact;
mod kernels;
mod rewrite;
mod survey;
mod value;
mod versions;
mod weights;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::constants::{fold_weights, lift_weights};
use super::inline::inline_functions;
use super::keep::Keep;
use super::names::tell_apart;
use super::report::{Conversion, ConversionError, ConversionReport};
use super::upgrade::{RAISED, raise_operator_set};
use crate::ElementType;
use crate::infer::{Inferred, infer};
use crate::proto::ModelProto;

/// What becomes of the inputs and outputs of a model in half precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "io")]
pub enum Io {
    /// They stay as they are, behind casts, so that callers need not change.
    #[default]
    Keep,
    /// They are converted too.
    Convert,
}

/// The kind of device that a model is converted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderClass {
    /// ONNX Runtime's CPU provider, which computes in float32: only what moves data has kernels for half precision.
    Cpu,
    /// CUDA and what is built upon it.
    Cuda,
}

impl ProviderClass {
    /// Of a device's provider.
    pub fn of(provider: &str) -> Self {
        if provider == "cpu" { ProviderClass::Cpu } else { ProviderClass::Cuda }
    }

    /// The word of reports and cache keys.
    pub fn name(self) -> &'static str {
        match self {
            ProviderClass::Cpu => "cpu",
            ProviderClass::Cuda => "cuda",
        }
    }
}

/// A half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// IEEE 754 binary16: eleven bits of precision, at most 65504.
    Fp16,
    /// The upper half of a binary32: eight bits of precision, the range of float32.
    Bf16,
}

impl Half {
    pub(crate) fn element(self) -> ElementType {
        match self {
            Half::Fp16 => ElementType::Float16,
            Half::Bf16 => ElementType::Bfloat16,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Half::Fp16 => "fp16",
            Half::Bf16 => "bf16",
        }
    }
}

/// How to convert.
#[derive(Clone, Debug)]
pub struct HalfSettings {
    /// To what.
    pub target: Half,
    /// Inputs and outputs.
    pub io: Io,
    /// Operators and nodes that stay in float32.
    pub keep: Keep,
    /// For what kind of device.
    pub provider: ProviderClass,
}

/// Converts a model to half precision. `types` are those of the model's values.
///
/// # Errors
///
/// A model that is in half precision already or has nothing in float32, a weight whose content does not fit its shape.
pub fn to_half(
    mut model: ModelProto,
    types: &Inferred,
    settings: &HalfSettings,
) -> Result<Conversion, ConversionError> {
    check_floats(&model, settings.target)?;
    let mut report = ConversionReport::default();
    let inlined = inline_functions(&mut model);
    let raised = raise_for_kernels(&mut model, settings)?;
    report.note_raised(raised);
    let renamed = model.graph.as_mut().map_or(0, tell_apart);
    let folded = fold_weights(&mut model, value::WORTH_A_CAST)?;
    let lifted = lift_weights(&mut model, value::WORTH_A_CAST)?;
    let is_changed = inlined.calls > 0 || raised.is_some() || renamed + folded + lifted > 0;
    let types = if is_changed { &infer(&model, &[]) } else { types };
    let mut survey = survey::survey(&model, types, settings, &mut report)?;
    inlined.add_to(&mut report);
    versions::choose(&mut survey, settings);
    rewrite::rewrite(&mut model, &survey, settings, &mut report)?;
    if report.converted.is_empty() && report.weights.converted == 0 {
        return Err(ConversionError::NothingToConvert { kept: report.kept });
    }
    summarise(&mut report, settings);
    Ok(Conversion { model, report })
}

/// Brings a model to an operator set whose `Cast` makes the half precision, and in which CUDA has its operators; gives the
/// one that it had, if it changed.
///
/// bfloat16 came with 13. Before 6 a `Cast` names its type as text, and ONNX Runtime does not know what it makes. In
/// fp16, CUDA has `Clip` from 12 on: a model that cannot be raised keeps it in float32, between casts.
fn raise_for_kernels(model: &mut ModelProto, settings: &HalfSettings) -> Result<Option<i64>, ConversionError> {
    const OLDEST_WITH_FP16: i64 = 6;
    match (settings.target, model.opset("").unwrap_or(1)) {
        (Half::Bf16, _) => raise_operator_set(model, RAISED, "Cast to bfloat16"),
        (Half::Fp16, has) if has < OLDEST_WITH_FP16 => {
            Err(ConversionError::OpsetTooOld { has, needed: OLDEST_WITH_FP16, operator: "Cast".to_owned() })
        }
        (Half::Fp16, has) if settings.provider == ProviderClass::Cuda => {
            let gains = gains_kernel(model, has);
            Ok(gains.and_then(|operator| raise_operator_set(model, RAISED, operator).ok().flatten()))
        }
        (Half::Fp16, _) => Ok(None),
    }
}

/// An operator of the model that CUDA has in fp16 from a later operator set on.
fn gains_kernel(model: &ModelProto, has: i64) -> Option<&'static str> {
    let mut found = None;
    for node in model.graph.iter().flat_map(|graph| &graph.node) {
        node.with_inner(&mut |node| {
            let gains = || kernels::gains_kernel(node.op_type(), has, RAISED).filter(|_| node.is_standard());
            found = found.or_else(gains);
        });
    }
    found
}

/// What is in half precision already is no source for another.
fn check_floats(model: &ModelProto, target: Half) -> Result<(), ConversionError> {
    let (mut full, mut half) = (0_u64, 0_u64);
    model.each_tensor(&mut |tensor| match tensor.element() {
        ElementType::Float32 => full += 1,
        ElementType::Float16 | ElementType::Bfloat16 => half += 1,
        _ => {}
    });
    if half > full {
        return Err(ConversionError::AlreadyInHalf { weights: half, wanted: target.name().to_owned() });
    }
    Ok(())
}

/// Says in words what the numbers mean for speed.
fn summarise(report: &mut ConversionReport, settings: &HalfSettings) {
    let name = settings.target.name();
    if settings.provider == ProviderClass::Cpu {
        report.note(format!(
            "ONNX Runtime's CPU provider has no {name} arithmetic: weights are stored in {name} and widened when the model \
             is loaded, and the model computes in float32"
        ));
    }
    if report.weights.clamped > 0 {
        report.note(format!(
            "{} constants that stand for infinity became the largest number of {name}",
            report.weights.clamped
        ));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
