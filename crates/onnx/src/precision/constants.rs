//! Constants brought into one form: initialisers.
//!
//! Input: a model that keeps weights in `Constant` nodes, or makes them of other weights by `Cast`, `Concat`, `Mul` and
//! all else that `infer::evaluate` knows. Output: the same model with initialisers instead, as ONNX Runtime has
//! it after loading. Deliberately absent: `Transpose` of two dimensions, which the conversions look through, because a
//! weight that is read both ways should be stored once; and what would make the file larger for nothing.

use std::collections::{HashMap, HashSet};

use super::report::ConversionError;
use super::sparse::make_dense;
use crate::infer::{Evaluated, evaluate};
use crate::operators::{Parameter, operator};
use crate::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// Bytes that all constants may have beyond twice those of the file: a model of a few bytes may ask for any size. Twice,
/// because weights in 16 bits are widened.
const MOST_GROWTH: u64 = 1 << 30;

/// A constant of so many bytes may be larger than what it is made of, whoever reads it.
const SMALL: u64 = 1 << 12;

/// The first version of the file format in which an initialiser needs no graph input of its name.
const IR_WITHOUT_WEIGHT_INPUTS: i64 = 4;

/// Turns constants into initialisers of their graph, and takes those that are inputs of the main graph out of the inputs.
/// Every value has a name of its own (`names::tell_apart`). `wanting`
/// are the operators whose weights are converted: for them alone a constant may take more bytes than what it is made of.
///
/// An initialiser that is an input too is a default that a caller may replace. A converted weight cannot be replaced, and
/// ONNX Runtime folds and packs only what it knows to be constant.
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn settle_constants(model: &mut ModelProto, wanting: &[&str]) -> Result<(), TensorError> {
    let opset = model.opset("").unwrap_or(1);
    let Some(graph) = model.graph.as_mut() else { return Ok(()) };
    make_dense(graph, wanting, MOST_GROWTH)?;
    let weights: HashSet<String> = graph.initializer.iter().map(|tensor| tensor.name().to_owned()).collect();
    let inputs = graph.input.len();
    graph.input.retain(|input| !weights.contains(input.name()));
    settle_nodes(graph, opset, Wanted { operators: wanting, elements: 0 })?;
    if graph.input.len() < inputs || model.ir_version() < IR_WITHOUT_WEIGHT_INPUTS {
        model.ir_version = Some(model.ir_version().max(IR_WITHOUT_WEIGHT_INPUTS));
    }
    Ok(())
}

/// Computes weights of at least so many elements that nodes make of other weights, where the file does not grow by it;
/// gives how many nodes are gone. Every value has a name of its own (`names::tell_apart`).
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn fold_weights(model: &mut ModelProto, from_elements: usize) -> Result<u64, TensorError> {
    let (opset, ir_version) = (model.opset("").unwrap_or(1), model.ir_version());
    // Before that version every weight is an input that a caller may replace.
    let Some(graph) = model.graph.as_mut().filter(|_| ir_version >= IR_WITHOUT_WEIGHT_INPUTS) else { return Ok(0) };
    settle_nodes(graph, opset, Wanted { operators: &[], elements: from_elements })
}

/// Takes empty names from the ends of inputs and outputs, where the standard lets them be left out: the same model, but
/// ONNX Runtime 1.31 makes kernels in 8 bits that fail for an output with an empty name.
pub fn drop_empty_names(model: &mut ModelProto) {
    let opset = model.opset("").unwrap_or(1);
    if let Some(graph) = model.graph.as_mut() {
        drop_empty_names_of(&mut graph.node, opset);
    }
    for function in &mut model.functions {
        drop_empty_names_of(&mut function.node, opset);
    }
}

