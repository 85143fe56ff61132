//! Two series side by side, and what their comparison rests on.

use statistics::permutation::Rearrangements;
use statistics::{Interval, Magnitude, NullDistribution, PermutationTest, RatioBounds, UsualRules};

use super::grid::{Alignment, Grid, hundredths, p_value, shortened, significant};
use super::one;
use super::words::quantile_name;
use crate::report::format::{percent, ratio};
use crate::stat::{Contrast, Description, Findings, Level, Reason};

/// A longer unit makes the first column wider than its names.
const LONGEST_UNIT: usize = 8;

/// The sides with the numbers that people compare by eye.
pub(super) fn sides(findings: &Findings, names: [&str; 2], width: usize) -> String {
    let [baseline, candidate] = [&findings.series[0], &findings.series[1]];
    // One number of decimals for both, the one that the noisier side supports.
    let [first, second] = [baseline, candidate].map(one::digits);
    let digits = first.coarser(second);
    let mut grid = Grid::default();
    grid.row(shortened(one::unit(findings).trim(), LONGEST_UNIT), names[0], names[1], "");
    let mut both = |label: String, statistic: &dyn Fn(&Description) -> Option<String>| {
        let text = |description| statistic(description).unwrap_or_default();
        grid.row(label, text(baseline), text(candidate), "");
    };
    if baseline.runs.is_some() {
        both("runs".to_owned(), &|side| Some(side.runs.as_ref()?.count.to_string()));
    }
    both("values".to_owned(), &|side| Some(side.n.to_string()));
    both("median".to_owned(), &|side| {
        let over_runs = side.runs.as_ref().and_then(|runs| runs.estimate).map(|estimate| estimate.value);
        over_runs.or(side.robust.median).map(|median| digits.number(median))
    });
    both("mean".to_owned(), &|side| side.moments.mean.map(|mean| digits.number(mean)));
    for probability in [0.95, 0.99] {
        let value = |side: &Description| percentile(side, probability).map(|value| digits.number(value));
        both(quantile_name(probability), &value);
    }
    both("sd".to_owned(), &|side| side.moments.standard_deviation.map(|deviation| digits.number(deviation)));
    both("cv".to_owned(), &|side| side.moments.coefficient_of_variation.map(percent));
    grid.render(width, Alignment::Right)
}

/// A tail percentile that the values support.
fn percentile(side: &Description, probability: f64) -> Option<f64> {
    if let Some(runs) = &side.runs {
        let quantile = runs.quantiles.iter().find(|quantile| quantile.probability == probability)?;
        return quantile.estimate.filter(|_| quantile.is_supported).map(|estimate| estimate.value);
    }
    let quantile = side.quantile(probability)?;
    quantile.value.filter(|_| quantile.is_supported == Some(true))
}

/// Ratios, tests and effect sizes.
pub(super) fn evidence(contrast: &Contrast, findings: &Findings, width: usize) -> String {
    let mut grid = Grid::default();
    ratios(&mut grid, contrast);
    tests(&mut grid, contrast, findings);
    sizes(&mut grid, contrast, findings);
    grid.render(width, Alignment::Left)
}

fn ratios(grid: &mut Grid, contrast: &Contrast) {
    let mut label = "ratio";
    let mut row = |value: f64, interval: Option<Interval>, remark: &str| {
        let text = ratio(value, interval);
        let (number, interval) = text.split_once(' ').unwrap_or((&text, ""));
        grid.row(std::mem::take(&mut label), number, interval, remark);
    };
    if let Some(found) = contrast.ratio {
        let remark = match (&contrast.paired, contrast.observations.level) {
            _ if contrast.reason.is_some_and(Reason::is_dependence) => "as if the observations were independent",
            (Some(_), Level::Values) => "by pairs of values; basis of the verdict",
            (Some(_), Level::Runs) => "by pairs of runs; basis of the verdict",
            (None, Level::Values) => "of middle halves; basis of the verdict",
            (None, Level::Runs) => "of middle halves of run medians; basis of the verdict",
        };
        row(found.value, found.interval, remark);
    }
    let ratios = &contrast.ratios;
    if let Some(means) = ratios.means {
        let remark = match means.fieller {
            RatioBounds::Bounded(_) => "of means (Fieller)",
            RatioBounds::Unbounded => "of means; no interval, since the baseline may be zero",
        };
        row(means.ratio, means.fieller.interval(), remark);
    }
    let of_runs = contrast.observations.level == Level::Runs;
    for (found, remark) in [
        (
            ratios.bootstrap_medians,
            if of_runs { "of run medians, two-level bootstrap" } else { "of medians, bootstrap" },
        ),
        (ratios.bootstrap_p99, "of the runs' 99th percentiles, two-level bootstrap"),
    ] {
        if let Some(found) = found {
            row(found.value, Some(found.interval), remark);
        }
    }
}

