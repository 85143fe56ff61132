//! Older operator sets raised to 13, whose `DequantizeLinear` has one scale for each channel.
//!
//! Input: a model of operator set 7 to 12. Output: the same function in operator set 13. Attributes that became inputs
//! become constants, `Softmax` over several dimensions flattens them as it used to, `Upsample` becomes `Resize`, and a
//! `Dropout`, which does nothing at inference, becomes `Identity`. Deliberately absent: older sets (7 brought broadcasting
//! as it is now) and operators whose meaning changed in ways that a node cannot express; these are refused.
//!
//! Source: the standard's Changelog.md, operator sets 8 to 13. Operators that are not named here did not change, or only
//! took more types, negative axes or optional inputs.

use super::names::Names;
use std::collections::{HashMap, HashSet};

use super::edit::{collect_names, count_readers};
use super::report::ConversionProblem;
use crate::onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// The operator set that models are raised to.
pub(crate) const RAISED: i64 = 13;

/// The oldest one that is raised.
const OLDEST: i64 = 7;

/// The version of the file format that came with it.
const IR_OF_RAISED: i64 = 7;

/// Raises a model that is older than `needed`, for the sake of `operator`; gives the version that it had, if it was older.
///
/// # Errors
///
/// An operator set before 7, or a node that has no form in 13.
pub(crate) fn raise_operator_set(
    model: &mut ModelProto,
    needed: i64,
    operator: &str,
) -> Result<Option<i64>, ConversionProblem> {
    let has = model.opset("").unwrap_or(1);
    if has >= needed {
        return Ok(None);
    }
    if has < OLDEST || needed > RAISED || !model.functions.is_empty() {
        return Err(ConversionProblem::OpsetTooOld { has, needed, operator: operator.to_owned() });
    }
    let graph = model.graph.as_mut().ok_or(ConversionProblem::NoGraph)?;
    let mut names = Names::default();
    collect_names(graph, &graph.node, &mut names);
    Raising { names, has }.graph(graph)?;
    for import in model.opset_import.iter_mut().filter(|import| matches!(import.domain(), "" | "ai.onnx")) {
        import.version = Some(RAISED);
    }
    model.ir_version = Some(model.ir_version().max(IR_OF_RAISED));
    Ok(Some(has))
}

struct Raising {
    names: Names,
    has: i64,
}

impl Raising {
    fn graph(&mut self, graph: &mut GraphProto) -> Result<(), ConversionProblem> {
        // Outputs of these have two dimensions, so that the last one is all that follows the first.
        let flat = graph.node.iter().filter(|node| node.is_standard() && matches!(node.op_type(), "Gemm" | "Flatten"));
        let flat: HashSet<String> = flat.flat_map(|node| node.output.iter().cloned()).collect();
        let mut read = HashMap::new();
        graph.node.iter().for_each(|node| count_readers(node, &mut read));
        graph.output.iter().for_each(|output| *read.entry(output.name().to_owned()).or_default() += 1);
        let known = Known { flat, read };
        let mut nodes = Vec::with_capacity(graph.node.len());
        for mut node in std::mem::take(&mut graph.node) {
            for inner in node.graphs_mut() {
                self.graph(inner)?;
            }
            if node.is_standard() {
                self.node(node, &known, &mut nodes)?;
            } else {
                nodes.push(node);
            }
        }
        graph.node = nodes;
        Ok(())
    }

