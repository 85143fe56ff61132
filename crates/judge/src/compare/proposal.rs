//! From a record to the next one: how many runs, and samples in each, a wanted precision takes (method 4.3).

use serde::Serialize;

use super::Judged;
use crate::summary::CONFIDENCE;
use base::metric;
use experiment::{PrecisionStop, Runs, Stop};
use plan::Plan;
use record::{Manifest, Outcome, RunKind, StoreError, StoredRun};
use statistics::interim::{Analysis, InterimAnalyses};
use statistics::pilot::{Pilot, typical};
use statistics::planning::{PairedPilot, blocks_for_effect};
use statistics::trimmed_mean::trimmed_mean;

/// What one cell needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// Path of the cell.
    pub cell: String,
    /// Runs of the record.
    pub runs_now: usize,
    /// Samples of a run, on average.
    pub samples_now: usize,
    /// Half width of the 95 % interval that the record's runs are expected to give, relative to the estimate.
    pub precision_now: Option<f64>,
    /// Samples in each run that buy the most precision for the time; those of the record where runs add no variance.
    pub samples: usize,
    /// Runs; `None` where no reasonable number is enough.
    pub runs: Option<usize>,
    /// Expected time of all of them, in seconds.
    pub seconds: Option<f64>,
}

/// What one comparison needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needed {
    /// Path of the cell.
    pub cell: String,
    /// Blocks of the record.
    pub blocks_now: usize,
    /// The relative effect that they find with 80 % power.
    pub detectable_now: Option<f64>,
    /// Blocks until an effect of twice the margin is found with 80 % power, where runs go by need; `None` where no
    /// reasonable number is enough.
    pub blocks: Option<usize>,
}

/// What every cell that completed at least two runs needs for a relative half width of `relative`.
///
/// # Errors
///
/// Samples that cannot be read.
pub fn propose(manifest: &Manifest, runs: &[StoredRun], relative: f64) -> Result<Vec<Proposal>, StoreError> {
    let plan = &manifest.plan;
    let bounds = match manifest.experiment.measure.stop {
        Stop::Precision(PrecisionStop { min_samples, max_samples, .. }) => min_samples as usize..=max_samples as usize,
        Stop::Samples(_) | Stop::Time(_) => 5..=100_000,
    };
    let completed_runs = |cell: &plan::Cell| {
        let is_of = |run: &&StoredRun| run.cell == cell.id && run.kind == RunKind::Main;
        let completed = runs.iter().filter(is_of).filter(|run| run.outcome == Outcome::Completed);
        completed.map(Run::of).collect::<Result<Vec<_>, StoreError>>()
    };
    let mut proposals = Vec::new();
    for (_, cell) in plan.runnable() {
        proposals.extend(proposal(plan.path(cell), completed_runs(cell)?, bounds.clone(), relative));
    }
    Ok(proposals)
}

/// The number of runs that serves every cell, with the expected seconds of all of them; `None` where no number is enough
/// for one of the cells.
pub fn for_every_cell(proposals: &[Proposal]) -> Option<(usize, f64)> {
    let wanted: Vec<usize> = proposals.iter().map(|proposal| proposal.runs).collect::<Option<_>>()?;
    let runs = wanted.into_iter().max()?;
    let seconds = |proposal: &Proposal| Some(proposal.seconds? / proposal.runs? as f64 * runs as f64);
    Some((runs, proposals.iter().filter_map(seconds).sum()))
}

/// What every comparison needs: how `runs` should be bounded; `None` where no reasonable number is enough for one of them,
/// and where there is none.
pub fn for_every_comparison(needed: &[Needed]) -> Option<Runs> {
    let blocks: Vec<usize> = needed.iter().map(|needed| needed.blocks).collect::<Option<_>>()?;
    let most = u32::try_from(blocks.into_iter().max()?).ok()?;
    Some(Runs { max: most.max(Runs::AUTO.max), ..Runs::AUTO })
}

fn proposal(cell: String, runs: Vec<Run>, bounds: std::ops::RangeInclusive<usize>, relative: f64) -> Option<Proposal> {
    let runs_now = runs.len();
    let (before, samples): (Vec<f64>, Vec<f64>) = runs.iter().map(|run| (run.before_s, run.samples_s)).unzip();
    let pilot = Pilot::of(runs.into_iter().map(|run| run.durations))?;
    let of_run = typical(&before).unwrap_or(0.0);
    let of_sample = typical(&samples).unwrap_or(0.0) / (pilot.values as f64).max(1.0);
    let samples = pilot.best_values(of_sample, of_run, bounds).unwrap_or(pilot.values);
    let wanted = pilot.runs(samples, relative);
    Some(Proposal {
        cell,
        runs_now,
        samples_now: pilot.values,
        precision_now: trimmed_mean(&pilot.medians, CONFIDENCE)?
            .relative_half_width()
            .filter(|precision| precision.is_finite()),
        samples,
        runs: wanted,
        seconds: wanted.map(|runs| runs as f64 * (of_run + of_sample * samples as f64)),
    })
}

/// What a run says about the next ones.
struct Run {
    durations: Vec<f64>,
    /// Seconds until its counted samples begin, and of these.
    before_s: f64,
    samples_s: f64,
}

impl Run {
    fn of(run: &StoredRun) -> Result<Self, StoreError> {
        let samples = run.samples()?;
        let value = |metric: metric::Metric| run.data.metrics.get(metric.name).copied().unwrap_or(0.0);
        let start = value(metric::SPAWN) + value(metric::LOAD) + value(metric::FIRST_INFERENCE);
        Ok(Run {
            durations: samples.durations().collect(),
            before_s: (start + samples.warmup.span_ns() as f64) / 1e9,
            samples_s: samples.active_ns() as f64 / 1e9,
        })
    }
}

