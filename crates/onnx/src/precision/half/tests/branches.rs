//! What is inside branches.

use super::*;

/// An `If` with a product in one branch and a multiplication in the other, both by a weight around them.
fn branching() -> ModelProto {
    let branch = |operator: &str, output: &str| GraphProto {
        name: Some(output.to_owned()),
        node: vec![node(operator, &["a", "w"], output)],
        output: vec![value(output, ElementType::Float32)],
        ..Default::default()
    };
    let attributes = vec![
        AttributeProto::of_graph("then_branch", branch("MatMul", "t")),
        AttributeProto::of_graph("else_branch", branch("Mul", "e")),
    ];
    let nodes = vec![node("Relu", &["x"], "a"), NodeProto::of("If", "if", &["condition"], &["y"], attributes)];
    let condition = TensorProto::of_bytes("condition", &ElementType::Bool, &[], vec![1]);
    model(nodes, vec![weight("w", 0.5), condition])
}

#[test]
fn branches_see_the_values_around_them_in_the_type_that_they_need() {
    let conversion = convert(branching(), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert_eq!(weights(&conversion), ["w: float16", "condition: bool"]);
    let graph = conversion.model.graph.as_ref().unwrap();
    let inner: Vec<String> =
        graph.node.last().unwrap().graphs().flat_map(|graph| &graph.node).map(|node| node.input.join(", ")).collect();
    assert_eq!(inner, ["a, w", "t_fp16", "a, w", "e_fp16"]);
}

#[test]
fn what_is_inside_a_node_that_is_kept_is_kept() {
    for word in ["If", "if"] {
        let keep = Keep::new(&[word.to_owned()]);
        let kept = HalfSettings { keep, ..settings(Half::Fp16, ProviderClass::Cuda) };
        let conversion = convert(branching(), &kept).unwrap();
        assert_eq!(weights(&conversion), ["w: float32", "condition: bool"]);
        assert_eq!(conversion.report.converted.into_keys().collect::<Vec<_>>(), ["Relu"]);
        let kept = conversion.report.kept.iter().map(|kept| (kept.operator.as_str(), kept.reason.as_str()));
        let reason = "it is inside a node that is named in `keep`";
        assert_eq!(kept.collect::<Vec<_>>(), [("MatMul", reason), ("Mul", reason)]);
    }
}
