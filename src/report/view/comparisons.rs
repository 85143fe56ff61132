//! Every comparison with all that was computed about it, the tests over whole groups, and the controls.
//!
//! The verdict rests on the first table's interval alone; the rest is evidence for those who ask. The word "significant"
//! stands only beside a p value and its adjusted one (method 12.4).

use statistics::effect_size::{CliffsDelta, Magnitude};
use statistics::interval::Interval;
use statistics::multiplicity::LEVEL;
use statistics::paired_tests::SignedRankTest;
use statistics::rank_omnibus::RankTest;

use super::{Table, TableCell, TableColumn, TableRow};
use crate::experiment::Grade;
use crate::judge::compare::pair::{speedup, speedup_interval};
use crate::judge::compare::{Comparison, Control, Details, Family};
use crate::plan::Plan;
use crate::report::Input;
use crate::report::answer::hint_words;
use crate::report::cause::conditional;
use crate::report::format::{self, Column, percent};
use crate::report::plots::group_name;
use crate::vocabulary::code::spelt;
use crate::vocabulary::metric::{Direction, ITEMS, LATENCY, MetricReference};

/// What each comparison says in its common blocks: the evidence of its verdict.
pub(super) fn comparisons(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let confidence = percent(input.judged.comparisons.first()?.confidence);
    let ratio =
        format!("time of the baseline over that of the cell, with its {confidence} interval; above 1 is faster");
    let columns = [
        text("cell", "the candidate"),
        text("against", "the baseline's cell"),
        number("speed-up", &ratio),
        number("change", "time of the cell over that of the baseline, less 1, with its interval; negative is faster"),
        text("verdict", "from the interval and the margin alone"),
        number("p", "two-sided p value of a difference beyond the margin"),
        number("p, Holm", "the same, adjusted for all comparisons of the record"),
        number(
            "q",
            "the same after Benjamini and Hochberg: the expected share of false ones among this row and those with a smaller q",
        ),
        number("p, equivalence", "two one-sided tests of a difference within the margin"),
        number("detectable", "smallest relative effect that these blocks detect with 80 % power"),
        number("blocks", "blocks that both cells completed"),
    ];
    let row = |comparison: &Comparison| {
        let mut cells = vec![
            TableCell::text(path(plan, comparison.cell)),
            TableCell::text(path(plan, comparison.baseline)),
            TableCell::number(
                format::judged_ratio(comparison.speedup, comparison.interval, comparison.margin),
                comparison.speedup,
            ),
            change(comparison),
            TableCell::text(conditional(verdict(comparison), input.summary, comparison)),
        ];
        match &comparison.details {
            Some(details) => cells.extend(tests(details, comparison)),
            None => cells.extend((0..6).map(|_| TableCell::nothing())),
        }
        TableRow { anchor: None, cells }
    };
    let rows: Vec<TableRow> = input.judged.comparisons.iter().map(row).collect();
    let notes = notes(&input.judged.comparisons);
    (!rows.is_empty()).then(|| Table { columns: columns.into_iter().collect(), rows, notes })
}

/// The columns from p to blocks.
fn tests(details: &Details, comparison: &Comparison) -> Vec<TableCell> {
    let paired = &details.paired;
    // Where the verdict claims no difference a small p value, which may be another test's, is no claim either.
    let is_different = comparison.verdict.is_difference();
    let may_claim = comparison.withheld.is_none() && is_different;
    let adjusted = |p: &f64| {
        let word = if *p <= LEVEL && may_claim { " significant" } else { "" };
        TableCell::number(format!("{}{word}", format::p_value(*p)), *p)
    };
    let q = |q: &f64| {
        TableCell::number(format!("{}{}", format::p_value(*q), if *q <= LEVEL && may_claim { " *" } else { "" }), *q)
    };
    let p = |p: f64| TableCell::number(format::p_value(p), p);
    vec![
        or_nothing(paired.minimum_effect.map(|effect| p(effect.p_min_effect))),
        or_nothing(details.p_holm.as_ref().map(adjusted)),
        or_nothing(details.q.as_ref().map(q)),
        or_nothing(details.p_tost.map(p)),
        or_nothing(paired.detectable_effect.map(|effect| TableCell::number(percent(effect), effect))),
        TableCell::number(comparison.blocks.to_string(), comparison.blocks as f64),
    ]
}

/// The change of time in percent, labelled by its heading; of a rate where a rate is compared.
fn change(comparison: &Comparison) -> TableCell {
    let is_rate = comparison.metric.metric.direction == Direction::HigherIsBetter;
    let change = |speedup: f64| if is_rate { speedup - 1.0 } else { 1.0 / speedup - 1.0 };
    let ends = |interval: Interval| {
        let (one, other) = (change(interval.low), change(interval.high));
        Interval { low: one.min(other), high: one.max(other) }
    };
    let value = change(comparison.speedup);
    TableCell::number(format::change(value, comparison.interval.map(ends)), value)
}

