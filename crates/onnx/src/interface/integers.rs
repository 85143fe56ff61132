//! What random integers a model can take: token ids below the rows of their table, indices below what they index, no zero
//! among divisors, and small valid values where an input is a shape, an axis or a number of repetitions.
//!
//! Input: a graph, and inputs with their shapes. Output: the range of each integer input that a node reads so, directly or
//! through nodes that keep values as they are; or the input for which no range is valid. Deliberately absent: values of
//! inputs that are only computed with, such as masks (0 and 1), and drawing (`worker::backend::inputs`).

use std::collections::HashMap;
use std::ops::Range;

use crate::ElementType;
use crate::functions::{DEEPEST, Key};
use crate::infer::{Inferred, Value, infer};
use crate::proto::{FunctionProto, ModelProto, NodeProto};
use crate::resolve::ResolvedTensor;
use crate::shape_error::ShapeError;

/// Values of an integer input, in a later value of the graph: with so much added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    input: usize,
    shift: i64,
}

/// Sets what the integers of those inputs are drawn from that get random values.
///
/// # Errors
///
/// An input for which no range is valid.
pub(super) fn choose(
    model: &ModelProto,
    tensors: &mut [ResolvedTensor],
    is_random: impl Fn(&str) -> bool,
) -> Result<(), ShapeError> {
    let Some(graph) = model.graph.as_ref() else { return Ok(()) };
    let is_drawn = |tensor: &ResolvedTensor| is_integer(&tensor.element) && is_random(&tensor.name);
    if !tensors.iter().any(is_drawn) {
        return Ok(());
    }
    let origins = tensors.iter().enumerate().filter(|(_, tensor)| is_drawn(tensor));
    let origins = origins.map(|(input, tensor)| (tensor.name.clone(), vec![Origin { input, shift: 0 }])).collect();
    let functions = model.functions.iter().map(|function| (function.key(), function)).collect();
    let inferred = infer(model, tensors);
    let mut walk = Walk { functions, ranges: vec![None; tensors.len()], refused: None, depth: 0 };
    walk.nodes(&graph.node, &mut Scope { origins, inferred: &inferred, outer: None });
    if let Some((input, role, node)) = walk.refused {
        return Err(ShapeError::NoRandomValues { tensor: tensors[input].name.clone(), role, node });
    }
    for (tensor, range) in tensors.iter_mut().zip(walk.ranges) {
        let (least, most) = limits(&tensor.element);
        let held = range.map(|range| range.start.max(least)..range.end.min(most.saturating_add(1)));
        tensor.integers = held.filter(|range| range.start < range.end);
    }
    Ok(())
}

fn is_integer(element: &ElementType) -> bool {
    !element.is_float() && *element != ElementType::Bool && element.size_bytes().is_some()
}

/// The smallest and the largest integer of a type.
fn limits(element: &ElementType) -> (i64, i64) {
    match element {
        ElementType::Int8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        ElementType::Uint8 => (0, i64::from(u8::MAX)),
        ElementType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        ElementType::Uint16 => (0, i64::from(u16::MAX)),
        ElementType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        ElementType::Uint32 => (0, i64::from(u32::MAX)),
        ElementType::Uint64 => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    }
}

/// What names stand for in a graph and in those around it.
struct Scope<'a> {
    origins: HashMap<String, Vec<Origin>>,
    inferred: &'a Inferred,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.inferred.value(name).or_else(|| self.outer?.value(name))
    }

    fn origins(&self, name: &str) -> &[Origin] {
        match (self.origins.get(name), self.outer) {
            (Some(origins), _) => origins,
            // A value of this graph hides one of the same name outside.
            (None, Some(outer)) if self.inferred.value(name).is_none() => outer.origins(name),
            (None, _) => &[],
        }
    }
}

struct Walk<'m> {
    functions: HashMap<Key<'m>, &'m FunctionProto>,
    /// By input; `None`: no node has asked.
    ranges: Vec<Option<Range<i64>>>,
    /// The first input that has no valid range, what it is, and of which node.
    refused: Option<(usize, &'static str, String)>,
    depth: usize,
}

