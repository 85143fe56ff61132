//! What of the machine casts doubt on a whole record or on a cell, from what the manifest says.

use serde::Serialize;

use super::Summary;
use crate::machine::probe::check::{Others, State, checks};
use crate::plan::Cell;
use crate::record::Manifest;
use crate::vocabulary::code::Code;
use crate::vocabulary::metric;
use crate::worker::backend;

/// A code that a record carries as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecordCode {
    /// The code.
    pub code: Code,
    /// What was found, in words.
    pub found: String,
}

/// The codes of a record as a whole: who used the machine when it began, and how the machine is set up. None where a
/// script told the time, and of others only what its runs do not tell themselves: who was busy before them alone changed no
/// number.
pub(crate) fn record_codes(manifest: &Manifest, summary: &Summary) -> Vec<RecordCode> {
    let of_devices = of_devices(manifest);
    if !backend::of(&manifest.experiment.backend).takes_machine_time() {
        return of_devices;
    }
    let others = Others { cpus: manifest.others_cpus, names: Vec::new(), load: manifest.load };
    let off = checks(&manifest.host, &others).into_iter().filter(|check| check.state == State::Off);
    let runs_tell = summary.cells.iter().any(|cell| cell.findings.environment.contains_key(metric::OTHER_CPU.name));
    let found = off.filter_map(|check| Some(RecordCode { code: check.code?, found: check.found? }));
    found.filter(|found| !(runs_tell && found.code == Code::Load)).chain(of_devices).collect()
}

/// How GPUs are set up; a script's counts too, since its GPU is what it is made for.
fn of_devices(manifest: &Manifest) -> Vec<RecordCode> {
    let seen = manifest.findings.devices.iter().flat_map(|found| &found.devices);
    let facts = seen.filter_map(|seen| Some(&seen.look.as_ref()?.facts));
    let off: Vec<String> =
        facts.filter(|facts| facts.persistence == Some(false)).map(|facts| format!("off ({})", facts.name)).collect();
    let code = |found: &String| RecordCode { code: Code::GpuPersistence, found: found.clone() };
    off.first().map(code).into_iter().collect()
}

/// Whether the cell has more threads than the quota of the control group grants processors (method 8.1).
pub(super) fn exceeds_quota(manifest: &Manifest, cell: &Cell) -> bool {
    let threads = manifest.threads_of(cell);
    let is_real = backend::of(&manifest.experiment.backend).takes_machine_time();
    is_real && manifest.host.cpu_quota.is_some_and(|quota| f64::from(threads.max(1)) > quota)
}
