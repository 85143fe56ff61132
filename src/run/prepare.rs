//! From an experiment to a plan that this host can carry out: the matrix, and what devices and model files rule out.
//!
//! Nothing is written here; [`super::create`] makes the record.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use onnx::precision::ProviderClass;
use onnx::{Interface, OnnxError, ShapeError};
use reading::nearest;

use super::convertible;
use super::dataset::{self, DatasetError};
use super::devices;
use super::duet::{self, DuetError};
use super::model::PreparedModel;
use crate::experiment::{Design, Device, Experiment, InputIndex, InputPoint, Model, ModelIndex};
use crate::machine::host::cores::split_allowed_cores;
use crate::machine::kernel::Kernel;
use crate::plan::{self, Facts, Plan, PlanError, Skip};
use crate::record::StoreError;
use crate::worker::backend;

/// Why an experiment cannot be carried out on this host.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PrepareError {
    /// The matrix.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Inputs of models whose size nobody said.
    #[error("{}", open_dimensions(.0))]
    #[diagnostic(help("{}", open_remedies(.0)))]
    OpenDimensions(Vec<OpenDimensions>),
    /// Data that do not fit.
    #[error("model `{model}`, dataset {}: {}", .file.display(), without_path(.file, .problem))]
    Dataset {
        /// The model.
        model: String,
        /// The dataset's file.
        file: PathBuf,
        /// What is wrong.
        problem: Box<DatasetError>,
    },
    /// Values that do not fit.
    #[error("model `{model}`, input `{input}`{}", place(.file.as_deref(), .problem))]
    Feed {
        /// The model.
        model: String,
        /// The input point.
        input: String,
        /// The file that it names.
        file: Option<PathBuf>,
        /// What is wrong.
        problem: Box<DatasetError>,
    },
    /// Names in `convert: { keep: [...] }` that no model has.
    #[error("variant `{variant}`: `keep`: {problem} of its models")]
    #[diagnostic(help("{help}"))]
    Keep {
        variant: String,
        /// Which words.
        problem: String,
        /// What may be meant.
        help: String,
    },
    /// A model without all of its files.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Model(#[from] OnnxError),
    /// A file that the record names cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A record that cannot be taken up, because it would mix two things in one.
    #[error("cannot resume {record}: {what} has changed")]
    #[diagnostic(help("start a new record: run the specification without --resume"))]
    Changed {
        /// The record's folder.
        record: PathBuf,
        /// What has changed.
        what: String,
    },
    /// A record of an earlier format, to which nothing is added: its runs would be of two versions of perfrun.
    #[error("cannot resume {record}: it is from an older perfrun, in format {format}")]
    #[diagnostic(help("render it with `perfrun report`, or start a new record without --resume"))]
    Earlier {
        /// The record's folder.
        record: PathBuf,
        format: u32,
    },
    /// Two arms at the same time.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Duet(#[from] DuetError),
    /// The record.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PrepareError {
    /// Whether another machine could carry out the same specification.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        matches!(self, PrepareError::Duet(DuetError::Threads { .. } | DuetError::Cores(_)))
    }
}

/// The problem, which may begin with the file.
fn without_path(file: &Path, problem: &DatasetError) -> String {
    let text = problem.to_string();
    text.strip_prefix(&format!("{}: ", file.display())).map_or(text.clone(), str::to_owned)
}

