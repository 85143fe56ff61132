//! `perfrun stat`: the statistics and the verdict of a report, for numbers from anywhere.

use std::io::{self, Read};
use std::path::Path;

use super::{json_text, print};
use crate::ui::cli::StatArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{self, Ui};
use base::metric::Direction;
use judge::stat::{self, Series, StatOptions};
use reading::plain_file;
use statistics::SessionSpread;

/// A file of more bytes than this is refused: what is made of it takes more again.
const MOST_BYTES: u64 = 512 << 20;

pub(super) fn run(arguments: &StatArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let is_input = |path: &Path| path == Path::new("-");
    if arguments.candidate.as_deref().is_some_and(|candidate| is_input(candidate) && is_input(&arguments.file)) {
        return Err(Error::refused("both files are standard input", "name a file for one of them"));
    }
    let baseline = read(&arguments.file)?;
    let candidate = arguments.candidate.as_deref().map(read).transpose()?;
    let findings = stat::analyse(&baseline, candidate.as_ref(), &terms(arguments))?;
    let text = if arguments.json { json_text(&findings)? + "\n" } else { ui::stat::render(&findings, ui.width()) };
    print(ui, &text)
}

fn terms(arguments: &StatArgs) -> StatOptions {
    StatOptions {
        confidence: arguments.confidence.0,
        margin: arguments.margin.0,
        direction: if arguments.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter },
        paired: arguments.paired,
        session_spread: session_spread(arguments),
        unit: arguments.unit.clone(),
    }
}

/// Files are measured one after the other unless somebody says otherwise, and pairs always in turns.
fn session_spread(arguments: &StatArgs) -> f64 {
    let is_in_turns = arguments.paired || arguments.interleaved || arguments.candidate.is_none();
    let assumed = if is_in_turns { SessionSpread::NONE.sigma } else { SessionSpread::GRADE_A };
    arguments.session_spread.map_or(assumed, |spread| spread.0)
}

fn read(path: &Path) -> Result<Series, Error> {
    let (name, bytes) = if path == Path::new("-") {
        ("standard input".to_owned(), all_bytes(io::stdin().lock()))
    } else {
        (path.display().to_string(), plain_file::open_stream(path).and_then(all_bytes))
    };
    let bytes = bytes.map_err(|source| Error::attempt(format!("cannot read {name}"), source))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::refused(format!("{name} has more than 512 MiB"), "use a random sample of it"));
    }
    Ok(stat::read(&name, &bytes)?)
}

/// One byte more than is allowed shows that there are too many.
fn all_bytes(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
