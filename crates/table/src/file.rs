//! Tables in files: Parquet, which keeps types and is compressed, and CSV, which everything reads.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::*;
use polars_parquet::read::FileMetadata;

use super::boundary::FileError;
use super::{Table, TableError, boundary, pages};
use reading::{memory_bytes, plain_file};

/// Memory for the rows that are read at a time: the decoded rows and the kept ones are in memory at the same time.
const BYTES_AT_A_TIME: usize = 16 << 20;

pub(super) fn reader(path: &Path) -> Result<ParquetReader<File>, FileError> {
    pages::check(path)?;
    let file = plain_file::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    Ok(ParquetReader::new(file))
}

/// A Parquet file that is read in pieces: what it says of itself is parsed once.
#[derive(Clone)]
pub struct ParquetFile {
    path: PathBuf,
    metadata: Arc<FileMetadata>,
}

/// By its path: what it says of its columns fills pages.
impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ParquetFile").field(&self.path).finish()
    }
}

impl ParquetFile {
    /// # Errors
    ///
    /// A file that cannot be opened or is damaged.
    pub fn of(path: &Path) -> Result<Self, FileError> {
        let mut reader = reader(path)?;
        let metadata = boundary::read(path, || reader.get_metadata().cloned())?;
        Ok(ParquetFile { path: path.to_owned(), metadata })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is such a column.
    pub fn has(&self, column: &str) -> bool {
        self.metadata.schema_descr.fields().iter().any(|field| field.name() == column)
    }

    /// Some of the rows, of all columns or of some.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened, is damaged, or has no such column.
    pub fn rows(&self, columns: Option<&[&str]>, rows: Range<usize>) -> Result<Table, FileError> {
        let columns = columns.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let mut reader = reader(&self.path)?.with_columns(columns).with_slice(Some((rows.start, rows.len())));
        reader.set_metadata(self.metadata.clone());
        Ok(Table { frame: boundary::read(&self.path, || reader.finish())? })
    }

    /// All rows of all columns or of some, part by part. `bytes_of_row` is about what a row takes while it is
    /// read: few bytes of a file can stand for any number of equal rows.
    ///
    /// # Errors
    ///
    /// As [`ParquetFile::rows`]; more rows than memory has room for; what `take` says.
    pub fn parts<E: From<FileError>>(
        &self,
        columns: Option<&[&str]>,
        bytes_of_row: usize,
        mut take: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let (rows, memory) = (self.metadata.num_rows, memory_bytes().unwrap_or(u64::MAX));
        if (rows as u64).saturating_mul(bytes_of_row as u64) > memory {
            let source = io::Error::other(format!("its {rows} rows take more memory than this machine has"));
            return Err(FileError::Open { path: self.path.clone(), source }.into());
        }
        let at_a_time = (BYTES_AT_A_TIME / bytes_of_row).max(1);
        (0..rows).step_by(at_a_time).try_for_each(|first| take(self.rows(columns, first..first + at_a_time)?))
    }
}

impl Table {
    /// Reads a Parquet file.
    ///
    /// # Errors
    ///
    /// As [`ParquetFile::rows`].
    pub fn read_parquet(path: &Path) -> Result<Self, FileError> {
        let file = ParquetFile::of(path)?;
        file.rows(None, 0..file.metadata.num_rows)
    }

    /// The bytes of a Parquet file.
    ///
    /// # Errors
    ///
    /// What the writer or polars reports.
    pub fn to_parquet(&self, into: impl io::Write) -> io::Result<()> {
        let mut frame = self.frame.clone();
        Remembering::write(into, |writer| writer.finish(&mut frame).map(|_| ()))
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

/// Writes a Parquet file of tables with the same columns, each a row group or more, so that one of them is in memory at a
/// time. `each` hands them to its argument, one at least.
///
/// # Errors
///
/// What the writer, polars or `each` reports.
pub fn write_groups(
    into: impl io::Write,
    each: impl FnOnce(&mut dyn FnMut(Table) -> Result<(), TableError>) -> Result<(), TableError>,
) -> io::Result<()> {
    Remembering::write(into, |writer| {
        let (mut unused, mut groups) = (Some(writer), None);
        let written = each(&mut |table| {
            if let Some(writer) = unused.take() {
                groups = Some(writer.batched(table.frame.schema())?);
            }
            groups.as_mut().map_or(Ok(()), |groups| groups.write_batch(&table.frame)).map_err(TableError::from)
        });
        written.map_err(|error| polars_err!(ComputeError: "{error}"))?;
        groups.map_or(Ok(()), |groups| groups.finish().map(|_| ()))
    })
}

/// A writer that keeps why it failed, which polars does not report.
struct Remembering<W> {
    into: W,
    failed: Option<io::Error>,
}

impl<W: io::Write> Remembering<W> {
    /// Has polars write, and says what went wrong below it.
    fn write(into: W, write: impl FnOnce(ParquetWriter<&mut Self>) -> PolarsResult<()>) -> io::Result<()> {
        let mut into = Remembering { into, failed: None };
        let written = write(ParquetWriter::new(&mut into).with_compression(ParquetCompression::Snappy));
        written.map_err(|error| into.failed.unwrap_or_else(|| io::Error::other(error)))
    }
}

impl<W> Remembering<W> {
    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let reported = io::Error::from(error.kind());
            self.failed = Some(error);
            reported
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
        let file = ParquetFile::of(&path).unwrap();
        let part = file.rows(Some(&["b"]), 1..6).unwrap();
        assert_eq!((part.u32s("b").unwrap(), part.has("a")), (vec![Some(5), Some(6)], false));
        assert!(file.has("b") && !file.has("colour") && file.rows(Some(&["colour"]), 0..1).is_err());
        assert_eq!(Table::read_parquet(&path).unwrap().u64s("a").unwrap(), [Some(1), Some(2), Some(3)]);
        assert!(matches!(Table::read_parquet(&folder.path().join("x")), Err(FileError::Open { .. })));
    }

    #[test]
    fn groups_are_written_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let table = |values: &[Option<u64>]| Table::of([("a", values.to_vec().into())]).unwrap();
        let write = |groups: &[&[Option<u64>]]| {
            write_groups(File::create(&path).unwrap(), |put| groups.iter().try_for_each(|group| put(table(group))))
        };
        write(&[&[Some(1), None], &[Some(3)], &[]]).unwrap();
        let file = ParquetFile::of(&path).unwrap();
        assert_eq!(file.metadata.row_groups.len(), 2);
        assert_eq!(file.rows(None, 1..3).unwrap().u64s("a").unwrap(), [None, Some(3)]);
        write(&[&[]]).unwrap();
        assert_eq!(Table::read_parquet(&path).unwrap().height(), 0);
        let failed = write_groups(File::open(&path).unwrap(), |put| put(table(&[Some(1)])));
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(9), "the file is open for reading alone");
    }

    #[test]
    fn a_file_is_read_part_by_part_if_its_rows_fit_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let rows: Vec<u64> = (0..5).collect();
        Table::of([("a", rows.into())]).unwrap().to_parquet(File::create(&path).unwrap()).unwrap();
        let read = |bytes_of_row| {
            let mut parts = Vec::new();
            let file = ParquetFile::of(&path).unwrap();
            let done = file.parts(None, bytes_of_row, |part| {
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
            let _read = Table::read_parquet(&path);
        }
    }
}
