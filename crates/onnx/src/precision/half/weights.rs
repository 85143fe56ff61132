//! The numbers of a weight in half precision.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::TensorProblem;
use crate::proto::TensorProto;

use super::Half;

/// The smallest number above zero that fp16 has. What is nearer to zero, and not zero, becomes this and not zero: such
/// numbers keep divisions from failing (the epsilon of a norm).
const SMALLEST_FP16: f32 = 5.960_464_5e-8;

/// From this magnitude on a number stands for infinity: masks of attention add -1e9, -1e30 or the lowest float32. At the
/// end of fp16 they mask as well, and a row that is masked whole stays free of NaN, as it would not be with infinities.
const STANDS_FOR_INFINITY: f32 = 1e9;

/// Whether the numbers of a constant keep their meaning in half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Range {
    /// All have a place there.
    Within,
    /// But for those that stand for infinity where something is masked, and are numbers elsewhere.
    Masks,
    /// They do not.
    Beyond,
}

/// Where the numbers of a float32 tensor lie.
pub(super) fn range(tensor: &TensorProto, target: Half) -> Result<Range, TensorProblem> {
    if target == Half::Bf16 {
        return Ok(Range::Within);
    }
    let of = |value: &f32| match value.abs() {
        magnitude if magnitude <= f16::MAX.to_f32() || !magnitude.is_finite() => Range::Within,
        magnitude if magnitude >= STANDS_FOR_INFINITY => Range::Masks,
        _ => Range::Beyond,
    };
    Ok(tensor.floats()?.iter().map(of).max().unwrap_or(Range::Within))
}

/// A float32 tensor in half precision, rounded to nearest, and how many of its elements stood for infinity and are at the
/// end of the range now. Infinities and NaN stay what they are.
pub(super) fn convert(tensor: &TensorProto, target: Half) -> Result<(TensorProto, u64), TensorProblem> {
    let mut values = tensor.floats()?;
    let clamped = fit(&mut values, target);
    let mut bytes = vec![0_u8; values.len() * 2];
    match target {
        Half::Fp16 => {
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(&values);
            bytes.as_chunks_mut::<2>().0.iter_mut().zip(&halves).for_each(|(to, from)| *to = from.to_le_bytes());
        }
        Half::Bf16 => {
            let pairs = bytes.as_chunks_mut::<2>().0.iter_mut().zip(&values);
            pairs.for_each(|(to, from)| *to = bf16::from_f32(*from).to_le_bytes());
        }
    }
    let shape = tensor.shape()?;
    let mut converted = TensorProto::of_bytes(tensor.name(), &target.element(), &shape, bytes);
    converted.doc_string.clone_from(&tensor.doc_string);
    converted.metadata_props.clone_from(&tensor.metadata_props);
    Ok((converted, clamped))
}

/// Brings finite numbers into the range of the target.
fn fit(values: &mut [f32], target: Half) -> u64 {
    let largest = match target {
        Half::Fp16 => f16::MAX.to_f32(),
        Half::Bf16 => bf16::MAX.to_f32(),
    };
    let mut clamped = 0;
    for value in values {
        let magnitude = value.abs();
        if magnitude > largest && magnitude.is_finite() {
            *value = largest.copysign(*value);
            clamped += 1;
        } else if target == Half::Fp16 && magnitude < SMALLEST_FP16 && magnitude > 0.0 {
            *value = SMALLEST_FP16.copysign(*value);
        }
    }
    clamped
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_clamped_and_kept_from_zero() {
        let values =
            [1.0, -70000.0, f32::INFINITY, 1e-12, -1e-12, 0.0, 65519.0, f32::NEG_INFINITY, 1.0 + 2.0_f32.powi(-12)];
        let (half, clamped) = convert(&TensorProto::of_floats("w", &[9], &values), Half::Fp16).unwrap();
        let expected =
            [1.0, -65504.0, f32::INFINITY, SMALLEST_FP16, -SMALLEST_FP16, 0.0, 65504.0, f32::NEG_INFINITY, 1.0];
        assert_eq!((half.floats().unwrap(), clamped), (expected.to_vec(), 2));
        let (brain, clamped) = convert(&TensorProto::of_floats("w", &[2], &[f32::MAX, 1e-12]), Half::Bf16).unwrap();
        assert_eq!((brain.floats().unwrap()[0], clamped), (bf16::MAX.to_f32(), 1));
        assert_eq!(brain.raw_data.unwrap().len(), 4);
    }

    #[test]
    fn what_is_beyond_the_range_may_stand_for_infinity() {
        let range = |value: f32, target| range(&TensorProto::of_floats("w", &[2], &[1.0, value]), target).unwrap();
        let of =
            [65504.0, f32::INFINITY, f32::NAN, -1e9, f32::MIN, 9.8e7, -65505.0].map(|value| range(value, Half::Fp16));
        let (within, masks, beyond) = (Range::Within, Range::Masks, Range::Beyond);
        assert_eq!(of, [within, within, within, masks, masks, beyond, beyond]);
        assert_eq!(range(9.8e7, Half::Bf16), within);
    }
}
