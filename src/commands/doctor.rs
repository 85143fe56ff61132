//! `perfrun doctor`: what this machine offers and what would spoil a measurement. Changes no setting.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::Serialize;

use super::print;
use crate::run::devices::{self, Trial};
use crate::ui::cli::DoctorArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, doctor};
use base::machine::host::{self, BusyProcess, Host};
use base::machine::kernel::Kernel;
use base::machine::probe::check::{BackgroundLoad, Check, checks};
use base::wording::grouped;
use experiment::{Device, Devices, Hardware, PROVIDERS, Provider, Supply};
use prepare::runtime::{self, Library, PINNED};
use worker::Interrupts;

/// What was found, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    /// The machine.
    host: Host,
    /// Threads of cells whose variant sets none.
    default_threads: u32,
    /// The library that a run would use, in words.
    runtime: String,
    devices: Vec<DeviceFound>,
    /// Who uses the processors now.
    #[serde(rename = "neighbours")]
    busy_processes: Vec<BusyProcess>,
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
    /// What to do about that.
    remedy: Option<String>,
    /// This version of perfrun was seen to measure on it rightly.
    verified: bool,
}

pub(super) fn run(arguments: &DoctorArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = super::interrupts()?;
    let Some(diagnosis) = diagnose(arguments, &interrupts)? else { return Ok(ExitCode::Interrupted) };
    if arguments.json {
        return super::print_json(ui, &diagnosis);
    }
    let facts = doctor::Facts {
        host: &diagnosis.host,
        runtime: &diagnosis.runtime,
        devices: lines(&diagnosis.devices),
        checks: &diagnosis.checks,
    };
    print(ui, &doctor::describe(ui, &facts))
}

impl DeviceFound {
    /// `usable`, `no NVIDIA driver here`.
    fn state(&self) -> String {
        let state = match (&self.problem, self.verified) {
            (Some(problem), _) => problem.strip_prefix(&format!("{}: ", self.label)).unwrap_or(problem),
            (None, true) => "usable",
            (None, false) => "usable, but not verified (check with `--device DEVICE --verify`)",
        };
        self.remedy.iter().fold(state.to_owned(), |state, remedy| format!("{state}; {remedy}"))
    }
}

/// `cuda:0, tensorrt:0: no NVIDIA driver here`: devices of which the same is to be said share a line.
fn lines(devices: &[DeviceFound]) -> Vec<String> {
    let states = grouped(devices.iter().map(|device| (device.state(), device.label.as_str())));
    states.into_iter().map(|(state, labels)| format!("{}: {state}", labels.join(", "))).collect()
}

/// `None` if the user stopped it.
fn diagnose(arguments: &DoctorArgs, interrupts: &Interrupts) -> Result<Option<Diagnosis>, Error> {
    let cache = runtime::cache_folder();
    // The load average comes first, because all other checks are work too.
    let load_average = Kernel::here().load_average();
    let busy_processes = host::busy_processes();
    let found = runtime::find(arguments.runtime.as_deref(), &cache);
    // Not being able to use it is what `doctor` is asked about, so it is a line of the answer.
    let found = found.map(|found| found.or_else(|| runtime::find_elsewhere().into_iter().next()));
    let library = match (&found, unusable(&cache)) {
        (Err(error), _) => format!("NOT USABLE: {error}"),
        (Ok(Some(library)), None) => library.to_string(),
        (Ok(Some(library)), Some(problem)) => format!("{library}; CACHE NOT USABLE: {problem}"),
        (Ok(None), None) => "none yet; the first run or `perfrun runtime install` fetches it".to_owned(),
        (Ok(None), Some(problem)) => format!("none yet; CACHE NOT USABLE: {problem}"),
    };
    let is_usable = found.is_ok();
    let Some(devices) = devices(found.ok().flatten().as_ref(), is_usable, &cache, interrupts)? else { return Ok(None) };
    let host = host::describe();
    Ok(Some(Diagnosis {
        default_threads: host.default_threads(),
        checks: [checks(&host, &BackgroundLoad::of(&busy_processes, load_average)), device::check::checks()].concat(),
        host,
        runtime: library,
        devices,
        busy_processes,
    }))
}

