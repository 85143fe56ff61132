//! Calls of a model's own functions, replaced by the nodes of the functions.
//!
//! Input: a model with `functions`, as PyTorch's exporter writes one for each module. Output: the same model without them,
//! so that a conversion sees every node; and which calls stay, and why. A call stays where the function was written for
//! another operator set than the model, where functions call each other in a circle, and where a small file would become
//! a huge model. Deliberately absent: what a function says of the types of its values, which holds for any call and so
//! says little; they are inferred again.
//!
//! Nodes and values get the name of the call in front of theirs: `call/name`.
//!
//! Source: the standard's IR.md, "Functions": inputs and outputs that a call leaves out are empty; an attribute that a
//! call leaves out has the function's default, and without one the node inside is without it too.

mod binding;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use prost::Message;

use super::names::{Names, collect_names};
use super::report::ConversionReport;
use crate::functions::{DEEPEST, Key, called, plain};
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};
use binding::Binding;

/// Bytes that calls may become: a graph that a call gives may be in its function several times, and names grow with
/// every call around them. Weights are outside of functions; the nodes of a large transformer take some megabytes.
const MOST_BYTES: u64 = 1 << 28;

/// About what a node takes in memory beyond its message.
const BYTES_OF_NODE: u64 = 512;

/// What became of the calls of a model's own functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inlined {
    /// Calls that were replaced by the nodes of their function.
    pub(crate) calls: u64,
    /// Calls that stay, and why.
    left: Vec<(NodeProto, String)>,
}

impl Inlined {
    /// Adds it to a report, instead of what a conversion says of an operator that it does not know.
    pub(super) fn add_to(&self, report: &mut ConversionReport) {
        let is_left = |operator: &str| self.left.iter().any(|(call, _)| call.operator() == operator);
        report.kept.retain(|kept| !is_left(&kept.operator));
        self.left.iter().for_each(|(call, reason)| report.keep(call, reason.clone()));
        match self.calls {
            0 => {}
            1 => report.note("a call of a model function was inlined"),
            calls => report.note(format!("{calls} calls of model functions were inlined")),
        }
    }
}

/// Replaces the calls of the model's own functions, in the graphs inside nodes too, and drops functions that nothing calls
/// any more.
pub(crate) fn inline_functions(model: &mut ModelProto) -> Inlined {
    if model.functions.is_empty() {
        return Inlined::default();
    }
    let Some(mut graph) = model.graph.take() else { return Inlined::default() };
    let functions = std::mem::take(&mut model.functions);
    let mut names = Names::default();
    collect_names(&graph, &graph.node, &mut names);
    let by_key = functions.iter().map(|function| (function.key(), Known::of(function))).collect();
    let mut inliner = Inliner { model, functions: by_key, names, inlined: Inlined::default(), bytes: 0 };
    graph.node = inliner.nodes(std::mem::take(&mut graph.node), &mut Vec::new());
    let inlined = inliner.inlined;
    model.functions = called(&graph, functions);
    model.graph = Some(graph);
    inlined
}

/// A function, and the size of its nodes that replace a call.
#[derive(Clone, Copy)]
struct Known<'a> {
    function: &'a FunctionProto,
    /// About how many bytes they are.
    bytes: u64,
    /// Names in them, each of which gets the call's in front.
    names: u64,
    /// Attributes that the call gives.
    given: u64,
}

impl<'a> Known<'a> {
    fn of(function: &'a FunctionProto) -> Self {
        let mut known = Known { function, bytes: function.encoded_len() as u64, names: 0, given: 0 };
        let mut add = |node: &NodeProto| {
            known.bytes += BYTES_OF_NODE;
            known.names += 1 + (node.input.len() + node.output.len()) as u64;
            let named = |graph: &GraphProto| {
                graph.input.len() + graph.output.len() + graph.value_info.len() + graph.initializer.len()
            };
            known.names += node.graphs().map(named).sum::<usize>() as u64;
            known.given +=
                node.attribute.iter().filter(|attribute| !attribute.ref_attr_name().is_empty()).count() as u64;
        };
        function.node.iter().for_each(|node| node.with_inner(&mut add));
        known
    }

    /// About how many bytes replace this call.
    fn bytes_of(&self, call: &NodeProto) -> u64 {
        let mut of_call = call.encoded_len() as u64;
        call.with_inner(&mut |_| of_call += BYTES_OF_NODE);
        // A reference may be to a default of the function's.
        let of_call = of_call.max(self.function.attribute_proto.iter().map(|it| it.encoded_len() as u64).sum());
        let name = call.name().len().max(call.op_type().len()) as u64;
        self.bytes.saturating_add(self.names.saturating_mul(name)).saturating_add(self.given.saturating_mul(of_call))
    }
}

