//! Language models that keep the keys and values of earlier tokens: what each input is, and the shapes of one call.
//!
//! Input: a model's signature and graph, and the `genai_config.json` or `config.json` beside it. Output: a [`Decoder`],
//! which turns a [`Call`] (so many tokens behind so many that the cache holds) into shapes and integers of every input;
//! or the [`DecoderError`] why it cannot. Deliberately absent: the content of caches, which only running the model gives.

mod config;
mod error;
mod names;
mod recognise;

use std::fmt;
use std::ops::Range;

use reading::grouped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use config::{Declared, DecoderNames, model_of_folder, name_by_folder};
pub use error::{DecoderError, NameOrigin};
pub(crate) use recognise::recognise;

use super::resolve::ResolvedTensor;
use super::signature::{Dimension, ElementType, Signature};

/// How a cache goes from one call to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "cache")]
pub enum CacheKind {
    /// What a call gives back is longer by its tokens, and bound to the next call without a copy.
    #[default]
    Grown,
    /// One buffer of all positions is input and output at once; the model must write in place (GroupQueryAttention).
    Shared,
    /// As grown, but copied out of the runtime after every call, as a loop over arrays does: a baseline.
    Copied,
    /// A buffer of fixed length that the model itself writes at an index (TensorScatter).
    Static,
}

impl CacheKind {
    /// Every kind, as specifications have them.
    pub const ALL: [CacheKind; 4] = [CacheKind::Grown, CacheKind::Shared, CacheKind::Copied, CacheKind::Static];

    /// The word in specifications.
    pub fn name(self) -> &'static str {
        match self {
            CacheKind::Grown => "grown",
            CacheKind::Shared => "shared",
            CacheKind::Copied => "copied",
            CacheKind::Static => "static",
        }
    }

    /// Whether its buffers have more positions than they hold.
    pub fn has_capacity(self) -> bool {
        matches!(self, CacheKind::Shared | CacheKind::Static)
    }
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One call of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Sequences.
    pub batch: u64,
    /// Tokens of each that are fed.
    pub tokens: u64,
    /// Positions of each that the cache holds before.
    pub context: u64,
    /// Positions of what an encoder has made, where there is one.
    pub encoder: u64,
    /// Tokens that a greedy loop emits, the first of which this call decides; 0 where nothing follows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generated: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Call {
    /// Positions that the cache holds at last: the last token of a loop is never fed.
    pub fn end(&self) -> u64 {
        let fed = self.generated.saturating_sub(1);
        self.context.saturating_add(self.tokens).saturating_add(fed)
    }

    /// Tokens of each sequence that are fed, or where a loop follows, emitted.
    pub fn tokens_of_each(&self) -> u64 {
        if self.generated > 0 { self.generated } else { self.tokens }
    }
}

/// A size in the shape of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Sequences.
    Batch,
    /// Tokens that are fed.
    Tokens,
    /// Tokens that are fed and those before them.
    Total,
    /// Positions of a cache.
    Positions,
    /// Positions of what an encoder has made.
    Encoder,
    /// The same in every call.
    Fixed(u64),
}

/// What an input of a decoder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Ids of the tokens.
    Ids,
    /// 1 for every position that is seen.
    Mask,
    /// Positions of the tokens.
    Positions,
    /// Keys or values of earlier tokens.
    Past,
    /// Keys or values of what an encoder has made.
    Cross,
    /// Whether the cache is read (a merged model).
    UsesCache,
    /// Index of the last position of each sequence (`seqlens_k`).
    LastPosition,
    /// Number of positions with the new ones (`total_sequence_length`, `nonpad_kv_seqlen`).
    Length,
    /// Where the new positions are written in a cache of fixed length.
    WriteIndex,
    /// How many tokens get logits, from the last.
    LogitsKept,
    /// Segments of a text; all in the first.
    Segments,
    /// What an encoder has made.
    EncoderStates,
    /// 1 for every position of it that is seen.
    EncoderMask,
}

/// An input of a decoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecoderInput {
    /// Its name in the file.
    pub name: String,
    /// What one element is.
    pub element: ElementType,
    /// Its shape, outermost first.
    pub shape: Vec<Extent>,
    /// What it is for.
    pub role: Role,
    /// The output that is this input of the next call, for a cache.
    pub present: Option<String>,
}

/// A model that continues a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decoder {
    /// Every input, in the order of the file.
    pub inputs: Vec<DecoderInput>,
    /// The output that scores the next token, `[batch, tokens, vocabulary]`.
    pub logits: String,
    /// Layers with a cache.
    pub layers: u64,
    /// Heads of attention, where the file or its configuration says.
    pub heads: Option<u64>,
    /// Heads of keys and values.
    pub key_heads: Option<u64>,
    /// Width of one head.
    pub head_size: Option<u64>,
    /// Different tokens.
    pub vocabulary: Option<u64>,
    /// Positions that it can have at most.
    pub context: Option<u64>,
    /// The caches that it can have, the usual one first.
    pub caches: Vec<CacheKind>,
    /// Whether several tokens behind a cache are taken of one sequence only (ONNX Runtime's GroupQueryAttention).
    pub takes_one_sequence: bool,
}

