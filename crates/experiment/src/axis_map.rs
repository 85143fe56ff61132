//! A value for each axis, in files too: fields of what it is part of, by the words for one entry.

use std::fmt;
use std::marker::PhantomData;

use schemars::{Schema, json_schema};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Axis, OnAxis};

/// One value for each axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AxisMap<T>([T; Axis::ALL.len()]);

/// Indices on the axes: one point of the matrix. On an axis that is absent, 0.
pub type Point = AxisMap<u32>;

/// The names of one point; [`Axis::ABSENT`] on an axis that the specification leaves out.
pub type Coordinates<'a> = AxisMap<&'a str>;

impl<T> AxisMap<T> {
    /// The value of each axis, in plan order.
    pub fn of(value: impl FnMut(Axis) -> T) -> Self {
        AxisMap(Axis::ALL.map(value))
    }

    /// Every axis with its value, in plan order.
    pub fn iter(&self) -> impl Iterator<Item = (Axis, &T)> {
        Axis::ALL.into_iter().zip(&self.0)
    }

    /// The same with another value for one axis.
    pub fn with(mut self, axis: Axis, value: T) -> Self {
        self[axis] = value;
        self
    }
}

impl<T: WhenAbsent> AxisMap<T> {
    /// The same for all that differ in their input alone.
    pub fn without_input(self) -> Self {
        self.with(Axis::Inputs, T::when_absent())
    }

    /// The same for all that differ in their variant alone.
    pub fn without_variant(self) -> Self {
        self.with(Axis::Variants, T::when_absent())
    }
}

impl AxisMap<String> {
    /// The names without the machine: `cpu` for `cpu@laptop`.
    pub fn without_machine(mut self) -> Self {
        if let Some((device, _)) = self.device().split_once('@') {
            self[Axis::Devices] = device.to_owned();
        }
        self
    }
}

impl Point {
    /// The same but for its place on the axis of this index.
    pub fn moved_to<I: OnAxis + Into<usize>>(self, index: I) -> Self {
        self.with(I::AXIS, index.into() as u32)
    }
}

impl<T: AsRef<str>> AxisMap<T> {
    pub fn model(&self) -> &str {
        self[Axis::Models].as_ref()
    }

    pub fn input(&self) -> &str {
        self[Axis::Inputs].as_ref()
    }

    pub fn variant(&self) -> &str {
        self[Axis::Variants].as_ref()
    }

    /// The label of the device.
    pub fn device(&self) -> &str {
        self[Axis::Devices].as_ref()
    }

    /// How a model is run: `fp16`, with device and runtime where there are several.
    pub fn configuration(&self, has_several: impl Fn(Axis) -> bool) -> String {
        let is_told = |axis: &Axis| !axis.is_workload() && (*axis == Axis::Variants || has_several(*axis));
        self.on(&Axis::ALL.into_iter().filter(is_told).collect::<Vec<_>>())
    }

    /// The names on the axes that there are, joined by `/`: `mlp/b1/fp32/cpu`.
    pub fn path(&self) -> String {
        let is_present = |axis: &Axis| !axis.may_be_absent() || self[*axis].as_ref() != Axis::ABSENT;
        self.on(&Axis::ALL.into_iter().filter(is_present).collect::<Vec<_>>())
    }

    /// The names on these axes, joined by `/`.
    pub fn on(&self, axes: &[Axis]) -> String {
        axes.iter().map(|axis| self[*axis].as_ref()).collect::<Vec<_>>().join("/")
    }
}

/// The axes on which these names differ, and those that every name includes.
pub fn telling_axes<'a>(all: impl Iterator<Item = &'a AxisMap<String>> + Clone) -> Vec<Axis> {
    let first = all.clone().next();
    let differs = |axis: &Axis| {
        axis.is_always_told() || all.clone().any(|names| first.is_some_and(|first| first[*axis] != names[*axis]))
    };
    Axis::ALL.into_iter().filter(differs).collect()
}

impl<T> std::ops::Index<Axis> for AxisMap<T> {
    type Output = T;

    fn index(&self, axis: Axis) -> &T {
        &self.0[axis as usize]
    }
}

impl<T> std::ops::IndexMut<Axis> for AxisMap<T> {
    fn index_mut(&mut self, axis: Axis) -> &mut T {
        &mut self.0[axis as usize]
    }
}

/// What a file has that does not know an axis yet: the value of one that the specification leaves out.
pub trait WhenAbsent {
    /// The value.
    fn when_absent() -> Self;
}

impl WhenAbsent for u32 {
    fn when_absent() -> Self {
        0
    }
}

impl WhenAbsent for String {
    fn when_absent() -> Self {
        Axis::ABSENT.to_owned()
    }
}

/// As fields of what it is flattened into. An axis that is not always written is left out where it is absent; the first
/// index of one that is not reads back all the same.
impl<T: Serialize + WhenAbsent + PartialEq> Serialize for AxisMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let absent = T::when_absent();
        for (axis, value) in self.iter().filter(|(axis, value)| axis.is_always_written() || **value != absent) {
            map.serialize_entry(axis.singular(), value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + WhenAbsent> Deserialize<'de> for AxisMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + WhenAbsent> Visitor<'de> for Fields<T> {
            type Value = AxisMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value for each axis")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<AxisMap<T>, A::Error> {
                let mut found = AxisMap::of(|_| None);
                while let Some(key) = access.next_key::<String>()? {
                    match Axis::of_singular(&key) {
                        Some(axis) => found[axis] = Some(access.next_value()?),
                        None => drop(access.next_value::<IgnoredAny>()?),
                    }
                }
                if let Some(axis) = Axis::ALL.into_iter().find(|axis| !axis.may_be_absent() && found[*axis].is_none()) {
                    return Err(A::Error::missing_field(axis.singular()));
                }
                Ok(AxisMap(found.0.map(|value| value.unwrap_or_else(T::when_absent))))
            }
        }

        deserializer.deserialize_struct("AxisMap", &Axis::SINGULARS, Fields(PhantomData))
    }
}

/// The schema of a map by axis that is flattened: every axis is a field, with a schema of its own.
pub fn fields_schema(field: impl Fn(Axis) -> Schema) -> Schema {
    let fields: serde_json::Map<_, _> =
        Axis::ALL.into_iter().map(|axis| (axis.singular().to_owned(), field(axis).to_value())).collect();
    let required: Vec<&str> =
        Axis::ALL.into_iter().filter(|axis| axis.is_always_written()).map(Axis::singular).collect();
    json_schema!({ "type": "object", "properties": fields, "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_fields_and_what_may_be_absent_may_be_missing() {
        let point = Point::of(|axis| axis as u32);
        let text = serde_json::to_string(&point).expect("plain numbers");
        assert!(text.starts_with(r#"{"model":0,"input":1,"variant":2,"device":3,"runtime":4"#), "{text}");
        assert_eq!(serde_json::from_str::<Point>(&text).ok(), Some(point));
        let of_old = serde_json::from_str::<Point>(r#"{"model":0,"input":1,"variant":2,"device":3}"#);
        assert_eq!(of_old.ok(), Some(Point::of(|axis| if axis.may_be_absent() { 0 } else { axis as u32 })));
        let error = serde_json::from_str::<AxisMap<String>>(r#"{"model":"m"}"#).expect_err("no input");
        assert!(error.to_string().starts_with("missing field `input`"), "{error}");
    }
}
