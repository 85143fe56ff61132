//! The same comparison on several machines of a merged record: whether they differ, and what to expect on another (method
//! 6.11). Absolute numbers do not carry over from machine to machine; ratios may.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cell, Comparison, Results};
use crate::stored::rounded;
use base::metric::MetricReference;
use experiment::Device;
use plan::CellId;
use record::{MachineUsed, Manifest};
use statistics::Verdict;
use statistics::distribution::normal_quantile;
use statistics::interval::Interval;
use statistics::random_effects::random_effects;

/// Of the mean over machines, and of one more.
const CONFIDENCE: f64 = 0.95;

/// A comparison that several machines made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcrossMachines {
    /// The cell that is compared with its baseline, on whatever machine: `resnet50/b1/int8/cpu`.
    pub path: String,
    /// The ids of its cells, one of each machine, in the order of machines; [`Results::comparisons`] has what each found.
    pub cells: Vec<CellId>,
    /// The metric that is compared.
    pub metric: MetricReference,
    /// Which verdict holds on which machines, in the order in which verdicts are reported.
    pub held: Vec<Held>,
    /// The ratio in the mean over machines, by a random effect of the machine; absent where fewer than two have an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<MeanRatio>,
}

/// A verdict, and where it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// What may be claimed; where nothing may, `undecided`.
    #[schemars(with = "String", description = format!("{}.", Verdict::listed()))]
    pub verdict: Verdict,
    /// The machines.
    pub machines: Vec<String>,
    /// Units of a processor that all of them lack, and that every other machine has; of cells on processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Of a difference, the ratio that all of them keep: for the better at least, for the worse at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// A ratio over machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanRatio {
    /// The geometric mean.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of the logarithms of the true ratios between machines.
    pub deviation: f64,
    /// p value of equal true ratios on all machines.
    pub p: f64,
    /// Lower end of the 95 % interval for a machine that was not measured; absent below four machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_low: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_high: Option<f64>,
}

impl Results {
    /// What each machine found.
    pub fn rows_across<'a>(&'a self, across: &'a AcrossMachines) -> impl Iterator<Item = &'a Comparison> {
        let row = |cell: &CellId| self.comparisons.iter().find(|row| row.cell == *cell && row.metric == across.metric);
        across.cells.iter().filter_map(row)
    }

    /// The names of the machines, where there are several.
    pub fn machines(&self) -> Vec<&str> {
        let names: Vec<&str> = self.provenance.machine.split(Manifest::BETWEEN_MACHINES).collect();
        if names.len() > 1 { names } else { Vec::new() }
    }
}

/// Every comparison that two machines and more made, in the order of the first.
pub(super) fn across(results: &Results, manifest: &Manifest) -> Vec<AcrossMachines> {
    if results.machines().is_empty() {
        return Vec::new();
    }
    let cells: BTreeMap<CellId, &Cell> = results.cells.iter().map(|cell| (cell.id, cell)).collect();
    let path = |id: CellId| Some(cells.get(&id)?.names.clone().without_machine().path());
    let mut index_of: BTreeMap<_, usize> = BTreeMap::new();
    let mut claims: Vec<Vec<&Comparison>> = Vec::new();
    for row in results.unasked() {
        let index = *index_of.entry((path(row.cell), path(row.baseline), row.metric.key())).or_insert(claims.len());
        if index == claims.len() {
            claims.push(Vec::new());
        }
        claims[index].push(row);
    }
    let device = |row: &Comparison| cells.get(&row.cell).map(|cell| cell.names.device());
    let machine = |row: &Comparison| device(row).and_then(Device::machine_in);
    let claim = |rows: &Vec<&Comparison>| AcrossMachines {
        path: path(rows[0].cell).unwrap_or_default(),
        cells: rows.iter().map(|row| row.cell).collect(),
        metric: rows[0].metric,
        held: Verdict::ALL
            .into_iter()
            .filter_map(|verdict| held(verdict, rows, &machine))
            .map(|held| Held { without: without(&held, rows, &device, manifest), ..held })
            .collect(),
        mean: mean(rows),
    };
    claims.iter().filter(|rows| rows.len() > 1).map(claim).collect()
}

