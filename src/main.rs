//! The perfrun command: parse, do, say what went wrong, exit.

use std::process::ExitCode;

use perfrun::commands;
use perfrun::ui::{Ui, cli};

fn main() -> ExitCode {
    let ui = Ui::detect();
    match cli::parse(std::env::args_os(), ui.is_coloured()) {
        Ok(cli) => match commands::dispatch(cli.command, &ui) {
            Ok(code) => code.into(),
            Err(error) => {
                let code = error.exit_code();
                ui.error(error.into());
                code.into()
            }
        },
        Err(said) => ui.said(&said).into(),
    }
}
