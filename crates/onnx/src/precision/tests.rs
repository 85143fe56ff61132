use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};

const OPERATORS: [&str; 32] = [
    "Conv",
    "MatMul",
    "Gemm",
    "Gather",
    "LSTM",
    "BatchNormalization",
    "Relu",
    "Clip",
    "Add",
    "Mul",
    "Concat",
    "MaxPool",
    "Transpose",
    "Reshape",
    "Unsqueeze",
    "Squeeze",
    "Identity",
    "Softmax",
    "Dropout",
    "Slice",
    "ConstantOfShape",
    "Upsample",
    "Cast",
    "Expand",
    "Tile",
    "Split",
    "Pad",
    "Where",
    "Pow",
    "ReduceMean",
    "QuantizeLinear",
    "DequantizeLinear",
];

fn plain() -> impl Strategy<Value = NodeProto> {
    let name = prop::sample::select(vec!["", "x", "a", "b", "c", "w1", "w2", "w3", "w4", "i", "y"]);
    let outputs = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "y", ""]), 0..3);
    let attribute = prop::sample::select(vec!["axis", "transA", "transB", "axes", "group", "layout", "perm", "to"]);
    let attributes = prop::collection::vec((attribute, -2_i64..3), 0..2);
    (prop::sample::select(OPERATORS.to_vec()), prop::collection::vec(name, 0..5), outputs, attributes).prop_map(
        |(operator, inputs, outputs, attributes)| {
            let attributes = attributes.into_iter().map(|(name, value)| match name {
                "axes" | "perm" => AttributeProto::of_ints(name, &[value, 0]),
                _ => AttributeProto::of_int(name, value),
            });
            NodeProto::of(operator, "", &inputs, &outputs, attributes.collect())
        },
    )
}

/// A product or lookup with a large weight, which every conversion takes or would like to.
fn product() -> impl Strategy<Value = NodeProto> {
    let (operator, left, right, output) =
        (vec!["MatMul", "Gemm"], vec!["x", "a", "b"], vec!["w4", "c"], vec!["a", "y"]);
    let select = prop::sample::select::<&str>;
    (select(operator), select(left), select(right), select(output))
        .prop_map(|(operator, left, right, output)| NodeProto::of(operator, "", &[left, right], &[output], vec![]))
}

fn value(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), ..Default::default() }
}

fn weight(name: &str, shape: &[u64]) -> TensorProto {
    let elements = shape.iter().product::<u64>() as usize;
    TensorProto::of_floats(name, shape, &vec![0.5; elements])
}

/// Nodes of which some hold branches or a body, so many deep.
fn nodes(depth: u32) -> BoxedStrategy<Vec<NodeProto>> {
    let plain = prop_oneof![3 => plain(), 1 => product()];
    if depth == 0 {
        return prop::collection::vec(plain, 0..6).boxed();
    }
    let holder = prop::sample::select(vec!["If", "Loop", "Scan", "BeamSearch"]);
    let holder = (holder, inner(depth - 1), inner(depth - 1)).prop_map(|(operator, first, second)| {
        let graphs = match operator {
            "If" => {
                vec![AttributeProto::of_graph("then_branch", first), AttributeProto::of_graph("else_branch", second)]
            }
            _ => vec![AttributeProto::of_graph("body", first)],
        };
        let node = NodeProto::of(operator, "", &["x", "a"], &["b"], graphs);
        if operator == "BeamSearch" { node.in_domain("com.microsoft") } else { node }
    });
    prop::collection::vec(prop_oneof![3 => plain, 1 => holder], 0..6).boxed()
}

fn inner(depth: u32) -> impl Strategy<Value = GraphProto> {
    let names = || prop::collection::vec(prop::sample::select(vec!["a", "b", "x", "w4", "w5"]), 0..3);
    (nodes(depth), names(), names(), names()).prop_map(|(node, weights, inputs, outputs)| GraphProto {
        node,
        initializer: weights
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .map(|it| weight(it, &[128, 130]))
            .collect(),
        input: inputs.into_iter().collect::<BTreeSet<_>>().into_iter().map(value).collect(),
        output: outputs.into_iter().map(value).collect(),
        ..Default::default()
    })
}

fn model() -> impl Strategy<Value = ModelProto> {
    (nodes(2), 7_i64..18, 0_u64..4).prop_map(|(nodes, opset, size)| {
        let graph = GraphProto {
            node: nodes,
            initializer: vec![
                weight("w1", &[size]),
                weight("w2", &[size, 2]),
                weight("w3", &[2, 1, size]),
                weight("w4", &[128, 130]),
                TensorProto::of_integers("i", &[2], &[2, -1]),
            ],
            input: vec![value("x")],
            output: vec![value("y")],
            ..Default::default()
        };
        let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
        model.import("", opset);
        model
    })
}

