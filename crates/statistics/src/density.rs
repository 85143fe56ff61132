//! The shape of a sample as a smooth curve, and how many peaks it has (method 5.3).
//!
//! Input: a sample in any order; a run of more than 2000 samples is first reduced by
//! `quantile::representatives_sorted`. Output: the curve on a grid, or its modes with their masses.
//! Deliberately absent: tests of multimodality; a mode here is a description.

use serde::{Deserialize, Serialize};

use super::moments::standard_deviation;
use super::quantile::{quantile_sorted, sorted};

/// Grid points on which modes are looked for.
const MODE_GRID: usize = 512;

/// The curve reaches this many bandwidths beyond the sample.
const MARGIN_BANDWIDTHS: f64 = 3.0;

/// Further off than this many bandwidths a value adds less to the curve than rounding does.
const REACH_BANDWIDTHS: f64 = 9.0;

/// A peak below this fraction of the highest is no mode.
const SMALLEST_PEAK: f64 = 0.05;

/// Two peaks whose valley is higher than this fraction of the lower one are one mode.
const DEEPEST_JOINED_VALLEY: f64 = 0.8;

/// Fewer values than this cannot show more than one mode.
pub const MULTIMODAL_MINIMUM: usize = 50;

/// One peak of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Where the peak is, in the unit of the values.
    pub position: f64,
    /// Fraction of the values between the valleys to its sides.
    pub mass: f64,
}

/// The modes of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modality {
    /// Number of values.
    pub n: usize,
    /// Bandwidth of the curve, in the unit of the values.
    pub bandwidth: f64,
    /// At least one mode, in rising order of position.
    pub modes: Vec<Mode>,
}

impl Modality {
    /// Whether the sample is large enough to say so and has more than one mode.
    pub fn is_multimodal(&self) -> bool {
        self.n >= MULTIMODAL_MINIMUM && self.modes.len() > 1
    }
}

/// Silverman's bandwidth for a sorted sample: 0.9 min(sd, IQR / 1.34) n^(-1/5), from the standard deviation alone when
/// the quartiles coincide, as R does. `None` without spread.
pub(crate) fn silverman_bandwidth_sorted(sorted: &[f64]) -> Option<f64> {
    let deviation = standard_deviation(sorted).filter(|deviation| *deviation > 0.0 && deviation.is_finite())?;
    let range = (quantile_sorted(sorted, 0.75)? - quantile_sorted(sorted, 0.25)?) / 1.34;
    let spread = if range > 0.0 { range.min(deviation) } else { deviation };
    Some(0.9 * spread * (sorted.len() as f64).powf(-0.2))
}

/// The Gaussian kernel density as (value, density) on `grid_points` points from three bandwidths below the smallest to
/// three above the largest value. Empty without spread, with fewer than two grid points, or for values that are not
/// finite.
pub fn density(values: &[f64], grid_points: usize) -> Vec<(f64, f64)> {
    let ordered = sorted(values);
    silverman_bandwidth_sorted(&ordered).map_or_else(Vec::new, |bandwidth| curve(&ordered, bandwidth, grid_points))
}

/// The modes of the density. `None` without spread or for values that are not finite.
pub(crate) fn modality(values: &[f64]) -> Option<Modality> {
    let ordered = sorted(values);
    let bandwidth = silverman_bandwidth_sorted(&ordered)?;
    let curve = curve(&ordered, bandwidth, MODE_GRID);
    let peaks = joined_peaks(&curve);
    let valleys = peaks.windows(2).map(|pair| curve[valley(&curve, pair[0], pair[1])].0);
    let cuts: Vec<usize> = valleys.map(|cut| ordered.partition_point(|&value| value <= cut)).collect();
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([ordered.len()]);
    let mass = |(start, end): (usize, usize)| (end - start) as f64 / ordered.len() as f64;
    let modes = peaks.iter().zip(starts.zip(ends));
    let modes = modes.map(|(&peak, part)| Mode { position: curve[peak].0, mass: mass(part) }).collect();
    Some(Modality { n: ordered.len(), bandwidth, modes })
}

/// The density of a sorted sample with spread.
fn curve(ordered: &[f64], bandwidth: f64, grid_points: usize) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (ordered.first(), ordered.last()) else { return Vec::new() };
    if grid_points < 2 {
        return Vec::new();
    }
    let start = first - MARGIN_BANDWIDTHS * bandwidth;
    let step = (last + MARGIN_BANDWIDTHS * bandwidth - start) / (grid_points - 1) as f64;
    let height = 1.0 / (ordered.len() as f64 * bandwidth * std::f64::consts::TAU.sqrt());
    let reach = REACH_BANDWIDTHS * bandwidth;
    // The values within reach of a grid point are a window that only moves up.
    let (mut from, mut to) = (0, 0);
    let at = |index: usize| {
        let point = start + index as f64 * step;
        while ordered.get(to).is_some_and(|&value| value <= point + reach) {
            to += 1;
        }
        while from < to && ordered[from] < point - reach {
            from += 1;
        }
        let kernels = ordered[from..to].iter().map(|value| (-0.5 * ((point - value) / bandwidth).powi(2)).exp());
        (point, height * kernels.sum::<f64>())
    };
    (0..grid_points).map(at).collect()
}

