//! What the machine was seen to do at most, and what each cell asks of it (method 5.6).
//!
//! Input: what the pass before the first block measured. Output: the roofs of a cell. Deliberately absent: what the cell
//! achieves, and what is said about it (`judge`).

use onnx::cost::Arithmetic;
use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::experiment::{Device, LowerPrecision, ModelIndex, Precision, VariantIndex};
use crate::plan::Cell;

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
    pub of: Stream,
    /// Bytes that were gone through again and again.
    pub of_bytes: u64,
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

fn cpu() -> String {
    Device::CPU.to_owned()
}

/// Earlier records do not say it.
fn size_of_earlier_versions() -> u64 {
    1024
}

/// Bytes that one inference must move at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Traffic {
    /// Weights of the nodes that multiply, each once.
    pub weights: f64,
    /// What these nodes read and write beside.
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
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Stream, f64, u64)> {
        let weights = (Stream::Weights, self.weights, size_class(self.weights));
        let activations = (Stream::Activations, self.activations, size_class(self.largest_activations));
        [weights, activations].into_iter().filter_map(|(of, bytes, within)| Some((of, bytes, within?)))
    }
}

/// Half precision that is less than so many times as fast as float32 on a processor is float32 behind casts: where it is
/// the processor's own, it is twice as fast.
const HALF_IS_FASTER: f64 = 1.5;

impl Manifest {
    /// What the machine was seen to do; `None` where nobody looked.
    fn seen(&self) -> Option<&Roofline> {
        self.findings.peak.as_ref()
    }

    /// Arithmetic that was seen; nothing where the costs of models are not known.
    pub fn peaks(&self) -> &[Peak] {
        self.seen().map_or(&[], |found| &found.peaks)
    }

    /// Bandwidths that were seen.
    pub fn bandwidths(&self) -> &[Bandwidth] {
        self.seen().map_or(&[], |found| &found.bandwidths)
    }

    /// What starting nodes was seen to take.
    pub fn launches(&self) -> &[Launching] {
        self.seen().map_or(&[], |found| &found.launches)
    }

    fn label_of_device(&self, cell: &Cell) -> String {
        self.experiment.devices.get(cell.device().place()).map_or_else(cpu, Device::label)
    }

    /// In which numbers the file of a cell is written: what the file says, and in records that do not have it what the
    /// variant does.
    fn written_in(&self, cell: &Cell) -> Arithmetic {
        let is_its = |file: &&FileArithmetic| (file.model, file.variant) == (cell.model(), cell.variant());
        if let Some(file) = self.seen().and_then(|found| found.files.iter().find(is_its)) {
            return file.arithmetic;
        }
        match self.precision_of(cell) {
            Precision::Fp32 => Arithmetic::Float32,
            Precision::Fp16 => Arithmetic::Float16,
            Precision::Bf16 => Arithmetic::Bfloat16,
            Precision::Int8 | Precision::Int4 => Arithmetic::Int8,
        }
    }

    /// In which numbers a cell multiplies: those of its file, unless the processor has no such arithmetic, or the provider
    /// computes float32 in less.
    pub(crate) fn arithmetic_of(&self, cell: &Cell) -> Arithmetic {
        let written = self.written_in(cell);
        let is_half = matches!(written, Arithmetic::Float16 | Arithmetic::Bfloat16);
        let is_cpu = self.experiment.devices.get(cell.device().place()).is_none_or(Device::is_cpu);
        let rate = |arithmetic| self.fastest(cell, arithmetic).map(|peak| peak.operations_per_s);
        match (rate(written), rate(Arithmetic::Float32)) {
            _ if written == Arithmetic::Float32 => self.float32_of(cell),
            (Some(half), Some(wide)) if is_half && is_cpu && half < HALF_IS_FASTER * wide => Arithmetic::Float32,
            _ => written,
        }
    }

    /// In which numbers the parts of a cell that are in float32 multiply, on its device and with its settings.
    pub(crate) fn float32_of(&self, cell: &Cell) -> Arithmetic {
        let lower = self.settings_of(cell).and_then(|(variant, device)| LowerPrecision::of(variant, device)?.to);
        lower.unwrap_or(Arithmetic::Float32)
    }

    fn precision_of(&self, cell: &Cell) -> Precision {
        self.experiment.variants.get(cell.variant().place()).map(|variant| variant.precision).unwrap_or_default()
    }

    /// What was seen on a cell's device with its threads, or with fewer: it could have used no more of them.
    fn fastest(&self, cell: &Cell, arithmetic: Arithmetic) -> Option<&Peak> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let is_it = |peak: &&Peak| peak.device == device && peak.threads <= threads && peak.arithmetic == arithmetic;
        let peaks = self.peaks().iter().filter(is_it);
        peaks.max_by(|one, two| one.operations_per_s.total_cmp(&two.operations_per_s))
    }

    /// The most arithmetic that a cell could do: in its own numbers or in those of float32, in which parts of every model
    /// stay, whichever is faster. `None` where its own was not measured.
    pub(crate) fn peak_of(&self, cell: &Cell) -> Option<&Peak> {
        let own = self.fastest(cell, self.arithmetic_of(cell))?;
        let wide = self.fastest(cell, self.float32_of(cell));
        Some(wide.filter(|wide| wide.operations_per_s > own.operations_per_s).unwrap_or(own))
    }

    /// The bandwidth at which a cell goes through so many bytes again and again: the most that was seen of as many or
    /// more, for fewer bytes move no slower.
    pub(crate) fn bandwidth_of(&self, cell: &Cell, of: Stream, of_bytes: u64) -> Option<f64> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let is_it = |seen: &&Bandwidth| {
            seen.device == device && seen.threads <= threads && seen.of == of && seen.of_bytes >= of_bytes
        };
        self.bandwidths().iter().filter(is_it).map(|seen| seen.bytes_per_s).max_by(f64::total_cmp)
    }

    /// What starting the nodes of a cell takes: the least that was seen with its threads or fewer.
    pub(crate) fn launching_of(&self, cell: &Cell) -> Option<&Launching> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let seen = self.launches().iter().filter(|seen| seen.device == device && seen.threads <= threads);
        seen.min_by(|one, two| one.node_ns.total_cmp(&two.node_ns))
    }

    /// What an inference of a cell must move at least, where that is known.
    pub(crate) fn traffic_of(&self, cell: &Cell) -> Option<Traffic> {
        self.traffic_in(cell, self.arithmetic_of(cell))
    }

    /// The same, if it multiplies such numbers.
    pub(crate) fn traffic_in(&self, cell: &Cell, arithmetic: Arithmetic) -> Option<Traffic> {
        const INT4_WEIGHT: f64 = 0.5;
        let moved = self.cost(cell)?.products?;
        let number = arithmetic.bytes();
        let weight = if self.precision_of(cell) == Precision::Int4 { INT4_WEIGHT } else { number };
        Some(Traffic {
            weights: moved.weights as f64 * weight,
            activations: moved.activations as f64 * number,
            largest_activations: moved.largest_activations as f64 * number,
        })
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
