//! What a calibration found: how often identical code was called different here, and how often a known slowdown was
//! found, by perfrun's rule and by the usual ones on the same samples (method 8.2, 8.3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ComparisonRules;
use super::control::typical_spread;
use crate::summary::CONFIDENCE;
use base::metric::MetricReference;
use base::quantity::Ratio;
use experiment::{Design, Grade};
use plan::{Plan, RandomStream};
use record::provenance::{self, Facts};
use record::{Manifest, Outcome, RunKind, StoreError, StoredRun};
use statistics::LogRatio;
use statistics::interval::Interval;
use statistics::moments::mean;
use statistics::naive_comparisons::naive_comparisons;
use statistics::paired::compare_paired;
use statistics::planning::detectable_effect;
use statistics::wilson::wilson_interval;

/// The whole result; `calibration.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of the file.
    pub format: u32,
    /// The experiment that was calibrated for.
    pub experiment: String,
    /// A name for the machine, made of what identifies it.
    pub machine: String,
    /// What identifies it.
    #[serde(default)]
    pub frame: Facts,
    /// In which order the runs of a comparison came.
    pub design: Design,
    /// Runs of each side in one comparison.
    pub runs: u32,
    /// The same in the mean, where runs go by need.
    #[serde(default)]
    pub mean_runs: Option<f64>,
    /// The margin of a verdict.
    pub margin: f64,
    /// The noise of each group's comparisons.
    pub noise: Vec<Noise>,
    /// What a block adds to the error of the log ratio of an A/A comparison, over all groups.
    pub block_deviation: Option<f64>,
    /// The relative effect that twelve blocks find with 80 % power, from all groups together.
    pub in_twelve_blocks: Option<f64>,
    /// The same for the runs of the experiment.
    pub here: Option<f64>,
    /// The machine's grade.
    pub grade: Option<Grade>,
    /// What was found, by true effect; 0 is identical code.
    pub effects: Vec<Effect>,
}

/// The noise floor of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Path of the baseline cell.
    pub cell: String,
    /// How many A/A comparisons there were.
    pub comparisons: usize,
    /// Mean of the estimated log ratios: a bias that A/A comparisons should not have.
    pub bias: Option<f64>,
    /// What a block adds to the error of their log ratio.
    pub block_deviation: Option<f64>,
    /// The relative effect that the runs of the experiment find with 80 % power.
    pub detectable_effect: Option<f64>,
}

/// What every rule said where the true effect was known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// How much slower the copy was made; 0: not at all.
    pub effect: Ratio,
    /// Comparisons of that kind.
    pub comparisons: u64,
    /// Verdicts of perfrun by word.
    pub verdicts: BTreeMap<String, u64>,
    /// perfrun's interval excludes 1, whatever the margin.
    pub detected: Count,
    /// perfrun's verdict is better or worse; of a slower copy, worse.
    pub perfrun: Count,
    /// Mann-Whitney on all iterations, p < 0.05.
    pub pooled_mann_whitney: Count,
    /// 95 % intervals of the means of all iterations do not overlap.
    pub pooled_overlap: Count,
    /// The bootstrap interval of the change of the mean of all iterations is beyond 1 %.
    pub pooled_change: Count,
    /// Mann-Whitney on the medians of runs, p < 0.05.
    pub run_median_mann_whitney: Count,
}

/// How many comparisons a rule called different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Called different.
    pub different: u64,
    /// Of how many for which the rule has a statistic.
    pub of: u64,
    /// Wilson's 95 % interval of the share.
    pub interval: Option<Interval>,
}

impl Count {
    fn of(said: impl Iterator<Item = Option<bool>>) -> Self {
        let (different, of) = said.flatten().fold((0, 0), |(yes, all), is| (yes + u64::from(is), all + 1));
        Count { different, of, interval: wilson_interval(different, of, CONFIDENCE) }
    }
}

