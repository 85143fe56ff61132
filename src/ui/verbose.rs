//! What `-v` and `-vv` say: lines of standard error with the time since the start.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::Ui;

/// Shows events from now on: with 1 what was found, started, made and written; with 2 also where perfrun looks, what it
/// asks git and workers, and what workers write. With 0 there is no subscriber, and events cost nothing.
pub(super) fn install(ui: Ui, verbosity: u8) {
    let level = match verbosity {
        0 => return,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_level(false)
        .with_target(false)
        .with_timer(SinceStart(Instant::now()))
        .with_writer(move || Lines(ui))
        .finish();
    // Whoever listens already, in a test, goes on.
    let _first = tracing::subscriber::set_global_default(subscriber);
}

struct SinceStart(Instant);

impl FormatTime for SinceStart {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:8.3}s ", self.0.elapsed().as_secs_f64())
    }
}

/// Takes an event at a time.
struct Lines(Ui);

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.note(String::from_utf8_lossy(event).trim_end());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
