use super::*;
use crate::ElementType;
use crate::precision::scales::UNUSUAL_WEIGHT;
use crate::proto::{TensorProto, ValueInfoProto};

/// A model of these nodes that gives `y`.
pub(in crate::precision) fn model(nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> ModelProto {
    let value = |name: &str| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() };
    let graph = GraphProto {
        node: nodes,
        initializer: weights,
        input: vec![value("x")],
        output: vec![value("y")],
        ..Default::default()
    };
    let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
    model.import("", 13);
    model
}

/// What it becomes: operators in order.
pub(in crate::precision) fn converted(
    model: ModelProto,
    options: &DynamicQuantization,
) -> (GraphProto, ConversionReport, String) {
    let done = quantize_dynamic(model, options).unwrap();
    let graph = done.model.graph.unwrap();
    let operators = graph.node.iter().map(|node| node.op_type().to_owned()).collect::<Vec<_>>().join(" ");
    (graph, done.report, operators)
}

pub(in crate::precision) fn tensor<'a>(graph: &'a GraphProto, name: &str) -> &'a TensorProto {
    graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap()
}

fn mat_mul(left: &str, right: &str, output: &str) -> NodeProto {
    NodeProto::of("MatMul", output, &[left, right], &[output], vec![])
}

#[test]
fn an_activation_is_quantised_once_for_all_who_read_it() {
    let weight = |name: &str| TensorProto::of_floats(name, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let nodes = vec![mat_mul("x", "a", "p"), mat_mul("x", "b", "q"), mat_mul("p", "q", "y")];
    let (graph, report, operators) = converted(model(nodes, vec![weight("a"), weight("b")]), &Default::default());
    let product = "MatMulInteger Cast Mul Mul";
    assert_eq!(operators, format!("DynamicQuantizeLinear {product} {product} MatMul"));
    assert_eq!((report.quantize_nodes, report.casts, report.weights.converted), (1, 2, 8));
    assert_eq!(report.kept[0].reason, "its right operand is computed, not constant");
    assert_eq!(tensor(&graph, "a_quantized").integers().unwrap(), [42, 64, 127, 127]);
    assert_eq!(graph.initializer.len(), 4);
}

#[test]
fn seven_bits_leave_room_for_sums_of_two_products() {
    let weight = TensorProto::of_floats("w", &[1, 2], &[2.0, -1.0]);
    let options = DynamicQuantization { reduce_range: true, ..Default::default() };
    let (graph, report, _) = converted(model(vec![mat_mul("x", "w", "y")], vec![weight]), &options);
    assert_eq!(tensor(&graph, "w_quantized").integers().unwrap(), [64, -64]);
    assert_eq!(report.notes, ["weights have 7 bits"]);
}

#[test]
fn models_that_cannot_be_quantised_say_why() {
    let refused = |model: ModelProto| quantize_dynamic(model, &Default::default()).unwrap_err();
    let weight = TensorProto::of_floats("w", &[1, 1], &[1.0]);
    let mut old = model(vec![mat_mul("x", "w", "y")], vec![weight.clone()]);
    old.opset_import[0].version = Some(6);
    assert!(matches!(refused(old), ConversionError::OpsetTooOld { has: 6, needed: 11, .. }));
    let once = quantize_dynamic(model(vec![mat_mul("x", "w", "y")], vec![weight]), &Default::default()).unwrap();
    let twice = refused(once.model);
    let said = "the model is quantised already: int8 (1 node of DynamicQuantizeLinear)";
    assert_eq!(twice.to_string(), said);
    let nothing = refused(model(vec![NodeProto::of("GRU", "r", &["x", "w", "r"], &["y"], vec![])], vec![]));
    assert!(matches!(nothing, ConversionError::NothingToConvert { kept } if kept.len() == 1));
    assert_eq!(
        refused(ModelProto { opset_import: model(vec![], vec![]).opset_import, ..Default::default() }),
        ConversionError::NoGraph
    );
}

/// `If` on `x` with these branches, each of nodes, weights and a result.
fn branches(output: &str, graphs: [(Vec<NodeProto>, Vec<TensorProto>, &str); 2]) -> NodeProto {
    let names = ["then_branch", "else_branch"].into_iter();
    let attributes = names.zip(graphs).map(|(name, (node, initializer, result))| {
        let output = vec![ValueInfoProto { name: Some(result.to_owned()), ..Default::default() }];
        AttributeProto::of_graph(name, GraphProto { node, initializer, output, ..Default::default() })
    });
    NodeProto::of("If", output, &["x"], &[output], attributes.collect())
}

/// Operators of all graphs, each before those inside it, and the weights of each.
fn inside(graph: &GraphProto) -> (Vec<String>, Vec<Vec<&str>>) {
    let graphs = graph.with_inner();
    let operators = |graph: &&GraphProto| graph.node.iter().map(NodeProto::op_type).collect::<Vec<_>>().join(" ");
    let weights = graphs.iter().map(|graph| graph.initializer.iter().map(TensorProto::name).collect()).collect();
    (graphs.iter().map(operators).collect(), weights)
}

fn square(name: &str) -> TensorProto {
    TensorProto::of_floats(name, &[2, 2], &[1.0, 2.0, 3.0, 4.0])
}

const PRODUCT: &str = "MatMulInteger Cast Mul Mul";

#[test]
fn branches_share_the_weights_around_them_and_quantise_activations_for_themselves() {
    let branch = || (vec![mat_mul("x", "w", "p"), mat_mul("p", "w", "q")], vec![], "q");
    let nodes = vec![branches("b", [branch(), branch()]), mat_mul("x", "w", "c"), mat_mul("b", "c", "y")];
    let (graph, report, _) = converted(model(nodes, vec![square("w")]), &Default::default());
    let (operators, weights) = inside(&graph);
    let branch = format!("DynamicQuantizeLinear {PRODUCT} DynamicQuantizeLinear {PRODUCT}");
    assert_eq!(operators, [format!("If DynamicQuantizeLinear {PRODUCT} MatMul"), branch.clone(), branch]);
    assert_eq!(weights, [vec!["w_quantized", "w_scale"], vec![], vec![]]);
    assert_eq!((report.converted["MatMul"], report.kept[0].nodes, report.weights.converted), (5, 1, 4));
    assert_eq!((report.quantize_nodes, report.weights.kept), (5, 0));
}

#[test]
fn a_branch_reads_the_activation_that_was_quantised_before_it() {
    let own = || (vec![mat_mul("x", "w", "p")], vec![], "p");
    let nodes = vec![mat_mul("x", "w", "a"), branches("b", [own(), own()]), mat_mul("a", "b", "y")];
    let (graph, report, _) = converted(model(nodes, vec![square("w")]), &Default::default());
    assert_eq!(inside(&graph).0[1..], [PRODUCT, PRODUCT]);
    assert_eq!(report.quantize_nodes, 1);
}

#[test]
fn weights_of_branches_are_converted_where_they_are() {
    let own = |weight: f32| {
        let weight = TensorProto::of_floats("w", &[1, 1], &[weight]);
        (vec![mat_mul("x", "w", "p")], vec![weight], "p")
    };
    let (graph, report, _) = converted(model(vec![branches("y", [own(1.0), own(2.0)])], vec![]), &Default::default());
    let graphs = graph.with_inner();
    let scale = |index: usize, name: &str| tensor(graphs[index], name).floats().unwrap()[0] * 127.0;
    assert_eq!((scale(1, "w_scale"), scale(2, "w_2_scale")), (1.0, 2.0));
    assert_eq!((graphs[0].initializer.len(), report.weights.converted), (0, 2));
}

#[test]
fn what_is_made_of_a_shared_weight_stands_before_the_branches() {
    let turned = || {
        let turn = NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![]);
        (vec![turn, mat_mul("x", "wt", "p")], vec![], "p")
    };
    let (graph, report, _) =
        converted(model(vec![branches("y", [turned(), turned()])], vec![square("w")]), &Default::default());
    let (operators, weights) = inside(&graph);
    let branch = format!("DynamicQuantizeLinear {PRODUCT}");
    assert_eq!(operators, ["Transpose If", &branch, &branch]);
    assert_eq!((weights[0].clone(), report.weights.converted), (vec!["w_quantized", "w_scale"], 4));
}

