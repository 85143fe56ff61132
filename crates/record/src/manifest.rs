//! What a record was made from and on: the last of the files with which a record begins, and the one that makes a folder
//! a record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::findings::PassFindings;
use super::found::{Rehearsed, TooLarge};
use super::journal::{RunKind, StoredRun};
use super::used::{DatasetFile, InferenceCost, MachineUsed, ModelFile, RuntimeUsed, SpecSource};
use super::{FORMAT, StoreError, parse_versioned, write_whole};
use crate::revision::{NoRevision, Revision};
use crate::sources::CommandSources;
use base::machine::environment::Environment;
use base::machine::host::Host;
use base::machine::kernel::LoadAverage;
use base::name::is_entry_name;
use base::quantity::Ratio;
use experiment::{Arrivals, Axis, Device, Experiment, FidelityLimits, InputPoint, Precision, Runs, Variant};
use plan::{Cell, CellId, Plan, Skip, SkipKind};
use reading::plain_file;
use worker::backend;

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the record.
    pub format: u32,
    /// Version of perfrun that began it.
    pub perfrun: String,
    /// The profile of cargo that it was built with: `dev`, `release`, `dist`. Absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_profile: Option<String>,
    /// Name of the record's folder.
    pub record: String,
    /// The specification as written.
    pub spec: SpecSource,
    /// The specification as understood; model paths are relative to the root.
    pub experiment: Experiment,
    /// What narrows this record to less than the specification in its file: `--runs 3`, `--only ...`.
    pub restrictions: Vec<String>,
    /// Every cell, its group, and why it is skipped. Its number of runs is what the budget left of it.
    pub plan: Plan,
    /// Definition of each cell, in plan order.
    pub definitions: Vec<String>,
    /// The commit at the beginning.
    pub revision: Option<Revision>,
    /// Why there is no revision although there is a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_revision: Option<NoRevision>,
    /// What commands run, by the tracked files of the project; absent without commands, and where git says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<CommandSources>,
    /// The machine.
    pub host: Host,
    /// The model files, in the order of the models axis; `None` with the mock backend.
    pub models: Vec<Option<ModelFile>>,
    /// The data of each model, in the order of the models axis; empty where no model has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Option<DatasetFile>>,
    /// The runtime library, where the specification names none; `None` with the mock backend.
    pub runtime: Option<RuntimeUsed>,
    /// The library of each entry of the specification's `runtimes`; `None` for one that no cell needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<Option<RuntimeUsed>>,
    /// The plug-ins by the provider that they bring.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, RuntimeUsed>,
    /// Threads of cells whose variant does not set them.
    pub default_threads: u32,
    /// Session entries that every variant without its own gets, because the design keeps several workers resident.
    #[serde(default)]
    pub imposed_session: BTreeMap<String, String>,
    /// The two sets of processors of a duet, which its two workers swap in every block.
    #[serde(default)]
    pub core_sets: Option<[Vec<u32>; 2]>,
    /// Background load just before the record began: processors' worth of time that other processes used.
    #[serde(rename = "others_cpus")]
    pub background_cpus: f64,
    /// The kernel's load average then; absent with the mock backend.
    #[serde(default, rename = "load")]
    pub load_average: Option<LoadAverage>,
    /// The machines of a record that was merged from several records, and of what they say the first one's stands above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineUsed>,
    /// A quick look: short runs, a wide margin, never a side of anything.
    #[serde(default)]
    pub quick: bool,
    /// What was found since; it stands in files of its own.
    #[serde(skip)]
    pub findings: PassFindings,
}

impl Manifest {
    /// The file's name in a record's folder.
    pub const FILE: &'static str = "manifest.json";

    /// Between the names of a merged record's machines.
    pub const BETWEEN_MACHINES: &'static str = " and ";

