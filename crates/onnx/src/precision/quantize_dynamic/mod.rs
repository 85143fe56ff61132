//! 8-bit integers with activations quantised while the model runs: no calibration data are needed.
//!
//! Input: a float32 model. Output: the model with int8 weights, one scale for each output channel, in the form that ONNX
//! Runtime fuses: `DynamicQuantizeLinear`, `MatMulInteger`, `Cast` and `Mul` become its `MatMulIntegerToFloat`, with an
//! `Add` behind them. Matrix products with a constant right operand, embeddings and LSTMs are converted, convolutions on
//! request. Deliberately absent: element types and shapes of activations, for a product has the type of its weight.
//!
//! Convolutions stay in float32 unless asked for. The only integer convolution of ONNX Runtime's CPU provider without
//! calibrated ranges is `ConvInteger`, which wants one zero point for all channels. Against the float32 kernel of 1.31.1,
//! with AVX-512 VNNI and two threads, it took 1.2 to 2.8 times as long with unsigned weights and 8 to 30 times as long
//! with signed ones, while statically quantised convolutions took a third. So it is made with unsigned weights around 128.
//!
//! Source: the standard's `DynamicQuantizeLinear` and `MatMulInteger`; `onnxruntime.quantization.quantize_dynamic`, which
//! has one scale for a whole weight by default, and one for all rows of an embedding.

mod convolution;
mod product;
mod recurrent;

use std::collections::{HashMap, HashSet};

use super::constants::{constant_values, settle_constants};
use super::edit::{Editor, Weight};
use super::embedding::{Lookup, Stored, Tables};
use super::fold::fold_into_convolutions;
use super::inline::inline_functions;
use super::keep::{ASKED, Keep};
use super::report::{Conversion, ConversionError, ConversionReport};
use super::scales::{FULL_WEIGHT, REDUCED_WEIGHT};
use super::upgrade::raise_operator_set;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};
use crate::stored::Held;
use crate::{ElementType, TensorError};

/// The operator set that has `DynamicQuantizeLinear`.
const NEEDED_OPSET: i64 = 11;

/// How to quantise with scales found at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicQuantization {
    /// What stays as it is.
    pub keep: Keep,
    /// Weights of 7 bits, for x86 processors without VNNI, where sums of two 8-bit products overflow.
    pub reduce_range: bool,
    /// Large tables that `Gather` reads.
    pub embeddings: bool,
    /// Convolutions, which get slower.
    pub convolutions: bool,
}

impl Default for DynamicQuantization {
    fn default() -> Self {
        DynamicQuantization { keep: Keep::default(), reduce_range: false, embeddings: true, convolutions: false }
    }
}

impl DynamicQuantization {
    fn largest(&self) -> u8 {
        if self.reduce_range { REDUCED_WEIGHT } else { FULL_WEIGHT }
    }
}

/// Quantises the weights of a model to int8, and its activations while it runs.
///
/// # Errors
///
/// An operator set before 7, a model that is quantised already or has nothing to quantise, a damaged weight.
pub fn quantize_dynamic(mut model: ModelProto, options: &DynamicQuantization) -> Result<Conversion, ConversionError> {
    let inlined = inline_functions(&mut model);
    refuse_quantized(&model)?;
    let raised = raise_operator_set(&mut model, NEEDED_OPSET, "DynamicQuantizeLinear")?;
    let wanting: &[&str] = if options.convolutions {
        &["MatMul", "Gemm", "LSTM", "Gather", "Conv"]
    } else {
        &["MatMul", "Gemm", "LSTM", "Gather"]
    };
    settle_constants(&mut model, wanting)?;
    let graph = model.graph.take().ok_or(ConversionError::NoGraph)?;
    // A file without the normalisations is smaller; the runtime would fold them all the same.
    let (graph, mut report) = convert(fold_into_convolutions(graph)?, options)?;
    inlined.add_to(&mut report);
    if report.nodes_converted() == 0 {
        return Err(ConversionError::NothingToConvert { kept: report.kept });
    }
    if graph.node.iter().any(|node| node.domain() == MICROSOFT) {
        model.import(MICROSOFT, 1);
    }
    model.graph = Some(graph);
    if options.reduce_range {
        report.note("weights have 7 bits");
    }
    report.note_raised(raised);
    Ok(Conversion { model, report })
}

