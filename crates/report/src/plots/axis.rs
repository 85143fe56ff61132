//! An axis of a figure: from values to points, with round ticks that do not touch each other.

use super::canvas::{Anchor, Canvas, GREY, INK, PALE, TEXT, text_width};

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart.
    Logarithmic,
}

impl Spread {
    /// The value in which distances are even.
    pub(super) fn even(self, value: f64) -> f64 {
        match self {
            Spread::Linear => value,
            Spread::Logarithmic => value.max(1.0 / LARGEST).ln(),
        }
    }
}

/// Ratios below this are almost even, so that steps of equal difference look right on a logarithmic axis.
const NARROW: f64 = 2.5;

/// Values further apart than this ratio need a logarithmic axis.
pub(super) const WIDE: f64 = 8.0;

/// No value that was measured is larger, or nearer to zero than its inverse; with room around it the largest numbers become
/// infinite, the smallest become zero, and both have endless ticks.
const LARGEST: f64 = 1e100;

fn bounded(value: f64) -> f64 {
    value.clamp(-LARGEST, LARGEST)
}

/// An axis from `low` to `high`, drawn from `left` to `right`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    spread: Spread,
    low: f64,
    high: f64,
    left: f64,
    right: f64,
}

impl Axis {
    /// An axis for these values with some room to both sides; equal values get room as well.
    pub(super) fn new(spread: Spread, low: f64, high: f64, left: f64, right: f64) -> Self {
        const ROOM: f64 = 0.04;
        let (even_low, even_high) = (spread.even(bounded(low)), spread.even(bounded(high)));
        let span = even_high - even_low;
        let room = if span > 0.0 { span * ROOM } else { (even_low.abs() * ROOM).max(ROOM) };
        Axis { spread, low: even_low - room, high: even_high + room, left, right }
    }

    /// An axis that begins at zero, for time.
    pub(super) fn from_zero(high: f64, left: f64, right: f64) -> Self {
        let high = if high > 0.0 { bounded(high) } else { 1.0 };
        Axis { spread: Spread::Linear, low: 0.0, high, left, right }
    }

    /// The same axis further right.
    pub(super) fn shifted(&self, by: f64) -> Self {
        Axis { left: self.left + by, right: self.right + by, ..*self }
    }

    /// Where a value is drawn.
    pub(super) fn position(&self, value: f64) -> f64 {
        self.position_of_even(self.spread.even(value))
    }

    /// Where a value is drawn that was made even already.
    pub(super) fn position_of_even(&self, even: f64) -> f64 {
        self.left + (even - self.low) / (self.high - self.low) * (self.right - self.left)
    }

    /// The value in which distances are even.
    pub(super) fn even(&self, value: f64) -> f64 {
        self.spread.even(value)
    }

    /// Where the axis begins.
    pub(super) fn left_end(&self) -> f64 {
        self.left
    }

    /// Where the axis ends.
    pub(super) fn right_end(&self) -> f64 {
        self.right
    }

    /// Whether a value lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&self.spread.even(value))
    }

    /// Round values on the axis, as many as fit without their labels touching, with their labels.
    pub(super) fn ticks(&self, label: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        const GAP: f64 = 14.0;
        self.ticks_apart(label, |left, right| f64::midpoint(text_width(left), text_width(right)) + GAP)
    }

    /// The same of an axis that goes up, where labels stand above each other.
    pub(super) fn ticks_up(&self, label: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        self.ticks_apart(label, |_, _| 2.0 * TEXT)
    }

    /// With labels that need so much room between their middles.
    fn ticks_apart(&self, label: impl Fn(f64) -> String, needed: impl Fn(&str, &str) -> f64) -> Vec<(f64, String)> {
        let candidates = match self.spread {
            Spread::Linear => linear_ticks(self.low, self.high),
            Spread::Logarithmic => logarithmic_ticks(self.low.exp(), self.high.exp()),
        };
        let labelled = |ticks: &Vec<f64>| ticks.iter().map(|tick| (*tick, label(*tick))).collect::<Vec<_>>();
        let sets: Vec<Vec<(f64, String)>> = candidates.iter().map(labelled).collect();
        let is_apart = |pair: &[(f64, String)]| {
            self.position(pair[1].0) - self.position(pair[0].0) >= needed(&pair[0].1, &pair[1].1)
        };
        sets.into_iter().find(|set| set.windows(2).all(is_apart)).unwrap_or_default()
    }

    /// Round values on the axis as dense as an eye can separate them, for marks without labels.
    fn marks(&self) -> Vec<f64> {
        const APART: f64 = 7.0;
        const FINE: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
        let sets = match self.spread {
            Spread::Linear => multiples(self.low, self.high, &FINE),
            Spread::Logarithmic => {
                let (low, high) = (self.low.exp(), self.high.exp());
                if high / low < NARROW { multiples(low, high, &FINE) } else { decades(low, high) }
            }
        };
        let is_apart = |set: &Vec<f64>| {
            set.windows(2).all(|pair| (self.position(pair[1]) - self.position(pair[0])).abs() >= APART)
        };
        sets.into_iter().find(is_apart).unwrap_or_default()
    }

    /// Draws grid lines from `top` to `bottom`, tick labels below, and the name of the axis below those.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        (top, bottom): (f64, f64),
        name: &str,
        label: impl Fn(f64) -> String,
    ) {
        for value in self.marks() {
            let x = self.position(value);
            canvas.line((x, bottom), (x, bottom + 3.0), GREY, 1.0);
        }
        for (value, text) in self.ticks(label) {
            let x = self.position(value);
            canvas.line((x, top), (x, bottom), PALE, 1.0);
            canvas.text(&text, (x, bottom + TEXT), Anchor::Middle, INK);
        }
        canvas.line((self.left, bottom), (self.right, bottom), GREY, 1.0);
        canvas.text(name, ((self.left + self.right) / 2.0, bottom + 2.6 * TEXT), Anchor::Middle, GREY);
    }
}

