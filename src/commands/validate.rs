//! `perfrun validate`: every problem of every file, and nothing else.

use super::specs;
use crate::plan;
use crate::ui::Ui;
use crate::ui::cli::{Overrides, ValidateArgs};
use crate::ui::error::{Error, ExitCode};

pub(super) fn run(arguments: &ValidateArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let mut code = ExitCode::Done;
    for path in specs::find(&arguments.specs)? {
        match check(&path, &overrides, ui) {
            Ok(line) => {
                super::print(ui, &line)?;
            }
            Err(error) => {
                code = code.worst(error.exit_code());
                ui.error(error.into());
            }
        }
    }
    Ok(code)
}

fn check(path: &std::path::Path, overrides: &Overrides, ui: &Ui) -> Result<String, Error> {
    let loaded = specs::load(path, overrides)?;
    ui.warnings(&loaded.warnings);
    let plan = plan::expand(&loaded.experiment)?;
    super::specs::tell_doubts(&loaded, &plan, ui);
    Ok(format!("{}: valid, {} = {} cells\n", path.display(), plan.product, plan.cells.len()))
}
