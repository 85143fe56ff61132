//! Lines of columns, and numbers that fit into them.

use statistics::interval::Interval;
use unicode_width::UnicodeWidthStr;

use crate::report::format::{fixed, significant_decimals};
use crate::report::page::{Overview, OverviewCell, OverviewColumn};
use crate::ui::table;

/// Numbers that need more places than this are shown with an exponent.
const MOST_DECIMALS: i32 = 9;

/// Numbers from here on are shown with an exponent.
const LARGEST_PLAIN: f64 = 1e12;

/// More significant digits than these say nothing to a reader.
const MOST_DIGITS: i32 = 6;

/// How many decimals the numbers of one series have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    decimals: i32,
}

impl Digits {
    /// Down to the second significant digit of the half width (method 12.1); without one, four digits.
    pub(super) fn of(value: f64, half_width: Option<f64>) -> Self {
        let most = significant_decimals(value, MOST_DIGITS);
        let known = half_width.filter(|width| *width > 0.0 && width.is_finite());
        let decimals = known.map_or(significant_decimals(value, 4), |width| significant_decimals(width, 2).min(most));
        Digits { decimals }
    }

    /// The fewer decimals of two.
    pub(super) fn coarser(self, other: Digits) -> Digits {
        Digits { decimals: self.decimals.min(other.decimals) }
    }

    /// The number with these decimals.
    pub(super) fn number(self, value: f64) -> String {
        if !value.is_finite() {
            return "-".to_owned();
        }
        let is_plain = self.decimals <= MOST_DECIMALS && value.abs() < LARGEST_PLAIN;
        if is_plain { fixed(value, self.decimals) } else { format!("{value:.3e}") }
    }

    /// `[9.91, 10.19]`.
    pub(super) fn interval(self, interval: Interval) -> String {
        self.bounds(Some(interval.low), Some(interval.high))
    }

    /// As [`Digits::interval`], of which a side may be open; nothing where both are.
    pub(super) fn bounds(self, low: Option<f64>, high: Option<f64>) -> String {
        if low.is_none() && high.is_none() {
            return String::new();
        }
        let side = |bound: Option<f64>| bound.map_or("open".to_owned(), |bound| self.number(bound));
        format!("[{}, {}]", side(low), side(high))
    }
}

/// A number without interval, of which so many digits count.
pub(super) fn significant(value: f64, digits: i32) -> String {
    Digits { decimals: significant_decimals(value, digits) }.number(value)
}

/// A number that tells by its distance from zero, such as a skewness.
pub(super) fn hundredths(value: f64) -> String {
    Digits { decimals: 2 }.number(value)
}

/// A p value: two significant digits.
pub(super) fn p_value(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { fixed(p, significant_decimals(p, 2)) }
}

/// Lines of a label, a number, an interval or second number, and a remark.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    rows: Vec<[String; 4]>,
}

impl Grid {
    pub(super) fn row(
        &mut self,
        label: impl Into<String>,
        number: impl Into<String>,
        more: impl Into<String>,
        remark: impl Into<String>,
    ) {
        self.rows.push([label.into(), number.into(), more.into(), remark.into()]);
    }

    /// The lines that say something, each ended; headings are the first row.
    pub(super) fn render(self, width: usize, last_number: Alignment) -> String {
        let is_second_number = last_number == Alignment::Right;
        let column = |is_numeric| OverviewColumn { is_numeric, ..OverviewColumn::text("") };
        let columns = [false, true, is_second_number, false].map(column).to_vec();
        let rows = self.rows.into_iter().filter(|row| row[1..].iter().any(|cell| !cell.is_empty()));
        let rows = rows.map(|row| row.map(OverviewCell::from).to_vec()).collect();
        table::render(&Overview { columns, rows }, width) + "\n"
    }
}

/// To which side a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Right,
}

/// The end of a text that is longer than so many columns, since the end of a path says most.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    if text.width() <= longest {
        return text.to_owned();
    }
    let mut rest = text.chars();
    while rest.as_str().width() >= longest.max(1) {
        rest.next();
    }
    format!("…{}", rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(Digits::of(10.052, Some(0.1393)).number(10.0529), "10.05");
        assert_eq!(Digits::of(10.052, Some(0.1393)).interval(Interval { low: 9.9136, high: 10.1922 }), "[9.91, 10.19]");
        assert_eq!(Digits::of(1234.5, Some(87.0)).number(1234.6), "1235");
        assert_eq!(Digits::of(12.3456, None).number(12.3456), "12.35");
        assert_eq!(Digits::of(1e-7, Some(1e-9)).number(1.234e-7), "1.234e-7");
        assert_eq!(Digits::of(1e300, Some(1e298)).number(1e300), "1.000e300");
        assert_eq!(Digits::of(5.0, Some(1e-12)).number(5.0), "5.00000");
        assert_eq!(Digits::of(0.0, None).number(f64::NAN), "-");
    }

    #[test]
    fn p_values_are_never_zero() {
        assert_eq!([0.0, 0.00267, 0.5, 1.0].map(p_value), ["< 0.0001", "0.0027", "0.50", "1.0"]);
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(["abc", "abcdef", "äöüäöü"].map(|name| shortened(name, 4)), ["abc", "…def", "…äöü"]);
        assert_eq!(shortened("abc", 0), "…");
    }
}
