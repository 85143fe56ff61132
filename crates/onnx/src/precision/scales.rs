//! From floating-point numbers to 8-bit integers: scales and zero points.
//!
//! Input: values, or the range that they take. Output: integers with `value = scale * (integer - zero point)`, as the
//! standard defines `QuantizeLinear`. Deliberately absent: finding ranges of activations (`activation_ranges` does),
//! and 4 bits (`quantize_blocks`).
//!
//! Weights are symmetric, one scale for each output channel: a zero point other than 0 would cost a product for every
//! output element, and a channel with small weights would lose its digits to one with large weights (R. Krishnamoorthi,
//! Quantizing deep convolutional networks for efficient inference, 2018, arXiv:1806.08342, sections 2.1 and 3.1).

use rayon::prelude::*;

/// The largest level of a weight: -128 is not used, so that the scale is the same on both sides.
pub(crate) const FULL_WEIGHT: u8 = 127;

/// The same for 7 bits. `vpmaddubsw`, which multiplies 8-bit numbers on x86 without VNNI, adds two products of up to
/// 255 * 127 in 16 signed bits; with 64 they fit (the value that ONNX Runtime's `reduce_range` has).
pub(crate) const REDUCED_WEIGHT: u8 = 64;

/// Added and taken away again a float32 loses its fraction without a call, so that a loop over weights is vectorised.
const ROUNDER: f32 = 12_582_912.0;

/// A weight in 8 bits with the scales of its channels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Channels {
    /// Integers in the order of the values.
    pub(crate) values: Vec<i8>,
    /// One for each channel.
    pub(crate) scales: Vec<f32>,
}

/// Why a weight is not quantised whose numbers no scale can distinguish.
pub(crate) const UNUSUAL_WEIGHT: &str = "its weight has values that are not finite or beyond 1e18, or none above 1e-35";

/// The largest number of which a square is one too.
const MOST: f32 = 1e18;

/// The smallest of which a 127th is a normal number.
const LEAST: f32 = 2e-36;

/// Whether a scale distinguishes a weight's numbers, given the largest of each channel.
pub(crate) fn is_usual(most: &[f32]) -> bool {
    let most = most.iter().copied().fold(0.0, f32::max);
    most == 0.0 || (LEAST..=MOST).contains(&most)
}

/// Quantises symmetrically with one scale for each index along `axis`; `None` where that cannot be.
///
/// `largest` is the level of the largest value of a channel. A channel of zeros has scale 1.
pub(crate) fn quantize_channels(values: &[f32], shape: &[u64], axis: usize, largest: u8) -> Option<Channels> {
    quantize_channels_above(values, shape, axis, largest, &[])
}

/// The same with scales that are not below `least`, where that has one for the channel.
pub(crate) fn quantize_channels_above(
    values: &[f32],
    shape: &[u64],
    axis: usize,
    largest: u8,
    least: &[f32],
) -> Option<Channels> {
    let channels = *shape.get(axis)? as usize;
    let inner = shape[axis + 1..].iter().product::<u64>() as usize;
    let rows = Rows { channels, length: if inner == 1 { channels } else { inner }, is_mixed: inner == 1 };
    let most = rows.most(values).filter(|most| is_usual(most))?;
    let mut scales: Vec<f32> = most.iter().map(|most| scale_of(*most / f32::from(largest))).collect();
    scales.iter_mut().zip(least).for_each(|(scale, least)| *scale = scale.max(*least));
    Some(Channels { values: rows.levels(values, &scales, largest), scales })
}

/// How the channels of a weight lie in memory.
#[derive(Clone, Copy)]
struct Rows {
    channels: usize,
    /// Elements of a row.
    length: usize,
    /// A row has one element of every channel; else all of it is of one.
    is_mixed: bool,
}

/// Elements that a thread works on at a time, in whole rows.
const AT_A_TIME: usize = 1 << 16;

impl Rows {
    /// Rows that a thread works on at a time.
    fn at_a_time(self) -> usize {
        // Each part has a largest magnitude of every channel, which must be few relative to its elements.
        (AT_A_TIME / self.length.max(1)).max(if self.is_mixed { 32 } else { 1 })
    }

    /// The channel of a row.
    fn channel(self, row: usize) -> usize {
        row % self.channels.max(1)
    }

    /// The largest magnitude of each channel; `None` if a value is not finite.
    fn most(self, values: &[f32]) -> Option<Vec<f32>> {
        let (length, at_a_time) = (self.length.max(1), self.at_a_time());
        let of_part = |(part, values): (usize, &[f32])| {
            let mut most = vec![0_f32; self.channels];
            let mut is_finite = true;
            for (row, values) in values.chunks_exact(length).enumerate() {
                is_finite &= values.iter().all(|value| value.is_finite());
                if self.is_mixed {
                    values.iter().zip(&mut most).for_each(|(value, most)| *most = most.max(value.abs()));
                } else {
                    let most = &mut most[self.channel(part * at_a_time + row)];
                    *most = values.iter().fold(*most, |most, value| most.max(value.abs()));
                }
            }
            is_finite.then_some(most)
        };
        let larger = |mut left: Vec<f32>, right: Vec<f32>| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left = left.max(right));
            Some(left)
        };
        let parts = values.par_chunks(length * at_a_time).enumerate().map(of_part);
        parts.try_reduce(|| vec![0_f32; self.channels], larger)
    }

    /// The level of each value.
    fn levels(self, values: &[f32], scales: &[f32], largest: u8) -> Vec<i8> {
        let (length, at_a_time) = (self.length.max(1), self.at_a_time());
        let mut levels = vec![0_i8; values.len()];
        let parts = levels.par_chunks_mut(length * at_a_time).zip(values.par_chunks(length * at_a_time));
        parts.enumerate().for_each(|(part, (levels, values))| {
            for (row, (levels, values)) in levels.chunks_mut(length).zip(values.chunks(length)).enumerate() {
                let pairs = levels.iter_mut().zip(values);
                if self.is_mixed {
                    pairs.zip(scales).for_each(|((to, value), scale)| *to = level(*value, *scale, largest));
                } else {
                    let scale = scales[self.channel(part * at_a_time + row)];
                    pairs.for_each(|(to, value)| *to = level(*value, scale, largest));
                }
            }
        });
        levels
    }
}