#[test]
fn a_result_that_is_a_weight_stays() {
    let (left, right) = ((vec![mat_mul("x", "w", "p")], vec![], "p"), (vec![], vec![square("k")], "k"));
    let (graph, report, _) =
        converted(model(vec![branches("y", [left, right])], vec![square("w")]), &Default::default());
    assert_eq!(inside(&graph).1, [vec!["w_quantized", "w_scale"], vec![], vec!["k"]]);
    assert_eq!(report.weights.kept, 4);
}

#[test]
fn kernels_and_gates_of_two_branches_are_stored_once() {
    let conv = || (vec![NodeProto::of("Conv", "c", &["x", "k"], &["p"], vec![])], vec![], "p");
    let kernel = TensorProto::of_floats("k", &[1, 1, 1, 1], &[1.0]);
    let options = DynamicQuantization { convolutions: true, ..Default::default() };
    let (graph, report, _) = converted(model(vec![branches("y", [conv(), conv()])], vec![kernel]), &options);
    assert_eq!(
        (inside(&graph).1, report.weights.converted),
        (vec![vec!["k_quantized", "k_zero_point", "k_scale"], vec![], vec![]], 1)
    );
    let lstm = || (vec![NodeProto::of("LSTM", "l", &["x", "k", "r"], &["p"], vec![])], vec![], "p");
    let weights = ["k", "r"].map(|name| TensorProto::of_floats(name, &[1, 4, 1], &[1.0; 4])).to_vec();
    let done = quantize_dynamic(model(vec![branches("y", [lstm(), lstm()])], weights), &options).unwrap();
    assert_eq!((done.model.opset(MICROSOFT), done.report.weights.converted), (Some(1), 8));
}

