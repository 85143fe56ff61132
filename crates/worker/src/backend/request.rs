//! What a worker is asked to prepare: everything about one cell, with nothing left to choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackendRequest, MockRequest};
use base::metric::OwnMetric;
use experiment::{CacheKind, Mock, Values};
use onnx::ElementType;
use onnx::decoder::{Call, Decoder};

/// One cell, as the parent asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRequest {
    /// Readable path of the cell, for messages.
    pub cell: String,
    /// What executes the model.
    pub backend: BackendRequest,
    /// The inputs, with resolved shapes.
    pub tensors: Vec<TensorRequest>,
    /// Distinct input sets wanted; fewer where they would pass 64 MiB together.
    pub input_sets: u32,
    /// Shapes of the outputs by name, where the rehearsal found them constant; they are then allocated beforehand.
    pub outputs: Option<BTreeMap<String, Vec<u64>>>,
    /// Share by which every call is made slower, for positive controls; 0: not at all.
    #[serde(default)]
    pub slowdown: f64,
    /// Bytes to write and read before every sample, so that it begins with cold caches; none where they stay warm.
    #[serde(default)]
    pub evict_bytes: Option<u64>,
    /// Processors that the worker may use, set before anything is loaded; none: those that it starts with.
    #[serde(default)]
    pub cpus: Option<Vec<u32>>,
    /// Whether it is loaded with the runtime's profiler, which slows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
    /// How many queries are served at once under a load.
    #[serde(default = "single_caller", skip_serializing_if = "is_one")]
    pub callers: u32,
    /// They all call one session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_session: bool,
    /// The call of a decoder, whose caches are none of the tensors above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode: Option<DecodeRequest>,
    /// Metrics of the specification that may be reported, by their names and in their units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
}

impl CellRequest {
    /// One input set, on warm caches and wherever the worker starts.
    pub fn new(cell: impl Into<String>, backend: BackendRequest, tensors: Vec<TensorRequest>) -> Self {
        CellRequest {
            cell: cell.into(),
            backend,
            tensors,
            input_sets: 1,
            outputs: None,
            slowdown: 0.0,
            evict_bytes: None,
            cpus: None,
            profiled: false,
            callers: 1,
            shares_session: false,
            decode: None,
            metrics: Vec::new(),
        }
    }

    /// The same while cells of other devices run, which only a script has to know.
    pub fn alongside_other_devices(mut self) -> Self {
        if let BackendRequest::Mock(mock) = &mut self.backend {
            mock.alongside_other_devices();
        }
        self
    }

    /// A script of the mock backend, without inputs and as it stands.
    pub fn of_script(cell: &str, script: Mock) -> Self {
        CellRequest::new(cell, BackendRequest::Mock(MockRequest::alone(script)), Vec::new())
    }
}

fn single_caller() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(callers: &u32) -> bool {
    *callers == 1
}

/// One call of a decoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecodeRequest {
    /// What each input of the file is.
    pub decoder: Decoder,
    /// How many tokens are fed behind how many.
    pub call: Call,
    /// How the cache goes from one call to the next.
    pub cache: CacheKind,
    /// Positions of a cache that is allocated once.
    pub positions: u64,
    /// Where perfrun's own worker keeps the filled cache: the first one that needs it writes it.
    pub state: PathBuf,
    /// One seed for the tokens of each sequence that the cache holds.
    pub seeds: Vec<u64>,
    /// Ids are less than this.
    pub vocabulary: i64,
    /// A folder with the outputs of a loop, whose tokens this one is fed in place of those that it chooses. Its scores are
    /// outputs too then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher: Option<PathBuf>,
    /// A `.npy` file with these tokens, int64 `[batch, context]`, for a program, which fills a cache of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<PathBuf>,
}

/// One input tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorRequest {
    /// Name in the model.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Resolved shape.
    pub shape: Vec<u64>,
    /// What fills it, if no file does.
    pub values: Values,
    /// A `.npy` file in the order of C whose items along the first dimension are what the input sets have, in turn.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// One seed for each input set.
    pub seeds: Vec<u64>,
}

impl TensorRequest {
    /// Random numbers, a set for each seed.
    pub fn random(name: &str, element: ElementType, shape: &[u64], seeds: Vec<u64>) -> Self {
        TensorRequest {
            name: name.to_owned(),
            element,
            shape: shape.to_vec(),
            values: Values::Random,
            file: None,
            seeds,
        }
    }

    /// These values in one set.
    pub fn filled(name: &str, element: ElementType, shape: &[u64], values: Values) -> Self {
        TensorRequest { values, ..TensorRequest::random(name, element, shape, vec![0]) }
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product, length| product.saturating_mul(*length))
    }
}

/// The call of a decoder that nothing runs, for tests.
#[cfg(test)]
pub(super) fn decoding(batch: u64, context: u64) -> DecodeRequest {
    let decoder = Decoder {
        inputs: Vec::new(),
        logits: "logits".to_owned(),
        layers: 0,
        heads: None,
        key_heads: None,
        head_size: None,
        vocabulary: Some(100),
        context: None,
        caches: vec![CacheKind::Grown],
        takes_one_sequence: false,
    };
    let call = Call { batch, tokens: 1, context, encoder: 0, generated: 0 };
    let (cache, state, held) = (CacheKind::Grown, PathBuf::new(), None);
    let seeds = (0..batch).collect();
    DecodeRequest { decoder, call, cache, positions: context, state, seeds, vocabulary: 100, held, teacher: None }
}
