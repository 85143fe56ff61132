//! What tests, benches and fuzz targets take from inside this package.
//!
//! Everything else is private, so that the compiler finds what nobody uses. No other program may build on this.

#![allow(missing_docs, reason = "what is re-exported has its own")]

pub mod run {
    pub use crate::run::Provenance;
    pub use crate::run::create::create;
    pub use crate::run::prepare::prepare;
}
