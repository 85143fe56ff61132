//! Where runs take place: on this machine, or in a script of the mock backend.

use std::time::{Duration, Instant};

/// Use it to inspect the machine, to wait for it, and to estimate how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    is_machine: bool,
}

impl Environment {
    /// This machine: its state shows in a run, other processes disturb it, and runs take real time.
    pub const fn machine() -> Self {
        Environment { is_machine: true }
    }

    /// A script: nothing of the machine shows in a run, and no time passes.
    pub const fn script() -> Self {
        Environment { is_machine: false }
    }

    /// What only a machine has or needs; in a script nothing is done.
    pub fn on_machine<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        self.is_machine.then(work)
    }

    /// What a machine must have, and a script does without.
    ///
    /// # Errors
    ///
    /// What a machine lacks.
    pub fn need<T, E>(self, found: Result<T, E>) -> Result<Option<T>, E> {
        if self.is_machine { found.map(Some) } else { Ok(found.ok()) }
    }

    /// How long something took here.
    pub fn elapsed(self, since: Instant) -> Option<Duration> {
        self.on_machine(|| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_no_machine_and_lacks_nothing() {
        let (machine, script) = (Environment::machine(), Environment::script());
        assert_eq!((machine.on_machine(|| 1), script.on_machine(|| 1)), (Some(1), None));
        assert_eq!((machine.need(Ok::<_, ()>(1)), script.need(Ok::<_, ()>(1))), (Ok(Some(1)), Ok(Some(1))));
        assert_eq!((machine.need(Err::<(), _>(2)), script.need(Err::<(), _>(2))), (Err(2), Ok(None)));
        assert_eq!(script.elapsed(Instant::now()), None);
    }
}