/// One comparison of the calibration.
struct Trial {
    effect: Ratio,
    group: usize,
    paired: LogRatio,
    /// What the naive comparisons said, in the order of [`Effect`].
    usual: [Option<bool>; 4],
}

/// Judges the record of a derived experiment ([`experiment::calibration`]); samples are needed.
///
/// # Errors
///
/// Samples that cannot be read.
pub fn calibrate(manifest: &Manifest, runs: &[StoredRun]) -> Result<Calibration, StoreError> {
    let trials = trials(manifest, runs)?;
    let frame = provenance::machine(&manifest.host);
    let identical = || trials.iter().filter(|trial| trial.effect.is_zero());
    let rounds = manifest.plan.rounds.max(1);
    let per_comparison = manifest.plan.runs / rounds;
    let spread = typical_spread(identical().map(|trial| &trial.paired));
    let in_twelve_blocks = spread.and_then(Grade::finds);
    let terms = ComparisonRules::of(manifest);
    let finds = |spread: f64| {
        let margin = terms.margin_of(MetricReference::LATENCY);
        let blocks = per_comparison as usize;
        detectable_effect(spread, blocks, margin, terms.analyses.analysis_of(blocks))
    };
    let mut effects: Vec<Ratio> = manifest.experiment.variants.iter().map(|variant| variant.slowdown).collect();
    effects.sort_by(|a, b| a.0.total_cmp(&b.0));
    effects.dedup();
    Ok(Calibration {
        format: record::FORMAT,
        experiment: manifest.experiment.name.trim_end_matches("-calibration").to_owned(),
        machine: provenance::name_of_machine(&frame),
        frame,
        design: manifest.experiment.measure.design,
        runs: per_comparison,
        mean_runs: mean_runs(manifest, &trials),
        margin: terms.margin_of(MetricReference::LATENCY),
        noise: noise(&manifest.plan, &trials, finds),
        block_deviation: spread,
        in_twelve_blocks,
        here: spread.and_then(finds),
        grade: in_twelve_blocks.map(Grade::of),
        effects: effects.into_iter().map(|effect| summed_up(effect, &trials)).collect(),
    })
}

/// How many blocks a comparison took in the mean; `None` where the number is fixed.
fn mean_runs(manifest: &Manifest, trials: &[Trial]) -> Option<f64> {
    let blocks: Vec<f64> = trials.iter().map(|trial| trial.paired.blocks as f64).collect();
    if manifest.experiment.interim_analyses().is_one() { None } else { mean(&blocks) }
}

/// Every comparison: each copy against its baseline in each round.
fn trials(manifest: &Manifest, runs: &[StoredRun]) -> Result<Vec<Trial>, StoreError> {
    let plan = &manifest.plan;
    let terms = ComparisonRules::of(manifest);
    let margin = terms.margin_of(MetricReference::LATENCY);
    let length = plan.runs / plan.rounds.max(1);
    let mut found = Vec::new();
    let mut sides: BTreeMap<(usize, u32), Vec<&StoredRun>> = BTreeMap::new();
    let index: BTreeMap<_, usize> = plan.cells.iter().enumerate().map(|(index, cell)| (cell.id, index)).collect();
    for run in runs.iter().filter(|run| run.kind == RunKind::Main && run.outcome == Outcome::Completed) {
        if let Some(cell) = index.get(&run.cell) {
            sides.entry((*cell, run.run / length.max(1))).or_default().push(run);
        }
    }
    for ((index, round), candidate) in &sides {
        let cell = &plan.cells[*index];
        let Some(baseline) = plan.baseline_of(cell).filter(|baseline| baseline != index) else { continue };
        let Some(baseline) = sides.get(&(baseline, *round)) else { continue };
        let logs = log_ratios(baseline, candidate);
        let Some(paired) = compare_paired(&logs, margin, terms.analyses.analysis_of(logs.len())) else { continue };
        let seed = RandomStream::Calibration(cell.id, *round).seed(plan.seed);
        found.push(Trial {
            effect: manifest.experiment.variants[cell.variant()].slowdown,
            group: cell.group as usize,
            paired,
            usual: usual(baseline, candidate, seed)?,
        });
    }
    Ok(found)
}

