//! One series in a table of estimates.

use statistics::autocorrelation::CorrelatedQuantile;
use statistics::planning::{MINIMUM_RUNS, MOST_RUNS};
use statistics::{Estimate, Interval, Modality, Mode, TukeyClasses};

use super::grid::{Alignment, Digits, Grid, hundredths, significant};
use super::words::{needed_for, quantile_name};
use crate::report::format::{count, percent};
use crate::stat::{AcrossRuns, Description, Findings, Order, Precision, Quantile};
use crate::vocabulary::printable::printable;

/// The quantiles that a table shows.
const SHOWN: [f64; 7] = [0.5, 0.25, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Autocorrelation that makes less of a difference than this is not worth a line.
const WORTHWHILE_TIME: f64 = 1.05;

/// The headline estimate: the median over runs, or of the values.
pub(super) fn headline(description: &Description, findings: &Findings) -> String {
    let digits = digits(description);
    let unit = unit(findings);
    let name = &description.source;
    if let Some((runs, estimate)) = description.runs.as_ref().and_then(|runs| Some((runs, runs.estimate?))) {
        let interval = shown(estimate).map_or(String::new(), |interval| format!(" {}", digits.interval(interval)));
        let (runs, values) = (count(runs.count as u64, "run"), count(description.n as u64, "value"));
        return format!("{name}: median {}{unit}{interval} over {runs}, {values}.", digits.number(estimate.value));
    }
    let values = count(description.n as u64, "value");
    let median = description.quantile(0.5).and_then(|quantile| {
        let (low, high) = bounds(quantile);
        let is_bounded = low.is_some() && high.is_some();
        let interval = if is_bounded { format!(" {}", digits.bounds(low, high)) } else { String::new() };
        Some(format!("median {}{unit}{interval}", digits.number(quantile.value?)))
    });
    let mean = description.precision.as_ref().and_then(|precision| precision.effective).map(|estimate| {
        let interval = estimate.interval.map_or(String::new(), |interval| format!(" {}", digits.interval(interval)));
        format!("mean {}{unit}{interval}", digits.number(estimate.value))
    });
    let parts: Vec<String> = median.into_iter().chain(mean).collect();
    format!("{name}: {}; {values}.", parts.join(", "))
}

/// ` ms`, or nothing.
pub(super) fn unit(findings: &Findings) -> String {
    findings.terms.unit.as_ref().map_or(String::new(), |unit| format!(" {}", printable(unit)))
}

/// An interval over fewer than five runs says more about luck than about the program (method 4.1).
fn shown(estimate: Estimate) -> Option<Interval> {
    estimate.interval.filter(|_| estimate.n >= MINIMUM_RUNS)
}

/// Decimals that the headline's interval supports.
pub(super) fn digits(description: &Description) -> Digits {
    let over_runs = description.runs.as_ref().and_then(|runs| runs.estimate);
    let estimate = over_runs.or_else(|| description.precision.as_ref().and_then(|precision| precision.effective));
    let half_width = estimate.and_then(|estimate| estimate.interval).map(|interval| interval.half_width());
    Digits::of(description.robust.median.unwrap_or_default(), half_width)
}

/// All estimates, one a line.
pub(super) fn table(description: &Description, findings: &Findings, width: usize) -> String {
    let digits = digits(description);
    let mut grid = Grid::default();
    let head = findings.terms.unit.as_deref().unwrap_or("estimate");
    grid.row("", printable(head), format!("{} interval", percent(findings.terms.confidence)), "");
    match (&description.runs, &description.precision, &description.order) {
        (Some(runs), _, _) => over_runs(&mut grid, runs, digits),
        (None, Some(precision), Some(order)) => of_values(&mut grid, description, precision, order, digits),
        _ => {}
    }
    let remark =
        description.moments.coefficient_of_variation.map(|ratio| format!("{} of the mean", percent(ratio.abs())));
    let number = |value: Option<f64>| value.map_or(String::new(), |value| digits.number(value));
    let robust = &description.robust;
    grid.row("min", number(robust.min), "", "best case");
    grid.row("max", number(robust.max), "", "");
    let label = if description.runs.is_some() { "sd of all" } else { "sd" };
    grid.row(label, number(description.moments.standard_deviation), "", remark.unwrap_or_default());
    let scaled =
        robust.standard_deviation.map(|deviation| format!("as standard deviation: {}", digits.number(deviation)));
    grid.row("MAD", number(robust.median_absolute_deviation), "", scaled.unwrap_or_default());
    let moments = &description.moments;
    for (label, value, remark) in [
        ("geometric mean", moments.geometric_mean, "for ratios"),
        ("harmonic mean", moments.harmonic_mean, "for rates"),
    ] {
        grid.row(label, number(value), "", if value.is_some() { remark } else { "" });
    }
    grid.row("skewness", moments.skewness.map_or(String::new(), hundredths), "", "");
    grid.row("excess kurtosis", moments.excess_kurtosis.map_or(String::new(), hundredths), "", "");
    if let Some(classes) = &description.outliers {
        grid.row("outliers", classes.outliers().to_string(), "", outliers(classes));
    }
    if let Some(modality) = &description.modality {
        grid.row("modes", modality.modes.len().to_string(), "", modes(modality, digits));
    }
    grid.render(width, Alignment::Left)
}

fn of_values(grid: &mut Grid, description: &Description, precision: &Precision, order: &Order, digits: Digits) {
    let interval = |estimate: Option<Estimate>| {
        estimate.and_then(|estimate| estimate.interval).map_or(String::new(), |interval| digits.interval(interval))
    };
    let mean = precision.independent.map_or(String::new(), |estimate| digits.number(estimate.value));
    grid.row("mean", mean, interval(precision.independent), "if the values are independent");
    if order.autocorrelation_time > WORTHWHILE_TIME {
        let worth = format!(
            "worth {} independent values (autocorrelation time {})",
            significant(order.effective_n, 3),
            significant(order.autocorrelation_time, 3)
        );
        grid.row("", "", interval(precision.effective), worth);
    }
    if let Some(batches) = precision.batch_means {
        let remark = format!("from 20 batches of {}", batches.batch_size);
        grid.row("", digits.number(batches.estimate.value), interval(Some(batches.estimate)), remark);
    }
    for quantile in SHOWN.iter().filter_map(|probability| description.quantile(*probability)) {
        let Some(value) = quantile.value else { continue };
        let supported = quantile.is_supported.unwrap_or(false);
        let sign = if supported || quantile.probability < 0.9 { "" } else { ">= " };
        let (low, high) = bounds(quantile);
        let number = format!("{sign}{}", digits.number(value));
        grid.row(quantile_name(quantile.probability), number, digits.bounds(low, high), remark(quantile, digits));
    }
}

/// The interval of a quantile: the exact one, unless the values are correlated around it.
fn bounds(quantile: &Quantile) -> (Option<f64>, Option<f64>) {
    match (correlated(quantile), quantile.independent) {
        (Some(effective), _) => (effective.low, effective.high),
        (None, Some(exact)) => (exact.low, exact.high),
        (None, None) => (None, None),
    }
}

fn correlated(quantile: &Quantile) -> Option<CorrelatedQuantile> {
    quantile.effective.filter(|effective| effective.autocorrelation_time > WORTHWHILE_TIME)
}

/// What a quantile and its interval rest on.
fn remark(quantile: &Quantile, digits: Digits) -> String {
    if quantile.probability >= 0.9 && !quantile.is_supported.unwrap_or(false) {
        return format!("needs {} independent values", needed_for(quantile.probability));
    }
    if let Some(effective) = correlated(quantile) {
        return format!("worth {} independent values", significant(effective.effective_n, 3));
    }
    let bound = quantile.upper_bound.filter(|_| quantile.probability >= 0.9);
    bound.map_or(String::new(), |bound| format!("at most {}, one-sided", digits.number(bound.value)))
}

fn over_runs(grid: &mut Grid, runs: &AcrossRuns, digits: Digits) {
    let interval = |estimate: Option<Estimate>| {
        estimate.and_then(shown).map_or(String::new(), |interval| digits.interval(interval))
    };
    for quantile in &runs.quantiles {
        let Some(estimate) = quantile.estimate else { continue };
        let is_tail = quantile.probability >= 0.9 && !quantile.is_supported;
        let sign = if is_tail { ">= " } else { "" };
        let remark = match quantile.probability {
            0.5 => format!("middle half of {}", count(runs.count as u64, "run median")),
            probability if is_tail => format!("needs {} independent values per run", needed_for(probability)),
            _ => String::new(),
        };
        let number = format!("{sign}{}", digits.number(estimate.value));
        grid.row(quantile_name(quantile.probability), number, interval(Some(estimate)), remark);
        let bootstrap = match quantile.probability {
            0.5 => runs.bootstrap_median,
            0.99 => runs.bootstrap_p99,
            _ => None,
        };
        if let Some(found) = bootstrap {
            grid.row("", "", digits.interval(found.interval), "two-level bootstrap");
        }
    }
    if let Some(levels) = &runs.two_level {
        let shown = Some(levels.interval).filter(|_| levels.runs >= MINIMUM_RUNS);
        let interval = shown.map_or(String::new(), |interval| digits.interval(interval));
        grid.row("mean", digits.number(levels.mean_of_run_means), interval, "mean of the run means");
        grid.row("sd within runs", digits.number(levels.s1_squared.max(0.0).sqrt()), "", "");
        let share = levels.intraclass_correlation.map(|share| format!("{} of the variance of a value", percent(share)));
        let between = digits.number(levels.t2_squared.max(0.0).sqrt());
        grid.row("sd between runs", between, "", share.unwrap_or_default());
    }
}

fn outliers(classes: &TukeyClasses) -> String {
    let counts = [
        (classes.low_severe, "far below"),
        (classes.low_mild, "below"),
        (classes.high_mild, "above"),
        (classes.high_severe, "far above"),
    ];
    let parts: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, place)| format!("{n} {place}")).collect();
    if parts.is_empty() { String::new() } else { format!("{}; none removed", parts.join(", ")) }
}

