//! What tests take from inside this package. No other program may build on this.

#![allow(missing_docs, reason = "what is re-exported has its own")]

pub mod run {
    pub use crate::run::Provenance;
    pub use crate::run::create::create;
    pub use crate::run::prepare::prepare;
}
