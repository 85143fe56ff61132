//! What stands on the axes, by name: all that cells and selectors need of them.

use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Axis, AxisMap, Coordinates, InputFile, InputPoint, Point};

/// The names on every axis, and the input points whole, since selectors ask for their dimensions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    names: AxisMap<Vec<String>>,
    inputs: Vec<InputPoint>,
}

impl Entries {
    /// Those with these names; the names of inputs are those of the points.
    pub fn new(mut names: AxisMap<Vec<String>>, inputs: Vec<InputPoint>) -> Self {
        names[Axis::Inputs] = inputs.iter().map(|input| input.name.clone()).collect();
        Entries { names, inputs }
    }

    /// The names on an axis; none where the specification leaves it out.
    pub fn names(&self, axis: Axis) -> &[String] {
        &self.names[axis]
    }

    /// Every input point that some model is fed; the experiment's own first, then each model's.
    pub fn inputs(&self) -> &Vec<InputPoint> {
        &self.inputs
    }

    /// The files that input points name.
    pub fn input_files_mut(&mut self) -> impl Iterator<Item = &mut InputFile> {
        self.inputs.iter_mut().filter_map(|input| input.file.as_mut())
    }

    /// The names of a point.
    pub fn coordinates(&self, point: &Point) -> Coordinates<'_> {
        AxisMap::of(|axis| match self.names[axis].as_slice() {
            [] => Axis::ABSENT,
            names => &names[point[axis] as usize],
        })
    }

    /// Whether the indices of a point lead somewhere.
    pub fn have(&self, point: &Point) -> bool {
        point.iter().all(|(axis, index)| {
            let length = self.names[axis].len();
            let length = if axis.may_be_absent() { length.max(1) } else { length };
            (*index as usize) < length
        })
    }
}

/// As fields of what it is flattened into, by the keys of the specification.
impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (axis, names) in self.names.iter() {
            match axis {
                Axis::Inputs => map.serialize_entry(axis.plural(), &self.inputs)?,
                _ if axis.may_be_absent() && names.is_empty() => {}
                _ => map.serialize_entry(axis.plural(), names)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the names on each axis")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Entries, A::Error> {
                let mut names = AxisMap::<Option<Vec<String>>>::default();
                let mut inputs = None;
                while let Some(key) = access.next_key::<String>()? {
                    match Axis::of_plural(&key) {
                        Some(Axis::Inputs) => inputs = Some(access.next_value()?),
                        Some(axis) => names[axis] = Some(access.next_value()?),
                        None => drop(access.next_value::<IgnoredAny>()?),
                    }
                }
                let inputs = inputs.ok_or_else(|| A::Error::missing_field(Axis::Inputs.plural()))?;
                names[Axis::Inputs] = Some(Vec::new());
                if let Some(axis) = Axis::ALL.into_iter().find(|axis| !axis.may_be_absent() && names[*axis].is_none()) {
                    return Err(A::Error::missing_field(axis.plural()));
                }
                Ok(Entries::new(AxisMap::of(|axis| names[axis].take().unwrap_or_default()), inputs))
            }
        }

        deserializer.deserialize_struct("Entries", &Axis::PLURALS, Fields)
    }
}
