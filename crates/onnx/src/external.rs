//! Weights that a model keeps in files of their own.
//!
//! Input: a model as its file has it, and its path. Output: the same with all bytes in it. Deliberately absent: writing
//! such files (`file` does).
//!
//! A model is a stranger's: what it says of offsets, lengths and shapes is compared with the file before any memory is
//! taken, and nothing is opened but regular files below the model's folder, as ONNX Runtime has it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use super::error::OnnxErrorKind;
use super::proto::tensor_proto::DataLocation;
use super::proto::{ModelProto, TensorProto};
use reading::{memory_bytes, plain_file};

/// Replaces references to other files by their bytes, for weights of at most `largest` bytes; for larger ones it
/// makes sure that they are where the model says.
pub(super) fn take_in_external_data(model: &mut ModelProto, path: &Path, largest: u64) -> Result<(), OnnxErrorKind> {
    take_in(model, Reader::of(path), largest)
}

fn take_in(model: &mut ModelProto, mut reader: Reader<'_>, largest: u64) -> Result<(), OnnxErrorKind> {
    let (mut taken, mut problem) = (0_u64, None);
    model.each_tensor_mut(&mut |tensor| {
        if problem.is_none() && is_external(tensor) {
            let memory = reader.memory;
            // Weights that share bytes in the file have each their own in memory.
            problem = match reader.take_in(tensor, largest) {
                Ok(length) if taken.saturating_add(length) > memory => Some(OnnxErrorKind::TooLarge { memory }),
                Ok(length) => {
                    taken += length;
                    None
                }
                Err(kind) => Some(kind),
            };
        }
    });
    problem.map_or(Ok(()), Err)
}

/// Makes sure that every weight is where the model says, without reading one.
pub(super) fn check_external_data(model: &ModelProto, path: &Path) -> Result<(), OnnxErrorKind> {
    let mut reader = Reader::of(path);
    let mut problem = None;
    model.each_tensor(&mut |tensor| {
        if problem.is_none() && is_external(tensor) {
            problem = reader.find(tensor).err();
        }
    });
    problem.map_or_else(|| reader.check_rest(), Err)
}

fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location.is_some_and(|location| location == i32::from(DataLocation::External))
}

/// Where the model at `path` may keep weights: below its folder, or below that of the file itself where the path is a link
/// (model hubs keep all content in one folder and link to it). Judged by the real paths, as ONNX Runtime 1.31 does.
pub(super) struct Bounds<'a> {
    folder: &'a Path,
    real: Vec<PathBuf>,
}

impl<'a> Bounds<'a> {
    pub(super) fn of(path: &'a Path) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = std::fs::canonicalize(path).ok();
        let of_file = file.and_then(|file| Some(file.parent()?.to_owned()));
        Bounds { folder, real: std::iter::once(real(folder)).chain(of_file).collect() }
    }

    /// The path of a file that the model names.
    ///
    /// # Errors
    ///
    /// It leaves the folder: `../x`, `/x`, a link that leads elsewhere.
    pub(super) fn path(&self, location: &str) -> Result<PathBuf, OnnxErrorKind> {
        let path = self.folder.join(location);
        let real = real(&path);
        if Path::new(location).is_absolute() || !self.real.iter().any(|folder| real.starts_with(folder)) {
            let at = (real != plain(&std::path::absolute(&path).unwrap_or_default())).then_some(real);
            return Err(OnnxErrorKind::ExternalDataOutside { location: location.to_owned(), at });
        }
        // `sub/../w` is `w`, unless `sub` is a link or is not there.
        let plain = plain(&path);
        let is_same = std::fs::canonicalize(&path).is_ok_and(|_| self::real(&plain) == real);
        Ok(if is_same { plain } else { path })
    }
}

/// The path without links and dots, as far as there is something; the rest as it is written.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parts: Vec<Component<'_>> = path.components().collect();
    for there in (1..=parts.len()).rev() {
        if let Ok(real) = std::fs::canonicalize(parts[..there].iter().collect::<PathBuf>()) {
            return plain(&parts[there..].iter().fold(real, |path, part| path.join(part)));
        }
    }
    plain(&path)
}

