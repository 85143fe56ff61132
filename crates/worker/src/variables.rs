//! Variables that size the thread pools of perfrun's own libraries: kept from this process, and given to what it measures.

use std::env::{current_exe, var_os};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// By which polars sizes its threads; no call of polars does.
const SIZE: &str = "POLARS_MAX_THREADS";

/// Where its value waits.
const KEPT: &str = "PERFRUN_POLARS_MAX_THREADS";

/// Starts this process anew without the variable where it is set; else, and in a worker, which has no use for polars, returns.
///
/// # Errors
///
/// What the system says.
pub fn keep_from_this_process() -> io::Result<()> {
    let Some(value) = var_os(SIZE) else { return Ok(()) };
    if std::env::args_os().nth(1).is_some_and(|first| first == "worker") {
        return Ok(());
    }
    let mut arguments = std::env::args_os();
    let mut anew = Command::new(current_exe()?);
    anew.arg0(arguments.next().unwrap_or_default());
    Err(anew.args(arguments).env_remove(SIZE).env(KEPT, value).exec())
}

/// What is started has the variable as the user set it.
pub(super) fn give_back(command: &mut Command) {
    if let Some(value) = var_os(KEPT) {
        command.env_remove(KEPT);
        let is_set = command.get_envs().any(|(name, _)| name == SIZE);
        if !is_set {
            command.env(SIZE, value);
        }
    }
}
