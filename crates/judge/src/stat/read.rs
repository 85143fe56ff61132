//! From bytes to series, whatever the notation.

use super::problem::{Fault, MOST_VALUES, Problem, ReadError};
use super::{Contents, Series, benchmarks_in_json, benchmarks_in_lines, numbers_in_json, numbers_in_lines};

/// Marks UTF-8 in files of some systems.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the file of a benchmark tool, or values, one a line or as JSON; `source` is how the user names the file.
///
/// # Errors
///
/// The first thing that is not right, with its line, its column and its text.
pub fn read(source: &str, bytes: &[u8]) -> Result<Contents, ReadError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let located = |problem: Problem| problem.locate(source, bytes);
    let is_json = numbers_in_json::is_json(bytes);
    // Before memory is taken for them.
    let separator = if is_json { b',' } else { b'\n' };
    if bytes.iter().filter(|byte| **byte == separator).count() > MOST_VALUES {
        return Err(located(Problem { offset: 0, length: 0, fault: Fault::TooMany }));
    }
    let mut contents = if bytes.trim_ascii_start().starts_with(b"{") {
        benchmarks_in_json::parse(source, bytes)?
    } else if is_json {
        let (values, run_ends) = numbers_in_json::parse(bytes).map_err(located)?;
        Contents::of_numbers(Series { values, run_ends, ..Series::default() })
    } else if let Some(contents) = benchmarks_in_lines::parse(bytes) {
        contents.map_err(|refusal| refusal.of(source))?
    } else {
        let (values, header) = numbers_in_lines::parse(bytes).map_err(located)?;
        Contents::of_numbers(Series { values, header, ..Series::default() })
    };
    if contents.series.iter().all(|series| series.values.is_empty()) {
        let fault = contents.left_out.first().map_or(Fault::NoValues, |_| Fault::NoneMeasured);
        return Err(located(Problem { offset: 0, length: 0, fault }));
    }
    contents.series.iter_mut().for_each(|series| source.clone_into(&mut series.source));
    Ok(contents)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::stat::Tool;

    #[track_caller]
    fn check_error(bytes: &[u8], words: &str) {
        assert_eq!(read("x.txt", bytes).unwrap_err().to_string(), words);
    }

    fn read_one(bytes: &[u8]) -> Series {
        read("x", bytes).unwrap().series.remove(0)
    }

    #[test]
    fn every_notation_is_told_by_its_content() {
        assert_eq!(read_one(b"\xef\xbb\xbf1\n2\n").values(), [1.0, 2.0]);
        let series = read_one(b"\n [[1, 2], [3]]");
        assert_eq!(series.runs().unwrap(), [&[1.0, 2.0][..], &[3.0]]);
        assert_eq!(series, Series::of_runs("x", &[vec![1.0, 2.0], vec![3.0]]));
        assert_eq!(read_one(b"1").runs(), None);
        let tool = |bytes: &[u8]| read_one(bytes).tool();
        assert_eq!(tool(b"\n{\"results\": [{\"command\": \"a\", \"times\": [1]}]}"), Some(Tool::Hyperfine));
        assert_eq!(tool(b"goos: linux\nBenchmarkX-8 10 5 ns/op\n"), Some(Tool::Go));
        assert_eq!(tool(b"Benchmark\n1\n2\n"), None);
    }

    #[test]
    fn errors_have_file_line_column_and_text() {
        check_error(b"1\n2\n  1.5x # y\n", "x.txt:3:3: `1.5x` is not a number");
        check_error("1\n\u{1b}é\n".as_bytes(), "x.txt:2:1: `\u{fffd}é` is not a number");
        check_error(b"1\n\xff\n", "x.txt:2:1: `\u{fffd}` is not a number");
        check_error(b"[1,\n  NaN]", "x.txt:2:3: `NaN` is not a finite number");
        check_error(b"[1,\n2", "x.txt:2:2: the file is cut short");
        check_error(b"{\"benchmarks\": []}", "x.txt contains no values");
        for empty in ["", "\n\n", "# nothing\n", "time\n", "[]"] {
            check_error(empty.as_bytes(), "x.txt contains no values");
        }
        let many = b"1\n".repeat(MOST_VALUES + 1);
        check_error(&many, "x.txt has more than 30000000 values");
        let long = format!("1\n{}\n", "x".repeat(1000));
        check_error(long.as_bytes(), &format!("x.txt:2:1: `{}…` is not a number", "x".repeat(40)));
    }
}
