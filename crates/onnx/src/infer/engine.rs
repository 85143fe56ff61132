//! The walk over a graph: each node's rule, its element types, and what the file says where these know nothing.
//!
//! Input: a model and the shapes of its inputs. Output: [`Inferred`]. Deliberately absent: what operators do.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::annotation::{Annotations, Trust};
use super::demand::{self, Demand};
use super::shape::Shape;
use super::site::Site;
use super::{Inferred, Value, control, dispatch, element};
use crate::functions::{self, DEEPEST, Key};
use crate::operators::NEWEST_OPSET;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto};
use crate::resolve::ResolvedTensor;

/// Nodes that are walked, those of a body as often as it is: a call may give its function a graph several times, and that
/// graph calls functions again.
const MOST_NODES: u64 = 4 * functions::MOST_NODES;

/// Values by name.
pub(super) type Values = HashMap<String, Value>;

/// The names that a node may use: those of its graph, then those of the graphs around it.
pub(super) struct Scope<'a> {
    values: &'a Values,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).or_else(|| self.outer?.value(name))
    }
}

/// What a node gives: its outputs, and what is known inside its graphs.
#[derive(Default)]
pub(super) struct Found {
    pub(super) outputs: Vec<Value>,
    pub(super) inner: Vec<(usize, Inferred)>,
}

/// What all graphs of a model share.
struct Shared<'m> {
    functions: HashMap<Key<'m>, &'m FunctionProto>,
    trust: Trust,
    /// Nodes that were walked so far.
    walked: Cell<u64>,
    /// Demands that are not met, where they are asked for.
    unmet: Option<RefCell<Vec<Demand>>>,
}

/// Where the walk is.
pub(super) struct Engine<'m> {
    shared: &'m Shared<'m>,
    opset: i64,
    depth: usize,
    /// The nodes around this graph, by their indices.
    path: Vec<usize>,
    /// Every node runs for any input: false inside branches and loop bodies.
    is_certain: bool,
}

/// Infers the main graph.
pub(super) fn run(model: &ModelProto, inputs: &[ResolvedTensor]) -> Inferred {
    walk(model, inputs, None).0
}

/// The demands of nodes that these inputs do not meet, in the order of the nodes. What the file says of values that are not
/// inputs is left out: it may be of other inputs.
pub(super) fn unmet(model: &ModelProto, inputs: &[ResolvedTensor]) -> Vec<Demand> {
    walk(model, inputs, Some(RefCell::default())).1
}

fn walk(model: &ModelProto, inputs: &[ResolvedTensor], unmet: Option<RefCell<Vec<Demand>>>) -> (Inferred, Vec<Demand>) {
    let Some(graph) = model.graph.as_ref() else { return Default::default() };
    let functions = model.functions.iter().map(|function| (function.key(), function)).collect();
    let opset = model.opset("").unwrap_or(NEWEST_OPSET);
    let given = inputs.iter().map(|tensor| (tensor.name.clone(), given(tensor)));
    let shared = Shared { functions, trust: Trust::of(graph, inputs), walked: Cell::new(0), unmet };
    let engine = Engine { shared: &shared, opset, depth: 0, path: Vec::new(), is_certain: true };
    let inferred = engine.graph(graph, given.collect(), None);
    (inferred, shared.unmet.map(RefCell::into_inner).unwrap_or_default())
}

/// What is known of an input: its shape, and its only element where one integer is possible. Of more elements, such as a
/// mask's, nothing is computed that a node would then have as a constant.
fn given(tensor: &ResolvedTensor) -> Value {
    let shape: Shape = tensor.shape.iter().copied().map(Some).collect();
    let value = Value::of(Some(tensor.element.clone()), Some(shape));
    let only = tensor.only_integer().filter(|_| !tensor.element.is_float());
    let only = only.filter(|_| value.elements() == Some(1));
    value.with_integers(only.map(|integer| vec![Some(integer)]))
}

