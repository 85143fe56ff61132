//! Errors of data.

use std::io;
use std::path::PathBuf;

use files::array::ArrayError;
use onnx::ElementType;
use record::StoreError;
use table::FileError;

/// Why data do not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The Parquet file.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Parquet(#[from] FileError),
    /// What the specification names is not there.
    #[error("there is no array `{name}`; the file has {}", words(.known))]
    NoArray {
        name: String,
        /// What is there.
        known: Vec<String>,
    },
    /// The model has no such input.
    #[error("the model has no input `{name}`; it has {}", words(.known))]
    NoInput {
        name: String,
        /// What is there.
        known: Vec<String>,
    },
    /// The model has no such output.
    #[error("the model has no output `{name}`; it has {}", words(.known))]
    NoOutput {
        name: String,
        /// What is there.
        known: Vec<String>,
    },
    /// No array belongs to an input.
    #[error("no array is named like the input `{input}`; the file has {}", words(.known))]
    Nothing {
        input: String,
        /// What is there.
        known: Vec<String>,
    },
    /// Values that need a decision.
    #[error("array `{array}` holds {element}, but the input is `{input}`; store it in the type of the input")]
    Element {
        array: String,
        /// What it holds.
        element: ElementType,
        /// The input with its type.
        input: String,
    },
    /// Items of another shape.
    #[error("array `{array}` has the shape {shape:?}, items along the first dimension; the input is `{input}`")]
    Shape {
        array: String,
        shape: Vec<u64>,
        /// The input with its shape.
        input: String,
    },
    /// An array that is no input set and holds none.
    #[error(
        "array `{array}` has the shape {shape:?}, which is neither that of the input `{input}` nor several of them below each other"
    )]
    Set {
        array: String,
        shape: Vec<u64>,
        /// The input with its shape.
        input: String,
    },
    /// Arrays for different numbers of input sets.
    #[error("array `{array}` holds {sets} input sets, but `{other}` holds {other_sets}")]
    Sets {
        /// One array.
        array: String,
        sets: u64,
        /// Another.
        other: String,
        other_sets: u64,
    },
    /// An array without items.
    #[error("array `{array}` is empty")]
    NoItems { array: String },
    /// An array that no machine holds.
    #[error("array `{array}` would be fed in the shape {shape:?}: more than 4 GiB")]
    TooLarge {
        array: String,
        /// The shape of a set.
        shape: Vec<u64>,
    },
    /// Values that an input cannot have.
    #[error("`values` of `{input}`: {reason}")]
    Fill {
        input: String,
        /// Why not, a fragment.
        reason: String,
    },
    /// Items of a dataset that is not there.
    #[error("`values: dataset`, but the model has no `dataset`")]
    NoDataset,
    /// Arrays for different items.
    #[error("array `{array}` has {items} items, but `{other}` has {other_items}")]
    Items {
        /// One array.
        array: String,
        items: u64,
        /// Another.
        other: String,
        other_items: u64,
    },
    /// Nothing to run.
    #[error("the dataset has no items")]
    Empty,
    /// Values that do not fit into the type.
    #[error("array `{array}` contains values that are not valid {element}")]
    Values {
        array: String,
        /// What the model takes.
        element: ElementType,
    },
    /// The items cannot be written for the workers.
    #[error("cannot write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn words(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