struct Inliner<'a> {
    /// The model without its graph: what it imports.
    model: &'a mut ModelProto,
    functions: HashMap<Key<'a>, Known<'a>>,
    names: Names,
    inlined: Inlined,
    /// What the calls so far became.
    bytes: u64,
}

impl<'a> Inliner<'a> {
    /// `within` are the functions that these nodes come from, outermost first.
    fn nodes(&mut self, nodes: Vec<NodeProto>, within: &mut Vec<&'a FunctionProto>) -> Vec<NodeProto> {
        let mut done = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            let Some(known) = self.functions.get(&node.called()).copied() else {
                for inner in node.graphs_mut() {
                    inner.node = self.nodes(std::mem::take(&mut inner.node), within);
                }
                done.push(node);
                continue;
            };
            if let Some(reason) = self.what_forbids(known, &node, within) {
                self.inlined.left.push((node.clone(), reason));
                done.push(node);
                continue;
            }
            self.inlined.calls += 1;
            self.bytes = self.bytes.saturating_add(known.bytes_of(&node));
            for import in &known.function.opset_import {
                self.model.import(plain(import.domain()), import.version());
            }
            let body = Binding::new(known.function, &node, &mut self.names).nodes();
            within.push(known.function);
            done.extend(self.nodes(body, within));
            within.pop();
        }
        done
    }

    /// Why a call has to stay.
    fn what_forbids(&self, known: Known<'a>, call: &NodeProto, within: &[&FunctionProto]) -> Option<String> {
        let function = known.function;
        if within.iter().any(|outer| std::ptr::eq(*outer, function)) {
            return Some("the function calls itself".to_owned());
        }
        if within.len() >= DEEPEST {
            return Some(format!("functions call each other more than {DEEPEST} deep"));
        }
        if self.bytes.saturating_add(known.bytes_of(call)) > MOST_BYTES {
            return Some("inlining would produce more than 256 MiB of nodes".to_owned());
        }
        if call.input.len() > function.input.len() || call.output.len() > function.output.len() {
            return Some("it has more inputs or outputs than the function".to_owned());
        }
        if let Some(missing) = missing_output(function, call) {
            return Some(format!("nothing in the function produces its output `{missing}`"));
        }
        self.other_operator_set(function)
    }

    /// The same operator may mean something else in another operator set.
    fn other_operator_set(&self, function: &FunctionProto) -> Option<String> {
        let mut domains = BTreeSet::new();
        function.node.iter().for_each(|node| self.collect_domains(node, &mut domains));
        let imported = |domain: &str| {
            let same = function.opset_import.iter().find(|import| plain(import.domain()) == domain);
            same.map(|import| import.version())
        };
        domains.into_iter().find_map(|domain| {
            let shown = if domain.is_empty() { "operator set" } else { domain };
            match (imported(domain), self.model.opset(domain)) {
                (None, _) => Some(format!("the function does not say which version of {shown} it uses")),
                (Some(wanted), Some(has)) if wanted != has => {
                    Some(format!("the function was written for {shown} {wanted}, and the model for {has}"))
                }
                _ => None,
            }
        })
    }

    /// Domains of the operators that a node uses, without the model's own functions.
    fn collect_domains<'n>(&self, node: &'n NodeProto, domains: &mut BTreeSet<&'n str>) {
        if !self.functions.contains_key(&node.called()) {
            domains.insert(plain(node.domain()));
        }
        node.graphs().flat_map(|graph| &graph.node).for_each(|inner| self.collect_domains(inner, domains));
    }
}

/// An output that the call wants, and that no node of the function makes and no input gives.
fn missing_output<'f>(function: &'f FunctionProto, call: &NodeProto) -> Option<&'f str> {
    let inputs = function.input.iter().zip(&call.input).filter(|(_, given)| !given.is_empty());
    let there: HashSet<&String> =
        function.node.iter().flat_map(|node| &node.output).chain(inputs.map(|(input, _)| input)).collect();
    let wanted = function.output.iter().zip(&call.output).filter(|(_, given)| !given.is_empty());
    wanted.map(|(output, _)| output).find(|output| !there.contains(output)).map(String::as_str)
}
