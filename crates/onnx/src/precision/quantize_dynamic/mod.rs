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
use super::edit::{Editor, Rewrite, Weight, keep_inside};
use super::embedding::{Lookup, Stored, Tables};
use super::fold::fold_into_convolutions;
use super::inline::inline_functions;
use super::keep::{ASKED, INSIDE_ASKED, Keep};
use super::names::tell_apart;
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
    model.graph.as_mut().map(tell_apart);
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
    model.graph = Some(graph);
    import_microsoft(&mut model);
    if options.reduce_range {
        report.note("weights have 7 bits");
    }
    report.note_raised(raised);
    Ok(Conversion { model, report })
}

/// The domain of ONNX Runtime's own operators.
pub(super) const MICROSOFT: &str = "com.microsoft";

/// Imports that domain, if a node is of it.
pub(super) fn import_microsoft(model: &mut ModelProto) {
    let mut nodes = model.graph.iter().flat_map(|graph| graph.with_inner()).flat_map(|graph| &graph.node);
    if nodes.any(|node| node.domain() == MICROSOFT) {
        model.import(MICROSOFT, 1);
    }
}

/// A model that has integer operators was quantised by somebody who knew more about it. Weights alone in 8 bits or more are
/// constants like any other.
pub(super) fn refuse_quantized(model: &ModelProto) -> Result<(), ConversionError> {
    let constant = model.graph.as_ref().map(|graph| constant_values(graph, &graph.node)).unwrap_or_default();
    let graphs = model.graph.as_ref().map(GraphProto::with_inner).unwrap_or_default();
    let weights = || graphs.iter().flat_map(|graph| &graph.initializer);
    let is_readable =
        |name: &str| weights().filter(|tensor| tensor.name() == name).all(|tensor| tensor.element().is_readable());
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
    let nodes = || graphs.iter().flat_map(|graph| &graph.node);
    let Some(first) = nodes().find(is_quantized) else { return Ok(()) };
    let same = nodes().filter(|node| node.op_type() == first.op_type()).count() as u64;
    let stored = model.graph.as_ref().and_then(|graph| Held::of_graph(graph).stored());
    let holds = stored.map_or_else(|| "whole numbers".to_owned(), |stored| stored.holds);
    let holds = match first.int("block_size") {
        Some(size) if size > 0 => format!("{holds} in blocks of {size}"),
        _ => holds,
    };
    let floats: HashSet<&str> =
        weights().filter(|tensor| tensor.element() == ElementType::Float32).map(|tensor| tensor.name()).collect();
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
    let (mut editor, nodes) = Editor::new(graph);
    let (mut report, mut made) = (ConversionReport::default(), Made::new(options.clone()));
    let mut work = Work { editor: &mut editor, report: &mut report, made: &mut made };
    for node in nodes {
        work.take(node)?;
    }
    let (graph, kept) = editor.finish();
    report.weights.kept = kept;
    Ok((graph, report))
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

/// What was made so far, for nodes that read it too.
pub(super) struct Made {
    options: DynamicQuantization,
    /// With the number of the graph that has it.
    activations: HashMap<String, (usize, Activation)>,
    tables: Tables,
    /// Right operands of products, [K, N], with one scale for each column.
    products: HashMap<Weight, Stored>,
    /// Weights of convolutions: levels, zero point and scales.
    kernels: HashMap<String, [String; 3]>,
    /// Weights of recurrent layers: levels, scales and zero points.
    gates: HashMap<String, [String; 3]>,
    /// Why convolutions stay that are not asked for.
    pub(super) slower: &'static str,
}

impl Made {
    /// Nothing yet.
    pub(super) fn new(options: DynamicQuantization) -> Self {
        Made {
            activations: HashMap::new(),
            tables: Tables::new(options.largest()),
            products: HashMap::new(),
            kernels: HashMap::new(),
            gates: HashMap::new(),
            slower: "ONNX Runtime's convolutions with activations quantised at run time are slower than float32",
            options,
        }
    }

    /// Whether a right operand is stored already.
    pub(super) fn holds(&self, weight: &Weight) -> bool {
        self.products.contains_key(weight)
    }

    /// Embeddings, if they are asked for.
    pub(super) fn tables(&mut self) -> Option<&mut Tables> {
        self.options.embeddings.then_some(&mut self.tables)
    }
}

/// A graph whose nodes are converted.
pub(super) struct Work<'a> {
    pub(super) editor: &'a mut Editor,
    pub(super) report: &'a mut ConversionReport,
    pub(super) made: &'a mut Made,
}

impl Rewrite for Work<'_> {
    fn parts(&mut self) -> (&mut Editor, &mut ConversionReport) {
        (self.editor, self.report)
    }

    fn take(&mut self, mut node: NodeProto) -> Result<(), TensorError> {
        if self.made.options.keep.keeps(&node) {
            self.report.keep(&node, ASKED);
            keep_inside(&node, INSIDE_ASKED, self.report);
            self.editor.put_back(node);
            return Ok(());
        }
        match self.convert(&node)? {
            Outcome::Converted => {
                self.report.convert(&node);
                self.editor.release(&node);
                return Ok(());
            }
            Outcome::Kept(reason) => self.report.keep(&node, reason),
            Outcome::NotConcerned => self.take_inside(&mut node)?,
        }
        self.editor.put_back(node);
        Ok(())
    }
}

impl Work<'_> {
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

    /// The activation in 8 bits: quantised once, whoever reads it, but in each branch for itself.
    fn activation(&mut self, name: &str) -> Activation {
        if let Some((_, activation)) = self.made.activations.get(name).filter(|(graph, _)| self.editor.sees(*graph)) {
            return activation.clone();
        }
        let mut fresh = |suffix: &str| self.editor.fresh(&format!("{name}{suffix}"));
        let activation =
            Activation { values: fresh("_quantized"), scale: fresh("_scale"), zero_point: fresh("_zero_point") };
        let outputs = [activation.values.as_str(), &activation.scale, &activation.zero_point];
        let label = self.editor.fresh(&format!("{name}_quantize"));
        self.editor.push(NodeProto::of("DynamicQuantizeLinear", &label, &[name], &outputs, vec![]));
        self.report.quantize_nodes += 1;
        self.made.activations.insert(name.to_owned(), (self.editor.here(), activation.clone()));
        activation
    }

    /// A large table in 8 bits.
    fn gather(&mut self, node: &NodeProto) -> Result<Outcome, TensorError> {
        let Some(tables) = self.made.tables() else { return Ok(Outcome::NotConcerned) };
        Ok(match tables.gather(self.editor, self.report, node)? {
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
pub(super) mod tests;
