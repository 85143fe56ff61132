//! Functions whose calls are replaced by their nodes, and those that stay.

use super::*;
use crate::precision::quantize_dynamic::tests::model;
use crate::precision::{DynamicQuantization, Half, HalfSettings, Io, Keep, ProviderClass, quantize_dynamic, to_half};
use crate::proto::{AttributeProto, OperatorSetIdProto, TensorProto, ValueInfoProto};
use crate::{check_graph, infer};

fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto::of(operator, "", inputs, outputs, vec![])
}

fn call(function: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto::of(function, name, inputs, outputs, vec![]).in_domain("mine")
}

/// A function of operator set 13, that of the models here.
fn function(name: &str, inputs: &[&str], outputs: &[&str], node: Vec<NodeProto>) -> FunctionProto {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    FunctionProto {
        name: Some(name.to_owned()),
        domain: Some("mine".to_owned()),
        input: texts(inputs),
        output: texts(outputs),
        node,
        opset_import: vec![opset("", 13), opset("mine", 1)],
        ..Default::default()
    }
}

fn with_functions(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    let mut model = model(nodes, vec![TensorProto::of_floats("w", &[64, 64], &[0.5; 64 * 64])]);
    model.import("mine", 1);
    model.functions = functions;
    model
}

/// What is left of the calls, with the nodes of the main graph as `operator(inputs) -> outputs`.
fn inlined(model: &mut ModelProto) -> (Vec<String>, Vec<String>) {
    let done = inline_functions(model);
    assert_eq!(check_graph(model), Ok(()));
    let line =
        |node: &NodeProto| format!("{}({}) -> {}", node.op_type(), node.input.join(", "), node.output.join(", "));
    let left = done.left.into_iter().map(|(call, reason)| format!("{}: {reason}", call.operator()));
    (model.graph.as_ref().unwrap().node.iter().map(line).collect(), left.collect())
}

#[test]
fn names_inside_are_new_and_those_of_the_call_stay() {
    let body = vec![node("MatMul", &["a", "b"], &["x"]), NodeProto::of("Relu", "act", &["x"], &["out"], vec![])];
    let calls = vec![call("Layer", "one", &["x", "w"], &["h"]), call("Layer", "", &["h", "w"], &["y"])];
    let mut model = with_functions(calls, vec![function("Layer", &["a", "b"], &["out"], body)]);
    let (nodes, left) = inlined(&mut model);
    let expected = ["MatMul(x, w) -> one/x", "Relu(one/x) -> h", "MatMul(h, w) -> Layer/x", "Relu(Layer/x) -> y"];
    assert_eq!((nodes, left.len(), model.functions.len()), (expected.map(str::to_owned).to_vec(), 0, 0));
    let names: Vec<_> = model.graph.as_ref().unwrap().node.iter().map(NodeProto::name).collect();
    assert_eq!(names, ["", "one/act", "", "Layer/act"]);
}

#[test]
fn attributes_are_those_of_the_call_else_the_defaults_else_absent() {
    let refer = |name: &str, asked: &str| AttributeProto {
        name: Some(name.to_owned()),
        ref_attr_name: Some(asked.to_owned()),
        ..Default::default()
    };
    let references = vec![refer("alpha", "scale"), refer("beta", "offset"), refer("transA", "turned")];
    let gemm = NodeProto::of("Gemm", "", &["a", "a"], &["b"], references);
    let mut scaled = function("Scaled", &["a"], &["b"], vec![gemm]);
    scaled.attribute_proto = vec![AttributeProto::of_float("scale", 2.0), AttributeProto::of_float("offset", 3.0)];
    scaled.attribute = vec!["turned".to_owned()];
    let mut asked = call("Scaled", "", &["x"], &["y"]);
    asked.attribute = vec![AttributeProto::of_float("scale", 5.0)];
    // The call stands in a function itself, and gets the attribute of that one's call.
    let mut outer = call("Scaled", "", &["c"], &["d"]);
    outer.attribute = vec![refer("scale", "factor")];
    let outer = function("Outer", &["c"], &["d"], vec![outer]);
    let mut nested = call("Outer", "", &["y"], &["z"]);
    nested.attribute = vec![AttributeProto::of_float("factor", 7.0)];
    let mut model = with_functions(vec![asked, nested], vec![scaled, outer]);
    assert_eq!(inlined(&mut model).0, ["Gemm(x, x) -> y", "Gemm(y, y) -> z"]);
    let graph = model.graph.unwrap();
    let floats = |node: &NodeProto| [node.float("alpha"), node.float("beta")];
    assert_eq!(floats(&graph.node[0]), [Some(5.0), Some(3.0)]);
    assert_eq!(floats(&graph.node[1]), [Some(7.0), Some(3.0)]);
    assert_eq!(graph.node[0].named_attribute("transA"), None);
}

