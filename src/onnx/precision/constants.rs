//! Constants brought into one form: initialisers.
//!
//! Input: a model that keeps weights in `Constant` nodes, makes them with `ConstantOfShape`, or passes them through
//! `Identity`, `Reshape`, `Squeeze` and `Unsqueeze`. Output: the same model with initialisers in their place.
//! Deliberately absent: folding anything that computes, and `Transpose`, which the conversions look through, because a
//! weight that is read both ways should be stored once.

use std::collections::{HashMap, HashSet};

use super::edit::count_readers;
use super::report::ConversionProblem;
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use crate::onnx::{ElementType, TensorProblem};

/// The largest constant that `ConstantOfShape` is unfolded to, in bytes: a model of a few bytes may ask for any size.
const LARGEST_FILL_BYTES: u64 = 1 << 30;

/// The first version of the file format in which an initialiser needs no graph input of its name.
const IR_WITHOUT_WEIGHT_INPUTS: i64 = 4;

/// Turns constants of the main graph into initialisers, and takes those that are graph inputs out of the inputs.
///
/// An initialiser that is an input too is a default that a caller may replace. A converted weight cannot be replaced, and
/// ONNX Runtime folds and packs only what it knows to be constant.
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn settle_constants(model: &mut ModelProto) -> Result<(), TensorProblem> {
    let Some(graph) = model.graph.as_mut() else { return Ok(()) };
    let weights: HashSet<String> = graph.initializer.iter().map(|tensor| tensor.name().to_owned()).collect();
    let inputs = graph.input.len();
    graph.input.retain(|input| !weights.contains(input.name()));
    settle_nodes(graph)?;
    if graph.input.len() < inputs || model.ir_version() < IR_WITHOUT_WEIGHT_INPUTS {
        model.ir_version = Some(model.ir_version().max(IR_WITHOUT_WEIGHT_INPUTS));
    }
    Ok(())
}

/// Whether every weight has a name of its own, within its graph.
///
/// # Errors
///
/// The first that has not. ONNX Runtime loads such a model with a warning and takes the last one of each name.
pub(crate) fn check_initialisers(model: &ModelProto) -> Result<(), ConversionProblem> {
    model.graph.as_ref().map_or(Ok(()), check_initialisers_of)
}

fn check_initialisers_of(graph: &GraphProto) -> Result<(), ConversionProblem> {
    let mut names = HashSet::new();
    let sparse = graph.sparse_initializer.iter().map(|sparse| sparse.values.name());
    for name in graph.initializer.iter().map(TensorProto::name).chain(sparse) {
        if !names.insert(name) {
            return Err(ConversionProblem::DuplicateInitialiser { name: name.to_owned() });
        }
    }
    graph.node.iter().flat_map(|node| node.graphs()).try_for_each(check_initialisers_of)
}

/// Turns weights that stand in `Constant` nodes, as Paddle2ONNX and spox write them, into initialisers of the same
/// graph; gives their number. Smaller constants, which are settings as a rule, stay.
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn lift_weights(model: &mut ModelProto, from_elements: usize) -> Result<u64, TensorProblem> {
    let Some(graph) = model.graph.as_mut() else { return Ok(0) };
    let lifted = lift_weights_of(graph, from_elements)?;
    if lifted > 0 {
        model.ir_version = Some(model.ir_version().max(IR_WITHOUT_WEIGHT_INPUTS));
    }
    Ok(lifted)
}

fn lift_weights_of(graph: &mut GraphProto, from_elements: usize) -> Result<u64, TensorProblem> {
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
) -> Result<Option<TensorProto>, TensorProblem> {
    let Some(output) = node.output.first().cloned().filter(|output| !outputs.contains(output)) else { return Ok(None) };
    let is_large = match node.tensor("value") {
        Some(tensor) if tensor.element() == ElementType::Float32 => tensor.elements()? >= from_elements,
        _ => false,
    };
    if !is_large || !node.is_standard() || node.op_type() != "Constant" {
        return Ok(None);
    }
    Ok(constant(node).map(|weight| TensorProto { name: Some(output), ..weight }))
}

fn settle_nodes(graph: &mut GraphProto) -> Result<(), TensorProblem> {
    let outputs: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    let mut readers: HashMap<String, u64> = HashMap::new();
    graph.node.iter().for_each(|node| count_readers(node, &mut readers));
    outputs.iter().for_each(|name| *readers.entry(name.clone()).or_default() += 1);
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, tensor) in graph.initializer.iter().enumerate() {
        places.insert(tensor.name().to_owned(), index);
    }
    let mut nodes = Vec::with_capacity(graph.node.len());
    for mut node in std::mem::take(&mut graph.node) {
        let output = node.output.first().cloned().unwrap_or_default();
        // A graph output must be made by a node in old versions of the format.
        let may_go = node.is_standard() && node.output.len() == 1 && !outputs.contains(&output);
        let mut constants = Constants { weights: &mut graph.initializer, places: &places, readers: &readers };
        match if may_go { constants.value(&mut node)? } else { None } {
            Some(mut tensor) => {
                tensor.name = Some(output.clone());
                places.insert(output, graph.initializer.len());
                graph.initializer.push(tensor);
            }
            None => nodes.push(node),
        }
    }
    graph.node = nodes;
    Ok(())
}

