//! Standard output of a command: where it goes, how much it is, and its end.
//!
//! A pipe is read by a thread of its own, a pipe and a thread for each execution: what children of a command write that outlive
//! it is taken from them and counts for no execution. Nothing is kept but the end, where numbers may stand.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read, Seek, SeekFrom};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ioctl_fionread;

use experiment::Stdout;

/// Bytes that are looked at, at the end: numbers come last.
const LOOKED_AT: usize = 1 << 20;

/// What is read at once: as much as a pipe holds.
const READ_AT_ONCE: usize = 64 << 10;

/// What one execution printed to the output that perfrun reads.
#[derive(Debug, Default)]
pub(super) struct ExecutionOutput {
    pub(super) bytes: u64,
    /// What reading took.
    pub(super) nanos: u64,
    /// Its end, if that is looked at.
    pub(super) end: Vec<u8>,
}

/// Standard output of one execution after the other.
#[derive(Debug)]
pub(super) struct Output {
    to: Stdout,
    /// Numbers are looked for.
    has_numbers: bool,
    current: Option<Current>,
}

/// That of the execution that was opened last.
#[derive(Debug)]
enum Current {
    Pipe(PipeReader, Arc<Mutex<Reading>>),
    File(File),
}

impl Output {
    /// Ready to be opened. In older records numbers were read of what went nowhere.
    pub(super) fn new(to: Stdout, has_numbers: bool) -> Self {
        let to = if has_numbers && to == Stdout::Null { Stdout::Pipe } else { to };
        Output { to, has_numbers, current: None }
    }

    /// For the next execution; to be followed by [`Output::take`].
    ///
    /// # Errors
    ///
    /// There is no room for a pipe or a file.
    pub(super) fn open(&mut self) -> io::Result<Stdio> {
        match &self.to {
            // Opened here, outside the clock, like the other outputs.
            Stdout::Null => Ok(File::options().write(true).open("/dev/null")?.into()),
            Stdout::Inherit => Ok(Stdio::inherit()),
            Stdout::File(path) => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
                let stdout = file.try_clone()?;
                self.current = Some(Current::File(file));
                Ok(stdout.into())
            }
            Stdout::Pipe => {
                let (reader, writer) = io::pipe()?;
                // A description of its own: writers wait as they do with any pipe.
                fcntl_setfl(&reader, fcntl_getfl(&reader)? | OFlags::NONBLOCK)?;
                let reading = Arc::new(Mutex::new(Reading::new(self.has_numbers)));
                let (for_thread, shared) = (reader.try_clone()?, Arc::clone(&reading));
                thread::Builder::new().stack_size(READ_AT_ONCE).spawn(move || read_to_end(&for_thread, &shared))?;
                self.current = Some(Current::Pipe(reader, reading));
                Ok(writer.into())
            }
        }
    }

    /// What the execution printed, which has ended: what it left in the pipe is taken out of it. Nothing where nobody sees it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn take(&mut self) -> io::Result<Option<ExecutionOutput>> {
        match self.current.take() {
            None => Ok(None),
            Some(Current::File(mut file)) => {
                let bytes = file.metadata()?.len();
                let mut end = Vec::new();
                if self.has_numbers {
                    file.seek(SeekFrom::Start(bytes.saturating_sub(LOOKED_AT as u64)))?;
                    file.take(LOOKED_AT as u64).read_to_end(&mut end)?;
                }
                Ok(Some(ExecutionOutput { bytes, nanos: 0, end }))
            }
            Some(Current::Pipe(pipe, reading)) => {
                let mut reading = lock(&reading);
                let mut left = usize::try_from(ioctl_fionread(&pipe)?).unwrap_or(0);
                while left > 0 {
                    left -= reading.read(&pipe, left)?.filter(|bytes| *bytes > 0).unwrap_or(left);
                }
                reading.keeps_end = false;
                Ok(Some(std::mem::take(&mut reading.output)))
            }
        }
    }
}

/// What was read so far.
#[derive(Debug)]
struct Reading {
    output: ExecutionOutput,
    keeps_end: bool,
    buffer: Vec<u8>,
}

impl Reading {
    fn new(keeps_end: bool) -> Self {
        Reading { output: ExecutionOutput::default(), keeps_end, buffer: vec![0; READ_AT_ONCE] }
    }