/// Why nothing can be kept in the cache, with the remedy.
fn unusable(cache: &Path) -> Option<String> {
    let there = cache.ancestors().find(|folder| folder.exists())?;
    let opened = std::fs::read_dir(there).map(drop);
    let problem = opened.and_then(|()| Ok(access(there, Access::WRITE_OK | Access::EXEC_OK)?)).err()?;
    Some(format!("{}: {problem}; set PERFRUN_CACHE to a folder of yours", there.display()))
}

/// Every device that perfrun has a package for: tried where what it takes is here, else with how to get it.
fn devices(
    library: Option<&Library>,
    is_usable: bool,
    cache: &Path,
    interrupts: &Interrupts,
) -> Result<Option<Vec<DeviceFound>>, Error> {
    let executable = super::admission::executable()?;
    let mut found = Vec::new();
    for provider in PROVIDERS.iter().filter(|provider| provider.supply != Supply::LocalBuild) {
        for device in devices_of(provider) {
            let label = device.label();
            let is_absent = devices::why_not(&device, &Kernel::here());
            let trial = match &is_absent {
                Some(_) => None,
                None => takes(provider, library, cache),
            };
            let skip = match (is_absent, trial) {
                (Some(skip), _) => Some((skip.reason, skip.remedy)),
                (None, None) if !is_usable => {
                    let remedy = "correct or unset what names it: `--runtime`, `ORT_DYLIB_PATH`".to_owned();
                    Some((format!("{label}: not tried, since the runtime above is not usable"), Some(remedy)))
                }
                (None, None) => install(provider)
                    .map(|command| (format!("{label}: not tried, since its runtime is not installed"), Some(command))),
                (None, Some((library, plugin))) => {
                    let plugin = plugin.as_deref();
                    let trial = Trial { device: &device, library: &library, plugin, executable: &executable };
                    let Ok(skip) = trial.carry_out(interrupts) else { return Ok(None) };
                    skip.map(|skip| (skip.reason, skip.remedy))
                }
            };
            let (problem, remedy) = skip.map_or((None, None), |(problem, remedy)| (Some(problem), remedy));
            found.push(DeviceFound { label, problem, remedy, verified: provider.is_verified });
        }
    }
    Ok(Some(found))
}

/// The devices that a provider may have, the first of those that are numbered.
fn devices_of(provider: &Provider) -> Vec<Device> {
    let device = |index, hardware| Device { index, hardware, ..Device::of(provider.name) };
    match provider.devices {
        Devices::One => vec![device(None, None)],
        Devices::Numbered => vec![device(Some(0), None)],
        Devices::Hardware => Hardware::ALL.map(|hardware| device(None, Some(hardware))).into(),
    }
}

/// The runtime that has a provider, and its plug-in, where both are here.
fn takes(provider: &Provider, library: Option<&Library>, cache: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    match provider.supply {
        Supply::Runtime => Some((library?.path.clone(), None)),
        Supply::Plugin(plugin) => Some((library?.path.clone(), Some(runtime::find_plugin(plugin, cache)?.path))),
        // One that the user names is the one that a run takes.
        Supply::Package(package) => match library.filter(|library| library.origin.is_named()) {
            Some(named) => Some((named.path.clone(), None)),
            None => Some((runtime::find_version(package, PINNED, cache).ok()??.path, None)),
        },
        Supply::LocalBuild => None,
    }
}

/// How to get what a provider takes.
fn install(provider: &Provider) -> Option<String> {
    match provider.supply {
        Supply::Runtime => Some("`perfrun runtime install` fetches ONNX Runtime".to_owned()),
        Supply::Plugin(_) => {
            Some(format!("`perfrun runtime install --provider {}` fetches its plug-in", provider.name))
        }
        Supply::Package(_) => Some("`perfrun runtime install --gpu` fetches the runtime for it".to_owned()),
        Supply::LocalBuild => None,
    }
}
