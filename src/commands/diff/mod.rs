//! `perfrun diff`: what changed between two sides, and whether a gate holds.

mod remeasure;
mod reports;
mod revision_files;
mod show;
mod sides;

use self::show::{Shown, command, show};
use self::sides::{Source, Sources};
use crate::diff::page::Page;
use crate::diff::{Accepted, Diff, FailOn, Gating, Side, Terms, diff};
use crate::ui::Ui;
use crate::ui::cli::{DiffArgs, FailOnWord};
use crate::ui::error::{Error, ExitCode};

/// A line at the end of a commit's message that accepts a row.
const TRAILER: &str = "Perfrun-Accept";

/// What was compared, whichever way.
struct Compared {
    diffs: Vec<Diff>,
    gone: Vec<String>,
    new: Vec<String>,
    /// How the measuring ended, where something was measured.
    code: ExitCode,
}

pub(super) fn run(arguments: &DiffArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let sources = Sources::here()?;
    let sides = sources.named(arguments.baseline.as_deref(), arguments.candidate.as_deref())?;
    let accepted = accepted(&sources, &sides);
    let compared = match arguments.remeasure {
        true => remeasure::run(arguments, &sources, &sides, &accepted, ui)?,
        false => stored(arguments, &sources, &sides, &accepted)?,
    };
    let Some(Compared { diffs, gone, new, code }) = compared else { return Ok(ExitCode::Interrupted) };
    let is_gone = is_gated(arguments) && !gone.is_empty() && !arguments.allow_unjudged;
    let is_fallen = is_gone || diffs.iter().filter_map(|diff| diff.gate.as_ref()).any(|gate| gate.is_fallen);
    let command = command(arguments, &sides);
    let pages = diffs.iter().map(|diff| Page::new(diff, &command)).collect();
    show(&Shown { pages, diffs, gone, new }, arguments, ui)?;
    Ok(code.worst(if is_fallen { ExitCode::GateFell } else { ExitCode::Done }))
}

/// Compares what both sides say that was measured before.
fn stored(
    arguments: &DiffArgs,
    sources: &Sources,
    sides: &[Source; 2],
    accepted: &[Accepted],
) -> Result<Option<Compared>, Error> {
    let [baseline, candidate] = [sources.read(&sides[0])?, sources.read(&sides[1])?];
    let pairs = reports::pair(baseline, candidate, &arguments.experiment)?;
    let mut diffs = Vec::new();
    for (baseline, candidate) in &pairs.both {
        diffs.push(diff(baseline, candidate, &terms(arguments, baseline, candidate, accepted))?);
    }
    Ok(Some(Compared { diffs, gone: pairs.gone, new: pairs.new, code: ExitCode::Done }))
}

fn is_gated(arguments: &DiffArgs) -> bool {
    arguments.gate || !arguments.fail_on.is_empty()
}

fn terms(arguments: &DiffArgs, baseline: &Side, candidate: &Side, accepted: &[Accepted]) -> Terms {
    let allowed = match arguments.allow.iter().any(|fact| fact == "all") {
        true => crate::record::provenance::frame_names().into_iter().map(str::to_owned).collect(),
        false => arguments.allow.clone(),
    };
    let gating = is_gated(arguments).then(|| {
        let mut gating = Gating::of(&baseline.results, &candidate.results);
        if !arguments.fail_on.is_empty() {
            gating.fail_on = arguments.fail_on.iter().map(|word| fail_on(*word)).collect();
        }
        gating.allows_unjudged = arguments.allow_unjudged;
        gating.accepted = accepted.to_vec();
        gating
    });
    Terms {
        metrics: arguments.metric.clone(),
        margins: arguments.margin.clone(),
        allowed,
        judges_unchanged: arguments.unchanged,
        together: None,
        gating,
    }
}

fn fail_on(word: FailOnWord) -> FailOn {
    match word {
        FailOnWord::Worse => FailOn::Worse,
        FailOnWord::Inconclusive => FailOn::Inconclusive,
    }
}

/// What the commits between two revisions accept.
fn accepted(sources: &Sources, sides: &[Source; 2]) -> Vec<Accepted> {
    let Some((repository, Source::Commit { hash: from, .. })) = sources.repository().map(|of| (of, &sides[0])) else {
        return Vec::new();
    };
    let to = match &sides[1] {
        Source::Commit { hash, .. } => hash.clone(),
        Source::WorkingTree => "HEAD".to_owned(),
        Source::Path(_) => return Vec::new(),
    };
    let read = |line: &String| {
        let mut words = line.splitn(3, char::is_whitespace);
        let (cell, metric, reason) = (words.next()?, words.next()?, words.next()?.trim());
        (!reason.is_empty()).then(|| Accepted {
            cell: cell.to_owned(),
            metric: metric.to_owned(),
            reason: reason.to_owned(),
        })
    };
    repository.trailers(from, &to, TRAILER).iter().filter_map(read).collect()
}
