//! In which order the runs of a block come (method 4.2).
//!
//! A block holds one run of every member of every group, a cell or an A/A copy of one; the members of a group are
//! adjacent. Groups come in a counterbalanced shuffle. The order of the members is balanced: each comes equally often
//! right after each other one and after itself, first, last, and early as late. So neither what a run leaves behind for
//! the next one nor a drift of the machine prefers a member.

use super::{Plan, RandomStream};
use statistics::random::{Xoshiro256PlusPlus, counterbalanced_order, stream_seed};

/// Groups of more members are not counted: one member follows another too seldom for what it leaves behind to matter.
const MOST_COUNTED: usize = 32;

/// How much an unequal position weighs against an unequal predecessor.
const WEIGHT_OF_POSITION: f64 = 0.25;

/// A run in a block, without its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Index of the cell.
    pub cell: usize,
    /// Whether it is of the cell's A/A copy.
    pub is_aa_copy: bool,
}

/// Indices of the groups in the order in which `block` visits them.
pub fn group_order(plan: &Plan, block: u32) -> Vec<usize> {
    counterbalanced_order(plan.groups.len(), u64::from(block), RandomStream::GroupOrder.seed(plan.seed))
}

/// The members of all groups, those of skipped cells too, in the order in which `block` visits them.
pub fn block_order(plan: &Plan, block: u32) -> Vec<PlannedRun> {
    block_orders(plan).nth(block as usize).unwrap_or_default()
}

/// The orders of all blocks, without end: each depends on those before it.
pub fn block_orders(plan: &Plan) -> impl Iterator<Item = Vec<PlannedRun>> {
    let mut visits: Vec<Visits> = (0..plan.groups.len()).map(|group| Visits::of(plan, group)).collect();
    // The rehearsal, in the order of the matrix, ends with the last cell.
    let rehearsed = |visits: &Visits| visits.members.iter().rposition(|member| !member.is_aa_copy);
    let mut ended_with = visits.last().and_then(rehearsed).unwrap_or_default();
    (0..).map(move |block| {
        let groups = group_order(plan, block);
        let next_block = group_order(plan, block + 1);
        let following = groups.iter().skip(1).chain(next_block.first());
        let mut order = Vec::with_capacity(plan.cells.len() + plan.controls.len());
        for (group, following) in groups.iter().zip(following) {
            let begun = visits[*following].begun.clone();
            ended_with = visits[*group].visit(block, ended_with, &begun, &mut order);
        }
        order
    })
}

/// What the visits of a group have counted so far, by the index of a member in the group.
struct Visits {
    members: Vec<PlannedRun>,
    /// Of cells that are not run; they come last.
    skipped: Vec<PlannedRun>,
    seed: u64,
    /// How often the second came right after the first.
    followed: Vec<Vec<f64>>,
    begun: Vec<f64>,
    ended: Vec<f64>,
    /// The sum of positions, from the middle of the visit.
    positions: Vec<f64>,
}

impl Visits {
    fn of(plan: &Plan, group: usize) -> Self {
        let cells = plan.groups[group].cells.iter().map(|cell| *cell as usize);
        let aa_copies = plan.controls.iter().map(|control| *control as usize);
        let aa_copies = aa_copies.filter(|control| plan.cells[*control].group as usize == group);
        let members = cells.map(|cell| PlannedRun { cell, is_aa_copy: false });
        let members = members.chain(aa_copies.map(|cell| PlannedRun { cell, is_aa_copy: true }));
        let (members, skipped): (Vec<PlannedRun>, _) =
            members.partition(|member| plan.cells[member.cell].skip.is_none());
        let first = plan.groups[group].cells.first().map(|cell| plan.cells[*cell as usize].id);
        let seed = first.map_or(plan.seed, |first| RandomStream::MemberOrder(first).seed(plan.seed));
        let count = members.len();
        let counted = if count > MOST_COUNTED { 0 } else { count };
        Visits {
            skipped,
            seed,
            followed: vec![vec![0.0; counted]; counted],
            begun: vec![0.0; count],
            ended: vec![0.0; count],
            positions: vec![0.0; count],
            members,
        }
    }

    /// Adds the order of this block, and returns the index of the member that ends it: with it the next visit begins,
    /// be it of this group or of another, whose members are variants of the same names.
    fn visit(&mut self, block: u32, ended_with: usize, next_begun: &[f64], order: &mut Vec<PlannedRun>) -> usize {
        // Of equal ones the first is taken, so that chance decides.
        let mut left: Vec<usize> = (0..self.members.len()).collect();
        Xoshiro256PlusPlus::seed_from_u64(stream_seed(self.seed, u64::from(block))).shuffle(&mut left);
        let first = take(&mut left, |member| if member == ended_with { -1.0 } else { self.begun[member] });
        let middle = (self.members.len() as f64 - 1.0) / 2.0;
        let mut sequence: Vec<usize> = first.into_iter().collect();
        while let Some(before) = sequence.last().copied().filter(|_| !left.is_empty()) {
            let position = sequence.len() as f64 - middle;
            let two = <[usize; 2]>::try_from(left.as_slice()).ok();
            let cost = |member: usize| {
                let end =
                    |last: usize| self.times(member, last) + self.ended[last] + next_begun.get(last).unwrap_or(&0.0);
                let end = two.map_or(0.0, |[first_left, second_left]| {
                    end(if member == first_left { second_left } else { first_left })
                });
                self.times(before, member) + end + WEIGHT_OF_POSITION * self.positions[member] * position
            };
            sequence.extend(take(&mut left, cost));
        }
        self.count(&sequence, middle);
        order.extend(sequence.iter().map(|member| self.members[*member]));
        order.extend(&self.skipped);
        sequence.last().copied().unwrap_or(ended_with)
    }

