//! Element types, shapes and small constants of every value in a model's graph.
//!
//! Input: a model, and the shapes that an experiment gives its inputs. Output: an [`Inferred`], which says what is known
//! of every value, with the graphs inside nodes. Deliberately absent: judging the graph (`graph_check` does), running
//! it, and symbols; a size is a number or unknown. It never fails: what a rule does not know is `None`.
//!
//! The engine walks the nodes in the order of the file. A node's rule gives shapes and folds small integers, so that the
//! `Shape`, `Gather`, `Concat`, `Reshape` chains of exported transformers resolve; its element types come from the table
//! of operators. What the file says of values (`value_info`) fills the gaps.

mod annotation;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod case;
mod constant;
mod control;
mod convolution;
mod create;
mod demand;
mod dispatch;
mod element;
mod elements;
mod elementwise;
mod engine;
mod evaluate;
mod fold;
mod layout;
mod matrix;
mod microsoft;
mod normalize;
mod recurrent;
mod reduce;
mod resize;
mod select;
mod shape;
mod site;
mod slice;
mod source_indices;
mod spectral;
mod value;

use std::collections::HashMap;

use super::proto::ModelProto;
use super::resolve::ResolvedTensor;

pub(super) use control::{runs, taken};
pub(super) use demand::{Demand, Wants};
pub(crate) use elements::constant_of;
pub(crate) use evaluate::{Evaluated, evaluate};
pub(super) use matrix::Equation;
pub(crate) use value::Value;

/// What is known of the values of one graph, by name, and of those of the graphs inside its nodes.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    values: HashMap<String, Value>,
    inner: HashMap<(usize, usize), Inferred>,
}

impl Inferred {
    /// What is known of a value of this graph; values of the graph around it are not here.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The values of a graph inside a node: the node's index in the graph, the graph's among `NodeProto::graphs`. For a
    /// node that calls one of the model's functions, those of the function's nodes stand at graph 0.
    pub(crate) fn inner(&self, node: usize, graph: usize) -> Option<&Inferred> {
        self.inner.get(&(node, graph))
    }