    fn node(
        &mut self,
        mut node: NodeProto,
        known: &Known,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<(), ConversionProblem> {
        match node.op_type() {
            "Squeeze" | "Unsqueeze" | "ReduceSum" => self.take_integers_in(&mut node, "axes", 1, nodes),
            "Split" => self.take_integers_in(&mut node, "split", 1, nodes),
            "Slice" if self.has < 10 => {
                for (index, name) in ["starts", "ends", "axes"].into_iter().enumerate() {
                    self.take_integers_in(&mut node, name, index + 1, nodes);
                }
            }
            "TopK" if self.has < 10 => {
                let count = node.int("k").unwrap_or_default();
                let count = TensorProto::of_integers("", &[1], &[count]);
                self.take_in(&mut node, "k", 1, Some(count), nodes);
            }
            "Clip" if self.has < 11 => {
                for (index, name) in ["min", "max"].into_iter().enumerate() {
                    let bound = node.float(name).map(|bound| TensorProto::of_floats("", &[], &[bound]));
                    self.take_in(&mut node, name, index + 1, bound, nodes);
                }
            }
            "Pad" if self.has < 11 => {
                let value = TensorProto::of_floats("", &[], &[node.float("value").unwrap_or(0.0)]);
                self.take_integers_in(&mut node, "pads", 1, nodes);
                self.take_in(&mut node, "value", 2, Some(value), nodes);
            }
            "Upsample" => self.upsample(&mut node, nodes),
            "Resize" if self.has < 11 => resize(&mut node),
            "Scatter" => node.op_type = Some("ScatterElements".to_owned()),
            "Dropout" => dropout(&mut node, known)?,
            "BatchNormalization" if node.int("spatial") == Some(0) => {
                return Err(unsupported(&node, "it normalises each position separately, which later opsets dropped"));
            }
            "BatchNormalization" => node.attribute.retain(|attribute| attribute.name() != "spatial"),
            "Scan" if self.has < 9 => {
                return Err(unsupported(&node, "opset 9 changed its definition"));
            }
            "Softmax" | "LogSoftmax" | "Hardmax" => {
                self.softmax(node, &known.flat, nodes);
                return Ok(());
            }
            _ => {}
        }
        nodes.push(node);
        Ok(())
    }

    fn take_integers_in(&mut self, node: &mut NodeProto, name: &str, place: usize, nodes: &mut Vec<NodeProto>) {
        let values = node.ints(name).map(|values| TensorProto::of_integers("", &[values.len() as u64], values));
        self.take_in(node, name, place, values, nodes);
    }

    /// An attribute becomes a constant in front of the node, at that place of its inputs.
    fn take_in(
        &mut self,
        node: &mut NodeProto,
        name: &str,
        place: usize,
        value: Option<TensorProto>,
        nodes: &mut Vec<NodeProto>,
    ) {
        node.attribute.retain(|attribute| attribute.name() != name);
        let Some(value) = value else { return };
        let constant = self.names.fresh(&format!("{}_{name}", node.output.first().map_or("", String::as_str)));
        let attribute = vec![AttributeProto::of_tensor("value", value)];
        nodes.push(NodeProto::of("Constant", &constant, &[], &[&constant], attribute));
        if node.input.len() <= place {
            node.input.resize(place + 1, String::new());
        }
        node.input[place] = constant;
    }

    /// Up to 8 the scales are an attribute, in 9 an input.
    fn upsample(&mut self, node: &mut NodeProto, nodes: &mut Vec<NodeProto>) {
        let scales = node.named_attribute("scales").map(|attribute| attribute.floats.clone());
        let scales = scales.map(|scales| TensorProto::of_floats("", &[scales.len() as u64], &scales));
        self.take_in(node, "scales", 1, scales, nodes);
        node.op_type = Some("Resize".to_owned());
        resize(node);
    }

    /// Up to 12 the axis split the dimensions in two groups; from 13 on it is the one dimension that is worked along.
    fn softmax(&mut self, mut node: NodeProto, flat: &HashSet<String>, nodes: &mut Vec<NodeProto>) {
        let axis = node.int("axis").unwrap_or(1);
        node.attribute.retain(|attribute| attribute.name() != "axis");
        node.attribute.push(AttributeProto::of_int("axis", -1));
        let (Some(input), Some(output)) = (node.input.first().cloned(), node.output.first().cloned()) else {
            return nodes.push(node);
        };
        if axis == -1 || (axis == 1 && flat.contains(&input)) {
            return nodes.push(node);
        }
        let [shape, rows, result] = ["shape", "flat", "rows"].map(|part| self.names.fresh(&format!("{output}_{part}")));
        nodes.push(NodeProto::of("Shape", &shape, &[&input], &[&shape], vec![]));
        nodes.push(NodeProto::of("Flatten", &rows, &[&input], &[&rows], vec![AttributeProto::of_int("axis", axis)]));
        node.input[0] = rows;
        node.output[0].clone_from(&result);
        nodes.push(node);
        let label = self.names.fresh(&format!("{output}_unflatten"));
        nodes.push(NodeProto::of("Reshape", &label, &[&result, &shape], &[&output], vec![]));
    }
}

/// What one graph says of its values.
struct Known {
    /// Those with two dimensions, as far as their operator tells.
    flat: HashSet<String>,
    /// How often they are read.
    read: HashMap<String, u64>,
}

/// Nothing happens at inference, and only training reads the mask.
fn dropout(node: &mut NodeProto, known: &Known) -> Result<(), ConversionProblem> {
    if node.output.iter().skip(1).any(|mask| known.read.contains_key(mask)) {
        return Err(unsupported(node, "something reads its mask"));
    }
    node.output.truncate(1);
    node.input.truncate(1);
    node.attribute.clear();
    node.op_type = Some("Identity".to_owned());
    Ok(())
}

/// Scales move behind the region of interest, and places are computed as `Upsample` did it.
fn resize(node: &mut NodeProto) {
    node.input.insert(node.input.len().min(1), String::new());
    node.attribute.push(AttributeProto::of_text("coordinate_transformation_mode", "asymmetric"));
    if node.text("mode").is_none_or(|mode| mode == "nearest") {
        node.attribute.push(AttributeProto::of_text("nearest_mode", "floor"));
    }
}

fn unsupported(node: &NodeProto, reason: &str) -> ConversionProblem {
    ConversionProblem::Unsupported { node: node.label(), operator: node.operator(), reason: reason.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::onnx::precision::quantize_dynamic::tests::model;

    fn raised(has: i64, nodes: Vec<NodeProto>) -> Result<Vec<String>, ConversionProblem> {
        let mut model = model(nodes, vec![]);
        model.opset_import[0].version = Some(has);
        assert_eq!(raise_operator_set(&mut model, 13, "DequantizeLinear")?, Some(has));
        assert_eq!(model.opset(""), Some(13));
        let graph = model.graph.unwrap();
        Ok(graph.node.iter().map(|node| format!("{} {}", node.op_type(), node.input.join(" "))).collect())
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
            (
                node("Slice", vec![ints("starts"), ints("ends")]),
                vec!["Constant ", "Constant ", "Slice x y_starts y_ends"],
            ),
            (node("Clip", vec![AttributeProto::of_float("max", 6.0)]), vec!["Constant ", "Clip x  y_max"]),
            (node("Pad", vec![ints("pads")]), vec!["Constant ", "Constant ", "Pad x y_pads y_value"]),
            (node("TopK", vec![AttributeProto::of_int("k", 5)]), vec!["Constant ", "TopK x y_k"]),
            (node("Dropout", vec![AttributeProto::of_float("ratio", 0.5)]), vec!["Identity x"]),
        ];
        for (node, expected) in cases {
            assert_eq!(raised(9, vec![node]).unwrap(), expected);
        }
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
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let spatial = node("BatchNormalization", vec![AttributeProto::of_int("spatial", 0)]);
        assert!(matches!(raised(8, vec![spatial]), Err(ConversionProblem::Unsupported { .. })));
        let masked = NodeProto::of("Dropout", "", &["x"], &["z", "y"], vec![]);
        assert!(matches!(raised(9, vec![masked]), Err(ConversionProblem::Unsupported { .. })));
        assert!(matches!(raised(6, vec![]), Err(ConversionProblem::OpsetTooOld { has: 6, needed: 13, .. })));
    }

    #[test]
    fn inner_graphs_are_raised_too() {
        let inner = GraphProto {
            node: vec![node("Squeeze", vec![AttributeProto::of_ints("axes", &[0])])],
            ..Default::default()
        };
        let branch = AttributeProto::of_graph("then_branch", inner);
        let mut model = model(vec![node("If", vec![branch])], vec![]);
        model.opset_import[0].version = Some(11);
        raise_operator_set(&mut model, 13, "").unwrap();
        let graph = model.graph.unwrap();
        let inner = graph.node[0].graphs().next().unwrap();
        assert_eq!(inner.node[1].input, ["x", "y_axes"]);
    }
}
