//! How many digits are stored of a number.

/// Significant digits of what is measured: an error of at most 0.005 %, a tenth of what the quietest machine repeats.
const DIGITS: i32 = 5;

/// Digits of what is the same in every run and no whole number.
const EXACT: i32 = 9;

/// What is measured, to as many digits as mean anything.
pub(super) fn rounded(number: f64) -> f64 {
    to_digits(number, DIGITS)
}

/// A value that is the same in every run: bytes as a whole number, shares of items in nine digits.
pub(super) fn as_fact(number: f64) -> f64 {
    if number.fract() == 0.0 { number } else { to_digits(number, EXACT) }
}

pub(super) fn to_digits(number: f64, digits: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    // Through the decimal form, so that what is written is short.
    format!("{number:.*e}", (digits - 1).max(0) as usize).parse().unwrap_or(number)
}
