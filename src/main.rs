//! The perfrun command: parse, do, say what went wrong, exit.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use perfrun::commands::{self, limits};
use perfrun::ui::{Ui, cli};
use worker::variables;

fn main() -> ExitCode {
    report_full_files();
    // If perfrun cannot be started anew, polars starts as many threads as its environment says.
    let _as_it_is = variables::size_polars();
    let words: Vec<OsString> = std::env::args_os().collect();
    let ui = Ui::detect().coloured(cli::color(&words));
    // Parsing takes the most stack.
    if let Err(error) = limits::check() {
        let code = error.exit_code();
        ui.error(error.into());
        return code.into();
    }
    match cli::parse(words) {
        Ok(cli) => match commands::dispatch(cli.command, &ui.showing(&cli.screen)) {
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

/// Beyond the limit of a file's size (`ulimit -f`) the system ends a program without a word, unless it takes the signal:
/// then writing fails, which is reported.
fn report_full_files() {
    // Where no handler can be had, all is as it was.
    let _unchanged = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}