/// What every conversion makes of a model, if it takes it.
fn conversions(model: &ModelProto) -> Vec<Conversion> {
    let half = HalfSettings { target: Half::Fp16, io: Io::Keep, keep: Keep::default(), provider: ProviderClass::Cuda };
    let outcomes = [
        quantize_dynamic(model.clone(), &DynamicQuantization { convolutions: true, ..Default::default() }),
        quantize_blocks(model.clone(), &BlockQuantization::default()),
        prepare_static(model.clone()).and_then(|prepared| {
            let names = prepared.to_calibrate()?;
            let ranges = names.into_iter().map(|name| (name, activation_ranges::Range::new(-1.0, 1.0)));
            prepared.quantize(&ranges.collect::<BTreeMap<_, _>>(), &StaticQuantization::default())
        }),
        to_half(model.clone(), &crate::infer::infer(model, &[]), &half),
    ];
    outcomes.into_iter().flatten().collect()
}

/// Makes a graph valid as far as names go, and float32: what is read is there, and no name is given twice; two branches may
/// have the same. `known` are the current names of values.
fn repair(graph: &mut GraphProto, known: &HashMap<String, String>, taken: &HashSet<String>) {
    let (mut known, mut taken) = (known.clone(), taken.clone());
    let mut define = |known: &mut HashMap<String, String>, name: &mut String| {
        let mut new = name.clone();
        while !taken.insert(new.clone()) {
            new.push('\'');
        }
        known.insert(name.clone(), new.clone());
        *name = new;
        taken.clone()
    };
    let inputs: HashSet<String> = graph.input.iter().map(|input| input.name().to_owned()).collect();
    graph.initializer.retain(|tensor| !inputs.contains(tensor.name()));
    let given = graph.input.iter_mut().map(|input| &mut input.name);
    for name in given.chain(graph.initializer.iter_mut().map(|tensor| &mut tensor.name)).flatten() {
        define(&mut known, name);
    }
    let read = |known: &HashMap<String, String>, name: &str| known.get(name).unwrap_or(&known["x"]).clone();
    graph.node.retain(|node| !node.op_type().ends_with("uantizeLinear"));
    for node in &mut graph.node {
        node.input.iter_mut().filter(|name| !name.is_empty()).for_each(|name| *name = read(&known, name));
        // No operator but one that holds graphs has a second output for sure.
        node.output.truncate(1);
        let mut outer = known.clone();
        let mut all = HashSet::new();
        for name in node.output.iter_mut().filter(|name| !name.is_empty()) {
            all = define(&mut outer, name);
        }
        all.extend(known.values().cloned());
        node.graphs_mut().for_each(|inner| repair(inner, &known, &all));
        known = outer;
    }
    // The result is made of everything, so that nothing is dead.
    let made = graph.node.iter().flat_map(|node| &node.output).chain([&known["x"]]);
    let made: Vec<&str> = made.map(String::as_str).filter(|name| !name.is_empty()).collect();
    let result = format!("result_{}", taken.len());
    graph.output = vec![value(&result)];
    graph.node.push(NodeProto::of("Sum", "", &made, &[&result], vec![]));
}

/// What is wrong with the names of a graph: something is read before it is there, or given twice.
fn wrong_names(graph: &GraphProto, around: &HashSet<String>) -> Vec<String> {
    let (mut known, mut wrong) = (around.clone(), Vec::new());
    let define = |known: &mut HashSet<String>, wrong: &mut Vec<String>, name: &str| {
        if !name.is_empty() && !known.insert(name.to_owned()) {
            wrong.push(format!("{name} is there twice"));
        }
    };
    graph.given().for_each(|name| define(&mut known, &mut wrong, name));
    for node in &graph.node {
        let unknown = node.input.iter().filter(|name| !name.is_empty() && !known.contains(*name));
        wrong.extend(unknown.map(|name| format!("{} reads {name}, which is not there", node.label())));
        for inner in node.graphs() {
            // Other domains' operators may hide names, and find theirs by them.
            let made = inner.node.iter().flat_map(|node| &node.output).map(String::as_str).chain(inner.given());
            let own: HashSet<&str> = made.filter(|_| !node.is_standard()).collect();
            let around = known.iter().filter(|name| !own.contains(name.as_str())).cloned().collect();
            wrong.extend(wrong_names(inner, &around));
        }
        node.output.iter().for_each(|name| define(&mut known, &mut wrong, name));
    }
    let outputs = graph.output.iter().filter(|output| !known.contains(output.name()));
    wrong.extend(outputs.map(|output| format!("the result {} is not there", output.name())));
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A conversion converts every graph, or says why not.
    #[test]
    fn no_graph_is_too_odd(model in model()) {
        for conversion in conversions(&model) {
            prop_assert!(conversion.report.nodes_converted() > 0 || conversion.report.weights.converted > 0);
            let outputs = conversion.model.graph.iter().map(|graph| graph.output.len());
            prop_assert_eq!(outputs.collect::<Vec<_>>(), [1]);
        }
    }

    /// Where every value that is read is there, so it is after a conversion, in each branch.
    #[test]
    fn values_of_one_branch_stay_in_it(mut model in model()) {
        let graph = model.graph.get_or_insert_default();
        repair(graph, &HashMap::from([("x".to_owned(), "x".to_owned())]), &HashSet::new());
        prop_assert_eq!(wrong_names(graph, &HashSet::new()), Vec::<String>::new());
        model.opset_import[0].version = Some(17);
        for conversion in conversions(&model) {
            let wrong = conversion.model.graph.iter().flat_map(|graph| wrong_names(graph, &HashSet::new()));
            prop_assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
        }
    }
}
