//! The files that a report was made from, where they stand now: in a folder or at a commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::revision_files::{EXPERIMENTS, RevisionFiles};
use crate::commands::specs;
use experiment::Experiment;
use files::digest;
use judge::diff::{Side, Stale};
use judge::results::{self, GateAsked, Results};
use reading::plain_file;
use record::git::{Blob, Repository};
use record::sources::{CommandSources, Objects};
use serde::Deserialize;

/// Where the paths of a report lead.
pub(super) enum Tree<'a> {
    /// Below a folder.
    Folder(&'a Path),
    Commit {
        files: RevisionFiles<'a>,
        /// The root of the reports as git names it: empty, or ending in `/`.
        prefix: String,
    },
}

impl Tree<'_> {
    /// The report in a folder, held against the files that it was made from, with the gates of its specification as it is now.
    pub(super) fn side(&self, name: &str, mut results: Results, folder: &str) -> Side {
        let path = self.specification(&results);
        let mut stale = self.stale(&results, path.as_deref());
        let now = path.and_then(|path| self.experiment(&path));
        if let Some((text, experiment)) = &now {
            stale.unmeasured = unmeasured_models(&results, experiment);
            if let Some(gates) = gates(&results, experiment, text) {
                results.rules.gates = gates;
            }
        }
        if let Some(file) = self.other_source(&results, now.map(|(_, experiment)| experiment).as_ref(), folder) {
            let commands = rows(&results, "commands").filter_map(|row| word(row, "name"));
            stale.models.extend(commands.map(|name| (name, file.clone())));
        }
        Side { name: name.to_owned(), stale, results }
    }

    /// Where the specification of a report lies now: where it did, else where one lies that asks for the same numbers.
    fn specification(&self, results: &Results) -> Option<String> {
        let (path, measured) = measured_specification(results)?;
        if self.text(&path).is_some() {
            return Some(path);
        }
        let is_same = |other: &String| self.text(other).is_some_and(|now| is_same_specification(&now, &measured));
        self.specifications().into_iter().find(is_same)
    }

    /// The specifications below `experiments/`, from the root.
    fn specifications(&self) -> Vec<String> {
        match self {
            Tree::Folder(root) => in_folder(root),
            Tree::Commit { files, prefix } => files.specifications(prefix),
        }
    }

    /// Where the root of the reports stands in memory or on disk.
    fn root(&self) -> PathBuf {
        match self {
            Tree::Folder(root) => (*root).to_owned(),
            Tree::Commit { files, prefix } => files.folder().join(prefix.trim_end_matches('/')),
        }
    }

    /// What of the files that commands run is another one since the report was measured. Of a report that does not say what they
    /// held, since the commit that changed it last.
    fn other_source(&self, results: &Results, now: Option<&Experiment>, folder: &str) -> Option<String> {
        if !results.method.runs_commands() {
            return None;
        }
        let (here, commit, repository, prefix) = match self {
            Tree::Folder(root) => {
                let here = Repository::around(root).ok().flatten()?;
                let prefix = here.path_of(root)?;
                (Some(here), None, None, prefix)
            }
            Tree::Commit { files, prefix } => (None, Some(files.commit()), Some(files.repository()), prefix.clone()),
        };
        let repository = repository.or(here.as_ref())?;
        let objects = repository.objects(commit, &prefix);
        let then = match results.provenance.subject.get("sources") {
            // What cannot be read is no proof that nothing changed.
            Some(known) => CommandSources::deserialize(known).unwrap_or_default(),
            None => {
                let top = prefix.trim_end_matches('/');
                let path = Path::new(top).join("reports").join(folder).join(results::FILE);
                let (written, _) = repository.commits_of(commit.unwrap_or("HEAD"), path.to_str()?).pop()?;
                let then = repository.objects(Some(&written), &prefix);
                let none = Objects::new();
                let sources = now.and_then(|experiment| CommandSources::of(experiment, &self.root(), &then, &none));
                sources.unwrap_or_else(|| CommandSources::default().elsewhere(&then))
            }
        };
        then.changed(&then.elsewhere(&objects))
    }

    /// A specification as it is now: its text, and what it asks for with every model that its patterns find.
    fn experiment(&self, path: &str) -> Option<(String, Experiment)> {
        let file = match self {
            Tree::Folder(root) => root.join(path),
            Tree::Commit { files, prefix } => files.outline(&format!("{prefix}{path}")).ok()??,
        };
        let text = plain_file::text(&file).ok()?;
        let experiment = spec::outline(path, &text, file.parent()?).ok()?.experiment;
        Some((text, experiment))
    }

    fn text(&self, path: &str) -> Option<String> {
        match self {
            Tree::Folder(root) => plain_file::text(&root.join(path)).ok(),
            Tree::Commit { files, prefix } => match files.read(&format!("{prefix}{path}"))? {
                Blob::Bytes(bytes) => String::from_utf8(bytes).ok(),
                Blob::Elsewhere(_) => None,
            },
        }
    }

    fn sha256(&self, path: &str) -> Option<String> {
        match self {
            Tree::Folder(root) => sha256_of_file(&root.join(path)),
            Tree::Commit { files, prefix } => files.read(&format!("{prefix}{path}")).map(|blob| blob.sha256()),
        }
    }

    /// Which of the files that a report was made from have changed since. What is not in the repository, such as a
    /// network that was made on the spot, is known by its hash alone.
    fn stale(&self, results: &Results, specification: Option<&str>) -> Stale {
        let specification = measured_specification(results).and_then(|(path, measured)| {
            // A specification that is not there any more is not what was measured.
            let now = specification.and_then(|now| self.text(now));
            let is_same = now.is_some_and(|now| is_same_specification(&now, &measured));
            (!is_same).then_some(path)
        });
        let mut known = Known::default();
        let models = rows(results, "models").filter_map(|row| {
            // What lies below a folder of the root is the user's; what has no folder was made or fetched, and is in the cache.
            let file = self.other_file(row, word(row, "path")?, &mut known, |path| path.contains('/'))?;
            Some((word(row, "name")?, file))
        });
        let mut models: BTreeMap<String, String> = models.collect();
        // Data and files of one's own need not be in the repository.
        let data = rows(results, "datasets").filter_map(|row| {
            Some((word(row, "model")?, self.other_file(row, word(row, "path")?, &mut known, |_| false)?))
        });
        let data: Vec<(String, String)> = data.collect();
        let changed = rows(results, "files").filter_map(|row| {
            let path = row.pointer("/origin/path").and_then(Value::as_str)?.to_owned();
            let file = self.other_file(row, path, &mut known, |_| false)?;
            Some(((word(row, "model")?, word(row, "variant")?), file))
        });
        let variants = changed.collect();
        // Inputs may be of every model.
        let fed = rows(results, "input_files")
            .find_map(|row| self.other_file(row, word(row, "path")?, &mut known, |_| false));
        let of_all = fed.into_iter().flat_map(|file| rows(results, "models").map(move |row| (row, file.clone())));
        let of_all: Vec<(String, String)> = of_all.filter_map(|(row, file)| Some((word(row, "name")?, file))).collect();
        // Where both a model and its data changed, the model is reported.
        for (model, file) in data.into_iter().chain(of_all) {
            models.entry(model).or_insert(file);
        }
        Stale { specification, models, variants, unmeasured: Vec::new() }
    }

    /// The first of the files of a row that is another one now; `must_be_there` says of one that is not there whether that
    /// makes it another.
    fn other_file(
        &self,
        row: &Value,
        path: String,
        known: &mut Known,
        must_be_there: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let parts = row.get("parts").and_then(Value::as_object).filter(|parts| !parts.is_empty());
        let parts: Vec<(String, String)> = match parts {
            Some(parts) => {
                parts.iter().filter_map(|(path, hash)| Some((path.clone(), hash.as_str()?.to_owned()))).collect()
            }
            None => vec![(path, word(row, "sha256")?)],
        };
        // Data may be of many models.
        let mut is_other = |path: &String, hash: &String| {
            let now = known.entry(path.clone()).or_insert_with(|| self.sha256(path));
            now.as_ref().map_or_else(|| must_be_there(path), |now| now != hash)
        };
        parts.into_iter().find(|(path, hash)| is_other(path, hash)).map(|(path, _)| path)
    }
}

