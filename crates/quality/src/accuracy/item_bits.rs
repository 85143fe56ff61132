//! Right or wrong, item by item, as hexadecimal text: what it takes to compare two results on the same items later.

use std::fmt::Write as _;

/// A bit for each item, the first item in the lowest bit of the first byte.
pub fn write(is_right: impl Iterator<Item = bool>) -> String {
    let is_right: Vec<bool> = is_right.collect();
    let mut text = String::with_capacity(is_right.len().div_ceil(4));
    for byte in is_right.chunks(8) {
        let byte = byte.iter().enumerate().fold(0_u8, |byte, (bit, right)| byte | (u8::from(*right) << bit));
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What [`write`] wrote of so many items; `None` for anything else.
pub fn read(text: &str, items: u64) -> Option<Vec<bool>> {
    let items = usize::try_from(items).ok()?;
    if !text.is_ascii() || text.len() != items.div_ceil(8).checked_mul(2)? {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect();
    let bytes = bytes?;
    Some((0..items).map(|item| bytes[item / 8] >> (item % 8) & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(items in proptest::collection::vec(any::<bool>(), 0..40)) {
            let text = write(items.iter().copied());
            prop_assert_eq!(read(&text, items.len() as u64), Some(items));
        }
    }

    #[test]
    fn what_is_no_such_text_is_nothing() {
        assert_eq!(read("0f", 8), Some(vec![true, true, true, true, false, false, false, false]));
        assert_eq!((read("0f", 9), read("0g", 8), read("\u{e9}", 8), read("0f", u64::MAX)), (None, None, None, None));
    }
}
