//! Models, signatures and input points for the tests of this package.

use std::collections::BTreeMap;

use super::proto::tensor_shape_proto::dimension::Value::{DimParam, DimValue};
use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, tensor_proto, tensor_shape_proto,
    type_proto,
};
use super::{Asked, Dimension, ElementType, ShapeError, Signature, TensorType, resolve_inputs};

pub(super) fn value_info(name: &str, shape: Vec<tensor_shape_proto::dimension::Value>) -> ValueInfoProto {
    let dimension = |value| tensor_shape_proto::Dimension { value: Some(value), ..Default::default() };
    let shape = TensorShapeProto { dim: shape.into_iter().map(dimension).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(1), shape: Some(shape) };
    let type_ = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(type_), ..Default::default() }
}

pub(super) fn weight(name: &str, code: i32, dims: &[i64]) -> TensorProto {
    let elements: i64 = dims.iter().product();
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(code),
        dims: dims.to_vec(),
        raw_data: Some(vec![7; elements as usize * 4].into()),
        ..Default::default()
    }
}

pub(super) fn external_weight(name: &str, location: &str) -> TensorProto {
    let entry = StringStringEntryProto { key: Some("location".to_owned()), value: Some(location.to_owned()) };
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(1),
        dims: vec![1000, 1000],
        external_data: vec![entry],
        data_location: Some(tensor_proto::DataLocation::External.into()),
        ..Default::default()
    }
}

pub(super) fn node(operator: &str, domain: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto { op_type: Some(operator.to_owned()), domain: Some(domain.to_owned()), attribute, ..Default::default() }
}

/// A model with a case of everything that the header contains.
pub(super) fn model() -> ModelProto {
    let constant = AttributeProto { t: Some(weight("", 1, &[4]).into()), ..Default::default() };
    let branch = GraphProto { initializer: vec![weight("b", 10, &[3])], ..Default::default() };
    let branch = AttributeProto { g: Some(branch.into()), ..Default::default() };
    let fill = AttributeProto { t: Some(weight("", 1, &[1]).into()), ..Default::default() };
    let sparse = SparseTensorProto {
        values: Some(weight("sparse", 1, &[5])),
        indices: Some(weight("", 7, &[5])),
        ..Default::default()
    };
    let graph = GraphProto {
        name: Some("main".to_owned()),
        node: vec![
            node("Constant", "", vec![constant]),
            node("If", "", vec![branch]),
            node("ConstantOfShape", "", vec![fill]),
            node("FusedConv", "com.microsoft", vec![]),
            node("If", "ai.onnx", vec![]),
        ],
        initializer: vec![weight("w", 1, &[2, 3]), weight("shape", 7, &[4])],
        sparse_initializer: vec![sparse],
        input: vec![
            value_info("x", vec![DimParam("N".to_owned()), DimValue(3)]),
            value_info("w", vec![DimValue(2), DimValue(3)]),
            value_info("sparse", vec![DimValue(5)]),
        ],
        output: vec![value_info("y", vec![DimParam("N".to_owned()), DimValue(10)])],
        ..Default::default()
    };
    let body = node("Constant", "", vec![AttributeProto { t: Some(weight("", 1, &[9]).into()), ..Default::default() }]);
    ModelProto {
        ir_version: Some(8),
        producer_name: Some("tests".to_owned()),
        producer_version: Some("1.2".to_owned()),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { version: Some(17), ..Default::default() }],
        functions: vec![FunctionProto { node: vec![body], ..Default::default() }],
        ..Default::default()
    }
}

/// Messages of what [`tensors`] reads.
pub(super) fn value_infos(text: &str) -> Vec<ValueInfoProto> {
    let info = |tensor: &TensorType| ValueInfoProto::of_tensor(&tensor.name, &tensor.element, tensor.shape.as_deref());
    tensors(text).iter().map(info).collect()
}

/// A model of these inputs, outputs, weights and nodes.
pub(super) fn model_of(
    opset: i64,
    inputs: &str,
    outputs: &str,
    weights: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
) -> ModelProto {
    let graph = GraphProto {
        node: nodes,
        initializer: weights,
        input: value_infos(inputs),
        output: value_infos(outputs),
        ..Default::default()
    };
    let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
    model.import("", opset);
    model
}

/// `x[N,3,?,224] ids:int64[batch,sequence]`: inputs, of float32 where nothing is said.
pub(super) fn tensors(text: &str) -> Vec<TensorType> {
    let tensor = |word: &str| {
        let (name, shape) = word.trim_end_matches(']').split_once('[').unwrap();
        let (name, element) = name.split_once(':').unwrap_or((name, "float32"));
        let element = (1..=16).map(ElementType::from_code).find(|known| known.name() == element).unwrap();
        let dimension = |text: &str| match text.parse() {
            Ok(size) => Dimension::Fixed(size),
            Err(_) if text == "?" => Dimension::Unknown,
            Err(_) => Dimension::Named(text.to_owned()),
        };
        let shape = match shape {
            "..." => None,
            "" => Some(vec![]),
            dimensions => Some(dimensions.split(',').map(dimension).collect()),
        };
        TensorType { name: name.to_owned(), element, shape }
    };
    text.split_whitespace().map(tensor).collect()
}

pub(crate) fn signature(inputs: &str, outputs: &str) -> Signature {
    Signature { inputs: tensors(inputs), outputs: tensors(outputs) }
}

/// Sizes to ask for.
#[derive(Clone, Default)]
pub(super) struct Point {
    pub(super) dimensions: BTreeMap<String, u64>,
    pub(super) shapes: BTreeMap<String, Vec<u64>>,
}

impl Point {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked { dimensions: &self.dimensions, shapes: &self.shapes }
    }
}

pub(super) fn point(dimensions: &[(&str, u64)], shapes: &[(&str, &[u64])]) -> Point {
    Point {
        dimensions: dimensions.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect(),
        shapes: shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect(),
    }
}

pub(super) type Shapes<'a> = &'a [(&'a str, &'a [u64])];

/// Shapes, choice and batch as one text: `[16, 3] | the dimension `N` = 16`.
pub(super) fn resolve(inputs: &str, dimensions: &[(&str, u64)], shapes: Shapes<'_>) -> Result<String, ShapeError> {
    let resolved = resolve_inputs(&signature(inputs, ""), &point(dimensions, shapes))?;
    let shapes: Vec<String> = resolved.tensors.iter().map(|tensor| format!("{:?}", tensor.shape)).collect();
    let batch = match (resolved.batch, resolved.batch_size) {
        (Some(choice), Some(size)) => format!("{choice} = {size}"),
        (None, None) => "unknown".to_owned(),
        unpaired => panic!("one without the other: {unpaired:?}"),
    };
    Ok(format!("{} | {batch}", shapes.join(" ")))
}

#[track_caller]
pub(super) fn check(inputs: &str, dimensions: &[(&str, u64)], shapes: Shapes<'_>, expected: &str) {
    assert_eq!(resolve(inputs, dimensions, shapes).as_deref(), Ok(expected));
}

#[track_caller]
pub(super) fn check_problem(inputs: &str, dimensions: &[(&str, u64)], shapes: Shapes<'_>, reason: &str, remedy: &str) {
    let problem = resolve(inputs, dimensions, shapes).unwrap_err();
    assert_eq!((problem.to_string().as_str(), problem.remedy().as_str()), (reason, remedy));
}
