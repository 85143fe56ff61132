//! `perfrun runtime list|install|path`.

use super::print;
use crate::cli::{RuntimeAction, RuntimeArgs};
use crate::error::{Error, ExitCode};
use crate::runtime::{self, PINNED};
use crate::ui::Ui;

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
            print(ui, &text)
        }
        RuntimeAction::Install { version } => {
            let version = version.as_deref().unwrap_or(PINNED);
            let library = runtime::install(version, &cache, &mut |progress| ui.note(&progress.to_string()))?;
            print(ui, &format!("{}\n", library.path.display()))
        }
        RuntimeAction::Path { runtime } => match runtime::find(runtime.as_deref(), &cache)? {
            Some(library) => print(ui, &format!("{}\n", library.path.display())),
            None => Err(Error::refused(
                "no library is here yet; a run would fetch it",
                format!("`perfrun runtime install` fetches {PINNED} now"),
            )),
        },
    }
}
