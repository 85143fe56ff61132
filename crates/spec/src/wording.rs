//! What is said of violations, in words that need no knowledge of JSON Schema.
//!
//! Input: a place and what the schema wants there. Output: a [`Problem`] with a hint.

use std::str::FromStr;

use jsonschema::error::{ValidationError, ValidationErrorKind};
use jsonschema::paths::Location;
use serde_json::Value;

use super::document::{DocumentPath, Node, Step, key_span, value_span};
use super::form::{
    ARRIVALS_PATTERN, DURATION_PATTERN, NAME_PATTERN, PYTHON_PATTERN, RATE_PATTERN, RATIO_PATTERN, SHA256_PATTERN,
    VARIABLE_PATTERN,
};
use super::misplaced;
use super::problem::{Problem, Sources};
use super::schema;
use base::name::fitting_name;
use base::quantity::{Nanos, QuantityError, Ratio};
use reading::nearest::{list, nearest, suggestion};

/// Texts longer than this are cut in messages; the whole text is underlined anyway.
const LONGEST_QUOTE: usize = 40;

/// Precisions that perfrun does not convert to: a spec that names one is not misspelt.
pub(super) const PLANNED_PRECISIONS: [&str; 6] = ["tf32", "uint8", "fp8", "fp4", "mixed", "fp64"];

/// Precisions as other tools call them, and what they are called here.
const PRECISIONS_ELSEWHERE: [(&str, &[&str]); 5] = [
    ("fp32", &["float32", "float", "f32", "single", "fp-32", "fp_32"]),
    ("fp16", &["float16", "half", "f16", "fp-16", "fp_16"]),
    ("bf16", &["bfloat16", "brain_float16"]),
    ("int8", &["i8", "qint8", "s8", "8bit", "8-bit", "int_8"]),
    ("int4", &["i4", "qint4", "q4", "4bit", "4-bit", "int_4"]),
];

/// What a precision of other tools is called here.
pub(super) fn precision_meant_by(word: &str) -> Option<&'static str> {
    let has = |others: &[&str]| others.iter().any(|other| other.eq_ignore_ascii_case(word));
    PRECISIONS_ELSEWHERE.iter().find(|(_, others)| has(others)).map(|(name, _)| *name)
}

const TOO_LARGE: &str = "the number is too large";

/// `1e400`, perhaps quoted.
fn is_beyond_numbers(text: &str) -> bool {
    let number = text.trim_matches('`');
    number.ends_with(|c: char| c.is_ascii_digit()) && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// The document that is spoken of.
pub(super) struct Wording<'a> {
    pub(super) sources: &'a Sources,
    pub(super) root: &'a Node,
    pub(super) json: &'a Value,
}

