//! The background load of the machine, and waiting until there is none.

use std::time::{Duration, Instant};

use crate::ui::Ui;
use crate::ui::error::Error;
use base::machine::environment::Environment;
use base::machine::host::{self, BusyProcess};
use base::machine::kernel::Kernel;
use base::machine::probe::check::BackgroundLoad;
use base::quantity::Nanos;
use experiment::Require;
use worker::Interrupts;

/// What was seen just before measuring; nothing with a script, which other processes do not disturb.
#[derive(Debug, Default)]
pub(super) struct BackgroundUse {
    processes: Vec<BusyProcess>,
    /// Who is too busy, in words; by the rule of `W_LOAD`.
    busy: Option<String>,
}

/// How long is waited where nobody says: what ends soon, such as a build, is over by then.
const WAIT: Nanos = Nanos::from_secs(30);

/// What `--wait` is where it is not given.
///
/// # Errors
///
/// A `PERFRUN_WAIT` that is no time.
fn of_environment() -> Result<Nanos, Error> {
    let Ok(text) = std::env::var("PERFRUN_WAIT") else { return Ok(WAIT) };
    let refused = |error| Error::refused(format!("PERFRUN_WAIT: {error}"), "write a time, such as `30s`, or unset it");
    text.parse().map_err(refused)
}

impl BackgroundUse {
    /// What other processes do before a measurement, after waiting as the user asked.
    ///
    /// # Errors
    ///
    /// Where the specification wants no background load on the machine, and there is some; a `PERFRUN_WAIT` that is no
    /// time.
    pub(super) fn admit(
        environment: Environment,
        require: Require,
        wait: Option<Nanos>,
        interrupts: &Interrupts,
        ui: &Ui,
    ) -> Result<Self, Error> {
        let look =
            || wait.map_or_else(of_environment, Ok).map(|wait| BackgroundUse::after_waiting(wait, interrupts, ui));
        let background = environment.on_machine(look).transpose()?.unwrap_or_default();
        if require.quiet {
            background.require_none()?;
        }
        Ok(background)
    }

    /// Looks, and looks again until the machine is quiet or `wait` is over.
    fn after_waiting(wait: Nanos, interrupts: &Interrupts, ui: &Ui) -> Self {
        let give_up = Instant::now() + wait.to_duration();
        let host = host::describe();
        let mut is_announced = false;
        loop {
            let processes = host::busy_processes();
            let busy = BackgroundLoad::of(&processes, Kernel::here().load_average()).why_not_quiet(&host);
            let is_over = Instant::now() >= give_up || interrupts.count() > 0;
            let Some(who) = busy.as_ref().filter(|_| !is_over) else { return BackgroundUse { processes, busy } };
            if !is_announced {
                is_announced = true;
                ui.labelled("waiting", &format!("up to {wait} for a quiet machine: {who} (--wait 0s does not wait)"));
            }
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    /// Processors' worth of time that other processes used.
    pub(super) fn cpus(&self) -> f64 {
        BackgroundLoad::of(&self.processes, None).cpus
    }

    /// What to say before measuring.
    pub(super) fn warning(&self) -> Option<String> {
        let busy = self.busy.as_ref()?;
        Some(format!("BUSY: {busy}; expect higher latencies and more noise (--wait 5m waits for quiet)"))
    }

    /// Refuses where the specification wants no background load on the machine.
    fn require_none(&self) -> Result<(), Error> {
        match &self.busy {
            Some(busy) => Err(Error::refused(
                format!("`require: {{ quiet: true }}`: {busy}"),
                "wait until the machine is quiet (`--wait 5m`), or leave the key out",
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_told_and_refused_where_quiet_is_required() {
        let background =
            BackgroundUse { processes: Vec::new(), busy: Some("rustc used 1.9 of 2 processors".to_owned()) };
        assert_eq!(
            background.warning().as_deref(),
            Some(
                "BUSY: rustc used 1.9 of 2 processors; expect higher latencies and more noise (--wait 5m waits for quiet)"
            )
        );
        assert!(background.require_none().is_err());
        assert!(BackgroundUse::default().require_none().is_ok());
        assert_eq!(BackgroundUse::default().warning(), None);
    }
}
