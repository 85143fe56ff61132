//! What of the machine casts doubt on a whole record or on a cell, from what the manifest says.

use super::Summary;
use base::code::Code;
use base::machine::host::Host;
use base::machine::kernel::LoadAverage;
use base::machine::probe::check::{BackgroundLoad, Check, State, checks};
use base::metric;
use onnx::Stored;
use plan::Cell;
use record::{Manifest, VariantOrigin};

/// A code that a record carries as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordCode {
    pub code: Code,
    /// What was found, in words.
    pub found: String,
}

/// The codes of a record as a whole: who used the machine when it began, and how the machine is set up. None where a
/// script gives the time. Other processes only where the runs do not show them: one that was busy only before the runs
/// changed no number.
pub(crate) fn record_codes(manifest: &Manifest, summary: &Summary) -> Vec<RecordCode> {
    let of_devices = of_devices(manifest);
    let off = || match manifest.machines.as_slice() {
        [] | [_] => off(&manifest.host, manifest.background_cpus, manifest.load_average),
        // Of several machines each code comes from the first one that has it.
        machines => machines.iter().flat_map(|of| off(&of.host, of.background_cpus, of.load_average)).fold(
            Vec::new(),
            |mut all, check| {
                if !all.iter().any(|known: &Check| known.code == check.code) {
                    all.push(check);
                }
                all
            },
        ),
    };
    let runs_show_load =
        summary.cells.iter().any(|cell| cell.findings.environment.contains_key(metric::OTHER_CPU.name));
    let off = manifest.environment().on_machine(off).unwrap_or_default();
    let found = off.into_iter().filter_map(|check| Some(RecordCode { code: check.code?, found: check.found? }));
    found.filter(|found| !(runs_show_load && found.code == Code::Load)).chain(of_devices).collect()
}

/// What is set up otherwise than it should be on a machine.
fn off(host: &Host, background_cpus: f64, load_average: Option<LoadAverage>) -> Vec<Check> {
    let background = BackgroundLoad { cpus: background_cpus, names: Vec::new(), load_average };
    checks(host, &background).into_iter().filter(|check| check.state == State::Off).collect()
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

/// What is known of a cell before it runs: of its threads and of the file that it runs.
pub(super) fn of_settings(manifest: &Manifest, cell: &Cell) -> Vec<Code> {
    of_threads(manifest, cell).into_iter().chain(of_file(manifest, cell)).collect()
}

fn of_file(manifest: &Manifest, cell: &Cell) -> Vec<Code> {
    let Some(file) = manifest.models.get(cell.model().index()).and_then(Option::as_ref) else { return Vec::new() };
    let variant_file = manifest.variant_file(cell);
    let is_converted =
        variant_file.is_some_and(|variant_file| matches!(variant_file.origin, VariantOrigin::Converted { .. }));
    let trains = !file.training.is_empty() && (variant_file.is_none() || is_converted);
    let is_on_cpu = manifest.settings_of(cell).is_some_and(|(_, device)| device.is_cpu());
    let widens = variant_file.is_none() && is_on_cpu && file.stored.as_ref().is_some_and(Stored::is_widened);
    let all = [(Code::TrainingMode, trains), (Code::WeightsWidened, widens)];
    all.into_iter().filter(|(_, holds)| *holds).map(|(code, _)| code).collect()
}

/// Whether the threads of a cell, of all its sessions together, are more than the quota grants or than there are processors.
fn of_threads(manifest: &Manifest, cell: &Cell) -> Vec<Code> {
    let callers = manifest.callers_of(cell);
    let threads = f64::from(callers) * f64::from(manifest.threads_of(cell).max(1));
    let host = manifest.machine_of(cell).map_or(&manifest.host, |machine| &machine.host);
    let quota = manifest.environment().on_machine(|| host.cpu_quota).flatten();
    let processors = manifest.environment().on_machine(|| host.processors()).flatten().filter(|_| callers > 1);
    let limits = [(Code::Quota, quota), (Code::Oversubscribed, processors.map(|processors| processors as f64))];
    limits.into_iter().filter(|(_, limit)| limit.is_some_and(|limit| threads > limit)).map(|(code, _)| code).collect()
}