/// `, file inputs.npz: array ...`
fn place(file: Option<&Path>, problem: &DatasetError) -> String {
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
    fn group(problems: Vec<(String, ShapeError)>, models: usize) -> Vec<Self> {
        let mut groups: Vec<OpenDimensions> = Vec::new();
        for (model, problem) in problems {
            let told = |problem: &ShapeError| (problem.to_string(), problem.remedy());
            match groups.iter_mut().find(|group| told(&group.problem) == told(&problem)) {
                Some(group) if !group.models.contains(&model) => group.models.push(model),
                Some(_) => {}
                None => groups.push(OpenDimensions { problem, models: vec![model], are_all: false }),
            }
        }
        groups.iter_mut().for_each(|group| group.are_all = group.models.len() == models);
        groups
    }

    /// `` `m1`, `m2`, `m3` and 2 others ``
    fn names(&self) -> String {
        const MOST: usize = 3;
        let names: Vec<&str> = self.models.iter().map(String::as_str).collect();
        match names.len() {
            all if all <= MOST + 1 => nearest::list(&names, "and"),
            all => {
                let shown: Vec<String> = names[..MOST].iter().map(|name| format!("`{name}`")).collect();
                format!("{} and {} others", shown.join(", "), all - MOST)
            }
        }
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

/// A plan with what host and files say about it; nothing is written yet.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The matrix with its skips.
    pub plan: Plan,
    /// The models, by index on their axis.
    pub models: Vec<PreparedModel>,
    /// Why a device cannot be used here, by index on the devices axis.
    pub devices: Vec<Option<Skip>>,
    /// The two sets of processors of a duet.
    pub core_sets: Option<[Vec<u32>; 2]>,
    /// What is unusual about files that inputs are fed from.
    pub doubts: Vec<String>,
}

impl Prepared {
    /// Why devices of cells that would otherwise run cannot be used here.
    pub fn absent_devices(&self) -> impl Iterator<Item = &Skip> {
        let used = |device: usize, absence: &Skip| {
            self.plan.cells.iter().any(|cell| cell.device().place() == device && self.plan.skip(cell) == Some(absence))
        };
        let absences = self.devices.iter().enumerate().filter_map(|(device, skip)| Some((device, skip.as_ref()?)));
        absences.filter(move |(device, absence)| used(*device, absence)).map(|(_, absence)| absence)
    }
}

/// Plans an experiment and asks the host and the model files what of it can run.
///
/// # Errors
///
/// A matrix that cannot be planned, or dimensions that the specification leaves open.
pub fn prepare(experiment: &Experiment) -> Result<Prepared, PrepareError> {
    let mut plan = plan::expand(experiment)?;
    let mut models: Vec<PreparedModel> = experiment.models.iter().map(|model| open(experiment, model)).collect();
    let opens_library = backend::of(&experiment.backend).library().is_some();
    let why_not = |device: &Device| devices::why_not(device, &Kernel::here()).filter(|_| opens_library);
    let devices: Vec<Option<Skip>> = experiment.devices.iter().map(why_not).collect();
    for (index, model) in models.iter_mut().enumerate() {
        model.data = dataset::of_model(experiment, index, model.header.as_ref())?;
    }
    let (inputs, doubts) = feed(experiment, &plan, &mut models)?;
    let classes = experiment.devices.iter().map(|device| ProviderClass::of(&device.provider)).collect();
    let unconvertible = convertible::examine(experiment, &models, &plan)?;
    let lacking = |problems| PrepareError::OpenDimensions(OpenDimensions::group(problems, experiment.models.len()));
    let interfaces = models.iter().map(|model| model.interface.clone()).collect();
    let facts = Facts { models: interfaces, devices, inputs, classes, unconvertible };
    for ((model, input), shapes) in plan::annotate(&mut plan, &facts).map_err(lacking)? {
        models[model.place()].shapes.insert(input, shapes);
    }
    let mut core_sets = None;
    if experiment.measure.design == Design::Duet {
        duet::check_groups(&mut plan)?;
        core_sets = duet_cores(experiment)?;
    }
    plan::place_controls(&mut plan, experiment.compare.aa);
    Ok(Prepared { plan, models, devices: facts.devices, core_sets, doubts })
}

/// Input points with the shapes that files give them, by the model that is fed.
type Sized = BTreeMap<(ModelIndex, InputIndex), InputPoint>;

/// Looks at the values of every input, and into the files that give some: their shapes, and what is unusual about them.
fn feed(
    experiment: &Experiment,
    plan: &Plan,
    models: &mut [PreparedModel],
) -> Result<(Sized, Vec<String>), PrepareError> {
    let (mut sized, mut doubts) = (Sized::new(), Vec::new());
    let places: BTreeSet<(ModelIndex, InputIndex)> =
        plan.cells.iter().map(|cell| (cell.model(), cell.input())).collect();
    for (at, input) in places {
        let (point, model) = (&plan.axes.inputs()[input], &mut models[at.place()]);
        let name = experiment.models[at].name.clone();
        let file = point.file.as_ref().map(|file| file.path.clone());
        let misfit = |problem: DatasetError| PrepareError::Feed {
            model: name.clone(),
            input: point.name.clone(),
            file: file.clone(),
            problem: Box::new(problem),
        };
        let Some(signature) = model.header.as_ref().map(|header| header.signature.clone()) else {
            dataset::open(point).map_err(misfit)?;
            continue;
        };
        dataset::check_values(point, &signature).map_err(misfit)?;
        if point.file.is_none() && !point.takes_dataset() {
            continue;
        }
        let (with_shapes, fed) = dataset::feed(point, &signature, model.data.as_ref()).map_err(misfit)?;
        let unusual = fed.look(experiment.measure.inputs).map_err(misfit)?;
        doubts.extend(unusual.into_iter().map(|doubt| format!("model `{name}`, input `{}`: {doubt}", point.name)));
        sized.insert((at, input), with_shapes);
        model.fed.insert(input, fed);
    }
    Ok((sized, doubts))
}

/// What can be known of a model before anything is planned.
fn open(experiment: &Experiment, model: &Model) -> PreparedModel {
    let readable = model.path.as_deref().filter(|_| experiment.backend.reads_models());
    let header = readable.and_then(|path| onnx::read_header(path).ok());
    let interface = readable.zip(header.as_ref()).map(|(path, header)| Interface::read(path, &header.signature));
    PreparedModel { declared: model.clone(), header, interface, ..PreparedModel::default() }
}

/// The cores of each of two arms. A script needs none, so where there are too few it runs anywhere.
fn duet_cores(experiment: &Experiment) -> Result<Option<[Vec<u32>; 2]>, DuetError> {
    let environment = backend::of(&experiment.backend).environment();
    let sets = environment.need(split_allowed_cores().map_err(DuetError::Cores))?;
    if let Some([first, _]) = &sets {
        environment.need(duet::check_threads(experiment, first.len()))?;
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_models_lack_is_told_once() {
        let problems = |count: u32| (1..=count).map(|number| (format!("m{number}"), ShapeError::NoBatch)).collect();
        let all = OpenDimensions::group(problems(6), 6);
        let problem = ShapeError::NoBatch;
        assert_eq!(open_dimensions(&all), format!("`m1`, `m2`, `m3` and 3 others: {problem}"));
        assert_eq!(open_remedies(&all), problem.remedy());
        // Sizes for all models would skip the third.
        let some = OpenDimensions::group(problems(2), 3);
        let remedy = format!("for `m1` and `m2`, each in its entry of `models`: {}", problem.remedy());
        assert_eq!(open_remedies(&some), remedy);
    }
}
