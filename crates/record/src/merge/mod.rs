//! Several records of one specification as one: parts of its matrix that were measured one by one, or the same cells on
//! several machines, which then stand on the devices axis as `cpu@laptop` and `cpu@server`.
//!
//! Input: complete records. Output: a manifest and runs, as if one perfrun had made them. Pure. Deliberately absent:
//! judging; cells of one group always come from one record, so that they were measured in turns.

mod findings;
mod matrix;

use std::collections::{BTreeMap, HashMap};

use self::matrix::Joined;
use super::{FORMAT, MachineUsed, Manifest, StoredRun, journal};
use experiment::Device;
use plan::{CellId, SkipKind};

/// What a record says, and the machine that it was measured on, by its name.
#[derive(Clone, Debug)]
pub struct Part {
    pub machine: String,
    pub manifest: Manifest,
    pub runs: Vec<StoredRun>,
}

/// Why records do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("{record} is not complete")]
    Unfinished { record: String },
    #[error("{record} and {other} differ in {what}")]
    Differ { record: String, other: String, what: String },
    #[error("{record} and {other} both measured {cell} on {machine}")]
    Twice { record: String, other: String, cell: String, machine: String },
    #[error("{record} and {other} each measured some of the cells that are compared with {cell}")]
    Split { record: String, other: String, cell: String },
    #[error("{record} was merged from the records of several machines")]
    Merged { record: String },
    #[error("the specification compares devices, so its groups cannot span several machines")]
    Devices,
}

impl MergeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            MergeError::Unfinished { .. } => "finish it: perfrun run --resume RECORD",
            MergeError::Differ { .. } => "use `perfrun diff` to compare records of different specifications",
            MergeError::Twice { .. } => {
                "leave one out; if they come from two identical machines, name each: NAME=RECORD"
            }
            MergeError::Split { .. } => "measure the group in one record; `--shard` keeps groups whole",
            MergeError::Merged { .. } => "merge the records that it was made from",
            MergeError::Devices => "compare variants alone, or read the reports of the machines side by side",
        }
    }
}

/// Puts records together, under the name of the new one.
///
/// # Errors
///
/// Records that are not complete, not of one specification, or that measured the same.
pub fn merge(parts: &[Part], name: String) -> Result<(Manifest, Vec<StoredRun>), MergeError> {
    let first = &parts[0].manifest;
    for part in parts {
        check(first, &part.manifest)?;
    }
    let machines = machines(parts);
    let is_several = machines.len() > 1;
    if is_several && first.plan.compares::<Device>() {
        return Err(MergeError::Devices);
    }
    let joined = Joined::of(parts, &machines)?;
    let mut manifest = Manifest {
        record: name,
        definitions: joined.cells.iter().map(|cell| first.definitions[cell.old].clone()).collect(),
        restrictions: Vec::new(),
        findings: findings::joined(parts, &joined),
        machines,
        ..first.clone()
    };
    for part in parts {
        let of_part = &part.manifest;
        manifest.runtime = manifest.runtime.or_else(|| of_part.runtime.clone());
        for (known, found) in manifest.runtimes.iter_mut().zip(&of_part.runtimes) {
            *known = known.take().or_else(|| found.clone());
        }
        for (name, plugin) in &of_part.plugins {
            manifest.plugins.entry(name.clone()).or_insert_with(|| plugin.clone());
        }
    }
    if is_several {
        manifest.experiment.devices = joined.devices(&manifest);
    }
    manifest.plan = joined.plan(&first.plan, &manifest.experiment, parts);
    manifest.restrictions = restrictions(parts, &manifest);
    if parts.iter().any(|part| part.manifest.revision != first.revision) {
        manifest.revision = None;
    }
    let runs = runs(parts, &joined, &manifest);
    Ok((manifest, runs))
}

