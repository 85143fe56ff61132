//! A graph that is being rewritten: its weights, who reads what, and names that nothing has yet.
//!
//! Input: a graph whose nodes are taken out one by one and put back changed, and in which every value has a name of its own
//! (`names::tell_apart`), those in branches and bodies included. Output: the graph with new weights and nodes, without what
//! nothing reads any more. Deliberately absent: what to change (the conversions decide).
//!
//! A branch is entered while the node that holds it is taken, when the graph around it has all nodes that come before. What
//! is made of a weight alone goes to the graph that holds the weight, so that two branches share it; what is made of an
//! activation stays in the branch, which may never run.

use std::collections::{HashMap, HashSet};

use super::constants::{constant_values, count_readers, inside_mut, is_exchange};
use super::names::{Names, collect_names};
use super::report::ConversionReport;
use crate::TensorError;
use crate::proto::{GraphProto, NodeProto, TensorProto};

/// A constant that a node reads, possibly through a `Transpose` of its two dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Weight {
    /// The name of the initialiser.
    pub(crate) name: String,
    /// Whether the node reads it transposed.
    pub(crate) is_transposed: bool,
}

/// What is known of an initialiser without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Sizes, as the node sees them.
    pub(crate) shape: Vec<u64>,
    /// Whether its elements are float32.
    pub(crate) is_float32: bool,
}

/// What converts nodes one by one.
pub(crate) trait Rewrite {
    /// The graphs under work, and what is said of them.
    fn parts(&mut self) -> (&mut Editor, &mut ConversionReport);

    /// Takes the next node, and puts it back as it is or others in its place.
    ///
    /// # Errors
    ///
    /// A damaged tensor.
    fn take(&mut self, node: NodeProto) -> Result<(), TensorError>;

    /// Takes what is in the branches or the body of a node, or reports what stays in graphs that are not entered.
    ///
    /// # Errors
    ///
    /// A damaged tensor.
    fn take_inside(&mut self, node: &mut NodeProto) -> Result<(), TensorError> {
        if !node.is_standard() {
            keep_inside(node, &format!("it is inside a subgraph of {}", node.operator()), self.parts().1);
        }
        for graph in inside_mut(node) {
            for inner in self.parts().0.enter(graph) {
                self.take(inner)?;
            }
            *graph = self.parts().0.leave();
        }
        Ok(())
    }
}

/// Reports what the graphs of a node have of the operators that are converted outside of them.
pub(super) fn keep_inside(node: &NodeProto, reason: &str, report: &mut ConversionReport) {
    for inner in node.graphs().flat_map(|graph| &graph.node) {
        if matches!(inner.op_type(), "MatMul" | "Gemm" | "Conv" | "ConvTranspose" | "LSTM" | "Attention") {
            report.keep(inner, reason);
        }
        keep_inside(inner, reason, report);
    }
}

/// One of the graphs under work.
#[derive(Debug, Default)]
struct Scope {
    graph: GraphProto,
    /// Initialisers that were there from the start.
    n_original: usize,
    nodes: Vec<NodeProto>,
    /// No other scope has it.
    number: usize,
}

impl Scope {
    /// Takes a graph over, and returns its nodes separately.
    fn new(mut graph: GraphProto, number: usize) -> (Self, Vec<NodeProto>) {
        let nodes = std::mem::take(&mut graph.node);
        let n_original = graph.initializer.len();
        (Scope { graph, n_original, nodes: Vec::with_capacity(nodes.len()), number }, nodes)
    }

    /// The graph with its new nodes, and how many elements of its original weights are floating-point numbers still.
    fn finish(mut self) -> (GraphProto, u64) {
        drop_dead_nodes(&mut self.nodes, &self.graph);
        let mut read: HashMap<String, u64> = HashMap::new();
        self.nodes.iter().for_each(|node| count_readers(node, &mut read));
        self.graph.output.iter().for_each(|output| *read.entry(output.name().to_owned()).or_default() += 1);
        let original = self.graph.initializer.iter().take(self.n_original);
        let original = original.filter(|tensor| tensor.is_float() && read.contains_key(tensor.name()));
        let kept = original.filter_map(|tensor| tensor.elements().ok()).sum::<usize>() as u64;
        self.graph.initializer.retain(|tensor| read.contains_key(tensor.name()));
        let made: HashSet<&String> = self.nodes.iter().flat_map(|node| &node.output).collect();
        self.graph.value_info.retain(|value| made.contains(&value.name().to_owned()));
        self.graph.node = self.nodes;
        (self.graph, kept)
    }
}

