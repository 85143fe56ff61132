//! A file from a server that may be slow, silent or hostile.
//!
//! Input: an address (`http` or `https`, after redirects too). Output: a temporary file next to its final path.
//! Deliberately absent: an HTTP client of our own, so that the proxies and certificates hold that Python has for
//! fetching ONNX Runtime, resuming, and what the file should be; a check sum says that.
//!
//! Python speaks to the server and writes what comes into a pipe. The pipe has a thread here, since a read may block:
//! whoever waits looks at the clock, at how much has come and at Ctrl-C ten times a second. The temporary file is the
//! waiter's, and gone when nobody keeps it; so is the other process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::NamedTempFile;

use reading::plain_file;

/// Commands that are a Python, the likeliest first.
const PYTHONS: [&[&str]; 3] =
    [&["python3"], &["python"], &["uv", "run", "--no-project", "--no-config", "--quiet", "python"]];

/// The program that it runs.
const FETCH: &str = include_str!("fetch.py");

/// What a server may take and give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For a connection, for an answer, and between two bytes, each.
    pub(super) silence: Duration,
    /// In which at least [`LEAST_BYTES`] must come.
    pub(super) window: Duration,
    /// For the whole file.
    pub(super) whole: Duration,
    /// Bytes of a file whose size the server does not say, or lies about.
    pub(super) bytes: u64,
}

/// Bytes that come within a window at least: a server that drips never ends.
const LEAST_BYTES: u64 = 64 << 10;

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Limits { silence: seconds(30), window: seconds(60), whole: seconds(6 * 3600), bytes: 16 << 30 }
    }
}

/// Why there is no file.
#[derive(Debug)]
pub(super) enum Problem {
    /// The server, in words.
    Server(String),
    /// The folder to write to.
    Disk(io::Error),
    /// The user wants to stop.
    Interrupted,
}

/// How far a transfer is.
#[derive(Debug, Default)]
struct Transferred {
    done: AtomicU64,
    /// 0: unknown.
    total: AtomicU64,
}

/// Python; dropping it ends the process group.
#[derive(Debug)]
struct Fetching(Child);

impl Drop for Fetching {
    fn drop(&mut self) {
        // The number of one that has ended may be another's by now.
        if matches!(self.0.try_wait(), Ok(None)) {
            // Where uv starts Python, both.
            let _gone = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _status = self.0.wait();
        }
    }
}

impl Fetching {
    /// Starts the first Python that is there.
    fn start(url: &str, limits: Limits) -> Result<Self, Problem> {
        for words in PYTHONS {
            let mut python = Command::new(words[0]);
            // Neither the current folder nor the user's settings of Python say what is imported.
            python.args(&words[1..]).args(["-I", "-c", FETCH, url]).arg(limits.silence.as_secs_f64().to_string());
            python.arg(concat!("perfrun/", env!("CARGO_PKG_VERSION")));
            python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // Ctrl-C is for the one who waits, and then ends this one.
            match python.process_group(0).spawn() {
                Ok(child) => return Ok(Fetching(child)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Problem::Server(format!("`{}` cannot be started: {error}", words[0]))),
            }
        }
        Err(Problem::Server("there is no `python3` or `uv` to fetch it with".to_owned()))
    }

    /// Reads in a thread of its own, which ends with the process at the latest.
    fn read(&mut self, file: File, limits: Limits, transferred: Arc<Transferred>) -> Receiver<Result<String, Problem>> {
        let (sender, ended) = channel();
        if let (Some(content), Some(complaint)) = (self.0.stdout.take(), self.0.stderr.take()) {
            std::thread::spawn(move || {
                // The receiver is gone after an interrupt.
                let _unheard = sender.send(transfer(content, complaint, file, limits, &transferred));
            });
        }
        ended
    }