/// Sets of round values between two bounds, the densest first.
fn linear_ticks(low: f64, high: f64) -> Vec<Vec<f64>> {
    let mut sets = multiples(low, high, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    sets.retain(|ticks| (1..=9).contains(&ticks.len()));
    sets
}

/// All multiples between two bounds of a tenth of their span, rounded down to a power of ten, times each factor.
fn multiples(low: f64, high: f64, factors: &[f64]) -> Vec<Vec<f64>> {
    let magnitude = 10_f64.powi(((high - low) / 10.0).log10().floor() as i32);
    let multiples_of = |factor: &f64| {
        let step = factor * magnitude;
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        (first..=last).map(|multiple| multiple as f64 * step).collect()
    };
    factors.iter().map(multiples_of).collect()
}

/// As [`logarithmic_ticks`], with more of them: tenths below 2, halves below 5, ones above, of each power of ten.
fn decades(low: f64, high: f64) -> Vec<Vec<f64>> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let tenths = (10..20).map(|tenth| f64::from(tenth) / 10.0);
    let dense: Vec<f64> = tenths.chain([2.0, 2.5, 3.0, 3.5, 4.0, 4.5]).chain([5.0, 6.0, 7.0, 8.0, 9.0]).collect();
    let ones: Vec<f64> = (1..10).map(f64::from).collect();
    let within = |factors: &Vec<f64>| -> Vec<f64> {
        let all = (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    [dense, ones, vec![1.0]].iter().map(within).collect()
}

/// As [`linear_ticks`], for ratios: from every hundredth to powers of ten.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<Vec<f64>> {
    const MOST: usize = 9;
    let mut sets: Vec<Vec<f64>> = Vec::new();
    if high / low < NARROW {
        sets.extend(linear_ticks(low, high));
    }
    for within in [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| within.iter().map(move |factor| factor * 10_f64.powi(power)));
        sets.push(all.filter(|tick| (low..=high).contains(tick)).collect());
    }
    sets.retain(|ticks| (1..=MOST).contains(&ticks.len()));
    sets
}

/// A tick's label with the decimals that the tick needs, and no more.
pub(super) fn plain_label(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_damaged_record_holds_have_ticks_too() {
        for high in [f64::MAX, f64::INFINITY] {
            for spread in [Spread::Linear, Spread::Logarithmic] {
                for low in [0.0, f64::MIN_POSITIVE, 1.0] {
                    let axis = Axis::new(spread, low, high, 0.0, 100.0);
                    assert!(axis.ticks(|tick| tick.to_string()).len() < 1000 && axis.marks().len() < 1000);
                }
            }
            assert!(Axis::from_zero(high, 0.0, 100.0).ticks(|tick| tick.to_string()).len() < 1000);
        }
    }

    #[test]
    fn ticks_are_round_and_do_not_touch() {
        let axis = Axis::new(Spread::Linear, 37.1, 104.9, 100.0, 700.0);
        let labels: Vec<String> = axis.ticks(plain_label).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["40", "50", "60", "70", "80", "90", "100"]);
        let narrow = Axis::new(Spread::Linear, 37.1, 104.9, 100.0, 220.0);
        assert!(narrow.ticks(plain_label).len() < labels.len());
    }

    #[test]
    fn ratios_have_ticks_on_both_sides_of_one() {
        let axis = Axis::new(Spread::Logarithmic, 0.6, 2.7, 0.0, 400.0);
        let labels: Vec<String> = axis.ticks(plain_label).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.7", "1", "1.5", "2"]);
    }

    #[test]
    fn marks_lie_near_every_value() {
        let axis = Axis::new(Spread::Logarithmic, 0.6, 2.7, 0.0, 400.0);
        let marks: Vec<f64> = axis.marks().into_iter().map(|mark| axis.position(mark)).collect();
        assert!(
            marks.len() > 15 && marks.windows(2).all(|pair| (7.0..60.0).contains(&(pair[1] - pair[0]))),
            "{marks:?}"
        );
        let wide = Axis::new(Spread::Logarithmic, 1e-3, 1e6, 0.0, 400.0);
        assert!(wide.marks().len() < 60);
        assert!(Axis::from_zero(1.0, 0.0, 10.0).marks().len() < 3);
    }

    #[test]
    fn equal_values_stand_in_the_middle() {
        let axis = Axis::new(Spread::Linear, 5.0, 5.0, 0.0, 100.0);
        assert!((axis.position(5.0) - 50.0).abs() < 1e-9);
        assert!(!axis.ticks(plain_label).is_empty());
    }
}