fn modes(modality: &Modality, digits: Digits) -> String {
    let mode = |mode: &Mode| format!("{} ({})", digits.number(mode.position), percent(mode.mass));
    let places: Vec<String> = modality.modes.iter().map(mode).collect();
    if places.len() > 1 { format!("at {}", places.join(", ")) } else { String::new() }
}

/// What a reader should know before he uses the numbers.
pub(super) fn notes(description: &Description, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(header) = &description.header {
        notes.push(format!("{}: first line read as the column name: {}", description.source, printable(header)));
    }
    for (code, runs) in &description.warnings {
        let of_runs = description.runs.as_ref().filter(|all| all.count > 1 && *runs < all.count);
        let place = of_runs.map_or(String::new(), |all| format!(" ({runs} of {} runs)", all.count));
        let name = if findings.series.len() > 1 { format!("{}: ", description.source) } else { String::new() };
        notes.extend(code.text().stat.as_ref().map(|seen| format!("{name}{seen}{place} [{code}]")));
    }
    notes
}

/// What the intervals of a single series mean, and what it would take to narrow them.
pub(super) fn meaning(description: &Description) -> Vec<String> {
    match (&description.runs, &description.precision) {
        (Some(runs), _) => {
            let plan = runs.planning.and_then(|plan| {
                let length = plan.values.map(|values| format!(" of {}", count(values as u64, "value")));
                let needed = match plan.runs {
                    Some(needed) if needed <= runs.count => return None,
                    Some(needed) => format!("about {needed} runs"),
                    None => format!("more than {MOST_RUNS} runs"),
                };
                Some(format!("± 1 % of the estimate needs {needed}{}.", length.unwrap_or_default()))
            });
            let level = "Intervals are over runs: the values of one run count as one observation.".to_owned();
            std::iter::once(level).chain(plan).collect()
        }
        (None, Some(precision)) => {
            let mut sentences = vec![
                "If all values are from one process, they are one observation: another process may differ by more than \
                 the interval. Give values as runs (an array of arrays) to see by how much."
                    .to_owned(),
            ];
            let needed = precision.values_for_one_percent.filter(|needed| *needed > description.n);
            sentences
                .extend(needed.map(|needed| format!("± 1 % of the mean needs about {needed} independent values.")));
            sentences
        }
        (None, None) => Vec::new(),
    }
}