fn log_ratios(baseline: &[&StoredRun], candidate: &[&StoredRun]) -> Vec<f64> {
    let latency =
        |run: &StoredRun| run.data.metrics.get(base::metric::LATENCY.name).copied().filter(|value| *value > 0.0);
    let pair = |run: &&StoredRun| {
        let other = baseline.iter().find(|other| other.run == run.run)?;
        Some(latency(run)?.ln() - latency(other)?.ln())
    };
    candidate.iter().filter_map(pair).collect()
}

fn usual(baseline: &[&StoredRun], candidate: &[&StoredRun], seed: u64) -> Result<[Option<bool>; 4], StoreError> {
    let samples = |runs: &[&StoredRun]| -> Result<Vec<Vec<f64>>, StoreError> {
        runs.iter().map(|run| Ok(run.samples()?.durations().collect())).collect()
    };
    let Some(rules) = naive_comparisons(&samples(baseline)?, &samples(candidate)?, seed) else { return Ok([None; 4]) };
    Ok([
        rules.pooled_mann_whitney.map(|rule| rule.reports_difference),
        rules.pooled_overlap.map(|rule| rule.reports_difference),
        rules.pooled_change.map(|rule| rule.reports_difference),
        rules.run_median_mann_whitney.map(|rule| rule.reports_difference),
    ])
}

fn noise(plan: &Plan, trials: &[Trial], finds: impl Fn(f64) -> Option<f64>) -> Vec<Noise> {
    let of_group = |index: usize| {
        let group = &plan.groups[index];
        let baseline = &plan.cells[group.baseline? as usize];
        let identical: Vec<&LogRatio> = trials
            .iter()
            .filter(|trial| trial.group == index && trial.effect.is_zero())
            .map(|trial| &trial.paired)
            .collect();
        let estimates: Vec<f64> = identical.iter().map(|paired| paired.theta).collect();
        let deviation = typical_spread(identical.iter().copied());
        (!identical.is_empty()).then(|| Noise {
            cell: plan.path(baseline),
            comparisons: identical.len(),
            bias: mean(&estimates),
            block_deviation: deviation,
            detectable_effect: deviation.and_then(&finds),
        })
    };
    (0..plan.groups.len()).filter_map(of_group).collect()
}

fn summed_up(effect: Ratio, trials: &[Trial]) -> Effect {
    let found: Vec<&Trial> = trials.iter().filter(|trial| trial.effect == effect).collect();
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    for trial in &found {
        *verdicts.entry(trial.paired.verdict.name().to_owned()).or_default() += 1;
    }
    let usual = |rule: usize| Count::of(found.iter().map(|trial| trial.usual[rule]));
    let excludes = |trial: &&Trial| trial.paired.interval.map(|interval| !interval.contains(0.0));
    // A slower copy is found if it is called worse; identical code is called different either way.
    let differs = |trial: &&Trial| {
        let verdict = trial.paired.verdict;
        Some(verdict.is_regression() || verdict.is_difference() && effect.is_zero())
    };
    Effect {
        effect,
        comparisons: found.len() as u64,
        verdicts,
        detected: Count::of(found.iter().map(excludes)),
        perfrun: Count::of(found.iter().map(differs)),
        pooled_mann_whitney: usual(0),
        pooled_overlap: usual(1),
        pooled_change: usual(2),
        run_median_mann_whitney: usual(3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_carry_the_interval_of_their_share() {
        let count = Count::of([Some(true), Some(false), None, Some(false)].into_iter());
        assert_eq!((count.different, count.of), (1, 3));
        assert!(count.interval.is_some_and(|interval| interval.contains(1.0 / 3.0)));
        assert_eq!(Count::of([None].into_iter()).interval, None);
    }
}
