//! `perfrun diff`: what changed between two sides, and whether a gate holds.

use std::collections::BTreeSet;
use std::path::Path;

use super::sides::{Reports, Source, Sources};
use crate::diff::page::Page;
use crate::diff::{Accepted, Diff, FailOn, Gating, Side, Terms, diff};
use crate::record::write_whole;
use crate::ui::cli::{DiffArgs, FailOnWord, PageFormat};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{self, Ui};

/// A line at the end of a commit's message that accepts a row.
const TRAILER: &str = "Perfrun-Accept";

pub(super) fn run(arguments: &DiffArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let sources = Sources::here()?;
    let sides = sources.named(arguments.baseline.as_deref(), arguments.candidate.as_deref())?;
    let [baseline, candidate] = [sources.read(&sides[0])?, sources.read(&sides[1])?];
    let pairs = pair(baseline, candidate, &arguments.experiment)?;
    let accepted = accepted(&sources, &sides);
    let mut diffs = Vec::new();
    for (baseline, candidate) in &pairs.both {
        diffs.push(diff(baseline, candidate, &terms(arguments, baseline, candidate, &accepted))?);
    }
    let is_gated = is_gated(arguments);
    let is_gone = is_gated && !pairs.gone.is_empty() && !arguments.allow_unjudged;
    let is_fallen = is_gone || diffs.iter().filter_map(|diff| diff.gate.as_ref()).any(|gate| gate.is_fallen);
    let shown = Shown { pages: diffs.iter().map(|diff| Page::new(diff, &command(arguments))).collect(), diffs, pairs };
    show(&shown, arguments, ui)?;
    Ok(if is_fallen { ExitCode::GateFell } else { ExitCode::Done })
}

/// What there is to show.
struct Shown {
    diffs: Vec<Diff>,
    pages: Vec<Page>,
    pairs: Pairs,
}

/// Reports that stand for each other on both sides.
#[derive(Default)]
struct Pairs {
    both: Vec<(Side, Side)>,
    /// Experiments of the older side alone.
    gone: Vec<String>,
    /// Experiments of the newer side alone.
    new: Vec<String>,
}

fn pair(mut baseline: Reports, mut candidate: Reports, wanted: &[String]) -> Result<Pairs, Error> {
    let is_wanted = |side: &Side| wanted.is_empty() || wanted.contains(&side.results.experiment);
    let known: BTreeSet<String> =
        baseline.values().chain(candidate.values()).map(|side| side.results.experiment.clone()).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(*name)) {
        let known: Vec<String> = known.into_iter().collect();
        let help = if known.is_empty() {
            "there are no reports".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        return Err(Error::refused(format!("neither side has a report of `{unknown}`"), help));
    }
    baseline.retain(|_, side| is_wanted(side));
    candidate.retain(|_, side| is_wanted(side));
    if baseline.is_empty() && candidate.is_empty() {
        return Err(Error::refused(
            "neither side has a report",
            "`perfrun experiments/x.yaml` writes reports/x, which is then committed",
        ));
    }
    let mut pairs = Pairs::default();
    // Two single reports are compared whatever they are called.
    if baseline.len() == 1 && candidate.len() == 1 {
        pairs.both.extend(baseline.into_values().zip(candidate.into_values()));
        return Ok(pairs);
    }
    for (folder, side) in baseline {
        let name = candidate.contains_key(&folder).then(|| folder.clone());
        // A single report finds its experiment wherever it lies; that of the same machine first.
        let alike = || {
            let same = candidate.iter().filter(|(_, other)| other.results.experiment == side.results.experiment);
            let is_here = |other: &Side| other.results.provenance.machine == side.results.provenance.machine;
            same.max_by_key(|(_, other)| is_here(other)).map(|(folder, _)| folder.clone())
        };
        match name.or_else(alike).and_then(|name| candidate.remove(&name)) {
            Some(other) => pairs.both.push((side, other)),
            None => pairs.gone.push(side.results.experiment.clone()),
        }
    }
    pairs.new.extend(candidate.into_values().map(|side| side.results.experiment));
    Ok(pairs)
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

/// What is typed to get the same again.
fn command(arguments: &DiffArgs) -> String {
    let mut words = vec!["perfrun diff".to_owned()];
    words.extend(arguments.baseline.iter().chain(&arguments.candidate).cloned());
    words.extend(arguments.experiment.iter().map(|name| format!("--experiment {name}")));
    words.extend(is_gated(arguments).then(|| "--gate".to_owned()));
    words.join(" ")
}

/// The first line of a comment: the same from push to push, so that it is updated and not repeated.
fn marker(arguments: &DiffArgs) -> String {
    let names: String = arguments.experiment.iter().map(|name| format!(" {name}")).collect();
    format!("<!-- perfrun diff{names} -->")
}

fn show(shown: &Shown, arguments: &DiffArgs, ui: &Ui) -> Result<(), Error> {
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        append(Path::new(&path), &Page::markdown(&shown.pages, &marker(arguments))?)?;
    }
    let formats = match (arguments.json, arguments.format.is_empty(), &arguments.output) {
        (true, ..) => vec![PageFormat::Json],
        (false, true, Some(_)) => vec![PageFormat::Md, PageFormat::Html, PageFormat::Json],
        _ => arguments.format.clone(),
    };
    let text = |format: PageFormat| -> Result<String, Error> {
        Ok(match format {
            PageFormat::Md => Page::markdown(&shown.pages, &marker(arguments))?,
            PageFormat::Html => Page::html(&shown.pages)?,
            PageFormat::Json => {
                let text =
                    serde_json::to_string_pretty(&shown.diffs).map_err(|error| Error::Internal(error.to_string()))?;
                text + "\n"
            }
        })
    };
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
        for format in formats {
            let name = match format {
                PageFormat::Md => "diff.md",
                PageFormat::Html => "diff.html",
                PageFormat::Json => "diff.json",
            };
            write_whole(&folder.join(name), text(format)?.as_bytes())?;
        }
    } else if let [format] = formats[..] {
        super::print(ui, &text(format)?)?;
        return Ok(());
    } else if !formats.is_empty() {
        return Err(Error::refused(
            "several formats cannot be printed at once",
            "name a folder with --output, or one format",
        ));
    }
    super::print(ui, &ui::diff::render(&shown.pages, &shown.pairs.gone, &shown.pairs.new, arguments.all, ui))?;
    Ok(())
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| Error::io(path, source))
}
