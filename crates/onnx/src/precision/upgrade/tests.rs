//! What older operators become, and what is refused.

use super::*;
use crate::Dimension;
use crate::precision::quantize_dynamic::tests::model;
use crate::proto::ValueInfoProto;

fn raised(has: i64, nodes: Vec<NodeProto>) -> Result<Vec<String>, ConversionError> {
    let graph = raised_graph(has, Some(ElementType::Float32), nodes)?;
    Ok(graph.node.iter().map(|node| format!("{} {}", node.op_type(), node.input.join(" "))).collect())
}

/// The raised graph of these nodes, whose input `x` has that element type and two dimensions of 9.
fn raised_graph(has: i64, element: Option<ElementType>, nodes: Vec<NodeProto>) -> Result<GraphProto, ConversionError> {
    let mut model = model(nodes, vec![]);
    model.opset_import[0].version = Some(has);
    if let Some(element) = element {
        let shape: Vec<_> = [9, 9].map(Dimension::Fixed).into();
        model.graph.as_mut().unwrap().input[0] = ValueInfoProto::of_tensor("x", &element, Some(&shape));
    }
    assert_eq!(raise_operator_set(&mut model, 13, "DequantizeLinear")?, Some(has));
    assert_eq!(model.opset(""), Some(13));
    Ok(model.graph.unwrap())
}

fn refusal(has: i64, nodes: Vec<NodeProto>) -> String {
    raised(has, nodes).unwrap_err().to_string()
}

fn node(operator: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto::of(operator, "", &["x"], &["y"], attributes)
}

#[test]
fn attributes_become_inputs() {
    let ints = |name: &str| AttributeProto::of_ints(name, &[1]);
    let cases = [
        (node("Unsqueeze", vec![ints("axes")]), vec!["Constant ", "Unsqueeze x y_axes"]),
        (node("Squeeze", vec![]), vec!["Squeeze x"]),
        (node("Squeeze", vec![AttributeProto::of_ints("axes", &[])]), vec!["Squeeze x"]),
        (node("ThresholdedRelu", vec![]), vec!["ThresholdedRelu x"]),
        (node("Slice", vec![ints("starts"), ints("ends")]), vec!["Constant ", "Constant ", "Slice x y_starts y_ends"]),
        (node("Clip", vec![AttributeProto::of_float("max", 6.0)]), vec!["Constant ", "Clip x  y_max"]),
        (node("Pad", vec![ints("pads")]), vec!["Constant ", "Pad x y_pads"]),
        (
            node("Pad", vec![ints("pads"), AttributeProto::of_float("value", 1.0)]),
            vec!["Constant ", "Constant ", "Pad x y_pads y_value"],
        ),
        (node("TopK", vec![AttributeProto::of_int("k", 5)]), vec!["Constant ", "TopK x y_k"]),
        (node("Dropout", vec![AttributeProto::of_float("ratio", 0.5)]), vec!["Identity x"]),
    ];
    for (node, expected) in cases {
        assert_eq!(raised(9, vec![node]).unwrap(), expected);
    }
}

#[test]
fn numbers_have_the_element_type_of_the_input_that_they_stand_beside() {
    use ElementType::{Float16, Float32, Float64, Int32};
    let clip = || node("Clip", vec![AttributeProto::of_float("max", 6.0)]);
    let pad = || node("Pad", vec![AttributeProto::of_ints("pads", &[1]), AttributeProto::of_float("value", 6.0)]);
    for element in [Float16, Float32, Float64] {
        for (operator, node_index) in [(clip(), 0), (pad(), 1)] {
            let graph = raised_graph(10, Some(element.clone()), vec![operator]).unwrap();
            let number = graph.node[node_index].tensor("value").unwrap();
            assert_eq!((number.element(), number.floats().unwrap()), (element.clone(), vec![6.0]));
        }
    }
    // Found behind other nodes, and from within a branch.
    let inner = GraphProto { node: vec![clip()], ..Default::default() };
    let branch = NodeProto::of("If", "", &["c"], &["z"], vec![AttributeProto::of_graph("then_branch", inner)]);
    let relu = NodeProto::of("Neg", "", &["x"], &["n"], vec![]);
    let behind = NodeProto { input: vec!["n".to_owned()], ..clip() };
    let graph = raised_graph(10, Some(Float16), vec![relu, behind, branch]).unwrap();
    assert_eq!(graph.node[1].tensor("value").unwrap().element(), Float16);
    assert_eq!(graph.node[3].graphs().next().unwrap().node[0].tensor("value").unwrap().element(), Float16);
    for (element, said) in [(None, "is not known"), (Some(Int32), "its input is int32")] {
        let problem = raised_graph(10, element, vec![clip()]).unwrap_err().to_string();
        assert!(problem.contains(said), "{problem}");
    }
}