impl Decoder {
    /// Inputs that are caches of earlier tokens.
    pub fn pasts(&self) -> impl Iterator<Item = &DecoderInput> {
        self.inputs.iter().filter(|input| input.role == Role::Past)
    }

    /// Whether an input is a cache, which no values fill but those of earlier calls.
    pub fn is_cache(&self, input: &str) -> bool {
        self.inputs.iter().any(|own| own.name == input && own.role.is_cache())
    }

    /// Whether an encoder comes before it.
    pub fn has_encoder(&self) -> bool {
        self.inputs.iter().any(|input| input.shape.contains(&Extent::Encoder))
    }

    /// The sequences that its file fixes.
    pub fn fixed_batch(&self) -> Option<u64> {
        let ids = self.inputs.iter().find(|input| input.role == Role::Ids)?;
        match ids.shape.first()? {
            Extent::Fixed(size) if ids.shape.len() > 1 => Some(*size),
            _ => None,
        }
    }

    /// The new tokens of a call that its file fixes.
    pub fn fixed_tokens(&self) -> Option<u64> {
        let ids = self.inputs.iter().find(|input| input.role == Role::Ids)?;
        if let Extent::Fixed(size) = ids.shape.last()? { Some(*size) } else { None }
    }

    /// Bytes of the cache of one position of one sequence.
    pub fn bytes_per_token(&self) -> u64 {
        let bytes = |input: &DecoderInput| {
            let fixed = input.shape.iter().map(|extent| if let Extent::Fixed(size) = extent { *size } else { 1 });
            fixed.fold(input.element.size_bytes().unwrap_or(0), u64::saturating_mul)
        };
        self.pasts().map(bytes).fold(0, u64::saturating_add)
    }

    /// The cache of a call, and how many positions its buffers have: the kind that is asked for, else the usual one.
    ///
    /// # Errors
    ///
    /// A kind that the file does not allow, positions where they have no effect, and too few of them.
    pub fn cache(
        &self,
        kind: Option<CacheKind>,
        call: &Call,
        capacity: Option<u64>,
    ) -> Result<(CacheKind, u64), DecoderError> {
        let kind = kind.or_else(|| self.caches.first().copied()).unwrap_or_default();
        if !self.caches.contains(&kind) {
            return Err(DecoderError::CacheKind { kind, allowed: self.caches.clone() });
        }
        if !kind.has_capacity() {
            return match capacity {
                Some(_) => Err(DecoderError::NoCapacity { kind }),
                None => Ok((kind, call.context)),
            };
        }
        let end = call.end();
        let fixed = self.pasts().find_map(fixed_positions);
        let positions = match (fixed, capacity) {
            (Some(fixed), Some(asked)) if fixed != asked => {
                return Err(DecoderError::Fixed { what: "capacity", fixed, asked });
            }
            (Some(fixed), _) => fixed,
            (None, Some(asked)) => asked,
            (None, None) => self.usual_capacity(call.batch, end),
        };
        if positions < end {
            return Err(DecoderError::TooSmall { positions, end });
        }
        Ok((kind, positions))
    }

    /// All positions that the model has, unless that is more memory than a measurement needs.
    fn usual_capacity(&self, batch: u64, end: u64) -> u64 {
        const MOST_BYTES: u64 = 1 << 30;
        const STEP: u64 = 1024;
        let bytes = |positions: u64| self.bytes_per_token().saturating_mul(positions).saturating_mul(batch);
        self.context.filter(|context| bytes(*context) <= MOST_BYTES).unwrap_or_else(|| end.next_multiple_of(STEP))
    }

    /// The shape of every input in a call, and the integers of those that are no caches, where caches have so many positions.
    ///
    /// # Errors
    ///
    /// A call that the file or its number of positions does not allow.
    pub fn shapes(&self, call: &Call, positions: u64) -> Result<Vec<ResolvedTensor>, DecoderError> {
        let end = call.end();
        if let Some(most) = self.context.filter(|most| end > *most) {
            return Err(DecoderError::BeyondContext { end, most });
        }
        if let Some(fixed) = self.fixed_batch().filter(|fixed| *fixed != call.batch) {
            return Err(DecoderError::Fixed { what: "batch", fixed, asked: call.batch });
        }
        if call.generated > 0 && self.logits.is_empty() {
            return Err(DecoderError::NoScores);
        }
        if self.takes_one_sequence && call.batch > 1 && call.tokens > 1 && call.context > 0 {
            return Err(DecoderError::OneSequence { batch: call.batch });
        }
        if let Some(fixed) = self.fixed_tokens().filter(|fixed| *fixed != call.tokens) {
            return Err(DecoderError::Fixed { what: "number of new tokens", fixed, asked: call.tokens });
        }
        Ok(self.inputs.iter().map(|input| self.resolved(input, call, positions)).collect())
    }

