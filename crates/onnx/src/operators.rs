//! The operators of the ONNX standard as data: what each takes and gives, in every version.
//!
//! Input: `operators.tsv`, which `operators.py` writes from the standard's own schemas. Output: an [`Operator`] by name
//! and opset. Deliberately absent: attributes, shapes (`infer` knows those), and operators of other domains.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::signature::ElementType;

/// The newest version of the operator set that the table knows.
pub(crate) const NEWEST_OPSET: i64 = 28;

/// One operator, as it is from one version of the operator set on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operator {
    /// Its name: `Conv`.
    pub name: &'static str,
    /// The first version of the operator set in which it is like this.
    pub since: i64,
    inputs: Vec<Parameter>,
    outputs: Vec<Parameter>,
    variables: Vec<Variable>,
    /// Whether the standard took it out in this version.
    is_deprecated: bool,
}

/// One input or output of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// What its elements may be.
    pub kind: Kind,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether any number of tensors may stand there; it is the last one then.
    pub is_variadic: bool,
}

/// What the elements of a parameter may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those that the type variable of that name stands for, the same wherever it occurs in a node.
    Variable(&'static str),
    /// Those that the type variable allows, each tensor of a variadic parameter for itself.
    Free(&'static str),
    /// Always this.
    Fixed(ElementType),
    /// Not a plain tensor: a sequence, a map, an optional value.
    Other,
}

/// A type variable and the element types that it may stand for: bit n for the standard's code n.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: &'static str,
    allowed: u32,
}

impl Variable {
    fn allows(&self, element: &ElementType) -> bool {
        element.code().is_some_and(|code| (self.allowed >> code) & 1 == 1)
    }
}

impl Operator {
    /// Whether the input at `index` may have this element type.
    pub(crate) fn allows_at(&self, index: usize, element: &ElementType) -> bool {
        self.allows(self.input(index), element)
    }

    /// Whether the output at `index` may have this element type.
    pub(crate) fn gives_at(&self, index: usize, element: &ElementType) -> bool {
        self.allows(self.output(index), element)
    }

    fn allows(&self, parameter: Option<&Parameter>, element: &ElementType) -> bool {
        match parameter.map(|parameter| &parameter.kind) {
            Some(Kind::Variable(name) | Kind::Free(name)) => {
                self.variables.iter().any(|variable| variable.name == *name && variable.allows(element))
            }
            Some(Kind::Fixed(fixed)) => fixed == element,
            Some(Kind::Other) | None => false,
        }
    }

    /// Whether an input decides about the element type of the output at `index`.
    pub(crate) fn takes_type_of_an_input(&self, index: usize) -> bool {
        match self.output(index).map(|parameter| &parameter.kind) {
            Some(kind @ (Kind::Variable(_) | Kind::Free(_))) => self.inputs.iter().any(|input| input.kind == *kind),
            Some(Kind::Fixed(_) | Kind::Other) | None => false,
        }
    }

    /// Whether it reads and makes tensors and nothing else: no sequences, no maps, no optional values.
    pub(crate) fn is_of_tensors(&self) -> bool {
        let is_tensor = |parameter: &Parameter| match &parameter.kind {
            Kind::Variable(name) | Kind::Free(name) => {
                self.variables.iter().any(|variable| variable.name == *name && variable.allowed != 0)
            }
            Kind::Fixed(_) => true,
            Kind::Other => false,
        };
        self.inputs.iter().chain(&self.outputs).all(is_tensor) && !self.name.starts_with("Optional")
    }

    /// The input at `index`; a variadic one is there at every later index too.
    pub(crate) fn input(&self, index: usize) -> Option<&Parameter> {
        at(&self.inputs, index)
    }

    /// The output at `index`; a variadic one is there at every later index too.
    pub(crate) fn output(&self, index: usize) -> Option<&Parameter> {
        at(&self.outputs, index)
    }
}

fn at(parameters: &[Parameter], index: usize) -> Option<&Parameter> {
    parameters.get(index).or_else(|| parameters.last().filter(|last| last.is_variadic))
}

/// The standard's operator of that name as the given opset has it; `None` where it has none, or no longer.
pub(crate) fn operator(name: &str, opset: i64) -> Option<&'static Operator> {
    let versions = OPERATORS.get(name)?;
    let newest = versions.iter().rev().find(|operator| operator.since <= opset)?;
    (!newest.is_deprecated).then_some(newest)
}

/// Names of all operators that the standard has in the given opset, sorted.
pub(crate) fn operator_names(opset: i64) -> Vec<&'static str> {
    let mut names: Vec<&str> = OPERATORS.keys().copied().filter(|name| operator(name, opset).is_some()).collect();
    names.sort_unstable();
    names
}

