//! Converted models in perfrun's cache, each with a report of how it was made.
//!
//! A folder of its own for each, named by a hash of everything that decides its bytes; it appears whole, by renaming, so
//! that several perfruns can share the cache. Deliberately absent: removing anything, since another perfrun may use it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tracing::{debug, info};

use super::observed::{self, Ranges};
use super::recipe::{HalfRecipe, Recipe};
use experiment::Calibration;
use files::digest;
use files::scratch::Scratch;
use onnx::infer::infer;
use onnx::precision::{
    self, BlockQuantization, ConversionError, ConversionReport, DynamicQuantization, Half, HalfSettings, Keep,
    StaticQuantization,
};
use onnx::proto::ModelProto;
use onnx::{GraphError, OnnxError};
use reading::plain_file;

/// The version of what lies in the cache; another one is made again.
const FORMAT: u32 = 1;

/// A converted model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The model file.
    pub path: PathBuf,
    /// What the cache knows of it.
    pub entry: Entry,
    /// It was there already.
    pub was_cached: bool,
    /// Something was there that is not this, and was replaced.
    pub was_damaged: bool,
}

/// What the cache knows of a converted model: `entry.json` next to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of this file.
    pub format: u32,
    /// Version of the converter.
    pub converter: u32,
    /// SHA-256 of the model that it was made from, external data included.
    pub source: String,
    /// What was done.
    pub recipe: Recipe,
    /// SHA-256 of the file and of its external data.
    pub sha256: String,
    /// Their size.
    pub bytes: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What was converted and what was left.
    pub report: ConversionReport,
}

