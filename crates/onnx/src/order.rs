//! Nodes in an order in which each follows those that it uses.
//!
//! The standard demands it, and ONNX Runtime sorts the model's own graph where it is not so. Graphs within nodes it refuses
//! unsorted, and so does `graph_check`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::proto::{GraphProto, NodeProto};

/// Sorts the nodes of a graph where they are not sorted; equals stay in their order. A cycle leaves them as they are.
pub(super) fn sort(graph: &mut GraphProto) {
    let needed = needed(graph);
    if needed.iter().enumerate().all(|(node, needed)| needed.iter().all(|producer| *producer < node)) {
        return;
    }
    let mut users = vec![Vec::new(); needed.len()];
    for (node, needed) in needed.iter().enumerate() {
        needed.iter().for_each(|producer| users[*producer].push(node));
    }
    let mut waits_for: Vec<usize> = needed.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..needed.len()).filter(|node| waits_for[*node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(needed.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for user in &users[node] {
            waits_for[*user] -= 1;
            if waits_for[*user] == 0 {
                ready.push(Reverse(*user));
            }
        }
    }
    if order.len() == graph.node.len() {
        let mut nodes: Vec<NodeProto> = order.iter().map(|node| std::mem::take(&mut graph.node[*node])).collect();
        std::mem::swap(&mut graph.node, &mut nodes);
    }
}

/// For each node the nodes whose values it, or a graph inside it, uses; each once.
fn needed(graph: &GraphProto) -> Vec<Vec<usize>> {
    let mut producers = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            producers.entry(name.as_str()).or_insert(index);
        }
    }
    let needed = |node: &NodeProto| {
        let mut needed: Vec<usize> = node.reads().into_iter().filter_map(|name| producers.get(name).copied()).collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    };
    graph.node.iter().map(needed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::AttributeProto;

    fn names(graph: &GraphProto) -> Vec<&str> {
        graph.node.iter().map(|node| node.name()).collect()
    }

    fn node(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        NodeProto::of("Op", name, inputs, outputs, vec![])
    }

    #[test]
    fn nodes_follow_what_they_use_and_else_stay() {
        let mut graph = GraphProto::default();
        let inner = GraphProto { node: vec![node("inner", &["b"], &["i"])], ..GraphProto::default() };
        let attribute = AttributeProto::of_graph("then_branch", inner);
        let branch = NodeProto::of("If", "branch", &["c"], &["r"], vec![attribute]);
        graph.node = vec![branch, node("c", &["b"], &["c"]), node("d", &["x"], &["d"]), node("b", &["x"], &["b"])];
        sort(&mut graph);
        assert_eq!(names(&graph), ["d", "b", "c", "branch"]);
        let sorted = graph.clone();
        sort(&mut graph);
        assert_eq!(graph, sorted);
    }

    #[test]
    fn a_cycle_is_left_for_the_check_of_the_graph() {
        let node = vec![node("a", &["b"], &["a"]), node("b", &["a"], &["b"]), node("c", &["x"], &["c"])];
        let mut graph = GraphProto { node, ..Default::default() };
        sort(&mut graph);
        assert_eq!(names(&graph), ["a", "b", "c"]);
    }
}
