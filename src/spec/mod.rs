//! A spec: YAML text to an [`Experiment`](model::Experiment).
//!
//! Text becomes a tree in which everything knows its place (`yaml`, `document`); `--set` changes the tree
//! (`overrides`); the tree becomes JSON, each scalar of the type that the schema wants (`coerce`), which the schema
//! checks (`schema`, `validate`); what is left becomes forms (`form`), and these the experiment (`expand`). Every
//! problem of a file is found at once and keeps its place. Deliberately absent: cells, which are `plan`'s.

mod calibrate;
mod check;
mod coerce;
mod compiled;
mod document;
mod entries;
mod error;
mod expand;
mod files;
mod form;
mod load;
mod matrix;
mod misplaced;
pub mod model;
mod name;
mod nearest;
mod note;
mod overrides;
mod problem;
mod quick;
mod reference;
mod schema;
mod selector;
mod syntax;
mod validate;
mod wording;
mod yaml;

pub use calibrate::{SAME, calibration};
pub use compiled::CompiledSelector;
pub use entries::Entries;
pub use error::{Invalid, SpecError};
pub(crate) use files::{absolute, near_path};
pub use load::{Loaded, load, parse};
pub use matrix::{Factor, MAX_CELLS, MatrixProblem, Space};
pub(crate) use name::{fitting_name, is_name};
pub(crate) use nearest::nearest;
pub use note::Note;
pub use problem::Problem;
pub use quick::quick;
pub use reference::{full_example, reference_markdown};
pub use schema::{schema, schema_text};
pub use selector::{Matcher, SelectorError, Vocabulary, parse_selector};
