//! A model's own functions: which one a node calls, and how many nodes all calls stand for.
//!
//! Input: a model. Output: a refusal where calls have no end, or stand for more nodes than any network has. Deliberately
//! absent: what a function computes (`infer`), and replacing a call by its nodes (`precision::inline`).
//!
//! Twenty functions that each call the next one twice are a small file and a million nodes, so that whoever follows
//! calls has to know beforehand where that ends. The standard forbids recursion (IR.md, "Functions").

use std::collections::HashMap;

use super::error::OnnxErrorKind;
use super::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};

/// Graphs within nodes within graphs, and functions that call functions: real models stay below twenty.
pub(super) const DEEPEST: usize = 32;

/// Nodes that all calls together may stand for. Exports with a function for each module have some ten thousand.
pub(super) const MOST_NODES: u64 = 1 << 18;

/// Domain, name and overload, which a call names together.
pub(super) type Key<'a> = (&'a str, &'a str, &'a str);

impl FunctionProto {
    /// What calls name it by.
    pub(super) fn key(&self) -> Key<'_> {
        (plain(self.domain()), self.name(), self.overload())
    }
}

impl NodeProto {
    /// The function that this calls, if there is one.
    pub(super) fn called(&self) -> Key<'_> {
        (plain(self.domain()), self.op_type(), self.overload())
    }

    /// This node and those in its graphs.
    pub(super) fn with_inner(&self, visit: &mut dyn FnMut(&NodeProto)) {
        visit(self);
        self.graphs().flat_map(|graph| &graph.node).for_each(|inner| inner.with_inner(visit));
    }
}

/// The standard's own domain has two names.
pub(super) fn plain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Makes sure that every call has an end, and that all together stand for no more than [`MOST_NODES`].
///
/// # Errors
///
/// A function that calls itself, directly or not, and calls that stand for too much.
pub(super) fn check_functions(model: &ModelProto) -> Result<(), OnnxErrorKind> {
    let functions = Functions::of(model);
    let sizes = functions.sizes()?;
    let mut n_nodes = 0_u64;
    for node in model.graph.iter().flat_map(|graph| &graph.node) {
        node.with_inner(&mut |node| {
            let stands_for = functions.index.get(&node.called()).map_or(0, |function| sizes[*function]);
            n_nodes = n_nodes.saturating_add(stands_for);
        });
    }
    if n_nodes > MOST_NODES { Err(OnnxErrorKind::TooManyCalls { most: MOST_NODES }) } else { Ok(()) }
}

/// Those of the functions that the graph calls, and that these call.
pub(super) fn called(graph: &GraphProto, functions: Vec<FunctionProto>) -> Vec<FunctionProto> {
    let index: HashMap<Key<'_>, usize> = functions.iter().map(FunctionProto::key).zip(0..).collect();
    let mut is_called = vec![false; functions.len()];
    let mut nodes: Vec<&NodeProto> = graph.node.iter().collect();
    while let Some(node) = nodes.pop() {
        nodes.extend(node.graphs().flat_map(|graph| &graph.node));
        if let Some(function) = index.get(&node.called())
            && !std::mem::replace(&mut is_called[*function], true)
        {
            nodes.extend(&functions[*function].node);
        }
    }
    functions.into_iter().zip(is_called).filter_map(|(function, is_called)| is_called.then_some(function)).collect()
}

struct Functions<'m> {
    functions: &'m [FunctionProto],
    index: HashMap<Key<'m>, usize>,
}

impl<'m> Functions<'m> {
    fn of(model: &'m ModelProto) -> Self {
        let index = model.functions.iter().enumerate().map(|(index, function)| (function.key(), index)).collect();
        Functions { functions: &model.functions, index }
    }

    /// The functions that each calls, as often as it does.
    fn calls(&self) -> Vec<Vec<usize>> {
        let called_by = |function: &FunctionProto| {
            let mut calls = Vec::new();
            let mut add = |node: &NodeProto| calls.extend(self.index.get(&node.called()));
            function.node.iter().for_each(|node| node.with_inner(&mut add));
            calls
        };
        self.functions.iter().map(called_by).collect()
    }