/// What must be the same for cells to stand in one matrix.
fn check(first: &Manifest, other: &Manifest) -> Result<(), MergeError> {
    if !other.findings.complete {
        return Err(MergeError::Unfinished { record: other.record.clone() });
    }
    if other.machines.len() > 1 {
        return Err(MergeError::Merged { record: other.record.clone() });
    }
    if other.format != FORMAT {
        let (record, first) = (other.record.clone(), first.record.clone());
        return Err(MergeError::Differ { record, other: first, what: "the version of their records".to_owned() });
    }
    // A part opens the libraries that its own cells need.
    let versions = |manifest: &Manifest| -> BTreeMap<String, Option<String>> {
        let libraries = manifest.libraries().map(|(name, used)| (name.unwrap_or_default().to_owned(), used.version));
        libraries
            .chain(manifest.plugins.iter().map(|(name, used)| (format!("plugin {name}"), used.version.clone())))
            .collect()
    };
    let (versions_of_first, versions_of_other) = (versions(first), versions(other));
    let other_version = versions_of_first
        .iter()
        .any(|(name, version)| versions_of_other.get(name).is_some_and(|found| found != version));
    let files = |manifest: &Manifest| -> Vec<String> {
        let models = manifest.models.iter().flatten().map(|file| file.sha256.clone());
        let inputs = manifest.experiment.input_files().map(|file| file.sha256.clone());
        models.chain(manifest.datasets.iter().flatten().map(|data| data.sha256.clone())).chain(inputs).collect()
    };
    let ids = |manifest: &Manifest| -> Vec<_> { manifest.plan.cells.iter().map(|cell| cell.id).collect() };
    let checks: [(&str, bool); 7] = [
        ("the experiment", first.experiment.name != other.experiment.name),
        ("the specification", first.spec.sha256 != other.spec.sha256),
        ("what --quick changes", first.quick != other.quick),
        ("the version of perfrun", first.perfrun != other.perfrun),
        ("their models or data", files(first) != files(other)),
        ("the version of ONNX Runtime or of a plug-in", other_version),
        ("their cells", ids(first) != ids(other)),
    ];
    match checks.into_iter().find(|(_, differ)| *differ) {
        Some((what, _)) => {
            let (record, other) = (first.record.clone(), other.record.clone());
            Err(MergeError::Differ { record, other, what: what.to_owned() })
        }
        None => Ok(()),
    }
}

/// The machines in the order in which they are named, each with what the first of its records says of it.
fn machines(parts: &[Part]) -> Vec<MachineUsed> {
    let mut machines: Vec<MachineUsed> = Vec::new();
    for Part { machine, manifest, .. } in parts {
        if let Some(known) = machines.iter_mut().find(|known| known.name == *machine) {
            known.records.push(manifest.record.clone());
            continue;
        }
        machines.push(MachineUsed {
            name: machine.clone(),
            records: vec![manifest.record.clone()],
            host: manifest.host.clone(),
            default_threads: manifest.default_threads,
            background_cpus: manifest.background_cpus,
            load_average: manifest.load_average,
        });
    }
    machines
}

/// What still narrows the whole: all but what made a record a part of it, once no part is missing.
fn restrictions(parts: &[Part], manifest: &Manifest) -> Vec<String> {
    let is_part = |skip: &plan::Skip| skip.kind == SkipKind::Selection;
    let misses = manifest.plan.cells.iter().any(|cell| manifest.plan.skip(cell).is_some_and(is_part));
    let mut all: Vec<String> = Vec::new();
    for flag in parts.iter().flat_map(|part| &part.manifest.restrictions) {
        if !all.contains(flag) {
            all.push(flag.clone());
        }
    }
    // What `--only` left out is missing although all shards are there.
    let shards: Vec<String> = all.iter().filter_map(|flag| flag.strip_prefix("--shard ").map(str::to_owned)).collect();
    let total = shards.first().and_then(|shard| shard.split_once('/')?.1.parse::<usize>().ok());
    let has_all_shards = total == Some(shards.len());
    all.retain(|flag| match (flag.starts_with("--shard "), flag.starts_with("--only ")) {
        (true, _) => misses && !has_all_shards,
        (_, true) => misses,
        _ => true,
    });
    all
}

/// The runs of all parts under the ids of their cells here, each from the part that its cell is taken from. Blocks are
/// numbered on from part to part: runs of two parts did not take turns, and are never a pair.
fn runs(parts: &[Part], joined: &Joined, manifest: &Manifest) -> Vec<StoredRun> {
    let mut all: Vec<StoredRun> = Vec::new();
    let (mut invocations, mut blocks) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        let cells = part.manifest.plan.cells.iter().enumerate();
        let taken = cells.filter_map(|(old, cell)| {
            let cell_index = joined.index(index, old).filter(|cell| joined.is_taken_from(index, *cell))?;
            Some((cell.id, manifest.plan.cells[cell_index].id))
        });
        let ids: HashMap<CellId, CellId> = taken.collect();
        let runs = part.runs.iter();
        all.extend(runs.filter_map(|run| {
            let (invocation, block) = (run.invocation.saturating_add(invocations), run.block.saturating_add(blocks));
            Some(StoredRun { cell: *ids.get(&run.cell)?, invocation, block, ..run.clone() })
        }));
        blocks = all.iter().map(|run| run.block.saturating_add(1)).max().unwrap_or(0);
        invocations += part.manifest.findings.invocations.len() as u32;
    }
    journal::sort(&mut all);
    all
}
