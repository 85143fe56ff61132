//! Comparisons as texts: ratios with as many decimals as they need, changes in percent, p values.

use super::{count, fixed, percent, preferred_decimals, significant_decimals, verdict_word};
use base::metric::{Difference, LARGEST_RATE, MetricReference, Unit};
use judge::results::Comparison;
use statistics::interval::Interval;

/// `2.67x [2.64, 2.70]`: two decimals, one from 10 on, none from 100 on; one more where these would hide the interval, or
/// that it excludes 1.
pub fn ratio(value: f64, interval: Option<Interval>) -> String {
    parts_of_ratio(value, interval, "x", &[])
}

/// As [`ratio`], with as many decimals as show on which side of the margin the interval ends: a verdict must follow from
/// what is printed.
pub fn judged_ratio(value: f64, interval: Option<Interval>, margin: f64) -> String {
    parts_of_ratio(value, interval, "x", &[1.0 + margin, 1.0 / (1.0 + margin)])
}

/// More decimals than these would be needed for a bound that all but is a margin.
const MOST_MORE_DECIMALS: i32 = 2;

/// An end that near a margin is the margin, which is where the interval of a difference is shown from (method 6.1).
const AT_MARGIN: f64 = 1e-5;

fn parts_of_ratio(value: f64, interval: Option<Interval>, unit: &str, margins: &[f64]) -> String {
    let fewest = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        // A ratio far below one keeps two digits that say something.
        value => significant_decimals(value, 2).max(2),
    };
    let Some(interval) = interval else { return format!("{}{unit}", fixed(value, fewest)) };
    let hides = |decimals: i32| {
        let [low, high, one] = [interval.low, interval.high, 1.0].map(|number| fixed(number, decimals));
        let hides_width = interval.low < interval.high && low == high;
        let hides_one = (interval.low > 1.0 && low == one) || (interval.high < 1.0 && high == one);
        let hides = |margin: f64, end: f64, shown: &str| {
            fixed(margin, decimals) == shown && (end - margin).abs() > AT_MARGIN * margin
        };
        let hides_margin =
            margins.iter().any(|margin| hides(*margin, interval.low, &low) || hides(*margin, interval.high, &high));
        (hides_width || hides_one, hides_margin)
    };
    let mut decimals = fewest;
    while decimals < fewest + MOST_MORE_DECIMALS {
        match hides(decimals) {
            (true, _) if decimals == fewest => decimals += 1,
            (_, true) => decimals += 1,
            _ => break,
        }
    }
    let [value, low, high] = [value, interval.low, interval.high].map(|number| fixed(number, decimals));
    format!("{value}{unit} [{low}, {high}]")
}

/// Whether all of a ratio's interval is beyond the margin, on either side.
pub fn is_beyond(interval: Option<Interval>, margin: f64) -> bool {
    interval.is_some_and(|it| it.is_beyond(margin))
}

/// `2.67x [2.64, 2.70] faster`; `1.93x (3 runs, not judged)` below five common blocks; `undecided: quick look`, with
/// the reason, where a verdict is withheld.
pub fn speedup(row: &Comparison) -> String {
    let ratio = one_sided(row).unwrap_or_else(|| judged_ratio(row.ratio, row.interval(), row.margin));
    let word = verdict_of(row);
    match row.withheld() {
        Some(withheld) if withheld.hides_the_value() => format!("withheld: {}", withheld.words()),
        Some(withheld) if ratio.is_empty() => format!("{word}: {}", withheld.words()),
        Some(withheld) => format!("{ratio} {word}: {}", withheld.words()),
        None if row.low.is_none() => format!("{ratio} ({}, not judged)", count(row.blocks, "run")),
        None if row.verdict.is_open() && is_beyond(row.interval(), row.margin) => {
            format!("{ratio} {word}: too few runs")
        }
        None => format!("{ratio} {word}"),
    }
}

/// `at least 4.00x`, `at most 0.25x`, of a ratio of which one end alone is known; empty where neither is.
pub(super) fn one_sided(row: &Comparison) -> Option<String> {
    let low = row.low.filter(|_| row.metric.metric.name == LARGEST_RATE.name)?;
    match row.high {
        // Nothing is known of it.
        None if low <= 0.0 => Some(String::new()),
        None => Some(ratio_at_least(low)),
        Some(high) if low <= 0.0 => Some(format!("at most {:.2}x", (high * 100.0).ceil() / 100.0)),
        Some(_) => None,
    }
}

/// `at least 4.00x`; rounded down, so that it holds.
pub(crate) fn ratio_at_least(ratio: f64) -> String {
    format!("at least {:.2}x", (ratio * 100.0).floor() / 100.0)
}

