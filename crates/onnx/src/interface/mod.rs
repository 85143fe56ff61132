//! What a model can be fed: shapes that its file and its weights allow, and integers that its nodes can take.
//!
//! Input: a model's signature, its graph where that can be read, and an input point of the spec. Output: a [`Resolved`],
//! or the [`ShapeError`] that makes the cell impossible. Deliberately absent: the rules by which sizes are given
//! (`resolve`), and running the model.

mod integers;
mod sizes;

use std::path::Path;
use std::sync::Arc;

use super::batch::Asked;
use super::file::load_graph;
use super::proto::ModelProto;
use super::resolve::{Resolved, resolve_guessing, usual_size};
use super::shape_error::ShapeError;
use super::signature::Signature;

/// What a model takes.
#[derive(Clone, Debug)]
pub struct Interface {
    signature: Signature,
    /// Its graph without the content of weights; `None` where it cannot be read, so that less is known.
    graph: Option<Arc<ModelProto>>,
}

impl From<Signature> for Interface {
    fn from(signature: Signature) -> Self {
        Interface { signature, graph: None }
    }
}

impl Interface {
    /// Of the model at `path`, whose header was read.
    pub fn read(path: &Path, signature: &Signature) -> Self {
        Interface { signature: signature.clone(), graph: load_graph(path).ok().map(Arc::new) }
    }

    /// Of a model without a file, which takes any sizes.
    pub fn of_signature(signature: Signature) -> Self {
        Interface { signature, graph: None }
    }

    /// Of a model in memory.
    #[cfg(test)]
    pub(crate) fn of(model: ModelProto, signature: Signature) -> Self {
        Interface { signature, graph: Some(Arc::new(model)) }
    }

    /// What the file says.
    pub fn signature(&self) -> &Signature {
        &self.signature
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
