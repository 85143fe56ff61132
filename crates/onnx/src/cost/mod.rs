//! What one inference costs: multiplications, and bytes that its nodes read and write.
//!
//! Input: a model and what is known of its values. Output: a [`Cost`], as a whole and by operator. Deliberately absent:
//! time, memory at its peak, and what a runtime makes of the graph.
//!
//! Multiply-accumulates are counted as published tables count them: those of convolutions, products of matrices,
//! recurrent cells and attention; everything else counts 0, and so does what depends on weights alone, for a runtime
//! computes it once. Bytes are those of the graph as it stands, before any fusion: each distinct input and every output
//! of a node once; operators that only look at a shape, or give the same bytes another one, move nothing.

pub mod arithmetic;
mod macs;
mod moved;
pub(crate) mod parameters;
mod totals;

use super::infer::Inferred;
use super::proto::ModelProto;

pub use arithmetic::{Arithmetic, arithmetic};
pub use macs::macs_of_shapes;
pub use moved::Moved;
pub(super) use parameters::ParameterCount;

/// What one inference costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Multiply-accumulates; `None` where those of a node are unknown.
    pub macs: Option<u64>,
    /// Bytes that the nodes read and write; `None` where those of a node are unknown.
    pub bytes_moved: Option<u64>,
    /// What the nodes that multiply read and write at least; `None` where that of one is unknown.
    #[serde(skip)]
    pub products: Option<Moved>,
    /// Nodes whose cost is unknown, because shapes are, because nobody says what the operator does, or because nobody
    /// knows how often a loop runs (its body is counted once): the first few by their labels.
    pub unknown: Vec<String>,
    /// How many such nodes there are.
    pub unknown_nodes: u64,
    /// The branches of `If` that are counted, where others take other multiply-accumulates: the first few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// By operator, the most multiply-accumulates first, then the most nodes, then by name.
    pub operators: Vec<OperatorCost>,
}

/// A branch that is counted.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Branch {
    /// The node, by its label.
    pub node: String,
    /// The attribute: `then_branch`.
    pub branch: String,
    /// Whether the inputs decide for it; else it is the one that costs the most.
    pub is_taken: bool,
}

/// What the nodes of one operator cost together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OperatorCost {
    /// Its name, with its domain unless that is the standard's.
    pub operator: String,
    /// How many nodes there are, in graphs inside of nodes too.
    pub nodes: u64,
    /// Multiply-accumulates; `None` where those of a node are unknown.
    pub macs: Option<u64>,
    /// Bytes that they read and write; `None` where those of a node are unknown.
    pub bytes: Option<u64>,
}

