//! Columns and rows: what perfrun asks of polars, and the only package that names it.
//!
//! Input: columns of equal length, or a Parquet file. Output: groups with their aggregates, files.
//! Deliberately absent: what the columns mean, and statistics that polars does not have.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod aggregate;
mod arrays;
mod boundary;
mod file;
mod pages;

use std::path::Path;

use polars::prelude::*;

pub use aggregate::{Aggregate, Numbers};
pub use arrays::{parquet_heads, read_parquet};
pub use boundary::FileError;
pub use file::{ParquetFile, write_groups};

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

/// The values of a new column.
#[derive(Clone, Debug)]
pub enum Values {
    /// Whole numbers of 32 bits.
    U32(Vec<Option<u32>>),
    /// Whole numbers of 64 bits.
    U64(Vec<Option<u64>>),
    /// Numbers.
    F64(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    /// Truth values.
    Bool(Vec<Option<bool>>),
    /// A column as it is; without a copy where it is large.
    AsIs(Column),
}

macro_rules! values_from {
    ($($of:ty => $variant:ident),*) => {$(
        impl From<Vec<$of>> for Values {
            fn from(values: Vec<$of>) -> Self {
                Values::AsIs(Column::new(PlSmallStr::EMPTY, values))
            }
        }
        impl From<Vec<Option<$of>>> for Values {
            fn from(values: Vec<Option<$of>>) -> Self {
                Values::$variant(values)
            }
        }
    )*};
}

values_from!(u32 => U32, u64 => U64, f64 => F64, String => Text, bool => Bool);

impl Values {
    fn named(self, name: &str) -> Column {
        let name = PlSmallStr::from_str(name);
        match self {
            Values::U32(values) => Column::new(name, values),
            Values::U64(values) => Column::new(name, values),
            Values::F64(values) => Column::new(name, values),
            Values::Text(values) => Column::new(name, values),
            Values::Bool(values) => Column::new(name, values),
            Values::AsIs(column) => column.with_name(name),
        }
    }
}

impl Table {
    /// A table of these columns.
    ///
    /// # Errors
    ///
    /// Columns of different lengths, or of one name.
    pub fn of<'a>(columns: impl IntoIterator<Item = (&'a str, Values)>) -> Result<Self, TableError> {
        let columns = columns.into_iter().map(|(name, values)| values.named(name)).collect();
        Ok(Table { frame: DataFrame::new_infer_height(columns)? })
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

    /// The same with more columns.
    ///
    /// # Errors
    ///
    /// Columns of another length.
    pub fn with<'a>(&self, columns: impl IntoIterator<Item = (&'a str, Values)>) -> Result<Self, TableError> {
        let mut frame = self.frame.clone();
        for (name, values) in columns {
            frame.with_column(values.named(name))?;
        }
        Ok(Table { frame })
    }

    /// These columns under new names, in this order.
    ///
    /// # Errors
    ///
    /// A column that is not there.
    pub fn select(&self, columns: &[(&str, &str)]) -> Result<Self, TableError> {
        let named = |(column, name): &(&str, &str)| {
            Ok(self.frame.column(column)?.clone().with_name(PlSmallStr::from_str(name)))
        };
        let columns = columns.iter().map(named).collect::<PolarsResult<_>>()?;
        Ok(Table { frame: DataFrame::new_infer_height(columns)? })
    }

    /// The rows in which no column is empty.
    ///
    /// # Errors
    ///
    /// What polars reports.
    pub fn without_gaps(&self) -> Result<Self, TableError> {
        Ok(Table { frame: self.frame.drop_nulls::<String>(None)? })
    }

    /// The rows of several tables of the same columns, one table after the other; `None` without a table.
    ///
    /// # Errors
    ///
    /// Columns that differ.
    pub fn stacked(tables: Vec<Table>) -> Result<Option<Self>, TableError> {
        let mut tables = tables.into_iter();
        let Some(mut first) = tables.next() else { return Ok(None) };
        for table in tables {
            first.frame.vstack_mut(&table.frame)?;
        }
        first.frame.rechunk_mut();
        Ok(Some(first))
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
    /// Numbers of a column in which no row is empty; not a number where one is.
    ///
    /// # Errors
    ///
    /// A column that is not there or holds something else.
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>, TableError> {
        Ok(self.f64s(column)?.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
    }

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
