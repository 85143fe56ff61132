//! The page that GitHub Actions shows below a job: a step appends to the file that `GITHUB_STEP_SUMMARY` names.
//!
//! A container may have the variable without the file, so a summary that cannot be written is a warning: the table, the
//! files and the exit code do not depend on it.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::ui::Ui;
use crate::ui::error::Error;

/// The variable that names the file.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// GitHub drops the summary of a step above 1 MiB.
const MOST_BYTES: usize = 1_000_000;

/// Appends what `make` gives, if there is a step summary; warns where that fails.
pub(super) fn append(make: impl FnOnce() -> Result<String, Error>, ui: &Ui) {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else { return };
    let written = make().map_err(|error| error.to_string()).and_then(|text| {
        write(&path, shortened(&text)).map_err(|error| format!("{}: {error}", Path::new(&path).display()))
    });
    if let Err(why) = written {
        ui.note(&format!("warning: the step summary that {VARIABLE} names was not written: {why}"));
    }
}

fn write(path: &OsStr, text: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(format!("{text}\n").as_bytes())
}

/// As many whole lines as there is room for.
fn shortened(text: &str) -> &str {
    if text.len() <= MOST_BYTES {
        return text;
    }
    let cut = text.as_bytes()[..MOST_BYTES].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    text.get(..cut).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_cut_at_a_line() {
        assert_eq!(shortened("a\nb"), "a\nb");
        let long = "ä".repeat(1000) + "\n";
        let cut = shortened(&long.repeat(1000)).to_owned();
        assert!(cut.len() <= MOST_BYTES && cut.len() > MOST_BYTES - long.len(), "{}", cut.len());
        assert!(cut.ends_with('ä'));
    }
}