fn is_same_specification(now: &str, measured: &str) -> bool {
    now == measured || spec::measured(now).is_some_and(|now| Some(now) == spec::measured(measured))
}

/// The specifications below `experiments/` of a folder, from it.
pub(super) fn in_folder(root: &Path) -> Vec<String> {
    // A folder without any has none.
    let found = specs::find(&[root.join(EXPERIMENTS)]).unwrap_or_default();
    let below = found.iter().filter(|file| file.is_file()).filter_map(|file| file.strip_prefix(root).ok()?.to_str());
    below.map(str::to_owned).collect()
}

/// SHA-256 of files by their paths, as far as they are there.
type Known = HashMap<String, Option<String>>;

/// Path and text of the specification that was measured.
pub(super) fn measured_specification(results: &Results) -> Option<(String, String)> {
    let known = results.provenance.subject.get("specification")?;
    Some((word(known, "path")?, word(known, "text")?))
}

/// The gates of a specification that asks for the same numbers as when they were measured, but says something else
/// besides.
fn gates(results: &Results, experiment: &Experiment, now: &str) -> Option<Vec<GateAsked>> {
    measured_specification(results).filter(|(_, measured)| now != measured)?;
    let plan = plan::expand(experiment).ok()?;
    Some(results::gates(experiment, &plan))
}

/// The models that the specification finds now and that nobody measured.
fn unmeasured_models(results: &Results, experiment: &Experiment) -> Vec<String> {
    let known: BTreeSet<String> = rows(results, "models").filter_map(|row| word(row, "name")).collect();
    // Without the models of a report, as with the mock backend, nothing is known of them.
    let names = experiment.models.iter().map(|model| model.name.clone()).filter(|_| !known.is_empty());
    names.filter(|name| !known.contains(name)).collect()
}

fn rows<'a>(results: &'a Results, fact: &str) -> impl Iterator<Item = &'a Value> {
    results.provenance.subject.get(fact).and_then(Value::as_array).into_iter().flatten()
}

fn word(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

/// SHA-256 of a file, or of the one for which a pointer of Git LFS stands.
fn sha256_of_file(path: &Path) -> Option<String> {
    /// A pointer has three lines.
    const MOST_BYTES_OF_POINTER: u64 = 1024;
    if path.metadata().ok()?.len() <= MOST_BYTES_OF_POINTER {
        return Some(Blob::of(plain_file::bytes(path).ok()?).sha256());
    }
    digest::of_file(path).ok()
}
