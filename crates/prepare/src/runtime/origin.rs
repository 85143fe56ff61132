//! Where a library came from.

use std::fmt;

/// Who names a library, or where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// `--runtime` names it.
    Flag,
    /// `ORT_DYLIB_PATH` names it.
    Environment,
    /// An entry of `runtimes` names it.
    Specification,
    /// It was in perfrun's cache.
    Cache,
    /// It was fetched just now.
    Installed,
    /// The `onnxruntime` package of the Python environment brings it.
    Python,
    /// The system's loader knows it.
    System,
}

impl Origin {
    /// The user names it.
    pub fn is_named(self) -> bool {
        matches!(self, Origin::Flag | Origin::Environment | Origin::Specification)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Flag => "`--runtime`",
            Origin::Environment => "`ORT_DYLIB_PATH`",
            Origin::Specification => "the specification",
            Origin::Cache => "the cache",
            Origin::Installed => "the package index",
            Origin::Python => "the Python environment",
            Origin::System => "the system",
        })
    }
}
