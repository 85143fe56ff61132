//! How long an experiment will take, in a line, and who says so in another.

use std::fmt::{Result, Write};

use crate::ui::duration;
use base::quantity::Nanos;
use experiment::{Experiment, Profiling, Runs};
use plan::{Cell, CellForecast, Plan, Source, TimeRange, estimate_before_measuring};
use report::format::count;

/// What is known of each cell is by its index.
pub(super) fn describe(
    text: &mut String,
    experiment: &Experiment,
    plan: &Plan,
    expected: &[Option<CellForecast>],
) -> Result {
    let cells = plan.runnable().count() as u64;
    if cells == 0 {
        return writeln!(text, "\ntime\n  every cell is skipped; there is nothing to measure");
    }
    let controls = match plan.controls.len() as u64 {
        0 => String::new(),
        controls => format!(" and {}", count(controls, "control")),
    };
    let runs = Runs { min: experiment.runs.min.min(plan.runs), max: plan.runs };
    let runs = if experiment.interim_analyses().is_one() { Runs::fixed(plan.runs) } else { runs };
    let estimate = |runs: u32| estimate_before_measuring(experiment, plan, runs, expected);
    let known = plan.runnable().filter_map(|(cell, _)| expected.get(cell).copied().flatten()).collect::<Vec<_>>();
    let times = match known.is_empty() {
        true => between(TimeRange { least: estimate(runs.min).least, most: estimate(runs.max).most }),
        false => by_need(experiment, runs, &estimate),
    };
    let word = if runs.max == 1 { "run" } else { "runs" };
    writeln!(text, "\ntime\n  {}{controls} x {runs} {word}: {times}", count(cells, "cell"))?;
    writeln!(text, "  {}", basis(&known, cells))?;
    match experiment.profile {
        Some(profiling) => writeln!(text, "  {}", profile(profiling, plan, expected)),
        None => Ok(()),
    }
}

/// `profile: 20 more processes, about 26 s`, where something is known of each cell.
fn profile(profiling: Profiling, plan: &Plan, expected: &[Option<CellForecast>]) -> String {
    const WARMUP_AND_SAMPLES: Nanos = Nanos::from_millis(800);
    let each = 2 * u64::from(profiling.processes);
    let time = |(cell, _): (usize, &Cell)| {
        let CellForecast { start, sample, .. } = expected.get(cell).copied().flatten()?;
        let sampling = sample.0.saturating_mul(profiling.inferences.into()).max(WARMUP_AND_SAMPLES.0);
        Some(start.0.saturating_add(sampling).saturating_mul(each))
    };
    let processes = format!("{} more processes", each * plan.runnable().count() as u64);
    match plan.runnable().map(time).try_fold(0_u64, |sum, time| Some(sum.saturating_add(time?))) {
        Some(all) => format!("profile: {processes}, about {}", duration(Nanos(all).to_duration())),
        None => format!("profile: {processes}"),
    }
}

/// `about 1m 40s (8 runs 1m 10s, 32 runs 4m 30s)`, and without the parenthesis where the number is fixed.
fn by_need(experiment: &Experiment, runs: Runs, estimate: &dyn Fn(u32) -> TimeRange) -> String {
    if runs.are_fixed() {
        return about(estimate(runs.max));
    }
    let typical = experiment.interim_analyses().typical();
    let bound = |runs: u32| format!("{} {}", count(u64::from(runs), "run"), shown(estimate(runs)));
    format!("{} ({}, {})", about(estimate(typical)), bound(runs.min), bound(runs.max))
}

/// `about 1m 40s`, or bounds.
pub(super) fn about(range: TimeRange) -> String {
    if range.is_one() { format!("about {}", shown(range)) } else { between(range) }
}

/// The middle of what is one number, else bounds.
fn shown(range: TimeRange) -> String {
    if range.is_one() { duration(range.typical().to_duration()) } else { between(range) }
}

fn between(range: TimeRange) -> String {
    format!("{} to {}", duration(range.least.to_duration()), duration(range.most.to_duration()))
}

/// Who says so.
fn basis(known: &[CellForecast], cells: u64) -> String {
    let count_of = |source: Source| known.iter().filter(|expected| expected.source == source).count() as u64;
    let (reports, costs) = (count_of(Source::Report), count_of(Source::Costs));
    let by = match (reports, costs) {
        (0, 0) => return "bounds only; the rehearsal at the start of a run estimates it".to_owned(),
        (_, 0) => "from earlier reports of this machine".to_owned(),
        (0, _) => "from the cost of the models and the speed of this machine".to_owned(),
        _ => format!("from earlier reports of this machine, and for {} from its cost", count(costs, "cell")),
    };
    match cells.saturating_sub(reports + costs) {
        0 => format!("{by}; the rehearsal refines it"),
        open => format!("{by}; nothing is known about {}", count(open, "cell")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(runs: &str, known: &[(u64, Source)]) -> Vec<String> {
        let text = format!("backend: mock\nmodels: [m]\nvariants: [a, {{ name: b, threads: 1 }}]\n{runs}");
        let loaded = spec::parse("x.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        let prepared = crate::run::prepare(&loaded.experiment).expect("a plan");
        let expected = known.iter().map(|(millis, source)| {
            let (start, sample) = (Nanos::from_millis(40), Nanos::from_millis(*millis));
            Some(CellForecast { start, sample, noise: 0.0, source: *source })
        });
        let mut text = String::new();
        let expected: Vec<Option<CellForecast>> = expected.collect();
        describe(&mut text, &loaded.experiment, &prepared.plan, &expected).expect("a String takes every text");
        text.lines().skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn what_is_known_is_a_number_for_the_typical_the_fewest_and_the_most_runs() {
        let known = [(1, Source::Report), (20, Source::Report)];
        let expected = [
            "  2 cells and 1 control x 8 to 32 runs: about 39 s (8 runs 26 s, 32 runs 1m 43s)",
            "  from earlier reports of this machine; the rehearsal refines it",
        ];
        assert_eq!(lines("", &known), expected);
        let known = [(1, Source::Report), (20, Source::Costs)];
        let expected = [
            "  2 cells and 1 control x 12 runs: about 39 s",
            "  from earlier reports of this machine, and for 1 cell from its cost; the rehearsal refines it",
        ];
        assert_eq!(lines("runs: 12", &known), expected);
    }

    #[test]
    fn a_profile_takes_processes_more() {
        let known = [(1, Source::Report), (100, Source::Report)];
        let last = |known: &[(u64, Source)]| lines("measure: { profile: true }", known).last().cloned();
        assert_eq!(last(&known).as_deref(), Some("  profile: 20 more processes, about 28 s"));
        assert_eq!(last(&known[..1]).as_deref(), Some("  profile: 20 more processes"));
    }

    #[test]
    fn what_is_not_known_is_a_range() {
        let expected = [
            "  2 cells and 1 control x 8 to 32 runs: 20 s to 16m 05s",
            "  bounds only; the rehearsal at the start of a run estimates it",
        ];
        assert_eq!(lines("", &[]), expected);
        let expected = [
            "  2 cells and 1 control x 1 run: 3.1 s to 21 s",
            "  from the cost of the models and the speed of this machine; nothing is known about 1 cell",
        ];
        assert_eq!(lines("runs: 1", &[(1, Source::Costs)]), expected);
    }
}
