//! NumPy's format of one array, `.npy` (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::Array;
use super::header::Header;
use super::texts::{self, Stored};
use onnx::ElementType;
use reading::plain_file;

/// Why a file is no array that perfrun can use.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    #[error("cannot read {path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: {reason}", path = path.display())]
    Format { path: PathBuf, reason: String },
    #[error("{path}: array `{name}` has elements of type {element}{}", way_out(element), path = path.display())]
    Element {
        path: PathBuf,
        name: String,
        /// As NumPy describes it.
        element: String,
    },
}

/// NumPy pickles arrays of Python's objects, which pandas makes of text.
fn way_out(element: &str) -> &'static str {
    if element.contains('O') { "; store text with `.astype(str)`" } else { "" }
}

/// Larger than any memory: a damaged header rather than a wish.
const MOST_BYTES: u64 = 1 << 40;

/// Characters of a type that an error repeats: a structure may have any number of fields.
const LONGEST_SHOWN: usize = 200;

/// What an array is, without its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its name in the file.
    pub name: String,
    pub element: ElementType,
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
}

impl Head {
    /// Elements of one item, an entry along the first dimension.
    fn item_elements(&self) -> u64 {
        // Without items the other lengths may be anything.
        self.shape.iter().skip(1).fold(1, |product: u64, length| product.saturating_mul(*length))
    }
}

/// An array that is being read: its head is known.
#[derive(Debug)]
pub struct NpyReader<R> {
    pub head: Head,
    path: PathBuf,
    reader: R,
    /// Whether the first index is the fastest.
    is_fortran: bool,
    is_big_endian: bool,
    /// How strings are stored, where it has strings.
    texts: Option<Stored>,
}

impl NpyReader<BufReader<File>> {
    /// Opens a `.npy` file; the array takes the name of the file.
    ///
    /// # Errors
    ///
    /// As [`NpyReader::new`].
    pub fn open(path: &Path) -> Result<Self, ArrayError> {
        let file = plain_file::open(path).map_err(|source| ArrayError::Io { path: path.to_owned(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        NpyReader::new(BufReader::new(file), path, name)
    }

    /// Goes past items; the array must stand with the last index fastest.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn skip_items(&mut self, items: u64) -> Result<(), ArrayError> {
        let bytes = i64::try_from(items.saturating_mul(self.item_bytes())).unwrap_or(i64::MAX);
        let unreadable = |source| ArrayError::Io { path: self.path.clone(), source };
        self.reader.seek_relative(bytes).map_err(unreadable)
    }
}

impl<R: Read> NpyReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`ArrayError`]: a file that cannot be read, is damaged, or holds objects or structures.
    pub fn new(mut reader: R, path: &Path, name: String) -> Result<Self, ArrayError> {
        let format = |reason: String| ArrayError::Format { path: path.to_owned(), reason };
        let unreadable = |reason: String| format(format!("array `{name}` is not in NumPy's format: {reason}"));
        let text = header_text(&mut reader).map_err(|error| unreadable(error.to_string()))?;
        let header = Header::parse(&text).map_err(unreadable)?;
        if !is_sane(&header.shape) {
            return Err(format(format!("array `{name}` has a shape too large for memory")));
        }
        let described = || {
            let element = header.described.chars().take(LONGEST_SHOWN).collect();
            ArrayError::Element { path: path.to_owned(), name: name.clone(), element }
        };
        let (element, is_big_endian, texts) = element_of(&header).ok_or_else(described)?;
        let Header { shape, is_fortran, .. } = header;
        let size = texts.map_or(element.size_bytes().unwrap_or(1), |texts| texts.width);
        let bytes = shape.iter().try_fold(size, |product, length| product.checked_mul(*length));
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(format(format!("array `{name}` has the shape {shape:?}")));
        }
        let (head, path) = (Head { name, element, shape }, path.to_owned());
        Ok(NpyReader { head, path, reader, is_fortran, is_big_endian, texts })
    }

    /// Bytes of one element in the file.
    fn element_bytes(&self) -> u64 {
        self.texts.map_or(self.head.element.size_bytes().unwrap_or(1), |texts| texts.width)
    }

    fn item_bytes(&self) -> u64 {
        self.head.item_elements().saturating_mul(self.element_bytes())
    }

    /// The first items, at most so many.
    ///
    /// # Errors
    ///
    /// A file that ends too early, and text that is none.
    pub fn read(mut self, most_items: u64) -> Result<Array, ArrayError> {
        let Head { name, element, mut shape } = self.head.clone();
        let wanted = shape.first().map_or(1, |items| *items.min(&most_items));
        let item_bytes = self.item_bytes();
        let content = if self.is_fortran {
            let items = shape.first().copied().unwrap_or(1);
            let all = self.content(items.saturating_mul(item_bytes))?;
            let mut ordered = row_major(&all, &shape, self.element_bytes() as usize);
            ordered.truncate(wanted.saturating_mul(item_bytes) as usize);
            ordered
        } else {
            self.content(wanted.saturating_mul(item_bytes))?
        };
        if let Some(items) = shape.first_mut() {
            *items = wanted;
        }
        Ok(Array { name, element, shape, bytes: self.elements(content, wanted)?, keys: Vec::new() })
    }

    /// The next `items`; the array must stand with the last index fastest, as perfrun's own files do.
    ///
    /// # Errors
    ///
    /// As [`NpyReader::read`].
    pub fn next_items(&mut self, items: u64) -> Result<Array, ArrayError> {
        let content = self.content(items.saturating_mul(self.item_bytes()))?;
        let Head { name, element, mut shape } = self.head.clone();
        if let Some(first) = shape.first_mut() {
            *first = items;
        }
        Ok(Array { name, element, shape, bytes: self.elements(content, items)?, keys: Vec::new() })
    }

    fn content(&mut self, length: u64) -> Result<Vec<u8>, ArrayError> {
        let format = |reason: String| ArrayError::Format { path: self.path.clone(), reason };
        let mut content = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut content).map_err(|error| format(error.to_string()))?;
        if content.len() as u64 != length {
            let (name, found) = (&self.head.name, content.len());
            return Err(format(format!("array `{name}` is truncated: it has {found} of {length} bytes")));
        }
        Ok(content)
    }

    /// Elements as an [`Array`] has them.
    fn elements(&self, mut content: Vec<u8>, items: u64) -> Result<Vec<u8>, ArrayError> {
        if let Some(stored) = self.texts {
            let elements = items.saturating_mul(self.head.item_elements());
            return texts::decode(&content, elements, stored, self.is_big_endian).map_err(|index| {
                let reason = format!("array `{}`: element {index} is not valid UTF-8 text", self.head.name);
                ArrayError::Format { path: self.path.clone(), reason }
            });
        }
        if self.is_big_endian {
            let size = self.element_bytes() as usize;
            content.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(content)
    }
}

