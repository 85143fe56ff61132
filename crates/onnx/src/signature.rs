//! What a model takes and gives: names, element types, shapes.
//!
//! Input: the `ValueInfoProto` messages of a graph. Output: a [`Signature`], plain data that is stored in records.
//! Deliberately absent: which sizes an experiment gives to open dimensions (`resolve` decides), and values.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::proto::{TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto, type_proto};

/// The inputs and outputs of a model, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// What must be fed: graph inputs that no initialiser stands behind.
    pub inputs: Vec<TensorType>,
    /// What comes out.
    pub outputs: Vec<TensorType>,
}

impl Signature {
    /// Why what one model is fed cannot be fed to another, in words: `it takes ..., the model ...`.
    pub fn misfit(&self, other: &Signature) -> Option<String> {
        let named = |inputs: &[TensorType], name: &str| inputs.iter().find(|input| input.name == name).cloned();
        let lacks = |inputs: &[TensorType], wanted: &[TensorType]| {
            wanted.iter().any(|input| named(inputs, &input.name).is_none())
        };
        if lacks(&self.inputs, &other.inputs) || lacks(&other.inputs, &self.inputs) {
            let all = |inputs: &[TensorType]| {
                let texts: Vec<String> = inputs.iter().map(|input| format!("`{input}`")).collect();
                if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
            };
            return Some(format!("it takes {}, the model {}", all(&other.inputs), all(&self.inputs)));
        }
        let pairs = self.inputs.iter().filter_map(|input| Some((input, named(&other.inputs, &input.name)?)));
        let (input, its) = pairs.into_iter().find(|(input, its)| !input.takes_the_shapes_of(its))?.to_owned();
        Some(format!("it takes `{its}`, the model `{input}`"))
    }
}

/// One input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorType {
    /// The name in the graph.
    pub name: String,
    /// What one element is.
    pub element: ElementType,
    /// Dimensions, outermost first; `None`: the file does not even say how many.
    pub shape: Option<Vec<Dimension>>,
}

impl TensorType {
    /// The dimensions, none for an unknown rank as for a scalar.
    pub fn dimensions(&self) -> &[Dimension] {
        self.shape.as_deref().unwrap_or_default()
    }

    /// Whether one shape may fit both: ranks and fixed sizes agree where both are known.
    fn takes_the_shapes_of(&self, other: &TensorType) -> bool {
        let (Some(shape), Some(its)) = (&self.shape, &other.shape) else { return true };
        let fits = |(left, right): (&Dimension, &Dimension)| match (left, right) {
            (Dimension::Fixed(left), Dimension::Fixed(right)) => left == right,
            _ => true,
        };
        shape.len() == its.len() && shape.iter().zip(its).all(fits)
    }

    /// The shape as text: `[batch, 3, 224, 224]`, `[?, 4]`, `[...]` for an unknown rank.
    pub fn shape_text(&self) -> String {
        match &self.shape {
            None => "[...]".to_owned(),
            Some(dimensions) => {
                let texts: Vec<String> = dimensions.iter().map(Dimension::to_string).collect();
                format!("[{}]", texts.join(", "))
            }
        }
    }
}

/// As `inspect` prints it: `images: float32 [batch, 3, 224, 224]`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.name, self.element, self.shape_text())
    }
}

impl From<&ValueInfoProto> for TensorType {
    fn from(value: &ValueInfoProto) -> Self {
        let (element, shape) = match value.r#type.as_ref() {
            Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. }) => {
                (ElementType::from_code(tensor.elem_type()), tensor.shape.as_ref().map(dimensions))
            }
            Some(other) => (ElementType::Other(type_name(other, 0)), None),
            None => (ElementType::Other("undefined".to_owned()), None),
        };
        TensorType { name: value.name().to_owned(), element, shape }
    }
}

/// One dimension of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// A number in the file.
    Fixed(u64),
    /// A name in the file (`dim_param`): equal names mean equal sizes.
    Named(String),
    /// Neither.
    Unknown,
}

impl Dimension {
    /// Its name in the file.
    pub fn name(&self) -> Option<&str> {
        match self {
            Dimension::Named(name) => Some(name),
            Dimension::Fixed(_) | Dimension::Unknown => None,
        }
    }
}

