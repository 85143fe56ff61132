//! What is printed and written.

use std::collections::BTreeMap;
use std::path::Path;

use super::is_gated;
use super::sides::Source;
use crate::commands::step_summary;
use crate::ui::cli::{DiffArgs, PageFormat};
use crate::ui::error::Error;
use crate::ui::{self, Ui};
use judge::diff::{Diff, FORMAT, GateOutcome, Printed};
use reading::shell;
use record::write_whole;
use report::diff::{self, Experiments, Page, Sentence, Uncompared};

/// What a gate comes to where a side does not build.
pub(super) const NOT_BUILT: &str = "gate failed. Nothing was measured";

/// What there is to show.
#[derive(Default)]
pub(super) struct Shown {
    /// Why nothing was compared.
    pub(super) nothing: Option<Sentence>,
    /// What it said, where a command failed.
    pub(super) log: String,
    /// An error ended the comparison.
    pub(super) is_broken: bool,
    pub(super) diffs: Vec<Diff>,
    pub(super) pages: Vec<Page>,
    /// Experiments of the older side alone.
    pub(super) gone: Vec<String>,
    /// Experiments of the newer side alone.
    pub(super) new: Vec<String>,
    /// Why some of these were not compared.
    pub(super) unread: BTreeMap<String, String>,
    /// Experiments that were not measured to their end, because the user stopped it.
    pub(super) stopped: Vec<String>,
    /// The gate fell for experiments that are gone.
    pub(super) is_gone: bool,
    /// What the gates come to; nothing where none was asked, or nothing was measured.
    pub(super) gate: Option<GateOutcome>,
}

impl Shown {
    /// What is said of experiments that one side alone has.
    fn alone(&self) -> Vec<String> {
        let judged = if self.is_gone { ", so its gate fails" } else { "" };
        let gone = self.gone.iter().map(|name| match self.unread.get(name) {
            Some(why) => format!("{name}: not compared{judged}: {why}."),
            None => format!("{name}: only on the older side{judged}."),
        });
        let new = self.new.iter().map(|name| match self.unread.get(name) {
            Some(why) => format!("{name}: not compared: {why}."),
            None => format!("{name}: only on the newer side."),
        });
        let is_begun = |name: &String| self.diffs.iter().any(|diff| diff.experiment == *name);
        let stopped = self.stopped.iter().map(|name| match is_begun(name) {
            true => format!("{name}: stopped before its last block; more blocks may decide what is undecided."),
            false => format!("{name}: not measured, because perfrun was stopped."),
        });
        gone.chain(new).chain(stopped).collect()
    }

    fn uncompared(&self) -> Uncompared {
        Uncompared { nothing: self.nothing.clone(), log: self.log.clone(), alone: self.alone() }
    }

    fn text(&self, format: PageFormat, arguments: &DiffArgs) -> Result<String, Error> {
        Ok(match format {
            PageFormat::Md => Page::markdown(&self.pages, &self.uncompared(), &marker(arguments))?,
            PageFormat::Html => Page::html(&self.pages, &self.uncompared())?,
            PageFormat::Junit => {
                let Shown { gone, new, unread, stopped, is_gone, .. } = self;
                let experiments = Experiments { gone, new, unread, stopped, is_gone: *is_gone };
                let nothing = self.nothing.as_ref().map(|why| (why, self.log.as_str(), self.is_broken));
                diff::junit(&self.diffs, &experiments, nothing)?
            }
            PageFormat::Json => {
                let Shown { nothing, log, diffs, gone, new, stopped, gate, .. } = self;
                let log = if log.is_empty() { String::new() } else { format!("\n{log}") };
                let nothing = nothing.as_ref().map(|it| format!("{}: {}{log}", it.lead, it.text));
                let printed = Printed { format: FORMAT, gate: *gate, nothing, experiments: diffs, gone, new, stopped };
                crate::commands::json_text(&printed)? + "\n"
            }
        })
    }
}

