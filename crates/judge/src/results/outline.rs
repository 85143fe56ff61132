//! What a history needs of a file: names and a few metrics of each cell, and the provenance. Everything else, most of the
//! file, is passed over without being kept: a hundred files of a thousand cells have to fit into memory and into seconds.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Cell, Estimated, FORMAT, Measured, Results, Status, parse};
use base::metric::Metric;
use experiment::{Axis, AxisMap};
use plan::CellId;
use record::StoreError;
use record::provenance::Provenance;

/// What is taken of a file.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// These metrics of the cells alone, by their stored names, and those that the specification declares.
    pub metrics: &'a [String],
    /// What is claimed about cells: comparisons, goals, and how much can be seen.
    pub claims: bool,
}

/// As [`parse`], of what is wanted alone.
///
/// # Errors
///
/// As [`parse`].
pub fn outline(path: &Path, text: &str, wanted: Wanted<'_>) -> Result<Results, StoreError> {
    let mut source = serde_json::Deserializer::from_str(text);
    match File(wanted).deserialize(&mut source) {
        Ok(results) if results.format == FORMAT && source.end().is_ok() => Ok(results),
        // Of another format, or damaged: whoever reads all of it says so.
        _ => parse(path, text),
    }
}

struct File<'a>(Wanted<'a>);

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = Results;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Results, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = Results;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("results")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Results, A::Error> {
        let mut results = Results { format: 0, ..Results::empty() };
        while let Some(key) = fields.next_key::<String>()? {
            match key.as_str() {
                "format" => results.format = fields.next_value()?,
                "experiment" => results.experiment = fields.next_value()?,
                "record" => results.record = fields.next_value()?,
                "measured" => results.measured = fields.next_value::<Measured>()?,
                "provenance" => results.provenance = fields.next_value::<Provenance>()?,
                "cells" => results.cells = fields.next_value_seed(Cells(self.0.metrics))?,
                "description" if self.0.claims => results.description = fields.next_value()?,
                "detectable_effect" if self.0.claims => results.detectable_effect = fields.next_value()?,
                "goals" if self.0.claims => results.goals = fields.next_value()?,
                "comparisons" if self.0.claims => results.comparisons = fields.next_value()?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(results)
    }
}

struct Cells<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Cells<'_> {
    type Value = Vec<Cell>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Cell>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_> {
    type Value = Vec<Cell>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Cell>, A::Error> {
        let mut cells = Vec::new();
        while let Some(cell) = items.next_element_seed(OneCell(self.0))? {
            cells.push(cell);
        }
        Ok(cells)
    }
}

struct OneCell<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for OneCell<'_> {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cell, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneCell<'_> {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Cell, A::Error> {
        let mut names: AxisMap<Option<String>> = AxisMap::default();
        let (mut id, mut status, mut batch) = (None, None, None);
        let (mut metrics, mut codes) = (BTreeMap::new(), BTreeMap::new());
        while let Some(key) = fields.next_key::<String>()? {
            match (key.as_str(), Axis::of_singular(&key)) {
                (_, Some(axis)) => names[axis] = Some(fields.next_value()?),
                ("id", _) => id = Some(fields.next_value::<CellId>()?),
                ("status", _) => status = Some(fields.next_value::<Status>()?),
                ("batch", _) => batch = fields.next_value::<Option<u64>>()?,
                // Whether its numbers mean anything.
                ("codes", _) => codes = fields.next_value()?,
                ("metrics", _) => metrics = fields.next_value_seed(Metrics(self.0))?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(axis) = Axis::ALL.into_iter().find(|axis| !axis.may_be_absent() && names[*axis].is_none()) {
            return Err(A::Error::missing_field(axis.singular()));
        }
        let mut name = |axis: Axis| names[axis].take().unwrap_or_else(|| Axis::ABSENT.to_owned());
        Ok(Cell {
            batch,
            metrics,
            codes,
            ..Cell::blank(
                id.ok_or_else(|| A::Error::missing_field("id"))?,
                AxisMap::of(&mut name),
                status.ok_or_else(|| A::Error::missing_field("status"))?,
            )
        })
    }
}

struct Metrics<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for Metrics<'_> {
    type Value = BTreeMap<String, Estimated>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Metrics<'_> {
    type Value = BTreeMap<String, Estimated>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = BTreeMap::new();
        while let Some(name) = fields.next_key::<Name<'de>>()? {
            let is_own = || Metric::of_own(&name.0).is_some();
            match self.0.iter().any(|wanted| *wanted == name.0) || is_own() {
                true => drop(found.insert(name.0.into_owned(), fields.next_value()?)),
                false => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// A name that is only looked at.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::results::read;

    #[test]
    fn an_outline_is_what_the_whole_file_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports/quickstart/results.json");
        let whole = read(&path).unwrap();
        // The committed file may be of the last format.
        let text = whole.to_json();
        let short = outline(&path, &text, Wanted { metrics: &["latency_ns".to_owned()], claims: true }).unwrap();
        assert_eq!(
            (&short.provenance, &short.measured, &short.record),
            (&whole.provenance, &whole.measured, &whole.record)
        );
        assert_eq!(short.cells.len(), whole.cells.len());
        for (short, whole) in short.cells.iter().zip(&whole.cells) {
            assert_eq!(
                (&short.id, &short.names, short.status, short.batch),
                (&whole.id, &whole.names, whole.status, whole.batch)
            );
            assert_eq!(short.metrics.get("latency_ns"), whole.metrics.get("latency_ns"));
            assert!(short.metrics.len() <= 1);
        }
        assert_eq!((short.comparisons, short.goals), (whole.comparisons, whole.goals));
        assert!(outline(&path, "{ \"format\": 4 }", Wanted { metrics: &[], claims: false }).is_err());
    }
}
