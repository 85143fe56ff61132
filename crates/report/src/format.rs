//! Numbers as texts: one unit a column, and no digit that the interval does not support (method 12.1).
//!
//! Input: stored values in base units. Output: texts that the terminal, Markdown and HTML share. Pure, and independent of
//! the locale. Deliberately absent: escaping and alignment.

mod bound;
mod comparison;
mod phrases;
mod rounded;

pub use base::wording::{count, list, some};
pub use bound::bound;
pub(crate) use bound::bound_in_short;
pub use comparison::{change, difference, is_beyond, judged_ratio, p_value, ratio, speedup, verdict_of};
pub(crate) use comparison::{ratio_at_least, signed};
pub use phrases::{amount, batched, bytes, confidence, magnitude, percent, score};
pub(crate) use phrases::{better_word, is_speed, tone, verdict_word};

pub(crate) use rounded::{WIDE, at_least, noise_floor, ratio_alone, rounded_bytes, rounded_ratio, rounded_verdict};

use std::collections::BTreeSet;

use base::metric::Unit;
use judge::results::LEAST_RUNS;
use statistics::interval::{Estimate, Interval};

/// What a column shows of a unit: the text, and what a stored value is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// `us`, `MiB`, `k` ...; empty for plain numbers.
    pub unit: &'static str,
    /// One shown unit in stored units.
    pub factor: f64,
}

impl Scale {
    /// `18.4 ms`, `120/s`, `1.5`.
    pub fn joined(self, value: &str) -> String {
        match self.unit {
            "" => value.to_owned(),
            "/s" => format!("{value}/s"),
            unit => format!("{value} {unit}"),
        }
    }
}

const NANOSECONDS: &[Scale] = &[
    Scale { unit: "ns", factor: 1.0 },
    Scale { unit: "us", factor: 1e3 },
    Scale { unit: "ms", factor: 1e6 },
    Scale { unit: "s", factor: 1e9 },
];
const BYTES: &[Scale] = &[
    Scale { unit: "B", factor: 1.0 },
    Scale { unit: "KiB", factor: 1024.0 },
    Scale { unit: "MiB", factor: 1_048_576.0 },
    Scale { unit: "GiB", factor: 1_073_741_824.0 },
];
/// Rates grow large: five digits before the point are still read at a glance, more are not.
const PER_SECOND: &[Scale] =
    &[Scale { unit: "/s", factor: 1.0 }, Scale { unit: "k/s", factor: 1e3 }, Scale { unit: "M/s", factor: 1e6 }];
/// One inference takes parts of a joule.
const JOULES: &[Scale] =
    &[Scale { unit: "uJ", factor: 1e-6 }, Scale { unit: "mJ", factor: 1e-3 }, Scale { unit: "J", factor: 1.0 }];
const WATTS: &[Scale] = &[Scale { unit: "W", factor: 1.0 }];
const CELSIUS: &[Scale] = &[Scale { unit: "°C", factor: 1.0 }];
const PLAIN: &[Scale] = &[Scale { unit: "", factor: 1.0 }];
const PERCENT: &[Scale] = &[Scale { unit: "%", factor: 0.01 }];

/// The unit in which values of one column are best read together: their middle order of magnitude lies at 1 or above.
pub fn scale(unit: Unit, values: impl IntoIterator<Item = f64>) -> Scale {
    let (scales, least_shown) = match unit {
        Unit::Nanoseconds => (NANOSECONDS, 1.0),
        Unit::Bytes => (BYTES, 1.0),
        Unit::PerSecond => (PER_SECOND, 100.0),
        Unit::Joules => (JOULES, 1.0),
        Unit::Watts => (WATTS, 1.0),
        Unit::Celsius => (CELSIUS, 1.0),
        Unit::Share => (PERCENT, 0.0),
        Unit::Ratio | Unit::Count | Unit::Number => (PLAIN, 1.0),
        Unit::Named(unit) => return Scale { unit, factor: 1.0 },
    };
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for value in values.into_iter().map(f64::abs).filter(|value| value.is_finite() && *value > 0.0) {
        (low, high) = (low.min(value), high.max(value));
    }
    let middle = if low.is_finite() { (low * high).sqrt() } else { 0.0 };
    let fitting = scales.iter().rev().find(|scale| middle >= scale.factor * least_shown);
    *fitting.unwrap_or(&scales[0])
}

/// One column of estimates: a unit for all, and the same decimals wherever the intervals allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The unit.
    pub scale: Scale,
    decimals: Option<i32>,
}

/// Values without interval show this many significant digits: enough to see 1 %, which no single run supports.
const DIGITS_WITHOUT_INTERVAL: i32 = 3;