#[test]
fn inputs_and_outputs_may_be_left_out() {
    let body = vec![node("Clip", &["a", "low", "high"], &["b"]), node("Neg", &["b"], &["c"])];
    let clip = function("Both", &["a", "low", "high"], &["b", "c"], body);
    let calls = vec![call("Both", "f", &["x", "", "w"], &["", "h"]), call("Both", "g", &["h"], &["y"])];
    let (nodes, _) = inlined(&mut with_functions(calls, vec![clip]));
    let expected = ["Clip(x, , w) -> f/b", "Neg(f/b) -> h", "Clip(h, , ) -> y", "Neg(y) -> g/c"];
    assert_eq!(nodes, expected);
}

#[test]
fn an_output_that_is_an_input_is_a_copy() {
    let through = function("Through", &["a"], &["a", "b", "b"], vec![node("Neg", &["a"], &["b"])]);
    let (nodes, _) = inlined(&mut with_functions(vec![call("Through", "t", &["x"], &["y", "p", "q"])], vec![through]));
    assert_eq!(nodes, ["Neg(x) -> p", "Identity(x) -> y", "Identity(p) -> q"]);
}

#[test]
fn graphs_inside_nodes_call_and_are_called() {
    let value = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() };
    let branch = |attribute: &str, node: NodeProto| {
        let output = vec![value(&node.output[0])];
        AttributeProto::of_graph(attribute, GraphProto { node: vec![node], output, ..Default::default() })
    };
    let both =
        |then: NodeProto, otherwise: NodeProto| vec![branch("then_branch", then), branch("else_branch", otherwise)];
    let inner = NodeProto::of(
        "If",
        "choice",
        &["c"],
        &["out"],
        both(node("Neg", &["a"], &["t"]), call("Twice", "t", &["a"], &["t"])),
    );
    let twice = function("Twice", &["t"], &["u"], vec![node("Add", &["t", "t"], &["u"])]);
    let chosen = function("Chosen", &["c", "a"], &["out"], vec![inner]);
    let outer = NodeProto::of(
        "If",
        "",
        &["w"],
        &["y"],
        both(call("Chosen", "deep", &["w", "x"], &["p"]), call("Twice", "", &["x"], &["q"])),
    );
    let mut model = with_functions(vec![outer], vec![twice, chosen]);
    let (nodes, left) = inlined(&mut model);
    assert_eq!((nodes[0].as_str(), nodes.len(), left.len()), ("If(w) -> y", 1, 0));
    let graph = model.graph.unwrap();
    let [first, second] = [0, 1].map(|branch| graph.node[0].graphs().nth(branch).unwrap());
    assert_eq!((first.node[0].name(), first.node[0].output[0].as_str()), ("deep/choice", "p"));
    let deep: Vec<_> = first.node[0].graphs().map(|graph| (&graph.node[0], graph.output[0].name())).collect();
    assert_eq!((deep[0].0.input.join(" "), deep[0].1), ("x".to_owned(), "deep/t"));
    assert_eq!((deep[1].0.op_type(), deep[1].0.input.join(" "), deep[1].1), ("Add", "x x".to_owned(), "deep/t"));
    assert_eq!((second.node[0].op_type(), second.node[0].output[0].as_str()), ("Add", "q"));
}

