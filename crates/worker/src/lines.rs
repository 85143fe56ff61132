//! Lines of the protocol: how long one may be, and reading them.

use std::io::{self, BufRead, Read};

/// Longest line that either side takes: twice what the ranges of fifty thousand activations with long names need, and
/// three times a part of samples with the longest numbers. More is no protocol, or one that fills memory.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// Samples in one line at most; a longer step sends several.
pub(super) const SAMPLES_IN_LINE: usize = 1 << 15;

/// Nodes in one line at most, names of a thousand letters and shapes included.
pub(super) const NODES_IN_LINE: usize = 1 << 12;

/// What is wrong with a line that is longer.
pub(super) fn too_long(who: &str) -> String {
    format!("{who} wrote a line of more than {} MiB", LONGEST_LINE >> 20)
}

/// The next line without its end; `None` at the end of the input.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] for a line that is longer than the longest, and what the input reports.
pub(super) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > LONGEST_LINE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of the protocol is too long"));
    }
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_come_one_after_the_other() {
        let mut input = &b"one\n\nlast"[..];
        let mut next = || read_line(&mut input).expect("a buffer in memory");
        assert_eq!(next().as_deref(), Some(&b"one"[..]));
        assert_eq!(next().as_deref(), Some(&b""[..]));
        assert_eq!(next().as_deref(), Some(&b"last"[..]));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let mut input = BufReader::new(io::repeat(b'x'));
        let error = read_line(&mut input).expect_err("it never ends");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_line_of_samples_with_the_longest_numbers_fits() {
        let bytes_of_a_sample = 5 * (u64::MAX.to_string().len() + 1) + u32::MAX.to_string().len() + 1;
        assert!(SAMPLES_IN_LINE * bytes_of_a_sample * 3 <= LONGEST_LINE);
    }
}
