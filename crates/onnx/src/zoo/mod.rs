//! Well-known architectures with seeded weights, so that a machine can be measured with nothing downloaded.
//!
//! Input: the name of an architecture and [`Settings`]. Output: a [`ModelProto`], the same bytes on every host. Structure,
//! parameters and multiply-accumulates are those of the published networks; weights are random, scaled so that
//! activations, logits and attention spread as in trained networks and differ from input to input, and that what rounding
//! does to one layer stays as small in the next (`moments` says how). So latency, memory and how far reduced precision
//! moves the outputs mean something; accuracy does not. Weights are scaled for the usual images: of small ones, outputs
//! differ more from one to the other, or less. Deliberately absent: trained weights, and writing files.

mod bert;
mod builder;
mod decoder;
mod densenet;
mod efficientnet;
mod gpt2;
mod layers;
mod mobilenet;
mod moments;
mod network;
mod resnet;
mod transformer;
mod vit;
mod weights;

use std::fmt;

use super::proto::{ModelProto, ValueInfoProto};
use super::{Signature, TensorType};
use builder::Builder;
pub use network::{CacheForm, Network};

/// Of the bytes that [`build`] makes. It is part of the keys of caches, and rises when the bytes of any model change.
pub const VERSION: u32 = 2;

/// The seed unless another is set.
const USUAL_SEED: u64 = 42;

/// More than any published classifier has; ImageNet-21k has 21 841.
const MOST_CLASSES: u32 = 100_000;

/// With it the position embeddings of ViT-B/16 are 805 MB, so that the model stays below the 2 GB of a protobuf file.
const LARGEST_SIDE: u32 = 8192;

/// A network that perfrun can make.
pub struct Architecture {
    /// What specifications call it: `resnet50`.
    pub name: &'static str,
    /// What reports call it: `ResNet-50`.
    pub title: &'static str,
    /// Trainable parameters with the usual classes: elements of all float initialisers but the running statistics of
    /// BatchNormalization.
    pub parameters: u64,
    /// Multiply-accumulates of Conv, Gemm and MatMul, for one item at the usual input and with the usual classes.
    pub macs: u64,
    /// The usual input, as text.
    pub input: &'static str,
    /// Classes unless the specification sets another number; `None` where the network is no classifier.
    pub classes: Option<u32>,
    /// The images that it takes; `None` where it takes none.
    pub image: Option<Image>,
    /// The forms of its cache of keys and values, the usual one first; none where it has no cache.
    pub caches: &'static [CacheForm],
    /// The paper, and where the structure and the counts are published.
    pub source: &'static str,
    /// Adds the network of these sizes to a graph.
    network: fn(&mut Builder, Sizes),
}

/// Square images, by their side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Unless another is set.
    pub side: u32,
    /// Every side is a multiple of it.
    pub patch: u32,
}

impl Image {
    /// Those of ImageNet, for a network that takes any.
    const USUAL: Self = Image { side: 224, patch: 1 };
}

/// What differs between networks of one architecture; 0 where it does not apply.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    classes: u64,
    side: u64,
    cache: CacheForm,
}

impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Architecture").field(&self.name).finish()
    }
}

static ARCHITECTURES: [Architecture; 11] = [
    densenet::DENSENET121,
    resnet::RESNET18,
    resnet::RESNET50,
    efficientnet::EFFICIENTNET_B0,
    mobilenet::MOBILENET_V2,
    vit::VIT_B_16,
    bert::BERT_BASE,
    bert::BERT_TINY,
    gpt2::GPT2_SMALL,
    decoder::GPT_TINY,
    decoder::GPT_SMALL,
];

/// Every architecture there is.
pub fn architectures() -> &'static [Architecture] {
    &ARCHITECTURES
}

/// The architecture of a network that a specification names.
pub fn architecture_of(network: Network) -> &'static Architecture {
    architecture(network.name()).expect("every network has its architecture, as a test checks")
}

pub(crate) fn architecture(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|architecture| architecture.name == name)
}

/// What may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of classes of a classifier; `None`: those of the published network.
    pub classes: Option<u32>,
    /// The side of its images; `None`: that of the published network.
    pub image: Option<u32>,
    /// The form of its cache; `None`: the usual one.
    pub cache: Option<CacheForm>,
    /// The seed of all weights.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { classes: None, image: None, cache: None, seed: USUAL_SEED }
    }
}

