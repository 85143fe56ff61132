//! `perfrun doctor --device DEVICE --verify`: whether perfrun measures rightly on a device, as a table for an issue.

use std::fmt::Write;

use serde::Serialize;

use super::{admission, print, print_json};
use crate::run::devices::{Trial, why_not};
use crate::run::verify::{Check, State, Verification};
use crate::ui::Ui;
use crate::ui::cli::DoctorArgs;
use crate::ui::error::{Error, ExitCode};
use base::machine::host;
use base::machine::kernel::Kernel;
use device::Monitors;
use experiment::{Device, Package, Provider, Supply};
use prepare::runtime::{self, Library, Progress};

/// What was found, as `--json` prints it.
#[derive(Serialize)]
struct Verified {
    perfrun: &'static str,
    device: String,
    /// The GPU and its driver, where they are known.
    hardware: Option<String>,
    runtime: String,
    plugin: Option<String>,
    processor: Option<String>,
    system: String,
    checks: Vec<Check>,
}

pub(super) fn run(device: &str, arguments: &DoctorArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = super::interrupts()?;
    let device = present(device)?;
    let (library, plugin) = libraries(&device, arguments, ui)?;
    let Some(_turn) = admission::lock("doctor --verify", false, &interrupts, ui)? else {
        return Ok(ExitCode::Interrupted);
    };
    let executable = admission::executable()?;
    let plugin_path = plugin.as_ref().map(|plugin| plugin.path.as_path());
    let trial = Trial { device: &device, library: &library.path, plugin: plugin_path, executable: &executable };
    match trial.carry_out(&interrupts) {
        Err(_) => return Ok(ExitCode::Interrupted),
        Ok(Some(absence)) => {
            return Err(Error::refused(absence.reason, absence.remedy.unwrap_or_else(|| needs(&device))));
        }
        Ok(None) => {}
    }
    let gpu = Monitors::here(std::slice::from_ref(&device)).gpu_of(&device, &Default::default());
    let facts = gpu.as_ref().and_then(|gpu| gpu.as_ref().ok()).and_then(|gpu| gpu.monitor.facts(gpu.number).ok());
    let verification =
        Verification { device: &device, library: &library.path, plugin: plugin_path, executable: &executable, gpu };
    let mut shown = String::new();
    let mut show_check = |what: &str| {
        if shown != what {
            ui.labelled("trying", what);
            shown = what.to_owned();
        }
    };
    let Ok(checks) = verification.carry_out(&interrupts, &mut show_check) else {
        return Ok(ExitCode::Interrupted);
    };
    let host = host::describe();
    let verified = Verified {
        perfrun: env!("CARGO_PKG_VERSION"),
        device: device.label(),
        hardware: facts.map(|facts| match facts.driver {
            Some(driver) => format!("{}, driver {driver}", facts.name),
            None => facts.name,
        }),
        runtime: in_words(&library),
        plugin: plugin.as_ref().map(in_words),
        processor: host.cpu.clone(),
        system: host.system,
        checks,
    };
    let code = match verified.checks.iter().any(|check| check.state == State::Failed) {
        true => ExitCode::RunsFailed,
        false => ExitCode::Done,
    };
    match arguments.json {
        true => print_json(ui, &verified)?,
        false => print(ui, &table(&verified))?,
    };
    Ok(code)
}

/// The device of that name.
///
/// # Errors
///
/// A name that no provider has, and a device that the kernel shows not to be there.
pub(super) fn present(name: &str) -> Result<Device, Error> {
    let device = spec::device(name).map_err(|(message, hint)| {
        Error::refused(message, hint.unwrap_or_else(|| "`perfrun doctor` lists the devices".to_owned()))
    })?;
    match why_not(&device, &Kernel::here()) {
        Some(absence) => Err(Error::refused(absence.reason, absence.remedy.unwrap_or_else(|| needs(&device)))),
        None => Ok(device),
    }
}

fn needs(device: &Device) -> String {
    let needs = Provider::of(device).and_then(|provider| provider.needs);
    needs.map_or_else(|| "`perfrun doctor` lists the devices".to_owned(), |needs| format!("it needs {needs}"))
}

/// Without the folders of this user: `onnxruntime-gpu 1.31.1, from the cache`.
fn in_words(library: &Library) -> String {
    let package = library.package.as_deref().unwrap_or("ONNX Runtime");
    format!("{package} {}, from {}", library.version.as_deref().unwrap_or("of unknown version"), library.origin)
}

/// What a run on the device would open, fetched where it is not here. A library that is named has the provider built in.
fn libraries(device: &Device, arguments: &DoctorArgs, ui: &Ui) -> Result<(Library, Option<Library>), Error> {
    let cache = runtime::cache_folder();
    let mut report_progress = |progress: &Progress| ui.labelled("runtime", &progress.to_string());
    let named = arguments.runtime.as_deref();
    let (package, plugin) = match Provider::of(device).map(|provider| provider.supply) {
        _ if named.is_some() => (Package::default(), None),
        Some(Supply::Package(package)) => (package, None),
        Some(Supply::Plugin(plugin)) => (Package::default(), Some(plugin)),
        Some(Supply::Runtime) => (Package::default(), None),
        Some(Supply::LocalBuild) | None => {
            let message = format!("perfrun has no package with `{}`", device.label());
            return Err(Error::refused(message, "use a build that has it: --runtime PATH"));
        }
    };
    let library = runtime::find_or_install(named, package, &cache, &mut report_progress)?;
    let plugin = plugin.map(|plugin| runtime::install_plugin(plugin, &cache, &mut report_progress)).transpose()?;
    Ok((library, plugin))
}

/// Markdown, so that it can be pasted.
fn table(verified: &Verified) -> String {
    let count = |state| verified.checks.iter().filter(|check| check.state == state).count();
    let (passed, failed) = (count(State::Passed), count(State::Failed));
    let mut text = format!("perfrun {} on {}: {passed} passed, {failed} failed\n\n", verified.perfrun, verified.device);
    let facts = [
        ("device", verified.hardware.as_ref()),
        ("runtime", Some(&verified.runtime)),
        ("plug-in", verified.plugin.as_ref()),
        ("processor", verified.processor.as_ref()),
        ("system", Some(&verified.system)),
    ];
    for (label, fact) in facts {
        // Writing into a String cannot fail.
        let _ = fact.map(|fact| writeln!(text, "- {label}: {fact}"));
    }
    text += "\n| | check | found |\n|---|---|---|\n";
    for check in &verified.checks {
        let mark = match check.state {
            State::Passed => "ok",
            State::Failed => "FAILED",
            State::NotShown => "-",
        };
        let _ = writeln!(text, "| {mark} | {} | {} |", check.what, check.found.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_failed() {
        let check = |what, state, found: &str| Check { what, state, found: found.to_owned() };
        let verified = Verified {
            perfrun: "1.2.3",
            device: "cuda:0".to_owned(),
            hardware: Some("NVIDIA H200, driver 580.1".to_owned()),
            runtime: "1.31.1".to_owned(),
            plugin: None,
            processor: None,
            system: "Linux".to_owned(),
            checks: vec![check("it runs", State::Passed, "yes"), check("it waits", State::Failed, "a | b")],
        };
        assert_eq!(
            table(&verified),
            "perfrun 1.2.3 on cuda:0: 1 passed, 1 failed\n\n- device: NVIDIA H200, driver 580.1\n- runtime: 1.31.1\n\
             - system: Linux\n\n| | check | found |\n|---|---|---|\n| ok | it runs | yes |\n\
             | FAILED | it waits | a \\| b |\n"
        );
    }
}
