//! Results -> a report: one page in words and numbers, figures, and the formats of files.
//!
//! Pure up to [`write()`]: the same results give the same bytes, whatever the time, the locale or the number of threads.
//! The terminal shows parts of the same [`page`]. Deliberately absent: estimates and verdicts, which are `judge`'s, and
//! where a report lies, which the command decides.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod batch_search;
pub mod cause;
mod compose;
pub mod diff;
pub mod format;
mod formats;
pub mod history;
mod mark;
pub mod page;
pub mod plots;
pub mod reproduction;
pub mod site;
mod template;
pub mod together;
mod write;

use std::path::PathBuf;

use record::StoreError;
use table::TableError;

pub use compose::{Composed, compose};
pub use formats::Format;
pub use mark::{MARKS, with_marks};
pub(crate) use template::render as fill_template;
pub use template::{TemplateError, UserTemplate, reference_markdown as template_reference};
pub use write::write;

/// A report as texts; nothing is on disk yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Its files, with their content; the ones to read first come first.
    pub files: Vec<(Format, Vec<u8>)>,
    /// File name and SVG of each plot that one of the files shows; `None` where none of them shows any.
    pub plots: Option<Vec<(String, String)>>,
}

/// Why a report cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template does not fit the page, which is a fault of perfrun unless the template is the user's.
    #[error("cannot render {template}")]
    Template { template: String, source: minijinja::Error },
    #[error("cannot write {path}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot write a table of the results")]
    Table(#[from] TableError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReportError {
    /// Whether this is a fault of perfrun and nothing that its user can mend.
    pub fn is_internal(&self) -> bool {
        !matches!(self, ReportError::Folder { .. } | ReportError::Store(_))
    }
}
