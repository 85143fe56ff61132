//! Carries out what was decided: weights, names, casts, types.
//!
//! Input: the model and its survey, whose graphs are met in the same order here. Output: the model in place.

use super::decide::Decision;
use super::survey::{Graph, Survey};
use super::value::{Reads, Source, Value, constant};
use super::{Half, HalfSettings, weights};
use crate::ElementType;
use crate::precision::report::{ConversionError, ConversionReport};
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

pub(super) fn rewrite(
    model: &mut ModelProto,
    survey: &Survey,
    settings: &HalfSettings,
    report: &mut ConversionReport,
) -> Result<(), ConversionError> {
    let mut rewriter = Rewriter { survey, target: settings.target, report, next: 0 };
    match model.graph.as_mut() {
        Some(graph) => rewriter.graph(graph),
        None => Ok(()),
    }
}

struct Rewriter<'a> {
    survey: &'a Survey,
    target: Half,
    report: &'a mut ConversionReport,
    /// Number of the next graph that is met.
    next: usize,
}

impl<'a> Rewriter<'a> {
    fn graph(&mut self, graph: &mut GraphProto) -> Result<(), ConversionError> {
        let known: &'a Graph = &self.survey.graphs[self.next];
        self.next += 1;
        self.weights(graph, known)?;
        let mut nodes = Vec::with_capacity(graph.node.len() + known.given.len());
        for value in &known.given {
            nodes.extend(self.cast(&self.survey.values[*value]));
        }
        for (mut node, decided) in std::mem::take(&mut graph.node).into_iter().zip(&known.nodes) {
            for (name, input) in node.input.iter_mut().zip(&decided.inputs) {
                if let Some((value, reads)) = input {
                    *name = self.name(&self.survey.values[*value], *reads);
                }
            }
            for body in node.graphs_mut() {
                self.graph(body)?;
            }
            let made = || decided.outputs.iter().flatten().map(|value| &self.survey.values[*value]);
            if decided.decision == Decision::Adapts && made().any(|value| value.is_half) {
                self.adapt(&mut node)?;
            }
            for (name, output) in node.output.iter_mut().zip(&decided.outputs) {
                if let Some(value) = output.map(|value| &self.survey.values[value]).filter(|value| value.is_float32()) {
                    let home = if value.is_half { &value.half_name } else { &value.full_name };
                    name.clone_from(home.as_ref().unwrap_or(&value.name));
                }
            }
            let casts: Vec<NodeProto> = made().filter_map(|value| self.cast_quietly(value)).collect();
            self.report.casts += casts.len() as u64;
            nodes.push(node);
            nodes.extend(casts);
        }
        graph.node = nodes;
        self.types(graph, known);
        Ok(())
    }

    /// The name of a value in the type in which it is read.
    fn name(&self, value: &Value, reads: Reads) -> String {
        if !value.is_float32() {
            return value.name.clone();
        }
        let half = match reads {
            Reads::Half => true,
            Reads::Full | Reads::Widened => false,
            Reads::Any => value.is_half,
        };
        let name = if half { &value.half_name } else { &value.full_name };
        name.as_ref().unwrap_or(&value.name).clone()
    }

    /// Weights in the type that is wanted, or in both.
    fn weights(&mut self, graph: &mut GraphProto, known: &Graph) -> Result<(), ConversionError> {
        let mut copies = Vec::new();
        for tensor in graph.initializer.iter_mut().filter(|tensor| tensor.element() == ElementType::Float32) {
            let Some(value) = known.names.get(tensor.name()).map(|value| &self.survey.values[*value]) else { continue };
            let elements = tensor.elements()? as u64;
            if !value.is_half && !value.wants.half {
                self.report.weights.kept += elements;
                continue;
            }
            let mut half = self.half(tensor)?;
            self.report.weights.converted += elements;
            half.name.clone_from(&value.half_name);
            if value.is_half {
                *tensor = half;
            } else {
                copies.push(half);
            }
        }
        graph.initializer.append(&mut copies);
        Ok(())
    }

    fn half(&mut self, tensor: &TensorProto) -> Result<TensorProto, ConversionError> {
        Ok(weights::convert(tensor, self.target, &mut self.report.weights)?)
    }

    /// The cast that gives a value in its second type, counted.
    fn cast(&mut self, value: &Value) -> Option<NodeProto> {
        let cast = self.cast_quietly(value)?;
        self.report.casts += 1;
        Some(cast)
    }

    fn cast_quietly(&self, value: &Value) -> Option<NodeProto> {
        let (Some(half), Some(full)) = (&value.half_name, &value.full_name) else { return None };
        // A weight that is wanted in both types is stored in both, unless it is stored in half precision only.
        if matches!(value.source, Source::Weight(_)) && !value.is_half {
            return None;
        }
        let (from, to, element) =
            if value.is_half { (half, full, ElementType::Float32) } else { (full, half, self.target.element()) };
        let attribute = cast_to(&element);
        Some(NodeProto::of("Cast", &format!("{to}_cast"), &[from], &[to], vec![attribute]))
    }

    /// Changes what a node makes by its attributes.
    fn adapt(&mut self, node: &mut NodeProto) -> Result<(), ConversionError> {
        if let Some(tensor) = constant(node) {
            node.attribute = vec![AttributeProto::of_tensor("value", self.half(&tensor)?)];
        } else {
            let half = cast_to(&self.target.element());
            node.attribute.iter_mut().filter(|to| to.name() == "to").for_each(|to| *to = half.clone());
        }
        Ok(())
    }

    /// The types that the graph declares, where they have changed.
    fn types(&self, graph: &mut GraphProto, known: &Graph) {
        let half = self.target.element();
        let value = |name: &str| known.names.get(name).map(|value| &self.survey.values[*value]);
        let is_float = |name: &str| value(name).is_some_and(Value::is_float32);
        for info in graph.input.iter_mut().chain(&mut graph.value_info) {
            if let Some(value) = value(info.name()).filter(|value| value.is_float32())
                && value.half_name.as_deref() == Some(info.name())
            {
                info.set_element(&half);
            }
        }
        for info in graph.output.iter_mut().filter(|info| is_float(info.name())) {
            if let Some(element) = value(info.name()).and_then(|value| value.output.as_ref()) {
                info.set_element(element);
            }
        }
    }
}

/// The attribute of a `Cast` that says to what.
fn cast_to(element: &ElementType) -> AttributeProto {
    AttributeProto::of_int("to", i64::from(element.code().unwrap_or_default()))
}
