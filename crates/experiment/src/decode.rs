//! The calls of a decoder that an input point stands for, by the names of its sizes.

use super::{BATCH, InputPoint};
pub use onnx::decoder::CacheKind;
use onnx::decoder::Call;
pub use onnx::decoder::DecoderNames;

/// Tokens of a prompt, which all are fed at once.
pub const PROMPT: &str = "prompt";

/// Positions that the cache holds before.
pub const AT: &str = "at";

/// Tokens that are checked at once, as for speculative decoding.
pub const VERIFY: &str = "verify";

/// Tokens that a greedy loop emits.
pub const GENERATE: &str = "generate";

/// Positions of a cache that is allocated once.
pub const CAPACITY: &str = "capacity";

/// Positions of what an encoder has made.
pub const ENCODER: &str = "encoder";

/// Positions of an encoder's states where nothing is said.
const USUAL_ENCODER: u64 = 128;

impl InputPoint {
    /// The call of a decoder that it asks for, if it does.
    pub fn call(&self) -> Option<Call> {
        let size = |name: &str| self.dimensions.get(name).copied();
        self.decode.then(|| Call {
            batch: size(BATCH).unwrap_or(1),
            tokens: size(PROMPT).or(size(VERIFY)).unwrap_or(1),
            context: size(AT).unwrap_or(0),
            encoder: size(ENCODER).unwrap_or(USUAL_ENCODER),
            generated: size(GENERATE).unwrap_or(0),
        })
    }

    /// Positions of the cache that it asks for, where that is allocated once.
    pub fn capacity(&self) -> Option<u64> {
        self.dimensions.get(CAPACITY).copied().filter(|_| self.decode)
    }

    /// The batch that it says itself.
    pub fn batch(&self) -> Option<u64> {
        self.call().map(|call| call.batch).or_else(|| self.dimensions.get(BATCH).copied())
    }

    /// What is counted of each item of a batch: its tokens, of a decoder.
    pub fn counted_of_each(&self) -> u64 {
        self.call().map_or(1, |call| call.tokens_of_each())
    }
}