/// As `inspect` prints it: `224`, `batch`, `?`.
impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dimension::Fixed(size) => write!(f, "{size}"),
            Dimension::Named(name) => f.write_str(name),
            Dimension::Unknown => f.write_str("?"),
        }
    }
}

/// What exporters write instead of a name: such dimensions have no size in common.
const NO_NAMES: [&str; 4] = ["-1", "?", "*", "None"];

/// Old exporters write -1 for an open dimension, and ONNX Runtime reads it so.
fn dimensions(shape: &TensorShapeProto) -> Vec<Dimension> {
    let dimension = |dimension: &tensor_shape_proto::Dimension| match &dimension.value {
        Some(tensor_shape_proto::dimension::Value::DimValue(size)) => {
            u64::try_from(*size).map_or(Dimension::Unknown, Dimension::Fixed)
        }
        Some(tensor_shape_proto::dimension::Value::DimParam(name)) if !is_no_name(name) => {
            Dimension::Named(name.clone())
        }
        _ => Dimension::Unknown,
    };
    shape.dim.iter().map(dimension).collect()
}

fn is_no_name(name: &str) -> bool {
    let name = name.trim();
    name.is_empty() || NO_NAMES.contains(&name)
}

/// What one element of a tensor is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElementType {
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// IEEE 754 binary16.
    Float16,
    /// The upper half of a binary32.
    Bfloat16,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    Uint8,
    /// Unsigned, 16 bits.
    Uint16,
    /// Unsigned, 32 bits.
    Uint32,
    /// Unsigned, 64 bits.
    Uint64,
    /// One byte, 0 or 1.
    Bool,
    /// UTF-8 text of any length.
    String,
    /// What perfrun cannot feed, by its name: `float8e4m3fn`, `complex64`, `sequence(float32)`.
    Other(String),
}

impl ElementType {
    /// From the standard's `TensorProto.DataType`.
    pub(crate) fn from_code(code: i32) -> Self {
        let other = match code {
            1 => return ElementType::Float32,
            2 => return ElementType::Uint8,
            3 => return ElementType::Int8,
            4 => return ElementType::Uint16,
            5 => return ElementType::Int16,
            6 => return ElementType::Int32,
            7 => return ElementType::Int64,
            8 => return ElementType::String,
            9 => return ElementType::Bool,
            10 => return ElementType::Float16,
            11 => return ElementType::Float64,
            12 => return ElementType::Uint32,
            13 => return ElementType::Uint64,
            16 => return ElementType::Bfloat16,
            0 => "undefined",
            14 => "complex64",
            15 => "complex128",
            17 => "float8e4m3fn",
            18 => "float8e4m3fnuz",
            19 => "float8e5m2",
            20 => "float8e5m2fnuz",
            21 => "uint4",
            22 => "int4",
            23 => "float4e2m1",
            24 => "float8e8m0",
            25 => "uint2",
            26 => "int2",
            27 => "float6e2m3",
            28 => "float6e3m2",
            unknown => return ElementType::Other(format!("type{unknown}")),
        };
        ElementType::Other(other.to_owned())
    }

    /// The standard's number for it; `None` for what has a name only.
    pub fn code(&self) -> Option<i32> {
        (1..=16).find(|code| ElementType::from_code(*code) == *self && !matches!(self, ElementType::Other(_)))
    }

    /// Bytes of one element in memory; `None` where it has no fixed size of whole bytes, or perfrun cannot feed it.
    pub fn size_bytes(&self) -> Option<u64> {
        match self {
            ElementType::Int8 | ElementType::Uint8 | ElementType::Bool => Some(1),
            ElementType::Float16 | ElementType::Bfloat16 | ElementType::Int16 | ElementType::Uint16 => Some(2),
            ElementType::Float32 | ElementType::Int32 | ElementType::Uint32 => Some(4),
            ElementType::Float64 | ElementType::Int64 | ElementType::Uint64 => Some(8),
            ElementType::String | ElementType::Other(_) => None,
        }
    }

    /// Whether its tensors are plain memory: not those of sequences, maps, texts and types of less than a byte.
    pub fn is_readable(&self) -> bool {
        self.size_bytes().is_some()
    }

