//! `perfrun runtime list|install|path`.

use std::path::Path;

use super::print;
use crate::ui::Ui;
use crate::ui::cli::{RuntimeAction, RuntimeArgs};
use crate::ui::error::{Error, ExitCode};
use experiment::{Package, Plugin};
use prepare::runtime::{self, PINNED, Progress};

pub(super) fn run(arguments: &RuntimeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let cache = runtime::cache_folder();
    let interrupts = super::interrupts()?;
    match carry_out(&arguments.action, &cache, ui) {
        // Ctrl-C reaches pip as well, which fails.
        Err(_) if interrupts.count() > 0 => Ok(ExitCode::Interrupted),
        done => done,
    }
}

fn carry_out(action: &RuntimeAction, cache: &Path, ui: &Ui) -> Result<ExitCode, Error> {
    match action {
        RuntimeAction::List => {
            let mut text = String::new();
            for library in runtime::list(cache)?.into_iter().chain(runtime::find_elsewhere()) {
                let broken = runtime::broken(&library);
                let broken = broken.map(|(why, folder)| format!(": broken: {why}; remove {}", folder.display()));
                text.push_str(&format!("{library}{}\n", broken.unwrap_or_default()));
            }
            if text.is_empty() {
                ui.note(&format!("no libraries; `perfrun runtime install` fetches {PINNED} into {}", cache.display()));
            }
            let code = print(ui, &text)?;
            let versions = Package::Onnxruntime.versions().join(", ");
            ui.note(&format!(
                "`perfrun runtime install VERSION` fetches any from 1.25.0 on; this perfrun has checksums of {versions}"
            ));
            Ok(code)
        }
        RuntimeAction::Install { provider: Some(provider), .. } => {
            let plugin = Plugin::ALL.into_iter().find(|plugin| plugin.device() == provider);
            let plugin = plugin.ok_or_else(|| Error::Internal(format!("no plug-in for `{provider}`")))?;
            let library = runtime::install_plugin(plugin, cache, &mut |progress| ui.note(&progress.to_string()))?;
            print(ui, &format!("{}\n", library.path.display()))
        }
        RuntimeAction::Install { version, package, gpu, with_cuda, .. } => {
            let version = version.as_deref().unwrap_or(PINNED);
            let named = Package::of_name(package).unwrap_or_default();
            let package = if *gpu { Package::OnnxruntimeGpu } else { named };
            let report_progress = &mut |progress: &Progress| ui.note(&progress.to_string());
            let library = runtime::install(package, version, cache, report_progress)?;
            if *with_cuda {
                runtime::install_cuda(cache, report_progress)?;
            }
            print(ui, &format!("{}\n", library.path.display()))
        }
        RuntimeAction::Path { version: Some(version), .. } => {
            match runtime::find_version(Package::Onnxruntime, version, cache)? {
                Some(library) => print(ui, &format!("{}\n", library.path.display())),
                None => Err(Error::refused(
                    format!("ONNX Runtime {version} is not installed; a run that names it fetches it"),
                    format!("`perfrun runtime install {version}` fetches it now"),
                )),
            }
        }
        RuntimeAction::Path { runtime, .. } => match runtime::find(runtime.as_deref(), cache)? {
            Some(library) => print(ui, &format!("{}\n", library.path.display())),
            None => Err(Error::refused(
                "no ONNX Runtime library is installed; a run fetches it",
                format!("`perfrun runtime install` fetches {PINNED} now"),
            )),
        },
    }
}
