//! In which types each value is there, and under which names.
//!
//! Input: a survey with the wishes of all readers. Output: the same with a home for what is flexible, and with names.

use super::HalfSettings;
use super::survey::Survey;
use super::value::{Source, Value, WORTH_A_CAST};
use super::weights::Range;
use crate::precision::names::Names;

/// Settles every float32 value of the model.
pub(super) fn choose(survey: &mut Survey, settings: &HalfSettings) {
    let mut taken: Names = survey.values.iter().map(|value| value.name.clone()).collect();
    for value in survey.values.iter_mut().filter(|value| value.is_float32()) {
        if let Some(is_half) = home(value) {
            value.is_half = is_half;
        }
        name(value, settings.target.name(), &mut taken);
    }
}

/// The type of a value that can have either; `None` where its producer has decided.
fn home(value: &Value) -> Option<bool> {
    let wants = value.wants;
    match value.source {
        Source::Input | Source::Node => None,
        Source::Adaptable(_) => Some(value.range <= Range::Masks && wants.half && !wants.full && !wants.widened),
        Source::Weight(_) if value.range > Range::Masks => Some(false),
        // Only who masks takes it for infinity.
        Source::Weight(_) if value.range == Range::Masks => Some(wants.half && !wants.full && !wants.widened),
        // What must be exact for one reader is exact, and the other reader has a copy.
        Source::Weight(_) if wants.full => Some(false),
        Source::Weight(elements) => Some(wants.half || (wants.widened && elements >= WORTH_A_CAST)),
    }
}

/// A value keeps its name in the type that leaves the graph, else in that of its home.
fn name(value: &mut Value, suffix: &str, taken: &mut Names) {
    let wants = value.wants;
    let needs_full = wants.full || wants.widened || !value.is_half;
    let needs_half = wants.half || value.is_half;
    let full_keeps_name = match &value.output {
        Some(element) => *element == crate::ElementType::Float32,
        None => !value.is_half,
    };
    let mut second_name = |suffix: &str| taken.fresh(&format!("{}_{suffix}", value.name));
    value.full_name = needs_full.then(|| if full_keeps_name { value.name.clone() } else { second_name("fp32") });
    value.half_name = needs_half.then(|| if full_keeps_name { second_name(suffix) } else { value.name.clone() });
}
