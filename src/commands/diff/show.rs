//! What is printed and written.

use std::path::Path;

use super::is_gated;
use super::sides::Source;
use crate::diff::page::{self, Page};
use crate::diff::{Diff, FORMAT, Printed};
use crate::record::write_whole;
use crate::ui::cli::{DiffArgs, PageFormat};
use crate::ui::error::Error;
use crate::ui::{self, Ui};

/// What there is to show.
pub(super) struct Shown {
    pub(super) diffs: Vec<Diff>,
    pub(super) pages: Vec<Page>,
    /// Experiments of the older side alone.
    pub(super) gone: Vec<String>,
    /// Experiments of the newer side alone.
    pub(super) new: Vec<String>,
    /// The gate fell for experiments that are gone.
    pub(super) is_gone: bool,
    /// The gate fell; nothing where none was asked.
    pub(super) is_fallen: Option<bool>,
}

impl Shown {
    /// What is said of experiments that one side alone has.
    fn alone(&self) -> Vec<String> {
        let judged = if self.is_fallen == Some(true) { ", so its gate fails" } else { "" };
        let gone = self.gone.iter().map(|name| format!("{name}: only on the older side{judged}."));
        let new = self.new.iter().map(|name| format!("{name}: only on the newer side."));
        gone.chain(new).collect()
    }

    fn text(&self, format: PageFormat, arguments: &DiffArgs) -> Result<String, Error> {
        Ok(match format {
            PageFormat::Md => Page::markdown(&self.pages, &self.alone(), &marker(arguments))?,
            PageFormat::Html => Page::html(&self.pages, &self.alone())?,
            PageFormat::Junit => page::junit(&self.diffs, &self.gone, self.is_gone),
            PageFormat::Json => {
                let Shown { diffs, gone, new, is_fallen, .. } = self;
                let printed = Printed { format: FORMAT, is_fallen: *is_fallen, experiments: diffs, gone, new };
                crate::commands::json_text(&printed)? + "\n"
            }
        })
    }
}

/// What is typed to get the same again: revisions by their hashes, since names move on.
pub(super) fn command(arguments: &DiffArgs, sides: &[Source; 2]) -> String {
    let side = |source: &Source| match source {
        Source::Commit { hash, .. } => Some(hash.chars().take(12).collect::<String>()),
        Source::Path(path) => Some(path.display().to_string()),
        Source::WorkingTree => None,
    };
    let mut words = vec!["perfrun diff".to_owned()];
    words.extend(sides.iter().filter_map(side));
    words.extend(arguments.experiment.iter().map(|name| format!("--experiment {name}")));
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
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        append(Path::new(&path), &shown.text(PageFormat::Md, arguments)?)?;
    }
    let formats = match (arguments.json, arguments.format.is_empty(), &arguments.output) {
        (true, ..) => vec![PageFormat::Json],
        (false, true, Some(_)) => vec![PageFormat::Md, PageFormat::Html, PageFormat::Json],
        _ => arguments.format.clone(),
    };
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
        for format in formats {
            let name = match format {
                PageFormat::Md => "diff.md",
                PageFormat::Html => "diff.html",
                PageFormat::Json => "diff.json",
                PageFormat::Junit => "diff.junit.xml",
            };
            write_whole(&folder.join(name), shown.text(format, arguments)?.as_bytes())?;
        }
    } else if let [format] = formats[..] {
        super::super::print(ui, &shown.text(format, arguments)?)?;
        return Ok(());
    } else if !formats.is_empty() {
        return Err(Error::refused("only one format can be printed", "choose one format, or a folder with --output"));
    }
    super::super::print(ui, &ui::diff::render(&shown.pages, &shown.alone(), arguments.all, ui))?;
    Ok(())
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| Error::write(path, source))
}
