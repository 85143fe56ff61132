//! Limits of the system and variables under which perfrun could only be ended by a signal: said beforehand, with the remedy.

use std::error::Error as Reason;

use rustix::process::{Resource, getrlimit};

use crate::ui::error::Error;
use report::format::bytes;

/// The least that perfrun needs: 80 MiB, and half a MiB of stack, were seen with a small record.
const LEAST: [(Resource, &str, &str, u64); 3] = [
    (Resource::As, "address space", "-v", 128 << 20),
    (Resource::Data, "data segment", "-d", 96 << 20),
    (Resource::Stack, "stack", "-s", 2 << 20),
];

/// Threads overflow smaller ones.
const LEAST_STACK: u64 = 1 << 20;

/// Who may start so many has enough.
const FEW_THREADS: u64 = 1024;

/// Rust ends a program whose memory or stack runs out in the middle of whatever it does.
///
/// # Errors
///
/// A limit that is too low.
pub fn check() -> Result<(), Error> {
    for (resource, what, option, least) in LEAST {
        if let Some(limit) = getrlimit(resource).current.filter(|limit| *limit < least) {
            let message = format!("the {what} is limited to {} (`ulimit {option}`)", bytes(limit));
            let more = if resource == Resource::Stack { "" } else { ", and more for models" };
            return Err(Error::refused(
                message,
                format!("perfrun needs at least {}{more}: raise the limit", bytes(least)),
            ));
        }
    }
    let own_stack = std::env::var("RUST_MIN_STACK").ok().and_then(|text| text.parse::<u64>().ok());
    match own_stack.filter(|bytes| *bytes < LEAST_STACK) {
        Some(size) => {
            let message = format!("RUST_MIN_STACK={size} is too small: perfrun's threads need {}", bytes(LEAST_STACK));
            Err(Error::refused(message, "unset it"))
        }
        None => Ok(()),
    }
}

/// Starts the threads that share work, one for each processor, whatever a variable says that is meant for what is measured.
///
/// # Errors
///
/// When the system lets perfrun start no more threads.
pub(super) fn size_pool() -> Result<(), Error> {
    let threads = worker::variables::threads();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads);
    let mut built = pool(threads).build_global();
    if getrlimit(Resource::Nproc).current.is_some_and(|limit| limit < FEW_THREADS) {
        // Tried, since polars panics without as many of its own.
        built = built.and_then(|()| pool(threads + 2).build().map(drop));
    }
    built.map_err(|error| cannot_start_threads(&error))
}

/// By which a program can be kept from starting threads.
pub(super) fn cannot_start_threads(error: &dyn Reason) -> Error {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let is_set = std::env::var_os("RUST_MIN_STACK").is_some();
    let limit = match (why.contains("open files"), is_set) {
        (true, _) => "raise the limit of open files (`ulimit -n 1024`)",
        (false, true) => {
            "unset RUST_MIN_STACK, or raise the limits of processes (`ulimit -u`) and memory (`ulimit -v`)"
        }
        (false, false) => "raise the limits of processes (`ulimit -u`) and memory (`ulimit -v`)",
    };
    Error::refused(format!("cannot start a thread: {why}"), limit)
}
