//! What the passes of several records found, as if one had.

use super::super::PassFindings;
use super::super::found::{
    BudgetUsed, CellFidelity, CellRate, CellSearch, Converted, DeviceSeen, DevicesSeen, Disturbed, NotCompared, Rates,
    Rehearsed, Scored, Searched, SideBySide, TooLarge, Trial, VariantAccuracy,
};
use super::super::profiled::{CellProfile, Profiled};
use super::super::roofline::{Bandwidth, Launching, Peak, Roofline};
use super::Part;
use super::matrix::Joined;
use experiment::DeviceIndex;

/// Everything that was found, with cells, groups and devices by their indices in the whole.
pub(super) fn joined(parts: &[Part], joined: &Joined) -> PassFindings {
    let each = || parts.iter().enumerate().map(|(index, part)| (At { joined, part: index }, &part.manifest));
    let mut found = PassFindings { complete: true, ..PassFindings::default() };
    for (at, manifest) in each() {
        let findings = &manifest.findings;
        let devices = manifest.experiment.devices.len();
        found.invocations.extend(findings.invocations.iter().cloned());
        merge(&mut found.devices, &findings.devices, |all, other| at.devices(all, other, devices));
        merge(&mut found.convert, &findings.convert, converted);
        merge(&mut found.search, &findings.search, |all, other| at.searched(all, other));
        merge(&mut found.rehearsal, &findings.rehearsal, |all, other| at.rehearsed(all, other));
        merge(&mut found.rates, &findings.rates, |all, other| at.rates(all, other));
        merge(&mut found.outputs, &findings.outputs, |all, other| {
            all.fidelity.extend(at.fidelity(&other.fidelity));
            let renumbered =
                |known: &NotCompared| Some(NotCompared { cell: at.taken_cell(known.cell)?, ..known.clone() });
            all.not_compared.extend(other.not_compared.iter().filter_map(renumbered));
        });
        merge(&mut found.profile, &findings.profile, |all, other| at.profiled(all, other));
        merge(&mut found.accuracy, &findings.accuracy, |all, other| at.scored(all, other));
        merge(&mut found.side_by_side, &findings.side_by_side, |all, other| at.tried(all, other, devices));
        let machine = (joined.is_several()).then_some(parts[at.part].machine.as_str());
        merge(&mut found.peak, &findings.peak, |all, other| seen(all, other, machine));
        if let Some(budget) = findings.budget {
            // The cells of each record without room for them are skipped in its plan.
            let known = found.budget.get_or_insert(BudgetUsed { cells: None, ..budget });
            *known =
                BudgetUsed { runs: known.runs.max(budget.runs), wanted: known.wanted.max(budget.wanted), ..*known };
        }
        if found.setup.is_none() {
            found.setup.clone_from(&findings.setup);
        }
        if found.requirements.is_none() {
            found.requirements = findings.requirements;
        }
    }
    if joined.is_several() {
        // What processors draw without work is a number of one machine.
        found.devices.iter_mut().for_each(|seen| seen.packages_idle_watts = None);
    }
    if let Some(rehearsal) = &mut found.rehearsal {
        rehearsal.iterations = iterations(parts, joined);
    }
    found
}

/// Adds what a part found to what the parts before it found; nothing where it found nothing.
fn merge<T: Default>(all: &mut Option<T>, found: &Option<T>, add: impl FnOnce(&mut T, &T)) {
    if let Some(found) = found {
        add(all.get_or_insert_with(T::default), found);
    }
}

/// Indices in the whole, as a part sees them.
struct At<'a> {
    joined: &'a Joined,
    part: usize,
}

