//! The cells of several records in one matrix: which record each is taken from, and the plan that they would have had.

use std::collections::BTreeMap;

use super::super::Manifest;
use super::{MergeError, Part};
use crate::MachineUsed;
use experiment::{AxisMap, Device, DeviceIndex, Entries, Experiment, Point};
use plan::{Cell, CellId, Group, Plan, Skip, SkipKind};

/// The cells of the whole.
pub(super) struct Joined {
    /// In plan order.
    pub(super) cells: Vec<JoinedCell>,
    /// The machine of each part.
    machine_of: Vec<usize>,
    /// The index of a cell in the whole by its machine and its index in the parts, which all have the same plan.
    indices: BTreeMap<(usize, usize), usize>,
    /// Groups here by machine and group of the parts, in the order of their first cells.
    groups: BTreeMap<(usize, u32), usize>,
    is_several: bool,
}

/// A cell of the whole.
pub(super) struct JoinedCell {
    /// Its index in the parts.
    pub(super) old: usize,
    machine: usize,
    /// Its group here.
    group: usize,
    /// Where it stands on the axes in the parts, whatever its input.
    at: Point,
    /// The part that it is taken from: the one that measured it, else one that says why it could not be measured.
    part: usize,
}

impl Joined {
    pub(super) fn of(parts: &[Part], machines: &[MachineUsed]) -> Result<Self, MergeError> {
        let plan = &parts[0].manifest.plan;
        let machine_index = |part: &Part| machines.iter().position(|machine| machine.name == part.machine).unwrap_or(0);
        let machine_of: Vec<usize> = parts.iter().map(machine_index).collect();
        let mut chosen = BTreeMap::new();
        for old in 0..plan.cells.len() {
            for machine in 0..machines.len() {
                chosen.insert((machine, old), chosen_part(parts, &machine_of, machine, old)?);
            }
        }
        check_groups(parts, plan, machines.len(), &chosen)?;
        // A machine whose parts all left a group out has no cells of it, unless all machines left it out.
        let has = |machine: usize, group: &Group| {
            let is_known = |cell: &u32| {
                let part = chosen[&(machine, *cell as usize)];
                part.is_some_and(|part| !is_left_out(skip(&parts[part], *cell as usize)))
            };
            group.cells.iter().any(is_known)
        };
        let is_several = machines.len() > 1;
        let mut joined =
            Joined { cells: Vec::new(), machine_of, indices: BTreeMap::new(), groups: BTreeMap::new(), is_several };
        for (old, cell) in plan.cells.iter().enumerate() {
            let group = &plan.groups[cell.group as usize];
            let of_group: Vec<usize> = (0..machines.len()).filter(|machine| has(*machine, group)).collect();
            for machine in if of_group.is_empty() { vec![0] } else { of_group } {
                joined.indices.insert((machine, old), joined.cells.len());
                let next = joined.groups.len();
                let group = *joined.groups.entry((machine, cell.group)).or_insert(next);
                joined.cells.push(JoinedCell {
                    old,
                    machine,
                    group,
                    at: cell.at.without_input(),
                    part: chosen[&(machine, old)].unwrap_or(0),
                });
            }
        }
        Ok(joined)
    }

    /// The index in the whole of a cell of a part; nothing where its machine has no such cell.
    pub(super) fn index(&self, part: usize, old: usize) -> Option<usize> {
        self.indices.get(&(self.machine_of[part], old)).copied()
    }

    /// Whether a cell of the whole is taken from a part.
    pub(super) fn is_taken_from(&self, part: usize, cell: usize) -> bool {
        self.cells[cell].part == part
    }

    /// The group here of a cell here.
    pub(super) fn group(&self, cell: usize) -> usize {
        self.cells[cell].group
    }

    /// Whether two cells here are one but for their input.
    pub(super) fn differ_in_input_alone(&self, one: u32, other: u32) -> bool {
        let cell = |index: u32| self.cells.get(index as usize);
        match (cell(one), cell(other)) {
            (Some(one), Some(other)) => one.machine == other.machine && one.at == other.at,
            _ => false,
        }
    }

    /// Whether there are several machines, so that devices carry their names.
    pub(super) fn is_several(&self) -> bool {
        self.is_several
    }

    /// The index in the whole of a device of a part.
    pub(super) fn device(&self, part: usize, old: usize, devices: usize) -> usize {
        if self.is_several { self.machine_of[part] * devices + old } else { old }
    }

    /// The devices of every machine.
    pub(super) fn devices(&self, manifest: &Manifest) -> Vec<Device> {
        let of_machine = |machine: &MachineUsed| {
            let name = machine.name.clone();
            manifest
                .experiment
                .devices
                .iter()
                .map(move |device| Device { machine: Some(name.clone()), ..device.clone() })
        };
        manifest.machines.iter().flat_map(of_machine).collect()
    }

