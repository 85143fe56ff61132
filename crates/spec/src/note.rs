//! What a spec asks for without saying it: consequences of one key for another.
//!
//! Output of reading a spec, for `plan` to show. Deliberately absent: how it is worded, and everything that deserves a
//! warning, which is a [`Problem`](super::Problem).

use base::metric::MetricReference;

/// A consequence that the author should know of.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// `measure.stop.min_samples` was raised to what a percentile takes.
    MoreSamples {
        /// The percentile.
        reference: MetricReference,
        /// Samples of a run without it.
        from: u32,
        /// Samples of a run now.
        to: u32,
    },
    /// A model goes by another name than its file: it would be none, or another model has it.
    NamedModel {
        /// The file as the specification has it.
        file: String,
        /// The name.
        name: String,
    },
    /// There is no control, because the design compares nothing.
    NoControl,
    /// Variants have the same settings, so that what is measured between them is noise.
    EqualVariants {
        /// Their names, in the order of the file.
        variants: Vec<String>,
    },
}
