//! Bars that add up, drawn in the last cell of a table's rows, in percent of an axis.
//!
//! Input: lengths and how each is meant. Output: positions. Deliberately absent: markup, and what the lengths are of.

use schemars::JsonSchema;
use serde::Serialize;

use super::subject::{Span, Tick};
use crate::plots::LengthScale;

/// The tone of a bar that is what the bars above add up to, from zero.
pub(super) const TOTAL: &str = "total";

/// A bar for each row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bars {
    /// Round lengths with their labels, in the unit of the table.
    pub ticks: Vec<Tick>,
    /// The axis does not begin at zero, since changes are small.
    pub is_cut: bool,
    /// In the order of the rows.
    pub rows: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bar {
    /// `faster`, `slower`, `open` where neither is claimed, `total`.
    pub tone: &'static str,
    /// Where it is.
    pub span: Span,
    /// Where it ends and the one below begins; none of the last.
    pub joint: Option<f64>,
}

/// Where all changes are in so small a part of the axis, it does not begin at zero.
const NARROW: f64 = 0.2;

impl Bars {
    /// Each from where the one above ends; totals from zero. In units of the table.
    pub(super) fn adding_up(steps: &[(f64, &'static str)]) -> Self {
        let mut at = 0.0;
        let stretch = |(length, tone): &(f64, &'static str)| {
            let from = if *tone == TOTAL { 0.0 } else { at };
            at = from + length;
            (from, at, *tone)
        };
        let stretches: Vec<(f64, f64, &str)> = steps.iter().map(stretch).collect();
        let begins = stretches.iter().filter(|(.., tone)| *tone != TOTAL).map(|(from, ..)| *from);
        let ends: Vec<f64> = begins.chain(stretches.iter().map(|(_, to, _)| *to)).collect();
        let (low, high) =
            ends.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), end| (low.min(*end), high.max(*end)));
        let is_cut = low > high * (1.0 - NARROW) && high > low;
        let scale = LengthScale::new(if is_cut { low - 0.2 * (high - low) } else { low.min(0.0) }, high);
        let last = stretches.len().saturating_sub(1);
        let bar = |(index, (from, to, tone)): (usize, &(f64, f64, &'static str))| Bar {
            tone,
            span: Span::from(scale.span(*from, *to)),
            joint: (index < last).then(|| scale.position(*to)),
        };
        let ticks = scale.ticks().into_iter().map(|(at, label)| Tick { at, label });
        Bars { ticks: ticks.collect(), is_cut, rows: stretches.iter().enumerate().map(bar).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_begins_where_the_one_above_ends() {
        let bars = Bars::adding_up(&[(20.0, TOTAL), (-12.0, "faster"), (2.0, "slower"), (10.0, TOTAL)]);
        let ends = |bar: &Bar| (bar.span.from, bar.span.from + bar.span.width);
        let [baseline, saved, cost, cell] = bars.rows.as_slice() else { panic!("{bars:?}") };
        assert!(!bars.is_cut && baseline.span.from == 0.0 && cell.span.from == 0.0);
        assert!((ends(baseline).1 - ends(saved).1).abs() < 0.02, "{bars:?}");
        assert!((ends(saved).0 - ends(cost).0).abs() < 0.02 && (ends(cost).1 - ends(cell).1).abs() < 0.02, "{bars:?}");
        assert_eq!((saved.joint, cell.joint), (Some(saved.span.from), None));
    }

    #[test]
    fn small_changes_are_seen() {
        let bars = Bars::adding_up(&[(20.0, TOTAL), (-0.1, "faster"), (19.9, TOTAL)]);
        assert!(bars.is_cut && bars.rows[1].span.width > 20.0, "{bars:?}");
        assert!(!Bars::adding_up(&[(20.0, "open"), (1.0, "open")]).is_cut, "from zero on");
        assert_eq!(Bars::adding_up(&[]).rows, []);
    }
}
