//! Weights that a model keeps in files of their own.
//!
//! Input: a model as its file has it, and its folder. Output: the same with all bytes in it. Deliberately absent: writing
//! such files (`file` does).
//!
//! A model is a stranger's: what it says of offsets, lengths and shapes is compared with the file before any memory is
//! taken, and nothing is opened but files below the model's folder, since opening a named pipe waits for ever.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

use crate::machine::host::memory_bytes;
use crate::machine::plain_file;

use super::error::OnnxErrorKind;
use super::proto::tensor_proto::DataLocation;
use super::proto::{ModelProto, TensorProto};

/// Replaces references to other files by their bytes.
pub(super) fn take_in_external_data(model: &mut ModelProto, folder: &Path) -> Result<(), OnnxErrorKind> {
    let mut reader = Reader::of(folder);
    let mut problem = None;
    model.each_tensor_mut(&mut |tensor| {
        if problem.is_none() && is_external(tensor) {
            problem = reader.take_in(tensor).err();
        }
    });
    problem.map_or(Ok(()), Err)
}

/// Makes sure that every weight is where the model says, without reading one.
pub(super) fn check_external_data(model: &ModelProto, folder: &Path) -> Result<(), OnnxErrorKind> {
    let mut reader = Reader::of(folder);
    let mut problem = None;
    model.each_tensor(&mut |tensor| {
        if problem.is_none() && is_external(tensor) {
            problem = reader.find(tensor).err();
        }
    });
    problem.map_or_else(|| reader.check_rest(), Err)
}

fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location.is_some_and(|location| location.enum_value() == Ok(DataLocation::EXTERNAL))
}

/// Whether a location is not below the model's folder, by its text: `../x`, `/x`. A link inside the folder is fine: model
/// hubs keep the content elsewhere and link to it.
pub(super) fn leaves_folder(location: &str) -> bool {
    !Path::new(location).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Where a weight is, as the model says.
struct Place {
    location: String,
    offset: u64,
    length: Option<u64>,
}

impl Place {
    fn of(tensor: &TensorProto) -> Result<Self, OnnxErrorKind> {
        let value = |key: &str| tensor.external_data.iter().find(|entry| entry.key() == key).map(|entry| entry.value());
        let location = value("location").unwrap_or_default();
        let number = |key: &'static str| match value(key) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| OnnxErrorKind::ExternalDataPlace {
                tensor: tensor.name().to_owned(),
                key,
                value: text.into(),
                location: location.to_owned(),
            }),
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        Ok(Place { location: location.to_owned(), offset, length })
    }
}

struct Reader<'a> {
    folder: &'a Path,
    files: HashMap<String, (File, u64)>,
    /// Places of weights so far, and how many bytes they are.
    places: HashSet<(String, u64, u64)>,
    taken: u64,
    /// Of this machine.
    memory: u64,
}

impl<'a> Reader<'a> {
    fn of(folder: &'a Path) -> Self {
        Reader {
            folder,
            files: HashMap::new(),
            places: HashSet::new(),
            taken: 0,
            memory: memory_bytes().unwrap_or(u64::MAX),
        }
    }

    /// The file of a weight, and where in it the weight begins and how long it is.
    fn find(&mut self, tensor: &TensorProto) -> Result<(&mut File, u64, u64), OnnxErrorKind> {
        let Place { location, offset, length } = Place::of(tensor)?;
        self.open(&location)?;
        let Some((file, size)) = self.files.get_mut(&location) else {
            return Err(OnnxErrorKind::ExternalDataMissing { location });
        };
        // A model that does not say how long a weight is means what its shape asks for.
        let length = length.or_else(|| shape_bytes(tensor)).unwrap_or_else(|| size.saturating_sub(offset));
        check_length(tensor, length, &location)?;
        if offset.checked_add(length).is_none_or(|end| end > *size) {
            let (tensor, needed) = (tensor.name().to_owned(), offset.saturating_add(length));
            return Err(OnnxErrorKind::ExternalDataShort { location, tensor, needed, size: *size });
        }
        // Weights that are the same bytes are one weight.
        if self.places.insert((location, offset, length)) {
            self.taken = self.taken.saturating_add(length);
        }
        if self.taken > self.memory {
            return Err(OnnxErrorKind::TooLarge { memory: self.memory });
        }
        Ok((file, offset, length))
    }

    /// Whoever hashes or copies a model reads its files whole: what no weight uses must not take for ever either.
    fn check_rest(&self) -> Result<(), OnnxErrorKind> {
        for (location, (_, size)) in &self.files {
            let own = self.places.iter().filter(|(other, ..)| other == location).map(|(.., length)| *length);
            let used = own.fold(0, u64::saturating_add);
            if size.saturating_sub(used) > self.memory {
                return Err(OnnxErrorKind::ExternalDataUnused { location: location.clone(), used, size: *size });
            }
        }
        Ok(())
    }

