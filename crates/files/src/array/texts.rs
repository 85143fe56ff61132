//! Strings in arrays: in NumPy's files of one width, in memory UTF-8, each with a zero byte behind it.

use super::Array;
use onnx::ElementType;

/// How a file of NumPy stores strings: all in the same number of bytes, filled up with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Bytes of one string.
    pub(super) width: u64,
    /// Four bytes for each character (`U`), or bytes of UTF-8 (`S`).
    pub(super) is_wide: bool,
}

/// The strings of `elements` entries as an [`Array`] has them, or which entry is none: not Unicode, or with a zero byte
/// inside, which no runtime takes.
pub(super) fn decode(content: &[u8], elements: u64, stored: Stored, is_big_endian: bool) -> Result<Vec<u8>, u64> {
    let width = stored.width as usize;
    let mut bytes = Vec::with_capacity(content.len());
    for index in 0..elements {
        let start = index as usize * width;
        let entry = content.get(start..start + width).ok_or(index)?;
        let text = if stored.is_wide { wide(entry, is_big_endian) } else { String::from_utf8(entry.to_vec()).ok() };
        let text = text.ok_or(index)?;
        let text = text.trim_end_matches('\0');
        if text.contains('\0') {
            return Err(index);
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    Ok(bytes)
}

fn wide(entry: &[u8], is_big_endian: bool) -> Option<String> {
    let read = if is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
    entry.as_chunks::<4>().0.iter().map(|bytes| char::from_u32(read(*bytes))).collect()
}

/// The strings of an array in NumPy's form, little-endian, and the number of characters that each has room for.
pub(super) fn encode(array: &Array) -> (Vec<u8>, usize) {
    let texts: Vec<Vec<char>> = array.texts().map(|text| text.chars().collect()).collect();
    let room = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut bytes = Vec::with_capacity(texts.len() * room * 4);
    for text in &texts {
        let padding = std::iter::repeat_n('\0', room - text.len());
        text.iter().copied().chain(padding).for_each(|c| bytes.extend_from_slice(&u32::from(c).to_le_bytes()));
    }
    (bytes, room)
}

impl Array {
    /// An array of strings; what stands behind a zero byte in one is left out.
    pub fn of_texts<'a>(name: &str, shape: &[u64], texts: impl Iterator<Item = &'a str>) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend_from_slice(text.split('\0').next().unwrap_or_default().as_bytes());
            bytes.push(0);
        }
        Array { name: name.to_owned(), element: ElementType::String, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    /// The elements of an array of strings.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let ended = self.bytes.split_inclusive(|byte| *byte == 0);
        ended.map(|text| std::str::from_utf8(text).unwrap_or_default().trim_end_matches('\0'))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::array::{NpyReader, write_npy};

    const WORDS: [&str; 4] = ["héllo", "", "big world", "😀"];

    fn read(bytes: &[u8]) -> Result<Array, String> {
        let reader = NpyReader::new(bytes, Path::new("x.npy"), "x".to_owned());
        reader.and_then(|reader| reader.read(u64::MAX)).map_err(|problem| problem.to_string())
    }

    fn file(descriptor: &str, shape: &str, content: &[u8]) -> Vec<u8> {
        let dictionary = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(dictionary.len() as u16).to_le_bytes());
        bytes.extend_from_slice(dictionary.as_bytes());
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn strings_come_back_as_they_were_written() {
        let array = Array::of_texts("x", &[2, 2], WORDS.into_iter());
        let mut bytes = Vec::new();
        write_npy(&array, &mut bytes).unwrap();
        let again = read(&bytes).unwrap();
        assert_eq!(again, array);
        assert_eq!((again.texts().collect::<Vec<_>>(), again.len()), (WORDS.to_vec(), 4));
    }

    #[test]
    fn numpy_stores_strings_in_three_ways() {
        let wide =
            |order: fn(u32) -> [u8; 4]| "ab\0c\0\0".chars().flat_map(|c| order(u32::from(c))).collect::<Vec<u8>>();
        for content in [
            file("<U3", "2,", &wide(u32::to_le_bytes)),
            file(">U3", "2,", &wide(u32::to_be_bytes)),
            file("|S3", "2,", b"ab\0c\0\0"),
        ] {
            assert_eq!(read(&content).unwrap().texts().collect::<Vec<_>>(), ["ab", "c"]);
        }
        assert_eq!(read(&file("<U0", "2,", b"")).unwrap().texts().collect::<Vec<_>>(), ["", ""]);
    }

    #[test]
    fn what_is_no_string_is_named() {
        assert_eq!(
            read(&file("|S2", "2,", b"ab\xff\xff")).unwrap_err(),
            "x.npy: array `x`: element 1 is not valid UTF-8 text"
        );
        assert!(read(&file("|S3", "1,", b"a\0b")).unwrap_err().contains("element 0"));
        assert!(read(&file("<U1", "1,", &0x11_0000_u32.to_le_bytes())).unwrap_err().contains("element 0"));
        assert!(read(&file("|S3", "2,", b"ab")).unwrap_err().contains("truncated"));
        assert!(read(&file("|O", "1,", b"")).unwrap_err().contains("`.astype(str)`"));
    }

    #[test]
    fn items_of_strings_are_cut_and_repeated() {
        let mut array = Array::of_texts("x", &[3, 2], ["a", "bb", "", "d", "e", "f"].into_iter());
        array.keep_items(2);
        assert_eq!(
            (array.shape.as_slice(), array.texts().collect::<Vec<_>>()),
            (&[2, 2][..], vec!["a", "bb", "", "d"])
        );
        array.repeat_last(2);
        assert_eq!(array.texts().skip(4).collect::<Vec<_>>(), ["", "d", "", "d"]);
        assert_eq!(array.shape, [4, 2]);
    }
}
