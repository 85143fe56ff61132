//! Older operator sets raised to 13, whose `DequantizeLinear` has one scale for each channel.
//!
//! Input: a model of operator set 7 to 12. Output: the same function in operator set 13. Attributes that became inputs
//! become constants, `Softmax` over several dimensions flattens them as it used to, `Upsample` becomes `Resize`, and a
//! `Dropout`, which does nothing at inference, becomes `Identity`. Deliberately absent: older sets (7 brought broadcasting
//! as it is now) and operators whose meaning changed in ways that a node cannot express; these are refused, as are the
//! experimental ones that only old sets have (`ImageScaler`, `Affine`).
//!
//! Source: the standard's Changelog.md, operator sets 8 to 13. Operators that are not named here did not change, or only
//! took more types, negative axes or optional inputs.

use std::collections::{HashMap, HashSet};

use half::f16;

use super::constants::count_readers;
use super::names::{Names, collect_names};
use super::report::{ConversionError, ConversionReport};
use crate::ElementType;
use crate::infer::{Inferred, Value, infer};
use crate::operators::operator;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// The operator set that models are raised to.
pub(crate) const RAISED: i64 = 13;

/// The oldest one that is raised.
const OLDEST: i64 = 7;

/// The version of the file format that came with it.
const IR_OF_RAISED: i64 = 7;

impl ConversionReport {
    /// Notes that the model was raised from an older operator set.
    pub(crate) fn note_raised(&mut self, from: Option<i64>) {
        if let Some(from) = from {
            self.note(format!("the model was converted from opset {from} to {RAISED}"));
        }
    }
}

/// Raises a model that is older than `needed`, for the sake of `operator`; gives the version that it had, if it was older.
///
/// # Errors
///
/// An operator set before 7, or a node that has no form in 13; the model stays as it was.
pub(crate) fn raise_operator_set(
    model: &mut ModelProto,
    needed: i64,
    operator: &str,
) -> Result<Option<i64>, ConversionError> {
    let has = model.opset("").unwrap_or(1);
    if has >= needed {
        return Ok(None);
    }
    if has < OLDEST || needed > RAISED || !model.functions.is_empty() {
        return Err(ConversionError::OpsetTooOld { has, needed, operator: operator.to_owned() });
    }
    let types = infer(model, &[]);
    let graph = model.graph.as_mut().ok_or(ConversionError::NoGraph)?;
    let mut names = Names::default();
    collect_names(graph, &graph.node, &mut names);
    let before = graph.node.clone();
    if let Err(problem) = (Raising { names, has }).graph(graph, &Scope { types: Some(&types), outer: None }) {
        graph.node = before;
        return Err(problem);
    }
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

/// What is known of the values that a node may read: those of its graph, then those of the graphs around it.
struct Scope<'a> {
    types: Option<&'a Inferred>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.types.and_then(|types| types.value(name)).or_else(|| self.outer?.value(name))
    }

    fn input(&self, node: &NodeProto, index: usize) -> Option<&Value> {
        self.value(node.input.get(index)?)
    }
}

impl Raising {
    fn graph(&mut self, graph: &mut GraphProto, scope: &Scope<'_>) -> Result<(), ConversionError> {
        // Outputs of these have two dimensions, so that the last one is all that follows the first.
        let flat = graph.node.iter().filter(|node| node.is_standard() && matches!(node.op_type(), "Gemm" | "Flatten"));
        let flat: HashSet<String> = flat.flat_map(|node| node.output.iter().cloned()).collect();
        let mut read = HashMap::new();
        graph.node.iter().for_each(|node| count_readers(node, &mut read));
        graph.output.iter().for_each(|output| *read.entry(output.name().to_owned()).or_default() += 1);
        let known = Known { flat, read };
        let mut nodes = Vec::with_capacity(graph.node.len());
        for (index, mut node) in std::mem::take(&mut graph.node).into_iter().enumerate() {
            for (number, inner) in node.graphs_mut().enumerate() {
                let types = scope.types.and_then(|types| types.inner(index, number));
                self.graph(inner, &Scope { types, outer: Some(scope) })?;
            }
            if node.is_standard() {
                self.check_known(&node)?;
                self.node(node, &known, scope, &mut nodes)?;
            } else {
                nodes.push(node);
            }
        }
        graph.node = nodes;
        Ok(())
    }

