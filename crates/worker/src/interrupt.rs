//! Ctrl-C as something that a sleeping parent can wait for.
//!
//! Signals are written into a socket pair, so waiting for a worker and for a signal is one `poll`. The first one asks
//! to finish the run in flight, the second one to stop at once.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

/// Interrupts received so far. Several threads may wait for the same: one is woken at once, the others look every second.
#[derive(Debug)]
pub struct Interrupts {
    stream: UnixStream,
    /// Kept open where no signal is caught, so that the stream never reads as ended.
    _writer: Option<UnixStream>,
    count: AtomicU32,
}

impl Interrupts {
    /// Catches SIGINT, SIGTERM and SIGHUP (a terminal that closes) from now on.
    ///
    /// # Errors
    ///
    /// When no socket or handler can be had.
    pub fn catch() -> io::Result<Self> {
        let (stream, writer) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
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

    /// To wait for, together with others.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_signals_the_count_stays_zero() {
        let interrupts = Interrupts::never().expect("a socket pair");
        assert_eq!(interrupts.count(), 0);
    }
}
