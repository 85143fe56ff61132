//! What is only known on this host and from the model files, added to a plan as skips.

use std::collections::BTreeMap;

use super::{Cell, Plan, Skip, SkipKind};
use experiment::{CacheKind, ENCODER, InputIndex, InputPoint, ModelIndex, VERIFY, VariantIndex};
use onnx::decoder::DecoderError;
use onnx::precision::ProviderClass;
use onnx::{BatchChoice, Dimension, Interface, Resolved, ShapeError};

/// What the host and the files say, gathered before a plan is carried out.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What each model takes, by index on the models axis; `None` where the file could not be read (its cells fail when
    /// loaded, with the runtime's own message).
    pub models: Vec<Option<Interface>>,
    /// Why a device cannot be used here, by index on the devices axis.
    pub devices: Vec<Option<Skip>>,
    /// Input points with the shapes that files give a model.
    pub inputs: BTreeMap<(ModelIndex, InputIndex), InputPoint>,
    /// The kind of each device, by index on the devices axis.
    pub classes: Vec<ProviderClass>,
    /// The kind of cache that each variant asks for, by index on the variants axis.
    pub caches: Vec<Option<CacheKind>>,
    /// Variants of models in which there is nothing to convert, for a kind of device.
    pub unconvertible: BTreeMap<(ModelIndex, VariantIndex, ProviderClass), Skip>,
}

impl Facts {
    /// Why a cell cannot run, whatever its input.
    fn skip(&self, cell: &Cell) -> Option<&Skip> {
        let device = cell.device().index();
        let of_variant = || {
            let key = (cell.model(), cell.variant(), *self.classes.get(device)?);
            self.unconvertible.get(&key)
        };
        self.devices.get(device).and_then(Option::as_ref).or_else(of_variant)
    }

    /// Why a variant's cache cannot serve a call of a decoder.
    fn unfit_cache(&self, cell: &Cell, model: &str, input: &InputPoint) -> Option<Skip> {
        let interface = self.models.get(cell.model().index())?.as_ref()?;
        let decoder = interface.decoder()?.ok()?;
        let kind = *self.caches.get(cell.variant().index())?;
        let call = input.call()?;
        let scores = interface.signature().outputs.iter().find(|output| output.name == decoder.logits);
        let dimensions = scores.and_then(|scores| scores.shape.as_deref()).unwrap_or_default();
        let is_of_last = matches!(dimensions, [_, Dimension::Fixed(1), _]);
        let problem = if input.dimensions.contains_key(ENCODER) && !decoder.has_encoder() {
            DecoderError::NoEncoder
        } else if input.dimensions.contains_key(VERIFY) && is_of_last {
            DecoderError::LastScores { tensor: decoder.logits.clone() }
        } else {
            decoder.cache(kind, &call, input.capacity()).err()?
        };
        Some(Skip { kind: SkipKind::Shape, reason: format!("{model}: {problem}"), remedy: Some(problem.remedy()) })
    }
}

/// Shapes by model and input index.
pub type Shapes = BTreeMap<(ModelIndex, InputIndex), Resolved>;

fn nothing_to_search(model: &str) -> Skip {
    Skip {
        kind: SkipKind::Shape,
        reason: format!("{model}: its batch size is fixed in the file, so it cannot be searched"),
        remedy: Some("write that size instead of `best`, or export the model with a dynamic batch".to_owned()),
    }
}

/// Marks the cells that cannot run and returns the shapes of the rest.
///
/// # Errors
///
/// Free dimensions that the specification leaves open, with the name of the model: the user can mend those.
pub fn annotate(plan: &mut Plan, facts: &Facts) -> Result<Shapes, Vec<(String, ShapeError)>> {
    let mut shapes = Shapes::new();
    let mut open = Vec::new();
    let mut problems: BTreeMap<(ModelIndex, InputIndex), Option<Skip>> = BTreeMap::new();
    for index in 0..plan.cells.len() {
        let cell = plan.cells[index];
        if let Some(skip) = facts.skip(&cell) {
            plan.mark_skipped(index, skip.clone());
            continue;
        }
        let Some(Some(interface)) = facts.models.get(cell.model().index()) else { continue };
        let key = (cell.model(), cell.input());
        let skip = problems.entry(key).or_insert_with(|| {
            let coordinates = plan.coordinates(&cell);
            let model = coordinates.model();
            let input = facts.inputs.get(&key).unwrap_or_else(|| plan.input_of(&cell));
            match input.before_search().resolve(interface) {
                Ok(Resolved { batch: Some(BatchChoice::Fixed), .. }) | Err(ShapeError::FixedBatch { .. })
                    if input.search.is_some() =>
                {
                    Some(nothing_to_search(model))
                }
                Ok(resolved) => {
                    shapes.insert(key, resolved);
                    None
                }
                Err(problem) => {
                    if matches!(problem, ShapeError::FreeDimensions { .. }) {
                        open.push((model.to_owned(), problem.clone()));
                    }
                    Some(Skip {
                        kind: SkipKind::Shape,
                        reason: format!("{model}: {problem}"),
                        remedy: Some(problem.remedy()),
                    })
                }
            }
        });
        let skip =
            skip.clone().or_else(|| facts.unfit_cache(&cell, plan.coordinates(&cell).model(), plan.input_of(&cell)));
        if let Some(skip) = skip {
            plan.mark_skipped(index, skip);
        }
    }
    open.dedup();
    if open.is_empty() { Ok(shapes) } else { Err(open) }
}