impl Walk<'_> {
    fn nodes(&mut self, nodes: &[NodeProto], scope: &mut Scope<'_>) {
        if self.depth == DEEPEST {
            return;
        }
        self.depth += 1;
        for (node_index, node) in nodes.iter().enumerate() {
            let given: Vec<Vec<Origin>> = node.input.iter().map(|name| scope.origins(name).to_vec()).collect();
            let results = match self.functions.get(&node.called()).copied() {
                Some(function) => self.call(function, node_index, given, scope),
                None => {
                    let site = Site { node, inputs: node.input.iter().map(|name| scope.value(name)).collect() };
                    self.ask(&site, &given);
                    // Branches and bodies see what is around them; what a body is given in each run is not followed.
                    for (at, graph) in node.graphs().enumerate() {
                        let Some(inferred) = scope.inferred.inner(node_index, at) else { continue };
                        let mut body = Scope { origins: HashMap::new(), inferred, outer: Some(scope) };
                        self.nodes(&graph.node, &mut body);
                    }
                    vec![site.kept(&given); node.output.len()]
                }
            };
            let named = node.output.iter().cloned().zip(results);
            scope.origins.extend(named.filter(|(_, origins)| !origins.is_empty()));
        }
        self.depth -= 1;
    }

    /// The nodes of a function with what one call gives it.
    fn call(
        &mut self,
        function: &FunctionProto,
        node_index: usize,
        given: Vec<Vec<Origin>>,
        scope: &Scope<'_>,
    ) -> Vec<Vec<Origin>> {
        let inner = scope.inferred.inner(node_index, 0).filter(|_| given.iter().any(|origins| !origins.is_empty()));
        let Some(inferred) = inner else { return Vec::new() };
        let origins = function.input.iter().cloned().zip(given).collect();
        let mut body = Scope { origins, inferred, outer: None };
        self.nodes(&function.node, &mut body);
        function.output.iter().map(|name| body.origins(name).to_vec()).collect()
    }

    /// Narrows the ranges of the inputs that a node reads as indices, sizes or divisors.
    fn ask(&mut self, site: &Site<'_>, given: &[Vec<Origin>]) {
        for (index, origins) in given.iter().enumerate().filter(|(_, origins)| !origins.is_empty()) {
            let Some(wanted) = site.wanted(index) else { continue };
            for origin in origins {
                let range = match &wanted {
                    Wanted::Range(range) => shifted(range, origin.shift),
                    Wanted::Chosen(role) => {
                        self.refuse(origin.input, role, site.node);
                        continue;
                    }
                };
                let both = match &self.ranges[origin.input] {
                    Some(known) => known.start.max(range.start)..known.end.min(range.end),
                    None => range,
                };
                if both.start >= both.end {
                    self.refuse(origin.input, "an index or a size", site.node);
                }
                self.ranges[origin.input] = Some(both);
            }
        }
    }

    fn refuse(&mut self, input: usize, role: &'static str, node: &NodeProto) {
        self.refused.get_or_insert_with(|| (input, role, node.described()));
    }
}

/// A range before a constant is added; without negative values where there are any non-negative ones.
fn shifted(range: &Range<i64>, shift: i64) -> Range<i64> {
    let (start, end) = (range.start.saturating_sub(shift), range.end.saturating_sub(shift));
    if end > 0 { start.max(0)..end } else { start..end }
}

/// What a node wants of the integers of one of its inputs.
enum Wanted {
    /// Any of these.
    Range(Range<i64>),
    /// Values that belong together, by what they are.
    Chosen(&'static str),
}

/// As an end of `Slice`: up to the end of the tensor.
const END: i64 = i32::MAX as i64;

/// A node with what is known of its inputs.
struct Site<'a> {
    node: &'a NodeProto,
    inputs: Vec<Option<&'a Value>>,
}

