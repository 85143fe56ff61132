//! Whether a graph is whole: known operators, and every value made once before it is used.
//!
//! Input: a model. Output: nothing, or the first [`GraphError`]. Deliberately absent: element types and shapes (ONNX
//! Runtime judges those when it loads the model), attributes, and operators of other domains.

use std::collections::{HashMap, HashSet};

use super::functions::Key;
use super::operators::{NEWEST_OPSET, operator, operator_names};
use super::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};
use reading::nearest::nearest;

/// Graphs within nodes within graphs: real models stay below ten, and a model must not exhaust the stack.
const DEEPEST: usize = 64;

/// Operators that ONNX Runtime has in the standard's domain in addition to the standard's, some of them in more
/// versions. Its optimiser writes the normalisations; the rest is left from the standard's early days.
const OF_ONNX_RUNTIME: [&str; 13] = [
    "Affine",
    "Crop",
    "DynamicSlice",
    "GRUUnit",
    "GivenTensorFill",
    "ImageScaler",
    "LayerNormalization",
    "MeanVarianceNormalization",
    "ParametricSoftplus",
    "Scale",
    "ScaledTanh",
    "SimplifiedLayerNormalization",
    "ThresholdedRelu",
];

/// Nodes of a cycle that a message names.
const MOST_NAMED: usize = 3;

/// Why a graph is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GraphError {
    #[error("the model has no graph")]
    NoGraph,
    #[error("the model does not declare an opset version; 1 to {NEWEST_OPSET} are supported")]
    NoOpset,
    #[error("the model uses opset {found}; 1 to {NEWEST_OPSET} are supported")]
    UnknownOpset { found: i64 },
    #[error("node `{node}`: there is no operator `{operator}` in opset {opset}{}", hint(.nearest.as_deref()))]
    UnknownOperator { node: String, operator: String, opset: i64, nearest: Option<String> },
    #[error("the graph has a cycle: {}", .nodes.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(" -> "))]
    Cycle { nodes: Vec<String> },
    #[error(
        "node `{node}` uses `{value}` before node `{producer}` produces it: the nodes are not topologically sorted"
    )]
    OutOfOrder { node: String, value: String, producer: String },
    #[error("node `{node}` uses `{value}`, which nothing produces")]
    MissingInput { node: String, value: String },
    #[error("node `{node}` produces `{value}`, which already exists")]
    ProducedTwice { node: String, value: String },
    #[error("the graph{} declares the output `{value}`, which nothing produces", inside(.node.as_deref()))]
    MissingOutput {
        value: String,
        /// Label of the node that the graph stands in; `None` for the model's own.
        node: Option<String>,
    },
    #[error("node `{node}`: graphs nested more than {DEEPEST} deep")]
    TooDeep { node: String },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

fn inside(node: Option<&str>) -> String {
    node.map_or_else(String::new, |node| format!(" in node `{node}`"))
}

/// Whether the model's graph, and every graph inside it, is whole.
///
/// # Errors
///
/// The first [`GraphError`], in the order of the nodes.
pub fn check_graph(model: &ModelProto) -> Result<(), GraphError> {
    let graph = model.graph.as_ref().ok_or(GraphError::NoGraph)?;
    let opset = model.opset("");
    if let Some(found) = opset.filter(|opset| !(1..=NEWEST_OPSET).contains(opset)) {
        return Err(GraphError::UnknownOpset { found });
    }
    let functions = model.functions.iter().map(FunctionProto::key).collect();
    Check { opset, functions }.graph(graph, None, &Names::default())
}

/// What holds for all graphs of a model.
struct Check<'m> {
    opset: Option<i64>,
    functions: HashSet<Key<'m>>,
}

/// The names of values that a node may use: those of its graph so far, then those of the graphs around it.
#[derive(Default)]
struct Names<'a> {
    here: HashSet<&'a str>,
    outer: Option<&'a Names<'a>>,
    depth: usize,
}

impl Names<'_> {
    fn contain(&self, name: &str) -> bool {
        self.here.contains(name) || self.outer.is_some_and(|outer| outer.contain(name))
    }
}

