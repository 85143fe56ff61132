//! 8-bit integers with ranges that were calibrated beforehand.
//!
//! Input: a float32 model, and for its activations the ranges that calibration found. Output: the model with
//! `QuantizeLinear` and `DequantizeLinear` around what computes in 8 bits (QDQ), which ONNX Runtime turns into
//! `QLinearConv`, `QLinearAdd` and their like. Activations have 8 unsigned bits with a zero point, weights 8 signed ones
//! with one scale for each output channel, biases 32 bits. Deliberately absent: running the model to calibrate it.
//!
//! ```text
//! let prepared = prepare_static(model)?;                                   // constants settled, normalisations folded
//! let names = prepared.to_calibrate()?;                                    // run prepared.with_outputs(&names), observe
//! let conversion = prepared.quantize(&ranges, &StaticQuantization::default())?;
//! ```
//!
//! Everything between a convolution and the next computes in 8 bits where ONNX Runtime has a kernel for it: with `Conv`
//! and `Gemm` alone every `Add` and `Concat` stands between conversions, which made MobileNetV2 three times as slow. It
//! has a price: `quantize_static` on `Conv` and `Gemm` alone came closer to float32 for DenseNet-121 and EfficientNet-B0
//! (cosine 0.942 after 0.923, 0.498 after 0.441), further away for ResNet-50 and MobileNetV2. A `Sigmoid` with its `Mul`
//! stays in 8 bits too, since ONNX Runtime did not fuse them to one float32 operator between two `DequantizeLinear`. In
//! transformers the products alone are converted, and end in float32.
//!
//! Branches of `If` and bodies of `Loop` and `Scan` are not calibrated: their values do not leave them, and a branch that no
//! item takes has none. What is in them is quantised as `quantize_dynamic` does it, and the report says so.
//!
//! How far the outputs of nine networks are from float32, here and by `quantize_static` of ONNX Runtime 1.31.1 after its
//! `quant_pre_process`, stands in docs/reference/converters.md; `tests/compare_converters.py` makes that table.
//!
//! Sources: B. Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only inference,
//! 2018, arXiv:1712.05877 (the arithmetic); `onnxruntime.quantization.quantize_static` (the form).

mod kernel;
mod plan;
mod rewrite;

use std::collections::{BTreeMap, HashSet};

use super::activation_ranges::{Range, extremes};
use super::constants::settle_constants;
use super::edit::Editor;
use super::fold::fold_channels;
use super::inline::{Inlined, inline_functions};
use super::keep::Keep;
use super::names::tell_apart;
use super::quantize_dynamic::{import_microsoft, refuse_quantized};
use super::report::{Conversion, ConversionError};
use super::upgrade::raise_operator_set;
use crate::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::{ElementType, TensorError};
use plan::Plan;
use rewrite::Work;

/// The operator set whose `DequantizeLinear` has one scale for each channel.
const NEEDED_OPSET: i64 = 13;

/// How to quantise with calibrated ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticQuantization {
    /// Weights of 7 bits, for x86 processors without VNNI, where sums of two 8-bit products overflow.
    pub reduce_range: bool,
    /// Large tables that `Gather` reads.
    pub embeddings: bool,
}

impl Default for StaticQuantization {
    fn default() -> Self {
        StaticQuantization { reduce_range: false, embeddings: true }
    }
}

/// A model in the form that is calibrated and quantised: the same function in float32.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    model: ModelProto,
    /// The operator set that it had, if that was too old.
    raised: Option<i64>,
    inlined: Inlined,
    keep: Keep,
}

/// Settles constants and folds normalisations, which must happen before calibration.
///
/// # Errors
///
/// An operator set before 7, a model that is quantised already, a damaged weight.
pub fn prepare_static(mut model: ModelProto) -> Result<Prepared, ConversionError> {
    let inlined = inline_functions(&mut model);
    model.graph.as_mut().map(tell_apart);
    refuse_quantized(&model)?;
    let raised = raise_operator_set(&mut model, NEEDED_OPSET, "DequantizeLinear with one scale for each channel")?;
    settle_constants(&mut model, &["Conv", "BatchNormalization", "MatMul", "Gemm", "Gather"])?;
    let graph = model.graph.take().ok_or(ConversionError::NoGraph)?;
    model.graph = Some(fold_channels(graph)?);
    Ok(Prepared { model, raised, inlined, keep: Keep::default() })
}

