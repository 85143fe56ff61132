//! Waiting between blocks for a processor or a device that was too hot (method 8.1).
//!
//! perfrun drops no sample of a throttled run; it marks the run, and gives the machine time before the next block.

use std::time::Duration;

use super::processors::throttle_events;
use crate::machine::kernel::Kernel;

/// How long the counters are watched for another slow-down.
const LOOK: Duration = Duration::from_secs(1);

/// How often somebody may interrupt.
const NAP: Duration = Duration::from_millis(100);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooled {
    /// How long it took.
    pub waited: Duration,
    /// The counters stood still in the end; false at the limit, and when the wait was stopped.
    pub is_cool: bool,
}

/// Waits while the allowed processors' slow-downs are counted up or `is_device_hot`, at most `longest`. `tick` is called ten
/// times a second; it returns false to stop the wait.
///
/// Returns at once where the machine does not count slow-downs and no device reports any. Otherwise one second shows that
/// nothing rises, so call it only after a block in which [`THROTTLE_EVENTS`](crate::metric::THROTTLE_EVENTS) rose.
pub fn wait(
    kernel: &Kernel,
    is_device_hot: &mut dyn FnMut() -> Option<bool>,
    longest: Duration,
    tick: &mut dyn FnMut() -> bool,
) -> Cooled {
    let cpus = kernel.allowed_cpus().unwrap_or_default();
    let mut nap = |time: Duration| {
        std::thread::sleep(time);
        tick()
    };
    let mut hot_looks = 0;
    let mut count = || {
        let (events, is_hot) = (throttle_events(kernel, &cpus), is_device_hot());
        hot_looks += u64::from(is_hot == Some(true));
        (events.is_some() || is_hot.is_some()).then(|| events.unwrap_or(0) + hot_looks)
    };
    wait_while_rising(&mut count, longest, &mut nap)
}

fn wait_while_rising(
    count: &mut dyn FnMut() -> Option<u64>,
    longest: Duration,
    nap: &mut dyn FnMut(Duration) -> bool,
) -> Cooled {
    let mut waited = Duration::ZERO;
    let Some(mut before) = count() else { return Cooled { waited, is_cool: true } };
    while waited < longest {
        let end = (waited + LOOK).min(longest);
        while waited < end {
            let time = NAP.min(end - waited);
            waited += time;
            if !nap(time) {
                return Cooled { waited, is_cool: false };
            }
        }
        match count() {
            Some(after) if after > before => before = after,
            _ => return Cooled { waited, is_cool: true },
        }
    }
    Cooled { waited, is_cool: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose counter rises for so many looks.
    fn cool(hot_looks: u64, longest: Duration) -> Cooled {
        let mut looks = 0;
        let mut count = || {
            looks += 1;
            Some(looks.min(hot_looks))
        };
        wait_while_rising(&mut count, longest, &mut |_| true)
    }

    #[test]
    fn a_device_that_is_hot_is_waited_for() {
        let root = tempfile::tempdir().expect("a folder");
        let kernel = Kernel::below(root.path());
        let mut none = || None;
        let at_once = wait(&kernel, &mut none, Duration::from_secs(30), &mut || true);
        assert_eq!(at_once, Cooled { waited: Duration::ZERO, is_cool: true });
        let mut hot = || Some(true);
        let stopped = wait(&kernel, &mut hot, Duration::from_secs(30), &mut || false);
        assert_eq!(stopped, Cooled { waited: NAP, is_cool: false });
    }

    #[test]
    fn the_wait_ends_when_the_counters_stand_still() {
        let limit = Duration::from_secs(30);
        assert_eq!(cool(1, limit), Cooled { waited: Duration::from_secs(1), is_cool: true });
        assert_eq!(cool(5, limit), Cooled { waited: Duration::from_secs(5), is_cool: true });
        assert_eq!(cool(100, limit), Cooled { waited: limit, is_cool: false });
        assert_eq!(cool(100, Duration::ZERO), Cooled { waited: Duration::ZERO, is_cool: false });
    }

    #[test]
    fn a_machine_that_does_not_count_is_not_waited_for() {
        let found = wait_while_rising(&mut || None, Duration::from_secs(30), &mut |_| true);
        assert_eq!(found, Cooled { waited: Duration::ZERO, is_cool: true });
    }

    #[test]
    fn the_wait_can_be_stopped() {
        let mut naps = 0;
        let mut nap = |_| {
            naps += 1;
            naps < 3
        };
        let found = wait_while_rising(&mut || Some(0), Duration::from_secs(30), &mut nap);
        assert_eq!(found, Cooled { waited: Duration::from_millis(300), is_cool: false });
    }
}
