//! Input data: seeded, the same for every variant and device (method 1.7).

use half::{bf16, f16};

use super::{Failure, FailureKind, TensorRequest};
use crate::experiment::Values;
use crate::onnx::ElementType;
use crate::statistics::random::Xoshiro256PlusPlus;

/// All input sets together hold at most this much (method 1.7).
pub const POOL_LIMIT_BYTES: u64 = 64 << 20;

/// Largest random integer, exclusive: small enough to be an index into most embedding tables and gathers.
const INTEGER_RANGE: u64 = 2;

/// Bytes of one tensor, or a failure where its type has no fixed size or its size is absurd.
///
/// # Errors
///
/// [`FailureKind::Shape`] with the tensor's name.
pub(crate) fn tensor_bytes(tensor: &TensorRequest) -> Result<u64, Failure> {
    let size = tensor.element.size_bytes().ok_or_else(|| {
        let text = format!("input `{}` has type {}, which cannot be generated", tensor.name, tensor.element);
        Failure::new(FailureKind::Shape, text)
    })?;
    tensor.shape.iter().try_fold(size, |product, length| product.checked_mul(*length)).ok_or_else(|| {
        Failure::new(FailureKind::Shape, format!("input `{}` of shape {:?} is too large", tensor.name, tensor.shape))
    })
}

/// How many sets of these tensors are made: as many as wanted, within [`POOL_LIMIT_BYTES`], at least one.
///
/// # Errors
///
/// As [`tensor_bytes`].
pub(crate) fn sets_within_limit(tensors: &[TensorRequest], wanted: u32) -> Result<usize, Failure> {
    let mut set_bytes: u64 = 0;
    for tensor in tensors {
        set_bytes = set_bytes.saturating_add(tensor_bytes(tensor)?);
    }
    let fitting = POOL_LIMIT_BYTES.checked_div(set_bytes).unwrap_or(u64::from(wanted));
    Ok(fitting.clamp(1, u64::from(wanted.max(1))) as usize)
}

/// Fills `bytes`, the little-endian elements of `tensor`, for the input set with index `set`.
///
/// Floats are N(0,1) drawn as f32 (half precisions are those values rounded), booleans and integers are uniform below 2.
pub(crate) fn fill(tensor: &TensorRequest, set: usize, bytes: &mut [u8]) {
    let seed = tensor.seeds.get(set).copied().unwrap_or_default();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let values = tensor.values;
    let mut float = move || match values {
        Values::Random => random.normal() as f32,
        Values::Zeros => 0.0,
        Values::Ones => 1.0,
    };
    let mut integers = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut integer = move || match values {
        Values::Random => integers.below(INTEGER_RANGE),
        Values::Zeros => 0,
        Values::Ones => 1,
    };
    match tensor.element {
        ElementType::Float32 => each::<4>(bytes, || float().to_le_bytes()),
        ElementType::Float64 => each::<8>(bytes, || f64::from(float()).to_le_bytes()),
        ElementType::Float16 => each::<2>(bytes, || f16::from_f32(float()).to_le_bytes()),
        ElementType::Bfloat16 => each::<2>(bytes, || bf16::from_f32(float()).to_le_bytes()),
        _ => {
            let size = tensor.element.size_bytes().unwrap_or(1).max(1) as usize;
            for element in bytes.chunks_exact_mut(size) {
                // Values below 256 have the same little-endian start in every integer width.
                element.fill(0);
                element[0] = integer() as u8;
            }
        }
    }
}

fn each<const SIZE: usize>(bytes: &mut [u8], mut next: impl FnMut() -> [u8; SIZE]) {
    for element in bytes.as_chunks_mut::<SIZE>().0 {
        *element = next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(element: ElementType, shape: &[u64], values: Values) -> TensorRequest {
        TensorRequest { name: "x".to_owned(), element, shape: shape.to_vec(), values, seeds: vec![1, 2] }
    }

    #[test]
    fn random_floats_are_seeded_and_standard_normal() {
        let tensor = tensor(ElementType::Float32, &[10_000], Values::Random);
        let mut first = vec![0; 40_000];
        let mut again = vec![0; 40_000];
        let mut other = vec![0; 40_000];
        fill(&tensor, 0, &mut first);
        fill(&tensor, 0, &mut again);
        fill(&tensor, 1, &mut other);
        assert_eq!(first, again);
        assert_ne!(first, other);
        let values: Vec<f64> =
            first.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.05, "mean {mean}");
        assert!((square - 1.0).abs() < 0.05, "second moment {square}");
    }

    #[test]
    fn integers_stay_below_their_bound_in_every_width() {
        for element in [ElementType::Int64, ElementType::Int32, ElementType::Uint8, ElementType::Bool] {
            let size = element.size_bytes().expect("a fixed size") as usize;
            let tensor = tensor(element, &[64], Values::Random);
            let mut bytes = vec![0xff; 64 * size];
            fill(&tensor, 0, &mut bytes);
            assert!(bytes.chunks_exact(size).all(|value| value[0] < 2 && value[1..].iter().all(|byte| *byte == 0)));
        }
    }

    #[test]
    fn the_pool_shrinks_before_it_passes_its_limit() {
        let small = tensor(ElementType::Float32, &[16], Values::Random);
        let large = tensor(ElementType::Float32, &[8 << 20], Values::Random);
        assert_eq!(sets_within_limit(&[small], 8), Ok(8));
        assert_eq!(sets_within_limit(std::slice::from_ref(&large), 8), Ok(2));
        assert_eq!(sets_within_limit(&[tensor(ElementType::Float32, &[1 << 30], Values::Random)], 8), Ok(1));
        assert!(sets_within_limit(&[tensor(ElementType::Float32, &[u64::MAX, 2], Values::Random)], 8).is_err());
        assert_eq!(sets_within_limit(&[], 8), Ok(8));
    }
}
