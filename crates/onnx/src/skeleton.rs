//! A model's file without the weights in it.
//!
//! Input: a `Wire` over the file. Output: the bytes of the same message, in which tensors of more than [`KEPT`] bytes have
//! no content. Deliberately absent: content in other files (`external`).

use std::io::{Read, Seek};

use super::wire::{Fault, Span, Value, Wire};

/// Content of at most so many bytes stays: the sizes and tables that shapes are computed from.
pub(super) const KEPT: u64 = 8 << 10;

/// Messages of the standard that hold weights, and those that hold these. Field numbers are those of `proto/onnx.proto`.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Function,
    Node,
    Attribute,
    Tensor,
}

impl Kind {
    fn inner(self, field: u64) -> Option<Kind> {
        match (self, field) {
            (Kind::Model, 7) | (Kind::Attribute, 6 | 11) => Some(Kind::Graph),
            (Kind::Model, 25) => Some(Kind::Function),
            (Kind::Graph, 1) | (Kind::Function, 7) => Some(Kind::Node),
            (Kind::Node, 5) => Some(Kind::Attribute),
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) => Some(Kind::Tensor),
            _ => None,
        }
    }

    fn is_content(self, field: u64) -> bool {
        matches!((self, field), (Kind::Tensor, 4..=7 | 9..=11))
    }
}

/// The model without its larger weights; `wire` is at its beginning, and graphs in it are not nested without end.
pub(super) fn skeleton<R: Read + Seek>(mut wire: Wire<R>) -> Result<Vec<u8>, Fault> {
    let model = wire.span();
    message(&mut wire, model, Kind::Model)
}

fn message<R: Read + Seek>(wire: &mut Wire<R>, span: Span, kind: Kind) -> Result<Vec<u8>, Fault> {
    let mut copy = Vec::new();
    loop {
        let start = wire.position();
        let Some((field, value)) = wire.field(span.end)? else { return Ok(copy) };
        match (value, kind.inner(field)) {
            (Value::Bytes(inner), Some(kind)) => {
                let inner = message(wire, inner, kind)?;
                put(&mut copy, field << 3 | 2);
                put(&mut copy, inner.len() as u64);
                copy.extend(inner);
            }
            (Value::Bytes(content), None) if kind.is_content(field) && content.end - content.start > KEPT => {
                wire.skip(content)?;
            }
            (Value::Bytes(Span { end, .. }), None) => copy.extend(wire.again(Span { start, end })?),
            (Value::Varint(_) | Value::Fixed, _) => {
                let end = wire.position();
                copy.extend(wire.again(Span { start, end })?);
            }
        }
    }
}

/// A base-128 integer.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use prost::Message;

    use super::*;
    use crate::proto::{AttributeProto, ModelProto, TensorProto};
    use crate::sample::model;

    fn skeleton_of(model: &ModelProto) -> ModelProto {
        let bytes = model.encode_to_vec();
        let size = bytes.len() as u64;
        ModelProto::decode(skeleton(Wire::new(Cursor::new(bytes), size)).unwrap().as_slice()).unwrap()
    }

    #[test]
    fn all_is_there_but_the_content_of_large_weights_wherever_they_are() {
        assert_eq!(skeleton_of(&model()), model());
        let mut large = model();
        let weight = |name: &str| TensorProto::of_floats(name, &[4096], &[1.5; 4096]);
        let graph = large.graph.as_mut().unwrap();
        graph.initializer.push(weight("raw"));
        graph.initializer.push(TensorProto { raw_data: None, float_data: vec![1.5; 4096], ..weight("typed") });
        graph.node[0].attribute.push(AttributeProto::of_tensor("value", weight("")));
        graph.node[1].attribute[0].g.as_mut().unwrap().initializer.push(weight("inner"));
        large.functions[0].node[0].attribute.push(AttributeProto::of_tensor("value", weight("")));
        let mut without = large.clone();
        without.each_tensor_mut(&mut |tensor| {
            if tensor.dims == [4096] {
                tensor.raw_data = None;
                tensor.float_data.clear();
            }
        });
        assert_eq!(skeleton_of(&large), without);
    }
}
