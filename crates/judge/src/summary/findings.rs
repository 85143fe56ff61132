//! What is odd about a cell as a whole, and what its samples look like.
//!
//! Input: the completed runs of a cell and what the plan says of it. Output: codes of the cell, the shape of its
//! samples, and what its runs met on the machine. Codes of single runs are counted in [`super::CellSummary::warnings`];
//! [`super::weight`] says which of them weaken the cell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fallback, LEAST_RUNS};
use base::code::Code;
use base::metric;
use record::{RunKind, StoredRun};
use statistics::quantile::median;
use statistics::trimmed_mean::trimmed;
use statistics::{Course, Distribution, RunGroups, run_groups};
use worker::measure::stop::StopReason;
use worker::measure::warm::WarmupStatus;

/// What is odd about a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellFindings {
    /// Codes of the cell as a whole.
    pub codes: Vec<String>,
    /// The two groups into which its runs fall, if they do; latency in nanoseconds.
    pub run_groups: Option<RunGroups>,
    /// What the samples of its runs look like; absent without samples.
    pub shape: Option<CellShape>,
    /// Runs during which a hypervisor took much of the processors (method 8.1).
    pub noisy_runs: u32,
    /// What its runs met on the machine: metrics of the environment by stored name.
    pub environment: BTreeMap<String, Spread>,
    /// What other processes used of the processors during its runs, where that was enough to disturb a measurement.
    pub background_load: Option<BackgroundLoad>,
}

/// What other processes and other guests used of the processors during the runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OtherLoad")]
pub struct BackgroundLoad {
    /// Runs during which it was enough to disturb a measurement.
    pub runs: u32,
    /// Processors that they used, the median over these runs.
    pub cores: f64,
    /// The threads that could run at once, where most runs met it and an inference took clearly longer than these threads
    /// need for its processor time: its latency holds waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_threads: Option<u32>,
}

/// One value a run, summed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub low: f64,
    pub median: f64,
    /// The largest.
    pub high: f64,
}

impl Spread {
    /// Of some values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Spread { low, median: median(values)?, high })
    }
}

/// Whether so many disturbed runs can move the estimate over runs, which leaves a part of them out on either side
/// (method 5.1).
pub(super) fn moves_the_estimate(runs: u32, completed: u32) -> bool {
    runs as usize > trimmed(completed as usize)
}

/// What the samples of a cell's runs look like; counts are of completed runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CellShape {
    /// Share of the samples beyond 1.5 interquartile ranges from the quartiles of their run; absent where a sample holds
    /// several iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlier_share: Option<f64>,
    /// Share beyond 3 interquartile ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severe_outlier_share: Option<f64>,
    /// Median over runs of 1.4826 median absolute deviations over the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust_variation: Option<f64>,
    /// Median over runs of the skewness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skewness: Option<f64>,
    /// Runs whose samples fall into several groups.
    #[serde(skip_serializing_if = "is_zero")]
    pub multimodal_runs: u32,
    /// The largest number of groups in one run.
    #[serde(skip_serializing_if = "is_zero")]
    pub most_modes: u32,
    /// Runs by how the duration developed over time: `flat`, `warmup`, `slowdown`, `no_steady_state`.
    #[schemars(with = "BTreeMap<String, u32>")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub courses: BTreeMap<Course, u32>,
    /// Runs that became slower by more than noise and 1 % between their halves.
    #[serde(skip_serializing_if = "is_zero")]
    pub slower_runs: u32,
    /// Runs that became faster.
    #[serde(skip_serializing_if = "is_zero")]
    pub faster_runs: u32,
    /// Runs whose first counted sample was far above their median.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_first_runs: u32,
    /// Runs whose duration still changed when the time for warming up was over.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsettled_runs: u32,
    /// Runs that a bound ended before the precision that was asked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub imprecise_runs: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What the codes of a cell as a whole are raised by.
struct Seen {
    completed: usize,
    /// What is known before it runs.
    of_settings: Vec<Code>,
    runs_on_cpu: bool,
    groups: Option<RunGroups>,
}

impl Seen {
    /// Runs completed with settings that call for the code.
    fn ran_with(&self, code: Code) -> bool {
        self.completed > 0 && self.of_settings.contains(&code)
    }
}

/// A code of a cell as a whole, and whether its runs call for it.
type Rule = (Code, fn(&Seen) -> bool);

