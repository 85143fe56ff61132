//! perfrun's rules, and those that are tried beside them, at work in a run and in an experiment.
//!
//! Input: the runs of an experiment and a policy. Output: what perfrun would have said, and how far that is from the
//! truth. Deliberately absent: more than one experiment.

use statistics::autocorrelation::autocorrelation_time;
use statistics::interval::mean_interval;
use statistics::moments::variance;
use statistics::paired::compare_paired;
use statistics::quantile::{median, median_with_error};
use statistics::steady::late_warmup;
use statistics::stopping::{Location, MINIMUM_EFFECTIVE_SIZE, PrecisionCheck, next_check, precision_reached};
use statistics::verdict::Verdict;
use statistics::warmup::{AdaptiveWarmup, WarmupRule, WarmupStatus};

use super::looser::{LooserStop, RunLocation, looser_stop};
use super::script::{ARMS, BLOCKS, SECOND, Setting, Trace};

const CONFIDENCE: f64 = 0.95;
const MARGIN: f64 = 0.02;

/// Standard errors in half a normal interval at `CONFIDENCE`.
const ERRORS_IN_HALF_WIDTH: f64 = 1.959963984540054;

/// perfrun's defaults.
const WARMUP: WarmupRule = WarmupRule {
    min_time_ns: 3 * SECOND / 10,
    max_time_ns: 5 * SECOND,
    min_samples: 12,
    hard_min_samples: 3,
    tolerance: 0.02,
};
const RELATIVE: f64 = 0.01;
const MIN_SAMPLES: usize = 50;
const MIN_TIME: u64 = SECOND / 2;
const MAX_TIME: u64 = 5 * SECOND;

/// Blocks after which a warm-up is learned, and how much longer than learned it lasts.
const LEARNED_FROM: usize = 2;
const LEARNED_FACTOR: f64 = 1.5;

/// Blocks after which sampling may end early.
const LOOSER_FROM: usize = 3;

/// What a group learns about warm-up from its first blocks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Learned {
    /// The longest that an adaptive warm-up took.
    Duration,
    /// The same, but a noise-limited one only counts until no look saw a trend any more.
    LastTrend,
    /// The first point after which all runs together prove that less than this changed.
    Pooled(f64),
}

/// When the counted samples of a run may end before they are as precise as was asked for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum EarlyEnd {
    /// A quarter of the variance of the arm's log medians suffices.
    Proposed,
    /// The same beside the variance of pairs, not soon, and not after a trend: see `looser`.
    Guarded,
}

/// What is tried.
#[derive(Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) learned: Option<Learned>,
    pub(crate) early: Option<EarlyEnd>,
}

impl Trace {
    /// Samples of a warm-up that lasts `at_least`, and how it ended. A learned one goes on only for a trend.
    fn warm_up(&mut self, at_least: u64, is_learned: bool) -> (usize, WarmupStatus) {
        let min_time_ns = WARMUP.min_time_ns.max(at_least).min(WARMUP.max_time_ns);
        let mut warmup = AdaptiveWarmup::new(WarmupRule { min_time_ns, ..WARMUP });
        loop {
            let duration = self.sample(warmup.count());
            let ended = warmup.push(duration);
            let shows_no_trend = warmup.evaluation().is_some_and(|last| last.status != WarmupStatus::Trend);
            if ended.is_some() || (is_learned && shows_no_trend) {
                return (warmup.count(), ended.unwrap_or(warmup.status()));
            }
        }
    }

    fn check(&mut self, start: usize, count: usize) -> PrecisionCheck {
        if let Some((.., known)) = self.checks.iter().find(|(first, taken, _)| (*first, *taken) == (start, count)) {
            return *known;
        }
        let counted = &self.durations[start..start + count];
        let check = precision_reached(counted, Location::Median, RELATIVE, CONFIDENCE);
        self.checks.push((start, count, check));
        check
    }

    /// The number of counted samples from `start` on.
    fn measure(&mut self, start: usize, looser: Option<LooserStop>) -> usize {
        let (mut count, mut elapsed, mut look_at) = (0, 0, MIN_SAMPLES);
        loop {
            elapsed += self.sample(start + count);
            count += 1;
            if count >= look_at && elapsed >= MIN_TIME {
                look_at = next_check(count);
                let check = self.check(start, count);
                let is_close = |relative| check.relative_half_width.is_some_and(|achieved| achieved <= relative);
                let is_close_enough =
                    looser.is_some_and(|stop| elapsed >= stop.not_before_ns && is_close(stop.relative));
                if check.reached || (is_close_enough && check.ess >= MINIMUM_EFFECTIVE_SIZE) {
                    return count;
                }
            }
            if elapsed >= MAX_TIME {
                return count;
            }
        }
    }

