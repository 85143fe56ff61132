//! Numbers for pages that are committed: as few digits as a decision takes, so that a rerun with nothing changed hardly
//! alters a line.
//!
//! Two significant digits, three of what begins with 1 (1138 and 1170 are no tenth apart), and never more than what every
//! other output shows with the interval. A ratio whose interval is wide is printed with it, as everywhere, so that
//! quotients of what is shown lie in it; one above 1 is never rounded up.

use super::comparison::one_sided;
use super::{Column, fixed, ratio, significant_decimals, verdict_of};
use base::metric::Unit;
use judge::results::Comparison;
use statistics::interval::{Estimate, Interval};

/// An interval wider than this, relative to the ratio, is said.
pub(crate) const WIDE: f64 = 0.05;

impl Column {
    /// `18.4 ms`, of 18.42 ms ± 0.11.
    pub fn rounded(&self, estimate: &Estimate) -> String {
        let scaled = estimate.value / self.scale.factor;
        let most = rounded_decimals(scaled);
        let decimals = self.decimals_of(estimate).map_or(most, |shown| shown.min(most));
        self.scale.joined(&fixed(scaled, decimals))
    }
}

/// `95 us`, of 95.5 us ± 20: an amount that an answer claims, with the digits of its interval, from `fewest` to three, and
/// never rounded up.
pub(crate) fn at_least(unit: Unit, estimate: &Estimate, fewest: i32) -> String {
    let column = Column::fit(unit, [estimate]);
    let scaled = estimate.value / column.scale.factor;
    let [fewest, most] = [fewest, 3].map(|digits| significant_decimals(scaled, digits));
    let shown = column.decimals_of(estimate).unwrap_or_else(|| rounded_decimals(scaled));
    let decimals = shown.clamp(fewest, most);
    column.scale.joined(&fixed(cut(scaled, decimals), decimals))
}

/// `2.3x`, of 2.32x [2.29, 2.35]; `2.7x [1.69, 4.44]`, whose interval is wide. It lies in its interval, and what is not one is
/// not shown as one.
pub(crate) fn rounded_ratio(value: f64, interval: Option<Interval>) -> String {
    if interval.is_some_and(|it| (it.high - value).max(value - it.low) > WIDE * value) {
        return ratio(value, interval);
    }
    let text = |decimals: i32| fixed(if value > 1.0 { cut(value, decimals) } else { value }, decimals);
    let says_it = |text: &String| {
        let shown: f64 = text.parse().unwrap_or(f64::NAN);
        let is_within = interval.is_none_or(|it| (it.low..=it.high).contains(&shown));
        is_within && (shown != 1.0 || value == 1.0)
    };
    let first = rounded_decimals(value);
    let more = || (first..=MOST_DECIMALS).map(text).find(says_it);
    format!("{}x", more().unwrap_or_else(|| text(first)))
}

/// The same without the interval, where that stands elsewhere; what is no difference to two decimals.
pub(crate) fn ratio_alone(row: &Comparison) -> String {
    if !row.verdict.is_difference() {
        return ratio(row.ratio, None);
    }
    let text = rounded_ratio(row.ratio, row.interval());
    text.split_once(' ').map_or_else(|| text.clone(), |(value, _)| value.to_owned())
}

/// `2.3x faster`, `equivalent`, `undecided: quick look`.
pub(crate) fn rounded_verdict(row: &Comparison) -> String {
    let word = verdict_of(row);
    let ratio = || one_sided(row).unwrap_or_else(|| rounded_ratio(row.ratio, row.interval()));
    match row.withheld() {
        Some(withheld) if withheld.hides_the_value() => format!("withheld: {}", withheld.words()),
        Some(withheld) => format!("{word}: {}", withheld.words()),
        None if row.low.is_none() => "not judged".to_owned(),
        None if row.verdict.is_difference() => format!("{} {word}", ratio()),
        None => word,
    }
}

/// `39 MiB`, of 41,893,000 bytes: what an answer claims.
pub(crate) fn rounded_bytes(bytes: f64) -> String {
    let estimate = Estimate { value: bytes, interval: None, n: 1, confidence: 0.95 };
    at_least(Unit::Bytes, &estimate, 2)
}

/// No margin is so small that a ratio beyond it needs more.
const MOST_DECIMALS: i32 = 6;

/// Decimals with which a value shows two significant digits, or three where it begins with 1.
fn rounded_decimals(value: f64) -> i32 {
    let two = significant_decimals(value, 2);
    let begins_with_one = value.abs() * 10_f64.powi(two) < 19.5;
    if begins_with_one { two + 1 } else { two }
}