/// What the runs of a cell call for together.
const RULES: [Rule; 7] = [
    (Code::FewRuns, |seen| (1..LEAST_RUNS).contains(&seen.completed)),
    (Code::CpuFallback, |seen| seen.runs_on_cpu),
    (Code::TrainingMode, |seen| seen.ran_with(Code::TrainingMode)),
    (Code::WeightsWidened, |seen| seen.ran_with(Code::WeightsWidened)),
    (Code::Quota, |seen| seen.ran_with(Code::Quota)),
    (Code::Oversubscribed, |seen| seen.ran_with(Code::Oversubscribed)),
    // Runs that only lie far apart have a wide interval, which says so itself.
    (Code::BimodalRuns, |seen| {
        let smaller = seen.groups.map(|groups| groups.low_runs.min(groups.high_runs));
        smaller.is_some_and(|runs| moves_the_estimate(runs as u32, seen.completed as u32))
    }),
];

/// What the rehearsal alone may see: it looks at the outputs of every input set.
const OF_REHEARSAL: Code = Code::OutputNonFinite;

impl CellFindings {
    /// Of the completed runs of a cell, and of what is known before them.
    pub(super) fn of(
        completed: &[&StoredRun],
        fallback: &Fallback,
        environment: &BTreeMap<String, Spread>,
        of_settings: Vec<Code>,
    ) -> CellFindings {
        let medians: Vec<f64> =
            completed.iter().filter_map(|run| run.data.metrics.get(metric::LATENCY.name)).copied().collect();
        let seen = Seen {
            completed: completed.len(),
            of_settings,
            runs_on_cpu: fallback.is_worth_reporting(),
            groups: run_groups(&medians),
        };
        CellFindings {
            codes: RULES.iter().filter(|(_, holds)| holds(&seen)).map(|(code, _)| String::from(*code)).collect(),
            run_groups: seen.groups,
            shape: CellShape::of(completed),
            noisy_runs: completed.iter().filter(|run| run.is_noisy()).count() as u32,
            environment: environment.clone(),
            background_load: None,
        }
    }
}

impl CellFindings {
    /// With what only the rehearsal sees.
    pub(super) fn with_rehearsal(mut self, runs: &[&StoredRun]) -> CellFindings {
        let is_seen = |run: &&StoredRun| run.warnings.iter().any(|code| *code == OF_REHEARSAL);
        let (in_rehearsal, in_runs) = (
            runs.iter().filter(|run| run.kind == RunKind::Rehearsal).any(&is_seen),
            runs.iter().filter(|run| run.kind != RunKind::Rehearsal).any(is_seen),
        );
        if in_rehearsal && !in_runs {
            self.codes.push(OF_REHEARSAL.into());
        }
        self
    }
}

impl CellShape {
    /// With numbers by this rule, without those that are none.
    pub(crate) fn with_numbers(mut self, rounded: fn(f64) -> f64) -> Self {
        let numbers =
            [&mut self.outlier_share, &mut self.severe_outlier_share, &mut self.robust_variation, &mut self.skewness];
        numbers.into_iter().for_each(|number| *number = number.filter(|value| value.is_finite()).map(rounded));
        self
    }

