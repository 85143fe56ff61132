//! Fields of a model file that `proto/onnx.proto` does not have, so that they are lost when the model is written again.
//!
//! Input: a model file that could be read. Output: which they are. Deliberately absent: what they mean.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek};

use super::wire::{Fault, Span, Value, Wire};

/// The messages of the standard.
const PROTO: &str = include_str!("proto/onnx.proto");

/// Nobody reads more of them.
const MOST_TOLD: usize = 8;

/// As many as the decoder takes.
const DEEPEST: u32 = 100;

/// The types of fields by number, by the name of the message.
type Schema = HashMap<&'static str, HashMap<u64, &'static str>>;

/// The first of them, as message and number.
pub(super) fn unknown_fields<R: Read + Seek>(wire: Wire<R>) -> Result<BTreeSet<(&'static str, u64)>, Fault> {
    let model = wire.span();
    let mut search = Search { wire, schema: schema(), found: BTreeSet::new() };
    search.message(model, "ModelProto", DEEPEST)?;
    Ok(search.found)
}

struct Search<R> {
    wire: Wire<R>,
    schema: Schema,
    found: BTreeSet<(&'static str, u64)>,
}

impl<R: Read + Seek> Search<R> {
    fn message(&mut self, span: Span, name: &'static str, depth: u32) -> Result<(), Fault> {
        if depth == 0 || !self.schema.contains_key(name) {
            return self.wire.skip(span);
        }
        while let Some((number, value)) = self.wire.field(span.end)? {
            let kind = self.schema.get(name).and_then(|fields| fields.get(&number)).copied();
            if kind.is_none() && self.found.len() < MOST_TOLD {
                self.found.insert((name, number));
            }
            match (value, kind) {
                (Value::Bytes(span), Some(kind)) => self.message(span, kind, depth - 1)?,
                (Value::Bytes(span), None) => self.wire.skip(span)?,
                (Value::Varint(_) | Value::Fixed, _) => {}
            }
        }
        Ok(())
    }
}

/// Reads the messages of `PROTO`; each has a name of its own, also nested ones.
fn schema() -> Schema {
    let (mut schema, mut open) = (Schema::new(), Vec::new());
    for line in PROTO.lines() {
        let words: Vec<&str> = line.split("//").next().unwrap_or_default().split_whitespace().collect();
        match words[..] {
            ["message" | "enum", name, "{"] => open.push(name),
            ["oneof", _, "{"] => open.extend(open.last().copied()),
            ["}"] => drop(open.pop()),
            // The values of an enumeration have no type.
            ["optional" | "repeated", kind, _, "=", number, ..] | [kind, _, "=", number] => {
                let number = number.trim_end_matches(';').parse().ok();
                if let Some((message, number)) = open.last().zip(number) {
                    schema.entry(*message).or_default().insert(number, kind);
                }
            }
            _ => {}
        }
    }
    schema
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use prost::Message;

    use super::*;
    use crate::proto::{TensorShapeProto, TypeProto, ValueInfoProto, type_proto};
    use crate::sample::model;

    fn unknown(bytes: &[u8]) -> Vec<(&'static str, u64)> {
        unknown_fields(Wire::new(Cursor::new(bytes), bytes.len() as u64)).unwrap().into_iter().collect()
    }

    #[test]
    fn the_schema_is_that_of_the_standard() {
        let schema = schema();
        assert_eq!((schema.len(), schema["ModelProto"][&7]), (22, "GraphProto"));
        assert_eq!((schema["TensorProto"][&4], schema["TypeProto"][&1]), ("float", "Tensor"));
        assert_eq!((schema["Dimension"][&2], schema["Dimension"].len()), ("string", 3));
        let messages = PROTO.lines().filter(|line| line.trim_start().starts_with("message ")).count();
        assert_eq!(messages, schema.len());
    }

    #[test]
    fn what_is_not_in_the_standard_is_named_wherever_it_is() {
        let bytes = model().encode_to_vec();
        assert_eq!(unknown(&bytes), []);
        // Bytes, an integer, four and eight bytes.
        let strange = [&[0xfa, 0x01, 3, 1, 2, 3], &[0x98, 0x02, 7][..], &[0xa5, 0x02, 0, 0, 0, 0]].concat();
        let strange = [&strange[..], &[0xa9, 0x02, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let numbers = [31, 35, 36, 37].map(|number| ("ModelProto", number));
        assert_eq!(unknown(&[&bytes[..], &strange].concat()), numbers);
        // The same in the shape of an input, six messages below.
        let shape = [TensorShapeProto::default().encode_to_vec(), strange].concat();
        let field = |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
        let graph = field(11, &field(2, &field(1, &field(2, &shape))));
        let deep = unknown(&[&bytes[..], &field(7, &graph)].concat());
        assert_eq!(deep, [31, 35, 36, 37].map(|number| ("TensorShapeProto", number)));
        let read: ValueInfoProto = Message::decode(&graph[2..]).unwrap();
        let tensor = type_proto::Tensor { shape: Some(TensorShapeProto::default()), ..Default::default() };
        let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() };
        assert_eq!(read.r#type, Some(r#type));
    }
}
