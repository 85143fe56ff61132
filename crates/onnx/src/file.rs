//! A whole model from disk and back, with its weights.
//!
//! Input: a path. Output: a [`ModelProto`] whose tensors all hold their bytes, wherever the file keeps them; or files on
//! disk, with the weights in one of their own where the model would pass what a protobuf may hold. Deliberately absent:
//! judging the graph (`graph_check` does).
//!
//! The bytes of a weight are read once, straight into the message, so that reading takes little more memory than the
//! model, and writing takes no more.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use prost::Message;

use super::error::{OnnxError, OnnxErrorKind};
use super::external::{check_external_data, take_in_external_data};
use super::functions::check_functions;
use super::order;
use super::proto::tensor_proto::DataLocation;
use super::proto::{ModelProto, StringStringEntryProto, TensorProto};
use super::read::{ModelHeader, read_header};
use super::skeleton::{KEPT, skeleton};
use super::stream::{self, StreamError};
use super::unknown;
use super::wire::{Fault, Wire};
use reading::{memory_bytes, plain_file};

/// What a protobuf message may hold, less room for what stands around the weights.
const LARGEST_FILE_BYTES: u64 = (1 << 31) - (1 << 20);

/// Weights below this stay in the model file: shapes and scalars must be there when the graph is read.
const LEAST_EXTERNAL_BYTES: usize = 1024;

/// Where a weight may begin in a file of its own, so that it can be mapped into memory.
const EXTERNAL_ALIGNMENT: u64 = 4096;

/// Reads the model at `path` with all its weights.
///
/// # Errors
///
/// As [`read_header`], functions whose calls have no end or stand for too many nodes, and external data that is not there,
/// not as the model says, or outside the model's folder.
pub fn load(path: &Path) -> Result<ModelProto, OnnxError> {
    // It finds pointers, pipes, truncation and damage, and says where.
    read_header(path)?;
    let (mut file, size) = open(path)?;
    let memory = memory_bytes().unwrap_or(u64::MAX);
    if size > memory {
        return Err(OnnxError { path: path.to_owned(), kind: OnnxErrorKind::TooLarge { memory } });
    }
    whole_model(path, &mut file, size, u64::MAX)
}

/// Reads the model at `path` without the content of its weights, but for small ones: what shapes and costs follow from.
///
/// # Errors
///
/// As [`load`].
pub fn load_graph(path: &Path) -> Result<ModelProto, OnnxError> {
    read_header(path)?;
    let skeleton = skeleton_of(path)?;
    whole_model(path, &mut skeleton.as_slice(), skeleton.len() as u64, KEPT)
}

impl ModelHeader {
    /// Makes sure that the files of weights next to the model, which was read from `path`, are there, and all weights
    /// in them.
    ///
    /// # Errors
    ///
    /// The first one that is not.
    pub fn check_files(&self, path: &Path) -> Result<(), OnnxError> {
        if self.external_files.is_empty() {
            return Ok(());
        }
        let skeleton = skeleton_of(path)?;
        let model = parse(path, &mut skeleton.as_slice(), skeleton.len() as u64)?;
        check_external_data(&model, path).map_err(|kind| OnnxError { path: path.to_owned(), kind })
    }
}

fn whole_model(path: &Path, source: &mut dyn Read, size: u64, largest: u64) -> Result<ModelProto, OnnxError> {
    let fail = |kind| OnnxError { path: path.to_owned(), kind };
    let mut model = parse(path, source, size)?;
    check_functions(&model).map_err(fail)?;
    if let Some(graph) = model.graph.as_mut() {
        order::sort(graph);
    }
    take_in_external_data(&mut model, path, largest).map_err(fail)?;
    Ok(model)
}

/// The file, and its size.
fn open(path: &Path) -> Result<(File, u64), OnnxError> {
    let opened = plain_file::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (size, file) = opened.map_err(|error| OnnxError { path: path.to_owned(), kind: OnnxErrorKind::Io(error) })?;
    Ok((file, size))
}

/// Fields of the model at `path` that this version of perfrun does not know, so that [`load`] leaves them out; the first
/// ones, as `field 27 of ModelProto`.
///
/// # Errors
///
/// As [`load`].
pub fn unknown_fields(path: &Path) -> Result<Vec<String>, OnnxError> {
    let found = walked(path, unknown::unknown_fields)?;
    Ok(found.into_iter().map(|(message, number)| format!("field {number} of {message}")).collect())
}

fn skeleton_of(path: &Path) -> Result<Vec<u8>, OnnxError> {
    walked(path, skeleton)
}

fn walked<T>(path: &Path, walk: impl FnOnce(Wire<File>) -> Result<T, Fault>) -> Result<T, OnnxError> {
    let (file, size) = open(path)?;
    walk(Wire::new(file, size)).map_err(|fault| {
        let kind = match fault {
            Fault::Io(error) => OnnxErrorKind::Io(error),
            Fault::Truncated { offset, missing } => OnnxErrorKind::Truncated { offset, missing },
            Fault::Damaged { offset, detail } => OnnxErrorKind::Damaged { offset, detail },
        };
        OnnxError { path: path.to_owned(), kind }
    })
}

/// The model as its file has it.
fn parse(path: &Path, source: &mut dyn Read, size: u64) -> Result<ModelProto, OnnxError> {
    stream::read(source, size).map_err(|problem| {
        let kind = match problem {
            StreamError::Io(error) => OnnxErrorKind::Io(error),
            StreamError::Content(error) => OnnxErrorKind::Damaged { offset: 0, detail: error.to_string() },
        };
        OnnxError { path: path.to_owned(), kind }
    })
}

