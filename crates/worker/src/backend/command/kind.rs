//! Commands, as the parent asks about them.

use std::collections::BTreeMap;

use crate::backend::{BackendRequest, CellFacts, Kind};
use base::machine::environment::Environment;
use experiment::Stdout;

/// The backend of `commands`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandKind;

impl Kind for CommandKind {
    fn environment(&self) -> Environment {
        Environment::machine()
    }

    fn library(&self) -> Option<&'static str> {
        None
    }

    fn title(&self) -> &'static str {
        "commands"
    }

    fn session_of_residents(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn request(&self, facts: &CellFacts<'_>) -> BackendRequest {
        let mut command = facts.command.cloned().unwrap_or_default();
        if let Stdout::File(file) = &mut command.stdout {
            *file = facts.printed.join(&*file);
        }
        BackendRequest::Command(command)
    }
}
