//! Words for verdicts, shares, sizes and lists: whatever needs no column of its own.

use super::{fixed, scale, significant_decimals};
use crate::mark::claimed;
use base::metric::{Direction, ITEMS, LARGEST_RATE, LATENCY, Metric, MetricReference, THROUGHPUT, Unit};
use statistics::paired::Verdict;

/// The verdict in the metric's own words: faster and slower for times and rates, smaller and larger for sizes, lower and
/// higher for scatter.
pub(crate) fn verdict_word(metric: &MetricReference, verdict: Verdict) -> String {
    claimed(match verdict.is_difference() {
        true => direction_word(metric, verdict.is_improvement()),
        false => verdict.name(),
    })
}

/// How a verdict is drawn and coloured: `faster`, `slower`, `same`, `open`.
pub(crate) fn tone(verdict: Verdict) -> &'static str {
    match (verdict.is_open(), verdict.is_difference(), verdict.is_improvement()) {
        (true, ..) => "open",
        (_, false, _) => "same",
        (.., true) => "faster",
        (.., false) => "slower",
    }
}

/// Whether a better value of it is what people call faster, without saying at what.
pub(crate) fn is_speed(reference: MetricReference) -> bool {
    let speeds = [LATENCY.name, THROUGHPUT.name, ITEMS.name];
    speeds.contains(&reference.metric.name) && !reference.statistic.is_scatter()
}

/// What the better one is, in the metric's own words: `faster`, `smaller`.
pub(crate) fn better_word(metric: &MetricReference) -> &'static str {
    direction_word(metric, true)
}

fn direction_word(reference: &MetricReference, better: bool) -> &'static str {
    let pair = match (reference.unit(), reference.metric.direction) {
        _ if reference.statistic.is_scatter() => ["lower", "higher"],
        // How many are served is no speed.
        _ if reference.metric.name == LARGEST_RATE.name => ["higher", "lower"],
        (Unit::Nanoseconds, Direction::LowerIsBetter) | (Unit::PerSecond, Direction::HigherIsBetter) => {
            ["faster", "slower"]
        }
        (Unit::Bytes, Direction::LowerIsBetter) => ["smaller", "larger"],
        (_, Direction::HigherIsBetter) => ["higher", "lower"],
        (_, Direction::LowerIsBetter | Direction::Neutral) => ["lower", "higher"],
    };
    pair[usize::from(!better)]
}

/// What stands where iterations share samples, since a percentile of means is none of iterations.
pub fn batched(iterations: u32) -> String {
    format!("n/a (batched x{iterations})")
}

/// `2 %`, `0.4 %`, `12 %`: two significant digits, trailing zeros left out.
pub fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    let text = fixed(value, significant_decimals(value, 2).max(0));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// `95 %`, `99.7 %`: a confidence, which is never rounded to 100 %.
pub fn confidence(share: f64) -> String {
    let decimals = significant_decimals(100.0 * (1.0 - share), 1).max(1);
    let text = fixed(100.0 * share, decimals);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `4.09 G`, `386 M`, `120`: a number of things with three significant digits and a decimal prefix.
pub fn magnitude(number: u64) -> String {
    let (factor, prefix) = match number {
        0..1_000 => return number.to_string(),
        1_000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    let scaled = number as f64 / factor;
    format!("{} {prefix}", fixed(scaled, significant_decimals(scaled, 3).max(0)))
}

/// `98.1 %`, `0.32`: an accuracy over `n` items. Shares have the decimals that one item changes, two at most, as the field
/// writes them; the interval, which is wider, is printed with them.
pub fn score(metric: &Metric, value: f64, n: usize) -> String {
    const MANY: usize = 2000;
    match metric.unit {
        Unit::Share => format!("{:.*} %", if n < MANY { 1 } else { 2 }, value * 100.0),
        _ => amount(metric.unit, value),
    }
}

/// `214 MiB`: three significant digits in the fitting unit.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    let scale = scale(Unit::Bytes, [value]);
    let scaled = value / scale.factor;
    // There are no parts of a byte.
    let decimals = if scale.factor > 1.0 { significant_decimals(scaled, 3).clamp(0, 2) } else { 0 };
    format!("{} {}", fixed(scaled, decimals), scale.unit)
}

/// `20 ms`, `1.5`, `512 MiB`: a value that somebody wrote, in the fitting unit, with at most four significant digits.
pub fn amount(unit: Unit, value: f64) -> String {
    let scale = scale(unit, [value]);
    let scaled = value / scale.factor;
    let text = fixed(scaled, significant_decimals(scaled, 4));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    scale.joined(text)
}