struct Constants<'a> {
    weights: &'a mut Vec<TensorProto>,
    places: &'a HashMap<String, usize>,
    readers: &'a HashMap<String, u64>,
}

impl Constants<'_> {
    /// What the node gives, where that is constant and needs no arithmetic.
    fn value(&mut self, node: &mut NodeProto) -> Result<Option<TensorProto>, TensorProblem> {
        Ok(match node.op_type() {
            "Constant" => constant(node),
            "ConstantOfShape" => match self.integers(node, 0)? {
                Some(shape) => filled(&shape, node.tensor("value"))?,
                None => None,
            },
            "Identity" => self.take(node),
            "Reshape" if node.int("allowzero").unwrap_or(0) == 0 => match self.integers(node, 1)? {
                Some(wanted) => self.reshaped(node, |shape| reshape(shape, &wanted))?,
                None => None,
            },
            "Unsqueeze" => match self.axes(node)? {
                Some(axes) => self.reshaped(node, |shape| unsqueeze(shape, &axes))?,
                None => None,
            },
            "Squeeze" => match self.axes(node)? {
                Some(axes) => self.reshaped(node, |shape| squeeze(shape, &axes))?,
                None => None,
            },
            _ => None,
        })
    }

    fn weight(&self, node: &NodeProto, input: usize) -> Option<&TensorProto> {
        self.weights.get(*self.places.get(node.input.get(input)?)?)
    }

    fn integers(&self, node: &NodeProto, input: usize) -> Result<Option<Vec<i64>>, TensorProblem> {
        let tensor = self.weight(node, input).filter(|tensor| tensor.element() == ElementType::Int64);
        tensor.map(TensorProto::integers).transpose()
    }

    /// Axes are an attribute up to operator set 12, an input from 13 on.
    fn axes(&self, node: &NodeProto) -> Result<Option<Vec<i64>>, TensorProblem> {
        match node.ints("axes") {
            Some(axes) => Ok(Some(axes.to_vec())),
            None => self.integers(node, 1),
        }
    }

    fn reshaped(
        &mut self,
        node: &NodeProto,
        shape: impl Fn(&[u64]) -> Option<Vec<u64>>,
    ) -> Result<Option<TensorProto>, TensorProblem> {
        let Some(tensor) = self.weight(node, 0) else { return Ok(None) };
        let Some(shape) = shape(&tensor.shape()?) else { return Ok(None) };
        Ok(self.take(node).map(|mut tensor| {
            tensor.dims = shape.iter().map(|size| *size as i64).collect();
            tensor
        }))
    }

    /// The content of the node's first input: moved where the node is its only reader.
    fn take(&mut self, node: &NodeProto) -> Option<TensorProto> {
        let place = *self.places.get(node.input.first()?)?;
        let is_shared = self.readers.get(node.input.first()?).is_none_or(|readers| *readers > 1);
        let tensor = self.weights.get_mut(place)?;
        Some(if is_shared { tensor.clone() } else { tensor_moved(tensor) })
    }
}

/// Leaves name, type and an empty shape behind, which goes with the next rewriting.
fn tensor_moved(tensor: &mut TensorProto) -> TensorProto {
    let left =
        TensorProto { name: tensor.name.clone(), data_type: tensor.data_type, dims: vec![0], ..Default::default() };
    std::mem::replace(tensor, left)
}

fn constant(node: &mut NodeProto) -> Option<TensorProto> {
    let attribute = node.attribute.first_mut()?;
    match attribute.name.as_deref()? {
        "value" => attribute.t.take(),
        "value_float" => Some(TensorProto::of_floats("", &[], &[attribute.f?])),
        "value_floats" => Some(TensorProto::of_floats("", &[attribute.floats.len() as u64], &attribute.floats)),
        "value_int" => Some(TensorProto::of_integers("", &[], &[attribute.i?])),
        "value_ints" => Some(TensorProto::of_integers("", &[attribute.ints.len() as u64], &attribute.ints)),
        _ => None,
    }
}

/// A tensor of one value; zeros of float32 without one.
fn filled(shape: &[i64], value: Option<&TensorProto>) -> Result<Option<TensorProto>, TensorProblem> {
    let default = TensorProto::of_floats("", &[1], &[0.0]);
    let value = value.unwrap_or(&default);
    let Ok(shape) = shape.iter().map(|size| u64::try_from(*size)).collect::<Result<Vec<u64>, _>>() else {
        return Ok(None);
    };
    if value.element().size_bytes().is_none() {
        return Ok(None);
    }
    let bytes = value.bytes()?;
    let size = shape.iter().try_fold(bytes.len() as u64, |size, dimension| size.checked_mul(*dimension));
    let Some(size) = size.filter(|size| *size <= LARGEST_FILL_BYTES && !bytes.is_empty()) else { return Ok(None) };
    let content = bytes.repeat(size as usize / bytes.len());
    Ok(Some(TensorProto::of_bytes("", &value.element(), &shape, content)))
}

