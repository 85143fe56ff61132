//! `perfrun diff`: what changed between two sides, and whether a gate holds.

mod remeasure;
mod reports;
mod revision_files;
mod show;
mod sides;
mod tree;

pub(super) use self::sides::read_results;

use std::collections::BTreeMap;
use std::path::Path;

use self::reports::Pairs;
use self::show::{Shown, command, show};
pub(super) use self::sides::Source;
use self::sides::Sources;
use crate::ui::Ui;
use crate::ui::cli::{DiffArgs, FailOnWord};
use crate::ui::error::{Bisected, Error, ExitCode};
use judge::diff::{Accepted, Diff, DiffOptions, GateOutcome, GateRow, Gating, Held, Side, Spreads, diff};
use record::StoreError;
use report::diff::{Page, Sentence};

/// A line at the end of a commit's message that accepts a row.
const TRAILER: &str = "Perfrun-Accept";

/// What was compared, whichever way.
struct Compared {
    diffs: Vec<Diff>,
    gone: Vec<String>,
    new: Vec<String>,
    /// Why some of these were not compared.
    unread: BTreeMap<String, String>,
    /// Experiments that the user stopped, or that were not begun for it.
    stopped: Vec<String>,
    /// How the measuring ended, where something was measured.
    code: ExitCode,
}

pub(super) fn run(arguments: &DiffArgs, ui: &Ui) -> Result<ExitCode, Error> {
    if !arguments.bisect {
        return compare(arguments, ui);
    }
    // git takes 1 to 127 for an answer about the commit, and stops at what is above.
    Ok(match compare(arguments, ui) {
        Ok(code @ (ExitCode::Done | ExitCode::Bisect(_))) => code,
        Ok(_) => ExitCode::Bisect(Bisected::Stop),
        Err(error) => {
            ui.error(error.into());
            ExitCode::Bisect(Bisected::Stop)
        }
    })
}

/// Compares; what ends it is also written where the user wants files, so that a comment can say it.
fn compare(arguments: &DiffArgs, ui: &Ui) -> Result<ExitCode, Error> {
    match compare_or_end(arguments, ui).inspect_err(|error| show::failed(error, arguments, ui)) {
        // What does not build could not be judged.
        Err(error @ Error::SetUp { .. }) if is_gated(arguments) && !arguments.bisect => {
            ui.error(error.into());
            ui.labelled("result", show::NOT_BUILT);
            Ok(ExitCode::CheckFailed)
        }
        other => other,
    }
}

fn compare_or_end(arguments: &DiffArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let sources = Sources::here()?;
    let sides = sources.named(arguments.baseline.as_deref(), arguments.candidate.as_deref())?;
    if let [Source::Commit { hash: from, .. }, Source::Commit { hash: to, name }] = &sides
        && from == to
    {
        ui.note(&format!("both sides are commit {name}"));
    }
    let accepted = accepted(&sources, &sides);
    let compared = match arguments.remeasure {
        true => remeasure::run(arguments, &sources, &sides, &accepted, ui)?,
        false => stored(arguments, &sources, &sides, &accepted)?,
    };
    let Some(Compared { mut diffs, gone, new, unread, stopped, code }) = compared else {
        return Ok(ExitCode::Interrupted);
    };
    if diffs.is_empty() && !stopped.is_empty() {
        return Ok(ExitCode::Interrupted);
    }
    leave_idle_lines(&mut diffs);
    let nothing = nothing_yet(arguments, &sides, (&diffs, &gone, &new))?;
    // What an older side has and no newer one cannot be judged.
    let is_gone = is_gated(arguments) && !gone.is_empty() && !arguments.allow_unjudged;
    let gates = diffs.iter().filter_map(|diff| Some(diff.gate.as_ref()?.outcome));
    let stopped_gate = (is_gated(arguments) && !stopped.is_empty()).then_some(GateOutcome::Undecided);
    let gate = gates.chain(is_gone.then_some(GateOutcome::Failed)).chain(stopped_gate).max();
    // What has nothing to compare with cannot have become worse.
    let gate =
        gate.or((!new.is_empty() || !gone.is_empty()).then_some(GateOutcome::Passed)).filter(|_| is_gated(arguments));
    let answer = bisected(&diffs, !gone.is_empty());
    let command = command(arguments, &sides);
    let pages = diffs.iter().map(|diff| Page::new(diff, &command)).collect();
    let shown = Shown {
        nothing,
        log: String::new(),
        is_broken: false,
        pages,
        diffs,
        gone,
        new,
        unread,
        stopped,
        is_gone,
        gate,
    };
    show(&shown, arguments, ui)?;
    if !shown.stopped.is_empty() {
        return Ok(ExitCode::Interrupted);
    }
    if arguments.bisect {
        return Ok(answer);
    }
    // A gate says it all: single runs that failed are reported, and decide only where they leave nothing to judge.
    Ok(match gate {
        Some(GateOutcome::Failed) => ExitCode::CheckFailed,
        Some(GateOutcome::Passed | GateOutcome::Undecided) => ExitCode::Done,
        None if is_gated(arguments) => ExitCode::RunsFailed,
        None => code,
    })
}

