//! Columns of a user's Parquet file as arrays: one row is one item, and lists are the numbers or texts of an item.

use std::path::Path;

use polars::prelude::*;

use super::boundary;
use super::boundary::{FileError, damaged};
use super::file::reader;
use files::array::{Array, Head};
use onnx::ElementType;

/// What the columns are that hold numbers, texts or lists of them, by the first row; all other columns are left out.
///
/// # Errors
///
/// A file that cannot be read.
pub fn parquet_heads(path: &Path) -> Result<Vec<Head>, FileError> {
    let (mut counted, first) = (reader(path)?, reader(path)?.with_slice(Some((0, 1))));
    let rows = boundary::read(path, || counted.num_rows())? as u64;
    let first = boundary::read(path, || first.finish())?;
    let head = |column: &Column| {
        let mut head = array(column.as_materialized_series(), path).ok()?;
        if let Some(items) = head.shape.first_mut() {
            *items = rows;
        }
        Some(Head { name: head.name, element: head.element, shape: head.shape })
    };
    Ok(first.columns().iter().filter_map(head).collect())
}

/// The first items of a column, at most so many.
///
/// # Errors
///
/// A file without that column, lists of different lengths, and values that are missing or neither numbers nor texts.
pub fn read_parquet(path: &Path, column: &str, most_items: u64) -> Result<Array, FileError> {
    let most = usize::try_from(most_items).unwrap_or(usize::MAX);
    let reader = reader(path)?.with_columns(Some(vec![column.to_owned()])).with_slice(Some((0, most)));
    let frame = boundary::read(path, || reader.finish())?;
    let column = frame.column(column).map_err(|error| damaged(path, &error))?;
    array(column.as_materialized_series(), path)
}

fn array(series: &Series, path: &Path) -> Result<Array, FileError> {
    let name = series.name().to_string();
    let wrong = |what: &str| damaged(path, &format!("column {name}: {what}"));
    let mut shape = vec![series.len() as u64];
    let mut values = series.clone();
    while matches!(values.dtype(), DataType::List(_)) {
        let lists = values.list().map_err(|error| damaged(path, &error))?;
        let offsets = lists.offsets().map_err(|error| damaged(path, &error))?;
        let mut lengths = offsets.lengths();
        let first = lengths.next().unwrap_or(0);
        if lengths.any(|length| length != first) {
            return Err(wrong("its lists have different lengths"));
        }
        shape.push(first as u64);
        let plain = ExplodeOptions { empty_as_null: false, keep_nulls: true };
        values = values.explode(plain).map_err(|error| damaged(path, &error))?;
    }
    if values.null_count() > 0 {
        return Err(wrong("it has empty values"));
    }
    let (element, bytes) =
        elements(&values).ok_or_else(|| wrong(&format!("{} is neither a number nor a text", values.dtype())))?;
    Ok(Array { name, element, shape, bytes, keys: Vec::new() })
}

fn elements(values: &Series) -> Option<(ElementType, Vec<u8>)> {
    macro_rules! of {
        ($element:ident, $column:ident) => {{
            let column = values.$column().ok()?;
            (ElementType::$element, column.iter().flatten().flat_map(|value| value.to_le_bytes()).collect())
        }};
    }
    Some(match values.dtype() {
        DataType::Float32 => of!(Float32, f32),
        DataType::Float64 => of!(Float64, f64),
        DataType::Int32 => of!(Int32, i32),
        DataType::Int64 => of!(Int64, i64),
        DataType::UInt32 => of!(Uint32, u32),
        DataType::UInt64 => of!(Uint64, u64),
        DataType::Boolean => (ElementType::Bool, values.bool().ok()?.iter().flatten().map(u8::from).collect()),
        DataType::String => {
            let texts = Array::of_texts("", &[], values.str().ok()?.iter().flatten());
            (ElementType::String, texts.bytes)
        }
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Table;

    fn write(path: &Path, columns: Vec<Column>) {
        let table = Table { frame: DataFrame::new_infer_height(columns).unwrap() };
        table.to_parquet(std::fs::File::create(path).unwrap()).unwrap();
    }

    #[test]
    fn rows_are_items_and_lists_are_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let pixels: Vec<Series> =
            [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]].iter().map(|row| Series::new("".into(), row)).collect();
        let columns = vec![
            Column::new("pixels".into(), pixels),
            Column::new("label".into(), [7_i64, 8, 9]),
            Column::new("name".into(), ["a", "b", "c"]),
        ];
        write(&path, columns);
        let heads = parquet_heads(&path).unwrap();
        let shapes: Vec<_> = heads.iter().map(|head| (head.name.as_str(), head.shape.clone())).collect();
        assert_eq!(shapes, [("pixels", vec![3, 2]), ("label", vec![3]), ("name", vec![3])]);
        let array = read_parquet(&path, "pixels", 2).unwrap();
        assert_eq!((array.shape.as_slice(), array.numbers()), (&[2, 2][..], Some(vec![1.0, 2.0, 3.0, 4.0])));
        assert_eq!(read_parquet(&path, "label", 9).unwrap().numbers(), Some(vec![7.0, 8.0, 9.0]));
        assert_eq!(read_parquet(&path, "name", 2).unwrap(), Array::of_texts("name", &[2], ["a", "b"].into_iter()));
        assert!(read_parquet(&path, "colour", 9).is_err());
        std::fs::write(&path, "PAR1").unwrap();
        assert!(parquet_heads(&path).is_err());
    }

    #[test]
    fn lists_of_different_lengths_are_no_array() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let ragged = [Series::new("".into(), [1.0_f32]), Series::new("".into(), [1.0_f32, 2.0])];
        write(&path, vec![Column::new("x".into(), ragged)]);
        assert!(read_parquet(&path, "x", 9).unwrap_err().to_string().contains("different lengths"));
    }
}