/// Writes a model to `path`, and to `<path>.data` what would not fit; returns what was written, the model first.
///
/// Both files appear whole, by renaming, the model last.
///
/// # Errors
///
/// What the operating system says.
pub fn save(model: ModelProto, path: &Path) -> io::Result<Vec<PathBuf>> {
    save_within(model, path, LARGEST_FILE_BYTES)
}

fn save_within(mut model: ModelProto, path: &Path, largest: u64) -> io::Result<Vec<PathBuf>> {
    let mut written = vec![path.to_owned()];
    if model.encoded_len() as u64 > largest {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".data");
        let data = path.with_file_name(&name);
        move_weights_out(&mut model, &data, &name.to_string_lossy())?;
        written.push(data);
    }
    whole(path, |file| stream::write(model, file))?;
    Ok(written)
}

/// Writes a file that appears whole or not at all.
fn whole(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
    plain_file::replace(path, |file| {
        let mut buffered = BufWriter::with_capacity(1 << 16, file);
        write(&mut buffered)?;
        buffered.flush()
    })
}

fn move_weights_out(model: &mut ModelProto, data: &Path, location: &str) -> io::Result<()> {
    whole(data, |file| {
        let mut position = 0_u64;
        let mut problem = None;
        model.each_tensor_mut(&mut |tensor| {
            if problem.is_none() && tensor.raw_data.as_ref().is_some_and(|bytes| bytes.len() >= LEAST_EXTERNAL_BYTES) {
                problem = move_out(tensor, file, &mut position, location).err();
            }
        });
        problem.map_or(Ok(()), Err)
    })
}

fn move_out(tensor: &mut TensorProto, file: &mut dyn Write, position: &mut u64, location: &str) -> io::Result<()> {
    let offset = position.next_multiple_of(EXTERNAL_ALIGNMENT);
    file.write_all(&vec![0; (offset - *position) as usize])?;
    let bytes = tensor.raw_data.take().unwrap_or_default();
    file.write_all(&bytes)?;
    *position = offset + bytes.len() as u64;
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) };
    let (offset, length) = (offset.to_string(), bytes.len().to_string());
    tensor.external_data =
        vec![entry("location", location.to_owned()), entry("offset", offset), entry("length", length)];
    tensor.data_location = Some(DataLocation::External.into());
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample::model;

    fn with_weights() -> ModelProto {
        let mut model = model();
        let values: Vec<f32> = (0..1000).map(|value| value as f32).collect();
        let graph = model.graph.as_mut().unwrap();
        graph.initializer.push(TensorProto::of_floats("large", &[10, 100], &values));
        graph.initializer.push(TensorProto::of_floats("larger", &[10, 100], &values));
        model
    }

    #[test]
    fn a_model_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let model = with_weights();
        assert_eq!(save(model.clone(), &path).unwrap(), std::slice::from_ref(&path));
        assert_eq!(load(&path).unwrap(), model);
    }

    #[test]
    fn a_graph_has_no_weights_but_the_small_ones_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let mut model = model();
        let table = TensorProto::of_floats("table", &[64, 64], &[0.5; 4096]);
        let sizes: Vec<i64> = (0..500).collect();
        let sizes = TensorProto::of_integers("sizes", &[500], &sizes);
        model.graph.as_mut().unwrap().initializer.extend([table, sizes.clone()]);
        for largest in [LARGEST_FILE_BYTES, 4000] {
            let written = save_within(model.clone(), &path, largest).unwrap();
            assert_eq!(written.len(), if largest == 4000 { 2 } else { 1 });
            let graph = load_graph(&path).unwrap().graph.unwrap();
            let stored = |name: &str| graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap();
            assert_eq!((stored("table").dims.as_slice(), &stored("table").raw_data), (&[64, 64][..], &None));
            assert_eq!(stored("sizes"), &sizes);
        }
        // What is not as the model says is found all the same.
        std::fs::write(folder.path().join("model.onnx.data"), [0; 8]).unwrap();
        assert!(load_graph(&path).unwrap_err().to_string().contains("its weights need"));
    }

    #[test]
    fn weights_that_do_not_fit_go_to_a_file_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let model = with_weights();
        let written = save_within(model.clone(), &path, 4000).unwrap();
        assert_eq!(written, [path.clone(), folder.path().join("model.onnx.data")]);
        assert_eq!(written[1].metadata().unwrap().len(), 4096 + 4000);
        assert!(path.metadata().unwrap().len() < 1000);
        assert_eq!(load(&path).unwrap(), model);
        std::fs::remove_file(&written[1]).unwrap();
        let error = load(&path).unwrap_err();
        assert_eq!(error.kind.to_string(), "its external data file `model.onnx.data` is missing");
    }
    #[test]
    fn a_file_of_holes_is_not_taken_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        // No version of the format has a field 31; this one is longer than memory.
        let length = memory_bytes().unwrap().next_power_of_two();
        let mut bytes = [&model().encode_to_vec()[..], &[0xfa, 0x01]].concat();
        prost::encoding::encode_varint(length, &mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 + length).unwrap();
        assert!(matches!(load(&path).unwrap_err().kind, OnnxErrorKind::TooLarge { .. }));
        assert_eq!(unknown_fields(&path).unwrap(), ["field 31 of ModelProto"]);
        assert!(load_graph(&path).is_err());
    }
}
