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
    #[error("--only: {0}")]
    Selector(SelectorError, #[help] Option<String>),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Onnx(#[from] OnnxError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Obtain(#[from] ObtainError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Numbers(#[from] ReadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Comparison(#[from] ComparisonError),
    /// Benchmarks of two files that cannot be paired.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pairs(#[from] PairError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    InUse(#[from] InUse),
    #[error("{message}")]
    Refused {
        message: String,
        #[help]
        help: Option<String>,
    },
    /// The log follows in lines of its own.
    #[error("{found}")]
    #[diagnostic(help("nothing was measured; run it by hand"))]
    SetUp { found: String },
    #[error("{what}")]
    Io {
        what: String,
        source: io::Error,
        #[help]
        help: Option<String>,
    },
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
