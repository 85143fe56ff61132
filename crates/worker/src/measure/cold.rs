//! A cold start of every sample: the caches are filled with something else, outside the clock (method 1.8).

use std::hint::black_box;

use crate::backend::{Failure, FailureKind};

/// Words of one cache line; one word of each line is enough to bring the line in.
const LINE_WORDS: usize = 64 / size_of::<u64>();

/// A buffer that is larger than the caches it empties.
#[derive(Debug)]
pub(crate) struct Eviction {
    buffer: Vec<u64>,
}

impl Eviction {
    /// A buffer of this many bytes, all of it in memory.
    ///
    /// # Errors
    ///
    /// [`FailureKind::OutOfMemory`] where it cannot be had.
    pub(crate) fn with_bytes(bytes: u64) -> Result<Self, Failure> {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(words).map_err(|_| {
            let text = format!("not enough memory for the {} MiB buffer that flushes the caches", bytes >> 20);
            Failure::new(FailureKind::OutOfMemory, text)
        })?;
        // Pages of zeros would share one page until they are written.
        buffer.resize(words, 1);
        Ok(Eviction { buffer })
    }

    /// Writes every cache line of the buffer, then reads it again: what was in the caches before is gone.
    pub(crate) fn evict(&mut self) {
        for line in self.buffer.chunks_mut(LINE_WORDS) {
            line[0] = line[0].wrapping_add(1);
        }
        let sum = self.buffer.chunks(LINE_WORDS).fold(0_u64, |sum, line| sum.wrapping_add(line[0]));
        black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_written() {
        let mut eviction = Eviction::with_bytes(4096).expect("a page");
        eviction.evict();
        eviction.evict();
        assert!(eviction.buffer.chunks(LINE_WORDS).all(|line| line[0] == 3 && line[1..].iter().all(|word| *word == 1)));
    }

    #[test]
    fn more_than_there_is_is_a_failure_and_no_crash() {
        assert_eq!(
            Eviction::with_bytes(u64::MAX).map_err(|failure| failure.kind).err(),
            Some(FailureKind::OutOfMemory)
        );
    }
}