#[test]
fn calls_stay_for_a_reason() {
    let plain = || function("F", &["a"], &["b"], vec![node("Relu", &["a"], &["b"])]);
    let single_call = || vec![call("F", "", &["x"], &["y"])];
    let check = |calls: Vec<NodeProto>, functions: Vec<FunctionProto>, expected: &str| {
        let n_functions = functions.len();
        let mut model = with_functions(calls, functions);
        let (_, left) = inlined(&mut model);
        assert_eq!((left.join("; ").as_str(), model.functions.len()), (expected, n_functions));
    };
    let mut newer = plain();
    newer.opset_import[0].version = Some(18);
    check(single_call(), vec![newer], "mine.F: the function was written for operator set 18, and the model for 13");
    let mut silent = plain();
    silent.opset_import.clear();
    check(single_call(), vec![silent], "mine.F: the function does not say which version of operator set it uses");
    let circle = function("F", &["a"], &["b"], vec![call("F", "", &["a"], &["b"])]);
    check(single_call(), vec![circle], "mine.F: the function calls itself");
    let wide = vec![call("F", "", &["x", "w"], &["y"])];
    check(wide, vec![plain()], "mine.F: it has more inputs or outputs than the function");
    let empty = function("F", &["a"], &["b"], vec![]);
    check(single_call(), vec![empty], "mine.F: nothing in the function produces its output `b`");
}

#[test]
fn functions_that_double_end_somewhere() {
    let chain = |level: usize, n_calls: usize| {
        let inner = format!("F{}", level + 1);
        let names: Vec<String> = (0..=n_calls).map(|index| format!("v{index}")).collect();
        let step = |index: usize| call(&inner, "", &[&names[index]], &[&names[index + 1]]);
        function(&format!("F{level}"), &["v0"], &[&names[n_calls]], (0..n_calls).map(step).collect())
    };
    let last = function("F20", &["a"], &["b"], vec![node("Relu", &["a"], &["b"])]);
    let mut functions: Vec<FunctionProto> = (0..20).map(|level| chain(level, 4)).collect();
    // About what the calls become is far beyond what may be made, and it takes no time to see it.
    functions.push(last);
    functions.iter_mut().for_each(|function| function.doc_string = Some("x".repeat(1 << 20)));
    let mut model = with_functions(vec![call("F0", "", &["x"], &["y"])], functions);
    let done = inline_functions(&mut model);
    assert!(done.calls > 120 && done.calls < 280, "{}", done.calls);
    assert!(done.left.iter().all(|(_, reason)| reason.contains("256 MiB")));
    assert!(!model.functions.is_empty());
}

#[test]
fn conversions_see_what_is_inside() {
    let layer = || function("Layer", &["a", "b"], &["out"], vec![node("MatMul", &["a", "b"], &["out"])]);
    let mut old = layer();
    (old.name, old.opset_import[0].version) = (Some("Old".to_owned()), Some(12));
    let calls = || vec![call("Layer", "one", &["x", "w"], &["h"]), call("Old", "two", &["h", "w"], &["y"])];
    let done = quantize_dynamic(with_functions(calls(), vec![layer(), old.clone()]), &DynamicQuantization::default());
    let report = done.unwrap().report;
    assert_eq!((report.converted["MatMul"], report.kept[0].operator.as_str()), (1, "mine.Old"));
    assert_eq!(report.notes, ["a call of a model function was inlined"]);

    let mut model = with_functions(calls(), vec![layer(), old]);
    let float = crate::ElementType::Float32;
    let graph = model.graph.as_mut().unwrap();
    graph.input[0] = ValueInfoProto::of_tensor("x", &float, None);
    graph.output[0] = ValueInfoProto::of_tensor("y", &float, None);
    let provider = ProviderClass::Cuda;
    let settings = HalfSettings { target: Half::Fp16, io: Io::Keep, keep: Keep::default(), provider };
    let types = infer::infer(&model, &[]);
    let done = to_half(model, &types, &settings).unwrap();
    assert_eq!(done.report.converted["MatMul"], 1);
    let kept: Vec<_> = done.report.kept.iter().map(|kept| (kept.operator.as_str(), kept.nodes)).collect();
    assert_eq!(kept, [("mine.Old", 1)]);
    assert!(done.report.kept[0].reason.contains("operator set 12"), "{}", done.report.kept[0].reason);
}