/// A line that accepts a row of one experiment names no row of the other experiments, which is no mistake.
fn leave_idle_lines(diffs: &mut [Diff]) {
    let judged = || diffs.iter().filter(|diff| !diff.is_same_report).filter_map(|diff| diff.gate.as_ref());
    let is_idle = |line: &String| judged().all(|gate| gate.accepts_nothing.contains(line));
    let idle: Vec<String> = judged().flat_map(|gate| &gate.accepts_nothing).filter(|it| is_idle(it)).cloned().collect();
    for gate in diffs.iter_mut().filter_map(|diff| diff.gate.as_mut()) {
        gate.accepts_nothing.retain(|line| idle.contains(line));
    }
}

/// What is said where the older side has nothing to compare with, as that of the commit that introduces perfrun.
///
/// # Errors
///
/// Paths of which none holds a report.
fn nothing_yet(
    arguments: &DiffArgs,
    sides: &[Source; 2],
    (diffs, gone, new): (&[Diff], &[String], &[String]),
) -> Result<Option<Sentence>, Error> {
    if !diffs.is_empty() || !gone.is_empty() {
        return Ok(None);
    }
    let text = match (arguments.remeasure, new.is_empty()) {
        (true, false) => format!("{} has no specification to measure.", sides[0].name()),
        (true, true) => {
            "neither side has a specification, below `experiments/` or where a report names one.".to_owned()
        }
        (false, false) => format!("{} has no report to compare with.", sides[0].name()),
        (false, true) if sides.iter().any(|side| matches!(side, Source::Path(_))) => {
            return Err(Error::refused("neither side has a report", "a side is a report, or a folder of reports"));
        }
        (false, true) => {
            "neither side has a report: run `perfrun experiments/x.yaml` and commit `reports/x`.".to_owned()
        }
    };
    Ok(Some(Sentence { lead: "nothing to compare yet".to_owned(), text }))
}

/// The answer for `git bisect`: worse where one row is, not worse where all are known not to be.
fn bisected(diffs: &[Diff], is_gone: bool) -> ExitCode {
    let gated = || diffs.iter().flat_map(|diff| &diff.rows).filter_map(|row| row.gate.as_ref());
    let is_open = |gate: &GateRow| match gate.outcome {
        Held::Unjudged | Held::Undecided => true,
        Held::Holds | Held::Falls | Held::Accepted | Held::New => false,
    };
    let is_judged = |gate: &GateRow| !matches!(gate.outcome, Held::Unjudged | Held::New);
    if gated().any(|gate| gate.outcome == Held::Falls) {
        ExitCode::Bisect(Bisected::Worse)
    } else if is_gone || !gated().any(is_judged) || gated().any(is_open) {
        ExitCode::Bisect(Bisected::Undecided)
    } else {
        ExitCode::Done
    }
}

