//! What the pages of a Parquet file say of themselves, looked at before polars takes memory at their word: a number of
//! values below zero is an allocation that ends the process.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::LazyLock;

use polars::prelude::{PolarsError, PolarsResult, polars_bail, polars_err};
use polars_io::mmap::ReaderBytes;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::parquet::read::{PageReader, read_metadata};

use super::boundary::{self, FileError};
use files::stamp::Memo;
use reading::plain_file;

/// Makes sure that no page claims more values than its column has. A file is looked at once in a process, as long as its
/// size and time stay as they are.
///
/// # Errors
///
/// A file that cannot be opened, or is damaged.
pub(super) fn check(path: &Path) -> Result<(), FileError> {
    static CHECKED: LazyLock<Memo<()>> = LazyLock::new(Memo::default);
    CHECKED.get_or_read(vec![path.to_owned()], |_| {
        let file = plain_file::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        boundary::read(path, || check_pages(file))
    })
}

fn check_pages(mut file: File) -> PolarsResult<()> {
    let damaged = |error: &dyn std::fmt::Display| -> PolarsError { polars_err!(ComputeError: "{error}") };
    let metadata = read_metadata(&mut file).map_err(|error| damaged(&error))?;
    // Only the heads of pages are looked at, so that little of the file is read.
    let ReaderBytes::Owned(bytes) = ReaderBytes::from(&mut file) else { polars_bail!(ComputeError: "it is no file") };
    for group in &metadata.row_groups {
        for column in group.parquet_columns() {
            // Each row has a value, or the mark that it has none.
            let values = usize::try_from(column.num_values()).ok().filter(|values| group.num_rows() <= *values);
            let Some(values) = values else { polars_bail!(ComputeError: "a column has fewer values than rows") };
            let range = column.byte_range();
            if range.start > range.end || range.end > bytes.len() as u64 {
                polars_bail!(ComputeError: "a column lies beyond its end");
            }
            let bytes = bytes.clone().sliced(range.start as usize..range.end as usize);
            let longest = bytes.len();
            for page in PageReader::new(Cursor::new(bytes), column, Vec::new(), longest) {
                let CompressedPage::Data(page) = page.map_err(|error| damaged(&error))? else { continue };
                if page.num_values() > values || page.null_count().is_some_and(|nulls| nulls > page.num_values()) {
                    polars_bail!(ComputeError: "a page claims more values than its column has");
                }
            }
        }
    }
    Ok(())
}