impl Check<'_> {
    fn graph(&self, graph: &GraphProto, holder: Option<&NodeProto>, outer: &Names<'_>) -> Result<(), GraphError> {
        let mut names = Names { here: graph.given().collect(), outer: Some(outer), depth: outer.depth + 1 };
        for node in &graph.node {
            self.operator(node)?;
            for name in node.input.iter().filter(|name| !name.is_empty()) {
                if !names.contain(name) {
                    return Err(unavailable(graph, node, name));
                }
            }
            for inner in node.graphs() {
                if names.depth >= DEEPEST {
                    return Err(GraphError::TooDeep { node: node.label() });
                }
                self.graph(inner, Some(node), &names).map_err(|problem| seen_from(graph, node, problem))?;
            }
            for name in node.output.iter().filter(|name| !name.is_empty()) {
                if !names.here.insert(name) {
                    return Err(GraphError::ProducedTwice { node: node.label(), value: name.clone() });
                }
            }
        }
        match graph.output.iter().find(|output| !names.contain(output.name())) {
            Some(output) => {
                Err(GraphError::MissingOutput { value: output.name().to_owned(), node: holder.map(NodeProto::label) })
            }
            None => Ok(()),
        }
    }

    fn operator(&self, node: &NodeProto) -> Result<(), GraphError> {
        if !node.is_standard() || self.functions.contains(&node.called()) {
            return Ok(());
        }
        let opset = self.opset.ok_or(GraphError::NoOpset)?;
        if operator(node.op_type(), opset).is_some() || OF_ONNX_RUNTIME.contains(&node.op_type()) {
            return Ok(());
        }
        let nearest = nearest(node.op_type(), operator_names(opset)).map(str::to_owned);
        Err(GraphError::UnknownOperator { node: node.label(), operator: node.op_type().to_owned(), opset, nearest })
    }
}

/// A graph inside a node may use what the graph around it makes later, and then it is the order that is wrong.
fn seen_from(graph: &GraphProto, node: &NodeProto, problem: GraphError) -> GraphError {
    match problem {
        GraphError::MissingInput { value, .. } if producers(graph).contains_key(value.as_str()) => {
            unavailable(graph, node, &value)
        }
        other => other,
    }
}

/// Why a value is not there for a node: nothing makes it, a later node does, or that one waits for this one.
fn unavailable(graph: &GraphProto, node: &NodeProto, value: &str) -> GraphError {
    let producers = producers(graph);
    let Some(producer) = producers.get(value) else {
        return GraphError::MissingInput { node: node.label(), value: value.to_owned() };
    };
    match path(&producers, producer, node) {
        Some(nodes) => GraphError::Cycle { nodes },
        None => GraphError::OutOfOrder { node: node.label(), value: value.to_owned(), producer: producer.label() },
    }
}

fn producers(graph: &GraphProto) -> HashMap<&str, &NodeProto> {
    graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node))).collect()
}