/// Compares what both sides say that was measured before.
fn stored(
    arguments: &DiffArgs,
    sources: &Sources,
    sides: &[Source; 2],
    accepted: &[Accepted],
) -> Result<Option<Compared>, Error> {
    // Reading is most of the time, and processors have several cores.
    let [baseline, candidate] = sides;
    let read = rayon::join(|| sources.read(baseline), || sources.read(candidate));
    let (baseline, candidate) = (read.0?, read.1?);
    let mut pairs = reports::pair(baseline, candidate, &arguments.experiment)?;
    let is_unread = |name: &String| pairs.unread.contains_key(name);
    // Nothing else can be compared. A gate fails by itself, or passes where the older side has nothing to compare with.
    if !is_gated(arguments)
        && pairs.both.is_empty()
        && pairs.gone.iter().chain(&pairs.new).all(is_unread)
        && let Some((_, error)) = pairs.unread.pop_first()
    {
        return Err(error.into());
    }
    let mut diffs = Vec::new();
    for (baseline, candidate) in &pairs.both {
        let mut terms = terms(arguments, baseline, candidate, accepted)?;
        terms.spreads = super::history::spreads(sources.project(), &sides[0], baseline, candidate, &terms.compared())?;
        diffs.push(diff(baseline, candidate, &terms));
    }
    // Ten thousand cells take a quarter of a second to be given back, and the process is about to end.
    std::mem::forget(std::mem::take(&mut pairs.both));
    let Pairs { gone, new, unread, .. } = pairs;
    let unread = unread.into_iter().map(|(name, error)| (name, why_unread(error, sources))).collect();
    Ok(Some(Compared { diffs, gone, new, unread, stopped: Vec::new(), code: ExitCode::Done }))
}

/// Why a report was not compared, and what to do; a comment names no folder of this machine.
fn why_unread(error: StoreError, sources: &Sources) -> String {
    let error = error.below(&sources.project().root, Path::new(""));
    let help = miette::Diagnostic::help(&error).map_or(String::new(), |help| format!(" ({help})"));
    format!("{error}{help}")
}

fn is_gated(arguments: &DiffArgs) -> bool {
    arguments.gate || arguments.bisect || !arguments.fail_on.is_empty()
}

fn terms(arguments: &DiffArgs, baseline: &Side, candidate: &Side, accepted: &[Accepted]) -> Result<DiffOptions, Error> {
    let allowed = match arguments.allow.iter().any(|fact| fact == "all") {
        true => record::provenance::frame_names().into_iter().map(str::to_owned).collect(),
        false => arguments.allow.clone(),
    };
    let gating = is_gated(arguments).then(|| {
        let mut gating = Gating::of(&baseline.results, &candidate.results);
        gating.fails_undecided = arguments.fail_on.contains(&FailOnWord::Undecided);
        gating.allows_unjudged = arguments.allow_unjudged;
        gating.accepted = accepted.to_vec();
        gating
    });
    // What says another unit or direction on the newer side is another metric.
    let mut own_metrics = candidate.results.own_metrics();
    own_metrics.extend(baseline.results.own_metrics());
    own_metrics.sort_unstable_by_key(|metric| metric.name);
    own_metrics.dedup_by_key(|metric| metric.name);
    let metrics = arguments.metric.iter().map(|metric| metric.read(&own_metrics)).collect::<Result<_, _>>();
    let margins = arguments.margin.iter().map(|margin| margin.read(&own_metrics)).collect::<Result<_, _>>();
    Ok(DiffOptions {
        metrics: metrics.map_err(super::history::no_metric)?,
        margins: margins.map_err(|problem| {
            Error::refused(problem, "write `--margin 3%`, or for one metric `--margin peak_rss=1MiB`")
        })?,
        own: own_metrics,
        allowed,
        judges_unchanged: arguments.unchanged,
        paired: None,
        spreads: Spreads::default(),
        gating,
        of_commands: candidate.results.method.runs_commands(),
    })
}

/// What the commits between two revisions accept.
fn accepted(sources: &Sources, sides: &[Source; 2]) -> Vec<Accepted> {
    let Some((repository, Source::Commit { hash: from, .. })) =
        sources.repository().map(|repository| (repository, &sides[0]))
    else {
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