/// What one inference of the model costs, with the shapes that were inferred.
///
/// `If` costs what the branch does that it takes, or the costlier one where the inputs do not decide, and a body as often as
/// it runs.
pub fn cost(model: &ModelProto, inferred: &Inferred) -> Cost {
    totals::of_model(model, inferred)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::parameters::parameters;
    use super::*;
    use crate::infer::infer;
    use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
    use crate::sample::{model_of, value_infos};
    use crate::{ResolvedTensor, load, read_header, resolve_inputs};

    fn node(operator: &str, inputs: &str, attribute: Vec<AttributeProto>) -> NodeProto {
        let names: Vec<&str> = inputs.split_whitespace().map(|word| word.split([':', '[']).next().unwrap()).collect();
        NodeProto::of(operator, "n", &names, &["y"], attribute)
    }

    fn cost_of(inputs: &str, nodes: Vec<NodeProto>) -> Cost {
        let model = model_of(17, inputs, "", vec![], nodes);
        cost(&model, &infer(&model, &[]))
    }

    fn macs(operator: &str, inputs: &str, attribute: Vec<AttributeProto>) -> Option<u64> {
        cost_of(inputs, vec![node(operator, inputs, attribute)]).macs
    }

    fn foreign(operator: &str, inputs: &str, attribute: Vec<AttributeProto>) -> Option<u64> {
        cost_of(inputs, vec![node(operator, inputs, attribute).in_domain("com.microsoft")]).macs
    }

    #[test]
    fn convolutions_multiply_every_place_with_a_kernel() {
        // The first convolution of ResNet-50: 118 million, as published tables have it.
        let first = vec![AttributeProto::of_ints("strides", &[2, 2]), AttributeProto::of_ints("pads", &[3, 3, 3, 3])];
        assert_eq!(macs("Conv", "x[1,3,224,224] w[64,3,7,7]", first), Some(64 * 112 * 112 * 3 * 7 * 7));
        let depthwise = vec![AttributeProto::of_int("group", 8)];
        assert_eq!(macs("Conv", "x[2,8,5,5] w[8,1,3,3]", depthwise), Some(2 * 8 * 3 * 3 * 9));
        assert_eq!(macs("ConvTranspose", "x[1,8,5,5] w[8,4,3,3]", vec![]), Some(8 * 5 * 5 * 4 * 9));
        let quantised = "x:uint8[1,3,5,5] a[] b:uint8[] w:int8[4,3,3,3] c[] d:int8[] e[] f:uint8[]";
        assert_eq!(macs("QLinearConv", quantised, vec![]), Some(4 * 3 * 3 * 27));
    }

    #[test]
    fn shapes_alone_say_what_a_node_multiplies() {
        let conv = [vec![1, 3, 224, 224], vec![64, 3, 7, 7]];
        assert_eq!(macs_of_shapes("Conv", &conv, &[vec![1, 64, 112, 112]]), Some(64 * 112 * 112 * 3 * 7 * 7));
        assert_eq!(macs_of_shapes("MatMul", &[vec![2, 3, 4], vec![4, 5]], &[vec![2, 3, 5]]), Some(2 * 3 * 5 * 4));
        assert_eq!(macs_of_shapes("Relu", &[vec![8]], &[vec![8]]), Some(0));
        assert_eq!(macs_of_shapes("Conv", &[], &[]), None);
    }

    #[test]
    fn shapes_of_attention_say_it_unless_a_value_decides() {
        assert_eq!(macs_of_shapes("Attention", &[vec![1, 2, 3]], &[vec![1, 2, 3]]), None);
        assert_eq!(macs_of_shapes("Attention", &[vec![1, 2, 3], vec![3, 9], vec![9]], &[vec![1, 2, 3]]), None);
        // As ONNX Runtime's profiler reports them: left-out inputs are not there.
        let (query, cache) = (vec![2, 8, 1, 32], vec![2, 2, 16, 32]);
        let fixed =
            macs_of_shapes("Attention", &[query.clone(), cache.clone(), cache, vec![2]], std::slice::from_ref(&query));
        assert_eq!(fixed, Some(2 * 2 * 8 * 32 * 16));
        let [new, past, present] = [1, 7, 8].map(|length| vec![2, 2, length, 32]);
        let inputs = [query.clone(), new.clone(), new, past.clone(), past.clone()];
        let grown = macs_of_shapes("Attention", &inputs, &[query, present.clone(), present.clone()]);
        assert_eq!(grown, Some(2 * 2 * 8 * 32 * 8));
        let grouped = |past: Vec<u64>, present: Vec<u64>| {
            let inputs = [vec![2, 1, 384], past.clone(), past, vec![2], vec![], vec![2048, 16], vec![2048, 16]];
            macs_of_shapes("GroupQueryAttention", &inputs, &[vec![2, 1, 256], present.clone(), present])
        };
        assert_eq!(grouped(past, present.clone()), Some(2 * 2 * 256 * 8));
        assert_eq!(grouped(present.clone(), present), None);
        assert_eq!(macs_of_shapes("GroupQueryAttention", &[vec![2, 1, 384]], &[vec![2, 1, 256]]), None);
    }

    #[test]
    fn products_multiply_rows_with_columns() {
        assert_eq!(macs("MatMul", "a[2,1,3,4] b[5,4,6]", vec![]), Some(2 * 5 * 3 * 4 * 6));
        assert_eq!(macs("MatMul", "a[4] b[4]", vec![]), Some(4));
        assert_eq!(macs("Gemm", "a[4,3] b[4,6]", vec![AttributeProto::of_int("transA", 1)]), Some(3 * 4 * 6));
        let equation = vec![AttributeProto::of_text("equation", "bid,bjd->bij")];
        assert_eq!(macs("Einsum", "a[2,3,4] b[2,5,4]", equation), Some(2 * 3 * 4 * 5));
        assert_eq!(foreign("FusedMatMul", "a[4,3] b[4,6]", vec![AttributeProto::of_int("transA", 1)]), Some(3 * 4 * 6));
        let packed = vec![AttributeProto::of_int("N", 32)];
        assert_eq!(foreign("MatMulNBits", "x[7,64] w:uint8[32,2,16]", packed), Some(7 * 64 * 32));
        assert_eq!(foreign("MoE", "x[7,64]", vec![]), None);
    }

    #[test]
    fn cells_and_attention_multiply_what_they_are_made_of() {
        assert_eq!(macs("LSTM", "x[6,2,8] w[1,64,8] r[1,64,16]", vec![]), Some(6 * 2 * 64 * (8 + 16)));
        let attention = foreign("Attention", "x[2,7,64] w[64,192] b[192]", vec![]);
        assert_eq!(attention, Some(2 * 7 * 64 * 192 + 2 * 2 * 7 * 7 * 64));
        assert_eq!(foreign("MultiHeadAttention", "q[2,7,64] k[2,9,64] v[2,9,64]", vec![]), Some(2 * 2 * 7 * 9 * 64));
        let heads = vec![AttributeProto::of_int("num_heads", 8), AttributeProto::of_int("kv_num_heads", 2)];
        let grouped = |inputs: &str| foreign("GroupQueryAttention", inputs, heads.clone());
        assert_eq!(grouped("q[1,5,128] k[1,5,32] v[1,5,32]"), Some(2 * 5 * 5 * 128));
        assert_eq!(grouped("q[1,5,128] k[1,5,32] v[1,5,32] p[1,2,7,16] r[1,2,7,16]"), Some(2 * 5 * (5 + 7) * 128));
        let whole = macs("Attention", "q[2,8,5,16] k[2,2,64,16] v[2,2,64,16]", vec![]);
        assert_eq!(whole, Some(2 * 2 * 8 * 5 * 16 * 64));
    }

    #[test]
    fn bytes_are_those_of_distinct_inputs_and_outputs() {
        let square = cost_of("x[2,3]", vec![NodeProto::of("Mul", "n", &["x", "x"], &["y"], vec![])]);
        assert_eq!((square.bytes_moved, square.macs), (Some(2 * 6 * 4), Some(0)));
        let flat = cost_of("x[2,3]", vec![node("Flatten", "x", vec![])]);
        assert_eq!(flat.bytes_moved, Some(0));
        let rows = cost_of("t[30000,8] i:int64[4]", vec![node("Gather", "t i", vec![])]);
        assert_eq!(rows.bytes_moved, Some(2 * 4 * 8 * 4 + 4 * 8), "four rows, not the table");
        let unknown = cost_of("x[N,3] w[3,4]", vec![node("MatMul", "x w", vec![])]);
        assert_eq!((unknown.macs, unknown.bytes_moved, unknown.unknown_nodes), (None, None, 1));
        assert_eq!(unknown.unknown, ["n"]);
    }

    #[test]
    fn what_weights_alone_give_is_computed_once() {
        let weights = ["a", "b"].map(|name| TensorProto::of_floats(name, &[8, 8], &[1.0; 64]));
        let nodes = vec![
            NodeProto::of("MatMul", "", &["a", "b"], &["c"], vec![]),
            NodeProto::of("MatMul", "", &["x", "c"], &["y"], vec![]),
        ];
        let model = model_of(17, "x[1,8]", "", weights.to_vec(), nodes);
        let cost = cost(&model, &infer(&model, &[]));
        assert_eq!(cost.macs, Some(64));
        assert_eq!(cost.operators.iter().map(|operator| operator.nodes).collect::<Vec<_>>(), [2]);
    }

    fn body(inputs: &str, operator: &str, operands: &[&str], outputs: &str) -> GraphProto {
        let identity = NodeProto::of("Identity", "", &["c"], &["go"], vec![]);
        let step = NodeProto::of(operator, "", operands, &["b"], vec![]);
        let node = if inputs.is_empty() { vec![step] } else { vec![identity, step] };
        GraphProto { node, input: value_infos(inputs), output: value_infos(outputs), ..Default::default() }
    }

    #[test]
    fn a_branch_counts_if_it_is_taken_or_costs_more() {
        let branch_of =
            |name: &str, operator: &str| AttributeProto::of_graph(name, body("", operator, &["x", "x"], "b[...]"));
        let branches = vec![branch_of("then_branch", "Add"), branch_of("else_branch", "MatMul")];
        let open = cost_of("c:bool[] x[4,4]", vec![node("If", "c", branches.clone())]);
        let branch =
            |branch: &str, is_taken: bool| Branch { node: "n".to_owned(), branch: branch.to_owned(), is_taken };
        assert_eq!((open.macs, open.branches), (Some(64), vec![branch("else_branch", false)]));
        let taken = |value: i64| {
            let model = model_of(17, "c:bool[] x[4,4]", "", vec![], vec![node("If", "c", branches.clone())]);
            let element = crate::ElementType::Bool;
            let integers = Some(value..value + 1);
            let given = ResolvedTensor { name: "c".to_owned(), element, shape: vec![], integers, is_counted: false };
            let cost = cost(&model, &infer(&model, &[given]));
            (cost.macs, cost.branches)
        };
        assert_eq!(taken(1), (Some(0), vec![branch("then_branch", true)]));
        assert_eq!(taken(0), (Some(64), vec![branch("else_branch", true)]));
        // Nothing is said of branches that cost the same.
        let same = vec![branch_of("then_branch", "Add"), branch_of("else_branch", "Sub")];
        assert_eq!(cost_of("c:bool[] x[4,4]", vec![node("If", "c", same)]).branches, []);
    }

    #[test]
    fn a_body_counts_as_often_as_it_runs() {
        let inside = body("i:int64[] c:bool[] a[4,4]", "MatMul", &["a", "x"], "go:bool[] b[...]");
        let repeat =
            NodeProto::of("Loop", "l", &["n", "", "x"], &["y"], vec![AttributeProto::of_graph("body", inside)]);
        let unknown = cost_of("n:int64[] x[4,4]", vec![repeat.clone()]);
        assert_eq!((unknown.macs, unknown.unknown), (Some(64), vec!["l".to_owned()]));
        let times = TensorProto::of_integers("n", &[], &[10]);
        let model = model_of(17, "x[4,4]", "", vec![times], vec![repeat]);
        assert_eq!(cost(&model, &infer(&model, &[])).macs, Some(640));
    }

    #[test]
    fn a_committed_model_costs_what_its_layers_do() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/models/digits-cnn.onnx");
        let (model, header) = (load(path.as_ref()).unwrap(), read_header(path.as_ref()).unwrap());
        let inputs = |batch: u64| {
            resolve_inputs(&header.signature, &crate::sample::point(&[("batch", batch)], &[])).unwrap().tensors
        };
        let of_batch = |batch: u64| cost(&model, &infer(&model, &inputs(batch)));
        let (single, pair) = (of_batch(1), of_batch(2));
        assert_eq!(single.macs.map(|macs| macs * 2), pair.macs);
        assert_eq!((single.operators[0].operator.as_str(), single.unknown_nodes), ("Conv", 0));
        assert_eq!(parameters(&model), header.parameters);
    }
}
