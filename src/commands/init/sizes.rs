//! Sizes of the free dimensions of a model, for a specification that runs at once.
//!
//! Input: what a model can be fed. Output: sizes by name, or whole shapes, as a specification has them.

use std::collections::BTreeMap;

use experiment::InputPoint;
use onnx::decoder::Decoder;
use onnx::{Interface, ShapeError};
use reading::yaml::scalar;

/// Sizes that make a model's free dimensions definite: batch 1, anything else 128.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Sizes {
    /// By the names of dimensions.
    Named(BTreeMap<String, u64>),
    /// Whole shapes, where a free dimension has no name.
    Shapes(BTreeMap<String, Vec<u64>>),
    /// Prompts of these lengths, and steps behind as many positions, of a language model.
    Calls(Vec<u64>),
}

/// Tokens of prompts, and positions before steps, of a language model.
const LENGTHS: [u64; 2] = [128, 1024];

impl Sizes {
    pub(super) fn of(interface: &Interface) -> Self {
        if let Some(Ok(decoder)) = interface.decoder() {
            return Sizes::Calls(lengths(decoder));
        }
        match InputPoint::default().resolve(interface) {
            Err(ShapeError::FreeDimensions { dimensions, example }) => {
                let Some(named) = ShapeError::proposed(&dimensions) else { return Sizes::Shapes(example) };
                Sizes::Named(named.into_iter().map(|(key, size)| (key.to_owned(), size)).collect())
            }
            // How many dimensions they have is a guess too.
            Err(ShapeError::UnknownRank { tensors }) => {
                Sizes::Shapes(tensors.into_iter().map(|tensor| (tensor, vec![1, 128])).collect())
            }
            _ => Sizes::Named(BTreeMap::new()),
        }
    }

    /// Whether they are calls of a language model.
    pub(super) fn are_calls(&self) -> bool {
        matches!(self, Sizes::Calls(_))
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Sizes::Named(dimensions) if dimensions.is_empty())
    }

    /// The key that they stand below.
    pub(super) fn key(&self) -> &'static str {
        if matches!(self, Sizes::Calls(_)) { "decode" } else { "inputs" }
    }

    pub(super) fn about(&self) -> &'static str {
        match self {
            Sizes::Calls(_) => "Tokens of prompts, and positions of the cache before steps of one token.",
            Sizes::Named(_) => "Sizes of the free dimensions; a list multiplies, as in `batch: [1, 16]`.",
            Sizes::Shapes(_) => "Dimensions without a name need whole shapes; sizes that no weight fixes are guesses.",
        }
    }

    pub(super) fn written(&self, has_batches: bool) -> String {
        match self {
            Sizes::Named(dimensions) => {
                let size = |(name, size): (&String, &u64)| match name == "batch" && has_batches && *size == 1 {
                    true => format!("batch: [{size}, 8]"),
                    false => format!("{}: {size}", scalar(name)),
                };
                format!("{{ {} }}", dimensions.iter().map(size).collect::<Vec<_>>().join(", "))
            }
            Sizes::Calls(lengths) if has_batches => {
                format!("{{ prompt: {lengths:?}, at: {lengths:?}, batch: [1, 4] }}")
            }
            Sizes::Calls(lengths) => format!("{{ prompt: {lengths:?}, at: {lengths:?} }}"),
            Sizes::Shapes(shapes) => {
                let shape = |(name, shape): (&String, &Vec<u64>)| format!("{}: {shape:?}", scalar(name));
                let shapes = shapes.iter().map(shape).collect::<Vec<_>>().join(", ");
                format!("[{{ name: b1, shapes: {{ {shapes} }} }}]")
            }
        }
    }
}

/// The usual lengths that a model has positions for.
fn lengths(decoder: &Decoder) -> Vec<u64> {
    let most = decoder.context.unwrap_or(u64::MAX);
    let fitting: Vec<u64> = LENGTHS.into_iter().filter(|length| *length < most).collect();
    if fitting.is_empty() { vec![(most / 2).max(1)] } else { fitting }
}
