#![allow(clippy::unwrap_used)]

use super::*;
use crate::proto::{AttributeProto, ValueInfoProto};

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), ..Default::default() }
}

#[test]
fn constants_of_every_kind_become_initialisers() {
    let fill = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[1], &[0.5]));
    let held = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[2], &[1.0, 2.0]));
    let nodes = vec![
        NodeProto::of("ConstantOfShape", "", &["shape"], &["filled"], vec![fill]),
        NodeProto::of("Constant", "", &[], &["held"], vec![held]),
        NodeProto::of("Identity", "", &["held"], &["same"], vec![]),
        NodeProto::of("Unsqueeze", "", &["same"], &["wide"], vec![AttributeProto::of_ints("axes", &[1, -1])]),
        NodeProto::of("Squeeze", "", &["wide"], &["flat"], vec![AttributeProto::of_ints("axes", &[1, 2])]),
        NodeProto::of("Reshape", "", &["filled", "sizes"], &["row"], vec![]),
        NodeProto::of("Add", "add", &["flat", "row"], &["y"], vec![]),
    ];
    let graph = GraphProto {
        node: nodes,
        initializer: vec![
            TensorProto::of_integers("shape", &[2], &[2, 3]),
            TensorProto::of_integers("sizes", &[2], &[1, -1]),
        ],
        input: vec![value("x"), value("shape")],
        output: vec![value("y")],
        ..Default::default()
    };
    let mut model = ModelProto { ir_version: Some(3), graph: Some(graph), ..Default::default() };
    settle_constants(&mut model, &[]).unwrap();
    assert_eq!(model.ir_version(), 4);
    let graph = model.graph.unwrap();
    assert_eq!((graph.node.len(), graph.input.len()), (1, 1));
    let tensor = |name: &str| graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap();
    assert_eq!((tensor("row").dims.clone(), tensor("row").floats().unwrap()), (vec![1, 6], vec![0.5; 6]));
    assert_eq!((tensor("flat").dims.clone(), tensor("flat").floats().unwrap()), (vec![2], vec![1.0, 2.0]));
}

fn settled(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, wanting: &[&str]) -> GraphProto {
    let graph = GraphProto { node: nodes, initializer: weights, output: vec![value("y")], ..Default::default() };
    let mut model = ModelProto { graph: Some(graph), ..Default::default() };
    model.import("", 17);
    settle_constants(&mut model, wanting).unwrap();
    model.graph.unwrap()
}

fn operators(graph: &GraphProto) -> Vec<&str> {
    graph.node.iter().map(NodeProto::op_type).collect()
}

#[test]
fn an_expression_of_weights_is_a_weight() {
    let nodes = vec![
        NodeProto::of("Concat", "", &["w", "w"], &["c"], vec![AttributeProto::of_int("axis", 1)]),
        NodeProto::of("Mul", "", &["c", "s"], &["m"], vec![]),
        NodeProto::of("Transpose", "", &["m"], &["t"], vec![]),
        NodeProto::of("Cast", "", &["t"], &["f"], vec![AttributeProto::of_int("to", 11)]),
        NodeProto::of("Cast", "", &["f"], &["g"], vec![AttributeProto::of_int("to", 1)]),
        NodeProto::of("MatMul", "", &["x", "g"], &["y"], vec![]),
    ];
    let weights = vec![TensorProto::of_floats("w", &[2, 1], &[1.0, 2.0]), TensorProto::of_floats("s", &[], &[3.0])];
    let graph = settled(nodes, weights, &["MatMul"]);
    assert_eq!(operators(&graph), ["MatMul"]);
    let [folded] = &graph.initializer[..] else { panic!() };
    assert_eq!((folded.name(), folded.dims.clone()), ("g", vec![2, 2]));
    assert_eq!(folded.floats().unwrap(), [3.0, 6.0, 3.0, 6.0]);
}