/// Why there is no converted model.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error(transparent)]
    Model(#[from] OnnxError),
    #[error("{0}")]
    Graph(#[from] GraphError),
    #[error("{problem}")]
    Conversion {
        #[from]
        problem: ConversionError,
    },
    #[error("calibration: {0}")]
    Calibration(String),
    #[error("cannot use perfrun's cache at {path}: {source}; set PERFRUN_CACHE to a folder that can be written", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Runs the model in the file, whose outputs are what has to be observed, and says what ranges they have.
pub(super) type Observe<'a> = &'a mut dyn FnMut(&Path) -> Result<Ranges, String>;

/// The model at `path`, whose content has the hash `source`, converted by `recipe`: from the cache, or made now.
/// What is unfinished is in a folder of the cache's file system.
///
/// # Errors
///
/// [`CacheError`]: a model that cannot be read or converted, a cache that cannot be written.
pub(super) fn convert(
    unfinished: &Path,
    path: &Path,
    source: &str,
    recipe: &Recipe,
    cache: &Path,
    observe: Observe<'_>,
) -> Result<Made, CacheError> {
    let models = cache.join("models");
    let folder = models.join(key(source, recipe));
    if let Some(made) = cached(&folder, source, recipe) {
        info!("{} was converted before: {}", path.display(), made.path.display());
        return Ok(made);
    }
    debug!("{} is not in {}", path.display(), folder.display());
    let was_damaged = folder.exists();
    let failed = |source| CacheError::Io { path: models.clone(), source };
    std::fs::create_dir_all(&models).map_err(failed)?;
    let scratch = Scratch::within(unfinished).map_err(failed)?;
    let started = Instant::now();
    let model = onnx::load(path)?;
    onnx::check_graph(&model)?;
    let precision::Conversion { model, mut report } = carry_out(model, recipe, scratch.path(), observe)?;
    let unknown = onnx::unknown_fields(path)?;
    if !unknown.is_empty() {
        let fields = unknown.join(", ");
        report.note(format!("the converted model lacks what a newer version of the format added: {fields}"));
    }
    let written = onnx::save(model, &scratch.path().join(FILE)).map_err(failed)?;
    let entry = Entry {
        format: FORMAT,
        converter: precision::VERSION,
        source: source.to_owned(),
        recipe: recipe.clone(),
        sha256: digest::of_files(&written).map_err(|(path, source)| CacheError::Io { path, source })?,
        bytes: written.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum(),
        took_ms: started.elapsed().as_millis() as u64,
        report,
    };
    let text = serde_json::to_vec_pretty(&entry).expect("an entry has string keys only");
    std::fs::write(scratch.path().join(ENTRY), text).map_err(failed)?;
    publish(scratch, &folder, source, recipe).map_err(failed)?;
    info!("{} was converted in {:.1?}: {}", path.display(), started.elapsed(), folder.join(FILE).display());
    Ok(Made { path: folder.join(FILE), entry, was_cached: false, was_damaged })
}

/// Bytes of a model up to which a conversion is tried to find out whether it has anything to do, so that planning stays
/// fast. Larger models have large weights as a rule.
const MOST_TRIED: u64 = 64 << 20;

/// Why the model at `path` has nothing that the recipe converts; `None` where it has, and where only the conversion itself
/// shows it. `graph` is the model without its weights.
pub fn nothing_to_convert(path: &Path, graph: &ModelProto, bytes: u64, recipe: &Recipe) -> Option<String> {
    if bytes > MOST_TRIED || recipe.has_large_weight(graph) {
        return None;
    }
    let model = onnx::load(path).ok()?;
    onnx::check_graph(&model).ok()?;
    // What has activations to observe has something to convert.
    let scratch = Scratch::new().ok()?;
    match carry_out(model, recipe, scratch.path(), &mut |_| Err(String::new())) {
        Err(CacheError::Conversion { problem }) if problem.is_nothing() => Some(problem.to_string()),
        _ => None,
    }
}

/// The model's name in its folder.
const FILE: &str = "model.onnx";

/// What is known of it, next to it.
const ENTRY: &str = "entry.json";

/// The name of the folder: a hash of everything that decides the bytes.
fn key(source: &str, recipe: &Recipe) -> String {
    let recipe = serde_json::to_string(recipe).expect("a recipe has string keys only");
    let text = format!("{FORMAT}\0{}\0{source}\0{recipe}", precision::VERSION);
    digest::of_text(&text)[..32].to_owned()
}

/// The model whose content has the hash `source`, converted by `recipe`, if it is in the cache.
pub(super) fn made(source: &str, recipe: &Recipe, cache: &Path) -> Option<Made> {
    cached(&cache.join("models").join(key(source, recipe)), source, recipe)
}

/// What lies in a folder of the cache, if it is whole and what is looked for.
fn cached(folder: &Path, source: &str, recipe: &Recipe) -> Option<Made> {
    let entry: Entry = serde_json::from_str(&plain_file::text(&folder.join(ENTRY)).ok()?).ok()?;
    let path = folder.join(FILE);
    let mut files = vec![path.clone()];
    files.extend(Some(folder.join(format!("{FILE}.data"))).filter(|data| data.is_file()));
    let is_wanted = (entry.format, entry.converter) == (FORMAT, precision::VERSION)
        && (entry.source.as_str(), &entry.recipe) == (source, recipe);
    let is_whole = is_wanted && digest::of_unchanged_files(&files).is_ok_and(|sha256| sha256 == entry.sha256);
    is_whole.then_some(Made { path, entry, was_cached: true, was_damaged: false })
}

/// Renames the folder to its final path. One that another perfrun put there meanwhile is as good; a damaged one is
/// replaced.
fn publish(mut scratch: Scratch, folder: &Path, source: &str, recipe: &Recipe) -> io::Result<()> {
    let taken = scratch.rename_to(folder);
    if taken.is_ok() || cached(folder, source, recipe).is_some() {
        return Ok(());
    }
    match std::fs::symlink_metadata(folder) {
        Ok(there) if there.is_dir() => std::fs::remove_dir_all(folder)?,
        Ok(_) => std::fs::remove_file(folder)?,
        // Then it was not in the way.
        Err(_) => return taken,
    }
    match scratch.rename_to(folder) {
        Err(_) if cached(folder, source, recipe).is_some() => Ok(()),
        outcome => outcome,
    }
}

fn carry_out(
    mut model: ModelProto,
    recipe: &Recipe,
    scratch: &Path,
    observe: Observe<'_>,
) -> Result<precision::Conversion, CacheError> {
    precision::check_initialisers(&model)?;
    precision::drop_empty_names(&mut model);
    match recipe {
        Recipe::Fp16(recipe) => half(model, Half::Fp16, recipe),
        Recipe::Bf16(recipe) => half(model, Half::Bf16, recipe),
        Recipe::Int8Dynamic { keep, reduce_range } => {
            let (keep, reduce_range) = (Keep::new(keep), *reduce_range);
            let options = DynamicQuantization { keep, reduce_range, ..DynamicQuantization::default() };
            Ok(precision::quantize_dynamic(model, &options)?)
        }
        Recipe::Int8Static { keep, reduce_range, calibration, .. } => calibrated(
            precision::prepare_static(model)?.keeping(Keep::new(keep)),
            &StaticQuantization { reduce_range: *reduce_range, ..StaticQuantization::default() },
            *calibration,
            scratch,
            observe,
        ),
        Recipe::Int4 { keep, block } => {
            let (keep, block_size) = (Keep::new(keep), *block);
            let options = BlockQuantization { keep, block_size, ..BlockQuantization::default() };
            Ok(precision::quantize_blocks(model, &options)?)
        }
    }
}

fn half(model: ModelProto, target: Half, recipe: &HalfRecipe) -> Result<precision::Conversion, CacheError> {
    let types = infer(&model, &[]);
    let settings = HalfSettings { target, io: recipe.io, keep: Keep::new(&recipe.keep), provider: recipe.provider };
    Ok(precision::to_half(model, &types, &settings)?)
}

/// Observes the activations of the model and quantises it by them.
fn calibrated(
    prepared: precision::Prepared,
    options: &StaticQuantization,
    calibration: Calibration,
    scratch: &Path,
    observe: Observe<'_>,
) -> Result<precision::Conversion, CacheError> {
    let names = prepared.to_calibrate()?;
    if names.is_empty() {
        // Running it could only fail for a reason that is not why nothing can be converted.
        return Ok(prepared.quantize(&Ranges::new(), options)?);
    }
    let path = scratch.join("observed.onnx");
    let (observed, given) = match calibration {
        Calibration::MinMax => observed::with_extremes(prepared.model().clone(), &names),
        Calibration::Percentile | Calibration::Entropy => {
            observed::with_inputs_as_outputs(prepared.with_outputs(&names), &names)
        }
    };
    let written = onnx::save(observed, &path).map_err(|source| CacheError::Io { path: path.clone(), source })?;
    let mut ranges = observe(&path).map_err(CacheError::Calibration)?;
    given.rename(&mut ranges);
    // What was observed is no part of what is kept; where it cannot be removed, the cache is a little larger.
    written.iter().for_each(|file| drop(std::fs::remove_file(file)));
    Ok(prepared.quantize(&ranges, options)?)
}