impl Wording<'_> {
    /// An error that underlines the value at `place`.
    fn at_value(&self, place: &DocumentPath, message: String) -> Problem {
        self.sources.problem(value_span(self.root, place), message)
    }

    /// What is written at `place`, for messages.
    fn shown(&self, place: &DocumentPath) -> String {
        match value_at(self.json, place) {
            Some(Value::String(text)) => quote(text),
            Some(Value::Array(_)) => "a list".to_owned(),
            Some(Value::Object(_)) => "a map".to_owned(),
            Some(scalar) => scalar.to_string(),
            None => "missing".to_owned(),
        }
    }

    /// None of these JSON types.
    pub(super) fn wrong_type(&self, place: &DocumentPath, types: &[String]) -> Problem {
        let wanted = words_for(types);
        let shown = self.shown(place);
        if shown == "null" {
            let problem = self.at_value(place, format!("{} has no value; it must be {wanted}", place.name()));
            return problem.with_hint("give it a value, or leave it out");
        }
        let problem = self.at_value(place, format!("{} is {shown}; it must be {wanted}", place.name()));
        if is_beyond_numbers(&shown) {
            return problem.with_hint(TOO_LARGE);
        }
        let is_number = types.iter().any(|kind| kind == "integer") && shown.trim_matches('`').parse::<f64>().is_ok();
        if is_number && shown.starts_with('`') {
            return problem.with_hint("write the number without quotes");
        }
        let meant = misplaced::elsewhere(place.top_key(), place.name().trim_matches('`'));
        match meant.or_else(|| schema::example(place).map(|example| format!("write for example `{example}`"))) {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }

    /// None of these values.
    pub(super) fn wrong_choice(&self, place: &DocumentPath, options: &[String]) -> Problem {
        let known: Vec<&str> = options.iter().map(String::as_str).collect();
        let shown = self.shown(place);
        let written = shown.trim_matches('`');
        if PLANNED_PRECISIONS.contains(&written) && known.contains(&"fp32") {
            return unavailable_precision(self.at_value(place, String::new()), written);
        }
        let problem = self.at_value(place, format!("{} is {shown}; it must be {}", place.name(), list(&known, "or")));
        let meant = precision_meant_by(written).filter(|meant| known.contains(meant));
        match meant.or_else(|| nearest(written, known.iter().copied())) {
            Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
            None => problem,
        }
    }

    /// A key that the map at `place` does not know.
    pub(super) fn unknown_key(&self, place: &DocumentPath, key: &str, schema_path: &Location) -> Problem {
        let within = if place.0.is_empty() { String::new() } else { format!(" in {}", place.name()) };
        let key_place = place.key(key);
        let problem = self.sources.problem(key_span(self.root, &key_place), format!("unknown key `{key}`{within}"));
        let shape = parent_pointer(schema_path.as_str()).and_then(|pointer| schema::root().pointer(pointer));
        let known = schema::known_keys(&shape.into_iter().collect::<Vec<_>>());
        let is_slip = || nearest(key, known.iter().copied()).is_some();
        let entry = value_at(self.json, place).filter(|_| known.contains(&"shapes") && !is_slip());
        let hint = other_mode(schema_path.as_str(), key)
            .map(|mode| format!("`{key}` is only valid with `mode: {mode}`"))
            .or_else(|| misplaced::elsewhere(place.top_key(), key))
            .or_else(|| misplaced::hint(entry?, key, &known))
            .or_else(|| suggestion(key, known.iter().copied(), "key"));
        match hint {
            Some(hint) => problem.with_hint(hint),
            None => problem,
        }
    }

    /// A key that the map at `place` needs.
    pub(super) fn missing_key(&self, place: &DocumentPath, key: &str) -> Problem {
        let span = key_span(self.root, place);
        if place.0.is_empty() {
            let problem = self.sources.problem(span, format!("the key `{key}` is missing"));
            return problem.with_hint(format!("write for example `{key}: {key}/` for every `.onnx` file in a folder"));
        }
        let mode = value_text(self.json, &place.key("mode")).map(|mode| format!(" with `mode: {mode}`"));
        let message = format!("{} needs the key `{key}`{}", place.name(), mode.unwrap_or_default());
        let problem = self.sources.problem(span, message);
        let own = schema::example(&place.key(key)).map(|example| format!("{key}: {example}"));
        match own.or_else(|| schema::example(place)) {
            Some(example) => problem.with_hint(format!("write for example `{example}`")),
            None => problem,
        }
    }

    /// A key that looks as none can.
    pub(super) fn bad_key(&self, place: &DocumentPath, error: &ValidationError<'_>) -> Problem {
        let span = key_span(self.root, place);
        let key = plain(error.instance());
        match error.kind() {
            ValidationErrorKind::Pattern { pattern } if pattern == VARIABLE_PATTERN => {
                let message = format!("`{key}` is not a valid name of an environment variable");
                self.sources.problem(span, message).with_hint("use letters, digits and `_`, not starting with a digit")
            }
            _ => self.sources.problem(span, "a key is empty".to_owned()),
        }
    }

    /// A value of the right type that is out of bounds, empty or malformed.
    pub(super) fn bad_value(&self, place: &DocumentPath, error: &ValidationError<'_>) -> Problem {
        let (name, shown) = (place.name(), self.shown(place));
        let text = |message: String| self.at_value(place, message);
        match error.kind() {
            ValidationErrorKind::Minimum { limit } => text(format!("{name} is {shown}; it must be at least {limit}")),
            ValidationErrorKind::Maximum { limit } => text(format!("{name} is {shown}; it must be at most {limit}")),
            ValidationErrorKind::MinItems { limit: 1 } => {
                let way_out = if *place == DocumentPath::top("models") { "" } else { ", or leave it out" };
                text(format!("{name} is an empty list")).with_hint(format!("give it at least one entry{way_out}"))
            }
            ValidationErrorKind::MinItems { limit } => text(format!("{name} needs at least {limit} entries")),
            ValidationErrorKind::MaxItems { limit } => text(format!("{name} takes at most {limit} entries")),
            ValidationErrorKind::MinProperties { .. } => {
                text(format!("{name} is an empty map")).with_hint("give it at least one key, or leave it out")
            }
            ValidationErrorKind::MinLength { .. } => text(format!("{name} is an empty text")),
            ValidationErrorKind::Pattern { pattern } => self.bad_pattern(place, pattern),
            other => text(format!("{name} does not match the schema (`{}`): {error}", other.keyword())),
        }
    }

    fn bad_pattern(&self, place: &DocumentPath, pattern: &str) -> Problem {
        let written = value_text(self.json, place).unwrap_or_default();
        let name = place.name();
        match pattern {
            NAME_PATTERN => bad_name(self.at_value(place, String::new()), &name, &written),
            DURATION_PATTERN => self.bad_quantity::<Nanos>(place, &written, "a duration", "`200ms`, `3s` or `10m`"),
            RATIO_PATTERN => self.bad_quantity::<Ratio>(place, &written, "a ratio", "`1%` or `0.01`"),
            SHA256_PATTERN => {
                let digits = written.chars().count();
                let message = format!("{name} is not a SHA-256: it has {digits} characters");
                self.at_value(place, message).with_hint("write all 64 hexadecimal digits, as `sha256sum` prints them")
            }
            RATE_PATTERN => {
                let message = format!("{name} is {}, which is not a rate", quote(&written));
                self.at_value(place, message).with_hint("write for example `50/s`, `3000/min` or `largest`")
            }
            ARRIVALS_PATTERN => {
                let message = format!("{name} is {}", quote(&written));
                self.at_value(place, message).with_hint("write `poisson`, `constant`, or a file of times: `trace.csv`")
            }
            PYTHON_PATTERN => {
                let message = format!("{name} is {}; it must be a module and what stands in it", quote(&written));
                self.at_value(place, message).with_hint("separate them with a colon: `torchvision.models:densenet121`")
            }
            _ => self.at_value(place, format!("{name} is {}; it must match `{pattern}`", quote(&written))),
        }
    }

    fn bad_quantity<T: FromStr<Err = QuantityError>>(
        &self,
        place: &DocumentPath,
        text: &str,
        what: &str,
        example: &str,
    ) -> Problem {
        let message = match text.parse::<T>() {
            Err(QuantityError::Negative { .. }) => format!("{} is {text}; it cannot be negative", place.name()),
            _ => format!("{} is {}, which is not {what}", place.name(), quote(text)),
        };
        let hint = match text.parse::<f64>() {
            _ if is_beyond_numbers(text) => TOO_LARGE.to_owned(),
            Ok(number) if number >= 0.0 && what == "a duration" => {
                format!("add a unit: `{text}ms`, `{text}s` or `{text}m`")
            }
            _ => format!("write for example {example}"),
        };
        self.at_value(place, message).with_hint(hint)
    }
}