    /// Reads the manifest of a record, and what was found since.
    ///
    /// # Errors
    ///
    /// When there is none, or one of the files is newer or damaged.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(Self::FILE);
        if !path.is_file() {
            return Err(StoreError::NotARecord { path: folder.to_owned() });
        }
        let text = plain_file::text(&path).map_err(|source| StoreError::Read { path: path.clone(), source })?;
        let mut manifest: Manifest = parse_versioned(&path, &text)?;
        manifest.findings = PassFindings::read(folder)?;
        manifest.plan.runs = manifest.findings.budget.map_or(manifest.plan.runs, |budget| budget.runs);
        manifest.check(&path)?;
        manifest.leave_out_found();
        Ok(manifest)
    }

    /// Skips the cells whose batch is larger than one that ran out of memory in the rehearsal, those of which no rate keeps
    /// the bound, and those for which the budget has no room. The
    /// file does not say so, because it stays as it was when the record began.
    pub(super) fn leave_out_found(&mut self) {
        for TooLarge { cell, batch } in self.findings.rehearsal.iter().flat_map(|found| found.too_large.clone()) {
            let reason = format!("batch {batch} ran out of memory");
            self.plan.mark_skipped(cell as usize, Skip { kind: SkipKind::Memory, reason, remedy: None });
        }
        let rates = self.findings.rates.iter().flat_map(|found| found.cells.clone());
        for found in rates.filter(|found| found.per_s.is_none() && found.failure.is_none()) {
            let reason = found.problem.unwrap_or_else(|| "its rate was not found".to_owned());
            self.plan.mark_skipped(found.cell as usize, Skip { kind: SkipKind::Rate, reason, remedy: None });
        }
        let Some((limit, cells)) = self.findings.budget.and_then(|budget| Some((budget.limit, budget.cells?))) else {
            return;
        };
        for cell in self.plan.by_question().into_iter().skip(cells as usize) {
            let reason = format!("the budget of {limit} leaves no room for enough runs");
            let remedy = Some("give it a longer `budget`, or fewer cells".to_owned());
            self.plan.mark_skipped(cell, Skip { kind: SkipKind::Budget, reason, remedy });
        }
    }

    /// Writes the manifest of a record: once, since nothing in it ever changes.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or is there already.
    pub fn write(&self, folder: &Path) -> Result<(), StoreError> {
        debug_assert_eq!(self.format, FORMAT, "only the current format is written");
        let path = folder.join(Self::FILE);
        if path.exists() {
            let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(StoreError::Write { path, source });
        }
        let text = serde_json::to_vec_pretty(self).expect("a manifest has string keys only");
        write_whole(&path, &text)
    }

    /// Items that one inference of a cell handles, as stored.
    pub fn batch_of(&self, cell: &Cell) -> Option<u64> {
        let of_input = || match self.models.get(cell.model().index())? {
            Some(model) => *model.batch_sizes.get(cell.input().index())?,
            // A backend without model files has the size that the specification gives.
            None => self.plan.input_of(cell).batch(),
        };
        self.search_of(cell).map(|search| search.batch).or_else(of_input)
    }

    /// What one inference of a cell's model costs, as stored.
    pub fn cost(&self, cell: &Cell) -> Option<InferenceCost> {
        if let Some(search) = self.search_of(cell) {
            return search.cost;
        }
        *self.models.get(cell.model().index())?.as_ref()?.costs.get(cell.input().index())?
    }

    /// The variant and the device of a cell.
    pub fn settings_of(&self, cell: &Cell) -> Option<(&Variant, &Device)> {
        let variant = self.experiment.variants.get(cell.variant().index());
        variant.zip(self.experiment.devices.get(cell.device().index()))
    }

    /// The limits that hold for a cell's outputs, and the precision whose defaults they overlay.
    pub fn limits_of(&self, cell: &Cell) -> Option<(FidelityLimits, Precision)> {
        let (variant, device) = self.settings_of(cell)?;
        Some(self.experiment.fidelity.limits_of(variant, device))
    }

    /// Where its runs took place.
    pub fn environment(&self) -> Environment {
        backend::kind_of(&self.experiment.backend).environment()
    }

    /// Threads inside an operator of a cell.
    pub fn threads_of(&self, cell: &Cell) -> u32 {
        let default = self.machine_of(cell).map_or(self.default_threads, |machine| machine.default_threads);
        self.experiment.threads_of(cell.variant(), default)
    }

    /// The machine of a cell, where a record has several.
    pub fn machine_of(&self, cell: &Cell) -> Option<&MachineUsed> {
        let device = self.experiment.devices.get(cell.device().index())?;
        self.machines.iter().find(|machine| Some(&machine.name) == device.machine.as_ref())
    }

    /// The names of the machines of a merged record: `laptop and server`.
    pub(crate) fn names_of_machines(&self) -> String {
        let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
        names.join(Manifest::BETWEEN_MACHINES)
    }

    /// Whether `run` measured it. The restrictions of a record that another command began are no flags of `run`.
    pub fn is_of_run(&self) -> bool {
        self.restrictions.iter().all(|restriction| restriction.starts_with("--"))
    }

    /// What is known of a host, of each machine.
    pub fn hosts(&self) -> Vec<&Host> {
        match self.machines.as_slice() {
            [] => vec![&self.host],
            machines => machines.iter().map(|machine| &machine.host).collect(),
        }
    }

    /// The session entries of a variant: its own, and those that the design adds.
    pub fn session_of(&self, variant: &Variant) -> BTreeMap<String, String> {
        let mut entries = self.imposed_session.clone();
        entries.extend(variant.session.clone());
        entries
    }

    /// Looks at one run after the other: one that the plan does not have, or has already, would count.
    pub(super) fn check_of_runs(&self, folder: &Path) -> impl FnMut(&StoredRun) -> Result<(), StoreError> {
        let cells: BTreeSet<CellId> = self.plan.cells.iter().map(|cell| cell.id).collect();
        // What a budget leaves may be less than what an earlier invocation had.
        let most = self.findings.budget.map_or(0, |budget| budget.wanted).max(self.plan.runs);
        let mut seen = BTreeSet::new();
        move |run| {
            let is_planned = cells.contains(&run.cell)
                && (run.kind == RunKind::Rehearsal || run.run < most)
                && (run.invocation as usize) < self.findings.invocations.len();
            let problem = match (is_planned, seen.insert((run.cell, run.kind, run.run))) {
                (true, true) => return Ok(()),
                (false, _) => "is not in its plan",
                (true, false) => "stands in it twice",
            };
            let reason = format!("the run {} {problem}", StoredRun::stem(run.cell, run.kind, run.run));
            Err(StoreError::Damaged { path: folder.to_owned(), reason })
        }
    }

    /// Indices must point where they say and names must be names: a manifest may come from anywhere.
    fn check(&self, path: &Path) -> Result<(), StoreError> {
        let damaged = |reason: String| Err(StoreError::Damaged { path: path.to_owned(), reason });
        let of_axis = |axis| [self.plan.names(axis).to_vec(), self.experiment.names(axis)].concat();
        let machines = self.machines.iter().map(|machine| machine.name.clone());
        let mut names = Axis::ALL
            .into_iter()
            .flat_map(of_axis)
            .chain(machines)
            .chain([self.experiment.name.clone(), self.record.clone()]);
        if let Some(name) = names.find(|name| !is_entry_name(name)) {
            return damaged(format!("{name:?} is not a name"));
        }
        if let Some(runs) = [self.plan.runs, self.experiment.runs.max].iter().find(|runs| **runs > Runs::MOST) {
            return damaged(format!("{runs} runs a cell are more than {}", Runs::MOST));
        }
        if !(1..=self.plan.runs.max(1)).contains(&self.plan.rounds) {
            return damaged(format!("{} rounds are not those of {} runs", self.plan.rounds, self.plan.runs));
        }
        let needs_trace = |input: &InputPoint| input.load.and_then(|load| load.arrivals()) == Some(Arrivals::Trace);
        if self.experiment.measure.trace.is_none() && self.plan.inputs().iter().any(needs_trace) {
            return damaged("its queries come as in a trace, and it has none".to_owned());
        }
        let margin = &self.experiment.compare.margin;
        if let Some(Ratio(value)) = [margin.default, margin.tail].iter().find(|margin| !margin.is_proper()) {
            return damaged(format!("{value:e} is not a margin"));
        }
        let plan = &self.plan;
        let is_there = |cell: u32| (cell as usize) < plan.cells.len();
        let accuracy_fits = self.accuracy().iter().all(|known| is_there(known.cell));
        let rates_fit = self.findings.rates.iter().flat_map(|found| &found.cells).all(|known| is_there(known.cell));
        let rehearsal_fits = |found: &Rehearsed| found.too_large.iter().all(|known| is_there(known.cell));
        if plan.fits(&self.experiment)
            && accuracy_fits
            && rates_fit
            && self.findings.rehearsal.as_ref().is_none_or(rehearsal_fits)
            && self.definitions.len() == plan.cells.len()
            && !self.findings.invocations.is_empty()
        {
            return Ok(());
        }
        damaged("its plan does not fit together".to_owned())
    }
}
