//! An entry of the inputs axis: the shapes and the values that models are fed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{BATCH, Entry, Load};
use onnx::{Asked, Interface, Resolved, ResolvedTensor, ShapeError, batch_among};

/// One entry of the inputs axis: what shapes and values a model is fed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputPoint {
    /// `b16-sequence128` for dimensions, the author's own for entries, `default` when `inputs` is absent.
    pub name: String,
    /// Values for named dimensions; `batch` is special (see `onnx::resolve`).
    pub dimensions: BTreeMap<String, u64>,
    /// Whole shapes by tensor name.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// What fills the tensors that are in neither of the two below.
    pub values: Values,
    /// What fills single tensors, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tensors: BTreeMap<String, Values>,
    /// Arrays for all other tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<InputFile>,
    /// The batch is found for every cell before it is measured; it is no dimension of the point then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<BatchSearch>,
    /// The dimensions say a call of a decoder (see `decode`), and no sizes of inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decode: bool,
    /// How queries come; `None`: one caller waits for each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

impl InputPoint {
    /// What fills a tensor; `None`: the file does.
    pub fn values_of(&self, tensor: &str) -> Option<&Values> {
        self.tensors.get(tensor).or_else(|| self.file.is_none().then_some(&self.values))
    }

    /// The sizes that it asks of a model's inputs.
    pub fn sizes(&self) -> Asked<'_> {
        Asked { dimensions: &self.dimensions, shapes: &self.shapes }
    }

    /// The shape of every input of a model, and what its random integers are drawn from.
    ///
    /// # Errors
    ///
    /// As [`Interface::resolve`].
    pub fn resolve(&self, interface: &Interface) -> Result<Resolved, ShapeError> {
        match self.call() {
            Some(call) => interface.resolve_call(&call),
            None => interface.resolve(self.sizes(), |tensor| self.values_of(tensor) == Some(&Values::Random)),
        }
    }

    /// Whether something is filled from the model's dataset.
    pub fn takes_dataset(&self) -> bool {
        self.tensors.values().chain([&self.values]).any(|values| *values == Values::Dataset)
    }

    /// The point without what depends on the machine: files are identified by their content.
    pub fn without_paths(&self) -> InputPoint {
        let mut point = self.clone();
        point.file.iter_mut().for_each(|file| file.path = PathBuf::new());
        point
    }

    pub fn with_batch(&self, batch: u64) -> InputPoint {
        let mut point = self.clone();
        point.dimensions.insert(BATCH.to_owned(), batch);
        point
    }

    /// The point as far as it is known before a search: with the first batch that is tried.
    pub fn before_search(&self) -> Cow<'_, InputPoint> {
        if self.search.is_some() { Cow::Owned(self.with_batch(1)) } else { Cow::Borrowed(self) }
    }

    /// Whether another point is this one but for its load.
    pub fn differs_in_load_alone(&self, other: &InputPoint) -> bool {
        let (name, load) = (self.name.clone(), self.load);
        *self == InputPoint { name, load, ..other.clone() }
    }

    /// Whether another point is this one but for its batch, and how large the two batches are.
    pub fn batches_beside(&self, other: &InputPoint) -> Option<(u64, u64)> {
        let size = |point: &InputPoint| Some(point.dimensions[batch_among(point.names())?]);
        let batches = (size(self)?, size(other)?);
        (self.without_batch() == other.without_batch()).then_some(batches)
    }

    /// All that it says but for its name and its batch.
    pub fn without_batch(&self) -> InputPoint {
        let mut rest = InputPoint { name: String::new(), search: None, ..self.clone() };
        if let Some(batch) = batch_among(self.names()) {
            rest.dimensions.remove(batch);
        }
        rest
    }

    fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.dimensions.keys().map(String::as_str)
    }
}

impl Entry for InputPoint {
    fn label(&self) -> String {
        self.name.clone()
    }
}

/// Asks for the best batch of every cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSearch {
    /// Nothing larger is tried.
    pub to: u64,
}

impl BatchSearch {
    /// The word for it, as specifications and selectors have it.
    pub const WORD: &str = "best";

    /// Nothing larger is tried unless a specification says so: throughput is flat long before.
    pub const MOST: u64 = 4096;
}

/// A file with arrays, `.npz` or `.npy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Absolute in memory.
    pub path: PathBuf,
    /// SHA-256 of its content as hex; empty where it was not looked into.
    pub sha256: String,
}

/// What fills an input tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "values")]
pub enum Values {
    /// Seeded: N(0,1) for floats, integers that the model can take or 0 and 1, booleans, words for strings.
    #[default]
    Random,
    /// All zeros (fast on power-limited devices, so never the default; method 1.7).
    #[schemars(description = "All zeros; fast on power-limited devices, so never the default.")]
    Zeros,
    /// All ones.
    Ones,
    /// The items of the model's dataset.
    Dataset,
    /// Seeded and uniform: at least the first number, less than the second.
    Range(Number, Number),
    /// These, in the order of the elements, again from the first after the last.
    List(Vec<String>),
}

impl Values {
    /// What fills a tensor where these values are asked for: random integers come from what the model can take.
    pub fn filling(&self, tensor: &ResolvedTensor) -> Values {
        match (self, &tensor.integers) {
            (Values::Random, Some(range)) if tensor.is_counted => {
                Values::List(range.clone().map(|integer| integer.to_string()).collect())
            }
            (Values::Random, Some(range)) => Values::Range(range.start.into(), range.end.into()),
            _ => self.clone(),
        }
    }
}