/// Zero keeps a size, and one -1 takes what is left.
fn reshape(shape: &[u64], wanted: &[i64]) -> Option<Vec<u64>> {
    let elements = shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?;
    let sizes = wanted.iter().enumerate().map(|(index, size)| match size {
        0 => shape.get(index).copied(),
        -1 => Some(1),
        size => u64::try_from(*size).ok(),
    });
    let mut sizes = sizes.collect::<Option<Vec<u64>>>()?;
    let known = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?;
    if let Some(open) = wanted.iter().position(|size| *size == -1) {
        *sizes.get_mut(open)? = elements.checked_div(known)?;
    }
    let product = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?;
    (product == elements).then_some(sizes)
}

fn unsqueeze(shape: &[u64], axes: &[i64]) -> Option<Vec<u64>> {
    let rank = shape.len() + axes.len();
    let places = axes.iter().map(|axis| place(*axis, rank)).collect::<Option<HashSet<usize>>>()?;
    let mut sizes = shape.iter();
    let full = (0..rank).map(|index| if places.contains(&index) { Some(1) } else { sizes.next().copied() });
    full.collect::<Option<Vec<u64>>>().filter(|_| places.len() == axes.len())
}

fn squeeze(shape: &[u64], axes: &[i64]) -> Option<Vec<u64>> {
    let places = axes.iter().map(|axis| place(*axis, shape.len())).collect::<Option<HashSet<usize>>>()?;
    let is_one = places.iter().all(|place| shape.get(*place) == Some(&1));
    let kept = shape.iter().enumerate().filter(|(index, _)| !places.contains(index)).map(|(_, size)| *size);
    is_one.then(|| kept.collect())
}

/// An axis counted from the front.
pub(crate) fn place(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::onnx::proto::{AttributeProto, ValueInfoProto};

    fn value(name: &str) -> ValueInfoProto {
        ValueInfoProto { name: Some(name.to_owned()), ..Default::default() }
    }

    #[test]
    fn constants_of_every_kind_become_initialisers() {
        let fill = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[1], &[0.5]));
        let held = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[2], &[1.0, 2.0]));
        let nodes = vec![
            NodeProto::of("ConstantOfShape", "", &["shape"], &["filled"], vec![fill]),
            NodeProto::of("Constant", "", &[], &["held"], vec![held]),
            NodeProto::of("Identity", "", &["held"], &["same"], vec![]),
            NodeProto::of("Unsqueeze", "", &["same"], &["wide"], vec![AttributeProto::of_ints("axes", &[1, -1])]),
            NodeProto::of("Squeeze", "", &["wide"], &["flat"], vec![AttributeProto::of_ints("axes", &[1, 2])]),
            NodeProto::of("Reshape", "", &["filled", "sizes"], &["row"], vec![]),
            NodeProto::of("Add", "add", &["flat", "row"], &["y"], vec![]),
        ];
        let graph = GraphProto {
            node: nodes,
            initializer: vec![
                TensorProto::of_integers("shape", &[2], &[2, 3]),
                TensorProto::of_integers("sizes", &[2], &[1, -1]),
            ],
            input: vec![value("x"), value("shape")],
            output: vec![value("y")],
            ..Default::default()
        };
        let mut model = ModelProto { ir_version: Some(3), graph: Some(graph).into(), ..Default::default() };
        settle_constants(&mut model).unwrap();
        assert_eq!(model.ir_version(), 4);
        let graph = model.graph.unwrap();
        assert_eq!((graph.node.len(), graph.input.len()), (1, 1));
        let tensor = |name: &str| graph.initializer.iter().find(|tensor| tensor.name() == name).unwrap();
        assert_eq!((tensor("row").dims.clone(), tensor("row").floats().unwrap()), (vec![1, 6], vec![0.5; 6]));
        assert_eq!((tensor("flat").dims.clone(), tensor("flat").floats().unwrap()), (vec![2], vec![1.0, 2.0]));
    }

    #[test]
    fn what_cannot_be_is_left_to_the_runtime() {
        assert_eq!(filled(&[-1], None).unwrap(), None);
        assert_eq!(filled(&[i64::MAX, 2], None).unwrap(), None);
        assert_eq!(
            (reshape(&[4], &[3, -1]), reshape(&[4], &[0, 0]), reshape(&[4], &[2, -1])),
            (None, None, Some(vec![2, 2]))
        );
        assert_eq!((unsqueeze(&[2], &[5]), squeeze(&[2], &[0])), (None, None));
        assert_eq!((place(-1, 2), place(2, 2), place(i64::MIN, 2)), (Some(1), None, None));
    }
}