    fn times(&self, before: usize, member: usize) -> f64 {
        self.followed.get(before).map_or(0.0, |row| row[member])
    }

    fn count(&mut self, sequence: &[usize], middle: f64) {
        let (Some(first), Some(last)) = (sequence.first(), sequence.last()) else { return };
        self.begun[*first] += 1.0;
        self.ended[*last] += 1.0;
        for pair in sequence.windows(2) {
            if let Some(row) = self.followed.get_mut(pair[0]) {
                row[pair[1]] += 1.0;
            }
        }
        for (position, member) in sequence.iter().enumerate() {
            self.positions[*member] += position as f64 - middle;
        }
    }
}

/// Takes out what costs least.
fn take(left: &mut Vec<usize>, cost: impl Fn(usize) -> f64) -> Option<usize> {
    let costs = left.iter().map(|member| cost(*member)).enumerate();
    let (index, _) = costs.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(left.remove(index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expand, place_controls};
    use experiment::Aa;
    use std::collections::BTreeSet;

    fn plan_of(text: &str) -> Plan {
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        expand(&spec.experiment).expect("a plan")
    }

    fn plan(aa: Aa) -> Plan {
        let mut plan = plan_of("backend: mock\nmodels: [m, n]\nvariants: [a, b, c]");
        place_controls(&mut plan, aa);
        plan
    }

    #[test]
    fn a_block_holds_every_member_once() {
        let plan = plan(Aa::Group);
        for order in block_orders(&plan).take(9) {
            let cells: Vec<usize> =
                order.iter().filter(|member| !member.is_aa_copy).map(|member| member.cell).collect();
            assert_eq!((order.len(), cells.iter().copied().collect::<BTreeSet<_>>()), (8, (0..6).collect()));
        }
        assert_eq!(block_orders(&plan).nth(5), Some(block_order(&plan, 5)));
    }

    /// By how much the second of two variants would seem slower in the mean of all models, in parts of what a run of the first
    /// takes from whichever run comes next.
    fn left_by_the_first(text: &str, blocks: usize) -> f64 {
        let mut plan = plan_of(text);
        place_controls(&mut plan, Aa::Off);
        // Of the rehearsal.
        let mut before = plan.cells.last().map(|cell| plan.coordinates(cell).variant().to_owned());
        let mut after_the_first = [0.0; 2];
        for run in block_orders(&plan).take(blocks).flatten() {
            let variant = plan.coordinates(&plan.cells[run.cell]).variant().to_owned();
            if let (Some(index), Some("a")) = (["a", "b"].iter().position(|name| *name == variant), before.as_deref()) {
                after_the_first[index] += 1.0;
            }
            before = Some(variant);
        }
        (after_the_first[1] - after_the_first[0]) / (blocks * plan.groups.len()) as f64
    }

    /// In a shuffle whose odd blocks are reversed the mean is .10 to .42.
    #[test]
    fn what_a_run_leaves_behind_falls_on_all_members_alike() {
        for models in ["[m]", "[m, n]", "[m, n, o, p, q]"] {
            for variants in ["[a, b]", "[a, b, c]", "[a, b, c, d]"] {
                for seed in 0..20 {
                    let text = format!("backend: mock\nseed: {seed}\nmodels: {models}\nvariants: {variants}");
                    let left = left_by_the_first(&text, 32);
                    assert!(left.abs() <= 0.07, "{models} {variants} {seed}: {left}");
                }
            }
        }
    }

    #[test]
    fn a_drift_falls_on_all_members_alike() {
        let plan = plan(Aa::Group);
        let mut middle = vec![0.0; plan.cells.len()];
        for (position, run) in block_orders(&plan).take(8).flatten().enumerate().filter(|(_, run)| !run.is_aa_copy) {
            middle[run.cell] += position as f64 / 8.0;
        }
        for group in &plan.groups {
            let positions = group.cells.iter().map(|cell| middle[*cell as usize]);
            let (least, most) = positions
                .fold((f64::MAX, 0.0_f64), |(least, most), position| (least.min(position), most.max(position)));
            assert!(most - least < 0.8, "{middle:?}");
        }
    }

    #[test]
    fn skipped_cells_come_last_and_change_nothing() {
        let (mut plan, without) = (plan_of("backend: mock\nvariants: [a, b, c]\nmodels: [m]"), "[a, c]");
        plan.cells[1].skip = Some(0);
        let without = plan_of(&format!("backend: mock\nvariants: {without}\nmodels: [m]"));
        for (order, other) in block_orders(&plan).zip(block_orders(&without)).take(9) {
            let names = |plan: &Plan, run: &PlannedRun| plan.coordinates(&plan.cells[run.cell]).variant().to_owned();
            assert_eq!(order[2].cell, 1);
            let (order, other): (Vec<String>, Vec<String>) = (
                order[..2].iter().map(|run| names(&plan, run)).collect(),
                other.iter().map(|run| names(&without, run)).collect(),
            );
            assert_eq!(order, other);
        }
    }

    #[test]
    fn many_members_are_ordered_soon() {
        let mut plan = plan(Aa::Off);
        let cell = plan.cells[0];
        plan.groups = vec![crate::Group { cells: (0..5_000).collect(), baseline: None, part: 0 }];
        plan.cells = vec![cell; 5_000];
        let order = block_order(&plan, 40);
        assert_eq!(order.iter().map(|run| run.cell).collect::<BTreeSet<_>>().len(), 5_000);
    }
}
