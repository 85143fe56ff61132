//! Which part of a matrix each of several jobs measures: what is compared stays together, and the parts take about the
//! same time.
//!
//! Input: a plan, and what is expected of each cell on a slow and on a fast machine. Output: a shard for each group, the
//! same on every host, also on one without a device of the specification.

use std::collections::{BTreeMap, BTreeSet};

use super::estimate::times_of_groups;
use super::run_time::CellForecast;
use super::{Cell, Plan, SkipKind};
use base::metric::ITEMS;
use experiment::Experiment;
use statistics::random::Xoshiro256PlusPlus;

/// More shards than sets of cells that must stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyShards {
    pub sets: u32,
}

/// The shard of each group, from 0, where the matrix is divided into so many; `expected` holds what is expected of each cell
/// on each of some machines.
///
/// # Errors
///
/// More shards than there are sets of groups that must stay together.
pub fn shards_of_groups(
    experiment: &Experiment,
    plan: &Plan,
    expected: &[Vec<Option<CellForecast>>],
    shards: u32,
) -> Result<Vec<u32>, TooManyShards> {
    let (sets, runs_per_block) = sets_of_groups(experiment, plan);
    let count = count_of(&sets);
    if shards > count {
        return Err(TooManyShards { sets: count });
    }
    let mut things: Vec<Shares> = vec![Vec::new(); count as usize];
    for expected in expected {
        things.iter_mut().for_each(|shares| shares.push(0.0));
        let times = times_of_groups(experiment, plan, typical_runs(experiment, plan), expected, &runs_per_block);
        let times = || times.iter().map(|time| time.typical().0 as f64);
        let fair = (times().sum::<f64>() / f64::from(shards)).max(1.0);
        for (set, time) in sets.iter().zip(times()) {
            let of_set = set.and_then(|set| things.get_mut(set as usize)?.last_mut());
            of_set.into_iter().for_each(|share| *share += time / fair);
        }
    }
    let part_of = divide(&things, shards as usize);
    // A group of which no cell is run lies in the first.
    Ok(sets.iter().map(|set| set.map_or(0, |set| part_of[set as usize] as u32)).collect())
}

/// How many shards there may be.
pub fn most_shards(experiment: &Experiment, plan: &Plan) -> u32 {
    count_of(&sets_of_groups(experiment, plan).0)
}

fn count_of(sets: &[Option<u32>]) -> u32 {
    sets.iter().flatten().max().map_or(0, |last| last + 1)
}

impl Plan {
    /// Whether each cell is run where the host allows it: its model takes its input, and it was not left out. The same on every
    /// host, so by model and input: a host without a device says no more of its cells than that.
    pub fn run_somewhere(&self) -> Vec<bool> {
        let kind = |cell: &Cell| self.skip(cell).map(|skip| skip.kind);
        let unfit = self.cells.iter().filter(|cell| kind(cell) == Some(SkipKind::Shape));
        let unfit: BTreeSet<_> = unfit.map(|cell| (cell.model(), cell.input())).collect();
        let is_run =
            |cell: &Cell| kind(cell) != Some(SkipKind::Selection) && !unfit.contains(&(cell.model(), cell.input()));
        self.cells.iter().map(is_run).collect()
    }
}

/// How many runs of a cell there will probably be.
pub fn typical_runs(experiment: &Experiment, plan: &Plan) -> u32 {
    let analyses = experiment.interim_analyses();
    if analyses.is_one() { plan.runs } else { analyses.typical().min(plan.runs) }
}

/// Whether batch sizes are weighed against each other.
fn asks_for_items(experiment: &Experiment) -> bool {
    let best = experiment.choose.iter().map(|question| question.best);
    best.chain(experiment.pareto.iter().copied()).any(|reference| reference.metric.name == ITEMS.name)
}

/// A number for each group of which cells are run, the same for those that share a model at an input (or at any, where inputs
/// are weighed against each other), in the order of their first groups: they could stand in for each other, or one is the
/// other's reference. With it, how often a block runs each cell.
fn sets_of_groups(experiment: &Experiment, plan: &Plan) -> (Vec<Option<u32>>, Vec<u32>) {
    // What a host rules out counts too: another host may not.
    let runs_per_block: Vec<u32> = plan.run_somewhere().into_iter().map(u32::from).collect();
    let of_any_input = asks_for_items(experiment);
    let mut sets: Vec<usize> = (0..plan.groups.len()).collect();
    let mut is_run = vec![false; plan.groups.len()];
    let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (cell, _) in plan.cells.iter().zip(&runs_per_block).filter(|(_, runs)| **runs > 0) {
        is_run[cell.group as usize] = true;
        let input = if of_any_input { 0 } else { cell.input().index() };
        let set = sets[cell.group as usize];
        let same_model = *known.entry((cell.model().index(), input)).or_insert(cell.group as usize);
        let (first, second) = (set.min(sets[same_model]), set.max(sets[same_model]));
        sets.iter_mut().filter(|set| **set == second).for_each(|set| *set = first);
    }
    let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
    let number = |(set, is_run): (&usize, bool)| {
        let next = numbers.len() as u32;
        is_run.then(|| *numbers.entry(*set).or_insert(next))
    };
    (sets.iter().zip(is_run).map(number).collect(), runs_per_block)
}

