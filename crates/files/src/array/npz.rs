//! NumPy's format of several arrays, `.npz`: a zip archive with one `.npy` file for each.

use std::fs::File;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::read::ZipFile;

use super::Array;
use super::npy::{ArrayError, Head, NpyReader};
use reading::plain_file;

/// An open `.npz` file.
#[derive(Debug)]
pub struct Npz {
    archive: ZipArchive<File>,
    path: PathBuf,
}

impl Npz {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is no archive.
    pub fn open(path: &Path) -> Result<Self, ArrayError> {
        let file = plain_file::open(path).map_err(|source| ArrayError::Io { path: path.to_owned(), source })?;
        let archive = ZipArchive::new(file).map_err(|error| ArrayError::Format {
            path: path.to_owned(),
            reason: format!("not a .npz file: {error}"),
        })?;
        Ok(Npz { archive, path: path.to_owned() })
    }

    /// What every array is.
    ///
    /// # Errors
    ///
    /// An array that is damaged or that perfrun cannot use.
    pub fn heads(&mut self) -> Result<Vec<Head>, ArrayError> {
        (0..self.archive.len()).map(|index| Ok(self.reader(index)?.head)).collect()
    }

    /// The first items of an array, at most so many; `None` if the file has no array of that name.
    ///
    /// # Errors
    ///
    /// As [`Npz::heads`].
    pub fn read(&mut self, name: &str, most_items: u64) -> Result<Option<Array>, ArrayError> {
        for index in 0..self.archive.len() {
            let reader = self.reader(index)?;
            if reader.head.name == name {
                return reader.read(most_items).map(Some);
            }
        }
        Ok(None)
    }

    fn reader(&mut self, index: usize) -> Result<NpyReader<ZipFile<'_, File>>, ArrayError> {
        let path = self.path.clone();
        let damaged = |error| ArrayError::Format { path: path.clone(), reason: format!("entry {index}: {error}") };
        let entry = self.archive.by_index(index).map_err(damaged)?;
        let name = stem(&entry.name().map_err(damaged)?).to_owned();
        NpyReader::new(entry, &path, name)
    }
}

/// NumPy stores the array `x` as `x.npy`.
fn stem(name: &str) -> &str {
    name.strip_suffix(".npy").unwrap_or(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::array::write_npy;
    use onnx::ElementType;

    #[test]
    fn arrays_are_found_by_name_and_cut_to_items() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.npz");
        let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, shape) in [("x", vec![3, 2]), ("y", vec![3])] {
            let length = shape.iter().product::<u64>();
            let bytes = (0..length).flat_map(|value| (value as f32).to_le_bytes()).collect();
            let array = Array { name: name.to_owned(), element: ElementType::Float32, shape, bytes, keys: Vec::new() };
            archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
            let mut file = Vec::new();
            write_npy(&array, &mut file).unwrap();
            archive.write_all(&file).unwrap();
        }
        archive.finish().unwrap();
        let mut npz = Npz::open(&path).unwrap();
        let heads = npz.heads().unwrap();
        assert_eq!(heads.iter().map(|head| head.name.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        let cut = npz.read("x", 2).unwrap().unwrap();
        assert_eq!((cut.shape.as_slice(), cut.numbers()), (&[2, 2][..], Some(vec![0.0, 1.0, 2.0, 3.0])));
        assert_eq!(npz.read("z", 2).unwrap(), None);
        std::fs::write(&path, "PK").unwrap();
        assert!(Npz::open(&path).unwrap_err().to_string().contains("not a .npz file"));
    }
}
