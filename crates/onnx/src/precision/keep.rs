//! Nodes that stay as they are because somebody asks for it.

use std::collections::BTreeSet;

use super::inline::inline_functions;
use crate::proto::{ModelProto, NodeProto};
use reading::nearest::{list, nearest, suggestion};

/// Operators and nodes that no conversion touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep(Vec<String>);

/// Why such a node stays, as reports say it.
pub(super) const ASKED: &str = "it is named in `keep`";

/// The same of what is in the branches or the body of such a node.
pub(super) const INSIDE_ASKED: &str = "it is inside a node that is named in `keep`";

impl Keep {
    /// Operators (`Softmax`, `com.microsoft.Gelu`) and names of nodes.
    pub fn new(words: &[String]) -> Self {
        Keep(words.to_vec())
    }

    /// Whether this node stays.
    pub(super) fn keeps(&self, node: &NodeProto) -> bool {
        let names = |word: &String| {
            let matches = |operator: &str| operator == node.op_type() || operator == node.name();
            matches(word) || *word == node.operator() || raised(word).is_some_and(matches)
        };
        self.0.iter().any(names)
    }
}

/// What nodes of an old operator set are called once the model is raised.
fn raised(operator: &str) -> Option<&'static str> {
    match operator {
        "Upsample" => Some("Resize"),
        "Scatter" => Some("ScatterElements"),
        "Dropout" => Some("Identity"),
        _ => None,
    }
}

/// What nodes of models are called, inside the functions that they call too: what [`Keep`] may name.
#[derive(Clone, Debug, Default)]
pub struct ModelNames {
    operators: BTreeSet<String>,
    nodes: BTreeSet<String>,
}

impl ModelNames {
    /// Of a model, whose weights are not looked at.
    pub fn of(mut model: ModelProto) -> Self {
        inline_functions(&mut model);
        let mut names = ModelNames::default();
        for node in model.graph.iter().flat_map(|graph| &graph.node) {
            node.with_inner(&mut |node| {
                names.operators.extend([node.operator(), node.op_type().to_owned()]);
                names.nodes.extend(Some(node.name().to_owned()).filter(|name| !name.is_empty()));
            });
        }
        names
    }

    /// Those of another model too.
    pub fn extend(&mut self, other: ModelNames) {
        self.operators.extend(other.operators);
        self.nodes.extend(other.nodes);
    }

    /// The words that name nothing, and what may be meant; `None` where all do.
    pub fn unknown(&self, words: &[String]) -> Option<(String, String)> {
        let known = || self.operators.iter().chain(&self.nodes).map(String::as_str);
        let unknown: Vec<&str> =
            words.iter().map(String::as_str).filter(|word| !known().any(|it| it == *word)).collect();
        let verb = if unknown.len() == 1 { "matches" } else { "match" };
        let hints = unknown.iter().filter_map(|word| {
            let near = nearest(word, known())?;
            let prefix = if unknown.len() == 1 { String::new() } else { format!("for `{word}`, ") };
            Some(format!("{prefix}did you mean `{near}`?"))
        });
        let mut hints: Vec<String> = hints.collect();
        if hints.is_empty() {
            hints.extend(suggestion("", self.operators.iter().map(String::as_str), "operator"));
        }
        let help = if hints.is_empty() { "the model has no nodes".to_owned() } else { hints.join("\n") };
        (!unknown.is_empty()).then(|| (format!("{} {verb} no operator and no node", list(&unknown, "and")), help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, GraphProto};

    #[test]
    fn words_that_name_nothing_are_found_with_what_may_be_meant() {
        let inner = GraphProto { node: vec![NodeProto::of("Relu", "inner", &[], &[], vec![])], ..Default::default() };
        let branch = vec![AttributeProto::of_graph("then_branch", inner)];
        let node = vec![
            NodeProto::of("MatMul", "encoder/query", &[], &[], vec![]),
            NodeProto::of("Gelu", "", &[], &[], vec![]).in_domain("com.microsoft"),
            NodeProto::of("If", "", &[], &[], branch),
        ];
        let graph = GraphProto { node, ..Default::default() };
        let names = ModelNames::of(ModelProto { graph: Some(graph), ..Default::default() });
        let unknown = |words: &[&str]| names.unknown(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(unknown(&["MatMul", "encoder/query", "Gelu", "com.microsoft.Gelu", "Relu", "inner"]), None);
        let (problem, help) = unknown(&["matmul", "MatMul"]).unwrap_or_default();
        assert_eq!(problem, "`matmul` matches no operator and no node");
        assert_eq!(help, "did you mean `MatMul`?");
        let (problem, help) = unknown(&["NoSuch", "encoder/querry"]).unwrap_or_default();
        assert_eq!(problem, "`NoSuch` and `encoder/querry` match no operator and no node");
        assert_eq!(help, "for `encoder/querry`, did you mean `encoder/query`?");
        assert_eq!(
            unknown(&["NoSuch"]).unwrap_or_default().1,
            "known operators: `Gelu`, `If`, `MatMul`, `Relu` and `com.microsoft.Gelu`"
        );
    }

    #[test]
    fn an_operator_is_kept_under_the_name_that_it_had() {
        let keep = Keep::new(&["Upsample".to_owned()]);
        assert!(keep.keeps(&NodeProto::of("Resize", "", &[], &[], vec![])));
        assert!(!keep.keeps(&NodeProto::of("Relu", "", &[], &[], vec![])));
    }
}
