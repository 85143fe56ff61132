//! The protobuf wire format as a stream of fields over a file, with the long ones skipped by seeking.
//!
//! Input: a readable, seekable source and its size. Output: field numbers with their values or positions.
//! Deliberately absent: what the fields mean, and groups (proto1; ONNX never had them). `prost` is not
//! used here because it reads every byte that it skips: half a second for a gigabyte of weights.
//! Format: <https://protobuf.dev/programming-guides/encoding/>.

use std::io::{self, BufReader, Read, Seek};

use prost::Message;

/// Nothing that is read whole (a name, a type) takes more; a longer one is damage, and must not fill the memory.
const LONGEST_READ: u64 = 16 << 20;

/// Why a source could not be walked.
#[derive(Debug)]
pub(super) enum Fault {
    /// The source failed.
    Io(io::Error),
    /// A field goes on behind the end of the source.
    Truncated {
        /// Where that field's content starts.
        offset: u64,
        /// How many bytes are not there.
        missing: u64,
    },
    /// The bytes are not what the format allows.
    Damaged {
        offset: u64,
        /// What is wrong.
        detail: String,
    },
}

/// A stretch of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What follows a field number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// An integer.
    Varint(u64),
    /// Four or eight bytes; they are read over already, as nothing in a header needs them.
    Fixed,
    /// A text, message or packed list; it must be read, walked or skipped before the next field.
    Bytes(Span),
}

/// A source and the position in it.
pub(super) struct Wire<R> {
    input: BufReader<R>,
    position: u64,
    size: u64,
}

impl<R: Read + Seek> Wire<R> {
    /// At the beginning of a source of `size` bytes.
    pub(super) fn new(input: R, size: u64) -> Self {
        Wire { input: BufReader::new(input), position: 0, size }
    }

    /// The whole source.
    pub(super) fn span(&self) -> Span {
        Span { start: 0, end: self.size }
    }

    /// How far the source has been read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next field before `end`, or `None` at `end`.
    pub(super) fn field(&mut self, end: u64) -> Result<Option<(u64, Value)>, Fault> {
        if self.position == end {
            return Ok(None);
        }
        let offset = self.position;
        let tag = self.varint(end)?;
        let (number, wire_type) = (tag >> 3, tag & 7);
        if number == 0 || tag > u64::from(u32::MAX) {
            return Err(Fault::Damaged { offset, detail: format!("field number {number}") });
        }
        let value = match wire_type {
            0 => Value::Varint(self.varint(end)?),
            1 => self.fixed(8, end)?,
            2 => {
                let length = self.varint(end)?;
                Value::Bytes(self.ahead(length, end)?)
            }
            5 => self.fixed(4, end)?,
            _ => return Err(Fault::Damaged { offset, detail: format!("wire type {wire_type} of field {number}") }),
        };
        Ok(Some((number, value)))
    }