fn tests(grid: &mut Grid, contrast: &Contrast, findings: &Findings) {
    let tests = &contrast.tests;
    let margin = percent(findings.terms.margin);
    let permutation = |test: PermutationTest| match test.rearrangements {
        Rearrangements::All => format!("all {} rearrangements", test.total),
        Rearrangements::Random => format!("{} random rearrangements", test.total),
    };
    let ranks = |exact: bool| if exact { "exact" } else { "normal approximation" };
    let rank_sum = tests.mann_whitney.map(|test| (test.p, ranks(test.null_distribution == NullDistribution::Exact)));
    let minimum = contrast.paired.and_then(|paired| paired.minimum_effect);
    let minimum = minimum.or_else(|| contrast.unpaired.and_then(|unpaired| unpaired.minimum_effect));
    let rows: [(&str, Option<(f64, String)>); 8] = [
        ("Student's t", tests.paired_t.map(|test| (test.p, "on log ratios of pairs".to_owned()))),
        ("signed ranks", tests.signed_rank.map(|test| (test.p, "Wilcoxon, on log ratios of pairs".to_owned()))),
        ("sign flips", tests.sign_flip.map(|test| (test.p, permutation(test)))),
        ("Welch's t", tests.welch.filter(|_| contrast.paired.is_none()).map(|test| (test.p, String::new()))),
        ("Mann-Whitney", rank_sum.filter(|_| contrast.paired.is_none()).map(|(p, how)| (p, how.to_owned()))),
        ("permutation", tests.permutation.map(|test| (test.p, permutation(test)))),
        ("beyond margin", minimum.map(|test| (test.p_min_effect, format!("null hypothesis: at most {margin}")))),
        ("equivalence", tests.equivalence.map(|test| (test.p, format!("null hypothesis: at least {margin}")))),
    ];
    for (label, found) in rows {
        if let Some((p, remark)) = found {
            grid.row(label, format!("p {}", p_value(p)), "", remark);
        }
    }
}

fn sizes(grid: &mut Grid, contrast: &Contrast, findings: &Findings) {
    let sizes = &contrast.effect_sizes;
    if let Some(delta) = sizes.cliffs_delta {
        let word = match delta.magnitude {
            Magnitude::Negligible => "negligible",
            Magnitude::Small => "small",
            Magnitude::Medium => "medium",
            Magnitude::Large => "large",
        };
        let remark = format!("{word}; the candidate is larger in {} of all pairings", percent(delta.a12));
        grid.row("Cliff's delta", hundredths(delta.delta), "", remark);
    }
    if let Some(effect) = sizes.hedges_g {
        grid.row("Hedges' g", hundredths(effect.g), "", "difference of means in standard deviations");
    }
    if let Some(shift) = sizes.hodges_lehmann_shift {
        let remark = format!("Hodges-Lehmann, candidate less baseline{}", in_unit(findings));
        grid.row("shift", significant(shift, 2), "", remark);
    }
}

fn in_unit(findings: &Findings) -> String {
    let unit = one::unit(findings);
    if unit.is_empty() { String::new() } else { format!(", in{unit}") }
}

/// What usual rules would report.
pub(super) fn usual(rules: &UsualRules, width: usize) -> String {
    let mut grid = Grid::default();
    let word = |reports: bool| if reports { "a difference" } else { "none" };
    if let Some(rule) = rules.pooled_mann_whitney {
        grid.row("Mann-Whitney on all values", word(rule.reports_difference), format!("p {}", p_value(rule.p)), "");
    }
    if let Some(rule) = rules.pooled_overlap {
        grid.row("overlap of 95 % intervals of all values", word(rule.reports_difference), "", "");
    }
    if let Some(rule) = rules.pooled_change {
        let change = ratio(rule.change + 1.0, Some(rule.interval.map(|bound| bound + 1.0)));
        grid.row("bootstrap of the mean of all values, 1 %", word(rule.reports_difference), change, "criterion.rs");
    }
    if let Some(rule) = rules.run_median_mann_whitney {
        let p = format!("p {}", p_value(rule.p));
        grid.row("Mann-Whitney on run medians", word(rule.reports_difference), p, "google/benchmark");
    }
    grid.render(width, Alignment::Left)
}

/// What the comparison takes for granted.
pub(super) fn meaning(contrast: &Contrast, findings: &Findings) -> Vec<String> {
    let mut sentences = Vec::new();
    if contrast.observations.level == Level::Values {
        sentences.push(
            "Each value counts as an independent observation. Values of one process are not: give runs instead (an array \
             of arrays), or one value for each process."
                .to_owned(),
        );
    }
    if contrast.unpaired.is_some() {
        let spread = findings.terms.session_spread;
        sentences.push(if spread > 0.0 {
            let spread = percent(spread);
            format!("Assumes separate measurements, where identical code differs by {spread}; `--interleaved` if not.")
        } else {
            "Assumes interleaved measurements; `--paired` detects smaller differences.".to_owned()
        });
    }
    sentences
}