    /// Nodes that a call of each function stands for. Functions whose calls are all known come first, so that what is
    /// left over calls itself, or calls what does.
    fn sizes(&self) -> Result<Vec<u64>, OnnxErrorKind> {
        let calls = self.calls();
        let mut callers = vec![Vec::new(); calls.len()];
        calls
            .iter()
            .enumerate()
            .for_each(|(caller, called)| called.iter().for_each(|called| callers[*called].push(caller)));
        let mut unknown: Vec<usize> = calls.iter().map(Vec::len).collect();
        let mut sizes: Vec<u64> = self.functions.iter().map(count_nodes).collect();
        let mut ready: Vec<usize> = (0..calls.len()).filter(|function| unknown[*function] == 0).collect();
        while let Some(function) = ready.pop() {
            for caller in &callers[function] {
                sizes[*caller] = sizes[*caller].saturating_add(sizes[function]);
                unknown[*caller] -= 1;
                if unknown[*caller] == 0 {
                    ready.push(*caller);
                }
            }
        }
        match (0..calls.len()).find(|function| unknown[*function] > 0) {
            None => Ok(sizes),
            Some(first) => Err(self.circle(&calls, &unknown, first)),
        }
    }

    /// Whatever is left over calls something that is left over, so that following these calls comes round.
    fn circle(&self, calls: &[Vec<usize>], unknown: &[usize], first: usize) -> OnnxErrorKind {
        let mut seen = vec![false; calls.len()];
        let mut function = first;
        while !std::mem::replace(&mut seen[function], true) {
            function = calls[function].iter().copied().find(|called| unknown[*called] > 0).unwrap_or(function);
        }
        OnnxErrorKind::Recursion { function: self.functions[function].name().to_owned() }
    }
}

fn count_nodes(function: &FunctionProto) -> u64 {
    let mut n_nodes = 0;
    function.node.iter().for_each(|node| node.with_inner(&mut |_| n_nodes += 1));
    n_nodes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sample::model_of;

    fn call(name: &str) -> NodeProto {
        NodeProto::of(name, "", &["x"], &["y"], vec![]).in_domain("own")
    }

    fn function(name: &str, nodes: Vec<NodeProto>) -> FunctionProto {
        let (name, domain) = (Some(name.to_owned()), Some("own".to_owned()));
        FunctionProto { name, domain, node: nodes, ..Default::default() }
    }

    fn check(functions: Vec<FunctionProto>) -> Result<(), String> {
        let mut model = model_of(17, "x[2]", "", vec![], vec![call("f0")]);
        model.functions = functions;
        check_functions(&model).map_err(|error| error.to_string())
    }

    /// Each calls the next one twice.
    fn doubling(levels: usize) -> Vec<FunctionProto> {
        let level = |level: usize| function(&format!("f{level}"), vec![call(&format!("f{}", level + 1)); 2]);
        (0..levels).map(level).collect()
    }

    #[test]
    fn calls_that_stand_for_too_many_nodes_are_refused() {
        assert_eq!(check(doubling(10)), Ok(()));
        for levels in [18, 40, 200] {
            assert_eq!(
                check(doubling(levels)).unwrap_err(),
                "the calls of its functions stand for more than 262144 nodes"
            );
        }
        // Deep, but small: a chain longer than any stack.
        let chain = (0..100_000).map(|level| function(&format!("f{level}"), vec![call(&format!("f{}", level + 1))]));
        assert_eq!(check(chain.collect()), Ok(()));
    }

    #[test]
    fn a_function_that_calls_itself_is_named() {
        assert_eq!(check(vec![function("f0", vec![call("f0")])]).unwrap_err(), "its function `f0` calls itself");
        let circle =
            vec![function("f0", vec![call("f1")]), function("f1", vec![call("f2")]), function("f2", vec![call("f1")])];
        assert_eq!(check(circle).unwrap_err(), "its function `f1` calls itself");
    }
}
