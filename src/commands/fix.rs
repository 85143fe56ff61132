//! `perfrun doctor --fix`: locks the clocks of GPUs, where this user may, and says how to undo it. The only command that
//! changes a setting of the machine.

use super::print;
use crate::ui::Ui;
use crate::ui::error::{Error, ExitCode};
use device::clocks::{Locked, lock_all};

pub(super) fn run(ui: &Ui) -> Result<ExitCode, Error> {
    let monitor = device::nvidia().map_err(|problem| {
        Error::refused(format!("no GPU to lock: {problem}"), "`perfrun doctor` lists the devices")
    })?;
    let locked = lock_all(monitor.as_ref());
    if locked.is_empty() {
        return Err(Error::refused("no GPU to lock: the driver found none", "`nvidia-smi -L` lists them"));
    }
    print(ui, &words(&locked))?;
    let is_done = locked.iter().all(|gpu| gpu.outcome.is_ok());
    Ok(if is_done { ExitCode::Done } else { ExitCode::UserError })
}

fn words(locked: &[Locked]) -> String {
    let mut text = String::new();
    for gpu in locked {
        match (&gpu.outcome, gpu.mhz, &gpu.by_hand) {
            (Ok(()), Some(mhz), _) => {
                text += &format!(
                    "{}: locked at {mhz} MHz until the driver is reloaded\n    undo: {}\n",
                    gpu.name, gpu.undo
                );
            }
            (Err(problem), _, Some(by_hand)) => {
                let (name, undo) = (&gpu.name, &gpu.undo);
                text += &format!("{name}: not locked: {problem}\n    as root: {by_hand}\n    undo: {undo}\n");
            }
            (outcome, ..) => {
                let problem = outcome.as_ref().err().map_or("", String::as_str);
                text += &format!("{}: not locked: {problem}\n", gpu.name);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_locked_says_how_to_undo_it_and_what_was_not_what_to_type() {
        let locked = |outcome, mhz, by_hand: Option<&str>| Locked {
            name: "GPU 0 (A)".to_owned(),
            mhz,
            outcome,
            by_hand: by_hand.map(str::to_owned),
            undo: "take it back".to_owned(),
        };
        let done = locked(Ok(()), Some(1095), Some("lock it"));
        assert_eq!(
            words(&[done]),
            "GPU 0 (A): locked at 1095 MHz until the driver is reloaded\n    undo: take it back\n"
        );
        let refused = locked(Err("no permission".to_owned()), Some(1095), Some("lock it"));
        let text = "GPU 0 (A): not locked: no permission\n    as root: lock it\n    undo: take it back\n";
        assert_eq!(words(&[refused]), text);
        assert_eq!(words(&[locked(Err("lost".to_owned()), None, None)]), "GPU 0 (A): not locked: lost\n");
    }
}
