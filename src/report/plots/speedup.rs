//! Every comparison, and every control, as a point with its interval.

use super::forest::{Forest, Row};
use super::{Plot, row_name};
use crate::judge::compare::pair::block_log_ratios;
use crate::judge::compare::{Comparison, Control, Terms, Withheld};
use crate::judge::summary::Double;
use crate::report::format;
use crate::report::{Input, on_cpu};
use crate::vocabulary::metric::MetricReference;

/// More comparisons than these are left to the table.
const MOST_ROWS: usize = 36;

/// More controls than these are left to the table.
const MOST_CONTROLS: usize = 12;

/// The figure of the speed-ups; `None` where nothing is judged.
pub(super) fn draw(input: &Input<'_>) -> Option<Plot> {
    let comparisons = &input.judged.comparisons;
    let has_value = |comparison: &&Comparison| !comparison.withheld.is_some_and(Withheld::hides_the_value);
    let is_judged = comparisons.iter().filter(has_value).any(|comparison| comparison.interval.is_some());
    let baseline = input.manifest.plan.baseline.as_ref().filter(|_| is_judged)?;
    let rows: Vec<Row> =
        comparisons.iter().filter(has_value).take(MOST_ROWS).map(|comparison| compared(input, comparison)).collect();
    let file = "speedup.svg".to_owned();
    let quick = if input.manifest.quick { " (quick look)" } else { "" };
    let title = format!("Speed-up against {}{quick}", baseline.name);
    let margin = comparisons.iter().map(|comparison| comparison.margin).fold(0.0, f64::max);
    let caption = caption(comparisons, rows.len());
    let axis = "left: slower, right: faster (logarithmic)";
    let svg = Forest { title: title.clone(), axis, margin, least: 1.06, rows }.svg();
    Some(Plot { svg, file, title, caption })
}

/// The figure of the controls; `None` where there is none with an interval.
pub(super) fn draw_controls(input: &Input<'_>) -> Option<Plot> {
    let controls: Vec<&Control> =
        input.judged.controls.iter().filter(|control| control.interval.is_some()).take(MOST_CONTROLS).collect();
    let margin = controls.first()?.paired.margin;
    let rows = controls.iter().map(|control| doubled(input, control)).collect();
    let file = "control.svg".to_owned();
    let title = if controls.len() == 1 { "Control: two identical arms" } else { "Controls: identical arms" }.to_owned();
    let axis = "identical arms: 1 but for noise (logarithmic)";
    let svg = Forest { title: title.clone(), axis, margin, least: 1.0 + 1.5 * margin, rows }.svg();
    let caption = format!(
        "The same cell measured as two identical arms in the same blocks. Bar: the ratio with its {} interval; small dots: each block. Within the shaded margin of {} the two arms are equivalent, as they should be; wholly beyond it the measurement is at fault, whatever the other figures show.",
        format::percent(controls.first()?.paired.confidence),
        format::percent(margin)
    );
    Some(Plot { svg, file, title, caption })
}

fn compared(input: &Input<'_>, comparison: &Comparison) -> Row {
    let plan = &input.manifest.plan;
    let cell = &plan.cells[comparison.cell];
    let cells = &input.summary.cells;
    let terms = Terms::of(input.manifest);
    let logs = block_log_ratios(&cells[comparison.baseline], &cells[comparison.cell], comparison.metric, &terms);
    let is_claimed = comparison.interval.is_some() && comparison.withheld.is_none();
    // The reason why nothing is claimed stands in the table; here it would take the axis' place.
    let words = match comparison.withheld {
        Some(_) => {
            let word = format::verdict_word(&comparison.metric, comparison.verdict);
            format!("{} {word}", format::judged_ratio(comparison.speedup, comparison.interval, comparison.margin))
        }
        None => format::speedup(comparison),
    };
    Row {
        group: row_name(plan, cell),
        entry: [plan.entry(cell)].into_iter().chain(on_cpu(&cells[comparison.cell])).collect::<Vec<_>>().join(", "),
        words,
        ratio: comparison.speedup,
        interval: comparison.interval,
        blocks: ratios(&logs),
        verdict: is_claimed.then_some(comparison.verdict),
    }
}

fn doubled(input: &Input<'_>, control: &Control) -> Row {
    let plan = &input.manifest.plan;
    let terms = Terms::of(input.manifest);
    let logs = |double: &Double| {
        let other = double.twin.as_ref().unwrap_or(&input.summary.cells[control.cell]);
        block_log_ratios(other, &double.summary, MetricReference::LATENCY, &terms)
    };
    let double = input.summary.doubles.iter().find(|double| double.cell == control.cell);
    let logs = double.map(logs).unwrap_or_default();
    let word = if control.has_failed() {
        "failed"
    } else {
        format::verdict_word(&MetricReference::LATENCY, control.paired.verdict)
    };
    Row {
        group: String::new(),
        entry: plan.path(&plan.cells[control.cell]),
        words: format!("{} {word}", format::judged_ratio(control.ratio, control.interval, control.paired.margin)),
        ratio: control.ratio,
        interval: control.interval,
        blocks: ratios(&logs),
        verdict: Some(control.paired.verdict),
    }
}

/// Speed-ups of blocks: a positive log ratio is worse.
fn ratios(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| (-log).exp()).collect()
}

fn caption(comparisons: &[Comparison], drawn: usize) -> String {
    let (margin, confidence) = comparisons.first().map_or((0.0, 0.0), |first| (first.margin, first.confidence));
    let mut text = format!(
        "Latency of the baseline over that of the cell, paired by block, with its {} interval; small dots: each block. Shaded: the margin of {}. Filled: judged faster or slower; empty: no difference claimed.",
        format::percent(confidence),
        format::percent(margin)
    );
    if comparisons.len() > drawn {
        let left = format::count((comparisons.len() - drawn) as u64, "more comparison");
        text += &format!(" {left} not drawn; the table has all.");
    }
    text
}
