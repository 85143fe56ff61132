//! What a process writes to a pipe, bounded: its beginning and its end.
//!
//! The parent takes it while it waits, so a library that prints without end fills neither the disk nor the memory.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes kept of the beginning, and as many of the end: what went wrong stands in one of the two.
const HALF_BYTES: usize = 256 << 10;

/// What was read from one pipe.
#[derive(Debug)]
pub(super) struct Log<Pipe> {
    pipe: Pipe,
    is_open: bool,
    /// Bytes of the beginning.
    most: usize,
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl<Pipe: Read + AsFd> Log<Pipe> {
    /// Takes over the reading end.
    pub(super) fn of(pipe: Pipe) -> io::Result<Self> {
        Log::beginning_with(pipe, HALF_BYTES)
    }

    /// The same with as many bytes of the beginning.
    pub(super) fn beginning_with(pipe: Pipe, most: usize) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Log { pipe, is_open: true, most, beginning: Vec::new(), end: VecDeque::new(), left_out: 0 })
    }

    /// To wait for, while the worker has its side open.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.is_open.then(|| self.pipe.as_fd())
    }

    /// Takes what is there; never waits.
    pub(super) fn take(&mut self) {
        let mut chunk = [0; 1 << 14];
        // A bound, so that a worker that writes without end cannot keep its parent from the deadline.
        for _ in 0..64 {
            match self.pipe.read(&mut chunk) {
                Ok(0) => {
                    self.is_open = false;
                    return;
                }
                Ok(read) => self.keep(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing more for now, or nothing that could be read.
                Err(_) => return,
            }
        }
    }

    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.beginning.len()).min(bytes.len());
        self.beginning.extend_from_slice(&bytes[..room]);
        self.end.extend(&bytes[room..]);
        let surplus = self.end.len().saturating_sub(HALF_BYTES);
        self.end.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// What was kept of the beginning.
    pub(super) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// The pipe, and what was kept of its beginning.
    pub(super) fn into_parts(self) -> (Pipe, Vec<u8>) {
        (self.pipe, self.beginning)
    }

    /// Bytes that were not kept.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Everything that was kept, with a line where something is left out.
    pub(super) fn take_text(&mut self) -> String {
        self.take();
        let mut bytes = std::mem::take(&mut self.beginning);
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n... {} bytes left out ...\n", self.left_out).as_bytes());
        }
        bytes.extend(std::mem::take(&mut self.end));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