    /// The plan of the whole, which has the devices of every machine.
    pub(super) fn plan(&self, old: &Plan, whole: &Experiment, parts: &[Part]) -> Plan {
        let devices = old.names_of::<Device>().len();
        let axes = Entries::new(AxisMap::of(|axis| whole.names(axis)), old.axes.inputs().clone());
        let mut groups = vec![Group { cells: Vec::new(), baseline: None, part: 0 }; self.groups.len()];
        let mut cells = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            let from = &old.cells[cell.old];
            let mut at = from.at;
            if self.is_several {
                at = at.moved_to(DeviceIndex::from(cell.machine * devices + from.device().index()));
            }
            groups[cell.group].cells.push(index as u32);
            groups[cell.group].part = cell.part as u32;
            if old.is_baseline(from) {
                groups[cell.group].baseline = Some(index as u32);
            }
            let id = CellId::of(&axes.coordinates(&at));
            cells.push(Cell { id, at, group: cell.group as u32, skip: None });
        }
        let controls = self.controls(parts);
        let runs = parts.iter().map(|part| part.manifest.plan.runs).max().unwrap_or(old.runs);
        let mut product = old.product.clone();
        if self.is_several {
            product.total = cells.len() as u64;
        }
        let mut plan = Plan { axes, cells, groups, skips: Vec::new(), product, controls, runs, ..old.clone() };
        for (index, cell) in self.cells.iter().enumerate() {
            if let Some(skip) = skip(&parts[cell.part], cell.old) {
                plan.mark_skipped(index, skip.clone());
            }
        }
        plan
    }

    /// The cells that a part measured twice.
    fn controls(&self, parts: &[Part]) -> Vec<u32> {
        let of_parts = parts.iter().enumerate().flat_map(|(index, part)| {
            let controls = part.manifest.plan.controls.iter();
            controls.filter_map(move |control| self.index(index, *control as usize).map(|cell| cell as u32))
        });
        let mut controls: Vec<u32> = of_parts.collect();
        controls.sort_unstable();
        controls.dedup();
        controls
    }
}

fn skip(part: &Part, cell: usize) -> Option<&Skip> {
    let plan = &part.manifest.plan;
    plan.skip(&plan.cells[cell])
}

/// The user left it to another part.
fn is_left_out(skip: Option<&Skip>) -> bool {
    skip.is_some_and(|skip| skip.kind == SkipKind::Selection)
}

/// Of the parts of a machine the one that measured a cell, else one that says why it could not; `None` where the machine has
/// no part.
fn chosen_part(parts: &[Part], machine_of: &[usize], machine: usize, old: usize) -> Result<Option<usize>, MergeError> {
    let candidates: Vec<usize> = (0..parts.len()).filter(|part| machine_of[*part] == machine).collect();
    let measured: Vec<usize> = candidates.iter().copied().filter(|part| skip(&parts[*part], old).is_none()).collect();
    if let [first, second, ..] = measured[..] {
        let plan = &parts[first].manifest.plan;
        return Err(MergeError::Twice {
            record: parts[first].manifest.record.clone(),
            other: parts[second].manifest.record.clone(),
            cell: plan.path(&plan.cells[old]),
            machine: parts[first].machine.clone(),
        });
    }
    let explained = || candidates.iter().copied().find(|part| !is_left_out(skip(&parts[*part], old)));
    Ok(measured.first().copied().or_else(explained).or(candidates.first().copied()))
}

/// Cells of one group took turns, so that one part has measured all of them that anybody did.
fn check_groups(
    parts: &[Part],
    plan: &Plan,
    machines: usize,
    chosen: &BTreeMap<(usize, usize), Option<usize>>,
) -> Result<(), MergeError> {
    for (group, machine) in plan.groups.iter().flat_map(|group| (0..machines).map(move |machine| (group, machine))) {
        let measured = group.cells.iter().filter_map(|cell| {
            let part = chosen.get(&(machine, *cell as usize)).copied().flatten()?;
            skip(&parts[part], *cell as usize).is_none().then_some(part)
        });
        let measured: Vec<usize> = measured.collect();
        if let Some(other) = measured.iter().find(|part| **part != measured[0]) {
            let name = |part: usize| parts[part].manifest.record.clone();
            let cell = group.cells.first().map_or_else(String::new, |cell| plan.path(&plan.cells[*cell as usize]));
            return Err(MergeError::Split { record: name(measured[0]), other: name(*other), cell });
        }
    }
    Ok(())
}