impl<'m> Engine<'m> {
    /// A level further down, in a graph of the same operator set; `None` where it is too deep to be meant.
    pub(super) fn deeper(&self) -> Option<Engine<'m>> {
        let depth = self.depth + 1;
        let path = self.path.clone();
        (depth < DEEPEST).then_some(Engine { shared: self.shared, opset: self.opset, depth, path, is_certain: false })
    }

    /// How many graphs stand around this one.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether so many nodes more may be walked, which they are then.
    fn has_room(&self, nodes: u64) -> bool {
        let walked = self.shared.walked.get().saturating_add(nodes);
        let has_room = walked <= MOST_NODES;
        if has_room {
            self.shared.walked.set(walked);
        }
        has_room
    }

    /// Everything in a graph, from what is `given` of its inputs.
    pub(super) fn graph(&self, graph: &GraphProto, given: Values, outer: Option<&Scope<'_>>) -> Inferred {
        let annotations = match &self.shared.unmet {
            None => Annotations::of(graph.value_info.iter().chain(&graph.output), &self.shared.trust),
            Some(_) => Annotations::none(&self.shared.trust),
        };
        let mut values = given;
        for input in &graph.input {
            let value = values.entry(input.name().to_owned()).or_default();
            self.shared.trust.fill_input(value, input);
        }
        for tensor in &graph.initializer {
            values.insert(tensor.name().to_owned(), Value::of_tensor(tensor));
        }
        for sparse in &graph.sparse_initializer {
            values.insert(sparse.name().to_owned(), of_sparse(sparse));
        }
        self.nodes(&graph.node, values, &annotations, outer)
    }

    fn nodes(
        &self,
        nodes: &[NodeProto],
        values: Values,
        annotations: &Annotations<'_>,
        outer: Option<&Scope<'_>>,
    ) -> Inferred {
        let mut inferred = Inferred { values, inner: HashMap::new() };
        for (index, node) in nodes.iter().enumerate() {
            if !self.has_room(1) {
                break;
            }
            let found = self.node(index, node, &Scope { values: &inferred.values, outer });
            inferred.inner.extend(found.inner.into_iter().map(|(graph, inner)| ((index, graph), inner)));
            let rest = std::iter::repeat_with(Value::default);
            for (name, mut value) in node.output.iter().zip(found.outputs.into_iter().chain(rest)) {
                if !name.is_empty() {
                    annotations.fill(name, &mut value);
                    inferred.values.insert(name.clone(), value);
                }
            }
        }
        inferred
    }

    fn node(&self, index: usize, node: &NodeProto, scope: &Scope<'_>) -> Found {
        let inputs = node.input.iter().map(|name| if name.is_empty() { None } else { scope.value(name) }).collect();
        let site = Site::new(node, self.opset, inputs);
        if let Some(function) = self.shared.functions.get(&node.called()) {
            return self.call(index, function, &site);
        }
        if let Some(unmet) = self.shared.unmet.as_ref().filter(|_| self.is_certain) {
            let path = [self.path.as_slice(), &[index]].concat();
            unmet.borrow_mut().extend(demand::unmet(&site, &path));
        }
        let mut found = match control::infer(self, &site, scope) {
            Some(found) => found,
            None => Found { outputs: dispatch::outputs(&site).unwrap_or_default(), inner: Vec::new() },
        };
        found.outputs.resize(node.output.len(), Value::default());
        element::complete(&site, &mut found.outputs);
        found
    }

    /// The nodes of a function of the model with the inputs and attributes of one call.
    fn call(&self, index: usize, function: &FunctionProto, site: &Site<'_>) -> Found {
        let Some(mut engine) = self.deeper().filter(|_| self.has_room(given_nodes(function, site.node))) else {
            return Found::default();
        };
        engine.is_certain = self.is_certain;
        engine.path.push(index);
        if let Some(import) = function.opset_import.iter().find(|import| matches!(import.domain(), "" | "ai.onnx")) {
            engine.opset = import.version();
        }
        let given = function.input.iter().enumerate();
        let given = given.map(|(index, name)| (name.clone(), site.value(index).cloned().unwrap_or_default())).collect();
        let nodes: Vec<NodeProto> = function.node.iter().map(|node| bind(node, function, site.node)).collect();
        // Its annotations hold for any call, so they say nothing of sizes.
        let inferred = engine.nodes(&nodes, given, &Annotations::none(&engine.shared.trust), None);
        let outputs = function.output.iter().map(|name| inferred.value(name).cloned().unwrap_or_default()).collect();
        Found { outputs, inner: vec![(0, inferred)] }
    }
}

/// Nodes in the graphs that a call gives its function, as often as that has them.
fn given_nodes(function: &FunctionProto, call: &NodeProto) -> u64 {
    let mut of_call = 0_u64;
    call.with_inner(&mut |_| of_call += 1);
    let attributes = function.node.iter().flat_map(|node| &node.attribute);
    of_call.saturating_mul(attributes.filter(|attribute| !attribute.ref_attr_name().is_empty()).count() as u64)
}

/// A node of a function with references to attributes replaced by those of the call.
fn bind(node: &NodeProto, function: &FunctionProto, call: &NodeProto) -> NodeProto {
    let mut bound = node.clone();
    for attribute in bound.attribute.iter_mut().filter(|attribute| attribute.ref_attr_name.is_some()) {
        let (name, asked) = (attribute.name().to_owned(), attribute.ref_attr_name());
        let default = || function.attribute_proto.iter().find(|default| default.name() == asked);
        match call.named_attribute(asked).or_else(default) {
            Some(given) => {
                *attribute = given.clone();
                attribute.name = Some(name);
            }
            // An attribute that the call leaves out is left out.
            None => attribute.name = None,
        }
    }
    bound
}

fn of_sparse(sparse: &SparseTensorProto) -> Value {
    let shape = sparse.dims.iter().map(|size| u64::try_from(*size).ok()).collect();
    Value::of(Some(sparse.element()), Some(shape))
}
