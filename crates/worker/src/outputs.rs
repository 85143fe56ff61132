//! What a worker does with a model's outputs: looks at them, hashes them, writes them down.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::protocol::Answer;
use crate::backend::{Backend, Failure, FailureKind};
use crate::measure::stop::StopReason;
use files::array::{Array, ArrayError, read_npy, save_npy};
use onnx::ElementType;
use reading::plain_file;
use statistics::random::fnv1a64;

/// The outputs for the first input set: computed again, because the last sample may have used another one. Nothing is
/// run where there is no input set.
pub(super) fn first_outputs(backend: &mut dyn Backend) -> Result<Vec<Array>, Failure> {
    if backend.input_sets() == 0 {
        return Ok(Vec::new());
    }
    outputs_of(0, backend)
}

/// What the outputs of all input sets have in common.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Their shapes, if they are the same for every set.
    pub(super) shapes: Option<BTreeMap<String, Vec<u64>>>,
    /// Outputs that hold NaN or infinity for some set, by name.
    pub(super) non_finite: Vec<String>,
}

/// Runs every input set once.
pub(super) fn survey(backend: &mut dyn Backend) -> Result<Survey, Failure> {
    let mut shapes: Vec<BTreeMap<String, Vec<u64>>> = Vec::new();
    let mut found = Vec::new();
    for set in 0..backend.input_sets() {
        let outputs = outputs_of(set, backend)?;
        found.extend(non_finite(&outputs));
        shapes.push(outputs.into_iter().map(|output| (output.name, output.shape)).collect());
    }
    let first = shapes.first().cloned();
    let is_constant = shapes.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(Survey { shapes: first.filter(|_| is_constant), non_finite: found })
}

/// What is found in the outputs after the last sample.
#[derive(Debug)]
pub(super) struct Checked {
    /// Hash of the outputs for the first input set.
    pub(super) output_hash: String,
    /// Outputs that hold NaN or infinity, by name.
    pub(super) non_finite: Vec<String>,
}

impl Checked {
    /// The end of a command.
    pub(super) fn into_answer(self, stop: Option<StopReason>) -> Answer {
        Answer::Done { warmup: None, stop, output_hash: Some(self.output_hash), non_finite: self.non_finite }
    }
}

/// Names of the outputs that hold NaN or infinity.
pub(super) fn non_finite(outputs: &[Array]) -> Vec<String> {
    outputs.iter().filter(|output| output.first_non_finite().is_some()).map(|output| output.name.clone()).collect()
}

/// FNV-1a over names, shapes and bytes of all outputs, as 16 hex digits.
pub(super) fn hash_outputs(outputs: &[Array]) -> String {
    let mut text = Vec::new();
    for output in outputs {
        text.extend_from_slice(format!("{}\0{:?}\0", output.name, output.shape).as_bytes());
        output.keys.iter().for_each(|key| text.extend_from_slice(format!("{key}\0").as_bytes()));
        text.extend_from_slice(&fnv1a64(&output.bytes).to_le_bytes());
    }
    format!("{:016x}", fnv1a64(&text))
}

/// Outputs of more than this together are not written for further input sets.
const MOST_WRITTEN_BYTES: usize = 64 << 20;

/// What stands in the files of a set: `.npy` has no bfloat16, no keys, and texts of one length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    name: String,
    element: ElementType,
    shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
}

/// The file that says what the other files of a set are: sequences and optional outputs differ from set to set.
fn list_of(folder: &Path, set: usize) -> PathBuf {
    folder.join(format!("{set}.json"))
}

/// A folder that outputs are written to, set after set.
pub(super) struct OutputFiles {
    folder: PathBuf,
    sets: usize,
}

impl OutputFiles {
    pub(super) fn new(folder: &Path) -> Self {
        OutputFiles { folder: folder.to_owned(), sets: 0 }
    }

    /// Writes the next set as `<set>-<index>.npy` and `<set>.json`.
    pub(super) fn write(&mut self, outputs: &[Array]) -> Result<(), Failure> {
        write_set(&self.folder, self.sets, outputs).map_err(|error| self.failed(&error))?;
        self.sets += 1;
        Ok(())
    }

    /// Makes the folder.
    fn create(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.folder).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::new(FailureKind::Output, format!("cannot write {}: {error}", self.folder.display()))
    }
}

/// Writes the outputs for each input set as [`OutputFiles`] does, as many sets as 64 MiB hold, at least one; where the
/// first set gives different outputs in a second inference, those of the second inferences too.
pub(super) fn write_outputs(folder: &Path, backend: &mut dyn Backend) -> Result<(), Failure> {
    let mut files = OutputFiles::new(folder);
    let (mut written, mut first) = (0, None);
    for set in 0..backend.input_sets() {
        let outputs = outputs_of(set, backend)?;
        written += outputs.iter().map(|output| output.bytes.len()).sum::<usize>();
        if set > 0 && written > MOST_WRITTEN_BYTES {
            break;
        }
        files.write(&outputs)?;
        first.get_or_insert_with(|| hash_outputs(&outputs));
    }
    let Some(first) = first else { return Ok(()) };
    let outputs = outputs_of(0, backend)?;
    if hash_outputs(&outputs) == first {
        return Ok(());
    }
    let mut again = OutputFiles::new(&again_in(folder));
    again.create()?;
    again.write(&outputs)?;
    (1..files.sets).try_for_each(|set| again.write(&outputs_of(set, backend)?))
}

