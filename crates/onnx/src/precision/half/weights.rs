//! The numbers of a weight in half precision.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

use super::Half;
use crate::TensorError;
use crate::precision::report::WeightsReport;
use crate::proto::TensorProto;

/// The smallest number above zero that fp16 has. What is nearer to zero, and not zero, becomes this and not zero: such
/// numbers keep divisions from failing (the epsilon of a norm).
const SMALLEST_FP16: f32 = 5.960_464_5e-8;

/// By which share of their magnitude rounding may move the numbers of a constant: a step of bf16.
const TOLERATED: f64 = 1.0 / 256.0;

/// From this magnitude on a number stands for infinity: masks of attention add -1e9, -1e30 or the lowest float32. At the
/// end of fp16 they mask as well, and a row that is masked whole stays free of NaN, as it would not be with infinities.
const STANDS_FOR_INFINITY: f32 = 1e9;

/// Whether the numbers of a constant keep their meaning in half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Range {
    /// All are within its range.
    Within,
    /// But for those that stand for infinity where something is masked, and are numbers elsewhere.
    Masks,
    /// They are so near to zero that rounding moves them by more than bf16 would.
    Tiny,
    /// They do not.
    Beyond,
}

/// Where the numbers of a float32 tensor lie, and the largest magnitude of those that are finite.
pub(super) fn range(tensor: &TensorProto, target: Half) -> Result<(Range, f32), TensorError> {
    if target == Half::Bf16 {
        return Ok((Range::Within, 0.0));
    }
    let range_of = |value: &f32| match value.abs() {
        magnitude if magnitude <= f16::MAX.to_f32() || !magnitude.is_finite() => Range::Within,
        magnitude if magnitude >= STANDS_FOR_INFINITY => Range::Masks,
        _ => Range::Beyond,
    };
    let bytes = tensor.float_bytes()?;
    let part = |values: &[f32]| {
        let finite = |value: &f32| if value.is_finite() { value.abs() } else { 0.0 };
        let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        (
            values.iter().map(range_of).fold(Range::Within, Range::max),
            squares,
            values.iter().map(finite).fold(0.0, f32::max),
        )
    };
    let parts: Vec<(Range, f64, f32)> = parts(&bytes).map(|values| part(&values)).collect();
    let range = parts.iter().map(|(range, ..)| *range).fold(Range::Within, Range::max);
    let squares: f64 = parts.iter().map(|(_, squares, _)| squares).sum();
    let largest = parts.iter().map(|(.., largest)| *largest).fold(0.0, f32::max);
    // Below the normal numbers none is moved by more than the smallest one, so that most tensors need no closer look.
    let most = (bytes.len() / 4) as f64 * (f64::from(SMALLEST_FP16) / TOLERATED).powi(2);
    let is_tiny = range == Range::Within && squares > 0.0 && squares < most && loses(&bytes, squares);
    Ok((if is_tiny { Range::Tiny } else { range }, largest))
}

/// Whether fp16 moves the numbers of a tensor by more than is tolerated, as a root mean square of them.
fn loses(bytes: &[u8], squares: f64) -> bool {
    let lost = |mut values: Vec<f32>| {
        let before = values.clone();
        fit(&mut values, Half::Fp16);
        let after = values.iter().map(|value| f16::from_f32(*value).to_f32());
        before.iter().zip(after).map(|(before, after)| f64::from(before - after).powi(2)).sum::<f64>()
    };
    let lost: Vec<f64> = parts(bytes).map(lost).collect();
    lost.into_iter().sum::<f64>() > squares * TOLERATED.powi(2)
}

/// Numbers that a thread works on at a time: they stay in its cache, and take no memory to speak of.
const AT_A_TIME: usize = 1 << 14;

/// The numbers of little-endian float32 bytes, part by part on every processor.
fn parts(bytes: &[u8]) -> impl IndexedParallelIterator<Item = Vec<f32>> + '_ {
    bytes
        .par_chunks(4 * AT_A_TIME)
        .map(|part| part.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it)).collect())
}

/// A float32 tensor in half precision, rounded to nearest; counts the numbers that had to move to be in its range.
/// Infinities and NaN stay what they are.
pub(super) fn convert(
    tensor: &TensorProto,
    target: Half,
    counted: &mut WeightsReport,
) -> Result<TensorProto, TensorError> {
    let from = tensor.float_bytes()?;
    let mut bytes = vec![0; from.len() / 2];
    let convert_part = |(to, mut values): (&mut [u8], Vec<f32>)| {
        let moved = fit(&mut values, target);
        let targets = to.as_chunks_mut::<2>().0.iter_mut();
        match target {
            Half::Fp16 => {
                let mut halves = vec![f16::ZERO; values.len()];
                halves.convert_from_f32_slice(&values);
                targets.zip(&halves).for_each(|(to, from)| *to = from.to_le_bytes());
            }
            Half::Bf16 => targets.zip(&values).for_each(|(to, from)| *to = bf16::from_f32(*from).to_le_bytes()),
        }
        moved
    };
    let moved = bytes
        .par_chunks_mut(2 * AT_A_TIME)
        .zip(parts(&from))
        .map(convert_part)
        .reduce(WeightsReport::default, WeightsReport::and);
    *counted = counted.clone().and(moved);
    let shape = tensor.shape()?;
    let mut converted = TensorProto::of_bytes(tensor.name(), &target.element(), &shape, bytes);
    converted.doc_string.clone_from(&tensor.doc_string);
    converted.metadata_props.clone_from(&tensor.metadata_props);
    Ok(converted)
}