/// Reads a `.npy` file; the array takes the name of the file.
///
/// # Errors
///
/// [`ArrayError`]: a file that cannot be read, is damaged, or holds objects or structures.
pub fn read_npy(path: &Path) -> Result<Array, ArrayError> {
    NpyReader::open(path)?.read(u64::MAX)
}

/// The dictionary that follows the magic number, the version and its length.
fn header_text(reader: &mut impl Read) -> io::Result<String> {
    const MAGIC: &[u8] = b"\x93NUMPY";
    const LONGEST: u64 = 1 << 20;
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(|_| io::Error::other("it does not start like a .npy file"))?;
    let mut digits = [0; 4];
    match start.strip_prefix(MAGIC) {
        Some([1, 0]) => reader.read_exact(&mut digits[..2])?,
        Some([2 | 3, 0]) => reader.read_exact(&mut digits)?,
        Some([major, minor]) => return Err(io::Error::other(format!("its version {major}.{minor} is unknown"))),
        _ => return Err(io::Error::other("it does not start like a .npy file")),
    }
    let length = u64::from(u32::from_le_bytes(digits));
    if length > LONGEST {
        return Err(io::Error::other("its header is too long"));
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(io::Error::other("it ends within its header"));
    }
    // Names of fields may be in another encoding; no array with fields is read.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether lengths can be multiplied, also where another dimension is empty.
fn is_sane(shape: &[u64]) -> bool {
    let product = shape.iter().try_fold(1_u64, |product, length| product.checked_mul((*length).max(1)));
    product.is_some_and(|product| product <= MOST_BYTES)
}

/// The types of both sides: NumPy's letter and size in bytes.
const TYPES: [(ElementType, char, u64); 12] = [
    (ElementType::Bool, 'b', 1),
    (ElementType::Int8, 'i', 1),
    (ElementType::Int16, 'i', 2),
    (ElementType::Int32, 'i', 4),
    (ElementType::Int64, 'i', 8),
    (ElementType::Uint8, 'u', 1),
    (ElementType::Uint16, 'u', 2),
    (ElementType::Uint32, 'u', 4),
    (ElementType::Uint64, 'u', 8),
    (ElementType::Float16, 'f', 2),
    (ElementType::Float32, 'f', 4),
    (ElementType::Float64, 'f', 8),
];

/// The element type, whether its bytes are in the other order, and how strings are stored.
fn element_of(header: &Header<'_>) -> Option<(ElementType, bool, Option<Stored>)> {
    let found = header.descriptor()?;
    if matches!(found.letter, 'U' | 'S') {
        let is_wide = found.letter == 'U';
        let width = if is_wide { found.size.checked_mul(4)? } else { found.size };
        return Some((ElementType::String, found.is_big_endian, Some(Stored { width, is_wide })));
    }
    let written = (found.letter, found.size);
    let (element, _, _) = TYPES.into_iter().find(|(_, letter, size)| (*letter, *size) == written)?;
    Some((element, found.is_big_endian, None))
}

/// Elements that stand with the first index fastest, with the last one fastest.
fn row_major(content: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(content.len());
    let mut index = vec![0_u64; shape.len()];
    for _ in 0..content.len() / size.max(1) {
        let element = shape.iter().zip(&index).rev().fold(0, |element, (length, position)| element * length + position);
        let at = element as usize * size;
        ordered.extend_from_slice(&content[at..at + size]);
        for (position, length) in index.iter_mut().zip(shape).rev() {
            *position += 1;
            if *position < *length {
                break;
            }
            *position = 0;
        }
    }
    ordered
}

/// Writes an array as `.npy`, format 1.0. bfloat16, which NumPy does not have, is written as uint16; strings in the width
/// of the longest.
///
/// # Errors
///
/// Element types without a form in that format, and what the writer says.
pub fn write_npy(array: &Array, mut writer: impl Write) -> io::Result<()> {
    if array.element == ElementType::String {
        let (bytes, room) = texts::encode(array);
        writer.write_all(&header(array, &format!("<U{room}"))?)?;
        return writer.write_all(&bytes);
    }
    // NumPy has no bfloat16.
    let element = if array.element == ElementType::Bfloat16 { ElementType::Uint16 } else { array.element.clone() };
    let Some((_, letter, size)) = TYPES.into_iter().find(|(known, _, _)| *known == element) else {
        let text = format!("`{}` of type {} has no .npy form", array.name, array.element);
        return Err(io::Error::other(text));
    };
    writer.write_all(&header(array, &format!("{}{letter}{size}", if size == 1 { '|' } else { '<' }))?)?;
    writer.write_all(&array.bytes)
}

/// Writes an array into a new file, as [`write_npy`].
///
/// # Errors
///
/// As [`write_npy`].
pub fn save_npy(array: &Array, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write_npy(array, &mut file)?;
    file.flush()
}

/// The header, padded to a multiple of 64 bytes.
fn header(array: &Array, descriptor: &str) -> io::Result<Vec<u8>> {
    let shape: String = array.shape.iter().map(|length| format!("{length}, ")).collect();
    let mut dictionary = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({shape}), }}");
    let unpadded = 10 + dictionary.len() + 1;
    dictionary.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    dictionary.push('\n');
    let length = u16::try_from(dictionary.len()).map_err(|_| io::Error::other("too many dimensions for .npy"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    Ok(header)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn array(values: &[f32], shape: &[u64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: "x".to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    fn read(bytes: &[u8]) -> Result<Array, ArrayError> {
        NpyReader::new(bytes, Path::new("x.npy"), "x".to_owned())?.read(u64::MAX)
    }

    #[test]
    fn an_array_comes_back_as_it_was_written() {
        let array = array(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        let mut bytes = Vec::new();
        write_npy(&array, &mut bytes).unwrap();
        assert_eq!((bytes.len() - array.bytes.len()) % 64, 0);
        assert!(
            String::from_utf8_lossy(&bytes[10..])
                .starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }")
        );
        assert_eq!(read(&bytes).unwrap(), array);
        let error = read(&bytes[..bytes.len() - 1]).unwrap_err();
        assert_eq!(error.to_string(), "x.npy: array `x` is truncated: it has 23 of 24 bytes");
        assert!(read(b"PK").is_err());
    }

    #[test]
    fn absurd_headers_are_refused() {
        for shape in [&[0, u64::MAX / 2, 9][..], &[1 << 40, 1 << 40], &[u64::MAX]] {
            let mut bytes = Vec::new();
            write_npy(&array(&[], shape), &mut bytes).unwrap();
            assert_eq!(read(&bytes).unwrap_err().to_string(), "x.npy: array `x` has a shape too large for memory");
        }
        let long = b"\x93NUMPY\x02\x00\xff\xff\xff\xff";
        assert!(read(long).unwrap_err().to_string().ends_with("its header is too long"));
        assert!(read(b"\x93NUMPY").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_reading_panic(start in 0_usize..80, noise: Vec<u8>) {
            let mut bytes = Vec::new();
            write_npy(&array(&[1.0, 2.0], &[2, 1]), &mut bytes).unwrap();
            bytes.truncate(start);
            bytes.extend(noise);
            let _any = read(&bytes);
        }
    }

    #[test]
    fn other_orders_of_elements_and_bytes_are_put_right() {
        let mut bytes = Vec::new();
        write_npy(&array(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], &[2, 3]), &mut bytes).unwrap();
        let start = bytes.windows(5).position(|window| window == b"False").unwrap();
        let mut fortran = bytes.clone();
        fortran[start..start + 5].copy_from_slice(b"True ");
        let expected = array(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        assert_eq!(read(&fortran).map(|array| array.bytes).unwrap(), expected.bytes);
        let start = bytes.len() - 24;
        let mut big = bytes[..start].to_vec();
        let order = big.iter().position(|byte| *byte == b'<').unwrap();
        big[order] = b'>';
        [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().for_each(|value| big.extend_from_slice(&value.to_be_bytes()));
        assert_eq!(read(&big).unwrap().bytes, expected.bytes);
    }
}