/// A graph under work.
#[derive(Debug)]
pub(crate) struct Editor {
    /// The graph whose nodes are taken.
    current: Scope,
    /// Those around it, the main graph first.
    around: Vec<Scope>,
    n_scopes: usize,
    /// Floating-point elements that inner graphs have still.
    kept: u64,
    /// Where weights are: in the current graph or one around it, and at which index.
    weights: HashMap<String, (usize, usize)>,
    /// Outputs of `Transpose` nodes that exchange the two dimensions of something, and that something.
    transposed: HashMap<String, String>,
    /// Values that depend on no input of a graph.
    constants: HashSet<String>,
    readers: HashMap<String, u64>,
    names: Names,
}

impl Editor {
    /// Takes a graph over, and returns its nodes separately.
    pub(crate) fn new(graph: GraphProto) -> (Self, Vec<NodeProto>) {
        let (mut readers, mut names) = (HashMap::new(), Names::default());
        graph.output.iter().for_each(|output| *readers.entry(output.name().to_owned()).or_default() += 1);
        graph.node.iter().for_each(|node| count_readers(node, &mut readers));
        collect_names(&graph, &graph.node, &mut names);
        let constants = constant_values(&graph, &graph.node).into_iter().map(str::to_owned).collect();
        let nodes = graph.with_inner().into_iter().flat_map(|graph| &graph.node);
        let exchanges = nodes.filter(|node| is_exchange(node));
        let transposed = exchanges.filter_map(|node| Some((node.output.first()?.clone(), node.input.first()?.clone())));
        let transposed = transposed.collect();
        let (current, nodes) = Scope::new(graph, 0);
        let mut editor = Editor {
            current,
            around: Vec::new(),
            n_scopes: 1,
            kept: 0,
            weights: HashMap::new(),
            transposed,
            constants,
            readers,
            names,
        };
        editor.find_weights();
        (editor, nodes)
    }

    /// Goes into a branch or body of the node that is taken, and returns its nodes. Until [`Editor::leave`], nodes and
    /// weights are added to it.
    fn enter(&mut self, graph: &mut GraphProto) -> Vec<NodeProto> {
        let (scope, nodes) = Scope::new(std::mem::take(graph), self.n_scopes);
        self.n_scopes += 1;
        self.around.push(std::mem::replace(&mut self.current, scope));
        self.find_weights();
        nodes
    }

    /// Goes back to the graph around the current one, and returns what became of that.
    fn leave(&mut self) -> GraphProto {
        let scope = std::mem::replace(&mut self.current, self.around.pop().unwrap_or_default());
        for tensor in &scope.graph.initializer {
            self.weights.remove(tensor.name());
        }
        let (graph, kept) = scope.finish();
        self.kept += kept;
        graph
    }

    /// What a caller gives to a body is no weight, even if it has a default.
    fn find_weights(&mut self) {
        let (depth, graph) = (self.around.len(), &self.current.graph);
        let given: HashSet<&str> = match depth {
            0 => HashSet::new(),
            _ => graph.input.iter().map(|input| input.name()).collect(),
        };
        let weights = graph.initializer.iter().enumerate().filter(|(_, tensor)| !given.contains(tensor.name()));
        self.weights.extend(weights.map(|(index, tensor)| (tensor.name().to_owned(), (depth, index))));
    }

    /// The number of the current graph, for [`Editor::sees`].
    pub(crate) fn here(&self) -> usize {
        self.current.number
    }

    /// Whether values of that graph can be read in the current one: it is the same, or one around it.
    pub(crate) fn sees(&self, number: usize) -> bool {
        self.around.iter().chain([&self.current]).any(|scope| scope.number == number)
    }

    fn scope(&mut self, depth: usize) -> &mut Scope {
        self.around.get_mut(depth).unwrap_or(&mut self.current)
    }

    /// How many graphs are around the one that holds a weight; the current one's number of them for what is no weight.
    fn depth(&self, weight: &str) -> usize {
        self.weights.get(weight).map_or(self.around.len(), |(depth, _)| *depth)
    }

