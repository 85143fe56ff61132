//! What stays in float32 for the sake of what reads it.

use super::*;

/// The nodes of a model in fp16 for CUDA, which must have these among them.
fn expect(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, expected: &[&str]) {
    let conversion = convert(model(nodes, weights), &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    let lines = lines(&conversion);
    for line in expected {
        assert!(lines.iter().any(|found| found == line), "no {line} in {lines:?}");
    }
}

fn number(name: &str, value: f32) -> TensorProto {
    TensorProto::of_floats(name, &[1], &[value])
}

/// The sizes of the input as float32: `f`.
fn counted() -> Vec<NodeProto> {
    vec![node("Shape", &["x"], "n"), cast("n", "f")]
}

#[test]
fn what_keeps_a_divisor_from_zero_is_no_zero_itself() {
    let nodes = |guarded: &str| {
        let before = vec![node("MatMul", &["x", "w"], "a"), node(guarded, &["a", "e"], "b")];
        [before, vec![node("Div", &["a", "b"], "c"), node("MatMul", &["c", "w"], "y")]].concat()
    };
    for guarded in ["Add", "Max"] {
        let expected = [&format!("{guarded}(a_fp32, e) -> b"), "Div(a_fp32, b) -> c", "Cast<float16>(c) -> c_fp16"];
        expect(nodes(guarded), vec![weight("w", 0.5), number("e", 1e-8)], &expected);
    }
}

#[test]
fn indices_and_sizes_are_whole_numbers_again() {
    let index = vec![
        node("Mul", &["f", "k"], "g"),
        node("Floor", &["g"], "h"),
        NodeProto::of("Cast", "i", &["h"], &["i"], vec![AttributeProto::of_int("to", 7)]),
        node("Gather", &["w", "i"], "t"),
        node("Equal", &["f", "k"], "c"),
        node("MatMul", &["x", "w"], "y"),
    ];
    let expected = ["Mul(f, k) -> g", "Floor(g) -> h", "Cast<int64>(h) -> i", "Equal(f, k) -> c"];
    expect([counted(), index].concat(), vec![weight("w", 0.5), number("k", 1.5)], &expected);
    // A comparison of data is none of counts.
    let data =
        vec![node("MatMul", &["x", "w"], "a"), node("Greater", &["a", "k"], "b"), node("Where", &["b", "a", "k"], "y")];
    expect(data, vec![weight("w", 0.5), number("k", 1.5)], &["Greater(a, k) -> b"]);
}

#[test]
fn a_logarithm_reads_probabilities_and_quotients_in_float32() {
    let nodes = |probability: Vec<NodeProto>| {
        let before = vec![node("MatMul", &["x", "w"], "a"), node("Softmax", &["a"], "b")];
        [before, probability, vec![node("Log", &["c"], "d"), node("MatMul", &["d", "w"], "y")]].concat()
    };
    let expected = ["Softmax(a_fp32) -> b", "Log(c) -> d", "Cast<float16>(d) -> d_fp16"];
    expect(nodes(vec![node("Identity", &["b"], "c")]), vec![weight("w", 0.5)], &expected);
    let odds = vec![node("Sub", &["k", "b"], "o"), node("Div", &["b", "o"], "c")];
    let expected = ["Softmax(a_fp32) -> b", "Sub(k, b) -> o", "Div(b, o) -> c", "Log(c) -> d"];
    expect(nodes(odds), vec![weight("w", 0.5), number("k", 1.0)], &expected);
}

#[test]
fn sums_of_many_numbers_stay_until_they_are_divided() {
    let nodes = || {
        let sum = vec![node("MatMul", &["x", "w"], "a"), node("ReduceSum", &["a", "axes"], "b")];
        [sum, vec![node("Div", &["a", "b"], "c"), node("MatMul", &["c", "w"], "y")]].concat()
    };
    let axes = |axis: i64| vec![weight("w", 0.5), TensorProto::of_integers("axes", &[1], &[axis])];
    expect(nodes(), axes(-1), &["ReduceSum(a, axes) -> b", "Div(a, b) -> c"]);
    // The size of the batch is unknown.
    expect(nodes(), axes(0), &["ReduceSum(a_fp32, axes) -> b", "Div(a_fp32, b) -> c"]);

    let adds = AttributeProto::of_text("reduction", "add");
    let scatter = NodeProto::of("ScatterND", "", &["a", "n", "a"], &["y"], vec![adds]);
    let nodes = vec![node("MatMul", &["x", "w"], "a"), node("Shape", &["x"], "n"), scatter];
    expect(nodes, vec![weight("w", 0.5)], &["ScatterND(a_fp32, n, a_fp32) -> y"]);
}

#[test]
fn a_square_is_one_under_another_name() {
    let squared = |square: Vec<NodeProto>| {
        let before = vec![node("MatMul", &["x", "w"], "h")];
        [before, square, vec![node("Sqrt", &["q"], "r"), node("MatMul", &["r", "w"], "y")]].concat()
    };
    let weights = || vec![weight("w", 0.5), weight("m", 0.1)];
    let twice = vec![node("Sub", &["h", "m"], "d"), node("Sub", &["h", "m"], "e"), node("Mul", &["d", "e"], "q")];
    expect(squared(twice), weights(), &["Mul(d_fp32, e_fp32) -> q", "Sqrt(q) -> r"]);
    let magnitude = vec![node("Abs", &["h"], "d"), node("Mul", &["h", "d"], "q")];
    expect(squared(magnitude), weights(), &["Mul(h_fp32, d_fp32) -> q", "Sqrt(q) -> r"]);
    let scaled = vec![node("Mul", &["h", "k"], "d"), node("Mul", &["h", "d"], "q")];
    let with_number = || [weights(), vec![number("k", 2.0)]].concat();
    expect(squared(scaled), with_number(), &["Mul(h_fp32, d_fp32) -> q", "Sqrt(q) -> r"]);
    let gated = vec![node("Sigmoid", &["h"], "s"), node("Mul", &["h", "s"], "d"), node("Mul", &["d", "h"], "q")];
    expect(squared(gated), weights(), &["Mul(d_fp32, h_fp32) -> q", "Sqrt(q) -> r"]);
    let bounded = vec![node("Mul", &["h", "h"], "d"), node("Relu", &["d"], "q")];
    expect(squared(bounded), weights(), &["Mul(h_fp32, h_fp32) -> d", "Relu(d) -> q", "Sqrt(q) -> r"]);
    let product = vec![node("Transpose", &["h"], "d"), node("MatMul", &["h", "d"], "q")];
    expect(squared(product), weights(), &["MatMul(h_fp32, d_fp32) -> q", "Sqrt(q) -> r"]);
    // Two parts of one product are two values, as queries and keys are.
    let parts = NodeProto::of("Split", "split", &["h"], &["d", "e"], vec![]);
    expect(squared(vec![parts, node("Mul", &["d", "e"], "q")]), weights(), &["Mul(d, e) -> q", "Sqrt(q) -> r"]);
}

#[test]
fn a_gemm_with_a_large_factor_gives_float32() {
    let nodes = |alpha: f32| {
        let product = NodeProto::of("Gemm", "", &["x", "w"], &["a"], vec![AttributeProto::of_float("alpha", alpha)]);
        vec![node("MatMul", &["x", "w"], "h"), product, node("Div", &["a", "k"], "b"), node("MatMul", &["b", "w"], "y")]
    };
    let weights = || vec![weight("w", 0.5), number("k", 1e6)];
    expect(nodes(1e6), weights(), &["Gemm(x, w) -> a", "Div(a, k) -> b"]);
}

#[test]
fn the_square_of_a_mean_is_taken_away_in_float32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "h"),
        node("ReduceMean", &["h"], "m"),
        node("Mul", &["h", "h"], "q"),
        node("ReduceMean", &["q"], "s"),
        node("Mul", &["m", "m"], "n"),
        node("Sub", &["s", "n"], "v"),
        node("Sqrt", &["v"], "r"),
        node("MatMul", &["r", "w"], "y"),
    ];
    let expected = ["ReduceMean(h_fp32) -> m", "Mul(m, m) -> n", "Sub(s, n) -> v"];
    expect(nodes, vec![weight("w", 0.5)], &expected);
}

