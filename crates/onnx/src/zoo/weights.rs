//! Random weights that behave like trained ones.
//!
//! Input: a recipe, a shape, a seed. Output: little-endian float32 bytes, the same on every host: whole numbers are drawn
//! and summed, and the operations on floats are those that IEEE 754 rounds exactly. Deliberately absent: normal numbers,
//! because logarithms and cosines differ in the last bit between systems.

use statistics::random::Xoshiro256PlusPlus;

/// How the numbers of a weight are made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Recipe<'a> {
    /// `[outputs, ...]`: filters of a convolution or a Gemm, each with a mean of zero; over many input channels, at each
    /// of its positions, because at the border of an image it meets some of them alone.
    ///
    /// Otherwise what all rectified inputs have in common would outgrow their differences, and after some layers every
    /// image would give the same output.
    Filters {
        /// Standard deviation of the elements, for each filter.
        deviations: &'a [f64],
    },
    /// `[inputs, outputs]`: a matrix to multiply by from the right, each column with a mean of zero for the same reason.
    Columns {
        /// Standard deviation of the elements, for each column.
        deviations: &'a [f64],
    },
    /// `[rows, width]`: embeddings.
    Rows {
        /// Standard deviation of the elements, for each row.
        deviations: &'a [f64],
    },
    /// Uniform numbers, each about a centre of its own.
    About {
        centres: &'a [f64],
        /// How far the numbers may be from them.
        distances: &'a [f64],
    },
    /// Uniform numbers.
    Uniform {
        /// The least.
        low: f64,
        /// The largest.
        high: f64,
    },
}

/// Standard deviation of the sum of four uniform 16-bit numbers: `sqrt(4 (2^32 - 1) / 12)`.
const BELL_DEVIATION: f64 = 37_837.227_243_837_06;

/// A bell-shaped number about zero, from one draw: the sum of four uniform 16-bit numbers less its mean (Irwin and Hall).
fn bell(random: &mut Xoshiro256PlusPlus) -> i32 {
    let bits = random.next_u64();
    let lane = |lane: u32| ((bits >> (16 * lane)) & 0xFFFF) as i32;
    lane(0) + lane(1) + lane(2) + lane(3) - 2 * 0xFFFF
}

/// Scales of channels, about one: products of four uniform numbers, close to lognormal numbers with sigma 0.3, as trained
/// channels are seen to differ. Without them a quantisation for each channel would have nothing to gain.
pub(super) fn channel_scales(channels: u64, seed: u64) -> Vec<f64> {
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..channels).map(|_| (0..4).map(|_| 0.75 + 0.5 * random.unit()).product()).collect()
}

/// The first `most_rows` rows of a weight, as bytes; all of them for `usize::MAX`.
pub(super) fn draw(recipe: &Recipe, shape: &[u64], seed: u64, most_rows: usize) -> Vec<u8> {
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let size = |sizes: &[u64]| sizes.iter().product::<u64>() as usize;
    let (rows, width) = (size(&shape[..shape.len().min(1)]), size(shape.get(1..).unwrap_or_default()));
    let mut bytes = vec![0; rows.min(most_rows) * width * 4];
    let numbers = bytes.as_chunks_mut::<4>().0;
    let rows = numbers.chunks_exact_mut(width.max(1));
    match *recipe {
        Recipe::Filters { deviations } => {
            let positions =
                if shape.get(1).is_some_and(|inputs| *inputs >= MANY_INPUTS) { size(&shape[2..]) } else { 1 };
            rows.zip(deviations).for_each(|(row, deviation)| filter(row, *deviation, positions, random));
        }
        Recipe::Columns { deviations } => columns(numbers, deviations, random),
        Recipe::Rows { deviations } => {
            for (row, deviation) in rows.zip(deviations) {
                let scale = deviation / BELL_DEVIATION;
                row.fill_with(|| ((f64::from(bell(random)) * scale) as f32).to_le_bytes());
            }
        }
        Recipe::About { centres, distances } => {
            for ((number, centre), distance) in numbers.iter_mut().zip(centres).zip(distances) {
                *number = ((centre + distance * (2.0 * random.unit() - 1.0)) as f32).to_le_bytes();
            }
        }
        Recipe::Uniform { low, high } => {
            numbers.fill_with(|| ((low + (high - low) * random.unit()) as f32).to_le_bytes());
        }
    }
    bytes
}

/// Below this many, a mean of zero at each position would leave too little of a filter: nothing where there is one input.
const MANY_INPUTS: u64 = 8;