    /// Whether outputs of this type are compared: plain memory, texts, and sequences, maps and optional values of such.
    pub fn is_comparable(&self) -> bool {
        let ElementType::Other(name) = self else { return true };
        let words = name.split(['(', ')', ',', ' ']).filter(|word| !word.is_empty());
        let known: Vec<ElementType> =
            (1..=16).map(ElementType::from_code).filter(|known| known.code().is_some()).collect();
        let is_known = |word: &str| known.iter().any(|known| known.name() == word);
        words.into_iter().all(|word| matches!(word, "sequence" | "map" | "optional") || is_known(word))
    }

    /// The name that users read, numpy's where it has one: `float32`.
    pub fn name(&self) -> &str {
        match self {
            ElementType::Float32 => "float32",
            ElementType::Float64 => "float64",
            ElementType::Float16 => "float16",
            ElementType::Bfloat16 => "bfloat16",
            ElementType::Int8 => "int8",
            ElementType::Int16 => "int16",
            ElementType::Int32 => "int32",
            ElementType::Int64 => "int64",
            ElementType::Uint8 => "uint8",
            ElementType::Uint16 => "uint16",
            ElementType::Uint32 => "uint32",
            ElementType::Uint64 => "uint64",
            ElementType::Bool => "bool",
            ElementType::String => "string",
            ElementType::Other(name) => name,
        }
    }

    /// The type of that name; one that perfrun does not know is `Other`.
    pub fn of_name(name: &str) -> Self {
        use ElementType::{
            Bfloat16, Bool, Float16, Float32, Float64, Int8, Int16, Int32, Int64, String, Uint8, Uint16, Uint32, Uint64,
        };
        let known = [
            Float32, Float64, Float16, Bfloat16, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Bool, String,
        ];
        known.into_iter().find(|element| element.name() == name).unwrap_or_else(|| ElementType::Other(name.to_owned()))
    }

