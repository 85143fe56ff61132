//! A spec: YAML text to an [`Experiment`](experiment::Experiment).
//!
//! Text becomes a tree in which everything knows its place (`yaml`, `document`); `--set` changes the tree
//! (`overrides`); the tree becomes JSON, each scalar of the type that the schema wants (`coerce`), which the schema
//! checks (`schema`, `validate`); what is left becomes forms (`form`), and these the experiment (`expand`). Every
//! problem of a file is found at once and keeps its place. Deliberately absent: cells, which are `plan`'s.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod canonical;
mod check;
mod coerce;
mod document;
mod error;
mod expand;
pub mod explain;
mod files;
mod form;
mod invisible;
mod load;
mod misplaced;
mod modes;
mod note;
mod overrides;
mod problem;
mod reference;
mod schema;
mod syntax;
mod validate;
mod wording;
mod yaml;

pub use canonical::{has_commands, measured, name_of, says_what_to_measure, texts};
pub use error::{InvalidSpecError, SpecError};
pub use expand::devices::device;
pub use files::absolute;
pub use load::{Loaded, load, outline, parse};
pub use note::Note;
pub use problem::Problem;
pub use reference::{full_example, reference_markdown};
pub use schema::{schema, schema_text};