#[test]
fn what_stays_inside_a_node_is_told() {
    let body = || GraphProto { node: vec![mat_mul("x", "w", "z")], ..Default::default() };
    let body = || vec![AttributeProto::of_graph("decoder", body())];
    let search = NodeProto::of("BeamSearch", "s", &["p"], &["y"], body()).in_domain(MICROSOFT);
    let (graph, report, _) =
        converted(model(vec![mat_mul("x", "w", "p"), search], vec![square("w")]), &Default::default());
    assert_eq!(report.kept[0].reason, "it is inside a subgraph of com.microsoft.BeamSearch");
    assert_eq!((tensor(&graph, "w").dims.clone(), report.weights.kept), (vec![2, 2], 4));
    let nodes = vec![mat_mul("x", "w", "p"), NodeProto::of("Loop", "l", &["", "", "p"], &["y"], body())];
    let options = DynamicQuantization { keep: Keep::new(&["l".to_owned()]), ..Default::default() };
    let (_, report, _) = converted(model(nodes, vec![square("w")]), &options);
    let kept: Vec<&str> = report.kept.iter().map(|kept| kept.reason.as_str()).collect();
    assert_eq!(kept, ["it is named in `keep`", "it is inside a node that is named in `keep`"]);
}

#[test]
fn a_branch_that_is_quantised_already_is_found() {
    let branch = || (vec![mat_mul("x", "w", "p")], vec![], "p");
    let once =
        quantize_dynamic(model(vec![branches("y", [branch(), branch()])], vec![square("w")]), &Default::default());
    let twice = quantize_dynamic(once.unwrap().model, &Default::default()).unwrap_err();
    let said = "the model is quantised already: int8 (2 nodes of DynamicQuantizeLinear)";
    assert_eq!(twice.to_string(), said);
}

#[test]
fn weights_of_other_kinds_stay() {
    let cases = [
        (TensorProto::of_bytes("w", &ElementType::Float16, &[1, 1], vec![0, 60]), "its weight is not float32"),
        (TensorProto::of_floats("w", &[1, 1, 1], &[1.0]), "its weight does not have two dimensions"),
        (TensorProto::of_floats("w", &[1, 1], &[f32::NAN]), UNUSUAL_WEIGHT),
        (TensorProto::of_floats("w", &[1, 1], &[3e38]), UNUSUAL_WEIGHT),
        (TensorProto::of_floats("w", &[1, 1], &[1e-40]), UNUSUAL_WEIGHT),
    ];
    for (weight, reason) in cases {
        let problem = quantize_dynamic(model(vec![mat_mul("x", "w", "y")], vec![weight]), &Default::default());
        let Err(ConversionError::NothingToConvert { kept }) = problem else { panic!("{problem:?}") };
        assert_eq!(kept[0].reason, reason);
    }
}
