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

use super::variables;
use base::machine::kernel::Kernel;

/// All groups that live.
static LIVING: Mutex<Living> = Mutex::new(Living { groups: BTreeSet::new(), earlier: BTreeSet::new() });

struct Living {
    /// Their first processes.
    groups: BTreeSet<i32>,
    /// Children that were there before them: of whoever became perfrun, by `exec`.
    earlier: BTreeSet<i32>,
}

impl Living {
    /// Once no group lives, ends what left one: as long as any does, nobody knows whose an orphan is.
    fn rest(&self) {
        if self.groups.is_empty() {
            end_strays(&self.earlier);
            let _supported = set_child_subreaper(None);
        }
    }
}

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
        let mut living = lock();
        if living.groups.is_empty() {
            living.earlier = children();
            // Orphans of a child that ends at once must come here already. A system without subreapers has none to give.
            let _supported = set_child_subreaper(Some(getpid()));
        }
        variables::give_back(command);
        match command.process_group(0).spawn() {
            Ok(child) => {
                living.groups.insert(child.id() as i32);
                Ok(Group { child, is_over: false })
            }
            Err(problem) => {
                living.rest();
                Err(problem)
            }
        }
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
            // Nobody is left to report it to.
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
            living.groups.remove(&(self.child.id() as i32));
            living.rest();
        }
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Living> {
    LIVING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Kills all that this process started, where it will not end otherwise; `earlier` children are somebody else's.
pub(super) fn kill_all(earlier: &BTreeSet<(i32, i32)>) {
    for pid in all_children().difference(earlier).filter_map(|(child, _)| Pid::from_raw(*child)) {
        // Whoever leads a group takes it along.
        let _gone = kill_process_group(pid, Signal::KILL).or_else(|_| kill_process(pid, Signal::KILL));
    }
}

/// Kills the children of this process that nobody here started: they are not in perfrun's own group, in which the commands
/// are that perfrun runs for itself, and were not there `earlier`. The first process of a container is everybody's heir.
fn end_strays(earlier: &BTreeSet<i32>) {
    // Each one that ends may leave children of its own, and ends a little later.
    const MOST_ROUNDS: usize = 256;
    if getpid().is_init() {
        return;
    }
    for _ in 0..MOST_ROUNDS {
        let strays: Vec<Pid> = children().difference(earlier).filter_map(|child| Pid::from_raw(*child)).collect();
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
fn children() -> BTreeSet<i32> {
    let own_group = getpgrp().as_raw_nonzero().get();
    all_children().into_iter().filter(|(_, group)| *group != own_group).map(|(child, _)| child).collect()
}

/// Every child of this process with its group.
pub(super) fn all_children() -> BTreeSet<(i32, i32)> {
    let this_process = getpid().as_raw_nonzero().get();
    let kernel = Kernel::here();
    // A list may leave out one child while another ends (proc(5)), hence two.
    let processes = [listed_children(&kernel), listed_children(&kernel)].concat();
    let of_this = |pid: i32| {
        // The name stands in parentheses and may hold anything, in any encoding: state, parent and group follow it.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut numbers = rest.split_whitespace().skip(1).map_while(|word| word.parse::<i32>().ok());
        let (parent, group) = (numbers.next()?, numbers.next()?);
        (parent == this_process).then_some((pid, group))
    };
    processes.into_iter().filter_map(of_this).collect()
}

/// The children of each thread, which kernels without CONFIG_PROC_CHILDREN do not list: then all processes there are.
fn listed_children(kernel: &Kernel) -> Vec<i32> {
    let threads = kernel.names("proc/self/task").into_iter();
    let lists: Option<Vec<String>> =
        threads.map(|thread| kernel.text(&format!("proc/self/task/{thread}/children"))).collect();
    let pids: Vec<String> = match lists {
        Some(lists) => lists.iter().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect(),
        None => kernel.names("proc"),
    };
    pids.iter().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::machine::kernel::fake::FakeKernel;

    #[test]
    fn children_are_those_of_all_threads_or_all_processes_there_are() {
        let of_threads = [("proc/self/task/7/children", "12 13 \n"), ("proc/self/task/8/children", "")];
        assert_eq!(listed_children(&FakeKernel::with(&of_threads).kernel()), [12, 13]);
        let without_lists = [("proc/self/task/7/stat", ""), ("proc/12/stat", ""), ("proc/15/stat", "")];
        assert_eq!(listed_children(&FakeKernel::with(&without_lists).kernel()), [12, 15]);
    }
}