    /// The median of the counted samples without late warm-up, and what later blocks may know of it.
    fn locate(&mut self, start: usize, count: usize) -> (f64, Option<RunLocation>) {
        let late = late_warmup(&self.durations[start..start + count]).truncate;
        let (start, count) = (start + late, count - late);
        let location = median(&self.durations[start..start + count]).unwrap_or(f64::NAN);
        let half_width = self.check(start, count).relative_half_width;
        let error = half_width.map(|width| width / ERRORS_IN_HALF_WIDTH);
        let known = error.map(|relative_error| RunLocation { log_location: location.ln(), relative_error });
        (location, known)
    }

    /// What this warm-up of `count` samples needed, by replaying it against the rule as it was specified.
    fn needed(&self, count: usize, learned: Learned) -> u64 {
        let mut warmup = AdaptiveWarmup::new(WARMUP);
        let mut without_trend = None;
        for duration in &self.durations[..count] {
            let ended = warmup.push(*duration as u64);
            if ended == Some(WarmupStatus::Converged) {
                return warmup.elapsed_ns();
            }
            match warmup.evaluation().map(|last| last.status) {
                Some(WarmupStatus::Trend) => without_trend = None,
                Some(_) => without_trend = without_trend.or(Some(warmup.elapsed_ns())),
                None => {}
            }
            if ended.is_some() {
                break;
            }
        }
        match learned {
            Learned::LastTrend => without_trend.unwrap_or(WARMUP.max_time_ns),
            _ => warmup.elapsed_ns(),
        }
    }
}

/// The first look from which on the runs of the first blocks together change by less than `tolerance`, noise included:
/// the stretch up to twice that time against all that follows it, each run relative to itself.
fn pooled_need(first_blocks: &[(&Trace, usize)], tolerance: f64) -> u64 {
    let mut look = WARMUP.min_time_ns as f64;
    while look < WARMUP.max_time_ns as f64 {
        let changes: Option<Vec<(f64, f64)>> =
            first_blocks.iter().map(|(trace, end)| change_after(trace, *end, look)).collect();
        if let Some(changes) = changes {
            let runs = changes.len() as f64;
            let change = changes.iter().map(|(change, _)| change).sum::<f64>() / runs;
            let error = changes.iter().map(|(_, error)| error * error).sum::<f64>().sqrt() / runs;
            if change.abs() + 1.6448536 * error <= tolerance {
                return look as u64;
            }
        }
        look *= 1.5;
    }
    WARMUP.max_time_ns
}

/// The log ratio of the medians from `look` to twice that time and from there to the end, with its standard error.
fn change_after(trace: &Trace, end: usize, look: f64) -> Option<(f64, f64)> {
    let located = |samples: &[f64]| {
        let (center, error) = median_with_error(samples).filter(|_| samples.len() >= 5)?;
        Some((center, error / center * autocorrelation_time(samples).sqrt()))
    };
    let taken_by = |limit: f64| {
        let ends = trace.durations[..end].iter().scan(0.0, |elapsed, duration| {
            *elapsed += duration;
            Some(*elapsed)
        });
        ends.take_while(|elapsed| *elapsed <= limit).count()
    };
    let (from, to) = (taken_by(look).max(WARMUP.min_samples), taken_by(2.0 * look));
    let (early, early_error) = located(trace.durations.get(from..to)?)?;
    let (late, late_error) = located(&trace.durations[to..end])?;
    Some(((early / late).ln(), early_error.hypot(late_error)))
}

/// What one experiment gave under one policy.
pub(crate) struct Judged {
    /// Mean over the runs of their distance from their own long-run median, in percent.
    pub(crate) bias: f64,
    /// Share of the arms whose interval holds their expected median, in percent.
    pub(crate) cells_covered: f64,
    /// 100 if the interval of the ratio holds the effect, else 0.
    pub(crate) ratio_covered: f64,
    pub(crate) verdict: Verdict,
    /// Seconds of warm-up and of counted samples in each run.
    pub(crate) seconds: f64,
}

