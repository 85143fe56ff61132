//! What the machine was seen to do at most, and how much data a bandwidth limits (method 5.6).
//!
//! Input: what the pass before the first block measured. Output: values as they are stored. Deliberately absent: the
//! limits of a cell (`known`), what the cell achieves, and what is said about it (`judge`).

use serde::{Deserialize, Serialize};

use experiment::{Device, ModelIndex, VariantIndex};
use onnx::cost::Arithmetic;

/// What the machine was seen to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// Arithmetic, by device, threads and kind of number.
    pub peaks: Vec<Peak>,
    /// Bandwidth, by device, threads and size of what is read.
    #[serde(default)]
    pub bandwidths: Vec<Bandwidth>,
    /// What starting nodes takes, by device and threads.
    #[serde(default)]
    pub launches: Vec<Launching>,
    /// In which numbers the files of cells multiply.
    #[serde(default)]
    pub files: Vec<FileArithmetic>,
}

/// The most arithmetic that was seen: a product of two square matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Label of the device.
    #[serde(default = "cpu")]
    pub device: String,
    /// Threads inside an operator.
    pub threads: u32,
    /// The numbers that are multiplied.
    #[serde(default)]
    pub arithmetic: Arithmetic,
    /// Rows and columns of both matrices.
    #[serde(default = "size_of_earlier_versions")]
    pub size: u64,
    /// Operations per second, two for each multiply-accumulate, of the fastest product.
    pub operations_per_s: f64,
}

/// The most bytes that were seen to move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Label of the device.
    pub device: String,
    /// Threads inside an operator.
    pub threads: u32,
    /// What was gone through.
    #[serde(rename = "of")]
    pub stream: Stream,
    /// Bytes that were gone through again and again.
    #[serde(rename = "of_bytes")]
    pub bytes: u64,
    /// Bytes read and written per second, of the fastest inference.
    pub bytes_per_s: f64,
}

/// Going through many bytes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// A row times a square matrix of weights, which is read.
    Weights,
    /// A sum of two vectors, which are read and written.
    Activations,
}

/// What it takes to start nodes that compute next to nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launching {
    /// Label of the device.
    pub device: String,
    /// Threads inside an operator.
    pub threads: u32,
    /// An inference without its nodes, in nanoseconds.
    pub call_ns: f64,
    /// Each node, in nanoseconds.
    pub node_ns: f64,
}

/// In which numbers the file of a variant multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileArithmetic {
    /// Index on the models axis.
    pub model: ModelIndex,
    /// Index on the variants axis.
    pub variant: VariantIndex,
    /// The numbers.
    pub arithmetic: Arithmetic,
}

pub(super) fn cpu() -> String {
    Device::CPU.to_owned()
}

/// Earlier records do not say it.
fn size_of_earlier_versions() -> u64 {
    1024
}

/// Bytes that one inference must move at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Weights of the nodes that multiply, each once.
    pub weights: f64,
    /// What these nodes read and write in addition.
    pub activations: f64,
    /// The same of the node that has the most.
    pub largest_activations: f64,
}

/// The smallest and the largest amount of bytes whose bandwidth is measured. Below, data lie in caches of single cores,
/// which no operator of a runtime is known to exhaust.
const SMALLEST_BYTES: f64 = (4 << 20) as f64;
const LARGEST_BYTES: f64 = (256 << 20) as f64;

/// The amount of bytes whose bandwidth is that of this many, or more: a power of two, not above it. `None`: no bandwidth
/// limits so few.
pub(crate) fn size_class(bytes: f64) -> Option<u64> {
    (bytes >= SMALLEST_BYTES).then(|| (bytes.min(LARGEST_BYTES).log2().floor()).exp2() as u64)
}

impl Traffic {
    /// The bytes of each kind, and the amounts whose bandwidth limits them: that of all weights, which each inference goes
    /// through, and that of the activations of one node. Nothing of what no bandwidth limits.
    pub fn parts(&self) -> impl Iterator<Item = (Stream, f64, u64)> {
        let weights = (Stream::Weights, self.weights, size_class(self.weights));
        let activations = (Stream::Activations, self.activations, size_class(self.largest_activations));
        [weights, activations].into_iter().filter_map(|(stream, bytes, within)| Some((stream, bytes, within?)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_of_the_class_below_them() {
        const MIB: f64 = (1 << 20) as f64;
        assert_eq!(size_class(3.9 * MIB), None);
        assert_eq!(size_class(4.0 * MIB), Some(4 << 20));
        assert_eq!(size_class(100.0 * MIB), Some(64 << 20));
        assert_eq!(size_class(1e12), Some(256 << 20));
        assert_eq!(size_class(f64::NAN), None);
    }

    #[test]
    fn a_peak_of_an_earlier_version_is_of_float32_on_the_cpu() {
        let found: Roofline =
            serde_json::from_str(r#"{ "peaks": [{ "threads": 2, "operations_per_s": 9e10 }] }"#).unwrap();
        let peak =
            Peak { device: cpu(), threads: 2, arithmetic: Arithmetic::Float32, size: 1024, operations_per_s: 9e10 };
        assert_eq!(found, Roofline { peaks: vec![peak], ..Roofline::default() });
    }
}