impl Site<'_> {
    fn shape(&self, index: usize) -> Option<&[Option<u64>]> {
        self.inputs.get(index).copied().flatten()?.shape.as_deref()
    }

    fn size(&self, index: usize, axis: usize) -> Option<u64> {
        self.shape(index)?.get(axis).copied().flatten()
    }

    fn elements(&self, index: usize) -> Option<u64> {
        self.inputs.get(index).copied().flatten()?.elements()
    }

    fn integers(&self, index: usize) -> Option<&[Option<i64>]> {
        self.inputs.get(index).copied().flatten()?.integers.as_deref()
    }

    fn is_integer(&self, index: usize) -> bool {
        let element = self.inputs.get(index).copied().flatten().and_then(|value| value.element.as_ref());
        element.is_some_and(is_integer)
    }

    /// The size of the first input along the axis of an attribute.
    fn along(&self, attribute: &str) -> Option<u64> {
        let shape = self.shape(0)?;
        let axis = self.node.int(attribute).unwrap_or(0);
        let axis = if axis < 0 { axis.checked_add(shape.len() as i64)? } else { axis };
        *shape.get(usize::try_from(axis).ok()?)?
    }

    /// What the node wants of input `index`; `None` where it takes any integers.
    fn wanted(&self, index: usize) -> Option<Wanted> {
        let below =
            |size: Option<u64>| size.and_then(|size| i64::try_from(size).ok()).map(|size| Wanted::Range(0..size));
        let exactly = |value: i64| Some(Wanted::Range(value..value.checked_add(1)?));
        let only = |size: Option<u64>| size.and_then(|size| i64::try_from(size).ok()).and_then(exactly);
        // Several axes must differ, and zeros do not.
        let axis = |role: &'static str| match self.elements(index) {
            Some(0 | 1) => exactly(0),
            _ => Some(Wanted::Chosen(role)),
        };
        match (self.node.op_type(), index) {
            ("Gather" | "GatherElements" | "ScatterElements" | "Scatter", 1) => below(self.along("axis")),
            ("GatherBlockQuantized", 1) => below(self.along("gather_axis")),
            ("GatherND", 1) => below(self.least_indexed(self.node.int("batch_dims").unwrap_or(0))),
            ("ScatterND", 1) => below(self.least_indexed(0)),
            ("EmbedLayerNormalization", 0) => below(self.size(2, 0)),
            ("EmbedLayerNormalization", 1) => below(self.size(4, 0)),
            ("EmbedLayerNormalization", 8) => below(self.size(3, 0)),
            ("RotaryEmbedding", 1) if !self.node.is_standard() => below(self.size(2, 0)),
            ("RotaryEmbedding", 3) => below(self.size(1, 0)),
            ("SoftmaxCrossEntropyLoss" | "NegativeLogLikelihoodLoss", 1) => below(self.size(0, 1)),
            ("MaxUnpool", 1) => below(self.elements(0)),
            ("Div" | "Mod", 1) if self.is_integer(1) => Some(Wanted::Range(1..3)),
            ("Reshape", 1) => self.reshape(),
            ("Expand" | "Tile", 1) | ("ConstantOfShape", 0) | ("Slice", 4) | ("TopK", 1) => exactly(1),
            ("Range", 0) | ("Slice", 1) => exactly(0),
            ("Range", 1 | 2) => exactly(1),
            ("OneHot", 1) => exactly(2),
            ("Slice", 2) => exactly(END),
            ("Slice", 3) | ("Unsqueeze" | "Squeeze", 1) | ("CumSum" | "CumProd", 1) => axis("the axes"),
            (operator, 1) if operator.starts_with("Reduce") => exactly(0),
            ("Split", 1) => {
                let parts = self.node.output.len() as u64;
                let size = self.along("axis").filter(|size| parts > 0 && size.is_multiple_of(parts));
                only(size.map(|size| size / parts)).or(Some(Wanted::Chosen("the sizes")))
            }
            ("Resize", 3) | ("CenterCropPad" | "Col2Im" | "AffineGrid", 1) => Some(Wanted::Chosen("the shape")),
            ("LSTM" | "GRU" | "RNN", 4) => only(self.size(0, usize::from(self.node.int("layout") == Some(1)))),
            ("ReverseSequence", 1) => {
                only(self.size(0, usize::try_from(self.node.int("time_axis").unwrap_or(0)).ok()?))
            }
            ("GroupQueryAttention", 5) => self.keys().and_then(|keys| exactly(keys - 1)),
            ("GroupQueryAttention", 6) => self.keys().and_then(exactly),
            _ => None,
        }
    }

    /// The smallest dimension that the last one of the indices addresses.
    fn least_indexed(&self, skipped: i64) -> Option<u64> {
        let depth = usize::try_from((*self.shape(1)?.last()?)?).ok()?;
        let indexed = self.shape(0)?.iter().skip(usize::try_from(skipped).ok()?).take(depth).copied();
        indexed.collect::<Option<Vec<u64>>>()?.into_iter().min()
    }

    /// One size that is missing is what is left; zeros keep every size.
    fn reshape(&self) -> Option<Wanted> {
        let count = usize::try_from(self.size(1, 0)?).ok()?;
        let known: Vec<i64> = self.integers(1).unwrap_or_default().iter().flatten().copied().collect();
        let product = known.iter().try_fold(1_i64, |product, size| product.checked_mul(*size))?;
        let elements = i64::try_from(self.elements(0)?).ok()?;
        match count.checked_sub(known.len())? {
            1 if product > 0 && elements % product == 0 => {
                Some(Wanted::Range(elements / product..(elements / product).checked_add(1)?))
            }
            missing if missing == count && self.shape(0)?.len() == count => Some(Wanted::Range(0..1)),
            _ => Some(Wanted::Chosen("the shape")),
        }
    }

    /// Keys that a query attends to: those of calls before, and its own.
    fn keys(&self) -> Option<i64> {
        let before = if self.node.input.get(3).is_some_and(|name| !name.is_empty()) { self.size(3, 2)? } else { 0 };
        i64::try_from(before.checked_add(self.size(0, 1)?)?).ok()
    }

    /// What of its inputs' integers its outputs have, as they are or with a constant added.
    fn kept(&self, given: &[Vec<Origin>]) -> Vec<Origin> {
        let origins_of = |index: usize| given.get(index).cloned().unwrap_or_default();
        let constant = |index: usize| match self.integers(index) {
            Some([only]) => *only,
            _ => None,
        };
        let shifted = |origins: Vec<Origin>, by: Option<i64>| -> Vec<Origin> {
            let shift = |origin: Origin| Some(Origin { shift: origin.shift.checked_add(by?)?, ..origin });
            origins.into_iter().filter_map(shift).collect()
        };
        match self.node.op_type() {
            "Cast" => {
                let to = self.node.int("to").and_then(|code| i32::try_from(code).ok()).map(ElementType::from_code);
                if to.as_ref().is_some_and(is_integer) { origins_of(0) } else { Vec::new() }
            }
            "Identity" | "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" | "Transpose" | "Expand" | "Slice"
            | "Tile" | "Gather" | "GatherElements" | "GatherND" | "Pad" | "Split" | "ReverseSequence" | "Compress" => {
                origins_of(0)
            }
            "Concat" => given.concat(),
            // What is negative is mended in the other branch: `where(ids < 0, ids + rows, ids)`.
            "Where" => [origins_of(1), origins_of(2)].concat().into_iter().filter(|origin| origin.shift == 0).collect(),
            "Add" if origins_of(1).is_empty() => shifted(origins_of(0), constant(1)),
            "Add" if origins_of(0).is_empty() => shifted(origins_of(1), constant(0)),
            "Sub" if origins_of(1).is_empty() => shifted(origins_of(0), constant(1).and_then(i64::checked_neg)),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, GraphProto, TensorProto};
    use crate::sample::{model_of, tensors, value_infos};

    fn node(operator: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
        NodeProto::of(operator, "", inputs, outputs, attributes)
    }

    /// The range of every input, `-` where it is 0 and 1, or why there is none.
    fn ranges(inputs: &str, weights: Vec<TensorProto>, nodes: Vec<NodeProto>) -> String {
        ranges_of(&model_of(17, inputs, "", weights, nodes), inputs)
    }

    fn ranges_of(model: &ModelProto, inputs: &str) -> String {
        let resolved = |tensor: crate::TensorType| {
            let shape = tensor.dimensions().iter().map(|size| size.to_string().parse().unwrap()).collect();
            ResolvedTensor { name: tensor.name, element: tensor.element, shape, integers: None, is_counted: false }
        };
        let mut inputs: Vec<ResolvedTensor> = tensors(inputs).into_iter().map(resolved).collect();
        match choose(model, &mut inputs, |_| true) {
            Err(problem) => problem.to_string(),
            Ok(()) => {
                let text =
                    |input: &ResolvedTensor| input.integers.as_ref().map_or("-".to_owned(), |it| format!("{it:?}"));
                inputs.iter().map(text).collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn table(rows: u64) -> TensorProto {
        TensorProto::of_floats("table", &[rows, 2], &vec![0.5; 2 * rows as usize])
    }

    fn list(name: &str, values: &[i64]) -> TensorProto {
        TensorProto::of_integers(name, &[values.len() as u64], values)
    }

    #[test]
    fn token_ids_are_below_the_rows_of_their_table_and_masks_are_not_touched() {
        let nodes = || {
            vec![
                node("Cast", &["ids"], &["wide"], vec![AttributeProto::of_int("to", 7)]),
                node("Unsqueeze", &["wide", "one"], &["deep"], vec![]),
                node("Gather", &["table", "deep"], &["embedded"], vec![]),
                node("Cast", &["mask"], &["weights"], vec![AttributeProto::of_int("to", 1)]),
                node("Mul", &["weights", "weights"], &["y"], vec![]),
            ]
        };
        let weights = || vec![table(300), list("one", &[1])];
        assert_eq!(ranges("ids:int32[2,7] mask:int64[2,7]", weights(), nodes()), "0..300 -");
        assert_eq!(ranges("ids:uint8[2,7] mask:int64[2,7]", weights(), nodes()), "0..256 -");
    }

    #[test]
    fn shifts_branches_and_functions_are_followed() {
        let shifted = vec![
            node("Add", &["ids", "two"], &["positions"], vec![]),
            node("Gather", &["table", "positions"], &["y"], vec![]),
        ];
        assert_eq!(ranges("ids:int64[1,7]", vec![table(300), list("two", &[2])], shifted.clone()), "0..298");
        assert_eq!(ranges("ids:int64[1,7]", vec![table(2), list("two", &[9])], shifted), "-9..-7");
        let mended = vec![
            node("Less", &["ids", "zero"], &["is_negative"], vec![]),
            node("Add", &["ids", "rows"], &["from_end"], vec![]),
            node("Where", &["is_negative", "from_end", "ids"], &["index"], vec![]),
            node("Gather", &["table", "index"], &["y"], vec![]),
        ];
        let weights = vec![table(300), list("zero", &[0]), list("rows", &[300])];
        assert_eq!(ranges("ids:int64[1,7]", weights, mended), "0..300");
        let branch = |name: &str| {
            let lookup = vec![node("Gather", &["table", "ids"], &["e"], vec![])];
            let graph = GraphProto { node: lookup, output: value_infos("e[...]"), ..Default::default() };
            AttributeProto::of_graph(name, graph)
        };
        let choice = vec![node("If", &["c"], &["y"], vec![branch("then_branch"), branch("else_branch")])];
        assert_eq!(ranges("c:bool[] ids:int64[7]", vec![table(9)], choice), "- 0..9");
        let inputs = "ids:int64[7]";
        let call = node("Lookup", &["table", "ids"], &["y"], vec![]).in_domain("mine");
        let mut model = model_of(17, inputs, "", vec![table(11)], vec![call]);
        model.functions.push(FunctionProto {
            name: Some("Lookup".to_owned()),
            domain: Some("mine".to_owned()),
            input: vec!["t".to_owned(), "i".to_owned()],
            output: vec!["o".to_owned()],
            node: vec![node("Gather", &["t", "i"], &["o"], vec![])],
            ..Default::default()
        });
        assert_eq!(ranges_of(&model, inputs), "0..11");
    }

    #[test]
    fn indices_divisors_and_sizes_get_valid_values() {
        let range_of = |operator: &str, nodes: &[&str], inputs: &str| {
            ranges(inputs, vec![table(5)], vec![node(operator, nodes, &["y"], vec![])])
        };
        assert_eq!(range_of("Gather", &["past", "idx"], "past[1,2] idx:int64[1]"), "- 0..1");
        assert_eq!(range_of("Mod", &["a", "b"], "a:int64[3] b:int64[3]"), "- 1..3");
        assert_eq!(range_of("GatherND", &["table", "i"], "i:int64[3,2]"), "0..2");
        assert_eq!(range_of("Reshape", &["table", "s"], "s:int64[2]"), "0..1");
        assert_eq!(range_of("Reshape", &["table", "s"], "s:int64[1]"), "10..11");
        assert_eq!(range_of("Expand", &["table", "s"], "s:int64[2]"), "1..2");
        assert_eq!(
            range_of("Slice", &["table", "a", "b"], "a:int64[1] b:int64[1]"),
            format!("0..1 {END}..{}", END + 1)
        );
        assert_eq!(range_of("Unsqueeze", &["table", "a"], "a:int64[1]"), "0..1");
        let joined = vec![
            node("Concat", &["n", "five"], &["shape"], vec![AttributeProto::of_int("axis", 0)]),
            node("Reshape", &["table", "shape"], &["y"], vec![]),
        ];
        assert_eq!(ranges("n:int64[1]", vec![table(5), list("five", &[5])], joined), "2..3");
    }

    #[test]
    fn where_no_random_values_are_valid_the_input_is_named() {
        let shape = NodeProto { name: Some("/r".to_owned()), ..node("Reshape", &["table", "s"], &["y"], vec![]) };
        let problem = "the input `s` is the shape of Reshape `/r`: random values are not valid there";
        assert_eq!(ranges("s:int64[3]", vec![table(5)], vec![shape]), problem);
        let both = vec![node("Gather", &["table", "i"], &["a"], vec![]), node("Mod", &["i", "i"], &["b"], vec![])];
        assert_eq!(ranges("i:int64[3]", vec![table(5)], both), "1..3");
    }
}
