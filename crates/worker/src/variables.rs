//! The variable by which polars sizes its threads: this process has one of its own, and what it measures the user's.

use std::env::{current_exe, var_os};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// No call of polars says how many.
const SIZE: &str = "POLARS_MAX_THREADS";

/// Where the user's value waits; empty where there is none.
const KEPT: &str = "PERFRUN_POLARS_MAX_THREADS";

/// Threads of a pool of perfrun's at most.
const MOST: usize = 16;

/// Threads of a pool of perfrun's: one for each processor.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |found| found.get().min(MOST))
}

/// Starts this process anew with a size of its own, where polars would take another one; else returns. A worker has no use for
/// polars.
///
/// # Errors
///
/// What the system says.
pub fn size_polars() -> io::Result<()> {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let is_sized = var_os(KEPT).is_some() || var_os(SIZE).is_none() && processors <= MOST;
    if is_sized || std::env::args_os().nth(1).is_some_and(|first| first == "worker") {
        return Ok(());
    }
    let mut anew = Command::new(current_exe()?);
    anew.arg0(name).args(arguments).env(SIZE, threads().to_string());
    Err(anew.env(KEPT, var_os(SIZE).unwrap_or_default()).exec())
}

/// What is started has the variable as the user set it.
pub(super) fn give_back(command: &mut Command) {
    give(command, var_os(KEPT));
}

fn give(command: &mut Command, kept: Option<OsString>) {
    let Some(value) = kept else { return };
    command.env_remove(KEPT);
    let has_its_own = command.get_envs().any(|(name, _)| name == OsStr::new(SIZE));
    match (has_its_own, value.is_empty()) {
        (true, _) => {}
        (false, true) => drop(command.env_remove(SIZE)),
        (false, false) => drop(command.env(SIZE, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_users_value_its_variants_or_none() {
        let given = |kept: Option<&str>, of_variant: Option<&str>| {
            let mut command = Command::new("p");
            command.envs(of_variant.map(|size| (SIZE, size)));
            give(&mut command, kept.map(OsString::from));
            let size = command.get_envs().find(|(name, _)| *name == SIZE);
            size.map(|(_, value)| value.map(|value| value.to_string_lossy().into_owned()))
        };
        assert_eq!(given(None, None), None, "as it is inherited");
        assert_eq!(given(Some(""), None), Some(None), "taken away");
        assert_eq!(given(Some("3"), None), Some(Some("3".to_owned())));
        assert_eq!(given(Some("3"), Some("5")), Some(Some("5".to_owned())));
    }
}