/// However narrow an interval is, more significant digits than these say nothing to a reader.
const MOST_DIGITS: i32 = 6;

impl Column {
    /// A column for these estimates, in stored units.
    pub fn fit<'a>(unit: Unit, estimates: impl IntoIterator<Item = &'a Estimate>) -> Self {
        let estimates: Vec<&Estimate> = estimates.into_iter().collect();
        let scale = scale(unit, estimates.iter().map(|estimate| estimate.value));
        Column::fit_to(scale, estimates)
    }

    /// A column in a unit that other columns have too.
    pub(crate) fn fit_to<'a>(scale: Scale, estimates: impl IntoIterator<Item = &'a Estimate>) -> Self {
        let choices: Vec<Decimals> =
            estimates.into_iter().filter_map(|estimate| Decimals::of(estimate, scale)).collect();
        let fits = |decimals: i32| choices.iter().filter(|choice| choice.allows(decimals)).count();
        let wishes = |decimals: i32| choices.iter().filter(|choice| choice.preferred == decimals).count();
        let candidates: BTreeSet<i32> = choices.iter().flat_map(|choice| [choice.fewest, choice.most]).collect();
        let decimals = candidates.into_iter().max_by_key(|decimals| (fits(*decimals), wishes(*decimals), -decimals));
        Column { scale, decimals }
    }

    /// `39.9 ± 0.2`; without interval, or below five runs, the value alone.
    pub fn value(&self, estimate: &Estimate) -> String {
        if let Some((value, ends)) = self.lopsided(estimate) {
            return format!("{value} {ends}");
        }
        let (value, half_width) = self.parts(estimate);
        half_width.map_or(value.clone(), |half_width| format!("{value} ± {half_width}"))
    }

    /// `17` and `[5, 57]`, of an interval whose ends lie at far different distances, as those of late shares do.
    fn lopsided(&self, estimate: &Estimate) -> Option<(String, String)> {
        const FAR: f64 = 1.3;
        let interval = shown_interval(estimate)?;
        let (below, above) = (estimate.value - interval.low, interval.high - estimate.value);
        let (nearer, further) = (below.min(above).max(0.0), below.max(above));
        (further > FAR * nearer).then_some(())?;
        // An end that is the estimate itself, as of a share of 0, has no digits of its own.
        let nearer = if nearer > 0.0 { nearer } else { further };
        let least = if interval.low > 0.0 { nearer.min(interval.low) } else { nearer };
        let decimals =
            significant_decimals(least / self.scale.factor, 1).max(significant_decimals(nearer / self.scale.factor, 1));
        let decimals = decimals.max(self.fewest_decimals(estimate));
        let [value, low, high] =
            [estimate.value, interval.low, interval.high].map(|number| fixed(number / self.scale.factor, decimals));
        Some((value, format!("[{low}, {high}]")))
    }

    /// `39.9 us ± 0.2`.
    pub(crate) fn value_with_unit(&self, estimate: &Estimate) -> String {
        if let Some((value, ends)) = self.lopsided(estimate) {
            return format!("{} {ends}", self.scale.joined(&value));
        }
        let (value, half_width) = self.parts(estimate);
        let value = self.scale.joined(&value);
        half_width.map_or(value.clone(), |half_width| format!("{value} ± {half_width}"))
    }

    /// A value without interval, such as a minimum.
    pub fn plain(&self, value: f64) -> String {
        let scaled = value / self.scale.factor;
        let decimals = significant_decimals(scaled, DIGITS_WITHOUT_INTERVAL);
        // The column's decimals, unless they would blur a value far smaller than its neighbours.
        let least = significant_decimals(scaled, DIGITS_WITHOUT_INTERVAL - 1);
        let column = self.decimals.map(|column| column.clamp(least.min(column), decimals + 1).max(least));
        fixed(scaled, column.unwrap_or(decimals))
    }

    /// `median, us`, or the title alone where there is no unit.
    pub fn heading(&self, title: &str) -> String {
        match self.scale.unit {
            "" | "/s" => title.to_owned(),
            "k/s" => format!("{title}, thousands"),
            "M/s" => format!("{title}, millions"),
            unit => format!("{title}, {unit}"),
        }
    }

    /// `39.9` and `0.2`.
    pub fn parts(&self, estimate: &Estimate) -> (String, Option<String>) {
        let scaled = estimate.value / self.scale.factor;
        match self.decimals_of(estimate) {
            None => (self.plain(estimate.value), None),
            Some(decimals) => {
                let half_width = shown_interval(estimate).map(|interval| interval.half_width() / self.scale.factor);
                // Runs that all gave the same value have an interval of no width, which no digit should blur.
                let text =
                    |half_width: f64| if half_width == 0.0 { "0".to_owned() } else { fixed(half_width, decimals) };
                (fixed(scaled, decimals), half_width.map(text))
            }
        }
    }

    /// `39.9` and `[39.7, 40.2]`, where the ends lie at different distances.
    pub fn with_ends(&self, estimate: &Estimate) -> (String, Option<String>) {
        let decimals = self.decimals_of(estimate);
        let ends = shown_interval(estimate).zip(decimals).map(|(interval, decimals)| {
            let [low, high] = [interval.low, interval.high].map(|end| fixed(end / self.scale.factor, decimals));
            format!("[{low}, {high}]")
        });
        (self.parts(estimate).0, ends)
    }

    /// However wide an interval is, what is not 0 does not read like it.
    fn fewest_decimals(&self, estimate: &Estimate) -> i32 {
        match estimate.value == 0.0 {
            true => i32::MIN,
            false => significant_decimals(estimate.value / self.scale.factor, 1),
        }
    }

    /// The column's decimals where the estimate's interval allows them; `None` without one.
    fn decimals_of(&self, estimate: &Estimate) -> Option<i32> {
        let choice = Decimals::of(estimate, self.scale)?;
        let decimals = self.decimals.filter(|decimals| choice.allows(*decimals)).unwrap_or(choice.preferred);
        Some(decimals.max(self.fewest_decimals(estimate)))
    }
}

