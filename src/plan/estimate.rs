//! How long an experiment takes, as far as the specification alone can tell: a range.

use super::Plan;
use crate::experiment::{Cache, Design, Measure, Stop, Warmup};
use crate::vocabulary::quantity::Nanos;

/// A time between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Not less.
    pub least: Nanos,
    /// Not more, unless a model is slower than its own time limits, or the processor has to cool down.
    pub most: Nanos,
}

/// Time of spawn, load and clean-up of a small model, seen on a two-core machine.
const OVERHEAD: Nanos = Nanos::from_millis(60);

/// What a warm-up of a number of samples may take, for models that are not slow.
const SAMPLED_WARMUP: Nanos = Nanos::from_secs(1);

/// Writing and reading twice the last-level cache before a sample, for caches from 8 MiB to 1 GiB at 10 GB/s.
const COLD: TimeRange = TimeRange { least: Nanos::from_millis(3), most: Nanos::from_millis(400) };

/// The range for `runs` runs of each arm, controls included, before anything is measured.
///
/// A wide range is the truth: between the least and the most that warm-up and sampling may take lies a factor of five
/// and more. The rehearsal replaces it by a measured estimate.
pub fn estimate_before_measuring(measure: &Measure, plan: &Plan, runs: u32) -> TimeRange {
    let flush = match measure.cache {
        Cache::Warm => TimeRange { least: Nanos(0), most: Nanos(0) },
        Cache::Cold => COLD,
    };
    let (warmup, stop) = (warmup(measure.warmup, flush), stop(measure.stop, flush));
    let all = turns(measure.design, plan).saturating_mul(u64::from(runs));
    let total = |warmup: Nanos, stop: Nanos| {
        Nanos(all.saturating_mul(warmup.0.saturating_add(stop.0).saturating_add(OVERHEAD.0)))
    };
    TimeRange { least: total(warmup.least, stop.least), most: total(warmup.most, stop.most) }
}

/// How many arms of a block run one after the other. In slices the workers of a group are alive together, but one at a
/// time is active; a duet plays two at once.
fn turns(design: Design, plan: &Plan) -> u64 {
    let runs = |cell: &u32| plan.cells[*cell as usize].skip.is_none();
    match design {
        Design::Blocks | Design::Slices | Design::Sequential => plan.arms() as u64,
        Design::Duet => {
            let arms = plan.groups.iter().map(|group| {
                let doubles = plan.controls.iter().filter(|control| group.cells.contains(control)).count();
                group.cells.iter().filter(|cell| runs(cell)).count() + doubles
            });
            arms.map(|arms| arms.div_ceil(2) as u64).sum()
        }
    }
}

fn times(flush: Nanos, samples: u32) -> u64 {
    flush.0.saturating_mul(u64::from(samples))
}

fn warmup(warmup: Warmup, flush: TimeRange) -> TimeRange {
    match warmup {
        Warmup::Adaptive { min_time, max_time, min_samples, .. } => {
            TimeRange { least: bounded(min_time, times(flush.least, min_samples), max_time), most: max_time }
        }
        Warmup::Samples { count } => TimeRange {
            least: Nanos(times(flush.least, count)),
            most: Nanos(SAMPLED_WARMUP.0.saturating_add(times(flush.most, count))),
        },
        Warmup::Time { time } => TimeRange { least: time, most: time },
    }
}

fn stop(stop: Stop, flush: TimeRange) -> TimeRange {
    match stop {
        Stop::Precision { min_time, max_time, min_samples, .. } => {
            TimeRange { least: bounded(min_time, times(flush.least, min_samples), max_time), most: max_time }
        }
        Stop::Samples { count, max_time } => {
            TimeRange { least: bounded(Nanos(0), times(flush.least, count), max_time), most: max_time }
        }
        Stop::Time { time, .. } => TimeRange { least: time, most: time },
    }
}

/// The larger of two minima, which `max_time` beats.
fn bounded(min_time: Nanos, of_samples: u64, max_time: Nanos) -> Nanos {
    Nanos(min_time.0.max(of_samples).min(max_time.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Aa;
    use crate::plan::{expand, place_controls};

    fn plan(variants: &str, aa: Aa) -> Plan {
        let text = format!("backend: mock\nmodels: [m, n]\nvariants: {variants}");
        let spec = crate::spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        let mut plan = expand(&spec.experiment).expect("a plan");
        place_controls(&mut plan, aa);
        plan
    }

    fn millis(range: TimeRange) -> (u64, u64) {
        (range.least.0 / 1_000_000, range.most.0 / 1_000_000)
    }

    #[test]
    fn the_range_follows_the_time_limits() {
        let range = estimate_before_measuring(&Measure::default(), &plan("[a]", Aa::Off), 10);
        assert_eq!(millis(range), (20 * (300 + 500 + 60), 20 * (5_000 + 5_000 + 60)));
    }

    #[test]
    fn controls_are_arms() {
        let arms = |aa| estimate_before_measuring(&Measure::default(), &plan("[a, b]", aa), 1).least.0 / 860_000_000;
        assert_eq!([Aa::Off, Aa::Auto, Aa::Group].map(arms), [4, 5, 6]);
    }

    #[test]
    fn a_duet_takes_half_of_the_turns() {
        let measure = |design| Measure { design, ..Measure::default() };
        let turns =
            |design, aa| estimate_before_measuring(&measure(design), &plan("[a, b]", aa), 1).least.0 / 860_000_000;
        assert_eq!(turns(Design::Duet, Aa::Off), 2);
        assert_eq!(turns(Design::Duet, Aa::Auto), 3);
        assert_eq!(turns(Design::Slices, Aa::Auto), 5);
    }

    #[test]
    fn cold_caches_cost_time_before_every_sample() {
        let stop = Stop::Samples { count: 1000, max_time: Nanos::from_secs(60) };
        let warmup = Warmup::Samples { count: 10 };
        let measure = |cache| Measure { warmup, stop, cache, ..Measure::default() };
        let plan = plan("[a]", Aa::Off);
        assert_eq!(millis(estimate_before_measuring(&measure(Cache::Warm), &plan, 1)).0, 2 * 60);
        let cold = estimate_before_measuring(&measure(Cache::Cold), &plan, 1);
        assert_eq!(millis(cold), (2 * (30 + 3_000 + 60), 2 * (1_000 + 4_000 + 60_000 + 60)));
    }
}