/// The domain of ONNX Runtime's own operators.
pub(super) const MICROSOFT: &str = "com.microsoft";

/// A model that has integer operators was quantised by somebody who knew more about it. Weights alone in 8 bits or more are
/// constants like any other.
pub(super) fn refuse_quantized(model: &ModelProto) -> Result<(), ConversionError> {
    let constant = model.graph.as_ref().map(|graph| constant_values(graph, &graph.node)).unwrap_or_default();
    let is_readable = |name: &str| {
        let weights = model.graph.iter().flat_map(|graph| &graph.initializer);
        weights.filter(|tensor| tensor.name() == name).all(|tensor| tensor.element().is_readable())
    };
    let is_of_weights = |node: &NodeProto| {
        let levels = node.input.first().filter(|input| constant.contains(input.as_str()));
        levels.is_some_and(|levels| is_readable(levels)) && node.int("block_size").unwrap_or(0) == 0
    };
    let is_quantized = |node: &&NodeProto| {
        let operator = node.op_type();
        if matches!(operator, "QuantizeLinear" | "DequantizeLinear") && is_of_weights(node) {
            return false;
        }
        operator.ends_with("QuantizeLinear")
            || operator.starts_with("QLinear")
            || matches!(operator, "DequantizeLinear" | "MatMulInteger" | "ConvInteger" | "MatMulNBits" | "QAttention")
            || operator.starts_with("DynamicQuantize")
    };
    let nodes = || model.graph.iter().flat_map(|graph| &graph.node);
    let Some(first) = nodes().find(is_quantized) else { return Ok(()) };
    let same = nodes().filter(|node| node.op_type() == first.op_type()).count() as u64;
    let stored = model.graph.as_ref().and_then(|graph| Held::of_graph(graph).stored());
    let holds = stored.map_or_else(|| "whole numbers".to_owned(), |stored| stored.holds);
    let holds = match first.int("block_size") {
        Some(size) if size > 0 => format!("{holds} in blocks of {size}"),
        _ => holds,
    };
    let weights = model.graph.iter().flat_map(|graph| &graph.initializer);
    let floats: HashSet<&str> =
        weights.filter(|tensor| tensor.element() == ElementType::Float32).map(|tensor| tensor.name()).collect();
    let is_float = |node: &&NodeProto| {
        let has_weight = node.is_standard() && WITH_WEIGHTS.contains(&node.op_type());
        has_weight && node.input.get(1).is_some_and(|weight| floats.contains(weight.as_str()))
    };
    let left = nodes().filter(is_float).count() as u64;
    Err(ConversionError::AlreadyQuantized { holds, operator: first.operator(), nodes: same, left })
}

/// Operators whose weights are quantised, which are their second input.
const WITH_WEIGHTS: [&str; 3] = ["Conv", "MatMul", "Gemm"];

fn convert(
    graph: GraphProto,
    options: &DynamicQuantization,
) -> Result<(GraphProto, ConversionReport), ConversionError> {
    let (editor, nodes) = Editor::new(graph);
    let mut work = Work {
        editor,
        report: ConversionReport::default(),
        options: options.clone(),
        activations: HashMap::new(),
        tables: Tables::new(options.largest()),
        products: HashMap::new(),
    };
    for node in nodes {
        let outcome = if options.keep.keeps(&node) { Outcome::Kept(ASKED.to_owned()) } else { work.convert(&node)? };
        match outcome {
            Outcome::Converted => {
                work.report.convert(&node);
                work.editor.release(&node);
                continue;
            }
            Outcome::Kept(reason) => work.report.keep(&node, reason),
            Outcome::NotConcerned => {}
        }
        keep_inner(&node, &mut work.report);
        work.editor.put_back(node);
    }
    let (graph, kept) = work.editor.finish();
    work.report.weights.kept = kept;
    Ok((graph, work.report))
}

/// What inner graphs have of the operators that are converted outside of them.
pub(super) fn keep_inner(node: &NodeProto, report: &mut ConversionReport) {
    for inner in node.graphs().flat_map(|graph| &graph.node) {
        if matches!(inner.op_type(), "MatMul" | "Gemm" | "Conv" | "ConvTranspose" | "LSTM" | "Attention") {
            report.keep(inner, format!("it is inside a subgraph of {}", node.operator()));
        }
        keep_inner(inner, report);
    }
}

