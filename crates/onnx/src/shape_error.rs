//! Why an input point cannot be given to a model, and what the author of the spec can do about it.
//!
//! Input: what `resolve` found. Output: a reason (`Display`) and a remedy, both for `plan`'s list of skipped cells.
//! Deliberately absent: deciding; `resolve` does.

use std::collections::BTreeMap;
use std::fmt;

use super::decoder::DecoderError;
use super::signature::ElementType;
use reading::yaml::scalar;

/// What is proposed for a dimension that nothing is known of.
pub(super) const USUAL_SIZE: u64 = 128;

/// A dimension that neither the file nor the input point gives a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeDimension {
    /// The input that it belongs to.
    pub tensor: String,
    /// Its axis in that input's shape, from 0.
    pub index: usize,
    /// Its name in the file.
    pub name: Option<String>,
    /// The key under `inputs` that would set it: its name, `batch`, or the name of what its size is computed from; `None`:
    /// only a whole shape can.
    pub key: Option<String>,
    /// A size to propose for that key.
    pub size: u64,
}

/// A size that a node of the graph cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The node's operator and name.
    pub node: String,
    /// The value that does not fit.
    pub value: String,
    /// Its dimension, from 0; `None`: its number of elements.
    pub axis: Option<usize>,
    /// The size.
    pub has: u64,
    /// What would fit.
    pub wants: String,
    /// The weight, value or attribute that it does not fit.
    pub by: String,
    /// The dimension of an input that the size comes from, where it is known.
    pub open: Option<MisfitDimension>,
}

/// A dimension of an input, whose size a node cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisfitDimension {
    /// The input.
    pub tensor: String,
    /// Its axis in that input's shape, from 0.
    pub index: usize,
    /// Its name in the file.
    pub name: Option<String>,
    /// Its size.
    pub has: u64,
    /// The size that fits.
    pub wants: u64,
}

/// As messages have it: ``Conv gets `x` with 8 in dimension 1, and `w` asks for 4``.
impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { node, value, axis, has, wants, by, open } = self;
        match (open, axis) {
            (Some(MisfitDimension { tensor, index, name, has, wants }), _) => {
                let dimension_text = format!("dimension {index} of `{tensor}`");
                let dimension_text =
                    name.as_ref().map_or(dimension_text.clone(), |name| format!("`{name}` ({dimension_text})"));
                write!(f, "{dimension_text} is {has}, and `{by}` of {node} asks for {wants}")
            }
            (None, Some(axis)) => {
                write!(f, "{node} gets `{value}` with {has} in dimension {axis}, and `{by}` asks for {wants}")
            }
            (None, None) => write!(f, "{node} gets `{value}` with {has} elements, and `{by}` asks for {wants}"),
        }
    }
}

impl Misfit {
    fn remedy(&self) -> String {
        match &self.open {
            Some(MisfitDimension { name: Some(name), wants, .. }) => format!("set `{}: {wants}`", scalar(name)),
            Some(MisfitDimension { tensor, index, wants, .. }) => {
                format!("give `{tensor}` a shape with {wants} in dimension {index}")
            }
            None => "give the model inputs of other sizes".to_owned(),
        }
    }
}