/// The path without dots, by its text.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Where a weight is, as the model says.
struct WeightLocation {
    location: String,
    offset: u64,
    length: Option<u64>,
}

impl WeightLocation {
    fn of(tensor: &TensorProto) -> Result<Self, OnnxErrorKind> {
        let value = |key: &str| tensor.external_data.iter().find(|entry| entry.key() == key).map(|entry| entry.value());
        let location = value("location").unwrap_or_default();
        let number = |key: &'static str| match value(key) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| OnnxErrorKind::ExternalDataRange {
                tensor: tensor.name().to_owned(),
                key,
                value: text.into(),
                location: location.to_owned(),
            }),
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        Ok(WeightLocation { location: location.to_owned(), offset, length })
    }
}

/// A file of weights.
#[derive(Default)]
struct Known {
    size: u64,
    /// By weights, each range counted once.
    used: u64,
}

struct Reader<'a> {
    bounds: Bounds<'a>,
    /// Files by what the model calls them.
    paths: HashMap<String, PathBuf>,
    files: HashMap<PathBuf, Known>,
    /// The one that was read last: exporters write up to one file for each weight, more than may be open.
    open: Option<(PathBuf, File)>,
    /// Ranges of weights so far, and how many bytes they are.
    ranges: HashSet<Found>,
    used: u64,
    /// Of this machine.
    memory: u64,
}

/// A weight: its file, where in it the weight begins, and how long it is.
type Found = (PathBuf, u64, u64);

impl<'a> Reader<'a> {
    fn of(path: &'a Path) -> Self {
        Reader {
            bounds: Bounds::of(path),
            paths: HashMap::new(),
            files: HashMap::new(),
            open: None,
            ranges: HashSet::new(),
            used: 0,
            memory: memory_bytes().unwrap_or(u64::MAX),
        }
    }

    fn find(&mut self, tensor: &TensorProto) -> Result<Found, OnnxErrorKind> {
        let WeightLocation { location, offset, length } = WeightLocation::of(tensor)?;
        let file = self.path(&location)?;
        let size = self.size(&file, &location)?;
        // A model that does not say how long a weight is means what its shape asks for.
        let length = length.or_else(|| shape_bytes(tensor)).unwrap_or_else(|| size.saturating_sub(offset));
        check_length(tensor, length, &location)?;
        if offset.checked_add(length).is_none_or(|end| end > size) {
            let (tensor, needed) = (tensor.name().to_owned(), offset.saturating_add(length));
            return Err(OnnxErrorKind::ExternalDataShort { location, tensor, needed, size });
        }
        // Weights that are the same bytes are one weight.
        if self.ranges.insert((file.clone(), offset, length)) {
            let known = self.files.entry(file.clone()).or_default();
            known.used = known.used.saturating_add(length);
            self.used = self.used.saturating_add(length);
        }
        if self.used > self.memory {
            return Err(OnnxErrorKind::TooLarge { memory: self.memory });
        }
        Ok((file, offset, length))
    }

    /// Whoever hashes or copies a model reads its files whole: what no weight uses must not take for ever either.
    fn check_rest(&self) -> Result<(), OnnxErrorKind> {
        let is_beyond = |known: &Known| known.size.saturating_sub(known.used) > self.memory;
        match self.files.iter().find(|(_, known)| is_beyond(known)) {
            Some((file, &Known { size, used })) => {
                let location = file.strip_prefix(self.bounds.folder).unwrap_or(file).display().to_string();
                Err(OnnxErrorKind::ExternalDataUnused { location, used, size })
            }
            None => Ok(()),
        }
    }

    /// Moves a weight's bytes into it, unless they are more than `largest`; how many.
    fn take_in(&mut self, tensor: &mut TensorProto, largest: u64) -> Result<u64, OnnxErrorKind> {
        let memory = self.memory;
        let (path, offset, length) = self.find(tensor)?;
        if length > largest {
            return Ok(0);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize).map_err(|_| OnnxErrorKind::TooLarge { memory })?;
        let file = self.open(&path).map_err(OnnxErrorKind::Io)?;
        file.seek(SeekFrom::Start(offset)).map_err(OnnxErrorKind::Io)?;
        file.take(length).read_to_end(&mut bytes).map_err(OnnxErrorKind::Io)?;
        tensor.raw_data = Some(bytes.into());
        tensor.external_data.clear();
        tensor.data_location = None;
        Ok(length)
    }

