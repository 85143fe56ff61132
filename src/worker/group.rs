//! A process with everything that it starts, and how it is made sure that nothing of it is left.
//!
//! It has a process group of its own, which is killed as a whole once its first process has ended. What leaves the group
//! and outlives its parent is handed to perfrun, which is a subreaper (`prctl(2)`, PR_SET_CHILD_SUBREAPER) as long as a
//! group lives, and is killed too. Deliberately absent: control groups, which need rights that a user does not have.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid, waitpid,
};

use crate::machine::kernel::Kernel;

/// The first processes of all groups that live.
static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The first process of a group. Dropping it ends the group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) child: Child,
    is_over: bool,
}

impl Group {
    /// Starts a command in a group of its own: Ctrl-C in a terminal reaches perfrun alone.
    ///
    /// # Errors
    ///
    /// What the system says, a command that does not exist for example.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        // Orphans of a child that ends at once must come here already. A system without subreapers has none to give.
        let _supported = set_child_subreaper(Some(getpid()));
        let mut living = lock();
        let child = command.process_group(0).spawn()?;
        living.insert(child.id() as i32);
        Ok(Group { child, is_over: false })
    }

    /// The status of the first process if it has ended; what it left behind is ended before.
    pub(super) fn try_end(&mut self) -> io::Result<Option<ExitStatus>> {
        // Without reaping it: its number is that of its group, and may be anybody's afterwards.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if !self.is_over && waitid(WaitId::Pid(self.pid()), ended)?.is_none() {
            return Ok(None);
        }
        self.finish().map(Some)
    }

    /// Ends the first process and everything that it started.
    pub(super) fn kill(&mut self) {
        if !self.is_over {
            // Nobody is left to tell.
            let _status = self.finish();
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn finish(&mut self) -> io::Result<ExitStatus> {
        if !self.is_over {
            // Already gone is what is wanted.
            let _gone = kill_process_group(self.pid(), Signal::KILL);
        }
        let status = self.child.wait();
        if !std::mem::replace(&mut self.is_over, true) {
            let mut living = lock();
            living.remove(&(self.child.id() as i32));
            end_strays(&living);
            if living.is_empty() {
                let _supported = set_child_subreaper(None);
            }
        }
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock() -> std::sync::MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Kills the children of this process that nobody here started: they are in no group of ours, and not in perfrun's own, in
/// which the commands are that perfrun runs for itself.
fn end_strays(living: &BTreeSet<i32>) {
    // Each one that ends may leave children of its own, and ends a little later.
    const MOST_ROUNDS: usize = 256;
    for _ in 0..MOST_ROUNDS {
        let strays: Vec<Pid> =
            children().into_iter().filter(|child| !living.contains(&child.as_raw_nonzero().get())).collect();
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            let _gone = kill_process(stray, Signal::KILL);
            let _status = waitpid(Some(stray), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The children of this process that are in other groups than itself.
fn children() -> Vec<Pid> {
    let (own, own_group) = (getpid().as_raw_nonzero().get(), getpgrp().as_raw_nonzero().get());
    let kernel = Kernel::here();
    let processes = kernel.names("proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let is_stray = |pid: &i32| {
        let Some(stat) = kernel.text(&format!("proc/{pid}/stat")) else { return false };
        // The name stands in parentheses and may hold anything: state, parent and group follow it.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut numbers = rest.split_whitespace().skip(1).map_while(|word| word.parse::<i32>().ok());
        matches!((numbers.next(), numbers.next()), (Some(parent), Some(group)) if parent == own && group != own_group)
    };
    processes.filter(is_stray).filter_map(Pid::from_raw).collect()
}
