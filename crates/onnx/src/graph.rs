//! The walk over a model's messages that collects what its header needs and skips the weights.
//!
//! Input: a `Wire` over the file. Output: `Contents`. Deliberately absent: judging what is missing (`read` does).
//! Field numbers are those of `proto/onnx.proto`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use super::cost::ParameterCount;
use super::proto::{OperatorSetIdProto, StringStringEntryProto, ValueInfoProto};
use super::signature::{ElementType, TensorType};
use super::stored::Held;
use super::training::Training;
use super::wire::{Fault, Span, Value, Wire};

/// Graphs within attributes within graphs: real models stay below ten, and a file must not exhaust the stack.
const DEEPEST_GRAPH: usize = 64;

/// The domain of the standard's operators; an empty one means the same.
const STANDARD_DOMAIN: &str = "ai.onnx";

/// What was found. Version 0 and `has_graph` false: not found.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) ir_version: u64,
    pub(super) producer: String,
    pub(super) producer_version: String,
    pub(super) opset_imports: BTreeMap<String, i64>,
    pub(super) has_graph: bool,
    pub(super) graph_name: String,
    pub(super) inputs: Vec<TensorType>,
    pub(super) outputs: Vec<TensorType>,
    pub(super) initialisers: BTreeSet<String>,
    pub(super) operators: BTreeMap<String, u64>,
    pub(super) parameters: ParameterCount,
    pub(super) held: Held,
    pub(super) training: Training,
    pub(super) external_data: BTreeSet<String>,
}

/// One tensor's part in the header.
#[derive(Default)]
struct TensorFacts {
    name: String,
    /// Elements, when they are floating-point numbers; else 0.
    parameters: u64,
    /// It is the truth value true.
    is_true: bool,
}

/// What an attribute says.
struct AttributeFacts {
    /// Floating-point elements of its tensor, which is a weight in a `Constant` node and a setting (a fill value, a table of
    /// classes) in all other nodes.
    elements: u64,
    /// Its value, where it is called `bits`.
    bits: Option<u64>,
    /// It is `training_mode`, and 1.
    trains: bool,
    /// Its tensor is the truth value true.
    is_true: bool,
}

pub(super) struct Walker<R> {
    wire: Wire<R>,
    pub(super) contents: Contents,
}

impl<R: Read + Seek> Walker<R> {
    pub(super) fn new(source: R, size: u64) -> Self {
        Walker { wire: Wire::new(source, size), contents: Contents::default() }
    }

