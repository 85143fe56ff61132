//! What many experiments have in common, and how it reads.
//!
//! Input: the judgements of a policy and of the current rules on the same experiments. Output: rows of Markdown.

use std::fmt;

use statistics::moments::{mean, standard_deviation};
use statistics::quantile::median;
use statistics::verdict::Verdict;

use super::rules::Judged;

/// All experiments of a setting under one policy.
#[derive(Default)]
pub(crate) struct Totals {
    bias: Vec<f64>,
    cells_covered: Vec<f64>,
    ratio_covered: Vec<f64>,
    seconds: Vec<f64>,
    /// Verdicts in percent of the experiments without and with an effect.
    claimed: [Vec<f64>; 2],
    equivalent: Vec<f64>,
}

impl Totals {
    pub(crate) fn add(&mut self, judged: &Judged, has_effect: bool) {
        let percent = |holds: bool| f64::from(u8::from(holds)) * 100.0;
        self.bias.push(judged.bias);
        self.cells_covered.push(judged.cells_covered);
        self.ratio_covered.push(judged.ratio_covered);
        self.seconds.push(judged.seconds);
        if has_effect {
            self.claimed[1].push(percent(judged.verdict == Verdict::Worse));
        } else {
            self.claimed[0].push(percent(matches!(judged.verdict, Verdict::Better | Verdict::Worse)));
            self.equivalent.push(percent(judged.verdict == Verdict::Equivalent));
        }
    }

    /// What this policy loses against the current one, by the criteria of `docs/simulations.md`.
    fn losses(&self, current: &Totals) -> Vec<&'static str> {
        let loses = |mine: &[f64], theirs: &[f64]| {
            let (change, error) = paired_change(mine, theirs);
            let falls_below = average(theirs) >= 93.0 && average(mine) < 93.0;
            change + 2.0 * error < 0.0 && (change <= -1.0 || falls_below)
        };
        let mut losses = Vec::new();
        if average(&self.bias).abs() > average(&current.bias).abs() + 0.2 {
            losses.push("bias");
        }
        if loses(&self.cells_covered, &current.cells_covered) {
            losses.push("coverage");
        }
        if loses(&self.ratio_covered, &current.ratio_covered) {
            losses.push("ratio");
        }
        losses
    }
}

fn average(values: &[f64]) -> f64 {
    mean(values).unwrap_or(f64::NAN)
}

/// The mean difference and its Monte Carlo standard error; both policies saw the same experiments.
fn paired_change(mine: &[f64], theirs: &[f64]) -> (f64, f64) {
    let changes: Vec<f64> = mine.iter().zip(theirs).map(|(mine, theirs)| mine - theirs).collect();
    (average(&changes), standard_error(&changes))
}

fn standard_error(values: &[f64]) -> f64 {
    standard_deviation(values).unwrap_or(0.0) / (values.len() as f64).sqrt()
}

/// The head of the rows.
pub(crate) const HEAD: &str = "\
| setting | policy | bias, % | cell covered, % | ratio covered, % | A/A false, % | equivalent, % | +5 % found, % | s a run \
| speed-up | loses |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|";

/// The head of what [`summarise`] gives.
pub(crate) const SUMMARY_HEAD: &str = "\
| policy | settings | lose | bias added at most, % | cell coverage lost at most | ratio coverage lost at most \
| +5 % lost at most | speed-up: least, median, most |
|---|--:|--:|--:|--:|--:|--:|--:|";

/// What is printed of a policy in a setting.
pub(crate) struct Row {
    text: String,
    losses: Vec<&'static str>,
    bias_added: f64,
    coverage_change: [f64; 2],
    power_change: f64,
    speed_up: f64,
}

impl Row {
    pub(crate) fn new(totals: &Totals, current: &Totals) -> Self {
        let with_error = |values: &[f64], digits: usize| {
            format!("{:.digits$} ± {:.digits$}", average(values), standard_error(values))
        };
        let losses = totals.losses(current);
        let seconds = average(&totals.seconds);
        let speed_up = average(&current.seconds) / seconds;
        let text = format!(
            "{} | {} | {} | {:.1} | {:.0} | {:.0} | {seconds:.2} | {speed_up:.2} | {}",
            with_error(&totals.bias, 2),
            with_error(&totals.cells_covered, 1),
            with_error(&totals.ratio_covered, 1),
            average(&totals.claimed[0]),
            average(&totals.equivalent),
            average(&totals.claimed[1]),
            losses.join(", "),
        );
        Row {
            text,
            losses,
            bias_added: average(&totals.bias).abs() - average(&current.bias).abs(),
            coverage_change: [
                paired_change(&totals.cells_covered, &current.cells_covered).0,
                paired_change(&totals.ratio_covered, &current.ratio_covered).0,
            ],
            power_change: paired_change(&totals.claimed[1], &current.claimed[1]).0,
            speed_up,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The worst of a policy over all settings, and how much time it saves.
pub(crate) fn summarise(rows: &[Row]) -> String {
    let most = |of: fn(&Row) -> f64| rows.iter().map(of).fold(0.0, f64::max);
    let mut speed_ups: Vec<f64> = rows.iter().map(|row| row.speed_up).collect();
    speed_ups.sort_by(f64::total_cmp);
    format!(
        "{} | {} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2}, {:.2}, {:.2}",
        rows.len(),
        rows.iter().filter(|row| !row.losses.is_empty()).count(),
        most(|row| row.bias_added),
        most(|row| -row.coverage_change[0]),
        most(|row| -row.coverage_change[1]),
        most(|row| -row.power_change),
        speed_ups[0],
        median(&speed_ups).unwrap_or(f64::NAN),
        speed_ups[speed_ups.len() - 1],
    )
}
