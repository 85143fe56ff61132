//! The only place that prints. Data goes to standard output, progress and log to standard error.

pub mod calibration;
pub mod cli;
pub mod conclusion;
pub(crate) mod diff;
pub mod doctor;
pub mod error;
pub mod explain;
pub(crate) mod history;
pub mod live;
pub mod plan;
pub mod proposal;
mod quiet;
pub mod stat;
pub mod submit;
pub mod table;
pub mod transfer;
mod verbose;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unicode_width::UnicodeWidthStr;

use crate::ui::cli::{Color, Said, ScreenArgs};
use crate::ui::error::ExitCode;
use base::printable::{PrintableJson, printable};

/// Where output goes.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    terminal: bool,
    width: usize,
    /// Only results, warnings and errors.
    quiet: bool,
    /// Whether progress is shown, in a bar or in lines.
    progress: bool,
}

/// Folders and how they are named, of this process: what ends a command is printed after the command has ended.
fn names_of_folders() -> MutexGuard<'static, Vec<(String, String)>> {
    static NAMES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Width of text that is not shown on a terminal.
const PLAIN_WIDTH: usize = 120;

impl Ui {
    /// Looks at the descriptors once.
    pub fn detect() -> Self {
        let terminal = io::stderr().is_terminal();
        let columns = console_width().filter(|_| terminal || io::stdout().is_terminal());
        Ui { terminal, width: columns.unwrap_or(PLAIN_WIDTH).max(40), quiet: false, progress: true }
    }

    /// The same, which shows what the options ask for. With `-v` progress is in lines, between which the verbose lines
    /// stand.
    pub fn showing(self, options: &ScreenArgs) -> Self {
        verbose::install(self, options.verbose);
        let progress = !options.quiet && !options.no_progress;
        Ui { terminal: self.terminal && options.verbose == 0 && progress, quiet: options.quiet, progress, ..self }
    }

    /// The same, with colour from now on where it is wanted.
    pub fn coloured(self, color: Color) -> Self {
        match color {
            Color::Auto => {}
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
        }
        self
    }

    /// Whether lines say how far a measurement is.
    pub(crate) fn shows_progress(&self) -> bool {
        self.progress
    }

    /// Whether progress may be redrawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Columns that a line may take.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes data to standard output. A closed pipe is the reader's choice and no error.
    ///
    /// # Errors
    ///
    /// What the system says, a full disk for example.
    pub fn data(&self, text: &str) -> io::Result<()> {
        write(io::stdout().lock(), &printable(text))
    }

    /// As [`Ui::data`], of a text that holds styles of ours and nothing else that is not [`printable`].
    ///
    /// # Errors
    ///
    /// As [`Ui::data`].
    pub fn styled_data(&self, text: &str) -> io::Result<()> {
        write(AutoStream::auto(io::stdout().lock()), text)
    }

    /// Writes a value to standard output as indented JSON, while it is made.
    ///
    /// # Errors
    ///
    /// As [`Ui::data`], and a value that JSON cannot hold.
    pub fn json(&self, value: &impl serde::Serialize) -> serde_json::Result<()> {
        let mut out = PrintableJson(io::BufWriter::with_capacity(1 << 16, io::stdout().lock()));
        let written = serde_json::to_writer_pretty(&mut out, value)
            .and_then(|()| out.write_all(b"\n").and_then(|()| out.flush()).map_err(serde_json::Error::io));
        match written {
            Err(error) if error.io_error_kind() == Some(io::ErrorKind::BrokenPipe) => Ok(()),
            other => other,
        }
    }

    /// Writes a line about the work to standard error, and ignores a failure to write it. `-q` keeps warnings and what was
    /// left out alone.
    pub fn note(&self, line: &str) {
        const KEPT: [&str; 3] = ["warning", "left out", "missing"];
        if !self.quiet || KEPT.iter().any(|word| line.starts_with(word)) {
            self.ask(line);
        }
    }

    /// As [`Ui::note`], of a question, which is always shown.
    pub(crate) fn ask(&self, line: &str) {
        self.styled_note(&printable(line));
    }

    /// As [`Ui::note`], of a text that holds styles of ours and nothing else that is not [`printable`].
    fn styled_note(&self, line: &str) {
        let line = Ui::with_names(&format!("{line}\n"));
        let _unheard = write(AutoStream::auto(io::stderr().lock()), &line);
    }

    /// A text with the names of temporary folders ([`Ui::names_below`]) in place of their paths.
    pub(crate) fn with_names(text: &str) -> String {
        names_of_folders().iter().fold(text.to_owned(), |text, (folder, name)| text.replace(folder, name))
    }

