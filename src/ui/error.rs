//! Every error that ends a command, and its exit code.
//!
//! A failed run is none of these: it is an outcome in the record.

mod exit;

use std::io;
use std::path::Path;

use miette::Diagnostic;

use crate::run::error::PrepareError;
use experiment::SelectorError;
use judge::stat::{ComparisonError, PairError, ReadError};
use onnx::OnnxError;
use plan::PlanError;
use prepare::models::ObtainError;
use prepare::runtime::RuntimeError;
use reading::plain_file;
use record::StoreError;
use record::hold::InUse;
use report::{ReportError, TemplateError};
use spec::SpecError;
use table::TableError;
use worker::lock::LockError;

pub(crate) use exit::exit_codes_help;
pub use exit::{Bisected, ExitCode, exit_codes_markdown};

/// What a command ends with when it does not succeed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Error {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Spec(#[from] SpecError),
    /// `--only`.
    #[error("--only: {0}")]
    Selector(SelectorError, #[help] Option<String>),
    /// The matrix.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The facts of host and files.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Prepare(#[from] PrepareError),
    /// The runtime library.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Runtime(#[from] RuntimeError),
    /// A record.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A template of the user's own.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Template(#[from] TemplateError),
    /// A model file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Onnx(#[from] OnnxError),
    /// A model that is made or fetched.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Obtain(#[from] ObtainError),
    /// A file of numbers.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Numbers(#[from] ReadError),
    /// Two files of numbers that cannot be compared.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Comparison(#[from] ComparisonError),
    /// Benchmarks of two files that cannot be paired.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pairs(#[from] PairError),
    /// A table that polars cannot make.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The machine's lock.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Lock(#[from] LockError),
    /// A record that another perfrun measures into.
    #[error(transparent)]
    #[diagnostic(transparent)]
    InUse(#[from] InUse),
    /// What is asked for cannot be done; the user can mend it.
    #[error("{message}")]
    Refused {
        /// What is wrong.
        message: String,
        /// What to do.
        #[help]
        help: Option<String>,
    },
    /// A file or descriptor.
    #[error("{what}")]
    Io {
        /// What was attempted, with the path.
        what: String,
        /// Why it failed.
        source: io::Error,
        /// What to do.
        #[help]
        help: Option<String>,
    },
    /// A fault of perfrun.
    #[error("{0}")]
    #[diagnostic(help("this is a bug in perfrun; please report it"))]
    Internal(String),
}

impl Error {
    /// A refusal with a hint.
    pub fn refused(message: impl Into<String>, help: impl Into<String>) -> Self {
        Error::Refused { message: message.into(), help: Some(help.into()) }
    }

    /// A file that cannot be read.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Error::attempt(format!("cannot read {}", path.display()), source)
    }

    /// A file or folder that cannot be written, made or moved.
    pub fn write(path: &Path, source: io::Error) -> Self {
        let help = Some(plain_file::remedy(path, &source));
        Error::Io { what: format!("cannot write {}", path.display()), source, help }
    }

    /// A file or folder that cannot be removed.
    pub fn remove(path: &Path, source: io::Error) -> Self {
        let help = Some("you need write permission for its folder".to_owned());
        Error::Io { what: format!("cannot remove {}", path.display()), source, help }
    }

    /// Something else of the system that failed: `cannot write to standard output`.
    pub fn attempt(what: impl Into<String>, source: io::Error) -> Self {
        Error::Io { what: what.into(), source, help: None }
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Error::Internal(_) | Error::Table(_) => ExitCode::Internal,
            Error::Obtain(ObtainError::Interrupted { .. }) => ExitCode::Interrupted,
            Error::Report(error) if error.is_internal() => ExitCode::Internal,
            _ => ExitCode::UserError,
        }
    }
}
