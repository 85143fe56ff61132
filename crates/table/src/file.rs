//! Tables in files: Parquet, which keeps types and is compressed, and CSV, which everything reads.

use std::fs::File;
use std::io;
use std::path::Path;

use polars::prelude::*;
use polars_parquet::parquet::metadata::ColumnChunkMetadata;

use super::boundary::FileError;
use super::{Table, TableError, boundary, pages};
use reading::{memory_bytes, plain_file};

/// Memory for the rows that are read at a time: what is decoded stands beside what is kept.
const BYTES_AT_A_TIME: usize = 16 << 20;

pub(super) fn reader(path: &Path) -> Result<ParquetReader<File>, FileError> {
    pages::check(path)?;
    let file = plain_file::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    Ok(ParquetReader::new(file))
}

fn read_some(
    path: &Path,
    reader: ParquetReader<File>,
    columns: Option<&[&str]>,
    rows: Option<(usize, usize)>,
) -> Result<Table, FileError> {
    let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let reader = reader.with_columns(columns).with_slice(rows);
    Ok(Table { frame: boundary::read(path, || reader.finish())? })
}

impl Table {
    /// Reads a Parquet file, or some of its columns, or so many rows from one on.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened, is damaged, or has no such column.
    pub fn read_parquet(
        path: &Path,
        columns: Option<&[&str]>,
        rows: Option<(usize, usize)>,
    ) -> Result<Self, FileError> {
        read_some(path, reader(path)?, columns, rows)
    }

    /// Reads a Parquet file, or some of its columns, part by part. `bytes_of_row` is about what a row takes while it is
    /// read: few bytes of a file can stand for any number of equal rows.
    ///
    /// # Errors
    ///
    /// As [`Table::read_parquet`]; more rows than memory has room for; what `take` says.
    pub fn read_parts<E: From<FileError>>(
        path: &Path,
        columns: Option<&[&str]>,
        bytes_of_row: usize,
        mut take: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut whole = reader(path)?;
        let metadata = boundary::read(path, || whole.get_metadata().cloned())?;
        let (rows, memory) = (metadata.num_rows, memory_bytes().unwrap_or(u64::MAX));
        if (rows as u64).saturating_mul(bytes_of_row as u64) > memory {
            let source = io::Error::other(format!("its {rows} rows take more memory than this machine has"));
            return Err(FileError::Open { path: path.to_owned(), source }.into());
        }
        let at_a_time = (BYTES_AT_A_TIME / bytes_of_row).max(1);
        for first in (0..rows).step_by(at_a_time) {
            let mut part = reader(path)?;
            part.set_metadata(metadata.clone());
            take(read_some(path, part, columns, Some((first, at_a_time)))?)?;
        }
        Ok(())
    }

    /// Whether a Parquet file says of one of its columns that no row has a value.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened or is damaged.
    pub fn is_empty_in_parquet(path: &Path, column: &str) -> Result<bool, FileError> {
        let mut reader = reader(path)?;
        boundary::read(path, || {
            let metadata = reader.get_metadata()?;
            let is_empty = |chunk: &ColumnChunkMetadata| {
                let known = chunk.statistics(&metadata.footer_buf).and_then(Result::ok);
                known.is_some_and(|known| known.null_count() == Some(chunk.num_values()))
            };
            let mut columns = metadata.row_groups.iter().map(|group| group.columns_under_root_iter(column));
            Ok(columns.all(|chunks| chunks.is_none_or(|mut chunks| chunks.all(is_empty))))
        })
    }

    /// The bytes of a Parquet file.
    ///
    /// # Errors
    ///
    /// What the writer or polars reports.
    pub fn to_parquet(&self, into: impl io::Write) -> io::Result<()> {
        let mut frame = self.frame.clone();
        let mut into = Remembering { into, failed: None };
        match ParquetWriter::new(&mut into).with_compression(ParquetCompression::Snappy).finish(&mut frame) {
            Ok(_) => Ok(()),
            Err(error) => Err(into.failed.unwrap_or_else(|| io::Error::other(error))),
        }
    }