/// Labels of nodes on the way from `start` back to `goal` along inputs; `None` where `start` does not depend on `goal`.
fn path(producers: &HashMap<&str, &NodeProto>, start: &NodeProto, goal: &NodeProto) -> Option<Vec<String>> {
    let mut came_from: HashMap<*const NodeProto, Option<&NodeProto>> =
        HashMap::from([(std::ptr::from_ref(start), None)]);
    let mut waiting = vec![start];
    while let Some(node) = waiting.pop() {
        if std::ptr::eq(node, goal) {
            let mut labels = Vec::new();
            let mut step = Some(node);
            while let (Some(node), true) = (step, labels.len() < MOST_NAMED) {
                labels.push(node.label());
                step = came_from.get(&std::ptr::from_ref(node)).copied().flatten();
            }
            return Some(labels);
        }
        for producer in node.reads().into_iter().filter_map(|name| producers.get(name).copied()) {
            if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(std::ptr::from_ref(producer)) {
                entry.insert(Some(node));
                waiting.push(producer);
            }
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::AttributeProto;
    use crate::sample::{model_of, tensors};

    fn node(operator: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        NodeProto::of(operator, name, inputs, outputs, vec![])
    }

    /// What is wrong with a model of `x` and these nodes, which promises `y`.
    fn problem(nodes: Vec<NodeProto>) -> String {
        check_graph(&model_of(17, "x[2]", "y[2]", vec![], nodes))
            .map_or_else(|problem| problem.to_string(), |()| "none".to_owned())
    }

    fn relu(name: &str, input: &str, output: &str) -> NodeProto {
        node("Relu", name, &[input], &[output])
    }

    /// `If` whose branches are one node from `input` to `inner`.
    fn branch(name: &str, input: &str, output: &str) -> NodeProto {
        let graph = GraphProto {
            node: vec![relu("within", input, "inner")],
            output: tensors("inner[2]").iter().map(|tensor| crate::sample::value_info(&tensor.name, vec![])).collect(),
            ..Default::default()
        };
        let attributes = ["then_branch", "else_branch"].map(|name| AttributeProto::of_graph(name, graph.clone()));
        NodeProto::of("If", name, &["x"], &[output], attributes.to_vec())
    }

    #[test]
    fn a_whole_graph_is_fine_and_its_branches_see_what_is_around_them() {
        assert_eq!(problem(vec![relu("a", "x", "h"), branch("b", "h", "y")]), "none");
        assert_eq!(problem(vec![node("Clip", "a", &["x", "", ""], &["y", ""])]), "none");
    }

    #[test]
    fn operators_are_those_of_the_opset() {
        let unknown = "node `a`: there is no operator `Rellu` in opset 17; did you mean `Relu`?";
        assert_eq!(problem(vec![node("Rellu", "a", &["x"], &["y"])]), unknown);
        let gone = "node `a`: there is no operator `Upsample` in opset 17";
        assert_eq!(problem(vec![node("Upsample", "a", &["x"], &["y"])]), gone);
        assert_eq!(problem(vec![node("Rellu", "a", &["x"], &["y"]).in_domain("mine")]), "none");
        assert_eq!(problem(vec![node("SimplifiedLayerNormalization", "a", &["x"], &["y"])]), "none");
        let mut model = model_of(17, "x[2]", "y[2]", vec![], vec![node("Mine", "a", &["x"], &["y"])]);
        model.functions.push(FunctionProto { name: Some("Mine".to_owned()), ..Default::default() });
        assert_eq!(check_graph(&model), Ok(()));
    }

    #[test]
    fn the_opset_must_be_known() {
        let mut model = model_of(99, "x[2]", "y[2]", vec![], vec![relu("a", "x", "y")]);
        assert_eq!(check_graph(&model), Err(GraphError::UnknownOpset { found: 99 }));
        model.opset_import.clear();
        assert_eq!(check_graph(&model), Err(GraphError::NoOpset));
        model.graph = None;
        assert_eq!(check_graph(&model).unwrap_err().to_string(), "the model has no graph");
    }

    #[test]
    fn values_are_made_once_and_before_they_are_used() {
        let late = "node `a` uses `h` before node `b` produces it: the nodes are not topologically sorted";
        assert_eq!(problem(vec![relu("a", "h", "y"), relu("b", "x", "h")]), late);
        assert_eq!(problem(vec![branch("a", "h", "y"), relu("b", "x", "h")]), late);
        assert_eq!(problem(vec![relu("a", "h", "y")]), "node `a` uses `h`, which nothing produces");
        assert_eq!(problem(vec![branch("a", "h", "y")]), "node `within` uses `h`, which nothing produces");
        let twice = "node `b` produces `y`, which already exists";
        assert_eq!(problem(vec![relu("a", "x", "y"), relu("b", "x", "y")]), twice);
        assert_eq!(problem(vec![relu("a", "x", "h")]), "the graph declares the output `y`, which nothing produces");
    }

    #[test]
    fn nodes_that_wait_for_each_other_are_named() {
        assert_eq!(problem(vec![relu("a", "y", "y")]), "the graph has a cycle: `a`");
        let nodes = vec![node("Add", "a", &["x", "h"], &["i"]), relu("b", "i", "h"), relu("c", "h", "y")];
        assert_eq!(problem(nodes), "the graph has a cycle: `a` -> `b`");
        let inside = vec![branch("a", "h", "i"), relu("b", "i", "h"), relu("c", "h", "y")];
        assert_eq!(problem(inside), "the graph has a cycle: `a` -> `b`");
    }
}