fn drop_empty_names_of(nodes: &mut [NodeProto], opset: i64) {
    for node in nodes {
        // How many outputs there are says something where there may be any number.
        let known = operator(node.op_type(), opset).filter(|_| node.is_standard());
        let may_go = |parameter: Option<&Parameter>| parameter.is_some_and(|it| it.is_optional && !it.is_variadic);
        let (mut inputs, mut outputs) = (node.input.len(), node.output.len());
        while inputs > 0 && node.input[inputs - 1].is_empty() && may_go(known.and_then(|it| it.input(inputs - 1))) {
            inputs -= 1;
        }
        while outputs > 0 && node.output[outputs - 1].is_empty() && may_go(known.and_then(|it| it.output(outputs - 1)))
        {
            outputs -= 1;
        }
        node.input.truncate(inputs);
        node.output.truncate(outputs);
        for inner in node.graphs_mut() {
            drop_empty_names_of(&mut inner.node, opset);
        }
    }
}

/// Whether every weight has a name of its own, within its graph.
///
/// # Errors
///
/// The first that has not. ONNX Runtime loads such a model with a warning and takes the last one of each name.
pub fn check_initialisers(model: &ModelProto) -> Result<(), ConversionError> {
    model.graph.as_ref().map_or(Ok(()), check_initialisers_of)
}

fn check_initialisers_of(graph: &GraphProto) -> Result<(), ConversionError> {
    let mut names = HashSet::new();
    let sparse = graph.sparse_initializer.iter().map(|sparse| sparse.name());
    for name in graph.initializer.iter().map(TensorProto::name).chain(sparse) {
        if !names.insert(name) {
            return Err(ConversionError::DuplicateInitialiser { name: name.to_owned() });
        }
    }
    graph.node.iter().flat_map(|node| node.graphs()).try_for_each(check_initialisers_of)
}

/// Turns weights that stand in `Constant` nodes, as Paddle2ONNX and spox write them, and sparse ones into initialisers of the
/// same graph; gives their number. Smaller constants, which are settings as a rule, stay.
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn lift_weights(model: &mut ModelProto, from_elements: usize) -> Result<u64, TensorError> {
    let Some(graph) = model.graph.as_mut() else { return Ok(0) };
    let dense = make_dense(graph, &["Conv", "ConvTranspose", "Gather", "Gemm", "MatMul"], MOST_GROWTH)?;
    let lifted = dense + lift_weights_of(graph, from_elements)?;
    if lifted > 0 {
        model.ir_version = Some(model.ir_version().max(IR_WITHOUT_WEIGHT_INPUTS));
    }
    Ok(lifted)
}

fn lift_weights_of(graph: &mut GraphProto, from_elements: usize) -> Result<u64, TensorError> {
    let outputs: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    let (mut lifted, mut nodes) = (0, Vec::with_capacity(graph.node.len()));
    for mut node in std::mem::take(&mut graph.node) {
        for inner in node.graphs_mut() {
            lifted += lift_weights_of(inner, from_elements)?;
        }
        match weight_of(&mut node, &outputs, from_elements)? {
            Some(weight) => {
                graph.initializer.push(weight);
                lifted += 1;
            }
            None => nodes.push(node),
        }
    }
    graph.node = nodes;
    Ok(lifted)
}

/// The weight that a `Constant` node holds, under the node's name for it.
fn weight_of(
    node: &mut NodeProto,
    outputs: &HashSet<String>,
    from_elements: usize,
) -> Result<Option<TensorProto>, TensorError> {
    let Some(output) = node.output.first().cloned().filter(|output| !outputs.contains(output)) else { return Ok(None) };
    let is_large = match node.tensor("value") {
        Some(tensor) if tensor.element() == ElementType::Float32 => tensor.elements()? >= from_elements,
        _ => false,
    };
    if !is_large || !node.is_standard() || node.op_type() != "Constant" {
        return Ok(None);
    }
    let value = node.attribute.iter_mut().find(|attribute| attribute.name() == "value");
    Ok(value.and_then(|value| value.t.take()).map(|weight| TensorProto { name: Some(output), ..*weight }))
}