/// What became of a node.
enum Outcome {
    /// New nodes stand for it.
    Converted,
    /// It stays, for a reason.
    Kept(String),
    /// It has nothing to quantise.
    NotConcerned,
}

impl Outcome {
    fn kept(reason: &str) -> Result<Outcome, TensorError> {
        Ok(Outcome::Kept(reason.to_owned()))
    }
}

/// An activation in 8 bits.
#[derive(Clone, Debug)]
struct Activation {
    values: String,
    scale: String,
    zero_point: String,
}

struct Work {
    editor: Editor,
    report: ConversionReport,
    options: DynamicQuantization,
    activations: HashMap<String, Activation>,
    tables: Tables,
    /// Right operands of products, [K, N], with one scale for each column.
    products: HashMap<Weight, Stored>,
}

impl Work {
    fn convert(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        match (node.is_standard(), node.op_type()) {
            (true, "MatMul" | "Gemm") => self.product(node),
            (true, "Gather") => self.gather(node),
            (true, "LSTM") => self.lstm(node),
            (true, "Conv") => self.conv(node),
            (true, "ConvTranspose" | "GRU" | "RNN" | "Einsum") => {
                Outcome::kept("ONNX Runtime has no operator for it with activations quantised at run time")
            }
            (false, "Attention") if node.domain() == MICROSOFT => {
                Outcome::kept("it is a fused operator; quantise the model before fusion")
            }
            _ => Ok(Outcome::NotConcerned),
        }
    }

    /// The activation in 8 bits: quantised once, whoever reads it.
    fn activation(&mut self, name: &str) -> Activation {
        if let Some(activation) = self.activations.get(name) {
            return activation.clone();
        }
        let mut fresh = |suffix: &str| self.editor.fresh(&format!("{name}{suffix}"));
        let activation =
            Activation { values: fresh("_quantized"), scale: fresh("_scale"), zero_point: fresh("_zero_point") };
        let outputs = [activation.values.as_str(), &activation.scale, &activation.zero_point];
        let label = self.editor.fresh(&format!("{name}_quantize"));
        self.editor.push(NodeProto::of("DynamicQuantizeLinear", &label, &[name], &outputs, vec![]));
        self.report.quantize_nodes += 1;
        self.activations.insert(name.to_owned(), activation.clone());
        activation
    }

    /// A large table in 8 bits.
    fn gather(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        if !self.options.embeddings {
            return Ok(Outcome::NotConcerned);
        }
        Ok(match self.tables.gather(&mut self.editor, &mut self.report, node)? {
            Lookup::Converted => Outcome::Converted,
            Lookup::Kept(reason) => Outcome::Kept(reason.to_owned()),
            Lookup::NotConcerned => Outcome::NotConcerned,
        })
    }
}

/// Integers times scales: `Cast`, the product of both scales, and the product with it, which is called `output`.
fn rescale(editor: &mut Editor, label: &str, integers: &str, scales: [&str; 2], output: &str) {
    let cast = editor.fresh(&format!("{label}_cast"));
    let scale = editor.fresh(&format!("{label}_scales"));
    let to_float = vec![AttributeProto::of_int("to", 1)];
    editor.push(NodeProto::of("Cast", &cast, &[integers], &[&cast], to_float));
    editor.push(NodeProto::of("Mul", &scale, &scales, &[&scale], vec![]));
    editor.push(NodeProto::of("Mul", &format!("{label}_rescale"), &[&cast, &scale], &[output], vec![]));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
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

    #[test]
    fn what_inner_graphs_hold_is_told() {
        let inner = GraphProto { node: vec![mat_mul("x", "w", "z")], ..Default::default() };
        let branch = AttributeProto::of_graph("body", inner);
        let nodes = vec![mat_mul("x", "w", "p"), NodeProto::of("Loop", "loop", &["p"], &["y"], vec![branch])];
        let weight = TensorProto::of_floats("w", &[1, 1], &[1.0]);
        let (graph, report, _) = converted(model(nodes, vec![weight]), &Default::default());
        assert_eq!(report.kept[0].reason, "it is inside a subgraph of Loop");
        assert_eq!(tensor(&graph, "w").floats().unwrap(), [1.0]);
        assert_eq!(report.weights.kept, 1);
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
}