    /// A base-128 integer.
    pub(super) fn varint(&mut self, end: u64) -> Result<u64, Fault> {
        let offset = self.position;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            self.ahead(1, end)?;
            let mut byte = [0];
            self.input.read_exact(&mut byte).map_err(Fault::Io)?;
            self.position += 1;
            // The tenth byte has one bit left of 64; the format lets a reader drop the rest.
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Damaged { offset, detail: "an integer of more than ten bytes".to_owned() })
    }

    pub(super) fn text(&mut self, span: Span) -> Result<String, Fault> {
        String::from_utf8(self.bytes(span)?)
            .map_err(|_| Fault::Damaged { offset: span.start, detail: "a name that is not UTF-8".to_owned() })
    }

    /// A message, whole.
    pub(super) fn message<M: Message + Default>(&mut self, span: Span) -> Result<M, Fault> {
        M::decode(self.bytes(span)?.as_slice())
            .map_err(|error| Fault::Damaged { offset: span.start, detail: error.to_string() })
    }

    /// Goes to the end of a stretch without reading it.
    pub(super) fn skip(&mut self, span: Span) -> Result<(), Fault> {
        let distance = i64::try_from(span.end - self.position)
            .map_err(|_| Fault::Damaged { offset: span.start, detail: "a length beyond any file".to_owned() })?;
        self.input.seek_relative(distance).map_err(Fault::Io)?;
        self.position = span.end;
        Ok(())
    }

    /// The bytes of a stretch that begins before the position, or at it, and to whose end the source is read then.
    pub(super) fn again(&mut self, span: Span) -> Result<Vec<u8>, Fault> {
        let distance = i64::try_from(self.position - span.start)
            .map_err(|_| Fault::Damaged { offset: span.start, detail: "a length beyond any file".to_owned() })?;
        self.input.seek_relative(-distance).map_err(Fault::Io)?;
        self.bytes(span)
    }

    fn fixed(&mut self, length: u64, end: u64) -> Result<Value, Fault> {
        let span = self.ahead(length, end)?;
        self.skip(span)?;
        Ok(Value::Fixed)
    }

    pub(super) fn bytes(&mut self, span: Span) -> Result<Vec<u8>, Fault> {
        let length = span.end - span.start;
        if length > LONGEST_READ {
            let detail = format!("a name or type of {length} bytes");
            return Err(Fault::Damaged { offset: span.start, detail });
        }
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes).map_err(Fault::Io)?;
        self.position = span.end;
        Ok(bytes)
    }

    /// The next `length` bytes, which must lie before `end` and so within the source.
    fn ahead(&self, length: u64, end: u64) -> Result<Span, Fault> {
        let start = self.position;
        match start.checked_add(length) {
            Some(stop) if stop <= end => Ok(Span { start, end: stop }),
            stop if end == self.size => {
                Err(Fault::Truncated { offset: start, missing: stop.map_or(u64::MAX, |stop| stop - end) })
            }
            _ => Err(Fault::Damaged {
                offset: start,
                detail: "a field that is longer than the message around it".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn wire(bytes: &[u8]) -> Wire<Cursor<&[u8]>> {
        Wire::new(Cursor::new(bytes), bytes.len() as u64)
    }

    /// The examples of the format's own documentation: field 1 = 150, field 2 = "testing".
    #[test]
    fn documented_examples_are_read() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g'];
        let mut wire = wire(&bytes);
        assert_eq!(wire.field(12).unwrap(), Some((1, Value::Varint(150))));
        let span = Span { start: 5, end: 12 };
        assert_eq!(wire.field(12).unwrap(), Some((2, Value::Bytes(span))));
        assert_eq!(wire.text(span).unwrap(), "testing");
        assert_eq!(wire.field(12).unwrap(), None);
    }

    #[test]
    fn negative_integers_take_ten_bytes() {
        let bytes = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(wire(&bytes).field(11).unwrap(), Some((1, Value::Varint(u64::MAX))));
        assert!(matches!(wire(&[0xff; 11]).field(11), Err(Fault::Damaged { offset: 0, .. })));
    }

    #[test]
    fn skipping_goes_over_fields_of_every_kind() {
        let bytes = [0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 2, 9, 9, 0x08, 7];
        let mut wire = wire(&bytes);
        assert_eq!(wire.field(20).unwrap(), Some((1, Value::Fixed)));
        assert_eq!(wire.field(20).unwrap(), Some((1, Value::Fixed)));
        let span = Span { start: 16, end: 18 };
        assert_eq!(wire.field(20).unwrap(), Some((2, Value::Bytes(span))));
        wire.skip(span).unwrap();
        assert_eq!(wire.field(20).unwrap(), Some((1, Value::Varint(7))));
    }

    #[test]
    fn truncation_and_damage_are_told_apart() {
        assert!(matches!(wire(&[0x12, 7, 1]).field(3), Err(Fault::Truncated { offset: 2, missing: 6 })));
        assert!(matches!(wire(&[0x12, 7, 1, 0, 0]).field(3), Err(Fault::Damaged { offset: 2, .. })));
        assert!(matches!(wire(&[0x0b]).field(1), Err(Fault::Damaged { offset: 0, .. })));
        assert!(matches!(wire(&[0x00, 0x00]).field(2), Err(Fault::Damaged { offset: 0, .. })));
        let longest = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(matches!(wire(&longest).field(11), Err(Fault::Truncated { missing: u64::MAX, .. })));
    }
}
