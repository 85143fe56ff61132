//! A document against the schema: every violation at its place.
//!
//! Input: the document and its JSON. Output: problems, and the places that cannot be used further. The `jsonschema`
//! crate finds violations; what it says about alternatives ("not valid under any of the schemas") is resolved here to
//! the alternative that the writer meant. Deliberately absent: the words, which are `wording`'s, and checks that the
//! schema cannot express.

use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::document::{DocumentPath, Node, Step, value_span};
use super::form::DURATION_PATTERN;
use super::problem::{MOST_PROBLEMS, Problem, Sources};
use super::schema;
use super::wording::{Wording, plain};
use base::quantity::{Nanos, QuantityError};

static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(schema::root()).expect("the schema is generated from types and tested"));

/// A violation: what to say, and which value is no good.
pub(super) struct Violation {
    /// For the user.
    pub(super) problem: Problem,
    /// The value that must not be read further.
    pub(super) place: DocumentPath,
}

/// Every violation of the schema.
pub(super) fn validate(sources: &Sources, root: &Node, json: &Value) -> Vec<Violation> {
    let wording = Wording { sources, root, json };
    VALIDATOR.iter_errors(json).flat_map(|error| resolve(&error, &wording)).take(MOST_PROBLEMS).collect()
}

/// Durations that are longer than one can be, which a pattern does not say.
pub(super) fn too_long(sources: &Sources, root: &Node, json: &mut Value) -> Vec<Violation> {
    let mut found = Vec::new();
    schema::visit(json, &DocumentPath::default(), &schema::top(), &mut |value, place, shapes| {
        let is_duration = shapes.iter().any(|shape| shape["pattern"] == DURATION_PATTERN);
        if let Some(Err(error @ QuantityError::TooLarge { .. })) =
            value.as_str().filter(|_| is_duration).map(str::parse::<Nanos>)
        {
            let problem = sources.problem(value_span(root, place), error.to_string());
            found.push(Violation { problem, place: place.clone() });
        }
    });
    found
}

fn resolve(error: &ValidationError<'_>, wording: &Wording<'_>) -> Vec<Violation> {
    let found = findings(error);
    found.iter().take(MOST_PROBLEMS).flat_map(|finding| violations(finding, wording)).collect()
}

/// A violation whose alternatives are resolved.
enum Finding<'e> {
    /// None of these JSON types.
    Types { at: &'e Location, types: Vec<String> },
    /// None of these values.
    Options { at: &'e Location, options: Vec<String> },
    /// Anything else.
    Other(&'e ValidationError<'e>),
}

impl Finding<'_> {
    fn at(&self) -> &str {
        match self {
            Finding::Types { at, .. } | Finding::Options { at, .. } => at.as_str(),
            Finding::Other(error) => error.instance_path().as_str(),
        }
    }

    /// True where the finding says that the value at `place` is of another kind, not that it is a bad one of its kind.
    fn is_mismatch(&self, place: &str) -> bool {
        !matches!(self, Finding::Other(_)) && self.at() == place
    }

    fn lacks_mode(&self) -> bool {
        matches!(self, Finding::Other(error)
            if matches!(error.kind(), ValidationErrorKind::Required { property } if property == "mode"))
    }
}

fn findings<'e>(error: &'e ValidationError<'e>) -> Vec<Finding<'e>> {
    let at = error.instance_path();
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let branches = context.iter().map(|branch| branch.iter().flat_map(findings).collect());
            meant(at, branches.collect())
        }
        ValidationErrorKind::Type { kind } => vec![Finding::Types { at, types: type_names(kind) }],
        ValidationErrorKind::Constant { expected_value } => {
            vec![Finding::Options { at, options: vec![plain(expected_value)] }]
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(|options| options.iter().map(plain).collect()).unwrap_or_default();
            vec![Finding::Options { at, options }]
        }
        _ => vec![Finding::Other(error)],
    }
}

