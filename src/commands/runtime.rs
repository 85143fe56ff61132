//! `perfrun runtime list|install|path`.

use super::print;
use crate::experiment::Package;
use crate::prepare::runtime::{self, PINNED};
use crate::ui::Ui;
use crate::ui::cli::{RuntimeAction, RuntimeArgs};
use crate::ui::error::{Error, ExitCode};

pub(super) fn run(arguments: &RuntimeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let cache = runtime::cache_folder();
    match &arguments.action {
        RuntimeAction::List => {
            let mut text = String::new();
            for library in runtime::list(&cache)?.into_iter().chain(runtime::find_elsewhere()) {
                text.push_str(&format!("{library}\n"));
            }
            if text.is_empty() {
                ui.note(&format!("none; `perfrun runtime install` fetches {PINNED} into {}", cache.display()));
            }
            let code = print(ui, &text)?;
            let versions = Package::Onnxruntime.versions().join(", ");
            ui.note(&format!("`perfrun runtime install VERSION` fetches one of {versions}"));
            Ok(code)
        }
        RuntimeAction::Install { version, package } => {
            let version = version.as_deref().unwrap_or(PINNED);
            let package = Package::of_name(package).unwrap_or(Package::Onnxruntime);
            let library = runtime::install(package, version, &cache, &mut |progress| ui.note(&progress.to_string()))?;
            print(ui, &format!("{}\n", library.path.display()))
        }
        RuntimeAction::Path { version: Some(version), .. } => {
            match runtime::find_version(Package::Onnxruntime, version, &cache)? {
                Some(library) => print(ui, &format!("{}\n", library.path.display())),
                None => Err(Error::refused(
                    format!("ONNX Runtime {version} is not here yet; a run that names it would fetch it"),
                    format!("`perfrun runtime install {version}` fetches it now"),
                )),
            }
        }
        RuntimeAction::Path { runtime, .. } => match runtime::find(runtime.as_deref(), &cache)? {
            Some(library) => print(ui, &format!("{}\n", library.path.display())),
            None => Err(Error::refused(
                "no library is here yet; a run would fetch it",
                format!("`perfrun runtime install` fetches {PINNED} now"),
            )),
        },
    }
}