/// The verdict of a row in the metric's own words.
pub fn verdict_of(row: &Comparison) -> String {
    verdict_word(&row.metric, row.verdict)
}

/// `-48 % [-50, -46]`: a relative change with its interval, with as many decimals as its ends need to differ.
pub fn change(value: f64, interval: Option<Interval>) -> String {
    let Some(interval) = interval else { return format!("{} %", signed(value * 100.0, 1)) };
    let decimals = preferred_decimals(interval.half_width() * 100.0).clamp(0, 3);
    let [value, low, high] = [value, interval.low, interval.high].map(|number| signed(number * 100.0, decimals));
    format!("{value} % [{low}, {high}]")
}

/// `5 %`, `0.5 pp`, `1 MiB`: a difference that somebody wrote.
pub fn difference(difference: Difference, reference: MetricReference) -> String {
    match difference {
        Difference::Relative(share) => percent(share),
        Difference::Absolute(amount) if reference.unit() == Unit::Share => {
            let text = fixed(amount * 100.0, 3);
            format!("{} pp", text.trim_end_matches('0').trim_end_matches('.'))
        }
        Difference::Absolute(amount) => super::amount(reference.unit(), amount),
    }
}

/// With its sign; what rounds to zero has none.
pub(crate) fn signed(value: f64, decimals: i32) -> String {
    let text = fixed(value, decimals);
    match text.trim_start_matches(['-', '0', '.']) {
        "" => text.trim_start_matches('-').to_owned(),
        _ if value > 0.0 => format!("+{text}"),
        _ => text,
    }
}

/// `0.0031`: two significant digits; `< 0.0001` below.
pub fn p_value(p: f64) -> String {
    const LEAST: f64 = 1e-4;
    if p < LEAST {
        return "< 0.0001".to_owned();
    }
    fixed(p, significant_decimals(p, 2).clamp(0, 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_show_their_interval() {
        let interval = |low, high| Some(Interval { low, high });
        assert_eq!(ratio(2.671, interval(2.64, 2.7)), "2.67x [2.64, 2.70]");
        assert_eq!(ratio(12.34, interval(12.0, 12.7)), "12.3x [12.0, 12.7]");
        assert_eq!(ratio(1.0004, interval(0.9998, 1.0011)), "1.000x [1.000, 1.001]");
        assert_eq!(ratio(1.0, interval(1.0, 1.0)), "1.00x [1.00, 1.00]");
        assert_eq!(ratio(1.04, interval(1.003, 1.09)), "1.040x [1.003, 1.090]");
        assert_eq!(ratio(0.97, interval(0.95, 0.997)), "0.970x [0.950, 0.997]");
        assert_eq!(ratio(0.66, None), "0.66x");
    }

    #[test]
    fn changes_and_p_values_show_what_they_support() {
        let interval = |low, high| Some(Interval { low, high });
        assert_eq!(change(-0.482, interval(-0.501, -0.463)), "-48 % [-50, -46]");
        assert_eq!(change(-0.05, interval(-0.062, -0.038)), "-5.0 % [-6.2, -3.8]");
        assert_eq!(change(0.0512, interval(0.0488, 0.0537)), "+5.1 % [+4.9, +5.4]");
        assert_eq!(change(0.0001, interval(-0.004, 0.004)), "0.0 % [-0.4, +0.4]");
        assert_eq!(change(-0.25, None), "-25.0 %");
        assert_eq!([0.25, 0.0031, 0.00004, 1.0, 0.0499].map(p_value), ["0.25", "0.0031", "< 0.0001", "1.0", "0.050"]);
    }

    #[test]
    fn the_margin_is_told_from_a_bound_that_rounds_onto_it() {
        let shown = |low, high| judged_ratio(1.0, Some(Interval { low, high }), 0.02);
        // Within the margin of 1 / 1.02 = 0.9804, and beyond it: two decimals would show both as 0.98.
        assert_eq!(
            (shown(0.9810, 1.005).as_str(), shown(0.9751, 1.005).as_str()),
            ("1.000x [0.981, 1.005]", "1.000x [0.975, 1.005]")
        );
        assert_eq!(shown(0.95, 1.05), "1.00x [0.95, 1.05]", "far from it two are enough");
        assert_eq!(shown(1.02, 1.4844), "1.00x [1.02, 1.48]", "and where the interval is shown from the margin on");
        assert_eq!(ratio(1.0, Some(Interval { low: 0.9751, high: 1.005 })), "1.00x [0.98, 1.00]");
    }
}