/// What is larger than a margin by the margin itself.
fn twice(margin: f64) -> f64 {
    (1.0 + margin).powi(2) - 1.0
}

/// What every judged comparison needs to find an effect of twice its margin, by which it also finds sameness as often.
pub fn blocks_needed(plan: &Plan, judged: &Judged) -> Vec<Needed> {
    let needed = judged.comparisons.iter().filter_map(|comparison| {
        let (blocks_now, margin) = (comparison.blocks as usize, comparison.margin);
        let pilot = PairedPilot { winsorised_deviation: comparison.deviation?, blocks: blocks_now, margin };
        Some(Needed {
            cell: plan.path(plan.cells.iter().find(|cell| cell.id == comparison.cell)?),
            blocks_now,
            detectable_now: comparison.detectable,
            blocks: blocks_for_effect(pilot, twice(margin), analysis_by_need),
        })
    });
    needed.collect()
}

/// The analysis of so many blocks, where as many are the most that are allowed and `auto` allows its own.
fn analysis_by_need(blocks: usize) -> Analysis {
    let most = u32::try_from(blocks).unwrap_or(u32::MAX).max(Runs::AUTO.max);
    InterimAnalyses::new(Runs::AUTO.min, most).analysis_of(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker::RunData;
    use worker::measure::Samples;

    fn run(number: u32, level: u64) -> StoredRun {
        let cell = "0123456789abcdef".parse().expect("an id");
        let mut measured = Samples::default();
        for index in 0..100_u64 {
            measured.start_ns.push(index * 2_000_000);
            // A spread of 20 % within a run, whatever its level.
            measured.duration_ns.push(level + (index * 37 % 100) * level / 500);
            measured.input.push(0);
        }
        let data = RunData { measured, ..RunData::default() };
        StoredRun { data, ..StoredRun::not_started(cell, RunKind::Main, number, 0, Outcome::Completed) }
    }

    #[test]
    fn the_cell_that_needs_the_most_runs_decides_for_all() {
        let proposal = |runs: Option<usize>| Proposal {
            cell: String::new(),
            runs_now: 5,
            samples_now: 100,
            precision_now: None,
            samples: 100,
            runs,
            seconds: runs.map(|runs| runs as f64 * 2.0),
        };
        assert_eq!(for_every_cell(&[proposal(Some(5)), proposal(Some(20))]), Some((20, 80.0)));
        assert_eq!(for_every_cell(&[proposal(Some(5)), proposal(None)]), None);
        assert_eq!(for_every_cell(&[]), None);
    }

    #[test]
    fn comparisons_ask_for_more_than_auto_where_that_is_not_enough() {
        let needed = |blocks| Needed { cell: String::new(), blocks_now: 12, detectable_now: None, blocks };
        assert_eq!(for_every_comparison(&[needed(Some(5)), needed(Some(32))]), Some(Runs::AUTO));
        assert_eq!(for_every_comparison(&[needed(Some(5)), needed(Some(50))]), Some(Runs { min: 8, max: 50 }));
        assert_eq!((for_every_comparison(&[needed(Some(5)), needed(None)]), for_every_comparison(&[])), (None, None));
        assert!((analysis_by_need(5).confidence(5) - (1.0 - 0.05 / 15.0)).abs() < 1e-12);
    }

    fn proposed(runs: &[StoredRun], relative: f64) -> Proposal {
        let runs = runs.iter().map(Run::of).collect::<Result<_, _>>().expect("samples in memory");
        proposal("m".to_owned(), runs, 50..=100_000, relative).expect("samples")
    }

    #[test]
    fn one_disturbed_run_of_ten_changes_little() {
        let proposed_with = |last: u64| {
            let levels = [1_000, 1_010, 995, 1_004, 1_012, 990, 1_001, 1_007, 998, last].map(|level| level * 1_000);
            let runs: Vec<StoredRun> = levels.iter().zip(0..).map(|(level, number)| run(number, *level)).collect();
            proposed(&runs, 0.01)
        };
        let (quiet, disturbed) = (proposed_with(1_002), proposed_with(3_000));
        let (few, more) = (quiet.runs.expect("a number"), disturbed.runs.expect("a number"));
        assert!((5..30).contains(&few) && more >= few && more <= 2 * few, "{quiet:?} {disturbed:?}");
        assert!(disturbed.precision_now < Some(0.02), "{disturbed:?}");
    }

    #[test]
    fn runs_that_differ_ask_for_more_runs_and_not_for_longer_ones() {
        let runs: Vec<StoredRun> = [1_000_000, 1_100_000, 950_000, 1_050_000, 1_000_000]
            .iter()
            .zip(0..)
            .map(|(level, k)| run(k, *level))
            .collect();
        let (coarse, fine) = (proposed(&runs, 0.05), proposed(&runs, 0.01));
        assert_eq!((coarse.runs_now, coarse.samples_now, coarse.samples), (5, 100, 50));
        assert!(fine.runs > coarse.runs && fine.runs > Some(50), "{fine:?}");
        assert!(fine.seconds > coarse.seconds);
    }

    #[test]
    fn runs_that_agree_ask_for_the_fewest() {
        let runs: Vec<StoredRun> = (0..5).map(|number| run(number, 1_000_000)).collect();
        let agreed = proposed(&runs, 0.05);
        assert_eq!((agreed.runs, agreed.samples, agreed.precision_now), (Some(5), 100, Some(0.0)));
    }
}
