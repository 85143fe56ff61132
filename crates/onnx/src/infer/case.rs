//! One node and what is expected of it, for the tests of rules.

use super::{Value, infer};
use crate::proto::{AttributeProto, ModelProto, NodeProto, TensorProto};
use crate::sample::{model_of, tensors};

/// A node whose inputs are inputs of the graph and constants.
pub(super) struct Case {
    node: NodeProto,
    inputs: String,
    weights: Vec<TensorProto>,
    opset: i64,
}

/// A node with these inputs: `x[1,3,?] ids:int64[N]`.
pub(super) fn case(operator: &str, inputs: &str) -> Case {
    let names: Vec<String> = tensors(inputs).into_iter().map(|tensor| tensor.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = NodeProto::of(operator, "", &names, &["o0"], vec![]);
    Case { node, inputs: inputs.to_owned(), weights: vec![], opset: 17 }
}

impl Case {
    pub(super) fn opset(mut self, opset: i64) -> Self {
        self.opset = opset;
        self
    }

    pub(super) fn domain(mut self, domain: &str) -> Self {
        self.node.domain = Some(domain.to_owned());
        self
    }

    pub(super) fn outputs(mut self, count: usize) -> Self {
        self.node.output = (0..count).map(|index| format!("o{index}")).collect();
        self
    }

    fn with(mut self, attribute: AttributeProto) -> Self {
        self.node.attribute.push(attribute);
        self
    }

    pub(super) fn int(self, name: &str, value: i64) -> Self {
        self.with(AttributeProto::of_int(name, value))
    }

    pub(super) fn ints(self, name: &str, values: &[i64]) -> Self {
        self.with(AttributeProto::of_ints(name, values))
    }

    pub(super) fn text(self, name: &str, value: &str) -> Self {
        self.with(AttributeProto::of_text(name, value))
    }

    pub(super) fn tensor(self, name: &str, value: TensorProto) -> Self {
        self.with(AttributeProto::of_tensor(name, value))
    }

    /// One more input that is left out.
    pub(super) fn none(mut self) -> Self {
        self.node.input.push(String::new());
        self
    }

    /// One more input that is stored in the file.
    pub(super) fn weight(mut self, mut tensor: TensorProto) -> Self {
        let name = format!("w{}", self.weights.len());
        self.node.input.push(name.clone());
        tensor.name = Some(name);
        self.weights.push(tensor);
        self
    }

    /// One more input, a constant list.
    pub(super) fn list(self, values: &[i64]) -> Self {
        self.weight(TensorProto::of_integers("", &[values.len() as u64], values))
    }

    /// One more input, a constant number.
    pub(super) fn scalar(self, value: i64) -> Self {
        self.weight(TensorProto::of_integers("", &[], &[value]))
    }

    /// One more input, constant numbers with a fraction.
    pub(super) fn floats(self, values: &[f32]) -> Self {
        self.weight(TensorProto::of_floats("", &[values.len() as u64], values))
    }

    pub(super) fn model(self) -> ModelProto {
        model_of(self.opset, &self.inputs, "", self.weights, vec![self.node])
    }

    /// Compares what is known of the outputs: `float32 [1, ?]`, `int64 [2] = 3, ?`, one after the other with `;`.
    #[track_caller]
    pub(super) fn gives(self, expected: &str) {
        let outputs = self.node.output.clone();
        let inferred = infer(&self.model(), &[]);
        let texts: Vec<String> = outputs.iter().filter_map(|name| inferred.value(name)).map(text_of).collect();
        assert_eq!(texts.join("; "), expected);
    }
}

/// A value as tests write it.
pub(super) fn text_of(value: &Value) -> String {
    fn list<T: ToString>(elements: &[Option<T>]) -> String {
        let texts = elements.iter().map(|element| element.as_ref().map_or("?".to_owned(), T::to_string));
        texts.collect::<Vec<_>>().join(", ")
    }
    let element = value.element.as_ref().map_or("?".to_owned(), ToString::to_string);
    let shape = value.shape.as_ref().map_or("[...]".to_owned(), |shape| format!("[{}]", list(shape)));
    let content = value.integers.as_deref().map(list).or_else(|| value.floats.as_deref().map(list));
    content.map_or_else(|| format!("{element} {shape}"), |content| format!("{element} {shape} = {content}"))
}
