//! Which nodes of a model are meant by a name, if it is one that ONNX Runtime made of theirs.
//!
//! Input: a name, as the file or a profile has it, and the graphs of the model. Output: a [`Picked`]: one node, or the few
//! that ONNX Runtime executes as one. Deliberately absent: fusions whose names hold none of the model's (`Gelu_token_0`).
//!
//! The names are those of ONNX Runtime 1.25 to 1.32 on processors. In a quantised model the `DequantizeLinear` and
//! `QuantizeLinear` around a node belong to it, since they are executed with it wherever there is a kernel for that.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::levels::{Level, Wiring, executed_name};
use crate::proto::NodeProto;

/// What stands in front of the names of nodes of the model's own functions.
const OF_FUNCTION: &str = "_inlfunc_";

/// Nodes that ONNX Runtime adds are called so; what follows is a value that they convert.
const ADDED: [&str; 2] = ["InsertedPrecisionFreeCast_", "Memcpy"];

const ACTIVATIONS: &[&str] =
    &["Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "ThresholdedRelu", "Elu", "Softplus"];

/// What ONNX Runtime executes as one with a node.
struct Fusion {
    /// What the name holds, which else is that of the node; or the operator, in the file or as it is executed.
    mark: &'static str,
    /// Operators that stand behind it, one after the other; each may be missing.
    after: &'static [&'static [&'static str]],
    /// Operators that stand before it, as long as nothing else reads them.
    before: &'static [&'static str],
    /// Those that the search backwards ends at.
    first: &'static [&'static str],
}

impl Fusion {
    const fn of(mark: &'static str) -> Self {
        Fusion { mark, after: &[], before: &[], first: &[] }
    }
}

const FUSIONS: [Fusion; 9] = [
    Fusion {
        before: &["Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "BatchNormalization", "Add", "Mul"],
        first: &["Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Resize", "Upsample"],
        ..Fusion::of("_nchwc")
    },
    Fusion { before: &["Transpose"], ..Fusion::of("/MatmulTransposeFusion") },
    Fusion { after: &[&["Mul", "Div"]], before: &["Mul", "Div"], ..Fusion::of("/MatMulScaleFusion") },
    Fusion { after: &[&["Add"]], ..Fusion::of("/MatMulAddFusion") },
    Fusion { after: &[ACTIVATIONS], ..Fusion::of("fused ") },
    Fusion { after: &[&["BatchNormalization"], ACTIVATIONS], ..Fusion::of("FusedConv") },
    Fusion {
        after: &[&["Add"]],
        before: &["Div", "Sqrt", "Add", "ReduceMean", "Pow", "Sub"],
        ..Fusion::of("/LayerNormFusion")
    },
    Fusion { before: &["Mul", "Sigmoid"], ..Fusion::of("/QuickGeluFusion") },
    Fusion {
        after: &[&["Cast"], &["Mul"], &["Add"]],
        before: &["Mul"],
        first: &["DynamicQuantizeLinear"],
        ..Fusion::of("MatMulInteger")
    },
];

/// Nodes of one graph.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Picked {
    /// The graph, by its index.
    pub(super) level: usize,
    /// Their indices in it.
    pub(super) nodes: BTreeSet<usize>,
}

/// What a node is called.
#[derive(Clone, Copy)]
pub(super) struct Called<'n> {
    pub(super) name: &'n str,
    /// What it is executed as; may be empty.
    pub(super) operator: &'n str,
}

/// The node of that name: its own, that behind those that it stands in (`loop/add`), what it is called for want of a name
/// where its index `is_known`, or the name of what it makes.
pub(super) fn named(levels: &[Level<'_>], called: Called<'_>, is_known: bool) -> Option<Picked> {
    let Called { name, operator } = called;
    let has_index = |node: &NodeProto| is_known || !node.name().is_empty();
    let rank = |level: &Level<'_>, index: usize, node: &NodeProto| {
        let executed = executed_name(index, node);
        let matches = [
            node.name() == name,
            has_index(node) && name.strip_prefix(level.path.as_str()) == Some(executed.as_str()),
            has_index(node) && executed == name || node.label() == name,
            node.output.iter().any(|output| output == name),
        ];
        // Branches of one `If` may have nodes of one name.
        let has_other_operator = !operator.contains(node.op_type());
        Some((matches.iter().position(|matches| *matches)?, has_other_operator))
    };
    let position = best(levels, |level, index, node| rank(level, index, node).filter(|_| !name.is_empty()))?;
    Some(grown(levels, position, &[operator]))
}

