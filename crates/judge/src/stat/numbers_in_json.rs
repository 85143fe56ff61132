//! JSON of numbers: an array of them, or an array of arrays, which are runs.
//!
//! Read by hand and not through serde, since such a file may hold ten million values, and a mistake in it is to be named
//! with its text and its position. Numbers are read as Rust reads them, a little more freely than JSON does.

use super::numbers_in_lines::number;
use super::problem::{Fault, Problem};

/// Values one after the other, and where each run ends if there are runs.
pub(super) type Parsed = (Vec<f64>, Option<Vec<usize>>);

/// Whether the bytes are meant to be JSON.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii_start().first(), Some(b'[' | b'{'))
}

/// Reads an array of numbers or of runs.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Problem> {
    let mut reader = Reader { bytes, at: 0 };
    let open = reader.token()?;
    if open != b"[" {
        return Err(Problem::of(bytes, open, if open == b"{" { Fault::Object } else { Fault::NotANumber }));
    }
    let mut values = Vec::new();
    let run_ends = reader.outer(&mut values)?;
    match reader.token() {
        Ok(rest) => Err(Problem::of(bytes, rest, Fault::Trailing)),
        Err(_) => Ok((values, run_ends)),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The elements after the first bracket, up to its partner.
    fn outer(&mut self, values: &mut Vec<f64>) -> Result<Option<Vec<usize>>, Problem> {
        let mut run_ends: Option<Vec<usize>> = None;
        let mut token = self.token()?;
        if token == b"]" {
            return Ok(None);
        }
        loop {
            if token == b"[" {
                if run_ends.is_none() && !values.is_empty() {
                    return Err(self.problem(token, Fault::RunAmongNumbers));
                }
                self.run(token, values)?;
                run_ends.get_or_insert_default().push(values.len());
            } else if run_ends.is_some() {
                return Err(self.problem(token, Fault::NumberAmongRuns));
            } else {
                values.push(self.value(token)?);
            }
            if !self.goes_on()? {
                return Ok(run_ends);
            }
            token = self.token()?;
        }
    }

    /// One run after its opening bracket.
    fn run(&mut self, open: &'a [u8], values: &mut Vec<f64>) -> Result<(), Problem> {
        let mut token = self.token()?;
        if token == b"]" {
            return Err(self.problem(open, Fault::EmptyRun));
        }
        loop {
            if token == b"[" {
                return Err(self.problem(token, Fault::TooDeep));
            }
            values.push(self.value(token)?);
            if !self.goes_on()? {
                return Ok(());
            }
            token = self.token()?;
        }
    }

    /// Whether a comma comes next, and not the end of the array.
    fn goes_on(&mut self) -> Result<bool, Problem> {
        match self.token()? {
            b"," => Ok(true),
            b"]" => Ok(false),
            other => Err(self.problem(other, Fault::NoSeparator)),
        }
    }

    fn value(&self, token: &'a [u8]) -> Result<f64, Problem> {
        match number(token) {
            Some(value) => match Fault::of_value(value) {
                None => Ok(value),
                Some(fault) => Err(self.problem(token, fault)),
            },
            None => Err(self.problem(token, Fault::NotANumber)),
        }
    }

    /// The next bracket, brace, comma, text in quotes, or word.
    fn token(&mut self) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = &rest[blanks..];
        let length = match rest.first() {
            None => return Err(Problem { offset: self.bytes.len(), length: 0, fault: Fault::Unfinished }),
            Some(b'[' | b']' | b'{' | b'}' | b',') => 1,
            Some(b'"') => rest[1..].iter().position(|byte| *byte == b'"').map_or(rest.len(), |end| end + 2),
            Some(_) => rest.iter().position(|byte| ends_word(*byte)).unwrap_or(rest.len()),
        };
        self.at += blanks + length;
        Ok(&rest[..length])
    }

    fn problem(&self, piece: &[u8], fault: Fault) -> Problem {
        Problem::of(self.bytes, piece, fault)
    }
}

fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'[' | b']' | b'{' | b'}' | b',' | b'"')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arrays_of_numbers_and_of_runs() {
        assert_eq!(parse(b" [1, 2.5,\n-3e2 ]\n").unwrap(), (vec![1.0, 2.5, -300.0], None));
        assert_eq!(parse(b"[[1,2],[3]]").unwrap(), (vec![1.0, 2.0, 3.0], Some(vec![2, 3])));
        assert_eq!(parse(b"[]").unwrap(), (vec![], None));
    }

    #[track_caller]
    fn check_fault(text: &str, offset: usize, fault: Fault) {
        let problem = parse(text.as_bytes()).unwrap_err();
        assert_eq!((problem.offset, problem.fault), (offset, fault), "{text}");
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        check_fault("[1, NaN]", 4, Fault::NotFinite);
        check_fault("[1, null]", 4, Fault::NotANumber);
        check_fault("[1, \"2\"]", 4, Fault::NotANumber);
        check_fault("[1,]", 3, Fault::NotANumber);
        check_fault("[1 2]", 3, Fault::NoSeparator);
        check_fault("[1, [2]]", 4, Fault::RunAmongNumbers);
        check_fault("[[1], 2]", 6, Fault::NumberAmongRuns);
        check_fault("[[1], []]", 6, Fault::EmptyRun);
        check_fault("[[1, [2]]]", 5, Fault::TooDeep);
        check_fault("[1, 2", 5, Fault::Unfinished);
        check_fault("[[1, 2], [3]", 12, Fault::Unfinished);
        check_fault("[1] [2]", 4, Fault::Trailing);
        check_fault("{\"a\": [1]}", 0, Fault::Object);
        check_fault("[{\"a\": 1}]", 1, Fault::NotANumber);
    }

    proptest! {
        #[test]
        fn what_serde_writes_is_read_back(runs in prop::collection::vec(prop::collection::vec(-1e9_f64..1e9, 1..5), 1..5)) {
            let (values, run_ends) = parse(serde_json::to_string(&runs).unwrap().as_bytes()).unwrap();
            prop_assert_eq!(values, runs.concat());
            prop_assert_eq!(run_ends.unwrap().len(), runs.len());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[\\[\\]{},\"0-9eN. \n]{0,40}") {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                if let Err(problem) = parse(bytes) {
                    let _located = problem.locate("x", bytes).to_string();
                }
            }
        }
    }
}
