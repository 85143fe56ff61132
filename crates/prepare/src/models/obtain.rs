//! Models that are no files of the user's: made here, or fetched, and kept in the cache.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tracing::info;

use super::download::{Limits, Problem, download};
use super::exported::{self, ExportError};
use crate::seal::{self, Seal};
use experiment::{Experiment, Network, Source};
use files::digest;
use files::scratch::Scratch;
use onnx::zoo::{self, Settings, ZooError};

/// What happens meanwhile, for the terminal to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A file in the cache is not as it was put there, and is made or fetched again.
    Damaged(&'a Path),
    /// A network is being made.
    Making(&'a str),
    /// A model that Python makes is being exported.
    Exporting(&'a str),
    /// That is over: the model, and what exported it.
    Exported(&'a str, &'a str),
    /// A model is being fetched.
    Fetching(&'a str),
    /// So many bytes of it have come, of so many if the server says.
    Fetched(u64, Option<u64>),
}

/// Why a model is not there.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ObtainError {
    #[error("model `{model}`: {problem}")]
    Zoo { model: String, problem: ZooError },
    #[error("model `{model}`: {call} cannot be exported to ONNX: {reason}")]
    #[diagnostic(help("it is exported by the `python` of a runtime with `adapter: pytorch`, else by `python3`"))]
    Export { model: String, call: String, reason: String },
    #[error("model `{model}`: {url} cannot be fetched: {reason}")]
    #[diagnostic(help("download it by other means, and give the file as `path`"))]
    Fetch { model: String, url: String, reason: String },
    #[error("model `{model}`: {url} has the SHA-256 {found}, not the one in the specification")]
    #[diagnostic(help("if the change is intended, update `sha256`"))]
    CheckSum { model: String, url: String, found: String },
    #[error("interrupted while fetching {url}; nothing of it is kept")]
    Interrupted { url: String },
    #[error("cannot read {}", path.display())]
    #[diagnostic(help("remove it, or set PERFRUN_CACHE to another folder"))]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write to perfrun's cache at {}", path.display())]
    #[diagnostic(help("set PERFRUN_CACHE to a folder that can be written and has room"))]
    Cache { path: PathBuf, source: io::Error },
}

/// Gives every model of the experiment its file; none to one that Python makes where no runtime reads it, or where nothing of the
/// specification's may be run. `folder` is that of the specification. `stops` says whether the user wants to stop.
///
/// # Errors
///
/// A network that cannot be made, a server that does not answer, another check sum, a cache that cannot be written.
pub fn obtain(
    experiment: &mut Experiment,
    may_run: bool,
    folder: &Path,
    cache: &Path,
    stops: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), ObtainError> {
    for index in 0..experiment.models.len() {
        let model = &experiment.models[index];
        let (name, sha256, started) = (model.name.as_str(), model.sha256.as_deref(), Instant::now());
        let path = match &model.source {
            _ if model.path.is_some() => continue,
            Some(Source::Python(python)) if may_run && exported::is_needed(experiment) => {
                let made = exported::export(python, model.inputs.as_ref(), experiment, folder, cache, &mut |by| {
                    progress(by.map_or(Progress::Exporting(name), |by| Progress::Exported(name, by)));
                });
                Some(made.map_err(|problem| match problem {
                    ExportError::Refused(reason) => {
                        ObtainError::Export { model: name.to_owned(), call: python.call.clone(), reason }
                    }
                    ExportError::Cache(path, source) => ObtainError::Cache { path, source },
                })?)
            }
            Some(Source::Python(_)) | None => None,
            Some(source @ Source::Zoo { .. }) => network_of(name, source, cache, progress)?,
            Some(Source::Url(url)) => Some(fetch(name, url, sha256.unwrap_or_default(), cache, &mut |now| {
                progress(now);
                stops()
            })?),
        };
        if let Some(path) = &path {
            info!("model `{name}` is {}, after {:.1?}", path.display(), started.elapsed());
        }
        experiment.models[index].path = path;
    }
    Ok(())
}

/// Gives every built-in network of the experiment its file: nothing is fetched, and nothing of the specification runs.
///
/// # Errors
///
/// A network that cannot be made, a cache that cannot be written.
pub fn make_networks(experiment: &mut Experiment, cache: &Path) -> Result<(), ObtainError> {
    for model in experiment.models.iter_mut().filter(|model| model.path.is_none()) {
        if let Some(source) = &model.source {
            model.path = network_of(&model.name, source, cache, &mut |_| ())?;
        }
    }
    Ok(())
}

/// The file of a built-in network; of another source none.
fn network_of(
    model: &str,
    source: &Source,
    cache: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<PathBuf>, ObtainError> {
    let Source::Zoo { network, classes, image, cache: form } = source else { return Ok(None) };
    let settings = Settings { classes: *classes, image: *image, cache: *form, ..Settings::default() };
    network_file(model, *network, &settings, cache, progress).map(Some)
}

/// The file of a network with the usual seed, made where it is not there yet.
///
/// # Errors
///
/// Settings that it cannot have, a cache that cannot be written.
pub fn network_file(
    model: &str,
    network: Network,
    settings: &Settings,
    cache: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, ObtainError> {
    let folder = cache.join("zoo").join(format!("v{}", zoo::VERSION));
    let classes = settings.classes.map(|classes| format!("-{classes}")).unwrap_or_default();
    let image = settings.image.map(|side| format!("-image{side}")).unwrap_or_default();
    let usual = zoo::architecture_of(network).caches.first();
    let form = settings.cache.filter(|form| Some(form) != usual);
    let form = form.map(|form| format!("-{}", form.name())).unwrap_or_default();
    let path = folder.join(format!("{}{classes}{image}{form}.onnx", network.name()));
    match seal::look(&path) {
        Seal::Whole => return Ok(path),
        Seal::Broken => progress(Progress::Damaged(&path)),
        Seal::Missing => {}
    }
    let failed = |source| ObtainError::Cache { path: folder.clone(), source };
    let scratch = match std::fs::create_dir_all(&folder).and_then(|()| Scratch::within(&folder)) {
        Ok(scratch) => scratch,
        // In a cache that nobody may write to, what an earlier perfrun put there without a seal is taken as it is.
        Err(_) if seal::look(&path) == Seal::Missing && path.is_file() => return Ok(path),
        Err(source) => return Err(failed(source)),
    };
    progress(Progress::Making(network.name()));
    let problem = |problem| ObtainError::Zoo { model: model.to_owned(), problem };
    let made = zoo::build(zoo::architecture_of(network), settings).map_err(problem)?;
    let written = scratch.path().join("network.onnx");
    onnx::save(made, &written).map_err(failed)?;
    seal::seal(&scratch, &path, &digest::of_file(&written).map_err(failed)?).map_err(failed)?;
    std::fs::rename(&written, &path).map_err(failed)?;
    Ok(path)
}

/// A fetched file, named by its check sum in the cache. `stops` says whether the user wants to stop.
fn fetch(
    model: &str,
    url: &str,
    sha256: &str,
    cache: &Path,
    stops: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<PathBuf, ObtainError> {
    let folder = cache.join("downloads");
    let path = folder.join(format!("{sha256}.onnx"));
    let failed = |source| ObtainError::Cache { path: folder.clone(), source };
    if path.is_file() {
        let found = digest::of_unchanged_files(std::slice::from_ref(&path))
            .map_err(|(path, source)| ObtainError::Read { path, source })?;
        if found == sha256 {
            return Ok(path);
        }
        stops(Progress::Damaged(&path));
    }
    stops(Progress::Fetching(url));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let unfinished = Scratch::within(&folder).map_err(failed)?;
    let file =
        download(url, unfinished.path(), Limits::default(), &mut |done, total| stops(Progress::Fetched(done, total)));
    let file = file.map_err(|problem| match problem {
        Problem::Server(reason) => ObtainError::Fetch { model: model.to_owned(), url: url.to_owned(), reason },
        Problem::Disk(source) => failed(source),
        Problem::Interrupted => ObtainError::Interrupted { url: url.to_owned() },
    })?;
    let found = digest::of_file(file.path()).map_err(failed)?;
    if found != sha256 {
        return Err(ObtainError::CheckSum { model: model.to_owned(), url: url.to_owned(), found });
    }
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}
