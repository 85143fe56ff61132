//! A model from a file and back to one, without also holding the bytes of the file in memory.
//!
//! Input: a reader, or a model and a writer. Output: the model, or nothing. Deliberately absent: what a path is, and weights
//! in files of their own (`file`, `external`).

use std::io::{self, Read, Write};
use std::mem::take;

use bytes::Buf;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost::{DecodeError, Message};

use super::proto::{GraphProto, ModelProto, TensorProto};

/// Bytes of a file that are in memory at a time.
const WINDOW: usize = 1 << 16;

/// Why there is no model.
#[derive(Debug)]
pub(super) enum StreamError {
    Io(io::Error),
    Content(DecodeError),
}

/// Reads a model of `size` bytes, which must be all that `source` has.
pub(super) fn read(source: &mut dyn Read, size: u64) -> Result<ModelProto, StreamError> {
    let mut window = Window { source, behind: size, bytes: vec![0; WINDOW], start: 0, end: 0, error: None };
    window.fill();
    let model = ModelProto::decode(&mut window);
    match window.error {
        Some(error) => Err(StreamError::Io(error)),
        None => model.map_err(StreamError::Content),
    }
}

/// What a decoder sees of a file: the next bytes, and how many are left.
struct Window<'a> {
    source: &'a mut dyn Read,
    /// How many bytes follow those here.
    behind: u64,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// A decoder finds the file at its end then.
    error: Option<io::Error>,
}

impl Window<'_> {
    fn fill(&mut self) {
        let most = usize::try_from(self.behind).unwrap_or(WINDOW).min(WINDOW);
        let (read, error) = match self.source.read(&mut self.bytes[..most]) {
            // It became shorter meanwhile.
            Ok(0) if most > 0 => (0, Some(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => (read, None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return self.fill(),
            Err(error) => (0, Some(error)),
        };
        self.error = error;
        (self.start, self.end) = (0, read);
        self.behind = if self.error.is_some() { 0 } else { self.behind - read as u64 };
    }
}

impl Buf for Window<'_> {
    fn remaining(&self) -> usize {
        usize::try_from(self.behind).unwrap_or(usize::MAX).saturating_add(self.end - self.start)
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn advance(&mut self, count: usize) {
        let mut left = count;
        while left > 0 && self.start < self.end {
            let here = left.min(self.end - self.start);
            self.start += here;
            left -= here;
            if self.start == self.end {
                self.fill();
            }
        }
    }
}

/// Writes a model, in the order of field numbers, and gives up each part as it is written.
pub(super) fn write(mut model: ModelProto, to: &mut dyn Write) -> io::Result<()> {
    let graph = model.graph.take();
    let behind = ModelProto {
        opset_import: take(&mut model.opset_import),
        metadata_props: take(&mut model.metadata_props),
        training_info: take(&mut model.training_info),
        functions: take(&mut model.functions),
        configuration: take(&mut model.configuration),
        ..Default::default()
    };
    whole(&model, to)?;
    if let Some(graph) = graph {
        head(7, graph.encoded_len(), to)?;
        write_graph(graph, to)?;
    }
    whole(&behind, to)
}

fn write_graph(mut graph: GraphProto, to: &mut dyn Write) -> io::Result<()> {
    for node in take(&mut graph.node) {
        head(1, node.encoded_len(), to)?;
        whole(&node, to)?;
    }
    whole(&GraphProto { name: graph.name.take(), ..Default::default() }, to)?;
    for weight in take(&mut graph.initializer) {
        head(5, weight.encoded_len(), to)?;
        write_tensor(weight, to)?;
    }
    whole(&graph, to)
}

fn write_tensor(mut tensor: TensorProto, to: &mut dyn Write) -> io::Result<()> {
    let content = tensor.raw_data.take();
    let behind = TensorProto {
        double_data: take(&mut tensor.double_data),
        uint64_data: take(&mut tensor.uint64_data),
        doc_string: tensor.doc_string.take(),
        external_data: take(&mut tensor.external_data),
        data_location: tensor.data_location.take(),
        metadata_props: take(&mut tensor.metadata_props),
        ..Default::default()
    };
    whole(&tensor, to)?;
    if let Some(content) = content {
        head(9, content.len(), to)?;
        to.write_all(&content)?;
    }
    whole(&behind, to)
}

/// Number and length of a field whose content follows.
fn head(field: u32, length: usize, to: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(16);
    encode_key(field, WireType::LengthDelimited, &mut bytes);
    encode_varint(length as u64, &mut bytes);
    to.write_all(&bytes)
}

fn whole(message: &impl Message, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(&message.encode_to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::{SparseTensorProto, StringStringEntryProto, TensorAnnotation, TrainingInfoProto};
    use crate::sample::model;

    /// A model with something in every field that pieces are made of.
    fn full() -> ModelProto {
        let text = |text: &str| Some(text.to_owned());
        let entry = || vec![StringStringEntryProto { key: text("key"), value: text("value") }];
        let mut model = model();
        (model.producer_name, model.producer_version) = (text("producer"), text("1"));
        (model.domain, model.doc_string, model.model_version) = (text("domain"), text("doc"), Some(3));
        (model.metadata_props, model.configuration) = (entry(), vec![vec![1, 2]]);
        model.training_info = vec![TrainingInfoProto { update_binding: entry(), ..Default::default() }];
        let graph = model.graph.as_mut().unwrap();
        graph.doc_string = text("doc");
        graph.metadata_props = entry();
        graph.quantization_annotation = vec![TensorAnnotation { tensor_name: text("w"), ..Default::default() }];
        graph.sparse_initializer.push(SparseTensorProto { dims: vec![3], ..Default::default() });
        let weight = TensorProto::of_floats("large", &[50_000], &[0.5; 50_000]);
        graph.initializer.push(TensorProto { doc_string: text("doc"), metadata_props: entry(), ..weight });
        let typed = |name: &str| TensorProto { name: text(name), dims: vec![2], ..Default::default() };
        graph.initializer.push(TensorProto { double_data: vec![1.0, 2.0], data_type: Some(11), ..typed("double") });
        graph.initializer.push(TensorProto { uint64_data: vec![1, 2], data_type: Some(13), ..typed("uint64") });
        let external = TensorProto { external_data: entry(), data_location: Some(1), ..typed("elsewhere") };
        graph.initializer.push(TensorProto { float_data: vec![1.0, 2.0], string_data: vec![vec![1]], ..external });
        model
    }

    #[test]
    fn what_is_written_in_pieces_is_what_is_written_whole() {
        let bytes = full().encode_to_vec();
        let mut written = Vec::new();
        write(full(), &mut written).unwrap();
        assert_eq!(written, bytes);
        assert_eq!(read(&mut bytes.as_slice(), bytes.len() as u64).unwrap(), full());
    }

    #[test]
    fn a_file_that_ends_or_fails_is_told() {
        let bytes = full().encode_to_vec();
        let size = bytes.len() as u64;
        for end in [0, 1, 100, WINDOW, WINDOW + 1, bytes.len() - 1] {
            assert!(matches!(read(&mut &bytes[..end], size).unwrap_err(), StreamError::Io(_)), "{end}");
        }
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let mut source = Read::chain(&bytes[..100_000], Failing);
        assert!(matches!(read(&mut source, size).unwrap_err(), StreamError::Io(_)));
        // A length beyond the end takes no memory.
        let length = [0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f];
        assert!(matches!(read(&mut length.as_slice(), 7).unwrap_err(), StreamError::Content(_)));
    }
}