#[test]
fn a_transposition_stays_unless_more_is_computed_from_it() {
    let turn = |from: &str, to: &str| NodeProto::of("Transpose", "", &[from], &[to], vec![]);
    let product = |weight: &str| NodeProto::of("MatMul", "", &["x", weight], &["y"], vec![]);
    let weight = |shape: &[u64]| vec![TensorProto::of_floats("w", shape, &[1.0; 8])];
    assert_eq!(operators(&settled(vec![turn("w", "t"), product("t")], weight(&[4, 2]), &[])), ["Transpose", "MatMul"]);
    let turned = settled(vec![turn("w", "t"), turn("t", "u"), product("u")], weight(&[4, 2]), &[]);
    assert_eq!((operators(&turned), turned.node[0].input[0].as_str()), (vec!["Transpose", "MatMul"], "t"));
    assert_eq!(operators(&settled(vec![turn("w", "t"), product("t")], weight(&[2, 2, 2]), &[])), ["MatMul"]);
}

#[test]
fn only_weights_that_are_converted_may_grow() {
    let half = || TensorProto::of_bytes("w", &ElementType::Float16, &[256, 256], vec![0; 2 << 16]);
    let widened = |reader: &str| {
        let cast = NodeProto::of("Cast", "", &["w"], &["f"], vec![AttributeProto::of_int("to", 1)]);
        settled(vec![cast, NodeProto::of(reader, "", &["f", "x"], &["y"], vec![])], vec![half()], &["Gather"])
    };
    assert_eq!(operators(&widened("Gather")), ["Gather"]);
    assert_eq!(operators(&widened("Add")), ["Cast", "Add"]);
}

#[test]
fn where_nothing_is_quantised_large_weights_are_computed_and_small_ones_stay() {
    let halved = |from: &str, to: &str| NodeProto::of("Mul", "", &[from, "s"], &[to], vec![]);
    let nodes = vec![
        halved("large", "a"),
        halved("small", "b"),
        NodeProto::of("Tile", "", &["large", "times"], &["c"], vec![]),
        NodeProto::of("Gather", "", &["table", "first"], &["r"], vec![]),
        NodeProto::of("Neg", "", &["r"], &["d"], vec![]),
        NodeProto::of("Sum", "", &["x", "a", "b", "c", "d"], &["y"], vec![]),
    ];
    let weights = vec![
        TensorProto::of_floats("table", &[300, 1], &[1.0; 300]),
        TensorProto::of_integers("first", &[], &[0]),
        TensorProto::of_floats("large", &[300], &[1.0; 300]),
        TensorProto::of_floats("small", &[3], &[1.0; 3]),
        TensorProto::of_floats("s", &[], &[0.5]),
        TensorProto::of_integers("times", &[1], &[2]),
    ];
    let graph = GraphProto { node: nodes, initializer: weights, output: vec![value("y")], ..Default::default() };
    let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
    model.import("", 17);
    let mut replaceable = model.clone();
    replaceable.graph.as_mut().unwrap().input.push(value("s"));
    // The file would grow by the first, since the second still reads it, and by the third.
    assert_eq!(fold_weights(&mut model, 256).unwrap(), 0);
    model.graph.as_mut().unwrap().node.remove(2);
    assert_eq!(fold_weights(&mut model, 256).unwrap(), 1);
    assert_eq!(operators(model.graph.as_ref().unwrap()), ["Mul", "Gather", "Neg", "Sum"]);
    replaceable.graph.as_mut().unwrap().node.remove(2);
    assert_eq!(fold_weights(&mut replaceable, 256).unwrap(), 0);
}

#[test]
fn constants_inside_a_branch_become_weights_of_the_branch() {
    let held = |name: &str| {
        let value = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[2], &[1.0, 2.0]));
        NodeProto::of("Constant", "", &[], &[name], vec![value])
    };
    let branch = GraphProto {
        node: vec![
            held("a"),
            held("result"),
            NodeProto::of("Neg", "", &["outer"], &["b"], vec![]),
            NodeProto::of("Sum", "", &["x", "a", "b"], &["c"], vec![]),
        ],
        output: vec![value("c"), value("result")],
        ..Default::default()
    };
    let nodes = vec![
        NodeProto::of("Abs", "", &["w"], &["outer"], vec![]),
        NodeProto::of("If", "", &["x"], &["y"], vec![AttributeProto::of_graph("then_branch", branch)]),
    ];
    let graph = settled(nodes, vec![TensorProto::of_floats("w", &[2], &[1.0, -3.0])], &["Sum"]);
    let branch = graph.node[0].graphs().next().unwrap();
    assert_eq!((operators(&graph), operators(branch)), (vec!["If"], vec!["Constant", "Sum"]));
    let weights: Vec<_> = branch.initializer.iter().map(|it| (it.name(), it.floats().unwrap())).collect();
    assert_eq!(weights, [("a", vec![1.0, 2.0]), ("b", vec![-1.0, -3.0])]);
    assert_eq!(graph.initializer, []);
}

