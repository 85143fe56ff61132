//! The inputs axis: sizes of dimensions multiplied, or named entries.

use std::collections::BTreeMap;

use crate::experiment::beyond_limit;
use crate::experiment::{InputPoint, Values};
use crate::spec::check::Check;
use crate::spec::document::Place;
use crate::spec::form::{DimensionSize, InputEntry, Inputs, OneOrMany};

use super::Axis;

/// The dimension that every model has in some form, and that names shorten to `b`.
const BATCH: &str = "batch";

/// The points of `inputs` at `place`; without any, one that sets nothing.
pub(super) fn expand(form: Option<&Inputs>, place: &Place, check: &mut Check<'_>) -> Axis<InputPoint> {
    let mut axis = match form {
        None => Axis { values: vec![unset()], is_complete: true },
        Some(Inputs::Dimensions(dimensions)) => multiply(&dimensions.0, place, check),
        Some(Inputs::Entries(entries)) => read_entries(entries, place, check),
    };
    axis.is_complete &= !check.is_damaged(place);
    axis
}

fn unset() -> InputPoint {
    point("default".to_owned(), BTreeMap::new())
}

fn point(name: String, dimensions: BTreeMap<String, u64>) -> InputPoint {
    InputPoint { name, dimensions, shapes: BTreeMap::new(), values: Values::Random }
}

/// Every combination of the sizes, the last dimension fastest; the batch leads, whatever its place in the file.
fn multiply(
    dimensions: &[(String, OneOrMany<DimensionSize>)],
    place: &Place,
    check: &mut Check<'_>,
) -> Axis<InputPoint> {
    let count = dimensions.iter().fold(1u128, |count, (_, sizes)| count.saturating_mul(sizes.as_slice().len() as u128));
    if let Some(message) = beyond_limit("these sizes multiply", count, "inputs") {
        check.error(place, message, "use fewer sizes, or a list of entries".to_owned());
        return Axis::default().incomplete();
    }
    for (name, sizes) in dimensions {
        check_sizes(name, sizes, &place.key(name), check);
    }
    let mut ordered: Vec<_> = dimensions.iter().collect();
    ordered.sort_by_key(|(name, _)| name != BATCH);
    let mut points = vec![(String::new(), BTreeMap::new())];
    for (dimension, sizes) in ordered {
        let mut next = Vec::with_capacity(points.len() * sizes.as_slice().len());
        for (name, chosen) in &points {
            for size in sizes.as_slice() {
                let joint = if name.is_empty() { "" } else { "-" };
                let mut chosen = chosen.clone();
                chosen.insert(dimension.clone(), size.0);
                next.push((format!("{name}{joint}{}{}", label(dimension), size.0), chosen));
            }
        }
        points = next;
    }
    let mut is_complete = true;
    if let Some((long, _)) = points.iter().find(|(name, _)| name.len() > 64) {
        let message = format!("the name of this input, `{long}`, is longer than 64 characters");
        check.error(place, message, "write a list of entries, each with a `name` and `dimensions`".to_owned());
        is_complete = false;
    }
    Axis { values: points.into_iter().map(|(name, chosen)| point(name, chosen)).collect(), is_complete }
}

fn check_sizes(name: &str, sizes: &OneOrMany<DimensionSize>, place: &Place, check: &mut Check<'_>) {
    let mut seen = std::collections::HashSet::new();
    for (place, size) in sizes.places(place) {
        if name == BATCH && size.0 == 0 {
            check.error(&place, "a batch of 0 holds nothing to measure", None);
        }
        if !seen.insert(size.0) {
            check.error(&place, format!("{} stands twice in `{name}`", size.0), None);
        }
    }
}

/// A dimension's part of a name; models name dimensions in ways that names cannot hold (`past + 1`).
fn label(dimension: &str) -> String {
    if dimension == BATCH {
        return "b".to_owned();
    }
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let label: String = dimension.chars().map(|character| if fits(character) { character } else { '_' }).collect();
    if label.starts_with(|first: char| first.is_ascii_alphanumeric()) { label } else { format!("d{label}") }
}

fn read_entries(entries: &[InputEntry], place: &Place, check: &mut Check<'_>) -> Axis<InputPoint> {
    let mut axis = Axis::default();
    let mut names = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = place.index(index);
        if check.is_damaged(&place) {
            axis.is_complete = false;
            continue;
        }
        for (dimension, size) in &entry.dimensions.0 {
            if dimension == BATCH && size.0 == 0 {
                check.error(&place.key("dimensions").key(BATCH), "a batch of 0 holds nothing to measure", None);
            }
        }
        let shapes = entry.shapes.0.iter();
        axis.values.push(InputPoint {
            name: entry.name.0.clone(),
            dimensions: entry.dimensions.0.iter().map(|(name, size)| (name.clone(), size.0)).collect(),
            shapes: shapes.map(|(name, sizes)| (name.clone(), sizes.iter().map(|size| size.0).collect())).collect(),
            values: entry.values,
        });
        names.push((place, entry.name.0.clone()));
    }
    check.duplicates("inputs", &names, "give each its own `name`");
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_parts_of_names() {
        assert_eq!(label("batch"), "b");
        assert_eq!(label("sequence"), "sequence");
        assert_eq!(label("past + 1"), "past___1");
        assert_eq!(label("_x"), "d_x");
    }
}
