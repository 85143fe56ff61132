//! The products of a series with itself at every lag, by a fast Fourier transform.
//!
//! Input: a series. Output: for each lag k the sum of x\[i\] x\[i + k\], in O(n log n) where the definition takes O(n^2).
//! Deliberately absent: everything else that a transform is good for; a radix-2 transform of this size is short enough
//! not to depend on a crate.

/// For every lag below the length of the series, the sum of the products of values that far apart.
pub(super) fn lag_products(values: &[f64]) -> Vec<f64> {
    // Padding to twice the length keeps the end of the series from wrapping around to its start.
    let size = (2 * values.len()).next_power_of_two();
    let mut real = vec![0.0; size];
    real[..values.len()].copy_from_slice(values);
    let mut imaginary = vec![0.0; size];
    transform(&mut real, &mut imaginary);
    for (real, imaginary) in real.iter_mut().zip(&mut imaginary) {
        *real = *real * *real + *imaginary * *imaginary;
        *imaginary = 0.0;
    }
    // The spectrum is real and even, so that the forward transform is the inverse one up to the size.
    transform(&mut real, &mut imaginary);
    real.truncate(values.len());
    real.iter().map(|product| product / size as f64).collect()
}

/// The transform of a complex series in place; its length is a power of two (Cooley and Tukey 1965).
fn transform(real: &mut [f64], imaginary: &mut [f64]) {
    let size = real.len();
    if size < 2 {
        return;
    }
    let unused_bits = usize::BITS - size.trailing_zeros();
    for index in 0..size {
        let reversed = index.reverse_bits() >> unused_bits;
        if index < reversed {
            real.swap(index, reversed);
            imaginary.swap(index, reversed);
        }
    }
    let mut half = 1;
    while half < size {
        // Each factor from its own angle: a product of factors would gather rounding errors.
        let factors: Vec<(f64, f64)> =
            (0..half).map(|index| (-std::f64::consts::PI * index as f64 / half as f64).sin_cos()).collect();
        for (real, imaginary) in real.chunks_exact_mut(2 * half).zip(imaginary.chunks_exact_mut(2 * half)) {
            butterflies(real, imaginary, &factors);
        }
        half *= 2;
    }
}

/// Combines the transforms of the even and the odd half of a chunk; `factors` are (sine, cosine).
fn butterflies(real: &mut [f64], imaginary: &mut [f64], factors: &[(f64, f64)]) {
    let (even_real, odd_real) = real.split_at_mut(factors.len());
    let (even_imaginary, odd_imaginary) = imaginary.split_at_mut(factors.len());
    let even = even_real.iter_mut().zip(even_imaginary);
    let odd = odd_real.iter_mut().zip(odd_imaginary);
    for (((even_real, even_imaginary), (odd_real, odd_imaginary)), (sine, cosine)) in even.zip(odd).zip(factors) {
        let turned_real = *odd_real * cosine - *odd_imaginary * sine;
        let turned_imaginary = *odd_real * sine + *odd_imaginary * cosine;
        (*odd_real, *odd_imaginary) = (*even_real - turned_real, *even_imaginary - turned_imaginary);
        (*even_real, *even_imaginary) = (*even_real + turned_real, *even_imaginary + turned_imaginary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_definition(values: &[f64]) -> Vec<f64> {
        (0..values.len()).map(|lag| values.iter().zip(&values[lag..]).map(|(x, y)| x * y).sum()).collect()
    }

    #[test]
    fn small_series_are_exact() {
        assert_eq!(lag_products(&[]), Vec::<f64>::new());
        assert_eq!(lag_products(&[3.0]), vec![9.0]);
        assert_eq!(lag_products(&[1.0, 2.0]), vec![5.0, 2.0]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(values in prop::collection::vec(-1.0_f64..1.0, 1..700)) {
            for (fast, slow) in lag_products(&values).into_iter().zip(by_definition(&values)) {
                prop_assert!((fast - slow).abs() < 1e-12 * values.len() as f64);
            }
        }
    }
}
