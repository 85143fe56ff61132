//! Forms of what fills input tensors.

use schemars::{JsonSchema, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use super::scalar::Setting;
use super::shorthand::{Ordered, described};

/// What an entry of `inputs` says of values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ValuesForm {
    /// The same for every input.
    All(FillForm),
    /// By input.
    ByTensor(Ordered<FillForm>),
}

/// What fills one tensor.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum FillForm {
    /// Chosen by a word.
    Word(FillWord),
    /// One value for every element.
    One(Setting),
    /// Values in the order of the elements.
    List(Vec<Setting>),
    /// Drawn between two numbers.
    Range(ValueRange),
}

/// What fills tensors, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "fill-word")]
pub(crate) enum FillWord {
    /// Seeded: N(0,1) for floats, 0 or 1 for integers and booleans, words of small letters for strings.
    Random,
    /// All zeros; fast on power-limited devices, so never the default.
    Zeros,
    /// All ones.
    Ones,
    /// The items of the model's `dataset`, in batches of the size that is asked for, else one by one. Set after set takes
    /// the next ones.
    Dataset,
}

const RANGE_OF_TOKENS: [u32; 2] = [0, 30522];

/// Seeded numbers, uniform from the first bound up to the second: `{ range: [0, 30522] }` draws 0 to 30521 for integers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "value-range")]
pub(crate) struct ValueRange {
    /// The smallest number, and the one that all are less than.
    #[schemars(length(min = 2, max = 2), example = RANGE_OF_TOKENS)]
    pub(crate) range: Vec<Number>,
}

/// The key of a range. It is a tensor of that name where its value is a fill: `{ range: { range: [0, 9] } }`.
pub(crate) const RANGE: &str = "range";

impl<'de> Deserialize<'de> for FillForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            word @ Value::String(_) => serde_json::from_value(word).map(FillForm::Word),
            list @ Value::Array(_) => serde_json::from_value(list).map(FillForm::List),
            range @ Value::Object(_) => serde_json::from_value(range).map(FillForm::Range),
            scalar => return Ok(FillForm::One(Setting(scalar.to_string()))),
        }
        .map_err(D::Error::custom)
    }
}

described!(FillForm, "fill", |generator| {
    let (word, range) = (generator.subschema_for::<FillWord>(), generator.subschema_for::<ValueRange>());
    let setting = generator.subschema_for::<Setting>();
    json_schema!({
        "description": "A word, a range, or given values: one for every element, or a list in the order of the elements, which begins again after its end and goes on from one input set to the next.",
        "anyOf": [word, range, { "type": ["number", "boolean"] }, { "type": "array", "minItems": 1, "items": setting }],
    })
});

described!(ValuesForm, "values", |generator| {
    let fill = generator.subschema_for::<FillForm>();
    json_schema!({
        "description": "What fills every input, or a map of that by input: `{ ids: { range: [0, 30522] }, mask: ones }`.",
        "anyOf": [
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "minLength": 1 },
                "additionalProperties": fill,
            },
            fill,
        ],
        "examples": [{ "ids": { "range": [0, 30522] }, "mask": "ones" }],
    })
});

impl Default for ValuesForm {
    fn default() -> Self {
        ValuesForm::All(FillForm::Word(FillWord::Random))
    }
}
