//! The model that is run for the ranges of activations: its outputs are the activations, or only their extremes.
//!
//! Extremes are reduced inside the model. Giving every activation out takes several times the memory of the model and most
//! of the time of a run (seen with DenseNet-121), so that is done only where values have to be counted.

use std::collections::{BTreeMap, HashSet};

use onnx::ElementType;
use onnx::precision::activation_ranges::Range;
use onnx::proto::{AttributeProto, ModelProto, NodeProto, ValueInfoProto};

/// The range of each activation.
pub type Ranges = BTreeMap<String, Range>;

/// Outputs that stand for activations: pairs of both names.
#[derive(Debug, Default)]
pub(super) struct Given(Vec<(String, String)>);

impl Given {
    /// Puts what was found for the outputs to the activations that they stand for: where one of them has no range, the
    /// activation has none.
    pub(super) fn rename(self, ranges: &mut Ranges) {
        let mut found: BTreeMap<String, Option<Range>> = BTreeMap::new();
        for (output, activation) in self.0 {
            let range = ranges.remove(&output);
            let known = found.entry(activation).or_insert(Some(Range::default()));
            let both = known.zip(range);
            *known = both.map(|(known, range)| Range::new(range.least.min(known.least), range.most.max(known.most)));
        }
        ranges.extend(found.into_iter().filter_map(|(activation, range)| Some((activation, range?))));
    }
}

/// A model that gives the least and the largest value of each of these activations; its own outputs stay.
pub(super) fn with_extremes(mut model: ModelProto, names: &[String]) -> (ModelProto, Given) {
    let Some(graph) = model.graph.as_mut() else { return (model, Given::default()) };
    let inputs = graph.input.iter().map(ValueInfoProto::name);
    let made = graph.node.iter().flat_map(|node| node.output.iter().map(String::as_str));
    let known: HashSet<String> = inputs.chain(made).map(str::to_owned).collect();
    let mut given = Given::default();
    for name in names.iter().filter(|name| known.contains(*name)) {
        for (operator, end) in [("ReduceMin", "least"), ("ReduceMax", "most")] {
            let output = format!("{name}/{end}");
            let scalar = vec![AttributeProto::of_int("keepdims", 0)];
            graph.node.push(NodeProto::of(operator, &output, &[name], &[&output], scalar));
            graph.output.push(ValueInfoProto::of_tensor(&output, &ElementType::Float32, Some(&[])));
            given.0.push((output, name.clone()));
        }
    }
    (model, given)
}

/// A model that gives those of its inputs too that have to be observed, each as a copy.
pub(super) fn with_inputs_as_outputs(mut model: ModelProto, names: &[String]) -> (ModelProto, Given) {
    let Some(graph) = model.graph.as_mut() else { return (model, Given::default()) };
    let is_wanted = |name: &&str| names.iter().any(|wanted| wanted == name);
    let inputs: Vec<String> =
        graph.input.iter().map(|input| input.name()).filter(is_wanted).map(str::to_owned).collect();
    let mut given = Given::default();
    for input in inputs {
        let copy = format!("{input}/observed");
        graph.node.push(NodeProto::of("Identity", &copy, &[&input], &[&copy], Vec::new()));
        graph.output.push(ValueInfoProto::of_tensor(&copy, &ElementType::Float32, None));
        given.0.push((copy, input));
    }
    (model, given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_inputs_and_activations_become_their_ranges() {
        let graph = onnx::proto::GraphProto {
            name: Some("g".to_owned()),
            node: vec![NodeProto::of("Relu", "r", &["x"], &["y"], Vec::new())],
            input: vec![ValueInfoProto::of_tensor("x", &ElementType::Float32, None)],
            output: vec![ValueInfoProto::of_tensor("y", &ElementType::Float32, None)],
            ..Default::default()
        };
        let mut model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
        model.import("", 13);
        let (model, given) = with_extremes(model, &["x".to_owned(), "y".to_owned(), "gone".to_owned()]);
        assert!(onnx::check_graph(&model).is_ok());
        let outputs: Vec<&str> = model.graph.iter().flat_map(|graph| &graph.output).map(ValueInfoProto::name).collect();
        assert_eq!(outputs, ["y", "x/least", "x/most", "y/least", "y/most"]);
        let range = |least, most| Range::new(least, most);
        // The least value of `y` was not finite.
        let found = [("x/least", range(-3.0, -3.0)), ("x/most", range(2.0, 2.0)), ("y/most", range(2.0, 2.0))];
        let mut ranges: BTreeMap<String, Range> = found.map(|(name, range)| (name.to_owned(), range)).into();
        given.rename(&mut ranges);
        assert_eq!(ranges, BTreeMap::from([("x".to_owned(), range(-3.0, 2.0))]));
    }
}