/// Brings finite numbers into the range of the target, and counts those that had to move.
fn fit(values: &mut [f32], target: Half) -> WeightsReport {
    let (largest, smallest, normal) = match target {
        Half::Fp16 => (f16::MAX.to_f32(), SMALLEST_FP16, f16::MIN_POSITIVE.to_f32()),
        Half::Bf16 => (bf16::MAX.to_f32(), 0.0, 0.0),
    };
    let mut moved = WeightsReport::default();
    for value in values {
        let magnitude = value.abs();
        let is_beyond = magnitude > largest && magnitude < f32::INFINITY;
        let is_below = magnitude < smallest && magnitude > 0.0;
        moved.clamped += u64::from(is_beyond);
        moved.raised += u64::from(is_below);
        moved.subnormal += u64::from(magnitude < normal && magnitude > 0.0);
        let fits = if is_beyond { largest.copysign(*value) } else { *value };
        *value = if is_below { smallest.copysign(*value) } else { fits };
    }
    moved
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_clamped_and_kept_from_zero() {
        let values =
            [1.0, -70000.0, f32::INFINITY, 1e-12, -1e-12, 0.0, 65519.0, f32::NEG_INFINITY, 1.0 + 2.0_f32.powi(-12)];
        let mut counted = WeightsReport::default();
        let half = convert(&TensorProto::of_floats("w", &[9], &values), Half::Fp16, &mut counted).unwrap();
        let expected =
            [1.0, -65504.0, f32::INFINITY, SMALLEST_FP16, -SMALLEST_FP16, 0.0, 65504.0, f32::NEG_INFINITY, 1.0];
        assert_eq!(half.floats().unwrap(), expected);
        assert_eq!(counted, WeightsReport { clamped: 2, subnormal: 2, raised: 2, ..WeightsReport::default() });
        let mut counted = WeightsReport::default();
        let brain = convert(&TensorProto::of_floats("w", &[2], &[f32::MAX, 1e-12]), Half::Bf16, &mut counted).unwrap();
        assert_eq!((brain.floats().unwrap()[0], counted.clamped), (bf16::MAX.to_f32(), 1));
        assert_eq!(brain.raw_data.unwrap().len(), 4);
    }

    #[test]
    fn a_long_weight_is_converted_whole() {
        let values: Vec<f32> = (0..40_000).map(|value| if value == 39_999 { 1e10 } else { value as f32 }).collect();
        let stored = TensorProto::of_floats("w", &[40_000], &values);
        let typed = TensorProto { raw_data: None, float_data: values, ..stored.clone() };
        for target in [Half::Fp16, Half::Bf16] {
            let converted = |tensor| convert(tensor, target, &mut WeightsReport::default()).unwrap();
            assert_eq!(converted(&stored), converted(&typed));
        }
        let mut counted = WeightsReport::default();
        let half = convert(&stored, Half::Fp16, &mut counted).unwrap();
        assert_eq!((half.floats().unwrap()[30_000], counted.clamped), (30_000.0, 1));
        assert_eq!(range(&stored, Half::Fp16).unwrap(), (Range::Masks, 1e10));
        assert!(convert(&TensorProto { dims: vec![39_999], ..stored }, Half::Fp16, &mut counted).is_err());
    }

    #[test]
    fn what_is_beyond_the_range_may_stand_for_infinity() {
        let range = |value: f32, target| range(&TensorProto::of_floats("w", &[2], &[1.0, value]), target).unwrap().0;
        let ranges =
            [65504.0, f32::INFINITY, f32::NAN, -1e9, f32::MIN, 9.8e7, -65505.0].map(|value| range(value, Half::Fp16));
        let (within, masks, beyond) = (Range::Within, Range::Masks, Range::Beyond);
        assert_eq!(ranges, [within, within, within, masks, masks, beyond, beyond]);
        assert_eq!(range(9.8e7, Half::Bf16), within);
    }

    /// A few small numbers among larger ones are as exact as their sum needs; if all are small, they are not.
    #[test]
    fn numbers_that_are_small_throughout_are_told() {
        let tensor = |values: &[f32]| TensorProto::of_floats("w", &[values.len() as u64], values);
        let range = |values: &[f32]| range(&tensor(values), Half::Fp16).map(|(range, _)| range);
        assert_eq!(range(&[1e-8; 64]).unwrap(), Range::Tiny);
        assert_eq!(range(&[1e-12]).unwrap(), Range::Tiny);
        assert_eq!(range(&[1e-4; 64]).unwrap(), Range::Within);
        assert_eq!(range(&[0.0; 64]).unwrap(), Range::Within);
        let few: Vec<f32> = (0..64).map(|index| if index < 8 { 1e-8 } else { 0.02 }).collect();
        assert_eq!(range(&few).unwrap(), Range::Within);
        assert_eq!(range(&[1e-8, 1e6]).unwrap(), Range::Beyond);
    }
}
