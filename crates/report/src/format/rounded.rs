//! Numbers for pages that are committed: as few digits as a decision takes, so that a rerun with nothing changed hardly
//! alters a line.
//!
//! Two significant digits, three of what begins with 1 (1138 and 1170 are no tenth apart); one less where the interval is so wide that this adds no more
//! to the error than half its width. What is shown is a rounding of what every other output shows with its interval.

use super::{Column, fixed, shown_interval, significant_decimals};
use base::metric::Unit;
use statistics::interval::{Estimate, Interval};

/// Half widths from so many steps on take a digit away: rounding to the next one errs by five steps at most.
const WIDE: f64 = 5.0;

impl Column {
    /// `18.4 ms`, of 18.42 ms ± 0.11.
    pub fn rounded(&self, estimate: &Estimate) -> String {
        let half_width = shown_interval(estimate).map_or(0.0, |interval| interval.half_width());
        let [value, half_width] = [estimate.value, half_width].map(|number| number / self.scale.factor);
        let text = rounded(value, half_width);
        self.scale.joined(&text)
    }
}

/// `2.3x`, of 2.32x [2.29, 2.35]; what is not one is not shown as one.
pub(crate) fn rounded_ratio(value: f64, interval: Option<Interval>) -> String {
    let mut text = rounded(value, interval.map_or(0.0, |interval| interval.half_width()));
    for decimals in 1..=MOST_DECIMALS {
        if value == 1.0 || text.parse() != Ok(1.0) {
            break;
        }
        text = fixed(value, decimals);
    }
    format!("{text}x")
}

/// `40 MiB`, of 41,893,000 bytes.
pub(crate) fn rounded_bytes(bytes: f64) -> String {
    let estimate = Estimate { value: bytes, interval: None, n: 1, confidence: 0.95 };
    Column::fit(Unit::Bytes, [&estimate]).rounded(&estimate)
}

/// No margin is so small that a ratio beyond it needs more.
const MOST_DECIMALS: i32 = 6;

fn rounded(value: f64, half_width: f64) -> String {
    let two = significant_decimals(value, 2);
    let begins_with_one = value.abs() * 10_f64.powi(two) < 19.5;
    let mut decimals = if begins_with_one { two + 1 } else { two };
    // At least one digit is left.
    let least = significant_decimals(value, 1);
    while half_width * 10_f64.powi(decimals) >= WIDE && decimals > least {
        decimals -= 1;
    }
    fixed(value, decimals)
}

/// Effects that a noise floor is rounded up to, times a power of ten.
const FLOORS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// Above so many percent only that is said: the number is as uncertain as all else.
const MOST: f64 = 100.0;

/// `5 %`, of an effect of 4.1 %: the smallest difference that is likely to be found, rounded up.
pub(crate) fn noise_floor(effect: f64) -> String {
    let percent = effect * 100.0;
    if percent > MOST {
        return format!("over {MOST} %");
    }
    if percent.is_nan() || percent <= 0.0 {
        return super::percent(effect);
    }
    let unit = 10_f64.powi(percent.log10().floor() as i32);
    // What is a floor up to rounding errors is that floor.
    let reaches = |floor: &f64| floor * unit >= percent * (1.0 - 1e-9);
    let floor = FLOORS.into_iter().find(reaches).unwrap_or(10.0);
    super::percent(floor * unit / 100.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(value: f64, half_width: f64) -> String {
        let interval = Some(Interval::around(value, half_width));
        let estimate = Estimate { value, interval, n: 10, confidence: 0.95 };
        Column::fit(Unit::Nanoseconds, [&estimate]).rounded(&estimate)
    }

    #[test]
    fn two_digits_are_shown_and_three_from_one() {
        assert_eq!(shown(18_420_000.0, 110_000.0), "18.4 ms");
        assert_eq!(shown(79_310_000.0, 110_000.0), "79 ms");
        assert_eq!(shown(271_234_000.0, 2_000_000.0), "270 ms");
        assert_eq!(shown(1_419_000.0, 7_000.0), "1.42 ms");
        assert_eq!(shown(19_960.0, 10.0), "20 us");
    }

    #[test]
    fn wide_intervals_take_a_digit_away() {
        assert_eq!(shown(690_000.0, 100_000.0), "700 us");
        assert_eq!(shown(27_000.0, 4_000.0), "27 us");
        assert_eq!(shown(65_800.0, 8_400.0), "70 us");
        assert_eq!(shown(1_419_000.0, 74_000.0), "1.4 ms");
        assert_eq!(shown(65_800.0, 65_000.0), "70 us");
    }

    #[test]
    fn ratios_are_rounded_alike() {
        let ratio = |value, low, high| rounded_ratio(value, Some(Interval { low, high }));
        assert_eq!(ratio(2.32, 2.29, 2.35), "2.3x");
        assert_eq!(ratio(2.02, 1.6, 2.54), "2.0x");
        assert_eq!(ratio(0.57, 0.56, 0.58), "0.57x");
        assert_eq!(ratio(1.152, 1.14, 1.16), "1.15x");
        assert_eq!(ratio(1.289, 1.19, 1.39), "1.3x");
        assert_eq!(rounded_ratio(1.0, None), "1.00x");
    }

    #[test]
    fn floors_are_rounded_up() {
        assert_eq!([0.039, 0.012, 0.15, 0.0701, 0.5].map(noise_floor), ["5 %", "1.5 %", "15 %", "10 %", "50 %"]);
    }

    proptest! {
        /// Rounding adds no more than the noise does, or than 2.5 %.
        #[test]
        fn what_is_shown_is_near(value in 1e-3_f64..1e6, relative in 0.0_f64..0.9) {
            let shown: f64 = rounded(value, value * relative).parse().unwrap_or(f64::NAN);
            prop_assert!((shown - value).abs() <= value * relative.max(0.026) * 1.0001, "{shown} of {value}");
        }

        /// A verdict must not be shown with a ratio that denies it.
        #[test]
        fn a_ratio_apart_from_one_is_not_shown_as_one(distance in 1.0_f64..50.0, inverse: bool, margin in 0.0001_f64..0.5) {
            // The interval lies beyond the margin.
            let value = 1.0 + margin * (1.0 + distance);
            let (value, half_width) = if inverse { (1.0 / value, 1.0 / (1.0 + margin) - 1.0 / value) } else { (value, margin * distance) };
            let shown = rounded_ratio(value, Some(Interval::around(value, half_width.abs())));
            prop_assert!(shown.trim_end_matches('x').parse::<f64>().is_ok_and(|shown| shown != 1.0), "{shown} of {value}");
        }
    }
}