impl At<'_> {
    /// The index of a cell, if the whole takes it from this part.
    fn taken_cell(&self, cell: u32) -> Option<u32> {
        self.cell(cell).filter(|cell| self.joined.is_taken_from(self.part, *cell as usize))
    }

    fn cell(&self, cell: u32) -> Option<u32> {
        self.joined.index(self.part, cell as usize).map(|index| index as u32)
    }

    fn devices(&self, all: &mut DevicesSeen, found: &DevicesSeen, devices: usize) {
        for seen in &found.devices {
            let device = self.joined.device(self.part, seen.device.index(), devices).into();
            if !all.devices.iter().any(|known| known.device == device) {
                all.devices.push(DeviceSeen { device, ..seen.clone() });
            }
        }
        all.packages_idle_watts = all.packages_idle_watts.or(found.packages_idle_watts);
    }

    /// Shards try the same devices with cells of their own.
    fn tried(&self, all: &mut SideBySide, found: &SideBySide, devices: usize) {
        let device = |device: &DeviceIndex| self.joined.device(self.part, device.index(), devices).into();
        for trial in &found.trials {
            let cell = |known: &Disturbed| Some(Disturbed { cell: self.cell(known.cell)?, ..*known });
            let (devices, cells) =
                (trial.devices.iter().map(device).collect(), trial.cells.iter().filter_map(cell).collect());
            all.trials.push(Trial { devices, cells, ..trial.clone() });
        }
    }

    fn searched(&self, all: &mut Searched, found: &Searched) {
        let renumbered =
            |search: &CellSearch| Some(CellSearch { cell: self.taken_cell(search.cell)?, ..search.clone() });
        all.searches.extend(found.searches.iter().filter_map(renumbered));
    }

    fn rates(&self, all: &mut Rates, found: &Rates) {
        let renumbered = |rate: &CellRate| Some(CellRate { cell: self.taken_cell(rate.cell)?, ..rate.clone() });
        all.cells.extend(found.cells.iter().filter_map(renumbered));
    }

    fn rehearsed(&self, all: &mut Rehearsed, found: &Rehearsed) {
        for said in &found.libraries {
            if !all.libraries.iter().any(|known| known.runtime == said.runtime) {
                all.libraries.push(said.clone());
            }
        }
        let renumbered = |known: &TooLarge| Some(TooLarge { cell: self.taken_cell(known.cell)?, ..*known });
        all.too_large.extend(found.too_large.iter().filter_map(renumbered));
    }

    fn fidelity(&self, found: &[CellFidelity]) -> Vec<CellFidelity> {
        let renumbered = |known: &CellFidelity| {
            let reference = known.reference.map_or(Some(None), |reference| self.cell(reference).map(Some))?;
            Some(CellFidelity { cell: self.taken_cell(known.cell)?, reference, ..known.clone() })
        };
        found.iter().filter_map(renumbered).collect()
    }

    fn profiled(&self, all: &mut Profiled, found: &Profiled) {
        let renumbered =
            |known: &CellProfile| Some(CellProfile { cell: self.taken_cell(known.cell)?, ..known.clone() });
        all.cells.extend(found.cells.iter().filter_map(renumbered));
    }

    fn scored(&self, all: &mut Scored, found: &Scored) {
        let renumbered = |known: &VariantAccuracy| {
            let reference = known.reference.map(|reference| self.cell(reference));
            let reference = match reference {
                Some(None) => return None,
                Some(index) => index,
                None => None,
            };
            Some(VariantAccuracy { cell: self.cell(known.cell)?, reference, ..known.clone() })
        };
        // Parts with other inputs score the same variants.
        for known in found.accuracy.iter().filter_map(renumbered) {
            let is_known = |other: &VariantAccuracy| self.joined.differ_in_input_alone(other.cell, known.cell);
            if !all.accuracy.iter().any(is_known) {
                all.accuracy.push(known);
            }
        }
        all.fidelity.extend(self.fidelity(&found.fidelity));
    }
}

/// Conversions are the same wherever they were made; those of models that a part did not need come from the other
/// parts.
fn converted(all: &mut Converted, found: &Converted) {
    for file in &found.variant_files {
        let key = |file: &super::super::VariantFile| (file.model, file.variant, file.provider);
        match all.variant_files.iter_mut().find(|known| key(known) == key(file)) {
            Some(known) if known.sha256.is_none() => known.clone_from(file),
            Some(_) => {}
            None => all.variant_files.push(file.clone()),
        }
    }
}

fn seen(all: &mut Roofline, found: &Roofline, machine: Option<&str>) {
    let label = |device: &str| machine.map_or_else(|| device.to_owned(), |machine| format!("{device}@{machine}"));
    for peak in &found.peaks {
        let peak = Peak { device: label(&peak.device), ..peak.clone() };
        let key = |peak: &Peak| (peak.device.clone(), peak.threads, peak.arithmetic);
        keep_best(&mut all.peaks, peak, key, |one, other| one.operations_per_s > other.operations_per_s);
    }
    for seen in &found.bandwidths {
        let seen = Bandwidth { device: label(&seen.device), ..seen.clone() };
        let key = |seen: &Bandwidth| (seen.device.clone(), seen.threads, seen.stream, seen.bytes);
        keep_best(&mut all.bandwidths, seen, key, |one, other| one.bytes_per_s > other.bytes_per_s);
    }
    for seen in &found.launches {
        let seen = Launching { device: label(&seen.device), ..seen.clone() };
        let key = |seen: &Launching| (seen.device.clone(), seen.threads);
        keep_best(&mut all.launches, seen, key, |one, other| one.node_ns < other.node_ns);
    }
    for file in &found.files {
        if !all.files.contains(file) {
            all.files.push(*file);
        }
    }
}

/// Keeps the best of what several parts saw on one machine.
fn keep_best<T, K: PartialEq>(all: &mut Vec<T>, found: T, key: impl Fn(&T) -> K, is_better: impl Fn(&T, &T) -> bool) {
    match all.iter_mut().find(|known| key(known) == key(&found)) {
        Some(known) if is_better(&found, known) => *known = found,
        Some(_) => {}
        None => all.push(found),
    }
}

/// Iterations per sample by group of the whole; 0 where no cell of it ran.
fn iterations(parts: &[Part], joined: &Joined) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let manifest = &part.manifest;
        for (old, cell) in manifest.plan.cells.iter().enumerate() {
            let Some(group) = joined.index(index, old).map(|cell| joined.group(cell)) else { continue };
            let found = manifest.iterations().get(cell.group as usize).copied().unwrap_or(0);
            all.resize(all.len().max(group + 1), 0);
            all[group] = all[group].max(found);
        }
    }
    all
}
