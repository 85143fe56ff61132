//! Columns and rows: what perfrun asks of polars, and the only package that names it.
//!
//! Input: columns of equal length, or a Parquet file. Output: files, and aggregates of many numbers.
//! Deliberately absent: what the columns mean, and statistics that polars does not have.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod arrays;
mod boundary;
mod file;
mod numbers;
mod pages;

use std::path::Path;

use polars::prelude::*;

pub use arrays::{parquet_heads, read_parquet};
pub use boundary::FileError;
pub use file::{ParquetFile, write_groups};
pub use numbers::Numbers;

/// Rows under named columns.
#[derive(Clone, Debug)]
pub struct Table {
    frame: DataFrame,
}

/// A table is not what is expected of it: a column that is not there, or holds something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableError(pub String);

impl TableError {
    /// The file that the table was read from is damaged.
    pub fn in_file(&self, path: &Path) -> FileError {
        boundary::damaged(path, self)
    }
}

impl From<PolarsError> for TableError {
    fn from(error: PolarsError) -> Self {
        TableError(error.to_string())
    }
}

/// The values of a new column: whole numbers, numbers, texts or truth values, some of which may be missing.
#[derive(Clone, Debug)]
pub struct Values(Column);

macro_rules! values_from {
    ($($of:ty),*) => {$(
        impl From<Vec<$of>> for Values {
            fn from(values: Vec<$of>) -> Self {
                Values(Column::new(PlSmallStr::EMPTY, values))
            }
        }
    )*};
}

values_from!(u32, Option<u32>, u64, Option<u64>, f64, Option<f64>, String, Option<String>, bool);

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    ///
    /// Columns of different lengths, or of one name.
    pub fn of<'a>(columns: impl IntoIterator<Item = (&'a str, Values)>) -> Result<Self, TableError> {
        let named = |(name, Values(column)): (&str, Values)| column.with_name(PlSmallStr::from_str(name));
        Ok(Table { frame: DataFrame::new_infer_height(columns.into_iter().map(named).collect())? })
    }

    /// How many rows.
    pub fn height(&self) -> usize {
        self.frame.height()
    }

    /// Whether there is such a column.
    pub fn has(&self, column: &str) -> bool {
        self.frame.schema().contains(column)
    }

    /// The names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.frame.schema().iter_names().map(PlSmallStr::as_str)
    }

    /// The table in pieces whose columns lie in one stretch of memory each.
    pub fn parts(&mut self) -> impl Iterator<Item = Table> {
        self.frame.split_chunks().map(|frame| Table { frame })
    }
}

/// Values of a column, one a row; `None` where a row has none.
macro_rules! getter {
    ($(#[$doc:meta] $name:ident($kind:ident) -> $of:ty),*) => {
        impl Table {$(
            #[$doc]
            ///
            /// # Errors
            ///
            /// A column that is not there or holds something else.
            pub fn $name(&self, column: &str) -> Result<Vec<Option<$of>>, TableError> {
                Ok(self.frame.column(column)?.$kind()?.iter().collect())
            }
        )*}
    };
}

getter!(
    /// Whole numbers of 32 bits.
    u32s(u32) -> u32,
    /// Whole numbers of 64 bits.
    u64s(u64) -> u64,
    /// Numbers.
    f64s(f64) -> f64
);

impl Table {
    /// Texts.
    ///
    /// # Errors
    ///
    /// A column that is not there or holds something else.
    pub fn texts(&self, column: &str) -> Result<Vec<Option<&str>>, TableError> {
        Ok(self.frame.column(column)?.str()?.iter().collect())
    }

    /// A column of one of [`Table::parts`] as it lies in memory.
    ///
    /// # Errors
    ///
    /// As [`Table::u32s`], and where a row has no value.
    pub fn u32_slice(&self, column: &str) -> Result<&[u32], TableError> {
        Ok(self.frame.column(column)?.u32()?.cont_slice()?)
    }

    /// As [`Table::u32_slice`].
    ///
    /// # Errors
    ///
    /// As [`Table::u32_slice`].
    pub fn u64_slice(&self, column: &str) -> Result<&[u64], TableError> {
        Ok(self.frame.column(column)?.u64()?.cont_slice()?)
    }

    /// The values of a column, without those that are missing.
    ///
    /// # Errors
    ///
    /// As [`Table::u32s`].
    pub fn known_u64s(&self, column: &str) -> Result<Vec<u64>, TableError> {
        Ok(self.frame.column(column)?.u64()?.iter().flatten().collect())
    }
}
