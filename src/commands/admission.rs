//! What a measurement needs before it begins, whichever command begins it: the libraries, its turn on the machine, and
//! a look at who else uses it.
//!
//! Input: an experiment with its plan. Output: what goes into its record, and the lock, held until this is dropped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::libraries;
use super::quiet::BackgroundUse;
use crate::run::event::Event;
use crate::run::{self, Ended, Job, Prepared, Provenance};
use crate::ui::Ui;
use crate::ui::error::Error;
use crate::ui::live::Live;
use base::machine::host;
use base::quantity::Nanos;
use experiment::Experiment;
use plan::Plan;
use prepare::runtime::Libraries;
use reading::shell;
use record::{ProjectRoot, StoreError};
use spec::Loaded;
use worker::Interrupts;
use worker::backend;
use worker::lock::{self, Choice, LockError, MachineLock, Turn};

/// What the command line says about admission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wishes<'a> {
    /// The library to use.
    pub(super) runtime: Option<&'a Path>,
    /// How long to wait for a quiet machine.
    pub(super) wait: Option<Nanos>,
    /// Fail, where another perfrun measures, instead of waiting for it.
    pub(super) no_wait: bool,
    /// Scripts wait for their turn too: another start of the same job may be at work on the same record.
    pub(super) always_in_turn: bool,
}

/// A measurement that may begin.
pub(super) struct Admission {
    /// What workers open; nothing with the mock backend.
    pub(super) libraries: Libraries,
    /// What the record says of this invocation.
    pub(super) invocation: record::Invocation,
    /// The perfrun executable, which workers are started from.
    pub(super) executable: PathBuf,
    background: BackgroundUse,
    /// Held until the last run has ended.
    lock: Option<MachineLock>,
}

/// This process's turn on the machine.
pub(super) struct Admitted {
    /// Nothing where there is no file to lock, or none is wanted.
    lock: Option<MachineLock>,
    /// Why other perfruns may measure at the same time.
    not_alone: Option<String>,
}

impl Admission {
    /// Gets the libraries, waits for this machine's other perfruns and, as the user asked, for quiet; `None` if the user
    /// stopped waiting.
    ///
    /// # Errors
    ///
    /// As [`Admission::take_turn`] and [`Admission::wait_for_quiet`].
    pub(super) fn ask(
        experiment: &Experiment,
        plan: &Plan,
        wishes: Wishes<'_>,
        project: &ProjectRoot,
        interrupts: &Interrupts,
        ui: &Ui,
    ) -> Result<Option<Self>, Error> {
        let mut admission = Admission::take_turn(experiment, plan, wishes, project, interrupts, ui)?;
        if let Some(admission) = &mut admission {
            admission.wait_for_quiet(experiment, wishes, interrupts, ui)?;
        }
        Ok(admission)
    }

    /// Gets the libraries and waits for this machine's other perfruns; `None` if the user stopped waiting.
    ///
    /// # Errors
    ///
    /// A library that cannot be had, and another perfrun that is not to be waited for.
    pub(super) fn take_turn(
        experiment: &Experiment,
        plan: &Plan,
        wishes: Wishes<'_>,
        project: &ProjectRoot,
        interrupts: &Interrupts,
        ui: &Ui,
    ) -> Result<Option<Self>, Error> {
        let environment = backend::kind_of(&experiment.backend).environment();
        let libraries = libraries::obtain(experiment, plan, wishes.runtime, ui)?;
        let take = || lock(&experiment.name, wishes.no_wait, interrupts, ui);
        let turn = if wishes.always_in_turn { take()? } else { environment.on_machine(take).transpose()?.flatten() };
        if interrupts.count() > 0 {
            return Ok(None);
        }
        let (lock, not_alone) = turn.map_or((None, None), |turn| (turn.lock, turn.not_alone));
        let (invocation, executable) = (run::this_invocation(command_line(project), not_alone), executable()?);
        Ok(Some(Admission { libraries, invocation, executable, background: BackgroundUse::default(), lock }))
    }