/// Where a verdict holds; one that is withheld is none.
fn held<'a>(verdict: Verdict, rows: &[&Comparison], machine: &dyn Fn(&Comparison) -> Option<&'a str>) -> Option<Held> {
    let verdict_of = |row: &Comparison| if row.is_judged() { row.verdict } else { Verdict::default() };
    let of_it: Vec<&Comparison> = rows.iter().copied().filter(|row| verdict_of(row) == verdict).collect();
    let machines: Vec<String> = of_it.iter().filter_map(|row| machine(row).map(str::to_owned)).collect();
    let intervals = || of_it.iter().filter_map(|row| row.interval());
    let bound = match (verdict.is_improvement(), verdict.is_regression()) {
        (true, _) => intervals().map(|interval| interval.low).reduce(f64::min),
        (_, true) => intervals().map(|interval| interval.high).reduce(f64::max),
        _ => None,
    };
    (!machines.is_empty()).then_some(Held { verdict, machines, without: Vec::new(), bound })
}

/// What the machines of a verdict lack and all other machines of the comparison have, where its cells are on processors.
fn without<'a>(
    held: &Held,
    rows: &[&Comparison],
    device: &dyn Fn(&Comparison) -> Option<&'a str>,
    manifest: &Manifest,
) -> Vec<String> {
    let is_on_processor = |row: &&Comparison| {
        let is_its_own = |known: &&Device| device(row) == Some(&known.label());
        manifest.experiment.devices.iter().find(is_its_own).is_some_and(Device::is_processor)
    };
    let compared =
        |machine: &&MachineUsed| rows.iter().any(|row| device(row).and_then(Device::machine_in) == Some(&machine.name));
    let mut machines: Vec<&MachineUsed> = manifest.machines.iter().filter(compared).collect();
    // Units of one architecture say nothing about another.
    let is_alike = machines.iter().all(|machine| machine.host.system == machines[0].host.system);
    machines.retain(|_| is_alike && rows.iter().all(is_on_processor));
    let (own, others): (Vec<_>, Vec<_>) =
        machines.into_iter().partition(|machine| held.machines.contains(&machine.name));
    let units = |machines: Vec<&MachineUsed>| {
        machines.into_iter().map(|machine| machine.host.units.clone()).collect::<Vec<_>>()
    };
    lacking(&units(own), &units(others))
}

/// Units that all of the second machines have and none of the first; nothing where units are unknown, as in records of
/// earlier versions.
fn lacking(lacking_machines: &[Vec<String>], having_machines: &[Vec<String>]) -> Vec<String> {
    let are_known = lacking_machines.iter().all(|units| !units.is_empty());
    let of_all = |unit: &&String| having_machines.iter().all(|units| units.contains(unit));
    let of_none = |unit: &&String| are_known && !lacking_machines.iter().any(|units| units.contains(unit));
    having_machines.first().into_iter().flatten().filter(of_all).filter(of_none).cloned().collect()
}

/// By a random effect of the machine on the logarithm of the ratio.
fn mean(rows: &[&Comparison]) -> Option<MeanRatio> {
    let effect = |row: &&Comparison| {
        let interval = row.interval().filter(|interval| interval.low > 0.0)?;
        let half = interval.map(f64::ln).half_width();
        // With the quantile of many blocks the error is rather too large than too small.
        Some((row.ratio.ln(), half / normal_quantile((1.0 + row.confidence) / 2.0)))
    };
    let effects: Vec<(f64, f64)> = rows.iter().filter(|row| row.withheld().is_none()).filter_map(effect).collect();
    let found = random_effects(&effects, CONFIDENCE)?;
    let ends = |interval: Interval| interval.map(|log| rounded(log.exp()));
    let (own, next) = (ends(found.interval), found.prediction.map(ends));
    Some(MeanRatio {
        ratio: rounded(found.mean.exp()),
        low: own.low,
        high: own.high,
        deviation: rounded(found.tau),
        p: rounded(found.p),
        next_low: next.map(|next| next.low),
        next_high: next.map(|next| next.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_machines_apart_is_what_none_of_one_kind_and_all_of_the_other_have() {
        let units = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let (new, old, middle) = (units(&["VNNI", "bf16", "AVX2"]), units(&["AVX2"]), units(&["VNNI", "AVX2"]));
        let missing_units = |lacking_machines: &[&Vec<String>], having_machines: &[&Vec<String>]| {
            let owned = |machines: &[&Vec<String>]| machines.iter().map(|units| (*units).clone()).collect::<Vec<_>>();
            lacking(&owned(lacking_machines), &owned(having_machines))
        };
        assert_eq!(missing_units(&[&old], &[&new, &middle]), ["VNNI"]);
        assert_eq!(missing_units(&[&old, &middle], &[&new]), ["bf16"]);
        assert!(missing_units(&[&new], &[&old]).is_empty() && missing_units(&[&old], &[]).is_empty());
        assert!(missing_units(&[&Vec::new()], &[&new]).is_empty(), "a record of an earlier version names none");
    }
}