impl Prepared {
    /// The same with nodes that stay as they are.
    pub fn keeping(self, keep: Keep) -> Self {
        Prepared { keep, ..self }
    }

    /// The prepared model.
    pub fn model(&self) -> &ModelProto {
        &self.model
    }

    /// The activations whose ranges [`Prepared::quantize`] needs, in alphabetical order. Those of constants are known.
    ///
    /// # Errors
    ///
    /// A damaged weight.
    pub fn to_calibrate(&self) -> Result<Vec<String>, ConversionError> {
        let graph = self.model.graph.as_ref().ok_or(ConversionError::NoGraph)?;
        let (editor, nodes) = Editor::new(without_content(graph));
        let plan = Plan::of(&editor, &nodes, &self.keep, &HashSet::new())?;
        Ok(plan.sources().into_iter().filter(|name| editor.tensor(name).is_none()).map(str::to_owned).collect())
    }

    /// A copy that gives these activations too, float32 all of them, behind its own outputs. Inputs are not given again.
    pub fn with_outputs(&self, names: &[String]) -> ModelProto {
        let mut model = self.model.clone();
        if let Some(graph) = model.graph.as_mut() {
            let made: HashSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
            let given: HashSet<&str> = graph.output.iter().map(ValueInfoProto::name).collect();
            let new = names.iter().filter(|name| made.contains(name) && !given.contains(name.as_str()));
            let new: Vec<_> = new.map(|name| ValueInfoProto::of_tensor(name, &ElementType::Float32, None)).collect();
            graph.output.extend(new);
        }
        model
    }

    /// The model in 8 bits. What reads or makes a value without a range stays as it is.
    ///
    /// # Errors
    ///
    /// A model with nothing to quantise, a damaged weight.
    pub fn quantize(
        self,
        ranges: &BTreeMap<String, Range>,
        options: &StaticQuantization,
    ) -> Result<Conversion, ConversionError> {
        let mut model = self.model;
        let graph = model.graph.take().ok_or(ConversionError::NoGraph)?;
        let (editor, nodes) = Editor::new(graph);
        let (plan, ranges) = ranged(&editor, &nodes, &self.keep, ranges)?;
        let mut work = Work::new(editor, &ranges, options, self.keep);
        for (index, node) in nodes.into_iter().enumerate() {
            work.take(node, index, &plan)?;
        }
        let Work { editor, mut report, .. } = work;
        self.inlined.add_to(&mut report);
        if report.nodes_converted() == 0 {
            return Err(ConversionError::NothingToConvert { kept: report.kept });
        }
        let (graph, kept) = editor.finish();
        report.weights.kept = kept;
        if options.reduce_range {
            report.note("weights have 7 bits");
        }
        report.note_raised(self.raised);
        model.graph = Some(graph);
        import_microsoft(&mut model);
        Ok(Conversion { model, report })
    }
}

/// A plan all of whose values have a range, with the ranges: of activations those that were observed, of constants their
/// extremes.
fn ranged(
    editor: &Editor,
    nodes: &[NodeProto],
    keep: &Keep,
    observed: &BTreeMap<String, Range>,
) -> Result<(Plan, BTreeMap<String, Range>), TensorError> {
    let (mut ranges, mut unknown) = (observed.clone(), HashSet::new());
    loop {
        let plan = Plan::of(editor, nodes, keep, &unknown)?;
        let before = unknown.len();
        for value in plan.sources() {
            if ranges.contains_key(value) {
                continue;
            }
            match editor.floats(value).transpose()?.and_then(|values| extremes(&values)) {
                Some(range) => drop(ranges.insert(value.to_owned(), range)),
                None => drop(unknown.insert(value.to_owned())),
            }
        }
        if unknown.len() == before {
            return Ok((plan, ranges));
        }
    }
}

