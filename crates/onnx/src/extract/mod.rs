//! The smallest model with one node of a model: what a report about that node needs.
//!
//! Input: a model with its weights, the shapes of its inputs, and a node's name, as the file or a profile of ONNX Runtime has
//! it. Output: an [`Extracted`]: the node, or the few that ONNX Runtime executes as one, with their weights; what else they
//! read are inputs of the type and shape that it has in the model. Deliberately absent: values for these inputs.
//!
//! Weights that nodes make of constants alone keep these nodes. What follows from the shapes of the inputs, such as the
//! sizes that a `Reshape` reads, becomes a constant where something else is left to feed, so that random inputs will do.

mod cut;
mod executed;
mod levels;

use super::infer::infer;
use super::precision::inline_functions;
use super::proto::{ModelProto, NodeProto};
use super::resolve::ResolvedTensor;
use cut::Cut;
use executed::{Called, fused, named};
use levels::{Level, levels};
use reading::nearest::nearest;

/// A node by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// The model.
    pub model: ModelProto,
    /// Its nodes but for those that make weights, as operator and name.
    pub nodes: Vec<String>,
}

/// Why a node cannot be taken out of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExtractError {
    #[error("there is no node `{name}`")]
    NoNode { name: String, nearest: Option<String> },
    /// The smaller model has to say more of a value than the file does, or than follows from the shapes of the inputs.
    #[error("the {what} of `{value}`, which `{node}` {}, is not known", if *.is_read { "reads" } else { "makes" })]
    Unknown {
        /// Element type or shape.
        what: &'static str,
        value: String,
        node: String,
        is_read: bool,
    },
}

/// Takes a node out of a model whose inputs have these shapes. The operator, where it is given, is what ONNX Runtime
/// executes the node as: a `Conv` may keep its name with the activation in it (`FusedConv`).
///
/// # Errors
///
/// No such node, and values of which not enough is known.
pub fn extract(
    model: &ModelProto,
    inputs: &[ResolvedTensor],
    name: &str,
    operator: Option<&str>,
) -> Result<Extracted, ExtractError> {
    taken(model, inputs, Called { name, operator: operator.unwrap_or_default() }, true)
}

/// Takes a node out of a model, with its own functions as they are, or out of a copy in which they are
/// inlined; large weights are shared with the copy.
fn taken(
    model: &ModelProto,
    inputs: &[ResolvedTensor],
    called: Called<'_>,
    as_it_is: bool,
) -> Result<Extracted, ExtractError> {
    let inferred = infer(model, inputs);
    let all = levels(model, &inferred);
    let picked = match named(&all, called, as_it_is) {
        None if as_it_is && !model.functions.is_empty() => {
            let mut model = model.clone();
            inline_functions(&mut model);
            return taken(&model, inputs, called, false);
        }
        picked => picked.or_else(|| fused(&all, called)).ok_or_else(|| no_node(&all, called.name))?,
    };
    Cut::of(model, &all, &picked).extracted()
}