/// `41.2 ms`: a measured value with three significant digits, in the unit that fits it and the value next to it.
pub fn measured(unit: Unit, value: f64, same_scale: Option<f64>) -> String {
    let scale = scale(unit, same_scale.into_iter().chain([value]));
    let scaled = value / scale.factor;
    let text = fixed(scaled, significant_decimals(scaled, DIGITS_WITHOUT_INTERVAL).max(0));
    scale.joined(&text)
}

/// An interval from fewer runs says more about luck than about the cell (method 4.1).
pub(crate) fn shown_interval(estimate: &Estimate) -> Option<Interval> {
    estimate.interval.filter(|_| estimate.n >= LEAST_RUNS)
}

/// How many decimals an estimate's interval supports: up to its half width's first or second significant digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimals {
    fewest: i32,
    most: i32,
    preferred: i32,
}

impl Decimals {
    /// `None` without an interval.
    fn of(estimate: &Estimate, scale: Scale) -> Option<Self> {
        let half_width = shown_interval(estimate)?.half_width() / scale.factor;
        let most_useful = significant_decimals(estimate.value / scale.factor, MOST_DIGITS);
        if half_width <= 0.0 || !half_width.is_finite() {
            let decimals = significant_decimals(estimate.value / scale.factor, DIGITS_WITHOUT_INTERVAL + 1);
            return Some(Decimals { fewest: decimals, most: decimals, preferred: decimals });
        }
        let first = significant_decimals(half_width, 1);
        let preferred = preferred_decimals(half_width);
        let least = first.min(most_useful);
        Some(Decimals {
            fewest: least,
            most: (first + 1).min(most_useful).max(least),
            preferred: preferred.min(most_useful),
        })
    }

    fn allows(&self, decimals: i32) -> bool {
        (self.fewest..=self.most).contains(&decimals)
    }
}

/// Decimals with which `value` shows `digits` significant digits; negative where it is rounded to tens and more.
pub(crate) fn significant_decimals(value: f64, digits: i32) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let exponent = value.abs().log10().floor() as i32;
    let decimals = digits - 1 - exponent;
    // Rounding may carry into a new digit: 0.097 to one digit is 0.1.
    let carried = (value.abs() * 10_f64.powi(decimals)).round() >= 10_f64.powi(digits);
    if carried { decimals - 1 } else { decimals }
}

/// Decimals that show a half width's first significant digit. One digit of 1 would be a rounding by up to a half, so a
/// leading 1 brings the next digit along.
fn preferred_decimals(half_width: f64) -> i32 {
    let first = significant_decimals(half_width, 1);
    if (half_width * 10_f64.powi(first)).round() < 2.0 { first + 1 } else { first }
}