/// Everything that a node reads, inside its graphs too: they see the names around them.
pub(crate) fn count_readers(node: &NodeProto, readers: &mut HashMap<String, u64>) {
    for name in node.input.iter().filter(|name| !name.is_empty()) {
        *readers.entry(name.clone()).or_default() += 1;
    }
    for graph in node.graphs() {
        graph.node.iter().for_each(|inner| count_readers(inner, readers));
        graph.output.iter().for_each(|output| *readers.entry(output.name().to_owned()).or_default() += 1);
    }
}

/// Every value that no input of the graph has a part in: weights, and what nodes make of them alone. In branches and bodies
/// too, if every value has a name of its own.
pub(super) fn constant_values<'a>(graph: &'a GraphProto, nodes: &'a [NodeProto]) -> HashSet<&'a str> {
    let mut constant = HashSet::new();
    add_constant_values(graph, nodes, &mut constant);
    constant
}

fn add_constant_values<'a>(graph: &'a GraphProto, nodes: &'a [NodeProto], constant: &mut HashSet<&'a str>) {
    let inputs: HashSet<&str> = graph.input.iter().map(|input| input.name()).collect();
    let weights = graph.initializer.iter().map(TensorProto::name);
    let sparse = graph.sparse_initializer.iter().map(|sparse| sparse.name());
    constant.extend(weights.chain(sparse).filter(|weight| !inputs.contains(weight)));
    for node in nodes {
        let is_plain = node.is_standard() && node.graphs().next().is_none();
        if is_plain && node.input.iter().all(|input| input.is_empty() || constant.contains(input.as_str())) {
            constant.extend(node.output.iter().map(String::as_str).filter(|output| !output.is_empty()));
        }
        inside(node).for_each(|inner| add_constant_values(inner, &inner.node, constant));
    }
}

/// The branches and bodies that a conversion goes into: those of the standard's operators, which see the names around them.
pub(super) fn inside(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    let is_standard = node.is_standard();
    node.graphs().filter(move |_| is_standard)
}

/// The same, to be changed.
pub(super) fn inside_mut(node: &mut NodeProto) -> impl Iterator<Item = &mut GraphProto> {
    let is_standard = node.is_standard();
    node.graphs_mut().filter(move |_| is_standard)
}

/// Whether a node exchanges the dimensions of a matrix; a tensor with more of them it turns otherwise.
pub(super) fn is_exchange(node: &NodeProto) -> bool {
    node.is_standard() && node.op_type() == "Transpose" && matches!(node.ints("perm"), None | Some([1, 0]))
}

/// Which constants are wanted as initialisers.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// Those that these operators read, if the file grows by it.
    operators: &'a [&'a str],
    /// All constants from so many elements on, if it does not.
    elements: usize,
}

/// Gives how many nodes are gone.
fn settle_nodes(graph: &mut GraphProto, opset: i64, wanted: Wanted<'_>) -> Result<u64, TensorError> {
    let foldings = foldings(graph, wanted.operators);
    let mut readers: HashMap<String, u64> = HashMap::new();
    graph.node.iter().for_each(|node| count_readers(node, &mut readers));
    graph.output.iter().for_each(|output| *readers.entry(output.name().to_owned()).or_default() += 1);
    let mut held = 0_u64;
    graph.each_tensor(&mut |tensor| held = held.saturating_add(bytes_of(tensor)));
    let mut constants = Constants {
        weights: Vec::new(),
        weight_indices: HashMap::new(),
        readers,
        held,
        most: held.saturating_mul(2).saturating_add(MOST_GROWTH),
        opset,
        least: wanted.elements,
        folded: 0,
    };
    constants.settle(graph, &mut foldings.into_iter())?;
    Ok(constants.folded)
}

