//! Errors of preparing a record.

use std::io;
use std::path::{Path, PathBuf};

use super::dataset::DatasetError;
use super::duet::DuetError;
use base::wording::{list, some};
use experiment::SPINNING_REMEDY;
use onnx::{OnnxError, ShapeError};
use plan::PlanError;
use record::StoreError;
use record::hold::InUse;

/// Why an experiment cannot be carried out on this host.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PrepareError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("{}", open_dimensions(.0))]
    #[diagnostic(help("{}", open_remedies(.0)))]
    OpenDimensions(Vec<OpenDimensions>),
    #[error("model `{model}`, dataset {}: {}", .file.display(), without_path(.file, .problem))]
    Dataset { model: String, file: PathBuf, problem: Box<DatasetError> },
    #[error("model `{model}`, input `{input}`{}", location(.file.as_deref(), .problem))]
    Feed { model: String, input: String, file: Option<PathBuf>, problem: Box<DatasetError> },
    #[error("model `{model}`: {problem}")]
    #[diagnostic(help("{}", .problem.remedy()))]
    Decoder { model: String, problem: Box<ShapeError> },
    #[error("variant `{variant}`: `keep`: {problem} of its models")]
    #[diagnostic(help("{help}"))]
    Keep { variant: String, problem: String, help: String },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Model(#[from] OnnxError),
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the path {path} is not UTF-8, so no record can hold it")]
    #[diagnostic(help("rename the file or folder, or measure from another folder"))]
    NotUtf8 { path: PathBuf },
    #[error(transparent)]
    #[diagnostic(transparent)]
    InUse(#[from] InUse),
    /// A record that cannot be taken up, because it would mix two things in one.
    #[error("cannot resume {record}: {what} has changed")]
    #[diagnostic(help("start a new record: run the specification without --resume"))]
    Changed { record: PathBuf, what: String },
    /// A record of an earlier format, to which nothing is added: its runs would be of two versions of perfrun.
    #[error("cannot resume {record}: it is from an older perfrun, in format {format}")]
    #[diagnostic(help("render it with `perfrun report`, or start a new record without --resume"))]
    Earlier { record: PathBuf, format: u32 },
    /// This machine's default number of threads does not fit the design (method 1.9).
    #[error("{0}")]
    #[diagnostic(help("{}", SPINNING_REMEDY))]
    Slowed(String),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Duet(#[from] DuetError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PrepareError {
    /// Whether another machine could carry out the same specification.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        let is_of_duet = matches!(self, PrepareError::Duet(DuetError::Threads { .. } | DuetError::Cores(_)));
        is_of_duet || matches!(self, PrepareError::Slowed(_))
    }
}

/// The problem, which may begin with the file.
fn without_path(file: &Path, problem: &DatasetError) -> String {
    let text = problem.to_string();
    text.strip_prefix(&format!("{}: ", file.display())).map_or(text.clone(), str::to_owned)
}

/// `, file inputs.npz: array ...`
fn location(file: Option<&Path>, problem: &DatasetError) -> String {
    match file {
        Some(file) => format!(", file {}: {}", file.display(), without_path(file, problem)),
        None => format!(": {problem}"),
    }
}

/// Models that lack the same sizes.
#[derive(Debug)]
pub struct OpenDimensions {
    problem: ShapeError,
    models: Vec<String>,
    /// No model of the experiment has them.
    are_all: bool,
}

impl OpenDimensions {
    /// One for each different problem.
    pub(super) fn group(problems: Vec<(String, ShapeError)>, models: usize) -> Vec<Self> {
        let mut groups: Vec<OpenDimensions> = Vec::new();
        for (model, problem) in problems {
            let message = |problem: &ShapeError| (problem.to_string(), problem.remedy());
            match groups.iter_mut().find(|group| message(&group.problem) == message(&problem)) {
                Some(group) if !group.models.contains(&model) => group.models.push(model),
                Some(_) => {}
                None => groups.push(OpenDimensions { problem, models: vec![model], are_all: false }),
            }
        }
        groups.iter_mut().for_each(|group| group.are_all = group.models.len() == models);
        groups
    }

    /// `` `m1`, `m2`, `m3` and 2 more ``
    fn names(&self) -> String {
        const MOST: usize = 3;
        list(&some(self.models.iter().map(|model| format!("`{model}`")), MOST))
    }
}

/// Sizes for all models would rule out those that have no such dimension.
fn open_remedies(groups: &[OpenDimensions]) -> String {
    let remedy = |group: &OpenDimensions| match group.are_all {
        true => group.problem.remedy(),
        false => format!("for {}, each in its entry of `models`: {}", group.names(), group.problem.remedy()),
    };
    groups.iter().map(remedy).collect::<Vec<_>>().join("\n")
}

fn open_dimensions(groups: &[OpenDimensions]) -> String {
    groups.iter().map(|group| format!("{}: {}", group.names(), group.problem)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_models_lack_is_told_once() {
        let problems = |count: u32| (1..=count).map(|number| (format!("m{number}"), ShapeError::NoBatch)).collect();
        let all = OpenDimensions::group(problems(6), 6);
        let problem = ShapeError::NoBatch;
        assert_eq!(open_dimensions(&all), format!("`m1`, `m2`, `m3` and 3 more: {problem}"));
        assert_eq!(open_remedies(&all), problem.remedy());
        // Sizes for all models would skip the third.
        let some = OpenDimensions::group(problems(2), 3);
        let remedy = format!("for `m1` and `m2`, each in its entry of `models`: {}", problem.remedy());
        assert_eq!(open_remedies(&some), remedy);
    }
}
