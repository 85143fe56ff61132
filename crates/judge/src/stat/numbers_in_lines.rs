//! One value a line: what shells, spreadsheets and other tools write.
//!
//! Blank lines and what follows a `#` are nothing; a first line that is no number names the column. Deliberately absent:
//! several columns, units, and decimal commas, which all mean different things to different people.

use super::problem::{Fault, Problem};

/// The values, and the name of the column if the first line is one.
pub(super) fn parse(bytes: &[u8]) -> Result<(Vec<f64>, Option<String>), Problem> {
    // A line of a measured time has some ten bytes.
    let mut values = Vec::with_capacity(bytes.len() / 10);
    let mut header = None;
    for line in bytes.split(|byte| *byte == b'\n') {
        let text = line.split(|byte| *byte == b'#').next().unwrap_or(line).trim_ascii();
        let text = unquoted(text);
        if text.is_empty() {
            continue;
        }
        match number(text) {
            Some(value) => match Fault::of_value(value) {
                None => values.push(value),
                Some(fault) => return Err(Problem::of(bytes, text, fault)),
            },
            None if values.is_empty() && header.is_none() && is_name(text) => {
                header = Some(String::from_utf8_lossy(text).into_owned());
            }
            None => return Err(Problem::of(bytes, text, Fault::NotANumber)),
        }
    }
    Ok((values, header))
}

pub(super) fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Some programs put quotes around every field.
fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).map_or(text, <[u8]>::trim_ascii)
}

/// The name of one column; what begins like a number is a number with a mistake in it.
fn is_name(text: &[u8]) -> bool {
    let begins_well = text.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80);
    begins_well && !text.iter().any(|byte| matches!(byte, b',' | b';' | b'\t'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, values: &[f64], header: Option<&str>) {
        assert_eq!(parse(text.as_bytes()).unwrap(), (values.to_vec(), header.map(str::to_owned)));
    }

    #[test]
    fn lines_comments_headers_and_quotes() {
        check("1\n2.5\n\n# nothing\n  3e-2  # late\n", &[1.0, 2.5, 0.03], None);
        check("latency (ms)\r\n1\r\n2\r\n", &[1.0, 2.0], Some("latency (ms)"));
        check("\"t\"\n\"1\"\n", &[1.0], Some("t"));
        check("# of yesterday\n\ntime\n+4\n-.5", &[4.0, -0.5], Some("time"));
        check("", &[], None);
    }

    #[track_caller]
    fn check_fault(text: &str, offset: usize, fault: Fault) {
        let problem = parse(text.as_bytes()).unwrap_err();
        assert_eq!((problem.offset, problem.fault), (offset, fault));
    }

    #[test]
    fn what_is_no_number_is_found_where_it_is() {
        check_fault("1\n x\n", 3, Fault::NotANumber);
        check_fault("a\nb\n1\n", 2, Fault::NotANumber);
        check_fault("12ms\n", 0, Fault::NotANumber);
        check_fault("1,5\n", 0, Fault::NotANumber);
        check_fault("a,b\n1,2\n", 0, Fault::NotANumber);
        check_fault("1 2\n", 0, Fault::NotANumber);
        check_fault("NaN\n", 0, Fault::NotFinite);
        check_fault("1\ninf\n", 2, Fault::NotFinite);
        check_fault("1e999\n", 0, Fault::NotFinite);
        check_fault("1\n1e308\n", 2, Fault::Extreme);
        check_fault("-1e-308\n", 0, Fault::Extreme);
    }
}
