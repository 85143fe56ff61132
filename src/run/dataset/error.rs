//! Errors of data.

use std::io;
use std::path::PathBuf;

use base::wording::count;
use files::array::ArrayError;
use onnx::ElementType;
use record::StoreError;
use table::FileError;

/// Why data do not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Parquet(#[from] FileError),
    #[error("there is no array `{name}`; the file has {}", words(.known))]
    NoArray { name: String, known: Vec<String> },
    #[error("the model has no input `{name}`; it has {}", words(.known))]
    NoInput { name: String, known: Vec<String> },
    #[error("the model has no output `{name}`; it has {}", words(.known))]
    NoOutput { name: String, known: Vec<String> },
    #[error("no array is named like the input `{input}`; the file has {}", words(.known))]
    Nothing { input: String, known: Vec<String> },
    #[error("array `{array}` holds {element}, but the input is `{input}`; store it in the type of the input")]
    Element { array: String, element: ElementType, input: String },
    #[error("array `{array}` has the shape {shape:?}, items along the first dimension; the input is `{input}`")]
    Shape { array: String, shape: Vec<u64>, input: String },
    #[error(
        "array `{array}` has the shape {shape:?}, which is neither that of the input `{input}` nor several of them below each other"
    )]
    Set { array: String, shape: Vec<u64>, input: String },
    #[error("array `{array}` holds {sets} input sets, but `{other}` holds {other_sets}")]
    Sets { array: String, sets: u64, other: String, other_sets: u64 },
    #[error("array `{array}` is empty")]
    NoItems { array: String },
    #[error("array `{array}` would be fed in the shape {shape:?}: more than 4 GiB")]
    TooLarge { array: String, shape: Vec<u64> },
    #[error("`values` of `{input}`: {reason}")]
    Fill {
        input: String,
        /// Why not, a fragment.
        reason: String,
    },
    #[error("`values: dataset`, but the model has no `dataset`")]
    NoDataset,
    #[error("array `{array}` has {items} items, but `{other}` has {other_items}")]
    Items { array: String, items: u64, other: String, other_items: u64 },
    #[error("the dataset has no items")]
    Empty,
    #[error("array `{array}` contains values that are not valid {element}")]
    Values { array: String, element: ElementType },
    #[error(
        "array `{array}` has the id {id} for the input `{input}`, whose vocabulary has {vocabulary}; give ids from 0 to {}", vocabulary.saturating_sub(1)
    )]
    BeyondVocabulary { array: String, id: f64, input: String, vocabulary: u64 },
    #[error("array `{array}` has {}, and a batch takes {batch}: equal sequences can be faster", count(*prompts, "prompt"))]
    FewPrompts { array: String, prompts: u64, batch: u64 },
    #[error("the file has the array `{array}`, which is fed to nothing: prompts have one length and no padding")]
    NotFed { array: String },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

fn words(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