fn no_node(levels: &[Level<'_>], name: &str) -> ExtractError {
    let nodes: Vec<String> = levels.iter().flat_map(|level| &level.graph.node).map(NodeProto::label).collect();
    let nearest = nearest(name, nodes.iter().map(String::as_str)).map(str::to_owned);
    ExtractError::NoNode { name: name.to_owned(), nearest }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::infer::Inferred;
    use crate::proto::{AttributeProto, FunctionProto, GraphProto, TensorProto, ValueInfoProto};
    use crate::sample::{model_of, point, value_infos};
    use crate::{Dimension, Signature, TensorType, check_graph, resolve_inputs, zoo};

    fn node(operator: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        NodeProto::of(operator, name, inputs, outputs, vec![])
    }

    fn texts(values: &[ValueInfoProto]) -> String {
        values.iter().map(|value| TensorType::from(value).to_string()).collect::<Vec<_>>().join(", ")
    }

    /// What a node by itself takes, has and gives: `x: float32 [2] | w | Relu -> y: float32 [2]`.
    #[track_caller]
    fn alone(model: &ModelProto, name: &str) -> String {
        let extracted = extract(model, &[], name, None).unwrap().model;
        assert_eq!(check_graph(&extracted), Ok(()));
        let graph = extracted.graph.unwrap();
        let weights: Vec<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        let nodes: Vec<&str> = graph.node.iter().map(|node| node.op_type()).collect();
        let (inputs, outputs) = (texts(&graph.input), texts(&graph.output));
        format!("{inputs} | {} | {} -> {outputs}", weights.join(" "), nodes.join(" "))
    }

    fn weights() -> Vec<TensorProto> {
        vec![TensorProto::of_floats("w", &[3, 5], &[0.5; 15]), TensorProto::of_integers("sizes", &[2], &[5, 3])]
    }

    #[test]
    fn a_node_keeps_its_weights_and_those_that_are_made_of_weights() {
        let nodes = vec![
            node("Relu", "before", &["x"], &["h"]),
            node("Transpose", "turn", &["v"], &["t"]),
            node("Reshape", "shape", &["w", "sizes"], &["v"]),
            node("MatMul", "product", &["h", "t"], &["y"]),
        ];
        let mut model = model_of(17, "x[2,3]", "y[2,5]", weights(), nodes);
        model.graph.as_mut().unwrap().node.swap(1, 2);
        let expected = "h: float32 [2, 3] | w sizes | Reshape Transpose MatMul -> y: float32 [2, 5]";
        assert_eq!(alone(&model, "product"), expected);
        assert_eq!(extract(&model, &[], "y", None).unwrap().nodes, ["MatMul `product`"]);
        assert_eq!(alone(&model, "before"), "x: float32 [2, 3] |  | Relu -> h: float32 [2, 3]");
        // Before version 4 of the format every weight is an input as well.
        model.ir_version = Some(3);
        assert!(
            alone(&model, "product").starts_with("h: float32 [2, 3], w: float32 [3, 5], sizes: int64 [2] | w sizes")
        );
        // A random number is no weight.
        let noise = node("RandomNormal", "noise", &[], &["n"]);
        let noise = NodeProto { attribute: vec![AttributeProto::of_ints("shape", &[2, 3])], ..noise };
        let model = model_of(17, "x[2,3]", "y[2,3]", vec![], vec![noise, node("Add", "sum", &["x", "n"], &["y"])]);
        assert!(alone(&model, "sum").starts_with("x: float32 [2, 3], n: float32 [2, 3] |  | Add"));
    }

    #[test]
    fn what_follows_from_the_shapes_is_a_constant_where_something_else_is_fed() {
        let nodes = vec![
            node("Shape", "shape", &["z"], &["s"]),
            node("Reshape", "reshape", &["x", "s"], &["y"]),
            node("ConstantOfShape", "zeros", &["s"], &["o"]),
        ];
        let model = model_of(17, "x[2,3] z[3,2]", "y[3,2]", vec![], nodes);
        assert_eq!(alone(&model, "reshape"), "x: float32 [2, 3] | s | Reshape -> y: float32 [3, 2]");
        assert_eq!(alone(&model, "zeros"), "s: int64 [2] |  | ConstantOfShape -> o: float32 [3, 2]");
        let made = extract(&model, &[], "reshape", None).unwrap().model.graph.unwrap();
        assert_eq!(made.initializer, [TensorProto::of_integers("s", &[2], &[3, 2])]);
    }

    fn with_graph(operator: &str, name: &str, inputs: &[&str], outputs: &[&str], graph: GraphProto) -> NodeProto {
        NodeProto::of(operator, name, inputs, outputs, vec![AttributeProto::of_graph("body", graph)])
    }

    #[test]
    fn a_node_of_a_body_reads_what_is_around_it() {
        let body = GraphProto {
            name: Some("body".to_owned()),
            node: vec![
                node("Identity", "", &["c"], &["go"]),
                node("Identity", "copy", &["w"], &["v"]),
                node("MatMul", "copy_2", &["a", "v"], &["m"]),
                node("Add", "", &["m", "h"], &["b"]),
            ],
            input: value_infos("i:int64[] c:bool[] a[2,3]"),
            output: value_infos("go:bool[] b[2,3]"),
            ..Default::default()
        };
        let nodes = vec![
            node("Relu", "relu", &["x"], &["h"]),
            node("Identity", "copy_2", &["weight"], &["w"]),
            with_graph("Loop", "loop", &["n", "", "x"], &["y"], body),
        ];
        let weight = TensorProto::of_floats("weight", &[3, 3], &[0.5; 9]);
        let model = model_of(17, "x[2,3] n:int64[]", "y[2,3]", vec![weight], nodes);
        let expected = "m: float32 [2, 3], h: float32 [2, 3] |  | Add -> b: float32 [2, 3]";
        for name in ["loop/Add_3", "Add_3", "Add -> b", "b"] {
            assert_eq!(alone(&model, name), expected);
        }
        let product = "a: float32 [2, 3] | weight | Identity Identity MatMul -> m: float32 [2, 3]";
        assert_eq!(alone(&model, "loop/copy_2"), product);
        assert_eq!(alone(&model, "copy_2"), " | weight | Identity -> w: float32 [3, 3]");
        let expected =
            "n: int64 [], x: float32 [2, 3], h: float32 [2, 3] | weight | Identity Loop -> y: float32 [2, 3]";
        assert_eq!(alone(&model, "loop"), expected);
    }

    #[test]
    fn what_is_executed_as_one_in_a_body_may_have_its_weights_around_it() {
        let body = GraphProto {
            node: vec![
                node("Identity", "", &["c"], &["go"]),
                node("MatMul", "m", &["a", "w"], &["p"]),
                node("Add", "bias", &["p", "v"], &["b"]),
            ],
            input: value_infos("i:int64[] c:bool[] a[2,3]"),
            output: value_infos("go:bool[] b[2,3]"),
            ..Default::default()
        };
        let weights =
            vec![TensorProto::of_floats("w", &[3, 3], &[0.5; 9]), TensorProto::of_floats("v", &[3], &[0.5; 3])];
        let nodes = vec![with_graph("Loop", "loop", &["n", "", "x"], &["y"], body)];
        let model = model_of(17, "x[2,3] n:int64[]", "y[2,3]", weights, nodes);
        let expected = "a: float32 [2, 3] | w v | MatMul Add -> b: float32 [2, 3]";
        assert_eq!(alone(&model, "loop/m/MatMulAddFusion"), expected);
    }

    #[test]
    fn of_nodes_of_one_name_in_two_branches_the_operator_tells_the_one() {
        let branch = |operator: &str, output: &str| GraphProto {
            node: vec![node(operator, "ln", &["x"], &[output])],
            output: value_infos(&format!("{output}[2]")),
            ..Default::default()
        };
        let branches = [("then_branch", branch("Abs", "t")), ("else_branch", branch("Neg", "e"))];
        let branches = branches.map(|(name, graph)| AttributeProto::of_graph(name, graph)).to_vec();
        let model =
            model_of(17, "x[2] c:bool[]", "y[2]", vec![], vec![NodeProto::of("If", "if", &["c"], &["y"], branches)]);
        for operator in ["Abs", "Neg"] {
            let found = extract(&model, &[], "if/ln", Some(operator)).unwrap();
            assert_eq!(found.nodes, [format!("{operator} `ln`")]);
        }
    }

    #[test]
    fn a_call_keeps_its_function_and_a_node_in_a_function_is_found() {
        let function = |name: &str, node: NodeProto| FunctionProto {
            name: Some(name.to_owned()),
            domain: Some("own".to_owned()),
            input: vec!["a".to_owned()],
            output: vec!["b".to_owned()],
            node: vec![node],
            opset_import: model_of(17, "", "", vec![], vec![]).opset_import,
            ..Default::default()
        };
        let call = node("Half", "call", &["x"], &["y"]).in_domain("own");
        let mut model = model_of(17, "x[2]", "y[2] z[2]", vec![], vec![call, node("Abs", "abs", &["y"], &["z"])]);
        model.import("own", 1);
        model.functions = vec![
            function("Half", node("Neg", "neg", &["a"], &["b"])),
            function("Other", node("Exp", "", &["a"], &["b"])),
        ];
        let call = extract(&model, &[], "call", None).unwrap();
        assert_eq!(call.model.functions, model.functions[..1]);
        assert_eq!(call.nodes, ["Half `call`"]);
        assert_eq!(extract(&model, &[], "abs", None).unwrap().model.functions, []);
        for name in ["_inlfunc_Half_neg", "_inlfunc_Half_token_3_neg", "call/neg"] {
            assert_eq!(alone(&model, name), "x: float32 [2] |  | Neg -> y: float32 [2]");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let unknown = node("Mystery", "own", &["x"], &["h"]).in_domain("mine");
        let nodes = vec![unknown, node("Relu", "relu_1", &["h"], &["y"]), node("NonZero", "places", &["x"], &["p"])];
        let nodes = [nodes, vec![node("Cast", "cast", &["p"], &["q"])]].concat();
        let mut model = model_of(17, "x[2,3]", "y[2,3]", vec![], nodes);
        let problem = |model: &ModelProto, name: &str| extract(model, &[], name, None).unwrap_err();
        let nearest = Some("relu_1".to_owned());
        assert_eq!(problem(&model, "relu_2"), ExtractError::NoNode { name: "relu_2".to_owned(), nearest });
        for name in ["", "Gelu_token_0", "InsertedPrecisionFreeCast_y", "Relu_7"] {
            assert!(matches!(problem(&model, name), ExtractError::NoNode { .. }), "{name}");
        }
        let text = |name: &str| problem(&model, name).to_string();
        assert_eq!(text("relu_1"), "the element type of `h`, which `relu_1` reads, is not known");
        assert_eq!(text("own"), "the element type of `h`, which `own` makes, is not known");
        assert_eq!(text("cast"), "the shape of `p`, which `cast` reads, is not known");
        assert_eq!(alone(&model, "places"), "x: float32 [2, 3] |  | NonZero -> p: int64 [2, ?]");
        model.graph.as_mut().unwrap().value_info = value_infos("h[2,3]");
        assert_eq!(alone(&model, "relu_1"), "h: float32 [2, 3] |  | Relu -> y: float32 [2, 3]");
        model.graph = None;
        assert!(matches!(problem(&model, "relu_1"), ExtractError::NoNode { nearest: None, .. }));
    }

    #[test]
    fn every_node_of_every_network_stands_by_itself() {
        for model in zoo::outlines() {
            let graph = model.graph.as_ref().unwrap();
            let signature = Signature { inputs: graph.input.iter().map(TensorType::from).collect(), outputs: vec![] };
            let sizes = [
                ("batch", 2),
                ("sequence", 8),
                ("past_sequence", 4),
                ("batch_size", 2),
                ("sequence_length", 8),
                ("past_sequence_length", 4),
                ("total_sequence_length", 12),
                ("capacity", 16),
            ];
            let has = |name: &str| {
                let mut dimensions = signature.inputs.iter().flat_map(TensorType::dimensions);
                dimensions.any(|dimension| *dimension == Dimension::Named(name.to_owned()))
            };
            let sizes: Vec<(&str, u64)> = sizes.into_iter().filter(|(name, _)| has(name)).collect();
            let inputs = resolve_inputs(&signature, &point(&sizes, &[])).unwrap().tensors;
            let inferred = infer(&model, &inputs);
            let all = levels(&model, &inferred);
            for node in &graph.node {
                let picked = named(&all, Called { name: node.name(), operator: "" }, true).unwrap();
                let mut cut = Cut::of(&model, &all, &picked).extracted().unwrap().model;
                assert_eq!(check_graph(&cut), Ok(()), "{}", node.name());
                // Its outputs follow from its inputs, but for those of which the values of its only input or its condition
                // decide.
                let graph = cut.graph.as_mut().unwrap();
                let outputs = std::mem::take(&mut graph.output);
                let is_computed = graph.input.iter().any(|input| TensorType::from(input).element.is_float())
                    && node.graphs().next().is_none();
                let again = infer(&cut, &[]);
                for output in outputs.iter().filter(|_| is_computed) {
                    let sizes = |inferred: &Inferred| inferred.value(output.name()).and_then(|value| value.sizes());
                    assert!(sizes(&again).is_some(), "{}", node.name());
                    assert_eq!(sizes(&again), sizes(&inferred), "{}", node.name());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_graph_can_be_cut_or_says_what_is_missing(
            nodes in prop::collection::vec(
                (prop::sample::select(vec!["Relu", "Add", "Reshape", "Shape", "Identity", "Split", "Odd", "DequantizeLinear", "MatMulInteger"]),
                 prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..3_usize), 1..9),
            name in "[a-c0-9/_]{0,12}",
        ) {
            let mut known: Vec<String> = ["x", "w", "sizes", ""].map(str::to_owned).to_vec();
            let mut made = Vec::new();
            for (node_index, (operator, inputs, outputs)) in nodes.iter().enumerate() {
                let inputs: Vec<&str> = inputs.iter().map(|input| known[input.index(known.len())].as_str()).collect();
                let outputs: Vec<String> = (0..*outputs).map(|output| format!("v{node_index}_{output}")).collect();
                let names: Vec<&str> = outputs.iter().map(String::as_str).collect();
                made.push(node(operator, &format!("a{node_index}"), &inputs, &names));
                known.extend(outputs);
            }
            made.iter_mut().filter(|node| node.op_type() == "Odd").for_each(|node| node.domain = Some("own".to_owned()));
            let model = model_of(17, "x[2,3]", "", weights(), made);
            prop_assert_eq!(check_graph(&model), Ok(()));
            let _either = extract(&model, &[], &name, None);
            for node_index in 0..nodes.len() {
                match extract(&model, &[], &format!("a{node_index}"), None) {
                    Ok(extracted) => prop_assert_eq!(check_graph(&extracted.model), Ok(())),
                    Err(problem) => prop_assert!(matches!(problem, ExtractError::Unknown { .. }), "{}", problem),
                }
            }
        }
    }
}
