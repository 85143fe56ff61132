//! `perfrun stat`: the statistics and the verdict of a report, for numbers from anywhere.

use std::io::{self, Read};
use std::path::Path;

use super::{json_text, print};
use crate::ui::cli::{FailOnWord, StatArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{self, Ui};
use base::metric::Direction;
use judge::stat::{self, Contents, Findings, Pairs, Series, StatOptions};
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
    let mut left_out = baseline.left_out;
    left_out.extend(candidate.iter().flat_map(|candidate| candidate.left_out.iter().cloned()));
    let pairs = pairs(arguments, baseline.series, candidate.map(|candidate| candidate.series))?;
    let fail_on = &arguments.fail_on;
    let fails_undecided = (!fail_on.is_empty()).then(|| fail_on.contains(&FailOnWord::Undecided));
    let findings = Findings::of(&pairs, &terms(arguments), fails_undecided)?.with_left_out(left_out);
    let text = if arguments.json { json_text(&findings)? + "\n" } else { ui::stat::render(&findings, ui.width()) };
    let done = print(ui, &text)?;
    Ok(if findings.fails == Some(true) { ExitCode::CheckFailed } else { done })
}

/// What is compared with what, in the unit that the user names where a file names none.
fn pairs(arguments: &StatArgs, baseline: Vec<Series>, candidate: Option<Vec<Series>>) -> Result<Pairs, Error> {
    let mut sides: Vec<Vec<Series>> = std::iter::once(baseline).chain(candidate).collect();
    if let Some(unit) = &arguments.unit {
        if sides.iter().flatten().all(|series| series.tool().is_some()) {
            return Err(Error::refused("the file says the unit of its times", "leave out `--unit`"));
        }
        sides.iter_mut().flatten().for_each(|series| series.set_unit(unit));
    }
    if let Some(name) = &arguments.benchmark {
        sides = sides.into_iter().map(|side| stat::only(side, name)).collect::<Result<_, _>>()?;
    }
    let mut sides = sides.into_iter();
    let baseline = sides.next().unwrap_or_default();
    Ok(match &arguments.against {
        Some(name) => stat::against(baseline, name)?,
        None => stat::pairs(baseline, sides.next())?,
    })
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
    let is_single = arguments.candidate.is_none() && arguments.against.is_none();
    let is_in_turns = arguments.paired || arguments.interleaved || is_single;
    let assumed = if is_in_turns { SessionSpread::NONE.sigma } else { SessionSpread::GRADE_A };
    arguments.session_spread.map_or(assumed, |spread| spread.0)
}

fn read(path: &Path) -> Result<Contents, Error> {
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