    /// Waits for quiet as the user asked, and looks at who else uses the machine.
    ///
    /// # Errors
    ///
    /// A machine that is not quiet where the specification requires it.
    pub(super) fn wait_for_quiet(
        &mut self,
        experiment: &Experiment,
        wishes: Wishes<'_>,
        interrupts: &Interrupts,
        ui: &Ui,
    ) -> Result<(), Error> {
        let environment = backend::kind_of(&experiment.backend).environment();
        self.background = BackgroundUse::admit(environment, experiment.require, wishes.wait, interrupts, ui)?;
        Ok(())
    }

    /// Tries the devices that cells need, and skips the cells of those that cannot be used; false if the user stopped it.
    pub(super) fn try_devices(
        &self,
        prepared: &mut Prepared,
        experiment: &Experiment,
        interrupts: &Interrupts,
    ) -> bool {
        prepared.try_devices(experiment, &self.libraries, &self.executable, interrupts).is_ok()
    }

    /// Measures what a record lacks, shows the progress, and publishes the expected end for those who wait for the
    /// machine.
    pub(super) fn execute(&self, job: &mut Job, interrupts: &Interrupts, ui: &Ui) -> Result<Ended, StoreError> {
        let mut live = Live::new(ui, self.warning());
        let ended = run::execute(job, interrupts, &mut |event: &Event<'_>| {
            if let (Some(lock), Event::Planned { estimate: Some(left), .. }) = (&self.lock, event) {
                lock.expect_end(*left);
            }
            live.on_event(event);
        });
        live.finish();
        ended
    }

    /// What to say about the machine before measuring.
    pub(super) fn warning(&self) -> Option<String> {
        self.background.warning()
    }

    /// What goes into a new record in addition to the plan.
    pub(super) fn provenance<'a>(
        &'a self,
        (spec, spec_path): (&'a Loaded, &'a Path),
        overrides: &'a [String],
        restrictions: Vec<String>,
        quick: bool,
    ) -> Provenance<'a> {
        Provenance {
            spec,
            spec_path,
            overrides,
            restrictions,
            host: host::describe(),
            background_cpus: self.background.cpus(),
            libraries: &self.libraries,
            invocation: self.invocation.clone(),
            quick,
            executable: self.executable.clone(),
        }
    }
}

/// Waits for its turn on this machine, saying for whom; `None` if the user stopped waiting. If no lock can be
/// taken at all, perfrun measures without one.
pub(super) fn lock(name: &str, no_wait: bool, interrupts: &Interrupts, ui: &Ui) -> Result<Option<Admitted>, Error> {
    let holder = format!("process {}, experiment {name}", std::process::id());
    let Choice { path, not_shared: not_alone } = lock::choose();
    if let Some(why) = &not_alone {
        ui.labelled("lock", &format!("other perfruns may measure at the same time: {why}"));
    }
    let Some(path) = path else { return Ok(Some(Admitted { lock: None, not_alone })) };
    let mut turn = None;
    let mut is_announced = false;
    loop {
        match MachineLock::try_take(&path, &holder, turn.as_ref()) {
            Ok(lock) => return Ok(Some(Admitted { lock: Some(lock), not_alone })),
            Err(LockError::Held { .. }) if interrupts.count() > 0 => return Ok(None),
            Err(LockError::Held { holder }) if !no_wait => {
                if !is_announced {
                    is_announced = true;
                    turn = Turn::take(&path);
                    let instead =
                        "--no-wait exits instead; PERFRUN_LOCK=none measures at the same time, and the record says so";
                    let text = format!("another perfrun is measuring on this machine: {holder} ({instead})");
                    ui.labelled("waiting", &text);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The command as it was typed, without the folders of this user.
fn command_line(project: &ProjectRoot) -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let path = PathBuf::from(&word);
        shell::word(&if path.is_absolute() { project.relative(&path) } else { word.to_string_lossy().into_owned() })
    });
    std::iter::once("perfrun".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

pub(super) fn executable() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|source| Error::attempt("cannot find the executable of perfrun itself", source))
}
