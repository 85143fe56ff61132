//! Tokens that a greedy loop is fed in place of those that it chooses, so that every choice is made behind the same ones.

use std::path::Path;

use super::{Failure, FailureKind};
use crate::outputs::read_outputs;
use files::array::Array;
use onnx::ElementType;

/// Scores of more than this are not kept, of all input sets together; of each sequence the first positions are.
const MOST_BYTES: usize = 64 << 20;

/// What a loop is fed, and the scores that it gave in its last turn.
pub(super) struct Teacher {
    /// Ids `[batch, tokens]` by input set.
    ids: Vec<Vec<i64>>,
    batch: usize,
    name: String,
    element: ElementType,
    vocabulary: usize,
    /// Of each sequence, position after position.
    scores: Vec<Vec<u8>>,
}

impl Teacher {
    /// Feeds the tokens that a loop of so many sequences left as its outputs in a folder. `name`: that of the scores.
    ///
    /// # Errors
    ///
    /// A folder without them.
    pub(super) fn read(folder: &Path, batch: usize, name: &str) -> Result<Self, Failure> {
        let failed = |problem: String| {
            Failure::new(FailureKind::Internal, format!("the tokens in {}: {problem}", folder.display()))
        };
        let sets = read_outputs(folder).map_err(|error| failed(error.to_string()))?;
        let ids = sets.iter().map(|set| {
            let numbers = set.first().filter(|tokens| tokens.element == ElementType::Int64)?.numbers()?;
            Some(numbers.into_iter().map(|id| id as i64).collect())
        });
        let ids = ids.collect::<Option<Vec<Vec<i64>>>>().ok_or_else(|| failed("they are no ids".to_owned()))?;
        let (name, element) = (name.to_owned(), ElementType::Float32);
        Ok(Teacher { ids, batch: batch.max(1), name, element, vocabulary: 1, scores: vec![Vec::new(); batch.max(1)] })
    }

    /// Takes the scores of a call, `[batch, positions, vocabulary]`, those of the last position, and returns the ids that
    /// the call after it is fed. `at`: which token of the loop it is.
    ///
    /// # Errors
    ///
    /// An input set or a token that the other loop did not have.
    pub(super) fn next(
        &mut self,
        (set, at): (usize, usize),
        scores: &[u8],
        (element, vocabulary): (&ElementType, usize),
    ) -> Result<Vec<i64>, Failure> {
        if at == 0 {
            self.scores.iter_mut().for_each(Vec::clear);
            (self.element, self.vocabulary) = (element.clone(), vocabulary);
        }
        let row = vocabulary * element.size_bytes().unwrap_or(1) as usize;
        let room = MOST_BYTES / (self.ids.len() * self.batch).max(1);
        for (kept, sequence) in self.scores.iter_mut().zip(scores.chunks_exact((scores.len() / self.batch).max(1))) {
            if kept.is_empty() || kept.len() + row <= room {
                kept.extend_from_slice(&sequence[sequence.len().saturating_sub(row)..]);
            }
        }
        let missing =
            || Failure::new(FailureKind::Internal, format!("there is no token {at} of input set {set} to feed"));
        let ids = self.ids.get(set).ok_or_else(missing)?;
        let each = ids.len() / self.batch;
        if at >= each {
            return Err(missing());
        }
        Ok((0..self.batch).map(|sequence| ids[sequence * each + at]).collect())
    }

    /// The scores that were kept, `[batch, positions, vocabulary]`.
    pub(super) fn array(&self) -> Array {
        let row = self.vocabulary * self.element.size_bytes().unwrap_or(1) as usize;
        let positions = self.scores.first().map_or(0, |kept| kept.len() / row.max(1));
        let shape = [self.batch, positions, self.vocabulary].map(|length| length as u64).to_vec();
        let (name, element, bytes) = (self.name.clone(), self.element.clone(), self.scores.concat());
        Array { name, element, shape, bytes, keys: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::OutputFiles;

    #[test]
    fn a_loop_is_fed_what_another_one_chose() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = [1_i64, 2, 3, 4].iter().flat_map(|id| id.to_le_bytes()).collect();
        let (name, element) = ("tokens".to_owned(), ElementType::Int64);
        let tokens = Array { name, element, shape: vec![2, 2], bytes, keys: Vec::new() };
        OutputFiles::new(folder.path()).write(&[tokens]).expect("a file");
        let mut teacher = Teacher::read(folder.path(), 2, "logits").expect("it is there");
        let scores = |values: [f32; 4]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        // A prompt of two tokens with two scores each, of which the last count.
        let prompt = [scores([9.0, 9.0, 0.1, 0.2]), scores([9.0, 9.0, 0.5, 0.6])].concat();
        let mut next = |at: (usize, usize), scores: &[u8]| teacher.next(at, scores, (&ElementType::Float32, 2)).ok();
        assert_eq!(next((0, 0), &prompt), Some(vec![1, 3]));
        let step = scores([0.3, 0.4, 0.7, 0.8]);
        assert_eq!(next((0, 1), &step), Some(vec![2, 4]));
        let array = teacher.array();
        assert_eq!(array.shape, [2, 2, 2]);
        assert_eq!(array.floats(), Some(vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]));
        for beyond in [(0, 2), (1, 0)] {
            assert!(teacher.next(beyond, &step, (&ElementType::Float32, 2)).is_err(), "nothing is fed in its place");
        }
        assert!(Teacher::read(&folder.path().join("elsewhere"), 2, "logits").is_err());
    }
}