/// The problem of a text that cannot be a name, with one that can.
pub(super) fn bad_name(problem: Problem, what: &str, written: &str) -> Problem {
    let fitting = fitting_name(written);
    let rule =
        "a name has letters, digits, `.`, `_` and `-`, begins with a letter or a digit, and has at most 64 characters";
    let message = if written.is_empty() {
        format!("{what} is empty")
    } else {
        format!("{what} is {}, which cannot be a name", quote(written))
    };
    let problem = problem.with_message(message);
    match fitting.as_str() {
        "" => problem.with_hint(rule),
        fitting => problem.with_hint(format!("for example `{fitting}`; {rule}")),
    }
}

/// The problem of a precision that perfrun does not convert to.
pub(super) fn unavailable_precision(problem: Problem, precision: &str) -> Problem {
    problem
        .with_message(format!("perfrun cannot convert models to the precision `{precision}`"))
        .with_hint("to use a file that you converted yourself: `files: { NAME: mine.onnx }` in the model's entry")
}

/// A text between backticks, cut where it is long.
pub(super) fn quote(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let cut: String = first.chars().take(LONGEST_QUOTE).collect();
    let dots = if cut.len() < first.len() || lines.next().is_some() { "..." } else { "" };
    format!("`{cut}{dots}`")
}

fn value_at<'a>(json: &'a Value, place: &DocumentPath) -> Option<&'a Value> {
    place.0.iter().try_fold(json, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// The text of a scalar in the JSON.
fn value_text(json: &Value, place: &DocumentPath) -> Option<String> {
    let value = value_at(json, place)?;
    (!value.is_object() && !value.is_array()).then(|| plain(value))
}

fn parent_pointer(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

/// The mode that knows `key`, where the mode that was read does not.
fn other_mode(schema_path: &str, key: &str) -> Option<&'static str> {
    let shape = parent_pointer(schema_path)?;
    let (alternatives, _) = shape.rsplit_once("/oneOf/")?;
    let modes = schema::root().pointer(alternatives)?.get("oneOf")?.as_array()?;
    let knows = |mode: &&Value| mode.get("properties").and_then(|keys| keys.get(key)).is_some();
    modes.iter().find(knows)?.get("title")?.as_str()
}

/// JSON's types in words; a list of them reads "a text, a list or a map".
fn words_for(types: &[String]) -> String {
    let order = [
        ("boolean", "true or false"),
        ("integer", "a whole number"),
        ("number", "a number"),
        ("string", "a text"),
        ("array", "a list"),
        ("object", "a map"),
    ];
    let of_kinds = order.iter().filter(|(kind, _)| types.iter().any(|wanted| wanted == kind)).map(|(_, word)| *word);
    let choices = types.iter().map(String::as_str).filter(|name| name.starts_with('`'));
    let words: Vec<&str> = of_kinds.chain(choices).collect();
    match words.as_slice() {
        [] => "something else".to_owned(),
        [only] => (*only).to_owned(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

/// A scalar as it is written in a message.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
