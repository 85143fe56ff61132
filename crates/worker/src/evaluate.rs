//! A worker that runs a model over a dataset and writes down what comes out.

use std::path::Path;

use super::batches::{Batches, Data};
use super::outputs::OutputFiles;
use crate::backend::{Backend, Failure, TensorRequest};
use files::array::Array;

/// Runs the model for every item and writes the outputs.
pub(super) fn evaluate(
    backend: &mut dyn Backend,
    tensors: &[TensorRequest],
    data: &Data,
    items_in_file: u64,
    folder: &Path,
) -> Result<(), Failure> {
    let batches = Batches::open(data, tensors)?;
    let batch = tensors.first().and_then(|tensor| tensor.shape.first()).copied().unwrap_or(1);
    let mut stack = Stack { files: OutputFiles::new(folder), items_in_file, pending: Vec::new(), items: 0 };
    batches.run(backend, &mut |outputs, items| stack.add(outputs, items, batch))?;
    stack.flush()
}

/// Outputs on their way into files.
struct Stack {
    files: OutputFiles,
    items_in_file: u64,
    pending: Vec<Array>,
    items: u64,
}

impl Stack {
    /// Takes the outputs of a batch, without what filled it up.
    fn add(&mut self, mut outputs: Vec<Array>, items: u64, batch: u64) -> Result<(), Failure> {
        if !outputs.iter().all(|output| output.shape.first() == Some(&batch)) {
            // Their first dimension is not that of items: they stand alone.
            self.flush()?;
            return self.files.write(&outputs);
        }
        outputs.iter_mut().for_each(|output| output.keep_items(items));
        if !self.pending.is_empty() && !fit_below(&self.pending, &outputs) {
            self.flush()?;
        }
        if self.pending.is_empty() {
            self.pending = outputs;
        } else {
            self.pending.iter_mut().zip(outputs).for_each(|(pending, output)| pending.append(&output));
        }
        self.items += items;
        if self.items >= self.items_in_file { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let pending = std::mem::take(&mut self.pending);
        self.items = 0;
        if pending.is_empty() { Ok(()) } else { self.files.write(&pending) }
    }
}

/// Whether they are the same outputs with all but the first dimension the same.
fn fit_below(above: &[Array], below: &[Array]) -> bool {
    let kind = |output: &Array| (output.name.clone(), output.shape[1..].to_vec(), output.keys.clone());
    above.len() == below.len() && above.iter().zip(below).all(|(above, below)| kind(above) == kind(below))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::read_outputs;
    use onnx::ElementType;

    fn rows(rows: u64, width: u64) -> Array {
        let bytes = (0..rows * width).flat_map(|value| (value as f32).to_le_bytes()).collect();
        Array { name: "y".to_owned(), element: ElementType::Float32, shape: vec![rows, width], bytes, keys: Vec::new() }
    }

    fn shapes(batches: &[(Array, u64)], batch: u64, items_in_file: u64) -> Vec<Vec<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let mut stack = Stack { files: OutputFiles::new(folder.path()), items_in_file, pending: Vec::new(), items: 0 };
        for (output, items) in batches {
            stack.add(vec![output.clone()], *items, batch).unwrap();
        }
        stack.flush().unwrap();
        read_outputs(folder.path()).unwrap().into_iter().map(|set| set[0].shape.clone()).collect()
    }

    #[test]
    fn batches_are_stacked_without_what_fills_them_up() {
        assert_eq!(shapes(&[(rows(4, 3), 4), (rows(4, 3), 4), (rows(4, 3), 1)], 4, 1024), [[9, 3]]);
        assert_eq!(
            shapes(&[(rows(1000, 1), 1000), (rows(1000, 1), 1000), (rows(1000, 1), 7)], 1000, 1024),
            [[2000, 1], [7, 1]]
        );
    }

    #[test]
    fn outputs_of_other_shapes_stand_alone() {
        assert_eq!(shapes(&[(rows(2, 6), 1), (rows(5, 6), 1), (rows(1, 6), 1)], 1, 1024), [[2, 6], [5, 6], [1, 6]]);
        let ones = [(rows(1, 6), 1), (rows(1, 6), 1), (rows(5, 6), 1)];
        assert_eq!(shapes(&ones, 1, 1), [[1, 6], [1, 6], [5, 6]], "one set for each call");
    }
}