/// The findings of the alternative that the writer meant: the one whose type and whose `mode` fit.
fn meant<'e>(at: &Location, branches: Vec<Vec<Finding<'e>>>) -> Vec<Finding<'e>> {
    let (fitting, mismatching): (Vec<_>, Vec<_>) =
        branches.into_iter().partition(|branch| !branch.iter().any(|finding| finding.is_mismatch(at.as_str())));
    if fitting.is_empty() {
        return merge(mismatching, at.as_str());
    }
    let mode = at.join("mode");
    let wrong_mode = |branch: &Vec<Finding<'_>>| branch.iter().any(|finding| finding.is_mismatch(mode.as_str()));
    if fitting.len() > 1 && fitting.iter().all(wrong_mode) {
        return merge(fitting, mode.as_str());
    }
    let rank = |branch: &Vec<Finding<'_>>| (wrong_mode(branch), branch.iter().any(Finding::lacks_mode), branch.len());
    fitting.into_iter().min_by_key(rank).unwrap_or_default()
}

/// One finding for alternatives none of which fits: a bad choice where a choice was possible, else a bad type.
fn merge<'e>(branches: Vec<Vec<Finding<'e>>>, place: &str) -> Vec<Finding<'e>> {
    let (mut location, mut all_types, mut all_options) = (None, Vec::new(), Vec::new());
    for finding in branches.into_iter().flatten().filter(|finding| finding.is_mismatch(place)) {
        match finding {
            Finding::Types { at, types } => {
                location = Some(at);
                all_types.extend(types);
            }
            Finding::Options { at, options } => {
                location = Some(at);
                all_options.extend(options);
            }
            Finding::Other(_) => {}
        }
    }
    // A text that is none of the choices fails as a choice only; what is no text fails as a type too.
    let not_a_text = all_types.iter().any(|kind| kind == "string");
    // Words in place of a number: neither is meant more than the other.
    let number_or_word = all_types.iter().any(|kind| kind == "integer") && !all_options.is_empty();
    let finding = location.map(|at| match all_options.is_empty() || not_a_text {
        _ if number_or_word => {
            let words = all_options.iter().map(|word| format!("`{word}`"));
            Finding::Types { at, types: ["integer".to_owned()].into_iter().chain(words).collect() }
        }
        true => Finding::Types { at, types: all_types },
        false => Finding::Options { at, options: all_options },
    });
    finding.into_iter().collect()
}

fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    }
}

fn place_of(location: &Location) -> DocumentPath {
    let steps = location.iter().map(|segment| match segment {
        LocationSegment::Property(key) => Step::Key(key.into_owned()),
        LocationSegment::Index(index) => Step::Index(index),
    });
    DocumentPath(steps.collect())
}

/// What to say of a finding, and the values that it spoils.
fn violations(finding: &Finding<'_>, wording: &Wording<'_>) -> Vec<Violation> {
    let error = match finding {
        Finding::Types { at, types } => {
            let place = place_of(at);
            return vec![Violation { problem: wording.wrong_type(&place, types), place }];
        }
        Finding::Options { at, options } => {
            let place = place_of(at);
            return vec![Violation { problem: wording.wrong_choice(&place, options), place }];
        }
        Finding::Other(error) => error,
    };
    let place = place_of(error.instance_path());
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unknown = unexpected.iter().take(MOST_PROBLEMS).map(|key| Violation {
                problem: wording.unknown_key(&place, key, error.schema_path()),
                place: place.key(key),
            });
            unknown.collect()
        }
        ValidationErrorKind::Required { property } => {
            let key = plain(property);
            vec![Violation { problem: wording.missing_key(&place, &key), place: place.key(&key) }]
        }
        ValidationErrorKind::PropertyNames { error: inner } => {
            let place = place.key(&plain(inner.instance()));
            vec![Violation { problem: wording.bad_key(&place, inner), place }]
        }
        _ => vec![Violation { problem: wording.bad_value(&place, error), place }],
    }
}