/// Why a model cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ZooError {
    #[error("`{architecture}` is not a classifier, so `classes` does not apply")]
    NoClassifier { architecture: &'static str },
    #[error("`{architecture}` cannot have {classes} classes: at least 1, at most {MOST_CLASSES}")]
    Classes { architecture: &'static str, classes: u32 },
    #[error("`{architecture}` takes no images, so `image` does not apply")]
    NoImages { architecture: &'static str },
    #[error(
        "`{architecture}` takes images in patches of {patch} x {patch}, so their side is a multiple of {patch}, not {side}"
    )]
    Patches { architecture: &'static str, patch: u32, side: u32 },
    /// Too small, so that nothing is left of them behind some layer, or too large.
    #[error("`{architecture}` cannot take images of {side} x {side}: at least {smallest}, at most {LARGEST_SIDE}")]
    Image { architecture: &'static str, side: u32, smallest: u32 },
    #[error("`{architecture}` has no cache of keys and values, so `cache` does not apply")]
    NoCache { architecture: &'static str },
    #[error("the cache of `{architecture}` has one form, `{}`, not `{}`", usual.name(), cache.name())]
    Cache { architecture: &'static str, usual: CacheForm, cache: CacheForm },
}

impl ZooError {
    /// The setting that it speaks of.
    pub fn setting(&self) -> &'static str {
        match self {
            ZooError::NoClassifier { .. } | ZooError::Classes { .. } => "classes",
            ZooError::NoCache { .. } | ZooError::Cache { .. } => "cache",
            ZooError::NoImages { .. } | ZooError::Patches { .. } | ZooError::Image { .. } => "image",
        }
    }
}

/// Makes the model, with all its weights in memory.
///
/// # Errors
///
/// Settings that do not fit the architecture.
pub fn build(architecture: &Architecture, settings: &Settings) -> Result<ModelProto, ZooError> {
    let seed = settings.seed;
    let description = format!("{}, with random weights of seed {seed} instead of trained ones", architecture.title);
    Ok(assemble(architecture, settings, usize::MAX)?.finish(&description, VERSION))
}

/// What a network is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Trainable parameters, in the sense of [`Architecture::parameters`].
    pub parameters: u64,
    /// Multiply-accumulates, in the sense of [`Architecture::macs`].
    pub macs: u64,
}

/// Counts a network with these settings, without drawing its weights.
///
/// # Errors
///
/// As [`build`].
#[cfg(test)]
pub(crate) fn counts(architecture: &Architecture, settings: &Settings) -> Result<Counts, ZooError> {
    Ok(assemble(architecture, settings, 0)?.counts())
}

/// What a network with these settings takes and gives, without drawing its weights.
///
/// # Errors
///
/// As [`build`].
pub fn signature(architecture: &Architecture, settings: &Settings) -> Result<Signature, ZooError> {
    let graph = assemble(architecture, settings, 0)?.finish("", VERSION).graph.unwrap_or_default();
    let tensors = |values: &[ValueInfoProto]| values.iter().map(TensorType::from).collect();
    Ok(Signature { inputs: tensors(&graph.input), outputs: tensors(&graph.output) })
}

/// Whether a network can be made with these settings, without making it.
///
/// # Errors
///
/// As [`build`].
pub fn check(architecture: &Architecture, settings: &Settings) -> Result<(), ZooError> {
    sizes(architecture, settings).map(drop)
}

/// Every network in every form of its cache, without the content of its weights.
#[cfg(test)]
pub(crate) fn outlines() -> impl Iterator<Item = ModelProto> {
    let forms = |architecture: &'static Architecture| {
        let usual = architecture.caches.is_empty().then_some(None);
        usual.into_iter().chain(architecture.caches.iter().copied().map(Some)).map(move |cache| {
            let settings = Settings { cache, ..Settings::default() };
            assemble(architecture, &settings, 0).expect("its own form").finish("", VERSION)
        })
    };
    architectures().iter().flat_map(forms)
}

/// The graph with the first rows of its weights.
fn assemble(architecture: &Architecture, settings: &Settings, most_rows: usize) -> Result<Builder, ZooError> {
    Ok(graph(architecture, settings.seed, sizes(architecture, settings)?, most_rows))
}

fn graph(architecture: &Architecture, seed: u64, sizes: Sizes, most_rows: usize) -> Builder {
    let mut builder = Builder::new(architecture.name, seed, most_rows);
    (architecture.network)(&mut builder, sizes);
    builder
}

/// What the settings mean for this architecture.
fn sizes(architecture: &Architecture, settings: &Settings) -> Result<Sizes, ZooError> {
    let name = architecture.name;
    let classes = match (architecture.classes, settings.classes) {
        (None, Some(_)) => return Err(ZooError::NoClassifier { architecture: name }),
        (_, Some(classes)) if classes == 0 || classes > MOST_CLASSES => {
            return Err(ZooError::Classes { architecture: name, classes });
        }
        (usual, chosen) => chosen.or(usual).unwrap_or_default(),
    };
    let cache = match (architecture.caches, settings.cache) {
        ([], Some(_)) => return Err(ZooError::NoCache { architecture: name }),
        ([usual, ..], Some(cache)) if !architecture.caches.contains(&cache) => {
            return Err(ZooError::Cache { architecture: name, usual: *usual, cache });
        }
        (_, chosen) => chosen.unwrap_or(CacheForm::Grown),
    };
    let sizes = |side: u32| Sizes { classes: u64::from(classes), side: u64::from(side), cache };
    let is_whole = |side: &u32| !graph(architecture, settings.seed, sizes(*side), 0).has_empty();
    match (architecture.image, settings.image) {
        (None, Some(_)) => Err(ZooError::NoImages { architecture: name }),
        (Some(Image { patch, .. }), Some(side)) if !side.is_multiple_of(patch) => {
            Err(ZooError::Patches { architecture: name, patch, side })
        }
        (Some(image), Some(side)) if side > LARGEST_SIDE || !is_whole(&side) => {
            let smallest = (image.patch..image.side).step_by(image.patch as usize).find(is_whole);
            Err(ZooError::Image { architecture: name, side, smallest: smallest.unwrap_or(image.side) })
        }
        (_, Some(side)) => Ok(sizes(side)),
        (usual, None) => Ok(sizes(usual.map_or(0, |image| image.side))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
