//! The model files that cells are run with, where they are not the files of the specification: networks that are made,
//! models that are fetched, and converted models.
//!
//! Input: a model file, what a variant asks for, a cache folder, and where a conversion needs it a way to observe the
//! model's activations. Output: a file in the cache with a report of what was done. Deliberately absent: what the
//! conversions do (`onnx::precision`), and running a model to observe it (`run`).

pub mod apart;
mod cache;
mod download;
mod exported;
mod observed;
mod obtain;
mod recipe;

pub use cache::{CacheError, Entry, Made, nothing_to_convert};
pub use observed::Ranges;
pub use obtain::{ObtainError, Progress, make_networks, network_file, obtain};
pub use recipe::{Recipe, first_items, random_items};