/// Times of one thing on several machines, each in shares of what a part should take there.
type Shares = Vec<f64>;

/// The part of each of these things, so that on every machine the parts are about equal and none is empty: the largest first
/// onto the shortest part (Graham 1969), then moves and exchanges as long as the parts become more alike. Of few things, the
/// best of several orders.
fn divide(things: &[Shares], parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..things.len()).collect();
    order.sort_by(|a, b| most(&things[*b]).total_cmp(&most(&things[*a])).then(a.cmp(b)));
    let mut best = Divided::in_order(things, parts, &order);
    if things.len() <= MOST_EXCHANGED {
        best.exchange();
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    for _ in 0..if things.len() <= MOST_SHUFFLED { ATTEMPTS } else { 0 } {
        random.shuffle(&mut order);
        let mut other = Divided::in_order(things, parts, &order);
        other.exchange();
        if other.squares() < best.squares() - SMALLEST_GAIN {
            best = other;
        }
    }
    best.part_of
}

/// Of more things than these the largest first is good enough, with exchanges and without.
const MOST_SHUFFLED: usize = 64;
const MOST_EXCHANGED: usize = 300;

const ATTEMPTS: usize = 64;

/// Less is rounding.
const SMALLEST_GAIN: f64 = 1e-6;

fn most(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}

fn add(sums: &mut [f64], shares: &[f64], sign: f64) {
    sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += sign * share);
}

struct Divided<'a> {
    things: &'a [Shares],
    part_of: Vec<usize>,
    /// What each part takes on each machine.
    sums: Vec<Shares>,
}

impl<'a> Divided<'a> {
    /// Each onto the part that is shortest then; the first ones fill every part, even with what takes no time.
    fn in_order(things: &'a [Shares], parts: usize, order: &[usize]) -> Self {
        let machines = things.first().map_or(0, Vec::len);
        let mut divided = Divided { things, part_of: vec![0; things.len()], sums: vec![vec![0.0; machines]; parts] };
        for (position, index) in order.iter().enumerate() {
            let length = |part: &usize| most(&divided.sums[*part]);
            let shortest = (0..parts).min_by(|a, b| length(a).total_cmp(&length(b)));
            let part = if position < parts { position } else { shortest.unwrap_or(0) };
            divided.part_of[*index] = part;
            add(&mut divided.sums[part], &things[*index], 1.0);
        }
        divided
    }

    fn exchange(&mut self) {
        while self.improve() {}
    }

    /// The less, the more alike are the parts.
    fn squares(&self) -> f64 {
        self.sums.iter().flatten().map(|sum| sum * sum).sum()
    }