    /// Reads what is there, at most so much, and says how much that was; `None`: nothing yet.
    fn read(&mut self, mut pipe: &PipeReader, most: usize) -> io::Result<Option<usize>> {
        let began = Instant::now();
        let most = most.min(self.buffer.len());
        let found = match pipe.read(&mut self.buffer[..most]) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(error) => return Err(error),
        };
        if self.keeps_end {
            let end = &mut self.output.end;
            end.extend_from_slice(&self.buffer[..found]);
            // At twice the room, so that not every read moves all of it.
            if end.len() > 2 * LOOKED_AT {
                end.drain(..end.len() - LOOKED_AT);
            }
        }
        self.output.bytes += found as u64;
        self.output.nanos += u64::try_from(began.elapsed().as_nanos()).unwrap_or(0);
        Ok(Some(found))
    }
}

/// Reads until nobody has the pipe any more.
fn read_to_end(pipe: &PipeReader, reading: &Mutex<Reading>) {
    loop {
        // A wait that is interrupted is taken up again by the next one.
        let _woken = poll(&mut [PollFd::new(pipe, PollFlags::IN)], None);
        match lock(reading).read(pipe, READ_AT_ONCE) {
            Ok(Some(0)) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn lock(reading: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What a shell prints, with its end where numbers are looked for.
    fn printed_by(to: Stdout, has_numbers: bool, text: &str) -> Option<ExecutionOutput> {
        let mut output = Output::new(to, has_numbers);
        let mut shell = Command::new("sh");
        shell.args(["-c", text]).stdin(Stdio::null()).stdout(output.open().expect("a pipe"));
        shell.status().expect("a shell");
        output.take().expect("what it printed")
    }

    #[test]
    fn all_that_is_printed_counts_and_its_end_is_kept_where_it_is_looked_at() {
        let bytes =
            |text: &str| printed_by(Stdout::Pipe, false, text).map(|printed| (printed.bytes, printed.end.len()));
        assert_eq!(bytes("true"), Some((0, 0)));
        assert_eq!(bytes("printf 'a\\377\\0b'"), Some((4, 0)), "no text");
        assert_eq!(bytes("head -c 100000000 /dev/zero"), Some((100_000_000, 0)));
        assert_eq!(bytes("exec 1>&-; echo lost"), Some((0, 0)), "it closed it");
        let end = printed_by(Stdout::Pipe, true, "head -c 9000000 /dev/zero; echo 5")
            .map(|printed| printed.end)
            .expect("an end");
        assert!(end.ends_with(b"5\n") && end.len() >= LOOKED_AT && end.len() <= 2 * LOOKED_AT, "{}", end.len());
        assert!(printed_by(Stdout::Null, false, "echo").is_none());
        assert_eq!(printed_by(Stdout::Null, true, "echo 5").map(|printed| printed.end), Some(b"5\n".to_vec()));
    }

    #[test]
    fn children_that_keep_the_pipe_keep_nobody_waiting_and_count_for_nothing() {
        let mut output = Output::new(Stdout::Pipe, false);
        let mut command = Command::new("sh");
        command.args(["-c", "yes & echo $! >&2; echo done"]).stderr(Stdio::piped());
        command.stdout(output.open().expect("a pipe"));
        let mut ended = command.spawn().expect("a shell");
        let mut child = String::new();
        let mut stderr = ended.stderr.take().expect("a pipe");
        let mut byte = [0];
        while stderr.read(&mut byte).is_ok_and(|count| count == 1) && byte != *b"\n" {
            child.push(char::from(byte[0]));
        }
        ended.wait().expect("it ends");
        assert!(output.take().expect("what it printed").is_some_and(|printed| printed.bytes >= 5));
        command.stdout(output.open().expect("a pipe")).args(["-c", "true"]);
        let child = child.parse().ok().and_then(rustix::process::Pid::from_raw).expect("a number");
        rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("it still writes");
    }

    #[test]
    fn a_file_has_what_the_last_execution_printed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b.txt");
        let printed = |text: &str| printed_by(Stdout::File(path.clone()), true, text).expect("a file");
        assert_eq!(printed("echo long").bytes, 5);
        let short = printed("echo 5");
        assert_eq!((short.bytes, short.end), (2, b"5\n".to_vec()));
        assert_eq!(std::fs::read(&path).expect("it stays"), b"5\n");
    }
}