    /// From now on names what lies below a temporary folder by `name`, as in `main:experiments/x.yaml`.
    pub(crate) fn names_below(&self, folder: &Path, name: &str) {
        names_of_folders().push((format!("{}/", folder.display()), name.to_owned()));
    }

    /// Shows what ended a command: the problem, its place, the hint.
    pub fn error(&self, error: miette::Report) {
        self.styled_note(&self.render(error.as_ref()));
    }

    /// Shows what is worth knowing about a specification and stops nothing.
    pub fn warnings(&self, warnings: &[spec::Problem]) {
        for warning in warnings {
            self.styled_note(&self.render(warning));
        }
    }

    fn render(&self, diagnostic: &dyn miette::Diagnostic) -> String {
        use miette::GraphicalTheme;
        let plain = self.render_with(GraphicalTheme::unicode_nocolor(), diagnostic);
        // Our own styles could not be distinguished from escapes in foreign text.
        match printable(&plain) {
            Cow::Borrowed(_) => self.render_with(GraphicalTheme::unicode(), diagnostic),
            safe => safe.into_owned(),
        }
    }

    fn render_with(&self, theme: miette::GraphicalTheme, diagnostic: &dyn miette::Diagnostic) -> String {
        use miette::GraphicalReportHandler;
        // A path or a command that goes on in the next line cannot be copied.
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(self.width)
            .with_links(false)
            .with_break_words(false)
            .with_word_separator(textwrap::WordSeparator::AsciiSpace)
            .with_word_splitter(textwrap::WordSplitter::NoHyphenation);
        let mut text = String::new();
        match handler.render_report(&mut text, diagnostic) {
            // Problems below a heading each have a line that says no more than that.
            Ok(()) => {
                let is_severity = |line: &str| ["Error:", "Warning:", "Advice:"].contains(&line.trim_end());
                let lines: Vec<&str> = text.trim_end().lines().filter(|line| !is_severity(line)).collect();
                lines.join("\n")
            }
            // The plain message is better than none.
            Err(_) => diagnostic.to_string(),
        }
    }

    /// Shows help and version on standard output, mistakes on standard error.
    pub fn said(&self, said: &Said) -> ExitCode {
        if said.is_mistake {
            self.styled_note(said.text.trim_end());
            return ExitCode::UserError;
        }
        match self.styled_data(&said.text) {
            Ok(()) => ExitCode::Done,
            Err(_) => ExitCode::UserError,
        }
    }

    /// Writes one line with a label in the left margin, as in `machine    AMD EPYC`.
    pub fn labelled(&self, label: &str, text: &str) {
        self.note(self.labelled_text(label, text).trim_end_matches('\n'));
    }

    /// Several texts, each on lines of its own, with the label before the first.
    pub(crate) fn labelled_lines(&self, label: &str, texts: impl IntoIterator<Item: ToString>) -> String {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        labels.zip(texts).map(|(label, text)| self.labelled_text(label, &text.to_string())).collect()
    }

    /// The text of [`Ui::labelled`], broken to the width, each line ended.
    pub(crate) fn labelled_text(&self, label: &str, text: &str) -> String {
        self.hanging(label, LABEL_WIDTH, text)
    }

    /// A text behind what stands at the left, its further lines under the first, each line ended.
    pub fn hanging(&self, before: &str, indent: usize, text: &str) -> String {
        let room = self.width.saturating_sub(indent).max(20);
        let mut lines = String::new();
        // A broken path or number could not be copied.
        let options = textwrap::Options::new(room)
            .break_words(false)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for (index, line) in textwrap::wrap(text, options).iter().enumerate() {
            let before = if index == 0 { before } else { "" };
            let gap = " ".repeat(indent.saturating_sub(before.width()));
            lines.push_str(format!("{before}{gap}{line}").trim_end());
            lines.push('\n');
        }
        lines
    }
}

/// A closed pipe is the reader's choice and no error.
fn write(mut out: impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Columns of the label in front of a line.
pub(crate) const LABEL_WIDTH: usize = 11;

/// A bar of that form on a target.
pub(crate) fn bar(length: Option<u64>, target: ProgressDrawTarget, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn console_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// A time as people say it: `0.4 s`, `21 s`, `8m 41s`, `1h 05m`.
pub fn duration(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_read_as_people_say_them() {
        let texts = [400, 21_000, 521_000, 3_900_000].map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(texts, ["0.4 s", "21 s", "8m 41s", "1h 05m"]);
    }
}