    fn resolved(&self, input: &DecoderInput, call: &Call, positions: u64) -> ResolvedTensor {
        let end = call.context.saturating_add(call.tokens);
        let size = |extent: &Extent| match extent {
            Extent::Batch => call.batch,
            Extent::Tokens => call.tokens,
            Extent::Total => end,
            // Without a cache to read there is none of an encoder either.
            Extent::Encoder if input.role == Role::Cross && call.context == 0 => 0,
            Extent::Positions => positions,
            Extent::Encoder => call.encoder,
            Extent::Fixed(size) => *size,
        };
        let shape = input.shape.iter().map(size).collect();
        let integers = self.integers(input.role, call);
        let is_counted = input.role == Role::Positions;
        let (name, element) = (input.name.clone(), input.element.clone());
        ResolvedTensor { name, element, shape, integers, is_counted }
    }

    /// What the integers of an input are drawn from.
    fn integers(&self, role: Role, call: &Call) -> Option<Range<i64>> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX - 1);
        let one = |value: u64| Some(number(value)..number(value) + 1);
        let end = call.context.saturating_add(call.tokens);
        match role {
            Role::Ids => Some(0..self.vocabulary.map_or(2, number)),
            Role::Mask | Role::EncoderMask | Role::LogitsKept => one(1),
            Role::Positions => Some(number(call.context)..number(end)),
            Role::UsesCache => one(u64::from(call.context > 0)),
            Role::LastPosition => one(end.saturating_sub(1)),
            Role::Length => one(end),
            Role::WriteIndex => one(call.context),
            Role::Segments => one(0),
            Role::Past | Role::Cross | Role::EncoderStates => None,
        }
    }

    /// The shape of a cache of an encoder's states once they are there.
    pub fn cross_shape(&self, input: &DecoderInput, call: &Call) -> Vec<u64> {
        self.resolved(input, &Call { context: call.context.max(1), ..*call }, 0).shape
    }

    /// The signature with what the weights, attributes and configuration settle: fixed sizes, and a total that is a sum.
    pub(crate) fn settled(&self, signature: &Signature) -> Signature {
        let mut settled = signature.clone();
        let name_of = |wanted: Extent| {
            let named = self.inputs.iter().zip(&signature.inputs).find_map(|(own, input)| {
                let at = own.shape.iter().position(|extent| *extent == wanted)?;
                input.dimensions().get(at)?.name()
            });
            named.map(str::to_owned)
        };
        let sum = name_of(Extent::Positions).zip(name_of(Extent::Tokens));
        for (own, input) in self.inputs.iter().zip(&mut settled.inputs) {
            for (extent, dimension) in own.shape.iter().zip(input.shape.iter_mut().flatten()) {
                let is_sum = dimension.name().is_some_and(|name| name.contains(['+', ' ']));
                match (extent, &sum) {
                    (Extent::Fixed(size), _) => *dimension = Dimension::Fixed(*size),
                    (Extent::Total, Some((past, new))) if !is_sum => {
                        *dimension = Dimension::Named(format!("{past} + {new}"));
                    }
                    _ => {}
                }
            }
        }
        settled
    }
}

impl Role {
    /// Whether it holds keys or values.
    pub fn is_cache(self) -> bool {
        matches!(self, Role::Past | Role::Cross)
    }
}

/// The positions of a cache whose length the file fixes.
fn fixed_positions(past: &DecoderInput) -> Option<u64> {
    match past.shape.get(past.shape.len().checked_sub(2)?)? {
        Extent::Fixed(size) if !past.shape.contains(&Extent::Positions) => Some(*size),
        _ => None,
    }
}

/// As `inspect` prints it: `2 layers, 4 heads, 2 of keys, head size 16, cache grown or shared, vocabulary 512, context 2,048`.
impl fmt::Display for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let heads = match (self.heads, self.key_heads) {
            (Some(heads), Some(keys)) if heads != keys => Some(format!("{}, {keys} of keys", plural(heads, "head"))),
            (Some(heads), _) => Some(plural(heads, "head")),
            (None, keys) => keys.map(|keys| format!("{} of keys", plural(keys, "head"))),
        };
        let is_own = |kind: &CacheKind| *kind != CacheKind::Copied && self.caches.contains(kind);
        let kinds: Vec<&str> = CacheKind::ALL.into_iter().filter(is_own).map(CacheKind::name).collect();
        let parts = [
            Some(plural(self.layers, "layer")),
            heads,
            self.head_size.map(|size| format!("head size {size}")),
            Some(format!("cache {}", kinds.join(" or "))),
            self.vocabulary.map(|size| format!("vocabulary {}", grouped(size.into()))),
            self.context.map(|size| format!("context {}", grouped(size.into()))),
            self.has_encoder().then(|| "an encoder before it".to_owned()),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