/// `value` with this many decimals; negative numbers of decimals round to tens, hundreds ...
pub fn fixed(value: f64, decimals: i32) -> String {
    if decimals >= 0 {
        return format!("{value:.*}", decimals as usize);
    }
    let step = 10_f64.powi(-decimals);
    format!("{:.0}", (value / step).round() * step)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use base::metric::MetricReference;
    use statistics::paired::Verdict;

    fn estimate(value: f64, half_width: f64) -> Estimate {
        Estimate { value, interval: Some(Interval::around(value, half_width)), n: 10, confidence: 0.95 }
    }

    fn column(estimates: &[Estimate]) -> Vec<String> {
        let column = Column::fit(Unit::Nanoseconds, estimates);
        estimates.iter().map(|estimate| column.value_with_unit(estimate)).collect()
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(column(&[estimate(39_912.0, 210.0)]), ["39.9 us ± 0.2"]);
        assert_eq!(column(&[estimate(18_420_000.0, 110_000.0)]), ["18.42 ms ± 0.11"]);
        assert_eq!(column(&[estimate(271_234_000.0, 2_100_000.0)]), ["271 ms ± 2"]);
        assert_eq!(column(&[estimate(39_912.0, 0.0)]), ["39.91 us ± 0"]);
        assert_eq!(column(&[estimate(39_912.0, 97.0)]), ["39.91 us ± 0.10"]);
    }

    #[test]
    fn what_is_not_0_does_not_read_like_it() {
        assert_eq!(column(&[estimate(377e6, 2e9)]), ["400 ms ± 2000"]);
        let lopsided = Estimate { interval: Some(Interval { low: 9e6, high: 1e9 }), ..estimate(9.98e6, 1.0) };
        assert_eq!(column(&[lopsided]), ["10 ms [9, 1000]"]);
    }

    #[test]
    fn a_column_has_one_unit_and_the_same_decimals_where_possible() {
        let cells =
            [estimate(18_420_000.0, 110_000.0), estimate(7_930_000.0, 50_000.0), estimate(27_912_000.0, 340_000.0)];
        assert_eq!(column(&cells), ["18.42 ms ± 0.11", "7.93 ms ± 0.05", "27.91 ms ± 0.34"]);
        let wide =
            [estimate(271_000_000.0, 2_000_000.0), estimate(3_120_000.0, 40_000.0), estimate(3_140_000.0, 30_000.0)];
        assert_eq!(column(&wide), ["271 ms ± 2", "3.12 ms ± 0.04", "3.14 ms ± 0.03"]);
    }

    #[test]
    fn few_runs_show_no_interval() {
        let few = Estimate { n: 4, ..estimate(39_912.0, 210.0) };
        assert_eq!(column(&[few]), ["39.9 us"]);
        let single = Estimate { n: 1, interval: None, ..few };
        assert_eq!(column(&[single]), ["39.9 us"]);
    }

    #[test]
    fn large_numbers_are_rounded_to_what_is_known() {
        let thousands = estimate(54_321.0, 1_300.0);
        let column = Column::fit(Unit::PerSecond, [&thousands]);
        assert_eq!(
            (column.value(&thousands), column.heading("items/s")),
            ("54300 ± 1300".to_owned(), "items/s".to_owned())
        );
        let more = estimate(543_210.0, 13_000.0);
        let column = Column::fit(Unit::PerSecond, [&more]);
        assert_eq!(
            (column.value(&more), column.heading("items/s")),
            ("543 ± 13".to_owned(), "items/s, thousands".to_owned())
        );
    }

    #[test]
    fn words_and_counts() {
        assert_eq!(verdict_word(&MetricReference::LATENCY, Verdict::Better), "faster");
        assert_eq!(verdict_word(&"latency.cv".parse().unwrap(), Verdict::Better), "lower");
        assert_eq!(verdict_word(&MetricReference::of(&base::metric::PEAK_RSS), Verdict::Worse), "larger");
        assert_eq!(percent(0.02), "2 %");
        assert_eq!(
            [0.95, 0.996_67, 0.983_33, 0.9, 0.999_95].map(confidence),
            ["95 %", "99.7 %", "98.3 %", "90 %", "99.995 %"]
        );
        assert_eq!(percent(0.0041), "0.41 %");
        assert_eq!(percent(0.1), "10 %");
        assert_eq!(bytes(224_395_264), "214 MiB");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(amount(Unit::Nanoseconds, 20e6), "20 ms");
        assert_eq!(amount(Unit::Bytes, 1.5 * 1_048_576.0), "1.5 MiB");
        assert_eq!(amount(Unit::PerSecond, 120.0), "120/s");
        assert_eq!(amount(Unit::Ratio, 1.5), "1.5");
        assert_eq!(count(1, "cell"), "1 cell");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }

    proptest! {
        #[test]
        fn the_last_digit_is_supported(value in 1.0_f64..1e12, relative in 1e-5_f64..0.9) {
            let estimate = estimate(value, value * relative);
            let scale = scale(Unit::Nanoseconds, [value]);
            let choice = Decimals::of(&estimate, scale).unwrap();
            let step = 10_f64.powi(-choice.preferred);
            // At or above the second significant digit: the half width is less than a hundred steps.
            prop_assert!(value * relative / scale.factor < 100.0 * step);
        }
    }
}