/// The graph with the shapes of its weights and none of their bytes, which is all that planning needs.
fn without_content(graph: &GraphProto) -> GraphProto {
    let form = |tensor: &TensorProto| TensorProto {
        name: tensor.name.clone(),
        dims: tensor.dims.clone(),
        data_type: tensor.data_type,
        ..Default::default()
    };
    GraphProto {
        node: graph.node.clone(),
        initializer: graph.initializer.iter().map(form).collect(),
        input: graph.input.clone(),
        output: graph.output.clone(),
        ..Default::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::plan::NO_RANGE;
    use super::*;
    use crate::precision::ConversionReport;
    use crate::precision::quantize_dynamic::tests::{model, tensor};
    use crate::proto::AttributeProto;

    fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
        NodeProto::of(operator, output, inputs, &[output], vec![])
    }

    fn weights() -> Vec<TensorProto> {
        vec![
            TensorProto::of_floats("w", &[2, 2, 1, 1], &[1.0, -0.5, 0.25, 2.0]),
            TensorProto::of_floats("b", &[2], &[0.1, -0.2]),
            TensorProto::of_floats("m", &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        ]
    }

    fn quantized(nodes: Vec<NodeProto>, options: &StaticQuantization) -> (GraphProto, ConversionReport, Vec<String>) {
        let prepared = prepare_static(model(nodes, weights())).unwrap();
        let names = prepared.to_calibrate().unwrap();
        let ranges = names.iter().map(|name| (name.clone(), Range::new(-1.0, 1.55))).collect();
        let done = prepared.quantize(&ranges, options).unwrap();
        (done.model.graph.unwrap(), done.report, names)
    }

    fn lines(graph: &GraphProto) -> Vec<String> {
        let line = |node: &NodeProto| format!("{} = {} {}", node.output[0], node.op_type(), node.input.join(" "));
        graph.node.iter().map(line).collect()
    }

    #[test]
    fn a_convolution_stands_between_its_quantised_input_and_output() {
        let nodes = vec![node("Conv", &["x", "w", "b"], "a"), node("Relu", &["a"], "y")];
        let (graph, report, names) = quantized(nodes, &StaticQuantization::default());
        assert_eq!(names, ["x", "y"]);
        let expected = [
            "x_dequantized_quantized = QuantizeLinear x x_scale x_zero_point",
            "x_dequantized = DequantizeLinear x_dequantized_quantized x_scale x_zero_point",
            "w_dequantized = DequantizeLinear w_quantized w_scale w_zero_point",
            "b_dequantized = DequantizeLinear b_quantized b_scale b_zero_point",
            "a = Conv x_dequantized w_dequantized b_dequantized",
            "y_exact = Relu a",
            "y_quantized = QuantizeLinear y_exact y_scale y_zero_point",
            "y = DequantizeLinear y_quantized y_scale y_zero_point",
        ];
        assert_eq!(lines(&graph), expected);
        assert_eq!((report.quantize_nodes, report.weights.converted, report.weights.kept), (6, 6, 0));
        assert_eq!(tensor(&graph, "x_scale").floats().unwrap(), [0.01]);
        assert_eq!(tensor(&graph, "x_zero_point").integers().unwrap(), [100]);
        assert_eq!(tensor(&graph, "w_quantized").integers().unwrap(), [127, -64, 16, 127]);
        // 0.1 / (0.01 * 1 / 127) and -0.2 / (0.01 * 2 / 127).
        assert_eq!(tensor(&graph, "b_quantized").integers().unwrap(), [1270, -1270]);
    }

    #[test]
    fn a_product_may_end_in_float_and_others_read_exact_values() {
        let nodes = vec![
            node("LayerNormalization", &["x", "b"], "n"),
            node("MatMul", &["n", "m"], "p"),
            node("Add", &["p", "n"], "y"),
        ];
        let (graph, _, names) = quantized(nodes, &StaticQuantization::default());
        assert_eq!(names, ["n"]);
        let lines = lines(&graph);
        assert_eq!(lines[4..], ["p = MatMul n_dequantized m_dequantized", "y = Add p n"]);
        assert_eq!(graph.node[3].int("axis"), Some(1));
    }

    #[test]
    fn weights_of_two_readers_are_stored_once_and_seven_bits_are_seven() {
        let nodes = vec![node("Conv", &["x", "w"], "a"), node("Conv", &["a", "w"], "y")];
        let options = StaticQuantization { reduce_range: true, ..Default::default() };
        let (graph, report, _) = quantized(nodes, &options);
        assert_eq!(report.weights.converted, 4);
        assert_eq!(tensor(&graph, "w_quantized").integers().unwrap(), [64, -32, 8, 64]);
    }

    #[test]
    fn calibration_outputs_come_behind_the_models_own() {
        let nodes = vec![node("Conv", &["x", "w"], "a"), node("Conv", &["a", "w"], "y")];
        let prepared = prepare_static(model(nodes, weights())).unwrap();
        let with = prepared.with_outputs(&prepared.to_calibrate().unwrap());
        let outputs: Vec<String> = with.graph.unwrap().output.iter().map(|output| output.name().to_owned()).collect();
        assert_eq!(outputs, ["y", "a"]);
    }

    #[test]
    fn the_range_of_a_constant_is_known() {
        let kernel = TensorProto::of_floats("k", &[2, 2, 1, 1], &[1.0, -0.55, 0.25, 2.0]);
        let nodes = vec![node("Conv", &["k", "w"], "p"), node("Conv", &["x", "w"], "q"), node("Add", &["p", "q"], "y")];
        let prepared = prepare_static(model(nodes, [weights(), vec![kernel]].concat())).unwrap();
        let names = prepared.to_calibrate().unwrap();
        assert_eq!(names, ["p", "q", "x"]);
        let ranges = names.into_iter().map(|name| (name, Range::new(-1.0, 1.55))).collect();
        let graph = prepared.quantize(&ranges, &StaticQuantization::default()).unwrap().model.graph.unwrap();
        assert_eq!(tensor(&graph, "k_scale").floats().unwrap(), [0.01]);
    }

    #[test]
    fn what_has_no_range_stays_and_the_rest_is_converted() {
        let nodes = vec![
            node("Conv", &["x", "w"], "p"),
            node("Conv", &["u", "w"], "q"),
            node("Relu", &["q"], "r"),
            node("Conv", &["r", "w"], "s"),
            node("Add", &["p", "s"], "y"),
        ];
        let odd = TensorProto::of_floats("u", &[1, 2, 1, 1], &[f32::NAN, 1.0]);
        let prepared = prepare_static(model(nodes, [weights(), vec![odd]].concat())).unwrap();
        let ranges = ["x", "p", "s"].map(|name| (name.to_owned(), Range::new(-1.0, 1.55)));
        let done = prepared.quantize(&BTreeMap::from(ranges), &StaticQuantization::default()).unwrap();
        assert_eq!(done.report.converted, BTreeMap::from([("Conv".to_owned(), 1)]));
        let kept: Vec<(u64, &str)> = done.report.kept.iter().map(|kept| (kept.nodes, kept.reason.as_str())).collect();
        assert_eq!(kept, [(2, NO_RANGE)]);
    }

    #[test]
    fn what_is_in_a_branch_gets_its_scales_at_run_time() {
        let inner =
            vec![node("MatMul", &["x", "m"], "p"), node("Conv", &["x", "w"], "q"), node("Sum", &["p", "q"], "r")];
        let output = vec![ValueInfoProto { name: Some("r".to_owned()), ..Default::default() }];
        let inner = GraphProto { node: inner, output, ..Default::default() };
        let branch = AttributeProto::of_graph("then_branch", inner);
        let nodes = vec![
            NodeProto::of("If", "i", &["x"], &["b"], vec![branch]),
            node("MatMul", &["x", "m"], "a"),
            node("Add", &["a", "b"], "y"),
        ];
        let (graph, report, names) = quantized(nodes, &StaticQuantization::default());
        assert_eq!((names, report.converted["MatMul"], report.weights.converted), (vec!["x".to_owned()], 2, 4));
        let branch: Vec<&str> = graph.node[0].graphs().flat_map(|graph| &graph.node).map(NodeProto::op_type).collect();
        assert_eq!(branch, ["DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul", "Conv", "Sum"]);
        let levels = graph.node.iter().find(|node| node.output[0] == "m_dequantized").unwrap();
        assert_eq!(levels.input[..2], ["m_quantized", "m_scale"]);
        assert!(report.notes[0].starts_with("calibration does not see values inside subgraphs"));
        assert!(report.kept[0].reason.ends_with("are slower than float32"));
    }

    #[test]
    fn missing_ranges_and_old_operator_sets_are_named() {
        let mut old = model(vec![node("Conv", &["x", "w"], "y")], weights());
        let prepared = prepare_static(old.clone()).unwrap();
        let problem = prepared.quantize(&BTreeMap::new(), &StaticQuantization::default()).unwrap_err();
        let said = format!("nothing in the model can be converted: 1 node of Conv ({NO_RANGE})");
        assert_eq!(problem.to_string(), said);
        old.opset_import[0].version = Some(6);
        assert!(matches!(prepare_static(old), Err(ConversionError::OpsetTooOld { has: 6, needed: 13, .. })));
    }
}
