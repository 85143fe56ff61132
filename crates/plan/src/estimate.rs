//! How long an experiment takes before anything is measured: a range, or a number where something is known of its cells.

use super::run_time::{CellForecast, RunTime, TimeRange, run_time};
use super::{Group, Plan, load};
use experiment::{Design, Experiment, Measure, Warmup};

/// The range for `runs` blocks, controls and rehearsal included, before anything is measured.
///
/// `expected` is by index of the cell; where it is short or has none, nothing is known. There a wide range is the truth:
/// between the least and the most that warm-up and sampling may take lies a factor of five and more, and the rehearsal is
/// left out. The rehearsal itself replaces the range by a measured estimate.
pub fn estimate_before_measuring(
    experiment: &Experiment,
    plan: &Plan,
    runs: u32,
    expected: &[Option<CellForecast>],
) -> TimeRange {
    let mut runs_per_block = vec![0_u32; plan.cells.len()];
    plan.runnable().for_each(|(cell, _)| runs_per_block[cell] = 1);
    plan.controls.iter().for_each(|control| runs_per_block[*control as usize] += 1);
    times_of_groups(experiment, plan, runs, expected, &runs_per_block)
        .into_iter()
        .fold(TimeRange::default(), TimeRange::plus)
}

/// What `runs` blocks take in each group. How many runs of a cell a block has is by index of the cell.
pub(super) fn times_of_groups(
    experiment: &Experiment,
    plan: &Plan,
    runs: u32,
    expected: &[Option<CellForecast>],
    runs_per_block: &[u32],
) -> Vec<TimeRange> {
    let expected = |cell: usize| expected.get(cell).copied().flatten();
    let of_cell = |cell: usize| of_cell(experiment, plan, cell, expected(cell));
    let known = |cell: usize| expected(cell).is_some();
    plan.groups
        .iter()
        .map(|group| of_group(&experiment.measure, group, runs, runs_per_block, &of_cell, &known))
        .collect()
}

/// The parts of a run of a cell, and what is looked for before the first.
fn of_cell(experiment: &Experiment, plan: &Plan, cell: usize, expected: Option<CellForecast>) -> (RunTime, TimeRange) {
    let run = run_time(&experiment.measure, expected);
    let cell = &plan.cells[cell];
    let Some(load) = plan.input_of(cell).load else { return (run, TimeRange::default()) };
    let callers = load.callers(experiment.variants[cell.variant()].sessions);
    let sample = expected.map(|expected| expected.sample);
    let [counted, search] = load::time(&load, experiment.measure.stop, callers, sample, run.counted);
    (RunTime { counted, ..run }, search)
}

/// The rehearsal of a group's cells, and its turns in so many blocks.
fn of_group(
    measure: &Measure,
    group: &Group,
    runs: u32,
    runs_per_block: &[u32],
    of_cell: &dyn Fn(usize) -> (RunTime, TimeRange),
    is_known: &dyn Fn(usize) -> bool,
) -> TimeRange {
    let cells = || group.cells.iter().map(|cell| *cell as usize).filter(|cell| runs_per_block[*cell] > 0);
    let time = |cell: usize| of_cell(cell).0;
    let longest = cells().map(|cell| time(cell).warmup).fold(TimeRange::default(), TimeRange::larger);
    let with_warmup = |time: RunTime| match measure.warmup {
        // No cell warms up for less time than another of its group.
        Warmup::Adaptive(_) => RunTime { warmup: longest, ..time },
        Warmup::Samples(_) | Warmup::Time(_) => time,
    };
    let run = |cell: usize| {
        let time = with_warmup(time(cell));
        time.warmup.plus(time.counted).plus(time.around)
    };
    let in_block = |cell: usize| run(cell).times(u64::from(runs_per_block[cell]));
    let block = cells().map(in_block).fold(TimeRange::default(), TimeRange::plus);
    let members = cells().map(|cell| u64::from(runs_per_block[cell])).sum();
    let known = cells().filter(|cell| is_known(*cell));
    let rehearsal = known.map(|cell| time(cell).warmup.plus(time(cell).around));
    let before = rehearsal.chain(cells().map(|cell| of_cell(cell).1)).fold(TimeRange::default(), TimeRange::plus);
    before.plus(in_turns(measure.design, block.times(u64::from(runs)), members))
}

