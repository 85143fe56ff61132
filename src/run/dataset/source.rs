//! The file of a dataset, whatever its format.

use std::path::{Path, PathBuf};

use super::DatasetError;
use experiment::Dataset;
use files::array::{Array, Head, NpyReader, Npz};
use table::{parquet_heads, read_parquet};

/// An open file with arrays.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    format: Format,
    /// What it holds, in the order of the file.
    pub(super) heads: Vec<Head>,
    /// The array that has a file of its own.
    labels_file: Option<(PathBuf, Head)>,
}

#[derive(Debug)]
enum Format {
    Npz(Npz),
    Npy,
    Parquet,
}

impl Source {
    /// Opens the file, and that of the labels.
    pub(super) fn open(dataset: &Dataset) -> Result<Self, DatasetError> {
        let path = dataset.file.clone();
        let (format, heads) = match path.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => (Format::Npy, vec![NpyReader::open(&path)?.head]),
            Some("parquet") => (Format::Parquet, parquet_heads(&path)?),
            _ => {
                let mut npz = Npz::open(&path)?;
                let heads = npz.heads()?;
                (Format::Npz(npz), heads)
            }
        };
        let head = |path: &PathBuf| Ok::<_, DatasetError>((path.clone(), NpyReader::open(path)?.head));
        let labels_file = dataset.labels_file.as_ref().map(head).transpose()?;
        Ok(Source { path, format, heads, labels_file })
    }

    /// A row of a Parquet file has no shape but its length.
    pub(super) fn is_flat(&self) -> bool {
        matches!(self.format, Format::Parquet)
    }

    /// What the labels are: those in the file of that name, or those in a file of their own.
    pub(super) fn labels(&self, name: Option<&str>) -> Result<Option<&Head>, DatasetError> {
        match (&self.labels_file, name) {
            (Some((_, head)), _) => Ok(Some(head)),
            (None, None) => Ok(None),
            (None, Some(name)) => self.head(name).map(Some),
        }
    }

    pub(super) fn head(&self, name: &str) -> Result<&Head, DatasetError> {
        self.heads.iter().find(|head| head.name == name).ok_or_else(|| DatasetError::NoArray {
            name: name.to_owned(),
            known: self.heads.iter().map(|head| head.name.clone()).collect(),
        })
    }

    /// The first items of an array.
    pub(super) fn read(&mut self, name: &str, items: u64) -> Result<Array, DatasetError> {
        match &mut self.format {
            Format::Npy => Ok(NpyReader::open(&self.path)?.read(items)?),
            Format::Parquet => Ok(read_parquet(&self.path, name, items)?),
            Format::Npz(npz) => {
                let missing = || DatasetError::NoArray { name: name.to_owned(), known: Vec::new() };
                npz.read(name, items)?.ok_or_else(missing)
            }
        }
    }

    /// The first labels.
    pub(super) fn read_labels(&mut self, name: Option<&str>, items: u64) -> Result<Option<Array>, DatasetError> {
        match (&self.labels_file, name) {
            (Some((path, _)), _) => Ok(Some(NpyReader::open(path)?.read(items)?)),
            (None, Some(name)) => self.read(name, items).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The files of a dataset, for its hash.
pub(super) fn files(dataset: &Dataset) -> Vec<PathBuf> {
    std::iter::once(&dataset.file).chain(&dataset.labels_file).map(|path| Path::to_owned(path)).collect()
}