    /// Whether it is a real floating-point type, of any width.
    pub fn is_float(&self) -> bool {
        self.name().starts_with("float") || *self == ElementType::Bfloat16
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Deeper types are written `...`; nothing real nests further than an optional sequence of maps.
const DEEPEST_TYPE: usize = 8;

/// The name of a type that is not a plain tensor.
fn type_name(proto: &TypeProto, depth: usize) -> String {
    use type_proto::Value;
    if depth == DEEPEST_TYPE {
        return "...".to_owned();
    }
    let inner = |inner: &Option<Box<TypeProto>>| match inner {
        Some(inner) => type_name(inner, depth + 1),
        None => "undefined".to_owned(),
    };
    match &proto.value {
        Some(Value::TensorType(tensor)) => ElementType::from_code(tensor.elem_type()).to_string(),
        Some(Value::SequenceType(sequence)) => format!("sequence({})", inner(&sequence.elem_type)),
        Some(Value::OptionalType(optional)) => format!("optional({})", inner(&optional.elem_type)),
        Some(Value::SparseTensorType(sparse)) => format!("sparse({})", ElementType::from_code(sparse.elem_type())),
        Some(Value::MapType(map)) => {
            format!("map({}, {})", ElementType::from_code(map.key_type()), inner(&map.value_type))
        }
        Some(Value::OpaqueType(opaque)) => format!("opaque({}, {})", opaque.domain(), opaque.name()),
        None => "undefined".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::type_proto::{Map, Sequence, Tensor, Value};

    fn tensor_proto(code: i32, shape: Option<Vec<tensor_shape_proto::dimension::Value>>) -> TypeProto {
        let shape = shape.map(|values| {
            let dimension = |value| tensor_shape_proto::Dimension { value: Some(value), ..Default::default() };
            TensorShapeProto { dim: values.into_iter().map(dimension).collect() }
        });
        let tensor = Tensor { elem_type: Some(code), shape };
        TypeProto { value: Some(Value::TensorType(tensor)), ..Default::default() }
    }

    fn value_info(name: &str, type_: Option<TypeProto>) -> ValueInfoProto {
        ValueInfoProto { name: Some(name.to_owned()), r#type: type_, ..Default::default() }
    }

    #[test]
    fn dimensions_are_fixed_named_or_unknown() {
        use tensor_shape_proto::dimension::Value::{DimParam, DimValue};
        let shape = vec![DimParam("N".to_owned()), DimValue(3), DimValue(-1), DimParam(String::new()), DimValue(0)];
        let tensor = TensorType::from(&value_info("x", Some(tensor_proto(1, Some(shape)))));
        let expected = vec![
            Dimension::Named("N".to_owned()),
            Dimension::Fixed(3),
            Dimension::Unknown,
            Dimension::Unknown,
            Dimension::Fixed(0),
        ];
        assert_eq!(tensor.shape, Some(expected));
        assert_eq!(tensor.to_string(), "x: float32 [N, 3, ?, ?, 0]");
    }

    #[test]
    fn a_missing_shape_is_an_unknown_rank_and_an_empty_one_a_scalar() {
        assert_eq!(TensorType::from(&value_info("x", Some(tensor_proto(7, None)))).to_string(), "x: int64 [...]");
        assert_eq!(TensorType::from(&value_info("x", Some(tensor_proto(9, Some(vec![]))))).to_string(), "x: bool []");
    }

    #[test]
    fn types_that_are_not_tensors_are_named() {
        let map = Map { key_type: Some(7), value_type: Some(tensor_proto(1, None).into()) };
        let map = TypeProto { value: Some(Value::MapType(map.into())), ..Default::default() };
        let sequence = Sequence { elem_type: Some(map.into()) };
        let sequence = TypeProto { value: Some(Value::SequenceType(sequence.into())), ..Default::default() };
        let tensor = TensorType::from(&value_info("y", Some(sequence)));
        assert_eq!(tensor.element, ElementType::Other("sequence(map(int64, float32))".to_owned()));
        assert!(tensor.element.is_comparable());
        assert_eq!(TensorType::from(&value_info("y", None)).element, ElementType::Other("undefined".to_owned()));
        for other in ["undefined", "complex64", "int4", "sparse(float32)", "sequence(float8e5m2)"] {
            assert!(!ElementType::Other(other.to_owned()).is_comparable(), "{other}");
        }
    }

    #[test]
    fn what_is_no_name_of_a_dimension_is_no_name() {
        use tensor_shape_proto::dimension::Value::DimParam;
        for text in ["-1", "?", "None", " "] {
            let tensor =
                TensorType::from(&value_info("x", Some(tensor_proto(1, Some(vec![DimParam(text.to_owned())])))));
            assert_eq!(tensor.shape, Some(vec![Dimension::Unknown]), "{text}");
        }
    }

    #[test]
    fn inputs_of_two_models_fit_by_name_rank_and_fixed_sizes() {
        use Dimension::{Fixed, Named, Unknown};
        let signature = |name: &str, shape: &[Dimension]| Signature {
            inputs: vec![TensorType {
                name: name.to_owned(),
                element: ElementType::Float32,
                shape: Some(shape.to_vec()),
            }],
            outputs: Vec::new(),
        };
        let model = signature("x", &[Named("N".to_owned()), Fixed(64)]);
        let misfit = |name: &str, shape: &[Dimension]| model.misfit(&signature(name, shape));
        assert_eq!(misfit("x", &[Unknown, Fixed(64)]), None);
        assert_eq!(misfit("x", &[Fixed(1), Named("width".to_owned())]), None);
        assert_eq!(
            misfit("data", &[Unknown]).as_deref(),
            Some("it takes `data: float32 [?]`, the model `x: float32 [N, 64]`")
        );
        assert!(misfit("x", &[Unknown, Fixed(32)]).is_some());
        assert!(misfit("x", &[Unknown, Unknown, Fixed(64)]).is_some());
        let nothing = model.misfit(&Signature { inputs: Vec::new(), outputs: Vec::new() });
        assert_eq!(nothing.as_deref(), Some("it takes nothing, the model `x: float32 [N, 64]`"));
    }

    #[test]
    fn serialised_names_are_the_printed_ones() {
        for code in (1..=13).chain([16]) {
            let element = ElementType::from_code(code);
            assert_eq!(serde_json::to_value(&element).ok(), Some(serde_json::Value::String(element.to_string())));
        }
        assert_eq!(ElementType::from_code(77).to_string(), "type77");
    }

    #[test]
    fn floats_of_every_width_are_floats() {
        let floats: Vec<i32> = (0..30).filter(|code| ElementType::from_code(*code).is_float()).collect();
        assert_eq!(floats, [1, 10, 11, 16, 17, 18, 19, 20, 23, 24, 27, 28]);
    }
}
