//! Ctrl-C as something that a sleeping parent can wait for.
//!
//! Signals are written into a socket pair, so waiting for a worker and for a signal is one `poll`. The first Ctrl-C asks
//! to finish the run in flight, the second one to stop at once. SIGTERM counts as both: whoever ends jobs does not wait long.
//! Where perfrun is at work that looks at no signals, a thread ends it, at a second SIGTERM without delay.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::group;

/// Interrupts received so far. Several threads may wait for one: the signal wakes one at once, and all others look
/// every second.
#[derive(Debug)]
pub struct Interrupts {
    stream: UnixStream,
    /// Kept open where no signal is caught, so that the stream never reads as ended.
    _writer: Option<UnixStream>,
    count: AtomicU32,
}

impl Interrupts {
    /// Catches SIGINT, SIGTERM and SIGHUP (a terminal that closes) from now on; the process ends with `code` where it takes longer
    /// than [`ENDING`] after SIGTERM.
    ///
    /// # Errors
    ///
    /// When no socket, handler or thread can be had.
    pub fn catch(code: u8) -> io::Result<Self> {
        let (stream, writer) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        for signal in [SIGINT, SIGHUP, SIGTERM, SIGTERM] {
            pipe::register(signal, writer.try_clone()?)?;
        }
        let (ends, end) = UnixStream::pair()?;
        pipe::register(SIGTERM, end)?;
        // Of whoever became perfrun, by `exec`.
        let earlier = group::all_children();
        std::thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
            if wait_for_end(ends).is_ok() {
                group::kill_all(&earlier);
                std::process::exit(i32::from(code));
            }
        })?;
        Ok(Interrupts { stream, _writer: Some(writer), count: AtomicU32::new(0) })
    }

    /// Catches nothing; for tests and for commands that do not measure.
    ///
    /// # Errors
    ///
    /// When no socket can be had.
    pub fn never() -> io::Result<Self> {
        let (stream, writer) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        Ok(Interrupts { stream, _writer: Some(writer), count: AtomicU32::new(0) })
    }

    /// How many came so far.
    pub fn count(&self) -> u32 {
        let mut bytes = [0; 16];
        // Nothing to read is the normal case and no error.
        if let Ok(read) = (&self.stream).read(&mut bytes) {
            self.count.fetch_add(read as u32, Ordering::Relaxed);
        }
        self.count.load(Ordering::Relaxed)
    }

    /// Whether this process is being ended, where one of its own was killed: whoever ends jobs signals one process after the
    /// other, and this one need not be the first.
    pub(crate) fn are_ending(&self) -> bool {
        /// A failure that is none costs that much.
        const MOMENT: Duration = Duration::from_millis(300);
        let since = Instant::now();
        loop {
            let left = MOMENT.saturating_sub(since.elapsed());
            if self.count() >= AT_ONCE || left.is_zero() {
                return self.count() >= AT_ONCE;
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            // An interrupted wait is repeated.
            let _woken = poll(&mut [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)], Some(&timeout));
        }
    }

    /// To wait for, together with other files.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// So many interrupts end the run in flight.
const AT_ONCE: u32 = 2;

/// How long perfrun may take to end by itself after SIGTERM.
const ENDING: Duration = Duration::from_millis(1800);

/// Waits for a SIGTERM, and then until another one comes or its time is over.
fn wait_for_end(mut ends: UnixStream) -> io::Result<()> {
    ends.read_exact(&mut [0])?;
    ends.set_read_timeout(Some(ENDING))?;
    // Another signal or the end of the time: both are the end.
    drop(ends.read(&mut [0]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_signals_the_count_stays_zero() {
        let interrupts = Interrupts::never().expect("a socket pair");
        assert_eq!(interrupts.count(), 0);
        assert!(!interrupts.are_ending());
    }

    #[test]
    fn a_signal_that_comes_a_moment_after_a_child_was_killed_is_waited_for() {
        let (stream, mut writer) = UnixStream::pair().expect("a socket pair");
        stream.set_nonblocking(true).expect("a socket");
        let interrupts = Interrupts { stream, _writer: None, count: AtomicU32::new(0) };
        std::thread::scope(|scope| {
            let are_ending = scope.spawn(|| interrupts.are_ending());
            // As a SIGTERM writes them, whether that thread waits already or not.
            std::io::Write::write_all(&mut writer, b"xx").expect("a socket");
            assert!(are_ending.join().expect("no panic"));
        });
    }
}