/// What may become of a node that reads constants alone.
#[derive(Clone, Copy)]
struct Folding {
    /// Its result is a weight that is converted, or becomes one.
    is_wanted: bool,
    /// A node that reads constants alone reads it.
    is_read_on: bool,
}

/// By node, those inside a node behind it; `None` for what depends on the inputs of a graph, and for its outputs, which a
/// node must make in old versions of the format.
fn foldings(graph: &GraphProto, wanting: &[&str]) -> Vec<Option<Folding>> {
    let constant = constant_values(graph, &graph.node);
    let (mut nodes, mut outputs) = (Vec::new(), HashSet::new());
    in_order(graph, &mut nodes, &mut outputs);
    let (mut wanted, mut read_on): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    let mut foldings = vec![None; nodes.len()];
    for (node, folding) in nodes.iter().zip(&mut foldings).rev() {
        let makes = |values: &HashSet<&str>| node.output.iter().any(|output| values.contains(output.as_str()));
        let inputs = || node.input.iter().map(String::as_str);
        let is_constant = makes(&constant) && !makes(&outputs);
        let is_wanted = is_constant && makes(&wanted);
        if is_constant {
            *folding = Some(Folding { is_wanted, is_read_on: makes(&read_on) });
            read_on.extend(inputs());
        }
        if is_wanted || (node.is_standard() && wanting.contains(&node.op_type())) {
            wanted.extend(inputs());
        }
    }
    foldings
}

fn in_order<'a>(graph: &'a GraphProto, nodes: &mut Vec<&'a NodeProto>, outputs: &mut HashSet<&'a str>) {
    outputs.extend(graph.output.iter().map(|output| output.name()));
    for node in &graph.node {
        nodes.push(node);
        inside(node).for_each(|inner| in_order(inner, nodes, outputs));
    }
}

fn bytes_of(tensor: &TensorProto) -> u64 {
    let width = tensor.element().size_bytes().unwrap_or(1);
    tensor.elements().map_or(0, |elements| (elements as u64).saturating_mul(width))
}

struct Constants {
    /// Of the current graph and of those around it, which come first.
    weights: Vec<TensorProto>,
    weight_indices: HashMap<String, usize>,
    readers: HashMap<String, u64>,
    /// Bytes of all constants.
    held: u64,
    /// So many they may have.
    most: u64,
    opset: i64,
    /// Elements of the smallest constant that is worth it.
    least: usize,
    /// Nodes that are gone.
    folded: u64,
}

impl Constants {
    /// Goes through a graph and those inside it.
    fn settle(
        &mut self,
        graph: &mut GraphProto,
        foldings: &mut impl Iterator<Item = Option<Folding>>,
    ) -> Result<(), TensorError> {
        let first = self.weights.len();
        self.weights.append(&mut graph.initializer);
        let new = self.weights.iter().enumerate().skip(first);
        self.weight_indices.extend(new.map(|(index, tensor)| (tensor.name().to_owned(), index)));
        for mut node in std::mem::take(&mut graph.node) {
            let folding = foldings.next().flatten();
            for inner in inside_mut(&mut node) {
                self.settle(inner, foldings)?;
            }
            match folding {
                Some(folding) if self.fold(&node, folding)? => self.folded += 1,
                _ => graph.node.push(node),
            }
        }
        graph.initializer = self.weights.split_off(first);
        for tensor in &graph.initializer {
            self.weight_indices.remove(tensor.name());
        }
        graph.initializer.retain(|tensor| self.readers.get(tensor.name()) != Some(&0));
        Ok(())
    }