    /// The text of a CSV file with a line of names; what is missing is empty.
    ///
    /// # Errors
    ///
    /// What polars or the writer reports.
    pub fn to_csv(&self) -> Result<String, TableError> {
        let failed = |error: &dyn std::fmt::Display| TableError(error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns()).map_err(|error| failed(&error))?;
        for row in 0..self.height() {
            let fields = self.frame.columns().iter().map(|column| column.get(row).map(|value| field(&value)));
            let fields: Vec<String> = fields.collect::<PolarsResult<_>>()?;
            writer.write_record(&fields).map_err(|error| failed(&error))?;
        }
        let bytes = writer.into_inner().map_err(|error| failed(&error))?;
        String::from_utf8(bytes).map_err(|error| failed(&error))
    }
}

/// A writer that keeps why it failed, of which polars tells nothing.
struct Remembering<W> {
    into: W,
    failed: Option<io::Error>,
}

impl<W> Remembering<W> {
    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let told = io::Error::from(error.kind());
            self.failed = Some(error);
            told
        })
    }
}

impl<W: io::Write> io::Write for Remembering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.into.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.into.flush();
        self.keep(done)
    }
}

fn field(value: &AnyValue<'_>) -> String {
    match value {
        AnyValue::Null => String::new(),
        AnyValue::String(text) => (*text).to_owned(),
        AnyValue::Float64(number) => number.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it_and_leaves_out_what_is_missing() {
        let names = vec!["a, \"b\"".to_owned(), "ü".to_owned()];
        let table =
            Table::of([("name", names.into()), ("n", vec![7_u64, 10].into()), ("value", vec![Some(0.1), None].into())]);
        assert_eq!(table.unwrap().to_csv().unwrap(), "name,n,value\n\"a, \"\"b\"\"\",7,0.1\nü,10,\n");
    }

    #[test]
    fn parquet_reads_back_whole_or_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let (a, b) = (vec![1_u64, 2, 3], vec![4_u32, 5, 6]);
        let table = Table::of([("a", a.into()), ("b", b.into()), ("none", vec![None::<u64>; 3].into())]).unwrap();
        table.to_parquet(File::create(&path).unwrap()).unwrap();
        assert!(Table::is_empty_in_parquet(&path, "none").unwrap());
        assert!(!Table::is_empty_in_parquet(&path, "a").unwrap() && Table::is_empty_in_parquet(&path, "c").unwrap());
        let part = Table::read_parquet(&path, Some(&["b"]), Some((1, 5))).unwrap();
        assert_eq!((part.u32s("b").unwrap(), part.has("a")), (vec![Some(5), Some(6)], false));
        assert!(Table::read_parquet(&path, Some(&["colour"]), None).is_err());
        assert!(matches!(Table::read_parquet(&folder.path().join("x"), None, None), Err(FileError::Open { .. })));
    }

    #[test]
    fn a_file_is_read_part_by_part_if_its_rows_fit_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let rows: Vec<u64> = (0..5).collect();
        Table::of([("a", rows.into())]).unwrap().to_parquet(File::create(&path).unwrap()).unwrap();
        let read = |bytes_of_row| {
            let mut parts = Vec::new();
            let done = Table::read_parts(&path, None, bytes_of_row, |part| {
                parts.push(part.u64s("a").unwrap().into_iter().flatten().collect::<Vec<_>>());
                Ok::<_, FileError>(())
            });
            done.map(|()| parts)
        };
        assert_eq!(read(BYTES_AT_A_TIME / 2).unwrap(), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(read(1).unwrap(), [[0, 1, 2, 3, 4]]);
        let FileError::Open { source, .. } = read(1 << 50).unwrap_err() else { panic!("it is not damaged") };
        assert_eq!(source.to_string(), "its 5 rows take more memory than this machine has");
    }

    #[test]
    fn whatever_a_bit_says_polars_neither_panics_nor_takes_all_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let table =
            Table::of([("a", vec![Some(1_u32), None, Some(3)].into()), ("b", vec![Some(0.5), None, None].into())]);
        let mut whole = Vec::new();
        table.unwrap().to_parquet(&mut whole).unwrap();
        for (index, bit) in (0..whole.len()).flat_map(|index| [(index, 1_u8), (index, 0x40)]) {
            let mut bytes = whole.clone();
            bytes[index] ^= bit;
            std::fs::write(&path, bytes).unwrap();
            // An allocation that fails would end this process.
            let _read = Table::read_parquet(&path, None, None);
        }
    }
}
