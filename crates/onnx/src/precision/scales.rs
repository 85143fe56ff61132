//! From floating-point numbers to 8-bit integers: scales and zero points.
//!
//! Input: values, or the range that they take. Output: integers with `value = scale * (integer - zero point)`, as the
//! standard defines `QuantizeLinear`. Deliberately absent: finding ranges of activations (`activation_ranges` does),
//! and 4 bits (`quantize_blocks`).
//!
//! Weights are symmetric, one scale for each output channel: a zero point other than 0 would cost a product for every
//! output element, and a channel with small weights would lose its digits to one with large weights (R. Krishnamoorthi,
//! Quantizing deep convolutional networks for efficient inference, 2018, arXiv:1806.08342, sections 2.1 and 3.1).

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

/// Quantises symmetrically with one scale for each place along `axis`; `None` if a value is not finite.
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
    let mut most = vec![0_f32; channels];
    let mut is_finite = true;
    each_row(values.len(), channels, inner, |row, channel| {
        let row = &values[row];
        match channel {
            Some(channel) => {
                let largest = row.iter().fold(0_f32, |most, value| most.max(value.abs()));
                is_finite &= row.iter().all(|value| value.is_finite());
                most[channel] = most[channel].max(largest);
            }
            None => row.iter().zip(&mut most).for_each(|(value, most)| {
                is_finite &= value.is_finite();
                *most = most.max(value.abs());
            }),
        }
    });
    if !is_finite {
        return None;
    }
    let mut scales: Vec<f32> = most.iter().map(|most| scale_of(*most / f32::from(largest))).collect();
    scales.iter_mut().zip(least).for_each(|(scale, least)| *scale = scale.max(*least));
    let mut levels = Vec::with_capacity(values.len());
    each_row(values.len(), channels, inner, |row, channel| match channel {
        Some(channel) => levels.extend(values[row].iter().map(|value| level(*value, scales[channel], largest))),
        None => levels.extend(values[row].iter().zip(&scales).map(|(value, scale)| level(*value, *scale, largest))),
    });
    Some(Channels { values: levels, scales })
}

/// Calls `visit` with the elements of one channel, or with one element of every channel where those lie side by side.
fn each_row(
    elements: usize,
    channels: usize,
    inner: usize,
    mut visit: impl FnMut(std::ops::Range<usize>, Option<usize>),
) {
    let length = if inner == 1 { channels } else { inner };
    let rows = elements.checked_div(length).unwrap_or_default();
    for row in 0..rows {
        visit(row * length..(row + 1) * length, if inner == 1 { None } else { Some(row % channels) });
    }
}

/// A scale that division survives: 1 for zero and for what only denormal numbers can tell from it.
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
