//! What a model can be fed: shapes that its file and its weights allow, and integers that its nodes can take.
//!
//! Input: a model's signature, its graph where that can be read, and an input point of the spec, or a call of a decoder.
//! Output: a [`Resolved`], or the [`ShapeError`] that makes the cell impossible. Deliberately absent: the rules by which sizes are given
//! (`resolve`), and running the model.

mod integers;
mod sizes;

use std::path::Path;
use std::sync::Arc;

use super::batch::{Asked, BatchChoice};
use super::decoder::{Call, Declared, Decoder, DecoderError, DecoderNames, Role, recognise};
use super::file::load_graph;
use super::proto::ModelProto;
use super::resolve::{Resolved, check_size, resolve_guessing, usual_size};
use super::shape_error::ShapeError;
use super::signature::Signature;

/// What a model takes.
#[derive(Clone, Debug)]
pub struct Interface {
    signature: Signature,
    /// Its graph without the content of weights; `None` where it cannot be read, so that less is known.
    graph: Option<Arc<ModelProto>>,
    /// What it is as a language model, or why it cannot be called as one; `None` where it is none.
    decoder: Option<Result<Arc<Decoder>, DecoderError>>,
}

impl From<Signature> for Interface {
    fn from(signature: Signature) -> Self {
        Interface::of_signature(signature)
    }
}

impl Interface {
    /// Of the model at `path`, whose header was read; of a decoder with the names that a specification gives.
    pub fn read(path: &Path, signature: &Signature, names: Option<&DecoderNames>) -> Self {
        Interface::with(signature.clone(), load_graph(path).ok(), Declared::of(path, names))
    }

    /// Of a model without a file, which takes any sizes.
    pub fn of_signature(signature: Signature) -> Self {
        Interface::with(signature, None, Ok(None))
    }

    /// Of a model in memory.
    #[cfg(test)]
    pub(crate) fn of(model: ModelProto, signature: Signature) -> Self {
        Interface::with(signature, Some(model), Ok(None))
    }

    fn with(signature: Signature, graph: Option<ModelProto>, declared: Result<Option<Declared>, DecoderError>) -> Self {
        let decoder = recognise(&signature, graph.as_ref(), declared);
        let settled = decoder.as_ref().and_then(|decoder| Some(decoder.as_ref().ok()?.settled(&signature)));
        Interface {
            signature: settled.unwrap_or(signature),
            graph: graph.map(Arc::new),
            decoder: decoder.map(|decoder| decoder.map(Arc::new)),
        }
    }

    /// What the file says, and what follows from weights, attributes and a configuration beside it.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// What it is as a language model with a cache; `None` where it is none.
    ///
    /// # Errors
    ///
    /// It looks like one and cannot be called.
    pub fn decoder(&self) -> Option<Result<&Arc<Decoder>, &DecoderError>> {
        self.decoder.as_ref().map(Result::as_ref)
    }

    /// The shape of every input in a call of a decoder whose cache holds what the context needs and no more.
    ///
    /// # Errors
    ///
    /// A model that is no decoder, and a call that it cannot take.
    pub fn resolve_call(&self, call: &Call) -> Result<Resolved, ShapeError> {
        let decoder =
            self.decoder().ok_or(ShapeError::NoDecoder)?.map_err(|problem| ShapeError::Decoder(problem.clone()))?;
        let mut tensors = decoder.shapes(call, call.context).map_err(ShapeError::Decoder)?;
        tensors.iter().try_for_each(check_size)?;
        let is_ids = |name: &str| decoder.inputs.iter().any(|input| input.name == name && input.role == Role::Ids);
        if let Some(graph) = self.graph.as_deref() {
            // The rows of the table of words, which may be less than there are scores.
            let mut drawn = tensors.clone();
            integers::choose(graph, &mut drawn, is_ids)?;
            for (tensor, drawn) in tensors.iter_mut().zip(drawn).filter(|(tensor, _)| is_ids(&tensor.name)) {
                let known = tensor.integers.as_ref().filter(|_| decoder.vocabulary.is_some()).map(|known| known.end);
                let ends = [known, drawn.integers.map(|rows| rows.end)];
                tensor.integers = ends.into_iter().flatten().min().map(|end| 0..end).or(tensor.integers.take());
            }
        }
        Ok(Resolved { tensors, batch: Some(BatchChoice::Leading), batch_size: Some(call.batch) })
    }

    /// Decides the shape of every input, and what the integers of those that are filled at random are drawn from.
    ///
    /// # Errors
    ///
    /// What the file or the point leaves open or contradicts, sizes that a node cannot take, and inputs for which no random
    /// values are valid.
    pub fn resolve(&self, asked: Asked<'_>, is_random: impl Fn(&str) -> bool) -> Result<Resolved, ShapeError> {
        let Some(graph) = self.graph.as_deref() else { return resolve_guessing(&self.signature, asked, &usual_size) };
        match resolve_guessing(&self.signature, asked, &usual_size) {
            Err(ShapeError::FreeDimensions { .. }) => {
                let guesses = sizes::guesses(graph, &self.signature, asked);
                resolve_guessing(&self.signature, asked, &|open| guesses.size_of(open))
            }
            Ok(mut resolved) => {
                if let Some(misfit) = sizes::misfit(graph, &self.signature, &resolved.tensors) {
                    return Err(misfit);
                }
                integers::choose(graph, &mut resolved.tensors, is_random)?;
                Ok(resolved)
            }
            problem => problem,
        }
    }
}
