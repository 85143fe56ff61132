//! A file from a server that may be slow, silent or hostile.
//!
//! Input: an address (`http` or `https`, after redirects too). Output: a temporary file beside its place. Deliberately
//! absent: resuming, and what the file should be; a check sum says that.
//!
//! The transfer has a thread of its own, since a read may block: whoever waits looks at the clock, at how much has come
//! and at Ctrl-C ten times a second. The temporary file is the waiter's, and gone when nobody keeps it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use reading::plain_file;

/// What a server may take and give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For its name, for a connection, and for an answer, each.
    pub(super) answer: Duration,
    /// Without a byte.
    pub(super) idle: Duration,
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
        Limits {
            answer: seconds(30),
            idle: seconds(30),
            window: seconds(60),
            whole: seconds(6 * 3600),
            bytes: 16 << 30,
        }
    }
}

/// Why there is no file.
#[derive(Debug)]
pub(super) enum Problem {
    /// The server, in words.
    Server(String),
    /// The place to write to.
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

/// Fetches a file into a temporary one in this folder. `tell` hears what has come, and of how much, ten times a second, and
/// says whether to stop.
///
/// # Errors
///
/// [`Problem`].
pub(super) fn download(
    url: &str,
    folder: &Path,
    limits: Limits,
    tell: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<NamedTempFile, Problem> {
    const TURN: Duration = Duration::from_millis(100);
    let target = plain_file::temporary_in(folder).map_err(Problem::Disk)?;
    let transferred = Arc::new(Transferred::default());
    let ended = start(url.to_owned(), target.reopen().map_err(Problem::Disk)?, limits, Arc::clone(&transferred));
    let began = Instant::now();
    let mut window = (began, 0);
    loop {
        match ended.recv_timeout(TURN) {
            Ok(outcome) => return outcome.map(|()| target),
            Err(RecvTimeoutError::Disconnected) => return Err(Problem::Server("the transfer broke off".to_owned())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let done = transferred.done.load(Ordering::Relaxed);
        let total = Some(transferred.total.load(Ordering::Relaxed)).filter(|total| *total > 0);
        if tell(done, total) {
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

/// Transfers in a thread of its own, which nobody waits for: it may be in a read that does not end.
fn start(url: String, file: File, limits: Limits, transferred: Arc<Transferred>) -> Receiver<Result<(), Problem>> {
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        // Nobody listens any more where the user did not wait.
        let _unheard = sender.send(transfer(&url, file, limits, &transferred));
    });
    ended
}

fn transfer(url: &str, mut file: File, limits: Limits, transferred: &Transferred) -> Result<(), Problem> {
    let server = |problem: String| Problem::Server(problem);
    let config = ureq::Agent::config_builder()
        .timeout_resolve(Some(limits.answer))
        .timeout_connect(Some(limits.answer))
        .timeout_recv_response(Some(limits.answer))
        .timeout_per_read(Some(limits.idle))
        .timeout_global(Some(limits.whole));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut answer = agent.get(url).call().map_err(|error| server(error.to_string()))?;
    let declared = answer.body().content_length();
    let most = declared.unwrap_or(limits.bytes).min(limits.bytes);
    if let Some(declared) = declared.filter(|declared| *declared > limits.bytes) {
        return Err(server(format!("it has {declared} bytes, more than the {} that are fetched", limits.bytes)));
    }
    transferred.total.store(declared.unwrap_or(0), Ordering::Relaxed);
    let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
    let mut chunk = vec![0; 1 << 16];
    let mut done = 0_u64;
    loop {
        let read = match body.read(&mut chunk) {
            Ok(0) => return Ok(()),
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const SHORT: Limits = Limits {
        answer: Duration::from_millis(400),
        idle: Duration::from_millis(400),
        window: Duration::from_millis(900),
        whole: Duration::from_secs(20),
        bytes: 1 << 20,
    };

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
    fn fetch(url: &str, stop: bool) -> (Result<u64, String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let outcome = match download(url, folder.path(), SHORT, &mut |_, _| stop) {
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
        assert_eq!(fetch(&url, false), (Ok(5), 0));
    }

    #[test]
    fn silence_drips_floods_and_lies_end() {
        let silent = server(|stream| drop(std::io::copy(&mut &stream, &mut std::io::sink())));
        assert!(fetch(&silent, false).0.unwrap_err().contains("timeout"));
        let stuck = server(|stream| {
            answer(&stream, "200 OK\r\nContent-Length: 5");
            drop(std::io::copy(&mut &stream, &mut std::io::sink()));
        });
        assert!(fetch(&stuck, false).0.unwrap_err().contains("timeout"));
        let dripping = server(|mut stream| {
            answer(&stream, "200 OK\r\nContent-Length: 500000");
            while stream.write_all(b"x").is_ok() {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        assert!(fetch(&dripping, false).0.unwrap_err().contains("bytes came in"));
        let flooding = server(|mut stream| {
            answer(&stream, "200 OK");
            while stream.write_all(&[0; 1 << 16]).is_ok() {}
        });
        assert_eq!(fetch(&flooding, false), (Err("it gives more than 1048576 bytes".to_owned()), 0));
        let huge = server(|stream| answer(&stream, "200 OK\r\nContent-Length: 99999999999"));
        assert!(fetch(&huge, false).0.unwrap_err().contains("99999999999 bytes, more than"));
    }

    #[test]
    fn who_waits_may_stop_and_other_schemes_are_refused() {
        let silent = server(|stream| drop(std::io::copy(&mut &stream, &mut std::io::sink())));
        assert_eq!(fetch(&silent, true), (Err("interrupted".to_owned()), 0));
        let elsewhere =
            server(|stream| answer(&stream, "302 Found\r\nContent-Length: 0\r\nLocation: file:///etc/passwd"));
        assert!(fetch(&elsewhere, false).0.is_err());
    }
}