    fn of(completed: &[&StoredRun]) -> Option<CellShape> {
        let shapes: Vec<_> = completed.iter().filter_map(|run| run.shape.as_ref()).collect();
        shapes.first()?;
        let middle = |values: Vec<f64>| median(&values);
        let drifts = || shapes.iter().filter_map(|shape| shape.drift).filter(|drift| drift.flagged);
        let drifted = |is: &dyn Fn(f64) -> bool| drifts().filter(|drift| is(drift.relative)).count() as u32;
        let mut courses = BTreeMap::new();
        for course in shapes.iter().filter_map(|shape| shape.course) {
            *courses.entry(course).or_insert(0) += 1;
        }
        let ended_early = |run: &StoredRun| {
            // Only a rule of precision has one.
            run.data.metrics.contains_key(metric::PRECISION.name)
                && matches!(run.data.stop_reason, Some(StopReason::TimeLimit | StopReason::Samples))
        };
        let runs = |is: &dyn Fn(&StoredRun) -> bool| completed.iter().filter(|run| is(run)).count() as u32;
        let outliers = shapes.iter().filter_map(|shape| shape.outliers).reduce(|sum, counts| sum.plus(&counts));
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        Some(CellShape {
            outlier_share: outliers.map(|counts| share(counts.all() - counts.normal, counts.all())),
            severe_outlier_share: outliers.map(|counts| share(counts.severe(), counts.all())),
            robust_variation: middle(shapes.iter().filter_map(|shape| shape.robust_variation).collect()),
            skewness: middle(shapes.iter().filter_map(|shape| shape.skewness).collect()),
            multimodal_runs: shapes.iter().filter(|shape| shape.is_multimodal).count() as u32,
            most_modes: shapes.iter().map(|shape| shape.modes.len()).max().unwrap_or(0) as u32,
            courses,
            slower_runs: drifted(&|relative| relative > 0.0),
            faster_runs: drifted(&|relative| relative < 0.0),
            slow_first_runs: runs(&|run| run.shape.as_ref().is_some_and(Distribution::is_first_sample_slow)),
            unsettled_runs: runs(&|run| run.data.warmup_status == Some(WarmupStatus::Trend)),
            imprecise_runs: runs(&ended_early),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::of_runs::ValuesOfRuns;
    use super::*;
    use base::code;
    use base::metric::LATENCY;
    use record::Outcome;

    fn runs(medians: &[f64], steal: f64) -> Vec<StoredRun> {
        let cell = "0123456789abcdef".parse().unwrap();
        let run = |(number, median): (usize, &f64)| {
            let mut run = StoredRun::not_started(cell, RunKind::Main, number as u32, 0, Outcome::Completed);
            run.data.metrics.insert(LATENCY.name.to_owned(), *median);
            run.data.metrics.insert(metric::STEAL.name.to_owned(), steal * number as f64);
            run
        };
        medians.iter().enumerate().map(run).collect()
    }

    fn findings(medians: &[f64]) -> CellFindings {
        let runs = runs(medians, 0.01);
        let runs: Vec<&StoredRun> = runs.iter().collect();
        CellFindings::of(&runs, &Fallback::default(), &ValuesOfRuns::of(&runs).environment, Vec::new())
    }

    #[test]
    fn few_runs_and_runs_in_groups_are_codes_of_the_cell() {
        assert_eq!(findings(&[1.0, 1.001, 0.999]).codes, ["W_FEW_RUNS"]);
        assert_eq!(findings(&[1.0, 1.01, 0.99, 1.0, 1.005]).codes, [""; 0]);
        let apart = findings(&[1.0, 1.001, 0.999, 1.0005, 1.05, 1.051, 1.049, 1.0505]);
        assert_eq!(apart.codes, ["W_BIMODAL_RUNS"]);
        assert_eq!(apart.run_groups.map(|groups| (groups.low_runs, groups.high_runs)), Some((4, 4)));
        assert_eq!(findings(&[1.0, 1.0, 1.01, 1.02, 1.2]).codes, [""; 0], "the interval says that they lie apart");
        let some = findings(&[1.0, 1.001, 0.999, 1.0005, 1.0002, 0.9995, 1.05, 1.051]);
        assert!(some.run_groups.is_some_and(|groups| groups.high_runs == 2), "{some:?}");
        assert_eq!(some.codes, [""; 0], "the middle half leaves two of eight out");
        assert_eq!(findings(&[]).codes, [""; 0]);
    }

    /// Input sets that only the rehearsal looks at are measured as well.
    #[test]
    fn what_the_rehearsal_finds_in_any_input_set_withholds_the_cell() {
        let mut rehearsal = runs(&[1.0], 0.0).remove(0);
        rehearsal.kind = RunKind::Rehearsal;
        let main = runs(&[1.0; 5], 0.0);
        let found = |rehearsal: &StoredRun| {
            let all: Vec<&StoredRun> = std::iter::once(rehearsal).chain(&main).collect();
            CellFindings::of(&all[1..], &Fallback::default(), &BTreeMap::new(), Vec::new()).with_rehearsal(&all).codes
        };
        assert_eq!(found(&rehearsal), [""; 0]);
        rehearsal.warnings = vec!["W_OUTPUT_NONFINITE".to_owned()];
        assert_eq!(found(&rehearsal), ["W_OUTPUT_NONFINITE"]);
    }

    #[test]
    fn what_runs_met_is_summed_up() {
        let found = findings(&[1.0; 5]);
        assert_eq!(found.environment["steal_ratio"], Spread { low: 0.0, median: 0.02, high: 0.04 });
        assert_eq!(found.noisy_runs, 2);
        assert!(!found.environment.contains_key("major_faults"), "unknown is not zero");
    }

    #[test]
    fn cells_raise_the_codes_that_the_table_gives_them() {
        let mut raised: Vec<Code> = RULES.iter().map(|(code, _)| *code).chain([OF_REHEARSAL]).collect();
        raised.sort_by_key(|code| code::rank(code.name()));
        assert_eq!(raised, code::Carrier::Cell.codes().collect::<Vec<_>>());
    }
}