/// Why a model cannot take an input point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ShapeError {
    #[error("the model has no input `{tensor}`")]
    UnknownTensor { tensor: String, nearest: Option<String>, known: Vec<String> },
    #[error("the shape {given:?} of `{tensor}` has {} dimensions, and the file says {expected}", given.len())]
    WrongRank { tensor: String, given: Vec<u64>, expected: String },
    #[error("dimension {index} of `{tensor}` is fixed at {fixed} in the file, but the spec asks for {asked}")]
    FixedDimension {
        tensor: String,
        /// The dimension, from 0.
        index: usize,
        fixed: u64,
        asked: u64,
    },
    #[error("the leading dimension of `{tensor}` is fixed at {fixed} in the file, but the spec asks for batch {asked}")]
    FixedBatch { tensor: String, fixed: u64, asked: u64, open: Option<String> },
    #[error("the model has no dimension that `batch` could refer to")]
    NoBatch,
    #[error("the batch must be at least 1, not 0")]
    EmptyBatch,
    #[error("no input of the model has a dimension `{dimension}`")]
    UnknownDimension { dimension: String, nearest: Option<String>, known: Vec<String> },
    #[error("`{dimension}: {asked}` has no effect: `shapes` gives every input that has this dimension another size")]
    Overridden { dimension: String, asked: u64 },
    #[error("{} {} no size", list(dimensions), if dimensions.len() == 1 { "has" } else { "have" })]
    FreeDimensions {
        dimensions: Vec<FreeDimension>,
        /// A whole shape for every input that has one of them, with made-up sizes instead of unknown ones.
        example: BTreeMap<String, Vec<u64>>,
    },
    #[error("`{dimension}` (dimension {index} of `{tensor}`) would be {value} with {}", sizes(parts))]
    NoWholeSize {
        tensor: String,
        /// Its axis in that input's shape, from 0.
        index: usize,
        dimension: String,
        value: String,
        parts: BTreeMap<String, u64>,
    },
    #[error("{0}")]
    Misfit(Box<Misfit>),
    #[error("the input `{tensor}` is {role} of {node}: random values are not valid there")]
    NoRandomValues {
        tensor: String,
        /// What it is: `the shape`.
        role: &'static str,
        node: String,
    },
    #[error("the file does not say how many dimensions these inputs have: {}", names(tensors))]
    UnknownRank { tensors: Vec<String> },
    #[error("the input `{tensor}` is of type {element}, which perfrun cannot fill")]
    UnsupportedType { tensor: String, element: ElementType },
    #[error("the input `{tensor}` would have the shape {shape:?}: more than 1 TiB")]
    TooLarge { tensor: String, shape: Vec<u64> },
    #[error("the model takes no tokens with a cache of earlier ones, so `decode` does not apply")]
    NoDecoder,
    #[error("{0}")]
    Decoder(DecoderError),
}

impl ShapeError {
    /// What to do about it, as a sentence without a capital and a period.
    pub fn remedy(&self) -> String {
        match self {
            ShapeError::UnknownTensor { nearest: Some(nearest), .. }
            | ShapeError::UnknownDimension { nearest: Some(nearest), .. } => format!("write `{}`", scalar(nearest)),
            ShapeError::UnknownTensor { known, .. } => format!("its inputs are {}", names(known)),
            ShapeError::UnknownDimension { known, .. } if known.is_empty() => {
                "leave it out, or give whole shapes: no free dimension of the file has a name".to_owned()
            }
            ShapeError::UnknownDimension { known, .. } => {
                format!("dimensions that can be set by name: {}", names(known))
            }
            ShapeError::WrongRank { .. } => "give one size for each dimension of the file".to_owned(),
            ShapeError::FixedDimension { fixed, .. } => {
                format!("export it with a dynamic dimension, or write {fixed} there")
            }
            ShapeError::FixedBatch { tensor, fixed, open: Some(open), .. } => format!(
                "if `batch` refers to `{open}` only, give `{tensor}` its own shape: \
                 `shapes: {{ {}: [{fixed}, ...] }}`",
                scalar(tensor)
            ),
            ShapeError::FixedBatch { fixed, .. } => {
                format!("export it with a dynamic batch, or ask for batch {fixed}")
            }
            ShapeError::NoBatch => "leave `batch` out for this model".to_owned(),
            ShapeError::EmptyBatch => "ask for batch 1 or more".to_owned(),
            ShapeError::Overridden { dimension, .. } => {
                format!("leave `{dimension}` out, or remove the input it is meant for from `shapes`")
            }
            ShapeError::FreeDimensions { dimensions, example } => free_remedy(dimensions, example),
            ShapeError::NoWholeSize { dimension, parts, .. } => {
                let parts: Vec<String> = parts.keys().cloned().collect();
                format!("give {} another size, or set `{dimension}`", names(&parts))
            }
            ShapeError::Misfit(misfit) => misfit.remedy(),
            ShapeError::NoRandomValues { tensor, .. } => {
                format!("give it valid ones in an entry of `inputs`: `values: {{ {}: [...] }}`", scalar(tensor))
            }
            ShapeError::UnknownRank { tensors } => {
                whole_shapes(tensors.iter().map(|tensor| (tensor, vec![1, USUAL_SIZE])))
            }
            ShapeError::UnsupportedType { .. } => {
                "leave the model out, or cut the graph after this input so that it takes numbers".to_owned()
            }
            ShapeError::TooLarge { .. } => "ask for smaller sizes".to_owned(),
            ShapeError::NoDecoder => {
                "name them, as `decoder: { inputs: { input_ids: NAME, past_key_names: \"k_%d\" } }` of its model, or give \
                 sizes below `inputs`"
                    .to_owned()
            }
            ShapeError::Decoder(problem) => problem.remedy(),
        }
    }
}