/// The verdict with why it is not more.
fn verdict(comparison: &Comparison) -> String {
    let word = format::verdict_word(&comparison.metric, comparison.verdict);
    let reason = match (comparison.withheld, comparison.hint) {
        (Some(withheld), _) => Some(withheld.words().to_owned()),
        (None, Some(hint)) => Some(hint_words(hint, comparison.margin)),
        (None, None) => None,
    };
    reason.map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}

fn notes(comparisons: &[Comparison]) -> Vec<String> {
    let margin = comparisons.first().map_or(0.0, |comparison| comparison.margin);
    let mut notes = vec![format!(
        "The verdict comes from the interval and the margin of {} alone. p asks for a difference beyond that margin; Holm's adjustment and q are over all {}. * marks q of at most {LEVEL}.",
        percent(margin),
        format::count(comparisons.len() as u64, "comparison")
    )];
    let by_items = comparisons.iter().filter(|comparison| comparison.metric.metric.name == ITEMS.name).count();
    if by_items > 0 {
        let rows = format::count(by_items as u64, "row");
        notes.push(format!("{rows} with another batch than the baseline: compared by items per second, not by time."));
    }
    notes
}

/// What the run-level values say without their blocks: shown, deciding nothing.
pub(super) fn effects(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let all = || input.judged.comparisons.iter().filter_map(|comparison| comparison.details.as_ref());
    let sizes = all().filter_map(|details| details.shift).map(f64::abs);
    let shift = Column::fit_to(format::scale(LATENCY.unit, sizes), []);
    let shifted = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "+" };
        TableCell::number(format!("{sign}{}", shift.plain(value.abs())), value)
    };
    let columns = [
        text("cell", "the candidate"),
        number("mean time, ratio", "arithmetic mean of the cell's runs over the baseline's, with Fieller's interval"),
        number("p, Welch", "Welch's t test of equal means"),
        number("p, Mann-Whitney", "rank test of equal distributions"),
        number("p, permutation", "permutation test of equal means"),
        number("p, sign flips", "that the log ratios of the blocks have the mean zero"),
        number("p, signed ranks", "Wilcoxon: that the log ratios of the blocks lie around zero"),
        number("Hodges-Lehmann", "median of the Walsh averages of the same log ratios, as a speed-up"),
        number(&shift.heading("shift"), "Hodges and Lehmann's estimate of how much longer a run of the cell takes"),
        text("Cliff's delta", "how often a run of the cell takes longer than one of the baseline, less the opposite"),
        number("A12", "probability that a run of the cell takes longer than one of the baseline"),
        number("Hedges' g", "difference of means in standard deviations: large where noise is small"),
        number("spread", "Winsorised deviation of the log ratios over blocks"),
    ];
    let row = |comparison: &Comparison| {
        let details = comparison.details.as_ref()?;
        let means = details
            .mean_ratio
            .map(|means| TableCell::number(format::share(means.ratio, means.fieller.interval()), means.ratio));
        let p = |p: f64| TableCell::number(format::p_value(p), p);
        let cells = vec![
            TableCell::text(path(plan, comparison.cell)),
            or_nothing(means),
            or_nothing(details.welch.map(|welch| p(welch.p))),
            or_nothing(details.p_mann_whitney.map(p)),
            or_nothing(details.p_permutation.map(p)),
            or_nothing(details.p_sign_flip.map(p)),
            or_nothing(details.signed_rank.map(|test| p(test.p))),
            or_nothing(details.signed_rank.map(hodges_lehmann)),
            or_nothing(details.shift.map(shifted)),
            or_nothing(details.cliffs_delta.map(cliffs_delta)),
            or_nothing(details.superiority.map(|share| TableCell::number(format!("{share:.2}"), share))),
            or_nothing(details.hedges_g.map(|g| TableCell::number(format!("{g:.1}"), g))),
            or_nothing(details.paired.winsorised_deviation.map(|spread| TableCell::number(percent(spread), spread))),
        ];
        Some(TableRow { anchor: None, cells })
    };
    let rows: Vec<TableRow> = input.judged.comparisons.iter().filter_map(row).collect();
    let notes = vec![
        "All but sign flips and signed ranks ignore which runs shared a block, so they are less sensitive than the verdict if the machine drifts, and they do not use the margin. They decide nothing."
            .to_owned(),
    ];
    (!rows.is_empty()).then(|| Table { columns: columns.into_iter().collect(), rows, notes })
}

fn hodges_lehmann(test: SignedRankTest) -> TableCell {
    let (estimate, interval) = (speedup(test.hodges_lehmann), test.interval.map(speedup_interval));
    TableCell::number(format::ratio(estimate, interval), estimate)
}