    /// Refuses what the standard does not have, in the model's own operator set or in 13: ONNX Runtime runs some of the
    /// experimental operators of old sets, and knows none of them from 10 on.
    fn check_known(&self, node: &NodeProto) -> Result<(), ConversionError> {
        let lacks = |opset: i64| operator(node.op_type(), opset).is_none();
        let opset = match node.op_type() {
            "Upsample" | "Scatter" if !lacks(self.has) => return Ok(()),
            // What was experimental before 10 became a part of the standard as it was.
            "ThresholdedRelu" => return Ok(()),
            _ if lacks(RAISED) => RAISED,
            _ if lacks(self.has) => self.has,
            _ => return Ok(()),
        };
        Err(unsupported(node, &format!("ONNX has no such operator in opset {opset}")))
    }

    fn node(
        &mut self,
        mut node: NodeProto,
        known: &Known,
        scope: &Scope<'_>,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<(), ConversionError> {
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
                    self.take_number_in(&mut node, name, index + 1, scope, nodes)?;
                }
            }
            "Pad" if self.has < 11 => {
                self.take_integers_in(&mut node, "pads", 1, nodes);
                self.take_number_in(&mut node, "value", 2, scope, nodes)?;
            }
            "Upsample" => self.upsample(&mut node, scope, nodes)?,
            "Resize" if self.has < 11 => {
                let nearest = nearest_mode(&node, scope)?;
                resize(&mut node, nearest);
            }
            "Scatter" => node.op_type = Some("ScatterElements".to_owned()),
            "Dropout" if self.has < 12 => dropout(&mut node, known)?,
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

    fn take_integers_in(&mut self, node: &mut NodeProto, name: &str, input_index: usize, nodes: &mut Vec<NodeProto>) {
        // An empty list of axes meant all of them, as none does now.
        let means_all = |values: &&[i64]| values.is_empty() && matches!(node.op_type(), "Squeeze" | "ReduceSum");
        let values = node.ints(name).filter(|values| !means_all(values));
        let values = values.map(|values| TensorProto::of_integers("", &[values.len() as u64], values));
        self.take_in(node, name, input_index, values, nodes);
    }

    /// A float attribute becomes a constant of the type that the node's first input has, as the standard demands.
    fn take_number_in(
        &mut self,
        node: &mut NodeProto,
        name: &str,
        input_index: usize,
        scope: &Scope<'_>,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<(), ConversionError> {
        let Some(number) = node.float(name) else { return Ok(()) };
        let element = scope.input(node, 0).and_then(|value| value.element.clone());
        let reason = || match &element {
            Some(element) => format!("its input is {element}, and so its `{name}` would have to be"),
            None => format!(
                "its `{name}` must have the element type of its input, which is not known: run shape inference on the \
                 model and save it"
            ),
        };
        let scalar = element.as_ref().and_then(|element| scalar(number, element));
        let scalar = scalar.ok_or_else(|| unsupported(node, &reason()))?;
        self.take_in(node, name, input_index, Some(scalar), nodes);
        Ok(())
    }

    /// An attribute becomes a constant in front of the node, at that index of its inputs.
    fn take_in(
        &mut self,
        node: &mut NodeProto,
        name: &str,
        input_index: usize,
        value: Option<TensorProto>,
        nodes: &mut Vec<NodeProto>,
    ) {
        node.attribute.retain(|attribute| attribute.name() != name);
        let Some(value) = value else { return };
        let constant = self.names.fresh(&format!("{}_{name}", node.output.first().map_or("", String::as_str)));
        let attribute = vec![AttributeProto::of_tensor("value", value)];
        nodes.push(NodeProto::of("Constant", &constant, &[], &[&constant], attribute));
        if node.input.len() <= input_index {
            node.input.resize(input_index + 1, String::new());
        }
        node.input[input_index] = constant;
    }

    /// Up to 8 the scales are an attribute, in 9 an input. None is below 1, so the next element down is read.
    fn upsample(
        &mut self,
        node: &mut NodeProto,
        scope: &Scope<'_>,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<(), ConversionError> {
        let attribute = node.named_attribute("scales").map(|attribute| attribute.floats.clone());
        let shrinks = match (&attribute, scope.input(node, 1).and_then(|scales| scales.floats.as_deref())) {
            (Some(scales), _) => scales.iter().any(|scale| *scale < 1.0),
            (None, Some(scales)) => scales.iter().flatten().any(|scale| *scale < 1.0),
            (None, None) => false,
        };
        if shrinks {
            return Err(unsupported(node, "it shrinks, and its scales may not be below 1"));
        }
        let scales = attribute.map(|scales| TensorProto::of_floats("", &[scales.len() as u64], &scales));
        self.take_in(node, "scales", 1, scales, nodes);
        node.op_type = Some("Resize".to_owned());
        resize(node, "floor");
        Ok(())
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
    /// Those with two dimensions, as far as their operator shows it.
    flat: HashSet<String>,
    /// How often they are read.
    read: HashMap<String, u64>,
}