/// A scale that division survives: 1 for zero and for what only denormal numbers can distinguish from it.
fn scale_of(scale: f32) -> f32 {
    if scale < f32::MIN_POSITIVE { 1.0 } else { scale }
}

fn level(value: f32, scale: f32, largest: u8) -> i8 {
    let largest = f32::from(largest);
    nearest((value / scale).clamp(-largest, largest)) as i8
}

/// The nearest integer to a number below 2^22, ties to even.
pub(crate) fn nearest(value: f32) -> f32 {
    value + ROUNDER - ROUNDER
}

/// How an activation is stored in 8 unsigned bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    /// The step between two levels.
    pub(crate) scale: f32,
    /// The level of zero.
    pub(crate) zero_point: u8,
}

impl Affine {
    /// Covers the range, zero included, because padding and Relu must be exact.
    pub(crate) fn of_range(least: f32, most: f32) -> Self {
        let (least, most) = (f64::from(least.min(0.0)), f64::from(most.max(0.0)));
        let scale = scale_of(((most - least) / 255.0) as f32);
        let zero_point = (-least / f64::from(scale)).round_ties_even().clamp(0.0, 255.0) as u8;
        Affine { scale, zero_point }
    }
}

/// A bias in the units of the products that it is added to; and how many values lie beyond 32 bits.
pub(crate) fn quantize_bias(values: &[f32], activation: f32, weights: &[f32]) -> (Vec<i32>, u64) {
    let mut clamped = 0;
    let level = |(index, value): (usize, &f32)| {
        let weight = weights.get(index % weights.len().max(1)).copied().unwrap_or(1.0);
        let level = (f64::from(*value) / (f64::from(activation) * f64::from(weight))).round_ties_even();
        clamped += u64::from(level != f64::from(level as i32));
        level as i32
    };
    let levels = values.iter().enumerate().map(level).collect();
    (levels, clamped)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_has_its_own_scale() {
        let values = [1.0, -100.0, 0.0, -0.5, 50.0, 0.0];
        let columns = quantize_channels(&values, &[2, 3], 1, FULL_WEIGHT).unwrap();
        assert_eq!(columns.values, [127, -127, 0, -64, 64, 0]);
        assert_eq!(columns.scales, [1.0 / 127.0, 100.0 / 127.0, 1.0]);
        let rows = quantize_channels(&values, &[2, 3], 0, REDUCED_WEIGHT).unwrap();
        assert_eq!(rows.values, [1, -64, 0, -1, 64, 0]);
        let filters = quantize_channels(&values, &[1, 3, 2, 1], 1, FULL_WEIGHT).unwrap();
        assert_eq!(filters.values, [1, -127, 0, -127, 127, 0]);
    }

    #[test]
    fn levels_round_to_even_and_never_leave_their_range() {
        let values = [127.0, 0.5, 1.5, 2.5, -0.5, -1.5, f32::MIN_POSITIVE];
        assert_eq!(quantize_channels(&values, &[7], 0, FULL_WEIGHT).unwrap().values.len(), 7);
        let row = quantize_channels(&values, &[1, 7], 0, FULL_WEIGHT).unwrap();
        assert_eq!(row.values, [127, 0, 2, 2, 0, -2, 0]);
    }

    #[test]
    fn values_that_are_not_finite_cannot_be_quantised() {
        assert_eq!(quantize_channels(&[1.0, f32::NAN], &[2], 0, FULL_WEIGHT), None);
        assert_eq!(quantize_channels(&[f32::INFINITY, 1.0], &[1, 2], 0, FULL_WEIGHT), None);
        assert_eq!(quantize_channels(&[], &[0, 3], 1, FULL_WEIGHT).unwrap().scales, [1.0; 3]);
        assert_eq!(quantize_channels(&[], &[3, 0], 0, FULL_WEIGHT).unwrap().scales, [1.0; 3]);
    }

    #[test]
    fn zero_is_always_a_level() {
        let affine = Affine::of_range(-1.0, 1.55);
        assert_eq!((affine.zero_point, affine.scale), (100, 0.01));
        assert_eq!(Affine::of_range(0.5, 2.55), Affine { scale: 0.01, zero_point: 0 });
        assert_eq!(Affine::of_range(-2.55, -1.0), Affine { scale: 0.01, zero_point: 255 });
        assert_eq!(Affine::of_range(0.0, 0.0), Affine { scale: 1.0, zero_point: 0 });
        assert!(Affine::of_range(f32::MIN, f32::MAX).scale.is_finite());
    }

    #[test]
    fn biases_beyond_32_bits_are_counted() {
        assert_eq!(quantize_bias(&[1.0, -1.0], 0.5, &[0.1, 0.2]), (vec![20, -10], 0));
        assert_eq!(quantize_bias(&[1e9, 2.0], 1e-3, &[1e-3]).1, 1);
    }
}
