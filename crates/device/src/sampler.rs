//! The thread that reads a GPU while a run is under way. It sleeps between two readings, so that it costs no processor
//! that the run needs.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Gpu;
use super::monitor::Point;
use super::other_processes::{OtherProcesses, divide, is_ours};
use base::machine::kernel::Kernel;

/// From one reading to the next.
pub(super) const PERIOD: Duration = Duration::from_millis(100);

/// Processes are looked up in every so many readings: it takes the driver longer than all the rest.
const PROCESSES_EVERY: usize = 10;

/// What the thread is asked to do.
#[derive(Debug, Default)]
struct State {
    is_over: bool,
    is_sampling: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// A GPU that is being read. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Vec<Point>>>,
}

impl Sampler {
    /// Starts to read; `before` has the processes that were there already. `None` where there is no thread for it.
    pub(super) fn start(gpu: Gpu, before: Vec<u32>, period: Duration) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let read = move || follow(&gpu, &before, period, &for_thread);
        let thread = std::thread::Builder::new().name("device".to_owned()).spawn(read).ok()?;
        Some(Sampler { shared, thread: Some(thread) })
    }

    /// From now on counted samples are taken, or no longer.
    pub(super) fn set_sampling(&self, is_sampling: bool) {
        self.shared.change(|state| state.is_sampling = is_sampling);
    }

    /// Everything that was read.
    pub(super) fn finish(mut self) -> Vec<Point> {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Vec<Point>> {
        self.shared.change(|state| state.is_over = true);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads until the run is over. A reading takes its time, so the next is due by the clock and not after a pause.
fn follow(gpu: &Gpu, before: &[u32], period: Duration, shared: &Shared) -> Vec<Point> {
    let (started, kernel) = (Instant::now(), Kernel::here());
    let mut points = Vec::new();
    let mut others = OtherProcesses::default();
    let mut due = Duration::ZERO;
    loop {
        if points.len() % PROCESSES_EVERY == 0 {
            let now = gpu.monitor.processes(gpu.number);
            others = now.map_or_else(OtherProcesses::default, |now| divide(before, &now, &|pid| is_ours(&kernel, pid)));
        }
        let time = started.elapsed();
        let is_sampling = shared.state.lock().unwrap_or_else(PoisonError::into_inner).is_sampling;
        points.push(others.at(time.as_nanos() as u64, is_sampling, gpu.monitor.read(gpu.number)));
        due = (due + period).max(started.elapsed());
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.is_over {
            let left = due.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_over {
            return points;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;
    use crate::monitor::{Facts, Monitor, Process};

    /// Says whenever it is read, and waits until that is heard.
    #[derive(Debug)]
    struct Rendezvous(Mutex<SyncSender<()>>);

    impl Monitor for Rendezvous {
        fn count(&self) -> u32 {
            1
        }
        fn facts(&self, _gpu: u32) -> Result<Facts, String> {
            Ok(Facts::default())
        }
        fn read(&self, _gpu: u32) -> Point {
            let _nobody_listens = self.0.lock().unwrap().send(());
            Point { power_watts: Some(7.0), ..Point::default() }
        }
        fn processes(&self, _gpu: u32) -> Option<Vec<Process>> {
            None
        }
        fn energy_joules(&self, _gpu: u32) -> Option<f64> {
            None
        }
        fn lock_clock(&self, _gpu: u32, _mhz: u32) -> Result<(), String> {
            Ok(())
        }
        fn default_mhz(&self, _gpu: u32) -> Option<u32> {
            None
        }
    }

    fn monitored() -> (Gpu, Receiver<()>) {
        let (sender, receiver) = sync_channel(0);
        (Gpu { monitor: Arc::new(Rendezvous(Mutex::new(sender))), number: 0 }, receiver)
    }

    #[test]
    fn readings_know_whether_samples_were_taken() {
        let (gpu, read) = monitored();
        let sampler = Sampler::start(gpu, Vec::new(), Duration::from_millis(1)).unwrap();
        read.recv().unwrap();
        sampler.set_sampling(true);
        // The first of these may have begun before.
        (0..2).for_each(|_| read.recv().unwrap());
        sampler.set_sampling(false);
        (0..2).for_each(|_| read.recv().unwrap());
        // Nobody listens any more, so nobody waits.
        drop(read);
        let points = sampler.finish();
        assert!(!points[0].sampling && !points[points.len() - 1].sampling);
        assert!(points.iter().any(|point| point.sampling));
        assert!(points.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
        assert!(points.iter().all(|point| point.power_watts == Some(7.0) && point.clock_reasons.is_none()));
    }

    #[test]
    fn the_end_of_a_run_does_not_wait_for_the_next_reading() {
        let (gpu, read) = monitored();
        let sampler = Sampler::start(gpu, Vec::new(), Duration::from_secs(3600)).unwrap();
        read.recv().unwrap();
        assert_eq!(sampler.finish().len(), 1);
        assert!(read.recv().is_err(), "the thread is gone");
    }
}