#[test]
fn a_nearest_resize_takes_the_elements_that_operator_set_10_took() {
    let mode = |mode: &str, scales: &[f32]| {
        let scales = TensorProto::of_floats("", &[scales.len() as u64], scales);
        let constant = NodeProto::of("Constant", "", &[], &["s"], vec![AttributeProto::of_tensor("value", scales)]);
        let resize = NodeProto::of("Resize", "", &["x", "s"], &["y"], vec![AttributeProto::of_text("mode", mode)]);
        let graph = raised_graph(10, Some(ElementType::Float32), vec![constant, resize])?;
        Ok::<_, ConversionError>(graph.node[1].text("nearest_mode").map(str::to_owned))
    };
    let cases: [(&[f32], &str); 7] = [
        (&[0.6, 1.0], "ceil"),
        (&[0.6, 0.3], "ceil"),
        (&[0.6, 0.5], "ceil"),
        (&[1.7, 1.0], "floor"),
        // Every third element, as single precision divides.
        (&[1.0 / 3.0, 2.0], "floor"),
        (&[0.5, 1.7], "floor"),
        (&[1.0, 1.0], "floor"),
    ];
    for (scales, expected) in cases {
        assert_eq!(mode("nearest", scales).unwrap().as_deref(), Some(expected), "{scales:?}");
    }
    assert_eq!(mode("linear", &[0.6, 1.7]).unwrap(), None);
    let both = mode("nearest", &[0.6, 1.7]).unwrap_err().to_string();
    assert!(both.contains("shrinks one dimension and grows another"), "{both}");
}

#[test]
fn scales_that_are_computed_are_known_by_the_sizes_that_they_lead_to() {
    let resize = || NodeProto::of("Resize", "", &["x", "s"], &["y"], vec![]);
    let sized = |sizes: [u64; 2]| {
        let mut model = model(vec![resize()], vec![]);
        model.opset_import[0].version = Some(10);
        let graph = model.graph.as_mut().unwrap();
        let value = |name: &str, sizes: [u64; 2]| {
            ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&sizes.map(Dimension::Fixed)))
        };
        (graph.input[0], graph.output[0]) = (value("x", [9, 9]), value("y", sizes));
        raise_operator_set(&mut model, 13, "")
    };
    assert!(sized([9, 18]).is_ok());
    assert!(sized([9, 5]).is_err());
    assert!(refusal(10, vec![resize()]).contains("its scales are computed"));
}

#[test]
fn a_softmax_over_several_dimensions_flattens_them() {
    let softmax = node("Softmax", vec![]);
    let flattened = ["Shape x", "Flatten x", "Softmax y_flat", "Reshape y_rows y_shape"];
    assert_eq!(raised(9, vec![softmax]).unwrap(), flattened);
    let nodes = vec![
        NodeProto::of("Gemm", "", &["x", "w"], &["g"], vec![]),
        NodeProto::of("Softmax", "", &["g"], &["y"], vec![]),
    ];
    assert_eq!(raised(9, nodes).unwrap(), ["Gemm x w", "Softmax g"]);
}

#[test]
fn upsampling_is_resizing() {
    let scales = AttributeProto { floats: vec![1.0, 1.0, 2.0, 2.0], ..AttributeProto::of_ints("scales", &[]) };
    assert_eq!(raised(7, vec![node("Upsample", vec![scales])]).unwrap(), ["Constant ", "Resize x  y_scales"]);
    let with_input = NodeProto::of("Upsample", "", &["x", "s"], &["y"], vec![]);
    assert_eq!(raised(9, vec![with_input]).unwrap(), ["Resize x  s"]);
    let scales = AttributeProto { floats: vec![1.0, 0.5], ..AttributeProto::of_ints("scales", &[]) };
    assert!(refusal(7, vec![node("Upsample", vec![scales])]).contains("it shrinks"));
}

#[test]
fn what_has_no_form_is_refused() {
    let spatial = node("BatchNormalization", vec![AttributeProto::of_int("spatial", 0)]);
    assert!(matches!(raised(8, vec![spatial]), Err(ConversionError::Unsupported { .. })));
    let masked = NodeProto::of("Dropout", "", &["x"], &["z", "y"], vec![]);
    assert!(matches!(raised(9, vec![masked]), Err(ConversionError::Unsupported { .. })));
    // ONNX Runtime runs the first up to 9; the second has other attributes before 9.
    let experimental = [("ImageScaler", 9, 13), ("MeanVarianceNormalization", 8, 8), ("Upsample", 10, 13)];
    for (operator, has, lacks) in experimental {
        let said = format!("ONNX has no such operator in opset {lacks}");
        assert!(refusal(has, vec![node(operator, vec![])]).ends_with(&said), "{operator}");
    }
    assert!(matches!(raised(6, vec![]), Err(ConversionError::OpsetTooOld { has: 6, needed: 13, .. })));
}

#[test]
fn inner_graphs_are_raised_too() {
    let inner =
        GraphProto { node: vec![node("Squeeze", vec![AttributeProto::of_ints("axes", &[0])])], ..Default::default() };
    let branch = AttributeProto::of_graph("then_branch", inner);
    let mut model = model(vec![node("If", vec![branch])], vec![]);
    model.opset_import[0].version = Some(11);
    raise_operator_set(&mut model, 13, "").unwrap();
    let graph = model.graph.unwrap();
    let inner = graph.node[0].graphs().next().unwrap();
    assert_eq!(inner.node[1].input, ["x", "y_axes"]);
}
