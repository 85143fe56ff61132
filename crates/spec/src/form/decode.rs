//! Form of `decode`: the calls of a language model.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::range::RangeForm;
use super::scalar::DimensionSize;
use super::shorthand::{OneOrMany, described};

/// Calls of a decoder with a cache of keys and values, each a cell: a prompt at once (`prompt`), one token behind so many
/// positions (`at`), or several (`verify`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "decode", extend("minProperties" = 1))]
pub(crate) struct DecodeForm {
    /// Tokens of prompts, each fed in one call: `prefill-128`. Its latency is the time to the first token but for the choice
    /// of that token.
    pub(crate) prompt: Option<OneOrMany<CountEntry>>,
    /// A `.npy` file `[prompts, tokens]` with the ids of prompts, or a `.npz` file with one such array, relative to this file;
    /// `prompt` is the length that they have. Default: random ids.
    #[schemars(length(min = 1))]
    pub(crate) prompts: Option<String>,
    /// Positions that the cache holds before a prompt: `prefill-128-at-1024`. Default: 0.
    pub(crate) prompt_at: Option<OneOrMany<CountEntry>>,
    /// Positions that the cache holds before a step of one token: `step-at-1024`.
    pub(crate) at: Option<OneOrMany<CountEntry>>,
    /// Tokens that are checked at once at each of these positions, as a target model does for speculative decoding:
    /// `verify-4-at-1024`.
    pub(crate) verify: Option<OneOrMany<CountEntry>>,
    /// New tokens of a greedy loop behind each prompt, one call for each: `generate-256-from-128`. It gives the time to the
    /// first token, between tokens, and tokens a second.
    pub(crate) generate: Option<OneOrMany<CountEntry>>,
    /// Positions of a cache that is allocated once (`shared` and `static`). Default: as many as the model has.
    pub(crate) capacity: Option<OneOrMany<CountEntry>>,
    /// Sequences at once, each with tokens of its own. Default: 1.
    pub(crate) batch: Option<OneOrMany<CountEntry>>,
    /// Positions of an encoder's states, for a decoder behind an encoder. Default: 128.
    pub(crate) encoder: Option<OneOrMany<CountEntry>>,
}

/// A count, or a range of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CountEntry {
    /// One count.
    One(DimensionSize),
    /// Several.
    Range(RangeForm),
}

described!(CountEntry, "count-entry", |generator| {
    let (size, range) = (generator.subschema_for::<DimensionSize>(), generator.subschema_for::<RangeForm>());
    json_schema!({ "description": "A count, or a range of counts.", "anyOf": [size, range] })
});