/// Every operator's versions, oldest first, as the file has them.
static OPERATORS: LazyLock<HashMap<&'static str, Vec<Operator>>> = LazyLock::new(|| {
    let mut operators: HashMap<&str, Vec<Operator>> = HashMap::new();
    for line in include_str!("operators.tsv").lines().filter(|line| !line.starts_with('#')) {
        if let Some(operator) = parse_operator(line) {
            operators.entry(operator.name).or_default().push(operator);
        }
    }
    operators
});

fn parse_operator(line: &'static str) -> Option<Operator> {
    let mut columns = line.split('\t');
    let (name, since) = (columns.next()?, columns.next()?.parse().ok()?);
    let inputs = columns.next()?;
    let is_deprecated = inputs == "deprecated";
    let parameters = |text: &'static str| text.split_whitespace().map(parse_parameter).collect();
    let inputs = if is_deprecated { Some(Vec::new()) } else { parameters(inputs) };
    let outputs = parameters(columns.next().unwrap_or_default());
    let variables: Option<Vec<Variable>> =
        columns.next().unwrap_or_default().split_whitespace().map(parse_variable).collect();
    Some(Operator { name, since, inputs: inputs?, outputs: outputs?, variables: variables?, is_deprecated })
}

fn parse_parameter(text: &'static str) -> Option<Parameter> {
    let name = text.trim_end_matches(['?', '*', '~']);
    let is_free = text.ends_with('~');
    let kind = match name.strip_prefix('=') {
        Some(code) => Kind::Fixed(ElementType::from_code(code.parse().ok()?)),
        None if name == "-" => Kind::Other,
        None if is_free => Kind::Free(name),
        None => Kind::Variable(name),
    };
    Some(Parameter { kind, is_optional: text.ends_with('?'), is_variadic: is_free || text.ends_with('*') })
}

fn parse_variable(text: &'static str) -> Option<Variable> {
    let (name, allowed) = text.split_once('=')?;
    Some(Variable { name, allowed: u32::from_str_radix(allowed, 16).ok()? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ElementType::{Bfloat16, Float16, Float32, Int8, Int64};

    #[test]
    fn every_line_of_the_table_is_understood() {
        let text = include_str!("operators.tsv");
        assert!(text.starts_with("# ") && text.lines().next().unwrap().contains(&format!("opset {NEWEST_OPSET};")));
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(OPERATORS.values().map(Vec::len).sum::<usize>(), lines);
        for versions in OPERATORS.values() {
            assert!(versions.is_sorted_by(|a, b| a.since < b.since));
            for operator in versions {
                for parameter in operator.inputs.iter().chain(&operator.outputs) {
                    if let Kind::Variable(name) | Kind::Free(name) = parameter.kind {
                        assert!(operator.variables.iter().any(|variable| variable.name == name), "{operator:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_operator_is_the_newest_that_the_opset_has() {
        assert_eq!(operator("Conv", 10).unwrap().since, 1);
        assert_eq!(operator("Conv", 11).unwrap().since, 11);
        assert_eq!(operator("Conv", 17).unwrap().since, 11);
        assert_eq!(operator("LayerNormalization", 16), None);
        assert!(operator("Upsample", 9).is_some() && operator("Upsample", 10).is_none());
        assert!(operator("Scatter", 10).is_some() && operator("Scatter", 11).is_none());
        assert_eq!(operator("Convolution", 17), None);
        assert!(operator_names(17).contains(&"Conv") && !operator_names(17).contains(&"Upsample"));
    }

    #[test]
    fn types_that_an_operator_may_compute_in() {
        assert!(operator("Conv", 11).unwrap().allows_at(0, &Float16));
        assert!(!operator("Conv", 11).unwrap().allows_at(0, &Bfloat16));
        assert!(operator("Conv", 22).unwrap().allows_at(0, &Bfloat16));
        assert!(!operator("NonMaxSuppression", 11).unwrap().allows_at(0, &Float16));
        let gather = operator("Gather", 13).unwrap();
        assert!(gather.allows_at(0, &Float32) && gather.allows_at(1, &Int64) && !gather.allows_at(1, &Float32));
        assert!(!gather.allows_at(2, &Float32));
    }

    #[test]
    fn parameters_are_variables_or_fixed_and_may_repeat() {
        let shape = operator("Shape", 15).unwrap();
        assert_eq!(shape.output(0).unwrap().kind, Kind::Fixed(Int64));
        let concat = operator("Concat", 13).unwrap();
        assert_eq!(concat.input(5), concat.input(0));
        assert_eq!(concat.output(1), None);
        assert_eq!(operator("Loop", 16).unwrap().input(7).unwrap().kind, Kind::Free("V"));
        assert_eq!(operator("Constant", 13).unwrap().input(0), None);
        assert_eq!(operator("SequenceEmpty", 11).unwrap().output(0).unwrap().kind, Kind::Variable("S"));
        let quantized = operator("QLinearConv", 10).unwrap();
        assert!(quantized.input(1).unwrap().kind == Kind::Fixed(Float32) && quantized.allows_at(0, &Int8));
        assert!(quantized.input(8).unwrap().is_optional);
    }
}
