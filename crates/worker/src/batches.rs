//! The items of a dataset, batch after batch, as arrays that a model takes.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Failure, FailureKind, TensorRequest};
use files::array::{Array, ArrayError, NpyReader};

/// Items for a model to be run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Data {
    /// One file for each input.
    pub feeds: Vec<Feed>,
    /// How many items, the first ones.
    pub items: u64,
}

/// The items of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feed {
    /// The input.
    pub tensor: String,
    /// A `.npy` file whose first dimension is items, in the order of C.
    pub path: PathBuf,
}

/// Batches of the size that the inputs have. The last one is filled up with copies of its last item: that changes no
/// range of values, so that the other items come out as they would alone.
pub(super) struct Batches {
    inputs: Vec<Input>,
    left: u64,
    batch: u64,
}

struct Input {
    tensor: TensorRequest,
    reader: NpyReader<BufReader<File>>,
}

impl Batches {
    /// Opens the files.
    pub(super) fn open(data: &Data, tensors: &[TensorRequest]) -> Result<Self, Failure> {
        let mut inputs = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            let feed = data.feeds.iter().find(|feed| feed.tensor == tensor.name).ok_or_else(|| {
                Failure::new(FailureKind::Shape, format!("the dataset has nothing for input `{}`", tensor.name))
            })?;
            inputs.push(Input {
                tensor: tensor.clone(),
                reader: NpyReader::open(&feed.path).map_err(|e| unreadable(&e))?,
            });
        }
        let batch = tensors.first().and_then(|tensor| tensor.shape.first()).copied().unwrap_or(1).max(1);
        Ok(Batches { inputs, left: data.items, batch })
    }

    /// The next batch with its number of items; `None` at the end.
    fn next(&mut self) -> Result<Option<(Vec<Array>, u64)>, Failure> {
        let items = self.left.min(self.batch);
        if items == 0 {
            return Ok(None);
        }
        let padding = self.batch - items;
        let arrays = self.inputs.iter_mut().map(|input| input.next(items, padding)).collect::<Result<Vec<_>, _>>()?;
        self.left -= items;
        Ok(Some((arrays, items)))
    }

    /// Runs the model for every batch and hands on its outputs with the number of items.
    pub(super) fn run(
        mut self,
        backend: &mut dyn Backend,
        take: &mut dyn FnMut(Vec<Array>, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        backend.select(0);
        while let Some((arrays, items)) = self.next()? {
            backend.feed(&arrays)?;
            take(backend.outputs()?, items)?;
        }
        Ok(())
    }
}

impl Input {
    fn next(&mut self, items: u64, padding: u64) -> Result<Array, Failure> {
        let mut array = self.reader.next_items(items).map_err(|error| unreadable(&error))?;
        array.repeat_last(padding);
        let (TensorRequest { name, element, shape, .. }, stored) = (&self.tensor, array.element.clone());
        let array = Array { name: name.clone(), shape: shape.clone(), ..array };
        let cast = array.cast(element);
        cast.ok_or_else(|| {
            Failure::new(
                FailureKind::Shape,
                format!("the dataset's {stored} cannot be fed to input `{name}`: {element}"),
            )
        })
    }
}

fn unreadable(problem: &ArrayError) -> Failure {
    Failure::new(FailureKind::Internal, problem.to_string())
}
