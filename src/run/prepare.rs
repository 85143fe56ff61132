//! From an experiment to a plan that this host can carry out: the matrix, and what devices and model files rule out.
//! Devices are tried in processes of their own.
//!
//! No record is written here; [`super::create`] makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::convertible;
use super::dataset::{self, DatasetError};
use super::devices;
use super::duet::{self, DuetError};
use super::error::{OpenDimensions, PrepareError};
use super::model::PreparedModel;
use super::programs;
use base::machine::host;
use base::machine::host::cores::split_allowed_cores;
use base::machine::kernel::Kernel;
use base::wording::list;
use experiment::{
    BATCH, Design, Device, Experiment, InputIndex, InputPoint, Model, ModelIndex, Precision, Source, Values, Variant,
    VariantIndex, slowed_by_spinning_stop,
};
use onnx::decoder::{DecoderInput, Role};
use onnx::precision::ProviderClass;
use onnx::{Interface, ShapeError, Signature};
use plan::{self, Cell, Facts, Plan, Skip, SkipKind};
use prepare::runtime::Libraries;
use worker::backend;
use worker::{Interrupts, StoppedAtOnce};

/// A plan with what host and files say about it; nothing is written yet.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The matrix with its skips.
    pub plan: Plan,
    /// The models, by index on their axis.
    pub models: Vec<PreparedModel>,
    /// Why a device cannot be used here, by index on the devices axis.
    pub devices: Vec<Option<Skip>>,
    /// Why a program cannot be used here, by index among the runtimes.
    pub programs: BTreeMap<usize, Skip>,
    /// The two sets of processors of a duet.
    pub core_sets: Option<[Vec<u32>; 2]>,
    /// What is unusual about files that inputs are fed from, and about names of variants.
    pub doubts: Vec<String>,
}

impl Prepared {
    /// Tries every device but the CPU that a cell still needs, with each of its runtimes, and skips the cells of those that
    /// cannot be used.
    ///
    /// # Errors
    ///
    /// If the user stopped it.
    pub(crate) fn try_devices(
        &mut self,
        experiment: &Experiment,
        libraries: &Libraries,
        executable: &Path,
        interrupts: &Interrupts,
    ) -> Result<(), StoppedAtOnce> {
        let runtime_and_device =
            |cell: &Cell| (experiment.runtime_index(cell.variant(), cell.runtime()).index(), cell.device().index());
        let needed: BTreeSet<(usize, usize)> = self.plan.runnable().map(|(_, cell)| runtime_and_device(cell)).collect();
        for (index, program) in &libraries.programs {
            let Some(runtime) = experiment.runtimes.get(*index) else { continue };
            let cells = self.plan.runnable().map(|(_, cell)| cell).filter(|cell| runtime_and_device(cell).0 == *index);
            let variants: BTreeSet<VariantIndex> = cells.map(Cell::variant).collect();
            let variants: Vec<&Variant> = variants.into_iter().map(|variant| &experiment.variants[variant]).collect();
            let answer = programs::ask(runtime, program, &variants, experiment.measure.timeout, interrupts)?;
            let cells = self.plan.runnable().filter(|(_, cell)| runtime_and_device(cell).0 == *index);
            let skip = |cell: &Cell| answer.skip(&experiment.devices[cell.device()], self.plan.input_of(cell));
            let skips: Vec<(usize, Skip)> = cells.filter_map(|(at, cell)| Some((at, skip(cell)?))).collect();
            for (cell, skip) in skips {
                if skip.kind == SkipKind::Device {
                    self.programs.entry(*index).or_insert_with(|| skip.clone());
                }
                self.plan.mark_skipped(cell, skip);
            }
        }
        for (runtime, index) in needed {
            let device = &experiment.devices[index];
            let Some(Some(library)) = libraries.runtimes.get(runtime).filter(|_| !device.is_cpu()) else { continue };
            for cell in 0..self.plan.cells.len() {
                let at = &self.plan.cells[cell];
                let is_here = at.skip.is_none() && runtime_and_device(at) == (runtime, index);
                let load = self.plan.input_of(at).load;
                let unable = || {
                    devices::waits_for_graphs(experiment, at, library)
                        .or_else(|| devices::serves_one_at_a_time(experiment, at, load))
                };
                if let Some(skip) = is_here.then(unable).flatten() {
                    self.plan.mark_skipped(cell, skip);
                }
            }
            let plugin = libraries.plugins.get(&device.provider).map(|plugin| plugin.path.as_path());
            let trial = devices::Trial { device, library: &library.path, plugin, executable };
            let Some(absence) = trial.carry_out(interrupts)? else { continue };
            for cell in 0..self.plan.cells.len() {
                let at = &self.plan.cells[cell];
                if at.skip.is_none() && runtime_and_device(at) == (runtime, index) {
                    self.plan.mark_skipped(cell, absence.clone());
                }
            }
            self.devices[index].get_or_insert(absence);
        }
        Ok(())
    }

