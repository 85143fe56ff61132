//! Making nodes, attributes and types, and reading the attributes of a node by name.
//!
//! Input: plain values. Output: messages of the standard, with the types that its checker asks for. Deliberately absent:
//! whether an operator has such an attribute.

use super::proto::attribute_proto::AttributeType;
use super::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, tensor_shape_proto, type_proto,
};
use super::signature::{Dimension, ElementType};

impl NodeProto {
    /// A node of the standard's operator set. An empty name is an input or output that is left out.
    pub fn of(operator: &str, name: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> Self {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NodeProto {
            op_type: Some(operator.to_owned()),
            name: Some(name.to_owned()),
            input: texts(inputs),
            output: texts(outputs),
            attribute,
            ..Default::default()
        }
    }

    /// The same in another domain.
    pub fn in_domain(mut self, domain: &str) -> Self {
        self.domain = Some(domain.to_owned());
        self
    }

    pub(crate) fn named_attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attribute.iter().find(|attribute| attribute.name() == name)
    }

    /// An integer attribute.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.named_attribute(name)?.i
    }

    /// A list of integers; `None` where the attribute is not there.
    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        Some(&self.named_attribute(name)?.ints)
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.named_attribute(name)?.f
    }

    /// A text attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.named_attribute(name)?.s.as_deref()?).ok()
    }

    /// A tensor attribute.
    pub fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.named_attribute(name)?.t.as_deref()
    }

    /// Whether it is of the standard's own operator set.
    pub fn is_standard(&self) -> bool {
        matches!(self.domain(), "" | "ai.onnx")
    }

    /// The operator with its domain, unless that is the standard's: `Conv`, `com.microsoft.Attention`.
    pub fn operator(&self) -> String {
        if self.is_standard() { self.op_type().to_owned() } else { format!("{}.{}", self.domain(), self.op_type()) }
    }

    /// Its operator, with its name where it has one: ``Conv `/conv_in` ``.
    pub fn described(&self) -> String {
        match self.name() {
            "" => self.op_type().to_owned(),
            name => format!("{} `{name}`", self.op_type()),
        }
    }

    /// What messages call it: its name, else its operator and first output.
    pub fn label(&self) -> String {
        match (self.name(), self.output.first()) {
            ("", Some(output)) => format!("{} -> {output}", self.op_type()),
            ("", None) => self.op_type().to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

impl AttributeProto {
    fn of(name: &str, kind: AttributeType) -> Self {
        AttributeProto { name: Some(name.to_owned()), r#type: Some(kind.into()), ..Default::default() }
    }

    /// An integer.
    pub fn of_int(name: &str, value: i64) -> Self {
        AttributeProto { i: Some(value), ..AttributeProto::of(name, AttributeType::Int) }
    }

    /// Integers.
    pub fn of_ints(name: &str, values: &[i64]) -> Self {
        AttributeProto { ints: values.to_vec(), ..AttributeProto::of(name, AttributeType::Ints) }
    }

    /// A float.
    pub fn of_float(name: &str, value: f32) -> Self {
        AttributeProto { f: Some(value), ..AttributeProto::of(name, AttributeType::Float) }
    }

    /// A text.
    pub fn of_text(name: &str, value: &str) -> Self {
        AttributeProto { s: Some(value.as_bytes().to_vec()), ..AttributeProto::of(name, AttributeType::String) }
    }

    /// A tensor.
    pub fn of_tensor(name: &str, value: TensorProto) -> Self {
        AttributeProto { t: Some(value.into()), ..AttributeProto::of(name, AttributeType::Tensor) }
    }

    /// A graph.
    pub fn of_graph(name: &str, value: GraphProto) -> Self {
        AttributeProto { g: Some(value.into()), ..AttributeProto::of(name, AttributeType::Graph) }
    }
}

impl ValueInfoProto {
    /// A tensor with name, element type and shape; `None` for a shape of unknown rank.
    pub fn of_tensor(name: &str, element: &ElementType, shape: Option<&[Dimension]>) -> Self {
        let dimension = |dimension: &Dimension| {
            use tensor_shape_proto::dimension::Value::{DimParam, DimValue};
            let value = match dimension {
                Dimension::Fixed(size) => Some(DimValue(*size as i64)),
                Dimension::Named(name) => Some(DimParam(name.clone())),
                Dimension::Unknown => None,
            };
            tensor_shape_proto::Dimension { value, ..Default::default() }
        };
        let shape = shape.map(|shape| TensorShapeProto { dim: shape.iter().map(dimension).collect() });
        let tensor = type_proto::Tensor { elem_type: element.code(), shape };
        let type_ = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() };
        ValueInfoProto { name: Some(name.to_owned()), r#type: Some(type_), ..Default::default() }
    }

    /// Changes the element type of a tensor; other types stay.
    pub(crate) fn set_element(&mut self, element: &ElementType) {
        if let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. }) = self.r#type.as_mut() {
            tensor.elem_type = element.code();
        }
    }
}

impl ModelProto {
    /// A model of a graph, of the standard's operators as every supported runtime has them.
    pub fn of_graph(graph: GraphProto) -> Self {
        let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
        model.import("", 17);
        model
    }

    /// Version of an operator set that the model imports; the standard's own is `""`.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let plain = |domain: &str| if domain == "ai.onnx" { String::new() } else { domain.to_owned() };
        let same = |import: &&OperatorSetIdProto| plain(import.domain()) == plain(domain);
        self.opset_import.iter().find(same).map(OperatorSetIdProto::version)
    }

    /// Imports an operator set, unless the model does already.
    pub fn import(&mut self, domain: &str, version: i64) {
        if self.opset(domain).is_none() {
            let (domain, version) = (Some(domain.to_owned()), Some(version));
            self.opset_import.push(OperatorSetIdProto { domain, version });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_by_name_and_type() {
        let attributes = vec![
            AttributeProto::of_int("axis", -1),
            AttributeProto::of_ints("pads", &[1, 1]),
            AttributeProto::of_float("alpha", 0.5),
            AttributeProto::of_text("mode", "linear"),
            AttributeProto::of_tensor("value", TensorProto::of_floats("", &[1], &[2.0])),
        ];
        let node = NodeProto::of("Gemm", "g", &["a", ""], &["y"], attributes);
        assert_eq!(
            (node.int("axis"), node.ints("pads"), node.float("alpha")),
            (Some(-1), Some(&[1, 1][..]), Some(0.5))
        );
        assert_eq!((node.text("mode"), node.int("none")), (Some("linear"), None));
        assert_eq!(node.tensor("value").and_then(|tensor| tensor.floats().ok()), Some(vec![2.0]));
        assert_eq!((node.operator(), node.label()), ("Gemm".to_owned(), "g".to_owned()));
        let other = NodeProto::of("Attention", "", &[], &["y"], vec![]).in_domain("com.microsoft");
        assert_eq!(
            (other.operator(), other.label()),
            ("com.microsoft.Attention".to_owned(), "Attention -> y".to_owned())
        );
    }

    #[test]
    fn operator_sets_are_imported_once() {
        let mut model = ModelProto::default();
        model.import("", 17);
        model.import("ai.onnx", 18);
        model.import("com.microsoft", 1);
        assert_eq!((model.opset(""), model.opset("com.microsoft"), model.opset_import.len()), (Some(17), Some(1), 2));
    }
}
