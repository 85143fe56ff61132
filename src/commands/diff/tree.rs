//! The files that a report was made from, where they stand now: in a folder or at a commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;

use super::revision_files::RevisionFiles;
use experiment::Experiment;
use files::digest;
use judge::diff::{Side, Stale};
use judge::results::{self, GateAsked, Results};
use reading::plain_file;
use record::git::Blob;

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
    /// A report, held against the files that it was made from, with the gates of its specification as it is now.
    pub(super) fn side(&self, name: &str, mut results: Results) -> Side {
        let mut stale = self.stale(&results);
        if let Some((text, experiment)) = self.experiment(&results) {
            stale.unmeasured = unmeasured_models(&results, &experiment);
            if let Some(gates) = gates(&results, &experiment, &text) {
                results.rules.gates = gates;
            }
        }
        Side { name: name.to_owned(), stale, results }
    }

    /// The specification of a report as it is now: its text, and what it asks for with every model that its patterns find.
    fn experiment(&self, results: &Results) -> Option<(String, Experiment)> {
        let (path, _) = measured_specification(results)?;
        let file = match self {
            Tree::Folder(root) => root.join(&path),
            Tree::Commit { files, prefix } => files.outline(&format!("{prefix}{path}")).ok()??,
        };
        let text = plain_file::text(&file).ok()?;
        let experiment = spec::outline(&path, &text, file.parent()?).ok()?.experiment;
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

    /// Which of the files that a report was made from are others now. What is not in the repository, such as a network
    /// that was made on the spot, is known by its hash alone.
    fn stale(&self, results: &Results) -> Stale {
        let specification = measured_specification(results).and_then(|(path, measured)| {
            // A specification that is not there any more is not what was measured.
            let is_same = self
                .text(&path)
                .is_some_and(|now| now == measured || spec::measured(&now) == spec::measured(&measured));
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
        let own = rows(results, "files").filter_map(|row| {
            let path = row.pointer("/origin/path").and_then(Value::as_str)?.to_owned();
            let file = self.other_file(row, path, &mut known, |_| false)?;
            Some(((word(row, "model")?, word(row, "variant")?), file))
        });
        let variants = own.collect();
        // Inputs may be of every model.
        let fed = rows(results, "input_files")
            .find_map(|row| self.other_file(row, word(row, "path")?, &mut known, |_| false));
        let of_all = fed.into_iter().flat_map(|file| rows(results, "models").map(move |row| (row, file.clone())));
        let of_all: Vec<(String, String)> = of_all.filter_map(|(row, file)| Some((word(row, "name")?, file))).collect();
        // Of a model and its data the model is told.
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