    /// The same for `w`, `./w` and `sub/../w`.
    fn path(&mut self, location: &str) -> Result<PathBuf, OnnxErrorKind> {
        if let Some(path) = self.paths.get(location) {
            return Ok(path.clone());
        }
        let path: PathBuf = self.bounds.path(location)?.components().collect();
        self.paths.insert(location.to_owned(), path.clone());
        Ok(path)
    }

    fn size(&mut self, file: &Path, location: &str) -> Result<u64, OnnxErrorKind> {
        if let Some(known) = self.files.get(file) {
            return Ok(known.size);
        }
        let location = location.to_owned();
        let size = self.open(file).and_then(|file| Ok(file.metadata()?.len())).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => OnnxErrorKind::ExternalDataMissing { location },
            ErrorKind::InvalidInput => OnnxErrorKind::ExternalDataNotAFile { location },
            _ => OnnxErrorKind::Io(error),
        })?;
        self.files.insert(file.to_owned(), Known { size, used: 0 });
        Ok(size)
    }

    fn open(&mut self, path: &Path) -> io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            self.open = Some((path.to_owned(), plain_file::open(path)?));
        }
        let open = self.open.as_mut().map(|(_, file)| file);
        open.ok_or_else(|| ErrorKind::NotFound.into())
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
    use crate::file::load;
    use crate::proto::StringStringEntryProto;
    use crate::sample::{external_weight, model};
    use prost::Message;

    /// What becomes of a model with a weight of these keys, next to `w.bin` of 12 bytes.
    fn load_with(shape: &[i64], keys: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.bin"), [0; 12]).unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        make_pipe(&folder.path().join("pipe"));
        let mut weight = external_weight("w", "");
        weight.dims = shape.to_vec();
        let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
            key: Some((*key).to_owned()),
            value: Some((*value).to_owned()),
        };
        weight.external_data = keys.iter().map(entry).collect();
        let mut model = model();
        model.graph.as_mut().unwrap().initializer.push(weight);
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
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
        for outside in ["/etc/passwd", "a/../../w.bin", "sub/../../w.bin", "sub/../..", "../none/w.bin"] {
            assert!(load_with(&[3], &[("location", outside)]).contains("outside"), "{outside}");
        }
        for inside in ["./w.bin", "sub/../w.bin", "sub/.././/w.bin"] {
            assert_eq!(load_with(&[3], &[("location", inside)]), "read", "{inside}");
        }
        // As for the operating system: what is not there has no way back.
        assert_eq!(load_with(&[3], &[("location", "a/../w.bin")]), "its external data file `a/../w.bin` is missing");
        assert_eq!(load_with(&[3], &[("location", "none")]), "its external data file `none` is missing");
        assert_eq!(load_with(&[3], &[("location", "pipe")]), "its external data `pipe` is not a file");
        assert_eq!(load_with(&[3], &[("location", ".")]), "its external data `.` is not a file");
        assert_eq!(load_with(&[3], &[]), "its external data `` is not a file");
    }

    #[test]
    fn a_model_without_a_folder_in_its_path_lies_in_the_current_one() {
        let bounds = Bounds::of(Path::new("m.onnx"));
        assert_eq!(bounds.path("src/../Cargo.toml").unwrap(), Path::new("Cargo.toml"));
        assert!(bounds.path("../w.bin").is_err());
    }

    #[test]
    fn links_are_judged_by_where_they_lead() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let [models, hub, content] = ["models", "hub", "content"].map(|name| root.path().join(name));
        [&models, &hub, &content].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let model_of = |location: &str| {
            let mut model = model();
            let weight = TensorProto { dims: vec![3], ..external_weight("w", location) };
            model.graph.as_mut().unwrap().initializer.push(weight);
            model.encode_to_vec()
        };
        let write = |path: &Path, location: &str| std::fs::write(path, model_of(location)).unwrap();
        let look = |path: &Path| load(path).map_or_else(|error| error.kind.to_string(), |_| "read".to_owned());
        std::fs::write(content.join("data"), [0; 12]).unwrap();
        std::fs::write(models.join("w.bin"), [0; 12]).unwrap();
        // Content and links in folders of their own, as Hugging Face's cache has them.
        write(&content.join("blob"), "w.data");
        symlink("../content/blob", hub.join("model.onnx")).unwrap();
        symlink("../content/data", hub.join("w.data")).unwrap();
        assert_eq!(look(&hub.join("model.onnx")), "read");
        // A link within the folder, a folder that is one, and one that leads out.
        symlink("w.bin", models.join("same.bin")).unwrap();
        symlink("../content", models.join("elsewhere")).unwrap();
        symlink("../content/data", models.join("out.bin")).unwrap();
        symlink(&models, root.path().join("linked")).unwrap();
        for (location, expected) in [("same.bin", true), ("elsewhere/../models/w.bin", true), ("w.bin", true)] {
            write(&models.join("model.onnx"), location);
            assert_eq!(look(&root.path().join("linked/model.onnx")) == "read", expected, "{location}");
        }
        let real = std::fs::canonicalize(content.join("data")).unwrap();
        for location in ["out.bin", "elsewhere/data"] {
            write(&models.join("model.onnx"), location);
            let said = format!("its external data file `{location}` is outside its folder, at {}", real.display());
            assert_eq!(look(&models.join("model.onnx")), said);
        }
    }

    #[test]
    fn places_are_compared_with_the_file_and_the_shape_before_memory_is_taken() {
        let location = |key: &'static str, value: &'static str| vec![("location", "w.bin"), (key, value)];
        let short = "its weights need 13 bytes of `w.bin` for the tensor `w`, which has 12";
        assert_eq!(load_with(&[2], &[("location", "w.bin"), ("offset", "5"), ("length", "8")]), short);
        let negative = "its weight `w` has the offset `-8` in `w.bin`, which is not a number of bytes";
        assert_eq!(load_with(&[3], &location("offset", "-8")), negative);
        let long = load_with(&[3], &location("length", "1099511627776"));
        assert_eq!(long, "its weight `w` has 1099511627776 bytes in `w.bin`, but its shape asks for 12");
        let huge = load_with(&[1 << 38], &location("length", "1099511627776"));
        assert_eq!(huge, "its weights need 1099511627776 bytes of `w.bin` for the tensor `w`, which has 12");
        assert!(load_with(&[-3], &location("length", "12")).contains("asks for 18446744073709551615"));
    }

    #[test]
    fn a_huge_file_of_holes_is_neither_taken_into_memory_nor_read_for_a_few_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("w.bin")).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut weight = external_weight("w", "w.bin");
        weight.dims = vec![4];
        let mut model = model();
        model.graph.as_mut().unwrap().initializer.push(weight);
        let unused = check_external_data(&model, &folder.path().join("m")).unwrap_err().to_string();
        assert_eq!(unused, "its external data `w.bin` has 1099511627776 bytes, of which its weights use 16");
        model.graph.as_mut().unwrap().initializer.last_mut().unwrap().dims = vec![1 << 38];
        let problem = take_in_external_data(&mut model, &folder.path().join("m"), u64::MAX).unwrap_err();
        assert!(matches!(problem, OnnxErrorKind::TooLarge { .. }), "{problem}");
    }

    #[test]
    fn one_file_has_many_names_and_shared_bytes_are_taken_once_each() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.bin"), [0; 12]).unwrap();
        let mut model = model();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        for location in ["w.bin", "./w.bin", "sub/../w.bin"] {
            let mut weight = external_weight(location, location);
            weight.dims = vec![3];
            model.graph.as_mut().unwrap().initializer.push(weight);
        }
        let path = folder.path().join("m");
        let within = |memory| {
            let mut reader = Reader { memory, ..Reader::of(&path) };
            let found: Vec<_> = model.graph.as_ref().unwrap().initializer[2..]
                .iter()
                .map(|weight| reader.find(weight).unwrap())
                .collect();
            assert_eq!((found.len(), reader.files.len(), reader.used), (3, 1, 12));
            take_in(&mut model.clone(), Reader { memory, ..Reader::of(&path) }, u64::MAX).is_ok()
        };
        assert_eq!([within(12), within(35), within(36)], [false, false, true]);
    }
}