/// What is typed to get the same again: revisions by their hashes, since names move on.
pub(super) fn command(arguments: &DiffArgs, sides: &[Source; 2]) -> String {
    let side = |source: &Source| match source {
        Source::Commit { hash, .. } => Some(hash.chars().take(12).collect::<String>()),
        Source::Path(path) => Some(shell::word(&path.to_string_lossy())),
        Source::WorkingTree => None,
    };
    let mut words = vec!["perfrun diff".to_owned()];
    words.extend(sides.iter().filter_map(side));
    words.extend(arguments.experiment.iter().map(|name| format!("--experiment {}", shell::word(name))));
    words.extend(arguments.allow.iter().map(|fact| format!("--allow {fact}")));
    words.extend(arguments.remeasure.then(|| "--remeasure".to_owned()));
    words.extend(arguments.budget.map(|budget| format!("--budget {budget}")));
    words.extend(is_gated(arguments).then(|| "--gate".to_owned()));
    words.join(" ")
}

/// The first line of a comment: the same from push to push, so that it is updated and not repeated.
fn marker(arguments: &DiffArgs) -> String {
    let names: String = arguments.experiment.iter().map(|name| format!(" {name}")).collect();
    format!("<!-- perfrun diff{names} -->")
}

/// Prints or writes what changed, and appends it to GitHub's step summary where there is one.
///
/// # Errors
///
/// Files that cannot be written, and several formats without a folder for them.
pub(super) fn show(shown: &Shown, arguments: &DiffArgs, ui: &Ui) -> Result<(), Error> {
    step_summary::append(|| shown.text(PageFormat::Md, arguments), ui);
    let formats = formats(arguments);
    if let Some(folder) = &arguments.output {
        write(shown, folder, &formats, arguments)?;
    } else if let [format] = formats[..] {
        crate::commands::print(ui, &shown.text(format, arguments)?)?;
        return Ok(());
    } else if !formats.is_empty() {
        return Err(Error::refused("only one format can be printed", "choose one format, or a folder with --output"));
    }
    crate::commands::print(ui, &ui::diff::render(&shown.pages, &shown.uncompared(), arguments.all, ui))?;
    Ok(())
}

/// Writes what ended the command where the user wants files and to the step summary: a comment is made from them whatever
/// happened.
pub(super) fn failed(error: &Error, arguments: &DiffArgs, ui: &Ui) {
    let help = miette::Diagnostic::help(error).map_or(String::new(), |help| format!(" ({help})"));
    let message = Ui::with_names(&error.to_string());
    let (first, log) = message.split_once('\n').unwrap_or((&message, ""));
    let lead = match error {
        Error::SetUp { .. } if is_gated(arguments) => NOT_BUILT,
        _ => "nothing was compared",
    };
    let nothing = Sentence { lead: lead.to_owned(), text: format!("{first}{help}") };
    let shown = Shown {
        nothing: Some(nothing),
        log: log.to_owned(),
        is_broken: true,
        gate: is_gated(arguments).then_some(GateOutcome::Failed),
        ..Shown::default()
    };
    step_summary::append(|| shown.text(PageFormat::Md, arguments), ui);
    let Some(folder) = &arguments.output else { return };
    if let Err(error) = write(&shown, folder, &formats(arguments), arguments) {
        ui.note(&format!("warning: {error}"));
    }
}

/// What is printed or written; nothing where the table is enough.
fn formats(arguments: &DiffArgs) -> Vec<PageFormat> {
    match (arguments.json, arguments.format.is_empty(), &arguments.output) {
        (true, ..) => vec![PageFormat::Json],
        (false, true, Some(_)) => vec![PageFormat::Md, PageFormat::Html, PageFormat::Json],
        _ => arguments.format.clone(),
    }
}

fn write(shown: &Shown, folder: &Path, formats: &[PageFormat], arguments: &DiffArgs) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    for format in formats {
        let name = match format {
            PageFormat::Md => "diff.md",
            PageFormat::Html => "diff.html",
            PageFormat::Json => "diff.json",
            PageFormat::Junit => "diff.junit.xml",
        };
        write_whole(&folder.join(name), shown.text(*format, arguments)?.as_bytes())?;
    }
    Ok(())
}