#[test]
fn coordinates_are_made_in_float32() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "a"),
        node("Mul", &["a", "k"], "g"),
        node("Reshape", &["g", "shape"], "h"),
        node("GridSample", &["image", "h"], "y"),
    ];
    let image = TensorProto::of_floats("image", &[1, 1, 4, 4], &[0.5; 16]);
    let shape = TensorProto::of_integers("shape", &[4], &[1, -1, 16, 2]);
    let expected = ["Mul(a_fp32, k) -> g", "Reshape(g, shape) -> h"];
    expect(nodes, vec![weight("w", 0.5), number("k", 2.0), image, shape], &expected);
}

#[test]
fn an_angle_is_one_of_positions_around_its_graph() {
    let branch = |operator: &str, output: &str| GraphProto {
        name: Some(output.to_owned()),
        node: vec![node(operator, &["a"], output)],
        output: vec![value(output, ElementType::Float32)],
        ..Default::default()
    };
    let attributes = vec![
        AttributeProto::of_graph("then_branch", branch("Sin", "t")),
        AttributeProto::of_graph("else_branch", branch("Cos", "e")),
    ];
    let angle = vec![
        node("Mul", &["f", "k"], "a"),
        node("MatMul", &["x", "w"], "z"),
        NodeProto::of("If", "if", &["condition"], &["y"], attributes),
    ];
    let condition = TensorProto::of_bytes("condition", &ElementType::Bool, &[], vec![1]);
    let weights = vec![weight("w", 0.5), number("k", 0.01), condition];
    let model = model([counted(), angle].concat(), weights);
    let conversion = convert(model, &settings(Half::Fp16, ProviderClass::Cuda)).unwrap();
    assert!(lines(&conversion).contains(&"Mul(f, k) -> a".to_owned()), "{:?}", lines(&conversion));
    let graph = conversion.model.graph.as_ref().unwrap();
    let inner = graph.node.last().unwrap().graphs().flat_map(|graph| &graph.node);
    assert_eq!(inner.map(|node| node.input.join(", ")).collect::<Vec<_>>(), ["a", "a"]);
}