/// Nothing happens at inference, and only training reads the mask.
fn dropout(node: &mut NodeProto, known: &Known) -> Result<(), ConversionError> {
    if node.output.iter().skip(1).any(|mask| known.read.contains_key(mask)) {
        return Err(unsupported(node, "something reads its mask"));
    }
    node.output.truncate(1);
    node.input.truncate(1);
    node.attribute.clear();
    node.op_type = Some("Identity".to_owned());
    Ok(())
}

/// Scales move behind the region of interest, and coordinates are computed as `Upsample` did it.
fn resize(node: &mut NodeProto, nearest: &str) {
    node.input.insert(node.input.len().min(1), String::new());
    node.attribute.push(AttributeProto::of_text("coordinate_transformation_mode", "asymmetric"));
    if is_nearest(node) {
        node.attribute.push(AttributeProto::of_text("nearest_mode", nearest));
    }
}

fn is_nearest(node: &NodeProto) -> bool {
    node.text("mode").is_none_or(|mode| mode == "nearest")
}

/// Where a nearest `Resize` of operator set 10 reads. The standard did not say; ONNX Runtime takes the next element up
/// in a dimension that shrinks, and the next one down in one that grows. From 11 on an attribute decides for all
/// dimensions.
///
/// # Errors
///
/// Coordinates between elements in a dimension that shrinks and in one that grows, or scales that nothing is known of.
fn nearest_mode(node: &NodeProto, scope: &Scope<'_>) -> Result<&'static str, ConversionError> {
    if !is_nearest(node) {
        return Ok("floor");
    }
    let scales = scope.input(node, 1).and_then(|scales| scales.floats.clone());
    let Some(scales) = scales.and_then(|scales| scales.into_iter().collect::<Option<Vec<f64>>>()) else {
        return if grows_by_shape(node, scope) {
            Ok("floor")
        } else {
            Err(unsupported(
                node,
                "its scales are computed, and before opset 11 they decide which of two neighbours it takes",
            ))
        };
    };
    let shrinks = scales.iter().any(|scale| *scale < 1.0 && !is_whole(*scale as f32));
    let grows = scales.iter().any(|scale| *scale > 1.0);
    match (shrinks, grows) {
        (true, true) => Err(unsupported(
            node,
            "it shrinks one dimension and grows another, for which opset 13 has no `nearest_mode`: opset 10 takes the next \
             element up in the one and the next one down in the other",
        )),
        (true, false) => Ok("ceil"),
        (false, _) => Ok("floor"),
    }
}

/// Whether no dimension shrinks, by the sizes of input and output.
fn grows_by_shape(node: &NodeProto, scope: &Scope<'_>) -> bool {
    let sizes = |name: &String| scope.value(name).and_then(Value::sizes);
    let (before, after) = (node.input.first().and_then(sizes), node.output.first().and_then(sizes));
    let grows =
        |(before, after): (Vec<u64>, Vec<u64>)| before.iter().zip(&after).all(|(before, after)| before <= after);
    before.zip(after).is_some_and(grows)
}

/// Whether all coordinates that output elements are read from are elements, and not between two: as ONNX Runtime
/// divides, in single precision, for as many elements as a dimension has in practice.
fn is_whole(scale: f32) -> bool {
    const ELEMENTS: u16 = u16::MAX;
    (0..ELEMENTS).all(|index| (f32::from(index) / scale).fract() == 0.0)
}

/// One number in a floating-point type.
fn scalar(number: f32, element: &ElementType) -> Option<TensorProto> {
    let bytes = match element {
        ElementType::Float16 => f16::from_f32(number).to_le_bytes().to_vec(),
        ElementType::Float32 => number.to_le_bytes().to_vec(),
        ElementType::Float64 => f64::from(number).to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(TensorProto::of_bytes("", element, &[], bytes))
}

fn unsupported(node: &NodeProto, reason: &str) -> ConversionError {
    ConversionError::Unsupported { node: node.label(), operator: node.operator(), reason: reason.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