fn cliffs_delta(effect: CliffsDelta) -> TableCell {
    let word = match effect.magnitude {
        Magnitude::Negligible => "negligible",
        Magnitude::Small => "small",
        Magnitude::Medium => "medium",
        Magnitude::Large => "large",
    };
    TableCell::number(format!("{:.2} {word}", effect.delta), effect.delta)
}

/// The tests over whole groups.
pub(super) fn families(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let columns = [
        text("group", "what its cells have in common"),
        number("cells", "cells that were compared"),
        number("blocks", "blocks that all of them completed"),
        number("Friedman", "chi-squared with its degrees of freedom: the test for blocks"),
        number("p, Friedman", "that all cells are equal"),
        number("p, Welch's ANOVA", "that all means are equal; ignores the blocks"),
        number("p, Kruskal-Wallis", "that all distributions are equal; ignores the blocks"),
        number("eta squared", "share of the variance that lies between cells"),
        number("omega squared", "the same without its bias"),
    ];
    let p = |p: f64| TableCell::number(format::p_value(p), p);
    let row = |family: &Family| {
        let friedman =
            |test: RankTest| TableCell::number(format!("{:.1} ({})", test.statistic, test.df), test.statistic);
        let share = |share: f64| TableCell::number(format!("{share:.3}"), share);
        let cells = vec![
            TableCell::text(group_name(plan, family.group)),
            TableCell::number(family.cells.len().to_string(), family.cells.len() as f64),
            TableCell::number(family.blocks.to_string(), family.blocks as f64),
            or_nothing(family.friedman.map(friedman)),
            or_nothing(family.friedman.map(|test| p(test.p))),
            or_nothing(family.welch_anova.map(|test| p(test.p))),
            or_nothing(family.kruskal_wallis.map(|test| p(test.p))),
            or_nothing(family.anova.map(|test| share(test.eta_squared))),
            or_nothing(family.anova.map(|test| share(test.omega_squared))),
        ];
        TableRow { anchor: None, cells }
    };
    let rows: Vec<TableRow> = input.judged.families.iter().map(row).collect();
    let notes = vec!["Whether the cells of a group differ at all. These tests do not affect any verdict.".to_owned()];
    (!rows.is_empty()).then(|| Table { columns: columns.into_iter().collect(), rows, notes })
}

/// Identical arms against each other.
pub(super) fn controls(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let columns = [
        text("cell", "measured twice in every block, as two identical arms"),
        number("ratio", "time of the one arm over that of the other, with its interval: 1 but for noise"),
        text("verdict", "as of two different things; faster or slower is a false alarm"),
        number("spread", "Winsorised deviation of the log ratios over blocks"),
        number("detectable", "smallest relative effect that these blocks detect with 80 % power"),
        number("blocks", "blocks that both arms completed"),
    ];
    let percentage = |value: f64| TableCell::number(percent(value), value);
    let row = |control: &Control| {
        let word = format::verdict_word(&MetricReference::LATENCY, control.paired.verdict);
        let code = control.code().map_or_else(String::new, |code| format!(" ({code})"));
        let cells = vec![
            TableCell::text(path(plan, control.cell)),
            TableCell::number(
                format::judged_ratio(control.ratio, control.interval, control.paired.margin),
                control.ratio,
            ),
            TableCell::text(format!("{word}{code}")),
            or_nothing(control.paired.winsorised_deviation.map(percentage)),
            or_nothing(control.paired.detectable_effect.map(percentage)),
            TableCell::number(control.paired.blocks.to_string(), control.paired.blocks as f64),
        ];
        TableRow { anchor: None, cells }
    };
    let rows: Vec<TableRow> = input.judged.controls.iter().map(row).collect();
    let [a, b, c] = Grade::MOST.map(|(_, effect)| percent(effect));
    let notes = vec![format!(
        "Grades: A if {} blocks detect {a}, B if they detect {b}, C if they detect {c}, D otherwise.",
        spelt(Grade::BLOCKS as usize)
    )];
    (!rows.is_empty()).then(|| Table { columns: columns.into_iter().collect(), rows, notes })
}

fn or_nothing(cell: Option<TableCell>) -> TableCell {
    cell.unwrap_or_else(TableCell::nothing)
}

pub(super) fn path(plan: &Plan, cell: usize) -> String {
    plan.cells.get(cell).map(|cell| plan.path(cell)).unwrap_or_default()
}

pub(super) fn text(title: &str, meaning: &str) -> TableColumn {
    TableColumn { title: title.to_owned(), meaning: Some(meaning.to_owned()), is_numeric: false }
}

pub(super) fn number(title: &str, meaning: &str) -> TableColumn {
    TableColumn { is_numeric: true, ..text(title, meaning) }
}
