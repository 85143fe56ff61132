//! Every value and every node of a model, with what is decided about the nodes.
//!
//! Input: the model and the element types of its values. Output: a [`Survey`]: values by number, and for each graph its
//! nodes with the numbers of what they read and write. Graphs are numbered in the order in which they are met: a node's
//! own before those of later nodes.

use std::collections::{HashMap, HashSet};

use super::HalfSettings;
use super::decide::{Decision, Judge, Reason};
use super::exact::{NodePosition, exact};
use super::value::{Growth, Reads, Source, Value, Wants, constant};
use super::weights::{self, Range};
use crate::ElementType;
use crate::infer::Inferred;
use crate::precision::Io;
use crate::precision::report::{ConversionError, ConversionReport};
use crate::proto::{GraphProto, ModelProto, NodeProto, TensorProto};

/// One node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) decision: Decision,
    /// Numbers of its inputs and how it reads them; `None` for what is left out.
    pub(super) inputs: Vec<Option<(usize, Reads)>>,
    /// Numbers of its outputs.
    pub(super) outputs: Vec<Option<usize>>,
}

/// One graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) names: HashMap<String, usize>,
    pub(super) nodes: Vec<Node>,
    /// Numbers of its inputs and weights, which need their casts before the first node.
    pub(super) given: Vec<usize>,
}

/// The whole model.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub(super) values: Vec<Value>,
    pub(super) graphs: Vec<Graph>,
}

/// Looks at every node and decides about it.
pub(super) fn survey(
    model: &ModelProto,
    types: &Inferred,
    settings: &HalfSettings,
    report: &mut ConversionReport,
) -> Result<Survey, ConversionError> {
    let target = settings.target;
    let mut surveyor = Surveyor {
        survey: Survey::default(),
        exact: model.graph.as_ref().map(|graph| exact(graph, types, target)).unwrap_or_default(),
        scopes: Vec::new(),
        is_asked: false,
        judge: Judge { opset: model.opset("").unwrap_or(1), settings, target: settings.target.element() },
        report,
    };
    if let Some(graph) = model.graph.as_ref() {
        surveyor.graph(graph, types)?;
    }
    Ok(surveyor.survey)
}

fn range(judge: &Judge<'_>, tensor: &TensorProto) -> Result<(Range, f32), ConversionError> {
    match tensor.element() {
        ElementType::Float32 => Ok(weights::range(tensor, judge.settings.target)?),
        _ => Ok((Range::Within, 0.0)),
    }
}

struct Surveyor<'a> {
    survey: Survey,
    /// What stays for the sake of its readers, by graph and node.
    exact: HashMap<NodePosition, Reason>,
    /// The graphs around the current one, outermost first.
    scopes: Vec<usize>,
    /// Whether one of the nodes around the current graph is named in `keep`.
    is_asked: bool,
    judge: Judge<'a>,
    report: &'a mut ConversionReport,
}