    /// Replaces a node by initialisers; returns whether that could be done.
    fn fold(&mut self, node: &NodeProto, folding: Folding) -> Result<bool, TensorError> {
        let weight_index =
            |name: &String| if name.is_empty() { Some(None) } else { self.weight_indices.get(name).copied().map(Some) };
        let Some(weight_indices) = node.input.iter().map(weight_index).collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        let tensors: Vec<Option<&TensorProto>> =
            weight_indices.iter().map(|weight| weight.map(|index| &self.weights[index])).collect();
        let is_matrix = tensors.first().copied().flatten().is_some_and(|tensor| tensor.dims.len() == 2);
        if is_exchange(node) && is_matrix && !folding.is_read_on {
            return Ok(false);
        }
        let last_read: HashSet<usize> =
            weight_indices.iter().flatten().copied().filter(|index| self.is_last(node, *index)).collect();
        let freed: u64 = last_read.iter().map(|index| bytes_of(&self.weights[*index])).sum();
        let most = match (node.op_type(), folding.is_wanted) {
            // It is there already.
            ("Constant", _) => u64::MAX,
            (_, true) => self.most.saturating_sub(self.held).saturating_add(freed),
            (_, false) if folding.is_read_on || self.least == 0 => freed.max(SMALL),
            (_, false) => freed,
        };
        let Some(outputs) = evaluate(node, self.opset, &tensors, most)? else { return Ok(false) };
        // A large weight that is there is worth more than a small one, or its integers, computed from it.
        let is_large = |index: &usize| self.weights[*index].elements().is_ok_and(|elements| elements >= self.least);
        let is_worth_it = folding.is_read_on && !last_read.iter().any(is_large);
        if self.least > 0 && !is_worth_it && !outputs.iter().all(|output| output.is_weight_from(self.least as u64)) {
            return Ok(false);
        }
        for (name, output) in node.output.iter().zip(outputs).filter(|(name, _)| !name.is_empty()) {
            let Some(tensor) = self.tensor(output, weight_indices.first().copied().flatten(), &last_read, most) else {
                return Ok(false);
            };
            if node.op_type() != "Constant" {
                self.held = self.held.saturating_add(bytes_of(&tensor));
            }
            self.weight_indices.insert(name.clone(), self.weights.len());
            self.weights.push(TensorProto { name: Some(name.clone()), ..tensor });
        }
        for name in node.input.iter().filter(|name| !name.is_empty()) {
            self.readers.entry(name.clone()).and_modify(|readers| *readers = readers.saturating_sub(1));
        }
        for index in last_read {
            self.held = self.held.saturating_sub(bytes_of(&self.weights[index]));
            drop_content(&mut self.weights[index]);
        }
        Ok(true)
    }

    /// Whether nothing reads an initialiser once the node is gone.
    fn is_last(&self, node: &NodeProto, index: usize) -> bool {
        let name = self.weights[index].name();
        let reads = node.input.iter().filter(|input| *input == name).count() as u64;
        self.readers.get(name).is_some_and(|readers| *readers == reads)
    }

    /// A new tensor, or the content of the first input in another shape: moved where nothing else reads it.
    fn tensor(
        &mut self,
        output: Evaluated,
        first: Option<usize>,
        last_read: &HashSet<usize>,
        most: u64,
    ) -> Option<TensorProto> {
        let (shape, index) = match output {
            Evaluated::Made(tensor) => return Some(*tensor),
            Evaluated::Same(shape) => (shape, first?),
        };
        let from = &mut self.weights[index];
        let tensor = match last_read.contains(&index) {
            true => {
                // Nothing is counted as freed twice.
                self.held = self.held.saturating_sub(bytes_of(from));
                drop_content(from)
            }
            false if bytes_of(from) > most => return None,
            false => from.clone(),
        };
        Some(TensorProto { dims: shape.iter().map(|size| *size as i64).collect(), ..tensor })
    }
}

/// Takes the content and leaves name, type and an empty shape behind, which go in the end.
fn drop_content(tensor: &mut TensorProto) -> TensorProto {
    let left =
        TensorProto { name: tensor.name.clone(), data_type: tensor.data_type, dims: vec![0], ..Default::default() };
    std::mem::replace(tensor, left)
}

/// An axis counted from the front.
pub(crate) fn axis_index(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

#[cfg(test)]
mod tests;