/// In slices the workers of a group are alive together, but one at a time is active; a duet plays two at once.
fn in_turns(design: Design, one_by_one: TimeRange, members: u64) -> TimeRange {
    match design {
        Design::Blocks | Design::Slices | Design::Sequential => one_by_one,
        Design::Duet => one_by_one.share(members.div_ceil(2), members.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_time::Source;
    use crate::{expand, place_controls};
    use base::quantity::Nanos;
    use experiment::{Aa, SamplesStop, SamplesWarmup};
    use experiment::{Cache, Stop};

    fn experiment(variants: &str, measure: &Measure) -> Experiment {
        let text = format!("backend: mock\nmodels: [m, n]\nvariants: {variants}");
        let spec = spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        Experiment { measure: measure.clone(), ..spec.experiment }
    }

    fn plan(variants: &str, aa: Aa) -> Plan {
        let mut plan = expand(&experiment(variants, &Measure::default())).expect("a plan");
        place_controls(&mut plan, aa);
        plan
    }

    fn estimate(measure: &Measure, plan: &Plan, runs: u32) -> TimeRange {
        estimate_before_measuring(&experiment("[a, b]", measure), plan, runs, &[])
    }

    fn millis(range: TimeRange) -> (u64, u64) {
        (range.least.0 / 1_000_000, range.most.0 / 1_000_000)
    }

    #[test]
    fn the_range_follows_the_time_limits() {
        let range = estimate(&Measure::default(), &plan("[a]", Aa::Off), 10);
        assert_eq!(millis(range), (20 * (300 + 500 + 60), 20 * (5_000 + 5_000 + 60)));
    }

    #[test]
    fn controls_take_time() {
        let runs = |aa| estimate(&Measure::default(), &plan("[a, b]", aa), 1).least.0 / 860_000_000;
        assert_eq!([Aa::Off, Aa::Auto, Aa::Group].map(runs), [4, 5, 6]);
    }

    #[test]
    fn a_duet_takes_half_of_the_turns() {
        let measure = |design| Measure { design, ..Measure::default() };
        let turns = |design, aa| estimate(&measure(design), &plan("[a, b]", aa), 1).least.0 / 860_000_000;
        assert_eq!(turns(Design::Duet, Aa::Off), 2);
        assert_eq!(turns(Design::Duet, Aa::Auto), 3);
        assert_eq!(turns(Design::Slices, Aa::Auto), 5);
    }

    #[test]
    fn a_load_asks_for_time_of_its_own() {
        let text = "backend: mock\nmodels: [m]\nmeasure: { warmup: { mode: samples, count: 1 }, load: { rate: [5, largest], bound: { p99: 20ms } } }";
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let plan = expand(&spec.experiment).expect("a plan");
        let sample = Nanos::from_millis(10);
        let known = CellForecast { start: Nanos(0), sample, noise: 0.0, source: Source::Report };
        let secs =
            |runs| estimate_before_measuring(&spec.experiment, &plan, runs, &[Some(known); 2]).least.0 / 1_000_000_000;
        // 1000 queries at 5/s, 4000 at about 60/s, and the search, once.
        assert!((265..280).contains(&(secs(2) - secs(1))), "{}", secs(2) - secs(1));
        assert!((120..150).contains(&(secs(1) - (secs(2) - secs(1)))), "{}", secs(1));
    }

    #[test]
    fn cold_caches_cost_time_before_every_sample() {
        let stop = Stop::Samples(SamplesStop { count: 1000, max_time: Nanos::from_secs(60) });
        let warmup = Warmup::Samples(SamplesWarmup { count: 10 });
        let measure = |cache| Measure { warmup, stop, cache, ..Measure::default() };
        let plan = plan("[a]", Aa::Off);
        assert_eq!(millis(estimate(&measure(Cache::Warm), &plan, 1)).0, 2 * 60);
        let cold = estimate(&measure(Cache::Cold), &plan, 1);
        assert_eq!(millis(cold), (2 * (30 + 3_000 + 60), 2 * (1_000 + 4_000 + 60_000 + 60)));
    }

    #[test]
    fn what_is_expected_makes_the_range_a_number() {
        let plan = plan("[a]", Aa::Off);
        let known = |millis| {
            let sample = Nanos::from_millis(millis);
            Some(CellForecast { start: Nanos::from_millis(40), sample, noise: 0.0, source: Source::Report })
        };
        let both = [known(1), known(20)];
        let range = estimate_before_measuring(&experiment("[a, b]", &Measure::default()), &plan, 10, &both);
        // Each is rehearsed.
        let rehearsal = 2 * (300 + 100);
        assert_eq!(millis(range), (rehearsal + 10 * (300 + 500 + 100 + 300 + 1_000 + 100), millis(range).0));
        let range = estimate_before_measuring(&experiment("[a, b]", &Measure::default()), &plan, 10, &both[..1]);
        // Nobody knows for how long the other of the group warms up.
        assert_eq!(millis(range), (400 + 10 * (900 + 860), 400 + 10 * (5_600 + 10_060)));
    }

    #[test]
    fn cells_of_a_group_warm_up_for_the_same_time() {
        let plan = plan("[a, b]", Aa::Off);
        let sample = |millis| {
            let sample = Nanos::from_millis(millis);
            Some(CellForecast { start: Nanos(0), sample, noise: 0.0, source: Source::Report })
        };
        let range = estimate_before_measuring(
            &experiment("[a, b]", &Measure::default()),
            &plan,
            1,
            &[sample(1), sample(100), None, None],
        );
        let known = 300 + 60 + 1_200 + 60 + 2 * (1_200 + 60) + 500 + 5_000;
        assert_eq!(millis(range).0, known + 2 * 860);
    }
}
