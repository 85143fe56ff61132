//! The numbers of a weight in half precision.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Half;
use crate::TensorError;
use crate::proto::TensorProto;

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
pub(super) fn range(tensor: &TensorProto, target: Half) -> Result<Range, TensorError> {
    if target == Half::Bf16 {
        return Ok(Range::Within);
    }
    let of = |value: &f32| match value.abs() {
        magnitude if magnitude <= f16::MAX.to_f32() || !magnitude.is_finite() => Range::Within,
        magnitude if magnitude >= STANDS_FOR_INFINITY => Range::Masks,
        _ => Range::Beyond,
    };
    let mut range = Range::Within;
    tensor.each_floats(&mut |values| range = values.iter().map(of).fold(range, Range::max))?;
    Ok(range)
}

/// A float32 tensor in half precision, rounded to nearest, and how many of its elements stood for infinity and are at the
/// end of the range now. Infinities and NaN stay what they are.
pub(super) fn convert(tensor: &TensorProto, target: Half) -> Result<(TensorProto, u64), TensorError> {
    let (mut clamped, mut halves) = (0, Vec::new());
    let mut bytes = Vec::with_capacity(tensor.elements()? * 2);
    tensor.each_floats(&mut |values| {
        clamped += fit(values, target);
        let start = bytes.len();
        bytes.resize(start + values.len() * 2, 0);
        let places = bytes[start..].as_chunks_mut::<2>().0.iter_mut();
        match target {
            Half::Fp16 => {
                halves.resize(values.len(), f16::ZERO);
                halves.convert_from_f32_slice(values);
                places.zip(&halves).for_each(|(to, from)| *to = from.to_le_bytes());
            }
            Half::Bf16 => places.zip(values).for_each(|(to, from)| *to = bf16::from_f32(*from).to_le_bytes()),
        }
    })?;
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
    fn a_long_weight_is_converted_whole() {
        let values: Vec<f32> = (0..40_000).map(|value| if value == 39_999 { 1e10 } else { value as f32 }).collect();
        let stored = TensorProto::of_floats("w", &[40_000], &values);
        let typed = TensorProto { raw_data: None, float_data: values, ..stored.clone() };
        for target in [Half::Fp16, Half::Bf16] {
            assert_eq!(convert(&stored, target).unwrap(), convert(&typed, target).unwrap());
        }
        let (half, clamped) = convert(&stored, Half::Fp16).unwrap();
        assert_eq!((half.floats().unwrap()[30_000], clamped), (30_000.0, 1));
        assert_eq!(range(&stored, Half::Fp16).unwrap(), Range::Masks);
        assert!(convert(&TensorProto { dims: vec![39_999], ..stored }, Half::Fp16).is_err());
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
