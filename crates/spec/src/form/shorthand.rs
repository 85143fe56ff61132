//! The general shorthands: one value where a list can stand, a map whose order matters, and a scalar in place of a map.
//!
//! Serde's `untagged` and `flatten` would do this with messages nobody can use; here the schema, which is checked
//! first, carries the messages.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::document::DocumentPath;

/// A value, or a list of at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OneOrMany<T> {
    /// Written without a list.
    One(T),
    /// Written as a list.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values in order.
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        }
    }

    /// The values with their places, given the place of the whole.
    pub(crate) fn places(&self, place: &DocumentPath) -> Vec<(DocumentPath, &T)> {
        match self {
            OneOrMany::One(value) => vec![(place.clone(), value)],
            OneOrMany::Many(values) => {
                values.iter().enumerate().map(|(index, value)| (place.index(index), value)).collect()
            }
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = match value {
            Value::Array(values) => serde_json::from_value(Value::Array(values)).map(OneOrMany::Many),
            one => serde_json::from_value(one).map(OneOrMany::One),
        };
        read.map_err(D::Error::custom)
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OneOrMany::One(value) => value.serialize(serializer),
            OneOrMany::Many(values) => values.serialize(serializer),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("one or many {}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}

/// A map in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Ordered<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("map of {}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "propertyNames": { "minLength": 1 }, "additionalProperties": value })
    }
}

/// Deserialize, Serialize and JsonSchema of a form that has a short and a long shape.
macro_rules! two_shapes {
    ($type:ident, $name:literal, $short:ident($json:ident => $read:expr), $long:ident, $schema:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match Value::deserialize(deserializer)? {
                    short @ Value::$json(_) => serde_json::from_value(short).map($read),
                    long => serde_json::from_value(long).map($type::$long),
                }
                .map_err(D::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $type::$short(short) => short.serialize(serializer),
                    $type::$long(long) => long.serialize(serializer),
                }
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let shapes: fn(&mut SchemaGenerator) -> Schema = $schema;
                shapes(generator)
            }
        }
    };
}

pub(super) use two_shapes;
