//! From bytes to a series, whatever the notation.

use super::problem::{Fault, MOST_VALUES, Problem, ReadError};
use super::{Series, numbers_in_json, numbers_in_lines};

/// Marks UTF-8 in files of some systems.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads values, one a line or as JSON; `source` is how the user names the file.
///
/// # Errors
///
/// The first thing that is not right, with its line, its column and its text.
pub fn read(source: &str, bytes: &[u8]) -> Result<Series, ReadError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let located = |problem: Problem| problem.locate(source, bytes);
    // Before memory is taken for them.
    let separator = if numbers_in_json::is_json(bytes) { b',' } else { b'\n' };
    if bytes.iter().filter(|byte| **byte == separator).count() > MOST_VALUES {
        return Err(located(Problem { offset: 0, length: 0, fault: Fault::TooMany }));
    }
    let series = if numbers_in_json::is_json(bytes) {
        let (values, run_ends) = numbers_in_json::parse(bytes).map_err(located)?;
        Series { source: source.to_owned(), header: None, values, run_ends }
    } else {
        let (values, header) = numbers_in_lines::parse(bytes).map_err(located)?;
        Series { source: source.to_owned(), header, values, run_ends: None }
    };
    if series.values.is_empty() {
        return Err(located(Problem { offset: 0, length: 0, fault: Fault::NoValues }));
    }
    Ok(series)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(bytes: &[u8], words: &str) {
        assert_eq!(read("x.txt", bytes).unwrap_err().to_string(), words);
    }

    #[test]
    fn both_notations_are_told_apart() {
        assert_eq!(read("x", b"\xef\xbb\xbf1\n2\n").unwrap().values(), [1.0, 2.0]);
        let series = read("x", b"\n [[1, 2], [3]]").unwrap();
        assert_eq!(series.runs().unwrap(), [&[1.0, 2.0][..], &[3.0]]);
        assert_eq!(series, Series::of_runs("x", &[vec![1.0, 2.0], vec![3.0]]));
        assert_eq!(read("x", b"1").unwrap().runs(), None);
    }

    #[test]
    fn errors_have_file_line_column_and_text() {
        check_error(b"1\n2\n  1.5x # y\n", "x.txt:3:3: `1.5x` is not a number");
        check_error("1\n\u{1b}é\n".as_bytes(), "x.txt:2:1: `\u{fffd}é` is not a number");
        check_error(b"1\n\xff\n", "x.txt:2:1: `\u{fffd}` is not a number");
        check_error(b"[1,\n  NaN]", "x.txt:2:3: `NaN` is not a finite number");
        check_error(b"[1,\n2", "x.txt:2:2: the array does not end");
        for empty in ["", "\n\n", "# nothing\n", "time\n", "[]"] {
            check_error(empty.as_bytes(), "x.txt contains no values");
        }
        let many = b"1\n".repeat(MOST_VALUES + 1);
        check_error(&many, "x.txt has more than 30000000 values");
        let long = format!("1\n{}\n", "x".repeat(1000));
        check_error(long.as_bytes(), &format!("x.txt:2:1: `{}…` is not a number", "x".repeat(40)));
    }
}
