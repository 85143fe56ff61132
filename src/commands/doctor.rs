//! `perfrun doctor`: what this machine offers and what would spoil a measurement. Changes no setting.

use serde::Serialize;

use super::print;
use crate::experiment::Device;
use crate::machine::host::{self, Host, Neighbour};
use crate::machine::kernel::Kernel;
use crate::machine::probe::check::{Check, Others, checks};
use crate::prepare::runtime;
use crate::ui::cli::DoctorArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, doctor};
use crate::worker::backend::onnxruntime::why_not;

/// What was found, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// The machine.
    host: Host,
    /// Threads of cells whose variant sets none.
    default_threads: u32,
    /// The library that a run would use, in words.
    runtime: String,
    /// Devices.
    devices: Vec<DeviceFound>,
    /// Who uses the processors now.
    neighbours: Vec<Neighbour>,
    /// Everything that was looked at.
    checks: Vec<Check>,
}

/// A device, usable or not.
#[derive(Debug, Serialize)]
pub(super) struct DeviceFound {
    /// As it stands in specifications.
    label: String,
    /// Why cells on it would be skipped.
    problem: Option<String>,
}

pub(super) fn run(arguments: &DoctorArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let diagnosis = diagnose(arguments);
    if arguments.json {
        return super::print_json(ui, &diagnosis);
    }
    let facts = doctor::Facts {
        host: &diagnosis.host,
        runtime: &diagnosis.runtime,
        devices: diagnosis.devices.iter().map(|found| (found.label.as_str(), found.problem.as_deref())).collect(),
        checks: &diagnosis.checks,
    };
    print(ui, &doctor::describe(ui, &facts))
}

fn diagnose(arguments: &DoctorArgs) -> Diagnosis {
    let cache = runtime::cache_folder();
    // The load first: looking for everything else is work too.
    let load = Kernel::here().load();
    let neighbours = host::neighbours();
    let found = runtime::find(arguments.runtime.as_deref(), &cache);
    // Not being able to use it is what `doctor` is asked about, so it is a line of the answer.
    let library = match found.map(|found| found.or_else(|| runtime::find_elsewhere().into_iter().next())) {
        Err(error) => format!("NOT USABLE: {error}"),
        Ok(Some(library)) => library.to_string(),
        Ok(None) => "none yet; the first run fetches it, or `perfrun runtime install` does".to_owned(),
    };
    let devices = [("cpu", None), ("cuda", Some(0))].map(|(provider, index)| {
        let device = Device { provider: provider.to_owned(), index };
        DeviceFound { label: device.label(), problem: why_not(&device).map(|skip| skip.reason) }
    });
    let host = host::describe();
    Diagnosis {
        default_threads: host.default_threads(),
        checks: checks(&host, &Others::of(&neighbours, load)),
        host,
        runtime: library,
        devices: devices.into(),
        neighbours,
    }
}