    /// `ModelProto`. What was found before a fault stays in `contents`.
    pub(super) fn model(&mut self) -> Result<(), Fault> {
        let model = self.wire.span();
        while let Some(field) = self.wire.field(model.end)? {
            match field {
                (1, Value::Varint(version)) => self.contents.ir_version = version,
                (2, Value::Bytes(span)) => self.contents.producer = self.wire.text(span)?,
                (3, Value::Bytes(span)) => self.contents.producer_version = self.wire.text(span)?,
                (7, Value::Bytes(span)) => {
                    self.main_graph(span)?;
                    self.contents.has_graph = true;
                }
                (8, Value::Bytes(span)) => {
                    let opset: OperatorSetIdProto = self.wire.message(span)?;
                    let domain = if opset.domain().is_empty() { STANDARD_DOMAIN } else { opset.domain() };
                    self.contents.opset_imports.insert(domain.to_owned(), opset.version());
                }
                (25, Value::Bytes(span)) => self.function(span)?,
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `GraphProto` of the model itself.
    fn main_graph(&mut self, graph: Span) -> Result<(), Fault> {
        while let Some(field) = self.wire.field(graph.end)? {
            match field {
                (1, Value::Bytes(span)) => {
                    let operator = self.node(span, 0)?;
                    *self.contents.operators.entry(operator).or_default() += 1;
                }
                (2, Value::Bytes(span)) => self.contents.graph_name = self.wire.text(span)?,
                (5, Value::Bytes(span)) => {
                    let tensor = self.tensor(span)?;
                    self.initialiser(tensor);
                }
                (11, Value::Bytes(span)) => {
                    let input: ValueInfoProto = self.wire.message(span)?;
                    self.contents.inputs.push(TensorType::from(&input));
                }
                (12, Value::Bytes(span)) => {
                    let output: ValueInfoProto = self.wire.message(span)?;
                    self.contents.outputs.push(TensorType::from(&output));
                }
                (15, Value::Bytes(span)) => {
                    let tensor = self.sparse_tensor(span)?;
                    self.initialiser(tensor);
                }
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn initialiser(&mut self, tensor: TensorFacts) {
        if tensor.is_true {
            self.contents.training.add_true(&tensor.name);
        }
        self.contents.parameters.add_initialiser(&tensor.name, tensor.parameters);
        self.contents.initialisers.insert(tensor.name);
    }

    /// `GraphProto` of an attribute: only its weights matter.
    fn inner_graph(&mut self, graph: Span, depth: usize) -> Result<(), Fault> {
        if depth == DEEPEST_GRAPH {
            let detail = format!("graphs nested more than {DEEPEST_GRAPH} deep");
            return Err(Fault::Damaged { offset: graph.start, detail });
        }
        while let Some(field) = self.wire.field(graph.end)? {
            match field {
                (1, Value::Bytes(span)) => drop(self.node(span, depth)?),
                (5, Value::Bytes(span)) => {
                    let tensor = self.tensor(span)?;
                    self.contents.parameters.add_initialiser(&tensor.name, tensor.parameters);
                }
                (15, Value::Bytes(span)) => {
                    let tensor = self.sparse_tensor(span)?;
                    self.contents.parameters.add_initialiser(&tensor.name, tensor.parameters);
                }
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `FunctionProto`: only files that its tensors lie in matter, for a function has no weights of its own.
    fn function(&mut self, function: Span) -> Result<(), Fault> {
        let parameters = std::mem::take(&mut self.contents.parameters);
        while let Some(field) = self.wire.field(function.end)? {
            match field {
                (7, Value::Bytes(span)) => drop(self.node(span, 0)?),
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        self.contents.parameters = parameters;
        Ok(())
    }

    /// `NodeProto`; the operator's name, with its domain unless that is the standard's.
    fn node(&mut self, node: Span, depth: usize) -> Result<String, Fault> {
        let (mut operator, mut domain, mut output) = (String::new(), String::new(), String::new());
        let (mut inputs, mut elements, mut bits) = (Vec::new(), 0, None);
        let (mut trains, mut is_true) = (false, false);
        while let Some(field) = self.wire.field(node.end)? {
            match field {
                (1, Value::Bytes(span)) => inputs.push(self.wire.text(span)?),
                (2, Value::Bytes(span)) if output.is_empty() => output = self.wire.text(span)?,
                (4, Value::Bytes(span)) => operator = self.wire.text(span)?,
                (5, Value::Bytes(span)) => {
                    let found = self.attribute(span, depth)?;
                    elements = elements.max(found.elements);
                    bits = bits.or(found.bits);
                    trains |= found.trains;
                    is_true |= found.is_true;
                }
                (7, Value::Bytes(span)) => domain = self.wire.text(span)?,
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        self.contents.held.add_node(&operator, bits);
        if !domain.is_empty() && domain != STANDARD_DOMAIN {
            return Ok(format!("{domain}.{operator}"));
        }
        self.contents.parameters.add_node(&operator, &inputs);
        self.contents.training.add_node(&operator, &inputs, &output, trains);
        if operator == "Constant" && is_true {
            self.contents.training.add_true(&output);
        }
        if operator == "Constant" {
            self.contents.parameters.add_constant(&output, elements);
        }
        Ok(operator)
    }

    /// `AttributeProto`.
    fn attribute(&mut self, attribute: Span, depth: usize) -> Result<AttributeFacts, Fault> {
        let (mut name, mut integer, mut tensor) = (String::new(), None, TensorFacts::default());
        while let Some(field) = self.wire.field(attribute.end)? {
            match field {
                (1, Value::Bytes(span)) => name = self.wire.text(span)?,
                (3, Value::Varint(value)) => integer = Some(value),
                (5, Value::Bytes(span)) => tensor = self.tensor(span)?,
                (10, Value::Bytes(span)) => drop(self.tensor(span)?),
                (22 | 23, Value::Bytes(span)) => drop(self.sparse_tensor(span)?),
                (6 | 11, Value::Bytes(span)) => self.inner_graph(span, depth + 1)?,
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        if let Some(code) = integer.filter(|_| name == "output_dtype") {
            self.contents.held.add_tensor(&ElementType::from_code(i32::try_from(code).unwrap_or(-1)), 1);
        }
        let TensorFacts { parameters: elements, is_true, .. } = tensor;
        let trains = name == "training_mode" && integer == Some(1);
        Ok(AttributeFacts { elements, bits: integer.filter(|_| name == "bits"), trains, is_true })
    }

    /// `SparseTensorProto`; its name is that of its values, and only those that are stored count.
    fn sparse_tensor(&mut self, sparse: Span) -> Result<TensorFacts, Fault> {
        let mut values = TensorFacts::default();
        while let Some(field) = self.wire.field(sparse.end)? {
            match field {
                (1, Value::Bytes(span)) => values = self.tensor(span)?,
                (2, Value::Bytes(span)) => drop(self.tensor(span)?),
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        Ok(values)
    }

    /// `TensorProto`; its data is skipped, the file that it may lie in is noted.
    fn tensor(&mut self, tensor: Span) -> Result<TensorFacts, Fault> {
        let (mut name, mut elements, mut code, mut is_external) = (String::new(), 1_u64, 0, false);
        let (mut location, mut is_one) = (None, false);
        while let Some(field) = self.wire.field(tensor.end)? {
            match field {
                (1, Value::Varint(size)) => elements = elements.saturating_mul(extent(size)),
                // A list of numbers may also be packed into one field.
                (1, Value::Bytes(span)) => elements = elements.saturating_mul(self.packed_product(span)?),
                (2, Value::Varint(data_type)) => code = i32::try_from(data_type).unwrap_or(-1),
                (5, Value::Varint(value)) => is_one = value == 1,
                // Packed numbers, or raw data.
                (5 | 9, Value::Bytes(span)) if span.end - span.start == 1 => is_one = self.wire.bytes(span)? == [1],
                (8, Value::Bytes(span)) => name = self.wire.text(span)?,
                (13, Value::Bytes(span)) => {
                    let mut entry: StringStringEntryProto = self.wire.message(span)?;
                    if entry.key() == "location" {
                        location = entry.value.take();
                    }
                }
                (14, Value::Varint(data_location)) => is_external = data_location == 1,
                (_, Value::Bytes(span)) => self.wire.skip(span)?,
                _ => {}
            }
        }
        if is_external {
            self.contents.external_data.extend(location);
        }
        let element = ElementType::from_code(code);
        self.contents.held.add_tensor(&element, elements);
        let parameters = if element.is_float() { elements } else { 0 };
        let is_true = is_one && element == ElementType::Bool && elements == 1;
        Ok(TensorFacts { name, parameters, is_true })
    }

    fn packed_product(&mut self, list: Span) -> Result<u64, Fault> {
        let mut product = 1_u64;
        while self.wire.position() < list.end {
            product = product.saturating_mul(extent(self.wire.varint(list.end)?));
        }
        Ok(product)
    }
}

/// A dimension of a stored tensor; a negative one is an error that ONNX Runtime will name, and nothing is stored for it.
fn extent(varint: u64) -> u64 {
    u64::try_from(varint.cast_signed()).unwrap_or(0)
}
