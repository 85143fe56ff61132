//! Blocks of 4-bit levels: the numbers of a weight, without the graph around it.
//!
//! Input: a weight as [N, K]. Output: levels, scales and zero points in the layout of `MatMulNBits`. Deliberately absent:
//! values that are not finite.

use rayon::prelude::*;

use crate::precision::scales::nearest;

/// Sums that run side by side: two vectors of four.
const LANES: usize = 8;

/// How far the ends of a block are moved in, as factors.
const NARROWINGS: [f32; 4] = [1.0, 0.95, 0.9, 0.85];

/// The level of zero in a symmetric block.
const MIDDLE: u8 = 8;

/// The highest level.
const HIGHEST: f32 = 15.0;

/// A weight [N, K] in blocks, two levels in a byte, the lower half first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blocks {
    /// [N, blocks, size / 2]; what lies beyond K is zero.
    pub(super) values: Vec<u8>,
    /// [N, blocks]
    pub(super) scales: Vec<f32>,
    /// [N, blocks / 2 rounded up], empty for symmetric blocks.
    pub(super) zero_points: Vec<u8>,
}

impl Blocks {
    pub(super) fn of(values: &[f32], depth: usize, size: usize, is_symmetric: bool) -> Self {
        let depth = depth.max(1);
        let (columns, of_column) = (values.len() / depth, depth.div_ceil(size));
        let mut blocks = Blocks {
            values: vec![0; columns * of_column * size / 2],
            scales: vec![0.0; columns * of_column],
            zero_points: vec![0; columns * of_column.div_ceil(2)],
        };
        let levels = blocks.values.par_chunks_mut(of_column * size / 2);
        let scales =
            blocks.scales.par_chunks_mut(of_column).zip(blocks.zero_points.par_chunks_mut(of_column.div_ceil(2)));
        levels.zip(scales).zip(values.par_chunks_exact(depth)).for_each(|((levels, (scales, zero_points)), column)| {
            fill(column, size, is_symmetric, (levels, scales, zero_points));
        });
        if is_symmetric {
            blocks.zero_points.clear();
        }
        blocks
    }
}

/// The blocks of one column: levels, scales and zero points.
fn fill(column: &[f32], size: usize, is_symmetric: bool, to: (&mut [u8], &mut [f32], &mut [u8])) {
    let (values, scales, zero_points) = to;
    let mut levels = vec![0_u8; size];
    let targets = values.chunks_mut(size / 2).zip(scales);
    for (index, (block, (values, to_scale))) in column.chunks(size).zip(targets).enumerate() {
        let (scale, zero_point) = best(block, is_symmetric);
        levels.fill(zero_point);
        block.iter().zip(&mut levels).for_each(|(value, to)| *to = level(*value, scale, zero_point) as u8);
        let pairs = levels.as_chunks::<2>().0.iter();
        values.iter_mut().zip(pairs).for_each(|(to, [low, high])| *to = low | (high << 4));
        *to_scale = scale;
        zero_points[index / 2] |= zero_point << (4 * (index % 2));
    }
}

/// Scale and zero point with the least squared error among the narrowings of the range of a block.
fn best(block: &[f32], is_symmetric: bool) -> (f32, u8) {
    let least = block.iter().copied().fold(0.0, f32::min);
    let most = block.iter().copied().fold(0.0, f32::max);
    let mut best = (1.0, if is_symmetric { MIDDLE } else { 0 });
    let mut least_error = f32::INFINITY;
    for narrowing in NARROWINGS {
        let (scale, zero_point) = if is_symmetric {
            // The end that is further from zero gets level 0, which is -8: one level more than on the other side.
            let end = if most > -least { most } else { least };
            (end * narrowing / -f32::from(MIDDLE), MIDDLE)
        } else {
            let scale = (most - least) * narrowing / HIGHEST;
            (scale, (-least * narrowing / scale).round().clamp(0.0, HIGHEST) as u8)
        };
        if !scale.is_normal() {
            continue;
        }
        let error = squared_error(block, scale, zero_point);
        if error < least_error {
            (best, least_error) = ((scale, zero_point), error);
        }
    }
    best
}

/// Of the levels against the values they stand for, in lanes that a loop can carry side by side.
fn squared_error(block: &[f32], scale: f32, zero_point: u8) -> f32 {
    let mut lanes = [0.0; LANES];
    for values in block.chunks(LANES) {
        for (value, lane) in values.iter().zip(&mut lanes) {
            let again = (level(*value, scale, zero_point) - f32::from(zero_point)) * scale;
            *lane += (again - value) * (again - value);
        }
    }
    lanes.iter().sum()
}

fn level(value: f32, scale: f32, zero_point: u8) -> f32 {
    nearest((value / scale + f32::from(zero_point)).clamp(0.0, HIGHEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(blocks: &Blocks, depth: usize, size: usize) -> Vec<f32> {
        let n_blocks = depth.div_ceil(size);
        let mut values = Vec::new();
        for (index, scale) in blocks.scales.iter().enumerate() {
            let (column, block) = (index / n_blocks, index % n_blocks);
            let pair = blocks.zero_points.get(column * n_blocks.div_ceil(2) + block / 2);
            let zero_point = pair.map_or(MIDDLE, |pair| (pair >> (4 * (block % 2))) & 15);
            let bytes = &blocks.values[index * size / 2..(index + 1) * size / 2];
            let levels = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
            let left = (depth - block * size).min(size);
            values.extend(levels.take(left).map(|level| (f32::from(level) - f32::from(zero_point)) * scale));
        }
        values
    }

    #[test]
    fn blocks_hold_what_they_were_made_of() {
        let original: Vec<f32> = (0..2 * 40).map(|index| ((index * 37) % 41) as f32 / 10.0 - 2.0).collect();
        for is_symmetric in [false, true] {
            let blocks = Blocks::of(&original, 40, 16, is_symmetric);
            assert_eq!((blocks.values.len(), blocks.scales.len()), (2 * 3 * 8, 2 * 3));
            assert_eq!(blocks.zero_points.len(), if is_symmetric { 0 } else { 2 * 2 });
            let again = values(&blocks, 40, 16);
            let worst = original.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 0.45, "{worst}");
        }
    }

    #[test]
    fn zeros_and_single_values_are_exact() {
        for is_symmetric in [false, true] {
            let mut original = vec![0.0; 32];
            assert_eq!(values(&Blocks::of(&original, 32, 16, is_symmetric), 32, 16), original);
            original[5] = -3.0;
            original[20] = 1e-30;
            assert_eq!(values(&Blocks::of(&original, 32, 16, is_symmetric), 32, 16)[..16], original[..16]);
        }
    }
}