/// One experiment under one policy.
pub(crate) fn carry_out(setting: &Setting, policy: &Policy, runs: &mut [[Trace; ARMS]], effect: f64) -> Judged {
    let mut locations: [Vec<f64>; ARMS] = Default::default();
    let mut known: [Vec<Option<RunLocation>>; ARMS] = Default::default();
    let (mut ends, mut warm_ups) = (Vec::new(), Vec::new());
    let (mut first_block, mut learned, mut bias, mut nanoseconds) = (0, None, 0.0, 0.0);
    for block in 0..BLOCKS {
        if block == 1 {
            first_block = (0..ARMS).map(|arm| runs[0][arm].time(0, warm_ups[arm]) as u64).max().unwrap_or(0);
        }
        if block == LEARNED_FROM {
            learned = policy.learned.map(|learned| learn(learned, runs, &warm_ups, &ends));
        }
        let looser: [Option<LooserStop>; ARMS] = [0, 1].map(|arm| looser(policy.early, &known, arm, block));
        for arm in 0..ARMS {
            let run = &mut runs[block][arm];
            let (start, status) = run.warm_up(learned.unwrap_or(first_block), learned.is_some());
            let is_refused = policy.early == Some(EarlyEnd::Guarded) && status == WarmupStatus::Trend;
            let count = run.measure(start, looser[arm].filter(|_| !is_refused));
            let (location, as_known) = run.locate(start, count);
            bias += (location / run.long_run_median - 1.0) * 100.0;
            nanoseconds += run.time(0, start + count);
            locations[arm].push(location);
            known[arm].push(as_known);
            warm_ups.push(start);
            ends.push(start + count);
        }
    }
    let is_covered = |arm: usize| {
        let truth = setting.expected_median(arm) * if arm == 1 { 1.0 + effect } else { 1.0 };
        let interval = mean_interval(&locations[arm], CONFIDENCE).and_then(|estimate| estimate.interval);
        interval.is_some_and(|interval| interval.contains(truth))
    };
    let log_ratios: Vec<f64> = locations[0].iter().zip(&locations[1]).map(|(one, two)| (two / one).ln()).collect();
    let compared = compare_paired(&log_ratios, MARGIN, CONFIDENCE).expect("ten finite log ratios");
    let ratio_covered = compared.interval.is_some_and(|interval| interval.contains(effect.ln_1p()));
    let all_runs = (BLOCKS * ARMS) as f64;
    Judged {
        bias: bias / all_runs,
        cells_covered: (0..ARMS).filter(|arm| is_covered(*arm)).count() as f64 * 100.0 / ARMS as f64,
        ratio_covered: f64::from(u8::from(ratio_covered)) * 100.0,
        verdict: compared.verdict,
        seconds: nanoseconds / SECOND as f64 / all_runs,
    }
}

/// The warm-up of later blocks in nanoseconds, from the samples in which each run of the first ones warmed up and ended.
fn learn(learned: Learned, runs: &[[Trace; ARMS]], warm_ups: &[usize], ends: &[usize]) -> u64 {
    let traces = || runs[..LEARNED_FROM].iter().flatten();
    let needed = match learned {
        Learned::Pooled(tolerance) => pooled_need(&traces().zip(ends.iter().copied()).collect::<Vec<_>>(), tolerance),
        _ => traces().zip(warm_ups).map(|(trace, count)| trace.needed(*count, learned)).max().unwrap_or(0),
    };
    (needed as f64 * LEARNED_FACTOR) as u64
}

/// With what the run of an arm in a block may stop, beside the precision that was asked for.
fn looser(
    early: Option<EarlyEnd>,
    known: &[Vec<Option<RunLocation>>; ARMS],
    arm: usize,
    block: usize,
) -> Option<LooserStop> {
    match early.filter(|_| block >= LOOSER_FROM)? {
        EarlyEnd::Guarded => looser_stop(known, arm, RELATIVE, CONFIDENCE, MIN_TIME),
        EarlyEnd::Proposed => {
            let seen: Vec<f64> = known[arm].iter().flatten().map(|run| run.log_location).collect();
            Some(LooserStop { relative: ERRORS_IN_HALF_WIDTH * (variance(&seen)? / 4.0).sqrt(), not_before_ns: 0 })
        }
    }
}