    /// Why devices and programs of cells that would otherwise run cannot be used here.
    pub(crate) fn absent_devices(&self) -> impl Iterator<Item = &Skip> {
        let used = |device: usize, absence: &Skip| {
            self.plan.cells.iter().any(|cell| cell.device().index() == device && self.plan.skip(cell) == Some(absence))
        };
        let absences = self.devices.iter().enumerate().filter_map(|(device, skip)| Some((device, skip.as_ref()?)));
        let devices = absences.filter(move |(device, absence)| used(*device, absence)).map(|(_, absence)| absence);
        devices.chain(self.programs.values())
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
    let opens_library = backend::kind_of(&experiment.backend).library().is_some();
    let why_not = |device: &Device| devices::why_not(device, &Kernel::here()).filter(|_| opens_library);
    let devices: Vec<Option<Skip>> = experiment.devices.iter().map(why_not).collect();
    models.iter().try_for_each(check_decoder)?;
    for (index, model) in models.iter_mut().enumerate() {
        model.data = dataset::of_model(experiment, index, model.interface.as_ref().map(Interface::signature))?;
    }
    let (inputs, mut doubts) = feed(experiment, &plan, &mut models)?;
    doubts.extend(misnamed(experiment, &models));
    let classes = experiment.devices.iter().map(|device| ProviderClass::of(&device.provider)).collect();
    let unconvertible = convertible::examine(experiment, &models, &plan)?;
    let lacking = |problems| PrepareError::OpenDimensions(OpenDimensions::group(problems, experiment.models.len()));
    let interfaces = models.iter().map(|model| model.interface.clone()).collect();
    let caches = experiment.variants.iter().map(|variant| variant.cache).collect();
    let facts = Facts { models: interfaces, devices, inputs, classes, caches, unconvertible };
    for ((model, input), shapes) in plan::annotate(&mut plan, &facts).map_err(lacking)? {
        models[model.index()].shapes.insert(input, shapes);
    }
    programs::skip_foreign_models(experiment, &mut plan);
    skip_loops(experiment, &mut plan);
    let mut core_sets = None;
    if experiment.measure.design == Design::Duet {
        duet::check_groups(&mut plan)?;
        core_sets = duet_cores(experiment)?;
    }
    check_threads(experiment, core_sets.as_ref())?;
    plan::place_controls(&mut plan, experiment.compare.aa);
    let programs = BTreeMap::new();
    Ok(Prepared { plan, models, devices: facts.devices, programs, core_sets, doubts })
}

/// Leaves out greedy loops of ONNX Runtime on other devices than the CPU: what is bound there is a copy.
fn skip_loops(experiment: &Experiment, plan: &mut Plan) {
    for index in 0..plan.cells.len() {
        let cell = plan.cells[index];
        let is_loop = plan.input_of(&cell).call().is_some_and(|call| call.generated > 0);
        let device = &experiment.devices[cell.device()];
        let runtime = experiment.runtimes.get(experiment.runtime_index(cell.variant(), cell.runtime()).index());
        let is_program = runtime.is_some_and(|runtime| runtime.program.is_some());
        if is_loop && !device.is_cpu() && !is_program {
            let reason = format!("greedy loops run on the CPU only, not on {}", device.label());
            let remedy = Some("measure steps there: `decode: { at: ... }`".to_owned());
            plan.mark_skipped(index, Skip { kind: SkipKind::Device, reason, remedy });
        }
    }
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
    let pairs: BTreeSet<(ModelIndex, InputIndex)> =
        plan.cells.iter().map(|cell| (cell.model(), cell.input())).collect();
    for (at, input) in pairs {
        let (point, model) = (&plan.axes.inputs()[input], &mut models[at.index()]);
        let name = experiment.models[at].name.clone();
        let file = point.file.as_ref().map(|file| file.path.clone());
        let misfit = |problem: DatasetError| PrepareError::Feed {
            model: name.clone(),
            input: point.name.clone(),
            file: file.clone(),
            problem: Box::new(problem),
        };
        let Some(signature) = model.interface.as_ref().map(|interface| interface.signature().clone()) else {
            dataset::open(point).map_err(misfit)?;
            continue;
        };
        if point.decode {
            let in_file = dataset::names(point).map_err(misfit)?;
            let of_prompts = decoder_prompts(point, model.interface.as_ref(), &in_file);
            if let Some((ids, vocabulary, of_prompts)) = of_prompts {
                let is_fed = |name: &&String| of_prompts.shapes.contains_key(*name);
                if let Some(array) = in_file.iter().find(|name| in_file.len() > 1 && !is_fed(name)).cloned() {
                    return Err(misfit(DatasetError::NotFed { array }));
                }
                let (_, fed) = dataset::feed(&of_prompts, &signature, None).map_err(misfit)?;
                fed.check_ids(&ids, vocabulary, experiment.measure.inputs).map_err(misfit)?;
                model.fed.insert(input, fed);
            }
            continue;
        }
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

/// Where a decoder takes prompts from a file: the input of ids, how many there are, and a point that feeds these, what the
/// file has of an encoder, and nothing else.
fn decoder_prompts(
    point: &InputPoint,
    interface: Option<&Interface>,
    in_file: &[String],
) -> Option<(String, u64, InputPoint)> {
    let decoder = interface?.decoder()?.ok()?;
    let (call, file) = (point.call()?, point.file.clone()?);
    let is_ids = |input: &&DecoderInput| input.role == Role::Ids;
    let ids = decoder.inputs.iter().find(is_ids)?.name.clone();
    let is_of_encoder = |input: &DecoderInput| matches!(input.role, Role::EncoderStates | Role::EncoderMask);
    let (mut shapes, mut others) = (BTreeMap::from([(ids.clone(), vec![call.batch, call.tokens])]), Vec::new());
    for (input, tensor) in decoder.inputs.iter().zip(decoder.shapes(&call, 0).ok()?) {
        if is_of_encoder(input) && in_file.contains(&input.name) {
            shapes.insert(input.name.clone(), tensor.shape);
        } else if input.name != ids {
            others.push(input.name.clone());
        }
    }
    let fed = InputPoint {
        name: point.name.clone(),
        dimensions: [(BATCH.to_owned(), call.batch)].into(),
        shapes,
        tensors: others.into_iter().map(|input| (input, Values::Random)).collect(),
        file: Some(file),
        ..InputPoint::default()
    };
    Some((ids, decoder.vocabulary.unwrap_or(u64::MAX), fed))
}

/// What can be known of a model before anything is planned.
fn open(experiment: &Experiment, model: &Model) -> PreparedModel {
    let readable = model.path.as_deref().filter(|_| experiment.backend.reads_models());
    let header = readable.and_then(|path| onnx::read_header(path).ok());
    let of_file = readable
        .zip(header.as_ref())
        .map(|(path, header)| Interface::read(path, &header.signature, model.decoder.as_ref()));
    let of_python = || match &model.source {
        Some(Source::Python(model)) => {
            Some(Interface::of_signature(Signature { inputs: model.inputs.clone(), outputs: Vec::new() }))
        }
        _ => None,
    };
    let interface = of_file.or_else(of_python);
    PreparedModel { declared: model.clone(), header, interface, ..PreparedModel::default() }
}

/// Refuses names of a decoder's tensors that the file does not have, or that make no decoder of it.
fn check_decoder(model: &PreparedModel) -> Result<(), PrepareError> {
    let Some(interface) = model.interface.as_ref().filter(|_| model.declared.decoder.is_some()) else { return Ok(()) };
    let problem = match interface.decoder() {
        Some(Ok(_)) => return Ok(()),
        Some(Err(problem)) => ShapeError::Decoder(problem.clone()),
        None => ShapeError::NoDecoder,
    };
    Err(PrepareError::Decoder { model: model.declared.name.clone(), problem: Box::new(problem) })
}

/// Checks the numbers of threads that the design meets here, which a specification may leave to the machine.
fn check_threads(experiment: &Experiment, core_sets: Option<&[Vec<u32>; 2]>) -> Result<(), PrepareError> {
    let Experiment { measure, variants, runtimes, .. } = experiment;
    if !measure.design.keeps_several_alive() || !experiment.backend.reads_models() {
        return Ok(());
    }
    let default = core_sets.map_or_else(|| host::describe().default_threads(), |sets| sets[0].len() as u32);
    let slowed = slowed_by_spinning_stop(measure.design, variants, runtimes, Some(default));
    slowed.map_or(Ok(()), |why| Err(PrepareError::Slowed(why)))
}

/// Variants called after float32 of models that are stored as something else.
fn misnamed<'a>(experiment: &'a Experiment, models: &'a [PreparedModel]) -> impl Iterator<Item = String> + 'a {
    let of_model = |model: &'a PreparedModel| {
        let stored = model.header.as_ref().and_then(|header| header.stored.as_ref());
        let file = model.path().and_then(Path::file_name).map(|name| name.to_string_lossy());
        let as_stored = experiment.variants.iter().filter(|variant| model.declared.is_run_as_stored(variant));
        let named = as_stored.filter(|variant| variant.name.starts_with(Precision::Fp32.name()));
        let names: Vec<String> = named.map(|variant| format!("`{}`", variant.name)).collect();
        let (word, run) = if names.len() == 1 { ("variant", "runs") } else { ("variants", "run") };
        let (stored, file) = stored.zip(file).filter(|_| !names.is_empty())?;
        Some(format!("{word} {} {run} {file} as stored: it holds {}", list(&names), stored.in_sentence()))
    };
    models.iter().filter_map(of_model)
}

/// The cores of each of two cells in a duet. A script needs none, so where there are too few it runs anywhere.
fn duet_cores(experiment: &Experiment) -> Result<Option<[Vec<u32>; 2]>, DuetError> {
    let environment = backend::kind_of(&experiment.backend).environment();
    let sets = environment.need(split_allowed_cores().map_err(DuetError::Cores))?;
    if let Some([first, _]) = &sets {
        environment.need(duet::check_threads(experiment, first.len()))?;
    }
    Ok(sets)
}
