//! Names of a graph: those that are taken, new ones, and one name for one value.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::proto::{GraphProto, NodeProto, TensorProto};

/// The names that something has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Takes a name that nothing has yet: `base`, else `base_2`, `base_3` ...
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 1_u64;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// A name that is there already.
    pub(crate) fn take(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Names(names.into_iter().collect())
    }
}

/// Every name in a graph with these nodes, and in the graphs inside them.
pub(crate) fn collect_names(graph: &GraphProto, nodes: &[NodeProto], names: &mut Names) {
    let values = graph.input.iter().chain(&graph.output).chain(&graph.value_info).map(|value| value.name());
    values.chain(graph.initializer.iter().map(TensorProto::name)).for_each(|name| names.take(name));
    for node in nodes {
        names.take(node.name());
        node.input.iter().chain(&node.output).for_each(|name| names.take(name));
        node.graphs().for_each(|inner| collect_names(inner, &inner.node, names));
    }
}

/// Renames values in branches and bodies until no two graphs have a value of the same name, so that a name says which
/// value is meant; gives how many. Exporters give both branches of an `If` the same names. Values of the main graph keep
/// theirs, and so do those in graphs of other domains' operators, which ONNX Runtime looks for by name.
pub(crate) fn tell_apart(graph: &mut GraphProto) -> u64 {
    if graph.node.iter().all(|node| node.graphs().next().is_none()) {
        return 0;
    }
    let mut names = Names::default();
    collect_names(graph, &graph.node, &mut names);
    let own = own_names(graph).collect();
    let mut renaming = Renaming { names, defined: own, renamed: HashMap::new(), count: 0 };
    renaming.nodes(&mut graph.node);
    renaming.count
}

/// What a graph defines itself.
fn own_names(graph: &GraphProto) -> impl Iterator<Item = String> {
    let made = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    graph.given().chain(made).filter(|name| !name.is_empty()).map(str::to_owned)
}

struct Renaming {
    /// All that are taken.
    names: Names,
    /// Those that a graph so far has.
    defined: HashSet<String>,
    /// What is called otherwise in the current graph.
    renamed: HashMap<String, String>,
    count: u64,
}

impl Renaming {
    fn nodes(&mut self, nodes: &mut [NodeProto]) {
        for node in nodes {
            node.input.iter_mut().chain(&mut node.output).for_each(|name| self.apply(name));
            let is_standard = node.is_standard();
            node.graphs_mut().for_each(|inner| self.inner(inner, is_standard));
        }
    }

    fn inner(&mut self, graph: &mut GraphProto, may_rename: bool) {
        let own: BTreeSet<String> = own_names(graph).collect();
        let mut hidden = Vec::with_capacity(own.len());
        for name in own {
            let is_new = self.defined.insert(name.clone());
            let before = if is_new || !may_rename {
                self.renamed.remove(&name)
            } else {
                self.count += 1;
                self.renamed.insert(name.clone(), self.names.fresh(&name))
            };
            hidden.push((name, before));
        }
        let values = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
        let sparse = graph.sparse_initializer.iter_mut().filter_map(|sparse| sparse.values.as_mut());
        let tensors = graph.initializer.iter_mut().chain(sparse).map(|tensor| &mut tensor.name);
        values.map(|value| &mut value.name).chain(tensors).flatten().for_each(|name| self.apply(name));
        self.nodes(&mut graph.node);
        for (name, before) in hidden {
            match before {
                Some(before) => self.renamed.insert(name, before),
                None => self.renamed.remove(&name),
            };
        }
    }

    fn apply(&self, name: &mut String) {
        if let Some(new) = self.renamed.get(name.as_str()) {
            name.clone_from(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, ValueInfoProto};

    fn graph(nodes: Vec<NodeProto>, weights: &[&str], result: &str) -> GraphProto {
        GraphProto {
            node: nodes,
            initializer: weights.iter().map(|name| TensorProto::of_floats(name, &[1], &[1.0])).collect(),
            output: vec![ValueInfoProto { name: Some(result.to_owned()), ..Default::default() }],
            ..Default::default()
        }
    }

    fn holder(operator: &str, output: &str, graphs: Vec<GraphProto>) -> NodeProto {
        let graphs = graphs.into_iter().map(|graph| AttributeProto::of_graph("body", graph)).collect();
        NodeProto::of(operator, "", &["x"], &[output], graphs)
    }

    fn lines(graph: &GraphProto) -> Vec<String> {
        let line = |node: &NodeProto| format!("{} = {}", node.output.join(" "), node.input.join(" "));
        let result =
            |graph: &GraphProto| graph.output.iter().map(|output| output.name().to_owned()).collect::<Vec<_>>();
        let of_graph = |graph: &&GraphProto| {
            let weights = graph.initializer.iter().map(|tensor| tensor.name().to_owned());
            let lines = graph.node.iter().map(line).chain(weights).chain(result(graph));
            lines.collect::<Vec<_>>().join(", ")
        };
        graph.with_inner().iter().map(of_graph).collect()
    }

    fn relu(input: &str, output: &str) -> NodeProto {
        NodeProto::of("Relu", "", &[input], &[output], vec![])
    }

    #[test]
    fn a_name_means_one_value_in_all_graphs() {
        let branch = || graph(vec![relu("w", "a"), relu("a", "b")], &["w"], "b");
        let deeper = graph(vec![relu("b", "a"), holder("If", "c", vec![branch()]), relu("a", "d")], &[], "d");
        let mut graph = graph(vec![holder("If", "b", vec![branch(), deeper]), relu("b", "y")], &[], "y");
        assert_eq!(tell_apart(&mut graph), 5);
        let expected = [
            "b = x, y = b, y",
            "a = w, b_2 = a, w, b_2",
            "a_2 = b, c = x, d = a_2, d",
            "a_3 = w_2, b_3 = a_3, w_2, b_3",
        ];
        assert_eq!(lines(&graph), expected);
        assert_eq!(tell_apart(&mut graph), 0);
    }

    #[test]
    fn names_that_another_operator_looks_for_stay() {
        let decoder = graph(vec![relu("a", "ids"), relu("outer", "b")], &["a"], "b");
        let own = holder("Search", "s", vec![decoder]).in_domain("mine");
        let branch = graph(vec![relu("x", "a"), relu("a", "outer"), own], &[], "s");
        let mut graph = graph(vec![relu("x", "a"), relu("a", "outer"), holder("If", "y", vec![branch])], &[], "y");
        tell_apart(&mut graph);
        let expected = ["a = x, outer = a, y = x, y", "a_2 = x, outer_2 = a_2, s = x, s", "ids = a, b = outer_2, a, b"];
        assert_eq!(lines(&graph), expected);
    }
}