/// The nodes that a name of ONNX Runtime's is made of: the longest name of a node or of a value that stands in it.
pub(super) fn fused(levels: &[Level<'_>], called: Called<'_>) -> Option<Picked> {
    if ADDED.iter().any(|added| called.name.starts_with(added)) {
        return None;
    }
    let name = without_number(called.name);
    let position = best(levels, |level, _, node| {
        // Behind the nodes that it stands in, whose names may be longer than its own.
        let within = name.strip_prefix(level.path.as_str());
        let (depth, name) = within.map_or((0, name), |rest| (level.path.len(), rest));
        let names = std::iter::once(node.name()).chain(node.output.iter().map(String::as_str));
        names
            .flat_map(|node_name| ends(node_name, name))
            .filter(|end| stands_in(name, end))
            .map(|end| Reverse((depth, end.len())))
            .min()
    })?;
    Some(grown(levels, position, &[name, called.operator]))
}

/// The first node of the least rank.
fn best<R: Ord + Copy>(
    levels: &[Level<'_>],
    rank: impl Fn(&Level<'_>, usize, &NodeProto) -> Option<R>,
) -> Option<(usize, usize)> {
    let ranked = levels.iter().enumerate().flat_map(|(level_index, level)| {
        let nodes = level.graph.node.iter().enumerate();
        let rank = &rank;
        nodes.filter_map(move |(index, node)| Some((rank(level, index, node)?, level_index, index)))
    });
    ranked.min_by_key(|(rank, ..)| *rank).map(|(_, level, index)| (level, index))
}

/// `conv` of `conv_token_7`: the number distinguishes it from other nodes of that name.
fn without_number(name: &str) -> &str {
    match name.rsplit_once("_token_") {
        Some((stem, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// The node's name, and for a node of a function what remains without the calls in front: `call/add`, `add`.
fn ends<'n>(node_name: &'n str, name: &str) -> impl Iterator<Item = &'n str> + use<'n> {
    let is_of_function = name.starts_with(OF_FUNCTION);
    std::iter::successors(Some(node_name), move |end| {
        end.split_once('/').map(|(_, end)| end).filter(|_| is_of_function)
    })
}

/// Whether `part` is a part of a name, and no piece of a longer word.
fn stands_in(name: &str, part: &str) -> bool {
    let is_apart = |(at, part): (usize, &str)| {
        let adjacent = [name[..at].chars().next_back(), name[at + part.len()..].chars().next()];
        !adjacent.into_iter().flatten().any(char::is_alphanumeric)
    };
    !part.is_empty() && name.match_indices(part).any(is_apart)
}

/// The node with those that are executed with it, by what it is called and by its operator.
fn grown(levels: &[Level<'_>], (level, index): (usize, usize), called: &[&str]) -> Picked {
    let wiring = Wiring::of(levels, level);
    let operator = wiring.operator(index);
    let mut nodes = BTreeSet::from([index]);
    let is_marked =
        |fusion: &&Fusion| operator == fusion.mark || called.iter().any(|called| called.contains(fusion.mark));
    for fusion in FUSIONS.iter().filter(is_marked) {
        for operators in fusion.after {
            add_after(&mut nodes, &wiring, operators, fusion.mark.ends_with("Fusion"));
        }
        add_before(&mut nodes, &wiring, fusion);
    }
    if !matches!(operator, "QuantizeLinear" | "DequantizeLinear") {
        add_quantization(&mut nodes, &wiring);
    }
    Picked { level, nodes }
}

/// Adds the `DequantizeLinear` of what is read, and the `QuantizeLinear` of what is made, with an activation between.
fn add_quantization(nodes: &mut BTreeSet<usize>, wiring: &Wiring<'_>) {
    let read: Vec<usize> = nodes.iter().flat_map(|node| wiring.before(*node)).collect();
    let before = nodes.len();
    nodes.extend(read.into_iter().filter(|node| wiring.operator(*node) == "DequantizeLinear"));
    if nodes.len() > before && !add_after(nodes, wiring, &["QuantizeLinear"], false) {
        let mut with_activation = nodes.clone();
        if add_after(&mut with_activation, wiring, ACTIVATIONS, false)
            && add_after(&mut with_activation, wiring, &["QuantizeLinear"], false)
        {
            *nodes = with_activation;
        }
    }
}

/// Adds what stands before, node by node, each of which nothing but these nodes reads.
fn add_before(nodes: &mut BTreeSet<usize>, wiring: &Wiring<'_>, fusion: &Fusion) {
    let fits = |index: usize| match wiring.operator(index) {
        operator @ ("Add" | "Mul") => fusion.before.contains(&operator) && wiring.has_constant(index),
        operator => fusion.before.contains(&operator) || fusion.first.contains(&operator),
    };
    loop {
        let open = nodes.iter().filter(|node| !fusion.first.contains(&wiring.operator(**node)));
        let before = open.flat_map(|node| wiring.before(*node)).filter(|node| !nodes.contains(node) && fits(*node));
        let is_read_here = |reader: &Option<usize>| reader.is_some_and(|reader| nodes.contains(&reader));
        let before: Vec<usize> = before.filter(|node| wiring.after(*node).flatten().all(is_read_here)).collect();
        if before.is_empty() {
            return;
        }
        nodes.extend(before);
    }
}

/// Adds the only node that reads what these nodes make, if it has one of these operators; returns whether it does. An
/// `Add` without a constant counts only if `is_named`: the name shows it.
fn add_after(nodes: &mut BTreeSet<usize>, wiring: &Wiring<'_>, operators: &[&str], is_named: bool) -> bool {
    let is_read_here = |reader: &Option<usize>| reader.is_some_and(|reader| nodes.contains(&reader));
    let values = nodes.iter().flat_map(|node| wiring.after(*node)).filter(|readers| !readers.iter().any(is_read_here));
    let readers: BTreeSet<Option<usize>> = values.flatten().copied().collect();
    let [Some(reader)] = readers.into_iter().collect::<Vec<_>>()[..] else { return false };
    let operator = wiring.operator(reader);
    let fits = operators.contains(&operator) && (operator != "Add" || is_named || wiring.has_constant(reader));
    if fits {
        nodes.insert(reader);
    }
    fits
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::levels::levels;
    use super::*;
    use crate::infer::Inferred;
    use crate::proto::TensorProto;
    use crate::sample::model_of;

    /// The nodes that a name stands for, among nodes as text: `conv: Conv x w -> c; relu: Relu c -> y`. What begins with
    /// `w` is a weight; only the last value leaves the graph. `conv as FusedConv` also gives the operator.
    fn found(text: &str, name: &str) -> String {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let node = |text: &str| {
            let (node_name, rest) = text.split_once(':').unwrap();
            let (read, made) = rest.split_once("->").unwrap();
            let mut read = words(read);
            let operator = read.remove(0);
            let named = NodeProto::of(&operator, node_name.trim(), &[], &[], vec![]);
            NodeProto { input: read, output: words(made), ..named }
        };
        let nodes: Vec<NodeProto> = text.split(';').map(node).collect();
        let output = format!("{}[1]", nodes.last().unwrap().output[0]);
        let stored = nodes.iter().flat_map(|node| &node.input).filter(|name| name.starts_with('w'));
        let stored = stored.map(|name| TensorProto::of_floats(name, &[], &[1.0])).collect();
        let model = model_of(17, "x[1]", &output, stored, nodes);
        let inferred = Inferred::default();
        let levels = levels(&model, &inferred);
        let (name, operator) = name.split_once(" as ").unwrap_or((name, ""));
        let called = Called { name, operator };
        let picked = named(&levels, called, true).or_else(|| fused(&levels, called));
        let node = |index: usize| executed_name(index, &model.graph.as_ref().unwrap().node[index]);
        picked.map_or_else(String::new, |picked| picked.nodes.into_iter().map(node).collect::<Vec<_>>().join(" "))
    }

    const CONVOLUTIONS: &str = "c1: Conv x w1 -> a; n1: BatchNormalization a w2 -> b; r1: Relu b -> c;
        c2: Conv c w3 -> d; add: Add d c -> e; : Relu e -> f; pool: MaxPool f -> g; c10: Conv g w4 -> h";

    #[test]
    fn a_name_is_a_nodes_own_before_it_is_one_that_was_made_of_it() {
        assert_eq!(found(CONVOLUTIONS, "c1"), "c1");
        assert_eq!(found(CONVOLUTIONS, "Relu_5"), "Relu_5");
        assert_eq!(found(CONVOLUTIONS, "Relu -> f"), "Relu_5");
        assert_eq!(found(CONVOLUTIONS, "e"), "add");
        assert_eq!(found(CONVOLUTIONS, "c10_token_3"), "c10");
        assert_eq!(found(CONVOLUTIONS, "c10/duplicated"), "c10");
        for none in ["c11", "Relu_4", "ReorderOutput", "InsertedPrecisionFreeCast_c", ""] {
            assert_eq!(found(CONVOLUTIONS, none), "", "{none}");
        }
    }

    #[test]
    fn convolutions_are_executed_with_what_follows_them_and_named_by_its_output() {
        assert_eq!(found(CONVOLUTIONS, "c_nchwc"), "c1 n1 r1");
        assert_eq!(found(CONVOLUTIONS, "d_nchwc"), "c2");
        assert_eq!(found(CONVOLUTIONS, "g_nchwc"), "pool");
        assert_eq!(found(CONVOLUTIONS, "fused c1"), "c1");
        for name in ["fused c1", "c1 as FusedConv"] {
            assert_eq!(found("c1: Conv x w1 -> a; r1: Relu a -> b", name), "c1 r1");
        }
        assert_eq!(found(CONVOLUTIONS, "c1 as FusedConv"), "c1 n1 r1");
        // Weights may be made of other weights.
        let scaled = "s: Unsqueeze w1 w2 -> s; c: Conv x w3 -> a; m: Mul a s -> b; r: Relu b -> y";
        assert_eq!(found(scaled, "y_nchwc"), "c m r");
    }

    #[test]
    fn products_are_executed_with_their_bias_scale_and_activation() {
        let dense = "m: MatMul x w1 -> a; b: Add a w2 -> c; r: Relu c -> d; s: Add d x -> e";
        assert_eq!(found(dense, "m"), "m");
        assert_eq!(found(dense, "m/MatMulAddFusion"), "m b");
        assert_eq!(found(dense, "fused m/MatMulAddFusion"), "m b r");
        assert_eq!(found("m: MatMul x w1 -> a; b: Add a x -> c", "m/MatMulAddFusion"), "m b");
        let scores = "t: Transpose x -> k; q: Mul x w1 -> s; m: MatMul s k -> a; d: Div a w2 -> b; e: Exp b -> y";
        assert_eq!(found(scores, "m/MatmulTransposeFusion"), "t m");
        assert_eq!(found(scores, "m/MatmulTransposeFusion//MatMulScaleFusion/"), "t q m d");
        // A value that is read elsewhere is there all the same.
        assert_eq!(found("m: MatMul x w1 -> a; b: Add a w2 -> c; s: Add a c -> e", "m/MatMulAddFusion"), "m");
    }

    #[test]
    fn normalisations_and_gates_are_found_by_their_last_product() {
        let norm = "r: Add x x -> h; m: ReduceMean h -> a; s: Sub h a -> b; p: Pow b w1 -> c; v: ReduceMean c -> d;
            e: Add d w2 -> f; q: Sqrt f -> g; d: Div b g -> i; scale: Mul i w3 -> j; shift: Add j w4 -> k; y: Add k h -> l";
        assert_eq!(found(norm, "scale/LayerNormFusion/"), "m s p v e q d scale shift");
        let gate = "n: Neg x -> a; m: Mul a w1 -> b; s: Sigmoid b -> c; o: Mul a c -> d";
        assert_eq!(found(gate, "o/QuickGeluFusion/"), "m s o");
    }

    #[test]
    fn quantization_belongs_to_what_it_is_executed_with() {
        let quantized = "i: DequantizeLinear x -> a; k: DequantizeLinear w1 -> b; c: Conv a b -> c1; r: Relu c1 -> d;
            q: QuantizeLinear d -> e; j: DequantizeLinear e -> f; s: Softmax f -> g; t: Exp g -> y";
        assert_eq!(found(quantized, "c"), "i k c r q");
        assert_eq!(found(quantized, "s"), "j s");
        assert_eq!(found(quantized, "q"), "q");
        let dynamic = "z: Mul x w1 -> h; q: DynamicQuantizeLinear h -> a sa za; m: MatMulInteger a w2 za w3 -> b;
            c: Cast b -> d; s: Mul sa w4 -> e; p: Mul d e -> f; b: Add f w5 -> g; r: Add g x -> y";
        assert_eq!(found(dynamic, "m"), "q m c s p b");
        let shared = dynamic.replace("g x -> y", "g sa -> y");
        assert_eq!(found(&shared, "m"), "m c s p b");
    }
}