impl ShapeError {
    /// Proposed sizes by key, where keys can set everything that is open.
    pub fn proposed(dimensions: &[FreeDimension]) -> Option<BTreeMap<&str, u64>> {
        let mut proposed = BTreeMap::new();
        for free in dimensions {
            let size = proposed.entry(free.key.as_deref()?).or_insert(free.size);
            *size = free.size.max(*size);
        }
        Some(proposed)
    }
}

/// Keys where keys can set everything, else whole shapes.
fn free_remedy(dimensions: &[FreeDimension], example: &BTreeMap<String, Vec<u64>>) -> String {
    match ShapeError::proposed(dimensions) {
        Some(keys) => {
            let mut keys: Vec<(&str, u64)> = keys.into_iter().collect();
            keys.sort_by_key(|(key, _)| *key != "batch");
            let entries: Vec<String> = keys.iter().map(|(key, size)| format!("{}: {size}", scalar(key))).collect();
            format!("set them, for example `inputs: {{ {} }}`", entries.join(", "))
        }
        None => whole_shapes(example.iter().map(|(tensor, shape)| (tensor, shape.clone()))),
    }
}

fn whole_shapes<'a>(shapes: impl Iterator<Item = (&'a String, Vec<u64>)>) -> String {
    let entries: Vec<String> = shapes.map(|(tensor, shape)| format!("{}: {shape:?}", scalar(tensor))).collect();
    format!("give whole shapes, for example `inputs: [{{ name: b1, shapes: {{ {} }} }}]`", entries.join(", "))
}

fn names(known: &[String]) -> String {
    known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// `` `past` = 7, `sequence` = 128 ``
fn sizes(parts: &BTreeMap<String, u64>) -> String {
    parts.iter().map(|(name, size)| format!("`{name}` = {size}")).collect::<Vec<_>>().join(", ")
}

/// `` `sequence` (dimension 1 of `ids`), dimension 2 of `x` ``
fn list(dimensions: &[FreeDimension]) -> String {
    let dimension_text = |dimension: &FreeDimension| format!("dimension {} of `{}`", dimension.index, dimension.tensor);
    let text = |dimension: &FreeDimension| match &dimension.name {
        Some(name) => format!("`{name}` ({})", dimension_text(dimension)),
        None => dimension_text(dimension),
    };
    let mut texts: Vec<String> = dimensions.iter().map(text).collect();
    // One that is computed from several that are open is listed once.
    texts.dedup();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(tensor: &str, index: usize, name: Option<&str>, key: Option<&str>) -> FreeDimension {
        let (name, key) = (name.map(str::to_owned), key.map(str::to_owned));
        let size = if key.as_deref() == Some("batch") { 1 } else { USUAL_SIZE };
        FreeDimension { tensor: tensor.to_owned(), index, name, key, size }
    }

    #[test]
    fn free_dimensions_that_have_keys_are_set_by_keys() {
        let dimensions = vec![
            free("ids", 1, Some("sequence"), Some("sequence")),
            free("mask", 1, Some("sequence"), Some("sequence")),
            free("ids", 0, None, Some("batch")),
        ];
        let problem = ShapeError::FreeDimensions { dimensions, example: BTreeMap::new() };
        assert_eq!(
            problem.to_string(),
            "`sequence` (dimension 1 of `ids`), `sequence` (dimension 1 of `mask`), dimension 0 of `ids` have no size"
        );
        assert_eq!(problem.remedy(), "set them, for example `inputs: { batch: 1, sequence: 128 }`");
    }

    #[test]
    fn free_dimensions_without_keys_need_whole_shapes() {
        let dimensions = vec![free("input:0", 2, None, None)];
        let example = BTreeMap::from([("input:0".to_owned(), vec![1, 3, 128])]);
        let problem = ShapeError::FreeDimensions { dimensions, example };
        assert_eq!(problem.to_string(), "dimension 2 of `input:0` has no size");
        let remedy = "give whole shapes, for example `inputs: [{ name: b1, shapes: { \"input:0\": [1, 3, 128] } }]`";
        assert_eq!(problem.remedy(), remedy);
    }

    #[test]
    fn fixed_batch_names_tensor_and_size() {
        let problem = ShapeError::FixedBatch { tensor: "images".to_owned(), fixed: 1, asked: 16, open: None };
        assert_eq!(
            problem.to_string(),
            "the leading dimension of `images` is fixed at 1 in the file, but the spec asks for batch 16"
        );
        assert_eq!(problem.remedy(), "export it with a dynamic batch, or ask for batch 1");
    }
}