    /// Carries out the move or exchange that makes the parts most alike, by the squares of their sums; false where none does.
    fn improve(&mut self) -> bool {
        let count = self.things.len();
        let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, Some(second))));
        let exchanges = pairs.filter_map(|(first, second)| Some((first, second, self.part_of[second?])));
        let moves = (0..count).flat_map(|first| (0..self.sums.len()).map(move |part| (first, None, part)));
        let gains = exchanges.chain(moves).map(|(first, second, to)| (self.gain(first, second, to), first, second, to));
        let best = gains.max_by(|first, second| first.0.total_cmp(&second.0));
        let Some((_, first, second, to)) = best.filter(|best| best.0 > SMALLEST_GAIN) else { return false };
        let from = self.part_of[first];
        self.move_thing(first, from, to);
        if let Some(second) = second {
            self.move_thing(second, to, from);
        }
        true
    }

    fn move_thing(&mut self, thing: usize, from: usize, to: usize) {
        add(&mut self.sums[from], &self.things[thing], -1.0);
        add(&mut self.sums[to], &self.things[thing], 1.0);
        self.part_of[thing] = to;
    }

    /// By how much the sum of squares falls if `one` goes to a part and `other` comes from there.
    fn gain(&self, first: usize, second: Option<usize>, to: usize) -> f64 {
        let from = self.part_of[first];
        let is_alone = || self.part_of.iter().filter(|part| **part == from).count() == 1;
        if from == to || (second.is_none() && is_alone()) {
            return 0.0;
        }
        let of_machine = |machine: usize| {
            let moved = self.things[first][machine] - second.map_or(0.0, |second| self.things[second][machine]);
            2.0 * moved * (self.sums[from][machine] - self.sums[to][machine] - moved)
        };
        (0..self.sums[from].len()).map(of_machine).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(times: &[f64], parts: usize) -> Vec<f64> {
        let mut sums = vec![0.0; parts];
        let things: Vec<Shares> = times.iter().map(|time| vec![*time]).collect();
        divide(&things, parts).into_iter().zip(times).for_each(|(part, time)| sums[part] += time);
        sums
    }

    fn is_within(sums: &[f64], ratio: f64) -> bool {
        let most = sums.iter().copied().fold(0.0, f64::max);
        sums.iter().all(|sum| most <= ratio * sum)
    }

    /// Whether a model takes an input is known from the cells of the devices that the host has.
    #[test]
    fn a_host_without_a_device_divides_as_one_with_it() {
        let text = "backend: mock\nmodels: [m, n]\ninputs: { batch: [1, 8] }\ndevices: [cpu, cuda]\n";
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let plan = crate::expand(&spec.experiment).expect("a plan");
        let skip = |kind| crate::Skip { kind, reason: String::new(), remedy: None };
        let unfit = |cell: &Cell| cell.model().index() == 0 && cell.input().index() == 1;
        let with = |is_here: bool| {
            let mut plan = plan.clone();
            for index in 0..plan.cells.len() {
                let cell = plan.cells[index];
                if cell.device().index() == 1 && !is_here {
                    plan.mark_skipped(index, skip(SkipKind::Device));
                } else if unfit(&cell) {
                    plan.mark_skipped(index, skip(SkipKind::Shape));
                }
            }
            (plan.run_somewhere(), shards_of_groups(&spec.experiment, &plan, &[Vec::new()], 2))
        };
        assert_eq!(with(true), with(false));
        assert_eq!(shards_of_groups(&spec.experiment, &plan, &[], 5), Err(TooManyShards { sets: 2 }));
    }

    #[test]
    fn times_are_divided_evenly() {
        // Largest first alone leaves 14 and 12.
        assert_eq!(sums(&[5.0, 5.0, 4.0, 4.0, 4.0, 4.0], 2), [13.0, 13.0]);
        // 25 sets of some minutes each in eight parts.
        let minutes: Vec<f64> = (0..25).map(|index| f64::from(60 + (index * 37) % 41 * 20)).collect();
        let sums = sums(&minutes, 8);
        assert!(is_within(&sums, 1.1), "{sums:?}");
    }

    #[test]
    fn a_fast_and_a_slow_machine_are_both_served() {
        // What takes no less than its least time on the fast one.
        let work: Vec<f64> = (0..40).map(|index| f64::from(1 + (index * 7) % 20)).collect();
        let slow: f64 = work.iter().sum();
        let fast: f64 = work.iter().map(|work| work.max(8.0)).sum();
        let things: Vec<Shares> = work.iter().map(|work| vec![work / slow, work.max(8.0) / fast]).collect();
        let parts = divide(&things, 4);
        for machine in 0..2 {
            let mut sums = vec![0.0; 4];
            parts.iter().zip(&things).for_each(|(part, thing)| sums[*part] += thing[machine]);
            assert!(is_within(&sums, 1.1), "{sums:?}");
        }
    }

    proptest! {
        #[test]
        fn no_part_is_empty_and_none_is_too_long(
            times in proptest::collection::vec(0_u32..1000, 1..40), parts in 1_usize..12,
        ) {
            let times: Vec<f64> = times.into_iter().map(f64::from).collect();
            let things: Vec<Shares> = times.iter().map(|time| vec![*time]).collect();
            let parts = parts.min(times.len());
            let divided = divide(&things, parts);
            let used: std::collections::BTreeSet<usize> = divided.iter().copied().collect();
            prop_assert_eq!(used.len(), parts);
            let fair = times.iter().sum::<f64>() / parts as f64;
            let largest = times.iter().copied().fold(0.0, f64::max);
            prop_assert!(sums(&times, parts).iter().all(|sum| *sum <= fair + largest + 1.0), "{:?}", divided);
        }
    }
}