#[test]
fn where_nothing_is_quantised_a_weight_does_not_become_levels() {
    let nodes = vec![
        NodeProto::of("QuantizeLinear", "", &["w", "s"], &["q"], vec![]),
        NodeProto::of("DequantizeLinear", "", &["q", "s"], &["f"], vec![]),
        NodeProto::of("Add", "", &["x", "f"], &["y"], vec![]),
    ];
    let weights = vec![TensorProto::of_floats("w", &[300], &[1.0; 300]), TensorProto::of_floats("s", &[], &[0.5])];
    let graph = GraphProto { node: nodes, initializer: weights, output: vec![value("y")], ..Default::default() };
    let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
    model.import("", 17);
    assert_eq!(fold_weights(&mut model, 256).unwrap(), 0);
}

#[test]
fn all_constants_together_have_a_limit() {
    let fill = |index: usize| NodeProto::of("ConstantOfShape", "", &["s"], &[&format!("f{index}")], vec![]);
    let product =
        |index: usize| NodeProto::of("MatMul", "", &["x", &format!("f{index}")], &[&format!("p{index}")], vec![]);
    let nodes = (0..4).flat_map(|index| [fill(index), product(index)]).collect();
    // 2 GiB each: not even the first is made, for the file is a few bytes.
    let graph = settled(nodes, vec![TensorProto::of_integers("s", &[2], &[1 << 14, 1 << 15])], &["MatMul"]);
    assert_eq!(graph.node.len(), 8);
}

#[test]
fn empty_names_go_from_the_ends_where_they_may_be_left_out() {
    let inner =
        GraphProto { node: vec![NodeProto::of("MaxPool", "", &["x"], &["i", ""], vec![])], ..Default::default() };
    let nodes = vec![
        NodeProto::of("MaxPool", "", &["x"], &["p", ""], vec![]),
        NodeProto::of("LSTM", "", &["x", "w", "r", "", "s", "", "h", ""], &["", "last", ""], vec![]),
        NodeProto::of("Clip", "", &["p", "", ""], &["c"], vec![]),
        // Two halves, of which nothing reads the second.
        NodeProto::of("Split", "", &["c", ""], &["y", ""], vec![]),
        NodeProto::of("Loop", "", &["", "", "x"], &["l"], vec![AttributeProto::of_graph("body", inner)]),
        NodeProto::of("Own", "", &["x", ""], &["o", ""], vec![]).in_domain("mine"),
    ];
    let graph = GraphProto { node: nodes, ..Default::default() };
    let mut model = ModelProto { graph: Some(graph), ..Default::default() };
    model.import("", 17);
    drop_empty_names(&mut model);
    let graph = model.graph.unwrap();
    let names = |node: &NodeProto| format!("{} {} -> {}", node.op_type(), node.input.join(","), node.output.join(","));
    let expected = [
        "MaxPool x -> p",
        "LSTM x,w,r,,s,,h -> ,last",
        "Clip p -> c",
        "Split c -> y,",
        "Loop ,,x -> l",
        "Own x, -> o,",
    ];
    assert_eq!(graph.node.iter().map(names).collect::<Vec<_>>(), expected);
    assert_eq!(names(&graph.node[4].graphs().next().unwrap().node[0]), "MaxPool x -> i");
}

#[test]
fn an_axis_is_counted_from_either_end() {
    assert_eq!((axis_index(-1, 2), axis_index(2, 2), axis_index(i64::MIN, 2)), (Some(1), None, None));
}
