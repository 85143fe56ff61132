//! Cells of different devices at the same time (method 4.7): a lane for each device, in which run follows run.
//!
//! Input: the turns of a block. Output: which of them may be under way together; where none may, there is one lane.
//! Whether devices disturb each other is found by `passes::side_by_side`, and `at_work` keeps lanes at work.

use std::collections::BTreeMap;

use super::Job;
use super::schedule::Placed;
use experiment::Hardware;
use plan::{Cell, Plan};
use record::StoredRun;

/// What two cells share that are on one device, by whichever provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    Processor,
    /// By its number; the first where nothing says which.
    Gpu(u32),
    Npu,
}

impl Lane {
    /// The lane of a cell's device.
    pub(super) fn of(job: &Job, cell: &Cell) -> Self {
        let device = job.device(cell);
        match device.hardware {
            _ if device.is_processor() => Lane::Processor,
            Some(Hardware::Npu) => Lane::Npu,
            _ => Lane::Gpu(job.gpu_of(cell).map(|gpu| gpu.number).or(device.index).unwrap_or(0)),
        }
    }
}

/// The lane of a run, where other lanes may be at work at the same time.
pub(super) fn of_run(job: &Job, run: &StoredRun) -> Option<Lane> {
    let together = job.together();
    let mut cells = job.plan().cells.iter().filter(|_| !together.is_empty());
    let cell = cells.find(|cell| cell.id == run.cell && together.contains(&cell.device()))?;
    Some(Lane::of(job, cell))
}

/// The turns of a block: segment after segment, and within one every lane by itself.
///
/// Groups on one device each go on in their lanes without waiting for other lanes. A group on several devices is a
/// segment of its own, so that its members stay near each other, or two where some of its devices may not be disturbed.
pub(super) fn segments(job: &Job, turns: Vec<Placed>) -> Vec<Vec<Vec<Placed>>> {
    let together = job.together();
    divided(job.plan(), turns, &|cell| together.contains(&cell.device()).then(|| Lane::of(job, cell)))
}

/// The same for any lanes; cells without one run alone.
fn divided(plan: &Plan, turns: Vec<Placed>, lane: &dyn Fn(&Cell) -> Option<Lane>) -> Vec<Vec<Vec<Placed>>> {
    let lane = |(_, turn): &Placed| lane(&plan.cells[turn.cell]);
    let group = |(_, turn): &Placed| plan.cells[turn.cell].group;
    let mut lanes_of: BTreeMap<u32, Vec<Option<Lane>>> = BTreeMap::new();
    for turn in &turns {
        lanes_of.entry(group(turn)).or_default().push(lane(turn));
    }
    let is_free = |turn: &Placed| {
        let lanes = &lanes_of[&group(turn)];
        lanes[0].is_some() && lanes.iter().all(|lane| *lane == lanes[0])
    };
    let (free, ordered): (Vec<Placed>, Vec<Placed>) = turns.into_iter().partition(is_free);
    let alone_and_together = |group: &[Placed]| {
        let (alone, together): (Vec<Placed>, Vec<Placed>) = group.iter().partition(|turn| lane(turn).is_none());
        let is_alone_first = group.first().is_some_and(|turn| lane(turn).is_none());
        if is_alone_first { [alone, together] } else { [together, alone] }
    };
    let in_lanes = |segment: &[Placed]| {
        let mut lanes: BTreeMap<Option<Lane>, Vec<Placed>> = BTreeMap::new();
        for turn in segment {
            lanes.entry(lane(turn)).or_default().push(*turn);
        }
        lanes.into_values().collect()
    };
    let ordered = ordered.chunk_by(|one, other| group(one) == group(other)).flat_map(alone_and_together);
    std::iter::once(free)
        .chain(ordered)
        .filter(|segment| !segment.is_empty())
        .map(|segment| in_lanes(&segment))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::schedule;
    use experiment::Design;

    /// The turns of the first block in the order in which they were drawn.
    fn drawn(text: &str) -> Vec<String> {
        let plan = plan(text);
        schedule::block(&plan, Design::Blocks, 0).iter().map(|turn| path(&plan, turn.cell)).collect()
    }

    fn path(plan: &Plan, cell: usize) -> String {
        let at = plan.coordinates(&plan.cells[cell]);
        format!("{} {}", at.input(), at.device())
    }

    fn plan(text: &str) -> Plan {
        let text =
            format!("backend: mock\nmodels: [m]\ninputs: {{ batch: [1, 2] }}\ndevices: [cpu, cuda:0, cuda:1]\n{text}");
        let spec = spec::parse("x.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        plan::expand(&spec.experiment).expect("a plan")
    }

    /// The first block of an experiment, as inputs and devices by segment and lane.
    fn paths(text: &str, lane: &dyn Fn(&str) -> Option<u32>) -> Vec<Vec<Vec<String>>> {
        let plan = plan(text);
        let turns = (0..).zip(schedule::block(&plan, Design::Blocks, 0)).collect();
        let lane_of = |cell: &Cell| lane(plan.coordinates(cell).device()).map(Lane::Gpu);
        let path = |(_, turn): &Placed| path(&plan, turn.cell);
        let segments = divided(&plan, turns, &lane_of);
        let lanes = |segment: &Vec<Vec<Placed>>| segment.iter().map(|lane| lane.iter().map(path).collect()).collect();
        segments.iter().map(lanes).collect()
    }

    const BY_VARIANT: &str = "variants: [a, b]";
    const BY_DEVICE: &str = "compare: { baseline: { device: cpu } }";

    fn number(device: &str) -> Option<u32> {
        device.strip_prefix("cuda:").and_then(|number| number.parse().ok())
    }

    #[test]
    fn without_lanes_a_block_is_as_it_was_drawn() {
        for text in [BY_VARIANT, BY_DEVICE] {
            let segments = paths(text, &|_| None);
            assert!(segments.iter().all(|lanes| lanes.len() == 1), "{segments:?}");
            assert_eq!(segments.concat().concat(), drawn(text));
        }
    }

    #[test]
    fn groups_of_one_device_each_share_lanes_and_the_others_come_alone() {
        let all = paths(BY_VARIANT, &|device| number(device).or(Some(9)));
        assert_eq!((all.len(), all[0].iter().map(Vec::len).collect::<Vec<_>>()), (1, vec![4, 4, 4]));
        let gpus = paths(BY_VARIANT, &number);
        let [lanes, alone @ ..] = gpus.as_slice() else { panic!("{gpus:?}") };
        assert_eq!((lanes.len(), alone.concat().len(), alone.concat().concat().len()), (2, 2, 4));
        assert!(alone.concat().concat().iter().all(|path| path.ends_with("cpu")));
        for lane in lanes {
            let device = |path: &String| path.split(' ').nth(1).map(str::to_owned);
            assert!(lane.iter().all(|path| device(path) == device(&lane[0])), "{lane:?}");
        }
    }

    #[test]
    fn a_group_of_several_devices_waits_for_its_members() {
        let segments = paths(BY_DEVICE, &number);
        let one_group = |segment: &Vec<Vec<String>>| {
            let mut inputs = segment.iter().flatten().map(|path| path.split(' ').next());
            let first = inputs.next();
            inputs.all(|input| Some(input) == first)
        };
        let side_by_side: Vec<_> = segments.iter().filter(|segment| segment.len() == 2).collect();
        assert!(!side_by_side.is_empty() && side_by_side.iter().all(|segment| one_group(segment)), "{segments:?}");
        assert_eq!(segments.iter().flatten().flatten().count(), 6);
    }
}