/// One filter with a mean of zero at each position. The means are taken from whole numbers, so that they are exact.
fn filter(row: &mut [[u8; 4]], deviation: f64, positions: usize, random: &mut Xoshiro256PlusPlus) {
    let mut sums = vec![0; positions];
    for input in row.chunks_exact_mut(positions) {
        for (number, sum) in input.iter_mut().zip(&mut sums) {
            let value = bell(random);
            *sum += i64::from(value);
            *number = value.to_le_bytes();
        }
    }
    let (inputs, scale) = (row.len() as f64 / positions as f64, deviation / BELL_DEVIATION);
    let means: Vec<f64> = sums.iter().map(|sum| *sum as f64 / inputs).collect();
    for input in row.chunks_exact_mut(positions) {
        for (number, mean) in input.iter_mut().zip(&means) {
            *number = (((f64::from(i32::from_le_bytes(*number)) - mean) * scale) as f32).to_le_bytes();
        }
    }
}

/// All columns, row by row.
fn columns(numbers: &mut [[u8; 4]], deviations: &[f64], random: &mut Xoshiro256PlusPlus) {
    let width = deviations.len().max(1);
    let mut sums = vec![0; width];
    for row in numbers.chunks_exact_mut(width) {
        for (number, sum) in row.iter_mut().zip(&mut sums) {
            let value = bell(random);
            *sum += i64::from(value);
            *number = value.to_le_bytes();
        }
    }
    let rows = numbers.len() as f64 / width as f64;
    let scales: Vec<f64> = deviations.iter().map(|deviation| deviation / BELL_DEVIATION).collect();
    let offsets: Vec<f64> = sums.iter().zip(&scales).map(|(sum, scale)| *sum as f64 / rows * scale).collect();
    for row in numbers.chunks_exact_mut(width) {
        for ((number, scale), offset) in row.iter_mut().zip(&scales).zip(&offsets) {
            *number = ((f64::from(i32::from_le_bytes(*number)) * scale - offset) as f32).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(recipe: &Recipe, shape: &[u64], most_rows: usize) -> Vec<f64> {
        let bytes = draw(recipe, shape, 7, most_rows);
        bytes.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (mean, (squares / values.len() as f64).sqrt())
    }

    #[test]
    fn filters_and_columns_have_no_mean_and_the_deviation_that_was_asked_for() {
        let deviations = [0.5, 2.0, 0.01];
        let filters = numbers(&Recipe::Filters { deviations: &deviations }, &[3, 50, 10, 10], usize::MAX);
        let columns = numbers(&Recipe::Columns { deviations: &deviations }, &[5000, 3], usize::MAX);
        for (index, expected) in deviations.iter().enumerate() {
            let filter = &filters[index * 5000..][..5000];
            let column: Vec<f64> = columns.iter().skip(index).step_by(3).copied().collect();
            for (mean, deviation) in [mean_and_deviation(filter), mean_and_deviation(&column)] {
                assert!(mean.abs() < 1e-6 * expected, "{mean}");
                assert!((deviation / expected - 1.0).abs() < 0.04, "{deviation}");
            }
        }
    }

    #[test]
    fn a_filter_over_many_channels_has_no_mean_at_any_position() {
        let at = |inputs: u64, position: usize| {
            let filter = numbers(&Recipe::Filters { deviations: &[1.0] }, &[1, inputs, 3, 3], usize::MAX);
            filter.iter().skip(position).step_by(9).sum::<f64>()
        };
        assert!((0..9).all(|position| at(MANY_INPUTS, position).abs() < 1e-6));
        assert!((0..9).all(|position| at(1, position).abs() > 1e-3));
        assert!((0..9).map(|position| at(1, position)).sum::<f64>().abs() < 1e-6);
    }

    #[test]
    fn other_numbers_are_where_they_should_be() {
        let rows = numbers(&Recipe::Rows { deviations: &[1.0, 3.0] }, &[2, 4000], usize::MAX);
        assert!((mean_and_deviation(&rows[4000..]).1 - 3.0).abs() < 0.1);
        let uniform = numbers(&Recipe::Uniform { low: -1.0, high: 3.0 }, &[1000], usize::MAX);
        assert!(uniform.iter().all(|value| (-1.0..=3.0).contains(value)));
        let about = Recipe::About { centres: &[5.0, -5.0], distances: &[0.5, 0.0] };
        let about = numbers(&about, &[2], usize::MAX);
        assert!((4.5..=5.5).contains(&about[0]) && about[1] == -5.0);
        let (mean, deviation) = mean_and_deviation(&channel_scales(5000, 3));
        assert!((mean - 1.0).abs() < 0.02 && (deviation - 0.3).abs() < 0.02, "{mean} {deviation}");
    }

    #[test]
    fn the_first_rows_are_those_of_the_whole() {
        let filters = Recipe::Filters { deviations: &[1.0; 6] };
        let (whole, first) = (numbers(&filters, &[6, 4], usize::MAX), numbers(&filters, &[6, 4], 2));
        assert_eq!(whole[..8], first);
        assert_eq!(numbers(&filters, &[6, 4], 0), [0.0; 0]);
        assert_eq!(numbers(&filters, &[], usize::MAX).len(), 1);
        assert_eq!(numbers(&filters, &[0, 4], usize::MAX).len(), 0);
    }
}
