//! Datasets: opened, fitted to the models, and handed to workers as files.
//!
//! Input: what the specification says, and the signatures of the models. Output: a [`Fitted`] for each model that has
//! data, and the `.npy` files that workers read. Deliberately absent: what is computed from outputs, which is
//! `quality`'s.

mod error;
mod feed;
mod fit;
mod source;

use std::io;
use std::path::{Path, PathBuf};

use self::source::Source;
use super::error::PrepareError;
use experiment::{AccuracyMetric, Dataset, Experiment, Values};
use files::array::{Array, save_npy};
use onnx::Signature;
use worker::backend::TensorRequest;
use worker::{Data, Feed};

pub(crate) use error::DatasetError;
pub(crate) use feed::Fed;
pub(super) use feed::{check_values, feed, names, open};
pub(crate) use fit::{Fitted, FittedInput};

/// A model's data.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelData {
    /// What the specification says, with absolute paths.
    pub dataset: Dataset,
    /// How it fits the model.
    pub fitted: Fitted,
}

/// The data of a model, fitted to it. Without a signature, as with the mock backend, every array that is no label is an
/// input.
///
/// # Errors
///
/// A dataset that cannot be read, or that does not fit.
pub(crate) fn fit(dataset: &Dataset, signature: Option<&Signature>) -> Result<ModelData, DatasetError> {
    let fitted = fit::fit(dataset, &Source::open(dataset)?, signature)?;
    Ok(ModelData { dataset: dataset.clone(), fitted })
}

/// The data of a model by its index, if it has any.
///
/// # Errors
///
/// A dataset that cannot be read, or that does not fit a model that could be read.
pub(super) fn of_model(
    experiment: &Experiment,
    index: usize,
    signature: Option<&Signature>,
) -> Result<Option<ModelData>, PrepareError> {
    let has_names_only = !experiment.backend.reads_models();
    let dataset = experiment.dataset_of(index as u32);
    // What cannot be read fails when it is loaded, with the runtime's own words.
    let Some(dataset) = dataset.filter(|_| signature.is_some() || has_names_only) else { return Ok(None) };
    let data = fit(dataset, signature).map_err(|problem| PrepareError::Dataset {
        model: experiment.models[index].name.clone(),
        file: dataset.file.clone(),
        problem: Box::new(problem),
    })?;
    Ok(Some(data))
}

pub(super) fn files(dataset: &Dataset) -> Vec<PathBuf> {
    source::files(dataset)
}

impl ModelData {
    /// What is computed, and the labels, if there are any.
    pub(super) fn labels(&self) -> Result<Option<(Vec<AccuracyMetric>, Array)>, DatasetError> {
        let mut source = Source::open(&self.dataset)?;
        let Some(labels) = source.read_labels(self.dataset.labels.as_deref(), self.fitted.items)? else {
            return Ok(None);
        };
        let suggested = if labels.element.is_float() {
            AccuracyMetric::OF_NUMBERS.to_vec()
        } else {
            AccuracyMetric::OF_CLASSES.to_vec()
        };
        Ok(Some((self.dataset.metrics.clone().unwrap_or(suggested), labels)))
    }

    /// Items that one call takes, where the model does not say: `wanted`, and never more than there are.
    pub fn batch(&self, wanted: u64) -> u64 {
        let fixed = self.fitted.inputs.iter().find_map(|input| input.batch);
        fixed.unwrap_or(wanted.min(self.fitted.items)).max(1)
    }

    /// The inputs of a worker that is fed batches of this many items.
    pub fn tensors(&self, batch: u64) -> Vec<TensorRequest> {
        let tensor = |input: &FittedInput| TensorRequest {
            name: input.input.clone(),
            element: input.element.clone(),
            shape: std::iter::once(batch).chain(input.item.iter().copied()).collect(),
            values: Values::Zeros,
            file: None,
            seeds: Vec::new(),
        };
        self.fitted.inputs.iter().map(tensor).collect()
    }

    /// The first of so many items that holds no finite number, in words; items are counted from 0.
    pub(crate) fn not_finite(&self, items: u64) -> Option<String> {
        let mut source = Source::open(&self.dataset).ok()?;
        self.fitted.inputs.iter().find_map(|input| {
            let array = source.read(&input.array, items.min(self.fitted.items)).ok()?;
            let numbers = array.numbers().filter(|_| array.element.is_float())?;
            let at = numbers.iter().position(|number| !number.is_finite())?;
            let each = numbers.len() / (*array.shape.first()?).max(1) as usize;
            let what = if numbers[at].is_nan() { "NaN" } else { "an infinity" };
            Some(format!("item {} of array `{}` holds {what}", at / each.max(1), array.name))
        })
    }

    /// Writes the items into a folder, once, as workers read them.
    ///
    /// # Errors
    ///
    /// A dataset that can no longer be read, values that do not fit, a folder that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Data, DatasetError> {
        let path = |index: usize| folder.join(format!("{index}.npy"));
        let feed = |(index, input): (usize, &FittedInput)| Feed { tensor: input.input.clone(), path: path(index) };
        let data = Data { feeds: self.fitted.inputs.iter().enumerate().map(feed).collect(), items: self.fitted.items };
        if data.feeds.iter().all(|feed| feed.path.is_file()) {
            return Ok(data);
        }
        let mut source = Source::open(&self.dataset)?;
        std::fs::create_dir_all(folder).map_err(|source| DatasetError::Write { path: folder.to_owned(), source })?;
        for (input, feed) in self.fitted.inputs.iter().zip(&data.feeds) {
            let mut array = source.read(&input.array, self.fitted.items)?;
            array.shape.truncate(1);
            array.shape.extend(&input.item);
            let (name, element) = (array.name.clone(), input.element.clone());
            let cast = array.cast(&element).ok_or(DatasetError::Values { array: name, element })?;
            write_whole(&feed.path, &cast).map_err(|source| DatasetError::Write { path: feed.path.clone(), source })?;
        }
        Ok(data)
    }
}

/// A file that is there is whole.
fn write_whole(path: &Path, array: &Array) -> io::Result<()> {
    let partial = path.with_extension("partial");
    save_npy(array, &partial)?;
    std::fs::rename(partial, path)
}