    /// Every value of this graph with its name, in no order.
    #[cfg(test)]
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// What is known of every value of the model.
///
/// `inputs` gives sizes to inputs of the graph; those that it leaves out are as the file says.
pub fn infer(model: &ModelProto, inputs: &[ResolvedTensor]) -> Inferred {
    engine::run(model, inputs)
}

/// The demands of the model's nodes that inputs of these shapes do not meet. None where a size is not known.
pub(super) fn unmet(model: &ModelProto, inputs: &[ResolvedTensor]) -> Vec<Demand> {
    engine::unmet(model, inputs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::case::text_of;
    use super::*;
    use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto};
    use crate::sample::{model_of, value_infos};
    use crate::{ElementType, load, resolve_inputs};

    fn node(operator: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
        NodeProto::of(operator, "", inputs, outputs, attribute)
    }

    fn given(name: &str, shape: &[u64]) -> ResolvedTensor {
        ResolvedTensor {
            name: name.to_owned(),
            element: ElementType::Float32,
            shape: shape.to_vec(),
            integers: None,
            is_counted: false,
        }
    }

    #[track_caller]
    fn check(inferred: &Inferred, name: &str, expected: &str) {
        assert_eq!(inferred.value(name).map(text_of).as_deref(), Some(expected), "{name}");
    }

    /// Heads taken apart and joined again, as exporters of transformers write it.
    fn heads() -> ModelProto {
        let list = |name: &str, values: &[i64]| TensorProto::of_integers(name, &[values.len() as u64], values);
        let weights = vec![list("zero", &[0]), list("two", &[2]), list("heads", &[4, -1]), list("all", &[-1])];
        let nodes = vec![
            node("Shape", &["x"], &["shape"], vec![]),
            node("Slice", &["shape", "zero", "two"], &["outer"], vec![]),
            node("Concat", &["outer", "heads"], &["apart"], vec![AttributeProto::of_int("axis", 0)]),
            node("Reshape", &["x", "apart"], &["a"], vec![]),
            node("Transpose", &["a"], &["b"], vec![AttributeProto::of_ints("perm", &[0, 2, 1, 3])]),
            node("Concat", &["outer", "all"], &["joined"], vec![AttributeProto::of_int("axis", 0)]),
            node("Reshape", &["a", "joined"], &["y"], vec![]),
        ];
        model_of(17, "x[batch,length,64]", "", weights, nodes)
    }

    #[test]
    fn shapes_that_are_computed_resolve_for_given_inputs() {
        let inferred = infer(&heads(), &[given("x", &[2, 7, 64])]);
        check(&inferred, "apart", "int64 [4] = 2, 7, 4, -1");
        check(&inferred, "b", "float32 [2, 4, 7, 16]");
        check(&inferred, "y", "float32 [2, 7, 64]");
        check(&infer(&heads(), &[]), "b", "float32 [?, 4, ?, ?]");
    }

    #[test]
    fn what_the_file_says_fills_the_gaps() {
        let unknown = node("Mystery", &["x"], &["y"], vec![]).in_domain("mine");
        let nodes = vec![unknown, node("Relu", &["y"], &["z"], vec![])];
        let mut model = model_of(17, "x[batch,3]", "", vec![], nodes);
        model.graph.as_mut().unwrap().value_info = value_infos("y:float16[batch,5,1]");
        check(&infer(&model, &[]), "z", "float16 [?, 5, 1]");
        check(&infer(&model, &[given("x", &[8, 3])]), "z", "float16 [8, 5, ?]");
    }

    fn graph(inputs: &str, nodes: Vec<NodeProto>, outputs: &str) -> GraphProto {
        GraphProto { node: nodes, input: value_infos(inputs), output: value_infos(outputs), ..Default::default() }
    }

    #[test]
    fn branches_agree_or_nothing_is_known() {
        let branch = |attribute: &str, operator: &str| {
            AttributeProto::of_graph(attribute, graph("", vec![node(operator, &["x"], &["i"], vec![])], "i[...]"))
        };
        let both = vec![branch("then_branch", "Relu"), branch("else_branch", "GlobalMaxPool")];
        let model = |weights: Vec<TensorProto>| {
            model_of(17, "c:bool[] x[2,3,5]", "", weights, vec![node("If", &["c"], &["y"], both.clone())])
        };
        let inferred = infer(&model(vec![]), &[]);
        check(&inferred, "y", "float32 [2, 3, ?]");
        check(inferred.inner(0, 1).unwrap(), "i", "float32 [2, 3, 1]");
        let truth = TensorProto::of_bytes("c", &ElementType::Bool, &[], vec![0]);
        check(&infer(&model(vec![truth]), &[]), "y", "float32 [2, 3, 1]");
    }

    /// A loop of four runs that carries `a` and stacks it.
    fn repeated(step: NodeProto) -> Inferred {
        let nodes = vec![node("Identity", &["c"], &["go"], vec![]), step];
        let body = graph("i:int64[] c:bool[] a[...]", nodes, "go:bool[] b[...] b[...]");
        let truth = TensorProto::of_bytes("t", &ElementType::Bool, &[], vec![1]);
        let weights = vec![TensorProto::of_integers("n", &[], &[4]), truth];
        let attributes = vec![AttributeProto::of_graph("body", body)];
        let nodes = vec![node("Loop", &["n", "t", "x"], &["last", "all"], attributes)];
        infer(&model_of(17, "x[2,3]", "", weights, nodes), &[])
    }

    #[test]
    fn what_is_known_of_a_loop_holds_for_every_run() {
        let same = repeated(node("Relu", &["a"], &["b"], vec![]));
        check(&same, "last", "float32 [2, 3]");
        check(&same, "all", "float32 [4, 2, 3]");
        let growing = repeated(node("Concat", &["a", "x"], &["b"], vec![AttributeProto::of_int("axis", 0)]));
        check(&growing, "last", "float32 [?, 3]");
        let deeper = repeated(node("Unsqueeze", &["a", "n"], &["b"], vec![]));
        check(&deeper, "last", "float32 [...]");
    }

    #[test]
    fn a_scan_takes_sequences_apart_and_stacks_results() {
        let nodes = vec![node("Add", &["s", "e"], &["t"], vec![]), node("Relu", &["t"], &["o"], vec![])];
        let body = AttributeProto::of_graph("body", graph("s[...] e[...]", nodes, "t[...] o[...]"));
        let attributes = vec![body, AttributeProto::of_int("num_scan_inputs", 1)];
        let scan = node("Scan", &["x", "y"], &["last", "all"], attributes);
        let inferred = infer(&model_of(17, "x[3] y[9,3]", "", vec![], vec![scan]), &[]);
        check(&inferred, "last", "float32 [3]");
        check(&inferred, "all", "float32 [9, 3]");
    }

    #[test]
    fn functions_are_followed_with_the_attributes_of_the_call() {
        let reference = AttributeProto {
            name: Some("axis".to_owned()),
            ref_attr_name: Some("along".to_owned()),
            ..Default::default()
        };
        let function = FunctionProto {
            name: Some("Join".to_owned()),
            domain: Some("mine".to_owned()),
            input: vec!["a".to_owned()],
            output: vec!["b".to_owned()],
            node: vec![node("Concat", &["a", "a"], &["b"], vec![reference])],
            ..Default::default()
        };
        let call = node("Join", &["x"], &["y"], vec![AttributeProto::of_int("along", 1)]).in_domain("mine");
        let mut model = model_of(17, "x[2,3]", "", vec![], vec![call]);
        model.functions.push(function);
        let inferred = infer(&model, &[]);
        check(&inferred, "y", "float32 [2, 6]");
        check(inferred.inner(0, 0).unwrap(), "a", "float32 [2, 3]");
        // A function that calls itself is no endless walk.
        model.functions[0].node[0] = node("Join", &["a"], &["b"], vec![]).in_domain("mine");
        check(&infer(&model, &[]), "y", "? [...]");
    }

    #[test]
    fn every_value_of_a_committed_model_is_known_for_a_batch() {
        for (name, input) in [("digits-cnn", "image"), ("digits-mlp", "image")] {
            let path = format!("{}/../../experiments/models/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
            let model = load(std::path::Path::new(&path)).unwrap();
            let header = crate::read_header(std::path::Path::new(&path)).unwrap();
            let point = crate::sample::point(&[("batch", 7)], &[]);
            let inputs = resolve_inputs(&header.signature, &point).unwrap().tensors;
            assert_eq!(inputs[0].name, input);
            let inferred = infer(&model, &inputs);
            for (value, known) in inferred.values() {
                assert!(known.element.is_some() && known.sizes().is_some(), "{name}: {value} is {known:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_models_do_not_panic(
            seed in 0_usize..3,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            sizes in prop::collection::vec(prop_oneof![Just(0), 1_u64..9, any::<u64>()], 0..5),
        ) {
            let path = format!("{}/../../experiments/models/digits-cnn.onnx", env!("CARGO_MANIFEST_DIR"));
            let mut model = match seed {
                0 => heads(),
                1 => crate::sample::model(),
                _ => load(std::path::Path::new(&path)).unwrap(),
            };
            // Weights are most of the bytes, and changing them would change nothing.
            model.each_tensor_mut(&mut |tensor| if tensor.dims.iter().product::<i64>() > 64 { tensor.raw_data = None });
            let mut bytes = model.encode_to_vec();
            for (position, byte) in changes {
                let at = position.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(model) = ModelProto::decode(bytes.as_slice()) {
                let inferred = infer(&model, &[given("x", &sizes), given("image", &sizes)]);
                let _any = crate::cost::cost(&model, &inferred);
                let _either = crate::check_graph(&model);
            }
        }

        #[test]
        fn nodes_with_any_numbers_do_not_panic(
            operator in any::<prop::sample::Index>(),
            is_foreign in any::<bool>(),
            shapes in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0), 1_u64..9, any::<u64>()], 0..6), 0..5),
            numbers in prop::collection::vec(prop_oneof![-3_i64..9, any::<i64>()], 0..6),
            attributes in prop::collection::vec((0..ATTRIBUTES.len(), prop::collection::vec(prop_oneof![-3_i64..9, any::<i64>()], 0..6)), 0..5),
            opset in 1_i64..24,
        ) {
            let names = crate::operators::operator_names(opset);
            let name = names[operator.index(names.len())];
            let inputs: Vec<ResolvedTensor> =
                shapes.iter().enumerate().map(|(index, shape)| given(&format!("x{index}"), shape)).collect();
            let list = TensorProto::of_integers("list", &[numbers.len() as u64], &numbers);
            let scales: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
            let scales = TensorProto::of_floats("scales", &[scales.len() as u64], &scales);
            let attributes = attributes.into_iter().map(|(name, numbers)| {
                let mut attribute = AttributeProto::of_ints(ATTRIBUTES[name], &numbers);
                attribute.i = numbers.first().copied();
                attribute
            });
            let mut given: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
            given.extend(["list", "list", "scales", "list"]);
            // In any order, so that lists stand where shapes are expected and the other way round.
            let turn = numbers.len() % given.len();
            given.rotate_left(turn);
            let mut node = node(name, &given, &["o", "p"], attributes.collect());
            node.domain = is_foreign.then(|| "com.microsoft".to_owned());
            let model = model_of(opset, "", "", vec![list, scales], vec![node]);
            let inferred = infer(&model, &inputs);
            let _any = crate::cost::cost(&model, &inferred);
        }
    }

    /// Names of attributes that rules read.
    const ATTRIBUTES: [&str; 18] = [
        "axis",
        "axes",
        "perm",
        "pads",
        "strides",
        "dilations",
        "kernel_shape",
        "group",
        "output_padding",
        "output_shape",
        "split",
        "starts",
        "ends",
        "shape",
        "blocksize",
        "keepdims",
        "batch_dims",
        "ceil_mode",
    ];
}