    /// Whether all has come, now that nothing more comes.
    fn end(mut self, complaint: &str, transferred: &Transferred) -> Result<(), Problem> {
        let status = self.0.wait().map_err(|error| Problem::Server(error.to_string()))?;
        let (done, total) = (transferred.done.load(Ordering::Relaxed), transferred.total.load(Ordering::Relaxed));
        match total {
            _ if !status.success() => Err(Problem::Server(complaint.to_owned())),
            total if total > 0 && total != done => {
                Err(Problem::Server(format!("it ends after {done} of {total} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Fetches a file into a temporary one in this folder. `progress` gets the bytes so far and in total ten times a
/// second, and returns whether to stop.
///
/// # Errors
///
/// [`Problem`].
pub(super) fn download(
    url: &str,
    folder: &Path,
    limits: Limits,
    progress: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<NamedTempFile, Problem> {
    const TURN: Duration = Duration::from_millis(100);
    let target = plain_file::temporary_in(folder).map_err(Problem::Disk)?;
    let transferred = Arc::new(Transferred::default());
    let mut fetching = Fetching::start(url, limits)?;
    let ended = fetching.read(target.reopen().map_err(Problem::Disk)?, limits, Arc::clone(&transferred));
    let began = Instant::now();
    let mut window = (began, 0);
    loop {
        match ended.recv_timeout(TURN) {
            Ok(outcome) => return fetching.end(&outcome?, &transferred).map(|()| target),
            Err(RecvTimeoutError::Disconnected) => return Err(Problem::Server("the transfer broke off".to_owned())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let done = transferred.done.load(Ordering::Relaxed);
        let total = Some(transferred.total.load(Ordering::Relaxed)).filter(|total| *total > 0);
        if progress(done, total) {
            return Err(Problem::Interrupted);
        }
        if began.elapsed() > limits.whole {
            return Err(Problem::Server(format!("it takes more than {} s", limits.whole.as_secs())));
        }
        if window.0.elapsed() > limits.window {
            if done - window.1 < LEAST_BYTES {
                let seconds = limits.window.as_secs_f64();
                return Err(Problem::Server(format!("only {} bytes came in {seconds} s", done - window.1)));
            }
            window = (Instant::now(), done);
        }
    }
}

/// What Python writes, into the file. Its complaint, for the case that it failed.
fn transfer(
    mut content: impl Read,
    complaint: impl Read,
    mut file: File,
    limits: Limits,
    transferred: &Transferred,
) -> Result<String, Problem> {
    let server = |problem: String| Problem::Server(problem);
    let mut length = [0; 8];
    if content.read_exact(&mut length).is_err() {
        return Err(server(last_line(complaint)));
    }
    let declared = u64::try_from(i64::from_le_bytes(length)).ok();
    let most = declared.unwrap_or(limits.bytes).min(limits.bytes);
    if let Some(declared) = declared.filter(|declared| *declared > limits.bytes) {
        return Err(server(format!("it has {declared} bytes, more than the {} that are fetched", limits.bytes)));
    }
    transferred.total.store(declared.unwrap_or(0), Ordering::Relaxed);
    let mut chunk = vec![0; 1 << 16];
    let mut done = 0_u64;
    loop {
        let read = match content.read(&mut chunk) {
            Ok(0) => return Ok(last_line(complaint)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(server(error.to_string())),
        };
        done += read as u64;
        if done > most {
            return Err(server(format!("it gives more than {most} bytes")));
        }
        file.write_all(&chunk[..read]).map_err(Problem::Disk)?;
        transferred.done.store(done, Ordering::Relaxed);
    }
}

/// The last line that a program wrote, not endless.
fn last_line(complaint: impl Read) -> String {
    const MOST_BYTES: u64 = 1 << 16;
    const MOST_CHARACTERS: usize = 300;
    let mut bytes = Vec::new();
    let _as_far_as_it_goes = complaint.take(MOST_BYTES).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("the transfer broke off").chars().take(MOST_CHARACTERS).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The start of Python counts into a window, and not into a silence.
    const SHORT: Limits = Limits {
        silence: Duration::from_millis(400),
        window: Duration::from_secs(60),
        whole: Duration::from_secs(60),
        bytes: 1 << 20,
    };

    const DRIPS: Limits = Limits { silence: Duration::from_secs(60), window: Duration::from_millis(900), ..SHORT };

    /// The address of a server that does this to everybody who connects.
    fn server(serve: impl Fn(TcpStream) + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/model.onnx", listener.local_addr().unwrap());
        std::thread::spawn(move || listener.incoming().flatten().for_each(&serve));
        address
    }

    fn answer(mut stream: &TcpStream, head: &str) {
        // The question must be read, or closing would reset the connection.
        let _question = stream.read(&mut [0; 4096]);
        let _gone = write!(stream, "HTTP/1.1 {head}\r\n\r\n");
    }

    /// What becomes of a transfer, and what is left in the folder.
    fn fetch(url: &str, limits: Limits, stop: bool) -> (Result<u64, String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let outcome = match download(url, folder.path(), limits, &mut |_, _| stop) {
            Ok(file) => Ok(file.as_file().metadata().unwrap().len()),
            Err(Problem::Server(reason)) => Err(reason),
            Err(Problem::Interrupted) => Err("interrupted".to_owned()),
            Err(Problem::Disk(error)) => panic!("{error}"),
        };
        (outcome, std::fs::read_dir(folder.path()).unwrap().count())
    }

    #[test]
    fn a_file_is_fetched() {
        let url = server(|mut stream| {
            answer(&stream, "200 OK\r\nContent-Length: 5");
            let _gone = stream.write_all(b"model");
        });
        assert_eq!(fetch(&url, SHORT, false), (Ok(5), 0));
    }

    #[test]
    fn silence_drips_floods_and_lies_end() {
        let silent = server(|stream| drop(std::io::copy(&mut &stream, &mut std::io::sink())));
        assert!(fetch(&silent, SHORT, false).0.unwrap_err().contains("timed out"));
        let stuck = server(|stream| {
            answer(&stream, "200 OK\r\nContent-Length: 5");
            drop(std::io::copy(&mut &stream, &mut std::io::sink()));
        });
        assert!(fetch(&stuck, SHORT, false).0.unwrap_err().contains("timed out"));
        let dripping = server(|mut stream| {
            answer(&stream, "200 OK\r\nContent-Length: 500000");
            while stream.write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        assert!(fetch(&dripping, DRIPS, false).0.unwrap_err().contains("bytes came in"));
        let flooding = server(|mut stream| {
            answer(&stream, "200 OK");
            while stream.write_all(&[0; 1 << 16]).is_ok() {}
        });
        assert_eq!(fetch(&flooding, SHORT, false), (Err("it gives more than 1048576 bytes".to_owned()), 0));
        let huge = server(|stream| answer(&stream, "200 OK\r\nContent-Length: 99999999999"));
        assert!(fetch(&huge, SHORT, false).0.unwrap_err().contains("99999999999 bytes, more than"));
    }

    #[test]
    fn who_waits_may_stop_and_other_schemes_are_refused() {
        let silent = server(|stream| drop(std::io::copy(&mut &stream, &mut std::io::sink())));
        assert_eq!(fetch(&silent, SHORT, true), (Err("interrupted".to_owned()), 0));
        let elsewhere =
            server(|stream| answer(&stream, "302 Found\r\nContent-Length: 0\r\nLocation: file:///etc/passwd"));
        let (refused, left) = fetch(&elsewhere, SHORT, false);
        assert!(refused.unwrap_err().contains("not allowed") && left == 0);
        assert!(fetch("ftp://127.0.0.1/model.onnx", SHORT, false).0.unwrap_err().contains("unknown url type"));
    }

    #[test]
    fn redirects_are_followed_and_what_ends_early_is_no_file() {
        let there = server(|mut stream| {
            answer(&stream, "200 OK\r\nTransfer-Encoding: chunked");
            let _gone = stream.write_all(b"5\r\nmodel\r\n0\r\n\r\n");
        });
        let elsewhere = server(move |stream| {
            answer(&stream, &format!("302 Found\r\nContent-Length: 0\r\nLocation: {there}"));
        });
        assert_eq!(fetch(&elsewhere, SHORT, false), (Ok(5), 0));
        let short = server(|mut stream| {
            answer(&stream, "200 OK\r\nContent-Length: 9");
            let _gone = stream.write_all(b"model");
        });
        assert_eq!(fetch(&short, SHORT, false), (Err("it ends after 5 of 9 bytes".to_owned()), 0));
        let torn = server(|mut stream| {
            answer(&stream, "200 OK\r\nTransfer-Encoding: chunked");
            let _gone = stream.write_all(b"ff\r\nmodel");
        });
        assert!(fetch(&torn, SHORT, false).0.unwrap_err().contains("IncompleteRead"));
    }

    #[test]
    fn a_name_in_the_address_goes_to_its_server_alone() {
        let (sender, asked) = channel();
        let hears = |sender: std::sync::mpsc::Sender<String>, head: String| {
            move |mut stream: TcpStream| {
                let mut question = [0; 4096];
                let read = stream.read(&mut question).unwrap_or(0);
                let _gone = sender.send(String::from_utf8_lossy(&question[..read]).into_owned());
                let _gone = write!(stream, "HTTP/1.1 {head}\r\n\r\n");
            }
        };
        let second = server(hears(sender.clone(), "200 OK\r\nContent-Length: 0".to_owned()));
        let first = server(hears(sender, format!("302 Found\r\nContent-Length: 0\r\nLocation: {second}")));
        let named = first.replace("http://", "http://martin:sec%3Aret@");
        assert_eq!(fetch(&named, SHORT, false), (Ok(0), 0));
        // `martin:sec:ret`, in base64.
        assert!(asked.recv().unwrap().contains("Authorization: Basic bWFydGluOnNlYzpyZXQ=\r\n"));
        let second = asked.recv().unwrap();
        assert!(!second.contains("Authorization") && second.contains("User-Agent: perfrun/"), "{second}");
    }
}