/// Indices of the peaks that are high enough, after joining those that no valley separates.
fn joined_peaks(curve: &[(f64, f64)]) -> Vec<usize> {
    let height = |index: usize| curve[index].1;
    let highest = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let is_peak = |&index: &usize| height(index) > height(index - 1) && height(index) >= height(index + 1);
    let interior = 1..curve.len().saturating_sub(1);
    let mut peaks: Vec<usize> =
        interior.filter(is_peak).filter(|&index| height(index) >= SMALLEST_PEAK * highest).collect();
    loop {
        let depths = peaks.windows(2).enumerate().map(|(left, pair)| {
            let lower = height(pair[0]).min(height(pair[1]));
            (left, height(valley(curve, pair[0], pair[1])) / lower)
        });
        let shallowest = depths.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((left, _)) = shallowest.filter(|(_, depth)| *depth > DEEPEST_JOINED_VALLEY) else { return peaks };
        let lower = if height(peaks[left]) < height(peaks[left + 1]) { left } else { left + 1 };
        peaks.remove(lower);
    }
}

/// Index of the lowest point between two peaks, the peaks included.
fn valley(curve: &[(f64, f64)], left: usize, right: usize) -> usize {
    (left..=right).min_by(|&a, &b| curve[a].1.total_cmp(&curve[b].1)).unwrap_or(left)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, count, number, numbers, one_sample};
    use proptest::prelude::*;

    #[test]
    fn reference_modes_hold() {
        for (name, data, expected) in one_sample() {
            let case = &expected["kde_modes"];
            let found = modality(&data).unwrap();
            assert_close(found.bandwidth, number(&case["bandwidth"]), 1e-12);
            assert_eq!(found.modes.len(), count(&case["modes"]), "{name}");
            for (mode, position) in found.modes.iter().zip(numbers(&case["positions"])) {
                assert_close(mode.position, position, 1e-12);
            }
            assert_eq!(found.is_multimodal(), name == "bimodal");
        }
    }

    #[test]
    fn masses_are_fractions_of_the_sample() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<f64> =
            (0..400).map(|index| if index % 4 == 0 { 20.0 } else { 10.0 } + generator.normal()).collect();
        let found = modality(&values).unwrap();
        let masses: Vec<f64> = found.modes.iter().map(|mode| mode.mass).collect();
        assert_eq!(masses, [0.75, 0.25]);
        assert!((found.modes[0].position - 10.0).abs() < 0.5);
    }

    #[test]
    fn samples_without_spread_have_no_density() {
        for values in [&[][..], &[1.0], &[2.0; 9], &[1.0, f64::NAN, 3.0], &[1.0, f64::INFINITY]] {
            assert_eq!(modality(values), None);
            assert!(density(values, 64).is_empty());
        }
        assert!(density(&[1.0, 2.0], 1).is_empty());
        // Coinciding quartiles leave the standard deviation.
        assert!(modality(&[1.0, 1.0, 1.0, 1.0, 1.0, 5.0]).is_some());
    }

    proptest! {
        #[test]
        fn density_integrates_to_one(values in prop::collection::vec(0.0_f64..10.0, 5..200)) {
            let curve = density(&values, 2000);
            let step = curve[1].0 - curve[0].0;
            let area: f64 = curve.iter().map(|point| point.1 * step).sum();
            // Three bandwidths beyond the extremes lose at most 0.14% on each side.
            prop_assert!((0.997..1.0001).contains(&area), "{}", area);
        }

        #[test]
        fn modes_scale_and_masses_add_up(values in prop::collection::vec(1.0_f64..10.0, 5..100)) {
            let found = modality(&values).unwrap();
            let total: f64 = found.modes.iter().map(|mode| mode.mass).sum();
            prop_assert!((total - 1.0).abs() < 1e-12);
            // A power of two scales without rounding.
            let scaled = modality(&values.iter().map(|value| value * 1024.0).collect::<Vec<_>>()).unwrap();
            let positions: Vec<f64> = scaled.modes.iter().map(|mode| mode.position / 1024.0).collect();
            prop_assert_eq!(positions, found.modes.iter().map(|mode| mode.position).collect::<Vec<_>>());
        }
    }
}
