//! `compare`, `runs` and `require`: the baseline's names, margins, and what must be so beforehand.

use super::{measure, selection};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{CompareForm, MarginForm, RequireForm};
use base::quantity::Ratio;
use experiment::{Compare, Device, Grade, Margin, Require, Runs, Selector, Space};
use reading::nearest::list;

/// Reads `compare`.
pub(super) fn expand(form: &CompareForm, axes: &Space, check: &mut Check<'_>) -> Compare {
    let top = DocumentPath::top("compare");
    let place = top.key("baseline");
    let vocabulary = axes.vocabulary();
    let baseline = form.baseline.as_ref().map(|form| selection::expand(form, &place, &vocabulary, check));
    if let Some(baseline) = &baseline {
        check_baseline(baseline, axes, &place, check);
    }
    Compare { baseline, margin: margin(&form.margin, &top.key("margin"), check), aa: form.aa }
}

/// A baseline on axes of one entry each has nothing to be compared with.
fn check_baseline(baseline: &Selector, axes: &Space, place: &DocumentPath, check: &mut Check<'_>) {
    if !axes.are_complete() || check.is_damaged(place) || !axes.compared(Some(baseline)).is_empty() {
        return;
    }
    let named: Vec<&str> = baseline.axes().into_iter().map(|axis| axis.plural()).collect();
    let have = if named.len() == 1 { "has one entry" } else { "have one entry each" };
    let message = format!("nothing is compared with this baseline: {} {have}", list(&named, "and"));
    check.warn(place, message, "cells are compared that differ on the axes which the baseline names, and on no other");
}

/// Without a margin of their own, tails have the wider one of 5 % and the other (method 6.1).
fn margin(form: &MarginForm, place: &DocumentPath, check: &mut Check<'_>) -> Margin {
    let unasked = Margin::default();
    let (default, tail) = match form {
        MarginForm::Ratio(default) => {
            measure::open_ratio(*default, place, check);
            (*default, None)
        }
        MarginForm::Form(form) => {
            for (key, ratio) in [("default", form.default), ("tail", form.tail)] {
                ratio.into_iter().for_each(|ratio| measure::open_ratio(ratio, &place.key(key), check));
            }
            (form.default.unwrap_or(unasked.default), form.tail)
        }
    };
    Margin { default, tail: tail.unwrap_or(Ratio(default.0.max(unasked.tail.0))) }
}

/// Checks `runs`.
pub(super) fn runs(Runs { min, max }: Runs, check: &mut Check<'_>) -> Runs {
    let (min, max) = measure::bounds([("min", min), ("max", max)], &DocumentPath::top("runs"), check);
    Runs { min, max }
}

/// Reads `require`, and refuses what it asks of GPUs where nothing is measured on one.
pub(super) fn require(form: &RequireForm, devices: &[Device], check: &mut Check<'_>) -> Require {
    let place = DocumentPath::top("require");
    let asked = [("gpu_clocks", form.gpu_clocks.is_some()), ("foreign_processes", form.foreign_processes.is_some())];
    let is_met_by_nothing = !check.is_damaged(&DocumentPath::top("devices")) && !devices.iter().any(Device::is_nvidia);
    for (key, _) in asked.iter().filter(|(_, is_asked)| *is_asked && is_met_by_nothing) {
        let message = format!("`{key}` is for NVIDIA GPUs, but `devices` has none");
        check.error(&place.key(key), message, "leave it out, or add `cuda` to `devices`".to_owned());
    }
    Require {
        grade: form.grade.map(Grade::from),
        quiet: form.quiet,
        gpu_clocks_locked: form.gpu_clocks.is_some(),
        no_foreign_processes: form.foreign_processes.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, mock_with, warnings};
    use base::quantity::Nanos;
    use experiment::Aa;

    use super::*;

    #[test]
    fn unsaid_comparisons_are_those_of_the_design() {
        let experiment = mock("");
        assert_eq!(experiment.compare, Compare::default());
        assert_eq!((experiment.budget, experiment.require), (None, Require::default()));
    }

    #[test]
    fn a_single_margin_is_that_of_tails_too_where_it_is_wider() {
        let margin = |text: &str| {
            let margin = mock(&format!("compare: {{ margin: {text} }}")).compare.margin;
            (margin.default.0, margin.tail.0)
        };
        assert_eq!(margin("1%"), (0.01, 0.05));
        assert_eq!(margin("0.08"), (0.08, 0.08));
        assert_eq!(margin("{ default: 8% }"), (0.08, 0.08));
        assert_eq!(margin("{ tail: 3% }"), (0.02, 0.03));
        assert_eq!(margin("{ default: 8%, tail: 3% }"), (0.08, 0.03));
    }

    #[test]
    fn overrides_reach_into_every_shape() {
        let margin = |text: &str, overrides: &[&str]| {
            let margin = mock_with(text, overrides).compare.margin;
            (margin.default.0, margin.tail.0)
        };
        assert_eq!(margin("", &["compare.margin.default=3%"]), (0.03, 0.05));
        assert_eq!(margin("compare: { margin: 1% }", &["compare.margin.tail=4%"]), (0.01, 0.04));
        assert_eq!(margin("compare: { margin: { tail: 4% } }", &["compare.margin=6%"]), (0.06, 0.06));
        let set = ["compare.aa=off", "budget=10m", "require.grade=B", "compare.baseline.model=any"];
        let experiment = mock_with("", &set);
        assert_eq!(experiment.compare.aa, Aa::Off);
        assert_eq!(experiment.compare.baseline.map(|baseline| baseline.to_string()).as_deref(), Some("model=any"));
        assert_eq!((experiment.budget, experiment.require.grade), (Some(Nanos::from_secs(600)), Some(Grade::B)));
    }

    #[test]
    fn a_baseline_without_a_candidate_is_warned_of() {
        assert_eq!(
            warnings("compare: { baseline: { variant: fp32, device: cpu } }"),
            ["nothing is compared with this baseline: `variants` and `devices` have one entry each"]
        );
        assert!(warnings("variants: [a, b]\ncompare: { baseline: { variant: a } }").is_empty());
        assert!(warnings("inputs: { batch: [1, 8] }\ncompare: { baseline: { batch: 1 } }").is_empty());
    }
}
