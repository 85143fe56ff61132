//! `perfrun plan`: the matrix before anything is measured.

use super::{print, specs};
use crate::cli::PlanArgs;
use crate::error::{Error, ExitCode};
use crate::run::prepare;
use crate::ui::{Ui, plan as listing};

pub(super) fn run(arguments: &PlanArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let loaded = specs::load(&arguments.spec, &arguments.overrides)?;
    ui.warnings(&loaded.warnings);
    let mut prepared = prepare(&loaded.experiment)?;
    specs::select(&mut prepared.plan, &loaded, arguments.overrides.only.as_deref())?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&prepared.plan).map_err(|error| Error::Internal(error.to_string()))?;
        return print(ui, &(text + "\n"));
    }
    print(ui, &listing::describe(&loaded.experiment, &loaded.notes, &prepared))
}
