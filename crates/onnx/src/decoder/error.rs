//! Why a decoder cannot be called, and what to do about it.

use std::path::PathBuf;

use super::CacheKind;
use reading::grouped;
use reading::nearest::{list, suggestion};

/// Why a model that looks like a decoder is none that perfrun can call, or why a call of one is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DecoderError {
    #[error("{} cannot be read: {problem}", file.display())]
    Unreadable { file: PathBuf, problem: String },
    #[error("{} says {declared}, and {holder} {found}", file.display())]
    Contradiction { file: PathBuf, declared: String, holder: String, found: u64 },
    #[error("{} says {key}: `{tensor}`, which no {} of the model is called", place(origin), side(key))]
    NoTensor { origin: NameOrigin, key: String, tensor: String, known: Vec<String> },
    #[error("the cache `{tensor}` has the shape {shape}: a cache has a batch, heads, positions and the size of a head")]
    Rank { tensor: String, shape: String },
    #[error("no output gives the cache `{tensor}` back")]
    NotGivenBack { tensor: String },
    #[error("neither the file nor a configuration beside it says how large dimension {axis} of `{tensor}` is")]
    Unsized { tensor: String, axis: usize },
    #[error("perfrun does not know what the input `{tensor}` of this decoder is for")]
    Unknown { tensor: String },
    #[error("the cache `{tensor}` always has {positions} positions, and nothing writes into it at an index")]
    FixedCache { tensor: String, positions: u64 },
    #[error("the mask `{tensor}` always has {positions} positions, so it cannot say how many the cache holds")]
    FixedMask { tensor: String, positions: u64 },
    #[error("none of its outputs is called `logits`, so no token can be chosen")]
    NoScores,
    #[error("`{tensor}` has scores of the last token alone, and a draft is checked by those of every token")]
    LastScores { tensor: String },
    #[error("`encoder` has no effect: no encoder comes before it")]
    NoEncoder,
    #[error("position {} is beyond the {} that the model has", grouped((*end).into()), grouped((*most).into()))]
    BeyondContext { end: u64, most: u64 },
    #[error("GroupQueryAttention takes several tokens behind a cache of one sequence only, and the batch is {batch}")]
    OneSequence { batch: u64 },
    #[error("its cache cannot be {kind}: {}", why_not(*kind))]
    CacheKind { kind: CacheKind, allowed: Vec<CacheKind> },
    #[error("`capacity` has no effect on a cache that is {kind}")]
    NoCapacity { kind: CacheKind },
    #[error("a cache of {} positions cannot hold {}", grouped((*positions).into()), grouped((*end).into()))]
    TooSmall { positions: u64, end: u64 },
    #[error("its {what} is fixed at {fixed} in the file, and {asked} is asked for")]
    Fixed { what: &'static str, fixed: u64, asked: u64 },
}

/// Where a name stands.
fn place(origin: &NameOrigin) -> String {
    match origin {
        NameOrigin::Specification => "`decoder`".to_owned(),
        NameOrigin::File(file) => file.display().to_string(),
    }
}

/// `input`, for a key such as `inputs.past_key_names`.
fn side(key: &str) -> &str {
    key.split("s.").next().unwrap_or(key)
}

/// Where the name of a tensor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOrigin {
    /// Below `decoder` of the specification.
    Specification,
    /// In this `genai_config.json`, which names the model file.
    File(PathBuf),
}

/// What a file lacks for a kind of cache.
fn why_not(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Shared => "none of its nodes writes into the buffer that it reads (GroupQueryAttention)",
        CacheKind::Static => "it writes at no index (TensorScatter)",
        CacheKind::Grown | CacheKind::Copied => "its buffers have a fixed length",
    }
}

impl DecoderError {
    /// What to do about it, as a sentence without a capital and a period.
    pub fn remedy(&self) -> String {
        match self {
            DecoderError::Unreadable { file, .. } => format!("mend it, or move {} away", file.display()),
            DecoderError::Contradiction { file, .. } => {
                format!("export both again, or correct {}: it belongs to another model", file.display())
            }
            DecoderError::NoTensor { key, tensor, known, .. } => {
                let known = known.iter().map(String::as_str);
                suggestion(tensor, known, side(key)).unwrap_or_else(|| "leave it out".to_owned())
            }
            DecoderError::Rank { .. } => {
                "export the cache as [batch, heads, positions, head size], or give whole shapes below `inputs`"
                    .to_owned()
            }
            DecoderError::NotGivenBack { tensor } => {
                format!(
                    "export the model with an output for `{tensor}`, or measure it with `inputs` in place of `decode`"
                )
            }
            DecoderError::Unsized { .. } => {
                "put its `genai_config.json` or `config.json` beside it, or give whole shapes below `inputs`".to_owned()
            }
            DecoderError::FixedCache { .. } | DecoderError::FixedMask { .. } => {
                "export it with a dynamic length of the past, or measure it with `inputs` in place of `decode`"
                    .to_owned()
            }
            DecoderError::NoScores => {
                "name the output, `decoder: { outputs: { logits: NAME } }` of its model, or leave `generate` out"
                    .to_owned()
            }
            DecoderError::LastScores { .. } => {
                "export the model with scores of all tokens, or leave `verify` out".to_owned()
            }
            DecoderError::NoEncoder => "leave `encoder` out".to_owned(),
            DecoderError::Unknown { tensor } => format!(
                "if perfrun knows its part, name it, as `decoder: {{ inputs: {{ position_ids: {tensor} }} }}` of its model; else \
                 measure it with `inputs` in place of `decode`"
            ),
            DecoderError::BeyondContext { most, .. } => {
                format!("ask for prompt, context and new tokens of at most {} together", grouped((*most).into()))
            }
            DecoderError::OneSequence { .. } => "ask for batch 1 there, or exclude these cells".to_owned(),
            DecoderError::CacheKind { allowed, .. } => {
                let names: Vec<&str> = allowed.iter().map(|kind| kind.name()).collect();
                format!("its cache can be {}", list(&names, "or"))
            }
            DecoderError::NoCapacity { .. } => "leave `capacity` out, or exclude these cells".to_owned(),
            DecoderError::TooSmall { end, .. } => format!("give `capacity` at least {}", grouped((*end).into())),
            DecoderError::Fixed { what, fixed, .. } => {
                format!("ask for {fixed}, or export the model with a dynamic {what}")
            }
        }
    }
}