    fn take_in(&mut self, tensor: &mut TensorProto) -> Result<(), OnnxErrorKind> {
        let memory = self.memory;
        let (file, offset, length) = self.find(tensor)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize).map_err(|_| OnnxErrorKind::TooLarge { memory })?;
        file.seek(SeekFrom::Start(offset)).map_err(OnnxErrorKind::Io)?;
        file.take(length).read_to_end(&mut bytes).map_err(OnnxErrorKind::Io)?;
        tensor.raw_data = Some(bytes);
        tensor.external_data.clear();
        tensor.data_location = None;
        Ok(())
    }

    fn open(&mut self, location: &str) -> Result<(), OnnxErrorKind> {
        if self.files.contains_key(location) {
            return Ok(());
        }
        let location = location.to_owned();
        if leaves_folder(&location) {
            return Err(OnnxErrorKind::ExternalDataOutside { location });
        }
        let path = self.folder.join(&location);
        let Ok(metadata) = std::fs::metadata(&path) else {
            return Err(OnnxErrorKind::ExternalDataMissing { location });
        };
        if !metadata.is_file() {
            return Err(OnnxErrorKind::ExternalDataNotAFile { location });
        }
        let file = plain_file::open(&path).map_err(OnnxErrorKind::Io)?;
        self.files.insert(location, (file, metadata.len()));
        Ok(())
    }
}

/// What the weight's shape asks for, where its type has whole bytes. Types of less than a byte are packed, and a shape that
/// is none is found where the weight is read.
fn shape_bytes(tensor: &TensorProto) -> Option<u64> {
    let size = tensor.element().size_bytes()?;
    let mut sizes = tensor.dims.iter().map(|size| u64::try_from(*size).ok());
    sizes.try_fold(size, |product, size| product.checked_mul(size?))
}

/// Makes sure that so many bytes are what the weight's shape asks for.
fn check_length(tensor: &TensorProto, found: u64, location: &str) -> Result<(), OnnxErrorKind> {
    if tensor.element().size_bytes().is_none() {
        return Ok(());
    }
    let expected = shape_bytes(tensor);
    match expected {
        Some(expected) if expected == found => Ok(()),
        _ => Err(OnnxErrorKind::ExternalDataLength {
            tensor: tensor.name().to_owned(),
            expected: expected.unwrap_or(u64::MAX),
            found,
            location: location.to_owned(),
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::onnx::file::load;
    use crate::onnx::proto::StringStringEntryProto;
    use crate::onnx::sample::{external_weight, model};
    use protobuf::Message;

    /// What becomes of a model with a weight of these keys, beside `w.bin` of 12 bytes.
    fn load_with(shape: &[i64], keys: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.bin"), [0; 12]).unwrap();
        make_pipe(&folder.path().join("pipe"));
        let mut weight = external_weight("w", "");
        weight.dims = shape.to_vec();
        let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: Some((*key).to_owned()),
            value: Some((*value).to_owned()),
            ..Default::default()
        };
        weight.external_data = keys.iter().map(entry).collect();
        let mut model = model();
        model.graph.as_mut().unwrap().initializer.push(weight);
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model.write_to_bytes().unwrap()).unwrap();
        load(&path).map_or_else(|error| error.kind.to_string(), |_| "read".to_owned())
    }

    fn make_pipe(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn nothing_outside_the_folder_and_nothing_but_files_is_opened() {
        assert_eq!(load_with(&[3], &[("location", "w.bin")]), "read");
        assert_eq!(
            load_with(&[3], &[("location", "../w.bin")]),
            "its external data file `../w.bin` is outside its folder"
        );
        assert!(load_with(&[3], &[("location", "/etc/passwd")]).contains("outside"));
        assert_eq!(load_with(&[3], &[("location", "none")]), "its external data file `none` is missing");
        assert_eq!(load_with(&[3], &[("location", "pipe")]), "its external data `pipe` is not a file");
        assert_eq!(load_with(&[3], &[("location", ".")]), "its external data `.` is not a file");
        assert_eq!(load_with(&[3], &[]), "its external data `` is not a file");
    }

    #[test]
    fn places_are_compared_with_the_file_and_the_shape_before_memory_is_taken() {
        let place = |key: &'static str, value: &'static str| vec![("location", "w.bin"), (key, value)];
        let short = "its weights need 13 bytes of `w.bin` for the tensor `w`, which has 12";
        assert_eq!(load_with(&[2], &[("location", "w.bin"), ("offset", "5"), ("length", "8")]), short);
        let negative = "its weight `w` has the offset `-8` in `w.bin`, which is not a number of bytes";
        assert_eq!(load_with(&[3], &place("offset", "-8")), negative);
        let long = load_with(&[3], &place("length", "1099511627776"));
        assert_eq!(long, "its weight `w` has 1099511627776 bytes in `w.bin`, but its shape asks for 12");
        let huge = load_with(&[1 << 38], &place("length", "1099511627776"));
        assert_eq!(huge, "its weights need 1099511627776 bytes of `w.bin` for the tensor `w`, which has 12");
        assert!(load_with(&[-3], &place("length", "12")).contains("asks for 18446744073709551615"));
    }

    #[test]
    fn a_huge_file_of_holes_is_neither_taken_into_memory_nor_read_for_a_few_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("w.bin")).unwrap();
        // A file system that has no such files has nothing to defend against.
        if file.set_len(1 << 40).is_err() {
            return;
        }
        let mut weight = external_weight("w", "w.bin");
        weight.dims = vec![4];
        let mut model = model();
        model.graph.as_mut().unwrap().initializer.push(weight);
        let unused = check_external_data(&model, folder.path()).unwrap_err().to_string();
        assert_eq!(unused, "its external data `w.bin` has 1099511627776 bytes, of which its weights use 16");
        model.graph.as_mut().unwrap().initializer.last_mut().unwrap().dims = vec![1 << 38];
        let problem = take_in_external_data(&mut model, folder.path()).unwrap_err();
        assert!(matches!(problem, OnnxErrorKind::TooLarge { .. }), "{problem}");
    }
}