    /// A name that nothing has yet, like `base`.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        self.names.fresh(base)
    }

    /// The constant behind a name; `None` for what is computed, for `""`, and for transpositions of other than two dimensions.
    pub(crate) fn weight(&self, name: &str) -> Option<Weight> {
        if self.weights.contains_key(name) {
            return Some(Weight { name: name.to_owned(), is_transposed: false });
        }
        let source = self.transposed.get(name)?;
        let tensor = self.tensor(source)?;
        (tensor.dims.len() == 2).then(|| Weight { name: source.clone(), is_transposed: true })
    }

    /// What a `Transpose` of two dimensions reads that makes this value; of any other value itself.
    pub(crate) fn source<'a>(&'a self, name: &'a str) -> &'a str {
        self.transposed.get(name).map_or(name, String::as_str)
    }

    /// Why a value is no weight: `computed`, unless it is computed from weights alone.
    pub(crate) fn why_no_weight(&self, name: &str, computed: &'static str) -> &'static str {
        match self.constants.contains(name) {
            true => "its weight is computed from constants by an operator that perfrun does not evaluate",
            false => computed,
        }
    }

    /// Shape and element type of a constant, as its reader sees it.
    ///
    /// # Errors
    ///
    /// A shape that no tensor has.
    pub(crate) fn form(&self, weight: &Weight) -> Result<Form, TensorError> {
        let empty = TensorProto::default();
        let tensor = self.tensor(&weight.name).unwrap_or(&empty);
        let mut shape = tensor.shape()?;
        if weight.is_transposed {
            shape.reverse();
        }
        Ok(Form { shape, is_float32: tensor.element() == crate::ElementType::Float32 })
    }

    /// The initialiser of that name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorProto> {
        let (depth, index) = *self.weights.get(name)?;
        self.around.get(depth).unwrap_or(&self.current).graph.initializer.get(index)
    }

    /// Values of a floating-point constant that is read as it is stored.
    ///
    /// # Errors
    ///
    /// A damaged tensor.
    pub(crate) fn floats(&self, name: &str) -> Option<Result<Vec<f32>, TensorError>> {
        let tensor = self.tensor(name).filter(|tensor| tensor.is_float())?;
        Some(tensor.floats())
    }

    /// Names of the outputs of the current graph.
    pub(crate) fn outputs(&self) -> HashSet<String> {
        self.current.graph.output.iter().map(|output| output.name().to_owned()).collect()
    }

    /// How many inputs and graph outputs read a value, in all graphs.
    pub(crate) fn readers(&self, name: &str) -> u64 {
        self.readers.get(name).copied().unwrap_or_default()
    }

    /// Adds a constant to the current graph under a name like that of `tensor`, and returns its name.
    pub(crate) fn add_weight(&mut self, tensor: TensorProto) -> String {
        self.add_weight_at(self.around.len(), tensor)
    }

    /// The same in the graph that holds `weight`: whoever can read that can read what is made of it.
    pub(crate) fn add_weight_beside(&mut self, weight: &str, tensor: TensorProto) -> String {
        self.add_weight_at(self.depth(weight), tensor)
    }

    fn add_weight_at(&mut self, depth: usize, mut tensor: TensorProto) -> String {
        let name = self.fresh(tensor.name());
        tensor.name = Some(name.clone());
        let weights = &mut self.scope(depth).graph.initializer;
        weights.push(tensor);
        let index = weights.len() - 1;
        self.weights.insert(name.clone(), (depth, index));
        name
    }

    /// Adds a node behind all nodes so far.
    pub(crate) fn push(&mut self, node: NodeProto) {
        self.count(&node);
        self.current.nodes.push(node);
    }

    /// Adds a node that reads constants alone to the graph that holds `weight`.
    pub(crate) fn push_beside(&mut self, weight: &str, node: NodeProto) {
        self.count(&node);
        let depth = self.depth(weight);
        self.scope(depth).nodes.push(node);
    }

    /// Counts what a new node reads, which is added later.
    pub(crate) fn count(&mut self, node: &NodeProto) {
        count_readers(node, &mut self.readers);
    }

    /// Puts an original node back, whose readers are counted already.
    pub(crate) fn put_back(&mut self, node: NodeProto) {
        self.current.nodes.push(node);
    }

    /// An original node is not put back: what it alone read goes at once, so that its memory is free for what replaces it.
    pub(crate) fn release(&mut self, node: &NodeProto) {
        node.input.iter().for_each(|name| self.unread(name));
    }

    fn unread(&mut self, name: &str) {
        let Some(readers) = self.readers.get_mut(name) else { return };
        *readers = readers.saturating_sub(1);
        if *readers > 0 {
            return;
        }
        if let Some((depth, index)) = self.weights.get(name).copied() {
            let tensor = &mut self.scope(depth).graph.initializer[index];
            *tensor = TensorProto { name: tensor.name.take(), ..Default::default() };
        } else if let Some(source) = self.transposed.get(name).cloned() {
            self.unread(&source);
        }
    }

    /// The main graph with its new nodes, and how many elements of all original weights are floating-point numbers still.
    pub(crate) fn finish(self) -> (GraphProto, u64) {
        let (graph, kept) = self.current.finish();
        (graph, kept + self.kept)
    }
}