fn outputs_of(set: usize, backend: &mut dyn Backend) -> Result<Vec<Array>, Failure> {
    backend.select(set);
    backend.iterate(1)?;
    backend.outputs()
}

/// Where the outputs of second inferences are, next to the first ones.
fn again_in(folder: &Path) -> PathBuf {
    folder.join("again")
}

fn write_set(folder: &Path, set: usize, outputs: &[Array]) -> io::Result<()> {
    for (index, output) in outputs.iter().enumerate() {
        let path = folder.join(format!("{set}-{index}.npy"));
        if output.element != ElementType::String {
            save_npy(output, &path)?;
            continue;
        }
        // As they are: one long text would make every other one as long.
        let bytes = output.bytes.clone();
        let (element, shape) = (ElementType::Uint8, vec![bytes.len() as u64]);
        save_npy(&Array { name: output.name.clone(), element, shape, bytes, keys: Vec::new() }, &path)?;
    }
    let list = |output: &Array| Written {
        name: output.name.clone(),
        element: output.element.clone(),
        shape: output.shape.clone(),
        keys: output.keys.clone(),
    };
    let list: Vec<Written> = outputs.iter().map(list).collect();
    std::fs::write(list_of(folder, set), serde_json::to_vec(&list)?)
}

/// Reads the outputs of second inferences for the same inputs; nothing where they are those of the first.
///
/// # Errors
///
/// A file that is missing or damaged.
pub fn read_outputs_again(folder: &Path) -> Result<Option<Vec<Vec<Array>>>, ArrayError> {
    let folder = again_in(folder);
    folder.is_dir().then(|| read_outputs(&folder)).transpose()
}

/// Reads what a worker wrote: the outputs of each input set, in order.
///
/// # Errors
///
/// A file that is missing or damaged.
pub fn read_outputs(folder: &Path) -> Result<Vec<Vec<Array>>, ArrayError> {
    let mut sets = Vec::new();
    let mut path = list_of(folder, 0);
    while path.is_file() || sets.is_empty() {
        let text = plain_file::text(&path).map_err(|source| ArrayError::Io { path: path.clone(), source })?;
        let list: Vec<Written> = serde_json::from_str(&text)
            .map_err(|error| ArrayError::Format { path: path.clone(), reason: error.to_string() })?;
        let read = |(index, written): (usize, Written)| {
            let bytes = read_npy(&folder.join(format!("{}-{index}.npy", sets.len())))?.bytes;
            let Written { name, element, shape, keys } = written;
            Ok(Array { name, element, shape, bytes, keys })
        };
        sets.push(list.into_iter().enumerate().map(read).collect::<Result<Vec<Array>, ArrayError>>()?);
        path = list_of(folder, sets.len());
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array {
            name: "y".to_owned(),
            element: ElementType::Float32,
            shape: vec![values.len() as u64],
            bytes,
            keys: Vec::new(),
        }
    }

    #[test]
    fn non_finite_outputs_are_found() {
        assert_eq!(output(&[0.0, -1.0]).first_non_finite(), None);
        assert_eq!(output(&[0.0, f32::NAN]).first_non_finite(), Some(1));
        assert_eq!(output(&[f32::INFINITY]).first_non_finite(), Some(0));
    }

    #[test]
    fn every_set_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let labels = Array::of_texts("label", &[2], ["setosa", "a longer one"].into_iter());
        let scores = Array { shape: vec![1, 2], keys: vec!["1".to_owned(), "2".to_owned()], ..output(&[0.25, 0.75]) };
        // The second set lacks an optional output, the third has none at all.
        let sets = vec![vec![labels.clone(), scores], vec![labels], Vec::new()];
        let mut files = OutputFiles::new(folder.path());
        sets.iter().for_each(|set| files.write(set).expect("a file"));
        assert_eq!(read_outputs(folder.path()).expect("files"), sets);
        assert!(read_outputs(&folder.path().join("elsewhere")).is_err());
    }

    #[test]
    fn the_hash_sees_values_names_and_shapes() {
        let one = hash_outputs(&[output(&[1.0, 2.0])]);
        assert_ne!(one, hash_outputs(&[output(&[1.0, 2.5])]));
        let mut reshaped = output(&[1.0, 2.0]);
        reshaped.shape = vec![1, 2];
        assert_ne!(one, hash_outputs(&[reshaped]));
        assert_eq!(one, hash_outputs(&[output(&[1.0, 2.0])]));
    }
}
