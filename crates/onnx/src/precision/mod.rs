//! Models in another precision, made without running them.
//!
//! Input: a [`ModelProto`](super::proto::ModelProto) with its weights, and for [`Prepared::quantize`] the ranges that its
//! activations take. Output: a [`Conversion`]: the model in the new precision and a report of what was converted, what was
//! not, and why. Deliberately absent: executing models, and judging the result: both are what perfrun measures.

pub mod activation_ranges;
mod constants;
mod edit;
mod embedding;
mod fold;
mod half;
mod inline;
mod keep;
mod names;
mod product;
pub mod quantize_blocks;
pub mod quantize_dynamic;
mod quantize_static;
mod report;
mod scales;
mod sparse;
mod upgrade;

pub use constants::{check_initialisers, drop_empty_names};
pub use half::{Half, HalfSettings, Io, ProviderClass, to_half};
pub(crate) use inline::inline_functions;
pub use keep::{Keep, ModelNames};
pub use quantize_blocks::{BlockQuantization, quantize_blocks};
pub use quantize_dynamic::{DynamicQuantization, quantize_dynamic};
pub use quantize_static::{Prepared, StaticQuantization, prepare_static};
pub use report::{Conversion, ConversionError, ConversionReport, Kept};

/// The version of the conversions: raised whenever the bytes that one of them makes change, since it is part of the
/// cache's keys.
pub const VERSION: u32 = 11;

#[cfg(test)]
mod tests;
