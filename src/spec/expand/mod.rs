//! Forms to the experiment: shorthands expanded, texts read, names checked, files found.
//!
//! Input: forms that the schema accepted. Output: the [`Experiment`], and problems at their places. Parts that the
//! schema refused are left out, and what depends on them is not judged. Deliberately absent: the cells themselves,
//! which are `plan`'s; here they are only counted.

mod devices;
mod inputs;
mod matrix;
mod measure;
mod models;
mod variants;

use std::path::Path;

use super::check::Check;
use super::document::Place;
use super::form::{BackendForm, ExperimentForm};
use super::model::{Compare, Experiment, Require};
use super::wording::bad_name;

/// More cells than this are a mistake: at a second each, they take twelve days.
const MOST_CELLS: u128 = 1_000_000;

/// What an axis has, as far as it could be read.
#[derive(Clone, Debug)]
struct Axis<T> {
    values: Vec<T>,
    /// False where an entry is missing because something is wrong with it.
    is_complete: bool,
}

impl<T> Default for Axis<T> {
    fn default() -> Self {
        Axis { values: Vec::new(), is_complete: true }
    }
}

impl<T> Axis<T> {
    fn incomplete(mut self) -> Self {
        self.is_complete = false;
        self
    }

    fn names(&self, name: impl Fn(&T) -> String) -> Option<Vec<String>> {
        self.is_complete.then(|| self.values.iter().map(name).collect())
    }
}

/// The backend, as far as other keys depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackendKind {
    Onnxruntime,
    Mock,
    /// The spec does not say it in a way that can be read.
    Unknown,
}

/// Expands every form. The experiment is to be used only where `check` has no problems.
pub(super) fn expand(form: &ExperimentForm, folder: &Path, default_name: &str, check: &mut Check<'_>) -> Experiment {
    let kind = match &form.backend {
        _ if check.is_damaged(&Place::top("backend")) => BackendKind::Unknown,
        BackendForm::Onnxruntime => BackendKind::Onnxruntime,
        BackendForm::Mock(_) => BackendKind::Mock,
    };
    let name = form.name.as_ref().map_or(default_name, |name| &name.0).to_owned();
    if form.name.is_none() && !is_name(&name) && !check.is_damaged(&Place::top("name")) {
        let problem = check.at_key(&Place::default(), "");
        let problem = bad_name(problem, "the experiment's name, taken from the file,", &name);
        check.problems.push(problem.with_hint("add a `name`"));
    }
    let models = models::expand(form, folder, kind, check);
    let inputs = inputs::expand(form.inputs.as_ref(), &Place::top("inputs"), check);
    let variants = variants::expand(form, kind, check);
    let devices = devices::expand(&form.devices, check);
    let axes = matrix::Axes { models: &models, inputs: &inputs, variants: &variants, devices: &devices };
    let matrix = matrix::expand(&form.matrix, &axes, check);
    let measure = measure::expand(&form.measure, check);
    let backend = measure::backend(&form.backend, check);
    Experiment {
        name,
        description: form.description.clone(),
        models: models.values,
        inputs: inputs.values,
        variants: variants.values,
        devices: devices.values,
        runs: form.runs,
        seed: form.seed,
        matrix,
        measure,
        backend,
        compare: Compare::default(),
        budget: None,
        require: Require::default(),
        choose: None,
        tables: Vec::new(),
    }
}

/// True for what the schema's pattern of names accepts.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// A count with its thousands apart: `10,000,000`.
fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(10_000_000), "10,000,000");
    }

    #[test]
    fn names_are_what_the_pattern_says() {
        assert!(is_name("a") && is_name("9.x_y-Z") && is_name(&"a".repeat(64)));
        assert!(!is_name("") && !is_name("-a") && !is_name("a b") && !is_name("é") && !is_name(&"a".repeat(65)));
    }
}
