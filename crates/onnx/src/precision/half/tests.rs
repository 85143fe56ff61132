//! Conversions of small graphs: what is cast, what is stored, what is left.

mod branches;
mod exact;

use super::*;
use crate::Dimension;
use crate::infer::infer;
use crate::proto::{
    AttributeProto, GraphProto, NodeProto, OperatorSetIdProto, SparseTensorProto, TensorProto, ValueInfoProto,
};

fn value(name: &str, element: ElementType) -> ValueInfoProto {
    ValueInfoProto::of_tensor(name, &element, Some(&[Dimension::Named("batch".to_owned()), Dimension::Fixed(32)]))
}

fn model(node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> ModelProto {
    let graph = GraphProto {
        name: Some("test".to_owned()),
        node,
        initializer,
        input: vec![value("x", ElementType::Float32)],
        output: vec![value("y", ElementType::Float32)],
        ..Default::default()
    };
    let opset = OperatorSetIdProto { version: Some(17), ..Default::default() };
    ModelProto { ir_version: Some(8), graph: Some(graph), opset_import: vec![opset], ..Default::default() }
}

fn weight(name: &str, value: f32) -> TensorProto {
    TensorProto::of_floats(name, &[32, 32], &[value; 32 * 32])
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto::of(operator, &format!("{operator}_{output}"), inputs, &[output], vec![])
}

fn settings(target: Half, provider: ProviderClass) -> HalfSettings {
    HalfSettings { target, io: Io::Keep, keep: Keep::default(), provider }
}

fn convert(model: ModelProto, settings: &HalfSettings) -> Result<Conversion, ConversionError> {
    let types = infer(&model, &[]);
    to_half(model, &types, settings)
}

/// `operator(inputs) -> outputs`, a line for each node.
fn lines(conversion: &Conversion) -> Vec<String> {
    let graph = conversion.model.graph.as_ref().unwrap();
    let line = |node: &NodeProto| {
        let to = node.int("to").map_or(String::new(), |to| format!("<{}>", ElementType::from_code(to as i32)));
        format!("{}{to}({}) -> {}", node.op_type(), node.input.join(", "), node.output.join(", "))
    };
    graph.node.iter().map(line).collect()
}

fn weights(conversion: &Conversion) -> Vec<String> {
    let graph = conversion.model.graph.as_ref().unwrap();
    graph.initializer.iter().map(|tensor| format!("{}: {}", tensor.name(), tensor.element())).collect()
}

#[test]
fn on_cuda_everything_is_half_between_two_casts() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Relu", &["a"], "b"), node("MatMul", &["b", "w"], "y")];
    let conversion = convert(model(nodes, vec![weight("w", 0.5)]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let expected = [
        "Cast<float16>(x) -> x_fp16",
        "MatMul(x_fp16, w) -> a",
        "Relu(a) -> b",
        "MatMul(b, w) -> y_fp16",
        "Cast<float32>(y_fp16) -> y",
    ];
    assert_eq!(lines(&conversion), expected);
    assert_eq!(weights(&conversion), ["w: float16"]);
    assert_eq!((conversion.report.casts, conversion.report.nodes_converted()), (2, 3));
    assert_eq!((conversion.report.weights.converted, conversion.report.weights.kept), (1024, 0));
}

#[test]
fn inputs_and_outputs_are_converted_when_asked_for() {
    let nodes = vec![node("MatMul", &["x", "w"], "y")];
    let settings = HalfSettings { io: Io::Convert, ..settings(Half::Fp16, ProviderClass::Cuda) };
    let conversion = convert(model(nodes, vec![weight("w", 0.5)]), &settings).unwrap();
    assert_eq!(lines(&conversion), ["MatMul(x, w) -> y"]);
    let graph = conversion.model.graph.as_ref().unwrap();
    let element = |info: &ValueInfoProto| crate::TensorType::from(info).element;
    assert_eq!(element(&graph.input[0]), ElementType::Float16);
    assert_eq!(element(&graph.output[0]), ElementType::Float16);
}

#[test]
fn on_the_cpu_weights_are_half_and_arithmetic_is_not() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Add", &["a", "small"], "y")];
    let small = TensorProto::of_floats("small", &[32], &[0.5; 32]);
    let model = model(nodes, vec![weight("w", 0.5), small]);
    let conversion = convert(model, &settings(Half::Bf16, ProviderClass::Cpu)).unwrap();
    let expected = ["Cast<float32>(w) -> w_fp32", "MatMul(x, w_fp32) -> a", "Add(a, small) -> y"];
    assert_eq!(lines(&conversion), expected);
    // A cast would take more of the file than the second one saves.
    assert_eq!(weights(&conversion), ["w: bfloat16", "small: float32"]);
    assert_eq!(conversion.report.kept.iter().map(|kept| kept.nodes).sum::<u64>(), 2);
    assert!(conversion.report.notes[0].contains("no bf16 arithmetic"), "{:?}", conversion.report.notes);
}

#[test]
fn what_is_unsafe_stays_exact_until_it_is_back_in_range() {
    let nodes = vec![
        node("Pow", &["x", "two"], "a"),
        node("Add", &["a", "w"], "b"),
        node("Sqrt", &["b"], "c"),
        node("Div", &["x", "c"], "y"),
    ];
    let two = TensorProto::of_floats("two", &[], &[2.0]);
    let row = TensorProto::of_floats("w", &[1, 32], &[1e-6; 32]);
    let conversion = convert(model(nodes, vec![two, row]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let expected = [
        "Cast<float16>(x) -> x_fp16",
        "Pow(x, two) -> a",
        "Add(a, w) -> b",
        "Sqrt(b) -> c",
        "Cast<float16>(c) -> c_fp16",
        "Div(x_fp16, c_fp16) -> y_fp16",
        "Cast<float32>(y_fp16) -> y",
    ];
    assert_eq!(lines(&conversion), expected);
    assert_eq!(weights(&conversion), ["two: float32", "w: float32"]);
}

#[test]
fn a_weight_that_is_wanted_both_ways_is_stored_in_both() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Exp", &["w"], "e"), node("MatMul", &["a", "e"], "y")];
    let conversion = convert(model(nodes, vec![weight("w", 0.5)]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert_eq!(weights(&conversion), ["w: float32", "w_fp16: float16"]);
    let expected = ["MatMul(x_fp16, w_fp16) -> a", "Exp(w) -> e", "Cast<float16>(e) -> e_fp16"];
    assert_eq!(lines(&conversion)[1..4], expected);
}

#[test]
fn constants_and_casts_adapt_without_a_cast_more() {
    let constant = NodeProto::of("Constant", "c", &[], &["c"], vec![AttributeProto::of_float("value_float", 1e9)]);
    let cast = NodeProto::of("Cast", "k", &["i"], &["k"], vec![AttributeProto::of_int("to", 1)]);
    let nodes = vec![constant, cast, node("Mul", &["x", "c"], "a"), node("Mul", &["a", "k"], "y")];
    let mut model = model(nodes, vec![TensorProto::of_integers("i", &[1], &[3])]);
    model.graph.as_mut().unwrap().value_info.push(value("a", ElementType::Float32));
    let conversion = convert(model, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert_eq!(lines(&conversion)[2], "Cast<float16>(i) -> k");
    let graph = conversion.model.graph.as_ref().unwrap();
    assert_eq!(graph.node[1].tensor("value").unwrap().floats().unwrap(), [65504.0]);
    assert_eq!((conversion.report.weights.clamped, conversion.report.casts), (1, 2));
    assert_eq!(crate::TensorType::from(&graph.value_info[0]).element, ElementType::Float16);
}

#[test]
fn keep_and_the_standard_are_obeyed_and_named() {
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Softmax", &["a"], "y")];
    let kept = HalfSettings { keep: Keep::new(&["Softmax".to_owned()]), ..settings(Half::Fp16, ProviderClass::Cuda) };
    let conversion = convert(model(nodes.clone(), vec![weight("w", 0.5)]), &kept).unwrap();
    assert_eq!(conversion.report.kept[0].reason, "it is named in `keep`");
    assert_eq!(lines(&conversion).last().unwrap(), "Softmax(a_fp32) -> y");

    let convolution = vec![node("GlobalAveragePool", &["x"], "a"), node("MatMul", &["a", "w"], "y")];
    let conversion =
        convert(model(convolution, vec![weight("w", 0.5)]), &settings(Half::Bf16, ProviderClass::Cuda)).unwrap();
    assert_eq!(conversion.report.kept[0].operator, "GlobalAveragePool");
}

#[test]
fn models_without_float32_are_refused() {
    let half = TensorProto::of_bytes("w", &ElementType::Float16, &[2], vec![0; 4]);
    let nodes = vec![node("Identity", &["x"], "y")];
    let error = convert(model(nodes.clone(), vec![half]), &settings(Half::Bf16, ProviderClass::Cuda)).unwrap_err();
    assert!(matches!(error, ConversionError::AlreadyInHalf { weights: 1, .. }), "{error}");
    let error = convert(model(nodes, vec![]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap_err();
    assert!(matches!(error, ConversionError::NothingToConvert { .. }), "{error}");
}

fn with_opset(mut model: ModelProto, opset: i64) -> ModelProto {
    model.opset_import[0].version = Some(opset);
    model
}

#[test]
fn a_weight_beyond_the_range_stays_and_so_does_what_computes_with_it() {
    let nodes = || {
        let before = vec![node("MatMul", &["x", "w"], "a"), node("Relu", &["a"], "b"), node("Sigmoid", &["b"], "c")];
        [before, vec![node("MatMul", &["c", "v"], "y")]].concat()
    };
    let large = || model(nodes(), vec![weight("w", 9.8e7), weight("v", 0.5)]);
    let conversion = convert(large(), &settings(Half::Fp16, ProviderClass::Cpu)).unwrap();
    assert_eq!(weights(&conversion), ["w: float32", "v: float16"]);
    let conversion = convert(large(), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    // In fp16 `a` would be infinity, whoever reads it; a sigmoid is at most 1.
    let expected = [
        "MatMul(x, w) -> a",
        "Relu(a) -> b",
        "Sigmoid(b) -> c",
        "Cast<float16>(c) -> c_fp16",
        "MatMul(c_fp16, v) -> y_fp16",
    ];
    assert_eq!(lines(&conversion)[..5], expected);
    assert_eq!(conversion.report.kept[0].reason, "a constant that it reads is beyond the range of fp16");
    assert_eq!(conversion.report.weights.clamped, 0);
}

#[test]
fn a_weight_beyond_the_range_stays_so_behind_what_only_moves_it() {
    let nodes = vec![node("Transpose", &["w"], "t"), node("MatMul", &["x", "t"], "y")];
    let conversion = convert(
        model([nodes, vec![node("MatMul", &["x", "v"], "z")]].concat(), vec![weight("w", 9.8e7), weight("v", 0.5)]),
        &settings(Half::Fp16, ProviderClass::Cuda),
    );
    let lines = lines(&conversion.unwrap());
    assert_eq!(lines[1..3], ["Transpose(w) -> t", "MatMul(x, t) -> y"]);
}

#[test]
fn numbers_that_stand_for_infinity_do_so_only_where_something_is_masked() {
    let nodes = |operator: &str| vec![node(operator, &["x", "w"], "a"), node("MatMul", &["x", "v"], "y")];
    let stored = |operator: &str, provider| {
        let model = model(nodes(operator), vec![weight("w", -1e9), weight("v", 0.5)]);
        let conversion = convert(model, &settings(Half::Fp16, provider)).unwrap();
        (weights(&conversion)[0].clone(), conversion.report.weights.clamped)
    };
    assert_eq!(stored("Add", ProviderClass::Cuda), ("w: float16".to_owned(), 1024));
    for (operator, provider) in
        [("MatMul", ProviderClass::Cuda), ("Add", ProviderClass::Cpu), ("MatMul", ProviderClass::Cpu)]
    {
        assert_eq!(stored(operator, provider), ("w: float32".to_owned(), 0), "{operator}, {provider:?}");
    }
}

#[test]
fn constants_of_other_forms_stay_as_they_are() {
    let sparse = AttributeProto { name: Some("sparse_value".to_owned()), ..Default::default() };
    let constant = NodeProto::of("Constant", "c", &[], &["c"], vec![sparse]);
    let nodes = vec![constant, node("MatMul", &["x", "w"], "a"), node("Add", &["a", "c"], "y")];
    let mut model = model(nodes, vec![weight("w", 0.5)]);
    model.graph.as_mut().unwrap().value_info.push(value("c", ElementType::Float32));
    let conversion = convert(model, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let graph = conversion.model.graph.as_ref().unwrap();
    let constant = graph.node.iter().find(|node| node.op_type() == "Constant").unwrap();
    assert_eq!(constant.attribute[0].name(), "sparse_value");
}

#[test]
fn weights_in_constant_nodes_are_weights() {
    let constant =
        NodeProto::of("Constant", "", &[], &["w"], vec![AttributeProto::of_tensor("value", weight("", 0.5))]);
    let nodes = vec![constant, node("MatMul", &["x", "w"], "y")];
    let conversion = convert(model(nodes, vec![]), &settings(Half::Fp16, ProviderClass::Cpu)).unwrap();
    assert_eq!(lines(&conversion), ["Cast<float32>(w) -> w_fp32", "MatMul(x, w_fp32) -> y"]);
    assert_eq!(conversion.report.weights.converted, 1024);
}

#[test]
fn an_older_model_is_raised_to_an_opset_that_has_bfloat16() {
    let at_opset = |opset| with_opset(model(vec![node("MatMul", &["x", "w"], "y")], vec![weight("w", 0.5)]), opset);
    let conversion = convert(at_opset(12), &settings(Half::Bf16, ProviderClass::Cuda)).unwrap();
    assert_eq!((conversion.model.opset(""), conversion.report.nodes_converted()), (Some(13), 1));
    assert_eq!(conversion.report.notes, ["the model was converted from opset 12 to 13"]);
    let old = convert(at_opset(5), &settings(Half::Fp16, ProviderClass::Cuda));
    assert!(matches!(old, Err(ConversionError::OpsetTooOld { has: 5, needed: 6, .. })), "{old:?}");
}

#[test]
fn an_output_whose_type_no_input_decides_stays_float32() {
    let norm = NodeProto::of("LayerNormalization", "", &["x", "s"], &["a", "mean"], vec![]);
    let nodes = vec![norm, node("Add", &["a", "mean"], "y")];
    let scale = TensorProto::of_floats("s", &[32], &[1.0; 32]);
    let conversion = convert(model(nodes, vec![scale]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let expected = ["LayerNormalization(x_fp16, s) -> a, mean", "Cast<float16>(mean) -> mean_fp16"];
    assert_eq!(lines(&conversion)[1..3], expected);
}

#[test]
fn what_has_no_half_precision_stays_behind_casts() {
    let kept = |nodes: Vec<NodeProto>, opset, target, provider| {
        let model = with_opset(model(nodes, vec![weight("w", 0.5)]), opset);
        lines(&convert(model, &settings(target, provider)).unwrap())
    };
    let fill = NodeProto::of("ConstantOfShape", "", &["n"], &["c"], vec![]);
    let nodes = vec![node("Shape", &["x"], "n"), fill, node("MatMul", &["c", "w"], "y")];
    let lines = kept(nodes, 17, Half::Bf16, ProviderClass::Cuda);
    assert_eq!(lines[1..3], ["ConstantOfShape(n) -> c", "Cast<bfloat16>(c) -> c_bf16"]);

    let nodes = vec![
        node("SplitToSequence", &["x"], "s"),
        node("ConcatFromSequence", &["s"], "a"),
        node("MatMul", &["x", "w"], "b"),
        node("Add", &["a", "b"], "y"),
    ];
    let lines = kept(nodes, 17, Half::Fp16, ProviderClass::Cuda);
    assert!(lines.contains(&"SplitToSequence(x) -> s".to_owned()), "{lines:?}");
    assert!(lines.contains(&"ConcatFromSequence(s) -> a".to_owned()), "{lines:?}");

    let adds = AttributeProto::of_text("reduction", "add");
    let scatter = NodeProto::of("ScatterND", "", &["w", "i", "x"], &["y"], vec![adds]);
    let nodes = vec![node("Shape", &["x"], "i"), scatter];
    let lines = kept(nodes, 18, Half::Fp16, ProviderClass::Cpu);
    assert_eq!(lines[..2], ["Cast<float32>(w) -> w_fp32", "Shape(x) -> i"]);

    let bits = NodeProto::of("BitCast", "", &["x"], &["y"], vec![AttributeProto::of_int("to", 6)]);
    let lines = kept(vec![node("MatMul", &["x", "w"], "z"), bits], 26, Half::Fp16, ProviderClass::Cuda);
    assert!(lines.contains(&"BitCast<int32>(x) -> y".to_owned()), "{lines:?}");
}

#[test]
fn sparse_weights_become_dense() {
    let sparse = |name: &str| SparseTensorProto {
        values: Some(TensorProto::of_floats(name, &[2], &[1.0, 2.0])),
        indices: Some(TensorProto::of_integers("", &[2], &[0, 5])),
        dims: vec![32, 32],
    };
    let value = AttributeProto {
        name: Some("sparse_value".to_owned()),
        sparse_tensor: Some(Box::new(sparse(""))),
        ..Default::default()
    };
    let constant = NodeProto::of("Constant", "", &[], &["v"], vec![value]);
    let nodes = vec![constant, node("MatMul", &["x", "w"], "a"), node("MatMul", &["a", "v"], "y")];
    let mut model = model(nodes, vec![]);
    model.graph.as_mut().unwrap().sparse_initializer.push(sparse("w"));
    for provider in [ProviderClass::Cpu, ProviderClass::Cuda] {
        let conversion = convert(model.clone(), &settings(Half::Fp16, provider)).unwrap();
        assert_eq!(weights(&conversion), ["w: float16", "v: float16"]);
        assert_eq!(conversion.report.weights.converted, 2048);
    }
}

#[test]
fn small_weights_are_why_nothing_is_converted_on_the_cpu() {
    let small = TensorProto::of_floats("w", &[4, 3, 1, 1], &[0.5; 12]);
    let nodes = vec![node("Conv", &["x", "w"], "a"), node("Relu", &["a"], "y")];
    let refused = convert(model(nodes.clone(), vec![small]), &settings(Half::Fp16, ProviderClass::Cpu)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "nothing in the model can be converted: 1 node of Conv (the CPU provider has no fp16 arithmetic, and its weights \
         have fewer than 256 elements: stored in fp16, they would save less than their cast takes), 1 node of Relu (the \
         CPU provider has no fp16 arithmetic)"
    );
    let large = TensorProto::of_floats("w", &[32, 8, 1, 1], &[0.5; 256]);
    let conversion = convert(model(nodes, vec![large]), &settings(Half::Fp16, ProviderClass::Cpu)).unwrap();
    assert_eq!(conversion.report.kept[0].reason, "the CPU provider has no fp16 arithmetic");
    let computed = vec![node("Relu", &["x"], "a"), node("MatMul", &["x", "a"], "y")];
    let refused = convert(model(computed, vec![]), &settings(Half::Fp16, ProviderClass::Cpu)).unwrap_err();
    assert!(!refused.to_string().contains("256"), "{refused}");
}

/// As exporters wrote `Relu6` before operator set 11.
fn relu6(has: i64, io: Option<NodeProto>) -> ModelProto {
    let bounds = [("min", 0.0), ("max", 6.0)].map(|(name, bound)| AttributeProto::of_float(name, bound));
    let clip = NodeProto::of("Clip", "relu6", &["a"], &["b"], bounds.to_vec());
    let mut nodes = vec![node("MatMul", &["x", "w"], "a"), clip, node("MatMul", &["b", "w"], "y")];
    nodes.extend(io);
    let mut model = model(nodes, vec![weight("w", 0.5)]);
    model.opset_import[0].version = Some(has);
    model
}

#[test]
fn an_old_clip_is_raised_for_cuda_or_stays_in_float32() {
    let settings = settings(Half::Fp16, ProviderClass::Cuda);
    let conversion = convert(relu6(10, None), &settings).unwrap();
    assert_eq!(conversion.model.opset(""), Some(13));
    assert!(lines(&conversion).contains(&"Clip(a, b_min, b_max) -> b".to_owned()), "{:?}", lines(&conversion));
    assert_eq!(conversion.report.kept, []);
    assert_eq!(conversion.report.notes, ["the model was converted from opset 10 to 13"]);
    // Nothing is gained where the kernel is there, nor on the CPU; bf16 needs 13 anyway, and has no such kernel.
    assert_eq!(convert(relu6_of_13(12), &settings).unwrap().model.opset(""), Some(12));
    let on_cpu = convert(relu6(10, None), &self::settings(Half::Fp16, ProviderClass::Cpu)).unwrap();
    assert_eq!(on_cpu.model.opset(""), Some(10));
    let bf16 = convert(relu6(10, None), &self::settings(Half::Bf16, ProviderClass::Cuda)).unwrap();
    assert_eq!(bf16.report.kept[0].reason, "the CUDA provider has no bf16 kernel for it");
    // What cannot be raised is converted around it, and is otherwise as it was.
    let experimental = NodeProto::of("ImageScaler", "", &["x"], &["unused"], vec![]);
    let conversion = convert(relu6(9, Some(experimental)), &settings).unwrap();
    assert_eq!(conversion.model.opset(""), Some(9));
    assert!(lines(&conversion).contains(&"Clip(a_fp32) -> b".to_owned()), "{:?}", lines(&conversion));
    let kept: Vec<_> = conversion.report.kept.iter().filter(|kept| kept.operator == "Clip").collect();
    assert_eq!(kept[0].reason, "the CUDA provider has no fp16 kernel for it");
}

fn relu6_of_13(has: i64) -> ModelProto {
    let mut model = relu6(has, None);
    let graph = model.graph.as_mut().unwrap();
    graph.node[1] = node("Clip", &["a", "min", "max"], "b");
    graph
        .initializer
        .extend([("min", 0.0), ("max", 6.0)].map(|(name, bound)| TensorProto::of_floats(name, &[], &[bound])));
    model
}

#[test]
fn what_only_moves_elements_needs_a_kernel_too() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Reshape", &["a", "image"], "b"),
        NodeProto::of("DepthToSpace", "up", &["b"], &["c"], vec![AttributeProto::of_int("blocksize", 2)]),
        node("Relu", &["c"], "y"),
    ];
    let image = TensorProto::of_integers("image", &[4], &[-1, 4, 2, 4]);
    let model = model(nodes, vec![weight("w", 0.5), image]);
    let bf16 = convert(model.clone(), &settings(Half::Bf16, ProviderClass::Cuda)).unwrap();
    assert!(lines(&bf16).contains(&"DepthToSpace(b_fp32) -> c".to_owned()), "{:?}", lines(&bf16));
    assert_eq!(bf16.report.kept[0].reason, "the CUDA provider has no bf16 kernel for it");
    let fp16 = convert(model, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert!(lines(&fp16).contains(&"DepthToSpace(b) -> c".to_owned()), "{:?}", lines(&fp16));
}

fn cast(input: &str, output: &str) -> NodeProto {
    NodeProto::of("Cast", output, &[input], &[output], vec![AttributeProto::of_int("to", 1)])
}

/// The angle of a position stays in float32 in both precisions and for every device; that of an activation is data.
#[test]
fn angles_of_positions_stay_in_float32() {
    let positions = TensorProto::of_integers("p", &[1, 32], &[4000; 32]);
    let with_angle = |angle: Vec<NodeProto>| {
        let rest = vec![node("Sin", &["a"], "s"), node("MatMul", &["x", "w"], "m"), node("Mul", &["m", "s"], "y")];
        model([angle, rest].concat(), vec![positions.clone(), weight("w", 0.5), weight("f", 0.01)])
    };
    let of_position = || with_angle(vec![cast("p", "q"), node("MatMul", &["q", "f"], "a")]);
    for (half, provider) in
        [(Half::Fp16, ProviderClass::Cuda), (Half::Bf16, ProviderClass::Cuda), (Half::Fp16, ProviderClass::Cpu)]
    {
        let conversion = convert(of_position(), &settings(half, provider)).unwrap();
        let lines = lines(&conversion);
        assert!(
            lines.contains(&"MatMul(q, f) -> a".to_owned()) && lines.contains(&"Sin(a) -> s".to_owned()),
            "{lines:?}"
        );
        assert!(weights(&conversion).contains(&"f: float32".to_owned()), "{half:?} {provider:?}");
    }
    let of_activation =
        with_angle(vec![node("Relu", &["x"], "r"), node("Mul", &["r", "r2"], "a"), node("Sigmoid", &["r"], "r2")]);
    let conversion = convert(of_activation, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert!(lines(&conversion).contains(&"Sin(a) -> s".to_owned()));
    assert!(conversion.report.kept.is_empty(), "{:?}", conversion.report.kept);
}

#[test]
fn a_square_is_a_square_however_it_is_written() {
    let square = vec![node("Mul", &["x", "x"], "q"), node("Sqrt", &["q"], "r"), node("MatMul", &["r", "w"], "y")];
    let conversion =
        convert(model(square, vec![weight("w", 0.5)]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let expected = ["Mul(x, x) -> q", "Sqrt(q) -> r", "Cast<float16>(r) -> r_fp16", "MatMul(r_fp16, w) -> y_fp16"];
    assert_eq!(lines(&conversion)[..4], expected);
}

/// What a small constant makes smaller than fp16 holds, a large one may bring back.
#[test]
fn weights_that_are_too_small_stay_and_what_follows_until_the_numbers_are_back() {
    let nodes = |last: &str| {
        let before = vec![node("MatMul", &["x", "w"], "a"), node("Relu", &["a"], "b"), node("Mul", &["b", last], "c")];
        [before, vec![node("MatMul", &["c", "v"], "y")]].concat()
    };
    let converted_with = |last: &str| {
        let weights = vec![weight("w", 1e-8), weight("v", 0.5), weight("large", 1e8)];
        convert(model(nodes(last), weights), &settings(Half::Fp16, ProviderClass::Cuda)).map(|it| lines(&it))
    };
    let expected = ["MatMul(x, w) -> a", "Relu(a) -> b", "Mul(b, large) -> c", "Cast<float16>(c) -> c_fp16"];
    assert_eq!(converted_with("large").unwrap()[..4], expected);
    assert!(converted_with("v").is_err(), "all of it stays");
    let epsilon =
        vec![node("MatMul", &["x", "v"], "a"), node("Add", &["a", "e"], "b"), node("MatMul", &["b", "v"], "y")];
    let model = model(epsilon, vec![weight("v", 0.5), weight("e", 1e-12)]);
    let conversion = convert(model, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert_eq!(conversion.report.converted["MatMul"], 2);
    assert!(conversion.report.kept[0].reason.contains("too small for fp16"));
}

#[test]
fn weights_in_blocks_are_why_their_nodes_stay() {
    let product = NodeProto::of("MatMulNBits", "", &["x", "w"], &["y"], vec![AttributeProto::of_int("block_size", 32)]);
    let product = NodeProto { domain: Some("com.microsoft".to_owned()), ..product };
    let refused = convert(model(vec![product], vec![]), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap_err();
    assert!(refused.to_string().contains("its weights are int4 in blocks of 32 already"), "{refused}");
}