/// Nodes none of whose outputs is read, which in turn may be the only readers of other nodes.
fn drop_dead_nodes(nodes: &mut Vec<NodeProto>, graph: &GraphProto) {
    let mut read: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    let mut alive = vec![false; nodes.len()];
    for (node, alive) in nodes.iter().zip(&mut alive).rev() {
        *alive = node.output.iter().any(|output| read.contains(output));
        if *alive {
            let mut inputs = HashMap::new();
            count_readers(node, &mut inputs);
            read.extend(inputs.into_keys());
        }
    }
    let mut alive = alive.into_iter();
    nodes.retain(|_| alive.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ValueInfoProto;

    fn graph() -> GraphProto {
        let nodes = vec![
            NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![]),
            NodeProto::of("MatMul", "m", &["x", "wt"], &["y"], vec![]),
            NodeProto::of("Relu", "unused", &["y"], &["z"], vec![]),
        ];
        GraphProto {
            node: nodes,
            initializer: vec![
                TensorProto::of_floats("w", &[2, 3], &[0.0; 6]),
                TensorProto::of_floats("unread", &[1], &[0.0]),
            ],
            output: vec![ValueInfoProto { name: Some("y".to_owned()), ..Default::default() }],
            value_info: ["wt", "y", "z"]
                .map(|name| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() })
                .to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn weights_are_found_behind_a_transposition() {
        let (editor, nodes) = Editor::new(graph());
        assert_eq!(nodes.len(), 3);
        let weight = editor.weight("wt");
        assert_eq!(weight, Some(Weight { name: "w".to_owned(), is_transposed: true }));
        let form = weight.and_then(|weight| editor.form(&weight).ok());
        assert_eq!(form, Some(Form { shape: vec![3, 2], is_float32: true }));
        assert_eq!((editor.weight("x"), editor.weight("")), (None, None));
    }

    #[test]
    fn what_nothing_reads_any_more_goes() {
        let (mut editor, nodes) = Editor::new(graph());
        let new = editor.add_weight(TensorProto::of_floats("w", &[3, 2], &[1.0; 6]));
        assert_eq!(new, "w_2");
        for node in nodes {
            if node.op_type() == "MatMul" {
                editor.release(&node);
                assert_eq!(editor.tensor("w").map(|tensor| tensor.raw_data.is_none()), Some(true));
                editor.push(NodeProto::of("MatMul", "m", &["x", &new], &["y"], vec![]));
            } else {
                editor.put_back(node);
            }
        }
        let (graph, kept) = editor.finish();
        assert_eq!(kept, 0);
        let names: Vec<&str> = graph.node.iter().map(NodeProto::name).collect();
        assert_eq!(names, ["m"]);
        let weights: Vec<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        assert_eq!(weights, ["w_2"]);
        assert_eq!(graph.value_info.len(), 1);
    }

    #[test]
    fn a_branch_adds_what_is_made_of_a_weight_beside_it() {
        let mut outer = graph();
        let dead = NodeProto::of("Relu", "dead", &["w"], &["z2"], vec![]);
        let inner = GraphProto {
            node: vec![NodeProto::of("MatMul", "n", &["x", "wt"], &["v"], vec![]), dead],
            initializer: vec![TensorProto::of_floats("own", &[1], &[0.0]), TensorProto::of_floats("d", &[1], &[0.0])],
            input: vec![ValueInfoProto { name: Some("d".to_owned()), ..Default::default() }],
            output: vec![ValueInfoProto { name: Some("v".to_owned()), ..Default::default() }],
            ..Default::default()
        };
        outer.node.insert(0, NodeProto::of("If", "if", &["y"], &["r"], vec![]));
        let (mut editor, _) = Editor::new(outer);
        let (before, mut inner) = (editor.here(), inner);
        let nodes = editor.enter(&mut inner);
        let number = editor.here();
        assert!(editor.sees(before) && editor.sees(number) && editor.weight("wt").is_some());
        assert_eq!((editor.weight("own").is_some(), editor.weight("d")), (true, None));
        let beside = editor.add_weight_beside("w", TensorProto::of_floats("w", &[1], &[0.0]));
        editor.push_beside("w", NodeProto::of("Neg", "k", &[&beside], &["k"], vec![]));
        editor.add_weight(TensorProto::of_floats("unread", &[1], &[0.0]));
        nodes.into_iter().for_each(|node| editor.put_back(node));
        let inner = editor.leave();
        assert_eq!((inner.node.len(), inner.initializer.len(), editor.sees(number)), (1, 0, false));
        editor.push(NodeProto::of("Add", "a", &["k", "y"], &["y"], vec![]));
        let (graph, _) = editor.finish();
        let names: Vec<&str> = graph.node.iter().map(NodeProto::name).collect();
        assert_eq!((names, graph.initializer.len()), (vec!["k", "a"], 1));
    }

    #[test]
    fn inner_graphs_read_the_names_around_them() {
        let mut outer = graph();
        let inner = GraphProto { node: vec![NodeProto::of("Relu", "", &["w"], &["v"], vec![])], ..Default::default() };
        let branch = crate::proto::AttributeProto::of_graph("then_branch", inner);
        outer.node.push(NodeProto::of("If", "if", &["y"], &["r"], vec![branch]));
        let (editor, _) = Editor::new(outer);
        assert_eq!((editor.readers("w"), editor.readers("y")), (2, 3));
    }
}