/// The value with so many decimals, never rounded up; what is one step up to rounding errors is that step.
fn cut(value: f64, decimals: i32) -> f64 {
    let step = 10_f64.powi(-decimals);
    (value / step + 1e-9).floor() * step
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
    fn no_digit_is_shown_that_the_interval_does_not_support() {
        assert_eq!(shown(690_000.0, 100_000.0), "690 us");
        assert_eq!(shown(27_000.0, 4_000.0), "27 us");
        assert_eq!(shown(65_800.0, 8_400.0), "66 us");
        assert_eq!(shown(1_419_000.0, 74_000.0), "1.42 ms");
        assert_eq!(shown(65_800.0, 65_000.0), "70 us");
    }

    /// Of 1330 us and 450 us one page said 1000 us and 500 us, and three times as fast.
    #[test]
    fn a_page_that_is_committed_shows_what_the_others_show() {
        let estimate = |value, half_width| {
            let interval = Some(Interval::around(value, half_width));
            Estimate { value, interval, n: 10, confidence: 0.95 }
        };
        let cells = [estimate(1_330_000.0, 620_000.0), estimate(450_000.0, 80_000.0)];
        let column = Column::fit(Unit::Nanoseconds, &cells);
        let both = cells.map(|cell| (column.rounded(&cell), column.value_with_unit(&cell)));
        assert_eq!(both[0], ("1330 us".to_owned(), "1330 us ± 620".to_owned()));
        assert_eq!(both[1], ("450 us".to_owned(), "450 us ± 80".to_owned()));
        let interval = Some(Interval { low: 2.2, high: 3.9 });
        assert_eq!(rounded_ratio(1_330.0 / 450.0, interval), "2.96x [2.20, 3.90]");
    }

    #[test]
    fn ratios_are_rounded_alike_and_never_up() {
        let ratio = |value, low, high| rounded_ratio(value, Some(Interval { low, high }));
        assert_eq!(ratio(2.32, 2.29, 2.35), "2.3x");
        assert_eq!(ratio(2.97, 2.87, 3.05), "2.9x");
        assert_eq!(ratio(2.97, 2.95, 2.99), "2.97x", "2.9 is not within");
        assert_eq!(ratio(2.02, 1.6, 2.54), "2.02x [1.60, 2.54]");
        assert_eq!(ratio(0.57, 0.56, 0.58), "0.57x");
        assert_eq!(ratio(1.152, 1.14, 1.16), "1.15x");
        assert_eq!(ratio(1.289, 1.19, 1.39), "1.29x [1.19, 1.39]");
        assert_eq!(rounded_ratio(1.0, None), "1.00x");
    }

    #[test]
    fn what_an_answer_claims_is_no_more_than_what_was_found() {
        let claimed = |value: f64, half_width: f64| {
            let interval = Some(Interval::around(value, half_width));
            at_least(Unit::Nanoseconds, &Estimate { value, interval, n: 10, confidence: 0.95 }, 2)
        };
        assert_eq!(claimed(3_493_700.0, 20_000.0), "3.49 ms");
        assert_eq!(claimed(95_900.0, 20_000.0), "95 us");
        assert_eq!(claimed(95_900.0, 300.0), "95.9 us");
    }

    #[test]
    fn floors_are_rounded_up() {
        assert_eq!([0.039, 0.012, 0.15, 0.0701, 0.5].map(noise_floor), ["5 %", "1.5 %", "15 %", "10 %", "50 %"]);
    }

    proptest! {
        /// Rounding adds no more than the noise does, or than 2.5 %.
        #[test]
        fn what_is_shown_is_near(value in 1e-3_f64..1e6, relative in 0.0_f64..0.9) {
            let interval = Some(Interval::around(value, value * relative));
            let estimate = Estimate { value, interval, n: 10, confidence: 0.95 };
            let shown = Column::fit(Unit::Number, [&estimate]).rounded(&estimate).parse().unwrap_or(f64::NAN);
            prop_assert!((shown - value).abs() <= value * relative.max(0.026) * 1.0001, "{shown} of {value}");
        }

        /// A verdict must not be shown with a ratio that denies it.
        #[test]
        fn a_ratio_apart_from_one_is_not_shown_as_one(distance in 1.0_f64..50.0, inverse: bool, margin in 0.0001_f64..0.5) {
            // The interval lies beyond the margin.
            let value = 1.0 + margin * (1.0 + distance);
            let (value, half_width) = if inverse { (1.0 / value, 1.0 / (1.0 + margin) - 1.0 / value) } else { (value, margin * distance) };
            let shown = rounded_ratio(value, Some(Interval::around(value, half_width.abs())));
            let first = shown.split('x').next().and_then(|shown| shown.parse::<f64>().ok());
            prop_assert!(first.is_some_and(|shown| shown != 1.0), "{shown} of {value}");
        }
    }
}