impl Surveyor<'_> {
    fn graph(&mut self, graph: &GraphProto, types: &Inferred) -> Result<(), ConversionError> {
        let number = self.survey.graphs.len();
        self.survey.graphs.push(Graph::default());
        self.scopes.push(number);
        let is_main = self.scopes.len() == 1;
        for tensor in &graph.initializer {
            let elements = tensor.elements()?;
            let value = self.add(number, tensor.name(), Source::Weight(elements), Some(tensor.element()));
            let made = &mut self.survey.values[value];
            (made.range, made.largest) = range(&self.judge, tensor)?;
            self.survey.graphs[number].given.push(value);
        }
        for sparse in &graph.sparse_initializer {
            // It is filled with zeros when it is loaded, and a cast behind it is folded then.
            let value = self.add(number, sparse.name(), Source::Input, Some(sparse.element()));
            if let Some(values) = &sparse.values {
                let made = &mut self.survey.values[value];
                (made.range, made.largest) = range(&self.judge, values)?;
            }
            self.survey.graphs[number].given.push(value);
        }
        // Every weight was an input too before version 4 of the format.
        let weights: HashSet<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        for input in graph.input.iter().filter(|input| !weights.contains(input.name())) {
            let element = types.value(input.name()).and_then(|value| value.element.clone());
            let value = self.add(number, input.name(), Source::Input, element);
            self.survey.values[value].is_half = is_main && self.judge.settings.io == Io::Convert;
            self.survey.graphs[number].given.push(value);
        }
        for (index, node) in graph.node.iter().enumerate() {
            let asked = self.is_asked.then_some(Reason::InsideAsked);
            self.node(number, (index, node), asked.or(self.exact.get(&(number, index)).copied()), types)?;
        }
        for output in &graph.output {
            let Some(value) = self.find(output.name()) else { continue };
            let half = is_main && self.judge.settings.io == Io::Convert;
            let wants = &mut self.survey.values[value].wants;
            if half {
                wants.half = true
            } else {
                wants.full = true
            }
            self.survey.values[value].output =
                Some(if half { self.judge.target.clone() } else { ElementType::Float32 });
        }
        self.scopes.pop();
        Ok(())
    }

    fn node(
        &mut self,
        graph: usize,
        (index, node): (usize, &NodeProto),
        kept: Option<Reason>,
        types: &Inferred,
    ) -> Result<(), ConversionError> {
        let inputs: Vec<Option<usize>> = node.input.iter().map(|name| self.find(name)).collect();
        let made: Vec<Option<ElementType>> =
            node.output.iter().map(|name| types.value(name).and_then(|value| value.element.clone())).collect();
        let read: Vec<Option<&Value>> =
            inputs.iter().map(|input| input.map(|value| &self.survey.values[value])).collect();
        let decision = self.judge.decide(node, kept, &read, &made);
        let reads: Vec<Reads> = (0..read.len()).map(|input| self.judge.reads(node, &decision, input, &read)).collect();
        let growth = self.judge.grows(node, &decision, &read);
        let moved = read.iter().flatten().map(|value| value.range).max().unwrap_or(Range::Within);
        let largest = read.iter().flatten().map(|value| value.largest).fold(0.0, f32::max);
        match &decision {
            Decision::Half if !super::kernels::moves(node) => self.report.convert(node),
            Decision::Full(Some(reason)) => self.report.keep(node, reason.in_words(self.judge.settings)),
            _ => {}
        }
        for (input, reads) in inputs.iter().zip(&reads) {
            let Some(value) = input.map(|value| &mut self.survey.values[value]) else { continue };
            match reads {
                Reads::Half => value.wants.half = true,
                Reads::Full => value.wants.full = true,
                Reads::Widened => value.wants.widened = true,
                Reads::Any => {}
            }
        }
        let is_asked = self.is_asked;
        self.is_asked |= self.judge.settings.keep.keeps(node);
        for (inner, body) in node.graphs().enumerate() {
            let nothing = Inferred::default();
            self.graph(body, types.inner(index, inner).unwrap_or(&nothing))?;
        }
        self.is_asked = is_asked;
        let constant = constant(node).filter(|_| decision == Decision::Adapts);
        let (range, largest) = match &constant {
            Some(tensor) => range(&self.judge, tensor)?,
            None if super::kernels::moves(node) => (moved, largest),
            None => (Range::Within, 0.0),
        };
        let source = match (&decision, &constant) {
            (Decision::Adapts, Some(tensor)) if node.op_type() == "Constant" => Source::Adaptable(tensor.elements()?),
            (Decision::Adapts, _) => Source::Adaptable(usize::MAX),
            _ => Source::Node,
        };
        let mut outputs = Vec::with_capacity(node.output.len());
        for (position, (name, element)) in node.output.iter().zip(made).enumerate() {
            if name.is_empty() {
                outputs.push(None);
                continue;
            }
            let is_float = element == Some(ElementType::Float32);
            let value = self.add(graph, name, source, element);
            let made = &mut self.survey.values[value];
            made.is_half = is_float && self.judge.gives_half(node, &decision, position);
            (made.growth, made.decades) = growth;
            made.largest = largest;
            made.range = range;
            outputs.push(Some(value));
        }
        let inputs = inputs.into_iter().zip(reads).map(|(input, reads)| input.map(|value| (value, reads))).collect();
        self.survey.graphs[graph].nodes.push(Node { decision, inputs, outputs });
        Ok(())
    }

    fn add(&mut self, graph: usize, name: &str, source: Source, element: Option<ElementType>) -> usize {
        let number = self.survey.values.len();
        self.survey.values.push(Value {
            name: name.to_owned(),
            source,
            element,
            wants: Wants::default(),
            output: None,
            is_half: false,
            growth: Growth::None,
            decades: 0.0,
            range: Range::Within,
            largest: 0.0,
            half_name: None,
            full_name: None,
        });
        self.survey.graphs[graph].names.insert(name.to_owned(), number);
        number
    }

    /// The value of that name, looked for from the innermost graph outwards.
    fn find(&self, name: &str) -> Option<usize> {
        if name.is_empty() {
            return None;
        }
        self.scopes.iter().rev().find_map(|graph| self.survey.graphs[*graph].names.get(name).copied())
    }
}
